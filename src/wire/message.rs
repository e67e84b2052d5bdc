//! What the two ends say to each other on the control connection.
//!
//! The client asks, the agent answers each [`Request`] with one [`Reply`], in order. Between them both
//! ends send `Alive` once a second, so that a dead peer is noticed although no data moves.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::model::copy::Place;
use crate::model::cpu::{CpuWindow, HostCpu};
use crate::model::flows::{FlowCheck, FlowSpread};
use crate::model::host::{Direction, Host};
use crate::model::link::{CountersByInterface, HostLink, Neighbour};
use crate::model::link_event::LogRest;
use crate::model::mtu::{PathMtu, TcpEnd};
use crate::model::outcome::Outcome;
use crate::model::plan::Ways;
use crate::model::storage::DiskResult;
use crate::model::throughput::{Bins, PassOptions, ReceiverEnd, SenderEnd};
use crate::model::udp::{UdpReceived, UdpSent};
use crate::units::{BitRate, ByteSize, Elapsed};

/// The right to open one data connection, or to use UDP in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Token(pub [u8; 16]);

/// What the client asks of the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// I am still here; no reply.
    Alive,
    /// What are you, and what do you know of the link to me?
    Describe {
        /// For how long to look at the processors at rest; zero for not at all.
        idle_us: Elapsed,
    },
    /// Give me the right to open so many data connections.
    Tokens {
        /// How many; at most [`MOST_STREAMS`].
        count: u32,
    },
    /// Search the path MTU towards me.
    SearchMtu {
        /// The largest time for it.
        budget_us: Elapsed,
    },
    /// What does your kernel say of this data connection, right after its handshake?
    Handshake {
        /// The data connection.
        token: Token,
    },
    /// What do the switches at your ports say of themselves?
    Neighbours {
        /// How long to go on listening where a port has heard nothing yet.
        wait_us: Elapsed,
    },
    /// What has your kernel's log told since you described your link? Only agents from protocol 3.2 on know it.
    Log,
    /// Use the data connections with these tokens for a pass.
    Pass(PassRequest),
    /// Two passes at the same moment, each over data connections of its own.
    PassBoth {
        /// The one from me.
        upload: PassRequest,
        /// The one to me.
        download: PassRequest,
    },
    /// Let me open a flow of datagrams to you: I say hello with a token that you give me.
    UdpFlow {
        /// Whether on a port of its own, after the common one did not work.
        own_port: bool,
    },
    /// Has my hello come?
    UdpArrived,
    /// Begin to receive datagrams on the flow.
    UdpBegin(UdpPassRequest),
    /// I have sent so many; what came of them?
    UdpEnd {
        /// What my kernel took.
        sent: u64,
    },
    /// Send datagrams on the flow.
    UdpSend(UdpPassRequest),
    /// Measure your cipher ceilings.
    Ciphers {
        /// The time for each cipher.
        each_us: Elapsed,
    },
    /// Measure your directory without the network.
    Disk {
        /// The time for writing, and again for reading.
        each_us: Elapsed,
        /// The most to write.
        max_bytes: ByteSize,
    },
    /// How much of this may be written to your directory?
    Room {
        /// The most that would be written.
        max_bytes: ByteSize,
    },
    /// Take part in a copy over a data connection.
    Copy(CopyRequest),
    /// Begin to sample your CPU.
    StartSampling,
    /// End that and tell me.
    StopSampling,
    /// I measure together with others: are all there? To be asked again while they are not.
    Gather(GatherRequest),
    /// Answer when all members of my group have asked this.
    Meet {
        /// What the others are to know of me.
        told: Option<BitRate>,
        /// The longest that I wait for them.
        wait_us: Elapsed,
    },
    /// This was all.
    Bye,
}

/// A pass of the throughput test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PassRequest {
    /// The way of the data.
    pub direction: Direction,
    /// The data connections, already opened by the client.
    pub tokens: Vec<Token>,
    /// How long the sender sends.
    pub duration_us: Elapsed,
    /// How much longer the receiver waits for the end.
    pub grace_us: Elapsed,
    /// What is asked of the sockets and the engine.
    pub options: PassOptions,
}

/// A pass of the datagram test, over the flow that the client opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpPassRequest {
    /// The number that every datagram of it carries.
    pub pass: u64,
    /// The rate in payload bits.
    pub rate_bps: BitRate,
    /// How long the sender sends.
    pub duration_us: Elapsed,
    /// Payload of each datagram.
    pub datagram_bytes: u32,
}

/// Where and with what to say hello for a flow of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpInvitation {
    /// What the hello must carry.
    pub token: Token,
    /// The agent's port.
    pub port: u16,
}

/// A copy of the raw lane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CopyRequest {
    /// The way of the data.
    pub direction: Direction,
    /// The data connection.
    pub token: Token,
    /// Where the agent's end of the data is: its memory, or the directory that `serve` was given.
    pub place: Place,
    /// The seed of the content.
    pub seed: u64,
    /// How long the sender sends.
    pub budget_us: Elapsed,
    /// The most to move.
    pub max_bytes: ByteSize,
}

/// A wish to measure together with others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatherRequest {
    /// The name that all of them meet under.
    pub name: String,
    /// How many they are.
    pub members: u32,
    /// Which directions they measure; the same at all, for they go through one schedule.
    pub ways: Ways,
    /// The time for a pass; that of the first one counts for all.
    pub time_us: Elapsed,
}

/// All members of a group are there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gathered {
    /// Which of them you are, counted from 0.
    pub index: u32,
    /// Their addresses as the agent sees them, in the order of their coming.
    pub addresses: Vec<IpAddr>,
    /// The time for a pass.
    pub time_us: Elapsed,
}

/// All members of a group have met; each list has them in the order of their coming.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Met {
    /// What each of them told.
    pub told: Vec<Option<BitRate>>,
    /// When each began its first pass since the last meeting, counted from the earliest of them by the agent's clock.
    pub began_us: Vec<Option<Elapsed>>,
}

/// The most data connections in one pass.
pub const MOST_STREAMS: u32 = 128;

/// What the agent answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// I am still here; answers nothing.
    Alive,
    /// You are welcome: first message after the handshake.
    Ready {
        /// The token for UDP in this session.
        udp: Token,
        /// Whether `serve` was given a directory.
        has_dir: bool,
        /// Why UDP does not work, if it does not.
        udp_fault: Option<String>,
    },
    /// Another diagnosis runs: first message after the handshake, or the answer to a client that was let in to join a group and
    /// asks for something else.
    Busy {
        /// Who runs it.
        peer: String,
        /// For how long already.
        since_us: Elapsed,
        /// Where nothing runs yet: the group that waits for its PCs.
        #[serde(default)]
        gathering: Option<Gathering>,
    },
    /// To `Describe`.
    Described(Box<Described>),
    /// To `Tokens`.
    Tokens(Vec<Token>),
    /// To `SearchMtu`.
    Mtu(Outcome<PathMtu>),
    /// To `Handshake`.
    Handshake(Outcome<TcpEnd>),
    /// To `Neighbours`.
    Neighbours(Outcome<Vec<Neighbour>>),
    /// To `Log`.
    Log(Outcome<LogRest>),
    /// To `Pass` upload.
    Received(Outcome<ReceiverEnd>, Box<Around>),
    /// To `Pass` download.
    Sent(Outcome<SenderEnd>, Box<Around>),
    /// To `PassBoth`.
    Both(Box<(Outcome<ReceiverEnd>, Outcome<SenderEnd>)>, Box<Around>),
    /// To `UdpFlow`.
    UdpFlow(Outcome<UdpInvitation>),
    /// To `UdpArrived`.
    UdpArrived(Outcome<()>),
    /// To `UdpBegin`: what comes from now on is counted.
    UdpBegun,
    /// To `UdpEnd`.
    UdpReceived(Box<Outcome<UdpReceived>>, Box<Around>),
    /// To `UdpSend`.
    UdpSent(Outcome<UdpSent>, Box<Around>),
    /// To `Ciphers`.
    Ciphers(Outcome<HostCpu>),
    /// To `Disk`.
    Disk(Box<Outcome<DiskResult>>),
    /// To `Room`.
    Room(Outcome<ByteSize>),
    /// To `Copy`.
    Copied(Outcome<CopiedEnd>, Box<Around>),
    /// To `StartSampling`.
    Sampling,
    /// To `StopSampling`.
    Sampled(Box<Around>),
    /// To `Gather`, as long as others are missing.
    Waiting {
        /// How many are there, the one that asks among them.
        present: u32,
        /// How much longer the group waits if nobody new comes; none from an agent that does not tell.
        #[serde(default)]
        left_us: Option<Elapsed>,
    },
    /// To `Gather`, as soon as all are there.
    Gathered(Gathered),
    /// To `Meet`.
    Met(Met),
    /// The request cannot be served: one clear sentence.
    Refused(String),
    /// The agent ends (interrupted at its host).
    Leaving(String),
}

/// A group that is not complete yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gathering {
    /// The name that its PCs meet under.
    pub name: String,
    /// How many PCs are missing.
    pub missing: u32,
    /// How much longer it waits if nobody new comes.
    pub left_us: Elapsed,
}

/// What the agent knows of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Described {
    /// The host.
    pub host: Host,
    /// The link towards the client.
    pub link: Outcome<HostLink>,
    /// Its CPU with nothing to do, and what it has for ciphers.
    pub idle: Outcome<CpuWindow>,
}

/// What a host saw around a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Around {
    /// Its CPU.
    pub cpu: Outcome<CpuWindow>,
    /// What its interfaces counted.
    pub counters: Outcome<CountersByInterface>,
    /// Which port of its aggregation each connection leaves by on which it sent.
    #[serde(default = "not_foretold")]
    pub spread: Outcome<FlowSpread>,
    /// That beside what the ports sent.
    #[serde(default = "not_foretold")]
    pub flows: Outcome<FlowCheck>,
}

fn not_foretold<T>() -> Outcome<T> {
    Outcome::skipped("this end sent nothing")
}

impl Around {
    /// Nothing is known, for one reason.
    pub fn none(reason: &str) -> Self {
        Self {
            cpu: Outcome::skipped(reason),
            counters: Outcome::skipped(reason),
            spread: Outcome::skipped(reason),
            flows: Outcome::skipped(reason),
        }
    }
}

/// One end of a raw copy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CopiedEnd {
    /// The bytes that passed this end for good.
    pub bytes: ByteSize,
    /// From the first byte to the end of the last write.
    pub elapsed_us: Elapsed,
    /// The series at this end.
    pub bins: Bins,
    /// The bytes whose content was compared.
    pub verified_bytes: Outcome<ByteSize>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_survive_the_trip() {
        let request = Request::Pass(PassRequest {
            direction: Direction::Upload,
            tokens: vec![Token([7; 16])],
            duration_us: Elapsed(3_000_000),
            grace_us: Elapsed(1_500_000),
            options: PassOptions { congestion: Some("cubic".to_owned()), ..PassOptions::default() },
        });
        let bytes = serde_json::to_vec(&request).unwrap();
        assert_eq!(serde_json::from_slice::<Request>(&bytes).unwrap(), request);
    }

    proptest! {
        #[test]
        fn hostile_messages_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = serde_json::from_slice::<Request>(&bytes);
            let _ = serde_json::from_slice::<Reply>(&bytes);
        }
    }
}
