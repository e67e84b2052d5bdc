//! From what both ends saw to our model. Pure.
//!
//! Goodput is what the receiver read: for an upload that is the server's count over the server's time, for a download ours. What an
//! iperf3 server does not tell stands as skipped.

use std::time::Duration;

use super::believed::{acknowledged, backwards, far_below, unread};
use super::output;
use super::test::{TestResult, Ways};
use crate::iperf3::results::{Results, SenderRetransmits, StreamResult, stream_id};
use crate::iperf3::stream::{StreamEnd, Way};
use crate::model::Outcome;
use crate::model::host::Direction;
use crate::model::throughput::{Bins, Pass, ReceiverEnd, SenderEnd, SocketFacts, TcpStats};
use crate::model::udp::UdpPass;
use crate::throughput;
use crate::units::{BitRate, ByteSize, Elapsed};

/// Why what only the other end knows is missing.
const NOT_TOLD: &str = "an iperf3 server does not tell; `weaklink serve` on the NAS would";

/// What a server's time may be longer than ours by before it is not believed: it begins before us and ends when our word arrives. It
/// is shorter than ours only by what its own timers differ; half of ours is none of the same test.
const TIME_SLACK: Duration = Duration::from_secs(5);

/// Why a server's results are no results of this test.
const OTHER_STREAMS: &str = "the server's results are of other streams than those of this test";

/// A datagram pass with what of it nobody knows.
#[derive(Clone, Debug, PartialEq)]
pub struct Datagrams {
    /// The way.
    pub direction: Direction,
    /// What was measured.
    pub pass: UdpPass,
    /// What stands as zero in `pass` because nobody measured it, and how the rest is meant: one sentence each.
    pub notes: Vec<String>,
}

/// The TCP passes of a test: one for each of its ways, upload first; none where the test was one of datagrams.
///
/// Processor, counters and round-trip times come from others: they stand as skipped until the caller puts them in.
pub fn passes(result: &TestResult) -> Vec<(Direction, Outcome<Pass>)> {
    if result.test.udp.is_some() {
        return Vec::new();
    }
    of_ways(result.test.ways, |direction| match direction {
        Direction::Upload => upload(result),
        Direction::Download => download(result),
    })
}

fn of_ways<T>(ways: Ways, of: impl Fn(Direction) -> T) -> Vec<(Direction, T)> {
    Direction::BOTH.into_iter().filter(|way| ways.includes(*way)).map(|way| (way, of(way))).collect()
}

/// The server's streams that belong to our streams of one way, by their numbers: a stream of another number is another test's.
fn theirs<'a>(result: &TestResult, results: &'a Results, way: Way) -> Option<Vec<&'a StreamResult>> {
    let by_number = |at: usize| results.streams.iter().find(|stream| stream.id == stream_id(at as u32));
    result.of_way(way).map(|(at, _)| by_number(at)).collect()
}

/// The server's streams of one way, or why there are none.
fn told(result: &TestResult, way: Way) -> Outcome<Vec<&StreamResult>> {
    match &result.server {
        Outcome::Measured(results) => {
            theirs(result, results, way).map_or_else(|| Outcome::failed(OTHER_STREAMS), Outcome::Measured)
        }
        Outcome::Skipped(why) => Outcome::Skipped(why.clone()),
        Outcome::Failed(why) => Outcome::Failed(why.clone()),
    }
}

/// The server's time from the begin to the end of the test, where it can be; ours otherwise.
fn server_time(result: &TestResult, streams: &[&StreamResult]) -> Duration {
    let first = streams.iter().map(|stream| stream.start_s).fold(f64::INFINITY, f64::min);
    let last = streams.iter().map(|stream| stream.end_s).fold(0.0, f64::max);
    let time = Duration::try_from_secs_f64(last - first).unwrap_or_default();
    let believed = !time.is_zero() && time <= result.elapsed + TIME_SLACK && time >= result.elapsed / 2;
    if believed { time } else { result.elapsed }
}

fn sum(streams: &[&StreamResult]) -> u64 {
    streams.iter().fold(0, |sum, stream| sum.saturating_add(stream.bytes))
}

fn upload(result: &TestResult) -> Outcome<Pass> {
    if let Some(error) = result.broke(Way::Send) {
        return Outcome::failed(format!("the streams to the iperf3 server broke: {error}"));
    }
    let own = acknowledged(result);
    let streams = match (told(result, Way::Send), &own) {
        (Outcome::Measured(streams), _) => streams,
        (Outcome::Failed(why), Some(own)) if why.reason == OTHER_STREAMS => {
            return Outcome::Measured(by_our_kernel(result, own, OTHER_STREAMS));
        }
        (Outcome::Skipped(why), _) => return Outcome::Skipped(why),
        (Outcome::Failed(why), _) => return Outcome::Failed(why),
    };
    let (sent, bytes) = (result.bytes(Way::Send), sum(&streams));
    if bytes > sent.saturating_add(omitted(result)) {
        let words = "the iperf3 server says that it read more than was sent, which cannot be";
        return Outcome::failed(format!("{words}: {bytes} of {sent} bytes"));
    }
    let seen = own.as_ref().map(|own| own.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes)));
    if let (Some(own), Some(seen)) = (&own, seen.filter(|seen| far_below(bytes, *seen, streams.len(), unread(result)))) {
        let why = format!("the iperf3 server says that it read {}, and {} were acknowledged", ByteSize(bytes), ByteSize(seen));
        return Outcome::Measured(by_our_kernel(result, own, &why));
    }
    let said = result.server.measured().and_then(|results| results.server_output.as_ref());
    let mut pass = uploaded(result, &streams, output::received(said));
    pass.doubts.extend(backwards(&streams));
    Outcome::Measured(pass)
}

/// An upload by what our own kernel saw acknowledged, since what the server tells cannot be.
fn by_our_kernel(result: &TestResult, own: &[u64], why: &str) -> Pass {
    let streams: Vec<StreamResult> = own.iter().map(|bytes| StreamResult { bytes: *bytes, ..StreamResult::default() }).collect();
    let streams: Vec<&StreamResult> = streams.iter().collect();
    // Its own series is of the same maker as its totals.
    let mut pass = uploaded(result, &streams, Bins::default());
    "what our kernel saw acknowledged".clone_into(&mut pass.method.receive);
    pass.doubts.push(format!("{why}: the server's figures are not believed (its fault, or that of what answers there); the rate is what this end's kernel saw acknowledged"));
    pass
}

/// What was sent before the counting began can arrive after it did at the other end.
fn omitted(result: &TestResult) -> u64 {
    result.of_way(Way::Send).fold(0, |sum, (_, stream)| sum.saturating_add(stream.omitted.bytes))
}

fn uploaded(result: &TestResult, streams: &[&StreamResult], bins: Bins) -> Pass {
    let bytes = sum(streams);
    let complete = bytes >= result.bytes(Way::Send);
    // With a limit in bytes the server's time holds our wait for the last of them.
    let elapsed = result.acknowledged.filter(|_| complete).unwrap_or_else(|| server_time(result, streams));
    let receiver = ReceiverEnd {
        bins,
        bytes: ByteSize(bytes),
        elapsed_us: elapsed.into(),
        stream_bytes: streams.iter().map(|stream| ByteSize(stream.bytes)).collect(),
        method: "read (iperf3)".to_owned(),
        stats: Outcome::skipped(NOT_TOLD),
        thread_cpu_us: None,
        cycles: None,
        series: Outcome::skipped(NOT_TOLD),
        ended: result.ended,
        trials: Vec::new(),
        sockets: SocketFacts::default(),
        broken: Vec::new(),
    };
    let mut pass =
        throughput::assemble(result.test.streams, Outcome::Measured(sender_end(result)), receiver, result.test.mss_bytes);
    pass.receiver_cost = Outcome::skipped(NOT_TOLD);
    seen_from_the_pc(&mut pass);
    pass
}

/// What our senders saw.
fn sender_end(result: &TestResult) -> SenderEnd {
    let streams: Vec<&StreamEnd> = result.of_way(Way::Send).map(|(_, stream)| stream).collect();
    SenderEnd {
        bytes: ByteSize(result.bytes(Way::Send)),
        elapsed_us: result.elapsed.into(),
        method: streams.first().map_or("send", |stream| stream.method).to_owned(),
        congestion: streams.iter().find_map(|stream| stream.congestion.clone()),
        stats: stats(&streams),
        thread_cpu_us: cpu(&streams),
        cycles: None,
        bins: result.sent_bins.clone(),
        series: result.send_series.clone(),
        ended: result.ended,
        trials: Vec::new(),
        sockets: result.send_sockets.clone(),
        broken: Vec::new(),
    }
}

fn download(result: &TestResult) -> Outcome<Pass> {
    let streams: Vec<&StreamEnd> = result.of_way(Way::Receive).map(|(_, stream)| stream).collect();
    let bytes = result.bytes(Way::Receive);
    if let Some(error) = result.broke(Way::Receive) {
        return Outcome::failed(format!("the streams from the iperf3 server broke: {error}"));
    }
    if bytes == 0
        && result.test.ways == Ways::Both
        && streams.iter().all(|stream| stream.ended < result.counted_from + result.elapsed)
    {
        return Outcome::failed(
            "the iperf3 server closed the streams that it was to send on: versions before 3.7 go one way only",
        );
    }
    let from = result.counted_from;
    let first = streams.iter().filter_map(|stream| stream.first).min().unwrap_or_default().max(from);
    let last = streams.iter().filter_map(|stream| stream.last).max().unwrap_or_default();
    let receiver = ReceiverEnd {
        bins: result.received_bins.clone(),
        bytes: ByteSize(bytes),
        elapsed_us: last.saturating_sub(first).into(),
        stream_bytes: streams.iter().map(|stream| ByteSize(stream.count.bytes)).collect(),
        method: streams.first().map_or("read", |stream| stream.method).to_owned(),
        stats: stats(&streams),
        thread_cpu_us: cpu(&streams),
        cycles: None,
        series: result.receive_series.clone(),
        ended: result.ended,
        trials: Vec::new(),
        sockets: result.receive_sockets.clone(),
        broken: Vec::new(),
    };
    let sender = told(result, Way::Receive).map(|streams| server_as_sender(result, &streams));
    let mut pass = throughput::assemble(result.test.streams, sender, receiver, result.test.mss_bytes);
    pass.sender_cost = Outcome::skipped(NOT_TOLD);
    pass.limits = Outcome::skipped(NOT_TOLD);
    seen_from_the_pc(&mut pass);
    Outcome::Measured(pass)
}

/// What the server tells of its sending: totals, retransmissions, the congestion control.
fn server_as_sender(result: &TestResult, streams: &[&StreamResult]) -> SenderEnd {
    let results = result.server.measured();
    let counted = results.is_some_and(|results| results.sender_retransmits == SenderRetransmits::Counted);
    let stats: Option<Vec<TcpStats>> = streams
        .iter()
        .map(|stream| {
            stream.retransmits.filter(|_| counted).map(|count| TcpStats { retransmits: Some(count), ..TcpStats::default() })
        })
        .collect();
    SenderEnd {
        bytes: ByteSize(sum(streams)),
        elapsed_us: server_time(result, streams).into(),
        method: "write (iperf3)".to_owned(),
        congestion: results.and_then(|results| results.congestion_used.clone()),
        stats: stats.map_or_else(|| Outcome::skipped(NOT_TOLD), Outcome::Measured),
        thread_cpu_us: None,
        cycles: None,
        bins: Bins::default(),
        series: Outcome::skipped(NOT_TOLD),
        ended: result.ended,
        trials: Vec::new(),
        sockets: SocketFacts::default(),
        broken: Vec::new(),
    }
}

/// What no iperf3 server tells of its host.
fn seen_from_the_pc(pass: &mut Pass) {
    pass.cpu_nas = Outcome::skipped(NOT_TOLD);
    pass.counters_nas = Outcome::skipped(NOT_TOLD);
}

/// The kernel's view of all streams, if it tells of every one.
fn stats(streams: &[&StreamEnd]) -> Outcome<Vec<TcpStats>> {
    let mut all = Vec::with_capacity(streams.len());
    for stream in streams {
        match &stream.tcp {
            Outcome::Measured(stats) => all.push(*stats),
            Outcome::Skipped(why) => return Outcome::Skipped(why.clone()),
            Outcome::Failed(why) => return Outcome::Failed(why.clone()),
        }
    }
    Outcome::Measured(all)
}

fn cpu(streams: &[&StreamEnd]) -> Option<Elapsed> {
    streams.iter().try_fold(Duration::ZERO, |sum, stream| Some(sum.saturating_add(stream.cpu?))).map(Elapsed::from)
}

/// The datagram passes of a test: one for each of its ways, upload first; none where the test was one of TCP.
pub fn datagrams(result: &TestResult) -> Vec<(Direction, Outcome<Datagrams>)> {
    let Some(udp) = result.test.udp else { return Vec::new() };
    let asked = BitRate(udp.rate.0.saturating_mul(u64::from(result.test.streams)));
    of_ways(result.test.ways, |direction| {
        let seen = match direction {
            Direction::Upload => datagrams_up(result),
            Direction::Download => datagrams_down(result),
        };
        seen.map(|(mut pass, notes)| {
            pass.asked_bps = asked;
            Datagrams { direction, pass, notes }
        })
    })
}

/// A pass in which nothing was measured.
fn blank_udp() -> UdpPass {
    UdpPass {
        asked_bps: BitRate(0),
        sent_bps: BitRate(0),
        received_bps: BitRate(0),
        sent: 0,
        refused: 0,
        received: 0,
        lost: 0,
        dropped_by_receiver: Outcome::skipped(NOT_TOLD),
        duplicates: 0,
        reordered: 0,
        longest_loss: 0,
        jitter_us: Elapsed(0),
        queue_median_us: Elapsed(0),
        queue_p99_us: Elapsed(0),
        elapsed_us: Elapsed(0),
        bins: Bins::default(),
        cpu_pc: Outcome::skipped("not told"),
        cpu_nas: Outcome::skipped(NOT_TOLD),
        counters_pc: Outcome::skipped("not told"),
        counters_nas: Outcome::skipped(NOT_TOLD),
    }
}

/// Datagrams up: the server counted.
fn datagrams_up(result: &TestResult) -> Outcome<(UdpPass, Vec<String>)> {
    if let Some(error) = result.broke(Way::Send) {
        return Outcome::failed(format!("the datagrams to the iperf3 server were refused: {error}"));
    }
    told(result, Way::Send).and_then(|streams| {
        let (bytes, sent_bytes) = (sum(&streams), result.bytes(Way::Send));
        let sent = result.of_way(Way::Send).fold(0u64, |sum, (_, stream)| sum.saturating_add(stream.count.packets));
        let len = u64::from(result.test.udp.map_or(1, |udp| udp.len.max(1)));
        let received = bytes / len;
        if bytes > sent_bytes.saturating_add(omitted(result)) {
            return Outcome::failed("the iperf3 server says that it read more than was sent, which cannot be");
        }
        let jitter = streams.iter().map(|stream| stream.jitter_s).sum::<f64>() / streams.len().max(1) as f64;
        let said = result.server.measured().and_then(|results| results.server_output.as_ref());
        let late = output::out_of_order(said);
        let mut notes = vec![
            "an iperf3 server tells neither copies, nor the longest loss, nor the queue on the way: they stand as zero"
                .to_owned(),
            "the received rate is over the sender's time, as the server's own has the wait for the last datagrams in it"
                .to_owned(),
        ];
        if late.is_none() {
            notes.push("the server does not tell how many datagrams came late: that stands as zero".to_owned());
        }
        let pass = UdpPass {
            sent_bps: BitRate::of(ByteSize(sent_bytes), result.elapsed),
            received_bps: BitRate::of(ByteSize(bytes), result.elapsed),
            sent,
            received,
            lost: sent.saturating_sub(received),
            reordered: late.unwrap_or(0),
            jitter_us: microseconds(jitter),
            elapsed_us: result.elapsed.into(),
            bins: output::received(said),
            ..blank_udp()
        };
        Outcome::Measured((pass, notes))
    })
}

/// Datagrams down: we counted.
fn datagrams_down(result: &TestResult) -> Outcome<(UdpPass, Vec<String>)> {
    if let Some(error) = result.broke(Way::Receive) {
        return Outcome::failed(format!("the datagrams from the iperf3 server could not be read: {error}"));
    }
    let streams: Vec<&StreamEnd> = result.of_way(Way::Receive).map(|(_, stream)| stream).collect();
    let total = |of: fn(&StreamEnd) -> u64| streams.iter().fold(0u64, |sum, stream| sum.saturating_add(of(stream)));
    let (highest, received) = (total(|stream| stream.count.packets), total(|stream| stream.count.received));
    let mut notes = vec!["copies count as late ones, and nobody measures the queue on the way: both stand as zero".to_owned()];
    // Counters begin before the omitted part at both ends.
    let told = told(result, Way::Receive);
    let theirs = told.measured().and_then(|streams| {
        // Versions that do not tell what was omitted have it in their totals.
        let of = |stream: &&StreamResult| match stream.omitted {
            Some((_, packets)) => Some(stream.packets.saturating_sub(packets)),
            None => Some(stream.packets).filter(|_| result.test.omit.is_zero()),
        };
        let packets = streams.iter().map(of).try_fold(0u64, |sum, packets| Some(sum.saturating_add(packets?)))?;
        Some((packets, sum(streams), server_time(result, streams)))
    });
    let (sent, sent_bps) = match theirs {
        Some((packets, bytes, time)) if packets >= highest => (packets, BitRate::of(ByteSize(bytes), time)),
        _ => {
            notes.push("what the server sent is not known: the highest counter that came stands for it".to_owned());
            (highest, BitRate(0))
        }
    };
    let (first, last) = (
        streams.iter().filter_map(|stream| stream.first).min().unwrap_or_default().max(result.counted_from),
        streams.iter().filter_map(|stream| stream.last).max().unwrap_or_default(),
    );
    let elapsed = last.saturating_sub(first);
    let jitter = streams.iter().map(|stream| stream.count.jitter_s).sum::<f64>() / streams.len().max(1) as f64;
    let pass = UdpPass {
        sent_bps,
        received_bps: BitRate::of(ByteSize(result.bytes(Way::Receive)), elapsed),
        sent,
        received,
        lost: sent.saturating_sub(received),
        dropped_by_receiver: Outcome::skipped("it is not counted with an iperf3 server"),
        reordered: total(|stream| stream.count.out_of_order),
        longest_loss: streams.iter().map(|stream| stream.count.longest_loss).max().unwrap_or(0),
        jitter_us: microseconds(jitter),
        elapsed_us: elapsed.into(),
        bins: result.received_bins.clone(),
        ..blank_udp()
    };
    Outcome::Measured((pass, notes))
}

fn microseconds(seconds: f64) -> Elapsed {
    Elapsed::from(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

#[cfg(test)]
#[path = "passes_tests.rs"]
mod tests;
