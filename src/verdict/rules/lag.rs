//! Link aggregation: what one flow can use, how flows spread, and what is broken.

use super::super::ideal;
use super::super::limits;
use super::super::seen::{End, Seen, Sums, Way};
use super::list::{Explains, Hit, Rule, RuleDoc, elsewhere};
use crate::model::Role;
use crate::model::finding::Where;
use crate::model::link::Bond;
use crate::units::BitRate;

pub(super) const RULES: &[Rule] = &[
    Rule {
        doc: RuleDoc {
            code: "network.lag-single-flow",
            title: "One connection uses one link of the aggregation",
            meaning: "Nothing is broken: an aggregation never splits one connection, so one copy gets one link's speed, however many links there are.",
            detected: "Both ends aggregate, one stream sits at one link's rate, and the sum of the links is larger.",
            fix: "Use several connections (SMB multichannel, NFS nconnect), or one faster link instead of two slow ones.",
        },
        check,
    },
    Rule {
        doc: RuleDoc {
            code: "network.lag-uneven-hash",
            title: "The aggregation puts all connections on one link",
            meaning: "The hash that spreads connections sees the same addresses for all of them, as layer2 does between two hosts or behind a router.",
            detected: "Several streams together reach one link's rate only, and the hash policy leaves ports out.",
            fix: "Set the transmit hash policy to layer3+4 at the hosts and the like at the switch.",
        },
        check: elsewhere,
    },
    Rule {
        doc: RuleDoc {
            code: "network.lag-broken",
            title: "The aggregation is not working",
            meaning: "Links are missing from it or the partner does not answer, so it runs as one link and gives no redundancy.",
            detected: "LACP partner address zero, ports in different aggregators, churned state, a port without link.",
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
];

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
    let Some(single) = way.single.filter(|pass| at_one(pass.goodput_bps, one_link)) else { return hits };
    let sender = way.direction.sender();
    let mut one = Hit::tcp("network.lag-single-flow", Where::Path, way.direction)
        .weight(0.8, 2)
        .relieved(way.multi.map(|pass| pass.goodput_bps).filter(|rate| *rate > one_link).or(way.wire))
        .shows(format!("{}: one stream reaches {}, one link's worth.", way.direction.arrow(), single.goodput_bps))
        .advise("Use several connections (SMB multichannel, NFS nconnect) or one faster link.");
    one.one_flow = true;
    if let Some(multi) = way.multi.filter(|pass| at_one(pass.goodput_bps, one_link) && pass.streams > 1) {
        let policy = seen.end(sender).bond().and_then(|bond| bond.hash_policy.as_deref());
        if let Some(policy) = policy.filter(|policy| !policy.contains("3+4")) {
            hits.push(
                Hit::tcp("network.lag-uneven-hash", sender, way.direction)
                    .weight(0.85, 2)
                    .relieved(way.wire)
                    .shows(format!("{} streams together reach {}, one link's worth.", multi.streams, multi.goodput_bps))
                    .shows(format!("The {}'s hash policy is {policy}: all connections to one peer look alike.", sender.title()))
                    .advise("Set the transmit hash policy to layer3+4 at this host, and the like at the switch."),
            );
        }
    } else if let Some(multi) = way.multi {
        one = one.also(Some(format!("{} streams together reach {}.", multi.streams, multi.goodput_bps)));
    }
    hits.push(one);
    hits
}

/// What of one end's aggregation is broken or reorders.
fn structure(seen: &Seen<'_>, role: Role) -> Vec<Hit> {
    let Some(bond) = seen.end(role).bond() else { return Vec::new() };
    let mut hits = Vec::new();
    let faults = faults(bond);
    let all: u64 = bond.ports.iter().map(|port| port.speed_bps.unwrap_or_default().0).sum();
    let useful = seen.end(role.peer()).total.map_or(BitRate(all), |peer| peer.min(BitRate(all)));
    let reached = seen.ways.iter().filter_map(Way::rate).max();
    let wanted = ideal::wire_ceiling(useful, seen.mtu, seen.ip);
    let costs = reached.is_some_and(|rate| rate.as_f64() < limits::AT_LINE_RATE * wanted.as_f64());
    if !faults.is_empty() {
        let mut hit = Hit::new("network.lag-broken", role, if costs { Explains::Network } else { Explains::Info })
            .weight(0.95, 1)
            .relieved(Some(wanted))
            .advise("Configure LACP on the switch for exactly these ports, and check the link of each one.");
        for fault in faults {
            hit = hit.also(Some(fault));
        }
        hits.push(hit);
    }
    if bond.mode.contains("balance-rr") {
        let reorders: u64 = seen.ways.iter().filter_map(|way| way.best).map(|pass| Sums::of(pass).reorders).sum();
        // It is to blame only where reordering was seen and the aggregation stays below even half of its links.
        let slow = seen.ways.iter().any(|way| way.share().is_some_and(|share| share < limits::NEAR_LINE_RATE));
        let explains = if reorders > 0 && slow { Explains::Network } else { Explains::Info };
        hits.push(
            Hit::new("network.lag-reordering", role, explains)
                .weight(0.82, 1)
                .shows(format!("The {}'s aggregation sends round robin.", role.title()))
                .also((reorders > 0).then(|| format!("TCP saw {reorders} reordering events.")))
                .advise("Use 802.3ad with several connections, or one faster link."),
        );
    }
    hits
}

fn faults(bond: &Bond) -> Vec<String> {
    let mut faults = Vec::new();
    let lacp = bond.mode.contains("802.3ad");
    let zero = |mac: &str| mac.bytes().any(|b| b == b'0') && mac.bytes().all(|b| matches!(b, b'0' | b':'));
    if lacp && bond.partner_mac.as_deref().is_some_and(zero) {
        faults.push("No LACP partner answers (its address is all zero).".to_owned());
    }
    let down: Vec<&str> = bond.ports.iter().filter(|port| port.up == Some(false)).map(|port| port.name.as_str()).collect();
    if !down.is_empty() {
        faults.push(format!("Without a link: {}.", down.join(", ")));
    }
    let mut aggregators: Vec<u32> = bond.ports.iter().filter_map(|port| port.aggregator).collect();
    aggregators.sort_unstable();
    aggregators.dedup();
    if lacp && aggregators.len() > 1 {
        faults.push("The ports are in different aggregators, and only one of them carries traffic.".to_owned());
    }
    let churned = |port: &&crate::model::link::BondPort| port.churn.iter().flatten().any(|state| state.contains("churned"));
    if lacp && bond.ports.iter().any(|port| churned(&port)) {
        faults.push("LACP is churned at a port: both sides do not come to terms.".to_owned());
    }
    if lacp && bond.ports.len() == 1 {
        faults.push("Only one port belongs to it.".to_owned());
    }
    faults
}
