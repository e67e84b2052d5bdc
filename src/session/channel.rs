//! The encrypted control connection: greeting, Noise handshake, messages, signs of life.
//!
//! The handshake is `Noise_NNpsk0`: both ends prove that they know the pairing code, and nobody else can
//! read or change what follows. A reader and a writer task own the two halves of the socket.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use snow::{Builder, HandshakeState, StatelessTransportState};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::time::{interval, timeout};

use crate::sys::Stop;
use crate::wire::frame::{Joiner, split};
use crate::wire::hello::{HELLO_LEN, Hello, Kind, PROTOCOL, ProtocolVersion};
use crate::wire::{PairingCode, Reply, Request};

/// Handshake and cipher of the control connection.
const NOISE: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";

/// How often an end says that it is there.
const ALIVE_EVERY: Duration = Duration::from_secs(1);

/// The silence after which an end counts as lost: eight signs of life missed. A full disk queue or a
/// starved core delays them by fractions of a second; people should know within 10 s.
const LOST_AFTER: Duration = Duration::from_secs(8);

/// The time for each part of the handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// A message of the control protocol.
pub trait Message: Serialize + DeserializeOwned + Send + 'static {
    /// The sign of life.
    fn alive() -> Self;
    /// Whether it is only that.
    fn is_alive(&self) -> bool;
}

impl Message for Request {
    fn alive() -> Self {
        Self::Alive
    }
    fn is_alive(&self) -> bool {
        matches!(self, Self::Alive)
    }
}

impl Message for Reply {
    fn alive() -> Self {
        Self::Alive
    }
    fn is_alive(&self) -> bool {
        matches!(self, Self::Alive)
    }
}

/// Why a handshake failed.
#[derive(Debug)]
pub enum HandshakeError {
    /// It is not weaklink.
    Foreign,
    /// Another version.
    OtherVersion(Hello),
    /// Another code.
    WrongCode,
    /// The agent is full.
    Overloaded,
    /// It did not go on.
    Io(std::io::Error),
}

impl From<std::io::Error> for HandshakeError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

/// One end of an established control connection.
#[derive(Debug)]
pub struct Channel<Out, In> {
    outbox: mpsc::Sender<Vec<u8>>,
    inbox: mpsc::Receiver<In>,
    lost: Arc<Mutex<Option<String>>>,
    stop: Stop,
    version: ProtocolVersion,
    _out: PhantomData<fn(Out)>,
}

fn builder(code: &PairingCode, initiator: bool) -> Result<HandshakeState, snow::Error> {
    let key = code.key();
    let builder = Builder::new(NOISE.parse()?).psk(0, &key)?;
    if initiator { builder.build_initiator() } else { builder.build_responder() }
}

fn noise_fault(error: &snow::Error) -> std::io::Error {
    std::io::Error::other(format!("the encryption failed: {error}"))
}

async fn within<T>(what: impl Future<Output = std::io::Result<T>>) -> std::io::Result<T> {
    timeout(HANDSHAKE, what).await.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()))
}

async fn read_frame(socket: &mut (impl AsyncReadExt + Unpin)) -> std::io::Result<Vec<u8>> {
    let len = socket.read_u16().await?;
    let mut frame = vec![0; usize::from(len)];
    socket.read_exact(&mut frame).await?;
    Ok(frame)
}

async fn write_frame(socket: &mut (impl AsyncWriteExt + Unpin), frame: &[u8]) -> std::io::Result<()> {
    let mut bytes = Vec::with_capacity(frame.len() + 2);
    bytes.extend_from_slice(&(frame.len() as u16).to_be_bytes());
    bytes.extend_from_slice(frame);
    socket.write_all(&bytes).await
}

/// The client's handshake on a fresh connection.
pub async fn greet(mut socket: TcpStream, code: &PairingCode, stop: Stop) -> Result<Channel<Request, Reply>, HandshakeError> {
    let mut noise = builder(code, true).map_err(|e| noise_fault(&e))?;
    let mut buffer = vec![0; 1024];
    let len = noise.write_message(&[], &mut buffer).map_err(|e| noise_fault(&e))?;
    // An agent that turns us away has said why before it hung up: what it said is still there to be read.
    let _ = within(async {
        socket.write_all(&Hello::new(Kind::Control).encode()).await?;
        write_frame(&mut socket, &buffer[..len]).await
    })
    .await;
    let mut hello = [0; HELLO_LEN];
    match within(socket.read_exact(&mut hello)).await {
        Ok(_) => {}
        // A server of another protocol hangs up, or waits for more of its own: it is there, but not ours.
        Err(e)
            if matches!(
                e.kind(),
                std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::TimedOut | std::io::ErrorKind::ConnectionReset
            ) =>
        {
            return Err(HandshakeError::Foreign);
        }
        Err(e) => return Err(e.into()),
    }
    let hello = Hello::decode(&hello).map_err(|_| HandshakeError::Foreign)?;
    match hello.kind {
        Kind::Welcome => {}
        Kind::OtherVersion => return Err(HandshakeError::OtherVersion(hello)),
        Kind::WrongCode => return Err(HandshakeError::WrongCode),
        Kind::Overloaded => return Err(HandshakeError::Overloaded),
        Kind::Control | Kind::Data => return Err(HandshakeError::Foreign),
    }
    let answer = within(read_frame(&mut socket)).await?;
    noise.read_message(&answer, &mut buffer).map_err(|_| HandshakeError::WrongCode)?;
    let transport = noise.into_stateless_transport_mode().map_err(|e| noise_fault(&e))?;
    Ok(Channel { version: hello.version, ..Channel::start(socket, transport, stop) })
}

/// The agent's handshake, after the client's greeting of the control kind was read.
pub async fn welcome(mut socket: TcpStream, code: &PairingCode, stop: Stop) -> Result<Channel<Reply, Request>, HandshakeError> {
    let mut noise = builder(code, false).map_err(|e| noise_fault(&e))?;
    let mut buffer = vec![0; 65_535];
    let first = within(read_frame(&mut socket)).await?;
    if noise.read_message(&first, &mut buffer).is_err() {
        // Guessing 80 bits is hopeless; the pause only keeps the log of a scanner short.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let _ = within(socket.write_all(&Hello::new(Kind::WrongCode).encode())).await;
        return Err(HandshakeError::WrongCode);
    }
    let len = noise.write_message(&[], &mut buffer).map_err(|e| noise_fault(&e))?;
    within(async {
        socket.write_all(&Hello::new(Kind::Welcome).encode()).await?;
        write_frame(&mut socket, &buffer[..len]).await
    })
    .await?;
    let transport = noise.into_stateless_transport_mode().map_err(|e| noise_fault(&e))?;
    Ok(Channel::start(socket, transport, stop))
}

impl<Out: Message, In: Message> Channel<Out, In> {
    fn start(socket: TcpStream, transport: StatelessTransportState, stop: Stop) -> Self {
        let _ = socket.set_nodelay(true);
        let (read, write) = socket.into_split();
        let transport = Arc::new(transport);
        let (outbox, outgoing) = mpsc::channel(16);
        let (incoming, inbox) = mpsc::channel(16);
        let lost = Arc::new(Mutex::new(None));
        let (writing, end) = (Arc::clone(&transport), End { lost: Arc::clone(&lost), stop: stop.clone() });
        tokio::spawn(async move {
            if let Err(how) = write_all::<Out>(write, writing, outgoing).await {
                end.lose(how);
            }
        });
        let end = End { lost: Arc::clone(&lost), stop: stop.clone() };
        tokio::spawn(async move {
            // The reason stands before `incoming` closes: whoever waits for a message asks for it as soon as it does.
            end.lose(read_all(read, transport, &incoming).await);
            drop(incoming);
        });
        Self { outbox, inbox, lost, stop, version: PROTOCOL, _out: PhantomData }
    }

    /// Sends a message; a lost peer is told by the next [`Self::receive`].
    pub async fn send(&self, message: &Out) -> Result<(), String> {
        let bytes = serde_json::to_vec(message).map_err(|e| format!("a message cannot be written: {e}"))?;
        let _ = self.outbox.send(bytes).await;
        Ok(())
    }

    /// The next message that is more than a sign of life; the error says how the peer was lost.
    pub async fn receive(&mut self) -> Result<In, String> {
        match self.inbox.recv().await {
            Some(message) => Ok(message),
            None => {
                Err(self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_else(|| "it hung up".to_owned()))
            }
        }
    }

    /// At the client: the version of the protocol that the agent speaks; at the agent: its own.
    pub const fn version(&self) -> ProtocolVersion {
        self.version
    }

    /// The flag that is set when the peer is lost.
    pub const fn stop(&self) -> &Stop {
        &self.stop
    }
}

/// How a connection ended, for whoever asks, and the flag that tells everybody.
struct End {
    lost: Arc<Mutex<Option<String>>>,
    stop: Stop,
}

impl End {
    /// The first reason counts.
    fn lose(&self, how: String) {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(how);
        self.stop.set();
    }
}

/// Writes until nobody sends any more; the error says why the peer counts as lost.
async fn write_all<Out: Message>(
    mut socket: OwnedWriteHalf,
    transport: Arc<StatelessTransportState>,
    mut outgoing: mpsc::Receiver<Vec<u8>>,
) -> Result<(), String> {
    let mut ticks = interval(ALIVE_EVERY);
    let mut nonce = 0u64;
    let mut buffer = vec![0; 65_535];
    let alive = serde_json::to_vec(&Out::alive()).map_err(|error| error.to_string())?;
    loop {
        let message = tokio::select! {
            message = outgoing.recv() => message,
            _ = ticks.tick() => Some(alive.clone()),
        };
        let Some(message) = message else { break };
        for packet in split(&message) {
            let len = transport.write_message(nonce, &packet, &mut buffer).map_err(|error| error.to_string())?;
            nonce += 1;
            match timeout(LOST_AFTER, write_frame(&mut socket, &buffer[..len])).await {
                Ok(Ok(())) => {}
                // The reader sees how the connection ended, and says so better.
                Ok(Err(_)) => return Ok(()),
                Err(_) => return Err(format!("it took nothing for {} s", LOST_AFTER.as_secs())),
            }
        }
    }
    let _ = socket.shutdown().await;
    Ok(())
}

/// Reads until the peer is lost; gives how.
async fn read_all<In: Message>(
    mut socket: OwnedReadHalf,
    transport: Arc<StatelessTransportState>,
    incoming: &mpsc::Sender<In>,
) -> String {
    let mut nonce = 0u64;
    let mut joiner = Joiner::default();
    let mut buffer = vec![0; 65_535];
    loop {
        let frame = match timeout(LOST_AFTER, read_frame(&mut socket)).await {
            Err(_) => return format!("no sign of life for {} s; is the cable unplugged, or the host off?", LOST_AFTER.as_secs()),
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::UnexpectedEof => return "it closed the connection".to_owned(),
            Ok(Err(error)) => return format!("the connection broke: {error}"),
            Ok(Ok(frame)) => frame,
        };
        let Ok(len) = transport.read_message(nonce, &frame, &mut buffer) else {
            return "a packet was changed on the way".to_owned();
        };
        nonce += 1;
        match joiner.push(&buffer[..len]) {
            Err(error) => return error.to_string(),
            Ok(None) => {}
            Ok(Some(bytes)) => match serde_json::from_slice::<In>(&bytes) {
                Err(error) => return format!("a message is not understood: {error}"),
                Ok(message) if message.is_alive() => {}
                // One question, one answer: whoever has a queue full of messages waiting does not keep to that.
                Ok(message) => match incoming.try_send(message) {
                    Ok(()) => {}
                    Err(mpsc::error::TrySendError::Full(_)) => return "it sends more than it was asked for".to_owned(),
                    Err(mpsc::error::TrySendError::Closed(_)) => return "nobody listens any more".to_owned(),
                },
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn whoever_waits_for_a_lost_peer_is_told_how_it_was_lost() {
        let code = PairingCode::from_random([7; 16]);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        // Many rounds: the waiting task and the one that finds the reason run on two cores.
        for round in 0..200 {
            let agent = async {
                let (mut socket, _) = listener.accept().await.unwrap();
                let mut hello = [0; HELLO_LEN];
                socket.read_exact(&mut hello).await.unwrap();
                drop(welcome(socket, &code, Stop::new()).await.unwrap());
            };
            let client = async {
                let socket = TcpStream::connect(address).await.unwrap();
                let mut channel = greet(socket, &code, Stop::new()).await.unwrap();
                channel.receive().await.unwrap_err()
            };
            let ((), why) = tokio::join!(agent, client);
            assert_eq!(why, "it closed the connection", "round {round}");
        }
    }

    /// The agent's side of the handshake as a build of another minor version does it.
    async fn welcome_as(minor: u16, mut socket: TcpStream, code: &PairingCode) -> TcpStream {
        let mut hello = [0; HELLO_LEN];
        socket.read_exact(&mut hello).await.unwrap();
        let mut noise = builder(code, false).unwrap();
        let mut buffer = vec![0; 65_535];
        let first = read_frame(&mut socket).await.unwrap();
        noise.read_message(&first, &mut buffer).unwrap();
        let len = noise.write_message(&[], &mut buffer).unwrap();
        let hello = Hello { version: ProtocolVersion { minor, ..PROTOCOL }, kind: Kind::Welcome };
        socket.write_all(&hello.encode()).await.unwrap();
        write_frame(&mut socket, &buffer[..len]).await.unwrap();
        socket
    }

    #[tokio::test]
    async fn a_client_knows_the_version_of_an_older_agent() {
        let code = PairingCode::from_random([7; 16]);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        for minor in [0, 1, PROTOCOL.minor, PROTOCOL.minor + 1] {
            let agent = async { welcome_as(minor, listener.accept().await.unwrap().0, &code).await };
            let client = async { greet(TcpStream::connect(address).await.unwrap(), &code, Stop::new()).await.unwrap() };
            let (_socket, channel) = tokio::join!(agent, client);
            assert_eq!(channel.version(), ProtocolVersion { minor, ..PROTOCOL });
        }
    }
}
