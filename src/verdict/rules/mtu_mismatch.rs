//! The two ends disagree about the size of packets.

use super::super::seen::Seen;
use super::list::{Explains, Hit, Rule, RuleDoc};
use super::mtu_advice::{Sizes, TAG, both_ways};
use super::mtu_suspects::is_routed;
use crate::model::mtu::Limiter;
use crate::model::{Direction, Role};
use crate::units::Mtu;

const CODE: &str = "network.mtu-mismatch";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "The two ends have different MTUs",
        meaning: "One end sends packets that the other one does not accept. TCP agrees on a smaller segment at its start and survives; large UDP packets and ping do not, and any segment size agreed wrongly stalls.",
        detected: "The MTU of the interface that the route uses differs between PC and NAS. What passes towards the smaller end tells what its interface does with larger frames: it drops them, it takes a VLAN tag's four bytes more, or its driver accepts them. Where all large packets pass, or a router between the hosts says what fits, it is information only.",
        fix: "Set the same MTU at both ends and on every switch port between them.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    let (Some(pc), Some(nas)) = (seen.end(Role::Pc).mtu, seen.end(Role::Nas).mtu) else { return Vec::new() };
    if pc == nas {
        return Vec::new();
    }
    let larger = if pc > nas { Role::Pc } else { Role::Nas };
    let (large, small) = (pc.max(nas), pc.min(nas));
    // The large packets go from the end with the large MTU towards the other.
    let way = if larger == Role::Pc { Direction::Upload } else { Direction::Download };
    let path = seen.path(way);
    let harmless = path.is_some_and(|path| path.mtu >= large || matches!(path.limited_by, Limiter::Router { .. }));
    let explains = if harmless { Explains::Info } else { Explains::Fault };
    let mut hit = Hit::new(CODE, larger, explains)
        .weight(0.9, 1)
        .towards(way)
        .shows(format!("The MTU is {pc} at the PC and {nas} at the NAS."))
        .also(path.map(|path| format!("{}: the largest packet that passed has {} bytes.", way.arrow(), path.mtu)));
    if let Some(path) = path {
        // Behind a router it is the router that drops.
        let direct = !path.location.measured().is_some_and(is_routed);
        let shown = direct && (path.limited_by == Limiter::Silent || path.mtu >= large);
        hit.evidence.extend(interface(larger.peer(), path.mtu, small, large).filter(|_| shown));
        if let Limiter::Router { address, next_hop_mtu } = &path.limited_by
            && path.is_told()
        {
            hit = hit.shows(format!("The router {address} says that {next_hop_mtu} fit, so nothing vanishes."));
        }
    }
    hit.advice =
        both_ways(seen, &Sizes::new(small, large), path.is_some_and(|path| matches!(path.limited_by, Limiter::Router { .. })));
    vec![hit]
}

/// What the smaller end's interface does with frames above its MTU.
fn interface(smaller: Role, passes: Mtu, small: Mtu, large: Mtu) -> Option<String> {
    let end = smaller.title();
    let more = passes.0.checked_sub(small.0)?;
    Some(match more {
        0 => format!("The {end}'s interface drops what is larger than its MTU of {small}."),
        _ if passes >= large => {
            format!("The {end}'s interface has an MTU of {small} and its driver accepts {passes} all the same.")
        }
        1..=TAG => format!(
            "The {end}'s interface takes {more} bytes more than its MTU of {small}, room for a VLAN tag, and drops what is larger."
        ),
        _ => {
            format!("The {end}'s interface has an MTU of {small}, its driver accepts up to {passes}, and larger packets vanish.")
        }
    })
}
