//! The ladder of one direction: every ceiling beside the others, and which of them binds.

use super::limits;
use super::seen::Seen;
use crate::model::copy::{Copied, FileSet, LaneKind, Place, Rung};
use crate::model::plan::Workload;
use crate::model::{Direction, Document, Role};
use crate::units::BitRate;

/// A part of the way that a ceiling belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The line: TCP uses all of it.
    Line,
    /// TCP, memory to memory, while the line could carry more or is not known.
    Tcp,
    /// The disk that is read.
    Source,
    /// The disk that is written.
    Sink,
    /// A way of copying.
    Lane(LaneKind),
}

/// What one part allows.
#[derive(Clone, Debug, PartialEq)]
pub struct Ceiling {
    /// The part.
    pub part: Part,
    /// The rate that it allows.
    pub rate: BitRate,
    /// What it would allow without its own weakness: what is below it on the ladder. None when only a change of
    /// equipment could tell.
    pub relieved: Option<BitRate>,
}

/// One direction's ceilings, slowest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Ladder {
    /// The direction.
    pub direction: Direction,
    /// The line rate, where it is known or read off a plateau.
    pub line: Option<BitRate>,
    /// TCP's ceiling on that line.
    pub wire: Option<BitRate>,
    /// The ceilings, slowest first.
    pub ceilings: Vec<Ceiling>,
}

/// Both directions' ladders.
pub fn ladders(document: &Document) -> [Ladder; 2] {
    let seen = Seen::new(document);
    Direction::BOTH.map(|direction| Ladder::new(&seen, direction, false))
}

impl Ladder {
    /// With `one_flow`, TCP's rate is that of a single stream, as copies use.
    pub(super) fn new(seen: &Seen<'_>, direction: Direction, one_flow: bool) -> Self {
        let way = seen.way(direction);
        let mut ceilings = Vec::new();
        let tcp = if one_flow { way.single.map(|pass| pass.goodput_bps).or(way.rate()) } else { way.rate() };
        if let Some(rate) = tcp
            && !seen.local()
        {
            let at_line = way.wire.is_some_and(|wire| rate.as_f64() >= limits::AT_LINE_RATE * wire.as_f64());
            let (part, relieved) = if at_line { (Part::Line, None) } else { (Part::Tcp, way.wire) };
            ceilings.push(Ceiling { part, rate, relieved });
        }
        for (part, role, write) in [(Part::Source, direction.sender(), false), (Part::Sink, direction.receiver(), true)] {
            if let Some(rate) = disk_ceiling(seen, direction, (role, write), tcp) {
                ceilings.push(Ceiling { part, rate, relieved: None });
            }
        }
        if let Some(lane) = slowest_lane(seen, direction, tcp) {
            // On one machine the disks are what they are; what can be at fault there is a lane.
            if seen.local() {
                ceilings.retain(|ceiling| ceiling.rate > lane.rate);
            }
            ceilings.push(lane);
        }
        // A tie goes to the part named first above, so that the order of facts never matters.
        ceilings.sort_by_key(|ceiling| (ceiling.rate, ceiling.part));
        Self { direction, line: seen.line, wire: way.wire, ceilings }
    }

    /// The ceiling that binds.
    pub fn binding(&self) -> Option<&Ceiling> {
        self.ceilings.first()
    }

    /// The slowest ceiling of the other parts.
    pub fn next(&self) -> Option<&Ceiling> {
        self.ceilings.get(1)
    }

    /// The rate of a part.
    pub fn rate(&self, part: Part) -> Option<BitRate> {
        self.ceilings.iter().find(|ceiling| ceiling.part == part).map(|ceiling| ceiling.rate)
    }
}

/// What a disk allows: what it sustains by itself. What the raw lane got from it stands in only where the disk alone
/// was not measured, or where the mount makes programs slower than direct writing is.
fn disk_ceiling(seen: &Seen<'_>, direction: Direction, (role, write): (Role, bool), tcp: Option<BitRate>) -> Option<BitRate> {
    let own = seen.transfer(role, write).map(|transfer| transfer.sustained_bytes_per_s.bits()).filter(|rate| rate.0 > 0);
    if own.is_some() && !(write && synchronous(seen, role)) {
        return own;
    }
    let ends = if write { (Place::Memory, Place::Disk) } else { (Place::Disk, Place::Memory) };
    let raw = seen.copied(LaneKind::Raw, direction, ends, FileSet::Large).filter(|_| is_disk(seen, role) && !seen.local());
    // The raw lane includes the network: it tells of the disk only where it stays clearly below both.
    let below = |rung: &BitRate, other: Option<BitRate>| {
        other.is_none_or(|other| rung.as_f64() < limits::LANE_TOLERANCE * other.as_f64())
    };
    // A copy ends with a sync that the disk's own sustained rate leaves out: only what is no tail counts against it.
    let tail = |rung: &BitRate| own.is_none_or(|own| rung.as_f64() < limits::ALIKE * own.as_f64());
    let raw = raw.filter(|rung| tcp.is_some() && below(rung, tcp) && tail(rung));
    match (own, raw) {
        (Some(own), Some(raw)) => Some(own.min(raw)),
        (one, other) => one.or(other),
    }
}

/// Whether the directory's mount makes every write wait for the disk.
pub(super) fn synchronous(seen: &Seen<'_>, role: Role) -> bool {
    let device = seen.disk(role).and_then(|disk| disk.device.measured());
    device.is_some_and(|device| device.options.iter().any(|option| option == "sync"))
}

/// Whether what lies under a host's directory can be a disk of its own, as far as is known.
fn is_disk(seen: &Seen<'_>, role: Role) -> bool {
    seen.disk(role).is_none() || seen.transfer(role, true).is_some() || seen.transfer(role, false).is_some()
}

/// A copy beside the rate that its rungs below would allow.
#[derive(Clone, Copy)]
pub(super) struct LaneStep<'a> {
    pub(super) kind: LaneKind,
    pub(super) rung: &'a Rung,
    pub(super) copied: &'a Copied,
    pub(super) rate: BitRate,
    pub(super) expected: BitRate,
}

/// Every measured copy with what could be expected of it, slowest first.
pub(super) fn lane_steps<'a>(seen: &Seen<'a>, direction: Direction, tcp: Option<BitRate>) -> Vec<LaneStep<'a>> {
    let mut steps: Vec<LaneStep<'a>> = Vec::new();
    let Some(copy) = seen.copy() else { return steps };
    for lane in &copy.lanes {
        for (rung, copied) in lane.measured(direction) {
            let rate = copied.bytes_per_s.bits();
            let raw = seen.copied(LaneKind::Raw, direction, (rung.from, rung.to), FileSet::Large);
            let large = seen.copied(lane.kind, direction, (rung.from, rung.to), FileSet::Large);
            let source = seen.transfer(direction.sender(), false).filter(|_| rung.from == Place::Disk);
            let sink = seen.transfer(direction.receiver(), true).filter(|_| rung.to == Place::Disk);
            let disks = source.into_iter().chain(sink).map(|transfer| transfer.sustained_bytes_per_s.bits()).min();
            let expected = match rung.files {
                // Small files are held against the large one of the same lane.
                FileSet::Small => large,
                FileSet::Large if lane.kind == LaneKind::Raw => None,
                FileSet::Large => raw.into_iter().chain(tcp).chain(disks).min(),
            };
            if let Some(expected) = expected.filter(|expected| expected.0 > 0 && rate.0 > 0) {
                steps.push(LaneStep { kind: lane.kind, rung, copied, rate, expected });
            }
        }
    }
    steps.sort_by_key(|step| (step.rate, step.kind, step.rung.from, step.rung.to));
    steps
}

/// Whether the user copies small files over this lane and their number is what binds it: what slows a large file there is then no
/// answer to the question.
pub(super) fn bound_by_number(seen: &Seen<'_>, direction: Direction, kind: LaneKind) -> bool {
    let small = |step: &LaneStep<'_>| {
        step.kind == kind
            && step.rung.files == FileSet::Small
            && step.rate.as_f64() < limits::SMALL_FILES * step.expected.as_f64()
    };
    seen.doc.plan.workload == Workload::Small && lane_steps(seen, direction, seen.way(direction).rate()).iter().any(small)
}

/// The slowest copy that was asked for and is clearly slower than what lies below it.
pub(super) fn slowest_lane(seen: &Seen<'_>, direction: Direction, tcp: Option<BitRate>) -> Option<Ceiling> {
    let steps = lane_steps(seen, direction, tcp);
    let small = seen.doc.plan.workload == Workload::Small && steps.iter().any(|step| step.rung.files == FileSet::Small);
    let asked = |step: &&LaneStep<'_>| match step.rung.files {
        FileSet::Small => small,
        FileSet::Large => !small && step.kind != LaneKind::Raw,
    };
    let clear = if small { limits::SMALL_FILES } else { seen.lane_tolerance() };
    let falls = |step: &&LaneStep<'_>| step.rate.as_f64() < clear * step.expected.as_f64();
    let step = steps.iter().filter(asked).find(falls)?;
    Some(Ceiling { part: Part::Lane(step.kind), rate: step.rate, relieved: Some(step.expected) })
}
