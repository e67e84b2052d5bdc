//! The passes against an iperf3 server.

use std::net::SocketAddr;
use std::time::Duration;

use crate::model::outcome::Outcome;
use crate::model::plan::ThroughputPlan;
use crate::model::throughput::{DirectionThroughput, FarEnd, ThroughputSection};
use crate::session::error::SessionError;
use crate::session::event::Events;
use crate::session::foreign::Iperf3Settings;

/// How long all tests take at most.
pub fn expected(_plan: &ThroughputPlan) -> Duration {
    Duration::from_secs(10)
}

/// The whole step.
pub async fn measure(
    _settings: &Iperf3Settings,
    _events: &Events,
    _peer: SocketAddr,
    _interfaces: &[String],
) -> Result<ThroughputSection, SessionError> {
    let none = || DirectionThroughput::skipped("not written yet");
    Ok(ThroughputSection { far_end: FarEnd::Iperf3Server, ..ThroughputSection::new(none(), none(), Outcome::skipped("")) })
}
