//! A host that has no processor time for the network: its cores are full, or the program does not get them.

use super::super::limits;
use super::super::seen::{Load, Seen, Way, window};
use super::super::words::percent;
use super::list::{Hit, Rule, RuleDoc};
use crate::model::Role;

const CODE: &str = "cpu.network-stack-core";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "A processor has no time left for the network",
        meaning: "Cable and TCP are fine, but a host cannot keep up. Either one core is full with the network's work (a mean of 25 % on four cores can be one full core), or the program is not given time that the cores have: a limit of its container or service holds it, or programs with precedence do.",
        detected: "Load during the same pass while TCP stays below the wire. Full: a core or one of our threads at 95 %. Held back: the control group kept our program from running for 20 % of the time, or our threads waited for a core for 25 % of it while the cores were not all taken. Near the line rate neither counts.",
        fix: "Full: spread the card's interrupts and queues over cores, turn segmentation offloads on, use jumbo frames, or a faster processor. Held back: remove the processor limit of the container or service, stop what runs with precedence.",
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
    if load.background() {
        return None;
    }
    let hit = Hit::tcp(CODE, role, way.direction);
    let hit = if load.too_little() {
        starved(hit, way, role, load)
    } else if load.full() {
        busy(hit, way, role, load).soft()
    } else {
        return None;
    };
    Some(hit.also(way.wire.map(|wire| format!("{} arrive, the wire could carry {wire}.", pass.goodput_bps))))
}

/// The program is not given the time that the cores have.
fn starved(hit: Hit, way: &Way<'_>, role: Role, load: Load) -> Hit {
    let (arrow, end) = (way.direction.arrow(), role.title());
    // The more starved of two ends leads.
    let hit = hit.weight(0.85 + 0.1 * load.starvation(), 2).titled(format!("The {end} gives weaklink too little processor time"));
    if load.throttled >= limits::THROTTLED {
        return hit
            .shows(format!(
                "{arrow}: the control group at the {end} kept the program from running for {} of the time (a processor quota).",
                percent(load.throttled)
            ))
            .advise(
                "Remove or raise the processor limit of the container, service or virtual machine that runs weaklink there.",
            );
    }
    hit.soft()
        .shows(format!(
            "{arrow}: its threads waited for a core for {} of the time, and the {end}'s cores were in use for only {} (a quota of its control group, or programs with precedence).",
            percent(load.run_delay),
            percent(load.taken().min(1.0))
        ))
        .advise("Remove or raise the processor limit of the container, service or virtual machine that runs weaklink there.")
        .advise("Stop programs that run with precedence there (real-time priority, or bound to the same core).")
}

/// A core, or all of them, has no time left for more packets.
fn busy(hit: Hit, way: &Way<'_>, role: Role, load: Load) -> Hit {
    let soft = (load.softirq >= limits::OTHERS_BURN)
        .then(|| format!("{} of that core went to interrupts of the network.", percent(load.softirq)));
    let stolen = load.robbed().then(|| {
        format!(
            "The hypervisor gave {} of the {}'s time to others: none of these figures is sure.",
            percent(load.stolen),
            role.title()
        )
    });
    let mut hit = hit
        .weight(0.6 + 0.1 * load.core.min(1.0), 1)
        .shows(format!(
            "{}: at the {} the busiest core was {} busy, our busiest thread {}, all cores together {}.",
            way.direction.arrow(),
            role.title(),
            percent(load.core),
            percent(load.thread),
            percent(load.mean)
        ))
        .also(soft);
    hit.evidence.extend(stolen);
    hit.advise("Spread interrupts and queues of the network card over the cores, and check that segmentation offloads are on.")
        .advise("Several streams or jumbo frames lower the work; a faster processor helps if nothing else does.")
}
