//! The links: each end describes itself and the interface that leads to the other.

use std::net::IpAddr;
use std::time::Duration;

use crate::cpu::Sampler;
use crate::model::cpu::CpuWindow;
use crate::model::document::Document;
use crate::model::link::{HostLink, LinkSection};
use crate::model::outcome::Outcome;
use crate::model::plan::Scope;
use crate::session::around::tree;
use crate::session::client::{ClientSession, unexpected};
use crate::session::error::SessionError;
use crate::session::event::Step;
use crate::session::listening::Listening;
use crate::session::served::{AgentSession, blocking};
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

fn look(local: IpAddr, peer: IpAddr, idle: Duration) -> (Outcome<HostLink>, Outcome<CpuWindow>) {
    if idle.is_zero() {
        return (crate::link::collect(local, peer, &tree()), Outcome::skipped("nobody asked for the processors at rest"));
    }
    let sampler = Sampler::start(Duration::from_millis(200));
    let link = crate::link::collect(local, peer, &tree());
    std::thread::sleep(idle.min(LONGEST_IDLE));
    (link, sampler.finish())
}

/// The agent's side.
pub async fn agent(session: &mut AgentSession, idle: Duration) -> Reply {
    let (local, peer) = (session.local.ip(), session.peer.ip());
    let (link, idle) = blocking(move || look(local, peer, idle)).await;
    if let Some(link) = link.measured() {
        session.interfaces = crate::link::host_interface_names(link);
        session.listening = Some(Listening::start(link));
    }
    Reply::Described(Box::new(Described { host: crate::cpu::describe(), link, idle }))
}

/// The agent's side: what its switch said until now, or says while the client waits.
pub async fn neighbours_at_agent(session: &mut AgentSession, wait: Duration) -> Reply {
    Reply::Neighbours(match session.listening.take() {
        Some(listening) => listening.end(wait).await,
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
    let reply = session.ask(Request::Neighbours { wait_us: wait.into() }).await?;
    let Reply::Neighbours(theirs) = reply else { return Err(unexpected(&reply)) };
    let ours = ours.await.unwrap_or_else(|_| Outcome::failed("listening for the switch broke off"));
    if let Some(links) = document.measurements.link.measured_mut() {
        for (link, heard) in [(&mut links.pc, ours), (&mut links.nas, theirs)] {
            if let Some(link) = link.measured_mut() {
                link.neighbours = heard;
            }
        }
    }
    Ok(())
}

/// The client's side.
pub async fn client(session: &mut ClientSession, document: &mut Document) -> Result<Idle, SessionError> {
    let (idle, what) = match session.settings.scope {
        Scope::Run | Scope::Throughput | Scope::ThroughputIperf3 => (IDLE, "ports, routes and processors at rest"),
        Scope::Mtu | Scope::MtuWithoutAgent => (Duration::ZERO, "ports and routes"),
    };
    session.events.part(Step::Link, what, idle, None);
    let (local, peer) = (session.local.ip(), session.peer.ip());
    let ours = tokio::spawn(blocking(move || look(local, peer, idle)));
    let reply = session.ask(Request::Describe { idle_us: idle.into() }).await?;
    let Reply::Described(theirs) = reply else { return Err(unexpected(&reply)) };
    let (mut pc, idle) =
        ours.await.unwrap_or_else(|_| (Outcome::failed("the look at the links broke off"), Outcome::failed("it broke off")));
    let mut nas = theirs.link;
    if let Some(link) = pc.measured_mut() {
        link.stated_speed_bps = session.settings.stated_pc;
        session.interfaces = crate::link::host_interface_names(link);
        session.listening = Some(Listening::start(link));
    }
    if let Some(link) = nas.measured_mut() {
        link.stated_speed_bps = session.settings.stated_nas;
    }
    document.hosts.nas = Outcome::Measured(theirs.host);
    document.measurements.link = Outcome::Measured(LinkSection { pc, nas });
    Ok(Idle { pc: idle, nas: theirs.idle })
}
