//! What a report says of copies and disk tests during which something was counted, and of a log that went on.

use super::*;
use crate::model::link_event::EventKind;

fn event(into: Option<u64>, interface: &str, kind: EventKind) -> LinkEvent {
    let into_run_us = into.map(|seconds| Elapsed(seconds * 1_000_000));
    LinkEvent { at_us: None, before_us: None, into_run_us, interface: interface.into(), kind, text: String::new() }
}

#[test]
fn a_first_screen_says_when_a_link_broke_during_the_run() {
    use EventKind::{Down, Up};
    let log = |events: &[LinkEvent]| broke_during(&Outcome::Measured(events.to_vec()), "eth0");
    assert_eq!(log(&[event(None, "eth0", Down), event(None, "eth0", Up(None))]), "");
    assert_eq!(log(&[event(Some(3), "eth1", Down)]), "");
    assert_eq!(
        log(&[event(None, "eth0", Down), event(None, "eth0", Up(None)), event(Some(12), "eth0", Down)]),
        " (during this run after 12 s)"
    );
    let often: Vec<LinkEvent> = (1..40).flat_map(|n| [event(Some(n), "eth0", Down), event(Some(n), "eth0", Up(None))]).collect();
    assert_eq!(log(&often), " (during this run after 1 s, 2 s, 3 s, 4 s)");
    assert_eq!(broke_during(&Outcome::skipped("not readable"), "eth0"), "");
}
