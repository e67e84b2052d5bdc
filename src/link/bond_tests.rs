//! Aggregations from every source: the seven modes, their setup, and the order of the ports.

use std::fs;
use std::path::Path;

use super::facts::LinkRow;
use super::tree::Tree;
use super::{bond, parse_bond};
use crate::model::lacp;
use crate::model::link::{Bond, BondSettings};

fn fixture(name: &str) -> Bond {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/link").join(name);
    parse_bond(&fs::read_to_string(path).unwrap())
}

#[test]
fn two_partners_at_two_ports_are_told_apart() {
    let bond = fixture("bond_8023ad_two_switches.txt");
    assert_eq!((bond.active_aggregator, bond.actor_key, bond.partner_key), (Some(2), Some(15), Some(17)));
    let expected = BondSettings {
        miimon_ms: Some(100),
        up_delay_ms: Some(200),
        down_delay_ms: Some(300),
        lacp_rate: Some("fast".into()),
        lacp_active: Some(true),
        ad_select: Some("bandwidth".into()),
        min_links: Some(1),
        ..BondSettings::default()
    };
    assert_eq!(bond.settings, expected);
    assert!(bond.in_order);
    let names: Vec<_> = bond.ports.iter().map(|port| port.name.as_str()).collect();
    assert_eq!(names, ["enp3s0", "enp2s0"], "the kernel's order, not that of the names");
    let [out, used] = bond.ports.as_slice() else { panic!("two ports") };
    let partner = |port: &crate::model::link::BondPort| (port.partner_system.clone(), port.partner_key, port.partner_port);
    assert_eq!(partner(out), (Some("02:00:00:00:0b:01".into()), Some(16), Some(9)));
    assert_eq!(partner(used), (Some("02:00:00:00:0b:02".into()), Some(17), Some(12)));
    assert_eq!((used.actor_key, used.queue_id, used.permanent_mac.as_deref()), (Some(15), Some(5), Some("02:00:00:00:0a:02")));
    // Aggregated, but not synchronised: its partner is another than that of the aggregator in use.
    assert_eq!((out.active, used.active), (Some(false), Some(true)));
    assert!(lacp::fault(out.actor_state.unwrap()).unwrap().contains("not in the active aggregator"));
    assert_eq!(used.actor_state.map(lacp::healthy), Some(true));
}

#[test]
fn the_recorded_bonds_tell_what_a_reader_concludes() {
    let silent = fixture("bond_8023ad_no_partner.txt");
    assert_eq!(silent.ports[0].partner_system.as_deref(), Some("00:00:00:00:00:00"));
    assert_eq!(silent.ports[0].churn.as_ref().map(|states| states[1].as_str()), Some("churned"));
    assert!(lacp::fault(silent.ports[0].actor_state.unwrap()).unwrap().contains("no LACPDU"));
    assert_eq!((silent.settings.lacp_rate.as_deref(), silent.settings.ad_select.as_deref()), (Some("slow"), Some("stable")));

    let robin = fixture("bond_balance_rr.txt");
    assert_eq!((robin.settings.lacp_rate, robin.actor_key, robin.settings.miimon_ms), (None, None, Some(100)));
    let xor = fixture("bond_balance_xor.txt");
    assert_eq!((xor.hash_policy.as_deref(), xor.partner_mac, xor.partner_key), (Some("layer2+3"), None, None));
    let backup = fixture("bond_active_backup.txt");
    assert_eq!((backup.settings.primary, backup.ports[1].up, backup.ports[1].active), (None, Some(false), Some(false)));
}

#[test]
fn all_seven_modes_keep_what_they_have() {
    let common = "MII Polling Interval (ms): 100\nPrimary Slave: eth1 (primary_reselect always)\nLACP rate: fast\n\
                  Transmit Hash Policy: layer3+4 (1)\nSlave Interface: eth0\nMII Status: up\n";
    for (long, short, hashes, primary, rate) in [
        ("load balancing (round-robin)", "balance-rr", false, false, false),
        ("fault-tolerance (active-backup) (fail_over_mac active)", "active-backup", false, true, false),
        ("load balancing (xor)", "balance-xor", true, false, false),
        ("fault-tolerance (broadcast)", "broadcast", false, false, false),
        ("IEEE 802.3ad Dynamic link aggregation", "802.3ad", true, false, true),
        ("transmit load balancing", "balance-tlb", true, true, false),
        ("adaptive load balancing", "balance-alb", false, true, false),
    ] {
        let bond = parse_bond(&format!("Bonding Mode: {long}\n{common}"));
        assert_eq!(bond.mode, short);
        assert_eq!(bond.hash_policy.is_some(), hashes, "{short}");
        assert_eq!(bond.settings.primary.is_some(), primary, "{short}");
        assert_eq!(bond.settings.lacp_rate.is_some(), rate, "{short}");
        assert_eq!(bond.settings.fail_over_mac.as_deref(), (short == "active-backup").then_some("active"), "{short}");
    }
}

#[test]
fn arp_targets_are_listed() {
    let bond = parse_bond(
        "Bonding Mode: fault-tolerance (active-backup)\nARP Polling Interval (ms): 1000\nARP IP target/s (n.n.n.n form): 192.0.2.1, 192.0.2.9\n",
    );
    assert_eq!(bond.settings.arp_interval_ms, Some(1000));
    assert_eq!(bond.settings.arp_targets, ["192.0.2.1", "192.0.2.9"]);
}

/// A machine of files alone.
fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let tree = Tree::new(dir.path());
    (dir, tree)
}

fn rows(ports: &[(u32, &str)]) -> Vec<LinkRow> {
    let mut rows = vec![LinkRow { index: 9, name: "bond0".into(), kind: Some("bond".into()), ..LinkRow::default() }];
    rows[0].bond.mode = Some("balance-tlb".into());
    rows[0].bond.settings.tlb_dynamic = Some(false);
    rows[0].bond.settings.lp_interval_s = Some(1);
    rows[0].bond.settings.lacp_rate = Some("slow".into());
    rows[0].bond.primary = Some(2);
    rows.extend(ports.iter().map(|(index, name)| LinkRow {
        index: *index,
        name: (*name).into(),
        master: Some(9),
        ..LinkRow::default()
    }));
    rows
}

#[test]
fn sysfs_gives_the_order_where_netlink_gives_the_ports() {
    let ports = [(2, "eth0"), (3, "eth1")];
    let names = |bond: &Bond| bond.ports.iter().map(|port| port.name.clone()).collect::<Vec<_>>();
    let (_dir, tree) = machine(&[
        ("sys/class/net/bond0/bonding/slaves", "eth1 eth0\n"),
        ("sys/class/net/bond0/bonding/xmit_hash_policy", "layer3+4 1\n"),
        ("sys/class/net/bond0/bonding/updelay", "50\n"),
    ]);
    let bond = bond::collect(&tree, "bond0", &rows(&ports)).unwrap();
    assert_eq!((names(&bond), bond.in_order), (vec!["eth1".to_owned(), "eth0".to_owned()], true));
    assert_eq!(
        (bond.settings.tlb_dynamic, bond.settings.lp_interval_s, bond.settings.up_delay_ms),
        (Some(false), Some(1), Some(50))
    );
    assert_eq!((bond.settings.primary.as_deref(), bond.settings.lacp_rate.as_deref()), (Some("eth0"), None));

    // Without sysfs the order of the dump is no order.
    let bond = bond::collect(&Tree::new("/nonexistent"), "bond0", &rows(&ports)).unwrap();
    assert_eq!((names(&bond), bond.in_order), (vec!["eth0".to_owned(), "eth1".to_owned()], false));
    // A port that sysfs does not know leaves the order open.
    let (_dir, tree) = machine(&[("sys/class/net/bond0/bonding/slaves", "eth1\n")]);
    let bond = bond::collect(&tree, "bond0", &rows(&ports)).unwrap();
    assert_eq!((names(&bond), bond.in_order), (vec!["eth1".to_owned(), "eth0".to_owned()], false));
}

#[cfg(target_os = "linux")]
mod netlink {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use netlink_packet_core::NetlinkMessage;
    use netlink_packet_route::link::{
        BondAdInfo, BondAdSelect, BondFailOverMac, BondLacpRate, BondMode, InfoBond, InfoBondPort, InfoData, InfoKind,
        InfoPortData, InfoPortKind, InfoVlan, LinkAttribute, LinkInfo, LinkMessage,
    };
    use netlink_packet_route::neighbour::{
        NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
    };
    use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
    use proptest::prelude::*;

    use super::super::{facts::NeighbourRow, rtnl};

    fn bytes(message: RouteNetlinkMessage) -> Vec<u8> {
        let mut packet = NetlinkMessage::from(message);
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        bytes
    }

    fn link(infos: Vec<LinkInfo>) -> super::LinkRow {
        let mut message = LinkMessage::default();
        message.header.index = 4;
        message.attributes = vec![LinkAttribute::IfName("bond0".into()), LinkAttribute::LinkInfo(infos)];
        rtnl::decode_link(&bytes(RouteNetlinkMessage::NewLink(message))).unwrap()
    }

    #[test]
    fn a_bonds_setup_is_read_without_privilege() {
        let own = vec![
            InfoBond::Mode(BondMode::Ieee8023Ad),
            InfoBond::MiiMon(100),
            InfoBond::UpDelay(200),
            InfoBond::DownDelay(300),
            InfoBond::ArpInterval(0),
            InfoBond::ArpIpTarget(vec![Ipv4Addr::new(192, 0, 2, 1)]),
            InfoBond::FailOverMac(BondFailOverMac::Follow),
            InfoBond::AdLacpRate(BondLacpRate::Fast),
            InfoBond::AdLacpActive(true),
            InfoBond::AdSelect(BondAdSelect::Count),
            InfoBond::MinLinks(2),
            InfoBond::LpInterval(1),
            InfoBond::TlbDynamicLb(true),
            InfoBond::PacketsPerPort(1),
            InfoBond::Primary(7),
            InfoBond::AdInfo(vec![BondAdInfo::ActorKey(15), BondAdInfo::PartnerKey(17)]),
        ];
        let row = link(vec![LinkInfo::Kind(InfoKind::Bond), LinkInfo::Data(InfoData::Bond(own))]);
        let settings = &row.bond.settings;
        assert_eq!((settings.miimon_ms, settings.up_delay_ms, settings.down_delay_ms), (Some(100), Some(200), Some(300)));
        assert_eq!((settings.arp_interval_ms, settings.arp_targets.as_slice()), (Some(0), &["192.0.2.1".to_owned()][..]));
        assert_eq!(
            [&settings.fail_over_mac, &settings.lacp_rate, &settings.ad_select].map(|word| word.as_deref()),
            [Some("follow"), Some("fast"), Some("count")]
        );
        assert_eq!((settings.lacp_active, settings.min_links, settings.lp_interval_s), (Some(true), Some(2), Some(1)));
        assert_eq!((settings.tlb_dynamic, settings.packets_per_port), (Some(true), Some(1)));
        assert_eq!((row.bond.primary, row.bond.actor_key, row.bond.partner_key), (Some(7), Some(15), Some(17)));
    }

    #[test]
    fn a_ports_own_address_and_a_vlans_number_are_read() {
        let facts = vec![InfoBondPort::PermHwaddr(vec![2, 0, 0, 0, 0, 9]), InfoBondPort::QueueId(3)];
        let row = link(vec![LinkInfo::PortKind(InfoPortKind::Bond), LinkInfo::PortData(InfoPortData::BondPort(facts))]);
        assert_eq!((row.port.permanent_mac, row.port.queue_id), (Some(vec![2, 0, 0, 0, 0, 9]), Some(3)));
        let row = link(vec![LinkInfo::Kind(InfoKind::Vlan), LinkInfo::Data(InfoData::Vlan(vec![InfoVlan::Id(7)]))]);
        assert_eq!(row.vlan, Some(7));
    }

    fn neighbour(state: NeighbourState, address: IpAddr, mac: Vec<u8>) -> Vec<u8> {
        let mut message = NeighbourMessage::default();
        (message.header.ifindex, message.header.state) = (4, state);
        let (family, address) = match address {
            IpAddr::V4(v4) => (AddressFamily::Inet, NeighbourAddress::Inet(v4)),
            IpAddr::V6(v6) => (AddressFamily::Inet6, NeighbourAddress::Inet6(v6)),
        };
        message.header.family = family;
        message.attributes = vec![NeighbourAttribute::Destination(address), NeighbourAttribute::LinkLayerAddress(mac)];
        bytes(RouteNetlinkMessage::NewNeighbour(message))
    }

    #[test]
    fn neighbours_of_both_kinds_are_read() {
        let mac = [2, 0, 0, 0, 0, 0x21];
        let v4 = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));
        let v6 = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2));
        for (name, state, address, hardware, known) in [
            ("reachable", NeighbourState::Reachable, v4, mac.to_vec(), true),
            ("stale", NeighbourState::Stale, v6, mac.to_vec(), true),
            ("permanent", NeighbourState::Permanent, v4, mac.to_vec(), true),
            ("failed", NeighbourState::Failed, v4, mac.to_vec(), false),
            ("incomplete", NeighbourState::Incomplete, v6, mac.to_vec(), false),
            ("no Ethernet", NeighbourState::Reachable, v4, vec![1, 2, 3, 4], false),
        ] {
            let row = rtnl::decode_neighbour(&neighbour(state, address, hardware));
            assert_eq!(row, known.then_some(NeighbourRow { index: 4, address, mac }), "{name}");
        }
        assert!(rtnl::neighbours_request(v6).len() >= 28, "a header and a neighbour's");
    }

    #[test]
    fn a_bridges_table_tells_the_port_behind_which_an_address_is() {
        let mac = [2, 0, 0, 0, 0, 0x21];
        let entry = |family, state, flags, hardware: &[u8]| {
            let mut message = NeighbourMessage::default();
            (message.header.ifindex, message.header.state, message.header.flags) = (7, state, flags);
            message.header.family = family;
            message.attributes = vec![NeighbourAttribute::LinkLayerAddress(hardware.to_vec())];
            rtnl::decode_bridged(&bytes(RouteNetlinkMessage::NewNeighbour(message)))
        };
        let (bridge, none) = (AddressFamily::Bridge, NeighbourFlags::empty());
        for (name, told, found) in [
            ("learnt", entry(bridge, NeighbourState::Reachable, none, &mac), true),
            ("old", entry(bridge, NeighbourState::Stale, none, &mac), true),
            ("set by hand", entry(bridge, NeighbourState::Noarp, none, &mac), true),
            ("our own", entry(bridge, NeighbourState::Permanent, none, &mac), false),
            ("a card's filter", entry(bridge, NeighbourState::Reachable, NeighbourFlags::Own, &mac), false),
            ("a neighbour", entry(AddressFamily::Inet, NeighbourState::Reachable, none, &mac), false),
            ("no Ethernet", entry(bridge, NeighbourState::Reachable, none, &mac[..4]), false),
        ] {
            assert_eq!(told, found.then_some((7, mac)), "{name}");
        }
        assert!(rtnl::bridges_request().len() >= 28, "a header and a neighbour's");
    }

    proptest! {
        #[test]
        fn random_neighbours_never_panic(
            family in prop::sample::select(vec![2u8, 7, 10, 0, 28]),
            data in prop::collection::vec((0u16..16, prop::collection::vec(any::<u8>(), 0..24)), 0..8),
            cut in 0..80usize,
        ) {
            let mut body = vec![family, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0];
            for (kind, value) in &data {
                body.extend((value.len() as u16 + 4).to_ne_bytes());
                body.extend(kind.to_ne_bytes());
                body.extend(value);
                body.resize(body.len().next_multiple_of(4), 0);
            }
            let mut message = (body.len() as u32 + 16).to_ne_bytes().to_vec();
            message.extend([28, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
            message.extend(body);
            let _ = (rtnl::decode_neighbour(&message), rtnl::decode_bridged(&message));
            message.truncate(cut);
            let _ = (rtnl::decode_neighbour(&message), rtnl::decode_bridged(&message));
        }
    }
}
