//! Documents for tests: a healthy one, and the hands to bend it.

use std::collections::BTreeMap;

use crate::model::copy::{Copied, CopySection, FileSet, Lane, LaneFact, LaneKind, Place, Rung};
use crate::model::cpu::{CipherCeiling, CoreShare, CpuSection, CpuWindow, HostCpu, ProcessShare};
use crate::model::document::{Document, Hosts, Measurements, Schema, Tool};
use crate::model::host::{Direction, Host, Role, TcpSettings};
use crate::model::link::{Bond, BondPort, Bus, Counters, Duplex, HostLink, Interface, InterfaceKind, LinkModes, LinkSection};
use crate::model::mtu::{EchoMethod, EchoPath, Limiter, MtuSection, PathMtu, ServicePath, ServiceProbe, TcpEnd};
use crate::model::outcome::{Fact, Outcome, Source};
use crate::model::plan::{Depth, Plan, Scope, ThroughputPlan, Ways, Workload};
use crate::model::storage::{Device, DeviceKind, Disk, DiskResult, StorageSection, Transfer};
use crate::model::throughput::{Bins, DirectionThroughput, FarEnd, Pass, RttSummary, Steady, TcpStats, ThroughputSection};
use crate::model::together::{BothRates, Member, Together};
use crate::model::udp::{UdpDirection, UdpPass, UdpSection};
use crate::units::{BitRate, ByteRate, ByteSize, Elapsed, Mtu};

pub(super) fn mbit(mbit: u64) -> BitRate {
    BitRate::from_mbit(mbit)
}

fn fact<T>(value: T) -> Outcome<Fact<T>> {
    Outcome::Measured(Fact::new(value, Source::Ethtool))
}

/// Both links at this speed, everything else well above it, MTU 1500.
pub(super) fn healthy(line_mbit: u64) -> Document {
    let wire = (line_mbit as f64 * 0.9395) as u64;
    let fast = wire / 8 * 3;
    Document {
        schema: Schema::current(),
        tool: Tool { name: "weaklink".into(), version: "0".into() },
        started: "2024-01-01T00:00:00Z".into(),
        plan: Plan {
            scope: Scope::Run,
            depth: Depth::Normal,
            local: false,
            budget_us: Elapsed(60_000_000),
            streams: 4,
            max_data_bytes: ByteSize(4_000_000_000),
            lanes: vec![LaneKind::Raw],
            workload: Workload::Large,
            stated_pc_bps: None,
            stated_nas_bps: None,
            throughput: None,
        },
        hosts: Hosts { pc: Outcome::Measured(host()), nas: Outcome::Measured(host()) },
        measurements: Measurements {
            link: Outcome::Measured(LinkSection::new(
                Outcome::Measured(host_link(line_mbit)),
                Outcome::Measured(host_link(line_mbit)),
            )),
            mtu: Outcome::Measured(MtuSection::new(
                Outcome::Measured(path(1500, Limiter::LocalInterface)),
                Outcome::Measured(path(1500, Limiter::LocalInterface)),
                "the path carries what the interfaces use",
            )),
            throughput: Outcome::Measured(ThroughputSection::new(direction(wire), direction(wire), Outcome::Measured(rtt(200)))),
            cpu: Outcome::Measured(CpuSection { pc: Outcome::Measured(host_cpu()), nas: Outcome::Measured(host_cpu()) }),
            storage: Outcome::Measured(StorageSection {
                pc: Outcome::Measured(disk(fast)),
                nas: Outcome::Measured(disk(fast)),
                counters: None,
            }),
            copy: Outcome::skipped("no lane was asked for"),
        },
        findings: Vec::new(),
        verdict: None,
    }
}

fn host() -> Host {
    Host {
        weaklink: "0".into(),
        os: "linux".into(),
        arch: "x86_64".into(),
        kernel: Outcome::Measured("6.1.0".into()),
        cpu_model: Outcome::skipped("not told"),
        cores: 4,
        memory_bytes: Outcome::Measured(ByteSize(8_000_000_000)),
        tcp: Outcome::Measured(TcpSettings { window_scaling: Some(true), ..TcpSettings::default() }),
    }
}

fn host_link(line_mbit: u64) -> HostLink {
    let stack = vec![interface("eth0", InterfaceKind::Physical, line_mbit)];
    HostLink::new([192, 0, 2, 1].into(), [192, 0, 2, 2].into(), stack)
}

pub(super) fn interface(name: &str, kind: InterfaceKind, line_mbit: u64) -> Interface {
    Interface {
        name: name.into(),
        kind,
        mtu: fact(Mtu(1500)),
        speed_bps: fact(mbit(line_mbit)),
        duplex: fact(Duplex::Full),
        autoneg: fact(true),
        driver: fact("r8169".into()),
        bus: Outcome::skipped("not told"),
        modes: Outcome::Measured(LinkModes {
            supported_bps: vec![mbit(line_mbit)],
            advertised_bps: vec![mbit(line_mbit)],
            partner_bps: Vec::new(),
        }),
        bond: None,
        carrier_changes: Outcome::Measured(1),
        carrier: Outcome::Measured(true),
        offloads: Outcome::skipped("not told"),
        counters: Outcome::skipped("not told"),
        nic: Outcome::skipped("not told"),
    }
}

pub(super) fn path(mtu: u32, limited_by: Limiter) -> PathMtu {
    PathMtu {
        mtu: Mtu(mtu),
        ceiling: Mtu(mtu),
        limited_by,
        probes: 10,
        elapsed_us: Elapsed(50_000),
        rtt_us: Some(Elapsed(200)),
        trace: vec![],
        words: vec![],
        change: None,
        location: Outcome::skipped("not looked for"),
    }
}

pub(super) fn rtt(us: u64) -> RttSummary {
    let us = Elapsed(us);
    RttSummary { sent: 20, received: 20, min_us: us, median_us: us, p95_us: us, p99_us: Some(us), max_us: us }
}

fn direction(rate_mbit: u64) -> DirectionThroughput {
    DirectionThroughput {
        single: Outcome::Measured(pass(1, rate_mbit)),
        multi: Outcome::Measured(pass(4, rate_mbit)),
        sweep: vec![],
    }
}

pub(super) fn pass(streams: u32, rate_mbit: u64) -> Pass {
    let bytes = rate_mbit * 1_000_000 / 8 * 4;
    let stats = TcpStats {
        min_rtt_us: Some(200),
        rtt_us: Some(900),
        segments_out: Some(1_000_000),
        retransmits: Some(20),
        busy_us: Some(4_000_000),
        rwnd_limited_us: Some(0),
        sndbuf_limited_us: Some(0),
        snd_wnd_bytes: Some(6_000_000),
        ..TcpStats::default()
    };
    Pass {
        streams,
        goodput_bps: mbit(rate_mbit),
        bytes: ByteSize(bytes),
        elapsed_us: Elapsed(4_000_000),
        bins: Bins { interval_us: Elapsed(100_000), bytes: vec![bytes / 40; 40] },
        steady: Some(Steady { first_bin: 2, bins: 38, spread: 0.01 }),
        stream_bytes: vec![ByteSize(bytes / u64::from(streams)); streams as usize],
        sender: Outcome::Measured(vec![stats; streams as usize]),
        cpu_pc: Outcome::Measured(cpu_window(0.4)),
        cpu_nas: Outcome::Measured(cpu_window(0.4)),
        loaded_rtt: Outcome::Measured(rtt(900)),
        counters_pc: Outcome::Measured(BTreeMap::new()),
        counters_nas: Outcome::Measured(BTreeMap::new()),
        ..Pass::blank(streams)
    }
}

pub(super) fn cpu_window(busiest: f64) -> CpuWindow {
    let core = |busy: f64| CoreShare {
        user: busy * 0.1,
        system: busy * 0.4,
        softirq: busy * 0.5,
        idle: 1.0 - busy,
        ..CoreShare::default()
    };
    CpuWindow {
        elapsed_us: Elapsed(4_000_000),
        cores: vec![core(busiest), core(0.2), core(0.1), core(0.1)],
        peak_busy: busiest,
        processes: vec![ProcessShare { name: "weaklink".into(), ours: true, cores: 0.4, busiest_thread: 0.3 }],
        throttled: Outcome::Measured(0.0),
        run_delay: Outcome::Measured(0.01),
        pressure: Outcome::skipped("not told"),
        network: Outcome::skipped("not told"),
    }
}

pub(super) fn process(name: &str, share: f64) -> ProcessShare {
    ProcessShare { name: name.into(), ours: false, cores: share, busiest_thread: share.min(1.0) }
}

fn host_cpu() -> HostCpu {
    let cipher = |name: &str, mb: u64| CipherCeiling { cipher: name.into(), rate: Outcome::Measured(ByteRate(mb * 1_000_000)) };
    HostCpu {
        aes_instructions: Outcome::Measured(true),
        ciphers: vec![cipher("aes128-gcm", 3_000), cipher("chacha20-poly1305", 900)],
        idle: Outcome::Measured(cpu_window(0.05)),
    }
}

pub(super) fn transfer(mb: u64) -> Transfer {
    Transfer {
        bytes: ByteSize(mb * 4_000_000),
        elapsed_us: Elapsed(4_000_000),
        sustained_bytes_per_s: ByteRate(mb * 1_000_000),
        burst: None,
        bins: Bins::default(),
        method: "O_DIRECT".into(),
        device_bytes: Outcome::Measured(ByteSize(mb * 4_000_000)),
        device_busy: Outcome::Measured(0.97),
        cpu: Outcome::Measured(cpu_window(0.3)),
    }
}

pub(super) fn disk(mb: u64) -> DiskResult {
    DiskResult {
        device: Outcome::Measured(Device {
            filesystem: "ext4".into(),
            kind: DeviceKind::Local,
            options: vec![],
            block: Some("sda".into()),
            disks: vec![Disk { name: "sda".into(), model: None, rotational: Some(true), attached: None }],
            layers: vec![],
            raid: None,
            free_bytes: Outcome::Measured(ByteSize(500_000_000_000)),
            total_bytes: Outcome::Measured(ByteSize(1_000_000_000_000)),
        }),
        write: Outcome::Measured(transfer(mb)),
        read: Outcome::Measured(transfer(mb)),
    }
}

/// The hands.
pub(super) trait Bend {
    fn link(&mut self, role: Role) -> &mut HostLink;
    fn port(&mut self, role: Role) -> &mut Interface;
    fn tcp(&mut self) -> &mut ThroughputSection;
    fn passes(&mut self, direction: Direction, change: impl Fn(&mut Pass));
    fn both(&mut self, change: impl Fn(&mut Pass));
    fn rate(&mut self, direction: Direction, rate_mbit: u64);
    fn stats(&mut self, direction: Direction, change: impl Fn(&mut TcpStats));
    fn disk(&mut self, role: Role) -> &mut DiskResult;
    fn device(&mut self, role: Role) -> &mut Device;
    fn mtu(&mut self, role: Role, mtu: u32);
    fn lane(&mut self, kind: LaneKind, protocol: &str, facts: &[(&str, &str)]) -> &mut Lane;
    fn modes(&mut self, role: Role, supported: &[u64], advertised: &[u64], partner: &[u64]);
    fn no_disks(&mut self);
    fn no_links(&mut self);
}

impl Bend for Document {
    fn link(&mut self, role: Role) -> &mut HostLink {
        let links = self.measurements.link.measured_mut().expect("links");
        let link = if role == Role::Pc { &mut links.pc } else { &mut links.nas };
        link.measured_mut().expect("link")
    }

    fn port(&mut self, role: Role) -> &mut Interface {
        self.link(role).stack.last_mut().expect("port")
    }

    fn tcp(&mut self) -> &mut ThroughputSection {
        self.measurements.throughput.measured_mut().expect("throughput")
    }

    fn passes(&mut self, direction: Direction, change: impl Fn(&mut Pass)) {
        let tcp = self.tcp();
        let way = if direction == Direction::Upload { &mut tcp.upload } else { &mut tcp.download };
        for pass in [&mut way.single, &mut way.multi] {
            pass.measured_mut().into_iter().for_each(&change);
        }
    }

    fn both(&mut self, change: impl Fn(&mut Pass)) {
        self.passes(Direction::Upload, &change);
        self.passes(Direction::Download, &change);
    }

    fn rate(&mut self, direction: Direction, rate_mbit: u64) {
        self.passes(direction, |pass| pass.goodput_bps = mbit(rate_mbit));
    }

    fn stats(&mut self, direction: Direction, change: impl Fn(&mut TcpStats)) {
        self.passes(direction, |pass| pass.sender.measured_mut().expect("stats").iter_mut().for_each(&change));
    }

    fn disk(&mut self, role: Role) -> &mut DiskResult {
        let storage = self.measurements.storage.measured_mut().expect("storage");
        let disk = if role == Role::Pc { &mut storage.pc } else { &mut storage.nas };
        disk.measured_mut().expect("disk")
    }

    fn device(&mut self, role: Role) -> &mut Device {
        self.disk(role).device.measured_mut().expect("device")
    }

    fn mtu(&mut self, role: Role, mtu: u32) {
        self.port(role).mtu = fact(Mtu(mtu));
    }

    fn lane(&mut self, kind: LaneKind, protocol: &str, facts: &[(&str, &str)]) -> &mut Lane {
        if self.measurements.copy.measured().is_none() {
            self.measurements.copy = Outcome::Measured(CopySection::default());
        }
        let facts =
            facts.iter().map(|(name, value)| LaneFact { name: (*name).into(), value: (*value).into(), source: Source::Program });
        let lane = Lane { kind, protocol: Outcome::Measured(protocol.into()), facts: facts.collect(), rungs: vec![] };
        let lanes = &mut self.measurements.copy.measured_mut().expect("copy").lanes;
        lanes.push(lane);
        lanes.last_mut().expect("lane")
    }

    fn modes(&mut self, role: Role, supported: &[u64], advertised: &[u64], partner: &[u64]) {
        let rates = |list: &[u64]| list.iter().map(|m| mbit(*m)).collect();
        self.port(role).modes = Outcome::Measured(LinkModes {
            supported_bps: rates(supported),
            advertised_bps: rates(advertised),
            partner_bps: rates(partner),
        });
    }

    fn no_disks(&mut self) {
        self.measurements.storage = Outcome::skipped("no directory was named");
    }

    fn no_links(&mut self) {
        for role in [Role::Pc, Role::Nas] {
            self.port(role).kind = InterfaceKind::Veth;
            self.port(role).speed_bps = fact(mbit(10_000));
            self.port(role).modes = Outcome::skipped("a veth has none");
        }
    }
}

pub(super) fn rung(direction: Direction, (from, to): (Place, Place), files: FileSet, mb: f64) -> Rung {
    let rate = ByteRate((mb * 1e6) as u64);
    Rung {
        direction,
        from,
        to,
        files,
        result: Outcome::Measured(Copied {
            files: if files == FileSet::Small { 1000 } else { 1 },
            bytes: ByteSize(rate.0 * 4),
            elapsed_us: Elapsed(4_000_000),
            bytes_per_s: rate,
            bins: Bins::default(),
            per_file_us: (files == FileSet::Small).then_some(Elapsed(4_000)),
            verified_bytes: Outcome::skipped("not asked"),
            cpu_pc: Outcome::Measured(cpu_window(0.3)),
            cpu_nas: Outcome::Measured(cpu_window(0.3)),
        }),
        counters: None,
    }
}

/// A large copy from memory to memory.
pub(super) fn plain(direction: Direction, mb: f64) -> Rung {
    rung(direction, (Place::Memory, Place::Memory), FileSet::Large, mb)
}

/// A rung during which a process used this share of a core at one end.
pub(super) fn burning(mut rung: Rung, role: Role, name: &str, share: f64) -> Rung {
    let copied = rung.result.measured_mut().expect("copied");
    let cpu = if role == Role::Pc { &mut copied.cpu_pc } else { &mut copied.cpu_nas };
    cpu.measured_mut().expect("cpu").processes.push(process(name, share));
    rung
}

/// Puts a bond of ports with these speeds at one end.
pub(super) fn bonded(doc: &mut Document, role: Role, mode: &str, policy: Option<&str>, speeds: &[u64]) -> &'static str {
    let mut top = interface("bond0", InterfaceKind::Bond, speeds.iter().sum());
    let port = |(at, speed): (usize, &u64)| BondPort {
        name: format!("eth{at}"),
        speed_bps: Some(mbit(*speed)),
        up: Some(true),
        aggregator: Some(1),
        ..BondPort::default()
    };
    top.bond = Some(Bond {
        mode: mode.into(),
        hash_policy: policy.map(Into::into),
        ports: speeds.iter().enumerate().map(port).collect(),
        partner_mac: Some("02:00:00:00:00:01".into()),
        ..Bond::default()
    });
    let mut stack = vec![top];
    stack.extend(speeds.iter().enumerate().map(|(at, speed)| interface(&format!("eth{at}"), InterfaceKind::Physical, *speed)));
    doc.link(role).stack = stack;
    "bond0"
}

pub(super) fn bond(doc: &mut Document, role: Role) -> &mut Bond {
    doc.link(role).stack.iter_mut().find_map(|i| i.bond.as_mut()).expect("bond")
}

pub(super) fn bus(kind: &str, rate_mbit: u64, max_mbit: u64, text: &str) -> Outcome<Bus> {
    let rate = |m| Some(Fact::new(mbit(m), Source::Sysfs));
    Outcome::Measured(Bus {
        kind: kind.into(),
        rate_bps: rate(rate_mbit),
        max_rate_bps: rate(max_mbit),
        description: text.into(),
        way: Vec::new(),
    })
}

pub(super) fn grown(name: &str, count: u64) -> Outcome<BTreeMap<String, Counters>> {
    let counters = Counters(BTreeMap::from([(name.to_owned(), count)]));
    Outcome::Measured(BTreeMap::from([("eth0".to_owned(), counters)]))
}

/// A document of `weaklink mtu`: only links, hosts and packet sizes; both ends use this MTU and the path carries it.
pub(super) fn mtu_only(line_mbit: u64, mtu: u32) -> Document {
    let mut doc = healthy(line_mbit);
    doc.plan.scope = Scope::Mtu;
    for role in [Role::Pc, Role::Nas] {
        doc.mtu(role, mtu);
    }
    let section = doc.measurements.mtu.measured_mut().expect("mtu");
    section.upload = Outcome::Measured(path(mtu, Limiter::LocalInterface));
    section.download = Outcome::Measured(path(mtu, Limiter::LocalInterface));
    let reason = "`weaklink mtu` looks at the path MTU only";
    let m = &mut doc.measurements;
    m.throughput = Outcome::skipped(reason);
    m.cpu = Outcome::skipped(reason);
    m.storage = Outcome::skipped(reason);
    m.copy = Outcome::skipped(reason);
    doc
}

/// The same as far as the PC alone can know it: echo up to this size, nothing else yet.
pub(super) fn mtu_alone(mtu: u32, echo: PathMtu) -> Document {
    let mut doc = mtu_only(2_500, mtu);
    doc.plan.scope = Scope::MtuWithoutAgent;
    let reason = "no agent runs on the NAS";
    doc.hosts.nas = Outcome::skipped(reason);
    doc.measurements.link.measured_mut().expect("links").nas = Outcome::skipped(reason);
    let section = doc.measurements.mtu.measured_mut().expect("mtu");
    section.upload = Outcome::skipped(reason);
    section.download = Outcome::skipped(reason);
    section.echo = Outcome::Measured(EchoPath { method: EchoMethod::PingSocket, path: echo, reply_fragment: None });
    section.services = Outcome::Measured(Vec::new());
    doc
}

/// A path whose interface would let `ceiling` out.
pub(super) fn short_path(mtu: u32, ceiling: u32, limited_by: Limiter) -> PathMtu {
    PathMtu { ceiling: Mtu(ceiling), ..path(mtu, limited_by) }
}

/// A service that asks for segments in packets of `asks`, and what became of a full one.
pub(super) fn service(port: u16, asks: u32, acknowledged: bool) -> ServiceProbe {
    let mss = asks - 40;
    let end = TcpEnd { advertised_mss_bytes: mss, send_mss_bytes: mss - 12, pmtu: Some(Mtu(asks)), option_bytes: 12 };
    ServiceProbe {
        port,
        service: (port == 445).then(|| "SMB".to_owned()),
        result: Outcome::Measured(ServicePath {
            end,
            pmtu_after: Some(Mtu(asks)),
            packet: Some(Mtu(asks)),
            acknowledged,
            retransmits: if acknowledged { 0 } else { 3 },
            elapsed_us: Elapsed(2_000_000),
        }),
    }
}

/// PC and NAS change places, and with them upload and download.
pub(super) fn mirrored(doc: &Document) -> Document {
    let mut doc = doc.clone();
    std::mem::swap(&mut doc.hosts.pc, &mut doc.hosts.nas);
    std::mem::swap(&mut doc.plan.stated_pc_bps, &mut doc.plan.stated_nas_bps);
    let m = &mut doc.measurements;
    if let Some(link) = m.link.measured_mut() {
        std::mem::swap(&mut link.pc, &mut link.nas);
    }
    if let Some(mtu) = m.mtu.measured_mut() {
        std::mem::swap(&mut mtu.upload, &mut mtu.download);
        std::mem::swap(&mut mtu.counters_pc, &mut mtu.counters_nas);
        for stream in [&mut mtu.unclamped, &mut mtu.clamped].into_iter().filter_map(|stream| stream.measured_mut()) {
            stream.direction = back(stream.direction);
        }
        if let Some(handshake) = mtu.handshake.measured_mut() {
            std::mem::swap(&mut handshake.pc, &mut handshake.nas);
        }
        for gain in mtu.gain.measured_mut().into_iter().flatten() {
            gain.direction = back(gain.direction);
        }
    }
    if let Some(plan) = &mut doc.plan.throughput {
        plan.ways = match plan.ways {
            Ways::Upload => Ways::Download,
            Ways::Download => Ways::Upload,
            other => other,
        };
    }
    if let Some(tcp) = m.throughput.measured_mut() {
        std::mem::swap(&mut tcp.upload, &mut tcp.download);
        if let Some(both) = tcp.both.measured_mut() {
            std::mem::swap(&mut both.upload, &mut both.download);
            for pass in [both.upload.measured_mut(), both.download.measured_mut()].into_iter().flatten() {
                std::mem::swap(&mut pass.cpu_pc, &mut pass.cpu_nas);
            }
        }
        if let Some(udp) = tcp.udp.measured_mut() {
            std::mem::swap(&mut udp.upload, &mut udp.download);
            let ways = [udp.upload.measured_mut(), udp.download.measured_mut()];
            for pass in ways.into_iter().flatten().flat_map(|way| &mut way.passes) {
                std::mem::swap(&mut pass.cpu_pc, &mut pass.cpu_nas);
            }
        }
        for trial in tcp.congestion.measured_mut().into_iter().flatten() {
            trial.direction = back(trial.direction);
        }
        for way in [&mut tcp.upload, &mut tcp.download] {
            for pass in [way.single.measured_mut(), way.multi.measured_mut()].into_iter().flatten() {
                std::mem::swap(&mut pass.cpu_pc, &mut pass.cpu_nas);
                std::mem::swap(&mut pass.counters_pc, &mut pass.counters_nas);
            }
        }
    }
    if let Some(cpu) = m.cpu.measured_mut() {
        std::mem::swap(&mut cpu.pc, &mut cpu.nas);
    }
    if let Some(storage) = m.storage.measured_mut() {
        std::mem::swap(&mut storage.pc, &mut storage.nas);
        if let Some(counted) = &mut storage.counters {
            std::mem::swap(&mut counted.pc, &mut counted.nas);
        }
    }
    for rung in m.copy.measured_mut().into_iter().flat_map(|copy| &mut copy.lanes).flat_map(|lane| &mut lane.rungs) {
        rung.direction = back(rung.direction);
        if let Some(counted) = &mut rung.counters {
            std::mem::swap(&mut counted.pc, &mut counted.nas);
        }
        if let Some(copied) = rung.result.measured_mut() {
            std::mem::swap(&mut copied.cpu_pc, &mut copied.cpu_nas);
        }
    }
    doc
}

pub(super) fn back(direction: Direction) -> Direction {
    if direction == Direction::Upload { Direction::Download } else { Direction::Upload }
}

/// Raw rates alone, with an agent at the NAS.
pub(super) fn rates_only(line_mbit: u64) -> Document {
    let mut doc = healthy(line_mbit);
    doc.plan.scope = Scope::Throughput;
    doc.plan.throughput = Some(ThroughputPlan::default());
    doc.measurements.cpu = Outcome::skipped("the network only");
    doc.measurements.storage = Outcome::skipped("the network only");
    doc
}

/// The same against an iperf3 server, which tells its totals only.
pub(super) fn iperf3_only(line_mbit: u64) -> Document {
    let mut doc = rates_only(line_mbit);
    doc.plan.scope = Scope::ThroughputIperf3;
    doc.hosts.nas = Outcome::skipped("not told");
    doc.measurements.link.measured_mut().into_iter().for_each(|links| links.nas = Outcome::skipped("not told"));
    doc.measurements.mtu = Outcome::skipped("not told");
    doc.both(|pass| {
        pass.cpu_nas = Outcome::skipped("not told");
        pass.counters_nas = Outcome::skipped("not told");
        pass.loaded_rtt = Outcome::skipped("not told");
    });
    doc.tcp().idle_rtt = Outcome::skipped("not told");
    doc.tcp().far_end = FarEnd::Iperf3Server;
    doc
}

/// Nothing but datagrams: none is lost up to the line's rate, or up to `loss_from` in the upload.
pub(super) fn datagrams_only(line_mbit: u64, loss_from: Option<u64>) -> Document {
    let mut doc = rates_only(line_mbit);
    let most = (line_mbit as f64 * 0.955) as u64;
    let way = |from: Option<u64>| {
        let rates = [most / 10, most / 2, most * 7 / 10, most];
        let lost = |rate: u64| from.map_or(0, |from| if rate >= from { 3_000 } else { 0 });
        let passes: Vec<UdpPass> = rates.into_iter().map(|rate| datagrams(rate, lost(rate))).collect();
        let clean = passes.iter().filter(|pass| pass.lost == 0).map(|pass| pass.asked_bps).max();
        Outcome::Measured(UdpDirection {
            datagram_bytes: 1472,
            send: "sendmmsg".into(),
            receive: "recvmmsg".into(),
            loss_from_bps: passes.iter().find(|pass| pass.lost > 0).map(|pass| pass.asked_bps),
            clean_bps: clean,
            ended_because: "that is the line's rate".into(),
            passes,
        })
    };
    doc.tcp().udp = Outcome::Measured(UdpSection { upload: way(loss_from), download: way(None) });
    doc.tcp().upload = DirectionThroughput::skipped("--udp was asked for");
    doc.tcp().download = DirectionThroughput::skipped("--udp was asked for");
    doc
}

/// Datagrams at one rate, so many of a hundred thousand lost on the way.
pub(super) fn datagrams(rate_mbit: u64, lost: u64) -> UdpPass {
    let (rate, us) = (mbit(rate_mbit), Elapsed(100));
    UdpPass {
        asked_bps: rate,
        sent_bps: rate,
        received_bps: rate.scale(1.0 - lost as f64 / 100_000.0),
        sent: 100_000,
        refused: 0,
        received: 100_000 - lost,
        lost,
        dropped_by_receiver: Outcome::Measured(0),
        duplicates: 0,
        reordered: 0,
        longest_loss: lost.min(40),
        jitter_us: us,
        queue_median_us: us,
        queue_p99_us: us,
        elapsed_us: Elapsed(1_000_000),
        bins: Bins::default(),
        cpu_pc: Outcome::Measured(cpu_window(0.4)),
        cpu_nas: Outcome::Measured(cpu_window(0.4)),
        counters_pc: Outcome::skipped("not told"),
        counters_nas: Outcome::skipped("not told"),
    }
}

/// PCs that each get the first rate alone and the second at the same moment, in both directions.
pub(super) fn group(rates: &[(u64, u64)]) -> Outcome<Together> {
    let both = |rate: u64| BothRates { upload_bps: Some(mbit(rate)), download_bps: Some(mbit(rate)) };
    let member = |(at, (alone, together)): (usize, &(u64, u64))| Member {
        address: format!("192.0.2.{}", at + 10),
        alone: both(*alone),
        together: both(*together),
    };
    Outcome::Measured(Together {
        name: "lab".into(),
        own: 0,
        ended: None,
        members: rates.iter().enumerate().map(member).collect(),
    })
}
