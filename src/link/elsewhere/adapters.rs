//! Typed facts of Windows' adapters, from what PowerShell told.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::answers::{Answers, Thing, flag, list, number, small, text};
use super::lagg::mac;
use super::media::decimal;
use crate::link::pcie::Lanes;
use crate::model::link::{Counters, Duplex};

/// More adapters, teams and members than these are not kept.
const MOST: usize = 256;
/// More values of one property than these are not kept.
const VALUES: usize = 64;

/// One adapter.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Adapter {
    pub index: u32,
    pub name: String,
    /// The card in its maker's words.
    pub description: Option<String>,
    pub mac: Option<String>,
    pub connected: Option<bool>,
    pub duplex: Option<Duplex>,
    /// The speed in bit/s, the lesser of both directions.
    pub bits: Option<u64>,
    pub mtu: Option<u32>,
    /// `ifType` of IANA.
    pub if_type: Option<u32>,
    /// `NDIS_PHYSICAL_MEDIUM`.
    pub medium: Option<u32>,
    /// Whether it calls itself virtual, or no hardware.
    pub made_up: Option<bool>,
    /// The place in the tree of devices, in capitals: `PCI\VEN_10EC&DEV_8125…`.
    pub device: String,
    pub driver_file: Option<String>,
    pub driver_version: Option<String>,
}

/// A setting of a driver, by the keyword that is the same in every language.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Property {
    pub value: String,
    pub choices: Vec<String>,
    pub most: Option<u32>,
}

/// Where a card sits, and its own link of PCI Express.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Hardware {
    pub address: Option<String>,
    pub now: Option<Lanes>,
    pub most: Option<Lanes>,
}

/// A team (LBFO), or one inside a switch of Hyper-V (SET).
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Team {
    pub name: String,
    pub members: Vec<String>,
    /// The adapters that stand for it.
    pub nics: Vec<String>,
    /// `TeamingMode`: 0 static, 1 independent of the switch, 2 LACP.
    pub mode: Option<u64>,
    pub algorithm: Option<String>,
    pub in_switch: bool,
}

/// What a team says of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Member {
    /// Whether it is set to stand by.
    pub standby: bool,
    /// Whether it carries traffic.
    pub active: Option<bool>,
    /// Whether LACP did not come to terms (`FailureReason` 5).
    pub lacp_failed: bool,
}

/// Everything that was told.
#[derive(Clone, Debug, Default)]
pub(super) struct Adapters {
    pub answers: Answers,
    pub all: Vec<Adapter>,
    pub properties: BTreeMap<(String, String), Property>,
    pub hardware: BTreeMap<String, Hardware>,
    pub teams: Vec<Team>,
    pub members: BTreeMap<String, Member>,
    pub statistics: BTreeMap<String, Counters>,
    /// The adapters that a switch of Hyper-V stands on.
    pub bound: Vec<String>,
    /// The interface of the route and the next hop.
    pub route: Option<(String, Option<IpAddr>)>,
}

impl Adapters {
    /// Reads what the script printed.
    pub(super) fn read(printed: &str) -> Self {
        let answers = Answers::read(printed);
        let part = |name: &str| answers.part(name).unwrap_or_default();
        let named = |thing: &Thing| text(thing, "Name");
        let adapters: Vec<Adapter> = part("adapters").iter().filter_map(adapter).take(MOST).collect();
        let properties = part("properties").iter().filter_map(|it| Some(((named(it)?, keyword(it)?), property(it)?))).collect();
        let mut teams: Vec<Team> = part("teams").iter().filter_map(team).take(MOST).collect();
        let in_switch = |team: Team| Team { in_switch: true, mode: Some(1), ..team };
        teams.extend(part("switch-teams").iter().filter_map(team).take(MOST).map(in_switch));
        Self {
            properties,
            hardware: part("hardware").iter().take(MOST).filter_map(|it| Some((named(it)?, hardware(it)))).collect(),
            teams,
            members: part("members").iter().take(MOST).filter_map(|it| Some((named(it)?, member(it)))).collect(),
            statistics: part("statistics").iter().take(MOST).filter_map(|it| Some((named(it)?, counters(it)))).collect(),
            bound: part("bindings").iter().filter_map(named).take(MOST).collect(),
            route: part("route").iter().find_map(|it| route(it, &adapters)),
            all: adapters,
            answers,
        }
    }

    /// The adapter of a name.
    pub(super) fn adapter(&self, name: &str) -> Option<&Adapter> {
        self.all.iter().find(|adapter| adapter.name == name)
    }

    /// A setting of an adapter; the keyword without the star that the standard ones have.
    pub(super) fn property(&self, name: &str, keyword: &str) -> Option<&Property> {
        self.properties.get(&(name.to_owned(), keyword.to_owned()))
    }

    /// The team that an adapter stands for.
    pub(super) fn team(&self, name: &str) -> Option<&Team> {
        self.teams.iter().find(|team| !team.in_switch && (team.nics.iter().any(|nic| nic == name) || team.name == name))
    }
}

fn adapter(thing: &Thing) -> Option<Adapter> {
    let name = text(thing, "Name")?;
    let speeds = [number(thing, "TransmitLinkSpeed"), number(thing, "ReceiveLinkSpeed")];
    // All bits set: not known (`NDIS_LINK_SPEED_UNKNOWN`).
    let told = speeds.into_iter().flatten().filter(|bits| (1_000_000..=1_600_000_000_000).contains(bits)).min();
    let words = || text(thing, "LinkSpeed").and_then(|words| link_speed(&words));
    let connected = match number(thing, "MediaConnectState").or_else(|| number(thing, "MediaConnectionState")) {
        Some(1) => Some(true),
        Some(2) => Some(false),
        _ => match text(thing, "MediaConnectionState").as_deref() {
            Some("Connected") => Some(true),
            Some("Disconnected") => Some(false),
            _ => None,
        },
    };
    let duplex = match number(thing, "MediaDuplexState") {
        Some(1) => Some(Duplex::Half),
        Some(2) => Some(Duplex::Full),
        // The other field says half also where nothing is known.
        _ => flag(thing, "FullDuplex").filter(|full| *full).map(|_| Duplex::Full),
    };
    Some(Adapter {
        index: small(thing, "ifIndex").or_else(|| small(thing, "InterfaceIndex")).unwrap_or(0),
        description: text(thing, "InterfaceDescription"),
        mac: text(thing, "MacAddress").and_then(|word| mac(&word)),
        connected,
        duplex,
        bits: told.or_else(words),
        mtu: small(thing, "MtuSize"),
        if_type: small(thing, "InterfaceType"),
        medium: small(thing, "NdisPhysicalMedium").or_else(|| radio(thing)),
        made_up: match (flag(thing, "Virtual"), flag(thing, "HardwareInterface")) {
            (None, None) => None,
            (made, hardware) => Some(made == Some(true) || hardware == Some(false)),
        },
        device: text(thing, "PnPDeviceID").unwrap_or_default().to_ascii_uppercase(),
        driver_file: text(thing, "DriverFileName"),
        driver_version: text(thing, "DriverVersionString").or_else(|| text(thing, "DriverVersion")),
        name,
    })
}

/// The medium of a radio, where only words name it.
fn radio(thing: &Thing) -> Option<u32> {
    let words = ["PhysicalMediaType", "MediaType", "NdisPhysicalMedium"].map(|field| text(thing, field).unwrap_or_default());
    words.iter().any(|word| word.contains("802.11") || word.contains("802_11")).then_some(9)
}

/// `2.5 Gbps`, `100 Mbps`, and with a comma in languages that have one.
fn link_speed(words: &str) -> Option<u64> {
    let (number, unit) = words.split_once(' ')?;
    let unit = match unit.trim() {
        "Kbps" => 1_000,
        "Mbps" => 1_000_000,
        "Gbps" => 1_000_000_000,
        "Tbps" => 1_000_000_000_000,
        _ => return None,
    };
    decimal(number, unit).filter(|bits| *bits >= 1_000_000)
}

fn keyword(thing: &Thing) -> Option<String> {
    Some(text(thing, "RegistryKeyword")?.trim_start_matches('*').to_owned())
}

fn property(thing: &Thing) -> Option<Property> {
    Some(Property {
        value: list(thing, "RegistryValue", 1).into_iter().next()?,
        choices: list(thing, "ValidRegistryValues", VALUES),
        most: small(thing, "NumericParameterMaxValue"),
    })
}

fn hardware(thing: &Thing) -> Hardware {
    let field = |name: &str| small(thing, name).filter(|number| *number <= 0xffff);
    let place = || Some([field("BusNumber")?, field("DeviceNumber")?, field("FunctionNumber")?]);
    Hardware {
        address: place().map(|[bus, device, function]| {
            format!("{:04x}:{bus:02x}:{device:02x}.{function:x}", field("SegmentNumber").unwrap_or(0))
        }),
        now: lanes(field("PciExpressCurrentLinkSpeedEncoded"), field("PciExpressCurrentLinkWidth")),
        most: lanes(field("PciExpressMaxLinkSpeedEncoded"), field("PciExpressMaxLinkWidth")),
    }
}

/// The speed's code is that of the register itself.
fn lanes(code: Option<u32>, width: Option<u32>) -> Option<Lanes> {
    Lanes::of_codes(code?, width?)
}

fn team(thing: &Thing) -> Option<Team> {
    Some(Team {
        name: text(thing, "Name")?,
        members: list(thing, "Members", VALUES),
        nics: list(thing, "TeamNics", VALUES),
        mode: number(thing, "Mode").or_else(|| match text(thing, "TeamingMode")?.as_str() {
            "0" | "Static" => Some(0),
            "1" | "SwitchIndependent" => Some(1),
            "2" | "Lacp" | "LACP" => Some(2),
            _ => None,
        }),
        algorithm: text(thing, "Algorithm").or_else(|| text(thing, "LoadBalancingAlgorithm")),
        in_switch: false,
    })
}

/// `AdminModes` and `OperModes`: 0 active, 1 standby, 4096 failed.
fn member(thing: &Thing) -> Member {
    Member {
        standby: number(thing, "Administrative") == Some(1),
        active: number(thing, "Operational").map(|mode| mode == 0),
        lacp_failed: number(thing, "Failure") == Some(5),
    }
}

fn counters(thing: &Thing) -> Counters {
    let sum = |fields: &[&str]| {
        let told: Vec<u64> = fields.iter().filter_map(|field| number(thing, field)).collect();
        (!told.is_empty()).then(|| told.iter().fold(0, |sum: u64, count| sum.saturating_add(*count)))
    };
    let named = [
        ("rx_bytes", sum(&["ReceivedBytes"])),
        ("tx_bytes", sum(&["SentBytes"])),
        ("rx_packets", sum(&["ReceivedUnicastPackets", "ReceivedMulticastPackets", "ReceivedBroadcastPackets"])),
        ("tx_packets", sum(&["SentUnicastPackets", "SentMulticastPackets", "SentBroadcastPackets"])),
        ("rx_dropped", sum(&["ReceivedDiscardedPackets"])),
        ("tx_dropped", sum(&["OutboundDiscardedPackets"])),
        ("rx_errors", sum(&["ReceivedPacketErrors"])),
        ("tx_errors", sum(&["OutboundPacketErrors"])),
    ];
    Counters(named.into_iter().filter_map(|(name, count)| Some((name.to_owned(), count?))).collect())
}

fn route(thing: &Thing, adapters: &[Adapter]) -> Option<(String, Option<IpAddr>)> {
    let index = small(thing, "InterfaceIndex")?;
    let listed = adapters.iter().find(|adapter| adapter.index == index).map(|adapter| adapter.name.clone());
    let hop: IpAddr = text(thing, "NextHop")?.split('%').next()?.parse().ok()?;
    // The unspecified address: no hop between.
    Some((listed.or_else(|| text(thing, "InterfaceAlias"))?, Some(hop).filter(|hop| !hop.is_unspecified())))
}
