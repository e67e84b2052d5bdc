//! Every rule: a scenario where it is the verdict or a finding, and one where it stays silent.

use super::super::scenario::*;
use super::super::{judge, rules};
use crate::model::copy::{FileSet, LaneKind, Place};
use crate::model::finding::{Component, Confidence, Status, Where};
use crate::model::link::InterfaceKind;
use crate::model::mtu::{Limiter, SegmentStream};
use crate::model::outcome::Outcome;
use crate::model::plan::Workload;
use crate::model::storage::{Burst, Raid};
use crate::model::throughput::Pass;
use crate::model::{Direction, Document, Role};
use crate::units::{BitRate, ByteRate, ByteSize, Elapsed};

use Direction::{Download, Upload};
use Role::{Nas, Pc};

type Change = fn(&mut Document);

/// A line of the table: a sentence, the healthy line, how it is bent, and the verdict's code.
type Case = (&'static str, u64, Change, &'static str);

fn run(cases: &[Case]) {
    for (sentence, line, change, expected) in cases {
        let mut doc = healthy(*line);
        change(&mut doc);
        let verdict = judge(&doc).verdict;
        assert_eq!(verdict.code.to_string(), *expected, "{sentence}: {}", verdict.sentence);
    }
}

fn lossy(doc: &mut Document, way: Direction, rate: u64) {
    doc.rate(way, rate);
    doc.stats(way, |stats| stats.retransmits = Some(15_000));
}

fn cpu(pass: &mut Pass, role: Role, change: impl Fn(&mut crate::model::cpu::CpuWindow)) {
    let window = if role == Pc { &mut pass.cpu_pc } else { &mut pass.cpu_nas };
    window.measured_mut().into_iter().for_each(change);
}

fn lane(doc: &mut Document, kind: LaneKind, protocol: &str, facts: &[(&str, &str)], rungs: Vec<crate::model::copy::Rung>) {
    doc.lane(LaneKind::Raw, "raw tcp", &[]).rungs = vec![plain(Upload, 290.0), plain(Download, 290.0)];
    doc.lane(kind, protocol, facts).rungs = rungs;
}
fn jumbo_hole(doc: &mut Document) {
    for role in [Pc, Nas] {
        doc.mtu(role, 9000);
    }
    let mtu = doc.measurements.mtu.measured_mut().unwrap();
    mtu.upload = Outcome::Measured(path(1500, Limiter::Silent));
    mtu.download = Outcome::Measured(path(1500, Limiter::Silent));
}

#[test]
fn healthy_at_every_speed() {
    for line in [100, 1_000, 2_500, 5_000, 10_000, 25_000] {
        let judgement = judge(&healthy(line));
        let verdict = &judgement.verdict;
        assert_eq!(verdict.code.to_string(), "none.at-line-rate", "{line}: {}", verdict.sentence);
        assert_eq!((verdict.status, verdict.confidence), (Status::Healthy, Confidence::High));
        assert!(judgement.findings.iter().all(|finding| finding.severity == crate::model::finding::Severity::Info), "{line}");
        for component in [Component::Network, Component::Disk, Component::Cpu] {
            assert!(verdict.ruled_out.iter().any(|out| out.code.component == component), "{line}: {component:?}");
        }
    }
}

const THE_NETWORK: &[Case] = &[
    ("large packets vanish", 2_500, jumbo_hole, "network.mtu-black-hole"),
    (
        "a black hole hides every other cause",
        2_500,
        |doc| {
            jumbo_hole(doc);
            lossy(doc, Upload, 400);
        },
        "network.mtu-black-hole",
    ),
    (
        "a router that says so is no black hole",
        1_000,
        |doc| {
            jumbo_hole(doc);
            let router = Limiter::Router { address: [192, 0, 2, 9].into(), next_hop_mtu: crate::units::Mtu(1500) };
            let mtu = doc.measurements.mtu.measured_mut().unwrap();
            mtu.upload = Outcome::Measured(path(1500, router.clone()));
            mtu.download = Outcome::Measured(path(1500, router));
        },
        "none.at-line-rate",
    ),
    (
        "one end jumbo; the other accepts four bytes more than its MTU",
        1_000,
        |doc| {
            doc.mtu(Pc, 9000);
            doc.measurements.mtu.measured_mut().unwrap().upload = Outcome::Measured(path(1504, Limiter::Silent));
        },
        "network.mtu-mismatch",
    ),
    (
        "a mismatch stands back where a disk costs more",
        2_500,
        |doc| {
            doc.mtu(Pc, 9000);
            doc.disk(Nas).write = Outcome::Measured(transfer(100));
        },
        "disk.nas-write",
    ),
    (
        "both ports offer more than they linked at",
        1_000,
        |doc| {
            for role in [Pc, Nas] {
                doc.modes(role, &[100, 1_000, 2_500], &[100, 1_000, 2_500], &[100, 1_000, 2_500]);
            }
        },
        "network.link-below-capability",
    ),
    (
        "one slow end that could do more",
        1_000,
        |doc| {
            doc.modes(Nas, &[1_000, 2_500], &[1_000, 2_500], &[1_000]);
            doc.port(Pc).speed_bps = interface("x", InterfaceKind::Physical, 2_500).speed_bps;
        },
        "network.link-below-capability",
    ),
    (
        "the faster end could do more still: nothing is lost",
        1_000,
        |doc| doc.modes(Pc, &[1_000, 2_500], &[1_000, 2_500], &[]),
        "none.at-line-rate",
    ),
    (
        "half duplex",
        100,
        |doc| {
            doc.port(Nas).duplex =
                Outcome::Measured(crate::model::Fact::new(crate::model::link::Duplex::Half, crate::model::Source::Ethtool));
            doc.rate(Upload, 40);
            doc.rate(Download, 35);
        },
        "network.half-duplex",
    ),
    (
        "a USB 2 hub above a gigabit port",
        1_000,
        |doc| {
            doc.port(Nas).bus = bus("usb", 480, 5_000, "USB 480 Mbit/s");
            doc.rate(Upload, 335);
            doc.rate(Download, 345);
        },
        "network.nic-bus",
    ),
    (
        "PCIe Gen3 x1 under a 10G port",
        10_000,
        |doc| {
            doc.port(Pc).bus = bus("pci", 7_880, 31_500, "PCIe 8.0 GT/s x1");
            doc.rate(Upload, 6_040);
            doc.rate(Download, 6_500);
        },
        "network.nic-bus",
    ),
    (
        "a narrow bus that a slower peer hides",
        2_500,
        |doc| {
            doc.port(Pc).bus = bus("pci", 4_000, 4_000, "PCIe 5.0 GT/s x1");
            doc.port(Pc).speed_bps = interface("x", InterfaceKind::Physical, 10_000).speed_bps;
        },
        "none.at-line-rate",
    ),
    (
        "Wi-Fi instead of the cable",
        1_000,
        |doc| {
            doc.port(Pc).kind = InterfaceKind::Wifi;
            doc.rate(Upload, 300);
            doc.rate(Download, 350);
        },
        "network.wrong-route",
    ),
    (
        "a tunnel instead of the cable",
        1_000,
        |doc| {
            doc.link(Pc).stack.insert(0, interface("tun0", InterfaceKind::Tunnel, 10));
            doc.rate(Upload, 80);
            doc.rate(Download, 90);
        },
        "network.wrong-route",
    ),
    (
        "damaged frames while it is slow",
        1_000,
        |doc| {
            lossy(doc, Upload, 300);
            doc.passes(Upload, |pass| pass.counters_nas = grown("rx_crc_errors", 900));
        },
        "network.cable-errors",
    ),
    (
        "damaged frames at line rate",
        1_000,
        |doc| doc.passes(Upload, |pass| pass.counters_nas = grown("rx_crc_errors", 900)),
        "none.at-line-rate",
    ),
    (
        "overruns are no damage",
        1_000,
        |doc| {
            lossy(doc, Upload, 300);
            doc.passes(Upload, |pass| pass.counters_nas = grown("rx_missed_errors", 900));
        },
        "network.loss",
    ),
    ("loss in one direction", 2_500, |doc| lossy(doc, Download, 600), "network.loss"),
    (
        "retransmissions by the thousand at line rate",
        1_000,
        |doc| doc.stats(Upload, |s| s.retransmits = Some(20_000)),
        "none.at-line-rate",
    ),
    (
        "loss that four streams make up for still costs a copy",
        2_500,
        |doc| {
            doc.stats(Upload, |s| s.retransmits = Some(10_000));
            doc.tcp().upload.single.measured_mut().unwrap().goodput_bps = mbit(700);
        },
        "network.loss",
    ),
    (
        "from 10G to 2.5G only",
        2_500,
        |doc| {
            doc.port(Pc).speed_bps = interface("x", InterfaceKind::Physical, 10_000).speed_bps;
            lossy(doc, Upload, 500);
        },
        "network.speed-step-drops",
    ),
    (
        "a window on a long path that looks like a 100M link",
        1_000,
        |doc| {
            doc.rate(Upload, 94);
            doc.stats(Upload, |s| {
                s.min_rtt_us = Some(70_000);
                s.snd_wnd_bytes = Some(822_000 / 4);
                s.rwnd_limited_us = Some(3_000_000);
            });
            doc.tcp().upload.multi = Outcome::skipped("quick");
            doc.stats(Upload, |s| s.snd_wnd_bytes = Some(822_000));
        },
        "network.tcp-window",
    ),
    (
        "a window that a starved reader closes is the processor's",
        1_000,
        |doc| {
            doc.rate(Upload, 300);
            doc.stats(Upload, |s| s.rwnd_limited_us = Some(3_000_000));
            doc.passes(Upload, |pass| cpu(pass, Nas, |w| w.throttled = Outcome::Measured(0.8)));
        },
        "cpu.network-stack-core",
    ),
    (
        "pause frames without any loss",
        10_000,
        |doc| {
            doc.rate(Upload, 7_000);
            doc.passes(Upload, |pass| pass.counters_nas = grown("tx_pause_frames", 90_000));
        },
        "network.flow-control",
    ),
    (
        "a gigabit hop between 2.5G ports",
        2_500,
        |doc| {
            doc.rate(Upload, 941);
            doc.rate(Download, 940);
        },
        "network.hop-slower-than-links",
    ),
    (
        "a gap that nothing explains",
        2_500,
        |doc| doc.both(|pass| pass.goodput_bps = mbit(1_500)),
        "inconclusive.unexplained-network-gap",
    ),
];

#[test]
fn the_network() {
    run(THE_NETWORK);
}

const AGGREGATIONS: &[Case] = &[
    (
        "one stream over two bonds",
        1_000,
        |doc| {
            for role in [Pc, Nas] {
                bonded(doc, role, "802.3ad", Some("layer3+4"), &[1_000, 1_000]);
            }
            for way in [Upload, Download] {
                doc.rate(way, 1_870);
            }
            doc.tcp().upload.single.measured_mut().unwrap().goodput_bps = mbit(940);
            doc.tcp().download.single.measured_mut().unwrap().goodput_bps = mbit(940);
        },
        "network.lag-single-flow",
    ),
    (
        "all streams on one link",
        1_000,
        |doc| {
            for role in [Pc, Nas] {
                bonded(doc, role, "802.3ad", Some("layer2"), &[1_000, 1_000]);
            }
        },
        "network.lag-uneven-hash",
    ),
    (
        "a bond at one end only is no loss",
        1_000,
        |doc| {
            bonded(doc, Nas, "802.3ad", Some("layer2"), &[1_000, 1_000]);
        },
        "none.at-line-rate",
    ),
    (
        "nobody answers LACP",
        1_000,
        |doc| {
            for role in [Pc, Nas] {
                bonded(doc, role, "802.3ad", Some("layer3+4"), &[1_000, 1_000]);
            }
            bond(doc, Nas).partner_mac = Some("00:00:00:00:00:00".into());
        },
        "network.lag-broken",
    ),
    (
        "round robin slower than its links",
        1_000,
        |doc| {
            for role in [Pc, Nas] {
                bonded(doc, role, "balance-rr", None, &[1_000, 1_000]);
            }
            doc.both(|pass| pass.goodput_bps = mbit(560));
            doc.stats(Upload, |s| s.reord_seen = Some(4_000));
            doc.stats(Download, |s| s.reord_seen = Some(4_000));
        },
        "network.lag-reordering",
    ),
];

#[test]
fn aggregations() {
    run(AGGREGATIONS);
}

const PROCESSORS: &[Case] = &[
    (
        "a full core below the line",
        10_000,
        |doc| {
            doc.rate(Upload, 5_000);
            doc.passes(Upload, |pass| cpu(pass, Nas, |w| *w = cpu_window(0.99)));
        },
        "cpu.network-stack-core",
    ),
    ("a full core at line rate", 10_000, |doc| doc.both(|pass| cpu(pass, Nas, |w| *w = cpu_window(0.99))), "none.at-line-rate"),
    (
        "a quota starves the NAS",
        2_500,
        |doc| {
            doc.both(|pass| {
                pass.goodput_bps = mbit(900);
                cpu(pass, Nas, |w| w.throttled = Outcome::Measured(0.7));
            });
        },
        "cpu.network-stack-core",
    ),
    (
        "others burn the processor",
        2_500,
        |doc| {
            doc.both(|pass| {
                pass.goodput_bps = mbit(1_200);
                cpu(pass, Pc, |w| {
                    *w = cpu_window(1.0);
                    w.run_delay = Outcome::Measured(0.5);
                    w.processes.push(process("ffmpeg", 1.2));
                });
            });
        },
        "cpu.background-load",
    ),
    (
        "others burn the processor, and yet it carries ten times as much the other way",
        1_000,
        |doc| {
            doc.both(|pass| {
                cpu(pass, Pc, |w| {
                    *w = cpu_window(1.0);
                    w.run_delay = Outcome::Measured(0.12);
                    w.processes.push(process("ffmpeg", 1.2));
                });
            });
            doc.passes(Upload, |pass| pass.goodput_bps = mbit(94));
        },
        "network.hop-slower-than-links",
    ),
    (
        "dm-crypt fills a core while the disk idles",
        2_500,
        |doc| {
            doc.device(Nas).layers = vec!["dm-crypt".into()];
            let mut write = transfer(90);
            write.device_busy = Outcome::Measured(0.3);
            write.cpu.measured_mut().unwrap().processes.push(process("kcryptd/253:0", 0.98));
            doc.disk(Nas).write = Outcome::Measured(write);
        },
        "cpu.disk-encryption-or-parity",
    ),
];

#[test]
fn processors() {
    run(PROCESSORS);
}

const DISKS: &[Case] = &[
    ("the NAS writes slowly", 2_500, |doc| doc.disk(Nas).write = Outcome::Measured(transfer(100)), "disk.nas-write"),
    ("the NAS reads slowly", 2_500, |doc| doc.disk(Nas).read = Outcome::Measured(transfer(100)), "disk.nas-read"),
    ("the PC writes slowly", 2_500, |doc| doc.disk(Pc).write = Outcome::Measured(transfer(100)), "disk.pc-write"),
    ("the PC reads slowly", 2_500, |doc| doc.disk(Pc).read = Outcome::Measured(transfer(100)), "disk.pc-read"),
    ("a disk that just keeps up", 1_000, |doc| doc.disk(Nas).write = Outcome::Measured(transfer(118)), "none.at-line-rate"),
    (
        "a cache, then the disk",
        2_500,
        |doc| {
            let mut write = transfer(95);
            write.burst = Some(Burst {
                bytes_per_s: ByteRate(400_000_000),
                bytes: ByteSize(2_000_000_000),
                elapsed_us: Elapsed(5_000_000),
            });
            doc.disk(Nas).write = Outcome::Measured(write);
        },
        "disk.cache-exhausted",
    ),
    (
        "a cache before a disk that keeps up anyway",
        1_000,
        |doc| {
            let mut write = transfer(150);
            write.burst = Some(Burst {
                bytes_per_s: ByteRate(400_000_000),
                bytes: ByteSize(2_000_000_000),
                elapsed_us: Elapsed(5_000_000),
            });
            doc.disk(Nas).write = Outcome::Measured(write);
        },
        "none.at-line-rate",
    ),
    (
        "a resync takes the disks",
        2_500,
        |doc| {
            doc.disk(Nas).write = Outcome::Measured(transfer(60));
            doc.device(Nas).raid =
                Some(Raid { level: "raid5".into(), members: 3, missing: 0, syncing: Some("resync 12 %".into()) });
        },
        "disk.raid-degraded-or-resyncing",
    ),
    (
        "a USB 2 disk",
        1_000,
        |doc| {
            doc.device(Pc).disks[0].attached = Some("USB 480 Mbit/s".into());
            doc.disk(Pc).read = Outcome::Measured(transfer(38));
        },
        "disk.device-link",
    ),
    (
        "only the raw lane knows the disk",
        2_500,
        |doc| {
            doc.no_disks();
            let disk = rung(Upload, (Place::Memory, Place::Disk), FileSet::Large, 90.0);
            doc.lane(LaneKind::Raw, "raw tcp", &[]).rungs.push(disk);
        },
        "disk.nas-write",
    ),
];

#[test]
fn disks() {
    run(DISKS);
}

const PROTOCOLS: &[Case] = &[
    (
        "sshd fills a core",
        2_500,
        |doc| {
            lane(
                doc,
                LaneKind::Ssh,
                "ssh",
                &[("cipher_upload", "aes128-ctr")],
                vec![burning(plain(Upload, 60.0), Nas, "sshd-session", 0.97)],
            );
        },
        "cpu.ssh-encryption",
    ),
    (
        "ssh is slow and nobody is full",
        2_500,
        |doc| lane(doc, LaneKind::Ssh, "ssh", &[], vec![burning(plain(Upload, 60.0), Nas, "sshd", 0.3)]),
        "protocol.lane-slower-than-others",
    ),
    (
        "ssh on a long path",
        2_500,
        |doc| {
            lane(doc, LaneKind::Ssh, "ssh", &[], vec![plain(Upload, 41.0)]);
            let rtt = doc.tcp().idle_rtt.measured_mut().unwrap();
            rtt.median_us = Elapsed(50_000);
        },
        "protocol.ssh-window",
    ),
    (
        "smbd fills a core",
        2_500,
        |doc| {
            lane(
                doc,
                LaneKind::Mounted,
                "smb 3.1.1",
                &[("vers", "3.1.1")],
                vec![burning(plain(Upload, 120.0), Nas, "smbd", 0.98)],
            );
        },
        "cpu.smb-server-core",
    ),
    (
        "smbd encrypts",
        2_500,
        |doc| {
            lane(doc, LaneKind::Mounted, "smb 3.1.1", &[("seal", "yes")], vec![burning(plain(Upload, 120.0), Nas, "smbd", 0.98)]);
        },
        "cpu.smb-signing-or-encryption",
    ),
    (
        "an old dialect",
        2_500,
        |doc| lane(doc, LaneKind::Mounted, "smb 1.0", &[("vers", "1.0")], vec![plain(Upload, 40.0)]),
        "protocol.smb-old-dialect",
    ),
    (
        "smb costs a little",
        2_500,
        |doc| lane(doc, LaneKind::Mounted, "smb 3.1.1", &[], vec![plain(Upload, 240.0)]),
        "protocol.smb-overhead",
    ),
    (
        "smb costs nothing to speak of",
        2_500,
        |doc| lane(doc, LaneKind::Mounted, "smb 3.1.1", &[], vec![plain(Upload, 285.0)]),
        "none.at-line-rate",
    ),
    (
        "nfs with 8 KiB pieces",
        2_500,
        |doc| lane(doc, LaneKind::Mounted, "nfs 3", &[("rsize", "8192"), ("wsize", "8192")], vec![plain(Download, 30.0)]),
        "protocol.nfs-small-io-size",
    ),
    (
        "nfs that syncs every write",
        2_500,
        |doc| lane(doc, LaneKind::Mounted, "nfs 4.2", &[("sync", "yes"), ("wsize", "1048576")], vec![plain(Upload, 30.0)]),
        "protocol.nfs-sync-export",
    ),
    (
        "small files, and those are what the user copies",
        2_500,
        |doc| {
            doc.plan.workload = Workload::Small;
            let small = rung(Upload, (Place::Memory, Place::Memory), FileSet::Small, 3.0);
            lane(doc, LaneKind::Mounted, "smb 3.1.1", &[], vec![plain(Upload, 285.0), small]);
        },
        "protocol.small-files-latency",
    ),
    (
        "small files are what the user copies, though a large one would fill a core",
        2_500,
        |doc| {
            doc.plan.workload = Workload::Small;
            let small = rung(Upload, (Place::Memory, Place::Memory), FileSet::Small, 8.0);
            let large = burning(plain(Upload, 189.0), Pc, "ssh", 0.97);
            lane(doc, LaneKind::Ssh, "ssh", &[("cipher_upload", "chacha20-poly1305@openssh.com")], vec![large, small]);
        },
        "protocol.small-files-latency",
    ),
    (
        "small files are information where large ones are copied",
        2_500,
        |doc| {
            let small = rung(Upload, (Place::Memory, Place::Memory), FileSet::Small, 3.0);
            lane(doc, LaneKind::Mounted, "smb 3.1.1", &[], vec![plain(Upload, 285.0), small]);
        },
        "none.at-line-rate",
    ),
];

#[test]
fn protocols() {
    run(PROTOCOLS);
}

const ANSWERS_WITHOUT_A_FAULT: &[Case] = &[
    ("a level rate is the evidence where no port tells", 2_500, Bend::no_links, "none.at-line-rate"),
    (
        "no port tells and the rate is no class",
        10_000,
        |doc| {
            doc.no_links();
            doc.no_disks();
            doc.both(|pass| pass.goodput_bps = mbit(19_000));
        },
        "inconclusive.unexplained-network-gap",
    ),
    (
        "beyond any class a full core is the honest answer",
        10_000,
        |doc| {
            doc.no_links();
            doc.no_disks();
            doc.both(|pass| {
                pass.goodput_bps = mbit(19_000);
                cpu(pass, Pc, |w| *w = cpu_window(1.0));
            });
        },
        "cpu.network-stack-core",
    ),
    ("more than the port carries", 1_000, |doc| doc.rate(Upload, 9_390), "none.tool-limit"),
    (
        "the copy beats the benchmark",
        10_000,
        |doc| {
            doc.both(|pass| pass.goodput_bps = mbit(4_500));
            doc.lane(LaneKind::Mounted, "smb 3.1.1", &[]).rungs = vec![plain(Upload, 1_064.0), plain(Download, 1_064.0)];
        },
        "none.tool-limit",
    ),
    (
        "one machine",
        10_000,
        |doc| {
            doc.plan.local = true;
            doc.both(|pass| pass.goodput_bps = mbit(19_000));
            doc.disk(Nas).write = Outcome::Measured(transfer(20));
        },
        "none.at-device-class",
    ),
    (
        "nothing at all",
        1_000,
        |doc| doc.measurements = crate::model::document::Measurements::none("no agent answered"),
        "inconclusive.too-little-evidence",
    ),
    (
        "the stated speed overrides the port",
        10_000,
        |doc| {
            doc.plan.stated_nas_bps = Some(mbit(2_500));
            doc.both(|pass| pass.goodput_bps = mbit(2_350));
        },
        "none.at-line-rate",
    ),
];

#[test]
fn answers_without_a_fault() {
    run(ANSWERS_WITHOUT_A_FAULT);
}

#[test]
fn informations_never_decide() {
    let mut doc = healthy(2_500);
    doc.device(Nas).free_bytes = Outcome::Measured(ByteSize(1_000_000_000));
    let judgement = judge(&doc);
    let codes: Vec<String> = judgement.findings.iter().map(|finding| finding.code.to_string()).collect();
    assert!(codes.contains(&"disk.nearly-full".to_owned()) && codes.contains(&"network.jumbo-unused".to_owned()), "{codes:?}");
    assert_eq!(judgement.verdict.status, Status::Healthy);
    assert!(judge(&healthy(1_000)).findings.is_empty());
}

#[test]
fn the_sentence_is_the_one_of_the_product() {
    let mut doc = healthy(2_500);
    let device = doc.device(Nas);
    device.raid = Some(Raid { level: "raid5".into(), members: 3, missing: 0, syncing: None });
    device.disks = vec![device.disks[0].clone(); 3];
    doc.disk(Nas).write = Outcome::Measured(transfer(212));
    let verdict = judge(&doc).verdict;
    assert_eq!(
        verdict.sentence,
        "Bottleneck: NAS disk write (RAID5, 3 HDD), 212 MB/s, in the direction PC → NAS. The network carries 294 MB/s. \
         Mending this gains at most 38 %; after that the 2.5 Gbit/s link is the limit."
    );
    assert_eq!((verdict.direction, verdict.r#where), (Some(Upload), Some(Where::Nas)));
    assert_eq!(verdict.confidence, Confidence::High);
    for component in [Component::Network, Component::Disk, Component::Cpu] {
        assert!(verdict.ruled_out.iter().any(|out| out.code.component == component), "{component:?}");
    }
}

#[test]
fn a_stalled_stream_proves_the_hole() {
    let mut doc = healthy(1_000);
    jumbo_hole(&mut doc);
    doc.measurements.mtu.measured_mut().unwrap().unclamped = Outcome::Measured(SegmentStream {
        direction: Upload,
        bytes: ByteSize(0),
        elapsed_us: Elapsed(1_500_000),
        goodput_bps: BitRate(0),
        packet: None,
    });
    let judgement = judge(&doc);
    assert_eq!(judgement.verdict.confidence, Confidence::High);
    assert_eq!(judgement.verdict.direction, None);
    assert_eq!(judgement.findings[0].severity, crate::model::finding::Severity::Critical);
    assert!(judgement.verdict.sentence.contains("0 B"), "{}", judgement.verdict.sentence);
}

#[test]
fn every_page_has_a_code_that_parses_and_no_code_has_two() {
    let mut codes: Vec<&str> = rules().iter().map(|doc| doc.code).collect();
    codes.sort_unstable();
    let all = codes.len();
    codes.dedup();
    assert_eq!(codes.len(), all);
    for doc in rules() {
        let code = doc.code.parse().unwrap();
        assert_eq!(super::explain(&code), Some(doc));
    }
}
