//! Which port of an aggregation each connection leaves by: foretold from the kernel's rules, and held against the ports' counters.
//!
//! | part | what it does |
//! |---|---|
//! | `choice` (pure) | what an aggregation's mode makes of a packet, and its usable ports |
//! | `count` (pure) | how many connections reach all ports |
//! | `plan` (pure) | connections → ports |
//! | `says` (pure) | what that means for a copy, in sentences |
//! | `check` (pure) | the prediction beside what the ports sent |
//! | `headers` (shell) | MAC addresses, VLAN and kernel release that the hash needs |
//!
//! Each end hashes only what it sends. What it receives is spread by the switch, by a hash that nobody tells: that side can only
//! be measured. The same goes for the team driver, whose hash is a program of teamd's, and for other systems than Linux.

mod check;
mod choice;
mod count;
mod headers;
mod plan;
mod says;

#[cfg(test)]
mod tests;

pub use check::check;
pub use count::flows_for_all;
pub(super) use headers::mac_of;
pub use headers::{Headers, headers};
pub use plan::{Flow, plan};
