//! A flow of datagrams beside a session's endpoint: how its client says who it is.

use std::io;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use super::endpoint::TICK;
use super::packet::{HEADER, Kind, Packet, Token};
use crate::sys::Stop;

/// Says hello on a connected socket; to be repeated until the other end has told that it came.
pub fn say_hello(socket: &UdpSocket, token: Token, sequence: u32) -> io::Result<()> {
    let hello = Packet { kind: Kind::Hello, token, sequence, size: 0 };
    socket.send(&hello.encode()).map(drop)
}

/// Waits on a bound socket for a hello with this token, and connects the socket to its sender; what others send is not heeded.
///
/// Errors: none came within `timeout` (`TimedOut`), `stop` was set (`Interrupted`), or the socket is gone.
pub fn await_hello(socket: &UdpSocket, token: Token, timeout: Duration, stop: &Stop) -> io::Result<()> {
    socket.set_read_timeout(Some(TICK))?;
    let deadline = Instant::now() + timeout;
    let mut buffer = [0; HEADER + 1];
    while !stop.is_set() {
        if let Ok((length, sender)) = socket.recv_from(&mut buffer) {
            let packet = buffer.get(..length).and_then(Packet::decode);
            if packet.is_some_and(|packet| packet.kind == Kind::Hello && packet.token == token) {
                return socket.connect(sender);
            }
        }
        if Instant::now() >= deadline {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "no hello of the client came"));
        }
    }
    Err(io::Error::new(io::ErrorKind::Interrupted, "stopped before the client came"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mtu::Listener;

    const TOKEN: Token = *b"sixteen letters!";
    const PATIENCE: Duration = Duration::from_secs(20);

    fn client(to: std::net::SocketAddr) -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(to).unwrap();
        socket
    }

    /// Sends a word each way over a flow.
    fn works(here: &UdpSocket, there: &UdpSocket) {
        for (from, to) in [(here, there), (there, here)] {
            to.set_read_timeout(Some(PATIENCE)).unwrap();
            from.send(b"word").unwrap();
            let mut buffer = [0; 64];
            loop {
                let length = to.recv(&mut buffer).unwrap();
                // A hello that was said twice may lie before it.
                if &buffer[..length] == b"word" {
                    break;
                }
            }
        }
    }

    #[test]
    fn a_flow_on_the_listeners_port_leaves_the_listener_its_own() {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let expected = listener.expect_socket(TOKEN);
        let here = client(listener.address());
        say_hello(&here, *b"another stranger", 0).unwrap();
        say_hello(&here, TOKEN, 1).unwrap();
        let there = expected.wait(PATIENCE, &Stop::new()).unwrap();
        assert_eq!(there.local_addr().unwrap(), listener.address());
        assert_eq!(there.peer_addr().unwrap(), here.local_addr().unwrap());
        works(&here, &there);
        // The next client is heard although a flow has the same port.
        let second = listener.expect_socket(*b"the second guest");
        let other = client(listener.address());
        say_hello(&other, *b"the second guest", 0).unwrap();
        let there_too = second.wait(PATIENCE, &Stop::new()).unwrap();
        works(&other, &there_too);
        works(&here, &there);
    }

    #[test]
    fn a_flow_on_a_port_of_its_own_is_for_who_knows_the_token() {
        let there = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (stranger, here) = (client(there.local_addr().unwrap()), client(there.local_addr().unwrap()));
        say_hello(&stranger, *b"another stranger", 0).unwrap();
        stranger.send(b"noise").unwrap();
        say_hello(&here, TOKEN, 0).unwrap();
        await_hello(&there, TOKEN, PATIENCE, &Stop::new()).unwrap();
        assert_eq!(there.peer_addr().unwrap(), here.local_addr().unwrap());
        works(&here, &there);
        let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
        let error = await_hello(&nobody, TOKEN, Duration::ZERO, &Stop::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
