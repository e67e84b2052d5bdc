//! Interrupts, queues and buses of recorded machines.

use super::*;

#[test]
fn interrupts_are_found_by_name_by_device_or_by_number() {
    let lines = "           CPU0       CPU2\n\
        \x20 1:          9          0   IO-APIC   1-edge      i8042\n\
        \x2016:          4          0   IO-APIC  16-fasteoi   ehci_hcd:usb1, eth0, i801_smbus\n\
        \x2030:        100          7   PCI-MSI 524288-edge   i40e-eth1-TxRx-0\n\
        \x2031:          0          8   PCI-MSI 524289-edge   i40e-eth1-TxRx-1\n\
        \x2032:          5          5   PCI-MSI 524290-edge   eth10-TxRx-0\n\
        \x2040:         11          0   PCI-MSI 524291-edge   mlx5_async0@pci:0000:03:00.0\n\
        \x2041:          0         12   PCI-MSI 524292-edge   mlx5_comp0@pci:0000:03:00.0\n\
        \x2042:          0         13   PCI-MSI 524293-edge   mlx5_comp0@pci:0000:03:00.1\n\
        \x2043:          0         14   PCI-MSIX-0000:00:03.0 1-edge virtio2-input.0\n\
        NMI:          1          1   Non-maskable interrupts\n\
        ERR:          0\n";
    let owner = |name, device, numbers: &[u32]| Owner { name, device, numbers: numbers.iter().copied().collect() };
    for (owner, expected) in [
        (owner("eth0", None, &[]), &[("eth0", &[(0, 4)][..])][..]),
        (
            owner("eth1", Some("0000:04:00.0"), &[40]),
            &[("i40e-eth1-TxRx-0", &[(0, 100), (2, 7)]), ("i40e-eth1-TxRx-1", &[(2, 8)])],
        ),
        (
            owner("enp3s0f0np0", Some("0000:03:00.0"), &[]),
            &[("mlx5_async0@pci:0000:03:00.0", &[(0, 11)]), ("mlx5_comp0@pci:0000:03:00.0", &[(2, 12)])],
        ),
        (owner("eth2", Some("virtio2"), &[]), &[("virtio2-input.0", &[(2, 14)])]),
        (owner("ens5", Some("0000:05:00.0"), &[32]), &[("eth10-TxRx-0", &[(0, 5), (2, 5)])]),
        (owner("eth", None, &[]), &[]),
        (owner("", None, &[]), &[]),
    ] {
        let found = interrupts::of_port(lines, &owner);
        let found: Vec<_> =
            found.iter().map(|line| (line.name.as_str(), line.by_core.clone().into_iter().collect::<Vec<_>>())).collect();
        let expected: Vec<_> = expected.iter().map(|(name, cores)| (*name, cores.to_vec())).collect();
        assert_eq!(found, expected, "{}", owner.name);
    }
}

/// What a recorded tree says of its uppermost interface, with nobody to ask.
#[cfg(unix)]
fn recorded_tree(name: &str) -> Nic {
    let link = crate::link::tests::link(name);
    *link.top().unwrap().nic.measured().unwrap().clone()
}

#[test]
#[cfg(unix)]
fn trees_tell_queues_and_interrupts_without_anybody_to_ask() {
    let aqc = recorded_tree("aqc107_x1.tree");
    let lines = &aqc.interrupts.measured().unwrap().value;
    let cores: BTreeMap<u32, u64> =
        lines.iter().flat_map(|line| line.by_core.clone()).fold(BTreeMap::new(), |mut all, (core, n)| {
            *all.entry(core).or_default() += n;
            all
        });
    assert_eq!((lines.len(), cores.keys().copied().collect::<Vec<_>>()), (6, vec![0, 1, 3]), "core 2 has no work");
    assert_eq!(aqc.tx_queues.measured(), Some(&Fact::new(4, Source::Sysfs)));
    assert!(aqc.rings.why().unwrap().contains("recording"));

    let igc = recorded_tree("igc_aspm_l1.tree");
    let names: Vec<_> = igc.interrupts.measured().unwrap().value.iter().map(|line| line.name.clone()).collect();
    assert_eq!(names, ["enp2s0", "enp2s0-TxRx-0"]);

    let soc = recorded_tree("soc.tree");
    let lines = &soc.interrupts.measured().unwrap().value;
    assert_eq!((lines.len(), lines[0].name.as_str(), lines[0].by_core.get(&0)), (1, "f1070000.ethernet", Some(&181_334)));

    let hyper_v = recorded_tree("hv_netvsc.tree");
    assert!(hyper_v.interrupts.why().unwrap().contains("VMBus"), "{:?}", hyper_v.interrupts);
    let hidden = recorded_tree("no_sys.tree");
    assert!(hidden.mac.why().unwrap().contains("/sys/class/net/eth0"), "{:?}", hidden.mac);
    assert!(hidden.tx_queues.why().is_some() && hidden.interrupts.why().is_some());
}

/// Recorded machines: the description of the bus, its rate in Mbit/s, and each part: place, words, Mbit/s (0: not believed or
/// not told), power management.
#[cfg(unix)]
const WAYS: [(&str, &str, Option<u64>, &[&str]); 12] = [
    (
        "pcie_narrow_bridge.tree",
        "PCIe 5.0 GT/s x8; slowest part PCIe 8.0 GT/s x1 at 0000:03:00.0",
        Some(7876),
        &[
            "0000:05:00.0 PCIe 5.0 GT/s x8 32000 off",
            "0000:04:02.0 PCIe 5.0 GT/s x8 32000 ?",
            "0000:03:00.0 PCIe 8.0 GT/s x1 7876 ?",
            "0000:00:1b.0 PCIe 8.0 GT/s x1 7876 ?",
        ],
    ),
    (
        "aqc107_x1.tree",
        "PCIe 8.0 GT/s x1; the card can do 8.0 GT/s x4",
        Some(7876),
        &["0000:01:00.0 PCIe 8.0 GT/s x1 7876 ?", "0000:00:1c.4 PCIe 8.0 GT/s x1 7876 ?"],
    ),
    (
        "igc_aspm_l1.tree",
        "PCIe 5.0 GT/s x1",
        Some(4000),
        &["0000:02:00.0 PCIe 5.0 GT/s x1 4000 L1, L1.1", "0000:00:1d.0 PCIe 5.0 GT/s x1 4000 ?"],
    ),
    (
        "old_kernel_root.tree",
        "PCIe 5.0 GT/s x1; the card can do 8.0 GT/s x4",
        Some(4000),
        &["0000:02:00.0 PCIe 5.0 GT/s x1 4000 L1", "0000:00:1c.0 PCIe 5.0 GT/s x1 4000 L1"],
    ),
    (
        "old_kernel_user.tree",
        "pci; kernels before 4.13 show the link of a card to root only; run weaklink as root",
        None,
        &["0000:02:00.0 PCI, whose link only root may see 0 ?", "0000:00:1c.0 PCI, whose link only root may see 0 ?"],
    ),
    (
        "usb_aqc111.tree",
        "USB 5000 Mbit/s",
        Some(5000),
        &["2-4 USB 5000 Mbit/s 5000 ?", "usb2 USB 5000 Mbit/s 5000 ?", "0000:00:14.0 PCI without a link of its own 0 ?"],
    ),
    (
        "usb_behind_480_hub.tree",
        "USB 480 Mbit/s; the adapter calls itself USB 2.10, as USB 3 devices do in a USB 2 socket",
        Some(480),
        &[
            "5-1.2 USB 480 Mbit/s 480 ?",
            "5-1 USB 480 Mbit/s 480 ?",
            "usb5 USB 480 Mbit/s 480 ?",
            "0000:00:14.0 PCI without a link of its own 0 ?",
        ],
    ),
    ("soc.tree", "platform; part of the chip (SoC): no bus limits it", None, &[]),
    (
        "dsa.tree",
        "mdio_bus; a port of a switch chip: all of its ports share the chip's one line to the processor, whose rate is not told here",
        None,
        &[],
    ),
    ("hv_netvsc.tree", "hv_netvsc (Hyper-V), made up by the hypervisor: no bus limits it", None, &[]),
    ("vmxnet3.tree", "vmxnet3 (VMware), made up by the hypervisor: no bus limits it", None, &[]),
    ("virtio.tree", "virtio (KVM, QEMU), made up by the hypervisor: no bus limits it", None, &[]),
];

#[test]
#[cfg(unix)]
fn the_port_of_a_switch_within_the_host_is_known_as_one() {
    for (name, switched) in [("dsa.tree", true), ("soc.tree", false)] {
        assert_eq!(crate::link::tests::link(name).top().unwrap().is_switch_port(), switched, "{name}");
    }
}

#[test]
#[cfg(unix)]
fn the_whole_way_to_the_root_is_told() {
    let way = |name: &str| {
        let link = crate::link::tests::link(name);
        let bus = link.top().unwrap().bus.measured().unwrap().clone();
        let parts = bus.way.iter().map(|part| {
            let rate = part.rate_bps.map_or(0, |rate| rate.0 / 1_000_000);
            format!("{} {} {} {}", part.place, part.now, rate, part.aspm.as_deref().unwrap_or("?"))
        });
        (bus.description.clone(), bus.rate_bps.as_ref().map(|fact| fact.value.0 / 1_000_000), parts.collect::<Vec<_>>())
    };
    for (name, description, rate, parts) in WAYS {
        let (found, limit, way) = way(name);
        assert_eq!(
            (found.as_str(), limit, way),
            (description, rate, parts.iter().map(|it| (*it).to_owned()).collect::<Vec<String>>()),
            "{name}"
        );
    }
    let thunderbolt = crate::link::tests::link("thunderbolt.tree");
    let bus = thunderbolt.top().unwrap().bus.measured().unwrap();
    let believed: Vec<bool> = bus.way.iter().map(|part| part.rate_bps.is_some()).collect();
    assert_eq!(believed, [true, true, false], "a tunnel's declared speed is not believed");
}
