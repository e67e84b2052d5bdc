//! A port that cannot send and receive at once.

use super::super::phases::everywhere;
use super::super::seen::Seen;
use super::list::{Explains, Hit, Rule, RuleDoc};
use crate::model::Role;
use crate::model::counter::{Meaning, Tells};
use crate::model::link::Duplex;
use crate::model::link_event::{EventKind, LinkEvent};

const CODE: &str = "network.half-duplex";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "A port runs at half duplex",
        meaning: "The port cannot send while it receives. TCP, whose acknowledgements flow backwards, collapses; with a partner at full duplex there are late collisions as well.",
        detected: "The negotiated duplex of the physical ports on the route.",
        fix: "Let both ends negotiate (a fixed speed at one side makes the other fall back to half duplex), or replace the hub or cable.",
    },
    check,
}];

fn collided(meaning: Meaning) -> bool {
    meaning.tells == Tells::Collision
}

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    let mut hits = Vec::new();
    for role in [Role::Pc, Role::Nas] {
        if seen.local() {
            continue;
        }
        let end = seen.end(role);
        let half = end.ports().into_iter().filter(|i| i.duplex.measured().is_some_and(|fact| fact.value == Duplex::Half));
        for port in half {
            let fixed = port.autoneg.measured().filter(|fact| !fact.value);
            let fixed = fixed.map(|_| "Automatic negotiation is off at this port.".to_owned());
            let collisions =
                everywhere(seen, role).find_map(|(during, counted)| counted.names(collided).map(|names| (during, names)));
            let collisions = collisions.map(|(during, names)| format!("Collisions were counted during {during}: {names}."));
            let assumed = |event: &&LinkEvent| event.kind == EventKind::HalfDuplexAssumed && event.interface == port.name;
            let assumed = end.events().into_iter().rev().find(assumed);
            let assumed = assumed.map(|event| format!("The kernel's log says so too: {}", event.text));
            let explains = if seen.ways.iter().any(super::super::seen::Way::gap) { Explains::Network } else { Explains::Fault };
            hits.push(
                Hit::new(CODE, role, explains)
                    .weight(0.93, 2)
                    .shows(format!("The {}'s port {} runs at half duplex.", role.title(), port.name))
                    .also(fixed)
                    .noting(collisions)
                    .noting(assumed)
                    .advise("Turn automatic negotiation on at both sides of this cable."),
            );
        }
    }
    hits
}
