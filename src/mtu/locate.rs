//! Where on the path packets of a certain size are kept back: pure, told what happened, asked what comes next.
//!
//! A packet of limited TTL ends at a router, which says so by ICMP. A small one tells who is there; a large one that is
//! answered too tells that large packets come so far. One that is not answered tells nothing by itself, for routers answer
//! seldom (Linux: six at once, then one a second for each destination): only where a small packet sent right *behind* the
//! large one is answered, and that again and again, the large one did not arrive. The answer that a router grants goes to
//! the first of the two.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use crate::model::mtu::Location;

mod plan;
#[cfg(test)]
mod tests;

/// How many hops are looked at; more than any path between a PC and a NAS has.
pub(crate) const MOST_HOPS: u8 = 30;

/// The most probes: 30 hops with two small ones each, and what fits the time at one a round for the rest.
const MOST_PROBES: usize = 250;

/// The time after which the place is not looked for any longer: a router that has just used up its answers on the search
/// grants the next one within a second.
const LONGEST: Duration = Duration::from_millis(1300);

/// What an answer may take beyond the round trip: routers make ICMP messages beside their work.
const SLACK: Duration = Duration::from_millis(40);

/// The bounds of the time for which an answer is awaited.
const LEAST_TIMEOUT: Duration = Duration::from_millis(50);
const LONGEST_TIMEOUT: Duration = Duration::from_millis(400);

/// What is known before the place is looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ground {
    /// The size of the packets that show who is there, in bytes.
    pub(crate) small: u32,
    /// The size of packets that do not pass, in bytes.
    pub(crate) large: u32,
    /// The least round-trip time to the peer.
    pub(crate) rtt: Option<Duration>,
    /// How many packets that pass were sent, and how many were lost.
    pub(crate) loss: (u32, u32),
    /// The router that refused packets of the large size, if one did.
    pub(crate) refuser: Option<IpAddr>,
    /// The time that may be used.
    pub(crate) budget: Duration,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    /// Send this probe now.
    Send {
        /// Its number, counted from zero.
        sequence: u32,
        /// The size of the IP packet in bytes.
        size: u32,
        /// After how many hops it ends.
        ttl: u8,
    },
    /// Wait for answers, at most until this time.
    Wait(Duration),
    /// Nothing more will be learnt.
    Done,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nowhere {
    /// Nobody answered a packet of limited TTL, not even the peer.
    Silence,
    /// A packet of the large size reached the peer.
    Passes,
}

/// What became of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// A router says that its TTL was used up there.
    Expired,
    /// It reached the peer.
    Arrived,
    /// A router says that it is too large.
    Refused,
    /// No answer came in time.
    Lost,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    ttl: u8,
    large: bool,
    at: Duration,
    round: u32,
    fate: Option<Fate>,
}

/// What is known of one distance from here.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    address: Option<IpAddr>,
    rtt: Option<Duration>,
    /// Small probes that were sent there, and whether the peer answered one.
    tries: u32,
    peer: bool,
    /// Whether a large packet arrived.
    large: bool,
    /// Rounds in which the small packet was answered and the large one before it was not.
    losses: u32,
    /// Rounds in which neither was answered.
    silences: u32,
    /// Large probes that were sent there.
    larges: u32,
    /// Whether a router refused a large packet on its way there.
    refused: bool,
}

/// Which kind of probes comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Whether anybody lies between.
    First,
    /// Who lies between.
    Discover,
    /// How far large packets come.
    Large,
}

/// One look for the place.
#[derive(Clone, Debug)]
pub(crate) struct Locate {
    ground: Ground,
    /// What is known of the distances from 1 on.
    places: Vec<Place>,
    sent: Vec<Sent>,
    queue: VecDeque<(u8, bool)>,
    round: u32,
    stage: Stage,
    /// The end of the pause before the next round.
    pause: Duration,
    /// Whether routers quote so little that only one probe may be under way.
    brief: bool,
    passes: bool,
}

impl Locate {
    /// A look that has not begun.
    pub(crate) fn new(ground: Ground) -> Self {
        Self {
            ground,
            places: vec![Place::default(); MOST_HOPS.into()],
            sent: Vec::new(),
            queue: VecDeque::from([(1, false)]),
            round: 0,
            stage: Stage::First,
            pause: Duration::ZERO,
            brief: false,
            passes: false,
        }
    }

    /// What to do at the time `now`, counted from the start of the look.
    pub(crate) fn poll(&mut self, now: Duration) -> Move {
        let timeout = self.timeout();
        for sent in self.sent.iter_mut().filter(|sent| sent.fate.is_none() && sent.at + timeout <= now) {
            sent.fate = Some(Fate::Lost);
        }
        if self.passes || now >= LONGEST.min(self.ground.budget) || self.sent.len() >= MOST_PROBES {
            return Move::Done;
        }
        let open = self.open_until();
        let may_send = open.is_none() || !self.brief;
        if self.queue.is_empty() && open.is_none() {
            if now < self.pause {
                return Move::Wait(self.pause);
            }
            self.close_round();
            if !self.plan(now) {
                return Move::Done;
            }
        }
        match self.queue.front().copied().filter(|_| may_send) {
            Some((ttl, large)) => {
                self.queue.pop_front();
                let sequence = self.sent.len() as u32;
                self.sent.push(Sent { ttl, large, at: now, round: self.round, fate: None });
                let size = if large { self.ground.large } else { self.ground.small };
                Move::Send { sequence, size, ttl }
            }
            None => Move::Wait(open.unwrap_or(now + timeout)),
        }
    }

    /// The peer says that the probe arrived, and how large.
    pub(crate) fn acknowledged(&mut self, sequence: u32, size: u32) {
        let Some(sent) = self.sent.get_mut(sequence as usize) else { return };
        let large = sent.large;
        if size != if large { self.ground.large } else { self.ground.small } {
            return;
        }
        sent.fate = Some(Fate::Arrived);
        let ttl = sent.ttl;
        self.passes |= large;
        if let Some(place) = self.place_mut(ttl) {
            place.peer = true;
        }
    }

    /// A router says that a probe's TTL was used up; the probe is known if the router quoted enough of it.
    pub(crate) fn expired(&mut self, sequence: Option<u32>, router: IpAddr, now: Duration) {
        let Some(index) = self.index(sequence, Some(router)) else { return };
        let Some(sent) = self.sent.get_mut(index) else { return };
        if sent.fate == Some(Fate::Arrived) {
            return;
        }
        sent.fate = Some(Fate::Expired);
        let Sent { ttl, large, at, .. } = *sent;
        let Some(place) = self.place_mut(ttl) else { return };
        place.large |= large;
        place.address.get_or_insert(router);
        let rtt = now.saturating_sub(at);
        place.rtt = Some(place.rtt.map_or(rtt, |least| least.min(rtt)));
    }

    /// A router says that a probe was too large for what comes behind it.
    pub(crate) fn refused(&mut self, sequence: Option<u32>, router: IpAddr) {
        let Some(index) = self.index(sequence, None) else { return };
        let Some(sent) = self.sent.get_mut(index).filter(|sent| sent.large && sent.fate != Some(Fate::Arrived)) else { return };
        sent.fate = Some(Fate::Refused);
        let ttl = sent.ttl;
        if let Some(place) = self.place_mut(ttl) {
            place.refused = true;
        }
        self.saw_large(router, ttl);
    }

    /// The router saw a large packet, and it lies before `ttl`.
    fn saw_large(&mut self, router: IpAddr, ttl: u8) {
        let known = self.places.iter().position(|place| place.address == Some(router));
        // A router that answers no used up TTL: there must be only one place for it.
        let mut unknown = (0..usize::from(ttl).saturating_sub(1)).filter(|at| self.places.get(*at).is_some_and(Place::is_silent));
        let lone = unknown.next().filter(|_| unknown.next().is_none());
        if let Some(place) = known.or(lone).and_then(|at| self.places.get_mut(at)) {
            place.address = Some(router);
            place.large = true;
        }
    }

    /// Which probe an answer is about. Without a quotation it must be the only one under way, and the router a new one.
    fn index(&mut self, sequence: Option<u32>, router: Option<IpAddr>) -> Option<usize> {
        if let Some(sequence) = sequence {
            return Some(sequence as usize);
        }
        let mut open =
            self.sent.iter().enumerate().filter(|(_, sent)| sent.fate.is_none()).map(|(index, sent)| (index, sent.ttl));
        let (index, ttl) = open.next()?;
        if open.next().is_some() {
            if !self.brief {
                // What is under way is lost; from now on one after the other, and nothing counts as tried.
                self.brief = true;
                self.places.iter_mut().for_each(|place| place.tries = 0);
            }
            return None;
        }
        let elsewhere = |at: usize, place: &Place| at + 1 != usize::from(ttl) && router.is_some() && place.address == router;
        let late = self.places.iter().enumerate().any(|(at, place)| elsewhere(at, place));
        (!late).then_some(index)
    }

    /// The place, or why there is none.
    pub(crate) fn location(&self) -> Result<Location, Nowhere> {
        self.conclude()
    }

    fn place(&self, ttl: u8) -> Option<&Place> {
        self.places.get(usize::from(ttl).checked_sub(1)?)
    }

    fn place_mut(&mut self, ttl: u8) -> Option<&mut Place> {
        self.places.get_mut(usize::from(ttl).checked_sub(1)?)
    }

    fn timeout(&self) -> Duration {
        let rtt = self.ground.rtt.unwrap_or_default();
        (rtt + rtt / 4 + SLACK).clamp(LEAST_TIMEOUT, LONGEST_TIMEOUT)
    }

    /// Until when the answers of this round are worth waiting for; none when nothing is awaited.
    fn open_until(&self) -> Option<Duration> {
        let peer_at = self.peer_at().unwrap_or(u8::MAX);
        let this_round = self.sent.iter().rev().take_while(|sent| sent.round == self.round);
        // Behind the peer there is nothing to be learnt.
        let awaited = this_round.filter(|sent| sent.fate.is_none() && sent.ttl <= peer_at && !self.is_told(sent));
        awaited.map(|sent| sent.at + self.timeout()).max()
    }

    /// Whether what the probe asks is known already.
    fn is_told(&self, sent: &Sent) -> bool {
        self.place(sent.ttl).is_some_and(|place| place.large || (!sent.large && place.peer))
    }

    /// The least TTL with which the peer was reached.
    fn peer_at(&self) -> Option<u8> {
        (1..=MOST_HOPS).find(|ttl| self.place(*ttl).is_some_and(|place| place.peer))
    }
}

impl Place {
    const fn is_silent(&self) -> bool {
        self.address.is_none() && !self.peer
    }
}
