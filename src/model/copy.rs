//! Copies of files, lane by lane.

use serde::{Deserialize, Serialize};

use super::cpu::CpuWindow;
use super::host::Direction;
use super::outcome::{Outcome, Source};
use super::phase::PhaseCounters;
use super::throughput::Bins;
use crate::units::{ByteRate, ByteSize, Elapsed};

/// All lanes that were asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CopySection {
    /// The lanes, `raw` first.
    pub lanes: Vec<Lane>,
}

/// One way of copying.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// What kind.
    pub kind: LaneKind,
    /// The protocol as recognised, such as `smb 3.1.1`, `nfs 4.2`, `ssh`, `raw tcp`.
    pub protocol: Outcome<String>,
    /// What was negotiated: cipher, dialect, read and write size, options.
    pub facts: Vec<LaneFact>,
    /// The measured copies.
    pub rungs: Vec<Rung>,
}

impl Lane {
    /// A negotiated fact by its name.
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.facts.iter().find(|fact| fact.name == name).map(|fact| fact.value.as_str())
    }

    /// The copies of one direction that were measured.
    pub fn measured(&self, direction: Direction) -> impl Iterator<Item = (&Rung, &Copied)> {
        self.rungs
            .iter()
            .filter(move |rung| rung.direction == direction)
            .filter_map(|rung| rung.result.measured().map(|copied| (rung, copied)))
    }
}

/// The kinds of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneKind {
    /// Our own TCP: the ideal protocol.
    Raw,
    /// A directory that the system mounted.
    Mounted,
    /// OpenSSH.
    Ssh,
    /// SMB by a client of ours.
    Smb,
    /// NFS by a client of ours.
    Nfs,
}

impl LaneKind {
    /// The word in reports.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Mounted => "mounted",
            Self::Ssh => "ssh",
            Self::Smb => "smb",
            Self::Nfs => "nfs",
        }
    }
}

/// Something that a lane negotiated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneFact {
    /// Its name: `cipher_upload`, `cipher_download`, `mac`, `compression`, `vers`, `rsize`, `wsize`, `sync`, `nconnect`, `sec`, `seal` …
    pub name: String,
    /// Its value.
    pub value: String,
    /// Who said so.
    pub source: Source,
}

/// One copy of one file set from one place to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rung {
    /// The way of the data.
    pub direction: Direction,
    /// Where the data comes from.
    pub from: Place,
    /// Where it goes.
    pub to: Place,
    /// Which files.
    pub files: FileSet,
    /// What came out.
    pub result: Outcome<Copied>,
    /// What the interfaces of both ends counted meanwhile; none where the copy did not begin.
    #[serde(default)]
    pub counters: Option<Box<PhaseCounters>>,
}

/// An end of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Made up in memory, or thrown away.
    Memory,
    /// A file in the named directory.
    Disk,
}

/// Which files are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileSet {
    /// One large file: the rate is what counts.
    Large,
    /// Many small files: the time for each is what counts.
    Small,
}

/// What one copy gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Copied {
    /// The number of files.
    pub files: u32,
    /// All their bytes.
    pub bytes: ByteSize,
    /// The time, until the last byte was handed over for good.
    pub elapsed_us: Elapsed,
    /// Bytes over time, the steady part where there is one.
    pub bytes_per_s: ByteRate,
    /// The series.
    pub bins: Bins,
    /// The mean time of one file, for small files.
    pub per_file_us: Option<Elapsed>,
    /// The bytes whose content was compared with what was written.
    pub verified_bytes: Outcome<ByteSize>,
    /// The PC's CPU meanwhile.
    pub cpu_pc: Outcome<CpuWindow>,
    /// The NAS's CPU meanwhile.
    pub cpu_nas: Outcome<CpuWindow>,
}
