//! Frames of one EtherType as they arrive at one interface, without what is above it (bond, bridge, VLAN).
#![expect(unsafe_code, reason = "group memberships of packet sockets have no safe interface")]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::time::Duration;

use pnet::datalink::{self, Channel, ChannelType, Config, DataLinkReceiver, NetworkInterface};
use socket2::{Domain, Socket, Type};

/// No frame that is heard here is longer: an LLDPDU fills one frame of 1500 bytes at most (IEEE 802.1AB, 8.2).
const LONGEST: usize = 2048;

/// A receiver of one EtherType at one interface. The kernel sorts: no other frame wakes this process.
pub struct Frames(Box<dyn DataLinkReceiver>);

fn index_of(interface: &str) -> io::Result<u32> {
    let name = CString::new(interface).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: the pointer is to a string that ends with a zero byte and outlives the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

/// Has the card let the frames of a multicast group in, as long as the socket lives.
fn join(socket: &Socket, index: u32, group: [u8; 6]) -> io::Result<()> {
    let mut address = [0; 8];
    address[..6].copy_from_slice(&group);
    let request = libc::packet_mreq {
        mr_ifindex: index.cast_signed(),
        mr_type: libc::PACKET_MR_MULTICAST as _,
        mr_alen: 6,
        mr_address: address,
    };
    // SAFETY: the pointer and the length describe `request`, which outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            (&raw const request).cast(),
            size_of::<libc::packet_mreq>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

impl Frames {
    /// Listens at `interface` for frames of `ether_type` that are sent to it, to all, or to one of `groups`.
    ///
    /// Needs CAP_NET_RAW (`PermissionDenied` without). Nothing is ever sent, and the card does not become promiscuous.
    pub fn open(interface: &str, ether_type: u16, groups: &[[u8; 6]], wait: Duration) -> io::Result<Self> {
        let index = index_of(interface)?;
        // Without a protocol it receives nothing until pnet binds it to the interface and the EtherType; `Layer3` is pnet's
        // word for a single EtherType, and what arrives is a whole frame, since the socket is a raw one.
        let socket = Socket::new(Domain::PACKET, Type::RAW, None)?;
        for group in groups {
            join(&socket, index, *group)?;
        }
        let interface = NetworkInterface {
            name: interface.to_owned(),
            description: String::new(),
            index,
            mac: None,
            ips: Vec::new(),
            flags: 0,
        };
        let config = Config {
            read_buffer_size: LONGEST,
            read_timeout: Some(wait),
            channel_type: ChannelType::Layer3(ether_type),
            promiscuous: false,
            // From here on pnet owns it, and closes it on errors too.
            socket_fd: Some(socket.into_raw_fd()),
            ..Config::default()
        };
        match datalink::channel(&interface, config)? {
            Channel::Ethernet(_, receiver) => Ok(Self(receiver)),
            _ => Err(io::Error::from(io::ErrorKind::Unsupported)),
        }
    }

    /// The next frame from its destination address on, without a VLAN tag that the kernel took off; none when nothing came
    /// within the time to wait. After an error, such as that the interface went down, a new receiver must be opened.
    pub fn receive(&mut self) -> io::Result<Option<&[u8]>> {
        match self.0.next() {
            Ok(frame) => Ok(Some(frame)),
            Err(error) => match error.kind() {
                io::ErrorKind::TimedOut | io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock => Ok(None),
                _ => Err(error),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there_is_an_error() {
        for name in ["no-such-port", "nul\0byte", ""] {
            assert!(Frames::open(name, 0x88cc, &[], Duration::ZERO).is_err(), "{name:?}");
        }
    }
}
