//! What the two ends of a raw copy agree on and what each of them saw.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::copy::series::{RateOf, copied};
use crate::model::copy::{Copied, Place};
use crate::model::outcome::Outcome;
use crate::model::throughput::Bins;
use crate::sys::Progress;
use crate::sys::Stop;
use crate::units::{ByteSize, Elapsed};

/// Where a sender takes its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The content of the spec's seed, made up in memory.
    Memory,
    /// A file, read past this host's cache.
    File {
        /// Where it lies: made by this host, never by the peer.
        path: PathBuf,
    },
}

/// Where a receiver puts its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sink {
    /// Nowhere: the content is compared as far as that is cheap, and thrown away.
    Memory,
    /// A new file, whose data is on the disk before the time ends.
    File {
        /// Where it is made: by this host, never by the peer. It must not exist.
        path: PathBuf,
    },
}

/// What both ends agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawSpec {
    /// Fixes the content.
    pub seed: u64,
    /// How long the sender sends, from its first byte.
    pub budget: Duration,
    /// The sender ends here at the latest; for a file that is read back, its size. Less than this before the time is over is a broken copy.
    pub max_bytes: ByteSize,
}

/// What one end saw. The receiver's numbers are the result; the sender's count also holds what was still in buffers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RawEnd {
    /// The bytes.
    pub bytes: ByteSize,
    /// From the first byte to the last one, for a file until it was on the disk.
    pub elapsed_us: Elapsed,
    /// Bytes over time.
    pub bins: Bins,
    /// The bytes whose content was compared.
    pub verified_bytes: Outcome<ByteSize>,
}

impl RawEnd {
    /// The result of a copy that this end, as the receiver, put into `place`.
    pub fn copied(&self, place: Place) -> Copied {
        // The last sync belongs to a copy onto a disk, so there all of the time counts.
        let rate = if place == Place::Disk { RateOf::Whole } else { RateOf::Steady };
        let mut out = copied(self.bytes.0, self.elapsed_us.into(), self.bins.clone(), rate);
        out.verified_bytes = self.verified_bytes.clone();
        out
    }
}

/// One read or write, bytes: large enough that system calls cost nothing, small enough to stay in an L2 cache.
pub(super) const BUFFER: usize = 256 * 1024;

/// How often a blocked call looks up.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// The longest wait for the first byte: a disk that sleeps needs up to 10 s to spin up.
pub(super) const FIRST_BYTE: Duration = Duration::from_secs(15);

/// How much longer than the budget a receiver takes data: what lies in socket buffers, no more.
pub(super) const GRACE: Duration = Duration::from_millis(300);

/// How long the last sync may last. Stretches are made to take a fifth of a second; a disk that needs longer than this hangs.
pub(super) const LAST_SYNC: Duration = Duration::from_secs(10);

/// An end that did not come to a number: which outcome instead.
pub(super) type End<T> = Result<T, Outcome<RawEnd>>;

pub(super) struct Way<'a> {
    pub(super) spec: &'a RawSpec,
    pub(super) stop: &'a Stop,
    pub(super) progress: &'a Progress,
}

pub(super) fn failed<T>(act: &str, error: &io::Error) -> End<T> {
    Err(Outcome::failed(format!("{act}: {error}")))
}

pub(super) fn blocked(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
