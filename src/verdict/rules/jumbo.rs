//! Jumbo frames that nobody uses.

use super::super::ideal;
use super::super::seen::Seen;
use super::super::words::percent;
use super::list::{Explains, Hit, Rule, RuleDoc};
use super::mtu_advice::{Between, Sizes, both_ways, lasting};
use super::mtu_tcp::slower_disk;
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
        detected: "Both ends use 1500 on a link of 2.5 Gbit/s or more; on a slower one only `weaklink mtu` speaks of it. What it would gain is arithmetic: the headers of each packet, the frame around it and the gap between frames.",
        fix: "Leave it, unless every port between the hosts can be set to the same jumbo size, and nothing else (a disk, a slower link) is the limit.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    let both = [Role::Pc, Role::Nas].iter().all(|role| seen.end(*role).mtu == Some(Mtu::ETHERNET));
    let asked = |line: &BitRate| *line >= FROM || seen.doc.plan.scope.is_mtu();
    let Some(line) = seen.line.filter(|line| both && asked(line) && !seen.local()) else { return Vec::new() };
    let now = ideal::wire_ceiling(line, Mtu::ETHERNET, seen.ip);
    let then = ideal::wire_ceiling(line, Mtu::JUMBO, seen.ip);
    let gain = then.as_f64() / now.as_f64() - 1.0;
    let hit = Hit::new(CODE, Where::Path, Explains::Info).shows(format!(
        "At 1500 the link carries {now}, at 9000 it would carry {then}: {} more ({} a second).",
        percent(gain),
        BitRate(then.0.saturating_sub(now.0)).bytes().to_string().trim_end_matches("/s")
    ));
    if line < FROM {
        return vec![hit.advise(format!(
            "Do not bother: on a link of {line} every processor of today keeps up with packets of 1500 bytes."
        ))];
    }
    if let Some(disk) = slower_disk(seen, now.as_f64()) {
        return vec![hit.advise(format!("Do not bother: {disk}, and the network carries {} as it is.", now.bytes()))];
    }
    let way = both_ways(seen, &Sizes { small: Mtu::ETHERNET, large: Mtu::JUMBO, nas: None }, Between::Subnet);
    let mut hit = hit.advise("Nothing needs to be done; try jumbo frames only if every port between the hosts supports them.");
    hit.advice
        .extend(way.into_iter().map(|text| format!("{text} Then `weaklink mtu` again: one port without them stops transfers.")));
    lasting(&mut hit.advice);
    vec![hit]
}
