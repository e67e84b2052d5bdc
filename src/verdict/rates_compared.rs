//! Congestion controls side by side: which of those that were asked for carries more, and by how much.

use super::limits;
use super::rank;
use super::rates_answer::{unknown, verdict};
use super::rates_asked;
use super::rules::{AS_ASKED, TOO_LITTLE, TOOL_LIMIT, UNEXPLAINED};
use super::seen::Seen;
use super::words::percent;
use crate::model::finding::{Component, Confidence, Status, Verdict};
use crate::model::throughput::{CongestionTrial, Pass};
use crate::model::{Direction, Outcome, Role};

/// Puts the comparison into the answer, where one was asked for: it is the question then.
pub(super) fn with_comparison(seen: &Seen<'_>, verdict: Verdict) -> Verdict {
    let mut verdict = rates_asked::with_wishes(seen, verdict);
    let asked = seen.doc.plan.throughput.as_ref().map(|plan| plan.congestion.as_slice()).unwrap_or_default();
    let section = seen.doc.measurements.throughput.measured().filter(|_| asked.len() > 1);
    let Some(trials) = section.and_then(|section| section.congestion.measured()).filter(|trials| !trials.is_empty()) else {
        return verdict;
    };
    let told: Vec<String> = Direction::BOTH.into_iter().filter_map(|way| compared(trials, way)).collect();
    let missing = missing(seen, trials);
    let (told, missing) = (told.join(" "), missing.join(" "));
    let answer = [told.as_str(), missing.as_str()].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ");
    // Nothing was compared, and that was the question, whatever else was found.
    if told.is_empty() {
        return nothing((asked, trials), &missing, &verdict);
    }
    if verdict.status == Status::Bottleneck {
        verdict.sentence = format!("{} {answer}", verdict.sentence);
        return verdict;
    }
    match verdict.status {
        Status::Inconclusive if rank::impossible(seen).is_none() && is_open(&verdict) => answered(seen, &verdict, &answer),
        Status::Inconclusive => {
            verdict.sentence = format!("{} {answer}", verdict.sentence);
            verdict
        }
        _ => {
            let rest = verdict.sentence.split_once(": ").map_or("", |(_, rest)| rest);
            verdict.sentence = format!("Healthy: {answer} {}", capital(rest));
            verdict
        }
    }
}

/// Whether a verdict only says that the line's part of the question is open.
fn is_open(verdict: &Verdict) -> bool {
    [UNEXPLAINED, TOO_LITTLE, TOOL_LIMIT].contains(&verdict.cause.as_str())
}

/// The comparison is the answer; whether the line could carry more was not asked.
fn answered(seen: &Seen<'_>, open: &Verdict, answer: &str) -> Verdict {
    let rest = match (open.cause.as_str(), seen.line) {
        (TOOL_LIMIT, _) => open.sentence.split_once(": ").map_or_else(String::new, |(_, rest)| capital(rest)),
        (_, Some(line)) => format!("All of them stay below what {line} can carry, and nothing that was seen says why."),
        (_, None) => "How much the line could carry is not known: --link-speed pc=… and nas=… state it.".to_owned(),
    };
    let mut found = verdict(Status::Healthy, Component::None, AS_ASKED, Confidence::Medium, format!("{answer} {rest}"));
    (found.rate_bps, found.ruled_out) = (open.rate_bps, open.ruled_out.clone());
    found
}

pub(super) fn capital(text: &str) -> String {
    let mut signs = text.chars();
    signs.next().map_or_else(String::new, |first| first.to_uppercase().chain(signs).collect())
}

/// The passes of a direction in which ran what was asked for.
fn ran(trials: &[CongestionTrial], direction: Direction) -> Vec<(&str, &Pass)> {
    let of_way = trials.iter().filter(|trial| trial.direction == direction);
    let own = |trial: &'_ &CongestionTrial| {
        trial
            .pass
            .measured()
            .is_some_and(|pass| pass.method.congestion.as_ref() == Some(&trial.congestion) && pass.goodput_bps.0 > 0)
    };
    let mut found: Vec<(&str, &Pass)> =
        of_way.filter(own).filter_map(|trial| Some((trial.congestion.as_str(), trial.pass.measured()?))).collect();
    found.sort_by(|a, b| b.1.goodput_bps.cmp(&a.1.goodput_bps).then(a.0.cmp(b.0)));
    found
}

/// One direction's sentence; none with fewer than two that ran.
fn compared(trials: &[CongestionTrial], direction: Direction) -> Option<String> {
    let found = ran(trials, direction);
    let ((first, best), others) = found.split_first()?;
    let others: Vec<_> = others.iter().filter(|(name, _)| name != first).collect();
    let (_, least) = others.last()?;
    let more = |pass: &Pass| best.goodput_bps.as_f64() / pass.goodput_bps.as_f64() - 1.0;
    let way = direction.arrow();
    if more(least) < limits::ALIKE_PASSES {
        let all: Vec<String> = found.iter().map(|(name, pass)| format!("{name} {}", pass.goodput_bps)).collect();
        return Some(format!(
            "{way}: {} carry alike ({} apart: two passes of one control differ as much).",
            all.join(" and "),
            percent(more(least))
        ));
    }
    let all: Vec<String> =
        others.iter().map(|(name, pass)| format!("{} more than {name} ({})", percent(more(pass)), pass.goodput_bps)).collect();
    let unsure = others.iter().any(|(_, pass)| more(pass) < width(best) + width(pass));
    let unsure = if unsure { " That is no more than the passes themselves vary: a longer time (--time) decides." } else { "" };
    Some(format!("{way}: {first} carries most, {}: {}.{unsure}", best.goodput_bps, all.join(", ")))
}

/// Half the confidence interval of a pass, as a share of its rate; nothing where it is not known.
fn width(pass: &Pass) -> f64 {
    pass.half_width.filter(|width| width.is_finite()).unwrap_or(0.0)
}

/// What was asked for and did not run, one sentence for each end that lacks something.
fn missing(seen: &Seen<'_>, trials: &[CongestionTrial]) -> Vec<String> {
    let of_end = |role: Role| {
        let way = Direction::BOTH.into_iter().find(|way| way.sender() == role)?;
        let all = ran(trials, way);
        // A pass that failed for another reason says nothing about its control.
        let lacks = |trial: &&CongestionTrial| {
            let ran = all.iter().any(|(name, _)| *name == trial.congestion);
            trial.direction == way && !ran && !matches!(trial.pass, Outcome::Failed(_))
        };
        let lacking = trials.iter().filter(lacks);
        let names: Vec<&str> = lacking.map(|trial| trial.congestion.as_str()).collect();
        if names.is_empty() {
            return None;
        }
        let there = has(seen, role, all.iter().map(|(name, _)| *name));
        Some(format!("The {} could not use {}{there}.", role.title(), names.join(" and ")))
    };
    [Role::Pc, Role::Nas].into_iter().filter_map(of_end).collect()
}

/// What an end has in place of what it could not use: what its kernel lets this user choose, and what `ran` there.
pub(super) fn has<'a>(seen: &Seen<'_>, role: Role, ran: impl Iterator<Item = &'a str>) -> String {
    let host = seen.doc.hosts.of(role).measured().and_then(|host| host.tcp.measured());
    let mut there = host.map(|tcp| tcp.congestion_available.clone()).unwrap_or_default();
    // What ran is there, whatever the lists say.
    for name in ran {
        if !there.iter().any(|known| known == name) {
            there.push(name.to_owned());
        }
    }
    if there.is_empty() { String::new() } else { format!("; it has {}", there.join(", ")) }
}

/// Nothing could be compared: what was asked for, who lacks it, what there is, and what was found beside.
fn nothing((asked, trials): (&[String], &[CongestionTrial]), missing: &str, found: &Verdict) -> Verdict {
    let failed = trials.iter().all(|trial| trial.pass.measured().is_none());
    // Who lacks what is told by name already.
    let why = trials
        .iter()
        .filter(|_| failed && missing.is_empty())
        .find_map(|trial| trial.pass.why())
        .map(|why| why.trim().trim_end_matches('.'));
    let why = why.map_or_else(String::new, |why| format!(" ({why})"));
    let beside = found.sentence.strip_prefix("Bottleneck: ").map(|rest| format!(" Found beside that: {rest}"));
    let mut open = unknown(
        TOO_LITTLE,
        format!(
            "{} were to be compared, and no two of them ran{why}. {missing} A kernel's module may bring one: `modprobe tcp_NAME` as root.{}",
            asked.join(" and "),
            beside.unwrap_or_default()
        ),
    );
    (open.rate_bps, open.ruled_out) = (found.rate_bps, found.ruled_out.clone());
    open
}
