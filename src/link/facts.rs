//! What the kernel's tables say, before it is joined with anything else.

use std::net::IpAddr;

use crate::model::link::BondSettings;

/// Where the route to the peer leads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Route {
    /// The interface's index, unless the source gave only a name.
    pub index: Option<u32>,
    /// The interface's name, unless the source gave only an index.
    pub name: Option<String>,
    /// The address that the kernel would send from.
    pub source: Option<IpAddr>,
    /// The next hop, when the peer is not in our subnet.
    pub gateway: Option<IpAddr>,
    /// Whether the address is this host's own.
    pub own: bool,
}

/// One interface of the kernel's list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LinkRow {
    /// Its index.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// The kind of a virtual one as the kernel names it, such as `bond` or `vlan`.
    pub kind: Option<String>,
    /// The kind of the port that it is for its master, such as `bond` or `bridge`.
    pub port_kind: Option<String>,
    /// The index of the bond, team or bridge that it is a port of.
    pub master: Option<u32>,
    /// The index of the interface that it stands on, in the same network namespace.
    pub lower: Option<u32>,
    /// Its hardware address.
    pub mac: Vec<u8>,
    /// Its MTU in bytes.
    pub mtu: Option<u32>,
    /// Whether it is the loopback interface.
    pub loopback: bool,
    /// Whether it is up, as configured.
    pub up: bool,
    /// Whether it has a carrier.
    pub carrier: Option<bool>,
    /// How often the carrier changed.
    pub carrier_changes: Option<u32>,
    /// The kernel's counters, named as the files of `/sys/class/net/NAME/statistics`; empty when not told.
    pub counters: Vec<(&'static str, u64)>,
    /// Its VLAN, when it is one.
    pub vlan: Option<u16>,
    /// What it says about itself as a bond.
    pub bond: BondRow,
    /// What it says about itself as a bond's port.
    pub port: PortRow,
}

/// A bond's own facts; see `model::link::Bond` for the meanings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BondRow {
    /// The mode in the kernel's short word.
    pub mode: Option<String>,
    /// The hash policy in the kernel's word.
    pub hash_policy: Option<String>,
    /// The index of the port in use.
    pub active_port: Option<u32>,
    /// The active aggregator.
    pub aggregator: Option<u32>,
    /// The number of ports in it.
    pub aggregator_ports: Option<u32>,
    /// The partner's address.
    pub partner_mac: Option<[u8; 6]>,
    /// Our key in the active aggregator.
    pub actor_key: Option<u16>,
    /// The partner's key in the active aggregator.
    pub partner_key: Option<u16>,
    /// The index of the preferred port.
    pub primary: Option<u32>,
    /// How it is set up, but for the preferred port's name.
    pub settings: BondSettings,
}

/// A bond port's own facts; see `model::link::BondPort` for the meanings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PortRow {
    /// Whether it carries traffic as far as the bond's mode goes.
    pub active: Option<bool>,
    /// Whether the bond saw its link up.
    pub up: Option<bool>,
    /// How often its link failed.
    pub failures: Option<u64>,
    /// Its aggregator.
    pub aggregator: Option<u32>,
    /// Our port state.
    pub actor_state: Option<u32>,
    /// The partner's port state.
    pub partner_state: Option<u32>,
    /// Our churn state.
    pub actor_churn: Option<String>,
    /// The partner's churn state.
    pub partner_churn: Option<String>,
    /// The address that the port has by itself.
    pub permanent_mac: Option<Vec<u8>>,
    /// The queue whose packets are forced through it.
    pub queue_id: Option<u16>,
}

/// One entry of the kernel's table of neighbours (ARP and neighbour discovery).
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NeighbourRow {
    /// The interface's index.
    pub index: u32,
    /// Whose it is.
    pub address: IpAddr,
    /// The hardware address.
    pub mac: [u8; 6],
}
