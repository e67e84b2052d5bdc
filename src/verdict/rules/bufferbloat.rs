//! A queue on the way that fills: it costs answering time, not speed.

use super::super::limits;
use super::super::seen::{Load, Seen, window};
use super::list::{Explains, Hit, Rule, RuleDoc};
use crate::model::finding::Where;
use crate::model::throughput::{Pass, RttSummary};
use crate::model::{Direction, Role};
use crate::units::Elapsed;

const CODE: &str = "network.bufferbloat";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "A queue on the way fills while data flows",
        meaning: "Information only: while a transfer runs, everything else on this path waits in the same queue. Copies are not slower; games, calls and remote desktops are.",
        detected: "Small echoes beside the streams come back at least 5 ms later (median) than on the idle path. 5 ms is what queue management calls a standing queue that is too long (CoDel's target, RFC 8289). Where a host's cores were full meanwhile, the echo may have waited for one of them, too.",
        fix: "Where it disturbs: turn on queue management (fq_codel, cake) at the slower port, or flow control off where a switch buffers much; otherwise leave it.",
    },
    check,
}];

/// How much later the median echo comes back beside the streams than on the idle path.
fn queue(idle: &RttSummary, pass: &Pass) -> Option<(Elapsed, Elapsed)> {
    let loaded = pass.loaded_rtt.measured().filter(|rtt| rtt.received > 0)?;
    let more = loaded.median_us.0.saturating_sub(idle.median_us.0);
    (more >= limits::STANDING_QUEUE_US).then_some((Elapsed(more), loaded.median_us))
}

/// Whether a host's cores were full meanwhile, or its threads waited for one.
fn busy(pass: &Pass) -> bool {
    [Role::Pc, Role::Nas].into_iter().filter_map(|role| window(pass, role)).any(|cpu| Load::of(cpu).full())
}

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    let Some(section) = seen.doc.measurements.throughput.measured().filter(|_| !seen.local()) else { return Vec::new() };
    let Some(idle) = section.idle_rtt.measured().filter(|rtt| rtt.received > 0) else { return Vec::new() };
    let way = |direction: Direction| {
        let passes = [section.of(direction).single.measured(), section.of(direction).multi.measured()];
        let of_pass = |pass| Some((queue(idle, pass)?, busy(pass)));
        let ((more, loaded), busy) = passes.into_iter().flatten().filter_map(of_pass).max()?;
        // An echo is answered by a program: where that waits for a core, its wait is not the network's.
        let place = if busy { "in a queue or for a processor" } else { "in a queue" };
        Some(
            Hit::new(CODE, Where::Path, Explains::Info)
                .towards(direction)
                .shows(format!(
                    "{}: a small packet comes back after {loaded} beside a transfer, after {} on the idle path: {more} of it is waiting {place}.",
                    direction.arrow(),
                    idle.median_us
                ))
                .advise("Copies lose nothing by it. Where it disturbs other programs, turn on queue management (fq_codel or cake) at the slower port."),
        )
    };
    Direction::BOTH.into_iter().filter_map(way).collect()
}
