//! Disks without a network: what lies under a directory, and how fast it writes and reads.
//!
//! The rhythm: [`mounts`], [`mdstat`], [`series`] and [`plan`] are pure; [`tree`] and [`counters`] read
//! `/sys` and `/proc` under a given root; [`device`] says what is under a path; [`workers`] move the
//! blocks and own the clock; [`runner`] puts one test together.

pub mod counters;
pub mod device;
pub mod mdstat;
pub mod mounts;
pub mod plan;
pub mod runner;
pub mod series;
pub mod tree;
pub mod workers;

pub use crate::sys::Progress;
pub use device::describe;
pub use plan::allowance;
pub use runner::{CpuWatch, RunSpec, Spec, Written, read, run, write};
