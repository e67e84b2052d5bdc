//! Link aggregation: what one flow can use, how flows spread, and what is broken.

use super::super::ideal;
use super::super::limits;
use super::super::seen::{End, Seen, Sums, Way};
use super::lag_faults::{faults, pair};
use super::lag_ports::{Carried, Moved, carried, copied_alone, even};
use super::list::{Explains, Hit, Rule, RuleDoc, elsewhere};
use crate::model::finding::Where;
use crate::model::flows::FlowSpread;
use crate::model::link::{Bond, BondPort};
use crate::model::throughput::Pass;
use crate::model::{Direction, Role};
use crate::units::BitRate;

pub(super) const RULES: &[Rule] = &[
    Rule {
        doc: RuleDoc {
            code: "network.lag-single-flow",
            title: "One connection uses one link of the aggregation",
            meaning: "Nothing is broken: an aggregation never splits one connection, so one copy gets one link's speed, however many links there are.",
            detected: "Both ends aggregate, one stream sits at one link's rate, and the sum of the links is larger.",
            fix: "Use several connections (SMB multichannel, NFS nconnect) with a transmit hash that looks at ports (layer3+4), or one faster link instead of two slow ones.",
        },
        check,
    },
    Rule {
        doc: RuleDoc {
            code: "network.lag-uneven-hash",
            title: "The aggregation puts all connections on one link",
            meaning: "The hash that spreads connections sees the same addresses for all of them, as layer2 does between two hosts or behind a router; or the connections are few and happen to fall on one link; or the switch's own hash does either.",
            detected: "Several streams together reach one link's rate only, and the hash policy leaves ports out or the ports' counters show one full link beside idle ones.",
            fix: "Set the transmit hash policy to layer3+4 at the hosts and the like at the switch; where connections are few, use more of them.",
        },
        check: elsewhere,
    },
    Rule {
        doc: RuleDoc {
            code: "network.lag-broken",
            title: "The aggregation is not working",
            meaning: "Links are missing from it or the partner does not answer, so it runs as one link and gives no redundancy.",
            detected: "LACP partner address zero, ports in different aggregators (other partners or keys), churned or unhealthy port states, a port without link, a static aggregation at a switch port that has none.",
            fix: "Configure the same kind of aggregation (LACP) on the switch ports of exactly these cables, and check each port's link.",
        },
        check: elsewhere,
    },
    Rule {
        doc: RuleDoc {
            code: "network.lag-reordering",
            title: "Round robin reorders packets",
            meaning: "balance-rr sends packets of one connection over all links in turn. They arrive out of order, and TCP takes that for loss: the aggregation can be slower than one link.",
            detected: "The mode is balance-rr; reordering events and a rate below the sum of the links.",
            fix: "Use 802.3ad with several connections, or a single faster link.",
        },
        check: elsewhere,
    },
    Rule {
        doc: RuleDoc {
            code: "network.lag-one-link",
            title: "This aggregation uses one link at a time",
            meaning: "active-backup keeps its other ports in reserve, and balance-alb gives each peer one port: neither adds the links' speeds between two hosts.",
            detected: "The mode is active-backup or balance-alb, with more than one port.",
            fix: "Nothing is broken. For speed, use 802.3ad with several connections and layer3+4, or one faster link.",
        },
        check: elsewhere,
    },
    Rule {
        doc: RuleDoc {
            code: "network.lag-static",
            title: "A static aggregation, which nobody checks",
            meaning: "balance-xor and broadcast speak no LACP, so nothing notices when the switch ports are not aggregated in the same way. Then one MAC address appears at two ports, and the switch keeps moving it.",
            detected: "The mode is balance-xor or broadcast, and the switch said nothing of its side.",
            fix: "Make sure that the switch has a static aggregation on exactly these ports, or use LACP (802.3ad) at both ends.",
        },
        check: elsewhere,
    },
];

/// The most ports that a sentence names.
const NAMED: usize = 8;

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    let mut hits: Vec<Hit> = [Role::Pc, Role::Nas].into_iter().flat_map(|role| structure(seen, role)).collect();
    let bundled = |end: &End<'_>| match (end.flow, end.total) {
        (Some(flow), Some(total)) => total.as_f64() >= limits::SPEED_STEP * flow.as_f64(),
        _ => false,
    };
    let (Some(line), Some(flow)) = (seen.line, seen.ends.iter().filter_map(|end| end.flow).min()) else { return hits };
    if seen.ends.iter().any(bundled) && line.as_f64() >= limits::SPEED_STEP * flow.as_f64() {
        let one_link = ideal::wire_ceiling(flow, seen.mtu, seen.ip);
        hits.extend(seen.ways.iter().flat_map(|way| spread(seen, way, one_link)));
    }
    hits
}

/// Whether a rate is that of one link.
fn at_one(rate: BitRate, one_link: BitRate) -> bool {
    (limits::NEAR_LINE_RATE..=1.05).contains(&(rate.as_f64() / one_link.as_f64()))
}

fn spread(seen: &Seen<'_>, way: &Way<'_>, one_link: BitRate) -> Vec<Hit> {
    let mut hits = Vec::new();
    if let Some(multi) = way.multi.filter(|pass| pass.streams > 1) {
        hits.extend(uneven(seen, way, multi, one_link));
    }
    let Some(single) = way.single.filter(|pass| at_one(pass.goodput_bps, one_link)) else { return hits };
    let sender = way.direction.sender();
    let mut one = Hit::tcp("network.lag-single-flow", Where::Path, way.direction)
        .weight(0.8, 2)
        .relieved(way.multi.map(|pass| pass.goodput_bps).filter(|rate| *rate > one_link).or(way.wire))
        .shows(format!("{}: one stream reaches {}, one link's worth.", way.direction.arrow(), single.goodput_bps))
        .noting(carried(seen, single, sender, Moved::Sent).filter(Carried::alone).map(|ports| ports.sentence()))
        .noting(copied_alone(seen, way.direction, sender, Moved::Sent))
        .advise(several(seen, sender));
    one.one_flow = true;
    if let Some(multi) = way.multi.filter(|pass| !(pass.streams > 1 && at_one(pass.goodput_bps, one_link))) {
        one = one.also(Some(format!("{} streams together reach {}.", multi.streams, multi.goodput_bps)));
    }
    hits.push(one);
    hits
}

/// What this end's aggregation foretold for the connections of the run.
fn foretold<'a>(seen: &Seen<'a>, role: Role) -> Option<&'a FlowSpread> {
    seen.end(role).link?.flows.measured().map(AsRef::as_ref)
}

/// What to do about one connection on one link.
fn several(seen: &Seen<'_>, sender: Role) -> String {
    let policy = seen.end(sender).bond().and_then(|bond| bond.hash_policy.as_deref());
    match (policy, foretold(seen, sender).and_then(|flows| flows.flows_for_all)) {
        (Some(policy), _) if !policy.contains("3+4") => format!(
            "Use one faster link; or set the {}'s transmit hash policy, {policy} now, to layer3+4 and use several connections (SMB multichannel, NFS nconnect).",
            sender.title()
        ),
        (_, Some(needed)) if needed > 1 => {
            format!(
                "Use several connections (SMB multichannel, NFS nconnect; {needed} reach all links with a chance of 90 %) or one faster link."
            )
        }
        _ => "Use several connections (SMB multichannel, NFS nconnect) or one faster link.".to_owned(),
    }
}

/// Several connections that do not use all links of an aggregation: whose hash it is, by the ports' own bytes where they are known.
fn uneven(seen: &Seen<'_>, way: &Way<'_>, multi: &Pass, one_link: BitRate) -> Option<Hit> {
    let (sender, receiver) = (way.direction.sender(), way.direction.sender().peer());
    if seen.end(receiver).bond().is_some_and(|bond| bond.ports.iter().filter(|port| port.active == Some(true)).count() == 1) {
        // Whatever the hash, no more than one link takes in.
        return None;
    }
    let sent = carried(seen, multi, sender, Moved::Sent);
    let arrived = carried(seen, multi, receiver, Moved::Received);
    let at_one = at_one(multi.goodput_bps, one_link);
    let slow = way.share().is_some_and(|share| share < limits::NEAR_LINE_RATE);
    let rates = format!(
        "{} streams together reach {}{}.",
        multi.streams,
        multi.goodput_bps,
        if at_one { ", one link's worth" } else { "" }
    );
    let hit = |place: Where| {
        Hit::tcp("network.lag-uneven-hash", place, way.direction).weight(0.85, 2).relieved(way.wire).shows(rates.clone())
    };
    let policy = seen.end(sender).bond().and_then(|bond| bond.hash_policy.as_deref());
    if let Some(policy) =
        policy.filter(|policy| at_one && !policy.contains("3+4") && sent.as_ref().is_none_or(|ports| !even(ports)))
    {
        return Some(
            hit(sender.into())
                .shows(format!("The {}'s hash policy is {policy}: all connections to one peer look alike.", sender.title()))
                .also(sent.map(|ports| ports.sentence()))
                .advise("Set the transmit hash policy to layer3+4 at this host, and the like at the switch."),
        );
    }
    if let Some(ports) = sent.as_ref().filter(|ports| ports.one_full(seen.end(sender)) && (at_one || slow)) {
        return Some(collision(seen, sender, way.direction, ports, multi, hit(sender.into())));
    }
    // The sender spreads, and the receiver's ports are filled unevenly: that hash is of what stands between them.
    let switch = arrived
        .filter(|ports| ports.one_full(seen.end(receiver)) && (at_one || slow))
        .filter(|_| sent.as_ref().is_some_and(even))?;
    Some(
        hit(Where::Path)
            .titled(format!("The switch sends the connections to the {} by one link", receiver.title()))
            .also(sent.map(|ports| ports.sentence()))
            .also(Some(switch.sentence()))
            .noting(seen.end(receiver).bond().and_then(|bond| pair(bond, seen.end(receiver).link)))
            .advise(
                "Set the switch's hash for this aggregation to layer 3 and 4 (addresses and ports), or use more connections.",
            ),
    )
}

/// Connections that the policy tells apart, and that fell on one link all the same.
fn collision(seen: &Seen<'_>, sender: Role, direction: Direction, ports: &Carried, multi: &Pass, hit: Hit) -> Hit {
    let told = multi.flows.measured().and_then(|check| check.agrees.measured()).is_some_and(|agrees| *agrees);
    let needed = foretold(seen, sender).and_then(|flows| flows.flows_for_all);
    let advice = match needed {
        Some(needed) if needed > multi.streams => {
            format!("Use more connections: {needed} reach all links with a chance of 90 %.")
        }
        _ => "Use more connections, or try again: new ones have other port numbers.".to_owned(),
    };
    let title = if ports.alone() {
        format!("{}: all connections happened to fall on one link", direction.arrow())
    } else {
        format!("{}: the connections are unevenly spread over the links", direction.arrow())
    };
    hit.titled(title)
        .also(Some(ports.sentence()))
        .also(told.then(|| "The kernel's hash foretold exactly these ports: chance, nothing is broken.".to_owned()))
        .advise(advice)
}

/// What of one end's aggregation is broken, reorders, or never adds its links.
fn structure(seen: &Seen<'_>, role: Role) -> Vec<Hit> {
    let Some(bond) = seen.end(role).bond() else { return Vec::new() };
    let mut hits: Vec<Hit> = broken(seen, role, bond).into_iter().collect();
    hits.extend(round_robin(seen, role, bond));
    if bond.ports.len() > 1 && matches!(bond.mode.as_str(), "active-backup" | "balance-alb") {
        hits.push(one_link(role, bond));
    }
    let silent = hits.iter().all(|hit| hit.code != "network.lag-broken");
    if silent && bond.ports.len() > 1 && matches!(bond.mode.as_str(), "balance-xor" | "broadcast") {
        let policy = bond.hash_policy.as_deref().filter(|policy| !policy.contains("3+4"));
        hits.push(
            Hit::new("network.lag-static", role, Explains::Info)
                .weight(0.6, 1)
                .shows(format!("The {}'s aggregation is static ({}).", role.title(), bond.mode))
                .noting(policy.map(|policy| format!("Its hash policy is {policy}: two hosts share one link, however many connections they have.")))
                .advise("Make sure that the switch has a static aggregation on exactly these ports, or use LACP (802.3ad) at both ends."),
        );
    }
    hits
}

fn broken(seen: &Seen<'_>, role: Role, bond: &Bond) -> Option<Hit> {
    let faults = faults(bond, seen.end(role).link);
    if faults.is_empty() {
        return None;
    }
    if needs_no_switch(bond) {
        return Some(reserve(role, bond, faults));
    }
    let all: u64 = bond.ports.iter().map(|port| port.speed_bps.unwrap_or_default().0).fold(0, u64::saturating_add);
    let useful = seen.end(role.peer()).total.map_or(BitRate(all), |peer| peer.min(BitRate(all)));
    let reached = seen.ways.iter().filter_map(Way::rate).max();
    let wanted = ideal::wire_ceiling(useful, seen.mtu, seen.ip);
    let costs = reached.is_some_and(|rate| rate.as_f64() < limits::AT_LINE_RATE * wanted.as_f64());
    // Where no rate was asked for, the structure itself is the question; an aggregation of one port may be meant.
    let meant = bond.ports.len() == 1 && faults.len() == 1;
    let explains = match costs {
        true => Explains::Network,
        false if seen.doc.plan.scope.is_link() && reached.is_none() && !meant => Explains::Fault,
        false => Explains::Info,
    };
    let mut hit =
        Hit::new("network.lag-broken", role, explains).weight(0.95, 1).relieved(Some(wanted)).advise(if bond.mode == "802.3ad" {
            "Configure LACP on the switch for exactly these ports, and check the link of each one."
        } else {
            "Configure the same kind of aggregation on the switch for exactly these ports, and check the link of each one."
        });
    for fault in faults {
        hit = hit.also(Some(fault));
    }
    Some(hit)
}

/// Modes that work at any switch: nothing has to be set there.
fn needs_no_switch(bond: &Bond) -> bool {
    matches!(bond.mode.as_str(), "active-backup" | "balance-tlb" | "balance-alb")
}

/// A port without a link in a mode that needs nothing of the switch: a reserve that is missing, or no link at all.
fn reserve(role: Role, bond: &Bond, faults: Vec<String>) -> Hit {
    let down = |port: &&BondPort| port.up == Some(false);
    let names: Vec<&str> = bond.ports.iter().filter(down).map(|port| port.name.as_str()).take(NAMED).collect();
    let names = names.join(", ");
    let dead =
        bond.ports.iter().all(|port| down(&port)) || bond.ports.iter().any(|port| down(&port) && port.active == Some(true));
    let mut hit = Hit::new("network.lag-broken", role, if dead { Explains::Fault } else { Explains::Info })
        .weight(if dead { 0.95 } else { 0.6 }, 1)
        .advise(format!("Check the cable and the link of {names}: plugs at both ends, and the switch port."));
    for fault in faults {
        hit = hit.also(Some(fault));
    }
    if dead {
        return hit;
    }
    let lost = if bond.mode == "active-backup" {
        "The port in use has its link: redundancy is lost, no speed."
    } else {
        "The other ports carry the traffic meanwhile: redundancy is lost, and between two hosts little or no speed."
    };
    hit.titled(format!("The {}'s aggregation has a port without a link", role.title())).shows(lost)
}

fn round_robin(seen: &Seen<'_>, role: Role, bond: &Bond) -> Option<Hit> {
    if !bond.mode.contains("balance-rr") {
        return None;
    }
    let reorders: u64 = seen.ways.iter().filter_map(|way| way.best).map(|pass| Sums::of(pass).reorders).sum();
    let distance = seen.ways.iter().filter_map(|way| way.best).filter_map(reordering).max();
    // It is to blame only where reordering was seen and the aggregation stays below even half of its links.
    let slow = seen.ways.iter().any(|way| way.share().is_some_and(|share| share < limits::NEAR_LINE_RATE));
    let explains = if (reorders > 0 || distance.is_some()) && slow { Explains::Network } else { Explains::Info };
    let own = seen.ways.iter().find(|way| way.direction.sender() == role);
    let single =
        own.and_then(|way| way.single).and_then(|pass| carried(seen, pass, role, Moved::Sent)).filter(|ports| !ports.alone());
    Some(
        Hit::new("network.lag-reordering", role, explains)
            .weight(0.82, 1)
            .shows(format!("The {}'s aggregation sends round robin.", role.title()))
            .noting(single.map(|ports| format!("One stream: {}", ports.sentence())))
            .also((reorders > 0).then(|| format!("TCP saw {reorders} reordering events.")))
            .also(
                distance
                    .filter(|_| reorders == 0)
                    .map(|segments| format!("TCP saw packets arrive up to {segments} segments late.")),
            )
            .advise("Use 802.3ad with several connections, or one faster link."),
    )
}

/// How many segments late packets came, where it is more than what every connection begins with (`tcp_reordering`, 3).
fn reordering(pass: &Pass) -> Option<u32> {
    const BEGINS_WITH: u32 = 3;
    pass.sender.measured()?.iter().filter_map(|stream| stream.reordering).max().filter(|segments| *segments > BEGINS_WITH)
}

fn one_link(role: Role, bond: &Bond) -> Hit {
    let active: Vec<&str> = bond.ports.iter().filter(|port| port.active == Some(true)).map(|port| port.name.as_str()).collect();
    let backup = bond.mode == "active-backup";
    let fact = match active.as_slice() {
        [port] if backup => format!("The {}'s aggregation is active-backup: only {port} carries traffic.", role.title()),
        _ => format!("The {}'s aggregation is {}.", role.title(), bond.mode),
    };
    Hit::new("network.lag-one-link", role, Explains::Info)
        .weight(0.6, 1)
        .shows(fact)
        .advise("For speed, use 802.3ad with several connections and layer3+4, or one faster link.")
}
