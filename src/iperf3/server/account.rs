//! From what was counted to the results on the wire and in words; it asks the system only for the processor's time.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use super::event::{Moved, Served};
use crate::iperf3::params::{Amount, Flow, Params, Protocol};
use crate::iperf3::results::{Results, SenderRetransmits, ServerOutput, StreamResult, stream_id};
use crate::iperf3::stream::{Count, StreamEnd, Way};
use crate::sys;
use crate::units::{BitRate, ByteSize, Elapsed};

/// How often a line is written for a client that wants to see the server's output.
const LINE: Duration = Duration::from_secs(1);

/// The most such lines: two hours. What comes later has no lines; the results are told all the same.
const MOST_LINES: usize = 7200;

/// What happened in a test so far.
pub(super) struct Account {
    protocol: Protocol,
    /// The client's wish to see what the server says.
    output: Option<String>,
    lines: usize,
    /// Up to where the last line goes: the time, and the bytes received and sent.
    line_at: (Duration, u64, u64),
    parallel: usize,
    flow: Flow,
    begin: Duration,
    end: Duration,
    cpu_begin: Option<(Duration, Duration)>,
    cpu_end: Option<(Duration, Duration)>,
    retransmits_before: Vec<u64>,
}

impl Account {
    /// The test begins.
    pub(super) fn begin(params: &Params, peer: SocketAddr, local: Option<SocketAddr>) -> Self {
        let head = || {
            let at = local.map(|local| format!(" at {}", super::plain(local))).unwrap_or_default();
            format!("weaklink {}{at}, client {peer}: {}\n", env!("CARGO_PKG_VERSION"), describe(params))
        };
        Self {
            protocol: params.protocol,
            output: params.get_server_output.then(head),
            lines: 0,
            line_at: (Duration::ZERO, 0, 0),
            parallel: params.parallel as usize,
            flow: params.flow,
            begin: Duration::ZERO,
            end: Duration::ZERO,
            cpu_begin: sys::cpu::process_times(),
            cpu_end: None,
            retransmits_before: Vec::new(),
        }
    }

    /// What was counted until now is left out. `retransmits` tells a stream's until now.
    pub(super) fn restart(&mut self, now: Duration, retransmits: impl Fn(usize) -> Option<u64>) {
        self.begin = now;
        self.line_at = (now, 0, 0);
        self.cpu_begin = sys::cpu::process_times();
        self.retransmits_before = (0..self.parallel * 2).map(|at| retransmits(at).unwrap_or(0)).collect();
    }

    /// Writes a line when it is time for one.
    pub(super) fn look(&mut self, now: Duration, counts: impl FnOnce() -> Vec<Count>) {
        self.line(now, LINE, counts);
    }

    /// Writes a line if one is wanted and there is room, and the last one is at least `least` ago.
    fn line(&mut self, now: Duration, least: Duration, counts: impl FnOnce() -> Vec<Count>) {
        let (before, received_before, sent_before) = self.line_at;
        if self.output.is_none() || self.lines >= MOST_LINES || now.saturating_sub(before) < least {
            return;
        }
        let (mut received, mut sent) = (0, 0);
        for (at, count) in counts().iter().enumerate() {
            let of_way = if self.receives(at) { &mut received } else { &mut sent };
            *of_way += count.bytes;
        }
        let span = now.saturating_sub(before);
        let clock = |at: Duration| at.saturating_sub(self.begin).as_secs_f64();
        let (from, to) = (clock(before), clock(now));
        let mut line = format!("{from:7.2}-{to:.2} s");
        for (name, has, bytes) in [
            ("received", self.flow != Flow::ToClient, received.saturating_sub(received_before)),
            ("sent", self.flow != Flow::ToServer, sent.saturating_sub(sent_before)),
        ] {
            if has {
                let bytes = ByteSize(bytes);
                let _ = write!(line, "  {name} {bytes}, {}", BitRate::of(bytes, span));
            }
        }
        if let Some(output) = &mut self.output {
            output.push_str(&line);
            output.push('\n');
        }
        self.lines += 1;
        self.line_at = (now, received, sent);
    }

    fn receives(&self, at: usize) -> bool {
        match self.flow {
            Flow::ToServer => true,
            Flow::ToClient => false,
            Flow::Both => at < self.parallel,
        }
    }

    /// The client ended the test.
    pub(super) fn end(&mut self, now: Duration, counts: impl FnOnce() -> Vec<Count>) {
        self.line(now, LINE / 2, counts);
        self.end = now;
        self.cpu_end = sys::cpu::process_times();
    }

    /// The results for the client and for the owner.
    pub(super) fn conclude(mut self, ends: &[StreamEnd]) -> (Results, Served) {
        let streams: Vec<StreamResult> = ends.iter().enumerate().map(|(at, end)| self.stream(at, end)).collect();
        let served = Served { received: self.moved(ends, &streams, Way::Receive), sent: self.moved(ends, &streams, Way::Send) };
        if let Some(output) = &mut self.output {
            for (stream, end) in streams.iter().zip(ends) {
                let name = if end.way == Way::Receive { "received" } else { "sent" };
                let moved = of_stream(self.protocol, stream, end.way);
                let _ = writeln!(output, "[{:3}] {name} {moved} ({})", stream.id, end.method);
            }
        }
        let cpu = |part: fn(&(Duration, Duration)) -> Duration| {
            let spent = self.cpu_end.as_ref().map(part).unwrap_or_default();
            let spent = spent.saturating_sub(self.cpu_begin.as_ref().map(part).unwrap_or_default());
            let window = self.end.saturating_sub(self.begin).as_secs_f64();
            if window > 0.0 { 100.0 * spent.as_secs_f64() / window } else { 0.0 }
        };
        let (user, system) = (cpu(|times| times.0), cpu(|times| times.1));
        let sends = self.flow != Flow::ToServer;
        let results = Results {
            cpu_total: user + system,
            cpu_user: user,
            cpu_system: system,
            sender_retransmits: match streams.iter().any(|stream| stream.retransmits.is_some()) {
                _ if !sends => SenderRetransmits::NoSender,
                true => SenderRetransmits::Counted,
                false => SenderRetransmits::Unknown,
            },
            congestion_used: ends.iter().find_map(|end| end.congestion.clone()),
            server_output: self.output.take().map(ServerOutput::Text),
            streams,
        };
        (results, served)
    }

    fn stream(&self, at: usize, end: &StreamEnd) -> StreamResult {
        // What came after the word to end took longer, and so do its results.
        let last = if end.way == Way::Receive { end.last.unwrap_or_default().max(self.end) } else { self.end };
        let (count, omitted) = (&end.count, &end.omitted);
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let retransmits = end.tcp.measured().and_then(|stats| stats.retransmits).filter(|_| end.way == Way::Send);
        StreamResult {
            id: stream_id(at as u32),
            bytes: count.bytes,
            retransmits: retransmits.map(|all| all.saturating_sub(self.retransmits_before.get(at).copied().unwrap_or(0))),
            jitter_s: count.jitter_s,
            errors: signed(count.lost.saturating_add(omitted.lost)),
            packets: count.packets.saturating_add(omitted.packets),
            omitted: Some((signed(omitted.lost), omitted.packets)),
            start_s: 0.0,
            end_s: last.saturating_sub(self.begin).as_secs_f64(),
        }
    }

    /// All streams of one way together.
    fn moved(&self, ends: &[StreamEnd], streams: &[StreamResult], way: Way) -> Option<Moved> {
        let of_way =
            ends.iter().zip(streams).filter(|(end, _)| end.way == way).map(|(_, stream)| of_stream(self.protocol, stream, way));
        of_way.reduce(|sum, next| {
            let both = |a: Option<u64>, b: Option<u64>| {
                if a.is_some() || b.is_some() { Some(a.unwrap_or(0) + b.unwrap_or(0)) } else { None }
            };
            Moved {
                bytes: ByteSize(sum.bytes.0.saturating_add(next.bytes.0)),
                elapsed: sum.elapsed.max(next.elapsed),
                retransmits: both(sum.retransmits, next.retransmits),
                lost: sum.lost.zip(next.lost).map(|(a, b)| (a.0.saturating_add(b.0), a.1.saturating_add(b.1))),
            }
        })
    }
}

/// One stream's result as the owner is told it.
fn of_stream(protocol: Protocol, stream: &StreamResult, way: Way) -> Moved {
    let (errors, packets) = stream.omitted.unwrap_or_default();
    let lost = u64::try_from(stream.errors.saturating_sub(errors)).unwrap_or(0);
    Moved {
        bytes: ByteSize(stream.bytes),
        elapsed: Elapsed::from(Duration::try_from_secs_f64(stream.end_s).unwrap_or_default()),
        retransmits: stream.retransmits,
        lost: (protocol == Protocol::Udp && way == Way::Receive).then_some((lost, stream.packets.saturating_sub(packets))),
    }
}

/// A test in a few words, as in `3 TCP streams from the client for 10 s`.
pub(super) fn describe(params: &Params) -> String {
    let protocol = match params.protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
    };
    let streams = match params.parallel {
        1 => format!("1 {protocol} stream"),
        many => format!("{many} {protocol} streams"),
    };
    let way = match params.flow {
        Flow::ToServer => "from the client",
        Flow::ToClient => "to the client",
        Flow::Both => "each way",
    };
    let amount = match params.amount {
        Amount::Seconds(0) => "until it ends them".to_owned(),
        Amount::Seconds(seconds) => format!("for {seconds} s"),
        Amount::Bytes(bytes) => format!("for {}", ByteSize(bytes)),
        Amount::Blocks(blocks) => format!("for {blocks} blocks of {}", ByteSize(params.len.into())),
    };
    let rate = params.bandwidth_bps.map(|rate| format!(" at {}", BitRate(rate))).unwrap_or_default();
    let omit = if params.omit_s > 0 { format!(", the first {} s left out", params.omit_s) } else { String::new() };
    format!("{streams} {way}{rate} {amount}{omit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_described_in_a_few_words() {
        for (params, words) in [
            (Params::default(), "1 TCP stream from the client for 10 s"),
            (
                Params { parallel: 3, flow: Flow::Both, amount: Amount::Bytes(5_000_000), omit_s: 2, ..Params::default() },
                "3 TCP streams each way for 5 MB, the first 2 s left out",
            ),
            (
                Params { protocol: Protocol::Udp, flow: Flow::ToClient, bandwidth_bps: Some(1_000_000), ..Params::default() },
                "1 UDP stream to the client at 1 Mbit/s for 10 s",
            ),
            (Params { amount: Amount::Seconds(0), ..Params::default() }, "1 TCP stream from the client until it ends them"),
        ] {
            assert_eq!(describe(&params), words);
        }
    }
}
