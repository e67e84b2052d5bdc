//! Raw rates in detail: how well each pass is known, what held it back, what it cost, and how it was made.

use super::machines::{ENDS, cell};
use super::network::{rtt_words, sent_again};
use super::view::{Table, Tone, View, percent};
use super::{ladder, rates_more};
use crate::model::cpu::{CpuWindow, rate_per_core};
use crate::model::kernel::{Ended, LimitShares, MethodTrial, Shape, ThreadCost};
use crate::model::throughput::{DirectionThroughput, Pass, RttSummary, SocketFacts, TcpStats, ThroughputSection};
use crate::model::{Direction, Document, Outcome, Role};
use crate::units::ByteSize;

/// A rate that is known to this share needs no digit more.
const HALF_WIDTH_DIGITS: f64 = 0.1;

/// A share of segments below this is one of four digits, which the first table has no room for.
const LITTLE: f64 = 0.000_05;

/// What held a sender back for less of the time than this is not worth a word.
const SOME: f64 = 0.03;

/// The first screen of a document about nothing else.
pub(super) fn summary(document: &Document, view: &mut View) {
    let Some(section) = document.measurements.throughput.measured() else {
        return view.note(Tone::Plain, "Nothing could be measured; the reasons are under “Not measured” below.");
    };
    let mut table = Table::new(&["direction", "streams", "goodput", "±", "of line", "RTT", "resent", "CPU s/GB"]);
    for direction in Direction::BOTH {
        let passes = [&section.of(direction).single, &section.of(direction).multi];
        table.rows.extend(passes.into_iter().filter_map(Outcome::measured).map(|pass| row(document, direction, pass, "")));
        let both = section.both.measured().and_then(|both| both.of(direction).measured());
        table.rows.extend(both.map(|pass| row(document, direction, pass, " both")));
    }
    let legend = legend(section, &table);
    view.table(table);
    if !legend.is_empty() {
        view.note(Tone::Plain, legend);
    }
    out_of_order(section, view);
    rates_more::congestion(section, view);
    rates_more::udp_summary(section, &|way| ladder::wire(document, way), view);
    rates_more::together(section, rates_more::FIRST_MEMBERS, view);
    told_apart(section, view);
}

/// One pass on the first screen.
fn row(document: &Document, direction: Direction, pass: &Pass, beside: &str) -> Vec<String> {
    let share = ladder::wire(document, direction).filter(|wire| wire.0 > 0);
    let costs = ENDS.map(|role| host_cost(document, role, pass));
    let cost = |cost: Option<f64>| cost.map_or_else(|| "?".to_owned(), |cost| format!("{cost:.2}"));
    vec![
        direction.arrow().to_owned(),
        format!("{}{beside}", pass.streams),
        pass.goodput_bps.to_string(),
        half_width(pass).map(|text| text.replace('±', "")).unwrap_or_default(),
        share.map(|wire| percent(pass.goodput_bps.as_f64() / wire.as_f64())).unwrap_or_default(),
        pass.loaded_rtt.measured().map(|rtt| rtt.median_us.to_string()).unwrap_or_default(),
        pass.sender.measured().and_then(|stats| share_again(stats)).unwrap_or_default(),
        if costs.iter().all(Option::is_none) { String::new() } else { costs.map(cost).join("+") },
    ]
}

/// What those columns of the first table are that have figures.
fn legend(section: &ThroughputSection, table: &Table) -> String {
    let cells = |name: &str| {
        let column = table.header.iter().position(|title| title == name);
        table.rows.iter().filter_map(move |row| row.get(column?)).filter(|cell| !cell.is_empty())
    };
    let widths = cells("±").count();
    let idle = section.idle_rtt.measured().map(|rtt| format!(" (idle {})", rtt.median_us)).unwrap_or_default();
    let number = |cell: &String| cell.bytes().all(|sign| sign.is_ascii_digit());
    let again = match (cells("resent").any(number), cells("resent").all(number)) {
        (_, true) => "resent: number of segments.",
        (true, _) => "resent: share of segments, or their number where nobody tells how many there were.",
        _ => "resent: share of segments.",
    };
    let both = section.both.measured().is_some();
    let parts = [
        (widths > 0).then(|| "±: half the 95 % confidence interval.".to_owned()),
        (widths < table.rows.len())
            .then(|| "No ± where a pass was too short, or the other end told no more than its total.".to_owned()),
        cells("RTT").next().map(|_| format!("RTT: median under load{idle}.")),
        cells("resent").next().map(|_| again.to_owned()),
        cells("CPU s/GB").next().map(|_| "CPU: PC + NAS, whole hosts without what other programs were seen to burn.".to_owned()),
        both.then(|| "both: while the other direction runs, too.".to_owned()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The share of the segments that were sent again; their number where the kernel does not tell how many there were.
fn share_again(stats: &[TcpStats]) -> Option<String> {
    let sum = |of: fn(&TcpStats) -> Option<u64>| stats.iter().filter_map(of).fold(0, u64::saturating_add);
    stats.iter().find_map(|stream| stream.retransmits)?;
    let (again, sent) = (sum(|stream| stream.retransmits), sum(|stream| stream.segments_out));
    let share = again as f64 / sent.max(1) as f64;
    Some(match sent {
        0 => again.to_string(),
        _ if again > 0 && share < LITTLE => "<0.01 %".to_owned(),
        _ => percent(share),
    })
}

/// What arrived out of order, where anything did.
fn out_of_order(section: &ThroughputSection, view: &mut View) {
    let count = |pass: &Pass| {
        let stats = pass.sender.measured()?;
        let seen = stats.iter().filter_map(|stream| stream.reord_seen).map(u64::from).fold(0, u64::saturating_add);
        (seen > 0).then_some(seen)
    };
    let ways = Direction::BOTH.into_iter().filter_map(|way| {
        let DirectionThroughput { single, multi, .. } = section.of(way);
        let alone = [single, multi].into_iter().filter_map(Outcome::measured).map(|pass| (pass, ""));
        let both = section.both.measured().and_then(|both| both.of(way).measured()).map(|pass| (pass, " both"));
        let told = alone.chain(both).filter_map(|(pass, beside)| Some(format!("× {}{beside}: {}", pass.streams, count(pass)?)));
        let told = told.collect::<Vec<_>>().join(", ");
        (!told.is_empty()).then(|| format!("{} {told}", way.arrow()))
    });
    let told = ways.collect::<Vec<_>>().join(" · ");
    view.facts(vec![("out of order".to_owned(), told)]);
}

/// What failed, and what is not believed.
fn told_apart(section: &ThroughputSection, view: &mut View) {
    for direction in Direction::BOTH {
        let passes = section.of(direction);
        for (streams, outcome) in [("1 stream", &passes.single), ("several streams", &passes.multi)] {
            if let Outcome::Failed(why) = outcome {
                view.note(
                    Tone::Warning,
                    format!("{}, {streams}, could not be measured: {}", direction.arrow(), why.reason.trim()),
                );
            }
        }
    }
    let doubts = passes(section).into_iter().flat_map(|(name, _, pass)| {
        pass.doubts.iter().map(move |text| (name.clone(), text.trim().trim_end_matches('.').to_owned()))
    });
    for (_, text) in once("", doubts) {
        view.note(Tone::Warning, format!("{text}."));
    }
}

fn name(direction: Direction, pass: &Pass) -> String {
    format!("{} × {}", direction.arrow(), pass.streams)
}

/// All passes of one stream or several in one direction, each with its name.
fn alone(section: &ThroughputSection) -> Vec<(String, Direction, &Pass)> {
    let of = |direction: Direction| {
        let DirectionThroughput { single, multi, .. } = section.of(direction);
        let passes = [single, multi].into_iter().filter_map(Outcome::measured);
        passes.map(move |pass| (name(direction, pass), direction, pass))
    };
    Direction::BOTH.into_iter().flat_map(of).collect()
}

/// These, and those of both directions at once.
pub(super) fn passes(section: &ThroughputSection) -> Vec<(String, Direction, &Pass)> {
    let mut found = alone(section);
    for direction in Direction::BOTH {
        let both = section.both.measured().and_then(|both| both.of(direction).measured());
        found.extend(both.map(|pass| (format!("{}, both at once", name(direction, pass)), direction, pass)));
    }
    found
}

/// Everything beside the table of passes; nothing for a report that has none of it.
pub(super) fn details(document: &Document, section: &ThroughputSection, view: &mut View) {
    let all = passes(section);
    let mut facts: Vec<(String, String)> = all.iter().map(|(name, _, pass)| (name.clone(), known(pass))).collect();
    for direction in Direction::BOTH {
        facts.push((format!("{} streams", direction.arrow()), sweep(section.of(direction))));
    }
    view.facts(facts);
    both_at_once(section, view);
    round_trips(section, &all, view);
    if !document.plan.scope.is_throughput() {
        rates_more::congestion(section, view);
    }
    // While both directions run a host's load belongs to both.
    costs(document, &alone(section), view);
    let told = |words: fn(&Pass) -> String| all.iter().map(move |(name, _, pass)| (name.clone(), words(pass)));
    let mut made = once("sent by", told(sent_by));
    made.extend(once("received by", told(received_by)));
    view.facts(made);
    rates_more::udp(section, view);
    if !document.plan.scope.is_throughput() || rates_more::crowded(section) {
        rates_more::together(section, usize::MAX, view);
    }
}

/// Half the confidence interval: `±0.3 %`.
pub(super) fn half_width(pass: &Pass) -> Option<String> {
    let share = pass.half_width.filter(|share| share.is_finite() && *share >= 0.0)? * 100.0;
    Some(if share < HALF_WIDTH_DIGITS { "±0.1 %".to_owned() } else { format!("±{share:.1} %") })
}

/// How well a pass is known, what ended it, what held it back, and what its series looks like.
fn known(pass: &Pass) -> String {
    let width = half_width(pass).map(|width| {
        let ended = match pass.ended {
            Ended::Time => "ended by its time",
            Ended::Enough => "ended when that was known",
            Ended::Bytes => "ended by its bytes",
            Ended::Peer => "ended by the other end",
            Ended::Stopped => "interrupted",
        };
        format!("{width} at 95 % confidence, {ended}")
    });
    let held = pass.limits.measured().map(limits);
    let odd = pass.sender.measured().map(|stats| disorder(stats)).filter(|text| !text.is_empty());
    let parts = [width, held, odd, shape(&pass.shape)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// What held the sender back, in words.
fn limits(shares: &LimitShares) -> String {
    let parts = [
        ("the receiver's window", shares.receiver),
        ("its own send buffer", shares.send_buffer),
        ("the sending program", shares.application),
    ];
    let known = parts.iter().filter(|(_, share)| share.is_finite() && *share >= SOME);
    let told: Vec<_> = known.map(|(what, share)| format!("by {what} for {}", percent(*share))).collect();
    if told.is_empty() {
        format!("the network set the pace for {} of the time", percent(shares.network.max(0.0)))
    } else {
        format!("held back {} of the time, by the network for the rest", told.join(", "))
    }
}

/// What arrived out of order, twice, or marked.
fn disorder(stats: &[TcpStats]) -> String {
    let sum = |of: &dyn Fn(&TcpStats) -> Option<u32>| stats.iter().filter_map(of).map(u64::from).fold(0, u64::saturating_add);
    let parts = [
        (sum(&|stream| stream.reord_seen), "reordered"),
        (sum(&|stream| stream.dsack_dups), "sent twice without need"),
        (sum(&|stream| stream.delivered_ce), "marked for congestion (ECN)"),
    ];
    parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{what}: {count}")).collect::<Vec<_>>().join(", ")
}

/// Stalls, dips and drift in words; nothing for an even flow.
fn shape(shape: &Shape) -> Option<String> {
    let stall = (shape.empty_bins > 0).then(|| format!("nothing arrived for up to {} at a time", shape.longest_stall_us));
    let dips = shape
        .dips
        .filter(|dips| dips.count > 0)
        .map(|dips| format!("{} dips by {}, one every {}", dips.count, percent(dips.depth), dips.every_us));
    // A drift below 5 % is noise of any host.
    let drift = shape.drift.filter(|drift| drift.is_finite() && drift.abs() >= 0.05);
    let drift = drift.map(|drift| {
        let way = if drift < 0.0 { "fell" } else { "rose" };
        format!("{way} by {} from begin to end", percent(drift.abs()))
    });
    let parts: Vec<_> = [stall, dips, drift].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The rate of each number of streams that was tried.
fn sweep(passes: &DirectionThroughput) -> String {
    if passes.sweep.len() < 2 {
        return String::new();
    }
    let points = passes.sweep.iter().take(32).map(|point| format!("{} → {}", point.streams, point.goodput_bps));
    points.collect::<Vec<_>>().join(" · ")
}

fn both_at_once(section: &ThroughputSection, view: &mut View) {
    let Some(both) = section.both.measured() else { return };
    let mut table = Table::new(&["both at once", "alone", "at once", "of it", "sent again", "loaded RTT"]);
    for direction in Direction::BOTH {
        let alone = section.of(direction).best().map(|pass| pass.goodput_bps);
        let outcome = both.of(direction);
        let show = |f: &dyn Fn(&Pass) -> Option<String>| outcome.measured().and_then(f).unwrap_or_default();
        table.rows.push(vec![
            direction.arrow().to_owned(),
            alone.map(|rate| rate.to_string()).unwrap_or_default(),
            cell(outcome, |pass| pass.goodput_bps.to_string()),
            show(&|pass| {
                let alone = alone.filter(|alone| alone.0 > 0)?;
                Some(percent(pass.goodput_bps.as_f64() / alone.as_f64()))
            }),
            show(&|pass| pass.sender.measured().and_then(|stats| sent_again(stats))),
            show(&|pass| pass.loaded_rtt.measured().map(|rtt| rtt.median_us.to_string())),
        ]);
    }
    view.table(table);
}

/// The idle path beside the loaded one: what queues on the way cost.
fn round_trips(section: &ThroughputSection, all: &[(String, Direction, &Pass)], view: &mut View) {
    let idle = section.idle_rtt.measured();
    let mut facts: Vec<(String, String)> =
        idle.map(|rtt| ("RTT of the idle path".to_owned(), rtt_words(rtt))).into_iter().collect();
    for (name, _, pass) in all {
        // Reports of the first versions tell the median in the table, and nothing more is known.
        let loaded = pass.loaded_rtt.measured().filter(|rtt| rtt.p99_us.is_some());
        facts.extend(loaded.map(|rtt| (format!("RTT beside {name}"), format!("{}{}", rtt_words(rtt), waiting(idle, rtt)))));
    }
    view.facts(facts);
}

fn waiting(idle: Option<&RttSummary>, loaded: &RttSummary) -> String {
    let Some(idle) = idle.filter(|_| loaded.received > 0) else { return String::new() };
    let more = loaded.median_us.0.saturating_sub(idle.median_us.0);
    let words = match more {
        0..1_000 => "no queue to speak of",
        1_000..5_000 => "a short queue",
        5_000..30_000 => "a queue that games and calls notice",
        _ => "a queue that makes everything else on this path wait",
    };
    format!(": {words} ({} more than idle)", crate::units::Elapsed(more))
}

/// What each end paid for the traffic.
fn costs(document: &Document, all: &[(String, Direction, &Pass)], view: &mut View) {
    let mut table = Table::new(&["cost", "host", "own threads", "B/cycle", "whole host", "core carries"]);
    for (name, direction, pass) in all {
        for role in ENDS {
            let sends = direction.sender() == role;
            let cost = if sends { &pass.sender_cost } else { &pass.receiver_cost }.measured();
            let window = match role {
                Role::Pc => pass.cpu_pc.measured(),
                Role::Nas => pass.cpu_nas.measured(),
            };
            // Without the threads' own cost the report is of an earlier version, and the section of processors says the rest.
            if cost.is_none() && pass.half_width.is_none() {
                continue;
            }
            let core = window.and_then(|window| rate_per_core(pass.goodput_bps, window, idle(document, role)));
            let row = [
                thread_cost(cost, pass.bytes),
                cycles(cost, pass.bytes),
                whole_host(host_cost(document, role, pass), cost, pass.bytes),
                core.map(|rate| rate.to_string()),
            ];
            if row.iter().any(Option::is_some) {
                let who = format!("{} {}", role.title(), if sends { "sends" } else { "receives" });
                table.rows.push([name.clone(), who].into_iter().chain(row.map(Option::unwrap_or_default)).collect());
            }
        }
    }
    if !table.rows.is_empty() {
        view.table(table);
        view.note(
            Tone::Plain,
            "Costs are seconds of processor time for each GB (10⁹ bytes): of weaklink's own threads, and of the whole host with the work of its kernel; what other programs were seen to burn is taken off, and what it does at rest where a run looked at that. ≥ stands where a busy host leaves no more than our own threads. What a core carries is the rate over the cores that were busy.",
        );
    }
}

fn per_gb(seconds: f64, bytes: ByteSize) -> Option<String> {
    (bytes.0 > 0 && seconds > 0.0).then(|| format!("{:.2} s/GB", seconds / (bytes.0 as f64 / 1e9)))
}

fn thread_cost(cost: Option<&ThreadCost>, bytes: ByteSize) -> Option<String> {
    per_gb(cost?.cpu_us.seconds(), bytes)
}

fn cycles(cost: Option<&ThreadCost>, bytes: ByteSize) -> Option<String> {
    let cycles = cost?.cycles.filter(|cycles| *cycles > 0)?;
    Some(format!("{:.1}", bytes.0 as f64 / cycles as f64))
}

/// The processor seconds of the whole host for each GB; what it does at rest is taken off where that is known.
fn host_cost(document: &Document, role: Role, pass: &Pass) -> Option<f64> {
    let window = match role {
        Role::Pc => pass.cpu_pc.measured(),
        Role::Nas => pass.cpu_nas.measured(),
    }?;
    let rate = pass.goodput_bps.bytes().0 as f64 / 1e9;
    let cores = window.caused_cores(idle(document, role));
    (rate > 0.0 && cores > 0.0).then(|| cores / rate)
}

/// The whole host's cost beside that of our own threads, which are a part of it. Where what a busy host did at rest takes off more than the
/// others did meanwhile, no figure of the whole is left.
fn whole_host(whole: Option<f64>, own: Option<&ThreadCost>, bytes: ByteSize) -> Option<String> {
    let own = own.filter(|_| bytes.0 > 0).map_or(0.0, |own| own.cpu_us.seconds() / (bytes.0 as f64 / 1e9));
    match whole {
        Some(whole) if whole >= own => Some(format!("{whole:.2} s/GB")),
        _ if own > 0.0 && whole.is_some() => Some(format!("≥ {own:.1} s/GB")),
        _ => None,
    }
}

/// What a host does at rest, where a run has looked.
fn idle(document: &Document, role: Role) -> Option<&CpuWindow> {
    document.measurements.cpu.measured()?.of(role).measured()?.idle.measured()
}

/// Equal texts once, with the steps that they belong to where there are several texts.
pub(super) fn once(label: &str, told: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    let mut found: Vec<(Vec<String>, String)> = Vec::new();
    for (name, text) in told.filter(|(_, text)| !text.is_empty()) {
        match found.iter_mut().find(|(_, known)| *known == text) {
            Some((names, _)) => names.push(name),
            None => found.push((vec![name], text)),
        }
    }
    let alone = found.len() == 1;
    let line = |(names, text): (Vec<String>, String)| {
        (label.to_owned(), if alone { text } else { format!("{}: {text}", names.join("; ")) })
    };
    found.into_iter().map(line).collect()
}

/// How a pass was made, where more is known than the table has.
fn sent_by(pass: &Pass) -> String {
    end_by(&pass.method.send, &pass.method.send_trials, &pass.method.sender_sockets)
}

fn received_by(pass: &Pass) -> String {
    end_by(&pass.method.receive, &pass.method.receive_trials, &pass.method.receiver_sockets)
}

fn end_by(way: &str, trials: &[MethodTrial], sockets: &SocketFacts) -> String {
    let parts = [tried(trials), granted(sockets)].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>();
    if parts.is_empty() { String::new() } else { format!("{way}; {}", parts.join("; ")) }
}

fn tried(trials: &[MethodTrial]) -> String {
    let one = |trial: &MethodTrial| match &trial.refused {
        Some(why) => format!("{} refused ({})", trial.method, why.trim()),
        None => format!("{} {} at {:.2} s/GB", trial.method, trial.rate_bps, trial.cpu_s_per_gb),
    };
    let all: Vec<_> = trials.iter().take(8).map(one).collect();
    if all.is_empty() { String::new() } else { format!("tried before: {}", all.join(", ")) }
}

fn granted(sockets: &SocketFacts) -> String {
    let parts = [
        sockets.buffer_bytes.map(|bytes| format!("buffer {bytes}")),
        sockets.pacing_bps.map(|rate| format!("paced to {rate} a stream")),
        sockets.dscp.map(|dscp| format!("DSCP {dscp}")),
    ];
    let mut all: Vec<_> = parts.into_iter().flatten().collect();
    all.extend(sockets.refused.iter().take(8).map(|why| format!("refused: {}", why.trim())));
    all.join(", ")
}
