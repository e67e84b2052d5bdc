//! Real cases, told by their numbers: the verdict names the cause that was found, and nothing where nobody found one.

use weaklink::{model, units};

#[path = "../src/verdict/scenario.rs"]
#[expect(dead_code, reason = "each test file needs some of the hands")]
mod scenario;

use model::copy::{FileSet, LaneKind, Place};
use model::cpu::CpuWindow;
use model::finding::{Confidence, Status};
use model::link::InterfaceKind;
use model::mtu::{Limiter, SegmentStream};
use model::outcome::Outcome;
use model::plan::Workload;
use model::storage::{Burst, Raid};
use model::throughput::Pass;
use model::{Direction, Document, Role};
use scenario::*;
use units::{BitRate, ByteRate, ByteSize, Elapsed};
use weaklink::verdict::judge;

use Direction::{Download, Upload};
use Role::{Nas, Pc};

/// A case: its story, the line, the facts, and the codes that count as right.
type Case = (&'static str, u64, fn(&mut Document), &'static [&'static str]);

fn speed(doc: &mut Document, role: Role, line: u64) {
    doc.port(role).speed_bps = interface("x", InterfaceKind::Physical, line).speed_bps;
}

fn lossy(doc: &mut Document, way: Direction, rate: u64, permille: u64) {
    doc.rate(way, rate);
    doc.stats(way, |stats| stats.retransmits = Some(permille * 1_000));
}

fn at(pass: &mut Pass, role: Role) -> &mut CpuWindow {
    let window = if role == Pc { &mut pass.cpu_pc } else { &mut pass.cpu_nas };
    window.measured_mut().unwrap()
}

fn hole(doc: &mut Document, largest: u32) {
    doc.mtu(Pc, 9000);
    doc.mtu(Nas, 9000);
    let mtu = doc.measurements.mtu.measured_mut().unwrap();
    mtu.upload = Outcome::Measured(path(largest, Limiter::Silent));
    mtu.download = Outcome::Measured(path(largest, Limiter::Silent));
    mtu.unclamped = Outcome::Measured(SegmentStream {
        direction: Upload,
        bytes: ByteSize(0),
        elapsed_us: Elapsed(1_500_000),
        goodput_bps: BitRate(0),
        packet: None,
    });
}

fn burst(doc: &mut Document, role: Role, from: u64, to: u64) {
    let mut write = transfer(to);
    let fast = ByteRate(from * 1_000_000);
    write.burst = Some(Burst { bytes_per_s: fast, bytes: ByteSize(4_000_000_000), elapsed_us: Elapsed(10_000_000) });
    doc.disk(role).write = Outcome::Measured(write);
}

const NETWORK: &[Case] = &[
    (
        "an SFP+ copper module hides 2.5G from a 10G switch: only PC to NAS is bad",
        2_500,
        |doc| {
            speed(doc, Pc, 10_000);
            lossy(doc, Upload, 320, 12);
        },
        &["network.loss", "network.speed-step-drops"],
    ),
    (
        "a 5G USB adapter in a port that runs it at USB 2 shows a 1G link",
        1_000,
        |doc| {
            doc.port(Nas).bus = bus("usb", 480, 5_000, "USB 480 Mbit/s");
            doc.rate(Upload, 330);
            doc.rate(Download, 340);
        },
        &["network.nic-bus"],
    ),
    (
        "a USB-C adapter the wrong way round: 42 MB/s",
        1_000,
        |doc| {
            doc.port(Nas).bus = bus("usb", 480, 5_000, "USB 480 Mbit/s");
            doc.modes(Nas, &[1_000, 2_500], &[1_000, 2_500], &[1_000, 2_500]);
            doc.rate(Upload, 336);
            doc.rate(Download, 341);
        },
        &["network.nic-bus"],
    ),
    (
        "both sides can gigabit and linked at 100: the cable",
        100,
        |doc| {
            doc.modes(Nas, &[10, 100, 1_000], &[10, 100, 1_000], &[10, 100, 1_000]);
            speed(doc, Pc, 1_000);
            doc.modes(Pc, &[10, 100, 1_000], &[10, 100, 1_000], &[]);
        },
        &["network.link-below-capability"],
    ),
    (
        "automatic negotiation was off with a fixed speed",
        100,
        |doc| {
            doc.modes(Pc, &[10, 100, 1_000], &[100], &[]);
            doc.port(Pc).autoneg = Outcome::Measured(model::Fact::new(false, model::Source::Ethtool));
            speed(doc, Nas, 1_000);
        },
        &["network.link-below-capability"],
    ),
    (
        "the router offered 100 only",
        100,
        |doc| {
            doc.modes(Nas, &[100, 1_000, 2_500], &[100, 1_000, 2_500], &[10, 100]);
            speed(doc, Pc, 1_000);
        },
        &["network.link-below-capability"],
    ),
    (
        "a layer2 hash puts all flows on one of two links",
        10_000,
        |doc| {
            for role in [Pc, Nas] {
                bonded(doc, role, "802.3ad", Some("layer2"), &[10_000, 10_000]);
            }
        },
        &["network.lag-broken", "network.lag-reordering", "network.lag-uneven-hash"],
    ),
    (
        "a virtual adapter with 9000 before a path and a NAS of 1500",
        1_000,
        |doc| {
            doc.mtu(Pc, 9000);
            doc.measurements.mtu.measured_mut().unwrap().upload = Outcome::Measured(short_path(1500, 9000, Limiter::Silent));
        },
        &["network.mtu-mismatch"],
    ),
    (
        "a DSL router that says 1492 costs nothing",
        100,
        |doc| {
            let router = Limiter::Router { address: [192, 0, 2, 9].into(), next_hop_mtu: units::Mtu(1492) };
            let mtu = doc.measurements.mtu.measured_mut().unwrap();
            mtu.upload = Outcome::Measured(short_path(1492, 1500, router.clone()));
            mtu.download = Outcome::Measured(short_path(1492, 1500, router));
        },
        &["none.at-line-rate"],
    ),
    (
        "MTU 9000 everywhere, and a driver drops above 4082",
        10_000,
        |doc| hole(doc, 4082),
        &["network.mtu-black-hole", "network.mtu-mismatch"],
    ),
    (
        "a virtual adapter with 9000 on a path of 1500",
        1_000,
        |doc| hole(doc, 1500),
        &["network.mtu-black-hole", "network.mtu-mismatch"],
    ),
    (
        "round robin over two links is slower than one",
        1_000,
        |doc| {
            for role in [Pc, Nas] {
                bonded(doc, role, "balance-rr", None, &[1_000, 1_000]);
            }
            doc.both(|pass| pass.goodput_bps = mbit(560));
            doc.stats(Upload, |s| s.reord_seen = Some(9_000));
            doc.stats(Download, |s| s.reord_seen = Some(9_000));
        },
        &["network.lag-broken", "network.lag-reordering", "network.lag-uneven-hash"],
    ),
    (
        "no LACP partner and a single port in the bond",
        1_000,
        |doc| {
            bonded(doc, Pc, "802.3ad", Some("layer2+3"), &[1_000, 1_000]);
            bonded(doc, Nas, "802.3ad", Some("layer2"), &[1_000, 1_000]);
            bond(doc, Nas).partner_mac = Some("00:00:00:00:00:00".into());
            for port in &mut bond(doc, Nas).ports {
                port.churn = Some(["none".into(), "churned".into()]);
            }
        },
        &["network.lag-broken", "network.lag-reordering", "network.lag-uneven-hash"],
    ),
    (
        "two bonds and one connection",
        1_000,
        |doc| {
            for role in [Pc, Nas] {
                bonded(doc, role, "802.3ad", Some("layer3+4"), &[1_000, 1_000]);
            }
            doc.rate(Upload, 1_860);
            doc.rate(Download, 1_860);
            doc.tcp().upload.single = Outcome::Measured(pass(1, 890));
            doc.tcp().download.single = Outcome::Measured(pass(1, 880));
        },
        &["network.lag-single-flow"],
    ),
    (
        "a VPN address instead of the LAN's: 2 MiB/s",
        1_000,
        |doc| {
            doc.link(Pc).stack.insert(0, interface("tailscale0", InterfaceKind::Tunnel, 10));
            doc.mtu(Pc, 1500);
            doc.both(|pass| pass.goodput_bps = mbit(17));
        },
        &["network.routed-or-firewalled", "network.wrong-route"],
    ),
    (
        "the client sits two rooms away by radio",
        1_000,
        |doc| {
            doc.link(Pc).stack = vec![interface("wlan0", InterfaceKind::Wifi, 144)];
            doc.both(|pass| pass.goodput_bps = mbit(40));
        },
        &["network.wrong-route"],
    ),
    (
        "10G to 1G with a shallow switch",
        1_000,
        |doc| {
            speed(doc, Pc, 10_000);
            lossy(doc, Upload, 400, 8);
        },
        &["network.loss", "network.speed-step-drops"],
    ),
    (
        "bad uploads with many retransmissions from one client",
        2_500,
        |doc| lossy(doc, Upload, 900, 20),
        &["network.cable-errors", "network.loss"],
    ),
    (
        "2 % sent again, and line rate all the same",
        1_000,
        |doc| {
            doc.rate(Upload, 927);
            doc.stats(Upload, |s| s.retransmits = Some(20_000));
        },
        &["none.at-line-rate"],
    ),
    (
        "pause frames cost a fifth of the line, every drop counter zero",
        25_000,
        |doc| {
            doc.rate(Upload, 19_000);
            doc.passes(Upload, |pass| pass.counters_pc = grown("rx_pause", 1_000_000));
        },
        &["network.flow-control"],
    ),
    (
        "a 64 KB window over 100 ms",
        1_000,
        |doc| {
            doc.tcp().upload.multi = Outcome::skipped("quick");
            doc.rate(Upload, 5);
            doc.stats(Upload, |s| {
                s.min_rtt_us = Some(100_000);
                s.snd_wnd_bytes = Some(65_536);
                s.rwnd_limited_us = Some(3_900_000);
            });
        },
        &["network.tcp-window"],
    ),
    (
        "94.8 Mbit/s at the receiver between two gigabit cards",
        1_000,
        |doc| doc.both(|pass| pass.goodput_bps = BitRate(94_000_000)),
        &["network.hop-slower-than-links", "network.link-below-capability"],
    ),
    (
        "a flat 6.04 Gbit/s behind PCIe Gen3 x1",
        10_000,
        |doc| {
            doc.port(Pc).bus = bus("pci", 7_880, 15_750, "PCIe 8.0 GT/s x1");
            doc.both(|pass| pass.goodput_bps = mbit(6_040));
        },
        &["network.nic-bus"],
    ),
    (
        "a 10G card in a Gen2 x1 riser towards a 2.5G peer: no limit yet",
        2_500,
        |doc| {
            speed(doc, Pc, 10_000);
            doc.port(Pc).bus = bus("pci", 4_000, 32_000, "PCIe 5.0 GT/s x1");
        },
        &["none.at-line-rate"],
    ),
    (
        "several flows share one core",
        10_000,
        |doc| {
            doc.rate(Download, 5_500);
            doc.passes(Download, |pass| *at(pass, Pc) = cpu_window(1.0));
        },
        &["cpu.network-stack-core"],
    ),
];

const BEYOND: &[Case] = &[
    (
        "successive writes fall from 295 to 179 MB/s while reads stay",
        2_500,
        |doc| burst(doc, Nas, 295, 179),
        &["disk.cache-exhausted"],
    ),
    (
        "the client's SSD fills its fast part",
        10_000,
        |doc| burst(doc, Pc, 1_500, 120),
        &["disk.pc-read", "disk.pc-write", "disk.cache-exhausted"],
    ),
    (
        "a SATA disk of 160 MB/s is next right above gigabit",
        10_000,
        |doc| doc.disk(Nas).write = Outcome::Measured(transfer(160)),
        &["disk.nas-write"],
    ),
    (
        "parity writes at 20 MB/s",
        1_000,
        |doc| doc.disk(Nas).write = Outcome::Measured(transfer(20)),
        &["disk.nas-write", "cpu.disk-encryption-or-parity"],
    ),
    (
        "the array resyncs for another 25 hours",
        1_000,
        |doc| {
            doc.disk(Nas).write = Outcome::Measured(transfer(35));
            let syncing = Some("resync = 3.4 % finish=1500min".to_owned());
            doc.device(Nas).raid = Some(Raid { level: "raid5".into(), members: 4, missing: 0, syncing });
        },
        &["disk.raid-degraded-or-resyncing"],
    ),
    (
        "native encryption reads 220 MB/s at a full core",
        10_000,
        |doc| {
            doc.device(Nas).layers = vec!["dm-crypt".into()];
            let mut read = transfer(220);
            read.device_busy = Outcome::Measured(0.3);
            read.cpu.measured_mut().unwrap().processes.push(process("kcryptd/0", 1.0));
            doc.disk(Nas).read = Outcome::Measured(read);
        },
        &["disk.nas-read", "cpu.disk-encryption-or-parity"],
    ),
    (
        "112 MB/s on gigabit",
        1_000,
        |doc| {
            let disk = (Place::Memory, Place::Disk);
            doc.lane(LaneKind::Raw, "raw tcp", &[]).rungs = vec![rung(Upload, disk, FileSet::Large, 113.0)];
            doc.lane(LaneKind::Mounted, "smb 3.1.1", &[]).rungs = vec![rung(Upload, disk, FileSet::Large, 112.0)];
        },
        &["none.at-line-rate"],
    ),
    (
        "copies at 1.064 GB/s beat a benchmark of 4.5 Gbit/s",
        10_000,
        |doc| {
            doc.both(|pass| pass.goodput_bps = mbit(4_500));
            doc.lane(LaneKind::Mounted, "smb 3.1.1", &[]).rungs = vec![plain(Upload, 1_064.0), plain(Download, 1_064.0)];
        },
        &["none.tool-limit", "none.at-line-rate"],
    ),
    ("9.39 Gbit/s over a 5G link is a figure of the sender's buffer", 5_000, |doc| doc.rate(Upload, 9_390), &["none.tool-limit"]),
    (
        "the sshd child at 100 %",
        10_000,
        |doc| {
            doc.lane(LaneKind::Raw, "raw tcp", &[]).rungs = vec![plain(Upload, 1_100.0)];
            doc.lane(LaneKind::Ssh, "ssh", &[]).rungs = vec![burning(plain(Upload, 20.0), Nas, "sshd", 1.0)];
        },
        &["cpu.ssh-encryption"],
    ),
    (
        "samba on a small MIPS processor",
        1_000,
        |doc| {
            let disk = (Place::Memory, Place::Disk);
            doc.lane(LaneKind::Raw, "raw tcp", &[]).rungs = vec![rung(Upload, disk, FileSet::Large, 85.0)];
            let copy = burning(rung(Upload, disk, FileSet::Large, 42.0), Nas, "smbd", 0.97);
            doc.lane(LaneKind::Mounted, "smb 3.0", &[]).rungs = vec![copy];
        },
        &["cpu.smb-server-core"],
    ),
    (
        "rsize and wsize of 8192",
        1_000,
        |doc| {
            let facts = [("rsize", "8192"), ("wsize", "8192")];
            doc.lane(LaneKind::Mounted, "nfs 3", &facts).rungs = vec![plain(Upload, 3.0), plain(Download, 3.0)];
        },
        &["protocol.nfs-small-io-size", "protocol.nfs-sync-export", "protocol.nfs-single-connection"],
    ),
    (
        "a folder of very many tiny files",
        1_000,
        |doc| {
            doc.plan.workload = Workload::Small;
            let small = rung(Upload, (Place::Memory, Place::Memory), FileSet::Small, 0.3);
            doc.lane(LaneKind::Mounted, "smb 3.1.1", &[]).rungs = vec![plain(Upload, 110.0), small];
        },
        &["protocol.small-files-latency"],
    ),
    (
        "one pushes slowly over ssh and nobody is busy",
        1_000,
        |doc| {
            doc.lane(LaneKind::Ssh, "ssh", &[]).rungs = vec![plain(Upload, 34.0), plain(Download, 110.0)];
        },
        &["protocol.lane-slower-than-others"],
    ),
];

fn run(cases: &[Case]) {
    let mut wrong = Vec::new();
    for (story, line, change, right) in cases {
        let mut doc = healthy(*line);
        change(&mut doc);
        let verdict = judge(&doc).verdict;
        if !right.contains(&verdict.code.to_string().as_str()) {
            wrong.push(format!("{story}: {} {}", verdict.code, verdict.sentence));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn causes_of_the_network_are_named() {
    run(NETWORK);
}

#[test]
fn causes_beyond_the_network_are_named() {
    run(BEYOND);
}

#[test]
fn what_nobody_found_is_not_claimed_with_confidence() {
    let cases: &[Case] = &[
        (
            "the cipher makes no difference and no process is full",
            1_000,
            |doc| {
                doc.lane(LaneKind::Ssh, "ssh", &[("cipher_upload", "aes128-ctr")]).rungs =
                    vec![burning(plain(Upload, 78.0), Nas, "sshd", 0.5)];
            },
            &[],
        ),
        (
            "600 Mbit/s through a dock, the same buses at both systems",
            10_000,
            |doc| {
                doc.both(|pass| pass.goodput_bps = mbit(600));
            },
            &[],
        ),
        (
            "a direction of SMB much slower, the signing algorithm merely listed",
            2_500,
            |doc| {
                doc.lane(LaneKind::Mounted, "smb 3.1.1", &[("sign_algorithm", "AES_128_GMAC")]).rungs =
                    vec![plain(Upload, 90.0), plain(Download, 280.0)];
            },
            &[],
        ),
        (
            "writes of 3.5 MB/s after sync was removed",
            1_000,
            |doc| {
                doc.lane(LaneKind::Mounted, "nfs 4.2", &[("wsize", "1048576")]).rungs = vec![plain(Upload, 3.5)];
            },
            &[],
        ),
        (
            "reads over iSCSI gain little from 10G, the disks nearly idle",
            10_000,
            |doc| {
                doc.lane(LaneKind::Mounted, "ext4", &[]).rungs = vec![plain(Download, 160.0)];
            },
            &[],
        ),
    ];
    for (story, line, change, _) in cases {
        let mut doc = healthy(*line);
        change(&mut doc);
        let verdict = judge(&doc).verdict;
        let humble = verdict.status == Status::Inconclusive || verdict.confidence == Confidence::Low;
        assert!(humble, "{story}: {} {:?} {}", verdict.code, verdict.confidence, verdict.sentence);
    }
}
