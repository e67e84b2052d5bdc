//! What was counted while disks were tested and files copied, and what the kernel's log told during the run.

use super::links::named;
use super::machines::ENDS;
use super::network::counter_rows;
use super::view::{Table, Tone, View};
use crate::model::copy::{FileSet, LaneKind, Rung};
use crate::model::link_event::LinkEvent;
use crate::model::outcome::Outcome;
use crate::model::phase::PhaseCounters;
use crate::model::{Document, Role};
use crate::units::Elapsed;

/// The most lines of a log that are shown: the first and the last ones of more.
const MOST_LINES: usize = 24;
/// The most rows of counters.
const MOST_ROWS: usize = 48;

/// Errors and drops at the ports during the disk tests and copies; nothing where none grew.
pub(super) fn counters(document: &Document, view: &mut View) {
    let mut table = Table::new(&["during", "interface", "errors and drops"]);
    for (step, counters) in steps(document) {
        for role in ENDS {
            let counted = counters.of(role).measured();
            table.rows.extend(counted.into_iter().flat_map(|all| counter_rows(&step, role, all)));
        }
    }
    if table.rows.is_empty() {
        return;
    }
    view.section("Counted during the disk tests and copies");
    let more = table.rows.len().saturating_sub(MOST_ROWS);
    table.rows.truncate(MOST_ROWS);
    view.table(table);
    if more > 0 {
        view.note(Tone::Plain, format!("{more} more rows stand in --json."));
    }
}

/// Every phase beside the passes, by name, with what was counted in it.
fn steps(document: &Document) -> Vec<(String, &PhaseCounters)> {
    let measured = &document.measurements;
    let storage = measured.storage.measured().and_then(|section| section.counters.as_deref());
    let disks = storage.map(|counters| ("disk tests".to_owned(), counters));
    let lanes = measured.copy.measured().into_iter().flat_map(|section| &section.lanes);
    let rungs = lanes.flat_map(|lane| lane.rungs.iter().map(|rung| (lane.kind, rung)));
    let copies = rungs.filter_map(|(kind, rung)| Some((step(kind, rung), rung.counters.as_deref()?)));
    disks.into_iter().chain(copies).collect()
}

/// A copy as the table of processors calls it.
fn step(kind: LaneKind, rung: &Rung) -> String {
    let small = if rung.files == FileSet::Small { ", small" } else { "" };
    format!("{} {}{small}", kind.word(), rung.direction.arrow())
}

/// What the kernel's logs told of the ports during the run; nothing where they told nothing.
pub(super) fn log(document: &Document, view: &mut View) {
    let Some(section) = document.measurements.link.measured() else { return };
    let mut lines: Vec<(Elapsed, Role, &LinkEvent)> = Vec::new();
    for role in ENDS {
        let events = section.of(role).measured().and_then(|link| link.events.measured()).into_iter().flatten();
        lines.extend(events.filter_map(|event| Some((event.into_run_us?, role, event))));
    }
    if lines.is_empty() {
        return;
    }
    // Each end counts from its own look at its log, within the first second of the run; the order of one end's lines stays.
    lines.sort_by_key(|(into, role, _)| (*into, *role));
    let more = lines.len().saturating_sub(MOST_LINES);
    view.section("The kernel's log during the run");
    let mut table = Table::new(&["after", "interface", "line"]);
    let first = lines.iter().take(if more > 0 { MOST_LINES / 2 } else { MOST_LINES });
    let last = lines.iter().skip(lines.len() - if more > 0 { MOST_LINES / 2 } else { 0 });
    table.rows.extend(
        first
            .chain(last)
            .map(|(into, role, event)| vec![into.to_string(), named(document, *role, &event.interface), event.text.clone()]),
    );
    view.table(table);
    if more > 0 {
        view.note(Tone::Plain, format!("{more} more lines between them stand in --json."));
    }
}

/// When during the run one interface of an end lost its link, for a line of the first screen: ` (during this run after 12 s)`.
pub(super) fn broke_during(events: &Outcome<Vec<LinkEvent>>, interface: &str) -> String {
    let all = events.measured().map(Vec::as_slice).unwrap_or_default();
    let own = all.iter().filter(|event| event.into_run_us.is_some());
    let moments: Vec<String> =
        LinkEvent::breaks(own, interface).filter_map(|event| event.into_run_us).take(4).map(|into| into.to_string()).collect();
    if moments.is_empty() { String::new() } else { format!(" (during this run after {})", moments.join(", ")) }
}

#[cfg(test)]
#[path = "phases_tests.rs"]
mod tests;
