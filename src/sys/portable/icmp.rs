//! ICMP echo, for which no portable socket forbids fragments: refused with `Unsupported`, and the caller does without.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::udp::SocketReport;
pub use crate::sys::report::EchoArrival;

/// A socket for ICMP echo; this system has none whose packets have an exact size.
#[derive(Debug)]
pub struct EchoSocket(std::convert::Infallible);

impl EchoSocket {
    /// A ping socket for the protocol of `peer`.
    ///
    /// # Errors
    /// Always `Unsupported` here.
    pub fn ping(_peer: IpAddr) -> io::Result<Self> {
        let text = "this system offers no portable way to send ICMP packets that may not be fragmented";
        Err(io::Error::new(io::ErrorKind::Unsupported, text))
    }

    /// A raw socket for the protocol of `peer`.
    ///
    /// # Errors
    /// Always `Unsupported` here.
    pub fn raw(peer: IpAddr) -> io::Result<Self> {
        Self::ping(peer)
    }

    /// The identifier of its requests.
    pub const fn identifier(&self) -> Option<u16> {
        match self.0 {}
    }

    /// Whether what arrives begins with the header of IPv4.
    pub const fn has_header(&self) -> bool {
        match self.0 {}
    }

    /// Sends one ICMP message.
    ///
    /// # Errors
    /// None, since no such socket exists here.
    pub const fn send(&self, _message: &[u8], _peer: SocketAddr) -> io::Result<()> {
        match self.0 {}
    }

    /// Waits for a message.
    ///
    /// # Errors
    /// None, since no such socket exists here.
    pub const fn receive(&self, _buffer: &mut [u8], _patience: Duration) -> io::Result<EchoArrival> {
        match self.0 {}
    }

    /// Takes the oldest report that the system kept.
    ///
    /// # Errors
    /// None, since no such socket exists here.
    pub const fn next_report(&self) -> io::Result<Option<SocketReport>> {
        match self.0 {}
    }
}
