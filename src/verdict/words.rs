//! Small pieces of sentences.

use crate::model::storage::{Device, DiskResult};
use crate::units::BitRate;

/// `12 %`, with a digit more where it is small.
pub(super) fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value >= 9.95 || value == 0.0 {
        format!("{value:.0} %")
    } else if value >= 0.1 {
        format!("{value:.1} %")
    } else {
        format!("{value:.3} %")
    }
}

/// A rate as people write those of disks and copies: in bytes.
pub(super) fn bytes(rate: BitRate) -> String {
    rate.bytes().to_string()
}

/// What lies under a directory, short: `raid5, 3 HDD`.
pub(super) fn disk(result: &DiskResult) -> Option<String> {
    let device: &Device = result.device.measured()?;
    let mut parts = Vec::new();
    if let Some(raid) = &device.raid {
        parts.push(raid.level.to_ascii_uppercase());
    }
    let spinning = device.disks.iter().filter(|disk| disk.rotational == Some(true)).count();
    let solid = device.disks.iter().filter(|disk| disk.rotational == Some(false)).count();
    for (count, word) in [(spinning, "HDD"), (solid, "SSD")] {
        if count > 0 {
            parts.push(format!("{count} {word}"));
        }
    }
    if parts.is_empty() {
        parts.push(device.filesystem.clone());
    }
    Some(parts.join(", "))
}
