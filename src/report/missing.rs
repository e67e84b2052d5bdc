//! Everything that was not measured, with its reason.
//!
//! The document is walked as a JSON value, so an outcome that is added to the model later cannot be forgotten here.

use std::collections::HashMap;

use serde_json::Value;

use super::alike;
use super::view::{Item, Tone, View};
use crate::model::Document;
use crate::model::flows::{FORETOLD_WITH_AGENT, NOT_AGGREGATED};
use crate::model::mtu::needless;
use crate::model::plan::Scope;
use crate::model::throughput::PACED;

/// The kinds of places that are named for one reason; the rest is counted.
pub(super) const MAX_PLACES: usize = 8;
/// The kinds of places that are told apart at all.
const MAX_GROUPS: usize = 64;

/// How the reason begins that stands where a report of an earlier version has nothing: it is no news in a list.
const EARLIER: &str = "the report is of an earlier version of weaklink";
/// How the reasons begin that belong to the question that was asked: one line says them, whatever they are about.
const NOT_ASKED: [(&str, &str); 4] = [
    ("`weaklink link` looks at the links only", "path MTU, throughput, CPU, disks, copies"),
    ("`weaklink throughput` looks at the network only", "CPU, disks, copies"),
    ("`weaklink mtu` looks at the path MTU only", "throughput, CPU, disks, copies"),
    ("`weaklink run` leaves this to `weaklink mtu`", ""),
];

/// How the reasons begin that only say that an option was not used, or what no port ever tells: no news in a list.
const NOT_USED: [&str; 18] = [
    "a port does not tell of a downshift itself",
    "no agent answered, so the hops",
    "there is a link",
    "not asked for",
    NOT_AGGREGATED,
    FORETOLD_WITH_AGENT,
    "this end sent nothing",
    "--together was asked for: each PC alone, then all at once",
    "nothing was asked for",
    "this direction by itself was not asked for",
    "both directions at once were not asked for",
    "`weaklink throughput`, or a run with --thorough, measures both directions at once",
    "--congestion names no second one to compare with",
    "congestion controls were compared, which needs one number of streams",
    PACED,
    "--streams ",
    "--udp was asked for",
    "this direction was not asked for",
];

/// How the reasons begin why there is nothing of another end, where nobody asked for one.
const NO_OTHER_END: [&str; 2] = ["no host was named", "no agent took part"];

/// The kinds of interfaces without a plug, and what only a port with one can tell: its absence is no news.
const NO_PLUG: [&str; 9] = ["virtual_machine", "veth", "bridge", "loopback", "bond", "team", "vlan", "macvlan", "tunnel"];
const PORT_ONLY: [&str; 2] = ["nic", "bus"];

/// A reason and the places where it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) failed: bool,
    pub(super) reason: String,
    pub(super) places: Vec<Vec<String>>,
}

/// The section; nothing when all was measured.
pub(super) fn section(document: &Document, view: &mut View) {
    let mut found = Collected::default();
    if let Ok(value) = serde_json::to_value(document) {
        for (part, name) in [("hosts", "host"), ("measurements", "")] {
            if let Some(value) = value.get(part) {
                found.walk(value, &mut vec![name.to_owned()]);
            }
        }
    }
    if document.plan.scope == Scope::LinkOfHost {
        // There is no other end, so this one is not the PC of anything.
        found.all.retain(|missing| !NO_OTHER_END.iter().any(|start| missing.reason.starts_with(start)));
        for part in found.all.iter_mut().flat_map(|missing| &mut missing.places).flatten().filter(|part| *part == "PC") {
            "this host".clone_into(part);
        }
    }
    alike::merge_drivers(&mut found.all);
    found.all.retain(|missing| !is_quiet(&missing.reason));
    alike::merge_ports(&mut found.all);
    if found.all.is_empty() {
        return;
    }
    view.section("Not measured");
    let (failed, skipped): (Vec<_>, Vec<_>) = found.all.iter().partition(|missing| missing.failed);
    let loaded = document.measurements.throughput.measured().is_some();
    view.items(failed.into_iter().chain(skipped).map(|missing| item(missing, loaded)).collect());
}

/// Whether a reason is no news: it was chosen, or could not be otherwise.
fn is_quiet(reason: &str) -> bool {
    reason.starts_with(EARLIER) || NOT_USED.iter().any(|start| reason.starts_with(start)) || needless::ALL.contains(&reason)
}

/// `loaded` where throughput is not among what was left out.
fn item(missing: &Missing, loaded: bool) -> Item {
    let (tone, mark) = if missing.failed { (Tone::Warning, "failed") } else { (Tone::Plain, "skipped") };
    let reason = missing.reason.trim();
    let head = if reason.is_empty() { "no reason was given".to_owned() } else { reason.to_owned() };
    let asked = !NOT_ASKED.iter().any(|(start, _)| reason.starts_with(start));
    let told = if asked {
        places(&missing.places)
    } else {
        // The parts of each are no news.
        let what = NOT_ASKED.iter().find(|(start, _)| reason.starts_with(start)).map_or("", |(_, what)| what);
        if loaded { what.replace("throughput, ", "") } else { what.to_owned() }
    };
    let lines = if told.is_empty() { Vec::new() } else { vec![(String::new(), told)] };
    Item { tone, mark: mark.to_owned(), head, lines, most: usize::MAX }
}

/// The places by name while they are few, else by what they have in common.
fn places(all: &[Vec<String>]) -> String {
    let name = |path: &[String]| path.join(" ");
    let mut groups: Vec<(&str, Vec<&[String]>)> = Vec::new();
    for path in all {
        let last = path.last().map_or("", String::as_str);
        if let Some((_, members)) = groups.iter_mut().find(|(known, _)| *known == last) {
            members.push(path);
        } else if groups.len() < MAX_GROUPS {
            groups.push((last, vec![path]));
        }
    }
    let mut told: Vec<String> = Vec::new();
    let mut counted = 0;
    for (last, members) in groups.iter().take(MAX_PLACES) {
        counted += members.len();
        if members.len() <= 2 {
            for place in members.iter().map(|path| name(path)) {
                if !told.contains(&place) {
                    told.push(place);
                }
            }
        } else {
            told.push(format!("{last}, {} times", members.len()));
        }
    }
    if all.len() > counted {
        told.push(format!("{} more", all.len() - counted));
    }
    told.join("; ")
}

/// Reasons in the order in which they were met, each once.
#[derive(Default)]
struct Collected {
    all: Vec<Missing>,
    index: HashMap<(bool, String), usize>,
}

impl Collected {
    fn walk(&mut self, value: &Value, path: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                let made_up = fields.get("kind").and_then(Value::as_str).is_some_and(|kind| NO_PLUG.contains(&kind));
                for (name, inner) in fields.iter().filter(|(name, _)| !(made_up && PORT_ONLY.contains(&name.as_str()))) {
                    let reason = inner.get("reason").and_then(Value::as_str);
                    match (name.as_str(), reason) {
                        ("skipped" | "failed", Some(reason)) if fields.len() == 1 => {
                            self.add(name == "failed", reason, path);
                        }
                        ("measured", _) if fields.len() == 1 => self.walk(inner, path),
                        _ => {
                            path.push(words(name));
                            self.walk(inner, path);
                            path.pop();
                        }
                    }
                }
            }
            Value::Array(items) => {
                for (position, inner) in items.iter().enumerate() {
                    if inner.is_object() {
                        path.push(item_name(inner, position));
                        self.walk(inner, path);
                        path.pop();
                    }
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, failed: bool, reason: &str, path: &[String]) {
        let key = (failed, reason.to_owned());
        let at = *self.index.entry(key).or_insert_with(|| {
            self.all.push(Missing { failed, reason: reason.to_owned(), places: Vec::new() });
            self.all.len() - 1
        });
        if let Some(missing) = self.all.get_mut(at) {
            missing.places.push(path.iter().filter(|part| !part.is_empty()).cloned().collect());
        }
    }
}

/// The words for a field's name; empty for those that only wrap.
fn words(field: &str) -> String {
    match field {
        "pc" => "PC".to_owned(),
        "nas" => "NAS".to_owned(),
        "cpu" => "CPU".to_owned(),
        "cpu_pc" => "CPU of the PC".to_owned(),
        "cpu_nas" => "CPU of the NAS".to_owned(),
        "counters_pc" => "counters of the PC".to_owned(),
        "counters_nas" => "counters of the NAS".to_owned(),
        "mtu" => "MTU".to_owned(),
        "single" => "1 stream".to_owned(),
        "multi" => "several streams".to_owned(),
        "idle_rtt" => "idle RTT".to_owned(),
        "loaded_rtt" => "loaded RTT".to_owned(),
        "unclamped" => "stream of large segments".to_owned(),
        "clamped" => "stream of segments that fit".to_owned(),
        "handshake" => "TCP's view".to_owned(),
        "sender" => "sender's kernel".to_owned(),
        "receiver" => "receiver's kernel".to_owned(),
        "sender_series" => "sender's kernel over time".to_owned(),
        "receiver_series" => "receiver's kernel over time".to_owned(),
        "sender_cost" => "cost of the sender's threads".to_owned(),
        "receiver_cost" => "cost of the receiver's threads".to_owned(),
        "limits" => "what held the sender back".to_owned(),
        "both" => "both at once".to_owned(),
        "udp" => "UDP".to_owned(),
        "network" => "network's interrupts".to_owned(),
        "cards" => "cards' interrupts".to_owned(),
        "gain" => "gain of large packets".to_owned(),
        "echo" => "ICMP echo".to_owned(),
        "neighbours" => "switch".to_owned(),
        "events" => "kernel's log".to_owned(),
        "stack" | "lanes" | "rungs" | "ciphers" | "result" => String::new(),
        other => other.trim_end_matches("_bps").trim_end_matches("_bytes").replace('_', " "),
    }
}

/// What a member of a list is called: its name, its kind, its way, or its place in the list.
fn item_name(item: &Value, position: usize) -> String {
    let text = |field: &str| item.get(field).and_then(Value::as_str).map(str::to_owned);
    // The large files are the ordinary ones.
    let small = if text("files").is_some_and(|files| files == "small") { ", small files" } else { "" };
    let way = || {
        text("from").zip(text("to")).map(|(from, to)| format!("{} {from} → {to}{small}", text("direction").unwrap_or_default()))
    };
    way()
        .or_else(|| text("name"))
        .or_else(|| text("cipher"))
        .or_else(|| item.get("port").and_then(Value::as_u64).map(|port| format!("port {port}")))
        .or_else(|| text("kind"))
        .unwrap_or_else(|| format!("{}", position + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn copies_of_large_and_of_small_files_are_told_apart() {
        let mut found = Collected::default();
        let rung = |files: &str| json!({"direction": "upload", "from": "memory", "to": "disk", "files": files, "result": {"failed": {"reason": "refused"}}});
        let twice = json!({"lanes": [{"kind": "ssh", "rungs": [rung("large"), rung("small")]}, {"kind": "ssh", "rungs": [rung("large")]}]});
        found.walk(&twice, &mut Vec::new());
        let told: Vec<_> = found.all.iter().map(|missing| places(&missing.places)).collect();
        assert_eq!(told, ["ssh upload memory → disk; ssh upload memory → disk, small files"]);
    }

    /// The reasons as a list has them, with their places.
    fn told(found: &Collected) -> Vec<(String, String)> {
        found.all.iter().map(|missing| (missing.reason.clone(), places(&missing.places))).collect()
    }

    #[test]
    fn drivers_that_are_silent_about_the_same_share_a_line() {
        let silent = |name: &str, about: &[&str]| {
            let fields = about.iter().map(|what| {
                let reason = format!("the driver of {name} does not tell its {what}");
                ((*what).to_owned(), json!({"skipped": {"reason": reason}}))
            });
            json!({"name": name, "nic": {"measured": serde_json::Value::Object(fields.collect())}})
        };
        let end = |ports: Vec<Value>| json!({"measured": {"stack": ports}});
        let links = json!({"link": {"measured": {
            "nas": end(vec![silent("eth0", &["rings", "speed"])]),
            "pc": end(vec![silent("eth0", &["rings", "speed"]), silent("eth1", &["rings", "speed"]), silent("eth2", &["rings"])]),
        }}});
        let mut found = Collected::default();
        found.walk(&json!({"before": {"skipped": {"reason": "no time was left"}}}), &mut Vec::new());
        found.walk(&links, &mut Vec::new());
        found.walk(&json!({"odd": {"failed": {"reason": "the driver of eth0 does not tell its mind"}}}), &mut Vec::new());
        alike::merge_drivers(&mut found.all);
        alike::merge_ports(&mut found.all);
        let line = |reason: &str, places: &str| (reason.to_owned(), places.to_owned());
        assert_eq!(
            told(&found),
            [
                line("no time was left", "before"),
                line("the drivers of eth0, eth1 do not tell their rings, speed", "link NAS eth0; link PC eth0; link PC eth1"),
                line("the driver of eth2 does not tell its rings", "link PC eth2"),
                line("the driver of eth0 does not tell its mind", "odd"),
            ]
        );
    }

    #[test]
    fn what_was_left_out_by_request_is_no_news() {
        for reason in [
            PACED,
            "--streams 4 was asked for",
            "--streams 1 was asked for",
            "--udp was asked for: datagrams in place of TCP",
            "this direction was not asked for",
            "this direction by itself was not asked for",
            "both directions at once were not asked for",
            NOT_AGGREGATED,
        ] {
            assert!(is_quiet(reason), "{reason}");
        }
        for reason in ["the iperf3 server is busy", "an iperf3 server does not tell; `weaklink serve` on the NAS would", ""] {
            assert!(!is_quiet(reason), "{reason}");
        }
    }

    #[test]
    fn equal_reasons_are_told_once_with_all_their_places() {
        let mut found = Collected::default();
        found.walk(
            // In alphabetical order, which holds whether or not the JSON library keeps the order.
            &json!({
                "link": {"measured": {"nas": {"skipped": {"reason": "virtual"}},
                                      "pc": {"measured": {"stack": [{"name": "eth0", "speed_bps": {"skipped": {"reason": "virtual"}}}]}}}},
                "mtu": {"failed": {"reason": "refused"}},
            }),
            &mut Vec::new(),
        );
        let mut told: Vec<_> = found.all.iter().map(|m| (m.reason.as_str(), places(&m.places))).collect();
        told.sort_unstable();
        assert_eq!(told, [("refused", "MTU".to_owned()), ("virtual", "link NAS; link PC eth0 speed".to_owned())]);
    }
}
