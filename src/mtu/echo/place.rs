//! The look for the place where requests that are too large are kept back.

use std::time::Duration;

use super::Run;
use crate::model::Outcome;
use crate::model::mtu::{Location, PathMtu};
use crate::mtu::place::look;
use crate::sys::Stop;

/// The first sequence of a look: behind those of every search.
const FIRST: u32 = 1024;

/// Tells where requests larger than `path` carries are kept back; `budget` counts from the start of the search.
///
/// A request that reaches the peer counts as arrived only when its answer comes back, so a limit on the way back shows as one
/// right before the peer. Outcomes as of [`look`].
pub(super) fn locate(run: &mut Run<'_>, path: &PathMtu, budget: Duration, stop: &Stop) -> Outcome<Location> {
    let budget = budget.saturating_sub(run.start.elapsed());
    look(run.family, path, budget, |look, _| run.look(look, FIRST, stop))
}
