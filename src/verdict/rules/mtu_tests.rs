//! The rules about packet sizes: each fires on its facts and stays silent without them.

use std::collections::BTreeMap;

use super::super::scenario::*;
use super::super::{Judgement, judge};
use crate::model::finding::{Confidence, Finding, Severity, Status, Where};
use crate::model::host::TcpSettings;
use crate::model::link::{Counters, InterfaceKind, Neighbour};
use crate::model::mtu::{
    Hop, JumboGain, Limiter, Location, MtuChange, MtuSection, PathMtu, Probe, ProbeFate, RouterWord, SegmentCost, SegmentStream,
    TcpEnd, TcpHandshake,
};
use crate::model::outcome::Outcome;
use crate::model::{Direction, Document, Role};
use crate::units::{BitRate, ByteSize, Elapsed, Mtu};

use Direction::{Download, Upload};
use Role::{Nas, Pc};

fn section(doc: &mut Document) -> &mut MtuSection {
    doc.measurements.mtu.measured_mut().unwrap()
}

fn up(doc: &mut Document) -> &mut PathMtu {
    section(doc).upload.measured_mut().unwrap()
}

/// Both ends 9000, and packets above `mtu` vanish from the PC to the NAS only.
fn hole_up(mtu: u32) -> Document {
    let mut doc = mtu_only(2_500, 9000);
    section(&mut doc).upload = Outcome::Measured(short_path(mtu, 9000, Limiter::Silent));
    doc
}

fn hole_both(mtu: u32) -> Document {
    let mut doc = hole_up(mtu);
    section(&mut doc).download = Outcome::Measured(short_path(mtu, 9000, Limiter::Silent));
    doc
}

fn router(mtu: u32) -> Limiter {
    Limiter::Router { address: [10, 0, 1, 1].into(), next_hop_mtu: Mtu(mtu) }
}

fn find<'a>(judged: &'a Judgement, code: &str) -> Option<&'a Finding> {
    judged.findings.iter().find(|finding| finding.code.to_string() == code)
}

#[track_caller]
fn is(doc: &Document, code: &str) -> Judgement {
    let judged = judge(doc);
    assert_eq!(judged.verdict.code.to_string(), code, "{}", judged.verdict.sentence);
    judged
}

#[track_caller]
fn says(judged: &Judgement, words: &[&str]) {
    let first = &judged.findings[0];
    let all = format!("{}\n{}\n{}", judged.verdict.sentence, first.evidence.join("\n"), first.advice.join("\n"));
    for word in words {
        assert!(all.contains(word), "{word:?} in\n{all}");
    }
}

fn stream(direction: Direction, packet: u32, mb: u64) -> Outcome<SegmentStream> {
    Outcome::Measured(SegmentStream {
        direction,
        bytes: ByteSize(mb * 2_000_000),
        elapsed_us: Elapsed(2_000_000),
        goodput_bps: BitRate(mb * 8_000_000),
        packet: Some(Mtu(packet)),
    })
}

fn located(reached: u8, missing: Option<u8>, peer_at: u8) -> Location {
    let hop = |ttl| Hop { ttl, address: Some([10, 0, ttl, 1].into()), rtt_us: Some(Elapsed(300)), large_arrived: ttl <= reached };
    Location { size: Mtu(9000), hops: (1..peer_at).map(hop).collect(), peer_at: Some(peer_at), reached, missing }
}

fn tcp(doc: &mut Document, role: Role) -> &mut TcpSettings {
    let host = if role == Pc { &mut doc.hosts.pc } else { &mut doc.hosts.nas };
    host.measured_mut().unwrap().tcp.measured_mut().unwrap()
}

fn counted(name: &str, count: u64) -> Outcome<BTreeMap<String, Counters>> {
    grown(name, count)
}

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
