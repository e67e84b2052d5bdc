//! The other end of a connection, with the interface that its address belongs to.

use std::net::{IpAddr, SocketAddr, SocketAddrV6};

/// An address of another host; a link-local one means another host on each interface, so it comes with its scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The address, never an IPv4 one mapped into IPv6.
    pub address: IpAddr,
    /// The number of the interface that a link-local IPv6 address belongs to (RFC 4007); 0 where none was given or none is needed.
    pub scope: u32,
}

impl Peer {
    /// The interface that the scope names; none for addresses that need no scope.
    pub(super) const fn interface(self) -> Option<u32> {
        if self.scope != 0 && self.is_link_local() { Some(self.scope) } else { None }
    }

    /// Whether the address is valid on one link only.
    pub(super) const fn is_link_local(self) -> bool {
        matches!(self.address, IpAddr::V6(v6) if v6.is_unicast_link_local())
    }

    /// The same with a port, as sockets take it.
    pub(super) const fn socket(self, port: u16) -> SocketAddr {
        match self.address {
            IpAddr::V6(v6) => SocketAddr::V6(SocketAddrV6::new(v6, port, 0, self.scope)),
            IpAddr::V4(_) => SocketAddr::new(self.address, port),
        }
    }

    /// Reads `ADDRESS` or `ADDRESS%SCOPE`, the scope as an interface's name on this host or as its number.
    pub fn parse(text: &str) -> Option<Self> {
        Self::parse_with(text, |name| {
            let listed = if_addrs::get_if_addrs().ok()?;
            listed.into_iter().find(|interface| interface.name == name)?.index
        })
    }

    fn parse_with(text: &str, index_of: impl FnOnce(&str) -> Option<u32>) -> Option<Self> {
        let Some((address, scope)) = text.split_once('%') else { return Some(text.parse::<IpAddr>().ok()?.into()) };
        let address = IpAddr::V6(address.parse().ok()?);
        // A name comes first, as an interface may be named by a number.
        let scope = match index_of(scope) {
            Some(index) => index,
            None => scope.parse().ok()?,
        };
        Some(Self { address, scope })
    }
}

impl From<IpAddr> for Peer {
    fn from(address: IpAddr) -> Self {
        Self { address: address.to_canonical(), scope: 0 }
    }
}

impl From<SocketAddr> for Peer {
    fn from(address: SocketAddr) -> Self {
        let scope = match address {
            SocketAddr::V6(v6) => v6.scope_id(),
            SocketAddr::V4(_) => 0,
        };
        Self { scope, ..address.ip().into() }
    }
}

/// The interfaces of this host that a link-local IPv6 address may belong to: those with such an address themselves, sorted.
pub fn link_local_interfaces() -> Vec<String> {
    let listed = if_addrs::get_if_addrs().unwrap_or_default();
    let fits = |address| Peer::from(address).is_link_local();
    let names: std::collections::BTreeSet<_> = listed.into_iter().filter(|it| fits(it.ip())).map(|it| it.name).collect();
    names.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_a_name_or_a_number_and_counts_for_link_local_addresses_only() {
        let index_of = |name: &str| (name == "eth0").then_some(7);
        for (text, scope, interface) in [
            ("fe80::1%eth0", 7, Some(7)),
            ("fe80::1%3", 3, Some(3)),
            ("fe80::1", 0, None),
            ("2001:db8::1%3", 3, None),
            ("192.0.2.1", 0, None),
        ] {
            let peer = Peer::parse_with(text, index_of).unwrap();
            assert_eq!((peer.scope, peer.interface()), (scope, interface), "{text}");
        }
        for bad in ["fe80::1%gone", "192.0.2.1%eth0", "%eth0", "nas", "fe80::1%", "fe80::1%99999999999"] {
            assert_eq!(Peer::parse_with(bad, index_of), None, "{bad}");
        }
    }

    #[test]
    fn a_socket_address_keeps_its_scope_both_ways() {
        let address = SocketAddr::V6(SocketAddrV6::new("fe80::1".parse().unwrap(), 9, 0, 4));
        assert_eq!(Peer::from(address).socket(9), address);
        let mapped: SocketAddr = "[::ffff:192.0.2.1]:9".parse().unwrap();
        assert_eq!(Peer::from(mapped).socket(9), "192.0.2.1:9".parse().unwrap());
    }
}
