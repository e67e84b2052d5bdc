//! A port that linked slower than it could.

use super::super::ideal;
use super::super::ladder::Part;
use super::super::limits;
use super::super::seen::{End, Seen};
use super::list::{Explains, Hit, Rule, RuleDoc};
use crate::model::Role;
use crate::model::finding::Where;
use crate::model::link::{Interface, LinkModes};
use crate::model::link_event::{EventKind, LinkEvent};
use crate::units::BitRate;

const CODE: &str = "network.link-below-capability";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "A port linked slower than it can",
        meaning: "The cable between a host and its switch runs below what the port can do, and every copy with it. A bad pair in the cable, a slower partner port or a fixed speed are the usual reasons.",
        detected: "The negotiated speed beside the speeds that the port supports, that it offers, and that its partner offers. What one side does not offer names the side. The rate of TCP sits at the slower speed.",
        fix: "Both sides offer more: replace the cable or plug, or find a forced speed. Own side offers less: turn automatic negotiation on with all speeds. The partner offers less: use a faster switch port.",
    },
    check,
}];

/// What one end could do for one flow: its ports' best, and what it has now.
fn capable(end: &End<'_>) -> Option<BitRate> {
    end.ports().into_iter().filter_map(|port| listed(port).max(chip(port))).max().max(end.flow)
}

/// The fastest mode that a port's driver lists.
fn listed(port: &Interface) -> Option<BitRate> {
    port.modes.measured()?.supported_bps.iter().max().copied()
}

/// What a port's chip can do by its number.
fn chip(port: &Interface) -> Option<BitRate> {
    port.nic.measured()?.chip_bps
}

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    let of = |role| seen.end(role).ports().into_iter().filter_map(move |port| below(seen, role, port));
    [Role::Pc, Role::Nas].into_iter().flat_map(of).collect()
}

/// The speed of one port of an end: its own in an aggregation, else the way's.
fn speed_of(end: &End<'_>, port: &Interface) -> Option<BitRate> {
    // A speed that the user states is the cable's; what the port can do says nothing against it.
    if end.stated {
        return None;
    }
    let Some(bond) = end.bond() else { return end.flow };
    let told = || bond.ports.iter().find(|it| it.name == port.name)?.speed_bps;
    let own = port.speed_bps.measured().map(|fact| fact.value).filter(|rate| rate.0 > 0);
    own.or_else(told).filter(|rate| rate.0 > 0)
}

/// What one end could use of many flows.
fn usable(end: &End<'_>) -> Option<BitRate> {
    capable(end).max(end.total)
}

fn below(seen: &Seen<'_>, role: Role, port: &Interface) -> Option<Hit> {
    let end = seen.end(role);
    let speed = speed_of(end, port)?;
    let fell = fallen(end, &port.name);
    let nothing = LinkModes::default();
    let modes = port.modes.measured().or((fell.is_some() || chip(port).is_some()).then_some(&nothing))?;
    let potential = capable(end)?;
    // A port that fell back has shown what both sides offered.
    let potential = fell.as_ref().and_then(|(from, _)| *from).map_or(potential, |from| potential.max(from));
    let partner = modes.partner_bps.iter().max().copied();
    // A driver that lists little does not prove a slow port: then the partner's word counts.
    let potential = potential.max(partner.filter(|_| modes.supported_bps.is_empty()).unwrap_or(potential));
    if !reaches(potential, speed) {
        return None;
    }
    // It costs only what the other end could use.
    let bonded = end.bond().is_some();
    let other = if bonded { usable(seen.end(role.peer())) } else { capable(seen.end(role.peer())) };
    // The links of an aggregation add up.
    let potential_of_all = match end.total.filter(|_| bonded) {
        Some(total) => BitRate(total.0.saturating_sub(speed.0).saturating_add(potential.0)),
        None => potential,
    };
    let now = end.total.filter(|_| bonded).unwrap_or(speed);
    let useful = other.map_or(potential_of_all, |other| potential_of_all.min(other));
    let costs = seen.line.is_none_or(|line| useful.as_f64() > line.as_f64() * limits::WORTH);
    // The slower of both ends is the line; mending the faster one alone changes nothing.
    let binds = seen.line.is_none_or(|line| now <= line);
    let beyond = chip(port).filter(|chip| reaches(*chip, speed) && listed(port).is_none_or(|listed| listed <= speed));
    let told = Told { modes, autoneg: port.autoneg.measured().map(|fact| fact.value), chip: beyond };
    let (place, side, advice, weight) = told.side(role, speed);
    let can = if beyond.is_some() { "its chip can do" } else { "it supports" };
    let explains = if costs && binds { Explains::Part(Part::Line) } else { Explains::Info };
    let kinds = 1 + u32::from(other.is_some()) + u32::from(partner.is_some());
    let limit = seen.line.map(|_| ideal::wire_ceiling(useful, seen.mtu, seen.ip));
    Some(
        Hit::new(CODE, place, explains)
            .weight(weight, kinds)
            .relieved(limit)
            .shows(format!("The {}'s port {} linked at {speed}; {can} {potential}.", role.title(), port.name))
            .shows(side)
            .also(fell.map(|(_, text)| text))
            .noting(bonded.then(|| "It is one port of an aggregation, which loses what this port lacks.".to_owned()))
            .advise(advice),
    )
}

/// The speed that the port's present link fell back from by the kernel's log, and the sentence that says so.
///
/// The kernel writes "check cabling", but a partner that is too slow or at fault does the same: it is a suspicion.
fn fallen(end: &End<'_>, port: &str) -> Option<(Option<BitRate>, String)> {
    let event = LinkEvent::downshift(end.link?.events.measured()?, port)?;
    let EventKind::Downshift([from, _]) = event.kind else { return None };
    let text = format!(
        "The kernel's log says that this link fell back from a faster one (\"{}\"): a pair of the cable, a plug or the partner's port is suspected.",
        event.text
    );
    Some((from, text))
}

/// Whether a rate is a step above a speed.
fn reaches(rate: BitRate, speed: BitRate) -> bool {
    rate.as_f64() >= speed.as_f64() * limits::SPEED_STEP
}

/// What is known of a port that linked slower than it could.
struct Told<'a> {
    modes: &'a LinkModes,
    autoneg: Option<bool>,
    /// What its chip can do, where its driver lists no more than the speed of now.
    chip: Option<BitRate>,
}

impl Told<'_> {
    /// Whose side it is: place, evidence, advice, and how sure.
    fn side(&self, role: Role, speed: BitRate) -> (Where, String, &'static str, f64) {
        let Self { modes, autoneg, chip } = self;
        let most = |list: &[BitRate]| list.iter().max().copied();
        let here = Where::from(role);
        if *autoneg == Some(false) {
            return (
                here,
                "Automatic negotiation is off at this port.".to_owned(),
                "Turn automatic negotiation on at this port.",
                0.95,
            );
        }
        let partner = most(&modes.partner_bps);
        if chip.is_some() {
            // A partner that offers more shows that the driver is the limit; one that offers no more would be it with any driver.
            return match partner {
                Some(partner) if partner <= speed => (
                    Where::Path,
                    format!(
                        "The partner at the other end of the cable offers at most {partner}, and the port's own driver lists no more."
                    ),
                    "Use a faster port of the switch or router, and the newest driver for this card.",
                    0.9,
                ),
                Some(partner) => (
                    here,
                    format!("The port's driver lists no more than this speed; the partner offers {partner}."),
                    "Install the newest driver for this card (its maker's, or a newer kernel).",
                    0.9,
                ),
                None => (
                    here,
                    "The port's driver lists no more than this speed; what the partner offers is not known.".to_owned(),
                    "Install the newest driver for this card (its maker's, or a newer kernel), and look up the speed of the switch port.",
                    0.75,
                ),
            };
        }
        if let Some(own) = most(&modes.advertised_bps).filter(|own| *own <= speed) {
            return (
                here,
                format!("The port itself offers at most {own}."),
                "Let the port offer all speeds that it supports (look for a fixed speed or a power saving setting).",
                0.95,
            );
        }
        match partner {
            Some(partner) if partner <= speed => (
                Where::Path,
                format!("The partner at the other end of the cable offers at most {partner}."),
                "Use a faster port of the switch or router; if it is meant to be faster, try another cable and look at its settings.",
                0.9,
            ),
            Some(partner) => (
                Where::Path,
                format!("Both sides offer more (the partner {partner}): the cable or a plug does not carry it."),
                "Replace the cable and look at the plugs: a broken or bad pair makes ports step down.",
                0.95,
            ),
            None => (
                here,
                "What the partner offers is not known.".to_owned(),
                "Look up the speed of the switch port; if it can do more, replace the cable.",
                0.8,
            ),
        }
    }
}
