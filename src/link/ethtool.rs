//! Pure decoders of the ethtool structures (linux/ethtool.h).

use std::collections::BTreeMap;

use crate::model::link::{Duplex, LinkModes};
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
}

/// Speed in Mbit/s of each `ETHTOOL_LINK_MODE_*_BIT`, as runs of bits: first, last, speed. Bits that are
/// no mode (autoneg, port types, pause, FEC) are in no run, nor are modes of 1.6 Tbit/s.
const MODES: [(usize, usize, u64); 34] = [
    (0, 1, 10),
    (2, 3, 100),
    (4, 5, 1_000),
    (12, 12, 10_000),
    (15, 15, 2_500),
    (17, 17, 1_000),
    (18, 20, 10_000),
    (21, 22, 20_000),
    (23, 26, 40_000),
    (27, 30, 56_000),
    (31, 33, 25_000),
    (34, 35, 50_000),
    (36, 39, 100_000),
    (40, 40, 50_000),
    (41, 41, 1_000),
    (42, 46, 10_000),
    (47, 47, 2_500),
    (48, 48, 5_000),
    (52, 56, 50_000),
    (57, 61, 100_000),
    (62, 66, 200_000),
    (67, 67, 100),
    (68, 68, 1_000),
    (69, 73, 400_000),
    (75, 79, 100_000),
    (80, 84, 200_000),
    (85, 89, 400_000),
    (90, 91, 100),
    (92, 92, 10),
    (93, 98, 800_000),
    (99, 102, 10),
    (103, 108, 200_000),
    (109, 114, 400_000),
    (115, 120, 800_000),
];

fn word(data: &[u8], at: usize) -> Option<u32> {
    data.get(at..)?.first_chunk().map(|b| u32::from_ne_bytes(*b))
}

fn half(data: &[u8], at: usize) -> Option<u16> {
    data.get(at..)?.first_chunk().map(|b| u16::from_ne_bytes(*b))
}

/// A speed in Mbit/s as drivers state it. Unknown is -1 (`SPEED_UNKNOWN`), 65535 in the old 16-bit
/// field, or 0; and no link is faster than 2 Tbit/s, so anything above is a negative number in disguise.
pub(super) fn speed(mbit: u32) -> Option<BitRate> {
    (mbit != 0 && mbit != 0xffff && mbit <= 2_000_000).then(|| BitRate::from_mbit(mbit.into()))
}

/// `DUPLEX_HALF`, `DUPLEX_FULL`; 255 is unknown.
const fn duplex(byte: u8) -> Option<Duplex> {
    match byte {
        0 => Some(Duplex::Half),
        1 => Some(Duplex::Full),
        _ => None,
    }
}

/// The speeds in a mask of link modes, ascending and without doubles.
fn speeds(mask: &[u32]) -> Vec<BitRate> {
    let set = |bit: usize| mask.get(bit / 32).is_some_and(|word| word >> (bit % 32) & 1 == 1);
    let mut speeds: Vec<BitRate> =
        MODES.iter().filter(|(first, last, _)| (*first..=*last).any(set)).map(|(_, _, mbit)| BitRate::from_mbit(*mbit)).collect();
    speeds.sort_unstable();
    speeds.dedup();
    speeds
}

/// Decodes `struct ethtool_link_settings` with its masks; none when it is cut.
pub(super) fn link_settings(data: &[u8]) -> Option<Settings> {
    const HEAD: usize = 48;
    let words = usize::from(*data.get(15)?);
    let masks: Vec<u32> = data.get(HEAD..)?.as_chunks().0.iter().map(|b| u32::from_ne_bytes(*b)).collect();
    let mask = |n: usize| masks.get(n * words..(n + 1) * words).map(speeds);
    Some(Settings {
        speed: speed(word(data, 4)?),
        duplex: duplex(*data.get(8)?),
        autoneg: *data.get(11)? == 1,
        modes: LinkModes { supported_bps: mask(0)?, advertised_bps: mask(1)?, partner_bps: mask(2)? },
    })
}

/// Decodes `struct ethtool_cmd`; none when it is cut. Its masks have 32 bits: 2.5G and 5G cannot stand in them.
pub(super) fn old_settings(data: &[u8]) -> Option<Settings> {
    let (low, high) = (half(data, 12)?, half(data, 28)?);
    let mask = |at| word(data, at).map(|mask| speeds(&[mask]));
    Some(Settings {
        speed: speed(u32::from(high) << 16 | u32::from(low)),
        duplex: duplex(*data.get(14)?),
        autoneg: *data.get(18)? == 1,
        modes: LinkModes { supported_bps: mask(4)?, advertised_bps: mask(8)?, partner_bps: mask(32)? },
    })
}

/// A name in a field that is padded with zeros; none unless it is printable ASCII.
pub(super) fn name(field: &[u8]) -> Option<String> {
    let end = field.iter().position(|b| *b == 0).unwrap_or(field.len());
    let name = std::str::from_utf8(field.get(..end)?).ok()?.trim();
    (!name.is_empty() && name.bytes().all(|b| (b' '..=b'~').contains(&b))).then(|| name.to_owned())
}

/// The features that decide how much work a packet costs, by the kernel's names.
const FEATURES: [&str; 13] = [
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
