//! TCP sockets as every system has them: what lies beyond is refused with `Unsupported`, and the caller does without.

use std::io;
use std::time::Duration;

use socket2::Socket;

fn unsupported(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("this system does not offer {what}"))
}

/// The congestion control of a socket by its name.
///
/// # Errors
/// Always `Unsupported` here.
pub fn congestion(_socket: &Socket) -> io::Result<String> {
    Err(unsupported("the name of a socket's congestion control"))
}

/// Sets the congestion control of a socket.
///
/// # Errors
/// Always `Unsupported` here.
pub fn set_congestion(_socket: &Socket, _name: &str) -> io::Result<()> {
    Err(unsupported("a choice of a socket's congestion control"))
}

/// Sets the largest segment in bytes (`TCP_MAXSEG`), to be set before connecting.
///
/// # Errors
/// Those of `setsockopt`; `Unsupported` on systems that are not Unix.
pub fn set_max_segment(socket: &Socket, bytes: u32) -> io::Result<()> {
    #[cfg(unix)]
    return socket.set_tcp_mss(bytes);
    #[cfg(not(unix))]
    {
        let _ = (socket, bytes);
        Err(unsupported("a limit of a socket's segment size"))
    }
}

/// Sends every segment with the word not to fragment it.
///
/// # Errors
/// Always `Unsupported` here.
pub fn forbid_fragments(_socket: &Socket) -> io::Result<()> {
    Err(unsupported("a word not to fragment segments"))
}

/// Sets how many bytes a reader waits for.
///
/// # Errors
/// Always `Unsupported` here.
pub fn set_receive_low_water(_socket: &Socket, _bytes: u32) -> io::Result<()> {
    Err(unsupported("a low-water mark of a socket"))
}

/// Takes bytes from a TCP socket and throws them away without copying them.
///
/// # Errors
/// Always `Unsupported` here; nothing is taken.
pub fn receive_discarding(_socket: &Socket, _limit: usize) -> io::Result<usize> {
    Err(unsupported("receiving without a copy"))
}

/// Bytes that lie in the kernel's memory, to be sent from there; this system has none.
#[derive(Debug)]
pub struct Content(std::convert::Infallible);

impl Content {
    /// Lays `bytes` into the kernel's memory.
    ///
    /// # Errors
    /// Always `Unsupported` here.
    pub fn new(_bytes: &[u8]) -> io::Result<Self> {
        Err(unsupported("sending without a copy"))
    }

    /// The number of bytes.
    pub const fn len(&self) -> usize {
        match self.0 {}
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        match self.0 {}
    }

    /// Sends bytes from `offset` on without copying them.
    ///
    /// # Errors
    /// None, since no such content exists here.
    pub const fn send(&self, _socket: &Socket, _offset: usize, _limit: usize) -> io::Result<usize> {
        match self.0 {}
    }
}

/// The kernel's figures of a socket.
///
/// # Errors
/// Always `Unsupported` here.
pub fn info(_socket: &Socket) -> io::Result<Vec<u8>> {
    Err(unsupported("figures of a TCP connection"))
}

/// The processor time that the calling thread has used so far; not told here.
pub const fn thread_cpu() -> Option<Duration> {
    None
}
