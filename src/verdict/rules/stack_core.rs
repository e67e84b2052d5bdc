//! A host that has no processor time for the network: its cores are full, or the program does not get them.

use super::super::counted::counted;
use super::super::limits;
use super::super::seen::{Load, Seen, Way, window};
use super::super::words::percent;
use super::list::{Explains, Hit, Rule, RuleDoc};
use super::stalls::outage;
use crate::model::Role;
use crate::model::cpu::{CoreCount, most_on, rate_per_core};
use crate::model::throughput::Pass;
use crate::units::BitRate;

const CODE: &str = "cpu.network-stack-core";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "A processor has no time left for the network",
        meaning: "Cable and TCP are fine, but a host cannot keep up. Either one core is full with the network's work (a mean of 25 % on four cores can be one full core), or the program is not given time that the cores have: a limit of its container or service holds it, or programs with precedence do.",
        detected: "Load during the same pass while TCP stays below the wire. Full: a core or one of our threads at 95 %. Held back: the control group kept our program from running for 20 % of the time, or our threads waited for a core for 25 % of it while the cores were not all taken. Near the line rate neither counts. Where one stream alone keeps a core full and several reach the line, that is the limit of a copy, which has one stream. Where nearly all interrupts of a card land on one core, that core is named.",
        fix: "Full: spread the card's interrupts and queues over cores, turn segmentation offloads on, use jumbo frames, or a faster processor. Held back: remove the processor limit of the container or service, stop what runs with precedence.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    let ends = [Role::Pc, Role::Nas];
    let full = seen.ways.iter().flat_map(|way| ends.into_iter().filter_map(move |role| full(seen, way, role)));
    full.chain(seen.ways.iter().filter_map(|way| one_stream(seen, way))).collect()
}

/// What one core of a host carries, at what a pass cost it.
fn per_core(seen: &Seen<'_>, pass: &Pass, role: Role) -> Option<BitRate> {
    rate_per_core(pass.goodput_bps, window(pass, role)?, seen.cpu(role).and_then(|cpu| cpu.idle.measured()))
}

/// What one core carries, in words; the ceiling of one stream.
fn ceiling(seen: &Seen<'_>, pass: &Pass, role: Role) -> Option<String> {
    Some(format!("At that cost one full core of the {} carries {}.", role.title(), per_core(seen, pass, role)?))
}

/// Where the network's interrupts landed, if nearly all of them did so on one of several cores.
fn landed(pass: &Pass, role: Role) -> Option<String> {
    let cpu = window(pass, role).filter(|cpu| cpu.cores.len() > 1)?;
    let network = cpu.network.measured()?;
    let one = |counts: &[CoreCount]| {
        let enough = counts.iter().map(|one| one.count).fold(0, u64::saturating_add) >= limits::INTERRUPTS;
        most_on(counts).filter(|(_, share)| enough && *share >= limits::ON_ONE_CORE)
    };
    let card = network.cards.measured().into_iter().flatten().find_map(|card| Some((one(&card.cores)?, &card.interface)));
    match (card, one(&network.receive)) {
        (Some(((core, share), name)), _) => {
            Some(format!("{} of the interrupts of the {}'s {name} landed on its core {core}.", percent(share), role.title()))
        }
        (None, Some((core, share))) => {
            Some(format!("{} of the {}'s interrupts for arriving packets ran on its core {core}.", percent(share), role.title()))
        }
        (None, None) => None,
    }
}

/// One stream keeps a core full, and several get clearly more: a copy has one stream, and that gets what one core gives.
fn one_stream(seen: &Seen<'_>, way: &Way<'_>) -> Option<Hit> {
    let (single, multi, wire) = (way.single.filter(|pass| outage(pass).is_none())?, way.multi?, way.wire?);
    let rate = single.goodput_bps.as_f64();
    if way.gap()
        || rate >= limits::LOSS_COSTS * 0.9 * multi.goodput_bps.as_f64()
        || rate >= limits::NEAR_LINE_RATE * wire.as_f64()
    {
        return None;
    }
    let ends = [way.direction.sender(), way.direction.receiver()];
    let loads = ends.into_iter().filter_map(|role| Some((role, Load::of(window(single, role)?))));
    let full = loads.filter(|(_, load)| load.core_full() && !load.starved() && !load.background());
    let (role, load) = full.max_by(|a, b| a.1.core.max(a.1.thread).total_cmp(&b.1.core.max(b.1.thread)))?;
    let mut hit = busy(Hit::tcp(CODE, role, way.direction), way, role, load)
        .soft()
        .weight(0.65, 1)
        .also(Some(format!(
            "One stream gets {}, {} streams {}: each stream has one core's work.",
            single.goodput_bps, multi.streams, multi.goodput_bps
        )))
        .noting(landed(single, role))
        .noting(ceiling(seen, single, role));
    hit.one_flow = true;
    Some(hit)
}

fn full(seen: &Seen<'_>, way: &Way<'_>, role: Role) -> Option<Hit> {
    let pass = way.best.filter(|_| way.gap())?;
    let load = Load::of(window(pass, role)?);
    if load.background() {
        return None;
    }
    // What a speed of Ethernet holds, a busy core does not: that is worth a remark only.
    let held = load.throttled < limits::THROTTLED && super::hop::held_by_class(seen, way);
    let hit =
        if held { Hit::new(CODE, role, Explains::Info).towards(way.direction) } else { Hit::tcp(CODE, role, way.direction) };
    let hit = if load.too_little() {
        starved(hit, way, role, load)
    } else if load.full() {
        let lost = counted(seen, pass, role).overrun(pass).filter(|_| role == way.direction.receiver());
        let hit = busy(hit, way, role, load).soft().also(lost.map(|lost| lost.words(role)));
        hit.noting(landed(pass, role)).noting(ceiling(seen, pass, role))
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
