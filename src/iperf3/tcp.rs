//! The loops of TCP streams: handing bytes to the kernel, and taking them.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use socket2::SockRef;

use super::pace::Pace;
use super::stream::{CALL_WAIT, LoopEnd, Shared, Way};
use crate::pattern::Pattern;
use crate::sys;

/// The random bytes that are sent again and again: beyond the window of the compressors that VPNs use (64 KiB of LZ4), and the largest
/// block that iperf3 allows.
const CONTENT: usize = 1 << 20;

/// The most that one call takes without a copy.
const DISCARD: usize = 1 << 20;

/// The most and the least that one call hands over without a copy, as in [`crate::throughput::send`]: `sendfile` waits for room anew
/// every 64 KiB, so on a slow path a large call would outlive the test.
const SENDFILE: (usize, usize) = (1 << 20, 64 * 1024);

/// A call that took longer is followed by one of half the size, and one that took less than a quarter of this by a double one.
const CALL: Duration = Duration::from_millis(20);

/// What is sent, and from where.
#[derive(Debug)]
pub(super) enum Content {
    /// From the kernel's memory, which all streams share.
    Kernel(sys::tcp::Content),
    /// From the program's; empty where nobody sends.
    Own(Vec<u8>),
}

impl Content {
    /// Random bytes where this end `sends`; in the program's memory where `copies` are to be made.
    pub(super) fn new(sends: bool, copies: bool) -> Self {
        if !sends {
            return Self::Own(Vec::new());
        }
        // The seed only has to differ from the last run's; a system without random numbers still measures.
        let seed = getrandom::u64().unwrap_or(0x7765_616b);
        let mut bytes = vec![0; CONTENT];
        Pattern::new(seed).fill(0, &mut bytes);
        match if copies { Err(io::ErrorKind::Unsupported.into()) } else { sys::tcp::Content::new(&bytes) } {
            Ok(content) => Self::Kernel(content),
            Err(_) => Self::Own(bytes),
        }
    }

    /// The bytes in the program's memory.
    pub(super) fn own(&self) -> &[u8] {
        match self {
            Self::Kernel(_) => &[],
            Self::Own(bytes) => bytes,
        }
    }

    fn send(&self, stream: &TcpStream, socket: &SockRef<'_>, offset: usize, most: usize) -> io::Result<usize> {
        match self {
            Self::Kernel(content) => content.give(socket, sys::tcp::Given::FromFile, offset, most),
            Self::Own(bytes) => {
                let rest = bytes.get(offset..).unwrap_or_default();
                (&*stream).write(rest.get(..most).unwrap_or(rest))
            }
        }
    }

    const fn method(&self) -> &'static str {
        match self {
            Self::Kernel(_) => "sendfile",
            Self::Own(_) => "send",
        }
    }
}

/// Sends until the bytes, the time or the connection are over.
pub(super) fn send(shared: &Shared, stream: &TcpStream, at: usize) -> LoopEnd {
    let error = stream.set_write_timeout(Some(CALL_WAIT)).err().or_else(|| hand_over(shared, stream, at).err());
    LoopEnd { method: shared.content.method(), error }
}

fn hand_over(shared: &Shared, stream: &TcpStream, at: usize) -> io::Result<()> {
    let (socket, block) = (SockRef::from(stream), shared.load.len.clamp(1, CONTENT));
    let pace = Pace::new(shared.load.rate, block as u64 * u64::from(shared.load.burst.max(1)));
    // A short block is meant: somebody wants to see what short calls cost.
    let adaptive = matches!(shared.content, Content::Kernel(_)) && !pace.is_limited() && block >= SENDFILE.1;
    let (mut bytes, mut offset, mut chunk, mut before) = (0u64, 0usize, SENDFILE.1, shared.now());
    while !shared.is_over(Way::Send) {
        let now = shared.now();
        let wait = pace.wait(now, bytes);
        if !wait.is_zero() {
            thread::sleep(wait);
            continue;
        }
        chunk = if adaptive { next_chunk(chunk, now.saturating_sub(before)) } else { block - (bytes % block as u64) as usize };
        before = now;
        if offset + chunk > CONTENT {
            offset = 0;
        }
        let claimed = shared.claim(chunk);
        if claimed == 0 {
            return Ok(());
        }
        let sent = shared.content.send(stream, &socket, offset, claimed);
        shared.give_back(claimed - sent.as_ref().map_or(0, |taken| *taken.min(&claimed)));
        match sent {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(taken) => {
                bytes += taken as u64;
                offset = (offset + taken) % CONTENT;
                if let Some(tally) = shared.tally(at) {
                    tally.set_bytes(bytes, shared.now());
                }
            }
            Err(error) if is_wait(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The size of the next call after one of `chunk` bytes that took so long.
fn next_chunk(chunk: usize, took: Duration) -> usize {
    if took > CALL {
        (chunk / 2).max(SENDFILE.1)
    } else if took < CALL / 4 {
        (chunk * 2).min(SENDFILE.0)
    } else {
        chunk
    }
}

/// Takes bytes until the other end closes, the time is over or the connection breaks.
pub(super) fn receive(shared: &Shared, stream: &TcpStream, at: usize) -> LoopEnd {
    // Own memory, or none while the kernel throws the bytes away for us.
    let mut buffer = if shared.load.copies { Some(vec![0; shared.load.len.clamp(1, CONTENT)]) } else { None };
    let error = stream.set_read_timeout(Some(CALL_WAIT)).err().or_else(|| take_all(shared, stream, at, &mut buffer).err());
    LoopEnd { method: if buffer.is_some() { "read" } else { "recv-trunc" }, error }
}

fn take_all(shared: &Shared, stream: &TcpStream, at: usize, buffer: &mut Option<Vec<u8>>) -> io::Result<()> {
    let socket = SockRef::from(stream);
    let mut bytes = 0u64;
    while !shared.is_over(Way::Receive) {
        let taken = match buffer {
            Some(buffer) => (&*stream).read(buffer),
            None => sys::tcp::receive_discarding(&socket, DISCARD),
        };
        match taken {
            Ok(0) => return Ok(()),
            Ok(taken) => {
                bytes += taken as u64;
                if let Some(tally) = shared.tally(at) {
                    tally.set_bytes(bytes, shared.now());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Unsupported && buffer.is_none() => {
                *buffer = Some(vec![0; shared.load.len.clamp(1, CONTENT)]);
            }
            Err(error) if is_wait(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether a call only ran out of its time.
pub(super) fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
