//! The largest packet: each end searches the direction in which it sends.

use std::time::Duration;

use crate::model::document::Document;
use crate::model::host::Role;
use crate::model::link::HostLink;
use crate::model::mtu::{Limiter, MtuSection, PathMtu};
use crate::model::outcome::Outcome;
use crate::session::client::{ClientSession, unexpected};
use crate::session::error::SessionError;
use crate::session::event::Step;
use crate::session::served::{AgentSession, blocking};
use crate::units::Mtu;
use crate::wire::{Reply, Request};

/// The longest search that an agent agrees to.
const LONGEST: Duration = Duration::from_secs(20);

/// Headers of IP and TCP without options: what the MSS leaves out of the MTU (RFC 9293, 3.7.1).
const fn headers(v6: bool) -> u32 {
    if v6 { 60 } else { 40 }
}

/// The agent's side: the search towards the client.
pub async fn agent(session: &mut AgentSession, budget: Duration) -> Reply {
    let endpoint = match session.endpoint().await {
        Ok(endpoint) => endpoint,
        Err(reason) => return Reply::Mtu(Outcome::failed(reason)),
    };
    let stop = session.stop.clone();
    Reply::Mtu(blocking(move || endpoint.search(None, budget.min(LONGEST), &stop)).await)
}

/// The client's side: its own search, then the agent's.
pub async fn client(session: &mut ClientSession, document: &Document) -> Result<MtuSection, SessionError> {
    let endpoint = match &session.udp {
        Ok(endpoint) => std::sync::Arc::clone(endpoint),
        Err(reason) => {
            let reason = reason.clone();
            return Ok(MtuSection::new(Outcome::failed(reason.clone()), Outcome::failed(reason.clone()), &reason));
        }
    };
    let budget = session.times.mtu;
    session.events.part(Step::Mtu, "PC → NAS", Duration::from_millis(500), None);
    let stop = session.stop.clone();
    let upload = blocking(move || endpoint.search(None, budget, &stop)).await;
    session.events.part(Step::Mtu, "NAS → PC", Duration::from_millis(500), None);
    let reply = session.ask(Request::SearchMtu { budget_us: budget.into() }).await?;
    let Reply::Mtu(download) = reply else { return Err(unexpected(&reply)) };
    let section = MtuSection::new(upload, download, "no black hole was found, so there is nothing to prove");
    session.mss_clamp = clamp(&section, document, session.peer.is_ipv6());
    Ok(section)
}

/// The segment size for the data streams: set only where the path carries less than the ends would send.
fn clamp(section: &MtuSection, document: &Document, v6: bool) -> Option<u32> {
    let paths = [section.upload.measured(), section.download.measured()];
    // A sender's own interface is no limit of the path: TCP knows it.
    let beyond = |found: &&PathMtu| found.limited_by != Limiter::LocalInterface;
    let path = paths.into_iter().flatten().filter(beyond).map(|found| found.mtu).min()?;
    let links = document.measurements.link.measured()?;
    let own = |role| links.of(role).measured().and_then(HostLink::top).and_then(|top| top.mtu.measured()).map(|mtu| mtu.value);
    let ends: Mtu = [own(Role::Pc), own(Role::Nas)].into_iter().flatten().min()?;
    (path < ends).then(|| path.0.saturating_sub(headers(v6)))
}
