//! The portable list of interfaces: the crate `netdev`, where it knows the system.

use netdev::interface::state::OperState;
use netdev::prelude::InterfaceType;

use crate::sys::ports::{Listed, ListedKind};

/// More interfaces than these are not listed.
const MOST: usize = 1024;

/// The system's list of interfaces; empty where it gives none.
pub fn listed() -> Vec<Listed> {
    netdev::get_interfaces().into_iter().take(MOST).map(one).collect()
}

fn one(told: netdev::Interface) -> Listed {
    // Windows names adapters by a GUID; people and its own programs use the other name. macOS' other name is a description.
    let (name, description) = match told.friendly_name {
        Some(friendly) if cfg!(windows) => (friendly, told.description),
        friendly => (told.name, told.description.or(friendly)),
    };
    Listed {
        index: told.index,
        name,
        description,
        kind: match told.if_type {
            InterfaceType::Ethernet
            | InterfaceType::FastEthernetT
            | InterfaceType::FastEthernetFx
            | InterfaceType::GigabitEthernet => ListedKind::Ethernet,
            InterfaceType::Wireless80211 | InterfaceType::PeerToPeerWireless => ListedKind::Wireless,
            InterfaceType::Tunnel | InterfaceType::Ppp | InterfaceType::Slip => ListedKind::Tunnel,
            InterfaceType::Bridge => ListedKind::Bridge,
            InterfaceType::Loopback => ListedKind::Loopback,
            _ => ListedKind::Other,
        },
        mac: told.mac_addr.map(|mac| mac.octets()),
        mtu: told.mtu,
        speed_bits: told.transmit_speed,
        up: match told.oper_state {
            OperState::Up => Some(true),
            OperState::Down | OperState::LowerLayerDown | OperState::NotPresent => Some(false),
            _ => None,
        },
        // Apple's list counts in 32 bits, which a fast link fills in seconds.
        bytes: told.stats.filter(|_| !cfg!(target_vendor = "apple")).map(|stats| [stats.rx_bytes, stats.tx_bytes]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_names_the_loopback_interface() {
        let all = listed();
        assert!(all.iter().any(|it| it.kind == ListedKind::Loopback && !it.name.is_empty()), "{all:?}");
    }
}
