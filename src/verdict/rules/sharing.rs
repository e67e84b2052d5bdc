//! Several PCs at the same moment: what they share, and how.

use super::super::ideal;
use super::super::limits;
use super::super::seen::Seen;
use super::list::{Explains, Hit, Rule, RuleDoc, elsewhere};
use crate::model::finding::Where;
use crate::model::together::Together;
use crate::model::{Direction, Role};
use crate::units::BitRate;

const LIMIT: &str = "network.shared-limit";
const UNFAIR: &str = "network.unfair-share";

pub(super) const RULES: &[Rule] = &[
    Rule {
        doc: RuleDoc {
            code: LIMIT,
            title: "All PCs together get no more than one alone",
            meaning: "What the PCs share is the limit: the NAS, its link, or an uplink between switches. A faster PC or a better cable at a PC changes nothing.",
            detected: "Several PCs measure at the same moment, and the sum of their rates is at most 15 % more than the best of them gets alone.",
            fix: "A faster link at the NAS, or an aggregation there: several PCs, unlike one copy, do use all of its links.",
        },
        check,
    },
    Rule {
        doc: RuleDoc {
            code: UNFAIR,
            title: "The PCs share unevenly",
            meaning: "Information only: at the same moment some PCs get much more than others. Different round-trip times, congestion controls and links do that; so does a link aggregation that puts several PCs on one link.",
            detected: "Jain's index of fairness of the rates while all measured is below 0.8 (1 is even, 1/n is everything for one), among the PCs that get clearly less than alone and those that get more than these. A PC that gets what it gets alone is at its own limit.",
            fix: "Compare links and round-trip times of the PCs; with an aggregation set its hash policy to layer3+4.",
        },
        check: elsewhere,
    },
];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    let section = seen.doc.measurements.throughput.measured().filter(|_| !seen.local());
    let Some(together) = section.and_then(|section| section.together.measured()).filter(|all| all.members.len() > 1) else {
        return Vec::new();
    };
    let both = Direction::BOTH.into_iter();
    both.flat_map(|way| [limit(seen, together, way), unfair(together, way)]).flatten().collect()
}

/// What TCP gets from the NAS's own link, where that is known.
pub(in super::super) fn nas_wire(seen: &Seen<'_>) -> Option<(BitRate, BitRate)> {
    let line = seen.end(Role::Nas).total?;
    Some((line, ideal::wire_ceiling(line, seen.mtu, seen.ip)))
}

fn limit(seen: &Seen<'_>, together: &Together, direction: Direction) -> Option<Hit> {
    let (sum, alone) = (together.sum(direction)?, together.best_alone(direction)?);
    if sum.as_f64() > limits::GROWS * alone.as_f64() {
        return None;
    }
    let full = nas_wire(seen).filter(|(_, wire)| sum.as_f64() >= limits::AT_LINE_RATE * wire.as_f64());
    Some(
        Hit::new(LIMIT, Where::Nas, Explains::Info)
            .towards(direction)
            .shows(format!(
                "{}: {} PCs at once get {sum} together, the best of them alone {alone}: what they share is the limit.",
                direction.arrow(),
                together.members.len()
            ))
            .also(full.map(|(line, _)| format!("That is what the NAS's {line} link can carry.")))
            .advise(match full {
                Some(_) => "Only a faster link at the NAS, or an aggregation there, gives several PCs more.",
                None => "Look at the NAS's link and processor, and at uplinks between switches: the PCs share those.",
            }),
    )
}

fn unfair(together: &Together, direction: Direction) -> Option<Hit> {
    let fairness = together.fairness(direction).filter(|index| *index < limits::FAIR)?;
    let among = together.sharing(direction)?;
    let rates = among.into_iter().filter_map(|at| Some((together.members.get(at)?.together.of(direction)?, at)));
    let rates: Vec<(BitRate, usize)> = rates.collect();
    let (least, most) = (rates.iter().min()?, rates.iter().max()?);
    let who = |at: usize| together.title(at);
    Some(Hit::new(UNFAIR, Where::Path, Explains::Info).towards(direction).shows(format!(
        "{}: while all measured, {} got {} and {} got {} (fairness {fairness:.2}, 1 is even).",
        direction.arrow(),
        who(most.1),
        most.0,
        who(least.1),
        least.0
    )))
}
