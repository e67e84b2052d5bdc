//! The links as this end alone knows them: towards a host that runs no agent, or all ports whoever is at their other ends.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::model::document::{Document, Measurements};
use crate::model::link::{HostLink, LinkSection};
use crate::model::outcome::Outcome;
use crate::model::plan::{Depth, Plan, Scope, Workload};
use crate::mtu::FILE_SERVICES;
use crate::session::alone::own_link;
use crate::session::around::tree;
use crate::session::client::{Run, blank, interrupted, now};
use crate::session::dial::{Family, Target, resolve};
use crate::session::error::SessionError;
use crate::session::event::{Event, Events, Step};
use crate::session::listening::Listening;
use crate::session::served::blocking;
use crate::session::steps::link::{LINKS_ONLY, follow_log, rest_of_log, watch_here};
use crate::units::{BitRate, ByteSize};

/// What is to be found out about links without an agent.
#[derive(Clone, Debug)]
pub struct LinkSettings {
    /// The host at the other end; none: all ports of this host.
    pub target: Option<Target>,
    /// Which addresses of it.
    pub family: Family,
    /// How long to watch the counters.
    pub watch: Duration,
    /// How long to wait at the end for a switch that has not spoken yet.
    pub lldp: Duration,
    /// The PC's true link speed, as the user says.
    pub stated_pc: Option<BitRate>,
}

/// Why nothing is known of the other end.
const NO_AGENT: &str = "no agent took part (--no-agent): `weaklink serve` on the NAS would tell";

/// Why there is no other end.
const NO_HOST: &str = "no host was named: these are the ports of this host";

/// Looks at the links of this end.
pub async fn look_at_links(settings: LinkSettings, events: Events) -> Result<Run, SessionError> {
    let started = now();
    let mut document = blank(plan(&settings), started);
    let why = if settings.target.is_some() { NO_AGENT } else { NO_HOST };
    document.hosts.nas = Outcome::skipped(why);
    document.measurements = Measurements::none(LINKS_ONLY);
    let peer = match settings.target.clone() {
        None => None,
        Some(target) => {
            events.part(Step::Connect, format!("looking up {}", target.host), Duration::from_millis(100), None);
            let (name, family) = (target.host.clone(), settings.family);
            let addresses = blocking(move || resolve(&target, family)).await?;
            let nothing = || std::io::Error::new(std::io::ErrorKind::NotFound, "the name has no address");
            let peer = addresses.first().copied().ok_or_else(|| SessionError::Resolve { host: name, error: nothing() })?;
            let interrupt = events.interrupt.clone();
            tokio::select! {
                there = blocking(move || somebody(peer)) => there?,
                () = interrupted(&interrupt) => return Err(SessionError::Interrupted),
            }
            Some(peer)
        }
    };
    events.tell(Event::Begin { expected: settings.watch + settings.lldp });
    let ended = look(&settings, &events, peer, &mut document).await.err();
    events.tell(Event::End);
    Ok(Run { document, ended })
}

/// The time for a host to answer: the kernel needs 3 s to find nobody at an address of its own subnet (three ARP requests or neighbour
/// solicitations, one a second).
const ANSWER: Duration = Duration::from_secs(4);

/// Whether anybody may be at the other end: no neighbour or router says of every port that a NAS has that the host cannot be reached.
/// Blocking.
fn somebody(peer: SocketAddr) -> Result<(), SessionError> {
    let ports: Vec<u16> = FILE_SERVICES.iter().map(|(port, _)| *port).chain([peer.port()]).collect();
    let (answers, came) = std::sync::mpsc::channel();
    for port in &ports {
        let (answers, address) = (answers.clone(), SocketAddr::new(peer.ip(), *port));
        let address = match (address, peer) {
            (SocketAddr::V6(mut v6), SocketAddr::V6(scoped)) => {
                v6.set_scope_id(scoped.scope_id());
                SocketAddr::V6(v6)
            }
            (address, _) => address,
        };
        let ask = move || drop(answers.send(TcpStream::connect_timeout(&address, ANSWER)));
        // Without a thread the others ask; the receiver sees when all are done.
        let _ = std::thread::Builder::new().name("somebody".into()).spawn(ask);
    }
    drop(answers);
    let mut how = None;
    for answer in came {
        match answer {
            Err(error) if matches!(error.kind(), ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable) => {
                how = Some(error.to_string());
            }
            // A refusal is an answer, too; silence may be a firewall's, and another fault of ours says nothing about the other end.
            Ok(_) | Err(_) => return Ok(()),
        }
    }
    let Some(how) = how else { return Ok(()) };
    // Our own port without a link is the answer, and the report says it.
    if crate::link::dead_port(peer).is_some() {
        return Ok(());
    }
    let ports = ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
    Err(SessionError::Nobody { address: peer.ip().to_string(), how, ports })
}

async fn look(
    settings: &LinkSettings,
    events: &Events,
    peer: Option<SocketAddr>,
    document: &mut Document,
) -> Result<(), SessionError> {
    let interrupt = events.interrupt.clone();
    events.part(Step::Link, "ports and routes", Duration::ZERO, None);
    let link = this_end(peer, settings.stated_pc).await;
    let interfaces = link.measured().map(crate::link::host_interface_names).unwrap_or_default();
    let listening = link.measured().map(Listening::start);
    let log = link.measured().and_then(follow_log);
    let nas = document.hosts.nas.why().unwrap_or_default().to_owned();
    let mut section = LinkSection::new(link, Outcome::skipped(nas));
    if !settings.watch.is_zero() {
        events.part(Step::Link, "watching the counters", settings.watch, None);
        section.watched = Outcome::Measured(watch_here(&interfaces, settings.watch, &interrupt).await);
    }
    if let Some(pc) = section.pc.measured_mut() {
        pc.add_log(rest_of_log(log).await);
    }
    document.measurements.link = Outcome::Measured(section);
    if interrupt.is_set() {
        return Err(SessionError::Interrupted);
    }
    let Some(listening) = listening else { return Ok(()) };
    if !settings.lldp.is_zero() {
        events.part(Step::Link, "what the switch says of its port (LLDP)", settings.lldp, None);
    }
    let heard = tokio::select! {
        heard = listening.end(settings.lldp) => heard,
        () = interrupted(&interrupt) => return Err(SessionError::Interrupted),
    };
    let link = document.measurements.link.measured_mut().and_then(|links| links.pc.measured_mut());
    if let Some(link) = link {
        link.neighbours = heard;
    }
    Ok(())
}

/// This end's link towards the peer, or all of its ports.
async fn this_end(peer: Option<SocketAddr>, stated: Option<BitRate>) -> Outcome<HostLink> {
    match peer {
        Some(peer) => own_link(peer, stated).await,
        None => blocking(|| crate::link::collect_all(&tree())).await,
    }
}

fn plan(settings: &LinkSettings) -> Plan {
    Plan {
        scope: if settings.target.is_some() { Scope::LinkWithoutAgent } else { Scope::LinkOfHost },
        depth: Depth::Normal,
        local: false,
        budget_us: (settings.watch + settings.lldp).into(),
        streams: 1,
        max_data_bytes: ByteSize(0),
        lanes: Vec::new(),
        workload: Workload::Large,
        stated_pc_bps: settings.stated_pc,
        stated_nas_bps: None,
        throughput: None,
    }
}
