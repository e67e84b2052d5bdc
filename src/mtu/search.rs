//! The search for the largest packet that passes: pure, told what happened, asked what comes next.
//!
//! Sizes are those of whole IP packets. A size that was acknowledged once passes, and with it every smaller one. A
//! size that vanished is only suspected; the search narrows the gap between the largest size that passed and the
//! smallest suspected one down to a single byte, and there it insists: the byte above must vanish again and again, in
//! rounds in which the size below arrives. How often depends on how much was lost of what is known to pass.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use crate::model::mtu::{Limiter, Probe, ProbeFate};
use crate::units::Mtu;

mod plan;
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
}

impl Word {
    fn limiter(self) -> Limiter {
        Limiter::Router { address: self.router, next_hop_mtu: Mtu(self.mtu) }
    }
}

/// One search in one direction.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    scope: Scope,
    /// The largest size that passed; zero while none did.
    passed: u32,
    /// In how many rounds a size vanished, those above `passed` alone have a meaning.
    losses: BTreeMap<u32, u32>,
    /// The sizes that a router refused.
    refused: BTreeMap<u32, Word>,
    /// Everything that routers said.
    words: Vec<Word>,
    /// A size that a router named and that was not tried yet.
    hint: Option<u32>,
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
            losses: BTreeMap::new(),
            refused: BTreeMap::new(),
            words: Vec::new(),
            hint: None,
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
        self.passed = self.passed.max(size);
        self.rtt = Some(match self.rtt {
            None => (rtt, rtt / 2),
            Some((smooth, variation)) => ((smooth * 7 + rtt) / 8, (variation * 3 + smooth.abs_diff(rtt)) / 4),
        });
    }

    /// Our own system did not send the probe; `mtu` is what its interface carries, if it said so.
    pub(crate) fn refused_locally(&mut self, sequence: u32, mtu: Option<u32>) {
        let Some(sent) = self.sent.get_mut(sequence as usize) else { return };
        sent.fate = Some(ProbeFate::RefusedLocally);
        let size = sent.size;
        let named = mtu.filter(|mtu| *mtu < size && *mtu >= self.scope.smallest);
        let floor = self.passed.max(self.scope.smallest);
        let ceiling = named.unwrap_or(size.saturating_sub(1)).max(floor).min(self.scope.ceiling);
        self.scope.ceiling = ceiling;
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
        let index = match sequence {
            Some(sequence) => Some(sequence as usize),
            None => (0..self.sent.len())
                .filter(|index| self.sent.get(*index).is_some_and(|sent| sent.fate.is_none()))
                .max_by_key(|index| self.sent.get(*index).map(|sent| sent.size)),
        };
        let Some(sent) = index.and_then(|index| self.sent.get_mut(index)) else { return };
        if sent.fate != Some(ProbeFate::Acknowledged) {
            sent.fate = Some(ProbeFate::RefusedByRouter);
        }
        let size = sent.size;
        let word = Word { router, mtu };
        self.refused.entry(size).or_insert(word);
        let news = !self.words.iter().any(|known| known.router == router && known.mtu == mtu);
        if !news || self.words.len() >= MOST_WORDS {
            return;
        }
        self.words.push(word);
        if mtu >= self.scope.least_mtu && mtu < size && mtu > self.passed {
            self.hint = Some(mtu);
            self.queue.clear();
        }
    }

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
        let probe = |sent: &Sent| Probe {
            size: Mtu(sent.size),
            at_us: sent.at.into(),
            fate: sent.fate.unwrap_or(ProbeFate::Lost),
            rtt_us: sent.rtt.map(Into::into),
        };
        self.sent.iter().map(probe).collect()
    }

    fn timeout(&self) -> Duration {
        self.rtt.map_or(FIRST_TIMEOUT, |(smooth, variation)| {
            // Where every answer takes the same time the variation becomes nothing: a quarter and a tick are added.
            (smooth + smooth / 4 + variation * 4 + SLACK).clamp(LEAST_TIMEOUT, LONGEST_TIMEOUT)
        })
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
        self.this_round().any(|sent| {
            sent.size > self.passed
                && match sent.fate {
                    None => self.hint.is_none(),
                    Some(ProbeFate::RefusedByRouter) => self.hint.is_none() && sent.at + timeout > now,
                    Some(_) => false,
                }
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
