//! A router or firewall between the hosts.

use std::net::IpAddr;

use super::super::limits;
use super::super::seen::{Seen, Way};
use super::super::words::percent;
use super::list::{Explains, Hit, Rule, RuleDoc};
use crate::model::Role;
use crate::model::finding::Where;
use crate::model::plan::Scope;

const CODE: &str = "network.routed-or-firewalled";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "The traffic goes through a router or firewall",
        meaning: "The two hosts are in different subnets, so a router carries every packet between them. Small routers and firewalls that inspect packets carry less than their ports.",
        detected: "A next hop on the kernel's route to the other end, or two hops or more to it; TCP clearly below the wire, and no other evidence. A hint only: the router itself was not seen.",
        fix: "Put both hosts into one subnet for a comparison; if that is fast, the router is the limit: turn its inspection off for this traffic, or let a switch carry it.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    // Where only links are asked for, what a router costs is the question of other commands.
    if seen.doc.plan.scope.is_link() {
        return between(seen).into_iter().collect();
    }
    if seen.ends.iter().any(super::super::seen::End::without_cable) {
        return Vec::new();
    }
    seen.ways.iter().filter_map(|way| routed(seen, way)).collect()
}

/// The next hop that an end's route names.
fn next_hop(seen: &Seen<'_>) -> Option<(Role, IpAddr)> {
    let hop = |role: Role| seen.end(role).link?.gateway.measured().copied().flatten().map(|address| (role, address));
    [Role::Pc, Role::Nas].into_iter().find_map(hop)
}

/// That a router lies between, worth a word beside what the ports say.
fn between(seen: &Seen<'_>) -> Option<Hit> {
    // The host around a tunnel is no router on the way; that detour has a rule of its own.
    if seen.doc.plan.scope == Scope::LinkOfHost || seen.ends.iter().any(super::super::seen::End::without_cable) {
        return None;
    }
    let hops = seen.doc.measurements.link.measured()?.hops.measured().copied().filter(|hops| *hops >= 2);
    let hop = next_hop(seen);
    if hops.is_none() && hop.is_none() {
        return None;
    }
    let mut hit = Hit::new(CODE, Where::Path, Explains::Info)
        .weight(0.6, 1)
        .titled("A router lies between the two hosts".to_owned())
        .also(hops.map(|hops| format!("A router lies between: {hops} hops.")));
    hit = hit.also(hop.map(|(role, address)| format!("The {} reaches the other end by the router {address}.", role.title())));
    Some(hit.advise("The ports of both hosts do not tell what the router carries: put both into one subnet, or measure with `weaklink throughput`."))
}

fn routed(seen: &Seen<'_>, way: &Way<'_>) -> Option<Hit> {
    let share = way.share().filter(|share| *share < limits::NEAR_LINE_RATE)?;
    let (role, address) = next_hop(seen)?;
    Some(
        Hit::tcp(CODE, Where::Path, way.direction)
            .weight(0.5, 1)
            .shows(format!("The {} reaches the other end by the router {address}.", role.title()))
            .shows(format!("{}: {} of what the wire could carry arrive.", way.direction.arrow(), percent(share)))
            .advise(
                "Put both hosts into one subnet and measure again; if that is fast, the router or its inspection is the limit.",
            ),
    )
}
