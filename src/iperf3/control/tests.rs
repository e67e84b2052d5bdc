//! The control connection over loopback.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

fn pair() -> (Control, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (stream, _) = listener.accept().unwrap();
    (Control::new(stream, Stop::new()).unwrap(), other)
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

#[test]
fn states_messages_and_faults_arrive_as_they_were_sent() {
    let (here, there) = pair();
    let there = Control::new(there, Stop::new()).unwrap();
    assert!(matches!(here.poll_state(Duration::from_millis(1)), Ok(None)));
    there.send_state(State::ParamExchange, soon()).unwrap();
    here.expect_state(State::ParamExchange, soon()).unwrap();
    there.send_state(State::TestEnd, soon()).unwrap();
    assert!(matches!(here.expect_state(State::IperfDone, soon()), Err(ControlError::UnexpectedState(State::TestEnd))));

    let params = Params { parallel: 3, ..Params::default() };
    there.send_params(&params, soon()).unwrap();
    assert_eq!(here.receive_params(soon()).unwrap(), params);
    there.send_results(&Results::default(), soon()).unwrap();
    assert_eq!(here.receive_server_results(soon()).unwrap(), Results::default());

    there.send_fault(Fault { iperf: 18, system: 0 }, soon()).unwrap();
    let error = here.receive_state(soon()).unwrap_err();
    assert_eq!(error.to_string(), "the server cannot do the test: it has no SCTP");
    drop(there);
    assert!(matches!(here.poll_state(Duration::from_secs(1)), Err(ControlError::Closed)));
}

#[test]
fn lengths_that_lie_cost_neither_memory_nor_time() {
    for (name, bytes, most) in [
        ("larger than any", vec![0xff, 0xff, 0xff, 0xff], "too large"),
        ("negative", vec![0x80, 0, 0, 0], "too large"),
        ("one above the cap", vec![0, 1, 0, 1], "too large"),
        ("nothing", vec![0, 0, 0, 0], "no JSON"),
        ("a NUL at the end", [&[0, 0, 0, 3][..], b"{}\0"].concat(), "read"),
    ] {
        let (here, mut there) = pair();
        there.write_all(&bytes).unwrap();
        let result = match here.receive_params(soon()) {
            Ok(_) => "read",
            Err(ControlError::TooLarge { .. }) => "too large",
            Err(ControlError::Params(ParamsError::NotJson)) => "no JSON",
            Err(error) => panic!("{name}: {error}"),
        };
        assert_eq!(result, most, "{name}");
    }
}

#[test]
fn a_message_that_never_ends_ends_at_the_deadline_and_at_the_word_to_stop() {
    let (here, mut there) = pair();
    there.write_all(&[0, 0, 0x10, 0, b'{']).unwrap();
    let begin = Instant::now();
    let error = here.receive_params(begin + Duration::from_millis(150)).unwrap_err();
    assert_eq!(error.to_string(), "the other end sent 5 of 4100 bytes of a message and then nothing more");
    assert!(begin.elapsed() < Duration::from_secs(5));
    here.stop.set();
    assert!(matches!(here.receive_state(soon()), Err(ControlError::Stopped)));
}

#[test]
fn a_word_that_was_begun_is_told_and_silence_is_silence() {
    for (bytes, words) in [
        (&[][..], "the other end did not answer in time"),
        (&[0xfe, 0, 0][..], "the other end sent 3 of 9 bytes of an error and then nothing more"),
    ] {
        let (here, mut there) = pair();
        there.write_all(bytes).unwrap();
        let error = here.receive_state(Instant::now() + Duration::from_millis(150)).unwrap_err();
        assert_eq!(error.to_string(), words);
    }
    let (here, mut there) = pair();
    there.write_all(&[0, 0]).unwrap();
    let error = here.receive_server_results(Instant::now() + Duration::from_millis(150)).unwrap_err();
    assert_eq!(error.to_string(), "the other end sent 2 of 4 bytes of a message's length and then nothing more");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_bytes_come_to_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let (here, mut there) = pair();
        there.write_all(&bytes).unwrap();
        drop(there);
        let _ = here.receive_state(soon());
        let _ = here.receive_client_results(soon());
        let _ = here.poll_state(Duration::from_millis(1));
    }
}
