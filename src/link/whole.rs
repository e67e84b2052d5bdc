//! The whole host: every port that it has, and every address.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use super::collect::{NOBODY_LISTENED, interfaces};
use super::facts::LinkRow;
use super::route;
use super::stack::Host;
use super::tree::{Tree, is_interface_name};
use super::{elsewhere, interface, klog};
use crate::model::link::{HostAddress, HostLink, Interface, InterfaceKind as Kind};
use crate::model::outcome::Outcome;
use crate::units::BitRate;

/// More interfaces than this are not listed; a host of containers has hundreds, and ports with a cable come first.
pub(super) const MOST: usize = 32;
/// More addresses than this are not listed.
pub(super) const MOST_ADDRESSES: usize = 64;

/// All ports of this host, with what stands on them: those with a cable, bonds and teams, Wi-Fi, and what else has an address.
///
/// Both addresses are the unspecified one, as no peer is meant. Failed where no source names any interface; it blocks for some
/// milliseconds for each.
pub fn collect_all(tree: &Tree) -> Outcome<HostLink> {
    if elsewhere::used(tree) {
        return elsewhere::collect_all();
    }
    let rows = if tree.is_live() { route::rows() } else { Vec::new() };
    let addresses = addresses(tree, &rows);
    let has_one = |name: &str| addresses.measured().is_some_and(|all| all.iter().any(|it| it.interface == name));
    let names = names(tree, &rows);
    let tree = &tree.seen_from(rows.iter().find(|row| !row.loopback));
    let host = Host { tree, rows: &rows, leading: &[] };
    let (mut stack, mut seen): (Vec<Interface>, Vec<String>) = (Vec::new(), Vec::new());
    let known = names.clone();
    let mut left_out = u32::try_from(names.iter().filter(|name| name.contains('\u{fffd}')).count()).unwrap_or(u32::MAX);
    for name in tops(&host, names, has_one) {
        for interface in interfaces(&host, &name) {
            if seen.contains(&interface.name) {
                continue;
            }
            seen.push(interface.name.clone());
            if stack.len() < MOST {
                stack.push(interface);
            } else {
                left_out = left_out.saturating_add(1);
            }
        }
    }
    if stack.is_empty() && !known.is_empty() {
        return Outcome::failed(nothing_to_see(&known));
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
        left_out,
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
    let kind_of = |name: &str| interface::kind_of(host, name);
    let mut tops: Vec<(u8, String)> = Vec::new();
    for name in names {
        let below_another = listed_below(host, &name, &kind_of, &addressed);
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
    tops.sort_by_key(|(rank, name)| (*rank, natural(name)));
    tops.into_iter().map(|(_, name)| name).collect()
}

/// Whether the interface is a port of one that is listed with its ports: a VRF has none, and a bridge without an address is left out.
fn listed_below(host: &Host<'_>, name: &str, kind_of: &impl Fn(&str) -> Kind, addressed: &impl Fn(&str) -> bool) -> bool {
    let row = host.row(name).and_then(|row| row.master).and_then(|index| host.rows.iter().find(|row| row.index == index));
    let of_file = || host.tree.link_name(&format!("/sys/class/net/{name}/master"));
    let Some(master) = row.map(|row| row.name.clone()).or_else(of_file) else { return false };
    match kind_of(&master) {
        Kind::Bond | Kind::Team => true,
        Kind::Bridge => addressed(&master),
        _ => false,
    }
}

/// A name with its numbers as numbers, so that eth2 comes before eth10.
pub(super) fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts: Vec<(String, u64)> = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let (word, behind) = rest.split_at(rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len()));
        let (number, next) = behind.split_at(behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len()));
        parts.push((word.to_owned(), number.parse().unwrap_or(0)));
        rest = next;
    }
    parts
}

/// Why a host with interfaces has no port to look at.
pub(super) fn nothing_to_see(names: &[String]) -> String {
    let shown = names.iter().take(8).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = if names.len() > 8 { format!(" and {} more", names.len() - 8) } else { String::new() };
    format!(
        "this host has no port of its own, only {shown}{more} (the loopback interface, and virtual ones without an address); in a container the ports are those of the machine around it"
    )
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
    let host = &Host { tree, rows, leading: &[] };
    // An interface has several addresses, and is asked once.
    let mut asked: BTreeMap<String, (Kind, Option<BitRate>)> = BTreeMap::new();
    let known = listed.map(|it| {
        let row = host.row(&it.name);
        let (kind, speed_bps) = *asked.entry(it.name.clone()).or_insert_with(|| {
            let kind = interface::kind_of(host, &it.name);
            (kind, interface::speed_of(tree, &it.name, kind, row))
        });
        let prefix = match &it.addr {
            if_addrs::IfAddr::V4(v4) => v4.prefixlen,
            if_addrs::IfAddr::V6(v6) => v6.prefixlen,
        };
        HostAddress { address: it.ip(), prefix, kind, speed_bps, carrier: row.and_then(|row| row.carrier), interface: it.name }
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
    fn numbers_in_names_count_as_numbers() {
        let mut names = ["eth10", "eth2", "enp1s0f1", "eth2.7", "enp1s0", "lan"];
        names.sort_by_key(|name| natural(name));
        assert_eq!(names, ["enp1s0", "enp1s0f1", "eth2", "eth2.7", "eth10", "lan"]);
    }

    #[test]
    fn a_port_is_listed_by_itself_unless_its_master_is_listed_with_its_ports() {
        let row = |index, name: &str, kind: &str, master| LinkRow {
            index,
            name: name.into(),
            kind: (!kind.is_empty()).then(|| kind.into()),
            master,
            ..LinkRow::default()
        };
        let tree = Tree::new("/nonexistent");
        for (kind, with_address, below) in
            [("bond", false, true), ("bridge", true, true), ("bridge", false, false), ("vrf", true, false)]
        {
            let rows = [row(1, "up0", kind, None), row(2, "eth0", "dsa", Some(1))];
            let host = Host { tree: &tree, rows: &rows, leading: &[] };
            let listed = tops(&host, vec!["up0".into(), "eth0".into()], |name| with_address && name == "up0");
            assert_eq!(!listed.iter().any(|name| name == "eth0"), below, "{kind} {with_address}: {listed:?}");
        }
    }

    #[test]
    fn this_host_is_listed_whatever_it_has() {
        match collect_all(&Tree::system()) {
            Outcome::Measured(link) => assert!(link.stack.len() <= MOST && !link.stack.is_empty()),
            Outcome::Failed(why) => assert!(why.reason.contains("no source") || why.reason.contains("no port but"), "{why:?}"),
            Outcome::Skipped(why) => panic!("{why:?}"),
        }
    }
}
