//! The answer about several PCs at once: does their sum grow, is it shared evenly, and what is it that they share.

use super::ideal;
use super::limits;
use super::rates_answer::{unknown, verdict};
use super::rules::{AS_ASKED, AT_LINE_RATE, UNEXPLAINED, nas_wire};
use super::seen::Seen;
use crate::model::Direction;
use crate::model::finding::{Component, Confidence, Status, Verdict};
use crate::model::together::Together;
use crate::units::BitRate;

/// What several PCs at once show about the part that they share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shared {
    /// The NAS's own link is full.
    Full(BitRate),
    /// The sum sits at what a link of this speed carries; no port tells.
    Level(BitRate),
    /// Each PC gets what it gets alone.
    Free,
    /// Less than the sum of what they get alone, and clearly more than the best of them.
    Grows,
    /// No more than the best of them alone, and nobody knows whether that is the NAS's link.
    Limited,
}

fn shared(seen: &Seen<'_>, all: &Together, direction: Direction) -> Option<(BitRate, Shared)> {
    let sum = all.sum(direction)?;
    let alone =
        all.members.iter().filter_map(|member| member.alone.of(direction)).map(|rate| rate.0).fold(0, u64::saturating_add);
    let best = all.best_alone(direction).unwrap_or_default();
    let full = nas_wire(seen).filter(|(_, wire)| sum.as_f64() >= limits::AT_LINE_RATE * wire.as_f64());
    // Where a port tells, its word counts and not the figure's looks.
    let level = ideal::snap(sum, seen.mtu, seen.ip).filter(|_| nas_wire(seen).is_none());
    let found = if let Some((line, _)) = full {
        Shared::Full(line)
    } else if sum.as_f64() >= limits::LANE_TOLERANCE * alone as f64 {
        Shared::Free
    } else if let Some(class) = level {
        Shared::Level(class)
    } else if sum.as_f64() > limits::GROWS * best.as_f64() {
        Shared::Grows
    } else {
        Shared::Limited
    };
    Some((sum, found))
}

/// How evenly they share, in words: in the direction that is the less even one. Nothing where a rate is missing.
fn fairness(all: &Together) -> String {
    let known = Direction::BOTH.into_iter().filter_map(|way| Some((way, all.fairness(way)?)));
    let Some((way, index)) = known.min_by(|a, b| a.1.total_cmp(&b.1)) else { return String::new() };
    let how = match index {
        _ if index >= limits::EVEN => "evenly".to_owned(),
        _ if index >= limits::FAIR => format!("fairly evenly {}", way.arrow()),
        _ => format!("unevenly {}", way.arrow()),
    };
    format!(", shared {how} (fairness {index:.2}, 1 is even)")
}

/// Whether nobody gets less than others for another reason than its own line.
fn is_fair(all: &Together, direction: Direction) -> bool {
    all.fairness(direction).is_none_or(|index| index >= limits::FAIR)
}

/// Several PCs, where this one has no pass of its own.
pub(super) fn together(seen: &Seen<'_>) -> Option<Verdict> {
    let all = seen.doc.measurements.throughput.measured()?.together.measured()?;
    let both = Direction::BOTH.into_iter().filter_map(|way| Some((way, shared(seen, all, way)?)));
    let found: Vec<(Direction, (BitRate, Shared))> = both.collect();
    let (_, (_, worst)) = found.iter().max_by_key(|(_, (_, shared))| *shared)?;
    let told: Vec<String> = found.iter().map(|(way, (sum, _))| format!("{} {sum} ({})", way.arrow(), sum.bytes())).collect();
    let text = format!("{} PCs at once get {} together{}", all.members.len(), told.join(" and "), fairness(all));
    let healthy = |cause, sure, text| Some(verdict(Status::Healthy, Component::None, cause, sure, text));
    let best = found.iter().filter_map(|(way, _)| Some(format!("{} {}", way.arrow(), all.best_alone(*way)?)));
    let best = best.collect::<Vec<_>>().join(", ");
    match worst {
        Shared::Full(line) => healthy(AT_LINE_RATE, Confidence::High, format!("{text}: what the NAS's {line} link can carry.")),
        Shared::Level(class) => healthy(
            AT_LINE_RATE,
            Confidence::Medium,
            format!(
                "{text}: what a {class} link can carry (read off the rate; no port tells), and that link is what they share."
            ),
        ),
        Shared::Free => healthy(
            AS_ASKED,
            Confidence::Medium,
            format!(
                "the sum grows. {text}, as much as each of them alone (the best {best}): nothing that they share holds them back. More PCs would be needed to find the NAS's limit."
            ),
        ),
        Shared::Grows => healthy(
            AS_ASKED,
            Confidence::Medium,
            format!(
                "the sum grows. {text}, more than the best of them alone ({best}) and less than the sum of what each has alone. {}",
                limit(seen)
            ),
        ),
        // All PCs told what they get, and none is worse off than another: what they share is the answer.
        Shared::Limited if found.iter().all(|(way, _)| is_fair(all, *way)) => healthy(
            AS_ASKED,
            Confidence::Medium,
            format!("the sum does not grow. {text}, no more than the best of them alone ({best}). {}", limit(seen)),
        ),
        Shared::Limited => Some(unknown(
            UNEXPLAINED,
            format!("the sum does not grow. {text}, no more than the best of them alone ({best}). {}", limit(seen)),
        )),
    }
}

/// What it can be that they share.
fn limit(seen: &Seen<'_>) -> String {
    match nas_wire(seen) {
        Some((line, wire)) => {
            format!("The NAS's {line} link could carry {wire}, so the NAS itself or an uplink on the way is the limit.")
        }
        None => "What they share is the limit: the NAS, its link (whose speed is not known here; --link-speed nas=… states it), or an uplink on the way."
            .to_owned(),
    }
}
