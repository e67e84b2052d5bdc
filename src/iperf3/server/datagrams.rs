//! The one UDP port of all tests: for each datagram that opens a stream a socket that is connected to its sender.
//!
//! The listening socket stays; the new one is bound to the address that the client sent to and the same port, and connected.
//! From then on the system gives it what comes from that client. Between both steps datagrams of others may land in it; those
//! that open streams are handled in their turn.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use super::house::{House, UdpCaller};
use super::plain;
use crate::iperf3::udp;

/// How often the word to end is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// The most datagrams of others that are looked through in a new socket.
const STRAYS: usize = 256;

/// Who wants to open a stream, and the answer to that.
type Opening = (SocketAddr, [u8; 4]);

/// Listens for the datagrams that open streams.
pub(super) fn listen(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = shared(address)?;
    socket.set_read_timeout(Some(LOOK))?;
    Ok(socket)
}

/// A socket on a port that others of ours have too.
fn shared(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Opens streams until the end.
pub(super) fn dispatch(socket: &UdpSocket, house: &House) {
    // What opens a stream has four bytes; one more tells it from what is longer.
    let mut buffer = [0; 5];
    let mut waiting = VecDeque::new();
    while !house.stop().is_set() {
        match socket.recv_from(&mut buffer) {
            Ok((length, from)) => {
                let answer = buffer.get(..length).and_then(udp::reply_to);
                waiting.extend(answer.map(|answer| (plain(from), answer)));
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            // Windows says of a datagram that was too long for the buffer that it was; and ICMP may say that a client is gone.
            Err(_) => std::thread::sleep(LOOK / 20),
        }
        while let Some((from, answer)) = waiting.pop_front() {
            let Some(caller) = house.caller(from.ip()) else { continue };
            if let Ok((stream, strays)) = open(&caller, house.port(), from) {
                waiting.extend(strays);
                // Answered before it is handed over: after the last stream the test begins.
                if stream.send(&answer).is_ok() {
                    let _ = caller.streams.try_send((stream, answer));
                }
            }
        }
    }
}

/// A socket for one stream, with the openings of others that landed in it.
fn open(caller: &UdpCaller, port: u16, from: SocketAddr) -> io::Result<(UdpSocket, Vec<Opening>)> {
    let local = match plain(caller.local) {
        // Its scope, where it has one, is kept.
        SocketAddr::V6(mut v6) => {
            v6.set_port(port);
            SocketAddr::V6(v6)
        }
        SocketAddr::V4(v4) => SocketAddr::new(IpAddr::V4(*v4.ip()), port),
    };
    let socket = shared(local)?;
    let _ = udp::prepare(&socket2::SockRef::from(&socket), &caller.ask);
    socket.connect(from)?;
    socket.set_nonblocking(true)?;
    let mut buffer = [0; 5];
    let mut strays = Vec::new();
    for _ in 0..STRAYS {
        match socket.recv_from(&mut buffer) {
            Ok((length, other)) => {
                let (other, answer) = (plain(other), buffer.get(..length).and_then(udp::reply_to));
                strays.extend(answer.filter(|_| other != from).map(|answer| (other, answer)));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(_) => {}
        }
    }
    socket.set_nonblocking(false)?;
    Ok((socket, strays))
}
