//! Two readings of a host's counters become the shares of the time between. Pure.
//!
//! Counters that fall (a core that was switched off and on, a process number used again, the kernel's
//! own corrections of idle and waiting time) count as no growth, and every share stays between 0 and 1.

use std::collections::BTreeMap;
use std::time::Duration;

use super::decode::{CoreTicks, Task};
use super::group::GroupTimes;
use crate::model::Outcome;
use crate::model::cpu::{CoreShare, CpuWindow, ProcessShare};

/// How many processes are kept beside our own: who uses less than the twelfth is no one's weak link.
const KEPT: usize = 12;

/// A core's counters must cover this share of the window to be trusted as the whole of it. Below, its
/// clock stood still in sleep (some kernels without ticks) and the rest was idle.
const ACCOUNTED: f64 = 0.8;

/// One reading of the counters; or, as the later one of two, what many readings found together, in
/// which processes that ended stay as they were last seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// When, since any moment that both readings share.
    pub at: Duration,
    /// The unit of the ticks below.
    pub ticks_per_second: u64,
    /// Every core that is switched on.
    pub cores: Vec<CoreTicks>,
    /// The processes.
    pub processes: Processes,
    /// For each thread of this process the nanoseconds that it waited for a core since its birth.
    pub waits: Outcome<BTreeMap<u32, u64>>,
    /// This process's control group and its ancestors, own first.
    pub groups: Outcome<Vec<GroupTimes>>,
    /// Microseconds in which some task waited for a core.
    pub pressure_us: Outcome<u64>,
}

/// All processes of a reading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Processes {
    /// The middle of the time that reading them took, on the clock of [`Snapshot::at`].
    pub at: Duration,
    /// The number of this process.
    pub own: Option<u32>,
    /// Whether every visible one was read; if so, one that is missing in the earlier reading was born later.
    pub complete: bool,
    /// What each used.
    pub seen: BTreeMap<Id, Process>,
}

/// A process or thread: its number, which the kernel uses again, and its birth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    /// The kernel's number.
    pub number: u32,
    /// In ticks since the start of the system.
    pub born: u64,
}

/// What one process used.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Process {
    /// As the kernel counted it.
    pub task: Task,
    /// Its threads one by one, if it was busy enough to look; only the later reading's is used.
    pub threads: Option<Threads>,
}

/// The threads of a process since a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Threads {
    /// Since when they are watched, on the clock of [`Snapshot::at`].
    pub since: Duration,
    /// For each the ticks at that moment (0 for those born later) and the last ticks seen.
    pub ticks: BTreeMap<Id, (u64, u64)>,
}

/// What happened between two readings.
///
/// `peak_busy` is the busiest core over the whole of it; who has readings between knows better.
pub fn window(before: &Snapshot, after: &Snapshot) -> CpuWindow {
    let elapsed = after.at.saturating_sub(before.at);
    let cores = core_shares(&before.cores, &after.cores, elapsed.as_secs_f64() * after.ticks_per_second as f64);
    let (own, processes) = process_shares(before, after);
    CpuWindow {
        elapsed_us: elapsed.into(),
        peak_busy: cores.iter().map(CoreShare::busy).fold(0.0, f64::max),
        cores,
        processes,
        throttled: both(&before.groups, &after.groups, |first, last| throttled(first, last, elapsed, own)),
        run_delay: both(&before.waits, &after.waits, |first, last| longest_wait(first, last, elapsed)),
        pressure: both(&before.pressure_us, &after.pressure_us, |first, last| {
            share(last.saturating_sub(*first) as f64, elapsed.as_micros() as f64)
        }),
    }
}

/// The shares of the cores that are in both readings, in the earlier one's order. `expected` is the length in ticks.
pub fn core_shares(before: &[CoreTicks], after: &[CoreTicks], expected: f64) -> Vec<CoreShare> {
    let find = |core: u32| after.binary_search_by_key(&core, |other| other.core).ok().and_then(|at| after.get(at));
    before.iter().filter_map(|first| Some(core_share(first, find(first.core)?, expected))).collect()
}

fn core_share(first: &CoreTicks, last: &CoreTicks, expected: f64) -> CoreShare {
    let grown = |of: fn(&CoreTicks) -> u64| of(last).saturating_sub(of(first)) as f64;
    let idle = grown(|c| c.idle);
    let used =
        [grown(|c| c.user), grown(|c| c.system), grown(|c| c.softirq), grown(|c| c.irq), grown(|c| c.iowait), grown(|c| c.steal)];
    let counted = used.iter().sum::<f64>() + idle;
    let whole = if counted < expected * ACCOUNTED { expected } else { counted };
    let [user, system, softirq, irq, iowait, steal] = used.map(|ticks| share(ticks, whole));
    let idle = if whole > 0.0 { share(idle + (whole - counted), whole) } else { 1.0 };
    CoreShare { user, system, softirq, irq, iowait, steal, idle }
}

/// What part of `whole` is `part`, between 0 and 1; 0 of nothing.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 }
}

/// The share from two counters, or the reason of the one that is not there.
fn both<T: Clone>(first: &Outcome<T>, last: &Outcome<T>, of: impl FnOnce(&T, &T) -> f64) -> Outcome<f64> {
    first.clone().and_then(|first| last.clone().map(|last| of(&first, &last)))
}

/// The level that was throttled most. `own` is what this process used, in cores.
///
/// The kernel adds up the throttled time of all cores on which the group wanted to run, so two threads
/// kept waiting for half a second make a whole second. Together with the time used this is the time
/// wanted: where that is more than one core's, the throttled part of it is the share; else it is
/// the part of the window. Without the group's own figure of use, ours stands in (version 1 keeps it elsewhere).
fn throttled(first: &[GroupTimes], last: &[GroupTimes], elapsed: Duration, own: f64) -> f64 {
    let window = elapsed.as_micros() as f64;
    let level = |(first, last): (&GroupTimes, &GroupTimes)| {
        let grown = |of: fn(&GroupTimes) -> Option<u64>| Some(of(last)?.saturating_sub(of(first)?) as f64);
        let kept = grown(|group| group.throttled_us)?;
        let used = grown(|group| group.used_us).unwrap_or(own * window);
        Some(share(kept, window.max(kept + used)))
    };
    first.iter().zip(last).filter_map(level).fold(0.0, f64::max)
}

/// The growth of the thread that waited most; one that is new waited since its birth.
fn longest_wait(first: &BTreeMap<u32, u64>, last: &BTreeMap<u32, u64>, elapsed: Duration) -> f64 {
    let grown = |(thread, waited): (&u32, &u64)| waited.saturating_sub(first.get(thread).copied().unwrap_or(0));
    share(last.iter().map(grown).max().unwrap_or(0) as f64, elapsed.as_nanos() as f64)
}

/// The ticks that each process used between; those without any are left out, except our own.
pub(super) fn growth<'a>(before: &'a Processes, after: &'a Processes) -> impl Iterator<Item = (Id, &'a Process, u64)> {
    after.seen.iter().filter_map(|(id, process)| {
        let first = match before.seen.get(id) {
            Some(first) => first.task.ticks,
            None if before.complete => 0,
            None => return None,
        };
        Some((*id, process, process.task.ticks.saturating_sub(first)))
            .filter(|(id, _, ticks)| *ticks > 0 || after.own == Some(id.number))
    })
}

/// What this process used in cores, and the busiest ones.
fn process_shares(before: &Snapshot, after: &Snapshot) -> (f64, Vec<ProcessShare>) {
    let (first, last) = (&before.processes, &after.processes);
    let window = last.at.saturating_sub(first.at);
    let ticks = window.as_secs_f64() * after.ticks_per_second as f64;
    let most = after.cores.len().max(1) as f64;
    let mut shares = Vec::new();
    // The kernel's pools of threads (nfsd, kworker on one queue) are one program in many processes.
    let mut pools: BTreeMap<&str, ProcessShare> = BTreeMap::new();
    for (id, process, grown) in growth(first, last) {
        if ticks <= 0.0 {
            break;
        }
        let cores = (grown as f64 / ticks).min(if process.task.kernel { 1.0 } else { most });
        let busiest_thread = busiest_thread(process, cores, last.at, after.ticks_per_second);
        let ours = last.own == Some(id.number);
        let found = ProcessShare { name: process.task.name.clone(), ours, cores, busiest_thread };
        if process.task.kernel {
            let pool =
                pools.entry(&process.task.name).or_insert(ProcessShare { cores: 0.0, busiest_thread: 0.0, ..found.clone() });
            pool.cores = (pool.cores + found.cores).min(most);
            pool.busiest_thread = pool.busiest_thread.max(found.busiest_thread);
        } else {
            shares.push(found);
        }
    }
    shares.extend(pools.into_values());
    shares.sort_by(|a, b| b.cores.total_cmp(&a.cores));
    let own = shares.iter().find(|share| share.ours).map_or(0.0, |share| share.cores);
    let mut others = 0;
    shares.retain(|share| {
        others += usize::from(!share.ours);
        share.ours || others <= KEPT
    });
    (own, shares)
}

/// The share of one core of the busiest thread: exact for a process with one thread or with threads
/// watched from the start; else what they did since they were watched, and without any such look
/// the mean, which the busiest cannot be below.
fn busiest_thread(process: &Process, cores: f64, until: Duration, ticks_per_second: u64) -> f64 {
    let mean = cores / process.task.threads.max(1) as f64;
    let watched = process.threads.as_ref().map_or(0.0, |threads| {
        let ticks = until.saturating_sub(threads.since).as_secs_f64() * ticks_per_second as f64;
        share(threads.ticks.values().map(|(first, last)| last.saturating_sub(*first)).max().unwrap_or(0) as f64, ticks)
    });
    watched.max(mean).min(cores).min(1.0)
}
