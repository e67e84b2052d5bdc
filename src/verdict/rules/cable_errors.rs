//! Frames that arrive damaged.

use super::super::limits;
use super::super::seen::Seen;
use super::list::{Explains, Hit, Rule, RuleDoc};
use crate::model::Role;
use crate::model::link::CountersByInterface;
use crate::model::throughput::Pass;

const CODE: &str = "network.cable-errors";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "Damaged frames arrive",
        meaning: "A cable, plug, port or module damages frames on the way; every damaged frame is lost and must be sent again.",
        detected: "Counters of checksum, alignment and symbol errors that grew at an interface *during* a pass. Old errors and overruns (a full host) do not count.",
        fix: "Replace the cable at the end that counts the errors, then try another switch port, then the module or card.",
    },
    check,
}];

/// Parts of the names that drivers give to counters of damaged frames.
const NAMES: [&str; 7] = ["crc", "fcs", "align", "symbol", "jabber", "rx_frame_errors", "code_error"];

fn damaged(counters: &CountersByInterface) -> u64 {
    let one = |counters: &crate::model::link::Counters| {
        // One damaged frame moves several counters: the largest is the number of frames.
        let named = counters.0.iter().filter(|(name, _)| NAMES.iter().any(|part| name.to_ascii_lowercase().contains(part)));
        named.map(|(_, grown)| *grown).max().unwrap_or(0)
    };
    counters.values().map(one).max().unwrap_or(0)
}

fn counters(pass: &Pass, role: Role) -> Option<&CountersByInterface> {
    match role {
        Role::Pc => pass.counters_pc.measured(),
        Role::Nas => pass.counters_nas.measured(),
    }
}

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    let mut hits = Vec::new();
    for way in &seen.ways {
        for role in [Role::Pc, Role::Nas] {
            let passes = way.single.into_iter().chain(way.multi);
            let grown = passes.filter_map(|pass| counters(pass, role)).map(damaged).max().unwrap_or(0);
            if grown < limits::CABLE_ERRORS {
                continue;
            }
            let mut hit = Hit::tcp(CODE, role, way.direction)
                .weight(if role == way.direction.receiver() { 0.9 } else { 0.85 }, 2)
                .shows(format!("{grown} damaged frames arrived at the {} during {}.", role.title(), way.direction.arrow()))
                .advise("Replace the cable at this end; then try another switch port.");
            if !way.gap() {
                hit.explains = Explains::Info;
            }
            hits.push(hit);
        }
    }
    hits
}
