//! The words of a medium, as `ifconfig` prints them: `autoselect (10Gbase-T <full-duplex,flow-control>)`.

use crate::model::link::Duplex;

/// The most speeds of one list.
const SPEEDS: usize = 64;

/// What is set, and what is in effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Media {
    /// Whether it is a radio's.
    pub wifi: bool,
    /// Whether it is Ethernet's by its words.
    pub ethernet: bool,
    /// Whether the medium is negotiated; none where the line does not say.
    pub autoselect: Option<bool>,
    /// The speed of the medium that is set by hand, in bit/s: a setting, no fact about the link.
    pub set_bits: Option<u64>,
    /// What is in effect; none where the line tells only what is set.
    pub active: Option<Active>,
}

/// The medium in effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Active {
    /// Its speed in bit/s.
    pub bits: Option<u64>,
    /// Its duplex.
    pub duplex: Option<Duplex>,
    /// Whether pause frames are obeyed and sent, where the line names either.
    pub pause: Option<[bool; 2]>,
    /// Whether the line names Energy-Efficient Ethernet.
    pub eee: bool,
}

/// The words of a text, without the signs around options.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | ',' | '(' | ')')).filter(|word| !word.is_empty())
}

/// Reads what stands behind `media:`.
///
/// What is in effect stands in brackets behind what is set. Without brackets it is a setting and nothing is known of the link.
pub(super) fn decode(text: &str) -> Media {
    let (set, active) = match text.split_once('(') {
        Some((set, active)) => (set, Some(active)),
        None => (text, None),
    };
    let first: Vec<String> = words(set).take(4).map(str::to_ascii_lowercase).collect();
    let wifi = text.to_ascii_lowercase().contains("802.11");
    let set_bits = words(set).find_map(speed);
    let negotiated = first.iter().any(|word| matches!(word.as_str(), "autoselect" | "auto"));
    let autoselect = if negotiated { Some(true) } else { set_bits.map(|_| false) };
    Media {
        wifi,
        ethernet: !wifi && (first.iter().any(|word| word == "ethernet") || words(text).any(|word| speed(word).is_some())),
        autoselect,
        set_bits,
        active: active.and_then(in_effect),
    }
}

/// The text in the brackets; none where it is `none` or `no carrier`, which is no medium.
fn in_effect(text: &str) -> Option<Active> {
    let options: Vec<String> = words(text).take(16).map(str::to_ascii_lowercase).collect();
    let has = |name: &str| options.iter().any(|option| option == name);
    if options.is_empty() || has("none") || has("unknown") || text.trim_start().starts_with("no carrier") {
        return None;
    }
    let pause = if has("flow-control") { Some([true, true]) } else { Some([has("rxpause"), has("txpause")]) };
    Some(Active {
        bits: options.iter().find_map(|word| speed(word)),
        duplex: match (has("full-duplex"), has("half-duplex")) {
            (true, false) => Some(Duplex::Full),
            (false, true) => Some(Duplex::Half),
            _ => None,
        },
        // Most drivers name it only where it is on, and some never: its absence says nothing.
        pause: pause.filter(|on| on.contains(&true)),
        eee: has("energy-efficient-ethernet"),
    })
}

/// The speed in bit/s that a medium's name stands for: `1000baseT`, `10Gbase-SR`, `2500Base-T`, `100GBase-CR4`; Mbit/s before "base"
/// (IEEE 802.3 clause 1.2.3), Gbit/s with a G.
pub(super) fn speed(word: &str) -> Option<u64> {
    let lower = word.to_ascii_lowercase();
    let (number, _) = lower.split_once("base")?;
    let (number, unit) = number.strip_suffix('g').map_or((number, 1_000_000), |giga| (giga, 1_000_000_000));
    decimal(number, unit).filter(|bits| (1_000_000..=1_600_000_000_000).contains(bits))
}

/// A number with at most three digits behind the point or comma, times `unit`, exactly.
pub(super) fn decimal(text: &str, unit: u64) -> Option<u64> {
    let (whole, part) = text.split_once(['.', ',']).unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 9 || part.len() > 3 || !digits(whole) || !digits(part) {
        return None;
    }
    let thousandths: u64 = format!("{part:0<3}").parse().ok()?;
    let all = whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(thousandths)?;
    Some(all.checked_mul(unit)? / 1000)
}

/// Adds the speed of a line of the list of supported media: `media 10Gbase-T mediaopt full-duplex`.
pub(super) fn add_supported(line: &str, list: &mut Vec<u64>) {
    if let Some(bits) = words(line).take(4).find_map(speed)
        && list.len() < SPEEDS
        && let Err(at) = list.binary_search(&bits)
    {
        list.insert(at, bits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_media_stand_for_speeds() {
        for (word, mbit) in [
            ("10baseT/UTP", Some(10)),
            ("100baseTX", Some(100)),
            ("1000baseT", Some(1_000)),
            ("2500Base-T", Some(2_500)),
            ("2.5GBASE-T", Some(2_500)),
            ("5000Base-T", Some(5_000)),
            ("10Gbase-Twinax", Some(10_000)),
            ("25GBase-CR", Some(25_000)),
            ("100GBase-CR4", Some(100_000)),
            ("autoselect", None),
            ("base", None),
            ("-1base", None),
            ("1e9baseT", None),
            ("99999999999baseT", None),
            ("database", None),
        ] {
            assert_eq!(speed(word), mbit.map(|mbit: u64| mbit * 1_000_000), "{word}");
        }
    }

    #[test]
    fn a_medium_without_brackets_is_a_setting() {
        let set = decode(" Ethernet 1000baseT <full-duplex>");
        assert_eq!((set.autoselect, set.set_bits, set.active, set.ethernet), (Some(false), Some(1_000_000_000), None, true));
        let auto = decode(" autoselect");
        assert_eq!((auto.autoselect, auto.active, auto.ethernet), (Some(true), None, false));
        let none = decode(" autoselect (none)");
        assert_eq!((none.autoselect, none.active), (Some(true), None));
    }

    #[test]
    fn pause_is_told_in_the_words_of_each_system() {
        for (text, pause) in [
            ("autoselect (10Gbase-T <full-duplex,flow-control>)", Some([true, true])),
            ("Ethernet autoselect (1000baseT <full-duplex,rxpause,txpause>)", Some([true, true])),
            ("Ethernet autoselect (1000baseT <full-duplex,rxpause>)", Some([true, false])),
            ("Ethernet autoselect (1000baseT full-duplex,rxpause,txpause)", Some([true, true])),
            ("Ethernet autoselect (1000baseT <full-duplex>)", None),
        ] {
            let active = decode(text).active.unwrap();
            assert_eq!((active.pause, active.duplex), (pause, Some(Duplex::Full)), "{text}");
        }
    }
}
