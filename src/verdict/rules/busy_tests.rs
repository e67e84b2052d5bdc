//! Busy hosts, one machine alone, lanes that fail: what a newcomer's first runs look like.

use super::super::scenario::*;
use super::super::{Judgement, judge};
use crate::model::copy::{FileSet, LaneKind, Place, Rung};
use crate::model::finding::{Confidence, Severity, Status};
use crate::model::outcome::Outcome;
use crate::model::plan::Workload;
use crate::model::storage::Disk;
use crate::model::{Direction, Document, Role};

use Direction::{Download, Upload};
use Role::{Nas, Pc};

const TO_NAS: (Place, Place) = (Place::Memory, Place::Disk);
const FROM_NAS: (Place, Place) = (Place::Disk, Place::Memory);

fn said(line: u64, change: impl Fn(&mut Document)) -> Judgement {
    let mut doc = healthy(line);
    change(&mut doc);
    judge(&doc)
}

fn is(judged: &Judgement, code: &str) {
    assert_eq!(judged.verdict.code.to_string(), code, "{}", judged.verdict.sentence);
}

fn evidence(judged: &Judgement, code: &str) -> Option<String> {
    let finding = judged.findings.iter().find(|f| f.code.to_string() == code)?;
    assert_eq!(finding.severity, Severity::Info, "{finding:?}");
    Some(finding.evidence.join(" "))
}

/// The host was busy with this program before the test began.
fn busy(doc: &mut Document, role: Role, name: &str) {
    let cpus = doc.measurements.cpu.measured_mut().unwrap();
    let cpu = if role == Pc { &mut cpus.pc } else { &mut cpus.nas };
    let idle = cpu.measured_mut().unwrap().idle.measured_mut().unwrap();
    for core in &mut idle.cores {
        (core.user, core.system, core.softirq, core.idle) = (0.9, 0.09, 0.0, 0.01);
    }
    // Two of one name are more than a larger one of another.
    idle.processes.extend([process("indexer", 1.0), process(name, 0.8), process(name, 0.7)]);
}

#[test]
fn a_disk_is_what_it_gives_by_itself_and_never_what_our_own_copy_got() {
    let judged = said(1_000, |doc| {
        let raw = vec![rung(Upload, TO_NAS, FileSet::Large, 88.0), rung(Download, FROM_NAS, FileSet::Large, 60.0)];
        doc.lane(LaneKind::Raw, "raw tcp", &[]).rungs = raw;
    });
    is(&judged, "none.at-line-rate");
    assert_eq!(judged.verdict.confidence, Confidence::Medium);
    let text = evidence(&judged, "none.tool-limit").expect("a finding");
    for part in ["60 MB/s", "88 MB/s", "slower than disk and network by themselves"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let agrees = said(1_000, |doc| {
        doc.disk(Nas).write = Outcome::Measured(transfer(70));
        doc.lane(LaneKind::Raw, "raw tcp", &[]).rungs = vec![rung(Upload, TO_NAS, FileSet::Large, 66.0)];
    });
    is(&agrees, "disk.nas-write");
    assert_eq!((agrees.verdict.confidence, agrees.verdict.rate_bps), (Confidence::High, Some(mbit(560))));
    assert!(evidence(&agrees, "none.tool-limit").is_none());
}

#[test]
fn a_level_at_a_class_beats_busy_processors_and_rungs_of_our_own() {
    let loads: [fn(&mut crate::model::cpu::CpuWindow); 3] = [
        |cpu| *cpu = cpu_window(0.98),
        |cpu| cpu.run_delay = Outcome::Measured(0.5),
        |cpu| {
            *cpu = cpu_window(1.0);
            cpu.run_delay = Outcome::Measured(0.5);
            cpu.processes.push(process("rustc", 1.5));
        },
    ];
    for (at, load) in loads.into_iter().enumerate() {
        // A shaper that counts no preamble lets 956 through; the other direction only comes near.
        let judged = said(2_500, |doc| {
            doc.rate(Upload, 956);
            doc.rate(Download, 915);
            doc.passes(Download, |pass| pass.steady.as_mut().unwrap().spread = 0.09);
            doc.both(|pass| load(pass.cpu_nas.measured_mut().unwrap()));
            let raw = vec![rung(Upload, TO_NAS, FileSet::Large, 83.0)];
            doc.lane(LaneKind::Raw, "raw tcp", &[]).rungs = raw;
        });
        is(&judged, "network.hop-slower-than-links");
        assert_eq!(judged.verdict.confidence, Confidence::Medium, "{at}: {}", judged.verdict.sentence);
        assert!(!judged.verdict.sentence.contains("Almost as well"), "{}", judged.verdict.sentence);
    }
    // No class, no level: the load is the answer.
    is(
        &said(2_500, |doc| {
            doc.both(|pass| {
                pass.goodput_bps = mbit(1_200);
                *pass.cpu_nas.measured_mut().unwrap() = cpu_window(0.98);
            });
        }),
        "cpu.network-stack-core",
    );
    // A quota may hold a rate anywhere.
    is(
        &said(2_500, |doc| {
            doc.both(|pass| {
                pass.goodput_bps = mbit(941);
                pass.cpu_nas.measured_mut().unwrap().throttled = Outcome::Measured(0.7);
            });
        }),
        "cpu.network-stack-core",
    );
}

#[test]
fn on_a_busy_host_no_bottleneck_is_sure_and_the_busiest_program_is_named() {
    let judged = said(2_500, |doc| {
        busy(doc, Pc, "rustc");
        doc.disk(Nas).write = Outcome::Measured(transfer(90));
    });
    is(&judged, "disk.nas-write");
    assert_eq!(judged.verdict.confidence, Confidence::Medium);
    let text = evidence(&judged, "cpu.background-load").expect("a finding");
    assert_eq!(text, "The PC was 89 % busy before the test began, rustc most; measure again when it is idle.");
    // What weaklink burns while it looks at the ports is nobody's load.
    let own = said(2_500, |doc| {
        busy(doc, Pc, "rustc");
        let cpus = doc.measurements.cpu.measured_mut().unwrap();
        let idle = cpus.pc.measured_mut().unwrap().idle.measured_mut().unwrap();
        let cores = idle.cores.len() as f64;
        idle.processes = vec![process("weaklink", 0.8 * cores)];
    });
    assert_eq!(evidence(&own, "cpu.background-load"), None);
    let guess = said(10_000, |doc| {
        busy(doc, Nas, "rustc");
        doc.rate(Upload, 5_000);
        doc.passes(Upload, |pass| *pass.cpu_nas.measured_mut().unwrap() = cpu_window(0.99));
    });
    is(&guess, "cpu.network-stack-core");
    assert_eq!(guess.verdict.confidence, Confidence::Low);
    let stolen = said(2_500, |doc| {
        doc.disk(Nas).write = Outcome::Measured(transfer(90));
        doc.passes(Upload, |pass| pass.cpu_nas.measured_mut().unwrap().cores.iter_mut().for_each(|core| core.steal = 0.2));
    });
    assert_eq!(stolen.verdict.confidence, Confidence::Medium);
    assert!(evidence(&stolen, "cpu.background-load").unwrap().contains("20 % of the NAS's time to others during PC → NAS"));
    // A line that is full in spite of it all is full.
    let full = said(2_500, |doc| busy(doc, Pc, "rustc"));
    is(&full, "none.at-line-rate");
    assert_eq!(full.verdict.confidence, Confidence::High);
}

fn alone(change: impl Fn(&mut Document)) -> Judgement {
    said(10_000, |doc| {
        doc.plan.local = true;
        doc.plan.stated_pc_bps = Some(mbit(1_000));
        doc.both(|pass| pass.goodput_bps = mbit(17_000));
        doc.disk(Nas).write = Outcome::Measured(transfer(1_360));
        doc.disk(Nas).read = Outcome::Measured(transfer(682));
        doc.lane(LaneKind::Raw, "raw tcp", &[]).rungs =
            vec![rung(Upload, TO_NAS, FileSet::Large, 1_165.0), rung(Download, FROM_NAS, FileSet::Large, 314.0)];
        change(doc);
    })
}

#[test]
fn on_one_machine_the_lanes_that_were_asked_for_are_judged() {
    let ssh = |share: f64| burning(rung(Upload, TO_NAS, FileSet::Large, 190.0), Nas, "sshd-session", share);
    let full = alone(|doc| doc.lane(LaneKind::Ssh, "ssh", &[]).rungs = vec![ssh(0.97)]);
    is(&full, "cpu.ssh-encryption");
    assert!(full.verdict.sentence.contains("Nothing here is evidence about a cable."), "{}", full.verdict.sentence);
    let small = alone(|doc| {
        doc.plan.workload = Workload::Small;
        doc.lane(LaneKind::Ssh, "ssh", &[]).rungs = vec![ssh(0.5), rung(Upload, TO_NAS, FileSet::Small, 9.0)];
    });
    is(&small, "protocol.small-files-latency");
    // What a lane costs ordinarily is no fault there, and our own copy no finding.
    let plain = alone(|doc| {
        doc.lane(LaneKind::Mounted, "local ext4", &[]).rungs = vec![rung(Upload, TO_NAS, FileSet::Large, 900.0)];
    });
    is(&plain, "none.at-device-class");
    assert!(plain.findings.is_empty(), "{:?}", plain.findings);
    assert_eq!(
        plain.verdict.sentence,
        "Healthy: on this one machine nothing is at fault. The NAS's directory reads 682 MB/s and writes 1.36 GB/s; \
         the PC's reads 3.52 GB/s and writes 3.52 GB/s. One core encrypts 3 GB/s with aes128-gcm. \
         Nothing here is evidence about a cable."
    );
}

#[test]
fn on_one_machine_without_a_disk_the_reason_is_told() {
    let judged = alone(|doc| {
        doc.measurements.copy = Outcome::skipped("no directory");
        let storage = doc.measurements.storage.measured_mut().unwrap();
        storage.nas = Outcome::skipped("serve was started without --dir");
        storage.pc = Outcome::failed("/x is read-only.");
    });
    is(&judged, "inconclusive.too-little-evidence");
    assert!(judged.verdict.sentence.contains("the disk could not be measured (/x is read-only)"), "{}", judged.verdict.sentence);
}

#[test]
fn a_healthy_verdict_tells_of_a_lane_that_failed() {
    let with = |second: Outcome<()>| {
        said(1_000, |doc| {
            doc.plan.lanes = vec![LaneKind::Raw, LaneKind::Ssh];
            let failed = |direction| Rung {
                result: Outcome::failed("ssh asked for a password."),
                ..rung(direction, TO_NAS, FileSet::Large, 1.0)
            };
            let other = if second.measured().is_some() { plain(Download, 112.0) } else { failed(Download) };
            doc.lane(LaneKind::Ssh, "ssh", &[]).rungs = vec![failed(Upload), other];
        })
    };
    let none = with(Outcome::failed("no"));
    is(&none, "none.at-line-rate");
    assert_eq!(none.verdict.status, Status::Healthy);
    assert_eq!(none.verdict.confidence, Confidence::Low);
    let told = " But the ssh lane could not be measured: ssh asked for a password.";
    assert!(none.verdict.sentence.ends_with(told), "{}", none.verdict.sentence);
    assert_eq!(with(Outcome::Measured(())).verdict.confidence, Confidence::High);
}

#[test]
fn a_virtual_disk_does_not_turn() {
    for (name, attached, word) in [
        ("vda", Some("virtio"), "(1 virtual disk)"),
        ("xvdb", None, "(1 virtual disk)"),
        ("sda", Some("SATA 6.0 Gbps"), "(1 HDD)"),
    ] {
        let judged = said(2_500, |doc| {
            let attached = attached.map(str::to_owned);
            doc.device(Nas).disks = vec![Disk { name: name.into(), model: None, rotational: Some(true), attached }];
            doc.disk(Nas).write = Outcome::Measured(transfer(90));
        });
        assert!(judged.verdict.sentence.contains(word), "{}", judged.verdict.sentence);
    }
}

/// Both cores of a host taken, mostly by other programs, which our threads have to wait for.
fn crowded(doc: &mut Document) {
    for way in Direction::BOTH {
        doc.stats(way, |stats| stats.busy_us = Some(1_600_000));
    }
    doc.both(|pass| {
        for cpu in [&mut pass.cpu_pc, &mut pass.cpu_nas].into_iter().filter_map(|cpu| cpu.measured_mut()) {
            *cpu = cpu_window(1.0);
            cpu.cores.truncate(2);
            cpu.cores[1] = cpu.cores[0];
            cpu.run_delay = Outcome::Measured(0.5);
            cpu.processes.push(process("rustc", 1.5));
        }
    });
}

#[test]
fn one_direction_flat_at_a_class_beside_a_faster_one_is_a_hop_whoever_is_busy() {
    for (spread, links) in [(0.01, true), (0.05, true), (0.01, false)] {
        let mut doc = rates_only(2_500);
        if !links {
            doc.no_links();
        }
        crowded(&mut doc);
        doc.rate(Upload, 957);
        doc.rate(Download, if links { 2_300 } else { 2_390 });
        doc.passes(Upload, |pass| pass.steady.as_mut().unwrap().spread = spread);
        let judged = judge(&doc);
        is(&judged, "network.hop-slower-than-links");
        assert_eq!(judged.verdict.confidence, Confidence::Medium, "{}", judged.verdict.sentence);
        assert_eq!(judged.verdict.direction, Some(Upload));
        assert!(evidence(&judged, "cpu.background-load").is_some(), "{spread} {links}: {:?}", judged.findings);
    }
    // Neither level nor a class: the load is the answer.
    let mut doc = rates_only(2_500);
    crowded(&mut doc);
    doc.rate(Upload, 1_300);
    is(&judge(&doc), "cpu.background-load");
}

#[test]
fn a_level_at_a_class_is_the_line_with_and_without_a_wish_for_pace_and_window() {
    let wishes: [fn(&mut crate::model::throughput::PassOptions); 3] =
        [|_| (), |options| options.pacing_bps = Some(mbit(5_000)), |options| options.window_bytes = Some(16_000_000)];
    for (at, wish) in wishes.into_iter().enumerate() {
        let mut doc = rates_only(1_000);
        doc.no_links();
        crowded(&mut doc);
        let plan = doc.plan.throughput.as_mut().unwrap();
        plan.ways = crate::model::plan::Ways::Upload;
        wish(&mut plan.options);
        doc.rate(Upload, 957);
        doc.tcp().download = crate::model::throughput::DirectionThroughput::skipped("--upload was asked for");
        let judged = judge(&doc);
        is(&judged, "none.at-line-rate");
        assert!(judged.verdict.sentence.contains("1 Gbit/s link"), "{at}: {}", judged.verdict.sentence);
    }
}
