//! Why a test with an iperf3 server did not come about, in sentences for people.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use crate::iperf3::{ControlError, Fault, State};

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The test itself cannot be.
    #[error("this test cannot be done with iperf3: {0}")]
    Invalid(String),
    /// Connection refused.
    #[error("nothing listens at {0}: start `iperf3 -s` there, or name the port where it listens")]
    NothingListens(SocketAddr),
    /// No connection for another reason.
    #[error("failed to connect to the iperf3 server at {address}: {error}")]
    Connect {
        /// The server.
        address: SocketAddr,
        /// The system's word.
        error: io::Error,
    },
    /// `ACCESS_DENIED`.
    #[error("the iperf3 server at {0} is running another test, and it does one at a time: try again when that is over")]
    Busy(SocketAddr),
    /// The first words were none of iperf3's.
    #[error("what answers at {address} is no iperf3 server: {what}")]
    NotIperf3 {
        /// Where it answers.
        address: SocketAddr,
        /// What it did in place of iperf3's first word.
        what: String,
    },
    /// Closed before the first word: no iperf3 server, or one whose last test has just ended.
    #[error("what answers at {0} closed the connection without a word: it is no iperf3 server, or one that is not ready yet")]
    ClosedAtOnce(SocketAddr),
    /// `SERVER_ERROR`.
    #[error("the iperf3 server at {address} refuses this test: {why}")]
    Refused {
        /// The server.
        address: SocketAddr,
        /// Its error in words.
        why: String,
    },
    /// `SERVER_TERMINATE`.
    #[error("the iperf3 server at {0} was ended by its user during the test")]
    Terminated(SocketAddr),
    /// The control connection was closed too early.
    #[error(
        "the iperf3 server at {address} closed the connection {during}: it was ended or lost its way; its own output tells more"
    )]
    Left {
        /// The server.
        address: SocketAddr,
        /// When it was.
        during: &'static str,
    },
    /// The control connection stayed silent.
    #[error("the iperf3 server at {address} said nothing for {} s {during}: it hangs, or the path drops what it says", .waited.as_secs())]
    Silent {
        /// The server.
        address: SocketAddr,
        /// When it was.
        during: &'static str,
        /// How long it was waited for.
        waited: Duration,
    },
    /// It said what does not belong here.
    #[error("the iperf3 server at {address} and this program do not understand each other {during}: {what}")]
    Misunderstood {
        /// The server.
        address: SocketAddr,
        /// When it was.
        during: &'static str,
        /// What it said.
        what: String,
    },
    /// A data connection.
    #[error("failed to open data stream {number} of {of} to {address}: {error}")]
    Stream {
        /// The server.
        address: SocketAddr,
        /// Which one, from 1 on.
        number: usize,
        /// Of how many.
        of: usize,
        /// The system's word.
        error: io::Error,
    },
    /// All data connections broke.
    #[error("the data streams to {address} broke: {why}")]
    Broke {
        /// The server.
        address: SocketAddr,
        /// The first one's error.
        why: String,
    },
    /// The word to stop came before anything was measured.
    #[error("the test with the iperf3 server was interrupted before anything was measured")]
    Interrupted,
    /// This host.
    #[error("failed to run a test with an iperf3 server: {0}")]
    Host(#[from] io::Error),
}

impl ClientError {
    /// What went wrong on the control connection, in the step that `during` names.
    pub(super) fn of(error: ControlError, address: SocketAddr, during: &'static str, waited: Duration) -> Self {
        match error {
            ControlError::Stopped => Self::Interrupted,
            ControlError::TimedOut => Self::Silent { address, during, waited },
            ControlError::Closed => Self::Left { address, during },
            ControlError::UnexpectedState(State::ServerTerminate) => Self::Terminated(address),
            ControlError::UnexpectedState(State::AccessDenied) => Self::Busy(address),
            ControlError::Refused(fault) => Self::Refused { address, why: explain(fault) },
            ControlError::Io(error) if error.kind() == io::ErrorKind::InvalidInput => Self::Host(error),
            other => Self::Misunderstood { address, during, what: other.to_string() },
        }
    }

    /// What went wrong before the server's first word: then it may be no iperf3 server at all.
    pub(super) fn at_first(error: ControlError, address: SocketAddr, waited: Duration) -> Self {
        let what = match error {
            ControlError::TimedOut => format!("it said nothing for {} s", waited.as_secs()),
            ControlError::Closed => return Self::ClosedAtOnce(address),
            ControlError::UnknownState(byte) => format!("its first byte was {byte}, and no state of iperf3's has that number"),
            ControlError::UnexpectedState(state) if !matches!(state, State::AccessDenied | State::ServerTerminate) => {
                format!("its first byte means {state:?}, which comes later with iperf3")
            }
            other => return Self::of(other, address, "at the beginning", waited),
        };
        Self::NotIperf3 { address, what }
    }

    /// Whether a server that has just ended another test gives this answer, so that it is worth a second try.
    pub(super) const fn may_pass(&self) -> bool {
        matches!(self, Self::Busy(_) | Self::NothingListens(_) | Self::ClosedAtOnce(_))
    }
}

/// A server's error with its meaning, and with what the system said beside it.
fn explain(fault: Fault) -> String {
    let meaning = fault
        .meaning()
        .map_or_else(|| format!("its error number {}, which this program does not know", fault.iperf), str::to_owned);
    match fault.system_words() {
        Some(words) => format!("{meaning} ({words})"),
        None => meaning,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iperf3::FaultCode;

    #[test]
    fn each_error_is_a_sentence_with_the_server_in_it() {
        let address: SocketAddr = "192.0.2.7:5201".parse().unwrap();
        let wait = Duration::from_secs(10);
        for (error, words) in [
            (ControlError::UnexpectedState(State::AccessDenied), "running another test"),
            (ControlError::UnexpectedState(State::ServerTerminate), "was ended by its user"),
            (ControlError::UnexpectedState(State::TestRunning), "no iperf3 server"),
            (ControlError::UnknownState(72), "first byte was 72"),
            (ControlError::Closed, "closed the connection without a word"),
            (ControlError::TimedOut, "said nothing for 10 s"),
            (ControlError::Refused(Fault::of(FaultCode::TotalRate)), "refuses this test"),
            (ControlError::Refused(Fault { iperf: 9999, system: 13 }), "9999"),
            (ControlError::Refused(Fault { iperf: 6, system: 1 << 30 }), "(errno 1073741824, not one that Linux knows)"),
            (ControlError::Unfinished { got: 3, of: 9, what: "an error" }, "sent 3 of 9 bytes of an error and then nothing more"),
        ] {
            let sentence = ClientError::at_first(error, address, wait).to_string();
            assert!(sentence.contains(words) && sentence.contains("192.0.2.7:5201"), "{sentence}");
        }
        let later = ClientError::of(ControlError::Closed, address, "while the test ran", wait);
        assert!(later.to_string().contains("closed the connection while the test ran"), "{later}");
        assert!(ClientError::Busy(address).may_pass() && !later.may_pass());
    }
}
