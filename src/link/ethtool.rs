//! Pure decoders of the ethtool structures (linux/ethtool.h).

use std::collections::BTreeMap;

use super::nic::{Mask, Masks};
use crate::model::link::{Duplex, LinkModes};
use crate::model::nic::{Mdi, PortKind};
use crate::units::BitRate;

/// What a port says about its link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    /// The speed in use, unless the driver states none.
    pub speed: Option<BitRate>,
    /// The duplex in use, unless unknown.
    pub duplex: Option<Duplex>,
    /// Whether it negotiates.
    pub autoneg: bool,
    /// Supported, advertised and partner's speeds.
    pub modes: LinkModes,
    /// Supported, advertised and partner's modes, as the kernel gives them.
    pub masks: Masks,
    /// The kind of connector, unless unknown.
    pub port: Option<PortKind>,
    /// Which way the pairs are crossed, unless unknown.
    pub mdi: Option<Mdi>,
    /// Told by the old command, in whose masks of 32 bits 2.5G and 5G cannot stand.
    pub narrow: bool,
}

impl Settings {
    /// Whether the driver tells nothing: fields that it does not fill stay zero, which reads as twisted pair and no autoneg.
    pub(super) fn says_nothing(&self) -> bool {
        *self == Self { port: self.port, mdi: self.mdi, narrow: self.narrow, ..Self::default() }
    }
}

pub(super) fn word(data: &[u8], at: usize) -> Option<u32> {
    data.get(at..)?.first_chunk().map(|b| u32::from_ne_bytes(*b))
}

pub(super) fn half(data: &[u8], at: usize) -> Option<u16> {
    data.get(at..)?.first_chunk().map(|b| u16::from_ne_bytes(*b))
}

/// A speed in Mbit/s as drivers state it. Unknown is -1 (`SPEED_UNKNOWN`), 65535 in the old 16-bit
/// field, or 0; and no link is faster than 2 Tbit/s, so anything above is a negative number in disguise.
pub(super) fn speed(mbit: u32) -> Option<BitRate> {
    (mbit != 0 && mbit != 0xffff && mbit <= 2_000_000).then(|| BitRate::from_mbit(mbit.into()))
}

/// `DUPLEX_HALF`, `DUPLEX_FULL`; 255 is unknown.
pub(super) const fn duplex(byte: u8) -> Option<Duplex> {
    match byte {
        0 => Some(Duplex::Half),
        1 => Some(Duplex::Full),
        _ => None,
    }
}

/// `PORT_TP` to `PORT_DA`, `PORT_NONE`, `PORT_OTHER`.
pub(super) const fn port(byte: u8) -> Option<PortKind> {
    match byte {
        0 => Some(PortKind::TwistedPair),
        1 | 4 => Some(PortKind::Coaxial),
        2 => Some(PortKind::Mii),
        3 => Some(PortKind::Fibre),
        5 => Some(PortKind::DirectAttach),
        0xef => Some(PortKind::None),
        0xff => Some(PortKind::Other),
        _ => None,
    }
}

/// `ETH_TP_MDI`, `ETH_TP_MDI_X`; 0 is unknown, 3 stands in requests only.
pub(super) const fn mdi(byte: u8) -> Option<Mdi> {
    match byte {
        1 => Some(Mdi::Straight),
        2 => Some(Mdi::Crossed),
        _ => None,
    }
}

/// Decodes `struct ethtool_link_settings` with its masks; none when it is cut.
pub(super) fn link_settings(data: &[u8]) -> Option<Settings> {
    const HEAD: usize = 48;
    let words = usize::from(*data.get(15)?);
    let all: Vec<u32> = data.get(HEAD..)?.as_chunks().0.iter().map(|b| u32::from_ne_bytes(*b)).collect();
    let mask = |n: usize| all.get(n * words..(n + 1) * words).map(|words| Mask::new(words.to_vec()));
    let masks = Masks { supported: mask(0)?, advertised: mask(1)?, partner: mask(2)? };
    Some(Settings {
        speed: speed(word(data, 4)?),
        duplex: duplex(*data.get(8)?),
        autoneg: *data.get(11)? == 1,
        modes: masks.speeds(),
        masks,
        port: port(*data.get(9)?),
        mdi: mdi(*data.get(13)?),
        narrow: false,
    })
}

/// Decodes `struct ethtool_cmd`; none when it is cut. Its masks have 32 bits: 2.5G and 5G cannot stand in them.
pub(super) fn old_settings(data: &[u8]) -> Option<Settings> {
    let (low, high) = (half(data, 12)?, half(data, 28)?);
    let mask = |at| word(data, at).map(|mask| Mask::new(vec![mask]));
    let masks = Masks { supported: mask(4)?, advertised: mask(8)?, partner: mask(32)? };
    Some(Settings {
        speed: speed(u32::from(high) << 16 | u32::from(low)),
        duplex: duplex(*data.get(14)?),
        autoneg: *data.get(18)? == 1,
        modes: masks.speeds(),
        masks,
        port: port(*data.get(15)?),
        mdi: mdi(*data.get(30)?),
        narrow: true,
    })
}

/// A name in a field that is padded with zeros; none unless it is printable ASCII.
pub(super) fn name(field: &[u8]) -> Option<String> {
    let end = field.iter().position(|b| *b == 0).unwrap_or(field.len());
    let name = std::str::from_utf8(field.get(..end)?).ok()?.trim();
    (!name.is_empty() && name.bytes().all(|b| (b' '..=b'~').contains(&b))).then(|| name.to_owned())
}

/// The features that decide how much work a packet costs, by the kernel's names.
const FEATURES: [&str; 14] = [
    "rx-checksum",
    "tx-checksum-ipv4",
    "tx-checksum-ipv6",
    "tx-checksum-ip-generic",
    "tx-scatter-gather",
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
    "tx-generic-segmentation",
    "tx-udp-segmentation",
    "rx-gro",
    "rx-gro-hw",
    "rx-lro",
    "rx-hashing",
    // Without it a VLAN's tag stands within the frame, where the bonding driver's hash does not look.
    "tx-vlan-hw-insert",
];

/// Decodes the answer of `ETHTOOL_GFEATURES`: of the features that matter, those that are on and those
/// that are off though they could be on.
pub(super) fn features(fields: &[[u8; 32]], blocks: &[[u32; 4]]) -> BTreeMap<String, bool> {
    const AVAILABLE: usize = 0;
    const ACTIVE: usize = 2;
    let mut found = BTreeMap::new();
    for (at, field) in fields.iter().enumerate() {
        let (Some(feature), Some(block)) = (name(field), blocks.get(at / 32)) else { continue };
        let bit = |part: usize| block[part] >> (at % 32) & 1 == 1;
        if FEATURES.contains(&feature.as_str()) && (bit(AVAILABLE) || bit(ACTIVE)) {
            found.insert(feature, bit(ACTIVE));
        }
    }
    found
}

/// The old commands of one feature each: command, the kernel's newer name, the bit of the answer, and
/// whether every kernel offers it (so that off is a choice and no lack).
pub(super) const OLD_FEATURES: [(u32, &str, u32, bool); 6] = [
    (0x14, "rx-checksum", 0, false),
    (0x16, "tx-checksum-ip-generic", 0, false),
    (0x1e, "tx-tcp-segmentation", 0, false),
    (0x23, "tx-generic-segmentation", 0, true),
    // ETH_FLAG_LRO
    (0x25, "rx-lro", 15, false),
    (0x2b, "rx-gro", 0, true),
];
