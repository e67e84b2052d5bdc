//! Answers without a fault, sentences, and the pages of all codes.

use super::*;

const ANSWERS_WITHOUT_A_FAULT: &[Case] = &[
    ("a level rate is the evidence where no port tells", 2_500, Bend::no_links, "none.at-line-rate"),
    (
        "no port tells and the rate is no class",
        10_000,
        |doc| {
            doc.no_links();
            doc.no_disks();
            doc.both(|pass| pass.goodput_bps = mbit(19_000));
        },
        "inconclusive.unexplained-network-gap",
    ),
    (
        "beyond any class a full core is the honest answer",
        10_000,
        |doc| {
            doc.no_links();
            doc.no_disks();
            doc.both(|pass| {
                pass.goodput_bps = mbit(19_000);
                cpu(pass, Pc, |w| *w = cpu_window(1.0));
            });
        },
        "cpu.network-stack-core",
    ),
    ("more than the port carries", 1_000, |doc| doc.rate(Upload, 9_390), "none.tool-limit"),
    (
        "the copy beats the benchmark",
        10_000,
        |doc| {
            doc.both(|pass| pass.goodput_bps = mbit(4_500));
            doc.lane(LaneKind::Mounted, "smb 3.1.1", &[]).rungs = vec![plain(Upload, 1_064.0), plain(Download, 1_064.0)];
        },
        "none.tool-limit",
    ),
    (
        "one machine",
        10_000,
        |doc| {
            doc.plan.local = true;
            doc.both(|pass| pass.goodput_bps = mbit(19_000));
            doc.disk(Nas).write = Outcome::Measured(transfer(20));
        },
        "none.at-device-class",
    ),
    (
        "nothing at all",
        1_000,
        |doc| doc.measurements = crate::model::document::Measurements::none("no agent answered"),
        "inconclusive.too-little-evidence",
    ),
    (
        "the stated speed overrides the port",
        10_000,
        |doc| {
            doc.plan.stated_nas_bps = Some(mbit(2_500));
            doc.both(|pass| pass.goodput_bps = mbit(2_350));
        },
        "none.at-line-rate",
    ),
];

#[test]
fn answers_without_a_fault() {
    run(ANSWERS_WITHOUT_A_FAULT);
}

#[test]
fn informations_never_decide() {
    let mut doc = healthy(2_500);
    doc.device(Nas).free_bytes = Outcome::Measured(ByteSize(1_000_000_000));
    let judgement = judge(&doc);
    let codes: Vec<String> = judgement.findings.iter().map(|finding| finding.code.to_string()).collect();
    assert!(codes.contains(&"disk.nearly-full".to_owned()) && codes.contains(&"network.jumbo-unused".to_owned()), "{codes:?}");
    assert_eq!(judgement.verdict.status, Status::Healthy);
    assert!(judge(&healthy(1_000)).findings.is_empty());
}

#[test]
fn the_sentence_is_the_one_of_the_product() {
    let mut doc = healthy(2_500);
    let device = doc.device(Nas);
    device.raid = Some(Raid { level: "raid5".into(), members: 3, missing: 0, syncing: None });
    device.disks = vec![device.disks[0].clone(); 3];
    doc.disk(Nas).write = Outcome::Measured(transfer(212));
    let verdict = judge(&doc).verdict;
    assert_eq!(
        verdict.sentence,
        "Bottleneck: NAS disk write (RAID5, 3 HDD), 212 MB/s, in the direction PC → NAS. The network carries 294 MB/s. \
         Mending this gains at most 38 %; after that the 2.5 Gbit/s link is the limit."
    );
    assert_eq!((verdict.direction, verdict.r#where), (Some(Upload), Some(Where::Nas)));
    assert_eq!(verdict.confidence, Confidence::High);
    for component in [Component::Network, Component::Disk, Component::Cpu] {
        assert!(verdict.ruled_out.iter().any(|out| out.code.component == component), "{component:?}");
    }
}

#[test]
fn a_stalled_stream_proves_the_hole() {
    let mut doc = healthy(1_000);
    jumbo_hole(&mut doc);
    doc.measurements.mtu.measured_mut().unwrap().unclamped = Outcome::Measured(SegmentStream {
        direction: Upload,
        bytes: ByteSize(0),
        elapsed_us: Elapsed(1_500_000),
        goodput_bps: BitRate(0),
        packet: None,
    });
    let judgement = judge(&doc);
    assert_eq!(judgement.verdict.confidence, Confidence::High);
    assert_eq!(judgement.verdict.direction, None);
    assert_eq!(judgement.findings[0].severity, crate::model::finding::Severity::Critical);
    assert!(judgement.verdict.sentence.contains("0 B"), "{}", judgement.verdict.sentence);
}

#[test]
fn every_page_has_a_code_that_parses_and_no_code_has_two() {
    let mut codes: Vec<&str> = rules().iter().map(|doc| doc.code).collect();
    codes.sort_unstable();
    let all = codes.len();
    codes.dedup();
    assert_eq!(codes.len(), all);
    for doc in rules() {
        let code = doc.code.parse().unwrap();
        assert_eq!(super::super::explain(&code), Some(doc));
    }
}
