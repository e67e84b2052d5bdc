//! The time between the begin and the end of a test, and the exchange of results.

use std::thread;
use std::time::{Duration, Instant};

use super::error::ClientError;
use super::test::{Test, TestResult, Ways};
use super::{ANSWER, Talk, soon};
use crate::iperf3::stream::{DataSocket, Streams, Way};
use crate::iperf3::{ControlError, Cookie, Results, SenderRetransmits, State, StreamResult, stream_id};
use crate::model::Outcome;
use crate::model::kernel::Ended;
use crate::model::throughput::SocketFacts;
use crate::sys::{Progress, Stop};
use crate::throughput::{BIN, Meter, Schedule};

/// How long the control connection is listened to at a time while the test runs.
const LOOK: Duration = Duration::from_millis(20);

/// What a call of a sender may take on a path that takes nothing, and its thread to be scheduled.
const ONE_CALL: Duration = Duration::from_millis(200);

/// How long the server may take to say why all streams have ended.
const LAST_WORD: Duration = Duration::from_secs(1);

/// How long after the last datagram the word to end waits, so that what is still in a queue on the way is not taken for lost: more
/// than a full buffer of a slow access line holds.
const LINGER: Duration = Duration::from_millis(200);

/// How long the last bytes may take to be acknowledged where the bytes are limited: as long as the server's next word.
const ACKNOWLEDGE: Duration = ANSWER;

/// The time without data after which nothing is taken to be on its way any more, and the longest that is waited for that.
const DRAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// What was opened for a test.
#[derive(Debug, Default)]
pub(super) struct Opened {
    pub(super) sockets: Vec<(DataSocket, Way)>,
    pub(super) send_sockets: Option<SocketFacts>,
    pub(super) receive_sockets: Option<SocketFacts>,
}

/// Looks at the counters: two series, from the end of the omitted part on.
#[derive(Debug)]
struct Looks {
    from: Duration,
    sent: Meter,
    received: Option<Meter>,
}

impl Looks {
    fn new(from: Duration) -> Self {
        Self { from, sent: Meter::new(BIN, from), received: None }
    }

    fn look(&mut self, streams: &Streams, now: Duration) {
        self.sent.look(now, streams.counted(Way::Send));
        if self.received.is_none() {
            self.received = streams.first(Way::Receive).map(|first| Meter::new(BIN, first.max(self.from)));
        }
        if let Some(meter) = &mut self.received {
            meter.look(now, streams.counted(Way::Receive));
        }
    }
}

/// Runs the test on open streams, after the server's word to begin.
pub(super) fn measure(
    talk: &Talk,
    test: &Test,
    opened: Opened,
    stop: &Stop,
    progress: &Progress,
) -> Result<TestResult, ClientError> {
    let mut streams = Streams::start(opened.sockets, test.load())?;
    let mut looks = Looks::new(Duration::ZERO);
    let ended = watch(talk, test, &mut streams, &mut looks, (stop, progress))?;
    let until = streams.elapsed();
    looks.look(&streams, until);
    streams.end_sending();
    if ended == Ended::Stopped {
        talk.terminate();
    }
    wait_for_senders(&streams);
    let acknowledged = if ended == Ended::Stopped { None } else { last_data(test, &streams, &looks, stop) };
    let over = if ended == Ended::Stopped { Err(ControlError::Stopped) } else { end(talk, &streams) };
    let received = looks.received.as_ref();
    let mut result = TestResult {
        test: test.clone(),
        streams: streams.finish(),
        sent_bins: looks.sent.finish(until),
        received_bins: received.map(|meter| meter.finish(until)).unwrap_or_default(),
        elapsed: until.saturating_sub(looks.from),
        acknowledged,
        counted_from: looks.from,
        server: Outcome::skipped("the test was interrupted before the server told what it saw"),
        ended,
        send_sockets: opened.send_sockets.unwrap_or_default(),
        receive_sockets: opened.receive_sockets.unwrap_or_default(),
    };
    progress.set(result.bytes(Way::Send).saturating_add(result.bytes(Way::Receive)));
    if ended == Ended::Stopped {
        let moved = result.streams.iter().any(|stream| stream.count.bytes > 0);
        return if moved { Ok(result) } else { Err(ClientError::Interrupted) };
    }
    let told = over.and_then(|()| exchange(talk, &our_results(&result)));
    result.server = match talk.words(told, "while results were exchanged") {
        Ok(results) => Outcome::Measured(results),
        Err(ClientError::Interrupted) => {
            talk.terminate();
            result.server
        }
        Err(error) => Outcome::failed(error.to_string()),
    };
    Ok(result)
}

/// Waits for the end of the test and keeps the series meanwhile.
fn watch(
    talk: &Talk,
    test: &Test,
    streams: &mut Streams,
    looks: &mut Looks,
    (stop, progress): (&Stop, &Progress),
) -> Result<Ended, ClientError> {
    let mut omits = !test.omit.is_zero();
    loop {
        let now = streams.elapsed();
        if omits && now >= test.omit {
            omits = false;
            streams.omit();
            *looks = Looks::new(now);
        }
        looks.look(streams, now);
        progress.set(streams.bytes(Way::Send).saturating_add(streams.bytes(Way::Receive)));
        let left = (looks.from + test.time).saturating_sub(now);
        if stop.is_set() {
            return Ok(Ended::Stopped);
        } else if reached(test, streams) {
            return Ok(Ended::Bytes);
        } else if !omits && left.is_zero() {
            return Ok(Ended::Time);
        } else if streams.senders_ended() && streams.receivers_ended() {
            return broken(talk, test, streams);
        }
        let until_bin = Schedule::new(looks.from, BIN).wait(now);
        match talk.control.poll_state(LOOK.min(until_bin).min(left.max(Duration::from_millis(1)))) {
            Ok(None) | Err(ControlError::Stopped) => {}
            word => return Err(talk.unexpected(word)),
        }
    }
}

/// Whether the bytes that were asked for have moved.
fn reached(test: &Test, streams: &Streams) -> bool {
    let Some(most) = test.options.max_bytes else { return false };
    let down = || streams.counted(Way::Receive) >= most.0;
    match test.ways {
        Ways::Upload => streams.senders_ended(),
        Ways::Download => down(),
        Ways::Both => streams.senders_ended() && down(),
    }
}

/// All streams have ended before the test: the server's last word, or what the streams say.
fn broken(talk: &Talk, test: &Test, streams: &mut Streams) -> Result<Ended, ClientError> {
    // The other end has sent all that was asked of it, or we have: less than was counted here came in whole.
    if test.options.max_bytes.is_some() && streams.counted(Way::Receive) > 0 {
        return Ok(Ended::Peer);
    }
    let begin = Instant::now();
    while begin.elapsed() < LAST_WORD {
        match talk.control.poll_state(Duration::from_millis(50)) {
            Ok(None) => {}
            Err(ControlError::Stopped) => return Ok(Ended::Stopped),
            word => return Err(talk.unexpected(word)),
        }
    }
    let error = streams.finish().into_iter().find_map(|stream| stream.error);
    let why = error.map_or_else(|| "the server closed them".to_owned(), |error| error.to_string());
    Err(ClientError::Broke { address: talk.address, why })
}

/// The senders see the word to end after one call: what that call still hands over belongs to the test.
fn wait_for_senders(streams: &Streams) {
    let begin = Instant::now();
    while !streams.senders_ended() && begin.elapsed() < ONE_CALL {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Gives the last data of an upload its time to arrive. Where the bytes are limited: when all were acknowledged, after the begin.
fn last_data(test: &Test, streams: &Streams, looks: &Looks, stop: &Stop) -> Option<Duration> {
    if !test.ways.includes(crate::model::host::Direction::Upload) {
        return None;
    }
    let begin = Instant::now();
    let pause = Duration::from_millis(1);
    if test.udp.is_some() {
        while begin.elapsed() < LINGER && !stop.is_set() {
            thread::sleep(LINGER / 10);
        }
        return None;
    }
    test.options.max_bytes?;
    while begin.elapsed() < ACKNOWLEDGE && !stop.is_set() {
        if streams.all_acknowledged(Cookie::LEN as u64)? {
            let acknowledged = streams.elapsed().saturating_sub(looks.from);
            // The server's kernel has all; its program may be a moment behind.
            thread::sleep(LOOK);
            return Some(acknowledged);
        }
        thread::sleep(pause);
    }
    None
}

/// The word to end, and the data that is still on its way.
fn end(talk: &Talk, streams: &Streams) -> Result<(), ControlError> {
    talk.control.send_state(State::TestEnd, soon())?;
    talk.control.expect_state(State::ExchangeResults, soon())?;
    streams.drain(DRAIN.0, DRAIN.1);
    Ok(())
}

/// Ours first, then theirs.
fn exchange(talk: &Talk, ours: &Results) -> Result<Results, ControlError> {
    talk.control.send_results(ours, soon())?;
    let theirs = talk.control.receive_server_results(soon())?;
    talk.control.expect_state(State::DisplayResults, soon())?;
    // Nobody waits for this word; the server sees the connection end all the same.
    let _ = talk.control.send_state(State::IperfDone, soon());
    Ok(theirs)
}

/// What this end tells the server.
fn our_results(result: &TestResult) -> Results {
    let sends = result.of_way(Way::Send).next().is_some();
    let share = |time: Duration| 100.0 * time.as_secs_f64() / result.elapsed.as_secs_f64().max(1e-3);
    let cpu = result.streams.iter().filter_map(|stream| stream.cpu).fold(Duration::ZERO, Duration::saturating_add);
    let streams = result.streams.iter().zip(0..).map(|(stream, at)| {
        let retransmits = stream.tcp.measured().and_then(|stats| stats.retransmits);
        let of_datagrams = |count: u64| if result.test.udp.is_some() { count } else { 0 };
        let omitted = stream.omitted;
        StreamResult {
            id: stream_id(at),
            bytes: stream.count.bytes,
            retransmits: retransmits.filter(|_| stream.way == Way::Send),
            jitter_s: stream.count.jitter_s,
            errors: i64::try_from(stream.count.lost.saturating_add(omitted.lost)).unwrap_or(i64::MAX),
            packets: of_datagrams(stream.count.packets.saturating_add(omitted.packets)),
            omitted: None,
            start_s: 0.0,
            end_s: result.elapsed.as_secs_f64(),
        }
    });
    Results {
        cpu_total: share(cpu),
        cpu_system: share(cpu),
        sender_retransmits: match (sends, result.test.udp) {
            (false, _) => SenderRetransmits::NoSender,
            (true, Some(_)) => SenderRetransmits::Unknown,
            (true, None) => SenderRetransmits::Counted,
        },
        congestion_used: result.of_way(Way::Send).find_map(|(_, stream)| stream.congestion.clone()),
        streams: streams.collect(),
        ..Results::default()
    }
}

impl Talk {
    /// A word that no server says while a test runs, or the end of its words.
    fn unexpected(&self, word: Result<Option<State>, ControlError>) -> ClientError {
        let error = match word {
            Ok(Some(state)) => ControlError::UnexpectedState(state),
            Ok(None) => ControlError::TimedOut,
            Err(error) => error,
        };
        ClientError::of(error, self.address, "while the test ran", ANSWER)
    }
}
