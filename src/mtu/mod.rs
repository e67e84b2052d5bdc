//! The largest packet that passes from one end to the other, to the byte, and for each direction alone.
//!
//! Two ends cooperate over UDP: one sends probes that may not be fragmented, the other acknowledges each that arrives
//! by a small datagram, so the way back never blurs the result. `search` decides what to send and what the answers
//! prove (pure), `locate` where on the path the limit lies (pure), `packet` turns bytes into meaning (pure), `listener`, `endpoint` and `measure` own sockets, threads
//! and the clock.
//!
//! The agent has a [`Listener`] and expects a token; the client connects an [`Endpoint`] with it; then either end
//! searches towards the other, and both answer.

mod echo;
mod endpoint;
mod guest;
mod icmp;
mod listener;
mod locate;
mod measure;
mod packet;
mod place;
mod search;
mod service;

#[cfg(test)]
mod tests;

pub use echo::echo;
pub use endpoint::Endpoint;
pub use guest::{await_hello, say_hello};
pub use listener::{Expected, Listener};
pub use packet::Token;
pub use service::{FILE_SERVICES, services, tcp_end};
