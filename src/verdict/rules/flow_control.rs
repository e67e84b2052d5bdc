//! Pause frames that hold a sender back.

use super::super::counted::counted;
use super::super::limits;
use super::super::phases::{SlowCopy, slow_copies};
use super::super::seen::Seen;
use super::super::words::bytes;
use super::list::{Explains, Hit, Rule, RuleDoc};
use super::stalls::rhythm;
use crate::model::counter::{Meaning, Tells};
use crate::model::finding::Where;
use crate::model::{Direction, Role};

const CODE: &str = "network.flow-control";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "Pause frames throttle the sender",
        meaning: "A port asks its partner to stop sending, again and again. Nothing is lost, every drop counter stays zero, and the sender just looks slow.",
        detected: "Pause counters that grew during a pass that stayed below the line, or during a copy that fell behind what lies below it, told apart by who sent the pauses.",
        fix: "Mend what is slow behind the port that sends pauses (host, bus, slower uplink), or turn flow control off on it and compare.",
    },
    check,
}];

fn received(meaning: Meaning) -> bool {
    meaning.tells == Tells::PauseReceived
}

fn sent(meaning: Meaning) -> bool {
    meaning.tells == Tells::PauseSent
}

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    let mut hits = Vec::new();
    for direction in Direction::BOTH {
        let mut pass = paused(seen, direction);
        for (told, hit) in in_copies(seen, direction) {
            match &mut pass {
                // The same pauses slow the pass already.
                Some(pass) => pass.evidence.push(told),
                None => hits.push(hit),
            }
        }
        hits.extend(pass);
    }
    hits
}

pub(super) fn paused(seen: &Seen<'_>, direction: Direction) -> Option<Hit> {
    let way = seen.way(direction);
    let pass = way.best.filter(|_| way.gap())?;
    let enough = |grown: u64| grown as f64 >= limits::PAUSE_PER_SECOND * pass.elapsed_us.seconds().max(1.0);
    let (from, to) = (direction.sender(), direction.receiver());
    let (at_sender, at_receiver) = (counted(seen, pass, from), counted(seen, pass, to));
    let (asked, asks) = (at_sender.most(received), at_receiver.most(sent));
    let in_brackets = |counters: Option<String>| counters.map(|names| format!(" ({names})")).unwrap_or_default();
    let (place, evidence) = if enough(asks) {
        let names = in_brackets(at_receiver.names(sent));
        (Where::from(to), format!("{}: the {} sent {asks} pause frames during the pass{names}.", direction.arrow(), to.title()))
    } else if enough(asked) {
        let (names, who) = (in_brackets(at_sender.names(received)), partner(seen, from));
        (
            Where::Path,
            format!("{}: the {} was paused {asked} times during the pass{names}, by {who}.", direction.arrow(), from.title()),
        )
    } else {
        return None;
    };
    let both = enough(asks) && enough(asked);
    Some(
        Hit::tcp(CODE, place, direction)
            .weight(0.72, 1 + u32::from(both))
            .shows(evidence)
            .also(way.wire.map(|wire| format!("{} arrive, the wire could carry {wire}.", pass.goodput_bps)))
            .noting(at_receiver.overrun(pass).map(|lost| lost.words(to)))
            .noting(rhythm(pass))
            .advise("Look for what is slow behind the port that sends the pauses; turn flow control off there and compare."),
    )
}

/// Pauses during copies that fall behind, in words and as an explanation of their own.
fn in_copies(seen: &Seen<'_>, direction: Direction) -> Vec<(String, Hit)> {
    let (from, to) = (direction.sender(), direction.receiver());
    let one = |copy: SlowCopy<'_>| {
        let enough = |grown: u64| grown as f64 >= limits::PAUSE_PER_SECOND * copy.phase.elapsed().seconds().max(1.0);
        let (at_sender, at_receiver) = (copy.phase.counted(seen, from), copy.phase.counted(seen, to));
        let (asked, asks) = (at_sender.most(received), at_receiver.most(sent));
        let in_brackets = |counters: Option<String>| counters.map(|names| format!(" ({names})")).unwrap_or_default();
        let (place, told) = if enough(asks) {
            let names = in_brackets(at_receiver.names(sent));
            (Where::from(to), format!("The {} sent {asks} pause frames during {}{names}.", to.title(), copy.phase.words))
        } else if enough(asked) {
            let (names, who) = (in_brackets(at_sender.names(received)), partner(seen, from));
            let told = format!("The {} was paused {asked} times during {}{names}, by {who}.", from.title(), copy.phase.words);
            (Where::Path, told)
        } else {
            return None;
        };
        let step = copy.step;
        let hit = Hit::new(CODE, place, Explains::large_files(seen, direction, step.kind))
            .towards(direction)
            .lane(step.kind)
            // Whoever is too busy to take files asks for pauses as well: a full process or core explains more.
            .weight(0.62, 1)
            .relieved(Some(step.expected))
            .shows(told.clone())
            .shows(format!("It moves {}, what lies below it {}.", bytes(step.rate), bytes(step.expected)))
            .noting(at_receiver.overrun_of(step.copied.bytes).map(|lost| lost.words(to)))
            .advise("Look for what is slow behind the port that sends the pauses; turn flow control off there and compare.");
        Some((told, hit))
    };
    slow_copies(seen, direction).into_iter().filter_map(one).collect()
}

/// Who sends pauses to a port: the device at the other end of its cable, by name where it told one.
fn partner(seen: &Seen<'_>, role: Role) -> String {
    let heard = seen.end(role).link.and_then(|link| link.neighbours.measured()).into_iter().flatten();
    let name = heard.filter_map(|neighbour| neighbour.system.as_deref()).find(|name| !name.is_empty());
    let cable = format!("the device at the other end of the {}'s cable", role.title());
    name.map_or(cable.clone(), |name| format!("{cable} ({name})"))
}
