//! What was asked for set a rate: a pace, a buffer, so many streams on one core.

use super::limits;
use super::rates_answer::{asked, unknown, verdict};
use super::rates_compared::{capital, has};
use super::rules::{AS_ASKED, AT_LINE_RATE, Explains, Hit, TOO_LITTLE, TOOL_LIMIT, line_level};
use super::seen::{Load, Seen, Sums, Way, window};
use super::words::percent;
use crate::model::finding::{Component, Confidence, Status, Verdict};
use crate::model::throughput::Pass;
use crate::model::{Direction, Role};
use crate::units::{BitRate, ByteSize};

/// Whether what was asked for, and not the network, set a rate: a pace, a buffer, or one stream on one core.
pub(super) fn own_limit(seen: &Seen<'_>, hits: &[Hit]) -> Option<Verdict> {
    if !seen.doc.plan.scope.is_throughput() || seen.local() {
        return None;
    }
    let open = || asked(seen).map(|way| seen.way(way)).filter(|way| way.gap());
    let wished =
        seen.doc.plan.throughput.as_ref().is_some_and(|plan| plan.options.pacing_bps.is_some() && plan.streams.is_none());
    let measured = || asked(seen).map(|way| seen.way(way)).filter(|way| way.best.is_some());
    // Where one stream's pace was the question, what more of them carry is no answer.
    let kept = wished && measured().next().is_some() && measured().all(|way| is_paced(seen, way.direction));
    if kept || (open().next().is_some() && open().all(|way| is_paced(seen, way.direction))) {
        return Some(paced(seen));
    }
    if let Some(verdict) = level(seen) {
        return Some(verdict);
    }
    let found = open().filter(|way| !is_paced(seen, way.direction)).filter_map(|way| {
        let pass = way.best?;
        let text = buffered(seen, pass).or_else(|| one_core(way, pass, hits))?;
        Some((pass.goodput_bps, way.direction, text))
    });
    let (rate, direction, text) = found.min_by_key(|(rate, _, _)| *rate)?;
    let mut verdict =
        verdict(Status::Inconclusive, Component::None, TOOL_LIMIT, Confidence::Low, format!("{} {text}", direction.arrow()));
    verdict.direction = Some(direction);
    verdict.rate_bps = Some(rate);
    Some(verdict)
}

/// Every direction that was asked for runs evenly at one class of Ethernet, and nobody tells the line: on hosts too busy for more it is
/// the same evidence as on idle ones.
fn level(seen: &Seen<'_>) -> Option<Verdict> {
    let ways: Vec<&Way<'_>> = asked(seen).map(|way| seen.way(way)).collect();
    let classes: Option<Vec<BitRate>> = ways.iter().map(|way| line_level(seen, way)).collect();
    let classes = classes.filter(|_| seen.line.is_none())?;
    let class = classes.first().filter(|class| classes.iter().all(|other| other == *class))?;
    let told: Vec<String> = ways
        .iter()
        .filter_map(|way| Some(format!("{} {} ({})", way.direction.arrow(), way.rate()?, way.rate()?.bytes())))
        .collect();
    let text = format!(
        "TCP carries {}, evenly, which is what a {class} link can carry (read off the rate; no port tells).",
        told.join(" and ")
    );
    let mut verdict = verdict(Status::Healthy, Component::None, AT_LINE_RATE, Confidence::Medium, text);
    verdict.rate_bps = ways.iter().filter_map(|way| way.rate()).min();
    Some(verdict)
}

/// The pace of each stream, as the kernel granted it, or as it was asked for where the sender's kernel does not tell.
fn pace(seen: &Seen<'_>, pass: &Pass) -> Option<BitRate> {
    let wish = seen.doc.plan.throughput.as_ref().and_then(|plan| plan.options.pacing_bps);
    pass.method.sender_sockets.pacing_bps.or(wish).filter(|pace| pace.0 > 0)
}

/// The pass that answers for a pace: that of one stream, where no number of streams was asked for.
fn paced_pass<'a>(seen: &Seen<'a>, direction: Direction) -> Option<&'a Pass> {
    let way = seen.way(direction);
    let free = seen.doc.plan.throughput.as_ref().is_none_or(|plan| plan.streams.is_none());
    way.single.filter(|_| free).or(way.best)
}

/// Whether a direction's streams run at the pace that was asked for.
pub(super) fn is_paced(seen: &Seen<'_>, direction: Direction) -> bool {
    let Some(pass) = paced_pass(seen, direction) else { return false };
    pace(seen, pass).is_some_and(|pace| {
        let all = pace.as_f64() * f64::from(pass.streams);
        limits::AT_PACE.contains(&(pass.goodput_bps.as_f64() / all))
    })
}

/// Every direction that is below the line runs at its pace: that was the wish, and no fault.
fn paced(seen: &Seen<'_>) -> Verdict {
    let ways = asked(seen).filter(|way| is_paced(seen, *way)).filter_map(|way| Some((way, paced_pass(seen, way)?)));
    let ways: Vec<(Direction, &Pass)> = ways.collect();
    let pace = ways.iter().filter_map(|(_, pass)| pace(seen, pass)).min().unwrap_or_default();
    let told: Vec<String> = ways
        .iter()
        .map(|(way, pass)| {
            let streams = if pass.streams == 1 { "1 stream".to_owned() } else { format!("{} streams", pass.streams) };
            format!("{} carries {} with {streams}", way.arrow(), pass.goodput_bps)
        })
        .collect();
    let text =
        format!("paced to {pace} for each stream as asked: {}. What more the network carries was not tried.", told.join(", "));
    let mut verdict = verdict(Status::Healthy, Component::None, AS_ASKED, Confidence::High, text);
    verdict.rate_bps = ways.iter().map(|(_, pass)| pass.goodput_bps).min();
    verdict
}

/// Puts into the answer what was asked for and did not happen: a pace that was missed, a congestion control that did not run.
pub(super) fn with_wishes(seen: &Seen<'_>, mut answer: Verdict) -> Verdict {
    if !seen.doc.plan.scope.is_throughput() {
        return answer;
    }
    let missed: Vec<String> = asked(seen).filter_map(|way| missed(seen, way)).collect();
    answer.sentence.extend(missed);
    let (ran, lacking) = controls(seen);
    if lacking.is_empty() {
        return answer;
    }
    let told = lacking.join(" ");
    if ran {
        answer.sentence = format!("{} {told}", answer.sentence);
        return answer;
    }
    let rest = answer.sentence.split_once(": ").map_or_else(String::new, |(_, rest)| capital(rest));
    let text = format!("nothing of what was asked ran. {told} With what ran instead: {rest}");
    let mut open = unknown(TOO_LITTLE, text);
    (open.rate_bps, open.ruled_out) = (answer.rate_bps, answer.ruled_out);
    open
}

/// A pace that a direction's streams do not reach.
fn missed(seen: &Seen<'_>, direction: Direction) -> Option<String> {
    let wish = seen.doc.plan.throughput.as_ref()?.options.pacing_bps.filter(|pace| pace.0 > 0)?;
    let pass = paced_pass(seen, direction)?;
    let below = pass.goodput_bps.as_f64() < limits::AT_PACE.start() * wish.as_f64() * f64::from(pass.streams);
    let rate = pass.goodput_bps.scale(1.0 / f64::from(pass.streams.max(1)));
    below.then(|| {
        let got = if pass.streams == 1 { "the stream got".to_owned() } else { format!("{} streams got", pass.streams) };
        let each = if pass.streams == 1 { String::new() } else { " each".to_owned() };
        format!(" {}: the pace of {wish} for each stream was not reached, {got} {rate}{each}.", direction.arrow())
    })
}

/// Whether the one congestion control that was asked for ran anywhere, and a sentence for each end that did not use it.
fn controls(seen: &Seen<'_>) -> (bool, Vec<String>) {
    let names = seen.doc.plan.throughput.as_ref().map(|plan| plan.congestion.as_slice()).unwrap_or_default();
    let [wish] = names else { return (true, Vec::new()) };
    let used = asked(seen).filter_map(|way| Some((way, seen.way(way).best?.method.congestion.as_ref()?)));
    let used: Vec<(Direction, &String)> = used.collect();
    let told = |(way, name): &(Direction, &String)| {
        let role = way.sender();
        let there = has(seen, role, std::iter::empty());
        format!("The {} could not use {wish}{there}: {name} ran instead.", role.title())
    };
    (used.iter().any(|(_, name)| *name == wish), used.iter().filter(|(_, name)| *name != wish).map(told).collect())
}

/// The buffers that were asked for hold the streams back.
fn buffered(seen: &Seen<'_>, pass: &Pass) -> Option<String> {
    let asked = seen.doc.plan.throughput.as_ref()?.options.window_bytes?;
    let sums = Sums::of(pass);
    let held = [sums.rwnd, sums.sndbuf].into_iter().flatten().any(|share| share >= limits::RWND_LIMITED);
    let blamed = (held || sums.window_sets(pass.goodput_bps)) && !seen.window_to_spare(pass);
    blamed.then(|| {
        format!(
            "carries {} with socket buffers of {}, as asked for, and these hold the streams back. Without --window the kernels size them by themselves.",
            pass.goodput_bps,
            ByteSize(u64::from(asked))
        )
    })
}

/// The share of a core that the threads of one end took, each.
fn thread_share(pass: &Pass, role: Role, direction: Direction) -> Option<f64> {
    let cost = if role == direction.sender() { &pass.sender_cost } else { &pass.receiver_cost };
    let span = pass.elapsed_us.seconds() * f64::from(pass.streams.max(1));
    let own = cost.measured().filter(|_| span > 0.0).map(|cost| (cost.cpu_us.seconds() / span).min(1.0));
    let seen = window(pass, role).map(|cpu| Load::of(cpu).thread);
    own.into_iter().chain(seen).reduce(f64::max)
}

/// As many streams as were asked for keep as many cores full, and the others idle.
fn one_core(way: &Way<'_>, pass: &Pass, hits: &[Hit]) -> Option<String> {
    let tried = way.multi.is_some() && way.single.is_some();
    let better = |hit: &Hit| {
        hit.touches(way.direction)
            && matches!(hit.explains, Explains::Part(_) | Explains::Network)
            && !hit.soft
            && hit.weight >= 0.6
    };
    if tried || hits.iter().any(better) {
        return None;
    }
    let ends = [way.direction.sender(), way.direction.receiver()].into_iter();
    let full = ends.filter_map(|role| Some((role, thread_share(pass, role, way.direction)?)));
    let (role, share) = full.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, share)| *share >= limits::THREAD_FULL)?;
    let load = window(pass, role).filter(|cpu| cpu.cores.len() > 1).map(Load::of)?;
    let streams = if pass.streams == 1 {
        "one stream's thread keeps".to_owned()
    } else {
        format!("the threads of {} streams keep", pass.streams)
    };
    (load.taken() < limits::REST_IDLES && !load.too_little()).then(|| {
        format!(
            "carries {} while {streams} a core of the {} {} busy and all its cores together are {} busy: this measures one core, not the network. More streams (without --streams) decide.",
            pass.goodput_bps,
            role.title(),
            percent(share),
            percent(load.taken())
        )
    })
}
