//! What the engines promise, on built networks: the rate of a shaped link as iperf3 sees it, and the time and the number of
//! probes of the MTU search. Relations and promises only, no speed of a machine.
//!
//! Needs root, Linux and iperf3. Where that is missing each test says so and is skipped; where the full suite is demanded
//! (`WEAKLINK_FULL=1`) it fails.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a skip must be seen, and an end tells its result by printing")]

#[expect(dead_code, reason = "disks and quotas are for the lab's faults")]
#[path = "../examples/lab/net.rs"]
mod net;

#[expect(dead_code, reason = "the benchmark compares more")]
#[path = "../benches/ends/mod.rs"]
mod ends;

use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ends::{Mover, both_ends, search_both, transfer};
use net::{Lab, Mtus};
use weaklink::model::kernel::MethodTrial;
use weaklink::model::mtu::{Limiter, PathMtu};
use weaklink::throughput::{goodput, steady};

/// One network at a time: two would share the cores and measure each other.
static ONE: Mutex<()> = Mutex::new(());

/// A busy machine disturbs one round; it does not disturb one of three alike.
const ROUNDS: usize = 3;

/// The turn to build a network, if one can be built here; a visible skip, or a failure where the full suite is demanded.
fn turn(with_iperf3: bool) -> Option<MutexGuard<'static, ()>> {
    let lacks_iperf3 = || {
        let there = Command::new(ends::iperf3()).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        (with_iperf3 && there.is_err()).then(|| "the comparison needs iperf3 (package iperf3)".to_owned())
    };
    if let Some(reason) = net::missing().or_else(lacks_iperf3) {
        assert!(std::env::var("WEAKLINK_FULL").as_deref() != Ok("1"), "the full suite is demanded, but {reason}");
        eprintln!("SKIPPED: {reason}");
        return None;
    }
    Some(ONE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// No test: the other tests start this binary again, inside a host, and name the part in the environment.
#[test]
fn plays_an_end() {
    ends::play();
}

/// The rate of a shaped link as iperf3 sees it, in one round of [`ROUNDS`].
fn shaped(mbit: u64, seconds: u64) {
    const MTU: u32 = 1500;
    let Some(_turn) = turn(true) else { return };
    let lab = Lab::new(Mtus::all(MTU)).unwrap();
    lab.shape(mbit, MTU.into()).unwrap();
    let mut seen = Vec::new();
    for round in 0..ROUNDS {
        // Whoever comes first meets a machine that the other has warmed.
        let order = if round % 2 == 0 { [Mover::Lean, Mover::Iperf3] } else { [Mover::Iperf3, Mover::Lean] };
        let mut rates = order.map(|mover| transfer(&lab, mover, 1, seconds).unwrap().goodput / 1e6);
        if round % 2 == 1 {
            rates.reverse();
        }
        let [ours, theirs] = rates;
        seen.push(format!("{ours:.1} and {theirs:.1}"));
        // On a machine that is too slow for the shaped rate the processor is the limit, where less work gives more.
        if (ours / theirs - 1.0).abs() <= 0.02 || (ours > theirs && theirs < 0.9 * mbit as f64) {
            return;
        }
    }
    panic!("weaklink and iperf3 in Mbit/s: {}", seen.join("; "));
}

#[test]
fn a_shaped_link_has_the_rate_that_iperf3_sees() {
    shaped(1000, 3);
}

#[test]
fn a_faster_shaped_link_has_the_rate_that_iperf3_sees() {
    shaped(2500, 2);
    shaped(5000, 2);
}

#[test]
fn many_streams_all_move_bytes_and_do_not_collapse() {
    const STREAMS: u64 = 128;
    let Some(_turn) = turn(false) else { return };
    let lab = Lab::new(Mtus::all(1500)).unwrap();
    let mut seen = Vec::new();
    for _ in 0..ROUNDS {
        let one = both_ends(&lab, 1, 1, false).unwrap().receiver;
        let many = both_ends(&lab, STREAMS, 2, false).unwrap().receiver;
        assert_eq!(many.stream_bytes.len() as u64, STREAMS);
        assert!(many.stream_bytes.iter().all(|bytes| bytes.0 > 0), "{:?}", many.stream_bytes);
        assert_eq!(many.stream_bytes.iter().map(|bytes| bytes.0).sum::<u64>(), many.bytes.0);
        let [one, many] = [&one, &many].map(|end| goodput(end, steady(&end.bins).as_ref()));
        if many.0 >= one.0 / 2 {
            return;
        }
        seen.push(format!("one stream {one}, {STREAMS} streams {many}"));
    }
    panic!("{}", seen.join("; "));
}

#[test]
fn the_ways_of_moving_bytes_are_tried_on_a_fast_path_and_told() {
    let Some(_turn) = turn(false) else { return };
    let lab = Lab::new(Mtus::all(9000)).unwrap();
    let told = both_ends(&lab, 1, 2, false).unwrap();
    let names = |trials: &[MethodTrial]| trials.iter().map(|trial| trial.method.clone()).collect::<Vec<_>>();
    assert_eq!(names(&told.sender.trials), ["sendfile", "zerocopy", "send", "tee"]);
    assert_eq!(names(&told.receiver.trials), ["recv-trunc, low-water mark", "recv-trunc", "read"]);
    for trial in told.sender.trials.iter().chain(&told.receiver.trials) {
        assert!(trial.refused.is_some() || (trial.rate_bps.0 > 0 && trial.cpu_s_per_gb > 0.0), "{trial:?}");
    }
    // A veth copies what is lent to it: whoever believed the method to work would pay for both.
    assert!(told.sender.trials[1].refused.is_some(), "{:?}", told.sender.trials);
    assert_ne!(told.sender.method, "zerocopy");

    lab.shape(50, 9000).unwrap();
    let told = both_ends(&lab, 1, 1, false).unwrap();
    assert!(told.sender.trials.is_empty() && told.receiver.trials.is_empty(), "{:?}", told.sender.trials);
}

/// Searches both directions until one round keeps the promise of time and probes; the sizes must be right in every round.
fn promise(mtus: Mtus, most_seconds: f64, right: impl Fn(&PathMtu) -> bool) {
    const MOST_PROBES: u32 = 60;
    let Some(_turn) = turn(false) else { return };
    let lab = Lab::new(mtus).unwrap();
    lab.single_frames().unwrap();
    let mut seen = Vec::new();
    for _ in 0..ROUNDS {
        let both = search_both(&lab).unwrap();
        for found in &both {
            assert!(right(found), "{} by {:?}", found.mtu.0, found.limited_by);
        }
        if both.iter().all(|found| found.elapsed_us.seconds() <= most_seconds && found.probes <= MOST_PROBES) {
            return;
        }
        seen.extend(both.iter().map(|found| format!("{} probes in {}", found.probes, found.elapsed_us)));
    }
    panic!("at most {MOST_PROBES} probes in {most_seconds} s are promised: {}", seen.join("; "));
}

#[test]
fn the_mtu_of_a_clean_path_is_known_within_a_second() {
    promise(Mtus::all(1500), 1.0, |found| found.mtu.0 == 1500 && found.limited_by == Limiter::LocalInterface);
    promise(Mtus::all(9000), 1.0, |found| found.mtu.0 == 9000 && found.limited_by == Limiter::LocalInterface);
}

#[test]
fn the_mtu_of_a_black_hole_is_known_within_four_seconds() {
    for port in [1500, 4082] {
        // A veth passes four bytes more than its MTU, as room for a VLAN tag.
        let right = |found: &PathMtu| [port, port + 4].contains(&found.mtu.0) && found.limited_by == Limiter::Silent;
        promise(Mtus { pc: 9000, port, nas: 9000 }, 4.0, right);
    }
}
