//! `weaklink mtu` on built paths of a known MTU: what it finds in each direction and family, who limits it and where, what it
//! answers, and what that costs in probes and time.
//!
//! Needs root and Linux. Where that is missing each test says so and is skipped; where the full suite is demanded
//! (`WEAKLINK_FULL=1`) it fails.

#![expect(clippy::print_stderr, reason = "a skip must be seen")]

#[path = "../examples/lab/middle.rs"]
mod middle;
#[expect(dead_code, reason = "disks and quotas are for the lab's faults")]
#[path = "../examples/lab/net.rs"]
mod net;
#[path = "../examples/lab/paths.rs"]
mod paths;

use std::io::Read as _;
use std::net::{Ipv6Addr, TcpListener};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use net::Running;
use paths::{Built, By, Family, Path, Truth};
use serde_json::Value;

/// One network at a time: two would share the cores and measure each other.
static ONE: Mutex<()> = Mutex::new(());

/// A busy machine disturbs one round; it does not disturb one of three alike.
const ROUNDS: usize = 3;

/// The promise: probes of one direction, and its time on a clean path and through a black hole.
const MOST_PROBES: u64 = 60;
const CLEAN: Duration = Duration::from_secs(1);
const HOLE: Duration = Duration::from_secs(4);

/// The longest that a whole command may take, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);

/// The variable that makes this program a TCP service of the NAS, on the port that it names.
const SERVICE: &str = "WEAKLINK_SERVICE";
/// Of SMB: to an unknown service nothing is sent.
const SERVICE_PORT: &str = "445";

/// The turn to build a network, if one can be built here; a visible skip, or a failure where the full suite is demanded.
fn turn() -> Option<MutexGuard<'static, ()>> {
    if let Some(reason) = net::missing() {
        assert!(std::env::var("WEAKLINK_FULL").as_deref() != Ok("1"), "the full suite is demanded, but {reason}");
        eprintln!("SKIPPED: {reason}");
        return None;
    }
    Some(ONE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// No test: the other tests start this binary again, inside a host.
#[test]
fn becomes_the_box_in_the_wire() {
    middle::play().unwrap();
}

/// No test: a TCP service that takes everything and says nothing.
#[test]
#[expect(clippy::print_stdout, reason = "an end tells by printing")]
fn becomes_a_service() {
    let Ok(port) = std::env::var(SERVICE) else { return };
    let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port.parse::<u16>().unwrap())).unwrap();
    println!("\nTHE SERVICE WORKS");
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { continue };
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while stream.read(&mut buffer).is_ok_and(|count| count > 0) {}
        });
    }
}

/// A path with an agent and a TCP service at the NAS.
struct Stage {
    built: Built,
    code: PathBuf,
    _agent: Running,
    _service: Running,
}

impl Stage {
    fn new(path: &Path) -> Self {
        let built = path.build().unwrap();
        let code = built.lab.dir().join("code");
        let mut serve = built.lab.command("nas", env!("CARGO_BIN_EXE_weaklink"));
        serve.arg("serve").arg("--code-file").arg(&code);
        let mut agent = Running::start(serve).unwrap();
        let mut service = built.lab.command("nas", std::env::current_exe().unwrap());
        service.args(["--exact", "becomes_a_service", "--nocapture", "--test-threads=1"]).env(SERVICE, SERVICE_PORT);
        let mut service = Running::start(service).unwrap();
        agent.wait_for("listening on", PATIENCE).unwrap();
        service.wait_for("THE SERVICE WORKS", PATIENCE).unwrap();
        Self { built, code, _agent: agent, _service: service }
    }

    fn host(&self, family: Family) -> String {
        let nas = self.built.nas(family);
        if family == Family::V6 { format!("[{nas}]:5210") } else { nas }
    }

    /// Both ends together.
    fn together(&mut self, family: Family) -> (i32, Value) {
        self.built.refresh().unwrap();
        let mut command = self.command(family);
        command.args(["--trace", "--code-file"]).arg(&self.code);
        report(command)
    }

    /// The PC alone.
    fn alone(&mut self, family: Family) -> (i32, Value) {
        self.built.refresh().unwrap();
        let mut command = self.command(family);
        command.args(["--no-agent", "--tcp-port", SERVICE_PORT]);
        report(command)
    }

    /// How many echo requests a host's kernel has received.
    fn echo_requests(&self, host: &str, family: Family) -> u64 {
        let file = if family == Family::V4 { "/proc/net/snmp" } else { "/proc/net/snmp6" };
        let text = self.built.lab.inside(host, "cat", &[file]).unwrap();
        let count = if family == Family::V4 {
            // A line of names, then one of numbers.
            let mut lines = text.lines().filter(|line| line.starts_with("Icmp:")).map(str::split_whitespace);
            let names = lines.next().unwrap();
            names.zip(lines.next().unwrap()).find(|(name, _)| *name == "InEchos").map(|(_, count)| count)
        } else {
            text.lines().find_map(|line| line.strip_prefix("Icmp6InEchos")).map(str::trim)
        };
        count.unwrap().parse().unwrap()
    }

    fn command(&self, family: Family) -> Command {
        let mut command = self.built.lab.command("pc", env!("CARGO_BIN_EXE_weaklink"));
        command.args(["mtu", &self.host(family), "--json", "-q"]);
        command
    }
}

/// Runs a command to its end; gives its exit code and its report.
fn report(mut command: Command) -> (i32, Value) {
    let begun = Instant::now();
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}; it said: {said}"));
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    (output.status.code().unwrap_or(-1), report)
}

/// The section of the path MTU.
fn section(report: &Value) -> &Value {
    &report["measurements"]["mtu"]["measured"]
}

fn answer(report: &Value) -> &str {
    report["verdict"]["code"].as_str().unwrap_or_default()
}

/// Whether a finding is among all that were made.
fn found_too(report: &Value, code: &str) -> bool {
    report["findings"].as_array().is_some_and(|findings| findings.iter().any(|finding| finding["code"] == code))
}

/// One direction on a stage, with what is true of it.
struct Way<'a> {
    built: &'a Built,
    name: String,
    upload: bool,
    family: Family,
    truth: Truth,
}

impl Way<'_> {
    /// What must be right in every round.
    fn check(&self, found: &Value) {
        let name = &self.name;
        assert_eq!(found["mtu"], self.truth.mtu, "{name}: {found:#}");
        let by = &found["limited_by"];
        match self.truth.by {
            By::Own => assert_eq!(by["kind"], "local_interface", "{name}: {found:#}"),
            By::Router(distance) => {
                assert_eq!(by["kind"], "router", "{name}: {found:#}");
                let router = self.built.router(self.upload, distance, self.family);
                assert_eq!(address(&by["address"]), address(&Value::from(router)), "{name}: {found:#}");
                assert_eq!(by["next_hop_mtu"], self.truth.mtu, "{name}");
            }
            By::Silence(reached, missing) => {
                assert_eq!(by["kind"], "silent", "{name}: {found:#}");
                let location = &found["location"]["measured"];
                assert_eq!(location["reached"], reached, "{name}: {:#}", found["location"]);
                assert_eq!(location["missing"], missing, "{name}: {location:#}");
                assert_eq!(location["peer_at"], self.built.peer_at(), "{name}: {location:#}");
                for hop in location["hops"].as_array().unwrap().iter().filter(|hop| !hop["address"].is_null()) {
                    let router = self.built.router(self.upload, hop["ttl"].as_u64().unwrap() as u8, self.family);
                    assert_eq!(address(&hop["address"]), address(&Value::from(router)), "{name}: {location:#}");
                }
            }
        }
        assert!(found["change"].is_null(), "{name}: {:#}", found["change"]);
    }

    /// What a busy machine may disturb: the promise of time and probes.
    fn broken_promise(&self, found: &Value) -> Option<String> {
        let most = if matches!(self.truth.by, By::Silence(..)) { HOLE } else { CLEAN };
        let probes = found["probes"].as_u64().unwrap();
        let elapsed = Duration::from_micros(found["elapsed_us"].as_u64().unwrap());
        (probes > MOST_PROBES || elapsed > most).then(|| format!("{}: {probes} probes in {elapsed:?}", self.name))
    }
}

/// An address that is written in any way.
fn address(text: &Value) -> std::net::IpAddr {
    text.as_str().unwrap_or_default().parse().unwrap_or_else(|_| panic!("no address: {text}"))
}

/// Checks a path with both ends together, in one family.
fn check_together(stage: &mut Stage, path: &Path, family: Family) {
    let mut seen = Vec::new();
    for _ in 0..ROUNDS {
        let (code, report) = stage.together(family);
        let name = format!("{} ({family:?})", path.name);
        let mut broken = 0;
        for (direction, truth) in [("upload", path.upload), ("download", path.download)] {
            let name = format!("{name}, {direction}");
            let found = &section(&report)[direction]["measured"];
            assert!(found.is_object(), "{name}: {:#}", section(&report)[direction]);
            let way = Way { built: &stage.built, name, upload: direction == "upload", family, truth };
            way.check(found);
            seen.extend(way.broken_promise(found).inspect(|_| broken += 1));
        }
        assert!(path.answer.contains(&answer(&report)), "{name}: {} {:#}", report["verdict"], report["findings"]);
        assert_eq!(code, i32::from(!answer(&report).starts_with("none.")), "{name}: {}", report["verdict"]);
        if broken == 0 {
            return;
        }
    }
    panic!("at most {MOST_PROBES} probes in {CLEAN:?}, or {HOLE:?} through a hole, are promised: {}", seen.join("; "));
}

/// Checks what the PC knows alone: ICMP echo sees both ways at once, and a TCP service the way there.
fn check_alone(stage: &mut Stage, path: &Path, family: Family) {
    let (_, report) = stage.alone(family);
    let name = format!("{} ({family:?}), alone", path.name);
    let echo = &section(&report)["echo"]["measured"]["path"];
    assert_eq!(echo["mtu"], path.upload.mtu.min(path.download.mtu), "{name}: {:#}", section(&report)["echo"]);
    let service = &section(&report)["services"]["measured"][0];
    assert_eq!(service["port"].to_string(), SERVICE_PORT, "{name}: {service:#}");
    let result = &service["result"]["measured"];
    match path.upload.by {
        By::Own => {
            assert_eq!(result["acknowledged"], true, "{name}: {service:#}");
            assert_eq!(result["packet"], path.upload.mtu, "{name}: {service:#}");
        }
        By::Router(_) => assert_eq!(result["pmtu_after"], path.upload.mtu, "{name}: {service:#}"),
        By::Silence(..) => assert_eq!(result["acknowledged"], false, "{name}: {service:#}"),
    }
}

/// The path is what it claims to be, by another program: echo requests of a size arrive, one byte more do not. The receiver's
/// kernel counts, so each direction stands for itself.
fn check_path(stage: &Stage, path: &Path, family: Family) {
    let (nas, pc) = (stage.built.nas(family), stage.built.pc(family));
    for (truth, from, to, target) in [(path.upload, "pc", "nas", nas), (path.download, "nas", "pc", pc)] {
        // IPv4 and IPv6 headers have 20 and 40 bytes, that of an echo request 8.
        let payload = truth.mtu - if family == Family::V4 { 28 } else { 48 };
        let arrives = |payload: u32| {
            let before = stage.echo_requests(to, family);
            let ping = ["-n", "-q", "-c", "1", "-W", "0.2", "-M", "do", "-s", &payload.to_string(), &target];
            // It fails where only the answer is lost, or where its own kernel knows better.
            let _ = stage.built.lab.inside(from, "ping", &ping);
            stage.echo_requests(to, family) > before
        };
        let name = format!("{} ({family:?}), from the {from}", path.name);
        assert!((0..ROUNDS).any(|_| arrives(payload)), "{name}: {} bytes do not arrive", truth.mtu);
        // What its own interface does not let out needs no proof.
        assert!(truth.by == By::Own || !arrives(payload + 1), "{name}: {} bytes arrive", truth.mtu + 1);
    }
}

/// Both ways of looking at some of the paths.
fn check(names: impl Fn(&str) -> bool) {
    let Some(_turn) = turn() else { return };
    let chosen: Vec<&Path> = paths::PATHS.iter().filter(|path| names(path.name)).collect();
    assert!(!chosen.is_empty());
    for (at, path) in chosen.into_iter().enumerate() {
        let mut stage = Stage::new(path);
        for family in [Family::V4, Family::V6] {
            check_path(&stage, path, family);
            check_together(&mut stage, path, family);
        }
        // Alone it takes longer, and the families share the code: they take turns.
        check_alone(&mut stage, path, if at % 2 == 0 { Family::V4 } else { Family::V6 });
    }
}

#[test]
fn a_clean_path_carries_what_the_interfaces_let_out() {
    check(|name| name.starts_with("clean"));
}

#[test]
fn a_silent_switch_is_found_in_the_direction_that_it_drops() {
    check(|name| name.starts_with("silent switch"));
}

#[test]
fn a_router_that_says_so_is_named() {
    check(|name| name.ends_with("says so"));
}

#[test]
fn silence_on_a_routed_path_is_placed_between_two_hops() {
    check(|name| name.starts_with("3 routers") && !name.ends_with("says so"));
}

#[test]
fn a_silent_tunnel_is_placed_between_its_ends() {
    check(|name| name.starts_with("VXLAN"));
}

#[test]
fn much_loss_is_not_taken_for_a_smaller_mtu() {
    let Some(_turn) = turn() else { return };
    let path = &paths::LOSSY;
    let mut stage = Stage::new(path);
    let (_, report) = stage.together(Family::V4);
    for (direction, truth) in [("upload", path.upload), ("download", path.download)] {
        let outcome = &section(&report)[direction];
        if let Some(reason) = outcome["failed"]["reason"].as_str() {
            // With a third of all probes unanswered luck decides whether the time suffices; then it is said.
            assert!(reason.contains("undecided"), "{direction}: {reason}");
            continue;
        }
        assert_eq!(outcome["measured"]["mtu"], truth.mtu, "{direction}: {outcome:#}");
        assert_eq!(outcome["measured"]["limited_by"]["kind"], "silent", "{direction}");
    }
}

#[test]
fn an_mtu_that_falls_while_it_is_probed_is_told_as_a_change() {
    let Some(_turn) = turn() else { return };
    let path = &paths::LOWERED;
    let mut stage = Stage::new(path);
    for family in [Family::V4, Family::V6] {
        let (_, report) = stage.together(family);
        for (direction, truth) in [("upload", path.upload), ("download", path.download)] {
            let found = &section(&report)[direction]["measured"];
            assert_eq!(found["mtu"], truth.mtu, "{family:?}, {direction}: {:#}", section(&report)[direction]);
            assert_eq!(found["change"]["to"], truth.mtu, "{family:?}, {direction}");
        }
        assert!(path.answer.contains(&answer(&report)), "{family:?}: {} {:#}", report["verdict"], report["findings"]);
        assert!(found_too(&report, "network.mtu-changed"), "{family:?}: {:#}", report["findings"]);
    }
}

#[test]
fn a_router_that_names_a_wrong_mtu_is_not_believed() {
    let Some(_turn) = turn() else { return };
    let path = &paths::LIAR;
    let mut stage = Stage::new(path);
    for family in [Family::V4, Family::V6] {
        let (_, report) = stage.together(family);
        let found = &section(&report)["upload"]["measured"];
        assert_eq!(found["mtu"], path.upload.mtu, "{family:?}: {found:#}");
        let words = found["words"].as_array().unwrap();
        assert!(words.iter().any(|word| word["next_hop_mtu"] == 8000), "{family:?}: {words:#?}");
        assert_eq!(section(&report)["download"]["measured"]["mtu"], path.download.mtu, "{family:?}");
    }
}

#[test]
fn a_router_that_names_a_wrong_mtu_is_the_answer() {
    let Some(_turn) = turn() else { return };
    let path = &paths::LIAR;
    let mut stage = Stage::new(path);
    for family in [Family::V4, Family::V6] {
        let (code, report) = stage.together(family);
        assert!(path.answer.contains(&answer(&report)), "{family:?}: {} {:#}", report["verdict"], report["findings"]);
        assert_eq!(code, 1, "{family:?}: {}", report["verdict"]);
    }
}

#[test]
fn a_box_that_clamps_segments_is_told_from_a_smaller_mtu() {
    let Some(_turn) = turn() else { return };
    let path = &paths::CLAMPED;
    let mut stage = Stage::new(path);
    for family in [Family::V4, Family::V6] {
        check_together(&mut stage, path, family);
        let (_, report) = stage.together(family);
        let handshake = &section(&report)["handshake"]["measured"];
        for end in ["pc", "nas"] {
            let end = &handshake[end]["measured"];
            let granted = end["send_mss_bytes"].as_u64().unwrap() + end["option_bytes"].as_u64().unwrap();
            assert_eq!(granted, 1360, "{family:?}: {handshake:#}");
        }
        assert!(found_too(&report, "network.mss-clamped"), "{family:?}: {:#}", report["findings"]);
    }
}
