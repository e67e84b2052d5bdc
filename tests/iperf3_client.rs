//! Our client against the real iperf3 server, whose own report must say the same, and against what only looks like one.
//!
//! Where iperf3 is missing each test that needs it says so and is skipped; where the full suite is demanded (`WEAKLINK_FULL=1`) it
//! fails. The servers run on loopback with ports of their own.

#![expect(clippy::print_stderr, reason = "a skip must be seen")]

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weaklink::iperf3::Iperf3Server;
use weaklink::iperf3::client::{ClientError, Test, TestResult, UdpTest, Ways, datagrams, passes, run};
use weaklink::iperf3::stream::Way;
use weaklink::model::host::Direction;
use weaklink::model::kernel::Ended;
use weaklink::model::throughput::PassOptions;
use weaklink::sys::{Progress, Stop};
use weaklink::units::{BitRate, ByteSize};

const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

/// One at a time: two tests would share the cores.
static ONE: Mutex<()> = Mutex::new(());

/// How long a program is given to do what it does at once; only a hang reaches it.
const PATIENCE: Duration = Duration::from_secs(30);

fn turn() -> Option<MutexGuard<'static, ()>> {
    let there = Command::new("iperf3").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if there.is_err() {
        let reason = "this test needs iperf3 (package iperf3)";
        assert!(std::env::var("WEAKLINK_FULL").as_deref() != Ok("1"), "the full suite is demanded, but {reason}");
        eprintln!("SKIPPED: {reason}");
        return None;
    }
    Some(ONE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A running `iperf3 -s -J`, ended with the value.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    /// Serves one test at `host` and ends.
    fn once(host: IpAddr) -> Self {
        Self::start(host, &["-1"])
    }

    fn start(host: IpAddr, further: &[&str]) -> Self {
        let address = TcpListener::bind((host, 0)).unwrap().local_addr().unwrap();
        let child = Command::new("iperf3")
            .args(["-s", "-J", "-B", &host.to_string(), "-p", &address.port().to_string()])
            .args(further)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, address }
    }

    /// Its own report, when it has ended.
    fn report(mut self) -> Value {
        let mut output = self.child.stdout.take().unwrap();
        let reader = thread::spawn(move || {
            let mut text = Vec::new();
            output.read_to_end(&mut text).map(|_| text)
        });
        let begin = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(begin.elapsed() < PATIENCE, "the server does not end");
            thread::sleep(Duration::from_millis(5));
        }
        serde_json::from_slice(&reader.join().unwrap().unwrap()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Short; and patient until the server listens.
fn short(ways: Ways, streams: u32) -> Test {
    Test { ways, streams, time: Duration::from_millis(600), patience: PATIENCE, ..Test::default() }
}

fn with(test: Test, change: impl FnOnce(&mut PassOptions)) -> Test {
    let mut test = test;
    change(&mut test.options);
    test
}

fn go(address: SocketAddr, test: &Test) -> Result<TestResult, ClientError> {
    run(address, test, &Stop::new(), &Progress::new())
}

/// The bytes of each stream on which the server did this, as its report has them.
fn streams_of(report: &Value, receives: bool) -> Vec<u64> {
    let own = |stream: &Value| stream[if receives { "receiver" } else { "sender" }].clone();
    let all = report["end"]["streams"].as_array().unwrap().iter().map(own);
    all.filter(|own| own["sender"] != json!(receives)).map(|own| own["bytes"].as_u64().unwrap()).collect()
}

/// The bytes of all streams on which the server did this; iperf3 3.12 leaves those of each stream of datagrams at zero.
fn sum_of(report: &Value, receives: bool) -> u64 {
    let word = if receives { "received" } else { "sent" };
    let sums = [format!("sum_{word}"), format!("sum_{word}_bidir_reverse")];
    sums.iter().filter_map(|key| report["end"][key]["bytes"].as_u64()).max().unwrap()
}

/// What the client says about a TCP test is what the server says.
fn agree(name: &str, test: &Test, result: &TestResult, report: &Value) {
    for (direction, pass) in passes(result) {
        let pass = pass.measured().unwrap_or_else(|| panic!("{name}, {direction:?}: {:?}", pass.why()));
        let theirs = streams_of(report, direction == Direction::Upload);
        let ours: Vec<u64> = pass.stream_bytes.iter().map(|bytes| bytes.0).collect();
        assert_eq!(pass.streams, test.streams, "{name}");
        assert_eq!(theirs.len(), ours.len(), "{name}, {direction:?}: {report}");
        assert_eq!(ours.iter().sum::<u64>(), pass.bytes.0, "{name}, {direction:?}");
        assert!(pass.goodput_bps.0 > 0 && pass.elapsed_us.0 > 0, "{name}, {direction:?}: {pass:?}");
        if direction == Direction::Upload {
            assert_eq!(ours, theirs, "{name}, upload");
            assert!(result.bytes(Way::Send) >= pass.bytes.0 || !test.omit.is_zero(), "{name}");
            assert!(!pass.sender_bins.bytes.is_empty() || test.options.max_bytes.is_some(), "{name}");
            assert_eq!(pass.sender.measured().map(Vec::len), Some(test.streams as usize), "{name}");
            assert!(pass.limits.measured().is_some(), "{name}: {:?}", pass.limits);
            assert!(
                pass.sender_series.measured().is_some_and(|all| !all.at_us.is_empty() || test.options.max_bytes.is_some()),
                "{name}"
            );
        } else {
            // What was sent last may still have been on its way when the server closed; what was omitted may be other bytes here.
            let (ours, theirs) = (ours.iter().sum::<u64>(), theirs.iter().sum::<u64>());
            assert!((ours <= theirs || !test.omit.is_zero()) && ours >= theirs / 10 * 9, "{name}, download: {ours} of {theirs}");
            assert!(pass.bins.bytes.iter().sum::<u64>() <= ours, "{name}");
            assert_eq!(pass.receiver.measured().map(Vec::len), Some(test.streams as usize), "{name}");
            assert!(pass.sender.measured().is_some_and(|all| all.iter().all(|stats| stats.retransmits.is_some())), "{name}");
        }
    }
}

fn tests_of_tcp() -> Vec<(&'static str, IpAddr, Test)> {
    let up = |streams| short(Ways::Upload, streams);
    let down = |streams| short(Ways::Download, streams);
    let both = |streams| short(Ways::Both, streams);
    vec![
        ("upload", V4, up(1)),
        ("upload over four streams", V4, up(4)),
        ("download", V4, down(1)),
        ("download over four streams", V4, down(4)),
        ("both ways", V4, both(1)),
        ("both ways over two streams each", V4, both(2)),
        ("upload over IPv6", V6, up(2)),
        ("both ways over IPv6", V6, both(1)),
        ("a window", V4, with(both(1), |options| options.window_bytes = Some(256 << 10))),
        ("small segments", V4, Test { mss_bytes: Some(1000), ..both(1) }),
        ("another congestion control", V4, with(both(1), |options| options.congestion = Some("reno".into()))),
        ("a code point", V4, with(up(1), |options| options.dscp = Some(46))),
        ("a code point over IPv6", V6, with(down(1), |options| options.dscp = Some(8))),
        ("copies", V4, with(both(1), |options| options.copies = true)),
        ("a paced stream", V4, with(both(1), |options| options.pacing_bps = Some(BitRate(80_000_000)))),
        ("an omitted beginning", V4, Test { omit: Duration::from_secs(1), ..both(1) }),
        ("without the server's output", V4, Test { server_output: false, ..up(1) }),
    ]
}

#[test]
fn both_ends_say_the_same_of_tcp() {
    let Some(_turn) = turn() else { return };
    for (name, host, test) in tests_of_tcp() {
        let server = Server::once(host);
        let result = go(server.address, &test).unwrap_or_else(|error| panic!("{name}: {error}"));
        let report = server.report();
        agree(name, &test, &result, &report);
        assert_eq!(result.ended, Ended::Time, "{name}");
        let start = &report["start"]["test_start"];
        assert_eq!(start["num_streams"], json!(test.streams), "{name}");
        assert_eq!(start["tos"], json!(test.options.dscp.unwrap_or(0) << 2), "{name}");
        for (_, pass) in passes(&result) {
            let pass = pass.measured().unwrap();
            if let Some(congestion) = &test.options.congestion {
                assert_eq!(pass.method.congestion.as_ref(), Some(congestion), "{name}");
            }
            if let Some(mss) = test.mss_bytes {
                let of = pass.sender.measured().unwrap()[0]
                    .snd_mss_bytes
                    .or(pass.receiver.measured().and_then(|all| all[0].snd_mss_bytes));
                assert!(of.is_some_and(|bytes| bytes <= mss), "{name}: {of:?}");
            }
            if test.options.pacing_bps.is_some() {
                assert!(pass.goodput_bps.0 < 200_000_000, "{name}: {}", pass.goodput_bps);
            }
            assert!(pass.method.sender_sockets.refused.is_empty() && pass.method.receiver_sockets.refused.is_empty(), "{name}");
        }
        if test.options.window_bytes.is_some() {
            assert_eq!(report["start"]["sock_bufsize"], json!(256 << 10), "{name}");
            assert!(result.send_sockets.buffer_bytes.is_some_and(|bytes| bytes.0 >= 256 << 10), "{name}");
        }
    }
}

#[test]
fn a_limit_in_bytes_ends_a_test() {
    const BYTES: u64 = 5_000_000;
    let Some(_turn) = turn() else { return };
    let limited = |ways| with(Test { time: PATIENCE, ..short(ways, 2) }, |options| options.max_bytes = Some(ByteSize(BYTES)));
    for ways in [Ways::Upload, Ways::Download] {
        let server = Server::once(V4);
        let test = limited(ways);
        let result = go(server.address, &test).unwrap_or_else(|error| panic!("{ways:?}: {error}"));
        let report = server.report();
        agree("bytes", &test, &result, &report);
        let pass = passes(&result).remove(0).1;
        let bytes = pass.measured().unwrap().bytes.0;
        assert_eq!(result.ended, Ended::Bytes, "{ways:?}");
        match ways {
            Ways::Upload => assert_eq!((result.bytes(Way::Send), bytes), (BYTES, BYTES)),
            _ => assert!(bytes >= BYTES, "{bytes}"),
        }
    }
}

#[test]
fn both_ends_say_the_same_of_datagrams() {
    let Some(_turn) = turn() else { return };
    for (name, host, ways, streams, len) in [
        ("upload", V4, Ways::Upload, 1, 1000),
        ("upload over two streams", V4, Ways::Upload, 2, 1460),
        ("download", V4, Ways::Download, 1, 1000),
        ("download over two streams", V4, Ways::Download, 2, 1460),
        ("both ways", V4, Ways::Both, 1, 1000),
        ("upload over IPv6", V6, Ways::Upload, 1, 1400),
        ("download over IPv6", V6, Ways::Download, 1, 16),
    ] {
        let server = Server::once(host);
        let rate = BitRate(u64::from(len) * 8 * 500);
        let test = Test { udp: Some(UdpTest { rate, len }), ..short(ways, streams) };
        let result = go(server.address, &test).unwrap_or_else(|error| panic!("{name}: {error}"));
        let report = server.report();
        assert!(passes(&result).is_empty());
        for (direction, seen) in datagrams(&result) {
            let pass = &seen.measured().unwrap_or_else(|| panic!("{name}: {:?}", seen.why())).pass;
            let theirs = sum_of(&report, direction == Direction::Upload);
            let ours = pass.received * u64::from(len);
            assert_eq!(pass.asked_bps.0, rate.0 * u64::from(streams), "{name}");
            assert!(pass.received > 100 && pass.sent >= pass.received, "{name}: {pass:?}");
            assert_eq!(pass.lost, pass.sent - pass.received, "{name}");
            if direction == Direction::Upload {
                assert_eq!(ours, theirs, "{name}: {report}");
            } else {
                assert!(ours <= theirs, "{name}: {ours} of {theirs}");
            }
            // Loopback loses nothing at such a rate, but a busy machine may be late.
            assert!(pass.lost <= pass.sent / 5, "{name}: {pass:?}");
        }
    }
}

/// Runs a client on a thread of its own until it has moved bytes, then does something, and gives what became of it.
fn meanwhile(address: SocketAddr, test: &Test, then: impl FnOnce(&Stop)) -> Result<TestResult, ClientError> {
    let (stop, progress) = (Stop::new(), Progress::new());
    thread::scope(|scope| {
        let client = scope.spawn(|| run(address, test, &stop, &progress));
        let begin = Instant::now();
        while progress.bytes() == 0 && !client.is_finished() {
            assert!(begin.elapsed() < PATIENCE, "nothing moves");
            thread::sleep(Duration::from_millis(5));
        }
        assert!(!client.is_finished(), "it ended by itself: {:?}", client.join().unwrap());
        then(&stop);
        client.join().unwrap()
    })
}

fn long(ways: Ways) -> Test {
    Test { time: Duration::from_secs(60), ..short(ways, 2) }
}

#[test]
fn a_busy_server_says_so_and_an_interruption_frees_it() {
    let Some(_turn) = turn() else { return };
    for ways in [Ways::Download, Ways::Upload] {
        // One of its own for each: what a server is like that makes ready again is the question at the end.
        let server = Server::start(V4, &[]);
        let result = meanwhile(server.address, &long(ways), |stop| {
            let second = go(server.address, &Test { patience: Duration::ZERO, ..short(ways, 1) });
            stop.set();
            assert!(matches!(second, Err(ClientError::Busy(_))), "{second:?}");
            assert!(second.unwrap_err().to_string().contains("running another test"));
        });
        let result = result.unwrap();
        assert_eq!(result.ended, Ended::Stopped);
        let pass = passes(&result).remove(0).1;
        match ways {
            Ways::Download => assert!(pass.measured().is_some_and(|pass| pass.bytes.0 > 0)),
            _ => assert!(pass.why().is_some_and(|why| why.contains("interrupted")), "{pass:?}"),
        }
        // The next tests meet the server while it makes ready again.
        for _ in 0..2 {
            go(server.address, &Test { time: Duration::from_millis(200), ..short(Ways::Upload, 1) }).unwrap();
        }
    }
}

#[test]
fn a_server_that_dies_ends_the_test_with_a_reason() {
    let Some(_turn) = turn() else { return };
    for ways in [Ways::Upload, Ways::Download, Ways::Both] {
        let mut server = Server::once(V4);
        let begin = Instant::now();
        let ended = meanwhile(server.address, &long(ways), |_| server.child.kill().unwrap());
        let error = ended.unwrap_err();
        assert!(matches!(error, ClientError::Left { .. }), "{ways:?}: {error}");
        assert!(begin.elapsed() < PATIENCE, "{ways:?}");
    }
}

#[test]
fn a_test_that_iperf3_cannot_do_is_refused_before_it_begins() {
    let address = SocketAddr::from((V4, 9));
    for (name, test) in [
        ("no streams", short(Ways::Upload, 0)),
        ("too many streams", short(Ways::Upload, 129)),
        ("no time", Test { time: Duration::ZERO, ..Test::default() }),
        ("small datagrams", Test { udp: Some(UdpTest { rate: BitRate(0), len: 15 }), ..Test::default() }),
        ("a code point", with(Test::default(), |options| options.dscp = Some(64))),
    ] {
        assert!(matches!(go(address, &test), Err(ClientError::Invalid(_))), "{name}");
    }
}

/// Our own server speaks the same wire; here nothing of iperf3 is needed.
#[test]
fn our_client_and_our_server_understand_each_other() {
    let _turn = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let server = Iperf3Server::bind(SocketAddr::from((V4, 0))).unwrap();
    let (address, stop) = (server.address(), Stop::new());
    let until = stop.clone();
    let serving = thread::spawn(move || server.serve(&until, |_| ()));
    for ways in [Ways::Upload, Ways::Download, Ways::Both] {
        let test = short(ways, 2);
        let result = go(address, &test).unwrap();
        let told = result.server.measured().unwrap();
        for (direction, pass) in passes(&result) {
            let pass = pass.measured().unwrap_or_else(|| panic!("{direction:?}: {:?}", pass.why()));
            assert!(pass.bytes.0 > 0 && pass.goodput_bps.0 > 0, "{direction:?}");
        }
        assert_eq!(told.streams.len(), result.streams.len());
        let test = Test { udp: Some(UdpTest { rate: BitRate(4_000_000), len: 1000 }), ..test };
        for (direction, seen) in datagrams(&go(address, &test).unwrap()) {
            let pass = &seen.measured().unwrap_or_else(|| panic!("{direction:?}: {:?}", seen.why())).pass;
            assert!(pass.received > 100 && pass.sent >= pass.received, "{direction:?}: {pass:?}");
        }
    }
    let limited =
        with(Test { time: PATIENCE, ..short(Ways::Upload, 2) }, |options| options.max_bytes = Some(ByteSize(3_000_001)));
    let pass = passes(&go(address, &limited).unwrap()).remove(0).1;
    assert_eq!(pass.measured().map(|pass| pass.bytes.0), Some(3_000_001));
    stop.set();
    serving.join().unwrap().unwrap();
}

/// Something that listens and plays a part, once.
fn stage(part: impl FnOnce(TcpListener) -> std::io::Result<()> + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind((V4, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    // It ends with its client, or with the process.
    thread::spawn(move || part(listener));
    address
}

fn read(stream: &mut TcpStream, bytes: usize) -> std::io::Result<Vec<u8>> {
    let mut buffer = vec![0; bytes];
    stream.read_exact(&mut buffer)?;
    Ok(buffer)
}

fn read_json(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let length = u32::from_be_bytes(read(stream, 4)?.try_into().unwrap());
    read(stream, length as usize)
}

/// Plays an iperf3 server of one stream up to the begin of the test; the data connection is read and thrown away.
fn begin(listener: &TcpListener) -> std::io::Result<TcpStream> {
    let (mut control, _) = listener.accept()?;
    read(&mut control, 37)?;
    control.write_all(&[9])?;
    read_json(&mut control)?;
    control.write_all(&[10])?;
    let (mut data, _) = listener.accept()?;
    thread::spawn(move || std::io::copy(&mut data, &mut std::io::sink()));
    control.write_all(&[1, 2])?;
    Ok(control)
}

/// Plays it to the end of the test and the client's results.
fn until_results(listener: &TcpListener) -> std::io::Result<TcpStream> {
    let mut control = begin(listener)?;
    assert_eq!(read(&mut control, 1)?, [4]);
    control.write_all(&[13])?;
    read_json(&mut control)?;
    Ok(control)
}

fn results(text: &'static str) -> impl FnOnce(TcpListener) -> std::io::Result<()> + Send {
    move |listener| {
        let mut control = until_results(&listener)?;
        control.write_all(&(text.len() as u32).to_be_bytes())?;
        control.write_all(text.as_bytes())?;
        control.write_all(&[14])?;
        read(&mut control, 1).map(|_| ())
    }
}

/// A test of one short upload; how it went and what the pass says.
fn upload(address: SocketAddr) -> Result<String, String> {
    let test = Test { time: Duration::from_millis(200), patience: Duration::ZERO, ..short(Ways::Upload, 1) };
    let begin = Instant::now();
    let result = go(address, &test);
    assert!(begin.elapsed() < PATIENCE, "it took {:?}", begin.elapsed());
    let pass = passes(&result.map_err(|error| error.to_string())?).remove(0).1;
    match pass.measured() {
        Some(pass) => {
            let doubts = pass.doubts.join("; ");
            assert!(doubts.is_empty() || pass.bytes.0 > 1, "what our kernel saw stands in its place: {doubts}");
            Ok(format!("{} bytes in {} ms; {doubts}", pass.bytes.0, pass.elapsed_us.0 / 1000))
        }
        None => Ok(pass.why().unwrap_or_default().to_owned()),
    }
}

/// Everything that waits for a silent server waits at once.
#[test]
fn what_is_no_iperf3_server_is_told_as_that() {
    let held =
        |listener: TcpListener| listener.accept().and_then(|(mut control, _)| control.read_to_end(&mut Vec::new())).map(|_| ());
    let parts: Vec<(&str, SocketAddr, &str)> = vec![
        (
            "a web server",
            stage(|listener| listener.accept()?.0.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")),
            "no iperf3 server",
        ),
        ("silence", stage(held), "said nothing"),
        ("a door that closes", stage(|listener| listener.accept().map(drop)), "no iperf3 server"),
        ("a wrong state", stage(|listener| listener.accept()?.0.write_all(&[14])), "no iperf3 server"),
        ("busy", stage(|listener| listener.accept()?.0.write_all(&[0xff])), "running another test"),
        (
            "an error",
            stage(|listener| {
                let mut control = listener.accept()?.0;
                read(&mut control, 37)?;
                control.write_all(&[9])?;
                read_json(&mut control)?;
                control.write_all(&[0xfe, 0, 0, 0, 142, 0, 0, 0, 13])
            }),
            "refuses this test",
        ),
        (
            "an error of a system that is none",
            stage(|listener| {
                let mut control = listener.accept()?.0;
                read(&mut control, 37)?;
                control.write_all(&[9])?;
                read_json(&mut control)?;
                control.write_all(&[0xfe, 0, 0, 0, 142, 0x7f, 0xff, 0xff, 0xff])
            }),
            "(errno 2147483647, not one that Linux knows)",
        ),
        (
            "an error that is not whole",
            stage(|listener| {
                let mut control = listener.accept()?.0;
                read(&mut control, 37)?;
                control.write_all(&[9])?;
                read_json(&mut control)?;
                control.write_all(&[0xfe, 0, 0])?;
                control.read_to_end(&mut Vec::new()).map(|_| ())
            }),
            "sent 3 of 9 bytes of an error and then nothing more",
        ),
        (
            "no streams",
            stage(|listener| {
                let mut control = listener.accept()?.0;
                read(&mut control, 37)?;
                control.write_all(&[9])?;
                control.read_to_end(&mut Vec::new()).map(|_| ())
            }),
            "after it was told what to do",
        ),
        ("an end by its user", stage(|listener| begin(&listener)?.write_all(&[11])), "was ended by its user"),
        ("a word out of place", stage(|listener| begin(&listener)?.write_all(&[9])), "do not understand each other"),
    ];
    thread::scope(|scope| {
        for (name, address, words) in parts {
            scope.spawn(move || {
                let error = upload(address).unwrap_err();
                assert!(error.contains(words), "{name}: {error}");
            });
        }
    });
    let closed = TcpListener::bind((V4, 0)).unwrap().local_addr().unwrap();
    assert!(upload(closed).unwrap_err().contains("nothing listens"));
}

#[test]
fn results_that_cannot_be_are_no_measurement() {
    let parts: Vec<(&str, SocketAddr, &str)> = vec![
        // Whether that little can be depends on what a kernel's buffer holds; where it cannot, our own count stands in its place.
        ("very little", stage(results(r#"{"streams":[{"id":1,"bytes":1,"end_time":0.2}]}"#)), " bytes in 2"),
        ("another stream", stage(results(r#"{"streams":[{"id":9,"bytes":1,"end_time":0.2}]}"#)), "of other streams than those"),
        ("more than was sent", stage(results(r#"{"streams":[{"id":1,"bytes":9e18,"end_time":0.2}]}"#)), "more than was sent"),
        (
            "absurd times",
            stage(results(r#"{"streams":[{"id":1,"bytes":1,"start_time":-1e300,"end_time":1e300}]}"#)),
            " bytes in 2",
        ),
        ("words for numbers", stage(results(r#"{"streams":[{"id":"one","bytes":"many"}]}"#)), "no number or no bytes"),
        ("negative bytes", stage(results(r#"{"streams":[{"id":1,"bytes":-5}]}"#)), "no number or no bytes"),
        ("no streams", stage(results("{}")), "name no streams"),
        ("no JSON", stage(results("bytes: 5")), "cannot be read"),
        ("nothing", stage(results("")), "cannot be read"),
        (
            "a length beyond all",
            stage(|listener| {
                let mut control = until_results(&listener)?;
                control.write_all(&[0xff; 4])?;
                control.read_to_end(&mut Vec::new()).map(|_| ())
            }),
            "announced a message of 4294967295 bytes",
        ),
        (
            "endless JSON",
            stage(|listener| {
                let mut control = until_results(&listener)?;
                control.write_all(&(16u32 << 20).to_be_bytes())?;
                loop {
                    control.write_all(&[b'['; 64 << 10])?;
                }
            }),
            "cannot be read",
        ),
        (
            "a pause for ever",
            stage(|listener| {
                let mut control = until_results(&listener)?;
                control.write_all(&1000u32.to_be_bytes())?;
                control.read_to_end(&mut Vec::new()).map(|_| ())
            }),
            "sent 4 of 1004 bytes of a message and then nothing more",
        ),
        (
            "no word about the end",
            stage(|listener| begin(&listener)?.read_to_end(&mut Vec::new()).map(|_| ())),
            "said nothing for",
        ),
        (
            "a program that reads nothing",
            stage(|listener| {
                let (mut control, _) = listener.accept()?;
                read(&mut control, 37)?;
                control.write_all(&[9])?;
                read_json(&mut control)?;
                control.write_all(&[10])?;
                let _data = listener.accept()?;
                control.write_all(&[1, 2])?;
                read(&mut control, 1)?;
                control.write_all(&[13])?;
                read_json(&mut control)?;
                let text = br#"{"streams":[{"id":1,"bytes":0,"end_time":0.3}]}"#;
                control.write_all(&(text.len() as u32).to_be_bytes())?;
                control.write_all(text)?;
                control.write_all(&[14])?;
                control.read_to_end(&mut Vec::new()).map(|_| ())
            }),
            "0 bytes in 300 ms",
        ),
        ("an end without results", stage(|listener| until_results(&listener).map(drop)), "closed the connection"),
    ];
    thread::scope(|scope| {
        for (name, address, words) in parts {
            scope.spawn(move || {
                let said = upload(address).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert!(said.contains(words), "{name}: {said}");
            });
        }
    });
}
