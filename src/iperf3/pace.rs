//! When the next block may go, where a rate is asked for. Pure.

use std::time::Duration;

use crate::units::BitRate;

/// The shortest sleep between blocks: a shorter one wakes the processor for next to nothing (a timer of Linux is 50 µs late), a
/// longer one sends a burst at high rates. At 1 Gbit/s these are 21 full frames; iperf3's own timer is four times as long.
const SHORTEST: Duration = Duration::from_micros(250);

/// The longest sleep at a time, so that a word to end is seen.
const LONGEST: Duration = Duration::from_millis(50);

/// An even rate over the whole time: who fell behind catches up, as iperf3 does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    rate: Option<BitRate>,
    burst: u64,
}

impl Pace {
    /// At most `rate` (none or zero: no limit), in bursts of `burst` bytes.
    pub(super) fn new(rate: Option<BitRate>, burst: u64) -> Self {
        Self { rate: rate.filter(|rate| rate.0 > 0), burst: burst.max(1) }
    }

    /// Whether there is a limit.
    pub(super) const fn is_limited(&self) -> bool {
        self.rate.is_some()
    }

    /// How long to sleep before the byte behind the first `sent` ones may go; zero when it may now.
    pub(super) fn wait(&self, elapsed: Duration, sent: u64) -> Duration {
        let Some(rate) = self.rate else { return Duration::ZERO };
        let begun = sent - sent % self.burst;
        let due = u128::from(begun) * 8_000_000_000 / u128::from(rate.0);
        let due = Duration::from_nanos(u64::try_from(due).unwrap_or(u64::MAX));
        match due.saturating_sub(elapsed) {
            Duration::ZERO => Duration::ZERO,
            left => left.clamp(SHORTEST, LONGEST),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn blocks_go_at_the_rate_and_a_late_one_is_made_up_for() {
        let ms = Duration::from_millis;
        let pace = Pace::new(Some(BitRate(8_000_000)), 1000);
        for (name, elapsed, sent, wait) in [
            ("the first at once", ms(0), 0, Duration::ZERO),
            ("the second after a millisecond", ms(0), 1000, ms(1)),
            ("no sleep shorter than is worth it", Duration::from_micros(999), 1000, SHORTEST),
            ("due", ms(1), 1000, Duration::ZERO),
            ("behind", ms(5), 2000, Duration::ZERO),
            ("far ahead", ms(0), 10_000_000, LONGEST),
            ("the rest of a block is not held", ms(0), 999, Duration::ZERO),
        ] {
            assert_eq!(pace.wait(elapsed, sent), wait, "{name}");
        }
        assert_eq!(Pace::new(Some(BitRate(0)), 1).wait(ms(0), u64::MAX), Duration::ZERO, "a rate of zero is none");
    }

    proptest! {
        #[test]
        fn no_number_breaks_it(rate in any::<u64>(), burst in any::<u64>(), at in any::<u64>(), sent in any::<u64>()) {
            let wait = Pace::new(Some(BitRate(rate)), burst).wait(Duration::from_nanos(at), sent);
            prop_assert!(wait <= LONGEST);
        }
    }
}
