//! A plugged module's memory: SFP (SFF-8472, address A0h), QSFP (SFF-8636 and SFF-8436, lower page and page 00h), CMIS.
//!
//! Codes are those of SFF-8024. Everything is the maker's claim, and some makers write what a host wants to see.

use crate::link::ethtool::name;
use crate::model::nic::Module;
use crate::units::BitRate;

/// The connector with an RJ45 socket.
const RJ45: u8 = 0x22;
/// Bytes that identify an SFP.
const SFP: usize = 64;
/// Where page 00h of a QSFP begins.
const PAGE: usize = 128;

/// Decodes a module's first bytes: 64 for an SFP, 256 for the others; none when there are fewer, or when they are blank.
pub(super) fn decode(memory: &[u8]) -> Option<Module> {
    if memory.len() < SFP || memory.iter().all(|byte| *byte == memory[0]) {
        return None;
    }
    match memory.first()? {
        0x0c | 0x0d | 0x11 => qsfp(memory),
        0x18..=0x1f => cmis(memory),
        _ => sfp(memory),
    }
}

/// Whether a module's first byte says that 256 bytes are needed.
pub(super) fn is_long(first: u8) -> bool {
    matches!(first, 0x0c | 0x0d | 0x11 | 0x18..=0x1f)
}

/// SFF-8024, connector types, as far as such modules have them.
fn connector(code: u8) -> Option<String> {
    let word = match code {
        0x01 => "SC",
        0x06 => "FiberJack",
        0x07 => "LC",
        0x08 => "MT-RJ",
        0x09 => "MU",
        0x0a => "SG",
        0x0b => "optical pigtail",
        0x0c => "MPO 1x12",
        0x0d => "MPO 2x16",
        0x20 => "HSSDC II",
        0x21 => "copper pigtail",
        RJ45 => "RJ45",
        0x23 => "no separable connector",
        0x24 => "MXC 2x16",
        0x25 => "CS",
        0x27 => "MPO 2x12",
        0x28 => "MPO 1x16",
        _ => return None,
    };
    Some(word.to_owned())
}

/// SFF-8024, extended specification compliance codes: those of Ethernet at 2.5G to 100G.
fn extended(code: u8) -> Option<&'static str> {
    Some(match code {
        0x01 | 0x18 => "active optical cable 25G/100G",
        0x02 => "25GBASE-SR or 100GBASE-SR4",
        0x03 => "25GBASE-LR or 100GBASE-LR4",
        0x04 => "25GBASE-ER or 100GBASE-ER4",
        0x05 => "100GBASE-SR10",
        0x06 => "100G CWDM4",
        0x07 => "100G PSM4",
        0x08 | 0x19 => "active copper cable 25G/100G",
        0x0b => "25GBASE-CR CA-25G-L or 100GBASE-CR4",
        0x0c => "25GBASE-CR CA-25G-S",
        0x0d => "25GBASE-CR CA-25G-N",
        0x10 => "40GBASE-ER4",
        0x11 => "4 x 10GBASE-SR",
        0x12 => "40G PSM4",
        0x16 => "10GBASE-T",
        0x17 => "100G CLR4",
        0x1c => "10GBASE-T short reach (30 m)",
        0x1d => "5GBASE-T",
        0x1e => "2.5GBASE-T",
        0x1f => "40G SWDM4",
        0x20 => "100G SWDM4",
        0x25 => "100GBASE-DR",
        0x26 => "100GBASE-FR1",
        0x27 => "100GBASE-LR1",
        _ => return None,
    })
}

/// Whether an extended code is of a twisted-pair module.
const fn is_base_t(code: u8) -> bool {
    matches!(code, 0x16 | 0x1c | 0x1d | 0x1e)
}

/// What the part number of a copper module says where its codes do not: such modules often call themselves 10GBASE-SR, so
/// that every host takes them.
fn is_copper_part(part: &str) -> bool {
    let part = part.to_ascii_uppercase();
    ["10G-T", "10GB-T", "10GBASE-T", "10GBASET", "2.5G-T", "1000BASE-T", "RJ45", "RJ-45", "S+RJ10", "S-RJ01"]
        .iter()
        .any(|word| part.contains(word))
}

/// The words for the bits that are set, the lowest first.
fn words(byte: u8, all: [&str; 8]) -> impl Iterator<Item = String> {
    let set = (0..8).zip(all).filter(move |(bit, word)| byte >> bit & 1 == 1 && !word.is_empty());
    set.map(|(_, word)| word.to_owned())
}

/// A nominal rate in units of 100 Mbit/s; 255 refers to a finer field in units of 250 Mbit/s; 0 is not stated.
fn rate(coarse: u8, fine: u8) -> Option<BitRate> {
    let mbit = if coarse == 0xff { u64::from(fine) * 250 } else { u64::from(coarse) * 100 };
    (mbit > 0).then(|| BitRate::from_mbit(mbit))
}

fn text(memory: &[u8], at: usize) -> Option<String> {
    name(memory.get(at..at + 16)?)
}

/// The memory does not tell SFP, SFP+ and SFP28 apart; the rate does.
fn sfp_kind(identifier: u8, rate: Option<BitRate>, ten: bool) -> String {
    let word = match (identifier, rate) {
        (0x01, _) => "GBIC",
        (0x02, _) => "soldered module",
        (0x06, _) => "XFP",
        (0x0b, _) => "DWDM-SFP",
        (0x03, Some(rate)) if rate >= BitRate::from_mbit(20_000) => "SFP28",
        (0x03, Some(rate)) if rate >= BitRate::from_mbit(8_000) => "SFP+",
        (0x03, None) if ten => "SFP+",
        (0x03, _) => "SFP",
        _ => return format!("module of kind {identifier}"),
    };
    word.to_owned()
}

fn sfp(memory: &[u8]) -> Option<Module> {
    const PASSIVE: u8 = 1 << 2;
    const ACTIVE: u8 = 1 << 3;
    let at = |at: usize| memory.get(at).copied();
    let (plug, technology, code) = (at(2)?, at(8)?, at(36)?);
    let mut complies: Vec<String> =
        words(at(3)?, ["", "", "", "", "10GBASE-SR", "10GBASE-LR", "10GBASE-LRM", "10GBASE-ER"]).collect();
    complies.extend(words(
        at(6)?,
        ["1000BASE-SX", "1000BASE-LX", "1000BASE-CX", "1000BASE-T", "100BASE-LX", "100BASE-FX", "BASE-BX10", "BASE-PX"],
    ));
    complies.extend(words(technology & (PASSIVE | ACTIVE), ["", "", "passive copper cable", "active cable", "", "", "", ""]));
    complies.extend(extended(code).map(str::to_owned));
    let rate = rate(at(12)?, memory.get(66).copied().unwrap_or(0));
    let part = text(memory, 40);
    let cable = technology & (PASSIVE | ACTIVE) != 0 || matches!(plug, 0x0b | 0x21 | 0x23);
    let ten = at(3)? >> 4 != 0 || code == 0x16 || code == 0x1c;
    Some(Module {
        kind: sfp_kind(at(0)?, rate, ten),
        vendor: text(memory, 20),
        connector: connector(plug),
        complies,
        rate_bps: rate,
        cable_m: at(18).filter(|length| cable && *length > 0).map(u32::from),
        hides_copper_rate: plug == RJ45 || is_base_t(code) || (!cable && part.as_deref().is_some_and(is_copper_part)),
        part,
    })
}

fn qsfp(memory: &[u8]) -> Option<Module> {
    /// The lowest bit of "extended": the code in byte 192 says more.
    const EXTENDED: u8 = 1 << 7;
    let at = |at: usize| memory.get(PAGE + at).copied();
    let (compliance, code) = (at(3)?, at(64)?);
    let names = ["40G active cable", "40GBASE-LR4", "40GBASE-SR4", "40GBASE-CR4", "10GBASE-SR", "10GBASE-LR", "10GBASE-LRM", ""];
    let mut complies: Vec<String> = words(compliance, names).collect();
    complies.extend(words(at(6)? & 0x0f, ["1000BASE-SX", "1000BASE-LX", "1000BASE-CX", "1000BASE-T", "", "", "", ""]));
    // Device technology: 1010b and 1011b are passive copper, 1100b to 1111b copper with amplifiers.
    let technology = at(19)? >> 4;
    let copper = match technology {
        0x0a | 0x0b => Some("passive copper cable"),
        0x0c..=0x0f => Some("active copper cable"),
        _ => None,
    };
    complies.extend(copper.map(str::to_owned));
    let more = if compliance & EXTENDED != 0 { extended(code) } else { None };
    complies.extend(more.map(str::to_owned));
    let plug = at(2)?;
    let cable = copper.is_some() || matches!(plug, 0x0b | 0x21 | 0x23);
    let kind = match memory.first()? {
        0x0c => "QSFP",
        0x0d => "QSFP+",
        _ => "QSFP28",
    };
    Some(Module {
        kind: kind.to_owned(),
        vendor: text(memory, PAGE + 20),
        part: text(memory, PAGE + 40),
        connector: connector(plug),
        complies,
        rate_bps: rate(at(12)?, at(94)?),
        cable_m: at(18).filter(|length| cable && *length > 0).map(u32::from),
        hides_copper_rate: plug == RJ45,
    })
}

/// Common Management Interface Specification: only who made it and its plug.
fn cmis(memory: &[u8]) -> Option<Module> {
    let kind = match memory.first()? {
        0x18 => "QSFP-DD",
        0x19 => "OSFP",
        0x1a => "SFP-DD",
        0x1b => "DSFP",
        0x1e => "QSFP+ or later with CMIS",
        _ => "module with CMIS",
    };
    let plug = *memory.get(PAGE + 75)?;
    Some(Module {
        kind: kind.to_owned(),
        vendor: text(memory, PAGE + 1),
        part: text(memory, PAGE + 20),
        connector: connector(plug),
        hides_copper_rate: plug == RJ45,
        ..Module::default()
    })
}
