//! Lines of real kernels, whose they are, and lines that are nobody's.

use proptest::prelude::*;

use super::super::klog_line::{Line, kind};
use super::*;
use crate::units::BitRate;

const UP: EventKind = EventKind::Up(None);

#[expect(clippy::unnecessary_wraps, reason = "speeds stand in options where they are compared")]
const fn mbit(mbit: u64) -> Option<BitRate> {
    Some(BitRate::from_mbit(mbit))
}

const fn up(speed: u64) -> EventKind {
    EventKind::Up(mbit(speed))
}

/// A line's text, and what it says.
const LINES: &[(&str, Option<EventKind>)] = &[
    // The kernel's PHY core, and drivers that use it.
    (
        "Generic FE-GE Realtek PHY r8169-2200:00: Downshift occurred from negotiated speed 1Gbps to actual speed 100Mbps, check cabling!",
        Some(EventKind::Downshift([mbit(1000), mbit(100)])),
    ),
    (
        "RTL8226B_RTL8221B 2.5Gbps PHY r8169-0-300:00: Downshift occurred from negotiated speed 2.5Gbps to actual speed 100Mbps, check cabling!",
        Some(EventKind::Downshift([mbit(2500), mbit(100)])),
    ),
    (
        "r8169 0000:22:00.0 enp34s0: Link is Up - 100Mbps/Full (downshifted) - flow control rx/tx",
        Some(EventKind::Downshift([None, mbit(100)])),
    ),
    ("r8169 0000:22:00.0 enp34s0: Link is Up - 2.5Gbps/Full - flow control off", Some(up(2500))),
    ("r8169 0000:22:00.0 enp34s0: Link is Down", Some(EventKind::Down)),
    ("macb e000b000.ethernet eth0: Link is Up - 100Mbps/Full - flow control tx", Some(up(100))),
    ("mv88e6085 stmmac-0:1a lan1: Link is Up - 100Mbps/Full - flow control rx/tx", Some(up(100))),
    // Intel.
    ("e1000e 0000:00:19.0 eth0: Link Speed was downgraded by SmartSpeed", Some(EventKind::Downshift([None, None]))),
    ("e1000e: eth0 NIC Link is Up 1000 Mbps Full Duplex, Flow Control: Rx/Tx", Some(up(1000))),
    ("igb 0000:01:00.0 eth0: igb: eth0 NIC Link is Up 1000 Mbps Full Duplex, Flow Control: RX", Some(up(1000))),
    ("igc 0000:03:00.0 enp3s0: NIC Link is Up 2500 Mbps Full Duplex, Flow Control: RX/TX", Some(up(2500))),
    ("igc 0000:03:00.0 enp3s0: NIC Link is Down", Some(EventKind::Down)),
    ("ixgbe 0000:01:00.0 eth2: NIC Link is Up 10 Gbps, Flow Control: RX/TX", Some(up(10_000))),
    ("i40e 0000:d8:00.1 eth1: NIC Link is Up, 10 Gbps Full Duplex, Flow Control: None", Some(up(10_000))),
    ("ice 0000:b1:00.0 ens801f0: NIC Link is up 25 Gbps Full Duplex, Requested FEC: RS-FEC", Some(up(25_000))),
    ("igc 0000:0c:00.0 eno1: PCIe link lost, device now detached", Some(EventKind::Gone)),
    ("e1000e 0000:00:1f.6 eno1: Detected Hardware Unit Hang:", Some(EventKind::Reset)),
    ("e1000e 0000:00:1f.6 eno1: Reset adapter unexpectedly", Some(EventKind::Reset)),
    ("igb 0000:01:00.0 eth0: The network adapter link speed was downshifted because it overheated.", Some(EventKind::Overheated)),
    (
        "igc 0000:03:00.0 enp3s0: Autonegotiated half duplex but link partner cannot autoneg.  Try forcing full duplex if link gets many collisions.",
        Some(EventKind::HalfDuplexAssumed),
    ),
    // Others.
    ("atlantic 0000:01:00.0 enp1s0: atlantic: link change old 0 new 10000", Some(up(10_000))),
    ("atlantic 0000:01:00.0 enp1s0: atlantic: link change old 1000 new 0", Some(EventKind::Down)),
    ("tg3 0000:03:00.0 eno1: Link is up at 1000 Mbps, full duplex", Some(up(1000))),
    ("tg3 0000:03:00.0 eno1: Link is down", Some(EventKind::Down)),
    ("bnx2x 0000:02:00.0 eth0: NIC Link is Up, 10000 Mbps full duplex, Flow control: ON - receive & transmit", Some(up(10_000))),
    ("bnxt_en 0000:18:00.0 eno1: NIC Link is Up, 25000 Mbps full duplex, Flow control: none", Some(up(25_000))),
    ("bna: enp1s0f2 link down", Some(EventKind::Down)),
    ("bna: enp1s0f2 link up", Some(UP)),
    ("bna: enp1s0f2 0 TXQ_STOPPED", None),
    ("mlx5_core 0000:01:00.0 ens1: Link up", Some(UP)),
    ("vmxnet3 0000:0b:00.0 ens192: NIC Link is Up 10000 Mbps", Some(up(10_000))),
    ("alx 0000:03:00.0 eth0: NIC Up: 1 Gbps Full", Some(up(1_000))),
    ("r8152 2-1:1.0 eth1: carrier off", Some(EventKind::Down)),
    ("r8152 2-1:1.0 eth1: carrier on", Some(UP)),
    ("cdc_ncm 2-6:2.0 enx020000000001: network connection: disconnected", Some(EventKind::Down)),
    ("cdc_ncm 2-6:2.0 enx020000000001: network connection: connected", Some(UP)),
    ("ax88179_178a 3-13:1.0 eth0: ax88179 - Link status is: 0", Some(EventKind::Down)),
    ("IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready", Some(UP)),
    ("virtio_net virtio0 eth0: NETDEV WATCHDOG: CPU: 1: transmit queue 0 timed out 5500 ms", Some(EventKind::TxTimeout)),
    ("NETDEV WATCHDOG: eth0 (r8169): transmit queue 0 timed out", Some(EventKind::TxTimeout)),
    ("rk_gmac-dwmac fe1c0000.ethernet eth0: Reset adapter.", Some(EventKind::Reset)),
    // Buses.
    (
        "pci 0000:05:00.0: 4.000 Gb/s available PCIe bandwidth, limited by 5.0 GT/s PCIe x1 link at 0000:00:1c.1 (capable of 7.876 Gb/s with 8.0 GT/s PCIe x1 link)",
        Some(EventKind::BusLimited(mbit(4000))),
    ),
    ("pcieport 0000:00:1c.4: AER: Corrected error received: 0000:02:00.0", Some(EventKind::BusErrorCorrected)),
    (
        "pcieport 0000:00:1c.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
        Some(EventKind::BusErrorCorrected),
    ),
    (
        "igb 0000:09:00.0: AER: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer, (Requester ID)",
        Some(EventKind::BusError),
    ),
    ("pcieport 0000:00:1c.0: AER: enabled with IRQ 122", None),
    ("usb 1-1: not running at top speed; connect to a high speed hub", Some(EventKind::UsbSlow)),
    ("usb 1-1: new high-speed USB device number 2 using xhci_hcd", Some(EventKind::UsbAttached(mbit(480)))),
    ("usb 2-1: new SuperSpeed Plus Gen 2x1 USB device number 2 using xhci_hcd", Some(EventKind::UsbAttached(mbit(10_000)))),
    ("usb 2-1: new SuperSpeed USB device number 2 using xhci_hcd", Some(EventKind::UsbAttached(mbit(5_000)))),
    ("usb 1-1: reset high-speed USB device number 2 using xhci_hcd", Some(EventKind::UsbReset(mbit(480)))),
    ("usb 2-1: USB disconnect, device number 3", Some(EventKind::Gone)),
    // Bonding.
    ("bond0: (slave eth1): link status definitely down, disabling slave", Some(EventKind::BondPortDown)),
    ("bond0: link status definitely up for interface eth1, 1000 Mbps full duplex", Some(EventKind::BondPortUp)),
    ("bond0: Warning: No 802.3ad response from the link partner for any adapters in the bond", Some(EventKind::NoLacpPartner)),
    ("bond0: (slave eth1): Port 2 did not find a suitable aggregator", Some(EventKind::LacpMismatch)),
    // What is not of a port.
    ("8021q: adding VLAN 0 to HW filter on device eth0", None),
    ("device eth0 entered promiscuous mode", None),
    ("", None),
];

#[test]
fn lines_of_real_kernels_are_understood() {
    for (text, expected) in LINES {
        assert_eq!(kind(text), *expected, "{text}");
    }
}

#[test]
fn both_forms_of_the_log_are_read() {
    let at = Some(Elapsed(136_232_732));
    for (record, expected) in [
        ("[ 136.232732] bna: eth0 link up", Some((at, "bna: eth0 link up", None))),
        ("<6>[  136.232732] bna: eth0 link up", Some((at, "bna: eth0 link up", None))),
        ("[  136.232732][   T12] bna: eth0 link up", Some((at, "bna: eth0 link up", None))),
        ("bna: eth0 link up", Some((None, "bna: eth0 link up", None))),
        ("6,1234,136232732,-;bna: eth0 link up", Some((at, "bna: eth0 link up", None))),
        (
            "6,1234,136232732,-,caller=T5;igb 0000:01:00.0: x\n SUBSYSTEM=pci\n DEVICE=+pci:0000:01:00.0\n",
            Some((at, "igb 0000:01:00.0: x", Some("0000:01:00.0"))),
        ),
        (
            "6,1,5,-;usb 1-1: not running at top speed; connect\n SUBSYSTEM=usb\n DEVICE=c189:1\n",
            Some((Some(Elapsed(5)), "usb 1-1: not running at top speed; connect", None)),
        ),
        ("[x] [1.2] eth0\u{1b}[2J", Some((None, "[x] [1.2] eth0?[2J", None))),
        // Programs write there too, with a facility of their own.
        ("30,1234,136232732,-;systemd-networkd[5]: eth0: Link DOWN", None),
        ("<30>[  136.232732] systemd-networkd[5]: eth0: Link DOWN", None),
        ("6,1,5,-;", None),
        ("", None),
    ] {
        let line = Line::parse(record.as_bytes());
        let found = line.as_ref().map(|line| (line.at_us, line.text.as_str(), line.device.as_deref()));
        assert_eq!(found, expected, "{record:?}");
    }
}

fn owner_of(name: &str, device: &str, above: &[&str]) -> Owner {
    let own = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect();
    Owner {
        name: name.into(),
        device: (!device.is_empty()).then(|| device.into()),
        phys: realtek_phys(device),
        above: own(above),
    }
}

fn log(owners: Vec<Owner>, lines: &[&str]) -> Vec<(String, EventKind)> {
    let mut log = Log { owners, events: VecDeque::new(), now: None, from: None };
    for line in lines {
        log.record(line.as_bytes());
    }
    log.events.into_iter().map(|event| (event.interface, event.kind)).collect()
}

#[test]
fn a_line_belongs_to_the_port_that_it_is_about_and_to_no_other() {
    let owners = || {
        vec![
            owner_of("bond0", "", &[]),
            owner_of("enp34s0", "0000:22:00.0", &["0000:00:1c.4"]),
            owner_of("eth1", "2-1", &["usb2", "0000:00:14.0"]),
            Owner { phys: vec!["mdio_mux-0.0:00".into()], ..owner_of("end0", "ff3f0000.ethernet", &[]) },
        ]
    };
    for (line, expected) in [
        ("r8169 0000:22:00.0 enp34s0: Link is Down", Some("enp34s0")),
        // Before it was renamed, by its device.
        ("r8169 0000:22:00.0 eth0: Link is Down", Some("enp34s0")),
        // What was called so before is another card.
        ("r8169 0000:23:00.0 enp34s0: Link is Down", None),
        ("r8152 2-2:1.0 eth1: carrier off", None),
        ("r8152 2-1:1.0 eth1: carrier off", Some("eth1")),
        ("usb 2-1: reset SuperSpeed USB device number 2 using xhci_hcd", Some("eth1")),
        ("usb 2-12: reset SuperSpeed USB device number 2 using xhci_hcd", None),
        ("usb usb2: not running at top speed", Some("eth1")),
        (
            "Generic FE-GE Realtek PHY r8169-2200:00: Downshift occurred from negotiated speed 1Gbps to actual speed 100Mbps",
            Some("enp34s0"),
        ),
        (
            "Generic FE-GE Realtek PHY r8169-0-2200:00: Downshift occurred from negotiated speed 1Gbps to actual speed 100Mbps",
            Some("enp34s0"),
        ),
        ("Generic FE-GE Realtek PHY r8169-101:00: Downshift occurred from negotiated speed 1Gbps to actual speed 100Mbps", None),
        (
            "RTL8211F Gigabit Ethernet mdio_mux-0.0:00: Downshift occurred from negotiated speed 1Gbps to actual speed 100Mbps",
            Some("end0"),
        ),
        (
            "Marvell 88E1111 ff3f0000.ethernet-ffffffff:00: Downshift occurred from negotiated speed 1Gbps to actual speed 100Mbps",
            Some("end0"),
        ),
        ("pcieport 0000:00:1c.4: AER: Corrected error received: 0000:22:00.0", Some("enp34s0")),
        ("pcieport 0000:00:1c.4: AER: Corrected error received: 0000:00:1c.4", Some("enp34s0")),
        ("pcieport 0000:00:1c.4: AER: Corrected error received: 0000:23:00.0", None),
        ("bond0: (slave enp34s0): link status definitely down, disabling slave", Some("enp34s0")),
        ("bond0: link status definitely down for interface eth1, disabling it", Some("eth1")),
        ("bond0: (slave eth7): link status definitely down, disabling slave", Some("bond0")),
        ("bond0: Warning: No 802.3ad response from the link partner for any adapters in the bond", Some("bond0")),
        ("ata1: SATA link down (SStatus 0 SControl 300)", None),
        ("atlantic: link change old 0 new 10000", None),
        ("bna: enp34s0f2 link down", None),
        ("pcieport 0000:00:1c.4: pciehp: Slot(0): Link Down", None),
        ("IPv6: ADDRCONF(NETDEV_CHANGE): eth1: link becomes ready", Some("eth1")),
    ] {
        let found = log(owners(), &[line]);
        assert_eq!(found.first().map(|(name, _)| name.as_str()), expected, "{line}");
    }
}

#[test]
fn a_flood_of_lines_keeps_the_last_ones() {
    let lines: Vec<String> = (0..1000).map(|at| format!("[{at:5}.000000] bna: eth0 link down")).collect();
    let owners = vec![owner_of("eth0", "", &[])];
    let mut log = Log { owners, events: VecDeque::new(), now: Some(Duration::from_secs(1_001)), from: None };
    for line in &lines {
        log.record(line.as_bytes());
    }
    assert_eq!(log.events.len(), MOST_EVENTS);
    let last = log.events.back().unwrap();
    assert_eq!((last.at_us, last.before_us), (Some(Elapsed(999_000_000)), Some(Elapsed(2_000_000))));
}

#[test]
fn a_log_that_is_followed_tells_the_moment_of_each_line() {
    let owners = vec![owner_of("eth0", "", &[])];
    let mut log = Log { owners, events: VecDeque::new(), now: None, from: Some(Duration::from_secs(100)) };
    for line in [
        "[  112.500000] bna: eth0 link down",
        "[  113.000000] bna: eth9 link down",
        "[  115.000000] bna: eth0 link up",
        // The log's clock strays from the system's.
        "[   99.000000] bna: eth0 link down",
        "[  300.000000] bna: eth0 link up",
        "bna: eth0 link down",
    ] {
        log.record(line.as_bytes());
    }
    let rest = log.rest(Elapsed(20_000_000));
    let into: Vec<_> = rest.events.iter().filter_map(|event| Some(event.into_run_us?.0 / 100_000)).collect();
    assert_eq!((into, rest.followed_us), (vec![125, 150, 0, 200, 200], Elapsed(20_000_000)));
    assert!(rest.events.iter().all(|event| event.before_us.is_none() && event.interface == "eth0"));
}

#[test]
fn a_log_is_followed_from_its_last_line_or_the_reason_told() {
    let stack = [Interface::unknown("nosuchport0", InterfaceKind::Physical, "not asked")];
    match LogFollower::start(&stack, &Tree::system()).end() {
        Outcome::Measured(rest) => assert_eq!(rest.events, []),
        other => assert!(other.why().is_some_and(|why| why.len() > 60), "{other:?}"),
    }
    let log = Log { owners: Vec::new(), events: VecDeque::new(), now: None, from: None };
    let follow = Err(io::ErrorKind::PermissionDenied.into());
    let refused = LogFollower { log, follow, began: Instant::now() }.end();
    assert!(
        refused.why().is_some_and(|why| why.contains("at the end of the run") && why.contains("administrators")),
        "{refused:?}"
    );
}

#[test]
fn the_own_log_is_read_or_the_reason_told() {
    let stack = [Interface::unknown("eth0", InterfaceKind::Physical, "not asked")];
    match events(&stack, &Tree::system()) {
        Outcome::Measured(events) => assert!(events.len() <= MOST_EVENTS && events.iter().all(|event| event.text.len() <= 240)),
        other => assert!(other.why().is_some_and(|why| why.len() > 30), "{other:?}"),
    }
    assert!(events(&[], &Tree::system()).why().is_some());
}

proptest! {
    #[test]
    fn random_records_do_no_harm(record in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Some(line) = Line::parse(&record) {
            prop_assert!(line.text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && line.text.len() <= 240);
            let _ = kind(&line.text);
        }
    }

    #[test]
    fn almost_right_lines_do_no_harm(
        line in "(<[0-9]{1,3}>|\\[ {0,3}[0-9]{1,20}\\.[0-9]{0,8}\\]|[0-9]{1,20},[0-9]{1,3},[0-9]{1,20},-;)?( |eth0|:|link change old |new |Link is Up|[0-9.]{0,30}|Gbps|Downshift occurred|negotiated speed|actual speed|usb |AER: error|0000:00:1c.4|,|\\(|\\)){0,20}",
    ) {
        log(vec![owner_of("eth0", "0000:00:1c.4", &["0000:00:00.0"])], &[&line]);
    }

    #[test]
    fn places_of_devices_are_survived(text in ".{0,40}") {
        let _ = (realtek_phys(&text), usb_device(&text), is_address(&text));
    }
}
