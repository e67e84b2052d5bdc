//! Sockets for ICMP echo: ping sockets, which a group of users may open, and raw ones, which need CAP_NET_RAW.
#![expect(unsafe_code, reason = "ICMP filters and the address of a sender, which std and socket2 do not have")]

use std::ffi::c_int;
use std::io;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use super::udp::{self, SocketReport, array, receive_message, set_option};
pub use crate::sys::report::EchoArrival;

/// `ICMP_FILTER` at the level `SOL_RAW` (linux/icmp.h): a bit that is set keeps the type back.
const ICMP_FILTER: c_int = 1;

/// `ICMPV6_FILTER` at the level of ICMPv6 (linux/icmpv6.h): 256 bits, one that is set keeps the type back.
const ICMPV6_FILTER: c_int = 1;

/// Echo reply and destination unreachable (RFC 792).
const WANTED_V4: [u32; 2] = [0, 3];

/// Packet too big and echo reply (RFC 4443).
const WANTED_V6: [u32; 2] = [2, 129];

/// Room for a burst of large answers.
const SOCKET_BUFFER: usize = 1 << 20;

/// A socket that sends ICMP echo requests whole or not at all, and receives what answers them.
#[derive(Debug)]
pub struct EchoSocket {
    /// std's calls for datagrams fit every protocol of datagrams.
    socket: UdpSocket,
    raw: bool,
}

impl EchoSocket {
    /// A ping socket for the protocol of `peer`; the kernel chooses the identifier.
    ///
    /// # Errors
    /// `PermissionDenied` when the user's group is not in `net.ipv4.ping_group_range`; where fragments cannot be forbidden.
    pub fn ping(peer: IpAddr) -> io::Result<Self> {
        let socket = open(peer, Type::DGRAM)?;
        let any: IpAddr = if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        // Binding is what gives it the identifier.
        socket.bind(&SocketAddr::new(any, 0).into())?;
        Self::of(socket, false)
    }

    /// A raw socket for the protocol of `peer`.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_NET_RAW; where fragments cannot be forbidden.
    pub fn raw(peer: IpAddr) -> io::Result<Self> {
        let socket = open(peer, Type::RAW)?;
        // Without the filter more arrives, and the reader throws it away.
        let _ = filter(&socket, peer.is_ipv4());
        Self::of(socket, true)
    }

    fn of(socket: Socket, raw: bool) -> io::Result<Self> {
        // Less room only means more loss in a burst.
        let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
        let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
        let socket = UdpSocket::from(socket);
        udp::forbid_fragments(&socket)?;
        // A kernel that does not know one of these only tells less.
        let _ = udp::keep_reports(&socket);
        let (level, name) = if socket.local_addr()?.is_ipv4() {
            (libc::IPPROTO_IP, libc::IP_RECVFRAGSIZE)
        } else {
            (libc::IPPROTO_IPV6, libc::IPV6_RECVFRAGSIZE)
        };
        let _ = set_option(&socket, level, name, 1);
        Ok(Self { socket, raw })
    }

    /// The identifier that the kernel puts into every request of a ping socket; none for a raw one, which carries any.
    pub fn identifier(&self) -> Option<u16> {
        let address = self.socket.local_addr().ok().filter(|_| !self.raw)?;
        Some(address.port())
    }

    /// Whether what arrives begins with the header of IPv4.
    pub fn has_header(&self) -> bool {
        self.raw && self.socket.local_addr().is_ok_and(|address| address.is_ipv4())
    }

    /// Sends one ICMP message; the port of `peer` is not heeded.
    ///
    /// # Errors
    /// Those of `sendto`; some belong to an earlier message, of which [`Self::next_report`] tells.
    pub fn send(&self, message: &[u8], peer: SocketAddr) -> io::Result<()> {
        let peer = match peer {
            // A raw socket of IPv6 takes the port for a protocol.
            SocketAddr::V6(mut v6) => {
                v6.set_port(0);
                SocketAddr::V6(v6)
            }
            v4 @ SocketAddr::V4(_) => v4,
        };
        self.socket.send_to(message, peer).map(|_| ())
    }

    /// Waits up to `patience` for a message.
    ///
    /// # Errors
    /// `WouldBlock` when the time is over; the error of an earlier message, of which [`Self::next_report`] tells.
    pub fn receive(&self, buffer: &mut [u8], patience: Duration) -> io::Result<EchoArrival> {
        self.socket.set_read_timeout(Some(patience.max(Duration::from_micros(1))))?;
        let received = receive_message(&self.socket, buffer, 0)?;
        // SAFETY: a `sockaddr_storage` is plain bytes without a demand on their value; the slice ends with it.
        let from = unsafe {
            std::slice::from_raw_parts((&raw const received.from).cast::<u8>(), mem::size_of::<libc::sockaddr_storage>())
        };
        let from = udp::address_of(from).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
        let fragment = received.control.iter().find_map(|message| match (message.level, message.kind) {
            (libc::IPPROTO_IP, libc::IP_RECVFRAGSIZE) | (libc::IPPROTO_IPV6, libc::IPV6_RECVFRAGSIZE) => {
                let bytes = array::<4>(&message.data, 0)?;
                u32::try_from(c_int::from_ne_bytes(bytes)).ok().filter(|size| *size > 0)
            }
            _ => None,
        });
        Ok(EchoArrival { length: received.length, from, fragment })
    }

    /// Takes the oldest report that the kernel kept, without waiting. What it quotes begins with the ICMP header.
    ///
    /// # Errors
    /// Those of `recvmsg`.
    pub fn next_report(&self) -> io::Result<Option<SocketReport>> {
        udp::next_report(&self.socket)
    }
}

fn open(peer: IpAddr, kind: Type) -> io::Result<Socket> {
    if peer.is_ipv4() {
        Socket::new(Domain::IPV4, kind, Some(Protocol::ICMPV4))
    } else {
        Socket::new(Domain::IPV6, kind, Some(Protocol::ICMPV6))
    }
}

/// Keeps from a raw socket what is of no use here, such as the requests of others and neighbour discovery.
fn filter(socket: &Socket, v4: bool) -> io::Result<()> {
    let mut mask = [u32::MAX; 8];
    let (level, name, words) = if v4 { (libc::SOL_RAW, ICMP_FILTER, 1) } else { (libc::IPPROTO_ICMPV6, ICMPV6_FILTER, 8) };
    let wanted = if v4 { WANTED_V4 } else { WANTED_V6 };
    for kind in wanted {
        if let Some(word) = mask.get_mut((kind / 32) as usize) {
            *word &= !(1 << (kind % 32));
        }
    }
    let length = (words * mem::size_of::<u32>()) as libc::socklen_t;
    // SAFETY: the pointer is that of `mask`, which outlives the call, and the length is at most its size.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, mask.as_ptr().cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
