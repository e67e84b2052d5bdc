//! Groups as tables of who comes, waits and goes.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::model::plan::Ways;

const S: fn(u64) -> Duration = Duration::from_secs;

fn wish(members: u32) -> GatherRequest {
    GatherRequest { name: "lab".to_owned(), members, ways: Ways::All, time_us: Elapsed(1_000_000) }
}

fn address(id: Id) -> IpAddr {
    [192, 0, 2, u8::try_from(id).unwrap()].into()
}

/// A complete group of these, come at the moment 0.
fn complete(ids: &[Id]) -> Group {
    let wish = wish(u32::try_from(ids.len()).unwrap());
    let mut group = Group::open(wish.clone(), S(0)).unwrap();
    for id in ids {
        group.come(*id, address(*id), &wish, S(0)).unwrap();
    }
    group
}

fn met(told: &[Option<u64>]) -> Meeting {
    let told: Vec<_> = told.iter().map(|told| told.map(BitRate)).collect();
    Meeting::Met(Met { began_us: vec![None; told.len()], told })
}

#[test]
fn all_learn_of_each_other_in_the_order_of_their_coming() {
    let mut group = Group::open(wish(2), S(0)).unwrap();
    assert_eq!(group.come(7, address(7), &wish(2), S(1)), Ok(Coming::Waiting(1)));
    assert_eq!(group.come(7, address(7), &wish(2), S(2)), Ok(Coming::Waiting(1)), "asking again is not coming again");
    assert!(group.is_open(S(2)));
    let told =
        |index| Ok(Coming::Complete(Gathered { index, addresses: vec![address(7), address(3)], time_us: Elapsed(1_000_000) }));
    assert_eq!(group.come(3, address(3), &wish(2), S(3)), told(1));
    assert_eq!(group.come(7, address(7), &wish(2), S(3)), told(0));
    assert!(!group.is_open(S(3)));
}

#[test]
fn whoever_wants_something_else_is_told_what_this_group_is() {
    let mut group = Group::open(wish(3), S(0)).unwrap();
    group.come(1, address(1), &wish(3), S(0)).unwrap();
    for (asked, word) in [
        (GatherRequest { name: "other".to_owned(), ..wish(3) }, "under another name, lab"),
        (wish(2), "for 3 PCs, not for 2"),
        (GatherRequest { ways: Ways::Upload, ..wish(3) }, "other directions"),
    ] {
        let why = group.come(2, address(2), &asked, S(1)).unwrap_err();
        assert!(why.contains(word), "{why}");
        assert!(!group.has(2));
    }
    let mut full = complete(&[1, 2]);
    assert!(full.come(3, address(3), &wish(2), S(1)).unwrap_err().contains("complete already"));
}

#[test]
fn names_and_numbers_that_cannot_be_open_nothing() {
    for name in ["", " a", "a\u{1b}[2J", "a\nb", "\u{202e}a", &"x".repeat(65)] {
        let asked = GatherRequest { name: name.to_owned(), ..wish(2) };
        assert!(Group::open(asked, S(0)).unwrap_err().contains("name"), "{name:?}");
    }
    for members in [0, 1, 17, u32::MAX] {
        assert!(Group::open(wish(members), S(0)).unwrap_err().contains("2 to 16"), "{members}");
    }
    assert!(is_name("Büro 2.OG_links-a"));
}

#[test]
fn one_that_leaves_an_open_group_is_only_missing() {
    let mut group = Group::open(wish(2), S(0)).unwrap();
    group.come(1, address(1), &wish(2), S(0)).unwrap();
    group.leave(1, "its owner went home");
    assert!(group.is_empty());
    assert_eq!(group.come(2, address(2), &wish(2), S(1)), Ok(Coming::Waiting(1)));
    assert!(matches!(group.come(3, address(3), &wish(2), S(1)), Ok(Coming::Complete(all)) if all.index == 1));
}

#[test]
fn the_wait_for_the_others_ends_and_begins_anew_with_each_that_comes() {
    let mut group = Group::open(wish(3), S(0)).unwrap();
    group.come(1, address(1), &wish(3), S(0)).unwrap();
    group.come(2, address(2), &wish(3), S(100)).unwrap();
    assert_eq!(group.come(1, address(1), &wish(3), S(220)), Ok(Coming::Waiting(2)));
    for id in [1, 2, 3] {
        let why = group.come(id, address(id), &wish(3), S(221)).unwrap_err();
        assert!(why.contains("only 2 of 3 PCs") && why.contains("120 s"), "{why}");
    }
    assert!(!group.is_open(S(221)));
}

#[test]
fn a_meeting_tells_everybody_what_each_told() {
    let mut group = complete(&[4, 5, 6]);
    let first = group.meet(5, Some(BitRate(50)), S(60), S(1)).unwrap();
    group.meet(4, None, S(60), S(2)).unwrap();
    assert_eq!(group.look(first, S(2)), Meeting::Waiting);
    group.meet(6, Some(BitRate(60)), S(60), S(3)).unwrap();
    assert_eq!(group.look(first, S(3)), met(&[None, Some(50), Some(60)]));
    // One is already waiting for the next meeting, and another has not yet seen this one.
    let second = group.meet(6, None, S(60), S(3)).unwrap();
    assert_eq!(group.look(second, S(4)), Meeting::Waiting);
    assert_eq!(group.look(first, S(4)), met(&[None, Some(50), Some(60)]));
}

#[test]
fn a_meeting_tells_when_each_began_since_the_last_one() {
    let mut group = complete(&[1, 2, 3]);
    group.begin(2, S(10));
    group.begin(1, Duration::from_millis(10_030));
    group.begin(1, S(11));
    for round in 0..2 {
        for id in [1, 2, 3] {
            assert_eq!(group.meet(id, None, S(60), S(20)), Ok(round));
        }
        let Meeting::Met(met) = group.look(round, S(20)) else { panic!("all were there") };
        let expected = if round == 0 { vec![Some(Elapsed(30_000)), Some(Elapsed(0)), None] } else { vec![None; 3] };
        assert_eq!(met.began_us, expected);
    }
}

#[test]
fn one_that_goes_is_named_to_the_others_and_a_meeting_that_was_stays() {
    let mut group = complete(&[1, 2]);
    let round = group.meet(1, None, S(60), S(1)).unwrap();
    group.meet(2, None, S(60), S(1)).unwrap();
    group.leave(2, "no sign of life for 8 s");
    assert_eq!(group.look(round, S(2)), met(&[None, None]));
    let why = group.meet(1, None, S(60), S(2)).unwrap_err();
    assert_eq!(why, "PC 2 of 2 (192.0.2.2) left the group: no sign of life for 8 s");
    group.leave(1, "it is done");
    assert!(group.is_empty());
}

#[test]
fn one_that_does_not_come_to_the_meeting_is_named() {
    let mut group = complete(&[1, 2, 3]);
    let round = group.meet(2, None, S(60), S(10)).unwrap();
    group.meet(1, None, S(90), S(20)).unwrap();
    assert_eq!(group.look(round, S(70)), Meeting::Waiting);
    let Meeting::Broken(why) = group.look(round, S(71)) else { panic!("it waits for ever") };
    assert_eq!(why, "PC 3 of 3 (192.0.2.3) kept the others waiting for more than 60 s");
    assert!(group.meet(3, None, S(60), S(72)).is_err(), "whoever comes too late learns why");
}

#[test]
fn nobody_meets_before_the_group_is_complete() {
    let mut group = Group::open(wish(2), S(0)).unwrap();
    group.come(1, address(1), &wish(2), S(0)).unwrap();
    assert!(group.meet(1, None, S(60), S(1)).is_err());
    assert!(complete(&[1, 2]).meet(9, None, S(60), S(1)).is_err());
}

/// What can happen to a group.
#[derive(Clone, Debug)]
enum Act {
    Come(Id),
    Meet(Id, Option<u64>),
    Look(Id),
    Begin(Id),
    Leave(Id),
    Pass(u64),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let id = 0u64..5;
    let act = prop_oneof![
        3 => id.clone().prop_map(Act::Come),
        6 => (id.clone(), proptest::option::of(0u64..100)).prop_map(|(id, told)| Act::Meet(id, told)),
        6 => id.clone().prop_map(Act::Look),
        1 => id.clone().prop_map(Act::Begin),
        1 => id.prop_map(Act::Leave),
        2 => (0u64..40).prop_map(Act::Pass),
    ];
    proptest::collection::vec(act, 0..120)
}

proptest! {
    #[test]
    fn all_that_meet_hear_the_same_and_nobody_waits_for_ever(acts in acts(), members in 2u32..5) {
        let mut group = Group::open(wish(members), S(0)).unwrap();
        let mut now = S(0);
        // Who waits for which round, and what a round told those who have seen it.
        let mut waiting: HashMap<Id, u64> = HashMap::new();
        let mut heard: HashMap<u64, Met> = HashMap::new();
        for act in acts {
            match act {
                Act::Come(id) => drop(group.come(id, address(id), &wish(members), now)),
                // A session asks one thing at a time.
                Act::Meet(id, told) if !waiting.contains_key(&id) => {
                    if let Ok(round) = group.meet(id, told.map(BitRate), S(60), now) {
                        waiting.insert(id, round);
                    }
                }
                Act::Meet(..) => {}
                Act::Look(id) => if let Some(round) = waiting.get(&id).copied() {
                    match group.look(round, now) {
                        Meeting::Waiting => {}
                        Meeting::Met(met) => {
                            waiting.remove(&id);
                            prop_assert_eq!(met.told.len(), members as usize);
                            prop_assert_eq!(&met, heard.entry(round).or_insert_with(|| met.clone()));
                        }
                        Meeting::Broken(_) => drop(waiting.remove(&id)),
                    }
                },
                Act::Begin(id) => group.begin(id, now),
                Act::Leave(id) => {
                    waiting.remove(&id);
                    group.leave(id, "test");
                    prop_assert!(!group.has(id));
                }
                Act::Pass(seconds) => now += S(seconds),
            }
        }
        now += LONGEST_MEETING + LONGEST_OPEN + S(1);
        for round in waiting.into_values() {
            prop_assert_ne!(group.look(round, now), Meeting::Waiting);
        }
        prop_assert!(!group.is_open(now));
    }

    #[test]
    fn whatever_the_order_every_round_tells_each_ones_own_word(order in Just((0u64..4).collect::<Vec<_>>()).prop_shuffle(), rounds in 1u64..5) {
        let mut group = complete(&[0, 1, 2, 3]);
        for round in 0..rounds {
            for id in &order {
                prop_assert_eq!(group.meet(*id, Some(BitRate(id * 10 + round)), S(60), S(1)), Ok(round));
            }
            let told: Vec<_> = (0..4).map(|id| Some(id * 10 + round)).collect();
            prop_assert_eq!(group.look(round, S(1)), met(&told));
        }
    }
}
