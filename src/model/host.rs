//! The two hosts of a diagnosis.

use serde::{Deserialize, Serialize};

use super::outcome::Outcome;
use crate::units::ByteSize;

/// Which of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Where `weaklink run` was started.
    Pc,
    /// Where `weaklink serve` was started.
    Nas,
}

impl Role {
    /// The other end.
    pub const fn peer(self) -> Self {
        match self {
            Self::Pc => Self::Nas,
            Self::Nas => Self::Pc,
        }
    }

    /// The word for people: `PC` or `NAS`.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Pc => "PC",
            Self::Nas => "NAS",
        }
    }
}

/// The way of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// PC → NAS.
    Upload,
    /// NAS → PC.
    Download,
}

impl Direction {
    /// Both, upload first.
    pub const BOTH: [Self; 2] = [Self::Upload, Self::Download];

    /// The end that sends.
    pub const fn sender(self) -> Role {
        match self {
            Self::Upload => Role::Pc,
            Self::Download => Role::Nas,
        }
    }

    /// The end that receives.
    pub const fn receiver(self) -> Role {
        self.sender().peer()
    }

    /// The words for people: `PC → NAS` or `NAS → PC`.
    pub const fn arrow(self) -> &'static str {
        match self {
            Self::Upload => "PC → NAS",
            Self::Download => "NAS → PC",
        }
    }

    /// The field's word: `upload` or `download`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Upload => "upload",
            Self::Download => "download",
        }
    }
}

/// One host: what it is, without anything private such as its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// The version of weaklink there.
    pub weaklink: String,
    /// The operating system, such as `linux`.
    pub os: String,
    /// The processor architecture, such as `aarch64`.
    pub arch: String,
    /// The kernel's release.
    pub kernel: Outcome<String>,
    /// The processor's model as it names itself.
    pub cpu_model: Outcome<String>,
    /// The number of cores that this process may use.
    pub cores: u32,
    /// The size of the memory.
    pub memory_bytes: Outcome<ByteSize>,
    /// The kernel's settings of TCP.
    pub tcp: Outcome<TcpSettings>,
}

/// The kernel's settings of TCP that bound a stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TcpSettings {
    /// The default congestion control.
    pub congestion_default: Option<String>,
    /// Those that weaklink could choose as the user that ran it: `tcp_allowed_congestion_control`, with `CAP_NET_ADMIN`
    /// `tcp_available_congestion_control`.
    pub congestion_available: Vec<String>,
    /// `tcp_rmem`: the least, default and largest receive buffer in bytes.
    pub rmem_bytes: Option<[u64; 3]>,
    /// `tcp_wmem`: the least, default and largest send buffer in bytes.
    pub wmem_bytes: Option<[u64; 3]>,
    /// `net.core.rmem_max` in bytes.
    pub rmem_max_bytes: Option<u64>,
    /// `net.core.wmem_max` in bytes.
    pub wmem_max_bytes: Option<u64>,
    /// `tcp_mtu_probing`: 0 off, 1 on after a black hole is suspected, 2 always on.
    pub mtu_probing: Option<u32>,
    /// Whether windows can grow beyond 64 KiB.
    pub window_scaling: Option<bool>,
}
