//! The bus of a port, from the device up to the root: the slowest part of the way counts.

use std::path::Path;

use super::tree::{Tree, last_of_link, read};
use crate::model::link::Bus;
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
    (mbit > 0.0 && mbit <= 1e6).then(|| BitRate((mbit * 1e6) as u64))
}

/// What is slowest on the way so far.
#[derive(Default)]
struct Slowest {
    rate: Option<BitRate>,
    text: String,
}

impl Slowest {
    fn offer(&mut self, rate: BitRate, text: impl FnOnce() -> String) {
        if self.rate.is_none_or(|slowest| rate < slowest) {
            (self.rate, self.text) = (Some(rate), text());
        }
    }
}

/// Reads the bus of an interface below `/sys/class/net/NAME/device`.
pub(super) fn collect(tree: &Tree, name: &str) -> Outcome<Bus> {
    let way = tree.way_up(&format!("/sys/class/net/{name}/device"));
    let kinds: Vec<Option<String>> = way.iter().map(|dir| last_of_link(&dir.join("subsystem"))).collect();
    let Some(kind) = kinds.iter().flatten().next().cloned() else {
        return Outcome::skipped(format!(
            "{name} hangs on no bus that the kernel shows (/sys/class/net/{name}/device leads nowhere)"
        ));
    };
    if kind == "virtio" || kind == "vmbus" || kind == "xen" {
        // The bus of a virtual machine is memory, its PCI links are drawings.
        let description = format!("{kind} (virtual machine)");
        return Outcome::Measured(Bus { kind, rate_bps: None, max_rate_bps: None, description });
    }
    let (mut slowest, mut own, mut max, mut notes) = (Slowest::default(), None, None, Vec::new());
    let devices = way.iter().zip(&kinds).filter_map(|(dir, kind)| Some((dir, kind.as_deref()?)));
    for (dir, subsystem) in devices {
        match subsystem {
            "pci" => {
                let Some(link) = lanes(dir, "current") else { continue };
                let bridge = own.is_some();
                if bridge && lanes(dir, "max").unwrap_or(link).is_tunnel() {
                    notes.push(
                        "behind a bridge whose declared speed is not believed (2.5 GT/s x4, as Thunderbolt declares)".to_owned(),
                    );
                    continue;
                }
                let text = if bridge { format!("{} at the bridge {}", link.text(), last(dir)) } else { link.text() };
                slowest.offer(link.rate(), || text.clone());
                if own.is_none() {
                    max = lanes(dir, "max");
                    own = Some(text);
                    if let Some(max) = max.filter(|max| max.rate() > link.rate()) {
                        notes.push(format!("the card can do {:.1} GT/s x{}", max.giga, max.width));
                    }
                }
            }
            "usb" => {
                let Some(rate) = usb_speed(dir) else { continue };
                let text = if own.is_some() {
                    format!("USB {} at the hub {}", mbit(rate), last(dir))
                } else {
                    format!("USB {}", mbit(rate))
                };
                slowest.offer(rate, || text.clone());
                if own.is_none() {
                    own = Some(text);
                    // A USB 3 device must call itself 2.10 while it runs at USB 2 speed (USB 3.2, 9.6.1).
                    if read(&dir.join("version")).is_ok_and(|version| version == "2.10") && rate <= BitRate(480_000_000) {
                        notes.push("the adapter calls itself USB 2.10, as USB 3 devices do in a USB 2 socket".to_owned());
                    }
                }
            }
            _ => {}
        }
    }
    let max = if kind == "usb" { None } else { max };
    Outcome::Measured(describe(kind, own, slowest, max, notes))
}

fn describe(kind: String, own: Option<String>, slowest: Slowest, max: Option<Lanes>, mut notes: Vec<String>) -> Bus {
    let mut description = own.unwrap_or_else(|| kind.clone());
    if !slowest.text.is_empty() && slowest.text != description {
        notes.insert(0, format!("slowest part {}", slowest.text));
    }
    if !notes.is_empty() {
        description = format!("{description}; {}", notes.join("; "));
    }
    let fact = |rate| Fact::new(rate, Source::Sysfs);
    Bus { kind, rate_bps: slowest.rate.map(fact), max_rate_bps: max.map(|max| fact(max.rate())), description }
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
        let bus = Bus { kind: "pci".into(), rate_bps: rate(2_000), max_rate_bps: rate(2_000), description: String::new() };
        for (port, believed) in [(1_000, true), (2_000, true), (2_500, false), (10_000, false)] {
            let mut bus = bus.clone();
            doubt(&mut bus, Some(BitRate::from_mbit(port)));
            assert_eq!(bus.rate_bps.is_some(), believed, "{port}");
        }
    }
}
