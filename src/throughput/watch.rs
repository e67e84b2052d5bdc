//! What the thread that watches a pass does beside counting: it looks at the kernel's figures of each stream, and at the sender's end
//! for the receiver's word that it has enough.

use std::io::{self, Read as _};
use std::net::TcpStream;
use std::time::Duration;

use socket2::SockRef;

use super::series::Recorder;
use super::socket::{self, End, SocketSpec};
use super::tcp_info;
use crate::model::Outcome;
use crate::model::kernel::KernelSeries;
use crate::model::throughput::{PassOptions, SocketFacts, TcpStats};
use crate::sys;

/// The most streams that one look reads, in turns: a reading takes the lock of a socket that is at work. The counters lose nothing by it.
const AT_ONCE: usize = 32;

/// Watches the streams of one end.
pub(super) struct Watch<'a> {
    conns: &'a [TcpStream],
    /// What was seen, or why nothing can be.
    recorder: Result<Recorder, io::Error>,
    next: usize,
}

impl<'a> Watch<'a> {
    /// Reads what the streams had counted before the pass.
    pub(super) fn new(conns: &'a [TcpStream]) -> Self {
        let mut watch = Self { conns, recorder: Ok(Recorder::new(conns.len())), next: 0 };
        let told = watch.read(conns.len());
        match (told, &mut watch.recorder) {
            (Ok(told), Ok(recorder)) => recorder.begin(&told),
            (Err(error), recorder) => *recorder = Err(error),
            _ => {}
        }
        watch
    }

    /// One look at the moment `at` of the pass.
    pub(super) fn look(&mut self, at: Duration) {
        if self.recorder.is_ok()
            && let Ok(told) = self.read(AT_ONCE)
            && let Ok(recorder) = &mut self.recorder
        {
            recorder.look(at, &told);
        }
    }

    /// The series, with the last word of each stream, which its own thread read when it ended at the latest by `at`.
    pub(super) fn finish<'b>(
        self,
        at: Duration,
        last: impl IntoIterator<Item = &'b io::Result<Vec<u8>>>,
    ) -> Outcome<KernelSeries> {
        match self.recorder {
            Ok(mut recorder) => {
                let told =
                    last.into_iter().enumerate().filter_map(|(stream, raw)| Some((stream, tcp_info::decode(raw.as_ref().ok()?))));
                recorder.look(at, &told.collect::<Vec<_>>());
                Outcome::Measured(recorder.finish())
            }
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Outcome::skipped(error.to_string()),
            Err(error) => Outcome::failed(format!("failed to read TCP_INFO of a stream: {error}")),
        }
    }

    /// What the next streams say, in turns; one that says nothing is left out. An error when none says anything.
    fn read(&mut self, most: usize) -> io::Result<Vec<(usize, TcpStats)>> {
        let count = most.min(self.conns.len());
        let mut told = Vec::with_capacity(count);
        let mut error = None;
        for _ in 0..count {
            let stream = self.next % self.conns.len().max(1);
            self.next = stream + 1;
            match self.conns.get(stream).map(|conn| sys::tcp::info(&SockRef::from(conn))) {
                Some(Ok(raw)) => told.push((stream, tcp_info::decode(&raw))),
                Some(Err(why)) => error = Some(why),
                None => {}
            }
        }
        error.filter(|_| told.is_empty()).map_or(Ok(told), Err)
    }
}

/// The longest wait for a word that is not there: a bin in a hundred. (Not to wait at all is no portable choice beside a thread that
/// writes with a timeout of its own.)
const LISTEN: Duration = Duration::from_millis(1);

/// The way back of a sender's connections, on which nothing comes but the end.
pub(super) struct Way<'a> {
    conns: std::slice::Iter<'a, TcpStream>,
    current: Option<&'a TcpStream>,
}

impl<'a> Way<'a> {
    /// Listens on the first connection, and on the next one if that breaks.
    pub(super) fn new(conns: &'a [TcpStream]) -> Self {
        let mut way = Self { conns: conns.iter(), current: None };
        way.next();
        way
    }

    fn next(&mut self) {
        self.current = self.conns.by_ref().find(|conn| conn.set_read_timeout(Some(LISTEN)).is_ok());
    }

    /// Whether the receiver has ended its side, by which it says that it has enough. Bytes say nothing.
    pub(super) fn is_ended(&mut self) -> bool {
        let Some(mut conn) = self.current else { return false };
        match conn.read(&mut [0; 64]) {
            Ok(taken) => taken == 0,
            Err(error) => {
                use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
                if !matches!(error.kind(), WouldBlock | TimedOut | Interrupted) {
                    self.next();
                }
                false
            }
        }
    }
}

/// Asks the sockets for what can still be set, and says what the first of them was granted: all are asked the same.
pub(super) fn settle(conns: &[TcpStream], options: &PassOptions, end: End) -> SocketFacts {
    let spec = SocketSpec { options: options.clone(), ..SocketSpec::default() };
    for stream in conns {
        socket::adopt(stream, &spec);
    }
    conns.first().map(|stream| socket::facts(&SockRef::from(stream), options, end)).unwrap_or_default()
}

/// What is told of the streams that broke, from each stream's error.
///
/// # Errors
/// The first of them when every stream broke.
pub(super) fn broken(errors: Vec<Option<io::Error>>) -> io::Result<Vec<String>> {
    let streams = errors.len();
    let mut errors: Vec<io::Error> = errors.into_iter().flatten().collect();
    if streams > 0 && errors.len() == streams {
        return Err(errors.swap_remove(0));
    }
    Ok(errors.iter().map(ToString::to_string).collect())
}
