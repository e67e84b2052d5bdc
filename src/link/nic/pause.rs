//! What flow control two ends agree on.

use super::modes::{Mask, bit};
use crate::link::ethtool::Settings;
use crate::model::link::Duplex;
use crate::model::nic::Pause;

/// Receive and transmit as two ends with these abilities resolve them (IEEE 802.3, table 28B-3).
pub(super) fn resolve(ours: &Mask, partner: &Mask) -> (bool, bool) {
    let (pause, asymmetric) = (ours.has(bit::PAUSE), ours.has(bit::ASYM_PAUSE));
    let (their_pause, their_asymmetric) = (partner.has(bit::PAUSE), partner.has(bit::ASYM_PAUSE));
    if pause && their_pause {
        (true, true)
    } else if asymmetric && their_asymmetric {
        // Only one of the two obeys: the one that offers symmetric pause too.
        (pause, their_pause)
    } else {
        (false, false)
    }
}

/// Fills in what holds now. `link` is what the port says of its link, `up` whether it has one.
pub(super) fn in_effect(set: Pause, link: Option<&Settings>, up: Option<bool>) -> Pause {
    let half = link.is_some_and(|link| link.duplex == Some(Duplex::Half));
    let (rx, tx) = match link {
        _ if up == Some(false) => (None, None),
        // Pause frames are for full duplex only (IEEE 802.3, 31B.1).
        _ if half => (Some(false), Some(false)),
        _ if !set.autoneg => (Some(set.rx), Some(set.tx)),
        Some(link) if !link.masks.partner.is_empty() => {
            let (rx, tx) = resolve(&link.masks.advertised, &link.masks.partner);
            (Some(rx), Some(tx))
        }
        _ => (None, None),
    };
    Pause { rx_in_effect: rx, tx_in_effect: tx, ..set }
}
