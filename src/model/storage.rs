//! Disks, without a network.

use serde::{Deserialize, Serialize};

use super::cpu::CpuWindow;
use super::host::Role;
use super::outcome::Outcome;
use super::phase::PhaseCounters;
use super::throughput::Bins;
use crate::units::{ByteRate, ByteSize, Elapsed};

/// Stands in the reason of a failed read whose content is not what was written, so that a rule can tell it from other failures.
pub const CONTENT_DIFFERS: &str = "content differs";

/// Both hosts' directories.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StorageSection {
    /// The PC's directory (`--pc-dir`).
    pub pc: Outcome<DiskResult>,
    /// The NAS's directory (`serve --dir`).
    pub nas: Outcome<DiskResult>,
    /// What the interfaces of both ends counted while the disks were tested, and weaklink moved nothing over them; none where no disk was.
    #[serde(default)]
    pub counters: Option<Box<PhaseCounters>>,
}

impl StorageSection {
    /// One host's result.
    pub const fn of(&self, role: Role) -> &Outcome<DiskResult> {
        match role {
            Role::Pc => &self.pc,
            Role::Nas => &self.nas,
        }
    }
}

/// One directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiskResult {
    /// What lies under it.
    pub device: Outcome<Device>,
    /// Sequential write.
    pub write: Outcome<Transfer>,
    /// Sequential read.
    pub read: Outcome<Transfer>,
}

/// One sequential transfer to or from a disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// The bytes moved.
    pub bytes: ByteSize,
    /// The time, including that of making the data safe.
    pub elapsed_us: Elapsed,
    /// What it sustained: after the knee, where there is one.
    pub sustained_bytes_per_s: ByteRate,
    /// What it began with, where it fell later.
    pub burst: Option<Burst>,
    /// The series.
    pub bins: Bins,
    /// How: `O_DIRECT`, `buffered + fsync`, `buffered`.
    pub method: String,
    /// The bytes that the block device itself moved meanwhile, where the system tells.
    pub device_bytes: Outcome<ByteSize>,
    /// The share of the time in which the block device was busy.
    pub device_busy: Outcome<f64>,
    /// The host's CPU meanwhile.
    pub cpu: Outcome<CpuWindow>,
}

/// A fast beginning that did not last.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Burst {
    /// The rate before the knee.
    pub bytes_per_s: ByteRate,
    /// The bytes that went at that rate.
    pub bytes: ByteSize,
    /// The seconds that it lasted.
    pub elapsed_us: Elapsed,
}

/// What lies under a directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// The filesystem's type, such as `ext4`.
    pub filesystem: String,
    /// What kind of storage it is.
    pub kind: DeviceKind,
    /// The mount options.
    pub options: Vec<String>,
    /// The block device's name, such as `md2`.
    pub block: Option<String>,
    /// The disks at the bottom.
    pub disks: Vec<Disk>,
    /// The layers between the filesystem and the disks, from above: `dm-crypt`, `lvm`, `md raid5`, `loop`, `bcache`.
    pub layers: Vec<String>,
    /// The RAID's state, when one is among the layers.
    pub raid: Option<Raid>,
    /// Free for us.
    pub free_bytes: Outcome<ByteSize>,
    /// The size of the filesystem.
    pub total_bytes: Outcome<ByteSize>,
}

/// What kind of storage a directory is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// Block devices of this host.
    Local,
    /// Memory: tmpfs, ramfs.
    Memory,
    /// A network filesystem: no disk of this host at all.
    Network,
    /// FUSE, overlay or another of which the bottom cannot be seen.
    Opaque,
}

/// A disk at the bottom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Its name, such as `sda`.
    pub name: String,
    /// Its model, if it says.
    pub model: Option<String>,
    /// Whether it turns.
    pub rotational: Option<bool>,
    /// How it is attached, such as `SATA 3.0 Gbps`, `USB 480 Mbit/s`, `PCIe 8.0 GT/s x4`.
    pub attached: Option<String>,
}

/// The state of a RAID.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raid {
    /// The level, such as `raid5`.
    pub level: String,
    /// The number of members.
    pub members: u32,
    /// Members that are missing or failed.
    pub missing: u32,
    /// A resync, rebuild or check that runs now, as the kernel words it.
    pub syncing: Option<String>,
}
