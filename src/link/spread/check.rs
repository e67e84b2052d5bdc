//! The prediction beside what the ports sent.

use crate::model::flows::{FlowCheck, FlowSpread, PortBytes};
use crate::model::link::CountersByInterface;
use crate::model::outcome::Outcome;

/// Below this many bytes of all connections together, other traffic and counters that drivers bring up to date once a second tell nothing.
const LEAST: u64 = 10_000_000;
/// What headers and retransmissions may add to a connection's bytes at most: 66 of 1514 bytes are 5 %, at small packets more.
const HEADERS: f64 = 0.12;
/// What may be missing: a driver's counter that is a little behind.
const BEHIND: f64 = 0.04;
/// Other traffic of a port, acknowledgements of what comes in among it, as a share of all bytes.
const OTHER: f64 = 0.06;
/// With more sent in all than foretold by this share, other traffic hides which port the connections took.
const HIDDEN: f64 = 0.25;
/// A port that is off by more than this share of all bytes contradicts the prediction.
const CONTRADICTS: f64 = 0.15;

/// Holds a prediction against what the ports counted during a pass.
///
/// `sent` are the bytes that each connection of `spread.flows` sent, in their order; `grown` is what the interfaces' counters grew by
/// during the pass, as `Counters::since` gives it (a name that did not move is left out).
pub fn check(spread: &FlowSpread, sent: &[u64], grown: &CountersByInterface) -> FlowCheck {
    let ports: Vec<(PortBytes, bool)> = spread
        .ports
        .iter()
        .map(|port| {
            let counted = grown.get(port);
            let bytes = counted.and_then(|counters| counters.get("tx_bytes")).unwrap_or(0);
            let here =
                |(flow, bytes): (&crate::model::flows::PlannedFlow, &u64)| (flow.port.measured() == Some(port)).then_some(*bytes);
            let predicted = spread.flows.iter().zip(sent).filter_map(here).fold(0, u64::saturating_add);
            (PortBytes { port: port.clone(), bytes, predicted }, counted.is_some())
        })
        .collect();
    let agrees = judge(spread, sent, &ports);
    FlowCheck { interface: spread.interface.clone(), sent: ports.into_iter().map(|(port, _)| port).collect(), agrees }
}

fn judge(spread: &FlowSpread, sent: &[u64], ports: &[(PortBytes, bool)]) -> Outcome<bool> {
    if let Some((port, _)) = ports.iter().find(|(_, counted)| !counted) {
        return Outcome::skipped(format!("the port {} has no counters", port.port));
    }
    if spread.flows.is_empty() || spread.flows.len() != sent.len() {
        return Outcome::skipped("it is not known what each connection sent");
    }
    if let Some(why) = spread.flows.iter().find_map(|flow| flow.port.why()) {
        return Outcome::skipped(format!("no port was foretold for every connection: {why}"));
    }
    let (foretold, counted) = ports
        .iter()
        .fold((0.0, 0.0), |(foretold, counted), (port, _)| (foretold + port.predicted as f64, counted + port.bytes as f64));
    if sent.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes)) < LEAST {
        return Outcome::skipped("the connections sent too little to tell them from other traffic");
    }
    if counted < (1.0 - BEHIND) * foretold {
        return Outcome::skipped("the ports counted less than the connections sent: the driver's counters are behind");
    }
    if counted > (1.0 + HEADERS + HIDDEN) * foretold {
        return Outcome::skipped(
            "the ports sent much more than the connections did, so other traffic hides which port these took",
        );
    }
    let fits = |port: &PortBytes| {
        let (bytes, predicted) = (port.bytes as f64, port.predicted as f64);
        bytes >= (1.0 - BEHIND) * predicted && bytes <= (1.0 + HEADERS) * predicted + OTHER * foretold
    };
    let contradicts = |port: &PortBytes| {
        let (bytes, predicted) = (port.bytes as f64, port.predicted as f64);
        predicted - bytes > CONTRADICTS * foretold
    };
    if ports.iter().all(|(port, _)| fits(port)) {
        Outcome::Measured(true)
    } else if ports.iter().any(|(port, _)| contradicts(port)) {
        Outcome::Measured(false)
    } else {
        Outcome::skipped("the ports' bytes neither fit the prediction nor contradict it")
    }
}
