//! The look for the place where requests that are too large are kept back.

use std::time::Duration;

use super::Run;
use crate::model::Outcome;
use crate::model::mtu::needless::OWN_INTERFACE;
use crate::model::mtu::{Limiter, Location, PathMtu};
use crate::mtu::locate::{Ground, Locate, Nowhere};
use crate::sys::Stop;

/// The first sequence of a look: behind those of every search.
const FIRST: u32 = 1024;

/// The least time that is worth a look: some round trips of a LAN.
const LEAST_BUDGET: Duration = Duration::from_millis(20);

/// Tells where requests larger than `path` carries are kept back; `budget` counts from the start of the search.
///
/// A request that reaches the peer counts as arrived only when its answer comes back, so a limit on the way back shows as one
/// right before the peer. Skipped where the own interface is the limit, no time is left or `stop` was set; failed where nobody
/// answered.
pub(super) fn locate(run: &mut Run<'_>, path: &PathMtu, budget: Duration, stop: &Stop) -> Outcome<Location> {
    let refuser = match path.limited_by {
        Limiter::LocalInterface => {
            return Outcome::skipped(OWN_INTERFACE);
        }
        Limiter::Router { address, .. } => Some(address),
        Limiter::Silent => None,
    };
    let budget = budget.saturating_sub(run.start.elapsed());
    if budget < LEAST_BUDGET {
        return Outcome::skipped(
            "no time was left to look for the place of the limit; more time for the search would change that",
        );
    }
    let ground = Ground {
        small: run.family.smallest(),
        large: path.mtu.0.saturating_add(1),
        rtt: path.rtt_us.map(Into::into),
        loss: path.loss(),
        refuser,
        budget,
    };
    let mut look = Locate::new(ground);
    if !run.look(&mut look, FIRST, stop) {
        return Outcome::skipped("the look for the place of the limit was stopped before its end");
    }
    match look.location() {
        Ok(location) => Outcome::Measured(location),
        Err(Nowhere::Silence) => Outcome::failed(
            "neither a router nor the host answered echo requests of limited TTL, so the place of the limit is not known; \
             routers that answer ICMP time exceeded would change that",
        ),
        Err(Nowhere::Passes) => Outcome::failed(format!(
            "an echo request of {} bytes was answered when the place of the limit was looked for: the path has changed since \
             the search",
            ground.large
        )),
    }
}
