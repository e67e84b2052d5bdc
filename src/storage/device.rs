//! What lies under a directory: from its mount down to the disks.

use std::path::{Path, PathBuf};

use super::mounts::{self, Family, Mount};
use super::tree::{self, Below, Root};
use crate::model::Outcome;
use crate::model::storage::{Device, DeviceKind};
use crate::sys;
use crate::units::ByteSize;

/// Overlays over loops over files …: no more steps than this.
const DEPTH: u32 = 8;

/// A directory's storage, and where its counters are.
#[derive(Clone, Debug)]
pub struct Site {
    /// For the report.
    pub device: Device,
    /// The `/sys` directories of the block devices that the filesystem is on.
    pub tops: Vec<PathBuf>,
    /// The `/sys` directories of the disks at the bottom.
    pub bottoms: Vec<PathBuf>,
}

/// What lies under `dir`.
///
/// Skipped where the system does not tell (no `/proc/self/mountinfo`), failed when `dir` cannot be found.
pub fn describe(dir: &Path) -> Outcome<Device> {
    locate(dir).map(|site| site.device)
}

/// The same with the places of the counters.
pub fn locate(dir: &Path) -> Outcome<Site> {
    let path = match std::fs::canonicalize(dir) {
        Ok(path) => path,
        Err(error) => return Outcome::failed(format!("{} cannot be opened: {error}", dir.display())),
    };
    locate_under(&Root::default(), &path, sys::file::device_number(&path).ok()).map(|mut site| {
        let room = sys::file::room(&path).map_err(|error| format!("the free space of {} is not known: {error}", dir.display()));
        site.device.free_bytes = room.clone().map(|room| ByteSize(room.free)).into();
        site.device.total_bytes = room.map(|room| ByteSize(room.total)).into();
        site
    })
}

/// What lies under `path` (absolute, without symlinks) as `/proc` and `/sys` below `root` tell it; `number` is
/// the device that the path itself says it is on, where known.
pub fn locate_under(root: &Root, path: &Path, number: Option<(u32, u32)>) -> Outcome<Site> {
    let Some(text) = root.text("proc/self/mountinfo") else {
        return Outcome::skipped("this system does not tell what lies under a directory (/proc/self/mountinfo cannot be read)");
    };
    let mounts = mounts::parse(&text);
    let Some(mount) = mounts::covering(&mounts, path, number) else {
        return Outcome::failed(format!("no mount of /proc/self/mountinfo holds {}", path.display()));
    };
    let mut finder = Finder { root, mounts: &mounts, below: Below::default(), tops: Vec::new() };
    let kind = finder.mount(mount, DEPTH);
    let Finder { below, tops, .. } = finder;
    let unknown = || Outcome::skipped("not asked for");
    let device = Device {
        filesystem: mount.filesystem.clone(),
        kind,
        options: mount.options.clone(),
        block: tops.first().map(|top| tree::name(top)),
        raid: below.raid(),
        disks: below.disks,
        layers: below.layers,
        free_bytes: unknown(),
        total_bytes: unknown(),
    };
    Outcome::Measured(Site { device, tops, bottoms: below.bottoms })
}

struct Finder<'a> {
    root: &'a Root,
    mounts: &'a [Mount],
    below: Below,
    tops: Vec<PathBuf>,
}

impl Finder<'_> {
    fn mount(&mut self, mount: &Mount, depth: u32) -> DeviceKind {
        match mount.family() {
            Family::Memory => DeviceKind::Memory,
            Family::Network => DeviceKind::Network,
            Family::Opaque => {
                let pool = mount.source.split('/').next().unwrap_or_default();
                self.below.layers.push(if mount.filesystem == "zfs" {
                    format!("zfs pool {pool}")
                } else {
                    mount.filesystem.clone()
                });
                DeviceKind::Opaque
            }
            Family::Overlay => {
                self.below.layers.push("overlay".to_owned());
                let upper = mount.option("upperdir").map(PathBuf::from);
                self.onward(mount, upper.as_deref(), depth)
            }
            Family::Block => self.block(mount, depth),
        }
    }

    /// The storage of a path that another layer stands on; what a container shows in that place may be the layer itself.
    fn onward(&mut self, from: &Mount, path: Option<&Path>, depth: u32) -> DeviceKind {
        let under = path.and_then(|path| mounts::covering(self.mounts, path, None));
        match under {
            Some(under) if under.id != from.id && depth > 0 => self.mount(under, depth - 1),
            _ => DeviceKind::Opaque,
        }
    }

    fn block(&mut self, mount: &Mount, depth: u32) -> DeviceKind {
        let mut tops: Vec<PathBuf> = if mount.device.0 != 0 {
            self.root.by_number(mount.device).into_iter().collect()
        } else {
            // btrfs and bcachefs: the number is made up, the source is a node (bcachefs: several).
            mount.source.split(':').filter_map(|node| self.root.by_node(node)).collect()
        };
        if mount.filesystem == "btrfs" {
            tops = self.btrfs_members(tops);
        }
        if tops.is_empty() {
            return if mount.device.0 != 0 { DeviceKind::Local } else { DeviceKind::Opaque };
        }
        if tops.len() > 1 {
            self.below.layers.push(format!("{} over {} devices", mount.filesystem, tops.len()));
        }
        for top in &tops {
            self.below.walk(self.root, top);
        }
        if self.tops.is_empty() {
            self.tops = tops;
        }
        let mut kind = DeviceKind::Local;
        for file in std::mem::take(&mut self.below.files) {
            kind = self.onward(mount, Some(&file), depth);
        }
        kind
    }

    /// All devices of the btrfs that one of `tops` belongs to.
    fn btrfs_members(&self, tops: Vec<PathBuf>) -> Vec<PathBuf> {
        let Some(first) = tops.first().map(|top| tree::name(top)) else { return tops };
        let members = self.root.names("sys/fs/btrfs").into_iter().find_map(|id| {
            let names = self.root.names(format!("sys/fs/btrfs/{id}/devices"));
            names.contains(&first).then_some(names)
        });
        let members = members.into_iter().flatten().filter_map(|name| self.root.by_node(&format!("/dev/{name}")));
        let members: Vec<PathBuf> = members.collect();
        if members.is_empty() { tops } else { members }
    }
}
