//! The ladder as it is shown: each rung adds a component, so the step where speed is lost names the culprit.
//!
//! This is arithmetic for the eye. The verdict decides on its own and with more evidence.

use crate::model::copy::{Copied, FileSet, Lane, LaneKind, Place, Rung as Copy};
use crate::model::plan::Workload;
use crate::model::{Direction, Document, Outcome, Role};
use crate::units::{BitRate, Mtu};

/// A rung that falls by more than this share below all before it is shown as a loss: the noise of a good repeat.
const NOISE: f64 = 0.05;

/// One step of the ladder.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rung {
    /// What it shows.
    pub(super) label: String,
    /// Its rate, if it is known.
    pub(super) rate: Option<BitRate>,
    /// In which unit its readers think.
    pub(super) unit: Unit,
    /// The share that is lost against the slowest rung before it, if it is more than noise.
    pub(super) lost: Option<f64>,
    /// Whether it is the largest loss of its ladder.
    pub(super) worst: bool,
    /// Whether it shows what would be without our help: the rungs after it do not stand on it.
    aside: bool,
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
    mark_losses(&mut rungs, None);
    let base = rungs.iter().filter(|rung| !rung.aside).filter_map(|rung| rung.rate).min();
    let raw = lanes(document, direction, base, true, &mut rungs);
    lanes(document, direction, raw.or(base), false, &mut rungs);
    if rungs.iter().all(|rung| rung.rate.is_none()) {
        return Vec::new();
    }
    let most = rungs.iter().filter_map(|rung| rung.lost).fold(0.0, f64::max);
    if let Some(worst) = rungs.iter_mut().find(|rung| rung.lost.is_some_and(|lost| lost >= most)) {
        worst.worst = true;
    }
    rungs
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
            rung.aside = true;
        }
    }
}

fn disks(document: &Document, direction: Direction, rungs: &mut Vec<Rung>) {
    let disk = |role: Role| document.measurements.storage.measured().and_then(|section| section.of(role).measured());
    let read = disk(direction.sender()).and_then(|disk| disk.read.measured());
    let write = disk(direction.receiver()).and_then(|disk| disk.write.measured());
    for (role, way, transfer) in [(direction.sender(), "read", read), (direction.receiver(), "write", write)] {
        let rate = transfer.map(|transfer| transfer.sustained_bytes_per_s.bits());
        push(rungs, format!("{} disk {way}", role.title()), rate, Unit::Bytes);
    }
}

/// Adds the copies of the raw lane or of all others, and gives the slowest of those of the raw lane.
fn lanes(document: &Document, direction: Direction, base: Option<BitRate>, raw: bool, rungs: &mut Vec<Rung>) -> Option<BitRate> {
    let files = match document.plan.workload {
        Workload::Large => FileSet::Large,
        Workload::Small => FileSet::Small,
    };
    let all = document.measurements.copy.measured().map(|section| section.lanes.as_slice()).unwrap_or_default();
    let mut slowest = base;
    for lane in all.iter().filter(|lane| (lane.kind == LaneKind::Raw) == raw) {
        let mut copies = repeats(lane, direction, files);
        let first = rungs.len();
        for (from, to, rate) in copies.drain(..) {
            push(rungs, lane_label(lane, from, to, files), Some(rate), Unit::Bytes);
        }
        if let Some(added) = rungs.get_mut(first..) {
            mark_losses(added, base);
            let least = added.iter().filter_map(|rung| rung.rate).min();
            if raw {
                slowest = slowest.into_iter().chain(least).min();
            }
        }
    }
    slowest
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

fn lane_label(lane: &Lane, from: Place, to: Place, files: FileSet) -> String {
    let name = match (&lane.protocol, lane.kind) {
        (Outcome::Measured(protocol), LaneKind::Mounted) => protocol.as_str(),
        (_, kind) => kind.word(),
    };
    let small = if files == FileSet::Small { ", small files" } else { "" };
    format!("{name}, {} → {}{small}", place(from), place(to))
}

/// The word for an end of a copy.
pub(super) const fn place(place: Place) -> &'static str {
    match place {
        Place::Memory => "memory",
        Place::Disk => "disk",
    }
}

fn push(rungs: &mut Vec<Rung>, label: String, rate: Option<BitRate>, unit: Unit) {
    rungs.push(Rung { label, rate, unit, lost: None, worst: false, aside: false });
}

fn mark_losses(rungs: &mut [Rung], base: Option<BitRate>) {
    let mut least = base;
    for rung in rungs {
        let Some(rate) = rung.rate else { continue };
        if let Some(before) = least.filter(|before| before.0 > 0) {
            let lost = 1.0 - rate.as_f64() / before.as_f64();
            // What the headers take from the line rate is arithmetic and no loss.
            rung.lost = (lost > NOISE && !rung.label.starts_with("wire")).then_some(lost);
        }
        if !rung.aside {
            least = least.into_iter().chain([rate]).min();
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

    #[test]
    fn a_loss_is_counted_against_the_slowest_rung_before() {
        let mut rungs = Vec::new();
        for (label, mbit) in [("line rate", 1000), ("wire", 941), ("TCP", 940), ("disk", 4000), ("raw", 470), ("ssh", 460)] {
            push(&mut rungs, label.to_owned(), Some(BitRate::from_mbit(mbit)), Unit::Bits);
        }
        mark_losses(&mut rungs, None);
        let lost: Vec<_> = rungs.iter().map(|rung| rung.lost.map(|lost| (lost * 100.0).round())).collect();
        assert_eq!(lost, [None, None, None, None, Some(50.0), None]);
    }
}
