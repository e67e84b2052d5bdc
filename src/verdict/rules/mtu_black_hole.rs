//! Large packets vanish and nobody says so.

use super::super::limits;
use super::super::seen::Seen;
use super::list::{Explains, Hit, Rule, RuleDoc};
use super::mtu_advice::{Between, Sizes, both_ways, lasting, probing};
use super::mtu_suspects::{LIKELY, SURE, Suspect, is_routed, suspects, typical};
use crate::model::finding::Where;
use crate::model::mtu::{MtuSection, PathMtu, Probe, ProbeFate, SegmentStream, ServicePath, ServiceProbe};
use crate::model::{Direction, Role};
use crate::units::{BitRate, Mtu};

const CODE: &str = "network.mtu-black-hole";

/// The most suspects that are told.
const MOST: usize = 5;

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "Large packets vanish between the hosts",
        meaning: "Both ends use large packets, something between them drops those, and no message says so. Small things work (ping, login, listing a directory), and a copy hangs.",
        detected: "Probes that may not be fragmented, in each direction: the largest that passes is smaller than the MTU of both ends, and no ICMP message came (or one that cannot be true). A stream with full-size segments that stalls where one with smaller segments runs is the proof. Where they vanish, probes of limited TTL tell between routers; within one subnet the evidence ranks the suspects: frames that the receiving interface counted as too long, layers of a host (bridge, bond, VLAN) with a smaller MTU than what is above them, what the switch says by LLDP. Without an agent: large ICMP echo requests stay unanswered and a TCP service does not acknowledge a full segment; where no ping is answered at all, two services that agree.",
        fix: "Make all of the path one size: jumbo frames at every switch port and router between the hosts, or both hosts back to 1500.",
    },
    check,
}];

/// One direction whose large packets vanish.
pub(in super::super) struct Hole<'a> {
    pub(in super::super) way: Direction,
    pub(in super::super) path: &'a PathMtu,
    /// What both ends' interfaces could use.
    pub(in super::super) both: Mtu,
}

pub(super) const fn other_way(way: Direction) -> Direction {
    match way {
        Direction::Upload => Direction::Download,
        Direction::Download => Direction::Upload,
    }
}

/// The directions with a hole.
pub(in super::super) fn holes<'a>(seen: &Seen<'a>) -> Vec<Hole<'a>> {
    if seen.local() {
        return Vec::new();
    }
    let (Some(pc), Some(nas)) = (seen.end(Role::Pc).mtu, seen.end(Role::Nas).mtu) else { return Vec::new() };
    let both = pc.min(nas);
    let hole = |way| {
        let path = seen.path(way)?;
        (!path.is_told() && path.mtu < both).then_some(Hole { way, path, both })
    };
    Direction::BOTH.into_iter().filter_map(hole).collect()
}

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    let holes = holes(seen);
    if holes.is_empty() {
        return by_streams(seen).or_else(|| without_agent(seen)).into_iter().collect();
    }
    let ranked = ranked(seen, &holes);
    let mut hit = Hit::new(CODE, Where::Path, Explains::Stops).weight(1.0, 1);
    if let [hole] = holes.as_slice() {
        hit = hit.towards(hole.way);
    }
    hit = shown(seen, hit, &holes);
    let before = hit.kinds;
    hit = with_stream(seen, hit, &holes);
    let proven = hit.kinds > before || ranked.iter().any(|suspect| suspect.weight >= SURE);
    let told = told(&ranked);
    hit = with_suspects(hit, ranked);
    for hole in &holes {
        hit.evidence.extend(by_size(hole));
        hit.evidence.extend(probing(seen, hole.way.sender(), goes_on(seen, hole.way)));
    }
    let passes = holes.iter().map(|hole| hole.path.mtu).min().unwrap_or_default();
    let both = holes.iter().map(|hole| hole.both).max().unwrap_or_default();
    let routed = holes.iter().any(|hole| hole.path.location.measured().is_some_and(is_routed));
    hit.advice.extend(both_ways(seen, &Sizes::new(passes, both), told.unwrap_or(Between::new(routed))));
    lasting(&mut hit.advice);
    if holes.iter().all(lossy) && !proven {
        // A path that loses everything now and then makes any size look too large.
        hit.weight = 0.5;
    }
    vec![hit]
}

/// The suspects of all holes, each once, most likely first.
fn ranked(seen: &Seen<'_>, holes: &[Hole<'_>]) -> Vec<Suspect> {
    let mut ranked: Vec<Suspect> = Vec::new();
    for suspect in holes.iter().flat_map(|hole| suspects(seen, hole)) {
        if !ranked.iter().any(|known| known.text == suspect.text) {
            ranked.push(suspect);
        }
    }
    // What a size mostly is says nothing more where somebody was found; several directions have one reason.
    let smallest = holes.iter().min_by_key(|hole| hole.path.mtu);
    if !ranked.iter().any(|suspect| suspect.weight >= SURE) {
        ranked.extend(smallest.and_then(|hole| typical(seen, hole)));
    }
    ranked.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    ranked
}

/// Whether a layer of a host is surely to blame, and what mends it known: then no switch is.
fn told(ranked: &[Suspect]) -> Option<Between> {
    let first = ranked.first().filter(|first| first.weight >= SURE && first.mend.is_some())?;
    (first.place != Where::Path).then_some(Between::Told)
}

/// What the suspects add: the place, evidence, and what mends them.
fn with_suspects(mut hit: Hit, ranked: Vec<Suspect>) -> Hit {
    hit.place = blamed(&ranked);
    for (at, suspect) in ranked.iter().take(MOST).enumerate() {
        let word = match at {
            0 if suspect.weight >= SURE => "Most likely",
            0 if suspect.weight >= LIKELY => "Likely",
            _ => "Possible",
        };
        let text = if suspect.weight < 0.5 { suspect.text.clone() } else { format!("{word}: {}", suspect.text) };
        hit = if suspect.weight >= SURE { hit.also(Some(text)) } else { hit.shows(text) };
    }
    let sure = ranked.iter().filter(|suspect| suspect.weight >= SURE);
    hit.advice.extend(sure.filter_map(|suspect| suspect.mend.clone()).take(2));
    hit.title = ranked.into_iter().next().filter(|first| first.weight >= LIKELY).and_then(|first| first.title);
    hit
}

/// Where the likeliest suspect is; the path where none is likely, or where likely ones differ.
fn blamed(ranked: &[Suspect]) -> Where {
    let mut sure = ranked.iter().filter(|suspect| suspect.weight >= SURE).map(|suspect| suspect.place);
    let first = sure.next().unwrap_or(Where::Path);
    if sure.all(|other| other == first) { first } else { Where::Path }
}

/// What passes and what does not.
fn shown(seen: &Seen<'_>, mut hit: Hit, holes: &[Hole<'_>]) -> Hit {
    let mtu = |role: Role| seen.end(role).mtu.unwrap_or_default();
    let said = |way: &str, hole: &Hole<'_>| {
        let words = &hole.path.words;
        let true_one = words.iter().find(|word| word.lie().is_none() && word.next_hop_mtu > hole.path.mtu);
        let how = match true_one.or(words.first()) {
            None => "larger ones vanish without a message".to_owned(),
            Some(word) if true_one.is_none() => {
                format!("larger ones vanish, and what the router {} says of it cannot be true", word.address)
            }
            Some(word) => format!(
                "larger ones vanish, also those that would fit what the router {} says ({})",
                word.address, word.next_hop_mtu
            ),
        };
        let (pc, nas) = (mtu(Role::Pc), mtu(Role::Nas));
        let ends = if pc == nas {
            format!("both ends have an MTU of {pc}")
        } else {
            format!("the PC's MTU is {pc} and the NAS's {nas}")
        };
        format!("{way}: packets up to {} bytes pass, {how}, though {ends}.", hole.path.mtu)
    };
    match holes {
        [one, two] if said("", one) == said("", two) => {
            hit.kinds += 1;
            hit.also(Some(said("Both ways", one)))
        }
        _ => holes.iter().fold(hit, |hit, hole| hit.also(Some(said(hole.way.arrow(), hole)))),
    }
}

/// The contrast of streams: with full segments, and with such that fit.
fn with_stream(seen: &Seen<'_>, mut hit: Hit, holes: &[Hole<'_>]) -> Hit {
    let Some(mtu) = seen.doc.measurements.mtu.measured() else { return hit };
    // A stream in the direction that is well tells nothing about the other.
    let tried = |stream: &&SegmentStream| holes.iter().any(|hole| hole.way == stream.direction);
    let Some(stream) = full_size(seen, mtu).filter(tried) else { return hit };
    let clamped = clamped(mtu, stream.direction);
    let fits = clamped.map(|fits| fits.goodput_bps).or(seen.way(stream.direction).rate());
    let text = contrast(stream, clamped, holes);
    if fits.is_some_and(|rate| rate.0 == 0) {
        // Nothing arrives with small packets either: the size is not what stops it.
        return hit.shows(text);
    }
    if stalls(stream, fits) {
        return hit.also(Some(text));
    }
    // The ends find out by themselves (MTU probing): the fault stays, the stall does not.
    hit.explains = Explains::Fault;
    hit.kinds = 1;
    let sender = stream.direction.sender();
    let searches = seen.doc.hosts.of(sender).measured().and_then(|host| host.tcp.measured()).and_then(|tcp| tcp.mtu_probing);
    let spared = stream.packet.filter(|_| searches == Some(0));
    let spared = spared.map(|packet| {
        format!("TCP's packets of {packet} bytes pass all the same: only large datagrams vanish, as at a firewall.")
    });
    hit.evidence.extend(spared);
    hit.shows(text)
}

/// The stream with full-size segments. One whose packets fit what passes proves nothing, and disproves nothing: the sender
/// had learnt the size meanwhile.
pub(in super::super) fn full_size<'a>(seen: &Seen<'_>, mtu: &'a MtuSection) -> Option<&'a SegmentStream> {
    let larger = |stream: &&SegmentStream| match (stream.packet, seen.path(stream.direction)) {
        (Some(packet), Some(path)) => packet > path.mtu,
        _ => true,
    };
    mtu.unclamped.measured().filter(larger)
}

fn stalls(stream: &SegmentStream, fits: Option<BitRate>) -> bool {
    fits.is_none_or(|rate| stream.goodput_bps.as_f64() < limits::STALLED * rate.as_f64())
}

/// Whether a stream with full-size segments goes on in this direction, for all that vanishes.
fn goes_on(seen: &Seen<'_>, way: Direction) -> bool {
    let mtu = seen.doc.measurements.mtu.measured();
    let stream = mtu.and_then(|mtu| full_size(seen, mtu).map(|stream| (mtu, stream)));
    stream.filter(|(_, stream)| stream.direction == way).is_some_and(|(mtu, stream)| {
        let fits = clamped(mtu, way).map(|fits| fits.goodput_bps).or(seen.way(way).rate());
        stream.goodput_bps.0 > 0 && !stalls(stream, fits)
    })
}

/// A hole that the streams alone show: the search got no answer, and full-size segments stall where small ones run.
fn by_streams(seen: &Seen<'_>) -> Option<Hit> {
    let mtu = seen.doc.measurements.mtu.measured().filter(|_| !seen.local())?;
    let stream = mtu.unclamped.measured()?;
    let way = stream.direction;
    let fits = clamped(mtu, way).filter(|fits| fits.goodput_bps.0 > 0)?;
    let larger = stream.packet.zip(fits.packet).is_none_or(|(large, small)| large > small);
    if seen.path(way).is_some() || !larger || !stalls(stream, Some(fits.goodput_bps)) {
        return None;
    }
    let mut hit =
        Hit::new(CODE, Where::Path, Explains::Stops).towards(way).weight(0.9, 1).shows(contrast(stream, Some(fits), &[]));
    let echo = mtu.echo.measured().map(|echo| &echo.path).filter(|path| !path.is_told());
    if let Some(path) = echo {
        hit = hit.also(Some(format!(
            "ICMP echo: requests up to {} bytes are answered, larger ones vanish without a message.",
            path.mtu
        )));
        let both = stream.packet.unwrap_or(path.ceiling);
        hit = with_suspects(hit, ranked(seen, &[Hole { way, path, both }]));
    }
    let why = mtu.of(way).why().unwrap_or("it was not tried");
    hit.evidence.push(format!("{} was not searched by UDP: {}.", way.arrow(), why.trim().trim_end_matches('.')));
    hit.evidence.extend(probing(seen, way.sender(), false));
    let wanted = stream.packet.unwrap_or(Mtu::ETHERNET);
    let passes = echo.map(|path| path.mtu).or(fits.packet).unwrap_or(Mtu::ETHERNET).min(wanted);
    let routed = echo.is_some_and(|path| path.location.measured().is_some_and(is_routed));
    hit.advice.extend(both_ways(seen, &Sizes::new(passes, wanted), Between::new(routed)));
    lasting(&mut hit.advice);
    hit.advice.push("Let the agent's UDP port pass the firewalls of both hosts and run `weaklink mtu` again: then the size is found to the byte, each way by itself.".to_owned());
    Some(hit)
}

/// The stream with segments that fit, in this direction.
pub(in super::super) fn clamped(mtu: &MtuSection, way: Direction) -> Option<&SegmentStream> {
    mtu.clamped.measured().filter(|stream| stream.direction == way)
}

fn contrast(stream: &SegmentStream, fits: Option<&SegmentStream>, holes: &[Hole<'_>]) -> String {
    let hole = holes.iter().find(|hole| hole.way == stream.direction);
    let packet = |own: Option<Mtu>, known: Option<Mtu>| own.or(known).map_or_else(String::new, |mtu| format!(" of {mtu} bytes"));
    let large = packet(stream.packet, None);
    let moved = format!("{} in {}", stream.bytes, stream.elapsed_us);
    let way = stream.direction.arrow();
    match fits {
        Some(fits) => format!(
            "{way}: a stream moved {moved} with packets{}, and {} with packets{}.",
            packet(stream.packet, hole.map(|hole| hole.path.ceiling)),
            fits.goodput_bps.bytes(),
            packet(fits.packet, hole.map(|hole| hole.path.mtu)),
        ),
        None if large.is_empty() => format!("A stream with full-size segments moved {moved} ({way})."),
        None => format!("A stream with packets{large} moved {moved} ({way})."),
    }
}

/// Whether packets of every size get lost.
pub(in super::super) fn lossy(hole: &Hole<'_>) -> bool {
    let (sent, lost) = hole.path.loss();
    sent >= 8 && lost.saturating_mul(4) >= sent
}

/// Loss of what fits beside loss of what does not.
fn by_size(hole: &Hole<'_>) -> Option<String> {
    let above = |probe: &&Probe| probe.size > hole.path.mtu && probe.fate == ProbeFate::Lost;
    let vanished = hole.path.trace.iter().filter(above).count();
    let (sent, lost) = hole.path.loss();
    (vanished > 0 && sent > 0).then(|| {
        let plain = if lost == 0 { "none".to_owned() } else { lost.to_string() };
        let odd = if lossy(hole) { " That is loss at every size: replace the cable first, then measure again." } else { "" };
        format!(
            "{}: {vanished} probes above {} bytes were lost, and {plain} of the {sent} that fit.{odd}",
            hole.way.arrow(),
            hole.path.mtu
        )
    })
}

/// The services that did not acknowledge a segment in a packet above `passes`, and whether another one did.
fn stuck(probes: &[ServiceProbe], passes: Mtu) -> (Vec<(String, Mtu, &ServicePath)>, bool) {
    let tried = probes.iter().filter_map(|probe| {
        let path = probe.result.measured()?;
        let packet = path.packet.filter(|packet| *packet > passes)?;
        Some((probe.service.clone().unwrap_or_else(|| format!("port {}", probe.port)), packet, path))
    });
    let (took, stuck): (Vec<_>, Vec<_>) = tried.partition(|(_, _, path)| path.acknowledged);
    (stuck, !took.is_empty())
}

/// A hole that one end alone sees: large echo requests stay unanswered, and a service does not acknowledge a full segment;
/// where no ping is answered at all, two services that agree.
fn without_agent(seen: &Seen<'_>) -> Option<Hit> {
    let mtu = seen.doc.measurements.mtu.measured()?;
    if seen.local() || Direction::BOTH.iter().any(|way| mtu.of(*way).measured().is_some()) {
        return None;
    }
    let echo = mtu.echo.measured().map(|echo| &echo.path);
    let (stuck, took) = stuck(mtu.services.measured()?, echo.map_or(Mtu(0), |path| path.mtu));
    // Where another service acknowledges such a segment, it is that service which does not.
    let enough = if echo.is_some() { 1 } else { 2 };
    if took || stuck.len() < enough {
        return None;
    }
    let largest = stuck.iter().map(|(_, packet, _)| *packet).max().unwrap_or_default();
    let own = seen.end(Role::Pc).mtu.unwrap_or(echo.map_or(largest, |path| path.ceiling));
    let hit = Hit::new(CODE, Where::Path, Explains::Stops).towards(Direction::Upload).weight(1.0, 0);
    let mut hit = match echo {
        Some(path) if path.is_told() || path.mtu >= own => return None,
        Some(path) => hit.shows(format!(
            "ICMP echo: requests up to {} bytes are answered, larger ones stay without an answer or a message, though the PC's MTU is {own}.",
            path.mtu
        )),
        None => hit.shows("Small packets of TCP pass, and no ping is answered, which says nothing about the size: the NAS or a firewall drops pings."),
    };
    for (name, packet, path) in &stuck {
        let text = format!(
            "{name}: the connection opens, and a segment in a packet of {packet} bytes was not acknowledged within {} ({} times sent again).",
            path.elapsed_us, path.retransmits
        );
        hit = hit.shows(text);
    }
    let mut between = Between::Subnet;
    if let Some(path) = echo {
        let ranked = ranked(seen, &[Hole { way: Direction::Upload, path, both: own }]);
        between = told(&ranked).unwrap_or(Between::new(path.location.measured().is_some_and(is_routed)));
        hit = with_suspects(hit, ranked);
    }
    // One end alone is never quite sure.
    hit.kinds = 1;
    hit.evidence.extend(probing(seen, Role::Pc, false));
    hit.evidence.push("One end sees this alone: which direction drops what is told by `weaklink serve` on the NAS.".to_owned());
    let passes = echo.map_or(Mtu::ETHERNET, |path| path.mtu);
    if passes < own {
        hit.advice.extend(both_ways(seen, &Sizes::new(passes, own), between));
        lasting(&mut hit.advice);
    }
    if echo.is_none() {
        hit.advice.push("Run `weaklink serve` on the NAS and `weaklink mtu` with its code on the PC: then the size that passes is found to the byte.".to_owned());
    }
    Some(hit)
}
