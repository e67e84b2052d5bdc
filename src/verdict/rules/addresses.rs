//! The right cable is there and another one is used: a faster port of both hosts in one subnet, or two ports in one subnet.

use std::collections::HashSet;
use std::net::IpAddr;

use super::super::counted::raw;
use super::super::ideal;
use super::super::ladder::Part;
use super::super::limits;
use super::super::seen::Seen;
use super::list::{Explains, Hit, Rule, RuleDoc};
use crate::model::finding::Where;
use crate::model::link::{HostAddress, HostLink, InterfaceKind};
use crate::model::{Direction, Role};
use crate::units::BitRate;

const FASTER: &str = "network.slower-port-used";
const ASYMMETRIC: &str = "network.asymmetric-route";
/// More addresses of one end than these are not compared.
const MOST: usize = 64;
const TWO: &str = "network.two-ports-one-subnet";

pub(super) const RULES: &[Rule] = &[
    Rule {
        doc: RuleDoc {
            code: FASTER,
            title: "A faster port leads to the other host, and is not used",
            meaning: "Both hosts have a faster port with addresses in one subnet, but the name or address that was used belongs to a slower one, so every copy takes the slow cable.",
            detected: "All addresses of both hosts with the speeds of their ports: a pair in one subnet is faster than the pair that the route uses. Whether its cable leads to the other host was not tried.",
            fix: "Use the address of the faster port (mount the share by it, or put it into the hosts file), and measure again with it.",
        },
        check,
    },
    Rule {
        doc: RuleDoc {
            code: TWO,
            title: "Two ports of one host are in the same subnet",
            meaning: "The host answers for both addresses on either port (ARP flux) and sends all of the subnet by one of them, whatever address is used. A copy may come in by one cable and leave by the other, or take the slower one.",
            detected: "Two ports with a link whose addresses share a subnet that the other host is in.",
            fix: "Give each port a subnet of its own, join the ports into one aggregation, or take the address from one of them.",
        },
        check: super::list::elsewhere,
    },
    Rule {
        doc: RuleDoc {
            code: ASYMMETRIC,
            title: "Data arrive at one port and leave by another",
            meaning: "The address that was used belongs to one port of the NAS, and its route back to the PC leaves by another one. Uploads take the one cable and downloads the other, so both can run at different speeds, and a firewall on the way may drop what it sees half of.",
            detected: "The interface that has the NAS's address is not on the way that the kernel's route to the PC takes.",
            fix: "Use the address of the port that the route leaves by, or give each port a subnet of its own.",
        },
        check: super::list::elsewhere,
    },
];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    let mut hits: Vec<Hit> = [Role::Pc, Role::Nas].into_iter().filter_map(|role| two_ports(seen, role)).collect();
    hits.extend(faster(seen));
    hits.extend(asymmetric(seen));
    hits
}

/// All addresses of a host that other hosts can tell apart, as far as a link is there: link-local ones are on every port.
fn linked(link: &HostLink) -> impl Iterator<Item = &HostAddress> {
    let local = |it: &HostAddress| match it.address.to_canonical() {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    let all = link.addresses.measured().into_iter().flatten();
    all.filter(move |it| it.carrier != Some(false) && !local(it))
}

/// Whether a port has a cable, so that its speed is one.
fn cabled(it: &HostAddress) -> bool {
    matches!(it.kind, InterfaceKind::Physical | InterfaceKind::Bond | InterfaceKind::Team | InterfaceKind::Vlan)
}

fn two_ports(seen: &Seen<'_>, role: Role) -> Option<Hit> {
    let link = seen.end(role).link?;
    // Virtual ports in one subnet answer for each other just the same.
    let port = |it: &&HostAddress| cabled(it) || matches!(it.kind, InterfaceKind::Veth | InterfaceKind::VirtualMachine);
    let meant = |it: &&HostAddress| link.peer.is_unspecified() || it.holds(link.peer);
    let ports: Vec<&HostAddress> = linked(link).filter(port).filter(meant).take(MOST).collect();
    let (one, other) = ports.iter().enumerate().find_map(|(at, one)| {
        let rest = ports.get(at + 1..).unwrap_or_default();
        rest.iter().find(|other| other.interface != one.interface && one.holds(other.address)).map(|other| (*one, *other))
    })?;
    let speed = |it: &HostAddress| {
        let told = it.speed_bps.filter(|rate| rate.0 > 0 && cabled(it));
        told.map(|rate| format!(" ({rate})")).unwrap_or_default()
    };
    Some(
        Hit::new(TWO, role, Explains::Info)
            .weight(0.6, 1)
            .shows(format!(
                "The {}'s {}{} has {} and its {}{} has {}: one subnet, two ports.",
                role.title(),
                one.interface,
                speed(one),
                one.address,
                other.interface,
                speed(other),
                other.address
            ))
            .advise("Give each port a subnet of its own, or join the ports into one aggregation."),
    )
}

/// Whether an address belongs to an interface of the way in use.
fn uses(link: &HostLink, it: &HostAddress) -> bool {
    it.address.to_canonical() == link.local.to_canonical() || link.stack.iter().any(|interface| interface.name == it.interface)
}

/// The NAS's address that was used is on another port than its route back.
fn asymmetric(seen: &Seen<'_>) -> Option<Hit> {
    let link = seen.end(Role::Nas).link?;
    let top = link.top()?;
    let mut with =
        link.addresses.measured().into_iter().flatten().filter(|it| it.address.to_canonical() == link.local.to_canonical());
    // The same address at a port of the way, or at none with a cable, says nothing.
    let beside = |it: &HostAddress| it.kind != InterfaceKind::Loopback && link.stack.iter().all(|on| on.name != it.interface);
    let first = with.next()?;
    if !beside(first) || !with.take(MOST).all(beside) || arrives(seen, &top.name) == Some(true) {
        return None;
    }
    // A host takes its address in by any port; only what was counted shows by which.
    let may = if arrives(seen, &top.name).is_some() { "arrive" } else { "may arrive" };
    Some(
        Hit::new(ASYMMETRIC, Role::Nas, Explains::Info)
            .weight(0.6, 1)
            .shows(format!(
                "The NAS's address {} is on its port {}, and its route to {} leaves by {}: uploads {may} at {}, downloads leave by {}.",
                link.local, first.interface, link.peer, top.name, first.interface, top.name
            ))
            .advise(format!("Use an address of {} for the NAS, or give each port a subnet of its own.", top.name)),
    )
}

/// Whether what was uploaded came in by the NAS's interface `name`, as its counter of bytes says; none without a pass or a counter.
fn arrives(seen: &Seen<'_>, name: &str) -> Option<bool> {
    let pass = seen.ways.iter().find(|way| way.direction == Direction::Upload)?.best?;
    let counted = raw(pass, Role::Nas)?.get(name)?.get("rx_bytes").unwrap_or(0);
    (pass.bytes.0 > 0).then_some(counted >= pass.bytes.0 / 2)
}

/// A pair of ports in one subnet that is faster than the pair in use.
fn faster(seen: &Seen<'_>) -> Option<Hit> {
    let (pc, nas) = (seen.end(Role::Pc).link?, seen.end(Role::Nas).link?);
    // What the user states of a cable is about the one in use: it cannot be compared with what ports claim.
    if seen.ends.iter().any(|end| end.stated) {
        return None;
    }
    let used = |role: Role| seen.end(role).total;
    let now = used(Role::Pc).zip(used(Role::Nas)).map(|(a, b)| a.min(b))?;
    let addresses = |link: &HostLink| -> HashSet<IpAddr> { linked(link).map(|it| it.address.to_canonical()).collect() };
    let (all_pc, all_nas) = (addresses(pc), addresses(nas));
    // An address that both hosts have (a bridge of containers, say) leads each to itself.
    let own: Vec<&HostAddress> =
        linked(pc).filter(|it| cabled(it) && !all_nas.contains(&it.address.to_canonical())).take(MOST).collect();
    let other: Vec<&HostAddress> =
        linked(nas).filter(|it| cabled(it) && !all_pc.contains(&it.address.to_canonical())).take(MOST).collect();
    let pairs = own.iter().flat_map(|ours| other.iter().map(move |theirs| (*ours, *theirs)));
    let better = pairs.filter_map(|(ours, theirs)| {
        // Another address of the same two ports is no other cable.
        let in_use = uses(pc, ours) && uses(nas, theirs);
        let speed = ours.speed_bps?.min(theirs.speed_bps?);
        let meets = ours.holds(theirs.address)
            && theirs.holds(ours.address)
            && ours.address.to_canonical().is_ipv4() == pc.local.to_canonical().is_ipv4();
        (!in_use && meets && speed.as_f64() >= limits::SPEED_STEP * now.as_f64()).then_some((speed, ours, theirs))
    });
    let (speed, ours, theirs): (BitRate, _, _) = better.max_by_key(|(speed, ..)| *speed)?;
    Some(
        Hit::new(FASTER, Where::Path, Explains::Part(Part::Line))
            .weight(0.88, 2)
            .relieved(Some(ideal::wire_ceiling(speed, seen.mtu, seen.ip)))
            .shows(format!("The route runs from {} to {}, over ports of {now}.", pc.local, nas.local))
            .shows(format!(
                "The PC's {} ({}) and the NAS's {} ({}) are in one subnet too, and run at {speed}.",
                ours.interface, ours.address, theirs.interface, theirs.address
            ))
            .advise(format!("Use the address {} for the NAS, and measure again with it.", theirs.address)),
    )
}
