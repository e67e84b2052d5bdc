//! What a host sees around a phase: its CPU and its interfaces' counters.

use std::time::Duration;

use crate::cpu::Sampler;
use crate::link::Tree;
use crate::model::link::CountersByInterface;
use crate::model::outcome::Outcome;
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

/// What grew between two snapshots of counters.
pub fn grown(before: Outcome<CountersByInterface>, after: Outcome<CountersByInterface>) -> Outcome<CountersByInterface> {
    let since = |before: CountersByInterface, after: CountersByInterface| {
        let grown = |(name, now): (String, crate::model::link::Counters)| {
            let grown = before.get(&name).map(|then| now.since(then)).unwrap_or_default();
            (name, grown)
        };
        after.into_iter().map(grown).collect()
    };
    before.and_then(|before| after.map(|after| since(before, after)))
}

/// This host's own files.
pub fn tree() -> Tree {
    Tree::system()
}
