//! What an aggregation's choice of ports means for a copy, in sentences.

use super::choice::Choice;
use crate::link::hash::Policy;
use crate::model::flows::FlowSpread;
use crate::model::link::{Bond, HostLink};

/// The sentences of one spread.
pub(super) fn sentences(choice: Choice, bond: &Bond, link: &HostLink, spread: &FlowSpread) -> Vec<String> {
    let mut says = match choice {
        Choice::Hash(policy) => hash(policy, link, spread),
        Choice::EveryPacket => vec![
            "balance-rr sends packet by packet over all ports in turn: one connection can use all of them, but its packets overtake one \
             another, which TCP may take for loss."
                .to_owned(),
        ],
        Choice::AllPorts => {
            vec!["broadcast sends every packet by every port: that is for safety, and no copy gets faster.".to_owned()]
        }
        Choice::OnePort => vec![one_port(spread)],
        Choice::ByLoad(_) => vec![format!(
            "balance-tlb moves connections between the ports by their load{}; what comes in arrives by one port alone.",
            interval(bond)
        )],
        Choice::ByPeer => vec![format!(
            "balance-alb gives each peer one port, for sending by load and for receiving by what it answers to ARP{}: a copy between two hosts \
             uses one port at a time, however many connections it has.",
            interval(bond)
        )],
    };
    if spread.ports.len() > 1 && !matches!(choice, Choice::OnePort | Choice::ByLoad(_) | Choice::ByPeer) {
        says.push(
            "What comes in is spread by the other side, mostly a switch, by a hash of its own that nobody tells.".to_owned(),
        );
    }
    says
}

fn interval(bond: &Bond) -> String {
    bond.settings.lp_interval_s.map_or_else(String::new, |seconds| format!(", every {seconds} s"))
}

fn one_port(spread: &FlowSpread) -> String {
    match spread.ports.as_slice() {
        [port] => format!("active-backup uses {port} alone; the other ports stand by, so it never adds their speeds."),
        _ => "active-backup uses one port alone; the others stand by, so it never adds their speeds.".to_owned(),
    }
}

fn hash(policy: Policy, link: &HostLink, spread: &FlowSpread) -> Vec<String> {
    let (word, looks_at) = (policy.word(), policy.looks_at());
    match spread.ports.as_slice() {
        [] => return vec!["No port of the aggregation is usable.".to_owned()],
        [port] => return vec![format!("Only {port} carries traffic, so there is nothing to spread.")],
        _ => {}
    }
    let mut says = Vec::new();
    if policy.tells_connections_apart() {
        let ports = spread.ports.len();
        says.push(format!("{word} looks at {looks_at}: each connection takes one port, and several can take several."));
        if let Some(flows) = spread.flows_for_all {
            says.push(format!(
                "Several connections (SMB multichannel, NFS nconnect) help: {flows} of them reach all {ports} ports with a chance of 90 %."
            ));
        }
        says.extend(collision(spread));
    } else {
        let port = spread.shared_port().map_or_else(|| "the same port".to_owned(), |port| format!("port {port}"));
        says.push(format!("{word} looks only at {looks_at}: every connection between these two hosts takes {port}."));
        says.push(match policy {
            Policy::Layer2 => "More connections (SMB multichannel, NFS nconnect) do not help here; the policy layer3+4 would.".to_owned(),
            Policy::VlanSrcMac => {
                "Neither more connections nor more addresses help here, only another VLAN; the policy layer3+4 would.".to_owned()
            }
            _ => "More connections between the same two addresses (NFS nconnect, SMB multichannel over one address) do not help here; a further IP \
                  address at one end may, and the policy layer3+4 would."
                .to_owned(),
        });
    }
    let routed = matches!(link.gateway.measured(), Some(Some(_)));
    if policy == Policy::Layer2 && routed {
        says.push(
            "The peer is behind a router, whose MAC address stands for all hosts behind it: they all share that port.".to_owned(),
        );
    }
    says
}

/// All connections of a run on one port though the policy tells them apart.
fn collision(spread: &FlowSpread) -> Option<String> {
    let flows = spread.flows.len();
    let port = spread.shared_port().filter(|_| flows > 1)?;
    Some(format!(
        "All {flows} connections of this run hash to {port}: chance, not the policy; with other port numbers they spread."
    ))
}
