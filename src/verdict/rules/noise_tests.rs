//! What real runs on busy machines looked like: faults must win there, and noise must not.

use super::super::judge;
use super::super::scenario::*;
use crate::model::copy::{FileSet, LaneKind, Place, Rung};
use crate::model::cpu::{CoreShare, CpuWindow};
use crate::model::finding::{Confidence, Status, Verdict, Where};
use crate::model::mtu::Limiter;
use crate::model::outcome::Outcome;
use crate::model::storage::DeviceKind;
use crate::model::throughput::Pass;
use crate::model::{Direction, Document, Role};
use crate::units::{ByteSize, Elapsed};

use Direction::{Download, Upload};
use Role::{Nas, Pc};

fn said(line: u64, change: impl Fn(&mut Document)) -> Verdict {
    let mut doc = healthy(line);
    change(&mut doc);
    judge(&doc).verdict
}

fn is(verdict: &Verdict, code: &str) {
    assert_eq!(verdict.code.to_string(), code, "{}", verdict.sentence);
}

fn cpu(pass: &mut Pass, role: Role) -> &mut CpuWindow {
    let window = if role == Pc { &mut pass.cpu_pc } else { &mut pass.cpu_nas };
    window.measured_mut().unwrap()
}

/// Two cores that are idle but for these shares.
fn two_cores(first: f64, second: f64, steal: f64) -> CpuWindow {
    let core = |busy: f64| CoreShare {
        system: busy * 0.4,
        softirq: busy * 0.6,
        steal,
        idle: (1.0 - busy - steal).max(0.0),
        ..CoreShare::default()
    };
    CpuWindow { cores: vec![core(first), core(second)], ..cpu_window(first) }
}

fn loses(doc: &mut Document, way: Direction) {
    doc.stats(way, |stats| stats.retransmits = Some(60_000));
}

/// PC and NAS wait for a core while their cores idle, as under a quota.
fn starved(doc: &mut Document, pc: f64, nas: f64) {
    doc.both(|pass| {
        pass.goodput_bps = mbit(800);
        for (role, share) in [(Pc, pc), (Nas, nas)] {
            *cpu(pass, role) = two_cores(0.05, 0.04, 0.0);
            cpu(pass, role).run_delay = Outcome::Measured(share);
        }
    });
}

#[test]
fn a_fault_of_both_directions_is_one_finding() {
    let mut doc = healthy(2_500);
    doc.rate(Upload, 942);
    doc.rate(Download, 935);
    let judgement = judge(&doc);
    let hops: Vec<_> = judgement.findings.iter().filter(|f| f.code.cause == "hop-slower-than-links").collect();
    assert_eq!(hops.len(), 1, "{hops:?}");
    assert_eq!((hops[0].direction, hops[0].advice.len()), (None, 1));
    for arrow in [Upload.arrow(), Download.arrow()] {
        assert!(hops[0].evidence.iter().any(|text| text.starts_with(arrow)), "{:?}", hops[0].evidence);
    }
    // What both say alike stands once, and the gain is that of the direction that suffers more.
    assert_eq!(hops[0].evidence.len(), 3, "{:?}", hops[0].evidence);
    assert_eq!(hops[0].gain.map(|gain| gain.from_bps), Some(mbit(935)));
    assert_eq!(judgement.findings[0].code, judgement.verdict.code);
}

#[test]
fn a_starved_program_is_not_a_full_core() {
    let verdict = said(2_500, |doc| starved(doc, 0.01, 0.74));
    is(&verdict, "cpu.network-stack-core");
    assert_eq!(verdict.r#where, Some(Where::Nas));
    for part in ["The NAS gives weaklink too little processor time", "waited for a core for 74 %"] {
        assert!(verdict.sentence.contains(part), "{}", verdict.sentence);
    }
    assert!(!verdict.sentence.contains("no time left"), "{}", verdict.sentence);
    // The more starved of two ends is named.
    assert_eq!(said(2_500, |doc| starved(doc, 0.8, 0.4)).r#where, Some(Where::Pc));
    assert_eq!(said(2_500, |doc| starved(doc, 0.4, 0.8)).r#where, Some(Where::Nas));
    // Threads that wait where the cores are full with the network's own work are no quota's victims.
    let full = said(2_500, |doc| {
        starved(doc, 0.01, 0.5);
        doc.both(|pass| cpu(pass, Nas).cores = two_cores(0.99, 0.98, 0.0).cores);
    });
    is(&full, "cpu.network-stack-core");
    assert!(full.sentence.contains("no time left"), "{}", full.sentence);
    // A little burning beside idle cores is no background load.
    let little = said(2_500, |doc| {
        starved(doc, 0.01, 0.74);
        doc.both(|pass| cpu(pass, Nas).processes.push(process("daemon", 0.06)));
    });
    is(&little, "cpu.network-stack-core");
}

#[test]
fn an_even_rate_at_a_class_is_the_cables_whoever_waits() {
    for (spread, told) in [(0.01, true), (0.04, false)] {
        let verdict = said(1_000, |doc| {
            doc.no_links();
            starved(doc, 0.3, 0.01);
            doc.both(|pass| {
                pass.goodput_bps = mbit(940);
                pass.steady.as_mut().unwrap().spread = spread;
            });
        });
        assert_eq!(verdict.sentence.contains("1 Gbit/s link"), told, "{spread}: {}", verdict.sentence);
    }
}

/// Other programs take all cores of both ends, whose threads run and wait for these shares of the time.
fn hogs(doc: &mut Document, runs: f64, waits: f64) {
    doc.both(|pass| {
        for role in [Pc, Nas] {
            let window = cpu(pass, role);
            *window = two_cores(1.0, 1.0, 0.0);
            for core in &mut window.cores {
                (core.user, core.softirq) = (0.85, 0.05);
            }
            window.processes[0].busiest_thread = runs;
            window.processes.push(process("rustc", 1.8));
            window.run_delay = Outcome::Measured(waits);
        }
    });
}

#[test]
fn busy_hosts_are_not_to_blame_while_their_threads_sleep() {
    let at = |runs: f64, waits: f64| {
        let mut doc = rates_only(1_000);
        doc.no_links();
        doc.both(|pass| pass.goodput_bps = mbit(287));
        hogs(&mut doc, runs, waits);
        waiting(&mut doc, 0.3);
        judge(&doc).verdict
    };
    let slept = at(0.05, 0.12);
    is(&slept, "inconclusive.unexplained-network-gap");
    assert!(slept.sentence.contains("the limit is between the hosts"), "{}", slept.sentence);
    let told = slept.ruled_out.iter().find(|one| one.code.to_string() == "cpu.network-stack-core").expect("a reason");
    assert!(told.reason.contains("at most 17 % of the time"), "{}", told.reason);
    is(&at(0.3, 0.3), "cpu.background-load");
    is(&at(0.05, 0.5), "cpu.background-load");
    // Streams that wait for the path all the time wait for no program, however long that waits for a core.
    let queued = |busy: f64, softirq: f64| {
        let mut doc = rates_only(1_000);
        doc.no_links();
        doc.both(|pass| pass.goodput_bps = mbit(277));
        hogs(&mut doc, 0.09, 0.4);
        doc.both(|pass| [Pc, Nas].into_iter().for_each(|role| cpu(pass, role).cores[0].softirq = softirq));
        waiting(&mut doc, busy);
        judge(&doc).verdict
    };
    let told = queued(0.99, 0.5);
    is(&told, "inconclusive.unexplained-network-gap");
    let reason = told.ruled_out.iter().find(|one| one.code.to_string() == "cpu.network-stack-core").expect("a reason");
    assert!(reason.reason.contains("data waited for the path all the time"), "{}", reason.reason);
    is(&queued(0.5, 0.5), "cpu.background-load");
    is(&queued(0.99, 0.8), "cpu.background-load");
}

/// The sender's kernel had data on its way for this share of each pass.
fn waiting(doc: &mut Document, share: f64) {
    for way in Direction::BOTH {
        doc.stats(way, |stats| stats.busy_us = Some((share * 4e6) as u64));
    }
}

/// One direction's series stops for so long, once.
fn breaks_off(pass: &mut Pass, us: u64) {
    pass.shape.longest_stall_us = Elapsed(us);
    pass.shape.empty_bins = (us / pass.bins.interval_us.0) as u32;
}

#[test]
fn an_outage_is_told_whatever_else_fits_the_mean() {
    type Beside = fn(&mut Document);
    let beside: [Beside; 3] = [|_| (), |doc| hogs(doc, 0.6, 0.2), |doc| loses(doc, Upload)];
    for (at, change) in beside.into_iter().enumerate() {
        let verdict = said(1_000, |doc| {
            doc.rate(Upload, 560);
            change(doc);
            doc.passes(Upload, |pass| breaks_off(pass, 1_800_000));
        });
        is(&verdict, "network.periodic-stalls");
        assert!(verdict.sentence.contains("othing at all arrived for 1.8 s of the 4 s"), "{at}: {}", verdict.sentence);
    }
    // Heavy loss makes a stream wait as long, again and again.
    let lossy = said(1_000, |doc| {
        doc.rate(Upload, 12);
        loses(doc, Upload);
        doc.passes(Upload, |pass| {
            breaks_off(pass, 1_200_000);
            pass.shape.empty_bins = 30;
        });
    });
    is(&lossy, "network.loss");
    // A host that keeps the program from running as long may be why.
    let kept = said(1_000, |doc| {
        starved(doc, 0.6, 0.05);
        doc.both(|pass| breaks_off(pass, 1_100_000));
    });
    is(&kept, "cpu.network-stack-core");
    // One stream's outage beside several that fill the line says nothing of one stream.
    let one = said(1_000, |doc| {
        let single = doc.tcp().upload.single.measured_mut().unwrap();
        single.goodput_bps = mbit(500);
        breaks_off(single, 1_800_000);
    });
    is(&one, "none.at-line-rate");
    assert!(!one.sentence.contains("One stream"), "{}", one.sentence);
}

#[test]
fn a_slow_direction_beside_a_much_faster_one_of_no_class_is_a_hop() {
    let with = |back: u64, lost: bool| {
        let mut doc = rates_only(1_000);
        doc.no_links();
        doc.rate(Upload, 94);
        doc.rate(Download, back);
        if lost {
            loses(&mut doc, Upload);
        }
        judge(&doc).verdict
    };
    for verdict in [with(81_000, false), with(81_000, true), with(941, true)] {
        is(&verdict, "network.hop-slower-than-links");
        assert_eq!(verdict.direction, Some(Upload));
    }
    assert!(with(81_000, false).sentence.contains("81 Gbit/s come back"));
}

#[test]
fn what_was_over_at_once_tells_no_rate() {
    let mut doc = rates_only(1_000);
    doc.both(|pass| {
        pass.goodput_bps = mbit(3);
        (pass.bytes, pass.elapsed_us, pass.steady) = (ByteSize(1), Elapsed(210), None);
        *cpu(pass, Pc) = two_cores(1.0, 1.0, 0.0);
    });
    let verdict = judge(&doc).verdict;
    is(&verdict, "inconclusive.too-little-evidence");
    assert!(verdict.sentence.contains("1 B in 210 µs are too little"), "{}", verdict.sentence);
}

#[test]
fn a_direction_without_a_series_does_not_hide_what_the_other_one_proves() {
    for (other, told) in [(940, true), (600, false)] {
        let verdict = said(1_000, |doc| {
            doc.no_links();
            doc.rate(Upload, 943);
            doc.rate(Download, other);
            doc.tcp().upload.single.measured_mut().unwrap().steady = None;
            doc.tcp().upload.multi.measured_mut().unwrap().steady = None;
        });
        assert_eq!(verdict.sentence.contains("1 Gbit/s link"), told, "{other}: {}", verdict.sentence);
    }
}

#[test]
fn waiting_for_a_core_is_no_cause_where_the_line_is_nearly_full() {
    for (mbit_s, sure) in [(2_280, Confidence::High), (2_200, Confidence::High), (2_120, Confidence::Low)] {
        let verdict = said(2_500, |doc| {
            starved(doc, 0.3, 0.01);
            doc.both(|pass| pass.goodput_bps = mbit(mbit_s));
        });
        is(&verdict, "none.at-line-rate");
        assert_eq!(verdict.confidence, sure, "{mbit_s}: {}", verdict.sentence);
    }
}

#[test]
fn a_stolen_and_busy_machine_measures_low_and_is_no_sure_bottleneck() {
    for line in [1_000, 2_500] {
        for share in [0.88, 0.92, 0.96] {
            let verdict = said(line, |doc| {
                doc.both(|pass| {
                    pass.goodput_bps = mbit((line as f64 * 0.9415 * share) as u64);
                    *cpu(pass, Pc) = two_cores(0.97, 0.7, 0.2);
                    *cpu(pass, Nas) = two_cores(0.97, 0.7, 0.2);
                    cpu(pass, Nas).run_delay = Outcome::Measured(0.4);
                });
            });
            assert_eq!(verdict.status, Status::Healthy, "{line} {share}: {}", verdict.sentence);
        }
    }
    let low = said(2_500, |doc| {
        doc.both(|pass| {
            pass.goodput_bps = mbit(1_700);
            *cpu(pass, Pc) = two_cores(0.97, 0.7, 0.2);
        });
    });
    assert!(low.confidence < Confidence::High, "{:?} {}", low.confidence, low.sentence);
}

#[test]
fn a_hop_measured_low_and_jittery_is_still_the_network() {
    let jitter = |doc: &mut Document| doc.both(|pass| pass.steady.as_mut().unwrap().spread = 0.1);
    let both = said(2_500, |doc| {
        doc.rate(Upload, 894);
        doc.rate(Download, 900);
        jitter(doc);
    });
    is(&both, "network.hop-slower-than-links");
    assert_eq!((both.direction, both.confidence), (None, Confidence::Low));
    let one_level = said(2_500, |doc| {
        doc.rate(Upload, 894);
        doc.rate(Download, 941);
        doc.passes(Upload, |pass| pass.steady = None);
    });
    is(&one_level, "network.hop-slower-than-links");
    assert!(one_level.confidence >= Confidence::Medium);
    // One direction alone that comes near a class is chance.
    let chance = said(2_500, |doc| {
        doc.rate(Upload, 894);
        doc.passes(Upload, |pass| pass.steady = None);
    });
    is(&chance, "inconclusive.unexplained-network-gap");
}

#[test]
fn what_one_lossy_stream_gets_is_what_a_copy_gets() {
    let verdict = said(1_000, |doc| {
        doc.rate(Upload, 731);
        loses(doc, Upload);
        doc.tcp().upload.single.measured_mut().unwrap().goodput_bps = mbit(591);
    });
    is(&verdict, "network.loss");
    assert_eq!(verdict.rate_bps, Some(mbit(591)));
    let gain = verdict.next.unwrap().gain_percent;
    assert!((55.0..62.0).contains(&gain), "{gain}");
    assert!(verdict.sentence.contains("591 Mbit/s arrive with one stream"), "{}", verdict.sentence);
    // A queue that only several streams overrun is the measurement's own loss: a full core explains more.
    let own = said(10_000, |doc| {
        doc.rate(Upload, 6_000);
        doc.passes(Upload, |pass| *cpu(pass, Nas) = cpu_window(0.99));
        let multi = doc.tcp().upload.multi.measured_mut().unwrap();
        multi.goodput_bps = mbit(6_100);
        for stream in multi.sender.measured_mut().unwrap() {
            stream.retransmits = Some(50_000);
        }
    });
    is(&own, "cpu.network-stack-core");
}

#[test]
fn memory_is_no_disk_and_the_verdict_says_so() {
    let verdict = said(2_500, |doc| {
        doc.measurements.storage.measured_mut().unwrap().pc = Outcome::skipped("no directory was named");
        doc.device(Nas).kind = DeviceKind::Memory;
        doc.disk(Nas).write = Outcome::Measured(transfer(257));
        let raw = rung(Upload, (Place::Memory, Place::Disk), FileSet::Large, 200.0);
        doc.lane(LaneKind::Raw, "raw tcp", &[]).rungs.push(raw);
    });
    is(&verdict, "none.at-line-rate");
    assert!(verdict.sentence.contains("The directory of the NAS is memory (tmpfs)"), "{}", verdict.sentence);
    assert!(!verdict.sentence.contains("disks were not measured"), "{}", verdict.sentence);
}

#[test]
fn a_copy_that_differs_by_its_sync_leaves_the_disk_its_own_rate() {
    let write = |raw: f64| {
        said(1_000, |doc| {
            doc.disk(Nas).write = Outcome::Measured(transfer(52));
            let raw = rung(Upload, (Place::Memory, Place::Disk), FileSet::Large, raw);
            doc.lane(LaneKind::Raw, "raw tcp", &[]).rungs.push(raw);
        })
    };
    for raw in [44.0, 30.0, 51.0] {
        let verdict = write(raw);
        is(&verdict, "disk.nas-write");
        assert_eq!(verdict.rate_bps, Some(mbit(52 * 8)), "{raw}");
    }
}

#[test]
fn a_black_hole_beats_a_slow_disk_and_a_slow_disk_beats_a_mismatch() {
    let slow = |doc: &mut Document| doc.disk(Nas).write = Outcome::Measured(transfer(40));
    let hole = said(2_500, |doc| {
        slow(doc);
        doc.mtu(Pc, 9000);
        doc.mtu(Nas, 9000);
        doc.measurements.mtu.measured_mut().unwrap().upload = Outcome::Measured(path(1500, Limiter::Silent));
    });
    is(&hole, "network.mtu-black-hole");
    let mismatch = said(1_000, |doc| {
        slow(doc);
        doc.mtu(Pc, 9000);
    });
    is(&mismatch, "disk.nas-write");
    is(&said(1_000, |doc| doc.mtu(Pc, 9000)), "network.mtu-mismatch");
}

/// An SSH copy on two cores that both ends share, as one machine with two ends has.
fn ssh(direction: Direction, mb: f64, cores: (f64, f64, f64), processes: &[(&str, f64)]) -> Rung {
    let mut rung = plain(direction, mb);
    let copied = rung.result.measured_mut().unwrap();
    for window in [&mut copied.cpu_pc, &mut copied.cpu_nas] {
        let mut shared = two_cores(cores.0, cores.1, cores.2);
        shared.processes = processes.iter().map(|(name, share)| process(name, *share)).collect();
        *window = Outcome::Measured(shared);
    }
    rung
}

#[test]
fn ssh_that_shares_its_cores_is_bound_by_the_processor() {
    let all = [
        // Both cores taken, mostly by SSH.
        ssh(Upload, 242.0, (0.74, 0.86, 0.07), &[("sshd", 0.635), ("ssh", 0.615), ("sshd", 0.14)]),
        ssh(Upload, 230.0, (0.87, 0.88, 0.01), &[("sshd", 0.72), ("ssh", 0.68), ("sshd", 0.18)]),
        // Some time is left, but at this cost a whole core would still give less than the network.
        ssh(Upload, 159.0, (0.72, 0.70, 0.12), &[("ssh", 0.55), ("sshd", 0.52), ("sshd", 0.19)]),
    ];
    for rung in all {
        let verdict = said(2_500, |doc| {
            doc.lane(LaneKind::Raw, "raw tcp", &[]).rungs = vec![plain(Upload, 293.0)];
            doc.lane(LaneKind::Ssh, "ssh", &[("cipher_upload", "chacha20-poly1305@openssh.com")]).rungs = vec![rung.clone()];
        });
        is(&verdict, "cpu.ssh-encryption");
    }
    let idle = said(2_500, |doc| {
        doc.lane(LaneKind::Ssh, "ssh", &[]).rungs = vec![ssh(Upload, 230.0, (0.5, 0.5, 0.0), &[("sshd", 0.52)])];
    });
    is(&idle, "protocol.lane-slower-than-others");
}

#[test]
fn of_loss_and_ssh_the_lower_one_is_named() {
    let both = |ssh_mb: f64| {
        said(1_000, |doc| {
            doc.rate(Upload, 480);
            loses(doc, Upload);
            doc.lane(LaneKind::Ssh, "ssh", &[]).rungs = vec![burning(plain(Upload, ssh_mb), Nas, "sshd", 0.97)];
        })
    };
    is(&both(58.0), "network.loss");
    is(&both(25.0), "cpu.ssh-encryption");
}

#[test]
fn a_router_is_a_hint_where_nothing_else_fits() {
    let routed = |rate: u64| {
        said(1_000, |doc| {
            doc.link(Pc).gateway = Outcome::Measured(Some([192, 0, 2, 254].into()));
            doc.both(|pass| pass.goodput_bps = mbit(rate));
        })
    };
    let verdict = routed(600);
    is(&verdict, "network.routed-or-firewalled");
    assert_eq!(verdict.confidence, Confidence::Low);
    is(&routed(930), "none.at-line-rate");
}

#[test]
fn traffic_of_others_fills_the_link() {
    let busy = |counted: u64| {
        said(1_000, |doc| {
            doc.stats(Upload, |stats| stats.bytes_retrans = Some(0));
            doc.passes(Upload, |pass| {
                pass.goodput_bps = mbit(500);
                pass.bytes = ByteSize(250_000_000);
                pass.counters_nas = grown("rx_bytes", counted);
            });
        })
    };
    is(&busy(480_000_000), "network.busy-link");
    is(&busy(265_000_000), "inconclusive.unexplained-network-gap");
}

#[test]
fn a_card_without_offloads_fills_a_core() {
    let off = |state: bool| {
        said(10_000, |doc| {
            let features = ["tx-tcp-segmentation", "tx-generic-segmentation"].map(|name| (name.to_owned(), state));
            doc.port(Pc).offloads = Outcome::Measured(features.into());
            doc.rate(Upload, 5_200);
            doc.passes(Upload, |pass| *cpu(pass, Pc) = cpu_window(0.99));
        })
    };
    is(&off(false), "network.nic-driver-or-offload");
    is(&off(true), "cpu.network-stack-core");
}

#[test]
fn a_synchronous_mount_is_named_where_it_costs() {
    let mounted = |option: &str, raw: f64| {
        said(1_000, |doc| {
            doc.device(Nas).options = vec!["rw".into(), option.into()];
            let raw = rung(Upload, (Place::Memory, Place::Disk), FileSet::Large, raw);
            doc.lane(LaneKind::Raw, "raw tcp", &[]).rungs.push(raw);
        })
    };
    is(&mounted("sync", 20.0), "disk.sync-writes");
    is(&mounted("async", 20.0), "none.at-line-rate");
    is(&mounted("sync", 112.0), "none.at-line-rate");
}

#[test]
fn data_that_comes_back_changed_is_the_verdict_whatever_the_speed() {
    let differs = Outcome::failed("the content that came back differs from what was written");
    let copy = said(1_000, |doc| {
        let mut changed = rung(Upload, (Place::Memory, Place::Disk), FileSet::Large, 112.0);
        changed.result.measured_mut().unwrap().verified_bytes = differs.clone().map(|()| ByteSize(0));
        doc.lane(LaneKind::Raw, "raw tcp", &[]).rungs.push(changed);
    });
    is(&copy, "disk.content-differs");
    let disk = said(1_000, |doc| {
        let storage = doc.measurements.storage.measured_mut().unwrap();
        storage.nas.measured_mut().unwrap().read = Outcome::failed("content differs at byte 4096");
    });
    is(&disk, "disk.content-differs");
    assert_eq!(disk.r#where, Some(Where::Nas));
    let unread = said(1_000, |doc| {
        let storage = doc.measurements.storage.measured_mut().unwrap();
        storage.nas.measured_mut().unwrap().read = Outcome::failed("the disk went away");
    });
    assert_ne!(unread.code.to_string(), "disk.content-differs");
}
