//! What a search tells when it is over.

use std::time::Duration;

use super::{Search, Word};
use crate::model::Outcome;
use crate::model::mtu::{Limiter, PathMtu, Probe, ProbeFate, RouterWord};
use crate::units::Mtu;

impl Word {
    fn limiter(self) -> Limiter {
        Limiter::Router { address: self.router, next_hop_mtu: Mtu(self.mtu) }
    }
}

impl Search {
    /// The largest size that the own interface lets out, in bytes, as far as it is known.
    pub(crate) fn ceiling(&self) -> u32 {
        self.scope.ceiling
    }

    /// The least round-trip time.
    pub(crate) fn least_rtt(&self) -> Option<Duration> {
        self.sent.iter().filter_map(|sent| sent.rtt).min()
    }

    /// Every probe in the order of sending; one without an answer yet counts as lost.
    pub(crate) fn trace(&self) -> Vec<Probe> {
        let probe = |sent: &super::Sent| Probe {
            size: Mtu(sent.size),
            at_us: sent.at.into(),
            fate: sent.fate.unwrap_or(ProbeFate::Lost),
            rtt_us: sent.rtt.map(Into::into),
        };
        self.sent.iter().map(probe).collect()
    }

    /// Everything that routers said, each word once; at most 16.
    pub(crate) fn words(&self) -> Vec<RouterWord> {
        let word = |word: &Word| RouterWord { address: word.router, next_hop_mtu: Mtu(word.mtu), about: Mtu(word.about) };
        self.words.iter().map(word).collect()
    }

    /// The result of a search that ended with [`super::Ending::Exact`] after `elapsed`; the place is not looked for.
    pub(crate) fn path(&self, mtu: u32, limited_by: Limiter, elapsed: Duration) -> PathMtu {
        let trace = self.trace();
        PathMtu {
            mtu: Mtu(mtu),
            ceiling: Mtu(self.ceiling()),
            limited_by,
            probes: trace.len() as u32,
            elapsed_us: elapsed.into(),
            rtt_us: self.least_rtt().map(Into::into),
            trace,
            words: self.words(),
            change: self.change(mtu),
            location: Outcome::skipped("the place was not looked for"),
        }
    }

    /// Who keeps back what is larger than that which passed.
    pub(super) fn limiter(&self) -> Limiter {
        let named = || self.words.iter().find(|word| word.mtu == self.passed && word.probe >= self.epoch);
        match self.refused.get(&(self.passed + 1)).or_else(named).copied().or_else(|| self.speaks_seldom()) {
            Some(word) => word.limiter(),
            None => Limiter::Silent,
        }
    }

    /// The word of a router that names no size that could be right, and that does not answer every packet it drops.
    ///
    /// A router that names a larger size than passes is another limit of the path, not the one that was found.
    fn speaks_seldom(&self) -> Option<Word> {
        let (smallest, word) = self.refused.range(self.passed + 1..).next()?;
        let useless = word.mtu < self.scope.least_mtu.max(self.passed) || word.mtu >= word.about;
        let unanswered = |s: &&super::Sent| s.size >= *smallest && s.fate == Some(ProbeFate::Lost);
        let seldom = self.sent.iter().skip(self.epoch).any(|sent| unanswered(&sent));
        (useless && seldom).then_some(*word)
    }
}
