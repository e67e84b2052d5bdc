//! Datagrams at paced rates, over a flow that the PC opens.
//!
//! ```text
//! PC: UdpFlow            NAS: a token and a port                       (the agent's own port, or a free one)
//! PC: hello, hello, …    NAS: a socket connected to where it came from
//! PC: UdpArrived?        NAS: yes                                      (now nobody else gets a datagram of the NAS)
//! upload:   UdpBegin → UdpBegun; datagrams; UdpEnd → UdpReceived
//! download: UdpSend; datagrams → UdpSent
//! ```

mod flow;

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::model::host::Direction;
use crate::model::outcome::Outcome;
use crate::model::plan::{UdpPlan, Ways};
use crate::model::udp::{UdpDirection, UdpPass, UdpReceived, UdpSection, UdpSent};
use crate::session::around::Bracket;
use crate::session::client::{ClientSession, unexpected};
use crate::session::error::SessionError;
use crate::session::event::{Step, Watch};
use crate::session::served::{AgentSession, blocking, random_token};
use crate::sys::Stop;
use crate::throughput::Progress;
use crate::throughput::udp::{Finish, HEAD, LONGEST, ReceiveSpec, Receiver, Search, SendSpec, assemble, direction, send};
use crate::units::BitRate;
use crate::wire::message::{Around, UdpPassRequest};
use crate::wire::{Reply, Request};

pub use flow::{arrived_at_agent, open_at_agent};

/// How much longer than its sender a receiver lasts when nobody tells it that the sender has ended.
const UNTOLD: Duration = Duration::from_secs(5);

/// A pass that the agent receives.
#[derive(Debug)]
struct Receiving {
    finish: Finish,
    work: JoinHandle<(Outcome<UdpReceived>, Around)>,
}

/// What the agent keeps of the flow between the requests.
#[derive(Debug, Default)]
pub struct AtAgent {
    door: Option<flow::Door>,
    socket: Option<Arc<UdpSocket>>,
    receiving: Option<Receiving>,
}

/// No pass without a flow.
const NO_FLOW: &str = "no flow of datagrams is open";

/// The agent's side of an upload: receives from now on.
pub async fn begin_at_agent(session: &mut AgentSession, request: UdpPassRequest) -> Reply {
    let Some(socket) = session.datagrams.socket.clone() else { return Reply::Refused(NO_FLOW.to_owned()) };
    if session.datagrams.receiving.is_some() {
        return Reply::Refused("a pass of datagrams is being received already".to_owned());
    }
    let (stop, interfaces) = (session.stop.clone(), session.interfaces.clone());
    session.datagrams.receiving = Some(start(socket, request, stop, interfaces, Progress::default()).await);
    Reply::UdpBegun
}

/// The agent's side of an upload: the sender has ended.
pub async fn end_at_agent(session: &mut AgentSession, sent: u64) -> Reply {
    let Some(receiving) = session.datagrams.receiving.take() else {
        return Reply::Refused("no pass of datagrams runs".to_owned());
    };
    let (received, around) = receiving.end(sent).await;
    Reply::UdpReceived(Box::new(received), Box::new(around))
}

/// The agent's side of a download: only to who said hello with the token, no longer and no faster than any test needs.
pub async fn send_at_agent(session: &mut AgentSession, request: UdpPassRequest) -> Reply {
    let Some(socket) = session.datagrams.socket.clone() else { return Reply::Refused(NO_FLOW.to_owned()) };
    let (stop, interfaces) = (session.stop.clone(), session.interfaces.clone());
    let (sent, around) = blocking(move || give_out(&socket, request, &stop, &interfaces, &Progress::default())).await;
    Reply::UdpSent(sent, Box::new(around))
}

/// The sending end at either host.
fn give_out(
    socket: &UdpSocket,
    request: UdpPassRequest,
    stop: &Stop,
    interfaces: &[String],
    progress: &Progress,
) -> (Outcome<UdpSent>, Around) {
    let spec = SendSpec {
        pass: request.pass,
        rate: request.rate_bps,
        duration: request.duration_us.into(),
        datagram: request.datagram_bytes as usize,
        apart: false,
    };
    let bracket = Bracket::start(interfaces);
    let sent = send(socket, &spec, stop, progress);
    (sent.into(), bracket.finish())
}

/// The receiving end at either host; when this returns, what arrives is counted.
async fn start(
    socket: Arc<UdpSocket>,
    request: UdpPassRequest,
    stop: Stop,
    interfaces: Vec<String>,
    progress: Progress,
) -> Receiving {
    let (finish, (ready, begun)) = (Finish::new(), oneshot::channel());
    let told = finish.clone();
    let work = tokio::task::spawn_blocking(move || {
        let duration = Duration::from(request.duration_us).min(LONGEST);
        let bytes = u64::from(request.datagram_bytes.max(HEAD as u32));
        let planned = request.rate_bps.bytes().0.saturating_mul(duration.as_secs() + 1) / bytes;
        let spec = ReceiveSpec {
            pass: request.pass,
            datagram: request.datagram_bytes as usize,
            most: planned.saturating_add(1),
            deadline: duration + UNTOLD,
            ..ReceiveSpec::default()
        };
        let bracket = Bracket::start(&interfaces);
        let prepared = Receiver::new(&socket, spec);
        // Who waited for it may be gone.
        let _ = ready.send(());
        let received = prepared.and_then(|receiver| receiver.run(&told, &stop, &progress));
        (received.into(), bracket.finish())
    });
    // An end without a word is told by the work itself.
    let _ = begun.await;
    Receiving { finish, work }
}

impl Receiving {
    /// The sender has sent so many; waits for what is still on its way.
    async fn end(self, sent: u64) -> (Outcome<UdpReceived>, Around) {
        self.finish.set(sent);
        let broken = |_| (Outcome::failed("the receiving end broke off"), Around::none("it broke off"));
        self.work.await.unwrap_or_else(broken)
    }
}

/// The client's side of the whole step. `plan.presumed_bps` is what TCP reached or what the links promise, where known;
/// `plan.datagram_bytes` what the path MTU carries.
///
/// # Errors
/// When the session is over: the agent is lost, or the user ended it. Everything else is told in the section.
pub async fn client(session: &mut ClientSession, plan: UdpPlan, ways: Ways) -> Result<UdpSection, SessionError> {
    let both = |reason: &str| UdpSection { upload: Outcome::failed(reason), download: Outcome::failed(reason) };
    if !ways.has(Direction::Upload) && !ways.has(Direction::Download) {
        let reason = "datagrams are measured in one direction after the other, and only both at once was asked for";
        return Ok(UdpSection { upload: Outcome::skipped(reason), download: Outcome::skipped(reason) });
    }
    session.events.part(Step::Throughput, "a flow of datagrams", flow::HELLO_EVERY, None);
    let socket = match flow::open(session).await? {
        Ok(socket) => socket,
        Err(reason) => return Ok(both(&reason)),
    };
    let mut found = Vec::new();
    for way in [Direction::Upload, Direction::Download] {
        found.push(if ways.has(way) {
            one_way(session, &socket, &plan, way).await?
        } else {
            Outcome::skipped("this direction was not asked for")
        });
    }
    let mut found = found.into_iter();
    let mut next = || found.next().unwrap_or_else(|| Outcome::skipped("not asked for"));
    Ok(UdpSection { upload: next(), download: next() })
}

/// What fills a packet of 1500 bytes: less 20 or 40 of IP's header and 8 of UDP's.
const fn usual_bytes(v6: bool) -> u32 {
    if v6 { 1452 } else { 1472 }
}

/// One direction: passes until the search is over.
async fn one_way(
    session: &mut ClientSession,
    socket: &Arc<UdpSocket>,
    plan: &UdpPlan,
    way: Direction,
) -> Result<Outcome<UdpDirection>, SessionError> {
    let bytes = plan.datagram_bytes.unwrap_or(usual_bytes(session.peer.is_ipv6())).clamp(HEAD as u32, 65_507);
    let mut search = Search::new(plan, way);
    let (mut passes, mut methods) = (Vec::new(), None);
    while let Some((rate, time)) = search.ask() {
        let number = random_token()?.0.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let request = UdpPassRequest { pass: number, rate_bps: rate, duration_us: time.into(), datagram_bytes: bytes };
        let halves = match way {
            Direction::Upload => upload(session, socket, request).await?,
            Direction::Download => download(session, socket, request).await?,
        };
        let (pass, sent) = match halves {
            Outcome::Measured(halves) => halves.into_pass(rate, bytes, &mut methods),
            Outcome::Skipped(why) | Outcome::Failed(why) if passes.is_empty() => return Ok(Outcome::failed(why.reason)),
            Outcome::Skipped(why) | Outcome::Failed(why) => {
                search.give_up(&why.reason);
                break;
            }
        };
        if passes.is_empty() && pass.received == 0 && pass.sent > 0 {
            let reason = format!(
                "none of {} datagrams of {bytes} bytes arrived ({}): the path may carry only smaller ones, or something on it drops such a flow",
                pass.sent,
                way.arrow()
            );
            return Ok(Outcome::failed(reason));
        }
        search.tell(&pass, sent.elapsed_us.into(), sent.behind);
        passes.push(pass);
    }
    Ok(Outcome::Measured(direction(&search, bytes, methods.unwrap_or_default(), passes)))
}

/// Both halves of a pass, and what the hosts saw around them.
struct Halves {
    sent: UdpSent,
    received: UdpReceived,
    pc: Around,
    nas: Around,
}

impl Halves {
    fn into_pass(self, rate: BitRate, bytes: u32, methods: &mut Option<(String, String)>) -> (UdpPass, UdpSent) {
        *methods = Some((self.sent.method.clone(), self.received.method.clone()));
        let mut pass = assemble(rate, bytes, &self.sent, self.received);
        (pass.cpu_pc, pass.counters_pc) = (self.pc.cpu, self.pc.counters);
        (pass.cpu_nas, pass.counters_nas) = (self.nas.cpu, self.nas.counters);
        (pass, self.sent)
    }

    fn of(sent: Outcome<UdpSent>, received: Outcome<UdpReceived>, pc: Around, nas: Around) -> Outcome<Self> {
        sent.and_then(|sent| received.map(|received| Self { sent, received, pc, nas }))
    }
}

/// Tells that a pass begins; gives the number that is drawn meanwhile.
fn announce(session: &ClientSession, way: Direction, request: UdpPassRequest) -> Progress {
    let progress = Progress::default();
    let watch: Watch = {
        let progress = progress.clone();
        Arc::new(move || progress.bytes())
    };
    let what = format!("datagrams {}, {}", way.arrow(), request.rate_bps);
    session.events.part(Step::Throughput, what, request.duration_us.into(), Some(watch));
    progress
}

async fn upload(
    session: &mut ClientSession,
    socket: &Arc<UdpSocket>,
    request: UdpPassRequest,
) -> Result<Outcome<Halves>, SessionError> {
    let progress = announce(session, Direction::Upload, request);
    let reply = session.ask(Request::UdpBegin(request)).await?;
    let Reply::UdpBegun = reply else { return Err(unexpected(&reply)) };
    let (socket, stop, interfaces) = (Arc::clone(socket), session.stop.clone(), session.interfaces.clone());
    let (sent, pc) = blocking(move || give_out(&socket, request, &stop, &interfaces, &progress)).await;
    let count = sent.measured().map_or(0, |sent| sent.datagrams);
    match session.ask(Request::UdpEnd { sent: count }).await? {
        Reply::UdpReceived(received, nas) => Ok(Halves::of(sent, *received, pc, *nas)),
        other => Err(unexpected(&other)),
    }
}

async fn download(
    session: &mut ClientSession,
    socket: &Arc<UdpSocket>,
    request: UdpPassRequest,
) -> Result<Outcome<Halves>, SessionError> {
    let progress = announce(session, Direction::Download, request);
    let (stop, interfaces) = (session.stop.clone(), session.interfaces.clone());
    let receiving = start(Arc::clone(socket), request, stop, interfaces, progress).await;
    let reply = session.ask(Request::UdpSend(request)).await;
    let count = if let Ok(Reply::UdpSent(Outcome::Measured(sent), _)) = &reply { sent.datagrams } else { 0 };
    let (received, pc) = receiving.end(count).await;
    match reply? {
        Reply::UdpSent(sent, nas) => Ok(Halves::of(sent, received, pc, *nas)),
        other => Err(unexpected(&other)),
    }
}
