//! What a run set out to do.

use serde::{Deserialize, Serialize};

use super::copy::LaneKind;
use crate::units::{BitRate, ByteSize, Elapsed};

/// What a run set out to do, as meant by the person who started it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Which question was asked.
    #[serde(default)]
    pub scope: Scope,
    /// How thorough.
    pub depth: Depth,
    /// Whether the agent ran in the same process over loopback: then nothing here is evidence about a cable.
    pub local: bool,
    /// The time that the run promised to need at most.
    pub budget_us: Elapsed,
    /// The number of streams of the pass with several.
    pub streams: u32,
    /// The most that any disk step may write.
    pub max_data_bytes: ByteSize,
    /// The lanes of the copy pass.
    pub lanes: Vec<LaneKind>,
    /// Which files the user copies.
    pub workload: Workload,
    /// The PC's link speed, as the user stated it.
    pub stated_pc_bps: Option<BitRate>,
    /// The NAS's link speed, as the user stated it.
    pub stated_nas_bps: Option<BitRate>,
}

/// Which question a document answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The whole diagnosis.
    #[default]
    Run,
    /// The path MTU alone, with an agent at the NAS.
    Mtu,
    /// The path MTU alone, as far as one end can know it.
    MtuWithoutAgent,
}

impl Scope {
    /// Whether only the path MTU was asked for.
    pub const fn is_mtu(self) -> bool {
        matches!(self, Self::Mtu | Self::MtuWithoutAgent)
    }
}

/// How thorough a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Depth {
    /// About 15 s.
    Quick,
    /// At most 60 s.
    #[default]
    Normal,
    /// At most 5 minutes.
    Thorough,
}

/// Which files the user copies: the verdict speaks about these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// Large files; small ones are sampled and told as information.
    #[default]
    Large,
    /// Many small files.
    Small,
}
