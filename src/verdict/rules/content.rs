//! Content that is not what was written.

use super::super::seen::Seen;
use super::list::{Explains, Hit, Rule, RuleDoc};
use crate::model::Role;
use crate::model::finding::Where;
use crate::model::storage::CONTENT_DIFFERS;

const CODE: &str = "disk.content-differs";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "Data comes back changed",
        meaning: "Test data that was written and read back is not the same. Something on the way corrupts data: memory, a controller, a disk, a driver, or a program between. This matters more than any speed.",
        detected: "Every test file has known content; it is compared when it is read back, by the disk tests and by each lane of the copy pass.",
        fix: "Copy nothing that matters until it is found: test the memory of both hosts, read the SMART values of the disks and the kernel's log, then repeat with another cable, port or protocol to see which part the fault follows.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    let hit = |place: Where, shows: String| {
        Hit::new(CODE, place, Explains::Stops)
            .weight(1.0, 1)
            .shows(shows)
            .advise("Test the memory of both hosts, read the disks' SMART values and the kernel's log.")
            .advise("Repeat over another lane: where the fault stays, there it sits.")
    };
    let lanes = seen.copy().into_iter().flat_map(|copy| &copy.lanes);
    let copies = lanes.flat_map(|lane| lane.rungs.iter().map(move |rung| (lane.kind, rung)));
    let mut hits: Vec<Hit> = copies
        .filter_map(|(kind, rung)| {
            let crate::model::Outcome::Failed(why) = &rung.result.measured()?.verified_bytes else { return None };
            let shows = format!("{}, lane {}: {}.", rung.direction.arrow(), kind.word(), why.reason);
            Some(hit(Where::Path, shows).towards(rung.direction).lane(kind))
        })
        .collect();
    for role in [Role::Pc, Role::Nas] {
        let disk = seen.doc.measurements.storage.measured().and_then(|storage| storage.of(role).measured());
        let reason = disk.and_then(|disk| disk.read.why()).filter(|reason| reason.contains(CONTENT_DIFFERS));
        hits.extend(reason.map(|reason| hit(role.into(), format!("The {}'s disk by itself: {reason}.", role.title()))));
    }
    hits
}
