//! Pure decoder of CDP frames (Cisco Discovery Protocol, versions 1 and 2), which switches of Cisco send where LLDP is off.

use super::lldp::{behind_tags, half, name, set, text};
use crate::model::link::{Duplex, Neighbour};
use crate::model::outcome::Source;
use crate::units::Mtu;

/// `ETH_P_802_2` of linux/if_ether.h: the kernel's word for frames that have a length in place of an EtherType.
pub(super) const ETHER_TYPE: u16 = 0x0004;
/// Where CDP frames are sent to.
pub(super) const GROUP: [u8; 6] = [0x01, 0x00, 0x0c, 0xcc, 0xcc, 0xcc];

/// LLC with SNAP, Cisco's OUI, and CDP's number.
const SNAP: [u8; 8] = [0xaa, 0xaa, 0x03, 0x00, 0x00, 0x0c, 0x20, 0x00];
/// Lengths stand where an EtherType would be; those begin at 1536 (IEEE 802.3, 3.2.6).
const LONGEST: u16 = 1500;

/// Capabilities by bit: two kinds of bridges and the switch are one here, and to listen to IGMP is no kind of device.
const CAPABILITIES: [&str; 8] = ["router", "bridge", "bridge", "bridge", "station", "", "repeater", "telephone"];

/// What one Ethernet frame, from its destination address on, says of the device that sent it.
///
/// None unless it is a CDP frame that names its device or port. What comes before a damaged field is kept.
pub fn decode(frame: &[u8], interface: &str) -> Option<Neighbour> {
    let (length, payload) = behind_tags(frame)?;
    (frame.starts_with(&GROUP) && length <= LONGEST).then_some(())?;
    // What is behind the length is padding.
    let payload = payload.get(..payload.len().min(length.into()))?.strip_prefix(&SNAP)?;
    let [_version, ttl, _, _, fields @ ..] = payload else { return None };
    let mut told = Neighbour {
        interface: interface.to_owned(),
        ttl_s: Some((*ttl).into()),
        source: Some(Source::Measured),
        ..Neighbour::default()
    };
    let (mut platform, mut rest) = (None, fields);
    while let Some((kind, value, behind)) = field(rest) {
        take(&mut told, &mut platform, kind, value);
        rest = behind;
    }
    told.system = told.system.or_else(|| told.chassis.clone());
    if let Some(platform) = platform {
        let version = told.system_description.map(|version| format!("; {version}")).unwrap_or_default();
        told.system_description = text(format!("{platform}{version}").as_bytes());
    }
    (told.chassis.is_some() || told.port.is_some()).then_some(told)
}

/// The next field: its type, its value, and what is behind it. Its length counts type and length too.
fn field(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::from(half(bytes, 2)?);
    Some((half(bytes, 0)?, bytes.get(4..length)?, bytes.get(length..)?))
}

fn take(told: &mut Neighbour, platform: &mut Option<String>, kind: u16, value: &[u8]) {
    let word = || value.first_chunk().map(|b| u32::from_be_bytes(*b));
    match kind {
        0x01 => set(&mut told.chassis, name(value)),
        0x03 => set(&mut told.port, name(value)),
        0x04 if told.capabilities.is_empty() => {
            let bits = word().unwrap_or(0);
            let set = CAPABILITIES.iter().enumerate().filter(|(bit, name)| bits >> bit & 1 == 1 && !name.is_empty());
            told.capabilities = set.map(|(_, name)| (*name).to_owned()).collect();
            told.capabilities.dedup();
        }
        0x05 => set(&mut told.system_description, text(value)),
        0x06 => set(platform, text(value)),
        0x0a => set(&mut told.port_vlan, half(value, 0).filter(|vlan| *vlan != 0)),
        0x0b => set(&mut told.duplex, value.first().map(|full| if *full == 0 { Duplex::Half } else { Duplex::Full })),
        0x11 => set(&mut told.stated_mtu, word().filter(|mtu| *mtu != 0).map(Mtu)),
        0x14 => set(&mut told.system, text(value)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A frame with these fields and some padding, as short frames have.
    fn built(fields: &[(u16, &[u8])]) -> Vec<u8> {
        let mut payload = [&SNAP[..], &[2, 180, 0, 0]].concat();
        for (kind, value) in fields {
            payload.extend(kind.to_be_bytes());
            payload.extend((value.len() as u16 + 4).to_be_bytes());
            payload.extend(*value);
        }
        let mut frame = [&GROUP[..], &[2, 0, 0, 0, 0, 1], &(payload.len() as u16).to_be_bytes(), &payload].concat();
        frame.extend([0; 12]);
        frame
    }

    fn switch() -> Vec<u8> {
        built(&[
            (0x01, b"sw1.example.net"),
            (0x03, b"GigabitEthernet1/0/7"),
            (0x04, &[0, 0, 0, 0x28]),
            (0x05, b"Cisco IOS Software, C2960X Software"),
            (0x06, b"cisco WS-C2960X-48TS-L"),
            (0x0a, &[0, 20]),
            (0x0b, &[0]),
            (0x11, &[0, 0, 0x05, 0xdc]),
        ])
    }

    #[test]
    fn a_switch_tells_its_port_vlan_duplex_and_mtu() {
        let told = decode(&switch(), "eth0").unwrap();
        let expected = Neighbour {
            interface: "eth0".to_owned(),
            chassis: Some("sw1.example.net".to_owned()),
            system: Some("sw1.example.net".to_owned()),
            port: Some("GigabitEthernet1/0/7".to_owned()),
            system_description: Some("cisco WS-C2960X-48TS-L; Cisco IOS Software, C2960X Software".to_owned()),
            port_vlan: Some(20),
            duplex: Some(Duplex::Half),
            stated_mtu: Some(Mtu(1500)),
            capabilities: vec!["bridge".to_owned()],
            ttl_s: Some(180),
            source: Some(Source::Measured),
            ..Neighbour::default()
        };
        assert_eq!(told, expected);
        // What is stated of the MTU decides nothing: it may be 1500 where jumbo frames pass.
        assert_eq!(told.takes(Mtu(9000)), None);
    }

    #[test]
    fn what_is_no_cdp_frame_is_nothing_and_what_is_whole_is_kept() {
        let good = switch();
        let with = |at: usize, byte: u8| {
            let mut frame = good.clone();
            frame[at] = byte;
            frame
        };
        for (name, frame) in [
            ("empty", Vec::new()),
            ("to another group", with(5, 0xcd)),
            ("an EtherType", with(12, 8)),
            ("another number behind SNAP", with(21, 4)),
            ("no field", built(&[])),
            ("a field shorter than its header", with(29, 3)),
        ] {
            assert_eq!(decode(&frame, "eth0"), None, "{name}");
        }
        let cut = decode(&good[..60], "eth0").unwrap();
        assert_eq!((cut.chassis.as_deref(), cut.port), (Some("sw1.example.net"), None));
    }

    proptest! {
        #[test]
        fn random_bytes_and_changed_frames_are_taken(
            bytes in prop::collection::vec(any::<u8>(), 0..256),
            at in any::<prop::sample::Index>(),
        ) {
            let _ = decode(&bytes, "eth0");
            let mut frame = switch();
            let at = at.index(frame.len());
            for (place, byte) in frame[at..].iter_mut().zip(bytes) {
                *place = byte;
            }
            let _ = decode(&frame, "eth0");
        }
    }
}
