//! The `portable` side of the seam.

pub mod cpu;
pub mod datagram;
pub mod file;
pub mod host;
pub mod icmp;
pub mod klog;
#[cfg(any(
    windows,
    target_os = "linux",
    target_os = "macos",
    target_os = "freebsd",
    target_os = "netbsd",
    target_os = "openbsd"
))]
mod list;
#[cfg(not(any(
    windows,
    target_os = "linux",
    target_os = "macos",
    target_os = "freebsd",
    target_os = "netbsd",
    target_os = "openbsd"
)))]
#[path = "no_list.rs"]
mod list;
pub mod net;
pub mod packet;
pub mod perf;
pub(super) mod ports;
pub mod tcp;
pub mod udp;
