//! The state bits of an LACP port in words (IEEE 802.1AX, 6.4.2.3): a healthy port shows 61 or 63 at both ends.

/// It sends LACPDUs without being asked.
pub const ACTIVE: u32 = 0x01;
/// It wants the partner's LACPDUs every second, not every 30 s.
pub const SHORT_TIMEOUT: u32 = 0x02;
/// It may be aggregated; without it the port stays alone.
pub const AGGREGATION: u32 = 0x04;
/// It stands in the aggregator that its owner chose.
pub const SYNCHRONISED: u32 = 0x08;
/// It takes frames in.
pub const COLLECTING: u32 = 0x10;
/// It sends frames out.
pub const DISTRIBUTING: u32 = 0x20;
/// It heard no LACPDU and made up its partner.
pub const DEFAULTED: u32 = 0x40;
/// The partner's LACPDUs stopped.
pub const EXPIRED: u32 = 0x80;

const NAMES: [(u32, &str); 8] = [
    (ACTIVE, "active"),
    (SHORT_TIMEOUT, "short timeout"),
    (AGGREGATION, "aggregation"),
    (SYNCHRONISED, "synchronised"),
    (COLLECTING, "collecting"),
    (DISTRIBUTING, "distributing"),
    (DEFAULTED, "defaulted"),
    (EXPIRED, "expired"),
];

/// The bits that are set, by name: 61 is `active, aggregation, synchronised, collecting, distributing`.
pub fn words(state: u32) -> String {
    let set: Vec<&str> = NAMES.iter().filter(|(bit, _)| state & bit != 0).map(|(_, name)| *name).collect();
    if set.is_empty() { "nothing".to_owned() } else { set.join(", ") }
}

/// Whether a port with this state carries traffic as part of an aggregation.
pub const fn healthy(state: u32) -> bool {
    const NEEDED: u32 = AGGREGATION | SYNCHRONISED | COLLECTING | DISTRIBUTING;
    state & NEEDED == NEEDED && state & (DEFAULTED | EXPIRED) == 0
}

/// What keeps a port with this state of our own out of the aggregation, the deepest cause first; none when it is healthy.
pub const fn fault(state: u32) -> Option<&'static str> {
    Some(if state & DEFAULTED != 0 {
        "it hears no LACPDU: the switch port is not set up for LACP, or the frames do not arrive"
    } else if state & EXPIRED != 0 {
        "the partner's LACPDUs stopped"
    } else if state & AGGREGATION == 0 {
        "it may not be aggregated (another speed or half duplex, or set up as an individual link)"
    } else if state & SYNCHRONISED == 0 {
        "it is not in the active aggregator (another partner or key, or on standby)"
    } else if state & COLLECTING == 0 || state & DISTRIBUTING == 0 {
        "it waits for the partner to take it in"
    } else {
        return None;
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_states_are_told_in_words() {
        for (state, said, good, reason) in [
            (61, "active, aggregation, synchronised, collecting, distributing", true, None),
            (63, "active, short timeout, aggregation, synchronised, collecting, distributing", true, None),
            (60, "aggregation, synchronised, collecting, distributing", true, None),
            (0x45, "active, aggregation, defaulted", false, Some("no LACPDU")),
            (77, "active, aggregation, synchronised, defaulted", false, Some("no LACPDU")),
            (0x7d, "active, aggregation, synchronised, collecting, distributing, defaulted", false, Some("no LACPDU")),
            (0x85, "active, aggregation, expired", false, Some("stopped")),
            (5, "active, aggregation", false, Some("not in the active aggregator")),
            (13, "active, aggregation, synchronised", false, Some("waits")),
            (0x39, "active, synchronised, collecting, distributing", false, Some("may not be aggregated")),
            (0, "nothing", false, Some("may not be aggregated")),
        ] {
            assert_eq!(words(state), said, "{state}");
            assert_eq!(healthy(state), good, "{state}");
            assert_eq!(fault(state).is_none(), good, "{state}");
            assert!(
                reason.is_none_or(|part| fault(state).is_some_and(|fault| fault.contains(part))),
                "{state}: {:?}",
                fault(state)
            );
        }
    }
}
