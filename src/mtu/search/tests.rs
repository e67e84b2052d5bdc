//! The search against a simulated link: one number per direction, and a pattern of loss.

use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;
use crate::model::mtu::{MtuChange, PathMtu, WordFault};
use crate::units::Mtu;

/// What stands between sender and peer.
#[derive(Clone, Debug)]
struct Link {
    limit: u32,
    interface: u32,
    interface_tells: bool,
    rtt: Duration,
    /// The share of probes and of acknowledgements that are lost, each.
    loss: f64,
    /// The most by which an acknowledgement comes late.
    jitter: Duration,
    seed: u64,
    router: Router,
    /// Of so many packets that it refuses the router answers one.
    answers_one_in: u32,
    /// How much later than the peer the router answers.
    router_delay: Duration,
    /// The limit that holds from some time on, as far as probes and words that begin their way then.
    becomes: Option<(Duration, u32)>,
}

/// How the hop behaves that limits the size.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Router {
    Silent,
    /// Names the limit as it is at that time.
    Honest,
    Says(u32),
    /// Says it without quoting enough to know the probe.
    SaysBriefly(u32),
    /// Says it and passes the packet on all the same.
    SaysAndForwards(u32),
}

impl Link {
    fn clean(limit: u32, interface: u32) -> Self {
        Self {
            limit,
            interface,
            interface_tells: true,
            rtt: Duration::from_micros(300),
            loss: 0.0,
            jitter: Duration::ZERO,
            seed: 1,
            router: Router::Silent,
            answers_one_in: 1,
            router_delay: Duration::ZERO,
            becomes: None,
        }
    }

    fn limit(&self, now: Duration) -> u32 {
        self.becomes.filter(|(at, _)| *at <= now).map_or(self.limit, |(_, limit)| limit)
    }

    /// What the router says about a probe, the limit being as it is now.
    fn word(&self, sequence: u32, size: u32, limit: u32) -> Option<(Option<u32>, u32)> {
        match self.router {
            Router::Silent => None,
            Router::Honest => (size > limit).then_some((Some(sequence), limit)),
            Router::Says(mtu) => (size > limit).then_some((Some(sequence), mtu)),
            Router::SaysAndForwards(mtu) => (size > mtu).then_some((Some(sequence), mtu)),
            Router::SaysBriefly(mtu) => (size > limit).then_some((None, mtu)),
        }
    }

    /// At least 0 and below 1.
    fn random(&mut self) -> f64 {
        // xorshift64* (Vigna 2016)
        self.seed ^= self.seed >> 12;
        self.seed ^= self.seed << 25;
        self.seed ^= self.seed >> 27;
        (self.seed.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn is_lost(&mut self) -> bool {
        self.random() < self.loss
    }
}

struct Run {
    ending: Ending,
    probes: usize,
    elapsed: Duration,
    search: Search,
}

impl Run {
    fn mtu(&self) -> Option<u32> {
        match self.ending {
            Ending::Exact(mtu, _) => Some(mtu),
            _ => None,
        }
    }

    fn path(&self) -> PathMtu {
        match self.ending.clone() {
            Ending::Exact(mtu, limiter) => self.search.path(mtu, limiter, self.elapsed),
            other => panic!("{other:?}"),
        }
    }

    /// When the latest probe was sent that arrived and had this size.
    fn latest(&self, size: u32) -> Duration {
        let arrived = |sent: &&Sent| sent.size == size && sent.fate == Some(ProbeFate::Acknowledged);
        self.search.sent.iter().filter(arrived).map(|sent| sent.at).max().unwrap_or_default()
    }
}

const ROUTER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

fn scope(ceiling: u32) -> Scope {
    Scope { smallest: 68, ceiling, least_mtu: 68, budget: Duration::from_secs(60) }
}

/// Events of the simulation, at the time they reach the sender.
enum Event {
    Ack(u32, u32),
    Icmp(Option<u32>, u32),
}

fn run(mut link: Link, scope: Scope) -> Run {
    let mut search = Search::new(scope);
    let mut now = Duration::ZERO;
    let mut events: Vec<(Duration, Event)> = Vec::new();
    link.seed = link.seed.max(1);
    let mut refused = 0;
    for _ in 0..100_000 {
        events.sort_by_key(|(at, _)| *at);
        while events.first().is_some_and(|(at, _)| *at <= now) {
            match events.remove(0) {
                (at, Event::Ack(sequence, size)) => search.acknowledged(sequence, size, at),
                (_, Event::Icmp(sequence, mtu)) => search.refused_by_router(sequence, ROUTER, mtu),
            }
        }
        match search.poll(now) {
            Step::Done(ending) => return Run { ending, probes: search.trace().len(), elapsed: now, search },
            Step::Wait(until) => {
                assert!(until > now, "the search waits for the past");
                now = events.first().map_or(until, |(at, _)| until.min(*at));
            }
            Step::Send { sequence, size } if size > link.interface => {
                search.refused_locally(sequence, link.interface_tells.then_some(link.interface));
            }
            Step::Send { sequence, size } => {
                now += Duration::from_micros(5);
                let limit = link.limit(now);
                let forwards = size <= limit || matches!(link.router, Router::SaysAndForwards(_));
                if let Some((sequence, mtu)) = link.word(sequence, size, limit) {
                    refused += 1;
                    if refused % link.answers_one_in == 0 && !link.is_lost() {
                        events.push((now + link.rtt / 2 + link.router_delay, Event::Icmp(sequence, mtu)));
                    }
                }
                if forwards && !link.is_lost() && !link.is_lost() {
                    // Each acknowledgement comes twice, and none in order where there is jitter.
                    for _ in 0..2 {
                        let late = link.jitter.mul_f64(link.random());
                        events.push((now + link.rtt + late, Event::Ack(sequence, size)));
                    }
                }
            }
        }
    }
    panic!("the search never ends");
}

#[test]
fn every_known_situation_ends_right_and_within_its_probes() {
    let says = |mtu| Limiter::Router { address: ROUTER, next_hop_mtu: Mtu(mtu) };
    let with = |router, link| Link { router, ..link };
    for (name, link, ceiling, mtu, limiter, most_probes, most_ms) in [
        ("a clean jumbo path", Link::clean(9000, 9000), 9000, 9000, Limiter::LocalInterface, 3, 1),
        ("a clean path of unknown ceiling", Link::clean(1500, 1500), 65_535, 1500, Limiter::LocalInterface, 4, 1),
        ("a switch at 1500", Link::clean(1500, 9000), 9000, 1500, Limiter::Silent, 45, 500),
        ("a switch with room for a VLAN tag", Link::clean(1504, 9000), 9000, 1504, Limiter::Silent, 60, 700),
        ("an odd size", Link::clean(4082, 9000), 9000, 4082, Limiter::Silent, 60, 700),
        ("loopback cut to an odd size", Link::clean(33_333, 65_535), 65_535, 33_333, Limiter::Silent, 60, 1000),
        ("a router that says so", with(Router::Says(1500), Link::clean(1500, 9000)), 9000, 1500, says(1500), 9, 40),
        ("a router that quotes little", with(Router::SaysBriefly(1500), Link::clean(1500, 9000)), 9000, 1500, says(1500), 9, 40),
        ("a router that names zero", with(Router::Says(0), Link::clean(1500, 9000)), 9000, 1500, says(0), 40, 300),
        ("a router that names too much", with(Router::Says(20_000), Link::clean(1500, 9000)), 9000, 1500, says(20_000), 40, 300),
        ("a router that names too little", with(Router::Says(1000), Link::clean(1500, 9000)), 9000, 1500, says(1000), 40, 300),
        (
            "a router that complains and forwards",
            with(Router::SaysAndForwards(1400), Link::clean(9000, 9000)),
            9000,
            9000,
            Limiter::LocalInterface,
            60,
            1000,
        ),
    ] {
        let run = run(link, scope(ceiling));
        assert_eq!(run.ending, Ending::Exact(mtu, limiter), "{name}");
        assert!(run.probes <= most_probes, "{name}: {} probes", run.probes);
        assert!(run.elapsed <= Duration::from_millis(most_ms), "{name}: {:?}", run.elapsed);
    }
}

#[test]
fn a_router_that_answers_seldom_is_still_the_limiter() {
    let seldom = |router, one_in| Link { router, answers_one_in: one_in, ..Link::clean(1500, 9000) };
    for (name, link, named) in [
        ("every second word of an honest one", seldom(Router::Honest, 2), 1500),
        ("one word of an honest one", seldom(Router::Honest, 7), 1500),
        ("every third word of one that names zero", seldom(Router::Says(0), 3), 0),
        ("every fourth word of one that names too much", seldom(Router::Says(20_000), 4), 20_000),
        ("words later than anyone waits", Link { router_delay: Duration::from_millis(90), ..seldom(Router::Honest, 3) }, 1500),
    ] {
        let run = run(link, scope(9000));
        let limiter = Limiter::Router { address: ROUTER, next_hop_mtu: Mtu(named) };
        assert_eq!(run.ending, Ending::Exact(1500, limiter), "{name}");
        assert!(run.probes <= 60, "{name}: {} probes", run.probes);
    }
}

#[test]
fn a_router_that_names_another_limit_than_the_one_found_is_not_the_limiter() {
    // The router says 4000 for what is larger; behind it a switch keeps back what is larger than 1500.
    let mut search = Search::new(scope(9000));
    let (mut now, rtt) = (Duration::ZERO, Duration::from_micros(300));
    let ending = loop {
        match search.poll(now) {
            Step::Done(ending) => break ending,
            Step::Wait(until) => now = until,
            Step::Send { sequence, size } if size > 4000 => search.refused_by_router(Some(sequence), ROUTER, 4000),
            Step::Send { sequence, size } if size <= 1500 => search.acknowledged(sequence, size, now + rtt),
            Step::Send { .. } => {}
        }
    };
    assert_eq!(ending, Ending::Exact(1500, Limiter::Silent));
    assert_eq!(search.words().len(), 1);
}

#[test]
fn every_word_is_kept_once_with_what_is_wrong_in_it() {
    for (name, says, fault) in [
        ("zero", 0, Some(WordFault::Zero)),
        ("more than the packet", 20_000, Some(WordFault::NotSmaller)),
        ("more than passes, less than the first packet", 8000, Some(WordFault::NotSmaller)),
        ("less than any link", 40, Some(WordFault::BelowLeast)),
        ("the truth", 1500, None),
        ("too little, which only probes can tell", 900, None),
    ] {
        let found = run(Link { router: Router::Says(says), ..Link::clean(1500, 9000) }, scope(9000)).path();
        assert_eq!(found.mtu, Mtu(1500), "{name}");
        let [word] = found.words[..] else { panic!("{name}: {:?}", found.words) };
        assert_eq!((word.address, word.next_hop_mtu, word.lie()), (ROUTER, Mtu(says), fault), "{name}");
        // The smallest packet that drew it shows best what is wrong.
        assert!(word.about > Mtu(1500) && word.about <= Mtu(9000), "{name}: {}", word.about);
    }
    let mut search = Search::new(scope(9000));
    let Step::Send { sequence, .. } = search.poll(Duration::ZERO) else { panic!("nothing to send") };
    for said in (0..1000).chain(0..1000) {
        search.refused_by_router(Some(sequence), ROUTER, said);
    }
    assert_eq!(search.words().len(), MOST_WORDS);
}

#[test]
fn a_path_that_changes_under_the_search_ends_with_what_holds_at_the_end() {
    let ms = Duration::from_millis;
    for (name, router, limit, ceiling, at, after) in [
        ("a switch port falls back early", Router::Silent, 4082, 9000, ms(27), 1500),
        ("a switch port falls back late", Router::Silent, 4082, 9000, ms(150), 1500),
        ("a switch port falls back by one byte", Router::Silent, 4082, 9000, ms(200), 4081),
        ("a router's route changes to a smaller leg", Router::Honest, 4082, 9000, ms(40), 1400),
    ] {
        let link = Link { router, answers_one_in: 5, becomes: Some((at, after)), ..Link::clean(limit, ceiling) };
        let run = run(link, scope(ceiling));
        assert_eq!(run.mtu(), Some(after), "{name}: {:?}", run.ending);
        let MtuChange { from, to, at_us } = run.path().change.unwrap_or_else(|| panic!("{name}: no change"));
        assert!(from.0 > after && from.0 <= limit && to.0 == after, "{name}: {from} to {to}");
        assert!(Duration::from(at_us) >= at && Duration::from(at_us) <= at + ms(60), "{name}: {at_us}");
        assert!(run.elapsed <= Duration::from_millis(1500), "{name}: {:?}", run.elapsed);
    }
    let link = Link { becomes: Some((ms(210), 9000)), ..Link::clean(1500, 9000) };
    let raised = run(link, scope(9000));
    assert_eq!(raised.ending, Ending::Exact(9000, Limiter::LocalInterface));
    assert_eq!(raised.path().change.map(|change| (change.from, change.to)), Some((Mtu(1500), Mtu(9000))));
}

#[test]
fn an_interface_that_is_made_smaller_under_the_search_is_a_change_too() {
    let mut search = Search::new(scope(9000));
    let mut now = Duration::ZERO;
    let ending = loop {
        let interface = if now < Duration::from_millis(60) { 9000 } else { 1400 };
        match search.poll(now) {
            Step::Done(ending) => break ending,
            Step::Wait(until) => now = until,
            Step::Send { sequence, size } if size > interface => search.refused_locally(sequence, Some(interface)),
            Step::Send { sequence, size } if size <= 4082 => search.acknowledged(sequence, size, now),
            Step::Send { .. } => {}
        }
    };
    assert_eq!(ending, Ending::Exact(1400, Limiter::LocalInterface));
    assert!(search.change(1400).is_some_and(|change| change.from.0 > 1400));
}

#[test]
fn an_interface_that_refuses_without_a_number_is_found_too() {
    let run = run(Link { interface_tells: false, ..Link::clean(9000, 3333) }, scope(65_535));
    assert_eq!(run.ending, Ending::Exact(3333, Limiter::LocalInterface));
    assert!(run.probes <= 100, "{} probes", run.probes);
}

#[test]
fn a_blocked_port_and_an_empty_budget_are_no_result() {
    let blocked = run(Link { loss: 1.0, ..Link::clean(1500, 1500) }, scope(1500));
    assert_eq!(blocked.ending, Ending::Unanswered);
    assert!(blocked.elapsed <= Duration::from_secs(3));
    let short = run(Link::clean(1500, 9000), Scope { budget: Duration::from_millis(60), ..scope(9000) });
    assert!(matches!(short.ending, Ending::Undecided(1500, _)), "{:?}", short.ending);
}

#[test]
fn answers_that_cannot_be_are_ignored() {
    let mut search = Search::new(scope(1500));
    let Step::Send { sequence, size } = search.poll(Duration::ZERO) else { panic!("nothing to send") };
    search.acknowledged(sequence, size + 1, Duration::ZERO);
    search.acknowledged(sequence + 77, 1500, Duration::ZERO);
    search.refused_by_router(Some(999), ROUTER, 1400);
    search.refused_locally(999, None);
    assert_eq!(search.passed, 0);
    search.acknowledged(sequence, size, Duration::from_millis(1));
    search.acknowledged(sequence, size, Duration::from_millis(9));
    assert_eq!(search.least_rtt(), Some(Duration::from_millis(1)));
}

proptest! {
    #[test]
    fn any_limit_is_found_to_the_byte(limit in 68u32..=65_535, above in 0u32..65_535, rtt_us in 50u64..50_000) {
        let interface = limit.saturating_add(above).min(65_535);
        let link = Link { rtt: Duration::from_micros(rtt_us), ..Link::clean(limit, interface) };
        let run = run(link, scope(interface));
        let limiter = if limit == interface { Limiter::LocalInterface } else { Limiter::Silent };
        prop_assert_eq!(run.ending, Ending::Exact(limit, limiter));
        prop_assert!(run.probes <= 60, "{} probes", run.probes);
        prop_assert!(run.elapsed <= Duration::from_secs(4), "{:?}", run.elapsed);
    }

    #[test]
    fn loss_never_makes_the_path_smaller(limit in 576u32..=65_535, above in 0u32..65_535, seed in 1u64.., loss in 0.0f64..0.2) {
        let interface = limit.saturating_add(above).min(65_535);
        let both_ways = 1.0 - (1.0 - loss).sqrt();
        let run = run(Link { seed, loss: both_ways, ..Link::clean(limit, interface) }, scope(interface));
        let found = match run.ending {
            Ending::Exact(mtu, _) => Some(mtu),
            _ => None,
        };
        prop_assert_eq!(found, Some(limit), "{} probes", run.probes);
        prop_assert!(run.probes <= MOST_PROBES);
    }

    #[test]
    fn a_path_that_does_not_change_is_never_said_to(limit in 576u32..=9216, seed in 1u64.., loss in 0.0f64..0.2, late_ms in 0u64..40) {
        let both_ways = 1.0 - (1.0 - loss).sqrt();
        let link = Link { seed, loss: both_ways, jitter: Duration::from_millis(late_ms), ..Link::clean(limit, 9216) };
        let run = run(link, scope(9216));
        prop_assert_eq!(run.mtu(), Some(limit), "{:?} after {} probes", run.ending, run.probes);
        prop_assert_eq!(run.path().change, None);
    }

    #[test]
    fn a_change_at_any_time_never_makes_a_contradiction(
        limit in 68u32..=9216, after in 68u32..=9216, at_ms in 0u64..500, honest: bool, seed in 1u64.., lossy: bool,
    ) {
        let loss = if lossy { 0.05 } else { 0.0 };
        let router = if honest { Router::Honest } else { Router::Silent };
        let at = Duration::from_millis(at_ms);
        let link = Link { seed, loss, router, becomes: Some((at, after)), ..Link::clean(limit, 9216) };
        let run = run(link.clone(), scope(9216));
        let Some(mtu) = run.mtu() else { return Err(TestCaseError::fail(format!("{:?}", run.ending))) };
        // The result is what held when the size was confirmed the last time, and when the next was tried.
        let mut held = vec![link.limit(run.latest(mtu) + Duration::from_micros(5)), link.limit(run.elapsed)];
        if lossy {
            // The last packets of the next size may have been lost by chance after they would have passed.
            held.push(link.limit);
        }
        prop_assert!(held.contains(&mtu), "{} is none of {:?}", mtu, held);
        if let Some(MtuChange { from, to, at_us }) = run.path().change {
            prop_assert!(from != to && to.0 == mtu && limit != after);
            // A loss just before the change may be the first contradiction.
            prop_assert!(loss > 0.0 || Duration::from(at_us) >= at, "{} before {:?}", at_us, at);
        }
        let larger_arrived = run.search.trace().iter().any(|p| p.size.0 > mtu && p.fate == ProbeFate::Acknowledged);
        prop_assert!(!larger_arrived || run.path().change.is_some());
        prop_assert!(run.probes <= MOST_PROBES);
    }

    #[test]
    fn a_router_that_answers_seldom_does_no_harm(limit in 576u32..=9216, one_in in 1u32..8, late_ms in 0u64..60, says: Option<u32>) {
        let router = says.map_or(Router::Honest, Router::Says);
        let link = Link { router, answers_one_in: one_in, router_delay: Duration::from_millis(late_ms), ..Link::clean(limit, 9216) };
        let run = run(link, scope(9216));
        prop_assert_eq!(run.mtu(), Some(limit));
        prop_assert!(run.probes <= 60, "{} probes", run.probes);
        prop_assert_eq!(run.path().change, None);
    }

    #[test]
    fn whatever_a_router_says_the_result_is_measured(limit in 576u32..=9216, said: u32, brief: bool, loss in 0.0f64..0.1, seed in 1u64..) {
        let router = if brief { Router::SaysBriefly(said) } else { Router::Says(said) };
        let run = run(Link { loss, seed, router, ..Link::clean(limit, 9216) }, scope(9216));
        prop_assert!(matches!(run.ending, Ending::Exact(mtu, _) if mtu == limit), "{:?}", run.ending);
    }

    #[test]
    fn answers_out_of_order_and_later_than_awaited_do_no_harm(limit in 68u32..=9216, late_ms in 0u64..60, seed in 1u64..) {
        let link = Link { seed, jitter: Duration::from_millis(late_ms), ..Link::clean(limit, 9216) };
        let run = run(link, scope(9216));
        prop_assert!(matches!(run.ending, Ending::Exact(mtu, _) if mtu == limit), "{:?}", run.ending);
    }

    #[test]
    fn it_always_ends_whatever_it_is_told(told in prop::collection::vec((0u8..5, 0u32..80, 0u32..70_000, 0u64..40), 0..400)) {
        let mut search = Search::new(scope(65_535));
        let mut now = Duration::ZERO;
        let mut told = told.into_iter();
        let ended = (0..5_000).any(|_| {
            if let Some((what, sequence, number, ms)) = told.next() {
                now += Duration::from_millis(ms);
                let size = search.sent.get(sequence as usize).map_or(number, |sent| sent.size);
                match what {
                    0 => search.acknowledged(sequence, size, now),
                    1 => search.acknowledged(sequence, number, now),
                    2 => search.refused_locally(sequence, (number > 20_000).then_some(number)),
                    3 => search.refused_by_router(Some(sequence), ROUTER, number),
                    _ => search.refused_by_router(None, ROUTER, number),
                }
            }
            match search.poll(now) {
                Step::Done(_) => true,
                Step::Wait(until) => {
                    now = until;
                    false
                }
                Step::Send { .. } => false,
            }
        });
        prop_assert!(ended);
    }
}
