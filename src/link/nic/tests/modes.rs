//! Link modes, flow control, and why there is no link.

use super::*;

#[test]
fn modes_are_read_from_both_forms_of_sets() {
    for set in [set as Write, verbose] {
        let found = netlink::modes(&modes_reply(set)).unwrap();
        assert_eq!(mbit(&found.modes.supported_bps), [100, 1000, 2500, 5000, 10_000]);
        assert_eq!(mbit(&found.modes.advertised_bps), [100, 1000, 2500]);
        assert_eq!(mbit(&found.modes.partner_bps), [100, 1000]);
        assert_eq!((found.speed, found.duplex, found.autoneg), (Some(BitRate::from_mbit(1000)), Some(Duplex::Full), true));
        let names = found.masks.names();
        assert_eq!(names.supported, ["100baseT/Full", "1000baseT/Full", "10000baseT/Full", "2500baseT/Full", "5000baseT/Full"]);
        assert_eq!(names.partner, ["100baseT/Full", "1000baseT/Full"]);
    }
}

#[test]
fn bits_are_named_or_numbered_and_what_is_no_mode_is_left_out() {
    let all: Vec<usize> = (0..128).collect();
    let (names, speeds) = (mask(&all).names(), mask(&all).speeds());
    // 125 bits have names; 13 of them are connectors, pause, autoneg and FEC; three have no name yet.
    assert_eq!(names.len(), 125 - 13 + 3);
    assert_eq!(names.iter().filter(|name| name.starts_with("bit ")).collect::<Vec<_>>(), ["bit 125", "bit 126", "bit 127"]);
    assert!(!names.iter().any(|name| ["Pause", "TP", "Autoneg", "RS", "None"].contains(&name.as_str())));
    assert_eq!(
        mbit(&speeds),
        [
            10, 100, 1000, 2500, 5000, 10_000, 20_000, 25_000, 40_000, 50_000, 56_000, 100_000, 200_000, 400_000, 800_000,
            1_600_000
        ]
    );
    for (bit, name, speed) in [
        (0, "10baseT/Half", 10),
        (15, "2500baseX/Full", 2_500),
        (20, "10000baseR_FEC", 10_000),
        (42, "10000baseCR/Full", 10_000),
        (92, "10baseT1L/Full", 10),
        (102, "10baseT1BRR/Full", 10),
        (120, "800000baseVR4/Full", 800_000),
    ] {
        assert_eq!((mask(&[bit]).names(), mbit(&mask(&[bit]).speeds())), (vec![name.to_owned()], vec![speed]), "{bit}");
    }
    let mut far = Mask::default();
    far.add(usize::MAX);
    far.add(5000);
    assert!(far.is_empty());
}

#[test]
fn flow_control_resolves_as_the_standard_says() {
    // IEEE 802.3, table 28B-3: ours and the partner's PAUSE and ASM_DIR; what follows for receive and transmit.
    for (ours, partner, rx, tx) in [
        ([false, false], [true, true], false, false),
        ([false, true], [false, true], false, false),
        ([false, true], [true, false], false, false),
        ([false, true], [true, true], false, true),
        ([true, false], [false, true], false, false),
        ([true, false], [true, false], true, true),
        ([true, false], [true, true], true, true),
        ([true, true], [false, false], false, false),
        ([true, true], [false, true], true, false),
        ([true, true], [true, false], true, true),
        ([true, true], [true, true], true, true),
    ] {
        let bits = |[pause, asymmetric]: [bool; 2]| {
            let bits = [(pause, bit::PAUSE), (asymmetric, bit::ASYM_PAUSE)];
            mask(&bits.iter().filter(|(on, _)| *on).map(|(_, bit)| *bit).collect::<Vec<_>>())
        };
        assert_eq!(pause::resolve(&bits(ours), &bits(partner)), (rx, tx), "{ours:?} {partner:?}");
    }
}

#[test]
fn flow_control_in_effect_needs_a_link_and_a_known_partner() {
    let link = |partner: &[usize], duplex| Settings {
        duplex: Some(duplex),
        masks: Masks { advertised: mask(&[5, 13]), partner: mask(partner), ..Masks::default() },
        ..Settings::default()
    };
    let (both, fixed) = (Pause { autoneg: true, rx: true, tx: true, ..Pause::default() }, Pause { rx: true, ..Pause::default() });
    for (set, link, up, rx, tx, sentence) in [
        (both, Some(link(&[5, 13], Duplex::Full)), Some(true), Some(true), Some(true), "both offer it"),
        (both, Some(link(&[5], Duplex::Full)), Some(true), Some(false), Some(false), "requested and negotiated off"),
        (both, Some(link(&[], Duplex::Full)), Some(true), None, None, "the partner is unknown"),
        (both, Some(link(&[5, 13], Duplex::Half)), Some(true), Some(false), Some(false), "half duplex has none"),
        (both, None, None, None, None, "nothing is known of the link"),
        (fixed, None, None, Some(true), Some(false), "set by hand"),
        (fixed, None, Some(false), None, None, "no link"),
    ] {
        let found = pause::in_effect(set, link.as_ref(), up);
        assert_eq!((found.rx_in_effect, found.tx_in_effect), (rx, tx), "{sentence}");
    }
}

#[test]
fn the_reason_for_no_link_is_in_words() {
    for (state, detail, words) in [
        (4, None, "no cable"),
        (0, Some(1), "autoneg: no partner detected"),
        (0, Some(6), "autoneg: no common mode"),
        (3, None, "bad signal integrity"),
        (3, Some(1), "bad signal integrity: large number of physical errors"),
        (3, Some(9), "bad signal integrity: detail 9"),
        (9, Some(0), "overheat"),
        (77, Some(1), "state 77: detail 1"),
    ] {
        let mut attributes = vec![byte(2, 0), byte(5, state)];
        attributes.extend(detail.map(|detail| byte(6, detail)));
        assert_eq!(netlink::state(&reply(&attributes)), (Some(false), Some(words.to_owned())));
    }
    assert_eq!(netlink::state(&reply(&[byte(2, 1)])), (Some(true), None));
}

/// `struct ethtool_cmd` with these masks.
fn old_command(supported: u32, advertised: u32, partner: u32, mbit: u16) -> Vec<u8> {
    let mut data = vec![0; 44];
    data[4..8].copy_from_slice(&supported.to_ne_bytes());
    data[8..12].copy_from_slice(&advertised.to_ne_bytes());
    data[12..14].copy_from_slice(&mbit.to_ne_bytes());
    (data[14], data[15], data[18]) = (1, 2, 1);
    data[32..36].copy_from_slice(&partner.to_ne_bytes());
    data
}

#[test]
fn an_old_list_up_to_1000_proves_no_gigabit_port() {
    let tree = Tree::new("/nonexistent");
    let listed = old_command(0x2e8, 0x2e8, 0, 1000);
    let structures = BTreeMap::from([(GSET, listed)]);
    let found = nic(&tree, "eth2", Kind::Physical, Recorded { structures, error: NOT_SUPPORTED, ..Recorded::default() });
    assert_eq!(found.mode_names.measured().unwrap().value.supported, ["100baseT/Full", "1000baseT/Full"]);
    assert!(found.modes_doubt.unwrap().contains("2.5G and 5G cannot stand"));
    // A list up to 10G holds all that such a card has.
    let structures = BTreeMap::from([(GSET, old_command(1 << 12 | 1 << 5, 1 << 12, 0, 10_000))]);
    let found = nic(&tree, "eth2", Kind::Physical, Recorded { structures, error: NOT_SUPPORTED, ..Recorded::default() });
    assert_eq!(found.modes_doubt, None);
}

#[test]
#[cfg(unix)]
fn the_chips_number_speaks_against_its_drivers_list() {
    let (_dir, tree) = crate::link::tests::machine("usb_aqc111.tree");
    let mut settings = vec![0; 48];
    settings[4..8].copy_from_slice(&1000u32.to_ne_bytes());
    (settings[8], settings[9], settings[11], settings[15]) = (1, 2, 1, 1);
    settings.extend([0x2e8u32, 0x2e8, 0].iter().flat_map(|word| word.to_ne_bytes()));
    let structures = BTreeMap::from([(GLINKSETTINGS, settings)]);
    let found = nic(&tree, "eth2", Kind::Physical, Recorded { structures, error: NOT_SUPPORTED, ..Recorded::default() });
    let doubt = found.modes_doubt.unwrap();
    assert!(doubt.contains("0b95:2790") && doubt.contains("5 Gbit/s") && doubt.contains("1 Gbit/s"), "{doubt}");
    assert_eq!(found.port.measured().unwrap().value, PortKind::Mii);
    assert!(found.interrupts.why().unwrap().contains("USB"), "{:?}", found.interrupts);
}

#[test]
fn a_partner_that_offers_100_only_is_told() {
    let found = ethtool::old_settings(&old_command(0x6ff & !(1 << 4), 0x6ef, 0xf, 100)).unwrap();
    assert_eq!(mbit(&found.modes.supported_bps), [10, 100, 1000]);
    assert_eq!(mbit(&found.modes.partner_bps), [10, 100]);
    assert_eq!(
        found.masks.partner.names(),
        ["10baseT/Half", "10baseT/Full", "100baseT/Half", "100baseT/Full"].map(str::to_owned)
    );
}
