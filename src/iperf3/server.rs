//! A server that any iperf3 client can use, several at once.
//!
//! | part | what it does |
//! |---|---|
//! | here | listens, finds out what a new connection is for, bounded in number and time |
//! | `house` | who is here: the tests by their cookies, and what they wait for |
//! | `test` | one test from its parameters to the goodbye |
//! | `streams` | gathers a test's data connections, in the order of their opening |
//! | `datagrams` | the one UDP port of all tests: a connected socket for each stream |
//! | `account` | from what was counted to the results on the wire and in words |
//! | `event` | what the owner is told |
//!
//! One port for TCP and one for UDP of the same number. iperf3 itself serves one client at a time; here the cookie tells the tests
//! apart, and up to [`MOST_TESTS`] run side by side. For UDP, which carries no cookie, a datagram that opens a stream belongs to
//! the test that waits for streams from its address, and only one test of an address waits at a time.
//!
//! **What is measured.** Bytes of TCP are left in the kernel where it can (`MSG_TRUNC`), for every client: a byte is counted when
//! TCP has delivered it in order, exactly as with `read`, so the figure is the network's and costs the least. What is
//! sent comes from the kernel's memory (`sendfile`). Neither end's figure can tell; the processor time can, and the results on the wire name this
//! process's own.

mod account;
mod datagrams;
mod event;
mod house;
mod streams;
mod test;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

use super::control::Control;
use super::state::{Cookie, State};
use crate::sys::Stop;
pub use event::{Iperf3Event, Moved, Served};
use house::{Admission, House};

/// iperf3's port.
pub const PORT: u16 = 5201;

/// Tests at the same moment; who comes beyond it is told that the server is busy.
pub const MOST_TESTS: usize = 8;

/// Those of one address that have not opened all their streams yet: who says its cookie and then nothing must not hold every place.
const MOST_BEGINNING: usize = MOST_TESTS / 2;

/// How long a client waits for one of those before it is told that the server is busy: a beginning takes some round trips.
const CROWDED: Duration = Duration::from_secs(2);

/// The time for a connection to send its cookie.
const GREETING: Duration = Duration::from_secs(5);

/// How often the word to stop is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// How long running tests are given to say goodbye when the server ends.
const GOODBYE: Duration = Duration::from_secs(3);

/// The stack of a thread that greets and serves: it holds no buffers.
const STACK: usize = 256 << 10;

/// A silent client is gone after 10 s + 3 × 5 s: a control connection is idle while a test runs, so nobody else would notice.
const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(5));

/// A server that listens.
#[derive(Debug)]
pub struct Iperf3Server {
    listener: TcpListener,
    udp: Result<UdpSocket, String>,
    address: SocketAddr,
}

impl Iperf3Server {
    /// Listens on a port of TCP and UDP; `[::]` means IPv4 too, and `0.0.0.0` where the system has no IPv6. Port 0 is any free one.
    ///
    /// Without UDP (another program has the port) TCP is served all the same, and the owner is told.
    ///
    /// # Errors
    /// When TCP cannot be listened on; the message names the address.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let (listener, address) = match listen(address) {
            Err(error) if address.ip() == Ipv6Addr::UNSPECIFIED && error.kind() != io::ErrorKind::AddrInUse => {
                let v4 = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), address.port());
                (listen(v4), v4)
            }
            result => (result, address),
        };
        let explain =
            |error: io::Error| io::Error::new(error.kind(), format!("failed to listen for iperf3 on {address}: {error}"));
        let listener = listener.map_err(explain)?;
        let address = listener.local_addr().map_err(explain)?;
        let udp = datagrams::listen(address).map_err(|error| format!("cannot listen on UDP {address}: {error}"));
        Ok(Self { listener, udp, address })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is set; running tests then get iperf3's word that the server ends.
    ///
    /// `tell` is called from many threads, and should not take long.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn serve(self, stop: &Stop, tell: impl Fn(Iperf3Event) + Send + Sync + 'static) -> io::Result<()> {
        let house = Arc::new(House::new(self.address.port(), self.udp.as_ref().err().cloned(), tell));
        house.tell(Iperf3Event::Listening(self.address));
        if let Err(reason) = &self.udp {
            house.tell(Iperf3Event::Note(format!("{reason}; iperf3 clients that ask for UDP will be refused")));
        }
        let mut threads = Vec::new();
        let of_tcp = Arc::clone(&house);
        let listener = self.listener;
        threads.push(start("iperf3 accept", move || accept(&listener, &of_tcp))?);
        if let Ok(socket) = self.udp {
            let of_udp = Arc::clone(&house);
            let started = start("iperf3 udp", move || datagrams::dispatch(&socket, &of_udp));
            threads.push(started.inspect_err(|_| wake(&house, self.address))?);
        }
        while !stop.is_set() && threads.iter().all(|thread| !thread.is_finished()) {
            thread::sleep(LOOK);
        }
        wake(&house, self.address);
        for thread in threads {
            let _ = thread.join();
        }
        let begin = Instant::now();
        while !house.is_empty() && begin.elapsed() < GOODBYE {
            thread::sleep(LOOK);
        }
        Ok(())
    }
}

/// Ends the loops: the one that accepts waits without a limit, so it gets one more connection.
fn wake(house: &House, address: SocketAddr) {
    house.stop().set();
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
    };
    let own = match address {
        SocketAddr::V6(v6) => SocketAddr::new(ip, v6.port()),
        SocketAddr::V4(v4) => SocketAddr::new(ip, v4.port()),
    };
    let _ = TcpStream::connect_timeout(&own, Duration::from_secs(1));
}

fn start(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).stack_size(STACK).spawn(run)
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    if cfg!(unix) {
        socket.set_reuse_address(true)?;
    }
    socket.bind(&address.into())?;
    // All streams of a client may knock at the same moment.
    socket.listen(256)?;
    Ok(socket.into())
}

/// An address as people write it: an IPv4 peer of a socket for both families is an IPv4 peer.
fn plain(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(IpAddr::V4(ip), address.port()),
        IpAddr::V6(_) => address,
    }
}

/// Accepts until the end; each connection gets a thread, as long as there are not too many that have not said who they are.
fn accept(listener: &TcpListener, house: &Arc<House>) {
    let (mut number, mut told) = (0, false);
    loop {
        let accepted = listener.accept();
        if house.stop().is_set() {
            return;
        }
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file descriptors or memory, or the peer is gone already: wait instead of spinning, and say so once.
                if !std::mem::replace(&mut told, true) {
                    house.tell(Iperf3Event::Note(crate::sys::not_taken(&error)));
                }
                thread::sleep(LOOK);
                continue;
            }
        };
        number += 1;
        let (number, peer) = (number, plain(peer));
        let Some(guest) = house.admit(peer.ip()) else {
            turn_away(&stream);
            continue;
        };
        let of_thread = Arc::clone(house);
        // Without a thread the connection is closed, which its other end sees.
        let _ = start("iperf3 test", move || {
            let met = meet(&of_thread, stream, peer, number);
            drop(guest);
            if let Some((control, place)) = met {
                test::run(&of_thread, &control, peer, &place);
            }
        });
    }
}

/// Says that the server is busy without waiting for anything.
fn turn_away(stream: &TcpStream) {
    if stream.set_nonblocking(true).is_ok() {
        let _ = io::Write::write(&mut &*stream, &[State::AccessDenied.byte()]);
    }
}

/// Finds out what a new connection is for; a data connection goes to its test, a client with a new cookie becomes one.
fn meet(house: &Arc<House>, stream: TcpStream, peer: SocketAddr, number: u64) -> Option<(Control, house::Place)> {
    let control = Control::new(stream, house.stop().clone()).ok()?;
    let deadline = Instant::now() + GREETING;
    let mut bytes = [0; Cookie::LEN];
    control.receive(&mut bytes, deadline).ok()?;
    let cookie = Cookie::decode(bytes)?;
    let mut admission = house.enter(cookie, peer.ip());
    let crowded = Instant::now() + CROWDED;
    while matches!(admission, Admission::Crowded) && Instant::now() < crowded && !house.stop().is_set() {
        thread::sleep(LOOK);
        admission = house.enter(cookie, peer.ip());
    }
    match admission {
        Admission::Stream(sender) => {
            let stream = control.into_stream();
            // More than the test waits for: closed here.
            let _ = sender.try_send((number, stream));
            None
        }
        Admission::Client(place) => {
            let (idle, interval) = KEEPALIVE;
            let keepalive = TcpKeepalive::new().with_time(idle).with_interval(interval);
            let _ = SockRef::from(control.stream()).set_tcp_keepalive(&keepalive);
            Some((control, place))
        }
        Admission::Busy | Admission::Crowded => {
            let reason = match admission {
                Admission::Crowded => format!("{MOST_BEGINNING} clients of its address have begun a test and not gone on"),
                _ => format!("{MOST_TESTS} tests are running"),
            };
            house.tell(Iperf3Event::Rejected { peer, reason });
            let _ = control.send_state(State::AccessDenied, deadline);
            test::hang_up(&control);
            None
        }
        Admission::Surplus => None,
    }
}
