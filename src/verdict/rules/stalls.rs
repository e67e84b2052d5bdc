//! A rate that stops or dips again and again, where nothing else says why.

use super::super::limits;
use super::super::seen::{Load, Seen, Sums, Way};
use super::super::words::percent;
use super::flow_control;
use super::list::{Explains, Hit, Rule, RuleDoc};
use crate::model::Role;
use crate::model::finding::Where;
use crate::model::throughput::Pass;
use crate::units::Elapsed;

const CODE: &str = "network.periodic-stalls";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "The rate stops or dips again and again",
        meaning: "Data flows well and then pauses, again and again. Radio that scans, a card that saves power, a switch that learns anew and another transfer that takes turns all look like this; the series alone does not tell which.",
        detected: "Dips of a quarter and more that come at one distance, or a stretch of 200 ms and more without any data (the shortest time after which Linux sends again on its own), while no loss, pause frame or busy processor explains them. A second and more without any data is told whatever else was seen, since the mean of such a pass is no measure; it is the answer unless a host kept the program from running for as long.",
        fix: "Look at what has that rhythm: power saving of the card (EEE, ASPM), a Wi-Fi bridge on the way, another host's transfers. Switch one off and measure again.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    // Of links alone a rhythm is not asked; a break is.
    let links = seen.doc.plan.scope.is_link();
    let told = |way: &Way<'_>| if links { broken_off(way) } else { stalled(seen, way) };
    seen.ways.iter().filter_map(told).collect()
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

/// The time in which nothing at all arrived, where it was so long that the mean over the pass says nothing of the network.
pub(in super::super) fn outage(pass: &Pass) -> Option<Elapsed> {
    let (longest, bin) = (pass.shape.longest_stall_us, pass.bins.interval_us.0.max(1));
    // Heavy loss makes a stream wait as long, but then again and again.
    let once = (bin.saturating_mul(u64::from(pass.shape.empty_bins))) as f64 <= limits::ONE_OUTAGE * longest.0 as f64;
    Some(longest).filter(|time| time.0 >= limits::OUTAGE_US && once)
}

/// A direction in which nothing arrived for a second or more: no processor that works is as late, and what TCP then sends again is the
/// consequence.
fn broken_off(way: &Way<'_>) -> Option<Hit> {
    let passes = [way.best, way.single, way.multi].into_iter().flatten();
    let (pass, time) = passes.filter_map(|pass| Some((pass, outage(pass)?))).max_by_key(|(_, time)| *time)?;
    // Who waited for a core, or was stopped by a quota, for as long altogether may have been kept from sending all that time.
    let kept = |role| {
        let load = Load::during(pass, role)?;
        Some(load.robbed() || load.starvation() * pass.elapsed_us.0 as f64 >= time.0 as f64)
    };
    let kept = [Role::Pc, Role::Nas].into_iter().any(|role| kept(role) == Some(true));
    let best = way.best.is_some_and(|best| best.shape.longest_stall_us == pass.shape.longest_stall_us);
    let streams = if pass.streams == 1 { "1 stream".to_owned() } else { format!("{} streams", pass.streams) };
    let hit = match (best, kept) {
        // A break outweighs what only the mean over it seems to show: loss, load, a rate below the line.
        (true, false) => Hit::tcp(CODE, Where::Path, way.direction).weight(0.9, 1).firm(true),
        (true, true) => Hit::tcp(CODE, Where::Path, way.direction).weight(0.5, 1).soft(),
        (false, _) => Hit::new(CODE, Where::Path, Explains::Info),
    };
    Some(
        hit.towards(way.direction)
            .titled("Nothing got through for a while".to_owned())
            .shows(format!(
                "{}: nothing at all arrived for {time} of the {} with {streams}, so the mean over that time is no measure of the network.",
                way.direction.arrow(),
                pass.elapsed_us
            ))
            .noting(kept.then(|| "A host kept the program from running for as long, which may be why.".to_owned()))
            .advise("Measure again. Where it comes back, look at what broke off then: a cable, a switch that started anew or relearned its paths, a host that slept."),
    )
}

fn stalled(seen: &Seen<'_>, way: &Way<'_>) -> Option<Hit> {
    if let Some(hit) = broken_off(way) {
        return Some(hit);
    }
    let pass = way.best?;
    let shape = rhythm(pass)?;
    let lossy = Sums::of(pass).retransmits.is_some_and(|share| share >= limits::LOSS_SHARE);
    let busy = [Role::Pc, Role::Nas].into_iter().filter_map(|role| Load::during(pass, role)).any(Load::full);
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
