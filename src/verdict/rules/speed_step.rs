//! Drops where a fast port feeds a slow one.

use super::super::limits;
use super::super::seen::{Seen, Sums};
use super::super::words::percent;
use super::list::{Hit, Rule, RuleDoc};
use crate::model::Direction;
use crate::model::finding::Where;

const CODE: &str = "network.speed-step-drops";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "A fast port overruns a slow one",
        meaning: "From the fast end to the slow one the switch (or an SFP+ copper module that hides its real speed) drops what its small buffer cannot hold. The other direction is fine.",
        detected: "The two ends' known speeds differ, only the direction from fast to slow loses packets, and only that direction is slow.",
        fix: "Enable flow control on both switch ports, use a module that tells its true speed, pace the sender, or make both ends equally fast.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    Direction::BOTH.into_iter().filter_map(|direction| step(seen, direction)).collect()
}

fn step(seen: &Seen<'_>, direction: Direction) -> Option<Hit> {
    let (fast, slow) = (seen.end(direction.sender()).flow?, seen.end(direction.receiver()).flow?);
    let way = seen.way(direction);
    let back = seen.ways.iter().find(|other| other.direction != direction)?;
    let lost = Sums::of(way.best?).retransmits?;
    let lost_back = Sums::of(back.best?).retransmits?;
    let steps = fast.as_f64() >= limits::SPEED_STEP * slow.as_f64();
    let one_sided = lost >= limits::STEP_LOSS_SHARE && lost_back * limits::ONE_SIDED < lost;
    let slower = way.rate()?.as_f64() < limits::LOSS_COSTS * back.rate()?.as_f64();
    (steps && one_sided && slower && way.gap()).then(|| {
        Hit::tcp(CODE, Where::Path, direction)
            .weight(0.9, 3)
            .shows(format!("The {} links at {fast}, the {} at {slow}.", direction.sender().title(), direction.receiver().title()))
            .shows(format!(
                "{}: {} of the segments had to be sent again; backwards {}.",
                direction.arrow(),
                percent(lost),
                percent(lost_back)
            ))
            .shows(format!("Backwards {} arrive, this way {}.", back.rate().unwrap_or_default(), way.rate().unwrap_or_default()))
            .advise("Enable flow control on the switch ports, or use modules that tell the switch their real speed.")
            .advise("Pace the sender to the slower speed, or make both ends equally fast.")
    })
}
