//! The search against a simulated link: one number per direction, and a pattern of loss.

use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;

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
}

/// How the hop behaves that limits the size.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Router {
    Silent,
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
    for _ in 0..100_000 {
        events.sort_by_key(|(at, _)| *at);
        while events.first().is_some_and(|(at, _)| *at <= now) {
            match events.remove(0) {
                (at, Event::Ack(sequence, size)) => search.acknowledged(sequence, size, at),
                (_, Event::Icmp(sequence, mtu)) => search.refused_by_router(sequence, ROUTER, mtu),
            }
        }
        match search.poll(now) {
            Step::Done(ending) => return Run { ending, probes: search.trace().len(), elapsed: now },
            Step::Wait(until) => {
                assert!(until > now, "the search waits for the past");
                now = events.first().map_or(until, |(at, _)| until.min(*at));
            }
            Step::Send { sequence, size } if size > link.interface => {
                search.refused_locally(sequence, link.interface_tells.then_some(link.interface));
            }
            Step::Send { sequence, size } => {
                now += Duration::from_micros(5);
                let forwards = size <= link.limit || matches!(link.router, Router::SaysAndForwards(_));
                let said = match link.router {
                    Router::Silent => None,
                    Router::Says(mtu) => (size > link.limit).then_some((Some(sequence), mtu)),
                    Router::SaysAndForwards(mtu) => (size > mtu).then_some((Some(sequence), mtu)),
                    Router::SaysBriefly(mtu) => (size > link.limit).then_some((None, mtu)),
                };
                if let Some((sequence, mtu)) = said
                    && !link.is_lost()
                {
                    events.push((now + link.rtt / 2, Event::Icmp(sequence, mtu)));
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
