//! The data plane of both roles: one OS thread for each data stream, counters that anybody may look at meanwhile, and the result.
//!
//! A test opens (or accepts) its connections, gives them to [`Streams::start`] and then only looks at the clock: [`Streams::counts`] for
//! intervals, [`Streams::omit`] when the first seconds shall not count, [`Streams::end_sending`] when the time is over,
//! [`Streams::drain`] until nothing is on its way any more, [`Streams::finish`] for the result. Dropping it ends all threads too.

mod tally;

pub use tally::Count;
pub(super) use tally::Tally;

use std::io;
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::tcp::{self, Content};
use super::udp;
use crate::model::Outcome;
use crate::model::throughput::TcpStats;
use crate::sys;
use crate::throughput;
use crate::units::BitRate;

/// The longest that a call of a stream's thread waits, so that every thread sees the word to end; a black hole cannot hold it longer.
pub(super) const CALL_WAIT: Duration = Duration::from_millis(50);

/// The place of `tcpi_bytes_acked` in `struct tcp_info` (Linux 4.1 on): bytes, the handshake's one among them.
const BYTES_ACKED: usize = 120;

/// How often [`Streams::drain`] looks.
const LOOK: Duration = Duration::from_millis(5);

/// A data connection.
#[derive(Debug)]
pub enum DataSocket {
    /// A TCP connection; the cookie has been sent or taken already.
    Tcp(TcpStream),
    /// A connected UDP socket; the connecting datagrams have been exchanged already.
    Udp(UdpSocket),
}

/// What this end does on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It sends.
    Send,
    /// It receives.
    Receive,
}

/// How this end's streams work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// The block length in bytes: of one call (TCP), of one datagram's payload (UDP).
    pub len: usize,
    /// The rate of each sending stream in payload bits; none: as fast as it goes.
    pub rate: Option<BitRate>,
    /// Blocks that are sent in a row where a rate is asked for; 0 is 1.
    pub burst: u32,
    /// The bytes after which sending ends, all sending streams together. A limit in blocks is that number times `len`.
    pub bytes: Option<u64>,
    /// Ordinary copies at this end; else bytes are sent from the kernel's memory and thrown away there, where the system can.
    pub copies: bool,
    /// Datagrams carry a counter of 64 bits, not of 32.
    pub wide_counters: bool,
    /// The longest that everything lasts, whatever else happens.
    pub deadline: Duration,
}

impl Load {
    /// The block length of TCP that iperf3 takes when it is told none.
    pub const TCP_LEN: usize = 128 * 1024;
}

/// One stream's result.
#[derive(Debug)]
pub struct StreamEnd {
    /// What this end did.
    pub way: Way,
    /// What was counted after the omitted part.
    pub count: Count,
    /// What was counted in the omitted part.
    pub omitted: Count,
    /// The first bytes, from [`Streams::start`] on; none when nothing moved.
    pub first: Option<Duration>,
    /// The last bytes.
    pub last: Option<Duration>,
    /// When its thread ended.
    pub ended: Duration,
    /// The connection as the kernel counted it at the end.
    pub tcp: Outcome<TcpStats>,
    /// The bytes that the other end's kernel had acknowledged when its thread ended, the cookie's and the omitted part's among them;
    /// none where the system does not tell.
    pub acknowledged: Option<u64>,
    /// The congestion control that ran, where the system tells.
    pub congestion: Option<String>,
    /// How the bytes were handed over: `sendfile`, `send`, `recv-trunc`, `read`.
    pub method: &'static str,
    /// The processor time of its thread.
    pub cpu: Option<Duration>,
    /// Why it ended early; none for what comes after the word to end.
    pub error: Option<io::Error>,
}

/// What all threads of a test share; no lock.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) load: Load,
    pub(super) content: Content,
    begin: Instant,
    tallies: Vec<Tally>,
    /// The bytes that senders may still take, where there is a limit.
    budget: AtomicU64,
    sending_over: AtomicBool,
    all_over: AtomicBool,
    senders_left: AtomicUsize,
    receivers_left: AtomicUsize,
}

impl Shared {
    /// The time since the start.
    pub(super) fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    /// The counters of a stream.
    pub(super) fn tally(&self, at: usize) -> Option<&Tally> {
        self.tallies.get(at)
    }

    /// Whether a thread that goes `way` shall end.
    pub(super) fn is_over(&self, way: Way) -> bool {
        let over = self.all_over.load(Ordering::Relaxed) || (way == Way::Send && self.sending_over.load(Ordering::Relaxed));
        over || self.now() >= self.load.deadline
    }

    /// Takes up to `most` bytes of what may still be sent; 0 is the end.
    pub(super) fn claim(&self, most: usize) -> usize {
        if self.load.bytes.is_none() {
            return most;
        }
        let mut left = self.budget.load(Ordering::Relaxed);
        loop {
            let part = left.min(most as u64);
            match self.budget.compare_exchange_weak(left, left - part, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return part as usize,
                Err(now) => left = now,
            }
        }
    }

    /// Gives back what was claimed and not sent.
    pub(super) fn give_back(&self, bytes: usize) {
        if self.load.bytes.is_some() && bytes > 0 {
            self.budget.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }
}

/// What a stream's loop comes back with.
#[derive(Debug, Default)]
pub(super) struct LoopEnd {
    pub(super) method: &'static str,
    pub(super) error: Option<io::Error>,
}

/// What is known of a stream only when its thread has ended.
#[derive(Debug)]
struct ThreadEnd {
    ended: Duration,
    tcp: Outcome<TcpStats>,
    acknowledged: Option<u64>,
    congestion: Option<String>,
    cpu: Option<Duration>,
    of_loop: LoopEnd,
}

/// One running stream.
#[derive(Debug)]
struct Stream {
    way: Way,
    socket: Arc<DataSocket>,
    thread: Option<JoinHandle<ThreadEnd>>,
    omitted: Count,
}

/// The running streams of a test.
#[derive(Debug)]
pub struct Streams {
    shared: Arc<Shared>,
    streams: Vec<Stream>,
}

impl Streams {
    /// Starts a thread for each connection; they begin at once. The order is kept in everything that comes back.
    ///
    /// # Errors
    /// When a thread cannot be started; those that run already end.
    pub fn start(sockets: Vec<(DataSocket, Way)>, load: Load) -> io::Result<Self> {
        let count = |way| sockets.iter().filter(|(_, other)| *other == way).count();
        let sends = count(Way::Send) > 0;
        let shared = Arc::new(Shared {
            content: Content::new(sends, load.copies || sockets.iter().any(|(socket, _)| matches!(socket, DataSocket::Udp(_)))),
            begin: Instant::now(),
            tallies: sockets.iter().map(|_| Tally::default()).collect(),
            budget: AtomicU64::new(load.bytes.unwrap_or(0)),
            sending_over: AtomicBool::new(false),
            all_over: AtomicBool::new(false),
            senders_left: AtomicUsize::new(count(Way::Send)),
            receivers_left: AtomicUsize::new(count(Way::Receive)),
            load,
        });
        let mut all = Self { shared, streams: Vec::with_capacity(sockets.len()) };
        for (at, (socket, way)) in sockets.into_iter().enumerate() {
            let (shared, socket) = (Arc::clone(&all.shared), Arc::new(socket));
            let own = Arc::clone(&socket);
            // When this fails, `all` is dropped, which ends those that run.
            let thread = thread::Builder::new()
                .name("iperf3 stream".into())
                .spawn(move || run(&shared, &own, way, at))
                .map_err(|error| io::Error::new(error.kind(), format!("failed to start a thread for a data stream: {error}")))?;
            all.streams.push(Stream { way, socket, thread: Some(thread), omitted: Count::default() });
        }
        Ok(all)
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.shared.now()
    }

    /// How many streams there are.
    pub const fn len(&self) -> usize {
        self.streams.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// What this end does on a stream; none where there is no such one.
    pub fn way(&self, at: usize) -> Option<Way> {
        self.streams.get(at).map(|stream| stream.way)
    }

    /// What each stream has counted after the omitted part.
    pub fn counts(&self) -> Vec<Count> {
        self.streams.iter().zip(&self.shared.tallies).map(|(stream, tally)| tally.get().since(&stream.omitted)).collect()
    }

    fn of_way(&self, way: Way) -> impl Iterator<Item = (&Stream, &Tally)> {
        self.streams.iter().zip(&self.shared.tallies).filter(move |(stream, _)| stream.way == way)
    }

    /// All bytes so far of the streams of one way, the omitted part included.
    pub fn bytes(&self, way: Way) -> u64 {
        self.of_way(way).map(|(_, tally)| tally.get().bytes).fold(0, u64::saturating_add)
    }

    /// The bytes so far of the streams of one way after the omitted part.
    pub fn counted(&self, way: Way) -> u64 {
        self.of_way(way).map(|(stream, tally)| tally.get().since(&stream.omitted).bytes).fold(0, u64::saturating_add)
    }

    /// Whether the other ends' kernels have acknowledged everything that was sent, `before` bytes that went ahead of the streams'
    /// own included; none where the system does not tell.
    pub fn all_acknowledged(&self, before: u64) -> Option<bool> {
        let mut all = true;
        for (stream, tally) in self.of_way(Way::Send) {
            all &= acknowledged(&stream.socket)? >= tally.get().bytes.saturating_add(before);
        }
        Some(all)
    }

    /// When the first bytes of a way moved.
    pub fn first(&self, way: Way) -> Option<Duration> {
        self.of_way(way).filter_map(|(_, tally)| tally.first()).min()
    }

    /// A connection as the kernel counts it now.
    pub fn tcp_stats(&self, at: usize) -> Outcome<TcpStats> {
        self.streams.get(at).map_or_else(|| Outcome::skipped("there is no such stream"), |stream| tcp_stats(&stream.socket))
    }

    /// What was counted until now is not the test's (`-O`).
    pub fn omit(&mut self) {
        for (stream, tally) in self.streams.iter_mut().zip(&self.shared.tallies) {
            stream.omitted = tally.get();
        }
    }

    /// Whether no stream sends any more: the bytes are over, the streams broke, or the word to end was seen.
    pub fn senders_ended(&self) -> bool {
        self.shared.senders_left.load(Ordering::Acquire) == 0
    }

    /// Whether no stream receives any more: the other end closed them, or they broke.
    pub fn receivers_ended(&self) -> bool {
        self.shared.receivers_left.load(Ordering::Acquire) == 0
    }

    /// Tells the senders to end, which takes them the time of one call.
    pub fn end_sending(&self) {
        self.shared.sending_over.store(true, Ordering::Relaxed);
    }

    /// Tells the other ends that nothing more comes on the streams on which this one sends: who waits for the rest of a block goes on.
    /// What the kernel still holds is delivered. For after [`Streams::end_sending`].
    pub fn close_senders(&self) {
        for (stream, _) in self.of_way(Way::Send) {
            if let DataSocket::Tcp(socket) = &*stream.socket {
                // One that is closed already is all the same.
                let _ = socket.shutdown(Shutdown::Write);
            }
        }
    }

    /// Waits until the receivers have ended or had nothing for the time of `quiet`, at the longest for `most`: the word to end, which
    /// comes on another connection, can overtake data.
    pub fn drain(&self, quiet: Duration, most: Duration) {
        let begin = Instant::now();
        let (mut seen, mut since) = (self.bytes(Way::Receive), Instant::now());
        while !self.receivers_ended() && since.elapsed() < quiet && begin.elapsed() < most {
            thread::sleep(LOOK);
            let now = self.bytes(Way::Receive);
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
        }
    }

    /// Ends all threads (within a tenth of a second) and gives the results in the order of the start; a second call gives none.
    ///
    /// The connections stay open until this is dropped: a server may still look at them while results are exchanged.
    pub fn finish(&mut self) -> Vec<StreamEnd> {
        self.halt();
        let mut ends = Vec::with_capacity(self.streams.len());
        for (stream, tally) in self.streams.iter_mut().zip(&self.shared.tallies) {
            let Some(thread) = stream.thread.take() else { continue };
            let end = thread.join().unwrap_or_else(|_| ThreadEnd {
                ended: self.shared.now(),
                tcp: Outcome::failed("the stream's thread failed"),
                acknowledged: None,
                congestion: None,
                cpu: None,
                of_loop: LoopEnd { method: "unknown", error: Some(io::Error::other("the stream's thread failed")) },
            });
            ends.push(StreamEnd {
                way: stream.way,
                count: tally.get().since(&stream.omitted),
                omitted: stream.omitted,
                first: tally.first(),
                last: tally.last(),
                ended: end.ended,
                tcp: end.tcp,
                acknowledged: end.acknowledged,
                congestion: end.congestion,
                method: end.of_loop.method,
                cpu: end.cpu,
                error: end.of_loop.error,
            });
        }
        ends
    }

    fn halt(&self) {
        self.shared.sending_over.store(true, Ordering::Relaxed);
        self.shared.all_over.store(true, Ordering::Relaxed);
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.halt();
    }
}

/// One stream's thread.
fn run(shared: &Shared, socket: &DataSocket, way: Way, at: usize) -> ThreadEnd {
    let mut of_loop = match (socket, way) {
        (DataSocket::Tcp(stream), Way::Send) => tcp::send(shared, stream, at),
        (DataSocket::Tcp(stream), Way::Receive) => tcp::receive(shared, stream, at),
        (DataSocket::Udp(socket), Way::Send) => udp::send(shared, socket, at),
        (DataSocket::Udp(socket), Way::Receive) => udp::receive(shared, socket, at),
    };
    // Whoever was told to end may close with data unread, which resets the connection: that breaks nothing any more.
    if shared.sending_over.load(Ordering::Relaxed) {
        of_loop.error = None;
    }
    let end = ThreadEnd {
        ended: shared.now(),
        tcp: tcp_stats(socket),
        acknowledged: acknowledged(socket),
        congestion: match socket {
            DataSocket::Tcp(stream) => sys::tcp::congestion(&SockRef::from(stream)).ok(),
            DataSocket::Udp(_) => None,
        },
        cpu: sys::tcp::thread_cpu(),
        of_loop,
    };
    let left = if way == Way::Send { &shared.senders_left } else { &shared.receivers_left };
    left.fetch_sub(1, Ordering::Release);
    end
}

/// The bytes that the other end's kernel has acknowledged, where this system tells.
fn acknowledged(socket: &DataSocket) -> Option<u64> {
    let DataSocket::Tcp(socket) = socket else { return None };
    let info = sys::tcp::info(&SockRef::from(socket)).ok()?;
    info.get(BYTES_ACKED..BYTES_ACKED + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_ne_bytes)
}

fn tcp_stats(socket: &DataSocket) -> Outcome<TcpStats> {
    match socket {
        DataSocket::Tcp(stream) => sys::tcp::info(&SockRef::from(stream)).map(|raw| throughput::decode(&raw)).into(),
        DataSocket::Udp(_) => Outcome::skipped("datagrams have no connection that the kernel counts"),
    }
}

#[cfg(test)]
mod tests;
