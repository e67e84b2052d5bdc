//! When a pass knows its rate well enough to end. Pure.
//!
//! Deciding again and again tempts a rule to stop at the luckiest moment. So it asks for more than the confidence interval of the
//! moment: that it is narrow also if neighbouring bins are more alike than they seem, and that it stays so for a while. More time costs
//! little; a wrong rate costs the verdict.

use crate::model::throughput::{Bins, Steady, StopRule};
use crate::stats;

/// The least bins of a steady part: with fewer, Student's quantile says nothing yet, and slow start on a long path takes as many.
const LEAST_BINS: usize = 10;

/// The least length of the steady part in lengths of what was cut off before it: a path that changes between two levels must not pass
/// for one that has just started.
const AFTER_CUT: usize = 2;

/// The last bins, in which nothing may hang.
const RECENT: usize = 3;

/// A bin below this share of the mean is a stall, or the beginning of one.
const STALLED: f64 = 0.5;

/// A change over the steady part that is this many standard errors large is a trend.
const TREND: f64 = 2.0;

/// The share of all bins through which the answer must hold, and the least number of them: a few further observations repair what
/// stopping at a chosen moment spoils (G. Simons, 1968, on the rule of Y. S. Chow and H. Robbins, 1965).
const HOLD: (usize, usize) = (5, 3);

/// A receiver's mind about one pass.
#[derive(Clone, Debug)]
pub(super) struct Enough {
    rule: StopRule,
    /// The number of bins at the last look, and at the first of those looks that said yes.
    seen: usize,
    since: Option<usize>,
}

impl Enough {
    /// Nothing known yet.
    pub(super) const fn new(rule: StopRule) -> Self {
        Self { rule, seen: 0, since: None }
    }

    /// Whether the bins so far are enough. To be asked at the end of each bin.
    pub(super) fn look(&mut self, bins: &Bins) -> bool {
        let count = bins.bytes.len();
        if count > self.seen {
            self.seen = count;
            let known = is_known(&bins.rates(), self.rule.half_width);
            self.since = known.then(|| self.since.unwrap_or(count));
        }
        let held = self.since.map_or(0, |since| count - since + 1);
        let time = bins.interval_us.0.saturating_mul(count as u64);
        held >= (count / HOLD.0).max(HOLD.1) && time >= self.rule.least_us.0
    }
}

/// Whether the mean of the steady part is known to `half_width` of it, with nothing in the series that speaks against its going on like this.
///
/// An interval as wide as the rate asks for nothing: with such a rule only the time counts.
fn is_known(rates: &[f64], half_width: f64) -> bool {
    if half_width >= 1.0 {
        return true;
    }
    let Some(window) = stats::steady(rates) else { return false };
    let part = rates.get(window.first..).unwrap_or_default();
    if part.len() < LEAST_BINS.max(AFTER_CUT * window.first) || window.mean <= 0.0 {
        return false;
    }
    let stalls = part.iter().rev().take(RECENT).any(|rate| *rate < STALLED * window.mean);
    let climbs = stats::trend(part).is_none_or(|t| t.change.abs() > half_width && t.change.abs() > TREND * t.error);
    !stalls && !climbs && stats::confidence(part).max(careful(part)) <= half_width
}

/// The half width of the 95 % confidence interval if neighbours are as alike as they may be by what was seen.
///
/// The likeness of neighbours is raised by its bias, (1 + 3ρ)/n (Marriott and Pope, 1954), and by its standard error, 1/√n (M. S.
/// Bartlett, 1946); of a series whose likeness fades by ρ with every bin, n·(1 − ρ)/(1 + ρ) values count.
fn careful(part: &[f64]) -> f64 {
    let n = part.len() as f64;
    let seen = stats::autocorrelation(part, 1).max(0.0);
    let likeness = seen + (1.0 + 3.0 * seen) / n + 1.0 / n.sqrt();
    if likeness >= 1.0 {
        return f64::INFINITY;
    }
    stats::half_width(part, n * (1.0 - likeness) / (1.0 + likeness))
}

/// Half the width of the 95 % confidence interval of the rate that is told for these bins: of their steady part, or of all where the
/// rate never settled. None where there are too few bins to say.
pub(super) fn half_width(bins: &Bins, steady: Option<&Steady>) -> Option<f64> {
    let rates = bins.rates();
    let part = steady.map_or(Some(&rates[..]), |part| {
        let first = part.first_bin as usize;
        rates.get(first..first.checked_add(part.bins as usize)?)
    })?;
    Some(stats::confidence(part)).filter(|half| half.is_finite())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::Elapsed;

    const RULE: StopRule = StopRule { half_width: 0.01, least_us: Elapsed(1_000_000) };

    /// Reproducible numbers: SplitMix64 (G. L. Steele and others, 2014).
    struct Dice(u64);

    impl Dice {
        fn even(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }

        fn normal(&mut self) -> f64 {
            (-2.0 * (1.0 - self.even()).ln()).sqrt() * (std::f64::consts::TAU * self.even()).cos()
        }

        fn noisy(&mut self, spread: f64) -> Vec<f64> {
            (0..BINS).map(|_| 1.0 + spread * self.normal()).collect()
        }
    }

    /// The longest pass in bins.
    const BINS: usize = 150;

    /// When it stops, and what it says then.
    fn answer(series: &[f64], rule: StopRule) -> Option<(usize, f64)> {
        let mut enough = Enough::new(rule);
        let mut bins = Bins { interval_us: Elapsed(100_000), bytes: vec![] };
        series.iter().enumerate().find_map(|(at, rate)| {
            bins.bytes.push((rate.max(0.0) * 1e7) as u64);
            enough.look(&bins).then(|| (at + 1, stats::steady(&bins.rates()).unwrap().mean / 1e8))
        })
    }

    /// One kind of series: makes one, and its true rate.
    type Kind = fn(&mut Dice) -> (Vec<f64>, f64);

    fn sawtooth(dice: &mut Dice, bins: f64, depth: f64) -> (Vec<f64>, f64) {
        let mut phase = dice.even();
        let series = (0..BINS).map(|_| {
            phase = (phase + (1.0 + 0.2 * dice.normal()) / bins).rem_euclid(1.0);
            1.0 - depth * (1.0 - phase)
        });
        (series.collect(), 1.0 - depth / 2.0)
    }

    /// A rate that changes between two levels at random moments.
    fn bimodal(dice: &mut Dice, low: f64, stay: f64) -> (Vec<f64>, f64) {
        let mut high = dice.even() < 0.5;
        let series = (0..BINS).map(|_| {
            high ^= dice.even() < 1.0 / stay;
            if high { 1.0 } else { low }
        });
        (series.collect(), f64::midpoint(1.0, low))
    }

    #[test]
    fn the_answer_is_right_in_nineteen_of_twenty_passes_and_comes_early_where_the_path_is_even() {
        let kinds: [(&str, Kind, f64, usize); 11] = [
            ("constant", |_| (vec![1.0; BINS], 1.0), 0.01, 15),
            ("a little noise", |d| (d.noisy(0.005), 1.0), 0.01, 20),
            ("noise", |d| (d.noisy(0.03), 1.0), 0.01, BINS),
            ("much noise, a wider rule", |d| (d.noisy(0.1), 1.0), 0.03, BINS),
            (
                "slow start",
                |d| {
                    let (mut series, steps) = (d.noisy(0.01), (d.even() * 8.0) as usize);
                    (0..steps).for_each(|at| series[at] *= 0.5f64.powi((steps - at) as i32));
                    (series, 1.0)
                },
                0.01,
                35,
            ),
            (
                "a shaper's bucket first, then its rate",
                |d| {
                    let (mut series, full) = (d.noisy(0.003), (d.even() * 10.0) as usize);
                    (0..full).for_each(|at| series[at] *= 3.0);
                    (series, 1.0)
                },
                0.01,
                40,
            ),
            ("a flat sawtooth", |d| sawtooth(d, 20.0, 0.03), 0.01, BINS),
            ("a deep sawtooth", |d| sawtooth(d, 5.0, 0.3), 0.03, BINS),
            (
                "bursts of a shaper, each second bin more",
                |d| ((0..BINS).map(|at| if at % 2 == 0 { 1.02 } else { 0.98 } + 0.002 * d.normal()).collect(), 1.0),
                0.01,
                40,
            ),
            ("two levels", |d| bimodal(d, 0.6, 2.0), 0.03, BINS),
            ("two levels, close together", |d| bimodal(d, 0.97, 2.0), 0.01, BINS),
        ];
        for (name, kind, half_width, latest) in kinds {
            let mut dice = Dice(7);
            let rule = StopRule { half_width, ..RULE };
            let (mut told, mut right, mut bins) = (0u32, 0u32, 0);
            for _ in 0..200 {
                let (series, truth) = kind(&mut dice);
                if let Some((after, rate)) = answer(&series, rule) {
                    (told, bins) = (told + 1, bins + after);
                    right += u32::from((rate / truth - 1.0).abs() <= half_width);
                }
            }
            assert!(f64::from(right) >= 0.95 * f64::from(told), "{name}: {right} of {told}");
            assert!(latest == BINS || told == 200 && bins / 200 <= latest, "{name}: {told} told after {} bins", bins / 200);
        }
    }

    #[test]
    fn it_never_stops_on_a_series_that_still_climbs_or_has_just_stalled() {
        for seed in 0..50 {
            let mut dice = Dice(seed);
            let noise = if seed % 2 == 0 { 0.0 } else { 0.003 };
            for step in [0.003, 0.01, 0.1, 0.5] {
                let linear: Vec<f64> = (0..40).map(|at| 1.0 + step * f64::from(at) + noise * dice.normal()).collect();
                assert_eq!(answer(&linear, RULE), None, "linear by {step}, seed {seed}");
                let growing: Vec<f64> = (0..40).map(|at| (1.0 + step).powi(at) + noise * dice.normal()).collect();
                assert_eq!(answer(&growing, RULE), None, "by a factor of {}, seed {seed}", 1.0 + step);
            }
        }
        let stalled: Vec<f64> = [1.0; 9].into_iter().chain([0.0; 30]).collect();
        assert_eq!(answer(&stalled, RULE), None);
    }

    #[test]
    fn neither_too_little_time_nor_nothing_at_all_is_enough() {
        let later = StopRule { least_us: Elapsed(4_000_000), ..RULE };
        assert_eq!(answer(&[1.0; BINS], later).map(|(bins, _)| bins), Some(40));
        assert_eq!(answer(&[0.0; BINS], RULE), None);
        for half_width in [0.0, -1.0, f64::NAN] {
            let series: Vec<f64> = (0..BINS).map(|at| 1.0 + 0.01 * (at % 3) as f64).collect();
            assert_eq!(answer(&series, StopRule { half_width, ..RULE }), None, "{half_width}");
        }
    }

    proptest! {
        #[test]
        fn no_series_makes_it_stop_before_its_time(
            bytes in proptest::collection::vec(prop_oneof![Just(0u64), any::<u64>(), 990u64..1000], 0..60),
            half_width in any::<f64>(), interval in any::<u64>(), least in any::<u64>()
        ) {
            let mut enough = Enough::new(StopRule { half_width, least_us: Elapsed(least) });
            for count in 0..=bytes.len() {
                let bins = Bins { interval_us: Elapsed(interval), bytes: bytes[..count].to_vec() };
                if enough.look(&bins) {
                    prop_assert!(count >= HOLD.1 && interval.saturating_mul(count as u64) >= least);
                }
            }
        }
    }

    #[test]
    fn a_rule_that_asks_for_nothing_ends_by_time() {
        let wild: Vec<f64> = (0..BINS).map(|at| if at % 7 < 3 { 0.0 } else { at as f64 }).collect();
        let mut enough = Enough::new(StopRule { half_width: 1.0, ..RULE });
        let mut bins = Bins { interval_us: Elapsed(100_000), bytes: vec![] };
        let after = wild.iter().position(|rate| {
            bins.bytes.push(*rate as u64);
            enough.look(&bins)
        });
        assert_eq!(after, Some(9));
    }

    #[test]
    fn the_interval_that_is_told_holds_the_truth_nineteen_times_of_twenty() {
        let mut dice = Dice(3);
        let hits = (0..400).filter(|_| {
            let part = Bins {
                interval_us: Elapsed(100_000),
                bytes: dice.noisy(0.05).iter().take(50).map(|r| (r * 1e7) as u64).collect(),
            };
            let half = half_width(&part, None).unwrap();
            (stats::mean(&part.rates()) / 1e8 - 1.0).abs() <= half
        });
        let hits = hits.count();
        assert!((372..=396).contains(&hits), "{hits} of 400");
        assert_eq!(half_width(&Bins::default(), None), None);
        let foreign = Steady { first_bin: u32::MAX, bins: u32::MAX, spread: 0.0 };
        assert_eq!(half_width(&Bins::default(), Some(&foreign)), None);
    }
}
