//! Connections, ports and counters in tables.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::headers::{arp_entry, parse_mac};
use super::{Flow, Headers, check, plan};
use crate::model::flows::{FlowSpread, PlannedFlow};
use crate::model::link::{
    Bond, BondPort, BondSettings, Counters, CountersByInterface, HostLink, Interface, InterfaceKind as Kind,
};
use crate::model::outcome::Outcome;

fn port(name: &str) -> BondPort {
    BondPort { name: name.into(), up: Some(true), active: Some(true), ..BondPort::default() }
}

fn bond(mode: &str, policy: Option<&str>) -> Bond {
    Bond {
        mode: mode.into(),
        hash_policy: policy.map(Into::into),
        ports: vec![port("eth0"), port("eth1")],
        in_order: true,
        ..Bond::default()
    }
}

fn interface(name: &str, kind: Kind) -> Interface {
    Interface::unknown(name, kind, "not asked")
}

fn link(bond: Bond) -> HostLink {
    let top = Interface { bond: Some(bond), ..interface("bond0", Kind::Bond) };
    let stack = vec![top, interface("eth0", Kind::Physical), interface("eth1", Kind::Physical)];
    HostLink::new([192, 0, 2, 1].into(), [192, 0, 2, 2].into(), stack)
}

fn headers(release: &str) -> Headers {
    Headers {
        source_mac: Outcome::Measured([2, 0, 0, 0, 0, 0x10]),
        next_hop_mac: Outcome::Measured([2, 0, 0, 0, 0, 0x21]),
        vlan: Outcome::Measured(None),
        tag_within: None,
        release: Outcome::Measured(release.into()),
    }
}

fn flows(ports: &[u16]) -> Vec<Flow> {
    let flow = |(at, port): (usize, &u16)| Flow {
        what: format!("upload, stream {}", at + 1),
        local: ([192, 0, 2, 1], *port).into(),
        remote: ([192, 0, 2, 2], 5201).into(),
    };
    ports.iter().enumerate().map(flow).collect()
}

fn planned(bond: Bond, release: &str, ports: &[u16]) -> FlowSpread {
    let outcome = plan(&link(bond), &headers(release), &flows(ports));
    outcome.measured().unwrap_or_else(|| panic!("{outcome:?}")).clone()
}

fn ports_of(spread: &FlowSpread) -> Vec<&str> {
    spread.flows.iter().map(|flow| flow.port.measured().map_or("?", String::as_str)).collect()
}

#[test]
fn layer2_sends_all_connections_by_one_port_and_says_so() {
    // 0x10 ^ 0x21 ^ 0x0800 is odd: the second port.
    let spread = planned(bond("802.3ad", Some("layer2")), "6.18.0", &[40000, 40001, 40002]);
    assert_eq!(ports_of(&spread), ["eth1", "eth1", "eth1"]);
    assert_eq!((spread.reachable_ports, spread.flows_for_all), (1, None));
    assert!(spread.says[0].contains("layer2 looks only at the two MAC addresses") && spread.says[0].contains("port eth1"));
    assert!(spread.says[1].contains("do not help"), "{:?}", spread.says);
    assert_eq!(spread.shared_port(), Some("eth1"));
}

#[cfg(target_endian = "little")]
#[test]
fn layer34_spreads_connections_and_says_how_many_it_takes() {
    let spread = planned(bond("802.3ad", Some("layer3+4")), "6.18.0", &[40000, 40001, 40002, 40003]);
    // Ports 40000 = 9c40 and 5201 = 1451; addresses differ in 1 ^ 2 = 3. The bytes' sum without carry is
    // 9c ^ 40 ^ 14 ^ 51 ^ 3 = 9a, and its second bit decides: 1, 1, 0, 0 for the lower bytes 40 to 43.
    assert_eq!(ports_of(&spread), ["eth1", "eth1", "eth0", "eth0"]);
    assert_eq!((spread.reachable_ports, spread.flows_for_all), (2, Some(5)));
    assert!(spread.says[1].contains("5 of them reach all 2 ports"), "{:?}", spread.says);
    assert!(!spread.says.iter().any(|line| line.contains("chance, not the policy")));
    let collided = planned(bond("802.3ad", Some("layer3+4")), "6.18.0", &[40000, 40001]);
    assert!(collided.says.iter().any(|line| line.contains("All 2 connections of this run hash to eth1: chance")));
}

#[test]
fn each_mode_tells_what_it_does() {
    for (mode, policy, ports, reachable, needed, said) in [
        ("balance-rr", None, 2, 2, Some(1), "packet by packet"),
        ("broadcast", None, 2, 2, Some(1), "every packet by every port"),
        ("balance-alb", None, 2, 1, None, "each peer one port"),
        ("balance-tlb", Some("layer2"), 2, 1, None, "by their load"),
        ("balance-tlb", Some("layer3+4"), 2, 2, Some(5), "by their load"),
        ("balance-xor", Some("layer2+3"), 2, 1, None, "further IP address"),
        ("802.3ad", Some("encap3+4"), 2, 2, Some(5), "random number"),
        ("802.3ad", Some("vlan+srcmac"), 2, 1, None, "own MAC address"),
    ] {
        let spread = planned(bond(mode, policy), "6.18.0", &[40000]);
        assert_eq!((spread.ports.len(), spread.reachable_ports, spread.flows_for_all), (ports, reachable, needed), "{mode}");
        assert!(spread.says.iter().any(|line| line.contains(said)), "{mode}: {:?}", spread.says);
    }
}

#[test]
fn active_backup_uses_its_active_port_alone() {
    let mut backup = bond("active-backup", None);
    backup.ports[0].active = Some(false);
    let spread = planned(backup, "6.18.0", &[40000, 40001]);
    assert_eq!((spread.ports.as_slice(), spread.reachable_ports, spread.flows_for_all), (&["eth1".to_owned()][..], 1, None));
    assert_eq!(ports_of(&spread), ["eth1", "eth1"]);
    assert!(spread.says[0].contains("eth1 alone"));
}

#[test]
fn balance_tlb_without_dynamic_balancing_hashes() {
    let mut tlb = bond("balance-tlb", Some("layer2"));
    tlb.settings = BondSettings { tlb_dynamic: Some(false), ..BondSettings::default() };
    assert_eq!(ports_of(&planned(tlb, "6.18.0", &[40000])), ["eth1"]);
}

#[test]
fn a_port_that_is_down_is_not_counted_since_the_array_and_passed_over_before() {
    let three = |down: usize| {
        let mut bond = bond("balance-xor", Some("layer2"));
        bond.ports.push(port("eth2"));
        bond.ports[down].up = Some(false);
        bond.ports[down].active = Some(false);
        bond
    };
    // 0x10 ^ 0x21 = 49, and with 0x0800 2097: both 1 and 0 mod 3 and 2. Of three ports 49 % 3 = 1: eth1 is down, so eth2.
    for (release, down, expected) in [
        ("3.10.0", 1, "eth2"),
        ("3.10.0", 0, "eth1"),
        // Of the two that are left: 2097 % 2 = 1.
        ("6.18.0", 1, "eth2"),
        ("6.18.0", 0, "eth2"),
        ("3.18.1", 0, "?"),
    ] {
        assert_eq!(ports_of(&planned(three(down), release, &[40000])), [expected], "{release} without eth{down}");
    }
}

#[test]
fn only_ports_of_the_active_aggregator_that_distribute_count() {
    let mut lacp = bond("802.3ad", Some("layer2"));
    lacp.partner_mac = Some("02:00:00:00:09:01".into());
    lacp.ports[0].actor_state = Some(5);
    lacp.ports[1].actor_state = Some(61);
    assert_eq!(planned(lacp.clone(), "6.18.0", &[1]).ports, ["eth1"]);
    // Without a partner the driver uses what it has.
    lacp.partner_mac = Some("00:00:00:00:00:00".into());
    assert_eq!(planned(lacp, "6.18.0", &[1]).ports, ["eth0", "eth1"]);
}

#[test]
fn what_is_not_told_names_no_port() {
    let hidden = |change: &dyn Fn(&mut HostLink, &mut Headers)| {
        let (mut link, mut headers) = (link(bond("802.3ad", Some("layer2+3"))), headers("6.18.0"));
        change(&mut link, &mut headers);
        plan(&link, &headers, &flows(&[40000]))
    };
    let why = |outcome: Outcome<FlowSpread>| {
        outcome.measured().map_or_else(
            || outcome.why().unwrap_or_default().to_owned(),
            |spread| spread.flows[0].port.why().unwrap_or("a port").to_owned(),
        )
    };
    let of = |link: &mut HostLink, change: &dyn Fn(&mut Bond)| change(link.stack[0].bond.as_mut().unwrap());
    assert!(why(hidden(&|link, _| of(link, &|bond| bond.in_order = false))).contains("the order"));
    assert!(
        why(hidden(&|link, _| of(link, &|bond| bond.ports[1] = BondPort { name: "eth1".into(), ..BondPort::default() })))
            .contains("which ports")
    );
    assert!(why(hidden(&|_, headers| headers.next_hop_mac = Outcome::skipped("no entry"))).contains("no entry"));
    assert!(why(hidden(&|_, headers| headers.release = Outcome::Measured("custom".into()))).contains("release"));
    assert!(why(hidden(&|_, headers| headers.tag_within = Some("a tag".into()))).contains("a tag"));
    assert!(why(hidden(&|link, _| of(link, &|bond| bond.hash_policy = None))).contains("no source tells the transmit policy"));
    assert!(why(hidden(&|link, _| of(link, &|bond| bond.mode = "newest".into()))).contains("newest"));
    assert!(why(hidden(&|link, _| link.stack = vec![interface("eth0", Kind::Physical)])).contains("nothing is aggregated"));
    assert!(why(hidden(&|link, _| link.stack = vec![interface("team0", Kind::Team)])).contains("is a team"));
    assert!(
        why(hidden(&|link, _| {
            link.stack.insert(0, interface("br0", Kind::Bridge));
            link.stack.push(interface("eth7", Kind::Physical));
        }))
        .contains("eth7")
    );
    // One usable port needs no hash.
    assert_eq!(
        why(hidden(&|link, headers| {
            of(link, &|bond| (bond.in_order, bond.ports[1].up) = (false, Some(false)));
            headers.release = Outcome::skipped("no file");
        })),
        "a port"
    );
}

#[test]
fn the_router_stands_for_all_behind_it() {
    let mut link = link(bond("802.3ad", Some("layer2")));
    link.gateway = Outcome::Measured(Some([192, 0, 2, 254].into()));
    let spread = plan(&link, &headers("6.18.0"), &[]);
    assert!(spread.measured().unwrap().says.iter().any(|line| line.contains("behind a router")));
}

fn spread(ports: &[Option<&str>]) -> FlowSpread {
    let flow = |port: Option<&str>| PlannedFlow {
        what: "upload".into(),
        local: ([192, 0, 2, 1], 1).into(),
        remote: ([192, 0, 2, 2], 2).into(),
        port: port.map_or_else(|| Outcome::skipped("not told"), |port| Outcome::Measured(port.to_owned())),
    };
    FlowSpread {
        interface: "bond0".into(),
        policy: "layer3+4".into(),
        ports: vec!["eth0".into(), "eth1".into()],
        flows: ports.iter().copied().map(flow).collect(),
        flows_for_all: Some(5),
        reachable_ports: 2,
        says: Vec::new(),
    }
}

fn grown(ports: &[(&str, u64)]) -> CountersByInterface {
    let counters =
        |bytes: u64| Counters(if bytes > 0 { BTreeMap::from([("tx_bytes".to_owned(), bytes)]) } else { BTreeMap::new() });
    ports.iter().map(|(name, bytes)| ((*name).to_owned(), counters(*bytes))).collect()
}

#[test]
fn bytes_of_the_ports_confirm_or_contradict_the_prediction() {
    const MB: u64 = 1_000_000;
    let both = [Some("eth0"), Some("eth1")];
    for (name, spread, sent, counted, agrees) in [
        ("headers of 5 %", spread(&both), vec![100 * MB, 100 * MB], [("eth0", 105 * MB), ("eth1", 105 * MB)], Some(true)),
        ("uneven as foretold", spread(&both), vec![300 * MB, 50 * MB], [("eth0", 315 * MB), ("eth1", 53 * MB)], Some(true)),
        (
            "acknowledgements on the idle port",
            spread(&[Some("eth0")]),
            vec![200 * MB],
            [("eth0", 208 * MB), ("eth1", 8 * MB)],
            Some(true),
        ),
        ("the other port", spread(&[Some("eth0")]), vec![200 * MB], [("eth0", 0), ("eth1", 210 * MB)], Some(false)),
        ("all on one", spread(&both), vec![100 * MB, 100 * MB], [("eth0", 210 * MB), ("eth1", 0)], Some(false)),
        ("much other traffic", spread(&both), vec![100 * MB, 100 * MB], [("eth0", 400 * MB), ("eth1", 105 * MB)], None),
        ("counters behind", spread(&both), vec![100 * MB, 100 * MB], [("eth0", 60 * MB), ("eth1", 60 * MB)], None),
        ("too little", spread(&both), vec![MB, MB], [("eth0", MB), ("eth1", MB)], None),
        (
            "a port unknown",
            spread(&[Some("eth0"), None]),
            vec![100 * MB, 100 * MB],
            [("eth0", 105 * MB), ("eth1", 105 * MB)],
            None,
        ),
        ("a stream's bytes unknown", spread(&both), vec![100 * MB], [("eth0", 105 * MB), ("eth1", 105 * MB)], None),
        ("a little off", spread(&both), vec![100 * MB, 100 * MB], [("eth0", 94 * MB), ("eth1", 116 * MB)], None),
    ] {
        let checked = check(&spread, &sent, &grown(&counted));
        assert_eq!(checked.agrees.measured().copied(), agrees, "{name}: {:?}", checked.agrees);
        assert_eq!(checked.sent.len(), 2, "{name}");
    }
    let checked = check(&spread(&both), &[100 * MB, 100 * MB], &grown(&[("eth0", 210 * MB)]));
    assert!(checked.agrees.why().is_some_and(|why| why.contains("eth1 has no counters")), "{:?}", checked.agrees);
}

#[test]
fn the_table_of_arp_is_read() {
    let text = "IP address       HW type     Flags       HW address            Mask     Device\n\
                192.0.2.2        0x1         0x2         02:00:00:00:00:21     *        bond0\n\
                192.0.2.3        0x1         0x0         00:00:00:00:00:00     *        bond0\n\
                192.0.2.4        0x1         0x2         02:00:00:00:00:44     *        eth9\n";
    for (hop, expected) in [
        ("192.0.2.2", Some([2, 0, 0, 0, 0, 0x21])),
        ("192.0.2.3", None),
        ("192.0.2.4", None),
        ("192.0.2.5", None),
        ("2001:db8::2", None),
    ] {
        assert_eq!(arp_entry(text, hop.parse().unwrap(), "bond0"), expected, "{hop}");
    }
    for bad in ["", "02:00:00:00:00", "02:00:00:00:00:00:00", "2:0:0:0:0:0", "02:00:00:00:00:xx", "02-00-00-00-00-01"] {
        assert_eq!(parse_mac(bad), None, "{bad}");
    }
}

proptest! {
    #[test]
    fn any_text_of_arp_is_taken(text in "(.{0,40}\n){0,6}") {
        let _ = arp_entry(&text, [192, 0, 2, 2].into(), "bond0");
        let _ = parse_mac(&text);
    }

    #[test]
    fn a_port_is_always_one_of_the_usable(
        count in 1..9usize,
        ports in prop::collection::vec(any::<u16>(), 0..20),
        policy in prop::sample::select(vec!["layer2", "layer2+3", "layer3+4", "encap2+3", "encap3+4", "vlan+srcmac"]),
        release in prop::sample::select(vec!["3.10.108", "3.16.7", "4.4.302+", "4.18.0-513.el8.x86_64", "5.15.0-91-generic", "6.18.0"]),
        down in any::<u8>(),
    ) {
        let mut bond = bond("balance-xor", Some(policy));
        bond.ports = (0..count).map(|at| port(&format!("eth{at}"))).collect();
        for (at, port) in bond.ports.iter_mut().enumerate() {
            if down >> at & 1 == 1 { (port.up, port.active) = (Some(false), Some(false)); }
        }
        let usable: Vec<String> = bond.ports.iter().filter(|port| port.up == Some(true)).map(|port| port.name.clone()).collect();
        let spread = planned(bond, release, &ports);
        prop_assert_eq!(&spread.ports, &usable);
        prop_assert_eq!(spread.flows.len(), ports.len());
        for flow in &spread.flows {
            if let Some(port) = flow.port.measured() { prop_assert!(usable.contains(port)); }
        }
    }
}
