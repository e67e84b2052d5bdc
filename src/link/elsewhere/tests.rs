//! Whole machines from recorded outputs.

use std::net::IpAddr;

use super::adapters::Adapters;
use super::collect::tops;
use super::machine::Machine;
use super::recorded::{answer, from_programs, teller};
use super::{ifconfig, route, script};
use crate::model::link::{Bond, Duplex, Interface, InterfaceKind as Kind};
use crate::model::outcome::Source;
use crate::sys::ports::{Listed, ListedKind, Question, Teller};
use crate::sys::program::Printed;
use crate::units::{BitRate, Mtu};

/// The outputs of a fixture: `$ QUESTION` lines with what was printed.
fn outputs(text: &str) -> Vec<(String, String)> {
    let parts = text.split("$ ").skip(1).filter_map(|part| part.split_once('\n'));
    parts.map(|(question, printed)| (question.trim().to_owned(), printed.to_owned())).collect()
}

macro_rules! recorded {
    ($name:literal) => {
        outputs(include_str!(concat!("../../../tests/fixtures/elsewhere/", $name, ".txt")))
    };
}

fn mbit(rates: &[u64]) -> Vec<BitRate> {
    rates.iter().map(|rate| BitRate::from_mbit(*rate)).collect()
}

/// Speed in Mbit/s, duplex, MTU, carrier; what is not told is none.
fn brief(it: &Interface) -> (Option<u64>, Option<Duplex>, Option<u32>, Option<bool>) {
    (
        it.speed_bps.measured().map(|fact| fact.value.0 / 1_000_000),
        it.duplex.measured().map(|fact| fact.value),
        it.mtu.measured().map(|fact| fact.value.0),
        it.carrier.measured().copied(),
    )
}

fn names(stack: &[Interface]) -> Vec<(&str, Kind)> {
    stack.iter().map(|it| (it.name.as_str(), it.kind)).collect()
}

fn ports(bond: &Bond) -> Vec<(&str, Option<bool>, Option<bool>)> {
    bond.ports.iter().map(|port| (port.name.as_str(), port.up, port.active)).collect()
}

/// Every place of an interface where a reason stands instead of a fact.
fn reasons(it: &Interface) -> Vec<String> {
    fn walk(value: &serde_json::Value, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(fields) => {
                found.extend(fields.get("reason").and_then(|it| it.as_str()).map(str::to_owned));
                fields.values().for_each(|value| walk(value, found));
            }
            serde_json::Value::Array(values) => values.iter().for_each(|value| walk(value, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(&serde_json::to_value(it).unwrap(), &mut found);
    found
}

#[test]
fn a_mac_with_ten_gigabit() {
    let stack = from_programs(&recorded!("mac_10g"), "en0");
    let [port] = stack.as_slice() else { panic!("{stack:?}") };
    assert_eq!((port.kind, brief(port)), (Kind::Physical, (Some(10_000), Some(Duplex::Full), Some(1500), Some(true))));
    let speed = port.speed_bps.measured().unwrap();
    assert_eq!((speed.source, port.autoneg.measured().unwrap().value), (Source::Ifconfig, true));
    let modes = port.modes.measured().unwrap();
    assert_eq!(modes.supported_bps, mbit(&[100, 1_000, 2_500, 5_000, 10_000]));
    assert!(modes.advertised_bps.is_empty() && modes.partner_bps.is_empty(), "ifconfig tells neither");
    let nic = port.nic.measured().unwrap();
    let pause = nic.pause.measured().unwrap().value;
    assert_eq!((pause.rx_in_effect, pause.tx_in_effect), (Some(true), Some(true)));
    assert_eq!(nic.mac.measured().unwrap().value, "02:00:00:00:10:01");
    let counters = port.counters.measured().unwrap();
    let told = ["rx_bytes", "tx_bytes", "rx_errors", "tx_dropped"].map(|name| counters.get(name));
    assert_eq!(told, [Some(1_181_740_294_017), Some(690_124_113_310), Some(2), Some(7)]);
    assert!(port.bus.why().is_some(), "no program told it: {:?}", port.bus);
}

#[test]
fn a_mac_whose_adapter_linked_at_one_gigabit() {
    let outputs = recorded!("mac_usb_1g");
    let stack = from_programs(&outputs, "en7");
    assert_eq!(brief(&stack[0]), (Some(1_000), Some(Duplex::Full), Some(1500), Some(true)));
    assert_eq!(stack[0].modes.measured().unwrap().supported_bps, mbit(&[10, 100, 1_000, 2_500]));
    let nic = stack[0].nic.measured().unwrap();
    assert!(nic.eee.measured().unwrap().value.active);
    assert!(nic.pause.why().is_some_and(|why| why.contains("not known")), "{:?}", nic.pause);
    // A radio's rates are no speed of a cable, a tunnel is none, and a port without a link has none.
    for (name, kind, says) in
        [("en0", Kind::Wifi, "radio"), ("utun4", Kind::Tunnel, "tunnel"), ("en1", Kind::Physical, "plug in")]
    {
        let stack = from_programs(&outputs, name);
        assert_eq!(stack[0].kind, kind, "{name}");
        assert!(stack[0].speed_bps.why().is_some_and(|why| why.contains(says)), "{name}: {:?}", stack[0].speed_bps);
    }
    assert_eq!(names(&from_programs(&outputs, "bridge0")), [("bridge0", Kind::Bridge), ("en1", Kind::Physical)]);
}

#[test]
fn a_mac_with_a_bond_of_which_one_port_is_left_out() {
    let stack = from_programs(&recorded!("mac_bond"), "bond0");
    assert_eq!(names(&stack), [("bond0", Kind::Bond), ("en5", Kind::Physical), ("en6", Kind::Physical)]);
    let bond = stack[0].bond.as_ref().unwrap();
    assert_eq!((bond.mode.as_str(), &bond.hash_policy, bond.actor_key, bond.active_ports), ("802.3ad", &None, Some(1), Some(1)));
    assert_eq!(bond.partner_mac.as_deref(), Some("02:00:00:00:aa:01"));
    assert_eq!(ports(bond), [("en5", Some(true), Some(true)), ("en6", Some(true), Some(false))]);
    let states: Vec<_> = bond.ports.iter().map(|port| (port.actor_state, port.partner_state, port.partner_key)).collect();
    assert_eq!(states, [(Some(0x3d), Some(0x3d), Some(1000)), (Some(0x45), Some(0), Some(0))]);
    assert!(bond.ports.iter().all(|port| port.speed_bps == Some(BitRate::from_mbit(1_000)) && port.duplex == Some(Duplex::Full)));
    // Without the details there is no mode and no state, and none is made up.
    let mut outputs = recorded!("mac_bond");
    outputs.retain(|(question, _)| question != "ifconfig -b bond0");
    let stack = from_programs(&outputs, "bond0");
    let bond = stack[0].bond.as_ref().unwrap();
    assert_eq!((bond.mode.as_str(), bond.active_ports, &bond.partner_mac), ("", None, &None));
    assert_eq!(ports(bond), [("en5", Some(true), None), ("en6", Some(true), None)]);
}

#[test]
fn freebsd_with_a_vlan_on_an_lacp_lagg() {
    let stack = from_programs(&recorded!("freebsd_lagg"), "vlan10");
    let expected = [("vlan10", Kind::Vlan), ("lagg0", Kind::Bond), ("ix0", Kind::Physical), ("ix1", Kind::Physical)];
    assert_eq!(names(&stack), expected);
    let bond = stack[1].bond.as_ref().unwrap();
    assert_eq!((bond.mode.as_str(), bond.hash_policy.as_deref()), ("802.3ad", Some("layer2+3+4 (l2,l3,l4)")));
    assert_eq!(
        (bond.partner_mac.as_deref(), bond.actor_key, bond.partner_key),
        (Some("02:00:00:00:aa:01"), Some(0x1cb), Some(1000))
    );
    assert_eq!(ports(bond), [("ix0", Some(true), Some(true)), ("ix1", Some(true), Some(true))]);
    let second = &bond.ports[1];
    assert_eq!((second.actor_state, second.partner_port, second.partner_key), (Some(0x3d), Some(0x12), Some(1000)));
    let port = &stack[2];
    assert_eq!(brief(port), (Some(10_000), Some(Duplex::Full), Some(1500), Some(true)));
    assert_eq!(port.driver.measured().unwrap().value, "ix");
    assert_eq!(port.counters.measured().unwrap().get("rx_dropped"), Some(4_960));
    let bus = port.bus.measured().unwrap();
    assert_eq!(bus.description, "PCIe 5.0 GT/s x4; the card can do 5.0 GT/s x8");
    assert_eq!((bus.rate_bps.as_ref().unwrap().source, bus.way[0].aspm.as_deref()), (Source::Pciconf, Some("off")));
    assert!(stack[0].bus.why().is_some_and(|why| why.contains("software")));
}

#[test]
fn truenas_core_with_a_reserve_without_a_link() {
    let stack = from_programs(&recorded!("truenas_core"), "lagg0");
    let bond = stack[0].bond.as_ref().unwrap();
    assert_eq!((bond.mode.as_str(), bond.settings.primary.as_deref()), ("active-backup", Some("igc0")));
    assert_eq!(ports(bond), [("igc0", Some(true), Some(true)), ("igc1", Some(false), Some(false))]);
    assert_eq!(stack[0].mtu.measured().unwrap().value, Mtu(9000));
    assert_eq!(stack[1].modes.measured().unwrap().supported_bps, mbit(&[10, 100, 1_000, 2_500]));
    let bus = stack[1].bus.measured().unwrap();
    assert_eq!((bus.description.as_str(), bus.way[0].aspm.as_deref()), ("PCIe 5.0 GT/s x1", Some("L1")));
    assert!(stack[2].speed_bps.why().is_some_and(|why| why.contains("no link")), "{:?}", stack[2].speed_bps);
}

#[test]
fn a_windows_pc_with_a_card_that_could_do_more() {
    let outputs = recorded!("win_realtek");
    let stack = from_programs(&outputs, "Ethernet");
    let [port] = stack.as_slice() else { panic!("{stack:?}") };
    assert_eq!((port.kind, brief(port)), (Kind::Physical, (Some(1_000), Some(Duplex::Full), Some(1500), Some(true))));
    let modes = port.modes.measured().unwrap();
    assert_eq!((modes.supported_bps.clone(), modes.advertised_bps.len()), (mbit(&[10, 100, 1_000, 2_500]), 0));
    assert!(port.autoneg.measured().unwrap().value);
    assert_eq!(port.driver.measured().unwrap().value, "Realtek Gaming 2.5GbE Family Controller (rt25cx21x64.sys)");
    assert_eq!(port.bus.measured().unwrap().description, "PCIe 5.0 GT/s x1");
    let nic = port.nic.measured().unwrap();
    let (pause, rings) = (nic.pause.measured().unwrap().value, nic.rings.measured().unwrap().value);
    assert_eq!((pause.rx, pause.tx, pause.rx_in_effect), (true, true, None), "set, and what is in effect is not told");
    assert_eq!((rings.rx, rings.rx_max, rings.tx, rings.tx_max), (1024, 4096, 512, 2048));
    assert!(nic.eee.why().is_some_and(|why| why.contains("in effect")), "{:?}", nic.eee);
    assert_eq!(nic.bus_address.measured().unwrap().value, "0000:03:00.0");
    let counters = port.counters.measured().unwrap();
    assert_eq!(["rx_packets", "rx_dropped"].map(|name| counters.get(name)), [Some(73_522_212), Some(4_960)]);
    // The other adapter is a radio without a connection, and its speed with all bits set is none.
    let wifi = &from_programs(&outputs, "Wi-Fi")[0];
    assert_eq!((wifi.kind, brief(wifi)), (Kind::Wifi, (None, None, Some(1500), Some(false))));
}

#[test]
fn one_object_in_place_of_a_list_and_a_wrapped_list_are_read() {
    let outputs = recorded!("win_x550_x2");
    let stack = from_programs(&outputs, "Ethernet 2");
    let port = &stack[0];
    assert_eq!(brief(port), (Some(10_000), Some(Duplex::Full), Some(9000), Some(true)));
    let bus = port.bus.measured().unwrap();
    assert_eq!(bus.description, "PCIe 5.0 GT/s x2; the card can do 8.0 GT/s x4");
    assert_eq!(bus.rate_bps.as_ref().unwrap().value, BitRate::from_mbit(8_000));
    assert_eq!(port.modes.measured().unwrap().supported_bps, mbit(&[1_000, 10_000]));
    assert!(!port.nic.measured().unwrap().pause.measured().unwrap().value.rx);
    let told = Adapters::read(&outputs[0].1);
    assert_eq!(told.route, Some(("Ethernet 2".to_owned(), Some(IpAddr::from([192, 0, 2, 1])))));
    assert!(port.counters.why().is_some(), "the statistics did not come");
}

#[test]
fn a_windows_team_with_a_port_that_lacp_left_out() {
    let outputs = recorded!("win_lbfo");
    let stack = from_programs(&outputs, "Team1");
    assert_eq!(names(&stack), [("Team1", Kind::Bond), ("Ethernet", Kind::Physical), ("Ethernet 2", Kind::Physical)]);
    let bond = stack[0].bond.as_ref().unwrap();
    assert_eq!((bond.mode.as_str(), bond.hash_policy.as_deref()), ("802.3ad", Some("layer3+4, moved by load (Dynamic)")));
    assert_eq!(ports(bond), [("Ethernet", Some(true), Some(true)), ("Ethernet 2", Some(true), Some(false))]);
    assert_eq!(bond.partner_mac, None, "Windows does not tell it");
    let told = Adapters::read(&outputs[0].1);
    assert_eq!(told.route.as_ref().unwrap().1, None, "the own subnet");
}

#[test]
fn a_switch_of_hyper_v_stands_on_the_card_whose_address_it_took() {
    let outputs = recorded!("win_vswitch");
    assert_eq!(
        names(&from_programs(&outputs, "vEthernet (LAN)")),
        [("vEthernet (LAN)", Kind::Bridge), ("Ethernet", Kind::Physical)]
    );
    // An internal switch has no card, and its 10 Gbit/s are a claim.
    assert_eq!(names(&from_programs(&outputs, "vEthernet (Default Switch)")), [("vEthernet (Default Switch)", Kind::Bridge)]);
    let ask = |question: Question<'_>| answer(&outputs, question);
    let machine = Machine::new(Teller::PowerShell, Vec::new(), &ask, None);
    let all = machine.names();
    assert_eq!(tops(&machine, &all, &["vEthernet (LAN)".to_owned()]), ["vEthernet (LAN)"]);
}

#[test]
fn windows_with_wi_fi_alone() {
    let stack = from_programs(&recorded!("win_wifi"), "WLAN");
    assert_eq!((stack[0].kind, brief(&stack[0])), (Kind::Wifi, (None, None, Some(1500), Some(true))));
    assert!(stack[0].speed_bps.why().is_some_and(|why| why.contains("radio")));
}

#[test]
fn words_of_other_languages_and_broken_parts_cost_only_themselves() {
    let stack = from_programs(&recorded!("win_words"), "Ethernet-Verbindung");
    let port = &stack[0];
    assert_eq!((port.kind, brief(port)), (Kind::Physical, (Some(2_500), Some(Duplex::Full), Some(1500), Some(true))));
    // The speed is set by hand: what is offered is known, and negotiation is limited and not off.
    let modes = port.modes.measured().unwrap();
    assert_eq!((modes.supported_bps.clone(), modes.advertised_bps.clone()), (mbit(&[1_000, 2_500]), mbit(&[2_500])));
    assert!(port.autoneg.why().is_some_and(|why| why.contains("by hand")), "{:?}", port.autoneg);
    assert!(port.bus.why().is_some_and(|why| why.contains("no JSON")), "{:?}", port.bus);
}

#[test]
fn where_no_program_answers_the_list_is_all_and_every_reason_says_why() {
    let listed = |name: &str, kind| Listed {
        index: 3,
        name: name.to_owned(),
        kind,
        mtu: Some(9000),
        speed_bits: Some(2_500_000_000),
        up: Some(true),
        mac: Some([2, 0, 0, 0, 0, 3]),
        bytes: Some([7, 8]),
        ..Listed::default()
    };
    let silent = |_: Question<'_>| Ok(Printed::default());
    for (teller, says) in
        [(Teller::PowerShell, "Get-NetAdapter"), (Teller::Ifconfig, "printed nothing"), (Teller::ListOnly, "list of interfaces")]
    {
        let machine = Machine::new(teller, vec![listed("lan", ListedKind::Ethernet)], &silent, None);
        let stack = machine.stack("lan");
        // Ethernet of a list is the kind of frames, so its speed is a claim.
        assert_eq!((stack[0].kind, brief(&stack[0])), (Kind::Unknown, (Some(2_500), None, Some(9000), Some(true))), "{teller:?}");
        assert_eq!(stack[0].speed_bps.measured().unwrap().source, Source::Os);
        assert_eq!(stack[0].counters.measured().unwrap().get("tx_bytes"), Some(8));
        let reasons = reasons(&stack[0]);
        assert!(reasons.iter().any(|why| why.contains(says)), "{teller:?}: {reasons:?}");
        assert!(reasons.iter().all(|why| why.len() > 20), "{teller:?}: {reasons:?}");
        assert_eq!(machine.stack("not listed")[0].kind, Kind::Unknown);
    }
    for (kind, expected) in [
        (ListedKind::Wireless, Kind::Wifi),
        (ListedKind::Tunnel, Kind::Tunnel),
        (ListedKind::Loopback, Kind::Loopback),
        (ListedKind::Bridge, Kind::Bridge),
        (ListedKind::Other, Kind::Unknown),
    ] {
        let machine = Machine::new(Teller::ListOnly, vec![listed("x0", kind)], &silent, None);
        let stack = machine.stack("x0");
        assert_eq!(stack[0].kind, expected);
        let is_evidence = stack[0].speed_bps.measured().is_some() && !expected.speed_is_no_evidence();
        assert!(!is_evidence, "{kind:?}: no speed of the list is a cable's");
    }
    assert!(from_programs(&recorded!("win_silent"), "Ethernet")[0].mtu.why().is_some());
}

#[test]
fn routes_are_read_with_and_without_a_router() {
    let outputs = recorded!("mac_10g");
    let ask = |question: Question<'_>| answer(&outputs, question);
    let machine = Machine::new(teller(&outputs), Vec::new(), &ask, None);
    let route = |peer: [u8; 4]| machine.route(peer.into());
    assert_eq!(route([192, 0, 2, 20]), Some(("en0".to_owned(), None)));
    assert_eq!(route([198, 51, 100, 7]), Some(("en0".to_owned(), Some(IpAddr::from([192, 0, 2, 1])))));
    assert_eq!(route([203, 0, 113, 1]), None);
    assert_eq!(route::decode("  interface: ../../x\n flags: <UP>\n"), None);
    assert_eq!(route::decode(" gateway: link#4\n interface: em0\n flags: <UP,GATEWAY>\n"), Some(("em0".to_owned(), None)));
}

#[test]
fn hashes_of_other_systems_are_never_foretold_by_the_kernels() {
    for (outputs, top) in
        [(recorded!("freebsd_lagg"), "vlan10"), (recorded!("win_lbfo"), "Team1"), (recorded!("mac_bond"), "bond0")]
    {
        let stack = from_programs(&outputs, top);
        let bond = stack.iter().find_map(|it| it.bond.as_ref()).unwrap();
        assert!(bond.hash_policy.as_deref().is_none_or(|policy| crate::link::Policy::of(policy).is_none()), "{bond:?}");
    }
}

#[test]
fn the_script_holds_nothing_foreign_but_an_address() {
    let script = script::script(Some("fe80::1".parse().unwrap()));
    assert!(script.contains("-RemoteIPAddress 'fe80::1'") && !script.contains('"'), "{script}");
    assert!(script.len() < 8_000, "Windows takes 32,767 characters: {}", script.len());
    for name in ["-a", "../x", "a b", "", "sixteen-letters-", "x;y", "$(id)"] {
        assert!(!ifconfig::is_name(name), "{name}");
    }
}
