//! How steady it was: the rate of each pass, disk transfer and copy over its time.

use super::rates;
use super::view::{Table, Tone, View};
use crate::model::copy::FileSet;
use crate::model::throughput::Bins;
use crate::model::{Direction, Document, Role};
use crate::units::{BitRate, ByteRate, Elapsed};

/// The most signs of a row: three seconds of tenths, which fit on 80 columns with what stands beside them.
const SIGNS: usize = 30;
/// Fewer bins than this show no course.
const LEAST_BINS: usize = 3;

/// From little to much.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A stretch in which nothing arrived at all: no low bar, but a sign of its own.
const NOTHING: char = '×';

/// The section; nothing when no series was measured.
pub(super) fn over_time(document: &Document, view: &mut View) {
    let mut table = Table::new(&["step", "rate over time", "lowest", "highest"]);
    let bits = |rate: f64| BitRate((rate * 8.0) as u64).to_string();
    let bytes = |rate: f64| ByteRate(rate as u64).to_string();
    let measured = &document.measurements;
    for (name, _, pass) in measured.throughput.measured().map(rates::passes).unwrap_or_default() {
        table.rows.extend(row(format!("TCP {name}"), &pass.bins, pass.elapsed_us, &bits));
    }
    for role in [Role::Pc, Role::Nas] {
        let Some(disk) = measured.storage.measured().and_then(|section| section.of(role).measured()) else { continue };
        for (way, transfer) in [("write", &disk.write), ("read", &disk.read)] {
            let Some(transfer) = transfer.measured() else { continue };
            table.rows.extend(row(format!("{} {way}", role.title()), &transfer.bins, transfer.elapsed_us, &bytes));
        }
    }
    for lane in measured.copy.measured().iter().flat_map(|section| &section.lanes) {
        for (rung, copied) in Direction::BOTH.into_iter().flat_map(|direction| lane.measured(direction)) {
            let small = if rung.files == FileSet::Small { ", small" } else { "" };
            let step = format!("{} {}{small}", lane.kind.word(), rung.direction.arrow());
            table.rows.extend(row(step, &copied.bins, copied.elapsed_us, &bytes));
        }
    }
    if table.rows.is_empty() {
        return;
    }
    view.section("Over time");
    view.note(
        Tone::Plain,
        format!("Each row is the whole time of its step, from nothing to its own highest rate; {NOTHING} is a stretch without any data."),
    );
    view.table(table);
}

fn row(step: String, bins: &Bins, elapsed: Elapsed, words: &dyn Fn(f64) -> String) -> Option<Vec<String>> {
    let rates = stretches(bins, elapsed)?;
    let most = rates.iter().copied().fold(0.0, f64::max);
    let least = rates.iter().copied().fold(most, f64::min);
    Some(vec![step, line(&rates, most), words(least), words(most)])
}

/// The rates in bytes a second of at most 30 equal stretches; none when the series is too short to show a course.
fn stretches(bins: &Bins, elapsed: Elapsed) -> Option<Vec<f64>> {
    let interval = bins.interval_us.seconds();
    let count = bins.bytes.len();
    if count < LEAST_BINS || interval <= 0.0 {
        return None;
    }
    // The last bin may have been cut short by the end.
    let tail = elapsed.seconds() - interval * (count - 1) as f64;
    let tail = if tail > 0.1 * interval && tail < interval { tail } else { interval };
    let signs = count.min(SIGNS);
    let stretch = |at: usize| {
        let part = bins.bytes.get(at * count / signs..(at + 1) * count / signs).unwrap_or_default();
        let whole = if at + 1 == signs { (part.len() as f64 - 1.0) * interval + tail } else { part.len() as f64 * interval };
        part.iter().map(|bytes| *bytes as f64).sum::<f64>() / whole
    };
    Some((0..signs).map(stretch).collect())
}

fn line(rates: &[f64], most: f64) -> String {
    let sign = |rate: &f64| {
        if *rate <= 0.0 || most <= 0.0 {
            return NOTHING;
        }
        // The hundredth is for rates that differ by rounding only.
        let level = (rate / most * LEVELS.len() as f64 - 0.01).ceil() as usize;
        LEVELS.get(level.saturating_sub(1)).copied().unwrap_or('█')
    };
    rates.iter().map(sign).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(bytes: &[u64], elapsed_us: u64) -> Option<String> {
        let bins = Bins { interval_us: Elapsed(100_000), bytes: bytes.to_vec() };
        row(String::new(), &bins, Elapsed(elapsed_us), &|rate| format!("{rate:.0}")).map(|cells| cells[1..].join(" "))
    }

    #[test]
    fn bursts_and_stalls_can_be_seen() {
        for (case, bytes, elapsed, shown) in [
            ("steady", vec![10, 10, 10, 10], 400_000, Some("████ 100 100")),
            ("a burst, then the disk", vec![80, 80, 20, 20], 400_000, Some("██▂▂ 200 800")),
            ("a stall", vec![80, 0, 0, 1], 400_000, Some("█××▁ 0 800")),
            ("nothing at all", vec![0, 0, 0], 300_000, Some("××× 0 0")),
            ("a last bin of a half length", vec![10, 10, 5], 250_000, Some("███ 100 100")),
            ("too short", vec![10, 10], 200_000, None),
        ] {
            assert_eq!(drawn(&bytes, elapsed).as_deref(), shown, "{case}");
        }
        assert!(drawn(&[u64::MAX; 3], u64::MAX).is_some_and(|shown| shown.starts_with("███ ")));
        let long = stretches(&Bins { interval_us: Elapsed(1), bytes: vec![1; 100_001] }, Elapsed(0)).map(|rates| rates.len());
        assert_eq!(long, Some(SIGNS));
        assert_eq!(stretches(&Bins { interval_us: Elapsed(0), bytes: vec![1; 9] }, Elapsed(9)), None);
    }
}
