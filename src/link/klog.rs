//! What the kernel's log tells of the ports: which line is about which interface, and the reading of the log itself.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use super::klog_line::{Line, kind};
use super::tree::{Tree, is_interface_name};
use crate::model::link::{Interface, InterfaceKind};
use crate::model::link_event::{EventKind, LinkEvent, LogRest, MOST_EVENTS};
use crate::model::outcome::{Fact, Outcome, Source};
use crate::sys;
use crate::units::Elapsed;

/// A bus has no deeper way than this.
const DEEPEST: usize = 16;

/// What the log calls one interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Owner {
    /// The interface.
    name: String,
    /// Its device: `0000:03:00.0`, `5-1.2`, `fd580000.ethernet`; for USB without the number of the interface there.
    device: Option<String>,
    /// Its PHY as the kernel names it on the MDIO bus.
    phys: Vec<String>,
    /// Bridges and hubs above the device.
    above: Vec<String>,
}

/// What the kernel's log told of these interfaces since the system started, oldest first.
///
/// Skipped with the reason where the log may not be read, or is another machine's. It takes some milliseconds and blocks.
pub fn events(stack: &[Interface], tree: &Tree) -> Outcome<Vec<LinkEvent>> {
    let owners = owners(stack, tree);
    if owners.is_empty() {
        return Outcome::skipped("no interface of this link is a port that the kernel's log would tell of");
    }
    let mut log = Log { owners, events: VecDeque::new(), now: None, from: None };
    if !tree.is_system() {
        let Ok(text) = tree.read("/dev/kmsg") else { return Outcome::skipped("the recording holds no log of the kernel") };
        for line in text.lines() {
            log.record(line.as_bytes());
        }
        return Outcome::Measured(log.events.into());
    }
    if !tree.is_live() {
        return Outcome::skipped("this system's kernel keeps no log for programs; Linux does");
    }
    log.now = sys::klog::uptime();
    match sys::klog::read(&mut |record| log.record(record)) {
        Ok(()) => Outcome::Measured(log.events.into()),
        Err(error) => Outcome::skipped(why(&error)),
    }
}

fn owners(stack: &[Interface], tree: &Tree) -> Vec<Owner> {
    stack.iter().filter(|it| has_port(it.kind)).map(|it| owner(&it.name, tree)).collect()
}

/// The kernel's log of some interfaces from a moment on.
#[derive(Debug)]
pub struct LogFollower {
    log: Log,
    follow: io::Result<sys::klog::Follow>,
    began: Instant,
}

impl LogFollower {
    /// Begins behind the log's last line; it costs next to nothing until the end.
    pub fn start(stack: &[Interface], tree: &Tree) -> Self {
        let log = Log { owners: owners(stack, tree), events: VecDeque::new(), now: None, from: sys::klog::uptime() };
        Self { log, follow: sys::klog::follow(), began: Instant::now() }
    }

    /// What was written meanwhile; it takes a millisecond or so and blocks.
    ///
    /// Skipped with the reason where the log can't be followed.
    pub fn end(mut self) -> Outcome<LogRest> {
        let log = &mut self.log;
        let read = self.follow.and_then(|mut follow| follow.rest(&mut |record| log.record(record)));
        let followed_us = Elapsed::from(self.began.elapsed());
        match read {
            Ok(()) => Outcome::Measured(self.log.rest(followed_us)),
            Err(error) => Outcome::skipped(format!("the log could not be read again at the end of the run: {}", why(&error))),
        }
    }
}

fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "the kernel's log is for administrators only here (kernel.dmesg_restrict is 1, or this is a container); run as root, or with the capability CAP_SYSLOG, weaklink reads it".to_owned(),
        io::ErrorKind::NotFound => "there is no log of the kernel here (no /dev/kmsg, as in most containers); on the host itself there is".to_owned(),
        _ => format!("the kernel's log can't be read: {error}"),
    }
}

/// Adds to each port what the log says of its present link: the speed that it fell back from.
pub(super) fn add_downshifts(stack: &mut [Interface], events: &Outcome<Vec<LinkEvent>>) {
    let Some(events) = events.measured() else { return };
    for interface in stack {
        let Some(event) = LinkEvent::downshift(events, &interface.name) else { continue };
        if let Some(nic) = interface.nic.measured_mut() {
            nic.downshift = Outcome::Measured(Fact::new(event.text.clone(), Source::KernelLog));
        }
    }
}

/// Whether lines with the interface's name are about it: the names of virtual interfaces are free to be another's on the host.
const fn has_port(kind: InterfaceKind) -> bool {
    matches!(
        kind,
        InterfaceKind::Physical | InterfaceKind::Wifi | InterfaceKind::VirtualMachine | InterfaceKind::Bond | InterfaceKind::Team
    )
}

/// A USB interface's address without its number there: `2-1:1.0` is a part of the device `2-1`.
fn usb_device(name: &str) -> Option<&str> {
    let (device, part) = name.split_once(':')?;
    (device.contains('-') && part.contains('.')).then_some(device)
}

fn owner(name: &str, tree: &Tree) -> Owner {
    if !is_interface_name(name) {
        return Owner { name: name.to_owned(), ..Owner::default() };
    }
    let dir = format!("/sys/class/net/{name}");
    let way = tree.way_up(&format!("{dir}/device"));
    let mut places = way.iter().filter_map(|dir| dir.file_name()?.to_str()).map(str::to_owned).take(DEEPEST);
    let device = places.next().map(|device| usb_device(&device).map_or(device.clone(), str::to_owned));
    let above = places.filter(|place| Some(place) != device.as_ref() && is_place(place)).collect();
    let phy = tree.link_name(&format!("{dir}/phydev"));
    let phys = phy.into_iter().chain(device.iter().flat_map(|device| realtek_phys(device))).collect();
    Owner { name: name.to_owned(), device, phys, above }
}

/// Whether a directory's name can be that of a bridge or hub: `0000:00:1c.4`, `usb1`, `1-2`.
fn is_place(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_digit()) || name.starts_with("usb")
}

/// What r8169 calls the PHY inside a chip: its bus, device and function as one number, since 6.2 with the PCI domain before it.
fn realtek_phys(device: &str) -> Vec<String> {
    let number = |text: &str| u32::from_str_radix(text, 16).ok();
    let id = || {
        let (domain, rest) = device.split_once(':')?;
        let (bus, rest) = rest.split_once(':')?;
        let (slot, function) = rest.split_once('.')?;
        let id = number(bus)? << 8 | (number(slot)? & 31) << 3 | number(function)? & 7;
        Some((number(domain)?, id))
    };
    id().map_or_else(Vec::new, |(domain, id)| vec![format!("r8169-{id:x}:00"), format!("r8169-{domain:x}-{id:x}:00")])
}

/// The events of a log while it is read.
#[derive(Debug)]
struct Log {
    owners: Vec<Owner>,
    events: VecDeque<LinkEvent>,
    /// The time of the log's clock when it was read.
    now: Option<Duration>,
    /// Where only what is written from a moment on counts: that moment by the log's clock.
    from: Option<Duration>,
}

impl Log {
    fn record(&mut self, record: &[u8]) {
        let Some(line) = Line::parse(record) else { return };
        let Some(kind) = kind(&line.text) else { return };
        let Some(interface) = self.whose(&line, kind) else { return };
        if self.events.len() == MOST_EVENTS {
            self.events.pop_front();
        }
        let before_us = self.now.zip(line.at_us).map(|(now, at)| Elapsed(Elapsed::from(now).0.saturating_sub(at.0)));
        let into = |(from, at): (Duration, Elapsed)| Elapsed(at.0.saturating_sub(Elapsed::from(from).0));
        let into_run_us = self.from.zip(line.at_us).map(into);
        self.events.push_back(LinkEvent { at_us: line.at_us, before_us, into_run_us, interface, kind, text: line.text });
    }

    /// What a log told that was followed for so long: the log's clock strays a little from the system's, but nothing is of later.
    fn rest(self, followed_us: Elapsed) -> LogRest {
        let mut events: Vec<LinkEvent> = self.events.into();
        for event in &mut events {
            // A line without a time is of the run all the same.
            event.into_run_us = Some(event.into_run_us.map_or(followed_us, |into| into.min(followed_us)));
        }
        LogRest { events, followed_us }
    }

    /// The interface that a line is about; a line whose device is not one of ours is nobody's.
    fn whose(&self, line: &Line, kind: EventKind) -> Option<String> {
        let words: Vec<&str> = line.words().collect();
        if matches!(kind, EventKind::BondPortDown | EventKind::BondPortUp | EventKind::LacpMismatch) {
            // "bond0: (slave eth1): …", "bond0: … for interface eth1, …": the port stands behind the bond.
            return words
                .iter()
                .rev()
                .find_map(|word| self.owners.iter().find(|owner| owner.name == *word))
                .map(|it| it.name.clone());
        }
        let device = |owner: &&Owner| {
            line.device.iter().map(String::as_str).chain(words.iter().copied()).any(|word| owner.is_device(word))
        };
        if let Some(owner) = self.owners.iter().find(device) {
            return Some(owner.name.clone());
        }
        // A bridge above the port tells of all that is below it: only where it names nobody else.
        let above = |owner: &&Owner| {
            let is_above = |word: &&str| owner.above.iter().any(|place| place == *word);
            words.iter().any(&is_above) && words.iter().filter(|word| is_address(word)).all(is_above)
        };
        if let Some(owner) = self.owners.iter().find(|owner| about_bus(kind) && above(owner)) {
            return Some(owner.name.clone());
        }
        // A name beside another device's address is that device's, from before it was renamed.
        let foreign = words.iter().any(|word| is_address(word)) || line.device.as_deref().is_some_and(is_address);
        let named = |owner: &&Owner| words.contains(&owner.name.as_str()) && !(foreign && owner.device.is_some());
        self.owners.iter().find(named).map(|owner| owner.name.clone())
    }
}

/// Whether a line about a bridge or hub above the port is about the port too.
const fn about_bus(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::BusError
            | EventKind::BusErrorCorrected
            | EventKind::UsbReset(_)
            | EventKind::UsbSlow
            | EventKind::UsbAttached(_)
    )
}

/// Whether a word is the address of a device on PCI or USB, such as `0000:22:00.0` or `2-1:1.0`.
fn is_address(word: &str) -> bool {
    if word.starts_with(|c: char| c.is_ascii_digit()) && usb_device(word).is_some() {
        return true;
    }
    let hex = |text: &str, length: usize| text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut parts = word.split([':', '.']);
    let shape = [4, 2, 2, 1].into_iter().all(|length| parts.next().is_some_and(|part| hex(part, length)));
    shape && parts.next().is_none()
}

impl Owner {
    fn is_device(&self, word: &str) -> bool {
        let word_device = usb_device(word).unwrap_or(word);
        let same = self.device.as_deref().is_some_and(|device| {
            device == word_device
                || device == word
                || word.strip_prefix(device).is_some_and(|rest| rest.starts_with("-ffffffff:"))
        });
        same || self.phys.iter().any(|phy| phy == word)
    }
}

#[cfg(test)]
mod tests;
