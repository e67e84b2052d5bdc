//! Link modes: the kernel's bits, their names and their speeds.

use crate::model::link::LinkModes;
use crate::model::nic::ModeNames;
use crate::units::BitRate;

/// The names of `ETHTOOL_LINK_MODE_*_BIT`, by bit, as the kernel's own set of strings (`ETH_SS_LINK_MODES`) gives them: up to
/// bit 120 in 6.18, the last four in 7.0. Those without a speed are no modes: connectors, pause, autoneg, FEC.
const NAMES: [&str; 125] = [
    "10baseT/Half",
    "10baseT/Full",
    "100baseT/Half",
    "100baseT/Full",
    "1000baseT/Half",
    "1000baseT/Full",
    "Autoneg",
    "TP",
    "AUI",
    "MII",
    "FIBRE",
    "BNC",
    "10000baseT/Full",
    "Pause",
    "Asym_Pause",
    "2500baseX/Full",
    "Backplane",
    "1000baseKX/Full",
    "10000baseKX4/Full",
    "10000baseKR/Full",
    "10000baseR_FEC",
    "20000baseMLD2/Full",
    "20000baseKR2/Full",
    "40000baseKR4/Full",
    "40000baseCR4/Full",
    "40000baseSR4/Full",
    "40000baseLR4/Full",
    "56000baseKR4/Full",
    "56000baseCR4/Full",
    "56000baseSR4/Full",
    "56000baseLR4/Full",
    "25000baseCR/Full",
    "25000baseKR/Full",
    "25000baseSR/Full",
    "50000baseCR2/Full",
    "50000baseKR2/Full",
    "100000baseKR4/Full",
    "100000baseSR4/Full",
    "100000baseCR4/Full",
    "100000baseLR4_ER4/Full",
    "50000baseSR2/Full",
    "1000baseX/Full",
    "10000baseCR/Full",
    "10000baseSR/Full",
    "10000baseLR/Full",
    "10000baseLRM/Full",
    "10000baseER/Full",
    "2500baseT/Full",
    "5000baseT/Full",
    "None",
    "RS",
    "BASER",
    "50000baseKR/Full",
    "50000baseSR/Full",
    "50000baseCR/Full",
    "50000baseLR_ER_FR/Full",
    "50000baseDR/Full",
    "100000baseKR2/Full",
    "100000baseSR2/Full",
    "100000baseCR2/Full",
    "100000baseLR2_ER2_FR2/Full",
    "100000baseDR2/Full",
    "200000baseKR4/Full",
    "200000baseSR4/Full",
    "200000baseLR4_ER4_FR4/Full",
    "200000baseDR4/Full",
    "200000baseCR4/Full",
    "100baseT1/Full",
    "1000baseT1/Full",
    "400000baseKR8/Full",
    "400000baseSR8/Full",
    "400000baseLR8_ER8_FR8/Full",
    "400000baseDR8/Full",
    "400000baseCR8/Full",
    "LLRS",
    "100000baseKR/Full",
    "100000baseSR/Full",
    "100000baseLR_ER_FR/Full",
    "100000baseCR/Full",
    "100000baseDR/Full",
    "200000baseKR2/Full",
    "200000baseSR2/Full",
    "200000baseLR2_ER2_FR2/Full",
    "200000baseDR2/Full",
    "200000baseCR2/Full",
    "400000baseKR4/Full",
    "400000baseSR4/Full",
    "400000baseLR4_ER4_FR4/Full",
    "400000baseDR4/Full",
    "400000baseCR4/Full",
    "100baseFX/Half",
    "100baseFX/Full",
    "10baseT1L/Full",
    "800000baseCR8/Full",
    "800000baseKR8/Full",
    "800000baseDR8/Full",
    "800000baseDR8_2/Full",
    "800000baseSR8/Full",
    "800000baseVR8/Full",
    "10baseT1S/Full",
    "10baseT1S/Half",
    "10baseT1S_P2MP/Half",
    "10baseT1BRR/Full",
    "200000baseCR/Full",
    "200000baseKR/Full",
    "200000baseDR/Full",
    "200000baseDR_2/Full",
    "200000baseSR/Full",
    "200000baseVR/Full",
    "400000baseCR2/Full",
    "400000baseKR2/Full",
    "400000baseDR2/Full",
    "400000baseDR2_2/Full",
    "400000baseSR2/Full",
    "400000baseVR2/Full",
    "800000baseCR4/Full",
    "800000baseKR4/Full",
    "800000baseDR4/Full",
    "800000baseDR4_2/Full",
    "800000baseSR4/Full",
    "800000baseVR4/Full",
    "1600000baseCR8/Full",
    "1600000baseKR8/Full",
    "1600000baseDR8/Full",
    "1600000baseDR8_2/Full",
];

/// Bits of connectors and features among the modes (linux/ethtool.h).
pub(in crate::link) mod bit {
    /// Pause frames both ways.
    pub(in crate::link) const PAUSE: usize = 13;
    /// Pause frames one way.
    pub(in crate::link) const ASYM_PAUSE: usize = 14;
    /// No forward error correction.
    pub(in crate::link) const FEC_NONE: usize = 49;
    /// Reed-Solomon.
    pub(in crate::link) const FEC_RS: usize = 50;
    /// Fire code (BASE-R).
    pub(in crate::link) const FEC_BASER: usize = 51;
    /// Reed-Solomon of low latency.
    pub(in crate::link) const FEC_LLRS: usize = 74;
}

/// A mask of link modes has this many words at most (a signed byte counts them in `struct ethtool_link_settings`).
const WORDS: usize = 127;

/// A set of the kernel's link modes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::link) struct Mask(Vec<u32>);

impl Mask {
    /// From the kernel's words, lowest bits first; what is beyond any kernel's is left out, so are empty words at the end.
    pub(in crate::link) fn new(mut words: Vec<u32>) -> Self {
        words.truncate(WORDS);
        while words.last() == Some(&0) {
            words.pop();
        }
        Self(words)
    }

    /// Adds one bit; a bit beyond any kernel's is left out.
    pub(in crate::link) fn add(&mut self, bit: usize) {
        if bit < WORDS * 32 {
            if self.0.len() <= bit / 32 {
                self.0.resize(bit / 32 + 1, 0);
            }
            if let Some(word) = self.0.get_mut(bit / 32) {
                *word |= 1 << (bit % 32);
            }
        }
    }

    /// Whether a bit is in it.
    pub(in crate::link) fn has(&self, bit: usize) -> bool {
        self.0.get(bit / 32).is_some_and(|word| word >> (bit % 32) & 1 == 1)
    }

    /// Whether nothing is in it.
    pub(in crate::link) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn bits(&self) -> impl Iterator<Item = usize> {
        (0..self.0.len() * 32).filter(|bit| self.has(*bit))
    }

    /// The speeds of its modes, ascending and without doubles.
    pub(in crate::link) fn speeds(&self) -> Vec<BitRate> {
        let mut speeds: Vec<BitRate> = self.bits().filter_map(|bit| speed_of(NAMES.get(bit)?)).collect();
        speeds.sort_unstable();
        speeds.dedup();
        speeds
    }

    /// The names of its modes; a bit that this version does not know is `bit N`.
    pub(in crate::link) fn names(&self) -> Vec<String> {
        let name = |bit: usize| match NAMES.get(bit) {
            Some(name) => speed_of(name).map(|_| (*name).to_owned()),
            None => Some(format!("bit {bit}")),
        };
        self.bits().filter_map(name).collect()
    }
}

/// `2500baseT/Full` is 2500 Mbit/s; a name without a number before `base` is no mode.
fn speed_of(name: &str) -> Option<BitRate> {
    name.split_once("base")?.0.parse().ok().map(BitRate::from_mbit)
}

/// What a port can do, what it offers, and what its partner offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::link) struct Masks {
    /// What the port can do according to its driver.
    pub supported: Mask,
    /// What it offers.
    pub advertised: Mask,
    /// What the partner offers; empty when unknown.
    pub partner: Mask,
}

impl Masks {
    /// The speeds of all three.
    pub(in crate::link) fn speeds(&self) -> LinkModes {
        LinkModes {
            supported_bps: self.supported.speeds(),
            advertised_bps: self.advertised.speeds(),
            partner_bps: self.partner.speeds(),
        }
    }

    /// The names of all three.
    pub(in crate::link) fn names(&self) -> ModeNames {
        ModeNames { supported: self.supported.names(), advertised: self.advertised.names(), partner: self.partner.names() }
    }
}
