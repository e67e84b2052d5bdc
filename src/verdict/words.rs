//! Small pieces of sentences.

use crate::model::storage::{Device, Disk, DiskResult};
use crate::units::BitRate;
pub(super) use crate::units::percent;

/// A rate as people write those of disks and copies: in bytes.
pub(super) fn bytes(rate: BitRate) -> String {
    rate.bytes().to_string()
}

/// Whether a hypervisor or the kernel made this disk up: what it says about turning is no evidence then.
fn is_virtual(disk: &Disk) -> bool {
    let attached = disk.attached.as_deref().unwrap_or_default().to_ascii_lowercase();
    let by = ["virtio", "virtual", "xen", "vmbus", "hyper-v"].iter().any(|word| attached.contains(word));
    by || ["vd", "xvd", "loop", "nbd", "zram"].iter().any(|start| disk.name.starts_with(start))
}

/// What lies under a directory, short: `raid5, 3 HDD`.
pub(super) fn disk(result: &DiskResult) -> Option<String> {
    let device: &Device = result.device.measured()?;
    let mut parts = Vec::new();
    if let Some(raid) = &device.raid {
        parts.push(raid.level.to_ascii_uppercase());
    }
    let real = |turns: bool| device.disks.iter().filter(|disk| !is_virtual(disk) && disk.rotational == Some(turns)).count();
    let fake = device.disks.iter().filter(|disk| is_virtual(disk)).count();
    for (count, word) in
        [(real(true), "HDD"), (real(false), "SSD"), (fake, if fake == 1 { "virtual disk" } else { "virtual disks" })]
    {
        if count > 0 {
            parts.push(format!("{count} {word}"));
        }
    }
    if parts.is_empty() {
        parts.push(device.filesystem.clone());
    }
    Some(parts.join(", "))
}
