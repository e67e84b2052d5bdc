//! The ladder as it is shown: each rung adds a component, so the step where speed is lost names the culprit.
//!
//! This is arithmetic for the eye. The verdict decides on its own and with more evidence.

use crate::model::copy::{Copied, FileSet, Lane, LaneKind, Place, Rung as Copy};
use crate::model::plan::Workload;
use crate::model::storage::DeviceKind;
use crate::model::{Direction, Document, Outcome, Role};
use crate::units::{BitRate, Mtu};

/// A rung that falls by more than this share below all before it is shown as a loss: the noise of a good repeat.
const NOISE: f64 = 0.05;

/// The lanes that a ladder has room for; there are no more kinds than five.
const MAX_LANES: usize = 12;

/// One step of the ladder.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rung {
    /// What it shows.
    pub(super) label: String,
    /// Its rate, if it is known.
    pub(super) rate: Option<BitRate>,
    /// In which unit its readers think.
    pub(super) unit: Unit,
    /// The share that is lost against the slowest rung before it that it stands on, if it is more than noise.
    pub(super) lost: Option<f64>,
    /// Whether it is the largest loss of its ladder.
    pub(super) worst: bool,
    /// What it counts for.
    weight: Weight,
    /// Whether the sender's and the receiver's disk take part in it.
    disks: [bool; 2],
    /// The lane that it is a copy of: its place in the report, and whether it is the raw one.
    lane: Option<(usize, bool)>,
}

impl Rung {
    /// Whether `other`, an earlier rung, is a part of this one, so that this one can be no faster.
    fn stands_on(&self, other: &Self) -> bool {
        let parts = other.disks.iter().zip(self.disks).all(|(theirs, ours)| !theirs || ours);
        let same = other.lane.is_none_or(|(_, raw)| raw || other.lane == self.lane);
        other.weight == Weight::Step && parts && same
    }
}

/// What a rung counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    /// A part of the way: what follows stands on it.
    Step,
    /// It shows what would be without our help: it loses, but the rungs after it do not stand on it.
    Aside,
    /// It is told, but it is no part of the way: memory instead of a disk, or a disk that copies have outrun.
    Told,
}

/// In which unit the readers of a rung think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Links and TCP: bits, and the bytes that they are.
    Bits,
    /// Disks and copies.
    Bytes,
}

/// The rungs of one direction, those that are not known without a rate; empty when nothing at all is known.
pub(super) fn ladder(document: &Document, direction: Direction) -> Vec<Rung> {
    let mut rungs = Vec::new();
    network(document, direction, &mut rungs);
    tcp(document, direction, &mut rungs);
    unclamped(document, direction, &mut rungs);
    disks(document, direction, &mut rungs);
    lanes(document, direction, true, &mut rungs);
    lanes(document, direction, false, &mut rungs);
    outrun(&mut rungs);
    mark_losses(&mut rungs);
    if rungs.iter().all(|rung| rung.rate.is_none()) {
        return Vec::new();
    }
    let most = rungs.iter().filter_map(|rung| rung.lost).fold(0.0, f64::max);
    if let Some(worst) = rungs.iter_mut().find(|rung| rung.lost.is_some_and(|lost| lost >= most)) {
        worst.worst = true;
    }
    rungs
}

/// What TCP can have of the line in one direction, as far as a port or the user tells its speed.
pub(super) fn wire(document: &Document, direction: Direction) -> Option<BitRate> {
    let mut rungs = Vec::new();
    network(document, direction, &mut rungs);
    rungs.get(1)?.rate
}

/// The rate that fills the scale of a ladder: network and copies count, a disk in memory must not dwarf them.
pub(super) fn scale(rungs: &[Rung]) -> BitRate {
    let network = rungs.iter().filter(|rung| rung.unit == Unit::Bits).filter_map(|rung| rung.rate).max();
    network.or_else(|| rungs.iter().filter_map(|rung| rung.rate).max()).unwrap_or_default()
}

/// The speed of one end's cable, where something says so that is evidence.
fn line_rate(document: &Document, role: Role) -> Option<BitRate> {
    let stated = match role {
        Role::Pc => document.plan.stated_pc_bps,
        Role::Nas => document.plan.stated_nas_bps,
    };
    let link = document.measurements.link.measured().and_then(|section| section.of(role).measured());
    stated.or_else(|| link?.stated_speed_bps).or_else(|| {
        link?
            .stack
            .iter()
            .filter(|interface| !interface.kind.speed_is_no_evidence())
            .find_map(|interface| interface.speed_bps.measured().map(|fact| fact.value))
    })
}

fn network(document: &Document, direction: Direction, rungs: &mut Vec<Rung>) {
    let ends = [direction.sender(), direction.receiver()].map(|role| (role, line_rate(document, role)));
    let (label, rate) = match ends {
        [(a, Some(of_a)), (b, Some(of_b))] if of_a != of_b => {
            let slower = if of_a < of_b { a } else { b };
            (format!("line rate ({})", slower.title()), Some(of_a.min(of_b)))
        }
        [(_, Some(rate)), (_, Some(_))] => ("line rate".to_owned(), Some(rate)),
        [(role, Some(rate)), (_, None)] | [(_, None), (role, Some(rate))] => {
            (format!("line rate ({} only)", role.title()), Some(rate))
        }
        [(_, None), (_, None)] => ("line rate".to_owned(), None),
    };
    push(rungs, label, rate, Unit::Bits);
    if let Some(line) = rate {
        let mtu = document.measurements.mtu.measured().and_then(|section| section.of(direction).measured()).map(|path| path.mtu);
        let label = match mtu {
            Some(mtu) => format!("wire, MTU {mtu}"),
            None => "wire, if MTU 1500".to_owned(),
        };
        push(rungs, label, Some(line.scale(payload_share(mtu.unwrap_or(Mtu::ETHERNET), over_ipv6(document)))), Unit::Bits);
    }
}

fn over_ipv6(document: &Document) -> bool {
    let section = document.measurements.link.measured();
    section.and_then(|section| section.pc.measured().or_else(|| section.nas.measured())).is_some_and(|link| link.peer.is_ipv6())
}

/// The share of an Ethernet's line rate that TCP with timestamps can use.
///
/// A frame costs 38 bytes on the wire beside its packet: preamble 8, header 14, check sum 4, gap 12. Of the packet,
/// IP takes 20 bytes (IPv6: 40) and TCP 32.
fn payload_share(mtu: Mtu, ipv6: bool) -> f64 {
    let headers = if ipv6 { 72.0 } else { 52.0 };
    let mtu = f64::from(mtu.0);
    ((mtu - headers) / (mtu + 38.0)).clamp(0.0, 1.0)
}

fn tcp(document: &Document, direction: Direction, rungs: &mut Vec<Rung>) {
    let passes = document.measurements.throughput.measured().map(|section| section.of(direction));
    let single = passes.and_then(|passes| passes.single.measured());
    let multi = passes.and_then(|passes| passes.multi.measured());
    match (single, multi) {
        (Some(one), Some(many)) if one.goodput_bps.as_f64() >= many.goodput_bps.as_f64() * (1.0 - NOISE) => {
            let best = one.goodput_bps.max(many.goodput_bps);
            push(rungs, format!("TCP, 1 or {} streams", many.streams), Some(best), Unit::Bits);
        }
        (Some(one), Some(many)) => {
            push(rungs, format!("TCP, {} streams", many.streams), Some(many.goodput_bps), Unit::Bits);
            push(rungs, "TCP, 1 stream".to_owned(), Some(one.goodput_bps), Unit::Bits);
        }
        (Some(pass), None) | (None, Some(pass)) => {
            let plural = if pass.streams == 1 { "" } else { "s" };
            push(rungs, format!("TCP, {} stream{plural}", pass.streams), Some(pass.goodput_bps), Unit::Bits);
        }
        (None, None) => push(rungs, "TCP".to_owned(), None, Unit::Bits),
    }
}

/// What a stream moves whose segments are not clamped to the path: across a black hole, nothing.
fn unclamped(document: &Document, direction: Direction, rungs: &mut Vec<Rung>) {
    let stream = document.measurements.mtu.measured().and_then(|section| section.unclamped.measured());
    if let Some(stream) = stream.filter(|stream| stream.direction == direction) {
        push(rungs, "TCP, full segments".to_owned(), Some(stream.goodput_bps), Unit::Bits);
        if let Some(rung) = rungs.last_mut() {
            rung.weight = Weight::Aside;
        }
    }
}

fn disks(document: &Document, direction: Direction, rungs: &mut Vec<Rung>) {
    let disk = |role: Role| document.measurements.storage.measured().and_then(|section| section.of(role).measured());
    let read = disk(direction.sender()).and_then(|disk| disk.read.measured());
    let write = disk(direction.receiver()).and_then(|disk| disk.write.measured());
    let ends = [(direction.sender(), "read", read, [true, false]), (direction.receiver(), "write", write, [false, true])];
    for (role, way, transfer, disks) in ends {
        let rate = transfer.map(|transfer| transfer.sustained_bytes_per_s.bits());
        let memory = memory(document, role);
        let label = match memory {
            Some(filesystem) => format!("{} memory ({filesystem})", role.title()),
            None => format!("{} disk {way}", role.title()),
        };
        push(rungs, label, rate, Unit::Bytes);
        if let Some(rung) = rungs.last_mut() {
            rung.disks = disks;
            if memory.is_some() {
                rung.weight = Weight::Told;
            }
        }
    }
}

/// The filesystem of a host's directory, when it lies in memory and no disk is behind it.
fn memory(document: &Document, role: Role) -> Option<&str> {
    let section = document.measurements.storage.measured()?;
    let device = section.of(role).measured()?.device.measured()?;
    (device.kind == DeviceKind::Memory).then_some(device.filesystem.as_str())
}

/// Takes the weight from disks that a raw copy has outrun: such a disk's own figure is no limit.
fn outrun(rungs: &mut [Rung]) {
    let raw = |rung: &&Rung| matches!(rung.lane, Some((_, true)));
    let copies: Vec<_> = rungs.iter().filter(raw).filter_map(|rung| rung.rate.map(|rate| (rung.disks, rate))).collect();
    for disk in rungs.iter_mut().filter(|rung| rung.lane.is_none() && rung.disks != [false; 2]) {
        let Some(own) = disk.rate else { continue };
        let uses = |disks: [bool; 2]| disks.iter().zip(disk.disks).any(|(theirs, ours)| *theirs && ours);
        if copies.iter().any(|(disks, rate)| uses(*disks) && rate.as_f64() > own.as_f64() * (1.0 + NOISE)) {
            disk.weight = Weight::Told;
        }
    }
}

/// Adds the copies of the raw lane or of all others.
fn lanes(document: &Document, direction: Direction, raw: bool, rungs: &mut Vec<Rung>) {
    let files = match document.plan.workload {
        Workload::Large => FileSet::Large,
        Workload::Small => FileSet::Small,
    };
    let all = document.measurements.copy.measured().map(|section| section.lanes.as_slice()).unwrap_or_default();
    for (number, lane) in all.iter().take(MAX_LANES).enumerate().filter(|(_, lane)| (lane.kind == LaneKind::Raw) == raw) {
        for (from, to, rate) in repeats(lane, direction, files) {
            let ends =
                [(direction.sender(), from), (direction.receiver(), to)].map(|(role, place)| end(document, lane, role, place));
            push(rungs, lane_label(lane, ends, files), Some(rate), Unit::Bytes);
            if let Some(rung) = rungs.last_mut() {
                rung.disks = [from, to].map(|place| place == Place::Disk);
                rung.lane = Some((number, raw));
            }
        }
    }
}

/// The lane's copies, repeats of the same copy as their median.
fn repeats(lane: &Lane, direction: Direction, files: FileSet) -> Vec<(Place, Place, BitRate)> {
    let mut found: Vec<(Place, Place, Vec<BitRate>)> = Vec::new();
    let copies = lane.measured(direction).filter(|(rung, _)| rung.files == files);
    for (Copy { from, to, .. }, Copied { bytes_per_s, .. }) in copies {
        match found.iter_mut().find(|(f, t, _)| f == from && t == to) {
            Some((_, _, rates)) => rates.push(bytes_per_s.bits()),
            None => found.push((*from, *to, vec![bytes_per_s.bits()])),
        }
    }
    let median = |mut rates: Vec<BitRate>| {
        rates.sort_unstable();
        rates.get(rates.len() / 2).copied().unwrap_or_default()
    };
    found.into_iter().map(|(from, to, rates)| (from, to, median(rates))).collect()
}

fn lane_label(lane: &Lane, [from, to]: [&str; 2], files: FileSet) -> String {
    let name = match (&lane.protocol, lane.kind) {
        (Outcome::Measured(protocol), LaneKind::Mounted) => protocol.as_str(),
        (_, kind) => kind.word(),
    };
    let small = if files == FileSet::Small { ", small files" } else { "" };
    format!("{name}, {from} → {to}{small}")
}

/// The word for an end of a copy. The raw lane's directory is the one that was tested as a disk, so it may lie in memory.
pub(super) fn end<'a>(document: &'a Document, lane: &Lane, role: Role, place: Place) -> &'a str {
    match place {
        Place::Memory => "memory",
        Place::Disk if lane.kind == LaneKind::Raw => memory(document, role).unwrap_or("disk"),
        Place::Disk => "disk",
    }
}

fn push(rungs: &mut Vec<Rung>, label: String, rate: Option<BitRate>, unit: Unit) {
    rungs.push(Rung { label, rate, unit, lost: None, worst: false, weight: Weight::Step, disks: [false; 2], lane: None });
}

fn mark_losses(rungs: &mut [Rung]) {
    for at in 0..rungs.len() {
        let (before, rest) = rungs.split_at_mut(at);
        let Some((rung, rate)) = rest.first_mut().and_then(|rung| rung.rate.map(|rate| (rung, rate))) else { continue };
        // What the headers take from the line rate is arithmetic and no loss.
        if rung.weight == Weight::Told || rung.label.starts_with("wire") {
            continue;
        }
        let least = before.iter().filter(|other| rung.stands_on(other)).filter_map(|other| other.rate).min();
        if let Some(least) = least.filter(|least| least.0 > 0) {
            let lost = 1.0 - rate.as_f64() / least.as_f64();
            rung.lost = (lost > NOISE).then_some(lost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_carries_what_the_arithmetic_says() {
        for (mtu, ipv6, share) in [(1500, false, 0.9415), (9000, false, 0.9900), (1500, true, 0.9285), (9000, true, 0.9878)] {
            assert!((payload_share(Mtu(mtu), ipv6) - share).abs() < 0.0001, "{mtu}");
        }
        assert!(payload_share(Mtu(0), true).abs() < f64::EPSILON);
    }

    /// Rungs by label, rate in Mbit/s, the disks that take part, and the lane.
    type Given<'a> = (&'a str, u64, [bool; 2], Option<(usize, bool)>);

    fn losses(given: &[Given<'_>], told: &str) -> Vec<Option<f64>> {
        let mut rungs = Vec::new();
        for (label, mbit, disks, lane) in given {
            push(&mut rungs, (*label).to_owned(), Some(BitRate::from_mbit(*mbit)), Unit::Bits);
            let rung = rungs.last_mut().unwrap();
            (rung.disks, rung.lane) = (*disks, *lane);
            if *label == told {
                rung.weight = Weight::Told;
            }
        }
        outrun(&mut rungs);
        mark_losses(&mut rungs);
        rungs.iter().map(|rung| rung.lost.map(|lost| (lost * 100.0).round())).collect()
    }

    const NO: [bool; 2] = [false, false];
    const TO: [bool; 2] = [false, true];
    const NETWORK: [Given<'static>; 3] = [("line rate", 1000, NO, None), ("wire", 941, NO, None), ("TCP", 940, NO, None)];

    #[test]
    fn a_loss_is_counted_against_the_slowest_part_before() {
        for (case, more, lost) in [
            (
                "a fast disk",
                [("disk", 4000, TO, None), ("raw", 470, TO, Some((0, true))), ("ssh", 460, TO, Some((1, false)))],
                [None, Some(50.0), None],
            ),
            (
                "a disk takes no part in a copy between memories",
                [("disk", 470, TO, None), ("ssh", 470, NO, Some((1, false))), ("ssh", 235, TO, Some((1, false)))],
                [Some(50.0), Some(50.0), Some(50.0)],
            ),
            (
                "a copy that outruns the disk's own figure",
                [("disk", 470, TO, None), ("raw", 935, TO, Some((0, true))), ("ssh", 470, TO, Some((1, false)))],
                [None, None, Some(50.0)],
            ),
            (
                "one lane does not stand on another",
                [("disk", 4000, TO, None), ("ssh", 470, NO, Some((1, false))), ("smb", 235, NO, Some((2, false)))],
                [None, Some(50.0), Some(75.0)],
            ),
        ] {
            let given: Vec<_> = NETWORK.into_iter().chain(more).collect();
            assert_eq!(losses(&given, "")[3..], lost, "{case}");
        }
    }

    #[test]
    fn memory_is_no_disk_and_loses_nothing() {
        let given: Vec<_> = NETWORK.into_iter().chain([("memory", 400, TO, None), ("raw", 390, TO, Some((0, true)))]).collect();
        assert_eq!(losses(&given, "memory"), [None, None, None, None, Some(59.0)]);
    }
}
