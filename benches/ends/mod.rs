//! The two ends of a measurement as processes of their own in the lab's hosts: weaklink's engine, and iperf3.
//!
//! The program that includes this starts itself again inside a host, with the part to play in the environment (a test
//! binary has no arguments of its own), so that the processor time of each end is the operating system's word about
//! one process: the same for weaklink and for iperf3.

#![expect(unreachable_pub, reason = "shared by a benchmark and a test, which are crates of their own")]

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use weaklink::model::Outcome;
use weaklink::model::mtu::PathMtu;
use weaklink::model::throughput::{PassOptions, ReceiverEnd, SenderEnd};
use weaklink::mtu::{Endpoint, Listener, Token};
use weaklink::sys::Stop;
use weaklink::throughput::{
    Progress, ReceiveSpec, SendSpec, SocketSpec, adopt, connect, goodput, prepare, receive, send, steady,
};

use crate::net::{Lab, NAS, Running};

/// The variable that names the part to play, as words: the part, then numbers.
const PART: &str = "WEAKLINK_END";

/// The test that plays the part where the program is a test binary; a benchmark ignores these arguments.
const ARGS: [&str; 4] = ["--exact", "plays_an_end", "--nocapture", "--test-threads=1"];

/// The ports of both programs.
const PORT: u16 = 5210;
const IPERF3_PORT: &str = "5201";

/// The session of the MTU search; both ends are ours.
const TOKEN: Token = *b"one known token!";

/// The longest that anything but the data itself may take, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(20);

/// Which program moves the bytes, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mover {
    /// weaklink as it measures: nothing is copied.
    Lean,
    /// weaklink with ordinary copies.
    Copies,
    /// iperf3 as it is called every day.
    Iperf3,
    /// iperf3 with `-Z`: its sender does not copy.
    Iperf3Zero,
    /// A newer iperf3 as it is called every day; see [`newer_iperf3`].
    Newer,
    /// A newer iperf3 in its cheapest mode: neither end copies (`-Z --skip-rx-copy`).
    NewerBest,
}

/// What one transfer gave.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Bit/s that the receiver read, from its first to its last byte: what iperf3 calls its receiver's rate.
    pub whole: f64,
    /// Bit/s of the steady part, as weaklink reports it; of iperf3 the same as `whole`.
    pub goodput: f64,
    /// Seconds of processor time for each gigabyte (10⁹), the sending process and the receiving one.
    pub cpu: [f64; 2],
}

impl Transfer {
    /// Seconds of processor time for each gigabyte, both processes.
    pub fn both(&self) -> f64 {
        self.cpu[0] + self.cpu[1]
    }
}

/// What both of our ends told of a pass.
#[derive(Debug)]
pub struct Told {
    /// The sending end.
    pub sender: SenderEnd,
    /// The receiving end.
    pub receiver: ReceiverEnd,
    /// Processor time in seconds, the sending process and the receiving one.
    cpu: [f64; 2],
}

/// Plays the end that the environment names; tells whether it named one.
pub fn play() -> bool {
    let Ok(part) = std::env::var(PART) else { return false };
    let words: Vec<&str> = part.split(' ').collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    let time = Duration::from_secs(number(2));
    let told = match words.first().copied() {
        Some("receive") => play_receiver(number(1), time, number(3) == 1),
        Some("send") => play_sender(number(1), time, number(3) == 1),
        Some("answer") => play_answerer(),
        Some("search") => play_searcher(),
        _ => Err(io::Error::other("an unknown part")),
    };
    match told {
        Ok(text) => println!("\nTOLD {text}"),
        Err(error) => println!("\nFAILED {error}"),
    }
    true
}

fn cubic() -> SocketSpec {
    SocketSpec::with_congestion("cubic")
}

fn json(value: &impl serde::Serialize) -> io::Result<String> {
    serde_json::to_string(value).map_err(io::Error::other)
}

fn nas() -> io::Result<SocketAddr> {
    format!("{NAS}:{PORT}").parse().map_err(io::Error::other)
}

/// Says that the other end may come.
fn ready() -> io::Result<()> {
    println!("\nREADY");
    io::stdout().flush()
}

fn play_receiver(streams: u64, time: Duration, copies: bool) -> io::Result<String> {
    let listener = TcpListener::bind(nas()?)?;
    prepare(&listener, &cubic())?;
    ready()?;
    let conns = (0..streams).map(|_| listener.accept().map(|(stream, _)| stream)).collect::<io::Result<Vec<_>>>()?;
    for stream in &conns {
        adopt(stream, &cubic());
    }
    let spec = ReceiveSpec { deadline: time + PATIENCE / 4, options: PassOptions { copies, ..PassOptions::default() } };
    json(&receive(conns, &spec, &Stop::new(), &Progress::new())?)
}

fn play_sender(streams: u64, duration: Duration, copies: bool) -> io::Result<String> {
    let conns = (0..streams).map(|_| connect(nas()?, &cubic(), PATIENCE)).collect::<io::Result<Vec<_>>>()?;
    let spec = SendSpec { duration, options: PassOptions { copies, ..cubic().options } };
    json(&send(conns, &spec, &Stop::new(), &Progress::new())?)
}

/// The NAS's end: answers the PC's search, then, at its word, searches itself.
fn play_answerer() -> io::Result<String> {
    let listener = Listener::bind(nas()?)?;
    let expected = listener.expect(TOKEN);
    let control = TcpListener::bind(nas()?)?;
    ready()?;
    let endpoint = expected.wait(PATIENCE, &Stop::new())?;
    let (mut control, _) = control.accept()?;
    control.set_read_timeout(Some(PATIENCE))?;
    control.read_exact(&mut [0])?;
    json(&search(&endpoint)?)
}

/// The PC's end: searches, gives its word, and answers until the NAS's end has gone.
fn play_searcher() -> io::Result<String> {
    let endpoint = Endpoint::connect(nas()?, TOKEN, PATIENCE, &Stop::new())?;
    let mut control = TcpStream::connect_timeout(&nas()?, PATIENCE)?;
    control.set_read_timeout(Some(PATIENCE))?;
    let found = search(&endpoint)?;
    control.write_all(b"!")?;
    // Whatever ends the connection ends the answering too.
    let _ = control.read(&mut [0]);
    json(&found)
}

fn search(endpoint: &Endpoint) -> io::Result<PathMtu> {
    match endpoint.search(None, Duration::from_secs(10), &Stop::new()) {
        Outcome::Measured(found) => Ok(found),
        other => Err(io::Error::other(other.why().unwrap_or_default().to_owned())),
    }
}

/// Starts this program again inside a host.
fn ours(lab: &Lab, host: &str, part: &str) -> io::Result<Running> {
    let mut command = lab.command(host, std::env::current_exe()?);
    command.args(ARGS).env(PART, part);
    Running::start(command)
}

/// Waits for the end of one of ours and gives what it told.
fn told(end: Running, time: Duration) -> io::Result<String> {
    let (code, text) = end.finish(time)?;
    let line = text.lines().find_map(|line| line.strip_prefix("TOLD "));
    line.map(str::to_owned).ok_or_else(|| io::Error::other(format!("an end told nothing (exit code {code:?}): {text}")))
}

/// The processor time in seconds of all ended children of this process: fields 16 and 17 of `/proc/self/stat`, proc(5),
/// in hundredths of a second (`USER_HZ` on every architecture that matters here).
fn of_children() -> io::Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(ticks as f64 / 100.0)
}

/// The program to compare with.
pub fn iperf3() -> String {
    std::env::var("IPERF3").unwrap_or_else(|_| "iperf3".to_owned())
}

/// A second, newer iperf3 to compare with, where one is named and knows `--skip-rx-copy`.
pub fn newer_iperf3() -> Option<String> {
    let program = std::env::var("IPERF3_NEW").ok()?;
    let help = Command::new(&program).arg("--help").output().ok()?;
    String::from_utf8_lossy(&help.stdout).contains("--skip-rx-copy").then_some(program)
}

/// Moves bytes from the PC to the NAS for so many seconds, with CUBIC.
pub fn transfer(lab: &Lab, mover: Mover, streams: u64, seconds: u64) -> io::Result<Transfer> {
    match mover {
        Mover::Lean | Mover::Copies => ours_moves(lab, streams, seconds, mover == Mover::Copies),
        Mover::Iperf3 => iperf3_moves(lab, streams, seconds, (&iperf3(), &[])),
        Mover::Iperf3Zero => iperf3_moves(lab, streams, seconds, (&iperf3(), &["-Z"])),
        Mover::Newer | Mover::NewerBest => {
            let program = newer_iperf3().ok_or_else(|| io::Error::other("IPERF3_NEW names no newer iperf3"))?;
            let options: &[&str] = if mover == Mover::Newer { &[] } else { &["-Z", "--skip-rx-copy"] };
            iperf3_moves(lab, streams, seconds, (&program, options))
        }
    }
}

/// One pass of ours from the PC to the NAS with all that both ends tell.
pub fn both_ends(lab: &Lab, streams: u64, seconds: u64, copies: bool) -> io::Result<Told> {
    let part = |name: &str| format!("{name} {streams} {seconds} {}", u8::from(copies));
    let time = Duration::from_secs(seconds) + PATIENCE;
    let mut receiver = ours(lab, "nas", &part("receive"))?;
    receiver.wait_for("READY", PATIENCE)?;
    let sender = ours(lab, "pc", &part("send"))?;
    let before = of_children()?;
    let near = told(sender, time)?;
    let between = of_children()?;
    let far = told(receiver, time)?;
    Ok(Told {
        sender: serde_json::from_str(&near).map_err(io::Error::other)?,
        receiver: serde_json::from_str(&far).map_err(io::Error::other)?,
        cpu: [between - before, of_children()? - between],
    })
}

fn ours_moves(lab: &Lab, streams: u64, seconds: u64, copies: bool) -> io::Result<Transfer> {
    let Told { receiver: end, cpu, .. } = both_ends(lab, streams, seconds, copies)?;
    let gigabytes = end.bytes.0 as f64 / 1e9;
    Ok(Transfer {
        whole: end.bytes.0 as f64 * 8.0 / end.elapsed_us.seconds(),
        goodput: goodput(&end, steady(&end.bins).as_ref()).as_f64(),
        cpu: cpu.map(|seconds| seconds / gigabytes),
    })
}

fn iperf3_moves(lab: &Lab, streams: u64, seconds: u64, (program, options): (&str, &[&str])) -> io::Result<Transfer> {
    let time = Duration::from_secs(seconds) + PATIENCE;
    let mut command: Command = lab.command("nas", program);
    command.args(["-s", "-1", "-p", IPERF3_PORT, "--forceflush"]);
    let mut server = Running::start(command)?;
    server.wait_for("listening", PATIENCE)?;
    let mut command = lab.command("pc", program);
    command.args(["-c", NAS, "-p", IPERF3_PORT, "-J", "-C", "cubic", "-t", &seconds.to_string(), "-P", &streams.to_string()]);
    command.args(options);
    let client = Running::start(command)?;
    let before = of_children()?;
    let (_, text) = client.finish(time)?;
    let between = of_children()?;
    server.finish(time)?;
    let after = of_children()?;
    let report: Value = serde_json::from_str(text.get(text.find('{').unwrap_or(0)..).unwrap_or_default())
        .map_err(|error| io::Error::other(format!("iperf3: {error} in {text}")))?;
    let received = &report["end"]["sum_received"];
    let (Some(bytes), Some(rate)) = (received["bytes"].as_f64(), received["bits_per_second"].as_f64()) else {
        return Err(io::Error::other(format!("iperf3 gave no rate: {text}")));
    };
    let gigabytes = bytes / 1e9;
    Ok(Transfer { whole: rate, goodput: rate, cpu: [(between - before) / gigabytes, (after - between) / gigabytes] })
}

/// Searches the largest packet from the PC to the NAS, then from the NAS to the PC.
pub fn search_both(lab: &Lab) -> io::Result<[PathMtu; 2]> {
    let mut answerer = ours(lab, "nas", "answer")?;
    answerer.wait_for("READY", PATIENCE)?;
    let searcher = ours(lab, "pc", "search")?;
    let down = told(answerer, PATIENCE * 2)?;
    let up = told(searcher, PATIENCE)?;
    let read = |text: &str| serde_json::from_str(text).map_err(io::Error::other);
    Ok([read(&up)?, read(&down)?])
}
