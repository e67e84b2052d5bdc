//! What is asked of a test, and what came of it. Pure.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use super::error::ClientError;
use crate::iperf3::socket::Ask;
use crate::iperf3::stream::{Load, StreamEnd, Way};
use crate::iperf3::udp::{LEAST_LEN, MOST_LEN};
use crate::iperf3::{Amount, Flow, Params, Protocol, Results};
use crate::model::Outcome;
use crate::model::host::Direction;
use crate::model::kernel::Ended;
use crate::model::throughput::{Bins, PassOptions, SocketFacts};
use crate::units::BitRate;

/// The most streams one way (iperf3's `MAX_STREAMS`).
pub const MOST_STREAMS: u32 = 128;

/// The longest time in seconds (iperf3's `MAX_TIME`), and the longest to leave out.
const LONGEST: (u64, u64) = (86_400, 60);

/// What we call ourselves; servers do not look at it.
const VERSION: &str = concat!("weaklink ", env!("CARGO_PKG_VERSION"));

/// What the stream threads may outlive the time by: the drain and the exchange of results.
const BEYOND: Duration = Duration::from_secs(60);

/// Which way the data goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ways {
    /// PC → NAS.
    #[default]
    Upload,
    /// NAS → PC (`-R`).
    Download,
    /// Both at the same moment, over streams of their own (`--bidir`, iperf3 3.7 on).
    Both,
}

impl Ways {
    /// Whether it goes this way.
    pub fn includes(self, direction: Direction) -> bool {
        self == Self::Both || (self == Self::Upload) == (direction == Direction::Upload)
    }

    const fn flow(self) -> Flow {
        match self {
            Self::Upload => Flow::ToServer,
            Self::Download => Flow::ToClient,
            Self::Both => Flow::Both,
        }
    }
}

/// Datagrams in place of TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpTest {
    /// The rate of each stream in payload bits; zero is as fast as it goes.
    pub rate: BitRate,
    /// The payload of a datagram in bytes, 16 to 65507.
    pub len: u32,
}

/// A test with an iperf3 server.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// Which way.
    pub ways: Ways,
    /// Streams one way, 1 to 128.
    pub streams: u32,
    /// How long, the omitted part not counted; where bytes are limited, at the longest.
    pub time: Duration,
    /// What is left out at the beginning, at most a minute; iperf3 knows whole seconds.
    pub omit: Duration,
    /// What is asked of sockets and ends: congestion control, window, pacing, code point, copies, bytes. The stop rule has no
    /// counterpart in iperf3.
    pub options: PassOptions,
    /// The largest segment in bytes (`-M`).
    pub mss_bytes: Option<u32>,
    /// Datagrams; none: TCP.
    pub udp: Option<UdpTest>,
    /// Whether to ask for the server's own output: one that was started with `-J` tells what it read in each of its intervals.
    pub server_output: bool,
    /// The address of this end, where it has several.
    pub bind: Option<IpAddr>,
    /// How long to try again while the server is busy or not listening: it is, for a moment, after each test.
    pub patience: Duration,
}

impl Default for Test {
    /// An upload over one TCP stream for ten seconds.
    fn default() -> Self {
        Self {
            ways: Ways::Upload,
            streams: 1,
            time: Duration::from_secs(10),
            omit: Duration::ZERO,
            options: PassOptions::default(),
            mss_bytes: None,
            udp: None,
            server_output: true,
            bind: None,
            patience: Duration::from_secs(1),
        }
    }
}

impl Test {
    /// Whether iperf3 can do it.
    pub(super) fn check(&self) -> Result<(), ClientError> {
        let wrong = if !(1..=MOST_STREAMS).contains(&self.streams) {
            format!("{} streams, and 1 to {MOST_STREAMS} are possible", self.streams)
        } else if self.time.is_zero() || self.time.as_secs() > LONGEST.0 || self.omit.as_secs() > LONGEST.1 {
            format!("the time must be above 0 and at most {} s, and at most {} s of it can be left out", LONGEST.0, LONGEST.1)
        } else if let Some(udp) = self.udp.filter(|udp| !(LEAST_LEN..=MOST_LEN).contains(&(udp.len as usize))) {
            format!("datagrams of {} bytes, and {LEAST_LEN} to {MOST_LEN} are possible", udp.len)
        } else if self.options.dscp.is_some_and(|dscp| dscp > 63) {
            "a code point above 63".to_owned()
        } else if self.options.max_bytes.is_some_and(|bytes| bytes.0 == 0) {
            "no bytes at all".to_owned()
        } else if self.options.max_bytes.is_some() && !self.omit.is_zero() {
            "a limit in bytes together with an omitted beginning".to_owned()
        } else {
            return Ok(());
        };
        Err(ClientError::Invalid(wrong))
    }

    fn tos(&self) -> Option<u8> {
        self.options.dscp.map(|dscp| dscp << 2)
    }

    /// The parameters for the server.
    pub(super) fn params(&self) -> Params {
        let seconds = |time: Duration| u32::try_from(time.as_secs() + u64::from(time.subsec_nanos() > 0)).unwrap_or(u32::MAX);
        Params {
            protocol: if self.udp.is_some() { Protocol::Udp } else { Protocol::Tcp },
            flow: self.ways.flow(),
            amount: match self.options.max_bytes {
                Some(bytes) => Amount::Bytes(bytes.0),
                None => Amount::Seconds(seconds(self.time)),
            },
            omit_s: seconds(self.omit),
            parallel: self.streams,
            len: self.len() as u32,
            mss: self.mss_bytes,
            window: self.options.window_bytes,
            // Beside the kernel's pacing, which not every server has, for datagrams it is the rate itself.
            bandwidth_bps: self
                .udp
                .map_or(self.options.pacing_bps, |udp| Some(udp.rate))
                .map(|rate| rate.0)
                .filter(|rate| *rate > 0),
            fq_rate_bps: self.options.pacing_bps.map(|rate| rate.0),
            pacing_timer_us: Some(1000),
            tos: self.tos(),
            congestion: self.options.congestion.clone(),
            get_server_output: self.server_output,
            zerocopy: !self.options.copies && self.udp.is_none(),
            skip_rx_copy: !self.options.copies && self.udp.is_none(),
            dont_fragment: self.udp.is_some(),
            client_version: Some(VERSION.to_owned()),
            ..Params::default()
        }
    }

    fn len(&self) -> usize {
        self.udp.map_or(Load::TCP_LEN, |udp| udp.len as usize)
    }

    /// What the data sockets are asked for.
    pub(super) fn ask(&self) -> Ask {
        Ask {
            congestion: self.options.congestion.clone(),
            window_bytes: self.options.window_bytes,
            mss_bytes: self.mss_bytes,
            tos: self.tos(),
            no_delay: false,
            pacing_bps: self.options.pacing_bps,
        }
    }

    /// How this end's streams work.
    pub(super) fn load(&self) -> Load {
        Load {
            len: self.len(),
            rate: self.udp.map_or(self.options.pacing_bps, |udp| Some(udp.rate)),
            burst: 1,
            bytes: self.options.max_bytes.map(|bytes| bytes.0),
            copies: self.options.copies,
            wide_counters: false,
            deadline: self.time + self.omit + BEYOND,
        }
    }

    /// What this end does on each of its connections, in the order of opening: both ways, first all that send.
    pub(super) fn order(&self) -> Vec<Way> {
        let each = |way: Way| std::iter::repeat_n(way, self.streams as usize);
        match self.ways {
            Ways::Upload => each(Way::Send).collect(),
            Ways::Download => each(Way::Receive).collect(),
            Ways::Both => each(Way::Send).chain(each(Way::Receive)).collect(),
        }
    }
}

/// What came of a test, as both ends saw it; [`passes`](super::passes) and [`datagrams`](super::datagrams) make our model of it.
#[derive(Debug)]
pub struct TestResult {
    /// What was asked.
    pub test: Test,
    /// Our streams in the order of opening.
    pub streams: Vec<StreamEnd>,
    /// What this end's senders handed to the kernel in each bin, from the end of the omitted part on.
    pub sent_bins: Bins,
    /// What this end read in each bin, from the first byte after the omitted part on.
    pub received_bins: Bins,
    /// From the end of the omitted part to the end of the test at this end.
    pub elapsed: Duration,
    /// From the end of the omitted part until the server's kernel had acknowledged all bytes; where they were limited, and it is known.
    pub acknowledged: Option<Duration>,
    /// When counting began: the end of the omitted part.
    pub counted_from: Duration,
    /// What the server saw.
    pub server: Outcome<Results>,
    /// What ended the test.
    pub ended: Ended,
    /// What was asked of this end's sending sockets and granted.
    pub send_sockets: SocketFacts,
    /// What was asked of this end's receiving sockets and granted.
    pub receive_sockets: SocketFacts,
}

impl TestResult {
    /// This end's streams of one way with their place in the order of opening.
    pub fn of_way(&self, way: Way) -> impl Iterator<Item = (usize, &StreamEnd)> {
        self.streams.iter().enumerate().filter(move |(_, stream)| stream.way == way)
    }

    /// The bytes of one way as this end counted them.
    pub fn bytes(&self, way: Way) -> u64 {
        self.of_way(way).fold(0, |sum, (_, stream)| sum.saturating_add(stream.count.bytes))
    }

    /// Why the streams of a way broke, if all of them did.
    pub fn broke(&self, way: Way) -> Option<&io::Error> {
        let mut first = None;
        for (_, stream) in self.of_way(way) {
            first = first.or(Some(stream.error.as_ref()?));
        }
        first
    }
}
