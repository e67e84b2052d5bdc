//! Packets that get lost, and speed with them.

use super::super::limits;
use super::super::seen::{Seen, Sums, Way};
use super::super::words::percent;
use super::list::{Hit, Rule, RuleDoc};
use super::stalls::{outage, rhythm};
use crate::model::finding::Where;
use crate::model::throughput::Pass;

const CODE: &str = "network.loss";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "Packets get lost on the way",
        meaning: "TCP takes every lost packet for a full path and slows down, so a little loss costs much speed. Loss in one direction only points at a switch, a module or a cable on that side.",
        detected: "Segments that had to be sent again (0.5 % and more) together with a rate clearly below what the line, the other direction or several streams reach; the rate is that of one stream, as a copy has, where that stream loses too. Many retransmissions at line rate, or at the full rate of a slower class of Ethernet, are no fault.",
        fix: "Look at error and drop counters of each switch port, replace cable and module on the lossy side, enable flow control where a fast port feeds a slow one.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    seen.ways.iter().filter_map(|way| lossy(seen, way)).collect()
}

/// What this direction should reach: the wire, the other direction, or several streams.
fn reference(seen: &Seen<'_>, way: &Way<'_>) -> Option<f64> {
    let other = seen.way(match way.direction {
        crate::model::Direction::Upload => crate::model::Direction::Download,
        crate::model::Direction::Download => crate::model::Direction::Upload,
    });
    way.wire.or(other.rate().max(way.rate())).map(crate::units::BitRate::as_f64)
}

fn lossy(seen: &Seen<'_>, way: &Way<'_>) -> Option<Hit> {
    let reference = reference(seen, way)?;
    let costs = |pass: &&Pass, most: f64| pass.goodput_bps.as_f64() < most * reference;
    let lost = |pass: &Pass| Sums::of(pass).retransmits.filter(|share| *share >= limits::LOSS_SHARE);
    // Copies use one stream: what it loses counts even where several together fill the line.
    let single = way.single.filter(|pass| costs(pass, limits::LOSS_COSTS * 0.9) && outage(pass).is_none()).and_then(lost);
    let best = way.best.filter(|pass| costs(pass, limits::LOSS_COSTS)).and_then(lost);
    let (pass, share) = match (way.single.zip(single), way.best.zip(best)) {
        (Some(single), _) => single,
        (None, best) => best?,
    };
    // A queue before a slower hop overflows as a matter of course: what still arrives at that hop's full rate lost no speed by it.
    if super::hop::at_class(seen, way, pass) {
        return None;
    }
    // Several streams that overrun a queue which one stream does not are the measurement's own loss.
    let own = pass.streams > 1 && way.single.and_then(|pass| Sums::of(pass).retransmits).is_some_and(|s| s < limits::LOSS_SHARE);
    let other = seen.ways.iter().find(|other| other.direction != way.direction).and_then(|other| other.best);
    let one_sided = other.and_then(|other| Sums::of(other).retransmits).filter(|back| back * limits::ONE_SIDED < share);
    let one_sided = one_sided.map(|back| format!("The other direction sends again only {}.", percent(back)));
    // A host short of processor time delays packets, it does not lose them in one direction: such a loss is the path's.
    let plain = one_sided.is_some() && share >= limits::PLAIN_LOSS;
    let weight = match (own, plain) {
        (true, _) => 0.55,
        (false, true) => 0.89,
        (false, false) => 0.75,
    };
    let mut hit = Hit::tcp(CODE, Where::Path, way.direction)
        .weight(weight, 1)
        .shows(format!(
            "{}: {} of the segments had to be sent again, and {} arrive{}.",
            way.direction.arrow(),
            percent(share),
            pass.goodput_bps,
            if pass.streams == 1 { " with one stream" } else { "" }
        ))
        .also(way.wire.map(|wire| format!("The wire could carry {wire}.")))
        .also(one_sided)
        .noting(rhythm(pass))
        .advise("Read the error and drop counters of the switch ports on the way.")
        .advise("Replace the cable and the module on the side that receives, one after the other, and measure again.");
    let one_flow = way.best.filter(|best| best.goodput_bps > pass.goodput_bps);
    if let Some(best) = one_flow {
        hit = hit.shows(format!("{} streams together reach {}.", best.streams, best.goodput_bps));
    }
    hit.one_flow = one_flow.is_some();
    Some(hit)
}
