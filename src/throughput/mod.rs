//! How much TCP moves from memory to memory: what the copy would reach if disks and protocols cost nothing.
//!
//! | part | what it does |
//! |---|---|
//! | `schedule`, `meter` | pure: when to look, and from what was seen to bins, the steady part and the goodput |
//! | `tcp_info` | pure: the kernel's `struct tcp_info`, of any kernel's length, to [`crate::model::throughput::TcpStats`] |
//! | `enough` | pure: whether the bins so far say enough |
//! | `series`, `shares`, `shape` | pure: the kernel's view bin by bin, what held the sender back, stalls, dips and drift |
//! | `socket` | opening and preparing the connections |
//! | `calibrate`, `low_water` | pure: which way of moving bytes is the cheapest here, and how many bytes a reader waits for |
//! | `content`, `hands` | how bytes are handed over and taken, by the way that was chosen |
//! | `sender`, `receiver` | the shell: one OS thread a stream, blocking sockets, no lock and no allocation while bytes move |
//!
//! A pass: the ends have N connections; the receiving end calls [`receive()`], the sending end [`send()`]; each gives its
//! half of the result, and [`assemble`] makes a pass of both. Goodput is what the receiving application read, never what
//! the sender handed over. On Linux neither end copies the bytes (`sendfile` from memory or a pipe that refers to the same pages
//! for good, `MSG_TRUNC`), so that the host is the limit as late as possible; with `copies` both do what ordinary programs do.

mod calibrate;
mod content;
mod enough;
mod hands;
mod low_water;
mod meter;
mod progress;
mod receiver;
mod schedule;
mod sender;
mod series;
mod shape;
mod shares;
mod socket;
mod tcp_info;
pub mod udp;
mod watch;

pub use crate::sys::Progress;
pub use meter::{BIN, Meter, assemble, goodput, steady};
pub use receiver::{ReceiveSpec, receive};
pub use schedule::Schedule;
pub use sender::{SendSpec, send};
pub use series::Recorder;
pub use socket::{CAPACITY_CONGESTION, End, SocketSpec, adopt, connect, facts, prepare};
pub use tcp_info::decode;

#[cfg(test)]
mod tests;
