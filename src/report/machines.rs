//! The hosts with their processors, their disks, and the copies between them.

use super::ladder::end;
use super::network::source_word;
use super::rates;
use super::view::{Table, Tone, View, or_unknown, percent};
use crate::model::copy::{Copied, FileSet, Lane, Rung};
use crate::model::cpu::{CpuWindow, HostCpu, NetworkInterrupts, most_on};
use crate::model::host::{Host, TcpSettings};
use crate::model::plan::Scope;
use crate::model::storage::{Device, DeviceKind, Disk, Transfer};
use crate::model::{Direction, Document, Outcome, Role, Source};
use crate::units::{ByteRate, ByteSize, Elapsed};

/// Both ends, upload's sender first.
pub(super) const ENDS: [Role; 2] = [Role::Pc, Role::Nas];

/// The share of the time from which on it is told that something kept the work from a core.
const HELD_UP: f64 = 0.05;

/// A cell: the value, or a sign that there is none; the reason stands under “Not measured”.
pub(super) fn cell<T>(outcome: &Outcome<T>, show: impl FnOnce(&T) -> String) -> String {
    match outcome {
        Outcome::Measured(value) => show(value),
        Outcome::Skipped(_) => "skipped".to_owned(),
        Outcome::Failed(_) => "failed".to_owned(),
    }
}

/// Who the two hosts are.
pub(super) fn hosts(document: &Document, view: &mut View) {
    let hosts: Vec<_> = ENDS.iter().filter_map(|&role| document.hosts.of(role).measured().map(|host| (role, host))).collect();
    if hosts.is_empty() {
        return;
    }
    view.section("Hosts");
    let mut table = Table::new(&[""]);
    // Where no other end was named, the one host is not the PC of anything.
    let only = document.plan.scope == Scope::LinkOfHost;
    table.header.extend(hosts.iter().map(|(role, _)| if only { "this host" } else { role.title() }.to_owned()));
    let tcp = |host: &Host, show: &dyn Fn(&TcpSettings) -> String| cell(&host.tcp, show);
    let largest = |sizes: Option<[u64; 3]>| or_unknown(sizes.map(|sizes| ByteSize(sizes[2])));
    let mut row = |name: &str, show: &dyn Fn(&Host) -> String| {
        let mut cells = vec![name.to_owned()];
        cells.extend(hosts.iter().map(|(_, host)| show(host)));
        table.rows.push(cells);
    };
    row("weaklink", &|host| host.weaklink.clone());
    row("system", &|host| format!("{} {}", host.os, host.arch));
    row("kernel", &|host| cell(&host.kernel, Clone::clone));
    row("processor", &|host| cell(&host.cpu_model, Clone::clone));
    row("cores", &|host| host.cores.to_string());
    row("memory", &|host| cell(&host.memory_bytes, ToString::to_string));
    row("congestion control", &|host| tcp(host, &|tcp| or_unknown(tcp.congestion_default.clone())));
    row("receive buffer ≤", &|host| tcp(host, &|tcp| largest(tcp.rmem_bytes)));
    row("send buffer ≤", &|host| tcp(host, &|tcp| largest(tcp.wmem_bytes)));
    row("MTU probing", &|host| tcp(host, &|tcp| or_unknown(tcp.mtu_probing)));
    row("window scaling", &|host| tcp(host, &|tcp| or_unknown(tcp.window_scaling.map(|on| if on { "on" } else { "off" }))));
    view.table(table);
}

/// What the disks give without a network.
pub(super) fn storage(document: &Document, view: &mut View) {
    let Some(section) = document.measurements.storage.measured() else { return };
    let disks: Vec<_> = ENDS.iter().filter_map(|&role| section.of(role).measured().map(|disk| (role, disk))).collect();
    if disks.is_empty() {
        return;
    }
    view.section("Storage");
    let mut table = Table::new(&["disk", "sustained", "at first", "busy", "moved", "how"]);
    for (role, disk) in &disks {
        for (way, outcome) in [("write", &disk.write), ("read", &disk.read)] {
            let show = |f: &dyn Fn(&Transfer) -> String| outcome.measured().map(f).unwrap_or_default();
            table.rows.push(vec![
                format!("{} {way}", role.title()),
                cell(outcome, |transfer| transfer.sustained_bytes_per_s.to_string()),
                show(&|transfer| transfer.burst.map_or(String::new(), |b| format!("{} for {}", b.bytes_per_s, b.bytes))),
                show(&|transfer| transfer.device_busy.measured().map(|share| percent(*share)).unwrap_or_default()),
                show(&|transfer| format!("{} in {}", transfer.bytes, transfer.elapsed_us)),
                show(&|transfer| transfer.method.clone()),
            ]);
        }
    }
    view.table(table);
    let devices = disks.iter().filter_map(|(role, disk)| disk.device.measured().map(|device| (*role, device)));
    view.facts(devices.map(|(role, device)| (format!("{} directory", role.title()), describe(device))).collect());
}

fn describe(device: &Device) -> String {
    let mut parts = vec![match device.kind {
        DeviceKind::Local => device.filesystem.clone(),
        DeviceKind::Memory => format!("{} (memory, no disk)", device.filesystem),
        DeviceKind::Network => format!("{} (a network filesystem, no disk of this host)", device.filesystem),
        DeviceKind::Opaque => format!("{} (what lies under it cannot be seen)", device.filesystem),
    }];
    if !device.layers.is_empty() {
        parts.push(format!("on {}", device.layers.join(" on ")));
    }
    if let Some(raid) = &device.raid {
        let missing = if raid.missing > 0 { format!(", {} missing", raid.missing) } else { String::new() };
        let syncing = raid.syncing.as_ref().map(|state| format!(", {state} runs now")).unwrap_or_default();
        parts.push(format!("{} of {}{missing}{syncing}", raid.level, raid.members));
    }
    let disks = device.disks.iter().take(8).map(|disk| {
        let turns = match disk.rotational {
            _ if is_virtual(disk) => Some("virtual"),
            turns => turns.map(|turns| if turns { "HDD" } else { "SSD" }),
        };
        let facts: Vec<_> = [disk.model.as_deref(), turns, disk.attached.as_deref()].into_iter().flatten().collect();
        if facts.is_empty() { disk.name.clone() } else { format!("{} ({})", disk.name, facts.join(", ")) }
    });
    let disks: Vec<_> = disks.collect();
    if !disks.is_empty() {
        parts.push(disks.join(", "));
    }
    if let (Some(free), Some(total)) = (device.free_bytes.measured(), device.total_bytes.measured()) {
        parts.push(format!("{free} of {total} free"));
    }
    if !device.options.is_empty() {
        parts.push(format!("options {}", device.options.iter().take(16).map(String::as_str).collect::<Vec<_>>().join(",")));
    }
    parts.join(" · ")
}

/// Whether a disk is lent by a hypervisor or made of a file: what it says about turning is no evidence.
fn is_virtual(disk: &Disk) -> bool {
    let bus = disk.attached.as_deref().is_some_and(|bus| bus.eq_ignore_ascii_case("virtio"));
    bus || ["vd", "xvd", "loop"].iter().any(|start| disk.name.starts_with(start))
}

/// A rate that is further than this share from what was moved by its time is told to be another.
const SAME_RATE: f64 = 0.01;

/// What the figures of disks and copies are of, where they would seem to contradict each other.
pub(super) fn about_rates(document: &Document, view: &mut View) {
    let differs = |rate: ByteRate, bytes: ByteSize, elapsed: Elapsed| {
        let whole = ByteRate::of(bytes, elapsed.into()).0 as f64;
        (rate.0 as f64 - whole).abs() > whole * SAME_RATE
    };
    let disks = document.measurements.storage.measured().into_iter().flat_map(|section| ENDS.map(|role| section.of(role)));
    let mut transfers =
        disks.filter_map(Outcome::measured).flat_map(|disk| [&disk.write, &disk.read]).filter_map(Outcome::measured);
    let copies = || {
        let lanes = document.measurements.copy.measured().into_iter().flat_map(|section| &section.lanes);
        lanes.flat_map(|lane| &lane.rungs).filter_map(|rung| rung.result.measured())
    };
    let steady = transfers.any(|transfer| differs(transfer.sustained_bytes_per_s, transfer.bytes, transfer.elapsed_us))
        || copies().any(|copied| differs(copied.bytes_per_s, copied.bytes, copied.elapsed_us));
    let partly = copies().any(|copied| copied.verified_bytes.measured().is_some_and(|checked| checked.0 < copied.bytes.0));
    let mut said = Vec::new();
    if steady {
        said.push("Moved and time are of the whole step; a rate that differs from them is that of the step's steady part.");
    }
    if partly {
        said.push("Verified is less than moved where the content was checked only as far as that costs no speed.");
    }
    if !said.is_empty() {
        view.note(Tone::Plain, said.join(" "));
    }
}

/// What the lanes gave.
pub(super) fn copies(document: &Document, view: &mut View) {
    let Some(section) = document.measurements.copy.measured() else { return };
    if section.lanes.is_empty() {
        return;
    }
    view.section("Copies");
    let mut table = Table::new(&["lane", "way", "rate", "moved", "each file", "verified"]);
    for lane in &section.lanes {
        table.rows.extend(lane.rungs.iter().map(|rung| copy_row(document, lane, rung)));
    }
    view.table(table);
    let facts = section.lanes.iter().filter(|lane| !lane.facts.is_empty()).map(|lane| (lane_name(lane), lane_facts(lane)));
    view.facts(facts.collect());
}

/// What was negotiated, by who said so.
fn lane_facts(lane: &Lane) -> String {
    let mut said: Vec<(Source, Vec<String>)> = Vec::new();
    for fact in lane.facts.iter().take(24) {
        let text = format!("{} {}", fact.name, fact.value);
        match said.iter_mut().find(|(known, _)| *known == fact.source) {
            Some((_, texts)) => texts.push(text),
            None => said.push((fact.source, vec![text])),
        }
    }
    let groups = said.iter().map(|(source, texts)| format!("{}: {}", source_word(*source), texts.join(", ")));
    groups.collect::<Vec<_>>().join(" · ")
}

fn lane_name(lane: &Lane) -> String {
    match lane.protocol.measured() {
        Some(protocol) if !protocol.starts_with(lane.kind.word()) => format!("{} ({protocol})", lane.kind.word()),
        Some(protocol) => protocol.clone(),
        None => lane.kind.word().to_owned(),
    }
}

fn copy_row(document: &Document, lane: &Lane, rung: &Rung) -> Vec<String> {
    let show = |f: &dyn Fn(&Copied) -> String| rung.result.measured().map(f).unwrap_or_default();
    let small = if rung.files == FileSet::Small { ", small files" } else { "" };
    let place = |role: Role, place| format!("{} {}", role.title(), end(document, lane, role, place));
    vec![
        lane_name(lane),
        format!("{} → {}{small}", place(rung.direction.sender(), rung.from), place(rung.direction.receiver(), rung.to)),
        cell(&rung.result, |copied| copied.bytes_per_s.to_string()),
        show(&|copied| {
            let plural = if copied.files == 1 { "" } else { "s" };
            format!("{} file{plural}, {} in {}", copied.files, copied.bytes, copied.elapsed_us)
        }),
        show(&|copied| copied.per_file_us.map(|each| each.to_string()).unwrap_or_default()),
        show(&|copied| {
            cell(&copied.verified_bytes, |bytes| if bytes.0 >= copied.bytes.0 { "all".into() } else { bytes.to_string() })
        }),
    ]
}

/// What the processors did during each step, and what they could do.
pub(super) fn cpu(document: &Document, view: &mut View) {
    let mut table = Table::new(&["during", "host", "busiest core", "peak", "held up", "busiest processes"]);
    for (step, role, window) in windows(document) {
        let said = [busiest(window), percent(window.peak_busy), held_up(window), processes(window)];
        // Two ends that did the same thing share a row.
        let same = |row: &&mut Vec<String>| row.first() == Some(&step) && row.get(2..) == Some(said.as_slice());
        if let Some(host) = table.rows.last_mut().filter(same).and_then(|row| row.get_mut(1)) {
            *host = format!("{host}, {}", role.title());
        } else {
            table.rows.push([step, role.title().to_owned()].into_iter().chain(said).collect());
        }
    }
    let ceilings = document.measurements.cpu.measured().map(|section| ENDS.map(|role| section.of(role).measured()));
    let mut ciphers = Table::new(&["cipher, one core", "PC", "NAS"]);
    if let Some(hosts) = &ceilings {
        let mut names: Vec<&str> = Vec::new();
        for ceiling in hosts.iter().flatten().flat_map(|host| host.ciphers.iter().take(32)) {
            if !names.contains(&ceiling.cipher.as_str()) {
                names.push(&ceiling.cipher);
            }
        }
        ciphers.rows.extend(names.iter().map(|name| {
            let rate = |host: Option<&HostCpu>| {
                let found = host.and_then(|host| host.ciphers.iter().find(|ceiling| ceiling.cipher == *name));
                found.map(|ceiling| cell(&ceiling.rate, ToString::to_string)).unwrap_or_default()
            };
            vec![(*name).to_owned(), rate(hosts[0]), rate(hosts[1])]
        }));
    }
    if table.rows.is_empty() && ciphers.rows.is_empty() {
        return;
    }
    view.section("Processors");
    view.table(table);
    view.facts(interrupts(document));
    view.table(ciphers);
    for (role, host) in ENDS.iter().zip(ceilings.iter().flatten()) {
        if let Some(false) = host.and_then(|host| host.aes_instructions.measured().copied()) {
            view.note(Tone::Plain, format!("The {}'s processor has no instructions for AES.", role.title()));
        }
    }
}

/// The busiest core and what kept it busy.
fn busiest(window: &CpuWindow) -> String {
    let Some(core) = window.busiest() else { return String::new() };
    let parts = [("programs", core.user), ("kernel", core.system), ("softirq", core.softirq), ("irq", core.irq)];
    let most = parts.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or("", |(name, _)| name);
    format!("{} {most}", percent(core.busy()))
}

/// What kept the work from a core, from 5 % on: below that it is the ordinary noise of a machine that also does other things.
fn held_up(window: &CpuWindow) -> String {
    let measured = |share: &Outcome<f64>| share.measured().copied().unwrap_or(0.0);
    let core = window.busiest().copied().unwrap_or_default();
    let reasons = [
        ("waited", measured(&window.run_delay)),
        ("throttled", measured(&window.throttled)),
        ("pressure", measured(&window.pressure)),
        ("stolen", core.steal),
        ("iowait", core.iowait),
    ];
    let shown = reasons.iter().filter(|(_, share)| *share >= HELD_UP);
    shown.map(|(name, share)| format!("{name} {}", percent(*share))).collect::<Vec<_>>().join(", ")
}

/// The busiest processes, those of one name together: `weaklink 85 % + 28 %`.
fn processes(window: &CpuWindow) -> String {
    let mut names: Vec<(&str, String)> = Vec::new();
    for process in window.processes.iter().filter(|process| process.cores >= 0.01).take(3) {
        let share = percent(process.cores);
        match names.iter_mut().find(|(known, _)| *known == process.name) {
            Some((_, shares)) => *shares = format!("{shares} + {share}"),
            None => names.push((&process.name, share)),
        }
    }
    names.iter().map(|(name, shares)| format!("{name} {shares}")).collect::<Vec<_>>().join(", ")
}

/// Every window of time in which the processors were watched.
/// Where the network's interrupts landed, for each step and host.
fn interrupts(document: &Document) -> Vec<(String, String)> {
    let share = |share: f64| if share >= 0.995 { "all".to_owned() } else { percent(share) };
    let words = |network: &NetworkInterrupts| {
        let packets = most_on(&network.receive).map(|(core, part)| format!("{} of the packets' on core {core}", share(part)));
        let cards = network.cards.measured().into_iter().flatten().filter_map(|card| {
            let (core, part) = most_on(&card.cores)?;
            Some(format!("{} of {}'s on core {core}", share(part), card.interface))
        });
        packets.into_iter().chain(cards.take(4)).collect::<Vec<_>>().join(", ")
    };
    let host = |role: Role| {
        let all = windows(document).into_iter().filter(move |(step, whose, _)| *whose == role && step.starts_with("TCP"));
        let several = all.filter(|(_, _, window)| window.cores.len() > 1);
        let told = several.filter_map(|(step, _, window)| Some((step, words(window.network.measured()?))));
        rates::once(&format!("{} interrupts", role.title()), told)
    };
    ENDS.into_iter().flat_map(host).collect()
}

fn windows(document: &Document) -> Vec<(String, Role, &CpuWindow)> {
    let measured = &document.measurements;
    let mut found: Vec<(String, Role, &Outcome<CpuWindow>)> = Vec::new();
    for role in ENDS {
        if let Some(host) = measured.cpu.measured().and_then(|section| section.of(role).measured()) {
            found.push(("idle".to_owned(), role, &host.idle));
        }
    }
    for (name, _, pass) in measured.throughput.measured().map(rates::passes).unwrap_or_default() {
        found.push((format!("TCP {name}"), Role::Pc, &pass.cpu_pc));
        found.push((format!("TCP {name}"), Role::Nas, &pass.cpu_nas));
    }
    for role in ENDS {
        let Some(disk) = measured.storage.measured().and_then(|section| section.of(role).measured()) else { continue };
        for (way, transfer) in [("write", &disk.write), ("read", &disk.read)] {
            found.extend(transfer.measured().map(|transfer| (format!("disk {way}"), role, &transfer.cpu)));
        }
    }
    for lane in measured.copy.measured().iter().flat_map(|section| &section.lanes) {
        for (rung, copied) in Direction::BOTH.into_iter().flat_map(|direction| lane.measured(direction)) {
            let small = if rung.files == FileSet::Small { ", small" } else { "" };
            let step = format!("{} {}{small}", lane.kind.word(), rung.direction.arrow());
            found.push((step.clone(), Role::Pc, &copied.cpu_pc));
            found.push((step, Role::Nas, &copied.cpu_nas));
        }
    }
    found.into_iter().filter_map(|(step, role, window)| window.measured().map(|window| (step, role, window))).collect()
}
