//! The receiving end of a pass: one thread a stream that takes bytes and counts, and one that looks at the counters.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::hands::{Hands, Taking};
use super::meter::{BIN, Meter, cpu_sum};
use super::progress::{Counter, counters, total};
use super::schedule::Schedule;
use super::{socket, tcp_info};
use crate::model::Outcome;
use crate::model::kernel::Ended;
use crate::model::throughput::{PassOptions, ReceiverEnd, SocketFacts};
use crate::sys::Progress;
use crate::sys::{self, Stop};
use crate::units::ByteSize;

/// The longest that a read waits, so that every thread sees the word to end, and bytes below the low-water mark still fall
/// into their bin.
const READ_WAIT: Duration = Duration::from_millis(50);

/// When all streams end within this time of each other, they are winding down: what the last ones still bring is no rate of
/// all streams. Beyond it, a stream that goes on alone is a stall of the others, and time.
const WINDING_DOWN: Duration = Duration::from_millis(500);

/// How a receiving end works.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReceiveSpec {
    /// The longest that it lasts, from the call on; after it the connections are shut. To be set above the sender's duration by what the
    /// path may take to drain, such as two seconds.
    pub deadline: Duration,
    /// What is asked of the sockets and of this end, the stop rule among it.
    pub options: PassOptions,
}

/// One stream's result.
struct StreamEnd {
    first: Option<Duration>,
    last: Option<Duration>,
    ended: Duration,
    bytes: u64,
    method: &'static str,
    raw: io::Result<Vec<u8>>,
    cpu: Option<Duration>,
    error: Option<io::Error>,
}

/// What the threads share; no lock.
struct Shared<'a> {
    begin: Instant,
    /// Nanoseconds from `begin` to the first byte of any stream.
    first: AtomicU64,
    done: AtomicUsize,
    halt: AtomicBool,
    watcher: Thread,
    spec: &'a ReceiveSpec,
}

/// Takes what comes on `conns` until all of them end, `stop` is set or the deadline has passed.
///
/// # Errors
/// When no thread can be started, or every stream broke; one broken stream among others only ends early.
#[expect(clippy::needless_pass_by_value, reason = "the connections end with the pass: they are closed here")]
pub fn receive(conns: Vec<TcpStream>, spec: &ReceiveSpec, stop: &Stop, progress: &Progress) -> io::Result<ReceiverEnd> {
    let shared = Shared {
        begin: Instant::now(),
        first: AtomicU64::new(u64::MAX),
        done: AtomicUsize::new(0),
        halt: AtomicBool::new(false),
        watcher: thread::current(),
        spec,
    };
    let counters = counters(conns.len());
    let taking = Taking::new(conns.len(), spec.options.copies);
    let (ends, meter) = thread::scope(|scope| {
        let mut threads = Vec::with_capacity(conns.len());
        for (at, (stream, counter)) in conns.iter().zip(&counters).enumerate() {
            let (shared, hands) = (&shared, taking.hands(at));
            match thread::Builder::new().name("receive".into()).spawn_scoped(scope, move || shared.run(stream, counter, hands)) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    shared.end_all(&conns);
                    return Err(io::Error::new(error.kind(), format!("failed to start a receiving thread: {error}")));
                }
            }
        }
        let meter = shared.watch(conns.len(), &counters, stop, progress);
        shared.end_all(&conns);
        let ends = threads.into_iter().map(|thread| thread.join().map_err(|_| io::Error::other("a receiving thread failed")));
        Ok((ends.collect::<io::Result<Vec<_>>>()?, meter))
    })?;
    progress.set(total(&counters));
    let mut end = conclude(ends, meter)?;
    end.trials = taking.trials();
    Ok(end)
}

impl Shared<'_> {
    fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Looks at the counters at every bin's end until everything is over.
    fn watch(&self, streams: usize, counters: &[Counter], stop: &Stop, progress: &Progress) -> Option<Meter> {
        let mut meter: Option<Meter> = None;
        let mut schedule = Schedule::new(Duration::ZERO, BIN);
        loop {
            let (now, bytes) = (self.now(), total(counters));
            progress.set(bytes);
            let first = self.first.load(Ordering::Acquire);
            if meter.is_none() && first != u64::MAX {
                let origin = Duration::from_nanos(first);
                schedule = Schedule::new(origin, BIN);
                meter = Some(Meter::new(BIN, origin));
            }
            if let Some(meter) = &mut meter {
                meter.look(now, bytes);
            }
            let left = self.spec.deadline.saturating_sub(now);
            if self.done.load(Ordering::Acquire) == streams || stop.is_set() || left.is_zero() {
                return meter;
            }
            thread::park_timeout(schedule.wait(now).min(left));
        }
    }

    /// Shutting a socket wakes its reader, and closing it with bytes unread tells the sender.
    fn end_all(&self, conns: &[TcpStream]) {
        self.halt.store(true, Ordering::Relaxed);
        for stream in conns {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// One stream's thread.
    fn run(&self, stream: &TcpStream, counter: &Counter, hands: Hands<'_>) -> StreamEnd {
        let party = socket::party(stream);
        let mut end = self.take_all(stream, counter, hands);
        end.ended = self.now();
        end.raw = sys::tcp::info(&SockRef::from(stream));
        end.cpu = sys::tcp::thread_cpu();
        end.error = end.error.map(|e| io::Error::new(e.kind(), format!("failed to receive from {party}: {e}")));
        self.done.fetch_add(1, Ordering::Release);
        self.watcher.unpark();
        end
    }

    fn take_all(&self, stream: &TcpStream, counter: &Counter, mut hands: Hands<'_>) -> StreamEnd {
        let socket = SockRef::from(stream);
        let mut end = StreamEnd {
            first: None,
            last: None,
            ended: Duration::ZERO,
            bytes: 0,
            method: "read",
            raw: Err(io::ErrorKind::Unsupported.into()),
            cpu: None,
            error: stream.set_read_timeout(Some(READ_WAIT)).err(),
        };
        // A reader that could not be interrupted would be no good.
        while end.error.is_none() && !self.halt.load(Ordering::Relaxed) {
            match hands.take(stream, &socket) {
                Ok(0) => break,
                Ok(taken) => {
                    end.bytes += taken as u64;
                    counter.set(end.bytes);
                    let now = self.now();
                    end.last = Some(now);
                    if end.first.is_none() {
                        end.first = end.last;
                        self.first.fetch_min(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX - 1), Ordering::Release);
                    }
                    hands.review(&socket, now, end.bytes);
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => hands.review(&socket, self.now(), end.bytes),
                    io::ErrorKind::Interrupted => {}
                    _ => end.error = Some(error),
                },
            }
        }
        end.method = hands.method();
        end
    }
}

fn conclude(mut ends: Vec<StreamEnd>, meter: Option<Meter>) -> io::Result<ReceiverEnd> {
    if ends.iter().all(|end| end.error.is_some())
        && let Some(error) = ends.iter_mut().find_map(|end| end.error.take())
    {
        return Err(error);
    }
    let bytes = ends.iter().map(|end| end.bytes).fold(0, u64::saturating_add);
    let first = ends.iter().filter_map(|end| end.first).min().unwrap_or_default();
    let last = ends.iter().filter_map(|end| end.last).max().unwrap_or_default();
    let (earliest, latest) =
        (ends.iter().map(|e| e.ended).min().unwrap_or_default(), ends.iter().map(|e| e.ended).max().unwrap_or_default());
    let mut meter = meter.unwrap_or_else(|| Meter::new(BIN, first));
    meter.look(latest, bytes);
    let until = if latest.saturating_sub(earliest) <= WINDING_DOWN { earliest } else { latest };
    Ok(ReceiverEnd {
        bins: meter.finish(until),
        bytes: ByteSize(bytes),
        elapsed_us: last.saturating_sub(first).into(),
        stream_bytes: ends.iter().map(|end| ByteSize(end.bytes)).collect(),
        // The longest name: a mark on one stream is worth telling.
        method: ends.iter().map(|end| end.method).max_by_key(|name| name.len()).unwrap_or("read").to_owned(),
        thread_cpu_us: cpu_sum(ends.iter().map(|end| end.cpu)),
        cycles: None,
        series: Outcome::skipped("not kept yet"),
        ended: Ended::Time,
        trials: Vec::new(),
        sockets: SocketFacts::default(),
        stats: tcp_info::all(ends.into_iter().map(|end| end.raw)),
    })
}
