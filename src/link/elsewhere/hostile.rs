//! Decoders that meet anything.

use proptest::prelude::*;

use super::adapters::Adapters;
use super::recorded::from_programs;
use super::{ifconfig, netstat, pciconf, route};

#[test]
fn what_is_too_long_or_too_much_is_cut() {
    let members = (0..500).map(|n| format!("\tlaggport: em{n} flags=1c<ACTIVE>\n")).collect::<Vec<_>>().concat();
    let text = format!("lagg0: flags=8843<UP> mtu 1500\n\tlaggproto {}\n{members}", "x".repeat(100_000));
    let told = ifconfig::decode(&text);
    let bond = told.bond.unwrap();
    assert!(bond.ports.len() <= 64 && bond.mode.len() <= 64, "{} {}", bond.ports.len(), bond.mode.len());
    let media = (1..2000).map(|n| format!("\t\tmedia {n}baseT\n")).collect::<Vec<_>>().concat();
    let told = ifconfig::decode(&format!("em0: flags=8843<UP>\n\tsupported media:\n{media}"));
    assert!(told.supported.len() <= 64 && told.supported.is_sorted());
    let adapters: Vec<String> = (0..3000).map(|n| format!("{{\"Name\":\"{}{n}\"}}", "n".repeat(1000))).collect();
    let told = Adapters::read(&format!("adapters [{}]", adapters.join(",")));
    assert!(told.all.len() <= 256 && told.all.iter().all(|it| it.name.chars().count() <= 255));
}

proptest! {
    #[test]
    fn no_text_of_ifconfig_makes_it_panic(
        text in "(en0: flags=|<UP,>|\tmedia: |\\(|\\)|10Gbase-T|<full-duplex>|\n|laggport: |laggproto lacp|lag id: |\\[\\(8000,|02-00|bond interfaces: |bond interface: |state: 0x|partner system: |\\(selected\\)|supported media:|media |vlan: |parent interface: |member: |é|[ -~]){0,60}"
    ) {
        let told = ifconfig::decode(&text);
        prop_assert!(told.below().len() <= 3 * 64 + 1);
        for name in told.below() {
            prop_assert!(ifconfig::is_name(&name));
        }
    }

    #[test]
    fn no_text_of_small_programs_makes_them_panic(
        text in "(Name|Address|Ipkts|en0|<Link#1>| |-|[0-9]{1,25}|\n|igb0@pci0:0:0:0:|link x|\\(|\\)| speed |ASPM |interface:|gateway:|flags: <GATEWAY>|é|[ -~]){0,60}"
    ) {
        let _ = (netstat::decode(&text, "en0"), route::decode(&text));
        if let Some(bus) = pciconf::decode(&text) {
            prop_assert!(bus.rate_bps.is_some());
        }
    }

    #[test]
    fn no_answers_of_powershell_make_it_panic(
        text in "(adapters |properties |hardware |teams |members |statistics |bindings |switch-teams |route |\\[|\\]|\\{|\\}|\"Name\":|\"Members\":|\"value\":|\"Count\":|\"a\"|,|:|null|1e999|18446744073709551615|-1|\n|é|[ -~]){0,60}"
    ) {
        let _ = Adapters::read(&text);
        let _ = from_programs(&[("powershell".to_owned(), text)], "a");
    }

    #[test]
    fn no_bytes_of_any_program_make_a_host_panic(bytes in proptest::collection::vec(any::<u8>(), 0..512), at in 0_usize..8) {
        // As a program's output becomes text; also behind lines that open each part.
        let heads = ["", "en0: flags=8843<UP> mtu ", "en0: flags=8843<UP>\n\tmedia: autoselect (", "en0: flags=1<UP>\n\tlaggproto lacp lagghash ",
            "en0: flags=1<UP>\n\tbond interfaces: en1\n\tbond interface: ", "Name Mtu Network Address Ipkts\nen0 1500 <Link#1> ",
            "em0@pci0:0:0:0:\n link x", "adapters [{\"Name\":\"en0\",\"LinkSpeed\":\""];
        let text = format!("{}{}", heads[at], String::from_utf8_lossy(&bytes));
        let questions = ["ifconfig en0", "ifconfig -b en0", "ifconfig en1", "netstat en0", "pciconf en0"];
        let told = |question: &str| (question.to_owned(), text.clone());
        for outputs in [questions.map(told).to_vec(), vec![told("powershell")]] {
            let stack = from_programs(&outputs, "en0");
            prop_assert!(!stack.is_empty() && stack.len() <= 32);
        }
        let _ = route::decode(&text);
    }
}
