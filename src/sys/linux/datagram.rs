//! Many datagrams with one call, when each arrived, and what the kernel dropped of them.
//!
//! | way | since | what it needs |
//! |---|---|---|
//! | `UDP_SEGMENT` (GSO): one buffer, cut by the kernel or the card | 4.18 | check sums by the card, or by software since 6.2 |
//! | `UDP_GRO`: datagrams of one burst come together | 5.0 | the card's driver |
//! | `sendmmsg`, `recvmmsg` | 3.0, 2.6.33 | |
//!
//! Each is tried and given up for the next where the kernel refuses it.
#![expect(unsafe_code, reason = "calls for many datagrams and socket options that std and socket2 do not have")]

use std::ffi::c_int;
use std::io::{self, Read as _};
use std::mem;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use super::udp::{array, set_option};
use crate::sys::report::Arrival;

/// `UDP_SEGMENT` and `UDP_GRO` of linux/udp.h.
const UDP_SEGMENT: c_int = 103;
const UDP_GRO: c_int = 104;

/// `UDP_MAX_SEGMENTS` of the kernels from 4.18 to 6.8; later ones take 128.
const MOST_SEGMENTS: usize = 64;

/// What a UDP datagram can carry by IPv4: 65,535 − 20 − 8 bytes; with GSO all segments of a call together.
const MOST_BYTES: usize = 65_507;

/// The most datagrams that one call takes in.
const MOST_RECEIVED: usize = 64;

/// Buffers for datagrams that come together; one holds 64 KiB, and all of them stay in an L2 cache of 512 KiB.
const COALESCED: usize = 4;

/// Room for the control messages of one datagram: three of at most 32 bytes are asked for.
const CONTROL: usize = 128;

/// How datagrams go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Segments,
    Many,
    One,
}

/// Datagrams of one size on their way out; the buffer is written again and again.
#[derive(Debug)]
pub struct Outgoing {
    way: Way,
    datagram: usize,
    buffer: Vec<u8>,
}

impl Outgoing {
    /// Room for as many datagrams of `datagram` bytes (1 to 65,507) as one call takes, with `content` in it, again and again.
    pub fn new(socket: &UdpSocket, datagram: usize, content: &[u8]) -> Self {
        let datagram = datagram.clamp(1, MOST_BYTES);
        let most = (MOST_BYTES / datagram).clamp(1, MOST_SEGMENTS);
        let buffer = content.iter().copied().cycle().chain(std::iter::repeat(0)).take(most * datagram).collect();
        let size = c_int::try_from(datagram).unwrap_or(0);
        let segments = most > 1 && set_option(socket, libc::SOL_UDP, UDP_SEGMENT, size).is_ok();
        Self { way: if segments { Way::Segments } else { Way::Many }, datagram, buffer }
    }

    /// Gives GSO up, for a comparison or a card that is known for it.
    pub fn without_segments(&mut self, socket: &UdpSocket) {
        if self.way == Way::Segments {
            // Nobody can have forbidden what was just allowed; and if so, the next call fails and says it.
            let _ = set_option(socket, libc::SOL_UDP, UDP_SEGMENT, 0);
            self.way = Way::Many;
        }
    }

    /// The most datagrams that one call takes.
    pub fn most(&self) -> usize {
        self.buffer.len() / self.datagram
    }

    /// The content of the datagram at a place below [`Self::most`]; empty beyond.
    pub fn slot(&mut self, at: usize) -> &mut [u8] {
        let (from, to) = (at.saturating_mul(self.datagram), at.saturating_add(1).saturating_mul(self.datagram));
        self.buffer.get_mut(from..to).unwrap_or_default()
    }

    /// How datagrams go out, in the kernel's words.
    pub const fn method(&self) -> &'static str {
        match self.way {
            Way::Segments => "GSO",
            Way::Many => "sendmmsg",
            Way::One => "send",
        }
    }

    /// Hands the first `count` datagrams to the kernel; gives how many it took, at least one.
    ///
    /// Errors are the kernel's about the first that it did not take.
    pub fn send(&mut self, socket: &UdpSocket, count: usize) -> io::Result<usize> {
        let count = count.clamp(1, self.most());
        let bytes = self.buffer.get(..count * self.datagram).unwrap_or_default();
        if self.way == Way::Segments {
            match socket.send(bytes) {
                Ok(sent) => return Ok((sent / self.datagram).clamp(1, count)),
                Err(error) if !is_refused(&error) => return Err(error),
                Err(_) => self.without_segments(socket),
            }
        }
        let bytes = self.buffer.get(..count * self.datagram).unwrap_or_default();
        if self.way == Way::Many && count > 1 {
            match send_many(socket, bytes, self.datagram) {
                Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => self.way = Way::One,
                result => return result,
            }
        }
        let bytes = self.buffer.get(..count * self.datagram).unwrap_or_default();
        let mut sent = 0;
        for datagram in bytes.chunks(self.datagram) {
            match socket.send(datagram) {
                Err(error) if sent == 0 => return Err(error),
                Err(_) => break,
                Ok(_) => sent += 1,
            }
        }
        Ok(sent)
    }
}

/// Whether the kernel or the card cannot cut a buffer into datagrams: no check sums by the card (EIO), a path or size that
/// does not allow it (EINVAL), or a kernel that does not know it.
fn is_refused(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL | libc::EOPNOTSUPP | libc::ENOPROTOOPT))
}

/// Sends the datagrams that lie one behind the other in `bytes`.
fn send_many(socket: &UdpSocket, bytes: &[u8], datagram: usize) -> io::Result<usize> {
    // SAFETY: plain C structures for which all zeros is a valid value.
    let (mut headers, mut parts): ([libc::mmsghdr; MOST_SEGMENTS], [libc::iovec; MOST_SEGMENTS]) = unsafe { mem::zeroed() };
    let mut count = 0;
    for ((header, part), content) in headers.iter_mut().zip(&mut parts).zip(bytes.chunks(datagram)) {
        // The kernel only reads from it.
        *part = libc::iovec { iov_base: content.as_ptr().cast_mut().cast(), iov_len: content.len() };
        header.msg_hdr.msg_iov = part;
        header.msg_hdr.msg_iovlen = 1;
        count += 1;
    }
    // SAFETY: the first `count` headers each describe one part, which describes living bytes; all outlive the call.
    let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), count, 0) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Aligned room for control messages.
#[repr(align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL]);

/// Datagrams on their way in.
#[derive(Debug)]
pub struct Incoming {
    together: bool,
    buffers: Vec<Vec<u8>>,
    largest: usize,
}

impl Incoming {
    /// Prepares a socket to receive; of each datagram the first `head` bytes are of interest.
    ///
    /// Where datagrams can come together (`UDP_GRO`) they do, unless `apart` is set. The kernel notes when each arrived and
    /// how many were dropped before it, where it can.
    pub fn new(socket: &UdpSocket, head: usize, apart: bool) -> Self {
        // Without the first the program's own clock is read, without the second the drops are read elsewhere.
        let _ = set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1);
        let _ = set_option(socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1);
        let together = set_option(socket, libc::SOL_UDP, UDP_GRO, c_int::from(!apart)).is_ok() && !apart;
        let buffers = if together { vec![vec![0; 65_536]; COALESCED] } else { vec![vec![0; head.max(1)]; MOST_RECEIVED] };
        Self { together, buffers, largest: 1 }
    }

    /// How datagrams are taken in, in the kernel's words.
    pub const fn method(&self) -> &'static str {
        if self.together { "GRO" } else { "recvmmsg" }
    }

    /// The most datagrams that came together so far, at least 1: one drop that the kernel counts may be as many.
    pub const fn largest_bundle(&self) -> usize {
        self.largest
    }

    /// Waits for a datagram as the socket's timeout says, takes what has come, and shows each to `each`; gives how many.
    pub fn receive(&mut self, socket: &UdpSocket, each: &mut dyn FnMut(Arrival<'_>)) -> io::Result<usize> {
        // SAFETY: plain C structures for which all zeros is a valid value.
        let (mut headers, mut parts): ([libc::mmsghdr; MOST_RECEIVED], [libc::iovec; MOST_RECEIVED]) = unsafe { mem::zeroed() };
        let mut controls = [Control([0; CONTROL]); MOST_RECEIVED];
        let places = headers.iter_mut().zip(&mut parts).zip(&mut controls).zip(&mut self.buffers);
        let mut count = 0;
        for (((header, part), control), buffer) in places {
            *part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
            header.msg_hdr.msg_iov = part;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = control.0.len() as _;
            count += 1;
        }
        // What is cut is of no interest, but its true length is.
        let flags = libc::MSG_WAITFORONE | libc::MSG_TRUNC;
        // SAFETY: the first `count` headers each describe one part and one control buffer, which describe living memory of
        // ours; all outlive the call.
        let taken = unsafe { libc::recvmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), count, flags as _, std::ptr::null_mut()) };
        let taken = usize::try_from(taken).map_err(|_| io::Error::last_os_error())?;
        let mut datagrams = 0;
        for (header, buffer) in headers.iter().take(taken).zip(&self.buffers) {
            let length = header.msg_len as usize;
            let notes = Notes::of(&header.msg_hdr);
            let bytes = buffer.get(..length.min(buffer.len())).unwrap_or_default();
            let whole = bytes.len() == length;
            let size = notes.segment.filter(|_| whole).unwrap_or(length).max(1);
            self.largest = self.largest.max(bytes.len().div_ceil(size));
            for (at, datagram) in bytes.chunks(size).enumerate() {
                let length = if whole { datagram.len() } else { length };
                each(Arrival { bytes: datagram, length, at: notes.at, dropped: notes.dropped.filter(|_| at == 0) });
                datagrams += 1;
            }
        }
        Ok(datagrams)
    }
}

/// What the kernel notes beside a datagram.
#[derive(Default)]
struct Notes {
    /// When it arrived, since 1970.
    at: Option<Duration>,
    dropped: Option<u32>,
    segment: Option<usize>,
}

impl Notes {
    fn of(header: &libc::msghdr) -> Self {
        let mut notes = Self::default();
        // SAFETY: `header` was filled by the kernel, and its control buffer is alive in the caller.
        let mut next = unsafe { libc::CMSG_FIRSTHDR(header) };
        for _ in 0..8 {
            if next.is_null() {
                break;
            }
            // SAFETY: the macros only give headers that lie wholly inside the control buffer, and the kernel wrote `cmsg_len`
            // bytes for each, headers included; the slice is read before the buffer goes.
            let (level, kind, data) = unsafe {
                let length = ((*next).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
                ((*next).cmsg_level, (*next).cmsg_type, std::slice::from_raw_parts(libc::CMSG_DATA(next), length))
            };
            match (level, kind) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => notes.at = time_of(data),
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => notes.dropped = array(data, 0).map(u32::from_ne_bytes),
                (libc::SOL_UDP, UDP_GRO) => {
                    notes.segment = array(data, 0).map(c_int::from_ne_bytes).and_then(|size| usize::try_from(size).ok());
                }
                _ => {}
            }
            // SAFETY: as for the first.
            next = unsafe { libc::CMSG_NXTHDR(header, next) };
        }
        notes
    }
}

/// Reads a `timespec` of 64 or of 32 bits.
fn time_of(data: &[u8]) -> Option<Duration> {
    let (seconds, nanos) = match data.len() {
        16.. => (i64::from_ne_bytes(array(data, 0)?), i64::from_ne_bytes(array(data, 8)?)),
        _ => (i32::from_ne_bytes(array(data, 0)?).into(), i32::from_ne_bytes(array(data, 4)?).into()),
    };
    Some(Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanos).ok().filter(|nanos| *nanos < 1_000_000_000)?))
}

/// What the kernel dropped at this socket since it was opened, because its buffer was full.
///
/// From `SO_MEMINFO` (kernel 4.12), else from `/proc/net/udp`. Fails where both are missing.
pub fn drops(socket: &UdpSocket) -> io::Result<u64> {
    memory_drops(socket).or_else(|_| table_drops(socket))
}

fn memory_drops(socket: &UdpSocket) -> io::Result<u64> {
    /// `SK_MEMINFO_VARS` of linux/sock_diag.h is 9; later kernels may have more.
    const FIELDS: usize = 16;
    let mut fields = [0_u32; FIELDS];
    let mut length = mem::size_of_val(&fields) as libc::socklen_t;
    // SAFETY: the pointers describe `fields` and its size in bytes, and both outlive the call.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MEMINFO, fields.as_mut_ptr().cast(), &raw mut length)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let at = libc::SK_MEMINFO_DROPS as usize;
    let told = length as usize / mem::size_of::<u32>();
    fields.get(..told.min(FIELDS)).and_then(|fields| fields.get(at)).map(|drops| u64::from(*drops)).ok_or_else(missing)
}

fn missing() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "the kernel does not tell what it dropped at a socket")
}

fn table_drops(socket: &UdpSocket) -> io::Result<u64> {
    /// More than any host's table of UDP sockets: 130 bytes each.
    const MOST: u64 = 8 << 20;
    let table = if socket.local_addr()?.is_ipv4() { "/proc/net/udp" } else { "/proc/net/udp6" };
    let inode = std::fs::File::from(OwnedFd::from(socket.try_clone()?)).metadata()?.ino();
    let mut text = String::new();
    std::fs::File::open(table)?.take(MOST).read_to_string(&mut text)?;
    drops_of(&text, inode).ok_or_else(missing)
}

/// The last column of the line whose tenth is the inode.
fn drops_of(table: &str, inode: u64) -> Option<u64> {
    let mut lines = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let line = lines.find(|line| line.get(9).and_then(|text| text.parse().ok()) == Some(inode))?;
    line.get(12)?.parse().ok()
}

/// Asks for a receive buffer of so many bytes: beyond the limit of the system where we may, else up to it.
pub fn enlarge(socket: &UdpSocket, bytes: usize) {
    let size = c_int::try_from(bytes).unwrap_or(c_int::MAX);
    if set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, size).is_err() {
        // Less room means more drops here, and they are told.
        let _ = set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, size);
    }
}

/// Has the kernel wake the calling thread when it asked for, and not up to 50 µs later together with others.
pub fn sleep_precisely() {
    const NANOSECOND: libc::c_ulong = 1;
    // SAFETY: the call takes numbers and touches no memory of ours; a refusal leaves the slack as it is.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, NANOSECOND) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_sockets_is_read_by_inode() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n\
            11: 0100007F:1459 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4711 2 0000000000000000 42\n\
            12: 0100007F:145A 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4712 2 0000000000000000 7\n\
            13: cut";
        assert_eq!(drops_of(table, 4711), Some(42));
        assert_eq!(drops_of(table, 4712), Some(7));
        assert_eq!(drops_of(table, 1), None);
        assert_eq!(drops_of("", 1), None);
    }

    #[test]
    fn times_of_64_and_of_32_bits_are_read() {
        let long: Vec<u8> = [3_i64, 5].iter().flat_map(|n| n.to_ne_bytes()).collect();
        let short: Vec<u8> = [3_i32, 5].iter().flat_map(|n| n.to_ne_bytes()).collect();
        assert_eq!(time_of(&long), Some(Duration::new(3, 5)));
        assert_eq!(time_of(&short), Some(Duration::new(3, 5)));
        assert_eq!(time_of(&long[..3]), None);
    }

    #[test]
    fn both_tables_tell_the_drops_of_a_full_buffer() {
        let here = UdpSocket::bind("127.0.0.1:0").unwrap();
        let there = UdpSocket::bind("127.0.0.1:0").unwrap();
        there.connect(here.local_addr().unwrap()).unwrap();
        set_option(&here, libc::SOL_SOCKET, libc::SO_RCVBUF, 1).unwrap();
        for _ in 0..100 {
            there.send(&[0; 1000]).unwrap();
        }
        let told: Vec<u64> = [memory_drops, table_drops].iter().filter_map(|ask| ask(&here).ok()).collect();
        assert!(!told.is_empty() && told.iter().all(|drops| *drops > 90 && *drops == told[0]), "{told:?}");
    }

    #[test]
    fn every_way_out_arrives_by_every_way_in() {
        for (way, apart) in
            [(Way::Segments, false), (Way::Segments, true), (Way::Many, false), (Way::Many, true), (Way::One, true)]
        {
            let here = UdpSocket::bind("127.0.0.1:0").unwrap();
            let there = UdpSocket::bind("127.0.0.1:0").unwrap();
            here.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            there.connect(here.local_addr().unwrap()).unwrap();
            let mut incoming = Incoming::new(&here, 8, apart);
            let mut outgoing = Outgoing::new(&there, 1000, &[7; 100]);
            if way != Way::Segments {
                outgoing.without_segments(&there);
                outgoing.way = way;
            }
            assert_eq!(outgoing.most(), 64);
            for at in 0..20 {
                outgoing.slot(at)[0] = at as u8;
            }
            let mut left = 20;
            while left > 0 {
                left -= outgoing.send(&there, left).unwrap();
            }
            let mut seen = Vec::new();
            while seen.len() < 20 {
                incoming
                    .receive(&here, &mut |arrival| {
                        assert_eq!((arrival.length, arrival.bytes[1]), (1000, 7));
                        seen.push(arrival.bytes[0]);
                    })
                    .unwrap();
            }
            assert_eq!(seen, (0..20).collect::<Vec<u8>>(), "{way:?}, apart: {apart}");
        }
    }
}
