//! Opening and preparing the connections that carry the data.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::model::throughput::{PassOptions, SocketFacts};
use crate::sys;
use crate::units::{BitRate, ByteRate, ByteSize};

/// The largest value that Linux takes for `TCP_MAXSEG` (`MAX_TCP_WINDOW`); a larger clamp would clamp nothing.
const LARGEST_CLAMP: u32 = 32_767;

/// The largest differentiated services code point: six bits (RFC 2474).
const LARGEST_DSCP: u8 = 63;

/// How a data connection is to be made.
///
/// `TCP_NODELAY` is left off: the sender always has more, so waiting for a full segment costs nothing and saves small ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SocketSpec {
    /// The largest segment in bytes, for a path that drops larger packets in silence; none leaves it to the system.
    pub mss_clamp: Option<u32>,
    /// The same for a connection that is of use without it too, where the system does not take it (Windows; macOS and the BSDs take
    /// no more than their own default, 512 and 536, before the handshake).
    pub mss_wish: Option<u32>,
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
/// Refused, unreachable or not answered within `timeout`; a clamp that the system does not take, or an address of this end that it
/// does not have, since without them the pass would measure something else.
pub fn connect(addr: SocketAddr, spec: &SocketSpec, timeout: Duration) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))
        .map_err(|error| explain(&error, "open a TCP socket", &addr))?;
    clamp(&socket, spec).map_err(|error| explain(&error, "limit the segment size of a connection", &addr))?;
    if let Some(bytes) = spec.mss_wish {
        let _ = sys::tcp::set_max_segment(&socket, bytes);
    }
    wish(&socket, &spec.options);
    if let Some(own) = spec.bind {
        socket
            .bind(&SocketAddr::new(own, 0).into())
            .map_err(|error| explain(&error, &format!("use {own} for a connection"), &addr))?;
    }
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
    wish(&socket, &spec.options);
    clamp(&socket, spec)
        .map_err(|error| io::Error::new(error.kind(), format!("failed to limit the segment size of a listener: {error}")))
}

/// Sets on an accepted connection what can still be set: all of the options. The segment size was settled by the handshake,
/// where the connecting end's clamp holds for both directions; and the window scale was, from the system's largest buffer.
pub fn adopt(stream: &TcpStream, spec: &SocketSpec) {
    wish(&SockRef::from(stream), &spec.options);
}

/// The congestion control to measure with: CUBIC. A system that does not have it, or does not let this user choose it (where it
/// is missing in `tcp_allowed_congestion_control`), keeps its own, and the result says which ran.
///
/// CUBIC is what nearly every NAS and PC runs, so its figure is the one that copies will see; BBR paces by its own model of the path
/// and on a fast LAN gives less than the path can carry, which would be read as a slow path. Two runs compare only with one
/// and the same.
pub const CAPACITY_CONGESTION: &str = "cubic";

/// Asks for what is not in use already; a refusal is no failure, and [`facts`] tells it.
fn wish(socket: &Socket, options: &PassOptions) {
    if let Some(name) = &options.congestion
        && sys::tcp::congestion(socket).ok().as_ref() != Some(name)
    {
        let _ = sys::tcp::set_congestion(socket, name);
    }
    // Before the handshake, so that the first window is already the one that was asked for.
    if let Some(bytes) = options.window_bytes {
        let wanted = usize::try_from(bytes.min(i32::MAX.unsigned_abs())).unwrap_or(usize::MAX);
        let _ = socket.set_send_buffer_size(wanted);
        let _ = socket.set_recv_buffer_size(wanted);
    }
    if let Some(rate) = options.pacing_bps {
        let _ = sys::tcp::set_pacing(socket, rate.bytes().0.max(1));
    }
    if let Some(dscp) = options.dscp {
        let _ = sys::tcp::set_dscp(socket, dscp.min(LARGEST_DSCP));
    }
}

/// Which end of a pass a socket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It sends.
    Sender,
    /// It receives.
    Receiver,
}

/// What the kernel granted of `options` on a prepared socket, read back from it, and what it refused: one sentence each.
///
/// Pacing and congestion control are the sender's matter; the code point is of what this end sends, which at the receiver is the acknowledgements.
pub fn facts(socket: &Socket, options: &PassOptions, end: End) -> SocketFacts {
    let mut facts = SocketFacts::default();
    if let Some(asked) = options.window_bytes {
        let (name, size) = match end {
            End::Sender => ("send", socket.send_buffer_size()),
            End::Receiver => ("receive", socket.recv_buffer_size()),
        };
        facts.buffer_bytes = size.as_ref().ok().map(|bytes| ByteSize(*bytes as u64));
        match size {
            Ok(bytes) if bytes as u64 / sys::tcp::BUFFER_FACTOR >= asked.into() => {}
            Ok(bytes) => facts.refused.push(format!(
                "A {name} buffer of {asked} bytes was asked for and the system granted {}; it sets a limit ({}).",
                bytes as u64 / sys::tcp::BUFFER_FACTOR,
                if end == End::Sender { "net.core.wmem_max" } else { "net.core.rmem_max" },
            )),
            Err(error) => facts.refused.push(format!("The size of the {name} buffer cannot be read: {error}.")),
        }
    }
    if let (Some(asked), End::Sender) = (options.pacing_bps, end) {
        pacing(socket, asked, &mut facts);
    }
    if let Some(asked) = options.dscp {
        let asked = asked.min(LARGEST_DSCP);
        match sys::tcp::dscp(socket) {
            Ok(granted) => {
                facts.dscp = Some(granted);
                if granted != asked {
                    facts.refused.push(format!("The code point {asked} was asked for and the system sends with {granted}."));
                }
            }
            Err(error) => facts.refused.push(format!("The code point {asked} cannot be set: {error}.")),
        }
    }
    if let (Some(asked), End::Sender) = (&options.congestion, end) {
        match sys::tcp::congestion(socket) {
            Ok(ran) if ran == *asked => {}
            Ok(ran) => facts.refused.push(format!(
                "The congestion control {asked} was asked for and {ran} ran: the system lacks it, or does not let this user choose it."
            )),
            Err(error) => facts.refused.push(format!("The congestion control {asked} cannot be chosen: {error}.")),
        }
    }
    facts
}

/// Asks once more, since only the attempt gives the reason.
fn pacing(socket: &Socket, asked: BitRate, facts: &mut SocketFacts) {
    let granted = sys::tcp::set_pacing(socket, asked.bytes().0.max(1)).and_then(|()| sys::tcp::pacing(socket));
    match granted {
        Ok(Some(rate)) => {
            let rate = ByteRate(rate).bits();
            facts.pacing_bps = Some(rate);
            // Less than a byte a second is lost in the kernel's unit.
            if rate.0.abs_diff(asked.0) > 8 {
                facts.refused.push(format!("Pacing to {asked} a stream was asked for and the system paces to {rate}."));
            }
        }
        Ok(None) => facts.refused.push(format!("Pacing to {asked} a stream was asked for and the system does not pace.")),
        Err(error) => facts.refused.push(format!("Streams cannot be paced to {asked}: {error}.")),
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

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    fn asked() -> PassOptions {
        PassOptions {
            congestion: Some("reno".into()),
            window_bytes: Some(65_536),
            pacing_bps: Some(BitRate(8_000_000)),
            dscp: Some(46),
            ..PassOptions::default()
        }
    }

    /// A connection with these options at both ends.
    fn pair(options: &PassOptions) -> (TcpStream, TcpStream) {
        let spec = SocketSpec { options: options.clone(), ..SocketSpec::default() };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = connect(listener.local_addr().unwrap(), &spec, PATIENCE).unwrap();
        let (far, _) = listener.accept().unwrap();
        adopt(&far, &spec);
        (near, far)
    }

    #[test]
    fn nothing_asked_is_nothing_told() {
        let (near, far) = pair(&PassOptions::default());
        for (stream, end) in [(&near, End::Sender), (&far, End::Receiver)] {
            assert_eq!(facts(&SockRef::from(stream), &PassOptions::default(), end), SocketFacts::default());
        }
    }

    #[test]
    fn every_wish_is_granted_or_refused_in_a_sentence() {
        let (near, far) = pair(&asked());
        let sender = facts(&SockRef::from(&near), &asked(), End::Sender);
        let receiver = facts(&SockRef::from(&far), &asked(), End::Receiver);
        for told in [&sender, &receiver] {
            assert!(told.buffer_bytes.is_some_and(|bytes| bytes.0 >= 65_536), "{told:?}");
            assert!(told.dscp == Some(46) || told.refused.iter().any(|why| why.contains("code point")), "{told:?}");
            assert!(told.refused.iter().all(|why| why.ends_with('.')), "{told:?}");
        }
        assert!(sender.pacing_bps.is_some() || sender.refused.iter().any(|why| why.contains("paced")), "{sender:?}");
        assert_eq!(receiver.pacing_bps, None);
    }

    #[cfg(all(target_os = "linux", not(feature = "portable")))]
    #[test]
    fn what_cannot_be_is_refused() {
        let options = PassOptions { congestion: Some("nosuch".into()), window_bytes: Some(u32::MAX), ..PassOptions::default() };
        let (near, far) = pair(&options);
        let sender = facts(&SockRef::from(&near), &options, End::Sender);
        assert!(sender.refused.iter().any(|why| why.contains("nosuch")), "{sender:?}");
        assert!(sender.refused.iter().any(|why| why.contains("wmem_max")), "{sender:?}");
        let receiver = facts(&SockRef::from(&far), &options, End::Receiver);
        assert!(receiver.refused.iter().any(|why| why.contains("rmem_max")), "{receiver:?}");
    }

    #[test]
    fn the_own_address_is_used_or_named_in_the_error() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let from = |own: IpAddr| connect(addr, &SocketSpec { bind: Some(own), ..SocketSpec::default() }, PATIENCE);
        assert_eq!(from(Ipv4Addr::LOCALHOST.into()).unwrap().local_addr().unwrap().ip(), Ipv4Addr::LOCALHOST);
        // A documentation address (RFC 5737), which no interface has.
        let error = from(Ipv4Addr::new(192, 0, 2, 77).into()).unwrap_err();
        assert!(error.to_string().starts_with("failed to use 192.0.2.77 for a connection to 127.0.0.1:"), "{error}");
    }
}
