//! Hearing a switch: a real LLDP frame goes over a virtual cable inside a network namespace, and weaklink listens at its end.
//!
//! Needs root and Linux. Where that is missing each test says so and is skipped; where the full suite is demanded
//! (`WEAKLINK_FULL=1`) it fails.

#![cfg(all(target_os = "linux", not(feature = "portable")))]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a skip must be seen, and a part tells its result by printing")]

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use pnet::datalink::{self, Channel, DataLinkSender};
use weaklink::link::listen;
use weaklink::model::Outcome;
use weaklink::model::link::Neighbour;
use weaklink::sys::Stop;
use weaklink::sys::packet::Frames;
use weaklink::units::Mtu;

/// The variable that names the part to play, as words: the part, then its arguments.
const PART: &str = "WEAKLINK_LLDP_PART";

/// Longer than anything takes, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);

/// An EtherType for experiments (IEEE 802, local experimental 1).
const OTHER: [u8; 2] = [0x88, 0xb5];

static NEXT: AtomicU32 = AtomicU32::new(0);

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split_whitespace()).output().map_err(|e| format!("ip: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// A namespace with two cables: `here0` to `far0`, `here1` to `far1`.
struct Cables(String);

impl Cables {
    /// None, visibly, where it cannot be built.
    fn new() -> Option<Self> {
        let cables = Self(format!("wl{}-lldp{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        let built = ip(&format!("netns add {}", cables.0)).and_then(|()| {
            for number in 0..2 {
                cables.ip(&format!("link add here{number} type veth peer name far{number}"))?;
                cables.ip(&format!("link set here{number} up"))?;
                cables.ip(&format!("link set far{number} up"))?;
            }
            Ok(())
        });
        let Err(reason) = built else { return Some(cables) };
        assert!(std::env::var("WEAKLINK_FULL").as_deref() != Ok("1"), "the full suite is demanded, but {reason}");
        eprintln!("SKIPPED: virtual cables need root and the program ip: {reason}");
        None
    }

    fn ip(&self, arguments: &str) -> Result<(), String> {
        ip(&format!("-n {} {arguments}", self.0))
    }

    /// This binary again, inside, with a part to play; `wrapper` are words before it.
    fn part(&self, wrapper: &[&str], part: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0]).args(wrapper).arg(std::env::current_exe().unwrap());
        command.args(["--exact", "plays_a_part", "--nocapture", "--test-threads=1"]);
        command.env(PART, part).stdin(Stdio::null());
        command
    }

    /// Sends a recorded frame from a port again and again, until the sender is dropped.
    fn sender(&self, port: &str, frame: &str) -> Sender {
        Sender(self.part(&[], &format!("send {port} {frame}")).stdout(Stdio::null()).spawn().unwrap())
    }

    /// What a part told, and how long it took.
    fn told(&self, wrapper: &[&str], part: &str) -> (String, Duration) {
        let began = Instant::now();
        let output = self.part(wrapper, part).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let told = said.lines().find_map(|line| line.strip_prefix("TOLD "));
        let told = told.unwrap_or_else(|| panic!("{part}: {said} {}", String::from_utf8_lossy(&output.stderr)));
        (told.to_owned(), began.elapsed())
    }

    /// What is heard at ports, whose names are joined by commas.
    fn heard(&self, ports: &str, seconds: u64) -> (Outcome<Vec<Neighbour>>, Duration) {
        let (told, time) = self.told(&[], &format!("listen {ports} {seconds}"));
        (serde_json::from_str(&told).unwrap(), time)
    }
}

impl Drop for Cables {
    fn drop(&mut self) {
        let _ = ip(&format!("netns del {}", self.0));
    }
}

struct Sender(Child);

impl Drop for Sender {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn frame(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/link/lldp/{name}.hex", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_whitespace).map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

fn output_of(port: &str) -> Box<dyn DataLinkSender> {
    let interface = datalink::interfaces().into_iter().find(|it| it.name == port).unwrap();
    let config = datalink::Config { promiscuous: false, ..datalink::Config::default() };
    let Ok(Channel::Ethernet(sender, _)) = datalink::channel(&interface, config) else { panic!("no channel at {port}") };
    sender
}

/// No test: the other tests start this binary again, inside a namespace, and name the part in the environment.
#[test]
fn plays_a_part() {
    let Ok(script) = std::env::var(PART) else { return };
    let words: Vec<&str> = script.split(' ').collect();
    match words[..] {
        ["send", port, name] => {
            let (mut sender, frame, began) = (output_of(port), frame(name), Instant::now());
            while began.elapsed() < PATIENCE {
                // A port that is down takes nothing; it may come up.
                let _ = sender.send_to(&frame, None);
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        ["listen", ports, seconds] => {
            let ports: Vec<String> = ports.split(',').map(str::to_owned).collect();
            let outcome = listen(&ports, Duration::from_secs(seconds.parse().unwrap()), &Stop::new());
            println!("\nTOLD {}", serde_json::to_string(&outcome).unwrap());
        }
        ["stopped", port] => {
            let stop = Stop::new();
            let told = std::thread::scope(|scope| {
                let listening = scope.spawn(|| listen(&[port.to_owned()], PATIENCE, &stop));
                stop.set();
                listening.join().unwrap()
            });
            println!("\nTOLD {}", serde_json::to_string(&told).unwrap());
        }
        ["sorted", from, to] => println!("\nTOLD {}", sorted(from, to)),
        ["bounced", port] => println!("\nTOLD {}", bounced(port)),
        _ => panic!("an unknown part: {script}"),
    }
}

/// Sends many frames of another type and one of LLDP; tells how many of each arrived at a receiver of LLDP.
fn sorted(from: &str, to: &str) -> String {
    let group = [0x01, 0x80, 0xc2, 0, 0, 0x0e];
    let mut frames = Frames::open(to, 0x88cc, &[group], Duration::from_millis(100)).unwrap();
    let mut sender = output_of(from);
    let (lldp, mut other) = (frame("extreme"), frame("extreme"));
    other[12..14].copy_from_slice(&OTHER);
    for _ in 0..500 {
        sender.send_to(&other, None).unwrap().unwrap();
    }
    sender.send_to(&lldp, None).unwrap().unwrap();
    let (mut count, began) = ((0, 0), Instant::now());
    while count.0 == 0 && began.elapsed() < PATIENCE {
        if let Some(frame) = frames.receive().unwrap() {
            count = if frame == lldp { (count.0 + 1, count.1) } else { (count.0, count.1 + 1) };
        }
    }
    format!("{count:?}")
}

/// Draws the cable while a receiver is open; tells whether it said so, and whether a new one can be opened then.
fn bounced(port: &str) -> String {
    let open = || Frames::open(port, 0x88cc, &[], Duration::from_millis(50));
    let mut frames = open().unwrap();
    ip(&format!("link set {port} down")).unwrap();
    let began = Instant::now();
    let mut said = false;
    while !said && began.elapsed() < PATIENCE {
        said = frames.receive().is_err();
    }
    ip(&format!("link set {port} up")).unwrap();
    format!("{said} {}", open().and_then(|mut again| again.receive().map(|_| ())).is_ok())
}

#[test]
fn a_switch_is_heard_at_once_and_says_its_largest_frame() {
    let Some(cables) = Cables::new() else { return };
    // One of each group: the nearest bridge, and the nearest customer bridge, there with a priority tag.
    for (name, chassis, largest) in [("extreme", "00:01:30:f9:ad:a0", 1522), ("jumbo_lag", "192.0.2.1", 9216)] {
        let _sender = cables.sender("far0", name);
        let (heard, time) = cables.heard("here0", PATIENCE.as_secs());
        let heard = heard.measured().unwrap_or_else(|| panic!("{name}: {heard:?}"));
        assert_eq!(heard.len(), 1, "{heard:?}");
        assert_eq!(heard[0].interface, "here0");
        assert_eq!(heard[0].chassis.as_deref(), Some(chassis));
        assert_eq!(heard[0].max_frame_bytes, Some(largest));
        assert!(time < PATIENCE / 2, "it ends when every port was heard, not after {time:?}");
    }
}

#[test]
fn every_port_of_a_bond_is_heard_even_below_a_bridge() {
    let Some(cables) = Cables::new() else { return };
    // What is above the port (a bridge stands here for a bond, which not every kernel has) does not take the frames away.
    cables.ip("link add br0 type bridge").unwrap();
    cables.ip("link set here1 master br0").unwrap();
    cables.ip("link set br0 up").unwrap();
    let _senders = [cables.sender("far0", "extreme"), cables.sender("far1", "juniper")];
    let (heard, _) = cables.heard("here0,here1", PATIENCE.as_secs());
    let heard = heard.measured().unwrap_or_else(|| panic!("{heard:?}"));
    let largest: Vec<_> = heard.iter().map(|it| (it.interface.as_str(), it.max_frame_bytes)).collect();
    assert_eq!(largest, [("here0", Some(1522)), ("here1", Some(1514))]);
}

#[test]
fn a_silent_port_costs_its_time_and_not_what_another_said() {
    let Some(cables) = Cables::new() else { return };
    let (nobody, _) = cables.heard("here0,here1", 1);
    assert!(matches!(nobody, Outcome::Failed(_)), "{nobody:?}");
    let _sender = cables.sender("far0", "juniper");
    let (heard, time) = cables.heard("here0,here1", 3);
    let heard = heard.measured().unwrap_or_else(|| panic!("{heard:?}"));
    assert!(heard.iter().all(|it| it.interface == "here0") && heard.len() == 1, "{heard:?}");
    assert!(time >= Duration::from_secs(3), "{time:?}");
    let _gone = cables.sender("far1", "shutdown");
    let (heard, _) = cables.heard("here1", 1);
    assert!(matches!(heard, Outcome::Failed(_)), "who goes away says nothing of the port: {heard:?}");
}

#[test]
fn a_switch_that_speaks_only_cdp_or_lacp_is_heard_when_the_time_is_over() {
    let Some(cables) = Cables::new() else { return };
    let _senders = [cables.sender("far0", "cdp"), cables.sender("far1", "lacp")];
    let (heard, _) = cables.heard("here0,here1", 3);
    let heard = heard.measured().unwrap_or_else(|| panic!("{heard:?}"));
    let [cdp, lacp] = &heard[..] else { panic!("{heard:?}") };
    assert_eq!((cdp.interface.as_str(), cdp.system.as_deref()), ("here0", Some("sw1.example.net")));
    assert_eq!(cdp.stated_mtu, Some(Mtu(1500)));
    assert_eq!((lacp.interface.as_str(), lacp.chassis.as_deref()), ("here1", Some("00:1b:21:aa:bb:cc")));
    assert_eq!(lacp.lacp.as_ref().map(|[actor, partner]| (actor.key, partner.key)), Some((17, 0)));
}

#[test]
fn the_word_to_stop_ends_it() {
    let Some(cables) = Cables::new() else { return };
    let (told, time) = cables.told(&[], "stopped here0");
    assert!(told.contains("skipped") && told.contains("did not speak while this ran"), "{told}");
    assert!(time < PATIENCE / 2, "{time:?}");
}

#[test]
fn the_kernel_lets_no_other_frame_through() {
    let Some(cables) = Cables::new() else { return };
    assert_eq!(cables.told(&[], "sorted far0 here0").0, "(1, 0)");
}

#[test]
fn a_cable_that_is_drawn_is_an_error_and_no_end() {
    let Some(cables) = Cables::new() else { return };
    assert_eq!(cables.told(&[], "bounced here0").0, "true true");
}

#[test]
fn without_the_right_it_says_what_would_give_it() {
    let Some(cables) = Cables::new() else { return };
    if Command::new("setpriv").arg("--version").stdout(Stdio::null()).status().is_err() {
        assert!(std::env::var("WEAKLINK_FULL").as_deref() != Ok("1"), "the full suite is demanded, but there is no setpriv");
        eprintln!("SKIPPED: giving up a right needs setpriv (package util-linux)");
        return;
    }
    let (told, _) = cables.told(&["setpriv", "--bounding-set", "-net_raw", "--inh-caps", "-net_raw"], "listen here0 60");
    assert!(told.contains("skipped") && told.contains("CAP_NET_RAW") && told.contains("lldpctl"), "{told}");
}
