//! The first screen: the verdict, the ladder and the findings; and what there is to say about each.

use super::ladder::{self, Rung, Unit, ladder};
use super::path_mtu;
use super::view::{Bar, Block, Item, Tone, View, percent};
use super::{link_screen, rates, rates_more};
use crate::model::copy::{LaneKind, Rung as Copy};
use crate::model::finding::{Confidence, Finding, Gain, Severity, Status, Verdict};
use crate::model::plan::{Depth, Scope, Workload};
use crate::model::{Direction, Document, Outcome};

/// The findings that the first screen has room for.
const FIRST_FINDINGS: usize = 3;

/// The lines that a sentence of a finding takes at most on a report of one screen.
const FIRST_LINES: usize = 3;

/// The lines of advice about the path MTU that the first screen has room for: what is to blame, and both ways to one size.
const FIRST_ADVICE: usize = 3;
/// And the last block, which says what commands need, too.
const LAST_ADVICE: usize = 4;

/// A verdict's sentences at the end of a report about the path MTU go on while they have less columns than these.
const LAST_WORDS: usize = 160;

/// Said wherever a network was not tested.
pub(super) const NO_NETWORK: &str = "This was a local run: both ends are one machine and the data went over loopback, which is no network. \
     The figures are not evidence about a cable, a port or a switch.";

/// What the percentages beside a ladder are.
const LEGEND: &str = "−x %: lost against the slowest rung above";

/// The lanes of a plan that are looked at; there are no more kinds than five.
const MAX_LANES: usize = 8;

/// What an owner needs, on one screen.
pub(super) fn first_screen(document: &Document, view: &mut View) {
    match &document.verdict {
        Some(verdict) => view.blocks.push(lead(document, verdict)),
        None => view.note(Tone::Plain, "No verdict yet: `weaklink judge FILE` judges a saved report."),
    }
    if document.plan.local {
        view.note(Tone::Warning, NO_NETWORK);
    }
    if document.plan.scope.is_mtu() {
        path_mtu::summary(document, view);
    } else if document.plan.scope.is_throughput() {
        rates::summary(document, view);
    } else if document.plan.scope.is_link() {
        link_screen::summary(document, view);
    } else {
        ladders(document, view);
        asked_for(document, view);
    }
    if document.plan.scope.is_throughput() || document.plan.scope.is_link() {
        // All of them follow, each once: in a section of their own, or as the end of a report of one screen.
        return;
    }
    let mut items: Vec<_> =
        document.findings.iter().take(FIRST_FINDINGS).map(|finding| one_liner(finding, document.plan.scope)).collect();
    if let (Some(item), true) = (items.first_mut(), document.plan.scope.is_mtu()) {
        // Which of the ways is the better one nobody but the reader knows.
        let advice = mending(document, FIRST_ADVICE).into_iter().skip(1);
        item.lines.extend(advice.map(|text| (String::new(), text)));
    }
    view.items(items);
    let more = document.findings.len().saturating_sub(FIRST_FINDINGS);
    if more > 0 {
        view.note(Tone::Plain, format!("{more} more below."));
    }
}

/// Each finding with what shows it and what to do, for a report of one screen.
pub(super) fn every_finding(document: &Document, view: &mut View) {
    let item = |finding: &Finding| {
        let advice = finding.advice.first().filter(|_| finding.severity > Severity::Info);
        // The answer has told what shows the fault that it names.
        let named = advice.is_some() && document.verdict.as_ref().is_some_and(|verdict| verdict.code == finding.code);
        // Why a link is no faster than it is stands after what it is, and is no fault.
        let told = if document.plan.scope.is_link() && advice.is_none() { 2 } else { usize::from(!named) };
        let lines = finding.evidence.iter().take(told).chain(advice);
        Item {
            lines: lines.map(|text| (String::new(), text.clone())).collect(),
            most: FIRST_LINES,
            ..one_liner(finding, document.plan.scope)
        }
    };
    view.items(document.findings.iter().map(item).collect());
}

/// Both directions' bars, and which rungs have none.
fn ladders(document: &Document, view: &mut View) {
    let mut unknown: Vec<String> = Vec::new();
    let (mut shown, mut explained) = (false, false);
    for direction in Direction::BOTH {
        let (known, absent): (Vec<_>, Vec<_>) = ladder(document, direction).into_iter().partition(|rung| rung.rate.is_some());
        if !known.is_empty() {
            shown = true;
            let title = format!("{} ({})", direction.arrow(), direction.word());
            let bars = bars(&known);
            let explain = !explained && bars.iter().any(|bar| !bar.drop.is_empty());
            explained |= explain;
            let legend = if explain { LEGEND.to_owned() } else { String::new() };
            view.blocks.push(Block::Bars { title, legend, bars });
        }
        for rung in absent {
            if !unknown.contains(&rung.label) {
                unknown.push(rung.label);
            }
        }
    }
    if !shown {
        view.note(Tone::Plain, "No rate could be measured; the reasons are under “Not measured” below.");
    } else if !unknown.is_empty() {
        view.note(Tone::Plain, format!("Not measured, so not on the ladder: {}.", unknown.join(", ")));
    }
}

/// The lanes that the user named and that gave nothing, or nothing in one direction.
fn asked_for(document: &Document, view: &mut View) {
    // The raw lane is part of every run: nobody asked for it.
    for &kind in document.plan.lanes.iter().take(MAX_LANES).filter(|kind| **kind != LaneKind::Raw) {
        let missing: Vec<_> = Direction::BOTH
            .iter()
            .filter_map(|&direction| why_not(document, kind, direction).map(|why| (direction, why)))
            .collect();
        let told = match *missing.as_slice() {
            [(_, up), (_, down)] if up == down => vec![(String::new(), up)],
            _ => missing.iter().map(|(direction, why)| (format!(" {}", direction.arrow()), *why)).collect(),
        };
        for (way, why) in told {
            view.note(Tone::Warning, format!("Asked for but not measured: {}{way}: {}", kind.word(), why.trim()));
        }
    }
}

/// Why a lane has no rate in a direction: what failed tells more than what was skipped after it.
fn why_not(document: &Document, kind: LaneKind, direction: Direction) -> Option<&str> {
    let section = match &document.measurements.copy {
        Outcome::Measured(section) => section,
        Outcome::Skipped(why) | Outcome::Failed(why) => return Some(&why.reason),
    };
    let lanes = || section.lanes.iter().filter(|lane| lane.kind == kind);
    let rungs = || lanes().flat_map(|lane| &lane.rungs).filter(|rung: &&Copy| rung.direction == direction);
    if rungs().any(|rung| rung.result.measured().is_some()) {
        return None;
    }
    let failed = rungs().find_map(|rung| if let Outcome::Failed(why) = &rung.result { Some(why) } else { None });
    let skipped = || rungs().find_map(|rung| if let Outcome::Skipped(why) = &rung.result { Some(why) } else { None });
    let closed = || {
        lanes().find_map(|lane| match &lane.protocol {
            Outcome::Measured(_) => None,
            Outcome::Skipped(why) | Outcome::Failed(why) => Some(why),
        })
    };
    let why = failed.or_else(skipped).or_else(closed).map(|why| why.reason.as_str());
    Some(why.unwrap_or("the run did not come to it"))
}

/// The verdict once more, where a terminal stops scrolling.
pub(super) fn last_words(document: &Document, view: &mut View) {
    if let Some(verdict) = &document.verdict {
        let (tone, mut sentence) = sentence(document, verdict);
        if document.plan.scope.is_mtu() {
            sentence = beginning(&sentence, LAST_WORDS);
        }
        view.blocks.push(Block::Close { tone, sentence, advice: mending(document, LAST_ADVICE), code: verdict.code.to_string() });
    }
}

/// What to do about the fault that the verdict names, as far as a screen has room.
fn mending(document: &Document, most: usize) -> Vec<String> {
    let Some(verdict) = document.verdict.as_ref().filter(|verdict| verdict.status == Status::Bottleneck) else {
        return Vec::new();
    };
    let first = document.findings.first().filter(|finding| finding.code == verdict.code && finding.severity > Severity::Info);
    let most = if document.plan.scope.is_mtu() { most } else { 1 };
    first.into_iter().flat_map(|finding| finding.advice.iter().take(most).cloned()).collect()
}

/// The first sentences of a text: one at least, and no further one once there are `enough` columns.
fn beginning(text: &str, enough: usize) -> String {
    let ends = text.match_indices(". ").filter(|(at, _)| text[at + 2..].starts_with(char::is_uppercase));
    let mut last = None;
    for (at, _) in ends {
        if last.is_some() && at >= enough {
            break;
        }
        last = Some(at + 1);
    }
    if text.len() <= enough { text.to_owned() } else { last.and_then(|at| text.get(..at)).unwrap_or(text).to_owned() }
}

/// The verdict's sentence, which begins with its status.
fn sentence(document: &Document, verdict: &Verdict) -> (Tone, String) {
    let (word, tone) = match verdict.status {
        // Where nothing was asked for but the path MTU there is no rate that could be a bottleneck.
        Status::Bottleneck if document.plan.scope.is_mtu() || document.plan.scope.is_link() => ("Fault", Tone::Bad),
        Status::Bottleneck => ("Bottleneck", Tone::Bad),
        Status::Healthy => ("Healthy", Tone::Good),
        Status::Inconclusive => ("Inconclusive", Tone::Warning),
    };
    let said = verdict.sentence.trim();
    let begins = said.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    (tone, if begins { said.to_owned() } else { format!("{word}: {said}") })
}

fn lead(document: &Document, verdict: &Verdict) -> Block {
    let (tone, sentence) = sentence(document, verdict);
    let mut facts = vec![verdict.code.to_string()];
    // Of one host's ports nothing is at a PC or a NAS, and a port has no direction.
    facts.extend(verdict.r#where.filter(|_| document.plan.scope != Scope::LinkOfHost).map(|place| place.title().to_owned()));
    if verdict.direction.is_some() || (verdict.status == Status::Bottleneck && !document.plan.scope.is_link()) {
        facts.push(directions(verdict.direction));
    }
    facts.extend(verdict.lane.map(|lane| format!("lane {}", lane.word())));
    facts.extend(verdict.rate_bps.map(|rate| match rate.0 {
        0 => standstill(document),
        _ => format!("{rate} = {}", rate.bytes()),
    }));
    facts.push(format!("confidence {}", confidence(verdict.confidence)));
    let mut lines = vec![facts.join(" · ")];
    if let Some(next) = &verdict.next {
        let gain = if next.gain_percent.is_finite() && next.gain_percent > 0.0 {
            format!("; mending this gains at most {:.0} %", next.gain_percent)
        } else {
            String::new()
        };
        lines.push(format!("Next limit: {}, {}{gain}.", next.what, next.rate_bps.bytes()));
    }
    Block::Lead { tone, sentence, lines }
}

/// Nothing arrived, for as long as it was tried.
fn standstill(document: &Document) -> String {
    let stream = document.measurements.mtu.measured().and_then(|mtu| mtu.unclamped.measured());
    stream
        .filter(|stream| stream.goodput_bps.0 == 0)
        .map_or_else(|| "no data passes".to_owned(), |stream| format!("no data in the first {}", stream.elapsed_us))
}

const fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Low => "low",
        Confidence::Medium => "medium",
        Confidence::High => "high",
    }
}

fn bars(rungs: &[Rung]) -> Vec<Bar> {
    let scale = ladder::scale(rungs).as_f64();
    rungs
        .iter()
        .map(|rung| {
            let rate = rung.rate.unwrap_or_default();
            let share = if scale > 0.0 { rate.as_f64() / scale } else { 0.0 };
            Bar {
                label: rung.label.clone(),
                share: share.clamp(0.0, 1.0),
                beyond: share > 1.005,
                bits: if rung.unit == Unit::Bits { format!("{rate} =") } else { String::new() },
                bytes: rate.bytes().to_string(),
                drop: rung.lost.map(|lost| format!("−{}", percent(lost))).unwrap_or_default(),
                tone: match (rung.lost, rung.worst) {
                    (None, _) => Tone::Good,
                    (Some(_), false) => Tone::Warning,
                    (Some(_), true) => Tone::Bad,
                },
            }
        })
        .collect()
}

fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::Info => Tone::Plain,
        Severity::Warning => Tone::Warning,
        Severity::Critical => Tone::Bad,
    }
}

const fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Critical => "critical",
    }
}

/// The direction that is touched; none stands for both.
fn directions(direction: Option<Direction>) -> String {
    direction.map_or("both directions", Direction::arrow).to_owned()
}

/// The code and whom it touches.
fn head(finding: &Finding, scope: Scope) -> String {
    let mut parts = vec![finding.code.to_string()];
    // Of one host's ports nothing is at a PC or a NAS, and a port has no direction.
    parts.extend((scope != Scope::LinkOfHost).then(|| finding.r#where.title().to_owned()));
    parts.extend((!scope.is_link() || finding.direction.is_some()).then(|| directions(finding.direction)));
    parts.extend(finding.lane.map(|lane| format!("lane {}", lane.word())));
    parts.join(" · ")
}

fn gain_words(gain: &Gain) -> Option<String> {
    let percent = gain.percent();
    let by = if percent >= 1000.0 {
        format!("{:.0} times the speed", gain.to_bps.as_f64() / gain.from_bps.as_f64())
    } else {
        format!("{percent:.0} % more")
    };
    if gain.from_bps.0 == 0 && gain.to_bps.0 > 0 {
        return Some(format!("from nothing to {} = {}", gain.to_bps, gain.to_bps.bytes()));
    }
    (percent >= 0.5).then(|| format!("up to {by}: from {} to {}", gain.from_bps.bytes(), gain.to_bps.bytes()))
}

/// What is to be done about a fault, or what was seen.
fn one_liner(finding: &Finding, scope: Scope) -> Item {
    let (said, most) = match finding.severity {
        Severity::Info => (finding.evidence.first(), 1),
        Severity::Warning | Severity::Critical => (finding.advice.first().or(finding.evidence.first()), usize::MAX),
    };
    Item {
        tone: tone(finding.severity),
        mark: word(finding.severity).to_owned(),
        head: head(finding, scope),
        lines: said.map(|text| (String::new(), text.clone())).into_iter().collect(),
        most,
    }
}

/// Every finding with its evidence, and what the verdict ruled out.
pub(super) fn details(document: &Document, view: &mut View) {
    if !document.findings.is_empty() {
        view.section("Findings");
        let item = |finding: &Finding| {
            let mut lines: Vec<_> = finding.evidence.iter().map(|text| ("evidence".to_owned(), text.clone())).collect();
            lines.extend(finding.advice.iter().map(|text| ("advice".to_owned(), text.clone())));
            lines.extend(finding.gain.as_ref().and_then(gain_words).map(|text| ("gain".to_owned(), text)));
            Item { lines, most: usize::MAX, ..one_liner(finding, document.plan.scope) }
        };
        view.items(document.findings.iter().map(item).collect());
        view.note(Tone::Plain, "`weaklink explain CODE` says what a code means, how it is detected and how to mend it.");
    }
    let ruled_out = document.verdict.iter().flat_map(|verdict| &verdict.ruled_out);
    let facts: Vec<_> = ruled_out.map(|other| (other.code.to_string(), other.reason.clone())).collect();
    if !facts.is_empty() {
        view.section("Ruled out");
        view.facts(facts);
    }
}

/// How the run was made.
pub(super) fn run(document: &Document, view: &mut View) {
    let plan = &document.plan;
    let depth = match plan.depth {
        Depth::Quick => "quick",
        Depth::Normal => "normal",
        Depth::Thorough => "thorough",
    };
    let workload = match plan.workload {
        Workload::Large => "large files",
        Workload::Small => "many small files",
    };
    let stated = [("PC", plan.stated_pc_bps), ("NAS", plan.stated_nas_bps)];
    let stated: Vec<_> = stated.iter().filter_map(|(who, rate)| rate.map(|rate| format!("{who} {rate}"))).collect();
    let lanes: Vec<_> = plan.lanes.iter().map(|lane| lane.word()).collect();
    let version = document.schema.version;
    view.section("Run");
    let question = match plan.scope {
        Scope::Run => String::new(),
        Scope::Mtu => "the path MTU, with an agent on the NAS".to_owned(),
        Scope::MtuWithoutAgent => "the path MTU, as far as the PC alone can know it".to_owned(),
        Scope::Throughput => "throughput, with an agent on the NAS".to_owned(),
        Scope::ThroughputIperf3 => "throughput, against an iperf3 server on the NAS".to_owned(),
        Scope::Link => "the links, with an agent on the NAS".to_owned(),
        Scope::LinkWithoutAgent => "the links, as far as the PC alone knows them".to_owned(),
        Scope::LinkOfHost => "all ports of this host".to_owned(),
    };
    // Streams, files and lanes are no part of that question.
    let whole = |text: String| if plan.scope == Scope::Run { text } else { String::new() };
    view.facts(
        [
            ("program", format!("{} {}", document.tool.name, document.tool.version)),
            ("started", document.started.clone()),
            ("question", question),
            ("asked for", plan.throughput.as_ref().filter(|_| !plan.scope.is_mtu()).map(rates_more::asked).unwrap_or_default()),
            ("depth", if plan.scope.is_link() { String::new() } else { format!("{depth}, at most {}", plan.budget_us) }),
            ("streams", whole(plan.streams.to_string())),
            ("files", whole(workload.to_owned())),
            ("lanes", whole(lanes.join(", "))),
            ("writes at most", whole(format!("{} per disk step", plan.max_data_bytes))),
            ("link speeds", if stated.is_empty() { String::new() } else { format!("{} as you stated", stated.join(", ")) }),
            ("report", format!("{} {}.{}", document.schema.name, version.major, version.minor)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BitRate;

    #[test]
    fn the_last_words_are_whole_sentences() {
        let text = "Fault: large packets vanish. Both ways 1.5 GB pass. A third one.";
        assert_eq!(beginning(text, 10), "Fault: large packets vanish.");
        assert_eq!(beginning(text, 55), "Fault: large packets vanish. Both ways 1.5 GB pass.");
        assert_eq!(beginning(text, 500), text);
        assert_eq!(beginning("Healthy", 3), "Healthy");
    }

    #[test]
    fn a_gain_is_told_in_per_cent_or_times() {
        let gain = |from, to| gain_words(&Gain { from_bps: BitRate(from), to_bps: BitRate(to) });
        assert_eq!(gain(1_696_000_000, 2_353_000_000).as_deref(), Some("up to 39 % more: from 212 MB/s to 294 MB/s"));
        assert_eq!(gain(80_000_000, 2_400_000_000).as_deref(), Some("up to 30 times the speed: from 10 MB/s to 300 MB/s"));
        assert_eq!(gain(0, 800_000_000).as_deref(), Some("from nothing to 800 Mbit/s = 100 MB/s"));
        assert_eq!(gain(100, 100), None);
        assert_eq!(gain(0, 0), None);
    }
}
