//! What `ifconfig` tells of an aggregation: macOS' `bond`, FreeBSD's `lagg`, OpenBSD's `trunk`.

use super::ifconfig::{cut, name, number};
use crate::link::bond::mac_text;
use crate::model::link::{Bond, BondPort};

/// More ports than these are not kept.
const PORTS: usize = 64;

/// The lines of one aggregation while they are read.
#[derive(Default)]
pub(super) struct Reader {
    bond: Option<Bond>,
    /// Whose LACP partner the next line in brackets names.
    peer: Option<Peer>,
    /// How many ends that line has named.
    ends: usize,
}

/// Whose LACP partner is told.
#[derive(Clone, Copy)]
enum Peer {
    /// The aggregation's own.
    Group,
    /// That of the port at this place.
    Port(usize),
}

/// The kernel's word of Linux for a mode that works alike.
fn mode(word: &str) -> String {
    let known = match word {
        "lacp" => "802.3ad",
        "failover" => "active-backup",
        "static" | "loadbalance" => "balance-xor",
        "roundrobin" => "balance-rr",
        "broadcast" => "broadcast",
        other => return cut(other),
    };
    known.to_owned()
}

/// `l2,l3,l4` as `layer2+3+4 (l2,l3,l4)`: what it looks at, and the system's own words, as its arithmetic is its own too.
fn policy(word: &str) -> String {
    let layers: Vec<&str> = word.split(',').take(8).filter_map(|layer| layer.strip_prefix('l')).collect();
    if layers.is_empty() { cut(word) } else { cut(&format!("layer{} ({word})", layers.join("+"))) }
}

impl Reader {
    /// The aggregation, if there is one.
    pub(super) fn finish(self) -> Option<Bond> {
        let mut bond = self.bond?;
        let silent = |mac: &str| mac.bytes().all(|byte| matches!(byte, b'0' | b':'));
        if bond.partner_mac.is_none() {
            // Only what LACP told counts: a port that names no partner system says nothing.
            let told: Vec<&String> = bond.ports.iter().filter_map(|port| port.partner_system.as_ref()).collect();
            bond.partner_mac = told.iter().find(|mac| !silent(mac)).or(told.first()).map(|mac| (*mac).clone());
        }
        let used = bond.ports.iter().filter(|port| port.active == Some(true)).count();
        let told = bond.ports.iter().any(|port| port.active.is_some());
        bond.active_ports = (bond.mode == "802.3ad" && told).then(|| u32::try_from(used).unwrap_or(u32::MAX));
        Some(bond)
    }

    /// Reads one line; whether it was about an aggregation.
    pub(super) fn line(&mut self, line: &str) -> bool {
        if self.peer(line) {
            return true;
        }
        self.peer = None;
        if let Some(word) = line.strip_prefix("bond mode:") {
            self.bond().mode = mode(word.trim());
        } else if let Some(rest) = line.strip_prefix("bond key:") {
            self.key(rest);
        } else if let Some(names) = line.strip_prefix("bond interfaces:") {
            self.members(names);
        } else if let Some(rest) = line.strip_prefix("bond interface:") {
            self.darwin_port(rest);
        } else if let Some(rest) = line.strip_prefix("laggproto ").or_else(|| line.strip_prefix("trunk: trunkproto ")) {
            let mut words = rest.split_whitespace();
            self.bond().mode = words.next().map(mode).unwrap_or_default();
            if words.next() == Some("lagghash") {
                self.bond().hash_policy = words.next().map(policy);
            }
        } else if let Some(rest) = line.strip_prefix("laggport:").or_else(|| line.strip_prefix("trunkport ")) {
            self.bsd_port(rest);
        } else if let Some(rest) = line.strip_prefix("lag id:") {
            (self.peer, self.ends) = (Some(Peer::Group), 0);
            self.peer(rest.trim());
        } else {
            return false;
        }
        true
    }

    fn bond(&mut self) -> &mut Bond {
        self.bond.get_or_insert_with(Bond::default)
    }

    /// The port of a name, which is added where it is new; none where there are too many, or it is no name.
    fn port(&mut self, word: &str) -> Option<(usize, &mut BondPort)> {
        let name = name(word)?;
        let ports = &mut self.bond().ports;
        let at = ports.iter().position(|port| port.name == name).unwrap_or(ports.len());
        if at == PORTS {
            return None;
        }
        if at == ports.len() {
            ports.push(BondPort { name, ..BondPort::default() });
        }
        Some((at, ports.get_mut(at)?))
    }

    /// `0x0001 interfaces: en5 (selected) en6 (unselected)`.
    fn key(&mut self, rest: &str) {
        let (key, names) = rest.split_once("interfaces:").unwrap_or((rest, ""));
        self.bond().actor_key = number(key).and_then(|key| u16::try_from(key).ok()).filter(|key| *key != 0);
        self.members(names);
    }

    fn members(&mut self, names: &str) {
        self.bond();
        let mut last = None;
        for word in names.split_whitespace().take(2 * PORTS) {
            match word {
                "(selected)" | "(unselected)" | "(standby)" => {
                    if let Some(port) = last.and_then(|at: usize| self.bond().ports.get_mut(at)) {
                        port.active = Some(word == "(selected)");
                    }
                }
                "<none>" => {}
                word => last = self.port(word).map(|(at, _)| at),
            }
        }
    }

    /// `en5 priority: 0x8000 state: 0x3d partner system: 0x8000,02:… key: 0x03e8 port: 0x0001 priority: 0x8000 state: 0x3d`.
    fn darwin_port(&mut self, rest: &str) {
        let (own, partner) = rest.split_once("partner system:").unwrap_or((rest, ""));
        let field = |text: &str, name: &str| number(text.split_once(name)?.1);
        let Some((_, port)) = own.split_whitespace().next().and_then(|word| self.port(word)) else { return };
        port.actor_state = field(own, "state:");
        port.partner_system = partner.split_whitespace().next().and_then(|word| mac(word.split_once(',')?.1));
        port.partner_key = field(partner, "key:").and_then(|key| u16::try_from(key).ok());
        port.partner_port = field(partner, "port:").and_then(|at| u16::try_from(at).ok());
        port.partner_state = field(partner, "state:");
    }

    /// `em0 flags=1c<ACTIVE,COLLECTING,DISTRIBUTING> state=3d<…>`; OpenBSD's `em0 active,collecting,distributing`.
    fn bsd_port(&mut self, rest: &str) {
        let lacp = self.bond().mode == "802.3ad";
        let mut words = rest.split_whitespace();
        let Some(first) = words.next() else { return };
        let flags = words.next().unwrap_or_default().to_ascii_lowercase();
        let state = words.next().and_then(|word| word.strip_prefix("state=")).and_then(hex);
        let has = |flag: &str| flags.split(['<', '>', ',']).any(|word| word == flag);
        let (in_use, preferred) = (if lacp { has("distributing") } else { has("active") }, has("master"));
        let told = !flags.is_empty();
        let Some((at, port)) = self.port(first) else { return };
        port.active = told.then_some(in_use);
        port.actor_state = state;
        let name = port.name.clone();
        (self.peer, self.ends) = (Some(Peer::Port(at)), 0);
        if preferred && self.bond().mode == "active-backup" {
            self.bond().settings.primary = Some(name);
        }
    }

    /// `[(8000,00-25-90-A9-39-8A,01CB,8000,0001),` and, on the same line or the next one, the partner's.
    fn peer(&mut self, line: &str) -> bool {
        let Some(whose) = self.peer else { return false };
        if !line.starts_with("[(") && !line.starts_with('(') {
            return false;
        }
        for end in line.split('(').skip(1).take(2) {
            let fields: Vec<&str> = end.split([',', ')', ']']).take(5).map(str::trim).collect();
            let [_, system, key, _, number] = fields.as_slice() else { continue };
            let (system, key, at) = (mac(system), short(key), short(number));
            let partner = self.ends > 0;
            self.ends += 1;
            let bond = self.bond();
            match whose {
                Peer::Group if partner => (bond.partner_mac, bond.partner_key) = (system, key),
                Peer::Group => bond.actor_key = key,
                Peer::Port(place) => {
                    let Some(port) = bond.ports.get_mut(place) else { continue };
                    if partner {
                        (port.partner_system, port.partner_key, port.partner_port) = (system, key, at);
                    } else {
                        port.actor_key = key;
                    }
                }
            }
        }
        true
    }
}

/// Hexadecimal digits at the beginning of a word.
fn hex(word: &str) -> Option<u32> {
    let end = word.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(word.len());
    u32::from_str_radix(word.get(..end)?, 16).ok()
}

fn short(word: &str) -> Option<u16> {
    u16::from_str_radix(word, 16).ok()
}

/// A hardware address with colons or dashes, in the form of Linux.
pub(super) fn mac(word: &str) -> Option<String> {
    let parts: Vec<&str> = word.trim().split([':', '-']).take(7).collect();
    let bytes: Option<Vec<u8>> =
        parts.iter().map(|part| (part.len() <= 2).then(|| u8::from_str_radix(part, 16).ok()).flatten()).collect();
    let bytes = bytes.filter(|bytes| bytes.len() == 6)?;
    Some(mac_text(&bytes))
}
