//! Datagrams at chosen rates: loss, jitter, reordering, and the rate at which loss begins.

use serde::{Deserialize, Serialize};

use super::cpu::CpuWindow;
use super::host::Direction;
use super::link::CountersByInterface;
use super::outcome::Outcome;
use super::throughput::Bins;
use crate::units::{BitRate, Elapsed};

/// Both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UdpSection {
    /// PC → NAS.
    pub upload: Outcome<UdpDirection>,
    /// NAS → PC.
    pub download: Outcome<UdpDirection>,
}

impl UdpSection {
    /// One direction's results.
    pub const fn of(&self, direction: Direction) -> &Outcome<UdpDirection> {
        match direction {
            Direction::Upload => &self.upload,
            Direction::Download => &self.download,
        }
    }
}

/// One direction: a pass at each rate that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UdpDirection {
    /// Bytes of payload in each datagram; it is never fragmented.
    pub datagram_bytes: u32,
    /// How datagrams were sent: `sendmsg`, `sendmmsg`, `GSO` …
    pub send: String,
    /// How they were received: `recvmsg`, `recvmmsg`, `GRO` …
    pub receive: String,
    /// In the order of trying.
    pub passes: Vec<UdpPass>,
    /// The highest rate at which the network lost nothing that counts, in payload bits.
    pub clean_bps: Option<BitRate>,
    /// The lowest rate at which the network lost something that counts, in payload bits; none when no rate did.
    pub loss_from_bps: Option<BitRate>,
    /// Why no higher rate was tried, where the host could not send more or was asked for no more.
    pub ended_because: String,
}

/// Datagrams at one rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UdpPass {
    /// What was asked for, in payload bits.
    pub asked_bps: BitRate,
    /// What the sender handed to its kernel, in payload bits over its own time.
    pub sent_bps: BitRate,
    /// What arrived, in payload bits over the receiver's time.
    pub received_bps: BitRate,
    /// Datagrams that the sender's kernel took.
    pub sent: u64,
    /// Datagrams that the sender's kernel refused, as its own queue was full: they never left.
    #[serde(default)]
    pub refused: u64,
    /// Datagrams that arrived, each counted once.
    pub received: u64,
    /// Datagrams that never arrived, receiver drops included.
    pub lost: u64,
    /// Of these, what the receiver's own kernel dropped because the program was late (`SO_RXQ_OVFL`, `/proc/net/udp`).
    pub dropped_by_receiver: Outcome<u64>,
    /// Datagrams that arrived more than once: the copies.
    pub duplicates: u64,
    /// Datagrams that arrived after one that was sent later.
    pub reordered: u64,
    /// The longest run of datagrams lost one after the other.
    pub longest_loss: u64,
    /// Variation of the transit time as RFC 3550 (section 6.4.1) smooths it, at the end. This and the queue are those of the
    /// first datagram of each burst: the others wait for each other.
    pub jitter_us: Elapsed,
    /// Transit time above the least one: the queue on the way, with the drift of the two clocks taken out. Median.
    pub queue_median_us: Elapsed,
    /// The same, 99th percentile.
    pub queue_p99_us: Elapsed,
    /// The receiver's time from the first to the last datagram.
    pub elapsed_us: Elapsed,
    /// Payload bytes that arrived in each bin.
    pub bins: Bins,
    /// The PC's CPU meanwhile.
    pub cpu_pc: Outcome<CpuWindow>,
    /// The NAS's CPU meanwhile.
    pub cpu_nas: Outcome<CpuWindow>,
    /// What the PC's interfaces counted.
    pub counters_pc: Outcome<CountersByInterface>,
    /// What the NAS's interfaces counted.
    pub counters_nas: Outcome<CountersByInterface>,
}

impl UdpDirection {
    /// The only pass, where one rate was tried: that says nothing about where loss begins.
    pub fn only(&self) -> Option<&UdpPass> {
        self.passes.first().filter(|_| self.passes.len() == 1)
    }
}

impl UdpPass {
    /// Less than this share of what was asked is not what was asked.
    const AS_ASKED: f64 = 0.98;

    /// Less than this share of what was sent is not all of it; ends measure their times to a thousandth.
    const ALL_OF_IT: f64 = 0.995;

    /// What was sent; what was asked for where the sender does not tell.
    pub fn rate_bps(&self) -> BitRate {
        if self.sent_bps.0 > 0 { self.sent_bps } else { self.asked_bps }
    }

    /// The rate that was asked for, where the sender did not reach it.
    pub fn missed_bps(&self) -> Option<BitRate> {
        Some(self.asked_bps).filter(|asked| self.sent_bps.0 > 0 && self.sent_bps.as_f64() < Self::AS_ASKED * asked.as_f64())
    }

    /// Whether clearly less arrived in each second than was sent though nothing was lost: it stood in a queue, as a line is full.
    pub fn queued(&self) -> bool {
        self.lost == 0 && self.sent_bps.0 > 0 && self.received_bps.as_f64() < Self::ALL_OF_IT * self.sent_bps.as_f64()
    }

    /// The share of the datagrams that the network lost: all losses without the receiver's own drops.
    pub fn network_loss(&self) -> f64 {
        let own = self.dropped_by_receiver.measured().copied().unwrap_or(0);
        if self.sent == 0 { 0.0 } else { self.lost.saturating_sub(own) as f64 / self.sent as f64 }
    }
}

/// What the sending end of a datagram pass saw; it travels between the hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UdpSent {
    /// Datagrams that the kernel took.
    pub datagrams: u64,
    /// Datagrams that the kernel refused, as its own queue was full.
    #[serde(default)]
    pub refused: u64,
    /// From the first to the last.
    pub elapsed_us: Elapsed,
    /// How they were sent.
    pub method: String,
    /// Whether the sender fell behind the rate that was asked for: then the host, not the network, is the limit.
    pub behind: bool,
}

/// What the receiving end of a datagram pass saw; it travels between the hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UdpReceived {
    /// Datagrams, each counted once.
    pub datagrams: u64,
    /// The highest sequence number and one: what must have been sent at least.
    pub beyond: u64,
    /// Copies of datagrams that had come before.
    pub duplicates: u64,
    /// Datagrams that came after a later one.
    pub reordered: u64,
    /// The longest run of datagrams lost one after the other.
    pub longest_loss: u64,
    /// Dropped by this host's kernel because the program was late.
    pub dropped: Outcome<u64>,
    /// As in [`UdpPass`].
    pub jitter_us: Elapsed,
    /// As in [`UdpPass`].
    pub queue_median_us: Elapsed,
    /// As in [`UdpPass`].
    pub queue_p99_us: Elapsed,
    /// From the first to the last datagram.
    pub elapsed_us: Elapsed,
    /// Payload bytes in each bin.
    pub bins: Bins,
    /// How they were received.
    pub method: String,
}
