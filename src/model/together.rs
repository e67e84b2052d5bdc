//! Several PCs against one NAS at the same moment.

use serde::{Deserialize, Serialize};

use super::host::Direction;
use crate::units::BitRate;

/// What all PCs of one group measured: each alone, then all at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Together {
    /// The name that the PCs met under.
    pub name: String,
    /// Which of them wrote this report, counted from 0.
    pub own: u32,
    /// The PCs in the order of their coming.
    pub members: Vec<Member>,
    /// Why it ended before all was measured; none when it did not.
    #[serde(default)]
    pub ended: Option<String>,
}

/// One PC of a group; a rate is none where its pass failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// Its address as the NAS sees it.
    pub address: String,
    /// Its goodput with nobody else.
    pub alone: BothRates,
    /// Its goodput while all measured, each in the time that was common to all.
    pub together: BothRates,
}

/// A rate for each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BothRates {
    /// PC → NAS.
    pub upload_bps: Option<BitRate>,
    /// NAS → PC.
    pub download_bps: Option<BitRate>,
}

impl BothRates {
    /// One direction's rate.
    pub const fn of(&self, direction: Direction) -> Option<BitRate> {
        match direction {
            Direction::Upload => self.upload_bps,
            Direction::Download => self.download_bps,
        }
    }
}

impl Together {
    /// A member in words, counted from 0: `PC 2, 192.168.1.11`, with `(this PC)` behind the one that wrote this report. Two PCs behind one
    /// address are told apart by their numbers.
    pub fn title(&self, index: usize) -> String {
        let address = self.members.get(index).map_or("", |member| member.address.as_str());
        let own = if u32::try_from(index) == Ok(self.own) { " (this PC)" } else { "" };
        format!("PC {}, {address}{own}", index.saturating_add(1))
    }

    /// The sum of all rates while all measured, if every PC has one.
    pub fn sum(&self, direction: Direction) -> Option<BitRate> {
        let rates: Option<Vec<u64>> = self.members.iter().map(|m| m.together.of(direction).map(|rate| rate.0)).collect();
        rates.filter(|rates| !rates.is_empty()).map(|rates| BitRate(rates.into_iter().fold(0, u64::saturating_add)))
    }

    /// The best rate of a PC alone.
    pub fn best_alone(&self, direction: Direction) -> Option<BitRate> {
        self.members.iter().filter_map(|m| m.alone.of(direction)).max()
    }

    /// How evenly the PCs shared: Jain's index, (Σx)² / (n·Σx²), 1 for equal shares and 1/n when one took everything.
    pub fn fairness(&self, direction: Direction) -> Option<f64> {
        let rates: Option<Vec<f64>> = self.members.iter().map(|m| m.together.of(direction).map(BitRate::as_f64)).collect();
        let rates = rates?;
        let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|x| x * x).sum::<f64>());
        (squares > 0.0).then(|| sum * sum / (rates.len() as f64 * squares))
    }
}
