//! The two ends of one diagnosis.
//!
//! `channel` is the encrypted control connection, `agent` the end that serves (`served` one client of it),
//! `client` the end that asks. Each file under `steps` holds one step with both ends in it, so that who says what when is on
//! one screen. `floor` says who may be served at the same time, and `group` how several clients wait for each other.
//! `schedule` is pure: how long each step may take. `event` is what others may draw.

pub mod agent;
pub mod alone;
pub mod around;
pub mod channel;
pub mod client;
pub mod dial;
pub mod error;
pub mod event;
pub mod floor;
pub mod flows;
pub mod foreign;
pub mod group;
pub mod links;
pub mod listening;
pub mod schedule;
pub mod served;
pub mod settings;
pub mod steps;

pub use agent::{Agent, AgentSettings};
pub use alone::{AloneSettings, look_alone};
pub use client::diagnose;
pub use error::SessionError;
pub use event::{AgentEvent, Event, Events, Step};
pub use foreign::{Iperf3Settings, measure_iperf3};
pub use links::{LinkSettings, look_at_links};
pub use settings::{LinkWishes, RunSettings, SshSettings};
