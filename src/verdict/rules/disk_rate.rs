//! A disk that reads or writes slower than the rest carries, and a cache in front of it that ran full.

use super::super::ladder::{Ladder, Part};
use super::super::limits;
use super::super::seen::Seen;
use super::super::words::{bytes, disk, percent};
use super::list::{Explains, Hit, Rule, RuleDoc, elsewhere};
use crate::model::copy::{FileSet, LaneKind, Place};
use crate::model::{Direction, Role};
use crate::units::BitRate;

const fn page(code: &'static str, title: &'static str, meaning: &'static str) -> RuleDoc {
    RuleDoc {
        code,
        title,
        meaning,
        detected: "What the directory sustains by itself, after any cache is full, beside what TCP carries memory to memory; the raw lane to or from that disk confirms it, and stands in for it only where the disk was not measured by itself.",
        fix: "Faster disks, more of them, another RAID level, or an SSD in front; the verdict says how far that helps before the next limit.",
    }
}

pub(super) const RULES: &[Rule] = &[
    Rule {
        doc: page(
            "disk.nas-write",
            "The NAS's disks write slower than the network delivers",
            "Copies to the NAS run at what its disks can write for long.",
        ),
        check,
    },
    Rule {
        doc: page(
            "disk.nas-read",
            "The NAS's disks read slower than the network carries",
            "Copies from the NAS run at what its disks can read.",
        ),
        check: elsewhere,
    },
    Rule {
        doc: page(
            "disk.pc-write",
            "The PC's disk writes slower than the network delivers",
            "Copies from the NAS run at what the PC's own disk can write for long: the NAS is not to blame.",
        ),
        check: elsewhere,
    },
    Rule {
        doc: page(
            "disk.pc-read",
            "The PC's disk reads slower than the network carries",
            "Copies to the NAS run at what the PC's own disk can read: the NAS is not to blame.",
        ),
        check: elsewhere,
    },
    Rule {
        doc: RuleDoc {
            code: "disk.cache-exhausted",
            title: "A cache runs full, then the disk's own rate is left",
            meaning: "A copy begins fast (memory, the fast part of an SSD, an SSD cache) and falls to a lower rate that lasts. Short copies never see it, long ones mostly do.",
            detected: "The series of the writing falls from one level to a lower one: the first at least 1.5 times the second and near the network's rate, the second below it.",
            fix: "Nothing for files smaller than the cache; otherwise faster disks or a larger cache.",
        },
        check: elsewhere,
    },
];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    let mut hits = Vec::new();
    for direction in Direction::BOTH {
        let ladder = Ladder::new(seen, direction, false);
        for (part, role, write) in [(Part::Source, direction.sender(), false), (Part::Sink, direction.receiver(), true)] {
            let Some(rate) = ladder.rate(part) else { continue };
            let below = ladder.ceilings.iter().filter(|other| other.part != part).map(|other| other.rate).min();
            hits.push(slow(seen, direction, (part, role, write), rate, below));
            hits.extend(exhausted(seen, direction, (part, role, write), below));
        }
    }
    hits
}

fn slow(
    seen: &Seen<'_>,
    direction: Direction,
    (part, role, write): (Part, Role, bool),
    rate: BitRate,
    below: Option<BitRate>,
) -> Hit {
    let (code, verb, advice) = match (role, write) {
        (Role::Nas, true) => {
            ("disk.nas-write", "writes", "Faster or more disks in the NAS, another RAID level, or an SSD write cache.")
        }
        (Role::Nas, false) => ("disk.nas-read", "reads", "Faster or more disks in the NAS, or an SSD read cache."),
        (Role::Pc, true) => ("disk.pc-write", "writes", "A faster disk in the PC (sustained write, not the burst on the box)."),
        (Role::Pc, false) => ("disk.pc-read", "reads", "A faster disk in the PC."),
    };
    let what = seen.disk(role).and_then(disk).map(|what| format!(" ({what})")).unwrap_or_default();
    let transfer = seen.transfer(role, write);
    let own = transfer.map(|transfer| {
        format!("The {}'s disk{what} {verb} {} by itself ({}).", role.title(), transfer.sustained_bytes_per_s, transfer.method)
    });
    let busy = transfer.and_then(|transfer| transfer.device_busy.measured()).filter(|busy| **busy >= limits::THREAD_FULL);
    let ends = if write { (Place::Memory, Place::Disk) } else { (Place::Disk, Place::Memory) };
    let raw = seen.copied(LaneKind::Raw, direction, ends, FileSet::Large);
    let confirms = raw.filter(|raw| (limits::ALIKE..=1.0 / limits::ALIKE).contains(&(raw.as_f64() / rate.as_f64())));
    let clear = below.filter(|below| rate.as_f64() < limits::TIE * below.as_f64());
    let mut hit = Hit::new(code, role, Explains::Part(part)).towards(direction).weight(0.7, 0);
    hit = hit
        .also(own)
        .also(busy.map(|busy| format!("The disk was busy for {} of that time.", percent(*busy))))
        .also(confirms.map(|raw| format!("Our own TCP with that disk at its end moves {}.", bytes(raw))))
        .also(clear.map(|below| format!("The rest of the way carries {}.", bytes(below))))
        .advise(advice);
    hit
}

/// A burst near the network's rate and then clearly less.
fn exhausted(
    seen: &Seen<'_>,
    direction: Direction,
    (part, role, write): (Part, Role, bool),
    below: Option<BitRate>,
) -> Option<Hit> {
    let transfer = seen.transfer(role, write).filter(|_| write)?;
    let burst = transfer.burst?;
    let (fast, slow) = (burst.bytes_per_s.bits().as_f64(), transfer.sustained_bytes_per_s.bits().as_f64());
    let falls = fast >= limits::BURST * slow;
    let network = below.is_none_or(|below| fast >= limits::ALIKE * below.as_f64() && slow < limits::TIE * below.as_f64());
    let hit = Hit::new("disk.cache-exhausted", role, Explains::Part(part)).towards(direction).weight(0.85, 2);
    (falls && network).then(|| {
        hit.shows(format!(
            "The {}'s disk begins with {} for {} ({}), then sustains {}.",
            role.title(),
            burst.bytes_per_s,
            burst.bytes,
            burst.elapsed_us,
            transfer.sustained_bytes_per_s
        ))
        .also(below.map(|below| format!("The rest of the way carries {}.", bytes(below))))
        .advise("Nothing for files smaller than the cache; for larger ones faster disks or a larger cache.")
    })
}
