//! The search by ICMP echo, for a host without an agent: the requests may not be fragmented, and whatever answers them
//! proves the size for both ways together.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use super::endpoint::{BUFFER, Sending, TICK, canonical};
use super::icmp::{Cookie, Series, behind_header};
use super::packet::Family;
use super::search::{Ending, Scope, Search, Step};
use crate::model::Outcome;
use crate::model::mtu::{EchoMethod, EchoPath, PathMtu};
use crate::sys::Stop;
use crate::sys::icmp::{EchoArrival, EchoSocket};
use crate::sys::udp::{SocketReport, TooLargeBy, is_too_large};
use crate::units::{Elapsed, Mtu};

/// How often sending is tried while the kernel reports an error that belongs to an earlier request.
const SEND_ATTEMPTS: u32 = 4;

/// The most reports that are taken at once; a raw socket also gets those about the requests of other programs.
const MOST_REPORTS: usize = 256;

/// Errors of receiving in a row after which the loop pauses: one for each request is ordinary, a socket that only fails
/// shall not take a core.
const MOST_ERRORS: u32 = 16;

/// Finds the largest ICMP echo request, in bytes of its IP packet, whose answer comes back whole.
///
/// Needs no agent: `peer` is any host (its port is not heeded, the scope of a link-local address is). A ping socket is
/// tried first, then a raw one. `ceiling` is the MTU of the own interface if it is known. Takes at most `budget`.
///
/// The answer travels back, so the size holds for both ways together, with one exception: hosts may send the answer in
/// fragments, and then a smaller way back does not show in the size but in `reply_fragment` (Linux 4.10 or later tells;
/// a kernel that does not leaves it empty). Some hosts and firewalls answer only up to a size of their own choice; that
/// looks like a path that carries no more.
///
/// Skipped without the right to send ICMP, where the system cannot forbid fragments, and when `stop` was set. Failed when
/// not even the smallest request is answered, or when loss leaves the size undecided.
pub fn echo(peer: SocketAddr, ceiling: Option<Mtu>, budget: Duration, stop: &Stop) -> Outcome<EchoPath> {
    let peer = canonical(peer);
    let (socket, method) = match open(peer.ip()) {
        Ok(opened) => opened,
        Err(why) => return Outcome::skipped(why),
    };
    let mut random = [0; 18];
    if let Err(error) = getrandom::fill(&mut random) {
        return Outcome::failed(format!("the system gives no random numbers for ICMP echo requests: {error}"));
    }
    let [high, low, cookie @ ..] = random;
    let identifier = socket.identifier().unwrap_or(u16::from_be_bytes([high, low]));
    Run::new(&socket, peer, identifier, cookie).search(method, ceiling, budget, stop)
}

fn open(peer: IpAddr) -> Result<(EchoSocket, EchoMethod), String> {
    let ping = match EchoSocket::ping(peer) {
        Ok(socket) => return Ok((socket, EchoMethod::PingSocket)),
        Err(error) => error,
    };
    let raw = match EchoSocket::raw(peer) {
        Ok(socket) => return Ok((socket, EchoMethod::RawSocket)),
        Err(error) => error,
    };
    Err(if ping.kind() == io::ErrorKind::Unsupported && raw.kind() == io::ErrorKind::Unsupported {
        format!("ICMP echo of an exact size cannot be sent: {ping}")
    } else {
        format!(
            "ICMP echo requests cannot be sent: neither by a ping socket ({ping}) nor by a raw one ({raw}); a group of this \
             user within net.ipv4.ping_group_range allows the first, root or CAP_NET_RAW the second"
        )
    })
}

/// One search: the socket, and what was learnt besides the size.
struct Run<'a> {
    socket: &'a EchoSocket,
    peer: SocketAddr,
    family: Family,
    series: Series,
    start: Instant,
    /// What the own interface carries, if the kernel said so.
    local_mtu: Option<u32>,
    /// The largest size that was answered, and the largest fragment of such answers.
    largest: (u32, Option<u32>),
    /// The last thing that the kernel said besides sizes, such as that there is no route.
    complaint: Option<io::Error>,
    errors_in_a_row: u32,
}

impl<'a> Run<'a> {
    fn new(socket: &'a EchoSocket, peer: SocketAddr, identifier: u16, cookie: Cookie) -> Self {
        let family = Family::of(peer.ip());
        Self {
            socket,
            peer,
            family,
            series: Series::new(family, identifier, cookie),
            start: Instant::now(),
            local_mtu: None,
            largest: (0, None),
            complaint: None,
            errors_in_a_row: 0,
        }
    }

    fn search(mut self, method: EchoMethod, ceiling: Option<Mtu>, budget: Duration, stop: &Stop) -> Outcome<EchoPath> {
        let family = self.family;
        let largest = ceiling.map_or(family.largest(), |mtu| mtu.0.min(family.largest()));
        let scope = Scope { smallest: family.smallest(), ceiling: largest, least_mtu: family.least_mtu(), budget };
        let mut search = Search::new(scope);
        self.start = Instant::now();
        let Some(ending) = self.drive(&mut search, stop) else {
            return Outcome::skipped("the search for the path MTU by ICMP echo was stopped before its end");
        };
        let reply_fragment = self.largest.1.map(Mtu);
        self.conclude(&search, &ending).map(|path| EchoPath { method, path, reply_fragment })
    }

    /// Moves the search between the clock and the socket until it ends; none when it was stopped.
    fn drive(&mut self, search: &mut Search, stop: &Stop) -> Option<Ending> {
        let mut buffer = vec![0; BUFFER];
        while !stop.is_set() {
            self.take_reports(search);
            match search.poll(self.start.elapsed()) {
                Step::Done(ending) => return Some(ending),
                Step::Wait(until) => self.receive(search, &mut buffer, until),
                Step::Send { sequence, size } => {
                    let sending = match self.series.request(sequence, size) {
                        Some(request) => self.send(search, &request, size),
                        None => Sending::TooLarge(None),
                    };
                    if let Sending::TooLarge(mtu) = sending {
                        search.refused_locally(sequence, mtu);
                    }
                }
            }
        }
        None
    }

    fn send(&mut self, search: &mut Search, request: &[u8], size: u32) -> Sending {
        let mut too_large = false;
        for _ in 0..SEND_ATTEMPTS {
            let Err(error) = self.socket.send(request, self.peer) else { return Sending::Gone };
            too_large = is_too_large(&error);
            if !too_large {
                self.complaint = Some(error);
            }
            // The error may belong to an earlier request that a router refused: only the report tells.
            self.take_reports(search);
            let named = self.local_mtu.filter(|mtu| *mtu < size);
            if too_large && named.is_some() {
                return Sending::TooLarge(named);
            }
        }
        if too_large { Sending::TooLarge(None) } else { Sending::Gone }
    }

    /// Waits for one message, at most until `until` or for a tick.
    fn receive(&mut self, search: &mut Search, buffer: &mut [u8], until: Duration) {
        let patience = until.saturating_sub(self.start.elapsed()).min(TICK);
        match self.socket.receive(buffer, patience) {
            Ok(arrival) => {
                self.errors_in_a_row = 0;
                let message = buffer.get(..arrival.length).unwrap_or(&[]);
                self.handle(search, message, &arrival);
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => {
                if !is_too_large(&error) {
                    self.complaint = Some(error);
                }
                self.errors_in_a_row += 1;
                if self.errors_in_a_row > MOST_ERRORS {
                    std::thread::sleep(TICK / 2);
                }
            }
        }
    }

    fn handle(&mut self, search: &mut Search, message: &[u8], arrival: &EchoArrival) {
        let now = self.start.elapsed();
        let message = if self.socket.has_header() { behind_header(message).unwrap_or(&[]) } else { message };
        if let Some((sequence, size)) = self.series.answer(message) {
            search.acknowledged(sequence, size, now);
            let (largest, fragment) = self.largest;
            if size > largest {
                self.largest = (size, arrival.fragment);
            } else if size == largest {
                self.largest.1 = fragment.max(arrival.fragment);
            }
        } else if let Some(word) = self.series.too_big(message, self.peer.ip()) {
            // Where the kernel hands the same word over as a report too, hearing it twice changes nothing.
            search.refused_by_router(Some(word.sequence), arrival.from, word.mtu);
        }
    }

    /// Tells the search what the kernel kept for the socket.
    fn take_reports(&mut self, search: &mut Search) {
        for _ in 0..MOST_REPORTS {
            let Ok(Some(report)) = self.socket.next_report() else { break };
            let SocketReport::TooLarge(report) = report else { continue };
            match report.by {
                TooLargeBy::Host => self.local_mtu = Some(report.mtu),
                TooLargeBy::Router(router) => {
                    if let Some(sequence) = self.series.quoted(&report.quoted) {
                        search.refused_by_router(Some(sequence), router, report.mtu);
                    }
                }
            }
        }
    }

    fn conclude(&self, search: &Search, ending: &Ending) -> Outcome<PathMtu> {
        let peer = self.peer.ip();
        let trace = search.trace();
        let probes = trace.len() as u32;
        let elapsed_us = Elapsed::from(self.start.elapsed());
        match ending {
            Ending::Exact(mtu, limited_by) => Outcome::Measured(PathMtu {
                mtu: Mtu(*mtu),
                ceiling: Mtu(search.ceiling()),
                limited_by: limited_by.clone(),
                probes,
                elapsed_us,
                rtt_us: search.least_rtt().map(Into::into),
                trace,
                words: Vec::new(),
                change: None,
                location: Outcome::skipped("the place was not looked for"),
            }),
            Ending::Unanswered => {
                let said = self.complaint.as_ref().map(|error| format!(" (this system said: {error})")).unwrap_or_default();
                Outcome::failed(format!(
                    "none of {probes} ICMP echo requests to {peer} was answered, not even the smallest{said}: ping is filtered \
                     on the way or by the host's firewall, or the host is gone; a firewall that lets ICMP echo pass would \
                     change that"
                ))
            }
            Ending::Undecided(passed, suspect) => Outcome::failed(format!(
                "the path MTU by ICMP echo is undecided after {probes} requests in {elapsed_us}: those of {passed} bytes are \
                 answered and whether those of {suspect} bytes are is not certain; less loss on the path, a host that does not \
                 limit the rate of its answers, or more time would decide it"
            )),
        }
    }
}

#[cfg(test)]
mod tests;
