//! The floor as tables of who comes and what is answered.

use proptest::prelude::*;

use super::*;
use crate::model::plan::Ways;
use crate::session::group::WALK;

const S: fn(u64) -> Duration = Duration::from_secs;
const NOW: Duration = Duration::ZERO;

fn wish(name: &str) -> GatherRequest {
    GatherRequest { name: name.to_owned(), members: 2, ways: Ways::All, time_us: Elapsed(1_000_000) }
}

fn address(port: u16) -> SocketAddr {
    SocketAddr::new([192, 0, 2, 1].into(), port)
}

fn enter(floor: &mut Floor, now: Duration) -> Id {
    match floor.arrive(address(1), NOW, now) {
        Admission::Enter(id) => id,
        other => panic!("{other:?}"),
    }
}

fn is_busy<T: std::fmt::Debug>(result: &Result<T, Turned>) -> bool {
    matches!(result, Err(Turned::Busy(_)))
}

#[test]
fn one_diagnosis_at_a_time() {
    let mut floor = Floor::default();
    let first = enter(&mut floor, S(5));
    assert_eq!(floor.work(first, S(5)), Ok(()));
    let busy = Busy { peer: address(1), served: S(2), gathering: None };
    assert_eq!(floor.arrive(address(2), NOW, S(7)), Admission::Busy(busy));
    assert!(floor.serves([192, 0, 2, 1].into()));
    floor.leave(first);
    assert!(floor.is_empty());
    enter(&mut floor, S(8));
}

#[test]
fn a_newcomer_waits_until_the_first_one_says_what_it_is_here_for() {
    for gathers in [false, true] {
        let mut floor = Floor::default();
        let first = enter(&mut floor, NOW);
        assert_eq!(floor.arrive(address(2), NOW, NOW), Admission::Undecided);
        if gathers {
            assert_eq!(floor.gather(first, &wish("lab"), NOW), Ok(Coming::Waiting(1)));
        } else {
            assert_eq!(floor.work(first, NOW), Ok(()));
        }
        let admission = floor.arrive(address(2), NOW, NOW);
        assert_eq!(matches!(admission, Admission::Enter(_)), gathers, "{admission:?}");
    }
    let mut silent = Floor::default();
    enter(&mut silent, NOW);
    assert!(matches!(silent.arrive(address(2), S(4), S(4)), Admission::Busy(_)), "but not for ever");
}

#[test]
fn beside_an_open_group_one_can_only_join_it() {
    let mut floor = Floor::default();
    let first = enter(&mut floor, NOW);
    floor.gather(first, &wish("lab"), NOW).unwrap();
    assert!(matches!(floor.work(first, NOW), Err(Turned::Refused(_))), "it waits like the others");
    let guest = enter(&mut floor, S(1));
    assert!(is_busy(&floor.work(guest, S(1))));
    assert!(matches!(floor.gather(guest, &wish("other"), S(1)), Err(Turned::Refused(_))));
    assert_eq!(floor.overdue(guest, S(7)), None);
    assert!(floor.overdue(guest, S(8)).is_some());
    assert!(matches!(floor.gather(guest, &wish("lab"), S(8)), Ok(Coming::Complete(_))));
    assert_eq!(floor.overdue(guest, S(30)), None);
    assert_eq!((floor.work(first, S(9)), floor.work(guest, S(9))), (Ok(()), Ok(())), "complete: each may measure");
    assert!(matches!(floor.arrive(address(3), NOW, S(9)), Admission::Busy(_)), "and nobody else gets in");
}

#[test]
fn whoever_comes_for_something_else_learns_what_the_group_waits_for_and_how_long() {
    let mut floor = Floor::default();
    let first = enter(&mut floor, S(10));
    floor.gather(first, &wish("lab"), S(10)).unwrap();
    let guest = enter(&mut floor, S(40));
    let Err(Turned::Busy(busy)) = floor.work(guest, S(40)) else { panic!("nobody works beside an open group") };
    let waits = |left| Some(Gathering { name: "lab".to_owned(), missing: 1, left_us: Duration::from_secs(left).into() });
    assert_eq!(busy.gathering, waits(90), "of the 120 s from the last arrival on");
    assert_eq!(busy.words(), "the group lab waits for 1 more");
    assert_eq!(floor.gathering(S(100)), waits(30));
    floor.gather(guest, &wish("lab"), S(100)).unwrap();
    assert_eq!(floor.gathering(S(101)), None, "complete: it waits for nobody");
}

#[test]
fn a_guest_that_sees_the_group_complete_without_it_is_turned_away() {
    let mut floor = Floor::default();
    let ids = [enter(&mut floor, NOW)];
    floor.gather(ids[0], &wish("lab"), NOW).unwrap();
    let (second, late) = (enter(&mut floor, NOW), enter(&mut floor, NOW));
    floor.gather(second, &wish("lab"), NOW).unwrap();
    assert!(matches!(floor.gather(late, &wish("lab"), NOW), Err(Turned::Refused(_))));
    assert!(is_busy(&floor.work(late, NOW)));
}

#[test]
fn when_the_first_one_goes_the_guests_begin_anew() {
    let mut floor = Floor::default();
    let first = enter(&mut floor, NOW);
    floor.gather(first, &wish("lab"), NOW).unwrap();
    let (second, third) = (enter(&mut floor, NOW), enter(&mut floor, NOW));
    floor.leave(first);
    assert_eq!(floor.gather(second, &wish("new"), NOW), Ok(Coming::Waiting(1)));
    assert!(is_busy(&floor.work(third, NOW)));
    assert!(matches!(floor.gather(third, &wish("new"), NOW), Ok(Coming::Complete(_))));
}

#[test]
fn after_a_group_that_was_never_complete_its_members_may_go_their_own_way() {
    let mut floor = Floor::default();
    let first = enter(&mut floor, NOW);
    floor.gather(first, &wish("lab"), NOW).unwrap();
    let late = WALK + S(1);
    assert!(matches!(floor.arrive(address(2), NOW, late), Admission::Busy(_)));
    assert!(matches!(floor.gather(first, &wish("lab"), late), Err(Turned::Refused(_))));
    assert!(floor.group().is_none());
    assert_eq!(floor.gather(first, &wish("lab"), late), Ok(Coming::Waiting(1)), "or try again");
}

#[test]
fn a_broken_group_keeps_its_place_until_the_last_one_has_gone() {
    let mut floor = Floor::default();
    let (first, mut second) = (enter(&mut floor, NOW), 0);
    for (id, wait) in [(first, true), (first, false)] {
        let coming = floor.gather(id, &wish("lab"), NOW).unwrap();
        assert_eq!(matches!(coming, Coming::Waiting(_)), wait);
        if wait {
            second = enter(&mut floor, NOW);
            floor.gather(second, &wish("lab"), NOW).unwrap();
        }
    }
    floor.gone(second, "it was killed");
    assert!(floor.group().is_some_and(|group| group.meet(first, None, S(60), NOW).is_err_and(|why| why.contains("killed"))));
    floor.leave(second);
    assert!(matches!(floor.arrive(address(3), NOW, NOW), Admission::Busy(_)));
    floor.leave(first);
    assert!(floor.is_empty() && floor.group().is_none());
}

proptest! {
    #[test]
    fn there_is_one_diagnosis_or_one_group_whatever_happens(acts in proptest::collection::vec((0u8..6, 0u64..6, 0u64..30), 0..100)) {
        let mut floor = Floor::default();
        let mut now = NOW;
        for (act, id, seconds) in acts {
            match act {
                0 => drop(floor.arrive(address(1), S(seconds), now)),
                1 => drop(floor.work(id, now)),
                2 | 3 => drop(floor.gather(id, &wish(if act == 2 { "lab" } else { "other" }), now)),
                4 => floor.leave(id),
                _ => now += S(seconds),
            }
            let standing = |wanted| floor.guests.values().filter(|guest| guest.standing == wanted).count();
            let (alone, members) = (standing(Standing::Alone), standing(Standing::Member));
            prop_assert!(alone == 0 || alone == 1 && members == 0, "{alone} alone, {members} members");
            prop_assert!(members <= 2 && floor.guests.len() <= 16);
            prop_assert_eq!(floor.group.as_ref().map_or(0, |group| floor.guests.keys().filter(|id| group.has(**id)).count()), members);
        }
    }
}
