//! A pipe that keeps bytes for good, and a second one whose references to the same pages go to a socket: no copy, and no look at a file
//! for each page.
#![expect(unsafe_code, reason = "pipes of a chosen size, tee and splice have no interface in std or socket2")]

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::ptr;

use socket2::Socket;

use super::content::Content;

/// The sizes that are asked for, the best first. Every user may have 1 MiB in one pipe, and 64 MiB in all of them together; both are the
/// kernel's defaults (`fs.pipe-max-size`, `fs.pipe-user-pages-soft`).
const SIZES: [usize; 3] = [512 << 10, 256 << 10, 128 << 10];

/// The pages of a [`Content`], referred to by a pipe that is never emptied.
#[derive(Debug)]
pub struct Kept {
    full: Pipe,
    out: Pipe,
    /// The bytes that one call can refer to.
    size: usize,
    /// Bytes that lie in `out` and that the socket has not taken yet.
    waiting: usize,
}

#[derive(Debug)]
struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

impl Pipe {
    /// A pipe with room for so many bytes of whole pages.
    fn new(size: usize) -> io::Result<Self> {
        let mut ends = [0; 2];
        // SAFETY: the pointer is to two live integers.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given us both descriptors and nobody else knows them.
        let pipe = unsafe { Self { read: OwnedFd::from_raw_fd(ends[0]), write: OwnedFd::from_raw_fd(ends[1]) } };
        let wanted = libc::c_int::try_from(size).map_err(io::Error::other)?;
        // SAFETY: the descriptor is open, and the command takes an integer.
        let room = unsafe { libc::fcntl(pipe.write.as_raw_fd(), libc::F_SETPIPE_SZ, wanted) };
        if room < wanted {
            return Err(io::Error::last_os_error());
        }
        Ok(pipe)
    }
}

fn moved(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

impl Kept {
    /// Has a pipe of up to `most` bytes refer to all pages of `content`, as often as it has room for them.
    ///
    /// # Errors
    /// `InvalidInput` for less than 128 KiB; those of `pipe`, `F_SETPIPE_SZ` (`PermissionDenied` where this user's pipes hold too much
    /// already) and `splice`.
    pub fn new(content: &Content, most: usize) -> io::Result<Self> {
        let mut last = io::Error::from(io::ErrorKind::InvalidInput);
        for size in SIZES.into_iter().filter(|size| *size <= most) {
            match Pipe::new(size).and_then(|full| Ok((full, Pipe::new(size)?))) {
                Ok((full, out)) => {
                    let size = fill(&full, content, size)?;
                    return Ok(Self { full, out, size, waiting: 0 });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Gives a socket up to `limit` bytes and says how many it took.
    ///
    /// # Errors
    /// Those of `tee` and `splice`; `WouldBlock` when the write timeout passed.
    pub fn give(&mut self, socket: &Socket, limit: usize) -> io::Result<usize> {
        if self.waiting == 0 {
            let (from, to) = (self.full.read.as_raw_fd(), self.out.write.as_raw_fd());
            // SAFETY: both descriptors are open through the call.
            self.waiting = moved(unsafe { libc::tee(from, to, limit.min(self.size), libc::SPLICE_F_NONBLOCK) })?;
        }
        let most = limit.min(self.waiting);
        // SAFETY: both descriptors are open through the call, and neither end has an offset.
        let taken = moved(unsafe {
            libc::splice(self.out.read.as_raw_fd(), ptr::null_mut(), socket.as_raw_fd(), ptr::null_mut(), most, 0)
        })?;
        self.waiting = self.waiting.saturating_sub(taken);
        Ok(taken)
    }
}

/// Fills a pipe of `size` bytes with references to the pages of `content`, from its begin again and again.
fn fill(pipe: &Pipe, content: &Content, size: usize) -> io::Result<usize> {
    let mut filled = 0;
    while filled < size {
        let mut at: libc::off64_t = (filled % content.len().max(1)) as libc::off64_t;
        let most = (size - filled).min(content.len() - at as usize);
        let to = pipe.write.as_raw_fd();
        // SAFETY: both descriptors are open through the call, and `at` is a live offset.
        let more = moved(unsafe {
            libc::splice(content.file().as_raw_fd(), &raw mut at, to, ptr::null_mut(), most, libc::SPLICE_F_NONBLOCK)
        });
        match more {
            Ok(0) => break,
            Ok(more) => filled += more,
            // Pages that end early take a whole place of the pipe.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && filled > 0 => break,
            Err(error) => return Err(error),
        }
    }
    if filled == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(filled) }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use super::*;

    fn content(len: usize) -> Content {
        Content::new(&(0..len).map(|at| (at % 251) as u8).collect::<Vec<_>>()).expect("a file in memory")
    }

    fn pair() -> (TcpStream, Socket) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let reads = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        let (sends, _) = listener.accept().expect("a connection");
        sends.set_write_timeout(Some(Duration::from_millis(20))).expect("a timeout");
        (reads, sends.into())
    }

    #[test]
    fn the_same_bytes_arrive_again_and_again_whatever_a_call_may_take() {
        let content = content(256 << 10);
        let mut kept = Kept::new(&content, usize::MAX).expect("two pipes");
        let (mut reads, sends) = pair();
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            reads.read_to_end(&mut all).map(|_| all).expect("all bytes")
        });
        let mut sent = 0;
        for limit in [1, 100_000, 7, 1 << 20, 4097, 1 << 20, 1 << 20] {
            match kept.give(&sends, limit) {
                Ok(taken) => {
                    assert!(taken <= limit && taken > 0);
                    sent += taken;
                }
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        drop(sends);
        let all = reader.join().expect("the reader");
        assert_eq!(all.len(), sent);
        // Each call begins at the begin again once the one before is through.
        assert_eq!(all.get(..2), Some(&[0, 0][..]));
        let steps = all.windows(2).filter(|two| two[1] != 0 && two[1] != two[0] + 1).count();
        assert_eq!(steps, 0, "every byte follows the one before it in the content");
    }

    #[test]
    fn a_peer_that_takes_nothing_holds_nobody_for_longer_than_the_timeout() {
        let mut kept = Kept::new(&content(256 << 10), 256 << 10).expect("two pipes");
        let (_reads, sends) = pair();
        let mut full = false;
        for _ in 0..1000 {
            match kept.give(&sends, usize::MAX) {
                Ok(_) => {}
                Err(error) => {
                    full = error.kind() == io::ErrorKind::WouldBlock;
                    break;
                }
            }
        }
        assert!(full);
    }

    #[test]
    fn too_little_room_is_an_error() {
        assert_eq!(Kept::new(&content(4096), 1000).map_err(|error| error.kind()).err(), Some(io::ErrorKind::InvalidInput));
    }

    #[test]
    fn a_connection_that_has_gone_is_an_error_and_no_signal() {
        let mut kept = Kept::new(&content(4096), 1 << 20).expect("two pipes");
        let (reads, sends) = pair();
        drop(reads);
        let errors = (0..100).filter(|_| kept.give(&sends, 4096).is_err()).count();
        assert!(errors > 0);
    }
}
