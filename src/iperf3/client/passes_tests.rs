//! What comes of both ends' counts, and of a server that tells what cannot be.

use std::io;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::iperf3::ServerOutput;
use crate::iperf3::client::{Test, UdpTest};
use crate::iperf3::state::Cookie;
use crate::iperf3::stream::Count;
use crate::model::kernel::Ended;

fn stream(way: Way, bytes: u64) -> StreamEnd {
    StreamEnd {
        way,
        count: Count { bytes, packets: bytes / 1000, received: bytes / 1000, ..Count::default() },
        omitted: Count::default(),
        first: Some(Duration::from_millis(1)),
        last: Some(Duration::from_secs(1)),
        ended: Duration::from_secs(1),
        tcp: Outcome::Measured(TcpStats { rtt_us: Some(5), ..TcpStats::default() }),
        acknowledged: None,
        congestion: Some("cubic".to_owned()),
        method: "sendfile",
        cpu: Some(Duration::from_millis(100)),
        error: None,
    }
}

fn said(id: u32, bytes: u64) -> StreamResult {
    StreamResult { id, bytes, end_s: 1.0, ..StreamResult::default() }
}

fn result(test: Test, streams: Vec<StreamEnd>, server: Outcome<Results>) -> TestResult {
    TestResult {
        test,
        streams,
        sent_bins: Bins { interval_us: Elapsed(100_000), bytes: vec![100; 10] },
        received_bins: Bins { interval_us: Elapsed(100_000), bytes: vec![200; 10] },
        send_series: Outcome::skipped("test"),
        receive_series: Outcome::skipped("test"),
        elapsed: Duration::from_secs(1),
        acknowledged: None,
        counted_from: Duration::ZERO,
        server,
        ended: Ended::Time,
        send_sockets: SocketFacts::default(),
        receive_sockets: SocketFacts::default(),
    }
}

fn told_streams(streams: Vec<StreamResult>) -> Outcome<Results> {
    Outcome::Measured(Results { sender_retransmits: SenderRetransmits::Counted, streams, ..Results::default() })
}

fn both() -> Vec<StreamEnd> {
    [(Way::Send, 1000), (Way::Send, 2000), (Way::Receive, 1200), (Way::Receive, 800)]
        .map(|(way, bytes)| stream(way, bytes))
        .into()
}

#[test]
fn an_upload_is_what_the_server_read_and_a_download_what_we_read() {
    let test = Test { ways: Ways::Both, streams: 2, ..Test::default() };
    let theirs = [(1, 900), (3, 2000), (4, 1500), (5, 900)].map(|(id, bytes)| said(id, bytes));
    let mut theirs = theirs.to_vec();
    theirs[2].retransmits = Some(7);
    theirs[3].retransmits = Some(0);
    let passes = passes(&result(test, both(), told_streams(theirs)));
    let [(Direction::Upload, up), (Direction::Download, down)] = passes.as_slice() else { panic!("{passes:?}") };
    let (up, down) = (up.measured().unwrap(), down.measured().unwrap());
    assert_eq!((up.bytes.0, up.goodput_bps.0, up.elapsed_us.0), (2900, 2900 * 8, 1_000_000));
    assert_eq!(up.stream_bytes, [ByteSize(900), ByteSize(2000)]);
    assert!(up.bins.bytes.is_empty() && up.sender_bins.bytes.len() == 10);
    assert_eq!(up.sender.measured().map(Vec::len), Some(2));
    assert_eq!(up.receiver.why(), Some(NOT_TOLD));
    assert_eq!(down.bytes.0, 2000);
    assert_eq!(down.bins.bytes.len(), 10);
    assert_eq!(down.goodput_bps.0, 2000 * 8, "over the steady part");
    let again: Vec<_> = down.sender.measured().unwrap().iter().map(|stats| stats.retransmits).collect();
    assert_eq!(again, [Some(7), Some(0)]);
}

#[test]
fn a_server_with_json_output_gives_bins_and_a_steady_part() {
    let interval = |at: u32, bytes: u64| json!({"sum": {"start": at, "end": at + 1, "bytes": bytes, "sender": false}});
    let intervals: Vec<_> = [5, 100, 100, 100, 100, 100].into_iter().zip(0..).map(|(bytes, at)| interval(at, bytes)).collect();
    let mut results = Results { streams: vec![said(1, 505)], ..Results::default() };
    results.server_output = Some(ServerOutput::Json(json!({ "intervals": intervals })));
    let pass = passes(&result(Test::default(), vec![stream(Way::Send, 600)], Outcome::Measured(results)));
    let pass = pass[0].1.measured().unwrap();
    assert_eq!((pass.bins.bytes.len(), pass.goodput_bps.0), (6, 800));
}

#[test]
fn what_cannot_be_is_no_measurement() {
    let one = |server| passes(&result(Test::default(), vec![stream(Way::Send, 1000)], server)).remove(0).1;
    for (name, server, words) in [
        ("more than was sent", told_streams(vec![said(1, 1001)]), "more than was sent"),
        ("two streams for one", told_streams(vec![said(4, 10), said(5, 10)]), "other streams"),
        ("none", told_streams(vec![]), "other streams"),
        ("another number for the only stream", told_streams(vec![said(9, 10)]), "other streams"),
        ("no results", Outcome::failed("it left"), "it left"),
    ] {
        assert!(one(server).why().is_some_and(|why| why.contains(words)), "{name}");
    }
    for end_s in [0.0, -1.0, 1e300, f64::NAN, f64::INFINITY, 1e-9] {
        let pass = one(told_streams(vec![StreamResult { end_s, ..said(1, 500) }]));
        assert_eq!(
            pass.measured().map(|pass| pass.elapsed_us.0 / 1000),
            Some(1000),
            "an absurd time of {end_s} is replaced by ours"
        );
        let doubted = pass.measured().is_some_and(|pass| pass.doubts.iter().any(|said| said.contains("ended at")));
        assert_eq!(doubted, end_s <= 0.0, "a stream that ends at {end_s} s");
    }
    let mut broke = stream(Way::Send, 1000);
    broke.error = Some(io::ErrorKind::ConnectionReset.into());
    let pass = passes(&result(Test::default(), vec![broke], told_streams(vec![said(1, 10)]))).remove(0).1;
    assert!(pass.why().is_some_and(|why| why.contains("broke")));
}

#[test]
fn what_our_kernel_saw_acknowledged_counts_more_than_what_a_server_says() {
    const MB: u64 = 1_000_000;
    let sent = |acknowledged: Option<u64>, waited: Option<u64>| {
        let mut stream = stream(Way::Send, 1001 * MB);
        stream.acknowledged = acknowledged.map(|bytes| bytes + Cookie::LEN as u64);
        stream.tcp = Outcome::Measured(TcpStats { rwnd_limited_us: waited, busy_us: Some(100), ..TcpStats::default() });
        vec![stream]
    };
    for (name, acknowledged, waited, said_id, said_bytes, believed) in [
        ("what its program had not read yet", Some(1000 * MB), Some(0), 1, 970 * MB, true),
        ("a tenth and more is missing, and no buffer holds that", Some(1000 * MB), Some(90), 1, 850 * MB, false),
        ("nearly nothing", Some(1000 * MB), None, 1, 5, false),
        ("a program that reads nothing: its kernel's buffer took all", Some(6 * MB), Some(90), 1, 0, true),
        ("as little, of a program that reads", Some(6 * MB), Some(10), 1, MB, false),
        ("a kernel that does not tell who waited", Some(6 * MB), None, 1, MB, true),
        ("too little to speak of", Some(MB), Some(0), 1, 200_000, true),
        ("another stream", Some(1000 * MB), Some(0), 7, 1000 * MB, false),
        ("a system that does not tell", None, Some(0), 1, 5, true),
    ] {
        let pass = passes(&result(Test::default(), sent(acknowledged, waited), told_streams(vec![said(said_id, said_bytes)])));
        let pass = pass[0].1.measured().unwrap();
        let bytes = if believed { said_bytes } else { acknowledged.unwrap() };
        assert_eq!((pass.bytes.0, pass.doubts.is_empty()), (bytes, believed), "{name}: {:?}", pass.doubts);
        assert!(believed || pass.doubts[0].contains("not believed"), "{name}");
        assert_eq!(pass.goodput_bps.0, bytes * 8, "{name}");
    }
}

#[test]
fn an_old_server_that_goes_one_way_only_is_told_as_that() {
    let test = Test { ways: Ways::Both, ..Test::default() };
    let mut closed = stream(Way::Receive, 0);
    (closed.first, closed.last, closed.ended) = (None, None, Duration::from_millis(3));
    let passes = passes(&result(test, vec![stream(Way::Send, 10), closed], told_streams(vec![said(1, 10)])));
    assert!(passes[0].1.measured().is_some());
    assert!(passes[1].1.why().is_some_and(|why| why.contains("before 3.7")));
}

#[test]
fn datagrams_that_did_not_arrive_are_lost_whoever_counts() {
    let udp = Some(UdpTest { rate: BitRate(80_000), len: 1000 });
    let up = Test { udp, ..Test::default() };
    let mut server = said(1, 7000);
    (server.packets, server.errors, server.jitter_s) = (9, 2, 0.002);
    let seen = datagrams(&result(up, vec![stream(Way::Send, 10_000)], told_streams(vec![server])));
    let pass = &seen[0].1.measured().unwrap().pass;
    assert_eq!((pass.sent, pass.received, pass.lost, pass.jitter_us.0, pass.received_bps.0), (10, 7, 3, 2000, 56_000));
    let down = Test { udp, ways: Ways::Download, ..Test::default() };
    let mut server = said(1, 12_000);
    server.packets = 12;
    let seen = datagrams(&result(down, vec![stream(Way::Receive, 10_000)], told_streams(vec![server])));
    let pass = &seen[0].1.measured().unwrap().pass;
    assert_eq!((pass.sent, pass.received, pass.lost), (12, 10, 2));
}

#[test]
fn what_a_server_does_not_tell_is_a_reason_and_never_a_number() {
    let test = Test { ways: Ways::Both, streams: 2, ..Test::default() };
    let theirs = [(1, 900), (3, 2000), (4, 1500), (5, 900)].map(|(id, bytes)| said(id, bytes)).to_vec();
    for (way, pass) in passes(&result(test, both(), told_streams(theirs))) {
        let pass = pass.measured().unwrap();
        for (what, why) in [
            ("the far processors", pass.cpu_nas.why()),
            ("the far counters", pass.counters_nas.why()),
            ("the far kernel", if way == Direction::Upload { pass.receiver.why() } else { pass.sender_series.why() }),
        ] {
            assert_eq!(why, Some(NOT_TOLD), "{what}, {way:?}");
        }
    }
    let udp = Some(UdpTest { rate: BitRate(80_000), len: 1000 });
    let up = |output: Option<ServerOutput>| {
        let results = Results { streams: vec![said(1, 7000)], server_output: output, ..Results::default() };
        let test = Test { udp, ..Test::default() };
        datagrams(&result(test, vec![stream(Way::Send, 10_000)], Outcome::Measured(results)))
            .remove(0)
            .1
            .measured()
            .cloned()
            .unwrap()
    };
    let silent = up(None);
    assert_eq!((silent.pass.dropped_by_receiver.why(), silent.pass.reordered), (Some(NOT_TOLD), 0));
    assert_eq!(silent.pass.counters_nas.why(), Some(NOT_TOLD));
    let late = |notes: &[String]| notes.iter().any(|note| note.contains("does not tell how many datagrams came late"));
    assert!(late(&silent.notes), "{:?}", silent.notes);
    let talks = up(Some(ServerOutput::Json(json!({"end": {"streams": [{"udp": {"out_of_order": 3}}]}}))));
    assert_eq!(talks.pass.reordered, 3);
    assert!(!late(&talks.notes) && talks.notes.iter().any(|note| note.contains("stand as zero")), "{:?}", talks.notes);
}

proptest! {
    #[test]
    fn nothing_a_server_says_breaks_it(
        streams in proptest::collection::vec((any::<u32>(), any::<u64>(), any::<f64>(), any::<f64>(), any::<u64>(), any::<f64>()), 0..6),
        datagram in any::<bool>(), sent in any::<u64>()
    ) {
        let streams = streams.into_iter().map(|(id, bytes, start_s, end_s, packets, jitter_s)| StreamResult {
            id: id % 7, bytes, start_s, end_s, packets, jitter_s, retransmits: Some(bytes), ..StreamResult::default()
        });
        let udp = datagram.then_some(UdpTest { rate: BitRate(u64::MAX), len: 1000 });
        let test = Test { ways: Ways::Both, streams: 2, udp, ..Test::default() };
        let mut ours = both();
        ours[0].count.bytes = sent;
        let result = result(test, ours, told_streams(streams.collect()));
        prop_assert_eq!(passes(&result).len() + datagrams(&result).len(), 2);
    }
}
