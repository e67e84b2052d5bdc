//! How loaded a host was during a window, and by whom.

use super::limits;
use super::seen::{Sums, window};
use super::words::percent;
use crate::model::Role;
use crate::model::cpu::{CoreShare, CpuWindow, ProcessShare};
use crate::model::throughput::Pass;

/// How loaded a host was.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) throttled: f64,
    pub(super) run_delay: f64,
    /// The busiest core over the window.
    pub(super) core: f64,
    /// Its soft and hard interrupts.
    pub(super) softirq: f64,
    /// The busiest thread of ours.
    pub(super) thread: f64,
    /// The share of what is burnt that others burn.
    pub(super) others: f64,
    pub(super) mean: f64,
    /// The share of all cores' time that the hypervisor gave to others.
    pub(super) stolen: f64,
    /// Soft and hard interrupts of the core that had most of them.
    interrupts: f64,
    /// The share of the time in which threads waited is known.
    waits_known: bool,
    /// What our own program used is known.
    own_known: bool,
    /// What was sent waited for the path all the time, and never for a program.
    path_bound: bool,
}

/// Whether the sender's kernel had data to send and to wait for all the time, stopped by no window, while a queue stood on the way: then
/// neither the program that gives nor the one that takes held the pass back. Streams that wait for a program leave gaps: beside others
/// that fill the cores they were seen busy for 15 to 60 % of the time, and behind a shaper for 97 to 100 %.
fn path_bound(pass: &Pass) -> bool {
    let Some(streams) = pass.sender.measured().filter(|streams| !streams.is_empty()) else { return false };
    let span = pass.elapsed_us.0 as f64;
    let busy = |us: Option<u64>| us.is_some_and(|us| us as f64 >= limits::DATA_WAITS * span);
    let queued = |rtt: Option<u32>, least: Option<u32>| rtt.zip(least).is_some_and(|(rtt, least)| rtt >= least.saturating_mul(2));
    let sums = Sums::of(pass);
    let stopped = |share: Option<f64>| share.is_none_or(|share| share >= limits::RWND_LIMITED);
    let all = streams.iter().all(|stream| busy(stream.busy_us) && queued(stream.rtt_us, stream.min_rtt_us));
    all && !stopped(sums.rwnd) && !stopped(sums.sndbuf)
}

impl Load {
    /// What a host did during a pass, where that was looked at.
    pub(super) fn during(pass: &Pass, role: Role) -> Option<Self> {
        Some(Self { path_bound: path_bound(pass), ..Self::of(window(pass, role)?) })
    }

    /// What a host did meanwhile, whatever it moved.
    pub(super) fn of(window: &CpuWindow) -> Self {
        let burnt: f64 = window.cores.iter().map(CoreShare::busy).sum();
        let others: f64 = window.processes.iter().filter(|p| p.is_foreign()).map(|p| p.cores).sum();
        let busiest = window.busiest().copied().unwrap_or_default();
        let threads = window.processes.iter().filter(|p| p.is_ours()).map(|p| p.busiest_thread);
        Self {
            path_bound: false,
            own_known: window.processes.iter().any(ProcessShare::is_ours),
            throttled: window.throttled.measured().copied().unwrap_or(0.0),
            run_delay: window.run_delay.measured().copied().unwrap_or(0.0),
            core: busiest.busy(),
            softirq: busiest.softirq + busiest.irq,
            thread: threads.fold(0.0, f64::max),
            others: if burnt > 0.0 { others / burnt } else { 0.0 },
            mean: window.mean_busy(),
            interrupts: window.cores.iter().map(|core| core.softirq + core.irq).fold(0.0, f64::max),
            stolen: window.cores.iter().map(|core| core.steal).sum::<f64>() / window.cores.len().max(1) as f64,
            waits_known: window.run_delay.measured().is_some(),
        }
    }

    pub(super) fn starved(self) -> bool {
        self.throttled >= limits::THROTTLED || self.waits()
    }

    /// Whether a thread of ours waited for a core for so long that it may have held something back.
    fn waits(self) -> bool {
        self.run_delay >= limits::RUN_DELAY && !self.beside_the_path()
    }

    /// Whether one core is full, unless what is measured has no part in that.
    pub(super) fn core_full(self) -> bool {
        (self.core >= limits::CORE_FULL || self.thread >= limits::CORE_FULL) && !self.idles()
    }

    /// The share of all cores' time that is not free.
    pub(super) fn taken(self) -> f64 {
        self.mean + self.stolen
    }

    /// How much of the time the program was kept from running.
    pub(super) fn starvation(self) -> f64 {
        self.throttled.max(self.run_delay).min(1.0)
    }

    /// Whether the program is kept from cores that have time: a quota, or a neighbour with precedence. Where
    /// the cores are full with the network itself, waiting is a symptom of that.
    pub(super) fn too_little(self) -> bool {
        let own_work = self.core_full() && self.softirq >= limits::OTHERS_BURN;
        self.throttled >= limits::THROTTLED || (self.waits() && self.taken() < limits::CORES_TAKEN && !own_work)
    }

    /// Whether other programs take the cores that ours would need.
    pub(super) fn background(self) -> bool {
        let crowded = self.taken() >= limits::CORES_TAKEN;
        let beside = self.core_full() && (!self.waits_known || self.run_delay >= limits::SOME_DELAY);
        // Threads that wait while most of the cores' time is free wait for a quota, not for the others.
        let quota = self.run_delay >= limits::RUN_DELAY && self.taken() < limits::MOSTLY_FREE;
        let loaded = self.others >= limits::OTHERS_BURN && (crowded || beside) && !quota && self.throttled < limits::THROTTLED;
        loaded && !self.idles()
    }

    /// The most of the time that any thread of ours had work for: it ran, or waited for a core. The busiest thread and the one that waited
    /// most need not be the same, so this is an upper bound.
    pub(super) fn wanted(self) -> f64 {
        (self.thread + self.run_delay).min(1.0)
    }

    /// Whether the cores are full with other programs, and what is measured waits for the path and not for them.
    fn beside_the_path(self) -> bool {
        self.path_bound
            && self.others >= limits::OTHERS_BURN
            && (self.core >= limits::CORE_FULL || self.taken() >= limits::CORES_TAKEN)
            && self.interrupts < limits::INTERRUPTS_FULL
            && self.thread < limits::THREAD_FULL
            && self.throttled < limits::THROTTLED
            && !self.robbed()
    }

    /// Whether no thread of ours had work for most of the time, and no core had much of the kernel's for the network.
    fn sleeps(self) -> bool {
        self.waits_known
            && self.own_known
            && !self.starved()
            && !self.robbed()
            && self.wanted() < limits::THREADS_SLEEP
            && self.interrupts < limits::INTERRUPTS_IDLE
    }

    /// Whether nothing that is measured waited for this host, however busy others keep it.
    pub(super) fn idles(self) -> bool {
        self.beside_the_path() || self.sleeps()
    }

    /// What shows that nothing waited for this host.
    pub(super) fn why_idle(self) -> String {
        if self.beside_the_path() {
            "data waited for the path all the time, and no window closed".to_owned()
        } else {
            format!("its threads ran or waited for a core for at most {} of the time", percent(self.wanted()))
        }
    }

    /// Whether the host can do no more, whoever burns it.
    pub(super) fn full(self) -> bool {
        self.starved() || self.core_full()
    }

    /// Whether the hypervisor takes so much that no figure of this host is sure.
    pub(super) fn robbed(self) -> bool {
        self.stolen >= limits::STOLEN
    }
}
