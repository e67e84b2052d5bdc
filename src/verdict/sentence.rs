//! The sentences of the verdict, and what was ruled out.

use super::judge::ROLES;
use super::ladder::Part;
use super::limits;
use super::rank::{self, Answer, State};
use super::rates_answer;
use super::rates_compared::capital;
use super::rules::{AT_DEVICE_CLASS, AT_LINE_RATE, Hit, TOO_LITTLE, TOOL_LIMIT, UNEXPLAINED, explain};
use super::seen::{Load, Seen};
use super::words::{bytes, disk, percent};
use crate::model::copy::{LaneKind, Rung};
use crate::model::finding::{Code, Component, Confidence, RuledOut, Status, Verdict, Where};
use crate::model::outcome::Outcome;
use crate::model::{Direction, Role};
use crate::units::BitRate;

/// A rate as the part's people write it: links in bits, disks and copies in bytes.
fn rate_of(part: Option<Part>, rate: BitRate) -> String {
    match part {
        Some(Part::Source | Part::Sink | Part::Lane(_)) => bytes(rate),
        _ => rate.to_string(),
    }
}

/// What is to blame, in a few words.
fn blame(seen: &Seen<'_>, hit: &Hit) -> String {
    let role = match hit.place {
        Where::Pc => Some(Role::Pc),
        Where::Nas => Some(Role::Nas),
        Where::Path => None,
    };
    let under = role.and_then(|role| seen.disk(role)).and_then(disk).map(|what| format!(" ({what})")).unwrap_or_default();
    match hit.code {
        "disk.nas-write" => format!("NAS disk write{under}"),
        "disk.nas-read" => format!("NAS disk read{under}"),
        "disk.pc-write" => format!("PC disk write{under}"),
        "disk.pc-read" => format!("PC disk read{under}"),
        _ if hit.title.is_some() => hit.title.clone().unwrap_or_default(),
        other => {
            let title = other.parse::<Code>().ok().and_then(|code| explain(&code)).map_or(other, |doc| doc.title);
            match role {
                Some(role) => format!("{title} (at the {})", role.title()),
                None => title.to_owned(),
            }
        }
    }
}

pub(super) fn bottleneck(seen: &Seen<'_>, hits: &[Hit], answer: &Answer, hit: &Hit, direction: Option<Direction>) -> String {
    let part = answer.ladder.binding().map(|ceiling| ceiling.part);
    let rate = answer.rate.map(|rate| format!(", {}", rate_of(part, rate))).unwrap_or_default();
    let way = direction.map_or_else(|| ", in both directions".to_owned(), |way| format!(", in the direction {}", way.arrow()));
    let mut text = vec![format!("Bottleneck: {}{rate}{way}.", blame(seen, hit))];
    let plain = hit.code.starts_with("disk.") && matches!(part, Some(Part::Source | Part::Sink));
    match answer.ladder.rate(Part::Tcp).or(answer.ladder.rate(Part::Line)) {
        Some(tcp) if plain => text.push(format!("The network carries {}.", bytes(tcp))),
        _ => text.extend(hit.evidence.iter().take(2).map(|line| without_way(line, direction))),
    }
    if let Some(tie) = answer.tie {
        let rate = answer.ladder.rate(tie).unwrap_or_default();
        text.push(format!("Within a tenth of it: {}, {}.", rank::name(seen, answer.direction, tie), rate_of(Some(tie), rate)));
    }
    if let Some(rival) = answer.rival.and_then(|at| hits.get(at)) {
        text.push(format!("Almost as well fits: {}.", blame(seen, rival)));
    }
    if let (Some(gain), Some((_, what))) = (answer.gain(), &answer.after) {
        let percent = gain.percent();
        // Beyond ten times nobody reads per cents.
        let gains = if percent < 900.0 {
            format!("gains at most {percent:.0} %")
        } else {
            format!("makes it at most {:.0} times as fast", percent / 100.0 + 1.0)
        };
        text.push(format!("Mending this {gains}; after that {what} is the limit."));
    }
    text.extend(seen.local().then(|| NO_CABLE.to_owned()));
    text.join(" ")
}

/// Evidence that begins with the direction that was just named, without it.
fn without_way(line: &str, direction: Option<Direction>) -> String {
    let rest = direction.and_then(|way| line.strip_prefix(way.arrow())?.strip_prefix(": "));
    rest.map_or_else(|| line.to_owned(), capital)
}

/// A fault; where nothing but the path MTU was asked for it is no bottleneck of anything.
pub(super) fn fault(seen: &Seen<'_>, hit: &Hit, clamped: Option<BitRate>) -> String {
    let title = hit.code.parse::<Code>().ok().and_then(|code| explain(&code)).map_or(hit.code, |doc| doc.title);
    let title = hit.title.as_deref().unwrap_or(title);
    let word = if seen.doc.plan.scope.is_mtu() || seen.doc.plan.scope.is_link() { "Fault" } else { "Bottleneck" };
    let mut text = vec![format!("{word}: {title}.")];
    // Where the title names the place, the evidence of that need not be said again.
    let said = |line: &&String| hit.title.is_none() || !["Most likely", "Likely"].iter().any(|start| line.starts_with(start));
    text.extend(hit.evidence.iter().take(3).filter(said).cloned());
    text.extend(clamped.map(|rate| format!("With packets that fit, {rate} pass.")));
    text.join(" ")
}

pub(super) fn plain(status: Status, component: Component, cause: &str, confidence: Confidence, sentence: String) -> Verdict {
    Verdict {
        status,
        component,
        cause: cause.to_owned(),
        code: Code::new(component, cause),
        r#where: None,
        direction: None,
        lane: None,
        rate_bps: None,
        confidence,
        sentence,
        next: None,
        ruled_out: Vec::new(),
    }
}

pub(super) fn impossible(seen: &Seen<'_>, found: rank::Impossible) -> Verdict {
    let said = if seen.ends.iter().any(|end| end.stated) { "the stated speed" } else { "the port's speed" };
    let (way, rate, line) = (found.direction.arrow(), found.rate, found.line);
    let text = match found.wire {
        Some(wire) => format!(
            "Inconclusive: {rate} were measured {way}, and of a link of {line} headers and frames leave {wire} at MTU {}. Such a figure is not trusted: a virtual link or the clock of a host was measured. Run again with a longer time.",
            seen.mtu
        ),
        None => format!(
            "Inconclusive: {rate} were measured {way} over a link of {line}, which cannot be: {said} is wrong. State the true speed with --link-speed and run again."
        ),
    };
    let mut verdict = plain(Status::Inconclusive, Component::None, TOOL_LIMIT, Confidence::Low, text);
    verdict.direction = Some(found.direction);
    verdict
}

/// The verdict where no direction has a cause.
pub(super) fn without_cause(seen: &Seen<'_>, answers: &[Answer; 2]) -> Verdict {
    if seen.doc.plan.scope.is_throughput() {
        return rates_answer::without_cause(seen, answers);
    }
    let find = |state: State| answers.iter().filter(|answer| answer.state == state).min_by_key(|answer| answer.rate);
    let mut verdict = if let Some(answer) = find(State::Unexplained) {
        unexplained(seen, answer, answers)
    } else if let Some(answer) = find(State::Tool) {
        tool(answer)
    } else if seen.local() && answers.iter().any(|answer| answer.state == State::Healthy) {
        device_class(seen)
    } else if let Some(answer) = find(State::Near).or_else(|| find(State::Healthy)) {
        at_line_rate(seen, answer, answers)
    } else {
        return too_little(seen);
    };
    if let Some(lanes) = unmeasured(seen).filter(|_| verdict.status == Status::Healthy) {
        verdict.sentence = format!("{} But {lanes}.", verdict.sentence);
        verdict.confidence = Confidence::Low;
    }
    verdict.ruled_out = ruled_out(seen, &[], answers, "");
    verdict
}

/// The lanes that were asked for and gave nothing but failures, each with its first reason.
fn unmeasured(seen: &Seen<'_>) -> Option<String> {
    let copy = &seen.doc.measurements.copy;
    let reason = |kind: LaneKind| match copy {
        Outcome::Measured(copy) => {
            let rungs = || copy.lanes.iter().filter(|lane| lane.kind == kind).flat_map(|lane| &lane.rungs);
            let failed = |rung: &'_ Rung| matches!(rung.result, Outcome::Failed(_));
            let first = rungs().find(|rung| failed(rung)).and_then(|rung| rung.result.why());
            first.filter(|_| rungs().all(|rung| rung.result.measured().is_none()))
        }
        Outcome::Failed(why) => Some(why.reason.as_str()),
        Outcome::Skipped(_) => None,
    };
    let asked = seen.doc.plan.lanes.iter().filter(|kind| **kind != LaneKind::Raw);
    let lanes: Vec<String> = asked
        .filter_map(|kind| {
            Some(format!("the {} lane could not be measured: {}", kind.word(), reason(*kind)?.trim_end_matches('.')))
        })
        .collect();
    (!lanes.is_empty()).then(|| lanes.join("; "))
}

fn unexplained(seen: &Seen<'_>, answer: &Answer, answers: &[Answer; 2]) -> Verdict {
    let rate = answer.rate.unwrap_or_default();
    let both = answers.iter().all(|other| other.state == State::Unexplained);
    let text = match (seen.line, answer.ladder.wire) {
        (Some(line), Some(wire)) => format!(
            "Inconclusive: {} carries {rate} of the {wire} that a {line} link allows, and neither loss, window, processor nor bus explains it. Change one thing (cable, switch port, other host) and compare; or run --thorough.",
            answer.direction.arrow()
        ),
        _ => format!(
            "Inconclusive: {} carries {rate}, the links' speed is not known, and nothing measured says what limits it. State the speeds with --link-speed pc=… and nas=…, and run again.",
            answer.direction.arrow()
        ),
    };
    let text = rank::between(seen, answer.direction).map_or_else(|| text.clone(), |between| format!("{text} {between}"));
    let mut verdict = plain(Status::Inconclusive, Component::Inconclusive, UNEXPLAINED, Confidence::Low, text);
    verdict.direction = Some(answer.direction).filter(|_| !both);
    verdict.rate_bps = answer.rate;
    verdict
}

fn tool(answer: &Answer) -> Verdict {
    let text = format!(
        "Healthy: copies {} ran faster than the measurement of raw TCP ({}) and near the line rate, so the measurement was the limit, not the network.",
        answer.direction.arrow(),
        answer.rate.unwrap_or_default()
    );
    let mut verdict = plain(Status::Healthy, Component::None, TOOL_LIMIT, Confidence::Medium, text);
    verdict.direction = Some(answer.direction);
    verdict
}

/// What a run over loopback cannot say.
const NO_CABLE: &str = "Nothing here is evidence about a cable.";

fn device_class(seen: &Seen<'_>) -> Verdict {
    let directory = |role: Role| {
        let rate = |write, word| seen.transfer(role, write).map(|t| format!("{word} {}", t.sustained_bytes_per_s));
        let rates: Vec<String> = rate(false, "reads").into_iter().chain(rate(true, "writes")).collect();
        (!rates.is_empty()).then(|| (role.title(), rates.join(" and ")))
    };
    let disks = match (directory(Role::Nas), directory(Role::Pc)) {
        (Some((nas, does)), Some((pc, too))) => format!(" The {nas}'s directory {does}; the {pc}'s {too}."),
        (Some((end, does)), None) | (None, Some((end, does))) => format!(" The {end}'s directory {does}."),
        (None, None) => String::new(),
    };
    let text = format!("Healthy: on this one machine nothing is at fault.{disks}{} {NO_CABLE}", cipher(seen));
    plain(Status::Healthy, Component::None, AT_DEVICE_CLASS, Confidence::Medium, text)
}

/// The most that one core of this machine encrypts.
fn cipher(seen: &Seen<'_>) -> String {
    let ciphers = ROLES.into_iter().filter_map(|role| seen.cpu(role)).flat_map(|cpu| &cpu.ciphers);
    let rates = ciphers.filter_map(|cipher| Some((cipher.rate.measured()?, cipher.cipher.as_str())));
    let best = rates.max_by(|a, b| a.0.cmp(b.0).then_with(|| b.1.cmp(a.1)));
    best.map(|(rate, name)| format!(" One core encrypts {rate} with {name}.")).unwrap_or_default()
}

fn at_line_rate(seen: &Seen<'_>, answer: &Answer, answers: &[Answer; 2]) -> Verdict {
    let rate = answer.rate.unwrap_or_default();
    let line = seen.line.unwrap_or_default();
    let near = answer.state == State::Near;
    let measured =
        [Role::Pc, Role::Nas].into_iter().any(|role| seen.transfer(role, true).or(seen.transfer(role, false)).is_some());
    let in_memory = |role: &Role| seen.in_memory(*role);
    let memory: Vec<&str> = ROLES.into_iter().filter(in_memory).map(Role::title).collect();
    let both = answers.iter().all(|answer| matches!(answer.state, State::Healthy | State::Near));
    let mut sure = match (near, seen.inferred || !measured || !both) {
        (true, _) => Confidence::Low,
        (_, true) => Confidence::Medium,
        _ => Confidence::High,
    };
    if answers.iter().any(|answer| rank::noisy(seen, answer.direction)) {
        sure = rank::lower(sure);
    }
    let share = answer.ladder.wire.filter(|wire| wire.0 > 0).map_or(0.0, |wire| rate.as_f64() / wire.as_f64());
    let class =
        if seen.inferred { format!("a {line} link (read off the rate; no port tells)") } else { format!("a {line} link") };
    let mut text = format!("Healthy: {} ({rate}) is {} of what {class} can carry.", bytes(rate), percent(share));
    let busy = rank::loads(seen, answer.direction).any(|load| load.full() || load.robbed());
    text.push_str(match (near, busy, measured) {
        (true, true, _) => " What is missing has no evidence of a fault; a host was busy meanwhile, which measures low.",
        (true, false, _) => " What is missing has no evidence of a fault.",
        (false, _, true) => " Disks and protocols keep up; only a faster link would be faster.",
        (false, _, false) if memory.is_empty() => " Only a faster link would be faster; the disks were not measured.",
        (false, _, false) => " Only a faster link would be faster.",
    });
    text.extend(
        (!memory.is_empty()).then(|| {
            format!(" The directory of the {} is memory (tmpfs): no disk was measured there.", memory.join(" and the "))
        }),
    );
    let mut verdict = plain(Status::Healthy, Component::None, AT_LINE_RATE, sure, text);
    verdict.rate_bps = answer.rate;
    verdict
}

fn too_little(seen: &Seen<'_>) -> Verdict {
    let m = &seen.doc.measurements;
    let text = if seen.local() {
        let why = no_disk(seen).unwrap_or_else(|| "no directory was named".to_owned());
        format!(
            "Inconclusive: the disk could not be measured ({why}), and on this one machine nothing else decides.{} {NO_CABLE}",
            cipher(seen)
        )
    } else {
        let why = m.throughput.why().or(m.storage.why()).unwrap_or("no rate was measured");
        format!(
            "Inconclusive: too little was measured to name a limit ({why}). A run with an agent on the NAS and a directory (weaklink serve --dir) decides it."
        )
    };
    plain(Status::Inconclusive, Component::Inconclusive, TOO_LITTLE, Confidence::Low, text)
}

/// The first reason why no disk has a rate: what failed before what was not tried, the NAS before the PC.
fn no_disk(seen: &Seen<'_>) -> Option<String> {
    let storage = &seen.doc.measurements.storage;
    let mut reasons: Vec<(bool, String)> = Vec::new();
    let mut note = |failed: bool, why: Option<&str>| reasons.extend(why.map(|why| (failed, why.to_owned())));
    note(matches!(storage, Outcome::Failed(_)), storage.why());
    for role in [Role::Nas, Role::Pc] {
        let Some(end) = storage.measured().map(|storage| storage.of(role)) else { continue };
        note(matches!(end, Outcome::Failed(_)), end.why());
        let Some(disk) = end.measured() else { continue };
        let memory = format!("the {}'s directory is memory (tmpfs)", role.title());
        note(true, seen.in_memory(role).then_some(memory.as_str()));
        for part in [&disk.write, &disk.read] {
            note(matches!(part, Outcome::Failed(_)), part.why());
        }
    }
    let at = reasons.iter().position(|(failed, _)| *failed).unwrap_or(0);
    reasons.get(at).map(|(_, why)| why.trim_end_matches('.').to_owned())
}

/// What it is not, each with the number that speaks against it.
pub(super) fn ruled_out(seen: &Seen<'_>, hits: &[Hit], answers: &[Answer; 2], chosen: &str) -> Vec<RuledOut> {
    let mut out = Vec::new();
    let mut say = |code: &str, reason: String| {
        // A disk's hit is on offer always; whether it stands against another cause its rate alone says.
        let offered = !code.starts_with("disk.") && hits.iter().any(|hit| hit.code == code && hit.weight >= 0.6);
        if code != chosen
            && !offered
            && let Ok(code) = code.parse()
        {
            out.push(RuledOut { code, reason });
        }
    };
    if !seen.local() {
        network(seen, &mut say);
        processor(seen, &mut say);
    }
    for answer in answers {
        let Some(rate) = answer.rate else { continue };
        let sides = [(Part::Source, answer.direction.sender(), false), (Part::Sink, answer.direction.receiver(), true)];
        for (part, role, write) in sides {
            let Some(disk) = answer.ladder.rate(part).filter(|disk| rate.as_f64() < limits::TIE * disk.as_f64()) else {
                continue;
            };
            let code = match (role, write) {
                (Role::Nas, true) => "disk.nas-write",
                (Role::Nas, false) => "disk.nas-read",
                (Role::Pc, true) => "disk.pc-write",
                (Role::Pc, false) => "disk.pc-read",
            };
            say(code, format!("It sustains {}, and {} arrive.", bytes(disk), bytes(rate)));
        }
    }
    out
}

fn network(seen: &Seen<'_>, say: &mut dyn FnMut(&str, String)) {
    let lost: Vec<f64> = Direction::BOTH.into_iter().filter_map(|way| rank::retransmits(seen, way)).collect();
    let most = lost.iter().copied().fold(0.0, f64::max);
    let full = seen.ways.iter().all(|way| way.best.is_some() && !way.gap());
    if !lost.is_empty() && most < limits::LOSS_SHARE {
        say("network.loss", format!("{} of the segments at most had to be sent again.", capital(&percent(most))));
    } else if full {
        say("network.loss", format!("{} of the segments were sent again, and yet the line is full.", capital(&percent(most))));
    }
    let shares: Vec<f64> = seen.ways.iter().filter_map(super::seen::Way::share).collect();
    if full && let Some(least) = shares.iter().copied().reduce(f64::min) {
        say("network.hop-slower-than-links", format!("TCP reaches {} of what the line can carry.", percent(least)));
    }
    let paths: Vec<_> = Direction::BOTH.into_iter().filter_map(|way| seen.path(way)).collect();
    let own = seen.ends.iter().filter_map(|end| end.mtu).min();
    if let (2, Some(own)) = (paths.len(), own)
        && let Some(least) = paths.iter().map(|path| path.mtu).min().filter(|least| *least >= own)
    {
        say(
            "network.mtu-black-hole",
            format!("Packets of {} bytes, all that both ends' interfaces take, pass in both directions.", least.min(own)),
        );
    }
    let [pc, nas] = [seen.ends[0].mtu, seen.ends[1].mtu];
    if let (Some(pc), true) = (pc, pc == nas && seen.doc.plan.scope.is_mtu()) {
        say("network.mtu-mismatch", format!("Both ends' interfaces have an MTU of {pc}."));
    }
}

fn processor(seen: &Seen<'_>, say: &mut dyn FnMut(&str, String)) {
    let passes = seen.ways.iter().filter_map(|way| way.best);
    let windows: Vec<_> =
        passes.flat_map(|pass| ROLES.into_iter().filter_map(|role| Some((role, Load::during(pass, role)?)))).collect();
    let Some((role, load)) = windows.iter().max_by(|a, b| a.1.core.total_cmp(&b.1.core)) else { return };
    if !windows.iter().any(|(_, load)| load.full()) {
        if load.core >= limits::CORE_FULL {
            let told = format!(
                "Other programs kept the {}'s cores busy, but nothing that was measured waited for that host ({}).",
                role.title(),
                load.why_idle()
            );
            return say("cpu.network-stack-core", told);
        }
        say("cpu.network-stack-core", format!("The busiest core, at the {}, was {} busy.", role.title(), percent(load.core)));
    } else if seen.ways.iter().all(|way| way.best.is_some() && !way.gap()) {
        let what = if windows.iter().any(|(_, load)| load.core_full()) { "A core was full" } else { "Threads waited for a core" };
        say("cpu.network-stack-core", format!("{what}, and yet the line is full too."));
    }
}
