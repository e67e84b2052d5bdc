//! What an ordinary TCP service of the other end tells of the path: its kernel takes part in every handshake and
//! acknowledges every segment, whether or not an agent runs there.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use self::content::Content;
use self::info::Info;
use super::endpoint::canonical;
use crate::model::Outcome;
use crate::model::mtu::{ServicePath, ServiceProbe, TcpEnd};
use crate::sys::{Stop, tcp};
use crate::units::{Elapsed, Mtu};

mod content;
mod info;

/// The services that copy files to a NAS, for [`services`].
pub const FILE_SERVICES: [(u16, Option<&str>); 3] = [(445, Some("SMB")), (2049, Some("NFS")), (22, Some("SSH"))];

/// How many services are asked at once.
const MOST_AT_ONCE: usize = 8;

/// How long an acknowledgement is awaited: Linux repeats a segment after 0.2, 0.6 and 1.4 s (its least timeout, doubled each
/// time), so within this time it vanished three times.
const CONFIRMATION: Duration = Duration::from_millis(1100);

/// How often the kernel is asked whether the segment was acknowledged, or the connection made.
const POLL: Duration = Duration::from_millis(2);

/// The first part of a connection's making, after which `stop` is heeded.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// How long the service may take to close its end, so that nothing is left over to be reset.
const FAREWELL: Duration = Duration::from_millis(300);

/// Room for a segment of any size, so that it leaves in one piece.
const SEND_BUFFER: usize = 1 << 18;

/// The most that is read while the service closes: greetings are a few kilobytes.
const MOST_FAREWELL: usize = 1 << 20;

/// Connects to TCP services of the host at `peer` (its port is not heeded) and tells what each connection says of the path.
///
/// `ports` are ports with the names of their services, where known; [`FILE_SERVICES`] are the usual ones. For each, a
/// connection without any clamp of ours is made within `timeout`, our own end is read, and one segment as large as the two
/// ends agreed on is sent, which may not be fragmented; then `CONFIRMATION` is waited for the acknowledgement. Where a router
/// honestly says that it is too large, the kernel sends it again in smaller ones: that shows as acknowledged with a smaller
/// `pmtu_after`.
///
/// What is sent is chosen to mean nothing, to leave no trace beyond one connection, and to need no login:
/// - SSH: our identification with the comment that this is a probe, `SSH_MSG_IGNORE` messages (RFC 4253, 11.2), and
///   `SSH_MSG_DISCONNECT` "by application"; a server logs a connection that left before logging in.
/// - SMB: session keep-alives (RFC 1002, 4.3.6), which are ignored.
/// - NFS: one call of the procedure NULL (RFC 1813, 3.3.0), as every mount makes, followed by zeros that it does not read.
/// - Services under any other name or none: nothing; only the handshake tells.
///
/// The connection is closed in order where the segment was acknowledged, and reset where not: otherwise the kernel would
/// send it again for minutes, and the service would wait for it.
///
/// One result for each port, in the same order: skipped where nobody listens, where the system does not tell, and when
/// `stop` was set; failed where nothing answers.
pub fn services(peer: SocketAddr, ports: &[(u16, Option<&str>)], timeout: Duration, stop: &Stop) -> Vec<ServiceProbe> {
    let peer = canonical(peer);
    let mut probes = Vec::with_capacity(ports.len());
    for part in ports.chunks(MOST_AT_ONCE) {
        thread::scope(|scope| {
            let start = |(port, name): &(u16, Option<&str>)| {
                let (port, name) = (*port, name.map_or_else(|| known_name(*port), |name| Some(name.to_owned())));
                let content = Content::of(name.as_deref());
                let address = SocketAddr::new(peer.ip(), port);
                let address = with_scope(address, peer);
                let thread = thread::Builder::new().name("mtu-service".into());
                (port, name, thread.spawn_scoped(scope, move || probe(address, content, timeout, stop)))
            };
            let running: Vec<_> = part.iter().map(start).collect();
            probes.extend(running.into_iter().map(|(port, service, thread)| {
                let result = match thread.map(thread::ScopedJoinHandle::join) {
                    Ok(Ok(result)) => result,
                    Ok(Err(_)) => Outcome::failed("the thread that asked this service ended unexpectedly"),
                    Err(error) => Outcome::failed(format!("the system starts no thread to ask this service: {error}")),
                };
                ServiceProbe { port, service, result }
            }));
        });
    }
    probes
}

/// How this end of a TCP connection sees it, both sizes of segments and the path MTU; for either end.
///
/// Skipped where the system has no `TCP_INFO`; failed when the kernel's answer makes no sense.
pub fn tcp_end(stream: &TcpStream) -> Outcome<TcpEnd> {
    match read(stream) {
        Ok(info) => {
            info.end().map_or_else(|| Outcome::failed("the kernel's TCP_INFO names no size of segments"), Outcome::Measured)
        }
        Err(error) => untold(&error),
    }
}

fn known_name(port: u16) -> Option<String> {
    let known = FILE_SERVICES.iter().find(|(known, _)| *known == port)?;
    known.1.map(str::to_owned)
}

/// The address with the scope of a link-local `peer`.
fn with_scope(mut address: SocketAddr, peer: SocketAddr) -> SocketAddr {
    if let (SocketAddr::V6(address), SocketAddr::V6(peer)) = (&mut address, peer) {
        address.set_scope_id(peer.scope_id());
    }
    address
}

fn read(stream: &TcpStream) -> io::Result<Info> {
    let bytes = tcp::info(&SockRef::from(stream))?;
    Info::decode(&bytes).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the kernel's TCP_INFO is too short"))
}

fn untold<T>(error: &io::Error) -> Outcome<T> {
    match error.kind() {
        io::ErrorKind::Unsupported => Outcome::skipped(format!("what TCP makes of the path is not told here: {error}")),
        _ => Outcome::failed(format!("reading the figures of a TCP connection failed: {error}")),
    }
}

fn probe(peer: SocketAddr, content: Content, timeout: Duration, stop: &Stop) -> Outcome<ServicePath> {
    let start = Instant::now();
    let stream = match connect(peer, start + timeout, stop) {
        Ok(stream) => stream,
        Err(error) => return no_connection(peer, &error),
    };
    tcp_end(&stream).and_then(|end| {
        let headers = if peer.is_ipv4() { 20 + 20 } else { 40 + 20 };
        let mut path = ServicePath {
            end,
            pmtu_after: end.pmtu,
            packet: None,
            acknowledged: false,
            retransmits: 0,
            elapsed_us: Elapsed::from(start.elapsed()),
        };
        let segment = content.fill(end.send_mss_bytes as usize);
        let outcome = match &segment {
            None => Ok(true),
            Some(segment) => deliver(&stream, segment, stop).map(|delivery| {
                path.packet = Some(Mtu(end.granted_mss_bytes().saturating_add(headers)));
                path.acknowledged = delivery.acknowledged;
                path.retransmits = delivery.info.retransmits();
                path.pmtu_after = delivery.info.pmtu();
                path.elapsed_us = Elapsed::from(start.elapsed());
                delivery.acknowledged
            }),
        };
        match outcome {
            Ok(true) => part(&stream, stop),
            // The order to reset comes too late only where the connection is gone anyway.
            Ok(false) | Err(_) => drop(SockRef::from(&stream).set_linger(Some(Duration::ZERO))),
        }
        match outcome {
            Ok(_) => Outcome::Measured(path),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Outcome::skipped(error.to_string()),
            Err(error) => Outcome::failed(format!("the full-size segment to {peer} tells nothing: {error}")),
        }
    })
}

/// Makes a connection. Errors besides those of the network: `TimedOut`, and `Interrupted` when `stop` was set.
fn connect(peer: SocketAddr, deadline: Instant, stop: &Stop) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(peer), Type::STREAM, Some(Protocol::TCP))?;
    // The default of most systems; where it cannot be set, the default stays.
    let _ = tcp::forbid_fragments(&socket);
    let _ = socket.set_send_buffer_size(SEND_BUFFER);
    let _ = socket.set_tcp_nodelay(true);
    let patience = deadline.saturating_duration_since(Instant::now()).clamp(POLL, FIRST_WAIT);
    match socket.connect_timeout(&peer.into(), patience) {
        Ok(()) => return Ok(socket.into()),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
        Err(error) => return Err(error),
    }
    loop {
        if let Some(error) = socket.take_error()? {
            return Err(error);
        }
        if socket.peer_addr().is_ok() {
            return Ok(socket.into());
        }
        if stop.is_set() {
            return Err(stopped());
        }
        if Instant::now() >= deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        thread::sleep(POLL);
    }
}

fn stopped() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "asking the service was stopped before its end")
}

fn no_connection(peer: SocketAddr, error: &io::Error) -> Outcome<ServicePath> {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            Outcome::skipped(format!("nobody listens at TCP port {} of {}", peer.port(), peer.ip()))
        }
        io::ErrorKind::TimedOut => Outcome::failed(format!(
            "{peer} does not answer by TCP: a firewall drops the connection, or the host is gone; a firewall that lets TCP port \
             {} pass would change that",
            peer.port()
        )),
        io::ErrorKind::Interrupted => Outcome::skipped(error.to_string()),
        _ => Outcome::failed(format!("connecting to {peer} failed: {error}")),
    }
}

/// What became of a segment.
struct Delivery {
    acknowledged: bool,
    info: Info,
}

/// Sends one segment and waits for its acknowledgement. Errors: the service ended the connection before, or it took only a
/// part of the segment.
fn deliver(stream: &TcpStream, segment: &[u8], stop: &Stop) -> io::Result<Delivery> {
    let before = read(stream)?;
    stream.set_nonblocking(true)?;
    let deadline = Instant::now() + CONFIRMATION;
    let taken = (&mut &*stream).write(segment)?;
    if taken != segment.len() {
        return Err(io::Error::other(format!("the kernel took only {taken} of its {} bytes", segment.len())));
    }
    loop {
        let info = read(stream)?;
        if let Some(acknowledged) = info.has_acknowledged(&before, segment.len() as u64) {
            return Ok(Delivery { acknowledged, info });
        }
        if stop.is_set() {
            return Err(stopped());
        }
        if info.is_closed() {
            return Err(io::Error::other("the service ended the connection before it was acknowledged"));
        }
        if Instant::now() >= deadline {
            return Ok(Delivery { acknowledged: false, info });
        }
        thread::sleep(POLL);
    }
}

/// Says that no more comes and reads what the service still says: what is left unread would make the kernel reset the connection.
fn part(stream: &TcpStream, stop: &Stop) {
    let deadline = Instant::now() + FAREWELL;
    let mut buffer = [0; 4096];
    let mut left = MOST_FAREWELL;
    let ready = stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(FIRST_WAIT)));
    if ready.and_then(|()| stream.shutdown(Shutdown::Write)).is_err() {
        return;
    }
    while left > 0 && !stop.is_set() && Instant::now() < deadline {
        match (&mut &*stream).read(&mut buffer) {
            Ok(0) => return,
            Ok(length) => left = left.saturating_sub(length),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests;
