//! Pure decoder of LLDP frames (IEEE 802.1AB): what a device says of itself and of its port.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::model::link::{Duplex, Neighbour};
use crate::model::outcome::Source;
use crate::units::BitRate;

/// The EtherType of LLDP (IEEE 802.1AB, table 7-2).
pub(super) const ETHER_TYPE: u16 = 0x88cc;

/// Where LLDP frames are sent to: the nearest bridge, the nearest one that is no two-port relay, the nearest customer
/// bridge (IEEE 802.1AB, table 7-1). No bridge passes the first one on.
pub(super) const GROUPS: [[u8; 6]; 3] =
    [[0x01, 0x80, 0xc2, 0, 0, 0x0e], [0x01, 0x80, 0xc2, 0, 0, 0x03], [0x01, 0x80, 0xc2, 0, 0, 0x00]];

/// The longest text that is kept, in bytes: the standard allows no more in any of them (8.5.5 to 8.5.7).
const TEXT: usize = 255;

/// OUI of the organisation-specific fields of IEEE 802.1 and 802.3.
const OUI_802_1: [u8; 3] = [0x00, 0x80, 0xc2];
const OUI_802_3: [u8; 3] = [0x00, 0x12, 0x0f];

/// System capabilities by bit (IEEE 802.1AB, table 8-4).
const CAPABILITIES: [&str; 11] = [
    "other",
    "repeater",
    "bridge",
    "access point",
    "router",
    "telephone",
    "cable modem",
    "station",
    "customer bridge",
    "service bridge",
    "two-port relay",
];

/// What one Ethernet frame, from its destination address on, says of the device that sent it.
///
/// None unless it is an LLDP frame that begins with a chassis ID, as the standard demands. What comes before a damaged field
/// is kept, what comes after it is not. A frame with `ttl_s` 0 says that the device goes away.
pub fn decode(frame: &[u8], interface: &str) -> Option<Neighbour> {
    let mut fields = Fields(payload(frame)?).peekable();
    fields.peek().filter(|(kind, value)| *kind == 1 && value.len() > 1)?;
    let mut neighbour = Neighbour { interface: interface.to_owned(), source: Some(Source::Measured), ..Neighbour::default() };
    for (kind, value) in fields {
        take(&mut neighbour, kind, value);
    }
    Some(neighbour)
}

pub(super) fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|b| u16::from_be_bytes(*b))
}

/// The EtherType, or the length in its place, of a frame and what is behind it, which is also behind at most two VLAN tags
/// (IEEE 802.1Q, 802.1ad).
pub(super) fn behind_tags(frame: &[u8]) -> Option<(u16, &[u8])> {
    const TAGS: [u16; 2] = [0x8100, 0x88a8];
    let tags = (0..2).take_while(|tag| half(frame, 12 + 4 * tag).is_some_and(|it| TAGS.contains(&it))).count();
    let at = 12 + 4 * tags;
    Some((half(frame, at)?, frame.get(at + 2..)?))
}

/// What is behind the EtherType of LLDP.
fn payload(frame: &[u8]) -> Option<&[u8]> {
    let destination: &[u8; 6] = frame.first_chunk()?;
    let (ether_type, payload) = behind_tags(frame)?;
    (GROUPS.contains(destination) && ether_type == ETHER_TYPE).then_some(payload)
}

/// The fields in turn, up to the end mark or to one that is cut: type, and value of at most 511 bytes.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let header = half(self.0, 0)?;
        let (kind, length) = ((header >> 9) as u8, usize::from(header & 0x1ff));
        let value = self.0.get(2..2 + length).filter(|_| kind != 0)?;
        self.0 = self.0.get(2 + length..).unwrap_or_default();
        Some((kind, value))
    }
}

/// Sets what is not yet known: a field that comes twice counts as it came first.
pub(super) fn set<T>(place: &mut Option<T>, value: Option<T>) {
    if place.is_none() {
        *place = value;
    }
}

fn take(neighbour: &mut Neighbour, kind: u8, value: &[u8]) {
    match kind {
        1 => set(&mut neighbour.chassis, chassis(value)),
        2 => set(&mut neighbour.port, port(value)),
        3 => set(&mut neighbour.ttl_s, half(value, 0)),
        4 => set(&mut neighbour.port_description, text(value)),
        5 => set(&mut neighbour.system, text(value)),
        6 => set(&mut neighbour.system_description, text(value)),
        7 if neighbour.capabilities.is_empty() => {
            // What it can be, then what it is.
            neighbour.capabilities = capabilities(half(value, 2).unwrap_or(0));
        }
        127 => take_organisation(neighbour, value),
        _ => {}
    }
}

fn take_organisation(neighbour: &mut Neighbour, value: &[u8]) {
    let Some((oui, [subtype, value @ ..])) = value.split_first_chunk() else { return };
    match (*oui, *subtype) {
        // 0 says that the port has no such VLAN.
        (OUI_802_1, 1) => set(&mut neighbour.port_vlan, half(value, 0).filter(|vlan| *vlan != 0)),
        (OUI_802_1, 7) | (OUI_802_3, 3) => set(&mut neighbour.aggregation, value.first().map(|bits| pair(*bits))),
        (OUI_802_3, 1) => {
            set(&mut neighbour.autoneg, value.first().map(|bits| pair(*bits)));
            set(&mut neighbour.duplex, half(value, 3).and_then(duplex));
            set(&mut neighbour.speed_bps, half(value, 3).and_then(speed));
        }
        (OUI_802_3, 4) => {
            set(&mut neighbour.max_frame_bytes, half(value, 0).filter(|frame| *frame != 0).map(u32::from));
        }
        _ => {}
    }
}

/// The duplex of a kind of port (`dot3MauType` of the IANA-MAU-MIB, RFC 4836), of those that exist with both: 10BASE-T and FL, 100BASE-TX
/// and FX, 1000BASE-X, LX, SX and T.
const fn duplex(mau: u16) -> Option<Duplex> {
    match mau {
        10 | 12 | 15 | 17 | 21 | 23 | 25 | 29 => Some(Duplex::Half),
        11 | 13 | 16 | 18 | 22 | 24 | 26 | 30 => Some(Duplex::Full),
        _ => None,
    }
}

/// The speed of a kind of port (`dot3MauType` of the IANA-MAU-MIB) for those that work at one speed, so without passive optical networks
/// with two and without copper pairs of telephones; none for what is unknown or newer.
const fn speed(mau: u16) -> Option<BitRate> {
    let mbit = match mau {
        2..=13 => 10,
        14..=20 | 44..=46 => 100,
        21..=30 | 47..=53 | 56 | 79..=83 => 1_000,
        31..=41 | 54 | 55 | 57 | 58 | 65..=69 | 86 | 87 => 10_000,
        70..=74 | 95..=97 => 40_000,
        75..=78 | 98..=102 => 100_000,
        88..=94 => 25_000,
        103 | 109 | 110 => 2_500,
        104 => 5_000,
        _ => return None,
    };
    Some(BitRate(mbit * 1_000_000))
}

/// Two flags in the lowest bits: it can, and it does.
const fn pair(bits: u8) -> [bool; 2] {
    [bits & 1 == 1, bits & 2 == 2]
}

fn capabilities(bits: u16) -> Vec<String> {
    CAPABILITIES.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, name)| (*name).to_owned()).collect()
}

/// Chassis ID: 4 is a MAC address, 5 a network address, the others are names (table 8-2).
fn chassis(value: &[u8]) -> Option<String> {
    let (subtype, id) = value.split_first()?;
    match subtype {
        4 => hex(id),
        5 => address(id),
        _ => name(id),
    }
}

/// Port ID: 3 is a MAC address, 4 a network address, the others are names (table 8-3).
fn port(value: &[u8]) -> Option<String> {
    let (subtype, id) = value.split_first()?;
    match subtype {
        3 => hex(id),
        4 => address(id),
        _ => name(id),
    }
}

/// A network address behind the number of its family: 1 is IPv4, 2 is IPv6 (IANA address family numbers).
fn address(id: &[u8]) -> Option<String> {
    let text = match id.split_first() {
        Some((1, v4)) => <[u8; 4]>::try_from(v4).ok().map(|bytes| Ipv4Addr::from(bytes).to_string()),
        Some((2, v6)) => <[u8; 16]>::try_from(v6).ok().map(|bytes| Ipv6Addr::from(bytes).to_string()),
        _ => None,
    };
    text.or_else(|| hex(id))
}

/// Bytes as a MAC address is written.
pub(super) fn hex(bytes: &[u8]) -> Option<String> {
    let bytes = bytes.get(..bytes.len().min(TEXT))?;
    let text = bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":");
    (!text.is_empty()).then_some(text)
}

/// A name, or its bytes where it is no text: some devices put a binary address there.
pub(super) fn name(id: &[u8]) -> Option<String> {
    let printable = std::str::from_utf8(trim(id)).is_ok_and(|text| !text.chars().any(char::is_control));
    if printable { text(id) } else { hex(id) }
}

/// Some devices send the zero byte at the end of their strings too.
fn trim(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes.get(..end).unwrap_or_default().trim_ascii()
}

pub(super) fn text(bytes: &[u8]) -> Option<String> {
    let bytes = bytes.get(..bytes.len().min(TEXT))?;
    let text = String::from_utf8_lossy(trim(bytes)).into_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::Mtu;

    /// The bytes of a frame in a file of hexadecimal numbers; lines that begin with `#` tell where it is from.
    fn bytes(text: &str) -> Vec<u8> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.flat_map(str::split_whitespace).map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
    }

    macro_rules! frame {
        ($name:literal) => {
            bytes(include_str!(concat!("../../tests/fixtures/link/lldp/", $name, ".hex")))
        };
    }

    fn frames() -> [Vec<u8>; 9] {
        [
            frame!("dlink"),
            frame!("extreme"),
            frame!("h3c"),
            frame!("jumbo_lag"),
            frame!("juniper"),
            frame!("linux_old_lldpd"),
            frame!("netgear"),
            frame!("shutdown"),
            frame!("ubiquiti"),
        ]
    }

    fn heard(frame: &[u8]) -> Neighbour {
        decode(frame, "eth0").unwrap()
    }

    #[test]
    fn devices_of_several_makers_name_themselves_and_their_port() {
        for (frame, chassis, port, port_description, system) in [
            (frame!("dlink"), "00:1c:f0:21:60:80", "22", None, None),
            (frame!("extreme"), "00:01:30:f9:ad:a0", "1/1", Some("Summit300-48-Port 1001"), Some("Summit300-48")),
            (
                frame!("h3c"),
                "5c:dd:70:e7:e8:51",
                "GigabitEthernet0/0",
                Some("GigabitEthernet0/0 Interface"),
                Some("SZ-ZHIHANF-CT"),
            ),
            (frame!("jumbo_lag"), "192.0.2.1", "lag member 3", None, Some("Büro")),
            (frame!("juniper"), "84:18:88:d6:39:48", "526", Some("xe-0/0/38.0"), None),
            (frame!("linux_old_lldpd"), "08:00:27:09:61:e9", "08:00:27:09:61:e9", Some("eth4"), Some("Ubuntu-Devstack")),
            (frame!("netgear"), "2c:b0:5d:a1:ac:fd", "g1", None, None),
            (frame!("ubiquiti"), "fc:ec:da:2e:3d:a5", "Port 7", Some("DESKTOP"), Some("switch-upstairs")),
        ] {
            let told = heard(&frame);
            assert_eq!((told.interface.as_str(), told.source), ("eth0", Some(Source::Measured)));
            assert_eq!(told.chassis.as_deref(), Some(chassis));
            assert_eq!(told.port.as_deref(), Some(port), "{chassis}");
            assert_eq!(told.port_description.as_deref(), port_description, "{chassis}");
            assert_eq!(told.system.as_deref(), system, "{chassis}");
        }
    }

    #[test]
    fn devices_tell_what_they_are_and_how_long_their_word_holds() {
        let juniper = "Juniper Networks, Inc. qfx3500s , version 12.3X50.1 Build date: 2013-03-05 00:32:06 UTC";
        let h3c = "H3C Comware Platform Software, Software Version 7.1.064, Release 0615P13\r\nH3C MSR3600\r\n\
                   Copyright (c) 2004-2018 New H3C Technologies Co., Ltd. All rights reserved.";
        let extreme = "Summit300-48 - Version 7.4e.1 (Build 5) by Release_Master 05/27/05 04:53:11";
        let linux = "Ubuntu 11.10\n Linux 3.0.0-14-generic x86_64";
        for (frame, description, ttl, capable) in [
            (frame!("dlink"), Some("Gigabit Ethernet Switch"), 120, &["repeater", "bridge"][..]),
            (frame!("extreme"), Some(extreme), 120, &["bridge", "router"]),
            (frame!("h3c"), Some(h3c), 121, &["bridge", "router", "customer bridge"]),
            (frame!("jumbo_lag"), None, 3601, &[]),
            (frame!("juniper"), Some(juniper), 40, &["bridge", "router"]),
            (frame!("linux_old_lldpd"), Some(linux), 120, &["bridge", "router"]),
            (frame!("netgear"), None, 120, &[]),
            (frame!("shutdown"), None, 0, &[]),
            (frame!("ubiquiti"), Some("US-8-60W, 7.1.26.15869, Linux 3.6.5"), 120, &["bridge"]),
        ] {
            let told = heard(&frame);
            assert_eq!(told.system_description.as_deref(), description);
            assert_eq!(told.ttl_s, Some(ttl), "{description:?}");
            assert_eq!(told.capabilities, capable, "{description:?}");
        }
    }

    #[test]
    fn ports_tell_their_largest_frame_vlan_aggregation_and_negotiation() {
        let full = Some(Duplex::Full);
        for (name, frame, largest, vlan, aggregation, autoneg, duplex) in [
            ("no organisational fields", frame!("dlink"), None, None, None, None, None),
            ("tagged frames", frame!("extreme"), Some(1522), Some(488), Some([true, false]), Some([true, true]), full),
            ("a little more", frame!("h3c"), Some(1536), None, Some([true, false]), Some([true, true]), full),
            ("jumbo frames, the field of 802.1", frame!("jumbo_lag"), Some(9216), Some(10), Some([true, true]), None, None),
            ("without check sum", frame!("juniper"), Some(1514), None, Some([true, false]), Some([true, false]), None),
            ("the MTU", frame!("linux_old_lldpd"), Some(1500), None, Some([true, false]), Some([true, true]), full),
            ("negotiation only", frame!("ubiquiti"), None, None, None, Some([true, true]), None),
        ] {
            let told = heard(&frame);
            assert_eq!(told.max_frame_bytes, largest, "{name}");
            assert_eq!(told.port_vlan, vlan, "{name}");
            assert_eq!(told.aggregation, aggregation, "{name}");
            assert_eq!(told.autoneg, autoneg, "{name}");
            assert_eq!(told.duplex, duplex, "{name}");
        }
    }

    #[test]
    fn a_largest_frame_answers_for_an_mtu_only_where_it_is_plain() {
        for (frame, mtu, takes) in [
            (Some(1522), 9000, Some(false)),
            (Some(1500), 9000, Some(false)),
            (Some(9216), 9000, Some(true)),
            (Some(9018), 9000, Some(true)),
            // It may be a frame of an MTU of 8982, or the MTU.
            (Some(9000), 9000, None),
            (Some(1514), 1500, None),
            (Some(1518), 1500, Some(true)),
            (None, 9000, None),
        ] {
            let told = Neighbour { max_frame_bytes: frame, ..Neighbour::default() };
            assert_eq!(told.takes(Mtu(mtu)), takes, "{frame:?} for {mtu}");
        }
    }

    /// A frame with a header for the nearest bridge and these fields.
    fn built(fields: &[(u8, &[u8])]) -> Vec<u8> {
        let mut frame = GROUPS[0].to_vec();
        frame.extend([2, 0, 0, 0, 0, 1, 0x88, 0xcc]);
        for (kind, value) in fields {
            frame.extend((u16::from(*kind) << 9 | value.len() as u16).to_be_bytes());
            frame.extend(*value);
        }
        frame
    }

    #[test]
    fn identities_are_written_by_their_kind() {
        let v6 = [&[5, 2, 0x20, 1, 0x0d, 0xb8][..], &[0; 11], &[7]].concat();
        let cases: [(&str, &[u8], Option<&str>); 9] = [
            ("a component", b"\x01chassis 1", Some("chassis 1")),
            ("a MAC address", &[4, 0, 1, 2, 0xaa, 0xbb, 0xcc], Some("00:01:02:aa:bb:cc")),
            ("a MAC address that is cut", &[4, 0, 1], Some("00:01")),
            ("an IPv4 address", &[5, 1, 192, 0, 2, 7], Some("192.0.2.7")),
            ("an IPv6 address", &v6, Some("2001:db8::7")),
            ("an address of another family", &[5, 16, 1, 2], Some("10:01:02")),
            ("a local name that is binary", &[7, 0x00, 0x1b, 0xff], Some("00:1b:ff")),
            ("a local name with a zero byte behind", b"\x07sw1\0", Some("sw1")),
            ("a name of nothing", &[7, 0], None),
        ];
        for (name, id, expected) in cases {
            assert_eq!(heard(&built(&[(1, id)])).chassis.as_deref(), expected, "{name}");
        }
        assert_eq!(heard(&built(&[(1, b"\x07x"), (2, &[4, 1, 192, 0, 2, 7])])).port.as_deref(), Some("192.0.2.7"));
    }

    #[test]
    fn texts_are_bounded_and_need_not_be_text() {
        let told = heard(&built(&[(1, b"\x07x"), (5, &[b'a'; 511]), (6, b"\xffok\r\n"), (5, b"again")]));
        assert_eq!(told.system.unwrap().len(), TEXT);
        assert_eq!(told.system_description.as_deref(), Some("\u{fffd}ok"));
    }

    #[test]
    fn a_kind_of_port_names_its_speed() {
        for (mau, mbit) in [
            (0, None),
            (10, Some(10)),
            (15, Some(100)),
            (16, Some(100)),
            (26, Some(1_000)),
            (30, Some(1_000)),
            (34, Some(10_000)),
            (43, None),
            (54, Some(10_000)),
            (59, None),
            (103, Some(2_500)),
            (104, Some(5_000)),
            (9_999, None),
        ] {
            let [high, low] = u16::to_be_bytes(mau);
            let told = heard(&built(&[(1, b"\x07x"), (127, &[0, 0x12, 0x0f, 1, 3, 0, 0, high, low])]));
            assert_eq!(told.speed_bps, mbit.map(|mbit: u64| BitRate(mbit * 1_000_000)), "{mau}");
        }
        // Frames of real devices: 1000BASE-T, full duplex, of the second.
        assert_eq!(heard(&frame!("h3c")).speed_bps, Some(BitRate(1_000_000_000)));
        assert_eq!(heard(&frame!("dlink")).speed_bps, None);
    }

    #[test]
    fn what_is_no_lldp_frame_is_nothing() {
        let good = frame!("extreme");
        let with = |at: usize, byte: u8| {
            let mut frame = good.clone();
            frame[at] = byte;
            frame
        };
        for (name, frame) in [
            ("empty", Vec::new()),
            ("a header without anything", good[..14].to_vec()),
            ("to a host", with(0, 0)),
            ("to the group of LACP", with(5, 2)),
            ("another EtherType", with(13, 0xcd)),
            ("no chassis at the beginning", built(&[(2, b"\x071"), (1, b"\x07x")])),
            ("a chassis of nothing", built(&[(1, &[4])])),
            ("three tags", [&GROUPS[0][..], &[0; 6], &[0x81, 0, 0, 1].repeat(3), &good[12..]].concat()),
        ] {
            assert_eq!(decode(&frame, "eth0"), None, "{name}");
        }
        let doubly_tagged = [&good[..12], &[0x88, 0xa8, 0, 1, 0x81, 0, 0, 1], &good[12..]].concat();
        assert_eq!(decode(&doubly_tagged, "eth0"), decode(&good, "eth0"));
    }

    #[test]
    fn what_is_whole_before_a_damage_is_kept() {
        let whole = built(&[(1, b"\x07x"), (2, b"\x075"), (127, &[0, 0x12, 0x0f, 4, 5, 0xee])]);
        let told = heard(&whole);
        assert_eq!((told.port.as_deref(), told.max_frame_bytes), (Some("5"), Some(1518)), "the end mark may be missing");
        let cut = heard(&whole[..whole.len() - 1]);
        assert_eq!((cut.port.as_deref(), cut.max_frame_bytes), (Some("5"), None));
        let short = heard(&built(&[(1, b"\x07x"), (3, &[1]), (127, &[0, 0x12]), (127, &[0, 0x12, 0x0f, 4, 5]), (4, b"p")]));
        assert_eq!((short.ttl_s, short.max_frame_bytes, short.port_description.as_deref()), (None, None, Some("p")));
        let ended = heard(&built(&[(1, b"\x07x"), (0, b""), (5, b"behind the end")]));
        assert_eq!(ended.system, None);
    }

    proptest! {
        #[test]
        fn random_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..2048)) {
            let _ = decode(&bytes, "eth0");
            // The same behind a good beginning, so that the fields are reached.
            let frame = [built(&[(1, b"\x07x")]), bytes].concat();
            prop_assert!(decode(&frame, "eth0").is_some());
        }

        #[test]
        fn a_real_frame_with_some_bytes_changed_or_missing_is_taken(
            which in 0_usize..9,
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
            keep in any::<prop::sample::Index>(),
        ) {
            let mut frame = frames()[which].clone();
            for (at, byte) in changes {
                let at = at.index(frame.len());
                frame[at] = byte;
            }
            frame.truncate(keep.index(frame.len()) + 1);
            if let Some(told) = decode(&frame, "eth0") {
                for text in [told.chassis, told.port, told.port_description, told.system, told.system_description] {
                    // A byte becomes three at most: as hexadecimal number, or as the mark for what is no text.
                    prop_assert!(text.is_none_or(|text| !text.is_empty() && text.len() <= 3 * TEXT));
                }
            }
        }
    }
}
