//! Recorded machines, the real machine, and bytes that nobody meant.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;
use crate::model::link::{Duplex, HostLink, InterfaceKind as Kind};
use crate::model::outcome::{Fact, Source};
use crate::units::{BitRate, Mtu};

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 10));
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 20));

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/link")
}

pub(super) fn text(name: &str) -> String {
    fs::read_to_string(fixtures().join(name)).unwrap()
}

#[cfg(unix)]
fn link_to(target: &str, path: &Path) {
    std::os::unix::fs::symlink(target, path).unwrap();
}

/// Bytes from pairs of hexadecimal digits.
pub(super) fn bytes(hex: &str) -> Vec<u8> {
    let hex = hex.trim();
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Lays out a recorded machine: a line is `PATH = CONTENT`, `PATH -> TARGET`, `PATH < FIXTURE` or `PATH % HEX`;
/// `@a.b.c.d` is an address as this machine's `/proc/net/route` prints it.
#[cfg(unix)]
pub(super) fn machine(name: &str) -> (tempfile::TempDir, Tree) {
    let dir = tempfile::tempdir().unwrap();
    for line in text(name).lines().filter(|line| line.starts_with('/')) {
        let (path, sign, content) = [" = ", " -> ", " < ", " % "]
            .iter()
            .filter_map(|sign| line.split_once(sign).map(|(path, content)| (path, sign.trim(), content)))
            .min_by_key(|(path, _, _)| path.len())
            .unwrap();
        let path = dir.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match sign {
            "->" => link_to(content, &path),
            "<" => fs::write(path, text(content)).unwrap(),
            "%" => fs::write(path, bytes(content)).unwrap(),
            _ => fs::write(path, with_addresses(&content.replace("\\n", "\n").replace("\\t", "\t"))).unwrap(),
        }
    }
    let tree = Tree::new(dir.path());
    (dir, tree)
}

fn with_addresses(content: &str) -> String {
    let word = |word: &str| match word.strip_prefix('@').and_then(|address| address.parse::<Ipv4Addr>().ok()) {
        Some(address) => format!("{:08X}", u32::from_ne_bytes(address.octets())),
        None => word.to_owned(),
    };
    content.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(unix)]
pub(super) fn link(name: &str) -> HostLink {
    let (_dir, tree) = machine(name);
    let outcome = collect(LOCAL, PEER, &tree);
    outcome.measured().unwrap_or_else(|| panic!("{name}: {outcome:?}")).clone()
}

#[test]
#[cfg(unix)]
fn the_drawn_bus_of_a_virtual_card_gives_no_rate() {
    let link = link("vmxnet3.tree");
    let top = link.top().unwrap();
    let bus = top.bus.measured().unwrap();
    assert_eq!((top.kind, bus.kind.as_str(), &bus.rate_bps, &bus.max_rate_bps), (Kind::VirtualMachine, "pci", &None, &None));
    assert_eq!(top.speed_bps.measured().map(|fact| fact.value), Some(BitRate::from_mbit(10_000)), "a claim, see the kind");
}

#[test]
#[cfg(unix)]
fn recorded_machines_are_recognised() {
    let slot = Some(BitRate(4_000_000_000));
    for (name, kind, driver, speed, bus, rate) in [
        ("pcie_below_max.tree", Kind::Physical, Some("atlantic"), Some(10_000), "pci", slot),
        ("usb_behind_480_hub.tree", Kind::Physical, Some("r8152"), Some(5_000), "usb", Some(BitRate(480_000_000))),
        ("usb3_on_slow_card.tree", Kind::Physical, Some("r8152"), Some(2_500), "usb", Some(BitRate(2_000_000_000))),
        ("thunderbolt.tree", Kind::Physical, Some("atlantic"), Some(10_000), "pci", Some(BitRate(31_507_692_307))),
        ("wifi.tree", Kind::Wifi, Some("iwlwifi"), None, "pci", None),
        ("virtio.tree", Kind::VirtualMachine, Some("virtio_net"), None, "virtio", None),
    ] {
        let link = link(name);
        let top = link.top().unwrap();
        assert_eq!(top.kind, kind, "{name}");
        assert_eq!(top.driver.measured().map(|fact| fact.value.as_str()), driver, "{name}");
        assert_eq!(top.speed_bps.measured().map(|fact| fact.value), speed.map(BitRate::from_mbit), "{name}");
        let found = top.bus.measured().unwrap();
        assert_eq!((found.kind.as_str(), found.rate_bps.as_ref().map(|fact| fact.value)), (bus, rate), "{name}");
    }
}

#[test]
#[cfg(unix)]
fn a_card_in_a_narrow_slot_says_what_it_could_do() {
    let link = link("pcie_below_max.tree");
    let top = link.top().unwrap();
    let bus = top.bus.measured().unwrap();
    assert_eq!(bus.max_rate_bps.as_ref().unwrap().value, BitRate(31_507_692_307));
    assert_eq!(bus.description, "PCIe 5.0 GT/s x1; the card can do 8.0 GT/s x4");
    assert_eq!(top.mtu.measured(), Some(&Fact::new(Mtu(9000), Source::Sysfs)));
    assert_eq!(top.duplex.measured().unwrap().value, Duplex::Full);
    assert_eq!((top.carrier.measured(), top.carrier_changes.measured()), (Some(&true), Some(&2)));
    assert_eq!(top.counters.measured().unwrap().get("rx_crc_errors"), Some(7));
    assert_eq!(link.gateway.measured(), Some(&None));
}

#[test]
#[cfg(unix)]
fn descriptions_of_buses_name_the_slowest_part() {
    for (name, description) in [
        ("usb_behind_480_hub.tree", "USB 480 Mbit/s; the adapter calls itself USB 2.10, as USB 3 devices do in a USB 2 socket"),
        ("usb3_on_slow_card.tree", "USB 5000 Mbit/s; slowest part PCIe 2.5 GT/s x1 at 0000:01:00.0"),
        (
            "thunderbolt.tree",
            "PCIe 8.0 GT/s x4; behind a bridge whose declared speed is not believed (2.5 GT/s x4, as Thunderbolt declares)",
        ),
    ] {
        assert_eq!(link(name).top().unwrap().bus.measured().unwrap().description, description, "{name}");
    }
}

#[test]
#[cfg(unix)]
fn a_vlan_on_a_bond_leads_to_its_ports_by_files_alone() {
    let link = link("vlan_on_bond.tree");
    let stack: Vec<_> = link.stack.iter().map(|interface| (interface.name.as_str(), interface.kind)).collect();
    assert_eq!(stack, [("bond0.7", Kind::Vlan), ("bond0", Kind::Bond), ("enp2s0", Kind::Physical), ("enp3s0", Kind::Physical)]);
    assert_eq!(host_interface_names(&link), ["bond0.7", "bond0", "enp2s0", "enp3s0"]);
    let bond = link.stack[1].bond.as_ref().unwrap();
    assert_eq!((bond.mode.as_str(), bond.hash_policy.as_deref()), ("active-backup", None));
    let ports: Vec<_> = bond.ports.iter().map(|port| (port.active, port.up, port.speed_bps)).collect();
    assert_eq!(ports, [(Some(true), Some(true), Some(BitRate(1_000_000_000))), (Some(false), Some(false), None)]);
    assert!(link.stack[3].speed_bps.why().unwrap().contains("has no link"), "{:?}", link.stack[3].speed_bps);
}

#[test]
#[cfg(unix)]
fn a_container_without_sys_still_has_its_route_and_counters() {
    let link = link("no_sys.tree");
    let top = link.top().unwrap();
    assert_eq!((top.name.as_str(), top.kind), ("eth0", Kind::Unknown));
    assert_eq!(link.gateway.measured(), Some(&Some(Ipv4Addr::new(192, 0, 2, 1).into())));
    assert_eq!(top.counters.measured().unwrap().get("tx_bytes"), Some(200));
    for why in [top.mtu.why(), top.speed_bps.why(), top.carrier.why(), top.bus.why()] {
        assert!(why.unwrap().contains("/sys/class/net/eth0"), "{why:?}");
    }
}

#[test]
fn a_machine_that_tells_nothing_gives_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let tree = Tree::new(dir.path());
    assert!(collect(LOCAL, PEER, &tree).why().unwrap().contains("192.0.2.20"));
    assert!(counters(&["eth0".to_owned(), "../x".to_owned()], &tree).why().is_some());
}

#[test]
fn real_bonds_are_read() {
    let lacp = parse_bond(&text("bond_8023ad_no_partner.txt"));
    assert_eq!((lacp.mode.as_str(), lacp.hash_policy.as_deref()), ("802.3ad", Some("layer2")));
    assert_eq!(lacp.partner_mac.as_deref(), Some("00:00:00:00:00:00"));
    assert_eq!((lacp.active_aggregator, lacp.active_ports, lacp.ports.len()), (Some(1), Some(1), 1));
    let port = &lacp.ports[0];
    assert_eq!((port.name.as_str(), port.speed_bps, port.duplex), ("eno2", Some(BitRate::from_mbit(1000)), Some(Duplex::Full)));
    assert_eq!((port.actor_state, port.partner_state, port.aggregator), (Some(77), Some(1), Some(1)));
    assert_eq!(port.churn, Some(["none".to_owned(), "churned".to_owned()]));
    assert_eq!((port.up, port.active, port.failures), (Some(true), Some(true), Some(0)));

    for (name, mode, policy, active) in [
        ("bond_balance_rr.txt", "balance-rr", None, [true, true]),
        ("bond_balance_xor.txt", "balance-xor", Some("layer2+3"), [true, true]),
        ("bond_active_backup.txt", "active-backup", None, [true, false]),
    ] {
        let bond = parse_bond(&text(name));
        assert_eq!((bond.mode.as_str(), bond.hash_policy.as_deref(), bond.partner_mac.as_ref()), (mode, policy, None), "{name}");
        let ports: Vec<_> = bond.ports.iter().map(|port| port.active).collect();
        assert_eq!(ports, active.map(Some), "{name}");
    }
}

#[test]
fn without_privilege_the_partner_is_unknown_and_not_absent() {
    let hidden: String = text("bond_8023ad_no_partner.txt")
        .lines()
        .take_while(|line| !line.contains("details actor"))
        .filter(|line| !["System ", "Active Aggregator", "\t", "Actor Key"].iter().any(|start| line.starts_with(start)))
        .flat_map(|line| [line, "\n"])
        .collect();
    let bond = parse_bond(&hidden);
    assert_eq!((bond.partner_mac, bond.active_aggregator), (None, None));
    assert_eq!((bond.ports[0].partner_state, bond.ports[0].active), (None, None));
}

#[test]
fn the_own_address_and_the_loopback_lead_to_the_loopback_interface() {
    let mut pairs = vec![(IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V4(Ipv4Addr::LOCALHOST))];
    let own = if_addrs::get_if_addrs().unwrap_or_default().into_iter().filter(|it| !it.is_loopback() && !it.is_link_local());
    pairs.extend(own.map(|interface| (interface.ip(), interface.ip())));
    for (local, peer) in pairs {
        let link = collect(local, peer, &Tree::system());
        let top = link.measured().unwrap().top().unwrap();
        assert_eq!(top.kind, Kind::Loopback, "{peer}");
        assert!(top.speed_bps.why().is_some());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_real_loopback_counts_what_is_sent() {
    let tree = Tree::system();
    let link = collect(Ipv4Addr::LOCALHOST.into(), IpAddr::V4(Ipv4Addr::LOCALHOST), &tree);
    let names = host_interface_names(link.measured().unwrap());
    let before = counters(&names, &tree);
    let socket = std::net::UdpSocket::bind(("127.0.0.1", 0)).unwrap();
    socket.send_to(&[0; 1000], socket.local_addr().unwrap()).unwrap();
    let after = counters(&names, &tree);
    let (before, after) = (&before.measured().unwrap()[&names[0]], &after.measured().unwrap()[&names[0]]);
    assert!(after.since(before).get("tx_bytes").unwrap() >= 1000);
}

#[cfg(target_os = "linux")]
mod decoders {
    use netlink_packet_core::NetlinkMessage;
    use netlink_packet_route::RouteNetlinkMessage;
    use netlink_packet_route::link::{
        BondAdInfo, BondMode, BondPortState, BondXmitHashPolicy, InfoBond, InfoBondPort, InfoData, InfoKind, InfoPortData,
        InfoPortKind, LacpState, LinkAttribute, LinkInfo, LinkMessage, MiiStatus,
    };

    use super::super::{ethtool, rtnl};
    use super::*;

    fn settings(words: u8, masks: &[u32]) -> Vec<u8> {
        let mut data = vec![0; 48];
        data[4..8].copy_from_slice(&1000u32.to_ne_bytes());
        (data[8], data[11], data[15]) = (1, 1, words);
        data.extend(masks.iter().flat_map(|word| word.to_ne_bytes()));
        data
    }

    #[test]
    fn link_modes_become_speeds() {
        // Supported 100, 1000, 2500 (bit 47), 10000 and pause; advertised up to 2500; partner up to 1000.
        let masks = [1 << 3 | 1 << 5 | 1 << 12 | 1 << 13, 1 << 15, 1 << 3 | 1 << 5, 1 << 15, 1 << 5 | 1 << 6, 0];
        let found = ethtool::link_settings(&settings(2, &masks)).unwrap();
        let mbit = |speeds: &[BitRate]| speeds.iter().map(|speed| speed.0 / 1_000_000).collect::<Vec<_>>();
        assert_eq!(mbit(&found.modes.supported_bps), [100, 1000, 2500, 10_000]);
        assert_eq!(mbit(&found.modes.advertised_bps), [100, 1000, 2500]);
        assert_eq!(mbit(&found.modes.partner_bps), [1000]);
        assert_eq!((found.speed, found.duplex, found.autoneg), (Some(BitRate::from_mbit(1000)), Some(Duplex::Full), true));
        assert_eq!(ethtool::link_settings(&settings(3, &masks)), None, "cut");
    }

    #[test]
    fn the_old_structure_splits_the_speed() {
        let mut data = vec![0u8; 44];
        data[4..8].copy_from_slice(&(1u32 << 12 | 1 << 5).to_ne_bytes());
        (data[14], data[18]) = (1, 1);
        for (low, high, speed) in
            [(10_000u16, 0u16, Some(10_000)), (34_464, 1, Some(100_000)), (0xffff, 0xffff, None), (0xffff, 0, None)]
        {
            data[12..14].copy_from_slice(&low.to_ne_bytes());
            data[28..30].copy_from_slice(&high.to_ne_bytes());
            assert_eq!(ethtool::old_settings(&data).unwrap().speed, speed.map(BitRate::from_mbit), "{low} {high}");
        }
    }

    /// A message as the kernel would send it.
    fn link_message(index: u32, attributes: Vec<LinkAttribute>) -> Vec<u8> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes = attributes;
        let mut packet = NetlinkMessage::from(RouteNetlinkMessage::NewLink(message));
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        bytes
    }

    #[test]
    fn a_bond_is_read_from_netlink_without_proc_and_sys() {
        let ad = vec![BondAdInfo::Aggregator(2), BondAdInfo::NumPorts(1), BondAdInfo::PartnerMac([2, 0, 0, 0, 0, 9])];
        let own = vec![
            InfoBond::Mode(BondMode::Ieee8023Ad),
            InfoBond::XmitHashPolicy(BondXmitHashPolicy::Layer34),
            InfoBond::AdInfo(ad),
        ];
        let port = |aggregator, state| {
            vec![
                InfoBondPort::BondPortState(BondPortState::Active),
                InfoBondPort::MiiStatus(MiiStatus::Up),
                InfoBondPort::LinkFailureCount(3),
                InfoBondPort::AdAggregatorId(aggregator),
                InfoBondPort::AdActorOperPortState(LacpState::from_bits_retain(state)),
            ]
        };
        let slave = |index, name: &str, facts| {
            let info = vec![LinkInfo::PortKind(InfoPortKind::Bond), LinkInfo::PortData(InfoPortData::BondPort(facts))];
            let attributes =
                vec![LinkAttribute::IfName(name.into()), LinkAttribute::Controller(5), LinkAttribute::LinkInfo(info)];
            link_message(index, attributes)
        };
        let info = vec![LinkInfo::Kind(InfoKind::Bond), LinkInfo::Data(InfoData::Bond(own))];
        let messages = [
            link_message(5, vec![LinkAttribute::IfName("bond0".into()), LinkAttribute::LinkInfo(info)]),
            slave(2, "eth0", port(2, 61)),
            slave(3, "eth1", port(7, 69)),
        ];
        let rows: Vec<_> = messages.iter().filter_map(|message| rtnl::decode_link(message)).collect();
        let bond = super::super::bond::collect(&Tree::new("/nonexistent"), "bond0", &rows).unwrap();
        assert_eq!((bond.mode.as_str(), bond.hash_policy.as_deref()), ("802.3ad", Some("layer3+4")));
        assert_eq!((bond.active_aggregator, bond.active_ports), (Some(2), Some(1)));
        assert_eq!(bond.partner_mac.as_deref(), Some("02:00:00:00:00:09"));
        let ports: Vec<_> =
            bond.ports.iter().map(|port| (port.name.as_str(), port.active, port.failures, port.actor_state)).collect();
        assert_eq!(ports, [("eth0", Some(true), Some(3), Some(61)), ("eth1", Some(false), Some(3), Some(69))]);
    }

    #[test]
    fn features_that_are_neither_on_nor_offered_are_left_out() {
        let field = |name: &str| {
            let mut field = [0; 32];
            field[..name.len()].copy_from_slice(name.as_bytes());
            field
        };
        let names = ["tx-tcp-segmentation", "rx-gro", "rx-lro", "highdma"].map(field);
        let found = ethtool::features(&names, &[[0b1011, 0, 0b1010, 0]]);
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            [("rx-gro".to_owned(), true), ("tx-tcp-segmentation".to_owned(), false)]
        );
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(data in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = ethtool::link_settings(&data);
            let _ = ethtool::old_settings(&data);
            let _ = ethtool::name(&data);
            let _ = rtnl::decode_link(&data);
            let _ = rtnl::decode_route(&data);
            let _ = parse_bond(&String::from_utf8_lossy(&data));
        }

        /// Behind a right header, so that the attributes themselves are random.
        #[test]
        fn random_attributes_never_panic(
            data in proptest::collection::vec((any::<u8>(), 0u8..64, proptest::collection::vec(any::<u8>(), 0..40)), 0..12),
        ) {
            let mut body = vec![0u8; 16];
            for (_, kind, value) in &data {
                body.extend((value.len() as u16 + 4).to_ne_bytes());
                body.extend(u16::from(*kind).to_ne_bytes());
                body.extend(value);
                body.resize(body.len().next_multiple_of(4), 0);
            }
            let mut message = (body.len() as u32 + 16).to_ne_bytes().to_vec();
            message.extend([16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
            message.extend(body);
            let _ = rtnl::decode_link(&message);
            message.drain(16..20);
            let length = (message.len() as u32).to_ne_bytes();
            message[..4].copy_from_slice(&length);
            let _ = rtnl::decode_route(&message);
        }

        #[test]
        fn bond_files_with_lines_mixed_never_panic(lines in proptest::collection::vec(0usize..50, 0..80)) {
            let whole = text("bond_8023ad_no_partner.txt");
            let all: Vec<&str> = whole.lines().collect();
            let mixed: Vec<&str> = lines.iter().filter_map(|at| all.get(*at).copied()).collect();
            prop_assert!(parse_bond(&mixed.join("\n")).ports.len() <= 64);
        }
    }
}

/// Virtual ports between two network namespaces, one end in a bridge; all goes when dropped. The portable side
/// of `sys` cannot tell a virtual pair from anything else.
#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod namespace {
    use std::process::Command;

    use super::*;

    /// Set in the process that runs inside the namespace.
    const INSIDE: &str = "WEAKLINK_TEST_IN_NAMESPACE";

    struct Pair {
        near: String,
        far: String,
    }

    fn ip(arguments: &str) -> bool {
        Command::new("ip").args(arguments.split_whitespace()).output().is_ok_and(|output| output.status.success())
    }

    impl Pair {
        fn new() -> Option<Self> {
            let id = std::process::id();
            let pair = Self { near: format!("weaklink-near-{id}"), far: format!("weaklink-far-{id}") };
            let (near, far) = (&pair.near, &pair.far);
            let made = ip(&format!("netns add {near}"))
                && ip(&format!("netns add {far}"))
                && ip(&format!("-n {near} link add wl0 mtu 1400 type veth peer name wl1 netns {far}"))
                && ip(&format!("-n {near} link add wlbr0 mtu 1400 type bridge"))
                && ip(&format!("-n {near} link set wl0 master wlbr0"))
                && ip(&format!("-n {near} addr add 192.0.2.10/24 dev wlbr0"))
                && ip(&format!("-n {near} link set wl0 up"))
                && ip(&format!("-n {near} link set wlbr0 up"))
                && ip(&format!("-n {far} addr add 192.0.2.20/24 dev wl1"))
                && ip(&format!("-n {far} link set wl1 up"))
                && ip(&format!("-n {far} link set lo up"))
                && ip(&format!("-n {near} route add 198.51.100.0/24 via 192.0.2.20"));
            // A system without IPv6 is tested without it.
            ip(&format!("-n {near} addr add 2001:db8::10/64 dev wlbr0 nodad"));
            // A rule by protocol may send TCP another way than UDP.
            ip(&format!("-n {near} route add 203.0.113.7 via 192.0.2.20"));
            // Ports with one hardware address have one link-local address.
            ip(&format!("-n {near} link add wl2 type veth peer name wl3 netns {far}"));
            ip(&format!("-n {near} link set wl2 up"));
            ip(&format!("-n {near} addr add 198.18.0.1/24 dev wl2"));
            ip(&format!("-n {near} route add 203.0.113.7 via 198.18.0.2 table 100"));
            for name in ["wlbr0", "wl2"] {
                ip(&format!("-n {near} addr add fe80::10/64 dev {name} nodad"));
            }
            made.then_some(pair)
        }
    }

    impl Drop for Pair {
        fn drop(&mut self) {
            for name in [&self.near, &self.far] {
                ip(&format!("netns del {name}"));
            }
        }
    }

    /// Runs one test of this file inside a namespace by `wrapper`.
    fn run(wrapper: &[&str], test: &str) {
        let exe = std::env::current_exe().unwrap();
        let name = format!("link::tests::namespace::{test}");
        let output = Command::new(wrapper[0])
            .args(&wrapper[1..])
            .arg(exe)
            .args(["--exact", &name, "--nocapture"])
            .env(INSIDE, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("1 passed"), "{test}: {said}");
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "a test that is left out says so")]
    fn a_bridge_over_a_virtual_pair_is_seen_from_both_ends() {
        let Some(pair) = Pair::new() else {
            eprintln!("SKIPPED: network namespaces need root and the program ip");
            return;
        };
        run(&["ip", "netns", "exec", &pair.near], "near_end");
        run(&["ip", "netns", "exec", &pair.far], "far_end");
        let path = format!("--net=/var/run/netns/{}", pair.far);
        if Command::new("nsenter").arg("--version").output().is_ok() {
            run(&["nsenter", &path], "sys_of_another_namespace");
        }
    }

    fn inside() -> bool {
        std::env::var_os(INSIDE).is_some()
    }

    fn found(local: &str, peer: &str) -> HostLink {
        let outcome = collect(local.parse().unwrap(), super::super::Peer::parse(peer).unwrap(), &Tree::system());
        outcome.measured().unwrap_or_else(|| panic!("{outcome:?}")).clone()
    }

    #[test]
    fn near_end() {
        if !inside() {
            return;
        }
        let link = found("192.0.2.10", "192.0.2.20");
        let stack: Vec<_> = link.stack.iter().map(|interface| (interface.name.as_str(), interface.kind)).collect();
        assert_eq!(stack, [("wlbr0", Kind::Bridge), ("wl0", Kind::Veth)]);
        assert_eq!(link.gateway.measured(), Some(&None));
        for interface in &link.stack {
            assert_eq!(interface.mtu.measured().map(|fact| fact.value), Some(Mtu(1400)), "{interface:?}");
            assert_eq!(interface.carrier.measured(), Some(&true));
            assert!(interface.counters.measured().unwrap().get("rx_bytes").is_some());
        }
        assert!(link.stack[1].offloads.measured().unwrap().contains_key("tx-tcp-segmentation"), "{:?}", link.stack[1]);
        let nic = link.stack[1].nic.measured().unwrap();
        assert!(nic.mac.measured().is_some() && nic.tx_queues.measured().is_some(), "{nic:?}");
        assert!(nic.channels.measured().is_some_and(|fact| fact.value.rx > 0), "{nic:?}");
        assert!(nic.rings.why().is_some() && nic.module.why().is_some(), "{nic:?}");
        assert_eq!(link.stack[1].speed_bps.measured().map(|fact| fact.value), Some(BitRate::from_mbit(10_000)));
        let routed = found("192.0.2.10", "198.51.100.7");
        assert_eq!(routed.gateway.measured(), Some(&Some("192.0.2.20".parse().unwrap())));
        assert_eq!(routed.top().unwrap().name, "wlbr0");
        let v6: IpAddr = "2001:db8::20".parse().unwrap();
        if let Ok(local) = local_addr_towards(v6) {
            assert_eq!(found(&local.to_string(), "2001:db8::20").top().unwrap().name, "wlbr0");
        }
        let alike = || super::super::route::owners("fe80::10".parse().unwrap());
        if alike().len() == 2 {
            for name in ["wlbr0", "wl2"] {
                assert_eq!(found("fe80::10", &format!("fe80::20%{name}")).top().unwrap().name, name);
                assert_eq!(found("fe80::10", &format!("fe80::10%{name}")).top().unwrap().kind, Kind::Loopback);
                let peer = super::super::Peer::parse(&format!("fe80::20%{name}")).unwrap();
                assert_eq!(local_addr_towards(peer).unwrap(), "fe80::10".parse::<IpAddr>().unwrap());
                assert_eq!(leaves_by("fe80::10".parse().unwrap(), peer, &Tree::system()).unwrap().0, name);
            }
            let untold = collect("fe80::10".parse().unwrap(), "fe80::20".parse::<IpAddr>().unwrap(), &Tree::system());
            assert!(untold.why().is_some_and(|why| why.contains("wlbr0") && why.contains("wl2")), "{untold:?}");
        }
        let by_rule: IpAddr = "203.0.113.7".parse().unwrap();
        if ip("rule add ipproto tcp to 203.0.113.7 lookup 100") {
            let local = local_addr_towards(by_rule).unwrap();
            assert_eq!(local, "198.18.0.1".parse::<IpAddr>().unwrap(), "TCP goes by the rule's table");
            assert_eq!(leaves_by(local, by_rule, &Tree::system()).unwrap().0, "wl2");
        }
        let own = found("192.0.2.10", "192.0.2.10");
        assert_eq!(own.top().unwrap().kind, Kind::Loopback);
    }

    #[test]
    fn far_end() {
        if !inside() {
            return;
        }
        let link = found("192.0.2.20", "192.0.2.10");
        assert_eq!(link.stack.len(), 1, "{:?}", link.stack);
        assert_eq!((link.stack[0].name.as_str(), link.stack[0].kind), ("wl1", Kind::Veth));
    }

    #[test]
    fn sys_of_another_namespace() {
        if !inside() {
            return;
        }
        let link = found("192.0.2.20", "192.0.2.10");
        assert_eq!((link.stack[0].name.as_str(), link.stack[0].kind), ("wl1", Kind::Veth));
        assert!(link.stack[0].bus.why().is_some());
        assert!(counters(&["wl1".to_owned()], &Tree::system()).measured().unwrap()["wl1"].get("tx_packets").is_some());
    }
}
