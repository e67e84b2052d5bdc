//! How much is lost by chance, and what cannot be chance: that the path changed while it was probed.

use super::plan::LEAST_LOSSES;
use super::{Doubt, Search, Sent, Stage};
use crate::model::mtu::{MtuChange, ProbeFate};
use crate::units::Mtu;

/// The chance that is left to take losses for a path that carries less than before. A mistake costs only probes: the
/// search begins anew and finds what it had found.
const LOWERED_CHANCE: f64 = 1e-4;

/// The chance that is left to report that a path carries more than before, where nothing else was lost, and where it
/// was: in 200,000 simulated searches with up to one packet in five lost it was never reported of a path that stayed.
const RAISED_CHANCE: f64 = 1e-7;
const RAISED_CHANCE_IN_LOSS: f64 = 1e-10;

impl Search {
    /// How many probes of sizes that pass were sent, and how many of those were lost by chance.
    ///
    /// A lost one counts only if its size had arrived before or in the same round: what vanished before anything as large
    /// arrived may have been too large then.
    pub(super) fn known(&self) -> (u32, u32) {
        let until = self.doubt.map_or(self.sent.len(), |doubt| doubt.since);
        let current = self.sent.get(self.epoch..until).unwrap_or_default();
        let (mut best, mut sent, mut lost) = (0, 0, 0);
        for round in current.chunk_by(|one, next| one.round == next.round) {
            best = arrived(round).max().unwrap_or(0).max(best);
            for probe in round.iter().filter(|probe| probe.size <= best) {
                sent += u32::from(matches!(probe.fate, Some(ProbeFate::Acknowledged | ProbeFate::Lost)));
                lost += u32::from(probe.fate == Some(ProbeFate::Lost));
            }
        }
        (sent, lost)
    }

    /// How many losses in a row leave less than `chance` that they are only loss.
    pub(super) fn losses_below(&self, chance: f64) -> u32 {
        // The share of loss as Agresti and Coull estimate it from few packets: two more of each kind.
        let (sent, lost) = self.known();
        let share = f64::from(lost + 2) / f64::from(sent + 4);
        (chance.ln() / share.ln()).ceil() as u32
    }

    /// Whether what had passed vanished in the round that is over, and nothing larger arrived.
    pub(super) fn control_vanished(&self) -> bool {
        let mut controls = self.this_round().filter(|sent| sent.size == self.control).peekable();
        let vanished = |sent: &Sent| matches!(sent.fate, Some(ProbeFate::Lost | ProbeFate::RefusedByRouter));
        self.control > 0 && self.passed == self.control && controls.peek().is_some() && controls.all(vanished)
    }

    /// Weighs a round in which the control vanished.
    pub(super) fn doubt_more(&mut self) {
        let first = self.sent.iter().position(|sent| sent.round == self.round && sent.size == self.control);
        let begun = Doubt { since: first.unwrap_or(self.sent.len()), rounds: 0, silent: 0, refused: false };
        let mut doubt = self.doubt.unwrap_or(begun);
        if self.this_round().any(|sent| sent.size < self.control && arrived_one(sent)) {
            doubt.rounds += 1;
        }
        doubt.silent = if self.this_round().any(arrived_one) { 0 } else { doubt.silent + 1 };
        doubt.refused |= self.this_round().any(|sent| sent.size == self.control && sent.fate == Some(ProbeFate::RefusedByRouter));
        self.doubt = Some(doubt);
    }

    /// Whether what had passed does not pass any more.
    pub(super) fn is_lowered(&self) -> bool {
        self.doubt.is_some_and(|doubt| {
            // A router's word spares the repetition; that it may lie is seen when the search begins anew.
            let enough = if doubt.refused { 1 } else { self.losses_below(LOWERED_CHANCE).max(LEAST_LOSSES) };
            doubt.rounds >= enough
        })
    }

    /// Goes on below what had passed, with what arrived since then.
    pub(super) fn give_up_what_was_known(&mut self) {
        let Some(doubt) = self.doubt else { return };
        let before = self.passed;
        self.begin_anew(doubt.since);
        self.passed = self.sent.get(self.epoch..).map_or(0, |recent| arrived(recent).max().unwrap_or(0));
        self.losses.insert(before, doubt.rounds);
        self.stage = Stage::Plateaus;
        let recent = self.words.iter().filter(|word| word.probe >= self.epoch && word.mtu >= self.scope.least_mtu);
        self.hint = recent.map(|word| word.mtu).filter(|mtu| (self.passed + 1..before).contains(mtu)).min();
        self.hinted.extend(self.hint);
    }

    /// Forgets everything that probes before the one numbered `epoch` told.
    pub(super) fn begin_anew(&mut self, epoch: usize) {
        self.epoch = epoch;
        self.doubt = None;
        self.passed = 0;
        self.control = 0;
        self.climbing = false;
        self.losses.clear();
        self.refused.retain(|_, word| word.probe >= epoch);
        self.hint = None;
        self.hinted.clear();
        self.queue.clear();
        self.silent_rounds = 0;
        self.stage = Stage::Ceiling;
    }

    /// How the path changed during the search that ended with `mtu`.
    pub(crate) fn change(&self, mtu: u32) -> Option<MtuChange> {
        self.lowered(mtu).or_else(|| self.raised(mtu))
    }

    /// Something larger than `mtu` had arrived: that is a proof.
    fn lowered(&self, mtu: u32) -> Option<MtuChange> {
        let larger = |sent: &Sent| sent.size > mtu;
        let last = self.sent.iter().rposition(|s| larger(s) && arrived_one(s))?;
        let from = arrived(&self.sent).max()?;
        let contradiction = self.sent.iter().skip(last + 1).find(|s| larger(s) && s.size <= from);
        // Where the own interface was made smaller nothing as large was tried again.
        let first = contradiction.or_else(|| self.sent.get(self.epoch.max(last)))?;
        Some(MtuChange { from: Mtu(from), to: Mtu(mtu), at_us: first.at.into() })
    }

    /// Sizes up to `mtu` vanished in so many rounds before the first of them arrived that it was not chance.
    fn raised(&self, mtu: u32) -> Option<MtuChange> {
        let lost = |sent: &&Sent| matches!(sent.fate, Some(ProbeFate::Lost | ProbeFate::RefusedByRouter));
        let (mut best, mut vanished, mut before) = (0, Vec::new(), 0);
        for round in self.sent.chunk_by(|one, next| one.round == next.round) {
            let contradicted: Vec<u32> = vanished.iter().copied().filter(|size| *size > best).collect();
            let least = contradicted.iter().min().filter(|_| best > 0 && contradicted.len() >= LEAST_LOSSES as usize);
            let contradicts = |sent: &&Sent| arrived_one(sent) && least.is_some_and(|size| sent.size >= *size);
            let known = self.known_if_raised(before, best, mtu);
            let chance = if known.1 == 0 { RAISED_CHANCE } else { RAISED_CHANCE_IN_LOSS };
            if let Some(first) = round.iter().find(contradicts)
                && all_lost(contradicted.len(), known) < chance
            {
                return Some(MtuChange { from: Mtu(best), to: Mtu(mtu), at_us: first.at.into() });
            }
            let known_lost = round.iter().filter(lost).any(|sent| sent.size <= best);
            best = arrived(round).max().unwrap_or(0).max(best);
            let largest = round.iter().filter(lost).map(|sent| sent.size).filter(|size| (best + 1..=mtu).contains(size)).max();
            vanished.extend(largest.filter(|_| !known_lost));
            before += round.len();
        }
        None
    }

    /// How many probes that should pass were sent and how many were lost, if the path carried `from` for the first
    /// `before` probes and `to` afterwards.
    fn known_if_raised(&self, before: usize, from: u32, to: u32) -> (u32, u32) {
        let passes = |index: usize| if index < before { from } else { to };
        let known = self.sent.iter().enumerate().filter(|(index, sent)| sent.size <= passes(*index));
        known.fold((0, 0), |(sent, lost), (_, probe)| (sent + 1, lost + u32::from(!arrived_one(probe))))
    }
}

/// The chance that the next `count` packets are all lost where of `sent` ones `lost` were: Laplace's rule of succession,
/// which takes every share of loss for equally likely beforehand.
fn all_lost(count: usize, (sent, lost): (u32, u32)) -> f64 {
    (0..count).map(|one| (f64::from(lost) + 1.0 + one as f64) / (f64::from(sent) + 2.0 + one as f64)).product()
}

fn arrived_one(sent: &Sent) -> bool {
    sent.fate == Some(ProbeFate::Acknowledged)
}

/// The sizes that arrived.
fn arrived(probes: &[Sent]) -> impl Iterator<Item = u32> {
    probes.iter().filter(|sent| arrived_one(sent)).map(|sent| sent.size)
}
