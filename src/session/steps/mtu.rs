//! The largest packet: each end searches the direction in which it sends.

use std::sync::Arc;
use std::time::Duration;

use crate::model::document::Document;
use crate::model::host::Role;
use crate::model::link::HostLink;
use crate::model::mtu::needless::{NO_HOLE, TWO_ENDS};
use crate::model::mtu::{Limiter, MtuSection, PathMtu, TcpHandshake, tcp_headers};
use crate::model::outcome::Outcome;
use crate::mtu::Endpoint;
use crate::session::around::{grown, tree};
use crate::session::client::{ClientSession, unexpected};
use crate::session::error::SessionError;
use crate::session::event::Step;
use crate::session::served::{AgentSession, blocking};
use crate::session::steps::throughput::open;
use crate::units::Mtu;
use crate::wire::{Reply, Request, Token};

/// The longest search that an agent agrees to.
const LONGEST: Duration = Duration::from_secs(20);

/// The agent's side: the search towards the client.
pub async fn agent(session: &mut AgentSession, budget: Duration) -> Reply {
    let endpoint = match session.endpoint().await {
        Ok(endpoint) => endpoint,
        Err(reason) => return Reply::Mtu(Outcome::failed(reason)),
    };
    let stop = session.stop.clone();
    Reply::Mtu(blocking(move || endpoint.search(None, budget.min(LONGEST), &stop)).await)
}

/// The agent's side: its kernel's view of a data connection.
pub async fn handshake_at_agent(session: &mut AgentSession, token: Token) -> Reply {
    Reply::Handshake(match session.connections(&[token]).await.map(|mut ends| ends.pop()) {
        Ok(Some(connection)) => {
            let end = crate::mtu::tcp_end(&connection);
            // A stream may still have to use it.
            session.keep(token, connection);
            end
        }
        Ok(None) => Outcome::failed("the data connection did not arrive"),
        Err(reason) => Outcome::failed(reason),
    })
}

/// TCP connections as any program would open them, one for each direction, and what both kernels say of the first.
///
/// Opened before any packet of ours is too large: a router's word about such a one is kept by the kernel for minutes, and then
/// connections agree on smaller segments than all others did before. They stay open for the proof of a black hole.
async fn handshake(session: &mut ClientSession) -> Result<Outcome<TcpHandshake>, SessionError> {
    let tokens = session.tokens(2).await?;
    let connections = match open(session, &tokens, None, &session.options).await {
        Ok(connections) => connections,
        Err(reason) => return Ok(Outcome::failed(reason)),
    };
    let Some(token) = tokens.first() else { return Ok(Outcome::failed("the NAS gave no right to open a data connection")) };
    let reply = session.ask(Request::Handshake { token: *token }).await?;
    let Reply::Handshake(nas) = reply else { return Err(unexpected(&reply)) };
    let pc = connections.first().map_or_else(|| Outcome::failed("the data connection is gone"), crate::mtu::tcp_end);
    session.untouched = tokens.into_iter().zip(connections).collect();
    Ok(Outcome::Measured(TcpHandshake { pc, nas }))
}

/// The client's side: TCP's own view; then its search and the agent's, while both ends watch their counters.
pub async fn client(session: &mut ClientSession, document: &Document) -> Result<MtuSection, SessionError> {
    let handshake = handshake(session).await?;
    let before = crate::link::counters(&session.interfaces, &tree());
    let reply = session.ask(Request::StartSampling).await?;
    let Reply::Sampling = reply else { return Err(unexpected(&reply)) };
    let mut section = match session.udp.clone() {
        Ok(endpoint) => by_udp(session, endpoint).await?,
        Err(reason) => by_echo(session, &reason).await,
    };
    let reply = session.ask(Request::StopSampling).await?;
    let Reply::Sampled(around) = reply else { return Err(unexpected(&reply)) };
    section.counters_pc = grown(before, crate::link::counters(&session.interfaces, &tree()));
    section.counters_nas = around.counters;
    section.handshake = handshake;
    session.mss_clamp = clamp(&section, document, session.peer.is_ipv6());
    Ok(section)
}

/// Each direction by itself.
async fn by_udp(session: &mut ClientSession, endpoint: Arc<Endpoint>) -> Result<MtuSection, SessionError> {
    let budget = session.times.mtu;
    session.events.part(Step::Mtu, "PC → NAS", Duration::from_millis(500), None);
    let stop = session.stop.clone();
    let upload = blocking(move || endpoint.search(None, budget, &stop)).await;
    session.events.part(Step::Mtu, "NAS → PC", Duration::from_millis(500), None);
    let reply = session.ask(Request::SearchMtu { budget_us: budget.into() }).await?;
    let Reply::Mtu(download) = reply else { return Err(unexpected(&reply)) };
    let mut section = MtuSection::new(upload, download, NO_HOLE);
    section.echo = Outcome::skipped(TWO_ENDS);
    section.services = Outcome::skipped(TWO_ENDS);
    Ok(section)
}

/// Both directions together: what is left when UDP does not reach the other end.
async fn by_echo(session: &ClientSession, reason: &str) -> MtuSection {
    session.events.part(Step::Mtu, "ICMP echo, as UDP is blocked", Duration::from_millis(500), None);
    let (peer, budget, stop) = (session.peer, session.times.mtu, session.stop.clone());
    let echo = blocking(move || crate::mtu::echo(peer, None, budget, &stop)).await;
    let mut section = MtuSection::new(Outcome::failed(reason), Outcome::failed(reason), NO_HOLE);
    section.services = Outcome::skipped("weaklink's own port answers by TCP, so no other service has to");
    section.echo = echo;
    section
}

/// The segment size for the data streams: set only where the path carries less than the ends would send.
fn clamp(section: &MtuSection, document: &Document, v6: bool) -> Option<u32> {
    let echo = section.echo.measured().map(|echo| &echo.path);
    let paths = [section.upload.measured(), section.download.measured(), echo];
    // A sender's own interface is no limit of the path: TCP knows it.
    let beyond = |found: &&PathMtu| found.limited_by != Limiter::LocalInterface;
    let path = paths.into_iter().flatten().filter(beyond).map(|found| found.mtu).min()?;
    let links = document.measurements.link.measured();
    let own = |role| {
        let top = links.and_then(|links| links.of(role).measured()).and_then(HostLink::top);
        top.and_then(|top| top.mtu.measured()).map(|mtu| mtu.value)
    };
    // What an interface lets out is known from the search where the system does not tell it.
    let lets_out = |found: Option<&PathMtu>| found.map(|found| found.ceiling);
    let pc = own(Role::Pc).or_else(|| lets_out(section.upload.measured().or(echo)));
    let nas = own(Role::Nas).or_else(|| lets_out(section.download.measured()));
    let ends: Mtu = [pc, nas].into_iter().flatten().min()?;
    (path < ends).then(|| path.0.saturating_sub(tcp_headers(v6)))
}
