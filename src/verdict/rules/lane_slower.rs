//! A way of copying that costs more than it should, for reasons not seen.

use super::super::ladder::{LaneStep, lane_steps};
use super::super::seen::Seen;
use super::super::words::{bytes, percent};
use super::list::{Explains, Hit, Rule, RuleDoc, elsewhere};
use super::server_core::is_smb;
use crate::model::Direction;
use crate::model::copy::{FileSet, LaneKind};
use crate::model::finding::Where;

pub(super) const RULES: &[Rule] = &[
    Rule {
        doc: RuleDoc {
            code: "protocol.lane-slower-than-others",
            title: "This way of copying is slower than the same copy over plain TCP",
            meaning: "Cable, disks and processors carried more in the same run; what is lost is lost in this protocol or its programs.",
            detected: "The same copy, from and to the same places, over our own TCP and over this lane.",
            fix: "Compare another lane, version or client; the facts listed for the lane show what it negotiated.",
        },
        check,
    },
    Rule {
        doc: RuleDoc {
            code: "protocol.smb-overhead",
            title: "SMB costs a part of the rate",
            meaning: "SMB is somewhat slower than plain TCP here, without one setting or a full process to blame.",
            detected: "The SMB copy reaches between 70 and 90 % of plain TCP with the same disks.",
            fix: "SMB 3 with multichannel, no signing in a trusted network, and large files help most.",
        },
        check: elsewhere,
    },
];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    let Some(copy) = seen.copy() else { return Vec::new() };
    let mut hits = Vec::new();
    for direction in Direction::BOTH {
        let steps = lane_steps(seen, direction, seen.way(direction).rate());
        for lane in copy.lanes.iter().filter(|lane| lane.kind != LaneKind::Raw) {
            let falls = |step: &&LaneStep<'_>| {
                step.kind == lane.kind
                    && step.rung.files == FileSet::Large
                    && step.rate.as_f64() < seen.lane_tolerance() * step.expected.as_f64()
            };
            let Some(step) = steps.iter().find(falls) else { continue };
            let share = step.rate.as_f64() / step.expected.as_f64();
            let smb = is_smb(lane) && share >= 0.7;
            let code = if smb { "protocol.smb-overhead" } else { "protocol.lane-slower-than-others" };
            let same = seen.copied(LaneKind::Raw, direction, (step.rung.from, step.rung.to), FileSet::Large);
            hits.push(
                Hit::new(code, Where::Path, Explains::large_files(seen, direction, lane.kind))
                    .towards(direction)
                    .lane(lane.kind)
                    .weight(0.5, 1)
                    .relieved(Some(step.expected))
                    .shows(format!(
                        "{}: the {} lane moves {}, {} of the {} below it.",
                        direction.arrow(),
                        lane.kind.word(),
                        bytes(step.rate),
                        percent(share),
                        bytes(step.expected)
                    ))
                    .also(same.map(|raw| format!("The same copy over plain TCP moves {}.", bytes(raw))))
                    .advise("Compare with another protocol or program version; no full process and no setting explains it."),
            );
        }
    }
    hits
}
