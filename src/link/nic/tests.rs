//! Ports that were recorded or made by hand, the running machine, and bytes that nobody meant.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::ask::{GLINKSETTINGS, GSET, Recorded};
use super::interrupts::Owner;
use super::modes::bit;
use super::netlink::{Question, attribute};
use super::*;
use crate::link::ethtool::{self, Settings};
use crate::link::tests::{bytes, text};
use crate::link::tree::Tree;
use crate::model::link::{Duplex, InterfaceKind as Kind};
use crate::model::nic::{Channels, Coalescing, Eee, Fec, Mdi, Module, Nic, Pause, PortKind, Rings};
use crate::model::outcome::{Fact, Source};
use crate::units::BitRate;

const NOT_SUPPORTED: i32 = 95;
const NOT_PERMITTED: i32 = 1;

/// A reply as the kernel would send it: both headers, the header of ethtool, and the attributes.
fn reply(attributes: &[Vec<u8>]) -> Vec<u8> {
    let mut message = vec![0; 20];
    message.extend(attribute(1 | 0x8000, &attribute(2, b"eth0\0")));
    message.extend(attributes.concat());
    message
}

fn byte(kind: u16, value: u8) -> Vec<u8> {
    attribute(kind, &[value])
}

fn word(kind: u16, value: u32) -> Vec<u8> {
    attribute(kind, &value.to_ne_bytes())
}

fn words(bits: &[usize]) -> Vec<u32> {
    let mut words = vec![0; 4];
    for bit in bits {
        words[bit / 32] |= 1 << (bit % 32);
    }
    words
}

fn mask(bits: &[usize]) -> Mask {
    Mask::new(words(bits))
}

/// A set of bits in the compact form.
fn set(kind: u16, value: &[usize], mask: Option<&[usize]>) -> Vec<u8> {
    let flat = |bits: &[usize]| words(bits).iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
    let mut inner = [word(2, 121), attribute(4, &flat(value))].concat();
    match mask {
        Some(mask) => inner.extend(attribute(5, &flat(mask))),
        None => inner.extend(attribute(1, &[])),
    }
    attribute(kind | 0x8000, &inner)
}

/// The same bit by bit, with names.
fn verbose(kind: u16, value: &[usize], mask: Option<&[usize]>) -> Vec<u8> {
    let one = |bit: usize| {
        let mut inner = [word(1, bit as u32), attribute(2, b"any\0")].concat();
        if mask.is_some() && value.contains(&bit) {
            inner.extend(attribute(3, &[]));
        }
        attribute(1 | 0x8000, &inner)
    };
    let bits: Vec<u8> = mask.unwrap_or(value).iter().flat_map(|bit| one(*bit)).collect();
    let mut inner = [word(2, 121), attribute(3 | 0x8000, &bits)].concat();
    if mask.is_none() {
        inner.extend(attribute(1, &[]));
    }
    attribute(kind | 0x8000, &inner)
}

/// Twisted pair of 100M to 10G: supported, without 5G.
const COPPER: [usize; 9] = [3, 5, 6, 7, 12, 13, 14, 47, 48];

/// How a set of bits is written: its attribute, its bits, and its mask.
type Write = fn(u16, &[usize], Option<&[usize]>) -> Vec<u8>;

fn modes_reply(set: Write) -> Vec<u8> {
    reply(&[
        byte(2, 1),
        set(3, &[3, 5, 6, 7, 13, 47], Some(&COPPER)),
        set(4, &[3, 5, 6, 13, 14], None),
        word(5, 1000),
        byte(6, 1),
    ])
}

fn mbit(speeds: &[BitRate]) -> Vec<u64> {
    speeds.iter().map(|speed| speed.0 / 1_000_000).collect()
}

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

/// Every question and what a card of 2.5G answers, by netlink and by the ioctl, and what both mean.
fn full() -> (Recorded, Recorded) {
    let by_netlink = BTreeMap::from([
        (Question::Info, reply(&[byte(2, 0), byte(4, 2)])),
        (Question::Modes, modes_reply(set)),
        (Question::State, reply(&[byte(2, 1)])),
        (Question::Rings, reply(&[word(2, 4096), word(5, 4096), word(6, 256), word(9, 512)])),
        (Question::Channels, reply(&[word(5, 4), word(9, 2)])),
        (Question::Coalescing, reply(&[word(2, 3), word(6, 5), byte(11, 1)])),
        (Question::Pause, reply(&[byte(2, 1), byte(3, 1), byte(4, 1)])),
        (Question::Eee, reply(&[byte(4, 1), byte(5, 1), byte(6, 1), word(7, 17)])),
        (Question::Fec, reply(&[set(2, &[bit::FEC_RS, bit::FEC_BASER], None), byte(3, 1), word(4, bit::FEC_RS as u32)])),
        (Question::Hash, reply(&[attribute(4, &[0u32, 1, 2, 0, 1, 2].map(u32::to_ne_bytes).concat())])),
    ]);
    let structure = |words: &[(usize, u32)]| {
        let mut data = vec![0; 256];
        for (at, value) in words {
            data[*at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        data
    };
    let mut settings = vec![0; 48];
    settings[4..8].copy_from_slice(&1000u32.to_ne_bytes());
    (settings[8], settings[9], settings[11], settings[13], settings[15]) = (1, 0, 1, 2, 4);
    for bits in [&COPPER[..], &[3, 5, 6, 7, 13, 47], &[3, 5, 6, 13, 14]] {
        settings.extend(words(bits).iter().flat_map(|word| word.to_ne_bytes()));
    }
    let by_ioctl = BTreeMap::from([
        (GLINKSETTINGS, settings),
        (structures::RINGS, structure(&[(4, 4096), (16, 4096), (20, 256), (32, 512)])),
        (structures::CHANNELS, structure(&[(16, 4), (32, 2)])),
        (structures::COALESCING, structure(&[(4, 3), (20, 5), (40, 1)])),
        (structures::PAUSE, structure(&[(4, 1), (8, 1), (12, 1)])),
        (structures::EEE, structure(&[(16, 1), (20, 1), (24, 1), (28, 17)])),
        (structures::FEC, structure(&[(4, 1 << 3), (8, 1 << 1 | 1 << 3 | 1 << 4)])),
    ]);
    let recorded = |messages, structures, hash| Recorded { messages, structures, hash, module: None, error: NOT_SUPPORTED };
    (recorded(by_netlink, BTreeMap::new(), None), recorded(BTreeMap::new(), by_ioctl, Some(vec![0, 1, 2])))
}

fn nic(tree: &Tree, name: &str, kind: Kind, recorded: Recorded) -> Nic {
    let port = Port::recorded(name, recorded);
    let around = Around { tree, name, kind, row: None, no_sysfs: None };
    *collect(&around, &port, &port.link()).measured().unwrap().clone()
}

#[test]
fn netlink_and_ioctl_tell_the_same_and_each_signs_for_it() {
    let tree = Tree::new("/nonexistent");
    let (by_netlink, by_ioctl) = full();
    for (recorded, source) in [(by_netlink, Source::EthtoolNetlink), (by_ioctl, Source::Ethtool)] {
        let found = nic(&tree, "eth0", Kind::Physical, recorded);
        let by_ioctl = source == Source::Ethtool;
        assert_eq!(found.port.measured(), Some(&Fact::new(PortKind::TwistedPair, source)));
        assert_eq!(found.mdi.measured(), Some(&Fact::new(Mdi::Crossed, source)));
        assert_eq!(found.mode_names.measured().map(|fact| (fact.value.supported.len(), fact.source)), Some((5, source)));
        assert_eq!(found.rings.measured(), Some(&Fact::new(Rings { rx: 256, rx_max: 4096, tx: 512, tx_max: 4096 }, source)));
        let channels = Channels { combined: 2, combined_max: 4, ..Channels::default() };
        assert_eq!(found.channels.measured(), Some(&Fact::new(channels, source)));
        let zero = by_ioctl.then_some(0);
        let coalescing = Coalescing {
            rx_us: Some(3),
            rx_frames: zero,
            tx_us: Some(5),
            tx_frames: zero,
            adaptive_rx: Some(true),
            adaptive_tx: by_ioctl.then_some(false),
        };
        assert_eq!(found.coalescing.measured(), Some(&Fact::new(coalescing, source)));
        // We offer symmetric pause, and so does the partner.
        let pause = Pause { autoneg: true, rx: true, tx: true, rx_in_effect: Some(true), tx_in_effect: Some(true) };
        assert_eq!(found.pause.measured(), Some(&Fact::new(pause, source)));
        let eee = Eee { enabled: true, active: true, tx_timer_us: Some(17) };
        assert_eq!(found.eee.measured(), Some(&Fact::new(eee, source)));
        let fec = Fec { configured: ["auto", "rs", "baser"].map(str::to_owned).to_vec(), active: Some("rs".into()) };
        assert_eq!(found.fec.measured(), Some(&Fact::new(fec, source)));
        assert_eq!(found.rss_queues.measured(), Some(&Fact::new(3, source)));
        assert_eq!(found.modes_doubt, None);
    }
}

#[test]
fn what_no_source_tells_has_a_reason() {
    let tree = Tree::new("/nonexistent");
    for (error, word) in [(NOT_SUPPORTED, "does not tell"), (NOT_PERMITTED, "root"), (5, "cannot be read")] {
        let found = nic(&tree, "eth7", Kind::Physical, Recorded { error, ..Recorded::default() });
        for why in [found.pause.why(), found.eee.why(), found.fec.why(), found.rings.why(), found.channels.why()] {
            assert!(why.unwrap().contains(word) && why.unwrap().contains("eth7"), "{error}: {why:?}");
        }
        assert!(found.module.why().unwrap().contains("eth7"), "{:?}", found.module);
    }
    let nobody = Port::new(&tree, "eth7");
    let around = Around { tree: &tree, name: "eth7", kind: Kind::Loopback, row: None, no_sysfs: None };
    assert!(collect(&around, &nobody, &nobody.link()).why().unwrap().contains("loopback"));
    let around = Around { kind: Kind::Physical, ..around };
    let found = collect(&around, &nobody, &nobody.link());
    assert!(found.measured().unwrap().rings.why().unwrap().contains("recording"));
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

/// Replies as kernel 6.18 sent them.
fn recorded(name: &str) -> BTreeMap<String, Vec<u8>> {
    let text = text(&format!("ethtool/{name}.hex"));
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(' ')).map(|(question, hex)| (question.to_owned(), bytes(hex))).collect()
}

#[test]
fn real_replies_are_read() {
    // The words of the kernel are in the byte order of the machine that recorded them.
    if cfg!(target_endian = "big") {
        return;
    }
    let veth = recorded("veth");
    assert_eq!(netlink::family(&veth["family"]), Some(21));
    for form in ["modes", "modes-verbose"] {
        let found = netlink::modes(&veth[form]).unwrap();
        assert_eq!((found.speed, found.duplex, found.autoneg), (Some(BitRate::from_mbit(10_000)), Some(Duplex::Full), false));
        assert!(found.masks.supported.is_empty());
    }
    assert_eq!(netlink::state(&veth["state"]), (Some(true), None));
    let channels = Channels { rx: 1, tx: 1, rx_max: 2, tx_max: 2, ..Channels::default() };
    assert_eq!(netlink::channels(&veth["channels"]).map(|found| (found.rx, found.tx)), Some((channels.rx, channels.tx)));

    let virtio = recorded("virtio");
    assert!(netlink::modes(&virtio["modes"]).unwrap().says_nothing());
    assert_eq!(netlink::info(&virtio["info"]), (Some(PortKind::Other), None));
    assert_eq!(netlink::rings(&virtio["rings"]), Some(Rings { rx: 256, rx_max: 256, tx: 256, tx_max: 256 }));
    assert_eq!(netlink::channels(&virtio["channels"]), Some(Channels { combined: 1, combined_max: 1, ..Channels::default() }));
    assert_eq!(netlink::hash(&virtio["hash"]), None, "a hash function without a table");
    let coalescing = netlink::coalescing(&virtio["coalescing"]).unwrap();
    assert_eq!((coalescing.rx_us, coalescing.rx_frames, coalescing.adaptive_rx), (Some(0), Some(1), Some(false)));
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_without_panic(data in proptest::collection::vec(any::<u8>(), 0..400)) {
        decode_all(&data);
        let _ = module::decode(&data);
        let text = String::from_utf8_lossy(&data);
        let owner = Owner { name: "eth0", device: Some("0000:03:00.0"), numbers: [1, 2].into() };
        let _ = interrupts::of_port(&text, &owner);
        let _ = interrupts::of_port(&format!("CPU0 CPU1\n 1: {text} eth0\n"), &owner);
    }

    /// Right attributes of random kinds, two deep, so that the nests themselves are random.
    #[test]
    fn any_attributes_are_decoded_without_panic(
        data in proptest::collection::vec((0u16..16, proptest::collection::vec((0u16..8, proptest::collection::vec(any::<u8>(), 0..12)), 0..5)), 0..12),
        cut in 0usize..200,
    ) {
        let attributes: Vec<Vec<u8>> = data
            .iter()
            .map(|(kind, inner)| {
                let inner: Vec<u8> = inner.iter().flat_map(|(kind, value)| attribute(*kind, value)).collect();
                attribute(*kind, &inner)
            })
            .collect();
        let message = reply(&attributes);
        decode_all(&message);
        decode_all(message.get(..cut).unwrap_or(&message));
    }

    #[test]
    fn any_module_is_decoded_without_panic(first in prop_oneof![Just(3u8), Just(0x0d), Just(0x11), Just(0x18), Just(0x1e)], rest in proptest::collection::vec(any::<u8>(), 0..300)) {
        let memory = [vec![first], rest].concat();
        if let Some(found) = module::decode(&memory) {
            prop_assert!(found.vendor.is_none_or(|vendor| vendor.len() <= 16 && vendor.bytes().all(|b| (b' '..=b'~').contains(&b))));
        }
    }
}

fn decode_all(data: &[u8]) {
    let _ = netlink::family(data);
    let _ = netlink::modes(data).map(|found| (found.masks.names(), found.modes));
    let _ = (netlink::info(data), netlink::state(data), netlink::rings(data), netlink::channels(data));
    let _ = (netlink::coalescing(data), netlink::pause(data), netlink::eee(data), netlink::fec(data));
    let _ = (netlink::module(data), netlink::hash(data));
    let _ = (structures::rings(data), structures::channels(data), structures::coalescing(data), structures::pause(data));
    let _ = (structures::eee(data), structures::fec(data), structures::rx_rings(data), structures::driver(data));
}

/// The running kernel, where it has ethtool netlink.
#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod kernel {
    use super::*;
    use crate::sys;

    #[test]
    fn the_kernels_own_names_of_modes_are_ours() {
        let Ok(reply) = sys::net::generic_netlink(&netlink::family_request()) else {
            return; // A kernel before 5.6, or a container without it.
        };
        let Some(family) = reply.first().and_then(|message| netlink::family(message)) else { return };
        let names = link_mode_names(family);
        for (number, name) in &names {
            let found = mask(&[*number as usize]).names();
            let expected: Vec<String> = if name.contains("base") { vec![name.clone()] } else { Vec::new() };
            // A kernel newer than our table names what we number.
            assert!(found == expected || found == [format!("bit {number}")], "{number} {name} {found:?}");
        }
    }

    /// `ETHTOOL_MSG_STRSET_GET` for `ETH_SS_LINK_MODES` (9): numbers and names.
    fn link_mode_names(family: u16) -> Vec<(u32, String)> {
        let nest = |kind: u16, inner: &[u8]| attribute(kind | 0x8000, inner);
        let body = [nest(1, &word(3, 1)), nest(2, &nest(1, &word(1, 9)))].concat();
        let mut request = ((20 + body.len()) as u32).to_ne_bytes().to_vec();
        request.extend(family.to_ne_bytes());
        request.extend(1u16.to_ne_bytes());
        request.extend([1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0]);
        request.extend(body);
        let Ok(reply) = sys::net::generic_netlink(&request) else { return Vec::new() };
        let inside = |bytes: &[u8], kind: u16| -> Vec<Vec<u8>> {
            netlink::Attributes::of_nest(bytes).filter(|(found, _)| *found == kind).map(|(_, value)| value.to_vec()).collect()
        };
        let body = reply.first().and_then(|message| message.get(20..)).unwrap_or_default();
        let sets = inside(body, 2).into_iter().flat_map(|sets| inside(&sets, 1));
        let strings = sets.flat_map(|set| inside(&set, 3)).flat_map(|strings| inside(&strings, 1));
        let one = |string: Vec<u8>| {
            let number = inside(&string, 1).first()?.first_chunk().map(|b| u32::from_ne_bytes(*b))?;
            Some((number, ethtool::name(inside(&string, 2).first()?)?))
        };
        strings.filter_map(one).collect()
    }

    #[test]
    fn this_machines_ports_answer_or_say_why_not() {
        let tree = Tree::system();
        for name in tree.names("/sys/class/net") {
            let port = Port::new(&tree, &name);
            let link = port.link();
            let around = Around { tree: &tree, name: &name, kind: Kind::Unknown, row: None, no_sysfs: None };
            let found = collect(&around, &port, &link);
            let nic = found.measured().unwrap();
            for why in [nic.pause.why(), nic.rings.why(), nic.module.why(), nic.rss_queues.why(), nic.interrupts.why()] {
                assert!(why.is_none_or(|why| why.contains(&name)), "{why:?}");
            }
        }
    }
}
