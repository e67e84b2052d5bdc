//! Route netlink: the two requests, and the pure decoders of what comes back.
//!
//! Each attribute is decoded by itself and one that is unknown or malformed is left out, so that a
//! newer or older kernel costs one fact and not the interface.

use std::net::IpAddr;

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkBuffer, NetlinkMessage, NlaBuffer, NlasIterator, ParseableParametrized,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    BondAdInfo, BondMode, BondPortState, ChurnState, InfoBond, InfoBondPort, InfoData, InfoPortData, InfoVlan, LinkAttribute,
    LinkFlags, LinkHeader, LinkInfo, LinkMessage, MiiStatus, Stats64,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourHeader, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteLwEnCapType, RouteMessage, RouteType, RouteVia,
};

use super::facts::{BondRow, LinkRow, NeighbourRow, PortRow, Route};
use crate::model::link::BondSettings;

/// `struct ifinfomsg`.
const LINK_HEADER: usize = 16;
/// `struct rtmsg`.
const ROUTE_HEADER: usize = 12;
/// `struct ndmsg`.
const NEIGHBOUR_HEADER: usize = 12;

fn serialise(message: RouteNetlinkMessage, flags: u16) -> Vec<u8> {
    let mut packet = NetlinkMessage::from(message);
    packet.header.flags = NLM_F_REQUEST | flags;
    packet.header.sequence_number = 1;
    packet.finalize();
    let mut bytes = vec![0; packet.buffer_len()];
    packet.serialize(&mut bytes);
    bytes
}

/// The request for all interfaces.
pub(super) fn links_request() -> Vec<u8> {
    serialise(RouteNetlinkMessage::GetLink(LinkMessage::default()), NLM_F_DUMP)
}

/// The request for the route to `peer`, from `source` where policy routing may depend on it, and of TCP where rules may name
/// the protocol (kernels from 4.20 take that).
pub(super) fn route_request(peer: IpAddr, source: Option<IpAddr>, tcp: bool) -> Vec<u8> {
    let mut message = RouteMessage::default();
    let bits = if peer.is_ipv4() { 32 } else { 128 };
    message.header.address_family =
        if peer.is_ipv4() { netlink_packet_route::AddressFamily::Inet } else { netlink_packet_route::AddressFamily::Inet6 };
    message.header.destination_prefix_length = bits;
    message.attributes.push(RouteAttribute::Destination(RouteAddress::from(peer)));
    if let Some(source) = source {
        message.header.source_prefix_length = bits;
        message.attributes.push(RouteAttribute::Source(RouteAddress::from(source)));
    }
    if tcp {
        message.attributes.push(RouteAttribute::IpProto(6));
    }
    serialise(RouteNetlinkMessage::GetRoute(message), 0)
}

/// The request for all neighbours of one kind of address.
pub(super) fn neighbours_request(of: IpAddr) -> Vec<u8> {
    let mut message = NeighbourMessage::default();
    message.header.family =
        if of.is_ipv4() { netlink_packet_route::AddressFamily::Inet } else { netlink_packet_route::AddressFamily::Inet6 };
    serialise(RouteNetlinkMessage::GetNeighbour(message), NLM_F_DUMP)
}

/// Decodes one `RTM_NEWNEIGH`; none when it is none, or has no hardware address of Ethernet that is known now.
pub(super) fn decode_neighbour(message: &[u8]) -> Option<NeighbourRow> {
    let body = payload(message)?;
    let header = NeighbourHeader::parse(body.get(..NEIGHBOUR_HEADER)?).ok()?;
    if matches!(header.state, NeighbourState::Incomplete | NeighbourState::Failed) {
        return None;
    }
    let (mut address, mut mac) = (None, None);
    for nla in NlasIterator::new(body.get(NEIGHBOUR_HEADER..)?).map_while(Result::ok) {
        match NeighbourAttribute::parse_with_param(&nla, header.family) {
            Ok(NeighbourAttribute::Destination(NeighbourAddress::Inet(v4))) => address = Some(IpAddr::V4(v4)),
            Ok(NeighbourAttribute::Destination(NeighbourAddress::Inet6(v6))) => address = Some(IpAddr::V6(v6)),
            Ok(NeighbourAttribute::LinkLayerAddress(bytes)) => {
                mac = <[u8; 6]>::try_from(bytes).ok();
            }
            _ => {}
        }
    }
    Some(NeighbourRow { index: header.ifindex, address: address?, mac: mac? })
}

/// The request for what all bridges have learnt: which hardware address is behind which of their ports.
pub(super) fn bridges_request() -> Vec<u8> {
    let mut message = NeighbourMessage::default();
    message.header.family = netlink_packet_route::AddressFamily::Bridge;
    serialise(RouteNetlinkMessage::GetNeighbour(message), NLM_F_DUMP)
}

/// Decodes one entry of a bridge's table: the port's index and the address behind it. None when it is none, when the address is the
/// host's own (`NUD_PERMANENT`), or when it is the filter of a card or a tunnel and no bridge's (`NTF_SELF`).
pub(super) fn decode_bridged(message: &[u8]) -> Option<(u32, [u8; 6])> {
    let body = payload(message)?;
    let header = NeighbourHeader::parse(body.get(..NEIGHBOUR_HEADER)?).ok()?;
    let own = header.state == NeighbourState::Permanent || header.flags.contains(NeighbourFlags::Own);
    if header.family != netlink_packet_route::AddressFamily::Bridge || own {
        return None;
    }
    let facts = NlasIterator::new(body.get(NEIGHBOUR_HEADER..)?).map_while(Result::ok);
    facts.into_iter().find_map(|nla| match NeighbourAttribute::parse_with_param(&nla, header.family) {
        Ok(NeighbourAttribute::LinkLayerAddress(bytes)) => Some((header.ifindex, <[u8; 6]>::try_from(bytes).ok()?)),
        _ => None,
    })
}

/// The part behind the netlink header.
fn payload(message: &[u8]) -> Option<&[u8]> {
    Some(NetlinkBuffer::new_checked(message).ok()?.payload())
}

/// Decodes one `RTM_NEWROUTE`; none when it names no interface.
pub(super) fn decode_route(message: &[u8]) -> Option<Route> {
    let body = payload(message)?;
    let header = RouteHeader::parse(body.get(..ROUTE_HEADER)?).ok()?;
    let mut route = Route { own: header.kind == RouteType::Local, ..Route::default() };
    let parameters = (header.address_family, header.kind, RouteLwEnCapType::None);
    for nla in NlasIterator::new(body.get(ROUTE_HEADER..)?).map_while(Result::ok) {
        match RouteAttribute::parse_with_param(&nla, parameters) {
            Ok(RouteAttribute::Oif(index)) => route.index = Some(index),
            Ok(RouteAttribute::PrefSource(address)) => route.source = ip(&address),
            Ok(RouteAttribute::Gateway(address)) => route.gateway = ip(&address),
            Ok(RouteAttribute::Via(RouteVia::Inet(address))) => route.gateway = Some(address.into()),
            Ok(RouteAttribute::Via(RouteVia::Inet6(address))) => route.gateway = Some(address.into()),
            _ => {}
        }
    }
    route.index.is_some().then_some(route)
}

const fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(v4) => Some(IpAddr::V4(*v4)),
        RouteAddress::Inet6(v6) => Some(IpAddr::V6(*v6)),
        _ => None,
    }
}

/// Decodes one `RTM_NEWLINK`; none when it is none, or has no name.
pub(super) fn decode_link(message: &[u8]) -> Option<LinkRow> {
    let body = payload(message)?;
    let header = LinkHeader::parse(body.get(..LINK_HEADER)?).ok()?;
    let mut row = LinkRow {
        index: header.index,
        loopback: header.flags.contains(LinkFlags::Loopback),
        up: header.flags.contains(LinkFlags::Up),
        ..LinkRow::default()
    };
    let mut elsewhere = false;
    for nla in NlasIterator::new(body.get(LINK_HEADER..)?).map_while(Result::ok) {
        let Ok(attribute) = parse_link_attribute(&nla, &header) else { continue };
        match attribute {
            LinkAttribute::IfName(name) => row.name = name,
            LinkAttribute::Controller(index) => row.master = Some(index),
            LinkAttribute::Link(index) => row.lower = (index != 0 && index != header.index).then_some(index),
            LinkAttribute::LinkNetNsId(_) => elsewhere = true,
            LinkAttribute::Address(mac) => row.mac = mac,
            LinkAttribute::Mtu(mtu) => row.mtu = Some(mtu),
            LinkAttribute::Carrier(carrier) => row.carrier = Some(carrier != 0),
            LinkAttribute::CarrierChanges(changes) => row.carrier_changes = Some(changes),
            LinkAttribute::Stats64(stats) => row.counters = counters(&stats),
            LinkAttribute::LinkInfo(infos) => take_infos(&mut row, infos),
            _ => {}
        }
    }
    if elsewhere {
        row.lower = None;
    }
    (!row.name.is_empty()).then_some(row)
}

fn parse_link_attribute(nla: &NlaBuffer<&[u8]>, header: &LinkHeader) -> Result<LinkAttribute, netlink_packet_core::DecodeError> {
    LinkAttribute::parse_with_param(nla, header.interface_family)
}

/// `struct rtnl_link_stats64`, as far as it has meanings for an Ethernet port.
fn counters(stats: &Stats64) -> Vec<(&'static str, u64)> {
    vec![
        ("rx_packets", stats.rx_packets),
        ("tx_packets", stats.tx_packets),
        ("rx_bytes", stats.rx_bytes),
        ("tx_bytes", stats.tx_bytes),
        ("rx_errors", stats.rx_errors),
        ("tx_errors", stats.tx_errors),
        ("rx_dropped", stats.rx_dropped),
        ("tx_dropped", stats.tx_dropped),
        ("multicast", stats.multicast),
        ("collisions", stats.collisions),
        ("rx_length_errors", stats.rx_length_errors),
        ("rx_over_errors", stats.rx_over_errors),
        ("rx_crc_errors", stats.rx_crc_errors),
        ("rx_frame_errors", stats.rx_frame_errors),
        ("rx_fifo_errors", stats.rx_fifo_errors),
        ("rx_missed_errors", stats.rx_missed_errors),
        ("tx_aborted_errors", stats.tx_aborted_errors),
        ("tx_carrier_errors", stats.tx_carrier_errors),
        ("tx_fifo_errors", stats.tx_fifo_errors),
        ("tx_heartbeat_errors", stats.tx_heartbeat_errors),
        ("tx_window_errors", stats.tx_window_errors),
    ]
}

fn take_infos(row: &mut LinkRow, infos: Vec<LinkInfo>) {
    for info in infos {
        match info {
            LinkInfo::Kind(kind) => row.kind = Some(kind.to_string()),
            LinkInfo::PortKind(kind) => row.port_kind = Some(kind.to_string()),
            LinkInfo::Data(InfoData::Vlan(facts)) => {
                row.vlan = facts.iter().find_map(|fact| if let InfoVlan::Id(id) = fact { Some(*id) } else { None });
            }
            LinkInfo::Data(InfoData::Bond(facts)) => {
                for fact in facts {
                    take_bond(&mut row.bond, fact);
                }
            }
            LinkInfo::PortData(InfoPortData::BondPort(facts)) => {
                for fact in &facts {
                    take_port(&mut row.port, fact);
                }
            }
            _ => {}
        }
    }
}

fn take_bond(bond: &mut BondRow, fact: InfoBond) {
    match fact {
        InfoBond::Mode(BondMode::Other(_)) => {}
        InfoBond::Mode(mode) => bond.mode = Some(mode.to_string()),
        InfoBond::XmitHashPolicy(policy) => bond.hash_policy = hash_policy(policy.into()),
        InfoBond::ActivePort(index) => bond.active_port = Some(index),
        InfoBond::Primary(index) => bond.primary = Some(index),
        InfoBond::AdInfo(infos) => {
            for info in infos {
                match info {
                    BondAdInfo::Aggregator(id) => bond.aggregator = Some(id.into()),
                    BondAdInfo::NumPorts(ports) => bond.aggregator_ports = Some(ports.into()),
                    BondAdInfo::PartnerMac(mac) => bond.partner_mac = Some(mac),
                    BondAdInfo::ActorKey(key) => bond.actor_key = Some(key),
                    BondAdInfo::PartnerKey(key) => bond.partner_key = Some(key),
                    _ => {}
                }
            }
        }
        other => take_setting(&mut bond.settings, &other),
    }
}

/// How the bond is set up. The kernel tells every mode's settings whatever the mode; `bond` keeps what the mode has.
fn take_setting(settings: &mut BondSettings, fact: &InfoBond) {
    match fact {
        InfoBond::MiiMon(ms) => settings.miimon_ms = Some(*ms),
        InfoBond::UpDelay(ms) => settings.up_delay_ms = Some(*ms),
        InfoBond::DownDelay(ms) => settings.down_delay_ms = Some(*ms),
        InfoBond::ArpInterval(ms) => settings.arp_interval_ms = Some(*ms),
        InfoBond::ArpIpTarget(targets) => settings.arp_targets.extend(targets.iter().map(ToString::to_string)),
        InfoBond::NsIp6Target(targets) => settings.arp_targets.extend(targets.iter().map(ToString::to_string)),
        InfoBond::FailOverMac(how) => settings.fail_over_mac = word(&["none", "active", "follow"], (*how).into()),
        InfoBond::AdLacpRate(rate) => settings.lacp_rate = word(&["slow", "fast"], (*rate).into()),
        InfoBond::AdLacpActive(active) => settings.lacp_active = Some(*active),
        InfoBond::AdSelect(by) => settings.ad_select = word(&["stable", "bandwidth", "count"], (*by).into()),
        InfoBond::MinLinks(links) => settings.min_links = Some(*links),
        InfoBond::LpInterval(seconds) => settings.lp_interval_s = Some(*seconds),
        InfoBond::TlbDynamicLb(on) => settings.tlb_dynamic = Some(*on),
        InfoBond::PacketsPerPort(packets) => settings.packets_per_port = Some(*packets),
        _ => {}
    }
}

/// The kernel's word for one of its numbers; none for one that is newer than this list.
fn word(words: &[&str], number: u8) -> Option<String> {
    words.get(usize::from(number)).map(|word| (*word).to_owned())
}

/// The word for a `BOND_XMIT_POLICY_*` number.
fn hash_policy(number: u8) -> Option<String> {
    const POLICIES: [&str; 6] = ["layer2", "layer3+4", "layer2+3", "encap2+3", "encap3+4", "vlan+srcmac"];
    word(&POLICIES, number)
}

fn take_port(port: &mut PortRow, fact: &InfoBondPort) {
    match fact {
        InfoBondPort::BondPortState(BondPortState::Active) => port.active = Some(true),
        InfoBondPort::BondPortState(BondPortState::Backup) => port.active = Some(false),
        // A port that is going down still carries; one that is coming back does not yet.
        InfoBondPort::MiiStatus(MiiStatus::Up | MiiStatus::GoingDown) => port.up = Some(true),
        InfoBondPort::MiiStatus(MiiStatus::Down | MiiStatus::GoingBack) => port.up = Some(false),
        InfoBondPort::LinkFailureCount(count) => port.failures = Some((*count).into()),
        InfoBondPort::AdAggregatorId(id) => port.aggregator = Some((*id).into()),
        InfoBondPort::AdActorOperPortState(state) => port.actor_state = Some(state.bits().into()),
        InfoBondPort::AdPartnerOperPortState(state) => port.partner_state = Some(state.bits().into()),
        InfoBondPort::AdChurnActorState(state) => port.actor_churn = churn(*state),
        InfoBondPort::AdChurnPartnerState(state) => port.partner_churn = churn(*state),
        InfoBondPort::PermHwaddr(mac) => port.permanent_mac = Some(mac.clone()),
        InfoBondPort::QueueId(id) => port.queue_id = Some(*id),
        _ => {}
    }
}

/// The words of `/proc/net/bonding`, so that both sources read alike.
fn churn(state: ChurnState) -> Option<String> {
    let word = match state {
        ChurnState::Monitor => "monitoring",
        ChurnState::Churn => "churned",
        ChurnState::NoChurn => "none",
        _ => return None,
    };
    Some(word.to_owned())
}
