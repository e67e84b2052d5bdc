//! Both directions at once give clearly less than each alone.

use super::super::limits;
use super::super::seen::{Load, Seen};
use super::super::words::percent;
use super::list::{Explains, Hit, Rule, RuleDoc};
use crate::model::finding::Where;
use crate::model::link::Duplex;
use crate::model::{Direction, Role};
use crate::units::BitRate;

const CODE: &str = "network.both-ways-slower";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "Both directions at once are slower than each alone",
        meaning: "Ethernet carries both directions at full speed at the same moment. Where their sum is clearly less, something is shared by both: a half-duplex port or radio, a bus such as USB 2, or a host's processor. One copy alone does not suffer.",
        detected: "The sum of both directions at once is below 75 % of the sum of each alone; acknowledgements cost some 3 %.",
        fix: "Look at duplex and bus of both cards, and at the busiest core while both directions run.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    shared(seen).into_iter().collect()
}

fn shared(seen: &Seen<'_>) -> Option<Hit> {
    let section = seen.doc.measurements.throughput.measured().filter(|_| !seen.local())?;
    let both = section.both.measured()?;
    let sum = |rates: [Option<BitRate>; 2]| Some(BitRate(rates[0]?.0.saturating_add(rates[1]?.0)));
    let at_once = sum(Direction::BOTH.map(|way| both.of(way).measured().map(|pass| pass.goodput_bps)))?;
    let alone = sum(Direction::BOTH.map(|way| section.of(way).best().map(|pass| pass.goodput_bps)))?;
    if at_once.as_f64() >= limits::BOTH_WAYS * alone.as_f64() {
        return None;
    }
    let mut hit = Hit::new(CODE, Where::Path, Explains::Info).shows(format!(
        "At the same moment both directions carry {at_once} together, one after the other {alone}: {} of it.",
        percent(at_once.as_f64() / alone.as_f64().max(1.0))
    ));
    for role in [Role::Pc, Role::Nas] {
        let passes = Direction::BOTH.into_iter().filter_map(|way| both.of(way).measured());
        let loads = passes.filter_map(|pass| Load::during(pass, role));
        let core = loads.filter(|load| load.full()).map(|load| load.core).reduce(f64::max);
        hit = hit.also(core.map(|core| {
            format!("Meanwhile the {}'s busiest core was {} busy: its processor is what they share.", role.title(), percent(core))
        }));
        let port = seen.end(role).port();
        let half = port.and_then(|port| port.duplex.measured()).is_some_and(|fact| fact.value == Duplex::Half);
        hit = hit.also(half.then(|| format!("The {}'s port runs at half duplex.", role.title())));
        let usb = port.and_then(|port| port.bus.measured()).filter(|bus| bus.kind == "usb");
        hit = hit.also(
            usb.map(|bus| format!("The {}'s card hangs on {}, which both directions share.", role.title(), bus.description)),
        );
    }
    Some(hit.advise("One copy alone does not suffer. For both at once look at duplex, bus and processor of the two hosts."))
}
