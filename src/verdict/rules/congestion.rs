//! One congestion control moves much more than another.

use super::super::limits;
use super::super::seen::{Seen, Sums};
use super::super::words::percent;
use super::list::{Explains, Hit, Rule, RuleDoc};
use crate::model::Direction;
use crate::model::finding::Where;
use crate::model::throughput::{CongestionTrial, Pass};

const CODE: &str = "network.congestion-control";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "The congestion control makes a difference",
        meaning: "Information only: the sender's kernel decides how fast it sends after a loss. Where one rule gives much more than another on the same path, the path loses packets or holds long queues, or one of the rules does not suit it.",
        detected: "Passes with several congestion controls, one after the other, whose rates differ by a quarter and more. What ran is what the kernel says, not what was asked for.",
        fix: "Use the better one at the sender (net.ipv4.tcp_congestion_control); where packets get lost, mend that first.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    let trials =
        seen.doc.measurements.throughput.measured().filter(|_| !seen.local()).and_then(|section| section.congestion.measured());
    let Some(trials) = trials else { return Vec::new() };
    Direction::BOTH.into_iter().filter_map(|way| differ(trials, way)).collect()
}

/// What ran, by the kernel's word.
fn ran(pass: &Pass) -> Option<&str> {
    pass.method.congestion.as_deref()
}

fn differ(trials: &[CongestionTrial], direction: Direction) -> Option<Hit> {
    let passes = trials.iter().filter(|trial| trial.direction == direction).filter_map(|trial| trial.pass.measured());
    let mut known: Vec<&Pass> = passes.filter(|pass| pass.goodput_bps.0 > 0 && ran(pass).is_some()).collect();
    known.sort_by_key(|pass| (pass.goodput_bps, ran(pass)));
    let (least, most) = (*known.first()?, *known.last()?);
    let factor = most.goodput_bps.as_f64() / least.goodput_bps.as_f64();
    if factor < limits::CONGESTION_DIFFERS || ran(least) == ran(most) {
        return None;
    }
    let (slow, fast) = (ran(least)?, ran(most)?);
    let lost = Sums::of(least).retransmits.filter(|share| *share >= limits::LOSS_SHARE);
    Some(
        Hit::new(CODE, Where::from(direction.sender()), Explains::Info)
            .towards(direction)
            .shows(format!("{}: {fast} moves {}, {slow} {}.", direction.arrow(), most.goodput_bps, least.goodput_bps))
            .also(
                lost.map(|share| {
                    format!("With {slow} {} of the segments had to be sent again: packets get lost.", percent(share))
                }),
            )
            .advise(if lost.is_some() {
                "Find where packets get lost; the better rule only hides it.".to_owned()
            } else {
                format!(
                    "For this path {fast} is the better rule at the {} (net.ipv4.tcp_congestion_control).",
                    direction.sender().title()
                )
            }),
    )
}
