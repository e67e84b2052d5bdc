//! What the ports of one end counted during a pass or another phase, by meaning.

use std::collections::HashMap;

use super::limits;
use super::seen::Seen;
use super::words::percent;
use crate::model::Role;
use crate::model::counter::{CounterMeaning, Meaning, Side, Tells, explain};
use crate::model::link::{CountersByInterface, Interface, InterfaceKind};
use crate::model::throughput::Pass;
use crate::units::{ByteSize, Elapsed};

/// The most counters that a sentence names.
const NAMED: usize = 3;

/// What the interfaces of one end counted.
pub(super) struct Counted<'a> {
    interfaces: Vec<(&'a str, Vec<CounterMeaning>)>,
    /// Frames that arrived, at the interface that took most.
    arrived: u64,
}

/// The raw counters of one end during a pass.
pub(super) fn raw(pass: &Pass, role: Role) -> Option<&CountersByInterface> {
    match role {
        Role::Pc => pass.counters_pc.measured(),
        Role::Nas => pass.counters_nas.measured(),
    }
}

/// What the interfaces of `role` counted during a pass; a virtual pair has no port, so what it counts is of another kind.
pub(super) fn counted<'a>(seen: &Seen<'a>, pass: &'a Pass, role: Role) -> Counted<'a> {
    of(seen, raw(pass, role), role)
}

/// The same over the time in which the counters were only watched, and how long that was; none where they were not.
pub(super) fn watched<'a>(seen: &Seen<'a>, role: Role) -> Option<(Counted<'a>, Elapsed)> {
    let watched = seen.doc.measurements.link.measured()?.watched.measured()?;
    let counters = if role == Role::Pc { &watched.pc } else { &watched.nas };
    Some((of(seen, counters.measured(), role), watched.elapsed_us))
}

/// What the interfaces of `role` counted, by these counters of theirs.
pub(super) fn of<'a>(seen: &Seen<'a>, counters: Option<&'a CountersByInterface>, role: Role) -> Counted<'a> {
    let link = seen.end(role).link;
    let stack = link.map(|link| link.stack.as_slice()).unwrap_or_default();
    let stack: HashMap<&str, &Interface> = stack.iter().map(|interface| (interface.name.as_str(), interface)).collect();
    let named = |name: &str| stack.get(name).copied();
    // Where the way is known, an interface beside it says nothing of it.
    let on_way = |name: &str| named(name).map_or(link.is_none(), |interface| interface.kind != InterfaceKind::Veth);
    let all = counters.into_iter().flatten().filter(|(name, _)| on_way(name));
    let arrived = all.clone().filter_map(|(_, counters)| counters.get("rx_packets")).max().unwrap_or(0);
    let one = |(name, counters): (&'a String, _)| (name.as_str(), explain(driver(named(name)), counters));
    Counted { interfaces: all.map(one).collect(), arrived }
}

fn driver(interface: Option<&Interface>) -> Option<&str> {
    interface?.driver.measured().map(|fact| fact.value.as_str())
}

impl Counted<'_> {
    fn matching(&self, what: impl Fn(Meaning) -> bool) -> Vec<(&str, &CounterMeaning)> {
        let all = self.interfaces.iter().flat_map(|(name, counters)| counters.iter().map(move |counter| (*name, counter)));
        let mut found: Vec<_> = all.filter(|(_, counter)| counter.meaning.is_some_and(&what)).collect();
        found.sort_by(|a, b| b.1.grown.cmp(&a.1.grown).then(a.1.name.cmp(&b.1.name)).then(a.0.cmp(b.0)));
        found
    }

    /// How much the counter grew most that tells this: one event moves several, at several layers.
    pub(super) fn most(&self, what: impl Fn(Meaning) -> bool) -> u64 {
        self.matching(what).first().map_or(0, |(_, counter)| counter.grown)
    }

    /// The counters that tell this, in words: `eth0 rx_missed +900`; none where none grew.
    pub(super) fn names(&self, what: impl Fn(Meaning) -> bool) -> Option<String> {
        let found = self.matching(what);
        let words: Vec<String> =
            found.iter().take(NAMED).map(|(name, counter)| format!("{name} {} +{}", counter.name, counter.grown)).collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// The bytes that went the one way or the other at the interface that moved most of them: `rx_bytes`, `tx_bytes`.
    pub(super) fn moved(&self, name: &str) -> u64 {
        let all = self.interfaces.iter().flat_map(|(_, counters)| counters);
        all.filter(|counter| counter.name == name).map(|counter| counter.grown).max().unwrap_or(0)
    }

    /// The share of the frames that arrived which this many are; none where frames were not counted.
    pub(super) fn share_of_arrived(&self, frames: u64) -> Option<f64> {
        (self.arrived > 0).then(|| frames as f64 / self.arrived.saturating_add(frames) as f64)
    }

    /// How much each counter of each interface grew that tells this.
    pub(super) fn each(&self, what: impl Fn(Meaning) -> bool) -> impl Iterator<Item = ((&str, &str), u64)> {
        self.matching(what).into_iter().map(|(name, counter)| ((name, counter.name.as_str()), counter.grown))
    }

    /// Frames that came over the cable and found no room in the port: how many, and whether it was the ring that was empty; none
    /// while they are too few to matter.
    pub(super) fn overrun(&self, pass: &Pass) -> Option<Overrun> {
        self.overrun_of(pass.bytes)
    }

    /// The same while so much payload was moved.
    pub(super) fn overrun_of(&self, payload: ByteSize) -> Option<Overrun> {
        let is = |tells| move |meaning: Meaning| meaning.tells == tells && meaning.side == Side::Rx;
        let (ring, fifo, late) = (self.most(is(Tells::Ring)), self.most(is(Tells::Fifo)), self.most(is(Tells::HostTooSlow)));
        // Without a count of frames the payload tells how many there were at least.
        let frames = if self.arrived > 0 { self.arrived } else { payload.0 / limits::PAYLOAD };
        let lost = ring.max(fifo);
        let share = lost as f64 / frames.saturating_add(lost).max(1) as f64;
        (share >= limits::PORT_DROPS).then(|| Overrun {
            lost,
            share,
            ring: ring > 0 || late > 0,
            names: self.names(|meaning| meaning.is_overflow() || meaning.tells == Tells::HostTooSlow).unwrap_or_default(),
        })
    }
}

/// Frames that found no room in the port.
pub(super) struct Overrun {
    /// How many.
    pub(super) lost: u64,
    /// Their share of those that arrived.
    pub(super) share: f64,
    /// The host had no descriptors ready, so its core was late; else only the port's own memory ran over.
    pub(super) ring: bool,
    /// The counters that say so.
    pub(super) names: String,
}

impl Overrun {
    /// In one sentence.
    pub(super) fn words(&self, role: Role) -> String {
        let why = if self.ring {
            "the host had no receive buffers ready for them"
        } else {
            "its own memory was full, as the host or its bus fetched too slowly"
        };
        format!(
            "{} frames ({}) reached the {}'s port and found no room there: {why} ({}).",
            self.lost,
            percent(self.share),
            role.title(),
            self.names
        )
    }
}
