//! Processors, disks and protocols.

use super::*;

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
            // Streams that wait for a program leave gaps.
            for way in Direction::BOTH {
                doc.stats(way, |stats| stats.busy_us = Some(1_600_000));
            }
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
