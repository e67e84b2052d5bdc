//! Arguments as meant: checked, with the environment and files read. The only reader of the environment.

use std::io::{BufRead, IsTerminal, Read, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cli::args::{CodeArgs, ColorArg, FamilyArgs, LinkArgs, MtuArgs, RunArgs, ThroughputArgs, WorkloadArg};
use crate::copy::SshOptions;
use crate::link::LISTEN;
use crate::model::plan::{Depth, Scope, ThroughputPlan, TogetherPlan, UdpPlan, Ways, Workload};
use crate::model::throughput::PassOptions;
use crate::mtu::FILE_SERVICES;
use crate::report::Style;
use crate::session::dial::{Family, Target, TargetError};
use crate::session::group::is_name;
use crate::session::{AloneSettings, Iperf3Settings, LinkSettings, LinkWishes, RunSettings, SshSettings};
use crate::units::{BitRate, ByteSize};
use crate::wire::PairingCode;
use crate::wire::hello::DEFAULT_PORT;

/// The variable that holds a pairing code.
const CODE_VARIABLE: &str = "WEAKLINK_CODE";

/// Less says nothing about a disk: its own memory takes it in.
const LEAST_DATA: ByteSize = ByteSize::mib(16);

/// A code file is some dozens of bytes; more is another file.
const CODE_FILE_MOST: u64 = 4096;

/// Why the arguments cannot be meant: one clear sentence.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(pub String);

fn unusable(text: impl Into<String>) -> Unusable {
    Unusable(text.into())
}

/// A random pairing code.
pub fn random_code() -> Result<PairingCode, Unusable> {
    let mut bytes = [0; PairingCode::RANDOM];
    getrandom::fill(&mut bytes).map_err(|error| unusable(format!("the system gives no random numbers: {error}")))?;
    Ok(PairingCode::from_random(bytes))
}

/// What the environment gives as the code; an empty variable is none.
fn code_of_environment() -> Option<String> {
    std::env::var(CODE_VARIABLE).ok().filter(|text| !text.trim().is_empty())
}

/// The code of an agent: from the environment where it is set there, else random.
pub fn serve_code() -> Result<PairingCode, Unusable> {
    match code_of_environment() {
        Some(text) => text.parse().map_err(|error| unusable(format!("{CODE_VARIABLE}: {error}"))),
        None => random_code(),
    }
}

/// Writes the code for scripts, readable by the owner only.
pub fn write_code(path: &Path, code: &PairingCode) -> Result<(), Unusable> {
    let fault = |error| unusable(format!("cannot write the pairing code to {}: {error}", path.display()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(fault)?;
    #[cfg(unix)]
    {
        // A file that was there before keeps its mode otherwise.
        let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o600);
        file.set_permissions(mode).map_err(fault)?;
    }
    writeln!(file, "{code}").map_err(fault)
}

/// Removes the file that `write_code` wrote, where it still is that: a code of an agent that has ended opens nothing.
pub fn remove_code(path: &Path, code: &PairingCode) {
    let ours = || std::fs::symlink_metadata(path).is_ok_and(|kind| kind.is_file() && kind.len() <= CODE_FILE_MOST);
    if ours() && std::fs::read_to_string(path).is_ok_and(|text| text == format!("{code}\n")) {
        let _ = std::fs::remove_file(path);
    }
}

fn typed_code(args: &CodeArgs) -> Result<PairingCode, Unusable> {
    let (text, origin) = if let Some(text) = &args.code {
        (text.clone(), "--code".to_owned())
    } else if let Some(path) = &args.code_file {
        let fault = |error| unusable(format!("cannot read the pairing code from {}: {error}", path.display()));
        let mut text = String::new();
        std::fs::File::open(path).map_err(fault)?.take(CODE_FILE_MOST).read_to_string(&mut text).map_err(fault)?;
        (text, path.display().to_string())
    } else if let Some(text) = code_of_environment() {
        (text, CODE_VARIABLE.to_owned())
    } else if std::io::stdin().is_terminal() {
        let mut text = String::new();
        let _ = write!(std::io::stderr(), "Pairing code (printed by `weaklink serve` on the NAS): ");
        let _ = std::io::stderr().flush();
        std::io::stdin()
            .lock()
            .take(CODE_FILE_MOST)
            .read_line(&mut text)
            .map_err(|e| unusable(format!("cannot read the code: {e}")))?;
        (text, "what was typed".to_owned())
    } else {
        return Err(unusable(format!(
            "the pairing code is missing: give it with --code-file FILE or in the environment variable {CODE_VARIABLE}; `weaklink serve` prints it on the NAS"
        )));
    };
    text.parse().map_err(|error| unusable(format!("{origin}: {error}")))
}

/// What `weaklink run` is to do, and the directory of a local agent.
pub fn run(args: &RunArgs) -> Result<(RunSettings, Option<PathBuf>), Unusable> {
    let (stated_pc, stated_nas) = stated(&args.link_speed)?;
    if args.dir.is_some() && !args.local {
        return Err(unusable("--dir goes with --local; the NAS's directory is named there, with `weaklink serve --dir`"));
    }
    if args.max_data < LEAST_DATA {
        return Err(unusable(format!("--max-data {}: a disk test needs at least {LEAST_DATA}", args.max_data)));
    }
    let (target, code, dir) = if args.local {
        let target = Target { host: "127.0.0.1".to_owned(), port: 0 };
        let dir = args.dir.clone().unwrap_or_else(std::env::temp_dir);
        (target, random_code()?, Some(dir))
    } else {
        let target = target(args.host.as_deref().unwrap_or_default())?;
        // Before anybody is asked for a code.
        family(&args.family, Some(&target))?;
        (target, typed_code(&args.code)?, None)
    };
    for (option, path) in [("--path", &args.path), ("--pc-dir", &args.pc_dir), ("--dir", &dir)] {
        if let Some(path) = path {
            let kind = std::fs::metadata(path).map_err(|error| unusable(format!("{option} {}: {error}", path.display())))?;
            if !kind.is_dir() {
                return Err(unusable(format!("{option} {}: this is no directory", path.display())));
            }
        }
    }
    let ssh = match &args.ssh {
        Some(text) => Some(SshSettings {
            target: text.parse().map_err(|error| unusable(format!("--ssh: {error}")))?,
            options: SshOptions { options: args.ssh_option.clone(), config: args.ssh_config.clone(), ..SshOptions::default() },
        }),
        None => None,
    };
    let settings = RunSettings {
        scope: Scope::Run,
        family: family(&args.family, Some(&target))?,
        target,
        code,
        depth: match (args.quick, args.thorough) {
            (true, _) => Depth::Quick,
            (_, true) => Depth::Thorough,
            _ => Depth::Normal,
        },
        local: args.local,
        throughput: ThroughputPlan {
            streams: args.streams,
            congestion: args.congestion.iter().cloned().collect(),
            ..ThroughputPlan::default()
        },
        bind: None,
        pc_dir: args.pc_dir.clone(),
        path: args.path.clone(),
        ssh,
        workload: match args.workload {
            WorkloadArg::Large => Workload::Large,
            WorkloadArg::Small => Workload::Small,
        },
        max_data: args.max_data,
        gain: false,
        lldp: Duration::ZERO,
        links: LinkWishes::default(),
        stated_pc,
        stated_nas,
    };
    Ok((settings, dir))
}

fn target(host: &str) -> Result<Target, Unusable> {
    host.parse().map_err(|error: TargetError| unusable(error.to_string()))
}

/// The addresses that are meant; an address of the other family is told as that, and not looked up.
fn family(args: &FamilyArgs, target: Option<&Target>) -> Result<Family, Unusable> {
    let address = target.and_then(|target| target.host.split('%').next()?.parse::<IpAddr>().ok());
    match (args.ipv4, args.ipv6, address) {
        (true, _, Some(IpAddr::V6(v6))) => Err(unusable(format!("{v6} is an IPv6 address, and -4 asks for IPv4: leave -4 out"))),
        (_, true, Some(IpAddr::V4(v4))) => Err(unusable(format!("{v4} is an IPv4 address, and -6 asks for IPv6: leave -6 out"))),
        (true, ..) => Ok(Family::V4),
        (_, true, _) => Ok(Family::V6),
        _ => Ok(Family::Any),
    }
}

/// What `weaklink mtu` is to do, with an agent or without.
#[derive(Debug)]
pub enum MtuSettings {
    /// A session with an agent.
    Together(Box<RunSettings>),
    /// This end alone.
    Alone(AloneSettings),
}

/// What `weaklink mtu` is to do.
pub fn mtu(args: &MtuArgs) -> Result<MtuSettings, Unusable> {
    let (stated_pc, stated_nas) = stated(&args.link_speed)?;
    let target = target(&args.host)?;
    let family = family(&args.family, Some(&target))?;
    let lldp = if args.lldp { LISTEN } else { Duration::ZERO };
    if args.no_agent {
        let name = |port: u16| FILE_SERVICES.iter().find(|(known, _)| *known == port).and_then(|(_, name)| *name);
        let services = match args.tcp_port.as_slice() {
            [] => FILE_SERVICES.to_vec(),
            ports => ports.iter().map(|port| (*port, name(*port))).collect(),
        };
        return Ok(MtuSettings::Alone(AloneSettings { target, family, services, lldp, stated_pc }));
    }
    Ok(MtuSettings::Together(Box::new(RunSettings {
        family,
        throughput: ThroughputPlan { streams: Some(1), ..ThroughputPlan::default() },
        gain: args.gain,
        lldp,
        stated_pc,
        stated_nas,
        ..RunSettings::new(Scope::Mtu, target, typed_code(&args.code)?)
    })))
}

/// What `weaklink link` is to do: with an agent, or by itself.
#[derive(Debug)]
pub enum LinkMode {
    /// A session with an agent.
    Agent(Box<RunSettings>),
    /// This end alone.
    Alone(LinkSettings),
}

/// The longest watch, in seconds.
const MOST_WATCHED: f64 = 3600.0;

/// The same with an agent, which ends a session after 15 minutes whatever goes on: a load and a wait for the switch must fit too.
const MOST_WATCHED_WITH_AGENT: f64 = 600.0;

/// What means nothing where no host was named.
fn without_host(args: &LinkArgs) -> Result<(), Unusable> {
    let no_host = args.host.is_none();
    let cases = [
        (!args.link_speed.is_empty(), "--link-speed states the speed of one end of a way", "name HOST too"),
        (args.code.code.is_some(), "--code is for the agent on the NAS", "name HOST too"),
        (args.code.code_file.is_some(), "--code-file is for the agent on the NAS", "name HOST too"),
        (args.family.ipv4, "-4 chooses among the addresses of HOST", "all ports of this host have no such choice"),
        (args.family.ipv6, "-6 chooses among the addresses of HOST", "all ports of this host have no such choice"),
    ];
    match cases.into_iter().find(|(given, ..)| no_host && *given) {
        Some((_, what, then)) => Err(unusable(format!("{what}: {then}"))),
        None => Ok(()),
    }
}

/// What `weaklink link` is to do.
pub fn link(args: &LinkArgs) -> Result<LinkMode, Unusable> {
    without_host(args)?;
    let (stated_pc, stated_nas) = stated(&args.link_speed)?;
    let target = args.host.as_deref().map(target).transpose()?;
    let family = family(&args.family, target.as_ref())?;
    let lldp = if args.lldp { LISTEN } else { Duration::ZERO };
    let with_agent = target.is_some() && !args.no_agent;
    let watch = match args.watch {
        None => Duration::ZERO,
        Some(seconds) if with_agent && seconds > MOST_WATCHED_WITH_AGENT && seconds <= MOST_WATCHED => {
            return Err(unusable(format!(
                "--watch {seconds}: with an agent at most {MOST_WATCHED_WITH_AGENT} seconds can be watched, as it ends a session after 15 minutes; --no-agent watches this end for up to {MOST_WATCHED}"
            )));
        }
        Some(seconds) if (0.1..=MOST_WATCHED).contains(&seconds) => Duration::from_secs_f64(seconds),
        Some(seconds) => return Err(unusable(format!("--watch {seconds}: 0.1 to {MOST_WATCHED} seconds can be watched"))),
    };
    let target = match target {
        Some(target) if !args.no_agent => target,
        target => return Ok(LinkMode::Alone(LinkSettings { target, family, watch, lldp, stated_pc })),
    };
    Ok(LinkMode::Agent(Box::new(RunSettings {
        family,
        lldp,
        links: LinkWishes { load: !args.no_load, watch },
        stated_pc,
        stated_nas,
        ..RunSettings::new(Scope::Link, target, typed_code(&args.code)?)
    })))
}

/// What `weaklink throughput` is to do: with an agent, or against an iperf3 server.
#[derive(Debug)]
pub enum ThroughputSettings {
    /// A session with an agent.
    Agent(Box<RunSettings>),
    /// A test with an iperf3 server.
    Iperf3(Box<Iperf3Settings>),
}

/// The port of iperf3 servers.
pub const IPERF3_PORT: u16 = 5201;

/// The longest pass that an agent agrees to, in seconds.
const MOST_SECONDS: f64 = 120.0;

/// The shortest pass that has a steady part, in seconds.
const LEAST_SECONDS: f64 = 0.5;

/// What `weaklink throughput` is to do.
pub fn throughput(args: &ThroughputArgs) -> Result<ThroughputSettings, Unusable> {
    let (stated_pc, stated_nas) = stated(&args.link_speed)?;
    let throughput = throughput_plan(args)?;
    let usual = if args.iperf3 { IPERF3_PORT } else { DEFAULT_PORT };
    let target = Target::parse(&args.host, usual).map_err(|error| unusable(error.to_string()))?;
    let family = match (family(&args.family, Some(&target))?, args.bind) {
        (Family::V6, Some(IpAddr::V4(own))) => {
            return Err(unusable(format!("--bind {own} is an IPv4 address, and -6 asks for IPv6")));
        }
        (Family::V4, Some(IpAddr::V6(own))) => {
            return Err(unusable(format!("--bind {own} is an IPv6 address, and -4 asks for IPv4")));
        }
        (family, _) => family,
    };
    if args.iperf3 {
        if throughput.udp.is_some_and(|udp| udp.rate_bps.is_none()) {
            return Err(unusable(
                "--udp with --iperf3 needs --rate, such as --rate 500M: the search for the rate at which loss begins needs `weaklink serve`",
            ));
        }
        if throughput.congestion.len() > 1 {
            return Err(unusable(
                "--congestion compares several only with `weaklink serve` at the other end; name one with --iperf3",
            ));
        }
        return Ok(ThroughputSettings::Iperf3(Box::new(Iperf3Settings {
            target,
            family,
            bind: args.bind,
            throughput,
            stated_pc,
            stated_nas,
        })));
    }
    Ok(ThroughputSettings::Agent(Box::new(RunSettings {
        family,
        throughput,
        bind: args.bind,
        stated_pc,
        stated_nas,
        ..RunSettings::new(Scope::Throughput, target, typed_code(&args.code)?)
    })))
}

fn throughput_plan(args: &ThroughputArgs) -> Result<ThroughputPlan, Unusable> {
    let time_us = match args.time {
        Some(seconds) if (LEAST_SECONDS..=MOST_SECONDS).contains(&seconds) => Some(Duration::from_secs_f64(seconds).into()),
        Some(seconds) => {
            return Err(unusable(format!("--time {seconds}: a pass takes {LEAST_SECONDS} to {MOST_SECONDS} seconds")));
        }
        None => None,
    };
    let window_bytes = match args.window {
        Some(size) => match u32::try_from(size.0) {
            Ok(bytes) if (4096..=1 << 30).contains(&bytes) => Some(bytes),
            _ => return Err(unusable(format!("--window {size}: socket buffers have 4 KB to 1 GB"))),
        },
        None => None,
    };
    if args.bytes == Some(ByteSize(0)) {
        return Err(unusable("--bytes 0: there would be nothing to measure"));
    }
    let named = |name: &String| {
        !name.is_empty() && name.len() < 16 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    };
    if let Some(name) = args.congestion.iter().find(|name| !named(name)) {
        return Err(unusable(format!("--congestion {name:?} is no name of a congestion control, such as cubic or bbr")));
    }
    if let Some(twice) =
        args.congestion.iter().enumerate().find(|(at, name)| args.congestion.iter().take(*at).any(|other| other == *name))
    {
        return Err(unusable(format!("--congestion names {} twice", twice.1)));
    }
    if args.both && args.congestion.len() > 1 {
        return Err(unusable("--congestion compares several in one direction at a time: leave --both out"));
    }
    let together = match (args.together, &args.session) {
        (Some(members), Some(name)) if is_name(name) => Some(TogetherPlan { members, name: name.clone() }),
        (Some(_), _) => {
            return Err(unusable("--session: name the meeting with 1 to 64 letters, digits and signs, the same on every PC"));
        }
        (None, _) => None,
    };
    Ok(ThroughputPlan {
        ways: match (args.upload, args.download, args.both) {
            (true, _, _) => Ways::Upload,
            (_, true, _) => Ways::Download,
            (_, _, true) => Ways::Both,
            _ => Ways::All,
        },
        streams: args.streams,
        time_us,
        mss_bytes: args.mss,
        options: PassOptions {
            congestion: None,
            window_bytes,
            pacing_bps: args.pacing,
            dscp: args.dscp,
            copies: args.copies,
            max_bytes: args.bytes,
            enough: None,
        },
        congestion: args.congestion.clone(),
        udp: args.udp.then_some(UdpPlan { rate_bps: args.rate, datagram_bytes: args.datagram, time_us, ..UdpPlan::default() }),
        together,
    })
}

fn stated(words: &[String]) -> Result<(Option<BitRate>, Option<BitRate>), Unusable> {
    let (mut pc, mut nas) = (None, None);
    for word in words {
        let wrong = || unusable(format!("--link-speed {word:?}: write pc=SPEED or nas=SPEED, such as --link-speed pc=2.5G"));
        let (end, speed) = word.split_once('=').ok_or_else(wrong)?;
        let speed: BitRate = speed.parse().map_err(|error| unusable(format!("--link-speed {word:?}: {error}")))?;
        let place = match end {
            "pc" => &mut pc,
            "nas" => &mut nas,
            _ => return Err(wrong()),
        };
        if place.replace(speed).is_some() {
            return Err(unusable(format!("--link-speed states the speed of {end} twice")));
        }
    }
    Ok((pc, nas))
}

/// How the report is to look on stdout.
pub fn style(color: ColorArg) -> Style {
    let terminal = std::io::stdout().is_terminal();
    let color = match color {
        ColorArg::Always => true,
        ColorArg::Never => false,
        ColorArg::Auto => {
            let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            terminal && !refused && std::env::var("TERM").is_ok_and(|term| term != "dumb")
        }
    };
    Style { color, width: width(terminal), unicode: unicode(), trace: false, details: true }
}

/// The style of a file: nothing that depends on a terminal.
pub const fn file_style() -> Style {
    Style { color: false, width: 100, unicode: true, trace: false, details: true }
}

fn width(terminal: bool) -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse::<usize>().ok());
    let asked = || terminal.then(|| usize::from(console::Term::stdout().size().1));
    columns.or_else(asked).unwrap_or(100).clamp(40, 160)
}

/// Whether the locale can show more than ASCII; an unset locale on Windows and macOS can.
fn unicode() -> bool {
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    match locale {
        Some(locale) => {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        }
        // Most NAS systems set no locale at all and still have a terminal that shows UTF-8.
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::args::{Cli, Command};

    fn told(words: &str) -> String {
        match Cli::try_parse_from(words.split(' ')).map(|cli| cli.command) {
            Ok(Command::Link(args)) => link(&args).map_or_else(|error| error.to_string(), |_| String::new()),
            Ok(Command::Throughput(args)) => throughput(&args).map_or_else(|error| error.to_string(), |_| String::new()),
            Ok(Command::Mtu(args)) => mtu(&args).map_or_else(|error| error.to_string(), |_| String::new()),
            Ok(Command::Run(args)) => run(&args).map_or_else(|error| error.to_string(), |_| String::new()),
            Ok(_) => panic!("another command"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_means_nothing_for_links_is_refused_with_a_sentence() {
        for (words, expected) in [
            ("weaklink link", ""),
            ("weaklink link --watch 3000", ""),
            ("weaklink link nas --no-agent --watch 3000", ""),
            ("weaklink link nas --code 0 --watch 3000", "at most 600 seconds"),
            ("weaklink link --watch 4000", "0.1 to 3600 seconds"),
            ("weaklink link --watch abc", "write a number of seconds, such as 30"),
            ("weaklink link --link-speed pc=1G", "name HOST too"),
            ("weaklink link --code 1", "--code is for the agent on the NAS: name HOST too"),
            ("weaklink link --code-file x", "--code-file is for the agent"),
            ("weaklink link -4", "-4 chooses among the addresses of HOST"),
            ("weaklink link -6", "-6 chooses among the addresses of HOST"),
        ] {
            let told = told(words);
            assert!(told.contains(expected) && told.is_empty() == expected.is_empty(), "{words}: {told}");
        }
    }

    #[test]
    fn a_rate_that_cannot_be_meant_has_one_sentence_with_the_forms_that_can() {
        for option in ["--pacing", "--udp --rate"] {
            for bad in ["10X", "-1", "-1G", "abc", "0", "1e9", "--upload"] {
                let told = told(&format!("weaklink throughput nas --iperf3 {option} {bad}"));
                assert!(told.contains("such as 500M or 2.5G; the least is 100K"), "{option} {bad}: {told}");
            }
            let little = told(&format!("weaklink throughput nas --iperf3 {option} 99.9K"));
            assert!(little.contains("99.9 kbit/s is too little to measure; the least is 100 kbit/s"), "{little}");
            assert_eq!(told(&format!("weaklink throughput nas --iperf3 {option} 100K")), "");
        }
    }

    #[test]
    fn an_address_of_the_other_family_is_told_as_that_before_a_code_is_asked_for() {
        for (words, expected) in [
            ("weaklink throughput -6 192.0.2.1", "192.0.2.1 is an IPv4 address, and -6 asks for IPv6: leave -6 out"),
            ("weaklink run -6 192.0.2.1:5300", "192.0.2.1 is an IPv4 address"),
            ("weaklink mtu -4 [2001:db8::1]:80", "2001:db8::1 is an IPv6 address, and -4 asks for IPv4: leave -4 out"),
            ("weaklink link -4 fe80::1%eth0 --no-agent", "fe80::1 is an IPv6 address"),
            ("weaklink link -4 192.0.2.1 --no-agent", ""),
            ("weaklink link -6 nas.local --no-agent", ""),
        ] {
            let told = told(words);
            assert!(told.contains(expected) && told.is_empty() == expected.is_empty(), "{words}: {told}");
        }
    }

    #[test]
    fn a_code_file_goes_with_its_agent_and_nobody_elses_does() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("code");
        let (own, other) = (random_code().unwrap(), random_code().unwrap());
        write_code(&path, &own).unwrap();
        remove_code(&path, &other);
        assert!(path.exists(), "another agent wrote its own there");
        remove_code(&path, &own);
        assert!(!path.exists());
    }
}
