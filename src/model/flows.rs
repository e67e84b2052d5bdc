//! Which port of an aggregation each flow leaves by: predicted from the kernel's hash, and seen in the ports' counters.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::outcome::Outcome;

/// Why no flow has a port of its own where nothing is aggregated.
pub const NOT_AGGREGATED: &str = "nothing is aggregated on this end's way";

/// The reason for no flows of a test with an iperf3 server, whose connections are not ours to choose.
pub const FORETOLD_WITH_AGENT: &str = "which port of an aggregation a flow takes is foretold with an agent at the other end only";

/// The spread of flows over the ports of one end's aggregation; each end hashes only what it sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowSpread {
    /// The aggregation's interface.
    pub interface: String,
    /// The transmit policy that decides, such as `layer3+4`; the mode where it needs none, such as `active-backup`.
    pub policy: String,
    /// The ports among which the hash chooses, in the kernel's order.
    pub ports: Vec<String>,
    /// The flows of this run, each with its port.
    pub flows: Vec<PlannedFlow>,
    /// How many connections between these two addresses are needed so that every port carries one with a chance of at least
    /// 90 %; none where no number is enough (the policy does not look at ports).
    pub flows_for_all: Option<u32>,
    /// How many ports any number of connections between these two addresses can use.
    pub reachable_ports: u32,
    /// What that means for a copy, one sentence each.
    #[serde(default)]
    pub says: Vec<String>,
}

impl FlowSpread {
    /// The one port that all flows leave by, where the ports of all of them are known and are the same.
    pub fn shared_port(&self) -> Option<&str> {
        let mut ports = self.flows.iter().map(|flow| flow.port.measured());
        let first = ports.next()??;
        ports.all(|port| port == Some(first)).then_some(first.as_str())
    }
}

/// One flow and its port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedFlow {
    /// What it is: `upload, stream 2`.
    pub what: String,
    /// Our end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// The port that the kernel's hash gives for it; why not, where the kernel does not tell enough.
    pub port: Outcome<String>,
}

/// Prediction and measurement of one pass side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowCheck {
    /// The interface of the aggregation.
    pub interface: String,
    /// Bytes that each port sent during the pass.
    pub sent: Vec<PortBytes>,
    /// Whether the ports that carried the bytes are those that were predicted; why not judged, where other traffic or
    /// missing counters hide it.
    pub agrees: Outcome<bool>,
}

/// Bytes of one port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortBytes {
    /// The port.
    pub port: String,
    /// What it sent.
    pub bytes: u64,
    /// What the flows that were predicted for it sent.
    pub predicted: u64,
}
