//! A link that goes down and comes back.

use std::collections::{BTreeSet, HashSet};

use super::super::counted::{Counted, counted, watched};
use super::super::limits;
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
        detected: "The kernel's count of carrier changes, or the driver's of broken links, that grew during a pass or a watch by two times down or three changes; or three breaks within ten minutes in the kernel's log. Breaks in the last ten minutes before the run count as a fault, older ones are information. A single break, and those of the first minute after the start of the system, are ordinary.",
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
    let told = [during(seen, role), while_watched(seen, role), before(seen, role)];
    let mut told: Vec<Hit> = told.into_iter().flatten().collect();
    let at = told.iter().position(|hit| hit.explains != Explains::Info).unwrap_or(0);
    (at < told.len()).then(|| told.swap_remove(at))
}

/// A port that stood still until its driver started it anew: the driver, its firmware, or the card.
fn hung(seen: &Seen<'_>, role: Role) -> Option<Hit> {
    let timeout = |meaning: Meaning| meaning.tells == Tells::TxTimeout;
    let passes = seen.ways.iter().flat_map(|way| way.single.into_iter().chain(way.multi));
    let hit = |explains| {
        Hit::new(DRIVER, role, explains)
            .weight(0.82, 1)
            .titled(format!("The {}'s port stood still and its driver had to start it anew", role.title()))
            .advise(
                "Update the driver and the firmware of the card; until then try it without offloads and without power saving.",
            )
    };
    if let Some(names) = passes.map(|pass| counted(seen, pass, role)).find_map(|counted| counted.names(timeout)) {
        return Some(hit(Explains::Fault).shows(format!("The transmitter stood still during a pass ({names}).")));
    }
    let told = |event: &&LinkEvent| matches!(event.kind, EventKind::TxTimeout | EventKind::Reset | EventKind::Overheated);
    let event = seen.end(role).events().into_iter().rev().find(told)?;
    let ago = event.before_us.filter(|ago| ago.0 <= limits::NEWS_US)?;
    let explains = if ago.0 <= limits::FLAP_WINDOW_US { Explains::Fault } else { Explains::Info };
    Some(hit(explains).shows(format!("The kernel's log, {} before the run: {}", span(ago), event.text)))
}

fn broke(meaning: Meaning) -> bool {
    matches!(meaning.tells, Tells::LinkDown | Tells::LinkChange)
}

/// Whether counters tell of more than one cable that was plugged or pulled: that moves the count of changes by two at most.
fn again(counted: &Counted<'_>) -> bool {
    let most = |tells| counted.most(|meaning: Meaning| meaning.tells == tells);
    most(Tells::LinkDown) >= DOWNS || most(Tells::LinkChange) >= CHANGES
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
/// Fewer changes of the carrier than this are one break: down, and up again.
const CHANGES: u64 = 3;
const ADVICE: &str = "Replace the cable at this end, then try another switch port; measure again once the link holds.";

/// Breaks during a pass, by the ports' counters.
fn during(seen: &Seen<'_>, role: Role) -> Option<Hit> {
    let passes = seen.ways.iter().flat_map(|way| way.single.into_iter().chain(way.multi).map(move |pass| (way, pass)));
    let counted = passes.map(|(way, pass)| (way, counted(seen, pass, role))).filter(|(_, counted)| counted.most(broke) > 0);
    let (way, counted) = counted.max_by_key(|(_, counted)| counted.most(broke))?;
    let names = counted.names(broke).unwrap_or_default();
    if !again(&counted) {
        let arrow = way.direction.arrow();
        return Some(once(role).shows(format!(
            "The {}'s link changed once while {arrow} was measured ({names}): the figures of that direction may be too low.",
            role.title()
        )));
    }
    let slow = seen.ways.iter().any(super::super::seen::Way::gap);
    let hit = Hit::new(CODE, role, if slow { Explains::Network } else { Explains::Fault })
        .weight(0.94, 2)
        .shows(format!(
            "The {}'s link changed while {} was measured ({}): the figures of this run are not worth much.",
            role.title(),
            way.direction.arrow(),
            names
        ))
        .advise(ADVICE);
    Some(hit.also(log_of(seen, role).map(|burst| burst.words(role))))
}

/// Breaks while the counters were only watched.
fn while_watched(seen: &Seen<'_>, role: Role) -> Option<Hit> {
    let (counted, time) = watched(seen, role)?;
    let names = counted.names(broke)?;
    if !again(&counted) {
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
    let recent = burst.ago.is_some_and(|ago| ago.0 <= limits::FLAP_WINDOW_US);
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
    bursts.min_by_key(|burst| burst.ago.unwrap_or(Elapsed(u64::MAX)))
}

fn burst<'a>(events: &[&'a LinkEvent], interface: &'a str) -> Option<Burst<'a>> {
    let settled = |event: &&LinkEvent| event.at_us.is_some_and(|at| at.0 >= limits::SETTLED_US);
    let breaks: Vec<(Elapsed, Option<Elapsed>)> = LinkEvent::breaks(events.iter().copied(), interface)
        .filter(settled)
        .filter_map(|event| Some((event.at_us?, event.before_us)))
        .collect();
    let (last, ago) = *breaks.iter().rev().find(|(at, _)| in_window(&breaks, *at).count() >= limits::FLAPS)?;
    let window = || in_window(&breaks, last);
    let first = window().map(|(at, _)| *at).min()?;
    Some(Burst { interface, count: window().count(), within: Elapsed(last.0.saturating_sub(first.0)), ago })
}

/// The breaks of the time that ends at `last`.
fn in_window(breaks: &[(Elapsed, Option<Elapsed>)], last: Elapsed) -> impl Iterator<Item = &(Elapsed, Option<Elapsed>)> {
    let from = last.0.saturating_sub(limits::FLAP_WINDOW_US);
    breaks.iter().filter(move |(at, _)| (from..=last.0).contains(&at.0))
}

impl Burst<'_> {
    fn words(&self, role: Role) -> String {
        let ago = self.ago.map(|ago| format!(", the last one {} before the run", span(ago))).unwrap_or_default();
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
