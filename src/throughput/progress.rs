//! The bytes moved so far, between the stream threads and the one that looks.

use std::sync::atomic::{AtomicU64, Ordering};

/// One stream's counter on cache lines of its own: a thread that counts must not slow down its neighbour.
///
/// 128 bytes: processors fetch pairs of 64-byte lines, and some ARM cores have lines of 128.
#[repr(align(128))]
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    /// Only the stream's own thread writes, so a plain store is enough.
    pub(super) fn set(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of `streams` streams.
pub(super) fn counters(streams: usize) -> Vec<Counter> {
    std::iter::repeat_with(Counter::default).take(streams).collect()
}

/// The sum of all counters.
pub(super) fn total(counters: &[Counter]) -> u64 {
    counters.iter().map(Counter::get).fold(0, u64::saturating_add)
}

/// The stack of a stream's thread: its calls are shallow and its buffers are on the heap, so that many streams cost little memory.
pub(super) const STACK: usize = 256 * 1024;
