//! The two ends disagree about the size of packets.

use super::super::seen::Seen;
use super::list::{Explains, Hit, Rule, RuleDoc};
use super::mtu_advice::{Between, Sizes, TAG, both_ways, lasting, layer, set};
use super::mtu_suspects::{ROOM, is_routed};
use super::mtu_tcp::headers;
use crate::model::link::Interface;
use crate::model::mtu::{Limiter, PathMtu};
use crate::model::{Direction, Role};
use crate::units::Mtu;

const CODE: &str = "network.mtu-mismatch";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "The two ends have different MTUs",
        meaning: "One end sends packets that the other one does not accept. TCP agrees on a smaller segment at its start and survives; large UDP packets and ping do not, and any segment size agreed wrongly stalls.",
        detected: "The MTU of the interface that the route uses differs between PC and NAS. What passes towards the smaller end tells what its interface does with larger frames: it drops them, it takes a VLAN tag's four bytes more, or it takes them all the same. Without an agent: the NAS answers large pings in pieces of its own interface's size. Where all large packets pass, or a router between the hosts says what fits, it is information only.",
        fix: "Set the same MTU at both ends and on every switch port between them.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    let (Some(pc), Some(nas)) = (seen.end(Role::Pc).mtu, seen.end(Role::Nas).mtu) else {
        return without_agent(seen).into_iter().collect();
    };
    if pc == nas {
        return Vec::new();
    }
    let larger = if pc > nas { Role::Pc } else { Role::Nas };
    let (large, small) = (pc.max(nas), pc.min(nas));
    // The large packets go from the end with the large MTU towards the other.
    let way = if larger == Role::Pc { Direction::Upload } else { Direction::Download };
    let path = seen.path(way);
    let router = path.is_some_and(|path| matches!(path.limited_by, Limiter::Router { .. }));
    let harmless = router || path.is_some_and(|path| path.mtu >= large);
    let explains = if harmless { Explains::Info } else { Explains::Fault };
    let mut hit = Hit::new(CODE, larger, explains).weight(0.9, 1).towards(way);
    hit = hit.shows(format!("The MTU is {pc} at the PC and {nas} at the NAS."));
    hit.evidence.extend(path.and_then(|path| segments(seen, way, path, large)));
    hit = hit.also(path.map(|path| format!("{}: the largest packet that passed has {} bytes.", way.arrow(), path.mtu)));
    let inner = path.and_then(|path| inner(seen, larger.peer(), path.mtu, small));
    if let Some((layer_below, text)) = inner {
        hit.place = larger.peer().into();
        hit.evidence.push(text);
        hit.advice.push(layer_below);
    } else if let Some(path) = path {
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
    // What the smaller end has is a size for both, where the path carries it.
    let carried = Direction::BOTH.into_iter().filter_map(|way| seen.path(way)).map(|path| path.mtu).min();
    let sizes = match carried {
        Some(carried) if carried >= small => Sizes { small, large, nas: None },
        _ => Sizes::new(small, large),
    };
    let between = match (hit.advice.is_empty(), router) {
        (false, _) => Between::Told,
        (true, true) => Between::Routers,
        (true, false) => Between::Ends,
    };
    hit.advice.extend(both_ways(seen, &sizes, between));
    lasting(&mut hit.advice);
    vec![hit]
}

/// What TCP made of the two sizes, and what that means for copies.
fn segments(seen: &Seen<'_>, way: Direction, path: &PathMtu, large: Mtu) -> Option<String> {
    let handshake = seen.doc.measurements.mtu.measured()?.handshake.measured()?;
    let granted = handshake.of(way.sender()).measured()?.granted_mss_bytes();
    agreed(granted, headers(seen.ip), path, large)
}

fn agreed(granted: u32, headers: u32, path: &PathMtu, large: Mtu) -> Option<String> {
    let vanish = path.mtu < large && !path.is_told();
    Some(match Mtu(granted.saturating_add(headers)) {
        _ if granted == 0 => return None,
        packet if packet > path.mtu => {
            format!("TCP may send segments of {granted} bytes, packets of {packet}, which is more than passes: copies can hang.")
        }
        _ if vanish => {
            format!("TCP agreed on segments of {granted} bytes, so copies go on; larger datagrams and pings vanish.")
        }
        _ => format!("TCP agreed on segments of {granted} bytes, so copies go on."),
    })
}

/// Where the smaller end is small only above a layer that takes what arrives: what mends it, and the evidence.
fn inner(seen: &Seen<'_>, smaller: Role, passes: Mtu, small: Mtu) -> Option<(String, String)> {
    let (top, below) = seen.end(smaller).link?.stack.split_first()?;
    let of = |layer: &Interface| layer.mtu.measured().map(|fact| fact.value);
    let (under, size) = below.iter().find_map(|layer| Some((layer, of(layer).filter(|mtu| *mtu >= passes)?)))?;
    if passes.0 <= small.0.saturating_add(TAG) || of(top) != Some(small) {
        return None;
    }
    let (end, what) = (smaller.title(), layer(top.kind));
    Some((
        format!("Give {what} {} the MTU of what is below it: {}.", top.name, set(seen, smaller, Some(top), size)),
        format!(
            "At the {end} {what} {} has MTU {small}, less than {} below it ({size}): larger packets get in there all the same.",
            top.name, under.name
        ),
    ))
}

/// What the smaller end's interface does with frames above its MTU.
fn interface(smaller: Role, passes: Mtu, small: Mtu, large: Mtu) -> Option<String> {
    let end = smaller.title();
    let more = passes.0.checked_sub(small.0)?;
    Some(match more {
        0 => format!("The {end}'s interface drops what is larger than its MTU of {small}."),
        _ if passes >= large => {
            format!("The {end}'s interface has an MTU of {small} and takes packets of {passes} all the same.")
        }
        1..=TAG => format!(
            "The {end}'s interface takes {more} bytes more than its MTU of {small}, room for a VLAN tag, and drops what is larger."
        ),
        _ => {
            format!("The {end}'s interface has an MTU of {small}, takes packets of up to {passes}, and larger ones vanish.")
        }
    })
}

/// One end alone: the pieces in which the NAS answers large pings tell its interface's size, and larger packets vanish.
fn without_agent(seen: &Seen<'_>) -> Option<Hit> {
    let mtu = seen.doc.measurements.mtu.measured()?;
    let echo = mtu.echo.measured()?;
    let path = &echo.path;
    let own = seen.end(Role::Pc).mtu.unwrap_or(path.ceiling);
    let nas =
        echo.reply_fragment.filter(|piece| *piece < own && (piece.0..=piece.0.saturating_add(ROOM)).contains(&path.mtu.0))?;
    let gateway = seen.end(Role::Pc).link.and_then(|link| link.gateway.measured()).is_some_and(Option::is_some);
    let routed = gateway || path.location.measured().is_some_and(is_routed);
    let searched = Direction::BOTH.iter().any(|way| mtu.of(*way).measured().is_some());
    if routed || searched || path.is_told() || seen.end(Role::Nas).mtu.is_some() {
        return None;
    }
    let services = mtu.services.measured().into_iter().flatten().filter_map(|probe| probe.result.measured());
    let granted = services.map(|service| service.end.granted_mss_bytes()).max();
    let mut hit = Hit::new(CODE, Role::Pc, Explains::Fault).weight(0.7, 1).towards(Direction::Upload).shows(format!(
        "The MTU is {own} at the PC, and the NAS's interface has {nas}: large answers come back in pieces of that size."
    ));
    hit.evidence.extend(granted.and_then(|granted| agreed(granted, headers(seen.ip), path, own)));
    hit = hit.shows(format!("Pings above {} bytes vanish without a message.", path.mtu));
    hit.advice = both_ways(seen, &Sizes { small: nas, large: own, nas: Some(nas) }, Between::Ends);
    lasting(&mut hit.advice);
    Some(hit)
}
