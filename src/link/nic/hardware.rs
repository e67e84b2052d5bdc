//! What a network chip can do, by its number on its bus.
//!
//! Old drivers list fewer modes than the chip has: a 5G adapter whose driver lists up to 1000 is no gigabit port. So the
//! chips that NAS users meet stand here, as the drivers' own tables number them.

use crate::units::BitRate;

/// The bus that a number belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bus {
    /// PCI and PCI Express.
    Pci,
    /// USB.
    Usb,
}

use Bus::{Pci, Usb};

/// Bus, vendor, device, most Mbit/s. Aquantia (1d6a; USB adapters of several makers), Realtek (10ec, 0bda), Intel (8086).
///
/// Chips of cards with a cage (AQC100, 82599, X710) are left out: their drivers list what the module in it can do.
const CHIPS: [(Bus, u16, u16, u64); 37] = [
    (Pci, 0x1d6a, 0x07b1, 10_000), // AQC107
    (Pci, 0x1d6a, 0x08b1, 5_000),  // AQC108
    (Pci, 0x1d6a, 0x09b1, 2_500),  // AQC109
    (Pci, 0x1d6a, 0x11b1, 5_000),  // AQC111
    (Pci, 0x1d6a, 0x12b1, 2_500),  // AQC112
    (Pci, 0x1d6a, 0x87b1, 10_000), // AQC107S
    (Pci, 0x1d6a, 0x88b1, 5_000),  // AQC108S
    (Pci, 0x1d6a, 0x89b1, 2_500),  // AQC109S
    (Pci, 0x1d6a, 0x91b1, 5_000),  // AQC111S
    (Pci, 0x1d6a, 0x92b1, 2_500),  // AQC112S
    (Pci, 0x1d6a, 0xd107, 10_000),
    (Pci, 0x1d6a, 0xd108, 5_000),
    (Pci, 0x1d6a, 0xd109, 2_500),
    (Pci, 0x1d6a, 0x04c0, 10_000), // AQC113
    (Pci, 0x1d6a, 0x14c0, 10_000), // AQC113C
    (Pci, 0x1d6a, 0x34c0, 10_000), // AQC113CA
    (Pci, 0x1d6a, 0x94c0, 10_000), // AQC113CS
    (Pci, 0x1d6a, 0x93c0, 5_000),  // AQC114CS
    (Pci, 0x1d6a, 0x12c0, 2_500),  // AQC115C
    (Pci, 0x10ec, 0x8125, 2_500),
    (Pci, 0x10ec, 0x8126, 5_000),
    (Pci, 0x10ec, 0x8127, 10_000),
    (Pci, 0x8086, 0x15f2, 2_500),  // I225-LM
    (Pci, 0x8086, 0x15f3, 2_500),  // I225-V
    (Pci, 0x8086, 0x125b, 2_500),  // I226-LM
    (Pci, 0x8086, 0x125c, 2_500),  // I226-V
    (Pci, 0x8086, 0x1528, 10_000), // X540-AT2
    (Pci, 0x8086, 0x1563, 10_000), // X550
    (Usb, 0x0bda, 0x8156, 2_500),
    (Usb, 0x0bda, 0x8157, 5_000),
    (Usb, 0x0bda, 0x815a, 10_000), // RTL8159
    (Usb, 0x0b95, 0x2790, 5_000),  // AQC111U
    (Usb, 0x0b95, 0x2791, 2_500),  // AQC112U
    (Usb, 0x2eca, 0xc101, 5_000),  // AQC111U
    (Usb, 0x20f4, 0xe05a, 5_000),  // AQC111U, TRENDnet
    (Usb, 0x1c04, 0x0015, 5_000),  // AQC111U, QNAP
    (Pci, 0x8086, 0x15ad, 10_000), // X552, 10GBASE-T
];

/// What the chip with these numbers can do at most; none for one that is not listed. Each number is hexadecimal, with or
/// without `0x`, as sysfs gives it.
pub(super) fn most(bus: Bus, vendor: &str, device: &str) -> Option<BitRate> {
    let number = |text: &str| u16::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let (vendor, device) = (number(vendor)?, number(device)?);
    let chip = CHIPS.iter().find(|(on, of, number, _)| (*on, *of, *number) == (bus, vendor, device));
    chip.map(|(_, _, _, mbit)| BitRate::from_mbit(*mbit))
}
