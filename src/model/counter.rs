//! What the counters of a network port mean: a table of names, nothing else.
//!
//! Every driver has its own names (`ethtool -S`), and the same name means different things at different ones. The table
//! stands here, as plain data, so that a saved report is read with today's knowledge.
//! A driver's own table is asked first, then the names that mean the same everywhere. A name that no table has is read by a word
//! in it only where the word has one meaning in the whole field (`crc`, `pause`), and says so; every other name stays unknown.

mod common;
mod fold;
mod intel;
mod server;
mod small;

use serde::{Deserialize, Serialize};

use super::link::Counters;

pub use fold::fold;

/// One line of a table: the name, in the form that [`fold`] gives, and what it means.
type Row = (&'static str, Tells, Side);

/// What a counter tells when it grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tells {
    /// Frames were damaged on the way: cable, plug, module, or the partner's transmitter.
    Cable,
    /// Bits were damaged and mended by error correction: normal on fast links.
    Corrected,
    /// Collisions: the port is at half duplex (late ones: the two ends disagree about it).
    Collision,
    /// Frames were lost since no descriptor was free for them: the host's core refills the ring too slowly.
    Ring,
    /// Frames were lost since the port's own memory was full: the host, its bus or the bus's power saving is too slow.
    Fifo,
    /// The host fetches too slowly, so that frames had to wait or buffers ran low; none is lost by that alone.
    HostTooSlow,
    /// The host's driver threw frames away that it had been given.
    DriverDropped,
    /// The host had no memory for a frame.
    NoMemory,
    /// The bus did not take frames in time, and they were lost.
    BusDropped,
    /// Seconds in which the bus kept the port waiting for a large part of the time.
    BusStalledSeconds,
    /// A sign of a bus in trouble that is no measure of what it costs: its queues filled, or its signals were damaged.
    BusSign,
    /// The partner asked this port to stop sending.
    PauseReceived,
    /// This port asked its partner to stop sending.
    PauseSent,
    /// How long pauses lasted, in a unit of the driver's own.
    PauseTime,
    /// Frames longer than the port takes.
    TooLong,
    /// Frames shorter than Ethernet allows.
    TooShort,
    /// Frames that are not for this host, or of a kind that it does not take: harmless.
    Filtered,
    /// The driver or the port did not send a frame that it was given.
    NotSent,
    /// The transmitter stood still until the kernel noticed.
    TxTimeout,
    /// The link went down.
    LinkDown,
    /// The link went down or came up.
    LinkChange,
    /// A check sum that the port computed did not fit: the frame reached the host all the same.
    CheckSum,
    /// A sum of several things, which says nothing about which of them it was.
    Sum,
    /// Nothing that costs anything: traffic, settings, measured values.
    Harmless,
}

/// Which way the frames went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Towards the host.
    Rx,
    /// Away from the host.
    Tx,
    /// Both, or neither.
    Both,
}

/// How a meaning is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The table has the name for this driver.
    Driver,
    /// The table has the name for every driver.
    Common,
    /// No table has it: a word in the name, which has one meaning in the whole field.
    Word,
}

/// What a counter means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Meaning {
    /// What it tells when it grows.
    pub tells: Tells,
    /// Which way the frames went.
    pub side: Side,
    /// How that is known.
    pub basis: Basis,
}

impl Meaning {
    /// Whether the port had no room for frames that arrived: the ring or its own memory was full.
    pub const fn is_overflow(self) -> bool {
        matches!(self.tells, Tells::Ring | Tells::Fifo)
    }
}

/// One counter that grew, copies for each queue taken together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterMeaning {
    /// The driver's name for it; the number of a queue or a priority stands as `#`.
    pub name: String,
    /// How much it grew, all queues together.
    pub grown: u64,
    /// What it means; none where that is not known.
    pub meaning: Option<Meaning>,
}

/// What the counter `name` of a port with this driver means; none where that is not known.
///
/// `driver` is the kernel's name of the driver, such as `r8169`; without one only names that mean the same everywhere are known.
pub fn meaning(driver: Option<&str>, name: &str) -> Option<Meaning> {
    let own = driver.map_or(&[][..], of_driver);
    let forms = [name.to_owned(), fold(name), fold::bare(name)];
    let found = |tables: &[&[Row]], basis| {
        let mut rows = forms.iter().flat_map(|form| tables.iter().copied().flatten().filter(move |row| row.0 == form));
        rows.next().map(|(_, tells, side)| Meaning { tells: *tells, side: *side, basis })
    };
    found(own, Basis::Driver).or_else(|| found(&[common::KERNEL, common::COMMON], Basis::Common)).or_else(|| by_word(name))
}

/// What grew, with meanings, copies for each queue taken together; in the order of the names.
pub fn explain(driver: Option<&str>, grown: &Counters) -> Vec<CounterMeaning> {
    let mut all: std::collections::BTreeMap<String, CounterMeaning> = std::collections::BTreeMap::new();
    for (name, count) in grown.0.iter().filter(|(_, count)| **count > 0) {
        let name = fold(name);
        let meaning = || meaning(driver, &name);
        let one = all.entry(name.clone()).or_insert_with(|| CounterMeaning { name: name.clone(), grown: 0, meaning: meaning() });
        one.grown = one.grown.saturating_add(*count);
    }
    all.into_values().collect()
}

/// The tables that know a driver's names, the nearest first.
fn of_driver(driver: &str) -> &'static [&'static [Row]] {
    match driver {
        // Realtek's own drivers have the kernel's names since they share the chips' tally.
        "r8169" | "r8168" | "r8101" | "r8125" | "r8126" | "r8127" | "r8152" | "r8153" => &[small::REALTEK],
        "igb" | "igbvf" | "igc" | "e1000" | "e1000e" | "ixgbe" | "ixgbevf" | "ngbe" | "txgbe" => &[intel::CLASSIC],
        "i40e" | "iavf" | "i40evf" | "ice" => &[intel::FORTY],
        "atlantic" => &[small::ATLANTIC],
        "cdc_ncm" | "cdc_mbim" | "cdc_ether" | "ax88179_178a" | "aqc111" | "asix" => &[small::USB],
        "virtio_net" | "vmxnet3" => &[small::VIRTUAL],
        "mvneta" | "mvpp2" => &[small::MARVELL],
        "mlx5_core" | "mlx5e" | "mlx5" => &[server::MLX5],
        "mlx4_core" | "mlx4_en" | "mlx4" => &[server::MLX4],
        "bnxt_en" => &[server::BNXT],
        "bnx2x" | "bnx2" => &[server::BNX2X],
        "tg3" => &[server::TG3],
        _ => &[],
    }
}

/// A name that no table has, by a word that means one thing in the whole field.
fn by_word(name: &str) -> Option<Meaning> {
    const DAMAGED: [&str; 5] = ["crc", "fcs", "align", "symbol", "jabber"];
    // What else stands beside such a word: times, limits, sums of check sums, traffic of its own.
    const NOT: [&str; 8] = ["duration", "usec", "time", "transition", "xon", "corrected", "csum", "checksum"];
    let name = name.to_ascii_lowercase();
    let side = match (name.contains("rx") || name.starts_with("in"), name.contains("tx") || name.starts_with("out")) {
        (true, false) => Side::Rx,
        (false, true) => Side::Tx,
        _ => Side::Both,
    };
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let tells = if has(&NOT) {
        return None;
    } else if has(&["pause", "xoff"]) {
        match side {
            Side::Rx => Tells::PauseReceived,
            Side::Tx => Tells::PauseSent,
            Side::Both => return None,
        }
    } else if has(&DAMAGED) && side != Side::Tx {
        Tells::Cable
    } else if has(&["collision"]) {
        Tells::Collision
    } else {
        return None;
    };
    Some(Meaning { tells, side, basis: Basis::Word })
}

#[cfg(test)]
mod tests;
