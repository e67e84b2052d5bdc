//! What a document about the path alone answers, with an agent and without.

use super::*;

#[test]
fn a_document_about_the_path_alone_has_its_own_answers() {
    let judged = is(&mtu_only(2_500, 9000), "none.mtu-consistent");
    assert_eq!(judged.verdict.sentence, "Healthy: the path carries packets of 9000 bytes both ways, and both ends use them.");
    assert_eq!((judged.verdict.confidence, judged.verdict.rate_bps), (Confidence::High, None));
    assert!(judged.verdict.ruled_out.iter().any(|out| out.code.to_string() == "network.mtu-black-hole"));
    // Never healthy where a direction failed.
    let mut half = mtu_only(2_500, 9000);
    section(&mut half).download = Outcome::failed("the NAS's probes did not arrive");
    let judged = is(&half, "inconclusive.mtu-unknown");
    assert!(judged.verdict.sentence.contains("NAS → PC could not be measured: the NAS's probes did not arrive."));
    assert_eq!(judged.verdict.direction, Some(Download));
    section(&mut half).upload = Outcome::failed("refused");
    is(&half, "inconclusive.mtu-unknown");
    half.measurements.mtu = Outcome::failed("refused");
    is(&half, "inconclusive.mtu-unknown");
    // A fault of another kind is not the question here.
    let mut slow = mtu_only(100, 1500);
    slow.modes(Nas, &[100, 1_000], &[100, 1_000], &[100, 1_000]);
    assert!(find(&is(&slow, "none.mtu-consistent"), "network.link-below-capability").is_none());
}

#[test]
fn what_vanishes_towards_an_end_of_unknown_size_is_not_judged() {
    let mut doc = hole_up(1500);
    doc.measurements.link.measured_mut().unwrap().nas = Outcome::skipped("not told");
    section(&mut doc).download = Outcome::skipped("not tried");
    is(&doc, "inconclusive.mtu-unknown");
}

#[test]
fn without_an_agent_echo_and_services_decide_together() {
    type Change = fn(&mut Document);
    let silent = || short_path(1500, 9000, Limiter::Silent);
    let cases: Vec<(&str, PathMtu, Change, &str, &[&str])> = vec![
        (
            "all of it is answered",
            path(9000, Limiter::LocalInterface),
            |_| {},
            "none.mtu-consistent",
            &["one packet size for both ways together"],
        ),
        (
            "a router says so",
            short_path(1492, 1500, router(1492)),
            |_| {},
            "none.mtu-consistent",
            &["PPPoE", "one packet size for both ways together"],
        ),
        (
            "silence, and a full segment gets stuck",
            silent(),
            |doc| section(doc).services = Outcome::Measured(vec![service(445, 9000, false)]),
            "network.mtu-black-hole",
            &["SMB: the connection opens", "`weaklink serve`"],
        ),
        (
            "silence, and services ask for little",
            silent(),
            |doc| section(doc).services = Outcome::Measured(vec![service(445, 1500, true)]),
            "none.mtu-consistent",
            &["TCP adapts", "packets of 1500 bytes"],
        ),
        (
            "silence, and a service takes more than echo",
            silent(),
            |doc| section(doc).services = Outcome::Measured(vec![service(445, 9000, true)]),
            "inconclusive.mtu-unknown",
            &["drops large pings only"],
        ),
        (
            "one service is stuck and another is not",
            silent(),
            |doc| section(doc).services = Outcome::Measured(vec![service(80, 9000, false), service(445, 9000, true)]),
            "inconclusive.mtu-unknown",
            &["weaklink serve"],
        ),
        ("silence, and no service", silent(), |_| {}, "inconclusive.mtu-unknown", &["weaklink serve"]),
        (
            "no echo, and a service that takes a full segment",
            silent(),
            |doc| {
                section(doc).echo = Outcome::failed("the NAS does not answer to ping");
                section(doc).services = Outcome::Measured(vec![service(445, 1500, true)]);
            },
            "inconclusive.mtu-unknown",
            &["PC → NAS carries that", "the NAS does not answer to ping."],
        ),
        (
            "nothing answers",
            silent(),
            |doc| {
                section(doc).echo = Outcome::failed("the NAS does not answer to ping");
                section(doc).services = Outcome::failed("no port is open");
            },
            "inconclusive.mtu-unknown",
            &["no port is open.", "weaklink serve"],
        ),
    ];
    for (case, echo, change, code, words) in cases {
        let own = echo.ceiling.0;
        let mut doc = mtu_alone(own, echo);
        change(&mut doc);
        let judged = judge(&doc);
        assert_eq!(judged.verdict.code.to_string(), code, "{case}: {}", judged.verdict.sentence);
        assert!(judged.verdict.confidence < Confidence::High, "{case}");
        let all = format!("{} {:?}", judged.verdict.sentence, judged.findings.first().map(|finding| &finding.evidence));
        for word in words {
            assert!(all.contains(word), "{case}: {word:?} in {all}");
        }
    }
}

#[test]
fn one_end_alone_concludes_from_fragments_and_from_services_that_agree() {
    let mut doc = mtu_alone(9000, short_path(1504, 9000, Limiter::Silent));
    section(&mut doc).services = Outcome::Measured(vec![service(445, 1500, true)]);
    is(&doc, "none.mtu-consistent");
    section(&mut doc).echo.measured_mut().unwrap().reply_fragment = Some(Mtu(1500));
    let judged = is(&doc, "network.mtu-mismatch");
    assert_eq!(judged.verdict.confidence, Confidence::Medium);
    says(&judged, &["the NAS's interface has 1500", "so copies go on", "Either all 1500: at the PC", "at the NAS MTU 9000"]);

    let mut doc = mtu_alone(9000, short_path(1500, 9000, Limiter::Silent));
    section(&mut doc).echo = Outcome::failed("pings are dropped, or the host is gone");
    section(&mut doc).services = Outcome::Measured(vec![service(445, 9000, false)]);
    let judged = is(&doc, "inconclusive.mtu-unknown");
    assert!(!judged.verdict.sentence.contains("gone"), "{}", judged.verdict.sentence);
    section(&mut doc).services = Outcome::Measured(vec![service(445, 9000, false), service(22, 9000, false)]);
    let judged = is(&doc, "network.mtu-black-hole");
    assert_eq!(judged.verdict.confidence, Confidence::Medium);
    says(&judged, &["SMB: the connection opens", "port 22: the connection opens"]);
    section(&mut doc).services = Outcome::Measured(vec![service(445, 1500, true), service(22, 1500, true)]);
    let judged = is(&doc, "inconclusive.mtu-unknown");
    assert!(judged.verdict.sentence.contains("SMB (port 445) and port 22 acknowledged"), "{}", judged.verdict.sentence);
}

#[test]
fn much_more_is_told_in_times() {
    let mut doc = mtu_only(10_000, 9000);
    let cost = |packet, rate| SegmentCost {
        packet: Mtu(packet),
        goodput_bps: mbit(rate),
        sender_cpu_s_per_gb: None,
        receiver_cpu_s_per_gb: None,
    };
    let gain = |direction, rate| JumboGain { direction, large: cost(9000, rate), common: cost(1500, 1_000) };
    section(&mut doc).gain = Outcome::Measured(vec![gain(Upload, 5_300), gain(Download, 1_100)]);
    let judged = is(&doc, "none.mtu-consistent");
    let told = &find(&judged, "network.jumbo-gain").unwrap().evidence[0];
    assert_eq!(told, "Large packets: PC → NAS 5.3 times the rate, NAS → PC 10.0 % more.");
}
