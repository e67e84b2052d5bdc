//! From what was counted to bins, the steady part, the goodput and the pass. Pure.

use std::time::Duration;

use super::enough::half_width;
use super::shape::shape;
use super::shares::shares;
use crate::model::Outcome;
use crate::model::kernel::{Ended, ThreadCost};
use crate::model::throughput::{Bins, Method, Pass, ReceiverEnd, SenderEnd, Steady};
use crate::stats;
use crate::units::{BitRate, ByteSize, Elapsed};

/// The length of a bin: short enough to see a stall or slow start, long enough for a hundred reads at 1 Gbit/s.
pub const BIN: Duration = Duration::from_millis(100);

/// A rate whose standard deviation is above this share of its mean has not settled. CUBIC's sawtooth on a lossy path and Wi-Fi
/// stay below 0.4; a stream that stops and goes lies above.
const UNSETTLED: f64 = 0.5;

/// When all streams end within this time of each other, they are winding down.
const WINDING_DOWN: Duration = Duration::from_millis(500);

/// Makes bins of one exact length from looks at a growing count, which come when the scheduler lets them.
///
/// Between two looks the count is taken to grow evenly, so a late look makes no false dip with a false peak after it.
#[derive(Clone, Debug)]
pub struct Meter {
    interval: Duration,
    origin: Duration,
    seen_at: Duration,
    seen: u64,
    /// The count at the end of each bin.
    edges: Vec<u64>,
}

impl Meter {
    /// Bins of `interval` (at least a microsecond) from `origin` on, where the count is 0.
    pub fn new(interval: Duration, origin: Duration) -> Self {
        let interval = interval.max(Duration::from_micros(1));
        Self { interval, origin, seen_at: origin, seen: 0, edges: Vec::new() }
    }

    /// At the moment `at` the count stood at `total`. A moment that is not later than the last is no news.
    pub fn look(&mut self, at: Duration, total: u64) {
        if at <= self.seen_at {
            self.seen = self.seen.max(total);
            return;
        }
        let total = total.max(self.seen);
        let (grown, span) = (u128::from(total - self.seen), at.saturating_sub(self.seen_at).as_nanos());
        while let Some(edge) = self.next_edge().filter(|edge| *edge <= at) {
            let share = grown * edge.saturating_sub(self.seen_at).as_nanos() / span;
            self.edges.push(self.seen + u64::try_from(share).unwrap_or(u64::MAX).min(total - self.seen));
        }
        (self.seen_at, self.seen) = (at, total);
    }

    fn next_edge(&self) -> Option<Duration> {
        let bins = u32::try_from(self.edges.len()).ok()?.checked_add(1)?;
        self.origin.checked_add(self.interval.checked_mul(bins)?)
    }

    /// The whole bins that ended by `until`; the part of a bin at the end is left out.
    pub fn finish(&self, until: Duration) -> Bins {
        let whole = until.saturating_sub(self.origin).as_nanos() / self.interval.as_nanos();
        let whole = usize::try_from(whole).unwrap_or(usize::MAX);
        let before = std::iter::once(0).chain(self.edges.iter().copied());
        let bytes = self.edges.iter().zip(before).map(|(end, start)| end.saturating_sub(start)).take(whole).collect();
        Bins { interval_us: self.interval.into(), bytes }
    }
}

/// The steady part of whole bins; none when there are fewer than four, nothing moved in it, or the rate never settled.
pub fn steady(bins: &Bins) -> Option<Steady> {
    let window = stats::steady(&bins.rates())?;
    (window.mean > 0.0 && window.spread <= UNSETTLED).then(|| Steady {
        first_bin: u32::try_from(window.first).unwrap_or(u32::MAX),
        bins: u32::try_from(window.len).unwrap_or(u32::MAX),
        spread: window.spread,
    })
}

/// What the receiving application read a second: over the steady part if there is one, else over the whole time.
///
/// The whole time is from the first to the last byte, or to the end of the bins when that is later: a stall is time too.
pub fn goodput(receiver: &ReceiverEnd, steady: Option<&Steady>) -> BitRate {
    let bins = &receiver.bins;
    let span = |count: usize| Duration::from(bins.interval_us).saturating_mul(u32::try_from(count).unwrap_or(u32::MAX));
    let (bytes, time) = if let Some(part) = steady {
        let part = bins.bytes.iter().skip(part.first_bin as usize).take(part.bins as usize);
        (part.clone().copied().fold(0, u64::saturating_add), span(part.count()))
    } else {
        (receiver.bytes.0, Duration::from(receiver.elapsed_us).max(span(bins.bytes.len())))
    };
    BitRate::of(ByteSize(bytes), time)
}

/// Makes a pass of what both ends saw.
///
/// `streams` is how many were asked for, `clamp` the segment size that the connections were held to. Processor, counters and
/// round-trip times come from others: they stand as skipped until the caller puts them in.
pub fn assemble(streams: u32, sender: Outcome<SenderEnd>, receiver: ReceiverEnd, clamp: Option<u32>) -> Pass {
    let steady = steady(&receiver.bins);
    let goodput_bps = goodput(&receiver, steady.as_ref());
    let told = sender.measured();
    let limits = sender.clone().and_then(|end| shares(streams, &end, &receiver.bins, steady.as_ref()));
    let cost = |cpu: Option<Elapsed>, cycles| {
        cpu.map_or_else(
            || Outcome::skipped("the system does not tell a thread's own time"),
            |cpu_us| Outcome::Measured(ThreadCost { cpu_us, cycles }),
        )
    };
    let method = Method {
        send: told.map_or_else(|| "not told".to_owned(), |end| end.method.clone()),
        receive: receiver.method,
        congestion: told.and_then(|end| end.congestion.clone()),
        mss_clamp_bytes: clamp,
        send_trials: told.map(|end| end.trials.clone()).unwrap_or_default(),
        receive_trials: receiver.trials,
        sender_sockets: told.map(|end| end.sockets.clone()).unwrap_or_default(),
        receiver_sockets: receiver.sockets,
    };
    Pass {
        goodput_bps,
        half_width: half_width(&receiver.bins, steady.as_ref()),
        shape: shape(&receiver.bins, steady.as_ref()),
        ended: ended(told.map(|end| end.ended), receiver.ended),
        broken: told.map(|end| end.broken.clone()).unwrap_or_default().into_iter().chain(receiver.broken).collect(),
        limits,
        bytes: receiver.bytes,
        elapsed_us: receiver.elapsed_us,
        bins: receiver.bins,
        sender_bins: told.map(|end| end.bins.clone()).unwrap_or_default(),
        steady,
        stream_bytes: receiver.stream_bytes,
        sender_series: sender.clone().and_then(|end| end.series),
        receiver_series: receiver.series,
        sender_cost: sender.clone().and_then(|end| cost(end.thread_cpu_us, end.cycles)),
        receiver_cost: cost(receiver.thread_cpu_us, receiver.cycles),
        sender: sender.and_then(|end| end.stats),
        receiver: receiver.stats,
        method,
        ..Pass::blank(streams)
    }
}

/// What ended a pass. The receiver sees only the streams' end where the sender knows the reason; of what the receiver did itself, it knows
/// better, but for its wish to end early, which the sender may not have heard.
fn ended(sender: Option<Ended>, receiver: Ended) -> Ended {
    match receiver {
        Ended::Peer | Ended::Enough => sender.unwrap_or(receiver),
        Ended::Time | Ended::Bytes | Ended::Stopped => receiver,
    }
}

/// The end of the time in which all streams ran, from when each of them ended. When they end close to each other they wind down,
/// and what the last ones still bring is no rate of all streams; beyond that, a stream that goes on alone is a stall of the others,
/// and time.
pub(super) fn common_end(ends: impl Iterator<Item = Duration> + Clone) -> Duration {
    let (earliest, latest) = (ends.clone().min().unwrap_or_default(), ends.max().unwrap_or_default());
    if latest.saturating_sub(earliest) <= WINDING_DOWN { earliest } else { latest }
}

/// The processor time of all stream threads together, if every one knows its own.
pub(super) fn cpu_sum(parts: impl IntoIterator<Item = Option<Duration>>) -> Option<Elapsed> {
    parts.into_iter().try_fold(Duration::ZERO, |sum, part| Some(sum.saturating_add(part?))).map(Elapsed::from)
}

/// The processor cycles of all stream threads together, if every one knows its own.
pub(super) fn cycle_sum(parts: impl IntoIterator<Item = Option<u64>>) -> Option<u64> {
    parts.into_iter().try_fold(0u64, |sum, part| Some(sum.saturating_add(part?)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::throughput::SocketFacts;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn bins(bytes: Vec<u64>) -> Bins {
        Bins { interval_us: BIN.into(), bytes }
    }

    fn receiver(bytes: Vec<u64>, elapsed: Duration) -> ReceiverEnd {
        ReceiverEnd {
            bytes: ByteSize(bytes.iter().sum()),
            bins: bins(bytes),
            elapsed_us: elapsed.into(),
            stream_bytes: vec![],
            method: "read".into(),
            stats: Outcome::skipped("test"),
            thread_cpu_us: None,
            cycles: None,
            series: Outcome::skipped("test"),
            ended: Ended::Time,
            trials: vec![],
            sockets: SocketFacts::default(),
            broken: vec![],
        }
    }

    #[test]
    fn a_late_look_makes_neither_dip_nor_peak() {
        let mut meter = Meter::new(BIN, MS(0));
        for at in [100, 200, 390, 400, 505, 600] {
            meter.look(MS(at), at * 1000);
        }
        assert_eq!(meter.finish(MS(600)).bytes, [100_000; 6]);
    }

    #[test]
    fn a_partial_bin_at_the_end_is_left_out_and_a_stall_is_not() {
        let mut meter = Meter::new(BIN, MS(50));
        meter.look(MS(150), 1000);
        meter.look(MS(230), 1900);
        assert_eq!(meter.finish(MS(230)).bytes, [1000]);
        meter.look(MS(250), 2000);
        meter.look(MS(560), 2000);
        assert_eq!(meter.finish(MS(560)).bytes, [1000, 1000, 0, 0, 0]);
        assert_eq!(meter.finish(MS(300)).bytes, [1000, 1000]);
    }

    #[test]
    fn goodput_follows_the_rule() {
        let flat = vec![1_250_000; 20];
        let slow_start: Vec<u64> = [10_000, 200_000, 700_000].into_iter().chain(flat.clone()).collect();
        let stalled: Vec<u64> = [1_250_000; 10].into_iter().chain([0; 30]).collect();
        for (name, bytes, elapsed, steady_from, mbit) in [
            ("steady from the start", flat.clone(), MS(2000), Some(0), 100),
            ("slow start is cut off", slow_start, MS(2300), Some(3), 100),
            ("a stall to the end counts as time", stalled, MS(1000), None, 25),
            ("too short for a steady part", vec![1_250_000; 3], MS(300), None, 100),
            ("nothing at all", vec![0; 30], MS(0), None, 0),
            ("a few segments, then a black hole", vec![4344, 0, 0, 0, 0, 0, 0, 0, 0, 0], MS(1), None, 0),
        ] {
            let end = receiver(bytes, elapsed);
            let part = steady(&end.bins);
            assert_eq!(part.map(|p| p.first_bin), steady_from, "{name}");
            assert_eq!(goodput(&end, part.as_ref()).0 / 1_000_000, mbit, "{name}");
        }
    }

    #[test]
    fn a_pass_says_what_is_not_there() {
        let pass = assemble(1, Outcome::failed("the peer left"), receiver(vec![1000; 10], MS(1000)), Some(1448));
        assert_eq!(pass.sender.why(), Some("the peer left"));
        assert_eq!(pass.method.send, "not told");
        assert_eq!(pass.method.mss_clamp_bytes, Some(1448));
        assert_eq!(pass.cpu_pc.why(), Some("not told"));
    }

    #[test]
    fn the_end_that_knows_says_what_ended_a_pass() {
        for (sender, receiver, pass) in [
            (Some(Ended::Time), Ended::Peer, Ended::Time),
            (Some(Ended::Enough), Ended::Enough, Ended::Enough),
            (Some(Ended::Time), Ended::Enough, Ended::Time),
            (Some(Ended::Stopped), Ended::Peer, Ended::Stopped),
            (Some(Ended::Time), Ended::Bytes, Ended::Bytes),
            (Some(Ended::Time), Ended::Stopped, Ended::Stopped),
            (None, Ended::Peer, Ended::Peer),
            (None, Ended::Enough, Ended::Enough),
        ] {
            assert_eq!(ended(sender, receiver), pass, "{sender:?} and {receiver:?}");
        }
    }

    proptest! {
        #[test]
        fn bins_hold_what_was_counted(looks in proptest::collection::vec((1u64..400_000, 0u64..1 << 40), 1..60), origin in 0u64..1_000_000) {
            let origin = Duration::from_micros(origin);
            let mut meter = Meter::new(BIN, origin);
            let (mut at, mut total) = (origin, 0u64);
            for (step, more) in looks {
                at += Duration::from_micros(step);
                total += more;
                meter.look(at, total);
            }
            let bins = meter.finish(at);
            let sum: u64 = bins.bytes.iter().sum();
            prop_assert!(sum <= total);
            prop_assert_eq!(bins.bytes.len() as u128, at.saturating_sub(origin).as_nanos() / BIN.as_nanos());
            meter.look(at + BIN, total);
            prop_assert_eq!(meter.finish(at + BIN).bytes.iter().sum::<u64>(), total);
        }

        #[test]
        fn an_even_flow_gives_even_bins_however_late_the_looks(steps in proptest::collection::vec(1u64..500, 5..50)) {
            let mut meter = Meter::new(BIN, MS(0));
            let mut at = 0;
            for step in steps {
                at += step;
                meter.look(MS(at), at * 1000);
            }
            prop_assert!(meter.finish(MS(at)).bytes.iter().all(|b| (99_999..=100_001).contains(b)));
        }

        #[test]
        fn nothing_from_a_peer_breaks_the_arithmetic(
            bytes in proptest::collection::vec(any::<u64>(), 0..40), interval in any::<u64>(), elapsed in any::<u64>(), all in any::<u64>()
        ) {
            let mut end = receiver(vec![], MS(0));
            end.bins = Bins { interval_us: Elapsed(interval), bytes };
            end.elapsed_us = Elapsed(elapsed);
            end.bytes = ByteSize(all);
            let pass = assemble(u32::MAX, Outcome::skipped("test"), end, None);
            if let Some(part) = pass.steady {
                prop_assert!(part.first_bin as usize + part.bins as usize <= pass.bins.bytes.len());
            }
        }
    }
}
