//! What the hash takes beside the connection: MAC addresses, the VLAN, the kernel's release.

use std::net::IpAddr;

use crate::link::facts::LinkRow;
use crate::link::route;
use crate::link::tree::{Tree, is_interface_name};
use crate::model::link::{HostLink, Interface, InterfaceKind as Kind};
use crate::model::outcome::Outcome;

/// What the frames of this end's way carry, whatever the connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Headers {
    /// The MAC address of the interface that the route names.
    pub source_mac: Outcome<[u8; 6]>,
    /// The MAC address of the peer, or of the gateway before it, from the kernel's table of neighbours.
    pub next_hop_mac: Outcome<[u8; 6]>,
    /// The VLAN of the interface on the aggregation; none where frames leave without a tag.
    pub vlan: Outcome<Option<u16>>,
    /// Why a tag stands within the frame, where one does: then no policy sees more than the MAC addresses.
    pub tag_within: Option<String>,
    /// The text of `/proc/sys/kernel/osrelease`.
    pub release: Outcome<String>,
}

/// Gathers the headers of a link; the running kernel is asked only where the tree is the system's own. It takes some
/// milliseconds and blocks. The next hop is known only once something was sent to it.
pub fn headers(link: &HostLink, tree: &Tree) -> Headers {
    let rows = if tree.is_live() { route::rows() } else { Vec::new() };
    let top = link.top().map_or("", |top| top.name.as_str());
    let row = rows.iter().find(|row| row.name == top);
    let tree = &tree.seen_from(row);
    let above: &[Interface] =
        link.stack.iter().position(|it| it.bond.is_some()).and_then(|at| link.stack.get(..at)).unwrap_or_default();
    Headers {
        source_mac: own_mac(top, row, tree),
        next_hop_mac: next_hop(link, row, tree),
        vlan: vlan(above, &rows, tree),
        tag_within: tag_within(link, above),
        release: match tree.read("/proc/sys/kernel/osrelease") {
            Ok(release) if !release.is_empty() => Outcome::Measured(release),
            _ => Outcome::skipped("/proc/sys/kernel/osrelease cannot be read, so the kernel's hash is not known"),
        },
    }
}

fn own_mac(name: &str, row: Option<&LinkRow>, tree: &Tree) -> Outcome<[u8; 6]> {
    let listed = row.and_then(|row| <[u8; 6]>::try_from(row.mac.as_slice()).ok());
    let read = || {
        if !is_interface_name(name) {
            return None;
        }
        parse_mac(&tree.read(&format!("/sys/class/net/{name}/address")).ok()?)
    };
    listed.or_else(read).map_or_else(
        || Outcome::skipped(format!("no source tells the MAC address of {name}: neither netlink nor /sys/class/net")),
        Outcome::Measured,
    )
}

fn next_hop(link: &HostLink, row: Option<&LinkRow>, tree: &Tree) -> Outcome<[u8; 6]> {
    let hop = match &link.gateway {
        Outcome::Measured(gateway) => gateway.unwrap_or(link.peer),
        Outcome::Skipped(why) | Outcome::Failed(why) => return Outcome::Skipped(why.clone()),
    };
    let name = link.top().map_or("", |top| top.name.as_str());
    mac_of(hop, name, row, tree).map_or_else(
        || {
            Outcome::skipped(format!(
                "the kernel's table of neighbours has no MAC address of {hop}; after a packet to it, it has"
            ))
        },
        Outcome::Measured,
    )
}

/// The MAC address of the neighbour `hop` at the interface `name`, as the kernel knows it after a packet to it.
pub(in crate::link) fn mac_of(hop: IpAddr, name: &str, row: Option<&LinkRow>, tree: &Tree) -> Option<[u8; 6]> {
    let asked = row.filter(|_| tree.is_live()).and_then(|row| ask_kernel(hop, row.index));
    asked.or_else(|| arp_entry(&tree.read("/proc/net/arp").ok()?, hop, name))
}

/// The neighbour's MAC address by route netlink.
#[cfg(target_os = "linux")]
fn ask_kernel(hop: IpAddr, index: u32) -> Option<[u8; 6]> {
    use crate::link::rtnl;
    let messages = crate::sys::net::rtnetlink(&rtnl::neighbours_request(hop)).ok()?;
    let mut rows = messages.iter().filter_map(|message| rtnl::decode_neighbour(message));
    rows.find(|row| row.index == index && row.address == hop).map(|row| row.mac)
}

/// There is no netlink here.
#[cfg(not(target_os = "linux"))]
const fn ask_kernel(_hop: IpAddr, _index: u32) -> Option<[u8; 6]> {
    None
}

/// The MAC address of `hop` at `interface` in the text of `/proc/net/arp`, which knows IPv4 alone.
pub(super) fn arp_entry(text: &str, hop: IpAddr, interface: &str) -> Option<[u8; 6]> {
    /// `ATF_COM` of linux/if_arp.h: the entry is complete.
    const COMPLETE: u32 = 2;
    text.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [address, _kind, flags, mac, _mask, device] = fields.as_slice() else { return None };
        let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16).ok()?;
        let fits = address.parse::<IpAddr>().ok()? == hop && *device == interface && flags & COMPLETE != 0;
        if fits { parse_mac(mac) } else { None }
    })
}

/// Six bytes in hexadecimal with colons.
pub(super) fn parse_mac(text: &str) -> Option<[u8; 6]> {
    let mut mac = [0; 6];
    let mut parts = text.trim().split(':');
    for byte in &mut mac {
        let part = parts.next().filter(|part| part.len() == 2)?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(mac)
}

/// The VLAN of the lowest interface above the aggregation that is one.
fn vlan(above: &[Interface], rows: &[LinkRow], tree: &Tree) -> Outcome<Option<u16>> {
    if let Some(bridge) = above.iter().find(|it| it.kind == Kind::Bridge) {
        let name = &bridge.name;
        return Outcome::skipped(format!(
            "the bridge {name} may tag the frames that it hands to the aggregation, and does not say so"
        ));
    }
    let Some(lowest) = above.iter().rev().find(|it| it.kind == Kind::Vlan) else { return Outcome::Measured(None) };
    let listed = rows.iter().find(|row| row.name == lowest.name).and_then(|row| row.vlan);
    let read = || {
        let text = tree.read(&format!("/proc/net/vlan/{}", lowest.name)).ok().filter(|_| is_interface_name(&lowest.name))?;
        text.split("VID:").nth(1)?.split_whitespace().next()?.parse().ok()
    };
    listed.or_else(read).map_or_else(
        || Outcome::skipped(format!("no source tells the number of the VLAN {}", lowest.name)),
        |id| Outcome::Measured(Some(id)),
    )
}

fn tag_within(link: &HostLink, above: &[Interface]) -> Option<String> {
    let vlans = above.iter().filter(|it| it.kind == Kind::Vlan).count();
    let bonded = link.stack.get(above.len())?;
    let inserts = bonded.offloads.measured().and_then(|features| features.get("tx-vlan-hw-insert"));
    if vlans > 1 {
        Some("a VLAN stands on a VLAN, so the inner tag hides the IP header from the hash".to_owned())
    } else if vlans == 1 && inserts == Some(&false) {
        Some(format!("{} has tx-vlan-offload off, so the VLAN's tag hides the IP header from the hash", bonded.name))
    } else {
        None
    }
}
