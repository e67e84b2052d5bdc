//! Who may keep large packets back: everything on the way that has a size, ranked by evidence.

use super::super::seen::Seen;
use super::mtu_advice::{FRAME, TAG, layer, plain, set};
use super::mtu_black_hole::{Hole, other_way};
use crate::model::Role;
use crate::model::counter::{Basis, Meaning, Tells, meaning};
use crate::model::finding::Where;
use crate::model::link::{Interface, InterfaceKind, Neighbour};
use crate::model::mtu::Location;
use crate::units::Mtu;

/// A limit lets at most this much more through than its number: two VLAN tags and some slack of drivers.
pub(super) const ROOM: u32 = 18;

/// From this weight on a suspect is named as the place.
pub(super) const SURE: f64 = 0.8;

/// From this weight on the first suspect is called likely.
pub(super) const LIKELY: f64 = 0.65;

/// One that may be to blame.
pub(super) struct Suspect {
    pub(super) weight: f64,
    pub(super) place: Where,
    /// The evidence, a sentence.
    pub(super) text: String,
    /// What mends it.
    pub(super) mend: Option<String>,
    /// The sentence's subject, where the place is known.
    pub(super) title: Option<String>,
}

/// All that could keep packets of this hole back, most likely first.
pub(super) fn suspects(seen: &Seen<'_>, hole: &Hole<'_>) -> Vec<Suspect> {
    let (sender, receiver) = (hole.way.sender(), hole.way.receiver());
    let (first_leg, last_leg) = legs(hole.path.location.measured());
    let mut all: Vec<Suspect> = Vec::new();
    all.extend(hole.path.location.measured().and_then(|location| located(location, receiver)));
    all.extend(counted(seen, receiver));
    all.extend(held_back(seen, sender).filter(|_| first_leg));
    for (role, near) in [(sender, first_leg), (receiver, last_leg)] {
        if near {
            all.extend(layers(seen, role, hole));
            all.extend(neighbours(seen, role).filter_map(|neighbour| claimed(neighbour, role, hole)));
        }
    }
    let routed = hole.path.location.measured().is_some_and(is_routed);
    all.extend(one_sided(seen, hole).filter(|_| !routed));
    all.sort_by(|a, b| b.weight.total_cmp(&a.weight).then_with(|| a.text.cmp(&b.text)));
    all
}

/// Whether a router lies between the hosts.
pub(super) fn is_routed(location: &Location) -> bool {
    !location.hops.is_empty() || location.peer_at.is_some_and(|at| at > 1)
}

/// Whether the packets may vanish on the way to the first router, and on the way from the last one.
fn legs(location: Option<&Location>) -> (bool, bool) {
    let Some(location) = location else { return (true, true) };
    (location.reached == 0, location.missing.is_none() || location.missing == location.peer_at)
}

/// A place of a path in words: `the router 10.0.2.1 (hop 2)`.
fn place(location: &Location, ttl: u8, receiver: Role) -> String {
    if location.peer_at == Some(ttl) {
        return format!("the {}", receiver.title());
    }
    let known = location.hops.iter().find(|hop| hop.ttl == ttl).and_then(|hop| hop.address);
    known.map_or_else(|| format!("hop {ttl}, which does not name itself"), |address| format!("the router {address} (hop {ttl})"))
}

/// Between which two routers they vanish.
fn located(location: &Location, receiver: Role) -> Option<Suspect> {
    if !is_routed(location) {
        return None;
    }
    let size = location.size;
    let to = match location.missing {
        Some(next) => format!(", on the way to {}", place(location, next, receiver)),
        None => ", and no place behind that answers".to_owned(),
    };
    let skipped = location.missing.is_some_and(|next| next > location.reached.saturating_add(1));
    let silent = if skipped { " Routers between the two do not answer." } else { "" };
    let sender = receiver.peer().title();
    let (text, title, place_of) = if location.reached == 0 {
        (
            format!("Packets of {size} bytes leave the {sender} and vanish{to}.{silent}"),
            format!("Large packets vanish right behind the {sender}{to}"),
            format!("the link between the {sender} and its first router"),
        )
    } else {
        let last = place(location, location.reached, receiver);
        (
            format!("Packets of {size} bytes reach {last} and vanish behind it{to}.{silent}"),
            format!("Large packets vanish behind {last}{to}"),
            format!("the link behind {last}"),
        )
    };
    let mend = format!(
        "Look at {place_of}: its two ends need the same MTU, and a router in front of a smaller one must be allowed to say so (ICMP “fragmentation needed”, IPv6 “packet too big”: no firewall may drop these)."
    );
    let weight = if location.missing.is_some() { 0.9 } else { 0.7 };
    Some(Suspect { weight, place: Where::Path, text, mend: Some(mend), title: Some(title) })
}

/// Whether a counter grows for frames that are too long; for a name that no table has, a word in it tells.
fn tells_length(name: &str, meaning: Option<Meaning>) -> bool {
    // A jabber is a frame that is too long for the port, whatever its check sum is.
    let words = ["length_err", "long_length", "oversize", "giant", "jabber", "too_long", "toolong", "frame_size"];
    match meaning {
        Some(known) if known.basis != Basis::Word && !name.contains("jabber") => known.tells == Tells::TooLong,
        _ => !name.starts_with("tx") && words.iter().any(|word| name.contains(word)),
    }
}

/// Whether no cable and no chip is behind an interface: what it drops, its other end refused.
fn is_virtual(seen: &Seen<'_>, role: Role, interface: &str) -> bool {
    let stack = seen.end(role).link.map(|link| link.stack.as_slice()).unwrap_or_default();
    stack.iter().any(|layer| layer.name == interface && layer.kind == InterfaceKind::Veth)
}

fn moved(seen: &Seen<'_>, role: Role, tells: impl Fn(&str, Option<Meaning>) -> bool) -> Option<(String, String)> {
    let stack = seen.end(role).link.map(|link| link.stack.as_slice()).unwrap_or_default();
    let driver = |name: &str| stack.iter().find(|it| it.name == name)?.driver.measured().map(|fact| fact.value.as_str());
    let counters = seen.doc.measurements.mtu.measured()?.counters(role).measured()?;
    counters.iter().find_map(|(interface, counters)| {
        if is_virtual(seen, role, interface) {
            return None;
        }
        let grown = counters
            .0
            .iter()
            .filter(|(name, count)| **count > 0 && tells(&name.to_ascii_lowercase(), meaning(driver(interface), name)));
        let grown: Vec<String> = grown.take(4).map(|(name, count)| format!("{name} +{count}")).collect();
        (!grown.is_empty()).then(|| (interface.clone(), grown.join(", ")))
    })
}

/// What the receiving interface counted meanwhile.
fn counted(seen: &Seen<'_>, receiver: Role) -> Option<Suspect> {
    let end = receiver.title();
    if let Some((interface, grown)) = moved(seen, receiver, tells_length) {
        let text = format!(
            "The {end}'s interface {interface} counted frames that are too long while large packets were tried ({grown}): they arrived there and its driver dropped them, so the switch carries them."
        );
        let mend = format!(
            "Give the {end}'s interface {interface} a larger MTU, or update its driver: some accept a setting and still drop such frames."
        );
        let title = format!("Large packets arrive at the {end} and its interface {interface} drops them");
        return Some(Suspect { weight: 0.95, place: receiver.into(), text, mend: Some(mend), title: Some(title) });
    }
    let drops = |name: &str, _| ["rx_dropped", "rx_drop", "rx_discard"].iter().any(|word| name.starts_with(word));
    let (interface, grown) = moved(seen, receiver, drops)?;
    let text = format!(
        "The {end}'s interface {interface} dropped frames while large packets were tried ({grown}); that can have other reasons too."
    );
    Some(Suspect { weight: 0.55, place: receiver.into(), text, mend: None, title: None })
}

/// What the sending interface counted meanwhile.
fn held_back(seen: &Seen<'_>, sender: Role) -> impl Iterator<Item = Suspect> {
    let tells =
        |name: &str, _| name.starts_with("tx") && (name.contains("drop") || name.contains("err") || name.contains("long"));
    let end = sender.title();
    moved(seen, sender, tells)
        .map(|(interface, grown)| Suspect {
            weight: 0.6,
            place: sender.into(),
            text: format!(
                "The {end}'s interface {interface} dropped packets on their way out while large ones were tried ({grown})."
            ),
            mend: None,
            title: None,
        })
        .into_iter()
}

/// Whether a limit of `mtu` explains that packets of `passes` are the largest.
fn fits(mtu: Mtu, passes: Mtu) -> bool {
    (mtu.0..=mtu.0.saturating_add(ROOM)).contains(&passes.0)
}

/// The layers of a host below the interface of its route that have less than it.
fn layers(seen: &Seen<'_>, role: Role, hole: &Hole<'_>) -> Vec<Suspect> {
    let Some(link) = seen.end(role).link else { return Vec::new() };
    let Some((top, below)) = link.stack.split_first() else { return Vec::new() };
    let of = |interface: &Interface| interface.mtu.measured().map(|fact| fact.value);
    let small = below.iter().filter_map(|layer| Some((layer, of(layer).filter(|mtu| *mtu < hole.both)?)));
    let end = role.title();
    small
        .filter(|(_, mtu)| fits(*mtu, hole.path.mtu))
        .map(|(interface, mtu)| Suspect {
            weight: if role == hole.way.sender() { 0.9 } else { 0.85 },
            place: role.into(),
            text: format!(
                "At the {end} {} {} has MTU {mtu}, less than {} above it ({}).",
                layer(interface.kind),
                interface.name,
                top.name,
                of(top).unwrap_or(hole.both)
            ),
            mend: Some(format!(
                "Give {} the MTU of what is above it: {}.",
                interface.name,
                set(seen, role, Some(interface), hole.both)
            )),
            title: Some(format!("Large packets vanish at the {end}: {} {} has MTU {mtu}", layer(interface.kind), interface.name)),
        })
        .collect()
}

/// What the devices at the other end of a host's cables say.
fn neighbours<'a>(seen: &Seen<'a>, role: Role) -> impl Iterator<Item = &'a Neighbour> {
    seen.end(role).link.and_then(|link| link.neighbours.measured()).into_iter().flatten()
}

/// What a switch port says about its largest frame.
fn claimed(neighbour: &Neighbour, role: Role, hole: &Hole<'_>) -> Option<Suspect> {
    let frame = neighbour.max_frame_bytes?;
    // Devices count different parts of a frame; this is the standard's.
    let packets = Mtu(frame.saturating_sub(FRAME));
    let port = neighbour.port.as_deref().and_then(plain).map(|port| format!(" {port}")).unwrap_or_default();
    let end = role.title();
    let whose = format!("The switch port{port} at the {end}'s {}", neighbour.interface);
    if neighbour.takes(hole.both)? {
        let text = format!(
            "{whose} says that it takes frames of {frame} bytes, enough for packets of {}: by its word not that port.",
            hole.both
        );
        return Some(Suspect { weight: 0.2, place: Where::Path, text, mend: None, title: None });
    }
    if !(frame.saturating_sub(FRAME + TAG)..=frame).any(|mtu| fits(Mtu(mtu), hole.path.mtu)) {
        return None;
    }
    let need = hole.both.0.saturating_add(FRAME);
    Some(Suspect {
        weight: 0.88,
        place: Where::Path,
        text: format!(
            "{whose} says that its largest frame has {frame} bytes: packets of {packets}, or {} with a VLAN tag.",
            frame.saturating_sub(FRAME + TAG)
        ),
        mend: Some(format!(
            "Set the switch port{port} at the {end}'s cable to jumbo frames (a largest frame of {need} bytes or more, {} with VLAN tags).",
            need.saturating_add(TAG)
        )),
        title: Some(format!(
            "Large packets vanish at the switch: its port{port} towards the {end} takes frames of {frame} bytes only"
        )),
    })
}

/// What it means that the other direction carries what this one does not.
fn one_sided(seen: &Seen<'_>, hole: &Hole<'_>) -> Option<Suspect> {
    let back = other_way(hole.way);
    let back = seen.path(back).filter(|path| path.mtu >= hole.both)?;
    let (sender, receiver) = (hole.way.sender().title(), hole.way.receiver().title());
    Some(Suspect {
        weight: 0.5,
        place: Where::Path,
        text: format!(
            "The other direction carries {} bytes over the same cables: a limit of what receives, so the {receiver}'s own interface and its driver, or the switch port that takes in what the {sender} sends.",
            back.mtu
        ),
        mend: None,
        title: None,
    })
}

/// What a limit of this size mostly is, where nothing else tells.
pub(super) fn typical(seen: &Seen<'_>, hole: &Hole<'_>) -> Option<Suspect> {
    if hole.path.location.measured().is_some_and(is_routed) {
        return None;
    }
    let mtu = hole.path.mtu;
    if (1500..=1508).contains(&mtu.0) && hole.both > Mtu::ETHERNET {
        return Some(switch_port(seen, hole));
    }
    let missing = hole.both.0.saturating_sub(mtu.0);
    let what = match mtu.0 {
        4000..=4096 => "a limit of network cards and their drivers (buffers of 4 KiB), which no switch has",
        7100..=7200 => "the largest frame of some network cards (7 KB)",
        _ if (1..=8).contains(&missing) => {
            "a few bytes less than both ends use: a VLAN tag or a PPPoE header takes them on the way"
        }
        _ if (20..=100).contains(&missing) => {
            "as much less than both ends use as the headers of a tunnel or an overlay network take"
        }
        _ => return None,
    };
    let text = format!("{mtu} bytes is {what}.");
    Some(Suspect { weight: 0.4, place: Where::Path, text, mend: None, title: None })
}

/// The port that everybody forgets.
fn switch_port(seen: &Seen<'_>, hole: &Hole<'_>) -> Suspect {
    let says_so = |role: Role| neighbours(seen, role).any(|neighbour| neighbour.takes(hole.both) == Some(true));
    let cleared = says_so(Role::Pc) && says_so(Role::Nas);
    let room = match hole.path.mtu.0.saturating_sub(Mtu::ETHERNET.0) {
        0 => String::new(),
        more => format!(", and {more} more is the room for a VLAN tag"),
    };
    Suspect {
        // A switch's own word is no proof; a port between two switches remains.
        weight: if cleared { 0.5 } else { 0.7 },
        place: Where::Path,
        text: format!(
            "a switch port between the hosts has jumbo frames off, or the switch has none: {} bytes is what Ethernet carries without them{room}.",
            Mtu::ETHERNET
        ),
        mend: None,
        title: Some("Large packets vanish between the hosts, probably at a switch port without jumbo frames".to_owned()),
    }
}
