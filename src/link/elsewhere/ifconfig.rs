//! Decodes what `ifconfig NAME` prints on macOS and the BSDs, with `-m` and `-v` where there are these.

use super::lagg::{Reader, mac};
use super::media::{self, Media};
use crate::model::link::Bond;

/// The most lines that are looked at: an aggregation of dozens of ports, each with all its media, is shorter.
const LINES: usize = 1024;
/// The longest line that is looked at, in bytes: the flags of a port fill some 200.
const LINE: usize = 1024;
/// The longest word that is kept, in characters: interfaces of these systems have 15 (`IFNAMSIZ`).
const WORD: usize = 64;
/// The most members and groups that are kept.
const MEMBERS: usize = 64;

/// What `ifconfig` tells of one interface. What it does not tell is none or empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Ifconfig {
    /// The flags by name; empty where there is no such line, so that nothing is known of the interface.
    pub flags: Vec<String>,
    /// The MTU in bytes.
    pub mtu: Option<u32>,
    /// The hardware address.
    pub mac: Option<String>,
    /// The kind of port in the words of macOS: `Ethernet`, `Wi-Fi`.
    pub port_type: Option<String>,
    /// The groups that it belongs to (the BSDs): `lagg`, `vlan`, `wg`.
    pub groups: Vec<String>,
    /// The driver and its unit (FreeBSD).
    pub driver: Option<String>,
    /// The medium.
    pub media: Option<Media>,
    /// The speeds of all media that it supports in bit/s, ascending.
    pub supported: Vec<u64>,
    /// Whether there is a link.
    pub active: Option<bool>,
    /// The interface that a VLAN stands on.
    pub parent: Option<String>,
    /// The ports of a bridge.
    pub members: Vec<String>,
    /// The aggregation that it is.
    pub bond: Option<Bond>,
}

impl Ifconfig {
    /// Whether a flag is set.
    pub(super) fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|known| known == flag)
    }

    /// Whether it belongs to a group.
    pub(super) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|known| known == group)
    }

    /// The interfaces directly below.
    pub(super) fn below(&self) -> Vec<String> {
        let ports = self.bond.iter().flat_map(|bond| &bond.ports).map(|port| &port.name);
        ports.chain(&self.parent).chain(&self.members).cloned().collect()
    }
}

/// Decodes the output for one interface; lines that are not understood are passed over, and what follows of another interface too.
pub(super) fn decode(text: &str) -> Ifconfig {
    let mut told = Ifconfig::default();
    let (mut bond, mut supported) = (Reader::default(), false);
    for (at, line) in text.lines().take(LINES).enumerate() {
        let line = short(line);
        if line.contains("flags=") && !line.starts_with(char::is_whitespace) {
            if at > 0 {
                break;
            }
            header(line, &mut told);
            continue;
        }
        let line = line.trim();
        if bond.line(line) {
            continue;
        }
        if let Some(text) = line.strip_prefix("media:") {
            told.media = Some(media::decode(text));
        } else if line.starts_with("supported media:") {
            supported = true;
        } else if supported && line.starts_with("media ") {
            media::add_supported(line, &mut told.supported);
        } else {
            other(line, &mut told);
        }
    }
    told.bond = bond.finish();
    told
}

/// `en0: flags=8863<UP,BROADCAST,RUNNING> mtu 1500`, with `metric` or `index` between on some systems.
fn header(line: &str, told: &mut Ifconfig) {
    let flags = line.split_once("flags=").and_then(|(_, rest)| rest.split_once('<')?.1.split_once('>'));
    let Some((flags, rest)) = flags else { return };
    told.flags = flags.split(',').filter(|flag| !flag.is_empty()).take(MEMBERS).map(cut).collect();
    let mut words = rest.split_whitespace();
    while let Some(word) = words.next() {
        if word == "mtu" {
            told.mtu = words.next().and_then(|mtu| mtu.parse().ok());
            return;
        }
    }
}

fn other(line: &str, told: &mut Ifconfig) {
    let Some((key, rest)) = line.split_once([':', ' ']) else { return };
    let rest = rest.trim();
    match key {
        "status" => {
            told.active = match rest {
                "active" | "associated" => Some(true),
                "inactive" | "no carrier" | "no network" => Some(false),
                _ => None,
            };
        }
        "ether" | "lladdr" => told.mac = rest.split_whitespace().next().and_then(mac),
        "type" => told.port_type = Some(cut(rest)).filter(|word| !word.is_empty()),
        "groups" => told.groups = rest.split_whitespace().take(MEMBERS).map(cut).collect(),
        "drivername" => told.driver = name(rest),
        // "vlan: 10 vlanproto: 802.1q vlanpcp: 0 parent interface: lagg0".
        "vlan" => told.parent = rest.split_once("parent interface:").and_then(|(_, parent)| name(parent)),
        "member" if told.members.len() < MEMBERS => told.members.extend(name(rest)),
        _ => {}
    }
}

/// The line without what is too long.
fn short(line: &str) -> &str {
    let end = (0..=LINE.min(line.len())).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
    line.get(..end).unwrap_or_default()
}

/// A word, cut.
pub(super) fn cut(word: &str) -> String {
    word.trim().chars().take(WORD).collect()
}

/// The first word where it can be an interface's name.
pub(super) fn name(text: &str) -> Option<String> {
    let word = text.split_whitespace().next()?;
    is_name(word).then(|| word.to_owned())
}

/// Whether a word can be an interface's name on these systems, so that it may become an argument: no option, no path.
pub(super) fn is_name(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !word.is_empty() && word.len() < 16 && !word.starts_with(['-', '.']) && word.chars().all(plain)
}

/// A number as these programs print them: decimal, or hexadecimal with `0x`.
pub(super) fn number(text: &str) -> Option<u32> {
    let word = text.split_whitespace().next()?;
    word.strip_prefix("0x").map_or_else(|| word.parse().ok(), |hex| u32::from_str_radix(hex, 16).ok())
}
