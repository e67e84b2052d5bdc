//! Datagrams one by one, as std has them; the system does not tell when they arrived nor what it dropped.

use std::io;
use std::net::UdpSocket;

use socket2::SockRef;

use crate::sys::report::Arrival;

/// What a UDP datagram can carry by IPv4: 65,535 − 20 − 8 bytes.
const MOST_BYTES: usize = 65_507;

/// The datagrams of one burst; as many as elsewhere.
const MOST: usize = 64;

/// Datagrams of one size on their way out; the buffer is written again and again.
#[derive(Debug)]
pub struct Outgoing {
    datagram: usize,
    buffer: Vec<u8>,
}

impl Outgoing {
    /// Room for a burst of datagrams of `datagram` bytes (1 to 65,507), with `content` in it, again and again.
    pub fn new(_socket: &UdpSocket, datagram: usize, content: &[u8]) -> Self {
        let datagram = datagram.clamp(1, MOST_BYTES);
        let most = (MOST_BYTES / datagram).clamp(1, MOST);
        let buffer = content.iter().copied().cycle().chain(std::iter::repeat(0)).take(most * datagram).collect();
        Self { datagram, buffer }
    }

    /// Gives GSO up: nothing to do here.
    pub fn without_segments(&mut self, _socket: &UdpSocket) {}

    /// The most datagrams that one call takes.
    pub fn most(&self) -> usize {
        self.buffer.len() / self.datagram
    }

    /// The content of the datagram at a place below [`Self::most`]; empty beyond.
    pub fn slot(&mut self, at: usize) -> &mut [u8] {
        let (from, to) = (at.saturating_mul(self.datagram), at.saturating_add(1).saturating_mul(self.datagram));
        self.buffer.get_mut(from..to).unwrap_or_default()
    }

    /// How datagrams go out.
    pub const fn method(&self) -> &'static str {
        "send"
    }

    /// Hands the first `count` datagrams to the system; gives how many it took, at least one.
    ///
    /// Errors are the system's about the first.
    pub fn send(&mut self, socket: &UdpSocket, count: usize) -> io::Result<usize> {
        let count = count.clamp(1, self.most());
        let mut sent = 0;
        for datagram in self.buffer.chunks(self.datagram).take(count) {
            match socket.send(datagram) {
                Err(error) if sent == 0 => return Err(error),
                Err(_) => break,
                Ok(_) => sent += 1,
            }
        }
        Ok(sent)
    }
}

/// Datagrams on their way in.
#[derive(Debug)]
pub struct Incoming {
    buffer: Vec<u8>,
}

impl Incoming {
    /// Prepares to receive.
    pub fn new(_socket: &UdpSocket, _head: usize, _apart: bool) -> Self {
        Self { buffer: vec![0; 65_536] }
    }

    /// How datagrams are taken in.
    pub const fn method(&self) -> &'static str {
        "recv"
    }

    /// The most datagrams that came together so far: each comes by itself.
    pub const fn largest_bundle(&self) -> usize {
        1
    }

    /// Waits for a datagram as the socket's timeout says and shows it to `each`; gives how many.
    pub fn receive(&mut self, socket: &UdpSocket, each: &mut dyn FnMut(Arrival<'_>)) -> io::Result<usize> {
        let length = socket.recv(&mut self.buffer)?;
        each(Arrival { bytes: self.buffer.get(..length).unwrap_or_default(), length, at: None, dropped: None });
        Ok(1)
    }
}

/// What the system dropped at this socket: not told here.
pub fn drops(_socket: &UdpSocket) -> io::Result<u64> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system offers no portable way to learn what it dropped at a socket"))
}

/// Asks for a receive buffer of so many bytes; the system gives what it allows.
pub fn enlarge(socket: &UdpSocket, bytes: usize) {
    // Less room means more drops here.
    let _ = SockRef::from(socket).set_recv_buffer_size(bytes);
}

/// Has the system wake the calling thread when it asked for: nothing to do here.
pub fn sleep_precisely() {}
