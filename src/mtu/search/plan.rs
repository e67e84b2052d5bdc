//! Which round comes next, and what a round that is over proves.

use std::mem;

use super::{Ending, Scope, Search, Stage};
use crate::model::mtu::ProbeFate;

/// The sizes that exist in the field: jumbo frames of switches and adapters, FDDI, PPPoE, tunnels, the least of IPv6.
const PLATEAUS: [u32; 21] = [
    9216, 9198, 9014, 9000, 8996, 8192, 7418, 4352, 4078, 2048, 1998, 1536, 1500, 1492, 1480, 1472, 1450, 1420, 1400, 1380, 1280,
];

/// Rounds without any answer until the path counts as blocked: two seconds and 15 control probes, which all vanish by
/// chance once in 30,000 searches if every other packet is lost.
const SILENT_ROUNDS: u32 = 8;

/// The least number of losses that make a size fail (RFC 8899, MAX_PROBES).
pub(super) const LEAST_LOSSES: u32 = 3;

/// The chance that is left to mistake loss for a limit of size: in 600,000 simulated searches with one packet in five
/// lost not one came out too small.
const RESIDUAL_CHANCE: f64 = 1e-8;

impl Search {
    /// Counts what vanished in the round that is over. When what is known to pass vanished with it, nothing is learnt.
    pub(super) fn close_round(&mut self) {
        if self.control_vanished() {
            self.doubt_more();
            return;
        }
        let witness = self.this_round().filter(|s| s.fate == Some(ProbeFate::Acknowledged)).map(|s| s.size).min();
        let known = self.this_round().any(|sent| sent.size <= self.passed);
        let mut lost: Vec<u32> =
            self.this_round().filter(|s| s.fate == Some(ProbeFate::Lost) && s.size > self.passed).map(|s| s.size).collect();
        lost.sort_unstable();
        lost.dedup();
        match witness {
            Some(witness) => {
                for size in lost.into_iter().filter(|size| *size > witness) {
                    *self.losses.entry(size).or_insert(0) += 1;
                }
            }
            // Nothing in the round was known to pass: all of it may be too large, which is suspected but not counted.
            None if !known && self.passed > 0 => {
                for size in lost {
                    self.losses.entry(size).or_insert(0);
                }
            }
            None => return,
        }
        self.stage = match self.stage {
            Stage::Ceiling if self.passed == 0 => Stage::Ceiling,
            Stage::Ceiling => Stage::Plateaus,
            Stage::Plateaus => Stage::NextByte,
            Stage::NextByte | Stage::Narrow => Stage::Narrow,
        };
    }

    /// The smallest size that is suspected to fail.
    pub(super) fn suspect(&self) -> u32 {
        let above = |size: &u32| *size > self.passed;
        let lost = self.losses.keys().copied().find(above);
        let refused = self.refused.keys().copied().find(above);
        let least = lost.into_iter().chain(refused).min();
        least.map_or(self.scope.ceiling + 1, |size| size.min(self.scope.ceiling + 1))
    }

    /// Fills the queue for the next round, or ends the search.
    pub(super) fn plan(&mut self) -> Option<Ending> {
        let confirmed = self.is_confirmed();
        self.round += 1;
        if self.is_lowered() {
            self.give_up_what_was_known();
        }
        let Scope { smallest, ceiling, .. } = self.scope;
        let passed = self.passed;
        self.control = passed;
        // In every round the control probe stands last: when it arrives, those before it had their chance.
        if self.doubt.is_some() {
            self.queue = [self.suspect(), passed, smallest].into_iter().filter(|size| *size <= ceiling).collect();
            return None;
        }
        if let Some(hint) = self.hint.take()
            && hint > passed
            && hint < self.suspect()
        {
            self.queue = [hint + 1, hint, passed.max(smallest)].into();
            return None;
        }
        if passed == 0 {
            self.silent_rounds += 1;
            let second = if self.silent_rounds == 1 { ceiling } else { smallest };
            self.queue = [ceiling, second, smallest].into();
            return (self.silent_rounds > SILENT_ROUNDS).then_some(Ending::Unanswered);
        }
        let suspect = self.suspect();
        if mem::take(&mut self.climbing) && suspect <= ceiling {
            self.climb();
            return None;
        }
        if self.stage == Stage::Ceiling {
            self.queue = [ceiling, ceiling, passed].into();
            return None;
        }
        if self.stage == Stage::Plateaus {
            self.queue = PLATEAUS.into_iter().filter(|size| (passed + 1..suspect.min(ceiling)).contains(size)).collect();
            if !self.queue.is_empty() {
                self.queue.push_back(passed);
                return None;
            }
            self.stage = Stage::NextByte;
        }
        if suspect == passed + 1 {
            self.queue = [suspect, passed].into();
            return (confirmed && self.is_proven(suspect)).then(|| Ending::Exact(passed, self.limiter()));
        }
        if self.stage == Stage::NextByte {
            self.queue = [passed + 1, passed].into();
        } else {
            self.narrow(suspect);
        }
        None
    }

    /// Tries those again that vanished before, as what is smaller passes by now.
    fn climb(&mut self) {
        let suspects: Vec<u32> = self.losses.range(self.passed + 1..=self.scope.ceiling).map(|(size, _)| *size).collect();
        let chosen = [suspects.last(), suspects.get(3), suspects.first(), Some(&self.passed)];
        self.queue = chosen.into_iter().flatten().copied().collect();
    }

    /// Cuts the gap below `suspect` into equal parts, all tried at once.
    fn narrow(&mut self, suspect: u32) {
        let unknown = suspect - self.passed - 1;
        // More cuts save rounds and cost probes; the wide gaps above all plateaus have no probes to spare.
        let cuts = unknown.min(if unknown > 4096 { 1 } else { 2 });
        let sizes = (1..=cuts).rev().map(|cut| self.passed + (unknown + 1) * cut / (cuts + 1));
        self.queue = sizes.filter(|size| *size > self.passed && *size < suspect).collect();
        if self.known().1 > 0 {
            // Packets are lost here that would pass: the suspect gets another chance, and the round a control.
            self.queue.push_front(suspect);
            self.queue.push_back(self.passed);
        }
    }

    /// Whether in the round that is over what passes arrived and the next byte was tried in vain: a path that changed
    /// since it was proven shows itself here.
    fn is_confirmed(&self) -> bool {
        let arrived = self.this_round().any(|s| s.size == self.passed && s.fate == Some(ProbeFate::Acknowledged));
        arrived && self.this_round().any(|sent| sent.size == self.passed + 1)
    }

    /// Whether `size` vanished so often that it cannot be chance.
    fn is_proven(&self, size: u32) -> bool {
        let in_last_round = |probe: usize| self.sent.get(probe).is_some_and(|sent| sent.round + 1 == self.round);
        if self.refused.get(&size).is_some_and(|word| word.mtu >= self.passed || in_last_round(word.probe)) {
            // A word that names less than passes is false, or true of a path that has changed since.
            return true;
        }
        let enough = self.losses_below(RESIDUAL_CHANCE).max(LEAST_LOSSES);
        self.losses.get(&size).is_some_and(|losses| *losses >= enough)
    }
}
