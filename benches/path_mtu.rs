//! `weaklink mtu` beside `tracepath` and nmap's `path-mtu` script on paths of a known MTU.
//!
//! ```text
//! cargo bench --bench path_mtu               about five minutes, most of it waiting for the other programs
//! cargo bench --bench path_mtu -- --quick    a few of the paths
//! ```
//!
//! Needs root, Linux, iproute2, ethtool and ping; where one is missing it says so and ends (an error with `WEAKLINK_FULL=1`).
//! Without tracepath (package iputils-tracepath) or nmap their columns say so.

#![expect(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

#[path = "../examples/lab/middle.rs"]
mod middle;
#[expect(dead_code, reason = "disks and quotas are for the lab's faults")]
#[path = "../examples/lab/net.rs"]
mod net;
#[expect(dead_code, reason = "the test checks more")]
#[path = "../examples/lab/paths.rs"]
mod paths;

use std::io;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use net::Running;
use paths::{Built, By, Family, PATHS, Path, Truth};
use serde_json::Value;

/// How long another program may take: tracepath tries each of 30 hops three times and waits a second for it.
const PATIENCE: Duration = Duration::from_secs(30);

/// The port of our agent.
const PORT: &str = "5210";

fn main() -> ExitCode {
    match middle::play() {
        Ok(false) => {}
        Ok(true) => return ExitCode::SUCCESS,
        Err(error) => {
            println!("FAILED: {error}");
            return ExitCode::FAILURE;
        }
    }
    let given: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` starts this without `--bench`: nothing slow belongs there.
    if !given.iter().any(|arg| arg == "--bench") {
        println!("a benchmark: `cargo bench` runs it");
        return ExitCode::SUCCESS;
    }
    if let Some(reason) = net::missing() {
        let demanded = std::env::var("WEAKLINK_FULL").as_deref() == Ok("1");
        println!("SKIPPED: {reason}");
        return ExitCode::from(u8::from(demanded));
    }
    let quick = given.iter().any(|arg| arg == "--quick");
    match compare(quick) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("FAILED: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The whole table.
fn compare(quick: bool) -> io::Result<()> {
    println!("\n# The largest packet of a path, IPv4; what is true, and what three programs say\n");
    println!("| path | true ↑ ↓ | `weaklink mtu` ↑ | `weaklink mtu` ↓ | whole | `tracepath -n` | `nmap --script path-mtu` |");
    println!("|---|---|---|---|---|---|---|");
    let rest = [&paths::LOSSY, &paths::LOWERED, &paths::LIAR, &paths::CLAMPED];
    let all = PATHS.iter().chain(rest);
    // The quick form shows one path of each kind of answer.
    let chosen: Vec<&Path> = if quick { all.step_by(3).take(4).collect() } else { all.collect() };
    for path in chosen {
        let mut built = path.build()?;
        let agent = serve(&built)?;
        let [up, down, whole] = ours(&built)?;
        let mut others = Vec::new();
        for other in [tracepath, nmap] {
            // What one program taught the kernel must not help the next.
            built.refresh()?;
            others.push(other(&built));
        }
        drop(agent);
        let truth = format!("{}, {}", truth(path.upload), truth(path.download));
        println!("| {} | {truth} | {up} | {down} | {whole} | {} |", path.name, others.join(" | "));
    }
    Ok(())
}

fn truth(truth: Truth) -> String {
    match truth.by {
        By::Own => truth.mtu.to_string(),
        By::Router(_) => format!("{} said", truth.mtu),
        By::Silence(..) => format!("{} silent", truth.mtu),
    }
}

/// The agent at the NAS, which is also the open port that nmap's script needs.
fn serve(built: &Built) -> io::Result<Running> {
    let mut serve = built.lab.command("nas", env!("CARGO_BIN_EXE_weaklink"));
    serve.args(["serve", "--port", PORT, "--code-file"]).arg(built.lab.dir().join("code"));
    let mut agent = Running::start(serve)?;
    agent.wait_for("listening on", PATIENCE)?;
    Ok(agent)
}

/// Our command with an agent at the NAS: each direction, and the time of the whole command.
fn ours(built: &Built) -> io::Result<[String; 3]> {
    let mut command = built.lab.command("pc", env!("CARGO_BIN_EXE_weaklink"));
    command.args(["mtu", &built.nas(Family::V4), "--json", "-q", "--code-file"]).arg(built.lab.dir().join("code"));
    let begun = Instant::now();
    let output = command.stderr(Stdio::inherit()).output()?;
    let elapsed = begun.elapsed();
    let report: Value = serde_json::from_slice(&output.stdout).map_err(io::Error::other)?;
    let section = &report["measurements"]["mtu"]["measured"];
    Ok([direction(&section["upload"]), direction(&section["download"]), seconds(elapsed)])
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

/// One direction in few words.
fn direction(outcome: &Value) -> String {
    let found = &outcome["measured"];
    if !found.is_object() {
        return format!("nothing: {outcome}");
    }
    let location = &found["location"]["measured"];
    let by = match found["limited_by"]["kind"].as_str() {
        Some("local_interface") => "own interface".to_owned(),
        Some("router") => format!("{} says so", found["limited_by"]["address"].as_str().unwrap_or("a router")),
        _ if location.is_object() => format!("silent between hops {} and {}", location["reached"], location["missing"]),
        _ => "silent".to_owned(),
    };
    let change = if found["change"].is_object() { format!(", fell from {}", found["change"]["from"]) } else { String::new() };
    let time = Duration::from_micros(found["elapsed_us"].as_u64().unwrap_or_default());
    format!("{}{change}, {by}; {} probes, {}", found["mtu"], found["probes"], seconds(time))
}

/// What another program printed within the time, and how long it took; a reason if it is not there.
fn other(built: &Built, program: &str, args: &[&str], package: &str) -> Result<(String, String), String> {
    if Command::new(program).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        return Err(format!("not installed (package {package})"));
    }
    let mut command = built.lab.command("pc", program);
    command.args(args);
    let begun = Instant::now();
    let running = Running::start(command).map_err(|error| error.to_string())?;
    match running.finish(PATIENCE) {
        Ok((_, text)) => Ok((text, seconds(begun.elapsed()))),
        Err(_) => Err(format!("nothing within {} s", PATIENCE.as_secs())),
    }
}

fn tracepath(built: &Built) -> String {
    let nas = built.nas(Family::V4);
    match other(built, "tracepath", &["-n", &nas], "iputils-tracepath") {
        Err(reason) => reason,
        Ok((text, time)) => {
            let resume = text.lines().rev().find_map(|line| line.trim().strip_prefix("Resume: pmtu "));
            let mtu = resume.and_then(|rest| rest.split(' ').next()).unwrap_or("nothing");
            let end = if text.contains("reached") { "" } else { ", not reached" };
            format!("{mtu}{end}; {time}")
        }
    }
}

fn nmap(built: &Built) -> String {
    let nas = built.nas(Family::V4);
    match other(built, "nmap", &["-n", "-Pn", "-p", PORT, "--script", "path-mtu", &nas], "nmap") {
        Err(reason) => reason,
        Ok((text, time)) => {
            let said = text.lines().find_map(|line| line.split_once("path-mtu: ")).map_or("nothing", |(_, said)| said);
            format!("{said}; {time}")
        }
    }
}
