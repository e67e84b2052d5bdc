//! The route does not use the cable.

use super::super::ladder::Part;
use super::super::seen::Seen;
use super::list::{Explains, Hit, Rule, RuleDoc};
use crate::model::Role;
use crate::model::link::InterfaceKind;

const CODE: &str = "network.wrong-route";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "The traffic takes another way than the cable",
        meaning: "The route to the other end leaves by Wi-Fi, a VPN or a tunnel, though people think of the cable.",
        detected: "The interface that the kernel's route to the peer names, and what it is made of.",
        fix: "Plug in the cable and turn Wi-Fi off for the test, or use the NAS's address in the local network instead of the VPN's.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    let mut hits = Vec::new();
    for role in [Role::Pc, Role::Nas] {
        let Some(detour) = seen.end(role).detour() else { continue };
        let (what, advice) = match detour.kind {
            InterfaceKind::Wifi => ("Wi-Fi", "Connect this host by cable, and turn Wi-Fi off for a comparison."),
            _ => ("a tunnel or VPN", "Use the address of the local network, or take it out of the VPN's routes."),
        };
        hits.push(
            Hit::new(CODE, role, Explains::Part(Part::Tcp))
                .weight(0.9, 2)
                .shows(format!("At the {} the route leaves by {}, which is {what}.", role.title(), detour.name))
                .advise(advice),
        );
    }
    hits
}
