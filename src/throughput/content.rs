//! What a sending end hands over, and how: the cheapest way that works here.

use std::io::{self, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use socket2::SockRef;

use super::calibrate::{Calibration, Choice, Look, Step};
use crate::model::kernel::MethodTrial;
use crate::pattern::Pattern;
use crate::sys;
use crate::sys::tcp::Given;

/// The random bytes that are sent again and again: beyond the window of the compressors that VPNs use (64 KiB of LZ4), and few enough
/// to stay in a core's second cache while they are copied: between two namespaces 1 MiB costs the sender 5 to 20 % more (Linux 6.18).
const CONTENT: usize = 256 * 1024;

/// The most that one call hands over: all of the content. Between two namespaces of one busy host 256 KiB cost a seventh to a quarter
/// less processor time for each byte than 128 KiB (Linux 6.18); larger calls save nothing more, and where pages are lent
/// each call has a notice of its own and pins its pages one by one.
const MOST: usize = CONTENT;

/// The most where a pipe refers to the pages: their number is all that a call costs, and 512 KiB gave 5 to 10 % more than 256 KiB.
const MOST_KEPT: usize = 2 * CONTENT;

/// The least that one call hands over. `sendfile` moves this much at a time and waits for room anew each time, so on a slow
/// path a larger call would outlive the duration.
const LEAST: usize = 64 * 1024;

/// What the pipes of all streams may hold together: half of what the kernel lets the pipes of one user hold (64 MiB).
const ALL_PIPES: usize = 32 << 20;

/// A call that took longer is followed by one of half the size, and one that took less than a quarter of this by a double one.
const CALL: Duration = Duration::from_millis(20);

/// The share of rate that a cheaper way may lose in its turns. Where this thread is the limit its rate follows its cost, and
/// elsewhere a rate at the sender says more about room in the buffers; so only what is plainly slow is out.
const TOLERANCE: f64 = 0.25;

/// Every so many calls the notices of lent pages are taken.
const NOTICES: u32 = 8;

/// How bytes are handed over.
#[derive(Clone, Copy)]
enum Hand {
    /// By the content itself.
    Content(Given),
    /// By a pipe that refers to its pages for good, duplicated for each call (`tee`, then `splice` into the socket): as little copied as
    /// with `sendfile`, which looks up each page in the file anew. Between two namespaces it costs a sixth less than `send` from the
    /// cache and moves a fifth more (Linux 6.18).
    Kept,
}

/// The ways in the order of preference where nothing is tried: `sendfile` never copies and needs neither notices nor pipes.
const WAYS: [Hand; 4] = [Hand::Content(Given::FromFile), Hand::Content(Given::Lent), Hand::Content(Given::Copied), Hand::Kept];

/// Their names.
const NAMES: [&str; WAYS.len()] = ["sendfile", "zerocopy", "send", "tee"];

/// The turns that a trial of them takes: two for each.
pub(super) const TURNS: u32 = 2 * WAYS.len() as u32;

/// What all streams send, and the way that they share.
pub(super) struct Content {
    source: Source,
    choice: Choice,
    /// The room of one pipe.
    pipe: usize,
}

/// Where the bytes are.
enum Source {
    /// In the kernel's memory.
    Kernel(sys::tcp::Content),
    /// In the program's.
    Own(Vec<u8>),
}

impl Content {
    pub(super) fn new(copies: bool, streams: usize) -> Self {
        // The seed only has to differ from the last run's; a system without random numbers still measures.
        let seed = getrandom::u64().unwrap_or(0x7765_616b);
        let mut bytes = vec![0; CONTENT];
        Pattern::new(seed).fill(0, &mut bytes);
        let kernel = if copies { Err(io::ErrorKind::Unsupported.into()) } else { sys::tcp::Content::new(&bytes) };
        let source = kernel.map_or_else(|_| Source::Own(bytes), Source::Kernel);
        Self { source, choice: Choice::default(), pipe: ALL_PIPES / (2 * streams.max(1)) }
    }

    /// The hand of the stream with this number; the first one tries the ways for all.
    pub(super) fn giver(&self, stream: usize) -> Giver<'_> {
        let tries = stream == 0 && matches!(self.source, Source::Kernel(_)) && sys::tcp::thread_cpu().is_some();
        Giver {
            content: self,
            offset: 0,
            bytes: 0,
            chunk: LEAST,
            before: Duration::ZERO,
            lending: Lending::default(),
            kept: None,
            calibration: tries.then(|| Calibration::new(WAYS.len(), 0, TOLERANCE)),
        }
    }

    /// The name of the way in use.
    pub(super) fn method(&self) -> &'static str {
        match self.source {
            Source::Kernel(_) => NAMES.get(self.choice.way()).copied().unwrap_or("send"),
            Source::Own(_) => "send",
        }
    }

    /// What the ways gave when they were tried; empty where nothing was.
    pub(super) fn trials(&self) -> Vec<MethodTrial> {
        self.choice.trials()
    }
}

/// The hand of one stream.
pub(super) struct Giver<'a> {
    content: &'a Content,
    offset: usize,
    bytes: u64,
    chunk: usize,
    before: Duration,
    lending: Lending,
    /// Pipes of its own: two streams at one pipe would wait for each other.
    kept: Option<sys::tcp::Kept>,
    calibration: Option<Calibration>,
}

/// What one socket has borrowed.
#[derive(Default)]
struct Lending {
    allowed: bool,
    calls: u32,
    /// Calls whose pages the socket still refers to.
    out: u32,
}

impl Giver<'_> {
    /// Hands over up to `most` bytes at the moment `now`, counted from the begin of the stream; says how many the socket took.
    ///
    /// # Errors
    /// Those of sending; `WouldBlock` or `TimedOut` when the write timeout passed, `Interrupted` to be called again.
    pub(super) fn send(&mut self, stream: &TcpStream, socket: &SockRef<'_>, now: Duration, most: u64) -> io::Result<usize> {
        if self.calibration.as_ref().is_some_and(|engine| engine.is_due(now)) {
            self.calibrate(now);
        }
        let took = now.saturating_sub(self.before);
        self.before = now;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let taken = match &self.content.source {
            Source::Own(bytes) => {
                self.chunk = next_chunk(self.chunk, took, MOST);
                let rest = bytes.get(self.offset..).unwrap_or_default();
                (&*stream).write(rest.get(..most.min(self.chunk)).unwrap_or(rest))
            }
            Source::Kernel(content) => {
                let hand = WAYS.get(self.content.choice.way()).copied().unwrap_or(Hand::Content(Given::Copied));
                self.chunk = next_chunk(self.chunk, took, if matches!(hand, Hand::Kept) { MOST_KEPT } else { MOST });
                match hand {
                    Hand::Kept => self.refer(content, socket, now, most),
                    Hand::Content(Given::Lent) => self.lend(content, socket, now, most),
                    Hand::Content(how) => content.give(socket, how, self.offset, most.min(self.chunk)),
                }
            }
        }?;
        self.offset = (self.offset + taken) % CONTENT;
        self.bytes += taken as u64;
        Ok(taken)
    }

    fn calibrate(&mut self, now: Duration) {
        let look = Look { now, bytes: self.bytes, cpu: sys::tcp::thread_cpu().unwrap_or_default() };
        if let Some(step) = self.calibration.as_mut().map(|engine| engine.step(look)) {
            self.follow(step);
        }
    }

    fn follow(&mut self, step: Step) {
        match step {
            Step::Stay => {}
            Step::Use(way) => self.content.choice.set(way),
            Step::Done(way) => {
                self.content.choice.set(way);
                let trials = self.calibration.take().map(|engine| engine.told(&NAMES));
                self.content.choice.tell(trials.unwrap_or_default());
            }
        }
    }

    /// Hands over pages without a copy. What cannot be lent now is copied, which also waits for room.
    fn lend(&mut self, content: &sys::tcp::Content, socket: &SockRef<'_>, now: Duration, most: usize) -> io::Result<usize> {
        if !self.lending.allowed {
            if let Err(error) = sys::tcp::set_zerocopy(socket) {
                return self.refuse(now, &format!("the kernel does not lend pages to sockets: {error}"));
            }
            self.lending.allowed = true;
        }
        let most = most.min(self.chunk);
        let taken = match content.give(socket, Given::Lent, self.offset, most) {
            Err(error) if error.kind() == io::ErrorKind::OutOfMemory && self.lending.out == 0 => {
                return self.refuse(now, "the system lets this user lock too little memory (ulimit -l)");
            }
            Err(error) if error.kind() == io::ErrorKind::OutOfMemory => content.give(socket, Given::Copied, self.offset, most)?,
            done => {
                let taken = done?;
                self.lending.out = self.lending.out.saturating_add(1);
                taken
            }
        };
        self.lending.calls = self.lending.calls.wrapping_add(1);
        if self.lending.calls.is_multiple_of(NOTICES) {
            let notices = sys::tcp::notices(socket);
            self.lending.out = self.lending.out.saturating_sub(notices.calls);
            if notices.copied > 0 {
                let why = "the kernel copied the bytes all the same, as it does on loopback and between virtual machines";
                // The bytes are on their way: only the next call is another.
                let _ = self.refuse(now, why);
            }
        }
        Ok(taken)
    }

    /// Hands over references to pages that a pipe holds.
    fn refer(&mut self, content: &sys::tcp::Content, socket: &SockRef<'_>, now: Duration, most: usize) -> io::Result<usize> {
        if self.kept.is_none() {
            match sys::tcp::Kept::new(content, self.content.pipe) {
                Ok(kept) => self.kept = Some(kept),
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    return self.refuse(now, "there are too many streams for two pipes each");
                }
                Err(error) => return self.refuse(now, &format!("no pipe of 128 KiB or more could be had: {error}")),
            }
        }
        let most = most.min(self.chunk);
        self.kept.as_mut().map_or_else(|| Err(io::ErrorKind::Interrupted.into()), |kept| kept.give(socket, most))
    }

    /// A way does not work: the trial goes on with the next way, or all streams go back to the first.
    fn refuse(&mut self, now: Duration, why: &str) -> io::Result<usize> {
        match self.calibration.as_mut().map(|engine| engine.refuse(now, why)) {
            Some(step) => self.follow(step),
            // One that only follows leaves the decision to the one that tries.
            None if self.content.choice.is_settled() => self.content.choice.give_up(why),
            None => {}
        }
        Err(io::ErrorKind::Interrupted.into())
    }
}

impl Drop for Giver<'_> {
    fn drop(&mut self) {
        // A stream that ends in the middle of its trial must not leave the others with whatever it was trying.
        if self.calibration.take().is_some() {
            self.content.choice.set(0);
            self.content.choice.tell(Vec::new());
        }
    }
}

/// The size of the next call after one of `chunk` bytes that took so long, at most `most`.
fn next_chunk(chunk: usize, took: Duration, most: usize) -> usize {
    if took > CALL {
        (chunk / 2).clamp(LEAST, most)
    } else if took < CALL / 4 {
        (chunk * 2).min(most)
    } else {
        chunk.min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_path_gets_small_calls_and_a_fast_one_large_calls() {
        for (bytes_a_second, fits) in [(1e5, 64 << 10), (1.25e6, 64 << 10), (1.25e7, 64 << 10), (1.25e8, MOST), (4e9, MOST)] {
            let mut chunk = LEAST;
            for _ in 0..50 {
                chunk = next_chunk(chunk, Duration::from_secs_f64(chunk as f64 / bytes_a_second), MOST);
            }
            assert_eq!(chunk, fits, "{bytes_a_second} B/s");
        }
    }
}
