//! The links: each end describes itself and the interface that leads to the other.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use crate::cpu::Sampler;
use crate::link::LogFollower;
use crate::model::cpu::CpuWindow;
use crate::model::document::{Document, Measurements};
use crate::model::host::Direction;
use crate::model::link::{HostLink, LinkSection, Watched};
use crate::model::link_event::LogRest;
use crate::model::outcome::Outcome;
use crate::model::plan::Scope;
use crate::model::throughput::{DirectionThroughput, ThroughputSection};
use crate::session::around::{grown, tree};
use crate::session::client::{ClientSession, interrupted, unexpected};
use crate::session::error::SessionError;
use crate::session::event::Step;
use crate::session::listening::Listening;
use crate::session::served::{AgentSession, blocking};
use crate::session::settings::LinkWishes;
use crate::session::steps::throughput::{PassPlan, pass};
use crate::sys::Stop;
use crate::wire::hello::ProtocolVersion;
use crate::wire::message::Described;
use crate::wire::{Reply, Request};

/// How long the idle processors are looked at: enough for ten kernel ticks of 10 ms at a few per cent.
const IDLE: Duration = Duration::from_millis(600);

/// What the processors of each end do before the test.
#[derive(Debug)]
pub struct Idle {
    /// The PC's.
    pub pc: Outcome<CpuWindow>,
    /// The NAS's.
    pub nas: Outcome<CpuWindow>,
}

/// The longest look that an agent agrees to.
const LONGEST_IDLE: Duration = Duration::from_secs(5);

/// Begins to follow the kernel's log where it can be read at all: else its reason is told already.
pub fn follow_log(link: &HostLink) -> Option<LogFollower> {
    link.events.measured().map(|_| LogFollower::start(&link.stack, &tree()))
}

/// What the log told meanwhile.
pub async fn rest_of_log(log: Option<LogFollower>) -> Outcome<LogRest> {
    match log {
        Some(log) => blocking(move || log.end()).await,
        None => Outcome::skipped("nobody followed the kernel's log"),
    }
}

/// The link, the processors at rest, and the log, which is followed from the look at the link on: a second of rest is of the run.
type Look = (Outcome<HostLink>, Outcome<CpuWindow>, Option<LogFollower>);

fn look(local: IpAddr, peer: SocketAddr, idle: Duration) -> Look {
    if idle.is_zero() {
        let link = crate::link::collect(local, peer, &tree());
        let log = link.measured().and_then(follow_log);
        return (link, Outcome::skipped("nobody asked for the processors at rest"), log);
    }
    let sampler = Sampler::start(Duration::from_millis(200));
    let link = crate::link::collect(local, peer, &tree());
    let log = link.measured().and_then(follow_log);
    std::thread::sleep(idle.min(LONGEST_IDLE));
    (link, sampler.finish(), log)
}

/// The agent's side.
pub async fn agent(session: &mut AgentSession, idle: Duration) -> Reply {
    let (local, peer) = (session.local.ip(), session.peer);
    let (link, idle, log) = blocking(move || look(local, peer, idle)).await;
    session.log = log;
    if let Some(link) = link.measured() {
        session.interfaces = crate::link::host_interface_names(link);
        session.link = Some(Arc::new(link.clone()));
        session.listening = Some(Listening::start(link));
    }
    Reply::Described(Box::new(Described { host: crate::cpu::describe(), link, idle }))
}

/// The agent's side: what its switch said until now, or says while the client waits.
pub async fn neighbours_at_agent(session: &mut AgentSession, wait: Duration) -> Reply {
    let stop = session.stop.clone();
    Reply::Neighbours(match session.listening.take() {
        // A client that has gone waits for nothing, and another one waits for this agent.
        Some(listening) => tokio::select! {
            heard = listening.end(wait) => heard,
            () = interrupted(&stop) => Outcome::skipped("the client has gone"),
        },
        None => Outcome::skipped("the interface towards the PC is not known, so nobody listened for its switch"),
    })
}

/// Both ends: what the switches said while the other steps ran, into the links that are already there.
pub async fn neighbours(session: &mut ClientSession, document: &mut Document) -> Result<(), SessionError> {
    let wait = session.settings.lldp;
    if !wait.is_zero() {
        session.events.part(Step::Link, "waiting for what the switches say of their ports (LLDP)", wait, None);
    }
    let ours = session.listening.take();
    let ours = tokio::spawn(async move {
        match ours {
            Some(listening) => listening.end(wait).await,
            None => Outcome::skipped("the interface towards the NAS is not known, so nobody listened for its switch"),
        }
    });
    let hops = hops(session).await;
    let reply = session.ask(Request::Neighbours { wait_us: wait.into() }).await?;
    let Reply::Neighbours(theirs) = reply else { return Err(unexpected(&reply)) };
    let ours = ours.await.unwrap_or_else(|_| Outcome::failed("listening for the switch broke off"));
    let rest = log_at_agent(session, document).await?;
    if let Some(links) = document.measurements.link.measured_mut() {
        links.hops = hops;
        if let Some((nas, rest)) = links.nas.measured_mut().zip(rest) {
            nas.add_log(rest);
        }
        for (link, heard) in [(&mut links.pc, ours), (&mut links.nas, theirs)] {
            if let Some(link) = link.measured_mut() {
                link.neighbours = heard;
            }
        }
    }
    Ok(())
}

/// What the agent's log told while the run went on; none where it could not be read at the beginning.
async fn log_at_agent(session: &mut ClientSession, document: &Document) -> Result<Option<Outcome<LogRest>>, SessionError> {
    let nas = document.measurements.link.measured().and_then(|links| links.nas.measured());
    if nas.is_none_or(|nas| nas.events.measured().is_none()) {
        return Ok(None);
    }
    if let Some(reason) = too_old(session.agent_version()) {
        return Ok(Some(Outcome::skipped(reason)));
    }
    match session.ask(Request::Log).await? {
        Reply::Log(rest) => Ok(Some(rest)),
        other => Err(unexpected(&other)),
    }
}

/// What this end's log told while the run went on, whether it came to its end or not: a run that broke off wants its reason most.
pub async fn end_of_log(session: &mut ClientSession, document: &mut Document) {
    end_of_own_log(session.log.take(), document).await;
    let Some(links) = document.measurements.link.measured_mut() else { return };
    if let Some(nas) = links.nas.measured_mut().filter(|nas| nas.log_followed.is_none()) {
        nas.add_log(Outcome::skipped("the run ended before the NAS's log was read again"));
    }
}

/// What this end's log told while something was measured.
pub async fn end_of_own_log(log: Option<LogFollower>, document: &mut Document) {
    let rest = rest_of_log(log).await;
    let pc = document.measurements.link.measured_mut().and_then(|links| links.pc.measured_mut());
    if let Some(pc) = pc {
        pc.add_log(rest);
    }
}

/// The minor version of the protocol from which on an agent follows its kernel's log.
const LOG_SINCE: u16 = 2;

/// Why an agent of this version is not asked for its log: it would not understand the question, and end the session.
fn too_old(agent: ProtocolVersion) -> Option<&'static str> {
    (agent.minor < LOG_SINCE).then_some(
        "the NAS's weaklink is older and reads its kernel's log at the beginning only: install the same version at both ends",
    )
}

/// The hops to the agent. It comes after everything else: routers that say something of each packet whose hops are used up say nothing
/// for a second then, and the search for the path MTU asks them for more.
async fn hops(session: &ClientSession) -> Outcome<u8> {
    if session.settings.scope.is_mtu() {
        return Outcome::skipped("not asked for");
    }
    match &session.udp {
        Ok(endpoint) => {
            let (endpoint, stop) = (Arc::clone(endpoint), session.stop.clone());
            blocking(move || endpoint.hops(&stop)).await
        }
        Err(why) => Outcome::skipped(format!("UDP does not reach the NAS, so the hops to it were not counted: {why}")),
    }
}

/// The client's side.
pub async fn client(session: &mut ClientSession, document: &mut Document) -> Result<Idle, SessionError> {
    let (idle, what) = match session.settings.scope {
        Scope::Run | Scope::Throughput | Scope::ThroughputIperf3 => (IDLE, "ports, routes and processors at rest"),
        Scope::Mtu | Scope::MtuWithoutAgent | Scope::Link | Scope::LinkWithoutAgent | Scope::LinkOfHost => {
            (Duration::ZERO, "ports and routes")
        }
    };
    session.events.part(Step::Link, what, idle, None);
    let (local, peer) = (session.local.ip(), session.peer);
    let ours = tokio::spawn(blocking(move || look(local, peer, idle)));
    let reply = session.ask(Request::Describe { idle_us: idle.into() }).await?;
    let Reply::Described(theirs) = reply else { return Err(unexpected(&reply)) };
    let broke_off = |_| (Outcome::failed("the look at the links broke off"), Outcome::failed("it broke off"), None);
    let (mut pc, idle, log) = ours.await.unwrap_or_else(broke_off);
    session.log = log;
    let mut nas = theirs.link;
    if let Some(link) = pc.measured_mut() {
        link.stated_speed_bps = session.settings.stated_pc;
        session.interfaces = crate::link::host_interface_names(link);
        session.link = Some(Arc::new(link.clone()));
        session.listening = Some(Listening::start(link));
    }
    if let Some(link) = nas.measured_mut() {
        link.stated_speed_bps = session.settings.stated_nas;
    }
    document.hosts.nas = Outcome::Measured(theirs.host);
    document.measurements.link = Outcome::Measured(LinkSection::new(pc, nas));
    Ok(Idle { pc: idle, nas: theirs.idle })
}

/// How long the ports are loaded in each direction: a port at 2.5 Gbit/s sees 200,000 frames in it.
const LOAD: Duration = Duration::from_secs(1);

/// The streams of that load: enough that both ports of an aggregation carry some with a chance of 99 %.
const LOAD_STREAMS: u32 = 8;

/// Says what stays unmeasured where only the links were asked for.
pub const LINKS_ONLY: &str = "`weaklink link` looks at the links only";

/// How long that takes at most.
pub fn expected(wishes: LinkWishes) -> Duration {
    wishes.watch + if wishes.load { LOAD * 2 + Duration::from_secs(1) } else { Duration::ZERO }
}

/// The links are described; what is left is a load, a watch, and what the switches say.
pub async fn only(session: &mut ClientSession, document: &mut Document) -> Result<(), SessionError> {
    let wishes = session.settings.links;
    let Measurements { mtu, cpu, storage, copy, .. } = Measurements::none(LINKS_ONLY);
    let parts = &mut document.measurements;
    (parts.mtu, parts.cpu, parts.storage, parts.copy) = (mtu, cpu, storage, copy);
    // Where the load breaks off, what is known of the links stays, and what one direction carried.
    let loaded = if wishes.load {
        load(session, document).await
    } else {
        parts.throughput = Outcome::skipped("not asked for (--no-load)");
        Ok(())
    };
    attach_spreads(session, document);
    loaded?;
    if !wishes.watch.is_zero() {
        let watched = watch(session, wishes.watch).await?;
        if let Some(links) = document.measurements.link.measured_mut() {
            links.watched = Outcome::Measured(watched);
        }
    }
    neighbours(session, document).await
}

/// The ports that the connections of the passes took, into the links that are already there.
pub fn attach_spreads(session: &mut ClientSession, document: &mut Document) {
    let [pc, nas] = std::mem::take(&mut session.spreads);
    if let Some(links) = document.measurements.link.measured_mut() {
        for (link, spread) in [(&mut links.pc, pc), (&mut links.nas, nas)] {
            if let (Some(link), Some(spread)) = (link.measured_mut(), spread) {
                link.flows = spread.map(Box::new);
            }
        }
    }
}

/// Several streams in each direction.
async fn load(session: &mut ClientSession, document: &mut Document) -> Result<(), SessionError> {
    let upload = load_one(session, Direction::Upload).await?;
    let (download, ended) = match load_one(session, Direction::Download).await {
        Ok(download) => (download, Ok(())),
        Err(error) => {
            let multi = Outcome::failed(error.to_string());
            (DirectionThroughput { multi, ..DirectionThroughput::skipped(LINKS_ONLY) }, Err(error))
        }
    };
    let section = ThroughputSection::new(upload, download, Outcome::skipped(LINKS_ONLY));
    document.measurements.throughput = Outcome::Measured(section);
    ended
}

async fn load_one(session: &mut ClientSession, direction: Direction) -> Result<DirectionThroughput, SessionError> {
    let plan = PassPlan { streams: LOAD_STREAMS, ..PassPlan::one(session, direction, LOAD) };
    let multi = pass(session, plan).await?;
    Ok(DirectionThroughput { single: Outcome::skipped(LINKS_ONLY), multi, sweep: Vec::new() })
}

/// The counters of both ends while weaklink moves nothing.
async fn watch(session: &mut ClientSession, time: Duration) -> Result<Watched, SessionError> {
    session.events.part(Step::Link, "watching the counters", time, None);
    let reply = session.ask(Request::StartSampling).await?;
    let Reply::Sampling = reply else { return Err(unexpected(&reply)) };
    let pc = watch_here(&session.interfaces, time, &session.stop).await;
    let reply = session.ask(Request::StopSampling).await?;
    let Reply::Sampled(around) = reply else { return Err(unexpected(&reply)) };
    Ok(Watched { nas: around.counters, ..pc })
}

/// The counters of this host alone over `time`, or until `stop` is set.
pub async fn watch_here(interfaces: &[String], time: Duration, stop: &Stop) -> Watched {
    let began = tokio::time::Instant::now();
    let before = crate::link::counters(interfaces, &tree());
    tokio::select! {
        () = tokio::time::sleep(time) => {}
        () = interrupted(stop) => {}
    }
    let pc = grown(before, crate::link::counters(interfaces, &tree()));
    Watched { elapsed_us: began.elapsed().into(), pc, nas: Outcome::skipped("no agent took part") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::hello::PROTOCOL;

    #[test]
    fn an_older_agent_is_not_asked_for_a_log_that_it_does_not_know() {
        for minor in [0, 1] {
            let why = too_old(ProtocolVersion { minor, ..PROTOCOL });
            assert!(why.is_some_and(|why| why.contains("install the same version")), "{minor}");
        }
        for minor in [LOG_SINCE, PROTOCOL.minor, PROTOCOL.minor + 1] {
            assert_eq!(too_old(ProtocolVersion { minor, ..PROTOCOL }), None, "{minor}");
        }
    }

    #[tokio::test]
    async fn a_log_that_nobody_followed_has_a_reason() {
        assert_eq!(rest_of_log(None).await.why(), Some("nobody followed the kernel's log"));
    }
}
