//! Throughput against an iperf3 server: this end measures, the other tells its totals only.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::model::document::{Document, Measurements};
use crate::model::link::LinkSection;
use crate::model::outcome::Outcome;
use crate::model::plan::{Depth, Plan, Scope, ThroughputPlan, Workload};
use crate::session::alone::own_link;
use crate::session::client::{Run, blank, now};
use crate::session::dial::{Family, Target, plain, resolve};
use crate::session::error::SessionError;
use crate::session::event::{Event, Events, Step};
use crate::session::served::blocking;
use crate::session::steps::link::{end_of_own_log, follow_log};
use crate::units::{BitRate, ByteSize};

/// What is to be measured against an iperf3 server.
#[derive(Clone, Debug)]
pub struct Iperf3Settings {
    /// The server.
    pub target: Target,
    /// Which addresses of it.
    pub family: Family,
    /// The address of this end, where it has several.
    pub bind: Option<IpAddr>,
    /// What is asked of the test.
    pub throughput: ThroughputPlan,
    /// The PC's true link speed, as the user says.
    pub stated_pc: Option<BitRate>,
    /// The NAS's true link speed, as the user says.
    pub stated_nas: Option<BitRate>,
}

/// Why nothing is known of the other end.
const NO_AGENT: &str = "an iperf3 server does not tell (--iperf3): `weaklink serve` on the NAS would";

/// Measures throughput against an iperf3 server.
pub async fn measure_iperf3(settings: Iperf3Settings, events: Events) -> Result<Run, SessionError> {
    let started = now();
    let mut document = blank(plan(&settings), started);
    document.hosts.nas = Outcome::skipped(NO_AGENT);
    let rest = Measurements::none("`weaklink throughput` looks at the network only");
    document.measurements = Measurements {
        link: Outcome::skipped(NO_AGENT),
        mtu: Outcome::skipped("an iperf3 server answers no probes; `weaklink mtu --no-agent` tells what one end can know"),
        ..rest
    };
    let (target, family) = (settings.target.clone(), settings.family);
    events.part(Step::Connect, format!("looking up {}", target.host), Duration::from_millis(100), None);
    let addresses = blocking(move || resolve(&target, family)).await?;
    let fits = |address: &&SocketAddr| settings.bind.is_none_or(|own| plain(own).is_ipv4() == plain(address.ip()).is_ipv4());
    let Some(peer) = addresses.iter().find(fits).copied() else {
        let error = std::io::Error::new(std::io::ErrorKind::NotFound, "the name has no address of the family of --bind");
        return Err(SessionError::Resolve { host: settings.target.host, error });
    };
    events.tell(Event::Begin { expected: super::steps::iperf3::expected(&settings.throughput) });
    let ended = Box::pin(measure(&settings, &events, peer, &mut document)).await.err();
    events.tell(Event::End);
    Ok(Run { document, ended })
}

async fn measure(
    settings: &Iperf3Settings,
    events: &Events,
    peer: SocketAddr,
    document: &mut Document,
) -> Result<(), SessionError> {
    events.part(Step::Link, "ports and routes", Duration::ZERO, None);
    let link = own_link(peer, settings.stated_pc).await;
    let interfaces = link.measured().map(crate::link::host_interface_names).unwrap_or_default();
    let log = link.measured().and_then(follow_log);
    document.measurements.link = Outcome::Measured(LinkSection::new(link, Outcome::skipped(NO_AGENT)));
    let section = super::steps::iperf3::measure(settings, events, peer, &interfaces).await;
    end_of_own_log(log, document).await;
    document.measurements.throughput = Outcome::Measured(section?);
    Ok(())
}

fn plan(settings: &Iperf3Settings) -> Plan {
    Plan {
        scope: Scope::ThroughputIperf3,
        depth: Depth::Normal,
        local: false,
        budget_us: super::steps::iperf3::expected(&settings.throughput).into(),
        streams: settings.throughput.streams.unwrap_or(super::steps::sweep::MOST),
        max_data_bytes: ByteSize(0),
        lanes: Vec::new(),
        workload: Workload::Large,
        stated_pc_bps: settings.stated_pc,
        stated_nas_bps: settings.stated_nas,
        throughput: Some(settings.throughput.clone()),
    }
}
