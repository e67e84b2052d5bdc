//! Tests of the sampler on the running system: what the kernel really counts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::sample::{Sampler, Watch};
use super::tree::Tree;
use crate::model::Outcome;
use crate::model::cpu::CpuWindow;

const INTERVAL: Duration = Duration::from_millis(200);

/// A child that runs until it is dropped.
struct Burner(Child);

impl Burner {
    /// A loop without end, started by `before` (such as `taskset -c 0`).
    fn start(before: &[&str]) -> Option<Self> {
        let words = [before, &["sh", "-c", "while :; do :; done"]].concat();
        let (program, arguments) = words.split_first()?;
        Command::new(program).args(arguments).stdin(Stdio::null()).spawn().ok().map(Self)
    }

    fn watch(&self) -> Sampler {
        Sampler::watch(Tree::new(Path::new("/"), Some(self.0.id())), INTERVAL)
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A control group that ends with the test.
struct Group(PathBuf);

impl Group {
    /// A new group with a quota of a tenth of one core, of either generation.
    fn with_a_tenth() -> Self {
        let name = format!("weaklink-test-{}", std::process::id());
        let first = Path::new("/sys/fs/cgroup/cpu");
        let second = Path::new("/sys/fs/cgroup");
        // The greatest weight, so that on a crowded machine the quota is used up at once all the same.
        let (parent, settings) = if first.is_dir() {
            (first, [("cpu.cfs_quota_us", "10000"), ("cpu.shares", "262144")])
        } else {
            (second, [("cpu.max", "10000 100000"), ("cpu.weight", "10000")])
        };
        let group = Self(parent.join(name));
        fs::create_dir(&group.0).expect("this test needs root and a writable control group");
        for (file, value) in settings {
            fs::write(group.0.join(file), value).expect("this test needs the controller `cpu` in new groups");
        }
        group
    }

    fn take(&self, child: &Burner) {
        fs::write(self.0.join("cgroup.procs"), child.0.id().to_string()).expect("the child can be moved");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Lets the kernel count for a while.
fn measure(sampler: Sampler) -> CpuWindow {
    thread::sleep(Duration::from_millis(2500));
    sampler.finish().measured().cloned().expect("this system tells")
}

#[test]
fn a_busy_child_is_found_and_named() {
    let child = Burner::start(&[]).expect("every system has sh");
    let window = measure(child.watch());
    let found = window.processes.iter().find(|process| process.ours).expect("ours is always there");
    assert!(found.name == "sh" || found.name == "dash" || found.name == "busybox", "{found:?}");
    assert!(found.cores > 0.0 && found.cores < 1.2 && found.busiest_thread <= found.cores, "{found:?}");
    assert!(window.peak_busy > 0.0 && window.peak_busy <= 1.0);
    assert!(window.elapsed_us.0 >= 2_500_000);
}

#[test]
fn a_process_that_ends_in_the_window_is_still_counted() {
    let brief = Burner::start(&[]).expect("every system has sh");
    let pid = brief.0.id();
    let tree = || Tree::new(Path::new("/"), Some(pid));
    let ticks = || tree().threads(pid).first().map_or(0, |(_, task)| task.ticks);
    let mut watch = Watch::new(tree()).expect("this system tells");
    let first = ticks();
    wait_until(|| ticks() > first);
    watch.scan();
    drop(brief);
    let window = watch.close();
    let found = window.as_ref().ok().and_then(|window| window.processes.iter().find(|process| process.ours));
    assert!(found.is_some_and(|process| process.cores > 0.0), "{window:?}");
}

/// Asks again until it is so; gives up after a minute.
fn wait_until(mut so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !so() {
        assert!(begin.elapsed() < Duration::from_secs(60), "the kernel has given it no time for a minute");
        thread::yield_now();
    }
}

#[test]
fn three_loops_on_one_core_wait_for_each_other() {
    let core = allowed_core();
    let loops: Vec<Burner> = (0..3).filter_map(|_| Burner::start(&["taskset", "-c", &core])).collect();
    let Some(first) = loops.first() else {
        say("skipped: no taskset here");
        return;
    };
    let window = measure(first.watch());
    match window.run_delay.measured() {
        Some(share) => assert!(*share > 0.4, "{window:?}"),
        None => say("skipped: this kernel keeps no schedstat"),
    }
    say(&format!("three loops on one core: run delay {:?}", window.run_delay));
}

#[test]
#[ignore = "makes a control group: needs root and the controller cpu"]
fn a_quota_of_a_tenth_shows_as_nine_tenths_throttled() {
    let group = Group::with_a_tenth();
    let (child, other) = (Burner::start(&[]).expect("every system has sh"), Burner::start(&[]).expect("every system has sh"));
    group.take(&child);
    let elsewhere = other.watch();
    let inside = measure(child.watch());
    let elsewhere = elsewhere.finish();
    say(&format!("inside: throttled {:?}, run delay {:?}", inside.throttled, inside.run_delay));
    assert!(inside.throttled.measured().is_some_and(|share| *share > 0.6 && *share <= 1.0), "{inside:?}");
    let elsewhere = elsewhere.measured().map(|window| &window.throttled);
    assert!(elsewhere.is_some_and(|share| share.measured().is_some_and(|share| *share < 0.1)), "{elsewhere:?}");
    drop(child);
}

#[test]
#[ignore = "a measurement of this program's own cost; starts 400 processes"]
fn four_hundred_processes_cost_little() {
    let sleeping = || Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().ok().map(Burner);
    let crowd: Vec<Burner> = (0..400).filter_map(|_| sleeping()).collect();
    let sampler = Sampler::watch(Tree::new(Path::new("/"), None), INTERVAL);
    thread::sleep(Duration::from_secs(5));
    let window = measure(sampler);
    let ours = window.processes.iter().find(|process| process.ours).expect("ours is always there");
    say(&format!("{} processes: the sampler used {:.4} cores, run delay {:?}", crowd.len(), ours.cores, window.run_delay));
    assert!(ours.cores < 0.02, "{ours:?}");
}

/// The first core on which this process may run.
fn allowed_core() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or("0");
    list.trim().split([',', '-']).next().unwrap_or("0").to_owned()
}

#[expect(clippy::print_stderr, reason = "a skipped test is visible, and so are a measurement's figures")]
fn say(text: &str) {
    eprintln!("{text}");
}

#[test]
fn the_running_system_counts_packets_that_arrive() {
    let mut tree = Tree::new(Path::new("/"), None);
    match tree.interrupts() {
        Outcome::Measured(reading) => assert!(!reading.receive.is_empty()),
        other => assert!(!Path::new("/proc/softirqs").exists(), "{other:?}"),
    }
}
