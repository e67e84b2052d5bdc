//! The receiving end of a datagram pass: one thread that takes what comes and keeps count.

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::delay::Delay;
use super::packet::{HEAD, Head};
use super::sender::is_tick;
use super::track::{Seen, Track};
use crate::model::Outcome;
use crate::model::udp::UdpReceived;
use crate::sys::datagram::{Incoming, drops, enlarge};
use crate::sys::{Arrival, Progress, Stop, udp};
use crate::throughput::meter::{BIN, Meter};

/// The longest that a call waits.
const TICK: Duration = Duration::from_millis(20);

/// The buffer that is asked for: 30 ms at 10 Gbit/s with what the kernel counts beside the payload, so that a receiver that has to
/// wait for its core drops nothing.
const BUFFER: usize = 32 << 20;

/// When the sender has ended and nothing came for so long, nothing will: a queue that sends less than a datagram in this time is none.
const QUIET: Duration = Duration::from_millis(200);

/// The same when the last datagram is there, and only earlier ones may still overtake nothing.
const QUIET_AT_END: Duration = Duration::from_millis(30);

/// The longest that a queue on the way is waited for.
const DRAIN: Duration = Duration::from_millis(1500);

/// How often the bins are filled.
const LOOK: Duration = Duration::from_millis(5);

/// Datagrams that one drop can be where they come together (`UDP_GRO_CNT_MAX` of the kernel).
const BUNDLE: u64 = 64;

/// Clocks that differ by more than this over a pass: one of them was set.
const SET_CLOCK: Duration = Duration::from_millis(50);

/// The word that the sender has ended, for its receiver; clones share it.
#[derive(Clone, Debug)]
pub struct Finish(Arc<AtomicU64>);

impl Default for Finish {
    fn default() -> Self {
        Self::new()
    }
}

impl Finish {
    /// The sender still sends.
    pub fn new() -> Self {
        Self(Arc::new(AtomicU64::new(u64::MAX)))
    }

    /// The sender has sent so many datagrams, and ends.
    pub fn set(&self, sent: u64) {
        self.0.store(sent.min(u64::MAX - 1), Ordering::Relaxed);
    }

    fn get(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|sent| *sent != u64::MAX)
    }
}

/// How datagrams are to be received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceiveSpec {
    /// The number of the pass; datagrams of others are not counted.
    pub pass: u64,
    /// Payload bytes of each datagram.
    pub datagram: usize,
    /// No number is this high; what says so is not counted.
    pub most: u64,
    /// The longest that it lasts, whatever the sender does.
    pub deadline: Duration,
    /// The receive buffer in bytes; none for as much as is useful.
    pub buffer: Option<usize>,
    /// Each datagram by itself through the kernel (no GRO), for a comparison.
    pub apart: bool,
    /// A nap after each call, for a receiver that is too slow by intention.
    pub nap: Option<Duration>,
}

/// A socket that is ready to receive a pass.
#[derive(Debug)]
pub struct Receiver<'a> {
    socket: &'a UdpSocket,
    spec: ReceiveSpec,
    incoming: Incoming,
    drops_before: io::Result<u64>,
}

impl<'a> Receiver<'a> {
    /// Prepares a connected socket; what arrives from now on waits for [`Self::run`].
    ///
    /// # Errors
    /// The socket is gone.
    pub fn new(socket: &'a UdpSocket, spec: ReceiveSpec) -> io::Result<Self> {
        socket.set_read_timeout(Some(TICK))?;
        enlarge(socket, spec.buffer.unwrap_or(BUFFER));
        let incoming = Incoming::new(socket, HEAD, spec.apart);
        let drops_before = drops(socket);
        Ok(Self { socket, spec, incoming, drops_before })
    }

    /// Receives until the sender has ended and nothing more comes, the deadline has passed, or `stop` is set.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn run(mut self, finish: &Finish, stop: &Stop, progress: &Progress) -> io::Result<UdpReceived> {
        let mut count = Count::new(&self.spec, self.drops_before.as_ref().ok().copied());
        let (mut ended, mut errors) = (None, 0);
        while !stop.is_set() && count.now() < self.spec.deadline {
            if let Some(sent) = finish.get() {
                let ended = *ended.get_or_insert_with(|| count.now());
                if count.is_over(sent, ended) {
                    break;
                }
            }
            count.call = None;
            match self.incoming.receive(self.socket, &mut |arrival| count.take(&arrival)) {
                Ok(_) => errors = 0,
                Err(error) if is_tick(&error) => {}
                // An ICMP message about what this end sent before; a socket that only fails is gone.
                Err(error) => {
                    errors += 1;
                    if errors > 1000 {
                        return Err(error);
                    }
                    while let Ok(Some(_)) = udp::next_report(self.socket) {}
                }
            }
            count.look();
            progress.set(count.bytes);
            if let Some(nap) = self.spec.nap {
                std::thread::sleep(nap);
            }
        }
        Ok(self.conclude(&count, finish.get()))
    }

    fn conclude(&self, count: &Count<'_>, sent: Option<u64>) -> UdpReceived {
        let sent = sent.unwrap_or(0).max(count.track.beyond());
        let (queue_median, queue_p99) = count.delay.above_least().unwrap_or_default();
        let elapsed = count.elapsed();
        UdpReceived {
            datagrams: count.track.received,
            beyond: count.track.beyond(),
            duplicates: count.track.duplicates,
            reordered: count.track.reordered,
            longest_loss: count.track.longest_loss(sent),
            dropped: self.dropped(count, sent),
            jitter_us: count.delay.jitter().into(),
            queue_median_us: queue_median.into(),
            queue_p99_us: queue_p99.into(),
            elapsed_us: elapsed.into(),
            bins: count.meter.as_ref().map(|meter| meter.finish(count.last)).unwrap_or_default(),
            method: self.incoming.method().to_owned(),
        }
    }

    /// What the own kernel dropped.
    fn dropped(&self, count: &Count<'_>, sent: u64) -> Outcome<u64> {
        let (before, after) = match (&self.drops_before, drops(self.socket)) {
            (Ok(before), Ok(after)) => (*before, after),
            // The count beside the datagrams began with the socket's.
            _ if count.counts => (u64::from(count.drops_before), u64::from(count.drops)),
            (Err(error), _) => return Outcome::skipped(untold(error)),
            (_, Err(error)) => return Outcome::skipped(untold(&error)),
        };
        let grown = after.saturating_sub(before);
        let bundle = self.incoming.largest_bundle() as u64;
        if bundle > 1 {
            // One drop can be many datagrams: those that are missing where the count had grown, and no more than were dropped.
            let tail = sent.saturating_sub(count.track.beyond());
            let unseen = u64::from((after as u32).wrapping_sub(count.drops)).saturating_mul(bundle);
            let missing = count.dropped.saturating_add(tail.min(unseen));
            return Outcome::Measured(missing.min(grown.saturating_mul(bundle)));
        }
        Outcome::Measured(grown)
    }
}

fn untold(error: &io::Error) -> String {
    format!("the system did not tell what it dropped at the socket ({error})")
}

/// What came so far.
struct Count<'a> {
    spec: &'a ReceiveSpec,
    begin: Instant,
    track: Track,
    delay: Delay,
    meter: Option<Meter>,
    bytes: u64,
    /// By our own clock, from `begin` on; the time of one call is that of all that it took.
    call: Option<Duration>,
    first: Duration,
    last: Duration,
    looked: Duration,
    /// By the kernel's clock.
    first_stamp: Option<Duration>,
    last_stamp: Option<Duration>,
    /// When the last burst was sent.
    burst: Option<u64>,
    /// The kernel's count of drops before the first and before the last datagram, and whether it came beside one.
    drops_before: u32,
    drops: u32,
    counts: bool,
    /// Datagrams that were missing where it had grown.
    dropped: u64,
}

impl<'a> Count<'a> {
    fn new(spec: &'a ReceiveSpec, drops: Option<u64>) -> Self {
        Self {
            spec,
            begin: Instant::now(),
            track: Track::default(),
            delay: Delay::new(),
            meter: None,
            bytes: 0,
            call: None,
            first: Duration::ZERO,
            last: Duration::ZERO,
            looked: Duration::ZERO,
            first_stamp: None,
            last_stamp: None,
            burst: None,
            drops_before: drops.unwrap_or(0) as u32,
            drops: drops.unwrap_or(0) as u32,
            counts: false,
            dropped: 0,
        }
    }

    fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    fn take(&mut self, arrival: &Arrival<'_>) {
        let grown = arrival.dropped.map_or(0, |now| now.wrapping_sub(std::mem::replace(&mut self.drops, now)));
        self.counts |= arrival.dropped.is_some();
        let Some(head) = Head::read(arrival.bytes).filter(|head| head.pass == self.spec.pass) else { return };
        if head.sequence >= self.spec.most || arrival.length != self.spec.datagram {
            return;
        }
        let gap = head.sequence.saturating_sub(self.track.beyond());
        self.dropped = self.dropped.saturating_add(gap.min(u64::from(grown).saturating_mul(BUNDLE)));
        if self.track.take(head.sequence) == Seen::Again {
            return;
        }
        let begin = self.begin;
        self.last = *self.call.get_or_insert_with(|| begin.elapsed());
        self.bytes = self.bytes.saturating_add(arrival.length as u64);
        if self.meter.is_none() {
            self.meter = Some(Meter::new(BIN, self.last));
            self.first = self.last;
        }
        self.last_stamp = arrival.at;
        // Those behind the first of a burst waited for each other, which says nothing about the way.
        let leads = self.burst.replace(head.sent) != Some(head.sent);
        let at = match (arrival.at, self.first_stamp) {
            (Some(at), Some(first)) => at.saturating_sub(first),
            (Some(at), None) => {
                self.first_stamp = Some(at);
                Duration::ZERO
            }
            (None, _) => self.last,
        };
        if leads {
            self.delay.take(head.sent, u64::try_from(at.as_nanos()).unwrap_or(u64::MAX));
        }
    }

    fn look(&mut self) {
        let now = self.now();
        if let Some(meter) = self.meter.as_mut().filter(|_| now >= self.looked + LOOK) {
            meter.look(now, self.bytes);
            self.looked = now;
        }
    }

    /// Whether nothing more will come of a sender that had sent so many when it ended.
    fn is_over(&self, sent: u64, ended: Duration) -> bool {
        let quiet = if self.track.beyond() >= sent { QUIET_AT_END } else { QUIET };
        let now = self.now();
        self.track.received >= sent || now >= self.last.max(ended) + quiet || now >= ended + DRAIN
    }

    /// From the first to the last datagram, as the kernel took them from the network where it tells.
    fn elapsed(&self) -> Duration {
        let own = self.last.saturating_sub(self.first);
        let stamped = self.first_stamp.zip(self.last_stamp).map(|(first, last)| last.saturating_sub(first));
        stamped.filter(|stamped| stamped.abs_diff(own) < SET_CLOCK).unwrap_or(own)
    }
}
