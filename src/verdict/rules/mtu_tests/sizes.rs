//! Sizes that differ or could be larger, and who limits them.

use super::*;

#[test]
fn a_smaller_end_drops_or_takes_a_tag_or_accepts_more() {
    for (passes, code, words) in [
        (1500, "network.mtu-mismatch", "drops what is larger than its MTU of 1500"),
        (1504, "network.mtu-mismatch", "takes 4 bytes more than its MTU of 1500, room for a VLAN tag"),
        (4096, "network.mtu-mismatch", "takes packets of up to 4096"),
        (9000, "none.mtu-consistent", "takes packets of 9000 all the same"),
    ] {
        let mut doc = mtu_only(2_500, 9000);
        doc.mtu(Nas, 1500);
        let limit = if passes == 9000 { Limiter::LocalInterface } else { Limiter::Silent };
        section(&mut doc).upload = Outcome::Measured(short_path(passes, 9000, limit));
        section(&mut doc).download = Outcome::Measured(path(1500, Limiter::LocalInterface));
        let judged = is(&doc, code);
        let finding = find(&judged, "network.mtu-mismatch").unwrap();
        assert!(finding.evidence.iter().any(|text| text.contains(words)), "{passes}: {:?}", finding.evidence);
        assert!(finding.advice[0].contains("at the PC `ip link set dev eth0 mtu 1500`"), "{:?}", finding.advice);
        assert!(!finding.advice[0].contains("at the NAS"));
        assert!(finding.advice.last().unwrap().contains("needs root"), "{:?}", finding.advice);
    }
}

#[test]
fn an_honest_router_is_information_and_its_kind_is_named() {
    for (mtu, words) in [(1492, "PPPoE"), (1420, "WireGuard"), (1450, "VXLAN")] {
        let mut doc = mtu_only(1_000, 1500);
        section(&mut doc).upload = Outcome::Measured(short_path(mtu, 1500, router(mtu)));
        section(&mut doc).download = Outcome::Measured(short_path(mtu, 1500, router(mtu)));
        let judged = is(&doc, "none.mtu-consistent");
        assert_eq!(judged.verdict.status, Status::Healthy);
        assert!(
            judged.verdict.sentence.contains(words) && judged.verdict.sentence.contains("10.0.1.1"),
            "{}",
            judged.verdict.sentence
        );
        let finding = find(&judged, "network.mtu-reduced-by-router").unwrap();
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.evidence[0].contains(words));
    }
    assert!(find(&judge(&mtu_only(1_000, 1500)), "network.mtu-reduced-by-router").is_none());
}

#[test]
fn different_sizes_each_way_without_a_fault_are_both_told() {
    let mut doc = mtu_only(1_000, 9000);
    section(&mut doc).upload = Outcome::Measured(short_path(1500, 9000, router(1500)));
    let judged = is(&doc, "none.mtu-consistent");
    for words in ["PC → NAS carries packets of 1500 bytes", "NAS → PC carries packets of 9000 bytes"] {
        assert!(judged.verdict.sentence.contains(words), "{}", judged.verdict.sentence);
    }
}

#[test]
fn a_lie_is_a_warning_where_packets_vanish_and_information_else() {
    let word = |mtu, about| RouterWord { address: [10, 0, 1, 1].into(), next_hop_mtu: Mtu(mtu), about: Mtu(about) };
    for (said, words) in
        [(0, "which tells nothing"), (9000, "no less than what it refused"), (40, "less than every link must carry")]
    {
        let mut doc = hole_up(1500);
        up(&mut doc).words = vec![word(said, 9000)];
        let judged = is(&doc, "network.mtu-black-hole");
        let finding = find(&judged, "network.icmp-wrong-mtu").unwrap();
        assert_eq!((finding.severity, finding.direction), (Severity::Warning, Some(Upload)));
        assert!(finding.evidence[0].contains(words), "{:?}", finding.evidence);
        assert!(judged.verdict.sentence.contains("10.0.1.1 says of it cannot be true"), "{}", judged.verdict.sentence);
        up(&mut doc).limited_by = router(1500);
        let harmless = is(&doc, "none.mtu-consistent");
        assert_eq!(find(&harmless, "network.icmp-wrong-mtu").unwrap().severity, Severity::Info);
        up(&mut doc).words = vec![word(1500, 9000)];
        assert!(find(&judge(&doc), "network.icmp-wrong-mtu").is_none());
    }
}

#[test]
fn a_clamp_on_the_way_is_told_from_an_ends_own_limit() {
    let end = |advertised: u32, granted: u32, pmtu| TcpEnd {
        advertised_mss_bytes: advertised,
        send_mss_bytes: granted - 12,
        pmtu: Some(Mtu(pmtu)),
        option_bytes: 12,
    };
    let told = |pc, nas| {
        let mut doc = mtu_only(1_000, 1500);
        section(&mut doc).handshake = Outcome::Measured(TcpHandshake { pc: Outcome::Measured(pc), nas: Outcome::Measured(nas) });
        let judged = is(&doc, "none.mtu-consistent");
        find(&judged, "network.mss-clamped").cloned()
    };
    assert_eq!(told(end(1460, 1460, 1500), end(1460, 1460, 1500)), None, "nobody clamps");
    assert_eq!(told(end(1460, 1360, 1400), end(1460, 1460, 1500)), None, "the end knows a smaller path");
    assert_eq!(told(end(1360, 1460, 1500), end(1460, 1360, 1500)), None, "the other end asked for less");
    let clamped = told(end(1460, 1452, 1500), end(1460, 1460, 1500)).unwrap();
    assert_eq!((clamped.direction, clamped.severity), (Some(Upload), Severity::Info));
    assert!(
        clamped.evidence[0].contains("may send 1452 only") && clamped.evidence[0].contains("PPPoE"),
        "{:?}",
        clamped.evidence
    );
    assert_eq!(told(end(1460, 1452, 1500), end(1460, 1452, 1500)).unwrap().direction, None);
}

#[test]
fn a_change_is_told_and_lowers_what_can_be_said() {
    let change = MtuChange { from: Mtu(9000), to: Mtu(1500), at_us: Elapsed(1_200_000) };
    let mut doc = hole_up(1500);
    up(&mut doc).change = Some(change);
    let judged = is(&doc, "network.mtu-black-hole");
    assert_eq!(find(&judged, "network.mtu-changed").unwrap().severity, Severity::Warning);
    let mut doc = mtu_only(1_000, 1500);
    up(&mut doc).change = Some(MtuChange { from: Mtu(1400), to: Mtu(1500), ..change });
    let judged = is(&doc, "none.mtu-consistent");
    assert_eq!(judged.verdict.confidence, Confidence::Low);
    assert_eq!(find(&judged, "network.mtu-changed").unwrap().severity, Severity::Info);
}

#[test]
fn jumbo_frames_are_advised_where_they_gain_something() {
    let advice = |doc: &Document| find(&judge(doc), "network.jumbo-unused").map(|finding| finding.advice[0].clone());
    assert!(advice(&mtu_only(1_000, 1500)).unwrap().contains("Do not bother: on a link of 1 Gbit/s"));
    assert!(advice(&mtu_only(2_500, 1500)).unwrap().starts_with("Nothing needs to be done"));
    assert_eq!(advice(&mtu_only(2_500, 9000)), None);
    assert_eq!(advice(&healthy(1_000)), None);
    let mut doc = healthy(2_500);
    doc.disk(Nas).write = Outcome::Measured(transfer(100));
    assert!(advice(&doc).unwrap().contains("Do not bother: the NAS's disk writes 100 MB/s"));
}

#[test]
fn a_measured_gain_is_told() {
    let mut doc = mtu_only(10_000, 9000);
    let cost = |packet, rate, cpu| SegmentCost {
        packet: Mtu(packet),
        goodput_bps: mbit(rate),
        sender_cpu_s_per_gb: Some(cpu),
        receiver_cpu_s_per_gb: None,
    };
    section(&mut doc).gain =
        Outcome::Measured(vec![JumboGain { direction: Upload, large: cost(9000, 9_900, 0.21), common: cost(1500, 9_410, 0.55) }]);
    let judged = is(&doc, "none.mtu-consistent");
    let evidence = &find(&judged, "network.jumbo-gain").unwrap().evidence;
    assert_eq!(evidence[0], "Large packets: PC → NAS 5.2 % more.");
    let told = &evidence[1];
    assert!(
        told.contains("5.2 % more") && told.contains("The PC used 0.21 core seconds for a gigabyte instead of 0.55"),
        "{told}"
    );
}

#[test]
fn a_port_without_a_chip_accuses_nobody() {
    let mut doc = hole_up(1500);
    doc.port(Pc).kind = InterfaceKind::Veth;
    let silent = is(&doc, "network.mtu-black-hole");
    section(&mut doc).counters_pc = counted("tx_dropped", 6);
    assert_eq!(is(&doc, "network.mtu-black-hole"), silent);
}

#[test]
fn one_size_is_explained_once_for_both_directions() {
    let mut doc = hole_up(1504);
    section(&mut doc).download = Outcome::Measured(short_path(1500, 9000, Limiter::Silent));
    let judged = is(&doc, "network.mtu-black-hole");
    let about = judged.findings[0].evidence.iter().filter(|line| line.contains("what Ethernet carries")).count();
    assert_eq!(about, 1, "{:?}", judged.findings[0].evidence);
    says(&judged, &["1500 bytes is what Ethernet carries without them."]);
    // Where a host's own layer is to blame nobody talks of switches.
    let mut port = interface("eth9", InterfaceKind::Physical, 2_500);
    port.mtu = interface("x", InterfaceKind::Physical, 1).mtu;
    doc.link(Pc).stack.push(port);
    let advice = is(&doc, "network.mtu-black-hole").findings[0].advice.clone();
    assert!(advice.iter().all(|text| !text.contains("switch port")), "{advice:?}");
    assert_eq!(advice.iter().filter(|text| text.contains("eth9 mtu 9000")).count(), 1, "{advice:?}");
}

#[test]
fn two_sizes_in_one_subnet_are_mended_the_short_way_and_copies_are_spoken_of() {
    let end = |advertised: u32, granted: u32| {
        Outcome::Measured(TcpEnd { advertised_mss_bytes: advertised, send_mss_bytes: granted - 12, pmtu: None, option_bytes: 12 })
    };
    let cases: [(u32, u32, &str, &str); 3] = [
        (9000, 8000, "Either all 8000: at the PC `ip link set dev eth0 mtu 8000`.", "Or all 9000: at every switch port"),
        (1400, 1500, "Either all 1500: at the PC `ip link set dev eth0 mtu 1500`.", "Or all 1400: at the NAS"),
        (9000, 1500, "Either all 1500: at the PC `ip link set dev eth0 mtu 1500`.", "Or all 9000: at every switch port"),
    ];
    for (pc, nas, first, second) in cases {
        let mut doc = mtu_only(2_500, pc);
        doc.mtu(Nas, nas);
        let small = pc.min(nas);
        let towards = |own: u32| short_path(small, own, if own > small { Limiter::Silent } else { Limiter::LocalInterface });
        section(&mut doc).upload = Outcome::Measured(towards(pc));
        section(&mut doc).download = Outcome::Measured(towards(nas));
        let handshake = TcpHandshake { pc: end(pc - 40, small - 40), nas: end(nas - 40, small - 40) };
        section(&mut doc).handshake = Outcome::Measured(handshake);
        let judged = is(&doc, "network.mtu-mismatch");
        assert!(judged.verdict.sentence.starts_with("Fault: "), "{}", judged.verdict.sentence);
        assert!(
            judged.verdict.sentence.contains("so copies go on; larger datagrams and pings vanish"),
            "{}",
            judged.verdict.sentence
        );
        let advice = &judged.findings[0].advice;
        assert!(advice[0].starts_with(first) && advice[1].starts_with(second), "{advice:?}");
    }
}

#[test]
fn a_bridge_that_is_smaller_than_its_port_is_no_lenient_driver() {
    let mut doc = mtu_only(2_500, 9000);
    let port = doc.link(Nas).stack[0].clone();
    doc.link(Nas).stack.push(port);
    let bridge = &mut doc.link(Nas).stack[0];
    (bridge.name, bridge.kind) = ("brn".into(), InterfaceKind::Bridge);
    bridge.mtu = interface("x", InterfaceKind::Physical, 1).mtu;
    section(&mut doc).download = Outcome::Measured(path(1500, Limiter::LocalInterface));
    let judged = is(&doc, "none.mtu-consistent");
    let finding = find(&judged, "network.mtu-mismatch").unwrap();
    assert_eq!(finding.r#where, Where::Nas);
    assert!(
        finding.evidence.iter().any(|line| line.contains("the bridge brn has MTU 1500, less than eth0 below it (9000)")),
        "{:?}",
        finding.evidence
    );
    assert!(finding.advice[0].contains("at the NAS `ip link set dev brn mtu 9000`"), "{:?}", finding.advice);
}

#[test]
fn a_clean_path_tells_what_tcp_uses_and_what_is_odd() {
    let end = |granted: u32| {
        Outcome::Measured(TcpEnd {
            advertised_mss_bytes: 1460,
            send_mss_bytes: granted - 12,
            pmtu: Some(Mtu(1500)),
            option_bytes: 12,
        })
    };
    let mut doc = mtu_only(1_000, 1500);
    section(&mut doc).handshake = Outcome::Measured(TcpHandshake { pc: end(1000), nas: end(1000) });
    let sentence = is(&doc, "none.mtu-consistent").verdict.sentence;
    assert!(
        sentence.contains("But TCP uses packets of 1040 bytes only, both ways") && !sentence.contains("both ends use them"),
        "{sentence}"
    );
    section(&mut doc).handshake = Outcome::Measured(TcpHandshake { pc: end(1460), nas: end(1000) });
    let sentence = is(&doc, "none.mtu-consistent").verdict.sentence;
    assert!(sentence.contains("1040 bytes only NAS → PC"), "{sentence}");
    let sentence = is(&mtu_only(1_000, 1400), "none.mtu-consistent").verdict.sentence;
    assert!(sentence.contains("1400 is less than Ethernet's 1500"), "{sentence}");
}
