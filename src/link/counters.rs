//! Counters of interfaces: the kernel's own and the driver's.

use std::collections::BTreeMap;

use super::facts::LinkRow;
use super::tree::{Tree, is_interface_name};
use super::{ethtool, route};
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
    // Interfaces made by software have a kind; their own statistics say nothing about a cable and cost time.
    let hardware = row.is_none_or(|row| row.kind.as_deref().is_none_or(|kind| kind == "dsa"));
    if tree.is_live() && hardware {
        for (field, value) in sys::net::ethtool_statistics(name).unwrap_or_default() {
            if all.len() == MOST {
                break;
            }
            if let Some(counter) = ethtool::name(&field) {
                all.entry(counter).or_insert(value);
            }
        }
    }
    if all.is_empty() {
        return Outcome::skipped(format!(
            "no counters: this system shows neither /sys/class/net/{name}/statistics nor a line of {name} in /proc/net/dev"
        ));
    }
    Outcome::Measured(Counters(all))
}

fn from_sysfs(name: &str, tree: &Tree) -> BTreeMap<String, u64> {
    let dir = format!("/sys/class/net/{name}/statistics");
    let files = tree.names(&dir).into_iter().take(MOST);
    files.filter_map(|file| Some((file.clone(), tree.read(&format!("{dir}/{file}")).ok()?.parse().ok()?))).collect()
}

/// The counters of `name` in the text of `/proc/net/dev`; empty when it is not there.
fn parse_proc(text: &str, name: &str) -> BTreeMap<String, u64> {
    let numbers = text.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'));
    let numbers = numbers.unwrap_or_default().split_whitespace();
    PROC_COLUMNS.iter().zip(numbers).filter_map(|(column, number)| Some(((*column).to_owned(), number.parse().ok()?))).collect()
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
}
