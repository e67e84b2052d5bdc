//! What the answer about links says, and what it must not.

use super::super::judge;
use super::super::scenario::*;
use crate::model::document::Measurements;
use crate::model::finding::{Confidence, Status};
use crate::model::link::{Bond, BondPort, InterfaceKind, Watched};
use crate::model::outcome::Outcome;
use crate::model::plan::Scope;
use crate::model::{Direction, Document, Role};
use crate::units::Elapsed;

use Role::{Nas, Pc};

/// Only links, with a load of a second where `loaded`.
fn links(scope: Scope, line_mbit: u64, loaded: bool) -> Document {
    let mut doc = healthy(line_mbit);
    doc.plan.scope = scope;
    let Measurements { link, throughput, .. } = doc.measurements;
    let rest = Measurements::none("`weaklink link` looks at the links only");
    let throughput = if loaded { throughput } else { Outcome::skipped("not asked for (--no-load)") };
    doc.measurements = Measurements { link, throughput, ..rest };
    if scope != Scope::Link {
        doc.measurements.link.measured_mut().expect("links").nas = Outcome::skipped("nobody there");
    }
    doc
}

#[test]
fn a_port_without_a_link_is_the_answer_and_no_question_about_its_speed() {
    for scope in [Scope::Link, Scope::LinkWithoutAgent] {
        let mut doc = links(scope, 1_000, false);
        doc.port(Pc).carrier = Outcome::Measured(false);
        let verdict = judge(&doc).verdict;
        assert_eq!(verdict.code.to_string(), "network.no-link", "{}", verdict.sentence);
    }
}

#[test]
fn a_figure_that_cannot_be_is_never_healthy() {
    let mut doc = links(Scope::Link, 1_000, true);
    doc.rate(Direction::Upload, 47_000);
    let verdict = judge(&doc).verdict;
    assert_eq!((verdict.status, verdict.code.to_string().as_str()), (Status::Inconclusive, "none.tool-limit"));
}

#[test]
fn each_direction_is_told_and_the_slower_one_decides() {
    let mut doc = links(Scope::Link, 1_000, true);
    let verdict = judge(&doc).verdict;
    assert!(verdict.sentence.contains("939 Mbit/s PC → NAS and 939 Mbit/s NAS → PC"), "{}", verdict.sentence);
    assert_eq!((verdict.status, verdict.confidence), (Status::Healthy, Confidence::High));
    doc.rate(Direction::Upload, 300);
    let verdict = judge(&doc).verdict;
    assert_eq!(verdict.status, Status::Inconclusive, "{}", verdict.sentence);
    assert!(verdict.sentence.starts_with("Inconclusive: TCP carries less than the ports:"), "{}", verdict.sentence);
}

#[test]
fn an_end_that_was_not_looked_at_is_not_called_healthy_outright() {
    let whole = judge(&links(Scope::Link, 1_000, true)).verdict.sentence;
    assert!(whole.starts_with("Healthy: ") && !whole.contains("not looked at"), "{whole}");
    let mut doc = links(Scope::LinkWithoutAgent, 1_000, false);
    doc.measurements.link.measured_mut().expect("links").nas = Outcome::skipped("no agent took part");
    let alone = judge(&doc).verdict;
    assert!(alone.sentence.starts_with("Healthy as far as was looked: "), "{}", alone.sentence);
    assert!(alone.sentence.ends_with("up to the NAS, was not looked at."), "{}", alone.sentence);
    assert_eq!(alone.confidence, Confidence::Medium);
}

#[test]
fn a_hash_that_sees_one_connection_leaves_one_port_of_the_line() {
    let bonded = |policy: &str| {
        let mut doc = links(Scope::Link, 1_000, false);
        for role in [Pc, Nas] {
            let port = |name: &str| BondPort {
                name: name.into(),
                up: Some(true),
                active: Some(true),
                speed_bps: Some(mbit(1_000)),
                ..BondPort::default()
            };
            let policy = if role == Nas { policy } else { "layer3+4" };
            let mut top = interface("bond0", InterfaceKind::Bond, 2_000);
            top.bond = Some(Bond {
                mode: "802.3ad".into(),
                hash_policy: Some(policy.into()),
                ports: vec![port("eth0"), port("eth1")],
                ..Bond::default()
            });
            doc.link(role).stack.insert(0, top);
        }
        judge(&doc).verdict.sentence
    };
    for (policy, told) in [("layer2", true), ("layer2+3", true), ("vlan+srcmac", true), ("layer3+4", false)] {
        let sentence = bonded(policy);
        assert!(sentence.contains("The line carries 2 Gbit/s"), "{sentence}");
        let words = format!("NAS → PC the NAS's bond0 sends all of it by one of its ports ({policy}): at most 941 Mbit/s");
        assert_eq!(sentence.contains(&words), told, "{sentence}");
        assert!(!sentence.contains("PC → NAS the PC's"), "{sentence}");
    }
}

#[test]
fn a_break_in_the_load_is_told_of_links_too_and_a_rhythm_is_not() {
    for (stall_us, code) in [(1_400_000, "network.periodic-stalls"), (400_000, "none.links-consistent")] {
        let mut doc = links(Scope::Link, 1_000, true);
        doc.passes(Direction::Upload, |pass| {
            pass.shape.longest_stall_us = Elapsed(stall_us);
            pass.shape.empty_bins = (stall_us / pass.bins.interval_us.0) as u32;
        });
        let verdict = judge(&doc).verdict;
        assert_eq!(verdict.code.to_string(), code, "{}", verdict.sentence);
    }
}

#[test]
fn what_was_stated_is_about_a_way_to_a_host_and_hides_no_port_of_this_one() {
    let mut doc = links(Scope::LinkOfHost, 100, false);
    doc.modes(Pc, &[100, 1_000], &[100, 1_000], &[100, 1_000]);
    doc.plan.stated_pc_bps = Some(mbit(1_000));
    assert_eq!(judge(&doc).verdict.code.to_string(), "network.link-below-capability");
}

#[test]
fn ports_that_tell_no_modes_make_nobody_sure() {
    let mut doc = links(Scope::LinkOfHost, 100, false);
    doc.port(Pc).modes = Outcome::skipped("an old driver");
    let verdict = judge(&doc).verdict;
    assert_eq!((verdict.status, verdict.confidence), (Status::Healthy, Confidence::Medium), "{}", verdict.sentence);
}

#[test]
fn a_host_alone_is_no_pc_and_all_of_its_ports_are_judged() {
    let mut doc = links(Scope::LinkOfHost, 1_000, false);
    for at in 1..20 {
        doc.link(Pc).stack.push(interface(&format!("eth{at}"), InterfaceKind::Physical, 1_000));
    }
    doc.modes(Pc, &[1_000, 2_500], &[1_000, 2_500], &[100, 1_000]);
    let judgement = judge(&doc);
    assert_eq!(judgement.verdict.code.to_string(), "network.link-below-capability");
    assert!(judgement.verdict.sentence.contains("This host's port eth19"), "{}", judgement.verdict.sentence);
    assert!(judgement.findings.iter().all(|finding| !finding.evidence.concat().contains("PC")), "{:?}", judgement.findings);
}

#[test]
fn a_port_that_was_down_at_the_look_is_judged_by_what_it_counted() {
    let mut doc = links(Scope::LinkOfHost, 1_000, false);
    doc.port(Pc).carrier = Outcome::Measured(false);
    let section = doc.measurements.link.measured_mut().expect("links");
    let counted = grown("rx_crc_errors", 5_000);
    section.watched =
        Outcome::Measured(Watched { elapsed_us: Elapsed(5_000_000), pc: counted, nas: Outcome::skipped("nobody there") });
    assert_eq!(judge(&doc).verdict.code.to_string(), "network.cable-errors");
}

#[test]
fn a_fault_of_a_port_says_nothing_about_sizes_of_packets() {
    let mut doc = links(Scope::Link, 2_500, true);
    doc.port(Nas).bus = bus("usb", 480, 5_000, "USB 480 Mbit/s");
    doc.rate(Direction::Upload, 380);
    doc.rate(Direction::Download, 380);
    let verdict = judge(&doc).verdict;
    assert_eq!(verdict.code.to_string(), "network.nic-bus", "{}", verdict.sentence);
    assert!(!verdict.sentence.contains("packets that fit"), "{}", verdict.sentence);
}
