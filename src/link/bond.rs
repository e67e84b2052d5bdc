//! Link aggregation by the bonding driver, from its three sources: `/proc/net/bonding`, netlink, sysfs.

use super::facts::{BondRow, LinkRow};
use super::tree::Tree;
use crate::model::link::{Bond, BondPort, Duplex};
use crate::units::BitRate;

/// More ports than this are not listed.
const PORTS: usize = 64;

/// The long names of `/proc/net/bonding` (`bond_mode_name` of the kernel) and the short ones.
const MODES: [(&str, &str); 7] = [
    ("load balancing (round-robin)", "balance-rr"),
    ("fault-tolerance (active-backup)", "active-backup"),
    ("load balancing (xor)", "balance-xor"),
    ("fault-tolerance (broadcast)", "broadcast"),
    ("IEEE 802.3ad Dynamic link aggregation", "802.3ad"),
    ("transmit load balancing", "balance-tlb"),
    ("adaptive load balancing", "balance-alb"),
];

/// Whether a mode looks at the hash policy at all.
fn hashes(mode: &str) -> bool {
    matches!(mode, "802.3ad" | "balance-xor" | "balance-tlb")
}

/// Which block of the file a line stands in.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Bond,
    Port,
    Actor,
    Partner,
}

/// Reads a file of `/proc/net/bonding`.
///
/// Without CAP_NET_ADMIN the kernel leaves the partner's lines out: a missing line is none here, never "no partner".
pub fn parse(text: &str) -> Bond {
    let (mut bond, mut block, mut current) = (Bond::default(), Part::Bond, None);
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let (key, value) = (key.trim(), value.trim());
        match key {
            "Slave Interface" => {
                if bond.ports.len() == PORTS {
                    break;
                }
                bond.ports.push(BondPort { name: value.to_owned(), ..BondPort::default() });
                block = Part::Port;
            }
            "details actor lacp pdu" => block = Part::Actor,
            "details partner lacp pdu" => block = Part::Partner,
            "Currently Active Slave" => current = Some(value.to_owned()),
            _ => match (block, bond.ports.last_mut()) {
                (Part::Bond, _) => take_bond_line(&mut bond, key, value),
                (_, Some(port)) => take_port_line(port, block, key, value),
                (_, None) => {}
            },
        }
    }
    finish(&mut bond, current.as_deref());
    bond
}

fn take_bond_line(bond: &mut Bond, key: &str, value: &str) {
    match key {
        "Bonding Mode" => {
            let known = MODES.iter().find(|(long, _)| value.starts_with(long));
            known.map_or(value, |(_, short)| short).clone_into(&mut bond.mode);
        }
        // The word, then the number in parentheses.
        "Transmit Hash Policy" => bond.hash_policy = value.split_whitespace().next().map(str::to_owned),
        "Aggregator ID" => bond.active_aggregator = value.parse().ok(),
        "Number of ports" => bond.active_ports = value.parse().ok(),
        "Partner Mac Address" => bond.partner_mac = Some(value.to_owned()),
        _ => {}
    }
}

fn take_port_line(port: &mut BondPort, block: Part, key: &str, value: &str) {
    match (block, key) {
        (Part::Actor, "port state") => port.actor_state = value.parse().ok(),
        (Part::Partner, "port state") => port.partner_state = value.parse().ok(),
        (Part::Port, "MII Status") => {
            // A port that is going down still carries; one that is coming back does not yet.
            port.up = match value {
                "up" | "going down" => Some(true),
                "down" | "going back" => Some(false),
                _ => None,
            };
        }
        (Part::Port, "Speed") => {
            let mbit = value.strip_suffix("Mbps").and_then(|number| number.trim().parse().ok());
            port.speed_bps = mbit.and_then(super::ethtool::speed);
        }
        (Part::Port, "Duplex") => port.duplex = duplex(value),
        (Part::Port, "Link Failure Count") => port.failures = value.parse().ok(),
        (Part::Port, "Aggregator ID") => port.aggregator = value.parse().ok(),
        (Part::Port, "Actor Churn State") => {
            value.clone_into(&mut port.churn.get_or_insert_with(unknown_churn)[0]);
        }
        (Part::Port, "Partner Churn State") => {
            value.clone_into(&mut port.churn.get_or_insert_with(unknown_churn)[1]);
        }
        _ => {}
    }
}

fn unknown_churn() -> [String; 2] {
    ["unknown".to_owned(), "unknown".to_owned()]
}

fn duplex(word: &str) -> Option<Duplex> {
    match word {
        "full" => Some(Duplex::Full),
        "half" => Some(Duplex::Half),
        _ => None,
    }
}

/// Fills in what follows from the rest: which ports carry traffic, and no policy where the mode has none.
fn finish(bond: &mut Bond, current: Option<&str>) {
    if !hashes(&bond.mode) {
        bond.hash_policy = None;
    }
    for port in &mut bond.ports {
        port.active = port.active.or(match bond.mode.as_str() {
            "active-backup" => current.map(|name| name == port.name),
            "802.3ad" => match (port.aggregator, bond.active_aggregator) {
                (Some(own), Some(used)) => Some(own == used && port.up != Some(false)),
                _ => None,
            },
            _ => port.up,
        });
    }
}

/// The bond `name` from all that can be read; none when no source knows it.
pub(super) fn collect(tree: &Tree, name: &str, rows: &[LinkRow]) -> Option<Bond> {
    let mut bond = match tree.read(&format!("/proc/net/bonding/{name}")) {
        Ok(text) if text.contains("Bonding Mode") => Some(parse(&text)),
        _ => None,
    };
    if let Some(row) = rows.iter().find(|row| row.name == name && row.kind.as_deref() == Some("bond")) {
        let ports: Vec<&LinkRow> = rows.iter().filter(|port| port.master == Some(row.index)).collect();
        add_netlink(bond.get_or_insert_default(), &row.bond, &ports, rows);
    }
    if tree.has(&format!("/sys/class/net/{name}/bonding")) {
        add_sysfs(bond.get_or_insert_default(), tree, name);
    }
    bond
}

/// Fills what `/proc` did not tell from netlink.
fn add_netlink(bond: &mut Bond, own: &BondRow, ports: &[&LinkRow], rows: &[LinkRow]) {
    if let Some(mode) = &own.mode {
        bond.mode.clone_from(mode);
    }
    fill(&mut bond.hash_policy, own.hash_policy.as_ref());
    fill(&mut bond.active_aggregator, own.aggregator.as_ref());
    fill(&mut bond.active_ports, own.aggregator_ports.as_ref());
    fill(&mut bond.partner_mac, own.partner_mac.map(mac_text).as_ref());
    for row in ports.iter().take(PORTS) {
        let at = bond.ports.iter().position(|port| port.name == row.name).unwrap_or_else(|| {
            bond.ports.push(BondPort { name: row.name.clone(), ..BondPort::default() });
            bond.ports.len() - 1
        });
        let Some(port) = bond.ports.get_mut(at) else { continue };
        fill(&mut port.up, row.port.up.as_ref());
        fill(&mut port.failures, row.port.failures.as_ref());
        fill(&mut port.aggregator, row.port.aggregator.as_ref());
        fill(&mut port.actor_state, row.port.actor_state.as_ref());
        fill(&mut port.partner_state, row.port.partner_state.as_ref());
        if let (None, Some(actor), Some(partner)) = (&port.churn, &row.port.actor_churn, &row.port.partner_churn) {
            port.churn = Some([actor.clone(), partner.clone()]);
        }
    }
    let current = own.active_port.and_then(|index| rows.iter().find(|row| row.index == index)).map(|row| row.name.clone());
    finish(bond, current.as_deref());
}

/// Fills what neither told from `/sys/class/net/NAME/bonding` (its partner's file is for root alone).
fn add_sysfs(bond: &mut Bond, tree: &Tree, name: &str) {
    let word = |file: &str| {
        let text = tree.read(&format!("/sys/class/net/{name}/bonding/{file}")).ok()?;
        // "802.3ad 4": the word, then the number.
        text.split_whitespace().next().map(str::to_owned)
    };
    if bond.mode.is_empty() {
        bond.mode = word("mode").unwrap_or_default();
    }
    fill(&mut bond.hash_policy, word("xmit_hash_policy").as_ref());
    if bond.mode == "802.3ad" {
        fill(&mut bond.active_aggregator, word("ad_aggregator").and_then(|id| id.parse().ok()).as_ref());
        fill(&mut bond.active_ports, word("ad_num_ports").and_then(|count| count.parse().ok()).as_ref());
        fill(&mut bond.partner_mac, word("ad_partner_mac").as_ref());
    }
    if bond.ports.is_empty() {
        let names = tree.read(&format!("/sys/class/net/{name}/bonding/slaves")).unwrap_or_default();
        let ports = names.split_whitespace().take(PORTS);
        bond.ports = ports.map(|port| BondPort { name: port.to_owned(), ..BondPort::default() }).collect();
    }
    finish(bond, word("active_slave").as_deref());
}

/// Adds the speed and duplex that the port's own interface states where the bond knew none.
pub(super) fn add_port_speed(bond: &mut Bond, name: &str, speed: Option<BitRate>, duplex: Option<Duplex>) {
    if let Some(port) = bond.ports.iter_mut().find(|port| port.name == name) {
        fill(&mut port.speed_bps, speed.as_ref());
        fill(&mut port.duplex, duplex.as_ref());
    }
}

fn fill<T: Clone>(place: &mut Option<T>, value: Option<&T>) {
    if place.is_none() {
        *place = value.cloned();
    }
}

fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}
