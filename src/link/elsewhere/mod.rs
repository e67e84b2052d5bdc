//! Ports of systems that are not Linux: what their portable list and their own programs tell.
//!
//! | part | what it does |
//! |---|---|
//! | decoders (pure) | `ifconfig` with `media` and `lagg` (macOS, the BSDs), `netstat`, `pciconf`, `route`; `answers` and `adapters` (PowerShell) |
//! | facts (pure) | `list` (the portable list alone), `unix` and `windows` (what each decoder found, as interfaces of the model) |
//! | shell | `collect` asks [`crate::sys::ports`] and joins |
//!
//! A fact that no source tells is skipped with the reason; a name or a claim is never taken for a fact. Decoders are bounded in
//! lines, names and lengths, and compiled and tested on every system.

mod adapters;
mod answers;
mod collect;
mod ifconfig;
mod lagg;
mod list;
mod machine;
mod media;
mod netstat;
mod pciconf;
mod recorded;
mod route;
mod script;
mod unix;
mod windows;

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;

pub use recorded::{from_pciconf, from_programs};

pub(super) use collect::{collect, collect_all, counters, leaves_by, used};
