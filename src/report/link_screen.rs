//! The first screen about links: each port on one line, the routes, the aggregations, the switches, and what the load carried.

use super::links::{ends, grown, named};
use super::machines::ENDS;
use super::network::{duplex, kind, neighbour, route};
use super::phases::broke_during;
use super::view::{Table, Tone, View};
use crate::model::flows::FlowSpread;
use crate::model::link::{Bond, HostLink, Interface, InterfaceKind as Kind};
use crate::model::link_event::EventKind;
use crate::model::plan::Scope;
use crate::model::{Direction, Document, Outcome, Role};
use crate::units::BitRate;

/// The most ports whose counters or broken links are named; the rest stands behind the first screen.
const MOST_NAMED: usize = 4;

/// What the first screen says below the answer.
pub(super) fn summary(document: &Document, view: &mut View) {
    let mut table = Table::new(&["port", "is", "runs at", "can do", "partner offers", "bus", "driver"]);
    let mut facts = Vec::new();
    for (role, link) in ends(document) {
        if document.plan.scope != Scope::LinkOfHost {
            facts.push((format!("{} route", role.title()), way(document, role, link)));
        }
        let stated = link.stack.iter().position(|it| !matches!(it.kind, Kind::Bridge | Kind::Vlan | Kind::Macvlan));
        for (at, interface) in link.stack.iter().enumerate() {
            let stated = link.stated_speed_bps.filter(|_| stated == Some(at));
            table.rows.push(row(&named(document, role, &interface.name), interface, stated));
            if let Some(bond) = &interface.bond {
                let spread = link.flows.measured().filter(|spread| spread.interface == interface.name);
                facts.push((named(document, role, &interface.name), aggregation(bond, spread.map(|spread| &**spread))));
            }
        }
        let heard = link.neighbours.measured().into_iter().flatten();
        facts.extend(heard.map(|switch| (format!("{} switch", named(document, role, &switch.interface)), neighbour(switch))));
        // It fails only where the whole time was listened.
        if let Outcome::Failed(why) = &link.neighbours {
            facts.push((named(document, role, "switch"), format!("not heard: {}", why.reason)));
        }
    }
    facts.extend(unseen(document));
    facts.push(("load".to_owned(), load(document)));
    facts.push(("watched".to_owned(), watched(document)));
    facts.push(("links broke".to_owned(), broken(document)));
    view.table(table);
    view.facts(facts);
    for (role, link) in ends(document).into_iter().filter(|(_, link)| link.left_out > 0) {
        let whose = if document.plan.scope == Scope::LinkOfHost { "this host" } else { role.title() };
        view.note(Tone::Plain, format!("{} more interfaces of {whose} are not listed.", link.left_out));
    }
}

/// The ends that nobody looked at, and why: what is not known of them may be the weak link. Of one host alone the answer says it.
fn unseen(document: &Document) -> Vec<(String, String)> {
    let Some(section) = document.measurements.link.measured() else { return Vec::new() };
    let ends = ENDS.iter().filter(|_| document.plan.scope != Scope::LinkOfHost);
    let why = |role: Role| match section.of(role) {
        Outcome::Measured(_) => None,
        Outcome::Skipped(why) | Outcome::Failed(why) => Some(format!("not looked at: {}", why.reason.trim())),
    };
    ends.filter_map(|role| why(*role).map(|why| (format!("{} ports", role.title()), why))).collect()
}

/// Whether an interface stands on another one by itself: a VLAN, or the port of a switch within the host.
fn on_another(interface: &Interface) -> bool {
    interface.kind == Kind::Vlan || interface.is_switch_port()
}

/// The interfaces from the address to the cable: one upon the other, and the ports of an aggregation beside each other.
fn path(stack: &[Interface]) -> String {
    let port_of =
        |name: &str| stack.iter().any(|it| it.bond.as_ref().is_some_and(|bond| bond.ports.iter().any(|p| p.name == name)));
    let with_ports = |interface: &Interface| match &interface.bond {
        Some(bond) if !bond.ports.is_empty() => {
            let ports: Vec<_> = bond.ports.iter().map(|port| port.name.as_str()).collect();
            format!("{} ({})", interface.name, ports.join(", "))
        }
        _ => interface.name.clone(),
    };
    let shown: Vec<&Interface> = stack.iter().filter(|interface| !port_of(&interface.name)).collect();
    let chain = |part: &[&Interface]| part.iter().map(|interface| with_ports(interface)).collect::<Vec<_>>();
    // The ports of a bridge stand beside each other too; which of them leads on is not known where several are left.
    let bridge = shown.iter().position(|interface| interface.kind == Kind::Bridge);
    match bridge.and_then(|at| shown.split_at_checked(at + 1)) {
        Some((above, ports)) if ports.len() > 1 && !ports.iter().any(|it| on_another(it)) => {
            format!("{} ({})", chain(above).join(" → "), chain(ports).join(", "))
        }
        _ => chain(&shown).join(" → "),
    }
}

fn way(document: &Document, role: Role, link: &HostLink) -> String {
    let by = path(&link.stack);
    let section = document.measurements.link.measured().filter(|_| role == Role::Pc);
    let hops = section.and_then(|section| section.hops.measured());
    let hops = hops.map(|hops| if *hops == 1 { ", 1 hop".to_owned() } else { format!(", {hops} hops") });
    format!("{}, by {by}{}", route(link), hops.unwrap_or_default())
}

/// The sentences about an aggregation that the first screen has: of a hash also whether more connections help and how many, of other
/// modes the first one, which says all of that.
pub(super) fn says_first(spread: &FlowSpread) -> &[String] {
    let hashed = spread.policy == "layer2" || spread.policy.contains('+');
    spread.says.get(..if hashed { 2 } else { 1 }).unwrap_or(&spread.says)
}

/// How it works, and what the hash means for a copy.
fn aggregation(bond: &Bond, spread: Option<&FlowSpread>) -> String {
    let used = bond.ports.iter().filter(|port| port.active == Some(true)).count();
    let policy = bond.hash_policy.as_ref().map(|policy| format!(", hash {policy}")).unwrap_or_default();
    let says = spread.map_or(&[][..], says_first);
    let says = if says.is_empty() { String::new() } else { format!(". {}", says.join(" ")) };
    format!("{}{policy}, {used} of {} ports carry traffic{says}", bond.mode, bond.ports.len())
}

fn row(name: &str, interface: &Interface, stated: Option<BitRate>) -> Vec<String> {
    let virtually = interface.kind.speed_is_no_evidence();
    let has_modes = matches!(interface.kind, Kind::Physical | Kind::VirtualMachine | Kind::Wifi | Kind::Unknown);
    let speed = match (interface.carrier.measured(), stated, interface.speed_bps.measured()) {
        (Some(false), ..) => "no link".to_owned(),
        (_, Some(rate), _) => format!("{rate} as you stated"),
        (_, _, Some(fact)) if virtually => format!("claims {}", fact.value),
        (_, _, Some(fact)) => {
            let duplex = interface.duplex.measured().map(|fact| format!(" {}", duplex(fact.value))).unwrap_or_default();
            // What software made negotiates nothing anyway.
            let fixed = if has_modes && interface.autoneg.measured().is_some_and(|fact| !fact.value) { ", fixed" } else { "" };
            format!("{}{duplex}{fixed}", fact.value)
        }
        (_, _, None) => "not told".to_owned(),
    };
    let most = |rates: &[BitRate]| rates.iter().max().map(ToString::to_string);
    let modes = interface.modes.measured();
    let can = modes.and_then(|modes| match (most(&modes.supported_bps), most(&modes.advertised_bps)) {
        (Some(can), Some(offers)) if can != offers => Some(format!("{can}, offers {offers}")),
        (can, _) => can,
    });
    let untold = || if has_modes { "not told".to_owned() } else { String::new() };
    vec![
        name.to_owned(),
        kind(interface.kind).to_owned(),
        speed,
        can.unwrap_or_else(untold),
        modes.and_then(|modes| most(&modes.partner_bps)).unwrap_or_default(),
        // What else there is to say of it stands below.
        interface.bus.measured().map(|bus| beginning(&bus.description).to_owned()).unwrap_or_default(),
        interface.driver.measured().map(|fact| fact.value.clone()).unwrap_or_default(),
    ]
}

/// The first part of a description: up to a sign that ends one, outside parentheses.
fn beginning(text: &str) -> &str {
    let mut depth = 0_usize;
    let end = text.char_indices().find(|&(at, sign)| {
        match sign {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let ends = matches!(sign, ';' | ':' | ',') && text.get(at + 1..).is_some_and(|rest| rest.starts_with(' '));
        depth == 0 && ends
    });
    end.and_then(|(at, _)| text.get(..at)).unwrap_or(text)
}

/// What the load carried in each direction, or why it broke off; empty without one.
fn load(document: &Document) -> String {
    let section = match &document.measurements.throughput {
        Outcome::Measured(section) => section,
        Outcome::Failed(why) => return format!("not finished: {}", why.reason.trim()),
        Outcome::Skipped(_) => return String::new(),
    };
    let passes = Direction::BOTH.into_iter().filter_map(|direction| {
        let passes = section.of(direction);
        let pass = passes.multi.measured().or_else(|| passes.single.measured())?;
        let plural = if pass.streams == 1 { "" } else { "s" };
        let how = format!("with {} stream{plural} for {:.0} s", pass.streams, pass.elapsed_us.0 as f64 / 1e6);
        Some((format!("{} {}", direction.arrow(), pass.goodput_bps), how))
    });
    let carried = match passes.collect::<Vec<_>>().as_slice() {
        [(up, how), (down, as_well)] if how == as_well => format!("{up}, {down} {how}"),
        some => some.iter().map(|(rate, how)| format!("{rate} {how}")).collect::<Vec<_>>().join(", "),
    };
    let broken = Direction::BOTH.into_iter().filter_map(|direction| match &section.of(direction).multi {
        Outcome::Failed(why) => Some(format!("{} not finished: {}", direction.arrow(), why.reason.trim())),
        _ => None,
    });
    let told = std::iter::once(carried).filter(|text| !text.is_empty()).chain(broken);
    told.collect::<Vec<_>>().join(" · ")
}

/// What a watch counted; empty where nobody watched.
fn watched(document: &Document) -> String {
    let watched = document.measurements.link.measured().and_then(|section| section.watched.measured());
    let Some((watched, grown)) = watched.map(|watched| (watched, grown(document, watched))) else { return String::new() };
    if grown.is_empty() {
        // Where neither end could be watched, the reasons stand among what was not measured.
        let any = watched.pc.measured().is_some() || watched.nas.measured().is_some();
        return if any { format!("within {}: no errors or drops", watched.elapsed_us) } else { String::new() };
    }
    let named = grown.iter().take(MOST_NAMED).map(|(name, counted)| format!("{name}: {counted}"));
    format!("within {}: {}", watched.elapsed_us, named.collect::<Vec<_>>().join(" · "))
}

/// How often which port lost its link, as the kernel's log has it.
fn broken(document: &Document) -> String {
    let mut counts: Vec<(String, usize, String)> = Vec::new();
    for (role, link) in ends(document) {
        let events = link.events.measured().into_iter().flatten();
        for event in events.filter(|event| matches!(event.kind, EventKind::Down)) {
            let name = named(document, role, &event.interface);
            match counts.iter_mut().find(|(known, ..)| *known == name) {
                Some((_, count, _)) => *count += 1,
                None => counts.push((name, 1, broke_during(&link.events, &event.interface))),
            }
        }
    }
    let times = |count: usize| if count == 1 { "once".to_owned() } else { format!("{count} times") };
    let told = counts.iter().take(MOST_NAMED).map(|(name, count, during)| format!("{name} {}{during}", times(*count)));
    let told = told.collect::<Vec<_>>().join(", ");
    if told.is_empty() { told } else { format!("{told}, by the kernel's log") }
}

#[cfg(test)]
#[path = "link_screen_tests.rs"]
mod tests;
