//! Which port of an aggregation each data connection of a pass leaves by: foretold at its sender, and held against what the ports
//! counted.

use std::net::TcpStream;

use crate::link::{Flow, check_flows, headers, plan_flows};
use crate::model::flows::{FlowCheck, FlowSpread, NOT_AGGREGATED};
use crate::model::link::{CountersByInterface, HostLink, InterfaceKind};
use crate::model::outcome::Outcome;
use crate::model::throughput::SenderEnd;
use crate::session::around::tree;
use crate::session::dial::plain_socket;

/// The port of each of these connections on this end's way to the peer. It asks the kernel only where something is aggregated.
pub fn foretell(link: Option<&HostLink>, what: &str, connections: &[TcpStream]) -> Outcome<FlowSpread> {
    let Some(link) = link else { return Outcome::skipped("the interface towards the peer is not known") };
    if !link.stack.iter().any(|interface| interface.bond.is_some() || interface.kind == InterfaceKind::Team) {
        return Outcome::skipped(NOT_AGGREGATED);
    }
    let flow = |(number, connection): (usize, &TcpStream)| {
        let (local, remote) = (connection.local_addr().ok()?, connection.peer_addr().ok()?);
        Some(Flow { what: format!("{what}, stream {number}"), local: plain_socket(local), remote: plain_socket(remote) })
    };
    let flows: Vec<Flow> = (1..).zip(connections).filter_map(flow).collect();
    plan_flows(link, &headers(link, &tree()), &flows)
}

/// What was foretold beside what the ports sent.
pub fn hold(
    foretold: &Outcome<FlowSpread>,
    sender: &Outcome<SenderEnd>,
    counters: &Outcome<CountersByInterface>,
) -> Outcome<FlowCheck> {
    foretold.clone().and_then(|spread| {
        sender
            .clone()
            .and_then(|sender| counters.clone().map(|grown| check_flows(&spread, &sent(&sender, spread.flows.len()), &grown)))
    })
}

/// What each connection sent, by its kernel; empty where that does not tell it of all.
fn sent(sender: &SenderEnd, flows: usize) -> Vec<u64> {
    let told = sender.stats.measured().map(|stats| stats.iter().map(|stream| stream.bytes_sent).collect::<Option<Vec<u64>>>());
    told.flatten().filter(|told| told.len() == flows).unwrap_or_default()
}
