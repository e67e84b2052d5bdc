//! What the interfaces of both ends counted during one phase of a run.

use serde::{Deserialize, Serialize};

use super::host::Role;
use super::link::CountersByInterface;
use super::outcome::Outcome;

/// Counters of both ends over the same phase: what grew, by interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseCounters {
    /// What grew at the PC's interfaces.
    pub pc: Outcome<CountersByInterface>,
    /// What grew at the NAS's.
    pub nas: Outcome<CountersByInterface>,
}

impl PhaseCounters {
    /// One end's.
    pub const fn of(&self, role: Role) -> &Outcome<CountersByInterface> {
        match role {
            Role::Pc => &self.pc,
            Role::Nas => &self.nas,
        }
    }
}
