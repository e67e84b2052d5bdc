//! What a series of bins looks like: stalls, dips that come again and again, drift. Pure.
//!
//! Everything here is told only when chance can hardly have made it: a person who reads of dips goes and looks for their cause.

use crate::model::kernel::{Dips, Shape};
use crate::model::throughput::{Bins, Steady};
use crate::stats;
use crate::units::Elapsed;

/// The least dips that make a rhythm: three distances.
const LEAST_DIPS: usize = 4;

/// The least depth of a dip as a share of the usual rate: less is not worth a search.
const LEAST_DEPTH: f64 = 0.1;

/// How far below the usual rate a dip is, in standard deviations of the bins that are no dips.
const DEEPER: f64 = 4.0;

/// The median distance from the median, times this, is the standard deviation of normal noise, however deep some dips are.
const MEDIAN_DISTANCE: f64 = 1.4826;

/// The chance of a rhythm among dips at random moments below which it is one.
const CHANCE: f64 = 0.002;

/// How far a distance may be off the usual one, in bins: the length of a dip is known no better.
const OFF: f64 = 1.0;

/// The change over the steady part that is worth a word, as a share of the mean, and how many standard errors it has to be.
const DRIFT: (f64, f64) = (0.02, 4.0);

/// The least bins of a steady part that may drift.
const DRIFT_BINS: usize = 15;

/// The shape of the bins of a pass; `steady` is their steady part. Nothing is told of a pass in which nothing arrived.
pub(super) fn shape(bins: &Bins, steady: Option<&Steady>) -> Shape {
    if bins.bytes.iter().all(|bytes| *bytes == 0) {
        return Shape::default();
    }
    let longest = bins.bytes.split(|bytes| *bytes > 0).map(<[u64]>::len).max().unwrap_or_default();
    let rates = bins.rates();
    let part = steady.and_then(|part| {
        let first = part.first_bin as usize;
        rates.get(first..first.checked_add(part.bins as usize)?)
    });
    Shape {
        empty_bins: u32::try_from(bins.bytes.iter().filter(|bytes| **bytes == 0).count()).unwrap_or(u32::MAX),
        longest_stall_us: Elapsed(bins.interval_us.0.saturating_mul(longest as u64)),
        // A rate that never settled may well be one that stops in a rhythm.
        dips: dips(part.unwrap_or(&rates), bins.interval_us),
        drift: part.and_then(drift),
    }
}

/// The dips that come at one distance, if there are any.
fn dips(rates: &[f64], interval: Elapsed) -> Option<Dips> {
    let (found, usual) = found(rates)?;
    let distances: Vec<f64> = found.iter().zip(found.iter().skip(1)).map(|(a, b)| b.at - a.at).collect();
    let every = stats::mean(&distances);
    let off = distances.iter().map(|distance| (distance - every).abs()).fold(0.0, f64::max);
    let share = found.len() as f64 / rates.len() as f64;
    if found.len() < LEAST_DIPS || off > OFF || chance(every, off, share, distances.len()) > CHANCE {
        return None;
    }
    let least = found.iter().map(|dip| dip.least).sum::<f64>() / found.len() as f64;
    Some(Dips {
        every_us: Elapsed((interval.0 as f64 * every) as u64),
        count: u32::try_from(found.len()).unwrap_or(u32::MAX),
        depth: ((usual - least) / stats::mean(rates)).clamp(0.0, 1.0),
    })
}

/// One dip: where its middle is, in bins, and its lowest rate.
struct Dip {
    at: f64,
    least: f64,
}

/// All dips of a series, and the rate beside them.
fn found(rates: &[f64]) -> Option<(Vec<Dip>, f64)> {
    let usual = stats::percentile(rates, 50.0).filter(|rate| *rate > 0.0)?;
    let distances: Vec<f64> = rates.iter().map(|rate| (rate - usual).abs()).collect();
    let deviation = MEDIAN_DISTANCE * stats::percentile(&distances, 50.0)?;
    let floor = usual - (DEEPER * deviation).max(LEAST_DEPTH * usual);
    let indexed: Vec<(usize, f64)> = rates.iter().copied().enumerate().collect();
    let runs = indexed.chunk_by(|a, b| (a.1 < floor) == (b.1 < floor)).filter(|run| run.first().is_some_and(|(_, r)| *r < floor));
    let dips = runs.map(|run| {
        // The middle by weight: a short stall that lies across a border shows in both bins.
        let weight: f64 = run.iter().map(|(_, rate)| usual - rate).sum();
        let at = run.iter().map(|(at, rate)| *at as f64 * (usual - rate)).sum::<f64>() / weight;
        Dip { at, least: run.iter().map(|(_, rate)| *rate).fold(f64::INFINITY, f64::min) }
    });
    Some((dips.collect(), usual))
}

/// How likely dips at random moments, which a bin begins with the likelihood `share`, keep one distance so many times to within
/// `off` bins; the first distance says which.
///
/// Random moments are apart by a geometric distribution, (1 − q)^(d − 1)·q for d bins.
fn chance(every: f64, off: f64, share: f64, distances: usize) -> f64 {
    let one = share * (1.0 - share).powf((every - 1.0).max(0.0)) * (2.0 * off + 1.0);
    one.min(1.0).powf(distances.saturating_sub(1) as f64)
}

/// The drift of a steady part, if it is one.
fn drift(part: &[f64]) -> Option<f64> {
    let trend = stats::trend(part).filter(|_| part.len() >= DRIFT_BINS)?;
    (trend.change.abs() >= DRIFT.0 && trend.change.abs() > DRIFT.1 * trend.error).then_some(trend.change)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::throughput::steady;

    fn bins(rates: impl IntoIterator<Item = f64>) -> Bins {
        Bins { interval_us: Elapsed(100_000), bytes: rates.into_iter().map(|rate| (rate * 1e6) as u64).collect() }
    }

    fn shape_of(rates: impl IntoIterator<Item = f64>) -> Shape {
        let bins = bins(rates);
        shape(&bins, steady(&bins).as_ref())
    }

    /// Noise around 1, reproducible: the sum of twelve even numbers is nearly normal.
    fn noise(seed: u64, spread: f64) -> impl FnMut() -> f64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut even = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        move || (1.0 + spread * ((0..12).map(|_| even()).sum::<f64>() - 6.0)).max(0.0)
    }

    #[test]
    fn stalls_are_counted_in_whole_bins() {
        for (name, rates, empty, longest) in [
            ("none", vec![1.0; 20], 0, 0),
            ("one", [vec![1.0; 10], vec![0.0; 3], vec![1.0; 10]].concat(), 3, 300_000),
            ("two, and to the end", [vec![1.0; 5], vec![0.0], vec![1.0; 5], vec![0.0; 4]].concat(), 5, 400_000),
            ("nothing at all", vec![0.0; 30], 0, 0),
            ("no bins", vec![], 0, 0),
        ] {
            let shape = shape_of(rates);
            assert_eq!((shape.empty_bins, shape.longest_stall_us.0), (empty, longest), "{name}");
        }
    }

    #[test]
    fn a_rhythm_of_dips_is_seen() {
        for (name, period, phase, width, left, length) in [
            ("a flush each second", 10.0, 5.0, 1.0, 0.0, 60),
            ("half the rate for two bins", 20.0, 7.0, 2.0, 0.5, 150),
            ("beacons each 1.024 s", 10.24, 3.3, 0.6, 0.0, 100),
            ("many", 4.0, 1.0, 1.0, 0.3, 50),
            ("a third of the time", 10.0, 4.0, 3.0, 0.1, 80),
        ] {
            let mut noise = noise(11, 0.02);
            // How much of each bin lies in a dip.
            let series: Vec<f64> = (0..length)
                .map(|bin| {
                    let inside =
                        (0..100).filter(|part| (f64::from(bin) + f64::from(*part) / 100.0 - phase).rem_euclid(period) < width);
                    noise() * (1.0 - (1.0 - left) * inside.count() as f64 / 100.0)
                })
                .collect();
            let dips = shape_of(series).dips.unwrap_or_else(|| panic!("{name}"));
            let (every, expected) = (dips.every_us.seconds() * 10.0, f64::from(length) / period);
            assert!((every - period).abs() <= 0.1 * period, "{name}: {dips:?}");
            assert!((f64::from(dips.count) - expected).abs() <= 0.5 * expected, "{name}: {dips:?}");
            assert!(dips.depth > 0.3, "{name}: {dips:?}");
        }
    }

    #[test]
    fn what_is_no_rhythm_of_dips_is_not_called_one() {
        let saw = |at: usize| 0.7 + 0.3 * (at % 10) as f64 / 10.0;
        for (name, series) in [
            ("even", vec![1.0; 60]),
            ("a sawtooth of the window", (0..80).map(saw).collect()),
            ("three dips", (0..40).map(|at| if at % 12 == 6 { 0.2 } else { 1.0 }).collect()),
            ("dips at odd distances", (0..80).map(|at| if [9, 14, 31, 40, 66, 71].contains(&at) { 0.0 } else { 1.0 }).collect()),
            ("shallow dips", (0..80).map(|at| if at % 10 == 5 { 0.95 } else { 1.0 }).collect()),
            ("one long stall", [vec![1.0; 30], vec![0.0; 20], vec![1.0; 30]].concat()),
            ("a cliff", [vec![1.0; 40], vec![0.4; 40]].concat()),
            ("peaks", (0..80).map(|at| if at % 10 == 5 { 3.0 } else { 1.0 }).collect()),
        ] {
            assert_eq!(shape_of(series).dips, None, "{name}");
        }
    }

    #[test]
    fn noise_has_no_shape() {
        let (mut dips, mut drifts) = (0, 0);
        for seed in 0..1000 {
            let spread = [0.01, 0.05, 0.2, 0.3][seed as usize % 4];
            let mut noise = noise(seed, spread);
            // Every other series has a memory: each bin is half the one before.
            let mut before = 1.0;
            let series: Vec<f64> = (0..100)
                .map(|_| {
                    before = if seed % 8 < 4 { noise() } else { 0.5 * before + 0.5 * noise() };
                    before
                })
                .collect();
            let shape = shape_of(series);
            (dips, drifts) = (dips + u32::from(shape.dips.is_some()), drifts + u32::from(shape.drift.is_some()));
        }
        assert!(dips <= 2 && drifts <= 5, "{dips} rhythms and {drifts} drifts in 1000 series of noise");
        let random = (0..500).filter(|seed| {
            let mut noise = noise(*seed, 1.0);
            shape_of((0..100).map(|_| if noise() < 0.0 + 0.15 { 0.1 } else { 1.0 })).dips.is_some()
        });
        let random = random.count();
        assert!(random <= 5, "{random} rhythms in 500 series of random dips");
    }

    #[test]
    fn a_drift_is_told_by_size_and_sign() {
        for (change, noisy) in [(0.1, 0.005), (-0.2, 0.01), (-0.4, 0.0), (0.0, 0.01), (0.01, 0.0)] {
            let mut noise = noise(5, noisy);
            let drift = shape_of((0..60).map(|at| noise() * (1.0 + change * (f64::from(at) / 59.0 - 0.5)))).drift;
            if f64::abs(change) < 0.02 {
                assert_eq!(drift, None, "{change}");
            } else {
                // The steady part may begin later, so that it holds half of the change at least.
                let share = drift.unwrap_or_else(|| panic!("{change}")) / change;
                assert!((0.4..1.2).contains(&share), "{change}: {share}");
            }
        }
    }

    proptest! {
        #[test]
        fn nothing_from_a_peer_breaks_it(
            bytes in proptest::collection::vec(prop_oneof![Just(0u64), any::<u64>(), 900u64..1000], 0..80),
            interval in any::<u64>(), first_bin in any::<u32>(), len in any::<u32>()
        ) {
            let bins = Bins { interval_us: Elapsed(interval), bytes };
            for part in [None, Some(Steady { first_bin, bins: len, spread: 0.0 }), Some(Steady { first_bin: first_bin % 9, bins: len % 80, spread: 0.0 })] {
                let shape = shape(&bins, part.as_ref());
                prop_assert!(shape.empty_bins as usize <= bins.bytes.len());
                if let Some(dips) = shape.dips {
                    prop_assert!((0.0..=1.0).contains(&dips.depth) && dips.count as usize <= bins.bytes.len());
                }
            }
        }
    }
}
