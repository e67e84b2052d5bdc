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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::model::storage::{Disk, Raid};

    /// A recorded tree as a real one: `path: text`, `+` goes on with the text, `path -> target` is a symlink.
    ///
    /// It is kept as text because names with colons and symlinks do not survive on every system.
    fn planted(name: &str) -> Option<(tempfile::TempDir, Root)> {
        let dir = tempfile::tempdir().unwrap();
        let text = fs::read_to_string(format!("{}/tests/fixtures/storage/{name}.tree", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let mut open = PathBuf::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if let Some(more) = line.strip_prefix('+') {
                fs::write(&open, format!("{}{more}\n", fs::read_to_string(&open).unwrap())).unwrap();
                continue;
            }
            let (path, target) = line.split_once(" -> ").map_or_else(
                || line.split_once(": ").map(|(path, text)| (path, Err(text))).unwrap(),
                |(path, target)| (path, Ok(target)),
            );
            open = dir.path().join(path);
            fs::create_dir_all(open.parent().unwrap()).unwrap();
            match target {
                Ok(target) => sys::file::symlink(Path::new(target), &open).ok()?,
                Err(text) => fs::write(&open, format!("{text}\n")).unwrap(),
            }
        }
        let root = Root(fs::canonicalize(dir.path()).unwrap());
        Some((dir, root))
    }

    fn device(tree: &str, path: &str) -> Device {
        let (_dir, root) = planted(tree).expect("this system lets tests make symlinks");
        locate_under(&root, Path::new(path), None).measured().unwrap().device.clone()
    }

    fn disk(name: &str, model: Option<&str>, rotational: bool, attached: &str) -> Disk {
        let model = model.map(str::to_owned);
        Disk { name: name.to_owned(), model, rotational: Some(rotational), attached: Some(attached.to_owned()) }
    }

    #[test]
    fn a_raid_that_resyncs_is_seen_with_its_disks_and_its_progress() {
        let device = device("md-raid5-resync", "/srv/data");
        let syncing = Some("resync = 1.1% (22409472/1953509824) finish=1541.6min speed=20876K/sec".to_owned());
        assert_eq!(device.raid, Some(Raid { level: "raid5".to_owned(), members: 4, missing: 0, syncing }));
        assert_eq!(device.kind, DeviceKind::Local);
        assert_eq!((device.block.as_deref(), device.layers), (Some("md0"), vec!["md raid5".to_owned()]));
        let model = Some("ST2000DL003-9VT1");
        assert_eq!(device.disks, [disk("sdb", model, true, "SATA 6.0 Gbps"), disk("sdc", model, true, "SATA 3.0 Gbps")]);
        assert_eq!(device.options, ["rw", "relatime", "stripe=48"]);
    }

    #[test]
    fn a_raid_below_lvm_that_lost_a_member_is_seen_without_mdstat() {
        let device = device("md-degraded-lvm", "/volume1/share");
        assert_eq!(device.layers, ["lvm", "md raid1"]);
        assert_eq!(device.raid, Some(Raid { level: "raid1".to_owned(), members: 2, missing: 1, syncing: None }));
        assert_eq!(device.disks, [disk("sata1", None, true, "SATA")]);
    }

    #[test]
    fn a_btrfs_subvolume_on_dm_crypt_is_followed_by_its_source() {
        let device = device("crypt-on-sata", "/home/me");
        assert_eq!((device.kind, device.block.as_deref()), (DeviceKind::Local, Some("dm-0")));
        assert_eq!(device.layers, ["dm-crypt"]);
        assert_eq!(device.disks, [disk("sda", Some("Samsung SSD 860"), false, "SATA 6.0 Gbps")]);
    }

    #[test]
    fn a_usb_disk_is_as_fast_as_the_slowest_hub_also_below_a_loop_file_and_a_bind_mount() {
        let expected = [disk("sdb", Some("Expansion"), true, "USB 480 Mbit/s")];
        for (path, layers) in [("/mnt/usb disk/x", vec![]), ("/srv/backup", vec![]), ("/mnt/image", vec!["loop"])] {
            let device = device("usb-480", path);
            assert_eq!(device.disks, expected, "{path}");
            assert_eq!(device.layers, layers, "{path}");
            assert_eq!(device.kind, DeviceKind::Local, "{path}");
        }
    }

    #[test]
    fn what_is_no_local_disk_is_called_what_it_is() {
        for (path, kind, block) in [
            ("/data", DeviceKind::Local, Some("nvme0n1")),
            ("/dev/shm", DeviceKind::Memory, None),
            ("/mnt/nas/a", DeviceKind::Network, None),
            ("/mnt/share", DeviceKind::Network, None),
            ("/mnt/ssh", DeviceKind::Network, None),
            ("/mnt/pool", DeviceKind::Opaque, None),
            ("/tank", DeviceKind::Opaque, None),
            ("/merged/x", DeviceKind::Local, Some("nvme0n1")),
            ("/lost", DeviceKind::Opaque, None),
            ("/broken", DeviceKind::Opaque, None),
            ("/hidden", DeviceKind::Local, None),
        ] {
            let device = device("others", path);
            assert_eq!((device.kind, device.block.as_deref()), (kind, block), "{path}");
        }
        assert_eq!(device("others", "/data").disks, [disk("nvme0n1", Some("WD Black"), false, "PCIe 8.0 GT/s x4")]);
        assert_eq!(device("others", "/tank").layers, ["zfs pool tank"]);
    }

    #[test]
    fn without_mountinfo_the_reason_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let outcome = locate_under(&Root(dir.path().to_path_buf()), Path::new("/x"), None);
        assert!(outcome.why().unwrap().contains("mountinfo"));
    }

    #[test]
    fn a_directory_that_is_not_there_is_a_failure() {
        assert!(matches!(describe(Path::new("/no/such/place")), Outcome::Failed(_)));
    }
}
