//! A network card that hangs on a bus slower than its cable.

use super::super::counted::counted;
use super::super::limits;
use super::super::phases::everywhere;
use super::super::seen::{Seen, Way};
use super::list::{Explains, Hit, Rule, RuleDoc};
use super::unstable::when;
use crate::model::Role;
use crate::model::counter::{Meaning, Tells};
use crate::model::link::Interface;
use crate::model::link_event::{EventKind, LinkEvent};
use crate::units::BitRate;

const CODE: &str = "network.nic-bus";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "The network card's bus is too slow",
        meaning: "The card itself could do more, but its USB port or PCIe slot carries less. A multi-gigabit USB adapter on USB 2 gives about 40 MB/s and may even link at 1 Gbit/s only, which looks like a cable fault.",
        detected: "The slowest part of the way from the card to the root (every hub and bridge), less the bus's own overhead, beside the link's rate and the rate that TCP reached; or the card's own counters that its bus kept it waiting for half of a slow pass, or lost frames at it.",
        fix: "Move the adapter to a USB 3 port (turn or replace a USB-C adapter plug), or the card to a slot with more or faster lanes.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    let stalled = |role| seen.ways.iter().find_map(|way| stalled(seen, way, role));
    let of = |role| {
        let narrow: Vec<Hit> = seen.end(role).ports().into_iter().filter_map(|port| bus(seen, role, port)).collect();
        if narrow.is_empty() { stalled(role).into_iter().collect() } else { narrow }
    };
    [Role::Pc, Role::Nas].into_iter().flat_map(of).collect()
}

/// The card's own word that its bus kept it waiting: cards that count it need no arithmetic.
fn stalled(seen: &Seen<'_>, way: &Way<'_>, role: Role) -> Option<Hit> {
    let pass = way.best.filter(|_| way.gap())?;
    let counted = counted(seen, pass, role);
    let waited = |meaning: Meaning| meaning.tells == Tells::BusStalledSeconds;
    let dropped = |meaning: Meaning| meaning.tells == Tells::BusDropped;
    let seconds = counted.most(waited) as f64;
    let lost = counted.most(dropped) as f64 * limits::PAYLOAD as f64 >= limits::PORT_DROPS * pass.bytes.0 as f64;
    if seconds < (limits::BUS_STALLED * pass.elapsed_us.seconds()).max(1.0) && !(lost && counted.most(dropped) > 0) {
        return None;
    }
    Some(
        Hit::tcp(CODE, role, way.direction)
            .weight(0.84, 2)
            .titled(format!("The bus of the {}'s network card keeps it waiting", role.title()))
            .shows(format!(
                "{}: the {}'s card counted that its bus did not take data in time ({}).",
                way.direction.arrow(),
                role.title(),
                counted.names(|meaning| waited(meaning) || dropped(meaning)).unwrap_or_default()
            ))
            .also(way.wire.map(|wire| format!("{} arrive, the wire could carry {wire}.", pass.goodput_bps)))
            .advise("Use a slot with more or faster lanes, at the processor that serves the card, and look for other devices on the same bridge."),
    )
}

/// What counters of all passes, disk tests and copies and the kernel's log say of the bus.
fn signs(seen: &Seen<'_>, role: Role) -> Option<String> {
    let sign = |meaning: Meaning| matches!(meaning.tells, Tells::BusSign | Tells::BusDropped | Tells::BusStalledSeconds);
    let counters = everywhere(seen, role).find_map(|(during, counted)| counted.names(sign).map(|names| (during, names)));
    if let Some((during, names)) = counters {
        return Some(format!("The card counted trouble with its bus during {during}: {names}."));
    }
    let said = |event: &&LinkEvent| {
        matches!(event.kind, EventKind::UsbSlow | EventKind::BusLimited(_) | EventKind::BusError | EventKind::Gone)
    };
    let event = seen.end(role).events().into_iter().rev().find(said)?;
    let when = event.into_run_us.map(|_| when(event)).unwrap_or_default();
    Some(format!("The kernel's log of the {}{when}: {}", role.title(), event.text))
}

fn bus(seen: &Seen<'_>, role: Role, port: &Interface) -> Option<Hit> {
    let end = seen.end(role);
    let bus = port.bus.measured()?;
    let usable = match bus.kind.as_str() {
        "pci" => limits::PCIE_USABLE,
        "usb" => limits::USB_USABLE,
        _ => return None,
    };
    let ceiling = bus.rate_bps.as_ref().map(|fact| fact.value)?.scale(usable);
    // A port of an aggregation needs its own link's rate.
    let own = port.speed_bps.measured().map(|fact| fact.value).filter(|rate| rate.0 > 0);
    let flow = if end.bond().is_some() { own.or(end.flow) } else { end.flow };
    let line = flow.max(port.modes.measured().and_then(|modes| modes.supported_bps.iter().max().copied()));
    // A bus that carries what the line does is no limit.
    if ceiling.0 == 0 || line.is_none_or(|line| ceiling.as_f64() >= line.as_f64() * limits::AT_LINE_RATE) {
        return None;
    }
    let most = seen.ways.iter().filter_map(Way::rate).max();
    if most.is_none() && !seen.doc.plan.scope.is_link() {
        return None;
    }
    let wire = seen.ways.iter().find_map(|way| way.wire);
    let below_line = wire.is_none_or(|wire| ceiling < wire);
    let at_bus = |most: BitRate| (limits::AT_BUS..=1.0 / limits::AT_BUS).contains(&(most.as_f64() / ceiling.as_f64()));
    // Without a rate the speed of the link says whether the bus is the narrower: one that only bars a faster link costs nothing now.
    let sits = most.map_or_else(|| flow.is_none_or(|flow| ceiling < flow), at_bus);
    let explains = if sits && below_line { Explains::Network } else { Explains::Info };
    Some(
        Hit::new(CODE, role, explains)
            .weight(0.96, 1)
            .relieved(wire.or(line).map(|rate: BitRate| rate.max(ceiling)))
            .shows(format!(
                "The {}'s port {} is attached by {}: at most about {ceiling} of TCP.",
                role.title(),
                port.name,
                bus.description
            ))
            .also(most.map(|most| format!("TCP reached {most}.")))
            .noting(signs(seen, role))
            .also(device_can_more(bus.max_rate_bps.as_ref().map(|fact| fact.value), bus.rate_bps.as_ref().map(|fact| fact.value)))
            .advise(
                "Use a faster USB port or PCIe slot for this network card (USB: a true SuperSpeed port; turn a USB-C plug over).",
            ),
    )
}

fn device_can_more(most: Option<BitRate>, now: Option<BitRate>) -> Option<String> {
    let (most, now) = (most?, now?);
    (most > now).then(|| format!("The card could use {most} of bus, it has {now}."))
}
