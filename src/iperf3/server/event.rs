//! What the owner of the server is told.

use std::fmt;
use std::net::SocketAddr;

use crate::units::{BitRate, ByteSize, Elapsed};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Iperf3Event {
    /// The server listens here.
    Listening(SocketAddr),
    /// Something that the owner should know.
    Note(String),
    /// A client began; what it asks for, in one sentence.
    Begin {
        /// The client.
        peer: SocketAddr,
        /// The test, as in `3 TCP streams from the client for 10 s`.
        test: String,
    },
    /// A test was done, and the client has its results.
    Done {
        /// The client.
        peer: SocketAddr,
        /// What moved.
        served: Served,
    },
    /// A test ended before its results.
    Broken {
        /// The client.
        peer: SocketAddr,
        /// Why, in one sentence.
        reason: String,
    },
    /// A client was turned away.
    Rejected {
        /// The client.
        peer: SocketAddr,
        /// Why.
        reason: String,
    },
}

/// What moved in a test.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Served {
    /// What arrived from the client; none when it did not send.
    pub received: Option<Moved>,
    /// What was sent to the client; none when it did not receive. What arrived there, only the client knows.
    pub sent: Option<Moved>,
}

/// What moved one way, in all streams together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moved {
    /// The bytes, without the time that was left out.
    pub bytes: ByteSize,
    /// The time that they took.
    pub elapsed: Elapsed,
    /// Segments sent again; none where this end received or the system does not tell.
    pub retransmits: Option<u64>,
    /// Datagrams lost and datagrams sent, as far as the receiver can know; none for TCP and for senders.
    pub lost: Option<(u64, u64)>,
}

impl Moved {
    /// The rate.
    pub fn rate(&self) -> BitRate {
        BitRate::of(self.bytes, self.elapsed.into())
    }
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}, {}", self.bytes, self.elapsed, self.rate())?;
        match self.retransmits {
            None => {}
            Some(1) => f.write_str(", 1 segment sent again")?,
            Some(count) => write!(f, ", {count} segments sent again")?,
        }
        match self.lost {
            Some((lost, all)) => write!(f, ", {lost} of {all} datagrams lost"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.received, &self.sent) {
            (Some(received), Some(sent)) => write!(f, "received {received}; sent {sent}"),
            (Some(received), None) => write!(f, "received {received}"),
            (None, Some(sent)) => write!(f, "sent {sent}"),
            (None, None) => f.write_str("nothing moved"),
        }
    }
}

impl fmt::Display for Iperf3Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listening(address) => write!(f, "iperf3 clients can test against {address} (TCP and UDP)"),
            Self::Note(text) => f.write_str(text),
            Self::Begin { peer, test } => write!(f, "iperf3 client {peer}: {test}"),
            Self::Done { peer, served } => write!(f, "iperf3 client {peer}: {served}"),
            Self::Broken { peer, reason } => write!(f, "iperf3 client {peer}: the test ended early: {reason}"),
            Self::Rejected { peer, reason } => write!(f, "iperf3 client {peer} was turned away: {reason}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_one_sentence() {
        let moved = Moved { bytes: ByteSize(125_000_000), elapsed: Elapsed(1_000_000), retransmits: Some(3), lost: None };
        let datagrams = Moved { retransmits: None, lost: Some((2, 100)), ..moved.clone() };
        let served = Served { received: Some(datagrams), sent: Some(moved) };
        assert_eq!(
            served.to_string(),
            "received 125 MB in 1 s, 1 Gbit/s, 2 of 100 datagrams lost; sent 125 MB in 1 s, 1 Gbit/s, 3 segments sent again"
        );
        assert_eq!(Served::default().to_string(), "nothing moved");
    }
}
