//! A router or firewall between the hosts.

use super::super::limits;
use super::super::seen::{Seen, Way};
use super::super::words::percent;
use super::list::{Hit, Rule, RuleDoc};
use crate::model::Role;
use crate::model::finding::Where;

const CODE: &str = "network.routed-or-firewalled";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "The traffic goes through a router or firewall",
        meaning: "The two hosts are in different subnets, so a router carries every packet between them. Small routers and firewalls that inspect packets carry less than their ports.",
        detected: "A next hop on the kernel's route to the other end, TCP clearly below the wire, and no other evidence. A hint only: the router itself was not seen.",
        fix: "Put both hosts into one subnet for a comparison; if that is fast, the router is the limit: turn its inspection off for this traffic, or let a switch carry it.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() || seen.ends.iter().any(super::super::seen::End::without_cable) {
        return Vec::new();
    }
    seen.ways.iter().filter_map(|way| routed(seen, way)).collect()
}

fn routed(seen: &Seen<'_>, way: &Way<'_>) -> Option<Hit> {
    let share = way.share().filter(|share| *share < limits::NEAR_LINE_RATE)?;
    let hop = |role: Role| seen.end(role).link?.gateway.measured().copied().flatten().map(|address| (role, address));
    let (role, address) = [Role::Pc, Role::Nas].into_iter().find_map(hop)?;
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
