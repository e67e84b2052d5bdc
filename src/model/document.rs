//! The report document: one file that holds everything about one run.

use serde::{Deserialize, Serialize};

use super::copy::CopySection;
use super::cpu::CpuSection;
use super::finding::{Finding, Verdict};
use super::host::{Host, Role};
use super::link::LinkSection;
use super::mtu::MtuSection;
use super::outcome::Outcome;
use super::plan::Plan;
use super::storage::StorageSection;
use super::throughput::ThroughputSection;

/// The name in every report's schema.
pub const SCHEMA_NAME: &str = "weaklink.report";

/// The version that this program writes. The major number grows when an old reader would misread.
pub const SCHEMA_VERSION: SchemaVersion = SchemaVersion { major: 1, minor: 3 };

/// Everything about one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// What kind of file this is.
    pub schema: Schema,
    /// The program that wrote it.
    pub tool: Tool,
    /// When the run began, RFC 3339 in UTC.
    pub started: String,
    /// What it set out to do.
    pub plan: Plan,
    /// The two hosts.
    pub hosts: Hosts,
    /// What was measured.
    pub measurements: Measurements,
    /// What was found, most important first.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// The answer; absent until a report is judged.
    #[serde(default)]
    pub verdict: Option<Verdict>,
}

/// What kind of file a report is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    /// Always [`SCHEMA_NAME`].
    pub name: String,
    /// The version of the layout.
    pub version: SchemaVersion,
}

impl Schema {
    /// What this program writes.
    pub fn current() -> Self {
        Self { name: SCHEMA_NAME.to_owned(), version: SCHEMA_VERSION }
    }
}

/// The version of the layout of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaVersion {
    /// Grows when an old reader would misread.
    pub major: u32,
    /// Grows when something is added.
    pub minor: u32,
}

/// The program that wrote a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// `weaklink`.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// The two hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hosts {
    /// Where `weaklink run` was started.
    pub pc: Outcome<Host>,
    /// Where `weaklink serve` was started.
    pub nas: Outcome<Host>,
}

impl Hosts {
    /// One of both.
    pub const fn of(&self, role: Role) -> &Outcome<Host> {
        match role {
            Role::Pc => &self.pc,
            Role::Nas => &self.nas,
        }
    }
}

/// What was measured, each part an outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurements {
    /// Ports, cables as far as the ports tell, aggregation.
    pub link: Outcome<LinkSection>,
    /// The largest packet.
    pub mtu: Outcome<MtuSection>,
    /// Raw TCP.
    pub throughput: Outcome<ThroughputSection>,
    /// Processors.
    pub cpu: Outcome<CpuSection>,
    /// Disks.
    pub storage: Outcome<StorageSection>,
    /// Copies.
    pub copy: Outcome<CopySection>,
}

impl Measurements {
    /// Nothing was measured, for one reason.
    pub fn none(reason: &str) -> Self {
        Self {
            link: Outcome::skipped(reason),
            mtu: Outcome::skipped(reason),
            throughput: Outcome::skipped(reason),
            cpu: Outcome::skipped(reason),
            storage: Outcome::skipped(reason),
            copy: Outcome::skipped(reason),
        }
    }
}
