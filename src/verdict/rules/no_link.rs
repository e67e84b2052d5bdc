//! The way to the other host leaves by a port without a link.

use super::super::seen::Seen;
use super::list::{Explains, Hit, Rule, RuleDoc};
use crate::model::Role;
use crate::model::link::InterfaceKind;
use crate::model::plan::Scope;

const CODE: &str = "network.no-link";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "The port towards the other host has no link",
        meaning: "The route leads out by a port that has no carrier: no cable, a dead cable, or a partner that is off or whose port is shut. Nothing passes.",
        detected: "The carrier of the interface that the kernel's route names.",
        fix: "Plug in the cable, look at the lamps of both ports, and try another cable and another port of the switch.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() || seen.doc.plan.scope == Scope::LinkOfHost {
        return Vec::new();
    }
    let dead = |role: Role| {
        let top = seen.end(role).link?.top().filter(|top| top.carrier.measured() == Some(&false))?;
        let why = top.nic.measured().and_then(|nic| nic.no_link_because.measured());
        Some(
            Hit::new(CODE, role, Explains::Stops)
                .weight(0.95, 2)
                .shows(format!("The {}'s route leaves by {}, which has no link.", role.title(), top.name))
                .noting(why.map(|fact| format!("The driver says: {}.", fact.value)))
                .advise(match top.kind {
                    // A program holds the other end of such an interface.
                    InterfaceKind::Tunnel => format!("Start the program that serves {} (a VPN, a virtual machine).", top.name),
                    InterfaceKind::Wifi => format!("Join the wireless network with {} first.", top.name),
                    _ => format!("Plug in the cable of {}, then try another cable and another port of the switch.", top.name),
                }),
        )
    };
    [Role::Pc, Role::Nas].into_iter().filter_map(dead).collect()
}
