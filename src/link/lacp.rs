//! Pure decoder of LACPDUs (IEEE 802.1AX): a port that waits for an aggregation at our end. A bond of ours takes them for
//! itself, so they are heard only where there is none.

use super::lldp::{behind_tags, half, hex};
use crate::model::link::{LacpEnd, Neighbour};
use crate::model::outcome::Source;

/// The EtherType of the slow protocols (IEEE 802.3, annex 57A).
pub(super) const ETHER_TYPE: u16 = 0x8809;
/// Where they are sent to.
pub(super) const GROUP: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0x02];

/// LACP among the slow protocols, in its version 1; later versions keep what version 1 says in its place.
const LACP: u8 = 1;
/// Type and length of what each end says (IEEE 802.1AX, 6.4.2).
const ACTOR: [u8; 2] = [1, 20];
const PARTNER: [u8; 2] = [2, 20];

/// What one Ethernet frame, from its destination address on, says of the aggregation that its sender wants.
///
/// None unless it is a whole LACPDU. Of the device it tells only the chassis (the system's address) and the port's number.
pub fn decode(frame: &[u8], interface: &str) -> Option<Neighbour> {
    let (ether_type, payload) = behind_tags(frame)?;
    (frame.starts_with(&GROUP) && ether_type == ETHER_TYPE).then_some(())?;
    let [LACP, _version, ends @ ..] = payload else { return None };
    let actor = end(ends.strip_prefix(&ACTOR)?)?;
    let partner = end(ends.get(20..)?.strip_prefix(&PARTNER)?)?;
    Some(Neighbour {
        interface: interface.to_owned(),
        chassis: Some(actor.system.clone()),
        port: Some(actor.port.to_string()),
        source: Some(Source::Measured),
        lacp: Some([actor, partner]),
        ..Neighbour::default()
    })
}

/// Priority of the system, its address, key, priority of the port, its number, state.
fn end(bytes: &[u8]) -> Option<LacpEnd> {
    Some(LacpEnd { system: hex(bytes.get(2..8)?)?, key: half(bytes, 8)?, port: half(bytes, 12)?, state: *bytes.get(14)? })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An LACPDU of a switch that knows no partner yet: active, short timeout, aggregation, defaulted (71).
    fn waiting() -> Vec<u8> {
        let mut frame = [&GROUP[..], &[2, 0, 0, 0, 0, 1, 0x88, 0x09, 1, 1]].concat();
        frame.extend([1, 20, 0x80, 0, 0, 0x1b, 0x21, 0xaa, 0xbb, 0xcc, 0, 17, 0, 128, 1, 3, 0x47, 0, 0, 0]);
        frame.extend([2, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0]);
        frame.extend([3, 16]);
        frame.resize(124, 0);
        frame
    }

    #[test]
    fn a_switch_that_waits_for_a_bond_says_so() {
        let told = decode(&waiting(), "eth0").unwrap();
        let system = |system: &str, key, port, state| LacpEnd { system: system.to_owned(), key, port, state };
        let ends = [system("00:1b:21:aa:bb:cc", 17, 259, 0x47), system("00:00:00:00:00:00", 0, 0, 2)];
        assert_eq!(told.lacp, Some(ends));
        assert_eq!((told.chassis.as_deref(), told.port.as_deref()), (Some("00:1b:21:aa:bb:cc"), Some("259")));
    }

    #[test]
    fn what_is_no_whole_lacpdu_is_nothing() {
        let good = waiting();
        let with = |at: usize, byte: u8| {
            let mut frame = good.clone();
            frame[at] = byte;
            frame
        };
        for (name, frame) in [
            ("empty", Vec::new()),
            ("to another group", with(5, 0)),
            ("another EtherType", with(13, 8)),
            ("a marker", with(14, 2)),
            ("an actor of another length", with(17, 19)),
            ("no partner", with(36, 3)),
            ("cut in the partner", good[..50].to_vec()),
        ] {
            assert_eq!(decode(&frame, "eth0"), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn random_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..128)) {
            let _ = decode(&bytes, "eth0");
            let _ = decode(&[&waiting()[..16], &bytes].concat(), "eth0");
        }
    }
}
