//! What the kernel counted while a test ran: the block devices' own bytes and busy time, and the bytes
//! that this process really caused to be read.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::device::Site;
use super::tree::Root;
use crate::model::Outcome;
use crate::model::storage::DeviceKind;
use crate::units::ByteSize;

/// The kernel counts in sectors of this size whatever the disk's own is (Documentation/block/stat.rst).
const SECTOR: u64 = 512;

/// What one block device counted since the host's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
    /// Milliseconds in which at least one request was under way.
    pub busy_ms: u64,
}

/// Reads a device's `stat` file; none if it is not one.
pub fn parse_stat(text: &str) -> Option<Stat> {
    let fields: Vec<u64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let sectors = |at: usize| fields.get(at).map(|sectors| sectors.saturating_mul(SECTOR));
    Some(Stat { read: sectors(2)?, written: sectors(6)?, busy_ms: *fields.get(9)? })
}

/// Reads `read_bytes` of `/proc/self/io`: what this process caused to be fetched from storage.
pub fn parse_io(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("read_bytes:")?.trim().parse().ok())
}

/// Which way the bytes went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the disk.
    Write,
    /// From the disk.
    Read,
}

/// The counters of one directory's storage, from a moment on.
#[derive(Debug)]
pub struct Meter {
    root: Root,
    way: Way,
    /// Whose bytes count, with their state at the beginning.
    carriers: Vec<(PathBuf, Stat)>,
    /// Whose busy time counts, likewise.
    disks: Vec<(PathBuf, Stat)>,
    /// Whether those disks are others than the carriers.
    below: bool,
    whole_host: bool,
    own: Option<u64>,
    began: Instant,
    absent: &'static str,
}

/// What was counted meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// The bytes of the block devices.
    pub device: Outcome<ByteSize>,
    /// The busy share of the busiest disk, 0 to 1.
    pub busy: Outcome<f64>,
    /// The bytes of the disks below, all together, where they are other devices.
    pub bottom: Option<u64>,
    /// Whether no device is known to be the one, so that all disks of the host were counted together (ZFS, FUSE).
    pub whole_host: bool,
    /// The bytes that this process caused to be read, if the kernel tells.
    pub own: Option<u64>,
}

impl Meter {
    /// Begins to count.
    pub fn start(root: &Root, site: Option<&Site>, way: Way) -> Self {
        let kind = site.map(|site| site.device.kind);
        let absent = match kind {
            Some(DeviceKind::Memory) => "the directory is in memory: no block device is behind it",
            Some(DeviceKind::Network) => "the directory is on another host: no block device of this one is behind it",
            Some(DeviceKind::Local | DeviceKind::Opaque) => "this host's /sys does not show the counters of the block device",
            None => "this system does not tell which block device is behind the directory",
        };
        let all = || root.names("sys/block").into_iter().map(|name| root.0.join("sys/block").join(name));
        let (tops, bottoms): (Vec<PathBuf>, Vec<PathBuf>) = match site {
            Some(site) if !site.tops.is_empty() => (site.tops.clone(), site.bottoms.clone()),
            // Behind ZFS and FUSE: any disk of the host may be the one.
            Some(site) if site.device.kind == DeviceKind::Opaque => {
                (all().filter(|dir| dir.join("device").exists()).collect(), Vec::new())
            }
            _ => (Vec::new(), Vec::new()),
        };
        let below = !bottoms.is_empty();
        let whole_host = site.is_some_and(|site| site.tops.is_empty());
        let stats = |dirs: Vec<PathBuf>| dirs.into_iter().filter_map(|dir| stat(root, &dir).map(|stat| (dir, stat))).collect();
        let disks = if bottoms.is_empty() { tops.clone() } else { bottoms };
        let own = root.text("proc/self/io").and_then(|text| parse_io(&text));
        Self {
            root: root.clone(),
            way,
            carriers: stats(tops),
            disks: stats(disks),
            below,
            whole_host,
            own,
            began: Instant::now(),
            absent,
        }
    }

    /// What was counted since the start.
    pub fn stop(&self) -> Counted {
        let elapsed = self.began.elapsed();
        let moved = |now: Stat, then: Stat| match self.way {
            Way::Write => now.written.saturating_sub(then.written),
            Way::Read => now.read.saturating_sub(then.read),
        };
        let device: Vec<u64> = self.changes(&self.carriers, moved);
        let busy = self.changes(&self.disks, |now, then| now.busy_ms.saturating_sub(then.busy_ms)).into_iter().max();
        let bottom = self.changes(&self.disks, moved);
        let own = self.root.text("proc/self/io").and_then(|text| parse_io(&text));
        Counted {
            whole_host: self.whole_host && !device.is_empty(),
            bottom: (self.below && !bottom.is_empty()).then(|| bottom.iter().sum()),
            device: if device.is_empty() {
                Outcome::skipped(self.absent)
            } else {
                Outcome::Measured(ByteSize(device.iter().sum()))
            },
            busy: busy.map_or_else(|| Outcome::skipped(self.absent), |ms| Outcome::Measured(share(ms, elapsed))),
            own: own.zip(self.own).map(|(now, then)| now.saturating_sub(then)),
        }
    }

    fn changes(&self, of: &[(PathBuf, Stat)], change: impl Fn(Stat, Stat) -> u64) -> Vec<u64> {
        of.iter().filter_map(|(dir, then)| stat(&self.root, dir).map(|now| change(now, *then))).collect()
    }
}

fn stat(root: &Root, dir: &Path) -> Option<Stat> {
    root.text(dir.join("stat")).and_then(|text| parse_stat(&text))
}

/// The kernel rounds to ticks of up to 10 ms, so a short span may come out above one.
fn share(ms: u64, of: Duration) -> f64 {
    if of.is_zero() { 0.0 } else { (ms as f64 / 1e3 / of.as_secs_f64()).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stat_files_of_old_and_new_kernels_are_read() {
        // 3.10 has 11 fields, 4.18 has 15, 5.5 has 17.
        let expected = Some(Stat { read: 3_979_714 * 512, written: 11_189_224 * 512, busy_ms: 12_960 });
        assert_eq!(
            parse_stat("   18750     5479  3979714    26460     5047    40183 11189224    58902        0    12960    86172"),
            expected
        );
        assert_eq!(
            parse_stat("18750 5479 3979714 26460 5047 40183 11189224 58902 0 12960 86172 4337 80 233760 805 28 3\n"),
            expected
        );
        assert_eq!(parse_stat("1 2 3"), None);
        assert_eq!(parse_io("rchar: 6976\nread_bytes: 4096\nwrite_bytes: 0\n"), Some(4096));
        assert_eq!(parse_io("rchar: 6976\n"), None);
    }

    #[test]
    fn without_a_site_the_reason_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let counted = Meter::start(&Root(dir.path().to_path_buf()), None, Way::Read).stop();
        assert!(counted.device.why().is_some() && counted.busy.why().is_some());
        assert_eq!((counted.own, counted.bottom), (None, None));
    }
}
