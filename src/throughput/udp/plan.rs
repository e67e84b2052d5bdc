//! Which rate to try next: up until the network loses something that counts, then between the two. Pure.

use std::time::Duration;

use crate::model::host::Direction;
use crate::model::plan::UdpPlan;
use crate::model::udp::UdpPass;
use crate::units::BitRate;

/// From this share on a loss counts. Ethernet's own bit errors (10⁻¹² a bit, IEEE 802.3) lose a datagram in 10⁸, so one in
/// a thousand is a full queue or a fault; TCP hardly feels less.
pub const LOSS_COUNTS: f64 = 0.001;

/// Fewer lost datagrams than this are told but prove nothing about the rate.
const LOSS_LEAST: u64 = 3;

/// A receiver that dropped more than this share is the limit: what is left says too little about the network. Less is told, and the
/// network is judged by what it brought.
const RECEIVER_LATE: f64 = 0.1;

/// So often in a row must the sender be behind before it is the limit: once may be another program's doing.
const BEHIND: usize = 2;

/// The search ends when the rate with loss is at most this much above the one without.
const CLOSE: f64 = 1.04;

/// The passes of a search.
const MOST_PASSES: usize = 10;

/// The first rate where nothing is known of the path, and the factor from there while nothing is lost.
const FIRST: BitRate = BitRate(10_000_000);
const STEP: f64 = 4.0;

/// The slowest rate that is tried: 85 datagrams a second.
const SLOWEST: BitRate = BitRate(1_000_000);

/// The highest rate that is asked of any host.
pub const FASTEST: BitRate = BitRate(100_000_000_000);

/// Rates that were too much in a row, each a quarter of the one before, after which loss is no matter of the rate.
const DESCENTS: usize = 4;

/// A receiver that needed so much longer than the sender saw a queue grow: the path carries less than was sent, and a larger
/// buffer only hides it.
const DRAINED: f64 = 1.01;
const DRAINED_LEAST: Duration = Duration::from_millis(2);

/// How long the passes of a search last: long enough that a queue of some MB cannot hide 3 % too much at 1 Gbit/s, and
/// shorter while the order of magnitude is sought.
const FINE: Duration = Duration::from_secs(1);
const COARSE: Duration = Duration::from_millis(400);

/// The one pass at a rate that was asked for.
const FIXED: Duration = Duration::from_secs(3);

/// The shortest pass that means something.
const SHORTEST: Duration = Duration::from_millis(50);

/// The longest pass that any end agrees to.
pub const LONGEST: Duration = Duration::from_secs(120);

/// What a pass says about its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Clean,
    /// Nothing was lost, but the path carried less than was sent.
    Filling,
    Lossy,
    /// The receiving host dropped what the network had brought.
    ReceiverLate,
}

/// A rate that was too much for somebody.
#[derive(Clone, Copy, Debug)]
struct Over {
    rate: BitRate,
    verdict: Verdict,
}

/// Searches the rate at which loss begins.
#[derive(Clone, Debug)]
pub struct Search {
    direction: Direction,
    fixed: Option<BitRate>,
    presumed: Option<BitRate>,
    length: Option<Duration>,
    passes: usize,
    over_in_a_row: usize,
    behind_in_a_row: usize,
    /// The highest rate that everybody took, below all that were too much.
    clean: Option<BitRate>,
    /// The highest rate at which the network lost nothing, whatever the receiver did.
    network_clean: Option<BitRate>,
    over: Option<Over>,
    lossy: Option<BitRate>,
    /// What arrived while the path was overfilled.
    carried: Option<BitRate>,
    /// Why the receiver's own drops are not known, where something was lost.
    unknown: Option<String>,
    ended: Option<String>,
}

impl Search {
    /// A search as it was asked for.
    pub fn new(plan: &UdpPlan, direction: Direction) -> Self {
        let bounded = |rate: BitRate| rate.clamp(BitRate(1000), FASTEST);
        Self {
            direction,
            fixed: plan.rate_bps.map(bounded),
            presumed: plan.presumed_bps.filter(|rate| rate.0 > 0).map(bounded),
            length: plan.time_us.map(|time| Duration::from(time).clamp(SHORTEST, LONGEST)),
            passes: 0,
            over_in_a_row: 0,
            behind_in_a_row: 0,
            clean: None,
            network_clean: None,
            over: None,
            lossy: None,
            carried: None,
            unknown: None,
            ended: None,
        }
    }

    /// The next rate and the length of its pass; none when the search is over.
    pub fn ask(&self) -> Option<(BitRate, Duration)> {
        if self.ended.is_some() {
            return None;
        }
        if let Some(rate) = self.fixed {
            return Some((rate, self.length.unwrap_or(FIXED)));
        }
        let coarse = self.over.is_none() && self.presumed.is_none();
        let length = self.length.unwrap_or(if coarse { COARSE } else { FINE });
        Some((self.rate().clamp(SLOWEST, FASTEST), length))
    }

    fn rate(&self) -> BitRate {
        match (self.clean, self.over) {
            // Below what TCP reached nothing should be lost; UDP carries 2 % more.
            (None, None) => self.presumed.map_or(FIRST, |rate| rate.scale(0.9)),
            (Some(clean), None) => match self.presumed {
                Some(presumed) if clean < presumed => presumed.scale(1.1),
                Some(_) => clean.scale(2.0),
                None => clean.scale(STEP),
            },
            (None, Some(over)) => {
                // What arrived is what the path carries, unless it loses at any rate.
                let carried = self.carried.filter(|rate| self.over_in_a_row == 1 && *rate > over.rate.scale(0.3));
                carried.map_or_else(|| over.rate.scale(1.0 / STEP), |rate| rate.min(over.rate).scale(0.97))
            }
            (Some(clean), Some(over)) => self.between(clean, over.rate),
        }
    }

    /// A rate between two: beside what the path was seen to carry, else the middle.
    fn between(&self, clean: BitRate, over: BitRate) -> BitRate {
        let within = |rate: BitRate| rate > clean.scale(1.01) && rate < over.scale(0.99);
        let beside = self.carried.into_iter().flat_map(|rate| [rate.scale(0.985), rate.scale(1.02)]);
        let middle = BitRate((clean.as_f64() * over.as_f64()).sqrt() as u64);
        beside.into_iter().find(|rate| within(*rate)).unwrap_or(middle)
    }

    /// What a pass gave: the whole of it, how long its sender sent, and whether that was behind the rate.
    pub fn tell(&mut self, pass: &UdpPass, sender_elapsed: Duration, behind: bool) {
        self.passes += 1;
        self.behind_in_a_row = if behind { self.behind_in_a_row + 1 } else { 0 };
        // A sender that was behind proves nothing about the rate that was asked for.
        let rate = if behind { pass.sent_bps.min(pass.asked_bps) } else { pass.asked_bps };
        let verdict = judge(pass, sender_elapsed);
        if verdict == Verdict::Lossy {
            self.unknown = pass.dropped_by_receiver.why().map(str::to_owned);
            self.lossy = Some(self.lossy.map_or(rate, |before| before.min(rate)));
        }
        if matches!(verdict, Verdict::Clean | Verdict::ReceiverLate) {
            self.network_clean = self.network_clean.max(Some(rate));
        }
        if verdict == Verdict::Clean {
            self.over_in_a_row = 0;
            self.clean = self.clean.max(Some(rate));
        } else {
            self.over_in_a_row += 1;
            if self.over.is_none_or(|over| rate < over.rate) {
                self.over = Some(Over { rate, verdict });
            }
            self.carried = Some(pass.received_bps);
        }
        // A lower rate that was too much overrules a higher one that was not: that was luck, or the path changes.
        self.clean = self.clean.filter(|clean| self.over.is_none_or(|over| *clean < over.rate));
        self.ended = self.end(pass, verdict, behind);
    }

    fn end(&self, pass: &UdpPass, verdict: Verdict, behind: bool) -> Option<String> {
        let sender = self.direction.sender().title();
        if let Some(rate) = self.fixed {
            let but =
                if behind { format!(", and the {sender} could send no more than {}", pass.sent_bps) } else { String::new() };
            return Some(format!("only {rate} was asked for{but}"));
        }
        if self.behind_in_a_row >= BEHIND && verdict == Verdict::Clean && self.over.is_none() {
            return Some(format!("the {sender} could send no more than {}", pass.sent_bps));
        }
        match (self.clean, self.over) {
            (Some(clean), Some(over)) if over.rate.as_f64() <= clean.as_f64() * CLOSE => Some(self.bound(over.verdict)),
            (Some(clean), None) if clean >= FASTEST.scale(0.99) => {
                Some(format!("{FASTEST} is the most that is asked of any host"))
            }
            (None, Some(over)) if self.over_in_a_row >= DESCENTS || pass.asked_bps <= SLOWEST => {
                Some(self.bottomless(over.verdict))
            }
            (_, over) if self.passes >= MOST_PASSES => {
                let so_far = over.map_or_else(|| "no rate was too much so far".to_owned(), |over| self.bound(over.verdict));
                Some(format!("{MOST_PASSES} passes are the most of a search; {so_far}"))
            }
            _ => None,
        }
    }

    /// What holds back more than the highest clean rate.
    fn bound(&self, verdict: Verdict) -> String {
        let receiver = self.direction.receiver().title();
        match (verdict, &self.unknown) {
            (Verdict::Lossy, Some(why)) => {
                format!("more than this is lost, by the network or by the {receiver} itself, which is not known: {why}")
            }
            (Verdict::Lossy, None) => "the network loses what is more than this".to_owned(),
            (Verdict::Filling, _) => "more than this only fills a queue on the way".to_owned(),
            (Verdict::ReceiverLate | Verdict::Clean, _) => {
                format!("the {receiver} could take in no more: its own kernel dropped what the network had brought")
            }
        }
    }

    /// No rate was clean.
    fn bottomless(&self, verdict: Verdict) -> String {
        match verdict {
            Verdict::Lossy => "datagrams were lost at every rate that was tried, so the rate is not the cause".to_owned(),
            other => format!("no rate was clean: {}", self.bound(other)),
        }
    }

    /// Ends the search for a reason of the ends.
    pub fn give_up(&mut self, why: &str) {
        self.ended.get_or_insert_with(|| why.to_owned());
    }

    /// The highest rate at which the network lost nothing that counts, below all at which it did.
    pub fn clean(&self) -> Option<BitRate> {
        let network = self.network_clean.filter(|rate| self.lossy.is_none_or(|lossy| *rate < lossy));
        network.or(self.clean)
    }

    /// The lowest rate at which the network lost something that counts.
    pub const fn loss_from(&self) -> Option<BitRate> {
        self.lossy
    }

    /// Why no further rate is tried; none while one is.
    pub fn ended(&self) -> Option<&str> {
        self.ended.as_deref()
    }
}

/// What a pass says about its rate.
fn judge(pass: &UdpPass, sender_elapsed: Duration) -> Verdict {
    let counts = |lost: u64| lost >= LOSS_LEAST && lost as f64 >= LOSS_COUNTS * pass.sent as f64;
    let own = pass.dropped_by_receiver.measured().copied().unwrap_or(0).min(pass.lost);
    let drained = Duration::from(pass.elapsed_us) > sender_elapsed.mul_f64(DRAINED).saturating_add(DRAINED_LEAST);
    match () {
        () if counts(pass.lost - own) => Verdict::Lossy,
        () if counts(own) && own as f64 > RECEIVER_LATE * pass.sent as f64 => Verdict::ReceiverLate,
        () if drained => Verdict::Filling,
        () => Verdict::Clean,
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
