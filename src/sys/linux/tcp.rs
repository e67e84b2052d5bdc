//! What TCP sockets of Linux give beyond the standard library: congestion control, segment size, `TCP_INFO`, and moving
//! bytes without copying them.
#![expect(unsafe_code, reason = "socket options, sendfile and memfd have no safe interface in std or socket2")]

use std::fs::File;
use std::io::{self, Write as _};
use std::mem;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::ptr;
use std::time::Duration;

use socket2::Socket;

/// More than any kernel's `struct tcp_info` holds today (232 bytes in 5.4, 280 in 6.18): what is beyond is not ours to read.
const TCP_INFO_ROOM: usize = 512;

/// The congestion control of a socket, by the kernel's name (`cubic`, `bbr`, `reno`).
///
/// # Errors
/// Those of `getsockopt(TCP_CONGESTION)`.
pub fn congestion(socket: &Socket) -> io::Result<String> {
    let name = socket.tcp_congestion()?;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    Ok(String::from_utf8_lossy(name.get(..end).unwrap_or_default()).into_owned())
}

/// Sets the congestion control of a socket; it governs what this end sends.
///
/// # Errors
/// `NotFound` when the kernel lacks it, `PermissionDenied` when it is not among those that everyone may use.
pub fn set_congestion(socket: &Socket, name: &str) -> io::Result<()> {
    socket.set_tcp_congestion(name.as_bytes())
}

/// Sets the largest segment in bytes (`TCP_MAXSEG`); set before connecting, it holds for both directions.
///
/// # Errors
/// Those of `setsockopt`: the kernel takes 88 to 32767.
pub fn set_max_segment(socket: &Socket, bytes: u32) -> io::Result<()> {
    socket.set_tcp_mss(bytes)
}

/// Sends every segment with the word not to fragment it (`IP_PMTUDISC_DO`); the kernel still heeds what routers say.
///
/// # Errors
/// Those of `setsockopt`.
pub fn forbid_fragments(socket: &Socket) -> io::Result<()> {
    let (level, name, value) = if socket.domain()? == socket2::Domain::IPV4 {
        (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO)
    } else {
        (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO)
    };
    let size = mem::size_of_val(&value) as libc::socklen_t;
    // SAFETY: the pointer and the size describe `value`, which lives through the call.
    let code = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, ptr::from_ref(&value).cast(), size) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sets how many bytes a reader waits for (`SO_RCVLOWAT`); the end of the stream wakes it all the same.
///
/// # Errors
/// Those of `setsockopt`.
pub fn set_receive_low_water(socket: &Socket, bytes: u32) -> io::Result<()> {
    let value = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    let size = mem::size_of_val(&value) as libc::socklen_t;
    // SAFETY: the pointer and the size describe `value`, which lives through the call.
    let code =
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVLOWAT, ptr::from_ref(&value).cast(), size) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Takes up to `limit` bytes from a TCP socket and throws them away without copying them (`MSG_TRUNC`); 0 is the end of the stream.
///
/// # Errors
/// Those of `recv`; `Unsupported` from a system that does not know this, which has then taken nothing.
pub fn receive_discarding(socket: &Socket, limit: usize) -> io::Result<usize> {
    // SAFETY: with MSG_TRUNC a TCP socket copies nothing (tcp(7)); a kernel that copies anyway refuses the null pointer with EFAULT.
    let taken = unsafe { libc::recv(socket.as_raw_fd(), ptr::null_mut(), limit, libc::MSG_TRUNC) };
    usize::try_from(taken).map_err(|_| {
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EFAULT | libc::EINVAL | libc::EOPNOTSUPP) => io::Error::new(io::ErrorKind::Unsupported, error),
            _ => error,
        }
    })
}

/// Bytes that lie in the kernel's memory, to be sent from there as often as needed.
#[derive(Debug)]
pub struct Content {
    file: File,
    len: usize,
}

impl Content {
    /// Lays `bytes` into an anonymous file in memory (`memfd_create`).
    ///
    /// # Errors
    /// `ENOSYS` on kernels before 3.17; those of writing.
    pub fn new(bytes: &[u8]) -> io::Result<Self> {
        // SAFETY: the name is a C string with static life; no other pointer is handed over. (The system call and not the
        // C library's function, which old libraries lack.)
        let fd = unsafe { libc::syscall(libc::SYS_memfd_create, c"weaklink".as_ptr(), libc::MFD_CLOEXEC) };
        let fd = match i32::try_from(fd) {
            Ok(fd) if fd >= 0 => fd,
            _ => return Err(io::Error::last_os_error()),
        };
        // SAFETY: the kernel has just given us this descriptor and nobody else knows it.
        let mut file = unsafe { File::from_raw_fd(fd) };
        file.write_all(bytes)?;
        Ok(Self { file, len: bytes.len() })
    }

    /// The number of bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sends up to `limit` bytes from `offset` on without copying them (`sendfile`) and says how many the socket took.
    ///
    /// # Errors
    /// Those of `sendfile`; `WouldBlock` when the write timeout passed.
    pub fn send(&self, socket: &Socket, offset: usize, limit: usize) -> io::Result<usize> {
        let mut at = libc::off_t::try_from(offset).map_err(io::Error::other)?;
        let limit = limit.min(self.len.saturating_sub(offset));
        // SAFETY: both descriptors are open through the call, and `at` is a live `off_t`.
        let sent = unsafe { libc::sendfile(socket.as_raw_fd(), self.file.as_raw_fd(), &raw mut at, limit) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

/// The kernel's `struct tcp_info` of a socket, as many bytes as this kernel gives.
///
/// # Errors
/// Those of `getsockopt(TCP_INFO)`.
pub fn info(socket: &Socket) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0u8; TCP_INFO_ROOM];
    let mut len = TCP_INFO_ROOM as libc::socklen_t;
    // SAFETY: the pointer and the length describe `bytes`; the kernel writes no more than `len` and puts the true length there.
    let code = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, bytes.as_mut_ptr().cast(), &raw mut len)
    };
    if code != 0 {
        return Err(io::Error::last_os_error());
    }
    bytes.truncate(len as usize);
    Ok(bytes)
}

/// The processor time that the calling thread has used so far, user and system.
pub fn thread_cpu() -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live timespec that the kernel fills.
    let code = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    (code == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}
