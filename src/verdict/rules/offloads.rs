//! A core that is full because the network card leaves it the work.

use super::super::counted::counted;
use super::super::seen::{Load, Seen, Way};
use super::super::words::percent;
use super::list::{Hit, Rule, RuleDoc};
use crate::model::Role;

const CODE: &str = "network.nic-driver-or-offload";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "The network card leaves its work to the processor",
        meaning: "Cutting data into packets (or gathering packets) is switched off at the card, so a processor core does it packet by packet and is full with it.",
        detected: "A core full during the pass at an end whose port has segmentation (the sender: TSO and GSO) or gathering (the receiver: GRO) off, while TCP stays clearly below the wire; or frames that reached the port and found no room there, while the processor had time and the bus did not sleep; or a transmitter that stood still until the driver started it anew, by its counter or the kernel's log.",
        fix: "Turn it on (ethtool -K PORT tso on gso on gro on); where the driver was told to keep it off for its faults, update driver and firmware.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    let ends = [Role::Pc, Role::Nas];
    seen.ways.iter().flat_map(|way| ends.into_iter().filter_map(move |role| off(seen, way, role))).collect()
}

fn off(seen: &Seen<'_>, way: &Way<'_>, role: Role) -> Option<Hit> {
    let pass = way.best.filter(|_| way.gap())?;
    let load = Load::during(pass, role)?;
    if !load.core_full() || load.background() || load.too_little() {
        return None;
    }
    let port = seen.end(role).port()?;
    let offloads = port.offloads.measured()?;
    let is_off = |name: &str| offloads.get(name) == Some(&false);
    let (missing, word) = if role == way.direction.sender() {
        (is_off("tx-tcp-segmentation") && is_off("tx-generic-segmentation"), "segmentation (TSO and GSO)")
    } else {
        (is_off("rx-gro"), "gathering of packets (GRO)")
    };
    missing.then(|| {
        Hit::tcp(CODE, role, way.direction)
            .weight(0.73, 2)
            .soft()
            .shows(format!("{}: {word} is off at the {}'s port {}.", way.direction.arrow(), role.title(), port.name))
            .shows(format!("Its busiest core was {} busy, our busiest thread {}.", percent(load.core), percent(load.thread)))
            .also(way.wire.map(|wire| format!("{} arrive, the wire could carry {wire}.", pass.goodput_bps)))
            .noting(counted(seen, pass, role).overrun(pass).map(|lost| lost.words(role)))
            .advise("Turn the offloads of the card on (ethtool -K PORT tso on gso on gro on) and measure again.")
    })
}
