//! What each host knows of the link that leads to the other one.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::flows::{FlowSpread, NOT_AGGREGATED};
use super::host::Role;
use super::link_event::{LinkEvent, LogRest};
use super::nic::Nic;
use super::outcome::{Fact, Outcome, Source, absent};
use crate::units::{BitRate, Elapsed, Mtu};

/// The links of both ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkSection {
    /// The PC's.
    pub pc: Outcome<HostLink>,
    /// The NAS's.
    pub nas: Outcome<HostLink>,
    /// The hops from the PC to the NAS; 1 where no router lies between.
    #[serde(default = "absent")]
    pub hops: Outcome<u8>,
    /// What the counters did while they were only watched.
    #[serde(default = "absent")]
    pub watched: Outcome<Watched>,
}

/// Counters over a time in which weaklink itself moved nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Watched {
    /// How long.
    pub elapsed_us: Elapsed,
    /// What grew at the PC's interfaces.
    pub pc: Outcome<CountersByInterface>,
    /// What grew at the NAS's.
    pub nas: Outcome<CountersByInterface>,
}

impl LinkSection {
    /// Both links, and nothing watched.
    pub fn new(pc: Outcome<HostLink>, nas: Outcome<HostLink>) -> Self {
        Self {
            pc,
            nas,
            hops: Outcome::skipped("no agent answered, so the hops to it were not counted"),
            watched: Outcome::skipped("not asked for (--watch)"),
        }
    }

    /// The link of one end.
    pub const fn of(&self, role: Role) -> &Outcome<HostLink> {
        match role {
            Role::Pc => &self.pc,
            Role::Nas => &self.nas,
        }
    }
}

/// The interface that carries the traffic to the peer, with everything below it.
///
/// Where no peer was named, both addresses are the unspecified one and the stack holds all ports of the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostLink {
    /// Our address towards the peer.
    pub local: IpAddr,
    /// The peer's address.
    pub peer: IpAddr,
    /// The next hop, when the peer is not in our subnet.
    pub gateway: Outcome<Option<IpAddr>>,
    /// The interfaces from the one of the route down to the physical ports; never empty.
    pub stack: Vec<Interface>,
    /// The real speed of the cable as the user stated it with `--link-speed`.
    pub stated_speed_bps: Option<BitRate>,
    /// What the device at the other end of the cable says of itself.
    #[serde(default = "absent")]
    pub neighbours: Outcome<Vec<Neighbour>>,
    /// All addresses of this host, which tell whether another port leads to the peer as well, or would be the faster one.
    #[serde(default = "absent")]
    pub addresses: Outcome<Vec<HostAddress>>,
    /// What the kernel's log told of these interfaces since the system started, oldest first.
    #[serde(default = "absent")]
    pub events: Outcome<Vec<LinkEvent>>,
    /// How long the log was followed after that, until the end of the run, or why not; none where `events` says why it can't be read.
    #[serde(default)]
    pub log_followed: Option<Outcome<Elapsed>>,
    /// Which port of an aggregation each flow of this end leaves by; skipped where nothing is aggregated.
    #[serde(default = "absent")]
    pub flows: Outcome<Box<FlowSpread>>,
    /// How many further interfaces there are that the stack does not hold, since it would be too long or their names are no text.
    #[serde(default, skip_serializing_if = "is_none_left")]
    pub left_out: u32,
}

/// Whether nothing was left out, as of nearly every host.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_none_left(count: &u32) -> bool {
    *count == 0
}

/// One address of a host, and the port that has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostAddress {
    /// The interface.
    pub interface: String,
    /// The address.
    pub address: IpAddr,
    /// The length of the subnet's prefix in bits.
    pub prefix: u8,
    /// What kind of interface.
    pub kind: InterfaceKind,
    /// The speed that it states; none where it states none.
    pub speed_bps: Option<BitRate>,
    /// Whether it has a carrier; none where not told.
    pub carrier: Option<bool>,
}

impl HostAddress {
    /// Whether `other` lies in this address's subnet.
    pub fn holds(&self, other: IpAddr) -> bool {
        let same = |own: u128, other: u128, bits: u32| {
            let rest = bits.saturating_sub(u32::from(self.prefix));
            rest >= bits || own >> rest == other >> rest
        };
        match (self.address.to_canonical(), other.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => same(u32::from(own).into(), u32::from(other).into(), 32),
            (IpAddr::V6(own), IpAddr::V6(other)) => same(own.into(), other.into(), 128),
            _ => false,
        }
    }
}

impl HostLink {
    /// A link of which only the addresses and the interfaces are known, in one subnet.
    pub fn new(local: IpAddr, peer: IpAddr, stack: Vec<Interface>) -> Self {
        Self {
            local,
            peer,
            gateway: Outcome::Measured(None),
            stack,
            stated_speed_bps: None,
            neighbours: Outcome::skipped("nobody listened for the switch"),
            addresses: Outcome::skipped("not asked for"),
            events: Outcome::skipped("not asked for"),
            log_followed: None,
            flows: Outcome::skipped(NOT_AGGREGATED),
            left_out: 0,
        }
    }

    /// Adds what the kernel's log told while the run went on; nothing changes where the log could not be read at its beginning.
    pub fn add_log(&mut self, rest: Outcome<LogRest>) {
        let Some(events) = self.events.measured_mut() else { return };
        self.log_followed = Some(rest.map(|rest| {
            let followed_us = rest.followed_us;
            events.extend(rest.bounded());
            followed_us
        }));
    }

    /// The interface that the route names.
    pub fn top(&self) -> Option<&Interface> {
        self.stack.first()
    }
}

/// The device at the other end of a cable, mostly a switch, as it says of itself by LLDP (IEEE 802.1AB), CDP (Cisco) or LACP.
///
/// Foreign words: nothing of it is more than a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbour {
    /// Our interface that heard it.
    pub interface: String,
    /// The chassis: a MAC address, or what else the device calls itself.
    pub chassis: Option<String>,
    /// The device's port.
    pub port: Option<String>,
    /// The port's description.
    pub port_description: Option<String>,
    /// The device's name.
    pub system: Option<String>,
    /// What kind of device it is.
    pub system_description: Option<String>,
    /// The largest frame of the port in bytes, header and check sum included (802.3 TLV 4): 1518 or 1522 without jumbo frames.
    pub max_frame_bytes: Option<u32>,
    /// The VLAN of untagged frames (802.1 TLV 1).
    pub port_vlan: Option<u16>,
    /// Whether the port can be, and is, part of an aggregation (802.3 TLV 3, or 802.1 TLV 7).
    pub aggregation: Option<[bool; 2]>,
    /// Whether the port can negotiate its speed, and does (802.3 TLV 1).
    pub autoneg: Option<[bool; 2]>,
    /// The duplex that the port works with, where its kind of port says so (802.3 TLV 1), or CDP does.
    pub duplex: Option<Duplex>,
    /// The speed that the port works at, where its kind of port says so (802.3 TLV 1).
    #[serde(default)]
    pub speed_bps: Option<BitRate>,
    /// The port's MTU as CDP states it (Cisco). Some switches state 1500 though jumbo frames pass, where these are set elsewhere.
    pub stated_mtu: Option<Mtu>,
    /// What the device works as: `bridge`, `router`, `station` and so on; empty when it does not say.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// For how many seconds from its sending the word holds.
    pub ttl_s: Option<u16>,
    /// What the port says by LACP of itself and of our end (IEEE 802.1AX); nothing else is known of the device then, and our
    /// port is in no bond: a bond takes these frames for itself.
    pub lacp: Option<[LacpEnd; 2]>,
    /// Who heard it: weaklink itself, or a program such as `lldpctl`.
    pub source: Option<Source>,
}

/// One end of an aggregation, as an LACPDU names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LacpEnd {
    /// The device's address; all zero where it is not known.
    pub system: String,
    /// The key: ports of one device with the same one may be aggregated.
    pub key: u16,
    /// The port's number.
    pub port: u16,
    /// The state bits, from the lowest: active, short timeout, aggregation, synchronised, collecting, distributing, defaulted,
    /// expired.
    pub state: u8,
}

impl Neighbour {
    /// Whether the port takes an IP packet of `mtu` bytes, by its largest frame; none where that is not told, or is ambiguous.
    ///
    /// The standard counts header and check sum (18 bytes), Junos the header only (14), and old releases of lldpd state the MTU
    /// itself. So a frame below `mtu` is too small whatever was counted, and one that holds 18 bytes more is large enough.
    pub fn takes(&self, mtu: Mtu) -> Option<bool> {
        const HEADER_AND_CHECK_SUM: u32 = 18;
        match self.max_frame_bytes? {
            frame if frame < mtu.0 => Some(false),
            frame if frame >= mtu.0.saturating_add(HEADER_AND_CHECK_SUM) => Some(true),
            _ => None,
        }
    }
}

/// One network interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interface {
    /// Its name, such as `eth0`.
    pub name: String,
    /// What it is.
    pub kind: InterfaceKind,
    /// Its MTU.
    pub mtu: Outcome<Fact<Mtu>>,
    /// Its speed as negotiated. A virtual interface's claim is no evidence about a cable: see `kind`.
    pub speed_bps: Outcome<Fact<BitRate>>,
    /// Its duplex.
    pub duplex: Outcome<Fact<Duplex>>,
    /// Whether it negotiates.
    pub autoneg: Outcome<Fact<bool>>,
    /// The kernel's driver.
    pub driver: Outcome<Fact<String>>,
    /// The bus that it is on.
    pub bus: Outcome<Bus>,
    /// The speeds that it can do, offers, and is offered.
    pub modes: Outcome<LinkModes>,
    /// The bond's facts, when it is one.
    pub bond: Option<Bond>,
    /// How often the carrier changed since boot.
    pub carrier_changes: Outcome<u64>,
    /// Whether it has a carrier.
    pub carrier: Outcome<bool>,
    /// Features that are off though the driver offers them, or on: name and state.
    pub offloads: Outcome<BTreeMap<String, bool>>,
    /// The counters when the run began.
    pub counters: Outcome<Counters>,
    /// What port, PHY and driver say beyond that.
    #[serde(default = "absent")]
    pub nic: Outcome<Box<Nic>>,
}

/// What the bus of such a port is said to be: one of several of a switch within the host, before the one port to its processor.
pub const SWITCH_PORT: &str = "a port of a switch chip";

impl Interface {
    /// Whether it is a port of a switch within the host; the host's own port to that switch then stands below it.
    pub fn is_switch_port(&self) -> bool {
        self.bus.measured().is_some_and(|bus| bus.description.contains(SWITCH_PORT))
    }

    /// An interface of which nothing more is known, for one reason.
    pub fn unknown(name: &str, kind: InterfaceKind, reason: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            mtu: Outcome::skipped(reason),
            speed_bps: Outcome::skipped(reason),
            duplex: Outcome::skipped(reason),
            autoneg: Outcome::skipped(reason),
            driver: Outcome::skipped(reason),
            bus: Outcome::skipped(reason),
            modes: Outcome::skipped(reason),
            bond: None,
            carrier_changes: Outcome::skipped(reason),
            carrier: Outcome::skipped(reason),
            offloads: Outcome::skipped(reason),
            counters: Outcome::skipped(reason),
            nic: Outcome::skipped(reason),
        }
    }
}

/// What kind of interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterfaceKind {
    /// A port with a cable.
    Physical,
    /// A port of a virtual machine (virtio, vmxnet3, hv_netvsc, xen).
    VirtualMachine,
    /// A pair of virtual ports, as containers have.
    Veth,
    /// A link aggregation by the bonding driver.
    Bond,
    /// A link aggregation by the team driver.
    Team,
    /// A software switch.
    Bridge,
    /// A VLAN on another interface.
    Vlan,
    /// macvlan or ipvlan on another interface.
    Macvlan,
    /// A tunnel or VPN (tun, WireGuard, gre, vxlan).
    Tunnel,
    /// Wi-Fi.
    Wifi,
    /// The loopback interface: no network at all.
    Loopback,
    /// Something that this version does not know, or that the system does not tell.
    Unknown,
}

impl InterfaceKind {
    /// Whether its claimed speed tells nothing about a cable.
    pub const fn speed_is_no_evidence(self) -> bool {
        matches!(
            self,
            Self::VirtualMachine | Self::Veth | Self::Bridge | Self::Macvlan | Self::Tunnel | Self::Loopback | Self::Unknown
        )
    }
}

/// Duplex of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Duplex {
    /// Both ways at once.
    Full,
    /// One way at a time.
    Half,
}

/// The bus of a port: what it gives and what it could give.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bus {
    /// `pci`, `usb`, `virtio`, `platform` …
    pub kind: String,
    /// The rate of the slowest part of the way to the root, before the bus's own overhead.
    pub rate_bps: Option<Fact<BitRate>>,
    /// What the device itself could do at most.
    pub max_rate_bps: Option<Fact<BitRate>>,
    /// For people: `PCIe 5.0 GT/s x1`, `USB 480 Mbit/s`.
    pub description: String,
    /// Every part of the way, from the device itself up to the root; empty where the way is not shown.
    #[serde(default)]
    pub way: Vec<BusPart>,
}

#[cfg(test)]
impl Bus {
    /// A bus of which nothing but its words is known.
    pub(crate) fn told(description: &str) -> Self {
        let (kind, description) = (String::new(), description.to_owned());
        Self { kind, rate_bps: None, max_rate_bps: None, description, way: Vec::new() }
    }
}

/// One part of the way from a device to the root of its bus: the device, a bridge, a hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusPart {
    /// Where: `0000:00:1c.4`, `5-1.2`.
    pub place: String,
    /// What it gives now, in words: `PCIe 5.0 GT/s x1`.
    pub now: String,
    /// Its rate now, before the bus's own overhead; none where its word is not believed.
    pub rate_bps: Option<BitRate>,
    /// What it could give at most.
    pub max_rate_bps: Option<BitRate>,
    /// Whether active-state power management of the link is on (`L0s`, `L1`), in words; none where not told or not PCI Express.
    pub aspm: Option<String>,
}

/// Speeds of the link modes, each list ascending and without doubles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkModes {
    /// What the port can do according to its driver; old drivers leave speeds out.
    pub supported_bps: Vec<BitRate>,
    /// What it offers to the partner.
    pub advertised_bps: Vec<BitRate>,
    /// What the partner offers; empty when unknown.
    pub partner_bps: Vec<BitRate>,
}

/// A link aggregation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bond {
    /// The mode as the kernel names it, such as `802.3ad`.
    pub mode: String,
    /// The transmit hash policy, such as `layer2`; none where the mode has none.
    pub hash_policy: Option<String>,
    /// The ports.
    pub ports: Vec<BondPort>,
    /// The partner's system address under LACP; all zero means that nobody answers.
    pub partner_mac: Option<String>,
    /// The aggregator in use.
    pub active_aggregator: Option<u32>,
    /// The number of ports in the active aggregator.
    pub active_ports: Option<u32>,
    /// Whether `ports` stand in the kernel's own order, by which the hash counts them.
    #[serde(default)]
    pub in_order: bool,
    /// Our key in the active aggregator.
    #[serde(default)]
    pub actor_key: Option<u16>,
    /// The partner's key in the active aggregator.
    #[serde(default)]
    pub partner_key: Option<u16>,
    /// How it is set up.
    #[serde(default)]
    pub settings: BondSettings,
}

/// How an aggregation by the bonding driver is set up; a field is absent when it was not told or its mode has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BondSettings {
    /// How often the links are looked at, in milliseconds; 0: never.
    pub miimon_ms: Option<u32>,
    /// How long a link must be up before it is used, in milliseconds.
    pub up_delay_ms: Option<u32>,
    /// How long a link must be down before it is given up, in milliseconds.
    pub down_delay_ms: Option<u32>,
    /// How often the ARP targets are asked, in milliseconds; 0: never.
    pub arp_interval_ms: Option<u32>,
    /// Who is asked by ARP or neighbour discovery whether a link carries.
    pub arp_targets: Vec<String>,
    /// The port that is preferred (active-backup, balance-tlb, balance-alb).
    pub primary: Option<String>,
    /// Whose MAC address is used after a change of ports: `none`, `active`, `follow`.
    pub fail_over_mac: Option<String>,
    /// How often the partner shall send LACPDUs: `slow` (30 s), `fast` (1 s).
    pub lacp_rate: Option<String>,
    /// Whether LACPDUs are sent without being asked.
    pub lacp_active: Option<bool>,
    /// By what the active aggregator is chosen: `stable`, `bandwidth`, `count`.
    pub ad_select: Option<String>,
    /// With fewer ports than these it has no carrier.
    pub min_links: Option<u32>,
    /// How often balance-tlb and balance-alb balance again, in seconds.
    pub lp_interval_s: Option<u32>,
    /// Whether balance-tlb moves connections by load; where not, it hashes.
    pub tlb_dynamic: Option<bool>,
    /// Packets to a port before balance-rr takes the next; 0: at random.
    pub packets_per_port: Option<u32>,
}

/// One port of a link aggregation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BondPort {
    /// The port's interface.
    pub name: String,
    /// Its speed, unless unknown.
    pub speed_bps: Option<BitRate>,
    /// Its duplex, unless unknown.
    pub duplex: Option<Duplex>,
    /// Whether its link is up.
    pub up: Option<bool>,
    /// Whether it carries traffic now (active port of active-backup).
    pub active: Option<bool>,
    /// How often its link failed.
    pub failures: Option<u64>,
    /// Its aggregator under LACP.
    pub aggregator: Option<u32>,
    /// Actor's and partner's churn state, as the kernel words them.
    pub churn: Option<[String; 2]>,
    /// Our LACP port state bits.
    pub actor_state: Option<u32>,
    /// The partner's LACP port state bits.
    pub partner_state: Option<u32>,
    /// The address that the port has by itself.
    #[serde(default)]
    pub permanent_mac: Option<String>,
    /// The queue whose packets are forced through this port; 0: none.
    #[serde(default)]
    pub queue_id: Option<u16>,
    /// Our key at this port.
    #[serde(default)]
    pub actor_key: Option<u16>,
    /// The partner's system address at this port; for root alone.
    #[serde(default)]
    pub partner_system: Option<String>,
    /// The partner's key at this port; for root alone.
    #[serde(default)]
    pub partner_key: Option<u16>,
    /// The partner's number of its port; for root alone.
    #[serde(default)]
    pub partner_port: Option<u16>,
}

/// Counters of an interface by name, such as `rx_bytes`; a difference of two snapshots has the same shape.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Counters(pub BTreeMap<String, u64>);

impl Counters {
    /// What grew from `before` to `self`; names that did not move are left out.
    pub fn since(&self, before: &Self) -> Self {
        Self(
            self.0
                .iter()
                .filter_map(|(name, now)| {
                    let grown = now.saturating_sub(before.0.get(name).copied().unwrap_or(*now));
                    (grown > 0).then(|| (name.clone(), grown))
                })
                .collect(),
        )
    }

    /// The value of one counter, if it is there.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }
}

/// Counters of several interfaces, by interface name.
pub type CountersByInterface = BTreeMap<String, Counters>;
