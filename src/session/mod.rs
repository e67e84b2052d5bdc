//! The two ends of one diagnosis.
//!
//! `channel` is the encrypted control connection, `agent` the end that serves (`served` one client of it),
//! `client` the end that asks. Each file under `steps` holds one step with both ends in it, so that who says what when is on
//! one screen. `schedule` is pure: how long each step may take. `event` is what others may draw.

pub mod agent;
pub mod alone;
pub mod around;
pub mod channel;
pub mod client;
pub mod dial;
pub mod error;
pub mod event;
pub mod foreign;
pub mod listening;
pub mod schedule;
pub mod served;
pub mod steps;

pub use agent::{Agent, AgentSettings};
pub use alone::{AloneSettings, look_alone};
pub use client::{RunSettings, SshSettings, diagnose};
pub use error::SessionError;
pub use event::{AgentEvent, Event, Events, Step};
pub use foreign::{Iperf3Settings, measure_iperf3};
