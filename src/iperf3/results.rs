//! What each end saw: the JSON of `EXCHANGE_RESULTS`. Pure.

use serde_json::{Map, Value, json};

use super::number::{Object, count, float, signed, text};

/// The largest message of results that a server reads: 256 streams take 60 KiB.
pub(super) const LARGEST_OF_CLIENT: usize = 1 << 20;

/// The largest that a client reads: a server's own output of a long test is in it.
pub(super) const LARGEST_OF_SERVER: usize = 16 << 20;

/// The most streams that are read: 128 each way.
const MOST_STREAMS: usize = 256;

/// The number of a stream in the order of opening, from 0: iperf3 counts 1, 3, 4, 5 … and leaves 2 out (`iperf_add_stream`).
pub const fn stream_id(index: u32) -> u32 {
    if index == 0 { 1 } else { index.saturating_add(2) }
}

/// Whether an end that sends counts retransmissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SenderRetransmits {
    /// It only receives (−1 on the wire).
    #[default]
    NoSender,
    /// It sends and cannot count them, as with UDP (0).
    Unknown,
    /// It sends and counts them (1).
    Counted,
}

/// One stream as one end saw it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamResult {
    /// Its number, see [`stream_id`].
    pub id: u32,
    /// Bytes that this end sent or received, the time left out not counted.
    pub bytes: u64,
    /// Segments sent again; none where this end receives or cannot know.
    pub retransmits: Option<u64>,
    /// RFC 3550 jitter in seconds; 0 for TCP and for senders.
    pub jitter_s: f64,
    /// Datagrams that did not arrive (of all, the time left out included); late ones taken off again, so that it may fall below 0.
    pub errors: i64,
    /// Datagrams sent, or the highest number received, the time left out included; 0 for TCP.
    pub packets: u64,
    /// Errors and packets of the time left out; none from versions that do not tell.
    pub omitted: Option<(i64, u64)>,
    /// Seconds from this end's start of the test to the stream's; usually 0.
    pub start_s: f64,
    /// Seconds from this end's start of the test to the stream's end.
    pub end_s: f64,
}

/// What a server says to its own user, on a client's wish.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerOutput {
    /// As it stood on its screen.
    Text(String),
    /// Of a server that was started with `-J`.
    Json(Value),
}

/// One end's results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// Processor time of the process in percent of one core's time in the test.
    pub cpu_total: f64,
    /// The part of it in the program.
    pub cpu_user: f64,
    /// The part of it in the kernel on the program's account.
    pub cpu_system: f64,
    /// Whether retransmissions are counted.
    pub sender_retransmits: SenderRetransmits,
    /// The congestion control that ran; none for UDP and where it is unknown.
    pub congestion_used: Option<String>,
    /// What the server says to its user; none unless asked for.
    pub server_output: Option<ServerOutput>,
    /// The streams in the order of opening.
    pub streams: Vec<StreamResult>,
}

/// Why results cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResultsError {
    /// It is not JSON, or no object.
    #[error("the results cannot be read")]
    NotJson,
    /// No list of streams.
    #[error("the results name no streams")]
    NoStreams,
    /// A stream without its number or its bytes.
    #[error("a stream of the results has no number or no bytes")]
    Stream,
    /// More than a test can have.
    #[error("the results name more than {MOST_STREAMS} streams")]
    TooManyStreams,
}

impl StreamResult {
    fn decode(value: &Value) -> Result<Self, ResultsError> {
        let object = value.as_object().ok_or(ResultsError::Stream)?;
        let number = |key: &str| object.get(key).and_then(count);
        let errors = |key: &str| object.get(key).map_or(0, signed);
        Ok(Self {
            id: number("id").and_then(|id| u32::try_from(id).ok()).ok_or(ResultsError::Stream)?,
            bytes: number("bytes").ok_or(ResultsError::Stream)?,
            retransmits: number("retransmits"),
            jitter_s: float(object.get("jitter")).max(0.0),
            errors: errors("errors"),
            packets: number("packets").unwrap_or(0),
            omitted: number("omitted_packets").map(|packets| (errors("omitted_errors"), packets)),
            start_s: float(object.get("start_time")).max(0.0),
            end_s: float(object.get("end_time")).max(0.0),
        })
    }

    fn encode(&self) -> Value {
        let mut object = json!({
            "id": self.id,
            "bytes": self.bytes,
            "retransmits": self.retransmits.map_or(-1, |count| i64::try_from(count).unwrap_or(i64::MAX)),
            "jitter": self.jitter_s,
            "errors": self.errors,
            "packets": self.packets,
            "start_time": self.start_s,
            "end_time": self.end_s,
        });
        // Both or neither: iperf3 refuses results with one of them.
        if let (Some((errors, packets)), Some(object)) = (self.omitted, object.as_object_mut()) {
            object.insert("omitted_errors".to_owned(), json!(errors));
            object.insert("omitted_packets".to_owned(), json!(packets));
        }
        object
    }
}

impl Results {
    /// Reads an end's results. What a version leaves out is unknown or 0; only what nothing can be said without is demanded.
    ///
    /// # Errors
    /// No JSON object, no streams, a stream without number or bytes, more streams than a test can have.
    pub fn decode(json: &[u8]) -> Result<Self, ResultsError> {
        let object: Object = serde_json::from_slice(json).map_err(|_| ResultsError::NotJson)?;
        let streams = object.get("streams").and_then(Value::as_array).ok_or(ResultsError::NoStreams)?;
        if streams.len() > MOST_STREAMS {
            return Err(ResultsError::TooManyStreams);
        }
        let json = object.get("server_output_json").filter(|value| !value.is_null()).cloned();
        Ok(Self {
            cpu_total: float(object.get("cpu_util_total")),
            cpu_user: float(object.get("cpu_util_user")),
            cpu_system: float(object.get("cpu_util_system")),
            sender_retransmits: match object.get("sender_has_retransmits").and_then(count) {
                None => SenderRetransmits::NoSender,
                Some(0) => SenderRetransmits::Unknown,
                Some(_) => SenderRetransmits::Counted,
            },
            congestion_used: text(&object, "congestion_used"),
            server_output: json.map(ServerOutput::Json).or_else(|| text(&object, "server_output_text").map(ServerOutput::Text)),
            streams: streams.iter().map(StreamResult::decode).collect::<Result<_, _>>()?,
        })
    }

    /// The JSON as iperf3 reads it.
    pub fn encode(&self) -> Vec<u8> {
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
        put("cpu_util_total", json!(self.cpu_total));
        put("cpu_util_user", json!(self.cpu_user));
        put("cpu_util_system", json!(self.cpu_system));
        let retransmits = match self.sender_retransmits {
            SenderRetransmits::NoSender => -1,
            SenderRetransmits::Unknown => 0,
            SenderRetransmits::Counted => 1,
        };
        put("sender_has_retransmits", json!(retransmits));
        if let Some(name) = &self.congestion_used {
            put("congestion_used", json!(name));
        }
        match &self.server_output {
            Some(ServerOutput::Text(text)) => _ = put("server_output_text", json!(text)),
            Some(ServerOutput::Json(value)) => _ = put("server_output_json", value.clone()),
            None => {}
        }
        put("streams", Value::Array(self.streams.iter().map(StreamResult::encode).collect()));
        Value::Object(object).to_string().into_bytes()
    }

    /// The bytes of all streams.
    pub fn bytes(&self) -> u64 {
        self.streams.iter().fold(0, |sum, stream| sum.saturating_add(stream.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_iperf3_3_12_sends_is_read() {
        let json = br#"{"cpu_util_total":4.76,"cpu_util_user":4.76,"cpu_util_system":0,"sender_has_retransmits":18446744073709551615,"congestion_used":"bbr","streams":[{"id":1,"bytes":534773760,"retransmits":2,"jitter":0,"errors":0,"packets":0,"start_time":0,"end_time":1.000792},{"id":3,"bytes":81526784,"retransmits":1.8446744073709552e+19,"jitter":1e-05,"errors":-2,"packets":7,"start_time":0,"end_time":1.0008}]}"#;
        let results = Results::decode(json).unwrap();
        assert_eq!(results.sender_retransmits, SenderRetransmits::NoSender);
        assert_eq!(results.congestion_used.as_deref(), Some("bbr"));
        assert_eq!(results.bytes(), 534_773_760 + 81_526_784);
        let facts: Vec<_> = results.streams.iter().map(|s| (s.id, s.retransmits, s.errors, s.packets, s.omitted)).collect();
        assert_eq!(facts, [(1, Some(2), 0, 0, None), (3, None, -2, 7, None)]);
        assert_eq!(Results::decode(&results.encode()), Ok(results));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let stream =
            StreamResult { id: 1, bytes: 1 << 60, omitted: Some((3, 9)), jitter_s: 0.25, end_s: 1.5, ..StreamResult::default() };
        for output in [None, Some(ServerOutput::Text("a\n".to_owned())), Some(ServerOutput::Json(json!({"end": {}})))] {
            let results = Results {
                sender_retransmits: SenderRetransmits::Counted,
                server_output: output,
                streams: vec![stream.clone(), StreamResult { id: 3, retransmits: Some(0), ..stream.clone() }],
                ..Results::default()
            };
            assert_eq!(Results::decode(&results.encode()), Ok(results));
        }
    }

    #[test]
    fn streams_are_numbered_as_iperf3_does() {
        assert_eq!((0..5).map(stream_id).collect::<Vec<_>>(), [1, 3, 4, 5, 6]);
    }

    #[test]
    fn what_says_nothing_is_refused() {
        let many = json!({ "streams": vec![json!({"id": 1, "bytes": 1}); 257] }).to_string();
        for (json, error) in [
            ("", ResultsError::NotJson),
            ("{}", ResultsError::NoStreams),
            (r#"{"streams":{}}"#, ResultsError::NoStreams),
            (r#"{"streams":[1]}"#, ResultsError::Stream),
            (r#"{"streams":[{"id":1}]}"#, ResultsError::Stream),
            (r#"{"streams":[{"id":1,"bytes":-1}]}"#, ResultsError::Stream),
            (&many, ResultsError::TooManyStreams),
        ] {
            assert_eq!(Results::decode(json.as_bytes()), Err(error), "{json:.40}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Results::decode(&bytes);
        }

        #[test]
        fn any_numbers_are_read(value in any::<f64>(), number in any::<i64>()) {
            let stream = json!({ "id": 1, "bytes": 5, "jitter": value, "errors": number, "packets": value, "end_time": number });
            let results = Results::decode(json!({ "streams": [stream], "cpu_util_total": value }).to_string().as_bytes()).unwrap();
            prop_assert!(results.cpu_total.is_finite() && results.streams.iter().all(|s| s.jitter_s >= 0.0 && s.end_s >= 0.0));
        }
    }
}
