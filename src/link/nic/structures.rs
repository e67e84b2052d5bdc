//! Pure decoders of the structures that the ethtool ioctl fills (linux/ethtool.h), for kernels before 5.6.

use crate::link::ethtool::{name, word};
use crate::model::nic::{Channels, Coalescing, Eee, Fec, Pause, Rings};

/// `ETHTOOL_GDRVINFO`.
pub(super) const DRIVER: u32 = 0x03;
/// `ETHTOOL_GCOALESCE`.
pub(super) const COALESCING: u32 = 0x0e;
/// `ETHTOOL_GRINGPARAM`.
pub(super) const RINGS: u32 = 0x10;
/// `ETHTOOL_GPAUSEPARAM`.
pub(super) const PAUSE: u32 = 0x12;
/// `ETHTOOL_GRXRINGS`.
pub(super) const RX_RINGS: u32 = 0x2d;
/// `ETHTOOL_GCHANNELS` (kernel 3.0).
pub(super) const CHANNELS: u32 = 0x3c;
/// `ETHTOOL_GEEE` (kernel 3.6).
pub(super) const EEE: u32 = 0x44;
/// `ETHTOOL_GFECPARAM` (kernel 4.14).
pub(super) const FEC: u32 = 0x50;

/// `struct ethtool_ringparam`.
pub(super) fn rings(data: &[u8]) -> Option<Rings> {
    let rings = Rings { rx_max: word(data, 4)?, tx_max: word(data, 16)?, rx: word(data, 20)?, tx: word(data, 32)? };
    (rings != Rings::default()).then_some(rings)
}

/// `struct ethtool_channels`.
pub(super) fn channels(data: &[u8]) -> Option<Channels> {
    let channels = Channels {
        rx_max: word(data, 4)?,
        tx_max: word(data, 8)?,
        combined_max: word(data, 16)?,
        rx: word(data, 20)?,
        tx: word(data, 24)?,
        combined: word(data, 32)?,
    };
    (channels != Channels::default()).then_some(channels)
}

/// `struct ethtool_coalesce`; a driver cannot say here which of its zeros mean that it has no such thing.
pub(super) fn coalescing(data: &[u8]) -> Option<Coalescing> {
    Some(Coalescing {
        rx_us: word(data, 4),
        rx_frames: word(data, 8),
        tx_us: word(data, 20),
        tx_frames: word(data, 24),
        adaptive_rx: Some(word(data, 40)? != 0),
        adaptive_tx: Some(word(data, 44)? != 0),
    })
}

/// `struct ethtool_pauseparam`: what is set.
pub(super) fn pause(data: &[u8]) -> Option<Pause> {
    let flag = |at| word(data, at).map(|word| word != 0);
    Some(Pause { autoneg: flag(4)?, rx: flag(8)?, tx: flag(12)?, ..Pause::default() })
}

/// `struct ethtool_eee`.
pub(super) fn eee(data: &[u8]) -> Option<Eee> {
    let flag = |at| word(data, at).map(|word| word != 0);
    Some(Eee { active: flag(16)?, enabled: flag(20)?, tx_timer_us: word(data, 28).filter(|_| flag(24) == Some(true)) })
}

/// `ETHTOOL_FEC_AUTO` and so on, in ethtool's words; the lowest bit means that FEC cannot be set.
const FEC_WORDS: [(u32, &str); 5] = [(1, "auto"), (2, "off"), (3, "rs"), (4, "baser"), (5, "llrs")];

/// `struct ethtool_fecparam`.
pub(super) fn fec(data: &[u8]) -> Option<Fec> {
    let words = |mask: u32| FEC_WORDS.iter().filter(move |(bit, _)| mask >> bit & 1 == 1).map(|(_, word)| (*word).to_owned());
    let fec = Fec { configured: words(word(data, 8)?).collect(), active: words(word(data, 4)?).next() };
    (fec != Fec::default()).then_some(fec)
}

/// The number of receive rings in `struct ethtool_rxnfc`.
pub(super) fn rx_rings(data: &[u8]) -> Option<u32> {
    // The number stands in a 64-bit field; what does not fit is no number of rings.
    let data = data.get(8..)?.first_chunk().map(|b| u64::from_ne_bytes(*b))?;
    u32::try_from(data).ok()
}

/// What `struct ethtool_drvinfo` says beside the driver's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Driver {
    /// The driver's version.
    pub version: Option<String>,
    /// The firmware's version.
    pub firmware: Option<String>,
    /// The address on its bus.
    pub bus: Option<String>,
}

/// `struct ethtool_drvinfo`; words that stand for nothing are left out.
pub(super) fn driver(data: &[u8]) -> Driver {
    let field = |at: usize| {
        let word = name(data.get(at..at + 32)?)?;
        (!["N/A", "n/a", "NA", "unknown", "?", "-"].contains(&word.as_str())).then_some(word)
    };
    Driver { version: field(36), firmware: field(68), bus: field(100) }
}
