//! Frames that arrive damaged.

use super::super::counted::{Counted, counted, watched};
use super::super::limits;
use super::super::phases::{Phase, phases, slow_copies};
use super::super::seen::Seen;
use super::super::words::{bytes, percent};
use super::list::{Explains, Hit, Rule, RuleDoc};
use crate::model::counter::{Meaning, Side, Tells};
use crate::model::{Direction, Role};

const CODE: &str = "network.cable-errors";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "Damaged frames arrive",
        meaning: "A cable, plug, port or module damages frames on the way; every damaged frame is lost and must be sent again.",
        detected: "Counters of checksum, alignment and symbol errors, by what each driver means with its names, that grew at an interface *during* a pass, a copy or the disk tests. They explain a copy only where a thousandth of its frames and more were damaged. Old errors, overruns (a full host) and bits that error correction mended do not count.",
        fix: "Replace the cable at the end that counts the errors, then try another switch port, then the module or card.",
    },
    check,
}];

const REPLACE: &str = "Replace the cable at this end; then try another switch port.";

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
                .advise(REPLACE);
            if !way.gap() {
                // A cable that damages frames is a fault where the cables are the question.
                hit.explains = if seen.doc.plan.scope.is_link() { Explains::Fault } else { Explains::Info };
            }
            hits.push(hit);
        }
    }
    let ends = [Role::Pc, Role::Nas];
    hits.extend(ends.into_iter().filter_map(|role| while_watched(seen, role)));
    hits.extend(
        Direction::BOTH.into_iter().flat_map(|way| ends.into_iter().filter_map(move |role| in_slow_copy(seen, way, role))),
    );
    for role in ends {
        if let Some(told) = beside_passes(seen, role) {
            // One cable is one fault: where the passes tell of it, this is only when else it was seen.
            match hits.iter_mut().find(|hit| hit.place == role.into()) {
                Some(hit) => hit.evidence.push(told),
                None => hits.push(Hit::new(CODE, role, Explains::Info).weight(0.8, 1).shows(told).advise(REPLACE)),
            }
        }
    }
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
            .advise(REPLACE)
    })
}

/// The copies and disk tests in which damaged frames arrived, the most first.
fn damaged_phases<'a>(seen: &Seen<'a>, role: Role) -> Vec<(u64, Phase<'a>, Counted<'a>)> {
    let all = phases(seen).into_iter().map(|phase| {
        let counted = phase.counted(seen, role);
        (counted.most(damaged), phase, counted)
    });
    let mut found: Vec<_> = all.filter(|(grown, ..)| *grown >= limits::CABLE_ERRORS).collect();
    found.sort_by_key(|(grown, ..)| std::cmp::Reverse(*grown));
    found
}

/// Damaged frames outside the passes, in words.
fn beside_passes(seen: &Seen<'_>, role: Role) -> Option<String> {
    let found = damaged_phases(seen, role);
    let (grown, phase, counted) = found.first()?;
    let names = counted.names(damaged).map(|names| format!(" ({names})")).unwrap_or_default();
    let more = match found.len() {
        1 => String::new(),
        2 => ", and some in one more copy or disk test".to_owned(),
        many => format!(", and some in {} more copies or disk tests", many - 1),
    };
    Some(format!("{grown} damaged frames arrived at the {} during {}{names}{more}.", role.title(), phase.words))
}

/// So many damaged frames during a copy that they explain why it is slow.
fn in_slow_copy(seen: &Seen<'_>, direction: Direction, role: Role) -> Option<Hit> {
    slow_copies(seen, direction).into_iter().find_map(|copy| {
        let counted = copy.phase.counted(seen, role);
        let grown = counted.most(damaged);
        let share = counted.share_of_arrived(grown).filter(|share| *share >= limits::PORT_DROPS)?;
        if grown < limits::CABLE_ERRORS {
            return None;
        }
        let step = copy.step;
        Some(
            Hit::new(CODE, role, Explains::large_files(seen, direction, step.kind))
                .towards(direction)
                .lane(step.kind)
                .weight(if role == direction.receiver() { 0.9 } else { 0.85 }, 2)
                .relieved(Some(step.expected))
                .shows(format!(
                    "{grown} damaged frames, {} of all, arrived at the {} during {}, which moves {} of the {} below it.",
                    percent(share),
                    role.title(),
                    copy.phase.words,
                    bytes(step.rate),
                    bytes(step.expected)
                ))
                .noting(counted.names(damaged).map(|names| format!("The counters that say so: {names}.")))
                .advise(REPLACE),
        )
    })
}
