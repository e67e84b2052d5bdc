//! The sentences of answers, and what was asked.

use super::*;

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
            "Healthy: PC → NAS: bbr 938 Mbit/s and cubic 930 Mbit/s carry alike (0.86 % apart",
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
fn one_rate_of_datagrams_that_passes_is_as_asked_and_what_waits_in_a_queue_did_not_arrive() {
    let sent = |sent: u64, arrived: u64, asked: u64, lost: u64| {
        let mut doc = datagrams_only(2_500, None);
        doc.no_links();
        doc.plan.throughput.as_mut().unwrap().udp =
            Some(crate::model::plan::UdpPlan { rate_bps: Some(mbit(asked)), ..Default::default() });
        let section = doc.tcp().udp.measured_mut().unwrap();
        section.download = Outcome::skipped("--upload was asked for");
        let udp = section.upload.measured_mut().unwrap();
        udp.passes =
            vec![crate::model::udp::UdpPass { asked_bps: mbit(asked), received_bps: mbit(arrived), ..datagrams(sent, lost) }];
        udp.clean_bps = Some(mbit(sent));
        doc.plan.throughput.as_mut().unwrap().ways = Ways::Upload;
        judge(&doc).verdict
    };
    for (verdict, code, words) in [
        (sent(100, 100, 100, 0), "none.as-asked", "PC → NAS 100 Mbit/s of datagrams as asked: no datagram was lost."),
        (sent(955, 946, 955, 0), "none.as-asked", "only 946 Mbit/s arrived in each second: the rest stood in a queue"),
        (sent(100, 100, 100, 300), "none.as-asked", "0.3 % of the datagrams were lost, too few to count; 100 Mbit/s arrived."),
        (
            sent(616, 616, 955, 0),
            "none.tool-limit",
            "at 616 Mbit/s: no datagram was lost. The 955 Mbit/s that was asked for was not",
        ),
    ] {
        assert_eq!(verdict.code.to_string(), code, "{}", verdict.sentence);
        assert!(verdict.sentence.contains(words), "{}", verdict.sentence);
        assert!(!verdict.sentence.contains("higher rate"), "{}", verdict.sentence);
    }
}

#[test]
fn no_two_controls_that_ran_are_inconclusive_beside_a_fault_too() {
    let mut doc = one_gbit();
    compare(&mut doc, &[("nosuch", 400), ("cubic", 400)]);
    lacks(&mut doc, "nosuch");
    doc.passes(Upload, |pass| pass.goodput_bps = mbit(400));
    doc.stats(Upload, |stats| stats.retransmits = Some(40_000));
    let verdict = judge(&doc).verdict;
    assert_eq!((verdict.status, verdict.code.to_string().as_str()), (Status::Inconclusive, "inconclusive.too-little-evidence"));
    assert!(verdict.sentence.contains("Found beside that: "), "{}", verdict.sentence);
    assert!(verdict.sentence.contains("The PC could not use nosuch; it has reno, cubic."), "{}", verdict.sentence);
}

#[test]
fn a_direction_is_named_once_where_the_evidence_begins_with_it() {
    let mut doc = one_gbit();
    doc.passes(Upload, |pass| pass.goodput_bps = mbit(400));
    doc.stats(Upload, |stats| stats.retransmits = Some(40_000));
    let sentence = judge(&doc).verdict.sentence;
    assert!(sentence.contains("in the direction PC → NAS. ") && sentence.matches("PC → NAS").count() == 1, "{sentence}");
}

#[test]
fn a_sender_that_was_kept_from_a_core_tested_no_network() {
    let at = |waits: f64, refused: u64| {
        let mut doc = datagrams_only(2_500, None);
        let section = doc.tcp().udp.measured_mut().unwrap();
        section.download = Outcome::skipped("--upload was asked for");
        let udp = section.upload.measured_mut().unwrap();
        let mut pass = crate::model::udp::UdpPass { asked_bps: mbit(50), received_bps: mbit(9), refused, ..datagrams(9, 0) };
        pass.cpu_pc.measured_mut().unwrap().run_delay = Outcome::Measured(waits);
        udp.passes = vec![pass];
        udp.clean_bps = Some(mbit(9));
        doc.plan.throughput.as_mut().unwrap().ways = Ways::Upload;
        judge(&doc).verdict
    };
    let late = at(0.6, 0);
    assert_eq!(late.status, Status::Inconclusive, "{}", late.sentence);
    for part in ["did not let its program send 50 Mbit/s in time", "waited for a core for 60 %"] {
        assert!(late.sentence.contains(part), "{part}: {}", late.sentence);
    }
    assert!(!at(0.02, 0).sentence.contains("in time"));
    assert!(!at(0.6, 40_000).sentence.contains("in time"));
}
