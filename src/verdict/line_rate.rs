//! What an end's ports say of the line rate.

use std::collections::HashSet;

use crate::model::link::{Bond, BondPort, HostLink, Interface, InterfaceKind};
use crate::units::BitRate;

/// Whether a port may have a link: without one, drivers keep stale values of speed and duplex.
pub(super) fn has_link(interface: &Interface) -> bool {
    interface.carrier.measured() != Some(&false)
}

/// Whether an aggregation keeps all ports but one in reserve.
pub(super) fn in_reserve(bond: &Bond) -> bool {
    bond.mode.contains("active-backup")
}

/// Whether LACP has put a port into an aggregator that carries nothing, or into none (systems that number no aggregators say so).
pub(super) fn elsewhere(bond: &Bond, port: &BondPort) -> bool {
    match (port.aggregator, bond.active_aggregator) {
        (Some(own), Some(active)) => own != active,
        _ => left_out(bond, port),
    }
}

/// Whether a system that numbers no aggregators says of a port under LACP that it carries nothing.
pub(super) fn left_out(bond: &Bond, port: &BondPort) -> bool {
    bond.mode == "802.3ad" && port.aggregator.is_none() && port.active == Some(false)
}

/// The rate of one flow and of many.
pub(super) fn line_of(link: &HostLink) -> (Option<BitRate>, Option<BitRate>) {
    if link.stack.iter().any(|i| matches!(i.kind, InterfaceKind::Wifi | InterfaceKind::Tunnel)) {
        return (None, None);
    }
    if let Some(bond) = link.stack.iter().find_map(|interface| interface.bond.as_ref()) {
        let dark: HashSet<&str> = link.stack.iter().filter(|it| !has_link(it)).map(|it| it.name.as_str()).collect();
        let active = in_reserve(bond) && bond.ports.iter().any(|port| port.active == Some(true) && port.up != Some(false));
        let used = |port: &&BondPort| !active || port.active == Some(true);
        let up = |port: &&BondPort| port.up != Some(false) && !dark.contains(port.name.as_str()) && !elsewhere(bond, port);
        let ports = bond.ports.iter().filter(up).filter(used);
        let speeds: Vec<u64> = ports.filter_map(|port| port.speed_bps).map(|rate| rate.0).filter(|rate| *rate > 0).collect();
        if let Some(fastest) = speeds.iter().max() {
            let spreads = !in_reserve(bond);
            let total = if spreads { speeds.iter().fold(0, |sum: u64, rate| sum.saturating_add(*rate)) } else { *fastest };
            return (Some(BitRate(*fastest)), Some(BitRate(total)));
        }
    }
    // What a cable in a copper module runs at is not known to the host, which sees the cage's rate.
    let hidden = |interface: &Interface| {
        let module = interface.nic.measured().and_then(|nic| nic.module.measured());
        module.is_some_and(|module| module.value.hides_copper_rate)
    };
    let claims = |interface: &&Interface| {
        !interface.kind.speed_is_no_evidence() && interface.bond.is_none() && has_link(interface) && !hidden(interface)
    };
    let claimed: Vec<(&Interface, BitRate)> =
        link.stack.iter().filter(claims).filter_map(|it| Some((it, it.speed_bps.measured()?.value))).collect();
    // A switch within the host has a port to the processor below its own ports.
    let switched = claimed.iter().any(|(it, _)| it.is_switch_port());
    let outer = claimed.iter().filter(|(it, _)| !switched || it.is_switch_port());
    let speeds: HashSet<u64> = outer.map(|(_, rate)| rate.0).collect();
    // Which of a bridge's ports leads to the other end is not known where several are left.
    if speeds.len() > 1 && link.stack.iter().any(|it| it.kind == InterfaceKind::Bridge) {
        return (None, None);
    }
    let speed = claimed.into_iter().map(|(_, rate)| rate).filter(|rate| rate.0 > 0).min();
    (speed, speed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::link::{Bus, SWITCH_PORT};
    use crate::model::nic::{Module, Nic};
    use crate::model::outcome::{Fact, Source};
    use crate::model::{Outcome, Role};
    use crate::verdict::scenario::healthy;

    /// A bond of two ports of 1G, the second one in this aggregator, where the first one is in use.
    fn two(mode: &str, second: Option<u32>) -> HostLink {
        let port = |name: &str, aggregator| BondPort {
            name: name.into(),
            up: Some(true),
            speed_bps: Some(BitRate::from_mbit(1_000)),
            aggregator,
            ..BondPort::default()
        };
        let bond = Bond {
            mode: mode.into(),
            active_aggregator: second.map(|_| 1),
            ports: vec![port("eth0", second.map(|_| 1)), port("eth1", second)],
            ..Bond::default()
        };
        let document = healthy(1_000);
        let links = document.measurements.link.measured().unwrap();
        let mut link = links.of(Role::Nas).measured().unwrap().clone();
        let mut top = Interface::unknown("bond0", InterfaceKind::Bond, "a test");
        top.bond = Some(bond);
        top.carrier = Outcome::Measured(true);
        link.stack.insert(0, top);
        link
    }

    #[test]
    fn a_bridge_of_unlike_ports_tells_no_line_and_a_switch_within_the_host_that_of_its_port() {
        let named = |name: &str, kind, mbit: u64, bus: &str| {
            let mut it = Interface::unknown(name, kind, "a test");
            it.speed_bps = Outcome::Measured(Fact::new(BitRate::from_mbit(mbit), Source::Sysfs));
            it.carrier = Outcome::Measured(true);
            it.bus = Outcome::Measured(Bus::told(bus));
            it
        };
        let bridge = || named("br0", InterfaceKind::Bridge, 10_000, "");
        let port = |name: &str, mbit, bus: &str| named(name, InterfaceKind::Physical, mbit, bus);
        for (name, stack, mbit) in [
            ("one port", vec![bridge(), port("eth0", 2_500, "PCIe")], Some(2_500)),
            ("two alike", vec![bridge(), port("eth0", 1_000, "PCIe"), port("eth1", 1_000, "PCIe")], Some(1_000)),
            ("two unlike", vec![bridge(), port("eth0", 10_000, "PCIe"), port("eth1", 1_000, "PCIe")], None),
            ("a switch within", vec![bridge(), port("lan1", 1_000, SWITCH_PORT), port("eth0", 2_500, "platform")], Some(1_000)),
        ] {
            let document = healthy(1_000);
            let links = document.measurements.link.measured().unwrap();
            let link = HostLink { stack, ..links.of(Role::Nas).measured().unwrap().clone() };
            assert_eq!(line_of(&link).1, mbit.map(BitRate::from_mbit), "{name}");
        }
    }

    #[test]
    fn a_copper_module_in_a_cage_tells_no_line() {
        let mut document = healthy(10_000);
        let links = document.measurements.link.measured_mut().unwrap();
        let Outcome::Measured(link) = &mut links.nas else { panic!("links") };
        assert_eq!(line_of(link).1, Some(BitRate::from_mbit(10_000)));
        let mut nic = Nic::unknown("a test");
        nic.module = Outcome::Measured(Fact::new(Module { hides_copper_rate: true, ..Module::default() }, Source::Ethtool));
        link.stack[0].nic = Outcome::Measured(Box::new(nic));
        assert_eq!(line_of(link), (None, None));
    }

    #[test]
    fn a_port_in_another_aggregator_adds_nothing() {
        for (name, mode, second, mbit) in [
            ("joined", "802.3ad", Some(1), 2_000),
            ("apart", "802.3ad", Some(2), 1_000),
            ("not told", "802.3ad", None, 2_000),
            ("no LACP", "balance-xor", None, 2_000),
        ] {
            let (flow, total) = line_of(&two(mode, second));
            assert_eq!(flow, Some(BitRate::from_mbit(1_000)), "{name}");
            assert_eq!(total, Some(BitRate::from_mbit(mbit)), "{name}");
        }
    }
}
