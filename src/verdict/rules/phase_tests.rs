//! What was counted during copies and disk tests, and the kernel's log during the run, as evidence.

use std::collections::BTreeMap;

use super::super::scenario::*;
use super::super::{Judgement, judge};
use crate::model::copy::{FileSet, LaneKind, Place};
use crate::model::finding::{Severity, Where};
use crate::model::link::{Counters, CountersByInterface};
use crate::model::link_event::{EventKind, LinkEvent};
use crate::model::outcome::{Fact, Outcome, Source};
use crate::model::phase::PhaseCounters;
use crate::model::storage::DeviceKind;
use crate::model::{Direction, Document, Role};
use crate::units::{BitRate, Elapsed};

use Direction::Upload;
use Role::{Nas, Pc};

const MEMORY: (Place, Place) = (Place::Memory, Place::Memory);

fn counters(interface: &str, all: &[(&str, u64)]) -> Outcome<CountersByInterface> {
    let counters = all.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    Outcome::Measured(BTreeMap::from([(interface.to_owned(), Counters(counters))]))
}

/// What the NAS counted within five seconds; the PC counted nothing.
fn at_nas(all: &[(&str, u64)]) -> PhaseCounters {
    PhaseCounters { elapsed_us: Elapsed(5_000_000), pc: counters("eth0", &[]), nas: counters("eth0", all) }
}

/// A line of 1 Gbit/s that TCP fills, and an SMB upload at this many MB/s over which the NAS counted this beside its traffic.
fn smb(mb: f64, counted: &[(&str, u64)]) -> Document {
    let mut doc = healthy(1_000);
    let mut rung = rung(Upload, MEMORY, FileSet::Large, mb);
    let moved = (mb * 4e6) as u64;
    let traffic = [("rx_bytes", moved + moved / 20), ("rx_packets", moved / 1_448)];
    rung.counters = Some(Box::new(at_nas(&counted.iter().copied().chain(traffic).collect::<Vec<_>>())));
    doc.lane(LaneKind::Smb, "smb 3.1.1", &[]).rungs.push(rung);
    doc
}

fn code(doc: &Document) -> String {
    judge(doc).verdict.code.to_string()
}

fn found<'a>(judgement: &'a Judgement, code: &str) -> Vec<&'a crate::model::finding::Finding> {
    judgement.findings.iter().filter(|finding| finding.code.to_string() == code).collect()
}

/// Everything that the findings of one code say.
fn said(judgement: &Judgement, code: &str) -> String {
    found(judgement, code).into_iter().flat_map(|finding| finding.evidence.clone()).collect::<Vec<_>>().join(" ")
}

#[test]
fn damaged_frames_during_a_copy_or_the_disk_tests_are_told_with_the_phase() {
    let doc = smb(110.0, &[("rx_crc_errors", 40)]);
    let judgement = judge(&doc);
    // A few of many at full speed: worth a word.
    assert_eq!(judgement.verdict.code.to_string(), "none.at-line-rate");
    let told = found(&judgement, "network.cable-errors");
    assert_eq!(told.iter().map(|it| (it.severity, it.r#where)).collect::<Vec<_>>(), [(Severity::Info, Where::Nas)]);
    let words = said(&judgement, "network.cable-errors");
    assert!(
        words.contains("40 damaged frames arrived at the NAS during the SMB copy PC → NAS (eth0 rx_crc_errors +40)"),
        "{words}"
    );

    let mut doc = healthy(1_000);
    doc.measurements.storage.measured_mut().unwrap().counters = Some(Box::new(at_nas(&[("rx_crc_errors", 12)])));
    let words = said(&judge(&doc), "network.cable-errors");
    assert!(words.contains("during the disk tests"), "{words}");
    // Fewer can be a single disturbance, and damage of other names is none.
    for counted in [("rx_crc_errors", 9), ("rx_missed_errors", 900), ("rx_csum_offload_errors", 900)] {
        assert_eq!(said(&judge(&smb(110.0, &[counted])), "network.cable-errors"), "", "{counted:?}");
    }
}

#[test]
fn damage_that_passes_and_copies_show_is_one_finding() {
    let mut doc = smb(110.0, &[("rx_crc_errors", 40)]);
    doc.passes(Upload, |pass| pass.counters_nas = counters("eth0", &[("rx_crc_errors", 900)]));
    let judgement = judge(&doc);
    assert_eq!(found(&judgement, "network.cable-errors").len(), 1);
    let words = said(&judgement, "network.cable-errors");
    assert!(words.contains("900 damaged frames") && words.contains("during the SMB copy"), "{words}");
}

#[test]
fn a_copy_is_slow_by_damage_only_where_much_of_it_was_damaged() {
    let much = judge(&smb(30.0, &[("rx_crc_errors", 900)]));
    assert_eq!(much.verdict.code.to_string(), "network.cable-errors");
    assert_eq!((much.verdict.lane, much.verdict.direction), (Some(LaneKind::Smb), Some(Upload)));
    assert_ne!(code(&smb(30.0, &[("rx_crc_errors", 20)])), "network.cable-errors");
}

#[test]
fn a_copy_by_another_port_is_not_explained_by_what_this_one_counted() {
    for name in ["rx_crc_errors", "tx_pause_frames", "rx_missed_errors"] {
        let mut doc = smb(30.0, &[]);
        let rung = &mut doc.measurements.copy.measured_mut().unwrap().lanes.last_mut().unwrap().rungs[0];
        rung.counters = Some(Box::new(at_nas(&[(name, 90_000), ("rx_bytes", 9_000), ("rx_packets", 90)])));
        let judgement = judge(&doc);
        assert!(
            judgement.findings.iter().all(|it| it.severity == Severity::Info
                || it.lane != Some(LaneKind::Smb)
                || it.code.to_string().starts_with("protocol")),
            "{name}: {judgement:?}"
        );
    }
}

#[test]
fn pauses_during_a_slow_copy_explain_it_and_those_of_a_fast_one_do_not() {
    let slow = judge(&smb(30.0, &[("tx_pause_frames", 90_000)]));
    assert_eq!(slow.verdict.code.to_string(), "network.flow-control");
    assert_eq!((slow.verdict.r#where, slow.verdict.lane), (Some(Where::Nas), Some(LaneKind::Smb)));
    let words = said(&slow, "network.flow-control");
    assert!(
        words.contains("The NAS sent 90000 pause frames during the SMB copy PC → NAS (eth0 tx_pause_frames +90000)"),
        "{words}"
    );
    for (why, mb, counted) in [
        ("at full speed", 110.0, ("tx_pause_frames", 90_000)),
        ("a few", 30.0, ("tx_pause_frames", 90)),
        // The receiver was paused: that holds the acknowledgements up, not the data.
        ("the other way", 30.0, ("rx_pause_frames", 90_000)),
    ] {
        assert_eq!(said(&judge(&smb(mb, &[counted])), "network.flow-control"), "", "{why}");
    }
    // A full server process explains more than the pauses that it causes.
    let mut doc = smb(30.0, &[("tx_pause_frames", 90_000)]);
    let rung = doc.measurements.copy.measured_mut().unwrap().lanes.last_mut().unwrap().rungs.pop().unwrap();
    let rung = burning(rung, Nas, "smbd", 0.99);
    doc.measurements.copy.measured_mut().unwrap().lanes.last_mut().unwrap().rungs.push(rung);
    assert_eq!(code(&doc), "cpu.smb-server-core");
}

#[test]
fn a_port_without_room_during_a_slow_copy_is_told_unless_a_core_was_full() {
    let judgement = judge(&smb(30.0, &[("rx_missed_errors", 20_000)]));
    assert_eq!(judgement.verdict.code.to_string(), "network.nic-driver-or-offload");
    let words = said(&judgement, "network.nic-driver-or-offload");
    assert!(words.contains("During the SMB copy PC → NAS: 20000 frames"), "{words}");
    let mut doc = smb(30.0, &[("rx_missed_errors", 20_000)]);
    let rung = &mut doc.measurements.copy.measured_mut().unwrap().lanes.last_mut().unwrap().rungs[0];
    rung.result.measured_mut().unwrap().cpu_nas = Outcome::Measured(cpu_window(0.99));
    assert_eq!(said(&judge(&doc), "network.nic-driver-or-offload"), "");
}

#[test]
fn traffic_while_nothing_was_sent_is_others() {
    let busy = |bytes| {
        let mut doc = healthy(1_000);
        doc.measurements.storage.measured_mut().unwrap().counters = Some(Box::new(at_nas(&[("rx_bytes", bytes)])));
        doc
    };
    let words = said(&judge(&busy(200_000_000)), "network.busy-link");
    assert!(
        words.contains("While the disks were tested and weaklink sent nothing, the NAS's port received 320 Mbit/s"),
        "{words}"
    );
    for bytes in [5_000_000, 90_000_000_000] {
        assert_eq!(said(&judge(&busy(bytes)), "network.busy-link"), "", "{bytes}");
    }
    // A directory on another machine moves its data over the port.
    for kind in [DeviceKind::Network, DeviceKind::Opaque] {
        let mut doc = busy(200_000_000);
        doc.device(Nas).kind = kind;
        assert_eq!(said(&judge(&doc), "network.busy-link"), "", "{kind:?}");
    }
}

#[test]
fn changes_of_the_link_add_up_over_the_phases() {
    let mut doc = smb(110.0, &[("carrier_changes", 2)]);
    let judgement = judge(&doc);
    assert_eq!(judgement.verdict.code.to_string(), "none.at-line-rate");
    let words = said(&judgement, "network.link-unstable");
    assert!(words.contains("changed once while the SMB copy PC → NAS ran (eth0 carrier_changes +2)"), "{words}");
    doc.measurements.storage.measured_mut().unwrap().counters = Some(Box::new(at_nas(&[("carrier_changes", 2)])));
    let judgement = judge(&doc);
    assert_eq!(judgement.verdict.code.to_string(), "network.link-unstable");
    let words = said(&judgement, "network.link-unstable");
    assert!(words.contains("while the disk tests ran (eth0 carrier_changes +2)") && words.contains("the SMB copy"), "{words}");
}

/// Lines about eth0 that were written so many seconds into the run.
fn in_run(events: &[(u64, EventKind)]) -> Outcome<Vec<LinkEvent>> {
    let event = |(into, kind): &(u64, EventKind)| LinkEvent {
        at_us: Some(Elapsed((10_000 + into) * 1_000_000)),
        before_us: None,
        into_run_us: Some(Elapsed(into * 1_000_000)),
        interface: "eth0".into(),
        kind: *kind,
        text: "r8169 0000:03:00.0 eth0: Link is Down".into(),
    };
    Outcome::Measured(events.iter().map(event).collect())
}

const UP: EventKind = EventKind::Up(Some(BitRate(1_000_000_000)));

#[test]
fn the_log_tells_when_the_link_went_down_during_the_run() {
    let mut doc = healthy(1_000);
    doc.link(Nas).events = in_run(&[(12, EventKind::Down), (14, UP), (31, EventKind::Down), (33, UP)]);
    let judgement = judge(&doc);
    assert_eq!(judgement.verdict.code.to_string(), "network.link-unstable");
    let words = said(&judgement, "network.link-unstable");
    assert!(words.contains("the link of eth0 went down twice during this run, 12 s and 31 s into it."), "{words}");
    // The ports' counters of the same breaks are a second kind of evidence, not two more breaks.
    doc.tcp().upload.multi.measured_mut().unwrap().counters_nas = counters("eth0", &[("carrier_changes", 4)]);
    let words = said(&judge(&doc), "network.link-unstable");
    assert!(words.contains("twice during this run") && words.contains("while PC → NAS was measured"), "{words}");
    // Once is worth a word, by both.
    doc.link(Nas).events = in_run(&[(12, EventKind::Down), (14, UP)]);
    doc.tcp().upload.multi.measured_mut().unwrap().counters_nas = counters("eth0", &[("carrier_changes", 2)]);
    let judgement = judge(&doc);
    assert_eq!(judgement.verdict.code.to_string(), "none.at-line-rate");
    let told = found(&judgement, "network.link-unstable");
    assert_eq!(told.iter().map(|it| it.severity).collect::<Vec<_>>(), [Severity::Info]);
    assert!(said(&judgement, "network.link-unstable").contains("went down once during this run, 12 s into it"));
}

#[test]
fn breaks_before_and_during_the_run_are_one_burst() {
    let mut doc = healthy(1_000);
    let mut events = in_run(&[(0, EventKind::Down), (1, UP), (3, EventKind::Down), (4, UP), (20, EventKind::Down), (21, UP)]);
    for event in &mut events.measured_mut().unwrap()[..4] {
        event.into_run_us = None;
        event.before_us = Some(Elapsed(5_000_000));
    }
    doc.link(Nas).events = events;
    let judgement = judge(&doc);
    assert_eq!(judgement.verdict.code.to_string(), "network.link-unstable");
    let words = said(&judgement, "network.link-unstable");
    assert!(words.contains("broke 3 times within 20 s, the last one 20 s into the run"), "{words}");
}

#[test]
fn a_link_that_comes_back_slower_makes_two_lines_of_one() {
    let slower = EventKind::Up(Some(BitRate::from_mbit(100)));
    let mut doc = healthy(1_000);
    doc.link(Nas).events = in_run(&[(12, EventKind::Down), (14, slower)]);
    let judgement = judge(&doc);
    assert_eq!(judgement.verdict.code.to_string(), "network.link-unstable");
    let words = said(&judgement, "network.link-unstable");
    assert!(words.contains("ran at 1 Gbit/s when the run began and came back at 100 Mbit/s, 14 s into the run"), "{words}");
    // It came back as it was, in the end; or the speed changed before the run.
    doc.link(Nas).events = in_run(&[(12, EventKind::Down), (14, slower), (20, UP)]);
    assert_eq!(code(&doc), "none.at-line-rate");
}

#[test]
fn a_port_in_trouble_during_the_run_is_a_fault_with_its_moment() {
    for kind in [EventKind::Overheated, EventKind::TxTimeout, EventKind::Reset] {
        let mut doc = healthy(1_000);
        doc.link(Pc).events = in_run(&[(7, kind)]);
        let judgement = judge(&doc);
        assert_eq!(judgement.verdict.code.to_string(), "network.nic-driver-or-offload", "{kind:?}");
        assert!(said(&judgement, "network.nic-driver-or-offload").contains("The kernel's log, 7 s into the run: "), "{kind:?}");
    }
}

#[test]
fn very_many_copies_with_very_many_counters_are_judged_in_bounded_time() {
    let mut doc = smb(30.0, &[("rx_crc_errors", 40), ("tx_pause_frames", 90_000)]);
    let rungs = &mut doc.measurements.copy.measured_mut().unwrap().lanes.last_mut().unwrap().rungs;
    let one = rungs[0].clone();
    rungs.extend(std::iter::repeat_n(one, 3_000));
    doc.port(Nas).driver = Outcome::Measured(Fact::new("\u{1b}[2J".to_owned(), Source::Sysfs));
    assert!(said(&judge(&doc), "network.cable-errors").contains("in 255 more copies or disk tests"));
}
