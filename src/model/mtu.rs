//! The largest packet that passes, per direction.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::host::{Direction, Role};
use super::link::CountersByInterface;
use super::outcome::{Outcome, absent};
use crate::units::{BitRate, ByteSize, Elapsed, Mtu};

/// Reasons of parts that were not measured because there was nothing to measure: they are no gap of a report.
pub mod needless {
    /// Streams prove black holes.
    pub const NO_HOLE: &str = "no black hole was found, so there is nothing to prove";
    /// A contrast needs something to be held against.
    pub const NO_CONTRAST: &str = "no stream was tried without a clamp, so there is nothing to compare it with";
    /// What one end can know alone is less than what two ends measure.
    pub const TWO_ENDS: &str = "with an agent at the other end each direction is measured by itself, and this tells nothing more";
    /// The place of a limit is known when the sender is the limit.
    pub const OWN_INTERFACE: &str = "the sender's own interface is the limit, so nothing is kept back on the path";
    /// All of them.
    pub const ALL: [&str; 4] = [NO_HOLE, NO_CONTRAST, TWO_ENDS, OWN_INTERFACE];
}

/// Headers of IP and TCP without options, in bytes: what the MSS leaves out of the MTU (RFC 791, RFC 8200; RFC 9293, 3.7.1).
pub const fn tcp_headers(ipv6: bool) -> u32 {
    if ipv6 { 60 } else { 40 }
}

/// Both directions, what TCP makes of them, and the proof of a black hole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MtuSection {
    /// PC → NAS.
    pub upload: Outcome<PathMtu>,
    /// NAS → PC.
    pub download: Outcome<PathMtu>,
    /// What a stream did whose segments were not clamped to the found path MTU.
    pub unclamped: Outcome<SegmentStream>,
    /// The same direction right after that with segments that fit the path: the contrast.
    #[serde(default = "absent")]
    pub clamped: Outcome<SegmentStream>,
    /// What the two ends of one TCP connection agreed on.
    #[serde(default = "absent")]
    pub handshake: Outcome<TcpHandshake>,
    /// What large packets gain here, measured where the path carries them.
    #[serde(default = "absent")]
    pub gain: Outcome<Vec<JumboGain>>,
    /// The search by ICMP echo, which needs no agent.
    #[serde(default = "absent")]
    pub echo: Outcome<EchoPath>,
    /// What TCP services of the NAS say, which needs no agent.
    #[serde(default = "absent")]
    pub services: Outcome<Vec<ServiceProbe>>,
    /// What the PC's interfaces counted while packets were tried; names that did not move are left out.
    #[serde(default = "absent")]
    pub counters_pc: Outcome<CountersByInterface>,
    /// What the NAS's interfaces counted.
    #[serde(default = "absent")]
    pub counters_nas: Outcome<CountersByInterface>,
}

impl MtuSection {
    /// A section with the results of both directions; everything else is skipped for `reason`.
    pub fn new(upload: Outcome<PathMtu>, download: Outcome<PathMtu>, reason: &str) -> Self {
        Self {
            upload,
            download,
            unclamped: Outcome::skipped(reason),
            clamped: Outcome::skipped(reason),
            handshake: Outcome::skipped(reason),
            gain: Outcome::skipped(reason),
            echo: Outcome::skipped(reason),
            services: Outcome::skipped(reason),
            counters_pc: Outcome::skipped(reason),
            counters_nas: Outcome::skipped(reason),
        }
    }

    /// What the interfaces of one end counted.
    pub const fn counters(&self, role: Role) -> &Outcome<CountersByInterface> {
        match role {
            Role::Pc => &self.counters_pc,
            Role::Nas => &self.counters_nas,
        }
    }

    /// One direction's result.
    pub const fn of(&self, direction: Direction) -> &Outcome<PathMtu> {
        match direction {
            Direction::Upload => &self.upload,
            Direction::Download => &self.download,
        }
    }
}

/// The result of the search in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathMtu {
    /// The largest packet that passed, to the byte.
    pub mtu: Mtu,
    /// The largest size that the sender's own interface lets out.
    pub ceiling: Mtu,
    /// Who keeps larger packets back.
    pub limited_by: Limiter,
    /// The number of probes sent, those of control included.
    pub probes: u32,
    /// The time that the search took.
    pub elapsed_us: Elapsed,
    /// The least round-trip time of a probe, if one was answered.
    pub rtt_us: Option<Elapsed>,
    /// Every probe in the order of sending.
    pub trace: Vec<Probe>,
    /// Everything that routers said about packets that were too large, honest or not, each word once.
    #[serde(default)]
    pub words: Vec<RouterWord>,
    /// How the path changed while it was probed, if it did; `mtu` is what holds at the end.
    #[serde(default)]
    pub change: Option<MtuChange>,
    /// Where packets that are too large are kept back, when it is not the own interface.
    #[serde(default = "absent")]
    pub location: Outcome<Location>,
}

impl PathMtu {
    /// Whether a sender whose packets are too large learns which size fits: from its own interface, or from a router that names no
    /// more than what passes. One that names more is as good as silent: packets of the size that it names vanish.
    pub fn is_told(&self) -> bool {
        match self.limited_by {
            Limiter::LocalInterface => true,
            Limiter::Router { next_hop_mtu, .. } => next_hop_mtu.0 > 0 && next_hop_mtu <= self.mtu,
            Limiter::Silent => false,
        }
    }

    /// How many probes of sizes that pass were sent, and how many of them were lost: the loss of the path itself.
    pub fn loss(&self) -> (u32, u32) {
        let passing = self.trace.iter().filter(|probe| probe.size <= self.mtu);
        passing.fold((0, 0), |(sent, lost), probe| match probe.fate {
            ProbeFate::Acknowledged => (sent + 1, lost),
            ProbeFate::Lost => (sent + 1, lost + 1),
            ProbeFate::RefusedLocally | ProbeFate::RefusedByRouter => (sent, lost),
        })
    }
}

/// What a router said about a packet that was too large (ICMP fragmentation needed, or packet too big).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouterWord {
    /// The router.
    pub address: IpAddr,
    /// The MTU of its next hop, as it said; foreign, so it may be anything.
    pub next_hop_mtu: Mtu,
    /// The size of the smallest packet that it was about.
    pub about: Mtu,
}

impl RouterWord {
    /// What is wrong with the word, if it cannot be true; the least that IPv4 allows is 68 bytes (RFC 791), IPv6 1280 (RFC 8200).
    pub fn lie(&self) -> Option<WordFault> {
        let least = if self.address.is_ipv6() { Mtu(1280) } else { Mtu(68) };
        match self.next_hop_mtu {
            Mtu(0) => Some(WordFault::Zero),
            mtu if mtu >= self.about => Some(WordFault::NotSmaller),
            mtu if mtu < least => Some(WordFault::BelowLeast),
            _ => None,
        }
    }
}

/// Why a router's word cannot be true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordFault {
    /// It names no MTU (routers before RFC 1191).
    Zero,
    /// It names an MTU that the refused packet would have fitted.
    NotSmaller,
    /// It names less than every link must carry.
    BelowLeast,
}

/// A path MTU that changed while it was searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MtuChange {
    /// The largest packet that had passed before.
    pub from: Mtu,
    /// The largest that passes at the end of the search.
    pub to: Mtu,
    /// When the first probe contradicted the earlier ones, from the start of the search.
    pub at_us: Elapsed,
}

/// Where packets that are too large are kept back, told by probes of limited TTL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// The size of the packets that do not pass.
    pub size: Mtu,
    /// The routers in the order of the path; empty when both hosts are in one subnet.
    pub hops: Vec<Hop>,
    /// The TTL with which the other end is reached: 1 when no router lies between.
    pub peer_at: Option<u8>,
    /// The last place that large packets reach: 0 is the sender itself, 1 the first router.
    pub reached: u8,
    /// The next place behind that which answers to small packets, and does not see large ones; the other end where it equals `peer_at`.
    pub missing: Option<u8>,
}

/// One router of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// Its distance: 1 is the first router.
    pub ttl: u8,
    /// Its address, as it answered a small packet; none when it did not.
    pub address: Option<IpAddr>,
    /// The round-trip time of that.
    pub rtt_us: Option<Elapsed>,
    /// Whether a packet of the large size arrived there.
    pub large_arrived: bool,
}

/// Who limits the size of packets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Limiter {
    /// The sender's own interface: nothing larger can leave.
    LocalInterface,
    /// A router that said so by ICMP.
    Router {
        /// The router's address.
        address: IpAddr,
        /// The MTU of its next hop, as it said.
        next_hop_mtu: Mtu,
    },
    /// Larger packets vanish and nobody says so: a black hole.
    Silent,
}

/// One probe packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// The size of the IP packet.
    pub size: Mtu,
    /// When it was sent, from the start of the search.
    pub at_us: Elapsed,
    /// What became of it.
    pub fate: ProbeFate,
    /// The round-trip time, if it was answered.
    pub rtt_us: Option<Elapsed>,
}

/// What became of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeFate {
    /// The peer acknowledged it.
    Acknowledged,
    /// No answer came in time.
    Lost,
    /// Our own system refused to send it.
    RefusedLocally,
    /// A router said that it is too large.
    RefusedByRouter,
}

/// A stream of a certain size of segments, for a short time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SegmentStream {
    /// The direction of the data.
    pub direction: Direction,
    /// What arrived.
    pub bytes: ByteSize,
    /// For how long it was tried.
    pub elapsed_us: Elapsed,
    /// The rate that this makes.
    pub goodput_bps: BitRate,
    /// The size of the IP packets of full segments, as far as it is known.
    #[serde(default)]
    pub packet: Option<Mtu>,
}

/// What the two ends of one TCP connection, made without any clamp of ours, agreed on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpHandshake {
    /// The PC's end.
    pub pc: Outcome<TcpEnd>,
    /// The NAS's end.
    pub nas: Outcome<TcpEnd>,
}

impl TcpHandshake {
    /// One end.
    pub const fn of(&self, role: Role) -> &Outcome<TcpEnd> {
        match role {
            Role::Pc => &self.pc,
            Role::Nas => &self.nas,
        }
    }
}

/// One end of a TCP connection as its kernel sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpEnd {
    /// The largest segment that this end asked for in its SYN (RFC 9293, 3.7.1), in bytes without options.
    pub advertised_mss_bytes: u32,
    /// The largest payload that this end puts into a segment, in bytes; options such as timestamps are taken off.
    pub send_mss_bytes: u32,
    /// The path MTU that this end's kernel believes in.
    pub pmtu: Option<Mtu>,
    /// The bytes of options in every segment: 12 with timestamps (RFC 7323), else 0.
    pub option_bytes: u32,
}

impl TcpEnd {
    /// The largest segment that this end may send as the other end's SYN arrived here, or as its own path allows.
    pub const fn granted_mss_bytes(&self) -> u32 {
        self.send_mss_bytes.saturating_add(self.option_bytes)
    }
}

/// What large packets gain in one direction: the same stream with large and with common segments, one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JumboGain {
    /// The way of the data.
    pub direction: Direction,
    /// With segments as large as the path carries.
    pub large: SegmentCost,
    /// With segments that fit 1500 bytes.
    pub common: SegmentCost,
}

/// What a stream with a certain size of segments gives and costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SegmentCost {
    /// The size of the IP packets.
    pub packet: Mtu,
    /// What arrived.
    pub goodput_bps: BitRate,
    /// Core seconds for a gigabyte at the sending host, everything that ran there included.
    pub sender_cpu_s_per_gb: Option<f64>,
    /// Core seconds for a gigabyte at the receiving host, everything that ran there included.
    pub receiver_cpu_s_per_gb: Option<f64>,
}

/// The search by ICMP echo: requests of an exact size that may not be fragmented.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EchoPath {
    /// What sent the requests.
    pub method: EchoMethod,
    /// The largest request whose answer came back; the way there and the way back together.
    pub path: PathMtu,
    /// The largest piece of the answers to the largest requests, where they came back in fragments: the way back carries no less,
    /// and it is a limit of the answering host or of a router behind it.
    pub reply_fragment: Option<Mtu>,
}

/// What sends ICMP echo requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EchoMethod {
    /// A ping socket, allowed by `net.ipv4.ping_group_range`.
    PingSocket,
    /// A raw socket, which needs CAP_NET_RAW.
    RawSocket,
}

/// One TCP service of the NAS.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceProbe {
    /// Its port.
    pub port: u16,
    /// Its name where the port is a known one, such as `SMB`.
    pub service: Option<String>,
    /// What came of it.
    pub result: Outcome<ServicePath>,
}

/// What a connection to a TCP service tells of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServicePath {
    /// Our end before anything was sent.
    pub end: TcpEnd,
    /// The path MTU that our kernel believed in at the end.
    pub pmtu_after: Option<Mtu>,
    /// The IP packet of the full-size segment that was sent with DF; none when the service sent or took nothing.
    pub packet: Option<Mtu>,
    /// Whether the NAS's kernel acknowledged it.
    pub acknowledged: bool,
    /// How often segments were sent again.
    pub retransmits: u32,
    /// How long it took.
    pub elapsed_us: Elapsed,
}
