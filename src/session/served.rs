//! One session at the agent: what it knows of the client, and its answers.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::link::LogFollower;
use crate::model::link::HostLink;
use crate::mtu;
use crate::session::agent::{DataSender, GREETING, Shared, lock};
use crate::session::around::Bracket;
use crate::session::channel::Channel;
use crate::session::error::SessionError;
use crate::session::event::AgentEvent;
use crate::session::floor::{Place, Turned};
use crate::session::listening::Listening;
use crate::session::steps;
use crate::sys::{Scratch, Stop};
use crate::wire::message::MOST_STREAMS;
use crate::wire::{Reply, Request, Token};

/// A token that nobody can guess.
pub fn random_token() -> Result<Token, SessionError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|e| SessionError::Random(e.to_string()))?;
    Ok(Token(bytes))
}

/// What the steps of one session at the agent need.
pub struct AgentSession {
    shared: Arc<Shared>,
    /// Its stay beside others, or alone.
    pub(super) place: Arc<Place>,
    /// Whether the agent's owner knows that it is served.
    announced: bool,
    /// Why it is not served, when that is so.
    turned: Option<String>,
    /// Our address as the client reached it.
    pub local: SocketAddr,
    /// The client's.
    pub peer: SocketAddr,
    /// Set when the client is lost or the agent ends.
    pub stop: Stop,
    /// The UDP endpoint towards the client, once it has said hello.
    pub udp: Option<Arc<mtu::Endpoint>>,
    expected: Option<mtu::Expected>,
    /// The flow of datagrams, once one was asked for.
    pub datagrams: steps::udp::AtAgent,
    /// The directory for tests of this session, with everything in it removed at the end.
    pub scratch: Option<Arc<Scratch>>,
    /// The file of the last raw upload.
    pub stored: Option<steps::copy::Stored>,
    /// How many raw uploads there were.
    pub copies: u32,
    /// The interfaces that carry the traffic to the client.
    pub interfaces: Vec<String>,
    /// The same with all that is known of them.
    pub link: Option<Arc<HostLink>>,
    /// The ear for the switch.
    pub listening: Option<Listening>,
    /// The kernel's log since the link was described.
    pub log: Option<LogFollower>,
    /// A phase that is being watched for the client.
    pub bracket: Option<Bracket>,
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

/// The longest session: three times what the most thorough run promises.
const LONGEST_SESSION: Duration = Duration::from_secs(15 * 60);

/// Rights to open a data connection that are not used yet, at most: those of four of the largest passes.
const MOST_TOKENS: usize = 4 * MOST_STREAMS as usize;

impl AgentSession {
    /// A session with a client that has proved to know the code.
    pub(super) fn new(shared: Arc<Shared>, place: Place, (local, peer): (SocketAddr, SocketAddr), stop: Stop) -> Self {
        let (data_sender, data) = mpsc::channel(256);
        Self {
            shared,
            place: Arc::new(place),
            announced: false,
            turned: None,
            local,
            peer,
            stop,
            udp: None,
            expected: None,
            datagrams: steps::udp::AtAgent::default(),
            scratch: None,
            stored: None,
            copies: 0,
            interfaces: Vec::new(),
            link: None,
            listening: None,
            log: None,
            bracket: None,
            data,
            data_sender,
            waiting: HashMap::new(),
            issued: Vec::new(),
        }
    }

    /// Takes back the right to open data connections that were never opened.
    pub(super) fn forget_tokens(&self) {
        let mut tokens = lock(&self.shared.tokens);
        for token in &self.issued {
            tokens.remove(token);
        }
    }

    /// Tells the agent's owner, once, that this client is being served.
    pub fn announce(&mut self) {
        if !std::mem::replace(&mut self.announced, true) {
            (self.shared.tell)(AgentEvent::Begin(self.peer));
        }
    }

    /// Tells the agent's owner something.
    pub fn note(&self, text: String) {
        (self.shared.tell)(AgentEvent::Note(text));
    }

    /// The client is not served, for this reason.
    pub fn turn_away(&mut self, why: &Turned) {
        self.turned = Some(match why {
            Turned::Busy(busy) => busy.words(),
            Turned::Refused(why) => why.clone(),
        });
    }

    /// Why the client was never served, if it was not.
    pub(super) fn turned_away(&mut self) -> Option<String> {
        let left = || "it came beside others and asked for nothing".to_owned();
        (!self.announced).then(|| self.turned.take().unwrap_or_else(left))
    }

    /// Answers the client until it has had enough, is lost, or the agent ends.
    pub(super) async fn run(&mut self, channel: &mut Channel<Reply, Request>) -> Result<(), String> {
        let udp_token = random_token().map_err(|e| e.to_string())?;
        let udp_fault = match &self.shared.udp {
            Ok(listener) => {
                self.expected = Some(listener.expect(udp_token.0));
                None
            }
            Err(reason) => Some(reason.clone()),
        };
        channel.send(&Reply::Ready { udp: udp_token, has_dir: self.shared.dir.is_some(), udp_fault }).await?;
        let end = tokio::time::Instant::now() + LONGEST_SESSION;
        loop {
            if self.stop.is_set() || tokio::time::Instant::now() >= end {
                // What a client that is gone had still asked for is not done.
                return channel.receive().await.map(drop).and(Err("it took longer than any diagnosis may".to_owned()));
            }
            let request = tokio::select! {
                request = channel.receive() => request?,
                busy = self.place.overdue() => {
                    let turned = Turned::Busy(busy);
                    self.turn_away(&turned);
                    channel.send(&turned.reply()).await?;
                    return Err("it did not join the group".to_owned());
                }
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
            let busy = matches!(reply, Reply::Busy { .. });
            channel.send(&reply).await?;
            if busy {
                return Err("others are being served".to_owned());
            }
            if leaving {
                tokio::time::sleep(Duration::from_millis(100)).await;
                return Err("ended by its owner".to_owned());
            }
        }
    }

    /// Lets only those work whose turn it is; a client that is here to join a group does nothing else before.
    fn admit(&mut self, request: &Request) -> Result<(), Turned> {
        match request {
            Request::Alive | Request::Bye | Request::Gather(_) | Request::Meet { .. } => return Ok(()),
            _ => self.place.work()?,
        }
        self.announce();
        if matches!(request, Request::Pass(_) | Request::PassBoth { .. }) {
            self.place.begin();
        }
        Ok(())
    }

    async fn answer(&mut self, request: Request) -> Reply {
        if let Err(turned) = self.admit(&request) {
            self.turn_away(&turned);
            return turned.reply();
        }
        match request {
            Request::Alive | Request::Bye => Reply::Alive,
            Request::Describe { idle_us } => steps::link::agent(self, idle_us.into()).await,
            Request::Tokens { count } => self.issue(count),
            Request::SearchMtu { budget_us } => steps::mtu::agent(self, budget_us.into()).await,
            Request::Handshake { token } => steps::mtu::handshake_at_agent(self, token).await,
            Request::Neighbours { wait_us } => steps::link::neighbours_at_agent(self, wait_us.into()).await,
            Request::Log => Reply::Log(steps::link::rest_of_log(self.log.take()).await),
            Request::Pass(request) => steps::throughput::agent(self, request).await,
            Request::PassBoth { upload, download } => steps::throughput::agent_both(self, upload, download).await,
            Request::UdpFlow { own_port } => steps::udp::open_at_agent(self, own_port),
            Request::UdpArrived => steps::udp::arrived_at_agent(self).await,
            Request::UdpBegin(request) => steps::udp::begin_at_agent(self, request).await,
            Request::UdpEnd { sent } => steps::udp::end_at_agent(self, sent).await,
            Request::UdpSend(request) => steps::udp::send_at_agent(self, request).await,
            Request::Ciphers { each_us } => steps::cpu::agent(self, each_us.into()).await,
            Request::Disk { each_us, max_bytes } => steps::storage::agent(self, each_us.into(), max_bytes).await,
            Request::Room { max_bytes } => steps::copy::room(self, max_bytes).await,
            Request::Copy(request) => steps::copy::agent(self, request).await,
            Request::StartSampling => {
                self.bracket = Some(Bracket::start(&self.interfaces));
                Reply::Sampling
            }
            Request::StopSampling => match self.bracket.take() {
                Some(bracket) => Reply::Sampled(Box::new(blocking(move || bracket.finish()).await)),
                None => Reply::Refused("nothing is being sampled".to_owned()),
            },
            Request::Gather(asked) => steps::together::gather_at_agent(self, asked).await,
            Request::Meet { told, wait_us } => steps::together::meet_at_agent(self, told, wait_us).await,
        }
    }

    fn issue(&mut self, count: u32) -> Reply {
        if self.issued.len() + count as usize > MOST_TOKENS {
            return Reply::Refused("too many data connections were asked for and not opened".to_owned());
        }
        if count > MOST_STREAMS {
            return Reply::Refused(format!("{count} streams are more than the {MOST_STREAMS} that an agent takes"));
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

    /// Gives a data connection back, for a later use of the same token.
    pub fn keep(&mut self, token: Token, connection: std::net::TcpStream) {
        self.waiting.insert(token, connection);
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

    /// The agent's UDP port, or why there is none.
    pub fn listener(&self) -> Result<&mtu::Listener, &str> {
        self.shared.udp.as_ref().map_err(String::as_str)
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

/// Completes soon after the flag is set.
pub async fn wait_for(stop: &Stop) {
    while !stop.is_set() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
