//! One PCI device's link: what it gives, what it could give, and its power management, from files or registers.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::ethtool::{half, word};
use super::tree::read;
use crate::units::BitRate;

/// One link of PCI Express.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Lanes {
    /// Transfers a second of a lane, in units of 10^9.
    pub giga: f64,
    /// The number of lanes.
    pub width: u32,
}

impl Lanes {
    /// From the fields of the link registers (PCI Express Base Specification, 7.5.3.6 to 7.5.3.8): the code of the speed, and the width.
    pub(super) fn of_codes(speed: u32, width: u32) -> Option<Self> {
        let giga = match speed {
            1 => 2.5,
            2 => 5.0,
            3 => 8.0,
            4 => 16.0,
            5 => 32.0,
            6 => 64.0,
            _ => return None,
        };
        (1..=32).contains(&width).then_some(Self { giga, width })
    }

    /// The rate after the line code: 8b/10b up to 5 GT/s, 128b/130b up to 32 GT/s, 242 of 256 bytes of a flit above.
    pub(super) fn rate(self) -> BitRate {
        let code = match self.giga {
            slow if slow <= 5.0 => 8.0 / 10.0,
            fast if fast <= 32.0 => 128.0 / 130.0,
            _ => 242.0 / 256.0,
        };
        BitRate((self.giga * 1e9 * code * f64::from(self.width)) as u64)
    }

    /// A link of PCIe that is tunnelled through Thunderbolt or USB4 always declares 2.5 GT/s x4,
    /// whatever the tunnel carries.
    pub(super) fn is_tunnel(self) -> bool {
        self.giga <= 2.5 && self.width == 4
    }

    pub(super) fn text(self) -> String {
        format!("PCIe {:.1} GT/s x{}", self.giga, self.width)
    }
}

/// What one PCI device says of its link.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct State {
    /// What it gives now; none when unknown or no PCI Express.
    pub now: Option<Lanes>,
    /// What the device could do at most.
    pub most: Option<Lanes>,
    /// Which states of active-state power management are on, in words.
    pub aspm: Option<String>,
    /// The registers would tell, but are not shown to this user.
    pub hidden: bool,
}

/// Reads a device's files (kernel 4.13; power management 5.5), and its registers for what they lack.
pub(super) fn state(dir: &Path) -> State {
    let (now, most) = (lanes(dir, "current"), lanes(dir, "max"));
    let aspm = aspm(dir);
    let told = now.is_some() || dir.join("current_link_speed").exists();
    if told && aspm.is_some() {
        return State { now, most, aspm, hidden: false };
    }
    let registers = registers(dir).map_or_else(State::default, |bytes| link(&bytes));
    if told {
        return State { now, most, aspm: registers.aspm, hidden: false };
    }
    State { aspm: aspm.or_else(|| registers.aspm.clone()), ..registers }
}

/// Reads `current_link_*` or `max_link_*` of a PCI device.
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

/// The states that are on, from the files below `link`; `off` where there are such files and none is on.
fn aspm(dir: &Path) -> Option<String> {
    const FILES: [(&str, &str); 4] = [("l0s_aspm", "L0s"), ("l1_aspm", "L1"), ("l1_1_aspm", "L1.1"), ("l1_2_aspm", "L1.2")];
    let told = FILES.iter().filter_map(|(file, word)| Some((read(&dir.join("link").join(file)).ok()?, *word)));
    let told: Vec<(String, &str)> = told.collect();
    (!told.is_empty()).then(|| words(told.iter().filter(|(value, _)| value == "1").map(|(_, word)| *word)))
}

fn words<'a>(on: impl Iterator<Item = &'a str>) -> String {
    let on: Vec<&str> = on.collect();
    if on.is_empty() { "off".to_owned() } else { on.join(", ") }
}

/// The first 256 bytes of a device's registers; without root the kernel shows 64 of them.
fn registers(dir: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(dir.join("config")).ok()?.take(256).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Decodes the PCI Express capability in a device's registers (PCI 3.0 chapter 6; PCI Express base 7.5.3); all
/// little-endian.
fn link(registers: &[u8]) -> State {
    /// Bit 4 of the status register: there is a list of capabilities, whose start stands in byte 34h.
    const HAS_LIST: u16 = 1 << 4;
    const EXPRESS: u8 = 0x10;
    let byte = |at: usize| registers.get(at).copied();
    let none = State::default();
    if half(registers, 6).map(u16::from_le).is_none_or(|status| status & HAS_LIST == 0) {
        return none;
    }
    // The list has at most 48 places of four bytes; a ring of pointers ends with the count.
    let mut at = usize::from(byte(0x34).unwrap_or(0) & 0xfc);
    for _ in 0..48 {
        if at < 0x40 {
            return none;
        }
        let (Some(id), Some(next)) = (byte(at), byte(at + 1)) else {
            return State { hidden: registers.len() <= 64, ..none };
        };
        if id == EXPRESS {
            return express(registers.get(at..).unwrap_or_default()).unwrap_or(none);
        }
        at = usize::from(next & 0xfc);
    }
    none
}

fn express(capability: &[u8]) -> Option<State> {
    let most = u32::from_le(word(capability, 0x0c)?);
    let control = u16::from_le(half(capability, 0x10)?);
    let now = u16::from_le(half(capability, 0x12)?);
    let on = [(1, "L0s"), (2, "L1")].into_iter().filter(|(bit, _)| control & bit != 0).map(|(_, word)| word);
    // Both fields have speed in bits 0 to 3 and width in bits 4 to 9; bits 10 and 11 of the first are the states
    // that the device can do.
    let lanes = |field: u32| Lanes::of_codes(field & 0xf, field >> 4 & 0x3f);
    let able = most >> 10 & 3 != 0;
    Some(State { now: lanes(now.into()), most: lanes(most), aspm: able.then(|| words(on)), hidden: false })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pcie_rates_are_those_of_the_field() {
        for (speed, width, gbit) in [
            ("2.5 GT/s PCIe", "1", Some(2.0)),
            ("5.0 GT/s PCIe", "1", Some(4.0)),
            ("5 GT/s", "4", Some(16.0)),
            ("8.0 GT/s PCIe", "1", Some(7.877)),
            ("16.0 GT/s PCIe", "1", Some(15.754)),
            ("64.0 GT/s PCIe", "1", Some(60.5)),
            ("Unknown", "4", None),
            ("8.0 GT/s PCIe", "0", None),
            ("8.0 GT/s PCIe", "255", None),
            ("", "", None),
        ] {
            let rate = parse_lanes(speed, width).map(|lanes| (lanes.rate().as_f64() / 1e6).round() / 1e3);
            assert_eq!(rate, gbit, "{speed} x{width}");
        }
    }

    /// Registers with a power management capability at 40h and PCI Express at a0h, as an I226-V has them.
    fn registers(link: [u8; 8]) -> Vec<u8> {
        let mut bytes = vec![0; 256];
        (bytes[6], bytes[0x34]) = (0x10, 0x40);
        (bytes[0x40], bytes[0x41]) = (0x01, 0xa0);
        bytes[0xa0] = 0x10;
        bytes[0xac..0xb4].copy_from_slice(&link);
        bytes
    }

    #[test]
    fn registers_tell_what_old_kernels_have_no_files_for() {
        // Capable of 8 GT/s x4 with L1; L1 on; now 5 GT/s x1.
        let bytes = registers([0x43, 0x08, 0, 0, 0x42, 0, 0x12, 0x10]);
        let found = link(&bytes);
        assert_eq!(found.now, Some(Lanes { giga: 5.0, width: 1 }));
        assert_eq!(found.most, Some(Lanes { giga: 8.0, width: 4 }));
        assert_eq!((found.aspm.as_deref(), found.hidden), (Some("L1"), false));
        // The same with both states possible and none on; and with none possible.
        let off = link(&registers([0x43, 0x0c, 0, 0, 0x40, 0, 0x12, 0x10]));
        assert_eq!(off.aspm.as_deref(), Some("off"));
        assert_eq!(link(&registers([0x43, 0, 0, 0, 0x40, 0, 0x12, 0x10])).aspm, None);
        let user = link(&bytes[..64]);
        assert_eq!((user.now, user.hidden), (None, true));
        let mut ring = bytes.clone();
        (ring[0x40], ring[0x41]) = (0x05, 0x40);
        assert_eq!(link(&ring), State::default());
    }

    proptest! {
        #[test]
        fn any_registers_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = link(&bytes);
            let mut listed = bytes;
            if listed.len() > 0x34 {
                (listed[6], listed[0x34]) = (0x10, 0x40);
            }
            let _ = link(&listed);
        }
    }
}
