//! The search by ICMP echo, for a host without an agent: the requests may not be fragmented, and whatever answers them
//! proves the size for both ways together.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use super::endpoint::{BUFFER, Sending, TICK, canonical};
use super::icmp::{Cookie, Series, behind_header};
use super::locate::{Locate, Move};
use super::packet::Family;
use super::search::{Ending, Scope, Search, Step};
use crate::model::Outcome;
use crate::model::mtu::{EchoMethod, EchoPath, PathMtu};
use crate::sys::Stop;
use crate::sys::icmp::{EchoArrival, EchoSocket};
use crate::sys::udp::{SocketReport, TooLarge, TooLargeBy, is_queue_full, is_too_large};
use crate::units::{Elapsed, Mtu};

mod place;

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
/// Where something else than the own interface is the limit, it is also told where that is, as far as routers answer.
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

/// What was heard: which request by its sequence, and when.
#[derive(Clone, Copy, Debug)]
enum News {
    /// It was answered, and had this size.
    Answered(u32, u32, Duration),
    /// A router says that it was too large, and names an MTU.
    TooBig(u32, IpAddr, u32),
    /// A router says that its TTL was used up.
    Expired(u32, IpAddr, Duration),
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
    news: Vec<News>,
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
            news: Vec::new(),
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
        let mut found = self.conclude(&search, ending);
        if let Some(path) = found.measured_mut() {
            path.location = place::locate(&mut self, path, budget, stop);
        }
        found.map(|path| EchoPath { method, path, reply_fragment })
    }

    /// Moves the search between the clock and the socket until it ends; none when it was stopped.
    fn drive(&mut self, search: &mut Search, stop: &Stop) -> Option<Ending> {
        let mut buffer = vec![0; BUFFER];
        while !stop.is_set() {
            self.take_reports();
            for news in self.news.drain(..) {
                match news {
                    News::Answered(sequence, size, at) => search.acknowledged(sequence, size, at),
                    News::TooBig(sequence, router, mtu) => search.refused_by_router(Some(sequence), router, mtu),
                    News::Expired(..) => {}
                }
            }
            match search.poll(self.start.elapsed()) {
                Step::Done(ending) => return Some(ending),
                Step::Wait(until) => self.receive(&mut buffer, until),
                Step::Send { sequence, size } => {
                    let sending = match self.series.request(sequence, size) {
                        Some(request) => self.send(&request, size, None),
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

    /// The same for a look for the place, whose sequences begin at `first`; false when it was stopped.
    fn look(&mut self, look: &mut Locate, first: u32, stop: &Stop) -> bool {
        let mut buffer = vec![0; BUFFER];
        let begun = self.start.elapsed();
        while !stop.is_set() {
            self.take_reports();
            for news in self.news.drain(..) {
                match news {
                    News::Answered(sequence, size, _) => look.acknowledged(sequence.wrapping_sub(first), size),
                    News::TooBig(sequence, router, _) => look.refused(Some(sequence.wrapping_sub(first)), router),
                    News::Expired(sequence, router, at) => {
                        look.expired(Some(sequence.wrapping_sub(first)), router, at.saturating_sub(begun));
                    }
                }
            }
            match look.poll(self.start.elapsed().saturating_sub(begun)) {
                Move::Done => return true,
                Move::Wait(until) => self.receive(&mut buffer, begun + until),
                Move::Send { sequence, size, ttl } => {
                    if let Some(request) = self.series.request(first.wrapping_add(sequence), size) {
                        // What cannot be sent counts as lost.
                        let _: Sending = self.send(&request, size, Some(ttl));
                    }
                }
            }
        }
        false
    }

    fn send(&mut self, request: &[u8], size: u32, ttl: Option<u8>) -> Sending {
        let mut too_large = false;
        for _ in 0..SEND_ATTEMPTS {
            let sent = match ttl {
                None => self.socket.send(request, self.peer),
                Some(ttl) => self.socket.send_with_ttl(request, self.peer, ttl),
            };
            let Err(error) = sent else { return Sending::Gone };
            too_large = is_too_large(&error);
            // Sending it again would only fill the queue once more.
            let full = is_queue_full(&error);
            if !too_large {
                self.complaint = Some(error);
            }
            if full {
                return Sending::Gone;
            }
            // The error may belong to an earlier request that a router refused: only the report tells.
            self.take_reports();
            let named = self.local_mtu.filter(|mtu| *mtu < size);
            if too_large && named.is_some() {
                return Sending::TooLarge(named);
            }
        }
        if too_large { Sending::TooLarge(None) } else { Sending::Gone }
    }

    /// Waits for one message, at most until `until` or for a tick.
    fn receive(&mut self, buffer: &mut [u8], until: Duration) {
        let patience = until.saturating_sub(self.start.elapsed()).min(TICK);
        match self.socket.receive(buffer, patience) {
            Ok(arrival) => {
                self.errors_in_a_row = 0;
                let message = buffer.get(..arrival.length).unwrap_or(&[]);
                self.handle(message, &arrival);
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

    fn handle(&mut self, message: &[u8], arrival: &EchoArrival) {
        let now = self.start.elapsed();
        let message = if self.socket.has_header() { behind_header(message).unwrap_or(&[]) } else { message };
        if let Some((sequence, size)) = self.series.answer(message) {
            self.news.push(News::Answered(sequence, size, now));
            let (largest, fragment) = self.largest;
            if size > largest {
                self.largest = (size, arrival.fragment);
            } else if size == largest {
                self.largest.1 = fragment.max(arrival.fragment);
            }
        } else if let Some(word) = self.series.too_big(message, self.peer.ip()) {
            // Where the kernel hands the same word over as a report too, hearing it twice changes nothing.
            self.news.push(News::TooBig(word.sequence, arrival.from, word.mtu));
        }
    }

    /// Takes what the kernel kept for the socket.
    fn take_reports(&mut self) {
        for _ in 0..MOST_REPORTS {
            let Ok(Some(report)) = self.socket.next_report() else { break };
            match report {
                SocketReport::TooLarge(TooLarge { by: TooLargeBy::Host, mtu, .. }) => self.local_mtu = Some(mtu),
                SocketReport::TooLarge(TooLarge { by: TooLargeBy::Router(router), mtu, quoted }) => {
                    self.news.extend(self.series.quoted(&quoted).map(|sequence| News::TooBig(sequence, router, mtu)));
                }
                SocketReport::TimeExceeded { router, quoted } => {
                    let now = self.start.elapsed();
                    self.news.extend(self.series.quoted(&quoted).map(|sequence| News::Expired(sequence, router, now)));
                }
                SocketReport::Other => {}
            }
        }
    }

    fn conclude(&self, search: &Search, ending: Ending) -> Outcome<PathMtu> {
        let peer = self.peer.ip();
        let elapsed = self.start.elapsed();
        let (probes, elapsed_us) = (search.trace().len(), Elapsed::from(elapsed));
        match ending {
            Ending::Exact(mtu, limited_by) => Outcome::Measured(search.path(mtu, limited_by, elapsed)),
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
