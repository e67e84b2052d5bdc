//! What reports look like, and that nothing in a document can make rendering or reading fail.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::Value;
use weaklink::model::link::Neighbour;
use weaklink::model::{Document, Outcome};
use weaklink::report::{Format, MAX_BYTES, ReadError, Style, read, redact, render};

#[path = "fixtures/report/samples.rs"]
mod samples;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/report")
}

fn styles() -> [(&'static str, Style); 3] {
    [
        ("80", Style { color: false, width: 80, unicode: true, trace: false, details: true }),
        ("120", Style { color: false, width: 120, unicode: true, trace: false, details: true }),
        ("60-ascii", Style { color: false, width: 60, unicode: false, trace: false, details: true }),
    ]
}

/// Whether a sample answers a question whose report is one screen.
fn of_one_screen(name: &str) -> bool {
    name.starts_with("throughput") || name.starts_with("link")
}

fn hold(name: &str, text: &str) {
    insta::with_settings!({ snapshot_path => "fixtures/report/snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

/// Run once with `INSTA_UPDATE=always` after a wanted change.
#[test]
fn every_sample_looks_as_it_did() {
    for (name, document) in samples::all() {
        for (style_name, style) in styles() {
            hold(&format!("{name}-text-{style_name}"), &render(&document, Format::Text, &style));
        }
        hold(&format!("{name}-markdown"), &render(&document, Format::Markdown, &Style::PLAIN));
    }
    for (name, make) in [("routed-hole", samples::routed_hole as fn() -> Document), ("mtu-alone", samples::mtu_alone)] {
        let document = make();
        let style = Style { trace: true, ..Style::PLAIN };
        hold(&format!("{name}-text-trace"), &render(&document, Format::Text, &style));
        hold(&format!("{name}-markdown-trace"), &render(&document, Format::Markdown, &style));
    }
    for (name, document) in samples::all().into_iter().filter(|(name, _)| of_one_screen(name)) {
        for width in [80, 100] {
            let style = Style { width, details: false, ..Style::PLAIN };
            hold(&format!("{name}-text-{width}-first"), &render(&document, Format::Text, &style));
        }
    }
    let style = Style { color: true, width: 80, unicode: true, trace: false, details: true };
    hold("nas-disk-text-color", &render(&samples::nas_disk(), Format::Text, &style).replace('\u{1b}', "ESC"));
}

#[test]
fn the_sample_files_are_what_the_builder_makes() {
    let update = std::env::var("INSTA_UPDATE").is_ok_and(|how| how == "always");
    for (name, document) in samples::all() {
        let file = folder().join(format!("{name}.json"));
        let text = render(&document, Format::Json, &Style::PLAIN);
        if update {
            std::fs::write(&file, &text).unwrap();
        }
        assert!(std::fs::read_to_string(&file).unwrap() == text, "{name}: run with INSTA_UPDATE=always after a wanted change");
        assert!(read(text.as_bytes()).unwrap() == document, "{name} changes when it is read back");
    }
}

#[test]
fn verdict_ladder_and_findings_stand_on_the_first_screen() {
    for (name, document) in samples::all() {
        let text =
            render(&document, Format::Text, &Style { color: false, width: 80, unicode: true, trace: false, details: true });
        let first = text.lines().position(|line| line.starts_with("──")).unwrap();
        // One that has everything at once, as no single test has, may be some lines longer.
        let most = if name == "throughput-all" { 36 } else { 30 };
        assert!(first <= most, "{name}: {first} lines");
    }
}

#[test]
fn raw_rates_and_links_are_one_screen_unless_details_are_wanted_and_each_finding_stands_once() {
    for (name, document) in samples::all().into_iter().filter(|(name, _)| of_one_screen(name)) {
        for width in [80, 100] {
            let first = render(&document, Format::Text, &Style { width, details: false, ..Style::PLAIN });
            let all = render(&document, Format::Text, &Style { width, ..Style::PLAIN });
            assert!(first.lines().count() <= 50, "{name}: {} lines", first.lines().count());
            assert!(!first.lines().any(|line| line.starts_with("──")) && first.contains("--details"), "{name}: {first}");
            for finding in &document.findings {
                let code = finding.code.to_string();
                let head = |line: &str| {
                    let mut words = line.split_whitespace();
                    matches!(words.next(), Some("info" | "warning" | "critical")) && words.next() == Some(code.as_str())
                };
                let count = |text: &str| text.lines().filter(|line| head(line)).count();
                assert_eq!((count(&first), count(&all)), (1, 1), "{name}: {code}");
            }
            let rates = first.lines().position(|line| line.trim_start().starts_with("direction  streams"));
            let torn = rates.map(|at| first.lines().nth(at + 1).unwrap_or_default());
            assert!(torn.is_none_or(|line| line.contains("──")), "{name} at {width}: the header takes one line: {first}");
        }
    }
}

/// Words without the breaks of a layout.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn first_screen(document: &Document, width: usize) -> String {
    let text = render(document, Format::Text, &Style { color: false, width, unicode: true, trace: false, details: true });
    text.lines().take_while(|line| !line.starts_with("──")).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_lane_that_was_asked_for_and_failed_is_told_on_the_first_screen() {
    let refusal = "the SSH host key of me@nas (port 2222) is not known yet";
    let mut document = samples::nas_disk();
    assert!(!first_screen(&document, 80).contains("Asked for"));
    let ssh = document.measurements.copy.measured_mut().unwrap().lanes.pop().unwrap();
    assert!(flat(&first_screen(&document, 80)).contains("Asked for but not measured: ssh: the run did not come to it"));
    let mut half = ssh.clone();
    half.rungs[1].result = Outcome::failed(refusal);
    document.measurements.copy.measured_mut().unwrap().lanes.push(half);
    assert!(flat(&first_screen(&document, 80)).contains(&format!("Asked for but not measured: ssh NAS → PC: {refusal}")));
    let mut none = ssh;
    none.rungs.iter_mut().for_each(|rung| rung.result = Outcome::failed(refusal));
    *document.measurements.copy.measured_mut().unwrap().lanes.last_mut().unwrap() = none;
    for width in [60, 80] {
        let first = flat(&first_screen(&document, width));
        assert_eq!(first.matches(&format!("Asked for but not measured: ssh: {refusal}")).count(), 1, "{first}");
        assert!(first.find("not on the ladder") < first.find("Asked for") && first.find("Asked for") < first.find("warning"));
    }
    document.measurements.copy = Outcome::skipped("no time was left");
    assert!(flat(&first_screen(&document, 80)).contains("Asked for but not measured: ssh: no time was left"));
}

#[test]
fn the_text_ends_with_the_verdict_and_a_ticket_does_not() {
    for (name, document) in samples::all() {
        let verdict = document.verdict.as_ref().unwrap();
        let text = flat(&render(
            &document,
            Format::Text,
            &Style { color: false, width: 60, unicode: true, trace: false, details: true },
        ));
        assert!(text.ends_with(&verdict.code.to_string()), "{name}: {text}");
        let last = text.rsplit_once("Verdict ").unwrap().1;
        assert!(last.contains(&flat(verdict.sentence.split_inclusive(". ").next().unwrap())), "{name}: {last}");
        // What to do has scrolled away by then.
        let fault = document.findings.first().filter(|finding| finding.code == verdict.code);
        if let Some(advice) = fault.and_then(|finding| finding.advice.first()) {
            assert!(last.contains(&flat(advice)), "{name}: {last}");
        }
        let ticket = flat(&render(&document, Format::Markdown, &Style::PLAIN));
        assert!(!ticket.ends_with(&verdict.code.to_string()), "{name}");
    }
}

#[test]
fn percentages_of_a_ladder_are_explained_once_and_only_where_there_are_any() {
    for (name, times) in [("nas-disk", 1), ("black-hole", 1), ("healthy", 0), ("nothing", 0)] {
        let document = samples::all().into_iter().find(|(known, _)| *known == name).unwrap().1;
        for format in [Format::Text, Format::Markdown] {
            let text = flat(&render(&document, format, &Style::PLAIN));
            assert_eq!(text.matches("lost against the slowest rung above").count(), times, "{name} as {format}");
        }
    }
}

#[test]
fn what_to_do_about_a_fault_is_never_cut() {
    let mut document = samples::nas_disk();
    document.findings[0].advice[0] = "a long sentence of advice ".repeat(12) + "whose end matters";
    assert!(flat(&first_screen(&document, 60)).contains("whose end matters"));
}

#[test]
fn what_is_cut_ends_with_a_sentence_or_at_least_a_word() {
    let cut = |evidence: &str| {
        let mut document = samples::healthy();
        document.findings[0].evidence[0] = evidence.to_owned();
        let first = first_screen(&document, 80);
        first.lines().find(|line| line.ends_with('…')).map(|line| line.trim().to_owned()).unwrap()
    };
    for words in 1..8 {
        let shown = cut(&format!("{}60.75 MB/s (12.5 % of it, or more) and so on{}", "word ".repeat(words), " word".repeat(20)));
        let last = shown.trim_end_matches('…').trim_end().split(' ').next_back().unwrap();
        assert!(["word", "on", "so", "and", "more)", "MB/s"].contains(&last), "{shown}");
    }
    let shown = cut("This sentence fills the better half of the line. Then 12.5 % more of it follows on it.");
    assert_eq!(shown, "This sentence fills the better half of the line. …");
}

#[test]
fn the_turning_of_a_virtual_disk_is_no_evidence() {
    for (name, attached, shown) in [
        ("vda", None, "vda (virtual)"),
        ("xvdb1", None, "xvdb1 (virtual)"),
        ("loop0", None, "loop0 (virtual)"),
        ("sda", Some("virtio"), "sda (virtual, virtio)"),
        ("sda", Some("SATA"), "sda (HDD, SATA)"),
    ] {
        let mut document = samples::nas_disk();
        let disk = document.measurements.storage.measured_mut().unwrap().nas.measured_mut().unwrap();
        let disks = &mut disk.device.measured_mut().unwrap().disks;
        disks.truncate(1);
        disks[0].name = name.into();
        disks[0].model = None;
        disks[0].rotational = Some(true);
        disks[0].attached = attached.map(str::to_owned);
        let text = flat(&render(&document, Format::Text, &Style::PLAIN));
        assert!(text.contains(&format!("· {shown} ·")), "{shown}: {text}");
    }
}

#[test]
fn rates_of_a_part_and_content_that_was_checked_in_part_are_told_once() {
    let note = |document: &Document| {
        let text = flat(&render(document, Format::Text, &Style::PLAIN));
        let count = |words: &str| text.matches(words).count();
        (count("Moved and time are of the whole step"), count("Verified is less than moved"))
    };
    let mut document = samples::healthy();
    assert_eq!(note(&document), (0, 0));
    let lane = &mut document.measurements.copy.measured_mut().unwrap().lanes[0];
    for copied in lane.rungs.iter_mut().filter_map(|rung| rung.result.measured_mut()) {
        copied.verified_bytes = Outcome::Measured(weaklink::units::ByteSize(copied.bytes.0 / 2));
    }
    assert_eq!(note(&document), (0, 1));
    let disk = document.measurements.storage.measured_mut().unwrap().nas.measured_mut().unwrap();
    disk.write.measured_mut().unwrap().sustained_bytes_per_s.0 *= 2;
    assert_eq!(note(&document), (1, 1));
    document.measurements.copy = Outcome::skipped("no time was left");
    assert_eq!(note(&document), (1, 0));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for (name, document) in samples::all() {
        for width in [40, 60, 72, 80, 100, 120, 200] {
            for unicode in [true, false] {
                let text = render(&document, Format::Text, &Style { color: false, width, unicode, trace: false, details: true });
                let wide = text.lines().find(|line| line.chars().count() > width);
                assert_eq!(wide, None, "{name} at {width}");
                assert!(unicode || text.is_ascii(), "{name}");
            }
        }
    }
}

#[test]
fn every_reason_that_something_is_missing_is_told_once() {
    let text = render(&samples::nothing(), Format::Markdown, &Style::PLAIN);
    assert_eq!(text.matches("the NAS did not answer on port 5210").count(), 1);
    assert_eq!(text.matches("connection refused").count(), 1);
}

#[test]
fn a_local_run_says_that_loopback_is_no_network() {
    for format in [Format::Text, Format::Markdown] {
        let text = render(&samples::local(), format, &Style::PLAIN);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("not evidence about a cable"), "{text}");
        let said = text.find("loopback, which is no network").unwrap();
        assert!(said < text.find("TCP, 4 streams").unwrap());
    }
}

#[test]
fn what_is_no_report_is_refused_with_a_sentence() {
    let good = render(&samples::healthy(), Format::Json, &Style::PLAIN);
    let says = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
    for (case, given, sentence) in [
        ("nothing", String::new(), "the file is empty"),
        ("a list", "[1, 2]".into(), "this is not a weaklink report: it is a list"),
        ("a number", "7".into(), "this is not a weaklink report: it is a single value"),
        ("an object of another kind", "{\"a\": 1}".into(), "this is not a weaklink report: it has no schema"),
        ("an iperf3 result", "{\"start\": {}, \"schema\": 3}".into(), "this is not a weaklink report"),
        ("another schema", good.replace("weaklink.report", "other.report"), "its schema is \"other.report\""),
        ("a newer layout", good.replacen("\"major\": 1", "\"major\": 2", 1), "made by a newer weaklink (layout 2.3"),
        ("layout 0", good.replacen("\"major\": 1", "\"major\": 0", 1), "no weaklink ever wrote layout 0"),
        ("a broken copy", good[..good.len() / 2].into(), "breaks off at line"),
        ("a stray comma", good.replacen("\"tool\": {", "\"tool\": {,", 1), "not valid JSON: "),
        ("two reports", format!("{good}{good}"), "not valid JSON: trailing characters at line"),
        ("a negative rate", good.replacen("\"streams\": 4", "\"streams\": -4", 1), "the report is damaged: invalid value"),
        ("a number beyond all bounds", good.replacen("\"streams\": 4", "\"streams\": 1e999", 1), "number out of range at line"),
        ("a word that does not exist", good.replacen("\"healthy\"", "\"ill\\u001b[2J\"", 1), "unknown variant `ill\\u{1b}[2J`"),
        ("deep nesting", format!("{{\"schema\":{}", "[".repeat(100_000)), ""),
    ] {
        let said = says(&given);
        assert!(said.contains(sentence), "{case}: {said}");
        assert!(!said.contains('\u{1b}'), "{case}");
    }
    assert!(matches!(read(b"\xff\xfe{\0}\0"), Err(ReadError::Encoding { .. })));
    assert!(matches!(read(b"{\"a\": \"\xff\"}"), Err(ReadError::Encoding { .. })));
    assert!(matches!(read(&vec![b' '; MAX_BYTES + 1]), Err(ReadError::TooLarge { .. })));
    assert!(matches!(read("{},".repeat(300_000).as_bytes()), Err(ReadError::TooLarge { .. })));
}

#[test]
fn a_report_of_a_newer_minor_version_is_read() {
    let good = render(&samples::healthy(), Format::Json, &Style::PLAIN);
    let newer = good.replacen("\"minor\": 1", "\"minor\": 7", 1).replacen(
        "\"tool\": {",
        "\"weather\": {\"wind\": [1, {}]}, \"tool\": {",
        1,
    );
    let document = read(format!("\u{feff}{newer}").as_bytes()).unwrap();
    assert!(document.measurements == samples::healthy().measurements);
}

#[test]
fn a_redacted_report_keeps_its_findings_and_loses_its_addresses() {
    let mut document = samples::nas_disk();
    let link = document.measurements.link.measured_mut().unwrap().pc.measured_mut().unwrap();
    link.peer = "93.184.216.34".parse().unwrap();
    link.stack[0].name = "enx001122334455".into();
    document.findings[0].evidence.push("The route to 93.184.216.34 leaves by 00:11:22:33:44:55.".into());
    let findings = document.findings.len();
    redact(&mut document).unwrap();
    let text = render(&document, Format::Json, &Style::PLAIN);
    for private in ["93.184.216.34", "33:44:55", "334455"] {
        assert!(!text.contains(private), "{private}");
    }
    for kept in ["192.168.1.10", "192.0.2.1", "00:11:22", "enx001122"] {
        assert!(text.contains(kept), "{kept}");
    }
    assert_eq!(document.findings.len(), findings);
}

#[test]
fn a_document_about_the_path_alone_shows_nothing_else_and_every_probe_on_demand() {
    for document in
        [samples::routed_hole as fn() -> Document, samples::mtu_healthy, samples::mtu_alone].map(|make| Box::new(make()))
    {
        let text = render(&document, Format::Text, &Style::PLAIN);
        for other in ["── Hosts", "── TCP throughput", "── Storage", "── Processors", "wire, MTU", "streams"] {
            assert!(!text.contains(other), "{other}: {text}");
        }
        assert!(text.contains("── Path MTU") && text.contains("── Links"), "{text}");
        let traced = render(&document, Format::Text, &Style { trace: true, ..Style::PLAIN });
        assert!(!text.contains("probe  ") && traced.contains("probe  "), "{traced}");
    }
}

#[test]
fn what_an_earlier_version_did_not_measure_is_no_news() {
    let mut document = samples::healthy();
    let mtu = document.measurements.mtu.measured_mut().unwrap();
    mtu.echo = Outcome::skipped("the report is of an earlier version of weaklink, which did not measure this");
    mtu.gain = Outcome::skipped("`weaklink run` leaves this to `weaklink mtu`");
    mtu.services = Outcome::skipped("`weaklink run` leaves this to `weaklink mtu`");
    let text = render(&document, Format::Text, &Style::PLAIN);
    assert!(!text.contains("earlier version"), "{text}");
    assert_eq!(text.matches("leaves this to").count(), 1);
    assert!(!text.contains("gain of large packets"));
}

#[test]
fn a_redacted_report_hides_the_names_of_switches() {
    let mut document = samples::routed_hole();
    let before = render(&document, Format::Json, &Style::PLAIN);
    redact(&mut document).unwrap();
    let text = render(&document, Format::Json, &Style::PLAIN);
    for private in ["attic-switch", "to Bob's desk", "a4:2b:b0:11:22:33"] {
        assert!(before.contains(private) && !text.contains(private), "{private}");
    }
    for kept in ["GS308T", "a4:2b:b0", "10.0.2.1"] {
        assert!(text.contains(kept), "{kept}");
    }
}

/// Replaces parts of a document: outcomes by reasons, strings by others. What does not fit the model any more is no document.
fn spoil(value: &mut Value, choose: &mut impl FnMut() -> u8, text: &str) {
    match value {
        Value::Object(fields) if fields.len() == 1 && fields.contains_key("measured") => match choose() {
            0..=40 => *value = serde_json::json!({ "skipped": { "reason": text } }),
            41..=70 => *value = serde_json::json!({ "failed": { "reason": text } }),
            _ => fields.values_mut().for_each(|inner| spoil(inner, choose, text)),
        },
        Value::Object(fields) => fields.values_mut().for_each(|inner| spoil(inner, choose, text)),
        // Lists of plain values may be of a fixed length.
        Value::Array(items) if items.first().is_some_and(Value::is_object) => {
            if choose() < 25 {
                items.truncate(1);
            }
            for inner in items {
                spoil(inner, choose, text);
            }
        }
        _ => {}
    }
}

fn hostile(document: &mut Document, text: &str, number: u64) {
    for finding in &mut document.findings {
        finding.evidence.push(text.to_owned());
        finding.advice.insert(0, text.to_owned());
        if let Some(gain) = &mut finding.gain {
            gain.to_bps.0 = number;
        }
    }
    text.clone_into(&mut document.started);
    document.plan.stated_nas_bps = Some(weaklink::units::BitRate(number));
    if let Some(verdict) = &mut document.verdict {
        text.clone_into(&mut verdict.sentence);
    }
    if let Some(host) = document.hosts.pc.measured_mut() {
        text.clone_into(&mut host.os);
    }
    for lane in document.measurements.copy.measured_mut().into_iter().flat_map(|section| &mut section.lanes) {
        for fact in &mut lane.facts {
            text.clone_into(&mut fact.value);
        }
        for copied in lane.rungs.iter_mut().filter_map(|rung| rung.result.measured_mut()) {
            copied.bytes_per_s.0 = number;
        }
    }
    let links = document.measurements.link.measured_mut().into_iter().flat_map(|section| [&mut section.pc, &mut section.nas]);
    for interface in links.filter_map(|link| link.measured_mut()).flat_map(|link| &mut link.stack) {
        text.clone_into(&mut interface.name);
    }
    let links = document.measurements.link.measured_mut().into_iter().flat_map(|section| [&mut section.pc, &mut section.nas]);
    for link in links.filter_map(|link| link.measured_mut()) {
        let said = || Some(text.to_owned());
        link.neighbours = Outcome::Measured(vec![Neighbour {
            interface: text.to_owned(),
            chassis: said(),
            port: said(),
            port_description: said(),
            system: said(),
            system_description: said(),
            max_frame_bytes: Some(number as u32),
            ..Neighbour::default()
        }]);
    }
    let hosts = document.measurements.cpu.measured_mut().into_iter().flat_map(|section| [&mut section.pc, &mut section.nas]);
    for window in hosts.filter_map(|host| host.measured_mut()).filter_map(|host| host.idle.measured_mut()) {
        window.peak_busy = f64::NAN;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_document_makes_rendering_fail_or_steers_the_terminal(
        sample in 0usize..18,
        choices in proptest::collection::vec(any::<u8>(), 1..64),
        text in "[a-z |`<\\[\u{1b}\u{7}\n\r\u{9b}\u{202e}\u{2066}\u{200b}日\u{301}]{0,60}",
        number in prop_oneof![Just(0u64), Just(u64::MAX), any::<u64>()],
        width in 0usize..240,
        unicode in any::<bool>(),
    ) {
        let mut value = serde_json::to_value(&samples::all()[sample].1).unwrap();
        let mut at = 0;
        spoil(&mut value["measurements"], &mut || { at += 1; choices[at % choices.len()] }, &text);
        let mut document: Document = serde_json::from_value(value).unwrap();
        hostile(&mut document, &text, number);
        let style = Style { color: false, width, unicode, trace: number % 2 == 0, details: number % 3 > 0 };
        for format in Format::ALL {
            let shown = render(&document, format, &style);
            prop_assert!(shown.ends_with('\n'));
            if format != Format::Json {
                let bad = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202e}' | '\u{2066}' | '\u{200b}');
                prop_assert!(!shown.contains(bad), "{shown:?}");
            }
            prop_assert!(!shown.contains(char::from(27)));
            if format == Format::Text {
                let columns = |c: char| match c { '日' => 2, '\u{301}' => 0, _ => 1 };
                let wide = shown.lines().find(|line| line.chars().map(columns).sum::<usize>() > width.max(40));
                prop_assert_eq!(wide, None, "at {}", width);
            }
        }
        let _ = redact(&mut document);
    }

    #[test]
    fn no_bytes_make_reading_fail(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(&bytes);
    }
}
