//! The whole host: every port that it has, and every address.

use std::net::{IpAddr, Ipv4Addr};

use super::collect::{NOBODY_LISTENED, interfaces};
use super::facts::LinkRow;
use super::route;
use super::stack::Host;
use super::tree::{Tree, is_interface_name};
use super::{interface, kind, klog};
use crate::model::link::{HostAddress, HostLink, Interface, InterfaceKind as Kind};
use crate::model::outcome::Outcome;

/// More interfaces than this are not listed; a host of containers has hundreds, and ports with a cable come first.
const MOST: usize = 32;
/// More addresses than this are not listed.
const MOST_ADDRESSES: usize = 64;

/// All ports of this host, with what stands on them: those with a cable, bonds and teams, Wi-Fi, and what else has an address.
///
/// Both addresses are the unspecified one, as no peer is meant. Failed where no source names any interface; it blocks for some
/// milliseconds for each.
pub fn collect_all(tree: &Tree) -> Outcome<HostLink> {
    let rows = if tree.is_live() { route::rows() } else { Vec::new() };
    let addresses = addresses(tree, &rows);
    let addressed = |name: &str| addresses.measured().is_some_and(|all| all.iter().any(|it| it.interface == name));
    let names = names(tree, &rows);
    let tree = &tree.seen_from(rows.iter().find(|row| !row.loopback));
    let host = Host { tree, rows: &rows };
    let (mut stack, mut seen): (Vec<Interface>, Vec<String>) = (Vec::new(), Vec::new());
    for name in tops(&host, names, addressed) {
        for interface in interfaces(&host, &name) {
            if stack.len() < MOST && !seen.contains(&interface.name) {
                seen.push(interface.name.clone());
                stack.push(interface);
            }
        }
    }
    if stack.is_empty() {
        return Outcome::failed(
            "no source names a network interface: neither netlink nor /sys/class/net nor the list of addresses",
        );
    }
    let events = klog::events(&stack, tree);
    klog::add_downshifts(&mut stack, &events);
    let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    Outcome::Measured(HostLink {
        gateway: Outcome::skipped("no host was named, so no route was looked up"),
        neighbours: Outcome::skipped(NOBODY_LISTENED),
        addresses,
        events,
        ..HostLink::new(any, any, stack)
    })
}

/// The names of all interfaces, from the best source that knows any.
fn names(tree: &Tree, rows: &[LinkRow]) -> Vec<String> {
    if !rows.is_empty() {
        return rows.iter().map(|row| row.name.clone()).collect();
    }
    let mut files = tree.names("/sys/class/net");
    files.retain(|name| is_interface_name(name));
    if !files.is_empty() || !tree.is_system() {
        return files;
    }
    let mut names: Vec<String> = if_addrs::get_if_addrs().unwrap_or_default().into_iter().map(|it| it.name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Of these the ones that are worth a look and stand below no other, ports with a cable first.
fn tops(host: &Host<'_>, names: Vec<String>, addressed: impl Fn(&str) -> bool) -> Vec<String> {
    let kind_of = |name: &str| {
        let driver = interface::driver(host.tree, name);
        kind::recognise(host.tree, name, host.row(name), driver.as_ref().map(|driver| driver.value.as_str()))
    };
    let mut tops: Vec<(u8, String)> = Vec::new();
    for name in names {
        let below_another =
            host.row(&name).is_some_and(|row| row.master.is_some()) || host.tree.has(&format!("/sys/class/net/{name}/master"));
        let rank = match kind_of(&name) {
            Kind::Loopback => continue,
            // A port of a bond or bridge is listed below it.
            _ if below_another => continue,
            Kind::Bond | Kind::Team => 0,
            Kind::Physical => 1,
            Kind::VirtualMachine | Kind::Wifi => 2,
            _ if addressed(&name) => 3,
            _ => continue,
        };
        tops.push((rank, name));
    }
    tops.sort();
    tops.into_iter().map(|(_, name)| name).collect()
}

/// The host's own addresses, each with its port; the loopback interface's are left out.
pub(super) fn addresses(tree: &Tree, rows: &[LinkRow]) -> Outcome<Vec<HostAddress>> {
    if !tree.is_system() {
        return Outcome::skipped("addresses can be asked only of the running machine, not of a recording");
    }
    let listed = match if_addrs::get_if_addrs() {
        Ok(listed) => listed,
        Err(error) => return Outcome::failed(format!("the system does not tell its addresses ({error})")),
    };
    let tree = &tree.seen_from(rows.iter().find(|row| !row.loopback));
    let listed = listed.into_iter().filter(|it| !it.is_loopback() && is_interface_name(&it.name)).take(MOST_ADDRESSES);
    let known = listed.map(|it| {
        let row = rows.iter().find(|row| row.name == it.name);
        let driver = interface::driver(tree, &it.name);
        let kind = kind::recognise(tree, &it.name, row, driver.as_ref().map(|driver| driver.value.as_str()));
        let prefix = match &it.addr {
            if_addrs::IfAddr::V4(v4) => v4.prefixlen,
            if_addrs::IfAddr::V6(v6) => v6.prefixlen,
        };
        HostAddress {
            address: it.ip(),
            prefix,
            kind,
            speed_bps: interface::speed_of(tree, &it.name, kind, row),
            carrier: row.and_then(|row| row.carrier),
            interface: it.name,
        }
    });
    Outcome::Measured(known.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str, prefix: u8) -> HostAddress {
        HostAddress {
            interface: "eth0".to_owned(),
            address: address.parse().unwrap(),
            prefix,
            kind: Kind::Physical,
            speed_bps: None,
            carrier: None,
        }
    }

    #[test]
    fn a_subnet_holds_what_shares_its_prefix() {
        for (own, prefix, other, holds) in [
            ("192.168.1.10", 24, "192.168.1.20", true),
            ("192.168.1.10", 24, "192.168.2.20", false),
            ("192.168.1.10", 0, "8.8.8.8", true),
            ("192.168.1.10", 32, "192.168.1.10", true),
            ("192.168.1.10", 32, "192.168.1.11", false),
            ("192.168.1.10", 255, "192.168.1.11", false),
            ("fd00::1", 64, "fd00::2", true),
            ("fd00::1", 64, "fd00:0:0:1::2", false),
            ("fd00::1", 64, "192.168.1.1", false),
        ] {
            assert_eq!(at(own, prefix).holds(other.parse().unwrap()), holds, "{own}/{prefix} {other}");
        }
    }

    #[test]
    fn this_host_is_listed_whatever_it_has() {
        match collect_all(&Tree::system()) {
            Outcome::Measured(link) => assert!(link.stack.len() <= MOST && !link.stack.is_empty()),
            Outcome::Failed(why) => assert!(why.reason.contains("no source"), "{why:?}"),
            Outcome::Skipped(why) => panic!("{why:?}"),
        }
    }
}
