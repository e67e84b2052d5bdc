//! How a receiving end takes bytes.

use std::io::{self, Read as _};
use std::net::TcpStream;
use std::time::Duration;

use socket2::SockRef;

use super::low_water::LowWater;
use crate::sys;

/// The most that one call takes where nothing is copied.
const DISCARD: usize = 1 << 20;

/// The most that one call takes where bytes are copied: what iperf3 and most programs use, and it stays in the cache.
const READ: usize = 128 * 1024;

/// How one thread takes bytes.
pub(super) enum Hands {
    /// In the kernel, with a low-water mark if the socket takes one.
    Discard(Option<LowWater>),
    /// Into a buffer.
    Read(Vec<u8>),
}

impl Hands {
    pub(super) fn new(copies: bool) -> Self {
        if copies { Self::Read(vec![0; READ]) } else { Self::Discard(Some(LowWater::new())) }
    }

    pub(super) fn take(&mut self, stream: &TcpStream, socket: &SockRef<'_>) -> io::Result<usize> {
        if let Self::Discard(_) = self {
            match sys::tcp::receive_discarding(socket, DISCARD) {
                Err(error) if error.kind() == io::ErrorKind::Unsupported => *self = Self::Read(vec![0; READ]),
                done => return done,
            }
        }
        match self {
            Self::Discard(_) => Err(io::ErrorKind::Interrupted.into()),
            Self::Read(buffer) => (&*stream).read(buffer),
        }
    }

    /// Sets the low-water mark anew when the rate asks for it.
    pub(super) fn review(&mut self, socket: &SockRef<'_>, now: Duration, bytes: u64) {
        let Self::Discard(water) = self else { return };
        let mark = water.as_mut().and_then(|w| w.review(now, bytes, || socket.recv_buffer_size().map_or(0, |size| size as u64)));
        if mark.is_some_and(|mark| sys::tcp::set_receive_low_water(socket, mark).is_err()) {
            *water = None;
        }
    }

    pub(super) const fn method(&self) -> &'static str {
        match self {
            Self::Discard(Some(water)) if water.is_raised() => "recv-trunc, low-water mark",
            Self::Discard(_) => "recv-trunc",
            Self::Read(_) => "read",
        }
    }
}
