//! Links and raw TCP.

use super::answer::NO_NETWORK;
use super::links::named;
use super::machines::{ENDS, cell};
use super::rates;
use super::view::{Table, Tone, View, or_unknown, percent};
use crate::model::link::{Bond, BondPort, CountersByInterface, Duplex, HostLink, Interface, InterfaceKind, LinkModes, Neighbour};
use crate::model::throughput::{Pass, RttSummary, TcpStats};
use crate::model::{Direction, Document, Fact, Outcome, Role, Source};
use crate::units::BitRate;

/// The groups of interfaces that are told apart by who said their facts.
const MAX_SOURCES: usize = 8;

/// The interfaces between the two hosts.
pub(super) fn links(document: &Document, view: &mut View) {
    let Some(section) = document.measurements.link.measured() else { return };
    let ends: Vec<_> = ENDS.iter().filter_map(|&role| section.of(role).measured().map(|link| (role, link))).collect();
    if ends.is_empty() {
        return;
    }
    view.section("Links");
    if document.plan.local {
        view.note(Tone::Warning, NO_NETWORK);
    }
    let mut table = Table::new(&["interface", "kind", "speed", "duplex", "MTU", "driver", "bus"]);
    let mut modes = Table::new(&["interface", "can do", "offers", "is offered"]);
    let mut facts = Vec::new();
    let mut sources: Vec<(String, Vec<String>)> = Vec::new();
    for (role, link) in &ends {
        // A report about links alone has told its routes and switches.
        if !document.plan.scope.is_link() {
            facts.push((format!("{} route", role.title()), route(link)));
        }
        facts.extend(link.stated_speed_bps.map(|rate| (format!("{} speed", role.title()), format!("{rate} as you stated"))));
        let heard = link.neighbours.measured().into_iter().flatten().filter(|_| !document.plan.scope.is_link());
        facts.extend(heard.map(|switch| (format!("{} switch", named(document, *role, &switch.interface)), neighbour(switch))));
        for interface in &link.stack {
            let name = named(document, *role, &interface.name);
            table.rows.push(interface_row(&name, interface));
            modes.rows.extend(interface.modes.measured().map(|modes| modes_row(&name, modes)));
            facts.extend(interface_facts(interface).map(|text| (name.clone(), text)));
            let said = said_by(interface);
            if let Some((_, names)) = sources.iter_mut().find(|(known, _)| *known == said) {
                names.push(name);
            } else if sources.len() < MAX_SOURCES {
                sources.push((said, vec![name]));
            }
        }
    }
    sources.retain(|(said, _)| !said.is_empty());
    let alone = sources.len() == 1;
    facts.extend(sources.into_iter().map(|(said, names)| {
        let names = names.iter().take(8).cloned().collect::<Vec<_>>().join(", ");
        let whose = if alone { String::new() } else { format!(" ({names})") };
        ("said by".to_owned(), format!("{said}{whose}"))
    }));
    view.table(table);
    view.table(modes);
    view.facts(facts);
    for (role, link) in &ends {
        for interface in &link.stack {
            if let Some(bond) = &interface.bond {
                aggregation(&|name| named(document, *role, name), &interface.name, bond, view);
            }
        }
    }
}

pub(super) fn route(link: &HostLink) -> String {
    let via = match &link.gateway {
        Outcome::Measured(Some(gateway)) => format!(", through {gateway}"),
        Outcome::Measured(None) => ", same subnet".to_owned(),
        Outcome::Skipped(_) | Outcome::Failed(_) => String::new(),
    };
    format!("{} → {}{via}", link.local, link.peer)
}

/// What the device at the other end of a cable says of itself; foreign words all of it.
pub(super) fn neighbour(neighbour: &Neighbour) -> String {
    let text = |label: &str, value: &Option<String>| value.as_ref().map(|value| format!("{label}{value}"));
    let word = |state: bool| if state { "yes" } else { "no" };
    let parts = [
        text("", &neighbour.system),
        text("", &neighbour.system_description),
        text("chassis ", &neighbour.chassis),
        text("port ", &neighbour.port),
        text("", &neighbour.port_description),
        neighbour.max_frame_bytes.map(|bytes| format!("largest frame {bytes} bytes")),
        neighbour.port_vlan.map(|vlan| format!("untagged VLAN {vlan}")),
        neighbour.stated_mtu.map(|mtu| format!("MTU {mtu} (by CDP, which some switches state wrongly)")),
        neighbour.aggregation.map(|[can, is]| format!("aggregation: able {}, in use {}", word(can), word(is))),
        neighbour.autoneg.map(|[can, does]| format!("negotiates: able {}, does {}", word(can), word(does))),
        neighbour.speed_bps.map(|rate| format!("runs at {rate}")),
        neighbour.duplex.map(|it| format!("{} duplex", duplex(it))),
        neighbour.lacp.as_ref().map(|[device, ours]| {
            format!("it wants to aggregate (LACP state {}/{}), and this port answers no LACP", device.state, ours.state)
        }),
    ];
    let said = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
    let by = if neighbour.source == Some(Source::Program) { ", told by lldpd" } else { "" };
    if said.is_empty() { said } else { format!("by its own word{by}: {said}") }
}

fn interface_row(name: &str, interface: &Interface) -> Vec<String> {
    let virtually = interface.kind.speed_is_no_evidence();
    // Some drivers go on to tell the speed and duplex of the link that they had.
    let down = interface.carrier.measured() == Some(&false);
    let unless_down = |word: &str, told: String| if down { word.to_owned() } else { told };
    let speed = cell(&interface.speed_bps, |fact| match fact.source {
        Source::User => format!("{} as you stated", fact.value),
        _ if interface.kind == InterfaceKind::Unknown => format!("{} (claimed, and not known to be a cable's)", fact.value),
        _ if virtually => format!("{} (claimed, virtual: no evidence)", fact.value),
        _ => fact.value.to_string(),
    });
    vec![
        name.to_owned(),
        kind(interface.kind).to_owned(),
        unless_down("no link", speed),
        unless_down("", cell(&interface.duplex, |fact| duplex(fact.value).to_owned())),
        cell(&interface.mtu, |fact| fact.value.to_string()),
        cell(&interface.driver, |fact| fact.value.clone()),
        // Interfaces made by software are on none; the reason stands under “Not measured”.
        if (virtually || made_up(interface)) && interface.bus.measured().is_none() {
            String::new()
        } else {
            cell(&interface.bus, |bus| bus.description.clone())
        },
    ]
}

/// Whether an interface has no plug of its own, but others below it: it is on no bus, and negotiates nothing.
fn made_up(interface: &Interface) -> bool {
    use InterfaceKind::{Bond, Bridge, Macvlan, Team, Vlan};
    matches!(interface.kind, Bond | Bridge | Macvlan | Team | Vlan)
}

/// Who said what about an interface: `ethtool: speed, driver · rtnetlink: MTU`.
fn said_by(interface: &Interface) -> String {
    let bus = interface.bus.measured().and_then(|bus| bus.rate_bps.as_ref());
    let facts = [
        ("speed", source(&interface.speed_bps)),
        ("duplex", source(&interface.duplex)),
        ("MTU", source(&interface.mtu)),
        ("driver", source(&interface.driver)),
        ("negotiation", source(&interface.autoneg)),
        ("bus", bus.map(|fact| fact.source)),
    ];
    let mut said: Vec<(Source, Vec<&str>)> = Vec::new();
    for (name, source) in facts.into_iter().filter_map(|(name, source)| source.map(|source| (name, source))) {
        match said.iter_mut().find(|(known, _)| *known == source) {
            Some((_, names)) => names.push(name),
            None => said.push((source, vec![name])),
        }
    }
    said.iter().map(|(source, names)| format!("{}: {}", source_word(*source), names.join(", "))).collect::<Vec<_>>().join(" · ")
}

fn source<T>(outcome: &Outcome<Fact<T>>) -> Option<Source> {
    outcome.measured().map(|fact| fact.source)
}

/// The word for who said a fact.
pub(super) const fn source_word(source: Source) -> &'static str {
    match source {
        Source::Sysfs => "sysfs",
        Source::Procfs => "procfs",
        Source::Rtnetlink => "rtnetlink",
        Source::Ethtool => "ethtool",
        Source::EthtoolNetlink => "ethtool netlink",
        Source::KernelLog => "kernel log",
        Source::Socket => "the socket",
        Source::Os => "the system",
        Source::Measured => "measured",
        Source::User => "you",
        Source::Program => "the program",
        Source::Ifconfig => "ifconfig",
        Source::Pciconf => "pciconf",
        Source::Powershell => "PowerShell",
    }
}

pub(super) const fn duplex(duplex: Duplex) -> &'static str {
    match duplex {
        Duplex::Full => "full",
        Duplex::Half => "half",
    }
}

pub(super) const fn kind(kind: InterfaceKind) -> &'static str {
    match kind {
        InterfaceKind::Physical => "port",
        InterfaceKind::VirtualMachine => "virtual port",
        InterfaceKind::Veth => "veth",
        InterfaceKind::Bond => "bond",
        InterfaceKind::Team => "team",
        InterfaceKind::Bridge => "bridge",
        InterfaceKind::Vlan => "VLAN",
        InterfaceKind::Macvlan => "macvlan",
        InterfaceKind::Tunnel => "tunnel",
        InterfaceKind::Wifi => "Wi-Fi",
        InterfaceKind::Loopback => "loopback",
        InterfaceKind::Unknown => "not known",
    }
}

fn modes_row(name: &str, modes: &LinkModes) -> Vec<String> {
    let short = |rate: &BitRate| rate.to_string().replace("bit/s", "").replace(' ', "");
    let list = |rates: &[BitRate]| rates.iter().take(16).map(short).collect::<Vec<_>>().join(" ");
    vec![name.to_owned(), list(&modes.supported_bps), list(&modes.advertised_bps), list(&modes.partner_bps)]
}

/// What is unusual about an interface.
fn interface_facts(interface: &Interface) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(false) = interface.carrier.measured() {
        parts.push("no link".to_owned());
    }
    if let Some(changes) = interface.carrier_changes.measured().filter(|changes| **changes > 2) {
        parts.push(format!("carrier changed {changes} times since boot"));
    }
    if let Some(Fact { value: false, .. }) = interface.autoneg.measured().filter(|_| !made_up(interface)) {
        parts.push("does not negotiate".to_owned());
    }
    if let Some(offloads) = interface.offloads.measured() {
        let off: Vec<_> = offloads.iter().filter(|(_, on)| !**on).take(12).map(|(name, _)| name.as_str()).collect();
        if !off.is_empty() {
            parts.push(format!("off: {}", off.join(", ")));
        }
    }
    if let Some(counters) = interface.counters.measured() {
        let odd = counters.0.iter().filter(|(name, count)| **count > 0 && !is_plain(name));
        let odd: Vec<_> = odd.take(12).map(|(name, count)| format!("{name} {count}")).collect();
        if !odd.is_empty() {
            parts.push(format!("counted since boot: {}", odd.join(", ")));
        }
    }
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// Whether a counter only says that traffic flowed.
pub(super) fn is_plain(name: &str) -> bool {
    let tells = [
        "err",
        "drop",
        "crc",
        "miss",
        "over",
        "pause",
        "discard",
        "fault",
        "abort",
        "collision",
        "fifo",
        "nobuf",
        "align",
        "length",
        "oversize",
        "giant",
        "jabber",
        "too_long",
    ];
    let name = name.to_ascii_lowercase();
    !tells.iter().any(|part| name.contains(part))
}

/// Whether a counter that grew during a phase tells of trouble: a link that changed since the start of the system is no news, one that
/// changed meanwhile is.
pub(super) fn is_odd(name: &str) -> bool {
    !is_plain(name) || ["carrier_", "link_down"].iter().any(|part| name.to_ascii_lowercase().contains(part))
}

fn aggregation(named: &dyn Fn(&str) -> String, name: &str, bond: &Bond, view: &mut View) {
    let aggregator = match (bond.active_aggregator, bond.active_ports) {
        (None, None) => None,
        (id, ports) => {
            let plural = if ports == Some(1_u32) { "" } else { "s" };
            Some(format!("aggregator {} with {} port{plural}", or_unknown(id), or_unknown(ports)))
        }
    };
    let parts = [
        Some(bond.mode.clone()),
        bond.hash_policy.as_ref().map(|policy| format!("hash {policy}")),
        bond.partner_mac.as_ref().map(|mac| format!("partner {mac}")),
        aggregator,
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    view.facts(vec![(named(name), parts.join(" · "))]);
    let mut table = Table::new(&["port", "link", "speed", "duplex", "in use", "fails", "group", "churn", "LACP state"]);
    table.rows.extend(bond.ports.iter().map(|port| port_row(named(&port.name), port)));
    view.table(table);
}

fn port_row(name: String, port: &BondPort) -> Vec<String> {
    let text = |value: Option<String>| value.unwrap_or_default();
    let state = |bits: Option<u32>| bits.map_or_else(|| "?".to_owned(), |bits| bits.to_string());
    let lacp = match (port.actor_state, port.partner_state) {
        (None, None) => String::new(),
        (actor, partner) => format!("{}/{}", state(actor), state(partner)),
    };
    vec![
        name,
        text(port.up.map(|up| if up { "up" } else { "no link" }.to_owned())),
        text(port.speed_bps.filter(|_| port.up != Some(false)).map(|rate| rate.to_string())),
        text(port.duplex.filter(|_| port.up != Some(false)).map(|value| duplex(value).to_owned())),
        text(port.active.map(|active| if active { "yes" } else { "no" }.to_owned())),
        text(port.failures.map(|count| count.to_string())),
        text(port.aggregator.map(|id| id.to_string())),
        text(port.churn.as_ref().map(|[ours, theirs]| format!("{ours}/{theirs}"))),
        lacp,
    ]
}

/// Raw TCP, memory to memory.
pub(super) fn throughput(document: &Document, view: &mut View) {
    let Some(section) = document.measurements.throughput.measured() else { return };
    view.section(if document.plan.scope.is_throughput() { "Throughput" } else { "TCP throughput" });
    let mut table = Table::new(&["streams", "goodput", "spread", "loaded RTT", "sent again", "stall", "method"]);
    let mut counters = Table::new(&["during", "interface", "errors and drops"]);
    let mut looked = false;
    // Where only one question was asked, what is not there was not asked for either, or stands under “Not measured”.
    let only = document.plan.scope.is_throughput() || document.plan.scope.is_link();
    for direction in Direction::BOTH {
        let passes = section.of(direction);
        for (streams, outcome) in [("1", &passes.single), ("several", &passes.multi)] {
            if outcome.measured().is_some() || !only {
                table.rows.push(pass_row(direction, streams, outcome));
            }
        }
    }
    for (name, _, pass) in rates::passes(section) {
        for (role, counted) in [(Role::Pc, &pass.counters_pc), (Role::Nas, &pass.counters_nas)] {
            looked |= counted.measured().is_some_and(|all| !all.is_empty());
            counters.rows.extend(counted.measured().into_iter().flat_map(|all| counter_rows(&format!("TCP {name}"), role, all)));
        }
    }
    let any = !table.rows.is_empty();
    view.table(table);
    if any {
        view.note(
            Tone::Plain,
            "spread: standard deviation of the tenths of a second over their mean. stall: share of the time that the receiver's window stopped the sender.",
        );
    }
    // A load of a second is there for the counters; what else it tells `weaklink throughput` tells better.
    if !document.plan.scope.is_link() {
        rates::details(document, section, view);
    }
    if looked && counters.rows.is_empty() {
        view.note(Tone::Plain, "No errors or drops were counted at the interfaces during the passes.");
    }
    view.table(counters);
}

pub(super) fn rtt_words(rtt: &RttSummary) -> String {
    let lost = rtt.sent.saturating_sub(rtt.received);
    let lost = if lost > 0 { format!(", {lost} of {} lost", rtt.sent) } else { String::new() };
    let tail = rtt.p99_us.map(|rtt| format!(", {rtt} at 99 %")).unwrap_or_default();
    format!("{} median, {} at 95 %{tail}{lost}", rtt.median_us, rtt.p95_us)
}

fn pass_row(direction: Direction, streams: &str, outcome: &Outcome<Pass>) -> Vec<String> {
    let show = |f: &dyn Fn(&Pass) -> String| outcome.measured().map(f).unwrap_or_default();
    vec![
        match outcome.measured() {
            Some(pass) => format!("{} × {}", direction.arrow(), pass.streams),
            None => format!("{}, {streams}", direction.arrow()),
        },
        cell(outcome, |pass| pass.goodput_bps.to_string()),
        show(&|pass| pass.steady.map_or_else(|| "unsteady".to_owned(), |steady| format!("±{:.1} %", steady.spread * 100.0))),
        show(&|pass| pass.loaded_rtt.measured().map(|rtt| rtt.median_us.to_string()).unwrap_or_default()),
        show(&|pass| pass.sender.measured().and_then(|stats| sent_again(stats)).unwrap_or_default()),
        show(&|pass| pass.sender.measured().and_then(|stats| window_share(stats)).unwrap_or_default()),
        show(&|pass| {
            let clamp = pass.method.mss_clamp_bytes.map(|mss| format!("MSS {mss}"));
            [pass.method.congestion.clone(), clamp].into_iter().flatten().collect::<Vec<_>>().join(", ")
        }),
    ]
}

/// How many segments were sent again, all streams together.
pub(super) fn sent_again(stats: &[TcpStats]) -> Option<String> {
    let again = stats
        .iter()
        .filter_map(|stream| stream.retransmits)
        .fold(None, |sum: Option<u64>, count| Some(sum.unwrap_or(0).saturating_add(count)))?;
    let sent = stats.iter().filter_map(|stream| stream.segments_out).fold(0u64, u64::saturating_add);
    let share = if sent > 0 { again as f64 / sent as f64 } else { 0.0 };
    Some(if share >= 0.000_05 { format!("{again} ({})", percent(share)) } else { again.to_string() })
}

/// For which share of their busy time the streams waited for the receiver's window to open.
fn window_share(stats: &[TcpStats]) -> Option<String> {
    let sum = |of: &dyn Fn(&TcpStats) -> Option<u64>| stats.iter().filter_map(of).fold(0u64, u64::saturating_add);
    let busy = sum(&|stream| stream.busy_us);
    let known = stats.iter().any(|stream| stream.rwnd_limited_us.is_some()) && busy > 0;
    known.then(|| percent(sum(&|stream| stream.rwnd_limited_us) as f64 / busy as f64))
}

pub(super) fn counter_rows(step: &str, role: Role, counted: &CountersByInterface) -> Vec<Vec<String>> {
    let rows = counted.iter().filter_map(|(interface, counters)| {
        let odd = counters.0.iter().filter(|(name, count)| **count > 0 && is_odd(name)).take(12);
        let odd: Vec<_> = odd.map(|(name, count)| format!("{name} +{count}")).collect();
        (!odd.is_empty()).then(|| vec![step.to_owned(), format!("{} {interface}", role.title()), odd.join(", ")])
    });
    rows.collect()
}
