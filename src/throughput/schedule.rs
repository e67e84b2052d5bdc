//! When to look at the counters: on an absolute schedule, so that lateness never adds up.

use std::time::Duration;

/// Moments at a fixed distance from one origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    origin: Duration,
    interval: Duration,
}

impl Schedule {
    /// Moments `interval` apart (at least a millisecond), counted from `origin`; times are distances from any one beginning.
    pub fn new(origin: Duration, interval: Duration) -> Self {
        Self { origin, interval: interval.max(Duration::from_millis(1)) }
    }

    /// How long to wait at `now` for the next moment: more than nothing, at most one interval. Missed moments are left out.
    pub fn wait(&self, now: Duration) -> Duration {
        let Some(since) = now.checked_sub(self.origin) else {
            return self.origin.saturating_sub(now).min(self.interval);
        };
        let into = since.as_nanos() % self.interval.as_nanos();
        self.interval.saturating_sub(Duration::from_nanos(u64::try_from(into).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_look_does_not_move_the_next_one() {
        let ms = Duration::from_millis;
        let schedule = Schedule::new(ms(30), ms(100));
        for (now, wait) in [(0, 30), (30, 100), (31, 99), (129, 1), (130, 100), (190, 40), (475, 55)] {
            assert_eq!(schedule.wait(ms(now)), ms(wait), "at {now} ms");
        }
    }
}
