//! The network and its aggregations.

use super::*;

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
