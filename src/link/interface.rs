//! All facts of one interface, each from the best source that answers.

use std::collections::BTreeMap;
use std::io;

use super::ethtool;
use super::facts::LinkRow;
use super::nic::{self, Around, Link, Port};
use super::stack::Host;
use super::tree::Tree;
use super::{bus, counters, kind};
use crate::model::link::{Bus, Duplex, Interface, InterfaceKind as Kind, LinkModes};
use crate::model::outcome::{Fact, Outcome, Source};
use crate::sys;
use crate::units::{BitRate, Mtu};

/// One interface while its facts are gathered.
pub(super) struct Probe<'a> {
    tree: &'a Tree,
    name: &'a str,
    row: Option<&'a LinkRow>,
    /// Why the files below `/sys/class/net/NAME` do not count, if they do not.
    no_sysfs: Option<String>,
}

/// The driver's name: from sysfs, else from ethtool, which names virtual devices too.
pub(super) fn driver(tree: &Tree, name: &str) -> Option<Fact<String>> {
    if let Some(driver) = tree.link_name(&format!("/sys/class/net/{name}/device/driver")) {
        return Some(Fact::new(driver, Source::Sysfs));
    }
    let field = if tree.is_live() { sys::net::ethtool_driver(name).ok()? } else { return None };
    ethtool::name(&field).map(|driver| Fact::new(driver, Source::Ethtool))
}

/// What kind of interface a name is.
pub(super) fn kind_of(host: &Host<'_>, name: &str) -> Kind {
    let driver = driver(host.tree, name);
    kind::recognise(host.tree, name, host.row(name), driver.as_ref().map(|driver| driver.value.as_str()))
}

/// Gathers the facts of `name`, which is of `kind`; `row` is its row of the kernel's list, if there is one.
pub(super) fn collect(tree: &Tree, name: &str, kind: Kind, row: Option<&LinkRow>) -> Interface {
    let probe = Probe::new(tree, name, row);
    let port = Port::new(tree, name);
    let link = port.link();
    let modes = probe.modes(&link);
    let driver = driver(tree, name);
    let around = Around { tree, name, kind, row, no_sysfs: probe.no_sysfs.as_deref() };
    Interface {
        name: name.to_owned(),
        kind,
        mtu: probe.mtu(),
        speed_bps: probe.speed(kind, &link),
        duplex: probe.duplex(&link),
        autoneg: match &link {
            // A driver that tells nothing else leaves this field at its zero.
            Ok(link) if link.value.says_nothing() => {
                Outcome::skipped(format!("the driver of {name} tells nothing about its link"))
            }
            Ok(link) => Outcome::Measured(Fact::new(link.value.autoneg, link.source)),
            Err(why) => Outcome::skipped(why.clone()),
        },
        bus: probe.bus(kind, driver.as_ref(), &modes),
        driver: driver.map_or_else(
            || Outcome::skipped(format!("no driver of {name} is known: neither sysfs nor ethtool names one")),
            Outcome::Measured,
        ),
        modes,
        bond: None,
        carrier_changes: probe.carrier_changes(),
        carrier: probe.carrier(),
        offloads: probe.offloads(),
        counters: counters::of_interface(name, tree, row),
        nic: nic::collect(&around, &port, &link),
    }
}

impl<'a> Probe<'a> {
    fn new(tree: &'a Tree, name: &'a str, row: Option<&'a LinkRow>) -> Self {
        let dir = format!("/sys/class/net/{name}");
        let no_sysfs = match tree.why_no_sys() {
            Some(why) => Some(why.to_owned()),
            None if tree.has(&dir) => None,
            None => Some(format!("there is no {dir} here, as in some containers; on the host itself there is")),
        };
        Self { tree, name, row, no_sysfs }
    }

    /// A file of the interface, or the sentence why it cannot be read.
    fn file(&self, file: &str) -> Result<String, String> {
        if let Some(why) = &self.no_sysfs {
            return Err(why.clone());
        }
        let path = format!("/sys/class/net/{}/{file}", self.name);
        self.tree.read(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => format!("this kernel has no file {path}"),
            io::ErrorKind::InvalidInput if self.is_down() => {
                format!("{} is down, so the kernel does not tell its {file}; it does when the interface is up", self.name)
            }
            io::ErrorKind::InvalidInput => format!("the driver of {} does not tell its {file}", self.name),
            _ => format!("cannot read {path}: {error}"),
        })
    }

    fn is_down(&self) -> bool {
        /// `IFF_UP` of linux/if.h.
        const UP: u32 = 1;
        let flags = self.tree.read(&format!("/sys/class/net/{}/flags", self.name)).ok();
        let flags = flags.and_then(|text| u32::from_str_radix(text.trim_start_matches("0x"), 16).ok());
        self.row.map_or_else(|| flags.is_some_and(|flags| flags & UP == 0), |row| !row.up)
    }

    fn modes(&self, link: &Link) -> Outcome<LinkModes> {
        match link {
            Ok(link) if link.value.modes == LinkModes::default() => {
                Outcome::skipped(format!("the driver of {} lists no link modes, so what the port can do is not known", self.name))
            }
            Ok(link) => Outcome::Measured(link.value.modes.clone()),
            Err(why) => Outcome::skipped(why.clone()),
        }
    }

    fn bus(&self, kind: Kind, driver: Option<&Fact<String>>, modes: &Outcome<LinkModes>) -> Outcome<Bus> {
        let name = self.name;
        let mut bus = match (kind, &self.no_sysfs) {
            (Kind::Physical | Kind::VirtualMachine | Kind::Wifi, None) => {
                bus::collect(self.tree, name, kind, driver.map(|driver| driver.value.as_str()))
            }
            (Kind::Physical | Kind::VirtualMachine | Kind::Wifi | Kind::Unknown, Some(why)) => Outcome::skipped(why.clone()),
            (Kind::Veth, _) => Outcome::skipped(format!(
                "{name} is one end of a virtual pair (veth), as containers have: it hangs on no bus, the host's own port does"
            )),
            _ => Outcome::skipped(format!("{name} is made by software and hangs on no bus")),
        };
        if let Outcome::Measured(bus) = &mut bus {
            bus::doubt(bus, modes.measured().and_then(|modes| modes.supported_bps.last().copied()));
        }
        bus
    }

    fn mtu(&self) -> Outcome<Fact<Mtu>> {
        if let Some(mtu) = self.row.and_then(|row| row.mtu) {
            return Outcome::Measured(Fact::new(Mtu(mtu), Source::Rtnetlink));
        }
        match self.file("mtu").map(|text| text.parse()) {
            Ok(Ok(mtu)) => Outcome::Measured(Fact::new(Mtu(mtu), Source::Sysfs)),
            Ok(Err(_)) => Outcome::failed(format!("the MTU of {} is no number", self.name)),
            Err(why) => Outcome::skipped(why),
        }
    }

    fn speed(&self, kind: Kind, link: &Link) -> Outcome<Fact<BitRate>> {
        if kind == Kind::Loopback {
            return Outcome::skipped("the loopback interface is memory and has no speed");
        }
        if let Ok((Some(speed), source)) = link.as_ref().map(|link| (link.value.speed, link.source)) {
            return Outcome::Measured(Fact::new(speed, source));
        }
        match self.file("speed").map(|text| parse_speed(&text)) {
            Ok(Some(speed)) => Outcome::Measured(Fact::new(speed, Source::Sysfs)),
            Err(why) if kind != Kind::Wifi => Outcome::skipped(why),
            _ => Outcome::skipped(self.no_speed(kind)),
        }
    }

    /// Why a driver that can be asked states no speed.
    fn no_speed(&self, kind: Kind) -> String {
        let name = self.name;
        match kind {
            Kind::Wifi => format!("Wi-Fi ({name}) has no fixed speed: the radio changes it all the time"),
            Kind::VirtualMachine => format!(
                "{name} is a port of a virtual machine and states no speed; --link-speed tells what the host's cable runs at"
            ),
            Kind::Physical if self.carrier().measured() == Some(&false) => {
                format!("{name} has no link, so it has no speed; plug in the cable")
            }
            _ => format!("the driver of {name} says that its speed is unknown; --link-speed can tell it"),
        }
    }

    fn duplex(&self, link: &Link) -> Outcome<Fact<Duplex>> {
        if let Ok((Some(duplex), source)) = link.as_ref().map(|link| (link.value.duplex, link.source)) {
            return Outcome::Measured(Fact::new(duplex, source));
        }
        match self.file("duplex").as_deref() {
            Ok("full") => Outcome::Measured(Fact::new(Duplex::Full, Source::Sysfs)),
            Ok("half") => Outcome::Measured(Fact::new(Duplex::Half, Source::Sysfs)),
            Ok(_) => Outcome::skipped(format!("the driver of {} says that its duplex is unknown", self.name)),
            Err(why) => Outcome::skipped(why.clone()),
        }
    }

    fn carrier(&self) -> Outcome<bool> {
        if let Some(carrier) = self.row.and_then(|row| row.carrier) {
            return Outcome::Measured(carrier);
        }
        match self.file("carrier").as_deref() {
            Ok("1") => Outcome::Measured(true),
            Ok("0") => Outcome::Measured(false),
            Ok(_) => Outcome::failed(format!("the carrier file of {} holds neither 0 nor 1", self.name)),
            Err(why) => Outcome::skipped(why.clone()),
        }
    }

    fn carrier_changes(&self) -> Outcome<u64> {
        if let Some(changes) = self.row.and_then(|row| row.carrier_changes) {
            return Outcome::Measured(changes.into());
        }
        match self.file("carrier_changes").map(|text| text.parse()) {
            Ok(Ok(changes)) => Outcome::Measured(changes),
            Ok(Err(_)) => Outcome::failed(format!("the carrier_changes file of {} is no number", self.name)),
            Err(why) => Outcome::skipped(why),
        }
    }

    fn offloads(&self) -> Outcome<BTreeMap<String, bool>> {
        if !self.tree.is_live() {
            return Outcome::skipped("ethtool can be asked only on the running machine, not in a recording");
        }
        let names = sys::net::ethtool_feature_names(self.name);
        match names.and_then(|names| Ok((names, sys::net::ethtool_features(self.name)?))) {
            Ok((names, blocks)) => Outcome::Measured(ethtool::features(&names, &blocks)),
            Err(error) => {
                let old = self.old_offloads();
                if old.is_empty() {
                    Outcome::skipped(format!("the kernel does not tell the offloads of {} ({error})", self.name))
                } else {
                    Outcome::Measured(old)
                }
            }
        }
    }

    /// The offloads by the commands of kernels before 2.6.39 and of drivers' own kernels.
    fn old_offloads(&self) -> BTreeMap<String, bool> {
        let answers = ethtool::OLD_FEATURES.iter().filter_map(|(command, feature, bit, always)| {
            let on = sys::net::ethtool_value(self.name, *command).ok()? >> bit & 1 == 1;
            (on || *always).then(|| ((*feature).to_owned(), on))
        });
        answers.collect()
    }
}

/// The speed alone, where the interface states one.
pub(super) fn speed_of(tree: &Tree, name: &str, kind: Kind, row: Option<&LinkRow>) -> Option<BitRate> {
    let probe = Probe::new(tree, name, row);
    probe.speed(kind, &Port::new(tree, name).link()).measured().map(|fact| fact.value)
}

/// A `speed` file: Mbit/s; `-1`, 4294967295, 65535 and 0 are unknown.
fn parse_speed(text: &str) -> Option<BitRate> {
    ethtool::speed(text.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_that_is_not_known_is_never_a_number() {
        for (text, speed) in [
            ("1000", Some(BitRate(1_000_000_000))),
            ("2500", Some(BitRate(2_500_000_000))),
            ("-1", None),
            ("4294967295", None),
            ("65535", None),
            ("0", None),
            ("Unknown!", None),
            ("", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(parse_speed(text), speed, "{text}");
        }
    }
}
