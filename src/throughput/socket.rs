//! Opening and preparing the connections that carry the data.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::model::throughput::PassOptions;
use crate::sys;

/// The largest value that Linux takes for `TCP_MAXSEG` (`MAX_TCP_WINDOW`); a larger clamp would clamp nothing.
const LARGEST_CLAMP: u32 = 32_767;

/// How a data connection is to be made.
///
/// `TCP_NODELAY` is left off: the sender always has more, so waiting for a full segment costs nothing and saves small ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SocketSpec {
    /// The largest segment in bytes, for a path that drops larger packets in silence; none leaves it to the system.
    pub mss_clamp: Option<u32>,
    /// The address of this end, where it has several; none leaves it to the route.
    pub bind: Option<IpAddr>,
    /// What is asked beside that: congestion control, buffers, pacing, code point. Wishes, since a system may refuse them; what came of
    /// them is told with the result.
    pub options: PassOptions,
}

impl SocketSpec {
    /// Only the congestion control is asked for.
    pub fn with_congestion(name: &str) -> Self {
        Self { options: PassOptions { congestion: Some(name.to_owned()), ..PassOptions::default() }, ..Self::default() }
    }
}

/// Opens a connection to `addr` with everything of `spec` set before the handshake.
///
/// # Errors
/// Refused, unreachable or not answered within `timeout`; or a clamp that the system does not take, since without it the
/// pass would measure something else.
pub fn connect(addr: SocketAddr, spec: &SocketSpec, timeout: Duration) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))
        .map_err(|error| explain(&error, "open a TCP socket", &addr))?;
    clamp(&socket, spec).map_err(|error| explain(&error, "limit the segment size of a connection", &addr))?;
    wish(&socket, spec);
    socket.connect_timeout(&addr.into(), timeout).map_err(|error| explain(&error, "connect", &addr))?;
    Ok(socket.into())
}

/// Sets `spec` on a listener, whose connections inherit it.
///
/// Better than [`adopt`] alone where the system's default is BBR: a connection that began with BBR keeps its pacing timers
/// when it changes to another congestion control (Linux 6.18 on loopback: 8.5 instead of 10.6 Gbit/s, and a quarter more processor time).
///
/// # Errors
/// A clamp that the system does not take.
pub fn prepare(listener: &TcpListener, spec: &SocketSpec) -> io::Result<()> {
    let socket = SockRef::from(listener);
    wish(&socket, spec);
    clamp(&socket, spec)
        .map_err(|error| io::Error::new(error.kind(), format!("failed to limit the segment size of a listener: {error}")))
}

/// Sets on an accepted connection what can still be set: the congestion control. The segment size was settled by the
/// handshake, where the connecting end's clamp holds for both directions.
pub fn adopt(stream: &TcpStream, spec: &SocketSpec) {
    wish(&SockRef::from(stream), spec);
}

/// The congestion control to measure with: CUBIC. A system that does not have it, or does not let this user choose it (where it
/// is missing in `tcp_allowed_congestion_control`), keeps its own, and the result says which ran.
///
/// CUBIC is what nearly every NAS and PC runs, so its figure is the one that copies will see; BBR paces by its own model of the path
/// and on a fast LAN gives less than the path can carry, which would be read as a slow path. Two runs compare only with one
/// and the same.
pub const CAPACITY_CONGESTION: &str = "cubic";

/// Asks for the congestion control unless it is in use already; a refusal is no failure.
fn wish(socket: &Socket, spec: &SocketSpec) {
    if let Some(name) = &spec.options.congestion
        && sys::tcp::congestion(socket).ok().as_ref() != Some(name)
    {
        let _ = sys::tcp::set_congestion(socket, name);
    }
}

fn clamp(socket: &Socket, spec: &SocketSpec) -> io::Result<()> {
    spec.mss_clamp.map_or(Ok(()), |bytes| sys::tcp::set_max_segment(socket, bytes.min(LARGEST_CLAMP)))
}

/// An error that names the act and the other party.
pub(super) fn explain(error: &io::Error, act: &str, party: &SocketAddr) -> io::Error {
    io::Error::new(error.kind(), format!("failed to {act} to {party}: {error}"))
}

/// The other end of a connection for messages; its own word when the connection is already gone.
pub(super) fn party(stream: &TcpStream) -> String {
    stream.peer_addr().map_or_else(|_| "a peer that has gone".to_owned(), |addr| addr.to_string())
}
