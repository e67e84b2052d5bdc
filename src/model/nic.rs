//! What a network port, its PHY and its driver say beyond speed: the facts behind "why is it less".

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::outcome::{Fact, Outcome};
use crate::units::BitRate;

/// Everything that the kernel tells of one port beyond its speed, duplex, modes and bus.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Nic {
    /// The hardware address in use, as `02:00:00:00:00:01`.
    pub mac: Outcome<Fact<String>>,
    /// The link modes by name, as the kernel and `ethtool` write them.
    pub mode_names: Outcome<Fact<ModeNames>>,
    /// Why the list of modes leaves out what the hardware can do; none where nothing speaks against the list.
    #[serde(default)]
    pub modes_doubt: Option<String>,
    /// What the chip can do by its number on its bus, where weaklink knows it; its driver may list less.
    #[serde(default)]
    pub chip_bps: Option<BitRate>,
    /// The kind of connector.
    pub port: Outcome<Fact<PortKind>>,
    /// Which way the pairs are crossed; twisted pair only.
    pub mdi: Outcome<Fact<Mdi>>,
    /// Why there is no link, in the driver's words (`ETHTOOL_A_LINKSTATE_EXT_STATE`, kernel 5.9); nothing where there is one.
    pub no_link_because: Outcome<Fact<String>>,
    /// The speed that the port had to fall back from, where a source says so itself (the kernel's log).
    pub downshift: Outcome<Fact<String>>,
    /// Flow control.
    pub pause: Outcome<Fact<Pause>>,
    /// Energy-Efficient Ethernet (IEEE 802.3az).
    pub eee: Outcome<Fact<Eee>>,
    /// Forward error correction.
    pub fec: Outcome<Fact<Fec>>,
    /// The plugged module (SFP, QSFP).
    pub module: Outcome<Fact<Module>>,
    /// The rings of descriptors.
    pub rings: Outcome<Fact<Rings>>,
    /// The queues.
    pub channels: Outcome<Fact<Channels>>,
    /// How many receive queues the hash of incoming flows leads to (RSS).
    pub rss_queues: Outcome<Fact<u32>>,
    /// Which cores its interrupts ran on.
    pub interrupts: Outcome<Fact<Vec<QueueInterrupts>>>,
    /// Interrupt coalescing.
    pub coalescing: Outcome<Fact<Coalescing>>,
    /// The driver's version; in-tree drivers since 5.x give the kernel's.
    pub driver_version: Outcome<Fact<String>>,
    /// The firmware's version.
    pub firmware: Outcome<Fact<String>>,
    /// The address on its bus, such as `0000:03:00.0`.
    pub bus_address: Outcome<Fact<String>>,
    /// The number of transmit queues that the kernel uses.
    pub tx_queues: Outcome<Fact<u32>>,
}

impl Nic {
    /// A port of which nothing more is known, for one reason.
    pub fn unknown(reason: &str) -> Self {
        Self {
            mac: Outcome::skipped(reason),
            mode_names: Outcome::skipped(reason),
            modes_doubt: None,
            chip_bps: None,
            port: Outcome::skipped(reason),
            mdi: Outcome::skipped(reason),
            no_link_because: Outcome::skipped(reason),
            downshift: Outcome::skipped(reason),
            pause: Outcome::skipped(reason),
            eee: Outcome::skipped(reason),
            fec: Outcome::skipped(reason),
            module: Outcome::skipped(reason),
            rings: Outcome::skipped(reason),
            channels: Outcome::skipped(reason),
            rss_queues: Outcome::skipped(reason),
            interrupts: Outcome::skipped(reason),
            coalescing: Outcome::skipped(reason),
            driver_version: Outcome::skipped(reason),
            firmware: Outcome::skipped(reason),
            bus_address: Outcome::skipped(reason),
            tx_queues: Outcome::skipped(reason),
        }
    }
}

/// Link modes by name, such as `2500baseT/Full`, in the kernel's order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeNames {
    /// What the port can do according to its driver.
    pub supported: Vec<String>,
    /// What it offers.
    pub advertised: Vec<String>,
    /// What the partner offers; empty when unknown.
    pub partner: Vec<String>,
}

/// The kind of connector (`PORT_*` of linux/ethtool.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PortKind {
    /// Twisted pair (RJ45).
    TwistedPair,
    /// Attachment unit interface, or BNC: a medium of the past.
    Coaxial,
    /// MII.
    Mii,
    /// Fibre, or a cage whose module the driver does not tell apart.
    Fibre,
    /// A direct-attach copper cable.
    DirectAttach,
    /// None.
    None,
    /// Another.
    Other,
}

/// Which way the pairs of a twisted-pair port are crossed (`ETH_TP_MDI*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mdi {
    /// Straight.
    Straight,
    /// Crossed.
    Crossed,
}

/// Flow control: what is set at this end, and what holds after negotiation with the partner (IEEE 802.3 annex 28B).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Whether it is negotiated.
    pub autoneg: bool,
    /// Set: pause frames of the partner are obeyed.
    pub rx: bool,
    /// Set: pause frames are sent when the host is full.
    pub tx: bool,
    /// In effect: frames of the partner are obeyed; none where it can't be told.
    pub rx_in_effect: Option<bool>,
    /// In effect: frames are sent; none where it can't be told.
    pub tx_in_effect: Option<bool>,
}

/// Energy-Efficient Ethernet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Eee {
    /// Whether it is set.
    pub enabled: bool,
    /// Whether it was negotiated and is in effect.
    pub active: bool,
    /// Microseconds of silence before the transmitter sleeps, where transmit sleep is set.
    pub tx_timer_us: Option<u32>,
}

/// Forward error correction, in the kernel's words (`off`, `baser`, `rs`, `llrs`, `auto`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fec {
    /// What is set.
    pub configured: Vec<String>,
    /// What is in effect.
    pub active: Option<String>,
}

/// A plugged module as its memory describes it (SFF-8472, SFF-8636): foreign words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// `SFP`, `QSFP+` and so on.
    pub kind: String,
    /// Its maker.
    pub vendor: Option<String>,
    /// The maker's part number.
    pub part: Option<String>,
    /// The plug on its outside, such as `LC`, `RJ45`, `copper pigtail`.
    pub connector: Option<String>,
    /// What it complies with, such as `10GBASE-SR`, `10GBASE-T`, `passive copper cable`.
    pub complies: Vec<String>,
    /// The signalling rate that it states; that of one lane for a QSFP.
    pub rate_bps: Option<BitRate>,
    /// The length of an attached cable in metres.
    pub cable_m: Option<u32>,
    /// A copper module with an RJ45 plug: what its cable runs at is not known to the host, which sees only the cage's rate.
    pub hides_copper_rate: bool,
}

/// The rings of descriptors: packets that fit before the host must have taken them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rings {
    /// Receive, now.
    pub rx: u32,
    /// Receive, at most.
    pub rx_max: u32,
    /// Transmit, now.
    pub tx: u32,
    /// Transmit, at most.
    pub tx_max: u32,
}

/// The queues: how many cores can serve the port at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channels {
    /// Receive only, now.
    pub rx: u32,
    /// Transmit only, now.
    pub tx: u32,
    /// Both in one, now.
    pub combined: u32,
    /// Receive only, at most.
    pub rx_max: u32,
    /// Transmit only, at most.
    pub tx_max: u32,
    /// Both in one, at most.
    pub combined_max: u32,
}

/// One line of `/proc/interrupts` that belongs to the port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueInterrupts {
    /// The line's name, such as `eth0-TxRx-0`.
    pub name: String,
    /// How many there were on each core since boot; cores without any are left out.
    pub by_core: BTreeMap<u32, u64>,
}

/// Interrupt coalescing: how long and for how many frames the port waits before it interrupts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coalescing {
    /// Microseconds after a received frame.
    pub rx_us: Option<u32>,
    /// Received frames.
    pub rx_frames: Option<u32>,
    /// Microseconds after a sent frame.
    pub tx_us: Option<u32>,
    /// Sent frames.
    pub tx_frames: Option<u32>,
    /// The driver adapts the receive side to the traffic.
    pub adaptive_rx: Option<bool>,
    /// The driver adapts the transmit side to the traffic.
    pub adaptive_tx: Option<bool>,
}
