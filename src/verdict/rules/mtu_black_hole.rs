//! Large packets vanish and nobody says so.

use super::super::limits;
use super::super::seen::Seen;
use super::list::{Explains, Hit, Rule, RuleDoc};
use crate::model::finding::Where;
use crate::model::mtu::Limiter;
use crate::model::{Direction, Role};

const CODE: &str = "network.mtu-black-hole";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "Large packets vanish between the hosts",
        meaning: "Both ends use large packets, something between them drops those, and no message says so. Small things work (ping, login, listing a directory), and a copy hangs.",
        detected: "Probes that may not be fragmented, in each direction: the largest that passes is smaller than the MTU of both ends, and no ICMP message came. A stream with full-size segments that stalls is the proof.",
        fix: "Set the same MTU at every port on the way: enable jumbo frames at the switch, or set both hosts back to 1500.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    let holes: Vec<Direction> = Direction::BOTH.into_iter().filter(|way| hole(seen, *way).is_some()).collect();
    let Some(first) = holes.first() else { return Vec::new() };
    let mut hit = Hit::new(CODE, Where::Path, Explains::Stops).weight(1.0, 1);
    if holes.len() == 1 {
        hit = hit.towards(*first);
    }
    for way in &holes {
        hit = hit.also(hole(seen, *way));
    }
    let unclamped = seen.doc.measurements.mtu.measured().and_then(|mtu| mtu.unclamped.measured());
    if let Some(stream) = unclamped {
        let clamped = seen.way(stream.direction).rate();
        let stalls = clamped.is_none_or(|rate| stream.goodput_bps.as_f64() < limits::STALLED * rate.as_f64());
        let text = format!(
            "A stream with full-size segments moved {} in {} ({}).",
            stream.bytes,
            stream.elapsed_us,
            stream.direction.arrow()
        );
        if stalls {
            hit = hit.also(Some(text));
        } else {
            // The ends find out by themselves (MTU probing): the fault stays, the stall does not.
            hit.explains = Explains::Fault;
            hit = hit.shows(text);
        }
    }
    vec![
        hit.advise("Enable jumbo frames on every switch port between the hosts, or set the MTU of both hosts to 1500.")
            .advise("Compare the MTU of each switch port on the way; one with a smaller MTU drops silently."),
    ]
}

/// The evidence of a hole in one direction.
fn hole(seen: &Seen<'_>, way: Direction) -> Option<String> {
    let path = seen.path(way)?;
    let (pc, nas) = (seen.end(Role::Pc).mtu?, seen.end(Role::Nas).mtu?);
    (path.limited_by == Limiter::Silent && path.mtu < pc.min(nas)).then(|| {
        format!(
            "{}: packets up to {} bytes pass, larger ones vanish without a message, though the PC's MTU is {pc} and the NAS's {nas}.",
            way.arrow(),
            path.mtu
        )
    })
}
