//! Findings beside the answer, and what the order of hosts and less evidence change.

use super::verdicts::VERDICTS;
use super::*;

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

#[test]
fn an_echo_that_waits_beside_a_full_processor_is_not_laid_to_the_network_alone() {
    for (busiest, words) in [(0.3, "of it is waiting in a queue."), (0.99, "of it is waiting in a queue or for a processor.")] {
        let mut doc = one_gbit();
        doc.both(|pass| pass.loaded_rtt = Outcome::Measured(rtt(132_000)));
        doc.both(|pass| pass.cpu_nas = Outcome::Measured(cpu_window(0.3)));
        doc.both(|pass| pass.cpu_pc = Outcome::Measured(cpu_window(0.3)));
        if busiest > 0.9 {
            doc.both(|pass| pass.cpu_nas = Outcome::Measured(cpu_window(0.99)));
        }
        let found = judge(&doc).findings;
        let finding = found.iter().find(|finding| finding.code.cause == "bufferbloat").expect("132 ms are a queue");
        assert!(finding.evidence[0].contains(words), "{:?}", finding.evidence);
    }
}
