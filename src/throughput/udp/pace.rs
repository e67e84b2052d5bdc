//! When which datagram is due: an absolute schedule, so that no late wake-up adds up. Pure.

use std::time::Duration;

use crate::units::BitRate;

/// The time that one burst stands for, at most: a queue in a small switch takes what comes at once at the rate of the host's own
/// port, and four wake-ups a millisecond cost little.
const BURST: Duration = Duration::from_micros(250);

/// How much faster than asked for a late sender may be: faster would overfill queues that the rate itself does not.
const HURRY: u32 = 2;

/// What a sender that overslept hands over at once: ordinary wake-ups are late by 0.05 to 1 ms, and as much was not sent before.
const AT_ONCE: Duration = Duration::from_millis(2);

/// A sender that is later than this gives up what it missed.
const LATEST: Duration = Duration::from_millis(4);

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Hand over so many datagrams.
    Send(usize),
    /// Nothing is due for so long.
    Wait(Duration),
    /// Everything was handed over, or the time is over.
    Over,
}

/// A schedule of bursts. Moments are counted from its start.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    rate: u128,
    bits: u128,
    burst: u64,
    total: u64,
    duration: Duration,
    done: u64,
    /// What was given up, as time.
    shift: Duration,
    /// The time whose datagrams may go out now, and up to when it was filled.
    credit: Duration,
    filled: Duration,
}

impl Pace {
    /// Datagrams of `bytes` at `rate` (at least 1 bit/s) for `duration`; at most `most` at once.
    pub(super) fn new(rate: BitRate, bytes: usize, duration: Duration, most: usize) -> Self {
        let (rate, bits) = (u128::from(rate.0.max(1)), (bytes.max(1) as u128) * 8);
        let within = |time: Duration| u64::try_from(time.as_nanos() * rate / (bits * 1_000_000_000)).unwrap_or(u64::MAX);
        let burst = within(BURST).clamp(1, most.max(1) as u64);
        let total = within(duration).max(1);
        let (shift, filled) = (Duration::ZERO, Duration::ZERO);
        let mut pace = Self { rate, bits, burst, total, duration, done: 0, shift, credit: AT_ONCE, filled };
        pace.credit = AT_ONCE.max(pace.span(burst));
        pace
    }

    /// How many datagrams the whole schedule has.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    /// The time that `count` datagrams stand for.
    pub(super) fn span(&self, count: u64) -> Duration {
        let nanos = u128::from(count) * self.bits * 1_000_000_000 / self.rate;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// When the next burst is due.
    fn due(&self) -> Duration {
        self.span(self.done).saturating_add(self.shift)
    }

    /// What to do at the moment `now`.
    pub(super) fn turn(&mut self, now: Duration) -> Turn {
        if self.done >= self.total || now >= self.duration.saturating_add(BURST) {
            return Turn::Over;
        }
        let count = self.burst.min(self.total - self.done);
        let length = self.span(count);
        let more = now.saturating_sub(std::mem::replace(&mut self.filled, now)).saturating_mul(HURRY);
        self.credit = self.credit.saturating_add(more).min(AT_ONCE.max(length));
        let late = now.saturating_sub(self.due());
        self.shift = self.shift.saturating_add(late.saturating_sub(LATEST));
        let lacking = length.saturating_sub(self.credit) / HURRY;
        let wait = self.due().saturating_sub(now).max(lacking);
        if wait.is_zero() { Turn::Send(usize::try_from(count).unwrap_or(usize::MAX)) } else { Turn::Wait(wait) }
    }

    /// So many datagrams were handed over, taken by the kernel or refused.
    pub(super) fn sent(&mut self, count: usize) {
        self.done = self.done.saturating_add(count as u64);
        self.credit = self.credit.saturating_sub(self.span(count as u64));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Runs a schedule against a clock that oversleeps by these times in turn; gives every hand-over.
    fn run(pace: &mut Pace, oversleep: &[u64], cost: Duration) -> Vec<(Duration, usize)> {
        let (mut now, mut sent, mut naps) = (Duration::ZERO, Vec::new(), oversleep.iter().cycle());
        for _ in 0..2_000_000 {
            match pace.turn(now) {
                Turn::Over => return sent,
                Turn::Wait(time) => now += time + Duration::from_micros(naps.next().copied().unwrap_or(0)),
                Turn::Send(count) => {
                    sent.push((now, count));
                    pace.sent(count);
                    now += cost;
                }
            }
        }
        panic!("it does not end");
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn bursts_have_the_size_that_belongs_to_the_rate() {
        for (mbit, most, burst) in
            [(1, 44, 1), (10, 44, 1), (50, 44, 1), (100, 44, 2), (1000, 44, 21), (10_000, 44, 44), (100, 1, 1)]
        {
            let mut pace = Pace::new(BitRate::from_mbit(mbit), 1472, SECOND, most);
            assert_eq!(pace.turn(Duration::ZERO), Turn::Send(burst), "{mbit} Mbit/s");
        }
    }

    #[test]
    fn late_wake_ups_do_not_add_up() {
        for mbit in [10, 100, 1000, 2500, 10_000] {
            let mut pace = Pace::new(BitRate::from_mbit(mbit), 1472, SECOND, 44);
            let count: usize = run(&mut pace, &[60, 90, 40, 900], Duration::ZERO).iter().map(|(_, count)| count).sum();
            assert!(count as f64 > pace.total() as f64 * 0.999, "{mbit} Mbit/s: {count} of {}", pace.total());
        }
    }

    #[test]
    fn a_long_stall_is_given_up_and_a_slow_host_is_behind() {
        let mut pace = Pace::new(BitRate::from_mbit(1000), 1472, SECOND, 44);
        let naps: Vec<u64> = std::iter::once(100_000).chain(std::iter::repeat_n(0, 10_000)).collect();
        let count: usize = run(&mut pace, &naps, Duration::ZERO).iter().map(|(_, count)| count).sum();
        let share = count as f64 / pace.total() as f64;
        assert!((0.90..0.91).contains(&share), "{share}");
        let mut pace = Pace::new(BitRate::from_mbit(10_000), 1472, SECOND, 44);
        let count: usize = run(&mut pace, &[0], Duration::from_micros(104)).iter().map(|(_, count)| count).sum();
        let share = count as f64 / pace.total() as f64;
        assert!((0.48..0.51).contains(&share), "{share}");
    }

    proptest! {
        #[test]
        fn no_moment_gets_more_than_its_share(
            mbit in 1u64..2500, bytes in 64usize..9000, naps in proptest::collection::vec(0u64..20_000, 1..20)
        ) {
            let time = Duration::from_millis(100);
            let mut pace = Pace::new(BitRate::from_mbit(mbit), bytes, time, 44);
            let sent = run(&mut pace, &naps, Duration::ZERO);
            prop_assert!(sent.iter().map(|(_, count)| *count as u64).sum::<u64>() <= pace.total());
            let bits = |from: usize, to: usize| sent[from..=to].iter().map(|(_, n)| *n as f64 * bytes as f64 * 8.0).sum::<f64>();
            // From any burst to any later one: what the rate allows in that time, the time that may be caught up, and a burst.
            let rate = mbit as f64 * 1e6;
            for from in (0..sent.len()).step_by(7) {
                for to in (from..sent.len()).step_by(5) {
                    let span = (sent[to].0.saturating_sub(sent[from].0) + LATEST + BURST).as_secs_f64();
                    prop_assert!(bits(from, to) <= rate * span + 2.0 * bytes as f64 * 8.0);
                }
            }
            // The schedule never runs ahead of the clock.
            let mut whole = 0.0;
            for (at, count) in &sent {
                prop_assert!(whole <= rate * at.as_secs_f64() + bytes as f64 * 8.0);
                whole += *count as f64 * bytes as f64 * 8.0;
            }
        }

        #[test]
        fn no_plan_breaks_the_arithmetic(rate: u64, bytes: usize, nanos: u64, most: usize, now: u64) {
            let mut pace = Pace::new(BitRate(rate), bytes.min(65_507), Duration::from_nanos(nanos), most);
            let _ = pace.turn(Duration::from_nanos(now));
            pace.sent(1);
            let _ = pace.turn(Duration::from_nanos(now));
        }
    }
}
