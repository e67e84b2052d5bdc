//! Two readings of a host's counters become the shares of the time between. Pure.
//!
//! Counters that fall (a core that was switched off and on, a process number used again, the kernel's
//! own corrections of idle and waiting time) count as no growth, and every share stays between 0 and 1.

use std::collections::BTreeMap;
use std::time::Duration;

use super::decode::{CoreTicks, Task};
use super::group::GroupTimes;
use super::interrupts::{self, Reading};
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
    /// The network's interrupts.
    pub interrupts: Outcome<Reading>,
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
        network: both(&before.interrupts, &after.interrupts, interrupts::between),
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
    let spent =
        [grown(|c| c.user), grown(|c| c.system), grown(|c| c.softirq), grown(|c| c.irq), grown(|c| c.iowait), grown(|c| c.steal)];
    let counted = spent.iter().sum::<f64>() + idle;
    let whole = if counted < expected * ACCOUNTED { expected } else { counted };
    let [user, system, softirq, irq, iowait, steal] = spent.map(|ticks| share(ticks, whole));
    let idle = if whole > 0.0 { share(idle + (whole - counted), whole) } else { 1.0 };
    CoreShare { user, system, softirq, irq, iowait, steal, idle }
}

/// What part of `whole` is `part`, between 0 and 1; 0 of nothing.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 }
}

/// What two readings give, or the reason of the one that is not there.
fn both<T: Clone, R>(first: &Outcome<T>, last: &Outcome<T>, of: impl FnOnce(&T, &T) -> R) -> Outcome<R> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A reading at `seconds` with these cores, each (number, user, system, softirq, idle) in ticks.
    fn reading(seconds: u64, cores: &[(u32, u64, u64, u64, u64)]) -> Snapshot {
        let core = |&(core, user, system, softirq, idle)| CoreTicks { core, user, system, softirq, idle, ..CoreTicks::default() };
        Snapshot {
            at: SECOND * seconds as u32,
            ticks_per_second: 100,
            cores: cores.iter().map(core).collect(),
            processes: Processes { at: SECOND * seconds as u32, own: Some(9), complete: true, seen: BTreeMap::new() },
            waits: Outcome::Measured(BTreeMap::new()),
            groups: Outcome::Measured(Vec::new()),
            pressure_us: Outcome::Measured(0),
            interrupts: Outcome::skipped("none"),
        }
    }

    fn with(mut snapshot: Snapshot, processes: &[(u32, u64, &str, u64, u64)]) -> Snapshot {
        for &(number, born, name, threads, ticks) in processes {
            let task = Task { name: name.trim_matches(['[', ']']).into(), kernel: name.starts_with('['), ticks, threads, born };
            snapshot.processes.seen.insert(Id { number, born }, Process { task, threads: None });
        }
        snapshot
    }

    #[test]
    fn cores_get_their_shares_and_one_full_core_of_four_is_seen() {
        let before = reading(0, &[(0, 0, 0, 0, 100), (1, 0, 0, 0, 100), (2, 0, 0, 0, 100), (3, 0, 0, 0, 100)]);
        let after = reading(10, &[(0, 0, 200, 800, 100), (1, 0, 0, 0, 1100), (2, 0, 0, 0, 1100), (3, 0, 0, 0, 1100)]);
        let window = window(&before, &after);
        assert!((window.mean_busy() - 0.25).abs() < 1e-9);
        let busiest = window.busiest().expect("four cores");
        assert!((busiest.busy() - 1.0).abs() < 1e-9 && (busiest.softirq - 0.8).abs() < 1e-9, "{busiest:?}");
        assert!((window.peak_busy - 1.0).abs() < 1e-9);
        assert_eq!(window.elapsed_us.0, 10_000_000);
    }

    #[test]
    fn waiting_for_disks_and_stolen_time_is_not_busy() {
        let before = reading(0, &[(0, 0, 0, 0, 0)]);
        let mut after = reading(1, &[(0, 10, 0, 0, 20)]);
        after.cores[0].iowait = 40;
        after.cores[0].steal = 30;
        let core = window(&before, &after).cores[0];
        assert!(
            (core.busy() - 0.1).abs() < 1e-9 && (core.iowait - 0.4).abs() < 1e-9 && (core.steal - 0.3).abs() < 1e-9,
            "{core:?}"
        );
    }

    #[test]
    fn counters_that_misbehave_give_no_nonsense() {
        let one = |user, idle| reading(0, &[(0, user, 0, 0, idle)]);
        for (name, before, after, busy, idle) in [
            ("everything fell", one(500, 500), reading(10, &[(0, 3, 0, 0, 4)]), 0.0, 1.0),
            ("idle fell, the rest grew", one(0, 500), reading(10, &[(0, 1000, 0, 0, 499)]), 1.0, 0.0),
            ("a sleeping core's clock stands still", one(0, 500), reading(10, &[(0, 10, 0, 0, 500)]), 0.01, 0.99),
            ("no time passed", one(0, 500), reading(0, &[(0, 0, 0, 0, 500)]), 0.0, 1.0),
            ("as many ticks as fit", one(0, 0), reading(10, &[(0, u64::MAX, 0, 0, u64::MAX)]), 0.5, 0.5),
            ("time ran backwards", reading(9, &[(0, 0, 0, 0, 0)]), reading(3, &[(0, 5, 0, 0, 5)]), 0.5, 0.5),
        ] {
            let core = window(&before, &after).cores[0];
            assert!((core.busy() - busy).abs() < 1e-9 && (core.idle - idle).abs() < 1e-9, "{name}: {core:?}");
        }
    }

    #[test]
    fn cores_that_come_and_go_are_left_out() {
        let before = reading(0, &[(0, 0, 0, 0, 0), (1, 0, 0, 0, 0), (2, 0, 0, 0, 0)]);
        let after = reading(1, &[(0, 0, 0, 0, 100), (2, 100, 0, 0, 0), (3, 9000, 0, 0, 9)]);
        let busy: Vec<f64> = window(&before, &after).cores.iter().map(CoreShare::busy).collect();
        assert_eq!(busy, [0.0, 1.0]);
        assert!(window(&before, &reading(1, &[])).cores.is_empty());
    }

    #[test]
    fn processes_are_counted_from_birth_or_from_the_start() {
        let cores = [(0, 0, 0, 0, 0), (1, 0, 0, 0, 0)];
        let before = with(reading(0, &cores), &[(5, 1, "smbd", 1, 1000), (7, 2, "old", 1, 900), (9, 3, "weaklink", 4, 0)]);
        let after = with(
            reading(10, &cores),
            &[
                (5, 1, "smbd", 1, 2000),
                (7, 2, "old", 1, 900),
                (7, 50, "reused", 1, 500),
                (8, 60, "born", 2, 300),
                (9, 3, "weaklink", 4, 0),
                (10, 1, "[nfsd]", 1, 100),
                (11, 1, "[nfsd]", 1, 300),
            ],
        );
        let window = window(&before, &after);
        let found: Vec<(&str, f64, f64, bool)> =
            window.processes.iter().map(|p| (p.name.as_str(), p.cores, p.busiest_thread, p.ours)).collect();
        let expected = [
            ("smbd", 1.0, 1.0, false),
            ("reused", 0.5, 0.5, false),
            ("nfsd", 0.4, 0.3, false),
            ("born", 0.3, 0.15, false),
            ("weaklink", 0.0, 0.0, true),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn who_was_not_in_a_cut_list_is_not_taken_for_new() {
        let mut before = reading(0, &[(0, 0, 0, 0, 0)]);
        before.processes.complete = false;
        let after = with(reading(1, &[(0, 0, 0, 0, 0)]), &[(5, 1, "smbd", 1, 1_000_000)]);
        assert!(window(&before, &after).processes.is_empty());
    }

    #[test]
    fn the_busiest_twelve_are_kept_and_ours_in_any_case() {
        let names: Vec<String> = (0..30).map(|n| format!("p{n}")).collect();
        let all: Vec<_> = names.iter().zip(0..).map(|(name, n)| (100 + n, 1, name.as_str(), 1, u64::from(n) + 10)).collect();
        let mut after = with(reading(10, &[(0, 0, 0, 0, 0)]), &all);
        after = with(after, &[(9, 1, "weaklink", 1, 1)]);
        let window = window(&reading(0, &[(0, 0, 0, 0, 0)]), &after);
        assert_eq!(window.processes.len(), KEPT + 1);
        assert_eq!(window.processes.first().map(|p| p.name.as_str()), Some("p29"));
        assert!(window.processes.last().is_some_and(|p| p.ours));
    }

    #[test]
    fn the_busiest_thread_is_the_watched_one_and_never_more_than_its_process() {
        let watched = |since, ticks: &[(u64, u64)]| {
            Some(Threads {
                since: SECOND * since,
                ticks: ticks.iter().zip(1..).map(|(t, n)| (Id { number: n, born: 1 }, *t)).collect(),
            })
        };
        for (name, threads, used, look, expected) in [
            ("one thread needs no look", 1, 500, None, 0.5),
            ("no look: at least the mean", 4, 800, None, 0.2),
            ("watched all the time", 4, 1200, watched(0, &[(0, 900), (0, 300)]), 0.9),
            ("watched for the second half", 4, 1200, watched(5, &[(50, 500), (10, 160)]), 0.9),
            ("busy only while watched", 2, 400, watched(6, &[(0, 400), (0, 0)]), 0.4),
            ("a thread's counter fell", 2, 400, watched(0, &[(700, 300), (0, 0)]), 0.2),
        ] {
            let mut after = with(reading(10, &[(0, 0, 0, 0, 0), (1, 0, 0, 0, 0)]), &[(5, 1, "smbd", threads, used)]);
            after.processes.seen.values_mut().for_each(|process| process.threads.clone_from(&look));
            let window = window(&reading(0, &[(0, 0, 0, 0, 0)]), &after);
            let found = window.processes[0].busiest_thread;
            assert!((found - expected).abs() < 1e-9, "{name}: {found}");
        }
    }

    #[test]
    fn a_quota_shows_as_the_part_of_the_time_wanted() {
        let group = |throttled_us: u64, used_us: Option<u64>| GroupTimes { throttled_us: Some(throttled_us), used_us };
        let none = GroupTimes::default();
        let s = 1_000_000;
        for (name, before, after, expected) in [
            ("one thread, a tenth of a core", vec![group(0, Some(0))], vec![group(9 * s, Some(s))], 0.9),
            ("four threads, two of four cores", vec![group(0, Some(0))], vec![group(20 * s, Some(20 * s))], 0.5),
            ("a short burst", vec![group(0, Some(0))], vec![group(s, Some(s))], 0.1),
            ("version 1: no figure of use", vec![group(5, None)], vec![group(9 * s + 5, None)], 0.9),
            (
                "an ancestor's quota",
                vec![group(0, Some(0)), group(0, Some(0))],
                vec![group(0, Some(s)), group(9 * s, Some(s))],
                0.9,
            ),
            ("the root has no quota", vec![group(0, Some(0)), none], vec![group(0, Some(s)), none], 0.0),
            ("the group was made anew", vec![group(9 * s, Some(s))], vec![group(0, Some(0))], 0.0),
            ("no quota anywhere", vec![none], vec![none], 0.0),
        ] {
            let (mut first, mut last) = (reading(0, &[(0, 0, 0, 0, 0)]), reading(10, &[(0, 0, 0, 0, 0)]));
            (first.groups, last.groups) = (Outcome::Measured(before), Outcome::Measured(after));
            let found = window(&first, &last).throttled;
            assert!(found.measured().is_some_and(|found| (found - expected).abs() < 1e-9), "{name}: {found:?}");
        }
    }

    #[test]
    fn the_thread_that_waited_most_counts_and_reasons_pass_through() {
        let waits = |list: &[(u32, u64)]| Outcome::Measured(list.iter().copied().collect::<BTreeMap<_, _>>());
        let (mut first, mut last) = (reading(0, &[]), reading(10, &[]));
        first.waits = waits(&[(1, 5_000_000_000), (2, 0), (4, 9_000_000_000)]);
        last.waits = waits(&[(1, 6_000_000_000), (2, 4_000_000_000), (3, 6_700_000_000), (4, 0)]);
        last.pressure_us = Outcome::Measured(2_500_000);
        let found = window(&first, &last);
        assert!(found.run_delay.measured().is_some_and(|share| (share - 0.67).abs() < 1e-9), "{:?}", found.run_delay);
        assert!(found.pressure.measured().is_some_and(|share| (share - 0.25).abs() < 1e-9));
        first.pressure_us = Outcome::skipped("no psi");
        last.groups = Outcome::failed("gone");
        let found = window(&first, &last);
        assert_eq!((found.pressure.why(), found.throttled.why()), (Some("no psi"), Some("gone")));
        assert!(matches!((found.pressure, found.throttled), (Outcome::Skipped(_), Outcome::Failed(_))));
    }

    prop_compose! {
        fn any_reading()(
            at in any::<u32>(),
            ticks_per_second in prop_oneof![Just(100u64), any::<u64>()],
            cores in proptest::collection::btree_map(0u32..4, any::<[u64; 7]>(), 0..4),
            tasks in proptest::collection::vec((0u32..4, 0u64..3, any::<bool>(), any::<u64>(), any::<u64>(), any::<(u64, u64)>()), 0..6),
            complete in any::<bool>(),
            waits in proptest::collection::btree_map(0u32..4, any::<u64>(), 0..4),
            group in any::<(Option<u64>, Option<u64>)>(),
            pressure in any::<u64>(),
        ) -> Snapshot {
            let at = Duration::from_micros(u64::from(at));
            let cores = cores.into_iter().map(|(core, [user, system, softirq, irq, iowait, steal, idle])| CoreTicks { core, user, system, softirq, irq, iowait, steal, idle });
            let seen = tasks.into_iter().map(|(number, born, kernel, threads, ticks, thread)| {
                let task = Task { name: number.to_string(), kernel, ticks, threads, born };
                (Id { number, born }, Process { task, threads: Some(Threads { since: at / 2, ticks: BTreeMap::from([(Id { number, born }, thread)]) }) })
            });
            Snapshot {
                at, ticks_per_second, cores: cores.collect(),
                processes: Processes { at, own: Some(1), complete, seen: seen.collect() },
                waits: Outcome::Measured(waits),
                groups: Outcome::Measured(vec![GroupTimes { throttled_us: group.0, used_us: group.1 }]),
                pressure_us: Outcome::Measured(pressure),
                interrupts: Outcome::Measured(Reading::default()),
            }
        }
    }

    proptest! {
        #[test]
        fn whatever_is_read_every_share_is_one(before in any_reading(), after in any_reading()) {
            let window = window(&before, &after);
            let unit = |share: f64| (0.0..=1.0).contains(&share);
            for core in &window.cores {
                let all = [core.user, core.system, core.softirq, core.irq, core.iowait, core.steal, core.idle];
                prop_assert!(all.into_iter().all(unit) && core.busy() < 1.0 + 1e-9, "{core:?}");
            }
            for process in &window.processes {
                prop_assert!(unit(process.busiest_thread) && process.cores >= 0.0 && process.cores <= after.cores.len().max(1) as f64, "{process:?}");
            }
            for share in [window.throttled, window.run_delay, window.pressure] {
                prop_assert!(share.measured().copied().is_some_and(unit), "{share:?}");
            }
        }
    }
}
