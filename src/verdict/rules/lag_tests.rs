//! Aggregations: whose hash it is, chance against policy, and what the structure tells.

use std::collections::BTreeMap;

use super::super::scenario::{Bend as _, bond, bonded, healthy, mbit};
use super::super::seen::Seen;
use super::lag_faults::{faults, pair};
use super::{Hit, check_all};
use crate::model::flows::{FlowCheck, FlowSpread, PlannedFlow, PortBytes};
use crate::model::link::{Bond, BondPort, Counters, CountersByInterface, LacpEnd, Neighbour};
use crate::model::outcome::Outcome;
use crate::model::throughput::Pass;
use crate::model::{Direction, Document, Role};
use crate::units::BitRate;

fn lag_hits(doc: &Document) -> Vec<Hit> {
    let seen = Seen::new(doc);
    check_all(&seen).into_iter().filter(|hit| hit.code.starts_with("network.lag-")).collect()
}

fn counted(ports: [u64; 2], counter: &str) -> Outcome<CountersByInterface> {
    let of = |bytes: u64| Counters(BTreeMap::from([(counter.to_owned(), bytes)]));
    Outcome::Measured(BTreeMap::from([("eth0".to_owned(), of(ports[0])), ("eth1".to_owned(), of(ports[1]))]))
}

/// Two bonds of two 1G ports, layer3+4, several streams at one link's rate towards the NAS; the ports' bytes as given.
fn at_one_link(sent: Option<[u64; 2]>, received: Option<[u64; 2]>) -> Document {
    let mut doc = healthy(1_000);
    for role in [Role::Pc, Role::Nas] {
        bonded(&mut doc, role, "802.3ad", Some("layer3+4"), &[1_000, 1_000]);
    }
    let multi = doc.tcp().upload.multi.measured_mut().expect("a pass");
    multi.goodput_bps = mbit(940);
    if let Some(ports) = sent {
        multi.counters_pc = counted(ports, "tx_bytes");
    }
    if let Some(ports) = received {
        multi.counters_nas = counted(ports, "rx_bytes");
    }
    doc
}

fn spread_of(needed: Option<u32>) -> FlowSpread {
    FlowSpread {
        interface: "bond0".into(),
        policy: "layer3+4".into(),
        ports: vec!["eth0".into(), "eth1".into()],
        flows: vec![PlannedFlow {
            what: "upload".into(),
            local: ([192, 0, 2, 1], 1).into(),
            remote: ([192, 0, 2, 2], 2).into(),
            port: Outcome::Measured("eth0".into()),
        }],
        flows_for_all: needed,
        reachable_ports: 2,
        says: Vec::new(),
    }
}

fn uneven(doc: &Document) -> Option<Hit> {
    lag_hits(doc).into_iter().find(|hit| hit.code == "network.lag-uneven-hash" && hit.direction == Some(Direction::Upload))
}

const MB: u64 = 1_000_000;

#[test]
fn one_full_port_at_the_sender_is_chance_where_the_policy_looks_at_ports() {
    let mut doc = at_one_link(Some([490 * MB, 9 * MB]), None);
    doc.link(Role::Pc).flows = Outcome::Measured(Box::new(spread_of(Some(17))));
    let multi = doc.tcp().upload.multi.measured_mut().expect("a pass");
    let sent = |port: &str, bytes| PortBytes { port: port.into(), bytes, predicted: bytes };
    let check = FlowCheck { interface: "bond0".into(), sent: vec![sent("eth0", 490 * MB)], agrees: Outcome::Measured(true) };
    multi.flows = Outcome::Measured(Box::new(check));
    let hit = uneven(&doc).expect("a hit");
    assert!(hit.title.as_deref().is_some_and(|title| title.contains("happened to fall on one link")), "{:?}", hit.title);
    assert!(hit.evidence.iter().any(|line| line.contains("eth0") && line.contains("98 %")), "{:?}", hit.evidence);
    assert!(hit.evidence.iter().any(|line| line.contains("foretold")), "{:?}", hit.evidence);
    assert!(hit.advice.iter().any(|line| line.contains("17 reach all links")), "{:?}", hit.advice);
}

#[test]
fn even_ports_at_the_sender_and_one_full_port_at_the_receiver_blame_the_switch() {
    let hit = uneven(&at_one_link(Some([250 * MB, 249 * MB]), Some([495 * MB, 5 * MB]))).expect("a hit");
    assert_eq!(hit.place, crate::model::finding::Where::Path);
    assert!(hit.title.as_deref().is_some_and(|title| title.contains("The switch sends the connections to the NAS by one link")));
    assert!(hit.evidence.iter().any(|line| line.contains("NAS's ports received")), "{:?}", hit.evidence);
}

#[test]
fn nothing_is_said_of_a_hash_without_the_bytes_of_the_ports() {
    for (name, sent, received) in [
        ("no counters", None, None),
        ("only the receiver's", None, Some([495 * MB, 5 * MB])),
        ("even at both ends", Some([250 * MB, 249 * MB]), Some([251 * MB, 248 * MB])),
        ("counters of a fraction of the pass", Some([15 * MB, 0]), None),
    ] {
        assert!(uneven(&at_one_link(sent, received)).is_none(), "{name}");
    }
}

#[test]
fn no_hash_is_blamed_where_one_port_of_the_receiver_takes_in_all() {
    let mut doc = at_one_link(Some([490 * MB, 9 * MB]), None);
    bond(&mut doc, Role::Pc).hash_policy = Some("layer2+3".into());
    assert!(uneven(&doc).is_some());
    for (port, active) in bond(&mut doc, Role::Nas).ports.iter_mut().zip([true, false]) {
        port.active = Some(active);
    }
    assert!(uneven(&doc).is_none());
}

#[test]
fn a_policy_that_leaves_ports_out_is_named_and_proved_by_the_ports() {
    let mut doc = at_one_link(Some([490 * MB, 9 * MB]), None);
    bond(&mut doc, Role::Pc).hash_policy = Some("layer2+3".into());
    let hit = uneven(&doc).expect("a hit");
    assert!(hit.evidence.iter().any(|line| line.contains("layer2+3")) && hit.evidence.iter().any(|line| line.contains("98 %")));
    // Where the ports are even all the same, this policy is not what holds it back.
    let mut doc = at_one_link(Some([250 * MB, 249 * MB]), None);
    bond(&mut doc, Role::Pc).hash_policy = Some("layer2+3".into());
    assert!(uneven(&doc).is_none());
}

#[test]
fn modes_that_never_add_their_links_say_so_and_blame_nothing() {
    for (mode, policy, code, said) in [
        ("active-backup", None, "network.lag-one-link", "only eth1 carries traffic"),
        ("balance-alb", None, "network.lag-one-link", "balance-alb"),
        ("balance-xor", Some("layer2+3"), "network.lag-static", "static (balance-xor)"),
        ("broadcast", None, "network.lag-static", "static (broadcast)"),
    ] {
        let mut doc = healthy(1_000);
        bonded(&mut doc, Role::Nas, mode, policy, &[1_000, 1_000]);
        if mode == "active-backup" {
            let bond = bond(&mut doc, Role::Nas);
            (bond.ports[0].active, bond.ports[1].active) = (Some(false), Some(true));
        }
        let hits = lag_hits(&doc);
        let hit = hits.iter().find(|hit| hit.code == code).unwrap_or_else(|| panic!("{mode}"));
        assert!(matches!(hit.explains, super::Explains::Info), "{mode}");
        assert!(hit.evidence.iter().any(|line| line.contains(said)), "{mode}: {:?}", hit.evidence);
    }
}

fn two(mode: &str, change: impl Fn(&mut Bond)) -> Bond {
    let port = |name: &str, aggregator| BondPort {
        name: name.into(),
        up: Some(true),
        speed_bps: Some(BitRate::from_mbit(1_000)),
        aggregator: Some(aggregator),
        actor_state: Some(61),
        partner_state: Some(61),
        ..BondPort::default()
    };
    let mut bond = Bond {
        mode: mode.into(),
        partner_mac: Some("02:00:00:00:09:01".into()),
        ports: vec![port("eth0", 1), port("eth1", 1)],
        ..Bond::default()
    };
    change(&mut bond);
    bond
}

#[test]
fn faults_name_their_cause_where_it_is_known() {
    let partner = |bond: &mut Bond, systems: [&str; 2], keys: [u16; 2]| {
        for ((port, system), key) in bond.ports.iter_mut().zip(systems).zip(keys) {
            (port.partner_system, port.partner_key) = (Some(system.into()), Some(key));
        }
        bond.ports[1].aggregator = Some(2);
    };
    let (one, other) = ("02:00:00:00:09:01", "02:00:00:00:09:02");
    let rows: [(&str, Bond, &[&str]); 9] = [
        ("healthy", two("802.3ad", |_| {}), &[]),
        ("two switches", two("802.3ad", |bond| partner(bond, [one, other], [17, 17])), &["different LACP partners", "no MLAG"]),
        ("two groups", two("802.3ad", |bond| partner(bond, [one, one], [17, 18])), &["different groups (keys 17 and 18)"]),
        ("unknown why", two("802.3ad", |bond| bond.ports[1].aggregator = Some(2)), &["different aggregators"]),
        (
            "a port that hears nothing",
            two("802.3ad", |bond| bond.ports[1].actor_state = Some(69)),
            &["eth1: LACP state 69", "no LACPDU"],
        ),
        (
            "a partner that does not take it in",
            two("802.3ad", |bond| bond.ports[1].partner_state = Some(5)),
            &["partner's LACP state is 5"],
        ),
        ("two speeds", two("802.3ad", |bond| bond.ports[1].speed_bps = Some(BitRate::from_mbit(100))), &["different speeds"]),
        ("a silent partner", two("802.3ad", |bond| bond.partner_mac = Some("00:00:00:00:00:00".into())), &["No LACP partner"]),
        ("a static one without a word of the switch", two("balance-xor", |_| {}), &[]),
    ];
    for (name, bond, expected) in rows {
        let found = faults(&bond, None).join(" ");
        assert_eq!(found.is_empty(), expected.is_empty(), "{name}: {found}");
        for part in expected {
            assert!(found.contains(part), "{name}: {found}");
        }
    }
}

#[test]
fn what_the_switch_says_of_its_port_is_held_against_the_aggregation() {
    let end = || LacpEnd { system: "02:00:00:00:09:01".into(), key: 17, port: 1, state: 71 };
    let speaks = Neighbour { interface: "eth1".into(), lacp: Some([end(), end()]), ..Neighbour::default() };
    let alone = Neighbour { interface: "eth1".into(), aggregation: Some([true, false]), ..Neighbour::default() };
    let joined = Neighbour { interface: "eth1".into(), aggregation: Some([true, true]), ..Neighbour::default() };
    let elsewhere = Neighbour { interface: "eth9".into(), ..alone.clone() };
    for (name, mode, heard, said) in [
        ("LACP at a static one", "balance-xor", &speaks, Some("speaks LACP at eth1")),
        ("none at the switch", "balance-rr", &alone, Some("in no aggregation")),
        ("one at the switch", "balance-xor", &joined, None),
        ("another port", "balance-xor", &elsewhere, None),
        ("active-backup needs none", "active-backup", &alone, None),
        ("LACP that works", "802.3ad", &alone, None),
    ] {
        let mut doc = healthy(1_000);
        doc.link(Role::Nas).neighbours = Outcome::Measured(vec![heard.clone()]);
        let found = faults(&two(mode, |_| {}), Some(&*doc.link(Role::Nas)));
        assert_eq!(found.len(), usize::from(said.is_some()), "{name}: {found:?}");
        assert!(said.is_none_or(|part| found[0].contains(part)), "{name}: {found:?}");
    }
}

#[test]
fn different_devices_at_the_cables_tell_why_only_one_aggregator_works() {
    let device = |port: &str, name: &str| Neighbour { interface: port.into(), system: Some(name.into()), ..Neighbour::default() };
    let apart = two("802.3ad", |bond| bond.ports[1].aggregator = Some(2));
    let mut doc = healthy(1_000);
    doc.link(Role::Nas).neighbours = Outcome::Measured(vec![device("eth0", "left"), device("eth1", "right")]);
    let found = faults(&apart, Some(&*doc.link(Role::Nas)));
    assert!(found[0].contains("different devices (left, right)"), "{found:?}");
    assert_eq!(pair(&apart, Some(&*doc.link(Role::Nas))), None);
    // One aggregator over two devices is what a pair that acts as one gives.
    let joined = two("802.3ad", |bond| bond.active_aggregator = Some(1));
    assert!(pair(&joined, Some(&*doc.link(Role::Nas))).is_some_and(|said| said.contains("MLAG: left, right")));
    assert_eq!(pair(&joined, None), None);
    assert!(faults(&two("802.3ad", |_| {}), Some(&*doc.link(Role::Nas))).is_empty());
}

#[test]
fn round_robin_is_to_blame_by_what_older_kernels_tell_too() {
    let run = |reordering: u32| {
        let mut doc = healthy(1_000);
        for role in [Role::Pc, Role::Nas] {
            bonded(&mut doc, role, "balance-rr", None, &[1_000, 1_000]);
        }
        doc.both(|pass: &mut Pass| pass.goodput_bps = mbit(560));
        doc.stats(Direction::Upload, |stream| stream.reordering = Some(reordering));
        let hits = lag_hits(&doc);
        let hit = hits.iter().find(|hit| hit.code == "network.lag-reordering").expect("a hit");
        matches!(hit.explains, super::Explains::Network)
    };
    assert!(run(40), "packets came 40 segments late");
    assert!(!run(3), "3 is what every connection begins with");
}

#[test]
fn a_broken_aggregation_is_a_fault_where_links_are_the_question() {
    for (mode, active, explains, advice) in [
        ("802.3ad", None, super::Explains::Fault, "Configure LACP"),
        ("balance-xor", None, super::Explains::Fault, "same kind of aggregation"),
        ("active-backup", Some(false), super::Explains::Info, "cable and the link of eth1"),
        ("active-backup", Some(true), super::Explains::Fault, "cable and the link of eth1"),
        ("balance-alb", None, super::Explains::Info, "cable and the link of eth1"),
        ("balance-tlb", None, super::Explains::Info, "cable and the link of eth1"),
    ] {
        let mut doc = healthy(1_000);
        doc.plan.scope = crate::model::plan::Scope::Link;
        doc.measurements.throughput = Outcome::skipped("only links");
        bonded(&mut doc, Role::Nas, mode, None, &[1_000, 1_000]);
        let port = &mut bond(&mut doc, Role::Nas).ports[1];
        (port.up, port.active) = (Some(false), active);
        let hits = lag_hits(&doc);
        let hit = hits.iter().find(|hit| hit.code == "network.lag-broken").unwrap_or_else(|| panic!("{mode}"));
        assert_eq!(hit.explains, explains, "{mode} {active:?}");
        assert!(hit.advice.join(" ").contains(advice), "{mode}: {:?}", hit.advice);
        assert_eq!(hit.advice.join(" ").contains("onfigure"), matches!(mode, "802.3ad" | "balance-xor"), "{mode}");
        assert!(hit.evidence.join(" ").contains("Without a link: eth1"), "{mode}: {:?}", hit.evidence);
    }
}
