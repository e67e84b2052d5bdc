//! The two ends disagree about the size of packets.

use super::super::seen::Seen;
use super::list::{Explains, Hit, Rule, RuleDoc};
use crate::model::Role;

const CODE: &str = "network.mtu-mismatch";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "The two ends have different MTUs",
        meaning: "One end sends packets that the other one does not accept. TCP agrees on a smaller segment at its start and survives; large UDP packets and ping do not, and any segment size agreed wrongly stalls.",
        detected: "The MTU of the interface that the route uses differs between PC and NAS.",
        fix: "Set the same MTU at both ends and on every switch port between them.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    let (Some(pc), Some(nas)) = (seen.end(Role::Pc).mtu, seen.end(Role::Nas).mtu) else { return Vec::new() };
    if pc == nas || seen.local() {
        return Vec::new();
    }
    let larger = if pc > nas { Role::Pc } else { Role::Nas };
    // The large packets go from the end with the large MTU towards the other.
    let way = if larger == Role::Pc { crate::model::Direction::Upload } else { crate::model::Direction::Download };
    let passed = seen.path(way).map(|path| format!("{}: the largest packet that passed has {} bytes.", way.arrow(), path.mtu));
    vec![
        Hit::new(CODE, larger, Explains::Fault)
            .weight(0.9, 1)
            .towards(way)
            .shows(format!("The MTU is {pc} at the PC and {nas} at the NAS."))
            .also(passed)
            .advise("Set the same MTU at both ends: 1500, or the jumbo size only when every port between them carries it."),
    ]
}
