//! Documents about raw rates: what is the verdict, what is a finding, and where each rule stays silent.

use super::super::judge;
use super::super::scenario::*;
use crate::model::cpu::{CardInterrupts, CoreCount, CpuWindow, NetworkInterrupts};
use crate::model::finding::{Confidence, Severity, Status};
use crate::model::kernel::{Dips, LimitShares, ThreadCost};
use crate::model::link::Duplex;
use crate::model::outcome::Outcome;
use crate::model::plan::{Scope, Ways};
use crate::model::throughput::{BothWays, CongestionTrial, DirectionThroughput, Method, Pass, SocketFacts};
use crate::model::{Direction, Document, Role};
use crate::units::{BitRate, ByteSize, Elapsed};

use Direction::{Download, Upload};
use Role::{Nas, Pc};

type Case = (&'static str, fn() -> Document, fn(&mut Document), &'static str);

fn one_gbit() -> Document {
    rates_only(1_000)
}

fn ten_gbit() -> Document {
    rates_only(10_000)
}

fn iperf3() -> Document {
    iperf3_only(1_000)
}

fn cpu(pass: &mut Pass, role: Role, change: impl Fn(&mut CpuWindow)) {
    let window = if role == Pc { &mut pass.cpu_pc } else { &mut pass.cpu_nas };
    window.measured_mut().into_iter().for_each(change);
}

/// Only one stream was asked for, at this rate.
fn only_one(doc: &mut Document, rate: u64) {
    doc.plan.throughput.as_mut().unwrap().streams = Some(1);
    doc.both(|pass| pass.goodput_bps = mbit(rate));
    doc.tcp().upload.multi = Outcome::skipped("--streams 1 was asked for");
    doc.tcp().download.multi = Outcome::skipped("--streams 1 was asked for");
}

fn at_once(doc: &mut Document, rate: u64) {
    let pass = || Outcome::Measured(pass(4, rate));
    doc.tcp().both = Outcome::Measured(BothWays { upload: pass(), download: pass() });
}

fn trial(direction: Direction, name: &str, rate: u64, lost: u64) -> CongestionTrial {
    let mut pass = pass(1, rate);
    pass.method = Method { congestion: Some(name.into()), ..Method::default() };
    pass.sender.measured_mut().unwrap()[0].retransmits = Some(lost);
    CongestionTrial { direction, congestion: name.into(), pass: Outcome::Measured(pass) }
}

const VERDICTS: &[Case] = &[
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
        },
        "none.tool-limit",
    ),
    (
        "several PCs get all what they get alone",
        ten_gbit,
        |doc| {
            doc.tcp().together = group(&[(941, 930), (940, 925)]);
            doc.tcp().upload = DirectionThroughput::skipped("together");
            doc.tcp().download = DirectionThroughput::skipped("together");
        },
        "none.tool-limit",
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

/// The group measured and nothing else.
fn only_together(doc: &mut Document, rates: &[(u64, u64)]) {
    doc.tcp().together = group(rates);
    doc.tcp().upload = DirectionThroughput::skipped("together");
    doc.tcp().download = DirectionThroughput::skipped("together");
}

/// Controls that were asked for, and what each gave PC → NAS; the first one's pass is the direction's own.
fn compare(doc: &mut Document, rates: &[(&str, u64)]) {
    let plan = doc.plan.throughput.as_mut().unwrap();
    plan.ways = Ways::Upload;
    plan.congestion = rates.iter().map(|(name, _)| (*name).to_owned()).collect();
    let trials: Vec<CongestionTrial> = rates.iter().map(|(name, rate)| trial(Upload, name, *rate, 20)).collect();
    let multi = Outcome::skipped("compared with 1 stream");
    doc.tcp().upload = DirectionThroughput { single: trials[0].pass.clone(), multi, sweep: vec![] };
    doc.tcp().download = DirectionThroughput::skipped("this direction by itself was not asked for");
    doc.tcp().congestion = Outcome::Measured(trials);
}

/// What the PC's kernel does not have never ran.
fn lacks(doc: &mut Document, name: &str) {
    let trials = doc.tcp().congestion.measured_mut().unwrap();
    for trial in trials.iter_mut().filter(|trial| trial.congestion == name) {
        trial.pass = Outcome::skipped("cubic ran instead");
    }
    let host = doc.hosts.pc.measured_mut().unwrap();
    host.tcp.measured_mut().unwrap().congestion_available = vec!["reno".into(), "cubic".into()];
}

#[test]
fn a_comparison_stands_in_the_answer_with_its_figures() {
    for (rates, lacking, words) in [
        (
            &[("cubic", 400), ("bbr", 900)][..],
            None,
            "Healthy: PC → NAS: bbr carries most, 900 Mbit/s: 125 % more than cubic (400 Mbit/s).",
        ),
        (
            &[("cubic", 930), ("bbr", 938)],
            None,
            "Healthy: PC → NAS: bbr 938 Mbit/s and cubic 930 Mbit/s carry alike (0.9 % apart",
        ),
        (
            &[("cubic", 938), ("reno", 500), ("nosuch", 938)],
            Some("nosuch"),
            "cubic carries most, 938 Mbit/s: 88 % more than reno (500 Mbit/s). The PC could not use nosuch; it has reno, cubic.",
        ),
        (
            &[("nosuch", 938), ("cubic", 938)],
            Some("nosuch"),
            "Inconclusive: nosuch and cubic were to be compared, and no two of them ran. The PC could not use nosuch; it has reno, cubic.",
        ),
    ] {
        let mut doc = one_gbit();
        compare(&mut doc, rates);
        if let Some(name) = lacking {
            lacks(&mut doc, name);
        }
        let verdict = judge(&doc).verdict;
        assert!(verdict.sentence.contains(words), "{}", verdict.sentence);
    }
    let mut doc = one_gbit();
    compare(&mut doc, &[("cubic", 800), ("bbr", 938)]);
    for trial in doc.tcp().congestion.measured_mut().unwrap() {
        trial.pass.measured_mut().unwrap().half_width = Some(0.15);
    }
    let verdict = judge(&doc).verdict;
    assert!(
        verdict.sentence.contains("17 % more than cubic (800 Mbit/s). That is no more than the passes themselves vary"),
        "{}",
        verdict.sentence
    );
    let mut doc = one_gbit();
    compare(&mut doc, &[("cubic", 400), ("bbr", 900)]);
    doc.passes(Upload, |pass| pass.goodput_bps = mbit(400));
    doc.stats(Upload, |stats| stats.retransmits = Some(40_000));
    let verdict = judge(&doc).verdict;
    assert_eq!(verdict.code.to_string(), "network.loss");
    assert!(verdict.sentence.contains("bbr carries most"), "beside a fault too: {}", verdict.sentence);
}

#[test]
fn what_a_group_asked_is_answered_and_two_pcs_of_one_address_are_told_apart() {
    let mut doc = one_gbit();
    doc.no_links();
    only_together(&mut doc, &[(941, 800), (940, 139)]);
    for member in &mut doc.tcp().together.measured_mut().unwrap().members {
        member.address = "192.0.2.1".into();
    }
    let judgement = judge(&doc);
    for words in ["2 PCs at once get", "shared unevenly PC → NAS (fairness 0.67", "a 1 Gbit/s link can carry (read off the rate"]
    {
        assert!(judgement.verdict.sentence.contains(words), "{words}: {}", judgement.verdict.sentence);
    }
    let finding = judgement.findings.iter().find(|finding| finding.code.cause == "unfair-share").expect("it is uneven");
    let words = "PC 1, 192.0.2.1 (this PC) got 800 Mbit/s and PC 2, 192.0.2.1 got 139 Mbit/s";
    assert!(finding.evidence[0].contains(words), "{:?}", finding.evidence);
}

#[test]
fn a_pace_that_was_reached_is_told_as_what_was_asked_for() {
    let mut doc = one_gbit();
    doc.plan.throughput.as_mut().unwrap().options.pacing_bps = Some(mbit(100));
    doc.both(|pass| pass.goodput_bps = mbit(97 * u64::from(pass.streams)));
    let verdict = judge(&doc).verdict;
    assert_eq!(verdict.status, Status::Healthy);
    assert!(
        verdict.sentence.starts_with("Healthy: paced to 100 Mbit/s for each stream as asked: PC → NAS carries"),
        "{}",
        verdict.sentence
    );
}

#[test]
fn one_stream_at_its_pace_is_the_answer_and_a_missed_pace_is_told() {
    let paced = |pace: u64, streams: Option<u32>, change: fn(&mut Pass)| {
        let mut doc = one_gbit();
        let plan = doc.plan.throughput.as_mut().unwrap();
        (plan.options.pacing_bps, plan.streams) = (Some(mbit(pace)), streams);
        doc.both(change);
        judge(&doc).verdict
    };
    // Many streams reach the line, or not: nobody asked.
    for all in [
        |pass: &mut Pass| pass.goodput_bps = mbit((97 * u64::from(pass.streams * pass.streams)).min(940)),
        |pass: &mut Pass| {
            pass.goodput_bps = mbit(97 * u64::from(pass.streams));
        },
    ] {
        let verdict = paced(100, None, all);
        assert_eq!(verdict.code.to_string(), "none.as-asked", "{}", verdict.sentence);
        assert!(verdict.sentence.contains("carries 97 Mbit/s with 1 stream"), "{}", verdict.sentence);
        assert!(!verdict.sentence.contains("were needed"), "{}", verdict.sentence);
    }
    let verdict = paced(5_000, Some(4), |pass| pass.goodput_bps = mbit(940));
    assert_eq!(verdict.code.to_string(), "none.at-line-rate");
    let words = "PC → NAS: the pace of 5 Gbit/s for each stream was not reached, 4 streams got 235 Mbit/s each.";
    assert!(verdict.sentence.contains(words), "{}", verdict.sentence);
}

#[test]
fn one_control_that_nobody_has_is_no_answer() {
    for (upload, download, status) in [("cubic", "cubic", Status::Inconclusive), ("cubic", "bbr", Status::Healthy)] {
        let mut doc = one_gbit();
        doc.plan.throughput.as_mut().unwrap().congestion = vec!["bbr".into()];
        doc.passes(Upload, |pass| pass.method.congestion = Some(upload.into()));
        doc.passes(Download, |pass| pass.method.congestion = Some(download.into()));
        let verdict = judge(&doc).verdict;
        assert_eq!(verdict.status, status, "{}", verdict.sentence);
        assert!(verdict.sentence.contains("The PC could not use bbr: cubic ran instead."), "{}", verdict.sentence);
        assert_eq!(verdict.sentence.contains("The NAS could not"), status == Status::Inconclusive, "{}", verdict.sentence);
    }
}

#[test]
fn one_rate_of_datagrams_says_what_it_lost_and_not_where_loss_begins() {
    let asked = |known: bool| {
        let mut doc = datagrams_only(2_500, None);
        if !known {
            doc.no_links();
        }
        let section = doc.tcp().udp.measured_mut().unwrap();
        section.download = Outcome::skipped("--upload was asked for");
        let udp = section.upload.measured_mut().unwrap();
        let pass = crate::model::udp::UdpPass { asked_bps: mbit(2_000), received_bps: mbit(950), ..datagrams(1_860, 49_000) };
        udp.passes = vec![pass];
        (udp.clean_bps, udp.loss_from_bps, udp.ended_because) = (None, Some(mbit(1_860)), "only 2 Gbit/s was asked for".into());
        doc.plan.throughput.as_mut().unwrap().ways = Ways::Upload;
        judge(&doc).verdict
    };
    let words = "at 1.86 Gbit/s (2 Gbit/s asked) 49 % of the datagrams were lost; 950 Mbit/s arrived";
    for known in [true, false] {
        let verdict = asked(known);
        assert!(verdict.sentence.contains(words), "{}", verdict.sentence);
        assert!(!verdict.sentence.contains(" on."), "{}", verdict.sentence);
        assert_eq!(verdict.code.to_string() == "network.datagram-loss", known, "{}", verdict.sentence);
    }
}

#[test]
fn each_question_about_rates_has_its_answer() {
    for (sentence, make, change, expected) in VERDICTS {
        let mut doc = make();
        change(&mut doc);
        let verdict = judge(&doc).verdict;
        assert_eq!(verdict.code.to_string(), *expected, "{sentence}: {}", verdict.sentence);
    }
}

/// A sentence, how the healthy document is bent, a code, and whether it is found.
type Beside = (&'static str, fn(&mut Document), &'static str, bool);

/// Findings beside whatever the verdict is.
const FINDINGS: &[Beside] = &[
    (
        "echoes wait 20 ms beside the streams",
        |doc| doc.both(|pass| pass.loaded_rtt = Outcome::Measured(rtt(20_000))),
        "network.bufferbloat",
        true,
    ),
    ("echoes wait 4 ms", |doc| doc.both(|pass| pass.loaded_rtt = Outcome::Measured(rtt(4_000))), "network.bufferbloat", false),
    (
        "an idle path that is as slow",
        |doc| {
            doc.both(|pass| pass.loaded_rtt = Outcome::Measured(rtt(20_000)));
            doc.tcp().idle_rtt = Outcome::Measured(rtt(19_000));
        },
        "network.bufferbloat",
        false,
    ),
    ("an even flow", |_| (), "network.periodic-stalls", false),
    (
        "two dips are chance",
        |doc| {
            doc.both(|pass| {
                pass.shape.dips = Some(Dips { every_us: Elapsed(500_000), count: 2, depth: 0.6 });
            });
        },
        "network.periodic-stalls",
        false,
    ),
    (
        "nothing arrives for half a second",
        |doc| doc.both(|pass| pass.shape.longest_stall_us = Elapsed(500_000)),
        "network.periodic-stalls",
        true,
    ),
    ("both at once get half", |doc| at_once(doc, 470), "network.both-ways-slower", true),
    ("both at once get all but the acknowledgements", |doc| at_once(doc, 910), "network.both-ways-slower", false),
    (
        "BBR moves twice what CUBIC does",
        |doc| {
            doc.tcp().congestion = Outcome::Measured(vec![trial(Upload, "cubic", 400, 9_000), trial(Upload, "bbr", 900, 9_000)]);
        },
        "network.congestion-control",
        true,
    ),
    (
        "both congestion controls alike",
        |doc| {
            doc.tcp().congestion = Outcome::Measured(vec![trial(Upload, "cubic", 940, 9), trial(Upload, "bbr", 900, 9)]);
        },
        "network.congestion-control",
        false,
    ),
    (
        "each in its own direction",
        |doc| {
            doc.tcp().congestion = Outcome::Measured(vec![trial(Upload, "cubic", 940, 9), trial(Download, "bbr", 400, 9)]);
        },
        "network.congestion-control",
        false,
    ),
    (
        "two PCs get together what one gets",
        |doc| doc.tcp().together = group(&[(941, 470), (940, 469)]),
        "network.shared-limit",
        true,
    ),
    ("two PCs get twice", |doc| doc.tcp().together = group(&[(941, 940), (940, 939)]), "network.shared-limit", false),
    ("one PC takes most", |doc| doc.tcp().together = group(&[(941, 800), (940, 139)]), "network.unfair-share", true),
    (
        "one PC at the limit of its own line",
        |doc| doc.tcp().together = group(&[(2_300, 2_200), (95, 94)]),
        "network.unfair-share",
        false,
    ),
    (
        "one PC at its own line beside one that lost",
        |doc| doc.tcp().together = group(&[(941, 820), (95, 94)]),
        "network.unfair-share",
        false,
    ),
    (
        "one PC takes all it ever gets, the other starves",
        |doc| doc.tcp().together = group(&[(941, 920), (940, 20)]),
        "network.unfair-share",
        true,
    ),
    ("an even share", |doc| doc.tcp().together = group(&[(941, 500), (940, 440)]), "network.unfair-share", false),
    (
        "a PC whose pass failed tells no sum",
        |doc| {
            doc.tcp().together = group(&[(941, 800), (940, 139)]);
            doc.tcp().together.measured_mut().unwrap().members[1].together.upload_bps = None;
            doc.tcp().together.measured_mut().unwrap().members[1].together.download_bps = None;
        },
        "network.unfair-share",
        false,
    ),
    ("datagrams pass", |doc| doc.tcp().udp = datagrams_only(1_000, None).tcp().udp.clone(), "network.datagram-loss", false),
];

#[test]
fn findings_beside_the_answer_appear_and_stay_away() {
    for (sentence, change, code, fires) in FINDINGS {
        let mut doc = rates_only(1_000);
        change(&mut doc);
        let judgement = judge(&doc);
        let found = judgement.findings.iter().filter(|finding| finding.code.to_string() == *code).count();
        assert_eq!(found > 0, *fires, "{sentence}: {:?}", judgement.findings);
        assert_eq!(judgement.verdict.code.to_string(), "none.at-line-rate", "{sentence}: {}", judgement.verdict.sentence);
        assert!(judgement.findings.iter().all(|finding| finding.severity == Severity::Info), "{sentence}");
    }
}

#[test]
fn what_both_directions_share_is_named_where_it_shows() {
    let mut doc = rates_only(1_000);
    at_once(&mut doc, 470);
    doc.port(Nas).duplex.measured_mut().unwrap().value = Duplex::Half;
    for pass in [Upload, Download] {
        let both = doc.tcp().both.measured_mut().unwrap();
        let pass = if pass == Upload { &mut both.upload } else { &mut both.download };
        cpu(pass.measured_mut().unwrap(), Pc, |window| *window = cpu_window(0.99));
    }
    let judgement = judge(&doc);
    let finding = judgement.findings.iter().find(|finding| finding.code.cause == "both-ways-slower").expect("it fires");
    for word in ["half duplex", "the PC's busiest core was 99 % busy"] {
        assert!(finding.evidence.iter().any(|text| text.contains(word)), "{word}: {:?}", finding.evidence);
    }
}

#[test]
fn a_full_core_is_named_with_its_interrupts_and_what_it_carries() {
    let mut doc = rates_only(10_000);
    doc.both(|pass| {
        pass.goodput_bps = mbit(3_000);
        cpu(pass, Nas, |window| {
            *window = cpu_window(0.99);
            let cards = vec![CardInterrupts { interface: "eth0".into(), cores: vec![CoreCount { core: 3, count: 90_000 }] }];
            window.network = Outcome::Measured(NetworkInterrupts { receive: vec![], cards: Outcome::Measured(cards) });
        });
    });
    let judgement = judge(&doc);
    assert_eq!(judgement.verdict.code.to_string(), "cpu.network-stack-core", "{}", judgement.verdict.sentence);
    let evidence = judgement.findings[0].evidence.join(" ");
    assert!(evidence.contains("100 % of the interrupts of the NAS's eth0 landed on its core 3."), "{evidence}");
    assert!(evidence.contains("one full core of the NAS carries 2.16 Gbit/s"), "{evidence}");
}

#[test]
fn what_an_iperf3_server_does_not_tell_is_said_and_nothing_is_sure() {
    let healthy = judge(&iperf3_only(1_000)).verdict;
    assert_eq!(healthy.status, Status::Healthy);
    assert!(healthy.sentence.contains("The NAS's own link is not known"), "{}", healthy.sentence);
    let mut doc = iperf3_only(1_000);
    doc.both(|pass| pass.goodput_bps = mbit(610));
    let verdict = judge(&doc).verdict;
    assert!(verdict.sentence.contains("An iperf3 server tells neither"), "{}", verdict.sentence);
    doc.stats(Upload, |stats| stats.retransmits = Some(60_000));
    let verdict = judge(&doc).verdict;
    assert_eq!((verdict.code.to_string().as_str(), verdict.confidence <= Confidence::Medium), ("network.loss", true));
}

#[test]
fn one_stream_that_gets_less_is_told() {
    let mut doc = rates_only(10_000);
    doc.passes(Upload, |pass| {
        if pass.streams == 1 {
            pass.goodput_bps = BitRate::from_mbit(6_000);
        }
    });
    let verdict = judge(&doc).verdict;
    assert!(verdict.sentence.contains("One stream alone, as a copy has, gets 6 Gbit/s PC → NAS"), "{}", verdict.sentence);
    doc.tcp().upload.single.measured_mut().unwrap().bytes = ByteSize(1);
    assert_eq!(judge(&doc).verdict, verdict, "what does not matter changes nothing");
}

#[test]
fn hosts_that_change_places_swap_the_direction_and_nothing_else() {
    for (sentence, make, change, _) in VERDICTS {
        let mut doc = make();
        change(&mut doc);
        let together = doc.measurements.throughput.measured().is_some_and(|section| section.together.measured().is_some());
        if together || doc.plan.scope == Scope::ThroughputIperf3 {
            // These are about the NAS by their nature.
            continue;
        }
        let (here, there) = (judge(&doc).verdict, judge(&mirrored(&doc)).verdict);
        assert_eq!((&here.code, here.confidence), (&there.code, there.confidence), "{sentence}: {}", there.sentence);
        let alone = here.direction.is_some() && here.direction == there.direction;
        // Where both directions suffer alike the first of them is told.
        let doc_rates = |doc: &Document| {
            doc.measurements
                .throughput
                .measured()
                .map(|section| Direction::BOTH.map(|way| section.of(way).best().map(|pass| pass.goodput_bps)))
        };
        assert!(!alone || doc_rates(&doc).is_some_and(|[up, down]| up == down), "{sentence}");
    }
}

#[test]
fn less_evidence_about_rates_never_makes_surer() {
    let removals: &[fn(&mut Document)] = &[
        |doc| doc.measurements.link = Outcome::skipped("removed"),
        |doc| doc.measurements.mtu = Outcome::skipped("removed"),
        |doc| doc.both(|pass| pass.cpu_pc = Outcome::skipped("removed")),
        |doc| doc.both(|pass| pass.cpu_nas = Outcome::skipped("removed")),
        |doc| doc.both(|pass| pass.sender = Outcome::skipped("removed")),
        |doc| doc.both(|pass| pass.loaded_rtt = Outcome::skipped("removed")),
        |doc| doc.both(|pass| pass.steady = None),
    ];
    for (sentence, make, change, _) in VERDICTS {
        let mut doc = make();
        change(&mut doc);
        let full = judge(&doc).verdict;
        if doc.measurements.throughput.measured().is_none() {
            continue;
        }
        for remove in removals {
            let mut less = doc.clone();
            remove(&mut less);
            let verdict = judge(&less).verdict;
            assert!(verdict.code != full.code || verdict.confidence <= full.confidence, "{sentence}: {}", verdict.sentence);
        }
    }
}
