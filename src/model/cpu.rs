//! What the processors did, and what they could do.

use serde::{Deserialize, Serialize};

use super::host::Role;
use super::outcome::{Outcome, absent};
use crate::units::{BitRate, ByteRate, Elapsed};

/// Both hosts' ceilings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuSection {
    /// The PC's.
    pub pc: Outcome<HostCpu>,
    /// The NAS's.
    pub nas: Outcome<HostCpu>,
}

impl CpuSection {
    /// One host's ceilings.
    pub const fn of(&self, role: Role) -> &Outcome<HostCpu> {
        match role {
            Role::Pc => &self.pc,
            Role::Nas => &self.nas,
        }
    }
}

/// One host's processor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostCpu {
    /// Whether the processor has instructions for AES.
    pub aes_instructions: Outcome<bool>,
    /// What one core gives with each cipher, measured in process.
    pub ciphers: Vec<CipherCeiling>,
    /// What the host did before the test began.
    pub idle: Outcome<CpuWindow>,
}

/// What one core gives with one cipher.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CipherCeiling {
    /// The field's name, such as `aes128-gcm` or `chacha20-poly1305`.
    pub cipher: String,
    /// Encrypting and authenticating, one core.
    pub rate: Outcome<ByteRate>,
}

/// A window of time on all cores of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuWindow {
    /// Its length.
    pub elapsed_us: Elapsed,
    /// Every core's shares over the whole window.
    pub cores: Vec<CoreShare>,
    /// For each core the largest busy share of any sampling interval.
    pub peak_busy: f64,
    /// The busiest processes, most first.
    pub processes: Vec<ProcessShare>,
    /// The share of the window in which the control group of this process was kept from running for its quota.
    pub throttled: Outcome<f64>,
    /// The share of the window in which a thread of this process that wanted to run had to wait for a core.
    pub run_delay: Outcome<f64>,
    /// The share of the window in which some task waited for a core, as the kernel's pressure figures say.
    pub pressure: Outcome<f64>,
    /// Which cores took the network's interrupts.
    #[serde(default = "absent")]
    pub network: Outcome<NetworkInterrupts>,
}

/// How often each core was interrupted for the network in a window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkInterrupts {
    /// Soft interrupts for arriving packets (`NET_RX` of `/proc/softirqs`), of all interfaces together; cores that took none are left out.
    pub receive: Vec<CoreCount>,
    /// Interrupts of each card, as `/proc/interrupts` counts them; cards that had none are left out.
    pub cards: Outcome<Vec<CardInterrupts>>,
}

/// One card's interrupts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardInterrupts {
    /// The interface.
    pub interface: String,
    /// The cores that took any.
    pub cores: Vec<CoreCount>,
}

/// Something that one core did so many times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreCount {
    /// The kernel's number of the core.
    pub core: u32,
    /// How often.
    pub count: u64,
}

/// The core that did most of it, and its share of all, 0 to 1; none where nothing was done.
pub fn most_on(cores: &[CoreCount]) -> Option<(u32, f64)> {
    let all: f64 = cores.iter().map(|one| one.count as f64).sum();
    // Of two alike the lower number.
    let most = cores.iter().max_by_key(|one| (one.count, std::cmp::Reverse(one.core)))?;
    (all > 0.0).then(|| (most.core, most.count as f64 / all))
}

/// A load below this many cores is too little to divide by: the kernel counts in hundredths of a second.
const LEAST_CORES: f64 = 0.05;

/// What one full core of a host carries, at what this traffic cost it: the rate over the cores that were busy meanwhile.
///
/// What the host did at rest (`idle`), and what other programs were seen to burn, is taken off. None where the load is too little to tell.
pub fn rate_per_core(rate: BitRate, meanwhile: &CpuWindow, idle: Option<&CpuWindow>) -> Option<BitRate> {
    let cores = meanwhile.caused_cores(idle);
    (cores >= LEAST_CORES && rate.0 > 0).then(|| rate.scale(1.0 / cores))
}

/// What one core did: shares of the time, each 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreShare {
    /// Programs, those with low priority included.
    pub user: f64,
    /// The kernel on behalf of programs.
    pub system: f64,
    /// Soft interrupts: most of the network stack's receive side.
    pub softirq: f64,
    /// Hard interrupts.
    pub irq: f64,
    /// Waiting for a disk with nothing else to do.
    pub iowait: f64,
    /// Taken by the hypervisor for others.
    pub steal: f64,
    /// Nothing to do.
    pub idle: f64,
}

impl CoreShare {
    /// Everything but idle, waiting for disks and stolen time.
    pub fn busy(&self) -> f64 {
        self.user + self.system + self.softirq + self.irq
    }
}

impl CpuWindow {
    /// The busiest core over the whole window, if any core was seen.
    pub fn busiest(&self) -> Option<&CoreShare> {
        self.cores.iter().max_by(|a, b| a.busy().total_cmp(&b.busy()))
    }

    /// The busy share of all cores together: 1 is all of them full.
    pub fn mean_busy(&self) -> f64 {
        if self.cores.is_empty() { 0.0 } else { self.cores.iter().map(CoreShare::busy).sum::<f64>() / self.cores.len() as f64 }
    }

    /// The same without what weaklink itself burnt.
    pub fn mean_busy_of_others(&self) -> f64 {
        let ours: f64 = self.processes.iter().filter(|process| process.is_ours()).map(|process| process.cores).sum();
        let cores = self.cores.len().max(1) as f64;
        (self.mean_busy() - ours.max(0.0) / cores).max(0.0)
    }

    /// How many full cores' worth of time all cores together were busy.
    pub fn busy_cores(&self) -> f64 {
        self.cores.iter().map(CoreShare::busy).sum()
    }

    /// The cores' worth of time that the traffic of this window caused, as far as can be told: all of it, without what the host did at
    /// rest and what other programs burnt more than then.
    pub fn caused_cores(&self, idle: Option<&Self>) -> f64 {
        let foreign =
            |window: &Self| window.processes.iter().filter(|process| process.is_foreign()).map(|p| p.cores).sum::<f64>();
        let rest = idle.map_or(0.0, |idle| idle.busy_cores().max(foreign(idle)));
        let more = (foreign(self) - idle.map_or(0.0, foreign)).max(0.0);
        (self.busy_cores() - rest - more).max(0.0)
    }

    /// The share of one core that processes of this name used, all together.
    pub fn process(&self, name: &str) -> Option<f64> {
        let mut found = self.processes.iter().filter(|p| p.name == name).peekable();
        found.peek()?;
        Some(found.map(|p| p.cores).sum())
    }
}

/// What one process used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessShare {
    /// The program's name, no arguments.
    pub name: String,
    /// Whether it is weaklink itself.
    pub ours: bool,
    /// Cores used: 1 is one full core.
    pub cores: f64,
    /// The busiest thread's share of one core.
    pub busiest_thread: f64,
}

impl ProcessShare {
    /// Whether it is weaklink: this process, or another of the name.
    pub fn is_ours(&self) -> bool {
        self.ours || self.name.starts_with("weaklink")
    }

    /// Whether it burns for somebody else: the kernel's own threads may well work for us.
    pub fn is_foreign(&self) -> bool {
        let kernel = ["ksoftirqd", "kworker", "irq/", "napi/", "rcu_", "migration"];
        !self.is_ours() && !kernel.iter().any(|start| self.name.starts_with(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(busy: &[f64]) -> CpuWindow {
        let core = |busy: &f64| CoreShare { system: *busy, idle: 1.0 - busy, ..CoreShare::default() };
        CpuWindow {
            elapsed_us: Elapsed(1_000_000),
            cores: busy.iter().map(core).collect(),
            peak_busy: 0.0,
            processes: Vec::new(),
            throttled: absent(),
            run_delay: absent(),
            pressure: absent(),
            network: absent(),
        }
    }

    #[test]
    fn a_core_carries_the_rate_over_the_cores_that_it_took() {
        let rate = BitRate::from_mbit(2_000);
        for (case, meanwhile, idle, expected) in [
            ("one of two cores", vec![0.8, 0.2], None, Some(2_000)),
            ("what it does at rest is no cost", vec![0.5, 0.5], Some(vec![0.3, 0.2]), Some(4_000)),
            ("hardly any load tells nothing", vec![0.03, 0.0], None, None),
            ("less than at rest", vec![0.2, 0.2], Some(vec![0.5, 0.2]), None),
            ("no core was seen", vec![], None, None),
        ] {
            let found = rate_per_core(rate, &window(&meanwhile), idle.map(|busy| window(&busy)).as_ref());
            assert_eq!(found.map(|rate| (rate.as_f64() / 1e6).round() as u64), expected, "{case}");
        }
        assert_eq!(rate_per_core(BitRate(0), &window(&[1.0]), None), None);
        let beside = |busy: &[f64], name: &str, cores: f64| {
            let process = ProcessShare { name: name.into(), ours: false, cores, busiest_thread: cores };
            CpuWindow { processes: vec![process], ..window(busy) }
        };
        let carries = |meanwhile, idle: Option<CpuWindow>| {
            rate_per_core(rate, &meanwhile, idle.as_ref()).map(|rate| (rate.as_f64() / 1e6).round() as u64)
        };
        assert_eq!(carries(beside(&[1.0, 0.5], "rustc", 1.0), None), Some(4_000), "what others burn is no cost");
        assert_eq!(carries(beside(&[1.0, 0.5], "ksoftirqd/0", 1.0), None), Some(1_333), "the kernel works for us");
        let idle = beside(&[0.4, 0.1], "rustc", 0.4);
        assert_eq!(carries(beside(&[1.0, 0.6], "rustc", 1.0), Some(idle)), Some(4_000), "nothing is taken off twice");
    }

    #[test]
    fn the_core_that_did_most_is_found() {
        let count = |core, count| CoreCount { core, count };
        assert_eq!(most_on(&[count(0, 1), count(3, 3)]), Some((3, 0.75)));
        assert_eq!(most_on(&[count(2, 5), count(1, 5)]), Some((1, 0.5)));
        assert_eq!(most_on(&[count(2, 0)]), None);
        assert_eq!(most_on(&[]), None);
    }
}
