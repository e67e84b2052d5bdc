//! Datagrams at paced rates on built networks: where loss begins on a shaped link, loss at every rate, a receiver that is too slow,
//! and iperf3's word about loss at the same rate. Relations only, no speed of a machine.
//!
//! Needs root, Linux and, for one test, iperf3. Where that is missing each test says so and is skipped; where the full suite is
//! demanded (`WEAKLINK_FULL=1`) it fails.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a skip must be seen, and an end tells its result by printing")]

#[expect(dead_code, reason = "disks and quotas are for the lab's faults")]
#[path = "../examples/lab/net.rs"]
mod net;

use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use net::{Lab, Mtus, NAS, Running};
use serde_json::Value;
use weaklink::model::plan::{Scope, UdpPlan, Ways};
use weaklink::model::udp::{UdpDirection, UdpReceived, UdpSection, UdpSent};
use weaklink::session::client::ClientSession;
use weaklink::session::{Events, RunSettings, SessionError, steps};
use weaklink::sys::Stop;
use weaklink::throughput::udp::assemble;
use weaklink::units::BitRate;

/// One network at a time: two would share the cores and measure each other.
static ONE: Mutex<()> = Mutex::new(());

/// A busy machine disturbs one round; it does not disturb one of three alike.
const ROUNDS: usize = 3;

/// The longest that anything but the passes may take, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);

/// The variable that makes this program the PC's end: the plan, the ways and the code as JSON.
const CLIENT: &str = "WEAKLINK_UDP_CLIENT";

/// The turn to build a network, if one can be built here; a visible skip, or a failure where the full suite is demanded.
fn turn(with_iperf3: bool) -> Option<MutexGuard<'static, ()>> {
    let lacks_iperf3 = || {
        let there = Command::new("iperf3").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        (with_iperf3 && there.is_err()).then(|| "the comparison needs iperf3 (package iperf3)".to_owned())
    };
    if let Some(reason) = net::missing().or_else(lacks_iperf3) {
        assert!(std::env::var("WEAKLINK_FULL").as_deref() != Ok("1"), "the full suite is demanded, but {reason}");
        eprintln!("SKIPPED: {reason}");
        return None;
    }
    Some(ONE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// No test: the other tests start this binary again, inside the PC.
#[test]
fn plays_the_pc() {
    let Ok(text) = std::env::var(CLIENT) else { return };
    let (plan, ways, code, target): (UdpPlan, Ways, String, String) = serde_json::from_str(&text).unwrap();
    let settings = RunSettings::new(Scope::Throughput, target.parse().unwrap(), code.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let section = runtime.block_on(async {
        let begun = Instant::now();
        let mut session = loop {
            match ClientSession::open(settings.clone(), Events::new(|_| {}, Stop::new())).await {
                // The agent still sees the last one off.
                Err(SessionError::Busy { .. }) if begun.elapsed() < PATIENCE => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                result => break result.unwrap(),
            }
        };
        steps::udp::client(&mut session, plan, ways).await.unwrap()
    });
    println!("\nTOLD {}", serde_json::to_string(&section).unwrap());
}

/// The variable that makes this program one bare end, as [`End`] in JSON.
const END: &str = "WEAKLINK_UDP_END";

/// A bare end: no session, no search.
#[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
struct End {
    sends: bool,
    mbit: u64,
    /// Each datagram by itself through the kernel.
    apart: bool,
    /// The receiver sleeps after each call, and has hardly a buffer.
    slow: bool,
}

/// The payload of its datagrams.
const BYTES: usize = 1472;

/// No test: one bare end.
#[test]
fn plays_an_end() {
    use weaklink::sys::{Progress, cpu};
    use weaklink::throughput::udp::{Finish, ReceiveSpec, Receiver, SendSpec, send};
    let Ok(text) = std::env::var(END) else { return };
    let end: End = serde_json::from_str(&text).unwrap();
    let (here, there) = ("10.78.0.1:5211", "10.78.0.2:5211");
    let (here, there) = if end.sends { (here, there) } else { (there, here) };
    let socket = std::net::UdpSocket::bind(here).unwrap();
    socket.connect(there).unwrap();
    let (stop, progress, seconds) = (Stop::new(), Progress::new(), Duration::from_secs(3));
    let told = || cpu::thread_time().unwrap_or_default().as_secs_f64();
    let before = told();
    if end.sends {
        let rate = BitRate::from_mbit(end.mbit);
        let sent =
            send(&socket, &SendSpec { pass: 1, rate, duration: seconds, datagram: BYTES, apart: end.apart }, &stop, &progress);
        let cpu = told() - before;
        println!("\nTOLD {}", serde_json::to_string(&(sent.unwrap(), cpu)).unwrap());
    } else {
        let mut spec = ReceiveSpec { pass: 1, datagram: BYTES, most: u64::MAX, deadline: seconds * 2, ..ReceiveSpec::default() };
        spec.apart = end.apart;
        if end.slow {
            (spec.buffer, spec.nap) = (Some(100_000), Some(Duration::from_millis(10)));
        }
        let receiver = Receiver::new(&socket, spec).unwrap();
        println!("\nREADY");
        let came = receiver.run(&Finish::new(), &stop, &progress).unwrap();
        let cpu = told() - before;
        println!("\nTOLD {}", serde_json::to_string(&(came, cpu)).unwrap());
    }
}

/// One pass between bare ends; each with the seconds of its thread.
fn bare(lab: &Lab, mbit: u64, apart: bool, slow: bool) -> ((UdpSent, f64), (UdpReceived, f64)) {
    let start = |host: &str, sends: bool| {
        let mut command = lab.command(host, std::env::current_exe().unwrap());
        command.args(["--exact", "plays_an_end", "--nocapture", "--test-threads=1"]);
        command.env(END, serde_json::to_string(&End { sends, mbit, apart, slow }).unwrap());
        Running::start(command).unwrap()
    };
    let told = |mut end: Running| end.wait_for("TOLD", PATIENCE).unwrap().trim_start_matches("TOLD ").to_owned();
    let mut receiver = start("nas", false);
    receiver.wait_for("READY", PATIENCE).unwrap();
    let sent = told(start("pc", true));
    (serde_json::from_str(&sent).unwrap(), serde_json::from_str(&told(receiver)).unwrap())
}

/// What the host itself moves from one end to the other, with and without GSO and GRO; for people, as it asserts nothing.
#[test]
#[ignore = "a measurement of this machine, for `--ignored --nocapture`"]
fn the_most_that_this_host_moves() {
    let Some(_turn) = turn(false) else { return };
    let lab = Lab::new(Mtus::all(1500)).unwrap();
    for (mbit, apart) in [(1000, true), (1000, false), (100_000, true), (100_000, false)] {
        let ((sent, sender), (came, receiver)) = bare(&lab, mbit, apart, false);
        let pass = assemble(BitRate::from_mbit(mbit), BYTES as u32, &sent, came.clone());
        println!(
            "asked for {}: sent {}, {}; received {}, {}",
            pass.asked_bps, pass.sent_bps, sent.method, pass.received_bps, came.method
        );
        let gigabytes = |count: u64| (count * BYTES as u64) as f64 / 1e9;
        println!(
            "  {:.2} and {:.2} s of the threads for a GB, {} of {} lost, {:?} of them here, jitter {}, queue {} and {}",
            sender / gigabytes(pass.sent),
            receiver / gigabytes(pass.received),
            pass.lost,
            pass.sent,
            pass.dropped_by_receiver.measured(),
            pass.jitter_us,
            pass.queue_median_us,
            pass.queue_p99_us
        );
    }
}

#[test]
fn a_slow_reader_behind_a_lossy_network_is_told_from_it() {
    let Some(_turn) = turn(false) else { return };
    let lab = Lab::new(Mtus::all(1500)).unwrap();
    single_frames(&lab);
    lab.lose("p1", 50).unwrap();
    for apart in [true, false] {
        let ((sent, _), (came, _)) = bare(&lab, 100, apart, true);
        let pass = assemble(BitRate::from_mbit(100), BYTES as u32, &sent, came);
        let own = *pass.dropped_by_receiver.measured().unwrap();
        assert!(own > pass.sent / 10, "{pass:?}");
        let network = (pass.lost - own) as f64 / (sent.datagrams as f64);
        assert!(
            (0.04..0.06).contains(&network),
            "{network}, one by one: {apart}, {own} of {} lost here, of {}",
            pass.lost,
            pass.sent
        );
    }
}

/// A network with an agent at the NAS.
struct Stage {
    lab: Lab,
    code: String,
    _agent: Running,
}

impl Stage {
    fn new(faults: impl FnOnce(&Lab)) -> Self {
        let lab = Lab::new(Mtus::all(1500)).unwrap();
        faults(&lab);
        let file = lab.dir().join("code");
        let mut serve = lab.command("nas", env!("CARGO_BIN_EXE_weaklink"));
        serve.arg("serve").arg("--code-file").arg(&file);
        let mut agent = Running::start(serve).unwrap();
        agent.wait_for("listening on", PATIENCE).unwrap();
        let code = std::fs::read_to_string(file).unwrap().trim().to_owned();
        Self { lab, code, _agent: agent }
    }

    fn measure(&self, plan: UdpPlan, ways: Ways, target: &str) -> UdpSection {
        let mut command = self.lab.command("pc", std::env::current_exe().unwrap());
        command.args(["--exact", "plays_the_pc", "--nocapture", "--test-threads=1"]);
        command.env(CLIENT, serde_json::to_string(&(plan, ways, &self.code, target)).unwrap());
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let told = text.lines().find_map(|line| line.strip_prefix("TOLD "));
        let told = told.unwrap_or_else(|| panic!("{text} {}", String::from_utf8_lossy(&output.stderr)));
        serde_json::from_str(told).unwrap()
    }
}

/// Each datagram travels in a frame of its own, as on a wire, so that each is lost by itself.
fn single_frames(lab: &Lab) {
    lab.single_frames().unwrap();
    for host in ["pc", "nas"] {
        lab.inside(host, "ethtool", &["-K", "eth0", "tx-udp-segmentation", "off"]).unwrap();
    }
}

/// Drops a share of the large UDP datagrams in both directions: neither TCP nor the first small datagrams, by which iperf3 opens a
/// flow and says only once, are what is measured.
fn lose_datagrams(lab: &Lab, permille: u64) {
    let keep = (1000 - permille) * u64::from(u32::MAX) / 1000;
    // Classic BPF: the protocol of IPv4 at 14 + 9, where 17 is UDP; the length; then a random word against the threshold.
    let program = format!("8,48 0 0 23,21 0 4 17,128 0 0 0,37 0 2 1000,32 0 0 4294963256,37 1 0 {keep},6 0 0 0,6 0 0 2");
    for port in ["p1", "p2"] {
        lab.filter("sw", port, &program).unwrap();
    }
}

/// A direction in a few words, for a failure.
fn words(found: &UdpDirection) -> String {
    let passes = found.passes.iter().map(|pass| {
        format!(
            "{} sent {} received {} lost {} own {:?} queue {}",
            pass.asked_bps,
            pass.sent_bps,
            pass.received_bps,
            pass.lost,
            pass.dropped_by_receiver.measured(),
            pass.queue_p99_us
        )
    });
    let passes = passes.collect::<Vec<_>>().join("; ");
    format!("clean {:?}, loss from {:?}, {} [{passes}]", found.clean_bps, found.loss_from_bps, found.ended_because)
}

/// The shaped wire: little enough that a sender with a small share of a core fills it.
const MBIT: u64 = 500;

/// What it carries as payload of full packets: 1472 of 1500 + 38 bytes.
const CARRIES: f64 = MBIT as f64 * 1e6 * 1472.0 / 1538.0;

#[test]
fn loss_begins_where_a_shaped_link_ends() {
    let Some(_turn) = turn(false) else { return };
    let stage = Stage::new(|lab| lab.shape(MBIT, 1500).unwrap());
    let mut seen = Vec::new();
    for round in 0..ROUNDS {
        // With a good guess as from TCP, and with none.
        let presumed_bps = (round % 2 == 0).then_some(BitRate(470_000_000));
        let section = stage.measure(UdpPlan { presumed_bps, ..UdpPlan::default() }, Ways::All, NAS);
        let found: Vec<&UdpDirection> = [&section.upload, &section.download].map(|way| way.measured().unwrap()).to_vec();
        let near = |found: &&UdpDirection| {
            let clean = found.clean_bps.map_or(0.0, |rate| rate.as_f64() / CARRIES);
            let lossy = found.loss_from_bps.map_or(f64::INFINITY, |rate| rate.as_f64() / CARRIES);
            (0.94..1.03).contains(&clean) && (1.0..1.5).contains(&lossy)
        };
        if found.iter().all(near) {
            return;
        }
        seen.extend(found.into_iter().map(words));
    }
    panic!("{}", seen.join("\n"));
}

#[test]
fn loss_at_every_rate_is_no_limit_of_the_rate() {
    let Some(_turn) = turn(false) else { return };
    let stage = Stage::new(|lab| {
        single_frames(lab);
        lose_datagrams(lab, 200);
    });
    let plan = UdpPlan { presumed_bps: Some(BitRate(100_000_000)), ..UdpPlan::default() };
    let section = stage.measure(plan, Ways::All, NAS);
    for way in [&section.upload, &section.download] {
        let found = way.measured().unwrap();
        assert_eq!(found.clean_bps, None, "{}", words(found));
        assert!(found.loss_from_bps.is_some() && found.passes.len() > 2, "{}", words(found));
        assert!(found.ended_because.contains("every rate"), "{}", words(found));
        for pass in &found.passes {
            assert!((0.1..0.3).contains(&pass.network_loss()), "{}", words(found));
            assert!(pass.longest_loss >= 2 || pass.lost < 100, "{}", words(found));
        }
    }
}

#[test]
fn both_families_and_a_fixed_rate_are_measured() {
    let Some(_turn) = turn(false) else { return };
    let stage = Stage::new(|_| {});
    let plan =
        UdpPlan { rate_bps: Some(BitRate(20_000_000)), time_us: Some(Duration::from_millis(500).into()), ..UdpPlan::default() };
    for target in [NAS, "[fd78::2]:5210"] {
        let section = stage.measure(plan, Ways::All, target);
        for way in [&section.upload, &section.download] {
            let found = way.measured().unwrap();
            let [pass] = found.passes.as_slice() else { panic!("{}", words(found)) };
            assert_eq!(found.datagram_bytes, if target == NAS { 1472 } else { 1452 });
            assert!(pass.received > 100 && pass.network_loss() == 0.0, "{}", words(found));
            assert!(found.ended_because.contains("20 Mbit/s"), "{}", words(found));
            assert!(pass.cpu_pc.measured().is_some() && pass.cpu_nas.measured().is_some());
        }
    }
    // One byte more than the path carries is refused and not fragmented.
    let large = UdpPlan { datagram_bytes: Some(1473), ..plan };
    let section = stage.measure(large, Ways::Upload, NAS);
    assert!(section.upload.why().unwrap().contains("larger"), "{section:?}");
    assert!(section.download.why().unwrap().contains("not asked for"));
}

#[test]
fn iperf3_sees_the_same_loss_at_the_same_rate() {
    let Some(_turn) = turn(true) else { return };
    // Of everything a twentieth; a queue loses in bursts, which depend on the sender.
    let stage = Stage::new(|lab| {
        single_frames(lab);
        lose_datagrams(lab, 50);
    });
    let mut server = stage.lab.command("nas", "iperf3");
    server.args(["-s", "-1", "--forceflush"]);
    let mut server = Running::start(server).unwrap();
    server.wait_for("listening", PATIENCE).unwrap();
    let args = ["-c", NAS, "-u", "-b", "50M", "-l", "1472", "-t", "3", "-J"];
    let report: Value = serde_json::from_str(&stage.lab.inside("pc", "iperf3", &args).unwrap()).unwrap();
    let theirs = report["end"]["sum"]["lost_percent"].as_f64().unwrap() / 100.0;
    let section = stage.measure(UdpPlan { rate_bps: Some(BitRate(50_000_000)), ..UdpPlan::default() }, Ways::Upload, NAS);
    let ours = section.upload.measured().unwrap().passes[0].network_loss();
    // Some 12,000 datagrams each: a twentieth is known to a tenth of itself.
    assert!((ours - theirs).abs() < 0.02, "{ours} and {theirs}");
}
