//! Finding and reaching the agent.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use crate::session::error::SessionError;
use crate::throughput::{SocketSpec, connect};
use crate::wire::hello::DEFAULT_PORT;

/// The time for one address to answer.
const CONNECT: Duration = Duration::from_secs(5);

/// The largest segment of the control connection, so that it survives a black hole: with its headers it fits the 576 bytes that every
/// IPv4 host must take in (RFC 791). Its messages are a few kilobytes, so their number does not matter.
const CONTROL_MSS: u32 = 512;

/// A host as typed, with its port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Name or address.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// A text that names no host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no host: write HOST, HOST:PORT, an IPv6 address, or [IPv6]:PORT")]
pub struct TargetError {
    /// What was given.
    text: String,
}

impl std::str::FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text, DEFAULT_PORT)
    }
}

impl Target {
    /// Reads a host as typed; `usual` is the port where none is typed.
    pub fn parse(text: &str, usual: u16) -> Result<Self, TargetError> {
        let wrong = || TargetError { text: text.to_owned() };
        let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port != 0).ok_or_else(wrong);
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (host, tail) = rest.split_once(']').ok_or_else(wrong)?;
            match tail {
                "" => (host, usual),
                tail => (host, port(tail.strip_prefix(':').ok_or_else(wrong)?)?),
            }
        } else {
            match text.split_once(':') {
                Some((host, tail)) if !tail.contains(':') => (host, port(tail)?),
                _ => (text, usual),
            }
        };
        let fits = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '%');
        if host.is_empty() || host.starts_with('-') || !host.chars().all(fits) || host.contains(':') && !is_v6(host) {
            return Err(wrong());
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

fn is_v6(host: &str) -> bool {
    host.split('%').next().is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok())
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Which addresses of a host are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// All, in the order of the system.
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

impl Family {
    fn fits(self, address: &SocketAddr) -> bool {
        match self {
            Self::Any => true,
            Self::V4 => plain(address.ip()).is_ipv4(),
            Self::V6 => plain(address.ip()).is_ipv6(),
        }
    }
}

/// Whether nothing tells the interface of a link-local address; Windows then chooses one itself.
fn lacks_scope(address: &SocketAddr) -> bool {
    !cfg!(windows) && matches!(address, SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() && v6.scope_id() == 0)
}

/// The addresses of a host, those of the wanted family. Blocking.
pub fn resolve(target: &Target, family: Family) -> Result<Vec<SocketAddr>, SessionError> {
    let fault = |error| SessionError::Resolve { host: target.host.clone(), error };
    let resolved =
        std::net::ToSocketAddrs::to_socket_addrs(&(target.host.as_str(), target.port)).map_err(|error| {
            match target.host.split_once('%') {
                Some((_, scope)) => {
                    fault(std::io::Error::new(ErrorKind::NotFound, format!("this host has no interface {scope} ({error})")))
                }
                None => fault(error),
            }
        })?;
    let addresses: Vec<SocketAddr> = resolved.filter(|address| family.fits(address)).take(8).collect();
    // A name may give other addresses beside those that nobody can connect to.
    let (unusable, addresses): (Vec<_>, Vec<_>) = addresses.into_iter().partition(lacks_scope);
    if addresses.is_empty() && !unusable.is_empty() {
        return Err(SessionError::NoScope { host: target.host.clone(), could: crate::link::link_local_interfaces() });
    }
    if addresses.is_empty() {
        let what = match family {
            Family::Any => "the name has no address",
            Family::V4 => "it has no IPv4 address, and -4 asks for one",
            Family::V6 => "it has no IPv6 address, and -6 asks for one",
        };
        return Err(fault(std::io::Error::new(ErrorKind::NotFound, what)));
    }
    Ok(addresses)
}

/// Connects to the first address of the host that answers. Blocking.
pub fn reach(target: &Target, family: Family, bind: Option<IpAddr>) -> Result<TcpStream, SessionError> {
    let mut addresses = resolve(target, family)?;
    // An address of ours decides the family.
    if let Some(own) = bind {
        addresses.retain(|address| plain(address.ip()).is_ipv4() == plain(own).is_ipv4());
    }
    let spec = SocketSpec { mss_wish: Some(CONTROL_MSS), bind, ..SocketSpec::default() };
    let mut last = None;
    for address in addresses {
        match connect(address, &spec, CONNECT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = Some((address, error)),
        }
    }
    let Some((address, error)) = last else {
        let what = bind.map_or("the name has no address".to_owned(), |own| {
            format!("it has no address of the family of {own}, which --bind asks for")
        });
        let error = std::io::Error::new(ErrorKind::NotFound, what);
        return Err(SessionError::Resolve { host: target.host.clone(), error });
    };
    let address_text = address.to_string();
    Err(match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => {
            SessionError::Silent { address: address_text, port: address.port(), seconds: CONNECT.as_secs() }
        }
        ErrorKind::ConnectionRefused => SessionError::Refused { address: address_text },
        kind => {
            // The error names the act and the address, as the sentence around it does.
            let text = error.to_string();
            let text = text.strip_prefix(&format!("failed to connect to {address}: ")).unwrap_or(&text);
            let advice = match kind {
                ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => match crate::link::dead_port(address) {
                    Some(port) => format!("; {port}, by which the route leaves, has no link: is its cable plugged in?"),
                    None => "; is the address right, and the NAS on?".to_owned(),
                },
                _ => String::new(),
            };
            SessionError::Connect { address: address_text, error: std::io::Error::new(kind, format!("{text}{advice}")) }
        }
    })
}

/// An address without the mapping of IPv4 into IPv6.
pub const fn plain(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// A socket address without the mapping of IPv4 into IPv6.
pub const fn plain_socket(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(v4) => SocketAddr::new(IpAddr::V4(v4), v6.port()),
            None => address,
        },
        SocketAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(not(windows))]
    fn a_link_local_address_without_its_interface_gets_one_sentence_and_a_number_is_an_interface() {
        let found = |text: &str| resolve(&text.parse().unwrap(), Family::Any);
        let why = found("fe80::1").unwrap_err().to_string();
        assert!(why.contains("write the interface behind it, as in fe80::1%"), "{why}");
        let scoped = found("[fe80::1%1]:81").unwrap();
        assert!(matches!(scoped.as_slice(), [SocketAddr::V6(v6)] if v6.scope_id() == 1), "{scoped:?}");
    }

    #[test]
    fn hosts_are_read_as_people_type_them() {
        for (text, host, port) in [
            ("nas", "nas", DEFAULT_PORT),
            ("nas.local:5300", "nas.local", 5300),
            ("192.0.2.7", "192.0.2.7", DEFAULT_PORT),
            ("192.0.2.7:80", "192.0.2.7", 80),
            ("[2001:db8::7]:81", "2001:db8::7", 81),
            ("2001:db8::7", "2001:db8::7", DEFAULT_PORT),
            ("fe80::1%eth0", "fe80::1%eth0", DEFAULT_PORT),
            ("[fe80::1%eth0.10]:81", "fe80::1%eth0.10", 81),
            ("fe80::1%3", "fe80::1%3", DEFAULT_PORT),
        ] {
            assert_eq!(text.parse(), Ok(Target { host: host.to_owned(), port }), "{text}");
        }
        for bad in ["", "nas:", "nas:0", "nas:99999", "[::1", "[::1]x", "-oProxy", "a b", "a:b:c", "http://nas"] {
            assert!(bad.parse::<Target>().is_err(), "{bad}");
        }
    }
}
