//! What binds each direction, the best explanation of it, and what its end would give.

use super::ideal;
use super::ladder::{Ceiling, Ladder, Part};
use super::limits;
use super::rules::{Explains, Hit};
use super::seen::{Load, Seen, Sums, window};
use crate::model::copy::{FileSet, LaneKind};
use crate::model::finding::{Confidence, Gain, Where};
use crate::model::plan::Scope;
use crate::model::{Direction, Role};
use crate::units::BitRate;

/// What one direction's ladder says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing that could be judged was measured.
    Nothing,
    /// The line, or the machine, is the limit.
    Healthy,
    /// Near the line; what is missing has no evidence.
    Near,
    /// The measuring of TCP was the limit: copies were faster, and near the line.
    Tool,
    /// The hit of this number explains what binds.
    Cause(usize),
    /// Something binds that nothing explains.
    Unexplained,
}

/// One direction's answer.
pub(super) struct Answer {
    pub(super) direction: Direction,
    pub(super) ladder: Ladder,
    pub(super) state: State,
    /// The rate that binds.
    pub(super) rate: Option<BitRate>,
    /// The rate once the cause is gone, and who limits then.
    pub(super) after: Option<(BitRate, String)>,
    /// Another ceiling within a tenth.
    pub(super) tie: Option<Part>,
    /// Another explanation that fits almost as well.
    pub(super) rival: Option<usize>,
}

impl Answer {
    pub(super) fn new(seen: &Seen<'_>, direction: Direction, hits: &[Hit]) -> Self {
        let one_flow = hits.iter().any(|hit| hit.one_flow && hit.touches(direction));
        let ladder = Ladder::new(seen, direction, one_flow);
        let mut answer = Self { direction, ladder, state: State::Nothing, rate: None, after: None, tie: None, rival: None };
        let Some(binding) = answer.ladder.binding().cloned() else { return answer };
        answer.rate = Some(binding.rate);
        let share = answer.ladder.wire.filter(|wire| wire.0 > 0).map(|wire| binding.rate.as_f64() / wire.as_f64());
        let near = share.is_some_and(|share| share >= limits::NEAR_LINE_RATE);
        let (best, rival) = best(hits, direction, binding.part, near);
        answer.state = state(seen, &answer.ladder, &binding, best.map(|at| (at, &hits[at])));
        if let State::Cause(at) = answer.state {
            answer.rival = rival;
            // No change makes small files as fast as a large one: what mending gives cannot be computed.
            let computable = hits[at].code != "protocol.small-files-latency";
            answer.after = after(seen, &answer.ladder, &binding, &hits[at]).filter(|_| computable);
            let close = |other: &&Ceiling| binding.rate.as_f64() >= limits::TIE * other.rate.as_f64();
            answer.tie = answer.ladder.next().filter(close).map(|other| other.part);
        }
        answer
    }

    /// How many times faster it would be; 1 when nothing is known.
    pub(super) fn factor(&self) -> f64 {
        match (self.rate, &self.after) {
            (Some(rate), Some((to, _))) if rate.0 > 0 => (to.as_f64() / rate.as_f64()).max(1.0),
            _ => 1.0,
        }
    }

    pub(super) fn gain(&self) -> Option<Gain> {
        let (rate, (to, _)) = (self.rate?, self.after.as_ref()?);
        (*to > rate).then_some(Gain { from_bps: rate, to_bps: *to })
    }
}

/// Whether a hit can explain that a part binds.
pub(super) fn explains(hit: &Hit, direction: Direction, part: Part) -> bool {
    hit.touches(direction)
        && match hit.explains {
            Explains::Part(own) => own == part,
            Explains::Network => matches!(part, Part::Line | Part::Tcp),
            Explains::Stops | Explains::Fault | Explains::Info => false,
        }
}

/// The best explanation of a part, and another one that is nearly as good and names something else. Near the line
/// what every busy host shows explains nothing.
fn best(hits: &[Hit], direction: Direction, part: Part, near: bool) -> (Option<usize>, Option<usize>) {
    let firm = hits.iter().any(|hit| hit.firm && explains(hit, direction, part));
    let fits = |at: &usize| explains(&hits[*at], direction, part) && !((near || firm) && hits[*at].soft);
    let mut fitting: Vec<usize> = (0..hits.len()).filter(fits).collect();
    fitting.sort_by(|a, b| {
        let (a, b) = (&hits[*a], &hits[*b]);
        b.weight.total_cmp(&a.weight).then(b.kinds.cmp(&a.kinds)).then(a.code.cmp(b.code)).then(a.place.cmp(&b.place))
    });
    let first = fitting.first().copied();
    // The names of the same fact at two depths (a disk, its RAID) are no rivals; two network causes are.
    let network = matches!(part, Part::Line | Part::Tcp);
    let close = |at: &&usize| {
        first.is_some_and(|first| hits[first].code != hits[**at].code && hits[first].weight - hits[**at].weight < 0.1)
    };
    (first, fitting.get(1..).unwrap_or_default().iter().find(close).copied().filter(|_| network))
}

fn state(seen: &Seen<'_>, ladder: &Ladder, binding: &Ceiling, best: Option<(usize, &Hit)>) -> State {
    let cause = best.map_or(State::Unexplained, |(at, _)| State::Cause(at));
    if seen.local() {
        let faulty = |hit: &Hit| matches!(binding.part, Part::Lane(_)) || hit.code == "disk.raid-degraded-or-resyncing";
        return best.filter(|(_, hit)| faulty(hit)).map_or(State::Healthy, |(at, _)| State::Cause(at));
    }
    let share = ladder.wire.filter(|wire| wire.0 > 0).map(|wire| binding.rate.as_f64() / wire.as_f64());
    let network = ladder.rate(Part::Tcp).or(ladder.rate(Part::Line));
    if matches!(binding.part, Part::Source | Part::Sink) && network.is_none() {
        return without_network(share, best);
    }
    if share.is_some_and(|share| share >= limits::AT_LINE_RATE) {
        // At the line: only a line that could be faster is a cause.
        let faster = |hit: &Hit| hit.relieved.is_some_and(|to| to.as_f64() > limits::WORTH * binding.rate.as_f64());
        return match best {
            Some((at, hit)) if binding.part == Part::Line && faster(hit) => State::Cause(at),
            _ => State::Healthy,
        };
    }
    match binding.part {
        Part::Line | Part::Tcp if faster_copy(seen, ladder, binding) => State::Tool,
        Part::Line | Part::Tcp if best.is_none() && share.is_some_and(|share| share >= limits::NEAR_LINE_RATE) => State::Near,
        _ => cause,
    }
}

/// A disk's rate without one of the network says something only beside the line's.
fn without_network(share: Option<f64>, best: Option<(usize, &Hit)>) -> State {
    match best {
        Some((at, hit))
            if hit.code == "disk.raid-degraded-or-resyncing" || share.is_some_and(|share| share < limits::LANE_TOLERANCE) =>
        {
            State::Cause(at)
        }
        _ => State::Nothing,
    }
}

/// Whether a large copy in this direction was clearly faster than TCP, and near the line: then the test was the limit.
fn faster_copy(seen: &Seen<'_>, ladder: &Ladder, binding: &Ceiling) -> bool {
    let (Some(copy), Some(wire), Some(line)) = (seen.copy(), ladder.wire, ladder.line) else { return false };
    let copies =
        copy.lanes.iter().flat_map(|lane| lane.measured(ladder.direction)).filter(|(rung, _)| rung.files == FileSet::Large);
    // More than the line carries is a cache, and proves nothing.
    let possible = copies.map(|(_, copied)| copied.bytes_per_s.bits()).filter(|rate| *rate <= line);
    let most = possible.max().unwrap_or_default().as_f64();
    most >= limits::NEAR_LINE_RATE * wire.as_f64() && most > 1.1 * binding.rate.as_f64()
}

/// Simulates the cause gone: the part relieved, all others as they are.
fn after(seen: &Seen<'_>, ladder: &Ladder, binding: &Ceiling, hit: &Hit) -> Option<(BitRate, String)> {
    let own = hit.relieved.or(binding.relieved).filter(|rate| *rate > binding.rate);
    let others = ladder.ceilings.iter().filter(|other| other.part != binding.part).min_by_key(|other| other.rate);
    match (own, others) {
        (Some(own), Some(other)) if own < other.rate => Some((own, relieved_name(seen, binding.part, own))),
        (_, Some(other)) => Some((other.rate, name(seen, ladder.direction, other.part))),
        (Some(own), None) => Some((own, relieved_name(seen, binding.part, own))),
        (None, None) => ladder.wire.filter(|wire| *wire > binding.rate).map(|wire| (wire, link_name(seen))),
    }
}

fn link_name(seen: &Seen<'_>) -> String {
    seen.line.map_or_else(|| "the network".to_owned(), |line| format!("the {line} link"))
}

fn relieved_name(seen: &Seen<'_>, part: Part, rate: BitRate) -> String {
    match part {
        Part::Line => format!("the faster link ({rate} of TCP)"),
        Part::Tcp => link_name(seen),
        Part::Lane(_) => "what lies below this lane".to_owned(),
        Part::Source | Part::Sink => "the network".to_owned(),
    }
}

/// A part in words.
pub(super) fn name(seen: &Seen<'_>, direction: Direction, part: Part) -> String {
    match part {
        Part::Line => link_name(seen),
        Part::Tcp => "the network (TCP, memory to memory)".to_owned(),
        Part::Source => format!("reading the {}'s disk", direction.sender().title()),
        Part::Sink => format!("writing the {}'s disk", direction.receiver().title()),
        Part::Lane(kind) => format!("the {} lane", kind.word()),
    }
}

/// How sure a cause is.
pub(super) fn confidence(seen: &Seen<'_>, answer: &Answer, hit: &Hit, part: Part) -> Confidence {
    let mut sure = match (hit.weight, hit.kinds) {
        (weight, _) if weight < 0.6 => Confidence::Low,
        (_, 0 | 1) => Confidence::Medium,
        _ => Confidence::High,
    };
    let network = matches!(part, Part::Line | Part::Tcp);
    let unproven = seen.line.is_none() || seen.inferred;
    if answer.tie.is_some() || answer.rival.is_some() || (network && unproven) {
        sure = sure.min(Confidence::Medium);
    }
    // A disk or lane beside an unmeasured network may be the network.
    if !network && answer.ladder.rate(Part::Tcp).or(answer.ladder.rate(Part::Line)).is_none() {
        sure = sure.min(Confidence::Medium);
    }
    if (network && noisy(seen, answer.direction))
        || (hit.soft && robbed(seen, answer.direction))
        || (matches!(part, Part::Source | Part::Sink) && resyncs(seen))
    {
        sure = lower(sure);
    }
    sure
}

/// What a verdict's confidence is at most: on busy hosts no bottleneck is sure, and one that only load or a rate
/// without a proof of its own speaks for is a guess; where our own copying was the limit, nothing is quite sure.
pub(super) fn at_most(seen: &Seen<'_>, hits: &[Hit], chosen: Option<&Hit>) -> Confidence {
    let noted = |code: &str| hits.iter().any(|hit| hit.explains == Explains::Info && hit.code == code);
    match chosen {
        Some(hit) if noted("cpu.background-load") && !direct(seen, hit) => Confidence::Low,
        Some(_) if noted("cpu.background-load") => Confidence::Medium,
        Some(hit) if hit.explains == Explains::Stops => Confidence::High,
        // An iperf3 server tells nothing of its host: what is not seen there may be the cause.
        Some(_) if seen.doc.plan.scope == Scope::ThroughputIperf3 => Confidence::Medium,
        _ if noted("none.tool-limit") => Confidence::Medium,
        _ => Confidence::High,
    }
}

/// Whether the evidence of a cause is more than load and rates: a level, packets, counters, settings, a full process,
/// or what the disk gave by itself.
fn direct(seen: &Seen<'_>, hit: &Hit) -> bool {
    let role = if hit.place == Where::Pc { Role::Pc } else { Role::Nas };
    match hit.explains {
        Explains::Part(part @ (Part::Source | Part::Sink)) => seen.transfer(role, part == Part::Sink).is_some(),
        _ => !hit.soft && hit.weight >= 0.6,
    }
}

pub(super) const fn lower(sure: Confidence) -> Confidence {
    match sure {
        Confidence::High => Confidence::Medium,
        Confidence::Medium | Confidence::Low => Confidence::Low,
    }
}

/// Whether TCP's rate never settled in this direction.
pub(super) fn noisy(seen: &Seen<'_>, direction: Direction) -> bool {
    let pass = seen.way(direction).best;
    pass.is_some_and(|pass| pass.steady.is_none_or(|steady| steady.spread > limits::NOISY_SPREAD))
}

/// Whether a hypervisor took so much of an end's time in this direction that its load is no proof.
pub(super) fn robbed(seen: &Seen<'_>, direction: Direction) -> bool {
    loads(seen, direction).any(Load::robbed)
}

/// What both ends did during this direction's better pass.
pub(super) fn loads(seen: &Seen<'_>, direction: Direction) -> impl Iterator<Item = Load> {
    let pass = seen.way(direction).best;
    [Role::Pc, Role::Nas].into_iter().filter_map(move |role| window(pass?, role)).map(Load::of)
}

/// What no host explains, in words: where threads of both ends slept for most of this direction's pass, the path made them wait.
pub(super) fn between(seen: &Seen<'_>, direction: Direction) -> Option<String> {
    let pass = seen.way(direction).best?;
    let idles = |role| window(pass, role).map(Load::of).is_some_and(Load::idles);
    [Role::Pc, Role::Nas].into_iter().all(idles).then(|| {
        "Both ends' threads slept for most of the time, so neither host is the limit: something between them is.".to_owned()
    })
}

fn resyncs(seen: &Seen<'_>) -> bool {
    let devices = [Role::Pc, Role::Nas].into_iter().filter_map(|role| seen.disk(role)?.device.measured());
    devices.filter_map(|device| device.raid.as_ref()).any(|raid| raid.syncing.is_some())
}

/// A rate that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Impossible {
    pub(super) rate: BitRate,
    pub(super) direction: Direction,
    pub(super) line: BitRate,
    /// What TCP can have of that line, where the rate is below the line and above this.
    pub(super) wire: Option<BitRate>,
}

/// A rate above what the cables carry, or above what their headers leave.
pub(super) fn impossible(seen: &Seen<'_>) -> Option<Impossible> {
    let line = seen.known().filter(|_| !seen.local())?;
    // The arithmetic needs a packet size and a speed that somebody looked up.
    let told = seen.ends.iter().any(|end| end.mtu.is_some()) && !seen.ends.iter().any(|end| end.stated);
    let wire = Some(ideal::wire_ceiling(line, seen.mtu, seen.ip)).filter(|_| told);
    let above = |rate: BitRate, most: BitRate| rate.as_f64() > limits::IMPOSSIBLE * most.as_f64();
    let both = seen.doc.measurements.throughput.measured().and_then(|section| section.both.measured());
    let at_once = |way| both.and_then(|both| both.of(way).measured()).map(|pass| pass.goodput_bps);
    let rates = seen.ways.iter().flat_map(|way| [(way.direction, way.rate()), (way.direction, at_once(way.direction))]);
    let found = rates.filter_map(|(direction, rate)| {
        let rate = rate?;
        let beyond = wire.filter(|wire| above(rate, *wire) && !above(rate, line));
        (above(rate, line) || beyond.is_some()).then_some(Impossible { rate, direction, line, wire: beyond })
    });
    found.max()
}

/// The lane of a part, if it is one.
pub(super) const fn lane(part: Part) -> Option<LaneKind> {
    match part {
        Part::Lane(kind) => Some(kind),
        _ => None,
    }
}

/// The share of segments sent again in a direction.
pub(super) fn retransmits(seen: &Seen<'_>, direction: Direction) -> Option<f64> {
    Sums::of(seen.way(direction).best?).retransmits
}
