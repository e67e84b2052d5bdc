//! What each port of an aggregation carried during a pass or a copy, by the ports' own counters.

use super::super::counted::raw;
use super::super::limits;
use super::super::phases::phases;
use super::super::seen::{End, Seen};
use crate::model::link::CountersByInterface;
use crate::model::throughput::Pass;
use crate::model::{Direction, Role};
use crate::units::{BitRate, ByteSize, Elapsed};

/// Fewer bytes than these are other traffic as well.
const LEAST: u64 = 10_000_000;
/// From this share of the bytes on, a port carries them alone: acknowledgements and other traffic are the rest.
const ALONE: f64 = 0.90;
/// Ports are even while none carries this much more than its part.
const UNEVEN: f64 = 1.30;

/// Which way a port's bytes went.
#[derive(Clone, Copy)]
pub(super) enum Moved {
    Sent,
    Received,
}

impl Moved {
    /// The kernel's counter.
    const fn counter(self) -> &'static str {
        match self {
            Self::Sent => "tx_bytes",
            Self::Received => "rx_bytes",
        }
    }

    const fn verb(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Received => "received",
        }
    }
}

/// The bytes of an aggregation's ports in one direction.
pub(super) struct Carried {
    role: Role,
    moved: Moved,
    /// Each port's bytes, and its rate.
    ports: Vec<(String, u64, BitRate)>,
    total: u64,
}

/// What the ports of one end's aggregation carried; none where an end has no aggregation of several ports, or counters are missing.
pub(super) fn carried(seen: &Seen<'_>, pass: &Pass, role: Role, moved: Moved) -> Option<Carried> {
    carried_of(seen, (raw(pass, role)?, pass.elapsed_us, pass.bytes), role, moved)
}

/// The first copy in one direction that one port of this end carried alone, in words.
pub(super) fn copied_alone(seen: &Seen<'_>, direction: Direction, role: Role, moved: Moved) -> Option<String> {
    let copies = phases(seen).into_iter().filter(|phase| phase.direction == Some(direction));
    let mut alone = copies.filter_map(|phase| {
        let ports = carried_of(seen, (phase.raw(role)?, phase.elapsed(), ByteSize(0)), role, moved)?;
        ports.alone().then(|| format!("During {}: {}", phase.words, ports.sentence()))
    });
    alone.next()
}

/// The same of counters over some time in which so many bytes were moved.
fn carried_of(
    seen: &Seen<'_>,
    (counters, time, payload): (&CountersByInterface, Elapsed, ByteSize),
    role: Role,
    moved: Moved,
) -> Option<Carried> {
    let bond = seen.end(role).bond().filter(|bond| bond.ports.len() > 1)?;
    let seconds = time.seconds();
    let bytes = |name: &str| Some(counters.get(name)?.get(moved.counter()).unwrap_or(0));
    let rate = |bytes: u64| BitRate(if seconds > 0.0 { (bytes as f64 * 8.0 / seconds) as u64 } else { 0 });
    let ports: Option<Vec<_>> =
        bond.ports.iter().map(|port| bytes(&port.name).map(|b| (port.name.clone(), b, rate(b)))).collect();
    let ports = ports?;
    let total = ports.iter().fold(0, |sum: u64, (_, bytes, _)| sum.saturating_add(*bytes));
    (total >= LEAST.max(payload.0 / 2)).then_some(Carried { role, moved, ports, total })
}

impl Carried {
    fn largest(&self) -> Option<&(String, u64, BitRate)> {
        self.ports.iter().max_by_key(|(_, bytes, _)| *bytes)
    }

    fn share(&self, bytes: u64) -> f64 {
        bytes as f64 / self.total as f64
    }

    /// Whether one port carried all of it.
    pub(super) fn alone(&self) -> bool {
        self.largest().is_some_and(|(_, bytes, _)| self.share(*bytes) >= ALONE)
    }

    /// Whether one port was full while the others had room.
    pub(super) fn one_full(&self, end: &End<'_>) -> bool {
        let (Some(flow), Some((_, bytes, rate))) = (end.flow, self.largest()) else { return false };
        let full = rate.as_f64() >= limits::NEAR_LINE_RATE * flow.as_f64();
        let even = self.total as f64 / self.ports.len() as f64;
        full && *bytes as f64 > UNEVEN * even
    }

    /// For people: `The NAS's ports sent: eth0 940 MB (97 %), eth1 29 MB (3 %).`
    pub(super) fn sentence(&self) -> String {
        let part = |(name, bytes, _): &(String, u64, BitRate)| {
            format!("{name} {} ({:.0} %)", ByteSize(*bytes), 100.0 * self.share(*bytes))
        };
        let parts: Vec<String> = self.ports.iter().map(part).collect();
        format!("The {}'s ports {}: {}.", self.role.title(), self.moved.verb(), parts.join(", "))
    }
}

/// Whether no port carried much more than its part.
pub(super) fn even(ports: &Carried) -> bool {
    let part = ports.total as f64 / ports.ports.len() as f64;
    ports.ports.iter().all(|(_, bytes, _)| *bytes as f64 <= UNEVEN * part)
}
