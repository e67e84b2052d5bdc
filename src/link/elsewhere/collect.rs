//! The link of a host that is not Linux, joined from its list of interfaces and its own programs.

use std::net::{IpAddr, Ipv4Addr};

use super::machine::Machine;
use crate::link::collect::{NO_FLOWS, NOBODY_LISTENED, several_owners};
use crate::link::tree::Tree;
use crate::link::whole::{MOST, MOST_ADDRESSES, natural, nothing_to_see};
use crate::link::{Peer, route};
use crate::model::flows::NOT_AGGREGATED;
use crate::model::link::{CountersByInterface, HostAddress, HostLink, Interface, InterfaceKind as Kind};
use crate::model::outcome::Outcome;
use crate::sys::ports::{self, TELLER, Teller};

/// The kernel's log is for Linux.
const NO_LOG: &str = "this system's kernel keeps no log for programs; Linux does";

/// Whether the machine of `tree` is asked here: it is the running one, and no Linux that tells by itself.
pub(in crate::link) fn used(tree: &Tree) -> bool {
    TELLER != Teller::Files && tree.is_system()
}

/// The interface of the route to `peer` with everything below it; see `link::collect`.
pub(in crate::link) fn collect(local: IpAddr, peer: Peer) -> Outcome<HostLink> {
    let machine = Machine::new(TELLER, ports::listed(), &ports::ask, Some(peer.address));
    match way(&machine, local, peer) {
        Ok((top, gateway)) => {
            let stack = machine.stack(&top);
            let addresses = addresses(&machine, &stack);
            Outcome::Measured(joined(HostLink { gateway, addresses, ..HostLink::new(local, peer.address, stack) }))
        }
        Err(why) => Outcome::failed(why),
    }
}

/// What holds for every link of such a host.
fn joined(link: HostLink) -> HostLink {
    let aggregated = link.stack.iter().any(|interface| interface.bond.is_some());
    HostLink {
        neighbours: Outcome::skipped(NOBODY_LISTENED),
        events: Outcome::skipped(NO_LOG),
        flows: Outcome::skipped(if aggregated { NO_FLOWS } else { NOT_AGGREGATED }),
        ..link
    }
}

/// The interface that the route names, and the next hop.
fn way(machine: &Machine<'_>, local: IpAddr, peer: Peer) -> Result<(String, Outcome<Option<IpAddr>>), String> {
    let here = Tree::system();
    let direct = |name| (name, Outcome::Measured(None));
    if route::is_own(local, peer.address, &here) {
        return Ok(direct(route::loopback_name()));
    }
    if peer.is_link_local() {
        let named = |index| machine.listed.iter().find(|listed| listed.index == index).map(|listed| listed.name.clone());
        if let Some(name) = peer.interface().and_then(named) {
            return Ok(direct(name));
        }
        let owners = route::owners(local);
        if owners.len() > 1 {
            return Err(several_owners(local, &owners));
        }
        return owners.into_iter().next().map(direct).ok_or_else(|| no_route(peer.address));
    }
    if let Some((name, gateway)) = machine.route(peer.address) {
        return Ok((name, Outcome::Measured(gateway)));
    }
    let owner = route::from_owner(local).and_then(|route| route.name).ok_or_else(|| no_route(peer.address))?;
    Ok((owner, Outcome::skipped("no program of this system told the route, so whether a router lies between is not known")))
}

fn no_route(peer: IpAddr) -> String {
    format!("no source tells which interface leads to {peer}: neither the system's route nor its list of addresses")
}

/// The interface that the route leaves by, and its kind, without whatever takes seconds.
pub(in crate::link) fn leaves_by(local: IpAddr, peer: Peer) -> Option<(String, Kind)> {
    let machine = Machine::quick(TELLER, ports::listed(), &ports::ask);
    let (top, _) = way(&machine, local, peer).ok()?;
    let kind = machine.one(&top).0.kind;
    Some((top, kind))
}

/// The counters of `names`; an interface without any is left out.
pub(in crate::link) fn counters(names: &[String]) -> Outcome<CountersByInterface> {
    let machine = Machine::quick(TELLER, ports::listed(), &ports::ask);
    let all: CountersByInterface = names.iter().filter_map(|name| Some((name.clone(), machine.count(name)?))).collect();
    if all.is_empty() {
        return Outcome::skipped("neither the system's list of interfaces nor a program of its own (netstat) tells any counters");
    }
    Outcome::Measured(all)
}

/// All ports of the host; see `link::collect_all`.
pub(in crate::link) fn collect_all() -> Outcome<HostLink> {
    let machine = Machine::new(TELLER, ports::listed(), &ports::ask, None);
    let names = machine.names();
    let addressed: Vec<String> =
        if_addrs::get_if_addrs().unwrap_or_default().into_iter().filter(|it| !it.is_loopback()).map(|it| it.name).collect();
    let (mut stack, mut left_out): (Vec<Interface>, u32) = (Vec::new(), 0);
    for top in tops(&machine, &names, &addressed) {
        for interface in machine.stack(&top) {
            if stack.iter().any(|known| known.name == interface.name) {
                continue;
            }
            if stack.len() < MOST {
                stack.push(interface);
            } else {
                left_out = left_out.saturating_add(1);
            }
        }
    }
    if stack.is_empty() {
        return Outcome::failed(if names.is_empty() {
            "the system's list of interfaces is empty, and no program of its own names one".to_owned()
        } else {
            nothing_to_see(&names)
        });
    }
    let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let owned = addresses(&machine, &stack);
    Outcome::Measured(joined(HostLink {
        gateway: Outcome::skipped("no host was named, so no route was looked up"),
        addresses: owned,
        left_out,
        ..HostLink::new(any, any, stack)
    }))
}

/// The interfaces that are worth a look and stand below no other, ports with a cable first.
pub(super) fn tops(machine: &Machine<'_>, names: &[String], addressed: &[String]) -> Vec<String> {
    let all: Vec<(Interface, Vec<String>)> = names.iter().map(|name| machine.one(name)).collect();
    let has_one = |name: &String| addressed.contains(name);
    // A VLAN's port is one of the host's by itself too.
    let shows = |it: &Interface| it.bond.is_some() || (it.kind == Kind::Bridge && has_one(&it.name));
    let inner: Vec<&String> = all.iter().filter(|(it, _)| shows(it)).flat_map(|(_, below)| below).collect();
    let mut tops: Vec<(u8, &String)> = Vec::new();
    for (interface, _) in &all {
        let rank = match interface.kind {
            Kind::Loopback => continue,
            _ if inner.contains(&&interface.name) => continue,
            Kind::Bond | Kind::Team => 0,
            Kind::Physical => 1,
            Kind::VirtualMachine | Kind::Wifi => 2,
            _ if has_one(&interface.name) => 3,
            _ => continue,
        };
        tops.push((rank, &interface.name));
    }
    tops.sort_by_key(|(rank, name)| (*rank, natural(name)));
    tops.into_iter().map(|(_, name)| name.clone()).collect()
}

/// The host's own addresses, each with its port; the loopback interface's are left out.
fn addresses(machine: &Machine<'_>, stack: &[Interface]) -> Outcome<Vec<HostAddress>> {
    let listed = match if_addrs::get_if_addrs() {
        Ok(listed) => listed,
        Err(error) => return Outcome::failed(format!("the system does not tell its addresses ({error})")),
    };
    let mut asked: Vec<Interface> = stack.to_vec();
    let known = listed.into_iter().filter(|it| !it.is_loopback()).take(MOST_ADDRESSES).map(|it| {
        if !asked.iter().any(|known| known.name == it.name) {
            asked.push(machine.one(&it.name).0);
        }
        let told = asked.iter().find(|known| known.name == it.name);
        HostAddress {
            address: it.ip(),
            prefix: match &it.addr {
                if_addrs::IfAddr::V4(v4) => v4.prefixlen,
                if_addrs::IfAddr::V6(v6) => v6.prefixlen,
            },
            kind: told.map_or(Kind::Unknown, |told| told.kind),
            speed_bps: told.and_then(|told| Some(told.speed_bps.measured()?.value)),
            carrier: told.and_then(|told| told.carrier.measured().copied()),
            interface: it.name,
        }
    });
    Outcome::Measured(known.collect())
}
