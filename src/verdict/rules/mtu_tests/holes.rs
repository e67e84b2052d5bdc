//! Holes: packets that vanish without a word, where, and what to do.

use super::*;

#[test]
fn a_hole_in_one_direction_alone_is_a_hole_of_that_direction() {
    let doc = hole_up(1500);
    let judged = is(&doc, "network.mtu-black-hole");
    assert_eq!((judged.verdict.direction, judged.verdict.status), (Some(Upload), Status::Bottleneck));
    assert_eq!(judged.findings[0].severity, Severity::Critical);
    says(&judged, &["The other direction carries 9000 bytes", "`ip link set dev eth0 mtu 1500`"]);
    let turned = is(&mirrored(&doc), "network.mtu-black-hole");
    assert_eq!(turned.verdict.direction, Some(Download));
    assert_eq!(is(&hole_both(1500), "network.mtu-black-hole").verdict.direction, None);
}

#[test]
fn the_contrast_of_two_streams_stands_in_the_sentence() {
    let mut doc = hole_both(1500);
    section(&mut doc).unclamped = stream(Upload, 9000, 0);
    section(&mut doc).clamped = stream(Upload, 1500, 294);
    let judged = is(&doc, "network.mtu-black-hole");
    let verdict = &judged.verdict;
    assert!(
        verdict.sentence.contains("moved 0 B in 2 s with packets of 9000 bytes, and 294 MB/s with packets of 1500 bytes"),
        "{}",
        verdict.sentence
    );
    assert_eq!((verdict.confidence, verdict.rate_bps), (Confidence::High, Some(BitRate(0))));
    assert_eq!(verdict.next.as_ref().map(|next| next.rate_bps), Some(mbit(2_352)));
    // Nothing arrives with small packets either: the size is not proven.
    section(&mut doc).clamped = stream(Upload, 1500, 0);
    assert!(is(&doc, "network.mtu-black-hole").verdict.next.is_none_or(|next| next.rate_bps.0 == 0));
    // The ends find the size by themselves: a fault, no standstill.
    section(&mut doc).unclamped = stream(Upload, 9000, 280);
    section(&mut doc).clamped = stream(Upload, 1500, 294);
    assert_eq!(is(&doc, "network.mtu-black-hole").findings[0].severity, Severity::Warning);
}

#[test]
fn a_stream_whose_packets_fit_proves_and_disproves_nothing() {
    let mut doc = hole_both(1500);
    for role in [Pc, Nas] {
        tcp(&mut doc, role).mtu_probing = Some(0);
    }
    let silent = is(&doc, "network.mtu-black-hole");
    section(&mut doc).unclamped = stream(Download, 1500, 400);
    section(&mut doc).clamped = stream(Download, 1500, 331);
    let judged = is(&doc, "network.mtu-black-hole");
    assert_eq!(judged, silent);
    says(&judged, &["transfers hang"]);
    assert!(judged.verdict.next.is_none() && !judged.verdict.sentence.contains("moved"), "{}", judged.verdict.sentence);
    // Where a full-size stream goes on nothing hangs.
    section(&mut doc).unclamped = stream(Download, 9000, 400);
    let judged = is(&doc, "network.mtu-black-hole");
    let evidence = &judged.findings[0].evidence;
    assert!(!evidence.iter().any(|line| line.starts_with("The NAS's TCP") && line.contains("hang")), "{evidence:?}");
}

#[test]
fn where_udp_is_blocked_the_streams_are_the_proof() {
    let mut doc = mtu_only(2_500, 9000);
    let blocked = "UDP port 7477 is blocked";
    let mtu = section(&mut doc);
    (mtu.upload, mtu.download) = (Outcome::failed(blocked), Outcome::failed(blocked));
    let echo = short_path(1500, 9000, Limiter::Silent);
    mtu.echo = mtu_alone(9000, echo).measurements.mtu.measured().unwrap().echo.clone();
    is(&doc, "inconclusive.mtu-unknown");
    section(&mut doc).unclamped = stream(Download, 9000, 0);
    section(&mut doc).clamped = stream(Download, 1500, 304);
    let judged = is(&doc, "network.mtu-black-hole");
    assert_eq!((judged.verdict.direction, judged.verdict.confidence), (Some(Download), Confidence::High));
    says(&judged, &["304 MB/s with packets of 1500 bytes", "UDP port 7477 is blocked", "UDP port pass the firewalls"]);
    section(&mut doc).echo = Outcome::failed("no answer");
    is(&doc, "network.mtu-black-hole");
    // Small packets stall too: the size is not proven.
    section(&mut doc).clamped = stream(Download, 1500, 0);
    is(&doc, "inconclusive.mtu-unknown");
}

#[test]
fn a_routed_path_names_the_routers_between_which_it_happens() {
    for (reached, missing, words) in [
        (2, Some(3), "behind the router 10.0.2.1 (hop 2), on the way to the router 10.0.3.1 (hop 3)"),
        (3, Some(4), "behind the router 10.0.3.1 (hop 3), on the way to the NAS"),
        (0, Some(1), "right behind the PC, on the way to the router 10.0.1.1 (hop 1)"),
    ] {
        let mut doc = hole_up(1500);
        up(&mut doc).location = Outcome::Measured(located(reached, missing, 4));
        let judged = is(&doc, "network.mtu-black-hole");
        assert!(judged.verdict.sentence.contains(words), "{}", judged.verdict.sentence);
        assert_eq!(judged.verdict.r#where, Some(Where::Path));
        says(&judged, &["no firewall may drop these"]);
    }
    let mut doc = hole_up(1500);
    up(&mut doc).location = Outcome::Measured(located(1, Some(3), 4));
    says(&is(&doc, "network.mtu-black-hole"), &["Routers between the two do not answer"]);
}

#[test]
fn the_place_is_that_of_the_likeliest_suspect() {
    type Change = fn(&mut Document);
    let cases: &[(&str, Change, Where, &[&str])] = &[
        (
            "no evidence beyond the size",
            |_| {},
            Where::Path,
            &["probably at a switch port without jumbo frames", "Likely: a switch port between the hosts has jumbo frames off"],
        ),
        (
            "what a real port did not send is less likely than a switch",
            |doc| section(doc).counters_pc = counted("tx_dropped", 6),
            Where::Path,
            &["probably at a switch port", "Possible: The PC's interface eth0 dropped packets on their way out"],
        ),
        (
            "the NAS's driver counted frames that are too long",
            |doc| section(doc).counters_nas = counted("rx_length_errors", 6),
            Where::Nas,
            &["arrive at the NAS and its interface eth0 drops them", "rx_length_errors +6", "so the switch carries them"],
        ),
        (
            "the PC's counters say nothing about the way to the NAS",
            |doc| section(doc).counters_pc = counted("rx_length_errors", 6),
            Where::Path,
            &[],
        ),
        (
            "a count of good bytes is no error",
            |doc| section(doc).counters_nas = counted("rx_long_byte_count", 6_000),
            Where::Path,
            &[],
        ),
        (
            "drops alone are a hint",
            |doc| section(doc).counters_nas = counted("rx_dropped", 2),
            Where::Path,
            &["can have other reasons"],
        ),
        (
            "the port below the PC's bridge is small",
            |doc| {
                let mut port = interface("eth9", InterfaceKind::Physical, 2_500);
                port.mtu = interface("x", InterfaceKind::Physical, 1).mtu;
                doc.link(Pc).stack[0].kind = InterfaceKind::Bridge;
                doc.link(Pc).stack[0].name = "br0".into();
                doc.link(Pc).stack.push(port);
            },
            Where::Pc,
            &["the port eth9 has MTU 1500, less than br0 above it (9000)", "`ip link set dev eth9 mtu 9000`"],
        ),
        (
            "the switch port at the NAS says 1518",
            |doc| doc.link(Nas).neighbours = said_by_switch(1518),
            Where::Path,
            &["the switch port gi7 at the NAS's cable to jumbo frames", "largest frame has 1518 bytes: packets of 1500"],
        ),
        (
            "the switch port says that it takes them",
            |doc| doc.link(Nas).neighbours = said_by_switch(9216),
            Where::Path,
            &["by its word not that port"],
        ),
    ];
    for (case, change, place, words) in cases {
        let mut doc = hole_up(1500);
        change(&mut doc);
        let judged = is(&doc, "network.mtu-black-hole");
        assert_eq!(judged.verdict.r#where, Some(*place), "{case}: {:#?}", judged.findings[0].evidence);
        says(&judged, words);
    }
}

fn said_by_switch(frame: u32) -> Outcome<Vec<Neighbour>> {
    Outcome::Measured(vec![Neighbour {
        interface: "eth0".into(),
        port: Some("gi7".into()),
        max_frame_bytes: Some(frame),
        ..Neighbour::default()
    }])
}

#[test]
fn a_hostile_name_never_stands_in_a_command() {
    let mut doc = hole_up(1500);
    for role in [Pc, Nas] {
        doc.port(role).name = "eth0; reboot".into();
    }
    let judged = is(&doc, "network.mtu-black-hole");
    assert!(judged.findings[0].advice.iter().all(|advice| !advice.contains("reboot")), "{:?}", judged.findings[0].advice);
}

#[test]
fn without_an_agent_the_place_is_told_too() {
    let mut doc = mtu_alone(9000, short_path(1500, 9000, Limiter::Silent));
    let mtu = section(&mut doc);
    mtu.services = Outcome::Measured(vec![service(445, 9000, false)]);
    mtu.echo.measured_mut().unwrap().path.location = Outcome::Measured(located(2, Some(3), 4));
    let judged = is(&doc, "network.mtu-black-hole");
    assert_eq!((judged.verdict.confidence, judged.verdict.r#where), (Confidence::Medium, Some(Where::Path)));
    assert!(judged.verdict.sentence.contains("behind the router 10.0.2.1 (hop 2)"), "{}", judged.verdict.sentence);
}

#[test]
fn full_segments_that_nobody_acknowledges_are_not_healthy_though_ping_passes() {
    let mut doc = mtu_alone(1500, short_path(1500, 1500, Limiter::LocalInterface));
    section(&mut doc).services = Outcome::Measured(vec![service(445, 1500, false), service(22, 1500, false)]);
    let judged = is(&doc, "inconclusive.mtu-unknown");
    assert!(judged.verdict.sentence.contains("did not acknowledge a full TCP segment"), "{}", judged.verdict.sentence);
    section(&mut doc).services = Outcome::Measured(vec![service(445, 1500, true), service(22, 1500, false)]);
    is(&doc, "none.mtu-consistent");
}

#[test]
fn directions_that_stayed_undecided_say_why() {
    let mut doc = hole_both(1500);
    let section = section(&mut doc);
    section.upload = Outcome::failed("the path MTU is undecided after 300 probes");
    section.download = Outcome::failed("none of 20 probes was answered");
    let judged = is(&doc, "inconclusive.mtu-unknown");
    for words in ["undecided after 300 probes", "none of 20 probes", "PC → NAS"] {
        assert!(judged.verdict.sentence.contains(words), "{}", judged.verdict.sentence);
    }
    assert!(!judged.verdict.sentence.contains("ICMP echo"), "{}", judged.verdict.sentence);
}

#[test]
fn a_router_that_names_nothing_is_as_good_as_silent() {
    let mut doc = hole_up(1500);
    let upload = section(&mut doc).upload.measured_mut().unwrap();
    upload.limited_by = router(0);
    upload.words = vec![RouterWord { address: [10, 0, 1, 1].into(), next_hop_mtu: Mtu(0), about: Mtu(1501) }];
    is(&doc, "network.mtu-black-hole");
}

#[test]
fn advice_names_what_was_not_seen() {
    let mut doc = mtu_alone(9000, short_path(1500, 9000, Limiter::Silent));
    section(&mut doc).services = Outcome::Measured(vec![service(445, 9000, false)]);
    says(&is(&doc, "network.mtu-black-hole"), &["at the NAS too, which could not be seen from here"]);
}

#[test]
fn advice_names_the_place_of_each_system() {
    let mut doc = hole_both(1500);
    for (os, words) in [
        ("windows", "“Jumbo Packet”: Disabled"),
        ("macos", "System Settings, Network"),
        ("beos", "at the PC MTU 1500 in the settings"),
    ] {
        doc.hosts.pc.measured_mut().unwrap().os = os.into();
        says(
            &is(&doc, "network.mtu-black-hole"),
            &[words, "Either all 9000: at every switch port", "Or all 1500: at the PC", "a largest frame of 9018 bytes"],
        );
    }
}

#[test]
fn a_hole_below_1500_is_mended_below_or_where_headers_are_added() {
    let mut doc = mtu_only(1_000, 1500);
    section(&mut doc).upload = Outcome::Measured(short_path(1450, 1500, Limiter::Silent));
    says(
        &is(&doc, "network.mtu-black-hole"),
        &["Either all 1450", "Or all 1500: find what adds headers", "headers of a tunnel or an overlay"],
    );
}

#[test]
fn what_tcp_does_about_a_hole_is_told() {
    for (setting, words) in [(0, "transfers hang"), (1, "recover, but slowly"), (2, "always searches")] {
        let mut doc = hole_up(1500);
        tcp(&mut doc, Pc).mtu_probing = Some(setting);
        says(&is(&doc, "network.mtu-black-hole"), &[words]);
    }
}

#[test]
fn a_path_that_loses_every_size_is_a_guess() {
    let mut doc = hole_up(1500);
    let probe = |size, fate| Probe { size: Mtu(size), at_us: Elapsed(1), fate, rtt_us: None };
    let mut trace = vec![probe(1500, ProbeFate::Acknowledged); 5];
    trace.extend(vec![probe(1500, ProbeFate::Lost); 5]);
    trace.extend(vec![probe(9000, ProbeFate::Lost); 6]);
    up(&mut doc).trace = trace;
    let judged = is(&doc, "network.mtu-black-hole");
    assert_eq!(judged.verdict.confidence, Confidence::Low);
    let both = up(&mut doc).clone();
    section(&mut doc).download = Outcome::Measured(both);
    assert_eq!(is(&doc, "network.mtu-black-hole").verdict.confidence, Confidence::Low);
    section(&mut doc).unclamped = stream(Upload, 9000, 0);
    section(&mut doc).clamped = stream(Upload, 1500, 294);
    assert_eq!(is(&doc, "network.mtu-black-hole").verdict.confidence, Confidence::High);
    says(&judged, &["6 probes above 1500 bytes were lost, and 5 of the 10 that fit", "loss at every size"]);
    up(&mut doc).trace.retain(|probe| probe.size == Mtu(9000) || probe.fate == ProbeFate::Acknowledged);
    says(&is(&doc, "network.mtu-black-hole"), &["and none of the 5 that fit"]);
}
