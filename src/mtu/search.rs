//! The search for the largest packet that passes: pure, told what happened, asked what comes next.
//!
//! Sizes are those of whole IP packets. A size that was acknowledged once passes, and with it every smaller one. A
//! size that vanished is only suspected; the search narrows the gap between the largest size that passed and the
//! smallest suspected one down to a single byte, and there it insists: the byte above must vanish again and again, in
//! rounds in which the size below arrives. How often depends on how much was lost of what is known to pass.
//!
//! A path may change meanwhile. When a size that passed vanishes again and again while a small one arrives, all that was
//! known before is given up and the search begins anew below that size: `change`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use crate::model::mtu::{Limiter, ProbeFate};

mod change;
mod plan;
mod result;
#[cfg(test)]
mod tests;

/// How long an answer is awaited while no round-trip time is known: more than any LAN needs, even a busy one.
const FIRST_TIMEOUT: Duration = Duration::from_millis(250);

/// The least time that an answer is awaited: a busy NAS of one core needs some scheduler ticks of 10 ms to answer.
const LEAST_TIMEOUT: Duration = Duration::from_millis(25);

/// One scheduler tick of a slow kernel (HZ = 100).
const SLACK: Duration = Duration::from_millis(10);

/// The longest time that an answer is awaited, on paths that were seen to be that slow.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(1);

/// The most probes of one search. Without loss 60 suffice for every limit up to 65,535; with one packet in five lost it
/// is 60 to 110 on average and seldom 200.
const MOST_PROBES: usize = 300;

/// How often the time for an answer doubles while nothing arrives that had passed.
const MOST_DOUBLINGS: u32 = 3;

/// The most words of routers that are kept.
const MOST_WORDS: usize = 16;

/// What is known before the search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    /// The smallest packet that can be sent, in bytes.
    pub(crate) smallest: u32,
    /// The largest packet worth trying, in bytes: the interface's MTU, or what the protocol allows.
    pub(crate) ceiling: u32,
    /// The least MTU in bytes that a router can honestly name.
    pub(crate) least_mtu: u32,
    /// The time after which the search gives up.
    pub(crate) budget: Duration,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Send this probe now.
    Send {
        /// Its number, counted from zero.
        sequence: u32,
        /// The size of the IP packet in bytes.
        size: u32,
    },
    /// Wait for answers, at most until this time.
    Wait(Duration),
    /// The search is over.
    Done(Ending),
}

/// How a search ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The largest size in bytes that passes, and who keeps back the next.
    Exact(u32, Limiter),
    /// Not one probe was answered.
    Unanswered,
    /// Probes or time ran out: the first size in bytes passed, the second was suspected to fail.
    Undecided(u32, u32),
}

/// One probe that was sent.
#[derive(Clone, Debug)]
struct Sent {
    size: u32,
    at: Duration,
    round: u32,
    fate: Option<ProbeFate>,
    rtt: Option<Duration>,
}

/// What a router said.
#[derive(Clone, Copy, Debug)]
struct Word {
    router: IpAddr,
    mtu: u32,
    /// The size of the packet that it was about.
    about: u32,
    /// The number of the latest probe that it was about.
    probe: usize,
}

/// The suspicion that what passed does not pass any more.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    /// The first probe that vanished although its size had passed.
    since: usize,
    /// Rounds in which it vanished while a smaller one arrived.
    rounds: u32,
    /// Rounds in a row in which nothing arrived at all.
    silent: u32,
    /// Whether a router refused what had passed.
    refused: bool,
}

/// One search in one direction.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    scope: Scope,
    /// The largest size that passed; zero while none did.
    passed: u32,
    /// What had passed when the round was planned.
    control: u32,
    /// Probes before this one tell nothing of the path as it is now.
    epoch: usize,
    doubt: Option<Doubt>,
    /// Whether a size passed at last that had vanished before: those above it deserve another chance.
    climbing: bool,
    /// In how many rounds a size vanished, those above `passed` alone have a meaning.
    losses: BTreeMap<u32, u32>,
    /// The sizes that a router refused.
    refused: BTreeMap<u32, Word>,
    /// Everything that routers said, each once.
    words: Vec<Word>,
    /// A size that a router named and that was not tried yet.
    hint: Option<u32>,
    /// The sizes that were hints.
    hinted: BTreeSet<u32>,
    sent: Vec<Sent>,
    queue: VecDeque<u32>,
    round: u32,
    silent_rounds: u32,
    stage: Stage,
    /// Smoothed round-trip time and its variation (RFC 6298).
    rtt: Option<(Duration, Duration)>,
}

/// Which kind of round comes next while no hint and no certainty is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Ceiling,
    Plateaus,
    NextByte,
    Narrow,
}

impl Search {
    /// A search that has not begun.
    pub(crate) fn new(scope: Scope) -> Self {
        let scope = Scope { ceiling: scope.ceiling.max(scope.smallest), ..scope };
        Self {
            scope,
            passed: 0,
            control: 0,
            epoch: 0,
            doubt: None,
            climbing: false,
            losses: BTreeMap::new(),
            refused: BTreeMap::new(),
            words: Vec::new(),
            hint: None,
            hinted: BTreeSet::new(),
            sent: Vec::new(),
            queue: VecDeque::new(),
            round: 0,
            silent_rounds: 0,
            stage: Stage::Ceiling,
            rtt: None,
        }
    }

    /// What to do at the time `now`, counted from the start of the search.
    pub(crate) fn poll(&mut self, now: Duration) -> Step {
        self.expire(now);
        if self.passed >= self.scope.ceiling {
            // The answers that are still on their way belong into the trace; they take no time of their own.
            self.queue.clear();
            return match self.next_deadline(now) {
                Some(deadline) if now < self.scope.budget => Step::Wait(deadline),
                _ => Step::Done(Ending::Exact(self.passed, Limiter::LocalInterface)),
            };
        }
        if now >= self.scope.budget || self.sent.len() >= MOST_PROBES {
            return Step::Done(self.give_up());
        }
        if self.queue.is_empty() && !self.round_is_open(now) {
            self.close_round();
            if let Some(ending) = self.plan() {
                return Step::Done(ending);
            }
        }
        match self.queue.pop_front() {
            Some(size) => {
                let sequence = self.sent.len() as u32;
                self.sent.push(Sent { size, at: now, round: self.round, fate: None, rtt: None });
                Step::Send { sequence, size }
            }
            None => Step::Wait(self.next_deadline(now).unwrap_or(now + LEAST_TIMEOUT)),
        }
    }

    /// The peer says that the probe arrived, and how large.
    pub(crate) fn acknowledged(&mut self, sequence: u32, size: u32, now: Duration) {
        let Some(sent) = self.sent.get_mut(sequence as usize) else { return };
        if sent.size != size || sent.fate == Some(ProbeFate::Acknowledged) {
            return;
        }
        let rtt = now.saturating_sub(sent.at);
        sent.fate = Some(ProbeFate::Acknowledged);
        sent.rtt = Some(rtt);
        self.learn_passed(sequence as usize, size);
        self.rtt = Some(match self.rtt {
            None => (rtt, rtt / 2),
            Some((smooth, variation)) => ((smooth * 7 + rtt) / 8, (variation * 3 + smooth.abs_diff(rtt)) / 4),
        });
    }

    /// A probe arrived; what was sent before the path changed tells nothing any more.
    fn learn_passed(&mut self, index: usize, size: u32) {
        if index < self.epoch {
            return;
        }
        if self.doubt.is_some_and(|doubt| index >= doubt.since && size >= self.passed) {
            self.doubt = None;
        }
        if size > self.passed {
            let gap = self.passed + 1..=size;
            if self.losses.range(gap.clone()).next().is_some() || self.refused.range(gap).next().is_some() {
                // Those above may have failed for the same reason, which is over: they are only suspected again.
                self.climbing = true;
                self.losses.range_mut(size + 1..).for_each(|(_, losses)| *losses = 0);
                self.refused.clear();
            }
            self.passed = size;
        }
    }

    /// Our own system did not send the probe; `mtu` is what its interface carries, if it said so.
    pub(crate) fn refused_locally(&mut self, sequence: u32, mtu: Option<u32>) {
        let Some(sent) = self.sent.get_mut(sequence as usize) else { return };
        sent.fate = Some(ProbeFate::RefusedLocally);
        let size = sent.size;
        let named = mtu.filter(|mtu| *mtu < size && *mtu >= self.scope.smallest);
        let ceiling = named.unwrap_or(size.saturating_sub(1)).max(self.scope.smallest).min(self.scope.ceiling);
        self.scope.ceiling = ceiling;
        if ceiling < self.passed {
            // The interface itself was changed: everything begins anew.
            self.begin_anew(self.sent.len());
            return;
        }
        let waiting = self.queue.len();
        self.queue.retain(|size| *size <= ceiling);
        let removed = waiting - self.queue.len();
        if self.stage == Stage::Ceiling && named.is_some() && !self.queue.contains(&ceiling) {
            // The first round goes on at the new ceiling, with as many probes as it meant to send.
            (0..=removed).for_each(|_| self.queue.push_front(ceiling));
        }
    }

    /// A router at `router` says that a packet was too large and that its next hop carries `mtu`.
    ///
    /// The probe is known if the router quoted enough of it; otherwise it can only have been one of the largest.
    pub(crate) fn refused_by_router(&mut self, sequence: Option<u32>, router: IpAddr, mtu: u32) {
        let Some(index) = sequence.map(|sequence| sequence as usize).or_else(|| self.largest_unanswered()) else { return };
        let Some(sent) = self.sent.get_mut(index) else { return };
        if sent.fate != Some(ProbeFate::Acknowledged) {
            sent.fate = Some(ProbeFate::RefusedByRouter);
        }
        let word = Word { router, mtu, about: sent.size, probe: index };
        let room = self.words.len() < MOST_WORDS;
        match self.words.iter_mut().find(|known| known.router == router && known.mtu == mtu) {
            Some(known) => {
                known.probe = known.probe.max(index);
                // The smallest packet that drew the word shows best whether it can be true.
                known.about = known.about.min(word.about);
            }
            None if room => self.words.push(word),
            None => {}
        }
        if index < self.epoch {
            return;
        }
        self.refused.insert(word.about, word);
        let honest = mtu >= self.scope.least_mtu && mtu < word.about;
        if honest && mtu > self.passed && self.hinted.len() < MOST_WORDS && self.hinted.insert(mtu) {
            self.hint = Some(mtu);
            self.queue.clear();
        }
    }

    /// The probe that a word without a quotation can be about: of those under way the largest, or else of those given up.
    fn largest_unanswered(&self) -> Option<usize> {
        let largest = |fate: Option<ProbeFate>| {
            let those = self.sent.iter().enumerate().skip(self.epoch).filter(|(_, sent)| sent.fate == fate);
            those.max_by_key(|(_, sent)| sent.size).map(|(index, _)| index)
        };
        largest(None).or_else(|| largest(Some(ProbeFate::Lost)))
    }

    fn timeout(&self) -> Duration {
        let calm = self.rtt.map_or(FIRST_TIMEOUT, |(smooth, variation)| {
            // Where every answer takes the same time the variation becomes nothing: a quarter and a tick are added.
            (smooth + smooth / 4 + variation * 4 + SLACK).clamp(LEAST_TIMEOUT, LONGEST_TIMEOUT)
        });
        // On a path that fell silent the probes are spared for the time when it comes back.
        let silent = self.doubt.map_or(0, |doubt| doubt.silent.min(MOST_DOUBLINGS));
        (calm * (1 << silent)).min(LONGEST_TIMEOUT)
    }

    fn expire(&mut self, now: Duration) {
        let timeout = self.timeout();
        for sent in self.sent.iter_mut().filter(|sent| sent.fate.is_none()) {
            if sent.at + timeout <= now {
                sent.fate = Some(ProbeFate::Lost);
            }
        }
    }

    fn this_round(&self) -> impl Iterator<Item = &Sent> {
        self.sent.iter().rev().take_while(|sent| sent.round == self.round)
    }

    /// Whether a probe of this round can still tell something new.
    ///
    /// A router's refusal ends nothing unless it gave a hint: one that lies may have passed the packet on.
    fn round_is_open(&self, now: Duration) -> bool {
        let timeout = self.timeout();
        if self.hint.is_some() {
            return false;
        }
        self.this_round().any(|sent| match sent.fate {
            // Whether the control arrives tells whether the others had their chance.
            None => sent.size > self.passed || (sent.size == self.control && self.passed == self.control),
            Some(ProbeFate::RefusedByRouter) => sent.size > self.passed && sent.at + timeout > now,
            Some(_) => false,
        })
    }

    fn next_deadline(&self, now: Duration) -> Option<Duration> {
        let timeout = self.timeout();
        let open = |sent: &&Sent| matches!(sent.fate, None | Some(ProbeFate::RefusedByRouter));
        self.this_round().filter(open).map(|sent| sent.at + timeout).filter(|deadline| *deadline > now).min()
    }

    fn give_up(&self) -> Ending {
        if self.passed == 0 { Ending::Unanswered } else { Ending::Undecided(self.passed, self.suspect()) }
    }
}
