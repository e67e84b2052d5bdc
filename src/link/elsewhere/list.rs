//! An interface as the system's portable list tells it, and the words for what that list leaves out.

use super::ifconfig::cut;
use crate::link::bond::mac_text;
use crate::link::pcie::Lanes;
use crate::model::link::{Bus, BusPart, Counters, Interface, InterfaceKind as Kind};
use crate::model::nic::Nic;
use crate::model::outcome::{Fact, Outcome, Source};
use crate::sys::ports::{Listed, ListedKind};
use crate::units::{BitRate, Mtu};

/// Why Wi-Fi states no speed, as on Linux.
pub(super) fn no_speed_of_wifi(name: &str) -> String {
    format!("Wi-Fi ({name}) has no fixed speed: the radio changes it all the time")
}

/// Why a port without a link has no speed.
pub(super) fn no_link(name: &str) -> String {
    format!("{name} has no link, so it has no speed; plug in the cable")
}

/// Why an interface of software is on no bus.
pub(super) fn no_bus(name: &str) -> String {
    format!("{name} is made by software and hangs on no bus")
}

/// The bus of a card whose own link of PCI Express is told, and no bridge above it.
pub(super) fn own_link(now: Lanes, most: Option<Lanes>, place: &str, aspm: Option<String>, source: Source) -> Bus {
    let more = most.filter(|most| most.rate() > now.rate());
    let more = more.map(|most| format!("; the card can do {:.1} GT/s x{}", most.giga, most.width)).unwrap_or_default();
    Bus {
        kind: "pci".to_owned(),
        rate_bps: Some(Fact::new(now.rate(), source)),
        max_rate_bps: most.map(|most| Fact::new(most.rate(), source)),
        description: format!("{}{more}", now.text()),
        way: vec![BusPart {
            place: cut(place),
            now: now.text(),
            rate_bps: Some(now.rate()),
            max_rate_bps: most.map(Lanes::rate),
            aspm,
        }],
    }
}

/// The kind as far as the list goes. Ethernet is the kind of its frames: a port with a cable, or one that software makes.
pub(super) const fn kind(listed: &Listed) -> Kind {
    match listed.kind {
        ListedKind::Wireless => Kind::Wifi,
        ListedKind::Tunnel => Kind::Tunnel,
        ListedKind::Bridge => Kind::Bridge,
        ListedKind::Loopback => Kind::Loopback,
        ListedKind::Ethernet | ListedKind::Other => Kind::Unknown,
    }
}

/// A hardware address in the form of Linux; none where it is all zero, as of interfaces that have none.
fn mac(bytes: [u8; 6]) -> Option<String> {
    (bytes != [0; 6]).then(|| mac_text(&bytes))
}

/// Puts a fact where there is one, and leaves the reason where there is none.
pub(super) fn fill<T>(place: &mut Outcome<Fact<T>>, told: Option<T>, source: Source) {
    if let Some(value) = told {
        *place = Outcome::Measured(Fact::new(value, source));
    }
}

/// What the list tells of `name`; the rest is skipped for the reason `why`.
pub(super) fn interface(name: &str, listed: Option<&Listed>, why: &str) -> Interface {
    let kind = listed.map_or(Kind::Unknown, kind);
    let mut told = Interface::unknown(name, kind, why);
    let mut nic = Nic::unknown(why);
    if let Some(listed) = listed {
        fill(&mut told.mtu, listed.mtu.filter(|mtu| *mtu > 0).map(Mtu), Source::Os);
        fill(&mut nic.mac, listed.mac.and_then(mac), Source::Os);
        if let Some(up) = listed.up {
            told.carrier = Outcome::Measured(up);
        }
        fill(&mut told.speed_bps, listed.speed_bits.filter(|bits| *bits > 0).map(BitRate), Source::Os);
        if let Some([rx, tx]) = listed.bytes {
            told.counters = Outcome::Measured(bytes(rx, tx));
        }
    }
    told.nic = Outcome::Measured(Box::new(nic));
    settle(&mut told);
    told
}

/// The counters of bytes alone.
pub(super) fn bytes(rx: u64, tx: u64) -> Counters {
    Counters([("rx_bytes".to_owned(), rx), ("tx_bytes".to_owned(), tx)].into_iter().collect())
}

/// Takes away what cannot be a fact of such an interface, and gives the reason that fits its kind.
pub(super) fn settle(told: &mut Interface) {
    let name = told.name.clone();
    match told.kind {
        Kind::Wifi => told.speed_bps = Outcome::skipped(no_speed_of_wifi(&name)),
        Kind::Loopback => told.speed_bps = Outcome::skipped("the loopback interface is memory and has no speed"),
        Kind::Physical if told.carrier.measured() == Some(&false) => {
            told.speed_bps = Outcome::skipped(no_link(&name));
            told.duplex = Outcome::skipped(format!("{name} has no link, so it has no duplex"));
        }
        Kind::Tunnel => told.speed_bps = Outcome::skipped(format!("{name} is a tunnel; its speed is that of what it runs over")),
        _ => {}
    }
    if matches!(told.kind, Kind::Bond | Kind::Bridge | Kind::Vlan | Kind::Tunnel | Kind::Loopback) {
        told.bus = Outcome::skipped(no_bus(&name));
    }
}
