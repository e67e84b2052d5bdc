//! Our own copy was slower than the disk and the network that it used: no evidence against either.

use super::super::ladder::synchronous;
use super::super::limits;
use super::super::seen::Seen;
use super::super::words::bytes;
use super::list::{Explains, Hit};
use crate::model::copy::{FileSet, LaneKind, Place};
use crate::model::finding::Where;
use crate::model::{Direction, Role};

pub(super) fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    let sides = |way: Direction| [(way, way.sender(), false), (way, way.receiver(), true)];
    Direction::BOTH.into_iter().flat_map(sides).filter_map(|(way, role, write)| slower(seen, way, role, write)).collect()
}

fn slower(seen: &Seen<'_>, direction: Direction, role: Role, write: bool) -> Option<Hit> {
    let disk = seen.transfer(role, write)?.sustained_bytes_per_s.bits();
    let tcp = seen.way(direction).rate()?;
    let ends = if write { (Place::Memory, Place::Disk) } else { (Place::Disk, Place::Memory) };
    let raw = seen.copied(LaneKind::Raw, direction, ends, FileSet::Large)?;
    // A synchronous mount slows every program: that is the disk's, not ours.
    let explained = write && synchronous(seen, role);
    (!explained && raw.as_f64() < limits::ALIKE * disk.min(tcp).as_f64()).then(|| {
        let verb = if write { "writes" } else { "reads" };
        Hit::new("none.tool-limit", Where::Path, Explains::Info)
            .towards(direction)
            .lane(LaneKind::Raw)
            .shows(format!(
                "{}: our own copy moves {}; the {}'s disk {verb} {} by itself, TCP carries {}.",
                direction.arrow(),
                bytes(raw),
                role.title(),
                bytes(disk),
                bytes(tcp)
            ))
            .shows("Our own copy was slower than disk and network by themselves; the hosts were busy or weaklink's file handling is the limit there.")
            .advise("Measure again when both hosts are idle; neither disk nor network is to blame for this figure.")
    })
}
