//! A host that is asked by its own programs: which interfaces it has, what each tells, and what stands below it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

use super::adapters::Adapters;
use super::ifconfig::{self, Ifconfig, is_name};
use super::{list, netstat, pciconf, route, script, unix, windows};
use crate::model::link::{Bond, Counters, Interface, InterfaceKind as Kind};
use crate::model::outcome::Outcome;
use crate::sys::ports::{Listed, Question, Teller};
use crate::sys::program::Printed;

/// More interfaces than these are not listed below one.
const MOST: usize = 32;

/// Asks a program of the system.
pub(super) type Ask<'a> = &'a dyn Fn(Question<'_>) -> io::Result<Printed>;

/// An interface, and the names directly below it.
type One = (Interface, Vec<String>);

/// The host.
pub(super) struct Machine<'a> {
    teller: Teller,
    pub(super) listed: Vec<Listed>,
    ask: Ask<'a>,
    /// What PowerShell told, where it is the one to ask.
    windows: Option<Adapters>,
    /// What was told already: each program is started once for an interface.
    told: RefCell<BTreeMap<String, One>>,
}

impl<'a> Machine<'a> {
    /// The host with the answers that come all at once.
    pub(super) fn new(teller: Teller, listed: Vec<Listed>, ask: Ask<'a>, peer: Option<IpAddr>) -> Self {
        let windows = (teller == Teller::PowerShell).then(|| {
            let printed = ask(Question::Script(&script::script(peer))).unwrap_or_default();
            Adapters::read(&printed.text)
        });
        Self { teller, listed, ask, windows, told: RefCell::default() }
    }

    /// The host without the program that takes seconds.
    pub(super) fn quick(teller: Teller, listed: Vec<Listed>, ask: Ask<'a>) -> Self {
        Self { teller, listed, ask, windows: None, told: RefCell::default() }
    }

    fn row(&self, name: &str) -> Option<&Listed> {
        self.listed.iter().find(|listed| listed.name == name)
    }

    /// The names of all interfaces, each once.
    pub(super) fn names(&self) -> Vec<String> {
        let adapters = self.windows.iter().flat_map(|told| &told.all).map(|adapter| &adapter.name);
        let mut names: Vec<String> = self.listed.iter().map(|listed| &listed.name).chain(adapters).cloned().collect();
        names.retain(|name| !name.is_empty());
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The interface of the route to `peer`, and the next hop; none where no program tells.
    pub(super) fn route(&self, peer: IpAddr) -> Option<(String, Option<IpAddr>)> {
        match self.teller {
            Teller::Ifconfig => route::decode(&(self.ask)(Question::Route(peer)).ok()?.text),
            _ => self.windows.as_ref()?.route.clone(),
        }
    }

    /// The interfaces from `top` down, `top` first and always there.
    pub(super) fn stack(&self, top: &str) -> Vec<Interface> {
        let (mut stack, mut next): (Vec<Interface>, Vec<String>) = (Vec::new(), vec![top.to_owned()]);
        let mut at = 0;
        while let Some(name) = next.get(at).cloned() {
            at += 1;
            let (mut interface, below) = self.one(&name);
            interface.counters = self.counters(&interface);
            stack.push(interface);
            for name in below {
                if next.len() < MOST && !next.contains(&name) {
                    next.push(name);
                }
            }
        }
        let ports = stack.clone();
        for interface in &mut stack {
            interface.bond = interface.bond.take().map(|bond| join(bond, &ports));
        }
        stack
    }

    /// What one interface tells, and the names directly below it.
    pub(super) fn one(&self, name: &str) -> One {
        if let Some(told) = self.told.borrow().get(name) {
            return told.clone();
        }
        let one = self.asked(name);
        self.told.borrow_mut().insert(name.to_owned(), one.clone());
        one
    }

    fn asked(&self, name: &str) -> One {
        let listed = self.row(name);
        match (&self.windows, self.teller) {
            (Some(told), _) => (windows::interface(told, name, listed), windows::below(told, name)),
            (None, Teller::Ifconfig) => match self.ifconfig(name) {
                Ok(told) => {
                    let kind = unix::kind(name, &told, listed);
                    (unix::interface(name, &told, listed, self.bus(name, kind)), told.below())
                }
                Err(why) => (list::interface(name, listed, &why), Vec::new()),
            },
            (None, _) => (list::interface(name, listed, list_only()), Vec::new()),
        }
    }

    fn ifconfig(&self, name: &str) -> Result<Ifconfig, String> {
        if !is_name(name) {
            return Err("the interface's name is none that weaklink would give to a program of the system".to_owned());
        }
        let printed = (self.ask)(Question::Interface(name)).map_err(|error| format!("ifconfig could not be run: {error}"))?;
        let mut told = ifconfig::decode(&printed.text);
        if told.flags.is_empty() {
            return Err(format!("ifconfig printed nothing about {name} that weaklink can read"));
        }
        // The details are printed to another question, where there is one.
        let details = told.bond.is_some().then(|| (self.ask)(Question::Aggregation(name)).ok()).flatten();
        let details = details.and_then(|printed| ifconfig::decode(&printed.text).bond);
        if let Some(details) = details.filter(|details| !details.ports.is_empty()) {
            told.bond = Some(details);
        }
        Ok(told)
    }

    fn bus(&self, name: &str, kind: Kind) -> Result<crate::model::link::Bus, String> {
        if !matches!(kind, Kind::Physical | Kind::VirtualMachine | Kind::Wifi | Kind::Unknown) {
            return Err(list::no_bus(name));
        }
        match (self.ask)(Question::Bus(name)) {
            Ok(printed) => pciconf::decode(&printed.text)
                .ok_or_else(|| format!("pciconf tells no link of PCI Express for {name}: it is on another bus, or inside the chipset")),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Err(
                "no quick program of this system tells the bus of a port; System Information, or usbconfig and pcictl on the BSDs, show it"
                    .to_owned(),
            ),
            Err(error) => Err(format!("pciconf could not be run: {error}")),
        }
    }

    /// The counters of an interface as they are now.
    fn counters(&self, interface: &Interface) -> Outcome<Counters> {
        let name = &interface.name;
        let counted = match self.teller {
            Teller::Ifconfig if is_name(name) => (self.ask)(Question::Counters(name)).ok(),
            _ => None,
        };
        let counted = counted.map(|printed| netstat::decode(&printed.text, name)).unwrap_or_default();
        if counted.is_empty() { interface.counters.clone() } else { Outcome::Measured(Counters(counted)) }
    }

    /// The counters of `name` alone, without whatever takes seconds; none where nobody counts.
    pub(super) fn count(&self, name: &str) -> Option<Counters> {
        self.counters(&list::interface(name, self.row(name), "")).measured().cloned()
    }
}

/// Why there is no more than the list.
const fn list_only() -> &'static str {
    if cfg!(target_os = "linux") {
        "this build of weaklink (feature `portable`) asks only the portable list of interfaces, which does not tell it; the ordinary build for Linux asks the kernel"
    } else {
        "on this system weaklink knows no program that tells it, and the list of interfaces does not"
    }
}

/// The aggregation with what its ports told of themselves.
fn join(mut bond: Bond, ports: &[Interface]) -> Bond {
    for port in &mut bond.ports {
        let Some(told) = ports.iter().find(|it| it.name == port.name) else { continue };
        port.up = told.carrier.measured().copied();
        port.speed_bps = told.speed_bps.measured().map(|fact| fact.value);
        port.duplex = told.duplex.measured().map(|fact| fact.value);
        // A port without a link carries nothing, whatever was chosen before.
        if port.up == Some(false) && port.active == Some(true) {
            port.active = Some(false);
        }
    }
    bond
}
