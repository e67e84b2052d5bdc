//! The seam to the operating system, and the only place with `unsafe`.
//!
//! `linux` and `portable` hold the same functions. `portable` uses what `std` and `socket2` offer
//! everywhere and says of the rest that this system does not tell; the feature `portable` chooses it
//! on Linux too, so that it is compiled and tested there.

#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod linux;
#[cfg(all(target_os = "linux", not(feature = "portable")))]
use linux as imp;

#[cfg(not(all(target_os = "linux", not(feature = "portable"))))]
mod portable;
#[cfg(not(all(target_os = "linux", not(feature = "portable"))))]
use portable as imp;

mod accept;
pub mod ports;
pub mod program;
mod progress;
mod report;
mod scratch;
mod stop;

pub use accept::not_taken;
pub use progress::Progress;
pub use report::Arrival;
pub use scratch::{PREFIX, Room, Scratch, Swept, sweep};
pub use stop::Stop;

pub use imp::{cpu, datagram, file, host, icmp, klog, net, packet, perf, tcp, udp};
