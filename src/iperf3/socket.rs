//! The sockets of a test as its parameters ask for them.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::model::throughput::{PassOptions, SocketFacts};
use crate::sys;
use crate::throughput::{self, SocketSpec};
use crate::units::{BitRate, ByteSize};

/// What is asked of the data sockets; everything absent is left to the system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// The congestion control by the kernel's name (`-C`).
    pub congestion: Option<String>,
    /// Send and receive buffer in bytes (`-w`).
    pub window_bytes: Option<u32>,
    /// The largest segment in bytes (`-M`).
    pub mss_bytes: Option<u32>,
    /// The whole type-of-service byte (`-S`; a code point of `--dscp` is its upper six bits).
    pub tos: Option<u8>,
    /// No waiting for full segments (`-N`).
    pub no_delay: bool,
    /// The rate that the kernel paces each stream to (`--fq-rate`).
    pub pacing_bps: Option<BitRate>,
}

impl Ask {
    /// Sets everything on a TCP socket, best before it connects or listens (connections inherit it); refusals are told by
    /// [`Ask::facts`], since a test with an ordinary socket is better than none.
    pub fn apply_tcp(&self, socket: &Socket) -> Vec<String> {
        let mut refused = self.apply_any(socket);
        let mut note = |what: &str, done: io::Result<()>| note(&mut refused, what, done);
        if let Some(bytes) = self.mss_bytes {
            note(&format!("A segment size of {bytes} bytes"), sys::tcp::set_max_segment(socket, bytes));
        }
        if self.no_delay {
            note("Sending small segments at once", socket.set_tcp_nodelay(true));
        }
        if let Some(name) = &self.congestion
            && sys::tcp::congestion(socket).ok().as_ref() != Some(name)
        {
            note(&format!("The congestion control {name}"), sys::tcp::set_congestion(socket, name));
        }
        refused
    }

    /// Sets on a UDP socket what concerns one: buffers and the type-of-service byte.
    pub fn apply_udp(&self, socket: &Socket) -> Vec<String> {
        self.apply_any(socket)
    }

    fn apply_any(&self, socket: &Socket) -> Vec<String> {
        let mut refused = Vec::new();
        let mut note = |what: &str, done: io::Result<()>| note(&mut refused, what, done);
        if let Some(bytes) = self.window_bytes {
            note(&format!("A send buffer of {bytes} bytes"), socket.set_send_buffer_size(bytes as usize));
            note(&format!("A receive buffer of {bytes} bytes"), socket.set_recv_buffer_size(bytes as usize));
        }
        if let Some(tos) = self.tos {
            note(&format!("The type-of-service byte {tos}"), set_tos(socket, tos));
        }
        refused
    }

    /// What the system granted, for the report: `sends` says which buffer counts.
    pub fn facts(&self, socket: &Socket, sends: bool, refused: Vec<String>) -> SocketFacts {
        let buffer = || if sends { socket.send_buffer_size() } else { socket.recv_buffer_size() };
        SocketFacts {
            buffer_bytes: self.window_bytes.and_then(|_| buffer().ok()).map(|bytes| ByteSize(bytes as u64)),
            // Whether the kernel really paces is not asked back; the program paces as well.
            pacing_bps: None,
            dscp: self.tos.map(|tos| tos >> 2),
            refused,
        }
    }
}

fn note(refused: &mut Vec<String>, what: &str, done: io::Result<()>) {
    if let Err(error) = done {
        refused.push(format!("{what} was refused: {error}."));
    }
}

#[cfg(unix)]
fn set_tos(socket: &Socket, tos: u8) -> io::Result<()> {
    // Asked of its address, as not every system tells a socket's family.
    if socket.local_addr()?.domain() == Domain::IPV6 {
        // An IPv4 peer of a socket for both families needs the other option; where it is refused, it is not needed.
        let _ = socket.set_tos_v4(tos.into());
        socket.set_tclass_v6(tos.into())
    } else {
        socket.set_tos_v4(tos.into())
    }
}

#[cfg(not(unix))]
fn set_tos(socket: &Socket, tos: u8) -> io::Result<()> {
    socket.set_tos_v4(tos.into())
}

/// Gives a socket this end's address, where one is named.
///
/// # Errors
/// The system's word: an address of another host or family.
pub fn bind(socket: &Socket, own: Option<IpAddr>) -> io::Result<()> {
    own.map_or(Ok(()), |own| socket.bind(&SocketAddr::new(own, 0).into()))
}

/// Opens a data connection from the address `own` (none leaves it to the route), everything of `ask` set before the handshake; with
/// it what was refused.
///
/// # Errors
/// Refused, unreachable, or not answered within `timeout`; an address that is not this host's.
pub fn open_tcp(address: SocketAddr, own: Option<IpAddr>, ask: &Ask, timeout: Duration) -> io::Result<(TcpStream, Vec<String>)> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    let refused = ask.apply_tcp(&socket);
    bind(&socket, own)?;
    socket.connect_timeout(&address.into(), timeout)?;
    let stream = socket.into();
    pace(&stream, ask);
    Ok((stream, refused))
}

/// Has the kernel pace a connection, if that is asked for and this system can.
pub fn pace(stream: &TcpStream, ask: &Ask) {
    if ask.pacing_bps.is_some() {
        let options = PassOptions { pacing_bps: ask.pacing_bps, ..PassOptions::default() };
        throughput::adopt(stream, &SocketSpec { options, ..SocketSpec::default() });
    }
}
