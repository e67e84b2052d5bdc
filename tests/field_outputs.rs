//! What real machines printed, read by the parser of ours that would meet it, to what a correct reader concludes; and recorded
//! machines whose files and logs are odd.
//!
//! Outputs of programs that weaklink does not run (`ethtool`, `lsusb`, `ss` …) are listed with what it reads in their place.

#![cfg(unix)]

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use weaklink::cpu::interrupts::{Card, cards};
use weaklink::link::{Tree, collect, counters, explain, from_pciconf, host_interface_names, meaning, parse_bond};
use weaklink::model::Source;
use weaklink::model::counter::Tells;
use weaklink::model::link::{Duplex, HostLink, InterfaceKind as Kind};
use weaklink::model::link_event::{EventKind, LinkEvent};
use weaklink::storage::mdstat;
use weaklink::units::{BitRate, Elapsed};

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 10));
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 20));

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn text(name: &str) -> String {
    fs::read_to_string(fixtures().join(name)).unwrap()
}

/// Lays out a recorded machine as the tests of `link` do: `PATH = CONTENT` or `PATH -> TARGET` a line, `@a.b.c.d` an address as
/// `/proc/net/route` prints it.
fn machine(name: &str) -> (tempfile::TempDir, Tree) {
    let dir = tempfile::tempdir().unwrap();
    for line in text(&format!("link/{name}")).lines().filter(|line| line.starts_with('/')) {
        let parts = [" = ", " -> "].iter().filter_map(|sign| line.split_once(sign).map(|(path, content)| (path, *sign, content)));
        let (path, sign, content) = parts.min_by_key(|(path, _, _)| path.len()).unwrap();
        let path = dir.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if sign == " -> " {
            std::os::unix::fs::symlink(content, path).unwrap();
        } else {
            fs::write(path, with_addresses(&content.replace("\\n", "\n"))).unwrap();
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

fn link(name: &str) -> HostLink {
    let (_dir, tree) = machine(name);
    let outcome = collect(LOCAL, PEER, &tree);
    outcome.measured().unwrap_or_else(|| panic!("{name}: {outcome:?}")).clone()
}

fn kinds(link: &HostLink) -> Vec<EventKind> {
    link.events.measured().unwrap().iter().map(|event| event.kind).collect()
}

#[expect(clippy::unnecessary_wraps, reason = "speeds stand in options where they are compared")]
const fn mbit(mbit: u64) -> Option<BitRate> {
    Some(BitRate::from_mbit(mbit))
}

fn bond_without_partner() {
    let bond = parse_bond(&text("link/bond_8023ad_no_partner.txt"));
    assert_eq!((bond.mode.as_str(), bond.hash_policy.as_deref(), bond.ports.len()), ("802.3ad", Some("layer2"), 1));
    assert_eq!((bond.partner_mac.as_deref(), bond.active_ports), (Some("00:00:00:00:00:00"), Some(1)));
    assert_eq!(bond.ports[0].churn.as_ref().map(|churn| churn[1].as_str()), Some("churned"));
}

fn bond_round_robin() {
    let bond = parse_bond(&text("link/bond_balance_rr.txt"));
    assert_eq!((bond.mode.as_str(), bond.partner_mac, bond.active_aggregator), ("balance-rr", None, None));
    assert!(bond.ports.iter().all(|port| port.speed_bps == mbit(1000) && port.up == Some(true)));
}

fn bond_static() {
    let bond = parse_bond(&text("link/bond_balance_xor.txt"));
    assert_eq!((bond.mode.as_str(), bond.hash_policy.as_deref(), bond.partner_mac), ("balance-xor", Some("layer2+3"), None));
}

fn bond_with_one_port_down() {
    let bond = parse_bond(&text("link/bond_active_backup.txt"));
    let ports: Vec<_> = bond.ports.iter().map(|port| (port.up, port.active, port.speed_bps)).collect();
    assert_eq!(ports, [(Some(true), Some(true), mbit(1000)), (Some(false), Some(false), None)]);
}

fn downshift() {
    let link = link("downshift_r8169.tree");
    let events = link.events.measured().unwrap();
    let fell = LinkEvent::downshift(events, "enp34s0").unwrap();
    assert_eq!(fell.kind, EventKind::Downshift([mbit(1000), mbit(100)]));
    assert_eq!((fell.at_us, fell.interface.as_str()), (Some(Elapsed(9_100_000)), "enp34s0"));
    assert!(fell.text.ends_with("check cabling!"), "{}", fell.text);
    let told = link.stack[0].nic.measured().and_then(|nic| nic.downshift.measured());
    assert_eq!(told.map(|fact| (fact.value.as_str(), fact.source)), Some((fell.text.as_str(), Source::KernelLog)));
    // A PHY with a name of its own.
    let link = self::link("downshift_board.tree");
    assert_eq!(kinds(&link), [EventKind::Downshift([mbit(1000), mbit(100)]), EventKind::Up(mbit(100))]);
    let fell = LinkEvent::downshift(link.events.measured().unwrap(), "end0");
    assert_eq!(fell.map(|event| event.kind), Some(EventKind::Downshift([mbit(1000), mbit(100)])));
}

fn flaps() {
    let link = link("flaps_bna.tree");
    let events = link.events.measured().unwrap();
    let breaks: Vec<u64> = LinkEvent::breaks(events, "enp1s0f2").filter_map(|event| Some(event.at_us?.0 / 1_000_000)).collect();
    assert_eq!(breaks, [160, 169, 179]);
    let first = events.first().unwrap().at_us.unwrap().0 / 1_000_000;
    assert_eq!(breaks[2] - first, 43, "three in 43 s");
}

fn usb_below_its_speed() {
    let link = link("usb_not_top_speed.tree");
    let reset = EventKind::UsbReset(mbit(480));
    assert_eq!(kinds(&link), [reset, EventKind::UsbSlow, reset, EventKind::UsbSlow], "and nothing of other adapters");
    let bus = link.stack[0].bus.measured().unwrap();
    assert_eq!(bus.rate_bps.as_ref().map(|fact| fact.value), mbit(480));
}

fn usb_behind_a_slow_hub() {
    let link = link("usb_behind_480_hub.tree");
    let bus = link.stack[0].bus.measured().unwrap();
    assert_eq!((bus.kind.as_str(), bus.rate_bps.as_ref().map(|fact| fact.value)), ("usb", mbit(480)));
}

fn mounts_of_cifs() {
    use weaklink::copy::mounts::{describe, parse_mount_output};
    let mounts = parse_mount_output(&text("copy/mount_cifs_variants.txt"));
    let fact = |at: usize, name: &str| {
        describe(&mounts[at]).facts.iter().find(|fact| fact.name == name).map(|fact| fact.value.clone()).unwrap_or_default()
    };
    let read: Vec<_> = (0..3).map(|at| (describe(&mounts[at]).protocol, fact(at, "rsize"), fact(at, "wsize"))).collect();
    let expected = [("smb 3.1.1", "65536", "65536"), ("smb 1.0", "1048576", "65536"), ("smb 3.1.1", "4194304", "4194304")];
    assert_eq!(read, expected.map(|(protocol, read, write)| (protocol.to_owned(), read.to_owned(), write.to_owned())));
}

fn raid_that_resyncs() {
    let arrays = mdstat::parse(&text("field/mdstat_resync.txt"));
    assert_eq!(arrays.len(), 1);
    assert_eq!((arrays[0].level.as_str(), arrays[0].members, arrays[0].devices), ("raid5", Some((4, 4)), 4));
    assert!(
        arrays[0].syncing.as_deref().is_some_and(|work| work.starts_with("resync = 1.1%") && work.contains("finish=1541.6min"))
    );
}

fn raid_in_good_order() {
    let arrays = mdstat::parse(&text("field/mdstat_healthy.txt"));
    let brief: Vec<_> = arrays.iter().map(|array| (array.name.as_str(), array.level.as_str(), array.members)).collect();
    // Which of them a directory lies on, its mount says: the system's own ones are never looked at.
    assert_eq!(brief, [("md2", "raid5", Some((4, 4))), ("md1", "raid1", Some((4, 4))), ("md0", "raid1", Some((4, 4)))]);
    assert!(arrays.iter().all(|array| array.syncing.is_none() && array.devices == 4));
}

fn interrupts_of_four_queues_on_three_cores() {
    let card = Card { name: "enp1s0".into(), device: Some("0000:01:00.0".into()), numbers: vec![] };
    let found = cards(text("field/interrupts_one_core_unused.txt").as_bytes(), &[card]);
    let cores: Vec<_> = found["enp1s0"].iter().map(|(core, count)| (*core, *count)).collect();
    assert_eq!(cores, [(0, 2_216_316), (1, 2_855_881), (2, 0), (3, 4_837_529)]);
}

fn drops_that_matter_nothing() {
    let link = link("kernel_3_10.tree");
    let counted = link.stack[0].counters.measured().unwrap();
    let share = counted.get("rx_dropped").unwrap() as f64 / counted.get("rx_packets").unwrap() as f64;
    assert!((share - 0.000_067).abs() < 0.000_001, "0.007 %");
    assert_eq!(meaning(None, "rx_dropped").map(|meaning| meaning.tells), Some(Tells::Sum));
}

fn bond_of_usb_and_pcie() {
    let link = link("bond_usb_and_pcie.tree");
    let stack: Vec<_> = link.stack.iter().map(|interface| (interface.name.as_str(), interface.kind)).collect();
    assert_eq!(stack, [("bond0", Kind::Bond), ("enp0s20u1", Kind::Physical), ("ens9", Kind::Physical)]);
    let buses: Vec<_> = link.stack.iter().filter_map(|it| Some(it.bus.measured()?.kind.as_str())).collect();
    assert_eq!(buses, ["usb", "pci"]);
    assert_eq!(kinds(&link), [EventKind::BondPortUp, EventKind::Down, EventKind::BondPortDown, EventKind::Up(None)]);
    assert!(link.events.measured().unwrap().iter().all(|event| event.interface == "enp0s20u1"));
}

fn slot_below_the_card() {
    let link = link("pcie_below_max.tree");
    assert_eq!(link.stack[0].bus.measured().unwrap().description, "PCIe 5.0 GT/s x1; the card can do 8.0 GT/s x4");
}

fn slot_of_freebsd_with_power_saving() {
    let recorded = text("elsewhere/truenas_core.txt");
    let (_, printed) = recorded.split_once("$ pciconf igc0\n").unwrap();
    let bus = from_pciconf(printed).unwrap();
    // As wide and as fast as the card can: right for 2.5G; what is odd is that the link may sleep.
    assert_eq!((bus.description.as_str(), bus.rate_bps == bus.max_rate_bps), ("PCIe 5.0 GT/s x1", true));
    assert_eq!((bus.way[0].place.as_str(), bus.way[0].aspm.as_deref()), ("pci0:2:0:0", Some("L1")));
}

/// Who meets an output.
enum Meets {
    /// This reading of ours, of the same facts.
    Parser(fn()),
    /// Nobody: what weaklink looks at in its place.
    Nobody(&'static str),
}

use Meets::{Nobody, Parser};

/// Every output of the field that was collected, by what it shows.
const OUTPUTS: [(&str, Meets); 25] = [
    ("/proc/net/bonding, 802.3ad, no partner", Parser(bond_without_partner)),
    ("/proc/net/bonding, balance-rr", Parser(bond_round_robin)),
    ("/proc/net/bonding, balance-xor", Parser(bond_static)),
    ("/proc/net/bonding, active-backup, one port down", Parser(bond_with_one_port_down)),
    (
        "ethtool of a 5G USB adapter that lists 1000 at most",
        Nobody("the ioctl's own structure is decoded, and a short list proves nothing"),
    ),
    ("ethtool of r8169, healthy", Nobody("the ioctl's own structure is decoded")),
    (
        "ethtool whose partner offers 100",
        Nobody("the ioctl's own structure is decoded; the rule link-below-capability names the partner"),
    ),
    ("ethtool -a, negotiated off", Nobody("pause is read from the kernel's structures, in effect and not as set")),
    ("dmesg, downshift in three wordings", Parser(downshift)),
    ("dmesg, bna breaks three times in 43 s", Parser(flaps)),
    ("dmesg, USB adapter not at top speed", Parser(usb_below_its_speed)),
    ("lsusb of a NAS, adapter on 480", Parser(usb_behind_a_slow_hub)),
    (
        "iperf3, 93.8 Mbit/s in two streams",
        Nobody("weaklink speaks iperf3's wire; the plateau's class is snapped by the verdict"),
    ),
    ("iperf3, flat 6.04 Gbit/s", Nobody("weaklink speaks iperf3's wire; the bus comes from /sys, see the slot below")),
    ("smbstatus, signing partial", Nobody("the server's own program; a mount tells what was negotiated")),
    ("smbutil statshares of macOS", Nobody("another system's program")),
    ("mount, three of cifs", Parser(mounts_of_cifs)),
    ("/proc/mdstat, resync", Parser(raid_that_resyncs)),
    ("/proc/mdstat, three healthy arrays of a NAS", Parser(raid_in_good_order)),
    ("pciconf of FreeBSD, ASPM L1", Parser(slot_of_freebsd_with_power_saving)),
    ("lspci, link below the card", Parser(slot_below_the_card)),
    ("/proc/interrupts, one core unused", Parser(interrupts_of_four_queues_on_three_cores)),
    ("ip addr, bond of USB and PCIe", Parser(bond_of_usb_and_pcie)),
    ("ss -tin, loss and a small path MTU", Nobody("TCP_INFO itself is decoded, and the path MTU measured")),
    ("ifconfig, 0.007 % dropped", Parser(drops_that_matter_nothing)),
];

#[test]
fn every_output_of_the_field_is_read_or_has_a_reason() {
    for (name, meets) in &OUTPUTS {
        match meets {
            Parser(read) => {
                let read = std::panic::catch_unwind(read);
                assert!(read.is_ok(), "{name}");
            }
            Nobody(reason) => assert!(reason.len() > 20, "{name}"),
        }
    }
}

#[test]
fn counters_of_a_recorded_port_are_explained_by_its_driver() {
    let (_dir, tree) = machine("downshift_r8169.tree");
    let link = collect(LOCAL, PEER, &tree);
    let names = host_interface_names(link.measured().unwrap());
    let all = counters(&names, &tree);
    let counted = &all.measured().unwrap()["enp34s0"];
    assert_eq!(counted.get("carrier_changes"), Some(2), "counted beside the statistics");
    let explained = explain(Some("r8169"), counted);
    let tells = |name: &str| explained.iter().find(|one| one.name == name)?.meaning.map(|meaning| meaning.tells);
    assert_eq!((tells("rx_missed_errors"), tells("rx_dropped")), (Some(Tells::Fifo), Some(Tells::Sum)));
    assert_eq!(tells("carrier_changes"), Some(Tells::LinkChange));
    assert_eq!(tells("rx_crc_errors"), None, "it stands at zero");
}

#[test]
fn an_old_kernel_tells_less_and_says_so() {
    let link = link("kernel_3_10.tree");
    let port = &link.stack[0];
    assert_eq!(port.kind, Kind::Physical);
    assert_eq!(port.speed_bps.measured().map(|fact| fact.value), mbit(1000));
    assert_eq!(port.duplex.measured().map(|fact| fact.value), Some(Duplex::Full));
    assert!(port.carrier_changes.why().is_some_and(|why| why.contains("no file")), "{:?}", port.carrier_changes);
    assert_eq!(port.counters.measured().unwrap().get("carrier_changes"), None);
    assert_eq!(kinds(&link), [EventKind::Up(mbit(1000)), EventKind::Down, EventKind::Up(mbit(1000))]);
}

#[test]
fn a_speed_that_nobody_knows_is_no_number() {
    for name in ["speed_unknown_word.tree", "speed_65535.tree"] {
        let link = link(name);
        let port = &link.stack[0];
        assert!(port.speed_bps.why().is_some_and(|why| why.contains("--link-speed")), "{name}: {:?}", port.speed_bps);
        assert!(port.duplex.why().is_some(), "{name}");
        assert!(link.events.why().is_some(), "{name}: no log was recorded");
    }
}

#[test]
fn columns_that_a_stand_in_for_the_kernel_shifts_are_read_by_their_names() {
    let link = link("proc_shifted.tree");
    let port = &link.stack[0];
    let counted = port.counters.measured().unwrap();
    let values = ["rx_packets", "rx_dropped", "tx_packets", "rx_bytes"].map(|name| counted.get(name));
    assert_eq!(values, [Some(73_522_212), Some(4_960), Some(4_197_350), None]);
    // The container's eth0 is not the host's: its log is not ours.
    assert_eq!(port.kind, Kind::Unknown);
    assert!(link.events.why().is_some(), "{:?}", link.events);
}

#[test]
fn a_usb_adapter_keeps_its_bus_under_any_name() {
    let link = link("usb_in_container.tree");
    let port = &link.stack[0];
    assert_eq!((port.name.as_str(), port.kind), ("eth2@if3", Kind::Physical));
    assert_eq!(port.driver.measured().map(|fact| fact.value.as_str()), Some("r8152"));
    assert_eq!(port.bus.measured().and_then(|bus| bus.rate_bps.as_ref()).map(|fact| fact.value), mbit(480));
    assert_eq!(port.speed_bps.measured().map(|fact| fact.value), mbit(2500));
}

#[test]
fn a_radio_has_no_speed_and_no_events_of_others() {
    let link = link("wifi.tree");
    assert_eq!(link.stack[0].kind, Kind::Wifi);
    assert!(link.stack[0].speed_bps.why().is_some());
    assert!(link.events.why().is_some_and(|why| why.contains("recording")), "{:?}", link.events);
}
