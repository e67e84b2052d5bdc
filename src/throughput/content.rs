//! What a sending end hands over, and how.

use std::io::{self, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use socket2::SockRef;

use crate::pattern::Pattern;
use crate::sys;

/// The most that one call hands over with a copy: fewer calls gain nothing, and the buffer stays in the cache.
const WRITE: usize = 128 * 1024;

/// The most that one call hands over without a copy.
const MOST: usize = 1 << 20;

/// The least that one call hands over. `sendfile` moves this much at a time and waits for room anew each time, so on a slow
/// path a larger call would outlive the duration.
pub(super) const LEAST: usize = 64 * 1024;

/// A call that took longer is followed by one of half the size, and one that took less than a quarter of this by a double one.
const CALL: Duration = Duration::from_millis(20);

/// The random bytes that are sent again and again: beyond the window of the compressors that VPNs use (64 KiB of LZ4).
pub(super) const CONTENT: usize = 1 << 20;

/// The size of the next call after one of `chunk` bytes that took so long.
pub(super) fn next_chunk(chunk: usize, took: Duration) -> usize {
    if took > CALL {
        (chunk / 2).max(LEAST)
    } else if took < CALL / 4 {
        (chunk * 2).min(MOST)
    } else {
        chunk
    }
}

/// What is sent, and from where.
pub(super) enum Content {
    /// From the kernel's memory, which all streams share.
    Kernel(sys::tcp::Content),
    /// From the program's.
    Own(Vec<u8>),
}

impl Content {
    pub(super) fn new(copies: bool) -> Self {
        // The seed only has to differ from the last run's; a system without random numbers still measures.
        let seed = getrandom::u64().unwrap_or(0x7765_616b);
        let mut bytes = vec![0; CONTENT];
        Pattern::new(seed).fill(0, &mut bytes);
        match if copies { Err(io::ErrorKind::Unsupported.into()) } else { sys::tcp::Content::new(&bytes) } {
            Ok(content) => Self::Kernel(content),
            Err(_) => Self::Own(bytes),
        }
    }

    pub(super) fn send(&self, stream: &TcpStream, socket: &SockRef<'_>, offset: usize, most: usize) -> io::Result<usize> {
        match self {
            Self::Kernel(content) => content.send(socket, offset, most),
            Self::Own(bytes) => {
                let rest = bytes.get(offset..).unwrap_or_default();
                (&*stream).write(rest.get(..most.min(WRITE)).unwrap_or(rest))
            }
        }
    }

    pub(super) const fn method(&self) -> &'static str {
        match self {
            Self::Kernel(_) => "sendfile",
            Self::Own(_) => "send",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_path_gets_small_calls_and_a_fast_one_large_calls() {
        for (bytes_a_second, fits) in [(1e5, 64 << 10), (1.25e6, 64 << 10), (1.25e8, 1 << 20), (4e9, 1 << 20)] {
            let mut chunk = LEAST;
            for _ in 0..50 {
                chunk = next_chunk(chunk, Duration::from_secs_f64(chunk as f64 / bytes_a_second));
            }
            assert_eq!(chunk, fits, "{bytes_a_second} B/s");
        }
    }
}
