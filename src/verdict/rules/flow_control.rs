//! Pause frames that hold a sender back.

use super::super::limits;
use super::super::seen::Seen;
use super::list::{Hit, Rule, RuleDoc};
use super::stalls::rhythm;
use crate::model::finding::Where;
use crate::model::link::CountersByInterface;
use crate::model::throughput::Pass;
use crate::model::{Direction, Role};

const CODE: &str = "network.flow-control";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "Pause frames throttle the sender",
        meaning: "A port asks its partner to stop sending, again and again. Nothing is lost, every drop counter stays zero, and the sender just looks slow.",
        detected: "Pause counters that grew during a pass that stayed below the line, told apart by who sent the pauses.",
        fix: "Mend what is slow behind the port that sends pauses (host, bus, slower uplink), or turn flow control off on it and compare.",
    },
    check,
}];

fn pauses(counters: Option<&CountersByInterface>, prefix: &str) -> u64 {
    let is_pause = |name: &str| {
        let name = name.to_ascii_lowercase();
        name.contains(prefix) && (name.contains("pause") || name.contains("xoff")) && !name.contains("duration")
    };
    let one = |counters: &crate::model::link::Counters| {
        counters.0.iter().filter(|(name, _)| is_pause(name)).map(|(_, grown)| *grown).max().unwrap_or(0)
    };
    counters.into_iter().flat_map(|all| all.values()).map(one).max().unwrap_or(0)
}

fn counters(pass: &Pass, role: Role) -> Option<&CountersByInterface> {
    match role {
        Role::Pc => pass.counters_pc.measured(),
        Role::Nas => pass.counters_nas.measured(),
    }
}

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    Direction::BOTH.into_iter().filter_map(|direction| paused(seen, direction)).collect()
}

pub(super) fn paused(seen: &Seen<'_>, direction: Direction) -> Option<Hit> {
    let way = seen.way(direction);
    let pass = way.best.filter(|_| way.gap())?;
    let enough = |grown: u64| grown as f64 >= limits::PAUSE_PER_SECOND * pass.elapsed_us.seconds().max(1.0);
    let received = pauses(counters(pass, direction.sender()), "rx");
    let sent = pauses(counters(pass, direction.receiver()), "tx");
    let (place, evidence) = if enough(sent) {
        (
            Where::from(direction.receiver()),
            format!("{}: the {} sent {sent} pause frames during the pass.", direction.arrow(), direction.receiver().title()),
        )
    } else if enough(received) {
        (
            Where::Path,
            format!("{}: the {} was paused {received} times during the pass.", direction.arrow(), direction.sender().title()),
        )
    } else {
        return None;
    };
    let both = enough(sent) && enough(received);
    Some(
        Hit::tcp(CODE, place, direction)
            .weight(0.72, 1 + u32::from(both))
            .shows(evidence)
            .also(way.wire.map(|wire| format!("{} arrive, the wire could carry {wire}.", pass.goodput_bps)))
            .noting(rhythm(pass))
            .advise("Look for what is slow behind the port that sends the pauses; turn flow control off there and compare."),
    )
}
