//! The document read once: what the rules ask for, as numbers per end and per direction.

use std::collections::HashSet;
use std::iter;

use super::ideal::{self, Ip};
use super::limits;
use super::line_rate::{elsewhere, has_link, in_reserve, line_of};
pub(super) use super::load::Load;
use crate::model::copy::{CopySection, FileSet, LaneKind, Place};
use crate::model::cpu::{CpuWindow, HostCpu};
use crate::model::link::{Bond, HostLink, Interface, InterfaceKind};
use crate::model::link_event::LinkEvent;
use crate::model::mtu::{MtuSection, PathMtu};
use crate::model::plan::Ways;
use crate::model::storage::{DeviceKind, DiskResult, Transfer};
use crate::model::throughput::{Pass, TcpStats};
use crate::model::{Direction, Document, Role};
use crate::units::{BitRate, Mtu};

/// More ports of one aggregation than this are not judged one by one.
const MOST_PORTS: usize = 64;
/// Older events of the kernel's log than the newest of this number are not looked at.
const MOST_EVENTS: usize = 256;

/// What is known of one end's way to the other.
pub(super) struct End<'a> {
    pub(super) link: Option<&'a HostLink>,
    /// The line rate of one flow.
    pub(super) flow: Option<BitRate>,
    /// The line rate of many flows: more than `flow` behind an aggregation.
    pub(super) total: Option<BitRate>,
    /// The user's word.
    pub(super) stated: bool,
    /// The MTU of the interface that the route names.
    pub(super) mtu: Option<Mtu>,
}

/// The numbers of one direction.
pub(super) struct Way<'a> {
    pub(super) direction: Direction,
    /// The better of both passes.
    pub(super) best: Option<&'a Pass>,
    pub(super) single: Option<&'a Pass>,
    pub(super) multi: Option<&'a Pass>,
    /// TCP's ceiling on the line, where the line is known or inferred.
    pub(super) wire: Option<BitRate>,
}

/// The whole document as the rules see it.
pub(super) struct Seen<'a> {
    pub(super) doc: &'a Document,
    pub(super) ends: [End<'a>; 2],
    pub(super) ways: [Way<'a>; 2],
    /// The line rate of many flows over both ends.
    pub(super) line: Option<BitRate>,
    /// The line was read off a plateau, nobody said it.
    pub(super) inferred: bool,
    pub(super) ip: Ip,
    /// The MTU that packets of TCP use, for the arithmetic.
    pub(super) mtu: Mtu,
}

/// Sums over the streams of a pass as its sender's kernel counted them.
#[derive(Clone, Copy, Default)]
pub(super) struct Sums {
    pub(super) retransmits: Option<f64>,
    pub(super) rwnd: Option<f64>,
    pub(super) sndbuf: Option<f64>,
    pub(super) reorders: u64,
    /// The least round-trip time of any stream in seconds.
    pub(super) min_rtt: Option<f64>,
    /// The windows of all streams together in bytes.
    pub(super) window: Option<f64>,
}

fn lesser(a: Option<BitRate>, b: Option<BitRate>) -> Option<BitRate> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

impl<'a> Seen<'a> {
    pub(super) fn new(doc: &'a Document) -> Self {
        let ends = [End::new(doc, Role::Pc), End::new(doc, Role::Nas)];
        let ip = match ends.iter().find_map(|end| end.link) {
            Some(link) if link.local.is_ipv6() => Ip::V6,
            _ => Ip::V4,
        };
        let mtu = path_mtu(doc, &ends);
        // One known end says nothing about the other: the line is known when both are.
        let known = ends.iter().all(|end| end.total.is_some());
        let line = known.then(|| lesser(ends[0].total, ends[1].total)).flatten();
        let ways = Direction::BOTH.map(|direction| Way::new(doc, direction));
        let mut seen = Self { doc, ends, ways, line, inferred: false, ip, mtu };
        if seen.line.is_none() && !seen.local() {
            // Failing a plateau, the one end that is known bounds the line from above.
            seen.line = seen.infer_line().or_else(|| seen.known());
            seen.inferred = seen.line.is_some();
        }
        let wire = seen.line.map(|line| ideal::wire_ceiling(line, mtu, ip));
        for way in &mut seen.ways {
            way.wire = wire;
        }
        seen
    }

    /// The slowest line that an end tells of, or the user.
    pub(super) fn known(&self) -> Option<BitRate> {
        lesser(self.ends[0].total, self.ends[1].total)
    }

    /// Whether nothing here is evidence about a cable.
    pub(super) fn local(&self) -> bool {
        let looped = |end: &End<'_>| end.link.and_then(HostLink::top).is_some_and(|top| top.kind == InterfaceKind::Loopback);
        self.doc.plan.local || self.ends.iter().any(looped)
    }

    /// A copy falls clearly below what lies under it when it reaches less than this share of it.
    pub(super) fn lane_tolerance(&self) -> f64 {
        if self.local() { limits::LOCAL_LANE_TOLERANCE } else { limits::LANE_TOLERANCE }
    }

    pub(super) fn end(&self, role: Role) -> &End<'a> {
        match role {
            Role::Pc => &self.ends[0],
            Role::Nas => &self.ends[1],
        }
    }

    pub(super) fn way(&self, direction: Direction) -> &Way<'a> {
        match direction {
            Direction::Upload => &self.ways[0],
            Direction::Download => &self.ways[1],
        }
    }

    pub(super) fn path(&self, direction: Direction) -> Option<&'a PathMtu> {
        self.doc.measurements.mtu.measured().map(|mtu: &MtuSection| mtu.of(direction)).and_then(|path| path.measured())
    }

    pub(super) fn disk(&self, role: Role) -> Option<&'a DiskResult> {
        self.doc.measurements.storage.measured().and_then(|storage| storage.of(role).measured())
    }

    /// A host's transfer to (`write`) or from its own disk, unless what lies there is no disk of its own.
    pub(super) fn transfer(&self, role: Role, write: bool) -> Option<&'a Transfer> {
        let disk = self.disk(role)?;
        let foreign = |kind| matches!(kind, DeviceKind::Memory | DeviceKind::Network);
        if disk.device.measured().is_some_and(|device| foreign(device.kind)) {
            return None;
        }
        if write { disk.write.measured() } else { disk.read.measured() }
    }

    /// Whether a host's directory lies in memory, so that there is no disk to measure.
    pub(super) fn in_memory(&self, role: Role) -> bool {
        let device = self.disk(role).and_then(|disk| disk.device.measured());
        device.is_some_and(|device| device.kind == DeviceKind::Memory)
    }

    pub(super) fn cpu(&self, role: Role) -> Option<&'a HostCpu> {
        self.doc.measurements.cpu.measured().and_then(|cpu| cpu.of(role).measured())
    }

    pub(super) fn copy(&self) -> Option<&'a CopySection> {
        self.doc.measurements.copy.measured()
    }

    /// The largest rate of a lane's copies between these places in this direction.
    pub(super) fn copied(&self, kind: LaneKind, direction: Direction, ends: (Place, Place), files: FileSet) -> Option<BitRate> {
        let lanes = self.copy()?.lanes.iter().filter(|lane| lane.kind == kind);
        lanes
            .flat_map(|lane| lane.measured(direction))
            .filter(|(rung, _)| (rung.from, rung.to) == ends && rung.files == files)
            .map(|(_, copied)| copied.bytes_per_s.bits())
            .max()
    }

    /// Whether socket buffers that were asked for are so much larger than the path needs that they hold no stream back, whoever's
    /// share of the time speaks against them: a queue that the streams themselves fill, or a busy reader, stops a sender too.
    pub(super) fn window_to_spare(&self, pass: &Pass) -> bool {
        let Some(asked) = self.doc.plan.throughput.as_ref().and_then(|plan| plan.options.window_bytes) else { return false };
        let sums = Sums::of(pass);
        let asked = f64::from(asked) * f64::from(pass.streams);
        let Some(rtt) = sums.min_rtt else { return false };
        let allowed = sums.window.map_or(asked, |window| window.min(asked)) * 8.0 / rtt;
        pass.goodput_bps.as_f64() < limits::WINDOW_USED * allowed
    }

    /// The line rate that a plateau proves, when nobody else knows it: the better direction sits flat at a
    /// known class, and neither window nor a starved host explains it as well.
    fn infer_line(&self) -> Option<BitRate> {
        let best = self.ways.iter().filter_map(|way| way.best).max_by_key(|pass| pass.goodput_bps)?;
        let class = ideal::snap(best.goodput_bps, self.mtu, self.ip)?;
        // Where the better direction has no series (an iperf3 server's word is a sum), the other one at the same class proves it.
        let proves = |pass: &&Pass| flat(pass) && ideal::snap(pass.goodput_bps, self.mtu, self.ip) == Some(class);
        let pass = iter::once(best).chain(self.ways.iter().filter_map(|way| way.best)).find(proves)?;
        if self.ends.iter().any(End::without_cable) {
            return None;
        }
        // A known end that is slower than the plateau's class would make the figure impossible.
        if self.ends.iter().filter_map(|end| end.total).any(|known| known < class) {
            return None;
        }
        let sums = Sums::of(pass);
        let held = sums.rwnd.is_some_and(|share| share >= limits::RWND_LIMITED) || sums.window_sets(pass.goodput_bps);
        let windowed = held && !self.window_to_spare(pass);
        // A host that is kept waiting moves bytes in fits: a rate this even at a class of Ethernet is the cable's all the same.
        let even = pass.steady.is_some_and(|steady| steady.spread <= limits::EVEN_SPREAD);
        let starved =
            !even && [Role::Pc, Role::Nas].into_iter().filter_map(|role| window(pass, role)).any(|cpu| Load::of(cpu).starved());
        (!windowed && !starved).then_some(class)
    }
}

fn path_mtu(doc: &Document, ends: &[End<'_>; 2]) -> Mtu {
    let measured = doc.measurements.mtu.measured().into_iter().flat_map(|mtu| [mtu.upload.measured(), mtu.download.measured()]);
    let paths = measured.flatten().map(|path| path.mtu);
    // A port may take some bytes more than its MTU; TCP never uses them.
    let own = ends.iter().filter_map(|end| end.mtu);
    let loose = |mtu: &Mtu| mtu.0 > ideal::TCP_OVERHEAD_V6;
    paths.chain(own).filter(loose).min().unwrap_or(Mtu::ETHERNET)
}

impl<'a> End<'a> {
    fn new(doc: &'a Document, role: Role) -> Self {
        let link = doc.measurements.link.measured().and_then(|links| links.of(role).measured());
        let planned = match role {
            Role::Pc => doc.plan.stated_pc_bps,
            Role::Nas => doc.plan.stated_nas_bps,
        };
        let stated = planned.or(link.and_then(|link| link.stated_speed_bps)).filter(|rate| rate.0 > 0);
        let known = if stated.is_some() { (stated, stated) } else { link.map_or((None, None), line_of) };
        let mtu = link.and_then(HostLink::top).and_then(|top| top.mtu.measured()).map(|fact| fact.value);
        let ceiling = |way| doc.measurements.mtu.measured().and_then(|m: &MtuSection| m.of(way).measured()).map(|p| p.ceiling);
        let sends = match role {
            Role::Pc => Direction::Upload,
            Role::Nas => Direction::Download,
        };
        let mtu = mtu.or_else(|| ceiling(sends)).filter(|mtu| mtu.0 > 0);
        Self { link, flow: known.0, total: known.1, stated: stated.is_some(), mtu }
    }

    /// The port with the cable: the lowest of the stack that is one, those with a link first.
    pub(super) fn port(&self) -> Option<&'a Interface> {
        let physical = |interface: &&Interface| interface.kind == InterfaceKind::Physical;
        self.ports().pop().or_else(|| self.link?.stack.iter().rev().find(physical))
    }

    /// The ports that carry the traffic: all of an aggregation that have a link and are in use, else the one port.
    pub(super) fn ports(&self) -> Vec<&'a Interface> {
        let Some(link) = self.link else { return Vec::new() };
        let linked = |interface: &&Interface| interface.kind == InterfaceKind::Physical && has_link(interface);
        let Some(bond) = self.bond() else { return link.stack.iter().rev().find(linked).into_iter().collect() };
        let unused = |name: &str| {
            let mut ports = bond.ports.iter().take(MOST_PORTS).filter(|port| port.name == name);
            ports.any(|port| port.up == Some(false) || elsewhere(bond, port) || (in_reserve(bond) && port.active == Some(false)))
        };
        link.stack.iter().filter(linked).take(MOST_PORTS).filter(|interface| !unused(&interface.name)).collect()
    }

    /// The newest events of the kernel's log that are about interfaces on the way, oldest first.
    pub(super) fn events(&self) -> Vec<&'a LinkEvent> {
        let Some(link) = self.link else { return Vec::new() };
        let names: HashSet<&str> = link.stack.iter().map(|interface| interface.name.as_str()).collect();
        let all = link.events.measured().map(Vec::as_slice).unwrap_or_default().iter().rev();
        let mut newest: Vec<&LinkEvent> =
            all.filter(|event| names.contains(event.interface.as_str())).take(MOST_EVENTS).collect();
        newest.reverse();
        newest
    }

    pub(super) fn bond(&self) -> Option<&'a Bond> {
        self.link?.stack.iter().find_map(|interface| interface.bond.as_ref())
    }

    /// Whether the route leaves by radio or through a tunnel.
    pub(super) fn without_cable(&self) -> bool {
        self.detour().is_some()
    }

    pub(super) fn detour(&self) -> Option<&'a Interface> {
        let detours = |interface: &&Interface| matches!(interface.kind, InterfaceKind::Wifi | InterfaceKind::Tunnel);
        self.link?.stack.iter().find(detours)
    }
}

impl<'a> Way<'a> {
    fn new(doc: &'a Document, direction: Direction) -> Self {
        let passes = doc.measurements.throughput.measured().map(|all| all.of(direction));
        let moved = |pass: &&Pass| pass.goodput_bps.0 > 0 && pass.elapsed_us.0 >= limits::SHORTEST_PASS_US;
        // Who asked for both directions at once alone has no other pass.
        let alone = doc.plan.throughput.as_ref().is_some_and(|plan| plan.ways == Ways::Both);
        let at_once = || doc.measurements.throughput.measured()?.both.measured()?.of(direction).measured();
        let best = passes.and_then(|passes| passes.best());
        Self {
            direction,
            best: best.or_else(|| at_once().filter(|_| alone)).filter(moved),
            single: passes.and_then(|passes| passes.single.measured()).filter(moved),
            multi: passes.and_then(|passes| passes.multi.measured()).filter(moved),
            wire: None,
        }
    }

    pub(super) fn rate(&self) -> Option<BitRate> {
        self.best.map(|pass| pass.goodput_bps)
    }

    /// The share of the wire's ceiling that was reached.
    pub(super) fn share(&self) -> Option<f64> {
        let wire = self.wire.filter(|wire| wire.0 > 0)?;
        Some(self.rate()?.as_f64() / wire.as_f64())
    }

    /// Whether TCP visibly stays below the wire, or the wire is not known.
    pub(super) fn gap(&self) -> bool {
        self.best.is_some() && self.share().is_none_or(|share| share < limits::AT_LINE_RATE)
    }
}

/// Whether a pass ran at one level.
pub(super) fn flat(pass: &Pass) -> bool {
    pass.steady.is_some_and(|steady| steady.spread <= limits::FLAT_SPREAD)
}

/// A host's CPU during a pass.
pub(super) fn window(pass: &Pass, role: Role) -> Option<&CpuWindow> {
    match role {
        Role::Pc => pass.cpu_pc.measured(),
        Role::Nas => pass.cpu_nas.measured(),
    }
}

impl Sums {
    pub(super) fn of(pass: &Pass) -> Self {
        // Whoever has no kernel's counts may still know what held the sender back.
        let limits = pass.limits.measured().copied();
        let Some(streams) = pass.sender.measured().filter(|streams| !streams.is_empty()) else {
            let (rwnd, sndbuf) = (limits.map(|shares| shares.receiver), limits.map(|shares| shares.send_buffer));
            return Self { rwnd, sndbuf, ..Self::default() };
        };
        let total = |field: fn(&TcpStats) -> Option<u64>| -> Option<f64> {
            let values: Option<Vec<u64>> = streams.iter().map(field).collect();
            values.map(|values| values.iter().map(|value| *value as f64).sum())
        };
        let share = |part: Option<f64>, whole: Option<f64>| match (part, whole) {
            (Some(part), Some(whole)) if whole > 0.0 => Some((part / whole).min(1.0)),
            _ => None,
        };
        let busy = total(|s| s.busy_us);
        let retransmits = share(total(|s| s.retransmits), total(|s| s.segments_out));
        Self {
            retransmits: retransmits.or_else(|| share(total(|s| s.bytes_retrans), total(|s| s.bytes_sent))),
            rwnd: share(total(|s| s.rwnd_limited_us), busy).or(limits.map(|shares| shares.receiver)),
            sndbuf: share(total(|s| s.sndbuf_limited_us), busy).or(limits.map(|shares| shares.send_buffer)),
            reorders: streams.iter().filter_map(|s| s.reord_seen).map(u64::from).sum(),
            min_rtt: streams.iter().filter_map(|s| s.min_rtt_us).min().filter(|us| *us > 0).map(|us| f64::from(us) / 1e6),
            window: total(|s| s.snd_wnd_bytes).filter(|bytes| *bytes > 0.0),
        }
    }

    /// The rate that the windows allow on the idle path, in bits a second.
    pub(super) fn window_rate(&self) -> Option<f64> {
        Some(self.window? * 8.0 / self.min_rtt?)
    }

    /// Whether a rate equals window over round-trip time: against the *idle* time, since a queue stretches the other.
    pub(super) fn window_sets(&self, rate: BitRate) -> bool {
        self.window_rate().is_some_and(|allowed| allowed > 0.0 && limits::WINDOW_MATCH.contains(&(rate.as_f64() / allowed)))
    }
}
