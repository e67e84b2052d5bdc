//! Other programs burn the processor.

use super::super::limits;
use super::super::seen::{Load, Seen, Way, window};
use super::super::words::percent;
use super::list::{Explains, Hit, Rule, RuleDoc};
use crate::model::Role;
use crate::model::cpu::CpuWindow;
use crate::model::throughput::Pass;

const CODE: &str = "cpu.background-load";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "Other programs use up the processor",
        meaning: "The processor is full, but not with the transfer: something else runs there (indexing, transcoding, a backup, a virtual machine).",
        detected: "Full cores that our threads had to wait for, while most of what is burnt belongs to other processes and TCP stays clearly below the wire; not where the same host carries five times as much the other way beside the same load. Only a remark where the rate is level at a class of Ethernet, or flat at one with half as much again the other way: load does not stop there. As information: cores that were busy for half of the time or more before the test began, or of which the hypervisor took 15 %. No bottleneck is sure then.",
        fix: "Stop or move the named program, or run it at another time, and measure again.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    let ends = [Role::Pc, Role::Nas];
    let mut hits: Vec<Hit> = ends.into_iter().filter_map(|role| before(seen, role).or_else(|| stolen(seen, role))).collect();
    if !seen.local() {
        hits.extend(during(seen));
    }
    hits
}

fn note(role: Role, shows: String) -> Hit {
    Hit::new(CODE, role, Explains::Info).shows(shows).advise("Measure again when the host is idle.")
}

/// A host that was busy before anything was measured.
fn before(seen: &Seen<'_>, role: Role) -> Option<Hit> {
    let idle = seen.cpu(role)?.idle.measured()?;
    // Our own look at the ports takes a small machine's processor for a moment.
    let busy = idle.mean_busy_of_others();
    let most = busiest(idle).map(|name| format!(", {name} most")).unwrap_or_default();
    let shows = || {
        let (end, busy) = (role.title(), percent(busy));
        format!("The {end} was {busy} busy before the test began{most}; measure again when it is idle.")
    };
    (busy >= limits::BUSY_BEFORE).then(|| note(role, shows()))
}

/// A host of which the hypervisor gave much to others.
fn stolen(seen: &Seen<'_>, role: Role) -> Option<Hit> {
    let idle = seen.cpu(role).and_then(|cpu| cpu.idle.measured());
    let idle = idle.map(|cpu| ("before the test began".to_owned(), Load::of(cpu).stolen));
    let passes = seen.ways.iter().filter_map(|way| {
        let load = Load::of(window(way.best?, role)?);
        Some((format!("during {}", way.direction.arrow()), load.stolen))
    });
    let most = idle.into_iter().chain(passes).filter(|(_, share)| *share >= limits::STOLEN_CLEARLY);
    let (when, share) = most.max_by(|a, b| a.1.total_cmp(&b.1).then_with(|| b.0.cmp(&a.0)))?;
    let (end, share) = (role.title(), percent(share));
    Some(note(
        role,
        format!("The hypervisor gave {share} of the {end}'s time to others {when}; measure again at a quieter time."),
    ))
}

/// The program that burns most, all its processes together.
fn busiest(cpu: &CpuWindow) -> Option<&str> {
    let names = cpu.processes.iter().filter(|p| p.is_foreign()).map(|p| p.name.as_str());
    names.max_by(|a, b| {
        let cores = |name| cpu.process(name).unwrap_or(0.0);
        cores(a).total_cmp(&cores(b)).then_with(|| b.cmp(a))
    })
}

fn during(seen: &Seen<'_>) -> Vec<Hit> {
    let ends = [Role::Pc, Role::Nas];
    let slowed = |way: &Way<'_>, role| !carries_more_backwards(seen, way, role);
    let both = seen.ways.iter().flat_map(|way| ends.into_iter().map(move |role| (way, role)));
    both.filter(|(way, role)| slowed(way, *role)).filter_map(|(way, role)| loaded(seen, way, role)).collect()
}

/// Whether the same host, as loaded, carried far more the other way: then something else holds this direction back.
fn carries_more_backwards(seen: &Seen<'_>, way: &Way<'_>, role: Role) -> bool {
    let back = seen.ways.iter().find(|other| other.direction != way.direction).and_then(|other| other.best);
    let loaded = |pass| Load::during(pass, role).is_some_and(Load::background);
    let more = |pass: &Pass| way.rate().is_some_and(|rate| pass.goodput_bps.as_f64() >= limits::CARRIES_MORE * rate.as_f64());
    back.is_some_and(|pass| loaded(pass) && more(pass))
}

fn loaded(seen: &Seen<'_>, way: &Way<'_>, role: Role) -> Option<Hit> {
    let pass = way.best.filter(|_| way.gap())?;
    let cpu = window(pass, role)?;
    let load = Load::during(pass, role)?;
    if !load.background() {
        return None;
    }
    let others = cpu.processes.iter().filter(|p| p.is_foreign());
    let most = others.max_by(|a, b| a.cores.total_cmp(&b.cores).then_with(|| b.name.cmp(&a.name)))?;
    // A direction that a speed of Ethernet holds is not held by the load: that is worth a remark only.
    let held = super::hop::held_by_class(seen, way);
    let hit =
        if held { Hit::new(CODE, role, Explains::Info).towards(way.direction) } else { Hit::tcp(CODE, role, way.direction) };
    Some(
        hit.weight(0.82 + 0.1 * load.others.min(1.0), 1)
            .shows(format!(
                "{}: at the {} other programs burn {} of what is burnt, {} most ({:.1} cores).",
                way.direction.arrow(),
                role.title(),
                percent(load.others),
                most.name,
                most.cores
            ))
            .soft()
            .also(load.starved().then(|| format!("Our threads waited for a core for {} of the time.", percent(load.run_delay))))
            .also(way.wire.map(|wire| format!("{} arrive, the wire could carry {wire}.", pass.goodput_bps)))
            .advise("Stop the named program or let it run at another time, then measure again."),
    )
}
