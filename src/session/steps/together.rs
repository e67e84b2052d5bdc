//! Several PCs against one NAS: each alone, then all at the same moment.
//!
//! The clients know nothing of each other. Each goes through one schedule, the same at all, and between its parts they meet at
//! the agent: it answers when all have asked. A direction is, for each PC in turn, *meet, its pass*; then *meet, all passes,
//! meet, meet with the figures*. Connections are opened before the meeting, so that all begin within milliseconds of it.

use std::net::{IpAddr, TcpStream};
use std::time::Duration;

use crate::model::host::{Direction, Role};
use crate::model::outcome::Outcome;
use crate::model::plan::{TogetherPlan, Ways};
use crate::model::throughput::Bins;
use crate::model::together::{BothRates, Member, Together};
use crate::session::client::{ClientSession, unexpected};
use crate::session::error::SessionError;
use crate::session::event::{Event, Events, Step};
use crate::session::group::{Coming, MEMBERS, Meeting, WALK};
use crate::session::served::{AgentSession, wait_for};
use crate::session::steps::throughput::{PassPlan, open, pass_over};
use crate::units::{BitRate, ByteSize, Elapsed};
use crate::wire::message::{GatherRequest, Met, Token};
use crate::wire::{Reply, Request};

/// The shortest and the longest pass. Below a second too little is left between slow start and end; the agent takes no pass that
/// is longer than two minutes.
const TIMES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(120));

/// The streams of each PC where no number was asked for: enough that neither a core nor the hash of an aggregation holds a PC back.
const STREAMS: u32 = 4;

/// How much longer than a pass somebody may take on the way to a meeting: opening connections, the path MTU of one that came later.
const ROOM: Duration = Duration::from_secs(60);

/// What a pass costs beside its time: connections, meeting, the end of the streams.
const BESIDE: Duration = Duration::from_secs(1);

/// The agent's side of `Gather`.
pub async fn gather_at_agent(session: &mut AgentSession, asked: GatherRequest) -> Reply {
    let place = session.place.clone();
    let coming = tokio::select! {
        coming = place.gather(&asked) => coming,
        // It is lost: the session's loop sees the flag and says how.
        () = wait_for(&session.stop) => return Reply::Alive,
    };
    match coming {
        Ok(coming) => {
            session.announce();
            match coming {
                Coming::Waiting(present) => {
                    Reply::Waiting { present, left_us: place.gathering().map(|gathering| gathering.left_us) }
                }
                Coming::Complete(gathered) => {
                    let (ip, all) = (session.peer.ip(), gathered.addresses.len());
                    session.note(format!("{ip}: PC {} of {all} in the group {}", gathered.index + 1, asked.name));
                    Reply::Gathered(gathered)
                }
            }
        }
        Err(turned) => {
            session.turn_away(&turned);
            turned.reply()
        }
    }
}

/// The agent's side of `Meet`.
pub async fn meet_at_agent(session: &mut AgentSession, told: Option<BitRate>, wait: Elapsed) -> Reply {
    tokio::select! {
        meeting = session.place.meet(told, wait) => match meeting {
            Meeting::Met(met) => Reply::Met(met),
            Meeting::Broken(reason) => Reply::Refused(reason),
            Meeting::Waiting => Reply::Refused("the others are still missing".to_owned()),
        },
        () = wait_for(&session.stop) => Reply::Alive,
    }
}

/// PCs that have come together, as one of them sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gathered {
    /// The name that they met under.
    pub name: String,
    /// Which of them we are, counted from 0.
    pub own: usize,
    /// Their addresses as the NAS sees them, in the order of their coming.
    pub addresses: Vec<IpAddr>,
    /// Which directions all of them measure.
    pub ways: Ways,
    /// The time for each pass, the same at all.
    pub time: Duration,
}

/// The longest that [`measure`] takes when nobody is late.
pub fn longest(members: u32, ways: Ways, time: Duration) -> Duration {
    let directions = [Direction::Upload, Direction::Download].into_iter().filter(|direction| ways.has(*direction)).count();
    (time.clamp(TIMES.0, TIMES.1) + BESIDE) * u32::try_from(directions).unwrap_or(2) * (members.min(*MEMBERS.end()) + 1)
}

/// Waits until all PCs of the group are there.
///
/// It should be the first that a session asks: before it, the agent turns the other PCs away as it does during any diagnosis.
///
/// # Errors
/// The others did not come, or want something else ([`SessionError::Group`]); or the session ended.
pub async fn gather(
    session: &mut ClientSession,
    plan: &TogetherPlan,
    ways: Ways,
    time: Duration,
) -> Result<Gathered, SessionError> {
    let time_us = time.clamp(TIMES.0, TIMES.1).into();
    let asked = GatherRequest { name: plan.name.clone(), members: plan.members, ways, time_us };
    let mut seen = 0;
    loop {
        match session.ask(Request::Gather(asked.clone())).await? {
            Reply::Waiting { present, left_us } => {
                // One that leaves gives the others no more time: only the agent knows how much is left.
                let left = left_us.map(Duration::from).or((seen != present).then_some(WALK));
                if let Some(expected) = left {
                    session.events.tell(Event::Begin { expected });
                }
                if seen != present {
                    let text =
                        format!("waiting for the other PCs of the group {}: {present} of {} here", plan.name, plan.members);
                    session.events.part(Step::Throughput, text, left.unwrap_or(WALK), None);
                }
                seen = present;
            }
            Reply::Gathered(all) if all.addresses.len() == plan.members as usize && all.index < plan.members => {
                return Ok(Gathered {
                    name: plan.name.clone(),
                    own: all.index as usize,
                    addresses: all.addresses,
                    ways,
                    time: Duration::from(all.time_us).clamp(TIMES.0, TIMES.1),
                });
            }
            Reply::Refused(why) => return Err(SessionError::Group(why)),
            other => return Err(unexpected(&other)),
        }
    }
}

/// Measures each PC alone, then all at the same moment, in each direction of the group.
///
/// When a PC is lost on the way, what was measured until then stays and [`Together::ended`] says why no more; without anything
/// measured together it is a failure.
///
/// # Errors
/// The session with the agent ended.
pub async fn measure(session: &mut ClientSession, group: &Gathered) -> Result<Outcome<Together>, SessionError> {
    let directions: Vec<Direction> =
        [Direction::Upload, Direction::Download].into_iter().filter(|direction| group.ways.has(*direction)).collect();
    if directions.is_empty() {
        return Ok(Outcome::skipped("several PCs measure one direction after the other, and both at once was asked for"));
    }
    let blank =
        |address: &IpAddr| Member { address: address.to_string(), alone: BothRates::default(), together: BothRates::default() };
    let result = Together {
        name: group.name.clone(),
        own: u32::try_from(group.own).unwrap_or(u32::MAX),
        members: group.addresses.iter().map(blank).collect(),
        ended: None,
    };
    let mut party = Party { session, group, result };
    for direction in directions {
        match party.direction(direction).await {
            Ok(()) => {}
            Err(Halt::Session(error)) => return Err(error),
            Err(Halt::Broken(reason)) => {
                party.result.ended = Some(reason);
                break;
            }
        }
    }
    let Together { ended, members, .. } = &party.result;
    let measured = members.iter().any(|member| member.together != BothRates::default());
    Ok(match ended {
        Some(reason) if !measured => Outcome::failed(reason.clone()),
        _ => Outcome::Measured(party.result),
    })
}

/// Why the schedule ends early.
enum Halt {
    /// The others will not be met any more.
    Broken(String),
    /// The agent is lost.
    Session(SessionError),
}

impl From<SessionError> for Halt {
    fn from(error: SessionError) -> Self {
        Self::Session(error)
    }
}

/// Connections that are open and wait for their pass.
type Ready = Result<(Vec<Token>, Vec<TcpStream>), String>;

/// One PC's way through the schedule.
struct Party<'a> {
    session: &'a mut ClientSession,
    group: &'a Gathered,
    result: Together,
}

impl Party<'_> {
    fn count(&self) -> usize {
        self.group.addresses.len()
    }

    async fn direction(&mut self, direction: Direction) -> Result<(), Halt> {
        let (count, own, time) = (self.count(), self.group.own, self.group.time);
        let arrow = direction.arrow();
        let mut alone = None;
        for turn in 0..count {
            let part = format!("PC {} of {count} alone", turn + 1);
            if turn == own {
                let ready = self.ready().await?;
                self.meet(None).await?;
                let bins = self.pass(direction, ready, &format!("{part}, this one: ")).await?;
                alone = bins.and_then(|bins| rate(&bins, steady(time)));
            } else {
                self.meet(None).await?;
                self.session.events.part(Step::Throughput, format!("{part}, {arrow}"), time, None);
            }
        }
        let ready = self.ready().await?;
        let met = self.meet(alone).await?;
        self.keep(&met, direction, |member| &mut member.alone);
        let all = if count == 2 { "both PCs".to_owned() } else { format!("all {count} PCs") };
        let bins = self.pass(direction, ready, &format!("{all} at once: ")).await?;
        let met = self.meet(None).await?;
        let common = common(&met.began_us, own, time);
        if let Err(reason) = &common {
            self.session.events.tell(Event::Note(format!("No rates of all PCs at once, {arrow}: {reason}.")));
        }
        let together = bins.and_then(|bins| rate(&bins, common.ok()?));
        let met = self.meet(together).await?;
        self.keep(&met, direction, |member| &mut member.together);
        Ok(())
    }

    /// A pass of the group's time. Nothing else ends it: all go on for the same time.
    fn plan(&self, direction: Direction) -> PassPlan {
        let mut plan = PassPlan::one(self.session, direction, self.group.time);
        plan.streams = self.session.settings.throughput.streams.unwrap_or(STREAMS);
        (plan.options.max_bytes, plan.options.enough) = (None, None);
        plan
    }

    /// Opens the connections of the next pass. Without them the others are still met.
    async fn ready(&mut self) -> Result<Ready, SessionError> {
        let plan = self.plan(Direction::Upload);
        let tokens = self.session.tokens(plan.streams).await?;
        let connections = open(self.session, &tokens, plan.clamp, &plan.options).await;
        Ok(connections.map(|connections| (tokens, connections)))
    }

    /// Waits for all others.
    async fn meet(&mut self, told: Option<BitRate>) -> Result<Met, Halt> {
        let wait_us = (self.group.time + ROOM).into();
        match self.session.ask(Request::Meet { told, wait_us }).await? {
            Reply::Met(met) if met.told.len() == self.count() && met.began_us.len() == self.count() => Ok(met),
            Reply::Refused(reason) => Err(Halt::Broken(reason)),
            other => Err(unexpected(&other).into()),
        }
    }

    /// Our pass; none when it failed, which is told.
    async fn pass(&mut self, direction: Direction, ready: Ready, what: &str) -> Result<Option<Bins>, SessionError> {
        let events = self.session.events.clone();
        self.session.events = prefixed(events.clone(), what.to_owned());
        let pass = match ready {
            Ok((tokens, connections)) => {
                let plan = self.plan(direction);
                pass_over(self.session, plan, tokens, connections).await
            }
            Err(reason) => Ok(Outcome::failed(reason)),
        };
        self.session.events = events;
        Ok(match pass? {
            Outcome::Measured(pass) => Some(pass.bins),
            Outcome::Skipped(why) | Outcome::Failed(why) => {
                let nas = Role::Nas.title();
                self.session.events.tell(Event::Note(format!("{what}the pass with the {nas} failed: {}", why.reason)));
                None
            }
        })
    }

    fn keep(&mut self, met: &Met, direction: Direction, rates: impl Fn(&mut Member) -> &mut BothRates) {
        for (member, told) in self.result.members.iter_mut().zip(&met.told) {
            let rates = rates(member);
            match direction {
                Direction::Upload => rates.upload_bps = *told,
                Direction::Download => rates.download_bps = *told,
            }
        }
    }
}

/// The same events, each part with a word in front.
fn prefixed(events: Events, prefix: String) -> Events {
    let interrupt = events.interrupt.clone();
    let tell = move |event| {
        events.tell(match event {
            Event::Part { step, what, expected, watch } => Event::Part { step, what: format!("{prefix}{what}"), expected, watch },
            other => other,
        });
    };
    Events::new(tell, interrupt)
}

/// From when to when of a pass, counted from its first byte.
type Span = (Duration, Duration);

/// The part of a pass without its slow start and its end: a quarter of it, 0.3 to 1 s, and a tenth, 0.1 to 0.5 s.
fn steady(time: Duration) -> Span {
    let ms = Duration::from_millis;
    let end = time.saturating_sub((time / 10).clamp(ms(100), ms(500)));
    ((time / 4).clamp(ms(300), ms(1000)), end)
}

/// The time in which all were in the steady part of their passes, as one of them counts it.
///
/// # Errors
/// There is none that is worth the name, less than a third of a pass: why.
fn common(began: &[Option<Elapsed>], own: usize, time: Duration) -> Result<Span, String> {
    let began: Option<Vec<Duration>> = began.iter().map(|began| began.map(Duration::from)).collect();
    let began = began.ok_or("not every PC had a pass")?;
    let latest = began.iter().max().copied().unwrap_or_default();
    let own = began.get(own).copied().ok_or("this PC had no pass")?;
    let (from, until) = steady(time);
    let (from, until) = (from.saturating_add(latest).saturating_sub(own), until.saturating_sub(own));
    if until.saturating_sub(from) < time / 3 {
        let (late, pass) = (latest.as_millis(), time.as_secs_f64());
        return Err(format!("one began its pass of {pass:.1} s only {late} ms after another"));
    }
    Ok((from, until))
}

/// What arrived a second in a part of a pass. Bins that are missing at its end hold nothing: a stall is time too.
fn rate(bins: &Bins, (from, until): Span) -> Option<BitRate> {
    let interval = Duration::from(bins.interval_us);
    if interval.is_zero() || bins.bytes.is_empty() {
        return None;
    }
    let first = usize::try_from(from.as_nanos().div_ceil(interval.as_nanos())).ok()?;
    let last = usize::try_from(until.as_nanos() / interval.as_nanos()).ok()?;
    let whole = u32::try_from(last.checked_sub(first)?).ok().filter(|whole| *whole > 0)?;
    let bytes = bins.bytes.iter().skip(first).take(last - first).copied().fold(0, u64::saturating_add);
    Some(BitRate::of(ByteSize(bytes), interval.checked_mul(whole)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn began(list: &[Option<u64>]) -> Vec<Option<Elapsed>> {
        list.iter().map(|at| at.map(|at| MS(at).into())).collect()
    }

    #[test]
    fn the_common_time_is_the_same_moment_on_everybodys_clock() {
        let all = began(&[Some(40), Some(0), Some(250)]);
        for (own, offset) in [(0, 40), (1, 0), (2, 250)] {
            let (from, until) = common(&all, own, MS(3000)).unwrap();
            assert_eq!((from + MS(offset), until + MS(offset)), (MS(1000), MS(2700)), "PC {own}");
        }
    }

    #[test]
    fn too_little_common_time_or_a_missing_pass_is_told() {
        for (list, word) in
            [(vec![Some(0), Some(2000)], "2000 ms after another"), (vec![Some(0), None], "not every PC"), (vec![], "no pass")]
        {
            let why = common(&began(&list), 0, MS(3000)).unwrap_err();
            assert!(why.contains(word), "{why}");
        }
    }

    #[test]
    fn the_rate_is_that_of_the_whole_bins_inside_and_a_stall_counts() {
        let bins = |bytes: Vec<u64>| Bins { interval_us: MS(100).into(), bytes };
        let flat = vec![1_250_000; 10];
        for (name, bytes, span, mbit) in [
            ("an even flow", flat.clone(), (MS(300), MS(900)), Some(100)),
            ("edges inside bins count inwards", flat.clone(), (MS(350), MS(899)), Some(100)),
            ("half of it stalled", vec![1_250_000; 6], (MS(300), MS(900)), Some(50)),
            ("no bin at all", vec![], (MS(300), MS(900)), None),
            ("no whole bin inside", flat, (MS(310), MS(390)), None),
        ] {
            assert_eq!(rate(&bins(bytes), span).map(|rate| rate.0 / 1_000_000), mbit, "{name}");
        }
    }

    #[test]
    fn the_longest_time_follows_the_schedule() {
        assert_eq!(longest(2, Ways::All, MS(3000)), MS(24_000));
        assert_eq!(longest(3, Ways::Upload, MS(3000)), MS(16_000));
    }

    proptest! {
        #[test]
        fn foreign_numbers_never_panic(
            list in proptest::collection::vec(proptest::option::of(any::<u64>()), 0..5), own in 0usize..6, time in 0u64..200_000,
            bytes in proptest::collection::vec(any::<u64>(), 0..20), interval in any::<u64>()
        ) {
            let list: Vec<_> = list.into_iter().map(|at| at.map(Elapsed)).collect();
            let bins = Bins { interval_us: Elapsed(interval), bytes };
            if let Ok(span) = common(&list, own, MS(time)) {
                let _ = rate(&bins, span);
            }
            let _ = rate(&bins, steady(MS(time)));
        }
    }
}
