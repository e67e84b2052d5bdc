//! The receiving end of a pass: one thread a stream that takes bytes and counts, and one that looks at the counters.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::enough::Enough;
use super::hands::{Hands, Taking};
use super::meter::{BIN, Meter, common_end, cpu_sum, cycle_sum};
use super::progress::{Counter, STACK, counters, total};
use super::schedule::Schedule;
use super::socket::{self, End};
use super::tcp_info;
use super::watch::{Watch, broken, settle};
use crate::model::kernel::Ended;
use crate::model::throughput::{PassOptions, ReceiverEnd, SocketFacts};
use crate::sys::Progress;
use crate::sys::{self, Stop};
use crate::units::ByteSize;

/// The longest that a read waits, so that every thread sees the word to end, and bytes below the low-water mark still fall
/// into their bin.
const READ_WAIT: Duration = Duration::from_millis(50);

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
    cycles: Option<u64>,
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
/// Once the bins are enough by the stop rule, this end's side of the connections is shut, on which nothing is sent: a sender that
/// heeds it ends, and of any other everything is taken as before. (A byte would do as well, but one that comes to a sender which has just
/// closed its connection makes its system throw away what it still had to send.)
///
/// # Errors
/// When no thread can be started, or every stream broke; one broken stream among others only ends early and is told.
#[expect(clippy::needless_pass_by_value, reason = "the connections end with the pass: they are closed here")]
pub fn receive(conns: Vec<TcpStream>, spec: &ReceiveSpec, stop: &Stop, progress: &Progress) -> io::Result<ReceiverEnd> {
    let sockets = settle(&conns, &spec.options, End::Receiver);
    let mut watch = Watch::new(&conns);
    let shared = Shared {
        begin: Instant::now(),
        first: AtomicU64::new(u64::MAX),
        done: AtomicUsize::new(0),
        halt: AtomicBool::new(false),
        watcher: thread::current(),
        spec,
    };
    let counters = counters(conns.len());
    let taking = Taking::new(spec.options.copies);
    let (ends, meter, ended) = thread::scope(|scope| {
        let mut threads = Vec::with_capacity(conns.len());
        for (at, (stream, counter)) in conns.iter().zip(&counters).enumerate() {
            let (shared, hands) = (&shared, taking.hands(at));
            let builder = thread::Builder::new().name("receive".into()).stack_size(STACK);
            match builder.spawn_scoped(scope, move || shared.run(stream, counter, hands)) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    shared.end_all(&conns);
                    return Err(io::Error::new(error.kind(), format!("failed to start a receiving thread: {error}")));
                }
            }
        }
        let (meter, ended) = shared.watch(&conns, &counters, &mut watch, stop, progress);
        shared.end_all(&conns);
        let ends = threads.into_iter().map(|thread| thread.join().map_err(|_| io::Error::other("a receiving thread failed")));
        Ok((ends.collect::<io::Result<Vec<_>>>()?, meter, ended))
    })?;
    let bytes = total(&counters);
    progress.set(bytes);
    let all = spec.options.max_bytes.is_some_and(|most| bytes >= most.0);
    let mut end = conclude(ends, meter, if ended == Ended::Peer && all { Ended::Bytes } else { ended }, watch)?;
    (end.trials, end.sockets) = (taking.trials(), sockets);
    Ok(end)
}

impl Shared<'_> {
    fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Looks at everything at every bin's end until it is over, and says what ended it.
    fn watch(
        &self,
        conns: &[TcpStream],
        counters: &[Counter],
        watch: &mut Watch<'_>,
        stop: &Stop,
        progress: &Progress,
    ) -> (Option<Meter>, Ended) {
        let mut meter: Option<Meter> = None;
        let mut schedule = Schedule::new(Duration::ZERO, BIN);
        let mut mind = Mind { enough: self.spec.options.enough.map(Enough::new), told: false };
        let mut due = BIN;
        loop {
            let (now, bytes) = (self.now(), total(counters));
            progress.set(bytes);
            let first = self.first.load(Ordering::Acquire);
            if meter.is_none() && first != u64::MAX {
                let origin = Duration::from_nanos(first);
                schedule = Schedule::new(origin, BIN);
                meter = Some(Meter::new(BIN, origin));
                due = origin + BIN;
            }
            if let Some(meter) = &mut meter {
                meter.look(now, bytes);
            }
            let left = self.spec.deadline.saturating_sub(now);
            let ended = if stop.is_set() {
                Some(Ended::Stopped)
            } else if self.done.load(Ordering::Acquire) == conns.len() {
                Some(if mind.told { Ended::Enough } else { Ended::Peer })
            } else {
                left.is_zero().then_some(Ended::Time)
            };
            if let Some(ended) = ended {
                return (meter, ended);
            }
            // A stream that ends wakes this thread between the bins' ends.
            if now >= due {
                watch.look(now);
                mind.look(conns, meter.as_ref(), now);
                due = now + schedule.wait(now);
            }
            thread::park_timeout(schedule.wait(self.now()).min(left));
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
        let cycles = sys::perf::Cycles::begin().ok();
        let party = socket::party(stream);
        let mut end = self.take_all(stream, counter, hands);
        end.ended = self.now();
        end.raw = sys::tcp::info(&SockRef::from(stream));
        end.cpu = sys::tcp::thread_cpu();
        end.cycles = cycles.and_then(|cycles| cycles.read().ok());
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
            cycles: None,
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

/// Whether this end has enough, and whether it has said so.
struct Mind {
    enough: Option<Enough>,
    told: bool,
}

impl Mind {
    fn look(&mut self, conns: &[TcpStream], meter: Option<&Meter>, now: Duration) {
        if let (false, Some(enough), Some(meter)) = (self.told, &mut self.enough, meter)
            && enough.look(&meter.finish(now))
        {
            self.told = true;
            for stream in conns {
                let _ = stream.shutdown(Shutdown::Write);
            }
        }
    }
}

fn conclude(mut ends: Vec<StreamEnd>, meter: Option<Meter>, ended: Ended, watch: Watch<'_>) -> io::Result<ReceiverEnd> {
    let bytes = ends.iter().map(|end| end.bytes).fold(0, u64::saturating_add);
    let first = ends.iter().filter_map(|end| end.first).min().unwrap_or_default();
    let last = ends.iter().filter_map(|end| end.last).max().unwrap_or_default();
    let latest = ends.iter().map(|end| end.ended).max().unwrap_or_default();
    let mut meter = meter.unwrap_or_else(|| Meter::new(BIN, first));
    meter.look(latest, bytes);
    let errors = ends.iter_mut().map(|end| end.error.take()).collect();
    Ok(ReceiverEnd {
        broken: broken(errors)?,
        bins: meter.finish(common_end(ends.iter().map(|end| end.ended))),
        bytes: ByteSize(bytes),
        elapsed_us: last.saturating_sub(first).into(),
        stream_bytes: ends.iter().map(|end| ByteSize(end.bytes)).collect(),
        // The longest name: a mark on one stream is worth telling.
        method: ends.iter().map(|end| end.method).max_by_key(|name| name.len()).unwrap_or("read").to_owned(),
        thread_cpu_us: cpu_sum(ends.iter().map(|end| end.cpu)),
        cycles: cycle_sum(ends.iter().map(|end| end.cycles)),
        series: watch.finish(latest, ends.iter().map(|end| &end.raw)),
        ended,
        trials: Vec::new(),
        sockets: SocketFacts::default(),
        stats: tcp_info::all(ends.into_iter().map(|end| end.raw)),
    })
}
