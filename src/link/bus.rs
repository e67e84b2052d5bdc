//! The bus of a port, from the device up to the root: the slowest part of the way counts.

use std::path::Path;

use super::pcie::{self, Lanes};
use super::tree::{Tree, last_of_link, read};
use crate::model::link::{Bus, BusPart, InterfaceKind, SWITCH_PORT};
use crate::model::outcome::{Fact, Outcome, Source};
use crate::units::BitRate;

/// `480` of a USB device's `speed`, in Mbit/s; low-speed devices say `1.5`.
fn usb_speed(dir: &Path) -> Option<BitRate> {
    let mbit: f64 = read(&dir.join("speed")).ok()?.parse().ok()?;
    (mbit > 0.0 && mbit <= 1e6).then_some(BitRate((mbit * 1e6) as u64))
}

/// The way from the device up to the root, as far as it was walked.
#[derive(Default)]
struct Way {
    /// Every part, the device first.
    parts: Vec<BusPart>,
    /// The rate of the slowest part.
    slowest: Option<BitRate>,
    /// What the slowest part is.
    slowest_text: String,
    /// What the first part with a rate is: mostly the device itself.
    own: Option<String>,
    /// What the device could do at most on PCI Express.
    max: Option<Lanes>,
    /// What else people should know.
    notes: Vec<String>,
    /// The kernel has no files about a PCI device's link.
    old: bool,
}

impl Way {
    fn add(&mut self, rate: BitRate, text: String, place: &str) {
        let text = if self.own.is_some() { format!("{text} at {place}") } else { text };
        if self.slowest.is_none_or(|slowest| rate < slowest) {
            self.slowest = Some(rate);
            self.slowest_text.clone_from(&text);
        }
        self.own.get_or_insert(text);
    }

    fn note(&mut self, note: &str) {
        if !self.notes.iter().any(|known| known == note) {
            self.notes.push(note.to_owned());
        }
    }

    fn add_pci(&mut self, dir: &Path) {
        let link = pcie::state(dir);
        let first = self.own.is_none();
        let tunnel = !first && link.most.or(link.now).is_some_and(Lanes::is_tunnel);
        let now = match link.now {
            Some(now) => now.text(),
            // A newer kernel has the files for every device with a link, so there is none.
            None if link.hidden && self.old => "PCI, whose link only root may see".to_owned(),
            None => "PCI without a link of its own".to_owned(),
        };
        self.parts.push(BusPart {
            place: last(dir),
            now: if tunnel { format!("{now}, as a Thunderbolt tunnel always declares") } else { now },
            rate_bps: link.now.filter(|_| !tunnel).map(Lanes::rate),
            max_rate_bps: link.most.filter(|_| !tunnel).map(Lanes::rate),
            aspm: link.aspm,
        });
        if link.hidden && self.old {
            self.note("kernels before 4.13 show the link of a card to root only; run weaklink as root");
        }
        if tunnel {
            self.note("behind a bridge whose declared speed is not believed (2.5 GT/s x4, as Thunderbolt declares)");
            return;
        }
        let Some(now) = link.now else { return };
        self.add(now.rate(), now.text(), &last(dir));
        if first {
            self.max = link.most;
            if let Some(max) = link.most.filter(|max| max.rate() > now.rate()) {
                self.notes.push(format!("the card can do {:.1} GT/s x{}", max.giga, max.width));
            }
        }
    }

    fn add_usb(&mut self, dir: &Path) {
        /// USB 2.0, high speed: no device of that version has more (USB 3.2, 9.6.1).
        const HIGH_SPEED: BitRate = BitRate(480_000_000);
        let Some(rate) = usb_speed(dir) else { return };
        let first = self.own.is_none();
        let version = read(&dir.join("version")).unwrap_or_default();
        let text = format!("USB {}", mbit(rate));
        self.parts.push(BusPart {
            place: last(dir),
            now: text.clone(),
            rate_bps: Some(rate),
            max_rate_bps: (version == "2.00").then_some(HIGH_SPEED),
            aspm: None,
        });
        self.add(rate, text, &last(dir));
        // A USB 3 device must call itself 2.10 while it runs at USB 2 speed (USB 3.2, 9.6.1).
        if first && rate <= HIGH_SPEED && version == "2.10" {
            self.notes.push("the adapter calls itself USB 2.10, as USB 3 devices do in a USB 2 socket".to_owned());
        }
    }

    fn into_bus(mut self, kind: String) -> Bus {
        let mut description = self.own.unwrap_or_else(|| kind.clone());
        if !self.slowest_text.is_empty() && self.slowest_text != description {
            self.notes.insert(0, format!("slowest part {}", self.slowest_text));
        }
        if !self.notes.is_empty() {
            description = format!("{description}; {}", self.notes.join("; "));
        }
        let fact = |rate| Fact::new(rate, Source::Sysfs);
        Bus {
            kind,
            rate_bps: self.slowest.map(fact),
            max_rate_bps: self.max.map(|max| fact(max.rate())),
            description,
            way: self.parts,
        }
    }
}

/// Reads the bus of an interface below `/sys/class/net/NAME/device`. What a hypervisor draws as the bus of a
/// virtual card says nothing about rates, so only what the card is stands there.
pub(super) fn collect(tree: &Tree, name: &str, interface: InterfaceKind, driver: Option<&str>) -> Outcome<Bus> {
    let dirs = tree.way_up(&format!("/sys/class/net/{name}/device"));
    let parts: Vec<_> = dirs.iter().filter_map(|dir| Some((dir, last_of_link(&dir.join("subsystem"))?))).collect();
    let Some(kind) = parts.first().map(|(_, kind)| kind.clone()) else {
        let path = format!("/sys/class/net/{name}/device");
        return Outcome::skipped(format!("{name} hangs on no bus that the kernel shows ({path} leads nowhere)"));
    };
    if interface == InterfaceKind::VirtualMachine {
        let description = format!("{}: no bus limits it", virtual_card(&kind, driver));
        return Outcome::Measured(Bus { kind, rate_bps: None, max_rate_bps: None, description, way: Vec::new() });
    }
    let old = tree.read("/proc/sys/kernel/osrelease").is_ok_and(|release| is_before_files(&release));
    let mut way = Way { old, ..Way::default() };
    for (dir, subsystem) in &parts {
        match subsystem.as_str() {
            "pci" => way.add_pci(dir),
            "usb" => way.add_usb(dir),
            _ => {}
        }
    }
    if tree.read(&format!("/sys/class/net/{name}/uevent")).is_ok_and(|text| text.lines().any(|line| line == "DEVTYPE=dsa")) {
        way.note(&format!(
            "{SWITCH_PORT}: all of its ports share the chip's one line to the processor, whose rate is not told here"
        ));
    } else if way.parts.is_empty() && IN_CHIP.contains(&kind.as_str()) {
        way.note("part of the chip (SoC): no bus limits it");
    }
    Outcome::Measured(way.into_bus(kind))
}

/// Whether a kernel of this release has no `current_link_speed` (4.13).
fn is_before_files(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse::<u32>().ok());
    matches!((numbers.next().flatten(), numbers.next().flatten()), (Some(major), Some(minor)) if (major, minor) < (4, 13))
}

/// Subsystems of devices that are built into the processor's chip.
const IN_CHIP: [&str; 5] = ["platform", "amba", "of_platform", "fsl-mc", "soc"];

/// What a port of a virtual machine is.
fn virtual_card(bus: &str, driver: Option<&str>) -> String {
    let card = match driver {
        Some("virtio_net") => "virtio (KVM, QEMU)",
        Some("vmxnet3" | "vmxnet") => "vmxnet3 (VMware)",
        Some("hv_netvsc" | "netvsc") => "hv_netvsc (Hyper-V)",
        Some("vif" | "xen_netfront" | "xen-netfront") => "netfront (Xen)",
        Some("ena") => "ENA (Amazon's cloud)",
        Some("gve" | "gvnic") => "gVNIC (Google's cloud)",
        Some("ibmveth") => "ibmveth (IBM's hypervisor)",
        Some(other) => return format!("a card for {other}, imitated by the hypervisor"),
        None => return format!("a card on {bus}, made up by the hypervisor"),
    };
    format!("{card}, made up by the hypervisor")
}

fn mbit(rate: BitRate) -> String {
    format!("{} Mbit/s", rate.0 as f64 / 1e6)
}

fn last(dir: &Path) -> String {
    dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Takes the bus's rate back when a card declares 2.5 GT/s x1 as its most while its port can do more: ports
/// inside a chip (Intel X553, X722) declare so and run at 10G all the same. Cards with a real narrow
/// connector declare at least 5 GT/s, and are believed.
pub(super) fn doubt(bus: &mut Bus, port: Option<BitRate>) {
    const DRAWN: BitRate = BitRate(2_000_000_000);
    if let (Some(max), Some(port)) = (&bus.max_rate_bps, port)
        && max.value <= DRAWN
        && max.value < port
    {
        bus.description = format!("{}; not believed: the port can do {port}, so it is part of a chip", bus.description);
        (bus.rate_bps, bus.max_rate_bps) = (None, None);
        if let Some(own) = bus.way.first_mut() {
            (own.rate_bps, own.max_rate_bps) = (None, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_about_links_came_with_4_13() {
        for (release, before) in [
            ("3.10.108", true),
            ("4.4.302+", true),
            ("4.12.14-lp150", true),
            ("4.13.0", false),
            ("5.10.55+", false),
            ("6.18.44", false),
            ("", false),
            ("x.y", false),
        ] {
            assert_eq!(is_before_files(release), before, "{release}");
        }
    }

    #[test]
    fn virtual_cards_are_told_by_their_drivers() {
        for (driver, word) in [
            (Some("virtio_net"), "KVM"),
            (Some("vmxnet3"), "VMware"),
            (Some("hv_netvsc"), "Hyper-V"),
            (Some("xen_netfront"), "Xen"),
            (Some("vif"), "Xen"),
            (Some("ena"), "Amazon"),
            (Some("gve"), "Google"),
            (Some("e1000"), "a card for e1000, imitated"),
            (None, "a card on pci"),
        ] {
            let words = virtual_card("pci", driver);
            assert!(words.contains(word) && words.contains("hypervisor"), "{words}");
        }
    }

    #[test]
    fn a_port_in_a_chip_is_not_limited_by_what_it_declares() {
        let rate = |mbit| Some(Fact::new(BitRate::from_mbit(mbit), Source::Sysfs));
        let bus = Bus {
            kind: "pci".into(),
            rate_bps: rate(2_000),
            max_rate_bps: rate(2_000),
            description: String::new(),
            way: Vec::new(),
        };
        for (port, believed) in [(1_000, true), (2_000, true), (2_500, false), (10_000, false)] {
            let mut bus = bus.clone();
            doubt(&mut bus, Some(BitRate::from_mbit(port)));
            assert_eq!(bus.rate_bps.is_some(), believed, "{port}");
        }
    }
}
