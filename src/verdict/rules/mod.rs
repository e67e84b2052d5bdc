//! The rules, one kind of fault a file: code, what the user reads about it, check, tests.
//!
//! A check looks at the facts and offers explanations ([`Hit`]); whether one is needed, the ladder says.

mod addresses;
mod background_load;
mod both_ways;
mod bufferbloat;
mod busy_link;
mod cable_errors;
mod congestion;
mod content;
mod datagrams;
mod detour;
mod disk_fault;
mod disk_rate;
mod duplex;
mod file_protocol;
mod flow_control;
mod hop;
mod jumbo;
mod lag;
mod lag_faults;
mod lag_ports;
mod lane_route;
mod lane_slower;
mod link_capability;
mod link_outcomes;
mod list;
mod loss;
mod mtu_advice;
mod mtu_black_hole;
mod mtu_mismatch;
mod mtu_outcomes;
mod mtu_routers;
mod mtu_suspects;
mod mtu_tcp;
mod nic_bus;
mod no_link;
mod offloads;
mod outcomes;
mod overruns;
mod own_copy;
mod routed;
mod server_core;
mod sharing;
mod small_files;
mod speed_step;
mod ssh;
mod stack_core;
mod stalls;
mod tcp_window;
mod unstable;

#[cfg(test)]
mod busy_tests;
#[cfg(test)]
mod counter_tests;
#[cfg(test)]
mod lag_tests;
#[cfg(test)]
mod link_answer_tests;
#[cfg(test)]
mod link_tests;
#[cfg(test)]
mod mtu_tests;
#[cfg(test)]
mod noise_tests;
#[cfg(test)]
mod phase_tests;
#[cfg(test)]
mod rate_tests;
#[cfg(test)]
mod tests;

pub(super) use datagrams::wire as udp_wire;
pub(super) use hop::line_level;
pub(super) use link_outcomes::{LINKS_CONSISTENT, LINKS_UNKNOWN};
pub(super) use list::{Explains, Hit, check_all};
pub use list::{RuleDoc, explain, rules};
pub(super) use mtu_advice::known_reason;
pub(super) use mtu_black_hole::{Hole, clamped, full_size, lossy};
pub(super) use mtu_outcomes::{MTU_CONSISTENT, MTU_UNKNOWN};
pub(super) use mtu_tcp::{clamps, headers};
pub(super) use outcomes::{AS_ASKED, AT_DEVICE_CLASS, AT_LINE_RATE, TOO_LITTLE, TOOL_LIMIT, UNEXPLAINED};
pub(super) use sharing::nas_wire;
pub(super) use stalls::outage;
