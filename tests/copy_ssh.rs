//! The SSH lane against a real sshd on loopback, with keys of its own. Without sshd the tests say that they did nothing.

use std::fs;
use std::io::Read as _;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use weaklink::copy::{CopySpec, LaneDriver, Progress, RungPlan, Ssh, SshOptions};
use weaklink::model::copy::{Copied, FileSet, LaneKind};
use weaklink::model::{Direction, Outcome};
use weaklink::sys::Stop;
use weaklink::units::ByteSize;

const SECONDS: Duration = Duration::from_secs(30);

/// A server that ends with the test.
struct Server {
    dir: TempDir,
    port: u16,
    child: Child,
}

/// Starts one with further lines of configuration; none when the machine has no sshd, which must be said.
#[expect(clippy::print_stderr, reason = "a test that does nothing must be seen")]
fn server(more: &str) -> Option<Server> {
    let Some(sshd) = ["/usr/sbin/sshd", "/usr/local/sbin/sshd"].into_iter().find(|path| Path::new(path).exists()) else {
        assert!(std::env::var_os("WEAKLINK_FULL").is_none(), "the full suite needs sshd: install openssh-server");
        eprintln!("SKIPPED: there is no sshd on this machine (openssh-server)");
        return None;
    };
    // sshd's own place for privilege separation; a package makes it at boot only. Without root it is not needed.
    let _ = fs::create_dir_all("/run/sshd");
    let dir = tempfile::tempdir().unwrap();
    for key in ["host", "client", "stranger"] {
        let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(dir.path().join(key)).status();
        assert!(made.unwrap().success());
    }
    fs::copy(dir.path().join("client.pub"), dir.path().join("authorized")).unwrap();
    fs::create_dir(dir.path().join("data")).unwrap();
    // A port that was free a moment ago may be taken; then sshd ends at once and another is tried.
    for _ in 0..20 {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let at = dir.path().display();
        let mut config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {at}/host\nPidFile none\nAuthorizedKeysFile {at}/authorized\n\
             UsePAM no\nStrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nMaxStartups 100\n{more}\n"
        );
        if !more.contains("Subsystem") {
            config.push_str("Subsystem sftp internal-sftp\n");
        }
        fs::write(dir.path().join("sshd_config"), config).unwrap();
        let known = fs::read_to_string(dir.path().join("host.pub")).unwrap();
        fs::write(dir.path().join("known"), format!("[127.0.0.1]:{port} {known}")).unwrap();
        let log = fs::File::create(dir.path().join("log")).unwrap();
        let mut child = Command::new(sshd)
            .args(["-D", "-e", "-f"])
            .arg(dir.path().join("sshd_config"))
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        if answers(port, &mut child) {
            return Some(Server { dir, port, child });
        }
        let _ = child.kill();
        let _ = child.wait();
    }
    panic!("sshd does not start: {}", fs::read_to_string(dir.path().join("log")).unwrap_or_default());
}

/// Waits for the greeting, or for the end of the server.
fn answers(port: u16, child: &mut Child) -> bool {
    let deadline = Instant::now() + SECONDS;
    while Instant::now() < deadline && child.try_wait().unwrap().is_none() {
        if let Ok(mut conn) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
            conn.set_read_timeout(Some(SECONDS)).unwrap();
            let mut greeting = [0; 4];
            return conn.read_exact(&mut greeting).is_ok() && &greeting == b"SSH-";
        }
        std::thread::yield_now();
    }
    false
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn options(&self, key: &str, more: &[&str]) -> SshOptions {
        let at = |name: &str| self.dir.path().join(name).display().to_string();
        let mut options = vec![
            format!("IdentityFile={}", at(key)),
            "IdentitiesOnly=yes".to_owned(),
            "IdentityAgent=none".to_owned(),
            format!("UserKnownHostsFile={}", at("known")),
            "GlobalKnownHostsFile=/dev/null".to_owned(),
            "StrictHostKeyChecking=yes".to_owned(),
        ];
        options.extend(more.iter().map(|option| (*option).to_owned()));
        SshOptions { config: Some(PathBuf::from("/dev/null")), options, ..SshOptions::default() }
    }

    fn lane(&self, dir: &str, more: &[&str]) -> Ssh {
        Ssh::new(self.target(dir), self.options("client", more), spec())
    }

    fn target(&self, dir: &str) -> weaklink::copy::Target {
        format!("ssh://127.0.0.1:{}{dir}", self.port).parse().unwrap()
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }
}

fn spec() -> CopySpec {
    CopySpec { seed: 9, max_bytes: ByteSize(20_000_003), small_files: 30 }
}

fn run(lane: &mut Ssh, plan: RungPlan, budget: Duration) -> Outcome<Copied> {
    lane.run(&plan, budget, &Stop::new(), &Progress::new())
}

fn refused(mut lane: Ssh, parts: &[&str]) {
    let start = Instant::now();
    let why = lane.open(&Stop::new()).expect_err("this login must not work");
    for part in parts {
        assert!(why.contains(part), "{part:?} is not in: {why}");
    }
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[test]
fn files_go_up_come_back_are_compared_and_removed() {
    let Some(server) = server("") else { return };
    let mut lane = server.lane(&server.data().display().to_string(), &["Ciphers=aes128-gcm@openssh.com"]);
    assert_eq!(lane.kind(), LaneKind::Ssh);
    let opened = lane.open(&Stop::new()).unwrap();
    let value = |name: &str| opened.facts.iter().find(|fact| fact.name == name).map(|fact| fact.value.as_str());
    assert_eq!(value("cipher_upload"), Some("aes128-gcm@openssh.com"));
    assert_eq!(value("cipher_download"), Some("aes128-gcm@openssh.com"));
    assert_eq!(value("compression"), Some("none"));
    assert_eq!(value("login"), Some("publickey"));
    assert!(value("synced").is_some_and(|synced| synced.contains("end")));
    assert!(lane.child_pid().is_some() && !lane.child_pids().is_empty());
    for plan in lane.rungs() {
        let result = run(&mut lane, plan, SECONDS);
        let copied = result.measured().unwrap_or_else(|| panic!("{plan:?}: {result:?}"));
        match (plan.direction, plan.files) {
            (_, FileSet::Large) => assert_eq!(copied.bytes, ByteSize(20_000_003)),
            (_, FileSet::Small) => {
                assert_eq!(copied.files, 30);
                assert!(copied.per_file_us.is_some_and(|time| time.0 > 0));
            }
        }
        if plan.direction == Direction::Download {
            assert!(copied.verified_bytes.measured().is_some_and(|bytes| bytes.0 > 0), "{:?}", copied.verified_bytes);
        }
    }
    for plan in lane.rungs().into_iter().filter(|plan| plan.direction == Direction::Upload) {
        assert!(run(&mut lane, plan, SECONDS).measured().is_some(), "a repeat begins anew");
    }
    assert_eq!(fs::read_dir(server.data()).unwrap().count(), 1);
    lane.close();
    assert_eq!(fs::read_dir(server.data()).unwrap().count(), 0);
    assert!(lane.facts().iter().any(|fact| fact.name == "cipher_upload"), "what was negotiated stays known");
}

#[test]
fn without_a_directory_nothing_is_stored_and_small_files_are_skipped() {
    let Some(server) = server("") else { return };
    let mut lane = server.lane("", &["Ciphers=chacha20-poly1305@openssh.com"]);
    let opened = lane.open(&Stop::new()).unwrap();
    assert!(opened.facts.iter().any(|fact| fact.name == "cipher_upload" && fact.value == "chacha20-poly1305@openssh.com"));
    for plan in lane.rungs() {
        let result = run(&mut lane, plan, Duration::from_millis(600));
        match plan.files {
            FileSet::Large => {
                let copied = result.measured().unwrap_or_else(|| panic!("{plan:?}: {result:?}"));
                assert!(copied.bytes.0 > 0 && copied.elapsed_us.0 >= 600_000);
            }
            FileSet::Small => assert!(matches!(result, Outcome::Skipped(why) if why.reason.contains("directory"))),
        }
    }
    assert_eq!(fs::read_dir(server.data()).unwrap().count(), 0);
}

#[test]
fn a_directory_that_is_not_there_is_not_made() {
    let Some(server) = server("") else { return };
    let dir = server.data().join("absent");
    refused(server.lane(&dir.display().to_string(), &[]), &["no directory", "absent"]);
    assert!(!dir.exists());
    fs::write(server.data().join("file"), b"x").unwrap();
    refused(server.lane(&server.data().join("file").display().to_string(), &[]), &["not a directory"]);
}

#[test]
fn logins_that_do_not_work_say_what_to_do() {
    let Some(server) = server("") else { return };
    let stranger = Ssh::new(server.target(""), server.options("stranger", &[]), spec());
    refused(stranger, &["refused the login", "publickey", "never asks for a password"]);
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let nobody = format!("ssh://127.0.0.1:{free}").parse().unwrap();
    refused(Ssh::new(nobody, server.options("client", &[]), spec()), &["Connection refused"]);
    refused(server.lane("", &["Nonsense=yes"]), &["Bad configuration option"]);
    refused(server.lane("", &["Ciphers=3des-cbc"]), &["no matching cipher"]);
}

#[test]
fn an_unknown_and_a_changed_host_key_are_told_apart() {
    let Some(server) = server("") else { return };
    let known = server.dir.path().join("known");
    let right = fs::read_to_string(&known).unwrap();
    fs::write(&known, "").unwrap();
    let port = server.port.to_string();
    let (told, typed) = (format!("(port {port}) is not known yet"), format!("-p {port} "));
    let known_hosts = format!("-o UserKnownHostsFile={}", known.display());
    refused(server.lane("", &[]), &[&told, "confirm", "`ssh -F /dev/null -o ", &known_hosts, &typed]);
    let other = fs::read_to_string(server.dir.path().join("stranger.pub")).unwrap();
    fs::write(&known, format!("{} {other}", right.split(' ').next().unwrap())).unwrap();
    refused(server.lane("", &[]), &["not the one that is known"]);
}

#[test]
fn a_server_without_sftp_is_said_so() {
    let Some(server) = server("Subsystem other internal-sftp") else { return };
    refused(server.lane("", &[]), &["offers no SFTP"]);
}

#[test]
fn an_sftp_that_answers_nonsense_is_said_so() {
    let Some(server) = server("Subsystem sftp /bin/echo Welcome to this server, please mind the gap") else { return };
    refused(server.lane("", &[]), &["127.0.0.1"]);
}

#[test]
fn a_server_that_is_killed_half_way_is_a_clear_failure_within_seconds() {
    let Some(server) = server("") else { return };
    let mut lane = server.lane("", &[]);
    lane.open(&Stop::new()).unwrap();
    let (stop, progress) = (Stop::new(), Progress::new());
    let plan = lane.rungs()[0];
    let (result, waited) = std::thread::scope(|scope| {
        let worker = scope.spawn(|| lane.run(&plan, Duration::from_secs(600), &stop, &progress));
        while progress.bytes() == 0 && !worker.is_finished() {
            std::thread::yield_now();
        }
        // The processes of the connection are the children of the one that was started here.
        kill_below(server.child.id());
        let killed = Instant::now();
        (worker.join().unwrap(), killed.elapsed())
    });
    let Outcome::Failed(why) = result else { panic!("{result:?}") };
    assert!(why.reason.contains("127.0.0.1"), "{}", why.reason);
    assert!(waited < Duration::from_secs(60), "{waited:?}");
    lane.close();
}

/// Kills the descendants of our own sshd.
fn kill_below(parent: u32) {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    for child in children.split_whitespace() {
        kill_below(child.parse().unwrap());
        assert!(Command::new("kill").args(["-9", child]).status().is_ok());
    }
}

#[test]
fn a_stop_ends_the_copy_and_the_directory_is_removed() {
    let Some(server) = server("") else { return };
    let spec = CopySpec { max_bytes: ByteSize(1 << 34), ..spec() };
    let mut lane = Ssh::new(server.target(&server.data().display().to_string()), server.options("client", &[]), spec);
    lane.open(&Stop::new()).unwrap();
    let pids = lane.child_pids();
    let (stop, progress) = (Stop::new(), Progress::new());
    let plan = lane.rungs()[0];
    let result = std::thread::scope(|scope| {
        let worker = scope.spawn(|| lane.run(&plan, Duration::from_secs(600), &stop, &progress));
        while progress.bytes() == 0 && !worker.is_finished() {
            std::thread::yield_now();
        }
        stop.set();
        worker.join().unwrap()
    });
    assert!(matches!(result, Outcome::Skipped(_)), "{result:?}");
    drop(lane);
    assert_eq!(fs::read_dir(server.data()).unwrap().count(), 0);
    for pid in pids {
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "the child {pid} was not reaped");
    }
}

#[test]
fn leftovers_of_killed_runs_are_swept_and_nothing_else() {
    let Some(server) = server("") else { return };
    let make = |name: &str, files: &[&str], old: bool| {
        let dir = server.data().join(name);
        fs::create_dir(&dir).unwrap();
        for file in files {
            fs::write(dir.join(file), b"x").unwrap();
        }
        if old {
            assert!(Command::new("touch").args(["-d", "3 days ago"]).arg(&dir).status().unwrap().success());
        }
        dir
    };
    let (marker, small) = ("weaklink-test-files", "small-00003");
    let left = make(".weaklink-00000000000000a0", &[marker, "large", small], true);
    let young = make(".weaklink-00000000000000a1", &[marker, "large"], false);
    let unmarked = make(".weaklink-00000000000000a2", &["large"], true);
    let foreign = make(".weaklink-00000000000000a3", &[marker, "large", "diary"], true);
    let other = make("weaklink", &[marker, "large"], true);
    let mut lane = server.lane(&server.data().display().to_string(), &[]);
    lane.open(&Stop::new()).unwrap();
    lane.close();
    assert!(!left.exists());
    assert!(young.join("large").exists() && unmarked.join("large").exists() && other.join("large").exists());
    assert!(foreign.join("diary").exists(), "a file that is not ours is never removed");
}
