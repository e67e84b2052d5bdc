//! The end that serves: listens, lets one client in at a time, or the members of one group, and does its share of each step.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
use crate::session::floor::Hall;
use crate::session::served::AgentSession;
use crate::sys::{Scratch, Stop};
use crate::units::ByteSize;
use crate::wire::hello::{HELLO_LEN, Hello, Kind, PROTOCOL};
use crate::wire::{PairingCode, Reply, Request, Token};

/// Connections that have not yet said who they are; more are turned away so that strangers cannot use up the memory.
const STRANGERS: usize = 32;

/// As many more may come from the hosts that are being served: the streams of one pass and some more.
const FRIENDS: usize = 256;

/// The time for a connection to say who it is.
pub(super) const GREETING: Duration = Duration::from_secs(5);

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
pub(super) type DataSender = mpsc::Sender<(Token, std::net::TcpStream)>;

/// What all connections of an agent share.
pub(super) struct Shared {
    pub(super) code: PairingCode,
    pub(super) dir: Option<PathBuf>,
    pub(super) udp: Result<mtu::Listener, String>,
    pub(super) hall: Arc<Hall>,
    pub(super) tokens: Mutex<HashMap<Token, DataSender>>,
    pub(super) tell: Tell,
    pub(super) stop: Stop,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
            notes.extend(make_ready(dir)?);
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
        let fault = |error| bind_fault(first, error);
        let listener = listener.map_err(fault)?;
        // Accepted sockets inherit it: a socket that began with BBR keeps BBR's pacing after a change.
        let congestion = crate::throughput::SocketSpec::with_congestion(crate::throughput::CAPACITY_CONGESTION);
        let _ = crate::throughput::prepare(&listener, &congestion);
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
            hall: Hall::new(),
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
        let friends = Arc::new(Semaphore::new(FRIENDS));
        let mut ticks = tokio::time::interval(Duration::from_millis(100));
        let mut told = false;
        while !stop.is_set() {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                _ = ticks.tick() => continue,
            };
            let (socket, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors or memory: wait for better times instead of spinning, and say so once.
                    if !std::mem::replace(&mut told, true) {
                        (self.shared.tell)(AgentEvent::Note(crate::sys::not_taken(&error)));
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let shared = Arc::clone(&self.shared);
            let peer = plain_socket(peer);
            // Data connections come from the hosts that are being served: strangers must not take their places.
            let served = shared.hall.serves(peer.ip());
            let permit = Arc::clone(&strangers).try_acquire_owned();
            let permit = if served { permit.or_else(|_| Arc::clone(&friends).try_acquire_owned()) } else { permit };
            let Ok(permit) = permit else {
                tokio::spawn(turn_away(socket));
                continue;
            };
            tokio::spawn(async move {
                if let Some((session, channel)) = shared.meet(socket, peer).await {
                    drop(permit);
                    shared.diagnose(session, channel).await;
                }
            });
        }
        self.shared.stop.set();
        // The sessions see the flag, say goodbye and remove their files.
        for _ in 0..60 {
            if self.shared.hall.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

fn bind_fault(address: SocketAddr, error: io::Error) -> SessionError {
    let hint = match error.kind() {
        io::ErrorKind::AddrInUse => "; another weaklink or program has the port: end it, or choose another with --port",
        io::ErrorKind::AddrNotAvailable => "; this host does not have that address: choose another with --bind",
        io::ErrorKind::PermissionDenied => "; choose a port above 1023 with --port",
        _ => "",
    };
    SessionError::Bind { address: address.to_string(), error, hint }
}

/// Tries the directory now, while the owner looks, and not when a client waits for it; removes what a killed run left there.
fn make_ready(dir: &Path) -> Result<Option<String>, SessionError> {
    let fault = |error| SessionError::Directory { path: dir.display().to_string(), error };
    if !std::fs::metadata(dir).map_err(fault)?.is_dir() {
        return Err(fault(io::ErrorKind::NotADirectory.into()));
    }
    drop(Scratch::create(dir).map_err(fault)?);
    let swept = crate::sys::sweep(dir).map_err(fault)?;
    let left = ByteSize(swept.bytes);
    Ok((swept.directories > 0).then(|| format!("removed {left} of test files that an earlier run left behind")))
}

async fn turn_away(mut socket: TcpStream) {
    let _ = timeout(Duration::from_secs(1), say_no(&mut socket, Kind::Overloaded)).await;
}

/// Says why not, and takes in what the other end has sent: closing with unread bytes would throw away our word.
async fn say_no(socket: &mut TcpStream, why: Kind) -> io::Result<()> {
    socket.write_all(&Hello::new(why).encode()).await?;
    socket.shutdown().await?;
    let mut rest = [0; 1024];
    let mut taken = 0;
    while taken < 16 * 1024 {
        match socket.read(&mut rest).await? {
            0 => break,
            n => taken += n,
        }
    }
    Ok(())
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
                let _ = timeout(GREETING, say_no(&mut socket, Kind::OtherVersion)).await;
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
        let place = match self.hall.enter(peer).await {
            Ok(place) => place,
            Err(busy) => {
                (self.tell)(AgentEvent::Rejected(peer, busy.words()));
                let _ = channel.send(&busy.reply()).await;
                return None;
            }
        };
        let session = AgentSession::new(Arc::clone(self), place, (local, peer), stop);
        Some((session, channel))
    }

    /// Serves one client to its end.
    async fn diagnose(self: Arc<Self>, mut session: AgentSession, mut channel: Channel<Reply, Request>) {
        let (peer, place) = (session.peer, Arc::clone(&session.place));
        if !place.is_beside() {
            session.announce();
        }
        let result = session.run(&mut channel).await;
        session.stop.set();
        session.forget_tokens();
        place.gone(result.as_ref().err().map_or("it had enough", String::as_str));
        let turned_away = session.turned_away();
        // Blocking: it removes files. The place is free for the next client only after that.
        let _ = tokio::task::spawn_blocking(move || drop(session)).await;
        (self.tell)(match (turned_away, result) {
            (Some(why), _) => AgentEvent::Rejected(peer, why),
            (None, result) => AgentEvent::End(peer, result),
        });
    }
}
