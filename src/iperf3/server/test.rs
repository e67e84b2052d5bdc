//! One test, from its parameters to the goodbye.

use std::io::{self, Read as _};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::account::{Account, describe};
use super::event::{Iperf3Event, Served};
use super::house::{House, Place};
use super::streams;
use crate::iperf3::control::{Control, ControlError};
use crate::iperf3::fault::{Fault, FaultCode};
use crate::iperf3::params::{Amount, Flow, Params, Protocol};
use crate::iperf3::results::{Results, stream_id};
use crate::iperf3::socket::Ask;
use crate::iperf3::state::State;
use crate::iperf3::stream::{Load, Streams, Way};
use crate::sys;
use crate::units::BitRate;

/// The time for the client's parameters, and for every other word that it says at once.
const WORD: Duration = Duration::from_secs(10);

/// The time for the client's results: on a path that is still full of data they take their place in the queue.
const RESULTS: Duration = Duration::from_secs(30);

/// How much longer than asked for a test may take before it is ended (iperf3's own grace is 10 s, and what the path's round trip adds).
const GRACE: Duration = Duration::from_secs(30);

/// The longest test whose end the client decides: iperf3's longest time.
const LONGEST: Duration = Duration::from_secs(86_400);

/// How often the control connection and the clock are looked at while a test runs.
const LOOK: Duration = Duration::from_millis(100);

/// The largest read where this end only receives: a larger one gains nothing, and each stream may need a buffer of that size.
const READ: usize = 128 * 1024;

/// How long nothing may arrive after the client's word to end before what is missing counts as lost: above the least time after
/// which Linux sends a segment again (200 ms).
const QUIET: Duration = Duration::from_millis(300);

/// The longest that is waited for what was still on its way.
const DRAIN: Duration = Duration::from_secs(2);

/// Why a test ended early, and what the client is told.
pub(super) struct Broken {
    reason: String,
    word: Word,
}

/// The last word to a client.
enum Word {
    /// It knows, or it is gone.
    Nothing,
    /// The server ends.
    Terminate,
    /// It cannot be done.
    Fault(Fault),
}

impl Broken {
    /// The client gets iperf3's number for it.
    pub(super) fn fault(reason: impl Into<String>, code: FaultCode) -> Self {
        Self { reason: reason.into(), word: Word::Fault(Fault::of(code)) }
    }

    fn new(reason: impl Into<String>, word: Word) -> Self {
        Self { reason: reason.into(), word }
    }

    /// Tells the client, once.
    fn say(&mut self, control: &Control) {
        let deadline = Instant::now() + Duration::from_secs(1);
        let _ = match std::mem::replace(&mut self.word, Word::Nothing) {
            Word::Nothing => Ok(()),
            Word::Terminate => control.send_state(State::ServerTerminate, deadline),
            Word::Fault(fault) => control.send_fault(fault, deadline),
        };
    }
}

impl From<ControlError> for Broken {
    fn from(error: ControlError) -> Self {
        let word = match &error {
            ControlError::Stopped => return Self::new("this server was ended", Word::Terminate),
            ControlError::TimedOut => return Self::new("it did not answer in time", Word::Terminate),
            ControlError::Unfinished { .. } => return Self::new(error.to_string(), Word::Terminate),
            ControlError::Closed => return Self::new("it closed the connection", Word::Nothing),
            ControlError::UnknownState(_) | ControlError::UnexpectedState(_) => Word::Fault(Fault::of(FaultCode::Message)),
            ControlError::TooLarge { .. } => Word::Fault(Fault::of(FaultCode::RecvParams)),
            ControlError::Params(error) => Word::Fault(Fault::of(error.code())),
            ControlError::Results(_) => Word::Fault(Fault::of(FaultCode::RecvResults)),
            ControlError::Refused(_) | ControlError::Io(_) => Word::Nothing,
        };
        Self::new(error.to_string(), word)
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        ControlError::from(error).into()
    }
}

/// Serves one client to its end.
pub(super) fn run(house: &Arc<House>, control: &Control, peer: SocketAddr, place: &Place) {
    match serve(house, control, peer, place) {
        Ok(served) => {
            house.tell(Iperf3Event::Done { peer, served });
            // iperf3's client says goodbye, others only close.
            let _ = control.receive_state(Instant::now() + WORD);
        }
        Err(mut broken) => {
            broken.say(control);
            house.tell(Iperf3Event::Broken { peer, reason: broken.reason });
        }
    }
    hang_up(control);
}

/// Closes so that the last word arrives: closing with unread bytes would throw it away.
pub(super) fn hang_up(control: &Control) {
    let _ = control.stream().shutdown(Shutdown::Write);
    let deadline = Instant::now() + Duration::from_millis(500);
    let mut rest = [0; 4096];
    while Instant::now() < deadline {
        match control.stream().read(&mut rest) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

/// Looks for a word of the client's for `patience`; while nothing is expected of it, it can only be that it ends.
pub(super) fn watch(control: &Control, patience: Duration) -> Result<(), Broken> {
    control.poll_state(patience)?.map_or(Ok(()), |state| Err(unexpected(state)))
}

fn unexpected(state: State) -> Broken {
    match state {
        State::ClientTerminate => Broken::new("its user interrupted it", Word::Nothing),
        State::IperfDone => Broken::new("it said goodbye", Word::Nothing),
        state => ControlError::UnexpectedState(state).into(),
    }
}

fn serve(house: &Arc<House>, control: &Control, peer: SocketAddr, place: &Place) -> Result<Served, Broken> {
    let word = || Instant::now() + WORD;
    control.send_state(State::ParamExchange, word())?;
    let params = control.receive_params(word())?;
    check(house, control, &params)?;
    house.tell(Iperf3Event::Begin { peer, test: describe(&params) });
    let sockets = streams::gather(control, place, peer, &params, &ask(&params))?;
    place.begin();
    control.send_state(State::TestStart, word())?;
    control.send_state(State::TestRunning, word())?;
    let mut streams = Streams::start(sockets, load(&params))
        .map_err(|error| Broken::new(error.to_string(), Word::Fault(Fault::with(FaultCode::CreateStream, &error))))?;
    let mut account = Account::begin(&params, peer, control.stream().local_addr().ok());
    if let Err(mut broken) = watch_test(control, &params, &mut streams, &mut account) {
        // While the streams are still open: a client whose stream is reset does not look at what it is told.
        broken.say(control);
        hang_up(control);
        return Err(broken);
    }
    account.end(streams.elapsed(), || streams.counts());
    streams.end_sending();
    // The client may be in the middle of a block (3.12 reads whole ones), and says nothing before it has the rest.
    streams.close_senders();
    control.send_state(State::ExchangeResults, word())?;
    let theirs = control.receive_client_results(Instant::now() + RESULTS)?;
    drain(&streams, &theirs, params.protocol);
    let (results, served) = account.conclude(&streams.finish());
    // What the client's kernel still has to send needs no path any more; the results do.
    drop(streams);
    control.send_results(&results, Instant::now() + RESULTS)?;
    control.send_state(State::DisplayResults, word())?;
    Ok(served)
}

/// Refuses what this host cannot do, before streams are opened.
fn check(house: &House, control: &Control, params: &Params) -> Result<(), Broken> {
    if params.protocol == Protocol::Udp
        && let Some(reason) = house.no_udp()
    {
        return Err(Broken::fault(reason, FaultCode::StreamListen));
    }
    // Only the sending end's congestion control does anything. Whether this system has it is tried on the control connection.
    if let Some(name) = params.congestion.as_deref().filter(|_| params.protocol == Protocol::Tcp && params.flow != Flow::ToServer)
    {
        sys::tcp::set_congestion(&SockRef::from(control.stream()), name).map_err(|error| {
            let reason = format!("it asks for the congestion control {:?}, which this system refuses: {error}", clean(name));
            Broken::new(reason, Word::Fault(Fault::with(FaultCode::SetCongestion, &error)))
        })?;
    }
    Ok(())
}

/// A name from the wire, cut to what a kernel allows.
fn clean(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(16).collect()
}

/// The largest segment is left out: the client's end clamps both directions by the handshake.
fn ask(params: &Params) -> Ask {
    Ask {
        congestion: params.congestion.clone(),
        window_bytes: params.window,
        mss_bytes: None,
        tos: params.tos,
        no_delay: params.nodelay,
        pacing_bps: params.fq_rate_bps.map(BitRate),
    }
}

/// No limit in bytes or blocks, though the client may have named one: it ends the test when it has enough. It does not count what it reads
/// before it has seen the word to go (3.12 reads on then, and waits for ever when the rest never comes), and datagrams may be lost.
fn load(params: &Params) -> Load {
    let only_receives = params.flow == Flow::ToServer && params.protocol == Protocol::Tcp;
    let len = params.len as usize;
    Load {
        len: if only_receives { len.min(READ) } else { len },
        rate: params.bandwidth_bps.map(BitRate),
        burst: params.burst.unwrap_or(0),
        bytes: None,
        copies: false,
        wide_counters: params.udp_counters_64bit,
        deadline: deadline(params),
    }
}

fn deadline(params: &Params) -> Duration {
    match params.amount {
        Amount::Seconds(seconds) if seconds > 0 => Duration::from_secs(u64::from(seconds) + u64::from(params.omit_s)) + GRACE,
        _ => LONGEST,
    }
}

/// Looks at the clock and at the client until it ends the test.
fn watch_test(control: &Control, params: &Params, streams: &mut Streams, account: &mut Account) -> Result<(), Broken> {
    let mut omit = (params.omit_s > 0).then(|| Duration::from_secs(params.omit_s.into()));
    loop {
        let now = streams.elapsed();
        if omit.is_some_and(|omit| now >= omit) {
            omit = None;
            streams.omit();
            account.restart(now, |at| streams.tcp_stats(at).measured().and_then(|stats| stats.retransmits));
        }
        account.look(now, || streams.counts());
        if now >= deadline(params) {
            return Err(Broken::new("it did not end the test in time", Word::Terminate));
        }
        let patience = omit.map_or(LOOK, |omit| omit.saturating_sub(now).min(LOOK));
        match control.poll_state(patience)? {
            None => {}
            Some(State::TestEnd) => return Ok(()),
            Some(state) => return Err(unexpected(state)),
        }
    }
}

/// Waits for what the client has sent and is still on its way: its word to end took another connection.
fn drain(streams: &Streams, theirs: &Results, protocol: Protocol) {
    let announced = |at: u32| theirs.streams.iter().find(|stream| stream.id == stream_id(at));
    let missing = || {
        streams.counts().iter().zip(0..).any(|(count, at)| {
            announced(at).is_some_and(|stream| match protocol {
                Protocol::Tcp => count.bytes < stream.bytes,
                Protocol::Udp => count.packets < stream.packets,
            })
        })
    };
    let begin = Instant::now();
    let (mut seen, mut since) = (streams.bytes(Way::Receive), begin);
    while !streams.receivers_ended() && missing() && since.elapsed() < QUIET && begin.elapsed() < DRAIN {
        std::thread::sleep(Duration::from_millis(2));
        let now = streams.bytes(Way::Receive);
        if now != seen {
            (seen, since) = (now, Instant::now());
        }
    }
}
