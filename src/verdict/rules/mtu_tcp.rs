//! What TCP makes of the size: segments that somebody makes smaller, and what large packets gain.

use super::super::ideal::Ip;
use super::super::seen::Seen;
use super::list::{Explains, Hit, Rule, RuleDoc};
use crate::model::finding::Where;
use crate::model::mtu::{JumboGain, SegmentCost, tcp_headers};
use crate::model::{Direction, Role};
use crate::units::Mtu;

const CLAMPED: &str = "network.mss-clamped";
const GAIN: &str = "network.jumbo-gain";

/// IP and TCP headers without options, in bytes.
pub(in super::super) const fn headers(ip: Ip) -> u32 {
    tcp_headers(matches!(ip, Ip::V6))
}

pub(super) const RULES: &[Rule] = &[
    Rule {
        doc: RuleDoc {
            code: CLAMPED,
            title: "Somebody on the way makes TCP's segments smaller",
            meaning: "Information only: a router or firewall rewrites the segment size that one end asks for (MSS clamping). It is how DSL routers and VPNs keep TCP working; other protocols are not helped by it.",
            detected: "One TCP connection without any clamp of ours: an end may send less than the other end asked for and than its own path MTU allows.",
            fix: "Nothing is broken. In one subnet nothing should do that: look for a firewall, a VPN or a bridge with filters between the hosts.",
        },
        check: clamped,
    },
    Rule {
        doc: RuleDoc {
            code: GAIN,
            title: "What large packets gain here, measured",
            meaning: "Information only: the same stream with packets as large as the path carries and with common ones of 1500 bytes, one after the other.",
            detected: "The rate that arrives and the processor time of both hosts for each gigabyte.",
            fix: "Nothing is broken. If both sizes give the same, jumbo frames are not worth the care that they need.",
        },
        check: gained,
    },
];

/// A direction in which somebody on the way makes segments smaller.
struct Clamp {
    asked: u32,
    granted: u32,
    limit: u32,
    packet: Mtu,
}

fn clamp(seen: &Seen<'_>, way: Direction) -> Option<Clamp> {
    let handshake = seen.doc.measurements.mtu.measured()?.handshake.measured().filter(|_| !seen.local())?;
    let (own, peer) = (handshake.of(way.sender()).measured()?, handshake.of(way.receiver()).measured()?);
    // Without the end's own limit a small segment may be its own choice.
    let limit = own.pmtu.or(seen.end(way.sender()).mtu)?.0.saturating_sub(headers(seen.ip));
    let (asked, granted) = (peer.advertised_mss_bytes, own.granted_mss_bytes());
    let packet = Mtu(granted.saturating_add(headers(seen.ip)));
    (granted > 0 && granted < asked.min(limit)).then_some(Clamp { asked, granted, limit, packet })
}

/// The packets that TCP is held to, where somebody clamps its segments: each direction with its size.
pub(in super::super) fn clamps(seen: &Seen<'_>) -> Vec<(Direction, Mtu)> {
    Direction::BOTH.into_iter().filter_map(|way| clamp(seen, way).map(|clamp| (way, clamp.packet))).collect()
}

fn clamped(seen: &Seen<'_>) -> Vec<Hit> {
    let hit = |way: Direction| {
        clamp(seen, way).map(|Clamp { asked, granted, limit, packet }| {
            let kind = super::mtu_advice::known_reason(packet).map(|kind| format!(" {packet} is the size of {kind}.")).unwrap_or_default();
            Hit::new(CLAMPED, Where::Path, Explains::Info)
                .towards(way)
                .shows(format!(
                    "The {} asked for segments of {} bytes, and the {} may send {granted} only, though its own path allows {limit}: packets of {packet}.{kind}",
                    way.receiver().title(),
                    asked,
                    way.sender().title()
                ))
                .advise("Nothing needs to be done for TCP. Within one subnet look for a firewall or VPN between the hosts.")
        })
    };
    Direction::BOTH.into_iter().filter_map(hit).collect()
}

fn gained(seen: &Seen<'_>) -> Vec<Hit> {
    let gains = seen.doc.measurements.mtu.measured().and_then(|mtu| mtu.gain.measured());
    let Some(gains) = gains.filter(|_| !seen.local()) else { return Vec::new() };
    let large = || gains.iter().filter(|gain| gain.large.packet > gain.common.packet);
    let told: Vec<String> = large().filter_map(gain).collect();
    if told.is_empty() {
        return Vec::new();
    }
    let mut hit = Hit::new(GAIN, Where::Path, Explains::Info);
    // The first screen has room for one line: it holds both directions.
    let short = |gain: &JumboGain| Some(format!("{} {}", gain.direction.arrow(), change(gain)?));
    let all: Vec<String> = large().filter_map(short).collect();
    hit.evidence.push(format!("Large packets: {}.", all.join(", ")));
    hit.evidence.extend(told);
    vec![hit]
}

/// What the large packets change, in words; none where nothing arrived with common ones.
fn change(gain: &JumboGain) -> Option<String> {
    let times = gain.large.goodput_bps.as_f64() / gain.common.goodput_bps.as_f64();
    Some(match (times - 1.0) * 100.0 {
        _ if gain.common.goodput_bps.0 == 0 => return None,
        more if more.abs() < 0.5 => "the same".to_owned(),
        // Beyond twice nobody reads per cents.
        more if more >= 100.0 => format!("{times:.1} times the rate"),
        more if more > 0.0 => format!("{more:.1} % more"),
        less => format!("{:.1} % less", -less),
    })
}

fn gain(gain: &JumboGain) -> Option<String> {
    let (large, common) = (&gain.large, &gain.common);
    let change = change(gain)?;
    let cpu = |role: Role, of: fn(&SegmentCost) -> Option<f64>| {
        let (large, common) = (of(large)?, of(common)?);
        Some(format!(" The {} used {large:.2} core seconds for a gigabyte instead of {common:.2}.", role.title()))
    };
    let sender = cpu(gain.direction.sender(), |cost| cost.sender_cpu_s_per_gb).unwrap_or_default();
    let receiver = cpu(gain.direction.receiver(), |cost| cost.receiver_cpu_s_per_gb).unwrap_or_default();
    Some(format!(
        "{}: {} with packets of {}, {} with {}: {change}.{sender}{receiver}",
        gain.direction.arrow(),
        large.goodput_bps.bytes(),
        large.packet,
        common.goodput_bps.bytes(),
        common.packet
    ))
}

/// The ends whose disk gives less than the network does with packets of 1500 bytes.
pub(super) fn slower_disk(seen: &Seen<'_>, network: f64) -> Option<String> {
    let rates = [Role::Nas, Role::Pc].into_iter().flat_map(|role| {
        [(true, "writes"), (false, "reads")].map(|(write, word)| {
            let rate = seen.transfer(role, write).map(|transfer| transfer.sustained_bytes_per_s.bits());
            rate.map(|rate| (rate, format!("the {}'s disk {word} {}", role.title(), rate.bytes())))
        })
    });
    let slowest = rates.flatten().min_by_key(|(rate, _)| *rate)?;
    (slowest.0.0 > 0 && slowest.0.as_f64() < 0.9 * network).then_some(slowest.1)
}
