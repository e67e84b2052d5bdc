//! The sending end of a datagram pass: one thread that hands bursts to the kernel when they are due.

use std::io;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::pace::{Pace, Turn};
use super::packet::{HEAD, Head};
use super::plan::{FASTEST, LONGEST};
use crate::model::udp::UdpSent;
use crate::pattern::Pattern;
use crate::sys::datagram::{Outgoing, sleep_precisely};
use crate::sys::{Progress, Stop, udp};
use crate::units::BitRate;

/// The longest that a call or a nap lasts before the thread looks whether it shall end.
const TICK: Duration = Duration::from_millis(50);

/// Room for what the card has not sent yet: some bursts. More would only hide that the own card is the limit.
const BUFFER: usize = 1 << 20;

/// Of a hundred datagrams so many must go out in time, or the sender was behind the rate.
const IN_TIME: u64 = 98;

/// So many calls in a row may fail: an ICMP message about an earlier datagram fails one of them.
const MOST_ERRORS: u32 = 64;

/// How datagrams are to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendSpec {
    /// The number of the pass, which every datagram carries.
    pub pass: u64,
    /// The rate in payload bits; at most [`FASTEST`].
    pub rate: BitRate,
    /// How long; at most [`LONGEST`].
    pub duration: Duration,
    /// Payload bytes of each datagram, from [`HEAD`] to 65,507.
    pub datagram: usize,
    /// Each datagram by itself through the kernel (no GSO), for a comparison.
    pub apart: bool,
}

/// Sends datagrams on a connected socket until the time is over or `stop` is set. None is fragmented where the system can forbid it.
///
/// # Errors
/// A datagram is larger than the own interface carries, nobody has the port over there, or the socket is gone.
pub fn send(socket: &UdpSocket, spec: &SendSpec, stop: &Stop, progress: &Progress) -> io::Result<UdpSent> {
    socket.set_write_timeout(Some(TICK))?;
    let _ = SockRef::from(socket).set_send_buffer_size(BUFFER);
    // Only with it does the kernel say that its own queue dropped a datagram.
    let _ = udp::keep_reports(socket);
    let whole = udp::forbid_fragments(socket).is_ok();
    sleep_precisely();
    let datagram = spec.datagram.clamp(HEAD, 65_507);
    let mut content = vec![0; 65_536];
    Pattern::new(spec.pass).fill(0, &mut content);
    let mut out = Outgoing::new(socket, datagram, &content);
    if spec.apart {
        out.without_segments(socket);
    }
    let pace = Pace::new(spec.rate.min(FASTEST), datagram, spec.duration.min(LONGEST), out.most());
    let mut sending =
        Sending { socket, pass: spec.pass, out, pace, taken: 0, refused: 0, errors: 0, closed: 0, end: Duration::ZERO };
    let begin = Instant::now();
    while !stop.is_set() {
        match sending.pace.turn(begin.elapsed()) {
            Turn::Over => break,
            Turn::Wait(time) => std::thread::sleep(time.min(TICK)),
            Turn::Send(count) => {
                sending.burst(count, begin)?;
                progress.set(sending.taken.saturating_mul(datagram as u64));
            }
        }
    }
    let whole = if whole { "" } else { ", fragments not forbidden" };
    Ok(UdpSent {
        datagrams: sending.taken,
        refused: sending.refused,
        elapsed_us: sending.end.into(),
        method: format!("{}{whole}", sending.out.method()),
        behind: sending.taken.saturating_mul(100) < sending.pace.total().saturating_mul(IN_TIME),
    })
}

/// What is being sent.
struct Sending<'a> {
    socket: &'a UdpSocket,
    pass: u64,
    out: Outgoing,
    pace: Pace,
    taken: u64,
    refused: u64,
    errors: u32,
    closed: u32,
    /// When the time of the last burst is over.
    end: Duration,
}

impl Sending<'_> {
    fn burst(&mut self, count: usize, begin: Instant) -> io::Result<()> {
        let count = count.min(self.out.most());
        let now = begin.elapsed();
        let sent = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        for (at, sequence) in (0..count).zip(self.taken..) {
            Head { pass: self.pass, sequence, sent }.write(self.out.slot(at));
        }
        let done = match self.out.send(self.socket, count) {
            Ok(taken) => {
                self.taken += taken as u64;
                self.errors = 0;
                taken
            }
            // The queue of the own card is full: sending these again would only come too late for the others.
            Err(error) if udp::is_queue_full(&error) => {
                self.refused += count as u64;
                count
            }
            Err(error) if udp::is_too_large(&error) => {
                let text = "a datagram is larger than what the own interface carries";
                return Err(io::Error::new(error.kind(), text));
            }
            Err(error) if is_tick(&error) => 0,
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && self.closed >= MOST_ERRORS => return Err(error),
            Err(error) => {
                // Every second call fails where nobody has the port.
                self.closed += u32::from(error.kind() == io::ErrorKind::ConnectionRefused);
                self.errors += 1;
                if self.errors > MOST_ERRORS {
                    return Err(error);
                }
                while let Ok(Some(_)) = udp::next_report(self.socket) {}
                0
            }
        };
        if done > 0 {
            self.pace.sent(done);
            self.end = now.saturating_add(self.pace.span(done as u64));
        }
        Ok(())
    }
}

/// Whether a call only waited in vain.
pub(super) fn is_tick(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
