//! What routers say about packets that are too large, true or not, and paths that change.

use super::super::seen::Seen;
use super::list::{Explains, Hit, Rule, RuleDoc, elsewhere};
use super::mtu_advice::known_reason;
use super::mtu_black_hole::holes;
use crate::model::Direction;
use crate::model::finding::Where;
use crate::model::mtu::{Limiter, PathMtu, RouterWord, WordFault};

const REDUCED: &str = "network.mtu-reduced-by-router";
const WRONG: &str = "network.icmp-wrong-mtu";
const CHANGED: &str = "network.mtu-changed";

pub(super) const RULES: &[Rule] = &[
    Rule {
        doc: RuleDoc {
            code: REDUCED,
            title: "A router limits the size of packets, and says so",
            meaning: "Information only: a link on the way carries less than the hosts' own links, a tunnel or a DSL line mostly. The router in front of it says which size fits, TCP keeps to that, and nothing vanishes.",
            detected: "An ICMP message “fragmentation needed” (IPv6: “packet too big”) whose size agrees with what passes. Known sizes are named: 1492 is PPPoE, 1420 WireGuard, 1450 VXLAN.",
            fix: "Nothing is broken. No firewall on the way may drop these ICMP messages. Inside one house such a router is a detour: give both hosts addresses of one subnet.",
        },
        check,
    },
    Rule {
        doc: RuleDoc {
            code: WRONG,
            title: "A router names a size that cannot be true",
            meaning: "A router refuses a packet as too large and names as what fits zero, no less than the packet had, more than passes in truth, or less than any link may have. Senders ignore that or guess, so TCP can hang as if nobody had said anything.",
            detected: "ICMP messages about our own probes, compared with the size of the probe. A warning where large packets vanish in that direction, information where another router's true word helps.",
            fix: "Update or replace that router or firewall, or clamp TCP's segment size there (MSS clamping). Until then set the hosts' MTU to what passes.",
        },
        check: elsewhere,
    },
    Rule {
        doc: RuleDoc {
            code: CHANGED,
            title: "The path changed while it was probed",
            meaning: "The largest packet that passes was another one at the end of the search than at its beginning: a link failed over, a route or a tunnel changed, or somebody changed a setting.",
            detected: "A probe of a size that had passed before vanished for good, or one passed that had vanished before. A warning where large packets vanish since then.",
            fix: "Measure again. If it goes on, look for two ways of different MTU: a bond or trunk whose members differ, two routers, a VPN that comes and goes.",
        },
        check: elsewhere,
    },
];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    let mut hits = Vec::new();
    for way in Direction::BOTH {
        if let Some(path) = seen.path(way) {
            let hole = holes(seen).iter().any(|hole| hole.way == way);
            hits.extend(about(path, way.arrow(), hole).into_iter().map(|hit| hit.towards(way)));
        }
    }
    let mtu = seen.doc.measurements.mtu.measured();
    let alone = hits.is_empty() && Direction::BOTH.iter().all(|way| seen.path(*way).is_none());
    if let Some(echo) = mtu.and_then(|mtu| mtu.echo.measured()).filter(|_| alone) {
        hits.extend(about(&echo.path, "ICMP echo, there and back", false));
    }
    hits
}

/// All that the words about one path say.
fn about(path: &PathMtu, way: &str, hole: bool) -> Vec<Hit> {
    reduced(path, way).into_iter().chain(wrong(path, way, hole)).chain(changed(path, way, hole)).collect()
}

fn reduced(path: &PathMtu, way: &str) -> Option<Hit> {
    let Limiter::Router { address, next_hop_mtu } = &path.limited_by else { return None };
    if path.mtu >= path.ceiling || !path.is_told() {
        return None;
    }
    let kind = known_reason(path.mtu).map(|kind| format!(" {} is the size of {kind}.", path.mtu)).unwrap_or_default();
    Some(
        Hit::new(REDUCED, Where::Path, Explains::Info)
            .shows(format!(
                "{way}: the router {address} says that {next_hop_mtu} bytes fit, and {} pass, while the sender's interface allows {}.{kind}",
                path.mtu, path.ceiling
            ))
            .advise("Nothing needs to be done: TCP keeps to it. No firewall may drop these ICMP messages.")
            .advise("If both hosts are in one house, such a router is a detour: with addresses of one subnet a switch alone carries the traffic, in the ports' full size."),
    )
}

fn wrong(path: &PathMtu, way: &str, hole: bool) -> Option<Hit> {
    // A size that the refused packet did not have may still be more than passes: then packets of that size vanish.
    let fault = |word: &RouterWord| match word.lie() {
        Some(fault) => Some(Some(fault)),
        None => (!path.is_told() && word.next_hop_mtu > path.mtu).then_some(None),
    };
    let lies: Vec<(&RouterWord, Option<WordFault>)> = path.words.iter().filter_map(|word| Some((word, fault(word)?))).collect();
    let (first, _) = lies.first()?;
    // Where TCP is saved by what the ends agreed on, everything else still sends packets that vanish.
    let vanish = hole || (!path.is_told() && path.mtu < path.ceiling);
    let explains = if vanish { Explains::Fault } else { Explains::Info };
    let mut hit = Hit::new(WRONG, Where::Path, explains)
        .weight(0.6, 1)
        .titled(format!("The router {} names a size that cannot be true", first.address));
    for (word, fault) in lies.iter().take(4) {
        let why = match fault {
            None => "more than what passes".to_owned(),
            Some(WordFault::Zero) => "which tells nothing".to_owned(),
            Some(WordFault::NotSmaller) => "no less than what it refused".to_owned(),
            Some(WordFault::BelowLeast) => {
                format!(
                    "less than every link must carry ({})",
                    if word.address.is_ipv6() { "1280 with IPv6" } else { "68 with IPv4" }
                )
            }
        };
        hit = hit.shows(format!(
            "{way}: the router {} refused a packet of {} bytes and says that {} fit, {why}; in truth {} pass.",
            word.address, word.about, word.next_hop_mtu, path.mtu
        ));
    }
    Some(
        hit.advise(format!(
            "Update or replace the router or firewall {}, or let it clamp TCP's segment size (MSS clamping).",
            first.address
        ))
        .advise(format!("Until then an MTU of {} at the sending host makes that no packet needs its word.", path.mtu)),
    )
}

fn changed(path: &PathMtu, way: &str, hole: bool) -> Option<Hit> {
    let change = path.change?;
    let shrank = change.to < change.from;
    let explains = if hole && shrank { Explains::Fault } else { Explains::Info };
    Some(
        Hit::new(CHANGED, Where::Path, explains)
            .weight(0.55, 1)
            .shows(format!(
                "{way}: packets of {} bytes passed at first, and {} since {} after the search began.",
                change.from, change.to, change.at_us
            ))
            .advise("Measure again; if it goes on, look for two ways of different size: members of a bond or trunk, two routers, a VPN that comes and goes."),
    )
}
