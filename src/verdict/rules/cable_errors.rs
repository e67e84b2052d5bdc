//! Frames that arrive damaged.

use super::super::counted::{counted, watched};
use super::super::limits;
use super::super::seen::Seen;
use super::list::{Explains, Hit, Rule, RuleDoc};
use crate::model::Role;
use crate::model::counter::{Meaning, Side, Tells};

const CODE: &str = "network.cable-errors";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "Damaged frames arrive",
        meaning: "A cable, plug, port or module damages frames on the way; every damaged frame is lost and must be sent again.",
        detected: "Counters of checksum, alignment and symbol errors, by what each driver means with its names, that grew at an interface *during* a pass. Old errors, overruns (a full host) and bits that error correction mended do not count.",
        fix: "Replace the cable at the end that counts the errors, then try another switch port, then the module or card.",
    },
    check,
}];

/// Frames that arrived damaged, by any counter of theirs.
fn damaged(meaning: Meaning) -> bool {
    meaning.tells == Tells::Cable && meaning.side != Side::Tx
}

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    let mut hits = Vec::new();
    for way in &seen.ways {
        for role in [Role::Pc, Role::Nas] {
            let passes = way.single.into_iter().chain(way.multi);
            let Some(counted) = passes.map(|pass| counted(seen, pass, role)).max_by_key(|counted| counted.most(damaged)) else {
                continue;
            };
            // One damaged frame moves several counters: the largest is the number of frames.
            let grown = counted.most(damaged);
            if grown < limits::CABLE_ERRORS {
                continue;
            }
            let mut hit = Hit::tcp(CODE, role, way.direction)
                .weight(if role == way.direction.receiver() { 0.9 } else { 0.85 }, 2)
                .shows(format!("{grown} damaged frames arrived at the {} during {}.", role.title(), way.direction.arrow()))
                .noting(counted.names(damaged).map(|names| format!("The counters that say so: {names}.")))
                .advise("Replace the cable at this end; then try another switch port.");
            if !way.gap() {
                // A cable that damages frames is a fault where the cables are the question.
                hit.explains = if seen.doc.plan.scope.is_link() { Explains::Fault } else { Explains::Info };
            }
            hits.push(hit);
        }
    }
    hits.extend([Role::Pc, Role::Nas].into_iter().filter_map(|role| while_watched(seen, role)));
    hits
}

/// Damaged frames of other traffic, while the counters were only watched.
fn while_watched(seen: &Seen<'_>, role: Role) -> Option<Hit> {
    let (counted, time) = watched(seen, role)?;
    let grown = counted.most(damaged);
    (grown >= limits::CABLE_ERRORS).then(|| {
        Hit::new(CODE, role, Explains::Fault)
            .weight(0.9, 1)
            .shows(format!("{grown} damaged frames arrived at the {} within {time}, in which it was only watched.", role.title()))
            .noting(counted.names(damaged).map(|names| format!("The counters that say so: {names}.")))
            .advise("Replace the cable at this end; then try another switch port.")
    })
}
