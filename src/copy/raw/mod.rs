//! The raw lane: our own TCP, both ends. The ideal protocol, against which the others are held.
//!
//! The sender stops when its time is over and half-closes; the receiver counts what it really has, after
//! writing. Calls block, with a look at the stop flag at least every 100 ms.

mod receive;
mod send;
mod spec;
#[cfg(test)]
mod tests;

pub use receive::receive;
pub use send::send;
pub use spec::{RawEnd, RawSpec, Sink, Source};
