//! The data plane on loopback: what is sent is counted, at both ends alike.

use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use super::*;

const LONG: Duration = Duration::from_secs(20);

fn load(len: usize) -> Load {
    Load { len, rate: None, burst: 0, bytes: None, copies: false, wide_counters: false, deadline: LONG }
}

fn tcp_pairs(count: usize) -> (Vec<DataSocket>, Vec<DataSocket>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let pair = |_| {
        let here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (DataSocket::Tcp(here), DataSocket::Tcp(listener.accept().unwrap().0))
    };
    (0..count).map(pair).unzip()
}

fn udp_pair() -> (DataSocket, DataSocket) {
    let (here, there) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    here.connect(there.local_addr().unwrap()).unwrap();
    there.connect(here.local_addr().unwrap()).unwrap();
    (DataSocket::Udp(here), DataSocket::Udp(there))
}

fn all(sockets: Vec<DataSocket>, way: Way, load: Load) -> Streams {
    Streams::start(sockets.into_iter().map(|socket| (socket, way)).collect(), load).unwrap()
}

fn wait(what: &str, done: impl Fn() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < LONG, "waiting until {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

fn sum(ends: &[StreamEnd]) -> u64 {
    ends.iter().map(|end| end.count.bytes).sum()
}

#[test]
fn a_limit_in_bytes_is_kept_to_the_byte_over_all_streams() {
    for (name, streams, bytes, copies, len) in [
        ("one stream, without copies", 1, 3_000_001, false, Load::TCP_LEN),
        ("three streams, with copies", 3, 3_000_001, true, Load::TCP_LEN),
        ("less than a block", 2, 100, false, Load::TCP_LEN),
        ("blocks that do not divide the content", 2, 5_000_000, true, 100_000),
        ("short blocks", 1, 200_000, false, 1000),
        ("nothing at all", 2, 0, false, Load::TCP_LEN),
    ] {
        let (here, there) = tcp_pairs(streams);
        let mut receiving = all(there, Way::Receive, Load { copies, ..load(len) });
        let mut sending = all(here, Way::Send, Load { copies, bytes: Some(bytes), ..load(len) });
        wait("the senders end", || sending.senders_ended());
        let sent = sending.finish();
        drop(sending);
        wait("the receivers end", || receiving.receivers_ended());
        let received = receiving.finish();
        assert_eq!((sum(&sent), sum(&received)), (bytes, bytes), "{name}");
        assert!(sent.iter().chain(&received).all(|end| end.error.is_none()), "{name}");
        let each = |ends: &[StreamEnd]| ends.iter().map(|end| end.count.bytes).collect::<Vec<_>>();
        assert_eq!(each(&sent), each(&received), "{name}");
    }
}

#[test]
fn a_rate_is_kept_and_what_is_omitted_does_not_count() {
    let (here, there) = tcp_pairs(1);
    let receiving = all(there, Way::Receive, load(Load::TCP_LEN));
    // 1 MB/s: a second of it in both parts together at the most.
    let mut sending = all(here, Way::Send, Load { rate: Some(BitRate(8_000_000)), ..load(10_000) });
    wait("something was sent", || sending.bytes(Way::Send) >= 100_000);
    sending.omit();
    let omitted = sending.bytes(Way::Send);
    wait("more was sent", || sending.bytes(Way::Send) >= 300_000);
    sending.end_sending();
    wait("the sender ends", || sending.senders_ended());
    let (elapsed, sent) = (sending.elapsed(), sending.finish());
    let (counted, before) = (sent[0].count.bytes, sent[0].omitted.bytes);
    assert!(before <= omitted && before >= 100_000 && counted > 0);
    let allowed = elapsed.as_secs_f64() * 1e6 + 10_000.0;
    assert!((counted + before) as f64 <= allowed, "{} bytes in {elapsed:?}", counted + before);
    drop(receiving);
}

#[test]
fn a_black_hole_and_a_silent_peer_end_with_the_word() {
    let (here, there) = tcp_pairs(2);
    // Nobody reads: the buffers fill and the senders are stuck.
    let mut sending = all(here, Way::Send, load(Load::TCP_LEN));
    wait("the buffers are full", || {
        let before = sending.bytes(Way::Send);
        thread::sleep(Duration::from_millis(150));
        before > 0 && before == sending.bytes(Way::Send)
    });
    let begin = Instant::now();
    assert!(sending.finish().iter().all(|end| end.error.is_none()));
    drop(there);
    let (here, there) = tcp_pairs(1);
    let mut receiving = all(there, Way::Receive, load(Load::TCP_LEN));
    receiving.drain(Duration::from_millis(20), LONG);
    assert_eq!(sum(&receiving.finish()), 0);
    drop(here);
    assert!(begin.elapsed() < LONG / 2);
}

#[test]
fn a_deadline_ends_everything() {
    let (here, there) = tcp_pairs(1);
    let short = Load { deadline: Duration::from_millis(100), ..load(Load::TCP_LEN) };
    let (mut receiving, mut sending) = (all(there, Way::Receive, short.clone()), all(here, Way::Send, short));
    wait("both end", || sending.senders_ended() && receiving.receivers_ended());
    assert!(sending.finish().iter().chain(&receiving.finish()).all(|end| end.error.is_none()));
}

#[test]
fn datagrams_are_counted_at_both_ends() {
    for (name, wide, len) in
        [("narrow counters", false, 1000), ("wide counters", true, 16), ("the largest", false, udp::MOST_LEN)]
    {
        let (here, there) = udp_pair();
        let load = Load { wide_counters: wide, ..load(len) };
        let mut receiving = all(vec![there], Way::Receive, load.clone());
        let bytes = Some(50 * len as u64);
        let mut sending = all(vec![here], Way::Send, Load { bytes, rate: Some(BitRate(2000 * 8 * len as u64)), ..load });
        wait("the sender ends", || sending.senders_ended());
        receiving.drain(Duration::from_millis(200), LONG);
        let (sent, received) = (sending.finish(), receiving.finish());
        assert_eq!((sent[0].count.packets, sent[0].count.bytes), (50, 50 * len as u64), "{name}");
        let count = received[0].count;
        assert_eq!(count.received + count.lost, count.packets, "{name}");
        assert!(count.packets <= 50 && count.received > 0, "{name}");
        assert_eq!(count.bytes, count.received * len as u64, "{name}");
    }
}

#[test]
fn both_ways_at_once_and_a_peer_that_goes_away() {
    let (here, there) = tcp_pairs(2);
    let ways = [Way::Send, Way::Receive];
    let mixed = |sockets: Vec<DataSocket>, ways: [Way; 2]| {
        Streams::start(sockets.into_iter().zip(ways).collect(), Load { bytes: Some(1_000_000), ..load(Load::TCP_LEN) }).unwrap()
    };
    let (pc, mut nas) = (mixed(here, ways), mixed(there, [ways[1], ways[0]]));
    wait("both have all", || pc.bytes(Way::Receive) == 1_000_000 && nas.bytes(Way::Receive) == 1_000_000);
    let ends = nas.finish();
    assert_eq!(ends[0].way, Way::Receive);
    drop(nas);
    wait("the others see it", || pc.receivers_ended());
    drop(pc);
    let (here, there) = tcp_pairs(1);
    let mut sending = all(here, Way::Send, load(Load::TCP_LEN));
    drop(there);
    wait("the sender sees it", || sending.senders_ended());
    assert!(sending.finish()[0].error.is_some());
}
