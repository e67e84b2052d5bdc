//! The block devices in `/sys`, from the one that holds a filesystem down to the disks.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::mdstat;
use crate::model::storage::{Disk, Raid};

/// Stacks deeper than this are not followed: nobody builds them, and a broken tree must end.
const DEPTH: u32 = 12;
/// No more disks than this are listed; the largest boxes hold about a hundred.
const DISKS: usize = 256;

/// Where `/proc`, `/sys` and `/dev` stand: the real ones below `/`, recorded ones elsewhere.
#[derive(Clone, Debug)]
pub struct Root(pub PathBuf);

impl Default for Root {
    fn default() -> Self {
        Self(PathBuf::from("/"))
    }
}

impl Root {
    /// The text of a file such as `proc/mdstat`, at most 1 MiB of it; none if it cannot be read.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let mut bytes = Vec::new();
        File::open(self.0.join(path)).ok()?.take(1 << 20).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The one line of a file, without blanks around; none if it is empty.
    pub fn line(&self, path: impl AsRef<Path>) -> Option<String> {
        self.text(path).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// The directory of a block device in `/sys`, by its numbers.
    pub fn by_number(&self, (major, minor): (u32, u32)) -> Option<PathBuf> {
        fs::canonicalize(self.0.join(format!("sys/dev/block/{major}:{minor}"))).ok()
    }

    /// The directory of a block device in `/sys`, by the path of its node, such as `/dev/mapper/vg-home`.
    pub fn by_node(&self, node: &str) -> Option<PathBuf> {
        let inside = node.strip_prefix("/dev/")?;
        let real = fs::canonicalize(self.0.join("dev").join(inside)).ok();
        let name = real.as_deref().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or(inside);
        let name = name.replace('/', "!");
        fs::canonicalize(self.0.join("sys/class/block").join(&name)).ok().or_else(|| {
            let mapped = inside.strip_prefix("mapper/")?;
            let found = self.names("sys/class/block").into_iter().find(|dm| {
                dm.starts_with("dm-") && self.line(format!("sys/class/block/{dm}/dm/name")).as_deref() == Some(mapped)
            })?;
            fs::canonicalize(self.0.join("sys/class/block").join(found)).ok()
        })
    }

    /// The names in a directory, in order.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.0.join(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }
}

/// What was found below one or more block devices.
#[derive(Clone, Debug, Default)]
pub struct Below {
    /// The layers, from above.
    pub layers: Vec<String>,
    /// The disks, each once.
    pub disks: Vec<Disk>,
    /// The `/sys` directories of those disks.
    pub bottoms: Vec<PathBuf>,
    /// Every RAID among the layers, from above.
    pub raids: Vec<Raid>,
    /// Files that loop devices stand on; what is under them is for the caller to find.
    pub files: Vec<PathBuf>,
    seen: BTreeSet<PathBuf>,
}

impl Below {
    /// The RAID whose state matters most: one that lacks members or is at work, else the first.
    pub fn raid(&self) -> Option<Raid> {
        self.raids.iter().find(|raid| raid.missing > 0 || raid.syncing.is_some()).or_else(|| self.raids.first()).cloned()
    }

    /// Adds everything below the block device of `dir`.
    pub fn walk(&mut self, root: &Root, dir: &Path) {
        self.step(root, dir, DEPTH);
    }

    fn step(&mut self, root: &Root, dir: &Path, depth: u32) {
        let dir = whole(dir);
        if depth == 0 || self.bottoms.len() >= DISKS || !self.seen.insert(dir.to_path_buf()) {
            return;
        }
        if let Some(layer) = self.layer(root, dir)
            && !self.layers.contains(&layer)
        {
            self.layers.push(layer);
        }
        let slaves: Vec<PathBuf> = slaves(root, dir);
        if let Some(file) = root.line(dir.join("loop/backing_file")) {
            self.files.push(PathBuf::from(file));
        } else if slaves.is_empty() {
            self.disks.push(disk(root, dir));
            self.bottoms.push(dir.to_path_buf());
        }
        for slave in slaves {
            self.step(root, &slave, depth - 1);
        }
    }

    fn layer(&mut self, root: &Root, dir: &Path) -> Option<String> {
        let name = name(dir);
        if dir.join("loop").is_dir() {
            return Some("loop".to_owned());
        }
        if let Some(raid) = raid(root, dir) {
            let layer = format!("md {}", raid.level);
            self.raids.push(raid);
            return Some(layer);
        }
        if dir.join("dm").is_dir() {
            return Some(mapper(&root.line(dir.join("dm/uuid")).unwrap_or_default()));
        }
        ["bcache", "drbd", "zram", "nbd", "rbd"].into_iter().find(|kind| name.starts_with(kind)).map(str::to_owned)
    }
}

/// What a device-mapper target is, by the prefix of its uuid (cryptsetup, LVM and the others each set their own).
fn mapper(uuid: &str) -> String {
    match uuid {
        u if u.starts_with("CRYPT-") => "dm-crypt".to_owned(),
        u if u.starts_with("LVM-") && (u.ends_with("-cdata") || u.ends_with("-cvol") || u.ends_with("-cpool")) => {
            "dm-cache".to_owned()
        }
        u if u.starts_with("LVM-") => "lvm".to_owned(),
        u if u.starts_with("mpath-") => "multipath".to_owned(),
        _ => "device-mapper".to_owned(),
    }
}

fn slaves(root: &Root, dir: &Path) -> Vec<PathBuf> {
    let names = root.names(dir.join("slaves"));
    let slaves: Vec<PathBuf> = names.iter().filter_map(|name| fs::canonicalize(dir.join("slaves").join(name)).ok()).collect();
    if slaves.is_empty() && name(dir).starts_with("bcache") {
        // `bcache` is a link into the backing device's directory.
        return fs::canonicalize(dir.join("bcache"))
            .ok()
            .and_then(|inside| inside.parent().map(Path::to_path_buf))
            .into_iter()
            .collect();
    }
    slaves
}

/// A partition's disk; anything else is itself.
pub fn whole(dir: &Path) -> &Path {
    if dir.join("partition").exists() { dir.parent().unwrap_or(dir) } else { dir }
}

/// The name of a device, by its directory in `/sys`.
pub fn name(dir: &Path) -> String {
    // The kernel writes the slash of names such as `cciss/c0d0` as an exclamation mark.
    dir.file_name().unwrap_or_default().to_string_lossy().replace('!', "/")
}

fn raid(root: &Root, dir: &Path) -> Option<Raid> {
    let name = name(dir);
    let arrays = mdstat::parse(&root.text("proc/mdstat").unwrap_or_default());
    let array = arrays.into_iter().find(|array| array.name == name);
    if !dir.join("md").is_dir() && array.is_none() {
        return None;
    }
    let array = array.unwrap_or_default();
    let number = |file: &str| root.line(dir.join("md").join(file))?.split_whitespace().next()?.parse::<u32>().ok();
    let action = root.line(dir.join("md/sync_action")).filter(|action| action != "idle" && action != "frozen");
    let members = number("raid_disks").or(array.members.map(|(all, _)| all)).unwrap_or(array.devices);
    let missing = number("degraded").or(array.members.map(|(all, working)| all.saturating_sub(working))).unwrap_or(0);
    let level = root.line(dir.join("md/level")).unwrap_or(array.level);
    Some(Raid { level, members, missing, syncing: array.syncing.or(action) })
}

fn disk(root: &Root, dir: &Path) -> Disk {
    let rotational = root.line(dir.join("queue/rotational")).and_then(|text| match text.as_str() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    });
    let model = root.line(dir.join("device/model")).or_else(|| root.line(dir.join("device/name")));
    Disk { name: name(dir), model, rotational, attached: attached(root, dir) }
}

fn attached(root: &Root, dir: &Path) -> Option<String> {
    let device = fs::canonicalize(dir.join("device")).ok()?;
    let above = || device.ancestors().take_while(|path| path.starts_with(&root.0) && **path != root.0);
    let is = |start: &str| device.components().any(|part| part.as_os_str().to_string_lossy().starts_with(start));
    // The slowest hub on the way up decides.
    let usb =
        above().filter(|path| path.join("busnum").exists()).filter_map(|path| root.line(path.join("speed"))?.parse::<f64>().ok());
    if let Some(speed) = usb.reduce(f64::min) {
        return Some(format!("USB {speed} Mbit/s"));
    }
    let is_port = |path: &&Path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().strip_prefix("ata").is_some_and(|n| n.parse::<u32>().is_ok()))
    };
    if let Some(port) = above().find(is_port) {
        let speeds = root.names(port).into_iter().filter(|name| name.starts_with("link"));
        let speed = speeds
            .filter_map(|link| root.line(port.join(&link).join("ata_link").join(&link).join("sata_spd")))
            .find(|s| s.ends_with("ps"));
        return Some(speed.map_or_else(|| "SATA".to_owned(), |speed| format!("SATA {speed}")));
    }
    if name(dir).starts_with("nvme") {
        return Some(pcie(root, &device).unwrap_or_else(|| "NVMe".to_owned()));
    }
    let kinds = [
        ("mmc", "MMC"),
        ("virtio", "virtio"),
        ("end_device-", "SAS"),
        ("session", "iSCSI"),
        ("rport-", "Fibre Channel"),
        ("vmbus", "Hyper-V"),
    ];
    kinds.into_iter().find(|(start, _)| is(start)).map(|(_, kind)| kind.to_owned())
}

/// The PCIe link of an NVMe controller; with native multipath the controllers stand inside the subsystem.
fn pcie(root: &Root, device: &Path) -> Option<String> {
    let controllers = root.names(device).into_iter().filter(|name| name.starts_with("nvme")).map(|name| device.join(name));
    std::iter::once(device.to_path_buf()).chain(controllers).find_map(|controller| {
        let speed = root.line(controller.join("device/current_link_speed"))?;
        let width = root.line(controller.join("device/current_link_width"))?;
        Some(format!("PCIe {} x{width}", speed.trim_end_matches("PCIe").trim_end()))
    })
}
