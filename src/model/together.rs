//! Several PCs against one NAS at the same moment.

use serde::{Deserialize, Serialize};

use super::host::Direction;
use crate::units::BitRate;

/// A PC that keeps this share of what it gets alone has lost nothing: two passes of one kind differ by as much on busy hosts.
const KEPT: f64 = 0.90;

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

    /// The PCs, counted from 0, that get clearly less than alone while all measure; none where a rate is missing.
    pub fn losers(&self, direction: Direction) -> Option<Vec<usize>> {
        let rates: Option<Vec<(f64, Option<BitRate>)>> =
            self.members.iter().map(|m| Some((m.together.of(direction)?.as_f64(), m.alone.of(direction)))).collect();
        let lost = |(now, alone): &(f64, Option<BitRate>)| alone.is_none_or(|alone| *now < KEPT * alone.as_f64());
        Some(rates?.iter().enumerate().filter(|(_, rates)| lost(rates)).map(|(at, _)| at).collect())
    }

    /// The PCs among which a share can be uneven: those that get clearly less than alone, and who gets more than the least of them. A PC
    /// that gets what it gets alone, and no more than those, is at the limit of its own line (max-min fairness). None where a rate is
    /// missing.
    pub fn sharing(&self, direction: Direction) -> Option<Vec<usize>> {
        let losers = self.losers(direction)?;
        let rate = |at: usize| self.members.get(at).and_then(|m| m.together.of(direction));
        let least = losers.iter().filter_map(|at| rate(*at)).min();
        let counts = |at: &usize| losers.contains(at) || least.is_some_and(|least| rate(*at).is_some_and(|own| own > least));
        Some((0..self.members.len()).filter(counts).collect())
    }

    /// How evenly the PCs shared that could share ([`Self::sharing`]): Jain's index, (Σx)² / (n·Σx²), 1 for equal shares and 1/n when one
    /// took everything. None where fewer than two did, or a rate is missing.
    pub fn fairness(&self, direction: Direction) -> Option<f64> {
        let among = self.sharing(direction).filter(|among| among.len() > 1)?;
        let rate = |at: &usize| Some(self.members.get(*at)?.together.of(direction)?.as_f64());
        let rates: Vec<f64> = among.iter().filter_map(rate).collect();
        let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|x| x * x).sum::<f64>());
        (squares > 0.0).then(|| sum * sum / (rates.len() as f64 * squares))
    }
}
