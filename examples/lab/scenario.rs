//! The faults of the lab, and running the real `serve` and `run` in them.

#![expect(unreachable_pub, reason = "shared by an example and tests, which are crates of their own")]

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::net::{Lab, Mtus, NAS, Running, run};

/// A fault that can be built, and the cause that a correct verdict names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// The name on the command line.
    pub name: &'static str,
    /// What is built.
    pub what: &'static str,
    /// The codes that are right.
    pub expect: &'static [&'static str],
}

/// All scenarios.
pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "healthy", what: "a clean 2.5G link", expect: &["none.at-line-rate"] },
    Scenario { name: "slow-hop", what: "a 1G hop between two 2.5G ports", expect: &["network.hop-slower-than-links"] },
    Scenario {
        name: "black-hole",
        what: "9000 at both ends, a silent switch port with 1500",
        expect: &["network.mtu-black-hole"],
    },
    Scenario {
        name: "upload-hole",
        what: "9000 everywhere, a switch that silently drops what is above 1500 towards the NAS only",
        expect: &["network.mtu-black-hole"],
    },
    Scenario {
        name: "download-hole",
        what: "9000 everywhere, a switch that silently drops what is above 4082 towards the PC only",
        expect: &["network.mtu-black-hole"],
    },
    Scenario { name: "mtu-mismatch", what: "9000 at the PC, 1500 at the NAS", expect: &["network.mtu-mismatch"] },
    Scenario { name: "nas-write", what: "a NAS disk that writes 52 MB/s behind a 1G link", expect: &["disk.nas-write"] },
    Scenario { name: "nas-read", what: "a NAS disk that reads 52 MB/s behind a 1G link", expect: &["disk.nas-read"] },
    Scenario { name: "ssh-cipher", what: "SSH slower than a 5G link for its encryption", expect: &["cpu.ssh-encryption"] },
    Scenario {
        name: "starved-agent",
        what: "a NAS whose agent gets a few per cent of a core",
        expect: &["cpu.network-stack-core"],
    },
    Scenario { name: "upload-loss", what: "8 % of the frames from the PC are lost on a 1G link", expect: &["network.loss"] },
    Scenario { name: "small-files", what: "many small files over SSH", expect: &["protocol.small-files-latency"] },
];

/// What came of a scenario.
#[derive(Debug)]
pub struct Outcome {
    /// The exit code of `run`.
    pub code: Option<i32>,
    /// What it printed on stdout.
    pub report: String,
    /// How long `run` took.
    pub elapsed: Duration,
}

/// What the two programs are started with.
#[derive(Default)]
struct Setup {
    serve: Vec<String>,
    run: Vec<String>,
    quota: Option<PathBuf>,
    sshd: Option<Running>,
}

/// Builds the network of a scenario, runs both programs in it and gives what `run` said.
pub fn play(scenario: &Scenario, weaklink: &Path, extra: &[String]) -> io::Result<Outcome> {
    let mtus = match scenario.name {
        "black-hole" => Mtus { pc: 9000, port: 1500, nas: 9000 },
        "upload-hole" | "download-hole" => Mtus::all(9000),
        "mtu-mismatch" => Mtus { pc: 9000, port: 9000, nas: 1500 },
        _ => Mtus::all(1500),
    };
    let mut lab = Lab::new(mtus)?;
    let setup = build(scenario.name, &mut lab)?;
    let code_file = lab.dir().join("code");
    let mut serve = lab.command("nas", weaklink);
    if let Some(group) = &setup.quota {
        // The shell enters the control group and becomes the agent: the process id stays. Outside of the
        // namespace, where /sys is another one without control groups.
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("echo $$ > {}/cgroup.procs && exec \"$@\"", group.display())).arg("sh");
        shell.arg(serve.get_program()).args(serve.get_args());
        serve = shell;
    }
    serve.arg("serve");
    serve.arg("--code-file").arg(&code_file).args(&setup.serve);
    let mut agent = Running::start(serve)?;
    agent.wait_for("listening on", Duration::from_secs(20))?;
    let mut client = lab.command("pc", weaklink);
    client.args(["run", NAS]).arg("--code-file").arg(&code_file).args(&setup.run).args(extra);
    let begun = Instant::now();
    let output = client.stderr(std::process::Stdio::inherit()).output()?;
    let elapsed = begun.elapsed();
    drop(agent);
    drop(setup.sshd);
    Ok(Outcome { code: output.status.code(), report: String::from_utf8_lossy(&output.stdout).into_owned(), elapsed })
}

fn build(name: &str, lab: &mut Lab) -> io::Result<Setup> {
    let mut setup = Setup::default();
    let both = |mbit: &str| -> Vec<String> {
        ["pc", "nas"].into_iter().flat_map(|end| ["--link-speed".to_owned(), format!("{end}={mbit}")]).collect()
    };
    let dir_arg = |dir: &Path| vec!["--dir".to_owned(), dir.display().to_string()];
    setup.run = both("2.5G");
    match name {
        "healthy" => {
            lab.shape(2500, 1500)?;
            setup.serve = dir_arg(&lab.memory_dir("disk", "3g")?);
        }
        "slow-hop" => {
            lab.shape(1000, 1500)?;
            setup.serve = dir_arg(&lab.memory_dir("disk", "3g")?);
        }
        "black-hole" => {
            lab.single_frames()?;
            lab.shape(2500, 9000)?;
            setup.serve = dir_arg(&lab.memory_dir("disk", "3g")?);
        }
        "upload-hole" | "download-hole" => {
            lab.single_frames()?;
            lab.shape(2500, 9000)?;
            let (port, mtu) = if name == "upload-hole" { ("p2", 1500) } else { ("p1", 4082) };
            lab.hole("sw", port, mtu)?;
            setup.serve = dir_arg(&lab.memory_dir("disk", "3g")?);
        }
        "mtu-mismatch" => {
            lab.single_frames()?;
            lab.shape(1000, 1500)?;
            setup.run = both("1G");
        }
        "nas-write" | "nas-read" => {
            lab.shape(1000, 1500)?;
            setup.run = both("1G");
            let limit = Some(50 << 20);
            let dir = if name == "nas-write" { lab.slow_disk("disk", limit, None)? } else { lab.slow_disk("disk", None, limit)? };
            setup.serve = dir_arg(&dir);
        }
        "ssh-cipher" => {
            lab.shape(5000, 1500)?;
            setup.run = both("5G");
            setup.serve = dir_arg(&lab.memory_dir("disk", "3g")?);
            setup.sshd = Some(ssh(lab, &mut setup.run, None)?);
        }
        "starved-agent" => {
            lab.shape(2500, 1500)?;
            setup.quota = Some(lab.cpu_quota(0.03)?);
        }
        "upload-loss" => {
            // On a path this short CUBIC still fills 1 Gbit/s with 1 % lost; with this much it does not.
            lab.single_frames()?;
            lab.shape(1000, 1500)?;
            setup.run = both("1G");
            lab.lose("p1", 80)?;
        }
        "small-files" => {
            lab.shape(2500, 1500)?;
            let dir = lab.memory_dir("disk", "3g")?;
            setup.serve = dir_arg(&dir);
            setup.sshd = Some(ssh(lab, &mut setup.run, Some(&dir))?);
            setup.run.extend(["--workload".to_owned(), "small".to_owned()]);
        }
        other => return Err(io::Error::other(format!("no scenario is called {other}"))),
    }
    Ok(setup)
}

/// Starts an SSH server of our own in the NAS, with its own keys, and adds what `run` needs to use it.
fn ssh(lab: &Lab, args: &mut Vec<String>, dir: Option<&Path>) -> io::Result<Running> {
    let at = |name: &str| lab.dir().join(name).display().to_string();
    for key in ["host_key", "user_key"] {
        run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &at(key)])?;
    }
    std::fs::copy(at("user_key.pub"), at("authorized_keys"))?;
    let host_key = std::fs::read_to_string(at("host_key.pub"))?;
    std::fs::write(at("known_hosts"), format!("[{NAS}]:2222 {host_key}"))?;
    std::fs::create_dir_all("/run/sshd")?;
    let config = format!(
        "Port 2222\nListenAddress {NAS}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile {}\nUsePAM no\nStrictModes no\n\
         PermitRootLogin yes\nSubsystem sftp internal-sftp\n",
        at("host_key"),
        at("authorized_keys"),
        at("sshd.pid"),
    );
    std::fs::write(at("sshd_config"), config)?;
    let mut command: Command = lab.command("nas", "/usr/sbin/sshd");
    command.args(["-D", "-e", "-f", &at("sshd_config")]);
    let mut server = Running::start(command)?;
    server.wait_for("Server listening", Duration::from_secs(10))?;
    let user = run("id", &["-un"])?;
    let dir = dir.map(|dir| dir.display().to_string()).unwrap_or_default();
    args.extend(["--ssh".to_owned(), format!("ssh://{}@{NAS}:2222{dir}", user.trim())]);
    for option in [format!("IdentityFile={}", at("user_key")), format!("UserKnownHostsFile={}", at("known_hosts"))] {
        args.extend(["--ssh-option".to_owned(), option]);
    }
    Ok(server)
}
