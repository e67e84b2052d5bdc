//! Documents about links alone, and the addresses of both hosts.

use super::super::judge;
use super::super::scenario::*;
use crate::model::copy::LaneKind;
use crate::model::document::Measurements;
use crate::model::finding::{Severity, Status};
use crate::model::link::{Duplex, HostAddress, InterfaceKind, Watched};
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
