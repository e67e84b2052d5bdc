//! The links alone: what a port can do, what it negotiated, what else its driver tells, and the way of its bus.

use super::link_screen::says_first;
use super::machines::{ENDS, cell};
use super::network::{is_odd, kind, source_word};
use super::rates;
use super::view::{Table, Tone, View};
use crate::model::flows::FlowSpread;
use crate::model::link::{CountersByInterface, HostAddress, HostLink, Interface, LinkSection, Watched};
use crate::model::nic::{Channels, Coalescing, Eee, Fec, Mdi, Module, Nic, Pause, PortKind, QueueInterrupts, Rings};
use crate::model::outcome::{Fact, Outcome};
use crate::model::plan::Scope;
use crate::model::{Document, Role};
use crate::units::ByteSize;

/// The most queues whose interrupts are told one by one.
const MOST_QUEUES: usize = 16;

/// Whose interface: `PC eth0`; the bare name where all belong to one host.
pub(super) fn named(document: &Document, role: Role, name: &str) -> String {
    if document.plan.scope == Scope::LinkOfHost { name.to_owned() } else { format!("{} {name}", role.title()) }
}

/// The ends of which something is known.
pub(super) fn ends(document: &Document) -> Vec<(Role, &HostLink)> {
    let section = document.measurements.link.measured();
    let ends = section.into_iter().flat_map(|section| ENDS.iter().map(move |&role| (role, section.of(role))));
    ends.filter_map(|(role, link)| link.measured().map(|link| (role, link))).collect()
}

/// What else the ports tell, each with who said it.
pub(super) fn ports(document: &Document, view: &mut View) {
    for (role, link) in ends(document) {
        for interface in &link.stack {
            let Some(nic) = interface.nic.measured() else { continue };
            let mut facts = nic_facts(nic, interface.carrier.measured() == Some(&true));
            // The driver of an aggregation names the version of its own interface there.
            facts.retain(|(name, _)| name != "firmware" || interface.bond.is_none());
            facts.extend(bus_facts(interface));
            if facts.is_empty() {
                continue;
            }
            view.section(&format!("Port {}", named(document, role, &interface.name)));
            view.facts(facts);
        }
    }
}

fn bus_facts(interface: &Interface) -> Vec<(String, String)> {
    let way = interface.bus.measured().map(|bus| bus.way.as_slice()).unwrap_or_default();
    let parts = way.iter().take(MOST_QUEUES).map(|part| {
        let most = match (part.rate_bps, part.max_rate_bps) {
            (Some(now), Some(most)) if most > now => format!(" (it could do {most})"),
            _ => String::new(),
        };
        let rate = part.rate_bps.map(|rate| format!(" = {rate}")).unwrap_or_default();
        let aspm = part.aspm.as_ref().map(|aspm| format!(", power saving {aspm}")).unwrap_or_default();
        (format!("bus at {}", part.place), format!("{}{rate}{most}{aspm}", part.now))
    });
    parts.collect()
}

fn nic_facts(nic: &Nic, linked: bool) -> Vec<(String, String)> {
    let facts = [
        (
            "link modes",
            told(&nic.mode_names, |names| {
                let list = |names: &[String]| if names.is_empty() { "?".to_owned() } else { names.join(" ") };
                format!(
                    "can {} · offers {} · is offered {}",
                    list(&names.supported),
                    list(&names.advertised),
                    list(&names.partner)
                )
            }),
        ),
        ("modes left out", nic.modes_doubt.clone()),
        ("connector", told(&nic.port, |port| port_word(*port).to_owned())),
        ("pairs", told(&nic.mdi, |mdi| if *mdi == Mdi::Crossed { "crossed (MDI-X)" } else { "straight (MDI)" }.to_owned())),
        ("no link because", told(&nic.no_link_because, Clone::clone).filter(|_| !linked)),
        ("stepped down", told(&nic.downshift, Clone::clone)),
        ("flow control", told(&nic.pause, |set| pause(*set))),
        ("energy saving", told(&nic.eee, eee)),
        ("error correction", told(&nic.fec, fec)),
        ("module", told(&nic.module, module)),
        ("rings", told(&nic.rings, rings)),
        ("queues", told(&nic.channels, channels)),
        ("transmit queues", told(&nic.tx_queues, ToString::to_string)),
        ("flows spread over", told(&nic.rss_queues, |queues| format!("{queues} receive queues (RSS)"))),
        ("interrupts", told(&nic.interrupts, |lines| interrupts(lines))),
        ("coalescing", told(&nic.coalescing, coalescing)),
        ("driver version", told(&nic.driver_version, Clone::clone)),
        ("firmware", told(&nic.firmware, Clone::clone)),
        ("bus address", told(&nic.bus_address, Clone::clone)),
        ("address", told(&nic.mac, Clone::clone)),
    ];
    facts.into_iter().filter_map(|(name, text)| text.map(|text| (name.to_owned(), text))).collect()
}

/// A fact in words, and who said it.
fn told<T>(fact: &Outcome<Fact<T>>, words: impl FnOnce(&T) -> String) -> Option<String> {
    let fact = fact.measured()?;
    let words = words(&fact.value);
    (!words.is_empty()).then(|| format!("{words} [{}]", source_word(fact.source)))
}

const fn port_word(port: PortKind) -> &'static str {
    match port {
        PortKind::TwistedPair => "twisted pair (RJ45)",
        PortKind::Coaxial => "coaxial",
        PortKind::Mii => "MII",
        PortKind::Fibre => "fibre, or a cage",
        PortKind::DirectAttach => "direct-attach copper",
        PortKind::None => "none",
        PortKind::Other => "another",
    }
}

const fn on(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn pause(pause: Pause) -> String {
    let set = format!("set: obeys {}, sends {}", on(pause.rx), on(pause.tx));
    let effect = match (pause.rx_in_effect, pause.tx_in_effect) {
        (Some(rx), Some(tx)) => format!(" · in effect: obeys {}, sends {}", on(rx), on(tx)),
        _ => " · what is in effect is not known".to_owned(),
    };
    format!("{set}{}{effect}", if pause.autoneg { ", negotiated" } else { ", fixed" })
}

fn eee(eee: &Eee) -> String {
    let timer = eee.tx_timer_us.map(|us| format!(", sends sleep after {us} µs")).unwrap_or_default();
    format!("set {}, in effect {}{timer}", on(eee.enabled), on(eee.active))
}

fn fec(fec: &Fec) -> String {
    let active = fec.active.as_ref().map(|active| format!("{active} in effect, ")).unwrap_or_default();
    format!("{active}set: {}", fec.configured.join(" "))
}

fn module(module: &Module) -> String {
    let parts = [
        Some(module.kind.clone()),
        module.vendor.clone(),
        module.part.clone(),
        module.connector.as_ref().map(|plug| format!("plug {plug}")),
        (!module.complies.is_empty()).then(|| module.complies.join(", ")),
        module.rate_bps.map(|rate| rate.to_string()),
        module.cable_m.map(|metres| format!("{metres} m")),
        module.hides_copper_rate.then(|| "hides the speed of its copper side".to_owned()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

fn rings(rings: &Rings) -> String {
    let one = |now: u32, most: u32| if most > 0 { format!("{now} of {most}") } else { now.to_string() };
    format!("receive {} packets, send {}", one(rings.rx, rings.rx_max), one(rings.tx, rings.tx_max))
}

fn channels(channels: &Channels) -> String {
    let one = |word: &str, now: u32, most: u32| (most > 0).then(|| format!("{now} of {most} {word}"));
    let parts = [
        one("for both ways", channels.combined, channels.combined_max),
        one("for receiving", channels.rx, channels.rx_max),
        one("for sending", channels.tx, channels.tx_max),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// How the interrupts of all lines spread over the cores, and which lines had any.
fn interrupts(lines: &[QueueInterrupts]) -> String {
    let busy = lines.iter().filter(|line| line.by_core.values().any(|count| *count > 0)).count();
    let mut cores: std::collections::BTreeMap<u32, u64> = std::collections::BTreeMap::new();
    for (core, count) in lines.iter().flat_map(|line| &line.by_core) {
        let sum = cores.entry(*core).or_default();
        *sum = sum.saturating_add(*count);
    }
    let shown = cores.iter().filter(|(_, count)| **count > 0).take(MOST_QUEUES);
    let spread = shown.map(|(core, count)| format!("core {core}: {count}")).collect::<Vec<_>>().join(", ");
    format!("{busy} of {} lines had any; {spread}", lines.len())
}

fn coalescing(set: &Coalescing) -> String {
    let count = |value: Option<u32>, word: &str| value.filter(|value| *value > 0).map(|value| format!("{value} {word}"));
    let adaptive = |on: Option<bool>, word: &str| on.filter(|on| *on).map(|_| format!("{word} adapts"));
    let parts = [
        count(set.rx_us, "µs receiving"),
        count(set.rx_frames, "frames receiving"),
        count(set.tx_us, "µs sending"),
        count(set.tx_frames, "frames sending"),
        adaptive(set.adaptive_rx, "receiving"),
        adaptive(set.adaptive_tx, "sending"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Which port of an aggregation each connection took: foretold from the kernel's hash, and what the ports sent.
pub(super) fn spreads(document: &Document, view: &mut View) {
    let mut facts = Vec::new();
    let mut table = Table::new(&["connection", "from", "to", "port"]);
    for (role, link) in ends(document) {
        let Some(spread) = link.flows.measured() else { continue };
        let name = named(document, role, &spread.interface);
        let all = match (spread.flows_for_all, spread.ports.len()) {
            // The first screen says so.
            (_, 0 | 1) => String::new(),
            (Some(flows), ports) => format!(": {flows} connections reach all {ports} ports nine times out of ten"),
            (None, ports) => format!(": {} of {ports} ports can be reached", spread.reachable_ports),
        };
        facts.push((name.clone(), format!("{} over {}{all}", spread.policy, spread.ports.join(", "))));
        let screen = document.plan.scope.is_link() && on_first_screen(link, spread);
        let first = if screen { says_first(spread).len() } else { 0 };
        facts.extend(spread.says.iter().skip(first).map(|text| (name.clone(), text.clone())));
        table.rows.extend(spread.flows.iter().map(|flow| {
            vec![
                format!("{} {}", role.title(), flow.what),
                flow.local.to_string(),
                flow.remote.to_string(),
                cell(&flow.port, Clone::clone),
            ]
        }));
    }
    let checks = measured_spreads(document);
    if facts.is_empty() && checks.rows.is_empty() {
        return;
    }
    view.section("Spread over the aggregation");
    view.facts(facts);
    view.table(checks);
    view.table(table);
}

/// Whether the first screen has a line about this aggregation, which tells the first thing that there is to say.
fn on_first_screen(link: &HostLink, spread: &FlowSpread) -> bool {
    link.stack.iter().any(|interface| interface.bond.is_some() && interface.name == spread.interface)
}

/// What each port sent in each pass, beside what was foretold.
fn measured_spreads(document: &Document) -> Table {
    let mut table = Table::new(&["during", "port", "sent", "foretold", "agrees"]);
    let Some(section) = document.measurements.throughput.measured() else { return table };
    for (name, direction, pass) in rates::passes(section) {
        let Some(check) = pass.flows.measured() else { continue };
        let agrees = cell(&check.agrees, |agrees| if *agrees { "yes" } else { "no" }.to_owned());
        table.rows.extend(check.sent.iter().map(|port| {
            let place = named(document, direction.sender(), &port.port);
            vec![name.clone(), place, ByteSize(port.bytes).to_string(), ByteSize(port.predicted).to_string(), agrees.clone()]
        }));
    }
    table
}

/// All addresses of both ends, and what the counters did while they were only watched.
pub(super) fn addresses(document: &Document, view: &mut View) {
    let mut table = Table::new(&["interface", "address", "kind", "speed", "link"]);
    for (role, link) in ends(document) {
        for address in link.addresses.measured().into_iter().flatten() {
            table.rows.push(address_row(&named(document, role, &address.interface), address));
        }
    }
    if !table.rows.is_empty() {
        view.section("Addresses");
        view.table(table);
    }
    if let Some(section) = document.measurements.link.measured() {
        watched(document, section, view);
    }
}

fn address_row(name: &str, address: &HostAddress) -> Vec<String> {
    let virtually = address.kind.speed_is_no_evidence();
    vec![
        name.to_owned(),
        format!("{}/{}", address.address, address.prefix),
        kind(address.kind).to_owned(),
        address
            .speed_bps
            .filter(|_| address.carrier != Some(false))
            .map(|rate| if virtually { format!("claims {rate}") } else { rate.to_string() })
            .unwrap_or_default(),
        address.carrier.map(|up| if up { "up" } else { "no link" }.to_owned()).unwrap_or_default(),
    ]
}

fn watched(document: &Document, section: &LinkSection, view: &mut View) {
    let Some(watched) = section.watched.measured() else { return };
    // Where neither end could be watched, the reasons stand among what was not measured.
    if watched.pc.measured().is_none() && watched.nas.measured().is_none() {
        return;
    }
    view.section("Counters while watched");
    let mut table = Table::new(&["interface", "errors and drops that grew"]);
    table.rows.extend(grown(document, watched).into_iter().map(|(name, counted)| vec![name, counted]));
    let moved = traffic(&watched.pc).into_iter().chain(traffic(&watched.nas)).max();
    let moved = moved.map(|bytes| format!(", with up to {} of other traffic at a port", ByteSize(bytes)));
    let length = format!("{}{}", watched.elapsed_us, moved.unwrap_or_default());
    if table.rows.is_empty() {
        view.note(Tone::Plain, format!("No errors or drops were counted within {length}."));
    } else {
        view.note(Tone::Plain, format!("Within {length}:"));
        view.table(table);
    }
}

/// The interfaces at which errors or drops were counted, and which.
pub(super) fn grown(document: &Document, watched: &Watched) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (role, counted) in [(Role::Pc, &watched.pc), (Role::Nas, &watched.nas)] {
        for (name, counters) in counted.measured().into_iter().flatten() {
            let odd = counters.0.iter().filter(|(name, count)| **count > 0 && is_odd(name));
            let odd: Vec<_> = odd.take(MOST_QUEUES).map(|(name, count)| format!("{name} {count}")).collect();
            if !odd.is_empty() {
                all.push((named(document, role, name), odd.join(", ")));
            }
        }
    }
    all
}

/// The most bytes that any interface moved.
fn traffic(counted: &Outcome<CountersByInterface>) -> Option<u64> {
    let moved = |name: &str, counters: &crate::model::link::Counters| counters.get(name).unwrap_or(0);
    counted.measured()?.values().map(|all| moved("rx_bytes", all).max(moved("tx_bytes", all))).max().filter(|most| *most > 0)
}
