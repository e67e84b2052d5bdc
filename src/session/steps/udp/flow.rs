//! How the flow of datagrams is opened: a hello with a token, and its acknowledgement over the control connection.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use super::AtAgent;
use crate::model::outcome::Outcome;
use crate::mtu;
use crate::session::client::{ClientSession, unexpected};
use crate::session::error::SessionError;
use crate::session::served::{AgentSession, blocking, random_token};
use crate::sys::Stop;
use crate::wire::message::UdpInvitation;
use crate::wire::{Reply, Request, Token};

/// How long the agent waits for the hello: forty of them.
const HELLO_WAIT: Duration = Duration::from_secs(2);

/// How often the hello is said.
pub(super) const HELLO_EVERY: Duration = Duration::from_millis(50);

/// A way for a client to come in.
#[derive(Debug)]
pub(super) enum Door {
    /// Through the agent's own port.
    Listener(mtu::Expected<UdpSocket>),
    /// Through a port of its own.
    Own(UdpSocket, Token),
}

/// The agent's side: prepares for a flow.
pub fn open_at_agent(session: &mut AgentSession, own_port: bool) -> Reply {
    session.datagrams = AtAgent::default();
    Reply::UdpFlow(prepare(session, own_port).into())
}

fn prepare(session: &mut AgentSession, own_port: bool) -> Result<UdpInvitation, String> {
    let token = random_token().map_err(|error| error.to_string())?;
    let (door, port) = match session.listener() {
        Ok(listener) if !own_port => (Door::Listener(listener.expect_socket(token.0)), listener.address().port()),
        _ => {
            let mut local = session.local;
            local.set_port(0);
            let socket = UdpSocket::bind(local).map_err(|error| format!("cannot open a UDP port at {}: {error}", local.ip()))?;
            let port = socket.local_addr().map_err(|error| error.to_string())?.port();
            (Door::Own(socket, token), port)
        }
    };
    session.datagrams.door = Some(door);
    Ok(UdpInvitation { token, port })
}

/// The agent's side: waits for the hello.
pub async fn arrived_at_agent(session: &mut AgentSession) -> Reply {
    let Some(door) = session.datagrams.door.take() else {
        return Reply::UdpArrived(Outcome::failed("no flow of datagrams was asked for"));
    };
    let stop = session.stop.clone();
    let came = blocking(move || match door {
        Door::Listener(expected) => expected.wait(HELLO_WAIT, &stop),
        Door::Own(socket, token) => mtu::await_hello(&socket, token.0, HELLO_WAIT, &stop).map(|()| socket),
    });
    let socket: Outcome<UdpSocket> = came.await.and_then(|socket| same_host(socket, session.peer.ip())).into();
    Reply::UdpArrived(socket.map(|socket| session.datagrams.socket = Some(Arc::new(socket))))
}

/// A hello can carry any sender's address, the control connection cannot: nobody can direct a flood to a third host.
fn same_host(socket: UdpSocket, client: IpAddr) -> std::io::Result<UdpSocket> {
    let came_from = socket.peer_addr()?.ip().to_canonical();
    if came_from == client.to_canonical() {
        return Ok(socket);
    }
    let text = format!(
        "the hello came from {came_from} and the session from {client}: a translation of addresses on the way is in between"
    );
    Err(std::io::Error::new(std::io::ErrorKind::PermissionDenied, text))
}

/// Opens the flow: on the agent's port, or where that does not work on a free one.
pub(super) async fn open(session: &mut ClientSession) -> Result<Result<Arc<UdpSocket>, String>, SessionError> {
    let mut reasons = Vec::new();
    for own_port in [false, true] {
        let invitation = match session.ask(Request::UdpFlow { own_port }).await? {
            Reply::UdpFlow(Outcome::Measured(invitation)) => invitation,
            Reply::UdpFlow(Outcome::Skipped(why) | Outcome::Failed(why)) => {
                reasons.push(why.reason);
                continue;
            }
            other => return Err(unexpected(&other)),
        };
        let mut peer = session.peer;
        peer.set_port(invitation.port);
        let socket = match socket_towards(peer, session.settings.bind) {
            Ok(socket) => Arc::new(socket),
            Err(error) => return Ok(Err(format!("cannot open a UDP socket towards {peer}: {error}"))),
        };
        let (hello, told) = (Arc::clone(&socket), Stop::new());
        let saying = {
            let (told, stop) = (told.clone(), session.stop.clone());
            tokio::spawn(blocking(move || keep_saying(&hello, invitation.token, &told, &stop)))
        };
        let reply = session.ask(Request::UdpArrived).await;
        told.set();
        // It only ends.
        let _ = saying.await;
        match reply? {
            Reply::UdpArrived(Outcome::Measured(())) => return Ok(Ok(socket)),
            Reply::UdpArrived(Outcome::Skipped(why) | Outcome::Failed(why)) => {
                reasons.push(format!("UDP port {}: {}", invitation.port, why.reason));
            }
            other => return Err(unexpected(&other)),
        }
    }
    Ok(Err(format!(
        "no datagram of the PC reaches the NAS ({}); a firewall on the way or at the NAS may drop them",
        reasons.join("; ")
    )))
}

fn socket_towards(peer: SocketAddr, own: Option<IpAddr>) -> std::io::Result<UdpSocket> {
    let any: IpAddr = if peer.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let socket = UdpSocket::bind(SocketAddr::new(own.unwrap_or(any), 0))?;
    socket.connect(peer)?;
    Ok(socket)
}

fn keep_saying(socket: &UdpSocket, token: Token, told: &Stop, stop: &Stop) {
    let most = HELLO_WAIT.as_millis() / HELLO_EVERY.as_millis() + 10;
    for sequence in 0..u32::try_from(most).unwrap_or(0) {
        if told.is_set() || stop.is_set() {
            return;
        }
        // One that does not leave is said again.
        let _ = mtu::say_hello(socket, token.0, sequence);
        std::thread::sleep(HELLO_EVERY);
    }
}
