//! A host that has no processor left for the network.

use super::super::limits;
use super::super::seen::{Load, Seen, Way, window};
use super::super::words::percent;
use super::list::{Hit, Rule, RuleDoc};
use crate::model::Role;

const CODE: &str = "cpu.network-stack-core";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "A processor core cannot move more packets",
        meaning: "One core is full with the network's work (or the program is not given the time it wants), so the rate stays below the line though cable and TCP are fine. A mean of 25 % on four cores can be one full core.",
        detected: "Per-core load during the same pass: a core or one of our threads at 95 %, or our threads throttled by a control group or waiting for a core, while TCP stays below the wire.",
        fix: "Spread the card's interrupts and queues over cores, turn segmentation offloads on, use jumbo frames, lift the quota, or a faster processor.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    let ends = [Role::Pc, Role::Nas];
    seen.ways.iter().flat_map(|way| ends.into_iter().filter_map(move |role| full(way, role))).collect()
}

fn full(way: &Way<'_>, role: Role) -> Option<Hit> {
    let pass = way.best.filter(|_| way.gap())?;
    let load = Load::of(window(pass, role)?);
    if !load.full() || load.background() {
        return None;
    }
    let hit = Hit::tcp(CODE, role, way.direction);
    let hit = if load.throttled >= limits::THROTTLED {
        // The clearer of two starved ends leads.
        hit.weight(0.85 + 0.1 * load.throttled.min(1.0), 2)
            .shows(format!(
                "{}: the {}'s control group kept the program from running for {} of the time.",
                way.direction.arrow(),
                role.title(),
                percent(load.throttled)
            ))
            .advise("Lift the processor quota of the control group (container, service or virtual machine) there.")
    } else if load.starved() {
        hit.weight(0.8 + 0.1 * load.run_delay.min(1.0), 2)
            .shows(format!(
                "{}: the {}'s threads waited for a core for {} of the time.",
                way.direction.arrow(),
                role.title(),
                percent(load.run_delay)
            ))
            .advise("Find what competes for the processor there, or give it more cores.")
    } else {
        let soft = (load.softirq >= limits::OTHERS_BURN)
            .then(|| format!("{} of that core went to interrupts of the network.", percent(load.softirq)));
        hit.weight(0.6 + 0.1 * load.core.min(1.0), 1)
            .shows(format!(
                "{}: at the {} the busiest core was {} busy, our busiest thread {}, all cores together {}.",
                way.direction.arrow(),
                role.title(),
                percent(load.core),
                percent(load.thread),
                percent(load.mean)
            ))
            .also(soft)
            .advise(
                "Spread interrupts and queues of the network card over the cores, and check that segmentation offloads are on.",
            )
            .advise("Several streams or jumbo frames lower the work; a faster processor helps if nothing else does.")
    };
    Some(hit.also(way.wire.map(|wire| format!("{} arrive, the wire could carry {wire}.", pass.goodput_bps))))
}
