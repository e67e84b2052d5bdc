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

mod modes;
mod modules;
mod trees;

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
