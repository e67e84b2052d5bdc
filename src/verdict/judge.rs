//! From the answers of both directions to the one verdict, and the findings beside it.

use super::limits;
use super::link_answer;
use super::mtu_answer;
use super::rank::{self, Answer, State};
use super::rules::{Explains, Hit, check_all, clamped, full_size};
use super::seen::Seen;
use super::sentence;
use super::{rates_asked, rates_compared};
use crate::model::finding::{Code, Component, Confidence, Finding, Gain, NextLimit, Severity, Status, Verdict};
use crate::model::mtu::SegmentStream;
use crate::model::{Direction, Document, Role};
use crate::units::BitRate;

/// What judging a document gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// What was found, most important first.
    pub findings: Vec<Finding>,
    /// The one answer.
    pub verdict: Verdict,
}

/// Judges a document: pure, the same facts give the same answer.
///
/// Findings and verdict that the document already holds are not looked at.
pub fn judge(document: &Document) -> Judgement {
    let seen = Seen::new(document);
    let links = document.plan.scope.is_link();
    let hits = if links { link_answer::hits(document) } else { check_all(&seen) };
    let answers = Direction::BOTH.map(|direction| Answer::new(&seen, direction, &hits));
    let (verdict, chosen) = decide(&seen, &hits, &answers);
    let mut verdict = rates_compared::with_comparison(&seen, verdict);
    verdict.confidence = verdict.confidence.min(rank::at_most(&seen, &hits, chosen.and_then(|at| hits.get(at))));
    let findings = findings(&hits, &answers, &verdict, chosen, links);
    Judgement { findings, verdict }
}

pub(super) fn code(text: &str) -> Code {
    // Every code in the rules parses (a test holds them to it); the fallback is never shown.
    text.parse().unwrap_or_else(|_| Code::new(Component::Inconclusive, "unknown"))
}

fn decide(seen: &Seen<'_>, hits: &[Hit], answers: &[Answer; 2]) -> (Verdict, Option<usize>) {
    if seen.doc.plan.scope.is_link() {
        if let Some(found) = rank::impossible(seen) {
            return (sentence::impossible(seen, found), None);
        }
        return match link_answer::chosen(hits) {
            Some(at) => (fault(seen, &hits[at], answers), Some(at)),
            None => (link_answer::answer(seen), None),
        };
    }
    if let Some(at) = hits.iter().position(|hit| hit.explains == Explains::Stops) {
        return (fault(seen, &hits[at], answers), Some(at));
    }
    if seen.doc.plan.scope.is_mtu() {
        return match fault_of(hits) {
            Some(at) => (fault(seen, &hits[at], answers), Some(at)),
            None => (mtu_answer::answer(seen, hits, answers), None),
        };
    }
    if let Some(found) = rank::impossible(seen) {
        return (sentence::impossible(seen, found), None);
    }
    if let Some(verdict) = rates_asked::own_limit(seen, hits) {
        return (verdict, None);
    }
    let cause = leading(answers, hits);
    let costs = |(answer, _): &(&Answer, usize)| answer.after.is_none() || 1.0 / answer.factor() < limits::COSTS_CLEARLY;
    // A fault without a rate of its own stands back only where something costs clearly more.
    if let Some(at) = fault_of(hits).filter(|_| !cause.as_ref().is_some_and(costs)) {
        return (fault(seen, &hits[at], answers), Some(at));
    }
    if let Some((answer, at)) = cause {
        return (bottleneck(seen, hits, answers, (answer, at)), Some(at));
    }
    (sentence::without_cause(seen, answers), None)
}

fn fault_of(hits: &[Hit]) -> Option<usize> {
    let faults = (0..hits.len()).filter(|at| hits[*at].explains == Explains::Fault);
    faults.max_by(|a, b| hits[*a].weight.total_cmp(&hits[*b].weight).then_with(|| hits[*b].code.cmp(hits[*a].code)))
}

/// The direction with a cause that suffers most.
fn leading<'a>(answers: &'a [Answer; 2], hits: &[Hit]) -> Option<(&'a Answer, usize)> {
    let causes = answers.iter().filter_map(|answer| match answer.state {
        State::Cause(at) => Some((answer, at)),
        _ => None,
    });
    causes.max_by(|(a, x), (b, y)| {
        let by_rate = b.rate.cmp(&a.rate);
        a.factor()
            .total_cmp(&b.factor())
            .then(by_rate)
            .then(hits[*x].weight.total_cmp(&hits[*y].weight))
            .then(b.direction.cmp(&a.direction))
    })
}

/// Whether both directions have the same cause and come to about the same rate.
fn alike(answers: &[Answer; 2], hits: &[Hit]) -> bool {
    let [up, down] = answers;
    let (State::Cause(a), State::Cause(b)) = (up.state, down.state) else { return false };
    let rates = [up.rate, down.rate].map(|rate| rate.unwrap_or_default().as_f64());
    let close = rates[0].min(rates[1]) >= limits::ALIKE * rates[0].max(rates[1]);
    hits[a].code == hits[b].code && hits[a].place == hits[b].place && close
}

fn bottleneck(seen: &Seen<'_>, hits: &[Hit], answers: &[Answer; 2], (answer, at): (&Answer, usize)) -> Verdict {
    let hit = &hits[at];
    let code = code(hit.code);
    let part = answer.ladder.binding().map(|ceiling| ceiling.part);
    let confidence = part.map_or(Confidence::Low, |part| rank::confidence(seen, answer, hit, part));
    let direction = if alike(answers, hits) { None } else { Some(answer.direction) };
    let next = answer.after.as_ref().zip(answer.gain()).map(|((rate, what), gain)| NextLimit {
        what: what.clone(),
        rate_bps: *rate,
        gain_percent: gain.percent(),
    });
    Verdict {
        status: Status::Bottleneck,
        component: code.component,
        cause: code.cause.clone(),
        r#where: Some(hit.place),
        direction,
        lane: part.and_then(rank::lane),
        rate_bps: answer.rate,
        confidence,
        sentence: sentence::bottleneck(seen, hits, answer, hit, direction),
        next,
        ruled_out: sentence::ruled_out(seen, hits, answers, hit.code),
        code,
    }
}

/// What a stream of large packets, and one of packets that fit, moved where a hole was found.
fn streams(seen: &Seen<'_>, hit: &Hit) -> (Option<BitRate>, Option<SegmentStream>) {
    let mtu = seen.doc.measurements.mtu.measured().filter(|_| hit.code == "network.mtu-black-hole");
    let stalled = mtu.and_then(|mtu| full_size(seen, mtu)).filter(|stream| hit.touches(stream.direction));
    let fits = mtu.zip(stalled).and_then(|(mtu, stream)| clamped(mtu, stream.direction));
    (stalled.map(|stream| stream.goodput_bps), fits.cloned())
}

/// A fault that is the answer whatever the rates say.
fn fault(seen: &Seen<'_>, hit: &Hit, answers: &[Answer; 2]) -> Verdict {
    let code = code(hit.code);
    let (stalled, fits) = streams(seen, hit);
    let touched = answers.iter().filter(|answer| hit.touches(answer.direction));
    let slowest = touched.filter_map(|answer| answer.rate.map(|rate| (rate, answer))).min_by_key(|(rate, _)| *rate);
    let rate = stalled.or(slowest.map(|(rate, _)| rate));
    // Nothing arrives: no percentage says what the end of that gives.
    let gain = |from: BitRate, to: BitRate| if from.0 == 0 { 0.0 } else { (to.as_f64() / from.as_f64() - 1.0).max(0.0) * 100.0 };
    let next = stalled.and_then(|from| match (slowest, &fits) {
        (Some((to, answer)), _) => {
            let part = answer.ladder.binding()?.part;
            let what = rank::name(seen, answer.direction, part);
            Some(NextLimit { what, rate_bps: to, gain_percent: gain(from, to) })
        }
        (None, Some(fits)) => {
            let what = "the same stream with packets that fit".to_owned();
            Some(NextLimit { what, rate_bps: fits.goodput_bps, gain_percent: gain(from, fits.goodput_bps) })
        }
        (None, None) => None,
    });
    let hole = hit.code == "network.mtu-black-hole";
    let confidence = match hit.kinds {
        _ if hit.weight < 0.6 => Confidence::Low,
        0 | 1 => Confidence::Medium,
        _ => Confidence::High,
    };
    Verdict {
        status: Status::Bottleneck,
        component: code.component,
        cause: code.cause.clone(),
        r#where: Some(hit.place),
        direction: hit.direction,
        lane: None,
        rate_bps: rate,
        confidence,
        sentence: sentence::fault(seen, hit, slowest.map(|(rate, _)| rate).filter(|_| hole && fits.is_none())),
        next,
        ruled_out: sentence::ruled_out(seen, &[], answers, hit.code),
        code,
    }
}

fn findings(hits: &[Hit], answers: &[Answer; 2], verdict: &Verdict, chosen: Option<usize>, links: bool) -> Vec<Finding> {
    let mut found: Vec<(bool, Finding)> = Vec::new();
    for (at, hit) in hits.iter().enumerate() {
        let binding = answers.iter().find(|answer| answer.state == State::Cause(at));
        // Where only the links were asked for, no ladder says what a fault costs: it is one all the same.
        let severity = match hit.explains {
            Explains::Part(_) | Explains::Network if links => Some(Severity::Warning),
            _ => severity(hit, binding, answers, verdict),
        };
        let Some(severity) = severity else { continue };
        let first = chosen == Some(at);
        let finding = Finding {
            code: code(hit.code),
            severity: if first { severity.max(Severity::Warning) } else { severity },
            r#where: hit.place,
            direction: hit.direction,
            lane: hit.lane,
            evidence: hit.evidence.clone(),
            advice: hit.advice.clone(),
            gain: binding.filter(|_| severity > Severity::Info).and_then(Answer::gain),
        };
        found.push((first, finding));
    }
    let key =
        |(first, f): &(bool, Finding)| (!first, std::cmp::Reverse(f.severity), f.code.clone(), f.r#where, f.direction, f.lane);
    found.sort_by_key(key);
    let mut findings: Vec<Finding> = Vec::new();
    for (_, finding) in found {
        let same =
            |other: &&mut Finding| other.code == finding.code && other.r#where == finding.r#where && other.lane == finding.lane;
        match findings.iter_mut().find(same) {
            Some(other) => merge(other, finding),
            None => findings.push(finding),
        }
    }
    findings
}

/// One finding of two about the same thing: it is one fault, whichever way the data goes.
fn merge(into: &mut Finding, other: Finding) {
    if into.direction != other.direction {
        into.direction = None;
    }
    into.severity = into.severity.max(other.severity);
    let fresh: Vec<String> = other.evidence.into_iter().filter(|text| !into.evidence.contains(text)).collect();
    into.evidence.extend(fresh);
    let fresh: Vec<String> = other.advice.into_iter().filter(|text| !into.advice.contains(text)).collect();
    into.advice.extend(fresh);
    let percent = |gain: &Option<Gain>| gain.map_or(-1.0, |gain| gain.percent());
    if percent(&other.gain) > percent(&into.gain) {
        into.gain = other.gain;
    }
}

/// How much a hit matters now; none for an explanation of something that needs none.
fn severity(hit: &Hit, binding: Option<&Answer>, answers: &[Answer; 2], verdict: &Verdict) -> Option<Severity> {
    let bottleneck = verdict.status == Status::Bottleneck;
    match hit.explains {
        Explains::Stops => Some(Severity::Critical),
        Explains::Fault => Some(Severity::Warning),
        Explains::Info => Some(Severity::Info),
        Explains::Part(_) | Explains::Network => {
            if let Some(answer) = binding.filter(|_| bottleneck) {
                return Some(if answer.factor() >= 2.0 { Severity::Critical } else { Severity::Warning });
            }
            // What a disk gives is a fact of the ladder, and a finding only where it binds or nearly does.
            let plain =
                ["disk.nas-write", "disk.nas-read", "disk.pc-write", "disk.pc-read", "disk.cache-exhausted", "disk.sync-writes"]
                    .contains(&hit.code);
            let tied = answers.iter().any(|answer| answer.tie.is_some_and(|part| rank::explains(hit, answer.direction, part)));
            (!plain || tied).then_some(Severity::Info)
        }
    }
}

/// Both ends, the PC first.
pub(super) const ROLES: [Role; 2] = [Role::Pc, Role::Nas];
