//! A fast link with packets of 1500 bytes.

use super::super::ideal;
use super::super::seen::Seen;
use super::super::words::percent;
use super::list::{Explains, Hit, Rule, RuleDoc};
use crate::model::Role;
use crate::model::finding::Where;
use crate::units::{BitRate, Mtu};

const CODE: &str = "network.jumbo-unused";

/// Below this the gain in megabytes is not worth the trouble of setting every port.
const FROM: BitRate = BitRate::from_mbit(2_500);

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "Jumbo frames are not used",
        meaning: "Information only: with an MTU of 9000 the same link carries about 5 % more payload and costs less CPU. Wrongly set it stops transfers.",
        detected: "Both ends use 1500 on a link of 2.5 Gbit/s or more.",
        fix: "Leave it, unless every port between the hosts can be set to the same jumbo size.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    let both = [Role::Pc, Role::Nas].iter().all(|role| seen.end(*role).mtu == Some(Mtu::ETHERNET));
    let Some(line) = seen.line.filter(|line| both && *line >= FROM && !seen.local()) else { return Vec::new() };
    let now = ideal::wire_ceiling(line, Mtu::ETHERNET, seen.ip);
    let then = ideal::wire_ceiling(line, Mtu::JUMBO, seen.ip);
    let gain = then.as_f64() / now.as_f64() - 1.0;
    vec![
        Hit::new(CODE, Where::Path, Explains::Info)
            .shows(format!("At 1500 the link carries {now}, at 9000 it would carry {then}: {} more.", percent(gain)))
            .advise("Nothing needs to be done; try jumbo frames only if every port between the hosts supports them."),
    ]
}
