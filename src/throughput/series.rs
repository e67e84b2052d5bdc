//! From looks at the kernel's figures of each stream to one series of all streams. Pure.

use std::time::Duration;

use crate::model::kernel::KernelSeries;
use crate::model::throughput::TcpStats;
use crate::stats;
use crate::units::Elapsed;

/// The most rows that are kept: two minutes of bins. When there are more, each two become one, and further looks fall into such rows.
pub(super) const MOST: usize = 1200;

/// What stands at a moment: round-trip time, congestion window, peer's window, rate of delivery, held down by the application.
const GAUGES: usize = 5;

/// What grows: segments and bytes sent again, reordering events, busy time and its two limited parts.
const COUNTERS: usize = 6;

/// Which of the counters have 32 bits in the kernel and begin at zero again.
const SHORT: [bool; COUNTERS] = [true, false, true, false, false, false];

/// One row of the series.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    at: u64,
    gauges: [u64; GAUGES],
    added: [u64; COUNTERS],
}

/// What one stream said at last.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    gauges: [Option<u64>; GAUGES],
    counters: [Option<u64>; COUNTERS],
}

/// Collects looks. Not every look has to have every stream: of the others the last word counts, and what a counter added falls into
/// the row of the next look, so that nothing is lost.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    streams: Vec<Seen>,
    rows: Vec<Row>,
    /// The row that is still open, and the looks in it.
    open: Option<(Row, u64)>,
    /// Looks in each row.
    stride: u64,
}

impl Recorder {
    /// For so many streams; nothing seen yet.
    pub(super) fn new(streams: usize) -> Self {
        Self { streams: vec![Seen::default(); streams], rows: Vec::new(), open: None, stride: 1 }
    }

    /// What the streams had counted before the pass began; no row.
    pub(super) fn begin(&mut self, told: &[(usize, TcpStats)]) {
        self.take(told);
    }

    /// One look, with what some streams said then. A moment that is not later than the last one only adds to its row.
    pub(super) fn look(&mut self, at: Duration, told: &[(usize, TcpStats)]) {
        let (at, added) = (Elapsed::from(at).0, self.take(told));
        let add = |row: &mut Row| row.added.iter_mut().zip(added).for_each(|(sum, more)| *sum = sum.saturating_add(more));
        if let Some(last) = self.open.as_mut().map(|(row, _)| row).or(self.rows.last_mut()).filter(|row| at <= row.at) {
            return add(last);
        }
        let gauges = self.gauges();
        let (row, looks) = self.open.get_or_insert_default();
        add(row);
        row.at = at;
        row.gauges.iter_mut().zip(gauges).for_each(|(sum, value)| *sum = sum.saturating_add(value));
        *looks += 1;
        if *looks >= self.stride {
            self.close();
        }
    }

    /// The series, each column filled if any stream's kernel told of it.
    pub(super) fn finish(mut self) -> KernelSeries {
        self.close();
        let rows = &self.rows;
        let gauge = |at: usize| -> Vec<u64> {
            let known = self.streams.iter().any(|s| s.gauges.get(at).is_some_and(Option::is_some));
            rows.iter().filter(|_| known).filter_map(|row| row.gauges.get(at).copied()).collect()
        };
        let counter = |at: usize| -> Vec<u64> {
            let known = self.streams.iter().any(|s| s.counters.get(at).is_some_and(Option::is_some));
            rows.iter().filter(|_| known).filter_map(|row| row.added.get(at).copied()).collect()
        };
        KernelSeries {
            at_us: rows.iter().map(|row| row.at).collect(),
            rtt_us: gauge(0),
            cwnd_bytes: gauge(1),
            peer_window_bytes: gauge(2),
            delivery_rate_bps: gauge(3),
            app_limited: gauge(4),
            retransmits: counter(0),
            bytes_retrans: counter(1),
            reord_seen: counter(2),
            busy_us: counter(3),
            rwnd_limited_us: counter(4),
            sndbuf_limited_us: counter(5),
        }
    }

    /// Keeps what was told, and says how much the counters added.
    fn take(&mut self, told: &[(usize, TcpStats)]) -> [u64; COUNTERS] {
        let mut added = [0u64; COUNTERS];
        for (stream, stats) in told {
            let (Some(seen), (gauges, counters)) = (self.streams.get_mut(*stream), parts(stats)) else { continue };
            for (old, new) in seen.gauges.iter_mut().zip(gauges) {
                *old = new.or(*old);
            }
            for (((old, new), short), sum) in seen.counters.iter_mut().zip(counters).zip(SHORT).zip(&mut added) {
                let Some(new) = new else { continue };
                let more = old.map_or(Some(0), |old| grown(old, new, short));
                // A word that is older than the last one is no news.
                if let Some(more) = more {
                    *sum = sum.saturating_add(more);
                    *old = Some(new);
                }
            }
        }
        added
    }

    /// All streams together at this moment; a stream that has not said anything counts as nothing.
    fn gauges(&self) -> [u64; GAUGES] {
        let column = |at: usize| self.streams.iter().filter_map(move |s| s.gauges.get(at).copied().flatten());
        let sum = |at: usize| column(at).fold(0, u64::saturating_add);
        let times: Vec<f64> = column(0).map(|rtt| rtt as f64).collect();
        [stats::percentile(&times, 50.0).unwrap_or(0.0) as u64, sum(1), sum(2), sum(3), sum(4)]
    }

    /// Ends the open row; the gauges become the mean of its looks.
    fn close(&mut self) {
        let Some((mut row, looks)) = self.open.take() else { return };
        row.gauges = row.gauges.map(|sum| sum / looks.max(1));
        self.rows.push(row);
        if self.rows.len() >= MOST {
            self.rows = self.rows.chunks(2).filter_map(merged).collect();
            self.stride = self.stride.saturating_mul(2);
        }
    }
}

/// Two rows as one.
fn merged(pair: &[Row]) -> Option<Row> {
    let (first, last) = (pair.first()?, pair.last()?);
    let mut row = *last;
    if pair.len() > 1 {
        row.gauges.iter_mut().zip(first.gauges).for_each(|(value, before)| *value = value.midpoint(before));
        row.added.iter_mut().zip(first.added).for_each(|(sum, more)| *sum = sum.saturating_add(more));
    }
    Some(row)
}

/// How much a counter grew; none when the new value is older than the last one.
fn grown(old: u64, new: u64, short: bool) -> Option<u64> {
    new.checked_sub(old).or_else(|| {
        let round = new.checked_add(1 << 32).and_then(|new| new.checked_sub(old)).filter(|more| *more < 1 << 31);
        round.filter(|_| short)
    })
}

/// What a series is made of.
fn parts(stats: &TcpStats) -> ([Option<u64>; GAUGES], [Option<u64>; COUNTERS]) {
    let window = stats.cwnd_segments.zip(stats.snd_mss_bytes).map(|(segments, bytes)| u64::from(segments) * u64::from(bytes));
    (
        [
            stats.rtt_us.map(u64::from),
            window,
            stats.snd_wnd_bytes,
            stats.delivery_rate_bps.map(|rate| rate.0),
            stats.app_limited.map(u64::from),
        ],
        [
            stats.retransmits,
            stats.bytes_retrans,
            stats.reord_seen.map(u64::from),
            stats.busy_us,
            stats.rwnd_limited_us,
            stats.sndbuf_limited_us,
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BitRate;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn stats(rtt: u32, retransmits: u64, busy: u64) -> TcpStats {
        TcpStats {
            rtt_us: Some(rtt),
            cwnd_segments: Some(10),
            snd_mss_bytes: Some(1000),
            retransmits: Some(retransmits),
            busy_us: Some(busy),
            ..TcpStats::default()
        }
    }

    #[test]
    fn counters_are_what_was_added_and_gauges_what_stands() {
        let mut recorder = Recorder::new(3);
        recorder.begin(&[(0, stats(9, 5, 100)), (1, stats(9, 0, 50)), (2, stats(9, 0, 0))]);
        recorder.look(MS(100), &[(0, stats(100, 7, 1100)), (1, stats(300, 0, 1050)), (2, stats(200, 1, 900))]);
        recorder.look(MS(200), &[(0, stats(110, 7, 2100)), (1, stats(310, 2, 2050)), (2, stats(210, 1, 1900))]);
        let series = recorder.finish();
        assert_eq!(series.at_us, [100_000, 200_000]);
        assert_eq!(series.rtt_us, [200, 210]);
        assert_eq!(series.cwnd_bytes, [30_000, 30_000]);
        assert_eq!(series.retransmits, [3, 2]);
        assert_eq!(series.busy_us, [2900, 3000]);
        assert!(series.peer_window_bytes.is_empty() && series.rwnd_limited_us.is_empty() && series.app_limited.is_empty());
    }

    #[test]
    fn a_stream_that_is_left_out_or_has_ended_loses_nothing() {
        let mut recorder = Recorder::new(2);
        recorder.begin(&[(0, stats(9, 0, 0)), (1, stats(9, 0, 0))]);
        recorder.look(MS(100), &[(0, stats(9, 1, 10))]);
        recorder.look(MS(200), &[(1, stats(9, 2, 20))]);
        recorder.look(MS(300), &[]);
        // The last word of all, and once more at the same moment.
        recorder.look(MS(400), &[(0, stats(9, 4, 40)), (1, stats(9, 2, 20))]);
        recorder.look(MS(400), &[(0, stats(9, 5, 40))]);
        // An older word that comes late.
        recorder.look(MS(500), &[(0, stats(9, 3, 30))]);
        let series = recorder.finish();
        assert_eq!(series.retransmits, [1, 2, 0, 4, 0]);
        assert_eq!(series.busy_us, [10, 20, 0, 30, 0]);
        assert_eq!(series.cwnd_bytes, [20_000; 5]);
    }

    #[test]
    fn short_counters_go_round_and_long_ones_do_not() {
        let top = u64::from(u32::MAX);
        for (name, old, new, short, more) in [
            ("grows", 3, 5, true, Some(2)),
            ("goes round", top - 1, 2, true, Some(4)),
            ("an older word", 500, 400, true, None),
            ("an older word of 64 bits", 500, 400, false, None),
            ("beyond 32 bits", top, top + 9, false, Some(9)),
            ("nonsense", u64::MAX, 0, true, None),
        ] {
            assert_eq!(grown(old, new, short), more, "{name}");
        }
    }

    #[test]
    fn what_a_kernel_never_says_has_no_column() {
        let mut recorder = Recorder::new(1);
        recorder.look(MS(100), &[(0, TcpStats::default())]);
        let told = TcpStats { delivery_rate_bps: Some(BitRate(8)), ..TcpStats::default() };
        recorder.look(MS(200), &[(0, told), (7, told)]);
        let series = recorder.finish();
        assert_eq!(series.delivery_rate_bps, [0, 8]);
        assert_eq!(
            series,
            KernelSeries { at_us: vec![100_000, 200_000], delivery_rate_bps: vec![0, 8], ..KernelSeries::default() }
        );
        assert_eq!(Recorder::new(0).finish(), KernelSeries::default());
    }

    #[test]
    fn a_long_pass_is_thinned_and_its_sums_stay() {
        let mut recorder = Recorder::new(1);
        recorder.begin(&[(0, stats(9, 0, 0))]);
        for look in 1..=20_001 {
            recorder.look(MS(look * 100), &[(0, stats(50, look * 2, look))]);
        }
        let series = recorder.finish();
        assert!((MOST / 2 - 1..=MOST).contains(&series.at_us.len()), "{}", series.at_us.len());
        assert_eq!(series.retransmits.iter().sum::<u64>(), 40_002);
        assert_eq!(series.busy_us.iter().sum::<u64>(), 20_001);
        assert!(series.rtt_us.iter().all(|rtt| *rtt == 50) && series.at_us.is_sorted());
        assert_eq!(series.at_us.last(), Some(&2_000_100_000));
    }
}
