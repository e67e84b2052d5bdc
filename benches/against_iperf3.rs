//! weaklink's engine against iperf3 on one and the same network of namespaces, in alternation.
//!
//! ```text
//! cargo bench                    about nine minutes
//! cargo bench -- --quick         about three
//! cargo bench -- --streams 1     with that number of streams only
//! IPERF3=/path/to/iperf3 cargo bench
//! IPERF3_NEW=/path/to/a/newer/iperf3 cargo bench      its cheapest mode is compared too
//! ```
//!
//! Needs root, Linux, iproute2, ethtool and iperf3; where one is missing it says so and ends (an error with `WEAKLINK_FULL=1`).

#![expect(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

#[expect(dead_code, reason = "disks and quotas are for the lab's faults")]
#[path = "../examples/lab/net.rs"]
mod net;

mod ends;

use std::io;
use std::process::{Command, ExitCode, Stdio};

use ends::{Mover, Transfer};
use net::{Lab, Mtus};
use weaklink::model::mtu::Limiter;
use weaklink::stats::percentile;

/// How long and how often; an odd number of rounds has a median.
#[derive(Clone, Copy)]
struct Effort {
    seconds: u64,
    repeats: usize,
    accuracy_seconds: u64,
    accuracy_repeats: usize,
}

const FULL: Effort = Effort { seconds: 2, repeats: 5, accuracy_seconds: 3, accuracy_repeats: 3 };
const QUICK: Effort = Effort { seconds: 1, repeats: 3, accuracy_seconds: 2, accuracy_repeats: 1 };

fn main() -> ExitCode {
    if ends::play() {
        return ExitCode::SUCCESS;
    }
    let given: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` starts this without `--bench`: nothing slow belongs there.
    if !given.iter().any(|arg| arg == "--bench") {
        println!("a benchmark: `cargo bench` runs it");
        return ExitCode::SUCCESS;
    }
    if let Some(reason) = missing() {
        let demanded = std::env::var("WEAKLINK_FULL").as_deref() == Ok("1");
        println!("SKIPPED: {reason}");
        return ExitCode::from(u8::from(demanded));
    }
    let effort = if given.iter().any(|arg| arg == "--quick") { QUICK } else { FULL };
    let only = given.iter().position(|arg| arg == "--streams").and_then(|at| given.get(at + 1)?.parse().ok());
    match speed(effort, only).and_then(|()| accuracy(effort)).and_then(|()| search()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("FAILED: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Why nothing can be compared here, if so.
fn missing() -> Option<String> {
    net::missing().or_else(|| {
        let program = ends::iperf3();
        let there = Command::new(&program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        there.is_err().then(|| format!("the comparison needs {program} (package iperf3)"))
    })
}

/// A median with the least and the most.
struct Spread {
    median: f64,
    least: f64,
    most: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Self {
        let at = |percent| percentile(values, percent).unwrap_or(f64::NAN);
        Self { median: at(50.0), least: at(0.0), most: at(100.0) }
    }

    fn ratio(&self) -> String {
        format!("{:5.2} ({:.2}–{:.2})", self.median, self.least, self.most)
    }
}

/// Every mover in turn, another first in each round; the transfers of each.
fn rounds(lab: &Lab, movers: &[Mover], (streams, seconds, repeats): (u64, u64, usize)) -> io::Result<Vec<Vec<Transfer>>> {
    let mut done = vec![Vec::new(); movers.len()];
    for round in 0..repeats {
        for at in 0..movers.len() {
            let turn = (at + round) % movers.len();
            done[turn].push(ends::transfer(lab, movers[turn], streams, seconds)?);
        }
    }
    Ok(done)
}

fn over(ours: &[Transfer], theirs: &[Transfer], of: impl Fn(&Transfer) -> f64) -> Spread {
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| of(a) / of(b)).collect();
    Spread::of(&ratios)
}

fn median(transfers: &[Transfer], of: impl Fn(&Transfer) -> f64) -> f64 {
    Spread::of(&transfers.iter().map(of).collect::<Vec<_>>()).median
}

fn speed(effort: Effort, only: Option<u64>) -> io::Result<()> {
    let mut movers = vec![Mover::Iperf3, Mover::Iperf3Zero, Mover::Lean, Mover::Copies];
    if ends::newer_iperf3().is_some() {
        movers.extend([Mover::Newer, Mover::NewerBest]);
    } else {
        println!("\nno newer iperf3: IPERF3_NEW=/path names one that knows --skip-rx-copy");
    }
    println!("\n# Unshaped: against iperf3 in the same round ({} rounds of {} s, CUBIC)", effort.repeats, effort.seconds);
    println!("CPU is user and system time of both processes for each gigabyte that arrived; ratios: median (least–most)\n");
    println!(
        "{:<16} {:<14} {:>9} {:>18} {:>9} {:>9} {:>9} {:>18}",
        "setup", "program", "Gbit/s", "over iperf3", "send s/GB", "recv s/GB", "both s/GB", "over iperf3"
    );
    let mut goals = Vec::new();
    for mtu in [1500, 9000] {
        let lab = Lab::new(Mtus::all(mtu))?;
        for streams in [1, 4, 16].into_iter().filter(|streams| only.is_none_or(|only| only == *streams)) {
            let done = rounds(&lab, &movers, (streams, effort.seconds, effort.repeats))?;
            let setup = format!("{mtu}, {streams} stream{}", if streams > 1 { "s" } else { "" });
            for (mover, ours) in movers.iter().zip(&done) {
                println!(
                    "{setup:<16} {:<14} {:>9.2} {:>18} {:>9.3} {:>9.3} {:>9.3} {:>18}",
                    name(*mover),
                    median(ours, |t| t.whole) / 1e9,
                    over(ours, &done[0], |t| t.whole).ratio(),
                    median(ours, |t| t.cpu[0]),
                    median(ours, |t| t.cpu[1]),
                    median(ours, Transfer::both),
                    over(ours, &done[0], Transfer::both).ratio(),
                );
            }
            goals.extend(reached(&setup, &movers, &done));
        }
    }
    chosen()?;
    println!("\n# Goals: medians of the ratios in each round\n");
    for line in goals {
        println!("{line}");
    }
    Ok(())
}

/// What one mover is to reach over another: at least this share of its rate, at most this share of its processor time for a gigabyte.
const GOALS: [(Mover, Mover, f64, f64); 3] = [
    (Mover::Copies, Mover::Iperf3, 1.3, 0.8),
    (Mover::Lean, Mover::Iperf3, 1.8, 0.5),
    (Mover::Lean, Mover::NewerBest, 1.05, 0.75),
];

/// Each goal of one setup with what was reached.
fn reached(setup: &str, movers: &[Mover], done: &[Vec<Transfer>]) -> Vec<String> {
    let of = |wanted: Mover| movers.iter().position(|mover| *mover == wanted).and_then(|at| done.get(at));
    let line = |&(ours, theirs, least, most): &(Mover, Mover, f64, f64)| {
        let (a, b) = (of(ours)?, of(theirs)?);
        let (rate, cpu) = (over(a, b, |t| t.whole).median, over(a, b, Transfer::both).median);
        let word = |good: bool| if good { "reached" } else { "NOT reached" };
        Some(format!(
            "{setup:<16} {:<9} over {:<14} goodput {rate:5.2}, at least {least:.2}: {:<12} CPU/GB {cpu:5.2}, at most {most:.2}: {}",
            name(ours),
            name(theirs),
            word(rate >= least),
            word(cpu <= most),
        ))
    };
    GOALS.iter().filter_map(line).collect()
}

/// What the engine tried and chose on this machine.
fn chosen() -> io::Result<()> {
    println!("\n# The ways that were tried on one stream at MTU 9000, and the choice\n");
    let told = ends::both_ends(&Lab::new(Mtus::all(9000))?, 1, 2, false)?;
    for (end, method, trials) in
        [("sender", &told.sender.method, &told.sender.trials), ("receiver", &told.receiver.method, &told.receiver.trials)]
    {
        println!("{end}: {method}");
        for trial in trials {
            let gbit = trial.rate_bps.as_f64() / 1e9;
            let told = trial.refused.clone().unwrap_or_else(|| format!("{gbit:.2} Gbit/s, {:.3} s/GB", trial.cpu_s_per_gb));
            println!("    {:<28} {told}", trial.method);
        }
    }
    Ok(())
}

const fn name(mover: Mover) -> &'static str {
    match mover {
        Mover::Lean => "weaklink",
        Mover::Copies => "w. copies",
        Mover::Iperf3 => "iperf3",
        Mover::Iperf3Zero => "iperf3 -Z",
        Mover::Newer => "newer iperf3",
        Mover::NewerBest => "newer, best",
    }
}

fn accuracy(effort: Effort) -> io::Result<()> {
    const MTU: u64 = 1500;
    println!("\n# Accuracy: one stream on a shaped link ({} rounds of {} s)\n", effort.accuracy_repeats, effort.accuracy_seconds);
    println!(
        "{:>7} {:>12} {:>10} {:>10} {:>15} {:>15} {:>18} {:>17}",
        "Mbit/s", "arithmetic", "weaklink", "iperf3", "weaklink off by", "iperf3 off by", "weaklink − iperf3", "CPU over iperf3"
    );
    for mbit in [1000, 2500, 5000] {
        let lab = Lab::new(Mtus::all(MTU as u32))?;
        lab.shape(mbit, MTU)?;
        // The goal: within 1 % of this, in passes of at most 3 s. IPv4 and TCP with timestamps take 52 bytes of a packet; preamble, header, FCS and gap add 38 to it.
        let ideal = mbit as f64 * (MTU - 52) as f64 / (MTU + 38) as f64;
        let done = rounds(&lab, &[Mover::Lean, Mover::Iperf3], (1, effort.accuracy_seconds, effort.accuracy_repeats))?;
        let [ours, theirs] = [&done[0], &done[1]];
        let rate = |t: &Transfer| t.goodput / 1e6;
        let (us, them) = (median(ours, rate), median(theirs, rate));
        let off = |value: f64, truth: f64| format!("{:+.2} %", (value / truth - 1.0) * 100.0);
        let cpu = over(ours, theirs, Transfer::both).ratio();
        println!(
            "{mbit:>7} {ideal:>12.1} {us:>10.1} {them:>10.1} {:>15} {:>15} {:>18} {cpu:>17}",
            off(us, ideal),
            off(them, ideal),
            off(us, them)
        );
        let word = if (us / ideal - 1.0).abs() <= 0.01 { "reached" } else { "NOT reached" };
        println!("{:>7} within 1 % of the arithmetic in {} s: {word}", "", effort.accuracy_seconds);
    }
    Ok(())
}

fn search() -> io::Result<()> {
    println!("\n# Largest packet, each direction (a veth passes four bytes more than its MTU, as room for a VLAN tag)\n");
    println!("{:<34} {:<9} {:>6} {:>8} {:>10} limited by", "path", "direction", "MTU", "probes", "ms");
    let paths = [
        ("clean 1500", Mtus::all(1500)),
        ("clean 9000", Mtus::all(9000)),
        ("black hole, 9000 with 1500 between", Mtus { pc: 9000, port: 1500, nas: 9000 }),
        ("black hole, 9000 with 4082 between", Mtus { pc: 9000, port: 4082, nas: 9000 }),
    ];
    for (path, mtus) in paths {
        let lab = Lab::new(mtus)?;
        lab.single_frames()?;
        for (direction, found) in ["upload", "download"].iter().zip(ends::search_both(&lab)?) {
            let by = match found.limited_by {
                Limiter::LocalInterface => "own interface",
                Limiter::Router { .. } => "router",
                Limiter::Silent => "silence",
            };
            let ms = found.elapsed_us.seconds() * 1e3;
            println!("{path:<34} {direction:<9} {:>6} {:>8} {ms:>10.1} {by}", found.mtu.0, found.probes);
        }
    }
    Ok(())
}
