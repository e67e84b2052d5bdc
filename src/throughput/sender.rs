//! The sending end of a pass: one thread a stream that hands bytes to the kernel as fast as it takes them.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle, Thread};
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::content::{Content, Giver};
use super::meter::{BIN, Meter, common_end, cpu_sum, cycle_sum};
use super::progress::{Counter, STACK, counters, total};
use super::schedule::Schedule;
use super::socket::{self, End};
use super::tcp_info;
use super::watch::{Watch, Way, broken, settle};
use crate::model::kernel::Ended;
use crate::model::throughput::{PassOptions, SenderEnd, SocketFacts};
use crate::sys::Progress;
use crate::sys::{self, Stop};
use crate::units::{ByteSize, Elapsed};

/// The longest that a call waits for room in the send buffer: what a pass may outlive its duration by on a black hole.
const WRITE_WAIT: Duration = Duration::from_millis(100);

/// How a sending end works.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SendSpec {
    /// The longest that it sends; a hard limit, whatever the path does.
    pub duration: Duration,
    /// What is asked of the sockets and of this end; the stop rule is the receiver's.
    pub options: PassOptions,
}

/// One stream's result.
struct StreamEnd {
    bytes: u64,
    ended: Ended,
    elapsed: Duration,
    congestion: Option<String>,
    raw: io::Result<Vec<u8>>,
    cpu: Option<Duration>,
    cycles: Option<u64>,
    error: Option<io::Error>,
}

/// What the threads share; no lock.
struct Shared<'a> {
    begin: Instant,
    duration: Duration,
    done: AtomicUsize,
    /// The receiver has enough, or the pass cannot begin.
    halt: AtomicBool,
    stop: &'a Stop,
    watcher: Thread,
}

/// Sends random bytes on all of `conns` until the duration or the bytes are over, the receiver has enough or `stop` is set, then ends
/// the streams.
///
/// A receiver that has enough ends its own side of the connections, on which nothing is sent. What the kernel still holds then is
/// delivered behind the caller's back; nothing waits for it.
///
/// # Errors
/// When no thread can be started, or every stream broke before its end; one broken stream among others only ends early and is told.
#[expect(clippy::needless_pass_by_value, reason = "the connections end with the pass: they are closed here")]
pub fn send(conns: Vec<TcpStream>, spec: &SendSpec, stop: &Stop, progress: &Progress) -> io::Result<SenderEnd> {
    let sockets = settle(&conns, &spec.options, End::Sender);
    let content = Content::new(spec.options.copies, conns.len());
    let mut watch = Watch::new(&conns);
    let shared = Shared {
        begin: Instant::now(),
        duration: spec.duration,
        done: AtomicUsize::new(0),
        halt: AtomicBool::new(false),
        stop,
        watcher: thread::current(),
    };
    let counters = counters(conns.len());
    let (ends, meter) = thread::scope(|scope| {
        let mut threads = Vec::with_capacity(conns.len());
        for (at, (stream, counter)) in conns.iter().zip(&counters).enumerate() {
            let (shared, content, limit) = (&shared, &content, share(spec.options.max_bytes.map(|most| most.0), conns.len(), at));
            let builder = thread::Builder::new().name("send".into()).stack_size(STACK);
            match builder.spawn_scoped(scope, move || shared.run(stream, counter, limit, content.giver(at))) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    shared.halt.store(true, Ordering::Relaxed);
                    return Err(io::Error::new(error.kind(), format!("failed to start a sending thread: {error}")));
                }
            }
        }
        let meter = shared.watch(&threads, &mut watch, Way::new(&conns), |meter, now| {
            let bytes = total(&counters);
            progress.set(bytes);
            meter.look(now, bytes);
        });
        let ends = threads.into_iter().map(|thread| thread.join().map_err(|_| io::Error::other("a sending thread failed")));
        Ok((ends.collect::<io::Result<Vec<_>>>()?, meter))
    })?;
    progress.set(total(&counters));
    let mut end = conclude(ends, meter, watch)?;
    content.method().clone_into(&mut end.method);
    (end.trials, end.sockets) = (content.trials(), sockets);
    Ok(end)
}

/// The bytes of one stream out of those of all; the first streams take what does not divide.
fn share(max_bytes: Option<u64>, streams: usize, at: usize) -> u64 {
    let streams = (streams as u64).max(1);
    max_bytes.map_or(u64::MAX, |all| all / streams + u64::from((at as u64) < all % streams))
}

impl Shared<'_> {
    /// Looks at everything at every bin's end until all threads have ended, which they do by themselves (or by a panic, which
    /// counts nothing as done).
    fn watch(
        &self,
        threads: &[ScopedJoinHandle<'_, StreamEnd>],
        watch: &mut Watch<'_>,
        mut way: Way<'_>,
        mut count: impl FnMut(&mut Meter, Duration),
    ) -> Meter {
        let schedule = Schedule::new(Duration::ZERO, BIN);
        let mut meter = Meter::new(BIN, Duration::ZERO);
        let mut due = BIN;
        loop {
            let now = self.begin.elapsed();
            count(&mut meter, now);
            if self.done.load(Ordering::Acquire) >= threads.len() || threads.iter().all(ScopedJoinHandle::is_finished) {
                return meter;
            }
            // A stream that ends wakes this thread between the bins' ends.
            if now >= due {
                watch.look(now);
                if way.is_ended() {
                    self.halt.store(true, Ordering::Relaxed);
                }
                due = now + schedule.wait(now);
            }
            thread::park_timeout(schedule.wait(self.begin.elapsed()));
        }
    }

    /// One stream's thread.
    fn run(&self, stream: &TcpStream, counter: &Counter, limit: u64, mut giver: Giver<'_>) -> StreamEnd {
        let cycles = sys::perf::Cycles::begin().ok();
        let party = socket::party(stream);
        let (bytes, ended) = match stream.set_write_timeout(Some(WRITE_WAIT)) {
            Ok(()) => self.hand_over(stream, counter, limit, &mut giver),
            Err(error) => (0, Err(error)),
        };
        let socket = SockRef::from(stream);
        let elapsed = self.begin.elapsed();
        let (ended, error) = ended.map_or_else(|error| (Ended::Peer, Some(error)), |ended| (ended, None));
        let end = StreamEnd {
            bytes,
            ended,
            elapsed,
            congestion: sys::tcp::congestion(&socket).ok(),
            raw: sys::tcp::info(&socket),
            cpu: sys::tcp::thread_cpu(),
            cycles: cycles.and_then(|cycles| cycles.read().ok()),
            error: error.map(|e| io::Error::new(e.kind(), format!("failed to send to {party}: {e}"))),
        };
        let _ = stream.shutdown(Shutdown::Write);
        self.done.fetch_add(1, Ordering::Release);
        self.watcher.unpark();
        end
    }

    fn hand_over(&self, stream: &TcpStream, counter: &Counter, limit: u64, giver: &mut Giver<'_>) -> (u64, io::Result<Ended>) {
        let socket = SockRef::from(stream);
        // The hand counts from when this stream moves; the duration counts for all from the same moment.
        let (own, mut bytes) = (self.begin.elapsed(), 0u64);
        while bytes < limit {
            let now = self.begin.elapsed();
            if let Some(ended) = self.ended(now) {
                return (bytes, Ok(ended));
            }
            match giver.send(stream, &socket, now.saturating_sub(own), limit - bytes) {
                Ok(0) => return (bytes, Err(io::ErrorKind::WriteZero.into())),
                Ok(taken) => {
                    bytes += taken as u64;
                    counter.set(bytes);
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => {}
                    _ => return (bytes, Err(error)),
                },
            }
        }
        (bytes, Ok(Ended::Bytes))
    }

    /// Why a stream has to end at `now`, if it has to.
    fn ended(&self, now: Duration) -> Option<Ended> {
        if self.stop.is_set() {
            Some(Ended::Stopped)
        } else if self.halt.load(Ordering::Relaxed) {
            Some(Ended::Enough)
        } else {
            (now >= self.duration).then_some(Ended::Time)
        }
    }
}

/// What ended all streams: what somebody chose, else what most of the time gave.
fn ended(ends: &[StreamEnd]) -> Ended {
    let any = |ended: Ended| ends.iter().any(|end| end.error.is_none() && end.ended == ended);
    [Ended::Stopped, Ended::Enough, Ended::Time, Ended::Bytes].into_iter().find(|ended| any(*ended)).unwrap_or_default()
}

fn conclude(mut ends: Vec<StreamEnd>, mut meter: Meter, watch: Watch<'_>) -> io::Result<SenderEnd> {
    let bytes = ends.iter().map(|end| end.bytes).fold(0, u64::saturating_add);
    let (elapsed, ended) = (ends.iter().map(|end| end.elapsed).max().unwrap_or_default(), ended(&ends));
    meter.look(elapsed, bytes);
    let errors = ends.iter_mut().map(|end| end.error.take()).collect();
    Ok(SenderEnd {
        broken: broken(errors)?,
        bytes: ByteSize(bytes),
        elapsed_us: Elapsed::from(elapsed),
        method: String::new(),
        congestion: ends.iter().find_map(|end| end.congestion.clone()),
        thread_cpu_us: cpu_sum(ends.iter().map(|end| end.cpu)),
        cycles: cycle_sum(ends.iter().map(|end| end.cycles)),
        bins: meter.finish(common_end(ends.iter().map(|end| end.elapsed))),
        series: watch.finish(elapsed, ends.iter().map(|end| &end.raw)),
        ended,
        trials: Vec::new(),
        sockets: SocketFacts::default(),
        stats: tcp_info::all(ends.into_iter().map(|end| end.raw)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_shared_without_rest() {
        for (all, streams) in [(10, 3), (0, 2), (1, 4), (u64::MAX, 7)] {
            let sum: u64 = (0..streams).map(|at| share(Some(all), streams, at)).sum();
            assert_eq!(sum, all);
        }
        assert_eq!(share(None, 4, 0), u64::MAX);
    }
}
