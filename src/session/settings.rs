//! What a session with an agent is to do.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::copy::SshOptions;
use crate::model::plan::{Depth, Scope, ThroughputPlan, Workload};
use crate::session::dial::{Family, Target};
use crate::units::{BitRate, ByteSize};
use crate::wire::PairingCode;

/// What a run is to do.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// Which question is asked.
    pub scope: Scope,
    /// The agent.
    pub target: Target,
    /// Which addresses of it.
    pub family: Family,
    /// The pairing code.
    pub code: PairingCode,
    /// How thorough.
    pub depth: Depth,
    /// Whether the agent is in this process.
    pub local: bool,
    /// What is asked of the throughput test.
    pub throughput: ThroughputPlan,
    /// The address of this end for all connections, where it has several.
    pub bind: Option<IpAddr>,
    /// A directory of the PC for its disk.
    pub pc_dir: Option<PathBuf>,
    /// A mounted share.
    pub path: Option<PathBuf>,
    /// The SSH lane.
    pub ssh: Option<SshSettings>,
    /// Which files the user copies.
    pub workload: Workload,
    /// The most that a disk step may write.
    pub max_data: ByteSize,
    /// Whether to measure what large packets gain.
    pub gain: bool,
    /// How long to wait at the end for switches that have not spoken yet.
    pub lldp: Duration,
    /// What is done beside looking where only the links are asked for.
    pub links: LinkWishes,
    /// The PC's true link speed, as the user says.
    pub stated_pc: Option<BitRate>,
    /// The NAS's true link speed, as the user says.
    pub stated_nas: Option<BitRate>,
}

impl RunSettings {
    /// The ordinary run of one question: no disk, no lane, nothing stated, every address of the agent.
    pub fn new(scope: Scope, target: Target, code: PairingCode) -> Self {
        Self {
            scope,
            target,
            family: Family::Any,
            code,
            depth: Depth::Normal,
            local: false,
            throughput: ThroughputPlan::default(),
            bind: None,
            pc_dir: None,
            path: None,
            ssh: None,
            workload: Workload::Large,
            max_data: ByteSize(0),
            gain: false,
            lldp: Duration::ZERO,
            links: LinkWishes::default(),
            stated_pc: None,
            stated_nas: None,
        }
    }
}

/// What is done beside looking where only the links are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkWishes {
    /// Load the ports for a second in each direction, so that counters that grow and the spread over an aggregation show.
    pub load: bool,
    /// How long to watch the counters while weaklink moves nothing.
    pub watch: Duration,
}

/// The SSH lane as the user wants it.
#[derive(Clone, Debug)]
pub struct SshSettings {
    /// `[USER@]HOST[:DIR]` or `ssh://…`, already checked.
    pub target: crate::copy::Target,
    /// What `ssh` is told beside that.
    pub options: SshOptions,
}
