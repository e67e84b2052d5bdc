//! Other programs burn the processor.

use super::super::seen::{Load, Seen, Way, foreign, window};
use super::super::words::percent;
use super::list::{Hit, Rule, RuleDoc};
use crate::model::Role;

const CODE: &str = "cpu.background-load";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "Other programs use up the processor",
        meaning: "The processor is full, but not with the transfer: something else runs there (indexing, transcoding, a backup, a virtual machine).",
        detected: "Full cores that our threads had to wait for, while most of what is burnt belongs to other processes and TCP stays clearly below the wire.",
        fix: "Stop or move the named program, or run it at another time, and measure again.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    let ends = [Role::Pc, Role::Nas];
    seen.ways.iter().flat_map(|way| ends.into_iter().filter_map(move |role| loaded(way, role))).collect()
}

fn loaded(way: &Way<'_>, role: Role) -> Option<Hit> {
    let pass = way.best.filter(|_| way.gap())?;
    let cpu = window(pass, role)?;
    let load = Load::of(cpu);
    if !load.background() {
        return None;
    }
    let others = cpu.processes.iter().filter(|p| foreign(p));
    let most = others.max_by(|a, b| a.cores.total_cmp(&b.cores).then_with(|| b.name.cmp(&a.name)))?;
    Some(
        Hit::tcp(CODE, role, way.direction)
            .weight(0.82 + 0.1 * load.others.min(1.0), 1)
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
