//! Bytes over time while a copy runs, and what came out of it.

use std::time::{Duration, Instant};

use crate::model::copy::Copied;
use crate::model::outcome::Outcome;
use crate::model::throughput::Bins;
use crate::stats;
use crate::units::{ByteRate, ByteSize, Elapsed};

/// The length of a bin: short enough for a burst of a cache, long enough for a dozen large requests at 1G.
pub(super) const BIN: Duration = Duration::from_millis(100);

/// More bins than any budget has (an hour): a clock that jumps must not eat the memory.
const MAX_BINS: usize = 36_000;

/// Sorts bytes into bins as they arrive.
#[derive(Debug)]
pub(super) struct Series {
    start: Instant,
    bins: Vec<u64>,
    bytes: u64,
}

/// How the rate of a copy is read from its series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RateOf {
    /// The steady part: for what streams from the first moment to the last.
    Steady,
    /// All bytes over all the time: where the end (a sync, a close) is part of the work.
    Whole,
}

impl Series {
    /// Begins now.
    pub(super) fn new() -> Self {
        Self { start: Instant::now(), bins: Vec::new(), bytes: 0 }
    }

    /// `bytes` arrived now.
    pub(super) fn add(&mut self, bytes: u64) {
        self.add_at(self.start.elapsed(), bytes);
    }

    fn add_at(&mut self, at: Duration, bytes: u64) {
        let index = ((at.as_micros() / BIN.as_micros()) as usize).min(MAX_BINS - 1);
        if self.bins.len() <= index {
            self.bins.resize(index + 1, 0);
        }
        if let Some(bin) = self.bins.get_mut(index) {
            *bin += bytes;
        }
        self.bytes += bytes;
    }

    /// The time since the beginning.
    pub(super) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// The bytes so far.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The bins as the report has them; the last one is left out when the time ended within it.
    pub(super) fn bins(&self, elapsed: Duration) -> Bins {
        let whole = (elapsed.as_micros() / BIN.as_micros()) as usize;
        let take = if whole >= 1 { self.bins.len().min(whole) } else { self.bins.len() };
        Bins { interval_us: BIN.into(), bytes: self.bins.iter().take(take).copied().collect() }
    }

    /// What came out, when the copy ended now.
    pub(super) fn finish(&self, files: u32, rate: RateOf, verified: Outcome<ByteSize>) -> Copied {
        let elapsed = self.elapsed();
        let mut out = copied(self.bytes, elapsed, self.bins(elapsed), rate);
        out.files = files;
        out.verified_bytes = verified;
        out
    }
}

/// A result of one file from its numbers; the CPU windows are the caller's to fill.
pub(super) fn copied(bytes: u64, elapsed: Duration, bins: Bins, rate: RateOf) -> Copied {
    let whole = ByteRate::of(ByteSize(bytes), elapsed);
    let steady = stats::steady(&bins.rates()).map(|window| ByteRate(window.mean as u64));
    Copied {
        files: 1,
        bytes: ByteSize(bytes),
        elapsed_us: elapsed.into(),
        bytes_per_s: match rate {
            RateOf::Whole => whole,
            RateOf::Steady => steady.unwrap_or(whole),
        },
        bins,
        per_file_us: None,
        verified_bytes: Outcome::skipped("this copy compares no content"),
        cpu_pc: Outcome::skipped("not sampled"),
        cpu_nas: Outcome::skipped("not sampled"),
    }
}

/// The mean time of one of `files`.
pub(super) fn per_file(elapsed: Duration, files: u32) -> Option<Elapsed> {
    elapsed.checked_div(files).map(Elapsed::from)
}

/// Compares content as long as that stays cheap.
///
/// Comparing costs about as much as copying in memory. On a small processor that would make the check the
/// bottleneck, so it may take one twentieth of the time; whatever could not be compared is not claimed.
#[derive(Debug)]
pub(super) struct Checker {
    pattern: crate::pattern::Pattern,
    share: f64,
    started: Instant,
    spent: Duration,
    compared: u64,
    wrong: Option<u64>,
}

impl Checker {
    /// The share of the time that comparing may take while a rate is measured.
    const CHEAP: f64 = 0.05;

    /// Compares with the content of `seed` as long as it is cheap.
    pub(super) fn cheap(seed: u64) -> Self {
        Self::new(seed, Self::CHEAP)
    }

    /// Compares everything.
    pub(super) fn all(seed: u64) -> Self {
        Self::new(seed, f64::INFINITY)
    }

    fn new(seed: u64, share: f64) -> Self {
        let pattern = crate::pattern::Pattern::new(seed);
        Self { pattern, share, started: Instant::now(), spent: Duration::ZERO, compared: 0, wrong: None }
    }

    /// Looks at `data`, which should be the content at `offset`.
    pub(super) fn look(&mut self, offset: u64, data: &[u8]) {
        let before = Instant::now();
        let since = before.duration_since(self.started).as_secs_f64();
        if self.compared > 0 && self.spent.as_secs_f64() > since * self.share {
            return;
        }
        if self.pattern.check(offset, data) {
            self.compared += data.len() as u64;
        } else {
            self.wrong.get_or_insert(offset);
        }
        self.spent += before.elapsed();
    }

    /// What was compared; a difference is a failure that names the place.
    pub(super) fn outcome(&self) -> Outcome<ByteSize> {
        match self.wrong {
            Some(offset) => Outcome::failed(format!(
                "the content that came back differs from what was written, at or after byte {offset}: memory, disk or transport corrupts data"
            )),
            None if self.compared == 0 => Outcome::skipped("no content arrived that could be compared"),
            None => Outcome::Measured(ByteSize(self.compared)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_into_the_bin_of_their_time() {
        let mut series = Series::new();
        for (ms, bytes) in [(0, 1), (99, 2), (100, 4), (350, 8)] {
            series.add_at(Duration::from_millis(ms), bytes);
        }
        assert_eq!(series.bytes(), 15);
        assert_eq!(series.bins(Duration::from_millis(400)).bytes, [3, 4, 0, 8]);
        assert_eq!(series.bins(Duration::from_millis(380)).bytes, [3, 4, 0]);
        assert_eq!(series.bins(Duration::from_millis(50)).bytes, [3, 4, 0, 8]);
    }

    #[test]
    fn the_steady_rate_leaves_out_a_slow_start_and_the_whole_rate_does_not() {
        let bytes: Vec<u64> = [0, 0].into_iter().chain([10_000_000; 18]).collect();
        let bins = Bins { interval_us: BIN.into(), bytes };
        let of = |rate| copied(180_000_000, Duration::from_secs(2), bins.clone(), rate).bytes_per_s.0;
        assert_eq!(of(RateOf::Steady), 100_000_000);
        assert_eq!(of(RateOf::Whole), 90_000_000);
    }

    #[test]
    fn a_difference_is_a_failure_and_nothing_compared_is_no_success() {
        let mut data = vec![0; 8192];
        crate::pattern::Pattern::new(4).fill(0, &mut data);
        let mut checker = Checker::all(4);
        assert!(checker.outcome().measured().is_none());
        checker.look(0, &data);
        assert_eq!(checker.outcome(), Outcome::Measured(ByteSize(8192)));
        data[5000] ^= 1;
        checker.look(0, &data);
        assert!(checker.outcome().why().is_some_and(|why| why.contains("differs")));
    }
}
