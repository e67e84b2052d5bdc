//! Raw TCP, memory to memory.

use serde::{Deserialize, Serialize};

use super::cpu::CpuWindow;
use super::host::Direction;
use super::link::CountersByInterface;
use super::outcome::Outcome;
use crate::units::{BitRate, ByteSize, Elapsed};

/// Both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThroughputSection {
    /// PC → NAS.
    pub upload: DirectionThroughput,
    /// NAS → PC.
    pub download: DirectionThroughput,
    /// The round-trip time of an idle path.
    pub idle_rtt: Outcome<RttSummary>,
}

impl ThroughputSection {
    /// One direction's results.
    pub const fn of(&self, direction: Direction) -> &DirectionThroughput {
        match direction {
            Direction::Upload => &self.upload,
            Direction::Download => &self.download,
        }
    }
}

/// One direction: a single stream, and several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DirectionThroughput {
    /// One stream.
    pub single: Outcome<Pass>,
    /// Several streams at once.
    pub multi: Outcome<Pass>,
}

impl DirectionThroughput {
    /// Both passes were skipped or failed for one reason.
    pub fn skipped(reason: &str) -> Self {
        Self { single: Outcome::skipped(reason), multi: Outcome::skipped(reason) }
    }

    /// The larger of both goodputs, if anything was measured.
    pub fn best(&self) -> Option<&Pass> {
        let passes = [self.single.measured(), self.multi.measured()];
        passes.into_iter().flatten().max_by_key(|pass| pass.goodput_bps)
    }
}

/// One pass: some streams in one direction for some seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pass {
    /// The number of streams.
    pub streams: u32,
    /// What the receiving application read a second, over the steady part.
    pub goodput_bps: BitRate,
    /// Everything that the receiver read.
    pub bytes: ByteSize,
    /// From the first to the last byte at the receiver.
    pub elapsed_us: Elapsed,
    /// The receiver's bytes in each bin, all streams together.
    pub bins: Bins,
    /// The steady part of the bins; none when the rate never settled.
    pub steady: Option<Steady>,
    /// Each stream's bytes at the receiver.
    pub stream_bytes: Vec<ByteSize>,
    /// The sender's view by its kernel.
    pub sender: Outcome<Vec<TcpStats>>,
    /// The receiver's view by its kernel.
    pub receiver: Outcome<Vec<TcpStats>>,
    /// How the bytes were handed over at each end, and with which congestion control.
    pub method: Method,
    /// The PC's CPU during the pass.
    pub cpu_pc: Outcome<CpuWindow>,
    /// The NAS's CPU during the pass.
    pub cpu_nas: Outcome<CpuWindow>,
    /// The round-trip time beside the streams.
    pub loaded_rtt: Outcome<RttSummary>,
    /// What the PC's interfaces counted during the pass.
    pub counters_pc: Outcome<CountersByInterface>,
    /// What the NAS's interfaces counted during the pass.
    pub counters_nas: Outcome<CountersByInterface>,
}

/// A series of byte counts in bins of one length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bins {
    /// The length of a bin.
    pub interval_us: Elapsed,
    /// The bytes in each bin.
    pub bytes: Vec<u64>,
}

impl Bins {
    /// The rate in each bin in bytes a second.
    pub fn rates(&self) -> Vec<f64> {
        let seconds = self.interval_us.seconds();
        self.bytes.iter().map(|bytes| if seconds > 0.0 { *bytes as f64 / seconds } else { 0.0 }).collect()
    }
}

/// The steady part of a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Steady {
    /// The first bin of it.
    pub first_bin: u32,
    /// The number of bins.
    pub bins: u32,
    /// Standard deviation over mean.
    pub spread: f64,
}

/// How a pass moved its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Method {
    /// How the sender handed over its bytes: `send`, `sendfile`, `write` …
    pub send: String,
    /// How the receiver took them: `recv-trunc`, `read` …
    pub receive: String,
    /// The congestion control that the sender used, if known.
    pub congestion: Option<String>,
    /// The segment size that both ends were clamped to, if they were.
    pub mss_clamp_bytes: Option<u32>,
}

/// One TCP stream as the kernel counted it; a field is absent when the kernel does not give it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpStats {
    /// Smoothed round-trip time.
    pub rtt_us: Option<u32>,
    /// Least round-trip time.
    pub min_rtt_us: Option<u32>,
    /// Variation of the round-trip time.
    pub rttvar_us: Option<u32>,
    /// The congestion window in segments.
    pub cwnd_segments: Option<u32>,
    /// The largest segment that is sent.
    pub snd_mss_bytes: Option<u32>,
    /// The path MTU that the kernel believes in.
    pub pmtu_bytes: Option<u32>,
    /// Segments sent.
    pub segments_out: Option<u64>,
    /// Segments sent again.
    pub retransmits: Option<u64>,
    /// Bytes sent, those sent again included.
    pub bytes_sent: Option<u64>,
    /// Bytes sent again.
    pub bytes_retrans: Option<u64>,
    /// How much reordering the kernel saw, in segments.
    pub reordering: Option<u32>,
    /// Reordering events.
    pub reord_seen: Option<u32>,
    /// Time with data to send; includes the two limited times.
    pub busy_us: Option<u64>,
    /// Time stopped by the receiver's window.
    pub rwnd_limited_us: Option<u64>,
    /// Time stopped by the own send buffer.
    pub sndbuf_limited_us: Option<u64>,
    /// The peer's receive window at last.
    pub snd_wnd_bytes: Option<u64>,
    /// The largest receive window that the receiver opened.
    pub rcv_space_bytes: Option<u32>,
    /// The kernel's own estimate of what was delivered.
    pub delivery_rate_bps: Option<BitRate>,
}

/// Round-trip times of small echoes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RttSummary {
    /// Echoes sent.
    pub sent: u32,
    /// Echoes that came back.
    pub received: u32,
    /// The least.
    pub min_us: Elapsed,
    /// The median.
    pub median_us: Elapsed,
    /// The 95th percentile.
    pub p95_us: Elapsed,
    /// The largest.
    pub max_us: Elapsed,
}

/// What the sending end of a pass saw; it travels between the hosts and becomes part of a [`Pass`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SenderEnd {
    /// Bytes handed to the kernel, all streams together.
    pub bytes: ByteSize,
    /// From the first byte handed over to the end.
    pub elapsed_us: Elapsed,
    /// How the bytes were handed over.
    pub method: String,
    /// The congestion control in use.
    pub congestion: Option<String>,
    /// Each stream as the kernel counted it.
    pub stats: Outcome<Vec<TcpStats>>,
    /// The processor time of the stream threads together.
    pub thread_cpu_us: Option<Elapsed>,
}

/// What the receiving end of a pass saw; it travels between the hosts and becomes part of a [`Pass`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReceiverEnd {
    /// The bytes in each bin, all streams together.
    pub bins: Bins,
    /// Bytes that the application read, all streams together.
    pub bytes: ByteSize,
    /// From the first to the last byte.
    pub elapsed_us: Elapsed,
    /// Each stream's bytes.
    pub stream_bytes: Vec<ByteSize>,
    /// How the bytes were taken.
    pub method: String,
    /// Each stream as the kernel counted it.
    pub stats: Outcome<Vec<TcpStats>>,
    /// The processor time of the stream threads together.
    pub thread_cpu_us: Option<Elapsed>,
}
