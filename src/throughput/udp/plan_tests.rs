//! Searches on paths that are one rule each.

use proptest::prelude::*;

use super::*;
use crate::model::Outcome;
use crate::model::throughput::Bins;
use crate::units::Elapsed;

/// A path: what it carries, what its queue holds, what it loses at any rate, and what the ends can do.
#[derive(Clone, Copy, Debug)]
struct Path {
    carries: u64,
    queue_bytes: u64,
    loses: f64,
    sender: u64,
    receiver: u64,
    tells_drops: bool,
}

const FAST: u64 = 400_000_000_000;
const PATH: Path = Path { carries: FAST, queue_bytes: 1 << 20, loses: 0.0, sender: FAST, receiver: FAST, tells_drops: true };

const BYTES: u64 = 1472;

impl Path {
    /// What a pass over it gives.
    fn pass(&self, asked: BitRate, time: Duration) -> (UdpPass, Duration, bool) {
        let seconds = time.as_secs_f64();
        let rate = asked.0.min(self.sender) as f64;
        let of = |bits: f64| (bits / 8.0 / BYTES as f64) as u64;
        let sent = of(rate * seconds).max(1);
        let through = (rate * (1.0 - self.loses)).min(self.carries as f64);
        // What the queue took comes later.
        let room = of(self.carries as f64 * seconds + self.queue_bytes as f64 * 8.0);
        let arrived = of(rate * (1.0 - self.loses) * seconds).min(room).max(u64::from(self.loses < 1.0)).min(sent);
        let elapsed = of(through * seconds).max(1);
        let elapsed = seconds * (arrived as f64 / elapsed as f64).max(1.0);
        let taken = arrived.min(of(self.receiver as f64 * elapsed).max(1));
        let dropped = arrived - taken;
        let received = BitRate((taken as f64 * BYTES as f64 * 8.0 / elapsed) as u64);
        let pass = UdpPass {
            asked_bps: asked,
            sent_bps: BitRate(rate as u64),
            received_bps: received,
            sent,
            refused: 0,
            received: taken,
            lost: sent - taken,
            dropped_by_receiver: if self.tells_drops { Outcome::Measured(dropped) } else { Outcome::skipped("not told") },
            duplicates: 0,
            reordered: 0,
            longest_loss: 0,
            jitter_us: Elapsed(0),
            queue_median_us: Elapsed(0),
            queue_p99_us: Elapsed(0),
            elapsed_us: Duration::from_secs_f64(elapsed).into(),
            bins: Bins::default(),
            cpu_pc: Outcome::skipped("test"),
            cpu_nas: Outcome::skipped("test"),
            counters_pc: Outcome::skipped("test"),
            counters_nas: Outcome::skipped("test"),
        };
        (pass, time, asked.0 > self.sender + self.sender / 50)
    }
}

/// Searches to the end; gives the search, the rates and the time.
fn search(path: Path, plan: UdpPlan) -> (Search, Vec<u64>, Duration) {
    let mut search = Search::new(&plan, Direction::Upload);
    let (mut rates, mut time) = (Vec::new(), Duration::ZERO);
    while let Some((rate, length)) = search.ask() {
        let (pass, elapsed, behind) = path.pass(rate, length);
        rates.push(rate.0);
        time += length;
        search.tell(&pass, elapsed, behind);
        assert!(rates.len() <= MOST_PASSES, "{rates:?}");
    }
    (search, rates, time)
}

fn presumed(rate: u64) -> UdpPlan {
    UdpPlan { presumed_bps: Some(BitRate(rate)), ..UdpPlan::default() }
}

#[test]
fn a_speed_step_is_found_from_any_beginning() {
    for carries in [9_500_000, 95_000_000, 957_000_000, 2_392_000_000, 9_570_000_000, 23_900_000_000] {
        for plan in [UdpPlan::default(), presumed(carries * 98 / 100), presumed(carries / 2), presumed(carries * 4)] {
            let (search, rates, time) = search(Path { carries, ..PATH }, plan);
            let clean = search.clean().unwrap().as_f64() / carries as f64;
            assert!((0.95..=1.001).contains(&clean), "{carries} from {plan:?}: {clean} by {rates:?}");
            assert!(time <= Duration::from_secs(10), "{time:?}");
            let above = search.loss_from().map_or(1.0, |rate| rate.as_f64() / carries as f64);
            assert!((1.0..=5.0).contains(&above), "{carries} from {plan:?}: {above} by {rates:?}");
        }
    }
}

#[test]
fn each_reason_to_end_is_told() {
    let gigabit = 957_000_000;
    for (name, path, plan, clean, lossy, word) in [
        ("a slow sender", Path { sender: 3_000_000_000, ..PATH }, presumed(9_000_000_000), true, false, "PC could send no more"),
        (
            "a slow receiver",
            Path { receiver: 3_000_000_000, ..PATH },
            presumed(9_000_000_000),
            true,
            false,
            "NAS could take in no more",
        ),
        ("a slow path", Path { carries: gigabit, ..PATH }, presumed(gigabit), true, true, "network loses"),
        (
            "a slow path and a receiver that does not tell",
            Path { carries: gigabit, tells_drops: false, ..PATH },
            presumed(gigabit),
            true,
            true,
            "which is not known: not told",
        ),
        (
            "a queue without end",
            Path { carries: gigabit, queue_bytes: 1 << 40, ..PATH },
            presumed(gigabit),
            true,
            false,
            "fills a queue",
        ),
        ("a fifth lost", Path { loses: 0.2, ..PATH }, presumed(gigabit), false, true, "at every rate"),
        ("a fifth lost, nothing presumed", Path { loses: 0.2, ..PATH }, UdpPlan::default(), false, true, "at every rate"),
        ("everything lost", Path { loses: 1.0, ..PATH }, presumed(gigabit), false, true, "at every rate"),
        ("a little lost", Path { loses: 0.0005, carries: gigabit, ..PATH }, presumed(gigabit), true, true, "network loses"),
        (
            "a fixed rate",
            PATH,
            UdpPlan { rate_bps: Some(BitRate(5_000_000)), ..UdpPlan::default() },
            true,
            false,
            "only 5 Mbit/s",
        ),
        ("no limit at all", PATH, UdpPlan::default(), true, false, "most that is asked"),
    ] {
        let (search, rates, _) = search(path, plan);
        assert_eq!(search.clean().is_some(), clean, "{name}: {:?} {rates:?}", search.clean());
        assert_eq!(search.loss_from().is_some(), lossy, "{name}: {:?} {rates:?}", search.loss_from());
        assert!(search.ended().unwrap().contains(word), "{name}: {:?} {rates:?}", search.ended());
    }
}

#[test]
fn what_the_receiver_drops_is_no_loss_of_the_network() {
    let (search, _, _) = search(Path { receiver: 2_000_000_000, ..PATH }, presumed(4_000_000_000));
    assert_eq!(search.loss_from(), None);
    assert!(search.clean().unwrap().0 >= 2_000_000_000, "what the network carried counts for it");
}

proptest! {
    #[test]
    fn every_search_ends_and_is_consistent(
        carries in 500_000u64..50_000_000_000, queue_bytes in 0u64..100_000_000, loses in prop_oneof![Just(0.0), 0.0..1.0f64],
        sender in 500_000u64..50_000_000_000, receiver in 500_000u64..50_000_000_000, tells_drops: bool,
        presumed in proptest::option::of(any::<u64>()), rate in proptest::option::of(any::<u64>())
    ) {
        let plan = UdpPlan { presumed_bps: presumed.map(BitRate), rate_bps: rate.filter(|n| n % 4 == 0).map(BitRate), ..UdpPlan::default() };
        let path = Path { carries, queue_bytes, loses, sender, receiver, tells_drops };
        let (search, rates, time) = search(path, plan);
        prop_assert!(time <= Duration::from_secs(10));
        prop_assert!(rates.iter().all(|rate| *rate <= FASTEST.0));
        prop_assert!(search.ended().is_some());
        if let (Some(clean), Some(lossy)) = (search.clean(), search.loss_from()) {
            prop_assert!(clean < lossy, "{clean} {lossy} {rates:?}");
        }
    }

    #[test]
    fn no_word_of_a_peer_breaks_it(numbers in proptest::collection::vec(any::<(u64, u64, u64, u64, bool)>(), 0..20)) {
        let mut search = Search::new(&UdpPlan::default(), Direction::Download);
        for (sent_bps, received_bps, lost, elapsed, behind) in numbers {
            let Some((rate, length)) = search.ask() else { break };
            let (mut pass, time, _) = PATH.pass(rate, length);
            (pass.sent_bps, pass.received_bps) = (BitRate(sent_bps), BitRate(received_bps));
            (pass.lost, pass.elapsed_us) = (lost, Elapsed(elapsed));
            search.tell(&pass, time, behind);
        }
    }
}
