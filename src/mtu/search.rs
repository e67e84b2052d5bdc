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

/// The sizes that exist in the field: jumbo frames of switches and adapters, FDDI, PPPoE, tunnels, the least of IPv6.
const PLATEAUS: [u32; 21] = [
    9216, 9198, 9014, 9000, 8996, 8192, 7418, 4352, 4078, 2048, 1998, 1536, 1500, 1492, 1480, 1472, 1450, 1420, 1400, 1380, 1280,
];

/// How long an answer is awaited while no round-trip time is known: more than any LAN needs, even a busy one.
const FIRST_TIMEOUT: Duration = Duration::from_millis(250);

/// The least time that an answer is awaited: a busy NAS of one core needs some scheduler ticks of 10 ms to answer.
const LEAST_TIMEOUT: Duration = Duration::from_millis(25);

/// The longest time that an answer is awaited, on paths that were seen to be that slow.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(1);

/// Rounds without any answer until the path counts as blocked. They last two seconds; if every other probe or its
/// answer were lost, one control probe in eight would still come through with 255 chances in 256.
const SILENT_ROUNDS: u32 = 8;

/// The least number of losses that make a size fail (RFC 8899, MAX_PROBES).
const LEAST_LOSSES: u32 = 3;

/// The chance that is left to mistake loss for a limit of size: in 600,000 simulated searches with one packet in five
/// lost not one came out too small.
const RESIDUAL_CHANCE: f64 = 1e-8;

/// The most probes of one search. Without loss 60 suffice for every limit up to 65,535; with one packet in five lost
/// it is 60 to 110 on average, and a few searches in 100,000 end undecided here.
const MOST_PROBES: usize = 200;

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
        self.rtt.map_or(FIRST_TIMEOUT, |(smooth, variation)| (smooth + variation * 4).clamp(LEAST_TIMEOUT, LONGEST_TIMEOUT))
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

    /// Counts what vanished in the round that is over. When what is known to pass vanished with it, nothing is learnt.
    fn close_round(&mut self) {
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
    fn suspect(&self) -> u32 {
        let above = |size: &u32| *size > self.passed;
        let lost = self.losses.keys().copied().find(above);
        let refused = self.refused.keys().copied().find(above);
        let least = lost.into_iter().chain(refused).min();
        least.map_or(self.scope.ceiling + 1, |size| size.min(self.scope.ceiling + 1))
    }

    /// Fills the queue for the next round, or ends the search.
    fn plan(&mut self) -> Option<Ending> {
        self.round += 1;
        let Scope { smallest, ceiling, .. } = self.scope;
        let passed = self.passed;
        // In every round the control probe stands last: when it arrives, those before it had their chance.
        if let Some(hint) = self.hint.take()
            && hint > passed
            && hint < self.suspect()
        {
            self.queue = [hint + 1, hint, passed.max(smallest)].into();
            return None;
        }
        if passed == 0 {
            self.silent_rounds += 1;
            self.queue = [ceiling, ceiling, smallest].into();
            return (self.silent_rounds > SILENT_ROUNDS).then_some(Ending::Unanswered);
        }
        let suspect = self.suspect();
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
            return self.is_proven(suspect).then(|| Ending::Exact(passed, self.limiter()));
        }
        if self.stage == Stage::NextByte {
            self.queue = [passed + 1, passed].into();
        } else {
            self.narrow(suspect);
        }
        None
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

    /// How many probes were sent of sizes that pass, and how many of those were lost.
    fn known(&self) -> (u32, u32) {
        let known = self.sent.iter().filter(|sent| sent.size <= self.passed);
        known.fold((0, 0), |(sent, lost), probe| match probe.fate {
            Some(ProbeFate::Acknowledged) => (sent + 1, lost),
            Some(ProbeFate::Lost) => (sent + 1, lost + 1),
            _ => (sent, lost),
        })
    }

    /// Whether `size` vanished so often that it cannot be chance.
    fn is_proven(&self, size: u32) -> bool {
        if self.refused.contains_key(&size) {
            return true;
        }
        // The share of loss as Agresti and Coull estimate it from few packets: two more of each kind.
        let (sent, lost) = self.known();
        let share = f64::from(lost + 2) / f64::from(sent + 4);
        let enough = (RESIDUAL_CHANCE.ln() / share.ln()).ceil().max(f64::from(LEAST_LOSSES));
        self.losses.get(&size).is_some_and(|losses| f64::from(*losses) >= enough)
    }

    fn limiter(&self) -> Limiter {
        let named = || self.words.iter().find(|word| word.mtu == self.passed);
        match self.refused.get(&(self.passed + 1)).or_else(named) {
            Some(word) => word.limiter(),
            None => Limiter::Silent,
        }
    }

    fn give_up(&self) -> Ending {
        if self.passed == 0 { Ending::Unanswered } else { Ending::Undecided(self.passed, self.suspect()) }
    }
}

#[cfg(test)]
mod tests;
