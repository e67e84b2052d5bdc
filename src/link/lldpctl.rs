//! Pure reader of what `lldpctl -f json` (or `json0`) prints: the neighbours that a running lldpd has heard.

use serde_json::{Map, Value};

use crate::model::link::{Duplex, Neighbour};
use crate::model::outcome::Source;
use crate::units::BitRate;

/// More neighbours than this are not listed.
const MOST: usize = 64;
/// The longest text that is kept, in characters, as in the frames themselves.
const TEXT: usize = 255;

/// The neighbours in the output of `lldpctl`; empty where it is none, or where lldpd has heard nobody.
///
/// In `json` a thing that is there once stands for itself and is a list where there are more, and interfaces and devices are
/// keys; in `json0` everything is a list, and every text an object with a `value`. Both are read.
pub fn from_lldpctl(json: &str) -> Vec<Neighbour> {
    let document: Value = serde_json::from_str(json).unwrap_or_default();
    let lldp = document.get("lldp").map(all).unwrap_or_default();
    let interfaces = lldp.into_iter().filter_map(|part| part.get("interface")).flat_map(all);
    interfaces.flat_map(named).take(MOST).map(|(name, facts)| neighbour(name, facts)).collect()
}

/// The things that a value stands for: a list's, or itself.
fn all(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(list) => list.iter().take(MOST).collect(),
        one => vec![one],
    }
}

/// Interfaces and their facts: an object with a `name` (`json0`), or one whose keys are the names.
fn named(value: &Value) -> Vec<(&str, &Map<String, Value>)> {
    let Some(object) = value.as_object() else { return Vec::new() };
    match object.get("name").and_then(Value::as_str) {
        Some(name) => vec![(name, object)],
        None => object.iter().filter_map(|(name, facts)| Some((name.as_str(), facts.as_object()?))).collect(),
    }
}

fn neighbour(interface: &str, facts: &Map<String, Value>) -> Neighbour {
    let (system, chassis) = facts.get("chassis").map_or((None, None), chassis);
    let of_chassis = |key: &str| chassis.and_then(|it| it.get(key));
    let port = facts.get("port").and_then(first);
    let of_port = |key: &str| port.and_then(|it| it.get(key));
    Neighbour {
        interface: cut(interface),
        chassis: of_chassis("id").and_then(text),
        port: of_port("id").and_then(text),
        port_description: of_port("descr").and_then(text),
        system,
        system_description: of_chassis("descr").and_then(text),
        max_frame_bytes: of_port("mfs").and_then(number).filter(|frame| *frame != 0),
        port_vlan: facts.get("vlan").and_then(port_vlan),
        // It is printed only for a port that is part of one; the number is the aggregation's.
        aggregation: of_port("aggregation").and_then(text).map(|_| [true, true]),
        autoneg: of_port("auto-negotiation").and_then(|it| Some([flag(it, "supported")?, flag(it, "enabled")?])),
        speed_bps: of_port("auto-negotiation").and_then(first).and_then(|it| speed(&text(it.get("current")?)?)),
        duplex: of_port("auto-negotiation").and_then(first).and_then(|it| duplex(&text(it.get("current")?)?)),
        // These are not printed.
        stated_mtu: None,
        lacp: None,
        capabilities: of_chassis("capability").map(capabilities).unwrap_or_default(),
        // Old releases told it of the chassis.
        ttl_s: of_port("ttl").or_else(|| of_chassis("ttl")).and_then(number),
        source: Some(Source::Program),
    }
}

/// The device's name, if it has one, and its facts: in `json` the name is the key above the facts.
fn chassis(value: &Value) -> (Option<String>, Option<&Value>) {
    let Some(object) = first(value) else { return (None, None) };
    let is_facts = |it: &Value| it.get("id").is_some_and(|id| text(id).is_some());
    if is_facts(object) {
        return (object.get("name").and_then(text), Some(object));
    }
    let under_name = object.as_object().and_then(|it| it.iter().find(|(_, facts)| is_facts(facts)));
    under_name.map_or((None, None), |(name, facts)| (Some(cut(name)), Some(facts)))
}

/// The first of a list, or the thing itself.
fn first(value: &Value) -> Option<&Value> {
    match value {
        Value::Array(list) => list.first(),
        one => Some(one),
    }
}

fn cut(text: &str) -> String {
    text.chars().take(TEXT).collect()
}

/// A text, which may be the `value` of an object.
fn text(value: &Value) -> Option<String> {
    let value = first(value)?;
    let text = value.as_str().or_else(|| value.get("value")?.as_str())?.trim();
    (!text.is_empty()).then(|| cut(text))
}

fn number<T: std::str::FromStr>(value: &Value) -> Option<T> {
    text(value)?.parse().ok()
}

fn flag(value: &Value, key: &str) -> Option<bool> {
    first(value)?.get(key)?.as_bool()
}

/// The duplex in the words for a kind of port, such as `1000BaseTFD - Four-pair Category 5 UTP, full duplex mode`.
fn duplex(words: &str) -> Option<Duplex> {
    match (words.contains("full duplex"), words.contains("half duplex")) {
        (true, false) => Some(Duplex::Full),
        (false, true) => Some(Duplex::Half),
        _ => None,
    }
}

/// The speed in the words for a kind of port: a number of Mbit/s, or of Gbit/s with a `G` behind it (`2p5GigT`, `10GbaseT`).
/// None for what is no port of Ethernet over a cable of its own: access lines (`2BaseTL`), passive optical networks of two speeds
/// (`10G1Gbase…`).
fn speed(words: &str) -> Option<BitRate> {
    let kind = words.split(' ').next()?.to_ascii_lowercase();
    let end = kind.find(|c: char| !c.is_ascii_digit() && c != 'p')?;
    let (number, unit) = kind.split_at_checked(end)?;
    let (whole, tenths) = number.split_once('p').unwrap_or((number, "0"));
    let tenths = whole.parse::<u64>().ok()?.checked_mul(10)?.checked_add(tenths.parse::<u64>().ok().filter(|it| *it < 10)?)?;
    let mbit = match unit.strip_prefix('g') {
        Some(rest) if rest.starts_with("base") || rest.starts_with("ig") => tenths.checked_mul(100)?,
        None if unit.starts_with("base") => tenths / 10,
        _ => return None,
    };
    (10..=800_000).contains(&mbit).then_some(BitRate(mbit * 1_000_000))
}

/// The number of the VLAN of untagged frames; 0 says that there is none.
fn port_vlan(vlans: &Value) -> Option<u16> {
    let vlans = all(vlans).into_iter();
    let untagged = vlans.filter(|vlan| vlan.get("pvid").and_then(Value::as_bool) == Some(true));
    untagged.filter_map(|vlan| number(vlan.get("vlan-id")?)).find(|number| *number != 0)
}

/// What the device is at work as, in the words of the frames' decoder.
fn capabilities(value: &Value) -> Vec<String> {
    let enabled = all(value).into_iter().filter(|it| flag(it, "enabled") == Some(true));
    enabled
        .filter_map(|it| text(it.get("type")?))
        .map(|name| match name.as_str() {
            "Wlan" => "access point".to_owned(),
            "Tel" => "telephone".to_owned(),
            "Docsis" => "cable modem".to_owned(),
            other => other.to_lowercase(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    macro_rules! recorded {
        ($name:literal) => {
            include_str!(concat!("../../tests/fixtures/link/lldp/", $name))
        };
    }

    /// Interface, chassis, port, system, largest frame, VLAN, negotiation, time to live.
    type Row<'a> = (&'a str, &'a str, &'a str, Option<&'a str>, Option<u32>, Option<u16>, Option<[bool; 2]>, Option<u16>);

    fn row(told: &Neighbour) -> Row<'_> {
        (
            &told.interface,
            told.chassis.as_deref().unwrap_or("-"),
            told.port.as_deref().unwrap_or("-"),
            told.system.as_deref(),
            told.max_frame_bytes,
            told.port_vlan,
            told.autoneg,
            told.ttl_s,
        )
    }

    #[test]
    fn what_lldpctl_1_0_16_prints_is_read_in_both_shapes() {
        let both = Some([true, true]);
        let summit: Row<'_> = ("b0", "00:01:30:f9:ad:a0", "1/1", Some("Summit300-48"), Some(1522), Some(488), both, Some(120));
        let others: [Row<'_>; 3] = [
            ("b0", "84:18:88:d6:39:48", "526", None, Some(1514), None, Some([true, false]), Some(40)),
            ("b1", "192.0.2.1", "lag member 3", Some("Büro"), Some(9216), Some(10), None, Some(3601)),
            ("b1", "2c:b0:5d:a1:ac:fd", "g1", None, None, None, None, Some(120)),
        ];
        let many = [&[summit][..], &others].concat();
        for (name, json, expected) in [
            ("nobody", recorded!("lldpctl_none.json"), &[][..]),
            ("one", recorded!("lldpctl_one.json"), &many[..1]),
            ("one, json0", recorded!("lldpctl_one.json0"), &many[..1]),
            ("many", recorded!("lldpctl_many.json"), &many[..]),
            ("many, json0", recorded!("lldpctl_many.json0"), &many[..]),
        ] {
            let told = from_lldpctl(json);
            assert_eq!(told.iter().map(row).collect::<Vec<_>>(), expected, "{name}");
            assert!(told.iter().all(|it| it.source == Some(Source::Program)), "{name}");
        }
        let told = from_lldpctl(recorded!("lldpctl_one.json")).remove(0);
        assert_eq!(told.port_description.as_deref(), Some("Summit300-48-Port 1001"));
        assert_eq!((told.duplex, told.autoneg), (Some(Duplex::Full), both));
        assert_eq!(told.speed_bps, Some(BitRate(100_000_000)));
        assert_eq!(told.capabilities, ["bridge", "router"]);
        assert!(told.system_description.unwrap().starts_with("Summit300-48 - Version 7.4e.1"));
    }

    #[test]
    fn a_kind_of_port_names_its_speed() {
        // Words of lldpd 1.0.16.
        for (words, mbit) in [
            ("10BaseTHD - UTP MAU, half duplex mode", Some(10)),
            ("1000BaseTFD - Four-pair Category 5 UTP, full duplex mode", Some(1_000)),
            ("1000baseKX - X backplane, full duplex mode only", Some(1_000)),
            ("2p5GigT - 2.5GBASE-T Four-pair twisted-pair balanced copper cabling PHY", Some(2_500)),
            ("2p5GbaseX - 2.5GBASE-X PCS/PMA over undefined PMD", Some(2_500)),
            ("5GigT - 5GBASE-T Four-pair twisted-pair balanced copper cabling PHY", Some(5_000)),
            ("10GigBaseLR - R fiber over 1310 nm optics", Some(10_000)),
            ("10GbaseT - Four-pair Category 6A or better, full duplex mode only", Some(10_000)),
            ("100GbaseLR4 - 100GBASE-R PCS/PMA over 4 WDM lane single mode fiber, long reach", Some(100_000)),
            ("10G1GbasePRXD1 - One single-mode fiber asymmetric-rate EPON OLT, low power budget (PRX10)", None),
            ("2BaseTL - Voice grade UTP copper, up to 2700m, optional PAF", None),
            ("unknown", None),
            ("99999999999999999999GbaseT", None),
            ("10ppppGbaseT", None),
            ("", None),
        ] {
            assert_eq!(speed(words), mbit.map(|mbit: u64| BitRate(mbit * 1_000_000)), "{words}");
        }
    }

    #[test]
    fn shapes_of_other_releases_are_read() {
        let told = from_lldpctl(
            r#"{"lldp": {"interface": {"eth0": {"via": "CDPv2",
                "chassis": {"c6500": {"id": {"type": "mac", "value": "00:1c:0f:5f:c7:c0"}, "ttl": "120",
                    "capability": {"type": "Wlan", "enabled": true}}},
                "port": {"id": {"type": "ifname", "value": "Gi3/36"}, "aggregation": "7"},
                "vlan": [{"vlan-id": "5", "pvid": false}, {"vlan-id": 9, "pvid": true}, {"vlan-id": "12", "pvid": true}]}}}}"#,
        );
        assert_eq!(row(&told[0]), ("eth0", "00:1c:0f:5f:c7:c0", "Gi3/36", Some("c6500"), None, Some(12), None, Some(120)));
        assert_eq!((told[0].aggregation, &told[0].capabilities[..]), (Some([true, true]), &["access point".to_owned()][..]));
    }

    #[test]
    fn what_is_no_such_output_is_nobody() {
        for json in
            ["", "-----\nLLDP neighbors:\n", "{", "[]", "{\"lldp\": 3}", "{\"lldp\": {\"interface\": [7, {\"eth0\": 1}]}}"]
        {
            assert_eq!(from_lldpctl(json), [], "{json}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(from_lldpctl(&deep), []);
        let many = format!("{{\"lldp\": {{\"interface\": [{}{{}}]}}}}", "{\"e\": {}},".repeat(1000));
        assert_eq!(from_lldpctl(&many).len(), MOST);
    }

    proptest! {
        #[test]
        fn a_recorded_output_with_some_bytes_changed_is_taken(
            changes in prop::collection::vec((any::<prop::sample::Index>(), b' '..b'~'), 0..8),
        ) {
            let mut bytes = recorded!("lldpctl_many.json").as_bytes().to_vec();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            prop_assert!(from_lldpctl(&String::from_utf8_lossy(&bytes)).len() <= MOST);
        }
    }
}
