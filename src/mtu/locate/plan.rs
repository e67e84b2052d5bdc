//! Which probes come next, and what the answers prove.

use std::time::Duration;

use super::{Fate, LONGEST, Locate, MOST_HOPS, Nowhere, Place, Stage};
use crate::model::mtu::{Hop, Location};
use crate::units::Mtu;

/// How many hops are asked at once.
const WINDOW: usize = 4;

/// How often a hop is asked by small packets alone before it counts as silent.
const TRIES: u32 = 2;

/// At how many hops it is tried at once whether large packets arrive, where some are silent.
const PLACES: usize = 3;

/// After how many rounds without any answer the next hop is tried too.
const PATIENCE: u32 = 2;

/// The pause between two rounds at hops that stay silent: a router of few answers needs time, not packets.
const PAUSE: Duration = Duration::from_millis(120);

/// The chance that is left to take loss for a place that large packets do not reach.
const RESIDUAL_CHANCE: f64 = 1e-4;

/// The bounds of how often a large packet must vanish. The upper one is what a Linux router answers at once, less the one
/// answer that told its address.
const LEAST_LOSSES: u32 = 3;
const MOST_LOSSES: u32 = 5;

impl Locate {
    /// Weighs the round that is over.
    pub(super) fn close_round(&mut self) {
        let round: Vec<_> = self.sent.iter().rev().take_while(|sent| sent.round == self.round).copied().collect();
        for ttl in 1..=MOST_HOPS {
            let fate = |large: bool| round.iter().find(|sent| sent.ttl == ttl && sent.large == large).and_then(|sent| sent.fate);
            let (small, large) = (fate(false), fate(true));
            let Some(place) = self.place_mut(ttl) else { continue };
            place.tries += u32::from(small.is_some());
            place.larges += u32::from(large.is_some());
            match (large, small) {
                (Some(Fate::Lost), Some(Fate::Expired)) => place.losses += 1,
                (Some(Fate::Lost), Some(Fate::Lost)) => place.silences += 1,
                _ => {}
            }
        }
    }

    /// Fills the queue for the next round; false when nothing is left to be learnt.
    pub(super) fn plan(&mut self, now: Duration) -> bool {
        self.round += 1;
        if self.stage == Stage::First {
            self.stage = Stage::Discover;
        }
        if self.stage == Stage::Discover {
            let end = self.peer_at().unwrap_or(MOST_HOPS + 1);
            let open = |ttl: &u8| self.place(*ttl).is_some_and(|place| place.is_silent() && place.tries < TRIES);
            self.queue = (1..end).filter(open).take(WINDOW).map(|ttl| (ttl, false)).collect();
            if !self.queue.is_empty() {
                return true;
            }
            self.stage = Stage::Large;
            if let Some(router) = self.ground.refuser {
                self.saw_large(router, end);
            }
        }
        self.plan_large(now)
    }

    fn plan_large(&mut self, now: Duration) -> bool {
        let (reached, bound) = (self.reached(), self.bound());
        let mut chosen = Vec::new();
        for ttl in reached + 1..bound {
            chosen.push(ttl);
            let patient = self.place(ttl).is_some_and(|place| place.silences < PATIENCE);
            if patient || chosen.len() >= PLACES {
                break;
            }
        }
        for ttl in &chosen {
            let known = self.place(*ttl).copied().unwrap_or_default();
            self.queue.push_back((*ttl, true));
            // Where somebody is known to be, the large packet alone may do, and it spares the router an answer.
            if known.address.is_none() || known.larges > 0 {
                self.queue.push_back((*ttl, false));
            }
        }
        let silent = |ttl: &u8| self.place(*ttl).is_some_and(|place| place.silences >= PATIENCE);
        if chosen.iter().all(silent) {
            self.pause = (now + self.timeout() + PAUSE).min(LONGEST);
        }
        !chosen.is_empty()
    }

    /// The last place that large packets reach.
    fn reached(&self) -> u8 {
        let end = self.peer_at().unwrap_or(MOST_HOPS + 1);
        (1..end).rev().find(|ttl| self.place(*ttl).is_some_and(|place| place.large)).unwrap_or(0)
    }

    /// The first place behind that which large packets certainly do not reach.
    fn bound(&self) -> u8 {
        let reached = self.reached();
        let refuser =
            self.ground.refuser.filter(|_| self.place(reached).is_some_and(|place| place.address == self.ground.refuser));
        if refuser.is_some() {
            return reached + 1;
        }
        let end = self.peer_at().unwrap_or_else(|| self.last_heard() + 1);
        let enough = self.enough();
        let proven = |place: &Place| place.refused || place.losses >= enough;
        (reached + 1..end).find(|ttl| self.place(*ttl).is_some_and(proven)).unwrap_or(end)
    }

    /// How often a large packet must vanish before a small one that is answered.
    fn enough(&self) -> u32 {
        let (sent, lost) = self.ground.loss;
        let share = f64::from(lost + 1) / f64::from(sent + 2);
        ((RESIDUAL_CHANCE.ln() / share.ln()).ceil() as u32).clamp(LEAST_LOSSES, MOST_LOSSES)
    }

    fn last_heard(&self) -> u8 {
        (1..=MOST_HOPS).rev().find(|ttl| self.place(*ttl).is_some_and(|place| place.address.is_some())).unwrap_or(0)
    }

    /// The place, or why there is none.
    pub(super) fn conclude(&self) -> Result<Location, Nowhere> {
        if self.passes {
            return Err(Nowhere::Passes);
        }
        let (peer_at, last_heard) = (self.peer_at(), self.last_heard());
        if peer_at.is_none() && last_heard == 0 {
            return Err(Nowhere::Silence);
        }
        let (reached, bound) = (self.reached(), self.bound());
        let routers = peer_at.map_or(last_heard, |peer| peer - 1);
        let hop = |ttl: u8| {
            let place = self.place(ttl).copied().unwrap_or_default();
            Hop { ttl, address: place.address, rtt_us: place.rtt.map(Into::into), large_arrived: ttl <= reached }
        };
        // A place that answers nobody is neither the last that is reached nor the first that is not.
        let answers = |ttl: &u8| Some(*ttl) == peer_at || self.place(*ttl).is_some_and(|place| place.address.is_some());
        let end = peer_at.unwrap_or(last_heard);
        let missing = (bound..=end).find(answers);
        Ok(Location { size: Mtu(self.ground.large), hops: (1..=routers).map(hop).collect(), peer_at, reached, missing })
    }
}
