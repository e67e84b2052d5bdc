//! The client's schedule of raw TCP: one stream, more while the sum grows, both directions at once, one congestion control beside
//! another.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::model::host::Direction;
use crate::model::outcome::Outcome;
use crate::model::plan::{Depth, ThroughputPlan, UdpPlan, Ways};
use crate::model::throughput::{
    BothWays, CongestionTrial, DirectionThroughput, PACED, Pass, PassOptions, RttSummary, StopRule, SweepPoint, ThroughputSection,
};
use crate::model::udp::UdpSection;
use crate::session::client::ClientSession;
use crate::session::error::SessionError;
use crate::session::event::Step;
use crate::session::served::blocking;
use crate::session::steps::throughput::{LONGEST, PassPlan, pass, pass_both};
use crate::session::steps::{together, udp};
use crate::units::BitRate;

/// Echoes for the round-trip time of an idle path.
const IDLE_ECHOES: u32 = 30;

/// The numbers of streams that are tried after one. More than 16 gain nothing on the links of a PC: a hash has filled its ports,
/// and every core has its stream.
pub(super) const NUMBERS: [u32; 3] = [4, 8, 16];

/// The most of them.
pub const MOST: u32 = 16;

/// The sum grows when it is larger by more than this share: less is noise of two passes.
const GROWTH: f64 = 0.05;

/// Known well enough: the goodput lies within this share of the figure, with 95 % confidence.
const HALF_WIDTH: f64 = 0.01;

/// The least time of a pass, as a share of its longest: what else is read from a pass (counters, processors, loss) wants its time too.
const LEAST: f64 = 0.5;

/// A pass shorter than this has no steady part.
const SHORTEST: Duration = Duration::from_millis(800);

/// The longest pass of `weaklink throughput` where no time was asked for.
pub const PASS: Duration = Duration::from_secs(4);

/// The look by TCP before datagrams: streams and time.
const LOOK: (u32, Duration) = (4, Duration::from_millis(800));

/// What datagrams take in one direction, at one rate and with the search for the rate at which loss begins.
const DATAGRAMS: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(8));

/// The whole step: what the user asked for, in each direction by itself, then at once.
pub async fn client(session: &mut ClientSession) -> Result<ThroughputSection, SessionError> {
    session.events.part(Step::Throughput, "round-trip time", Duration::from_millis(200), None);
    let idle_rtt = idle(session).await;
    let ways = session.settings.throughput.ways;
    if let Some(group) = session.group.take() {
        let nothing = || DirectionThroughput::skipped("--together was asked for: each PC alone, then all at once");
        let together = together::measure(session, &group).await?;
        return Ok(ThroughputSection { together, ..ThroughputSection::new(nothing(), nothing(), idle_rtt) });
    }
    if let Some(plan) = session.settings.throughput.udp {
        return datagrams(session, plan, idle_rtt).await;
    }
    if session.settings.throughput.congestion.len() > 1 {
        return Box::pin(compare(session, idle_rtt)).await;
    }
    let mut each = Vec::new();
    for way in Direction::BOTH {
        each.push(if ways.has(way) {
            direction(session, way).await?
        } else {
            DirectionThroughput::skipped("this direction by itself was not asked for")
        });
    }
    let (Some(download), Some(upload)) = (each.pop(), each.pop()) else {
        let nothing = || DirectionThroughput::skipped("nothing was asked for");
        return Ok(ThroughputSection::new(nothing(), nothing(), idle_rtt));
    };
    let mut section = ThroughputSection::new(upload, download, idle_rtt);
    section.both = both(session, &section).await?;
    section.congestion = Outcome::skipped("--congestion names no second one to compare with");
    Ok(section)
}

async fn idle(session: &ClientSession) -> Outcome<RttSummary> {
    match &session.udp {
        Ok(endpoint) => {
            let (endpoint, stop) = (Arc::clone(endpoint), session.stop.clone());
            blocking(move || endpoint.rtt(IDLE_ECHOES, Duration::from_millis(5), &stop)).await
        }
        Err(reason) => Outcome::skipped(reason.clone()),
    }
}

/// Datagrams in each direction. A search begins where a short look by TCP says that the path ends; that look is told too.
async fn datagrams(
    session: &mut ClientSession,
    plan: UdpPlan,
    idle_rtt: Outcome<RttSummary>,
) -> Result<ThroughputSection, SessionError> {
    let nothing = || DirectionThroughput::skipped("--udp was asked for: datagrams in place of TCP");
    let not_asked = || Outcome::skipped("this direction was not asked for");
    let mut section = ThroughputSection::new(nothing(), nothing(), idle_rtt);
    let mut found = UdpSection { upload: not_asked(), download: not_asked() };
    let ways = session.settings.throughput.ways;
    for direction in Direction::BOTH.into_iter().filter(|way| ways.has(*way)) {
        let mut plan = plan;
        if plan.rate_bps.is_none() {
            let look = PassPlan { streams: LOOK.0, ..PassPlan::one(session, direction, LOOK.1) };
            let multi = pass(session, look).await?;
            plan.presumed_bps = multi.measured().map(|pass| pass.goodput_bps);
            let way = DirectionThroughput { multi, ..nothing() };
            match direction {
                Direction::Upload => section.upload = way,
                Direction::Download => section.download = way,
            }
        }
        match direction {
            Direction::Upload => found.upload = Box::pin(udp::client(session, plan, Ways::Upload)).await?.upload,
            Direction::Download => found.download = Box::pin(udp::client(session, plan, Ways::Download)).await?.download,
        }
    }
    section.udp = Outcome::Measured(found);
    Ok(section)
}

/// The longest time of one pass.
pub fn longest(session: &ClientSession) -> Duration {
    let usual = if session.settings.scope.is_throughput() { PASS } else { session.times.pass };
    asked_time(&session.settings.throughput).unwrap_or(usual)
}

/// The longest time of one pass as the user gave it, in seconds or by a number of bytes.
pub(super) fn asked_time(plan: &ThroughputPlan) -> Option<Duration> {
    let time = plan.time_us.map(|time| Duration::from(time).min(LONGEST));
    time.or_else(|| plan.options.max_bytes.map(|_| LONGEST))
}

/// When a pass may end before that; never where the user gave a time or a number of bytes, or where there is none to spare.
fn stop_rule(session: &ClientSession) -> Option<StopRule> {
    let asked = &session.settings.throughput;
    let free = asked.time_us.is_none() && asked.options.max_bytes.is_none() && session.settings.depth != Depth::Quick;
    free.then(|| StopRule { half_width: HALF_WIDTH, least_us: longest(session).mul_f64(LEAST).into() })
}

fn plan(session: &ClientSession, direction: Direction, streams: u32) -> PassPlan {
    let plan = PassPlan::one(session, direction, longest(session));
    PassPlan { streams, options: PassOptions { enough: stop_rule(session), ..plan.options }, ..plan }
}

async fn direction(session: &mut ClientSession, direction: Direction) -> Result<DirectionThroughput, SessionError> {
    let begin = Instant::now();
    let numbers = Numbers::asked(&session.settings.throughput, session.settings.scope.is_throughput());
    let single = match numbers {
        Numbers::Only(streams) => Outcome::skipped(format!("--streams {streams} was asked for")),
        _ => pass(session, plan(session, direction, 1)).await?,
    };
    let mut sweep = Sweep::new(single);
    match numbers {
        Numbers::One => {}
        Numbers::OneAtAPace => sweep.0.multi = Outcome::skipped(PACED),
        Numbers::Only(streams) | Numbers::OneAnd(streams) => {
            sweep.take(pass(session, plan(session, direction, streams)).await?);
        }
        Numbers::WhileItGrows => {
            // A run has promised its time; a throughput test takes what it needs.
            let limited = !session.settings.scope.is_throughput();
            let end = limited.then(|| begin + longest(session) * 2);
            several(session, direction, end, &mut sweep).await?;
        }
    }
    Ok(sweep.0)
}

/// The numbers of streams of a direction, by what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbers {
    /// One, which was asked for.
    One,
    /// One, since a pace was asked for: the question is whether a stream keeps it, and many at a pace say nothing about one.
    OneAtAPace,
    /// So many and no other number.
    Only(u32),
    /// One, then so many.
    OneAnd(u32),
    /// One, then more while the sum grows.
    WhileItGrows,
}

impl Numbers {
    /// `only` where nothing but throughput was asked for: a run looks at one stream whatever number it was given, and has no pace.
    pub(super) fn asked(plan: &ThroughputPlan, only: bool) -> Self {
        match plan.streams {
            Some(1) => Self::One,
            Some(streams) if only => Self::Only(streams),
            Some(streams) => Self::OneAnd(streams),
            None if only && plan.options.pacing_bps.is_some() => Self::OneAtAPace,
            None => Self::WhileItGrows,
        }
    }
}

/// More streams while the sum grows, until `end`.
async fn several(
    session: &mut ClientSession,
    direction: Direction,
    end: Option<Instant>,
    sweep: &mut Sweep,
) -> Result<(), SessionError> {
    for (at, streams) in NUMBERS.into_iter().enumerate() {
        let mut plan = plan(session, direction, streams);
        if let Some(end) = end {
            let left = end.saturating_duration_since(Instant::now());
            if at > 0 && left < SHORTEST {
                break;
            }
            plan.time = plan.time.min(left.max(SHORTEST));
        }
        if !sweep.take(pass(session, plan).await?) {
            break;
        }
    }
    Ok(())
}

/// One direction as it comes together, one number of streams after the other. Pure.
pub(super) struct Sweep(pub(super) DirectionThroughput);

impl Sweep {
    /// Begins with the pass of one stream; several were not asked for until one is taken.
    pub(super) fn new(single: Outcome<Pass>) -> Self {
        let mut sweep = Vec::new();
        note(&mut sweep, &single);
        Self(DirectionThroughput { single, multi: Outcome::skipped("--streams 1 was asked for"), sweep })
    }

    /// Takes a pass of several streams and keeps it where it gave most of these; says whether the sum has grown.
    pub(super) fn take(&mut self, done: Outcome<Pass>) -> bool {
        let way = &mut self.0;
        let before = way.sweep.iter().map(|point| point.goodput_bps).max();
        note(&mut way.sweep, &done);
        let grown = done.measured().is_some_and(|pass| grows(before, pass.goodput_bps));
        if way.multi.measured().is_none_or(|best| done.measured().is_some_and(|pass| pass.goodput_bps > best.goodput_bps)) {
            way.multi = done;
        }
        grown
    }
}

/// Whether more streams gave more than was there before.
fn grows(before: Option<BitRate>, now: BitRate) -> bool {
    before.is_none_or(|before| now.as_f64() > before.as_f64() * (1.0 + GROWTH))
}

fn note(sweep: &mut Vec<SweepPoint>, pass: &Outcome<Pass>) {
    sweep.extend(pass.measured().map(|pass| SweepPoint { streams: pass.streams, goodput_bps: pass.goodput_bps }));
}

/// Both directions at once, each with as many streams as gave most by themselves in the direction that needed more: with fewer one way
/// the other would win by its number alone.
async fn both(session: &mut ClientSession, section: &ThroughputSection) -> Result<Outcome<BothWays>, SessionError> {
    if !session.settings.throughput.ways.has_both() {
        return Ok(Outcome::skipped("both directions at once were not asked for"));
    }
    if !session.settings.scope.is_throughput() && session.settings.depth != Depth::Thorough {
        return Ok(Outcome::skipped("`weaklink throughput`, or a run with --thorough, measures both directions at once"));
    }
    let best = Direction::BOTH.into_iter().filter_map(|way| section.of(way).best()).map(|pass| pass.streams).max();
    let streams = session.settings.throughput.streams.or(best).unwrap_or(1);
    let plans = Direction::BOTH.map(|direction| {
        let mut plan = plan(session, direction, streams);
        // Both must run for one and the same time.
        plan.options.enough = None;
        if !session.settings.scope.is_throughput() {
            plan.time = session.times.both;
        }
        plan
    });
    pass_both(session, plans).await
}

/// One pass with each of several congestion controls, in each direction; the first one's stands for the direction itself. More streams
/// and both directions at once would answer another question.
async fn compare(session: &mut ClientSession, idle_rtt: Outcome<RttSummary>) -> Result<ThroughputSection, SessionError> {
    let asked = session.settings.throughput.clone();
    let not_asked = || DirectionThroughput::skipped("this direction by itself was not asked for");
    let mut section = ThroughputSection::new(not_asked(), not_asked(), idle_rtt);
    section.both = Outcome::skipped(COMPARED);
    let mut trials = Vec::new();
    for direction in Direction::BOTH.into_iter().filter(|way| asked.ways.has(*way)) {
        let mut own = None;
        for congestion in &asked.congestion {
            let mut plan = plan(session, direction, asked.streams.unwrap_or(1));
            plan.options.congestion = Some(congestion.clone());
            let pass = pass(session, plan).await?;
            own.get_or_insert_with(|| pass.clone());
            trials.push(CongestionTrial {
                direction,
                congestion: congestion.clone(),
                pass: with_its_own(pass, direction, congestion),
            });
        }
        let way = alone(own.unwrap_or_else(|| Outcome::skipped(COMPARED)), asked.streams.unwrap_or(1));
        match direction {
            Direction::Upload => section.upload = way,
            Direction::Download => section.download = way,
        }
    }
    section.congestion = Outcome::Measured(trials);
    Ok(section)
}

/// Why the rest of the ordinary test is missing.
const COMPARED: &str = "congestion controls were compared, which needs one number of streams in one direction at a time";

/// The pass of a control stands for it only where that control ran.
fn with_its_own(pass: Outcome<Pass>, direction: Direction, congestion: &str) -> Outcome<Pass> {
    let other = pass.measured().and_then(|pass| pass.method.congestion.clone()).filter(|ran| ran != congestion);
    other.map_or(pass, |ran| {
        let end = direction.sender().title();
        Outcome::skipped(format!("the {end} cannot use {congestion} (not there, or not allowed): {ran} ran instead"))
    })
}

/// A direction of which one number of streams was measured.
fn alone(pass: Outcome<Pass>, streams: u32) -> DirectionThroughput {
    let mut sweep = Vec::new();
    note(&mut sweep, &pass);
    let other = Outcome::skipped(COMPARED);
    let (single, multi) = if streams == 1 { (pass, other) } else { (other, pass) };
    DirectionThroughput { single, multi, sweep }
}

/// How long all of it takes at most, as far as it is known before.
pub fn expected(session: &ClientSession) -> Duration {
    let asked = &session.settings.throughput;
    if let Some(group) = &asked.together {
        return together::longest(group.members, asked.ways, longest(session));
    }
    let ways = Direction::BOTH.into_iter().filter(|way| asked.ways.has(*way)).count() as u32;
    if let Some(plan) = &asked.udp {
        let fixed = plan.time_us.map_or(DATAGRAMS.0, Duration::from);
        return ways * if plan.rate_bps.is_some() { fixed } else { DATAGRAMS.1 };
    }
    let pass = longest(session).min(Duration::from_secs(10));
    if asked.congestion.len() > 1 {
        return pass * ways * asked.congestion.len() as u32;
    }
    let each = if asked.streams.is_some() || asked.options.pacing_bps.is_some() { 1 } else { 1 + NUMBERS.len() as u32 };
    pass * (ways * each + u32::from(asked.ways.has_both()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gave(streams: u32, mbit: u64) -> Outcome<Pass> {
        Outcome::Measured(Pass { goodput_bps: BitRate::from_mbit(mbit), ..Pass::blank(streams) })
    }

    #[test]
    fn of_several_numbers_the_best_is_kept_and_a_failure_takes_nothing_away() {
        let mut sweep = Sweep::new(gave(1, 940));
        let grown = [gave(4, 1880), gave(8, 1850), Outcome::failed("the peer left")].map(|done| sweep.take(done));
        assert_eq!(grown, [true, false, false]);
        assert_eq!(sweep.0.multi.measured().map(|pass| pass.streams), Some(4));
        assert_eq!(sweep.0.sweep.iter().map(|point| point.streams).collect::<Vec<_>>(), [1, 4, 8]);
        let mut failed = Sweep::new(Outcome::failed("no way"));
        assert!(!failed.take(Outcome::failed("the peer left")));
        assert_eq!(failed.0.multi.why(), Some("the peer left"));
    }

    #[test]
    fn a_pace_is_kept_by_one_stream_unless_a_number_was_asked_for() {
        let pace = Some(BitRate::from_mbit(100));
        for (streams, pacing_bps, only, numbers) in [
            (None, None, true, Numbers::WhileItGrows),
            (None, pace, true, Numbers::OneAtAPace),
            (None, pace, false, Numbers::WhileItGrows),
            (Some(1), pace, true, Numbers::One),
            (Some(1), None, false, Numbers::One),
            (Some(4), pace, true, Numbers::Only(4)),
            (Some(4), None, true, Numbers::Only(4)),
            (Some(4), None, false, Numbers::OneAnd(4)),
        ] {
            let options = PassOptions { pacing_bps, ..PassOptions::default() };
            let plan = ThroughputPlan { streams, options, ..ThroughputPlan::default() };
            assert_eq!(Numbers::asked(&plan, only), numbers, "{streams:?} at {pacing_bps:?}, only: {only}");
        }
    }

    #[test]
    fn a_control_that_did_not_run_has_no_pass_and_the_first_stands_for_its_direction() {
        let ran = |name: &str| {
            gave(1, 940).map(|mut pass| {
                pass.method.congestion = Some(name.to_owned());
                pass
            })
        };
        let own = with_its_own(ran("bbr"), Direction::Upload, "bbr");
        assert_eq!(own.measured().map(|pass| pass.goodput_bps), Some(BitRate::from_mbit(940)));
        let other = with_its_own(ran("cubic"), Direction::Download, "bbr");
        assert!(other.why().is_some_and(|why| why.contains("the NAS cannot use bbr") && why.contains("cubic ran instead")));
        let way = alone(ran("cubic"), 1);
        assert!(way.single.measured().is_some() && way.multi.why() == Some(COMPARED) && way.sweep.len() == 1);
        assert!(alone(gave(4, 940), 4).multi.measured().is_some());
    }

    #[test]
    fn more_streams_are_tried_while_the_sum_grows() {
        let mbit = BitRate::from_mbit;
        for (before, now, grown) in [
            (None, mbit(1), true),
            (Some(mbit(940)), mbit(945), false),
            (Some(mbit(940)), mbit(1880), true),
            (Some(mbit(0)), mbit(0), false),
        ] {
            assert_eq!(grows(before, now), grown, "{before:?} {now}");
        }
    }
}
