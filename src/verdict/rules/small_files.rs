//! Small files, where the time of each counts and not the rate.

use super::super::ladder::{LaneStep, Part, lane_steps};
use super::super::limits;
use super::super::seen::Seen;
use super::super::words::bytes;
use super::list::{Explains, Hit, Rule, RuleDoc};
use crate::model::Direction;
use crate::model::copy::FileSet;
use crate::model::finding::Where;
use crate::model::plan::Workload;

const CODE: &str = "protocol.small-files-latency";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "Small files wait for round trips",
        meaning: "Every file costs some round trips and a place in the directory, whatever the rate of the link. A thousand small files take a thousand times that.",
        detected: "Small files reach less than half the large file's rate over the same lane; the mean time of one file is given.",
        fix: "Pack them (tar) before copying, copy several at once, or use a lane that pipelines; a faster link changes nothing.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    let asked = seen.doc.plan.workload == Workload::Small;
    let mut hits = Vec::new();
    for direction in Direction::BOTH {
        let steps = lane_steps(seen, direction, seen.way(direction).rate());
        let falls = |step: &&LaneStep<'_>| {
            step.rung.files == FileSet::Small && step.rate.as_f64() < limits::SMALL_FILES * step.expected.as_f64()
        };
        for step in steps.iter().filter(falls) {
            let explains = if asked { Explains::Part(Part::Lane(step.kind)) } else { Explains::Info };
            let each = step.copied.per_file_us.map(|each| format!("One file takes {each}."));
            hits.push(
                Hit::new(CODE, Where::Path, explains)
                    .towards(direction)
                    .lane(step.kind)
                    .weight(0.85, 1)
                    .relieved(Some(step.expected))
                    .shows(format!(
                        "{}: {} small files over the {} lane move {}, one large file {}.",
                        direction.arrow(),
                        step.copied.files,
                        step.kind.word(),
                        bytes(step.rate),
                        bytes(step.expected)
                    ))
                    .also(each)
                    .advise("Pack small files before copying, or copy several at once."),
            );
        }
    }
    hits
}
