//! A pass in more detail: the kernel's view bin by bin, what held the sender back, what the threads cost, what the series looks like.

use serde::{Deserialize, Serialize};

use crate::units::{BitRate, Elapsed};

/// What ended one end of a pass, or the pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The time that was given.
    #[default]
    Time,
    /// The receiver knew the rate well enough.
    Enough,
    /// The bytes that were given.
    Bytes,
    /// The other end ended the streams.
    Peer,
    /// Somebody interrupted it.
    Stopped,
}

/// `TCP_INFO` of all streams of one end together, one value for each look; looks are a bin apart, and in a pass of more than two minutes
/// several bins.
///
/// Each column is as long as `at_us`, or empty where the kernel does not tell. Counters are what was added since the look before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelSeries {
    /// When, from the beginning of the pass at this end.
    pub at_us: Vec<u64>,
    /// The median of the streams' smoothed round-trip times.
    pub rtt_us: Vec<u64>,
    /// The sum of the congestion windows in bytes.
    pub cwnd_bytes: Vec<u64>,
    /// The sum of the peers' receive windows in bytes.
    pub peer_window_bytes: Vec<u64>,
    /// The sum of the kernel's estimates of what was delivered, in bit/s.
    pub delivery_rate_bps: Vec<u64>,
    /// Streams whose estimate was held down by the application.
    pub app_limited: Vec<u64>,
    /// Segments sent again.
    pub retransmits: Vec<u64>,
    /// Bytes sent again.
    pub bytes_retrans: Vec<u64>,
    /// Reordering events.
    pub reord_seen: Vec<u64>,
    /// Time with data to send, all streams together; includes the two limited times.
    pub busy_us: Vec<u64>,
    /// Time stopped by the receiver's window, all streams together.
    pub rwnd_limited_us: Vec<u64>,
    /// Time stopped by the own send buffer, all streams together.
    pub sndbuf_limited_us: Vec<u64>,
}

/// What held a sender back: shares of the time of all its streams, which add up to 1.
///
/// The kernel's busy time includes the two limited times (Linux, `tcp_chrono` in `net/ipv4/tcp_output.c`): application = elapsed − busy, network = busy −
/// receiver − send buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LimitShares {
    /// The application had nothing to send.
    pub application: f64,
    /// The receiver's window was full.
    pub receiver: f64,
    /// The own send buffer was full.
    pub send_buffer: f64,
    /// The congestion window and the path: what a capacity test wants to see.
    pub network: f64,
}

/// What the stream threads of one end cost its host; work of the kernel on other cores (soft interrupts) is not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadCost {
    /// Processor time.
    pub cpu_us: Elapsed,
    /// Processor cycles, where the processor counts them for us.
    #[serde(default)]
    pub cycles: Option<u64>,
}

/// What one way of moving bytes gave when the ways were tried against each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MethodTrial {
    /// Its name, as in [`crate::model::throughput::Method`].
    pub method: String,
    /// The rate meanwhile.
    pub rate_bps: BitRate,
    /// Seconds of processor time of this thread for each gigabyte (10⁹ bytes).
    pub cpu_s_per_gb: f64,
    /// Why it was not used, where it did not work at all, or not for all streams.
    #[serde(default)]
    pub refused: Option<String>,
}

/// What a series of bins looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Bins after the first byte and before the end in which nothing arrived.
    pub empty_bins: u32,
    /// The longest time in which nothing arrived, in whole bins.
    pub longest_stall_us: Elapsed,
    /// Dips that come again and again.
    #[serde(default)]
    pub dips: Option<Dips>,
    /// How much the rate changed from the begin to the end of the steady part, as a share of its mean; negative is a fall.
    #[serde(default)]
    pub drift: Option<f64>,
}

/// Dips that come at one distance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dips {
    /// From one to the next.
    pub every_us: Elapsed,
    /// How many there were.
    pub count: u32,
    /// How deep, as a share of the mean rate.
    pub depth: f64,
}
