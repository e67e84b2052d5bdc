//! Our client against the real iperf3 server over built networks: a shaped link has the rate that iperf3's own client sees, and a path
//! that swallows large packets ends a test in time, with the truth about it.
//!
//! Needs root, Linux and iperf3. Where that is missing each test says so and is skipped; where the full suite is demanded
//! (`WEAKLINK_FULL=1`) it fails.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a skip must be seen, and an end tells its result by printing")]

#[expect(dead_code, reason = "disks, quotas and losses are for the lab's faults")]
#[path = "../examples/lab/net.rs"]
mod net;

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use net::{Lab, Mtus, NAS, Running};
use serde_json::{Value, json};
use weaklink::iperf3::client::{Test, Ways, passes, run};
use weaklink::sys::{Progress, Stop};

/// One network at a time: two would share the cores and measure each other.
static ONE: Mutex<()> = Mutex::new(());

/// The variable that holds the test to run inside a host: the way and the segment size, 0 for the system's own.
const PART: &str = "WEAKLINK_IPERF3_CLIENT";

/// Every run's time.
const TIME: Duration = Duration::from_secs(2);

/// The longest that a run may take; only a hang reaches it.
const LONG: Duration = Duration::from_secs(40);

fn turn() -> Option<MutexGuard<'static, ()>> {
    let lacks_iperf3 = || {
        let there = Command::new("iperf3").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        there.is_err().then(|| "this test needs iperf3 (package iperf3)".to_owned())
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
fn plays_the_client() {
    let Ok(part) = std::env::var(PART) else { return };
    let (way, mss) = part.split_once(' ').unwrap();
    let address: SocketAddr = format!("{NAS}:5201").parse().unwrap();
    let test = Test {
        ways: if way == "up" { Ways::Upload } else { Ways::Download },
        time: TIME,
        mss_bytes: mss.parse().ok().filter(|bytes| *bytes > 0),
        patience: LONG,
        ..Test::default()
    };
    let begin = Instant::now();
    let told = match run(address, &test, &Stop::new(), &Progress::new()) {
        Ok(result) => {
            let pass = passes(&result).remove(0).1;
            let server = result.server.why();
            match pass.measured() {
                Some(pass) => json!({"bps": pass.goodput_bps.0, "bytes": pass.bytes.0, "server": server}),
                None => json!({"why": pass.why()}),
            }
        }
        Err(error) => json!({"error": error.to_string()}),
    };
    println!("\nTOLD {}", json!({"told": told, "seconds": begin.elapsed().as_secs_f64()}));
}

/// Runs our client in the PC's host against an iperf3 server in the NAS's.
fn ours(lab: &Lab, way: &str, mss: u32) -> Value {
    let _server = Running::start({
        let mut command = lab.command("nas", "iperf3");
        command.args(["-s", "-1", "-J"]);
        command
    })
    .unwrap();
    let mut command = lab.command("pc", std::env::current_exe().unwrap());
    command.args(["--exact", "plays_the_client", "--nocapture", "--test-threads=1"]).env(PART, format!("{way} {mss}"));
    let line = Running::start(command).unwrap().wait_for("TOLD", LONG).unwrap();
    serde_json::from_str(line.split_once("TOLD ").unwrap().1).unwrap()
}

/// What iperf3's own client says of the receiver's rate, in bits a second.
fn theirs(lab: &Lab, way: &str) -> f64 {
    let mut server = Running::start({
        let mut command = lab.command("nas", "iperf3");
        command.args(["-s", "-1", "--forceflush"]);
        command
    })
    .unwrap();
    server.wait_for("listening", LONG).unwrap();
    let time = TIME.as_secs().to_string();
    let mut args = vec!["-c", NAS, "-J", "-t", &time];
    args.extend((way == "down").then_some("-R"));
    let report: Value = serde_json::from_str(&lab.inside("pc", "iperf3", &args).unwrap()).unwrap();
    report["end"]["sum_received"]["bits_per_second"].as_f64().unwrap()
}

#[test]
fn a_shaped_link_has_the_rate_that_iperf3s_own_client_sees() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(Mtus::all(1500)).unwrap();
    lab.shape(200, 1500).unwrap();
    for way in ["up", "down"] {
        let mut seen = Vec::new();
        // A busy machine disturbs one round; it does not disturb one of three alike.
        let close = (0..3).any(|_| {
            let (ours, theirs) = (ours(&lab, way, 0), theirs(&lab, way));
            let rate = ours["told"]["bps"].as_f64().unwrap_or(0.0);
            seen.push(format!("{ours} and {theirs}"));
            // Our download is the steady part, iperf3's has its begin in it.
            (rate / theirs - 1.0).abs() <= 0.06
        });
        assert!(close, "{way}: {}", seen.join("; "));
    }
}

#[test]
fn a_black_hole_ends_a_test_in_time_and_a_smaller_segment_passes_it() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(Mtus { pc: 9000, port: 1500, nas: 9000 }).unwrap();
    lab.single_frames().unwrap();
    lab.shape(200, 1500).unwrap();
    for way in ["up", "down"] {
        let swallowed = ours(&lab, way, 0);
        assert!(swallowed["seconds"].as_f64().unwrap() < LONG.as_secs_f64() / 2.0, "{way}: {swallowed}");
        // A probe of the kernel's may find the size late; what counts is that nothing hangs and no rate is made up.
        assert!(swallowed["told"]["bytes"].as_u64().is_some_and(|bytes| bytes < 1_000_000), "{way}: {swallowed}");
        assert!(swallowed["told"]["server"].is_null(), "{way}: the control connection comes through: {swallowed}");
        let passed = ours(&lab, way, 1448);
        assert!(passed["told"]["bytes"].as_u64().is_some_and(|bytes| bytes > 5_000_000), "{way}: {passed}");
    }
}
