//! The agent's UDP port: waits for the Hello of a session that is expected, and gives it a socket of its own.
//!
//! That socket is bound to the same port and to the address at which the Hello came in, and connected to the client:
//! the kernel gives it the client's datagrams and the ICMP errors about them. Whoever does not know a token gets no
//! answer, so the port neither amplifies nor tells that it is there.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6, UdpSocket};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

use super::endpoint::{Endpoint, TICK, canonical};
use super::packet::{HEADER, Kind, Packet, Token};
use crate::sys::Stop;
use crate::sys::udp;

/// A client that has come, with a socket of its own.
struct Guest {
    socket: UdpSocket,
    client: SocketAddr,
    /// The number of its Hello.
    sequence: u32,
}

/// What is done with a client that comes.
struct Door(Box<dyn FnOnce(io::Result<Guest>) + Send>);

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Door").finish_non_exhaustive()
    }
}

/// The clients that are expected.
#[derive(Debug, Default)]
struct Expectations(Mutex<HashMap<Token, Door>>);

impl Expectations {
    fn lock(&self) -> MutexGuard<'_, HashMap<Token, Door>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The agent's UDP port. Its thread ends when it is dropped; endpoints live on.
#[derive(Debug)]
pub struct Listener {
    expectations: Arc<Expectations>,
    address: SocketAddr,
    closing: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Listens at `addr`, usually the port of the agent's TCP listener; `[::]` serves IPv4 too where the system can.
    ///
    /// Fails when the address is not ours or taken by a socket that does not share it.
    pub fn bind(addr: SocketAddr) -> io::Result<Self> {
        let socket: UdpSocket = shared_socket(addr)?.into();
        socket.set_read_timeout(Some(TICK))?;
        // Where it is not told, the route back to the client decides.
        let _ = udp::report_destination(&socket);
        let address = socket.local_addr()?;
        let expectations = Arc::new(Expectations::default());
        let closing = Stop::new();
        let thread = std::thread::Builder::new().name("mtu-listener".into()).spawn({
            let (expectations, closing) = (Arc::clone(&expectations), closing.clone());
            move || listen(&socket, address, &expectations, &closing)
        })?;
        Ok(Self { expectations, address, closing, thread: Some(thread) })
    }

    /// The address and port at which it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets the client in that knows `token`, once, as long as the result lives.
    pub fn expect(&self, token: Token) -> Expected {
        let port = self.address.port();
        self.admit(token, move |guest| {
            let guest = guest?;
            let endpoint = Endpoint::start(guest.socket, guest.client, port, token)?;
            endpoint.greet(guest.sequence);
            Ok(endpoint)
        })
    }

    /// The same for a plain socket on the same port, connected to the client; it is not answered here.
    pub fn expect_socket(&self, token: Token) -> Expected<UdpSocket> {
        self.admit(token, |guest| guest.map(|guest| guest.socket))
    }

    fn admit<T: Send + 'static>(
        &self,
        token: Token,
        make: impl FnOnce(io::Result<Guest>) -> io::Result<T> + Send + 'static,
    ) -> Expected<T> {
        let (sender, arrivals) = channel();
        // Who expected it may have gone meanwhile; then what was made ends here.
        let door = Door(Box::new(move |guest| drop(sender.send(make(guest)))));
        self.expectations.lock().insert(token, door);
        Expected { token, arrivals, expectations: Arc::clone(&self.expectations) }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.closing.set();
        if let Some(thread) = self.thread.take() {
            // A panic over there was reported over there.
            let _ = thread.join();
        }
    }
}

/// A session that is expected by a [`Listener`].
#[derive(Debug)]
pub struct Expected<T = Endpoint> {
    token: Token,
    arrivals: Receiver<io::Result<T>>,
    expectations: Arc<Expectations>,
}

impl<T> Expected<T> {
    /// Waits for the client's Hello.
    ///
    /// Errors: none came within `timeout` (`TimedOut`), `stop` was set (`Interrupted`), the listener was dropped
    /// (`NotConnected`), or no socket could be made for the session.
    pub fn wait(&self, timeout: Duration, stop: &Stop) -> io::Result<T> {
        let deadline = Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.arrivals.recv_timeout(left.min(TICK)) {
                Ok(result) => return result,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::new(io::ErrorKind::NotConnected, "the UDP port was closed"));
                }
                Err(RecvTimeoutError::Timeout) if stop.is_set() => {
                    return Err(io::Error::new(io::ErrorKind::Interrupted, "stopped before the client came by UDP"));
                }
                Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    let text = "the client did not come by UDP: a firewall blocks the port, or it gave up";
                    return Err(io::Error::new(io::ErrorKind::TimedOut, text));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

impl<T> Drop for Expected<T> {
    fn drop(&mut self) {
        self.expectations.lock().remove(&self.token);
    }
}

/// A socket at `addr` that shares its port with others of ours.
fn shared_socket(addr: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(true)?;
    if addr.is_ipv6() {
        socket.set_only_v6(!addr.ip().is_unspecified())?;
    }
    socket.bind(&addr.into())?;
    Ok(socket)
}

/// The listener's thread.
fn listen(socket: &UdpSocket, address: SocketAddr, expectations: &Expectations, closing: &Stop) {
    // Longer datagrams are not for the listener; what does not fit is cut, and a Hello never is.
    let mut buffer = [0; HEADER + 1];
    while !closing.is_set() {
        let (length, client, destination) = match udp::receive(socket, &mut buffer) {
            Ok(received) => received,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => continue,
            Err(_) => {
                // An error of an earlier datagram; the pause is for a socket that has nothing else.
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
        };
        let packet = buffer.get(..length).and_then(Packet::decode).filter(|packet| packet.kind == Kind::Hello);
        let Some(packet) = packet else { continue };
        let Some(Door(open)) = expectations.lock().remove(&packet.token) else { continue };
        let client = canonical(client);
        open(accept(address, client, destination).map(|socket| Guest { socket, client, sequence: packet.sequence }));
    }
    // Whoever still waits learns that nobody will come.
    expectations.lock().clear();
}

/// A client's own socket on the listener's port.
fn accept(listener: SocketAddr, client: SocketAddr, destination: Option<IpAddr>) -> io::Result<UdpSocket> {
    let ip = match destination {
        Some(ip) => ip.to_canonical(),
        None if listener.ip().is_unspecified() => towards(client)?,
        None => listener.ip().to_canonical(),
    };
    let local = match (ip, client) {
        // A link-local address has a meaning only together with its interface.
        (IpAddr::V6(ip), SocketAddr::V6(client)) => SocketAddrV6::new(ip, listener.port(), 0, client.scope_id()).into(),
        (ip, _) => SocketAddr::new(ip, listener.port()),
    };
    let named = |error: io::Error| io::Error::new(error.kind(), format!("a UDP socket at {local} for {client}: {error}"));
    let socket = shared_socket(local).map_err(named)?;
    socket.connect(&client.into()).map_err(named)?;
    Ok(socket.into())
}

/// The own address on the route to `client`.
fn towards(client: SocketAddr) -> io::Result<IpAddr> {
    let any: IpAddr = if client.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    socket.connect(client)?;
    Ok(socket.local_addr()?.ip())
}
