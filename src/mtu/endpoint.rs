//! One end of a session's path: a connected UDP socket, and one thread that tells its datagrams apart.
//!
//! The thread answers what the other end sends and puts the answers to our own datagrams into an inbox, from which
//! the measurements take them.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::packet::{Family, HEADER, Kind, Packet, Token};
use crate::sys::Stop;
use crate::sys::udp::{self, SocketReport, TooLarge, TooLargeBy};

/// How long a thread waits for a datagram before it looks whether it shall end.
pub(super) const TICK: Duration = Duration::from_millis(50);

/// Room for the largest datagram.
pub(super) const BUFFER: usize = 65_600;

/// The most answers that wait to be taken; more than one search or a second of echoes leaves behind.
const MOST_WAITING: usize = 1024;

/// How often a Hello is repeated.
const HELLO_INTERVAL: Duration = Duration::from_millis(50);

/// How often sending is tried while the kernel reports an error that belongs to an earlier datagram.
const SEND_ATTEMPTS: u32 = 4;

/// The buffer that the socket asks for: a burst of all common sizes takes 80 kB, and twice that as the kernel counts.
const SOCKET_BUFFER: usize = 1 << 20;

/// What became of a datagram that was to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sending {
    /// It left, or was dropped as on any network.
    Gone,
    /// The own interface is too small for it; the MTU in bytes if the kernel named it.
    TooLarge(Option<u32>),
}

/// What a router said about a probe: its number on the wire if known, the router, and the MTU that it named.
pub(super) type Refusal = (Option<u32>, std::net::IpAddr, u32);

/// A probe whose TTL was used up: its number on the wire if known, the router, and when the word came.
pub(super) type Expiry = (Option<u32>, std::net::IpAddr, Instant);

/// Answers that wait to be taken.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    /// Number and size of probes that arrived over there.
    pub(super) acks: VecDeque<(u32, u32, Instant)>,
    /// Numbers of echoes that came back.
    pub(super) echoes: VecDeque<(u32, Instant)>,
    /// What routers said.
    pub(super) refusals: VecDeque<Refusal>,
    /// Where probes of limited TTL ended.
    pub(super) expiries: VecDeque<Expiry>,
    /// What the own interface carries, if the kernel said so.
    local_mtu: Option<u32>,
    greeted: bool,
}

fn push<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.len() >= MOST_WAITING {
        queue.pop_front();
    }
    queue.push_back(item);
}

/// What the thread and the measurements share.
#[derive(Debug)]
pub(super) struct Shared {
    socket: UdpSocket,
    token: Token,
    pub(super) family: Family,
    pub(super) peer: SocketAddr,
    /// The port that both ends agreed on, for messages.
    pub(super) port: u16,
    /// Why sizes are not exact, if the system cannot forbid fragments.
    pub(super) inexact: Option<String>,
    closing: Stop,
    sequence: AtomicU32,
    inbox: Mutex<Inbox>,
    news: Condvar,
    /// Held while a datagram is sent: one of limited TTL may change the socket's own for that moment.
    sending: Mutex<()>,
}

impl Shared {
    pub(super) fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something new lies in the inbox, or the time is over, or for a tick.
    pub(super) fn wait(&self, until: Instant, has_news: impl Fn(&Inbox) -> bool) {
        let inbox = self.inbox();
        let time = until.saturating_duration_since(Instant::now()).min(TICK);
        // The inbox is read again by whoever waits, so what woke it up does not matter.
        drop(self.news.wait_timeout_while(inbox, time, |inbox| !has_news(inbox)));
    }

    /// Takes `count` numbers that no other datagram of this end has; returns the first.
    pub(super) fn numbers(&self, count: u32) -> u32 {
        self.sequence.fetch_add(count, Ordering::Relaxed)
    }

    pub(super) fn packet(&self, kind: Kind, sequence: u32, size: u32) -> Packet {
        Packet { kind, token: self.token, sequence, size }
    }

    /// Sends a datagram of `size` bytes, headers included.
    pub(super) fn send(&self, bytes: &[u8], size: u32) -> Sending {
        self.send_by(size, || self.socket.send(bytes))
    }

    /// Sends a datagram of `size` bytes, headers included, that ends after `ttl` hops.
    pub(super) fn send_with_ttl(&self, bytes: &[u8], size: u32, ttl: u8) -> Sending {
        self.send_by(size, || udp::send_with_ttl(&self.socket, bytes, ttl))
    }

    fn send_by(&self, size: u32, send: impl Fn() -> io::Result<usize>) -> Sending {
        let mut too_large = false;
        for _ in 0..SEND_ATTEMPTS {
            let turn = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
            let result = send();
            drop(turn);
            match result {
                Ok(_) => return Sending::Gone,
                // Sending it again would only fill the queue once more.
                Err(error) if udp::is_queue_full(&error) => return Sending::Gone,
                Err(error) => too_large = udp::is_too_large(&error),
            }
            // The error may belong to an earlier datagram that a router refused: only the report tells.
            self.take_reports();
            let named = self.inbox().local_mtu.filter(|mtu| *mtu < size);
            if too_large && named.is_some() {
                return Sending::TooLarge(named);
            }
        }
        if too_large { Sending::TooLarge(udp::route_mtu(&self.socket).ok()) } else { Sending::Gone }
    }

    fn send_small(&self, packet: &Packet) {
        self.send(&packet.encode(), HEADER as u32 + self.family.headers());
    }

    /// Forgets what the kernel said about the interface, which may have been changed since.
    pub(super) fn forget_interface(&self) {
        self.inbox().local_mtu = None;
    }

    /// Takes what the kernel kept for the socket.
    pub(super) fn take_reports(&self) {
        // Held while reading, so that nobody sees the queue empty before the inbox has its content.
        let mut inbox = self.inbox();
        for _ in 0..MOST_WAITING {
            let Ok(Some(report)) = udp::next_report(&self.socket) else { break };
            // A router may quote too little to tell; then the report is about this socket at least.
            let ours = |quoted: Option<Packet>| quoted.is_none_or(|p| p.token == self.token && p.kind == Kind::Probe);
            match report {
                SocketReport::TooLarge(TooLarge { by: TooLargeBy::Host, mtu, .. }) => inbox.local_mtu = Some(mtu),
                SocketReport::TooLarge(TooLarge { by: TooLargeBy::Router(router), mtu, quoted }) => {
                    let quoted = Packet::decode(&quoted);
                    if ours(quoted) {
                        push(&mut inbox.refusals, (quoted.map(|packet| packet.sequence), router, mtu));
                    }
                }
                SocketReport::TimeExceeded { router, quoted } => {
                    let quoted = Packet::decode(&quoted);
                    if ours(quoted) {
                        push(&mut inbox.expiries, (quoted.map(|packet| packet.sequence), router, Instant::now()));
                    }
                }
                SocketReport::Other => {}
            }
        }
        drop(inbox);
        self.news.notify_all();
    }

    /// Answers a datagram, or keeps what it answers.
    fn handle(&self, bytes: &[u8]) {
        let now = Instant::now();
        let Some(packet) = Packet::decode(bytes).filter(|packet| packet.token == self.token) else { return };
        let Packet { sequence, size, .. } = packet;
        match packet.kind {
            Kind::Hello => return self.send_small(&self.packet(Kind::HelloAck, sequence, 0)),
            Kind::Echo => return self.send_small(&self.packet(Kind::EchoReply, sequence, 0)),
            Kind::Probe => {
                // A probe that was cut on its way did not pass.
                if u64::from(size) == bytes.len() as u64 + u64::from(self.family.headers()) {
                    self.send_small(&self.packet(Kind::Ack, sequence, size));
                }
                return;
            }
            Kind::HelloAck => self.inbox().greeted = true,
            Kind::Ack => push(&mut self.inbox().acks, (sequence, size, now)),
            Kind::EchoReply => push(&mut self.inbox().echoes, (sequence, now)),
        }
        self.news.notify_all();
    }

    /// The thread: ends only when it is asked to, whatever the network reports.
    fn receive(&self) {
        let mut buffer = vec![0; BUFFER];
        let mut errors_in_a_row = 0;
        while !self.closing.is_set() {
            match self.socket.recv(&mut buffer) {
                Ok(length) => {
                    errors_in_a_row = 0;
                    self.handle(buffer.get(..length).unwrap_or(&[]));
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                Err(_) => {
                    self.take_reports();
                    errors_in_a_row += 1;
                    // One error a datagram is ordinary; a socket that only fails shall not take a core.
                    if errors_in_a_row > 16 {
                        std::thread::sleep(TICK / 2);
                    }
                }
            }
        }
    }
}

/// One end of a session's path. Its thread answers the other end until it is dropped.
#[derive(Debug)]
pub struct Endpoint {
    pub(super) shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// One search at a time, and one series of echoes: each empties its part of the inbox.
    pub(super) search_turn: Mutex<()>,
    pub(super) echo_turn: Mutex<()>,
}

impl Endpoint {
    /// Connects to the agent's listener at `peer`, which expects `token`.
    ///
    /// Says Hello again and again until it is answered. Errors: no answer within `timeout` (`TimedOut`), `stop` was set
    /// (`Interrupted`), or no socket.
    pub fn connect(peer: SocketAddr, token: Token, timeout: Duration, stop: &Stop) -> io::Result<Self> {
        Self::connect_from(None, peer, token, timeout, stop)
    }

    /// The same from an address of this end; none leaves that to the route.
    ///
    /// # Errors
    /// As [`Self::connect`], and an address that is not ours.
    pub fn connect_from(own: Option<IpAddr>, peer: SocketAddr, token: Token, timeout: Duration, stop: &Stop) -> io::Result<Self> {
        let deadline = Instant::now() + timeout;
        let peer = canonical(peer);
        let any = if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind(SocketAddr::new(own.unwrap_or(any), 0))?;
        socket.connect(peer)?;
        let endpoint = Self::start(socket, peer, peer.port(), token)?;
        let shared = &endpoint.shared;
        while !shared.inbox().greeted {
            if stop.is_set() {
                return Err(io::Error::new(io::ErrorKind::Interrupted, "stopped before the agent answered by UDP"));
            }
            if Instant::now() >= deadline {
                let port = peer.port();
                let text = format!("no answer by UDP from {peer}: port {port} is blocked by a firewall, or no agent listens");
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            shared.send_small(&shared.packet(Kind::Hello, shared.numbers(1), 0));
            shared.wait((Instant::now() + HELLO_INTERVAL).min(deadline), |inbox| inbox.greeted);
        }
        Ok(endpoint)
    }

    /// An endpoint on a socket that is connected to `peer`.
    pub(super) fn start(socket: UdpSocket, peer: SocketAddr, port: u16, token: Token) -> io::Result<Self> {
        socket.set_read_timeout(Some(TICK))?;
        socket.set_write_timeout(Some(TICK))?;
        let options = SockRef::from(&socket);
        // Less room only means more loss in a burst, and a system without reports only tells less.
        let _ = options.set_recv_buffer_size(SOCKET_BUFFER);
        let _ = options.set_send_buffer_size(SOCKET_BUFFER);
        let _ = udp::keep_reports(&socket);
        let inexact = udp::forbid_fragments(&socket).err().map(|error| error.to_string());
        let shared = Arc::new(Shared {
            socket,
            token,
            family: Family::of(peer.ip()),
            peer,
            port,
            inexact,
            closing: Stop::new(),
            sequence: AtomicU32::new(0),
            inbox: Mutex::default(),
            news: Condvar::new(),
            sending: Mutex::new(()),
        });
        let receiver = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("mtu-endpoint".into()).spawn(move || receiver.receive())?;
        Ok(Self { shared, thread: Some(thread), search_turn: Mutex::new(()), echo_turn: Mutex::new(()) })
    }

    /// The other end's address and port.
    pub fn peer(&self) -> SocketAddr {
        self.shared.peer
    }

    /// The own address and port. Fails if the socket is gone.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.shared.socket.local_addr()
    }

    /// Answers a Hello that the listener took.
    pub(super) fn greet(&self, sequence: u32) {
        self.shared.send_small(&self.shared.packet(Kind::HelloAck, sequence, 0));
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.shared.closing.set();
        if let Some(thread) = self.thread.take() {
            // A panic over there was reported over there.
            let _ = thread.join();
        }
    }
}

/// The same address, an IPv4 one that is mapped into IPv6 as what it is.
pub(super) fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) if v6.ip().to_ipv4_mapped().is_some() => SocketAddr::new(address.ip().to_canonical(), address.port()),
        other => other,
    }
}
