//! `weaklink throughput` as people run it, against an agent on loopback: every option does what it says, and says so in the report.

#[path = "../examples/lab/net.rs"]
#[expect(dead_code, reason = "only the part that starts programs is needed here")]
mod net;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use net::Running;
use serde_json::Value;

const WEAKLINK: &str = env!("CARGO_BIN_EXE_weaklink");

/// People should see the agent's first words within this time.
const SOON: Duration = Duration::from_secs(10);

struct Agent {
    _running: Running,
    port: u16,
    code_file: PathBuf,
    _dir: tempfile::TempDir,
}

impl Agent {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let code_file = dir.path().join("code");
        let mut command = Command::new(WEAKLINK);
        command.args(["serve", "--bind", "127.0.0.1", "--port", "0"]).arg("--code-file").arg(&code_file);
        let mut running = Running::start(command).unwrap();
        let line = running.wait_for("listening on", SOON).unwrap();
        let address = line.split_whitespace().nth(2).unwrap();
        let port = address.rsplit_once(':').unwrap().1.parse().unwrap();
        Self { _running: running, port, code_file, _dir: dir }
    }

    /// Exit code, what stood on stdout, what stood on stderr.
    fn throughput(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let mut command = Command::new(WEAKLINK);
        command.arg("throughput").arg(format!("127.0.0.1:{}", self.port)).arg("--code-file").arg(&self.code_file);
        let output = command.args(args).env_remove("WEAKLINK_CODE").stdin(Stdio::null()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    /// The throughput section of a test that has to work, and stderr.
    fn measured(&self, args: &[&str]) -> (Value, String) {
        let (code, out, err) = self.throughput(&[args, &["--json"]].concat());
        assert!(code.is_some_and(|code| code < 3), "{err}");
        let document: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out} {err}"));
        (document["measurements"]["throughput"]["measured"].clone(), err)
    }
}

/// The goodput of a pass that was measured.
fn goodput(pass: &Value) -> u64 {
    pass["measured"]["goodput_bps"].as_u64().unwrap_or_else(|| panic!("no pass: {pass}"))
}

#[test]
fn each_direction_then_both_at_once_and_more_streams_while_the_sum_grows() {
    let (section, err) = Agent::start().measured(&["--time", "0.5"]);
    for direction in ["upload", "download"] {
        let way = &section[direction];
        let sweep = way["sweep"].as_array().unwrap();
        assert_eq!(sweep[0]["streams"], 1);
        assert_eq!(sweep[1]["streams"], 4, "one number of several streams is always tried");
        assert_eq!(sweep[0]["goodput_bps"].as_u64().unwrap(), goodput(&way["single"]));
        let best = sweep[1..].iter().map(|point| point["goodput_bps"].as_u64().unwrap()).max().unwrap();
        assert_eq!(best, goodput(&way["multi"]), "of all numbers the best is told");
        assert!(goodput(&section["both"]["measured"][direction]) > 0);
    }
    for words in ["PC → NAS, 1 stream", "NAS → PC, 4 streams", "both ways at once"] {
        assert!(err.contains(words), "{words} is not among the progress: {err}");
    }
}

#[test]
fn what_is_asked_of_the_sockets_is_granted_and_told() {
    let (section, _) = Agent::start().measured(&[
        "--upload",
        "--streams",
        "2",
        "--window",
        "256K",
        "--dscp",
        "46",
        "--pacing",
        "200M",
        "--mss",
        "1000",
        "--time",
        "0.8",
    ]);
    let pass = &section["upload"]["multi"]["measured"];
    assert_eq!(pass["streams"], 2);
    let method = &pass["method"];
    assert_eq!(method["mss_clamp_bytes"], 1000);
    assert_eq!(method["sender_sockets"]["pacing_bps"], 200_000_000);
    assert_eq!(method["sender_sockets"]["dscp"], 46);
    for end in ["sender_sockets", "receiver_sockets"] {
        // Linux doubles what is asked for; a system-wide limit may cut it.
        let buffer = method[end]["buffer_bytes"].as_u64().unwrap();
        assert!(buffer <= 512 << 10, "{end}: {buffer}");
    }
    // The kernel lets a burst through at the beginning; it never sends faster than that for long.
    assert!(pass["goodput_bps"].as_u64().unwrap() < 440_000_000, "{pass}");
    assert!(section["download"]["single"]["skipped"].is_object(), "only the upload was asked for");
}

#[test]
fn a_number_of_bytes_ends_a_pass_to_the_byte() {
    let begin = std::time::Instant::now();
    let (section, _) = Agent::start().measured(&["--download", "--streams", "3", "--bytes", "50MB"]);
    assert!(begin.elapsed() < Duration::from_secs(60), "nothing goes on when the bytes are through: {:?}", begin.elapsed());
    let pass = &section["download"]["multi"]["measured"];
    assert_eq!(pass["bytes"], 50_000_000);
    assert_eq!(pass["ended"], "bytes");
}

#[test]
fn both_alone_is_both_alone() {
    let (section, _) = Agent::start().measured(&["--both", "--streams", "1", "--time", "0.6"]);
    for direction in ["upload", "download"] {
        assert!(section[direction]["single"]["skipped"].is_object());
        assert!(goodput(&section["both"]["measured"][direction]) > 0);
    }
}

#[test]
fn several_congestion_controls_are_compared_and_what_ran_is_told() {
    let (section, err) =
        Agent::start().measured(&["--upload", "--streams", "1", "--time", "0.5", "--congestion", "cubic,reno,nosuch"]);
    let trials = section["congestion"]["measured"].as_array().unwrap();
    let told: Vec<&str> = trials.iter().map(|trial| trial["congestion"].as_str().unwrap()).collect();
    assert_eq!(told, ["cubic", "reno", "nosuch"]);
    for trial in &trials[..2] {
        assert!(goodput(&trial["pass"]) > 0);
    }
    assert_eq!(
        section["upload"]["single"]["measured"]["method"]["congestion"], "cubic",
        "the first one stands for its direction"
    );
    assert!(
        section["both"]["measured"].is_null() && section["upload"]["multi"]["measured"].is_null(),
        "nothing else is measured"
    );
    assert!(err.contains("PC → NAS, 1 stream, reno"), "the lines name what is compared: {err}");
    if cfg!(target_os = "linux") {
        assert!(trials[2]["pass"]["measured"].is_null(), "it did not run");
        assert!(err.contains("cannot use the congestion control nosuch"), "{err}");
    }
}

#[test]
fn controls_that_nobody_has_are_told_in_one_sentence_with_exit_code_2() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let args = ["--upload", "--time", "0.5", "--congestion", "cubic,nosuch", "--color", "never"];
    let (code, out, err) = Agent::start().throughput(&args);
    assert_eq!(code, Some(2), "{out} {err}");
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(out.starts_with("Inconclusive: cubic and nosuch were to be compared, and no two of them ran."), "{out}");
    assert!(out.contains("The PC could not use nosuch; it has") && out.contains("cubic"), "{out}");
}

#[test]
fn without_a_time_a_pass_ends_when_enough_is_known_or_its_time_is_over() {
    let (section, _) = Agent::start().measured(&["--upload", "--streams", "1"]);
    let pass = &section["upload"]["single"]["measured"];
    let ended = pass["ended"].as_str().unwrap();
    assert!(["enough", "time"].contains(&ended), "{ended}");
    if ended == "enough" {
        assert!(pass["half_width"].as_f64().unwrap() <= 0.01, "{pass}");
    }
}

#[test]
fn what_cannot_be_meant_is_told_in_one_sentence() {
    let agent = Agent::start();
    let cases: [(&[&str], &str); 10] = [
        (&["--time", "0"], "0.5 to 120 seconds"),
        (&["--time", "1000"], "0.5 to 120 seconds"),
        (&["--rate", "2G"], "--udp"),
        (&["--upload", "--download"], "cannot be used with"),
        (&["--congestion", "x y"], "no name of a congestion control"),
        (&["--congestion", "cubic,cubic"], "names cubic twice"),
        (&["--congestion", "cubic,reno", "--both"], "leave --both out"),
        (&["--together", "2"], "--session"),
        (&["--window", "1"], "4 KB to 1 GB"),
        (&["--bind", "203.0.113.7", "--time", "1"], "203.0.113.7"),
    ];
    for (args, words) in cases {
        let (code, out, err) = agent.throughput(args);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{args:?}: {err}");
        assert!(err.contains(words), "{args:?}: {err}");
    }
}
