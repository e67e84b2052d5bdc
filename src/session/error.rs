//! What can go wrong between the two ends, each one clear sentence.

use std::io;

use crate::units::Elapsed;
use crate::wire::message::Gathering;

/// What keeps an agent busy: who runs a diagnosis since when, or which group waits for its PCs.
pub(super) fn busy_with(peer: &str, since: Elapsed, gathering: Option<&Gathering>) -> String {
    let Some(Gathering { name, missing, left_us }) = gathering else {
        let seconds = since.0 / 1_000_000;
        return format!("{peer} has been running a diagnosis for {seconds} s; wait until it is done");
    };
    let (pcs, left) = (if *missing == 1 { "PC" } else { "PCs" }, left_us.0.div_ceil(1_000_000));
    format!(
        "it waits for {missing} more {pcs} of the group {name}, for {left} s at most if none comes; join it with --together and --session {name}, or try again after that"
    )
}

/// Why a session did not come about, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The name of the host means nothing.
    #[error("cannot find the host {host}: {error}; check the spelling, or use its IP address")]
    Resolve {
        /// As typed.
        host: String,
        /// The resolver's word.
        error: io::Error,
    },
    /// An address that means another host on each interface.
    #[error(
        "{host} is a link-local address, which may be another host on each interface: write the interface behind it, {}",
        like(host, could)
    )]
    NoScope {
        /// As typed.
        host: String,
        /// The interfaces of this host that could be meant.
        could: Vec<String>,
    },
    /// Nobody answers at all.
    #[error(
        "no answer from {address} within {seconds} s: is the NAS on, is `weaklink serve` running there, \
         does a firewall drop TCP port {port}?"
    )]
    Silent {
        /// Who was asked.
        address: String,
        /// The port.
        port: u16,
        /// For how long.
        seconds: u64,
    },
    /// Nobody can be reached there, where no agent was asked for.
    #[error(
        "nobody answers at {address} ({how}; TCP ports {ports} were tried): is the address right, and the NAS on? `weaklink link` without a host shows this host's ports"
    )]
    Nobody {
        /// Who was asked.
        address: String,
        /// What the system said.
        how: String,
        /// The ports, in words.
        ports: String,
    },
    /// The host is there but nobody listens on the port.
    #[error("{address} refuses the connection: start `weaklink serve` there, or give the port that it printed as HOST:PORT")]
    Refused {
        /// Who was asked.
        address: String,
    },
    /// Another error of the system.
    #[error("cannot connect to {address}: {error}")]
    Connect {
        /// Who was asked.
        address: String,
        /// The system's word.
        error: io::Error,
    },
    /// Something else listens on the port.
    #[error(
        "{address} answers, but not as weaklink does: another program has this port; give the port that `weaklink serve` printed as HOST:PORT"
    )]
    Foreign {
        /// Who was asked.
        address: String,
    },
    /// The two ends are of different times.
    #[error(
        "{address} speaks version {theirs} of the protocol and this weaklink version {ours}: install the same weaklink at both ends"
    )]
    OtherVersion {
        /// Who was asked.
        address: String,
        /// The peer's major.minor.
        theirs: String,
        /// Ours.
        ours: String,
    },
    /// The code does not fit.
    #[error("{address} does not accept the pairing code: type the code that `weaklink serve` printed at its last start")]
    WrongCode {
        /// Who was asked.
        address: String,
    },
    /// One at a time.
    #[error("{address} is busy: {doing}")]
    Busy {
        /// Who was asked.
        address: String,
        /// With what, and how long that lasts.
        doing: String,
    },
    /// The PCs that were to measure together did not find each other.
    #[error("the PCs did not come together: {0}")]
    Group(String),
    /// Too many strangers knock.
    #[error("{address} has too many connections that have not said who they are; try again in a few seconds")]
    Overloaded {
        /// Who was asked.
        address: String,
    },
    /// The other end vanished.
    #[error("lost the {peer} {during}: {how}")]
    Lost {
        /// `PC` or `NAS`.
        peer: &'static str,
        /// In which step.
        during: String,
        /// What was seen.
        how: String,
    },
    /// The other end lives but does not answer.
    #[error(
        "the {peer} did not answer within {seconds} s {during}, though it shows signs of life: a disk or program hangs there"
    )]
    Stuck {
        /// `PC` or `NAS`.
        peer: &'static str,
        /// In which step.
        during: String,
        /// For how long.
        seconds: u64,
    },
    /// The other end says something that it must not.
    #[error("the {peer} sent what this version does not understand: {what}")]
    Protocol {
        /// `PC` or `NAS`.
        peer: &'static str,
        /// What.
        what: String,
    },
    /// The agent was ended by its owner.
    #[error("the agent on the NAS was ended: {0}")]
    Left(String),
    /// A test with an iperf3 server did not come about.
    #[error("{0}")]
    Iperf3(String),
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
    /// The agent cannot listen.
    #[error("failed to listen on {address}: {error}{hint}")]
    Bind {
        /// Where.
        address: String,
        /// The system's word.
        error: io::Error,
        /// What to do.
        hint: &'static str,
    },
    /// A directory that cannot be used.
    #[error("cannot use the directory {path}: {error}")]
    Directory {
        /// Which.
        path: String,
        /// The system's word.
        error: io::Error,
    },
    /// The system gives no randomness.
    #[error("the system gives no random numbers: {0}")]
    Random(String),
}

/// How an address is written with its interface: `as in fe80::1%eth0`, and the interfaces that there are.
fn like(host: &str, could: &[String]) -> String {
    let first = could.first().map_or("eth0", String::as_str);
    // What was typed may be a name.
    let address = if host.contains(':') { host } else { "fe80::1" };
    let example = format!("as in {address}%{first}");
    match could {
        [] => format!("{example} (no interface of this host has a link-local IPv6 address)"),
        [_] => format!("{example} (the only interface here with such addresses)"),
        several => {
            let names = several.iter().take(8).map(String::as_str).collect::<Vec<_>>().join(", ");
            format!("{example} (here it may be {names}{})", if several.len() > 8 { " and others" } else { "" })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_waits_for_a_group_does_not_run_a_diagnosis() {
        let second = 1_000_000;
        assert_eq!(
            busy_with("192.0.2.1", Elapsed(7 * second), None),
            "192.0.2.1 has been running a diagnosis for 7 s; wait until it is done"
        );
        let group = |missing| Gathering { name: "attic".to_owned(), missing, left_us: Elapsed(88 * second + 1) };
        for (missing, words) in [
            (1, "it waits for 1 more PC of the group attic, for 89 s at most"),
            (2, "it waits for 2 more PCs of the group attic, for 89 s at most"),
        ] {
            let said = busy_with("192.0.2.1", Elapsed(7 * second), Some(&group(missing)));
            assert!(said.starts_with(words) && said.contains("--session attic"), "{said}");
        }
    }
}
