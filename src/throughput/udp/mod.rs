//! Datagrams at chosen rates: how many are lost, late, doubled or out of order, and from which rate on.
//!
//! | part | what it does |
//! |---|---|
//! | `plan` | pure: which rate to try next, and when the search is over |
//! | `pace` | pure: an absolute schedule of bursts |
//! | `packet` | pure: the beginning of a datagram |
//! | `track`, `delay` | pure: sequence numbers to losses, runs and copies; times of two clocks to jitter and queue |
//! | `sender`, `receiver` | the shell: one OS thread an end, a connected socket, many datagrams with one call |
//! | `assemble` | pure: a pass of what both ends saw |
//!
//! A pass: the receiving end makes a [`Receiver`] and runs it, the sending end calls [`send()`], and says how many datagrams its
//! kernel took; [`assemble()`] makes a pass of both halves, and [`Search`] tells the next rate. A datagram that the receiver's own
//! kernel dropped was brought by the network, so both are told apart wherever the kernel tells its drops.

mod assemble;
mod delay;
mod pace;
mod packet;
mod plan;
mod receiver;
mod sender;
mod track;

pub use assemble::{assemble, direction};
pub use packet::HEAD;
pub use plan::{FASTEST, LONGEST, LOSS_COUNTS, Search};
pub use receiver::{Finish, ReceiveSpec, Receiver};
pub use sender::{SendSpec, send};

#[cfg(test)]
mod tests;
