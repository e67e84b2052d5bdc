//! Link aggregation by the bonding driver, from its three sources: `/proc/net/bonding`, netlink, sysfs.

use super::facts::{BondRow, LinkRow};
use super::tree::Tree;
use crate::model::link::{Bond, BondPort, BondSettings, Duplex};
use crate::units::BitRate;

/// More ports than this are not listed.
const PORTS: usize = 64;

/// The kernel knows no more ARP targets (`BOND_MAX_ARP_TARGETS`).
const TARGETS: usize = 16;

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
    // The kernel walks its own list when it writes this file.
    bond.in_order = true;
    finish(&mut bond, current.as_deref());
    bond
}

fn take_bond_line(bond: &mut Bond, key: &str, value: &str) {
    match key {
        "Bonding Mode" => {
            let known = MODES.iter().find(|(long, _)| value.starts_with(long));
            known.map_or(value, |(_, short)| short).clone_into(&mut bond.mode);
            // "fault-tolerance (active-backup) (fail_over_mac active)"
            let follows = value.split_once("(fail_over_mac ").and_then(|(_, rest)| rest.split(')').next());
            bond.settings.fail_over_mac = follows.map(str::to_owned);
        }
        // The word, then the number in parentheses.
        "Transmit Hash Policy" => bond.hash_policy = value.split_whitespace().next().map(str::to_owned),
        "Aggregator ID" => bond.active_aggregator = value.parse().ok(),
        "Number of ports" => bond.active_ports = value.parse().ok(),
        "Partner Mac Address" => bond.partner_mac = Some(value.to_owned()),
        "Actor Key" => bond.actor_key = value.parse().ok(),
        "Partner Key" => bond.partner_key = value.parse().ok(),
        _ => take_setting(&mut bond.settings, key, value),
    }
}

/// How the bond is set up, in the words of `bond_info_show_master`.
fn take_setting(settings: &mut BondSettings, key: &str, value: &str) {
    let word = || value.split_whitespace().next().map(str::to_owned);
    match key {
        "MII Polling Interval (ms)" => settings.miimon_ms = value.parse().ok(),
        "Up Delay (ms)" => settings.up_delay_ms = value.parse().ok(),
        "Down Delay (ms)" => settings.down_delay_ms = value.parse().ok(),
        "ARP Polling Interval (ms)" => settings.arp_interval_ms = value.parse().ok(),
        "ARP IP target/s (n.n.n.n form)" => {
            settings.arp_targets = value.split([',', ' ']).filter(|at| !at.is_empty()).take(TARGETS).map(str::to_owned).collect();
        }
        "Primary Slave" => settings.primary = word().filter(|name| name != "None"),
        "LACP rate" => settings.lacp_rate = word(),
        "LACP active" => settings.lacp_active = switch(value),
        "Aggregator selection policy (ad_select)" => settings.ad_select = word(),
        "Min links" => settings.min_links = value.parse().ok(),
        _ => {}
    }
}

/// The kernel's words for a switch; sysfs says 1 and 0.
fn switch(word: &str) -> Option<bool> {
    match word {
        "on" | "1" => Some(true),
        "off" | "0" => Some(false),
        _ => None,
    }
}

fn take_port_line(port: &mut BondPort, block: Part, key: &str, value: &str) {
    match (block, key) {
        (Part::Actor, "port state") => port.actor_state = value.parse().ok(),
        (Part::Actor, "port key") => port.actor_key = value.parse().ok(),
        (Part::Partner, "port state") => port.partner_state = value.parse().ok(),
        (Part::Partner, "system mac address") => port.partner_system = Some(value.to_owned()),
        (Part::Partner, "oper key") => port.partner_key = value.parse().ok(),
        (Part::Partner, "port number") => port.partner_port = value.parse().ok(),
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
        (Part::Port, "Permanent HW addr") => port.permanent_mac = Some(value.to_owned()),
        (Part::Port, "Slave queue ID") => port.queue_id = value.parse().ok(),
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
    keep_what_the_mode_has(&bond.mode, &mut bond.settings);
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

/// Netlink and sysfs tell every setting in every mode; what the mode does not look at is no fact about this bond.
fn keep_what_the_mode_has(mode: &str, settings: &mut BondSettings) {
    let keep = |modes: &[&str]| modes.contains(&mode);
    if !keep(&["802.3ad"]) {
        (settings.lacp_rate, settings.lacp_active, settings.ad_select, settings.min_links) = (None, None, None, None);
    }
    if !keep(&["active-backup"]) {
        settings.fail_over_mac = None;
    }
    if !keep(&["active-backup", "balance-tlb", "balance-alb"]) {
        settings.primary = None;
    }
    if !keep(&["balance-tlb", "balance-alb"]) {
        settings.lp_interval_s = None;
    }
    if !keep(&["balance-tlb"]) {
        settings.tlb_dynamic = None;
    }
    if !keep(&["balance-rr"]) {
        settings.packets_per_port = None;
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
    fill(&mut bond.partner_mac, own.partner_mac.map(|mac| mac_text(&mac)).as_ref());
    fill(&mut bond.actor_key, own.actor_key.as_ref());
    fill(&mut bond.partner_key, own.partner_key.as_ref());
    let name_of = |index: Option<u32>| Some(rows.iter().find(|row| Some(row.index) == index)?.name.clone());
    add_settings(&mut bond.settings, &own.settings);
    fill(&mut bond.settings.primary, name_of(own.primary).as_ref());
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
        fill(&mut port.permanent_mac, row.port.permanent_mac.as_ref().map(|mac| mac_text(mac)).as_ref());
        fill(&mut port.queue_id, row.port.queue_id.as_ref());
    }
    finish(bond, name_of(own.active_port).as_deref());
}

/// Fills the settings that are not known yet.
fn add_settings(place: &mut BondSettings, more: &BondSettings) {
    fill(&mut place.miimon_ms, more.miimon_ms.as_ref());
    fill(&mut place.up_delay_ms, more.up_delay_ms.as_ref());
    fill(&mut place.down_delay_ms, more.down_delay_ms.as_ref());
    fill(&mut place.arp_interval_ms, more.arp_interval_ms.as_ref());
    if place.arp_targets.is_empty() {
        place.arp_targets = more.arp_targets.iter().take(TARGETS).cloned().collect();
    }
    fill(&mut place.primary, more.primary.as_ref());
    fill(&mut place.fail_over_mac, more.fail_over_mac.as_ref());
    fill(&mut place.lacp_rate, more.lacp_rate.as_ref());
    fill(&mut place.lacp_active, more.lacp_active.as_ref());
    fill(&mut place.ad_select, more.ad_select.as_ref());
    fill(&mut place.min_links, more.min_links.as_ref());
    fill(&mut place.lp_interval_s, more.lp_interval_s.as_ref());
    fill(&mut place.tlb_dynamic, more.tlb_dynamic.as_ref());
    fill(&mut place.packets_per_port, more.packets_per_port.as_ref());
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
    if !bond.in_order {
        // The kernel walks its own list when it writes this file; netlink's dump goes by the interfaces' indices.
        let names = tree.read(&format!("/sys/class/net/{name}/bonding/slaves")).unwrap_or_default();
        let names: Vec<&str> = names.split_whitespace().take(PORTS).collect();
        order(bond, &names);
    }
    let number = |file: &str| word(file).and_then(|text| text.parse().ok());
    let key = |file: &str| word(file).and_then(|text| text.parse().ok());
    if bond.mode == "802.3ad" {
        fill(&mut bond.actor_key, key("ad_actor_key").as_ref());
        fill(&mut bond.partner_key, key("ad_partner_key").as_ref());
    }
    let told = BondSettings {
        miimon_ms: number("miimon"),
        up_delay_ms: number("updelay"),
        down_delay_ms: number("downdelay"),
        arp_interval_ms: number("arp_interval"),
        primary: word("primary"),
        fail_over_mac: word("fail_over_mac"),
        lacp_rate: word("lacp_rate"),
        lacp_active: word("lacp_active").and_then(|text| switch(&text)),
        ad_select: word("ad_select"),
        min_links: number("min_links"),
        lp_interval_s: number("lp_interval"),
        tlb_dynamic: word("tlb_dynamic_lb").and_then(|text| switch(&text)),
        packets_per_port: number("packets_per_slave"),
        arp_targets: tree
            .read(&format!("/sys/class/net/{name}/bonding/arp_ip_target"))
            .unwrap_or_default()
            .split_whitespace()
            .map(str::to_owned)
            .collect(),
    };
    add_settings(&mut bond.settings, &told);
    finish(bond, word("active_slave").as_deref());
}

/// Puts the ports into the kernel's order; those that it did not name were found elsewhere and come last.
fn order(bond: &mut Bond, names: &[&str]) {
    if names.is_empty() {
        return;
    }
    let mut known = std::mem::take(&mut bond.ports);
    for name in names {
        let at = known.iter().position(|port| port.name == **name);
        let new = || BondPort { name: (*name).to_owned(), ..BondPort::default() };
        bond.ports.push(at.map_or_else(new, |at| known.remove(at)));
    }
    bond.in_order = known.is_empty();
    bond.ports.append(&mut known);
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

/// A hardware address as the kernel prints it.
pub(super) fn mac_text(mac: &[u8]) -> String {
    mac.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}
