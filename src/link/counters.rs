//! Counters of interfaces: the kernel's own and the driver's.

use std::collections::BTreeMap;

use super::facts::LinkRow;
use super::tree::{Tree, is_interface_name};
use super::{elsewhere, ethtool, route};
use crate::model::link::{Counters, CountersByInterface, HostLink};
use crate::model::outcome::Outcome;
use crate::sys;

/// Drivers with many queues have thousands of counters; the first ones are the sums and the errors.
const MOST: usize = 1024;

/// The columns of `/proc/net/dev`, named as the files of `/sys/class/net/NAME/statistics`.
const PROC_COLUMNS: [&str; 16] = [
    "rx_bytes",
    "rx_packets",
    "rx_errors",
    "rx_dropped",
    "rx_fifo_errors",
    "rx_frame_errors",
    "rx_compressed",
    "multicast",
    "tx_bytes",
    "tx_packets",
    "tx_errors",
    "tx_dropped",
    "tx_fifo_errors",
    "collisions",
    "tx_carrier_errors",
    "tx_compressed",
];

/// The names of a link's interfaces, the one of the route first.
pub fn host_interface_names(link: &HostLink) -> Vec<String> {
    link.stack.iter().map(|interface| interface.name.clone()).collect()
}

/// A snapshot of the counters of `names`; an interface without any is left out.
///
/// A matter of 1 to 3 ms, and longer only while someone reconfigures the network (the kernel's lock).
pub fn counters(names: &[String], tree: &Tree) -> Outcome<CountersByInterface> {
    if elsewhere::used(tree) {
        return elsewhere::counters(names);
    }
    let rows = if tree.is_live() { route::rows() } else { Vec::new() };
    let all: CountersByInterface = names
        .iter()
        .filter_map(|name| {
            let row = rows.iter().find(|row| row.name == *name);
            Some((name.clone(), of_interface(name, &tree.seen_from(row), row).measured()?.clone()))
        })
        .collect();
    if all.is_empty() {
        return Outcome::skipped(
            "this system shows no counters of network interfaces (neither /sys/class/net nor /proc/net/dev)",
        );
    }
    Outcome::Measured(all)
}

/// The counters of one interface: the kernel's, from its list or from files, and of hardware on the running
/// machine the driver's own under their own names. Where both have a name, the kernel's counts.
pub(super) fn of_interface(name: &str, tree: &Tree, row: Option<&LinkRow>) -> Outcome<Counters> {
    if !is_interface_name(name) {
        return Outcome::failed("not a name of an interface");
    }
    let listed = row.map_or(&[][..], |row| &row.counters);
    let mut all: BTreeMap<String, u64> = listed.iter().map(|(counter, value)| ((*counter).to_owned(), *value)).collect();
    if all.is_empty() {
        all = from_sysfs(name, tree);
    }
    if all.is_empty() {
        all = parse_proc(&tree.read("/proc/net/dev").unwrap_or_default(), name);
    }
    // How often the link came and went is counted by the kernel too, but told elsewhere.
    if let Some(changes) = row.and_then(|row| row.carrier_changes).map(u64::from).or_else(|| carrier_changes(name, tree)) {
        all.entry("carrier_changes".to_owned()).or_insert(changes);
    }
    // Interfaces made by software have a kind; their own statistics say nothing about a cable and cost time.
    let hardware = row.is_none_or(|row| row.kind.as_deref().is_none_or(|kind| kind == "dsa"));
    if tree.is_live() && hardware {
        for (counter, value) in of_driver(&sys::net::ethtool_statistics(name).unwrap_or_default()) {
            if all.len() == MOST {
                break;
            }
            all.entry(counter).or_insert(value);
        }
    }
    if all.is_empty() {
        return Outcome::skipped(format!(
            "no counters: this system shows neither /sys/class/net/{name}/statistics nor a line of {name} in /proc/net/dev"
        ));
    }
    Outcome::Measured(Counters(all))
}

/// The driver's statistics by name, in its order; some give one name to the counters of every queue (vmxnet3), and these are one.
fn of_driver(fields: &[([u8; 32], u64)]) -> Vec<(String, u64)> {
    let mut all: Vec<(String, u64)> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (field, value) in fields {
        let Some(name) = ethtool::name(field) else { continue };
        let at = *places.entry(name.clone()).or_insert(all.len());
        match all.get_mut(at) {
            Some((_, sum)) => *sum = sum.saturating_add(*value),
            None => all.push((name, *value)),
        }
    }
    all
}

fn carrier_changes(name: &str, tree: &Tree) -> Option<u64> {
    tree.read(&format!("/sys/class/net/{name}/carrier_changes")).ok()?.parse().ok()
}

fn from_sysfs(name: &str, tree: &Tree) -> BTreeMap<String, u64> {
    let dir = format!("/sys/class/net/{name}/statistics");
    let files = tree.names(&dir).into_iter().take(MOST);
    files.filter_map(|file| Some((file.clone(), tree.read(&format!("{dir}/{file}")).ok()?.parse().ok()?))).collect()
}

/// The counters of `name` in the text of `/proc/net/dev`; empty when it is not there.
///
/// The header names the columns: kernels and what stands in for them in containers do not all have the same ones.
fn parse_proc(text: &str, name: &str) -> BTreeMap<String, u64> {
    let columns = text.lines().find_map(columns).unwrap_or_else(|| PROC_COLUMNS.map(Some).to_vec());
    // A number may stand right behind the colon, and an alias (`eth0:1:`) is no line of `eth0`.
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = |line: &'_ str| -> Option<Vec<u64>> {
        let rest = line.trim_start().strip_prefix(name)?.strip_prefix(':')?;
        rest.split_whitespace().map(|word| is_number(word).then(|| word.parse().ok())?).collect()
    };
    let numbers = text.lines().find_map(numbers).unwrap_or_default();
    let named = columns.into_iter().zip(numbers).filter_map(|(column, number)| Some((column?.to_owned(), number)));
    named.collect()
}

/// The columns that a header names, such as `face |bytes packets errs drop|bytes packets errs drop colls`; a column that is not known
/// is none. None when the line is no whole header.
fn columns(line: &str) -> Option<Vec<Option<&'static str>>> {
    const RX: [(&str, &str); 8] = [
        ("bytes", "rx_bytes"),
        ("packets", "rx_packets"),
        ("errs", "rx_errors"),
        ("drop", "rx_dropped"),
        ("fifo", "rx_fifo_errors"),
        ("frame", "rx_frame_errors"),
        ("compressed", "rx_compressed"),
        ("multicast", "multicast"),
    ];
    const TX: [(&str, &str); 8] = [
        ("bytes", "tx_bytes"),
        ("packets", "tx_packets"),
        ("errs", "tx_errors"),
        ("drop", "tx_dropped"),
        ("fifo", "tx_fifo_errors"),
        ("colls", "collisions"),
        ("carrier", "tx_carrier_errors"),
        ("compressed", "tx_compressed"),
    ];
    let mut parts = line.split('|');
    let (face, rx, tx) = (parts.next()?, parts.next()?, parts.next()?);
    if face.trim() != "face" {
        return None;
    }
    let named = |words: &str, known: &[(&str, &'static str)]| -> Vec<Option<&'static str>> {
        words.split_whitespace().map(|word| known.iter().find(|(short, _)| *short == word).map(|(_, name)| *name)).collect()
    };
    let all = [named(rx, &RX), named(tx, &TX)].concat();
    all.iter().any(Option::is_some).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_proc_lines_are_read_with_and_without_a_space() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes    packets\n\
                    eth0:12 2 0 4960 0 0 0 1 34 5 6 7 8 9 10 11\n   lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n eth01: 9 9\n";
        let eth0 = parse_proc(text, "eth0");
        assert_eq!((eth0["rx_bytes"], eth0["rx_dropped"], eth0["tx_bytes"], eth0["collisions"]), (12, 4960, 34, 9));
        assert_eq!(parse_proc(text, "lo")["rx_packets"], 1);
        assert!(parse_proc(text, "eth").is_empty());
    }

    #[test]
    fn the_header_names_the_columns() {
        let whole = " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n\
                     eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";
        let read = parse_proc(whole, "eth0");
        assert_eq!(read.len(), 16);
        assert_eq!((read["multicast"], read["tx_bytes"], read["tx_carrier_errors"]), (8, 9, 15));
        // Without the columns of a kernel that has none of them, in another order, and with one that nobody knows.
        let short =
            " face |packets errs drop fifo frame|packets errs drop fifo colls carrier\n  eth0:    1 2 3 4 5 6 7 8 9 10 11\n";
        let read = parse_proc(short, "eth0");
        assert_eq!((read["rx_packets"], read["rx_dropped"], read["tx_packets"], read["collisions"]), (1, 3, 6, 10));
        assert!(!read.contains_key("rx_bytes"));
        let other = " face |packets bytes what drop|bytes packets\n eth0: 1 2 3 4 5 6\n";
        let read = parse_proc(other, "eth0");
        assert_eq!((read["rx_bytes"], read["rx_dropped"], read["tx_bytes"], read.len()), (2, 4, 5, 5));
    }

    #[test]
    fn an_alias_and_a_broken_line_shift_nothing() {
        let text = "eth0:1: 7 7 7 7\neth0: 1 2 x 4\neth0: 5 6 7 8\n";
        assert_eq!(parse_proc(text, "eth0")["rx_bytes"], 5);
        assert!(parse_proc("eth0: 99999999999999999999 1\n", "eth0").is_empty());
    }

    #[test]
    fn counters_of_queues_under_one_name_are_one() {
        let field = |name: &str| {
            let mut field = [0; 32];
            field[..name.len()].copy_from_slice(name.as_bytes());
            field
        };
        let fields = [(field("Tx Queue#"), 0), (field("  pkts rx OOB"), 3), (field("Tx Queue#"), 1), (field("  pkts rx OOB"), 4)];
        assert_eq!(of_driver(&fields), [("Tx Queue#".to_owned(), 1), ("pkts rx OOB".to_owned(), 7)]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_survived(text in "( face \\|bytes errs\\|bytes|eth0|:| |[0-9]{0,22}|\n|\\||[ -~]){0,60}") {
            proptest::prop_assert!(parse_proc(&text, "eth0").len() <= 16);
        }
    }
}
