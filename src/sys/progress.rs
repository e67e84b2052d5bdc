//! How far a measurement is, for whoever draws it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bytes moved so far; clones share the number.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<AtomicU64>);

impl Progress {
    /// Nothing moved yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts further `bytes`.
    pub fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Sets the number, for those who count elsewhere.
    pub fn set(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    /// The bytes so far.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
