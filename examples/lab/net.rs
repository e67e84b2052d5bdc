//! Two hosts and a switch made of network namespaces, with chosen faults. Root and Linux only.
//!
//! ```text
//! pc eth0 ── p1 [switch br0] p2 ── eth0 nas          10.78.0.1 … 10.78.0.2, fd78::1 … fd78::2
//! ```
//!
//! Everything is named after the process and removed on drop; nothing else on the machine is touched.

#![expect(unreachable_pub, reason = "shared by an example and tests, which are crates of their own")]

use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The NAS's address in the lab.
pub const NAS: &str = "10.78.0.2";

/// Distinguishes labs of one process.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// The MTU of every port on the way.
#[derive(Clone, Copy, Debug)]
pub struct Mtus {
    /// The PC's interface and the switch port that it is in.
    pub pc: u32,
    /// The switch port towards the NAS.
    pub port: u32,
    /// The NAS's interface.
    pub nas: u32,
}

impl Mtus {
    /// The same everywhere.
    pub const fn all(mtu: u32) -> Self {
        Self { pc: mtu, port: mtu, nas: mtu }
    }
}

/// A network of two hosts and a switch.
pub struct Lab {
    prefix: String,
    dir: PathBuf,
    undo: Vec<Undo>,
}

/// What must be put back, in reverse order.
enum Undo {
    Namespace(String),
    Unmount(PathBuf),
    Loop(String),
    Throttle(PathBuf, String),
    Cgroup(PathBuf),
}

/// Runs a program and gives what it printed; a failure is an error with its words.
pub fn run(program: &str, args: &[&str]) -> io::Result<String> {
    let output = Command::new(program).args(args).stdin(Stdio::null()).output();
    let output: Output = output.map_err(|e| io::Error::new(e.kind(), format!("{program}: {e}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(io::Error::other(format!("{program} {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim())))
}

/// Why the lab cannot be built here, if it cannot.
pub fn missing() -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some("the lab needs Linux".to_owned());
    }
    if !run("id", &["-u"]).is_ok_and(|id| id.trim() == "0") {
        return Some("the lab needs root (network namespaces)".to_owned());
    }
    for (program, package) in [("ip", "iproute2"), ("tc", "iproute2"), ("ethtool", "ethtool")] {
        let there = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if there.is_err() {
            return Some(format!("the lab needs {program} (package {package})"));
        }
    }
    None
}

impl Lab {
    /// Builds the network.
    pub fn new(mtus: Mtus) -> io::Result<Self> {
        let lab = Self::bare(&["pc", "sw", "nas"])?;
        lab.cable(("pc", "eth0", mtus.pc), ("sw", "p1", mtus.pc))?;
        lab.cable(("nas", "eth0", mtus.nas), ("sw", "p2", mtus.port))?;
        lab.ip("sw", "link add br0 type bridge forward_delay 0")?;
        for port in ["p1", "p2"] {
            lab.ip("sw", &format!("link set {port} master br0"))?;
        }
        lab.ip("sw", "link set br0 up")?;
        lab.ends()?;
        Ok(lab)
    }

    /// Hosts of these names, without any cable.
    pub fn bare(hosts: &[&str]) -> io::Result<Self> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("wl{}-{number}-", std::process::id());
        let dir = std::env::temp_dir().join(format!("weaklink-lab-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&dir)?;
        let mut lab = Self { prefix, dir, undo: Vec::new() };
        for host in hosts {
            let name = lab.ns(host);
            run("ip", &["netns", "add", &name])?;
            lab.undo.push(Undo::Namespace(name.clone()));
            run("ip", &["-n", &name, "link", "set", "lo", "up"])?;
        }
        Ok(lab)
    }

    /// The addresses of the PC and of the NAS in their common network.
    pub fn ends(&self) -> io::Result<()> {
        for (host, last) in [("pc", "1"), ("nas", "2")] {
            self.ip(host, &format!("addr add 10.78.0.{last}/24 dev eth0"))?;
            self.ip(host, &format!("addr add fd78::{last}/64 dev eth0 nodad"))?;
        }
        Ok(())
    }

    /// The full name of a host's namespace.
    pub fn ns(&self, host: &str) -> String {
        format!("{}{host}", self.prefix)
    }

    /// A directory for this lab's files.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A cable between two interfaces that it makes: host, name and MTU of each.
    pub fn cable(&self, a: (&str, &str, u32), b: (&str, &str, u32)) -> io::Result<()> {
        let (a_host, b_host) = (self.ns(a.0), self.ns(b.0));
        let (a_mtu, b_mtu) = (a.2.to_string(), b.2.to_string());
        let link = [
            "link", "add", a.1, "netns", &a_host, "mtu", &a_mtu, "type", "veth", "peer", "name", b.1, "netns", &b_host, "mtu",
            &b_mtu,
        ];
        run("ip", &link)?;
        run("ip", &["-n", &a_host, "link", "set", a.1, "up"])?;
        run("ip", &["-n", &b_host, "link", "set", b.1, "up"])?;
        Ok(())
    }

    /// `ip` inside a host.
    pub fn ip(&self, host: &str, args: &str) -> io::Result<String> {
        let ns = self.ns(host);
        let mut all = vec!["-n", &ns];
        all.extend(args.split_whitespace());
        run("ip", &all)
    }

    /// A program inside a host, to its end.
    pub fn inside(&self, host: &str, program: &str, args: &[&str]) -> io::Result<String> {
        let ns = self.ns(host);
        let mut all = vec!["netns", "exec", &ns, program];
        all.extend(args);
        run("ip", &all)
    }

    /// A command inside a host, not yet started.
    pub fn command(&self, host: &str, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.ns(host)]).arg(program).stdin(Stdio::null());
        command
    }

    /// Shapes both directions like a wire of this many Mbit/s: the switch's ports limit what leaves them.
    ///
    /// tc counts MTU + 14 bytes a frame and a wire MTU + 38 (preamble 8, header 14, FCS 4, gap 12).
    pub fn shape(&self, mbit: u64, mtu: u64) -> io::Result<()> {
        for port in ["p1", "p2"] {
            self.shape_port(port, mbit, mtu)?;
        }
        Ok(())
    }

    /// Shapes what leaves one port of the switch.
    pub fn shape_port(&self, port: &str, mbit: u64, mtu: u64) -> io::Result<()> {
        let rate = format!("{}kbit", mbit * 1000 * (mtu + 14) / (mtu + 38));
        let (burst, limit) = if mbit >= 5000 { ("4mb", "2mb") } else { ("1mb", "1mb") };
        let args = ["qdisc", "replace", "dev", port, "root", "tbf", "rate", &rate, "burst", burst, "limit", limit];
        self.inside("sw", "tc", &args).map(drop)
    }

    /// Turns segmentation offload off at both ends, so that single frames travel as on a wire.
    pub fn single_frames(&self) -> io::Result<()> {
        for host in ["pc", "nas"] {
            self.inside(host, "ethtool", &["-K", "eth0", "tso", "off", "gso", "off"])?;
        }
        Ok(())
    }

    /// Drops a share of the frames that come into a port of the switch: `p1` loses uploads, `p2` downloads.
    pub fn lose(&self, port: &str, permille: u64) -> io::Result<()> {
        let keep = (1000 - permille) * u64::from(u32::MAX) / 1000;
        // Classic BPF: load a random word, drop when it is above the threshold.
        let program = format!("4,32 0 0 4294963256,37 1 0 {keep},6 0 0 0,6 0 0 2");
        self.inside("sw", "tc", &["qdisc", "replace", "dev", port, "clsact"])?;
        self.inside(
            "sw",
            "tc",
            &["filter", "replace", "dev", port, "ingress", "pref", "1", "handle", "1", "bpf", "da", "bytecode", &program],
        )?;
        Ok(())
    }

    /// Drops what leaves a port of the switch in IP packets larger than this, silently: towards the NAS is `p2`, towards the PC `p1`.
    ///
    /// To the byte, while a veth passes four bytes more than its MTU; segmentation offload must be off at the ends.
    pub fn hole(&self, host: &str, port: &str, mtu: u32) -> io::Result<()> {
        // Classic BPF: load the length of the frame, which has 14 bytes of Ethernet header, drop when it is above.
        self.filter(host, port, &format!("4,128 0 0 0,37 1 0 {},6 0 0 0,6 0 0 2", mtu + 14))
    }

    /// Lets a classic BPF program judge what leaves an interface: 0 passes, 2 drops. One program an interface.
    pub fn filter(&self, host: &str, interface: &str, program: &str) -> io::Result<()> {
        self.inside(host, "tc", &["qdisc", "replace", "dev", interface, "clsact"])?;
        let filter =
            ["filter", "replace", "dev", interface, "egress", "pref", "1", "handle", "1", "bpf", "da", "bytecode", program];
        self.inside(host, "tc", &filter).map(drop)
    }

    /// A directory in memory of this size, such as `3g`.
    pub fn memory_dir(&mut self, name: &str, size: &str) -> io::Result<PathBuf> {
        let path = self.dir.join(name);
        std::fs::create_dir_all(&path)?;
        let text = path.display().to_string();
        run("mount", &["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs", &text])?;
        self.undo.push(Undo::Unmount(path.clone()));
        Ok(path)
    }

    /// A directory on a disk of its own with these limits in bytes a second.
    pub fn slow_disk(&mut self, name: &str, write: Option<u64>, read: Option<u64>) -> io::Result<PathBuf> {
        let image = self.dir.join(format!("{name}.img"));
        let file = std::fs::File::create(&image)?;
        file.set_len(1 << 30)?;
        let image = image.display().to_string();
        let device = run("losetup", &["-f", "--show", "--direct-io=on", &image])?.trim().to_owned();
        self.undo.push(Undo::Loop(device.clone()));
        run("mkfs.ext4", &["-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", &device])?;
        let path = self.dir.join(name);
        std::fs::create_dir_all(&path)?;
        run("mount", &[&device, &path.display().to_string()])?;
        self.undo.push(Undo::Unmount(path.clone()));
        let number = std::fs::read_to_string(format!("/sys/block/{}/dev", device.trim_start_matches("/dev/")))?;
        let number = number.trim().to_owned();
        for (kind, limit) in [("write", write), ("read", read)] {
            let Some(limit) = limit else { continue };
            // The root group of cgroup v1: it also catches what the kernel's own threads write back.
            let file = PathBuf::from(format!("/sys/fs/cgroup/blkio/blkio.throttle.{kind}_bps_device"));
            std::fs::write(&file, format!("{number} {limit}"))?;
            self.undo.push(Undo::Throttle(file, format!("{number} 0")));
        }
        Ok(path)
    }

    /// A control group that may use this share of one core; gives its directory.
    pub fn cpu_quota(&mut self, share: f64) -> io::Result<PathBuf> {
        let path = PathBuf::from(format!("/sys/fs/cgroup/cpu/weaklink-lab-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        self.undo.push(Undo::Cgroup(path.clone()));
        std::fs::write(path.join("cpu.cfs_period_us"), "100000")?;
        std::fs::write(path.join("cpu.cfs_quota_us"), format!("{}", (share * 100_000.0) as u64))?;
        Ok(path)
    }
}

impl Drop for Lab {
    #[expect(clippy::print_stderr, reason = "nobody else can be told in a drop")]
    fn drop(&mut self) {
        while let Some(undo) = self.undo.pop() {
            let result = match &undo {
                Undo::Namespace(name) => run("ip", &["netns", "del", name]).map(drop),
                Undo::Unmount(path) => run("umount", &["-l", &path.display().to_string()]).map(drop),
                Undo::Loop(device) => run("losetup", &["-d", device]).map(drop),
                Undo::Throttle(file, text) => std::fs::write(file, text),
                Undo::Cgroup(path) => remove_group(path),
            };
            if let Err(error) = result {
                eprintln!("lab: cannot undo: {error}");
            }
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// A group can be removed once its last process is gone.
fn remove_group(path: &Path) -> io::Result<()> {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        match std::fs::remove_dir(path) {
            Err(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(50)),
            result => return result,
        }
    }
}

/// A program that we started, with its lines; it is ended on drop, by its id.
pub struct Running {
    /// The process.
    pub child: Child,
    lines: mpsc::Receiver<String>,
    seen: Vec<String>,
}

impl Running {
    /// Starts a program and reads its stdout and stderr.
    pub fn start(mut command: Command) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (sender, lines) = mpsc::channel();
        let streams: [Option<Box<dyn io::Read + Send>>; 2] =
            [child.stdout.take().map(|s| Box::new(s) as _), child.stderr.take().map(|s| Box::new(s) as _)];
        for stream in streams.into_iter().flatten() {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    let _ = sender.send(line);
                }
            });
        }
        Ok(Self { child, lines, seen: Vec::new() })
    }

    /// Waits for a line that contains `text`; an error tells what came instead.
    pub fn wait_for(&mut self, text: &str, time: Duration) -> io::Result<String> {
        let deadline = Instant::now() + time;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.contains(text) {
                        return Ok(line);
                    }
                }
                Err(_) => {
                    return Err(io::Error::other(format!(
                        "no line with {text:?} within {time:?}; it said: {}",
                        self.seen.join(" | ")
                    )));
                }
            }
        }
    }

    /// Sends a signal by number to the process that we started.
    pub fn signal(&self, signal: &str) -> io::Result<()> {
        run("kill", &[signal, &self.child.id().to_string()]).map(drop)
    }

    /// Waits for the end; gives the exit code and everything that was printed.
    pub fn finish(mut self, time: Duration) -> io::Result<(Option<i32>, String)> {
        let deadline = Instant::now() + time;
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            if Instant::now() > deadline {
                return Err(io::Error::other(format!("still running after {time:?}; it said: {}", self.seen.join(" | "))));
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        while let Ok(line) = self.lines.recv_timeout(Duration::from_millis(500)) {
            self.seen.push(line);
        }
        Ok((status.code(), self.seen.join("\n")))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
