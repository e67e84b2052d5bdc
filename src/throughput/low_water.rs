//! How many bytes a reader should wait for. Pure.
//!
//! A reader that is woken for every few segments spends its processor on waking: waiting for more halves that and more, so every
//! stream begins so. Where a processor is the limit, an awake reader does part of the protocol's work on its own core, and
//! letting it sleep may cost rate: a trial on the connection itself decides (see `calibrate`), and its word holds.

use std::time::Duration;

/// The wait that the mark may cost at the present rate: a twentieth of a bin.
const PATIENCE: Duration = Duration::from_millis(5);

/// How often the rate is judged anew: long enough that bursts of a switch's buffer do not show.
const REVIEW: Duration = Duration::from_millis(100);

/// The same while the stream is younger than [`REVIEW`]: slow start doubles the rate faster than that.
const EARLY: Duration = Duration::from_millis(10);

/// The highest mark in bytes. Over veth the receiver's processor time for each GB falls from 0.08 s without a mark to 0.05 s with 256 KiB
/// and 0.035 s with this; beyond it little is left.
const HIGHEST: u64 = 512 * 1024;

/// The lowest mark above 1: less than this many bytes saves no wake-up.
const LOWEST: u64 = 16 * 1024;

/// The mark of one stream: it follows the rate, or stays at 1.
#[derive(Clone, Debug)]
pub(super) struct LowWater {
    follows: bool,
    mark: u32,
    since: Duration,
    bytes: u64,
}

impl LowWater {
    /// The mark that every socket begins with; it follows the rate.
    pub(super) const fn new() -> Self {
        Self { follows: true, mark: 1, since: Duration::ZERO, bytes: 0 }
    }

    /// A mark for a rate that is known, to be set at once; it follows the rate.
    ///
    /// `rate` is in bytes a second, `at` and `bytes` are what the stream has given so far.
    pub(super) fn at(rate: f64, at: Duration, bytes: u64, buffer: impl FnOnce() -> u64) -> Self {
        Self { follows: true, mark: fitting(rate, buffer), since: at, bytes }
    }

    /// No mark, for good.
    pub(super) const fn never() -> Self {
        Self { follows: false, mark: 1, since: Duration::ZERO, bytes: 0 }
    }

    /// The mark in bytes.
    pub(super) const fn mark(&self) -> u32 {
        self.mark
    }

    /// Whether a mark above 1 is set.
    pub(super) const fn is_raised(&self) -> bool {
        self.mark > 1
    }

    /// At `now` the stream had given `total` bytes, and its receive buffer holds `buffer` bytes: the mark to set, if it is another.
    ///
    /// `buffer` is asked for only when the mark may rise; a quarter of it is the most, as the kernel's own overhead counts in it.
    pub(super) fn review(&mut self, now: Duration, total: u64, buffer: impl FnOnce() -> u64) -> Option<u32> {
        let passed = now.saturating_sub(self.since);
        if !self.follows || passed < if self.since < REVIEW { EARLY } else { REVIEW } {
            return None;
        }
        let rate = total.saturating_sub(self.bytes) as f64 / passed.as_secs_f64();
        (self.since, self.bytes) = (now, total);
        let mark = fitting(rate, buffer);
        (mark != self.mark).then(|| {
            self.mark = mark;
            mark
        })
    }
}

/// The mark for a rate: a power of two, so that a rate that varies a little does not change it; too little is 1.
fn fitting(rate: f64, buffer: impl FnOnce() -> u64) -> u32 {
    let wanted = ((rate * PATIENCE.as_secs_f64()) as u64).min(HIGHEST);
    if wanted < LOWEST {
        return 1;
    }
    let bytes = wanted.min(buffer() / 4);
    if bytes < LOWEST { 1 } else { 1 << bytes.ilog2() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// The marks that are set while a stream runs at each of these rates in Mbit/s for 100 ms.
    fn marks(mbits: &[u64], buffer: u64) -> Vec<u32> {
        let (mut water, mut total) = (LowWater::new(), 0);
        let run = mbits.iter().zip(1..).filter_map(|(mbit, at)| {
            total += mbit * 12_500;
            water.review(MS(at * 100), total, || buffer)
        });
        run.collect()
    }

    #[test]
    fn the_mark_fits_the_rate_and_the_buffer() {
        for (mbit, buffer, mark) in [
            (10, 6 << 20, None),
            (100, 6 << 20, Some(32 << 10)),
            (1_000, 6 << 20, Some(512 << 10)),
            (30_000, 6 << 20, Some(512 << 10)),
            (30_000, 512 << 10, Some(128 << 10)),
            (30_000, 87_380, Some(16 << 10)),
            (30_000, 4096, None),
        ] {
            assert_eq!(marks(&[mbit; 5], buffer), mark.into_iter().collect::<Vec<_>>(), "{mbit} Mbit/s, buffer of {buffer}");
        }
    }

    #[test]
    fn it_follows_the_rate() {
        let (k32, k64, k128, k512) = (32 << 10, 64 << 10, 128 << 10, 512 << 10);
        for (name, mbits, set) in [
            ("slow start", vec![100, 200, 400, 800, 1600], vec![k32, k64, k128, 256 << 10, k512]),
            ("a little less is the same", vec![9000, 9000, 8000, 9000], vec![k512]),
            ("a faster path", vec![100, 100, 1000, 1000], vec![k32, k512]),
            ("a stall", vec![941, 941, 0, 0, 941, 941], vec![k512, 1, k512]),
            ("nothing", vec![0, 0, 0, 0], vec![]),
        ] {
            assert_eq!(marks(&mbits, 6 << 20), set, "{name}");
        }
    }

    #[test]
    fn a_young_stream_is_looked_at_more_often() {
        let mut water = LowWater::new();
        let run =
            [(5, 1_000_000), (12, 12_000_000), (20, 30_000_000), (110, 300_000_000), (150, 300_000_000), (215, 300_500_000)];
        let marks = run.map(|(at, total)| water.review(MS(at), total, || 6 << 20));
        assert_eq!(marks, [None, Some(512 << 10), None, None, None, Some(16 << 10)]);
    }

    #[test]
    fn a_known_rate_has_its_mark_at_once_and_no_mark_stays_none() {
        let mut water = LowWater::at(1e9, MS(300), 0, || 6 << 20);
        assert_eq!(water.mark(), 512 << 10);
        let run = [(400, 60_000_000), (500, 61_000_000), (600, 61_000_000), (700, 161_000_000)];
        let marks = run.map(|(at, total)| water.review(MS(at), total, || 6 << 20));
        assert_eq!(marks, [None, Some(32 << 10), Some(1), Some(512 << 10)]);
        assert_eq!(LowWater::at(1e6, MS(300), 0, || 6 << 20).mark(), 1);
        let mut never = LowWater::never();
        assert_eq!((never.mark(), never.review(MS(900), 1 << 40, || 6 << 20)), (1, None));
    }

    #[test]
    fn looks_between_reviews_change_nothing() {
        let mut water = LowWater::at(0.0, MS(100), 0, || 6 << 20);
        for at in 100..200 {
            assert_eq!(water.review(MS(at), at * 1_000_000, || 6 << 20), None);
        }
    }
}
