//! Gathers a test's data connections, in the order in which the client opened them.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::house::{Place, UdpArrival};
use super::test::{Broken, watch};
use crate::iperf3::control::Control;
use crate::iperf3::fault::FaultCode;
use crate::iperf3::params::{Flow, Params, Protocol};
use crate::iperf3::socket::{self, Ask};
use crate::iperf3::state::State;
use crate::iperf3::stream::{DataSocket, Way};
use crate::iperf3::udp;
use crate::sys;

/// The longest from one stream to the next: a client opens them one after the other, each in one or two round trips.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often the control connection is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(20);

/// Asks the client for its streams and takes them all.
pub(super) fn gather(
    control: &Control,
    place: &Place,
    peer: SocketAddr,
    params: &Params,
    ask: &Ask,
) -> Result<Vec<(DataSocket, Way)>, Broken> {
    let sockets = match params.protocol {
        Protocol::Tcp => tcp(control, place, params, ask),
        Protocol::Udp => udp_streams(control, place, peer, params, ask),
    };
    place.want_none();
    Ok(sockets?.into_iter().zip(0..).map(|(socket, at)| (socket, way(params, at))).collect())
}

/// What this end does on the stream that was opened as number `at`, from 0 on.
fn way(params: &Params, at: u32) -> Way {
    match params.flow {
        Flow::ToServer => Way::Receive,
        Flow::Both if at < params.parallel => Way::Receive,
        Flow::ToClient | Flow::Both => Way::Send,
    }
}

fn tcp(control: &Control, place: &Place, params: &Params, ask: &Ask) -> Result<Vec<DataSocket>, Broken> {
    let count = params.streams() as usize;
    let arrivals = place.want_tcp(count);
    control.send_state(State::CreateStreams, Instant::now() + PATIENCE)?;
    let mut streams = take(control, &arrivals, count, |_| ())?;
    // Each had a thread that read its cookie, and threads overtake each other.
    streams.sort_by_key(|(number, _)| *number);
    let ready = streams.into_iter().map(|(_, stream)| {
        // A refused wish is no failure: the test runs with an ordinary socket, as the client's end does.
        let _ = ask.apply_tcp(&SockRef::from(&stream));
        socket::pace(&stream, ask);
        DataSocket::Tcp(stream)
    });
    Ok(ready.collect())
}

fn udp_streams(
    control: &Control,
    place: &Place,
    peer: SocketAddr,
    params: &Params,
    ask: &Ask,
) -> Result<Vec<DataSocket>, Broken> {
    let count = params.streams() as usize;
    let local = control.stream().local_addr()?;
    let begin = Instant::now();
    let arrivals = loop {
        if let Some(arrivals) = place.want_udp(count, peer.ip(), local, ask) {
            break arrivals;
        }
        watch(control, LOOK)?;
        if begin.elapsed() > PATIENCE {
            return Err(Broken::fault("another UDP test from its address does not get ahead", FaultCode::StreamListen));
        }
    };
    control.send_state(State::CreateStreams, Instant::now() + PATIENCE)?;
    let streams = take(control, &arrivals, count, answer_again)?;
    if params.dont_fragment {
        for (socket, _) in &streams {
            // The client's end does the same and fails where it cannot; here the client's word is what matters.
            let _ = sys::udp::forbid_fragments(socket);
        }
    }
    Ok(streams.into_iter().map(|(socket, _)| DataSocket::Udp(socket)).collect())
}

/// A client whose answer was lost asks again.
fn answer_again(streams: &[UdpArrival]) {
    let mut buffer = [0; 5];
    for (socket, answer) in streams {
        if socket.set_nonblocking(true).is_err() {
            continue;
        }
        if socket.recv(&mut buffer).is_ok_and(|length| buffer.get(..length).and_then(udp::reply_to).is_some()) {
            let _ = socket.send(answer);
        }
        let _ = socket.set_nonblocking(false);
    }
}

/// Takes `count` arrivals; `meanwhile` is called now and then with those that are here.
fn take<T>(control: &Control, arrivals: &Receiver<T>, count: usize, meanwhile: impl Fn(&[T])) -> Result<Vec<T>, Broken> {
    let (mut here, mut last) = (Vec::with_capacity(count), Instant::now());
    while here.len() < count {
        match arrivals.recv_timeout(LOOK) {
            Ok(arrival) => {
                here.push(arrival);
                last = Instant::now();
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) if last.elapsed() > PATIENCE => {
                let reason = format!("it opened {} of {count} streams", here.len());
                return Err(Broken::fault(reason, FaultCode::StreamAccept));
            }
            Err(_) => {
                meanwhile(&here);
                watch(control, Duration::ZERO)?;
            }
        }
    }
    Ok(here)
}
