//! The two programs as people run them: what they say when something is wrong, and what they leave behind.

#[path = "../examples/lab/net.rs"]
#[expect(dead_code, reason = "only the part that starts programs is needed here")]
mod net;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use net::Running;
use serde_json::Value;

const WEAKLINK: &str = env!("CARGO_BIN_EXE_weaklink");

/// People should know within this time that the other end is gone.
const SOON: Duration = Duration::from_secs(10);

struct Agent {
    running: Running,
    port: u16,
    code_file: PathBuf,
    dir: tempfile::TempDir,
}

impl Agent {
    /// An agent on a free port of the loopback interface.
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let code_file = dir.path().join("code");
        let share = dir.path().join("share");
        std::fs::create_dir(&share).unwrap();
        let mut command = Command::new(WEAKLINK);
        command.args(["serve", "--bind", "127.0.0.1", "--port", "0"]);
        command.arg("--dir").arg(&share).arg("--code-file").arg(&code_file);
        let mut running = Running::start(command).unwrap();
        let line = running.wait_for("listening on", SOON).unwrap();
        let address = line.split_whitespace().nth(2).unwrap();
        let port = address.rsplit_once(':').unwrap().1.parse().unwrap();
        Self { running, port, code_file, dir }
    }

    fn share(&self) -> PathBuf {
        self.dir.path().join("share")
    }

    fn client(&self, args: &[&str]) -> Command {
        let mut command = Command::new(WEAKLINK);
        command.arg("run").arg(format!("127.0.0.1:{}", self.port)).arg("--code-file").arg(&self.code_file).args(args);
        command
    }
}

fn run(args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(WEAKLINK).args(args).env_remove("WEAKLINK_CODE").stdin(Stdio::null()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn leftovers(dir: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}

const CODE: &str = "0000-1111-2222-3333";

#[test]
fn nobody_listens() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (code, out, err) = run(&["run", &format!("127.0.0.1:{port}"), "--code", CODE, "-q"]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.contains("refuses the connection") && err.contains("weaklink serve"), "{err}");
}

#[test]
fn another_program_has_the_port() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let _ = socket.write_all(b"SSH-2.0-OpenSSH_9.2p1 Debian\r\n");
        let _ = socket.read(&mut [0; 64]);
    });
    let (code, _, err) = run(&["run", &format!("127.0.0.1:{port}"), "--code", CODE, "-q"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("not as weaklink does"), "{err}");
    server.join().unwrap();
}

#[test]
fn another_version_is_told_with_both_numbers() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.read_exact(&mut [0; 16]).unwrap();
        let _ = socket.write_all(b"WEAKLINK\x00\x09\x00\x02\x04\x00\x00\x00");
    });
    let (code, _, err) = run(&["run", &format!("127.0.0.1:{port}"), "--code", CODE, "-q"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("9.2") && err.contains("3.2"), "{err}");
    server.join().unwrap();
}

#[test]
fn a_wrong_code_is_refused_and_the_agent_goes_on() {
    let agent = Agent::start();
    let target = format!("127.0.0.1:{}", agent.port);
    let (code, _, err) = run(&["run", &target, "--code", CODE, "-q"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("pairing code"), "{err}");
    let mut second = Running::start(agent.client(&["--quick"])).unwrap();
    second.wait_for("links", SOON).unwrap();
}

#[test]
fn a_missing_code_and_an_impossible_one_are_told_apart() {
    let (code, _, err) = run(&["run", "127.0.0.1"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("code is missing"), "{err}");
    let (code, _, err) = run(&["run", "127.0.0.1", "--code", "hello"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("16 letters and digits"), "{err}");
}

#[test]
fn a_second_client_is_told_who_is_being_served() {
    let agent = Agent::start();
    let mut first = Running::start(agent.client(&[])).unwrap();
    first.wait_for("TCP throughput", SOON).unwrap();
    let second = agent.client(&["-q"]).output().unwrap();
    let err = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(2));
    assert!(err.contains("busy") && err.contains("127.0.0.1 has been running"), "{err}");
}

/// The steps at which something breaks.
const STEPS: [&str; 4] = ["path MTU", "TCP throughput", "disks", "copies"];

#[test]
fn a_killed_agent_ends_the_client_soon_with_a_clear_sentence_and_the_next_start_sweeps() {
    for step in STEPS {
        let agent = Agent::start();
        let mut client = Running::start(agent.client(&["--quick"])).unwrap();
        client.wait_for(step, Duration::from_secs(40)).unwrap();
        let begun = Instant::now();
        agent.running.signal("-KILL").unwrap();
        let (code, said) = client.finish(SOON).unwrap();
        assert_eq!(code, Some(2), "{step}: {said}");
        assert!(said.contains("lost the NAS"), "{step}: {said}");
        assert!(begun.elapsed() < SOON, "{step}");
        let swept = Running::start({
            let mut command = Command::new(WEAKLINK);
            command.args(["serve", "--bind", "127.0.0.1", "--port", "0", "--dir"]).arg(agent.share());
            command
        });
        swept.unwrap().wait_for("listening on", SOON).unwrap();
        assert_eq!(leftovers(&agent.share()), Vec::<PathBuf>::new(), "{step}");
    }
}

#[test]
fn a_killed_client_frees_the_agent_soon_and_leaves_nothing() {
    for step in STEPS {
        let mut agent = Agent::start();
        let mut client = Running::start(agent.client(&["--quick"])).unwrap();
        client.wait_for(step, Duration::from_secs(40)).unwrap();
        client.signal("-KILL").unwrap();
        let line = agent.running.wait_for("ended early", SOON).unwrap_or_else(|error| panic!("{step}: {error}"));
        assert!(line.contains("127.0.0.1"), "{line}");
        assert_eq!(leftovers(&agent.share()), Vec::<PathBuf>::new(), "{step}");
    }
}

#[test]
fn who_starts_right_after_a_killed_client_does_not_hear_that_the_agent_is_busy() {
    let agent = Agent::start();
    let mut first = Running::start(agent.client(&["--quick"])).unwrap();
    first.wait_for("path MTU", SOON).unwrap();
    first.signal("-KILL").unwrap();
    let mut second = Running::start(agent.client(&["--quick"])).unwrap();
    second.wait_for("links", SOON).unwrap();
}

#[test]
fn ctrl_c_at_the_client_ends_both_with_130() {
    let mut agent = Agent::start();
    let mut client = Running::start(agent.client(&[])).unwrap();
    client.wait_for("TCP throughput", SOON).unwrap();
    client.signal("-INT").unwrap();
    let (code, said) = client.finish(SOON).unwrap();
    assert_eq!(code, Some(130), "{said}");
    agent.running.wait_for("ended early", SOON).unwrap();
    assert_eq!(leftovers(&agent.share()), Vec::<PathBuf>::new());
}

#[test]
fn ctrl_c_at_the_agent_is_told_to_the_client() {
    let agent = Agent::start();
    let mut client = Running::start(agent.client(&[])).unwrap();
    client.wait_for("TCP throughput", SOON).unwrap();
    agent.running.signal("-INT").unwrap();
    let (code, said) = client.finish(SOON).unwrap();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("the agent on the NAS was ended"), "{said}");
    assert_eq!(leftovers(&agent.share()), Vec::<PathBuf>::new());
}

#[test]
fn strangers_who_say_nothing_do_not_block_the_agent() {
    let agent = Agent::start();
    let mut strangers: Vec<_> = (0..8).map(|_| std::net::TcpStream::connect(("127.0.0.1", agent.port)).unwrap()).collect();
    for stranger in &mut strangers {
        let _ = stranger.write_all(b"GET / HTTP/1.1\r\nHost: nas\r\n\r\n");
    }
    let mut client = Running::start(agent.client(&["--quick"])).unwrap();
    client.wait_for("links", SOON).unwrap();
}

#[test]
fn a_port_in_use_and_a_missing_directory_are_one_sentence_each() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let (code, _, err) = run(&["serve", "--bind", "127.0.0.1", "--port", &port]);
    assert_eq!(code, Some(2));
    assert!(err.contains("failed to listen on 127.0.0.1") && err.contains("--port"), "{err}");
    let (code, _, err) = run(&["serve", "--dir", "/nonexistent/weaklink"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("/nonexistent/weaklink"), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
}

#[test]
fn the_code_file_is_for_its_owner_only() {
    let agent = Agent::start();
    let text = std::fs::read_to_string(&agent.code_file).unwrap();
    assert_eq!(text.trim().len(), 19);
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&agent.code_file).unwrap());
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_local_run_keeps_stdout_clean_and_judges_again_to_the_same_verdict() {
    let dir = tempfile::tempdir().unwrap();
    let share = dir.path().join("share");
    std::fs::create_dir(&share).unwrap();
    let report = dir.path().join("report.json");
    let args = ["run", "--local", "--quick", "--json", "--dir", share.to_str().unwrap(), "-o", report.to_str().unwrap()];
    let (code, out, err) = run(&args);
    let document: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out} {err}"));
    assert!(matches!(code, Some(0 | 1)), "{err}");
    assert_eq!(document["schema"]["name"], "weaklink.report");
    assert_eq!(document["plan"]["local"], true);
    for part in ["link", "mtu", "throughput", "cpu", "storage", "copy"] {
        assert!(document["measurements"][part]["measured"].is_object(), "{part}: {}", document["measurements"][part]);
    }
    assert_ne!(document["verdict"]["component"], "network", "loopback is no evidence about a cable");
    assert_eq!(leftovers(&share), Vec::<PathBuf>::new());
    let (again, out, _) = run(&["judge", report.to_str().unwrap(), "--json"]);
    let judged: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(again, code);
    assert_eq!(judged["verdict"], document["verdict"]);
    for format in ["text", "markdown", "json"] {
        let (_, out, _) = run(&["report", report.to_str().unwrap(), "--format", format]);
        assert!(out.len() > 200, "{format}");
    }
}

#[test]
fn every_code_can_be_explained_and_an_unknown_one_is_told() {
    let (code, list, _) = run(&["explain"]);
    assert_eq!(code, Some(0));
    assert!(list.lines().count() > 20);
    for line in list.lines() {
        let (code, text, _) = run(&["explain", line.split_whitespace().next().unwrap()]);
        assert_eq!(code, Some(0), "{line}");
        assert!(text.contains("How to fix it"), "{line}");
    }
    let (code, _, err) = run(&["explain", "mtu-black"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("network.mtu-black-hole"), "{err}");
}

#[test]
fn a_file_that_is_no_report_is_one_clear_sentence() {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in
        [("empty", ""), ("text", "hello"), ("other", "{\"schema\":{\"name\":\"x\",\"version\":{\"major\":1,\"minor\":0}}}")]
    {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        let (code, out, err) = run(&["judge", path.to_str().unwrap()]);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{name}");
        assert_eq!(err.lines().count(), 1, "{name}: {err}");
    }
}

#[test]
fn wrong_use_is_told_before_anything_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().to_str().unwrap();
    for (args, word) in [
        (vec!["run", "nas", "--code", CODE, "--dir", here], "--local"),
        (vec!["run", "--local", "--max-data", "1"], "--max-data"),
        (vec!["run", "--local", "-o", here], "directory"),
        (vec!["run", "--local", "-o", "/nonexistent/weaklink/x.json"], "directory"),
        (vec!["run", "--local", "--link-speed", "pc=fast"], "2.5G"),
        (vec!["run", "--local", "--link-speed", "router=1G"], "pc=SPEED"),
        (vec!["run", "nas", "--code", CODE, "--ssh", "-oProxyCommand=x"], "--ssh"),
        (vec!["run", "nas:0", "--code", CODE], "nas:0"),
    ] {
        let begun = Instant::now();
        let (code, out, err) = run(&args);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{args:?}: {err}");
        assert!(err.contains(word), "{args:?}: {err}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{args:?}");
    }
}

#[test]
fn a_second_run_right_after_the_first_is_served() {
    let agent = Agent::start();
    for _ in 0..2 {
        let output = agent.client(&["--quick", "-q", "--json"]).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(!output.stdout.is_empty(), "{err}");
        assert_eq!(leftovers(&agent.share()), Vec::<PathBuf>::new(), "nothing is left when the client is back");
    }
}

fn mtu(agent: &Agent, args: &[&str]) -> (Option<i32>, Value, String) {
    let output = Command::new(WEAKLINK)
        .arg("mtu")
        .arg(format!("127.0.0.1:{}", agent.port))
        .arg("--code-file")
        .arg(&agent.code_file)
        .args(["--json", "-q"])
        .args(args)
        .output()
        .unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {err}")), err)
}

#[test]
fn the_path_mtu_alone_takes_seconds_and_leaves_the_agent_free() {
    let agent = Agent::start();
    let start = Instant::now();
    let (code, report, err) = mtu(&agent, &[]);
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    assert_eq!(report["plan"]["scope"], "mtu", "{err}");
    let found = &report["measurements"]["mtu"]["measured"];
    for way in ["upload", "download"] {
        assert_eq!(found[way]["measured"]["limited_by"]["kind"], "local_interface", "{}", found[way]);
        assert_eq!(found[way]["measured"]["mtu"], 65_535);
    }
    let ends = &found["handshake"]["measured"];
    assert_eq!(ends["pc"]["measured"]["advertised_mss_bytes"], ends["nas"]["measured"]["advertised_mss_bytes"]);
    assert!(report["measurements"]["throughput"]["skipped"].is_object());
    assert_eq!((code, &report["verdict"]["code"]), (Some(0), &Value::from("none.mtu-consistent")), "{}", report["verdict"]);
    let (again, _, _) = mtu(&agent, &["-4"]);
    assert_eq!(again, Some(0));
}

#[test]
fn one_end_alone_says_what_it_could_not_see() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let (code, out, err) = run(&["mtu", "127.0.0.1", "--no-agent", "--tcp-port", &port, "--json", "-q"]);
    let report: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {err}"));
    assert_eq!(report["plan"]["scope"], "mtu_without_agent");
    let found = &report["measurements"]["mtu"]["measured"];
    assert!(found["upload"]["skipped"]["reason"].as_str().is_some_and(|why| why.contains("weaklink serve")));
    let service = &found["services"]["measured"][0];
    assert_eq!(service["port"].to_string(), port);
    if cfg!(target_os = "linux") {
        assert!(service["result"]["measured"]["end"]["advertised_mss_bytes"].as_u64().is_some_and(|mss| mss > 1000), "{service}");
    }
    // Without a ping socket and without privilege nothing is known, and that is no success.
    match found["echo"]["measured"]["path"]["mtu"].as_u64() {
        Some(mtu) => assert_eq!((code, mtu), (Some(0), 65_535), "{}", report["verdict"]),
        None => assert_eq!(code, Some(2), "{}", report["verdict"]),
    }
}

#[test]
fn what_does_not_go_together_is_refused_in_words() {
    for (args, word) in [
        (&["mtu", "127.0.0.1", "--no-agent", "--gain"][..], "--gain"),
        (&["mtu", "127.0.0.1", "--tcp-port", "22"], "--no-agent"),
        (&["mtu", "127.0.0.1", "-4", "-6"], "--ipv6"),
        (&["mtu", "127.0.0.1", "--no-agent", "-6"], "is an IPv4 address"),
        (&["run", "127.0.0.1", "-6", "--code", CODE], "is an IPv4 address"),
        (&["mtu", "no such host", "--no-agent"], "is no host"),
    ] {
        let (code, out, err) = run(args);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{args:?}: {err}");
        assert!(err.contains(word), "{args:?}: {err}");
    }
}
