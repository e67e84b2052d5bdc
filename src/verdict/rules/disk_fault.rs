//! Faults of a disk that are seen without its rate: RAID, attachment, encryption, space.

use super::super::ladder::Part;
use super::super::limits;
use super::super::seen::Seen;
use super::super::words::percent;
use super::list::{Explains, Hit, Rule, RuleDoc, elsewhere};
use crate::model::copy::{FileSet, LaneKind, Place};
use crate::model::storage::{Device, DeviceKind};
use crate::model::{Direction, Role};
use crate::units::BitRate;

pub(super) const RULES: &[Rule] = &[
    Rule {
        doc: RuleDoc {
            code: "disk.raid-degraded-or-resyncing",
            title: "The RAID is degraded or busy with itself",
            meaning: "A missing member must be computed for every access, and a resync or rebuild takes the disks' time. Every disk figure of this run is then not what the disks can do. A degraded RAID may also have lost its redundancy.",
            detected: "The kernel's state of the RAID under the directory: missing members, or a resync, rebuild or check that runs now.",
            fix: "Replace the missing disk first; let the resync end and measure again.",
        },
        check,
    },
    Rule {
        doc: RuleDoc {
            code: "disk.sync-writes",
            title: "The filesystem is mounted synchronously",
            meaning: "Every write waits until the data is on the disk, so programs that write in pieces are far slower than the disk.",
            detected: "The mount option sync under the directory, and writing through it is the limit: by our own buffered writing, or by a copy that stays clearly below what the disk sustains with direct writing.",
            fix: "Mount without sync; programs that need safety ask for it themselves.",
        },
        check: elsewhere,
    },
    Rule {
        doc: RuleDoc {
            code: "disk.device-link",
            title: "A disk is attached by a slow link",
            meaning: "The disk could do more, but its SATA or USB link carries less.",
            detected: "How the disk is attached (USB 480 Mbit/s, SATA 1.5 Gbit/s) and a rate that sits at what this carries.",
            fix: "Another port or cable: USB 3 instead of USB 2, a SATA port of the full generation.",
        },
        check: elsewhere,
    },
    Rule {
        doc: RuleDoc {
            code: "cpu.disk-encryption-or-parity",
            title: "Encryption or parity of the disks fills the processor",
            meaning: "The disks could do more, but the processor must encrypt or compute parity for every byte and a core is full with it.",
            detected: "dm-crypt or a parity RAID lies under the directory, and a core or its kernel thread was full during the disk's own test.",
            fix: "A processor with AES instructions, a cipher that suits it, or a layout without parity.",
        },
        check: elsewhere,
    },
    Rule {
        doc: RuleDoc {
            code: "disk.nearly-full",
            title: "The filesystem is nearly full",
            meaning: "Information: a nearly full filesystem scatters new files, and becomes slower with time.",
            detected: "Less than 5 % is free.",
            fix: "Free some space.",
        },
        check: elsewhere,
    },
];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    let mut hits = Vec::new();
    for role in [Role::Pc, Role::Nas] {
        let Some(device) = seen.disk(role).and_then(|disk| disk.device.measured()) else { continue };
        if device.kind == DeviceKind::Network || device.kind == DeviceKind::Memory {
            continue;
        }
        hits.extend(raid(role, device));
        hits.extend(full(role, device));
        for (direction, part, write) in uses(role) {
            hits.extend(attachment(seen, role, device, (direction, part, write)));
            hits.extend(sync_writes(seen, role, device, (direction, part, write)));
            hits.extend(processor(seen, role, device, (direction, part, write)));
        }
    }
    hits
}

/// The directions in which a host's disk is used: as a source where the host sends, as a sink where it receives.
fn uses(role: Role) -> [(Direction, Part, bool); 2] {
    let (sends, receives) = match role {
        Role::Pc => (Direction::Upload, Direction::Download),
        Role::Nas => (Direction::Download, Direction::Upload),
    };
    [(sends, Part::Source, false), (receives, Part::Sink, true)]
}

fn raid(role: Role, device: &Device) -> Vec<Hit> {
    let Some(raid) = &device.raid else { return Vec::new() };
    if raid.missing == 0 && raid.syncing.is_none() {
        return Vec::new();
    }
    let degraded = (raid.missing > 0)
        .then(|| format!("{} of {} members of the {}'s {} are missing.", raid.missing, raid.members, role.title(), raid.level));
    let syncing = raid.syncing.as_ref().map(|what| {
        format!(
            "The {}'s {} is busy with itself: {what}. Disk figures of this run are not those of the idle array.",
            role.title(),
            raid.level
        )
    });
    uses(role)
        .into_iter()
        .map(|(direction, part, _)| {
            Hit::new("disk.raid-degraded-or-resyncing", role, Explains::Part(part))
                .towards(direction)
                .weight(0.95, 1)
                .also(degraded.clone())
                .also(syncing.clone())
                .advise(if raid.missing > 0 {
                    "Replace the missing disk, and check that backups are good."
                } else {
                    "Let it end, then measure again."
                })
        })
        .collect()
}

fn sync_writes(seen: &Seen<'_>, role: Role, device: &Device, (direction, part, write): (Direction, Part, bool)) -> Option<Hit> {
    if !write || !device.options.iter().any(|option| option == "sync") {
        return None;
    }
    let own = seen.transfer(role, true)?;
    let raw = seen.copied(LaneKind::Raw, direction, (Place::Memory, Place::Disk), FileSet::Large);
    let slower = raw.filter(|raw| raw.as_f64() < limits::ALIKE * own.sustained_bytes_per_s.bits().as_f64());
    // Direct writing waits for the disk with and without the option: only a slower copy tells then.
    if own.method.contains("O_DIRECT") && slower.is_none() {
        return None;
    }
    let copy = slower.map(|raw| format!("A copy moves {}, the disk sustains {}.", raw.bytes(), own.sustained_bytes_per_s));
    Some(
        Hit::new("disk.sync-writes", role, Explains::Part(part))
            .towards(direction)
            .weight(0.8, 1)
            .shows(format!("The {}'s directory lies on {}, mounted with the option sync.", role.title(), device.filesystem))
            .also(copy)
            .advise("Mount without sync; programs that need safety ask for it themselves."),
    )
}

fn full(role: Role, device: &Device) -> Option<Hit> {
    let (free, total) = (device.free_bytes.measured()?, device.total_bytes.measured()?);
    let share = if total.0 > 0 { free.0 as f64 / total.0 as f64 } else { 1.0 };
    (share < limits::NEARLY_FULL).then(|| {
        Hit::new("disk.nearly-full", role, Explains::Info)
            .shows(format!("{free} of {total} ({}) are free at the {}.", percent(share), role.title()))
            .advise("Free some space: a nearly full filesystem becomes slower with time.")
    })
}

/// The most that a slow attachment carries, with its overhead, in bits a second.
fn attached_ceiling(text: &str) -> Option<BitRate> {
    let text = text.to_ascii_lowercase();
    if text.contains("usb") && text.contains("480") {
        Some(BitRate::from_mbit(480).scale(limits::USB_USABLE))
    } else if text.contains("sata") && text.contains("1.5") {
        // 8b/10b coding leaves 150 MB/s.
        Some(BitRate::from_mbit(1_200))
    } else {
        None
    }
}

fn attachment(seen: &Seen<'_>, role: Role, device: &Device, (direction, part, write): (Direction, Part, bool)) -> Option<Hit> {
    let rate = seen.transfer(role, write)?.sustained_bytes_per_s.bits();
    let slow = |disk: &&crate::model::storage::Disk| {
        let ceiling = disk.attached.as_deref().and_then(attached_ceiling);
        ceiling.is_some_and(|ceiling| (limits::AT_BUS..=1.1).contains(&(rate.as_f64() / ceiling.as_f64())))
    };
    // Of several disks each carries a share: only a single one sits at its own link's rate.
    let disk = device.disks.iter().find(slow).filter(|_| device.disks.len() == 1)?;
    Some(
        Hit::new("disk.device-link", role, Explains::Part(part))
            .towards(direction)
            .weight(0.9, 2)
            .shows(format!(
                "The {}'s disk {} is attached by {}.",
                role.title(),
                disk.name,
                disk.attached.as_deref().unwrap_or_default()
            ))
            .shows(format!("It gives {}, what such a link carries.", rate.bytes()))
            .advise("Attach the disk by a faster port or cable."),
    )
}

fn processor(seen: &Seen<'_>, role: Role, device: &Device, (direction, part, write): (Direction, Part, bool)) -> Option<Hit> {
    let layer = device.layers.iter().find(|layer| {
        let layer = layer.to_ascii_lowercase();
        layer.contains("crypt") || (write && (layer.contains("raid5") || layer.contains("raid6")))
    })?;
    let transfer = seen.transfer(role, write)?;
    let cpu = transfer.cpu.measured()?;
    let works = |name: &str| ["kcrypt", "dmcrypt", "kworker", "md", "z_", "spl_"].iter().any(|start| name.starts_with(start));
    let process = cpu.processes.iter().filter(|p| works(&p.name)).max_by(|a, b| a.busiest_thread.total_cmp(&b.busiest_thread));
    let process = process.filter(|p| {
        p.busiest_thread >= limits::THREAD_FULL || (p.cores >= limits::THREAD_FULL && cpu.mean_busy() >= limits::THREAD_FULL)
    })?;
    // A disk that is busy all the time is the limit itself, whatever the processor does.
    if transfer.device_busy.measured().is_some_and(|busy| *busy >= limits::THREAD_FULL) {
        return None;
    }
    Some(
        Hit::new("cpu.disk-encryption-or-parity", role, Explains::Part(part))
            .towards(direction)
            .weight(0.9, 2)
            .shows(format!("{layer} lies under the {}'s directory.", role.title()))
            .shows(format!("{} used {} of a core meanwhile.", process.name, percent(process.busiest_thread.max(process.cores))))
            .advise("A processor with AES instructions, or a layout without encryption or parity, lifts this."),
    )
}
