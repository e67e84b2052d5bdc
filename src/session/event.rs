//! Typed events: what happens, for whoever wants to draw it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::sys::Stop;

/// A step of a diagnosis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Connecting and pairing.
    Connect,
    /// Ports and routes.
    Link,
    /// The largest packet.
    Mtu,
    /// Raw TCP.
    Throughput,
    /// Cipher ceilings.
    Cpu,
    /// Disks.
    Storage,
    /// Copies.
    Copy,
}

impl Step {
    /// The words for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Connect => "connecting",
            Self::Link => "links",
            Self::Mtu => "path MTU",
            Self::Throughput => "TCP throughput",
            Self::Cpu => "ciphers",
            Self::Storage => "disks",
            Self::Copy => "copies",
        }
    }
}

/// Reads how many bytes have moved so far.
pub type Watch = Arc<dyn Fn() -> u64 + Send + Sync>;

/// What happens at the client.
#[derive(Clone)]
pub enum Event {
    /// The run begins and will need at most so long.
    Begin {
        /// The time that all steps need together, as planned.
        expected: Duration,
    },
    /// A part of a step begins.
    Part {
        /// The step.
        step: Step,
        /// Which part, in words.
        what: String,
        /// How long it takes.
        expected: Duration,
        /// The bytes moved so far, where they can be seen from here.
        watch: Option<Watch>,
    },
    /// Something that the user should know now.
    Note(String),
    /// The run is over.
    End,
}

/// What happens at the agent.
#[derive(Clone, Debug)]
pub enum AgentEvent {
    /// It listens here.
    Listening(SocketAddr),
    /// A diagnosis begins.
    Begin(SocketAddr),
    /// A diagnosis is over.
    End(SocketAddr, Result<(), String>),
    /// A client was turned away.
    Rejected(SocketAddr, String),
    /// Something that the owner should know.
    Note(String),
}

/// Where events go.
#[derive(Clone)]
pub struct Events {
    sink: Arc<dyn Fn(Event) + Send + Sync>,
    /// Set when the user wants to end.
    pub interrupt: Stop,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

impl Events {
    /// Events for `sink`; `interrupt` ends the run when it is set.
    pub fn new(sink: impl Fn(Event) + Send + Sync + 'static, interrupt: Stop) -> Self {
        Self { sink: Arc::new(sink), interrupt }
    }

    /// Tells one event.
    pub fn tell(&self, event: Event) {
        (self.sink)(event);
    }

    /// A part of a step begins.
    pub fn part(&self, step: Step, what: impl Into<String>, expected: Duration, watch: Option<Watch>) {
        self.tell(Event::Part { step, what: what.into(), expected, watch });
    }
}
