//! The largest packet that passes, per direction.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::host::Direction;
use super::outcome::Outcome;
use crate::units::{BitRate, ByteSize, Elapsed, Mtu};

/// Both directions, and the proof of a black hole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MtuSection {
    /// PC → NAS.
    pub upload: Outcome<PathMtu>,
    /// NAS → PC.
    pub download: Outcome<PathMtu>,
    /// What a stream did whose segments were not clamped to the found path MTU.
    pub unclamped: Outcome<UnclampedStream>,
}

impl MtuSection {
    /// One direction's result.
    pub const fn of(&self, direction: Direction) -> &Outcome<PathMtu> {
        match direction {
            Direction::Upload => &self.upload,
            Direction::Download => &self.download,
        }
    }
}

/// The result of the search in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathMtu {
    /// The largest packet that passed, to the byte.
    pub mtu: Mtu,
    /// The largest size that the sender's own interface lets out.
    pub ceiling: Mtu,
    /// Who keeps larger packets back.
    pub limited_by: Limiter,
    /// The number of probes sent, those of control included.
    pub probes: u32,
    /// The time that the search took.
    pub elapsed_us: Elapsed,
    /// The least round-trip time of a probe, if one was answered.
    pub rtt_us: Option<Elapsed>,
    /// Every probe in the order of sending.
    pub trace: Vec<Probe>,
}

/// Who limits the size of packets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Limiter {
    /// The sender's own interface: nothing larger can leave.
    LocalInterface,
    /// A router that said so by ICMP.
    Router {
        /// The router's address.
        address: IpAddr,
        /// The MTU of its next hop, as it said.
        next_hop_mtu: Mtu,
    },
    /// Larger packets vanish and nobody says so: a black hole.
    Silent,
}

/// One probe packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// The size of the IP packet.
    pub size: Mtu,
    /// When it was sent, from the start of the search.
    pub at_us: Elapsed,
    /// What became of it.
    pub fate: ProbeFate,
    /// The round-trip time, if it was answered.
    pub rtt_us: Option<Elapsed>,
}

/// What became of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeFate {
    /// The peer acknowledged it.
    Acknowledged,
    /// No answer came in time.
    Lost,
    /// Our own system refused to send it.
    RefusedLocally,
    /// A router said that it is too large.
    RefusedByRouter,
}

/// A stream with segments as large as the interfaces allow, across a path that may not carry them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnclampedStream {
    /// The direction of the data.
    pub direction: Direction,
    /// What arrived.
    pub bytes: ByteSize,
    /// For how long it was tried.
    pub elapsed_us: Elapsed,
    /// The rate that this makes.
    pub goodput_bps: BitRate,
}
