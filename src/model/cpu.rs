//! What the processors did, and what they could do.

use serde::{Deserialize, Serialize};

use super::host::Role;
use super::outcome::Outcome;
use crate::units::{ByteRate, Elapsed};

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
