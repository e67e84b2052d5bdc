//! What the interfaces of both ends counted during one phase of a run.

use serde::{Deserialize, Serialize};

use super::host::Role;
use super::link::{Counters, CountersByInterface};
use super::outcome::Outcome;
use crate::units::Elapsed;

/// More interfaces than these lie on no way from an address to its cables.
const MOST_INTERFACES: usize = 64;
/// More counters than these no driver has; it is the number that our own end reads.
const MOST_COUNTERS: usize = 1024;
/// A name of more bytes is none of an interface (15) or of a counter (32).
const LONGEST_NAME: usize = 64;

/// Counters of both ends over the same phase: what grew, by interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseCounters {
    /// How long it was, by the PC's clock, both looks included.
    pub elapsed_us: Elapsed,
    /// What grew at the PC's interfaces.
    pub pc: Outcome<CountersByInterface>,
    /// What grew at the NAS's.
    pub nas: Outcome<CountersByInterface>,
}

impl PhaseCounters {
    /// What both ends told; of what no honest end tells, as much as one would.
    pub fn new(elapsed_us: Elapsed, pc: Outcome<CountersByInterface>, nas: Outcome<CountersByInterface>) -> Self {
        Self { elapsed_us, pc: pc.map(bounded), nas: nas.map(bounded) }
    }

    /// One end's.
    pub const fn of(&self, role: Role) -> &Outcome<CountersByInterface> {
        match role {
            Role::Pc => &self.pc,
            Role::Nas => &self.nas,
        }
    }
}

fn bounded(all: CountersByInterface) -> CountersByInterface {
    let short = |name: &String| name.len() <= LONGEST_NAME;
    let one = |counters: Counters| Counters(counters.0.into_iter().filter(|(name, _)| short(name)).take(MOST_COUNTERS).collect());
    let interfaces = all.into_iter().filter(|(name, _)| short(name)).take(MOST_INTERFACES);
    interfaces.map(|(name, counters)| (name, one(counters))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(count: usize) -> Counters {
        Counters((0..count).map(|number| (format!("rx_{number}"), 1)).collect())
    }

    #[test]
    fn each_end_has_its_own_counters_and_they_survive_the_trip() {
        let of = |name: &str| Outcome::Measured(CountersByInterface::from([(name.to_owned(), counters(2))]));
        let phase = PhaseCounters::new(Elapsed(5), of("eth0"), of("eth1"));
        assert_eq!((phase.of(Role::Pc), phase.of(Role::Nas)), (&of("eth0"), &of("eth1")));
        let text = serde_json::to_string(&phase).unwrap();
        assert_eq!(serde_json::from_str::<PhaseCounters>(&text).unwrap(), phase);
    }

    #[test]
    fn an_end_that_tells_without_bound_is_cut_short() {
        let many = (0..9_000).map(|number| (format!("eth{number}"), counters(if number < 2 { 5_000 } else { 1 })));
        let long = [("x".repeat(1 << 20), counters(1)), ("eth0".to_owned(), Counters([("y".repeat(1 << 20), 7)].into()))];
        let phase = PhaseCounters::new(Elapsed(1), Outcome::Measured(long.into()), Outcome::Measured(many.collect()));
        let (pc, nas) = (phase.pc.measured().unwrap(), phase.nas.measured().unwrap());
        assert_eq!((pc.len(), pc["eth0"].0.len()), (1, 0));
        assert_eq!((nas.len(), nas["eth0"].0.len(), nas["eth1"].0.len()), (MOST_INTERFACES, MOST_COUNTERS, MOST_COUNTERS));
    }
}
