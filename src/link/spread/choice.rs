//! What an aggregation's mode makes of a packet, and which ports are usable.

use crate::link::hash::Policy;
use crate::model::lacp;
use crate::model::link::{Bond, BondPort};

/// How the driver finds the port of a packet that it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// The hash of this policy.
    Hash(Policy),
    /// Every packet takes the next port.
    EveryPacket,
    /// Every packet leaves by every port.
    AllPorts,
    /// One port, the others stand by.
    OnePort,
    /// Connections move between ports by load (balance-tlb); how fine it looks, where it is told.
    ByLoad(Option<Policy>),
    /// A port for each peer, by load (balance-alb).
    ByPeer,
}

/// What the mode does; a sentence why that is not known.
pub(super) fn choice(bond: &Bond) -> Result<Choice, String> {
    let policy = || bond.hash_policy.as_deref().and_then(Policy::of);
    let hash = || {
        policy().map(Choice::Hash).ok_or_else(|| match &bond.hash_policy {
            Some(word) => format!("the transmit policy {word} is none that weaklink knows"),
            None => "no source tells the transmit policy of the aggregation".to_owned(),
        })
    };
    match bond.mode.as_str() {
        "802.3ad" | "balance-xor" => hash(),
        "balance-tlb" if bond.settings.tlb_dynamic == Some(false) => hash(),
        "balance-tlb" => Ok(Choice::ByLoad(policy())),
        "balance-alb" => Ok(Choice::ByPeer),
        "balance-rr" => Ok(Choice::EveryPacket),
        "broadcast" => Ok(Choice::AllPorts),
        "active-backup" => Ok(Choice::OnePort),
        "" => Err("no source tells the mode of the aggregation".to_owned()),
        other => Err(format!("the mode {other} is none that weaklink knows")),
    }
}

/// Whether a port sends; none where that is not told.
pub(super) fn usable(bond: &Bond, port: &BondPort) -> Option<bool> {
    if port.up == Some(false) || port.active == Some(false) {
        return Some(false);
    }
    // A port that has a partner sends only when LACP has come to that; one whose partner is silent is used all the same.
    let partnered = bond.partner_mac.as_deref().is_some_and(|mac| mac.bytes().any(|byte| !matches!(byte, b'0' | b':')));
    if bond.mode == "802.3ad" && partnered && port.actor_state.is_some_and(|state| state & lacp::DISTRIBUTING == 0) {
        return Some(false);
    }
    port.active.or(port.up)
}

/// The names of the ports that send, in the bond's order; those of which it is not told count as usable.
pub(super) fn usable_ports(bond: &Bond) -> Vec<String> {
    let sends = |port: &&BondPort| usable(bond, port) != Some(false);
    bond.ports.iter().filter(sends).map(|port| port.name.clone()).collect()
}
