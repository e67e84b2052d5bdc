//! Others use the link at the same time.

use super::super::counted::raw;
use super::super::limits;
use super::super::phases::{Phase, at_rest};
use super::super::seen::{Seen, Way};
use super::list::{Explains, Hit, Rule, RuleDoc};
use crate::model::link::CountersByInterface;
use crate::model::throughput::Pass;
use crate::model::{Direction, Role};
use crate::units::BitRate;

const CODE: &str = "network.busy-link";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "Other traffic uses the link",
        meaning: "Something else moved data over the same port during the test (a backup, a stream, another client), and both together fill the line.",
        detected: "An interface's byte counter grew by far more than the pass itself explains (headers and segments sent again included), and both together come to what the line carries. What the ports moved while the disks were tested, and nothing was sent, is told as well.",
        fix: "Stop the other traffic or measure at another time; give the heavy user a link of its own.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    let ends = [Role::Pc, Role::Nas];
    let passes = seen.ways.iter().flat_map(|way| ends.into_iter().filter_map(move |role| shared(seen, way, role)));
    let mut hits: Vec<Hit> = passes.collect();
    let rest = at_rest(seen);
    for role in ends {
        let Some(told) = rest.as_ref().and_then(|phase| unasked(seen, phase, role)) else { continue };
        if hits.iter().any(|hit| hit.place == role.into()) {
            hits =
                hits.into_iter().map(|hit| if hit.place == role.into() { hit.also(Some(told.clone())) } else { hit }).collect();
        } else {
            hits.push(Hit::new(CODE, role, Explains::Info).weight(0.6, 1).shows(told).advise(STOP));
        }
    }
    hits
}

const STOP: &str = "Find what else uses this port (backup, streams, other clients), stop it, and measure again.";

/// What a port moved while the disks were tested and nothing was sent, where it is much.
fn unasked(seen: &Seen<'_>, phase: &Phase<'_>, role: Role) -> Option<String> {
    let wire = seen.way(Direction::Upload).wire?.as_f64();
    let counted = phase.counted(seen, role);
    let seconds = phase.elapsed().seconds();
    if seconds < 1.0 {
        return None;
    }
    let rate = |name: &str| counted.moved(name) as f64 * 8.0 / seconds;
    let (took, gave) = (rate("rx_bytes"), rate("tx_bytes"));
    // Far more than the line itself is counted twice somewhere, and proves nothing.
    let possible = took.max(gave) <= 1.3 * seen.line?.as_f64();
    (took.max(gave) >= limits::BUSY_LINK * wire && possible).then(|| {
        format!(
            "While the disks were tested and weaklink sent nothing, the {}'s port received {} and sent {}.",
            role.title(),
            BitRate(took as u64),
            BitRate(gave as u64)
        )
    })
}

/// The bytes that an end's busiest interface counted in the direction of the data.
fn counted(counters: &CountersByInterface, name: &str) -> u64 {
    counters.values().filter_map(|one| one.get(name)).max().unwrap_or(0)
}

/// The bytes that the pass itself put on the wire at most.
fn own(pass: &Pass) -> Option<f64> {
    let streams = pass.sender.measured()?;
    let again: Option<u64> = streams.iter().map(|s| s.bytes_retrans).try_fold(0_u64, |sum, one| Some(sum.saturating_add(one?)));
    // Without the count of what was sent again nothing can be told from traffic of others.
    Some((pass.bytes.0 as f64 + again? as f64) * limits::COUNTED_BESIDE)
}

fn shared(seen: &Seen<'_>, way: &Way<'_>, role: Role) -> Option<Hit> {
    let pass = way.best.filter(|_| way.gap())?;
    let wire = way.wire?.as_f64();
    let sends = role == way.direction.sender();
    let bytes = counted(raw(pass, role)?, if sends { "tx_bytes" } else { "rx_bytes" });
    let seconds = pass.elapsed_us.seconds();
    let others = (bytes as f64 - own(pass)?) * 8.0 / seconds.max(0.1);
    let fills = others + pass.goodput_bps.as_f64() >= limits::NEAR_LINE_RATE * wire;
    // Far more than the line itself is counted twice somewhere, and proves nothing.
    let possible = bytes as f64 * 8.0 / seconds.max(0.1) <= 1.3 * seen.line?.as_f64();
    (others >= limits::BUSY_LINK * wire && fills && possible).then(|| {
        Hit::tcp(CODE, role, way.direction)
            .weight(0.8, 2)
            .shows(format!(
                "{}: the {}'s interface moved about {} more than the test did.",
                way.direction.arrow(),
                role.title(),
                BitRate(others as u64)
            ))
            .shows(format!("With the {} of the test the line is full.", pass.goodput_bps))
            .advise(STOP)
    })
}
