//! Connections → ports.

use std::net::{IpAddr, SocketAddr};

use super::choice::{self, Choice};
use super::count::flows_for_all;
use super::headers::Headers;
use super::says;
use crate::link::hash::{Frame, Policy, Transport, has_array, predicted_port};
use crate::model::flows::{FlowSpread, NOT_AGGREGATED, PlannedFlow};
use crate::model::link::{Bond, HostLink, Interface, InterfaceKind as Kind};
use crate::model::outcome::Outcome;

/// One connection of this end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// What it is, for people: `upload, stream 2`.
    pub what: String,
    /// Our address and port.
    pub local: SocketAddr,
    /// The peer's address and port.
    pub remote: SocketAddr,
}

/// More connections than these are not looked at.
const FLOWS: usize = 256;

/// The port of each connection on this end's way to the peer, as far as the kernel's rules tell it.
///
/// Skipped where nothing is aggregated on this way, where it is by the team driver, or where the mode is not known. What the mode
/// or a missing fact leaves open is skipped connection by connection.
pub fn plan(link: &HostLink, headers: &Headers, flows: &[Flow]) -> Outcome<FlowSpread> {
    let Some((at, interface, bond)) = bonded(&link.stack) else {
        return Outcome::skipped(match link.stack.iter().find(|interface| interface.kind == Kind::Team) {
            Some(team) => crate::link::team::not_told(&team.name),
            None => NOT_AGGREGATED.to_owned(),
        });
    };
    let choice = match choice::choice(bond) {
        Ok(choice) => choice,
        Err(why) => return Outcome::skipped(why),
    };
    let ports = match choice {
        Choice::OnePort => active(bond).into_iter().collect(),
        _ => choice::usable_ports(bond),
    };
    let doubt = doubt(link, at, bond);
    let planned: Vec<PlannedFlow> = flows
        .iter()
        .take(FLOWS)
        .map(|flow| {
            let flow = Flow { local: canonical(flow.local), remote: canonical(flow.remote), ..flow.clone() };
            let port = match (&doubt, choice) {
                (Some(why), _) => Outcome::skipped(why.clone()),
                (None, Choice::Hash(policy)) => hashed(bond, policy, &flow, headers, &ports),
                (None, _) => certain(choice, bond, &ports),
            };
            PlannedFlow { what: flow.what, local: flow.local, remote: flow.remote, port }
        })
        .collect();
    let count = u32::try_from(ports.len()).unwrap_or(u32::MAX);
    let (reachable_ports, needed) = reach(choice, count);
    let policy = match choice {
        Choice::Hash(policy) => policy.word().to_owned(),
        _ => bond.mode.clone(),
    };
    let mut spread = FlowSpread {
        interface: interface.name.clone(),
        policy,
        ports,
        flows: planned,
        flows_for_all: needed,
        reachable_ports,
        says: Vec::new(),
    };
    spread.says = says::sentences(choice, bond, link, &spread);
    Outcome::Measured(spread)
}

/// The aggregation of a stack, and where it stands.
fn bonded(stack: &[Interface]) -> Option<(usize, &Interface, &Bond)> {
    stack.iter().enumerate().find_map(|(at, interface)| Some((at, interface, interface.bond.as_ref()?)))
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// The port in use where only one is.
fn active(bond: &Bond) -> Option<String> {
    bond.ports.iter().find(|port| port.active == Some(true)).map(|port| port.name.clone())
}

/// Why no port of this bond can be told, whatever the connection.
fn doubt(link: &HostLink, at: usize, bond: &Bond) -> Option<String> {
    let inside = |name: &str| bond.ports.iter().any(|port| port.name == name);
    let beside = link.stack.iter().skip(at + 1).find(|interface| {
        matches!(interface.kind, Kind::Physical | Kind::VirtualMachine | Kind::Wifi) && !inside(&interface.name)
    });
    let bridge = link.stack.iter().take(at).find(|interface| interface.kind == Kind::Bridge);
    if let (Some(bridge), Some(beside)) = (bridge, beside) {
        let (bridge, beside) = (&bridge.name, &beside.name);
        return Some(format!("the bridge {bridge} has other ports too ({beside}), and which one leads to the peer is not told"));
    }
    None
}

/// The port where no hash decides.
fn certain(choice: Choice, bond: &Bond, ports: &[String]) -> Outcome<String> {
    match choice {
        Choice::OnePort => match ports {
            [port] => Outcome::Measured(port.clone()),
            _ => Outcome::skipped("no source tells which port is in use"),
        },
        _ if ports.len() == 1 => Outcome::Measured(ports.first().cloned().unwrap_or_default()),
        Choice::AllPorts => Outcome::skipped("broadcast sends every packet by every port"),
        Choice::EveryPacket => Outcome::skipped("balance-rr sends every packet by another port than the one before"),
        Choice::Hash(_) | Choice::ByLoad(_) | Choice::ByPeer => Outcome::skipped(format!(
            "{} chooses ports by their load, and changes its mind; the port can only be measured",
            bond.mode
        )),
    }
}

/// The hash's port, where all that it takes is known.
fn hashed(bond: &Bond, policy: Policy, flow: &Flow, headers: &Headers, ports: &[String]) -> Outcome<String> {
    if let [port] = ports {
        return Outcome::Measured(port.clone());
    }
    if bond.ports.iter().any(|port| choice::usable(bond, port).is_none()) {
        return Outcome::skipped("no source tells which ports of the aggregation are in use");
    }
    if !bond.in_order {
        return Outcome::skipped(
            "the order in which the kernel counts the ports is not told: neither /proc/net/bonding nor sysfs can be read here",
        );
    }
    if !one_family(flow) {
        return Outcome::skipped("the two addresses of the connection are of different kinds");
    }
    let release = match &headers.release {
        Outcome::Measured(release) => release,
        Outcome::Skipped(why) | Outcome::Failed(why) => return Outcome::Skipped(why.clone()),
    };
    let frame = match frame(policy, flow, headers) {
        Outcome::Measured(frame) => frame,
        Outcome::Skipped(why) | Outcome::Failed(why) => return Outcome::Skipped(why),
    };
    match (bond.mode.as_str(), has_array(release)) {
        ("balance-xor", Some(false)) if ports.len() < bond.ports.len() => walked(bond, policy, &frame, release),
        ("balance-xor", None) if ports.len() < bond.ports.len() => {
            Outcome::skipped(format!("kernel {release} does not tell how it passes over a port that is down"))
        }
        _ => predicted_port(policy.word(), &frame, release, ports),
    }
}

/// Before the array of usable ports, balance-xor counted all ports and went on from one that is down to the next.
fn walked(bond: &Bond, policy: Policy, frame: &Frame, release: &str) -> Outcome<String> {
    let all: Vec<String> = bond.ports.iter().map(|port| port.name.clone()).collect();
    predicted_port(policy.word(), frame, release, &all).and_then(|first| {
        let from = bond.ports.iter().position(|port| port.name == first).unwrap_or(0);
        let mut next = bond.ports.iter().cycle().skip(from).take(bond.ports.len());
        let usable = next.find(|port| choice::usable(bond, port) == Some(true));
        usable
            .map_or_else(|| Outcome::skipped("no port of the aggregation is usable"), |port| Outcome::Measured(port.name.clone()))
    })
}

/// The frame's headers; of what the policy does not look at, zeros stand in.
fn frame(policy: Policy, flow: &Flow, headers: &Headers) -> Outcome<Frame> {
    let macs = matches!(policy, Policy::Layer2 | Policy::Layer23 | Policy::Encap23 | Policy::VlanSrcMac);
    let blank = || Outcome::Measured([0; 6]);
    let source = if macs { headers.source_mac.clone() } else { blank() };
    let next_hop = if macs && policy != Policy::VlanSrcMac { headers.next_hop_mac.clone() } else { blank() };
    // The kernel carries the tag beside the frame, and only one policy counts it; within the frame it hides the IP header from all.
    if let Some(why) = &headers.tag_within {
        return Outcome::skipped(why.clone());
    }
    let vlan = if policy == Policy::VlanSrcMac { headers.vlan.clone() } else { Outcome::Measured(None) };
    let (local, remote, transport) = (flow.local, flow.remote, Transport::WithPorts);
    source.and_then(|source_mac| {
        next_hop.and_then(|next_hop_mac| vlan.map(|vlan| Frame { source_mac, next_hop_mac, vlan, local, remote, transport }))
    })
}

/// How many ports any number of connections between two addresses can use, and how many connections reach them all.
fn reach(choice: Choice, ports: u32) -> (u32, Option<u32>) {
    let one = (ports.min(1), (ports == 1).then_some(1));
    match choice {
        Choice::Hash(policy) | Choice::ByLoad(Some(policy)) if policy.tells_connections_apart() => (ports, flows_for_all(ports)),
        Choice::Hash(_) | Choice::ByLoad(_) | Choice::ByPeer => one,
        Choice::EveryPacket | Choice::AllPorts => (ports, (ports > 0).then_some(1)),
        // The others stand by whatever is sent.
        Choice::OnePort => (ports.min(1), None),
    }
}

/// Whether both ends' addresses are of one family, as the hash takes for granted.
const fn one_family(flow: &Flow) -> bool {
    matches!((flow.local.ip(), flow.remote.ip()), (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)))
}
