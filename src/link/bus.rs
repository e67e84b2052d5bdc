//! The bus of a port, from the device up to the root: the slowest part of the way counts.

use std::path::Path;

use super::tree::{Tree, last_of_link, read};
use crate::model::link::{Bus, InterfaceKind};
use crate::model::outcome::{Fact, Outcome, Source};
use crate::units::BitRate;

/// One link of PCI Express.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Lanes {
    /// Transfers a second of a lane, in units of 10^9.
    giga: f64,
    /// The number of lanes.
    width: u32,
}

impl Lanes {
    /// The rate after the line code: 8b/10b up to 5 GT/s, 128b/130b up to 32 GT/s, 242 of 256 bytes of a flit above.
    fn rate(self) -> BitRate {
        let code = match self.giga {
            slow if slow <= 5.0 => 8.0 / 10.0,
            fast if fast <= 32.0 => 128.0 / 130.0,
            _ => 242.0 / 256.0,
        };
        BitRate((self.giga * 1e9 * code * f64::from(self.width)) as u64)
    }

    /// A link of PCIe that is tunnelled through Thunderbolt or USB4 always declares 2.5 GT/s x4,
    /// whatever the tunnel carries.
    fn is_tunnel(self) -> bool {
        self.giga <= 2.5 && self.width == 4
    }

    fn text(self) -> String {
        format!("PCIe {:.1} GT/s x{}", self.giga, self.width)
    }
}

/// Reads `current_link_*` or `max_link_*` of a PCI device; none when unknown or no PCI Express.
fn lanes(dir: &Path, which: &str) -> Option<Lanes> {
    let speed = read(&dir.join(format!("{which}_link_speed"))).ok()?;
    let width = read(&dir.join(format!("{which}_link_width"))).ok()?;
    parse_lanes(&speed, &width)
}

/// `8.0 GT/s PCIe` (older kernels `8 GT/s`), and `4`; "Unknown" and widths of 0 or 255 are no link.
fn parse_lanes(speed: &str, width: &str) -> Option<Lanes> {
    let giga: f64 = speed.split_whitespace().next()?.parse().ok()?;
    let width: u32 = width.trim().parse().ok()?;
    ((1.0..=256.0).contains(&giga) && (1..=32).contains(&width)).then_some(Lanes { giga, width })
}

/// `480` of a USB device's `speed`, in Mbit/s; low-speed devices say `1.5`.
fn usb_speed(dir: &Path) -> Option<BitRate> {
    let mbit: f64 = read(&dir.join("speed")).ok()?.parse().ok()?;
    (mbit > 0.0 && mbit <= 1e6).then_some(BitRate((mbit * 1e6) as u64))
}

/// The way from the device up to the root, as far as it was walked.
#[derive(Default)]
struct Way {
    /// The rate of the slowest part.
    slowest: Option<BitRate>,
    /// What the slowest part is.
    slowest_text: String,
    /// What the first part is: the device itself.
    own: Option<String>,
    /// What the device could do at most on PCI Express.
    max: Option<Lanes>,
    /// What else people should know.
    notes: Vec<String>,
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

    fn add_pci(&mut self, dir: &Path) {
        let Some(link) = lanes(dir, "current") else { return };
        let max = lanes(dir, "max");
        let first = self.own.is_none();
        if !first && max.unwrap_or(link).is_tunnel() {
            let note = "behind a bridge whose declared speed is not believed (2.5 GT/s x4, as Thunderbolt declares)";
            if !self.notes.iter().any(|known| known == note) {
                self.notes.push(note.to_owned());
            }
            return;
        }
        self.add(link.rate(), link.text(), &last(dir));
        if first {
            self.max = max;
            if let Some(max) = max.filter(|max| max.rate() > link.rate()) {
                self.notes.push(format!("the card can do {:.1} GT/s x{}", max.giga, max.width));
            }
        }
    }

    fn add_usb(&mut self, dir: &Path) {
        let Some(rate) = usb_speed(dir) else { return };
        let first = self.own.is_none();
        self.add(rate, format!("USB {}", mbit(rate)), &last(dir));
        // A USB 3 device must call itself 2.10 while it runs at USB 2 speed (USB 3.2, 9.6.1).
        if first && rate <= BitRate(480_000_000) && read(&dir.join("version")).is_ok_and(|version| version == "2.10") {
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
            way: Vec::new(),
        }
    }
}

/// Reads the bus of an interface below `/sys/class/net/NAME/device`. What a hypervisor draws as the bus of a
/// virtual card says nothing about rates, so only its kind is told.
pub(super) fn collect(tree: &Tree, name: &str, interface: InterfaceKind) -> Outcome<Bus> {
    let dirs = tree.way_up(&format!("/sys/class/net/{name}/device"));
    let parts: Vec<_> = dirs.iter().filter_map(|dir| Some((dir, last_of_link(&dir.join("subsystem"))?))).collect();
    let Some(kind) = parts.first().map(|(_, kind)| kind.clone()) else {
        let path = format!("/sys/class/net/{name}/device");
        return Outcome::skipped(format!("{name} hangs on no bus that the kernel shows ({path} leads nowhere)"));
    };
    if interface == InterfaceKind::VirtualMachine {
        let description = format!("{kind} (virtual machine)");
        return Outcome::Measured(Bus { kind, rate_bps: None, max_rate_bps: None, description, way: Vec::new() });
    }
    let mut way = Way::default();
    for (dir, subsystem) in &parts {
        match subsystem.as_str() {
            "pci" => way.add_pci(dir),
            "usb" => way.add_usb(dir),
            _ => {}
        }
    }
    Outcome::Measured(way.into_bus(kind))
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pcie_rates_are_those_of_the_field() {
        for (speed, width, gbit) in [
            ("2.5 GT/s PCIe", "1", Some(2.0)),
            ("5.0 GT/s PCIe", "1", Some(4.0)),
            ("5 GT/s", "4", Some(16.0)),
            ("8.0 GT/s PCIe", "1", Some(7.877)),
            ("16.0 GT/s PCIe", "1", Some(15.754)),
            ("Unknown", "4", None),
            ("8.0 GT/s PCIe", "0", None),
            ("8.0 GT/s PCIe", "255", None),
            ("", "", None),
        ] {
            let rate = parse_lanes(speed, width).map(|lanes| (lanes.rate().as_f64() / 1e6).round() / 1e3);
            assert_eq!(rate, gbit, "{speed} x{width}");
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
