//! Generic netlink's family "ethtool" (linux/ethtool_netlink.h, kernel 5.6): the questions, and pure decoders of the replies.
//!
//! A kernel or a driver that does not know a value leaves its attribute out; an attribute that is unknown or cut is passed over.

use super::modes::{Mask, Masks, bit};
use crate::link::ethtool::{Settings, duplex, half, mdi, port, speed, word};
use crate::model::nic::{Channels, Coalescing, Eee, Fec, Mdi, Pause, PortKind, Rings};

/// `struct nlmsghdr` and `struct genlmsghdr`.
const HEAD: usize = 20;
/// `NLM_F_REQUEST`.
const REQUEST: u16 = 1;
/// `GENL_ID_CTRL`: the family that names the others.
const CONTROLLER: u16 = 16;
/// `CTRL_CMD_GETFAMILY`.
const GET_FAMILY: u8 = 3;
/// `CTRL_ATTR_FAMILY_ID`, `CTRL_ATTR_FAMILY_NAME`.
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// `NLA_F_NESTED`; this bit and the next one (`NLA_F_NET_BYTEORDER`) are no part of the type.
const NESTED: u16 = 0x8000;
const TYPE: u16 = 0x3fff;
/// `ETHTOOL_A_HEADER_DEV_NAME`, `ETHTOOL_A_HEADER_FLAGS`; the header is attribute 1 of every request.
const DEVICE: u16 = 2;
const FLAGS: u16 = 3;
/// `ETHTOOL_FLAG_COMPACT_BITSETS`: sets of bits as words and not bit by bit with names.
const COMPACT: u32 = 1;

/// What can be asked of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Question {
    /// Connector and crossing.
    Info,
    /// Modes, speed, duplex, autoneg.
    Modes,
    /// Whether there is a link, and why not.
    State,
    /// Rings.
    Rings,
    /// Queues.
    Channels,
    /// Interrupt coalescing.
    Coalescing,
    /// Flow control.
    Pause,
    /// Energy-Efficient Ethernet.
    Eee,
    /// Forward error correction (kernel 5.13).
    Fec,
    /// 128 bytes of a module's memory from this place on (kernel 5.13).
    Module(u32),
    /// The table of the hash of incoming flows (kernel 6.2).
    Hash,
}

impl Question {
    /// `ETHTOOL_MSG_*_GET`.
    const fn command(self) -> u8 {
        match self {
            Self::Info => 2,
            Self::Modes => 4,
            Self::State => 6,
            Self::Rings => 15,
            Self::Channels => 17,
            Self::Coalescing => 19,
            Self::Pause => 21,
            Self::Eee => 23,
            Self::Fec => 29,
            Self::Module(_) => 31,
            Self::Hash => 38,
        }
    }
}

/// One attribute: length, type, value, and zeros up to a multiple of four.
pub(super) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn message(family: u16, command: u8, body: &[u8]) -> Vec<u8> {
    let length = (HEAD + body.len()) as u32;
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(family.to_ne_bytes());
    bytes.extend(REQUEST.to_ne_bytes());
    // Sequence number, port, then the command, the family's version 1 and two bytes that are reserved.
    bytes.extend(1u32.to_ne_bytes());
    bytes.extend([0, 0, 0, 0, command, 1, 0, 0]);
    bytes.extend(body);
    bytes
}

fn text(value: &str) -> Vec<u8> {
    [value.as_bytes(), &[0]].concat()
}

/// The request for the number of the family "ethtool".
pub(super) fn family_request() -> Vec<u8> {
    message(CONTROLLER, GET_FAMILY, &attribute(FAMILY_NAME, &text("ethtool")))
}

/// The request for one thing of the interface `name`.
pub(super) fn request(family: u16, question: Question, name: &str) -> Vec<u8> {
    let header = [attribute(DEVICE, &text(name)), attribute(FLAGS, &COMPACT.to_ne_bytes())].concat();
    let mut body = attribute(1 | NESTED, &header);
    if let Question::Module(offset) = question {
        // Offset, length, page, and the module's address on its own bus (A0h of SFF-8472 with the last bit off).
        body.extend(attribute(2, &offset.to_ne_bytes()));
        body.extend(attribute(3, &128u32.to_ne_bytes()));
        body.extend(attribute(4, &[0]));
        body.extend(attribute(6, &[0x50]));
    }
    message(family, question.command(), &body)
}

/// The attributes of a message or of a nest, up to the first that is cut.
#[derive(Clone)]
pub(super) struct Attributes<'a>(&'a [u8]);

impl<'a> Attributes<'a> {
    /// The attributes inside a nest.
    #[cfg(all(test, target_os = "linux", not(feature = "portable")))]
    pub(super) const fn of_nest(nest: &'a [u8]) -> Self {
        Self(nest)
    }

    /// The attributes behind both headers of a message.
    pub(super) fn of_message(message: &'a [u8]) -> Self {
        Self(message.get(HEAD..).unwrap_or_default())
    }

    fn get(&self, kind: u16) -> Option<&'a [u8]> {
        self.clone().find(|(found, _)| *found == kind).map(|(_, value)| value)
    }

    fn byte(&self, kind: u16) -> Option<u8> {
        self.get(kind)?.first().copied()
    }

    fn flag(&self, kind: u16) -> Option<bool> {
        self.byte(kind).map(|byte| byte != 0)
    }

    fn word(&self, kind: u16) -> Option<u32> {
        word(self.get(kind)?, 0)
    }

    /// A set of bits and its mask; without a mask, both are the set.
    fn bits(&self, kind: u16) -> Option<(Mask, Mask)> {
        let set = Self(self.get(kind)?);
        let words = |value: &[u8]| Mask::new(value.as_chunks().0.iter().map(|b| u32::from_ne_bytes(*b)).collect());
        if let Some(value) = set.get(4) {
            let value = words(value);
            let mask = set.get(5).map_or_else(|| value.clone(), words);
            return Some((value, mask));
        }
        // Bit by bit, as kernels answer that do not know the compact form: index, name, and a flag for its value.
        let (mut value, mut mask) = (Mask::default(), Mask::default());
        let no_mask = set.get(1).is_some();
        for (_, inner) in Self(set.get(3)?).filter(|(kind, _)| *kind == 1) {
            let inner = Self(inner);
            let Some(index) = inner.word(1) else { continue };
            mask.add(index as usize);
            if no_mask || inner.get(3).is_some() {
                value.add(index as usize);
            }
        }
        Some((value, mask))
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let length = usize::from(half(self.0, 0)?);
        let kind = half(self.0, 2)? & TYPE;
        let value = self.0.get(4..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    }
}

/// The number of the family, from the controller's reply.
pub(super) fn family(message: &[u8]) -> Option<u16> {
    half(Attributes::of_message(message).get(FAMILY_ID)?, 0)
}

/// The reply to [`Question::Modes`]; none when it holds nothing of a link.
pub(super) fn modes(message: &[u8]) -> Option<Settings> {
    let found = Attributes::of_message(message);
    let (advertised, supported) = found.bits(3).unwrap_or_default();
    let masks = Masks { supported, advertised, partner: found.bits(4).unwrap_or_default().0 };
    Some(Settings {
        autoneg: found.byte(2)? == 1,
        speed: found.word(5).and_then(speed),
        duplex: found.byte(6).and_then(duplex),
        modes: masks.speeds(),
        masks,
        ..Settings::default()
    })
}

/// The reply to [`Question::Info`]: connector and crossing.
pub(super) fn info(message: &[u8]) -> (Option<PortKind>, Option<Mdi>) {
    let found = Attributes::of_message(message);
    (found.byte(2).and_then(port), found.byte(4).and_then(mdi))
}

/// The reply to [`Question::State`]: whether there is a link, and why not in the kernel's words.
pub(super) fn state(message: &[u8]) -> (Option<bool>, Option<String>) {
    let found = Attributes::of_message(message);
    let because = found.byte(5).map(|state| because(state, found.byte(6)));
    (found.flag(2), because)
}

/// `ETHTOOL_LINK_EXT_STATE_*`, by number; the last two since 7.0.
const STATES: [&str; 13] = [
    "autoneg",
    "link training failure",
    "link logical mismatch",
    "bad signal integrity",
    "no cable",
    "cable issue",
    "EEPROM issue",
    "calibration failure",
    "power budget exceeded",
    "overheat",
    "module",
    "speed not permitted by the card's one-time settings",
    "taken down by the management controller",
];

/// `ETHTOOL_LINK_EXT_SUBSTATE_*`: state, number (from 1), words.
const SUBSTATES: [(u8, &[&str]); 6] = [
    (
        0,
        &[
            "no partner detected",
            "ack not received",
            "next page exchange failed",
            "no partner detected during force mode",
            "FEC mismatch during override",
            "no common mode",
        ],
    ),
    (
        1,
        &[
            "frame lock not acquired",
            "link inhibit timeout",
            "the partner did not set receiver ready",
            "remote side is not ready yet",
        ],
    ),
    (
        2,
        &[
            "PCS did not acquire block lock",
            "PCS did not acquire alignment markers",
            "PCS did not get align status",
            "FC FEC is not locked",
            "RS FEC is not locked",
        ],
    ),
    (3, &["large number of physical errors", "unsupported rate", "serdes reference clock lost", "serdes loss of signal"]),
    (5, &["unsupported cable", "cable test failure"]),
    (10, &["CMIS module is not ready"]),
];

fn because(state: u8, detail: Option<u8>) -> String {
    let word = STATES.get(usize::from(state)).map_or_else(|| format!("state {state}"), |word| (*word).to_owned());
    let words = SUBSTATES.iter().find(|(of, _)| *of == state).map(|(_, words)| *words);
    match detail.filter(|detail| *detail > 0) {
        Some(detail) => match words.and_then(|words| words.get(usize::from(detail) - 1)) {
            Some(detail) => format!("{word}: {detail}"),
            None => format!("{word}: detail {detail}"),
        },
        None => word,
    }
}

/// The reply to [`Question::Rings`]; sizes that the driver does not have are zero.
pub(super) fn rings(message: &[u8]) -> Option<Rings> {
    let found = Attributes::of_message(message);
    let word = |kind| found.word(kind).unwrap_or(0);
    let rings = Rings { rx: word(6), rx_max: word(2), tx: word(9), tx_max: word(5) };
    (rings != Rings::default()).then_some(rings)
}

/// The reply to [`Question::Channels`]; kinds that the driver does not have are zero.
pub(super) fn channels(message: &[u8]) -> Option<Channels> {
    let found = Attributes::of_message(message);
    let word = |kind| found.word(kind).unwrap_or(0);
    let channels =
        Channels { rx_max: word(2), tx_max: word(3), combined_max: word(5), rx: word(6), tx: word(7), combined: word(9) };
    (channels != Channels::default()).then_some(channels)
}

/// The reply to [`Question::Coalescing`]; none when the driver has nothing of it.
pub(super) fn coalescing(message: &[u8]) -> Option<Coalescing> {
    let found = Attributes::of_message(message);
    let coalescing = Coalescing {
        rx_us: found.word(2),
        rx_frames: found.word(3),
        tx_us: found.word(6),
        tx_frames: found.word(7),
        adaptive_rx: found.flag(11),
        adaptive_tx: found.flag(12),
    };
    (coalescing != Coalescing::default()).then_some(coalescing)
}

/// The reply to [`Question::Pause`]: what is set.
pub(super) fn pause(message: &[u8]) -> Option<Pause> {
    let found = Attributes::of_message(message);
    Some(Pause { autoneg: found.flag(2)?, rx: found.flag(3)?, tx: found.flag(4)?, ..Pause::default() })
}

/// The reply to [`Question::Eee`].
pub(super) fn eee(message: &[u8]) -> Option<Eee> {
    let found = Attributes::of_message(message);
    Some(Eee {
        active: found.flag(4)?,
        enabled: found.flag(5)?,
        tx_timer_us: found.word(7).filter(|_| found.flag(6) == Some(true)),
    })
}

/// FEC modes among the link modes, in ethtool's words.
const FEC: [(usize, &str); 4] = [(bit::FEC_NONE, "off"), (bit::FEC_RS, "rs"), (bit::FEC_BASER, "baser"), (bit::FEC_LLRS, "llrs")];

/// The reply to [`Question::Fec`]; none when it holds neither modes nor auto, so that FEC is not configurable.
pub(super) fn fec(message: &[u8]) -> Option<Fec> {
    let found = Attributes::of_message(message);
    let set = found.bits(2).unwrap_or_default().0;
    let auto = (found.flag(3) == Some(true)).then(|| "auto".to_owned());
    let named = FEC.iter().filter(|(bit, _)| set.has(*bit)).map(|(_, word)| (*word).to_owned());
    let active = found.word(4).and_then(|active| FEC.iter().find(|(bit, _)| *bit == active as usize));
    let fec = Fec { configured: auto.into_iter().chain(named).collect(), active: active.map(|(_, word)| (*word).to_owned()) };
    (fec != Fec::default()).then_some(fec)
}

/// The reply to [`Question::Module`]: the bytes.
pub(super) fn module(message: &[u8]) -> Option<&[u8]> {
    Attributes::of_message(message).get(7)
}

/// The reply to [`Question::Hash`]: the queue of each place of the table; none when there is no table.
pub(super) fn hash(message: &[u8]) -> Option<Vec<u32>> {
    let table = Attributes::of_message(message).get(4)?;
    Some(table.as_chunks().0.iter().map(|b| u32::from_ne_bytes(*b)).collect())
}
