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

/// Sets the highest rate in bytes a second that the kernel sends at.
///
/// # Errors
/// Always `Unsupported` here.
pub fn set_pacing(_socket: &Socket, _bytes_per_second: u64) -> io::Result<()> {
    Err(unsupported("pacing of a socket"))
}

/// The highest rate in bytes a second that the kernel sends at; never a limit here.
///
/// # Errors
/// Always `Unsupported` here.
pub fn pacing(_socket: &Socket) -> io::Result<Option<u64>> {
    Err(unsupported("pacing of a socket"))
}

/// Sets the differentiated services code point (0 to 63) of what a socket sends.
///
/// # Errors
/// Those of `setsockopt`; `Unsupported` over IPv6 and on systems that are not Unix (Windows leaves it to its own policies).
pub fn set_dscp(socket: &Socket, dscp: u8) -> io::Result<()> {
    #[cfg(all(unix, not(any(target_os = "redox", target_os = "solaris", target_os = "haiku"))))]
    if socket.local_addr()?.is_ipv4() {
        return socket.set_tos_v4(u32::from(dscp) << 2);
    }
    let _ = (socket, dscp);
    Err(unsupported("a code point for what a socket sends"))
}

/// The differentiated services code point of what a socket sends.
///
/// # Errors
/// Those of `getsockopt`; `Unsupported` where it cannot be set.
pub fn dscp(socket: &Socket) -> io::Result<u8> {
    #[cfg(all(unix, not(any(target_os = "redox", target_os = "solaris", target_os = "haiku"))))]
    if socket.local_addr()?.is_ipv4() {
        return Ok(u8::try_from(socket.tos_v4()? >> 2 & 63).unwrap_or_default());
    }
    let _ = socket;
    Err(unsupported("a code point for what a socket sends"))
}

/// What a socket's buffer holds of what was asked for; only Linux doubles the figure, whichever side of the seam asks it.
pub const BUFFER_FACTOR: u64 = if cfg!(target_os = "linux") { 2 } else { 1 };

/// Bytes that lie in the kernel's memory, to be sent from there; this system has none.
#[derive(Debug)]
pub struct Content(std::convert::Infallible);

/// How [`Content::give`] hands bytes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// With a copy into the socket.
    Copied,
    /// The socket refers to the pages and tells when it no longer does.
    Lent,
    /// The socket refers to a file's pages.
    FromFile,
}

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

    /// Gives a socket bytes from `offset` on.
    ///
    /// # Errors
    /// None, since no such content exists here.
    pub const fn give(&self, _socket: &Socket, _how: Given, _offset: usize, _limit: usize) -> io::Result<usize> {
        match self.0 {}
    }
}

/// Pages of a [`Content`] that a pipe refers to; this system has none.
#[derive(Debug)]
pub struct Kept(std::convert::Infallible);

impl Kept {
    /// Has a pipe refer to the pages of `content`.
    ///
    /// # Errors
    /// None, since no such content exists here.
    pub const fn new(content: &Content, _most: usize) -> io::Result<Self> {
        match content.0 {}
    }

    /// Gives a socket bytes.
    ///
    /// # Errors
    /// None, since nothing is kept here.
    pub const fn give(&mut self, _socket: &Socket, _limit: usize) -> io::Result<usize> {
        match self.0 {}
    }
}

/// Allows a socket to refer to lent pages.
///
/// # Errors
/// Always `Unsupported` here.
pub fn set_zerocopy(_socket: &Socket) -> io::Result<()> {
    Err(unsupported("sending without a copy"))
}

/// What a socket said of lent pages since the last time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notices {
    /// Calls whose pages it no longer refers to.
    pub calls: u32,
    /// Those among them whose bytes the kernel copied after all.
    pub copied: u32,
}

/// Takes the notices of lent pages; there are none here.
pub const fn notices(_socket: &Socket) -> Notices {
    Notices { calls: 0, copied: 0 }
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
