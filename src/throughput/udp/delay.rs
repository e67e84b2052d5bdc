//! How long datagrams were on their way beyond the least time, between two clocks that know nothing of each other. Pure.

use std::time::Duration;

use crate::stats::percentile;

/// The transit times that are kept for the percentiles; when there are more, every second one goes.
const SAMPLES: usize = 1 << 14;

/// The slices of time of which the least transit time is kept, and their length at first; when there are more, two become one.
const SLICES: usize = 1 << 10;
const SLICE: u64 = 5_000_000;

/// Two clocks drift apart by no more than this: crystals are good for 100 ppm, and a clock that NTP slews for 500 (RFC 5905,
/// section 11.3). What grows faster is a queue.
const DRIFT: f64 = 500e-6;

/// A moment of arrival and the transit time, in nanoseconds; each by a clock of its own, so that only differences mean something.
type Point = (f64, f64);

/// Follows the transit times of a pass.
#[derive(Clone, Debug)]
pub(super) struct Delay {
    previous: Option<i64>,
    jitter: f64,
    count: u64,
    stride: u64,
    samples: Vec<Point>,
    slice: u64,
    lows: Vec<Option<Point>>,
}

impl Delay {
    pub(super) fn new() -> Self {
        Self { previous: None, jitter: 0.0, count: 0, stride: 1, samples: Vec::new(), slice: SLICE, lows: Vec::new() }
    }

    /// A datagram that was sent at `sent` arrived at `at`, each in nanoseconds since its end began.
    pub(super) fn take(&mut self, sent: u64, at: u64) {
        let whole = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
        let transit = whole(at).saturating_sub(whole(sent));
        // RFC 3550, section 6.4.1: J += (|D| − J) / 16.
        if let Some(previous) = self.previous.replace(transit) {
            self.jitter += (transit.saturating_sub(previous).unsigned_abs() as f64 - self.jitter) / 16.0;
        }
        let point = (at as f64, transit as f64);
        if self.count.is_multiple_of(self.stride) {
            self.samples.push(point);
            if self.samples.len() >= SAMPLES {
                self.samples = self.samples.iter().step_by(2).copied().collect();
                self.stride = self.stride.saturating_mul(2);
            }
        }
        self.count += 1;
        self.low(at, point);
    }

    fn low(&mut self, at: u64, point: Point) {
        // No pass lasts so long that the slices double more than some times; a foreign number ends it as well.
        while at / self.slice >= SLICES as u64 {
            self.slice = self.slice.saturating_mul(2);
            self.lows = self.lows.chunks(2).map(|pair| pair.iter().copied().flatten().reduce(lower)).collect();
        }
        let slice = usize::try_from(at / self.slice).unwrap_or(0);
        if self.lows.len() <= slice {
            self.lows.resize(slice + 1, None);
        }
        if let Some(place) = self.lows.get_mut(slice) {
            *place = Some(place.map_or(point, |before| lower(before, point)));
        }
    }

    /// The variation as RFC 3550 smooths it.
    pub(super) fn jitter(&self) -> Duration {
        nanos(self.jitter)
    }

    /// Median and 99th percentile of the time above the least; none when nothing came.
    pub(super) fn above_least(&self) -> Option<(Duration, Duration)> {
        let points: Vec<Point> = self.lows.iter().copied().flatten().collect();
        let slope = slope_below(&points);
        let level = |point: &Point| point.1 - slope * point.0;
        let least = points.iter().map(level).min_by(f64::total_cmp)?;
        let above: Vec<f64> = self.samples.iter().map(|point| (level(point) - least).max(0.0)).collect();
        Some((nanos(percentile(&above, 50.0)?), nanos(percentile(&above, 99.0)?)))
    }
}

fn lower(a: Point, b: Point) -> Point {
    if b.1 < a.1 { b } else { a }
}

fn nanos(value: f64) -> Duration {
    Duration::from_nanos(value.max(0.0) as u64)
}

/// The slope of the line that lies below all points and closest to them: the edge of their lower convex hull over their middle
/// (S. Moon, P. Skelly, D. Towsley, 1999). Zero where it is steeper than any drift of clocks.
fn slope_below(points: &[Point]) -> f64 {
    let turns_right = |a: Point, b: Point, c: Point| (b.0 - a.0) * (c.1 - a.1) - (b.1 - a.1) * (c.0 - a.0) <= 0.0;
    let mut hull: Vec<Point> = Vec::new();
    for point in points {
        while let [.., a, b] = hull.as_slice()
            && turns_right(*a, *b, *point)
        {
            hull.pop();
        }
        hull.push(*point);
    }
    let middle = points.iter().map(|point| point.0).sum::<f64>() / points.len().max(1) as f64;
    let edge = hull.windows(2).find(|edge| edge.last().is_some_and(|end| end.0 >= middle));
    let slope = match edge {
        Some([a, b]) if b.0 > a.0 => (b.1 - a.1) / (b.0 - a.0),
        _ => 0.0,
    };
    if slope.abs() <= DRIFT { slope } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Some queue at each of these moments, seen through clocks that drift.
    fn seen(drift: f64, offset: i64, queue: impl Fn(u64) -> u64) -> Delay {
        let mut delay = Delay::new();
        for k in 0..50_000_u64 {
            let sent = k * 100_000;
            let at = (sent as f64 * (1.0 + drift)) as i64 + queue(k) as i64 + offset;
            delay.take(sent, at as u64);
        }
        delay
    }

    fn near(found: Duration, micros: u64) -> bool {
        found.abs_diff(Duration::from_micros(micros)) < Duration::from_micros(10)
    }

    #[test]
    fn the_queue_is_seen_through_the_drift_of_the_clocks() {
        // 5 s: a drift of 100 ppm makes 500 µs of difference.
        for drift in [0.0, 100e-6, -100e-6] {
            let (median, p99) = seen(drift, 1_000_000, |k| (k % 101) * 10_000).above_least().unwrap();
            assert!(near(median, 500) && near(p99, 990), "{drift}: {median:?} {p99:?}");
            let (median, p99) = seen(drift, 5_000_000, |_| 77_000).above_least().unwrap();
            assert!(near(median, 0) && near(p99, 0), "{drift}: {median:?} {p99:?}");
        }
    }

    #[test]
    fn a_queue_that_grows_is_no_drift() {
        // 1 % too much for 5 s.
        let (median, p99) = seen(0.0, 0, |k| k * 1000).above_least().unwrap();
        assert!(near(median, 25_000) && near(p99, 49_500), "{median:?} {p99:?}");
    }

    #[test]
    fn jitter_is_smoothed_as_the_rfc_says() {
        let mut delay = Delay::new();
        for (sent, at) in [(0, 0), (100, 116), (200, 216)] {
            delay.take(sent, at);
        }
        // 16 ns once: 16/16, then 15/16 of that.
        assert!((delay.jitter - 0.9375).abs() < 1e-9);
        assert_eq!(Delay::new().above_least(), None);
    }

    proptest! {
        #[test]
        fn no_line_lies_above_a_point_and_memory_is_bounded(
            steps in proptest::collection::vec((0u64..2_000_000_000, 0u64..100_000), 1..300)
        ) {
            let (mut delay, mut at) = (Delay::new(), 0);
            for (step, queue) in steps {
                at += step;
                delay.take(at, at + queue);
            }
            let points: Vec<Point> = delay.lows.iter().copied().flatten().collect();
            let slope = slope_below(&points);
            prop_assert!(slope.abs() <= DRIFT);
            prop_assert!(delay.lows.len() <= SLICES && delay.samples.len() <= SAMPLES);
            let (median, p99) = delay.above_least().unwrap();
            prop_assert!(median <= p99);
        }

        #[test]
        fn no_foreign_time_breaks_it(times in proptest::collection::vec(any::<(u64, u64)>(), 0..50)) {
            let mut delay = Delay::new();
            for (sent, at) in times {
                delay.take(sent, at);
            }
            let _ = (delay.jitter(), delay.above_least());
            prop_assert!(delay.lows.len() <= SLICES);
        }
    }
}
