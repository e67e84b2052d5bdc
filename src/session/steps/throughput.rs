//! Raw TCP: one stream and several, in each direction.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use crate::model::host::{Direction, Role};
use crate::model::outcome::Outcome;
use crate::model::throughput::{DirectionThroughput, Pass, PassOptions, ReceiverEnd, RttSummary, SenderEnd, ThroughputSection};
use crate::session::around::Bracket;
use crate::session::client::{ClientSession, unexpected};
use crate::session::error::SessionError;
use crate::session::event::{Event, Step, Watch};
use crate::session::served::{AgentSession, blocking};
use crate::sys::Stop;
use crate::throughput::{Progress, ReceiveSpec, SendSpec, SocketSpec, connect, receive, send};
use crate::wire::hello::Hello;
use crate::wire::message::{Around, PassRequest, Token};
use crate::wire::{Reply, Request};

/// The longest pass that an agent agrees to.
const LONGEST: Duration = Duration::from_secs(120);

/// How much longer than the sender a receiver waits for the end: a queue of a few MB at 10 Mbit/s.
pub(super) const GRACE: Duration = Duration::from_millis(1500);

/// The time for a data connection.
const CONNECT: Duration = Duration::from_secs(3);

/// Echoes for the round-trip time of an idle path.
const IDLE_ECHOES: u32 = 30;

/// The distance of echoes beside the streams.
const ECHO_EVERY: Duration = Duration::from_millis(20);

/// The agent's side of one pass.
pub async fn agent(session: &mut AgentSession, request: PassRequest) -> Reply {
    let connections = session.connections(&request.tokens).await;
    let (stop, interfaces) = (session.stop.clone(), session.interfaces.clone());
    blocking(move || {
        let bracket = Bracket::start(&interfaces);
        match request.direction {
            Direction::Upload => Reply::Received(take_in(connections, request, &stop), Box::new(bracket.finish())),
            Direction::Download => Reply::Sent(give_out(connections, request, &stop), Box::new(bracket.finish())),
        }
    })
    .await
}

/// The agent's side of two passes at the same moment.
pub async fn agent_both(session: &mut AgentSession, upload: PassRequest, download: PassRequest) -> Reply {
    let incoming = session.connections(&upload.tokens).await;
    let outgoing = session.connections(&download.tokens).await;
    let (stop, interfaces) = (session.stop.clone(), session.interfaces.clone());
    blocking(move || {
        let bracket = Bracket::start(&interfaces);
        let (taken, given) = std::thread::scope(|scope| {
            let taking = scope.spawn(|| take_in(incoming, upload, &stop));
            let given = give_out(outgoing, download, &stop);
            (taking.join().unwrap_or_else(|_| Outcome::failed("the receiving end broke off")), given)
        });
        Reply::Both(Box::new((taken, given)), Box::new(bracket.finish()))
    })
    .await
}

fn take_in(connections: Result<Vec<TcpStream>, String>, request: PassRequest, stop: &Stop) -> Outcome<ReceiverEnd> {
    let deadline = Duration::from(request.duration_us).min(LONGEST) + Duration::from(request.grace_us).min(GRACE);
    let spec = ReceiveSpec { deadline, options: request.options };
    connections.and_then(|c| receive(c, &spec, stop, &Progress::default()).map_err(|e| e.to_string())).into()
}

fn give_out(connections: Result<Vec<TcpStream>, String>, request: PassRequest, stop: &Stop) -> Outcome<SenderEnd> {
    let spec = SendSpec { duration: Duration::from(request.duration_us).min(LONGEST), options: request.options };
    connections.and_then(|c| send(c, &spec, stop, &Progress::default()).map_err(|e| e.to_string())).into()
}

/// The client's side of the whole step.
pub async fn client(session: &mut ClientSession) -> Result<ThroughputSection, SessionError> {
    session.events.part(Step::Throughput, "round-trip time", Duration::from_millis(200), None);
    let idle_rtt = echoes(session, IDLE_ECHOES, Duration::from_millis(5)).await;
    let upload = direction(session, Direction::Upload).await?;
    let download = direction(session, Direction::Download).await?;
    Ok(ThroughputSection::new(upload, download, idle_rtt))
}

async fn echoes(session: &ClientSession, count: u32, every: Duration) -> Outcome<RttSummary> {
    match &session.udp {
        Ok(endpoint) => {
            let (endpoint, stop) = (Arc::clone(endpoint), session.stop.clone());
            blocking(move || endpoint.rtt(count, every, &stop)).await
        }
        Err(reason) => Outcome::skipped(reason.clone()),
    }
}

async fn direction(session: &mut ClientSession, direction: Direction) -> Result<DirectionThroughput, SessionError> {
    let clamp = session.mss_clamp;
    let time = session.times.pass;
    let single = pass(session, PassPlan { direction, streams: 1, clamp, time, grace: GRACE }).await?;
    let streams = session.settings.streams;
    let multi = if streams > 1 {
        pass(session, PassPlan { direction, streams, clamp, time, grace: GRACE }).await?
    } else {
        Outcome::skipped("--streams 1 was asked for")
    };
    Ok(DirectionThroughput { single, multi, sweep: Vec::new() })
}

/// One pass as the client wants it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PassPlan {
    /// The way of the data.
    pub(super) direction: Direction,
    /// The number of streams.
    pub(super) streams: u32,
    /// The largest segment, where it is to be smaller than what the ends would use.
    pub(super) clamp: Option<u32>,
    /// How long the sender sends.
    pub(super) time: Duration,
    /// How much longer the receiver waits for the end.
    pub(super) grace: Duration,
}

/// Opens data connections with these tokens.
pub async fn open(session: &ClientSession, tokens: &[Token], clamp: Option<u32>) -> Result<Vec<TcpStream>, String> {
    let (peer, tokens, congestion) = (session.peer, tokens.to_vec(), session.congestion.clone());
    blocking(move || {
        let options = PassOptions { congestion, ..PassOptions::default() };
        let spec = SocketSpec { mss_clamp: clamp, bind: None, options };
        tokens
            .iter()
            .map(|token| {
                let mut stream = connect(peer, &spec, CONNECT)?;
                std::io::Write::write_all(&mut stream, &Hello::data(token))?;
                Ok(stream)
            })
            .collect::<std::io::Result<Vec<_>>>()
            .map_err(|error| format!("cannot open a data connection: {error}"))
    })
    .await
}

/// One pass with both ends, over new connections.
pub(super) async fn pass(session: &mut ClientSession, plan: PassPlan) -> Result<Outcome<Pass>, SessionError> {
    let tokens = session.tokens(plan.streams).await?;
    match open(session, &tokens, plan.clamp).await {
        Ok(connections) => pass_over(session, plan, tokens, connections).await,
        Err(reason) => Ok(Outcome::failed(reason)),
    }
}

/// One pass with both ends, over connections that are there.
pub(super) async fn pass_over(
    session: &mut ClientSession,
    plan: PassPlan,
    tokens: Vec<Token>,
    connections: Vec<TcpStream>,
) -> Result<Outcome<Pass>, SessionError> {
    let progress = Progress::default();
    let watch: Watch = {
        let progress = progress.clone();
        Arc::new(move || progress.bytes())
    };
    let streams = if plan.streams == 1 { "1 stream".to_owned() } else { format!("{} streams", plan.streams) };
    let part = if session.settings.scope.is_mtu() { Step::Mtu } else { Step::Throughput };
    session.events.part(part, format!("{}, {streams}", plan.direction.arrow()), plan.time, Some(watch));
    let options = PassOptions { congestion: session.congestion.clone(), ..PassOptions::default() };
    let request = Request::Pass(PassRequest {
        direction: plan.direction,
        tokens,
        duration_us: plan.time.into(),
        grace_us: plan.grace.into(),
        options: options.clone(),
    });
    let echo = session.udp.as_ref().ok().map(|endpoint| {
        let (endpoint, stop) = (Arc::clone(endpoint), session.stop.clone());
        let count = (plan.time.as_secs_f64() / ECHO_EVERY.as_secs_f64() * 0.9) as u32;
        tokio::spawn(blocking(move || endpoint.rtt(count.max(5), ECHO_EVERY, &stop)))
    });
    let work = {
        let (stop, interfaces) = (session.stop.clone(), session.interfaces.clone());
        tokio::spawn(blocking(move || our_end(plan, connections, &stop, &progress, &interfaces, options)))
    };
    let reply = session.ask(request).await;
    let (ours, around) =
        work.await.unwrap_or_else(|_| (End::Failed("our end broke off".to_owned()), Around::none("it broke off")));
    let loaded = match echo {
        Some(echo) => echo.await.unwrap_or_else(|_| Outcome::failed("the echoes broke off")),
        None => Outcome::skipped("UDP does not reach the NAS"),
    };
    let (sender, receiver, theirs) = match (ours, reply?) {
        (End::Sender(sender), Reply::Received(receiver, theirs)) | (End::Receiver(receiver), Reply::Sent(sender, theirs)) => {
            (sender, receiver, theirs)
        }
        (End::Failed(reason), _) => return Ok(Outcome::failed(reason)),
        (_, other) => return Err(unexpected(&other)),
    };
    let receiver = match receiver {
        Outcome::Measured(receiver) => receiver,
        Outcome::Skipped(why) | Outcome::Failed(why) => return Ok(Outcome::failed(why.reason)),
    };
    if let (Some(asked), Some(ran)) = (&session.settings.congestion, sender.measured().and_then(|end| end.congestion.as_ref()))
        && asked != ran
    {
        let end = plan.direction.sender().title();
        let text = format!("The {end} cannot use the congestion control {asked} (not there, or not allowed): {ran} ran instead.");
        session.events.tell(Event::Note(text));
    }
    let mut pass = crate::throughput::assemble(plan.streams, sender, receiver, plan.clamp);
    pass.loaded_rtt = loaded;
    (pass.cpu_pc, pass.counters_pc) = (around.cpu, around.counters);
    (pass.cpu_nas, pass.counters_nas) = (theirs.cpu, theirs.counters);
    Ok(Outcome::Measured(pass))
}

/// What our end of a pass was.
enum End {
    Sender(Outcome<SenderEnd>),
    Receiver(Outcome<ReceiverEnd>),
    Failed(String),
}

fn our_end(
    plan: PassPlan,
    connections: Vec<TcpStream>,
    stop: &Stop,
    progress: &Progress,
    interfaces: &[String],
    options: PassOptions,
) -> (End, Around) {
    let bracket = Bracket::start(interfaces);
    let end = match plan.direction.sender() {
        Role::Pc => {
            let spec = SendSpec { duration: plan.time, options };
            End::Sender(send(connections, &spec, stop, progress).into())
        }
        Role::Nas => {
            let spec = ReceiveSpec { deadline: plan.time + plan.grace, options };
            End::Receiver(receive(connections, &spec, stop, progress).into())
        }
    };
    (end, bracket.finish())
}
