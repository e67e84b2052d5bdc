//! What the verdict is: one line for each question and what it is bent by.

use super::*;

pub(super) const VERDICTS: &[Case] = &[
    ("both directions at the line", one_gbit, |_| (), "none.at-line-rate"),
    (
        "what a disk would be is nobody's question",
        one_gbit,
        |doc| doc.measurements.storage = Outcome::failed("x"),
        "none.at-line-rate",
    ),
    ("an iperf3 server at the PC's line", iperf3, |_| (), "none.at-line-rate"),
    (
        "an iperf3 server below it: what its host does is not known",
        iperf3,
        |doc| doc.both(|pass| pass.goodput_bps = mbit(610)),
        "inconclusive.unexplained-network-gap",
    ),
    (
        "nothing came through",
        one_gbit,
        |doc| doc.measurements.throughput = Outcome::failed("the NAS refused"),
        "inconclusive.too-little-evidence",
    ),
    ("more than the line", one_gbit, |doc| doc.both(|pass| pass.goodput_bps = mbit(1_300)), "none.tool-limit"),
    (
        "below the line's bits and above what headers leave",
        one_gbit,
        |doc| doc.both(|pass| pass.goodput_bps = mbit(985)),
        "none.tool-limit",
    ),
    (
        "a policer that counts other bytes gives 1.6 % more",
        one_gbit,
        |doc| doc.both(|pass| pass.goodput_bps = mbit(956)),
        "none.at-line-rate",
    ),
    (
        "a stated speed has no such arithmetic",
        one_gbit,
        |doc| {
            doc.plan.stated_pc_bps = Some(mbit(1_000));
            doc.both(|pass| pass.goodput_bps = mbit(985));
        },
        "none.at-line-rate",
    ),
    (
        "one stream on one core, others idle",
        ten_gbit,
        |doc| {
            only_one(doc, 4_000);
            doc.both(|pass| {
                cpu(pass, Pc, |window| window.processes[0].busiest_thread = 0.97);
                pass.sender_cost = Outcome::Measured(ThreadCost { cpu_us: Elapsed(3_900_000), cycles: None });
            });
        },
        "none.tool-limit",
    ),
    ("one stream whose thread has time", ten_gbit, |doc| only_one(doc, 4_000), "inconclusive.unexplained-network-gap"),
    (
        "one stream on one core that loses much: the loss is the cause",
        ten_gbit,
        |doc| {
            only_one(doc, 1_000);
            doc.stats(Upload, |stats| stats.retransmits = Some(40_000));
            doc.stats(Download, |stats| stats.retransmits = Some(40_000));
            doc.both(|pass| cpu(pass, Pc, |window| window.processes[0].busiest_thread = 0.97));
        },
        "network.loss",
    ),
    (
        "a pace that was asked for",
        one_gbit,
        |doc| {
            doc.both(|pass| {
                pass.goodput_bps = mbit(95 * u64::from(pass.streams));
                pass.method.sender_sockets = SocketFacts { pacing_bps: Some(mbit(100)), ..SocketFacts::default() };
            });
        },
        "none.as-asked",
    ),
    (
        "a pace that an iperf3 server was asked for",
        iperf3,
        |doc| {
            doc.plan.throughput.as_mut().unwrap().options.pacing_bps = Some(mbit(100));
            doc.both(|pass| pass.goodput_bps = mbit(97 * u64::from(pass.streams)));
        },
        "none.as-asked",
    ),
    (
        "a pace that one direction does not reach",
        one_gbit,
        |doc| {
            doc.plan.throughput.as_mut().unwrap().options.pacing_bps = Some(mbit(100));
            doc.passes(Upload, |pass| pass.goodput_bps = mbit(97 * u64::from(pass.streams)));
            doc.passes(Download, |pass| pass.goodput_bps = mbit(50));
        },
        "inconclusive.unexplained-network-gap",
    ),
    (
        "a window that the path does not need, on a line that nobody knows",
        one_gbit,
        |doc| {
            doc.no_links();
            doc.plan.throughput.as_mut().unwrap().options.window_bytes = Some(4_000_000);
            doc.both(|pass| pass.goodput_bps = mbit(941));
            for way in Direction::BOTH {
                doc.stats(way, |stats| (stats.rwnd_limited_us, stats.sndbuf_limited_us) = (Some(1_500_000), Some(1_500_000)));
            }
        },
        "none.at-line-rate",
    ),
    (
        "the same at no common speed",
        one_gbit,
        |doc| {
            doc.no_links();
            doc.plan.throughput.as_mut().unwrap().options.window_bytes = Some(4_000_000);
            doc.both(|pass| pass.goodput_bps = mbit(600));
            for way in Direction::BOTH {
                doc.stats(way, |stats| stats.rwnd_limited_us = Some(3_000_000));
            }
        },
        "inconclusive.unexplained-network-gap",
    ),
    (
        "buffers that were asked for",
        one_gbit,
        |doc| {
            doc.plan.throughput.as_mut().unwrap().options.window_bytes = Some(16_384);
            doc.both(|pass| pass.goodput_bps = mbit(300));
            for way in Direction::BOTH {
                doc.stats(way, |stats| stats.rwnd_limited_us = Some(3_000_000));
            }
        },
        "none.tool-limit",
    ),
    (
        "a window that nobody asked for",
        one_gbit,
        |doc| {
            doc.both(|pass| {
                pass.goodput_bps = mbit(300);
                pass.sender = Outcome::skipped("the server does not tell");
                pass.limits = Outcome::Measured(LimitShares { receiver: 0.4, network: 0.6, ..LimitShares::default() });
            });
        },
        "network.tcp-window",
    ),
    (
        "a receiver's window below the threshold",
        one_gbit,
        |doc| {
            doc.both(|pass| {
                pass.goodput_bps = mbit(300);
                pass.sender = Outcome::skipped("the server does not tell");
                pass.limits = Outcome::Measured(LimitShares { receiver: 0.1, network: 0.9, ..LimitShares::default() });
            });
        },
        "inconclusive.unexplained-network-gap",
    ),
    (
        "one stream fills a core, several the line",
        ten_gbit,
        |doc| {
            for way in Direction::BOTH {
                doc.passes(way, |pass| {
                    if pass.streams == 1 {
                        pass.goodput_bps = mbit(5_000);
                        cpu(pass, Nas, |window| window.processes[0].busiest_thread = 0.98);
                    }
                });
            }
        },
        "cpu.network-stack-core",
    ),
    (
        "dips at one distance and nothing else",
        one_gbit,
        |doc| {
            doc.both(|pass| {
                pass.goodput_bps = mbit(600);
                pass.shape.dips = Some(Dips { every_us: Elapsed(500_000), count: 8, depth: 0.6 });
            });
        },
        "network.periodic-stalls",
    ),
    (
        "dips of packets that get lost",
        one_gbit,
        |doc| {
            doc.both(|pass| {
                pass.goodput_bps = mbit(600);
                pass.shape.longest_stall_us = Elapsed(300_000);
            });
            doc.stats(Upload, |stats| stats.retransmits = Some(40_000));
            doc.stats(Download, |stats| stats.retransmits = Some(40_000));
        },
        "network.loss",
    ),
    (
        "only both directions at once",
        one_gbit,
        |doc| {
            doc.plan.throughput.as_mut().unwrap().ways = Ways::Both;
            at_once(doc, 938);
            doc.tcp().upload = DirectionThroughput::skipped("not asked for");
            doc.tcp().download = DirectionThroughput::skipped("not asked for");
        },
        "none.at-line-rate",
    ),
    (
        "only one direction",
        one_gbit,
        |doc| {
            doc.plan.throughput.as_mut().unwrap().ways = Ways::Upload;
            doc.tcp().download = DirectionThroughput::skipped("not asked for");
        },
        "none.at-line-rate",
    ),
    (
        "over loopback no cable is judged",
        one_gbit,
        |doc| {
            doc.plan.local = true;
            doc.both(|pass| pass.goodput_bps = mbit(40_000));
        },
        "none.at-device-class",
    ),
    ("datagrams up to the line", || datagrams_only(1_000, None), |_| (), "none.at-line-rate"),
    ("datagrams that get lost at the line", || datagrams_only(1_000, Some(950)), |_| (), "none.at-line-rate"),
    (
        "datagrams get lost early though TCP fills the line",
        || rates_only(1_000),
        |doc| doc.tcp().udp = datagrams_only(1_000, Some(600)).tcp().udp.clone(),
        "network.datagram-loss",
    ),
    ("datagrams that get lost far below the line", || datagrams_only(1_000, Some(600)), |_| (), "network.datagram-loss"),
    (
        "the same where no link is known, but one direction is better",
        || datagrams_only(1_000, Some(600)),
        |doc| doc.no_links(),
        "network.datagram-loss",
    ),
    (
        "datagrams that the receiver drops",
        || datagrams_only(1_000, Some(600)),
        |doc| {
            let udp = doc.tcp().udp.measured_mut().unwrap().upload.measured_mut().unwrap();
            udp.passes.iter_mut().for_each(|pass| {
                pass.dropped_by_receiver = Outcome::Measured(pass.lost);
                pass.received_bps = pass.received_bps.scale(0.6);
            });
            udp.loss_from_bps = None;
        },
        "none.tool-limit",
    ),
    (
        "one rate was asked for, and it passes",
        || datagrams_only(1_000, None),
        |doc| {
            for way in [Upload, Download] {
                let section = doc.tcp().udp.measured_mut().unwrap();
                let udp = if way == Upload { &mut section.upload } else { &mut section.download };
                let udp = udp.measured_mut().unwrap();
                udp.passes.truncate(1);
                udp.clean_bps = Some(udp.passes[0].asked_bps);
                udp.ended_because = "that rate was asked for".into();
            }
            let asked = crate::model::plan::UdpPlan { rate_bps: Some(mbit(95)), ..Default::default() };
            doc.plan.throughput.as_mut().unwrap().udp = Some(asked);
        },
        "none.as-asked",
    ),
    (
        "several PCs get all what they get alone",
        ten_gbit,
        |doc| {
            doc.tcp().together = group(&[(941, 930), (940, 925)]);
            doc.tcp().upload = DirectionThroughput::skipped("together");
            doc.tcp().download = DirectionThroughput::skipped("together");
        },
        "none.as-asked",
    ),
    (
        "several PCs get less, and the NAS's link could carry more",
        ten_gbit,
        |doc| {
            doc.tcp().together = group(&[(941, 470), (940, 469)]);
            doc.tcp().upload = DirectionThroughput::skipped("together");
            doc.tcp().download = DirectionThroughput::skipped("together");
        },
        "none.as-asked",
    ),
    (
        "several PCs fill the NAS's link",
        one_gbit,
        |doc| {
            doc.tcp().together = group(&[(941, 470), (940, 469)]);
            doc.tcp().upload = DirectionThroughput::skipped("together");
            doc.tcp().download = DirectionThroughput::skipped("together");
        },
        "none.at-line-rate",
    ),
    (
        "several PCs at what a common speed carries, and no port tells",
        one_gbit,
        |doc| {
            doc.no_links();
            only_together(doc, &[(941, 470), (940, 471)]);
        },
        "none.at-line-rate",
    ),
    (
        "several PCs whose sum grows, but not to the sum of each alone",
        one_gbit,
        |doc| {
            doc.no_links();
            only_together(doc, &[(700, 500), (700, 500)]);
        },
        "none.as-asked",
    ),
    (
        "several PCs that get no more than one alone, at no common speed",
        one_gbit,
        |doc| {
            doc.no_links();
            only_together(doc, &[(700, 350), (700, 350)]);
        },
        "none.as-asked",
    ),
    (
        "several PCs that get no more than one alone, and one of them starves",
        one_gbit,
        |doc| {
            doc.no_links();
            only_together(doc, &[(700, 650), (700, 40)]);
        },
        "inconclusive.unexplained-network-gap",
    ),
    ("controls compared at the line", one_gbit, |doc| compare(doc, &[("cubic", 938), ("reno", 930)]), "none.at-line-rate"),
    (
        "controls compared on a line that nobody knows",
        one_gbit,
        |doc| {
            doc.no_links();
            compare(doc, &[("cubic", 400), ("reno", 600)]);
        },
        "none.as-asked",
    ),
    (
        "of two controls one exists",
        one_gbit,
        |doc| {
            compare(doc, &[("cubic", 938), ("nosuch", 938)]);
            lacks(doc, "nosuch");
        },
        "inconclusive.too-little-evidence",
    ),
];

#[test]
fn each_question_about_rates_has_its_answer() {
    for (sentence, make, change, expected) in VERDICTS {
        let mut doc = make();
        change(&mut doc);
        let verdict = judge(&doc).verdict;
        assert_eq!(verdict.code.to_string(), *expected, "{sentence}: {}", verdict.sentence);
    }
}
