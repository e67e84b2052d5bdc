//! Interfaces of Windows, from what PowerShell told of adapters and teams.

use super::adapters::{Adapter, Adapters, Hardware, Team};
use super::list::{self, fill};
use super::unix::fixed;
use crate::model::link::{Bond, BondPort, Bus, Interface, InterfaceKind as Kind, LinkModes};
use crate::model::nic::{Eee, ModeNames, Nic, Pause, Rings};
use crate::model::outcome::{Fact, Outcome, Source};
use crate::sys::ports::Listed;
use crate::units::{BitRate, Mtu};

/// What the reason of everything is that Windows does not tell of any port.
const UNTOLD: &str = "Windows does not tell it to programs without a driver of their own; on Linux the kernel tells it";

/// `ifType` of IANA: Wi-Fi, and what runs over another interface (point-to-point, "virtual", tunnel).
const WIFI: u32 = 71;
const TUNNELS: [u32; 3] = [23, 53, 131];
/// `NDIS_PHYSICAL_MEDIUM`: both kinds of Wi-Fi, and Ethernet.
const RADIOS: [u32; 2] = [1, 9];
const ETHERNET: u32 = 14;

/// The kind of an adapter; a port with a cable only where it is hardware by its own word and sits on a bus.
pub(super) fn kind(told: &Adapters, adapter: &Adapter) -> Kind {
    let device = adapter.device.as_str();
    let from = |start: &str| device.starts_with(start);
    // VMware, virtio and Xen by their PCI numbers, and a real card's model that one of them imitates.
    let imitated = ["VEN_15AD", "VEN_1AF4", "VEN_5853"].iter().any(|maker| device.contains(maker))
        || device.split_once("SUBSYS_").and_then(|(_, id)| id.get(4..8)).is_some_and(|maker| matches!(maker, "15AD" | "1AF4"));
    if told.team(&adapter.name).is_some() {
        Kind::Bond
    } else if adapter.if_type == Some(WIFI) || adapter.medium.is_some_and(|medium| RADIOS.contains(&medium)) {
        Kind::Wifi
    } else if from("ROOT\\VMS_MP") || from("ROOT\\VMS_VSMP") {
        Kind::Bridge
    } else if from("VMBUS\\") || from("XENVIF\\") || (from("PCI\\") && imitated) {
        Kind::VirtualMachine
    } else if adapter.if_type.is_some_and(|kind| TUNNELS.contains(&kind)) {
        Kind::Tunnel
    } else if adapter.made_up == Some(false)
        && (from("PCI\\") || from("USB\\"))
        && matches!(adapter.medium, Some(ETHERNET | 0) | None)
    {
        Kind::Physical
    } else {
        Kind::Unknown
    }
}

/// The interfaces directly below `name`.
pub(super) fn below(told: &Adapters, name: &str) -> Vec<String> {
    if let Some(team) = told.team(name).or_else(|| switch_team(told, name)) {
        return team.members.clone();
    }
    let Some(adapter) = told.adapter(name).filter(|adapter| kind(told, adapter) == Kind::Bridge) else { return Vec::new() };
    // The host's own port of a switch is called after it, and takes over the address of the card below.
    let switch = name.strip_prefix("vEthernet (").and_then(|rest| rest.strip_suffix(')'));
    if let Some(team) = switch.and_then(|switch| switch_team(told, switch)) {
        return vec![team.name.clone()];
    }
    let same = |name: &&String| adapter.mac.is_some() && told.adapter(name).is_some_and(|card| card.mac == adapter.mac);
    told.bound.iter().filter(same).cloned().collect()
}

fn switch_team<'a>(told: &'a Adapters, name: &str) -> Option<&'a Team> {
    told.teams.iter().find(|team| team.in_switch && team.name == name)
}

/// The interface `name`.
pub(super) fn interface(told: &Adapters, name: &str, listed: Option<&Listed>) -> Interface {
    let Some(adapter) = told.adapter(name) else {
        let mut found = list::interface(name, listed, &told.answers.why("adapters", "Get-NetAdapter"));
        if let Some(team) = switch_team(told, name) {
            found = list::interface(name, None, "a team inside a switch of Hyper-V is no adapter of its own");
            (found.kind, found.bond) = (Kind::Bond, Some(bond(told, team)));
            list::settle(&mut found);
        }
        return found;
    };
    let mut found = list::interface(name, listed, UNTOLD);
    found.kind = kind(told, adapter);
    fill(&mut found.mtu, adapter.mtu.filter(|mtu| *mtu > 0).map(Mtu), Source::Powershell);
    fill(&mut found.speed_bps, adapter.bits.map(BitRate), Source::Powershell);
    fill(&mut found.duplex, adapter.duplex, Source::Powershell);
    if let Some(connected) = adapter.connected {
        found.carrier = Outcome::Measured(connected);
    }
    fill(&mut found.driver, driver(adapter), Source::Powershell);
    found.bond = told.team(name).map(|team| bond(told, team));
    if let Some(counters) = told.statistics.get(name) {
        found.counters = Outcome::Measured(counters.clone());
    }
    found.bus = bus(told, adapter);
    let mut nic = Nic::unknown(UNTOLD);
    fill(&mut nic.mac, adapter.mac.clone(), Source::Powershell);
    fill(&mut nic.driver_version, adapter.driver_version.clone(), Source::Powershell);
    fill(&mut nic.bus_address, told.hardware.get(name).and_then(|card| card.address.clone()), Source::Powershell);
    speeds(told, name, &mut found, &mut nic);
    settings(told, name, &mut nic);
    found.nic = Outcome::Measured(Box::new(nic));
    list::settle(&mut found);
    found
}

/// The card in its maker's words, and the file of its driver.
fn driver(adapter: &Adapter) -> Option<String> {
    match (&adapter.description, &adapter.driver_file) {
        (Some(card), Some(file)) => Some(format!("{card} ({file})")),
        (one, other) => one.as_ref().or(other.as_ref()).cloned(),
    }
}

/// The speeds that the driver lets people choose, which are what the card can do, and the choice.
fn speeds(told: &Adapters, name: &str, found: &mut Interface, nic: &mut Nic) {
    let Some(set) = told.property(name, "SpeedDuplex") else {
        let why = "the card's driver has no setting of its speed (*SpeedDuplex), so what the card can do is not told";
        (found.autoneg, found.modes) = (Outcome::skipped(why), Outcome::skipped(why));
        return;
    };
    let only = code(&set.value);
    match (set.value.as_str(), only) {
        ("0", _) => fill(&mut found.autoneg, Some(true), Source::Powershell),
        (_, Some(bits)) => found.autoneg = fixed(name, bits, Source::Powershell),
        _ => found.autoneg = Outcome::skipped("the driver's choice of speed (*SpeedDuplex) is none that weaklink knows"),
    }
    let mut supported: Vec<BitRate> = set.choices.iter().filter_map(|choice| code(choice)).map(BitRate).collect();
    supported.sort_unstable();
    supported.dedup();
    if supported.is_empty() {
        found.modes =
            Outcome::skipped("the card's driver lists no speed to choose (*SpeedDuplex), so what the card can do is not told");
        return;
    }
    let names = supported.iter().map(ToString::to_string).collect();
    fill(&mut nic.mode_names, Some(ModeNames { supported: names, ..ModeNames::default() }), Source::Powershell);
    let advertised_bps = only.map(BitRate).into_iter().collect();
    found.modes = Outcome::Measured(LinkModes { supported_bps: supported, advertised_bps, partner_bps: Vec::new() });
}

/// The speed of a value of `*SpeedDuplex` (NDIS standardised keywords); drivers write newer speeds in Mbit/s. None for 0, which
/// negotiates, and for what is not known.
fn code(value: &str) -> Option<u64> {
    let mbit = match value.trim().parse::<u64>().ok()? {
        1 | 2 => 10,
        3 | 4 => 100,
        5 | 6 => 1_000,
        7 => 10_000,
        8 => 20_000,
        9 => 40_000,
        10 => 100_000,
        mbit @ (2_500 | 5_000 | 10_000 | 25_000 | 40_000 | 50_000 | 100_000 | 200_000 | 400_000) => mbit,
        _ => return None,
    };
    Some(mbit * 1_000_000)
}

/// What else the driver's settings tell.
fn settings(told: &Adapters, name: &str, nic: &mut Nic) {
    let value = |keyword: &str| told.property(name, keyword).map(|set| set.value.as_str());
    let pause = |on| Pause { rx: on, tx: on, ..Pause::default() };
    nic.pause = match value("FlowControl") {
        Some("0") => Outcome::Measured(Fact::new(pause(false), Source::Powershell)),
        Some("3") => Outcome::Measured(Fact::new(pause(true), Source::Powershell)),
        Some("4") => Outcome::Measured(Fact::new(Pause { autoneg: true, ..pause(true) }, Source::Powershell)),
        Some(_) => Outcome::skipped("flow control is set to one direction, and drivers differ in which value means which"),
        None => Outcome::skipped("the card's driver has no setting of flow control (*FlowControl)"),
    };
    nic.eee = match value("EEE") {
        Some("0") => Outcome::Measured(Fact::new(Eee::default(), Source::Powershell)),
        Some(_) => Outcome::skipped(
            "Energy-Efficient Ethernet is allowed by the driver's setting; whether it is in effect Windows does not tell",
        ),
        None => Outcome::skipped("the card's driver has no setting of Energy-Efficient Ethernet (*EEE)"),
    };
    let ring = |keyword: &str| Some((value(keyword)?.parse().ok()?, told.property(name, keyword)?.most.unwrap_or(0)));
    if let (Some((rx, rx_max)), Some((tx, tx_max))) = (ring("ReceiveBuffers"), ring("TransmitBuffers")) {
        nic.rings = Outcome::Measured(Fact::new(Rings { rx, rx_max, tx, tx_max }, Source::Powershell));
    }
    fill(&mut nic.rss_queues, value("NumRssQueues").and_then(|queues| queues.parse().ok()), Source::Powershell);
}

fn bus(told: &Adapters, adapter: &Adapter) -> Outcome<Bus> {
    let name = &adapter.name;
    if adapter.device.starts_with("USB\\") {
        return Outcome::Measured(Bus {
            kind: "usb".to_owned(),
            rate_bps: None,
            max_rate_bps: None,
            description: "USB, whose speed Windows does not tell".to_owned(),
            way: Vec::new(),
        });
    }
    match told.hardware.get(name) {
        Some(Hardware { now: Some(now), most, address }) => {
            let place = address.as_deref().unwrap_or("the card");
            Outcome::Measured(list::own_link(*now, *most, place, None, Source::Powershell))
        }
        Some(_) => Outcome::skipped(format!("the system tells no link of PCI Express for {name}, as of cards inside a chipset")),
        None if adapter.made_up == Some(true) => Outcome::skipped(list::no_bus(name)),
        None => Outcome::skipped(told.answers.why("hardware", "Get-NetAdapterHardwareInfo")),
    }
}

/// A team in the words of Linux' bonding for what works alike: independent of the switch it sends by load over all ports and receives
/// by one (balance-tlb), and with one port in use and the others set to stand by it is active-backup.
fn bond(told: &Adapters, team: &Team) -> Bond {
    let member = |name: &String| told.members.get(name).copied().unwrap_or_default();
    let sending = team.members.iter().filter(|name| !member(name).standby).count();
    let mode = match team.mode {
        Some(2) => "802.3ad",
        Some(0) => "balance-xor",
        Some(1) if sending == 1 && team.members.len() > 1 => "active-backup",
        Some(1) => "balance-tlb",
        _ => "",
    };
    let ports = team.members.iter().map(|name| BondPort {
        name: name.clone(),
        active: if member(name).lacp_failed { Some(false) } else { member(name).active },
        ..BondPort::default()
    });
    // The words show whose arithmetic it is: another one than the kernel's of Linux.
    let policy = team.algorithm.as_deref().and_then(|algorithm| match algorithm {
        "TransportPorts" => Some("layer3+4 (TransportPorts)".to_owned()),
        "Dynamic" => Some("layer3+4, moved by load (Dynamic)".to_owned()),
        "IPAddresses" => Some("IP addresses (IPAddresses)".to_owned()),
        "MacAddresses" => Some("MAC addresses (MacAddresses)".to_owned()),
        "HyperVPort" => Some("ports of virtual machines (HyperVPort)".to_owned()),
        _ => None,
    });
    Bond {
        mode: mode.to_owned(),
        hash_policy: policy.filter(|_| mode != "active-backup"),
        ports: ports.collect(),
        ..Bond::default()
    }
}
