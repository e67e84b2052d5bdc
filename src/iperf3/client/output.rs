//! What a server that was started with `-J` tells beside its totals: its intervals, and who it is. Pure and lenient, since every
//! version prints a little differently, and only what fits together is used.

use serde_json::Value;

use crate::iperf3::ServerOutput;
use crate::iperf3::number::{count, float};
use crate::model::throughput::Bins;
use crate::units::Elapsed;

/// The most intervals that are read: a day in seconds.
const MOST: usize = 86_400;

/// Intervals of one length differ by no more than this share: a server's timer is late by milliseconds.
const ALIKE: f64 = 0.05;

/// What the server read in each of its intervals, all streams together; empty where it does not tell or they are of no one length.
///
/// What was omitted is left out, and a shorter interval at the end too. Where both ways ran, the sums of what the server
/// *received* are taken.
pub fn received(output: Option<&ServerOutput>) -> Bins {
    let Some(ServerOutput::Json(output)) = output else { return Bins::default() };
    let intervals = output.get("intervals").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut spans: Vec<(f64, u64)> = intervals.iter().take(MOST).filter_map(span).collect();
    let Some(first) = spans.first().map(|(seconds, _)| *seconds) else { return Bins::default() };
    let alike = |seconds: f64| (seconds - first).abs() <= ALIKE * first;
    if spans.last().is_some_and(|(seconds, _)| *seconds < first && !alike(*seconds)) {
        spans.pop();
    }
    if spans.is_empty() || !spans.iter().all(|(seconds, _)| alike(*seconds)) {
        return Bins::default();
    }
    let mean = spans.iter().map(|(seconds, _)| seconds).sum::<f64>() / spans.len() as f64;
    Bins { interval_us: Elapsed((mean * 1e6) as u64), bytes: spans.into_iter().map(|(_, bytes)| bytes).collect() }
}

/// The length in seconds and the bytes of an interval in which the server received.
fn span(interval: &Value) -> Option<(f64, u64)> {
    let sums = ["sum", "sum_bidir_reverse"].into_iter().filter_map(|key| interval.get(key));
    // Versions before 3.7 know one way only and do not say which.
    let sum = sums.into_iter().find(|sum| sum.get("sender").and_then(Value::as_bool) != Some(true))?;
    if sum.get("omitted").and_then(Value::as_bool) == Some(true) {
        return None;
    }
    let seconds = float(sum.get("end")) - float(sum.get("start"));
    let bytes = sum.get("bytes").and_then(count)?;
    // From a millisecond to an hour: anything else is no interval.
    (0.001..=3600.0).contains(&seconds).then_some((seconds, bytes))
}

/// The datagrams that came after a later one, all streams together, where the server tells.
pub fn out_of_order(output: Option<&ServerOutput>) -> Option<u64> {
    let Some(ServerOutput::Json(output)) = output else { return None };
    let streams = output.get("end")?.get("streams")?.as_array()?;
    let of = |stream: &Value| stream.get("udp")?.get("out_of_order").and_then(count);
    streams.iter().take(256).map(of).try_fold(0u64, |sum, late| Some(sum.saturating_add(late?)))
}

/// The server's version, such as `iperf 3.12`.
pub fn version(output: Option<&ServerOutput>) -> Option<String> {
    let Some(ServerOutput::Json(output)) = output else { return None };
    let version = output.get("start")?.get("version")?.as_str()?;
    Some(version.chars().filter(|c| !c.is_control()).take(40).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn sum(start: f64, end: f64, bytes: u64, sender: bool) -> Value {
        json!({"start": start, "end": end, "bytes": bytes, "omitted": false, "sender": sender})
    }

    fn bins(intervals: &Value) -> (u64, Vec<u64>) {
        let bins = received(Some(&ServerOutput::Json(json!({ "intervals": intervals }))));
        (bins.interval_us.0, bins.bytes)
    }

    #[test]
    fn only_intervals_that_fit_together_are_bins() {
        let one = |sum: Value| json!({ "sum": sum });
        for (name, intervals, expected) in [
            ("three seconds", json!([one(sum(0.0, 1.0, 10, false)), one(sum(1.0, 2.0, 11, false))]), (1_000_000, vec![10, 11])),
            (
                "a shorter one at the end",
                json!([one(sum(0.0, 1.0, 10, false)), one(sum(1.0, 1.01, 1, false))]),
                (1_000_000, vec![10]),
            ),
            (
                "both ways",
                json!([{"sum": sum(0.0, 1.0, 9, true), "sum_bidir_reverse": sum(0.0, 1.0, 7, false)}]),
                (1_000_000, vec![7]),
            ),
            ("the server sends", json!([one(sum(0.0, 1.0, 10, true))]), (0, vec![])),
            ("an old version", json!([{"sum": {"start": 0, "end": 2.0, "bytes": 5}}]), (2_000_000, vec![5])),
            (
                "what is omitted",
                json!([{"sum": {"start": 0, "end": 1, "bytes": 5, "omitted": true}}, one(sum(1.0, 2.0, 6, false))]),
                (1_000_000, vec![6]),
            ),
            (
                "a gap",
                json!([one(sum(0.0, 1.0, 10, false)), one(sum(1.0, 4.0, 1, false)), one(sum(4.0, 5.0, 1, false))]),
                (0, vec![]),
            ),
            ("backwards", json!([one(sum(1.0, 0.0, 10, false))]), (0, vec![])),
            ("absurd times", json!([one(sum(0.0, 1e300, 10, false))]), (0, vec![])),
            ("negative bytes", json!([{"sum": {"start": 0, "end": 1, "bytes": -1}}]), (0, vec![])),
            ("words", json!("none"), (0, vec![])),
            ("nothing", json!([]), (0, vec![])),
        ] {
            assert_eq!(bins(&intervals), expected, "{name}");
        }
        assert_eq!(received(None), Bins::default());
        assert_eq!(received(Some(&ServerOutput::Text("[ ID] Interval".to_owned()))), Bins::default());
    }

    #[test]
    fn late_datagrams_are_known_when_every_stream_tells() {
        let output = |streams: Value| {
            ServerOutput::Json(json!({"start": {"version": "iperf 3.12\u{1b}[31m"}, "end": {"streams": streams}}))
        };
        let told = output(json!([{"udp": {"out_of_order": 2}}, {"udp": {"out_of_order": 3}}]));
        assert_eq!(out_of_order(Some(&told)), Some(5));
        assert_eq!(out_of_order(Some(&output(json!([{"udp": {"out_of_order": 2}}, {}])))), None);
        assert_eq!(version(Some(&told)).as_deref(), Some("iperf 3.12[31m"));
        assert_eq!(version(None), None);
    }

    proptest! {
        #[test]
        fn no_output_breaks_it(text in "[\\[\\]{}\",:a-z0-9e.-]{0,200}", start in any::<f64>(), end in any::<f64>(), bytes in any::<i64>()) {
            let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
            let sum = json!({"start": start, "end": end, "bytes": bytes});
            for value in [value.clone(), json!({"intervals": [{"sum": sum}, value.clone()], "end": {"streams": [value.clone()]}, "start": value})] {
                let output = ServerOutput::Json(value);
                let bins = received(Some(&output));
                prop_assert!(bins.bytes.is_empty() || bins.interval_us.0 >= 1000);
                let _ = (out_of_order(Some(&output)), version(Some(&output)));
            }
        }
    }
}
