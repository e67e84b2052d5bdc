//! Reasons that say the same of several drivers or ports become one.

use std::collections::HashMap;

use super::missing::{MAX_PLACES, Missing};

/// How the reason of a driver that is silent about something is made: whose driver, and about what.
const SILENT: (&str, &str) = ("the driver of ", " does not tell its ");

/// Drivers that are silent about the same.
struct Silent {
    names: Vec<String>,
    ports: Vec<Vec<String>>,
    about: Vec<String>,
}

impl Silent {
    fn told(self) -> Missing {
        let about = self.about.join(", ");
        let reason = match self.names.as_slice() {
            [one] => format!("{}{one}{}{about}", SILENT.0, SILENT.1),
            many => {
                let more = many.len().saturating_sub(MAX_PLACES);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let named = many.iter().take(MAX_PLACES).cloned().collect::<Vec<_>>().join(", ");
                format!("the drivers of {named}{more} do not tell their {about}")
            }
        };
        Missing { failed: false, reason, places: self.ports }
    }
}

/// What one driver is silent about becomes one line, and drivers that are silent about the same share it.
pub(super) fn merge_drivers(all: &mut Vec<Missing>) {
    let mut silent: Vec<Silent> = Vec::new();
    let mut at = None;
    for missing in std::mem::take(all) {
        let told = missing.reason.strip_prefix(SILENT.0).and_then(|rest| rest.split_once(SILENT.1));
        let Some((name, what)) = told.filter(|_| !missing.failed) else {
            all.push(missing);
            continue;
        };
        at.get_or_insert(all.len());
        let (name, what) = (name.to_owned(), what.to_owned());
        let ports = missing.places.iter().map(|place| {
            let end = place.iter().position(|part| *part == name).map_or(place.len(), |at| at + 1);
            place.iter().take(end).cloned().collect::<Vec<_>>()
        });
        for port in ports {
            match silent.iter_mut().find(|known| known.ports == [port.clone()]) {
                Some(known) => known.about.push(what.clone()),
                None => silent.push(Silent { names: vec![name.clone()], ports: vec![port], about: vec![what.clone()] }),
            }
        }
    }
    let mut merged: Vec<Silent> = Vec::new();
    for mut one in silent {
        match merged.iter_mut().find(|known| known.about == one.about) {
            Some(known) => {
                known.ports.append(&mut one.ports);
                known.names.extend(one.names.into_iter().filter(|name| !known.names.contains(name)).collect::<Vec<_>>());
            }
            None => merged.push(one),
        }
    }
    let at = at.unwrap_or_default();
    all.splice(at..at, merged.into_iter().map(Silent::told));
}

/// What is said of several ports, each by its name, becomes one line about all of them.
pub(super) fn merge_ports(all: &mut Vec<Missing>) {
    let mut said: HashMap<(bool, String), Vec<usize>> = HashMap::new();
    for (at, missing) in all.iter().enumerate() {
        for text in without_names(missing) {
            said.entry((missing.failed, text)).or_default().push(at);
        }
    }
    let mut merged: Vec<Option<Missing>> = std::mem::take(all).into_iter().map(Some).collect();
    let mut shared: Vec<_> = said.into_iter().filter(|(_, members)| members.len() > 1).collect();
    shared.sort();
    for ((failed, reason), members) in shared {
        // One that another line has taken already stays there.
        let free: Vec<usize> = members.into_iter().filter(|at| merged.get(*at).is_some_and(Option::is_some)).collect();
        let Some(first) = free.first().copied().filter(|_| free.len() > 1) else { continue };
        let taken = free.iter().filter_map(|at| merged.get_mut(*at)?.take());
        let places = taken.flat_map(|missing| missing.places).collect();
        if let Some(slot) = merged.get_mut(first) {
            *slot = Some(Missing { failed, reason, places });
        }
    }
    all.extend(merged.into_iter().flatten());
}

/// A reason with the name of one of its place's parts left out, for each part that it names. What comes last is a field and no port.
fn without_names(missing: &Missing) -> Vec<String> {
    let words: Vec<&str> = missing.reason.split(' ').collect();
    let place = missing.places.first().and_then(|place| place.split_last());
    let mut parts: Vec<&String> = place.map(|(_, owners)| owners.iter().collect()).unwrap_or_default();
    parts.sort();
    parts.dedup();
    let leave_out = |part: &&String| {
        let names = |word: &&&str| **word == part.as_str();
        let replaced = |word: &&str| if *word == part.as_str() { "the port".to_owned() } else { (*word).to_owned() };
        words.iter().any(|word| names(&word)).then(|| words.iter().map(replaced).collect::<Vec<_>>().join(" "))
    };
    parts.iter().filter_map(leave_out).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(reason: &str, place: &[&str]) -> Missing {
        Missing { failed: false, reason: reason.into(), places: vec![place.iter().map(|part| (*part).to_owned()).collect()] }
    }

    #[test]
    fn what_is_said_of_two_ports_by_name_stands_once() {
        let mut all = vec![
            missing("eth1 has no cage for a module", &["link", "PC", "eth1", "module"]),
            missing("eth3 is down", &["link", "PC", "eth3", "speed"]),
            missing("eth2 has no cage for a module", &["link", "PC", "eth2", "module"]),
            missing("lo has no speed", &["link", "NAS", "lo", "speed"]),
            missing("lo has no duplex", &["link", "NAS", "lo", "duplex"]),
        ];
        merge_ports(&mut all);
        let told: Vec<_> = all.iter().map(|missing| (missing.reason.as_str(), missing.places.len())).collect();
        let expected =
            [("the port has no cage for a module", 2), ("eth3 is down", 1), ("lo has no speed", 1), ("lo has no duplex", 1)];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_failure_is_not_put_with_what_was_left_out() {
        let mut all = vec![
            missing("eth1 is gone", &["eth1", "speed"]),
            Missing { failed: true, ..missing("eth2 is gone", &["eth2", "speed"]) },
        ];
        let before = all.clone();
        merge_ports(&mut all);
        assert_eq!(all, before);
    }
}
