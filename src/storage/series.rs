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
        ByteRate::of(ByteSize(part.iter().sum::<f64>() as u64), time)
    };
    if let Some(cliff) = stats::cliff(bins)
        && bins.len() - cliff.at >= LASTING.max(bins.len() / LASTING_SHARE)
    {
        let (before, after) = bins.split_at(cliff.at);
        let (bytes, elapsed) = (ByteSize(before.iter().sum::<f64>() as u64), BIN * cliff.at as u32);
        let burst = Burst { bytes_per_s: ByteRate::of(bytes, elapsed), bytes, elapsed_us: elapsed.into() };
        return Level { sustained: over(after), burst: Some(burst) };
    }
    let average = ByteRate::of(ByteSize(series.bytes), series.end + finish);
    let steady = stats::steady(bins).filter(|window| window.len >= LASTING && window.spread <= UNSTEADY);
    let sustained = steady.and_then(|window| bins.get(window.first..)).map_or(average, over);
    Level { sustained, burst: None }
}
