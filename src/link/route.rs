//! Which interface leads to the peer.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use super::Peer;
use super::facts::{LinkRow, Route};
use super::tree::Tree;

/// The address that this host would send from towards `peer`.
///
/// Of TCP, as rules of routing may name the protocol and a connection's address follows them: the kernel is asked for such a route.
/// Where it tells none, a UDP socket is connected, which sends nothing; errors are those of binding and of having no route.
pub fn local_addr_towards(peer: impl Into<Peer>) -> io::Result<IpAddr> {
    let peer = peer.into();
    if let Some(source) = tcp_source(peer) {
        return Ok(source);
    }
    let any: IpAddr = if peer.address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    // The port is of no matter as nothing is sent; 9 is "discard".
    socket.connect(peer.socket(9))?;
    Ok(socket.local_addr()?.ip())
}

/// The address that the kernel would give a TCP connection to `peer`; none where it does not tell, or only the interface decides.
#[cfg(target_os = "linux")]
fn tcp_source(peer: Peer) -> Option<IpAddr> {
    if peer.is_link_local() {
        return None;
    }
    let answer = crate::sys::net::rtnetlink(&super::rtnl::route_request(peer.address, None, true)).ok()?;
    answer.iter().find_map(|message| super::rtnl::decode_route(message))?.source
}

/// There is no netlink here.
#[cfg(not(target_os = "linux"))]
const fn tcp_source(_peer: Peer) -> Option<IpAddr> {
    None
}

/// What the kernel's tables gave.
pub(super) struct Tables {
    /// The interfaces.
    pub rows: Vec<LinkRow>,
    /// The route.
    pub route: Option<Route>,
}

/// Asks the kernel by netlink; what it does not answer stays empty.
#[cfg(target_os = "linux")]
pub(super) fn ask_kernel(local: IpAddr, peer: Peer) -> Tables {
    use super::rtnl;
    use crate::sys::net::rtnetlink;
    // With the source first: policy routing may send from different addresses different ways. Kernels
    // refuse a source that is not theirs, as behind address translation.
    let ask = |source, tcp| rtnetlink(&rtnl::route_request(peer.address, source, tcp));
    // Older kernels refuse the protocol, or do not look at it.
    let answer =
        ask(Some(local), true).or_else(|_| ask(Some(local), false)).or_else(|_| ask(None, true)).or_else(|_| ask(None, false));
    Tables { rows: rows(), route: answer.unwrap_or_default().iter().find_map(|message| rtnl::decode_route(message)) }
}

/// The kernel's list of interfaces; empty when it does not give one.
#[cfg(target_os = "linux")]
pub(super) fn rows() -> Vec<LinkRow> {
    let messages = crate::sys::net::rtnetlink(&super::rtnl::links_request()).unwrap_or_default();
    messages.iter().filter_map(|message| super::rtnl::decode_link(message)).collect()
}

/// What the kernel's bridges have learnt: their ports' indices and the addresses behind these; empty when it does not tell.
#[cfg(target_os = "linux")]
pub(super) fn bridged() -> Vec<(u32, [u8; 6])> {
    let messages = crate::sys::net::rtnetlink(&super::rtnl::bridges_request()).unwrap_or_default();
    messages.iter().filter_map(|message| super::rtnl::decode_bridged(message)).collect()
}

/// There is no netlink here.
#[cfg(not(target_os = "linux"))]
pub(super) const fn bridged() -> Vec<(u32, [u8; 6])> {
    Vec::new()
}

/// There is no netlink here.
#[cfg(not(target_os = "linux"))]
pub(super) const fn rows() -> Vec<LinkRow> {
    Vec::new()
}

/// There is no netlink here.
#[cfg(not(target_os = "linux"))]
pub(super) fn ask_kernel(_local: IpAddr, _peer: Peer) -> Tables {
    Tables { rows: Vec::new(), route: None }
}

/// The route from `/proc/net/route`, for IPv4: of the entries that cover the peer the narrowest, then the least metric.
pub(super) fn from_proc(tree: &Tree, peer: IpAddr) -> Option<Route> {
    let IpAddr::V4(peer) = peer else { return None };
    parse_proc(&tree.read("/proc/net/route").ok()?, peer)
}

fn parse_proc(text: &str, peer: Ipv4Addr) -> Option<Route> {
    /// `RTF_UP`, `RTF_GATEWAY` and `RTF_REJECT` of linux/route.h.
    const UP: u32 = 1;
    const GATEWAY: u32 = 2;
    const REJECT: u32 = 0x200;
    // The kernel prints addresses as its own integers, so in this machine's byte order.
    let number = |hex: &str| u32::from_str_radix(hex, 16).ok();
    let address = |hex: &str| number(hex).map(|raw| Ipv4Addr::from(raw.to_ne_bytes()));
    let entries = text.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [name, destination, gateway, flags, _, _, metric, mask, ..] = fields.as_slice() else { return None };
        let (destination, mask, flags) = (address(destination)?, address(mask)?, number(flags)?);
        let covers = u32::from(peer) & u32::from(mask) == u32::from(destination);
        let metric: u32 = metric.parse().ok()?;
        (covers && flags & UP != 0 && flags & REJECT == 0).then(|| {
            let gateway = (flags & GATEWAY != 0).then(|| address(gateway).map(IpAddr::V4)).flatten();
            let route = Route { name: Some((*name).to_owned()), gateway, ..Route::default() };
            (u32::from(mask), std::cmp::Reverse(metric), route)
        })
    });
    entries.max_by_key(|(mask, metric, _)| (*mask, *metric)).map(|(_, _, route)| route)
}

/// The interfaces that own `local`, where they are several: ports with one hardware address have one link-local address.
pub(super) fn owners(local: IpAddr) -> Vec<String> {
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    interfaces.into_iter().filter(|interface| interface.ip() == local).map(|interface| interface.name).collect()
}

/// Whether the interface with this number has this address.
pub(super) fn owns(index: u32, address: IpAddr) -> bool {
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    interfaces.iter().any(|interface| interface.index == Some(index) && interface.ip() == address)
}

/// The interface that owns `local`, as every operating system tells.
pub(super) fn from_owner(local: IpAddr) -> Option<Route> {
    let interfaces = if_addrs::get_if_addrs().ok()?;
    let owner = interfaces.into_iter().find(|interface| interface.ip() == local)?;
    Some(Route { index: owner.index, name: Some(owner.name), ..Route::default() })
}

/// Whether `peer` is this host's own address.
pub(super) fn is_own(local: IpAddr, peer: IpAddr, tree: &Tree) -> bool {
    let listed = || if_addrs::get_if_addrs().is_ok_and(|all| all.iter().any(|interface| interface.ip() == peer));
    peer == local || peer.is_loopback() || (tree.is_system() && listed())
}

/// The name of the loopback interface.
pub(super) fn loopback_name() -> String {
    let listed = if_addrs::get_if_addrs().unwrap_or_default();
    listed.into_iter().find(if_addrs::Interface::is_loopback).map_or_else(|| "lo".to_owned(), |interface| interface.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_route_wins_and_then_the_least_metric() {
        let hex = |address: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(address));
        let zero = hex([0; 4]);
        let line = |name: &str, to, gateway, flags: u32, metric: u32, mask| {
            format!("{name}\t{to}\t{gateway}\t{flags:04X}\t0\t0\t{metric}\t{mask}\t0\t0\t0\n")
        };
        let text = [
            "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n".to_owned(),
            line("wlan0", zero.clone(), hex([192, 168, 1, 1]), 3, 600, zero.clone()),
            line("eth0", zero.clone(), hex([192, 168, 1, 1]), 3, 100, zero.clone()),
            line("eth0", hex([192, 168, 1, 0]), zero.clone(), 1, 100, hex([255, 255, 255, 0])),
            line("tun0", hex([10, 0, 0, 0]), zero.clone(), 1, 0, hex([255, 0, 0, 0])),
        ]
        .concat();
        for (peer, name, gateway) in
            [([192, 168, 1, 9], "eth0", None), ([8, 8, 8, 8], "eth0", Some([192, 168, 1, 1])), ([10, 1, 1, 1], "tun0", None)]
        {
            let route = parse_proc(&text, peer.into()).unwrap();
            assert_eq!((route.name.as_deref(), route.gateway), (Some(name), gateway.map(IpAddr::from)), "{peer:?}");
        }
        assert_eq!(parse_proc("rubbish\n\n1 2 3\n", Ipv4Addr::LOCALHOST), None);
    }

    #[test]
    fn towards_the_loopback_we_send_from_the_loopback() {
        assert_eq!(local_addr_towards(IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap(), IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
}
