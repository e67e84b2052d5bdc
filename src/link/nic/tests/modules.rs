//! Modules and cables by their memory.

use super::*;

/// An SFP's memory: connector, codes of 10G, Ethernet and cable, rate, length, extended code, maker and part.
fn sfp(fields: [u8; 7], vendor: &str, part: &str) -> Vec<u8> {
    let mut memory = vec![0; 96];
    let [connector, ten, ethernet, cable, rate, length, extended] = fields;
    (memory[0], memory[1], memory[2], memory[3], memory[6], memory[8]) = (3, 4, connector, ten, ethernet, cable);
    (memory[12], memory[18], memory[36]) = (rate, length, extended);
    memory[20..36].copy_from_slice(format!("{vendor:16}").as_bytes());
    memory[40..56].copy_from_slice(format!("{part:16}").as_bytes());
    memory
}

#[test]
fn modules_are_what_their_memory_says() {
    for (fields, part, kind, connector, complies, hides, cable, sentence) in [
        ([0x07, 0x10, 0, 0, 103, 8, 0], "FTLX8571D3BCL", "SFP+", Some("LC"), "10GBASE-SR", false, None, "short-range fibre"),
        (
            [0x21, 0, 0, 4, 103, 3, 0],
            "CAB-10GSFP-P3M",
            "SFP+",
            Some("copper pigtail"),
            "passive copper cable",
            false,
            Some(3),
            "a DAC",
        ),
        ([0x22, 0, 0, 0, 103, 0, 0x16], "S+RJ10", "SFP+", Some("RJ45"), "10GBASE-T", true, None, "10GBASE-T"),
        (
            [0x22, 0, 0, 0, 103, 0, 0x1c],
            "ASF-10G-T",
            "SFP+",
            Some("RJ45"),
            "10GBASE-T short reach (30 m)",
            true,
            None,
            "30 m copper",
        ),
        (
            [0x07, 0x10, 0, 0, 103, 0, 0],
            "SFP-10G-T",
            "SFP+",
            Some("LC"),
            "10GBASE-SR",
            true,
            None,
            "copper that calls itself fibre",
        ),
        ([0x22, 0, 8, 0, 13, 0, 0], "FCLF8522P2BTL", "SFP", Some("RJ45"), "1000BASE-T", true, None, "1000BASE-T"),
        ([0x07, 0, 2, 0, 13, 0, 0], "GLC-LH-SMD", "SFP", Some("LC"), "1000BASE-LX", false, None, "gigabit fibre"),
        (
            [0x23, 0, 0, 8, 255, 5, 0x18],
            "AOC-25G",
            "SFP28",
            Some("no separable connector"),
            "active cable, active optical cable 25G/100G",
            false,
            Some(5),
            "active cable of 25G",
        ),
        ([0x55, 0, 0, 0, 0, 0, 0], "", "SFP", None, "", false, None, "nothing stated"),
    ] {
        let mut memory = sfp(fields, "WEAKCO", part);
        memory[66] = 103;
        let found = module::decode(&memory).unwrap();
        assert_eq!(
            (found.kind.as_str(), found.connector.as_deref(), found.complies.join(", ").as_str()),
            (kind, connector, complies),
            "{sentence}"
        );
        assert_eq!((found.hides_copper_rate, found.cable_m), (hides, cable), "{sentence}");
        assert_eq!(
            (found.vendor.as_deref(), found.part.as_deref()),
            (Some("WEAKCO"), Some(part).filter(|part| !part.is_empty())),
            "{sentence}"
        );
    }
    for blank in [vec![0; 256], vec![0xff; 256], vec![3; 20], Vec::new()] {
        assert_eq!(module::decode(&blank), None);
    }
}

#[test]
fn a_quad_module_is_read_from_its_upper_page() {
    let mut memory = vec![0; 256];
    (memory[0], memory[128], memory[130], memory[131], memory[140], memory[146], memory[147]) =
        (0x0d, 0x0d, 0x23, 8, 103, 2, 0xa0);
    memory[148..164].copy_from_slice(b"Mellanox        ");
    memory[168..184].copy_from_slice(b"MC2210128-002   ");
    let cable = Module {
        kind: "QSFP+".into(),
        vendor: Some("Mellanox".into()),
        part: Some("MC2210128-002".into()),
        connector: Some("no separable connector".into()),
        complies: vec!["40GBASE-CR4".into(), "passive copper cable".into()],
        rate_bps: Some(BitRate::from_mbit(10_300)),
        cable_m: Some(2),
        hides_copper_rate: false,
    };
    assert_eq!(module::decode(&memory), Some(cable));
    // 100GBASE-SR4: the rate and the code stand in the finer fields.
    (memory[0], memory[130], memory[131], memory[140], memory[146], memory[147]) = (0x11, 0x0c, 0x80, 0xff, 0, 0);
    (memory[192], memory[222]) = (2, 103);
    let found = module::decode(&memory).unwrap();
    assert_eq!((found.kind.as_str(), found.complies.join(", ").as_str()), ("QSFP28", "25GBASE-SR or 100GBASE-SR4"));
    assert_eq!((found.rate_bps, found.cable_m), (Some(BitRate::from_mbit(25_750)), None));
    assert_eq!(module::decode(&memory[..128]), None, "the upper page is missing");
}

#[test]
#[cfg(unix)]
fn a_module_is_read_by_either_way_and_copper_hides_its_rate_unless_the_partner_is_seen() {
    let (_dir, tree) = crate::link::tests::machine("sfp_cage.tree");
    let memory = sfp([0x22, 0, 0, 0, 103, 0, 0x16], "MikroTik", "S+RJ10");
    let by_netlink = Recorded {
        messages: BTreeMap::from([(Question::Module(0), reply(&[attribute(7, &memory)]))]),
        error: NOT_SUPPORTED,
        ..Recorded::default()
    };
    let by_ioctl = Recorded { module: Some(memory), error: NOT_SUPPORTED, ..Recorded::default() };
    for (mut recorded, source) in [(by_netlink, Source::EthtoolNetlink), (by_ioctl, Source::Ethtool)] {
        let found = nic(&tree, "enp1s0f0", Kind::Physical, recorded.clone());
        let module = found.module.measured().unwrap();
        assert_eq!((module.value.hides_copper_rate, module.source), (true, source));
        recorded.messages.insert(Question::Modes, modes_reply(set));
        let found = nic(&tree, "enp1s0f0", Kind::Physical, recorded);
        assert!(!found.module.measured().unwrap().value.hides_copper_rate);
    }
    let denied = nic(&tree, "enp1s0f0", Kind::Physical, Recorded { error: NOT_PERMITTED, ..Recorded::default() });
    assert!(denied.module.why().unwrap().contains("CAP_NET_ADMIN"), "{:?}", denied.module);
    let empty = nic(&tree, "enp1s0f0", Kind::Physical, Recorded { error: 6, ..Recorded::default() });
    assert!(empty.module.why().unwrap().contains("no module answers"), "{:?}", empty.module);
    // Renamed since its interrupts were named: found by the device's numbers, without those of the card's other port.
    let names: Vec<_> = empty.interrupts.measured().unwrap().value.iter().map(|line| line.name.clone()).collect();
    assert_eq!(names, ["eth4-TxRx-0", "eth4-TxRx-1"]);
    assert_eq!(empty.bus_address.measured(), Some(&Fact::new("0000:01:00.0".to_owned(), Source::Sysfs)));
    assert_eq!(empty.mac.measured(), Some(&Fact::new("02:00:00:00:00:08".to_owned(), Source::Sysfs)));
}
