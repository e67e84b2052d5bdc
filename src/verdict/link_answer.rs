//! The answer of a document about links alone: what holds them back, or that nothing does.

use super::limits;
use super::rules::{Explains, Hit, LINKS_CONSISTENT, LINKS_UNKNOWN, check_all};
use super::seen::Seen;
use super::sentence::plain;
use crate::model::finding::{Component, Confidence, Status, Verdict};
use crate::model::link::{HostLink, Interface, InterfaceKind, LinkSection};
use crate::model::outcome::Outcome;
use crate::model::plan::Scope;
use crate::model::{Direction, Document, Role};

/// More ports than this are not judged one by one; no collection lists as many.
const MOST: usize = 64;

/// The hits of a document about links: where all ports of a host are meant, those of each port by itself.
pub(super) fn hits(document: &Document) -> Vec<Hit> {
    if document.plan.scope != Scope::LinkOfHost {
        return check_all(&Seen::new(document));
    }
    let mut hits: Vec<Hit> = ports(document).iter().flat_map(|part| check_all(&Seen::new(part))).collect();
    for hit in &mut hits {
        for text in hit.evidence.iter_mut().chain(&mut hit.advice).chain(&mut hit.title) {
            *text = of_this_host(text);
        }
    }
    hits
}

/// The same sentence where no other host is meant, so that this one is not the PC of anything.
fn of_this_host(text: &str) -> String {
    let words = [
        ("The PC's", "This host's"),
        ("The PC ", "This host "),
        ("the PC's", "this host's"),
        ("the PC", "this host"),
        ("At the PC", "At this host"),
    ];
    words.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// The document once for each port or aggregation, as if it were the only one.
fn ports(document: &Document) -> Vec<Document> {
    let section = document.measurements.link.measured();
    let Some(host) = section.and_then(|links| links.pc.measured()) else { return Vec::new() };
    let moved = |name: &str| {
        let watched = section.and_then(|links| links.watched.measured()).and_then(|watched| watched.pc.measured());
        watched.and_then(|all| all.get(name)).is_some_and(|counters| !counters.0.is_empty())
    };
    let alone = |stack: Vec<Interface>| {
        let names: Vec<String> = stack.iter().map(|interface| interface.name.clone()).collect();
        let mut part = document.clone();
        // A speed that was stated is that of a way to a host, and none was named.
        part.plan.stated_pc_bps = None;
        if let Some(section) = part.measurements.link.measured_mut() {
            if let Some(watched) = section.watched.measured_mut()
                && let Some(counters) = watched.pc.measured_mut()
            {
                counters.retain(|name, _| names.contains(name));
            }
            section.pc = Outcome::Measured(HostLink { stack, stated_speed_bps: None, ..host.clone() });
        }
        part
    };
    groups(host, moved).into_iter().take(MOST).map(alone).collect()
}

/// The stacks that carry traffic by themselves: an aggregation with its ports, every other port that has a link, or had one while it
/// was watched.
fn groups(host: &HostLink, moved: impl Fn(&str) -> bool) -> Vec<Vec<Interface>> {
    let mut groups: Vec<Vec<Interface>> = Vec::new();
    let mut taken: Vec<&str> = Vec::new();
    for bonded in host.stack.iter().filter(|interface| interface.bond.is_some()).take(MOST) {
        let ports = bonded.bond.iter().flat_map(|bond| &bond.ports).take(MOST);
        let below: Vec<&Interface> =
            ports.filter_map(|port| host.stack.iter().find(|it| it.name == port.name && it.name != bonded.name)).collect();
        taken.extend(below.iter().map(|interface| interface.name.as_str()));
        groups.push(std::iter::once(bonded).chain(below).cloned().collect());
    }
    let linked = |interface: &&Interface| {
        let up = interface.carrier.measured() != Some(&false) || moved(&interface.name);
        interface.kind == InterfaceKind::Physical && up && !taken.contains(&interface.name.as_str())
    };
    groups.extend(host.stack.iter().filter(linked).map(|interface| vec![interface.clone()]));
    groups
}

/// Which hit is the answer: of those that cost anything the one whose evidence fits best.
pub(super) fn chosen(hits: &[Hit]) -> Option<usize> {
    let costs = (0..hits.len()).filter(|at| hits[*at].explains != Explains::Info);
    costs.max_by(|a, b| {
        let stops = |at: usize| hits[at].explains == Explains::Stops;
        let by_weight = hits[*a].weight.total_cmp(&hits[*b].weight);
        stops(*a).cmp(&stops(*b)).then(by_weight).then_with(|| hits[*b].code.cmp(hits[*a].code))
    })
}

/// The answer where nothing holds the links back.
pub(super) fn answer(seen: &Seen<'_>) -> Verdict {
    let Some(section) = seen.doc.measurements.link.measured() else {
        return unknown(&format!("the links could not be looked at: {}.", seen.doc.measurements.link.why().unwrap_or_default()));
    };
    let mut verdict = if seen.doc.plan.scope == Scope::LinkOfHost { of_host(section) } else { between(seen, section) };
    if seen.local() {
        verdict.sentence.push_str(" Both ends are one machine: nothing here is evidence about a cable.");
    }
    verdict
}

fn healthy(sure: Confidence, text: &str) -> Verdict {
    plain(Status::Healthy, Component::None, LINKS_CONSISTENT, sure, format!("Healthy: {text}"))
}

fn unknown(text: &str) -> Verdict {
    let text = format!("Inconclusive: {text}");
    plain(Status::Inconclusive, Component::Inconclusive, LINKS_UNKNOWN, Confidence::Low, text)
}

/// The ports of one host.
fn of_host(section: &LinkSection) -> Verdict {
    let Some(host) = section.pc.measured() else {
        return unknown(&format!("this host's ports could not be looked at: {}.", section.pc.why().unwrap_or_default()));
    };
    let groups = groups(host, |_| false);
    let told: Vec<String> = groups.iter().filter_map(|stack| words(stack)).collect();
    if told.is_empty() {
        return unknown(
            "no port of this host with a cable in it tells its speed (a virtual machine or a container shows no cable; on the machine around it, it does).",
        );
    }
    let all = groups.iter().all(|stack| sure(stack));
    let count = told.len();
    let shown = told.into_iter().take(4).collect::<Vec<_>>().join("; ");
    let more = if count > 4 { format!("; and {} more", count - 4) } else { String::new() };
    let doubt = if all { "" } else { " What some of them could do at best their drivers do not tell." };
    let confidence = if all { Confidence::High } else { Confidence::Medium };
    healthy(confidence, &format!("{shown}{more}. Nothing that this host knows holds its ports back.{doubt}"))
}

/// Whether the ports of a stack tell what they can do, so that a speed below it would show.
fn sure(stack: &[Interface]) -> bool {
    let told = |port: &Interface| port.modes.measured().is_some_and(|modes| !modes.supported_bps.is_empty());
    stack.iter().filter(|interface| interface.kind == InterfaceKind::Physical).all(told)
}

/// A port or aggregation in words, where it tells a speed.
fn words(stack: &[Interface]) -> Option<String> {
    let top = stack.first()?;
    let speed = top.speed_bps.measured().filter(|_| !top.kind.speed_is_no_evidence())?.value;
    if speed.0 == 0 || top.carrier.measured() == Some(&false) {
        return None;
    }
    let what = match &top.bond {
        Some(bond) => format!(" ({}, {} ports)", bond.mode, bond.ports.len()),
        None => String::new(),
    };
    Some(format!("{}{what} runs at {speed}", top.name))
}

/// The way from one host to the other.
fn between(seen: &Seen<'_>, section: &LinkSection) -> Verdict {
    let told: Vec<String> = [Role::Pc, Role::Nas].into_iter().filter_map(|role| end(seen, role)).collect();
    let carried = carried(seen);
    if told.is_empty() {
        let why = [&section.pc, &section.nas].into_iter().find_map(|link| link.why());
        let why = why.filter(|_| section.pc.measured().is_none()).map(|why| format!(" ({why})")).unwrap_or_default();
        let advice = if seen.local() {
            ""
        } else {
            " State what you know with --link-speed, or run `weaklink throughput`, which reads a line's speed off its plateau."
        };
        return unknown(&format!("no port on the way tells the speed of a cable{why}.{carried}{advice}"));
    }
    let both = told.len() == 2 && !seen.inferred;
    let wire = seen.line.filter(|_| both).map(|line| super::ideal::wire_ceiling(line, seen.mtu, seen.ip));
    let line = match (seen.line, wire) {
        (Some(line), Some(wire)) => format!(" The line carries {line}: at most {wire} = {} of TCP.", wire.bytes()),
        _ => String::new(),
    };
    let line = line + &narrowed(seen);
    // A hop between the two is seen under load only, and each way by itself.
    let least = seen.ways.iter().filter_map(super::seen::Way::rate).min();
    let slow = least.zip(wire).is_some_and(|(rate, wire)| rate.as_f64() < limits::NEAR_LINE_RATE * wire.as_f64());
    let ports = told.join(", ");
    if slow {
        return unknown(&format!(
            "TCP carries less than the ports: {ports}.{line}{carried} `weaklink throughput` or `weaklink run` tells why."
        ));
    }
    let idle = seen.ways.iter().find(|way| way.rate().is_none()).filter(|_| seen.doc.plan.scope == Scope::Link);
    let doubt = match idle {
        Some(_) if least.is_none() => {
            " No data was moved: a slow hop between the two, and damaged frames, show under load only.".to_owned()
        }
        Some(way) => format!(" {} no data was moved: what is slow that way shows under load only.", way.direction.arrow()),
        None => String::new(),
    };
    let known = |role: Role| seen.end(role).link.is_some_and(|link| !seen.end(role).stated && sure(&link.stack));
    let half = idle.is_some() && least.is_some();
    let confidence =
        if both && !half && [Role::Pc, Role::Nas].into_iter().all(known) { Confidence::High } else { Confidence::Medium };
    let unseen = [Role::Pc, Role::Nas].into_iter().find(|role| seen.end(*role).link.is_none());
    let unseen =
        unseen.map_or(String::new(), |role| format!(" What lies behind, up to the {}, was not looked at.", role.title()));
    let mut verdict = healthy(confidence, &format!("{ports}.{line}{carried}{doubt}{unseen}"));
    if half || !unseen.is_empty() {
        verdict.sentence = verdict.sentence.replacen("Healthy:", "Healthy as far as was looked:", 1);
    }
    verdict
}

/// What an aggregation's own hash leaves of the line, each way: one port where all connections between the two hosts are one to it.
fn narrowed(seen: &Seen<'_>) -> String {
    let way = |direction: Direction| {
        let sender = seen.end(direction.sender());
        let bond = sender.bond().filter(|bond| ["802.3ad", "balance-xor"].contains(&bond.mode.as_str()))?;
        let policy = bond.hash_policy.as_deref().filter(|policy| !policy.contains("3+4"))?;
        let (flow, line) = (sender.flow?, seen.line?);
        let top = sender.link?.stack.iter().find(|interface| interface.bond.is_some())?;
        (flow < line).then(|| {
            let wire = super::ideal::wire_ceiling(flow, seen.mtu, seen.ip);
            format!(
                " {} the {}'s {} sends all of it by one of its ports ({policy}): at most {wire} = {} of TCP.",
                direction.arrow(),
                direction.sender().title(),
                top.name,
                wire.bytes()
            )
        })
    };
    [Direction::Upload, Direction::Download].into_iter().filter_map(way).collect()
}

/// What passed under load, each way.
fn carried(seen: &Seen<'_>) -> String {
    let ways = seen.ways.iter().filter_map(|way| Some(format!("{} {}", way.rate()?, way.direction.arrow())));
    let ways: Vec<String> = ways.collect();
    if ways.is_empty() { String::new() } else { format!(" Under load TCP carried {}.", ways.join(" and ")) }
}

/// One end's port in words.
fn end(seen: &Seen<'_>, role: Role) -> Option<String> {
    let end = seen.end(role);
    let total = end.total?;
    let top = end.link?.top()?;
    let stated = if end.stated { ", as you stated" } else { "" };
    Some(format!("the {}'s {} runs at {total}{stated}", role.title(), top.name))
}
