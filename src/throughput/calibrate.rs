//! Which of several ways of moving bytes is the cheapest here: each gets short turns on the real connection. Pure.
//!
//! The engine is told at its own moments what was moved and what it cost the thread, and says which way comes next. A slow path
//! is left alone: there any way is cheap enough, and a turn would be too short to tell.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use crate::model::kernel::MethodTrial;
use crate::stats::mean;
use crate::units::{BitRate, ByteSize};

/// When the rate is first looked at: slow start is over on any path of a house by then, and the buffers are full.
const WARMING: Duration = Duration::from_millis(40);

/// How long the rate is looked at before the first turn.
const RATING: Duration = Duration::from_millis(30);

/// The rate below which nothing is tried. At 100 Mbit/s a turn has a few calls only, and the dearest way costs a slow NAS less
/// than a tenth of a core.
const LEAST: BitRate = BitRate(100_000_000);

/// What the part of a turn that counts should move: some hundred calls, and many times what the buffers hold.
const COUNTED: f64 = 32e6;

/// The longest part of a turn that counts. With both turns of three ways the trial of one end is over within 200 ms, which the steady
/// part of a pass cuts off; at 100 Mbit/s it still moves 300 kB.
const LONGEST: Duration = Duration::from_millis(25);

/// The shortest: two time slices of the scheduler, so that one that went to somebody else does not decide.
const SHORTEST: Duration = Duration::from_millis(9);

/// A turn begins with this share of its counting part in which nothing counts: what the way before left in the buffers moves in it.
const SETTLING: u32 = 3;

/// Two costs nearer than this share are the same: the way that is used without any trial stays.
const ALIKE: f64 = 0.05;

/// The share beyond which a lower rate is one, however much the turns differ.
const NOISIEST: f64 = 0.3;

/// What one thread did until a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Look {
    /// The moment.
    pub(super) now: Duration,
    /// The bytes that it moved.
    pub(super) bytes: u64,
    /// The processor time that it used.
    pub(super) cpu: Duration,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The same way as before.
    Stay,
    /// The way of this number.
    Use(usize),
    /// This way until the end; nothing more to be told.
    Done(usize),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// Nothing has been looked at yet.
    New,
    /// Waiting for the moment to look at the rate.
    Warming,
    /// Looking at the rate since.
    Rating(Look),
    /// Waiting for the other end's turns.
    Waiting,
    /// In the part of a turn that does not count.
    Settling,
    /// In the part that counts, since.
    Counting(Look),
    Over,
}

/// What a way did in its turns.
#[derive(Clone, Debug, Default, PartialEq)]
struct Trial {
    bytes: u64,
    time: Duration,
    cpu: Duration,
    /// The rate of each turn, in bytes a second.
    rates: Vec<f64>,
    refused: Option<String>,
}

/// The calibration of one thread. The way of number 0 is the one that is used without any trial.
#[derive(Clone, Debug)]
pub(super) struct Calibration {
    trials: Vec<Trial>,
    /// The turns to come, the last one first.
    turns: Vec<usize>,
    stage: Stage,
    due: Duration,
    /// How many turns of the other end are waited for.
    behind: u32,
    counting: Duration,
    tolerance: f64,
    rate: f64,
}

impl Calibration {
    /// Turns for so many ways, once the rate is known and the other end is through with so many turns of its own (`behind`), so that no
    /// end judges what the other one does. A way whose rate is lower than the highest by more than the share `tolerance` is out,
    /// however cheap it is.
    ///
    /// Each way has two turns, the second ones in the opposite order, so that a rate that still grows favours nobody.
    pub(super) fn new(ways: usize, behind: u32, tolerance: f64) -> Self {
        Self {
            trials: vec![Trial::default(); ways],
            turns: (0..ways).chain((0..ways).rev()).collect(),
            stage: Stage::New,
            due: Duration::ZERO,
            behind,
            counting: LONGEST,
            tolerance,
            rate: 0.0,
        }
    }

    /// Whether [`Self::step`] has something to do at this moment; asked after every call, so it costs a comparison.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        now >= self.due
    }

    /// Whether the turns have begun: from here on the ways change, and nothing else may.
    pub(super) const fn has_begun(&self) -> bool {
        matches!(self.stage, Stage::Settling | Stage::Counting(_) | Stage::Over)
    }

    /// The rate before the first turn, in bytes a second.
    pub(super) const fn rate(&self) -> f64 {
        self.rate
    }

    /// Goes on at a moment that is due.
    pub(super) fn step(&mut self, look: Look) -> Step {
        let (stage, wait) = match self.stage {
            Stage::New => (Stage::Warming, WARMING),
            Stage::Warming => (Stage::Rating(look), RATING),
            Stage::Rating(since) => {
                self.rate = look.bytes.saturating_sub(since.bytes) as f64 / seconds(look.now.saturating_sub(since.now));
                if self.rate < LEAST.bytes().0 as f64 {
                    self.trials.clear();
                    return self.end();
                }
                self.counting = Duration::from_secs_f64(COUNTED / self.rate).clamp(SHORTEST, LONGEST);
                (Stage::Waiting, (self.counting + self.counting / SETTLING) * self.behind)
            }
            Stage::Waiting => return self.next_turn(look.now),
            Stage::Settling => (Stage::Counting(look), self.counting),
            Stage::Counting(since) => {
                let trial = self.turns.pop().and_then(|way| self.trials.get_mut(way));
                if let Some(trial) = trial {
                    trial.add(&since, &look);
                }
                return self.next_turn(look.now);
            }
            Stage::Over => return self.end(),
        };
        (self.stage, self.due) = (stage, look.now + wait);
        Step::Stay
    }

    /// The way whose turn it is does not work, in a sentence; it gets no further turn.
    pub(super) fn refuse(&mut self, now: Duration, why: &str) -> Step {
        if let (Some(way), Stage::Settling | Stage::Counting(_)) = (self.turns.last().copied(), self.stage) {
            if let Some(trial) = self.trials.get_mut(way) {
                trial.refused = Some(why.to_owned());
            }
            self.turns.retain(|turn| *turn != way);
        }
        self.next_turn(now)
    }

    fn next_turn(&mut self, now: Duration) -> Step {
        let Some(way) = self.turns.last() else { return self.end() };
        (self.stage, self.due) = (Stage::Settling, now + self.counting / SETTLING);
        Step::Use(*way)
    }

    fn end(&mut self) -> Step {
        (self.stage, self.due) = (Stage::Over, Duration::MAX);
        Step::Done(judge(&self.trials, self.tolerance))
    }

    /// What each way gave; empty where nothing was tried.
    pub(super) fn told(&self, names: &[&str]) -> Vec<MethodTrial> {
        let told = self.trials.iter().zip(names).map(|(trial, name)| MethodTrial {
            method: (*name).to_owned(),
            rate_bps: BitRate::of(ByteSize(trial.bytes), trial.time),
            cpu_s_per_gb: if trial.bytes > 0 { trial.cost() * 1e9 } else { 0.0 },
            refused: trial.refused.clone().or_else(|| (trial.bytes == 0).then(|| "nothing moved in its turns".to_owned())),
        });
        told.collect()
    }
}

impl Trial {
    /// A turn from the one look to the other.
    fn add(&mut self, since: &Look, until: &Look) {
        let (bytes, time) = (until.bytes.saturating_sub(since.bytes), until.now.saturating_sub(since.now));
        self.bytes = self.bytes.saturating_add(bytes);
        self.time += time;
        self.cpu += until.cpu.saturating_sub(since.cpu);
        self.rates.push(bytes as f64 / seconds(time));
    }

    /// By which share its turns differ.
    fn noise(&self) -> f64 {
        let (most, least) =
            self.rates.iter().fold((0.0, f64::INFINITY), |(most, least): (f64, f64), rate| (most.max(*rate), least.min(*rate)));
        if most > 0.0 { (most - least) / most } else { 0.0 }
    }

    /// Seconds of processor time for a byte.
    fn cost(&self) -> f64 {
        self.cpu.as_secs_f64() / self.bytes.max(1) as f64
    }

    fn rate(&self) -> f64 {
        self.bytes as f64 / seconds(self.time)
    }
}

/// Seconds to divide by.
fn seconds(time: Duration) -> f64 {
    time.as_secs_f64().max(1e-9)
}

/// The cheapest of those that are nearly as fast as the fastest; the first where it is not clearly dearer.
///
/// What the turns of one and the same way differ by says how large a difference can be believed.
fn judge(trials: &[Trial], tolerance: f64) -> usize {
    let worked = || trials.iter().enumerate().filter(|(_, trial)| trial.refused.is_none() && trial.bytes > 0);
    let fastest = worked().map(|(_, trial)| trial.rate()).fold(0.0, f64::max);
    let noise = mean(&worked().map(|(_, trial)| trial.noise()).collect::<Vec<_>>());
    let tolerance = noise.min(NOISIEST).max(tolerance);
    let fast = || worked().filter(|(_, trial)| trial.rate() >= (1.0 - tolerance) * fastest);
    let Some((best, least)) = fast().min_by(|(_, a), (_, b)| a.cost().total_cmp(&b.cost())) else { return 0 };
    let first = fast().find(|(way, _)| *way == 0);
    if first.is_some_and(|(_, trial)| least.cost() > (1.0 - ALIKE) * trial.cost()) { 0 } else { best }
}

/// What the streams of one end share of it: one of them tries, the others follow. No lock.
#[derive(Debug, Default)]
pub(super) struct Choice {
    way: AtomicU8,
    trials: OnceLock<Vec<MethodTrial>>,
    /// The way that some stream could not use after the trial, and why.
    given_up: OnceLock<(usize, String)>,
}

impl Choice {
    /// The way to use now.
    pub(super) fn way(&self) -> usize {
        self.way.load(Ordering::Relaxed).into()
    }

    /// Has all streams use this way.
    pub(super) fn set(&self, way: usize) {
        self.way.store(u8::try_from(way).unwrap_or_default(), Ordering::Relaxed);
    }

    /// Keeps what was found, for the result; the first word counts.
    pub(super) fn tell(&self, trials: Vec<MethodTrial>) {
        let _ = self.trials.set(trials);
    }

    /// Whether the trial is over.
    pub(super) fn is_settled(&self) -> bool {
        self.trials.get().is_some()
    }

    /// A stream could not use the way that the trial chose: all go back to the first. The first word counts.
    pub(super) fn give_up(&self, why: &str) {
        let way = self.way();
        if way != 0 {
            let _ = self.given_up.set((way, why.to_owned()));
            self.set(0);
        }
    }

    /// What was found; a way that was given up afterwards is refused.
    pub(super) fn trials(&self) -> Vec<MethodTrial> {
        let mut trials = self.trials.get().cloned().unwrap_or_default();
        if let Some((way, why)) = self.given_up.get()
            && let Some(trial) = trials.get_mut(*way)
        {
            trial.refused = Some(why.clone());
        }
        trials
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// A way that moves so many Mbit/s at so many seconds for each gigabyte, or that is refused.
    type Given = Option<(u64, f64)>;

    /// Plays a thread that looks every millisecond; the ways in the order of use, and the winner.
    fn play(ways: &[Given], tolerance: f64) -> (Vec<usize>, usize, Vec<MethodTrial>) {
        let mut engine = Calibration::new(ways.len(), 0, tolerance);
        let (mut way, mut used, mut look) = (0, Vec::new(), Look::default());
        for at in 0..10_000 {
            look.now = MS(at);
            let mut step = if engine.is_due(look.now) { engine.step(look) } else { Step::Stay };
            loop {
                match step {
                    Step::Stay => break,
                    Step::Use(next) => {
                        used.push(next);
                        way = next;
                        if ways[next].is_some() {
                            break;
                        }
                        step = engine.refuse(look.now, "it does not work");
                    }
                    Step::Done(winner) => return (used, winner, engine.told(&["a", "b", "c", "d"])),
                }
            }
            let (mbit, cost) = ways[way].unwrap_or((0, 0.0));
            look.bytes += mbit * 125;
            look.cpu += Duration::from_secs_f64(mbit as f64 * 125.0 / 1e9 * cost);
        }
        panic!("it never ends");
    }

    #[test]
    fn the_cheapest_way_that_costs_no_rate_wins() {
        for (name, ways, tolerance, winner) in [
            ("the link is the limit", vec![Some((940, 0.3)), Some((940, 0.2)), Some((940, 0.5))], 0.05, 1),
            ("alike: the first stays", vec![Some((940, 0.300)), Some((940, 0.290))], 0.05, 0),
            ("cheap but slow", vec![Some((9000, 0.3)), Some((8000, 0.1))], 0.05, 0),
            ("a little slower and much cheaper", vec![Some((9000, 0.3)), Some((8700, 0.1))], 0.05, 1),
            ("the first is the slow one", vec![Some((8000, 0.1)), Some((9000, 0.3))], 0.05, 1),
            ("rates say little here", vec![Some((9000, 0.3)), Some((8000, 0.1))], 0.25, 1),
            ("refused", vec![Some((9000, 0.3)), None, Some((9000, 0.2))], 0.05, 2),
            ("all others refused", vec![Some((9000, 0.3)), None, None], 0.05, 0),
        ] {
            assert_eq!(play(&ways, tolerance).1, winner, "{name}");
        }
    }

    #[test]
    fn a_difference_that_the_noise_could_make_is_not_believed() {
        let trial = |rates: [f64; 2], cost: f64| Trial {
            bytes: 1_000_000,
            time: Duration::from_secs_f64(2e6 / (rates[0] + rates[1])),
            cpu: Duration::from_secs_f64(cost),
            rates: rates.to_vec(),
            refused: None,
        };
        for (name, first, second, winner) in [
            ("quiet, and the cheap one is slower", [100e6, 100e6], [80e6, 80e6], 0),
            ("as noisy as the difference", [80e6, 120e6], [70e6, 90e6], 1),
            ("noisy, and far slower", [60e6, 140e6], [30e6, 70e6], 0),
        ] {
            assert_eq!(judge(&[trial(first, 0.3), trial(second, 0.1)], 0.05), winner, "{name}");
        }
    }

    #[test]
    fn each_way_has_two_turns_in_opposite_order_and_what_it_gave_is_told() {
        let (used, winner, told) = play(&[Some((900, 0.3)), Some((930, 0.2)), None], 0.05);
        assert_eq!((used, winner), (vec![0, 1, 2, 1, 0], 1));
        let told: Vec<(String, u64, i64, bool)> = told
            .into_iter()
            .map(|t| (t.method, t.rate_bps.0 / 1_000_000, (t.cpu_s_per_gb * 100.0).round() as i64, t.refused.is_some()))
            .collect();
        assert_eq!(told, [("a".into(), 900, 30, false), ("b".into(), 930, 20, false), ("c".into(), 0, 0, true)]);
    }

    #[test]
    fn a_way_that_another_stream_cannot_use_is_given_up_by_all_and_the_result_says_why() {
        let trial = |method: &str| MethodTrial { method: method.into(), rate_bps: BitRate(1), cpu_s_per_gb: 0.1, refused: None };
        let choice = Choice::default();
        choice.set(1);
        choice.tell(vec![trial("a"), trial("b")]);
        assert!(choice.is_settled() && choice.trials().iter().all(|trial| trial.refused.is_none()));
        choice.give_up("no pipe for the second stream");
        // What a third one meets while all go back is no news.
        choice.give_up("no pipe for the third stream");
        let refused: Vec<_> = choice.trials().into_iter().map(|trial| trial.refused).collect();
        assert_eq!((choice.way(), refused), (0, vec![None, Some("no pipe for the second stream".to_owned())]));
    }

    #[test]
    fn a_slow_path_is_left_alone() {
        for mbit in [0, 1, 10, 99] {
            let (used, winner, told) = play(&[Some((mbit, 0.3)), Some((mbit, 0.1))], 0.05);
            assert_eq!((used, winner, told), (vec![], 0, vec![]), "{mbit} Mbit/s");
        }
        assert_eq!(play(&[Some((101, 0.3)), Some((101, 0.1))], 0.05).1, 1);
    }

    proptest! {
        #[test]
        fn it_ends_soon_and_never_chooses_what_was_refused(
            ways in proptest::collection::vec(proptest::option::of((0u64..100_000, 0.0f64..2.0)), 1..5),
            tolerance in 0.0f64..1.0,
        ) {
            let (used, winner, told) = play(&ways, tolerance);
            prop_assert!(used.len() <= 2 * ways.len());
            prop_assert!(winner < ways.len());
            prop_assert!(told.iter().all(|trial| trial.cpu_s_per_gb.is_finite()));
            let moves = |way: usize| ways[way].is_some_and(|(mbit, _)| mbit > 0);
            prop_assert!(moves(winner) || winner == 0);
        }

        #[test]
        fn looks_that_make_no_sense_do_no_harm(
            looks in proptest::collection::vec((0u64..10_000, any::<u64>(), 0u64..10_000), 0..100),
        ) {
            let mut engine = Calibration::new(3, 6, 0.05);
            for (now, bytes, cpu) in looks {
                let look = Look { now: MS(now), bytes: bytes >> 8, cpu: MS(cpu) };
                if engine.is_due(look.now) {
                    engine.step(look);
                }
                if cpu % 7 == 0 {
                    engine.refuse(look.now, "it does not work");
                }
            }
            prop_assert!(engine.told(&["a", "b", "c"]).iter().all(|trial| trial.cpu_s_per_gb.is_finite()));
        }
    }
}
