//! Which cores take the network's interrupts: the kernel's tables of counts as numbers. Pure; any bytes are survived.
//!
//! Both files have one column for each core, named in the first line (`proc(5)`; the kernel's `fs/proc/softirqs.c` and
//! `kernel/irq/proc.c`). Soft interrupts count for the whole host, whoever's packets they were.

use std::collections::BTreeMap;

use super::decode::{lines, number, words};
use crate::model::Outcome;
use crate::model::cpu::{CardInterrupts, CoreCount, NetworkInterrupts};

/// No more cores than this are kept, as in [`super::decode`].
const MAX_CORES: usize = 8192;

/// No more cards than this are told apart: more ports are in no NAS.
const MAX_CARDS: usize = 64;

/// Counts by the kernel's number of the core.
pub type Counts = BTreeMap<u32, u64>;

/// A network card as the kernel's files name it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Card {
    /// The interface.
    pub name: String,
    /// The device behind it, such as `virtio0` or `f1070000.ethernet`, if it has a name of its own.
    pub device: Option<String>,
    /// The numbers of its interrupts, where the bus lists them.
    pub numbers: Vec<u32>,
}

/// One reading.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Reading {
    /// Soft interrupts for arriving packets.
    pub receive: Counts,
    /// Interrupts of each card, by its interface.
    pub cards: BTreeMap<String, Counts>,
}

/// The numbers of the cores in the first line, `CPU0 CPU1 …`.
fn header(text: &[u8]) -> Vec<u32> {
    let first = lines(text).next().unwrap_or_default();
    let core = |word: &[u8]| u32::try_from(number(word.strip_prefix(b"CPU")?)?).ok();
    words(first).map_while(core).take(MAX_CORES).collect()
}

/// A line's label, its counts under the header's cores, and the words behind them.
fn row<'a>(line: &'a [u8], cores: &[u32]) -> Option<(&'a [u8], Counts, Vec<&'a [u8]>)> {
    let mut words = words(line);
    let label = words.next()?.strip_suffix(b":")?;
    let mut rest = words.peekable();
    let mut counts = Counts::new();
    for core in cores {
        // A line of one column only (`ERR: 0`) belongs to no core.
        let Some(count) = rest.peek().and_then(|word| number(word)) else { break };
        counts.insert(*core, count);
        rest.next();
    }
    Some((label, counts, rest.collect()))
}

/// The soft interrupts for arriving packets (`NET_RX`) of each core, from `/proc/softirqs`.
pub fn receive(text: &[u8]) -> Option<Counts> {
    let cores = header(text);
    let found = lines(text).filter_map(|line| row(line, &cores)).find(|(label, _, _)| *label == b"NET_RX");
    found.map(|(_, counts, _)| counts).filter(|counts| !counts.is_empty())
}

/// Whether a word names this device: it is the name, or the name and a part of it (`eth0-TxRx-0`, `virtio0-input.0`).
fn names(word: &[u8], device: &str) -> bool {
    let rest = word.strip_prefix(device.as_bytes()).filter(|_| !device.is_empty());
    rest.is_some_and(|rest| rest.first().is_none_or(|next| !next.is_ascii_alphanumeric()))
}

/// Each card's interrupts on each core, from `/proc/interrupts`; cards without a line of their own are left out.
pub fn cards(text: &[u8], cards: &[Card]) -> BTreeMap<String, Counts> {
    let cores = header(text);
    let mut found: BTreeMap<String, Counts> = BTreeMap::new();
    for (label, counts, rest) in lines(text).filter_map(|line| row(line, &cores)) {
        let Some(line) = number(label) else { continue };
        let named = |card: &&Card| {
            let listed = card.numbers.iter().any(|own| u64::from(*own) == line);
            let word = |word: &&[u8]| names(word, &card.name) || card.device.as_ref().is_some_and(|device| names(word, device));
            listed || rest.iter().any(word)
        };
        for card in cards.iter().take(MAX_CARDS).filter(named) {
            let sum = found.entry(card.name.clone()).or_default();
            for (core, count) in &counts {
                let all = sum.entry(*core).or_default();
                *all = all.saturating_add(*count);
            }
        }
    }
    found
}

/// What was added between two readings; cores that took none are left out.
fn grown(before: &Counts, after: &Counts) -> Vec<CoreCount> {
    let since = |core: &u32, count: &u64| count.saturating_sub(before.get(core).copied().unwrap_or(*count));
    let counts = after.iter().map(|(core, count)| CoreCount { core: *core, count: since(core, count) });
    counts.filter(|count| count.count > 0).collect()
}

/// What happened between two readings.
pub fn between(before: &Reading, after: &Reading) -> NetworkInterrupts {
    let card = |(name, counts): (&String, &Counts)| {
        let cores = grown(before.cards.get(name)?, counts);
        (!cores.is_empty()).then(|| CardInterrupts { interface: name.clone(), cores })
    };
    let cards: Vec<CardInterrupts> = after.cards.iter().filter_map(card).collect();
    let cards = if after.cards.is_empty() {
        Outcome::skipped(
            "/proc/interrupts has no line that is named for a network card (cards on USB and in containers have none), so which core takes a card's interrupts is not known",
        )
    } else {
        Outcome::Measured(cards)
    };
    NetworkInterrupts { receive: grown(&before.receive, &after.receive), cards }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const INTERRUPTS: &[u8] = b"           CPU0       CPU1       CPU3
  9:          0          4          0   IO-APIC   9-fasteoi   acpi
 24:         10          0          0  IR-PCI-MSI 524288-edge      eth0
 25:          5         70          0  IR-PCI-MSI 524289-edge      eth0-TxRx-0
 26:          0          7          0  IR-PCI-MSI 524290-edge      eth01
 27:          1          2          3  PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0
 30:        100          0          0  GICv3  81 Level     ehci_hcd:usb1, lan1
 31:          0          0          9  GICv3  82 Level     f1070000.ethernet
NMI:          0          0          0   Non-maskable interrupts
ERR:          0
";

    fn card(name: &str, device: Option<&str>, numbers: &[u32]) -> Card {
        Card { name: name.into(), device: device.map(Into::into), numbers: numbers.to_vec() }
    }

    #[test]
    fn lines_belong_to_a_card_by_name_device_or_number() {
        for (sentence, given, expected) in [
            ("its name, and queues behind it", card("eth0", None, &[]), vec![(0, 15), (1, 70), (3, 0)]),
            ("the device of a virtual machine", card("ens3", Some("virtio2"), &[]), vec![(0, 1), (1, 2), (3, 3)]),
            ("a device of the board", card("eth5", Some("f1070000.ethernet"), &[]), vec![(0, 0), (1, 0), (3, 9)]),
            ("one of several names in a line", card("lan1", None, &[]), vec![(0, 100), (1, 0), (3, 0)]),
            ("a number that the bus lists", card("enp1s0", Some("0000:01:00.0"), &[26]), vec![(0, 0), (1, 7), (3, 0)]),
        ] {
            let found = cards(INTERRUPTS, std::slice::from_ref(&given));
            assert_eq!(found.get(&given.name), Some(&expected.into_iter().collect()), "{sentence}");
        }
        assert!(cards(INTERRUPTS, &[card("wlan0", None, &[]), card("", None, &[])]).is_empty());
    }

    #[test]
    fn soft_interrupts_of_arriving_packets_are_found() {
        let text = b"                    CPU0       CPU1\n      NET_TX:       9   8\n      NET_RX:   62135806   56888320\n";
        assert_eq!(receive(text), Some([(0, 62_135_806), (1, 56_888_320)].into()));
        assert_eq!(receive(b"CPU0\nTIMER: 5\n"), None);
        assert_eq!(receive(b""), None);
    }

    #[test]
    fn all_interrupts_on_one_core_are_seen() {
        let cards = |counts: &[(u32, u64)]| BTreeMap::from([("eth0".to_owned(), counts.iter().copied().collect())]);
        let before = Reading { receive: [(0, 100), (1, 100)].into(), cards: cards(&[(0, 5), (1, 900)]) };
        let after = Reading { receive: [(0, 110), (1, 190), (2, 5)].into(), cards: cards(&[(0, 5), (1, 5_900)]) };
        let found = between(&before, &after);
        assert_eq!(found.receive, [CoreCount { core: 0, count: 10 }, CoreCount { core: 1, count: 90 }]);
        let eth0 = CardInterrupts { interface: "eth0".into(), cores: vec![CoreCount { core: 1, count: 5_000 }] };
        assert_eq!(found.cards, Outcome::Measured(vec![eth0]));
        let nothing = between(&Reading::default(), &Reading::default());
        assert!(nothing.receive.is_empty() && nothing.cards.why().is_some());
    }

    proptest! {
        #[test]
        fn random_bytes_do_no_harm(text in proptest::collection::vec(any::<u8>(), 0..400)) {
            receive(&text);
            cards(&text, &[card("eth0", Some("e"), &[1])]);
        }

        #[test]
        fn almost_right_tables_do_no_harm(text in "(CPU[0-9]{0,12}|NET_RX:|[0-9]{0,22}:?|eth0|,|-| |\n){0,60}") {
            receive(text.as_bytes());
            cards(text.as_bytes(), &[card("eth0", Some("e"), &[1])]);
        }
    }
}
