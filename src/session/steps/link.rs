//! The links: each end describes itself and the interface that leads to the other.

use std::net::IpAddr;
use std::time::Duration;

use crate::cpu::Sampler;
use crate::model::cpu::CpuWindow;
use crate::model::document::Document;
use crate::model::link::{HostLink, LinkSection};
use crate::model::outcome::Outcome;
use crate::session::around::tree;
use crate::session::client::{ClientSession, unexpected};
use crate::session::error::SessionError;
use crate::session::event::Step;
use crate::session::served::{AgentSession, blocking};
use crate::throughput::CAPACITY_CONGESTION;
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

fn look(local: IpAddr, peer: IpAddr) -> (Outcome<HostLink>, Outcome<CpuWindow>) {
    let sampler = Sampler::start(Duration::from_millis(200));
    let link = crate::link::collect(local, peer, &tree());
    std::thread::sleep(IDLE);
    (link, sampler.finish())
}

/// The agent's side.
pub async fn agent(session: &mut AgentSession) -> Reply {
    let (local, peer) = (session.local.ip(), session.peer.ip());
    let (link, idle) = blocking(move || look(local, peer)).await;
    if let Some(link) = link.measured() {
        session.interfaces = crate::link::host_interface_names(link);
    }
    Reply::Described(Box::new(Described { host: crate::cpu::describe(), link, idle }))
}

/// The client's side.
pub async fn client(session: &mut ClientSession, document: &mut Document) -> Result<Idle, SessionError> {
    session.events.part(Step::Link, "ports, routes and processors at rest", IDLE, None);
    let (local, peer) = (session.local.ip(), session.peer.ip());
    let ours = tokio::spawn(blocking(move || look(local, peer)));
    let reply = session.ask(Request::Describe).await?;
    let Reply::Described(theirs) = reply else { return Err(unexpected(&reply)) };
    let (mut pc, idle) =
        ours.await.unwrap_or_else(|_| (Outcome::failed("the look at the links broke off"), Outcome::failed("it broke off")));
    let mut nas = theirs.link;
    if let Some(link) = pc.measured_mut() {
        link.stated_speed_bps = session.settings.stated_pc;
        session.interfaces = crate::link::host_interface_names(link);
    }
    if let Some(link) = nas.measured_mut() {
        link.stated_speed_bps = session.settings.stated_nas;
    }
    let congestion = session.settings.congestion.clone().unwrap_or_else(|| CAPACITY_CONGESTION.to_owned());
    session.congestion = Some(congestion);
    document.hosts.nas = Outcome::Measured(theirs.host);
    document.measurements.link = Outcome::Measured(LinkSection { pc, nas });
    Ok(Idle { pc: idle, nas: theirs.idle })
}
