//! Both ends against each other on loopback.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::model::Outcome;
use crate::model::kernel::Ended;
use crate::model::throughput::{Pass, ReceiverEnd, SenderEnd, StopRule};
use crate::sys::Stop;
use crate::units::{ByteSize, Elapsed};

/// Far beyond what any pass here may take, even on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(30);

fn pairs(count: usize) -> (Vec<TcpStream>, Vec<TcpStream>) {
    let spec = SocketSpec::with_congestion(CAPACITY_CONGESTION);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    prepare(&listener, &spec).unwrap();
    let addr = listener.local_addr().unwrap();
    (0..count)
        .map(|_| {
            let near = connect(addr, &spec, PATIENCE).unwrap();
            let (far, _) = listener.accept().unwrap();
            adopt(&far, &spec);
            (near, far)
        })
        .unzip()
}

fn send_spec(millis: u64) -> SendSpec {
    SendSpec { duration: Duration::from_millis(millis), options: SocketSpec::with_congestion("cubic").options }
}

fn receive_spec(deadline: Duration) -> ReceiveSpec {
    ReceiveSpec { deadline, ..ReceiveSpec::default() }
}

fn pass(streams: usize, out: &SendSpec, into: &ReceiveSpec) -> (SenderEnd, ReceiverEnd, Pass) {
    let (near, far) = pairs(streams);
    let (sent, received) = thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(far, into, &Stop::new(), &Progress::new()));
        let sent = send(near, out, &Stop::new(), &Progress::new()).unwrap();
        (sent, receiver.join().unwrap().unwrap())
    });
    let pass = assemble(streams as u32, Outcome::Measured(sent.clone()), received.clone(), None);
    (sent, received, pass)
}

#[test]
fn what_is_sent_arrives_on_one_stream_and_on_four_with_and_without_copies() {
    for (streams, copies) in [(1, false), (4, false), (1, true), (4, true)] {
        let (mut out, mut into) = (send_spec(600), receive_spec(PATIENCE));
        (out.options.copies, into.options.copies) = (copies, copies);
        let (sent, received, pass) = pass(streams, &out, &into);
        assert!(sent.bytes.0 > 0);
        assert_eq!(sent.bytes, received.bytes, "{streams} streams, copies: {copies}");
        assert_eq!(received.stream_bytes.len(), streams);
        assert_eq!(received.stream_bytes.iter().map(|b| b.0).sum::<u64>(), received.bytes.0);
        assert!(received.bins.bytes.iter().sum::<u64>() <= received.bytes.0);
        assert!(received.bins.bytes.len() >= 4, "{:?}", received.bins);
        assert!(pass.goodput_bps.0 > 0);
        if copies {
            assert_eq!((sent.method.as_str(), received.method.as_str()), ("send", "read"));
        }
    }
}

#[cfg(all(target_os = "linux", not(feature = "portable")))]
#[test]
fn the_kernel_tells_of_every_stream() {
    let (sent, received, _) = pass(2, &send_spec(300), &receive_spec(PATIENCE));
    assert!(received.method.starts_with("recv-trunc"), "{}", received.method);
    for stats in [&sent.stats, &received.stats] {
        let stats = stats.measured().unwrap();
        assert_eq!(stats.len(), 2);
        assert!(stats.iter().all(|s| s.rtt_us.is_some() && s.snd_mss_bytes > Some(500) && s.pmtu_bytes > Some(1000)));
    }
    assert!(sent.thread_cpu_us.is_some() && received.thread_cpu_us.is_some());
    assert!(sent.congestion.is_some_and(|name| !name.is_empty() && !name.contains('\0')));
}

#[test]
fn a_limit_of_bytes_ends_a_pass_to_the_byte() {
    let mut out = send_spec(30_000);
    out.options.max_bytes = Some(ByteSize(3_000_001));
    let (sent, received, _) = pass(4, &out, &receive_spec(PATIENCE));
    assert_eq!((sent.bytes.0, received.bytes.0), (3_000_001, 3_000_001));
    assert!(sent.elapsed_us.seconds() < 25.0);
}

#[test]
fn the_last_bytes_arrive_below_the_low_water_mark_too() {
    let (near, far) = pairs(1);
    let received = thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(far, &receive_spec(PATIENCE), &Stop::new(), &Progress::new()));
        let mut near = near.into_iter().next().unwrap();
        near.write_all(&vec![7; 20_000_000]).unwrap();
        near.write_all(b"end").unwrap();
        drop(near);
        receiver.join().unwrap().unwrap()
    });
    assert_eq!(received.bytes.0, 20_000_003);
}

#[test]
fn a_peer_that_never_reads_does_not_hold_the_sender() {
    let (near, _far) = pairs(2);
    let begin = Instant::now();
    let sent = send(near, &send_spec(300), &Stop::new(), &Progress::new()).unwrap();
    assert!(begin.elapsed() < PATIENCE / 3, "{:?}", begin.elapsed());
    assert!(sent.bytes.0 > 0);
    assert!(sent.elapsed_us.seconds() >= 0.3);
}

#[test]
fn a_peer_that_says_nothing_does_not_hold_the_receiver() {
    let (_near, far) = pairs(2);
    let received = receive(far, &receive_spec(Duration::from_millis(450)), &Stop::new(), &Progress::new()).unwrap();
    assert_eq!((received.bytes.0, received.elapsed_us.0), (0, 0));
    assert!(received.bins.bytes.len() >= 4 && received.bins.bytes.iter().all(|b| *b == 0), "{:?}", received.bins);
    assert_eq!(assemble(2, Outcome::skipped("test"), received, None).goodput_bps.0, 0);
}

#[test]
fn a_stall_until_the_deadline_is_time() {
    let (mut near, far) = pairs(1);
    near[0].write_all(&[1; 10_000]).unwrap();
    let received = receive(far, &receive_spec(Duration::from_millis(650)), &Stop::new(), &Progress::new()).unwrap();
    assert_eq!(received.bytes.0, 10_000);
    assert!(received.bins.bytes.len() >= 5, "{:?}", received.bins);
    let pass = assemble(1, Outcome::skipped("test"), received, None);
    assert_eq!(pass.steady, None);
    assert!(pass.goodput_bps.0 <= 80_000 * 2, "{}", pass.goodput_bps);
}

#[test]
fn the_word_to_stop_ends_both_ends() {
    let (near, far) = pairs(2);
    let (stop, progress) = (Stop::new(), Progress::new());
    let begin = Instant::now();
    thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(far, &receive_spec(PATIENCE * 2), &stop, &progress));
        let sender = scope.spawn(|| send(near, &send_spec(60_000), &stop, &Progress::new()));
        while progress.bytes() == 0 && begin.elapsed() < PATIENCE {
            thread::yield_now();
        }
        stop.set();
        assert!(receiver.join().unwrap().unwrap().bytes.0 > 0);
        // The receiver may have shut the connections before the sender saw the word.
        let _ = sender.join().unwrap();
    });
    assert!(begin.elapsed() < PATIENCE, "{:?}", begin.elapsed());
}

#[test]
fn a_peer_that_dies_is_named() {
    let (near, far) = pairs(1);
    let party = near[0].peer_addr().unwrap().to_string();
    let (go, died) = mpsc::channel();
    let begin = Instant::now();
    let error = thread::scope(|scope| {
        scope.spawn(move || {
            let mut far = far.into_iter().next().unwrap();
            far.read_exact(&mut [0; 1000]).unwrap();
            drop(far);
            go.send(()).unwrap();
        });
        let error = send(near, &send_spec(60_000), &Stop::new(), &Progress::new()).unwrap_err();
        died.recv().unwrap();
        error
    });
    assert!(error.to_string().starts_with(&format!("failed to send to {party}: ")), "{error}");
    assert!(begin.elapsed() < PATIENCE);
}

#[test]
fn one_stream_that_breaks_among_others_only_ends_early() {
    let (near, mut far) = pairs(2);
    let (sent, received) = thread::scope(|scope| {
        drop(far.pop());
        let receiver = scope.spawn(|| receive(far, &receive_spec(PATIENCE), &Stop::new(), &Progress::new()));
        (send(near, &send_spec(300), &Stop::new(), &Progress::new()).unwrap(), receiver.join().unwrap().unwrap())
    });
    assert!(received.bytes.0 > 0 && sent.bytes >= received.bytes);
    assert_eq!((sent.broken.len(), received.broken.len()), (1, 0));
    assert!(sent.broken[0].starts_with("failed to send to 127.0.0.1:"), "{:?}", sent.broken);
    assert_eq!(sent.ended, Ended::Time);
    assert_eq!(assemble(2, Outcome::Measured(sent.clone()), received, None).broken, sent.broken);
}

/// A rule that asks for the time only: what is tested is the way from the receiver's word to the sender's end, not the machine's evenness.
const ANY: StopRule = StopRule { half_width: 1e9, least_us: Elapsed(1_000_000) };

#[test]
fn a_receiver_that_has_enough_ends_the_pass() {
    for streams in [1, 4] {
        let mut into = receive_spec(PATIENCE);
        into.options.enough = Some(ANY);
        let (sent, received, pass) = pass(streams, &send_spec(20_000), &into);
        assert_eq!((sent.ended, received.ended, pass.ended), (Ended::Enough, Ended::Enough, Ended::Enough));
        assert_eq!(sent.bytes, received.bytes, "nothing is lost on the way");
        assert!(sent.elapsed_us.seconds() >= 1.0 && sent.elapsed_us.seconds() < 18.0, "{}", sent.elapsed_us);
        assert!(sent.broken.is_empty() && received.broken.is_empty());
    }
}

#[test]
fn a_sender_that_does_not_heed_the_word_changes_nothing_but_the_end() {
    let (near, far) = pairs(1);
    let mut into = receive_spec(Duration::from_millis(2500));
    into.options.enough = Some(ANY);
    let received = thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(far, &into, &Stop::new(), &Progress::new()));
        let begin = Instant::now();
        let mut sent = 0u64;
        for mut stream in near {
            while begin.elapsed() < Duration::from_millis(1800) {
                sent += stream.write(&[1; 4096]).unwrap() as u64;
            }
        }
        (sent, receiver.join().unwrap().unwrap())
    });
    assert_eq!(received.0, received.1.bytes.0);
    assert!(received.1.bins.bytes.len() > 10, "{:?}", received.1.bins);
}

#[test]
fn bytes_on_the_way_back_say_nothing() {
    let (near, mut far) = pairs(1);
    far[0].write_all(b"....").unwrap();
    let sent = thread::scope(|scope| {
        let reader = scope.spawn(move || std::io::copy(&mut far[0], &mut std::io::sink()));
        let sent = send(near, &send_spec(700), &Stop::new(), &Progress::new()).unwrap();
        reader.join().unwrap().unwrap();
        sent
    });
    assert_eq!(sent.ended, Ended::Time);
    assert!(sent.elapsed_us.seconds() >= 0.7);
}

#[test]
fn each_end_says_what_ended_it() {
    let (sent, received, timed) = pass(1, &send_spec(300), &receive_spec(PATIENCE));
    assert_eq!((sent.ended, received.ended, timed.ended), (Ended::Time, Ended::Peer, Ended::Time));
    let (mut out, mut into) = (send_spec(30_000), receive_spec(PATIENCE));
    (out.options.max_bytes, into.options.max_bytes) = (Some(ByteSize(1_000_000)), Some(ByteSize(1_000_000)));
    let (sent, received, full) = pass(3, &out, &into);
    assert_eq!((sent.ended, received.ended, full.ended), (Ended::Bytes, Ended::Bytes, Ended::Bytes));
    let (_near, far) = pairs(1);
    let silent = receive(far, &receive_spec(Duration::from_millis(200)), &Stop::new(), &Progress::new()).unwrap();
    assert_eq!(silent.ended, Ended::Time);
    let (near, _far) = pairs(1);
    let stop = Stop::new();
    stop.set();
    assert_eq!(send(near, &send_spec(30_000), &stop, &Progress::new()).unwrap().ended, Ended::Stopped);
}

#[cfg(all(target_os = "linux", not(feature = "portable")))]
#[test]
fn the_kernels_view_is_kept_bin_by_bin_at_both_ends() {
    let (sent, received, pass) = pass(3, &send_spec(1500), &receive_spec(PATIENCE));
    for (name, series) in [("sender", &sent.series), ("receiver", &received.series)] {
        let series = series.measured().unwrap_or_else(|| panic!("{name}"));
        assert!(series.at_us.len() >= 3 && series.at_us.is_sorted(), "{name}: {:?}", series.at_us);
        assert_eq!((series.rtt_us.len(), series.retransmits.len()), (series.at_us.len(), series.at_us.len()), "{name}");
    }
    let (series, stats) = (sent.series.measured().unwrap(), sent.stats.measured().unwrap());
    let retransmits: u64 = stats.iter().filter_map(|s| s.retransmits).sum();
    // A look may come after a stream's own last word.
    assert!(series.retransmits.iter().sum::<u64>() >= retransmits);
    if !series.busy_us.is_empty() {
        let shares = pass.limits.measured().unwrap();
        let sum = shares.application + shares.receiver + shares.send_buffer + shares.network;
        assert!((sum - 1.0).abs() < 1e-6, "{shares:?}");
    }
    let handed: u64 = sent.bins.bytes.iter().sum();
    assert!(handed > 0 && handed <= sent.bytes.0 && sent.bins.bytes.len() >= 12, "{:?}", sent.bins);
    assert_eq!(pass.sender_bins, sent.bins);
}

#[test]
fn many_streams_both_ways_at_once_in_one_process() {
    const STREAMS: usize = 128;
    let ((near_out, far_in), (near_in, far_out)) = (pairs(STREAMS), pairs(STREAMS));
    let (spec, patience) = (send_spec(500), receive_spec(PATIENCE));
    let way = |out, into| {
        thread::scope(|scope| {
            let receiver = scope.spawn(|| receive(into, &patience, &Stop::new(), &Progress::new()));
            (send(out, &spec, &Stop::new(), &Progress::new()).unwrap(), receiver.join().unwrap().unwrap())
        })
    };
    let ways = thread::scope(|scope| {
        let there = scope.spawn(|| way(near_out, far_in));
        [way(far_out, near_in), there.join().unwrap()]
    });
    for (sent, received) in ways {
        assert_eq!(sent.bytes, received.bytes);
        assert_eq!(received.stream_bytes.len(), STREAMS);
        assert!(sent.broken.is_empty() && received.broken.is_empty());
    }
}

#[test]
fn nobody_there_is_an_error_that_names_the_address() {
    let addr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = connect(addr, &SocketSpec::default(), PATIENCE).unwrap_err();
    assert!(error.to_string().contains(&addr.to_string()), "{error}");
}

#[cfg(unix)]
#[test]
fn a_clamp_before_connecting_holds_for_both_directions() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let spec = SocketSpec { mss_clamp: Some(1000), ..SocketSpec::default() };
    let near = connect(listener.local_addr().unwrap(), &spec, PATIENCE).unwrap();
    let (far, _) = listener.accept().unwrap();
    for stream in [&near, &far] {
        let mss = socket2::SockRef::from(stream).tcp_mss().unwrap();
        assert!((900..=1000).contains(&mss), "{mss}");
    }
}
