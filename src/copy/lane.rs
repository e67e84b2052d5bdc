//! The one seam between a copy and the way it is done.

use std::time::Duration;

use crate::model::copy::{Copied, FileSet, LaneFact, LaneKind, Place};
use crate::model::{Direction, Outcome, Source};
use crate::sys::{Progress, Stop};

/// A way of copying files to and from a NAS. Calls block; they belong on a thread of their own.
pub trait LaneDriver: Send {
    /// Which kind of lane.
    fn kind(&self) -> LaneKind;

    /// Connects or looks at the mount, and makes a place for the files. The error is one sentence for the user.
    fn open(&mut self, stop: &Stop) -> Result<Opened, String>;

    /// The copies that this lane can do, in the order in which they must run: an upload before the download that reads it back.
    fn rungs(&self) -> Vec<RungPlan>;

    /// Does one copy within `budget` and about a second for closing. The CPU windows are left for the caller.
    fn run(&mut self, rung: &RungPlan, budget: Duration, stop: &Stop, progress: &Progress) -> Outcome<Copied>;

    /// What is known by now, the facts of `open` among them.
    fn facts(&self) -> Vec<LaneFact>;

    /// The processes that work for this lane outside of this one, so that their CPU time can be told apart.
    fn child_pids(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Removes the files and disconnects. Dropping the driver does the same.
    fn close(&mut self);
}

/// What opening a lane showed.
#[derive(Clone, Debug, PartialEq)]
pub struct Opened {
    /// The protocol, such as `smb 3.1.1` or `ssh`.
    pub protocol: Outcome<String>,
    /// What was negotiated.
    pub facts: Vec<LaneFact>,
}

/// One copy that is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RungPlan {
    /// The way of the data.
    pub direction: Direction,
    /// Where the data comes from.
    pub from: Place,
    /// Where it goes.
    pub to: Place,
    /// Which files.
    pub files: FileSet,
}

impl RungPlan {
    /// The copies between this PC's memory and `nas`: large up, large down, small up, small down.
    pub fn with_memory(nas: Place) -> Vec<Self> {
        [FileSet::Large, FileSet::Small]
            .into_iter()
            .flat_map(|files| {
                [
                    Self { direction: Direction::Upload, from: Place::Memory, to: nas, files },
                    Self { direction: Direction::Download, from: nas, to: Place::Memory, files },
                ]
            })
            .collect()
    }
}

/// The name of the fact that holds the address of a lane's server.
pub const SERVER_ADDRESS: &str = "server_address";

/// A fact, shortly written.
pub(super) fn fact(name: &str, value: impl Into<String>, source: Source) -> LaneFact {
    LaneFact { name: name.to_owned(), value: value.into(), source }
}

/// The reason of everything that ended because the user asked for it.
pub(super) const STOPPED: &str = "the run was stopped before this copy was done";
