//! Moves the look for the place of a limit between the clock, the socket and the inbox.

use std::time::{Duration, Instant};

use super::endpoint::{Sending, Shared};
use super::locate::{Ground, Locate, Move, Nowhere};
use super::measure::padding;
use super::packet::{Family, Kind, probe};
use crate::model::Outcome;
use crate::model::mtu::needless::OWN_INTERFACE;
use crate::model::mtu::{Limiter, Location, PathMtu};
use crate::sys::Stop;

/// The numbers that one look takes: more than its probes.
const NUMBERS: u32 = 512;

/// The least time that is worth a look: some round trips of a LAN.
const LEAST_BUDGET: Duration = Duration::from_millis(20);

/// Tells where packets that are larger than `path` carries are kept back, by probes of limited TTL over UDP.
///
/// Outcomes as of [`look`].
pub(super) fn locate(shared: &Shared, path: &PathMtu, budget: Duration, stop: &Stop) -> Outcome<Location> {
    look(shared.family, path, budget, |look, ground| drive(shared, look, ground, stop))
}

/// Plans the look, lets `drive` move it to its end, and words what came of it; `drive` gives false when it was stopped.
///
/// Skipped where the own interface is the limit, no time is left or the look was stopped; failed where nobody answered.
pub(super) fn look(
    family: Family,
    path: &PathMtu,
    budget: Duration,
    drive: impl FnOnce(&mut Locate, Ground) -> bool,
) -> Outcome<Location> {
    let refuser = match path.limited_by {
        Limiter::LocalInterface => return Outcome::skipped(OWN_INTERFACE),
        Limiter::Router { address, .. } => Some(address),
        Limiter::Silent => None,
    };
    if budget < LEAST_BUDGET {
        return Outcome::skipped(
            "no time was left to look for the place of the limit; more time for the search would change that",
        );
    }
    let ground = Ground {
        small: family.smallest(),
        large: path.mtu.0.saturating_add(1),
        rtt: path.rtt_us.map(Into::into),
        loss: path.loss(),
        refuser,
        budget,
    };
    let mut look = Locate::new(ground);
    if !drive(&mut look, ground) {
        return Outcome::skipped("the look for the place of the limit was stopped before its end");
    }
    match look.location() {
        Ok(location) => Outcome::Measured(location),
        Err(Nowhere::Silence) => Outcome::failed(
            "neither a router nor the other end answered packets of limited TTL, so the place of the limit is not known; \
             routers that answer ICMP time exceeded would change that",
        ),
        Err(Nowhere::Passes) => Outcome::failed(format!(
            "a packet of {} bytes passed when the place of the limit was looked for: the path has changed since the search",
            ground.large
        )),
    }
}

/// Sends and waits as the look asks for, until it ends; false when it was stopped.
fn drive(shared: &Shared, look: &mut Locate, ground: Ground, stop: &Stop) -> bool {
    let first = shared.numbers(NUMBERS);
    let padding = padding(ground.large, first);
    {
        let mut inbox = shared.inbox();
        inbox.acks.clear();
        inbox.refusals.clear();
        inbox.expiries.clear();
    }
    let start = Instant::now();
    while !stop.is_set() {
        shared.take_reports();
        take_answers(shared, look, first, start);
        match look.poll(start.elapsed()) {
            Move::Done => return true,
            Move::Wait(until) => shared
                .wait(start + until, |inbox| !inbox.acks.is_empty() || !inbox.refusals.is_empty() || !inbox.expiries.is_empty()),
            Move::Send { sequence, size, ttl } => {
                let packet = shared.packet(Kind::Probe, first.wrapping_add(sequence), size);
                if let Some(bytes) = probe(&packet, shared.family, &padding) {
                    // What cannot be sent counts as lost.
                    let _: Sending = shared.send_with_ttl(&bytes, size, ttl);
                }
            }
        }
    }
    false
}

/// Tells the look what lies in the inbox.
fn take_answers(shared: &Shared, look: &mut Locate, first: u32, start: Instant) {
    let mut inbox = shared.inbox();
    let own = |number: u32| number.wrapping_sub(first);
    for (number, size, _) in inbox.acks.drain(..) {
        look.acknowledged(own(number), size);
    }
    for (number, router, at) in inbox.expiries.drain(..) {
        look.expired(number.map(own), router, at.saturating_duration_since(start));
    }
    for (number, router, _) in inbox.refusals.drain(..) {
        look.refused(number.map(own), router);
    }
}
