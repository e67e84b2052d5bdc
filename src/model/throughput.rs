//! Raw TCP, memory to memory.

use serde::{Deserialize, Serialize};

use super::cpu::CpuWindow;
use super::flows::FlowCheck;
use super::host::Direction;
use super::kernel::{Ended, KernelSeries, LimitShares, MethodTrial, Shape, ThreadCost};
use super::link::CountersByInterface;
use super::outcome::{Outcome, absent};
use super::together::Together;
use super::udp::UdpSection;
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
    /// Who the other end was.
    #[serde(default)]
    pub far_end: FarEnd,
    /// Upload and download at the same moment.
    #[serde(default = "absent")]
    pub both: Outcome<BothWays>,
    /// One pass with each of several congestion controls.
    #[serde(default = "absent")]
    pub congestion: Outcome<Vec<CongestionTrial>>,
    /// Datagrams at chosen rates.
    #[serde(default = "absent")]
    pub udp: Outcome<UdpSection>,
    /// Several PCs at the same moment.
    #[serde(default = "absent")]
    pub together: Outcome<Together>,
}

/// Who answers at the far end of the throughput test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FarEnd {
    /// Our own agent, which tells everything that it sees.
    #[default]
    Agent,
    /// An iperf3 server, which tells its totals only.
    Iperf3Server,
}

/// Both directions at the same moment, over connections of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BothWays {
    /// PC → NAS.
    pub upload: Outcome<Pass>,
    /// NAS → PC.
    pub download: Outcome<Pass>,
}

impl BothWays {
    /// One direction's pass.
    pub const fn of(&self, direction: Direction) -> &Outcome<Pass> {
        match direction {
            Direction::Upload => &self.upload,
            Direction::Download => &self.download,
        }
    }
}

/// Why a test with a pace has one stream: that is what was asked for, and no news.
pub const PACED: &str = "--pacing asks for the pace of one stream; --streams gives more of them";

/// A pass with a congestion control that was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CongestionTrial {
    /// The way of the data.
    pub direction: Direction,
    /// What was asked for; what ran is told by the pass.
    pub congestion: String,
    /// What it gave.
    pub pass: Outcome<Pass>,
}

impl ThroughputSection {
    /// One stream and several in each direction; everything else was not asked for.
    pub fn new(upload: DirectionThroughput, download: DirectionThroughput, idle_rtt: Outcome<RttSummary>) -> Self {
        fn not_asked<T>() -> Outcome<T> {
            Outcome::skipped("not asked for")
        }
        Self {
            upload,
            download,
            idle_rtt,
            far_end: FarEnd::Agent,
            both: not_asked(),
            congestion: not_asked(),
            udp: not_asked(),
            together: not_asked(),
        }
    }

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
    /// Several streams at once: of all numbers that were tried the one that gave most.
    pub multi: Outcome<Pass>,
    /// What each number of streams gave, in the order of trying; more are tried while the sum grows.
    #[serde(default)]
    pub sweep: Vec<SweepPoint>,
}

/// What one number of streams gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepPoint {
    /// The number of streams.
    pub streams: u32,
    /// The goodput of all of them together.
    pub goodput_bps: BitRate,
}

impl DirectionThroughput {
    /// Both passes were skipped or failed for one reason.
    pub fn skipped(reason: &str) -> Self {
        Self { single: Outcome::skipped(reason), multi: Outcome::skipped(reason), sweep: Vec::new() }
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
    /// The receiver's bytes in each bin, all streams together; empty where the receiver tells its total only.
    pub bins: Bins,
    /// What the sender handed to its kernel in each bin; empty where it does not tell.
    #[serde(default)]
    pub sender_bins: Bins,
    /// The steady part of the bins; none when the rate never settled.
    pub steady: Option<Steady>,
    /// Half the width of the 95 % confidence interval of the goodput, as a share of it; none where there are too few bins.
    #[serde(default)]
    pub half_width: Option<f64>,
    /// What ended the pass.
    #[serde(default)]
    pub ended: Ended,
    /// Stalls, dips and drift in the bins.
    #[serde(default)]
    pub shape: Shape,
    /// Each stream's bytes at the receiver.
    pub stream_bytes: Vec<ByteSize>,
    /// Streams that broke while others went on: what happened, one sentence each, first the sender's.
    #[serde(default)]
    pub broken: Vec<String>,
    /// What the other end told of this pass and is not believed, and what stands in its place: one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// The sender's view by its kernel, at the end of the pass.
    pub sender: Outcome<Vec<TcpStats>>,
    /// The receiver's view by its kernel, at the end of the pass.
    pub receiver: Outcome<Vec<TcpStats>>,
    /// The sender's kernel bin by bin.
    #[serde(default = "absent")]
    pub sender_series: Outcome<KernelSeries>,
    /// The receiver's kernel bin by bin.
    #[serde(default = "absent")]
    pub receiver_series: Outcome<KernelSeries>,
    /// What held the sender back, as shares of the time.
    #[serde(default = "absent")]
    pub limits: Outcome<LimitShares>,
    /// What the sender's threads cost its host.
    #[serde(default = "absent")]
    pub sender_cost: Outcome<ThreadCost>,
    /// What the receiver's threads cost its host.
    #[serde(default = "absent")]
    pub receiver_cost: Outcome<ThreadCost>,
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
    /// Which ports of the sender's aggregation carried the streams, beside what its hash foretold.
    #[serde(default = "absent")]
    pub flows: Outcome<Box<FlowCheck>>,
}

impl Pass {
    /// A pass of so many streams in which nothing was measured.
    pub fn blank(streams: u32) -> Self {
        fn unattached<T>() -> Outcome<T> {
            Outcome::skipped("not told")
        }
        Self {
            streams,
            goodput_bps: BitRate(0),
            bytes: ByteSize(0),
            elapsed_us: Elapsed(0),
            bins: Bins::default(),
            sender_bins: Bins::default(),
            steady: None,
            half_width: None,
            ended: Ended::Time,
            shape: Shape::default(),
            stream_bytes: Vec::new(),
            broken: Vec::new(),
            doubts: Vec::new(),
            sender: unattached(),
            receiver: unattached(),
            sender_series: unattached(),
            receiver_series: unattached(),
            limits: unattached(),
            sender_cost: unattached(),
            receiver_cost: unattached(),
            method: Method::default(),
            cpu_pc: unattached(),
            cpu_nas: unattached(),
            loaded_rtt: unattached(),
            counters_pc: unattached(),
            counters_nas: unattached(),
            flows: unattached(),
        }
    }
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Method {
    /// How the sender handed over its bytes: `send`, `sendfile`, `write` …
    pub send: String,
    /// How the receiver took them: `recv-trunc`, `read` …
    pub receive: String,
    /// The congestion control that the sender used, if known.
    pub congestion: Option<String>,
    /// The segment size that both ends were clamped to, if they were.
    pub mss_clamp_bytes: Option<u32>,
    /// What the sender's methods cost when they were tried against each other; empty where nothing was tried.
    #[serde(default)]
    pub send_trials: Vec<MethodTrial>,
    /// The same of the receiver's.
    #[serde(default)]
    pub receive_trials: Vec<MethodTrial>,
    /// What was set on the sender's sockets beside that, as the kernel granted it.
    #[serde(default)]
    pub sender_sockets: SocketFacts,
    /// The same of the receiver's.
    #[serde(default)]
    pub receiver_sockets: SocketFacts,
}

/// What was asked of a pass's sockets and granted; absent where nothing was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketFacts {
    /// The buffer of this end, send or receive, as the kernel counts it (Linux: double of what was asked, for its overhead).
    #[serde(default)]
    pub buffer_bytes: Option<ByteSize>,
    /// The rate that the kernel paces each stream to.
    #[serde(default)]
    pub pacing_bps: Option<BitRate>,
    /// The differentiated services code point of what this end sends.
    #[serde(default)]
    pub dscp: Option<u8>,
    /// What was asked and refused: one sentence each.
    #[serde(default)]
    pub refused: Vec<String>,
}

/// What is asked of the sockets and the engine of a pass; everything absent is the ordinary test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PassOptions {
    /// The congestion control by the kernel's name; a wish, and what ran is told.
    #[serde(default)]
    pub congestion: Option<String>,
    /// The socket buffers of both ends (`SO_SNDBUF`, `SO_RCVBUF`), which bound the window.
    #[serde(default)]
    pub window_bytes: Option<u32>,
    /// The rate that each stream is paced to by the kernel (`SO_MAX_PACING_RATE`).
    #[serde(default)]
    pub pacing_bps: Option<BitRate>,
    /// The differentiated services code point, 0 to 63.
    #[serde(default)]
    pub dscp: Option<u8>,
    /// Ordinary copies at both ends, as programs do, in place of the cheapest way.
    #[serde(default)]
    pub copies: bool,
    /// The bytes after which the pass ends, all streams together.
    #[serde(default)]
    pub max_bytes: Option<ByteSize>,
    /// When the receiver knows enough; none: the whole time.
    #[serde(default)]
    pub enough: Option<StopRule>,
}

/// When a pass may end before its time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StopRule {
    /// Half the width of the 95 % confidence interval, as a share of the goodput.
    pub half_width: f64,
    /// The least time from the first byte on.
    pub least_us: Elapsed,
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
    /// Whether that estimate was held down by the application, which had nothing to send.
    #[serde(default)]
    pub app_limited: Option<bool>,
    /// Segments that arrived marked for congestion (ECN), as the peer said.
    #[serde(default)]
    pub delivered_ce: Option<u32>,
    /// Segments that the peer said had come twice: what was sent again without need.
    #[serde(default)]
    pub dsack_dups: Option<u32>,
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
    /// The 99th percentile, where it was kept.
    #[serde(default)]
    pub p99_us: Option<Elapsed>,
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
    /// The processor cycles of the stream threads together, where the processor counts them for us.
    #[serde(default)]
    pub cycles: Option<u64>,
    /// Bytes handed to the kernel in each bin, all streams together.
    #[serde(default)]
    pub bins: Bins,
    /// The kernel bin by bin.
    #[serde(default = "absent")]
    pub series: Outcome<KernelSeries>,
    /// What ended it.
    #[serde(default)]
    pub ended: Ended,
    /// What each method cost when they were tried.
    #[serde(default)]
    pub trials: Vec<MethodTrial>,
    /// What was set on the sockets.
    #[serde(default)]
    pub sockets: SocketFacts,
    /// Streams that broke while others went on: what happened, one sentence each.
    #[serde(default)]
    pub broken: Vec<String>,
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
    /// The processor cycles of the stream threads together, where the processor counts them for us.
    #[serde(default)]
    pub cycles: Option<u64>,
    /// The kernel bin by bin.
    #[serde(default = "absent")]
    pub series: Outcome<KernelSeries>,
    /// What ended it.
    #[serde(default)]
    pub ended: Ended,
    /// What each method cost when they were tried.
    #[serde(default)]
    pub trials: Vec<MethodTrial>,
    /// What was set on the sockets.
    #[serde(default)]
    pub sockets: SocketFacts,
    /// Streams that broke while others went on: what happened, one sentence each.
    #[serde(default)]
    pub broken: Vec<String>,
}
