//! What must hold of every verdict.

use weaklink::{model, units};

#[path = "../src/verdict/scenario.rs"]
#[expect(dead_code, reason = "each test file needs some of the hands")]
mod scenario;

use model::copy::{FileSet, LaneKind, Place};
use model::cpu::CpuWindow;
use model::finding::{Component, Severity, Status, Verdict, Where};
use model::link::Neighbour;
use model::mtu::{Hop, Limiter, Location, MtuChange, RouterWord, SegmentStream, TcpEnd, TcpHandshake};
use model::outcome::Outcome;
use model::throughput::Pass;
use model::{Direction, Document, Role};
use proptest::prelude::*;
use scenario::*;
use units::{BitRate, ByteRate, ByteSize, Elapsed, Mtu};
use weaklink::verdict::ideal::{Ip, snap_loosely};
use weaklink::verdict::judge;

use Direction::{Download, Upload};
use Role::{Nas, Pc};

fn window(pass: &mut Pass, role: Role) -> &mut CpuWindow {
    let cpu = if role == Pc { &mut pass.cpu_pc } else { &mut pass.cpu_nas };
    cpu.measured_mut().unwrap()
}

/// Documents with one clear answer each; every number of them scales.
fn scenes() -> Vec<(&'static str, Document)> {
    let mut scenes = vec![("healthy", healthy(2_500))];
    let mut add = |name, change: &dyn Fn(&mut Document)| {
        let mut doc = healthy(2_500);
        change(&mut doc);
        scenes.push((name, doc));
    };
    add("nas-write", &|doc| doc.disk(Nas).write = Outcome::Measured(transfer(90)));
    add("pc-read", &|doc| doc.disk(Pc).read = Outcome::Measured(transfer(80)));
    add("nas-read", &|doc| doc.disk(Nas).read = Outcome::Measured(transfer(110)));
    add("loss", &|doc| {
        doc.rate(Download, 500);
        doc.stats(Download, |s| s.retransmits = Some(12_000));
    });
    add("window", &|doc| {
        doc.rate(Upload, 600);
        doc.stats(Upload, |s| s.rwnd_limited_us = Some(3_000_000));
    });
    add("core", &|doc| {
        doc.rate(Upload, 1_100);
        doc.passes(Upload, |pass| *window(pass, Nas) = cpu_window(1.0));
    });
    add("quota", &|doc| {
        doc.both(|pass| {
            pass.goodput_bps = mbit(700);
            window(pass, Nas).throttled = Outcome::Measured(0.8);
        });
    });
    add("hole", &|doc| {
        doc.mtu(Pc, 9000);
        doc.mtu(Nas, 9000);
        let mtu = doc.measurements.mtu.measured_mut().unwrap();
        mtu.upload = Outcome::Measured(path(1500, Limiter::Silent));
        mtu.download = Outcome::Measured(path(1500, Limiter::Silent));
    });
    add("ssh", &|doc| {
        doc.lane(LaneKind::Raw, "raw tcp", &[]).rungs = vec![plain(Upload, 290.0), plain(Download, 290.0)];
        doc.lane(LaneKind::Ssh, "ssh", &[]).rungs = vec![burning(plain(Upload, 60.0), Nas, "sshd", 0.98), plain(Download, 280.0)];
    });
    add("unexplained", &|doc| doc.both(|pass| pass.goodput_bps = mbit(1_500)));
    scenes
}

fn said(doc: &Document) -> Verdict {
    judge(doc).verdict
}

fn scaled(doc: &Document, factor: f64) -> Document {
    let mut doc = doc.clone();
    let bits = |rate: &mut BitRate| *rate = rate.scale(factor);
    let bytes = |rate: &mut ByteRate| rate.0 = (rate.0 as f64 * factor) as u64;
    for role in [Pc, Nas] {
        let stated = doc.port(role).speed_bps.measured().map(|fact| fact.value.scale(factor));
        doc.link(role).stated_speed_bps = stated;
        if let Some(storage) = doc.measurements.storage.measured_mut() {
            let disk = if role == Pc { &mut storage.pc } else { &mut storage.nas };
            let disk = disk.measured_mut().unwrap();
            for transfer in [disk.write.measured_mut(), disk.read.measured_mut()].into_iter().flatten() {
                bytes(&mut transfer.sustained_bytes_per_s);
            }
        }
    }
    for way in [Upload, Download] {
        doc.passes(way, |pass| bits(&mut pass.goodput_bps));
        // A longer path takes the round trips that the rates stand in relation to.
        doc.stats(way, |s| s.snd_wnd_bytes = s.snd_wnd_bytes.map(|w| (w as f64 * factor) as u64));
    }
    let lanes = doc.measurements.copy.measured_mut().into_iter().flat_map(|copy| &mut copy.lanes);
    for rung in lanes.flat_map(|lane| &mut lane.rungs) {
        bytes(&mut rung.result.measured_mut().unwrap().bytes_per_s);
    }
    doc
}

fn flipped(code: &str) -> String {
    match code {
        "disk.nas-write" => "disk.pc-write".into(),
        "disk.nas-read" => "disk.pc-read".into(),
        "disk.pc-write" => "disk.nas-write".into(),
        "disk.pc-read" => "disk.nas-read".into(),
        other => other.into(),
    }
}

#[test]
fn every_scene_has_its_own_answer() {
    let expected = [
        "none.at-line-rate",
        "disk.nas-write",
        "disk.pc-read",
        "disk.nas-read",
        "network.loss",
        "network.tcp-window",
        "cpu.network-stack-core",
        "cpu.network-stack-core",
        "network.mtu-black-hole",
        "cpu.ssh-encryption",
        "inconclusive.unexplained-network-gap",
    ];
    for ((name, doc), code) in scenes().iter().zip(expected) {
        assert_eq!(said(doc).code.to_string(), code, "{name}");
    }
}

#[test]
fn pc_and_nas_changing_places_swaps_direction_and_place_and_nothing_else() {
    for (name, doc) in scenes() {
        let (here, there) = (said(&doc), said(&mirrored(&doc)));
        assert_eq!(there.code.to_string(), flipped(&here.code.to_string()), "{name}");
        assert_eq!(there.direction, here.direction.map(back), "{name}");
        assert_eq!((there.rate_bps, there.confidence, there.status), (here.rate_bps, here.confidence, here.status), "{name}");
    }
}

#[test]
fn the_order_of_facts_changes_nothing() {
    for (name, doc) in scenes() {
        let mut turned = doc.clone();
        if let Some(copy) = turned.measurements.copy.measured_mut() {
            copy.lanes.reverse();
            copy.lanes.iter_mut().for_each(|lane| lane.rungs.reverse());
        }
        turned.both(|pass| {
            for role in [Pc, Nas] {
                window(pass, role).processes.reverse();
                window(pass, role).cores.reverse();
            }
            pass.sender.measured_mut().unwrap().reverse();
        });
        assert_eq!(judge(&doc), judge(&turned), "{name}");
    }
}

#[test]
fn a_healthy_verdict_has_no_finding_that_costs_speed() {
    for (name, doc) in scenes() {
        let judgement = judge(&doc);
        if judgement.verdict.status == Status::Healthy {
            assert!(judgement.findings.iter().all(|f| f.severity == Severity::Info && f.gain.is_none()), "{name}");
        } else if judgement.verdict.status == Status::Bottleneck {
            assert_eq!(judgement.findings.first().map(|f| &f.code), Some(&judgement.verdict.code), "{name}");
        }
    }
}

fn remove(doc: &mut Document, part: usize) {
    let m = &mut doc.measurements;
    match part {
        0 => m.link = Outcome::skipped("removed"),
        1 => m.mtu = Outcome::skipped("removed"),
        2 => m.cpu = Outcome::skipped("removed"),
        3 => m.storage = Outcome::skipped("removed"),
        4 => m.copy = Outcome::skipped("removed"),
        5 => m.throughput = Outcome::skipped("removed"),
        6 if m.throughput.measured().is_some() => doc.both(|pass| {
            pass.cpu_pc = Outcome::skipped("removed");
            pass.cpu_nas = Outcome::skipped("removed");
        }),
        7 if m.throughput.measured().is_some() => doc.both(|pass| pass.sender = Outcome::skipped("removed")),
        8 if m.throughput.measured().is_some() => doc.tcp().download.multi = Outcome::skipped("removed"),
        9 if m.throughput.measured().is_some() => doc.both(|pass| pass.steady = None),
        _ => {}
    }
}

/// Documents about the path MTU alone, each with one clear answer that more evidence supports.
fn mtu_scenes() -> Vec<(&'static str, Document, &'static str)> {
    let mut scenes = Vec::new();
    let mut add = |name, code, change: &dyn Fn(&mut Document)| {
        let mut doc = mtu_only(2_500, 9000);
        change(&mut doc);
        scenes.push((name, doc, code));
    };
    let silent = || Outcome::Measured(short_path(1500, 9000, Limiter::Silent));
    let stream = |bytes: u64| SegmentStream {
        direction: Upload,
        bytes: ByteSize(bytes),
        elapsed_us: Elapsed(2_000_000),
        goodput_bps: BitRate(bytes * 4),
        packet: None,
    };
    add("consistent", "none.mtu-consistent", &|_| {});
    add("hole both ways", "network.mtu-black-hole", &|doc| {
        let mtu = doc.measurements.mtu.measured_mut().unwrap();
        (mtu.upload, mtu.download) = (silent(), silent());
    });
    add("hole one way with a proof", "network.mtu-black-hole", &|doc| {
        let mtu = doc.measurements.mtu.measured_mut().unwrap();
        mtu.upload = silent();
        mtu.unclamped = Outcome::Measured(stream(0));
        mtu.clamped = Outcome::Measured(stream(500_000_000));
    });
    add("the receiver's driver", "network.mtu-black-hole", &|doc| {
        let mtu = doc.measurements.mtu.measured_mut().unwrap();
        mtu.upload = silent();
        mtu.counters_nas = grown("rx_length_errors", 7);
    });
    add("mismatch", "network.mtu-mismatch", &|doc| {
        doc.mtu(Nas, 1500);
        let mtu = doc.measurements.mtu.measured_mut().unwrap();
        mtu.upload = Outcome::Measured(short_path(1504, 9000, Limiter::Silent));
        mtu.download = Outcome::Measured(path(1500, Limiter::LocalInterface));
    });
    add("an honest router", "none.mtu-consistent", &|doc| {
        let router = Limiter::Router { address: [192, 0, 2, 9].into(), next_hop_mtu: Mtu(1492) };
        let mtu = doc.measurements.mtu.measured_mut().unwrap();
        mtu.upload = Outcome::Measured(short_path(1492, 9000, router));
    });
    scenes
}

fn remove_of_mtu(doc: &mut Document, part: usize) {
    let gone = "removed";
    if part == 0 {
        doc.measurements.link = Outcome::skipped(gone);
    } else if part == 1 {
        doc.hosts.pc = Outcome::skipped(gone);
        doc.hosts.nas = Outcome::skipped(gone);
    } else if let Some(links) = doc.measurements.link.measured_mut().filter(|_| part == 2) {
        links.nas = Outcome::skipped(gone);
    }
    let Some(mtu) = doc.measurements.mtu.measured_mut() else { return };
    match part {
        3 => mtu.unclamped = Outcome::skipped(gone),
        4 => mtu.clamped = Outcome::skipped(gone),
        5 => mtu.upload = Outcome::failed(gone),
        6 => mtu.download = Outcome::failed(gone),
        7 => mtu.counters_nas = Outcome::skipped(gone),
        8 => doc.measurements.mtu = Outcome::failed(gone),
        _ => {}
    }
}

#[test]
fn every_scene_about_the_path_has_its_own_answer_also_mirrored() {
    for (name, doc, code) in mtu_scenes() {
        let (here, there) = (said(&doc), said(&mirrored(&doc)));
        assert_eq!(here.code.to_string(), code, "{name}: {}", here.sentence);
        assert_eq!((&there.code, there.status, there.confidence), (&here.code, here.status, here.confidence), "{name}");
        assert_eq!(there.direction, here.direction.map(back), "{name}");
        let turned = here.r#where.map(|place| match place {
            Where::Pc => Where::Nas,
            Where::Nas => Where::Pc,
            Where::Path => Where::Path,
        });
        assert_eq!((there.r#where, there.rate_bps), (turned, here.rate_bps), "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn removing_evidence_only_lowers_confidence(at in 0usize..11, parts in prop::collection::vec(0usize..10, 1..6)) {
        let (name, doc) = scenes().swap_remove(at);
        let before = said(&doc);
        let mut less = doc.clone();
        for part in &parts {
            remove(&mut less, *part);
        }
        let after = said(&less);
        // What was undecided may at most become a guess.
        let most = if before.status == Status::Inconclusive { model::finding::Confidence::Medium } else { before.confidence };
        prop_assert!(after.confidence <= most, "{name} {parts:?}: {} {:?} then {} {:?}", before.code, before.confidence, after.code, after.confidence);
    }

    #[test]
    fn removing_evidence_about_the_path_only_lowers_confidence(at in 0usize..6, parts in prop::collection::vec(0usize..9, 1..5)) {
        let (name, doc, _) = mtu_scenes().swap_remove(at);
        let before = said(&doc);
        let mut less = doc.clone();
        for part in &parts {
            remove_of_mtu(&mut less, *part);
        }
        let after = said(&less);
        prop_assert!(after.confidence <= before.confidence, "{name} {parts:?}: {} {:?} then {} {:?}", before.code, before.confidence, after.code, after.confidence);
        let failed = parts.iter().any(|part| [5, 6, 8].contains(part));
        prop_assert!(!failed || after.status != Status::Healthy, "{name} {parts:?}: {}", after.sentence);
    }

    #[test]
    fn no_sizes_make_it_panic(
        sizes in prop::collection::vec(0u32..=u32::MAX, 10),
        flags in prop::collection::vec(any::<bool>(), 4),
        ttl in prop::collection::vec(any::<u8>(), 4),
    ) {
        let mut doc = if flags[0] { mtu_alone(sizes[0], path(sizes[1], Limiter::Silent)) } else { mtu_only(2_500, sizes[0]) };
        let address = [192, 0, 2, 9].into();
        let limiter = || if flags[1] { Limiter::Silent } else { Limiter::Router { address, next_hop_mtu: Mtu(sizes[4]) } };
        let mut up = short_path(sizes[2], sizes[3], limiter());
        up.words = vec![RouterWord { address, next_hop_mtu: Mtu(sizes[5]), about: Mtu(sizes[6]) }];
        up.change = flags[2].then_some(MtuChange { from: Mtu(sizes[5]), to: Mtu(sizes[6]), at_us: Elapsed(u64::MAX) });
        let hops = vec![Hop { ttl: ttl[0], address: flags[3].then_some(address), rtt_us: None, large_arrived: false }];
        up.location = Outcome::Measured(Location {
            size: Mtu(sizes[6]),
            hops,
            peer_at: Some(ttl[1]),
            reached: ttl[2],
            missing: flags[2].then_some(ttl[3]),
        });
        let end = TcpEnd { advertised_mss_bytes: sizes[7], send_mss_bytes: sizes[8], pmtu: Some(Mtu(sizes[9])), option_bytes: sizes[7] };
        if let Some(link) = doc.measurements.link.measured_mut().and_then(|links| links.pc.measured_mut()) {
            link.neighbours = Outcome::Measured(vec![Neighbour { max_frame_bytes: Some(sizes[8]), ..Neighbour::default() }]);
        }
        let mtu = doc.measurements.mtu.measured_mut().unwrap();
        mtu.handshake = Outcome::Measured(TcpHandshake { pc: Outcome::Measured(end), nas: Outcome::Measured(end) });
        mtu.services = Outcome::Measured(vec![service(445, 1500 + sizes[9] % 60_000, flags[3])]);
        if !flags[0] {
            mtu.upload = Outcome::Measured(up.clone());
            mtu.download = if flags[3] { Outcome::Measured(up) } else { Outcome::failed("") };
        }
        let judgement = judge(&doc);
        prop_assert!(!judgement.verdict.sentence.is_empty());
        doc.plan.scope = model::plan::Scope::Run;
        judge(&doc);
        // A peer may say anything: no size makes a report fail.
        doc.findings = judgement.findings;
        doc.verdict = Some(judgement.verdict);
        for format in weaklink::report::Format::ALL {
            weaklink::report::render(&doc, format, &weaklink::report::Style::PLAIN);
        }
    }

    #[test]
    fn scaling_every_rate_changes_no_cause(at in 0usize..11, factor in 0.5f64..8.0) {
        let (name, doc) = scenes().swap_remove(at);
        // Ethernet's classes do not scale: a rate below the line that lands on one is a different fact.
        let tcp = doc.measurements.throughput.measured().unwrap();
        let rates = [&tcp.upload, &tcp.download].map(|way| way.best().unwrap().goodput_bps);
        let lands = |rate: &BitRate| *rate < mbit(2_000) && snap_loosely(rate.scale(factor), Mtu(1500), Ip::V4).is_some();
        prop_assume!(!rates.iter().any(lands));
        // The stated line is the scaled one in both, so that the two differ in scale alone.
        let (one, many) = (said(&scaled(&doc, 1.0)), said(&scaled(&doc, factor)));
        prop_assert_eq!(&one.code, &many.code, "{} at {}", name, factor);
        prop_assert_eq!(one.direction, many.direction);
    }

    #[test]
    fn raising_what_does_not_bind_changes_nothing(at in 0usize..11, role in 0usize..2, write: bool, factor in 1.0f64..20.0) {
        let (name, doc) = scenes().swap_remove(at);
        let before = said(&doc);
        let role = [Pc, Nas][role];
        let mut more = doc.clone();
        let disk = more.disk(role);
        let transfer = if write { &mut disk.write } else { &mut disk.read };
        let transfer = transfer.measured_mut().unwrap();
        let rate = transfer.sustained_bytes_per_s.bits();
        prop_assume!(before.rate_bps.is_some_and(|binds| rate.as_f64() > binds.as_f64() * 1.2));
        transfer.sustained_bytes_per_s = rate.scale(factor).bytes();
        let after = said(&more);
        prop_assert_eq!((&before.code, before.direction, before.rate_bps), (&after.code, after.direction, after.rate_bps), "{}", name);
    }

    #[test]
    fn lowering_one_below_all_others_makes_it_bind(at in 0usize..11, role in 0usize..2, write: bool, mb in 2u64..12) {
        let (name, mut doc) = scenes().swap_remove(at);
        prop_assume!(name != "hole");
        let role = [Pc, Nas][role];
        let disk = doc.disk(role);
        let slow = Outcome::Measured(transfer(mb));
        if write { disk.write = slow } else { disk.read = slow }
        let verdict = said(&doc);
        prop_assert_eq!(verdict.component, Component::Disk, "{}: {}", name, verdict.sentence);
        prop_assert_eq!(verdict.rate_bps, Some(mbit(mb * 8)));
    }

    #[test]
    fn no_document_makes_it_panic(line in 0u64..40_000, rates in prop::collection::vec(0u64..50_000, 4), mtu in 0u32..70_000, share in -1.0f64..3.0) {
        let mut doc = healthy(line);
        doc.rate(Upload, rates[0]);
        doc.rate(Download, rates[1]);
        doc.mtu(Pc, mtu);
        doc.stats(Upload, |s| { s.segments_out = Some(0); s.min_rtt_us = Some(0); s.busy_us = Some(0); s.snd_wnd_bytes = Some(u64::MAX); });
        doc.both(|pass| *window(pass, Pc) = cpu_window(share));
        let small = rung(Upload, (Place::Disk, Place::Disk), FileSet::Small, 0.0);
        doc.lane(LaneKind::Ssh, "ssh\u{0}", &[("cipher", "")]).rungs = vec![plain(Upload, rates[2] as f64), small, plain(Download, f64::NAN)];
        doc.disk(Nas).write = Outcome::Measured(transfer(rates[3]));
        let judgement = judge(&doc);
        prop_assert!(!judgement.verdict.sentence.is_empty());
    }
}
