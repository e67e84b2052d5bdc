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

/// Half the width of the 95 % confidence interval of the mean, as a share of the mean; infinite with fewer than two values.
///
/// Bins of one stream are correlated, so this is a lower bound; 1.96 is the normal quantile.
pub fn confidence(values: &[f64]) -> f64 {
    if values.len() < 2 { f64::INFINITY } else { 1.96 * spread(values) / (values.len() as f64).sqrt() }
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
    let error = |first: usize| {
        let rest = &values[first..];
        let mean = mean(rest);
        rest.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (rest.len() as f64).powi(2)
    };
    let first = (0..=values.len() / 2).min_by(|a, b| error(*a).total_cmp(&error(*b)))?;
    let rest = &values[first..];
    Some(Window { first, len: rest.len(), mean: mean(rest), spread: spread(rest) })
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
}
