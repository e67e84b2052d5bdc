//! Something between the ports is slower than both.

use super::super::ideal;
use super::super::limits;
use super::super::seen::{Load, Seen, Sums, Way, flat, window};
use super::list::{Hit, Rule, RuleDoc};
use crate::model::Role;
use crate::model::finding::Where;
use crate::model::throughput::Pass;
use crate::units::BitRate;

const CODE: &str = "network.hop-slower-than-links";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "A hop between the hosts is slower than their links",
        meaning: "Both hosts linked fast, yet TCP runs flat at exactly what a slower Ethernet carries: some cable, switch port or router between them is of that speed.",
        detected: "A level rate that equals a known Ethernet class at this MTU, below both ends' speed, while no window closed and no quota held. Where the rate is even within 2 % and close to the class, or flat at it while the same busy hosts carry half as much again the other way, it outweighs busy processors: those do not stop at exactly a class. Where nobody tells the line, five times as much the other way stands for it. On busy hosts a rate a little below such a class counts as a hint when both directions show it.",
        fix: "Look at the speed of every switch port on the way; the slow one is a port that linked low, an old switch, or an uplink.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() || seen.ends.iter().any(super::super::seen::End::without_cable) {
        return Vec::new();
    }
    seen.ways.iter().filter_map(|way| slower(seen, way)).collect()
}

/// The class that one direction sits at.
fn class(seen: &Seen<'_>, way: &Way<'_>) -> Option<BitRate> {
    let best = way.rate()?.as_f64();
    let passes =
        [way.multi, way.single].into_iter().flatten().filter(|pass| pass.goodput_bps.as_f64() >= limits::SNAP_BELOW * best);
    passes.filter(|pass| flat(pass)).find_map(|pass| ideal::snap(pass.goodput_bps, seen.mtu, seen.ip))
}

/// Whether a pass carries what a link of this class does, and not only nearly.
fn close(seen: &Seen<'_>, pass: &Pass, class: BitRate) -> bool {
    let ceiling = ideal::wire_ceiling(class, seen.mtu, seen.ip).as_f64();
    (limits::LEVEL_BELOW * ceiling..=limits::SNAP_ABOVE * ceiling).contains(&pass.goodput_bps.as_f64())
}

/// Whether one direction runs evenly at exactly this class, as no processor would have it.
fn sits(seen: &Seen<'_>, way: &Way<'_>, class: BitRate) -> bool {
    let best = way.rate().unwrap_or_default().as_f64();
    let passes = [way.multi, way.single].into_iter().flatten();
    passes.filter(|pass| pass.goodput_bps.as_f64() >= limits::SNAP_BELOW * best).any(|pass| {
        let even = pass.steady.is_some_and(|steady| steady.spread <= limits::LEVEL_SPREAD);
        even && close(seen, pass, class)
    })
}

/// The class at which one direction runs evenly, as no processor would have it.
fn level(seen: &Seen<'_>, way: &Way<'_>) -> Option<BitRate> {
    class(seen, way).filter(|class| sits(seen, way, *class))
}

/// The same where neither a window nor a quota could hold it there: it is the line's then, whoever else is busy.
pub(in super::super) fn line_level(seen: &Seen<'_>, way: &Way<'_>) -> Option<BitRate> {
    let pass = way.best.filter(|_| !seen.ends.iter().any(super::super::seen::End::without_cable))?;
    let throttled = |role| window(pass, role).is_some_and(|cpu| Load::of(cpu).throttled >= limits::THROTTLED);
    let held = closed(seen, pass) || throttled(Role::Pc) || throttled(Role::Nas);
    level(seen, way).filter(|_| !held)
}

/// Whether a window stops the streams of a pass.
fn closed(seen: &Seen<'_>, pass: &Pass) -> bool {
    let sums = Sums::of(pass);
    let stops = sums.rwnd.is_some_and(|share| share >= limits::RWND_LIMITED) || sums.window_sets(pass.goodput_bps);
    stops && !seen.window_to_spare(pass)
}

/// Whether the same hosts, as loaded, carried clearly more the other way.
fn carries_more_backwards(seen: &Seen<'_>, way: &Way<'_>) -> bool {
    let back = seen.ways.iter().find(|other| other.direction != way.direction).and_then(|other| other.best);
    let (Some(pass), Some(back)) = (way.best, back) else { return false };
    let loaded = |pass: &Pass, role| window(pass, role).map(Load::of).is_some_and(|load| load.full() || load.background());
    let same = [Role::Pc, Role::Nas].into_iter().all(|role| !loaded(pass, role) || loaded(back, role));
    same && back.goodput_bps.as_f64() >= limits::CARRIES_MORE_THAN_LEVEL * pass.goodput_bps.as_f64()
}

/// Whether a speed of Ethernet, and no busy processor, holds one direction: it runs evenly at a class, or is flat at one while the same
/// hosts carry clearly more the other way.
pub(super) fn held_by_class(seen: &Seen<'_>, way: &Way<'_>) -> bool {
    let told = seen.line.is_some() || seen.doc.plan.scope.is_throughput();
    let cable = !seen.ends.iter().any(super::super::seen::End::without_cable);
    told && cable && (level(seen, way).is_some() || (class(seen, way).is_some() && carries_more_backwards(seen, way)))
}

/// Whether a pass reaches what the class that its direction is flat at carries: what was lost meanwhile cost it nothing.
pub(super) fn at_class(seen: &Seen<'_>, way: &Way<'_>, pass: &Pass) -> bool {
    class(seen, way).is_some_and(|class| close(seen, pass, class))
}

/// The line where nobody tells it and busy hosts keep it from being read off one direction: the faster level of both.
fn levels(seen: &Seen<'_>) -> Option<BitRate> {
    seen.ways.iter().filter_map(|way| line_level(seen, way)).max()
}

/// The class that one direction comes near to, on hosts too busy for a level rate.
fn near_class(seen: &Seen<'_>, way: &Way<'_>) -> Option<BitRate> {
    ideal::snap_loosely(way.rate()?, seen.mtu, seen.ip)
}

/// How fast the line is known to be.
struct Known {
    /// Its rate, or a lower bound.
    line: BitRate,
    /// What TCP gets of it.
    carries: BitRate,
    words: String,
}

/// The line: as told, read off a level, or failing both what comes back, which is a lower bound, at no class though it be.
fn known(seen: &Seen<'_>, way: &Way<'_>, back: &Way<'_>) -> Option<Known> {
    let carries = |line| way.wire.unwrap_or_else(|| ideal::wire_ceiling(line, seen.mtu, seen.ip));
    let told = |line| Known { line, carries: carries(line), words: format!("the line is {line}") };
    let far = back.rate().filter(|more| more.as_f64() >= limits::CARRIES_MORE * way.rate().unwrap_or_default().as_f64());
    // A line that only a level tells may be this direction's own.
    let level = levels(seen).filter(|level| far.is_none_or(|far| *level >= far));
    let far = far.map(|more| Known { line: more, carries: more, words: format!("{more} come back") });
    seen.line.or(level).map(told).or(far)
}

fn slower(seen: &Seen<'_>, way: &Way<'_>) -> Option<Hit> {
    let pass = way.best.filter(|_| way.gap())?;
    let level = class(seen, way);
    let back = seen.ways.iter().find(|other| other.direction != way.direction)?;
    let known = known(seen, way, back)?;
    let class_back = super::hop::class(seen, back).or_else(|| near_class(seen, back));
    // A rate that only comes near a class is a hint where the other direction says the same.
    let class = level.or_else(|| near_class(seen, way).filter(|near| Some(*near) == class_back))?;
    if class.as_f64() * limits::WORTH >= known.line.as_f64() {
        return None;
    }
    // A bundle at one link's rate is no slower hop.
    if seen.ends.iter().any(|end| end.flow.is_some_and(|flow| flow == class)) {
        return None;
    }
    let closed = closed(seen, pass);
    let loads: Vec<Load> = [Role::Pc, Role::Nas].into_iter().filter_map(|role| window(pass, role)).map(Load::of).collect();
    let alike = class_back == Some(class);
    let own = level.is_some() && held_by_class(seen, way);
    let firm = own || (alike && (sits(seen, way, class) || sits(seen, back, class)));
    // Waiting for a core does not hold a rate at a class; a quota may hold it anywhere.
    let starved = |load: &Load| if firm { load.throttled >= limits::THROTTLED } else { load.starved() };
    if closed || loads.iter().any(starved) {
        return None;
    }
    let level_back = super::hop::class(seen, back) == Some(class);
    let both = alike.then(|| "Both directions run at that level.".to_owned());
    let more = back.rate().filter(|more| *more != known.line && carries_more_backwards(seen, way));
    let more = more.map(|more| format!("Backwards the same hosts carry {more}."));
    // A cable has no direction: a plateau one way only is a policer, or chance; so is one at a full core.
    let full = if loads.iter().any(|load| load.core_full()) { 0.15 } else { 0.0 };
    let (weight, kinds) = match (level.is_some(), level_back) {
        _ if firm => (if alike { 0.9 } else { 0.68 }, 1),
        (true, _) => (if alike { 0.9 } else { 0.68 } - full, 1),
        (false, true) => (0.75 - full, 1),
        (false, false) if full > 0.0 => return None,
        (false, false) => (0.58, 0),
    };
    let word = if level.is_some() { "is level at" } else { "comes near to" };
    Some(
        Hit::tcp(CODE, Where::Path, way.direction)
            .weight(weight, kinds)
            .firm(firm)
            .relieved(Some(known.carries))
            .shows(format!(
                "{}: {} {word} what a {class} link carries at MTU {}, while {}.",
                way.direction.arrow(),
                pass.goodput_bps,
                seen.mtu,
                known.words
            ))
            .also(both)
            .also(more)
            .advise(
                "Look up the speed of every switch port and cable between the hosts: one of them runs slower than both ends.",
            ),
    )
}
