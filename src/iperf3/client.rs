//! Our client against an iperf3 server: it leads the test, and tells what both ends saw.
//!
//! | part | what it does |
//! |---|---|
//! | `test` | pure: what is asked, as parameters, sockets and streams; what came of it |
//! | `run` (here), `measure` | the shell: the dialogue with the server, and the time between its begin and its end |
//! | `passes`, `output` | pure: from that to the passes of our model |
//! | `believed` | pure: whether what a server tells can be |
//! | `error` | what went wrong, in sentences |
//!
//! ```no_run
//! use weaklink::iperf3::client::{Test, Ways, passes, run};
//! use weaklink::sys::{Progress, Stop};
//!
//! let test = Test { ways: Ways::Both, streams: 4, ..Test::default() };
//! let result = run("192.0.2.7:5201".parse()?, &test, &Stop::new(), &Progress::new())?;
//! for (direction, pass) in passes(&result) {
//!     assert!(pass.measured().is_some(), "{direction:?}: {:?}", pass.why());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod believed;
mod error;
mod measure;
pub mod output;
mod passes;
mod test;

pub use error::ClientError;
pub use passes::{Datagrams, datagrams, passes};
pub use test::{MOST_STREAMS, Test, TestResult, UdpTest, Ways};

use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use socket2::SockRef;

use self::measure::{Opened, measure};
use super::socket::{self, Ask};
use super::stream::{DataSocket, Way};
use super::{Control, ControlError, Cookie, State, udp};
use crate::model::throughput::SocketFacts;
use crate::sys::{self, Progress, Stop};
use crate::throughput::{self, End};

/// How long a connection may take: the first two repetitions of a lost SYN (1 and 2 s later) still fall into it.
const CONNECT: Duration = Duration::from_secs(4);

/// How long a server may take for its next word. iperf3 answers at once; a full queue on the way may hold the word for seconds.
const ANSWER: Duration = Duration::from_secs(10);

/// How long to wait between tries while the server is busy.
const AGAIN: Duration = Duration::from_millis(50);

/// The segment size of the control connection: results are larger than a packet, and must come through where large packets vanish.
const CONTROL_SEGMENT: u32 = 1200;

/// Runs a test with the iperf3 server at `address`; blocks until it is over.
///
/// `progress` tells the bytes of both ways. When `stop` is set, the server is told so, and what was measured until then comes back (an
/// upload's figure is then missing, since only the server knows it).
///
/// # Errors
/// Whatever kept the test from running to its end, as a sentence for people. Where it ended and only the server's results
/// are missing, that is told in the result.
pub fn run(address: SocketAddr, test: &Test, stop: &Stop, progress: &Progress) -> Result<TestResult, ClientError> {
    test.check()?;
    let begin = Instant::now();
    loop {
        match attempt(address, test, stop, progress) {
            Err(error) if error.may_pass() && begin.elapsed() < test.patience && !stop.is_set() => thread::sleep(AGAIN),
            done => return done,
        }
    }
}

fn attempt(address: SocketAddr, test: &Test, stop: &Stop, progress: &Progress) -> Result<TestResult, ClientError> {
    let talk = Talk::dial(address, test, stop)?;
    let done = talk.prepare(test, stop).and_then(|opened| measure(&talk, test, opened, stop, progress));
    if matches!(done, Err(ClientError::Interrupted)) {
        talk.terminate();
    }
    done
}

/// The dialogue with a server.
#[derive(Debug)]
pub(super) struct Talk {
    address: SocketAddr,
    control: Control,
}

impl Talk {
    fn dial(address: SocketAddr, test: &Test, stop: &Stop) -> Result<Self, ClientError> {
        let ask = Ask { mss_bytes: Some(CONTROL_SEGMENT), ..Ask::default() };
        let (stream, _) = socket::open_tcp(address, test.bind, &ask, CONNECT).map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused => ClientError::NothingListens(address),
            _ => ClientError::Connect { address, error },
        })?;
        Ok(Self { address, control: Control::new(stream, stop.clone())? })
    }

    /// Everything up to the begin of the test.
    fn prepare(&self, test: &Test, stop: &Stop) -> Result<Opened, ClientError> {
        let cookie = random_cookie()?;
        // A busy server answers and closes without reading, which can break this send: its answer still tells more.
        let _ = self.control.send_cookie(&cookie, soon());
        let first = self.control.expect_state(State::ParamExchange, soon());
        first.map_err(|error| ClientError::at_first(error, self.address, ANSWER))?;
        let accepted = self
            .control
            .send_params(&test.params(), soon())
            .and_then(|()| self.control.expect_state(State::CreateStreams, soon()));
        self.words(accepted, "after it was told what to do")?;
        let opened = self.open_streams(test, &cookie, stop)?;
        self.words(self.control.expect_state(State::TestStart, soon()), "after all streams were open")?;
        self.words(self.control.expect_state(State::TestRunning, soon()), "before the test began")?;
        Ok(opened)
    }

    fn open_streams(&self, test: &Test, cookie: &Cookie, stop: &Stop) -> Result<Opened, ClientError> {
        let (ask, order) = (test.ask(), test.order());
        let of = order.len();
        let mut opened = Opened::default();
        for (at, way) in order.into_iter().enumerate() {
            if stop.is_set() {
                return Err(ClientError::Interrupted);
            }
            let from = (self.address, test.bind);
            let stream = if test.udp.is_some() { open_udp(from, &ask, stop) } else { open_tcp(from, &ask, cookie) };
            let (socket, refused) = match stream {
                Ok(stream) => stream,
                Err(_) if stop.is_set() => return Err(ClientError::Interrupted),
                Err(error) => return Err(self.stream_error(error, at + 1, of)),
            };
            let facts = if way == Way::Send { &mut opened.send_sockets } else { &mut opened.receive_sockets };
            facts.get_or_insert_with(|| match &socket {
                DataSocket::Tcp(stream) => granted(stream, test, way, refused),
                DataSocket::Udp(socket) => ask.facts(&SockRef::from(socket), way == Way::Send, refused),
            });
            opened.sockets.push((socket, way));
        }
        Ok(opened)
    }

    /// Why a data connection failed: the server may have said it on the control connection.
    fn stream_error(&self, error: io::Error, number: usize, of: usize) -> ClientError {
        match self.control.poll_state(Duration::from_millis(100)) {
            Ok(Some(State::ServerTerminate)) => ClientError::Terminated(self.address),
            Err(word @ ControlError::Refused(_)) => ClientError::of(word, self.address, "while streams were opened", ANSWER),
            _ => ClientError::Stream { address: self.address, number, of, error },
        }
    }

    /// What went wrong on the control connection, in words.
    fn words<T>(&self, result: Result<T, ControlError>, during: &'static str) -> Result<T, ClientError> {
        result.map_err(|error| ClientError::of(error, self.address, during, ANSWER))
    }

    /// Tells the server that its client has gone; it need not have heard it.
    fn terminate(&self) {
        let _ = self.control.send_state(State::ClientTerminate, Instant::now());
    }
}

/// What the kernel granted on a TCP stream; a refused segment size, which nobody can read back, where nothing else was refused.
fn granted(stream: &TcpStream, test: &Test, way: Way, refused: Vec<String>) -> SocketFacts {
    let end = if way == Way::Send { End::Sender } else { End::Receiver };
    let facts = throughput::facts(&SockRef::from(stream), &test.options, end);
    if facts.refused.is_empty() { SocketFacts { refused, ..facts } } else { facts }
}

/// Opens a TCP stream to the first address from the second.
fn open_tcp((address, own): (SocketAddr, Option<IpAddr>), ask: &Ask, cookie: &Cookie) -> io::Result<(DataSocket, Vec<String>)> {
    let (stream, refused) = socket::open_tcp(address, own, ask, CONNECT)?;
    stream.set_write_timeout(Some(CONNECT))?;
    (&stream).write_all(cookie.bytes())?;
    Ok((DataSocket::Tcp(stream), refused))
}

/// Opens a stream of datagrams likewise.
fn open_udp((address, own): (SocketAddr, Option<IpAddr>), ask: &Ask, stop: &Stop) -> io::Result<(DataSocket, Vec<String>)> {
    let (socket, refused) = udp::open(address, own, ask, CONNECT, stop).map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => {
            io::Error::new(error.kind(), "no answer to the first datagram: something drops UDP on this port")
        }
        _ => error,
    })?;
    // A datagram in fragments would be lost with any of them; where this system cannot forbid it, the server still does.
    let _ = sys::udp::forbid_fragments(&socket);
    Ok((DataSocket::Udp(socket), refused))
}

/// The moment until which the server may take for its next word.
fn soon() -> Instant {
    Instant::now() + ANSWER
}

fn random_cookie() -> io::Result<Cookie> {
    let mut random = [0; Cookie::LEN - 1];
    getrandom::fill(&mut random).map_err(|error| io::Error::other(format!("this system gives no random numbers: {error}")))?;
    Ok(Cookie::from_random(random))
}
