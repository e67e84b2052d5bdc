//! What held a sender back, as shares of its streams' time. Pure.
//!
//! The kernel keeps three clocks for each connection (Linux 4.10, `tcp_chrono` in `net/ipv4/tcp_output.c`): busy, and of it the time
//! stopped by the receiver's window and by the own send buffer. They run in jiffies of 1 to 10 ms, so that their sums are rounded.

use crate::model::Outcome;
use crate::model::kernel::{KernelSeries, LimitShares};
use crate::model::throughput::{Bins, SenderEnd, Steady, TcpStats};

/// The least rows of the steady part that are worth more than the whole pass: with fewer the rounding to jiffies shows.
const LEAST_ROWS: usize = 4;

/// What is said of a kernel that does not keep the clocks.
const TOO_OLD: &str = "the sender's kernel does not tell what its connections waited for (Linux tells it from version 4.10 on)";

/// The times of all streams together, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Times {
    elapsed: u64,
    busy: u64,
    receiver: u64,
    buffer: u64,
}

/// The shares over the steady part of the pass if the sender kept a series, else over the whole pass.
///
/// `bins` and `steady` are the receiver's. The two ends' beginnings are a way through the path apart, far less than a bin; the rows at the
/// borders of the steady part are left out.
pub(super) fn shares(streams: u32, sender: &SenderEnd, bins: &Bins, steady: Option<&Steady>) -> Outcome<LimitShares> {
    let steady = steady.zip(sender.series.measured()).and_then(|(part, series)| over(series, streams, span(bins, part)));
    if let Some(times) = steady {
        return divided(times);
    }
    match &sender.stats {
        Outcome::Measured(stats) => whole(stats, sender.elapsed_us.0).map_or_else(|| Outcome::skipped(TOO_OLD), divided),
        Outcome::Skipped(why) => Outcome::skipped(why.reason.clone()),
        Outcome::Failed(why) => Outcome::failed(why.reason.clone()),
    }
}

/// Begin and end of the steady part in microseconds.
fn span(bins: &Bins, part: &Steady) -> (u64, u64) {
    let from = bins.interval_us.0.saturating_mul(part.first_bin.into());
    (from, from.saturating_add(bins.interval_us.0.saturating_mul(part.bins.into())))
}

/// The times of the rows that lie whole between two moments; none where the columns are missing or the rows are few.
fn over(series: &KernelSeries, streams: u32, (from, until): (u64, u64)) -> Option<Times> {
    let starts = std::iter::once(0).chain(series.at_us.iter().copied());
    let columns = series.busy_us.iter().zip(&series.rwnd_limited_us).zip(&series.sndbuf_limited_us);
    let rows = starts.zip(&series.at_us).zip(columns).filter(|((start, at), _)| *start >= from && **at <= until && *start < **at);
    let (mut times, mut count) = (Times::default(), 0usize);
    for ((start, at), ((busy, receiver), buffer)) in rows {
        count += 1;
        times.elapsed = times.elapsed.saturating_add((at - start).saturating_mul(streams.into()));
        times.busy = times.busy.saturating_add(*busy);
        times.receiver = times.receiver.saturating_add(*receiver);
        times.buffer = times.buffer.saturating_add(*buffer);
    }
    (count >= LEAST_ROWS).then_some(times)
}

/// The times of the whole pass; none where a stream's kernel does not tell.
fn whole(stats: &[TcpStats], elapsed: u64) -> Option<Times> {
    let sum =
        |field: fn(&TcpStats) -> Option<u64>| stats.iter().map(field).try_fold(0u64, |sum, part| Some(sum.saturating_add(part?)));
    (!stats.is_empty()).then_some(())?;
    Some(Times {
        elapsed: elapsed.saturating_mul(stats.len() as u64),
        busy: sum(|s| s.busy_us)?,
        receiver: sum(|s| s.rwnd_limited_us)?,
        buffer: sum(|s| s.sndbuf_limited_us)?,
    })
}

/// Shares that add up to 1: a limited time is never more than the busy time, and that never more than the time that passed.
fn divided(times: Times) -> Outcome<LimitShares> {
    if times.elapsed == 0 {
        return Outcome::skipped("the pass was too short to tell what held the sender back");
    }
    // Rounded up, the clocks may show more than the time that passed.
    let busy = times.busy.min(times.elapsed);
    let scale = if times.busy > 0 { busy as f64 / times.busy as f64 } else { 0.0 };
    let receiver = (times.receiver as f64 * scale).min(busy as f64);
    let buffer = (times.buffer as f64 * scale).min(busy as f64 - receiver);
    let share = |part: f64| part / times.elapsed as f64;
    Outcome::Measured(LimitShares {
        application: share((times.elapsed - busy) as f64),
        receiver: share(receiver),
        send_buffer: share(buffer),
        network: share(busy as f64 - receiver - buffer),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::kernel::Ended;
    use crate::model::throughput::SocketFacts;
    use crate::units::{ByteSize, Elapsed};

    fn sender(stats: Outcome<Vec<TcpStats>>, series: Outcome<KernelSeries>) -> SenderEnd {
        SenderEnd {
            bytes: ByteSize(0),
            elapsed_us: Elapsed(1_000_000),
            method: "send".into(),
            congestion: None,
            stats,
            thread_cpu_us: None,
            cycles: None,
            bins: Bins::default(),
            series,
            ended: Ended::Time,
            trials: vec![],
            sockets: SocketFacts::default(),
            broken: vec![],
        }
    }

    fn stats(busy: u64, receiver: u64, buffer: u64) -> TcpStats {
        TcpStats { busy_us: Some(busy), rwnd_limited_us: Some(receiver), sndbuf_limited_us: Some(buffer), ..TcpStats::default() }
    }

    fn rounded(shares: &LimitShares) -> [i64; 4] {
        [shares.application, shares.receiver, shares.send_buffer, shares.network].map(|share| (share * 100.0).round() as i64)
    }

    #[test]
    fn the_whole_pass_where_there_is_no_series() {
        let none = || Outcome::skipped("no series");
        for (name, streams, shares) in [
            ("the network", vec![stats(1_000_000, 0, 0)], [0, 0, 0, 100]),
            ("the receiver's window", vec![stats(1_000_000, 600_000, 0)], [0, 60, 0, 40]),
            ("two streams", vec![stats(1_000_000, 200_000, 100_000), stats(500_000, 0, 0)], [25, 10, 5, 60]),
            ("clocks rounded up", vec![stats(1_010_000, 505_000, 505_000)], [0, 50, 50, 0]),
            ("more limited than busy", vec![stats(500_000, 400_000, 400_000)], [50, 40, 10, 0]),
            ("never busy", vec![stats(0, 0, 0)], [100, 0, 0, 0]),
        ] {
            let end = sender(Outcome::Measured(streams), none());
            let told = super::shares(1, &end, &Bins::default(), None);
            assert_eq!(rounded(told.measured().unwrap()), shares, "{name}");
        }
    }

    #[test]
    fn what_is_not_there_is_said() {
        let none = || Outcome::skipped("no series");
        let old = sender(Outcome::Measured(vec![TcpStats::default()]), none());
        assert_eq!(super::shares(1, &old, &Bins::default(), None).why(), Some(TOO_OLD));
        let other = sender(Outcome::skipped("not Linux"), none());
        assert_eq!(super::shares(1, &other, &Bins::default(), None).why(), Some("not Linux"));
        let mut short = sender(Outcome::Measured(vec![stats(0, 0, 0)]), none());
        short.elapsed_us = Elapsed(0);
        assert!(super::shares(1, &short, &Bins::default(), None).why().is_some());
    }

    #[test]
    fn the_steady_part_counts_and_slow_start_does_not() {
        // In the first second the window was the receiver's, later the network's.
        let series = KernelSeries {
            at_us: (1..=30).map(|at| at * 100_000 + 500).collect(),
            busy_us: vec![200_000; 30],
            rwnd_limited_us: (0..30).map(|at| if at < 10 { 180_000 } else { 20_000 }).collect(),
            sndbuf_limited_us: vec![0; 30],
            ..KernelSeries::default()
        };
        let end = sender(Outcome::Measured(vec![stats(6_000_000, 2_200_000, 0)]), Outcome::Measured(series));
        let bins = Bins { interval_us: Elapsed(100_000), bytes: vec![1; 30] };
        let part = Steady { first_bin: 12, bins: 18, spread: 0.0 };
        let told = super::shares(2, &end, &bins, Some(&part));
        assert_eq!(rounded(told.measured().unwrap()), [0, 10, 0, 90]);
    }

    proptest! {
        #[test]
        fn shares_of_anything_add_up_to_one(
            rows in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>()), 0..20),
            streams in any::<u32>(), first_bin in any::<u32>(), bins in any::<u32>(), interval in any::<u64>()
        ) {
            let series = KernelSeries {
                at_us: rows.iter().map(|r| r.0).collect(),
                busy_us: rows.iter().map(|r| r.1).collect(),
                rwnd_limited_us: rows.iter().map(|r| r.2).collect(),
                sndbuf_limited_us: rows.iter().skip(1).map(|r| r.3).collect(),
                ..KernelSeries::default()
            };
            let stats = rows.iter().map(|r| stats(r.1, r.2, r.3)).collect();
            let end = sender(Outcome::Measured(stats), Outcome::Measured(series));
            let part = Steady { first_bin, bins, spread: 0.0 };
            let bins = Bins { interval_us: Elapsed(interval), bytes: vec![] };
            if let Outcome::Measured(told) = super::shares(streams, &end, &bins, Some(&part)) {
                let all = [told.application, told.receiver, told.send_buffer, told.network];
                prop_assert!(all.iter().all(|share| (-1e-9..=1.0 + 1e-9).contains(share)), "{told:?}");
                prop_assert!((all.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{told:?}");
            }
        }
    }
}
