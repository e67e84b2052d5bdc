//! Which interface carries the traffic to the peer, everything below it, and what each part says of itself.
//!
//! | part | what it does |
//! |---|---|
//! | decoders (pure) | `rtnl` (route netlink), `ethtool`, `pcie`, `bond`, `lldp`, `cdp`, `lacp`, `lldpctl`, `klog_line` (the kernel's log), the parsers of `/proc` in `route` and `counters`, those of `nic` |
//! | engine (pure) | `kind` (what an interface is), `stack` (what stands on what), `hash` and `spread` (which port of an aggregation a connection leaves by), `team` |
//! | other systems | `elsewhere`: what macOS, the BSDs and Windows tell by their own list and programs |
//! | shell | `tree` (files below a root), `bus`, `nic` (port, PHY and driver), `interface` (all facts of one), `collect` (all joined), `whole` (all ports and addresses of the host), `neighbour` (hears the switch), `klog` (reads the kernel's log) |
//!
//! Every fact is taken from the best source that answers, and carries its name. A source that a kernel, a
//! container or another system lacks costs the fact, with the reason, and nothing else. Files are read below
//! a root, so a recorded machine reads like the real one.

mod bond;
mod bus;
mod cdp;
mod collect;
mod counters;
mod elsewhere;
mod ethtool;
mod facts;
mod hash;
mod interface;
mod kind;
mod klog;
mod klog_line;
mod lacp;
mod lldp;
mod lldpctl;
mod neighbour;
mod nic;
mod pcie;
mod peer;
mod route;
#[cfg(target_os = "linux")]
mod rtnl;
mod spread;
mod stack;
mod team;
mod tree;
mod whole;

#[cfg(test)]
mod bond_tests;
#[cfg(test)]
mod tests;

pub use bond::parse as parse_bond;
pub use cdp::decode as decode_cdp;
pub use collect::{collect, dead_port, leaves_by};
pub use counters::{counters, host_interface_names};
pub use elsewhere::{from_pciconf, from_programs};
pub use hash::{Frame, Policy, Transport, predicted_port};
pub use klog::{LogFollower, events};
pub use lacp::decode as decode_lacp;
pub use lldp::decode as decode_lldp;
pub use lldpctl::from_lldpctl;
pub use neighbour::{LISTEN, listen, ports};
pub use peer::{Peer, link_local_interfaces};
pub use route::local_addr_towards;
pub use spread::{Flow, Headers, check as check_flows, flows_for_all, headers, plan as plan_flows};
pub use team::{TeamPort, TeamState, from_teamdctl};
pub use tree::Tree;
pub use whole::collect_all;

pub use crate::model::counter::{explain, meaning};
