//! Documents about links alone, and the addresses of both hosts.

use super::super::judge;
use super::super::scenario::*;
use crate::model::copy::LaneKind;
use crate::model::document::Measurements;
use crate::model::finding::{Severity, Status};
use crate::model::link::{Duplex, HostAddress, InterfaceKind, Watched};
use crate::model::link_event::{EventKind, LinkEvent};
use crate::model::nic::Nic;
use crate::model::outcome::{Fact, Outcome, Source};
use crate::model::plan::Scope;
use crate::model::{Direction, Document, Role};
use crate::units::Elapsed;

use Role::{Nas, Pc};

/// Only links, of this kind of question; nothing was moved.
fn links(scope: Scope, line_mbit: u64) -> Document {
    let mut doc = healthy(line_mbit);
    doc.plan.scope = scope;
    doc.measurements =
        Measurements { link: doc.measurements.link, ..Measurements::none("`weaklink link` looks at the links only") };
    if scope != Scope::Link {
        doc.measurements.link.measured_mut().expect("links").nas = Outcome::skipped("nobody there");
    }
    doc
}

fn address(interface: &str, address: &str, speed_mbit: u64) -> HostAddress {
    HostAddress {
        interface: interface.into(),
        address: address.parse().expect("address"),
        prefix: 24,
        kind: InterfaceKind::Physical,
        speed_bps: Some(mbit(speed_mbit)),
        carrier: Some(true),
    }
}

/// Both hosts with the addresses of the route, and further ones.
fn addressed(doc: &mut Document, pc: &[HostAddress], nas: &[HostAddress]) {
    for (role, own, more) in [(Pc, "192.0.2.1", pc), (Nas, "192.0.2.2", nas)] {
        let link = doc.link(role);
        (link.local, link.peer) = (own.parse().expect("own"), "192.0.2.1".parse().expect("peer"));
        if role == Pc {
            link.peer = "192.0.2.2".parse().expect("peer");
        }
        let mut all = vec![address("eth0", own, 1_000)];
        all.extend(more.iter().cloned());
        link.addresses = Outcome::Measured(all);
    }
}

type Change = fn(&mut Document);

#[test]
fn what_the_ports_say_is_the_answer() {
    let cases: [(&str, Scope, u64, Change, &str, Status); 10] = [
        ("all is well", Scope::Link, 2_500, |_| {}, "none.links-consistent", Status::Healthy),
        ("this end is well", Scope::LinkWithoutAgent, 2_500, |_| {}, "none.links-consistent", Status::Healthy),
        ("this host is well", Scope::LinkOfHost, 2_500, |_| {}, "none.links-consistent", Status::Healthy),
        (
            "the partner offers less",
            Scope::LinkOfHost,
            1_000,
            |doc| doc.modes(Pc, &[1_000, 2_500], &[1_000, 2_500], &[100, 1_000]),
            "network.link-below-capability",
            Status::Bottleneck,
        ),
        (
            "a port without a cable is no fault",
            Scope::LinkOfHost,
            1_000,
            |doc| {
                let mut spare = interface("eth9", InterfaceKind::Physical, 10);
                spare.carrier = Outcome::Measured(false);
                doc.link(Pc).stack.push(spare);
            },
            "none.links-consistent",
            Status::Healthy,
        ),
        (
            "the second port is the slow one",
            Scope::LinkOfHost,
            1_000,
            |doc| {
                let mut second = interface("eth1", InterfaceKind::Physical, 100);
                second.duplex = Outcome::Measured(Fact::new(Duplex::Half, Source::Ethtool));
                doc.link(Pc).stack.push(second);
            },
            "network.half-duplex",
            Status::Bottleneck,
        ),
        (
            "the bus carries less than the link",
            Scope::Link,
            2_500,
            |doc| doc.port(Nas).bus = bus("usb", 480, 5_000, "USB 480 Mbit/s"),
            "network.nic-bus",
            Status::Bottleneck,
        ),
        (
            "a faster pair of ports is there",
            Scope::Link,
            1_000,
            |doc| addressed(doc, &[address("eth1", "198.51.100.1", 10_000)], &[address("eth1", "198.51.100.2", 10_000)]),
            "network.slower-port-used",
            Status::Bottleneck,
        ),
        (
            "only one end has a faster port",
            Scope::Link,
            1_000,
            |doc| addressed(doc, &[], &[address("eth1", "198.51.100.2", 10_000)]),
            "none.links-consistent",
            Status::Healthy,
        ),
        (
            "virtual ports tell nothing",
            Scope::Link,
            10_000,
            Document::no_links,
            "inconclusive.links-unknown",
            Status::Inconclusive,
        ),
    ];
    for (name, scope, line, change, code, status) in cases {
        let mut doc = links(scope, line);
        change(&mut doc);
        let verdict = judge(&doc).verdict;
        assert_eq!((verdict.code.to_string().as_str(), verdict.status), (code, status), "{name}: {}", verdict.sentence);
    }
}

#[test]
fn a_run_over_the_slower_of_two_ports_is_told_even_at_line_rate() {
    let mut doc = healthy(1_000);
    addressed(&mut doc, &[address("eth1", "198.51.100.1", 10_000)], &[address("eth1", "198.51.100.2", 10_000)]);
    let judgement = judge(&doc);
    let finding =
        judgement.findings.iter().find(|finding| finding.code.to_string() == "network.slower-port-used").expect("finding");
    assert!(finding.advice[0].contains("198.51.100.2"), "{finding:?}");
}

#[test]
fn two_ports_in_one_subnet_are_worth_a_word() {
    let mut doc = links(Scope::Link, 1_000);
    addressed(&mut doc, &[address("eth1", "192.0.2.9", 1_000)], &[]);
    let judgement = judge(&doc);
    let finding = judgement.findings.iter().find(|finding| finding.code.to_string() == "network.two-ports-one-subnet");
    assert_eq!(finding.map(|finding| finding.severity), Some(Severity::Info));
    assert_eq!(judgement.verdict.status, Status::Healthy);
    let mut other = links(Scope::Link, 1_000);
    addressed(&mut other, &[address("eth1", "203.0.113.9", 1_000)], &[]);
    assert!(judge(&other).findings.is_empty());
}

#[test]
fn damaged_frames_that_grow_while_watched_are_a_fault() {
    for (scope, role) in [(Scope::Link, Nas), (Scope::LinkOfHost, Pc)] {
        let mut doc = links(scope, 1_000);
        let section = doc.measurements.link.measured_mut().expect("links");
        let nothing = || Outcome::skipped("not watched");
        let (pc, nas) = match role {
            Pc => (grown("rx_crc_errors", 500), nothing()),
            Nas => (nothing(), grown("rx_crc_errors", 500)),
        };
        section.watched = Outcome::Measured(Watched { elapsed_us: Elapsed(5_000_000), pc, nas });
        let verdict = judge(&doc).verdict;
        assert_eq!(verdict.code.to_string(), "network.cable-errors", "{scope:?}: {}", verdict.sentence);
    }
}

#[test]
fn a_share_that_is_mounted_by_a_vpn_is_slow_for_that_reason() {
    for (interface, kind, mb, code) in [
        ("tailscale0", "tunnel", 20.0, "network.lane-takes-another-way"),
        ("eth0", "physical", 110.0, "none.at-line-rate"),
        ("eth1", "physical", 112.0, "none.at-line-rate"),
    ] {
        let mut doc = healthy(1_000);
        doc.lane(LaneKind::Raw, "raw tcp", &[]).rungs = vec![plain(Direction::Upload, 115.0), plain(Direction::Download, 115.0)];
        let facts = [("server_address", "100.64.0.5"), ("interface", interface), ("interface_kind", kind)];
        doc.lane(LaneKind::Mounted, "smb 3.1.1", &facts).rungs =
            vec![plain(Direction::Upload, mb), plain(Direction::Download, mb)];
        let judgement = judge(&doc);
        assert_eq!(judgement.verdict.code.to_string(), code, "{interface}: {}", judgement.verdict.sentence);
        let told = judgement.findings.iter().any(|finding| finding.code.to_string() == "network.lane-takes-another-way");
        assert_eq!(told, interface != "eth0", "{interface}");
    }
}

fn finding(doc: &Document, code: &str) -> Option<crate::model::finding::Finding> {
    judge(doc).findings.into_iter().find(|finding| finding.code.to_string() == code)
}

#[test]
fn a_faster_pair_is_another_cable_between_the_two_hosts() {
    let fast = |own: &str| address("eth1", own, 10_000);
    let cases: [(&str, HostAddress, HostAddress, Option<u64>, bool); 7] = [
        ("another cable", fast("198.51.100.1"), fast("198.51.100.2"), None, true),
        ("link-local v4", fast("169.254.3.1"), fast("169.254.3.2"), None, false),
        ("link-local v6", fast("fe80::1"), fast("fe80::2"), None, false),
        ("one address at both", fast("172.17.0.1"), fast("172.17.0.1"), None, false),
        ("stated by the user", fast("198.51.100.1"), fast("198.51.100.2"), Some(1_000), false),
        ("no speed told", address("eth1", "198.51.100.1", 0), fast("198.51.100.2"), None, false),
        (
            "other addresses of the ports in use",
            address("eth0", "198.51.100.1", 10_000),
            address("eth0", "198.51.100.2", 10_000),
            None,
            false,
        ),
    ];
    for (name, pc, nas, stated, expected) in cases {
        let mut doc = links(Scope::Link, 1_000);
        addressed(&mut doc, &[pc], &[nas]);
        doc.plan.stated_pc_bps = stated.map(mbit);
        assert_eq!(finding(&doc, "network.slower-port-used").is_some(), expected, "{name}");
    }
    let mut doc = links(Scope::Link, 1_000);
    let many: Vec<HostAddress> = (0..30_000).map(|n| address(&format!("eth{n}"), "198.51.100.1", 10_000)).collect();
    addressed(&mut doc, &many, &many);
    assert_eq!(finding(&doc, "network.slower-port-used"), None);
}

#[test]
fn virtual_ports_in_one_subnet_flux_too_and_tell_no_speed() {
    let mut doc = links(Scope::Link, 1_000);
    let second = HostAddress { kind: InterfaceKind::VirtualMachine, ..address("ens5", "192.0.2.9", 10_000) };
    addressed(&mut doc, &[second], &[]);
    let finding = finding(&doc, "network.two-ports-one-subnet").expect("finding");
    assert!(finding.evidence[0].contains("ens5 has 192.0.2.9"), "{finding:?}");
}

#[test]
fn every_port_of_an_aggregation_is_judged_and_named() {
    let run = |change: Change| {
        let mut doc = links(Scope::Link, 1_000);
        for role in [Pc, Nas] {
            bonded(&mut doc, role, "802.3ad", Some("layer3+4"), &[1_000, 1_000]);
        }
        change(&mut doc);
        let verdict = judge(&doc);
        let text = verdict.findings.iter().flat_map(|finding| finding.evidence.clone()).collect::<Vec<_>>().join(" ");
        (verdict.verdict.code.to_string(), text)
    };
    let half = |doc: &mut Document, at: usize| {
        doc.link(Nas).stack[at].duplex = Outcome::Measured(Fact::new(Duplex::Half, Source::Ethtool));
    };
    let (code, text) = run(|doc| doc.link(Nas).stack[1].modes = interface("x", InterfaceKind::Physical, 2_500).modes);
    assert!(text.contains("port eth0 linked at 1 Gbit/s; it supports 2.5 Gbit/s"), "{code}: {text}");
    let (code, text) = run(|doc| doc.link(Nas).stack[1].bus = bus("usb", 480, 5_000, "USB 480 Mbit/s"));
    assert_eq!(code, "network.nic-bus", "{text}");
    assert!(text.contains("eth0"), "{text}");
    // What a port without a link still claims is stale.
    let (code, text) = run(|doc| {
        doc.link(Nas).stack[2].duplex = Outcome::Measured(Fact::new(Duplex::Half, Source::Ethtool));
        doc.link(Nas).stack[2].carrier = Outcome::Measured(false);
    });
    assert!(!text.contains("half duplex"), "{code}: {text}");
    let mut doc = links(Scope::Link, 1_000);
    bonded(&mut doc, Nas, "802.3ad", Some("layer3+4"), &[1_000, 1_000]);
    half(&mut doc, 1);
    assert!(finding(&doc, "network.half-duplex").is_some_and(|finding| finding.evidence[0].contains("eth0")));
}

#[test]
fn a_slow_port_of_an_aggregation_costs_what_it_lacks() {
    let mut doc = links(Scope::Link, 10_000);
    bonded(&mut doc, Nas, "balance-xor", Some("layer3+4"), &[1_000, 100]);
    doc.link(Nas).stack[2].modes = interface("x", InterfaceKind::Physical, 1_000).modes;
    let verdict = judge(&doc).verdict;
    assert_eq!(verdict.code.to_string(), "network.link-below-capability", "{}", verdict.sentence);
}

#[test]
fn a_chip_that_its_driver_holds_back_names_the_side_that_is_known() {
    for (name, speed, listed, partner, chip, told) in [
        ("nobody knows the partner", 1_000, 1_000, None, 5_000, Some("what the partner offers is not known")),
        ("the partner offers more", 1_000, 1_000, Some(5_000), 5_000, Some("the partner offers 5 Gbit/s")),
        ("the partner offers no more", 1_000, 1_000, Some(1_000), 5_000, Some("offers at most 1 Gbit/s")),
        ("it runs faster than its driver's list", 5_000, 1_000, None, 5_000, None),
        ("it can do no more", 1_000, 1_000, None, 1_000, None),
    ] {
        let mut doc = links(Scope::LinkOfHost, speed);
        let partner: Vec<u64> = partner.into_iter().collect();
        doc.modes(Pc, &[listed], &[listed], &partner);
        doc.port(Pc).nic = Outcome::Measured(Box::new(Nic { chip_bps: Some(mbit(chip)), ..Nic::unknown("not asked") }));
        let words = finding(&doc, "network.link-below-capability").map(|finding| finding.evidence.join(" "));
        let good = |told: &str| words.as_ref().is_some_and(|words| words.contains(told) && words.contains("its chip can do"));
        assert!(told.map_or(words.is_none(), good), "{name}: {words:?}");
    }
}

#[test]
fn the_kernels_log_tells_when_a_port_left_its_aggregation() {
    let event = |interface: &str, kind| LinkEvent {
        at_us: Some(Elapsed(60_000_000)),
        before_us: Some(Elapsed(180_000_000)),
        into_run_us: None,
        interface: interface.into(),
        kind,
        text: "bond0: (slave eth1): link status definitely down, disabling slave".into(),
    };
    for (name, interface, kind, up, told) in [
        ("it is down and the log says since when", "eth1", EventKind::BondPortDown, false, true),
        ("it is up again", "eth1", EventKind::BondPortDown, true, false),
        ("another port", "eth9", EventKind::BondPortDown, false, false),
    ] {
        let mut doc = links(Scope::Link, 1_000);
        bonded(&mut doc, Nas, "802.3ad", Some("layer3+4"), &[1_000, 1_000]);
        bond(&mut doc, Nas).ports[1].up = Some(up);
        doc.link(Nas).events = Outcome::Measured(vec![event(interface, kind)]);
        let words = finding(&doc, "network.lag-broken").map(|finding| finding.evidence.join(" ")).unwrap_or_default();
        assert_eq!(words.contains("3 minutes before"), told, "{name}: {words}");
    }
}

#[test]
fn the_line_is_never_that_of_a_port_without_a_link() {
    let mut doc = links(Scope::Link, 1_000);
    let mut stale = interface("eth9", InterfaceKind::Physical, 10);
    stale.carrier = Outcome::Measured(false);
    doc.link(Nas).stack.push(stale);
    let judgement = judge(&doc);
    assert!(judgement.verdict.sentence.contains("runs at 1 Gbit/s"), "{}", judgement.verdict.sentence);
}

#[test]
fn a_router_between_the_hosts_is_told_by_the_hops_or_the_gateway() {
    for (name, hops, gateway, told) in
        [("one wire", 1, false, ""), ("unknown", 0, false, ""), ("hops", 2, false, "2 hops"), ("gateway", 1, true, "192.0.2.254")]
    {
        let mut doc = links(Scope::Link, 1_000);
        doc.measurements.link.measured_mut().expect("links").hops = Outcome::Measured(hops);
        if gateway {
            doc.link(Pc).gateway = Outcome::Measured(Some([192, 0, 2, 254].into()));
        }
        let found = finding(&doc, "network.routed-or-firewalled");
        assert_eq!(found.is_some(), !told.is_empty(), "{name}");
        let Some(found) = found else { continue };
        assert_eq!(found.severity, Severity::Info, "{name}");
        assert!(found.evidence.join(" ").contains(told), "{name}: {found:?}");
        assert_eq!(judge(&doc).verdict.status, Status::Healthy, "{name}");
    }
}

#[test]
fn data_that_arrive_at_one_port_and_leave_by_another_are_told() {
    let mut doc = links(Scope::Link, 1_000);
    addressed(&mut doc, &[], &[]);
    assert_eq!(finding(&doc, "network.asymmetric-route"), None);
    doc.link(Nas).addresses = Outcome::Measured(vec![address("eth1", "192.0.2.2", 1_000), address("eth0", "192.0.2.7", 1_000)]);
    let found = finding(&doc, "network.asymmetric-route").expect("finding");
    assert_eq!(found.severity, Severity::Info);
    // A host takes its address in by any port: what was counted decides.
    assert!(found.evidence[0].contains("uploads may arrive at eth1, downloads leave by eth0"), "{found:?}");
    let loaded = |share: f64| {
        let mut doc = doc.clone();
        doc.measurements.throughput = healthy(1_000).measurements.throughput;
        doc.passes(Direction::Upload, |pass| pass.counters_nas = grown("rx_bytes", (pass.bytes.0 as f64 * share) as u64));
        finding(&doc, "network.asymmetric-route").map(|found| found.evidence[0].clone())
    };
    assert!(loaded(0.01).is_some_and(|text| text.contains("uploads arrive at eth1")));
    assert_eq!(loaded(1.02), None);
}
