//! The report document: plain data, no decisions, no I/O. All facts and results of a run live here.

pub mod copy;
pub mod counter;
pub mod cpu;
pub mod document;
pub mod finding;
pub mod flows;
pub mod host;
pub mod kernel;
pub mod lacp;
pub mod link;
pub mod link_event;
pub mod mtu;
pub mod nic;
pub mod outcome;
pub mod phase;
pub mod plan;
pub mod storage;
pub mod throughput;
pub mod together;
pub mod udp;

pub use document::Document;
pub use host::{Direction, Role};
pub use outcome::{Fact, Outcome, Source};
