//! The answer of a document about the path MTU alone, where no fault was found.

use super::rank::{self, Answer};
use super::rules::{Hit, Hole, MTU_CONSISTENT, MTU_UNKNOWN, clamps, headers, known_reason, lossy};
use super::seen::Seen;
use super::sentence::{plain, ruled_out};
use crate::model::finding::{Component, Confidence, Status, Verdict};
use crate::model::mtu::{EchoPath, Limiter, MtuSection, PathMtu, ServicePath};
use crate::model::outcome::Outcome;
use crate::model::{Direction, Role};
use crate::units::Mtu;

/// What decides where one end alone could not.
const WITH_AGENT: &str =
    "Run `weaklink serve` on the NAS and `weaklink mtu` with its code on the PC: both ends then count what arrives.";

/// What one end alone never tries.
const NOT_TRIED: &str = "Large TCP segments NAS → PC were not tried: that needs an agent on the NAS.";

fn healthy(sure: Confidence, mut text: String) -> Verdict {
    text.insert_str(0, "Healthy: ");
    plain(Status::Healthy, Component::None, MTU_CONSISTENT, sure, text)
}

fn unknown(text: &str) -> Verdict {
    plain(Status::Inconclusive, Component::Inconclusive, MTU_UNKNOWN, Confidence::Low, format!("Inconclusive: {text}"))
}

/// The answer where no fault was found.
pub(super) fn answer(seen: &Seen<'_>, hits: &[Hit], answers: &[Answer; 2]) -> Verdict {
    let Some(mtu) = seen.doc.measurements.mtu.measured() else {
        let why = sentence(seen.doc.measurements.mtu.why().unwrap_or("nothing was measured"));
        return unknown(&format!("the path MTU was not measured: {why} {WITH_AGENT}"));
    };
    let mut verdict = match (seen.path(Direction::Upload), seen.path(Direction::Download)) {
        (Some(up), Some(down)) => both(seen, up, down),
        (None, None) => alone(seen, mtu),
        (Some(path), None) => half(Direction::Upload, path, &mtu.download),
        (None, Some(path)) => half(Direction::Download, path, &mtu.upload),
    };
    if seen.local() && verdict.status == Status::Healthy {
        verdict.sentence.push_str(" Nothing here is evidence about a cable.");
    }
    let changed = hits.iter().any(|hit| hit.code == "network.mtu-changed");
    if changed && verdict.status == Status::Healthy {
        verdict.sentence.push_str(" But the path changed while it was probed: measure again.");
        verdict.confidence = Confidence::Low;
    }
    verdict.ruled_out = ruled_out(seen, hits, answers, "");
    verdict
}

/// A reason as a sentence.
fn sentence(reason: &str) -> String {
    format!("{}.", reason.trim().trim_end_matches('.'))
}

/// One direction gave no answer: whatever the other carries, that is no path.
fn half(way: Direction, path: &PathMtu, other: &Outcome<PathMtu>) -> Verdict {
    let failed = if way == Direction::Upload { Direction::Download } else { Direction::Upload };
    let mut verdict = unknown(&format!(
        "{} carries packets of {} bytes, but {} could not be measured: {} Run `weaklink mtu` again once that is mended.",
        way.arrow(),
        path.mtu,
        failed.arrow(),
        sentence(other.why().unwrap_or("no reason was given"))
    ));
    verdict.direction = Some(failed);
    verdict
}

/// Both directions were searched.
fn both(seen: &Seen<'_>, up: &PathMtu, down: &PathMtu) -> Verdict {
    let ends = [Role::Pc, Role::Nas].map(|role| seen.end(role).mtu);
    for (way, path) in [(Direction::Upload, up), (Direction::Download, down)] {
        let known = ends.iter().all(Option::is_some);
        if !path.is_told() && path.mtu < path.ceiling && !known {
            let mut verdict = unknown(&format!(
                "{}: packets above {} bytes vanish, though the {}'s interface lets {} out; whether the {}'s own interface is that small could not be seen. Compare the MTU of both.",
                way.arrow(),
                path.mtu,
                way.sender().title(),
                path.ceiling,
                way.receiver().title()
            ));
            verdict.direction = Some(way);
            return verdict;
        }
    }
    let clamp = clamped(seen);
    // Where somebody clamps TCP, the ends do not use what passes.
    let used = if clamp.is_empty() { ends } else { [None, None] };
    let mut said = if clause(up) == clause(down) {
        format!("{} both ways{}.", carries(up, "the path"), tail(seen, up, used))
    } else {
        let part = |way: Direction, path: &PathMtu| format!("{}{}", carries(path, way.arrow()), tail(seen, path, [None, None]));
        format!("{}; {}.", part(Direction::Upload, up), part(Direction::Download, down))
    };
    said.push_str(&clamp);
    said.push_str(&small_ends(ends));
    let loses = |way, path: &PathMtu| {
        let hole = Hole { way, path: &path.clone(), both: path.mtu };
        lossy(&hole).then(|| path.loss())
    };
    let lost = loses(Direction::Upload, up).or_else(|| loses(Direction::Download, down));
    let sure = if ends.iter().all(Option::is_some) && seen.ends.iter().all(|end| end.link.is_some()) {
        Confidence::High
    } else {
        Confidence::Medium
    };
    match lost {
        None => healthy(sure, said),
        Some((sent, lost)) => healthy(
            rank::lower(rank::lower(sure)),
            format!(
                "{said} But {lost} of {sent} probes that fit were lost: the path loses packets of every size, which is another fault (`weaklink run` looks for it)."
            ),
        ),
    }
}

/// What TCP is held to by somebody on the way.
fn clamped(seen: &Seen<'_>) -> String {
    let why = "somebody on the way makes its segments smaller (MSS clamping), which breaks nothing";
    match clamps(seen).as_slice() {
        [] => String::new(),
        [(_, up), (_, down)] if up == down => format!(" But TCP uses packets of {up} bytes only, both ways: {why}."),
        some => {
            let each: Vec<String> = some.iter().map(|(way, packet)| format!("{packet} bytes only {}", way.arrow())).collect();
            format!(" But TCP uses packets of {}: {why}.", each.join(" and "))
        }
    }
}

/// Both ends' interfaces have less than Ethernet's size: that was set, and somebody may wonder why.
fn small_ends(ends: [Option<Mtu>; 2]) -> String {
    match ends {
        [Some(pc), Some(nas)] if pc == nas && pc < Mtu::ETHERNET => {
            let kind = known_reason(pc).map(|kind| format!(", the size of {kind}")).unwrap_or_default();
            format!(
                " {pc} is less than Ethernet's {}{kind}: if no VPN, tunnel or DSL line needs it, give both ends {}.",
                Mtu::ETHERNET,
                Mtu::ETHERNET
            )
        }
        _ => String::new(),
    }
}

/// What two directions must share to be told together.
fn clause(path: &PathMtu) -> (Mtu, Mtu, bool) {
    (path.mtu, path.ceiling, matches!(path.limited_by, Limiter::Router { .. }) && path.is_told())
}

fn carries(path: &PathMtu, subject: &str) -> String {
    format!("{subject} carries packets of {} bytes", path.mtu)
}

/// Who sets the size.
fn tail(seen: &Seen<'_>, path: &PathMtu, ends: [Option<Mtu>; 2]) -> String {
    match &path.limited_by {
        Limiter::Router { address, .. } if path.mtu < path.ceiling && path.is_told() => {
            let kind = known_reason(path.mtu).map(|kind| format!(", the size of {kind}")).unwrap_or_default();
            format!(
                " of the {} that the sender could send{kind}; the router {address} says so, and TCP keeps to it",
                path.ceiling
            )
        }
        _ if seen.local() => String::new(),
        _ if ends == [Some(path.mtu); 2] => ", and both ends use them".to_owned(),
        _ if path.mtu < path.ceiling && !path.is_told() => {
            format!(", and no more of the {} that the sender could send", path.ceiling)
        }
        _ => ", all that its sender's interface lets out".to_owned(),
    }
}

/// What one end alone could see.
fn alone(seen: &Seen<'_>, mtu: &MtuSection) -> Verdict {
    let services: Vec<(String, &ServicePath)> = mtu.services.measured().into_iter().flatten().filter_map(named).collect();
    match &mtu.echo {
        Outcome::Measured(echo) => echoed(seen, echo, &services),
        silent => unanswered(&services, silent.why().unwrap_or("it was not tried"), mtu.services.why()),
    }
}

fn named(probe: &crate::model::mtu::ServiceProbe) -> Option<(String, &ServicePath)> {
    let name =
        probe.service.as_ref().map_or_else(|| format!("port {}", probe.port), |name| format!("{name} (port {})", probe.port));
    probe.result.measured().map(|path| (name, path))
}

/// The largest packet that services acknowledged, and all that did.
fn acknowledged(services: &[(String, &ServicePath)]) -> Option<(String, Mtu)> {
    let full = || services.iter().filter(|(_, path)| path.acknowledged);
    let most = full().filter_map(|(_, path)| path.packet).max()?;
    let names = full().filter(|(_, path)| path.packet == Some(most)).map(|(name, _)| name.as_str());
    Some((listed(names.collect()), most))
}

/// `a, b and c`.
fn listed(mut names: Vec<&str>) -> String {
    let last = names.pop().unwrap_or_default();
    if names.is_empty() { last.to_owned() } else { format!("{} and {last}", names.join(", ")) }
}

/// Echo was answered.
fn echoed(seen: &Seen<'_>, echo: &EchoPath, services: &[(String, &ServicePath)]) -> Verdict {
    let path = &echo.path;
    let own = seen.end(Role::Pc).mtu.unwrap_or(path.ceiling);
    let tcp = acknowledged(services);
    let seconded = tcp
        .as_ref()
        .map(|(name, packet)| format!(" {name} acknowledged a segment in a packet of {packet} bytes."))
        .unwrap_or_default();
    let pieces = echo.reply_fragment.filter(|piece| *piece < path.mtu);
    let back = pieces.map_or_else(String::new, |piece| {
        format!(
            " The answers come back in fragments of {piece} bytes: the interface of the NAS, or of a router next to it, has that MTU."
        )
    });
    let rest = "This is one packet size for both ways together, and large TCP segments NAS → PC were not tried: an agent on the NAS does both.";
    match &path.limited_by {
        _ if path.mtu < own && !path.is_told() => silent_echo(seen, path, own, services, tcp),
        Limiter::Router { address, .. } if path.mtu < path.ceiling => {
            let kind = known_reason(path.mtu).map(|kind| format!(", the size of {kind}")).unwrap_or_default();
            healthy(
                Confidence::Medium,
                format!(
                    "echo requests of {} bytes of the {own} that the PC could send are answered{kind}; the router {address} says so, and TCP keeps to it.{back}{seconded} {rest}",
                    path.mtu
                ),
            )
        }
        _ => healthy(
            Confidence::Medium,
            format!(
                "echo requests of {} bytes, all that the PC's interface lets out, are answered.{back}{seconded} {rest}",
                path.mtu
            ),
        ),
    }
}

/// Large echo requests stay unanswered, and no service proved that this hurts.
fn silent_echo(
    seen: &Seen<'_>,
    path: &PathMtu,
    own: Mtu,
    services: &[(String, &ServicePath)],
    tcp: Option<(String, Mtu)>,
) -> Verdict {
    if let Some((name, packet)) = tcp.filter(|(_, packet)| *packet > path.mtu) {
        return unknown(&format!(
            "echo requests above {} bytes are not answered, yet {name} acknowledged a packet of {packet} bytes: PC → NAS carries it, and either NAS → PC does not or something drops large pings only. {WITH_AGENT}",
            path.mtu
        ));
    }
    let packet = |end: &ServicePath| Mtu(end.end.granted_mss_bytes().saturating_add(headers(seen.ip)));
    let largest = services.iter().map(|(_, end)| packet(end)).max();
    // A segment that was not acknowledged contradicts, whatever its size.
    let stuck = services.iter().any(|(_, end)| end.packet.is_some() && !end.acknowledged);
    match largest.filter(|largest| *largest <= path.mtu && !stuck) {
        Some(largest) => healthy(
            Confidence::Medium,
            format!(
                "TCP adapts: the NAS's services ask for segments that make packets of {largest} bytes, and {} pass. Larger ones vanish without a message though the PC's MTU is {own}, so what does not agree on a size, such as large UDP packets, gets lost: give the PC an MTU of {}, or the path and the NAS {own}. {NOT_TRIED}",
                path.mtu,
                if path.mtu >= Mtu::ETHERNET { Mtu::ETHERNET } else { path.mtu }
            ),
        ),
        None => unknown(&format!(
            "echo requests above {} bytes are not answered and nobody says why, though the PC's MTU is {own}; whether TCP's packets vanish too was not seen. {WITH_AGENT}",
            path.mtu
        )),
    }
}

/// Why no ping was answered, where a service shows that the host is there.
fn pings(why: &str) -> String {
    if why.contains("host is gone") { "the NAS or a firewall drops pings.".to_owned() } else { sentence(why) }
}

/// Nothing answered echo.
fn unanswered(services: &[(String, &ServicePath)], why: &str, no_services: Option<&str>) -> Verdict {
    let why = if services.is_empty() { sentence(why) } else { pings(why) };
    if let Some((name, packet)) = acknowledged(services) {
        let mut verdict = unknown(&format!(
            "{name} acknowledged a packet of {packet} bytes, so PC → NAS carries that; what NAS → PC carries was not seen, as ICMP echo gave nothing: {why} {WITH_AGENT}"
        ));
        verdict.direction = Some(Direction::Download);
        return verdict;
    }
    let full = services.iter().filter(|(_, path)| !path.acknowledged);
    let (names, sizes): (Vec<&str>, Vec<Mtu>) = full.filter_map(|(name, path)| Some((name.as_str(), path.packet?))).unzip();
    let stuck = sizes.into_iter().max().map(|packet| (listed(names), packet));
    let tcp = match (stuck, no_services) {
        (Some((name, packet)), _) => {
            format!("{name} did not acknowledge a packet of {packet} bytes, so it probably vanished, as small ones pass.")
        }
        (None, Some(why)) => format!("No TCP service told more: {}", sentence(why)),
        (None, None) => "No TCP service took a full segment.".to_owned(),
    };
    unknown(&format!("ICMP echo gave nothing: {why} {tcp} {WITH_AGENT}"))
}
