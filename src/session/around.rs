//! What a host sees around a phase: its CPU and its interfaces' counters.

use std::time::{Duration, Instant};

use crate::cpu::Sampler;
use crate::link::Tree;
use crate::model::link::{Counters, CountersByInterface};
use crate::model::outcome::Outcome;
use crate::model::phase::PhaseCounters;
use crate::units::Elapsed;
use crate::wire::message::Around;

/// How often the processors are looked at; five looks a second find a core that was full for a moment.
const EVERY: Duration = Duration::from_millis(200);

/// A phase that is being watched.
#[derive(Debug)]
pub struct Bracket {
    sampler: Sampler,
    names: Vec<String>,
    before: Outcome<CountersByInterface>,
}

impl Bracket {
    /// Begins to watch the processors and these interfaces.
    pub fn start(names: &[String]) -> Self {
        let before = crate::link::counters(names, &tree());
        Self { sampler: Sampler::start(EVERY), names: names.to_vec(), before }
    }

    /// Ends it.
    pub fn finish(self) -> Around {
        let cpu = self.sampler.finish();
        let counters = grown(self.before, crate::link::counters(&self.names, &tree()));
        let nothing = "this end sent nothing";
        Around { cpu, counters, spread: Outcome::skipped(nothing), flows: Outcome::skipped(nothing) }
    }
}

/// What both ends counted since `began`, as each saw it around one phase.
pub fn counted(began: Instant, pc: &Around, nas: &Around) -> PhaseCounters {
    let elapsed = Elapsed::from(began.elapsed());
    PhaseCounters::new(elapsed, pc.counters.clone(), nas.counters.clone())
}

/// What grew between two snapshots of counters; failed where an interface of the first is another one or none in the second.
pub fn grown(before: Outcome<CountersByInterface>, after: Outcome<CountersByInterface>) -> Outcome<CountersByInterface> {
    let since = |before: CountersByInterface, after: CountersByInterface| {
        let grown = |(name, now): (String, Counters)| {
            let grown = before.get(&name).map(|then| now.since(then)).unwrap_or_default();
            (name, grown)
        };
        after.into_iter().map(grown).collect()
    };
    before.and_then(|before| {
        let now = after.measured();
        let lost: Vec<&str> = before
            .iter()
            .filter(|(name, then)| now.and_then(|now| now.get(*name)).is_none_or(|now| begins_anew(then, now)))
            .map(|(name, _)| name.as_str())
            .take(8)
            .collect();
        if lost.is_empty() {
            return after.map(|after| since(before, after));
        }
        Outcome::failed(format!(
            "{} vanished, was renamed or was made anew meanwhile, so what the counters grew by is not known: look again when the \
             interfaces stay as they are",
            lost.join(", ")
        ))
    })
}

/// Whether counters that only grow have become less. Bytes do not tell, as old 32 bit kernels let them wrap within seconds.
fn begins_anew(then: &Counters, now: &Counters) -> bool {
    ["rx_packets", "tx_packets"].into_iter().any(|name| then.get(name) > now.get(name))
}

/// This host's own files.
pub fn tree() -> Tree {
    Tree::system()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(interfaces: &[(&str, u64)]) -> Outcome<CountersByInterface> {
        let counters = |value: u64| Counters([("rx_packets".to_owned(), value)].into());
        Outcome::Measured(interfaces.iter().map(|(name, value)| ((*name).to_owned(), counters(*value))).collect())
    }

    #[test]
    fn an_interface_that_vanishes_or_is_made_anew_gives_a_reason_and_no_figures() {
        let before = || snapshot(&[("eth0", 100), ("eth1", 7)]);
        let grew = grown(before(), snapshot(&[("eth0", 130), ("eth1", 7)]));
        assert_eq!(grew.measured().unwrap()["eth0"].get("rx_packets"), Some(30));
        for (after, lost) in [
            (snapshot(&[("eth0", 130)]), "eth1 vanished"),
            (snapshot(&[("eth0", 130), ("lan1", 7)]), "eth1 vanished"),
            (snapshot(&[("eth0", 3), ("eth1", 7)]), "eth0 vanished"),
            (Outcome::skipped("no counters"), "eth0, eth1 vanished"),
        ] {
            let grew = grown(before(), after);
            assert!(grew.why().is_some_and(|why| why.starts_with(lost)), "{grew:?}");
        }
    }
}
