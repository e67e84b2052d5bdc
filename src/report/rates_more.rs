//! Raw rates beside the ordinary passes: congestion controls, datagrams, several PCs.

use super::machines::cell;
use super::network::sent_again;
use super::view::{Table, Tone, View, percent};
use crate::model::plan::ThroughputPlan;
use crate::model::throughput::{FarEnd, ThroughputSection};
use crate::model::together::Together;
use crate::model::udp::{UdpDirection, UdpPass};
use crate::model::{Direction, Outcome};
use crate::units::{BitRate, Elapsed};

/// The members of a group that have a row; a test with more is no test at home.
const MAX_MEMBERS: usize = 32;

/// The members that the first screen has room for.
pub(super) const FIRST_MEMBERS: usize = 8;

/// What each congestion control gave.
pub(super) fn congestion(section: &ThroughputSection, view: &mut View) {
    let mut table = Table::new(&["control", "ran", "goodput", "sent again", "loaded RTT"]);
    for trial in section.congestion.measured().into_iter().flatten() {
        let pass = trial.pass.measured();
        let ran = pass.and_then(|pass| pass.method.congestion.clone());
        table.rows.push(vec![
            format!("{} {}", trial.direction.arrow(), trial.congestion),
            ran.filter(|ran| *ran != trial.congestion).unwrap_or_default(),
            cell(&trial.pass, |pass| pass.goodput_bps.to_string()),
            pass.and_then(|pass| pass.sender.measured()).and_then(|stats| sent_again(stats)).unwrap_or_default(),
            pass.and_then(|pass| pass.loaded_rtt.measured()).map(|rtt| rtt.median_us.to_string()).unwrap_or_default(),
        ]);
    }
    view.table(table);
}

fn directions(section: &ThroughputSection) -> impl Iterator<Item = (Direction, &UdpDirection)> {
    let udp = section.udp.measured();
    Direction::BOTH.into_iter().filter_map(move |way| Some((way, udp?.of(way).measured()?)))
}

/// What TCP can have of the line in a direction, where a port or the user tells its speed.
type Line<'a> = &'a dyn Fn(Direction) -> Option<BitRate>;

/// One sentence for each direction: where loss begins.
pub(super) fn udp_summary(section: &ThroughputSection, wire: Line<'_>, view: &mut View) {
    for (way, udp) in directions(section) {
        let why = full(section, wire(way), way, udp).unwrap_or_else(|| udp.ended_because.trim().trim_end_matches('.').to_owned());
        let words = loss_words(udp, &why, totals_only(section) && way == Direction::Upload);
        view.note(Tone::Plain, format!("UDP {}: {words}", way.arrow()));
    }
    let failed = Direction::BOTH.into_iter().filter_map(|way| match section.udp.measured()?.of(way) {
        Outcome::Failed(why) => Some((way, why)),
        _ => None,
    });
    for (way, why) in failed {
        view.note(Tone::Warning, format!("UDP {} could not be measured: {}", way.arrow(), why.reason.trim()));
    }
}

/// Whether nobody told more of the datagrams than how many arrived, and how evenly.
fn totals_only(section: &ThroughputSection) -> bool {
    section.far_end == FarEnd::Iperf3Server
}

/// Of the line, or of what TCP carries there, so much is all of it: headers of datagrams and of TCP differ by less.
const ALL_OF_IT: f64 = 0.98;

/// Why no more was sent, where that is no want of the sender: the line is full, or the port's own queue.
fn full(section: &ThroughputSection, wire: Option<BitRate>, way: Direction, udp: &UdpDirection) -> Option<String> {
    // Where loss was found it says where the limit is.
    let most = udp.passes.iter().map(|pass| pass.received_bps).max().filter(|_| udp.loss_from_bps.is_none())?;
    let all = |rate: BitRate| rate.0 > 0 && most.as_f64() >= ALL_OF_IT * rate.as_f64();
    let refused = udp.passes.last().is_some_and(|pass| pass.refused > 0);
    if wire.is_some_and(all) {
        Some("the line is full".to_owned())
    } else if section.of(way).best().map(|pass| pass.goodput_bps).is_some_and(all) {
        Some("TCP carries no more there, either".to_owned())
    } else {
        refused.then(|| format!("the {}'s own port took no more: its queue was full", way.sender().title()))
    }
}

/// What one rate gave.
fn one_rate(pass: &UdpPass) -> String {
    let missed = pass.missed_bps().map_or_else(String::new, |asked| format!(" ({asked} asked, which the sender did not reach)"));
    let lost = match pass.lost {
        0 => "no datagram was lost".to_owned(),
        lost => format!("{} of the datagrams were lost", percent(lost as f64 / pass.sent.max(1) as f64)),
    };
    let queued = if pass.queued() { ", and the rest waited in a queue meanwhile" } else { "" };
    format!("at {}{missed} {lost}; {} = {} arrived{queued}.", pass.rate_bps(), pass.received_bps, pass.received_bps.bytes())
}

/// One direction; `why` no higher rate was tried, and `order_unknown` where the receiver does not tell what came late.
fn loss_words(udp: &UdpDirection, why: &str, order_unknown: bool) -> String {
    let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
    let clean = udp.clean_bps.map(|rate| format!("{rate} = {}", rate.bytes()));
    let at = |rate: BitRate| udp.passes.iter().find(|pass| pass.asked_bps == rate || pass.sent_bps == rate);
    let lost = |rate: BitRate| {
        at(rate).map_or_else(String::new, |pass| format!(" ({} lost)", percent(pass.lost as f64 / pass.sent.max(1) as f64)))
    };
    let higher = udp.passes.iter().any(|pass| udp.clean_bps.is_some_and(|clean| pass.received_bps > clean));
    let seen = udp.clean_bps.or(udp.loss_from_bps).and_then(at).map_or_else(String::new, |pass| {
        let order = match pass.reordered {
            0 if order_unknown => "order not told".to_owned(),
            0 => "nothing out of order".to_owned(),
            1 => "1 datagram out of order".to_owned(),
            many => format!("{many} datagrams out of order"),
        };
        format!(" There: jitter {}, {order}.", pass.jitter_us)
    });
    let words = match (clean, udp.loss_from_bps) {
        (Some(clean), Some(from)) => format!("no loss up to {clean}; loss begins at {from}{}.", lost(from)),
        (None, Some(from)) => format!("loss already at {from}{}, the lowest rate that was tried.", lost(from)),
        (Some(clean), None) if higher => format!("no loss up to {clean}{why}."),
        (Some(clean), None) => format!("no loss up to {clean}; no higher rate was tried{why}."),
        (None, None) => format!("no rate passed{why}."),
    };
    udp.only().map_or(words, one_rate) + &seen
}

/// Each rate that was tried.
pub(super) fn udp(section: &ThroughputSection, view: &mut View) {
    for (way, udp) in directions(section) {
        let title = format!("UDP {}", way.arrow());
        let mut table = Table::new(&[&title, "arrived", "lost", "receiver", "jitter", "queue", "at 99 %"]);
        table.rows.extend(udp.passes.iter().map(|pass| pass_row(pass, totals_only(section))));
        view.table(table);
        let sum = |of: fn(&UdpPass) -> u64| udp.passes.iter().map(of).fold(0, u64::saturating_add);
        let longest = udp.passes.iter().map(|pass| pass.longest_loss).max().unwrap_or(0);
        let odd = [
            (sum(|pass| pass.reordered), "reordered"),
            (sum(|pass| pass.duplicates), "arrived twice"),
            (longest, "longest run of losses"),
        ];
        let odd: Vec<_> = odd.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{what}: {count}")).collect();
        let ways = format!("{} bytes of payload each, sent by {}, received by {}", udp.datagram_bytes, udp.send, udp.receive);
        view.facts(vec![("datagrams".to_owned(), ways), ("out of order".to_owned(), odd.join(" · "))]);
    }
    if directions(section).next().is_some() {
        view.note(
            Tone::Plain,
            "lost: by the network. receiver: dropped by the receiver's own kernel. queue: the wait on the way, median and at 99 %.",
        );
    }
}

fn pass_row(pass: &UdpPass, totals_only: bool) -> Vec<String> {
    let share = |part: u64| percent(part as f64 / pass.sent.max(1) as f64);
    let behind = pass.missed_bps().map_or_else(String::new, |asked| format!(" of {asked}"));
    // A wait needs the time of each datagram at both ends.
    let queue = |wait: Elapsed| if totals_only { "not told".to_owned() } else { wait.to_string() };
    vec![
        format!("{} sent{behind}", pass.sent_bps),
        pass.received_bps.to_string(),
        percent(pass.network_loss()),
        match &pass.dropped_by_receiver {
            Outcome::Measured(own) => share(*own),
            Outcome::Skipped(_) | Outcome::Failed(_) => "not told".to_owned(),
        },
        pass.jitter_us.to_string(),
        queue(pass.queue_median_us),
        queue(pass.queue_p99_us),
    ]
}

/// The PCs of the group, so many of them.
pub(super) fn together(section: &ThroughputSection, most: usize, view: &mut View) {
    let Some(all) = section.together.measured().filter(|all| !all.members.is_empty()) else { return };
    for direction in Direction::BOTH {
        view.table(at_once(all, direction, most));
    }
    let facts = Direction::BOTH.iter().map(|way| (format!("shared {}", way.arrow()), fairness(all, *way)));
    view.facts(facts.collect());
    if let Some(why) = &all.ended {
        view.note(Tone::Warning, format!("The group ended before all was measured: {}", why.trim()));
    }
    let more = all.members.len().saturating_sub(most);
    if more > 0 {
        view.note(Tone::Plain, format!("{more} more PCs are in the details."));
    }
}

/// The PCs in one direction; no rows where nobody measured it.
fn at_once(all: &Together, direction: Direction, most: usize) -> Table {
    let mut table = Table::new(&[direction.arrow(), "address", "alone", "at once"]);
    for (number, member) in all.members.iter().enumerate().take(most.min(MAX_MEMBERS)) {
        let own = if u32::try_from(number) == Ok(all.own) { ", this PC" } else { "" };
        let (alone, together) = (member.alone.of(direction), member.together.of(direction));
        let failed = if alone.is_some() { "failed" } else { "" };
        table.rows.push(vec![
            format!("PC {}{own}", number + 1),
            member.address.clone(),
            alone.map(|rate| rate.to_string()).unwrap_or_default(),
            together.map_or_else(|| failed.to_owned(), |rate| rate.to_string()),
        ]);
    }
    if table.rows.iter().all(|row| row.iter().skip(2).all(String::is_empty)) {
        return Table::default();
    }
    let sum = all.sum(direction).map(|sum| sum.to_string()).unwrap_or_default();
    table.rows.push(vec!["sum".to_owned(), String::new(), String::new(), sum]);
    table
}

/// Whether the first screen has no room for all PCs.
pub(super) fn crowded(section: &ThroughputSection) -> bool {
    section.together.measured().is_some_and(|all| all.members.len() > FIRST_MEMBERS)
}

fn fairness(all: &Together, direction: Direction) -> String {
    // Jain's index: of two, 1:2 gives 0.9 and 1:3 gives 0.8.
    let words = |index: f64| match index {
        index if index >= 0.95 => "evenly",
        index if index >= 0.8 => "fairly evenly",
        _ => "unevenly",
    };
    let told = all.fairness(direction).map(|index| format!("{} (fairness {index:.2}; 1 is even)", words(index)));
    let own_limit = || match all.losers(direction)?.as_slice() {
        [] => Some("each PC gets what it gets alone".to_owned()),
        [one] => Some(format!("only {} gets less than alone; the others are at their own limit", all.title(*one))),
        _ => None,
    };
    told.or_else(own_limit).unwrap_or_default()
}

/// What was asked of the test, where it was more than the ordinary one.
pub(super) fn asked(plan: &ThroughputPlan) -> String {
    let options = &plan.options;
    let ways = match plan.ways {
        crate::model::plan::Ways::All => None,
        crate::model::plan::Ways::Upload => Some(format!("{} only", Direction::Upload.arrow())),
        crate::model::plan::Ways::Download => Some(format!("{} only", Direction::Download.arrow())),
        crate::model::plan::Ways::Both => Some("both directions at once only".to_owned()),
    };
    let udp = plan.udp.as_ref().map(|udp| {
        let rate = udp.rate_bps.map_or_else(|| ", the rate at which loss begins".to_owned(), |rate| format!(" at {rate}"));
        format!("UDP{rate}{}", udp.datagram_bytes.map(|bytes| format!(", datagrams of {bytes} bytes")).unwrap_or_default())
    });
    let list = |names: &[String]| names.iter().take(8).cloned().collect::<Vec<_>>().join(", ");
    let parts = [
        ways,
        plan.streams.map(|streams| if streams == 1 { "1 stream".to_owned() } else { format!("{streams} streams") }),
        plan.time_us.map(|time| format!("{time} for each pass")),
        plan.mss_bytes.map(|bytes| format!("segments of {bytes} bytes")),
        options.max_bytes.map(|bytes| format!("{bytes} for each pass")),
        options.window_bytes.map(|bytes| format!("socket buffers of {}", crate::units::ByteSize(u64::from(bytes)))),
        options.pacing_bps.map(|rate| format!("a pace of {rate} for each stream")),
        options.dscp.map(|dscp| format!("DSCP {dscp}")),
        options.congestion.as_ref().map(|name| format!("congestion control {name}")),
        options.copies.then(|| "ordinary copies".to_owned()),
        (plan.congestion.len() > 1).then(|| format!("congestion controls {}", list(&plan.congestion))),
        udp,
        plan.together.as_ref().map(|group| format!("{} PCs together as “{}”", group.members, group.name)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
#[path = "rates_more_tests.rs"]
mod tests;
