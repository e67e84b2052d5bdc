//! Copies of files: what a user's copy really does, lane by lane.
//!
//! The rhythm: `fileset` says which files, `mounts` and `ssh::trace` read what was negotiated (both
//! pure), and the lanes do the I/O. Every lane is a [`LaneDriver`], the one place where the kind of
//! lane is decided at run time; our own TCP (`raw`) has two ends and is led by the session instead.
//!
//! Dirty data is bounded while a file is written (`sink`), so that a rate is the rate of the disk or
//! the share and not of this host's memory; a file that is read back is dropped from this host's
//! cache first, and where the kernel's counters show that it came from there all the same, there is
//! no rate (`place`).

pub mod fileset;
pub mod lane;

pub mod mounted;
pub mod mounts;
mod place;
pub mod raw;
mod series;
mod sink;
pub mod ssh;

pub use crate::sys::Progress;
pub use fileset::CopySpec;
pub use lane::{LaneDriver, Opened, RungPlan, SERVER_ADDRESS};

pub use mounted::Mounted;
pub use raw::{RawEnd, RawSpec, Sink, Source, receive, send};

pub use ssh::{Ssh, SshOptions, Target};
