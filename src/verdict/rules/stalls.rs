//! A rate that stops or dips again and again, where nothing else says why.

use super::super::limits;
use super::super::seen::{Load, Seen, Sums, Way, window};
use super::super::words::percent;
use super::flow_control;
use super::list::{Hit, Rule, RuleDoc};
use crate::model::Role;
use crate::model::finding::Where;
use crate::model::throughput::Pass;

const CODE: &str = "network.periodic-stalls";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "The rate stops or dips again and again",
        meaning: "Data flows well and then pauses, again and again. Radio that scans, a card that saves power, a switch that learns anew and another transfer that takes turns all look like this; the series alone does not tell which.",
        detected: "Dips of a quarter and more that come at one distance, or a stretch of 200 ms and more without any data (the shortest time after which Linux sends again on its own), while no loss, pause frame or busy processor explains them.",
        fix: "Look at what has that rhythm: power saving of the card (EEE, ASPM), a Wi-Fi bridge on the way, another host's transfers. Switch one off and measure again.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    seen.ways.iter().filter_map(|way| stalled(seen, way)).collect()
}

/// What a pass's series looks like, where it is no even flow.
pub(super) fn rhythm(pass: &Pass) -> Option<String> {
    let deep = pass.shape.dips.filter(|dips| dips.count >= limits::DIPS && dips.depth >= limits::DIP_DEPTH);
    let stall = pass.shape.longest_stall_us;
    let dips = deep
        .map(|dips| format!("The rate dipped by {} every {}, {} times in all.", percent(dips.depth), dips.every_us, dips.count));
    let stall = (stall.0 >= limits::STALL_US).then(|| format!("Nothing at all arrived for up to {stall} at a time."));
    match (dips, stall) {
        (Some(dips), Some(stall)) => Some(format!("{dips} {stall}")),
        (one, other) => one.or(other),
    }
}

fn stalled(seen: &Seen<'_>, way: &Way<'_>) -> Option<Hit> {
    let pass = way.best?;
    let shape = rhythm(pass)?;
    let lossy = Sums::of(pass).retransmits.is_some_and(|share| share >= limits::LOSS_SHARE);
    let busy = [Role::Pc, Role::Nas].into_iter().filter_map(|role| window(pass, role)).any(|cpu| Load::of(cpu).full());
    if lossy || busy || flow_control::paused(seen, way.direction).is_some() {
        return None;
    }
    Some(
        // A rhythm names no cause: whatever else fits goes before it.
        Hit::tcp(CODE, Where::Path, way.direction)
            .weight(0.5, 1)
            .soft()
            .shows(format!("{}: {shape}", way.direction.arrow()))
            .advise("Look for what has that rhythm: power saving of a network card (EEE, ASPM), a radio bridge on the way, another host's transfer."),
    )
}
