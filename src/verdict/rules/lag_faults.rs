//! What of an aggregation's structure is broken, by what it and the switch say.

use std::collections::BTreeSet;

use super::super::line_rate::left_out;
use super::unstable::when;
use crate::model::lacp;
use crate::model::link::{Bond, BondPort, HostLink, Neighbour};
use crate::model::link_event::EventKind;

/// What was heard at the ports of an aggregation.
fn heard<'a>(bond: &Bond, link: Option<&'a HostLink>) -> Vec<&'a Neighbour> {
    let all = link.and_then(|link| link.neighbours.measured()).into_iter().flatten();
    all.filter(|heard| bond.ports.iter().any(|port| port.name == heard.interface)).collect()
}

/// The devices at the ends of the cables, by name or else by address.
fn devices<'a>(neighbours: &[&'a Neighbour]) -> BTreeSet<&'a str> {
    neighbours.iter().filter_map(|heard| heard.system.as_deref().or(heard.chassis.as_deref())).collect()
}

/// Two devices that answer as one partner: one aggregator although the cables lead apart.
pub(super) fn pair(bond: &Bond, link: Option<&HostLink>) -> Option<String> {
    let one = bond.ports.iter().all(|port| port.aggregator.is_some() && port.aggregator == bond.active_aggregator);
    let devices = devices(&heard(bond, link));
    (bond.mode == "802.3ad" && one && devices.len() > 1).then(|| {
        format!(
            "The cables lead to {} devices that act as one (MLAG: {}); such a pair prefers its own port to the link between them.",
            devices.len(),
            devices.into_iter().collect::<Vec<_>>().join(", ")
        )
    })
}

/// The faults of one end's aggregation, one sentence each, the deepest first.
pub(super) fn faults(bond: &Bond, link: Option<&HostLink>) -> Vec<String> {
    let neighbours = heard(bond, link);
    let mut faults = Vec::new();
    let lacp = bond.mode.contains("802.3ad");
    let silent = lacp && bond.partner_mac.as_deref().is_some_and(zero);
    if silent {
        faults.push("No LACP partner answers (its address is all zero).".to_owned());
    }
    let down: Vec<&str> = bond.ports.iter().filter(|port| port.up == Some(false)).map(|port| port.name.as_str()).collect();
    if !down.is_empty() {
        faults.push(format!("Without a link: {}.", down.join(", ")));
    }
    if lacp {
        faults.extend(aggregators(bond, &neighbours));
        faults.extend(outside(bond));
        faults.extend(speeds(bond));
        faults.extend(bond.ports.iter().filter(|port| port.up != Some(false)).filter_map(|port| state(port, silent)));
        if bond.ports.iter().any(|port| port.churn.iter().flatten().any(|state| state.contains("churned"))) {
            faults.push("LACP is churned at a port: both sides do not come to terms.".to_owned());
        }
        if bond.ports.len() == 1 {
            faults.push("Only one port belongs to it.".to_owned());
        }
    }
    faults.extend(neighbours.iter().filter_map(|heard| switch_side(bond, silent, heard)));
    if !faults.is_empty() {
        faults.extend(logged(bond, link, silent));
    }
    faults
}

/// What the kernel's log said last of a fault that still stands, and when.
fn logged(bond: &Bond, link: Option<&HostLink>, silent: bool) -> Option<String> {
    let split = bond.ports.iter().filter_map(|port| port.aggregator).collect::<BTreeSet<_>>().len() > 1;
    let down = |name: &str| bond.ports.iter().any(|port| port.name == name && port.up == Some(false));
    let member = |name: &str| bond.ports.iter().any(|port| port.name == name);
    let events = link?.events.measured()?;
    let event = events.iter().rev().find(|event| match event.kind {
        EventKind::NoLacpPartner => silent,
        EventKind::BondPortDown => down(&event.interface),
        EventKind::LacpMismatch => split && member(&event.interface),
        _ => false,
    })?;
    Some(format!("The kernel's log{}: {}", when(event), event.text))
}

fn zero(mac: &str) -> bool {
    mac.bytes().any(|b| b == b'0') && mac.bytes().all(|b| matches!(b, b'0' | b':'))
}

/// Ports in different aggregators, and why, as far as the partner or the switches say.
fn aggregators(bond: &Bond, neighbours: &[&Neighbour]) -> Option<String> {
    let numbers: BTreeSet<u32> = bond.ports.iter().filter_map(|port| port.aggregator).collect();
    if numbers.len() < 2 {
        return None;
    }
    let answered = |port: &&BondPort| port.partner_system.as_deref().is_some_and(|system| !zero(system));
    let partners: BTreeSet<&str> = bond.ports.iter().filter(answered).filter_map(|port| port.partner_system.as_deref()).collect();
    let keys: BTreeSet<u16> = bond.ports.iter().filter(answered).filter_map(|port| port.partner_key).collect();
    let devices = devices(neighbours);
    Some(if partners.len() > 1 {
        format!(
            "The ports lead to different LACP partners ({}): two devices that do not act as one (no stack, no MLAG), so only one of them carries traffic.",
            partners.into_iter().collect::<Vec<_>>().join(", ")
        )
    } else if keys.len() > 1 {
        let keys: Vec<String> = keys.iter().map(u16::to_string).collect();
        format!(
            "The switch has the ports in different groups (keys {}), and only one of them carries traffic.",
            keys.join(" and ")
        )
    } else if devices.len() > 1 {
        format!(
            "The cables lead to different devices ({}) that do not act as one, so only one of them carries traffic.",
            devices.into_iter().collect::<Vec<_>>().join(", ")
        )
    } else {
        "The ports are in different aggregators, and only one of them carries traffic.".to_owned()
    })
}

/// Ports with a link that carry nothing, where a system says that and numbers no aggregators.
fn outside(bond: &Bond) -> Option<String> {
    let out = bond.ports.iter().filter(|port| port.up != Some(false) && left_out(bond, port));
    let names: Vec<&str> = out.map(|port| port.name.as_str()).take(8).collect();
    (!names.is_empty()).then(|| format!("Left out by LACP although there is a link: {}.", names.join(", ")))
}

fn speeds(bond: &Bond) -> Option<String> {
    let up = bond.ports.iter().filter(|port| port.up != Some(false));
    let speeds: BTreeSet<_> = up.filter_map(|port| port.speed_bps).filter(|rate| rate.0 > 0).collect();
    let words: Vec<String> = speeds.iter().map(ToString::to_string).collect();
    (speeds.len() > 1)
        .then(|| format!("The ports run at different speeds ({}), and LACP joins only those of one.", words.join(", ")))
}

/// A port's state bits that keep it out; what a silent partner explains is said once, for the whole aggregation.
fn state(port: &BondPort, silent: bool) -> Option<String> {
    let name = &port.name;
    let own = port.actor_state.filter(|state| *state != 0);
    if let Some((own, fault)) = own.and_then(|own| Some((own, lacp::fault(own)?))) {
        return Some(format!("{name}: LACP state {own} ({}): {fault}.", lacp::words(own)));
    }
    let theirs = port.partner_state.filter(|state| !silent && *state != 0 && !lacp::healthy(*state))?;
    Some(format!("{name}: the partner's LACP state is {theirs} ({}): it does not take this port in.", lacp::words(theirs)))
}

/// What the switch says of its side of a port, where that does not fit.
fn switch_side(bond: &Bond, silent: bool, heard: &Neighbour) -> Option<String> {
    let port = &heard.interface;
    let is_static = matches!(bond.mode.as_str(), "balance-xor" | "balance-rr" | "broadcast");
    if is_static && heard.lacp.is_some() {
        return Some(format!("The switch speaks LACP at {port}, but this aggregation is static ({}).", bond.mode));
    }
    let alone = matches!(heard.aggregation, Some([_, false]));
    (alone && (is_static || silent)).then(|| format!("The switch says by LLDP that its port at {port} is in no aggregation."))
}
