//! What to set where, so that all of a path has one size of packets.

use super::super::seen::Seen;
use crate::model::Role;
use crate::model::link::{Interface, InterfaceKind};
use crate::units::Mtu;

/// A frame's bytes around its packet: header 14, check sum 4.
pub(super) const FRAME: u32 = 18;
/// The bytes of a VLAN tag (802.1Q).
pub(super) const TAG: u32 = 4;

/// Which kind of link has exactly this MTU.
///
/// Each is the MTU below it less its headers: PPPoE 8 (RFC 2516); IP in IP 20, IPv6 in IPv4 20; GRE 24; `WireGuard` 60
/// over IPv4 and 80 over IPv6 (its default allows for both); VXLAN 50 over IPv4 and 70 over IPv6 (RFC 7348); the least of
/// IPv6 is RFC 8200's.
pub(in super::super) const fn known_reason(mtu: Mtu) -> Option<&'static str> {
    Some(match mtu.0 {
        1492 => "PPPoE, as DSL lines have",
        1480 => "a tunnel with IPv4 around it (IP in IP, 6in4)",
        1476 => "a GRE tunnel",
        1462 | 1458 => "a GRE tunnel that carries Ethernet frames",
        1450 => "VXLAN, or another tunnel of about 50 bytes of headers",
        1440 => "WireGuard over IPv4",
        1430 => "VXLAN over IPv6",
        1432 => "WireGuard over IPv4 on a PPPoE line",
        1420 => "WireGuard with its default",
        1412 => "WireGuard on a PPPoE line",
        1400 => "a VPN (IPsec and others choose 1400)",
        1280 => "the least that IPv6 allows, as some VPNs choose",
        1500 => "Ethernet without jumbo frames",
        8950 => "VXLAN on jumbo frames",
        8920 => "WireGuard on jumbo frames",
        _ => return None,
    })
}

/// An interface's name where it may stand in a command: foreign names could be anything.
pub(super) fn plain(name: &str) -> Option<&str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let good = !name.is_empty() && name.len() <= 15 && name.chars().all(fits) && !name.starts_with('-');
    good.then_some(name)
}

/// What a layer is, for people.
pub(super) const fn layer(kind: InterfaceKind) -> &'static str {
    match kind {
        InterfaceKind::Bond | InterfaceKind::Team => "the bond",
        InterfaceKind::Bridge => "the bridge",
        InterfaceKind::Vlan => "the VLAN interface",
        InterfaceKind::Macvlan => "the macvlan interface",
        InterfaceKind::Tunnel => "the tunnel",
        InterfaceKind::Veth => "the virtual port",
        InterfaceKind::Wifi => "the Wi-Fi interface",
        InterfaceKind::Physical | InterfaceKind::VirtualMachine => "the port",
        InterfaceKind::Loopback | InterfaceKind::Unknown => "the interface",
    }
}

/// The operating system of one end, as Rust names it: `linux`, `windows`, `macos`, `freebsd`; empty where it is not known.
pub(super) fn os<'a>(seen: &Seen<'a>, role: Role) -> &'a str {
    seen.doc.hosts.of(role).measured().map(|host| host.os.as_str()).unwrap_or_default()
}

/// How one end's interface gets this MTU: a command where the system has one, and the place in settings else.
pub(super) fn set(seen: &Seen<'_>, role: Role, interface: Option<&Interface>, mtu: Mtu) -> String {
    let os = os(seen, role);
    let name = interface.and_then(|interface| plain(&interface.name));
    let end = role.title();
    match (os, name) {
        ("linux", Some(name)) => format!("at the {end} `ip link set dev {name} mtu {mtu}`"),
        ("windows", _) => {
            let packet = match mtu.0 {
                ..=1500 => "Disabled".to_owned(),
                mtu => format!("{} bytes", mtu.saturating_add(14)),
            };
            format!(
                "at the {end} in the network adapter's properties, Advanced, “Jumbo Packet”: {packet} (MTU {mtu}; `netsh interface ipv4 show subinterfaces` shows it)"
            )
        }
        ("macos", _) => format!("at the {end} in System Settings, Network, Details, Hardware: MTU {mtu}"),
        (_, name) => {
            let name = name.map(|name| format!(" {name}")).unwrap_or_default();
            let place = if role == Role::Nas { " (mostly a web page: network, interfaces, MTU or jumbo frames)" } else { "" };
            format!("at the {end} MTU {mtu} in the settings of its network interface{name}{place}")
        }
    }
}

/// The sizes to choose from: what all can have, and what the ends want.
pub(super) struct Sizes {
    pub(super) small: Mtu,
    pub(super) large: Mtu,
    /// What is known of the NAS's interface where its own word is missing.
    pub(super) nas: Option<Mtu>,
}

impl Sizes {
    /// `passes` is the least that passes anywhere, `wanted` what both ends should be able to use.
    pub(super) fn new(passes: Mtu, wanted: Mtu) -> Self {
        Self { small: if passes >= Mtu::ETHERNET { Mtu::ETHERNET } else { passes }, large: wanted, nas: None }
    }
}

/// What lies between the hosts, as far as it may be to blame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Between {
    /// Routers and switches.
    Routers,
    /// Switches, or what adds headers.
    Subnet,
    /// Nothing: the ends' own settings differ.
    Ends,
    /// Nothing: a host's layer is to blame, and what mends it was told.
    Told,
}

impl Between {
    pub(super) const fn new(routed: bool) -> Self {
        if routed { Self::Routers } else { Self::Subnet }
    }
}

/// Both ways to make a path consistent: every host small, or everything large; the likelier one first.
pub(super) fn both_ways(seen: &Seen<'_>, sizes: &Sizes, between: Between) -> Vec<String> {
    let mtu = |role: Role| seen.end(role).mtu.or(sizes.nas.filter(|_| role == Role::Nas));
    let top = |role: Role| seen.end(role).link.and_then(|link| link.stack.first());
    let above = |role: &Role| mtu(*role).is_none_or(|mtu| mtu > sizes.small);
    let ends = [Role::Pc, Role::Nas];
    let back: Vec<String> = ends.into_iter().filter(above).map(|role| set(seen, role, top(role), sizes.small)).collect();
    let raise = if between == Between::Told { Vec::new() } else { raised(seen, sizes, between) };
    let mut ways: Vec<(Mtu, String)> = Vec::new();
    ways.extend((!back.is_empty()).then(|| (sizes.small, back.join("; "))));
    ways.extend((!raise.is_empty()).then(|| (sizes.large, raise.join("; "))));
    // Where both ends are large in one subnet, what lies between is the culprit; and an end below Ethernet's size is the odd one.
    let ready = ends.into_iter().all(|role| mtu(role).is_some_and(|mtu| mtu >= sizes.large));
    let odd = between == Between::Ends && sizes.small < Mtu::ETHERNET;
    if odd || (between == Between::Subnet && ready && sizes.large > Mtu::ETHERNET) {
        ways.reverse();
    }
    let alone = ways.len() < 2;
    let word = |at: usize| match at {
        0 if between == Between::Told => "Or",
        0 if alone => "Make it",
        0 => "Either",
        _ => "Or",
    };
    ways.iter().enumerate().map(|(at, (size, how))| format!("{} all {size}: {how}.", word(at))).collect()
}

/// What must be done so that all carries the large size.
fn raised(seen: &Seen<'_>, sizes: &Sizes, between: Between) -> Vec<String> {
    let mut raise: Vec<String> = Vec::new();
    if sizes.large > Mtu::ETHERNET {
        let what = if between == Between::Routers { "every router and switch port" } else { "every switch port" };
        let frame = sizes.large.0.saturating_add(FRAME);
        raise.push(format!(
            "at {what} between the hosts, in its settings, a largest frame of {frame} bytes or more ({} with a VLAN tag)",
            frame.saturating_add(TAG)
        ));
    } else if between == Between::Routers {
        raise.push(format!("at every router between the hosts an MTU of {}", sizes.large));
    } else if sizes.small < sizes.large && between == Between::Subnet {
        raise.push("find what adds headers between the hosts (a tunnel, an overlay network, VLAN tags on a switch without room for them) and give its link that much more".to_owned());
    }
    for role in [Role::Pc, Role::Nas] {
        let stack = seen.end(role).link.map(|link| link.stack.as_slice()).unwrap_or_default();
        // From the port upwards: a layer cannot have more than what lies below it.
        let low = stack.iter().rev().filter(|layer| layer.mtu.measured().is_some_and(|fact| fact.value < sizes.large));
        raise.extend(low.map(|layer| set(seen, role, Some(layer), sizes.large)));
        if seen.end(role).mtu.is_none() {
            raise.push(match sizes.nas.filter(|_| role == Role::Nas) {
                Some(_) => set(seen, role, None, sizes.large),
                None => format!("at the {} too, which could not be seen from here", role.title()),
            });
        }
    }
    raise
}

/// What commands among the advice need, said once behind them.
pub(super) fn lasting(advice: &mut Vec<String>) {
    if advice.iter().any(|text| text.contains("`ip link set")) {
        advice.push(
            "`ip link set` needs root and holds until the next start only: to keep it, set the same MTU in the host's network settings (at a NAS mostly on its web page)."
                .to_owned(),
        );
    }
}

/// What TCP of an end does when its large packets vanish; what was seen to go on does not hang.
pub(super) fn probing(seen: &Seen<'_>, role: Role, goes_on: bool) -> Option<String> {
    let end = role.title();
    let setting = seen.doc.hosts.of(role).measured()?.tcp.measured()?.mtu_probing?;
    Some(match setting {
        0 if goes_on => return None,
        0 => format!("The {end}'s TCP does not try smaller packets by itself (tcp_mtu_probing 0): its transfers hang."),
        1 => format!(
            "The {end}'s TCP tries smaller packets after some timeouts (tcp_mtu_probing 1): its transfers recover, but slowly."
        ),
        _ => format!("The {end}'s TCP always searches the size by itself (tcp_mtu_probing {setting}): its transfers go on."),
    })
}
