//! The look for the place on simulated paths: routers that answer, seldom, briefly or not at all.

use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;

/// One router, and what comes behind it.
#[derive(Clone, Copy, Debug)]
struct Router {
    /// The largest packet in bytes that it passes on, or that the wire behind it carries.
    carries: u32,
    /// Whether the wire, not the router, keeps larger ones back: nobody can say so.
    by_wire: bool,
    /// Whether it says that a TTL was used up.
    tells_ttl: bool,
    /// Whether it says that a packet is too large.
    tells_size: bool,
    /// How many answers it has left, and gets anew: one a second as Linux does.
    answers: f64,
    quotes: bool,
}

const GOOD: Router = Router { carries: 9000, by_wire: false, tells_ttl: true, tells_size: true, answers: 6.0, quotes: true };

fn address(ttl: usize) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, ttl as u8).into()
}

struct Path {
    routers: Vec<Router>,
    /// What the last wire, or the switch in the own subnet, carries.
    rtt: Duration,
    loss: f64,
    seed: u64,
    heard: Vec<Duration>,
}

enum Event {
    Ack(u32, u32),
    Expired(Option<u32>, IpAddr),
    Refused(Option<u32>, IpAddr),
}

impl Path {
    fn new(routers: &[Router]) -> Self {
        let heard = vec![Duration::ZERO; routers.len()];
        Self { routers: routers.to_vec(), rtt: Duration::from_micros(300), loss: 0.0, seed: 7, heard }
    }

    fn is_lost(&mut self) -> bool {
        // xorshift64* (Vigna 2016)
        self.seed ^= self.seed >> 12;
        self.seed ^= self.seed << 25;
        self.seed ^= self.seed >> 27;
        ((self.seed.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64) < self.loss
    }

    /// Whether the router at this index grants an answer now.
    fn grants(&mut self, at: usize, now: Duration) -> bool {
        let passed = now.saturating_sub(self.heard[at]).as_secs_f64();
        self.heard[at] = now;
        let router = &mut self.routers[at];
        router.answers = (router.answers + passed).min(6.0);
        let grants = router.answers >= 1.0;
        router.answers -= if grants { 1.0 } else { 0.0 };
        grants
    }

    /// What comes back, if anything.
    fn travel(&mut self, sequence: u32, size: u32, ttl: u8, now: Duration) -> Option<Event> {
        for at in 0..self.routers.len() {
            if self.is_lost() {
                return None;
            }
            let router = self.routers[at];
            let number = router.quotes.then_some(sequence);
            if usize::from(ttl) == at + 1 {
                return (self.grants(at, now) && router.tells_ttl).then(|| Event::Expired(number, address(at + 1)));
            }
            if size > router.carries {
                return (!router.by_wire && self.grants(at, now) && router.tells_size)
                    .then(|| Event::Refused(number, address(at + 1)));
            }
        }
        (!self.is_lost()).then_some(Event::Ack(sequence, size))
    }
}

fn ground() -> Ground {
    Ground {
        small: 68,
        large: 1501,
        rtt: Some(Duration::from_micros(300)),
        loss: (25, 0),
        refuser: None,
        budget: Duration::from_secs(10),
    }
}

fn look(mut path: Path, ground: Ground) -> (Result<Location, Nowhere>, Duration, usize) {
    let mut locate = Locate::new(ground);
    let mut now = Duration::ZERO;
    let mut events: Vec<(Duration, Event)> = Vec::new();
    path.seed = path.seed.max(1);
    for _ in 0..100_000 {
        events.sort_by_key(|(at, _)| *at);
        while events.first().is_some_and(|(at, _)| *at <= now) {
            match events.remove(0) {
                (_, Event::Ack(sequence, size)) => locate.acknowledged(sequence, size),
                (at, Event::Expired(sequence, router)) => locate.expired(sequence, router, at),
                (_, Event::Refused(sequence, router)) => locate.refused(sequence, router),
            }
        }
        match locate.poll(now) {
            Move::Done => return (locate.location(), now, locate.sent.len()),
            Move::Wait(until) => {
                assert!(until > now, "it waits for the past");
                now = events.first().map_or(until, |(at, _)| until.min(*at));
            }
            Move::Send { sequence, size, ttl } => {
                now += Duration::from_micros(5);
                if let Some(event) = path.travel(sequence, size, ttl, now) {
                    events.push((now + path.rtt, event));
                }
            }
        }
    }
    panic!("it never ends");
}

#[test]
fn every_known_path_is_located_in_time() {
    let narrow = Router { carries: 1500, ..GOOD };
    let mute = Router { tells_size: false, ..narrow };
    let dry = |router: Router, answers| Router { answers, ..router };
    let wire = Router { by_wire: true, ..narrow };
    let hidden = |router: Router| Router { tells_ttl: false, ..router };
    let brief = |router: Router| Router { quotes: false, ..router };
    let (short, long) = (500, 1350);
    for (name, routers, refuser, reached, missing, peer_at, known, most_ms) in [
        ("one subnet", vec![], 0, 0, Some(1), Some(1), 0, 1),
        ("a router that says so", vec![narrow], 1, 1, Some(2), Some(2), 1, 5),
        ("the second of three says so", vec![GOOD, narrow, GOOD], 2, 2, Some(3), Some(4), 3, 5),
        ("the second of three says so and was not heard in the search", vec![GOOD, narrow, GOOD], 0, 2, Some(3), Some(4), 3, 5),
        ("one that says so and has no more answers", vec![dry(narrow, 0.0)], 1, 1, Some(2), Some(2), 1, 120),
        ("the second of three is mute", vec![GOOD, mute, GOOD], 0, 2, Some(3), Some(4), 3, short),
        ("the second of three is mute and used up", vec![GOOD, dry(mute, 0.1), GOOD], 0, 2, Some(3), Some(4), 3, long),
        ("a lone one is mute and used up", vec![dry(mute, 0.1)], 0, 1, Some(2), Some(2), 1, long),
        ("a lone one is mute and has one answer left", vec![dry(mute, 1.3)], 0, 1, Some(2), Some(2), 1, long),
        ("the wire behind the first", vec![wire, GOOD, GOOD], 0, 1, Some(2), Some(4), 3, short),
        ("the wire before the peer", vec![GOOD, GOOD, wire], 0, 3, Some(4), Some(4), 3, short),
        ("the wire behind the first, to one with few answers", vec![wire, dry(GOOD, 2.0)], 0, 1, Some(3), Some(3), 2, long),
        ("nobody tells a TTL", vec![hidden(GOOD), hidden(mute)], 0, 0, Some(3), Some(3), 0, long),
        ("the first tells no TTL", vec![hidden(GOOD), GOOD, mute], 0, 3, Some(4), Some(4), 2, short),
        ("the one behind the wire tells no TTL", vec![wire, hidden(GOOD), GOOD], 0, 1, Some(3), Some(4), 2, long),
        ("the limit tells no TTL", vec![GOOD, hidden(wire), GOOD], 0, 1, Some(3), Some(4), 2, long),
        ("the limit says so and tells no TTL", vec![GOOD, hidden(narrow)], 2, 2, Some(3), Some(3), 2, 200),
        ("all quote little", vec![brief(GOOD), brief(mute), brief(GOOD)], 0, 2, Some(3), Some(4), 3, 900),
        (
            "all quote little and the second says so",
            vec![brief(GOOD), brief(narrow), brief(GOOD)],
            0,
            2,
            Some(3),
            Some(4),
            3,
            900,
        ),
    ] {
        let refuser = (refuser > 0).then(|| address(refuser));
        let (found, time, probes) = look(Path::new(&routers), Ground { refuser, ..ground() });
        let found = found.unwrap_or_else(|why| panic!("{name}: {why:?}"));
        assert_eq!((found.reached, found.missing, found.peer_at), (reached, missing, peer_at), "{name}: {found:?}");
        assert_eq!(found.hops.len() + 1, usize::from(found.peer_at.unwrap_or(1)), "{name}");
        let named = found.hops.iter().filter(|hop| hop.address == Some(address(hop.ttl.into()))).count();
        assert_eq!(named, known, "{name}: {found:?}");
        assert_eq!(named, found.hops.iter().filter(|hop| hop.address.is_some()).count(), "{name}: {found:?}");
        assert!(time <= Duration::from_millis(most_ms), "{name}: {time:?} and {probes} probes");
    }
}

#[test]
fn what_cannot_be_located_is_said() {
    let (silent, time, _) = look(Path { loss: 1.0, ..Path::new(&[GOOD]) }, ground());
    assert_eq!(silent, Err(Nowhere::Silence));
    assert!(time <= LONGEST + LEAST_TIMEOUT, "{time:?}");
    let (passes, ..) = look(Path::new(&[GOOD]), Ground { large: 9001, ..ground() });
    assert!(passes.is_ok());
    let none = Locate::new(Ground { budget: Duration::ZERO, ..ground() }).poll(Duration::ZERO);
    assert_eq!(none, Move::Done);
    // The size passes now: the path is another one than that which was searched.
    let mut locate = Locate::new(ground());
    locate.sent.push(Sent { ttl: 3, large: true, at: Duration::ZERO, round: 0, fate: None });
    locate.acknowledged(0, 1501);
    assert_eq!((locate.poll(Duration::ZERO), locate.location()), (Move::Done, Err(Nowhere::Passes)));
}

proptest! {
    #[test]
    fn a_place_is_never_wrong(
        hops in 1usize..8, limit in 0usize..8, by_wire: bool, tells_size: bool, hidden in 0u8..=255, tokens in 0.0f64..6.0,
        brief in 0u8..4, rtt_us in 100u64..20_000, loss in 0.0f64..0.1, lossy: bool, seed in 1u64..,
    ) {
        let limit = limit % hops;
        let mut routers = vec![GOOD; hops];
        for (at, router) in routers.iter_mut().enumerate() {
            router.tells_ttl = hidden & (1 << at) == 0 || seed % 3 > 0;
            router.quotes = brief > 0;
        }
        routers[limit] = Router { carries: 1500, by_wire, tells_size, answers: tokens, ..routers[limit] };
        let loss = if lossy { loss / hops as f64 } else { 0.0 };
        let rtt = Duration::from_micros(rtt_us);
        let path = Path { rtt, loss, seed, ..Path::new(&routers) };
        let (found, time, probes) = look(path, Ground { rtt: Some(rtt), loss: (25, u32::from(lossy)), ..ground() });
        prop_assert!(time <= LONGEST + LONGEST_TIMEOUT && probes <= MOST_PROBES, "{:?}, {} probes", time, probes);
        let Ok(found) = found else { return Err(TestCaseError::fail("no place")) };
        // Large packets reach the limiting router, at 1 more than its index, and nothing behind it.
        let last = limit as u8 + 1;
        prop_assert!(found.reached <= last, "{:?}", found);
        prop_assert!(found.missing.is_none_or(|missing| missing > last), "{:?}", found);
        prop_assert!(lossy || found.peer_at == Some(hops as u8 + 1), "{:?}", found);
        for hop in &found.hops {
            prop_assert!(hop.address.is_none_or(|known| known == address(hop.ttl.into())), "{:?}", found);
        }
    }

    #[test]
    fn it_always_ends_whatever_it_is_told(told in prop::collection::vec((0u8..4, 0u32..300, 0u8..40, 0u64..40), 0..400)) {
        let mut locate = Locate::new(ground());
        let mut now = Duration::ZERO;
        let mut told = told.into_iter();
        let ended = (0..5_000).any(|_| {
            if let Some((what, sequence, number, ms)) = told.next() {
                now += Duration::from_millis(ms);
                let router = address(number.into());
                match what {
                    0 => locate.acknowledged(sequence, 68),
                    1 => locate.expired(Some(sequence), router, now),
                    2 => locate.refused((number > 20).then_some(sequence), router),
                    _ => locate.expired(None, router, now),
                }
            }
            match locate.poll(now) {
                Move::Done => true,
                Move::Wait(until) => {
                    now = until;
                    false
                }
                Move::Send { .. } => false,
            }
        });
        prop_assert!(ended);
        if let Ok(found) = locate.location() {
            prop_assert!(found.hops.len() <= MOST_HOPS.into());
            prop_assert!(found.missing.is_none_or(|missing| missing > found.reached));
        }
    }
}
