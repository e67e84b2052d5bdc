//! What one end can know of the path by itself, when no agent runs at the other.

use std::net::SocketAddr;
use std::time::Duration;

use crate::model::document::{Document, Measurements};
use crate::model::link::{HostLink, LinkSection};
use crate::model::mtu::MtuSection;
use crate::model::outcome::Outcome;
use crate::model::plan::{Depth, Plan, Scope, Workload};
use crate::session::around::{grown, tree};
use crate::session::client::{Run, blank, now};
use crate::session::dial::{Family, Target, resolve};
use crate::session::error::SessionError;
use crate::session::event::{Event, Events, Step};
use crate::session::listening::Listening;
use crate::session::served::blocking;
use crate::units::{BitRate, ByteSize};

/// The longest search by ICMP echo.
const ECHO: Duration = Duration::from_secs(4);

/// The longest that a service is tried: a connection and one segment, with two retransmissions of it.
const SERVICE: Duration = Duration::from_secs(2);

/// What is to be found out without an agent.
#[derive(Clone, Debug)]
pub struct AloneSettings {
    /// The host; its port plays no part.
    pub target: Target,
    /// Which addresses of it.
    pub family: Family,
    /// The TCP services to try: port, and name where it is a known one.
    pub services: Vec<(u16, Option<&'static str>)>,
    /// How long to wait at the end for a switch that has not spoken yet.
    pub lldp: Duration,
    /// The PC's true link speed, as the user says.
    pub stated_pc: Option<BitRate>,
}

/// Why nothing is known of the other end.
const NO_AGENT: &str = "no agent took part (--no-agent): `weaklink serve` on the NAS would tell";

/// Why the directions stay untold.
const ONE_END: &str =
    "one end alone cannot tell the two directions apart; with `weaklink serve` on the NAS each is measured by itself";

/// Measures the path MTU towards a host as far as this end can know it.
pub async fn look_alone(settings: AloneSettings, events: Events) -> Result<Run, SessionError> {
    let started = now();
    let mut document = blank(plan(&settings), started);
    document.hosts.nas = Outcome::skipped(NO_AGENT);
    let mtu_only = Measurements::none("`weaklink mtu` looks at the path MTU only");
    document.measurements = Measurements { link: Outcome::skipped(NO_AGENT), mtu: Outcome::skipped(NO_AGENT), ..mtu_only };
    let (target, family) = (settings.target.clone(), settings.family);
    events.part(Step::Connect, format!("looking up {}", target.host), Duration::from_millis(100), None);
    let addresses = blocking(move || resolve(&target, family)).await?;
    events.tell(Event::Begin { expected: ECHO + SERVICE + settings.lldp });
    // Without a conversation nothing tells which address is the right one: the first is what other programs would take.
    let Some(peer) = addresses.first().copied() else {
        let error = std::io::Error::new(std::io::ErrorKind::NotFound, "the name has no address");
        return Err(SessionError::Resolve { host: settings.target.host, error });
    };
    let ended = measure(&settings, &events, peer, &mut document).await.err();
    events.tell(Event::End);
    Ok(Run { document, ended })
}

async fn measure(
    settings: &AloneSettings,
    events: &Events,
    peer: SocketAddr,
    document: &mut Document,
) -> Result<(), SessionError> {
    let interrupt = events.interrupt.clone();
    let unless_interrupted = || if interrupt.is_set() { Err(SessionError::Interrupted) } else { Ok(()) };
    events.part(Step::Link, "ports and routes", Duration::ZERO, None);
    let link = own_link(peer, settings.stated_pc).await;
    let interfaces = link.measured().map(crate::link::host_interface_names).unwrap_or_default();
    let listening = link.measured().map(Listening::start);
    document.measurements.link = Outcome::Measured(LinkSection::new(link, Outcome::skipped(NO_AGENT)));
    unless_interrupted()?;
    let before = crate::link::counters(&interfaces, &tree());
    let mut section = MtuSection::new(Outcome::skipped(ONE_END), Outcome::skipped(ONE_END), NO_AGENT);
    events.part(Step::Mtu, "ICMP echo", Duration::from_millis(500), None);
    let stop = interrupt.clone();
    section.echo = blocking(move || crate::mtu::echo(peer, None, ECHO, &stop)).await;
    unless_interrupted()?;
    events.part(Step::Mtu, "TCP services", SERVICE, None);
    let (services, stop) = (settings.services.clone(), interrupt.clone());
    section.services = Outcome::Measured(blocking(move || crate::mtu::services(peer, &services, SERVICE, &stop)).await);
    section.counters_pc = grown(before, crate::link::counters(&interfaces, &tree()));
    document.measurements.mtu = Outcome::Measured(section);
    unless_interrupted()?;
    if let Some(listening) = listening {
        if !settings.lldp.is_zero() {
            events.part(Step::Link, "what the switch says of its port (LLDP)", settings.lldp, None);
        }
        let heard = tokio::select! {
            heard = listening.end(settings.lldp) => heard,
            () = super::client::interrupted(&interrupt) => return Err(SessionError::Interrupted),
        };
        let link = document.measurements.link.measured_mut().and_then(|links| links.pc.measured_mut());
        if let Some(link) = link {
            link.neighbours = heard;
        }
    }
    Ok(())
}

/// This end's link towards a host, with its speed as the user states it.
pub(super) async fn own_link(peer: SocketAddr, stated: Option<BitRate>) -> Outcome<HostLink> {
    let link = blocking(move || match crate::link::local_addr_towards(peer) {
        Ok(local) => crate::link::collect(local, peer, &tree()),
        Err(error) => Outcome::failed(format!("no way to {}: {error}", peer.ip())),
    });
    link.await.map(|mut link| {
        link.stated_speed_bps = stated;
        link
    })
}

fn plan(settings: &AloneSettings) -> Plan {
    Plan {
        scope: Scope::MtuWithoutAgent,
        depth: Depth::Normal,
        local: false,
        budget_us: (ECHO + SERVICE + settings.lldp).into(),
        streams: 1,
        max_data_bytes: ByteSize(0),
        lanes: Vec::new(),
        workload: Workload::Large,
        stated_pc_bps: settings.stated_pc,
        throughput: None,
        stated_nas_bps: None,
    }
}
