//! Hashes computed by hand from the kernel's documentation and sources, and what holds for every frame.

use std::net::{IpAddr, SocketAddr};

use proptest::prelude::*;

use super::frame::{ByteOrder, hash};
use super::release::{LowestBit, Ports, TypeWord, has_array, rules};
use super::{Frame, Policy, Transport, predicted_port};

const WORDS: [&str; 6] = ["layer2", "layer2+3", "layer3+4", "encap2+3", "encap3+4", "vlan+srcmac"];

fn frame(local: &str, remote: &str) -> Frame {
    Frame {
        source_mac: [0x02, 0x11, 0x22, 0x33, 0x44, 0xe3],
        next_hop_mac: [0x02, 0xaa, 0xbb, 0xcc, 0xdd, 0xa0],
        vlan: None,
        local: local.parse().unwrap(),
        remote: remote.parse().unwrap(),
        transport: Transport::WithPorts,
    }
}

fn little(policy: Policy, frame: &Frame, release: &str) -> Option<u32> {
    let rules = rules(release);
    assert_eq!(rules.len(), 1, "{release}");
    hash(policy, frame, rules[0], ByteOrder::Little)
}

/// The numbers of the change that keeps the lowest bit for layer2+3 (49aefd131739): MAC addresses that end in e3 and a0 or a1,
/// addresses 192.168.122.30 and 192.168.122.1, and the EtherType read as 8.
#[test]
fn the_kernels_own_example_comes_out() {
    for (last, kept) in [(0xa0, 522_133_332), (0xa1, 522_133_333)] {
        let mut frame = frame("192.168.122.30:1", "192.168.122.1:2");
        frame.next_hop_mac[5] = last;
        // Without the dropped bit (4.14.0) and with it (5.10).
        assert_eq!(little(Policy::Layer23, &frame, "4.14.0"), Some(kept), "{last:x}");
        assert_eq!(little(Policy::Layer23, &frame, "5.10.200"), Some(kept >> 1), "{last:x}");
    }
}

#[test]
fn known_frames_hash_to_known_numbers() {
    let v4 = ("192.0.2.1:40000", "192.0.2.2:5201");
    let v6 = ("[2001:db8::1]:40000", "[2001:db8::2]:5201");
    for (name, policy, (local, remote), release, expected) in [
        // e3 ^ a0 = 43.
        ("layer2 of 3.10", Policy::Layer2, v4, "3.10.108", 0x43),
        ("layer2 with the EtherType as it stands", Policy::Layer2, v4, "4.4.302", 0x43 ^ 0x0008),
        ("layer2 with the EtherType as a number", Policy::Layer2, v4, "5.15.100", 0x43 ^ 0x0800),
        ("layer2 of IPv6 with the EtherType as it stands", Policy::Layer2, v6, "5.10.1", 0x43 ^ 0xdd86),
        ("layer2 of IPv6 with the EtherType as a number", Policy::Layer2, v6, "6.18.0", 0x43 ^ 0x86dd),
        // 0201 ^ 0202 = 3.
        ("layer2+3 of 3.10", Policy::Layer23, v4, "3.10.108", 0x43 ^ 3),
        // 9c40 ^ 1451 = 8811.
        ("layer3+4 of 3.10", Policy::Layer34, v4, "3.10.108", 0x8811 ^ 3),
        // The addresses differ in the highest byte: 0300_0000; folded: 0300_0300, then 0303_0303 without what stood above.
        ("layer2+3 since 3.13", Policy::Layer23, v4, "3.13.11", fold(0x0300_0043)),
        ("layer2+3 since 5.18", Policy::Layer23, v4, "6.1.90", fold(0x0300_0843)),
        ("layer2+3 with the lowest bit dropped", Policy::Layer23, v4, "4.19.300", fold(0x0300_004b) >> 1),
        // The header's bytes 9c 40 14 51 read from the lowest up.
        ("layer3+4 since 3.13", Policy::Layer34, v4, "3.14.79", fold(0x5114_409c ^ 0x0300_0000)),
        ("layer3+4 with the lowest bit dropped", Policy::Layer34, v4, "6.18.0", fold(0x5114_409c ^ 0x0300_0000) >> 1),
        ("layer3+4 of IPv6", Policy::Layer34, v6, "6.18.0", fold(0x5114_409c ^ 0x0300_0000) >> 1),
        ("layer2+3 of IPv6", Policy::Layer23, v6, "6.18.0", fold(0x0300_0000 ^ 0x43 ^ 0x86dd)),
        ("encap2+3 is layer2+3 without a tunnel", Policy::Encap23, v4, "6.18.0", fold(0x0300_0843)),
        // 021122 ^ 3344e3.
        ("vlan+srcmac", Policy::VlanSrcMac, v4, "6.18.0", 0x0002_1122 ^ 0x0033_44e3),
    ] {
        let found = little(policy, &frame(local, remote), release);
        assert_eq!(found, Some(expected), "{name}: {found:x?} and {expected:x}");
    }
}

/// The fold of the kernel's documentation: right shifts by 16 and by 8.
fn fold(hash: u32) -> u32 {
    let hash = hash ^ (hash >> 16);
    hash ^ (hash >> 8)
}

#[test]
fn addresses_of_old_ipv6_leave_out_their_first_word_and_fold_all_bytes() {
    let frame = frame("[1:2:3:4:5:6:7:8]:40000", "[9:2:3:4:5:6:7:9]:5201");
    // Of the last three words only 8 ^ 9 = 1 in the highest byte is left; its copies stand in all lower bytes.
    let addresses = 0x0100_0000;
    let folded = |hash: u32| hash ^ (hash >> 24) ^ (hash >> 16) ^ (hash >> 8);
    assert_eq!(little(Policy::Layer23, &frame, "3.10.108"), Some(folded(addresses) ^ 0x43));
    assert_eq!(little(Policy::Layer34, &frame, "3.10.108"), Some(folded(addresses ^ 0x8811)));
}

#[test]
fn a_fragment_counts_its_addresses_alone() {
    let mut frame = frame("192.0.2.1:40000", "192.0.2.2:5201");
    frame.transport = Transport::WithoutPorts;
    assert_eq!(little(Policy::Layer34, &frame, "6.18.0"), Some(fold(0x0300_0000) >> 1));
    assert_eq!(little(Policy::Layer34, &frame, "3.10.108"), Some(3));
}

#[test]
fn a_vlan_counts_in_one_policy_alone() {
    let plain = frame("192.0.2.1:40000", "192.0.2.2:5201");
    let tagged = Frame { vlan: Some(0x2007), ..plain };
    for word in WORDS {
        let policy = Policy::of(word).unwrap();
        let same = little(policy, &plain, "6.18.0") == little(policy, &tagged, "6.18.0");
        assert_eq!(same, policy != Policy::VlanSrcMac, "{word}");
        assert_eq!(policy.word(), word);
    }
}

#[test]
fn big_endian_hosts_read_the_same_bytes_as_other_numbers() {
    let frame = frame("192.0.2.1:40000", "192.0.2.2:5201");
    let now = rules("6.18.0")[0];
    assert_eq!(hash(Policy::Layer34, &frame, now, ByteOrder::Big), Some(fold(0x9c40_1451 ^ 0x0000_0003) >> 1));
    let before = rules("5.10.1")[0];
    assert_eq!(hash(Policy::Layer2, &frame, before, ByteOrder::Big), Some(0x43 ^ 0x0800));
}

#[test]
fn releases_are_read_with_their_changes() {
    use LowestBit::{Dropped, DroppedWithPorts, Kept};
    for (release, bits, ports) in [
        ("3.10.0", vec![Kept], vec![Ports::Read]),
        ("3.18.83", vec![Kept], vec![Ports::Read]),
        ("3.18.85", vec![Dropped, Kept], vec![Ports::Read]),
        ("4.4.59+", vec![Kept], vec![Ports::Read]),
        ("4.4.103", vec![Dropped, Kept], vec![Ports::Read]),
        ("4.4.302+", vec![Dropped], vec![Ports::Read]),
        ("4.14.24-qnap", vec![Dropped], vec![Ports::Read]),
        ("4.15.18", vec![Dropped], vec![Ports::Read]),
        ("5.10.55+", vec![Dropped], vec![Ports::Read]),
        ("5.15.10", vec![Dropped], vec![Ports::Misread]),
        ("5.15.17", vec![Dropped], vec![Ports::Read]),
        ("5.15.38", vec![DroppedWithPorts], vec![Ports::Read]),
        ("5.16.2-arch1-1", vec![Dropped], vec![Ports::Misread]),
        ("5.16.3-arch1-1", vec![Dropped], vec![Ports::Read]),
        ("5.17.5", vec![Dropped], vec![Ports::Read]),
        ("5.17.6", vec![DroppedWithPorts], vec![Ports::Read]),
        ("6.8.12-4-pve", vec![DroppedWithPorts], vec![Ports::Read]),
        ("6.18", vec![DroppedWithPorts], vec![Ports::Read]),
        // The stable patch is hidden.
        ("5.15.0-91-generic", vec![Dropped, DroppedWithPorts], vec![Ports::Read]),
        ("4.4.0-210-generic", vec![Dropped, Kept], vec![Ports::Read]),
        ("6.1.0-18-amd64", vec![DroppedWithPorts], vec![Ports::Read]),
        // Newer drivers under an old number.
        ("4.18.0-513.el8.x86_64", vec![Dropped, DroppedWithPorts], vec![Ports::Read]),
        ("5.14.21-150500.55.7-default", vec![Dropped, DroppedWithPorts], vec![Ports::Read]),
        ("3.10.0-1160.el7.x86_64", vec![Dropped, DroppedWithPorts, Kept], vec![Ports::Read]),
        ("", vec![], vec![]),
        ("custom", vec![], vec![]),
        ("6", vec![], vec![]),
        ("99999999999999.1.1", vec![], vec![]),
    ] {
        let found = rules(release);
        let mut seen: Vec<LowestBit> = Vec::new();
        let mut read: Vec<Ports> = Vec::new();
        for rules in &found {
            if !seen.contains(&rules.lowest_bit) {
                seen.push(rules.lowest_bit);
            }
            if !read.contains(&rules.ports) {
                read.push(rules.ports);
            }
        }
        seen.sort_by_key(|bit| format!("{bit:?}"));
        assert_eq!((seen, read), (bits, ports), "{release}");
    }
    assert_eq!(rules("6.18.0")[0].type_word, TypeWord::Number);
    let arrays =
        [("3.10.108", Some(false)), ("3.18.1", None), ("4.4.0", Some(true)), ("3.10.0-1160.el7.x86_64", None), ("x", None)];
    for (release, told) in arrays {
        assert_eq!(has_array(release), told, "{release}");
    }
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("eth{at}")).collect()
}

#[test]
fn a_port_is_named_only_where_all_that_the_kernel_may_do_agrees() {
    let frame = frame("192.0.2.1:40000", "192.0.2.2:5201");
    let port = |policy: &str, release: &str, count: usize| predicted_port(policy, &frame, release, &names(count));
    let said = |policy: &str, release: &str, count: usize| match port(policy, release, count) {
        crate::model::outcome::Outcome::Measured(name) => name,
        other => other.why().unwrap_or_default().to_owned(),
    };
    assert_eq!(said("layer2", "6.18.0", 2), "eth1");
    assert_eq!(said("layer2", "4.18.0-513.el8.x86_64", 2), "eth1", "the EtherType of IPv4 changes nothing of two ports");
    // 4b = 75 and 843 = 2115 are both 0 mod 3 and 5; 7 tells them apart: 5 and 1.
    assert_eq!(said("layer2", "4.18.0-513.el8.x86_64", 3), "eth0");
    assert!(said("layer2", "4.18.0-513.el8.x86_64", 7).contains("distribution"));
    assert!(said("layer3+4", "5.15.3", 2).contains("5.15.17"));
    assert_eq!(port("layer3+4", "5.15.0-91-generic", 2), port("layer3+4", "6.18.0", 2));
    assert!(said("encap3+4", "6.18.0", 2).contains("random number"));
    assert!(said("layer7", "6.18.0", 2).contains("layer7"));
    assert!(said("layer2", "nonsense", 2).contains("nonsense"));
    assert!(said("layer2", "6.18.0", 0).contains("no port"));
}

fn any_frame() -> impl Strategy<Value = Frame> {
    let v4 = (any::<[u8; 4]>(), any::<[u8; 4]>()).prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b)));
    let v6 = (any::<[u8; 16]>(), any::<[u8; 16]>()).prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b)));
    let macs = (any::<[u8; 6]>(), any::<[u8; 6]>());
    let ports = (any::<u16>(), any::<u16>(), any::<Option<u16>>(), any::<bool>());
    (prop_oneof![v4, v6], macs, ports).prop_map(|((local, remote), (source_mac, next_hop_mac), (from, to, vlan, whole))| Frame {
        source_mac,
        next_hop_mac,
        vlan,
        local: SocketAddr::new(local, from),
        remote: SocketAddr::new(remote, to),
        transport: if whole { Transport::WithPorts } else { Transport::WithoutPorts },
    })
}

fn any_release() -> impl Strategy<Value = String> {
    prop_oneof![
        (2..8u32, 0..25u32, 0..120u32).prop_map(|(major, minor, patch)| format!("{major}.{minor}.{patch}")),
        prop::sample::select(vec!["5.15.0-91-generic", "4.18.0-513.el8.x86_64", "3.10.0-1160.el7.x86_64"])
            .prop_map(str::to_owned),
        ".{0,20}",
    ]
}

proptest! {
    #[test]
    fn a_port_is_one_of_the_list(frame in any_frame(), release in any_release(), count in 0..17usize, at in 0..6usize) {
        let ports = names(count);
        if let Some(port) = predicted_port(WORDS[at], &frame, &release, &ports).measured() {
            prop_assert!(ports.contains(port));
        }
    }

    #[test]
    fn addresses_may_change_places(frame in any_frame(), release in any_release(), at in 0..6usize) {
        let turned = Frame {
            source_mac: frame.next_hop_mac,
            next_hop_mac: frame.source_mac,
            local: SocketAddr::new(frame.remote.ip(), frame.local.port()),
            remote: SocketAddr::new(frame.local.ip(), frame.remote.port()),
            ..frame
        };
        let policy = Policy::of(WORDS[at]).unwrap();
        for rules in rules(&release) {
            for order in [ByteOrder::Little, ByteOrder::Big] {
                let same = hash(policy, &frame, rules, order) == hash(policy, &turned, rules, order);
                prop_assert!(same || policy == Policy::VlanSrcMac);
            }
        }
    }

    #[test]
    fn policies_without_ports_do_not_see_them(frame in any_frame(), release in any_release(), at in 0..6usize, from in any::<u16>(), to in any::<u16>()) {
        let policy = Policy::of(WORDS[at]).unwrap();
        let other = Frame {
            local: SocketAddr::new(frame.local.ip(), from),
            remote: SocketAddr::new(frame.remote.ip(), to),
            ..frame
        };
        if !policy.tells_connections_apart() {
            for rules in rules(&release) {
                prop_assert_eq!(hash(policy, &frame, rules, ByteOrder::Little), hash(policy, &other, rules, ByteOrder::Little));
            }
        }
    }
}
