//! Interfaces of macOS and the BSDs, from what `ifconfig` and `pciconf` told.

use super::ifconfig::Ifconfig;
use super::list::{self, fill};
use crate::model::link::{Bus, Interface, InterfaceKind as Kind, LinkModes};
use crate::model::nic::{Eee, ModeNames, Nic, Pause};
use crate::model::outcome::{Fact, Outcome, Source};
use crate::sys::ports::{Listed, ListedKind};
use crate::units::{BitRate, Mtu};

/// What the reason of everything is that `ifconfig` does not tell of any port.
pub(super) const UNTOLD: &str =
    "ifconfig does not tell it, which is what weaklink asks on this system; on Linux the kernel tells it";

/// Drivers of ports of virtual machines, which FreeBSD's interfaces are named after: virtio, vmxnet3, Hyper-V, Xen, Amazon, Google.
const VIRTUAL: [&str; 6] = ["vtnet", "vmx", "hn", "xn", "ena", "gve"];

/// The kind by what `ifconfig` tells, else by the list; a port counts as one with a cable only where its type or medium says so.
pub(super) fn kind(name: &str, told: &Ifconfig, listed: Option<&Listed>) -> Kind {
    let media = told.media.as_ref();
    let unit = told.driver.as_deref().unwrap_or(name);
    let driver = unit.trim_end_matches(|c: char| c.is_ascii_digit());
    let radio = |listed: &Listed| listed.kind == ListedKind::Wireless;
    if told.has("LOOPBACK") {
        Kind::Loopback
    } else if told.bond.is_some() || told.is_in("lagg") {
        Kind::Bond
    } else if told.parent.is_some() || told.is_in("vlan") {
        Kind::Vlan
    } else if !told.members.is_empty() || told.is_in("bridge") {
        Kind::Bridge
    } else if told.is_in("epair") {
        Kind::Veth
    } else if told.port_type.as_deref() == Some("Wi-Fi") || media.is_some_and(|media| media.wifi) || listed.is_some_and(radio) {
        Kind::Wifi
    } else if told.has("POINTOPOINT") || ["wg", "tun", "tap", "gif", "gre", "ipsec"].iter().any(|group| told.is_in(group)) {
        Kind::Tunnel
    } else if VIRTUAL.contains(&driver) {
        Kind::VirtualMachine
    } else if told.port_type.as_deref() == Some("Ethernet") || media.is_some_and(|media| media.ethernet) {
        Kind::Physical
    } else {
        listed.map_or(Kind::Unknown, list::kind)
    }
}

/// The interface, with the bus if one was told.
pub(super) fn interface(name: &str, told: &Ifconfig, listed: Option<&Listed>, bus: Result<Bus, String>) -> Interface {
    let mut found = list::interface(name, listed, UNTOLD);
    found.kind = kind(name, told, listed);
    fill(&mut found.mtu, told.mtu.map(Mtu), Source::Ifconfig);
    if let Some(active) = told.active {
        found.carrier = Outcome::Measured(active);
    }
    found.bond.clone_from(&told.bond);
    medium(name, told, &mut found);
    found.bus = bus.map_or_else(Outcome::skipped, Outcome::Measured);
    // FreeBSD's drivers count their cards: igb0 is the first of igb.
    let driver = told.driver.as_deref().map(|unit| unit.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned());
    fill(&mut found.driver, driver, Source::Ifconfig);
    let mut nic = found.nic.measured().map_or_else(|| Nic::unknown(UNTOLD), |nic| (**nic).clone());
    port(told, &mut nic);
    found.nic = Outcome::Measured(Box::new(nic));
    list::settle(&mut found);
    found
}

/// Speed, duplex, negotiation and the list of media.
fn medium(name: &str, told: &Ifconfig, found: &mut Interface) {
    let media = told.media.clone().unwrap_or_default();
    let active = media.active.clone().unwrap_or_default();
    if active.bits.is_some() {
        fill(&mut found.speed_bps, active.bits.map(BitRate), Source::Ifconfig);
    } else if found.kind == Kind::Physical {
        found.speed_bps = Outcome::skipped(format!(
            "ifconfig tells what is set for {name} and no medium in effect, so its speed is not known; --link-speed can tell it"
        ));
    }
    fill(&mut found.duplex, active.duplex, Source::Ifconfig);
    match (media.autoselect, media.set_bits) {
        (Some(true), _) => fill(&mut found.autoneg, Some(true), Source::Ifconfig),
        (Some(false), Some(bits)) => found.autoneg = fixed(name, bits, Source::Ifconfig),
        _ => {}
    }
    if !told.supported.is_empty() {
        let only = media.set_bits.filter(|_| media.autoselect == Some(false));
        found.modes = Outcome::Measured(LinkModes {
            supported_bps: told.supported.iter().copied().map(BitRate).collect(),
            advertised_bps: only.map(BitRate).into_iter().collect(),
            partner_bps: Vec::new(),
        });
    }
}

/// What a speed that is set by hand says of negotiation: none up to 100 Mbit/s, where it is off then; from 1 Gbit/s on twisted pair
/// cannot do without (IEEE 802.3 clause 40.5.1), so it is limited to that speed and not off, and fibre mostly has none.
pub(super) fn fixed(name: &str, bits: u64, source: Source) -> Outcome<Fact<bool>> {
    if bits < 1_000_000_000 {
        return Outcome::Measured(Fact::new(false, source));
    }
    Outcome::skipped(format!(
        "{name} is set to {} by hand; whether it negotiates that with its partner is not told",
        BitRate(bits)
    ))
}

/// What else the medium's words tell.
fn port(told: &Ifconfig, nic: &mut Nic) {
    fill(&mut nic.mac, told.mac.clone(), Source::Ifconfig);
    let media = told.media.clone().unwrap_or_default();
    let active = media.active.unwrap_or_default();
    // What is in effect was negotiated by what is set, where it is negotiated at all.
    let pause = active.pause.map(|[rx, tx]| Pause {
        autoneg: media.autoselect == Some(true),
        rx,
        tx,
        rx_in_effect: Some(rx),
        tx_in_effect: Some(tx),
    });
    nic.pause =
        Outcome::skipped("the medium in effect names no flow control; not every driver does, so whether it is on is not known");
    fill(&mut nic.pause, pause, Source::Ifconfig);
    fill(&mut nic.eee, active.eee.then_some(Eee { enabled: true, active: true, tx_timer_us: None }), Source::Ifconfig);
    let names = told.supported.iter().map(|bits| BitRate(*bits).to_string()).collect();
    let names = ModeNames { supported: names, ..ModeNames::default() };
    fill(&mut nic.mode_names, (!told.supported.is_empty()).then_some(names), Source::Ifconfig);
}
