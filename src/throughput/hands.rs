//! How a receiving end takes bytes: the cheapest way that works here.

use std::io::{self, Read as _};
use std::net::TcpStream;
use std::time::Duration;

use socket2::SockRef;

use super::calibrate::{Calibration, Choice, Look, Step};
use super::content;
use super::low_water::LowWater;
use crate::model::kernel::MethodTrial;
use crate::sys;

/// The most that one call takes where nothing is copied.
const DISCARD: usize = 1 << 20;

/// The most that one call takes where bytes are copied: what iperf3 and most programs use, and it stays in the cache.
const READ: usize = 128 * 1024;

/// The share of rate that a cheaper way may cost in its turns. Where the link is the limit all ways have one rate; where a processor
/// is, two turns of one way differ by a quarter (one stream over veth, 2 cores: 30 to 44 Gbit/s with the mark and without it alike, in
/// passes of 2 s), so a smaller difference would be noise that decides.
const TOLERANCE: f64 = 0.25;

/// The ways, in the order of preference where nothing is tried.
const WAYS: [Way; 3] = [Way::Wait, Way::Discard, Way::Read];

/// Their names.
const NAMES: [&str; 3] = ["recv-trunc, low-water mark", "recv-trunc", "read"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// In the kernel, woken for as much as the rate brings within some milliseconds.
    Wait,
    /// In the kernel, woken for whatever comes.
    Discard,
    /// Into a buffer.
    Read,
}

/// What all streams of a receiving end share: the way.
pub(super) struct Taking {
    copies: bool,
    choice: Choice,
}

impl Taking {
    /// With `copies` all streams do what programs do.
    pub(super) fn new(copies: bool) -> Self {
        Self { copies, choice: Choice::default() }
    }

    /// The hands of the stream with this number; the first one tries the ways for all.
    pub(super) fn hands(&self, stream: usize) -> Hands<'_> {
        let tries = stream == 0 && !self.copies && sys::tcp::thread_cpu().is_some();
        Hands {
            taking: self,
            way: if self.copies { Way::Read } else { Way::Wait },
            buffer: Vec::new(),
            // Programs that copy do not ask for a mark.
            water: (!self.copies).then(LowWater::new),
            settled: self.copies,
            calibration: tries.then(|| Calibration::new(WAYS.len(), content::TURNS, TOLERANCE)),
            first: None,
        }
    }

    /// What the ways gave when they were tried; empty where nothing was.
    pub(super) fn trials(&self) -> Vec<MethodTrial> {
        self.choice.trials()
    }
}

/// The hands of one stream.
pub(super) struct Hands<'a> {
    taking: &'a Taking,
    way: Way,
    buffer: Vec<u8>,
    /// None once the socket has refused a mark.
    water: Option<LowWater>,
    /// Whether the way stays.
    settled: bool,
    calibration: Option<Calibration>,
    first: Option<Duration>,
}

impl Hands<'_> {
    /// Takes what is there; 0 is the end of the stream.
    ///
    /// # Errors
    /// Those of receiving; `WouldBlock` or `TimedOut` when the read timeout passed.
    pub(super) fn take(&mut self, stream: &TcpStream, socket: &SockRef<'_>) -> io::Result<usize> {
        if self.way != Way::Read {
            match sys::tcp::receive_discarding(socket, DISCARD) {
                Err(error) if error.kind() == io::ErrorKind::Unsupported => self.only_copies(),
                done => return done,
            }
        }
        self.buffer.resize(READ, 0);
        (&*stream).read(&mut self.buffer)
    }

    /// The system copies whatever is asked of it: nothing is left to choose.
    fn only_copies(&mut self) {
        if self.calibration.take().is_some() {
            self.taking.choice.tell(Vec::new());
        }
        (self.way, self.settled) = (Way::Read, true);
    }

    /// At `now` the stream had given `bytes`: goes on with the trial, or fits the low-water mark to the rate.
    pub(super) fn review(&mut self, socket: &SockRef<'_>, now: Duration, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let now = now.saturating_sub(*self.first.get_or_insert(now));
        if let Some(engine) = &mut self.calibration {
            if engine.is_due(now) {
                let step = engine.step(Look { now, bytes, cpu: sys::tcp::thread_cpu().unwrap_or_default() });
                self.follow(step, socket, now, bytes);
            }
            if self.calibration.as_ref().is_some_and(Calibration::has_begun) {
                return;
            }
        }
        if !self.settled && self.calibration.is_none() && self.taking.choice.is_settled() {
            self.settle(socket, now, bytes);
        }
        let room = || room(socket);
        if let Some(mark) = self.water.as_mut().and_then(|water| water.review(now, bytes, room)) {
            self.set_mark(socket, mark);
        }
    }

    fn follow(&mut self, step: Step, socket: &SockRef<'_>, now: Duration, bytes: u64) {
        match step {
            Step::Stay => {}
            Step::Use(number) => {
                let rate = self.calibration.as_ref().map_or(0.0, Calibration::rate);
                self.begin(number, rate, socket, now, bytes);
            }
            Step::Done(number) => {
                let trials = self.calibration.take().map(|engine| engine.told(&NAMES)).unwrap_or_default();
                self.taking.choice.set(number);
                self.taking.choice.tell(trials);
            }
        }
    }

    /// Begins a turn of a way: here, and nowhere else.
    fn begin(&mut self, number: usize, rate: f64, socket: &SockRef<'_>, now: Duration, bytes: u64) {
        self.way = WAYS.get(number).copied().unwrap_or(Way::Wait);
        let water = if self.way == Way::Wait { LowWater::at(rate, now, bytes, || room(socket)) } else { LowWater::never() };
        self.set_mark(socket, water.mark());
        if self.water.is_some() {
            self.water = Some(water);
        } else if self.way == Way::Wait
            && let Some(step) = self.calibration.as_mut().map(|engine| engine.refuse(now, "the socket takes no low-water mark"))
        {
            self.follow(step, socket, now, bytes);
        }
    }

    /// Goes on with what the trial chose; where nothing was tried, as before.
    fn settle(&mut self, socket: &SockRef<'_>, now: Duration, bytes: u64) {
        self.settled = true;
        if self.taking.choice.trials().is_empty() {
            return;
        }
        let rate = bytes as f64 / now.as_secs_f64().max(1e-3);
        self.begin(self.taking.choice.way(), rate, socket, now, bytes);
    }

    fn set_mark(&mut self, socket: &SockRef<'_>, mark: u32) {
        if sys::tcp::set_receive_low_water(socket, mark).is_err() {
            self.water = None;
        }
    }

    /// The name of the way in use.
    pub(super) fn method(&self) -> &'static str {
        match self.way {
            Way::Read => "read",
            _ if self.water.as_ref().is_some_and(LowWater::is_raised) => NAMES[0],
            _ => NAMES[1],
        }
    }
}

impl Drop for Hands<'_> {
    fn drop(&mut self) {
        // A stream that ends in the middle of its trial has found nothing for the others.
        if self.calibration.take().is_some() {
            self.taking.choice.tell(Vec::new());
        }
    }
}

/// What the socket's receive buffer holds.
fn room(socket: &SockRef<'_>) -> u64 {
    socket.recv_buffer_size().map_or(0, |size| size as u64)
}
