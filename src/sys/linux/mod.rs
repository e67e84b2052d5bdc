//! The `linux` side of the seam.

mod content;
pub mod cpu;
pub mod datagram;
pub mod file;
pub mod host;
pub mod icmp;
pub mod klog;
pub mod net;
pub mod packet;
pub mod perf;
mod pipe;
pub(super) mod ports;
pub mod tcp;
pub mod udp;
