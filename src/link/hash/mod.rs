//! The transmit hash of the Linux bonding driver: which port of an aggregation a frame leaves by.
//!
//! | part | what it does |
//! |---|---|
//! | `policy` | the six policies and what each of them looks at |
//! | `release` | which of the driver's historical rules a kernel of a given release follows |
//! | `frame` | the hash itself, over the headers of one frame |
//! | `predict` | the hash's port among the usable ones, where all rules that the kernel may follow agree |
//!
//! All of it is pure. A kernel whose release does not tell which rules it follows (a distribution's kernel carries
//! newer code than its number says) is asked for every set of rules that it may follow; they must agree, or no port is named.

mod frame;
mod policy;
mod predict;
mod release;

#[cfg(test)]
mod tests;

pub use frame::{Frame, Transport};
pub use policy::Policy;
pub use predict::predicted_port;
pub(super) use release::has_array;
