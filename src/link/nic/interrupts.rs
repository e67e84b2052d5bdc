//! Which lines of `/proc/interrupts` belong to a port, and on which cores they ran.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::nic::QueueInterrupts;

/// More lines than this are not kept: the largest cards have one for each of a few hundred cores.
const LINES: usize = 512;

/// How a port can be found among the lines.
pub(super) struct Owner<'a> {
    /// The interface's name.
    pub name: &'a str,
    /// The name of its device on its bus: `0000:03:00.0`, `virtio2`, `30be0000.ethernet`.
    pub device: Option<&'a str>,
    /// The numbers of its device's interrupts.
    pub numbers: BTreeSet<u32>,
}

/// One line with a number.
struct Line<'a> {
    number: u32,
    counts: BTreeMap<u32, u64>,
    /// Chip, trigger, and the names of those who wait for it.
    words: Vec<&'a str>,
}

/// The cores that the heading names: those that are off have no column.
fn cores(heading: &str) -> Vec<u32> {
    heading.split_whitespace().filter_map(|word| word.strip_prefix("CPU")?.parse().ok()).collect()
}

fn line<'a>(cores: &[u32], text: &'a str) -> Option<Line<'a>> {
    let (number, rest) = text.split_once(':')?;
    let mut words = rest.split_whitespace();
    let mut counts = BTreeMap::new();
    for core in cores {
        let count: u64 = words.next()?.parse().ok()?;
        if count > 0 {
            counts.insert(*core, count);
        }
    }
    Some(Line { number: number.trim().parse().ok()?, counts, words: words.collect() })
}

/// Whether `word` stands in `text` with no letter or digit right before or behind it: `eth0` in `i40e-eth0-TxRx-0`.
fn has_word(text: &str, word: &str) -> bool {
    let borders = |at: usize| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|text| text.chars().next());
        [before, after].into_iter().flatten().all(|c| !c.is_alphanumeric())
    };
    !word.is_empty() && text.match_indices(word).any(|(at, _)| borders(at))
}

impl Line<'_> {
    fn named(&self, name: &str) -> QueueInterrupts {
        QueueInterrupts { name: name.trim_end_matches(',').to_owned(), by_core: self.counts.clone() }
    }

    /// As the last of those who wait for it is named.
    fn last(&self) -> Option<QueueInterrupts> {
        self.words.last().map(|word| self.named(word))
    }
}

/// The lines of a port: those with its name; else those with its device's; else those with its device's numbers.
pub(super) fn of_port(text: &str, owner: &Owner<'_>) -> Vec<QueueInterrupts> {
    let mut lines = text.lines();
    let cores = cores(lines.next().unwrap_or_default());
    let lines: Vec<Line<'_>> = lines.filter_map(|text| line(&cores, text)).collect();
    let by_name: Vec<_> = lines
        .iter()
        .filter_map(|line| line.words.iter().find(|word| has_word(word, owner.name)).map(|word| line.named(word)))
        .take(LINES)
        .collect();
    if !by_name.is_empty() {
        return by_name;
    }
    let device = |line: &&Line<'_>| owner.device.is_some_and(|device| line.words.iter().any(|word| has_word(word, device)));
    let by_device: Vec<_> = lines.iter().filter(device).filter_map(Line::last).take(LINES).collect();
    if !by_device.is_empty() {
        return by_device;
    }
    lines.iter().filter(|line| owner.numbers.contains(&line.number)).filter_map(Line::last).take(LINES).collect()
}
