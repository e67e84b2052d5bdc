//! One file a step, both ends in it.

pub mod contrast;
pub mod copy;
pub mod cpu;
pub mod iperf3;
pub mod link;
pub mod mtu;
pub mod storage;
pub mod sweep;
pub mod throughput;
pub mod together;
pub mod udp;
