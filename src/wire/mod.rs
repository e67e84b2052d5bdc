//! The control protocol: bytes to messages and back, without sockets.
//!
//! `hello` is the plain greeting of every TCP connection, `frame` cuts messages into encrypted
//! packets, `message` holds what the two ends say to each other, `code` is the pairing code.

pub mod code;
pub mod frame;
pub mod hello;
pub mod message;

pub use code::PairingCode;
pub use message::{Reply, Request, Token};
