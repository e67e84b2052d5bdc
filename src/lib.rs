//! weaklink finds the weak link between a PC and a NAS.

pub mod cli;
pub mod copy;
pub mod cpu;
pub mod link;
pub mod model;
pub mod mtu;
pub mod pattern;
pub mod report;
pub mod session;
pub mod stats;
pub mod storage;
pub mod sys;
pub mod throughput;
pub mod units;
pub mod verdict;
pub mod wire;
