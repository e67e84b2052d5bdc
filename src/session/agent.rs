//! The end that serves: listens, lets one client in at a time, does its share of each step.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use crate::mtu;
use crate::session::channel::{Channel, HandshakeError, welcome};
use crate::session::dial::plain_socket;
use crate::session::error::SessionError;
use crate::session::event::AgentEvent;
use crate::session::steps;
use crate::sys::{Scratch, Stop};
use crate::wire::hello::{HELLO_LEN, Hello, Kind, PROTOCOL};
use crate::wire::{PairingCode, Reply, Request, Token};

/// Connections that have not yet said who they are; more are turned away so that strangers cannot use up the memory.
const STRANGERS: usize = 32;

/// The time for a connection to say who it is.
const GREETING: Duration = Duration::from_secs(5);

/// How an agent is to run.
#[derive(Clone, Debug)]
pub struct AgentSettings {
    /// The address to listen on; none for all.
    pub bind: Option<IpAddr>,
    /// The port for TCP and UDP; 0 for any free one.
    pub port: u16,
    /// The directory for disk and copy tests; none to offer no disk.
    pub dir: Option<PathBuf>,
    /// The pairing code.
    pub code: PairingCode,
}

/// An agent that listens.
pub struct Agent {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
    notes: Vec<String>,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("address", &self.address).finish_non_exhaustive()
    }
}

type Tell = Arc<dyn Fn(AgentEvent) + Send + Sync>;
type DataSender = mpsc::Sender<(Token, std::net::TcpStream)>;

/// What all connections of an agent share.
struct Shared {
    code: PairingCode,
    dir: Option<PathBuf>,
    udp: Result<mtu::Listener, String>,
    running: Mutex<Option<(SocketAddr, Instant)>>,
    tokens: Mutex<HashMap<Token, DataSender>>,
    tell: Tell,
    stop: Stop,
}

/// What the steps of one session at the agent need.
pub struct AgentSession {
    shared: Arc<Shared>,
    /// Our address as the client reached it.
    pub local: SocketAddr,
    /// The client's.
    pub peer: SocketAddr,
    /// Set when the client is lost or the agent ends.
    pub stop: Stop,
    /// The UDP endpoint towards the client, once it has said hello.
    pub udp: Option<Arc<mtu::Endpoint>>,
    expected: Option<mtu::Expected>,
    /// The directory for tests of this session, with everything in it removed at the end.
    pub scratch: Option<Arc<Scratch>>,
    /// The file of the last raw upload.
    pub stored: Option<steps::copy::Stored>,
    /// How many raw uploads there were.
    pub copies: u32,
    /// The interfaces that carry the traffic to the client.
    pub interfaces: Vec<String>,
    /// A phase that is being watched for the client.
    pub bracket: Option<crate::session::around::Bracket>,
    data: mpsc::Receiver<(Token, std::net::TcpStream)>,
    data_sender: DataSender,
    waiting: HashMap<Token, std::net::TcpStream>,
    issued: Vec<Token>,
}

impl std::fmt::Debug for AgentSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentSession").field("peer", &self.peer).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A token that nobody can guess.
pub fn random_token() -> Result<Token, SessionError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|e| SessionError::Random(e.to_string()))?;
    Ok(Token(bytes))
}

fn listen(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    if cfg!(unix) {
        socket.set_reuse_address(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(64)?;
    Ok(socket.into())
}

impl Agent {
    /// Listens. Removes first what an earlier, killed run left in the directory.
    pub fn bind(settings: AgentSettings, tell: impl Fn(AgentEvent) + Send + Sync + 'static) -> Result<Self, SessionError> {
        let mut notes = Vec::new();
        if let Some(dir) = &settings.dir {
            let fault = |error| SessionError::Directory { path: dir.display().to_string(), error };
            if !std::fs::metadata(dir).map_err(fault)?.is_dir() {
                return Err(fault(io::ErrorKind::NotADirectory.into()));
            }
            // Tried now, while the owner looks, and not when a client waits for it.
            drop(Scratch::create(dir).map_err(fault)?);
            let swept = crate::sys::sweep(dir).map_err(fault)?;
            if swept.directories > 0 {
                notes.push(format!(
                    "removed {} of test files that an earlier run left behind",
                    crate::units::ByteSize(swept.bytes)
                ));
            }
        }
        let first = SocketAddr::new(settings.bind.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED)), settings.port);
        let (listener, first) = match listen(first) {
            Err(error) if settings.bind.is_none() && error.kind() != io::ErrorKind::AddrInUse => {
                // A system without IPv6.
                let v4 = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), settings.port);
                (listen(v4), v4)
            }
            result => (result, first),
        };
        let fault = |error: io::Error| {
            let hint = match error.kind() {
                io::ErrorKind::AddrInUse => "; another weaklink or program has the port: end it, or choose another with --port",
                io::ErrorKind::AddrNotAvailable => "; this host does not have that address: choose another with --bind",
                io::ErrorKind::PermissionDenied => "; choose a port above 1023 with --port",
                _ => "",
            };
            SessionError::Bind { address: first.to_string(), error, hint }
        };
        let listener = listener.map_err(fault)?;
        // Accepted sockets inherit it: a socket that began with BBR keeps BBR's pacing after a change.
        let available = crate::cpu::describe().tcp.measured().map(|tcp| tcp.congestion_available.clone()).unwrap_or_default();
        let congestion = crate::throughput::congestion_to_use(&available);
        let _ = crate::throughput::prepare(&listener, &crate::throughput::SocketSpec { mss_clamp: None, congestion });
        let listener = TcpListener::from_std(listener).map_err(fault)?;
        let address = listener.local_addr().map_err(fault)?;
        let udp = mtu::Listener::bind(address).map_err(|error| format!("cannot listen on UDP {address}: {error}"));
        if let Err(reason) = &udp {
            notes.push(format!("{reason}; path MTU and round-trip times will be missing"));
        }
        let shared = Shared {
            code: settings.code,
            dir: settings.dir,
            udp,
            running: Mutex::new(None),
            tokens: Mutex::new(HashMap::new()),
            tell: Arc::new(tell),
            stop: Stop::new(),
        };
        Ok(Self { listener, address, shared: Arc::new(shared), notes })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is set.
    pub async fn serve(self, stop: Stop) {
        for note in &self.notes {
            (self.shared.tell)(AgentEvent::Note(note.clone()));
        }
        (self.shared.tell)(AgentEvent::Listening(self.address));
        let strangers = Arc::new(Semaphore::new(STRANGERS));
        let mut ticks = tokio::time::interval(Duration::from_millis(100));
        while !stop.is_set() {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                _ = ticks.tick() => continue,
            };
            let Ok((socket, peer)) = accepted else {
                // Out of file descriptors or memory: wait for better times instead of spinning.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let shared = Arc::clone(&self.shared);
            let Ok(permit) = Arc::clone(&strangers).try_acquire_owned() else {
                tokio::spawn(turn_away(socket));
                continue;
            };
            tokio::spawn(async move {
                let peer = plain_socket(peer);
                if let Some((session, channel)) = shared.meet(socket, peer).await {
                    drop(permit);
                    shared.diagnose(session, channel).await;
                }
            });
        }
        self.shared.stop.set();
        // The session sees the flag, says goodbye and removes its files.
        for _ in 0..60 {
            if lock(&self.shared.running).is_none() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

async fn turn_away(mut socket: TcpStream) {
    let _ = timeout(Duration::from_secs(1), socket.write_all(&Hello::new(Kind::Overloaded).encode())).await;
}

impl Shared {
    /// Finds out what a new connection is for; gives a session when it is a client with the right code.
    async fn meet(self: &Arc<Self>, mut socket: TcpStream, peer: SocketAddr) -> Option<(AgentSession, Channel<Reply, Request>)> {
        let mut hello = [0; HELLO_LEN];
        timeout(GREETING, socket.read_exact(&mut hello)).await.ok()?.ok()?;
        let hello = Hello::decode(&hello).ok()?;
        match hello.kind {
            Kind::Data => {
                let mut token = Token([0; 16]);
                timeout(GREETING, socket.read_exact(&mut token.0)).await.ok()?.ok()?;
                let owner = lock(&self.tokens).remove(&token)?;
                let socket = socket.into_std().ok()?;
                socket.set_nonblocking(false).ok()?;
                let _ = owner.try_send((token, socket));
                None
            }
            Kind::Control if hello.version.major == PROTOCOL.major => self.pair(socket, peer).await,
            Kind::Control => {
                (self.tell)(AgentEvent::Rejected(
                    peer,
                    "it speaks another version of the protocol; install the same weaklink at both ends".to_owned(),
                ));
                let _ = timeout(GREETING, socket.write_all(&Hello::new(Kind::OtherVersion).encode())).await;
                None
            }
            Kind::Welcome | Kind::OtherVersion | Kind::WrongCode | Kind::Overloaded => None,
        }
    }

    async fn pair(self: &Arc<Self>, socket: TcpStream, peer: SocketAddr) -> Option<(AgentSession, Channel<Reply, Request>)> {
        let local = plain_socket(socket.local_addr().ok()?);
        let stop = Stop::new();
        let channel = match welcome(socket, &self.code, stop.clone()).await {
            Ok(channel) => channel,
            Err(HandshakeError::WrongCode) => {
                (self.tell)(AgentEvent::Rejected(peer, "it does not know the pairing code".to_owned()));
                return None;
            }
            Err(_) => return None,
        };
        let busy = {
            let mut running = lock(&self.running);
            let busy = *running;
            if busy.is_none() {
                *running = Some((peer, Instant::now()));
            }
            busy
        };
        if let Some((other, since)) = busy {
            (self.tell)(AgentEvent::Rejected(peer, format!("{} is being served", other.ip())));
            let reply = Reply::Busy { peer: other.ip().to_string(), since_us: since.elapsed().into() };
            let _ = channel.send(&reply).await;
            return None;
        }
        let (data_sender, data) = mpsc::channel(256);
        let session = AgentSession {
            shared: Arc::clone(self),
            local,
            peer,
            stop,
            udp: None,
            expected: None,
            scratch: None,
            stored: None,
            copies: 0,
            interfaces: Vec::new(),
            bracket: None,
            data,
            data_sender,
            waiting: HashMap::new(),
            issued: Vec::new(),
        };
        Some((session, channel))
    }

    /// Serves one client to its end.
    async fn diagnose(self: Arc<Self>, mut session: AgentSession, mut channel: Channel<Reply, Request>) {
        let peer = session.peer;
        let _place = Place(Arc::clone(&self));
        (self.tell)(AgentEvent::Begin(peer));
        let result = session.run(&mut channel).await;
        session.stop.set();
        {
            let mut tokens = lock(&self.tokens);
            for token in &session.issued {
                tokens.remove(token);
            }
        }
        // Blocking: it removes files. The place is free for the next client only after that.
        let _ = tokio::task::spawn_blocking(move || drop(session)).await;
        (self.tell)(AgentEvent::End(peer, result));
    }
}

/// The place of the one diagnosis at a time; dropping it, by whatever way, lets the next client in.
struct Place(Arc<Shared>);

impl Drop for Place {
    fn drop(&mut self) {
        *lock(&self.0.running) = None;
    }
}

impl AgentSession {
    async fn run(&mut self, channel: &mut Channel<Reply, Request>) -> Result<(), String> {
        let udp_token = random_token().map_err(|e| e.to_string())?;
        let udp_fault = match &self.shared.udp {
            Ok(listener) => {
                self.expected = Some(listener.expect(udp_token.0));
                None
            }
            Err(reason) => Some(reason.clone()),
        };
        channel.send(&Reply::Ready { udp: udp_token, has_dir: self.shared.dir.is_some(), udp_fault }).await?;
        loop {
            let request = tokio::select! {
                request = channel.receive() => request?,
                () = wait_for(&self.shared.stop) => {
                    channel.send(&Reply::Leaving("`weaklink serve` was interrupted".to_owned())).await?;
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    return Err("ended by its owner".to_owned());
                }
            };
            if matches!(request, Request::Bye) {
                return Ok(());
            }
            let stop = self.stop.clone();
            let owner = self.shared.stop.clone();
            let reply = tokio::select! {
                reply = self.answer(request) => reply,
                () = wait_for(&owner) => {
                    // The threads of the step see the session's flag and end.
                    stop.set();
                    Reply::Leaving("`weaklink serve` was interrupted".to_owned())
                }
            };
            let leaving = matches!(reply, Reply::Leaving(_));
            channel.send(&reply).await?;
            if leaving {
                tokio::time::sleep(Duration::from_millis(100)).await;
                return Err("ended by its owner".to_owned());
            }
        }
    }

    async fn answer(&mut self, request: Request) -> Reply {
        match request {
            Request::Alive | Request::Bye => Reply::Alive,
            Request::Describe => steps::link::agent(self).await,
            Request::Tokens { count } => self.issue(count),
            Request::SearchMtu { budget_us } => steps::mtu::agent(self, budget_us.into()).await,
            Request::Pass(request) => steps::throughput::agent(self, request).await,
            Request::Ciphers { each_us } => steps::cpu::agent(self, each_us.into()).await,
            Request::Disk { each_us, max_bytes } => steps::storage::agent(self, each_us.into(), max_bytes).await,
            Request::Copy(request) => steps::copy::agent(self, request).await,
            Request::StartSampling => {
                self.bracket = Some(crate::session::around::Bracket::start(&self.interfaces));
                Reply::Sampling
            }
            Request::StopSampling => match self.bracket.take() {
                Some(bracket) => Reply::Sampled(Box::new(blocking(move || bracket.finish()).await)),
                None => Reply::Refused("nothing is being sampled".to_owned()),
            },
        }
    }

    fn issue(&mut self, count: u32) -> Reply {
        if count > crate::wire::message::MOST_STREAMS {
            return Reply::Refused(format!(
                "{count} streams are more than the {} that an agent takes",
                crate::wire::message::MOST_STREAMS
            ));
        }
        let tokens: Result<Vec<Token>, SessionError> = (0..count).map(|_| random_token()).collect();
        match tokens {
            Ok(tokens) => {
                let mut registry = lock(&self.shared.tokens);
                for token in &tokens {
                    registry.insert(*token, self.data_sender.clone());
                }
                self.issued.extend(&tokens);
                Reply::Tokens(tokens)
            }
            Err(error) => Reply::Refused(error.to_string()),
        }
    }

    /// Waits for the data connections with these tokens.
    pub async fn connections(&mut self, tokens: &[Token]) -> Result<Vec<std::net::TcpStream>, String> {
        let mut found = Vec::with_capacity(tokens.len());
        let deadline = tokio::time::Instant::now() + GREETING;
        for token in tokens {
            loop {
                if let Some(socket) = self.waiting.remove(token) {
                    found.push(socket);
                    break;
                }
                match tokio::time::timeout_at(deadline, self.data.recv()).await {
                    Ok(Some((token, socket))) => {
                        self.waiting.insert(token, socket);
                    }
                    _ => {
                        return Err(format!(
                            "{} of {} data connections did not arrive",
                            tokens.len() - found.len(),
                            tokens.len()
                        ));
                    }
                }
            }
        }
        self.issued.retain(|token| !tokens.contains(token));
        Ok(found)
    }

    /// The UDP endpoint, as soon as the client's hello has come.
    pub async fn endpoint(&mut self) -> Result<Arc<mtu::Endpoint>, String> {
        if let Some(endpoint) = &self.udp {
            return Ok(Arc::clone(endpoint));
        }
        let Some(expected) = self.expected.take() else {
            return Err("no UDP datagram of the client arrived".to_owned());
        };
        let stop = self.stop.clone();
        let endpoint = blocking(move || expected.wait(Duration::from_secs(2), &stop)).await;
        let endpoint = Arc::new(endpoint.map_err(|e| format!("no UDP datagram of the client arrived: {e}"))?);
        self.udp = Some(Arc::clone(&endpoint));
        Ok(endpoint)
    }

    /// The directory that `serve` was given.
    pub fn dir(&self) -> Option<&PathBuf> {
        self.shared.dir.as_ref()
    }

    /// The place for this session's test files.
    pub fn scratch(&mut self) -> Result<Arc<Scratch>, String> {
        if let Some(scratch) = &self.scratch {
            return Ok(Arc::clone(scratch));
        }
        let dir = self.shared.dir.as_ref().ok_or_else(no_dir)?;
        let scratch = Scratch::create(dir).map_err(|e| format!("cannot make a test directory in {}: {e}", dir.display()))?;
        Ok(Arc::clone(self.scratch.insert(Arc::new(scratch))))
    }
}

/// Why an agent has no disk to offer.
pub fn no_dir() -> String {
    "`weaklink serve` was started without --dir, so no disk of the NAS was tested".to_owned()
}

/// Runs what blocks beside the runtime's workers.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

async fn wait_for(stop: &Stop) {
    while !stop.is_set() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
