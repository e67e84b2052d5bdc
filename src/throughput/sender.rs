//! The sending end of a pass: one thread a stream that hands bytes to the kernel as fast as it takes them.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle, Thread};
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::content::{Content, Giver};
use super::meter::{BIN, cpu_sum};
use super::progress::{Counter, counters, total};
use super::schedule::Schedule;
use super::socket::{self, SocketSpec};
use super::tcp_info;
use crate::model::Outcome;
use crate::model::kernel::Ended;
use crate::model::throughput::{Bins, PassOptions, SenderEnd, SocketFacts};
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
    elapsed: Duration,
    congestion: Option<String>,
    raw: io::Result<Vec<u8>>,
    cpu: Option<Duration>,
    error: Option<io::Error>,
}

/// What the threads share; no lock.
struct Shared<'a> {
    duration: Duration,
    done: AtomicUsize,
    halt: AtomicBool,
    stop: &'a Stop,
    watcher: Thread,
}

/// Sends random bytes on all of `conns` until the duration or the bytes are over or `stop` is set, then ends the streams.
///
/// What the kernel still holds then is delivered behind the caller's back; nothing waits for it.
///
/// # Errors
/// When no thread can be started, or every stream broke before its end; one broken stream among others only ends early.
#[expect(clippy::needless_pass_by_value, reason = "the connections end with the pass: they are closed here")]
pub fn send(conns: Vec<TcpStream>, spec: &SendSpec, stop: &Stop, progress: &Progress) -> io::Result<SenderEnd> {
    let sockets = SocketSpec { options: spec.options.clone(), ..SocketSpec::default() };
    for stream in &conns {
        socket::adopt(stream, &sockets);
    }
    let content = Content::new(spec.options.copies);
    let shared = Shared {
        duration: spec.duration,
        done: AtomicUsize::new(0),
        halt: AtomicBool::new(false),
        stop,
        watcher: thread::current(),
    };
    let counters = counters(conns.len());
    let ends = thread::scope(|scope| {
        let mut threads = Vec::with_capacity(conns.len());
        for (at, (stream, counter)) in conns.iter().zip(&counters).enumerate() {
            let (shared, content, limit) = (&shared, &content, share(spec.options.max_bytes.map(|most| most.0), conns.len(), at));
            match thread::Builder::new()
                .name("send".into())
                .spawn_scoped(scope, move || shared.run(stream, counter, limit, content.giver(at)))
            {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    shared.halt.store(true, Ordering::Relaxed);
                    return Err(io::Error::new(error.kind(), format!("failed to start a sending thread: {error}")));
                }
            }
        }
        shared.watch(&threads, &counters, progress);
        let ends = threads.into_iter().map(|thread| thread.join().map_err(|_| io::Error::other("a sending thread failed")));
        ends.collect::<io::Result<Vec<_>>>()
    })?;
    progress.set(total(&counters));
    let mut end = conclude(ends, content.method())?;
    end.trials = content.trials();
    Ok(end)
}

/// The bytes of one stream out of those of all; the first streams take what does not divide.
fn share(max_bytes: Option<u64>, streams: usize, at: usize) -> u64 {
    let streams = (streams as u64).max(1);
    max_bytes.map_or(u64::MAX, |all| all / streams + u64::from((at as u64) < all % streams))
}

impl Shared<'_> {
    /// Tells the progress until all threads have ended, which they do by themselves (or by a panic, which counts nothing as done).
    fn watch(&self, threads: &[ScopedJoinHandle<'_, StreamEnd>], counters: &[Counter], progress: &Progress) {
        let begin = Instant::now();
        let schedule = Schedule::new(Duration::ZERO, BIN);
        while self.done.load(Ordering::Acquire) < threads.len() && !threads.iter().all(ScopedJoinHandle::is_finished) {
            progress.set(total(counters));
            thread::park_timeout(schedule.wait(begin.elapsed()));
        }
    }

    /// One stream's thread.
    fn run(&self, stream: &TcpStream, counter: &Counter, limit: u64, mut giver: Giver<'_>) -> StreamEnd {
        let party = socket::party(stream);
        let begin = Instant::now();
        let (bytes, error) = match stream.set_write_timeout(Some(WRITE_WAIT)) {
            Ok(()) => self.hand_over(stream, counter, limit, &mut giver),
            Err(error) => (0, Some(error)),
        };
        let socket = SockRef::from(stream);
        let end = StreamEnd {
            bytes,
            elapsed: begin.elapsed(),
            congestion: sys::tcp::congestion(&socket).ok(),
            raw: sys::tcp::info(&socket),
            cpu: sys::tcp::thread_cpu(),
            error: error.map(|e| io::Error::new(e.kind(), format!("failed to send to {party}: {e}"))),
        };
        let _ = stream.shutdown(Shutdown::Write);
        self.done.fetch_add(1, Ordering::Release);
        self.watcher.unpark();
        end
    }

    fn hand_over(&self, stream: &TcpStream, counter: &Counter, limit: u64, giver: &mut Giver<'_>) -> (u64, Option<io::Error>) {
        let socket = SockRef::from(stream);
        let (begin, mut bytes) = (Instant::now(), 0u64);
        while bytes < limit && !self.stop.is_set() && !self.halt.load(Ordering::Relaxed) {
            let now = begin.elapsed();
            if now >= self.duration {
                break;
            }
            match giver.send(stream, &socket, now, limit - bytes) {
                Ok(0) => return (bytes, Some(io::ErrorKind::WriteZero.into())),
                Ok(taken) => {
                    bytes += taken as u64;
                    counter.set(bytes);
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => {}
                    _ => return (bytes, Some(error)),
                },
            }
        }
        (bytes, None)
    }
}

fn conclude(mut ends: Vec<StreamEnd>, method: &str) -> io::Result<SenderEnd> {
    if ends.iter().all(|end| end.error.is_some())
        && let Some(error) = ends.iter_mut().find_map(|end| end.error.take())
    {
        return Err(error);
    }
    Ok(SenderEnd {
        bytes: ByteSize(ends.iter().map(|end| end.bytes).fold(0, u64::saturating_add)),
        elapsed_us: Elapsed::from(ends.iter().map(|end| end.elapsed).max().unwrap_or_default()),
        method: method.to_owned(),
        congestion: ends.iter().find_map(|end| end.congestion.clone()),
        thread_cpu_us: cpu_sum(ends.iter().map(|end| end.cpu)),
        cycles: None,
        bins: Bins::default(),
        series: Outcome::skipped("not kept yet"),
        ended: Ended::Time,
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
