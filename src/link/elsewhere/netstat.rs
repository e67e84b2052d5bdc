//! Decodes the counters of one interface in what `netstat -n -b -d -I NAME` prints (macOS and the BSDs).

use std::collections::BTreeMap;

/// The most lines that are looked at: one for each address of the interface.
const LINES: usize = 256;

/// The columns by the names that Linux has for the same counters.
const COLUMNS: [(&str, &str); 9] = [
    ("Ipkts", "rx_packets"),
    ("Ierrs", "rx_errors"),
    ("Idrop", "rx_dropped"),
    ("Ibytes", "rx_bytes"),
    ("Opkts", "tx_packets"),
    ("Oerrs", "tx_errors"),
    ("Obytes", "tx_bytes"),
    ("Coll", "collisions"),
    ("Drop", "tx_dropped"),
];

/// The counters of `name`; empty where there is no line of its link.
///
/// The header names the columns. The address may be missing in a line, so columns are counted from the right.
pub(super) fn decode(text: &str, name: &str) -> BTreeMap<String, u64> {
    let mut lines = text.lines().take(LINES);
    let header = lines.find(|line| line.trim_start().starts_with("Name"));
    let columns: Vec<&str> =
        header.unwrap_or_default().split_whitespace().skip_while(|word| *word != "Address").skip(1).collect();
    // An interface that is down has a star behind its name.
    let of_link = |line: &&str| {
        let mut words = line.split_whitespace();
        let own = words.next().is_some_and(|word| word.trim_end_matches('*') == name);
        own && words.nth(1).is_some_and(|network| network.starts_with("<Link"))
    };
    let Some(line) = lines.find(of_link) else { return BTreeMap::new() };
    let values: Vec<&str> = line.split_whitespace().collect();
    let pairs = columns.iter().rev().zip(values.iter().rev());
    let known = |column: &str| COLUMNS.iter().find(|(theirs, _)| *theirs == column).map(|(_, ours)| (*ours).to_owned());
    pairs.filter_map(|(column, value)| Some((known(column)?, value.parse().ok()?))).collect()
}
