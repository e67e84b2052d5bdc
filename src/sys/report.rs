//! What a system keeps for a UDP socket about datagrams that did not get through.

use std::net::IpAddr;
use std::time::Duration;

/// Who reported that a datagram was too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooLargeBy {
    /// This host: the packet does not fit its own interface.
    Host,
    /// A router at this address, by ICMP.
    Router(IpAddr),
}

/// A report that a datagram was too large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// Who said so.
    pub by: TooLargeBy,
    /// The MTU that it named, in bytes; a router may name anything, also zero.
    pub mtu: u32,
    /// The beginning of the datagram's payload, as far as it was quoted; possibly nothing.
    pub quoted: Vec<u8>,
}

/// What the kernel kept for a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketReport {
    /// A datagram was too large.
    TooLarge(TooLarge),
    /// A router dropped a datagram because its TTL was used up (ICMP time exceeded in transit).
    TimeExceeded {
        /// The router.
        router: IpAddr,
        /// The beginning of the datagram's payload, as far as it was quoted; possibly nothing.
        quoted: Vec<u8>,
    },
    /// Anything else, such as a closed port.
    Other,
}

/// An ICMP message as a socket for echo received it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoArrival {
    /// Its length in bytes, that of the IPv4 header included where the socket hands it over.
    pub length: usize,
    /// Who sent it.
    pub from: IpAddr,
    /// The largest of the fragments in which it came, in bytes with the IP header, if it came in fragments and the kernel says so.
    pub fragment: Option<u32>,
}

/// A datagram that arrived at a socket for many.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Its beginning at least.
    pub bytes: &'a [u8],
    /// Its whole length in bytes.
    pub length: usize,
    /// When the kernel took it from the network, since 1970 by the system's clock; none where it does not tell.
    pub at: Option<Duration>,
    /// How often the kernel had dropped something at this socket before; none where it does not tell, or never did.
    pub dropped: Option<u32>,
}
