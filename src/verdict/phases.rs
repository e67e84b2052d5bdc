//! What the ports of both ends counted while files were copied and disks were tested.

use super::counted::{Counted, counted, of};
use super::ladder::{LaneStep, lane_steps};
use super::seen::Seen;
use crate::model::copy::{FileSet, Lane, LaneKind, Rung};
use crate::model::link::CountersByInterface;
use crate::model::phase::PhaseCounters;
use crate::model::storage::DeviceKind;
use crate::model::{Direction, Role};
use crate::units::Elapsed;

/// More copies than these no run makes.
const MOST: usize = 256;

/// A copy or the disk tests, with what both ends counted meanwhile.
pub(super) struct Phase<'a> {
    /// What ran, to stand behind "during": `the SMB copy PC → NAS`.
    pub(super) words: String,
    /// The way of the data; none for the disk tests, in which nothing is sent.
    pub(super) direction: Option<Direction>,
    counters: &'a PhaseCounters,
}

impl<'a> Phase<'a> {
    fn copy(lane: &Lane, rung: &'a Rung) -> Option<Self> {
        Some(Self { words: words(lane.kind, rung), direction: Some(rung.direction), counters: rung.counters.as_deref()? })
    }

    /// What one end counted.
    pub(super) fn counted(&self, seen: &Seen<'a>, role: Role) -> Counted<'a> {
        of(seen, self.counters.of(role).measured(), role)
    }

    /// The counters themselves.
    pub(super) fn raw(&self, role: Role) -> Option<&'a CountersByInterface> {
        self.counters.of(role).measured()
    }

    /// How long it was.
    pub(super) const fn elapsed(&self) -> Elapsed {
        self.counters.elapsed_us
    }
}

fn words(kind: LaneKind, rung: &Rung) -> String {
    let lane = match kind {
        LaneKind::Raw => "the copy over plain TCP",
        LaneKind::Mounted => "the copy by the mounted directory",
        LaneKind::Ssh => "the SSH copy",
        LaneKind::Smb => "the SMB copy",
        LaneKind::Nfs => "the NFS copy",
    };
    let small = if rung.files == FileSet::Small { " of small files" } else { "" };
    format!("{lane}{small} {}", rung.direction.arrow())
}

/// All copies and the disk tests, in the order in which they ran, as far as anything was counted.
pub(super) fn phases<'a>(seen: &Seen<'a>) -> Vec<Phase<'a>> {
    let storage = seen.doc.measurements.storage.measured().and_then(|storage| storage.counters.as_deref());
    let disks = storage.map(|counters| Phase { words: "the disk tests".to_owned(), direction: None, counters });
    let lanes = seen.copy().into_iter().flat_map(|copy| &copy.lanes);
    let copies = lanes.flat_map(|lane| lane.rungs.iter().filter_map(move |rung| Phase::copy(lane, rung)));
    disks.into_iter().chain(copies).take(MOST).collect()
}

/// What one end counted in every phase, with words to stand behind "during": the passes (the better one of a direction first, which may
/// come twice), the disk tests, the copies.
pub(super) fn everywhere<'a>(seen: &Seen<'a>, role: Role) -> impl Iterator<Item = (String, Counted<'a>)> {
    let passes = seen.ways.iter().flat_map(|way| [way.best, way.single, way.multi]).flatten();
    let passes = passes.map(move |pass| ("a pass".to_owned(), counted(seen, pass, role)));
    passes.chain(phases(seen).into_iter().map(move |phase| (phase.words.clone(), phase.counted(seen, role))))
}

/// The disk tests, where no end's directory lies on another machine: then whatever went over the ports meanwhile is others' traffic.
pub(super) fn at_rest<'a>(seen: &Seen<'a>) -> Option<Phase<'a>> {
    let foreign = |role| {
        let kind = seen.disk(role).and_then(|disk| disk.device.measured()).map(|device| device.kind);
        // What cannot be looked into may be a disk behind this very network.
        seen.disk(role).is_some() && !matches!(kind, Some(DeviceKind::Local | DeviceKind::Memory))
    };
    let away = [Role::Pc, Role::Nas].into_iter().any(foreign);
    phases(seen).into_iter().find(|phase| phase.direction.is_none() && !away)
}

/// A large copy that falls clearly behind what lies below it, and went over the ports that were watched.
pub(super) struct SlowCopy<'a> {
    /// Beside what could be expected of it.
    pub(super) step: LaneStep<'a>,
    /// What was counted meanwhile.
    pub(super) phase: Phase<'a>,
}

/// The large copies of one direction that fall clearly behind, slowest first.
pub(super) fn slow_copies<'a>(seen: &Seen<'a>, direction: Direction) -> Vec<SlowCopy<'a>> {
    let steps = lane_steps(seen, direction, seen.way(direction).rate());
    let slow = |step: &LaneStep<'a>| {
        step.rung.files == FileSet::Large && step.rate.as_f64() < seen.lane_tolerance() * step.expected.as_f64()
    };
    let counted = steps.into_iter().filter(slow).take(MOST).filter_map(|step| {
        let counters = step.rung.counters.as_deref()?;
        Some(SlowCopy { step, phase: Phase { words: words(step.kind, step.rung), direction: Some(direction), counters } })
    });
    counted.filter(|copy| [Role::Pc, Role::Nas].into_iter().all(|role| went_by(copy, direction, role))).collect()
}

/// Whether the bytes of a copy went by the ports that were watched at this end: a share may be another machine's, or a route leave by
/// another port. Ports that count no bytes do not speak against it.
fn went_by(copy: &SlowCopy<'_>, direction: Direction, role: Role) -> bool {
    let name = if role == direction.sender() { "tx_bytes" } else { "rx_bytes" };
    let counters = copy.phase.counters.of(role).measured();
    let most = counters.and_then(|all| all.values().filter_map(|one| one.get(name)).max());
    most.is_none_or(|bytes| bytes >= copy.step.copied.bytes.0 / 2)
}
