//! A thread that watches the processors while something else is measured.
//!
//! Cheap by design: an interval reads `/proc/stat` and our own threads' waiting times. Going through
//! all processes costs some ten microseconds each, so it is done at the start, at the first interval
//! (to find who is busy), at the end, and between only as often as `SCAN_SHARE` of a core allows. A process that
//! is born and ends between two such looks is not seen.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::decode::Task;
use super::tree::Tree;
use super::window::{Id, Process, Processes, Snapshot, Threads, core_shares, growth, window};
use crate::model::Outcome;
use crate::model::cpu::{CoreShare, CpuWindow};
use crate::sys;

/// The shortest interval. The kernel counts in hundredths of a second, so less is noise.
const LEAST_INTERVAL: Duration = Duration::from_millis(50);

/// The longest window: a sampler that nobody ends does so itself.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Going through all processes between the start and the end may cost this part of one core: 1 of 200.
/// A small ARM core needs some 20 ms for 400 processes, so it looks every four seconds and a PC every half second.
const SCAN_SHARE: u32 = 200;

/// How many of the busiest processes are looked into for their threads.
const LOOKED_INTO: usize = 12;

/// No more processes, or threads of one process, than this are remembered in one window.
const MAX_REMEMBERED: usize = 64 * 1024;

/// Why there is nothing to sample on systems without a tree of kernel files.
const NO_TREE: &str = "this system does not tell how busy its processors are in a way that weaklink reads; Linux does";

/// The watcher of one window of time.
#[derive(Debug)]
pub struct Sampler {
    running: Outcome<Running>,
}

#[derive(Debug)]
struct Running {
    end: Sender<()>,
    thread: JoinHandle<Outcome<CpuWindow>>,
}

impl Sampler {
    /// Starts watching, and looks at the cores every `interval` (about 200 ms; at least 50 ms).
    ///
    /// Returns after the first look, which takes some milliseconds. If this system cannot be watched, [`Self::finish`] says why.
    pub fn start(interval: Duration) -> Self {
        match sys::host::kernel_tree() {
            Some(root) => Self::watch(Tree::new(root, None), interval),
            None => Self { running: Outcome::skipped(NO_TREE) },
        }
    }

    /// Starts watching a given tree.
    pub fn watch(tree: Tree, interval: Duration) -> Self {
        let start = || {
            let watch = Watch::new(tree)?;
            let (end, ended) = channel();
            let thread = Builder::new()
                .name("cpu-sampler".into())
                .spawn(move || watch.run(&ended, interval.max(LEAST_INTERVAL)))
                .map_err(|error| format!("cannot start the thread that watches the processors: {error}"))?;
            Ok::<_, String>(Running { end, thread })
        };
        Self { running: start().into() }
    }

    /// Ends the window and tells what happened in it.
    ///
    /// `throttled` is the part of the time that the control group wanted (at least the window) in which
    /// its quota kept it from running, at the level of the groups where that was most. `run_delay` is the
    /// waiting time of the thread of this process that waited most. They overlap: while a quota keeps a group from running, its threads that
    /// want to run count as waiting, so `run_delay` is at least about `throttled`, and only what it
    /// has beyond is the competition of other programs.
    pub fn finish(self) -> Outcome<CpuWindow> {
        self.running.and_then(|running| {
            // If the thread ended by itself nobody hears this, and its result is there all the same.
            let _ = running.end.send(());
            running
                .thread
                .join()
                .unwrap_or_else(|_| Outcome::failed("the thread that watches the processors broke off; please report this"))
        })
    }
}

/// Whether other users' processes can be named in a [`CpuWindow`], and why not.
pub fn visibility() -> Outcome<()> {
    sys::host::kernel_tree().map_or_else(|| Outcome::skipped(NO_TREE), |root| Tree::new(root, None).visibility())
}

/// The state of one window.
pub(super) struct Watch {
    tree: Tree,
    clock: Instant,
    before: Snapshot,
    /// What is known by now.
    after: Snapshot,
    peak: f64,
    /// When the next look at all processes is due.
    scan_due: Duration,
}

impl Watch {
    pub(super) fn new(mut tree: Tree) -> Result<Self, String> {
        let clock = Instant::now();
        let tasks = tree.processes();
        let scanned = clock.elapsed();
        let seen = tasks.tasks.into_iter().map(|(id, task)| (id, Process { task, threads: None })).collect();
        let processes = Processes { at: scanned / 2, own: tree.own(), complete: tasks.complete, seen };
        let (waits, groups, pressure_us) = (tree.waits(), tree.groups(), tree.pressure());
        let interrupts = tree.interrupts();
        // The cores come last, so that their window holds nothing of our own start.
        let (cores, at) = (tree.cores()?, clock.elapsed());
        let ticks_per_second = sys::cpu::ticks_per_second();
        let before = Snapshot { at, ticks_per_second, cores, processes, waits, groups, pressure_us, interrupts };
        let after = before.clone();
        let mut watch = Self { tree, clock, before, after, peak: 0.0, scan_due: Duration::ZERO };
        watch.look_into(watch.after.processes.own.into_iter().collect());
        Ok(watch)
    }

    fn run(mut self, ended: &Receiver<()>, interval: Duration) -> Outcome<CpuWindow> {
        let (mut cores, mut at) = (self.before.cores.clone(), self.before.at);
        while self.clock.elapsed() < LONGEST && ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
            let now = self.clock.elapsed();
            // A core's file that cannot be read this time may be readable the next time; the end decides.
            if let Ok(latest) = self.tree.cores() {
                self.peak = busiest(&core_shares(&cores, &latest, self.ticks(now.saturating_sub(at)))).max(self.peak);
                (cores, at) = (latest, now);
            }
            self.merge_waits();
            if now >= self.scan_due {
                self.scan();
            }
        }
        self.close().into()
    }

    fn ticks(&self, span: Duration) -> f64 {
        span.as_secs_f64() * self.after.ticks_per_second as f64
    }

    /// The last reading, and what all of them say.
    pub(super) fn close(mut self) -> Result<CpuWindow, String> {
        self.after.cores = self.tree.cores()?;
        self.after.at = self.clock.elapsed();
        self.merge_waits();
        (self.after.groups, self.after.pressure_us) = (self.tree.groups(), self.tree.pressure());
        self.after.interrupts = self.tree.interrupts();
        self.scan();
        let mut window = window(&self.before, &self.after);
        window.peak_busy = window.peak_busy.max(self.peak);
        Ok(window)
    }

    /// Our threads' waiting times, those of threads that ended kept.
    fn merge_waits(&mut self) {
        match (&mut self.after.waits, self.tree.waits()) {
            (Outcome::Measured(known), Outcome::Measured(latest)) => {
                // No bound is needed: there are only so many thread numbers.
                for (thread, waited) in latest {
                    // A smaller one is a new thread with an old one's number.
                    known.entry(thread).and_modify(|known| *known = waited.max(*known)).or_insert(waited);
                }
            }
            (known, latest) => *known = latest,
        }
    }

    /// A look at all processes, and into the busiest.
    pub(super) fn scan(&mut self) {
        // Our own time on a core, so that a crowded machine does not make looks rare just when they matter.
        let clock = self.clock;
        let spent = || sys::cpu::thread_time().unwrap_or_else(|| clock.elapsed());
        let before = spent();
        let started = self.clock.elapsed();
        let tasks = self.tree.processes();
        let listed = self.clock.elapsed();
        self.after.processes.at = (started + listed) / 2;
        for (id, task) in tasks.tasks {
            remember(&mut self.after.processes.seen, id, task);
        }
        let mut busy: Vec<(u64, u32)> = growth(&self.before.processes, &self.after.processes)
            .filter(|(_, process, _)| process.task.threads > 1)
            .map(|(id, _, ticks)| (ticks, id.number))
            .collect();
        busy.sort_unstable_by(|a, b| b.cmp(a));
        let own = self.after.processes.own;
        self.look_into(
            busy.into_iter().take(LOOKED_INTO).map(|(_, number)| number).filter(|n| Some(*n) != own).chain(own).collect(),
        );
        let cost = spent().saturating_sub(before);
        self.scan_due = started + cost * SCAN_SHARE;
    }

    /// Reads the threads of these processes.
    fn look_into(&mut self, numbers: Vec<u32>) {
        for number in numbers {
            let threads = self.tree.threads(number);
            let now = self.clock.elapsed();
            // The latest with this number: earlier ones have ended.
            let range = Id { number, born: 0 }..=Id { number, born: u64::MAX };
            let Some((id, process)) = self.after.processes.seen.range_mut(range).next_back() else { continue };
            let born_meanwhile = self.before.processes.complete && !self.before.processes.seen.contains_key(id);
            follow(&mut process.threads, threads, now, born_meanwhile.then_some(self.before.processes.at));
        }
    }
}

fn busiest(cores: &[CoreShare]) -> f64 {
    cores.iter().map(CoreShare::busy).fold(0.0, f64::max)
}

/// Notes the latest of one process.
fn remember(seen: &mut BTreeMap<Id, Process>, id: Id, task: Task) {
    let room = seen.len() < MAX_REMEMBERED;
    match seen.entry(id) {
        Entry::Occupied(mut known) => {
            let known = &mut known.get_mut().task;
            // A kernel worker's name tells its work ("kworker/u8:2+kcryptd") only while it is at it.
            let name = if known.kernel && known.name.contains('+') && !task.name.contains('+') {
                std::mem::take(&mut known.name)
            } else {
                task.name.clone()
            };
            *known = Task { name, ..task };
        }
        Entry::Vacant(free) if room => {
            free.insert(Process { task, threads: None });
        }
        Entry::Vacant(_) => {}
    }
}

/// Notes the latest of a process's threads. `born` is the start of the window, if the process was born in it.
fn follow(known: &mut Option<Threads>, latest: Vec<(Id, Task)>, now: Duration, born: Option<Duration>) {
    let new = known.is_none();
    let known = known.get_or_insert_with(|| Threads { since: born.unwrap_or(now), ticks: BTreeMap::new() });
    for (id, task) in latest {
        if known.ticks.len() >= MAX_REMEMBERED {
            break;
        }
        // At the first look at an old process its threads bring a past along; later ones are new.
        let first = if new && born.is_none() { task.ticks } else { 0 };
        known.ticks.entry(id).or_insert((first, task.ticks)).1 = task.ticks;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn recorded(name: &str) -> Tree {
        Tree::new(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cpu").join(name), Some(2000))
    }

    fn task(name: &str, kernel: bool, ticks: u64) -> Task {
        Task { name: name.into(), kernel, ticks, threads: 2, born: 1 }
    }

    const ID: Id = Id { number: 5, born: 1 };

    #[test]
    fn a_recorded_tree_stands_still_and_finishing_does_not_wait_for_the_interval() {
        let started = Instant::now();
        let window = Sampler::watch(recorded("intel-nas-3.10"), Duration::from_secs(3600)).finish();
        let window = window.measured().expect("the tree is complete");
        assert_eq!((window.cores.len(), window.peak_busy), (2, 0.0));
        assert_eq!(window.throttled, Outcome::Measured(0.0));
        assert!(window.processes.iter().all(|process| process.ours && process.cores == 0.0), "{:?}", window.processes);
        assert!(started.elapsed() < Duration::from_secs(3600));
    }

    #[test]
    fn without_a_tree_there_is_a_reason() {
        let failed = Sampler::watch(recorded("bare"), LEAST_INTERVAL).finish();
        assert!(failed.why().is_some_and(|why| why.contains("proc/stat")), "{failed:?}");
        if sys::host::kernel_tree().is_none() {
            assert_eq!(Sampler::start(LEAST_INTERVAL).finish().why(), Some(NO_TREE));
            assert_eq!(visibility().why(), Some(NO_TREE));
        }
    }

    #[test]
    fn a_worker_keeps_the_name_that_tells_its_work() {
        let mut seen = BTreeMap::new();
        for (name, kernel, expected) in [
            ("kworker/u8:2-events", true, "kworker/u8:2-events"),
            ("kworker/u8:2+kcryptd", true, "kworker/u8:2+kcryptd"),
            ("kworker/u8:2-events", true, "kworker/u8:2+kcryptd"),
            ("kworker/u8:2+btrfs", true, "kworker/u8:2+btrfs"),
            ("g++", false, "g++"),
            ("ld", false, "ld"),
        ] {
            remember(&mut seen, ID, task(name, kernel, 1));
            assert_eq!(seen.get(&ID).map(|process| process.task.name.as_str()), Some(expected));
            seen.get_mut(&ID).expect("just put in").task.kernel = kernel;
        }
    }

    #[test]
    fn threads_count_from_the_first_look_or_from_their_birth() {
        let (one, two) = (Id { number: 1, born: 1 }, Id { number: 2, born: 9 });
        let (start, look) = (Duration::from_secs(1), Duration::from_secs(3));
        for (name, born, since, first) in [("old process", None, look, 50), ("born in the window", Some(start), start, 0)] {
            let mut known = None;
            follow(&mut known, vec![(one, task("a", false, 50))], look, born);
            follow(&mut known, vec![(two, task("b", false, 30))], look * 2, born);
            let known = known.expect("it was looked at");
            assert_eq!(known.since, since, "{name}");
            assert_eq!(known.ticks, BTreeMap::from([(one, (first, 50)), (two, (0, 30))]), "{name}");
        }
    }
}
