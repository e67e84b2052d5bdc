//! UDP sockets as std has them: it does not tell who refused a datagram, nor can it forbid fragments.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

pub use crate::sys::report::{SocketReport, TooLarge, TooLargeBy};

fn unsupported<T>(what: &str) -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::Unsupported, format!("this system offers no portable way to {what}")))
}

/// Sends every datagram whole or not at all: not possible here.
pub fn forbid_fragments(_socket: &UdpSocket) -> io::Result<()> {
    unsupported("forbid fragments")
}

/// Has the system keep the errors that concern the socket: not possible here.
pub fn keep_reports(_socket: &UdpSocket) -> io::Result<()> {
    unsupported("read ICMP messages of a socket")
}

/// Has the system say to which address a datagram came: not possible here.
pub fn report_destination(_socket: &UdpSocket) -> io::Result<()> {
    unsupported("learn the destination of a datagram")
}

/// Whether sending failed because a queue of this host was full; not told here.
pub fn is_queue_full(_error: &io::Error) -> bool {
    false
}

/// Whether sending failed because the datagram was too large; not told here.
pub fn is_too_large(_error: &io::Error) -> bool {
    false
}

/// Sends a datagram with a TTL of its own: not possible here, and nobody would tell where it ended.
pub fn send_with_ttl(_socket: &UdpSocket, _bytes: &[u8], _ttl: u8) -> io::Result<usize> {
    unsupported("limit the TTL of one datagram")
}

/// The MTU of the route of a connected socket: not told here.
pub fn route_mtu(_socket: &UdpSocket) -> io::Result<u32> {
    unsupported("learn the MTU of a route")
}

/// Takes the oldest report that the system kept for the socket: there is never one.
pub fn next_report(_socket: &UdpSocket) -> io::Result<Option<SocketReport>> {
    Ok(None)
}

/// Receives one datagram: its length, its sender, and no word about the address to which it came.
pub fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr, Option<IpAddr>)> {
    socket.recv_from(buffer).map(|(length, sender)| (length, sender, None))
}
