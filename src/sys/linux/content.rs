//! Bytes in the kernel's memory that are sent again and again: by `sendfile`, from a mapping, or from a mapping without a copy.
#![expect(unsafe_code, reason = "memfd, mappings, sendfile and the error queue have no safe interface in std or socket2")]

use std::fs::File;
use std::io::{self, Write as _};
use std::mem;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::ptr::{self, NonNull};

use socket2::Socket;

/// Bytes in an anonymous file in memory that is mapped into the program too.
///
/// What is sent without a copy stays with the kernel after the call. Since it is the file's memory and never the program's own, pages
/// that a socket still holds after the end are not given to anything else.
#[derive(Debug)]
pub struct Content {
    file: File,
    map: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is only ever read, and it lives as long as the value.
unsafe impl Send for Content {}
// SAFETY: as above.
unsafe impl Sync for Content {}

/// How [`Content::give`] hands bytes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// With a copy into the socket (`send`).
    Copied,
    /// The socket refers to the pages and tells when it no longer does (`MSG_ZEROCOPY`, Linux 4.14; [`set_zerocopy`] before).
    Lent,
    /// The socket refers to the file's pages (`sendfile`).
    FromFile,
}

impl Content {
    /// Lays `bytes` into an anonymous file in memory (`memfd_create`).
    ///
    /// # Errors
    /// `ENOSYS` on kernels before 3.17; those of writing and of `mmap`; `InvalidInput` for no bytes.
    pub fn new(bytes: &[u8]) -> io::Result<Self> {
        // SAFETY: the name is a C string with static life; no other pointer is handed over. (The system call and not the
        // C library's function, which old libraries lack.)
        let fd =
            unsafe { libc::syscall(libc::SYS_memfd_create, c"weaklink".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
        let fd = match i32::try_from(fd) {
            Ok(fd) if fd >= 0 => fd,
            _ => return Err(io::Error::last_os_error()),
        };
        // SAFETY: the kernel has just given us this descriptor and nobody else knows it.
        let mut file = unsafe { File::from_raw_fd(fd) };
        file.write_all(bytes)?;
        // A file that shrank would make the mapping a trap.
        // SAFETY: the descriptor is open, and the command takes an integer.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let map = unsafe {
            libc::mmap(ptr::null_mut(), bytes.len(), libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_POPULATE, file.as_raw_fd(), 0)
        };
        match NonNull::new(map.cast::<u8>()) {
            Some(start) if map != libc::MAP_FAILED => Ok(Self { file, map: start, len: bytes.len() }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The file, for those that refer to its pages in other ways.
    pub(super) const fn file(&self) -> &File {
        &self.file
    }

    /// The number of bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Gives a socket up to `limit` bytes from `offset` on and says how many it took.
    ///
    /// # Errors
    /// Those of `send` and `sendfile`; `WouldBlock` when the write timeout passed; `OutOfMemory` when nothing more can be lent
    /// now ([`Given::Lent`]), or never (the user may not lock enough memory).
    pub fn give(&self, socket: &Socket, how: Given, offset: usize, limit: usize) -> io::Result<usize> {
        let limit = limit.min(self.len.saturating_sub(offset));
        let fd = socket.as_raw_fd();
        let flags = match how {
            Given::FromFile => {
                let mut at = libc::off_t::try_from(offset).map_err(io::Error::other)?;
                // SAFETY: both descriptors are open through the call, and `at` is a live `off_t`.
                let sent = unsafe { libc::sendfile(fd, self.file.as_raw_fd(), &raw mut at, limit) };
                return usize::try_from(sent).map_err(|_| io::Error::last_os_error());
            }
            Given::Copied => libc::MSG_NOSIGNAL,
            Given::Lent => libc::MSG_NOSIGNAL | libc::MSG_ZEROCOPY,
        };
        if limit == 0 {
            return Ok(0);
        }
        // SAFETY: `limit` bytes from `offset` on lie inside the mapping, which lives as long as `self`.
        let sent = unsafe { libc::send(fd, self.map.as_ptr().add(offset).cast(), limit, flags) };
        usize::try_from(sent).map_err(|_| {
            let error = io::Error::last_os_error();
            if how == Given::Lent && error.raw_os_error() == Some(libc::ENOBUFS) {
                return io::Error::new(io::ErrorKind::OutOfMemory, error);
            }
            error
        })
    }
}

impl Drop for Content {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `new` made, and nobody refers to it any more.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.len) };
    }
}

/// Allows a socket to refer to lent pages (`SO_ZEROCOPY`).
///
/// # Errors
/// Those of `setsockopt`: kernels before 4.14 do not know it.
pub fn set_zerocopy(socket: &Socket) -> io::Result<()> {
    let (value, size): (libc::c_int, _) = (1, mem::size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: the pointer and the size describe `value`, which lives through the call.
    let code =
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ZEROCOPY, ptr::from_ref(&value).cast(), size) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// What a socket said of lent pages since the last time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notices {
    /// Calls whose pages it no longer refers to.
    pub calls: u32,
    /// Those among them whose bytes the kernel copied after all.
    pub copied: u32,
}

/// The most notices that are taken at once; the rest waits for the next time.
const AT_ONCE: usize = 64;

/// `SO_EE_ORIGIN_ZEROCOPY` and `SO_EE_CODE_ZEROCOPY_COPIED` of `linux/errqueue.h`.
const ORIGIN: u8 = 5;
const COPIED: u8 = 1;

/// Room for one control message, aligned as the kernel's headers want it.
#[repr(C, align(8))]
struct Room([u8; 128]);

/// Takes the notices of lent pages from a socket's error queue; never waits.
pub fn notices(socket: &Socket) -> Notices {
    let mut sum = Notices::default();
    for _ in 0..AT_ONCE {
        let Some(error) = next_error(socket) else { break };
        if error.ee_origin == ORIGIN && error.ee_errno == 0 {
            // A notice tells of a range of calls, both ends included; the numbers wrap.
            let calls = error.ee_data.wrapping_sub(error.ee_info).saturating_add(1);
            sum.calls = sum.calls.saturating_add(calls);
            sum.copied = sum.copied.saturating_add(if error.ee_code & COPIED == 0 { 0 } else { calls });
        }
    }
    sum
}

/// The next entry of the error queue; one without an error in it counts as none.
fn next_error(socket: &Socket) -> Option<libc::sock_extended_err> {
    let mut room = Room([0; 128]);
    // SAFETY: a message header of zeroes is a valid one without any buffer.
    let mut header: libc::msghdr = unsafe { mem::zeroed() };
    header.msg_control = room.0.as_mut_ptr().cast();
    header.msg_controllen = room.0.len() as _;
    // SAFETY: the header describes `room`, which lives through the call; no data and no address are asked for.
    let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) };
    if got < 0 {
        return None;
    }
    // SAFETY: the kernel filled the header; the pointers that these give stay inside `room`, and the error is read only where the
    // message's own length covers it.
    unsafe {
        let first = libc::CMSG_FIRSTHDR(&raw const header);
        let message = first.as_ref()?;
        let needed = libc::CMSG_LEN(mem::size_of::<libc::sock_extended_err>() as u32) as usize;
        ((message.cmsg_len as usize) >= needed).then(|| ptr::read_unaligned(libc::CMSG_DATA(first).cast()))
    }
}
