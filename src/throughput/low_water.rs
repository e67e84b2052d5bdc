//! How many bytes a reader should wait for. Pure.
//!
//! A reader that is woken for every few segments spends its processor on waking. Waiting for more saves that, as long as the
//! wait stays far below a bin and the buffer never fills meanwhile.

use std::time::Duration;

/// The wait that the mark may cost at the present rate: a twentieth of a bin.
const PATIENCE: Duration = Duration::from_millis(5);

/// How often the rate is judged anew.
const REVIEW: Duration = Duration::from_millis(20);

/// The highest mark in bytes; beyond it nothing is gained, and a small cache would no longer hold what waits.
const HIGHEST: u64 = 256 * 1024;

/// The lowest mark above 1: less than this many bytes saves no wake-up.
const LOWEST: u64 = 16 * 1024;

/// The mark of one stream.
#[derive(Clone, Debug)]
pub(super) struct LowWater {
    mark: u32,
    since: Duration,
    bytes: u64,
}

impl LowWater {
    /// The mark that every socket begins with.
    pub(super) const fn new() -> Self {
        Self { mark: 1, since: Duration::ZERO, bytes: 0 }
    }

    /// At `now` the stream had given `total` bytes, and its receive buffer holds `buffer` bytes: the mark to set, if it is another.
    ///
    /// `buffer` is asked for only when the rate has changed; a quarter of it is the most, as the kernel's own overhead counts in it.
    pub(super) fn review(&mut self, now: Duration, total: u64, buffer: impl FnOnce() -> u64) -> Option<u32> {
        let passed = now.saturating_sub(self.since);
        if passed < REVIEW {
            return None;
        }
        let expected = u128::from(total.saturating_sub(self.bytes)) * PATIENCE.as_nanos() / passed.as_nanos();
        (self.since, self.bytes) = (now, total);
        let wanted = rounded(u64::try_from(expected).unwrap_or(u64::MAX).min(HIGHEST));
        if wanted == u64::from(self.mark) {
            return None;
        }
        let mark = u32::try_from(rounded(wanted.min(buffer() / 4))).unwrap_or(1);
        (mark != self.mark).then(|| {
            self.mark = mark;
            mark
        })
    }
}

/// Down to a power of two, so that a rate that varies a little does not change the mark; too little is 1.
const fn rounded(bytes: u64) -> u64 {
    if bytes < LOWEST { 1 } else { 1 << bytes.ilog2() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn the_mark_follows_the_rate_and_never_costs_more_than_its_patience() {
        for (mbit, buffer, mark) in [
            (10, 6 << 20, None),
            (100, 6 << 20, Some(32 << 10)),
            (1_000, 6 << 20, Some(256 << 10)),
            (30_000, 6 << 20, Some(256 << 10)),
            (30_000, 512 << 10, Some(128 << 10)),
            (30_000, 87_380, Some(16 << 10)),
            (30_000, 4096, None),
        ] {
            let mut water = LowWater::new();
            assert_eq!(water.review(MS(10), mbit * 1250, || buffer), None, "too early");
            assert_eq!(water.review(MS(25), mbit * 3125, || buffer), mark, "{mbit} Mbit/s, buffer of {buffer}");
        }
    }

    #[test]
    fn a_rate_that_falls_takes_the_mark_down() {
        let mut water = LowWater::new();
        assert_eq!(water.review(MS(100), 100_000_000, || 1 << 22), Some(256 << 10));
        assert_eq!(water.review(MS(200), 200_000_000, || 1 << 22), None);
        assert_eq!(water.review(MS(300), 200_010_000, || 1 << 22), Some(1));
    }
}
