//! UDP sockets as std has them: it does not tell who refused a datagram, nor can it forbid fragments.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use socket2::SockRef;

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

/// Sends a datagram of a connected socket that ends after `ttl` hops (IPv6: hop limit).
///
/// The socket's own limit is changed for the moment, so no other thread may send on the socket meanwhile. Nobody tells where a
/// datagram ended; whether it was answered shows what it reached.
pub fn send_with_ttl(socket: &UdpSocket, bytes: &[u8], ttl: u8) -> io::Result<usize> {
    let options = SockRef::from(socket);
    if socket.local_addr()?.is_ipv4() {
        let usual = options.ttl_v4()?;
        options.set_ttl_v4(ttl.into())?;
        let sent = socket.send(bytes);
        options.set_ttl_v4(usual).and(sent)
    } else {
        let usual = options.unicast_hops_v6()?;
        options.set_unicast_hops_v6(ttl.into())?;
        let sent = socket.send(bytes);
        options.set_unicast_hops_v6(usual).and(sent)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_with_a_ttl_of_its_own_leaves_the_sockets_own_as_it_was() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // Without IPv6 there is nothing to try.
            let Ok(here) = UdpSocket::bind(address) else { continue };
            let there = UdpSocket::bind(address).unwrap();
            there.connect(here.local_addr().unwrap()).unwrap();
            let options = SockRef::from(&there);
            let usual = || if address.starts_with('[') { options.unicast_hops_v6() } else { options.ttl_v4() };
            let before = usual().unwrap();
            assert_eq!(send_with_ttl(&there, b"word", 1).unwrap(), 4);
            let mut buffer = [0; 16];
            assert_eq!(receive(&here, &mut buffer).unwrap().0, 4);
            assert_eq!(usual().unwrap(), before, "{address}");
        }
    }
}
