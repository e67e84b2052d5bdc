//! All facts of one port, each from the first source that answers.

use std::collections::BTreeSet;
use std::io;

use super::ask::{Link, Port, Way, is_denied, is_unsupported};
use super::interrupts::{self, Owner};
use super::netlink::{self, Question};
use super::structures::{self, Driver};
use super::{hardware, module, pause};
use crate::link::facts::LinkRow;
use crate::link::tree::Tree;
use crate::model::link::InterfaceKind as Kind;
use crate::model::nic::{Mdi, ModeNames, Module, Nic, Pause, PortKind, QueueInterrupts};
use crate::model::outcome::{Fact, Outcome, Source};
use crate::units::BitRate;

/// What is known around a port before its own facts are asked for.
pub(in crate::link) struct Around<'a> {
    /// The machine's files.
    pub tree: &'a Tree,
    /// The interface's name.
    pub name: &'a str,
    /// What it is.
    pub kind: Kind,
    /// Its row of the kernel's list, if there is one.
    pub row: Option<&'a LinkRow>,
    /// Why the files below `/sys/class/net/NAME` do not count, if they do not.
    pub no_sysfs: Option<&'a str>,
}

/// Gathers the facts; `link` is what the port said of its link already.
pub(in crate::link) fn collect(around: &Around<'_>, port: &Port, link: &Link) -> Outcome<Box<Nic>> {
    if around.kind == Kind::Loopback {
        return Outcome::skipped("the loopback interface is memory: there is no port and no card");
    }
    let gather = Gather { around, port, link };
    let (up, no_link_because) = gather.state();
    let driver = gather.driver();
    Outcome::Measured(Box::new(Nic {
        mac: gather.mac(),
        mode_names: gather.mode_names(),
        modes_doubt: gather.modes_doubt(),
        chip_bps: gather.chip().map(|chip| chip.most),
        port: gather.connector(),
        mdi: gather.mdi(),
        no_link_because,
        downshift: Outcome::skipped("a port does not tell of a downshift itself; the kernel's log does"),
        pause: gather.pause(up),
        eee: port.fact(&Way {
            what: "Energy-Efficient Ethernet",
            netlink: (Question::Eee, netlink::eee),
            ioctl: (structures::EEE, structures::eee),
        }),
        fec: port.fact(&Way {
            what: "forward error correction",
            netlink: (Question::Fec, netlink::fec),
            ioctl: (structures::FEC, structures::fec),
        }),
        module: gather.module(),
        rings: port.fact(&Way {
            what: "rings",
            netlink: (Question::Rings, netlink::rings),
            ioctl: (structures::RINGS, structures::rings),
        }),
        channels: port.fact(&Way {
            what: "channels (queues)",
            netlink: (Question::Channels, netlink::channels),
            ioctl: (structures::CHANNELS, structures::channels),
        }),
        rss_queues: gather.rss_queues(),
        interrupts: gather.interrupts(),
        coalescing: port.fact(&Way {
            what: "interrupt coalescing",
            netlink: (Question::Coalescing, netlink::coalescing),
            ioctl: (structures::COALESCING, structures::coalescing),
        }),
        driver_version: gather.driver_version(&driver),
        firmware: gather.of_driver(&driver, "firmware's version", |driver| driver.firmware.clone()),
        bus_address: gather.bus_address(&driver),
        tx_queues: gather.tx_queues(),
    }))
}

/// A chip that weaklink knows.
struct Chip {
    /// Vendor and device, as `lspci` and `lsusb` write them.
    number: String,
    most: BitRate,
}

struct Gather<'a> {
    around: &'a Around<'a>,
    port: &'a Port,
    link: &'a Link,
}

impl Gather<'_> {
    /// A path below the interface's directory, or why there is none.
    fn path(&self, file: &str) -> Result<String, String> {
        match self.around.no_sysfs {
            Some(why) => Err(why.to_owned()),
            None => Ok(format!("/sys/class/net/{}/{file}", self.around.name)),
        }
    }

    fn mac(&self) -> Outcome<Fact<String>> {
        let text = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":");
        let row = self.around.row.filter(|row| row.mac.len() == 6 && row.mac.iter().any(|byte| *byte != 0));
        if let Some(row) = row {
            return Outcome::Measured(Fact::new(text(&row.mac), Source::Rtnetlink));
        }
        let path = match self.path("address") {
            Ok(path) => path,
            Err(why) => return Outcome::skipped(why),
        };
        match self.around.tree.read(&path) {
            Ok(address) if is_mac(&address) => Outcome::Measured(Fact::new(address, Source::Sysfs)),
            Ok(_) => Outcome::skipped(format!("{} has no hardware address of Ethernet", self.around.name)),
            Err(error) => Outcome::skipped(format!("cannot read {path}: {error}")),
        }
    }

    fn mode_names(&self) -> Outcome<Fact<ModeNames>> {
        match self.link {
            Ok(link) if link.value.masks.names() == ModeNames::default() => Outcome::skipped(format!(
                "the driver of {} lists no link modes, so what the port can do is not known",
                self.around.name
            )),
            Ok(link) => Outcome::Measured(Fact::new(link.value.masks.names(), link.source)),
            Err(why) => Outcome::skipped(why.clone()),
        }
    }

    /// The chip by its number, where that number is known.
    fn chip(&self) -> Option<Chip> {
        let read = |file: &str| self.path(file).ok().and_then(|path| self.around.tree.read(&path).ok());
        let pci = || Some((hardware::Bus::Pci, read("device/vendor")?, read("device/device")?));
        let usb = || Some((hardware::Bus::Usb, read("device/../idVendor")?, read("device/../idProduct")?));
        let (bus, vendor, device) = pci().or_else(usb)?;
        let most = hardware::most(bus, &vendor, &device)?;
        let number = |text: &str| text.trim_start_matches("0x").to_owned();
        Some(Chip { number: format!("{}:{}", number(&vendor), number(&device)), most })
    }

    /// What speaks against the list of modes: the chip's number, or the age of the question.
    fn modes_doubt(&self) -> Option<String> {
        let link = &self.link.as_ref().ok()?.value;
        let listed = link.modes.supported_bps.last().copied()?;
        if let Some(Chip { number, most }) = self.chip() {
            return (listed < most).then(|| {
                format!("the chip ({number}) can do {most}, but its driver lists no more than {listed}: a newer driver may")
            });
        }
        // Below 10G only: a card of 10G and more says so in the old list too.
        (link.narrow && listed < BitRate::from_mbit(10_000)).then(|| {
            "the list is of an old kind (ETHTOOL_GSET) in which 2.5G and 5G cannot stand; a newer kernel or driver may add them"
                .to_owned()
        })
    }

    /// One field of the link's settings.
    fn of_link<T>(&self, what: &str, field: Option<T>) -> Outcome<Fact<T>> {
        // Of an interface whose kind is not known, the driver's word is all there is.
        if !matches!(self.around.kind, Kind::Physical | Kind::Unknown) {
            return Outcome::skipped(format!("{} is no port with a plug of its own", self.around.name));
        }
        match (self.link, field) {
            (Ok(link), Some(value)) if !link.value.says_nothing() => Outcome::Measured(Fact::new(value, link.source)),
            (Ok(_), _) => Outcome::skipped(self.port.untold(what)),
            (Err(why), _) => Outcome::skipped(why.clone()),
        }
    }

    fn connector(&self) -> Outcome<Fact<PortKind>> {
        self.of_link("kind of connector", self.link.as_ref().ok().and_then(|link| link.value.port))
    }

    fn mdi(&self) -> Outcome<Fact<Mdi>> {
        let port = self.link.as_ref().ok().and_then(|link| link.value.port);
        if matches!(port, Some(PortKind::Fibre | PortKind::DirectAttach)) {
            return Outcome::skipped("only twisted pairs can be crossed");
        }
        self.of_link("crossing (MDI/MDI-X)", self.link.as_ref().ok().and_then(|link| link.value.mdi))
    }

    /// Whether there is a link, and why not.
    fn state(&self) -> (Option<bool>, Outcome<Fact<String>>) {
        let seen = self.around.row.and_then(|row| row.carrier);
        let file = || match self.around.tree.read(&self.path("carrier").ok()?).ok()?.as_str() {
            "1" => Some(true),
            "0" => Some(false),
            _ => None,
        };
        let reply = self.port.message(Question::State);
        let (link, because) = reply.as_ref().map(|message| netlink::state(message)).unwrap_or_default();
        let up = link.or(seen).or_else(file);
        let why = match (up, because) {
            (Some(true), _) => Outcome::skipped("there is a link"),
            (_, Some(because)) => Outcome::Measured(Fact::new(because, Source::EthtoolNetlink)),
            _ => Outcome::skipped(self.port.why_nobody().map_or_else(
                || {
                    let name = self.around.name;
                    format!("the driver of {name} does not say why there is no link; few do, with kernel 5.9 and later")
                },
                str::to_owned,
            )),
        };
        (up, why)
    }

    fn pause(&self, up: Option<bool>) -> Outcome<Fact<Pause>> {
        let set = self.port.fact(&Way {
            what: "flow control",
            netlink: (Question::Pause, netlink::pause),
            ioctl: (structures::PAUSE, structures::pause),
        });
        let link = self.link.as_ref().ok().map(|link| &link.value);
        set.map(|set| Fact::new(pause::in_effect(set.value, link, up), set.source))
    }

    fn module(&self) -> Outcome<Fact<Module>> {
        let name = self.around.name;
        if self.around.kind != Kind::Physical {
            return Outcome::skipped(format!("{name} is no port of a card, so it has no cage for a module"));
        }
        if let Some(why) = self.port.why_nobody() {
            return Outcome::skipped(why);
        }
        let no_cage = || Outcome::skipped(format!("{name} has no cage for a module, or its driver does not read one"));
        match self.port.module() {
            Ok(memory) => match module::decode(&memory.value) {
                Some(module) => Outcome::Measured(Fact::new(self.known_copper(module), memory.source)),
                None => Outcome::skipped(format!("the memory of the module in {name} is blank or cut")),
            },
            Err(error) if is_unsupported(&error) || error.kind() == io::ErrorKind::Unsupported => no_cage(),
            Err(error) if is_denied(&error) => Outcome::skipped(format!(
                "the memory of a module in {name} is read for root only (CAP_NET_ADMIN); run weaklink as root"
            )),
            Err(error) => Outcome::skipped(format!("no module answers in {name}: {error}")),
        }
    }

    /// Where the kernel reaches the PHY inside a copper module, it tells what the partner offers, and nothing is hidden.
    fn known_copper(&self, module: Module) -> Module {
        let partner = self.link.as_ref().is_ok_and(|link| !link.value.modes.partner_bps.is_empty());
        Module { hides_copper_rate: module.hides_copper_rate && !partner, ..module }
    }

    fn rss_queues(&self) -> Outcome<Fact<u32>> {
        let name = self.around.name;
        if let Some(why) = self.port.why_nobody() {
            return Outcome::skipped(why);
        }
        match self.port.hash() {
            Ok(table) if !table.value.is_empty() => {
                let queues: BTreeSet<u32> = table.value.into_iter().collect();
                Outcome::Measured(Fact::new(queues.len() as u32, table.source))
            }
            table => match self.port.structure(structures::RX_RINGS).ok().and_then(|data| structures::rx_rings(&data)) {
                // One ring is one queue, whatever the hash says.
                Some(1) => Outcome::Measured(Fact::new(1, Source::Ethtool)),
                Some(rings) if rings > 1 => Outcome::skipped(format!(
                    "{name} has {rings} receive rings, but its driver shows no table of its hash, so to how many of them flows lead is not known"
                )),
                _ => match table {
                    Err(error) => self.port.refused("receive hash (RSS)", &error),
                    Ok(_) => Outcome::skipped(self.port.untold("receive hash (RSS)")),
                },
            },
        }
    }

    fn interrupts(&self) -> Outcome<Fact<Vec<QueueInterrupts>>> {
        let Around { tree, name, kind, .. } = *self.around;
        match kind {
            Kind::Physical | Kind::VirtualMachine | Kind::Wifi => {}
            // In a container, the line of that name may be that of the host's port.
            Kind::Unknown => {
                return Outcome::skipped(format!(
                    "it is not known whether {name} is a card, and so which interrupts are its own"
                ));
            }
            _ => return Outcome::skipped(format!("{name} is made by software and interrupts nobody")),
        }
        let text = match tree.read("/proc/interrupts") {
            Ok(text) => text,
            Err(error) => return Outcome::skipped(format!("cannot read /proc/interrupts: {error}")),
        };
        let device = self.path("device").ok().and_then(|path| tree.link_name(&path));
        let numbers = tree.names(&format!("/sys/class/net/{name}/device/msi_irqs"));
        let mut numbers: BTreeSet<u32> = numbers.iter().filter_map(|number| number.parse().ok()).collect();
        if numbers.is_empty() && self.around.no_sysfs.is_none() {
            // The line of a card without MSI; 0 means that it has none.
            let single = tree.read(&format!("/sys/class/net/{name}/device/irq")).ok().and_then(|text| text.parse::<u32>().ok());
            numbers.extend(single.filter(|number| *number != 0));
        }
        let lines = interrupts::of_port(&text, &Owner { name, device: device.as_deref(), numbers });
        if !lines.is_empty() {
            return Outcome::Measured(Fact::new(lines, Source::Procfs));
        }
        let bus = tree.link_name(&format!("/sys/class/net/{name}/device/subsystem"));
        Outcome::skipped(match bus.as_deref() {
            Some("usb") => format!("{name} hangs on USB: its host controller interrupts for it, and for all else on that bus"),
            Some("vmbus") => format!("{name} is served by Hyper-V's VMBus, which has no line for one card"),
            _ => format!("no line of /proc/interrupts names {name} or its device; there is none while it is down"),
        })
    }

    fn driver(&self) -> Result<Driver, String> {
        if let Some(why) = self.port.why_nobody() {
            return Err(why.to_owned());
        }
        let data = self.port.structure(structures::DRIVER);
        data.map(|data| structures::driver(&data))
            .map_err(|error| format!("the driver of {} tells nothing about itself ({error})", self.around.name))
    }

    fn of_driver(
        &self,
        driver: &Result<Driver, String>,
        what: &str,
        field: fn(&Driver) -> Option<String>,
    ) -> Outcome<Fact<String>> {
        match driver {
            Ok(driver) => field(driver).map_or_else(
                || Outcome::skipped(self.port.untold(what)),
                |word| Outcome::Measured(Fact::new(word, Source::Ethtool)),
            ),
            Err(why) => Outcome::skipped(why.clone()),
        }
    }

    fn driver_version(&self, driver: &Result<Driver, String>) -> Outcome<Fact<String>> {
        let told = self.of_driver(driver, "own version", |driver| driver.version.clone());
        if told.measured().is_some() {
            return told;
        }
        let file = self.path("device/driver/module/version").ok().and_then(|path| self.around.tree.read(&path).ok());
        file.filter(|version| !version.is_empty()).map_or(told, |version| Outcome::Measured(Fact::new(version, Source::Sysfs)))
    }

    fn bus_address(&self, driver: &Result<Driver, String>) -> Outcome<Fact<String>> {
        let told = self.of_driver(driver, "address on its bus", |driver| driver.bus.clone());
        if told.measured().is_some() {
            return told;
        }
        let file = self.path("device").ok().and_then(|path| self.around.tree.link_name(&path));
        file.map_or(told, |address| Outcome::Measured(Fact::new(address, Source::Sysfs)))
    }

    fn tx_queues(&self) -> Outcome<Fact<u32>> {
        let path = match self.path("queues") {
            Ok(path) => path,
            Err(why) => return Outcome::skipped(why),
        };
        let queues = self.around.tree.names(&path);
        match queues.iter().filter(|queue| queue.starts_with("tx-")).count() {
            0 => Outcome::skipped(format!("this kernel shows no queues in {path}")),
            queues => Outcome::Measured(Fact::new(queues as u32, Source::Sysfs)),
        }
    }
}

/// Six bytes, not all zero, as sysfs writes them.
fn is_mac(text: &str) -> bool {
    text.len() == 17
        && text != "00:00:00:00:00:00"
        && text.split(':').filter(|byte| byte.len() == 2 && u8::from_str_radix(byte, 16).is_ok()).count() == 6
}
