//! Pure statistics of series: percentiles, the steady part, the cliff.

/// The mean; zero for an empty series.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The standard deviation of a sample; zero with fewer than two values.
pub fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64).sqrt()
}

/// Standard deviation over mean; zero when the mean is zero.
pub fn spread(values: &[f64]) -> f64 {
    let mean = mean(values);
    if mean > 0.0 { deviation(values) / mean } else { 0.0 }
}

/// Half the width of the 95 % confidence interval of the mean, as a share of the mean; infinite with fewer than four values, with
/// a mean that is not above zero, or when they say too little.
///
/// Neighbouring values of one stream are alike (a window's sawtooth, a shaper's bursts), so the usual s/√n is too narrow: see
/// [`half_width`], here with [`effective_size`].
pub fn confidence(values: &[f64]) -> f64 {
    half_width(values, effective_size(values))
}

/// [`confidence`] when the values tell as much as `size` independent ones.
///
/// The variance is freed from the bias that likeness gives it (its expectation is σ²·(1 − 1/m) with m such values: G. V. Bayley and J. M.
/// Hammersley, 1946), and the quantile is Student's with m − 1 degrees of freedom.
pub fn half_width(values: &[f64], size: f64) -> f64 {
    let mean = mean(values);
    if values.len() < 4 || mean <= 0.0 || size <= 1.0 {
        return f64::INFINITY;
    }
    let squares = squares(values) / values.len() as f64;
    let half = student(size - 1.0) * (squares / (size - 1.0)).sqrt() / mean;
    if half.is_finite() { half } else { f64::INFINITY }
}

/// The sum of the squared distances from the mean.
fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|v| (v - mean).powi(2)).sum()
}

/// The 97.5 % quantile of Student's t distribution: tabulated below six degrees of freedom, beyond by the expansion of R. A. Fisher
/// and E. A. Cornish (1960), which is exact to three digits there. Between whole degrees the lower one counts.
fn student(freedom: f64) -> f64 {
    const TABLE: [f64; 6] = [f64::INFINITY, 12.706, 4.303, 3.182, 2.776, 2.571];
    const Z: f64 = 1.959_964;
    let freedom = freedom.floor().max(0.0);
    TABLE.get(freedom as usize).copied().unwrap_or_else(|| {
        let first = (Z.powi(3) + Z) / 4.0;
        let second = (5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z) / 96.0;
        let third = (3.0 * Z.powi(7) + 19.0 * Z.powi(5) + 17.0 * Z.powi(3) - 15.0 * Z) / 384.0;
        Z + first / freedom + second / freedom.powi(2) + third / freedom.powi(3)
    })
}

/// How alike values are that lie `lag` apart, from -1 to 1; zero where nothing varies or the lag is too long.
pub fn autocorrelation(values: &[f64], lag: usize) -> f64 {
    likeness(values, mean(values), squares(values), lag)
}

/// [`autocorrelation`] with the mean and the [`squares`] that the caller knows.
fn likeness(values: &[f64], mean: f64, squares: f64, lag: usize) -> f64 {
    let later = values.get(lag..).unwrap_or_default();
    let products: f64 = values.iter().zip(later).map(|(a, b)| (a - mean) * (b - mean)).sum();
    if squares > 0.0 { products / squares } else { 0.0 }
}

/// How many independent values would tell as much about the mean as these: between 1 and their number.
///
/// n / τ with τ = 1 + 2·Σ ρ(k), the integrated autocorrelation time. The sum ends where two neighbouring terms together are no longer
/// positive: the initial positive sequence of C. J. Geyer (Practical Markov Chain Monte Carlo, 1992). Each ρ is raised by 1/n, by which
/// short series make it too small (F. H. C. Marriott and J. A. Pope, 1954). Values that alternate count no more than once.
pub fn effective_size(values: &[f64]) -> f64 {
    /// Beyond it a series is too long for its neighbours to matter; it bounds the work.
    const LAGS: usize = 200;
    let n = values.len() as f64;
    let most = (values.len() / 2).min(LAGS);
    let (mean, squares) = (mean(values), squares(values));
    let likeness = |lag: usize| if lag == 0 { 1.0 } else { likeness(values, mean, squares, lag) + 1.0 / n };
    let mut time = -1.0;
    for lag in (0..most.max(1)).step_by(2) {
        let pair = likeness(lag) + likeness(lag + 1);
        if pair <= 0.0 {
            break;
        }
        time += 2.0 * pair;
    }
    (n / time.max(1.0)).max(1.0)
}

/// How a series changes from its begin to its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// The change of the straight line from the first to the last value, as a share of the mean; negative is a fall.
    pub change: f64,
    /// Its standard error.
    pub error: f64,
}

/// The straight line of least squares through a series, with the error of its slope; none with fewer than four values or a mean that is
/// not above zero.
///
/// The error takes the likeness of neighbours into account as [`confidence`] does, by what the line leaves over.
pub fn trend(values: &[f64]) -> Option<Trend> {
    let (n, mean) = (values.len() as f64, mean(values));
    if values.len() < 4 || mean <= 0.0 {
        return None;
    }
    let middle = (n - 1.0) / 2.0;
    let width: f64 = (0..values.len()).map(|at| (at as f64 - middle).powi(2)).sum();
    let slope = values.iter().enumerate().map(|(at, v)| (at as f64 - middle) * v).sum::<f64>() / width;
    let rest: Vec<f64> = values.iter().enumerate().map(|(at, v)| v - slope * (at as f64 - middle)).collect();
    let size = effective_size(&rest);
    let variance = squares(&rest) / n * size / (size - 2.0).max(0.5);
    let scale = (n - 1.0) / mean;
    let trend = Trend { change: slope * scale, error: (variance / width * n / size).sqrt() * scale };
    (trend.change.is_finite() && trend.error.is_finite()).then_some(trend)
}

/// The `p`-th percentile (0 to 100) by nearest rank; none for an empty series.
pub fn percentile(values: &[f64], p: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (p / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1).min(sorted.len().saturating_sub(1))).copied()
}

/// The steady part of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// The first value of it.
    pub first: usize,
    /// The number of values.
    pub len: usize,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation over the mean.
    pub spread: f64,
}

/// Finds where a beginning (slow start, filling buffers) ends and the steady part starts.
///
/// The rule is MSER (K. P. White, 1997): of all cuts in the first half, the one with the smallest
/// standard error of what remains. None with fewer than four values.
pub fn steady(values: &[f64]) -> Option<Window> {
    if values.len() < 4 {
        return None;
    }
    // From the end towards the beginning, so that each cut costs one step (B. P. Welford, 1962): exactly zero where nothing varies.
    let (mut mean, mut squares, mut best) = (0.0, 0.0, (f64::INFINITY, 0));
    for (first, value) in values.iter().enumerate().rev() {
        let len = (values.len() - first) as f64;
        let off = value - mean;
        mean += off / len;
        squares += off * (value - mean);
        let error = squares / (len * len);
        if first <= values.len() / 2 && error <= best.0 {
            best = (error, first);
        }
    }
    let rest = &values[best.1..];
    Some(Window { first: best.1, len: rest.len(), mean: self::mean(rest), spread: spread(rest) })
}

/// A fall from one level to a lower one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cliff {
    /// The first value of the lower level.
    pub at: usize,
    /// The mean before.
    pub before: f64,
    /// The mean after.
    pub after: f64,
}

/// Finds the one place where a series falls to a lower level and stays there.
///
/// It is the cut with the least squared error of two constant levels. A cliff is reported when the
/// first level is at least 1.3 times the second, both sides hold at least three values, and the two
/// levels explain at least half of the variance: less is noise.
pub fn cliff(values: &[f64]) -> Option<Cliff> {
    const SIDE: usize = 3;
    const RATIO: f64 = 1.3;
    const EXPLAINED: f64 = 0.5;
    if values.len() < 2 * SIDE {
        return None;
    }
    let squares = |part: &[f64]| {
        let mean = mean(part);
        part.iter().map(|v| (v - mean).powi(2)).sum::<f64>()
    };
    let at = (SIDE..=values.len() - SIDE).min_by(|a, b| {
        (squares(&values[..*a]) + squares(&values[*a..])).total_cmp(&(squares(&values[..*b]) + squares(&values[*b..])))
    })?;
    let (before, after) = (mean(&values[..at]), mean(&values[at..]));
    let unexplained = squares(&values[..at]) + squares(&values[at..]);
    (before >= RATIO * after && unexplained <= (1.0 - EXPLAINED) * squares(values)).then_some(Cliff { at, before, after })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_is_cut_off() {
        let mut values = vec![10.0, 40.0, 80.0];
        values.extend([100.0; 17]);
        let window = steady(&values).unwrap();
        assert_eq!((window.first, window.len), (3, 17));
        assert!((window.mean - 100.0).abs() < 1e-9);
    }

    #[test]
    fn a_flat_series_is_steady_from_the_start() {
        assert_eq!(steady(&[5.0; 10]).unwrap().first, 0);
        assert_eq!(steady(&[5.0; 3]), None);
    }

    #[test]
    fn a_full_cache_is_a_cliff_and_noise_is_none() {
        let series: Vec<f64> = [400.0; 12].into_iter().chain([90.0; 20]).collect();
        assert_eq!(cliff(&series), Some(Cliff { at: 12, before: 400.0, after: 90.0 }));
        let noise: Vec<f64> = (0..30).map(|i| if i % 2 == 0 { 100.0 } else { 140.0 }).collect();
        assert_eq!(cliff(&noise), None);
        let rising: Vec<f64> = (0..30).map(f64::from).collect();
        assert_eq!(cliff(&rising), None);
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(percentile(&values, 50.0), Some(50.0));
        assert_eq!(percentile(&values, 95.0), Some(95.0));
        assert_eq!(percentile(&values, 100.0), Some(100.0));
        assert_eq!(percentile(&[], 50.0), None);
    }

    #[test]
    fn confidence_narrows_with_more_values() {
        let few = [90.0, 110.0, 90.0, 110.0];
        let many: Vec<f64> = few.iter().copied().cycle().take(64).collect();
        assert!(confidence(&many) < confidence(&few) / 3.0);
        assert!(confidence(&[1.0]).is_infinite());
    }

    #[test]
    fn the_quantile_is_that_of_the_tables() {
        for (freedom, quantile) in [(1.0, 12.706), (4.9, 2.776), (6.0, 2.447), (9.0, 2.262), (20.0, 2.086), (1000.0, 1.962)] {
            assert!((student(freedom) - quantile).abs() < 2e-3, "{freedom}: {}", student(freedom));
        }
        assert!(student(0.5).is_infinite());
    }

    #[test]
    fn alike_neighbours_count_less() {
        let mut state = 9u64;
        let mut dice = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let single: Vec<f64> = (0..400).map(|_| 100.0 + dice()).collect();
        let tenfold: Vec<f64> = single.iter().flat_map(|value| [*value; 10]).collect();
        let size = effective_size(&single);
        assert!((250.0..=400.0).contains(&size), "{size}");
        let size = effective_size(&tenfold);
        assert!((250.0..=500.0).contains(&size), "{size}");
        assert!((confidence(&tenfold) / confidence(&single) - 1.0).abs() < 0.3);
        let swinging: Vec<f64> = (0..50).map(|at| f64::from(at % 2)).collect();
        assert!((effective_size(&swinging) - 50.0).abs() < 1e-9);
        assert!((autocorrelation(&swinging, 1) + 0.98).abs() < 1e-9);
        assert!(effective_size(&[]) >= 1.0 && autocorrelation(&[1.0], 5).abs() < 1e-9);
    }

    #[test]
    fn a_line_has_the_trend_that_it_has() {
        let line: Vec<f64> = (0..21).map(|at| 90.0 + f64::from(at)).collect();
        let trend = super::trend(&line).unwrap();
        assert!((trend.change - 0.2).abs() < 1e-9 && trend.error < 1e-9, "{trend:?}");
        assert_eq!(super::trend(&[0.0; 9]), None);
        assert_eq!(super::trend(&[1.0; 3]), None);
        let swinging: Vec<f64> = (0..50).map(|at| 100.0 + f64::from(at % 2)).collect();
        let trend = super::trend(&swinging).unwrap();
        assert!(trend.change.abs() < 2.0 * trend.error, "{trend:?}");
    }
}
