//! The system's own programs, by fixed paths.

use std::io;
use std::path::Path;
use std::time::Duration;

pub use super::list::listed;

use crate::sys::Stop;
use crate::sys::ports::{Question, Teller};
use crate::sys::program::{self, Limits, Printed};

/// Who tells.
pub const TELLER: Teller = if cfg!(windows) {
    Teller::PowerShell
} else if cfg!(any(target_os = "macos", target_os = "freebsd", target_os = "netbsd", target_os = "openbsd")) {
    Teller::Ifconfig
} else {
    Teller::ListOnly
};

/// These programs answer from the kernel's memory, in milliseconds.
const QUICK: Limits = Limits { time: Duration::from_secs(2), bytes: 256 * 1024 };
/// PowerShell takes a second to start and loads its modules with each command; what came in time is used.
const SCRIPT: Limits = Limits { time: Duration::from_secs(15), bytes: 1 << 20 };

/// Asks the system's own program. `Unsupported` where it has none for this, `NotFound` where the program is not there.
pub fn ask(question: Question<'_>) -> io::Result<Printed> {
    let run = |path: &str, arguments: &[&str], limits| program::output(path, arguments, limits, &Stop::new());
    match TELLER {
        Teller::Ifconfig => ifconfig(question),
        Teller::PowerShell => {
            let Question::Script(script) = question else { return nothing() };
            run(&powershell()?, &["-NoProfile", "-NonInteractive", "-Command", script], SCRIPT)
        }
        Teller::ListOnly | Teller::Files => nothing(),
    }
}

/// The programs of macOS and the BSDs.
fn ifconfig(question: Question<'_>) -> io::Result<Printed> {
    let run = |path: &str, arguments: &[&str]| program::output(path, arguments, QUICK, &Stop::new());
    let apple = cfg!(target_os = "macos");
    match question {
        // Verbose: the type of the port and the state of an aggregation's ports; with the media that it supports.
        Question::Interface(name) if cfg!(any(target_os = "macos", target_os = "freebsd")) => {
            run("/sbin/ifconfig", &["-m", "-v", name])
        }
        Question::Interface(name) => run("/sbin/ifconfig", &[name]),
        Question::Aggregation(name) if apple => run("/sbin/ifconfig", &["-b", name]),
        Question::Route(peer) => {
            let family = if peer.is_ipv6() { "-inet6" } else { "-inet" };
            run("/sbin/route", &["-n", "get", family, &peer.to_string()])
        }
        Question::Counters(name) => {
            let netstat = if apple { "/usr/sbin/netstat" } else { "/usr/bin/netstat" };
            run(netstat, &["-n", "-b", "-d", "-I", name])
        }
        Question::Bus(name) if cfg!(target_os = "freebsd") => run("/usr/sbin/pciconf", &["-l", "-c", name]),
        Question::Aggregation(_) | Question::Bus(_) | Question::Script(_) => nothing(),
    }
}

/// Windows' own PowerShell, which is a part of the system since Windows 7; below the system's directory and nowhere else.
fn powershell() -> io::Result<String> {
    let root = std::env::var("SystemRoot").map_err(|_| io::Error::new(io::ErrorKind::NotFound, "SystemRoot is not set"))?;
    // A relative one would be looked for in the current directory.
    if !Path::new(&root).is_absolute() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "SystemRoot is no absolute path"));
    }
    Ok(format!(r"{root}\System32\WindowsPowerShell\v1.0\powershell.exe"))
}

fn nothing() -> io::Result<Printed> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no program of its own that tells it"))
}
