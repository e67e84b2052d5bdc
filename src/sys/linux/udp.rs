//! UDP sockets that may not fragment, and the errors that the kernel keeps for them.
#![expect(unsafe_code, reason = "socket options and control messages that std and socket2 do not have")]

use std::ffi::c_int;
use std::io;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use socket2::SockRef;

pub use crate::sys::report::{SocketReport, TooLarge, TooLargeBy};

/// Sets an option whose value is an integer.
pub(super) fn set_option(socket: &UdpSocket, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    // SAFETY: the pointer and the length describe `value`, which outlives the call.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), mem::size_of::<c_int>() as libc::socklen_t)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn is_v4(socket: &UdpSocket) -> io::Result<bool> {
    Ok(socket.local_addr()?.is_ipv4())
}

/// Sends every datagram whole or not at all, and does not heed what the kernel believes about the path
/// (`IP_PMTUDISC_PROBE`): only the own interface still limits the size.
pub fn forbid_fragments(socket: &UdpSocket) -> io::Result<()> {
    if is_v4(socket)? {
        set_option(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)
    } else {
        set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)
    }
}

/// Has the kernel keep the errors that concern the socket for [`next_report`].
pub fn keep_reports(socket: &UdpSocket) -> io::Result<()> {
    if is_v4(socket)? {
        set_option(socket, libc::IPPROTO_IP, libc::IP_RECVERR, 1)
    } else {
        set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1)
    }
}

/// Has the kernel say with each datagram to which address it came, for [`receive`].
pub fn report_destination(socket: &UdpSocket) -> io::Result<()> {
    if is_v4(socket)? {
        set_option(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)
    } else {
        set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)
    }
}

/// Whether sending failed because a queue of this host was full, or the device dropped the datagram at once.
pub fn is_queue_full(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOBUFS)
}

/// Whether sending failed because the datagram was too large.
pub fn is_too_large(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMSGSIZE)
}

/// The MTU of the route of a connected socket, in bytes, as the kernel believes: the interface's or a smaller one
/// that was learnt before.
pub fn route_mtu(socket: &UdpSocket) -> io::Result<u32> {
    let (level, name) = if is_v4(socket)? { (libc::IPPROTO_IP, libc::IP_MTU) } else { (libc::IPPROTO_IPV6, libc::IPV6_MTU) };
    let mut value: c_int = 0;
    let mut length = mem::size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the pointers describe `value` and `length`, which outlive the call; `length` holds the size of `value`.
    let result = unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut length) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    u32::try_from(value).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}

/// Room for the control messages of one datagram; the kernel writes less than 100 bytes of those asked for.
#[repr(align(8))]
struct Control([u8; 512]);

/// One control message.
pub(super) struct ControlMessage {
    pub(super) level: c_int,
    pub(super) kind: c_int,
    pub(super) data: Vec<u8>,
}

/// Sends a datagram of a connected socket that ends after `ttl` hops (IPv6: hop limit).
///
/// Kernels before 3.13 refuse the TTL beside an IPv4 datagram; there the socket's own TTL is changed for the moment, so
/// that no other thread may send on the socket meanwhile.
pub fn send_with_ttl(socket: &UdpSocket, bytes: &[u8], ttl: u8) -> io::Result<usize> {
    match send_with_control(socket, bytes, ttl) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => send_with_option(socket, bytes, ttl),
        result => result,
    }
}

/// The TTL goes beside this one datagram.
fn send_with_control(socket: &UdpSocket, bytes: &[u8], ttl: u8) -> io::Result<usize> {
    let (level, kind) = if is_v4(socket)? { (libc::IPPROTO_IP, libc::IP_TTL) } else { (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) };
    let mut control = Control([0; 512]);
    // SAFETY: a plain C structure for which all zeros is a valid value.
    let mut header: libc::msghdr = unsafe { mem::zeroed() };
    // The kernel only reads from it.
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    let size = mem::size_of::<c_int>() as libc::c_uint;
    // SAFETY: the control buffer is aligned for `cmsghdr` and has room for one message with an integer; the first
    // header lies at its beginning, and every pointer in `header` describes a live object of the length beside it.
    let sent = unsafe {
        header.msg_controllen = libc::CMSG_SPACE(size) as _;
        let message = libc::CMSG_FIRSTHDR(&raw const header);
        if message.is_null() {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        (*message).cmsg_level = level;
        (*message).cmsg_type = kind;
        (*message).cmsg_len = libc::CMSG_LEN(size) as _;
        libc::CMSG_DATA(message).cast::<c_int>().write_unaligned(c_int::from(ttl));
        libc::sendmsg(socket.as_raw_fd(), &raw const header, 0)
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// The socket has the TTL while this datagram is sent.
fn send_with_option(socket: &UdpSocket, bytes: &[u8], ttl: u8) -> io::Result<usize> {
    let options = SockRef::from(socket);
    if is_v4(socket)? {
        let before = options.ttl_v4()?;
        options.set_ttl_v4(ttl.into())?;
        let sent = socket.send(bytes);
        options.set_ttl_v4(before)?;
        sent
    } else {
        let before = options.unicast_hops_v6()?;
        options.set_unicast_hops_v6(ttl.into())?;
        let sent = socket.send(bytes);
        options.set_unicast_hops_v6(before)?;
        sent
    }
}

/// A datagram as `recvmsg` gives it.
pub(super) struct Received {
    pub(super) length: usize,
    pub(super) from: libc::sockaddr_storage,
    pub(super) control: Vec<ControlMessage>,
}

pub(super) fn receive_message(socket: &UdpSocket, buffer: &mut [u8], flags: c_int) -> io::Result<Received> {
    let mut control = Control([0; 512]);
    // SAFETY: both are plain C structures for which all zeros is a valid value.
    let (mut from, mut header): (libc::sockaddr_storage, libc::msghdr) = unsafe { (mem::zeroed(), mem::zeroed()) };
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    header.msg_name = (&raw mut from).cast();
    header.msg_namelen = mem::size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = control.0.len() as _;
    // SAFETY: every pointer in `header` describes a live object of the length stated beside it.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    Ok(Received { length, from, control: control_messages(&header) })
}

/// Copies the control messages out, so that nothing points into the buffer afterwards.
fn control_messages(header: &libc::msghdr) -> Vec<ControlMessage> {
    let mut messages = Vec::new();
    // SAFETY: `header` was filled by `recvmsg`, and its control buffer is alive in the caller.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !next.is_null() && messages.len() < 16 {
        // SAFETY: the macros only give headers that lie wholly inside the control buffer, and the kernel wrote
        // `cmsg_len` bytes for each, headers included; the data is copied without a demand on its alignment.
        unsafe {
            let whole = (*next).cmsg_len as usize;
            let length = whole.saturating_sub(libc::CMSG_LEN(0) as usize);
            let data = std::slice::from_raw_parts(libc::CMSG_DATA(next), length).to_vec();
            messages.push(ControlMessage { level: (*next).cmsg_level, kind: (*next).cmsg_type, data });
            next = libc::CMSG_NXTHDR(header, next);
        }
    }
    messages
}

pub(super) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// Reads an address in the layout of `sockaddr_in` or `sockaddr_in6`.
pub(super) fn address_of(bytes: &[u8]) -> Option<IpAddr> {
    match c_int::from(u16::from_ne_bytes(array(bytes, 0)?)) {
        libc::AF_INET => Some(Ipv4Addr::from(array::<4>(bytes, 4)?).into()),
        libc::AF_INET6 => Some(Ipv6Addr::from(array::<16>(bytes, 8)?).to_canonical()),
        _ => None,
    }
}

/// Reads `struct sock_extended_err` (linux/errqueue.h): errno u32, origin u8, type u8, code u8, pad u8, info u32,
/// data u32; behind it stands the address of who reported.
fn decode_extended_error(data: &[u8], quoted: &[u8]) -> SocketReport {
    known_report(data, quoted).unwrap_or(SocketReport::Other)
}

fn known_report(data: &[u8], quoted: &[u8]) -> Option<SocketReport> {
    /// ICMP "destination unreachable: fragmentation needed" (RFC 792) and ICMPv6 "packet too big" (RFC 4443).
    const FRAGMENTATION_NEEDED: (u8, u8) = (3, 4);
    const PACKET_TOO_BIG: u8 = 2;
    /// "Time to live exceeded in transit" (RFC 792) and "hop limit exceeded in transit" (RFC 4443).
    const TTL_EXCEEDED: (u8, u8) = (11, 0);
    const HOP_LIMIT_EXCEEDED: (u8, u8) = (3, 0);
    let errno = u32::from_ne_bytes(array(data, 0)?);
    let [origin, kind, code, _] = array(data, 4)?;
    let mtu = u32::from_ne_bytes(array(data, 8)?);
    let quoted = quoted.to_vec();
    let offender = || data.get(16..).and_then(address_of);
    let by = match (origin, (kind, code)) {
        (libc::SO_EE_ORIGIN_LOCAL, _) if errno == libc::EMSGSIZE as u32 => TooLargeBy::Host,
        (libc::SO_EE_ORIGIN_ICMP, FRAGMENTATION_NEEDED) | (libc::SO_EE_ORIGIN_ICMP6, (PACKET_TOO_BIG, _)) => {
            TooLargeBy::Router(offender()?)
        }
        (libc::SO_EE_ORIGIN_ICMP, TTL_EXCEEDED) | (libc::SO_EE_ORIGIN_ICMP6, HOP_LIMIT_EXCEEDED) => {
            return Some(SocketReport::TimeExceeded { router: offender()?, quoted });
        }
        _ => return None,
    };
    Some(SocketReport::TooLarge(TooLarge { by, mtu, quoted }))
}

/// Takes the oldest report that the kernel kept for the socket, without waiting; none when there is no more.
pub fn next_report(socket: &UdpSocket) -> io::Result<Option<SocketReport>> {
    let mut quoted = [0; 128];
    let received = match receive_message(socket, &mut quoted, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) {
        Ok(received) => received,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        Err(error) => return Err(error),
    };
    let quoted = quoted.get(..received.length).unwrap_or(&[]);
    let report = received.control.iter().find_map(|message| match (message.level, message.kind) {
        (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
            Some(decode_extended_error(&message.data, quoted))
        }
        _ => None,
    });
    Ok(Some(report.unwrap_or(SocketReport::Other)))
}

/// Receives one datagram: its length, its sender, and the address to which it came if the kernel told.
pub fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr, Option<IpAddr>)> {
    let received = receive_message(socket, buffer, 0)?;
    // SAFETY: a `sockaddr_storage` is plain bytes without a demand on their value; the slice ends with it.
    let from =
        unsafe { std::slice::from_raw_parts((&raw const received.from).cast::<u8>(), mem::size_of::<libc::sockaddr_storage>()) };
    let sender = sender_of(from).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    let destination = received.control.iter().find_map(|message| match (message.level, message.kind) {
        // `struct in_pktinfo`: interface u32, the local address, the address in the header.
        (libc::IPPROTO_IP, libc::IP_PKTINFO) => array::<4>(&message.data, 8).map(|a| Ipv4Addr::from(a).into()),
        // `struct in6_pktinfo`: the address in the header, interface u32.
        (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => array::<16>(&message.data, 0).map(|a| Ipv6Addr::from(a).into()),
        _ => None,
    });
    Ok((received.length, sender, destination))
}

/// Reads the address and port of a sender, and the scope of a link-local one.
fn sender_of(bytes: &[u8]) -> Option<SocketAddr> {
    let port = u16::from_be_bytes(array(bytes, 2)?);
    match c_int::from(u16::from_ne_bytes(array(bytes, 0)?)) {
        libc::AF_INET => Some(SocketAddr::new(Ipv4Addr::from(array::<4>(bytes, 4)?).into(), port)),
        libc::AF_INET6 => {
            let scope = u32::from_ne_bytes(array(bytes, 24)?);
            let address = Ipv6Addr::from(array::<16>(bytes, 8)?);
            Some(std::net::SocketAddrV6::new(address, port, 0, scope).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extended(errno: u32, origin: u8, kind: u8, code: u8, mtu: u32, offender: &[u8]) -> Vec<u8> {
        let mut data = errno.to_ne_bytes().to_vec();
        data.extend([origin, kind, code, 0]);
        data.extend(mtu.to_ne_bytes());
        data.extend(0u32.to_ne_bytes());
        data.extend(offender);
        data
    }

    #[test]
    fn reports_of_the_kernel_are_told_apart() {
        let mut router = (libc::AF_INET as u16).to_ne_bytes().to_vec();
        router.extend([0, 0, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        let router6_address = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
        let mut router6 = (libc::AF_INET6 as u16).to_ne_bytes().to_vec();
        router6.extend([0; 6]);
        router6.extend(router6_address.octets());
        router6.extend([0; 4]);
        let late = |router| SocketReport::TimeExceeded { router, quoted: vec![7] };
        let large = |by, mtu| SocketReport::TooLarge(TooLarge { by, mtu, quoted: vec![7] });
        let by_router = TooLargeBy::Router(Ipv4Addr::new(192, 0, 2, 1).into());
        let emsgsize = libc::EMSGSIZE as u32;
        for (name, data, report) in [
            ("the own interface", extended(emsgsize, 1, 0, 0, 1500, &[]), large(TooLargeBy::Host, 1500)),
            ("a router", extended(emsgsize, 2, 3, 4, 1400, &router), large(by_router, 1400)),
            ("a router that names zero", extended(emsgsize, 2, 3, 4, 0, &router), large(by_router, 0)),
            ("a used up TTL", extended(113, 2, 11, 0, 0, &router), late(Ipv4Addr::new(192, 0, 2, 1).into())),
            ("a used up hop limit", extended(113, 3, 3, 0, 0, &router6), late(router6_address.into())),
            (
                "a packet too big",
                extended(emsgsize, 3, 2, 0, 1280, &router6),
                large(TooLargeBy::Router(router6_address.into()), 1280),
            ),
            ("fragments that did not come in time", extended(113, 2, 11, 1, 0, &router), SocketReport::Other),
            ("a closed port", extended(111, 2, 3, 3, 0, &router), SocketReport::Other),
            ("a router without address", extended(emsgsize, 2, 3, 4, 1400, &[]), SocketReport::Other),
            ("half a structure", vec![1, 2, 3, 4, 5], SocketReport::Other),
        ] {
            assert_eq!(decode_extended_error(&data, &[7]), report, "{name}");
        }
    }

    #[test]
    fn the_kernel_tells_the_interface_and_the_destination() {
        let here = UdpSocket::bind("127.0.0.1:0").unwrap();
        report_destination(&here).unwrap();
        let there = UdpSocket::bind("127.0.0.1:0").unwrap();
        keep_reports(&there).unwrap();
        forbid_fragments(&there).unwrap();
        there.connect(here.local_addr().unwrap()).unwrap();
        assert!(route_mtu(&there).unwrap() >= 1500);
        there.send(b"word").unwrap();
        let mut buffer = [0; 16];
        let (length, sender, destination) = receive(&here, &mut buffer).unwrap();
        assert_eq!((length, sender), (4, there.local_addr().unwrap()));
        assert_eq!(destination, Some(Ipv4Addr::LOCALHOST.into()));
        assert_eq!(next_report(&there).unwrap(), None);
    }

    #[test]
    fn a_ttl_of_its_own_is_that_of_one_datagram_either_way() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(here) = UdpSocket::bind(address) else { continue };
            let v4 = is_v4(&here).unwrap();
            let (level, ask) =
                if v4 { (libc::IPPROTO_IP, libc::IP_RECVTTL) } else { (libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT) };
            set_option(&here, level, ask, 1).unwrap();
            let there = UdpSocket::bind(address).unwrap();
            there.connect(here.local_addr().unwrap()).unwrap();
            let arrived = || {
                let received = receive_message(&here, &mut [0; 16], 0).unwrap();
                received.control.first().map(|message| c_int::from_ne_bytes(array(&message.data, 0).unwrap())).unwrap()
            };
            there.send(b"plain").unwrap();
            let plain = arrived();
            for way in [send_with_ttl, send_with_control, send_with_option] {
                assert_eq!(way(&there, b"word", 7).unwrap(), 4);
                assert_eq!(arrived(), 7, "{address}");
                there.send(b"plain").unwrap();
                assert_eq!(arrived(), plain, "{address}");
            }
        }
    }
}
