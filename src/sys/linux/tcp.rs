//! What TCP sockets of Linux give beyond the standard library: congestion control, segment size, pacing, `TCP_INFO`, and
//! moving bytes without copying them.
#![expect(unsafe_code, reason = "socket options, sendfile, memfd and the error queue have no safe interface in std or socket2")]

use std::io;
use std::mem;
use std::os::fd::AsRawFd as _;
use std::ptr;
use std::time::Duration;

use socket2::Socket;

pub use super::content::{Content, Given, Notices, notices, set_zerocopy};
pub use super::pipe::Kept;

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

/// Sets an option from a value without pointers.
fn set_option<T: Copy>(socket: &Socket, level: libc::c_int, name: libc::c_int, value: T) -> io::Result<()> {
    let size = mem::size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer and the size describe `value`, which lives through the call.
    let code = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, ptr::from_ref(&value).cast(), size) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads up to eight bytes of an option; gives how many the kernel wrote.
fn get_option(socket: &Socket, level: libc::c_int, name: libc::c_int) -> io::Result<([u8; 8], usize)> {
    let (mut value, mut size) = ([0u8; 8], 8);
    // SAFETY: the pointer and the size describe `value`; the kernel writes no more and puts the true length into `size`.
    let code = unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &raw mut size) };
    if code == 0 { Ok((value, size as usize)) } else { Err(io::Error::last_os_error()) }
}

/// Sends every segment with the word not to fragment it (`IP_PMTUDISC_DO`); the kernel still heeds what routers say.
///
/// # Errors
/// Those of `setsockopt`.
pub fn forbid_fragments(socket: &Socket) -> io::Result<()> {
    if socket.domain()? == socket2::Domain::IPV4 {
        set_option(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO)
    } else {
        set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO)
    }
}

/// Sets the highest rate in bytes a second that the kernel sends at (`SO_MAX_PACING_RATE`, Linux 3.13). TCP keeps to it by itself
/// since 4.13, before only where the interface's queueing discipline is `fq`.
///
/// # Errors
/// Those of `setsockopt`; `Unsupported` from a kernel that would not keep to it.
pub fn set_pacing(socket: &Socket, bytes_per_second: u64) -> io::Result<()> {
    if !kernel_is_at_least(4, 13) {
        let text = "this kernel paces TCP only through the fq queueing discipline (Linux 4.13 and later do it alone)";
        return Err(io::Error::new(io::ErrorKind::Unsupported, text));
    }
    set_option(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, bytes_per_second)?;
    // Kernels before 5.0 and those of 32 bit take the first four bytes alone, and tell so by what they give back.
    let (_, length) = get_option(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE)?;
    if length >= 8 {
        return Ok(());
    }
    let narrow = u32::try_from(bytes_per_second).unwrap_or(u32::MAX);
    set_option(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, narrow)
}

/// The highest rate in bytes a second that the kernel sends at; none where there is no limit.
///
/// # Errors
/// Those of `getsockopt`.
pub fn pacing(socket: &Socket) -> io::Result<Option<u64>> {
    let (value, length) = get_option(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE)?;
    if length >= 8 {
        let rate = u64::from_ne_bytes(value);
        return Ok((rate != u64::MAX).then_some(rate));
    }
    let [a, b, c, d, ..] = value;
    let rate = u32::from_ne_bytes([a, b, c, d]);
    Ok((rate != u32::MAX).then_some(rate.into()))
}

fn kernel_is_at_least(major: u32, minor: u32) -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse::<u32>().ok());
    // Without a word of the version, the socket's own answer must do.
    numbers.next().is_none_or(|first| (first, numbers.next().unwrap_or(0)) >= (major, minor))
}

/// Sets the differentiated services code point (0 to 63) of what a socket sends, over IPv4, IPv6 and IPv4 through an IPv6 socket.
///
/// # Errors
/// Those of `setsockopt`.
pub fn set_dscp(socket: &Socket, dscp: u8) -> io::Result<()> {
    let class = libc::c_int::from(dscp) << 2;
    if socket.domain()? == socket2::Domain::IPV4 {
        return set_option(socket, libc::IPPROTO_IP, libc::IP_TOS, class);
    }
    // A peer whose IPv4 address is mapped gets the one, a peer of IPv6 the other.
    let mapped = set_option(socket, libc::IPPROTO_IP, libc::IP_TOS, class);
    set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, class)?;
    if is_mapped(socket) { mapped } else { Ok(()) }
}

/// The differentiated services code point of what a socket sends to its peer.
///
/// # Errors
/// Those of `getsockopt`.
pub fn dscp(socket: &Socket) -> io::Result<u8> {
    let v4 = socket.domain()? == socket2::Domain::IPV4 || is_mapped(socket);
    let (level, name) = if v4 { (libc::IPPROTO_IP, libc::IP_TOS) } else { (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) };
    let ([a, b, c, d, ..], length) = get_option(socket, level, name)?;
    // A short answer is the byte itself.
    let class = if length >= 4 { libc::c_int::from_ne_bytes([a, b, c, d]) } else { a.into() };
    Ok(u8::try_from((class & 0xff) >> 2).unwrap_or_default())
}

fn is_mapped(socket: &Socket) -> bool {
    let peer = socket.peer_addr().ok().and_then(|peer| peer.as_socket_ipv6());
    peer.is_some_and(|peer| peer.ip().to_ipv4_mapped().is_some())
}

/// What a socket's buffer holds of what was asked for: the kernel doubles the figure for its own overhead (socket(7)).
pub const BUFFER_FACTOR: u64 = 2;

/// Sets how many bytes a reader waits for (`SO_RCVLOWAT`); the end of the stream wakes it all the same.
///
/// # Errors
/// Those of `setsockopt`.
pub fn set_receive_low_water(socket: &Socket, bytes: u32) -> io::Result<()> {
    let value = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, value)
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

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use socket2::SockRef;

    use super::*;

    fn connected(addr: &str) -> Option<TcpStream> {
        let listener = TcpListener::bind(addr).ok()?;
        TcpStream::connect(listener.local_addr().ok()?).ok()
    }

    #[test]
    fn what_is_set_is_read_back_over_both_families() {
        for addr in ["127.0.0.1:0", "[::1]:0"] {
            // A host without IPv6 has nothing to try.
            let Some(stream) = connected(addr) else { continue };
            let socket = SockRef::from(&stream);
            assert_eq!((pacing(&socket).unwrap(), dscp(&socket).unwrap()), (None, 0));
            set_dscp(&socket, 46).unwrap();
            assert_eq!(dscp(&socket).unwrap(), 46, "{addr}");
            for rate in [125_000, 5_000_000_000] {
                set_pacing(&socket, rate).unwrap();
                let most = if cfg!(target_pointer_width = "64") { rate } else { rate.min(u32::MAX.into()) };
                assert_eq!(pacing(&socket).unwrap().unwrap_or(u32::MAX.into()), most, "{addr}");
            }
        }
    }

    #[test]
    fn a_mapped_peer_gets_the_code_point_of_its_own_family() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let Ok(socket) = Socket::new(socket2::Domain::IPV6, socket2::Type::STREAM, None) else { return };
        let port = listener.local_addr().unwrap().port();
        let mapped = std::net::SocketAddr::from((std::net::Ipv4Addr::LOCALHOST.to_ipv6_mapped(), port));
        if socket.connect(&mapped.into()).is_ok() {
            set_dscp(&socket, 10).unwrap();
            assert_eq!(dscp(&socket).unwrap(), 10);
        }
    }
}
