//! What a system without Linux' files and sockets tells of its network ports: its portable list, and its own programs.

pub use super::imp::ports::{TELLER, ask, listed};

use std::net::IpAddr;

/// Who tells of ports on this system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Teller {
    /// Linux: files and the kernel's own sockets. Nothing here is asked.
    Files,
    /// `ifconfig` and its like (macOS and the BSDs).
    Ifconfig,
    /// PowerShell's commands of networking (Windows).
    PowerShell,
    /// No program that is known: the portable list is all.
    ListOnly,
}

/// A question to a program of the system. Names are checked by whoever asks: they become arguments, never a shell's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question<'a> {
    /// Everything of one interface, with the media that it supports.
    Interface(&'a str),
    /// The details of an aggregation, where they are another question than the interface.
    Aggregation(&'a str),
    /// The route to an address.
    Route(IpAddr),
    /// The counters of one interface.
    Counters(&'a str),
    /// The card's own bus link.
    Bus(&'a str),
    /// A script of ours.
    Script(&'a str),
}

/// What kind of interface the list calls it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListedKind {
    /// Ethernet by its frames: a port with a cable, or a virtual one; the list does not tell these apart.
    Ethernet,
    /// A radio.
    Wireless,
    /// A tunnel, or a point-to-point link.
    Tunnel,
    /// A software switch.
    Bridge,
    /// The loopback interface.
    Loopback,
    /// Something else, or not told.
    #[default]
    Other,
}

/// One interface of the system's portable list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Its number.
    pub index: u32,
    /// The name that people and the system's programs use: `en0`, `Ethernet 2`.
    pub name: String,
    /// What the system calls the port or its card, such as `Thunderbolt Ethernet Slot 1`.
    pub description: Option<String>,
    /// Its kind.
    pub kind: ListedKind,
    /// Its hardware address.
    pub mac: Option<[u8; 6]>,
    /// Its MTU in bytes.
    pub mtu: Option<u32>,
    /// Its speed of sending in bit/s, as it claims.
    pub speed_bits: Option<u64>,
    /// Whether it can carry traffic; none where not told.
    pub up: Option<bool>,
    /// Bytes received and sent since boot; none where the system's counters are too short for it (macOS: 4 GiB).
    pub bytes: Option<[u64; 2]>,
}
