//! What a run set out to do.

use serde::{Deserialize, Serialize};

use super::copy::LaneKind;
use super::host::Direction;
use super::throughput::PassOptions;
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
    /// What was asked of the throughput test, where it was more than the ordinary one.
    #[serde(default)]
    pub throughput: Option<ThroughputPlan>,
}

/// What `weaklink throughput` was asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThroughputPlan {
    /// Which directions.
    pub ways: Ways,
    /// A fixed number of streams; none: one, and then more while the sum grows.
    #[serde(default)]
    pub streams: Option<u32>,
    /// A fixed time for each pass; none: until the rate is known well enough.
    #[serde(default)]
    pub time_us: Option<Elapsed>,
    /// The largest segment that was asked for.
    #[serde(default)]
    pub mss_bytes: Option<u32>,
    /// What was asked of sockets and engine.
    #[serde(default)]
    pub options: PassOptions,
    /// The congestion controls to compare; none or one: no comparison.
    #[serde(default)]
    pub congestion: Vec<String>,
    /// Datagrams in place of TCP.
    #[serde(default)]
    pub udp: Option<UdpPlan>,
    /// How many PCs measure together, and under which name.
    #[serde(default)]
    pub together: Option<TogetherPlan>,
}

/// Datagrams, as asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpPlan {
    /// One fixed rate in payload bits; none: the rate at which loss begins is searched.
    #[serde(default)]
    pub rate_bps: Option<BitRate>,
    /// Payload of a datagram; none: what the path MTU carries.
    #[serde(default)]
    pub datagram_bytes: Option<u32>,
    /// What the path is thought to carry, such as the goodput of TCP: where the search begins; none: from 10 Mbit/s upwards.
    #[serde(default)]
    pub presumed_bps: Option<BitRate>,
    /// A fixed time for each pass; none: 0.4 to 1 s in a search, 3 s at a fixed rate.
    #[serde(default)]
    pub time_us: Option<Elapsed>,
}

/// Several PCs, as asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TogetherPlan {
    /// How many.
    pub members: u32,
    /// The name that they meet under.
    pub name: String,
}

/// Which directions a throughput test takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ways {
    /// One after the other, then both at once.
    #[default]
    All,
    /// PC → NAS only.
    Upload,
    /// NAS → PC only.
    Download,
    /// Both at once only.
    Both,
}

impl Ways {
    /// Whether one direction is measured by itself.
    pub const fn has(self, direction: Direction) -> bool {
        matches!((self, direction), (Self::All, _) | (Self::Upload, Direction::Upload) | (Self::Download, Direction::Download))
    }

    /// Whether both are measured at once.
    pub const fn has_both(self) -> bool {
        matches!(self, Self::All | Self::Both)
    }
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
    /// Raw TCP or UDP alone, with an agent at the NAS.
    Throughput,
    /// Raw TCP or UDP alone, against an iperf3 server.
    ThroughputIperf3,
    /// The links alone, with an agent at the NAS.
    Link,
    /// The links alone, as far as this end knows them.
    LinkWithoutAgent,
    /// All ports of this host, whoever is at their other ends.
    LinkOfHost,
}

impl Scope {
    /// Whether only the path MTU was asked for.
    pub const fn is_mtu(self) -> bool {
        matches!(self, Self::Mtu | Self::MtuWithoutAgent)
    }

    /// Whether only the links were asked for.
    pub const fn is_link(self) -> bool {
        matches!(self, Self::Link | Self::LinkWithoutAgent | Self::LinkOfHost)
    }

    /// Whether only throughput was asked for.
    pub const fn is_throughput(self) -> bool {
        matches!(self, Self::Throughput | Self::ThroughputIperf3)
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
