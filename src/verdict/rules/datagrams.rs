//! Datagrams that get lost below the line rate, and who lost them.

use super::super::ideal;
use super::super::limits;
use super::super::rates_answer::lost_of;
use super::super::seen::{Load, Seen};
use super::super::words::percent;
use super::list::{Explains, Hit, Rule, RuleDoc};
use crate::model::cpu::CpuWindow;
use crate::model::finding::Where;
use crate::model::udp::{UdpDirection, UdpPass};
use crate::model::{Direction, Role};
use crate::units::BitRate;

const CODE: &str = "network.datagram-loss";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "Datagrams get lost below the line rate",
        meaning: "Datagrams that are sent evenly, slower than the links are, do not all arrive: something on the way holds less than both ends' ports claim, or drops.",
        detected: "The rate from which on the network loses 0.5 % and more is below 85 % of what the line carries in datagrams of this size; or, where the line is not known, of what passes without loss in the other direction, or of what TCP carries in the same one. What the receiver's own kernel dropped is counted apart: that is its host, not the network.",
        fix: "Look at speed, drop counters and flow control of the switch ports on the way; where the receiver drops, at its processor.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    let both = Direction::BOTH.into_iter();
    both.flat_map(|way| [network(seen, way), receiver(seen, way)]).flatten().collect()
}

fn measured<'a>(seen: &Seen<'a>, direction: Direction) -> Option<&'a UdpDirection> {
    seen.doc.measurements.throughput.measured()?.udp.measured()?.of(direction).measured()
}

/// What the line carries in datagrams of this size, where both ends' speeds are known.
pub(in super::super) fn wire(seen: &Seen<'_>, udp: &UdpDirection) -> Option<BitRate> {
    let line = seen.line.filter(|_| !seen.inferred)?;
    Some(ideal::udp_ceiling(line, udp.datagram_bytes, seen.ip))
}

/// What the receiver's own kernel dropped, as a share of what was sent.
fn dropped(pass: &UdpPass) -> f64 {
    let own = pass.dropped_by_receiver.measured().copied().unwrap_or(0);
    if pass.sent == 0 { 0.0 } else { own as f64 / pass.sent as f64 }
}

fn network(seen: &Seen<'_>, direction: Direction) -> Option<Hit> {
    let udp = measured(seen, direction)?;
    let from = udp.loss_from_bps?;
    let pass = udp.passes.iter().find(|pass| pass.asked_bps == from || pass.sent_bps == from);
    let loss = pass.map_or(0.0, UdpPass::network_loss);
    let other = Direction::BOTH.into_iter().find(|way| *way != direction).and_then(|way| measured(seen, way));
    let back = other.and_then(|udp| udp.clean_bps);
    let (reference, what) = match (wire(seen, udp), back) {
        (Some(wire), _) => (wire, format!("the line could carry {wire}")),
        (None, Some(back)) => (back, format!("backwards {back} pass without loss")),
        // What TCP carries on the same path, datagrams of the same size would too.
        (None, None) => (seen.way(direction).rate()?, format!("TCP carries {} there", seen.way(direction).rate()?)),
    };
    if from.as_f64() >= limits::LOSS_COSTS * reference.as_f64() || loss < limits::LOSS_SHARE {
        return None;
    }
    let way = seen.way(direction);
    // TCP that does not fill the line has its loss confirmed; where it does, or was not measured, lost datagrams are a fault of their own.
    let explains =
        if way.best.is_some() && way.gap() { Explains::Part(super::super::ladder::Part::Tcp) } else { Explains::Fault };
    let speeds = seen.end(direction.sender()).flow.zip(seen.end(direction.receiver()).flow);
    let step = speeds.filter(|(fast, slow)| fast.as_f64() >= limits::SPEED_STEP * slow.as_f64());
    let one_sided = other.filter(|udp| udp.loss_from_bps.is_none_or(|back| back.as_f64() * limits::LOSS_COSTS > from.as_f64()));
    Some(
        Hit::new(CODE, Where::Path, explains)
            .towards(direction)
            .weight(0.7, 1)
            .shows(match udp.only() {
                Some(pass) => format!("{}: {}, while {what}.", direction.arrow(), lost_of(pass)),
                None => format!("{}: from {from} on the network loses datagrams ({}), while {what}.", direction.arrow(), percent(loss)),
            })
            .noting(one_sided.filter(|_| udp.only().is_none()).map(|_| "Backwards it does not lose that early.".to_owned()))
            .also(step.map(|(fast, slow)| {
                let (sender, receiver) = (direction.sender().title(), direction.receiver().title());
                format!("The {sender} links at {fast}, the {receiver} at {slow}: a port between them has to hold back what comes too fast.")
            }))
            .also(way.rate().map(|rate| format!("TCP reaches {rate} there.")))
            .advise("Look at the speed, drop counters and flow control of each switch port on the way."),
    )
}

/// The receiver's program was late: its host lost datagrams, not the network.
fn receiver(seen: &Seen<'_>, direction: Direction) -> Option<Hit> {
    let udp = measured(seen, direction)?;
    let pass = udp.passes.iter().find(|pass| dropped(pass) >= limits::LOSS_SHARE)?;
    let role = direction.receiver();
    let window: Option<&CpuWindow> = match role {
        Role::Pc => pass.cpu_pc.measured(),
        Role::Nas => pass.cpu_nas.measured(),
    };
    let full = window.map(Load::of).filter(|load| load.full());
    Some(
        Hit::new("cpu.network-stack-core", role, Explains::Info)
            .towards(direction)
            .titled(format!("The {} does not take datagrams fast enough", role.title()))
            .shows(format!(
                "{}: at {} the {}'s own kernel dropped {} of the datagrams, as the program there did not take them in time. That is this host, not the network.",
                direction.arrow(),
                pass.sent_bps,
                role.title(),
                percent(dropped(pass))
            ))
            .also(full.map(|load| format!("Its busiest core was {} busy.", percent(load.core)))),
    )
}
