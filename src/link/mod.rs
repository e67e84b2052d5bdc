//! Which interface carries the traffic to the peer, everything below it, and what each part says of itself.
//!
//! | part | what it does |
//! |---|---|
//! | decoders (pure) | `rtnl` (route netlink), `ethtool`, `bond`, `lldp`, `cdp`, `lacp`, `lldpctl`, the parsers of `/proc` in `route` and `counters` |
//! | engine (pure) | `kind` (what an interface is), `stack` (what stands on what) |
//! | shell | `tree` (files below a root), `bus`, `interface` (all facts of one), `collect` (all joined), `whole` (all ports and addresses of the host), `neighbour` (hears the switch) |
//!
//! Every fact is taken from the best source that answers, and carries its name. A source that a kernel, a
//! container or another system lacks costs the fact, with the reason, and nothing else. Files are read below
//! a root, so a recorded machine reads like the real one.

mod bond;
mod bus;
mod cdp;
mod collect;
mod counters;
mod ethtool;
mod facts;
mod interface;
mod kind;
mod lacp;
mod lldp;
mod lldpctl;
mod neighbour;
mod route;
#[cfg(target_os = "linux")]
mod rtnl;
mod stack;
mod tree;
mod whole;

#[cfg(test)]
mod tests;

pub use bond::parse as parse_bond;
pub use cdp::decode as decode_cdp;
pub use collect::collect;
pub use counters::{counters, host_interface_names};
pub use lacp::decode as decode_lacp;
pub use lldp::decode as decode_lldp;
pub use lldpctl::from_lldpctl;
pub use neighbour::{LISTEN, listen, ports};
pub use route::local_addr_towards;
pub use tree::Tree;
pub use whole::collect_all;
