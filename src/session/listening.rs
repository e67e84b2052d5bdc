//! An ear for the switch beside everything else: LLDP frames come every 30 s, so whoever runs that long hears one for nothing.

use std::time::Duration;

use tokio::task::JoinHandle;

use crate::link::LISTEN;
use crate::model::link::{HostLink, Neighbour};
use crate::model::outcome::Outcome;
use crate::session::served::blocking;
use crate::sys::Stop;

/// The longest that an end listens.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// A thread that listens.
#[derive(Debug)]
pub struct Listening {
    task: JoinHandle<Outcome<Vec<Neighbour>>>,
    stop: Stop,
}

impl Listening {
    /// Begins to listen at the ports below a link.
    pub fn start(link: &HostLink) -> Self {
        let ports = crate::link::ports(link);
        let stop = Stop::new();
        let flag = stop.clone();
        let task = tokio::spawn(blocking(move || crate::link::listen(&ports, LONGEST, &flag)));
        Self { task, stop }
    }

    /// What was heard, after waiting at most `wait` for ports that have heard nothing.
    pub async fn end(mut self, wait: Duration) -> Outcome<Vec<Neighbour>> {
        if let Ok(heard) = tokio::time::timeout(wait.min(LISTEN), &mut self.task).await {
            return heard.unwrap_or_else(|_| broke());
        }
        self.stop.set();
        (&mut self.task).await.unwrap_or_else(|_| broke())
    }
}

fn broke() -> Outcome<Vec<Neighbour>> {
    Outcome::failed("listening for the switch broke off")
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop.set();
    }
}
