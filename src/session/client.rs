//! The end that asks: goes through the steps and fills the report document.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;

use crate::link::LogFollower;
use crate::model::copy::LaneKind;
use crate::model::document::{Document, Hosts, Measurements, Schema, Tool};
use crate::model::flows::FlowSpread;
use crate::model::host::{Direction, Role};
use crate::model::link::HostLink;
use crate::model::mtu::MtuSection;
use crate::model::outcome::Outcome;
use crate::model::plan::{Plan, Scope, ThroughputPlan};
use crate::model::throughput::PassOptions;
use crate::mtu;
use crate::session::channel::{Channel, HandshakeError, greet};
use crate::session::dial::{plain_socket, reach};
use crate::session::error::{SessionError, busy_with};
use crate::session::event::{Event, Events, Step};
use crate::session::listening::Listening;
use crate::session::schedule::{Times, Wanted, promise};
use crate::session::served::blocking;
use crate::session::settings::RunSettings;
use crate::session::steps;
use crate::sys::{Scratch, Stop};
use crate::throughput::CAPACITY_CONGESTION;
use crate::wire::hello::{PROTOCOL, ProtocolVersion};
use crate::wire::message::Token;
use crate::wire::{Reply, Request};

/// What came of a run: the document, complete or not, and what ended it early.
#[derive(Debug)]
pub struct Run {
    /// What was measured until then.
    pub document: Document,
    /// Why it is not complete, if it is not.
    pub ended: Option<SessionError>,
}

/// The client's side of a session, as the steps need it.
#[derive(Debug)]
pub struct ClientSession {
    channel: Channel<Request, Reply>,
    /// Our address.
    pub local: SocketAddr,
    /// The agent's.
    pub peer: SocketAddr,
    /// Set when the run is to end.
    pub stop: Stop,
    /// The UDP endpoint, or why there is none.
    pub udp: Result<Arc<mtu::Endpoint>, String>,
    /// Whether the agent has a directory.
    pub has_dir: bool,
    /// Where to tell what happens.
    pub events: Events,
    /// What the user wants.
    pub settings: RunSettings,
    /// How long each thing may take.
    pub times: Times,
    /// The interfaces that carry the traffic to the agent.
    pub interfaces: Vec<String>,
    /// The same with all that is known of them.
    pub link: Option<Arc<HostLink>>,
    /// Which port of an aggregation the connections of the last passes left by, at the PC and at the NAS.
    pub spreads: [Option<Outcome<FlowSpread>>; 2],
    /// Data connections from before any packet was too large, for streams without a clamp.
    pub untouched: Vec<(Token, std::net::TcpStream)>,
    /// The other PCs that have come to measure together with us.
    pub group: Option<steps::together::Gathered>,
    /// The ear for the switch.
    pub listening: Option<Listening>,
    /// The kernel's log since the link was described.
    pub log: Option<LogFollower>,
    /// The largest segment to use, where the path carries less than the interfaces would send.
    pub mss_clamp: Option<u32>,
    /// What every pass asks of sockets and engine.
    pub options: PassOptions,
    step: Step,
}

/// Runs a whole diagnosis. An error means that nothing was measured; later faults are in [`Run::ended`].
pub async fn diagnose(settings: RunSettings, events: Events) -> Result<Run, SessionError> {
    let started = now();
    events.part(Step::Connect, format!("to {}", settings.target), Duration::from_secs(1), None);
    let mut session = Box::pin(open_patiently(settings, &events)).await?;
    let mut document = blank(session.plan(), started);
    events.tell(Event::Begin { expected: session.expected() });
    let ended = Box::pin(session.measure(&mut document)).await.err();
    steps::link::end_of_log(&mut session, &mut document).await;
    session.stop.set();
    if ended.is_none() {
        let _ = session.channel.send(&Request::Bye).await;
        // The agent hangs up once its test files are gone and the next client may come.
        let _ = tokio::time::timeout(GOODBYE, session.channel.receive()).await;
    }
    events.tell(Event::End);
    if let Some(error) = &ended {
        fail_the_rest(&mut document, error);
    }
    Ok(Run { document, ended })
}

/// For some tenths of a second after a client was killed its agent still takes it for one that runs: the waits between tries until
/// *busy* is believed, two seconds together.
const BUSY_AGAIN: [Duration; 4] =
    [Duration::from_millis(200), Duration::from_millis(400), Duration::from_millis(600), Duration::from_millis(800)];

/// Connects to the agent; one that says it is busy is asked again for a moment, quietly.
async fn open_patiently(settings: RunSettings, events: &Events) -> Result<ClientSession, SessionError> {
    for wait in BUSY_AGAIN {
        match ClientSession::open(settings.clone(), events.clone()).await {
            Err(SessionError::Busy { .. }) => until_interrupted(&events.interrupt, tokio::time::sleep(wait)).await?,
            result => return result,
        }
    }
    ClientSession::open(settings, events.clone()).await
}

/// Parts that were not reached say so; the part that was running says what happened.
fn fail_the_rest(document: &mut Document, error: &SessionError) {
    fn mend<T>(part: &mut Outcome<T>, text: &str, first: &mut bool) {
        if part.why() == Some(NOT_YET) {
            *part = if *first { Outcome::failed(text) } else { Outcome::skipped("the diagnosis ended before this step") };
            *first = false;
        }
    }
    let text = error.to_string();
    let mut first = true;
    let parts = &mut document.measurements;
    mend(&mut parts.link, &text, &mut first);
    mend(&mut parts.mtu, &text, &mut first);
    mend(&mut parts.throughput, &text, &mut first);
    mend(&mut parts.cpu, &text, &mut first);
    mend(&mut parts.storage, &text, &mut first);
    mend(&mut parts.copy, &text, &mut first);
    mend(&mut document.hosts.nas, &text, &mut first);
}

/// The time for the agent's first word after the greeting.
const FIRST_WORD: Duration = Duration::from_secs(8);

/// How long an answer may take: what was asked for, and room for a slow host. A disk may have to spin up (15 s) and to bring its
/// last data down (10 s); everything else is a matter of a second or two even on a starved processor.
fn patience(request: &Request) -> Duration {
    let work = match request {
        Request::SearchMtu { budget_us } => Duration::from(*budget_us),
        Request::Neighbours { wait_us } => Duration::from(*wait_us),
        Request::Pass(pass) => pass.duration_us.into(),
        Request::PassBoth { upload, download } => Duration::from(upload.duration_us.max(download.duration_us)),
        Request::UdpSend(pass) => pass.duration_us.into(),
        Request::Ciphers { each_us } => Duration::from(*each_us) * 10,
        Request::Disk { each_us, .. } => Duration::from(*each_us) * 3 + Duration::from_secs(25),
        Request::Copy(copy) => Duration::from(copy.budget_us) * 2 + Duration::from_secs(25),
        Request::Room { .. } => Duration::from_secs(15),
        Request::Meet { wait_us, .. } => (*wait_us).into(),
        _ => Duration::ZERO,
    };
    work + Duration::from_secs(15)
}

/// How long the agent may take to remove its test files: some gigabytes on a slow filesystem.
const GOODBYE: Duration = Duration::from_secs(5);

/// The time now, RFC 3339 in UTC.
pub(super) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A document in which nothing is measured yet but this host.
pub(super) fn blank(plan: Plan, started: String) -> Document {
    Document {
        schema: Schema::current(),
        tool: Tool { name: "weaklink".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
        started,
        plan,
        hosts: Hosts { pc: Outcome::Measured(crate::cpu::describe()), nas: Outcome::skipped(NOT_YET) },
        measurements: Measurements::none(NOT_YET),
        findings: Vec::new(),
        verdict: None,
    }
}

/// Stands in parts of a document until they are measured.
const NOT_YET: &str = "not measured yet";

impl ClientSession {
    /// Connects to the agent and is let in; nothing is asked yet.
    pub async fn open(settings: RunSettings, events: Events) -> Result<Self, SessionError> {
        let (target, family, bind) = (settings.target.clone(), settings.family, settings.bind);
        let stream = tokio::select! {
            stream = blocking(move || reach(&target, family, bind)) => stream?,
            () = interrupted(&events.interrupt) => return Err(SessionError::Interrupted),
        };
        let address = settings.target.to_string();
        let io_fault = |error| SessionError::Connect { address: address.clone(), error };
        stream.set_nonblocking(true).map_err(io_fault)?;
        let local = plain_socket(stream.local_addr().map_err(io_fault)?);
        let peer = plain_socket(stream.peer_addr().map_err(io_fault)?);
        let stop = Stop::new();
        let socket = TcpStream::from_std(stream).map_err(io_fault)?;
        let greeting = greet(socket, &settings.code, stop.clone());
        let mut channel = until_interrupted(&events.interrupt, greeting).await?.map_err(|error| match error {
            HandshakeError::Foreign => SessionError::Foreign { address: address.clone() },
            HandshakeError::OtherVersion(hello) => SessionError::OtherVersion {
                address: address.clone(),
                theirs: format!("{}.{}", hello.version.major, hello.version.minor),
                ours: format!("{}.{}", PROTOCOL.major, PROTOCOL.minor),
            },
            HandshakeError::WrongCode => SessionError::WrongCode { address: address.clone() },
            HandshakeError::Overloaded => SessionError::Overloaded { address: address.clone() },
            HandshakeError::Io(error) => SessionError::Connect { address: address.clone(), error },
        })?;
        let during = "right after the greeting".to_owned();
        let first = tokio::time::timeout(FIRST_WORD, channel.receive());
        let first = until_interrupted(&events.interrupt, first).await?;
        let first = first.map_err(|_| SessionError::Stuck {
            peer: Role::Nas.title(),
            during: during.clone(),
            seconds: FIRST_WORD.as_secs(),
        })?;
        let first = first.map_err(|how| SessionError::Lost { peer: Role::Nas.title(), during, how })?;
        let (token, has_dir, udp_fault) = match first {
            Reply::Ready { udp, has_dir, udp_fault } => (udp, has_dir, udp_fault),
            Reply::Busy { peer, since_us, gathering } => {
                return Err(SessionError::Busy { address, doing: busy_with(&peer, since_us, gathering.as_ref()) });
            }
            other => return Err(unexpected(&other)),
        };
        tokio::spawn(end_on_interrupt(events.interrupt.clone(), stop.clone()));
        let udp = open_udp((peer, bind), token, udp_fault, &stop).await;
        let wanted = wanted(&settings, has_dir);
        let times = Times::plan(settings.depth, wanted);
        // Two runs compare only with one and the same congestion control.
        let congestion = settings.throughput.congestion.first().cloned().unwrap_or_else(|| CAPACITY_CONGESTION.to_owned());
        let mut options = settings.throughput.options.clone();
        options.congestion.get_or_insert(congestion);
        Ok(Self {
            channel,
            local,
            peer,
            stop,
            udp,
            has_dir,
            events,
            settings,
            times,
            interfaces: Vec::new(),
            link: None,
            spreads: [None, None],
            untouched: Vec::new(),
            group: None,
            listening: None,
            log: None,
            mss_clamp: None,
            options,
            step: Step::Connect,
        })
    }

    fn plan(&self) -> Plan {
        let settings = &self.settings;
        let whole = settings.scope == Scope::Run;
        let mut lanes: Vec<LaneKind> = if whole { vec![LaneKind::Raw] } else { Vec::new() };
        lanes.extend(settings.path.as_ref().map(|_| LaneKind::Mounted));
        lanes.extend(settings.ssh.as_ref().map(|_| LaneKind::Ssh));
        let promised = if whole { promise(settings.depth) } else { self.expected() };
        Plan {
            scope: settings.scope,
            depth: settings.depth,
            local: settings.local,
            budget_us: promised.into(),
            streams: settings.throughput.streams.unwrap_or(steps::sweep::MOST),
            max_data_bytes: settings.max_data,
            lanes,
            workload: settings.workload,
            stated_pc_bps: settings.stated_pc,
            stated_nas_bps: settings.stated_nas,
            throughput: (settings.throughput != ThroughputPlan::default() || settings.scope.is_throughput())
                .then(|| settings.throughput.clone()),
        }
    }

    /// How long all steps together take at most.
    fn expected(&self) -> Duration {
        let settings = &self.settings;
        if settings.scope.is_mtu() {
            return self.times.mtu * 2 + steps::contrast::longest(settings.gain) + settings.lldp;
        }
        if settings.scope.is_throughput() {
            return self.times.mtu + steps::sweep::expected(self);
        }
        if settings.scope.is_link() {
            return steps::link::expected(settings.links) + settings.lldp;
        }
        self.times.total(wanted(settings, self.has_dir))
    }

    async fn measure(&mut self, document: &mut Document) -> Result<(), SessionError> {
        self.gather().await?;
        self.step = Step::Link;
        let idle = steps::link::client(self, document).await?;
        if self.settings.scope.is_link() {
            return Box::pin(steps::link::only(self, document)).await;
        }
        self.step = Step::Mtu;
        document.measurements.mtu = Outcome::Measured(Box::pin(steps::mtu::client(self, document)).await?);
        if self.settings.scope.is_mtu() {
            return Box::pin(self.measure_mtu_only(document)).await;
        }
        self.step = Step::Throughput;
        self.fit_datagrams(document.measurements.mtu.measured());
        document.measurements.throughput = Outcome::Measured(Box::pin(steps::sweep::client(self)).await?);
        steps::link::attach_spreads(self, document);
        if let (Some(mtu), Some(throughput)) =
            (document.measurements.mtu.measured_mut(), document.measurements.throughput.measured())
        {
            steps::contrast::after_passes(self, mtu, throughput).await?;
        }
        if self.settings.scope.is_throughput() {
            let Measurements { cpu, storage, copy, .. } = Measurements::none("`weaklink throughput` looks at the network only");
            let parts = &mut document.measurements;
            (parts.cpu, parts.storage, parts.copy) = (cpu, storage, copy);
            self.step = Step::Link;
            return steps::link::neighbours(self, document).await;
        }
        self.step = Step::Cpu;
        document.measurements.cpu = Outcome::Measured(steps::cpu::client(self, idle).await?);
        self.step = Step::Storage;
        document.measurements.storage = Outcome::Measured(steps::storage::client(self).await?);
        self.step = Step::Copy;
        document.measurements.copy = Outcome::Measured(steps::copy::client(self).await?);
        self.step = Step::Link;
        steps::link::neighbours(self, document).await
    }

    /// Waits for the other PCs where several measure together: before anything else, since the agent lets nobody in while it works.
    async fn gather(&mut self) -> Result<(), SessionError> {
        if let Some(together) = self.settings.throughput.together.clone() {
            let (ways, time) = (self.settings.throughput.ways, steps::sweep::longest(self));
            self.group = Some(steps::together::gather(self, &together, ways, time).await?);
            // The wait had a countdown of its own.
            self.events.tell(Event::Begin { expected: self.expected() });
        }
        Ok(())
    }

    /// Datagrams of the test are as large as the path carries, unless the user gave a size.
    fn fit_datagrams(&mut self, mtu: Option<&MtuSection>) {
        let smallest = Direction::BOTH.iter().filter_map(|way| mtu?.of(*way).measured()).map(|path| path.mtu.0).min();
        // Headers of UDP (8 bytes) and IP (20 and 40).
        let headers = if self.peer.is_ipv6() { 48 } else { 28 };
        if let (Some(plan), Some(mtu)) = (&mut self.settings.throughput.udp, smallest) {
            plan.datagram_bytes.get_or_insert(mtu.saturating_sub(headers));
        }
    }

    /// The path MTU is known; what is left is its proof by TCP.
    async fn measure_mtu_only(&mut self, document: &mut Document) -> Result<(), SessionError> {
        let rest = Measurements::none("`weaklink mtu` looks at the path MTU only");
        let Measurements { throughput, cpu, storage, copy, .. } = rest;
        let parts = &mut document.measurements;
        (parts.throughput, parts.cpu, parts.storage, parts.copy) = (throughput, cpu, storage, copy);
        if let Some(mtu) = parts.mtu.measured_mut() {
            steps::contrast::alone(self, mtu).await?;
        }
        self.step = Step::Link;
        steps::link::neighbours(self, document).await
    }

    /// Asks the agent and waits for its answer.
    pub async fn ask(&mut self, request: Request) -> Result<Reply, SessionError> {
        let during = format!("during the step \"{}\"", self.step.title());
        let patience = patience(&request);
        let stuck = SessionError::Stuck { peer: Role::Nas.title(), during: during.clone(), seconds: patience.as_secs() };
        let lost = |how| SessionError::Lost { peer: Role::Nas.title(), during, how };
        if let Err(how) = self.channel.send(&request).await {
            return Err(lost(how));
        }
        let reply = tokio::select! {
            reply = self.channel.receive() => reply,
            () = interrupted(&self.events.interrupt) => {
                self.stop.set();
                return Err(SessionError::Interrupted);
            }
            () = tokio::time::sleep(patience) => {
                self.stop.set();
                return Err(stuck);
            }
        };
        match reply {
            Ok(Reply::Leaving(why)) => {
                self.stop.set();
                Err(SessionError::Left(why))
            }
            Ok(Reply::Busy { peer, since_us, gathering }) => {
                let address = self.settings.target.to_string();
                Err(SessionError::Busy { address, doing: busy_with(&peer, since_us, gathering.as_ref()) })
            }
            Ok(reply) => Ok(reply),
            Err(how) => Err(lost(how)),
        }
    }

    /// The version of the protocol that the agent speaks.
    pub const fn agent_version(&self) -> ProtocolVersion {
        self.channel.version()
    }

    /// Asks for the right to open data connections.
    pub async fn tokens(&mut self, count: u32) -> Result<Vec<Token>, SessionError> {
        match self.ask(Request::Tokens { count }).await? {
            Reply::Tokens(tokens) if tokens.len() == count as usize => Ok(tokens),
            other => Err(unexpected(&other)),
        }
    }

    /// A place for test files in a directory of the PC.
    pub fn scratch(dir: &std::path::Path) -> Result<Scratch, String> {
        let fault = |error| format!("cannot use the directory {}: {error}", dir.display());
        crate::sys::sweep(dir).map_err(fault)?;
        Scratch::create(dir).map_err(fault)
    }
}

fn wanted(settings: &RunSettings, nas_dir: bool) -> Wanted {
    let lanes = u32::from(settings.path.is_some()) + u32::from(settings.ssh.is_some());
    Wanted { nas_dir, pc_dir: settings.pc_dir.is_some(), lanes }
}

async fn open_udp(
    (peer, bind): (SocketAddr, Option<IpAddr>),
    token: Token,
    fault: Option<String>,
    stop: &Stop,
) -> Result<Arc<mtu::Endpoint>, String> {
    if let Some(fault) = fault {
        return Err(format!("at the NAS: {fault}"));
    }
    let stop = stop.clone();
    let endpoint = blocking(move || mtu::Endpoint::connect_from(bind, peer, token.0, Duration::from_secs(2), &stop)).await;
    endpoint.map(Arc::new).map_err(|error| {
        format!("no answer on UDP port {} ({error}): a firewall may drop it; path MTU and round-trip times need it", peer.port())
    })
}

/// An answer that does not fit the question.
pub fn unexpected(reply: &Reply) -> SessionError {
    let what = match reply {
        Reply::Refused(why) => why.clone(),
        other => {
            let text = format!("{other:?}");
            let name: String = text.chars().take_while(|c| c.is_alphanumeric()).collect();
            format!("the answer {name} to another question")
        }
    };
    SessionError::Protocol { peer: Role::Nas.title(), what }
}

/// Threads that measure look at the session's flag only; the user's wish to end reaches them through this.
async fn end_on_interrupt(interrupt: Stop, stop: Stop) {
    while !stop.is_set() {
        if interrupt.is_set() {
            stop.set();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits for `what`, unless the user wants to end.
async fn until_interrupted<T>(interrupt: &Stop, what: impl Future<Output = T>) -> Result<T, SessionError> {
    tokio::select! {
        result = what => Ok(result),
        () = interrupted(interrupt) => Err(SessionError::Interrupted),
    }
}

pub(super) async fn interrupted(stop: &Stop) {
    while !stop.is_set() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
