//! Counters by their drivers' names, and the kernel's log, as evidence of the rules that read them.

use std::collections::BTreeMap;

use super::super::scenario::*;
use super::super::{Judgement, judge};
use crate::model::finding::{Severity, Where};
use crate::model::link::{BusPart, Counters, Duplex, LinkModes, Neighbour};
use crate::model::link_event::{EventKind, LinkEvent};
use crate::model::outcome::{Fact, Outcome, Source};
use crate::model::{Direction, Document, Role};
use crate::units::{BitRate, Elapsed};

use Direction::{Download, Upload};
use Role::{Nas, Pc};

fn counters(all: &[(&str, u64)]) -> Outcome<BTreeMap<String, Counters>> {
    let counters = all.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    Outcome::Measured(BTreeMap::from([("eth0".to_owned(), Counters(counters))]))
}

fn driver(doc: &mut Document, role: Role, name: &str) {
    doc.port(role).driver = Outcome::Measured(Fact::new(name.to_owned(), Source::Sysfs));
}

/// An upload at 60 % of the line during which the NAS's port, of this driver, counted this among a million frames.
fn slow_upload(line: u64, name: &str, counted: &[(&str, u64)]) -> Document {
    let mut doc = healthy(line);
    driver(&mut doc, Nas, name);
    doc.rate(Upload, line * 6 / 10);
    let all: Vec<_> = counted.iter().copied().chain([("rx_packets", 1_000_000)]).collect();
    doc.passes(Upload, |pass| pass.counters_nas = counters(&all));
    doc
}

fn code(doc: &Document) -> String {
    judge(doc).verdict.code.to_string()
}

/// Everything that the findings of one code say.
fn said(judgement: &Judgement, code: &str) -> String {
    let of = judgement.findings.iter().filter(|finding| finding.code.to_string() == code);
    of.flat_map(|finding| finding.evidence.clone()).collect::<Vec<_>>().join(" ")
}

#[test]
fn damaged_frames_are_known_by_every_drivers_name() {
    for (name, counter) in [
        ("r8169", "rx_crc_errors"),
        ("r8152", "align_errors"),
        ("igb", "rx_align_errors"),
        ("i40e", "port.rx_crc_errors"),
        ("ice", "illegal_bytes.nic"),
        ("mlx5_core", "rx_symbol_err_phy"),
        ("bnxt_en", "rx_fcs_err_frames"),
        ("tg3", "rx_fcs_errors"),
        ("mvneta", "bad_crc_event"),
        ("st_gmac", "mmc_rx_crc_error"),
        ("mt7530-mdio", "RxCrcErr"),
        ("mv88e6085", "in_fcs_error"),
        ("new", "rx_bad_fcs"),
    ] {
        let doc = slow_upload(1_000, name, &[(counter, 900)]);
        let judgement = judge(&doc);
        assert_eq!(judgement.verdict.code.to_string(), "network.cable-errors", "{name} {counter}");
        assert!(said(&judgement, "network.cable-errors").contains(counter), "{name} {counter}");
    }
}

#[test]
fn names_that_look_like_damage_are_none() {
    for (name, counter) in [
        ("mlx5_core", "rx_err_lane_0_phy"),
        ("mlx5_core", "rx_corrected_bits_phy"),
        ("igb", "rx_csum_offload_errors"),
        ("ixgbe", "fdir_miss"),
        ("tg3", "rx_threshold_hit"),
        ("new", "rx_csum_align"),
        ("cdc_ncm", "tx_reason_timeout"),
    ] {
        let judgement = judge(&slow_upload(1_000, name, &[(counter, 90_000)]));
        let codes: Vec<String> = judgement.findings.iter().map(|finding| finding.code.to_string()).collect();
        assert!(!codes.iter().any(|code| code == "network.cable-errors"), "{name} {counter}: {codes:?}");
    }
}

#[test]
fn pauses_name_who_asked_whom() {
    for (name, counter) in [
        ("igb", "tx_flow_control_xoff"),
        ("mlx5_core", "tx_pause_ctrl_phy"),
        ("r8125", "tx_pause_on"),
        ("i40e", "port.link_xoff_tx"),
    ] {
        let judgement = judge(&slow_upload(10_000, name, &[(counter, 90_000)]));
        assert_eq!(judgement.verdict.code.to_string(), "network.flow-control", "{name}");
        assert_eq!(judgement.verdict.r#where, Some(Where::Nas), "{name}");
    }
    let mut doc = healthy(10_000);
    driver(&mut doc, Pc, "mlx5_core");
    doc.rate(Upload, 6_000);
    doc.passes(Upload, |pass| {
        pass.counters_pc = counters(&[("rx_pause_ctrl_phy", 90_000), ("rx_global_pause_duration", 9_000_000)]);
    });
    let heard = Neighbour { interface: "eth0".into(), system: Some("core-switch".into()), ..Neighbour::default() };
    doc.link(Pc).neighbours = Outcome::Measured(vec![heard]);
    let judgement = judge(&doc);
    assert_eq!(judgement.verdict.code.to_string(), "network.flow-control");
    let words = said(&judgement, "network.flow-control");
    assert!(words.contains("the PC was paused 90000 times") && words.contains("core-switch"), "{words}");
}

#[test]
fn times_and_ends_of_pauses_are_no_pauses() {
    for (name, counter) in
        [("mlx5_core", "tx_global_pause_duration"), ("igb", "tx_flow_control_xon"), ("mlx4_en", "rx_pause_transition")]
    {
        let judgement = judge(&slow_upload(10_000, name, &[(counter, 9_000_000)]));
        assert_ne!(judgement.verdict.code.to_string(), "network.flow-control", "{name} {counter}");
    }
}

#[test]
fn a_port_without_room_is_the_hosts_fault_and_not_the_cables() {
    // Only the port's own memory ran over, and its bus may sleep: the bus.
    let mut doc = slow_upload(2_500, "igc", &[("rx_missed_errors", 20_000)]);
    doc.port(Nas).bus = bus("pci", 4_000, 4_000, "PCIe 5.0 GT/s x1");
    let part = |aspm: Option<&str>| BusPart {
        place: "0000:02:00.0".into(),
        now: "PCIe 5.0 GT/s x1".into(),
        rate_bps: Some(BitRate(4_000_000_000)),
        max_rate_bps: Some(BitRate(4_000_000_000)),
        aspm: aspm.map(Into::into),
    };
    doc.port(Nas).bus.measured_mut().unwrap().way = vec![part(Some("L1"))];
    assert_eq!(code(&doc), "network.power-saving");
    // Without power saving, or with an empty ring, it is the driver's settings.
    doc.port(Nas).bus.measured_mut().unwrap().way = vec![part(None)];
    assert_eq!(code(&doc), "network.nic-driver-or-offload");
    assert_eq!(code(&slow_upload(10_000, "ixgbe", &[("rx_no_dma_resources", 20_000)])), "network.nic-driver-or-offload");
    assert_eq!(
        code(&slow_upload(10_000, "igb", &[("rx_queue_0_drops", 9_000), ("rx_queue_1_drops", 9_000)])),
        "network.nic-driver-or-offload"
    );
    // With a full core it is the core, and the port's count is evidence of it.
    let mut doc = slow_upload(10_000, "mlx5_core", &[("rx_out_of_buffer", 20_000)]);
    doc.passes(Upload, |pass| pass.cpu_nas = Outcome::Measured(cpu_window(0.99)));
    let judgement = judge(&doc);
    assert_eq!(judgement.verdict.code.to_string(), "cpu.network-stack-core");
    let words = said(&judgement, "cpu.network-stack-core");
    assert!(words.contains("rx_out_of_buffer +20000") && words.contains("no receive buffers ready"), "{words}");
}

#[test]
fn a_few_dropped_frames_say_nothing() {
    // 0.007 %, as a healthy machine of the field had them.
    for (name, counter) in [("r8169", "rx_missed"), ("", "rx_dropped"), ("ixgbe", "rx_no_dma_resources")] {
        let doc = slow_upload(1_000, name, &[(counter, 70)]);
        let codes: Vec<String> = judge(&doc).findings.iter().map(|finding| finding.code.to_string()).collect();
        assert!(codes.iter().all(|code| !code.contains("power-saving") && !code.contains("nic-driver")), "{counter}: {codes:?}");
    }
    // Nor do many that nobody wanted.
    let judgement = judge(&slow_upload(1_000, "bnx2x", &[("rx_filtered_packets", 500_000), ("rx_dropped", 500_000)]));
    assert!(judgement.findings.iter().all(|finding| !finding.code.to_string().contains("nic-driver")));
}

#[test]
fn a_card_that_counts_how_long_its_bus_kept_it_waiting_is_believed() {
    let judgement = judge(&slow_upload(25_000, "mlx5_core", &[("outbound_pci_stalled_wr_events", 4)]));
    assert_eq!(judgement.verdict.code.to_string(), "network.nic-bus");
    // A percentage of the last second is no count.
    assert_ne!(code(&slow_upload(25_000, "mlx5_core", &[("outbound_pci_stalled_wr", 90)])), "network.nic-bus");
    assert_ne!(code(&slow_upload(25_000, "mlx5_core", &[("outbound_pci_stalled_wr_events", 1)])), "network.nic-bus");
}

/// Events of eth0: the second since the start, what happened, and how long before the run.
fn log(events: &[(u64, EventKind)], now: u64) -> Outcome<Vec<LinkEvent>> {
    let event = |(at, kind): &(u64, EventKind)| LinkEvent {
        at_us: Some(Elapsed(at * 1_000_000)),
        before_us: Some(Elapsed((now - at) * 1_000_000)),
        into_run_us: None,
        interface: "eth0".into(),
        kind: *kind,
        text: "r8169 0000:03:00.0 eth0: Link is Down".into(),
    };
    Outcome::Measured(events.iter().map(event).collect())
}

fn flapping() -> Vec<(u64, EventKind)> {
    let up = EventKind::Up(None);
    vec![(136, up), (160, EventKind::Down), (167, up), (169, EventKind::Down), (177, up), (179, EventKind::Down), (185, up)]
}

#[test]
fn a_link_that_broke_again_and_again_makes_the_run_worthless() {
    let unstable = |judgement: &Judgement| {
        judgement
            .findings
            .iter()
            .find(|finding| finding.code.to_string() == "network.link-unstable")
            .map(|finding| finding.severity)
    };
    let mut doc = healthy(1_000);
    doc.link(Nas).events = log(&flapping(), 240);
    let judgement = judge(&doc);
    assert_eq!(judgement.verdict.code.to_string(), "network.link-unstable");
    assert_eq!(unstable(&judgement), Some(Severity::Warning));
    assert!(
        said(&judgement, "network.link-unstable").contains("broke 3 times within 19 s, the last one 61 s before the run"),
        "{judgement:?}"
    );
    // Long ago: to be known, no more.
    doc.link(Nas).events = log(&flapping(), 9_000);
    let judgement = judge(&doc);
    assert_eq!(judgement.verdict.code.to_string(), "none.at-line-rate");
    assert_eq!(unstable(&judgement), Some(Severity::Info));
    // Twice, or while the system started: ordinary.
    for events in [flapping().drain(..5).collect::<Vec<_>>(), flapping().into_iter().map(|(at, kind)| (at - 130, kind)).collect()]
    {
        doc.link(Nas).events = log(&events, 240);
        assert_eq!(unstable(&judge(&doc)), None);
    }
    // Hours apart: each for itself.
    let apart: Vec<_> = (1..6).flat_map(|n| [(n * 5_000, EventKind::Down), (n * 5_000 + 3, EventKind::Up(None))]).collect();
    doc.link(Nas).events = log(&apart, 30_000);
    assert_eq!(unstable(&judge(&doc)), None);
}

#[test]
fn a_link_that_breaks_during_a_pass_is_what_makes_it_slow() {
    for (counter, times) in [("carrier_changes", 3), ("carrier_down_count", 2)] {
        let mut doc = slow_upload(1_000, "r8169", &[(counter, times)]);
        assert_eq!(code(&doc), "network.link-unstable", "{counter}");
        // At full speed it is a fault all the same.
        doc.rate(Upload, 939);
        assert_eq!(code(&doc), "network.link-unstable", "{counter}");
    }
    assert_eq!(code(&slow_upload(1_000, "mlx5_core", &[("link_down_events_phy", 2)])), "network.link-unstable");
    // Once is somebody who plugs something.
    for (counter, times) in [("carrier_changes", 1), ("carrier_changes", 2), ("carrier_down_count", 1)] {
        let mut doc = slow_upload(1_000, "r8169", &[(counter, times)]);
        doc.rate(Upload, 939);
        // Of two passes that counted it each, the sum counts.
        assert_eq!(
            code(&doc),
            if counter == "carrier_changes" && times == 1 { "none.at-line-rate" } else { "network.link-unstable" }
        );
        doc.tcp().upload.single.measured_mut().unwrap().counters_nas = counters(&[]);
        let judgement = judge(&doc);
        assert_ne!(judgement.verdict.code.to_string(), "network.link-unstable", "{counter} {times}");
        assert!(said(&judgement, "network.link-unstable").contains("changed once"), "{counter} {times}");
    }
}

#[test]
fn what_another_interface_counts_or_logs_is_not_told_of_the_way() {
    let mut doc = slow_upload(1_000, "r8169", &[]);
    let beside = Counters([("carrier_changes".to_owned(), 40), ("rx_crc_errors".to_owned(), 9_000)].into());
    doc.passes(Upload, |pass| pass.counters_nas = Outcome::Measured(BTreeMap::from([("eth7".to_owned(), beside.clone())])));
    let Outcome::Measured(mut events) = log(&[(100, EventKind::TxTimeout), (101, EventKind::Reset)], 200) else {
        unreachable!("a log");
    };
    for event in &mut events {
        event.interface = "eth7".into();
    }
    doc.link(Nas).events = Outcome::Measured(events);
    let judgement = judge(&doc);
    for code in ["network.link-unstable", "network.cable-errors", "network.nic-driver-or-offload"] {
        assert_eq!(said(&judgement, code), "", "{code}");
    }
}

#[test]
fn a_log_of_very_many_events_is_judged_by_its_newest() {
    let mut doc = healthy(1_000);
    let many: Vec<_> = (0..100_000).map(|n| (100 + n, if n % 2 == 0 { EventKind::Down } else { EventKind::Up(None) })).collect();
    doc.link(Nas).events = log(&many, 100_200);
    assert!(said(&judge(&doc), "network.link-unstable").contains("128 times"));
}

#[test]
fn a_fall_back_in_the_log_is_evidence_of_a_slow_link_and_a_suspicion_only() {
    let mut doc = healthy(1_000);
    doc.port(Pc).speed_bps = interface("x", crate::model::link::InterfaceKind::Physical, 100).speed_bps;
    doc.port(Pc).modes = Outcome::skipped("an old driver lists none");
    for way in [Upload, Download] {
        doc.rate(way, 94);
    }
    let fell = EventKind::Downshift([Some(BitRate::from_mbit(1000)), Some(BitRate::from_mbit(100))]);
    doc.link(Pc).events = log(&[(50, fell), (50, EventKind::Up(Some(BitRate::from_mbit(100))))], 900);
    let judgement = judge(&doc);
    assert_eq!(judgement.verdict.code.to_string(), "network.link-below-capability");
    assert!(said(&judgement, "network.link-below-capability").contains("suspected"), "{judgement:?}");
    // The partner offers no more: then it is the partner, whatever the log says of cables.
    doc.port(Pc).modes = Outcome::Measured(LinkModes {
        supported_bps: vec![BitRate::from_mbit(100), BitRate::from_mbit(1000)],
        advertised_bps: vec![BitRate::from_mbit(100), BitRate::from_mbit(1000)],
        partner_bps: vec![BitRate::from_mbit(100)],
    });
    let words = said(&judge(&doc), "network.link-below-capability");
    assert!(words.contains("partner at the other end of the cable offers at most 100 Mbit/s"), "{words}");
}

#[test]
fn collisions_stand_beside_half_duplex() {
    let mut doc = slow_upload(100, "r8169", &[("tx_aborted", 40), ("collisions", 4_000)]);
    doc.port(Nas).duplex = Outcome::Measured(Fact::new(Duplex::Half, Source::Ethtool));
    let judgement = judge(&doc);
    assert_eq!(judgement.verdict.code.to_string(), "network.half-duplex");
    assert!(said(&judgement, "network.half-duplex").contains("collisions +4000"));
}

#[test]
fn what_the_log_says_of_the_bus_stands_beside_it() {
    let mut doc = healthy(1_000);
    doc.port(Nas).bus = bus("usb", 480, 5_000, "USB 480 Mbit/s");
    doc.rate(Upload, 320);
    doc.rate(Download, 320);
    let mut events = log(&[(656, EventKind::UsbSlow)], 900);
    events.measured_mut().unwrap()[0].text = "usb 1-1: not running at top speed".into();
    doc.link(Nas).events = events;
    let judgement = judge(&doc);
    assert_eq!(judgement.verdict.code.to_string(), "network.nic-bus");
    assert!(said(&judgement, "network.nic-bus").contains("usb 1-1: not running at top speed"), "{judgement:?}");
}

#[test]
fn a_port_that_stood_still_is_its_drivers_fault() {
    assert_eq!(
        code(&slow_upload(1_000, "e1000e", &[("tx_timeout_count", 1), ("rx_crc_errors", 0)])),
        "network.nic-driver-or-offload"
    );
    for (ago, severity) in [(60, Some(Severity::Warning)), (7_000, Some(Severity::Info)), (200_000, None)] {
        let mut doc = healthy(1_000);
        doc.link(Nas).events = log(&[(100, EventKind::TxTimeout)], 100 + ago);
        let judgement = judge(&doc);
        let found = judgement.findings.iter().find(|finding| finding.code.to_string() == "network.nic-driver-or-offload");
        assert_eq!(found.map(|finding| finding.severity), severity, "{ago}");
    }
}
