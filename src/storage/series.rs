//! Pure: blocks that took from then to then become a series of rates, and the series a burst and what was sustained.

use std::time::Duration;

use crate::model::storage::Burst;
use crate::model::throughput::Bins;
use crate::stats;
use crate::units::{ByteRate, ByteSize, Elapsed};

/// The length of a bin: ten a second show a knee, and a disk's request is shorter.
pub const BIN: Duration = Duration::from_millis(100);
/// A series never becomes longer than this (an hour), whatever the clock says.
const MOST: usize = 36_000;
/// A lower level counts as one only when it lasted this many bins, one second: less is a hiccup of a busy host.
const LASTING: usize = 10;
/// … and this share of the series.
const LASTING_SHARE: usize = 5;
/// A disk that cannot keep its level within this spread has no steady part; its average is all there is to say.
const UNSTEADY: f64 = 0.5;

/// Bytes over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    bins: Vec<f64>,
    bytes: u64,
    end: Duration,
    /// When the first of several workers ended: from then on the queue runs dry, and the rate is not the disk's.
    full_until: Option<Duration>,
}

impl Series {
    /// Adds a block of `bytes` that was under way `from` … `to`, spread evenly over that time.
    pub fn add(&mut self, from: Duration, to: Duration, bytes: u64) {
        self.bytes += bytes;
        self.end = self.end.max(to);
        let width = BIN.as_secs_f64();
        let (from, to) = (from.as_secs_f64() / width, to.as_secs_f64() / width);
        let last = (to.ceil() as usize).clamp(1, MOST) - 1;
        let first = (from as usize).min(last);
        if self.bins.len() <= last {
            self.bins.resize(last + 1, 0.0);
        }
        let share = |bin: usize| {
            let overlap = (to.min(bin as f64 + 1.0) - from.max(bin as f64)).max(0.0);
            if to > from { overlap / (to - from) } else { 1.0 }
        };
        for (at, bin) in self.bins.iter_mut().enumerate().take(last + 1).skip(first) {
            *bin += bytes as f64 * if first == last { 1.0 } else { share(at) };
        }
    }

    /// Adds what another worker did in the same time.
    pub fn merge(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.end = self.end.max(other.end);
        self.full_until = Some(self.full_until.map_or(other.end, |until| until.min(other.end)));
        if self.bins.len() < other.bins.len() {
            self.bins.resize(other.bins.len(), 0.0);
        }
        for (bin, more) in self.bins.iter_mut().zip(&other.bins) {
            *bin += more;
        }
    }

    /// All bytes.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// When the last block ended.
    pub const fn end(&self) -> Duration {
        self.end
    }

    /// The series for the report.
    pub fn bins(&self) -> Bins {
        // Rounded as a running sum, so that the bins add up to the bytes.
        let mut sum = 0.0;
        let mut bytes = Vec::with_capacity(self.bins.len());
        for bin in &self.bins {
            let next: f64 = sum + bin;
            bytes.push(next.round() as u64 - f64::round(sum) as u64);
            sum = next;
        }
        Bins { interval_us: Elapsed::from(BIN), bytes }
    }
}

/// What a series sustained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// After the knee, or in the steady part, or on average.
    pub sustained: ByteRate,
    /// The level before the knee, where there is one.
    pub burst: Option<Burst>,
}

/// Judges a series; `finish` is the time that it took at the end to make the data safe, and it is charged
/// to what was sustained, because what it waits for was written late, not early.
pub fn level(series: &Series, finish: Duration) -> Level {
    // The last bin is rarely full in time.
    let end = series.full_until.unwrap_or(series.end);
    let full = ((end.as_secs_f64() / BIN.as_secs_f64()) as usize).min(series.bins.len());
    let bins = series.bins.get(..full).unwrap_or_default();
    let over = |part: &[f64]| {
        let time = BIN * part.len() as u32 + finish;
        ByteRate::of(ByteSize(part.iter().sum::<f64>().round() as u64), time)
    };
    if let Some(cliff) = stats::cliff(bins)
        && bins.len() - cliff.at >= LASTING.max(bins.len() / LASTING_SHARE)
    {
        let (before, after) = bins.split_at(cliff.at);
        let (bytes, elapsed) = (ByteSize(before.iter().sum::<f64>().round() as u64), BIN * cliff.at as u32);
        let burst = Burst { bytes_per_s: ByteRate::of(bytes, elapsed), bytes, elapsed_us: elapsed.into() };
        return Level { sustained: over(after), burst: Some(burst) };
    }
    let average = ByteRate::of(ByteSize(series.bytes), series.end + finish);
    let steady = stats::steady(bins).filter(|window| window.len >= LASTING && window.spread <= UNSTEADY);
    let sustained = steady.and_then(|window| bins.get(window.first..)).map_or(average, over);
    Level { sustained, burst: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// One block of `mb` in each 100 ms.
    fn steps(mb: &[u64]) -> Series {
        let mut series = Series::default();
        for (at, mb) in mb.iter().enumerate() {
            series.add(BIN * at as u32, BIN * (at as u32 + 1), mb * MB);
        }
        series
    }

    #[test]
    fn a_block_is_spread_over_the_time_it_took() {
        for (from, to, expected) in [
            (0, 100, vec![100]),
            (0, 400, vec![25, 25, 25, 25]),
            (50, 250, vec![25, 50, 25]),
            (120, 180, vec![0, 100]),
            (150, 150, vec![0, 100]),
            (200, 200, vec![0, 100]),
            (0, 0, vec![100]),
        ] {
            let mut series = Series::default();
            series.add(ms(from), ms(to), 100);
            assert_eq!(series.bins().bytes, expected, "{from} to {to}");
        }
    }

    #[test]
    fn a_full_cache_is_a_burst_and_what_follows_is_sustained() {
        let mut mb = vec![50; 20];
        mb.extend([8; 40]);
        let found = level(&steps(&mb), Duration::ZERO);
        assert_eq!(found.sustained, ByteRate(80 * MB));
        let burst = found.burst.unwrap();
        assert_eq!((burst.bytes_per_s, burst.bytes), (ByteRate(500 * MB), ByteSize(1000 * MB)));
        assert_eq!(burst.elapsed_us, Elapsed(2_000_000));
    }

    #[test]
    fn a_hiccup_at_the_end_is_no_lower_level() {
        let mut mb = vec![50; 40];
        mb.extend([20; 4]);
        let found = level(&steps(&mb), Duration::ZERO);
        assert_eq!(found.burst, None);
        assert!(found.sustained > ByteRate(450 * MB), "{found:?}");
    }

    #[test]
    fn the_time_of_making_it_safe_is_charged_to_the_sustained_rate() {
        let flat = steps(&[10; 30]);
        assert_eq!(level(&flat, Duration::ZERO).sustained, ByteRate(100 * MB));
        let charged = level(&flat, Duration::from_secs(3)).sustained;
        assert!(charged.0.abs_diff(50 * MB) < MB, "{charged}");
    }

    #[test]
    fn a_slow_beginning_is_cut_and_a_short_series_is_averaged() {
        let mut mb = vec![1, 4];
        mb.extend([10; 28]);
        assert_eq!(level(&steps(&mb), Duration::ZERO).sustained, ByteRate(100 * MB));
        assert_eq!(level(&steps(&[10, 20]), Duration::ZERO).sustained, ByteRate(150 * MB));
        assert_eq!(level(&Series::default(), Duration::ZERO).sustained, ByteRate(0));
    }

    #[test]
    fn the_end_of_a_queue_that_runs_dry_is_not_judged() {
        let mut all = Series::default();
        all.merge(&steps(&[10; 20]));
        all.merge(&steps(&[10; 30]));
        assert_eq!((all.bytes(), all.end()), (500 * MB, ms(3000)));
        assert_eq!(level(&all, Duration::ZERO), Level { sustained: ByteRate(200 * MB), burst: None });
    }

    proptest::proptest! {
        #[test]
        fn the_bins_add_up_to_the_bytes(blocks in proptest::collection::vec((0u64..5_000, 0u64..3_000, 0u64..1 << 24), 0..40)) {
            let mut series = Series::default();
            for (from, took, bytes) in &blocks {
                series.add(ms(*from), ms(from + took), *bytes);
            }
            let sum: u64 = series.bins().bytes.iter().sum();
            let all: u64 = blocks.iter().map(|block| block.2).sum();
            proptest::prop_assert!(sum.abs_diff(all) <= 1, "{sum} {all}");
            level(&series, Duration::ZERO);
        }
    }
}
