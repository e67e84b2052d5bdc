//! The answer of a document about raw rates alone: TCP, datagrams, or several PCs, where no cause was found.

use super::ideal;
use super::limits;
use super::rank::{self, Answer, State};
use super::rates_asked;
use super::rates_compared::capital;
use super::rates_group::together;
use super::rules::{AS_ASKED, AT_DEVICE_CLASS, AT_LINE_RATE, TOO_LITTLE, TOOL_LIMIT, UNEXPLAINED, outage, udp_wire};
use super::seen::{Load, Seen, Way};
use super::sentence::{plain, ruled_out};
use super::words::percent;
use crate::model::finding::{Component, Confidence, Status, Verdict};
use crate::model::plan::Scope;
use crate::model::throughput::ThroughputSection;
use crate::model::udp::{UdpDirection, UdpPass};
use crate::model::{Direction, Outcome, Role};
use crate::units::BitRate;

/// What an iperf3 server never tells.
const NO_FAR_END: &str =
    "An iperf3 server tells neither its host's link nor its processor and counters; `weaklink serve` on the NAS does.";

pub(super) fn verdict(status: Status, component: Component, cause: &str, sure: Confidence, mut text: String) -> Verdict {
    let word = match status {
        Status::Healthy => "Healthy",
        Status::Inconclusive => "Inconclusive",
        Status::Bottleneck => "Bottleneck",
    };
    text.insert_str(0, ": ");
    text.insert_str(0, word);
    plain(status, component, cause, sure, text)
}

pub(super) fn unknown(cause: &str, text: String) -> Verdict {
    verdict(Status::Inconclusive, Component::Inconclusive, cause, Confidence::Low, text)
}

/// The directions that were to be measured.
pub(super) fn asked(seen: &Seen<'_>) -> impl Iterator<Item = Direction> + use<> {
    let ways = seen.doc.plan.throughput.as_ref().map(|plan| plan.ways).unwrap_or_default();
    Direction::BOTH.into_iter().filter(move |way| ways.has(*way) || ways.has_both())
}

/// The answer where nothing was found to blame.
pub(super) fn without_cause(seen: &Seen<'_>, answers: &[Answer; 2]) -> Verdict {
    let ways: Vec<Direction> = asked(seen).collect();
    // A pace that was asked for explains its direction.
    let open = |answer: &&Answer| {
        !matches!(answer.state, State::Unexplained | State::Near) || !rates_asked::is_paced(seen, answer.direction)
    };
    let of = |state: State| answers.iter().filter(open).filter(|answer| answer.state == state).min_by_key(|answer| answer.rate);
    let mut verdict = if seen.local() {
        on_one_machine(seen)
    } else if let Some(answer) = of(State::Unexplained) {
        unexplained(seen, answer, answers)
    } else if let Some(answer) = of(State::Near).or_else(|| of(State::Healthy)) {
        at_line_rate(seen, answer, answers, &ways)
    } else {
        datagrams(seen, &ways).or_else(|| together(seen)).unwrap_or_else(|| nothing(seen))
    };
    // What one stream at a pace gets is no news.
    let alone = ways.into_iter().filter(|way| !seen.local() && !rates_asked::is_paced(seen, *way));
    for way in alone.map(|way| seen.way(way)) {
        verdict.sentence.extend(single(way));
    }
    verdict.ruled_out = ruled_out(seen, &[], answers, "");
    verdict
}

/// What one stream alone gets, where that is clearly less.
fn single(way: &Way<'_>) -> Option<String> {
    let (single, multi) = (way.single.filter(|pass| outage(pass).is_none())?, way.multi?);
    (single.goodput_bps.as_f64() < limits::NEAR_LINE_RATE * multi.goodput_bps.as_f64()).then(|| {
        format!(
            " One stream alone, as a copy has, gets {} {}; {} streams were needed for more.",
            single.goodput_bps,
            way.direction.arrow(),
            multi.streams
        )
    })
}

fn on_one_machine(seen: &Seen<'_>) -> Verdict {
    let rates: Vec<String> =
        seen.ways.iter().filter_map(|way| Some(format!("{} {}", way.direction.arrow(), way.rate()?))).collect();
    let text = if rates.is_empty() {
        let ways: Vec<Direction> = asked(seen).collect();
        let Some(found) = datagrams(seen, &ways).or_else(|| together(seen)) else { return nothing(seen) };
        let told = found.sentence.split_once(": ").map_or_else(String::new, |(_, told)| capital(told));
        format!("both ends are this one machine. {told} Nothing here is evidence about a cable.")
    } else {
        format!(
            "both ends are this one machine, and it moves {} over loopback. Nothing here is evidence about a cable.",
            rates.join(", ")
        )
    };
    verdict(Status::Healthy, Component::None, AT_DEVICE_CLASS, Confidence::Medium, text)
}

/// The link in words, with what is not known of it.
pub(super) fn line_words(seen: &Seen<'_>) -> String {
    let line = seen.line.unwrap_or_default();
    let known = [(Role::Pc, &seen.ends[0]), (Role::Nas, &seen.ends[1])].into_iter().find(|(_, end)| end.total == Some(line));
    match known {
        Some((role, _)) if seen.inferred => format!("the {}'s {line} link", role.title()),
        _ if seen.inferred => format!("a {line} link (read off the rate; no port tells)"),
        _ => format!("a {line} link"),
    }
}

fn at_line_rate(seen: &Seen<'_>, answer: &Answer, answers: &[Answer; 2], ways: &[Direction]) -> Verdict {
    let near = answer.state == State::Near;
    let healthy = |way: &&Direction| {
        answers.iter().any(|answer| answer.direction == **way && matches!(answer.state, State::Healthy | State::Near))
    };
    let (all, noisy) = (ways.iter().filter(healthy).count() == ways.len(), ways.iter().any(|way| rank::noisy(seen, *way)));
    let unproven = seen.inferred && seen.known() != seen.line;
    let mut sure = match (near, unproven || !all) {
        (true, _) => Confidence::Low,
        (_, true) => Confidence::Medium,
        _ => Confidence::High,
    };
    if noisy {
        sure = rank::lower(sure);
    }
    let rates: Vec<String> = seen
        .ways
        .iter()
        .filter_map(|way| Some(format!("{} {} ({})", way.direction.arrow(), way.rate()?, way.rate()?.bytes())))
        .collect();
    let share =
        answer.ladder.wire.filter(|wire| wire.0 > 0).map_or(0.0, |wire| answer.rate.unwrap_or_default().as_f64() / wire.as_f64());
    let of_it = match (share >= limits::ALL_OF_IT, rates.len() > 1) {
        (true, _) => "all that".to_owned(),
        (false, true) => format!("at least {} of what", percent(share)),
        (false, false) => format!("{} of what", percent(share)),
    };
    let mut text = format!("TCP carries {}, {of_it} {} can carry.", rates.join(" and "), line_words(seen));
    if near {
        text.push_str(" What is missing has no evidence of a fault.");
    }
    let missing: Vec<&str> = ways.iter().filter(|way| seen.way(**way).best.is_none()).map(|way| way.arrow()).collect();
    if !missing.is_empty() {
        text.extend([" ", missing.join(" and ").as_str(), " was not measured."]);
    }
    if seen.doc.plan.scope == Scope::ThroughputIperf3 && seen.ends[1].total.is_none() {
        text.push_str(" The NAS's own link is not known: an iperf3 server does not tell it.");
    }
    let mut verdict = verdict(Status::Healthy, Component::None, AT_LINE_RATE, sure, text);
    verdict.rate_bps = answer.rate;
    verdict
}

fn unexplained(seen: &Seen<'_>, answer: &Answer, answers: &[Answer; 2]) -> Verdict {
    let rate = answer.rate.unwrap_or_default();
    let way = answer.direction.arrow();
    let text = match answer.ladder.wire {
        Some(wire) => format!(
            "{way} carries {rate} of the {wire} that {} allows, and nothing that was seen explains it: neither loss nor window nor processor.",
            line_words(seen)
        ),
        None => match ideal::snap_loosely(rate, seen.mtu, seen.ip) {
            Some(class) => format!(
                "{way} carries {rate}, which is near what a {class} link does, and no port tells its speed: if that is the links', nothing is wrong. State it with --link-speed pc=… and nas=…."
            ),
            None => format!(
                "{way} carries {rate}, the links' speed is not known, and nothing that was seen says what limits it. State the speeds with --link-speed pc=… and nas=…."
            ),
        },
    };
    let text = rank::between(seen, answer.direction).map_or_else(|| text.clone(), |between| format!("{text} {between}"));
    let advice = match seen.doc.plan.scope {
        Scope::ThroughputIperf3 => NO_FAR_END,
        _ => "Change one thing (cable, switch port, other host) and compare.",
    };
    let mut verdict = unknown(UNEXPLAINED, format!("{text} {advice}"));
    let both = answers.iter().all(|other| other.state == State::Unexplained);
    verdict.direction = Some(answer.direction).filter(|_| !both);
    verdict.rate_bps = answer.rate;
    verdict
}

/// How one direction's datagrams fared.
enum Fate<'a> {
    /// The line's rate passes: with or without loss beyond.
    Full(BitRate),
    /// Nothing was lost; this is why no more was sent.
    Clean(BitRate, String),
    /// The one rate that was asked for was sent, and what became of it.
    Asked(&'a UdpPass),
    /// The same where the sender did not reach that rate.
    Missed(&'a UdpPass),
    /// Lost from here on, and nobody can say whether that is the line.
    Lost(BitRate),
    /// One rate was tried, and this was lost of it: what a lower one loses nobody knows.
    LostOfOne(String),
    /// The receiver's own kernel dropped.
    Late(BitRate),
}

fn fate<'a>(seen: &Seen<'_>, udp: &'a UdpDirection) -> Option<Fate<'a>> {
    let fixed = seen.doc.plan.throughput.as_ref().and_then(|plan| plan.udp.as_ref()?.rate_bps).is_some();
    let most = udp.passes.iter().map(|pass| pass.received_bps).max()?;
    let wire = udp_wire(seen, udp);
    let full = wire.is_some_and(|wire| most.as_f64() >= limits::AT_LINE_RATE * wire.as_f64());
    let late = udp
        .passes
        .iter()
        .any(|pass| pass.dropped_by_receiver.measured().is_some_and(|own| *own * 2 > pass.lost && pass.lost > 0));
    Some(match udp.loss_from_bps {
        _ if full => Fate::Full(most),
        _ if late => Fate::Late(most),
        Some(from) => udp.only().map_or(Fate::Lost(from), |pass| Fate::LostOfOne(lost_of(pass))),
        None if fixed && udp.only().is_some() => {
            let pass = udp.only()?;
            if pass.missed_bps().is_some() { Fate::Missed(pass) } else { Fate::Asked(pass) }
        }
        None => Fate::Clean(udp.clean_bps?, udp.ended_because.trim().trim_end_matches('.').to_owned()),
    })
}

/// What one rate lost: `at 1.86 Gbit/s (2 Gbit/s asked) 49 % of the datagrams were lost; 950 Mbit/s arrived`.
pub(super) fn lost_of(pass: &UdpPass) -> String {
    let missed = pass.missed_bps().map_or_else(String::new, |asked| format!(" ({asked} asked)"));
    let share = percent(pass.lost as f64 / pass.sent.max(1) as f64);
    format!("at {}{missed} {share} of the datagrams were lost; {} arrived", pass.rate_bps(), pass.received_bps)
}

/// What arrived of one rate at which nothing was lost that counts.
fn arrived(pass: &UdpPass) -> String {
    match pass.lost {
        0 if pass.queued() => format!(
            "no datagram was lost, but only {} arrived in each second: the rest stood in a queue, so a line on the way is full",
            pass.received_bps
        ),
        0 => "no datagram was lost".to_owned(),
        lost => format!(
            "{} of the datagrams were lost, too few to count; {} arrived",
            percent(lost as f64 / pass.sent.max(1) as f64),
            pass.received_bps
        ),
    }
}

/// The rate that one pass was asked for and did not reach, in words.
fn behind(udp: Option<&UdpDirection>) -> String {
    let pass = udp.and_then(UdpDirection::only);
    let told = pass.and_then(|pass| {
        Some(format!(" The {} that was asked for was not reached: {} was sent.", pass.missed_bps()?, pass.sent_bps))
    });
    told.unwrap_or_default()
}

/// A sender that handed over less than it was to, though its port took all of it: then its program was late, and the rest was never tried.
fn sender_late(udp: &UdpDirection, way: Direction) -> Option<String> {
    let pass = udp.passes.iter().max_by_key(|pass| pass.asked_bps).filter(|pass| pass.refused == 0)?;
    let asked = pass.missed_bps()?;
    let role = way.sender();
    let cpu = if role == Role::Pc { &pass.cpu_pc } else { &pass.cpu_nas };
    let load = cpu.measured().map(Load::of)?;
    (load.starved() || load.core_full()).then(|| {
        format!(
            "The {}'s processor did not let its program send {asked} in time (its threads waited for a core for {} of the time, the busiest core was {} busy): what the network does with that was not tried.",
            role.title(),
            percent(load.run_delay),
            percent(load.core)
        )
    })
}

fn datagrams(seen: &Seen<'_>, ways: &[Direction]) -> Option<Verdict> {
    let section = seen.doc.measurements.throughput.measured()?.udp.measured()?;
    let found: Vec<(Direction, Fate<'_>)> =
        ways.iter().filter_map(|way| Some((*way, fate(seen, section.of(*way).measured()?)?))).collect();
    let (mut text, mut full, mut lost) = (Vec::new(), !found.is_empty(), false);
    for (way, fate) in &found {
        let behind = behind(section.of(*way).measured());
        let way = way.arrow();
        full &= matches!(fate, Fate::Full(_));
        lost |= matches!(fate, Fate::Lost(_) | Fate::LostOfOne(_));
        text.push(match fate {
            Fate::Full(rate) => {
                format!("{way} datagrams arrive at {rate}, which is what {} can carry.{behind}", line_words(seen))
            }
            Fate::Clean(rate, why) => format!("{way} no loss that counts up to {rate}; no higher rate was tried: {why}.{behind}"),
            Fate::Asked(pass) => format!("{way} {} of datagrams as asked: {}.", pass.rate_bps(), arrived(pass)),
            Fate::Missed(pass) => format!("{way} at {}: {}.{behind}", pass.rate_bps(), arrived(pass)),
            Fate::Lost(rate) => format!("{way} datagrams get lost from {rate} on."),
            Fate::LostOfOne(told) => format!("{way} {told}."),
            Fate::Late(rate) => format!(
                "{way} the receiver's own kernel dropped datagrams before the network did: {rate} is what that host took."
            ),
        });
    }
    if found.is_empty() {
        return None;
    }
    if found.iter().any(|(_, fate)| matches!(fate, Fate::LostOfOne(_))) {
        text.push(match seen.doc.plan.scope {
            Scope::ThroughputIperf3 => {
                "Where loss begins lower rates tell (--rate), or a search, which needs `weaklink serve` at the other end."
                    .to_owned()
            }
            _ => "Where loss begins a search tells (--udp without a rate).".to_owned(),
        });
    }
    let late: Vec<String> = found.iter().filter_map(|(way, _)| sender_late(section.of(*way).measured()?, *way)).collect();
    let hindered = !late.is_empty();
    text.extend(late);
    let text = text.join(" ");
    let told = |fate: &Fate<'_>| matches!(fate, Fate::Asked(_) | Fate::Full(_));
    Some(match (full, lost) {
        _ if hindered && !full => verdict(Status::Inconclusive, Component::None, TOOL_LIMIT, Confidence::Low, text),
        (true, _) => verdict(
            Status::Healthy,
            Component::None,
            AT_LINE_RATE,
            if seen.inferred { Confidence::Medium } else { Confidence::High },
            text,
        ),
        (_, true) => unknown(
            UNEXPLAINED,
            format!("{text} Whether that is the line's rate is not known: state the speeds with --link-speed pc=… and nas=…."),
        ),
        _ if found.iter().all(|(_, fate)| told(fate)) => {
            verdict(Status::Healthy, Component::None, AS_ASKED, Confidence::High, text)
        }
        _ if found.iter().all(|(_, fate)| !matches!(fate, Fate::Late(_))) => {
            verdict(Status::Healthy, Component::None, TOOL_LIMIT, Confidence::Medium, text)
        }
        _ => verdict(Status::Inconclusive, Component::None, TOOL_LIMIT, Confidence::Low, text),
    })
}

/// Why something that was tried failed. What was not asked for is no reason.
fn failure<T>(part: &Outcome<T>) -> Option<String> {
    matches!(part, Outcome::Failed(_)).then(|| part.why().unwrap_or_default().to_owned())
}

fn nothing(seen: &Seen<'_>) -> Verdict {
    let measured = &seen.doc.measurements.throughput;
    let failed = |section: &ThroughputSection| {
        let udp = section.udp.measured();
        let passes = Direction::BOTH.into_iter().flat_map(|way| {
            let tcp = [failure(&section.of(way).single), failure(&section.of(way).multi)];
            tcp.into_iter().chain([udp.and_then(|udp| failure(udp.of(way)))])
        });
        passes.chain([failure(&section.both), failure(&section.udp), failure(&section.together)]).flatten().next()
    };
    let why = measured.why().map(str::to_owned).or_else(|| measured.measured().and_then(failed));
    if let Some(told) = why.is_none().then(|| too_short(seen)).flatten() {
        return unknown(TOO_LITTLE, told);
    }
    let why = why.unwrap_or_else(|| "no pass was made".to_owned());
    unknown(TOO_LITTLE, format!("no rate was measured: {}.", why.trim().trim_end_matches('.')))
}

/// Passes that were made and ended before they could say anything.
fn too_short(seen: &Seen<'_>) -> Option<String> {
    let passes = Direction::BOTH.into_iter().filter_map(|way| Some((way, seen.doc.measurements.throughput.measured()?.of(way))));
    let (way, pass) = passes.filter_map(|(way, passes)| Some((way, passes.best()?))).max_by_key(|(_, pass)| pass.elapsed_us)?;
    let time = if pass.elapsed_us.0 == 0 { String::new() } else { format!(" in {}", pass.elapsed_us) };
    Some(format!(
        "{} {}{time} are too little to tell a rate: TCP is still starting then. Give it a second (--time 1), or more bytes.",
        way.arrow(),
        pass.bytes
    ))
}
