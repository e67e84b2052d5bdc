//! What a port, its PHY and its driver say of themselves: one set of facts from four sources.
//!
//! | part | what it does |
//! |---|---|
//! | decoders (pure) | `netlink` (generic netlink's family "ethtool": questions and replies), `structures` (the ethtool ioctl), `modes` (names and speeds of link modes), `module` (a plugged module's memory), `interrupts` (`/proc/interrupts`) |
//! | engine (pure) | `pause` (what flow control two ends agree on), `hardware` (what a chip can do, by its number) |
//! | shell | `ask` (who answers for one port), `collect` (all facts joined) |
//!
//! ethtool's netlink comes first (kernel 5.6), then its ioctl, then files: the first that answers gives the fact its source.

mod ask;
mod collect;
mod hardware;
mod interrupts;
mod modes;
mod module;
mod netlink;
mod pause;
mod structures;

#[cfg(test)]
mod tests;

pub(super) use ask::{Link, Port};
pub(super) use collect::{Around, collect};
pub(super) use modes::{Mask, Masks};
