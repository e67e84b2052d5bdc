//! The link of this host towards the peer, joined from all sources.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Peer;
use super::facts::{LinkRow, Route};
use super::route::{self, Tables};
use super::spread::mac_of;
use super::stack::Host;
use super::tree::{Tree, is_interface_name};
use super::{bond, elsewhere, interface, klog, whole};
use crate::model::flows::NOT_AGGREGATED;
use crate::model::link::{HostLink, Interface, InterfaceKind as Kind};
use crate::model::outcome::Outcome;

/// The interface that carries the traffic from `local` to `peer`, with everything below it.
///
/// Of a bridge, only the port behind which the next hop is, where the kernel has learnt it; else all of them.
/// A link-local peer's scope tells the interface, also where several have the same address. It asks the running kernel only
/// when the tree is the system's own. Failed when no source names the interface. It takes some milliseconds and blocks.
pub fn collect(local: IpAddr, peer: impl Into<Peer>, tree: &Tree) -> Outcome<HostLink> {
    let (local, peer) = (local.to_canonical(), peer.into());
    if elsewhere::used(tree) {
        return elsewhere::collect(local, peer);
    }
    let Way { tables, route, complete, top } = match way(local, peer, tree) {
        Ok(way) => way,
        Err(why) => return Outcome::failed(why),
    };
    let tree = &tree.seen_from(tables.rows.iter().find(|row| row.name == top));
    let leading = leading(&top, route.gateway.unwrap_or(peer.address), &tables.rows, tree);
    let host = Host { tree, rows: &tables.rows, leading: &leading };
    let gateway = if complete {
        Outcome::Measured(route.gateway)
    } else {
        Outcome::skipped("this system tells the interface but not the route; on Linux, /proc/net/route or netlink would")
    };
    let mut stack = interfaces(&host, &top);
    let events = klog::events(&stack, tree);
    klog::add_downshifts(&mut stack, &events);
    let aggregated = stack.iter().any(|interface| interface.bond.is_some() || interface.kind == Kind::Team);
    Outcome::Measured(HostLink {
        local,
        peer: peer.address,
        gateway,
        stack,
        stated_speed_bps: None,
        neighbours: Outcome::skipped(NOBODY_LISTENED),
        addresses: whole::addresses(tree, &tables.rows),
        events,
        log_followed: None,
        flows: Outcome::skipped(if aggregated { NO_FLOWS } else { NOT_AGGREGATED }),
        left_out: 0,
    })
}

/// The interface that the route from `local` to `peer` leaves by, and its kind: no more than that, in a millisecond or two.
pub fn leaves_by(local: IpAddr, peer: impl Into<Peer>, tree: &Tree) -> Option<(String, Kind)> {
    let (local, peer) = (local.to_canonical(), peer.into());
    if elsewhere::used(tree) {
        return elsewhere::leaves_by(local, peer);
    }
    let Way { tables, top, .. } = way(local, peer, tree).ok()?;
    let tree = &tree.seen_from(tables.rows.iter().find(|row| row.name == top));
    let host = Host { tree, rows: &tables.rows, leading: &[] };
    let kind = if is_interface_name(&top) { interface::kind_of(&host, &top) } else { Kind::Unknown };
    Some((top, kind))
}

/// The ports of this host's bridges behind which the next hop `hop` is; its address is known after a packet to it, as the connection
/// of the two ends was.
fn leading(top: &str, hop: IpAddr, rows: &[LinkRow], tree: &Tree) -> Vec<u32> {
    let bridged = rows.iter().any(|row| row.kind.as_deref() == Some("bridge"));
    if !bridged || !tree.is_live() {
        return Vec::new();
    }
    let row = rows.iter().find(|row| row.name == top);
    let Some(mac) = mac_of(hop, top, row, tree) else { return Vec::new() };
    route::bridged().into_iter().filter(|(_, behind)| *behind == mac).map(|(port, _)| port).collect()
}

/// The interface that the route to `peer` leaves by, where its carrier is missing: then nobody can answer from there.
pub fn dead_port(peer: impl Into<Peer>) -> Option<String> {
    let (peer, tree) = (peer.into(), Tree::system());
    if elsewhere::used(&tree) {
        return None;
    }
    let any = if peer.address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let Way { tables, top, .. } = way(any, peer, &tree).ok()?;
    let tree = tree.seen_from(tables.rows.iter().find(|row| row.name == top));
    let carrier = is_interface_name(&top).then(|| tree.read(&format!("/sys/class/net/{top}/carrier")).ok()).flatten()?;
    (carrier == "0").then_some(top)
}

/// How the traffic to a peer leaves.
struct Way {
    tables: Tables,
    route: Route,
    /// Whether the source of the route knows of gateways.
    complete: bool,
    /// The interface that the route names.
    top: String,
}

/// The way to `peer`, or the sentence why no source tells it.
fn way(local: IpAddr, peer: Peer, tree: &Tree) -> Result<Way, String> {
    let tables = if tree.is_live() { route::ask_kernel(local, peer) } else { Tables { rows: Vec::new(), route: None } };
    if tree.is_system() && peer.is_link_local() && peer.interface().is_none() && peer.address != local {
        let owners = route::owners(local);
        if owners.len() > 1 {
            return Err(several_owners(local, &owners));
        }
    }
    let Some((route, complete)) = find_route(&tables, local, peer, tree) else {
        return Err(format!(
            "no source tells which interface leads to {}: neither netlink nor /proc/net/route nor the list of addresses",
            peer.address
        ));
    };
    let Some(top) = name_of(&route, &tables.rows) else {
        return Err("the interface of the route has gone, or belongs to another network namespace".to_owned());
    };
    Ok(Way { tables, route, complete, top })
}

/// Why no interface is named where several could be meant.
pub(super) fn several_owners(local: IpAddr, owners: &[String]) -> String {
    let names = owners.iter().take(8).map(String::as_str).collect::<Vec<_>>().join(", ");
    format!(
        "{local} is the address of {names} alike, as they share a hardware address, so a link-local peer does not tell which of them \
         leads to it: name the interface behind its address, as in fe80::1%{}",
        owners.first().map_or("eth0", String::as_str)
    )
}

/// Devices speak only every 30 s.
pub(super) const NOBODY_LISTENED: &str = "the run ended before the switch was heard";

/// The ports of connections are known only when they are open.
pub(super) const NO_FLOWS: &str = "no connection of this run was open yet whose port of an aggregation could be told";

/// The route, and whether its source knows of gateways.
fn find_route(tables: &Tables, local: IpAddr, peer: Peer, tree: &Tree) -> Option<(Route, bool)> {
    let loopback = |tables: &Tables| {
        let row = tables.rows.iter().find(|row| row.loopback);
        let name = row.map_or_else(route::loopback_name, |row| row.name.clone());
        Route { name: Some(name), own: true, ..Route::default() }
    };
    if tree.is_system() && peer.is_link_local() && peer.address != local {
        // Such an address is valid on every interface, so its scope tells which one is meant, else only our own address.
        let route = match peer.interface() {
            Some(index) if route::owns(index, peer.address) => Some(loopback(tables)),
            Some(index) => Some(Route { index: Some(index), ..Route::default() }),
            None => route::from_owner(local),
        };
        return route.map(|route| (route, true));
    }
    match &tables.route {
        Some(route) if route.own => Some((loopback(tables), true)),
        Some(route) => Some((route.clone(), true)),
        None if route::is_own(local, peer.address, tree) => Some((loopback(tables), true)),
        None => {
            let from_proc = route::from_proc(tree, peer.address).map(|route| (route, true));
            let owner = || if tree.is_system() { route::from_owner(local).map(|route| (route, false)) } else { None };
            from_proc.or_else(owner)
        }
    }
}

fn name_of(route: &Route, rows: &[LinkRow]) -> Option<String> {
    if let Some(name) = &route.name {
        return Some(name.clone());
    }
    let listed = rows.iter().find(|row| Some(row.index) == route.index).map(|row| row.name.clone());
    listed.or_else(|| {
        let all = if_addrs::get_if_addrs().unwrap_or_default();
        all.into_iter().find(|interface| interface.index.is_some() && interface.index == route.index).map(|it| it.name)
    })
}

/// The interfaces from `top` down; `top` always among them, whatever its name.
pub(super) fn interfaces(host: &Host<'_>, top: &str) -> Vec<Interface> {
    if !is_interface_name(top) {
        return vec![Interface::unknown(
            top,
            Kind::Unknown,
            "the interface's name is no name of this kernel, so nothing is read about it",
        )];
    }
    let kind_of = |name: &str| interface::kind_of(host, name);
    let names = host.names(top, kind_of);
    let mut stack: Vec<Interface> =
        names.iter().map(|(name, kind)| interface::collect(host.tree, name, *kind, host.row(name))).collect();
    let speeds: Vec<_> = stack
        .iter()
        .map(|it| {
            let speed = it.speed_bps.measured().map(|fact| fact.value);
            (it.name.clone(), speed, it.duplex.measured().map(|fact| fact.value))
        })
        .collect();
    for bonded in stack.iter_mut().filter(|interface| interface.kind == Kind::Bond) {
        bonded.bond = bond::collect(host.tree, &bonded.name, host.rows);
        if let Some(bond) = &mut bonded.bond {
            for (name, speed, duplex) in &speeds {
                bond::add_port_speed(bond, name, *speed, *duplex);
            }
        }
    }
    stack
}
