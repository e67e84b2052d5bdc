//! What hosts that are no Linux tell of their ports, judged: recorded outputs of their own programs become links of a report, and the
//! verdict says what these facts show and nothing that they do not.

use std::path::Path;

use weaklink::link::from_programs;
use weaklink::{model, units};

#[path = "../src/verdict/scenario.rs"]
#[expect(dead_code, reason = "these cases need only some of the hands")]
mod scenario;

use model::Document;
use model::finding::Status;
use model::link::{HostLink, Interface};
use model::outcome::Outcome;
use model::plan::Scope;
use scenario::{healthy, pass};
use units::BitRate;
use weaklink::verdict::judge;

/// The stack of a recorded host.
fn stack(name: &str, top: &str) -> Vec<Interface> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/elsewhere/{name}.txt"));
    let text = std::fs::read_to_string(path).unwrap();
    let parts = text.split("$ ").skip(1).filter_map(|part| part.split_once('\n'));
    let outputs: Vec<_> = parts.map(|(question, printed)| (question.trim().to_owned(), printed.to_owned())).collect();
    from_programs(&outputs, top)
}

/// A healthy document of a NAS at `nas` Mbit/s whose PC is a recorded one, with rates of TCP in Mbit/s for one stream and for several.
fn document(name: &str, top: &str, nas: u64, one: u64, several: u64) -> Document {
    let mut doc = healthy(nas);
    let link = HostLink::new([192, 0, 2, 10].into(), [192, 0, 2, 20].into(), stack(name, top));
    doc.measurements.link.measured_mut().unwrap().pc = Outcome::Measured(link);
    let throughput = doc.measurements.throughput.measured_mut().unwrap();
    for direction in [&mut throughput.upload, &mut throughput.download] {
        direction.single = Outcome::Measured(pass(1, one));
        direction.multi = Outcome::Measured(pass(4, several));
    }
    doc
}

fn codes(doc: &Document) -> Vec<String> {
    judge(doc).findings.iter().map(|finding| finding.code.to_string()).collect()
}

#[test]
fn a_windows_pc_whose_card_could_do_more_is_told_so_and_no_side_is_blamed() {
    let doc = document("win_realtek", "Ethernet", 10_000, 941, 941);
    let judged = judge(&doc);
    assert_eq!(judged.verdict.code.to_string(), "network.link-below-capability", "{}", judged.verdict.sentence);
    let finding = judged.findings.iter().find(|it| it.code.to_string() == "network.link-below-capability").unwrap();
    let text = format!("{finding:?}");
    assert!(text.contains("linked at 1") && text.contains("2.5 Gbit/s"), "{text}");
    assert!(text.contains("What the partner offers is not known"), "{text}");
    assert!(!text.contains("negotiation is off") && !text.contains("offers at most"), "{text}");
}

#[test]
fn a_mac_whose_adapter_could_do_more_is_told_so() {
    let doc = document("mac_usb_1g", "en7", 10_000, 941, 941);
    assert_eq!(judge(&doc).verdict.code.to_string(), "network.link-below-capability");
}

#[test]
fn a_speed_that_was_set_by_hand_is_the_ports_own_doing() {
    let mut doc = document("win_realtek", "Ethernet", 10_000, 941, 941);
    let link = doc.measurements.link.measured_mut().unwrap().pc.measured_mut().unwrap();
    link.stack[0].modes.measured_mut().unwrap().advertised_bps = vec![BitRate::from_mbit(1_000)];
    link.stack[0].autoneg = Outcome::skipped("set by hand");
    let text = format!("{:?}", judge(&doc).findings);
    assert!(text.contains("The port itself offers at most 1"), "{text}");
}

#[test]
fn a_port_that_lacp_leaves_out_adds_nothing_to_the_line_and_is_named() {
    for (name, top, port) in [("mac_bond", "bond0", "en6"), ("win_lbfo", "Team1", "Ethernet 2")] {
        let doc = document(name, top, 10_000, 941, 941);
        let judged = judge(&doc);
        let broken = judged.findings.iter().find(|it| it.code.to_string() == "network.lag-broken");
        let text = format!("{:?}", broken.unwrap_or_else(|| panic!("{name}: {:?}", codes(&doc))));
        assert!(text.contains("Left out by LACP") && text.contains(port), "{name}: {text}");
        assert!(!text.contains("No LACP partner answers"), "{name}: one port has a partner, or nothing tells of it: {text}");
        assert!(!codes(&doc).contains(&"network.lag-uneven-hash".to_owned()), "{name}: {:?}", codes(&doc));
    }
}

#[test]
fn a_bond_in_good_order_of_another_system_is_no_fault() {
    let doc = document("freebsd_lagg", "vlan10", 10_000, 9_400, 9_400);
    let found = codes(&doc);
    assert!(!found.iter().any(|code| matches!(code.as_str(), "network.lag-broken" | "network.lag-static")), "{found:?}");
}

#[test]
fn a_reserve_without_a_link_costs_no_speed() {
    let doc = document("truenas_core", "lagg0", 1_000, 941, 941);
    let judged = judge(&doc);
    let broken = judged.findings.iter().find(|it| it.code.to_string() == "network.lag-broken").unwrap();
    assert!(format!("{broken:?}").contains("redundancy is lost"), "{broken:?}");
    assert_ne!(judged.verdict.code.to_string(), "network.lag-broken");
}

#[test]
fn a_card_in_a_narrow_slot_is_named_by_what_windows_tells_of_it() {
    let mut doc = document("win_x550_x2", "Ethernet 2", 10_000, 6_700, 6_700);
    doc.plan.scope = Scope::Link;
    let judged = judge(&doc);
    let text = format!("{:?}", judged.findings.iter().find(|it| it.code.to_string() == "network.nic-bus"));
    assert!(text.contains("PCIe 5.0 GT/s x2"), "{text}; {:?}", codes(&doc));
}

#[test]
fn wi_fi_and_a_switch_without_a_card_are_evidence_of_no_cable() {
    for (name, top) in [("win_wifi", "WLAN"), ("win_vswitch", "vEthernet (Default Switch)")] {
        let doc = document(name, top, 10_000, 600, 600);
        let found = codes(&doc);
        assert!(!found.iter().any(|code| code == "network.link-below-capability"), "{name}: {found:?}");
        assert!(judge(&doc).verdict.status != Status::Healthy || !found.is_empty(), "{name}");
    }
}
