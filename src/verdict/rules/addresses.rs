//! The right cable is there and another one is used: a faster port of both hosts in one subnet, or two ports in one subnet.

use super::super::ideal;
use super::super::ladder::Part;
use super::super::limits;
use super::super::seen::Seen;
use super::list::{Explains, Hit, Rule, RuleDoc};
use crate::model::Role;
use crate::model::finding::Where;
use crate::model::link::{HostAddress, HostLink, InterfaceKind};
use crate::units::BitRate;

const FASTER: &str = "network.slower-port-used";
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
];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    let mut hits: Vec<Hit> = [Role::Pc, Role::Nas].into_iter().filter_map(|role| two_ports(seen, role)).collect();
    hits.extend(faster(seen));
    hits
}

/// Addresses of ports with a cable, as far as a link is there.
fn cabled(link: &HostLink) -> impl Iterator<Item = &HostAddress> {
    let kinds = [InterfaceKind::Physical, InterfaceKind::Bond, InterfaceKind::Team, InterfaceKind::Vlan];
    let all = link.addresses.measured().into_iter().flatten();
    all.filter(move |it| kinds.contains(&it.kind) && it.carrier != Some(false))
}

fn two_ports(seen: &Seen<'_>, role: Role) -> Option<Hit> {
    let link = seen.end(role).link?;
    // Link-local addresses are on every port.
    let local = |it: &&HostAddress| match it.address {
        std::net::IpAddr::V4(v4) => v4.is_link_local(),
        std::net::IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    let meant = |it: &&HostAddress| !local(it) && (link.peer.is_unspecified() || it.holds(link.peer));
    let ports: Vec<&HostAddress> = cabled(link).filter(meant).collect();
    let (one, other) = ports.iter().enumerate().find_map(|(at, one)| {
        let rest = ports.get(at + 1..).unwrap_or_default();
        rest.iter().find(|other| other.interface != one.interface && one.holds(other.address)).map(|other| (*one, *other))
    })?;
    let speed = |it: &HostAddress| it.speed_bps.map(|rate| format!(" ({rate})")).unwrap_or_default();
    Some(
        Hit::new(TWO, role, Explains::Info)
            .weight(0.6, 1)
            .shows(format!(
                "The {}'s {}{} has {} and its {}{} has {}: one subnet, two cables.",
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

/// A pair of ports in one subnet that is faster than the pair in use.
fn faster(seen: &Seen<'_>) -> Option<Hit> {
    let (pc, nas) = (seen.end(Role::Pc).link?, seen.end(Role::Nas).link?);
    // What the user states of a cable is about the one in use.
    let used = |role: Role| seen.end(role).total;
    let now = used(Role::Pc).zip(used(Role::Nas)).map(|(a, b)| a.min(b))?;
    let pairs = cabled(pc).flat_map(|ours| cabled(nas).map(move |theirs| (ours, theirs)));
    let better = pairs.filter_map(|(ours, theirs)| {
        let in_use = ours.address == pc.local && theirs.address == nas.local;
        let speed = ours.speed_bps?.min(theirs.speed_bps?);
        let meets = ours.holds(theirs.address) && theirs.holds(ours.address) && ours.address.is_ipv4() == pc.local.is_ipv4();
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
