//! What a stream counts, and the counters that anybody may look at meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a stream counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Count {
    /// Payload bytes that the kernel took or gave.
    pub bytes: u64,
    /// Datagrams: sent by a sender; by a receiver the highest counter that came, which is what must have been sent at least.
    pub packets: u64,
    /// Datagrams that came, late ones and copies included (receiver).
    pub received: u64,
    /// Datagrams that are missing, as iperf3 counts: a gap adds, a late one takes away (receiver).
    pub lost: u64,
    /// Datagrams that came after a later one, copies included (receiver).
    pub out_of_order: u64,
    /// The largest gap in the counter (receiver).
    pub longest_loss: u64,
    /// Variation of the transit time in seconds (RFC 3550, section 6.4.1), at the end (receiver).
    pub jitter_s: f64,
}

impl Count {
    /// What was added after `earlier`; jitter and the largest gap are of the whole time.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(earlier.bytes),
            packets: self.packets.saturating_sub(earlier.packets),
            received: self.received.saturating_sub(earlier.received),
            lost: self.lost.saturating_sub(earlier.lost),
            out_of_order: self.out_of_order.saturating_sub(earlier.out_of_order),
            ..*self
        }
    }
}

/// The counters of one stream, on cache lines of their own: a thread that counts must not slow down its neighbour.
#[repr(align(128))]
#[derive(Debug, Default)]
pub(in crate::iperf3) struct Tally {
    bytes: AtomicU64,
    packets: AtomicU64,
    received: AtomicU64,
    lost: AtomicU64,
    out_of_order: AtomicU64,
    longest_loss: AtomicU64,
    jitter: AtomicU64,
    /// Nanoseconds from the start, and 1; 0 is never.
    first: AtomicU64,
    last: AtomicU64,
}

impl Tally {
    /// Counts; only the stream's own thread does, so plain stores are enough.
    pub(in crate::iperf3) fn set(&self, count: &Count, at: Duration) {
        for (cell, value) in [
            (&self.bytes, count.bytes),
            (&self.packets, count.packets),
            (&self.received, count.received),
            (&self.lost, count.lost),
            (&self.out_of_order, count.out_of_order),
            (&self.longest_loss, count.longest_loss),
            (&self.jitter, count.jitter_s.to_bits()),
        ] {
            cell.store(value, Ordering::Relaxed);
        }
        self.touch(at);
    }

    /// Counts bytes only.
    pub(in crate::iperf3) fn set_bytes(&self, bytes: u64, at: Duration) {
        self.bytes.store(bytes, Ordering::Relaxed);
        self.touch(at);
    }

    fn touch(&self, at: Duration) {
        let mark = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX).saturating_add(1);
        if self.first.load(Ordering::Relaxed) == 0 {
            self.first.store(mark, Ordering::Relaxed);
        }
        self.last.store(mark, Ordering::Relaxed);
    }

    /// What was counted so far.
    pub(super) fn get(&self) -> Count {
        let value = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        Count {
            bytes: value(&self.bytes),
            packets: value(&self.packets),
            received: value(&self.received),
            lost: value(&self.lost),
            out_of_order: value(&self.out_of_order),
            longest_loss: value(&self.longest_loss),
            jitter_s: f64::from_bits(value(&self.jitter)),
        }
    }

    /// When the first bytes moved.
    pub(super) fn first(&self) -> Option<Duration> {
        Self::moment(&self.first)
    }

    /// When the last bytes moved.
    pub(super) fn last(&self) -> Option<Duration> {
        Self::moment(&self.last)
    }

    fn moment(cell: &AtomicU64) -> Option<Duration> {
        cell.load(Ordering::Relaxed).checked_sub(1).map(Duration::from_nanos)
    }
}
