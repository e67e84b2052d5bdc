//! The hash over the headers of one frame.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::policy::Policy;
use super::release::{Folding, LowestBit, Ports, Rules, TypeWord};

/// `ETH_P_IP`.
const IPV4: u16 = 0x0800;
/// `ETH_P_IPV6`.
const IPV6: u16 = 0x86dd;

/// What the driver sees of one frame that a host sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The MAC address that it carries as its source: that of the interface whose address is used, mostly the bond's.
    pub source_mac: [u8; 6],
    /// The MAC address that it goes to: the peer's in the same subnet, else the gateway's.
    pub next_hop_mac: [u8; 6],
    /// The VLAN tag's 16 bits (priority included) where a VLAN stands on the bond; the kernel carries it beside the frame.
    pub vlan: Option<u16>,
    /// Our address and port.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// Whether the ports can be read.
    pub transport: Transport,
}

/// Whether a packet shows ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A whole TCP or UDP packet.
    WithPorts,
    /// A fragment, or another protocol: the policies with ports count the addresses alone.
    WithoutPorts,
}

/// How the host lays out numbers: the driver reads header fields as numbers of the host without turning them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteOrder {
    /// x86, ARM and nearly all others.
    Little,
    /// Some MIPS and PowerPC.
    Big,
}

impl ByteOrder {
    /// This host's.
    pub(super) const HOST: Self = if cfg!(target_endian = "big") { Self::Big } else { Self::Little };

    const fn number(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }
}

/// The four words of an address exclusive-or'ed (`ipv6_addr_hash`), or the one of an IPv4 address.
fn address(ip: IpAddr, order: ByteOrder) -> u32 {
    match ip {
        IpAddr::V4(v4) => order.number(v4.octets()),
        IpAddr::V6(v6) => words(v6, order).into_iter().fold(0, |hash, word| hash ^ word),
    }
}

fn words(address: Ipv6Addr, order: ByteOrder) -> [u32; 4] {
    let mut octets = address.octets().into_iter();
    let mut next = || octets.next().unwrap_or(0);
    [(); 4].map(|()| order.number([next(), next(), next(), next()]))
}

/// The last bytes of both MAC addresses.
fn macs(frame: &Frame) -> u32 {
    let ([.., from], [.., to]) = (frame.source_mac, frame.next_hop_mac);
    u32::from(from ^ to)
}

/// The layer 2 hash: the last bytes of both MAC addresses, and the EtherType as the rules have it.
fn ethernet(frame: &Frame, rules: Rules, order: ByteOrder) -> u32 {
    let kind = if frame.remote.is_ipv4() { IPV4 } else { IPV6 };
    let kind = match (rules.type_word, order) {
        (TypeWord::LeftOut, _) => 0,
        (TypeWord::AsSent, ByteOrder::Little) => kind.swap_bytes(),
        (TypeWord::AsSent, ByteOrder::Big) | (TypeWord::Number, _) => kind,
    };
    macs(frame) ^ u32::from(kind)
}

/// Both ports, the source's first, as they stand in the header.
fn ports(frame: &Frame, order: ByteOrder) -> u32 {
    match frame.transport {
        Transport::WithoutPorts => 0,
        Transport::WithPorts => {
            let ([a, b], [c, d]) = (frame.local.port().to_be_bytes(), frame.remote.port().to_be_bytes());
            order.number([a, b, c, d])
        }
    }
}

/// The hash of `policy` over `frame`; none where it cannot be known: a random number of the socket, or ports that the
/// driver of this release reads from a wrong place.
pub(super) fn hash(policy: Policy, frame: &Frame, rules: Rules, order: ByteOrder) -> Option<u32> {
    match policy {
        // `skb->hash`, which TCP draws at random for each connection, goes before the headers.
        Policy::Encap34 => None,
        Policy::VlanSrcMac => Some(vlan_and_source(frame)),
        Policy::Layer2 => Some(ethernet(frame, rules, order)),
        _ if rules.folding == Folding::Old => Some(old(policy, frame, order)),
        Policy::Layer23 | Policy::Encap23 => Some(folded(policy, ethernet(frame, rules, order), frame, rules, order)),
        Policy::Layer34 if rules.ports == Ports::Misread && frame.transport == Transport::WithPorts => None,
        Policy::Layer34 => Some(folded(policy, ports(frame, order), frame, rules, order)),
    }
}

/// Since 3.13: the addresses join `start`, then the upper bits are folded into the lower ones.
fn folded(policy: Policy, start: u32, frame: &Frame, rules: Rules, order: ByteOrder) -> u32 {
    let mut hash = start ^ address(frame.remote.ip(), order) ^ address(frame.local.ip(), order);
    hash ^= hash >> 16;
    hash ^= hash >> 8;
    match rules.lowest_bit {
        LowestBit::Dropped => hash >> 1,
        LowestBit::DroppedWithPorts if policy.tells_connections_apart() => hash >> 1,
        LowestBit::DroppedWithPorts | LowestBit::Kept => hash,
    }
}

/// Before 3.13: 16 bits of IPv4 addresses as numbers, or the last three words of IPv6 addresses with all bytes in the lowest.
fn old(policy: Policy, frame: &Frame, order: ByteOrder) -> u32 {
    let with_ports = policy.tells_connections_apart() && frame.transport == Transport::WithPorts;
    let ports = if with_ports { u32::from(frame.local.port() ^ frame.remote.port()) } else { 0 };
    let macs = if policy.tells_connections_apart() { 0 } else { macs(frame) };
    match (frame.local.ip(), frame.remote.ip()) {
        (IpAddr::V6(local), IpAddr::V6(remote)) => {
            let both = words(local, order).into_iter().zip(words(remote, order)).skip(1);
            let hash = both.fold(ports, |hash, (from, to)| hash ^ from ^ to);
            hash ^ (hash >> 24) ^ (hash >> 16) ^ (hash >> 8) ^ macs
        }
        (local, remote) => {
            let addresses = address(local, ByteOrder::Big) ^ address(remote, ByteOrder::Big);
            ports ^ (addresses & 0xffff) ^ macs
        }
    }
}

/// The tag, and both halves of the own MAC address.
fn vlan_and_source(frame: &Frame) -> u32 {
    let (vendor, device) = frame.source_mac.split_at(3);
    let number = |half: &[u8]| half.iter().fold(0, |number: u32, byte| number << 8 | u32::from(*byte));
    u32::from(frame.vlan.unwrap_or(0)) ^ number(vendor) ^ number(device)
}
