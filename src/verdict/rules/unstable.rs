//! A link that goes down and comes back.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::super::counted::{Counted, counted, watched};
use super::super::limits;
use super::super::phases::{everywhere, phases};
use super::super::seen::Seen;
use super::list::{Explains, Hit, Rule, RuleDoc};
use crate::model::Role;
use crate::model::counter::{Meaning, Tells};
use crate::model::link_event::{EventKind, LinkEvent};
use crate::units::Elapsed;

const CODE: &str = "network.link-unstable";
const DRIVER: &str = "network.nic-driver-or-offload";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "The link goes down again and again",
        meaning: "The cable's link breaks and is negotiated anew, for seconds each time; everything on it stalls meanwhile. While that goes on, no figure of this run is worth much.",
        detected: "The kernel's count of carrier changes, or the driver's of broken links, that grew during passes, copies, disk tests or a watch by two times down or three changes; two breaks or another speed in the kernel's log during the run; or three breaks within ten minutes there. Breaks in the last ten minutes before the run count as a fault, older ones are information. A single break, and those of the first minute after the start of the system, are ordinary.",
        fix: "Replace the cable, then try another port of the switch, then turn Energy-Efficient Ethernet off at both ends; for a USB adapter another socket and no hub. Measure again once the link holds.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    let of = |role| [breaks(seen, role), hung(seen, role)];
    [Role::Pc, Role::Nas].into_iter().flat_map(of).flatten().collect()
}

/// What is told of broken links: a fault before what is only worth a word.
fn breaks(seen: &Seen<'_>, role: Role) -> Option<Hit> {
    let told = [other_speed(seen, role), during(seen, role), while_watched(seen, role), before(seen, role)];
    let mut told: Vec<Hit> = told.into_iter().flatten().collect();
    let at = told.iter().position(|hit| hit.explains != Explains::Info).unwrap_or(0);
    (at < told.len()).then(|| told.swap_remove(at))
}

/// A port that stood still until its driver started it anew: the driver, its firmware, or the card.
fn hung(seen: &Seen<'_>, role: Role) -> Option<Hit> {
    let timeout = |meaning: Meaning| meaning.tells == Tells::TxTimeout;
    let hit = |explains| {
        Hit::new(DRIVER, role, explains)
            .weight(0.82, 1)
            .titled(format!("The {}'s port stood still and its driver had to start it anew", role.title()))
            .advise(
                "Update the driver and the firmware of the card; until then try it without offloads and without power saving.",
            )
    };
    let stood = everywhere(seen, role).find_map(|(during, counted)| counted.names(timeout).map(|names| (during, names)));
    if let Some((during, names)) = stood {
        return Some(hit(Explains::Fault).shows(format!("The transmitter stood still during {during} ({names}).")));
    }
    let told = |event: &&LinkEvent| matches!(event.kind, EventKind::TxTimeout | EventKind::Reset | EventKind::Overheated);
    let event = seen.end(role).events().into_iter().rev().find(told)?;
    let since = event.into_run_us.map_or(event.before_us, |_| Some(Elapsed(0))).filter(|ago| ago.0 <= limits::NEWS_US)?;
    let explains = if since.0 <= limits::FLAP_WINDOW_US { Explains::Fault } else { Explains::Info };
    Some(hit(explains).shows(format!("The kernel's log{}: {}", when(event), event.text)))
}

/// When a line of the log was written: `, 12 s into the run`; nothing where that is not known.
pub(super) fn when(event: &LinkEvent) -> String {
    match (event.into_run_us, event.before_us) {
        (Some(into), _) => format!(", {} into the run", span(into)),
        (None, Some(ago)) => format!(", {} before the run", span(ago)),
        (None, None) => String::new(),
    }
}

fn broke(meaning: Meaning) -> bool {
    matches!(meaning.tells, Tells::LinkDown | Tells::LinkChange)
}

/// Whether counters tell of more than one cable that was plugged or pulled: that moves the count of changes by two at most.
fn again<'a>(counted: impl IntoIterator<Item = &'a Counted<'a>>) -> bool {
    // Phases stand one after the other: what the same counter counted in several of them adds up.
    let mut sums: BTreeMap<(bool, String, String), u64> = BTreeMap::new();
    for counted in counted {
        for (downs, tells) in [(true, Tells::LinkDown), (false, Tells::LinkChange)] {
            for ((interface, counter), grown) in counted.each(|meaning: Meaning| meaning.tells == tells) {
                let sum = sums.entry((downs, interface.to_owned(), counter.to_owned())).or_default();
                *sum = sum.saturating_add(grown);
            }
        }
    }
    sums.iter().any(|((downs, ..), sum)| *sum >= if *downs { DOWNS } else { CHANGES })
}

/// A hit about a link that changed once.
fn once(role: Role) -> Hit {
    Hit::new(CODE, role, Explains::Info)
        .weight(0.6, 1)
        .titled(format!("The {}'s link changed once", role.title()))
        .advise("If nobody plugged a cable or started the port anew just then, measure again and see whether it comes back.")
}

/// Fewer times down than this are one break: somebody plugs or sets something.
const DOWNS: u64 = 2;
/// The most phases that a sentence names.
const MOST_PHASES: usize = 3;
/// The most moments that a sentence names.
const MOST_MOMENTS: usize = 6;
/// The most interfaces of one end that are looked at one by one.
const MOST_PORTS: usize = 64;
/// Fewer changes of the carrier than this are one break: down, and up again.
const CHANGES: u64 = 3;
const ADVICE: &str = "Replace the cable at this end, then try another switch port; measure again once the link holds.";

/// Breaks during the run: by the kernel's log, which tells the moment, and by the ports' counters, which tell the phase.
fn during(seen: &Seen<'_>, role: Role) -> Option<Hit> {
    let logged = in_run(seen, role);
    let passes = seen.ways.iter().flat_map(|way| way.single.into_iter().chain(way.multi).map(move |pass| (way, pass)));
    let passes = passes.map(|(way, pass)| (format!("{} was measured", way.direction.arrow()), counted(seen, pass, role)));
    let others = phases(seen).into_iter().map(|phase| (format!("{} ran", phase.words), phase.counted(seen, role)));
    let counted: Vec<(String, Counted<'_>)> = passes.chain(others).filter(|(_, counted)| counted.most(broke) > 0).collect();
    let by_log = logged.as_ref().map(|logged| logged.words(role));
    let often = logged.as_ref().is_some_and(|logged| logged.moments.len() as u64 >= DOWNS)
        || again(counted.iter().map(|(_, counted)| counted));
    let by_counters = in_phases(role, &counted, often);
    if by_log.is_none() && by_counters.is_none() {
        return None;
    }
    if !often {
        let told = [by_log, by_counters].into_iter().flatten();
        let hit = told.fold(once(role), Hit::shows);
        return Some(hit.shows("The figures of that time may be too low."));
    }
    let slow = seen.ways.iter().any(super::super::seen::Way::gap);
    let hit = Hit::new(CODE, role, if slow { Explains::Network } else { Explains::Fault })
        .weight(if by_log.is_some() { 0.96 } else { 0.94 }, 1)
        .also(by_log)
        .also(by_counters)
        .shows("The figures of this run are not worth much.")
        .advise(ADVICE);
    // The run's own breaks are told already; a burst that began earlier is one more kind of evidence.
    let earlier =
        log_of(seen, role).filter(|burst| burst.ago.is_some() || logged.is_none_or(|it| burst.count > it.moments.len()));
    Some(hit.also(earlier.map(|burst| burst.words(role))))
}

/// In which phases the ports counted that the link changed, the one with most first.
fn in_phases(role: Role, counted: &[(String, Counted<'_>)], often: bool) -> Option<String> {
    let mut sorted: Vec<&(String, Counted<'_>)> = counted.iter().collect();
    sorted.sort_by_key(|(_, counted)| std::cmp::Reverse(counted.most(broke)));
    let named = sorted.iter().take(MOST_PHASES).map(|(words, counted)| {
        let names = counted.names(broke).unwrap_or_default();
        format!("while {words} ({names})")
    });
    let named: Vec<String> = named.collect();
    let more = sorted.len().saturating_sub(MOST_PHASES);
    let more = if more > 0 { format!(" and in {more} more phases") } else { String::new() };
    let changed = if often { "changed" } else { "changed once" };
    (!named.is_empty()).then(|| format!("The {}'s link {changed} {}{more}.", role.title(), named.join(", ")))
}

/// The breaks of one port that the kernel's log told of during the run.
struct InRun<'a> {
    interface: &'a str,
    /// How long after the beginning of the run, the first ones; in their order.
    moments: Vec<Elapsed>,
}

/// The breaks of the port that broke most often during the run.
fn in_run<'a>(seen: &Seen<'a>, role: Role) -> Option<InRun<'a>> {
    let events = seen.end(role).events();
    let own = || events.iter().copied().filter(|event| event.into_run_us.is_some());
    let names: BTreeSet<&str> = own().map(|event| event.interface.as_str()).collect();
    let of = |interface| {
        let moments: Vec<Elapsed> = LinkEvent::breaks(own(), interface).filter_map(|event| event.into_run_us).collect();
        InRun { interface, moments }
    };
    let most = names.into_iter().map(of).filter(|it| !it.moments.is_empty());
    most.max_by(|a, b| a.moments.len().cmp(&b.moments.len()).then_with(|| b.interface.cmp(a.interface)))
}

impl InRun<'_> {
    fn words(&self, role: Role) -> String {
        let times = match self.moments.len() {
            1 => "once".to_owned(),
            2 => "twice".to_owned(),
            many => format!("{many} times"),
        };
        format!(
            "The kernel's log of the {}: the link of {} went down {times} during this run, {} into it.",
            role.title(),
            self.interface,
            moments(&self.moments)
        )
    }
}

/// Moments in words: `12 s and 31 s`.
fn moments(all: &[Elapsed]) -> String {
    let shown: Vec<String> = all.iter().take(MOST_MOMENTS).map(|moment| span(*moment)).collect();
    match shown.split_last() {
        Some((last, rest)) if !rest.is_empty() && all.len() == shown.len() => format!("{} and {last}", rest.join(", ")),
        _ if all.len() > shown.len() => format!("{} and later", shown.join(", ")),
        _ => shown.join(", "),
    }
}

/// A link that came back with another speed during the run: what was measured before and after is of two lines.
fn other_speed(seen: &Seen<'_>, role: Role) -> Option<Hit> {
    let link = seen.end(role).link?;
    let events = seen.end(role).events();
    let changed = link.stack.iter().take(MOST_PORTS).find_map(|port| {
        let before = port.speed_bps.measured().map(|fact| fact.value).filter(|rate| rate.0 > 0)?;
        let speed = |event: &&LinkEvent| match event.kind {
            EventKind::Up(Some(rate)) | EventKind::Downshift([_, Some(rate)]) => Some(rate),
            _ => None,
        };
        let own = events.iter().copied().filter(|event| event.interface == port.name && event.into_run_us.is_some());
        let (event, after) = own.filter_map(|event| Some((event, speed(&event)?))).next_back()?;
        (after.0 > 0 && after != before).then_some((port, event, before, after))
    });
    let (port, event, before, after) = changed?;
    let title = format!("The {}'s link came back at another speed during the run", role.title());
    Some(
        Hit::new(CODE, role, Explains::Fault)
            .weight(0.95, 2)
            .titled(title)
            .shows(format!(
                "The {}'s port {} ran at {before} when the run began and came back at {after}{}: {}",
                role.title(),
                port.name,
                when(event),
                event.text
            ))
            .shows("What was measured before and after is of two different lines.")
            .also(in_run(seen, role).map(|logged| logged.words(role)))
            .advise(ADVICE),
    )
}

/// Breaks while the counters were only watched.
fn while_watched(seen: &Seen<'_>, role: Role) -> Option<Hit> {
    let (counted, time) = watched(seen, role)?;
    let names = counted.names(broke)?;
    if !again([&counted]) {
        let told = format!(
            "The {}'s link changed once within the {} in which it was watched ({names}), as when a cable is plugged in.",
            role.title(),
            span(time)
        );
        return Some(once(role).shows(told));
    }
    let hit = Hit::new(CODE, role, Explains::Fault).weight(0.94, 2);
    let hit =
        hit.shows(format!("The {}'s link changed within the {} in which it was watched ({names}).", role.title(), span(time)));
    Some(hit.advise(ADVICE).also(log_of(seen, role).map(|burst| burst.words(role))))
}

/// Breaks before the run, by the kernel's log.
fn before(seen: &Seen<'_>, role: Role) -> Option<Hit> {
    let burst = log_of(seen, role)?;
    let recent = burst.into.is_some() || burst.ago.is_some_and(|ago| ago.0 <= limits::FLAP_WINDOW_US);
    let hit = Hit::new(CODE, role, if recent { Explains::Fault } else { Explains::Info }).weight(0.8, 1).shows(burst.words(role));
    Some(hit.advise(ADVICE))
}

/// Many breaks in a short time.
struct Burst<'a> {
    interface: &'a str,
    /// How many.
    count: usize,
    /// From the first to the last.
    within: Elapsed,
    /// How long before the run the last one was.
    ago: Option<Elapsed>,
    /// How long after the beginning of the run, where it was later.
    into: Option<Elapsed>,
}

/// The burst of breaks that ended last, at any port of one end.
fn log_of<'a>(seen: &Seen<'a>, role: Role) -> Option<Burst<'a>> {
    let link = seen.end(role).link?;
    let events = seen.end(role).events();
    let told: HashSet<&str> = events.iter().map(|event| event.interface.as_str()).collect();
    let ports = link.stack.iter().map(|interface| interface.name.as_str()).filter(|name| told.contains(name));
    // One name is one interface, however often foreign data repeats it.
    let ports: BTreeSet<&str> = ports.collect();
    let bursts = ports.into_iter().filter_map(|name| burst(&events, name));
    bursts.min_by_key(|burst| burst.into.map_or(burst.ago, |_| Some(Elapsed(0))).unwrap_or(Elapsed(u64::MAX)))
}

fn burst<'a>(events: &[&'a LinkEvent], interface: &'a str) -> Option<Burst<'a>> {
    let settled = |event: &&LinkEvent| event.at_us.is_some_and(|at| at.0 >= limits::SETTLED_US);
    let breaks: Vec<(Elapsed, &LinkEvent)> = LinkEvent::breaks(events.iter().copied(), interface)
        .filter(settled)
        .filter_map(|event| Some((event.at_us?, event)))
        .collect();
    let (last, event) = *breaks.iter().rev().find(|(at, _)| in_window(&breaks, *at).count() >= limits::FLAPS)?;
    let window = || in_window(&breaks, last);
    let first = window().map(|(at, _)| *at).min()?;
    let within = Elapsed(last.0.saturating_sub(first.0));
    Some(Burst { interface, count: window().count(), within, ago: event.before_us, into: event.into_run_us })
}

/// The breaks of the time that ends at `last`.
fn in_window<'a>(breaks: &'a [(Elapsed, &'a LinkEvent)], last: Elapsed) -> impl Iterator<Item = &'a (Elapsed, &'a LinkEvent)> {
    let from = last.0.saturating_sub(limits::FLAP_WINDOW_US);
    breaks.iter().filter(move |(at, _)| (from..=last.0).contains(&at.0))
}

impl Burst<'_> {
    fn words(&self, role: Role) -> String {
        let ago = match (self.into, self.ago) {
            (Some(into), _) => format!(", the last one {} into the run", span(into)),
            (None, Some(ago)) => format!(", the last one {} before the run", span(ago)),
            (None, None) => String::new(),
        };
        format!(
            "The kernel's log of the {}: the link of {} broke {} times within {}{ago}.",
            role.title(),
            self.interface,
            self.count,
            span(self.within)
        )
    }
}

/// A span as people say it.
pub(super) fn span(time: Elapsed) -> String {
    let seconds = time.0 / 1_000_000;
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} minutes", seconds / 60),
        7_200..=172_799 => format!("{} hours", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}
