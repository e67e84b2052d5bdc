//! Arguments as typed.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::units::{BitRate, ByteSize};

/// Finds the weak link between a PC and a NAS.
#[derive(Debug, Parser)]
#[command(name = "weaklink", version, max_term_width = 100, arg_required_else_help = true)]
#[command(about = "Finds the weak link between a PC and a NAS: network, disk, CPU or protocol")]
#[command(after_help = "\
Examples:
  on the NAS:   weaklink serve --dir /volume1/test
  on the PC:    weaklink run nas.local
  without NAS:  weaklink run --local

Exit codes: 0 healthy or information only, 1 a fault or a finding that costs speed, 2 could not measure or decide, or wrong use, 130 interrupted.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start the agent on the NAS; prints the line to type on the PC and a pairing code
    Serve(ServeArgs),
    /// Run the whole diagnosis from the PC and print the verdict
    Run(Box<RunArgs>),
    /// Find the largest packet of each direction, who limits it and what to change; seconds
    Mtu(Box<MtuArgs>),
    /// Say what each end's port can do, what it negotiated, why it is less, and which cable a copy uses; seconds
    Link(Box<LinkArgs>),
    /// Measure raw TCP or UDP alone: 1 stream and many, each direction and both at once; or against iperf3
    Throughput(Box<ThroughputArgs>),
    /// Judge a saved report again with the rules of this version
    Judge(JudgeArgs),
    /// Render a saved report
    Report(ReportArgs),
    /// Say what a finding's code means, how it is detected and how to fix it
    Explain(ExplainArgs),
}

/// `weaklink serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weaklink serve --dir /volume1/test            let the disk under /volume1/test be measured
  weaklink serve                                network and CPU only
  weaklink serve --code-file /run/weaklink.code for scripts: the code is also written there
  weaklink serve --iperf3                       also answers iperf3 clients on port 5201

The agent writes only inside DIR, in a directory .weaklink-… that it removes. It never runs a command and never takes a path from the client. It serves until it is interrupted with Ctrl-C.
Exit codes: 2 could not start (port, directory, code) or wrong use, 130 interrupted.")]
pub struct ServeArgs {
    /// Directory on the disk to be measured; without it no disk of the NAS is touched
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Address to listen on [default: all addresses, IPv4 and IPv6]
    #[arg(long, value_name = "ADDR")]
    pub bind: Option<IpAddr>,
    /// Port for TCP and UDP; 0 takes any free one
    #[arg(long, value_name = "PORT", default_value_t = crate::wire::hello::DEFAULT_PORT)]
    pub port: u16,
    /// Also write the pairing code to this file, readable by its owner only
    #[arg(long, value_name = "FILE")]
    pub code_file: Option<PathBuf>,
    /// Also answer iperf3 clients, on this port; anyone who reaches it can use it [default port: 5201]
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true, default_missing_value = "5201")]
    pub iperf3: Option<u16>,
}

/// `weaklink run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weaklink run nas.local                               asks for the pairing code
  weaklink run 192.168.1.10 --path /mnt/nas/test       also copies through the mounted share
  weaklink run nas --ssh me@nas:/volume1/test          also copies through SSH
  weaklink run nas --link-speed pc=2.5G --link-speed nas=10G
  weaklink run nas --json > report.json                JSON on stdout, progress on stderr
  weaklink run --local                                 try it on one machine, without a NAS

The pairing code comes from --code-file, the environment variable WEAKLINK_CODE, --code (visible to other users of this computer), or a prompt.
Exit codes: 0 healthy or information only, 1 a finding that costs speed, 2 could not measure or decide, or wrong use, 130 interrupted.")]
pub struct RunArgs {
    /// The NAS.
    #[arg(
        help = "The NAS: HOST, HOST:PORT or [IPv6]:PORT",
        value_name = "HOST",
        required_unless_present = "local",
        conflicts_with = "local"
    )]
    pub host: Option<String>,
    /// Start an agent in this process and test over loopback: this machine's disk, CPU and ciphers, no cable
    #[arg(long)]
    pub local: bool,
    /// With --local: the directory to measure [default: a new one in the system's temporary directory]
    #[arg(long, value_name = "DIR", requires = "local")]
    pub dir: Option<PathBuf>,
    /// How the agent is reached.
    #[command(flatten)]
    pub code: CodeArgs,
    /// The address family.
    #[command(flatten)]
    pub family: FamilyArgs,
    /// Also copy through this directory of a mounted share (SMB, NFS, SSHFS …)
    #[arg(long, value_name = "DIR")]
    pub path: Option<PathBuf>,
    /// The SSH lane.
    #[arg(
        help = "Also copy through OpenSSH: [USER@]HOST[:DIR] or ssh://[USER@]HOST[:PORT][/DIR]; without DIR nothing is stored"
    )]
    #[arg(long, value_name = "TARGET")]
    pub ssh: Option<String>,
    /// Option for ssh, as after `ssh -o`; may be repeated
    #[arg(long, value_name = "KEY=VALUE", requires = "ssh")]
    pub ssh_option: Vec<String>,
    /// Configuration file for ssh, as after `ssh -F`
    #[arg(long, value_name = "FILE", requires = "ssh")]
    pub ssh_config: Option<PathBuf>,
    /// Also measure the PC's disk under this directory
    #[arg(long, value_name = "DIR")]
    pub pc_dir: Option<PathBuf>,
    /// About 20 s: shorter measurements, less certain
    #[arg(long, conflicts_with = "thorough")]
    pub quick: bool,
    /// At most 5 minutes: longer measurements, caches run full
    #[arg(long)]
    pub thorough: bool,
    /// Which files you copy; the verdict speaks about these
    #[arg(long, value_enum, default_value_t = WorkloadArg::Large)]
    pub workload: WorkloadArg,
    /// Number of TCP streams in the pass with several [default: 4, 8 and 16, while their sum grows]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=128))]
    pub streams: Option<u32>,
    /// TCP congestion control of the throughput passes [default: cubic where it is available]
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// The most that one disk test may write
    #[arg(long, value_name = "SIZE", default_value = "4GB")]
    pub max_data: ByteSize,
    /// State a cable's real speed where the system cannot know it: pc=2.5G or nas=10G; may be repeated
    #[arg(long, value_name = "END=SPEED")]
    pub link_speed: Vec<String>,
    /// Where the report goes.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `weaklink mtu`.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag as typed; settings give them their meaning")]
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weaklink mtu nas.local                    each direction, with `weaklink serve` running on the NAS
  weaklink mtu nas.local --trace            every probe
  weaklink mtu nas.local --gain             also what jumbo frames gain in rate and processor time
  sudo weaklink mtu nas.local --lldp        also hears what the switch says of its port (35 s more)
  weaklink mtu nas.local --no-agent         what this end can know alone: ping, and the NAS's SMB, NFS and SSH ports
  weaklink mtu fe80::1%eth0 --no-agent      IPv6, link-local

The pairing code comes from --code-file, the environment variable WEAKLINK_CODE, --code, or a prompt.
Exit codes: 0 the path is consistent, 1 a fault, 2 could not be measured or wrong use, 130 interrupted.")]
pub struct MtuArgs {
    /// The NAS.
    #[arg(value_name = "HOST", help = "The NAS: HOST, HOST:PORT or [IPv6]:PORT")]
    pub host: String,
    /// No `weaklink serve` on the NAS: measure what this end can know alone. One full-size segment is sent to its SSH, SMB and NFS ports
    #[arg(long, conflicts_with_all = ["code", "code_file", "gain"])]
    pub no_agent: bool,
    /// With --no-agent: the TCP ports to try; may be repeated [default: 445, 2049, 22]
    #[arg(long, value_name = "PORT", requires = "no_agent", value_parser = clap::value_parser!(u16).range(1..))]
    pub tcp_port: Vec<u16>,
    /// How the agent is reached.
    #[command(flatten)]
    pub code: CodeArgs,
    /// The address family.
    #[command(flatten)]
    pub family: FamilyArgs,
    /// Show every probe: size, direction, outcome, round-trip time
    #[arg(long)]
    pub trace: bool,
    /// Measure what large packets gain here: rate and processor time against common ones (about 3 s more)
    #[arg(long)]
    pub gain: bool,
    /// Wait up to 35 s for the switches to say the largest frame of their ports (LLDP; needs root, or lldpd)
    #[arg(long)]
    pub lldp: bool,
    /// State a cable's real speed where the system cannot know it: pc=2.5G or nas=10G; may be repeated
    #[arg(long, value_name = "END=SPEED")]
    pub link_speed: Vec<String>,
    /// Where the report goes.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `weaklink link`.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag as typed; settings give them their meaning")]
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weaklink link                             all ports of this host: speed, partner, bus, aggregation, counters
  weaklink link nas.local                   the way to the NAS at both ends, with `weaklink serve` running there
  weaklink link nas.local --no-agent        the same as far as this end knows it
  weaklink link --watch 30                  also which counters grow within 30 s, such as damaged frames
  sudo weaklink link nas.local --lldp       also hears what the switches say of their ports (35 s more)

With an agent the ports are loaded for a second in each direction (--no-load leaves that out): only then damaged frames are counted, and the spread over an aggregation shows.
The report is one screen; --details shows the rest, and a file (-o) has all of it.
The pairing code comes from --code-file, the environment variable WEAKLINK_CODE, --code, or a prompt.
Exit codes: 0 nothing holds the links back, 1 a fault, 2 could not be told or wrong use, 130 interrupted.")]
pub struct LinkArgs {
    /// The NAS.
    #[arg(value_name = "HOST", help = "The NAS: HOST, HOST:PORT or [IPv6]:PORT; without it, all ports of this host")]
    pub host: Option<String>,
    /// No `weaklink serve` on the NAS: look at this end only
    #[arg(long, requires = "host", conflicts_with_all = ["code", "code_file", "no_load"])]
    pub no_agent: bool,
    /// How the agent is reached.
    #[command(flatten)]
    pub code: CodeArgs,
    /// The address family.
    #[command(flatten)]
    pub family: FamilyArgs,
    /// Move no data: look only
    #[arg(long, requires = "host")]
    pub no_load: bool,
    /// Also watch for so long which counters grow while weaklink moves nothing
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub watch: Option<f64>,
    /// Wait up to 35 s for the switches to say what they know of their ports (LLDP, CDP, LACP; needs root, or lldpd)
    #[arg(long)]
    pub lldp: bool,
    /// Show all behind the first screen: what else each port tells, addresses, counters, hosts (files have it always)
    #[arg(long)]
    pub details: bool,
    /// State a cable's real speed where the system cannot know it: pc=2.5G or nas=10G; may be repeated
    #[arg(long, value_name = "END=SPEED")]
    pub link_speed: Vec<String>,
    /// Where the report goes.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The least rate that is paced, in bits a second: below it a datagram or segment of full size leaves less often than every 0.12 s,
/// and a pass of seconds has too few of them for a rate.
const LEAST_RATE: BitRate = BitRate(100_000);

/// A rate to send at, as typed.
fn rate(text: &str) -> Result<BitRate, String> {
    match text.parse::<BitRate>() {
        Ok(rate) if rate >= LEAST_RATE => Ok(rate),
        Ok(rate) => Err(format!("{rate} is too little to measure; the least is {LEAST_RATE} (100K)")),
        Err(_) => Err("write a rate in bits a second, such as 500M or 2.5G; the least is 100K".to_owned()),
    }
}

/// A number of seconds as typed.
fn seconds(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "write a number of seconds, such as 30".to_owned())
}

/// `weaklink throughput`.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag as typed; settings give them their meaning")]
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weaklink throughput nas.local                          both directions, 1 stream and more while the sum grows
  weaklink throughput nas.local --upload --time 30       one direction, 30 s for each pass
  weaklink throughput nas.local --streams 8 --window 4M  8 streams, socket buffers of 4 MB
  weaklink throughput nas.local --pacing 300M            each stream paced to 300 Mbit/s by the kernel
  weaklink throughput nas.local --congestion cubic,bbr   compares two congestion controls, and measures nothing else
  weaklink throughput nas.local --udp                    searches the rate at which datagrams get lost
  weaklink throughput nas.local --udp --rate 2G          loss, jitter and reordering at one rate
  weaklink throughput nas.local --together 2 --session x on two PCs: each alone, then both at once
  weaklink throughput --iperf3 nas.local                 against `iperf3 -s` in place of `weaklink serve`
  weaklink throughput --iperf3 nas.local --udp --rate 2G datagrams to an iperf3 server: that needs a rate

A pass ends when its rate is known to 1 % (95 % confidence), at the latest after 4 s; --time sets a fixed time.
RATE is in bits a second (at least 100K), SIZE in bytes: K, M and G stand for thousands, millions and billions; a SIZE takes Ki, Mi and Gi too.
The report is one screen; --details shows the rest, and a file (-o) has all of it.
The pairing code comes from --code-file, the environment variable WEAKLINK_CODE, --code, or a prompt.
Exit codes: 0 healthy, as asked or information only, 1 a finding that costs speed, 2 could not be measured or decided, or wrong use, 130 interrupted.")]
pub struct ThroughputArgs {
    /// The NAS.
    #[arg(value_name = "HOST", help = "The NAS: HOST, HOST:PORT or [IPv6]:PORT")]
    pub host: String,
    /// The other end is an iperf3 server (port 5201 unless HOST names one); no code is needed
    #[arg(long, conflicts_with_all = ["code", "code_file", "together"])]
    pub iperf3: bool,
    /// How the agent is reached.
    #[command(flatten)]
    pub code: CodeArgs,
    /// The address family.
    #[command(flatten)]
    pub family: FamilyArgs,
    /// Only PC → NAS
    #[arg(long, conflicts_with_all = ["download", "both"])]
    pub upload: bool,
    /// Only NAS → PC
    #[arg(long, conflicts_with = "both")]
    pub download: bool,
    /// Only both directions at the same moment
    #[arg(long)]
    pub both: bool,
    /// Number of TCP streams [default: 1, then 4, 8 and 16 while their sum grows]
    #[arg(long, short = 'P', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=128))]
    pub streams: Option<u32>,
    /// Seconds for each pass, the whole of them [default: until the rate is known to 1 %, at most 4]
    #[arg(long, short = 't', value_name = "SECONDS")]
    pub time: Option<f64>,
    /// End each pass after this much, all streams together
    #[arg(long, short = 'n', value_name = "SIZE")]
    pub bytes: Option<ByteSize>,
    /// Socket buffers of both ends, which bound the window [default: the system's own tuning]
    #[arg(long, short = 'w', value_name = "SIZE")]
    pub window: Option<ByteSize>,
    /// Largest segment in bytes
    #[arg(long, short = 'M', value_name = "BYTES", value_parser = clap::value_parser!(u32).range(88..=32_767))]
    pub mss: Option<u32>,
    /// TCP congestion control; several, separated by commas, are compared [default: cubic where it is available]
    #[arg(long, short = 'C', value_name = "NAME[,NAME]", value_delimiter = ',')]
    pub congestion: Vec<String>,
    /// Let the kernel pace each stream to this rate
    #[arg(long, value_name = "RATE", conflicts_with = "udp", value_parser = rate, allow_hyphen_values = true)]
    pub pacing: Option<BitRate>,
    /// Differentiated services code point of the test's packets, 0 to 63
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=63))]
    pub dscp: Option<u8>,
    /// Own address to use, where this PC has several
    #[arg(long, short = 'B', value_name = "ADDR")]
    pub bind: Option<IpAddr>,
    /// Copy the bytes in and out of the programs, as ordinary ones do, in place of the cheapest way
    #[arg(long, conflicts_with = "udp")]
    pub copies: bool,
    /// Datagrams in place of TCP: loss, jitter, reordering, and the rate at which loss begins
    #[arg(long, short = 'u', conflicts_with_all = ["both", "bytes", "window", "mss", "congestion", "streams"])]
    pub udp: bool,
    /// With --udp: one fixed rate of payload [default: the rate at which loss begins is searched; --iperf3 needs a rate]
    #[arg(long, short = 'b', value_name = "RATE", requires = "udp", value_parser = rate, allow_hyphen_values = true)]
    pub rate: Option<BitRate>,
    /// With --udp: payload of a datagram [default: what the path MTU carries]
    #[arg(long, short = 'l', value_name = "BYTES", requires = "udp", value_parser = clap::value_parser!(u32).range(64..=65_507))]
    pub datagram: Option<u32>,
    /// This many PCs measure against one agent: each alone, then all at once; start it on each of them: the first waits up to 3 minutes for the others
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=16), requires = "session", conflicts_with_all = ["udp", "both", "bytes"])]
    pub together: Option<u32>,
    /// With --together: the name that the PCs meet under
    #[arg(long, value_name = "NAME", requires = "together")]
    pub session: Option<String>,
    /// Show all behind the first screen: what held each pass back, round trips, processors, links, hosts (files have it always)
    #[arg(long)]
    pub details: bool,
    /// State a cable's real speed where the system cannot know it: pc=2.5G or nas=10G; may be repeated
    #[arg(long, value_name = "END=SPEED")]
    pub link_speed: Vec<String>,
    /// Where the report goes.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The pairing code.
#[derive(Debug, Args)]
pub struct CodeArgs {
    /// The pairing code that `weaklink serve` printed; better use --code-file or WEAKLINK_CODE
    #[arg(long, value_name = "CODE", conflicts_with = "code_file")]
    pub code: Option<String>,
    /// File that holds the pairing code
    #[arg(long, value_name = "FILE")]
    pub code_file: Option<PathBuf>,
}

/// Which addresses of the host.
#[derive(Debug, Args)]
pub struct FamilyArgs {
    /// Use IPv4 only
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6', long)]
    pub ipv6: bool,
}

/// Where the report goes.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Print the report as JSON on stdout
    #[arg(long)]
    pub json: bool,
    /// Also write the report to this file: Markdown when it ends in .md, text when in .txt, else JSON
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// No progress on stderr
    #[arg(short, long)]
    pub quiet: bool,
    /// Colour
    #[arg(long, value_enum, default_value_t = ColorArg::Auto, value_name = "WHEN")]
    pub color: ColorArg,
}

/// Which files the user copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WorkloadArg {
    /// Large files: the rate counts
    Large,
    /// Many small files: the time for each counts
    Small,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ColorArg {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// `weaklink judge`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weaklink judge report.json          the report as text, with a fresh verdict
  weaklink judge report.json --json   the whole document with fresh findings and verdict
  weaklink judge - < report.json      reads standard input")]
pub struct JudgeArgs {
    /// A report that `weaklink run` or `mtu` saved with --json or -o; - for standard input
    #[arg(value_name = "REPORT.json")]
    pub report: PathBuf,
    /// Print the document as JSON
    #[arg(long)]
    pub json: bool,
    /// Colour
    #[arg(long, value_enum, default_value_t = ColorArg::Auto, value_name = "WHEN")]
    pub color: ColorArg,
}

/// `weaklink report`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weaklink report report.json                     as text
  weaklink report report.json --trace             with every probe of the path MTU
  weaklink report report.json --details           of raw rates or links all behind the first screen
  weaklink report report.json --format markdown   for a ticket")]
pub struct ReportArgs {
    /// A report that `weaklink run` or `mtu` saved with --json or -o; - for standard input
    #[arg(value_name = "REPORT.json")]
    pub report: PathBuf,
    /// text, markdown or json
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: String,
    /// Show every probe of the path MTU
    #[arg(long)]
    pub trace: bool,
    /// Of raw rates and of links (`weaklink throughput`, `link`) show all behind the first screen too, in text
    #[arg(long)]
    pub details: bool,
    /// Colour
    #[arg(long, value_enum, default_value_t = ColorArg::Auto, value_name = "WHEN")]
    pub color: ColorArg,
}

/// `weaklink explain`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weaklink explain                          lists all codes
  weaklink explain network.mtu-black-hole")]
pub struct ExplainArgs {
    /// A code from a report, such as network.mtu-black-hole; without it all codes are listed
    #[arg(value_name = "CODE")]
    pub code: Option<String>,
}
