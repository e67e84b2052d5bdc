//! What no client sends, and what must not bring the server down: it serves a good client at the same moment and afterwards.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use weaklink::iperf3::{Control, Cookie, Fault, FaultCode, Params, State};
use weaklink::sys::Stop;

use super::{LONG, Serving};

fn soon() -> Instant {
    Instant::now() + LONG
}

fn cookie(seed: u8) -> Cookie {
    Cookie::from_random([seed; Cookie::LEN - 1])
}

fn connect(address: SocketAddr) -> Control {
    Control::new(TcpStream::connect(address).unwrap(), Stop::new()).unwrap()
}

/// A client that was asked for its parameters.
fn greeted(address: SocketAddr, seed: u8) -> Control {
    let control = connect(address);
    control.send_cookie(&cookie(seed), soon()).unwrap();
    control.expect_state(State::ParamExchange, soon()).unwrap();
    control
}

/// Everything that the server still says until it closes.
fn rest(control: &Control) -> Vec<u8> {
    let mut all = Vec::new();
    let begin = Instant::now();
    let mut piece = [0; 256];
    loop {
        assert!(begin.elapsed() < LONG, "the server does not close");
        match control.stream().read(&mut piece) {
            Ok(0) => return all,
            Ok(read) => all.extend_from_slice(&piece[..read]),
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
            Err(_) => return all,
        }
    }
}

/// A whole test without iperf3: 100 kB to the server.
fn good_client(address: SocketAddr, seed: u8) {
    let control = greeted(address, seed);
    control.send_params(&Params::default(), soon()).unwrap();
    control.expect_state(State::CreateStreams, soon()).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(cookie(seed).bytes()).unwrap();
    control.expect_state(State::TestStart, soon()).unwrap();
    control.expect_state(State::TestRunning, soon()).unwrap();
    stream.write_all(&vec![7; 100_000]).unwrap();
    control.send_state(State::TestEnd, soon()).unwrap();
    control.expect_state(State::ExchangeResults, soon()).unwrap();
    control.send(&frame(br#"{"streams":[{"id":1,"bytes":100000}]}"#), soon()).unwrap();
    let results = control.receive_server_results(soon()).unwrap();
    assert_eq!((results.streams[0].id, results.bytes()), (1, 100_000));
    control.expect_state(State::DisplayResults, soon()).unwrap();
    control.send_state(State::IperfDone, soon()).unwrap();
}

fn frame(json: &[u8]) -> Vec<u8> {
    weaklink::iperf3::frame(json).unwrap()
}

/// What is sent after the server asked for the parameters, and the number of the fault that it answers with.
const PARAMETERS: &[(&str, &[u8], FaultCode)] = &[
    ("a length of 4 GiB", &[0xff, 0xff, 0xff, 0xff], FaultCode::RecvParams),
    ("a negative length", &[0x80, 0, 0, 0], FaultCode::RecvParams),
    ("one byte too many", &[0, 1, 0, 1], FaultCode::RecvParams),
    ("nothing", &[0, 0, 0, 0], FaultCode::RecvParams),
    ("no JSON", b"\0\0\0\x05hello", FaultCode::RecvParams),
    ("a list", b"\0\0\0\x02[]", FaultCode::RecvParams),
    ("129 streams", b"\0\0\0\x10{\"parallel\":129}", FaultCode::NumStreams),
    ("blocks of 2 MiB", b"\0\0\0\x0f{\"len\":2097152}", FaultCode::BlockSize),
    ("SCTP", b"\0\0\0\x0d{\"sctp\":true}", FaultCode::Protocol),
];

#[test]
fn parameters_that_cannot_be_are_refused_by_number() {
    let serving = Serving::start();
    for (seed, (name, bytes, code)) in (0u8..).zip(PARAMETERS) {
        let control = greeted(serving.address, seed);
        control.send(bytes, soon()).unwrap();
        let said = rest(&control);
        let expected = [&[State::ServerError.byte()][..], &Fault::of(*code).encode()].concat();
        assert_eq!(said, expected, "{name}");
    }
    good_client(serving.address, 99);
}

#[test]
fn deeply_nested_parameters_are_refused_and_the_largest_are_read() {
    let serving = Serving::start();
    let control = greeted(serving.address, 1);
    control.send(&frame(&vec![b'['; 60_000]), soon()).unwrap();
    assert_eq!(rest(&control)[..1], [State::ServerError.byte()]);
    let control = greeted(serving.address, 2);
    let title = "t".repeat(60_000);
    control.send(&frame(format!("{{\"tcp\":true,\"title\":\"{title}\"}}").as_bytes()), soon()).unwrap();
    control.expect_state(State::CreateStreams, soon()).unwrap();
}

#[test]
fn strangers_who_say_nothing_or_nonsense_keep_nobody_out() {
    let serving = Serving::start();
    // Silent ones, slow ones and such that speak another protocol, below the number that may stand at the door.
    let mut silent: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(serving.address).unwrap()).collect();
    for (at, stream) in silent.iter_mut().enumerate() {
        let words: &[u8] = [&b""[..], b"a", b"GET / HTTP/1.1\r\nHost: nas\r\nAccept: */*\r\n\r\n", &[0xff; 37]][at % 4];
        stream.write_all(words).unwrap();
    }
    good_client(serving.address, 3);
    // They are sent away by themselves.
    for stream in &mut silent {
        stream.set_read_timeout(Some(LONG)).unwrap();
        let gone = stream.read(&mut [0; 8]);
        assert!(matches!(gone, Ok(0)) || gone.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset));
    }
}

/// A control connection from another address of loopback, where this system has several.
fn connect_from(own: [u8; 4], address: SocketAddr) -> Option<Control> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).ok()?;
    socket.bind(&SocketAddr::from((own, 0)).into()).ok()?;
    socket.connect(&address.into()).ok()?;
    Control::new(socket.into(), Stop::new()).ok()
}

#[test]
fn clients_of_one_address_that_say_nothing_leave_places_to_others() {
    let serving = Serving::start();
    let silent: Vec<Control> = (0..4).map(|seed| greeted(serving.address, 100 + seed)).collect();
    let fifth = connect(serving.address);
    fifth.send_cookie(&cookie(104), soon()).unwrap();
    assert_eq!(fifth.receive_state(soon()).unwrap(), State::AccessDenied, "half of the places are not all");
    if let Some(other) = connect_from([127, 0, 0, 2], serving.address) {
        other.send_cookie(&cookie(105), soon()).unwrap();
        other.expect_state(State::ParamExchange, soon()).unwrap();
    }
    drop(silent);
    good_client(serving.address, 106);
}

#[test]
fn more_strangers_than_there_is_room_for_are_turned_away_and_room_comes_back() {
    let serving = Serving::start();
    let crowd: Vec<TcpStream> = (0..60).map(|_| TcpStream::connect(serving.address).unwrap()).collect();
    let mut turned_away = 0;
    for mut stream in crowd.iter().skip(32) {
        stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        turned_away += usize::from(stream.read(&mut [0; 1]).is_ok());
    }
    assert!(turned_away > 0, "somebody was turned away");
    drop(crowd);
    let begin = Instant::now();
    loop {
        let control = connect(serving.address);
        let served = control.send_cookie(&cookie(4), soon()).is_ok()
            && control.receive_state(soon()).is_ok_and(|state| state == State::ParamExchange);
        if served {
            break;
        }
        assert!(begin.elapsed() < LONG, "no room came back");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn states_at_the_wrong_moment_and_missing_streams_end_the_test() {
    let serving = Serving::start();
    for (name, byte) in [("a state of the server's", State::TestStart.byte()), ("no state", 77)] {
        let control = greeted(serving.address, byte);
        control.send_params(&Params::default(), soon()).unwrap();
        control.expect_state(State::CreateStreams, soon()).unwrap();
        control.send(&[byte], soon()).unwrap();
        let expected = [&[State::ServerError.byte()][..], &Fault::of(FaultCode::Message).encode()].concat();
        assert_eq!(rest(&control), expected, "{name}");
    }
    // It waits for two streams and gets one; then the client has enough.
    let control = greeted(serving.address, 50);
    control.send_params(&Params { parallel: 2, ..Params::default() }, soon()).unwrap();
    control.expect_state(State::CreateStreams, soon()).unwrap();
    let mut stream = TcpStream::connect(serving.address).unwrap();
    stream.write_all(cookie(50).bytes()).unwrap();
    control.send_state(State::ClientTerminate, soon()).unwrap();
    assert!(rest(&control).is_empty());
    good_client(serving.address, 51);
}

#[test]
fn streams_with_another_cookie_or_beyond_the_number_are_not_the_tests() {
    let serving = Serving::start();
    let control = greeted(serving.address, 60);
    control.send_params(&Params::default(), soon()).unwrap();
    control.expect_state(State::CreateStreams, soon()).unwrap();
    // A stranger's cookie makes it a client of its own.
    let other = greeted(serving.address, 61);
    let mut first = TcpStream::connect(serving.address).unwrap();
    first.write_all(cookie(60).bytes()).unwrap();
    control.expect_state(State::TestStart, soon()).unwrap();
    control.expect_state(State::TestRunning, soon()).unwrap();
    // One too many: it is closed, and its bytes count nowhere.
    let surplus = connect(serving.address);
    surplus.send_cookie(&cookie(60), soon()).unwrap();
    assert!(rest(&surplus).is_empty());
    first.write_all(&[1; 1000]).unwrap();
    control.send_state(State::TestEnd, soon()).unwrap();
    control.expect_state(State::ExchangeResults, soon()).unwrap();
    control.send(&frame(br#"{"streams":[{"id":1,"bytes":1000}]}"#), soon()).unwrap();
    assert_eq!(control.receive_server_results(soon()).unwrap().bytes(), 1000);
    drop(other);
}

#[test]
fn results_that_cannot_be_read_are_refused() {
    let serving = Serving::start();
    for (seed, json) in (70u8..).zip([&b"{"[..], b"[]", br#"{"streams":[{}]}"#]) {
        let control = greeted(serving.address, seed);
        control.send_params(&Params::default(), soon()).unwrap();
        control.expect_state(State::CreateStreams, soon()).unwrap();
        let stream = connect(serving.address);
        stream.send_cookie(&cookie(seed), soon()).unwrap();
        control.expect_state(State::TestStart, soon()).unwrap();
        control.expect_state(State::TestRunning, soon()).unwrap();
        control.send_state(State::TestEnd, soon()).unwrap();
        control.expect_state(State::ExchangeResults, soon()).unwrap();
        control.send(&frame(json), soon()).unwrap();
        let expected = [&[State::ServerError.byte()][..], &Fault::of(FaultCode::RecvResults).encode()].concat();
        assert_eq!(rest(&control), expected);
    }
    good_client(serving.address, 79);
}

#[test]
fn datagrams_that_nobody_waits_for_are_not_answered() {
    let serving = Serving::start();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(serving.address).unwrap();
    for datagram in [&b"9876"[..], b"", b"\x15\xcd\x5b\x07", &[0; 1400]] {
        socket.send(datagram).unwrap();
    }
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(socket.recv(&mut [0; 16]).is_err(), "no reflector for strangers");
}

#[test]
fn a_server_without_clients_ends_at_once() {
    let mut serving = Serving::start();
    let stranger = TcpStream::connect(serving.address).unwrap();
    serving.end();
    drop(stranger);
}
