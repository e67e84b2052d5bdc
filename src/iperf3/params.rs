//! What a client asks for: the JSON of `PARAM_EXCHANGE`. Pure.
//!
//! The keys are those that iperf3 3.0 to 3.21 write; unknown ones are left alone, since every version added some.

use serde_json::{Map, Value, json};

use super::fault::FaultCode;
use super::number::{Object, switch, text, whole};

/// The largest message of parameters that is read: newer servers take 8 KiB (`MAX_PARAMS_JSON_STRING`), and older clients may put
/// a longer title or extra data into it.
pub(super) const LARGEST: usize = 64 << 10;

/// The most streams one way (iperf3's `MAX_STREAMS`).
pub(super) const MOST_STREAMS: u32 = 128;

/// The longest test in seconds (iperf3's `MAX_TIME`: a day).
const LONGEST: u64 = 86_400;

/// The longest time that is left out at the beginning, in seconds (iperf3's `MAX_OMIT_TIME`, 60 before 3.16).
const LONGEST_OMIT: u64 = 600;

/// The largest block of a TCP test (iperf3's `MAX_BLOCKSIZE`).
const LARGEST_BLOCK: u64 = 1 << 20;

/// The smallest and the largest datagram: iperf3's header with 64-bit counters, and what IPv4 carries.
const DATAGRAM: (u64, u64) = (16, 65_507);

/// The largest socket buffer (iperf3's `MAX_TCP_BUFFER`).
const LARGEST_WINDOW: u64 = 512 << 20;

/// The largest segment (iperf3's `MAX_MSS`).
const LARGEST_MSS: u64 = 9 * 1024;

/// The most blocks of a burst (iperf3's `MAX_BURST`).
const LARGEST_BURST: u64 = 1000;

/// The block of a TCP test when none is named (iperf3's `DEFAULT_TCP_BLKSIZE`).
const BLOCK: u64 = 128 * 1024;

/// The datagram when none is named (iperf3's `DEFAULT_UDP_BLKSIZE`).
const DATAGRAM_BLOCK: u64 = 1460;

/// What carries the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
}

/// Which way the data goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    /// Client to server.
    #[default]
    ToServer,
    /// Server to client (`-R`).
    ToClient,
    /// Both at the same moment (`--bidir`): first all streams on which the client sends, then all on which the server sends.
    Both,
}

impl Flow {
    /// How many times the number of streams of one way are opened.
    pub const fn ways(self) -> u32 {
        match self {
            Self::ToServer | Self::ToClient => 1,
            Self::Both => 2,
        }
    }
}

/// What ends a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// After so many seconds (`-t`), the time left out not counted; 0 is until the client ends it.
    Seconds(u32),
    /// After so many bytes of all streams together (`-n`).
    Bytes(u64),
    /// After so many blocks of all streams together (`-k`).
    Blocks(u64),
}

impl Default for Amount {
    fn default() -> Self {
        Self::Seconds(10)
    }
}

/// What a client asks for.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of iperf3's, independent of the others")]
pub struct Params {
    /// What carries the data (`-u`).
    pub protocol: Protocol,
    /// Which way (`-R`, `--bidir`).
    pub flow: Flow,
    /// What ends it (`-t`, `-n`, `-k`).
    pub amount: Amount,
    /// Seconds at the beginning that do not count (`-O`).
    pub omit_s: u32,
    /// Streams one way (`-P`), 1 to 128.
    pub parallel: u32,
    /// Bytes of a block, or of a datagram (`-l`).
    pub len: u32,
    /// `TCP_NODELAY` (`-N`).
    pub nodelay: bool,
    /// The largest segment in bytes (`-M`).
    pub mss: Option<u32>,
    /// The socket buffers in bytes (`-w`).
    pub window: Option<u32>,
    /// The rate of each stream in bits a second (`-b`); none is as fast as it goes.
    pub bandwidth_bps: Option<u64>,
    /// The rate of each stream that the kernel is to hold, in bits a second (`--fq-rate`).
    pub fq_rate_bps: Option<u64>,
    /// How often a paced sender looks, in microseconds (`--pacing-timer`).
    pub pacing_timer_us: Option<u32>,
    /// Blocks that a paced sender hands over at once (`-b RATE/N`).
    pub burst: Option<u32>,
    /// The byte of type of service (`-S`, `--dscp`).
    pub tos: Option<u8>,
    /// The flow label of IPv6 (`-L`).
    pub flow_label: Option<u32>,
    /// Text before each line of output (`-T`).
    pub title: Option<String>,
    /// Text that belongs to the report (`--extra-data`).
    pub extra_data: Option<String>,
    /// The congestion control (`-C`).
    pub congestion: Option<String>,
    /// Whether the client wants to see what the server says (`--get-server-output`).
    pub get_server_output: bool,
    /// Whether datagrams carry counters of 64 bits (`--udp-counters-64bit`).
    pub udp_counters_64bit: bool,
    /// Whether the payload repeats, as iperf2's does (`--repeating-payload`).
    pub repeating_payload: bool,
    /// Whether the sender avoids copies (`-Z`).
    pub zerocopy: bool,
    /// Whether datagrams may not be fragmented (`--dont-fragment`).
    pub dont_fragment: bool,
    /// Whether the receiver leaves the bytes in the kernel (`--skip-rx-copy`).
    pub skip_rx_copy: bool,
    /// An encrypted user name and password (`--username`).
    pub authtoken: Option<String>,
    /// The client's version.
    pub client_version: Option<String>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            protocol: Protocol::Tcp,
            flow: Flow::ToServer,
            amount: Amount::default(),
            omit_s: 0,
            parallel: 1,
            len: BLOCK as u32,
            nodelay: false,
            mss: None,
            window: None,
            bandwidth_bps: None,
            fq_rate_bps: None,
            pacing_timer_us: None,
            burst: None,
            tos: None,
            flow_label: None,
            title: None,
            extra_data: None,
            congestion: None,
            get_server_output: false,
            udp_counters_64bit: false,
            repeating_payload: false,
            zerocopy: false,
            dont_fragment: false,
            skip_rx_copy: false,
            authtoken: None,
            client_version: None,
        }
    }
}

/// Why parameters cannot be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamsError {
    /// It is not JSON, or no object.
    #[error("the client's parameters cannot be read")]
    NotJson,
    /// SCTP, or nothing that we know.
    #[error("the client asks for a protocol that is neither TCP nor UDP")]
    Protocol,
    /// A value that is out of its range.
    #[error("the client asks for {key} = {value}, which must be {allowed}")]
    OutOfRange {
        /// The key.
        key: &'static str,
        /// What was asked for, cut to 40 characters.
        value: String,
        /// What would do.
        allowed: String,
        /// The number that iperf3 has for it.
        code: FaultCode,
    },
    /// `-R` and `--bidir` together.
    #[error("the client asks for reverse and for both directions; it must be one of them")]
    ReverseAndBoth,
    /// More than one end of the test.
    #[error("the client names bytes and blocks; it must be one of them")]
    TwoEnds,
}

impl ParamsError {
    /// The number that iperf3 has for it.
    pub const fn code(&self) -> FaultCode {
        match self {
            Self::NotJson => FaultCode::RecvParams,
            Self::Protocol => FaultCode::Protocol,
            Self::OutOfRange { code, .. } => *code,
            Self::ReverseAndBoth => FaultCode::ReverseBidir,
            Self::TwoEnds => FaultCode::EndConditions,
        }
    }
}

/// A number within a range; none when the key is missing or 0, which is how iperf3 says "not asked for".
fn within(object: &Object, key: &'static str, range: (u64, u64), code: FaultCode) -> Result<Option<u64>, ParamsError> {
    let Some(value) = object.get(key).filter(|value| !value.is_null()) else { return Ok(None) };
    match whole(value) {
        Some(0) => Ok(None),
        Some(number) if (range.0..=range.1).contains(&number) => Ok(Some(number)),
        _ => Err(out_of_range(key, value, range, code)),
    }
}

fn out_of_range(key: &'static str, value: &Value, range: (u64, u64), code: FaultCode) -> ParamsError {
    let value = value.to_string().chars().take(40).collect();
    ParamsError::OutOfRange { key, value, allowed: format!("{} to {}", range.0, range.1), code }
}

fn small(number: Option<u64>) -> Option<u32> {
    number.and_then(|number| u32::try_from(number).ok())
}

impl Params {
    /// Reads a client's parameters.
    ///
    /// # Errors
    /// JSON that cannot be read, and values that no server can do; each with iperf3's number for it.
    pub fn decode(json: &[u8]) -> Result<Self, ParamsError> {
        let object: Object = serde_json::from_slice(json).map_err(|_| ParamsError::NotJson)?;
        let protocol = protocol(&object)?;
        let any = (1, u64::MAX);
        let get = |key, most, code| within(&object, key, (1, most), code);
        Ok(Self {
            protocol,
            flow: flow(&object)?,
            amount: amount(&object)?,
            omit_s: small(get("omit", LONGEST_OMIT, FaultCode::Omit)?).unwrap_or(0),
            parallel: small(get("parallel", u64::from(MOST_STREAMS), FaultCode::NumStreams)?).unwrap_or(1),
            len: len(&object, protocol)?,
            nodelay: switch(&object, "nodelay"),
            mss: small(get("MSS", LARGEST_MSS, FaultCode::Mss)?),
            window: small(get("window", LARGEST_WINDOW, FaultCode::BufSize)?),
            bandwidth_bps: within(&object, "bandwidth", any, FaultCode::TotalRate)?,
            fq_rate_bps: within(&object, "fqrate", any, FaultCode::TotalRate)?,
            pacing_timer_us: object.get("pacing_timer").and_then(whole).and_then(|us| small(Some(us))).filter(|us| *us > 0),
            burst: small(get("burst", LARGEST_BURST, FaultCode::Burst)?),
            tos: get("TOS", 255, FaultCode::BadTos)?.and_then(|tos| u8::try_from(tos).ok()),
            flow_label: small(object.get("flowlabel").and_then(whole)).filter(|label| *label > 0),
            title: text(&object, "title"),
            extra_data: text(&object, "extra_data"),
            congestion: text(&object, "congestion").or_else(|| text(&object, "congestion_used")),
            get_server_output: switch(&object, "get_server_output"),
            udp_counters_64bit: switch(&object, "udp_counters_64bit"),
            repeating_payload: switch(&object, "repeating_payload"),
            zerocopy: switch(&object, "zerocopy"),
            dont_fragment: switch(&object, "dont_fragment"),
            skip_rx_copy: switch(&object, "skip_rx_copy"),
            authtoken: text(&object, "authtoken"),
            client_version: text(&object, "client_version"),
        })
    }

    /// The JSON as iperf3 writes it: what is not asked for is left out, apart from the three ends, of which two are 0.
    pub fn encode(&self) -> Vec<u8> {
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
        put(if self.protocol == Protocol::Udp { "udp" } else { "tcp" }, json!(true));
        let (time, num, blocks) = match self.amount {
            Amount::Seconds(seconds) => (seconds, 0, 0),
            Amount::Bytes(bytes) => (0, bytes, 0),
            Amount::Blocks(blocks) => (0, 0, blocks),
        };
        for (key, number) in [
            ("omit", u64::from(self.omit_s)),
            ("time", u64::from(time)),
            ("num", num),
            ("blockcount", blocks),
            ("parallel", u64::from(self.parallel)),
            ("len", u64::from(self.len)),
        ] {
            put(key, json!(number));
        }
        let wide = |number: Option<u32>| number.map(u64::from);
        for (key, number) in [
            ("MSS", wide(self.mss)),
            ("window", wide(self.window)),
            ("bandwidth", self.bandwidth_bps),
            ("fqrate", self.fq_rate_bps),
            ("pacing_timer", wide(self.pacing_timer_us)),
            ("burst", wide(self.burst)),
            ("TOS", self.tos.map(u64::from)),
            ("flowlabel", wide(self.flow_label)),
            ("get_server_output", self.get_server_output.then_some(1)),
            ("udp_counters_64bit", self.udp_counters_64bit.then_some(1)),
            ("repeating_payload", self.repeating_payload.then_some(1)),
            ("zerocopy", self.zerocopy.then_some(1)),
            ("dont_fragment", self.dont_fragment.then_some(1)),
            ("skip_rx_copy", self.skip_rx_copy.then_some(1)),
        ] {
            if let Some(number) = number {
                put(key, json!(number));
            }
        }
        for (key, on) in
            [("reverse", self.flow == Flow::ToClient), ("bidirectional", self.flow == Flow::Both), ("nodelay", self.nodelay)]
        {
            if on {
                put(key, json!(true));
            }
        }
        for (key, text) in [
            ("title", &self.title),
            ("extra_data", &self.extra_data),
            ("congestion", &self.congestion),
            ("authtoken", &self.authtoken),
            ("client_version", &self.client_version),
        ] {
            if let Some(text) = text {
                put(key, json!(text));
            }
        }
        Value::Object(object).to_string().into_bytes()
    }

    /// The streams of all ways together.
    pub const fn streams(&self) -> u32 {
        self.parallel.saturating_mul(self.flow.ways())
    }
}

fn protocol(object: &Object) -> Result<Protocol, ParamsError> {
    if switch(object, "sctp") {
        return Err(ParamsError::Protocol);
    }
    // iperf3 itself takes a client that names none for TCP.
    Ok(if switch(object, "udp") { Protocol::Udp } else { Protocol::Tcp })
}

fn flow(object: &Object) -> Result<Flow, ParamsError> {
    match (switch(object, "reverse"), switch(object, "bidirectional")) {
        (true, true) => Err(ParamsError::ReverseAndBoth),
        (true, false) => Ok(Flow::ToClient),
        (false, true) => Ok(Flow::Both),
        (false, false) => Ok(Flow::ToServer),
    }
}

/// Bytes and blocks go before the time: some clients leave the default time beside them.
fn amount(object: &Object) -> Result<Amount, ParamsError> {
    let any = (1, u64::MAX);
    let bytes = within(object, "num", any, FaultCode::EndConditions)?;
    let blocks = within(object, "blockcount", any, FaultCode::EndConditions)?;
    let seconds = within(object, "time", (1, LONGEST), FaultCode::Duration)?;
    match (bytes, blocks) {
        (Some(_), Some(_)) => Err(ParamsError::TwoEnds),
        (Some(bytes), None) => Ok(Amount::Bytes(bytes)),
        (None, Some(blocks)) => Ok(Amount::Blocks(blocks)),
        (None, None) if object.contains_key("time") => Ok(Amount::Seconds(small(seconds).unwrap_or(0))),
        (None, None) => Ok(Amount::default()),
    }
}

/// Unlike other numbers a length of 0 is refused: a server that took it would send nothing for ever.
fn len(object: &Object, protocol: Protocol) -> Result<u32, ParamsError> {
    let (range, default, code) = match protocol {
        Protocol::Tcp => ((1, LARGEST_BLOCK), BLOCK, FaultCode::BlockSize),
        Protocol::Udp => (DATAGRAM, DATAGRAM_BLOCK, FaultCode::UdpBlockSize),
    };
    let Some(value) = object.get("len").filter(|value| !value.is_null()) else { return Ok(default as u32) };
    match small(whole(value)) {
        Some(len) if (range.0..=range.1).contains(&u64::from(len)) => Ok(len),
        _ => Err(out_of_range("len", value, range, code)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_iperf3_3_12_sends_is_read() {
        let json = br#"{"udp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":2,"len":32768,"bandwidth":100000,"pacing_timer":1000,"client_version":"3.12"}"#;
        let params = Params::decode(json).unwrap();
        let expected = Params {
            protocol: Protocol::Udp,
            amount: Amount::Seconds(1),
            parallel: 2,
            len: 32768,
            bandwidth_bps: Some(100_000),
            pacing_timer_us: Some(1000),
            client_version: Some("3.12".to_owned()),
            ..Params::default()
        };
        assert_eq!(params, expected);
    }

    #[test]
    fn what_is_written_is_read_again() {
        for params in [
            Params::default(),
            Params { flow: Flow::ToClient, amount: Amount::Bytes(u64::MAX), nodelay: true, mss: Some(1400), ..Params::default() },
            Params { flow: Flow::Both, amount: Amount::Blocks(7), tos: Some(255), window: Some(512 << 20), ..Params::default() },
            Params { amount: Amount::Seconds(0), bandwidth_bps: Some(u64::MAX), burst: Some(1000), ..Params::default() },
            Params {
                protocol: Protocol::Udp,
                len: 16,
                udp_counters_64bit: true,
                dont_fragment: true,
                repeating_payload: true,
                ..Params::default()
            },
            Params {
                get_server_output: true,
                zerocopy: true,
                skip_rx_copy: true,
                congestion: Some("cubic".to_owned()),
                title: Some("a \"b\"".to_owned()),
                extra_data: Some("x".to_owned()),
                authtoken: Some("t".to_owned()),
                flow_label: Some(7),
                fq_rate_bps: Some(1),
                omit_s: 3,
                ..Params::default()
            },
        ] {
            assert_eq!(Params::decode(&params.encode()), Ok(params));
        }
    }

    #[test]
    fn what_cannot_be_done_is_refused_with_iperf3s_number() {
        for (json, code) in [
            ("", FaultCode::RecvParams),
            ("[]", FaultCode::RecvParams),
            ("{", FaultCode::RecvParams),
            (r#"{"sctp":true}"#, FaultCode::Protocol),
            (r#"{"tcp":true,"len":0}"#, FaultCode::BlockSize),
            (r#"{"tcp":true,"len":-1}"#, FaultCode::BlockSize),
            (r#"{"tcp":true,"len":1048577}"#, FaultCode::BlockSize),
            (r#"{"tcp":true,"len":"x"}"#, FaultCode::BlockSize),
            (r#"{"udp":true,"len":15}"#, FaultCode::UdpBlockSize),
            (r#"{"udp":true,"len":65508}"#, FaultCode::UdpBlockSize),
            (r#"{"parallel":129}"#, FaultCode::NumStreams),
            (r#"{"parallel":-3}"#, FaultCode::NumStreams),
            (r#"{"parallel":1e30}"#, FaultCode::NumStreams),
            (r#"{"time":86401}"#, FaultCode::Duration),
            (r#"{"omit":601}"#, FaultCode::Omit),
            (r#"{"MSS":9217}"#, FaultCode::Mss),
            (r#"{"window":536870913}"#, FaultCode::BufSize),
            (r#"{"burst":1001}"#, FaultCode::Burst),
            (r#"{"TOS":256}"#, FaultCode::BadTos),
            (r#"{"reverse":true,"bidirectional":true}"#, FaultCode::ReverseBidir),
            (r#"{"num":1,"blockcount":1}"#, FaultCode::EndConditions),
        ] {
            assert_eq!(Params::decode(json.as_bytes()).map_err(|error| error.code()), Err(code), "{json}");
        }
    }

    #[test]
    fn little_is_enough() {
        assert_eq!(Params::decode(b"{}"), Ok(Params::default()));
        let udp = Params::decode(br#"{"udp":true,"time":2.0,"reverse":false,"unknown":[1]}"#).unwrap();
        assert_eq!((udp.len, udp.amount, udp.flow), (1460, Amount::Seconds(2), Flow::ToServer));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Params::decode(&bytes);
        }

        #[test]
        fn any_numbers_are_within_their_limits_or_refused(
            key in proptest::sample::select(vec!["len", "parallel", "time", "num", "omit", "MSS", "window", "burst", "TOS", "bandwidth"]),
            number in any::<i64>(), float in any::<f64>(), as_float in any::<bool>(),
        ) {
            let value = if as_float { serde_json::json!(float) } else { serde_json::json!(number) };
            let json = serde_json::json!({ "tcp": true, key: value }).to_string();
            if let Ok(params) = Params::decode(json.as_bytes()) {
                prop_assert!((1..=MOST_STREAMS).contains(&params.parallel));
                prop_assert!((1..=1 << 20).contains(&params.len));
                prop_assert!(params.omit_s <= 600);
            }
        }
    }
}
