//! What the first screen about links says of the load, of watched counters, of broken links, and of the way.

use std::collections::BTreeMap;

use super::*;
use crate::model::document::{Hosts, Measurements, Schema, Tool};
use crate::model::link::{BondPort, Bus, Counters, CountersByInterface, LinkSection, SWITCH_PORT, Watched};
use crate::model::link_event::LinkEvent;
use crate::model::plan::{Depth, Plan, Workload};
use crate::model::throughput::{DirectionThroughput, Pass, ThroughputSection};
use crate::units::{ByteSize, Elapsed};

fn end(names: &[&str]) -> HostLink {
    let stack = names.iter().map(|name| Interface::unknown(name, Kind::Physical, "not asked")).collect();
    HostLink::new("192.168.1.10".parse().unwrap(), "192.168.1.20".parse().unwrap(), stack)
}

/// Two ends with a port each; of one host's ports there is no other end.
fn document(scope: Scope) -> Document {
    let nas = if scope == Scope::LinkOfHost { Outcome::skipped("no host was named") } else { Outcome::Measured(end(&["eth0"])) };
    let link = Outcome::Measured(LinkSection::new(Outcome::Measured(end(&["eth0", "eth1"])), nas));
    Document {
        schema: Schema::current(),
        tool: Tool { name: "weaklink".into(), version: "0.1.0".into() },
        started: String::new(),
        plan: Plan {
            scope,
            depth: Depth::Normal,
            local: false,
            budget_us: Elapsed(0),
            streams: 8,
            max_data_bytes: ByteSize(0),
            lanes: Vec::new(),
            workload: Workload::Large,
            stated_pc_bps: None,
            stated_nas_bps: None,
            throughput: None,
        },
        hosts: Hosts { pc: Outcome::skipped("not asked"), nas: Outcome::skipped("not asked") },
        measurements: Measurements { link, ..Measurements::none("`weaklink link` looks at the links only") },
        findings: Vec::new(),
        verdict: None,
    }
}

fn section(document: &mut Document) -> &mut LinkSection {
    document.measurements.link.measured_mut().unwrap()
}

fn carried(streams: u32, mbit: u64, seconds: f64) -> Outcome<Pass> {
    let elapsed_us = Elapsed((seconds * 1e6) as u64);
    Outcome::Measured(Pass { goodput_bps: BitRate::from_mbit(mbit), elapsed_us, ..Pass::blank(streams) })
}

#[test]
fn the_ports_of_a_bridge_stand_beside_each_other_and_a_switchs_port_below_it() {
    let named = |name: &str, kind| Interface::unknown(name, kind, "not asked");
    let switched = |name: &str| {
        let mut port = named(name, Kind::Physical);
        port.bus = Outcome::Measured(Bus::told(SWITCH_PORT));
        port
    };
    let bridge = || named("br0", Kind::Bridge);
    let port = |name: &str| named(name, Kind::Physical);
    for (stack, told) in [
        (vec![bridge(), port("eth0")], "br0 → eth0"),
        (vec![named("br0.5", Kind::Vlan), bridge(), port("eth0"), port("eth1")], "br0.5 → br0 (eth0, eth1)"),
        (vec![bridge(), named("eth0.5", Kind::Vlan), port("eth0")], "br0 → eth0.5 → eth0"),
        (vec![bridge(), switched("lan1"), port("eth0")], "br0 → lan1 → eth0"),
    ] {
        assert_eq!(path(&stack), told);
    }
}

#[test]
fn a_load_is_told_with_its_streams_and_its_time_and_where_it_broke_off_with_the_reason() {
    type Way = fn() -> Outcome<Pass>;
    let not: Way = || Outcome::skipped("not asked for");
    let cases: [(&str, [Way; 2], &str); 6] = [
        (
            "both",
            [|| carried(8, 941, 1.0), || carried(8, 940, 1.04)],
            "PC → NAS 941 Mbit/s, NAS → PC 940 Mbit/s with 8 streams for 1 s",
        ),
        (
            "each in its own way",
            [|| carried(1, 941, 1.0), || carried(8, 2_350, 3.0)],
            "PC → NAS 941 Mbit/s with 1 stream for 1 s, NAS → PC 2.35 Gbit/s with 8 streams for 3 s",
        ),
        ("one alone", [not, || carried(8, 940, 1.0)], "NAS → PC 940 Mbit/s with 8 streams for 1 s"),
        ("none", [not, not], ""),
        (
            "the second broke off",
            [|| carried(8, 941, 1.0), || Outcome::failed("lost the NAS: it closed the connection ")],
            "PC → NAS 941 Mbit/s with 8 streams for 1 s · NAS → PC not finished: lost the NAS: it closed the connection",
        ),
        (
            "nothing came through",
            [|| Outcome::failed("refused"), || Outcome::failed("no answer")],
            "PC → NAS not finished: refused · NAS → PC not finished: no answer",
        ),
    ];
    let mut document = document(Scope::Link);
    for (case, [up, down], told) in cases {
        let way = |multi: Way| DirectionThroughput { multi: multi(), ..DirectionThroughput::skipped("looks at the links only") };
        let section = ThroughputSection::new(way(up), way(down), Outcome::skipped("looks at the links only"));
        document.measurements.throughput = Outcome::Measured(section);
        assert_eq!(load(&document), told, "{case}");
    }
    document.measurements.throughput = Outcome::skipped("not asked for (--no-load)");
    assert_eq!(load(&document), "");
    document.measurements.throughput = Outcome::failed("lost the NAS: it closed the connection");
    assert_eq!(load(&document), "not finished: lost the NAS: it closed the connection");
}

#[test]
fn of_a_load_of_one_stream_that_pass_stands() {
    let mut document = document(Scope::Link);
    let way = || DirectionThroughput { single: carried(1, 941, 2.0), ..DirectionThroughput::skipped("--streams 1") };
    document.measurements.throughput = Outcome::Measured(ThroughputSection::new(way(), way(), Outcome::skipped("no echo")));
    assert_eq!(load(&document), "PC → NAS 941 Mbit/s, NAS → PC 941 Mbit/s with 1 stream for 2 s");
}

fn counted(all: &[(&str, &[(&str, u64)])]) -> Outcome<CountersByInterface> {
    let one = |counters: &[(&str, u64)]| Counters(counters.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect());
    Outcome::Measured(all.iter().map(|(name, counters)| ((*name).to_owned(), one(counters))).collect::<BTreeMap<_, _>>())
}

#[test]
fn of_watched_counters_only_errors_and_drops_that_grew_are_told_and_whose() {
    let quiet = || counted(&[("eth0", &[("rx_bytes", 90_000), ("rx_crc_errors", 0)])]);
    let damaged =
        || counted(&[("eth0", &[("rx_bytes", 90_000), ("rx_crc_errors", 3), ("rx_missed_errors", 0), ("tx_dropped", 1)])]);
    let nobody = || Outcome::skipped("no agent took part");
    for (case, scope, pc, nas, told) in [
        ("nothing grew", Scope::Link, quiet(), quiet(), "within 10 s: no errors or drops"),
        ("nobody counted", Scope::Link, nobody(), Outcome::failed("no counters"), ""),
        ("one end", Scope::Link, quiet(), damaged(), "within 10 s: NAS eth0: rx_crc_errors 3, tx_dropped 1"),
        (
            "both ends",
            Scope::Link,
            damaged(),
            damaged(),
            "within 10 s: PC eth0: rx_crc_errors 3, tx_dropped 1 · NAS eth0: rx_crc_errors 3, tx_dropped 1",
        ),
        ("one host has no ends", Scope::LinkOfHost, damaged(), nobody(), "within 10 s: eth0: rx_crc_errors 3, tx_dropped 1"),
    ] {
        let mut document = document(scope);
        section(&mut document).watched = Outcome::Measured(Watched { elapsed_us: Elapsed(10_000_000), pc, nas });
        assert_eq!(watched(&document), told, "{case}");
    }
    assert_eq!(watched(&document(Scope::Link)), "", "nobody watched");
    let mut many = document(Scope::LinkOfHost);
    let names: Vec<String> = (0..9).map(|number| format!("eth{number}")).collect();
    let all: Vec<(&str, &[(&str, u64)])> = names.iter().map(|name| (name.as_str(), &[("rx_errors", 1)][..])).collect();
    let watch = Watched { elapsed_us: Elapsed(10_000_000), pc: counted(&all), nas: nobody() };
    section(&mut many).watched = Outcome::Measured(watch);
    assert_eq!(watched(&many).matches("eth").count(), MOST_NAMED);
}

fn event(interface: &str, kind: EventKind) -> LinkEvent {
    LinkEvent { at_us: None, before_us: None, into_run_us: None, interface: interface.into(), kind, text: String::new() }
}

#[test]
fn links_that_broke_are_counted_for_each_port_and_what_came_up_is_no_break() {
    let up = || EventKind::Up(None);
    let down = || EventKind::Down;
    for (case, scope, pc, nas, told) in [
        ("no event", Scope::Link, vec![], vec![], ""),
        ("only up", Scope::Link, vec![event("eth0", up())], vec![], ""),
        ("once", Scope::Link, vec![event("eth0", down()), event("eth0", up())], vec![], "PC eth0 once, by the kernel's log"),
        (
            "both ends",
            Scope::Link,
            vec![event("eth0", down())],
            vec![event("eth0", down()), event("eth0", down())],
            "PC eth0 once, NAS eth0 2 times, by the kernel's log",
        ),
        (
            "ports of one host",
            Scope::LinkOfHost,
            vec![event("eth1", down()), event("eth0", down()), event("eth1", down())],
            vec![],
            "eth1 2 times, eth0 once, by the kernel's log",
        ),
    ] {
        let mut document = document(scope);
        let links = section(&mut document);
        for (link, events) in [(&mut links.pc, pc), (&mut links.nas, nas)] {
            link.measured_mut().into_iter().for_each(|link| link.events = Outcome::Measured(events.clone()));
        }
        assert_eq!(broken(&document), told, "{case}");
    }
    let mut many = document(Scope::LinkOfHost);
    let events = (0..9).map(|number| event(&format!("eth{number}"), down())).collect();
    section(&mut many).pc.measured_mut().unwrap().events = Outcome::Measured(events);
    assert_eq!(broken(&many).matches("once").count(), MOST_NAMED);
}

#[test]
fn an_end_that_nobody_looked_at_is_told_with_the_reason_and_one_host_has_no_other() {
    let mut document = document(Scope::LinkWithoutAgent);
    assert_eq!(unseen(&document), []);
    section(&mut document).nas = Outcome::skipped("no agent took part (--no-agent): `weaklink serve` on the NAS would tell");
    let told = "not looked at: no agent took part (--no-agent): `weaklink serve` on the NAS would tell";
    assert_eq!(unseen(&document), [("NAS ports".to_owned(), told.to_owned())]);
    assert_eq!(unseen(&super::tests::document(Scope::LinkOfHost)), []);
    document.measurements.link = Outcome::failed("no route");
    assert_eq!(unseen(&document), []);
}

#[test]
fn ports_of_an_aggregation_stand_beside_each_other_and_the_rest_one_upon_the_other() {
    let port = |name: &str| BondPort { name: name.into(), ..BondPort::default() };
    let bond = |ports: &[&str]| Bond { ports: ports.iter().map(|name| port(name)).collect(), ..Bond::default() };
    for (names, ports, told) in [
        (&["eth0"][..], &[][..], "eth0"),
        (&["br0", "eth0"], &[], "br0 → eth0"),
        (&["bond0", "eth1", "eth2"], &["eth1", "eth2"], "bond0 (eth1, eth2)"),
        (&["bond0.20", "bond0", "eth1", "eth2"], &["eth1", "eth2"], "bond0.20 → bond0 (eth1, eth2)"),
    ] {
        let mut stack = end(names).stack;
        if let Some(interface) = stack.iter_mut().find(|interface| interface.name == "bond0") {
            interface.bond = Some(bond(ports));
        }
        assert_eq!(path(&stack), told);
    }
    assert_eq!(path(&[]), "");
}

#[test]
fn a_bus_is_cut_between_its_parts_and_never_within_a_parenthesis() {
    for (text, shown) in [
        ("PCIe x1 (5 GT/s, of 8 GT/s), behind a hub", "PCIe x1 (5 GT/s, of 8 GT/s)"),
        ("virtio: made up", "virtio"),
        ("USB 3 at 1:2.3; slow", "USB 3 at 1:2.3"),
        ("(never, closed", "(never, closed"),
        ("", ""),
    ] {
        assert_eq!(beginning(text), shown);
    }
}
