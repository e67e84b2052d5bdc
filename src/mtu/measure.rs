//! What either end of a path can measure: the largest packet towards the other end, and the round-trip time.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::endpoint::{Endpoint, Sending, Shared};
use super::packet::{HEADER, Kind, probe};
use super::place;
use super::search::{Ending, Scope, Search, Step};
use crate::model::Outcome;
use crate::model::mtu::PathMtu;
use crate::model::throughput::RttSummary;
use crate::pattern::Pattern;
use crate::stats;
use crate::sys::Stop;
use crate::units::{Elapsed, Mtu};

/// The numbers that one search takes: more than its probes.
const NUMBERS: u32 = 1024;

/// The most echoes of one series; an hour of one every 50 ms.
const MOST_ECHOES: u32 = 72_000;

/// How long the last echoes may take: a bloated buffer of a second is a finding, more is loss.
const ECHO_GRACE: Duration = Duration::from_secs(1);

impl Endpoint {
    /// Finds the largest IP packet that passes from here to the other end, to the byte.
    ///
    /// `ceiling` is the MTU of the own interface if it is known; the kernel corrects one that is too large. Takes at most
    /// `budget`: a clean LAN path one round trip, a black hole less than a second where round trips take under 5 ms.
    /// Skipped where the system cannot forbid fragments or `stop` was set; failed when nothing is answered or loss leaves
    /// the size undecided: a size that is not proven is never given as measured.
    ///
    /// Where something else than the own interface is the limit, it is also told where that is, as far as routers answer:
    /// that takes one probe more in one subnet, at most half a second where all routers answer and at most 1.5 s else.
    pub fn search(&self, ceiling: Option<Mtu>, budget: Duration, stop: &Stop) -> Outcome<PathMtu> {
        let shared = &self.shared;
        if let Some(why) = &shared.inexact {
            return Outcome::skipped(format!("the size of packets cannot be measured from this host: {why}"));
        }
        let turn = self.search_turn.lock().unwrap_or_else(PoisonError::into_inner);
        let family = shared.family;
        let largest = ceiling.map_or(family.largest(), |mtu| mtu.0.min(family.largest()));
        let scope = Scope { smallest: family.smallest(), ceiling: largest, least_mtu: family.least_mtu(), budget };
        let start = Instant::now();
        let mut search = Search::new(scope);
        let mut found = match drive(shared, &mut search, start, stop) {
            Some(ending) => self.conclude(&search, ending, start.elapsed()),
            None => Outcome::skipped("the search for the path MTU was stopped before its end"),
        };
        if let Some(path) = found.measured_mut() {
            path.location = place::locate(shared, path, budget.saturating_sub(start.elapsed()), stop);
        }
        drop(turn);
        found
    }

    fn conclude(&self, search: &Search, ending: Ending, elapsed: Duration) -> Outcome<PathMtu> {
        let Shared { peer, port, .. } = &*self.shared;
        let probes = search.trace().len();
        let elapsed_us = Elapsed::from(elapsed);
        match ending {
            Ending::Exact(mtu, limited_by) => Outcome::Measured(search.path(mtu, limited_by, elapsed)),
            Ending::Unanswered => Outcome::failed(format!(
                "none of {probes} probes to {peer} was answered, not even the smallest: UDP port {port} is blocked or the \
                 other end is gone; a firewall that lets UDP port {port} pass would change that"
            )),
            Ending::Undecided(passed, suspect) => Outcome::failed(format!(
                "the path MTU is undecided after {probes} probes in {elapsed_us}: packets of {passed} bytes pass and whether \
                 those of {suspect} bytes do is not certain; less loss on the path or more time would decide it"
            )),
        }
    }

    /// Measures the round-trip time by `count` small echoes, one every `interval`; works while streams fill the path.
    ///
    /// Takes `count` × `interval` and up to a second more. Skipped when there is nothing to send, failed when not one echo
    /// came back; when `stop` is set, the summary is of what was there until then.
    pub fn rtt(&self, count: u32, interval: Duration, stop: &Stop) -> Outcome<RttSummary> {
        let count = count.min(MOST_ECHOES);
        if count == 0 {
            return Outcome::skipped("no echo was asked for");
        }
        let _turn = self.echo_turn.lock().unwrap_or_else(PoisonError::into_inner);
        let (sent, times) = echoes(&self.shared, count, interval, stop);
        let micros: Vec<f64> = times.iter().map(|rtt| rtt.as_secs_f64() * 1e6).collect();
        let at = |percent| stats::percentile(&micros, percent).map(|us| Elapsed(us.round() as u64));
        let p99_us = at(99.0);
        match (at(0.0), at(50.0), at(95.0), at(100.0)) {
            (Some(min_us), Some(median_us), Some(p95_us), Some(max_us)) => {
                Outcome::Measured(RttSummary { sent, received: times.len() as u32, min_us, median_us, p95_us, p99_us, max_us })
            }
            _ if sent == 0 => Outcome::skipped("it was over before an echo could come back"),
            _ => Outcome::failed(format!(
                "none of {sent} echoes to {} came back by UDP: the path is blocked or saturated",
                self.shared.peer
            )),
        }
    }
}

/// The most hops that are counted: no path between a PC and a NAS has more.
const MOST_HOPS: u8 = 12;

/// How often a packet is sent for each number of hops: one that is lost would count as a hop more.
const HOP_ROUNDS: u32 = 3;

/// The longest that a round of these packets is waited for.
const HOP_WAIT: Duration = Duration::from_millis(300);

/// What packets that were sent at the same moment may differ by on their way.
const HOP_SLACK: Duration = Duration::from_millis(15);

impl Endpoint {
    /// Counts the hops to the other end: 1 where no router lies between. It is the least TTL with which a packet arrives there, so
    /// no router has to say anything.
    ///
    /// Takes a round trip, and up to a second where packets get lost. Skipped where the system cannot limit the TTL of a packet or
    /// `stop` was set; failed where nothing came back.
    pub fn hops(&self, stop: &Stop) -> Outcome<u8> {
        let shared = &self.shared;
        let _turn = self.echo_turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut least: Option<u8> = None;
        for _ in 0..HOP_ROUNDS {
            let first = shared.numbers(MOST_HOPS.into());
            shared.inbox().echoes.clear();
            let mut gone = 0;
            for ttl in 1..=MOST_HOPS {
                let packet = shared.packet(Kind::Echo, first.wrapping_add(u32::from(ttl) - 1), 0);
                let size = HEADER as u32 + shared.family.headers();
                gone += u32::from(matches!(shared.send_with_ttl(&packet.encode(), size, ttl), Sending::Gone));
            }
            if gone == 0 {
                return Outcome::skipped("this system does not limit the hops of a single packet, so they cannot be counted");
            }
            let heard = heard(shared, first, stop);
            least = least.into_iter().chain(heard).min();
            if stop.is_set() {
                return Outcome::skipped("the hops were not counted to the end");
            }
            if least == Some(1) {
                break;
            }
        }
        let none = || format!("no packet of up to {MOST_HOPS} hops to {} was answered", shared.peer);
        least.map_or_else(|| Outcome::failed(none()), Outcome::Measured)
    }
}

/// The least number of hops of those packets from number `first` on that came back.
fn heard(shared: &Shared, first: u32, stop: &Stop) -> Option<u8> {
    let mut least: Option<u8> = None;
    let mut until = Instant::now() + HOP_WAIT;
    while !stop.is_set() && Instant::now() < until && least != Some(1) {
        shared.wait(until, |inbox| !inbox.echoes.is_empty());
        for (number, at) in shared.inbox().echoes.drain(..) {
            let ttl = u8::try_from(number.wrapping_sub(first)).ok().filter(|at| *at < MOST_HOPS).map(|at| at + 1);
            if least.is_none() && ttl.is_some() {
                until = until.min(at + HOP_SLACK);
            }
            least = least.into_iter().chain(ttl).min();
        }
    }
    least
}

/// Moves the search between the clock, the socket and the inbox until it ends; none when it was stopped.
fn drive(shared: &Shared, search: &mut Search, start: Instant, stop: &Stop) -> Option<Ending> {
    let first = shared.numbers(NUMBERS);
    let family = shared.family;
    let padding = padding(family.largest(), first);
    shared.forget_interface();
    shared.inbox().acks.clear();
    shared.inbox().refusals.clear();
    while !stop.is_set() {
        shared.take_reports();
        take_answers(shared, search, first, start);
        match search.poll(start.elapsed()) {
            Step::Done(ending) => return Some(ending),
            Step::Wait(until) => {
                shared.wait(start + until, |inbox| !inbox.acks.is_empty() || !inbox.refusals.is_empty());
            }
            Step::Send { sequence, size } => {
                let packet = shared.packet(Kind::Probe, first.wrapping_add(sequence), size);
                let Some(bytes) = probe(&packet, family, &padding) else {
                    search.refused_locally(sequence, None);
                    continue;
                };
                if let Sending::TooLarge(mtu) = shared.send(&bytes, size) {
                    search.refused_locally(sequence, mtu);
                }
            }
        }
    }
    None
}

/// What fills probes up to the size `largest`: content that no link can compress.
pub(super) fn padding(largest: u32, seed: u32) -> Vec<u8> {
    let mut padding = vec![0; largest as usize];
    Pattern::new(u64::from(seed)).fill(0, &mut padding);
    padding
}

/// Tells the search what lies in the inbox.
fn take_answers(shared: &Shared, search: &mut Search, first: u32, start: Instant) {
    let mut inbox = shared.inbox();
    for (number, size, at) in inbox.acks.drain(..) {
        search.acknowledged(number.wrapping_sub(first), size, at.saturating_duration_since(start));
    }
    for (number, router, mtu) in inbox.refusals.drain(..) {
        search.refused_by_router(number.map(|number| number.wrapping_sub(first)), router, mtu);
    }
}

/// Sends echoes and collects the round-trip times of those that came back; returns also how many were sent.
fn echoes(shared: &Shared, count: u32, interval: Duration, stop: &Stop) -> (u32, Vec<Duration>) {
    let first = shared.numbers(count);
    shared.inbox().echoes.clear();
    let start = Instant::now();
    let mut sent: Vec<(Instant, Option<Duration>)> = Vec::new();
    let mut received = 0;
    while !stop.is_set() {
        for (number, at) in shared.inbox().echoes.drain(..) {
            let echo = sent.get_mut(number.wrapping_sub(first) as usize);
            if let Some((sent_at, rtt @ None)) = echo {
                *rtt = Some(at.saturating_duration_since(*sent_at));
                received += 1;
            }
        }
        let number = sent.len() as u32;
        let due = start + interval * number;
        let now = Instant::now();
        let until = if number < count {
            if now >= due {
                sent.push((now, None));
                let packet = shared.packet(Kind::Echo, first.wrapping_add(number), 0);
                shared.send(&packet.encode(), HEADER as u32 + shared.family.headers());
                continue;
            }
            due
        } else {
            let end = sent.last().map_or(now, |(at, _)| *at + ECHO_GRACE);
            if received == count || now >= end {
                break;
            }
            end
        };
        shared.wait(until, |inbox| !inbox.echoes.is_empty());
    }
    if stop.is_set() {
        // Whoever stops does not wait for what is on its way: that is neither lost nor late.
        let now = Instant::now();
        sent.retain(|(at, rtt)| rtt.is_some() || now.saturating_duration_since(*at) >= ECHO_GRACE);
    }
    (sent.len() as u32, sent.into_iter().filter_map(|(_, rtt)| rtt).collect())
}
