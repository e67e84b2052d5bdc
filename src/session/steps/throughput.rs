//! One pass of raw TCP with both ends: in one direction, or in both at the same moment.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use crate::model::flows::FlowSpread;
use crate::model::host::{Direction, Role};
use crate::model::link::HostLink;
use crate::model::outcome::Outcome;
use crate::model::throughput::{BothWays, Pass, PassOptions, ReceiverEnd, RttSummary, SenderEnd};
use crate::session::around::Bracket;
use crate::session::client::{ClientSession, unexpected};
use crate::session::error::SessionError;
use crate::session::event::{Event, Step, Watch};
use crate::session::flows::{foretell, hold};
use crate::session::served::{AgentSession, blocking};
use crate::sys::Stop;
use crate::throughput::{Progress, ReceiveSpec, SendSpec, SocketSpec, connect, receive, send};
use crate::wire::hello::Hello;
use crate::wire::message::{Around, PassRequest, Token};
use crate::wire::{Reply, Request};

/// The longest pass that an agent agrees to.
pub(super) const LONGEST: Duration = Duration::from_secs(120);

/// How much longer than the sender a receiver waits for the end: a queue of a few MB at 10 Mbit/s.
pub(super) const GRACE: Duration = Duration::from_millis(1500);

/// The time for a data connection.
const CONNECT: Duration = Duration::from_secs(3);

/// The distance of echoes beside the streams.
const ECHO_EVERY: Duration = Duration::from_millis(20);

/// The agent's side of one pass.
pub async fn agent(session: &mut AgentSession, request: PassRequest) -> Reply {
    let connections = session.connections(&request.tokens).await;
    let (stop, interfaces, link) = (session.stop.clone(), session.interfaces.clone(), session.link.clone());
    blocking(move || {
        let spread = foretold(link.as_deref(), request.direction, &connections);
        let bracket = Bracket::start(&interfaces);
        match request.direction {
            Direction::Upload => Reply::Received(take_in(connections, request, &stop), Box::new(bracket.finish())),
            Direction::Download => {
                let sender = give_out(connections, request, &stop);
                let around = held(spread, &sender, bracket.finish());
                Reply::Sent(sender, Box::new(around))
            }
        }
    })
    .await
}

/// The agent's side of two passes at the same moment.
pub async fn agent_both(session: &mut AgentSession, upload: PassRequest, download: PassRequest) -> Reply {
    let incoming = session.connections(&upload.tokens).await;
    let outgoing = session.connections(&download.tokens).await;
    let (stop, interfaces, link) = (session.stop.clone(), session.interfaces.clone(), session.link.clone());
    blocking(move || {
        let spread = foretold(link.as_deref(), Direction::Download, &outgoing);
        let bracket = Bracket::start(&interfaces);
        let (taken, given) =
            beside(|| take_in(incoming, upload, &stop), || give_out(outgoing, download, &stop), "the receiving end");
        let around = held(spread, &given, bracket.finish());
        Reply::Both(Box::new((taken, given)), Box::new(around))
    })
    .await
}

/// Two halves of one phase at the same moment, the first in a thread of its own; `what` names it where it comes to grief.
fn beside<A: Send, B>(one: impl FnOnce() -> Outcome<A> + Send, other: impl FnOnce() -> B, what: &str) -> (Outcome<A>, B) {
    std::thread::scope(|scope| {
        let one = std::thread::Builder::new().name("beside".into()).spawn_scoped(scope, one);
        let other = other();
        let one = match one {
            Ok(thread) => thread.join().unwrap_or_else(|_| Outcome::failed(format!("{what} broke off"))),
            Err(error) => Outcome::failed(format!("{what} could not start a thread: {error}")),
        };
        (one, other)
    })
}

/// Which port each connection leaves by at its sender.
fn foretold(link: Option<&HostLink>, direction: Direction, connections: &Result<Vec<TcpStream>, String>) -> Outcome<FlowSpread> {
    match connections {
        Ok(connections) => foretell(link, direction.word(), connections),
        Err(why) => Outcome::skipped(why.clone()),
    }
}

/// What a sender saw around its pass, with the ports that its connections took.
fn held(spread: Outcome<FlowSpread>, sender: &Outcome<SenderEnd>, around: Around) -> Around {
    let flows = hold(&spread, sender, &around.counters);
    Around { spread, flows, ..around }
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

/// One pass as the client wants it.
#[derive(Clone, Debug)]
pub(super) struct PassPlan {
    /// The way of the data.
    pub(super) direction: Direction,
    /// The number of streams.
    pub(super) streams: u32,
    /// The largest segment, where it is to be smaller than what the ends would use.
    pub(super) clamp: Option<u32>,
    /// How long the sender sends at most.
    pub(super) time: Duration,
    /// How much longer the receiver waits for the end.
    pub(super) grace: Duration,
    /// What is asked of sockets and engine.
    pub(super) options: PassOptions,
}

impl PassPlan {
    /// One stream with what the user asked for, the whole time.
    pub(super) fn one(session: &ClientSession, direction: Direction, time: Duration) -> Self {
        // What the path carries bounds what the user may ask for.
        let clamp = session.mss_clamp.into_iter().chain(session.settings.throughput.mss_bytes).min();
        Self { direction, streams: 1, clamp, time, grace: GRACE, options: session.options.clone() }
    }

    fn request(&self, tokens: Vec<Token>) -> PassRequest {
        PassRequest {
            direction: self.direction,
            tokens,
            duration_us: self.time.into(),
            grace_us: self.grace.into(),
            options: self.options.clone(),
        }
    }

    /// What a pass is; with the congestion control that it asks for where several are compared: whether that runs shows at its end.
    fn words(&self, compared: bool) -> String {
        let control = self.options.congestion.as_ref().filter(|_| compared).map(|name| format!(", {name} asked for"));
        format!("{}, {}{}", self.direction.arrow(), streams_in_words(self.streams), control.unwrap_or_default())
    }
}

/// `1 stream`, `4 streams`.
pub(super) fn streams_in_words(streams: u32) -> String {
    if streams == 1 { "1 stream".to_owned() } else { format!("{streams} streams") }
}

/// Opens data connections with these tokens.
pub async fn open(
    session: &ClientSession,
    tokens: &[Token],
    clamp: Option<u32>,
    options: &PassOptions,
) -> Result<Vec<TcpStream>, String> {
    let (peer, tokens) = (session.peer, tokens.to_vec());
    let spec = SocketSpec { mss_clamp: clamp, bind: session.settings.bind, options: options.clone(), ..SocketSpec::default() };
    blocking(move || {
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
    match open(session, &tokens, plan.clamp, &plan.options).await {
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
    let compared = session.settings.throughput.congestion.len() > 1;
    announce(session, plan.words(compared), plan.time, &progress);
    let request = Request::Pass(plan.request(tokens));
    let echo = echoes_beside(session, plan.time);
    let work = {
        let (stop, interfaces, plan) = (session.stop.clone(), session.interfaces.clone(), plan.clone());
        let link = session.link.clone();
        tokio::spawn(blocking(move || {
            let spread = foretell(link.as_deref(), plan.direction.word(), &connections);
            match our_end(plan, connections, &stop, &progress, &interfaces) {
                (End::Sender(sender), around) => {
                    let around = held(spread, &sender, around);
                    (End::Sender(sender), around)
                }
                receiver => receiver,
            }
        }))
    };
    let reply = session.ask(request).await;
    let (ours, around) =
        work.await.unwrap_or_else(|_| (End::Failed("our end broke off".to_owned()), Around::none("it broke off")));
    let loaded = loaded(echo).await;
    let theirs_sends = plan.direction == Direction::Download;
    let (sender, receiver, theirs) = match (ours, reply?) {
        (End::Sender(sender), Reply::Received(receiver, theirs)) | (End::Receiver(receiver), Reply::Sent(sender, theirs)) => {
            (sender, receiver, theirs)
        }
        (End::Failed(reason), _) => return Ok(Outcome::failed(reason)),
        (_, other) => return Err(unexpected(&other)),
    };
    tell_refusal(session, &plan, sender.measured());
    let [pc, nas] = &mut session.spreads;
    if theirs_sends {
        nas.replace(theirs.spread.clone())
    } else {
        pc.replace(around.spread.clone())
    };
    Ok(join(&plan, (sender, receiver), (&around, &theirs), loaded))
}

/// Tells whoever watches that a part begins.
pub(super) fn announce(session: &ClientSession, what: String, time: Duration, progress: &Progress) {
    let progress = progress.clone();
    let watch: Watch = Arc::new(move || progress.bytes());
    let part = if session.settings.scope.is_mtu() { Step::Mtu } else { Step::Throughput };
    session.events.part(part, what, time, Some(watch));
}

/// Echoes beside the streams, in the background, and what ends them: a pass may be over long before its time.
type Echoes = Result<(tokio::task::JoinHandle<Outcome<RttSummary>>, Stop), String>;

pub(super) fn echoes_beside(session: &ClientSession, time: Duration) -> Echoes {
    session.udp.as_ref().map_err(Clone::clone).map(|endpoint| {
        let (endpoint, over) = (Arc::clone(endpoint), Stop::new());
        let stop = over.clone();
        let count = (time.as_secs_f64() / ECHO_EVERY.as_secs_f64() * 0.9) as u32;
        (tokio::spawn(blocking(move || endpoint.rtt(count.max(5), ECHO_EVERY, &stop))), over)
    })
}

pub(super) async fn loaded(echoes: Echoes) -> Outcome<RttSummary> {
    match echoes {
        Ok((echoes, over)) => {
            over.set();
            echoes.await.unwrap_or_else(|_| Outcome::failed("the echoes broke off"))
        }
        Err(_) => Outcome::skipped("UDP does not reach the NAS"),
    }
}

/// A congestion control that was asked for and did not run is worth a word while it happens.
pub(super) fn tell_refusal(session: &ClientSession, plan: &PassPlan, sender: Option<&SenderEnd>) {
    if let (Some(asked), Some(ran)) = (&plan.options.congestion, sender.and_then(|end| end.congestion.as_ref()))
        && asked != ran
        && session.settings.throughput.congestion.contains(asked)
    {
        let end = plan.direction.sender().title();
        let text = format!("The {end} cannot use the congestion control {asked} (not there, or not allowed): {ran} ran instead.");
        session.events.tell(Event::Note(text));
    }
}

/// A pass of what both ends saw; `around` is what the PC and the NAS saw beside it.
pub(super) fn join(
    plan: &PassPlan,
    (sender, receiver): (Outcome<SenderEnd>, Outcome<ReceiverEnd>),
    (pc, nas): (&Around, &Around),
    loaded_rtt: Outcome<RttSummary>,
) -> Outcome<Pass> {
    receiver.and_then(|receiver| {
        let pass = crate::throughput::assemble(plan.streams, sender, receiver, plan.clamp);
        Outcome::Measured(Pass {
            loaded_rtt,
            cpu_pc: pc.cpu.clone(),
            counters_pc: pc.counters.clone(),
            cpu_nas: nas.cpu.clone(),
            counters_nas: nas.counters.clone(),
            flows: if plan.direction == Direction::Upload { pc.flows.clone() } else { nas.flows.clone() }.map(Box::new),
            ..pass
        })
    })
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
) -> (End, Around) {
    let bracket = Bracket::start(interfaces);
    let end = match plan.direction.sender() {
        Role::Pc => End::Sender(our_sender(plan, connections, stop, progress)),
        Role::Nas => End::Receiver(our_receiver(plan, connections, stop, progress)),
    };
    (end, bracket.finish())
}

fn our_sender(plan: PassPlan, connections: Vec<TcpStream>, stop: &Stop, progress: &Progress) -> Outcome<SenderEnd> {
    send(connections, &SendSpec { duration: plan.time, options: plan.options }, stop, progress).into()
}

fn our_receiver(plan: PassPlan, connections: Vec<TcpStream>, stop: &Stop, progress: &Progress) -> Outcome<ReceiverEnd> {
    receive(connections, &ReceiveSpec { deadline: plan.time + plan.grace, options: plan.options }, stop, progress).into()
}

/// One pass in each direction at the same moment; the plans name upload first.
pub(super) async fn pass_both(session: &mut ClientSession, plans: [PassPlan; 2]) -> Result<Outcome<BothWays>, SessionError> {
    let mut connections = Vec::new();
    let mut tokens = Vec::new();
    for plan in &plans {
        let own = session.tokens(plan.streams).await?;
        match open(session, &own, plan.clamp, &plan.options).await {
            Ok(streams) => connections.push(streams),
            Err(reason) => return Ok(Outcome::failed(reason)),
        }
        tokens.push(own);
    }
    let (Some(incoming), Some(outgoing)) = (connections.pop(), connections.pop()) else {
        return Ok(Outcome::failed("no connections for both directions"));
    };
    let [up, down] = plans;
    let progress = Progress::default();
    let streams = if up.streams == down.streams {
        format!("{} each", streams_in_words(up.streams))
    } else {
        format!("{} and {} streams", up.streams, down.streams)
    };
    announce(session, format!("both ways at once, {streams}"), up.time, &progress);
    let (down_tokens, up_tokens) = (tokens.pop().unwrap_or_default(), tokens.pop().unwrap_or_default());
    let request = Request::PassBoth { upload: up.request(up_tokens), download: down.request(down_tokens) };
    let echo = echoes_beside(session, up.time);
    let work = {
        let (stop, interfaces, up, down) = (session.stop.clone(), session.interfaces.clone(), up.clone(), down.clone());
        let link = session.link.clone();
        tokio::spawn(blocking(move || {
            let spread = foretell(link.as_deref(), up.direction.word(), &outgoing);
            let bracket = Bracket::start(&interfaces);
            let (sender, receiver) = beside(
                || our_sender(up, outgoing, &stop, &Progress::default()),
                || our_receiver(down, incoming, &stop, &progress),
                "our sending end",
            );
            let around = held(spread, &sender, bracket.finish());
            (sender, receiver, around)
        }))
    };
    let reply = session.ask(request).await;
    let broke = "our end broke off";
    let (sender, receiver, pc) =
        work.await.unwrap_or_else(|_| (Outcome::failed(broke), Outcome::failed(broke), Around::none(broke)));
    let loaded = loaded(echo).await;
    let Reply::Both(theirs, nas) = reply? else {
        return Err(SessionError::Protocol {
            peer: Role::Nas.title(),
            what: "another answer than that of both directions".to_owned(),
        });
    };
    let (their_receiver, their_sender) = *theirs;
    tell_refusal(session, &down, their_sender.measured());
    Ok(Outcome::Measured(BothWays {
        upload: join(&up, (sender, their_receiver), (&pc, &nas), loaded.clone()),
        download: join(&down, (their_sender, receiver), (&pc, &nas), loaded),
    }))
}
