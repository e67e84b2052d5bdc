//! The greeting in front of every TCP connection, in the clear: who we are and what the connection is for.
//!
//! ```text
//! 0        8      10     12     13      16
//! WEAKLINK major  minor  kind   0 0 0          (big endian; a data connection's 16-byte token follows)
//! ```

use super::message::Token;

/// The port for TCP and UDP when none is given; next to iperf3's 5201, not assigned to anything.
pub const DEFAULT_PORT: u16 = 5210;

/// The first bytes of every connection.
const MAGIC: [u8; 8] = *b"WEAKLINK";

/// The size of a greeting.
pub const HELLO_LEN: usize = 16;

/// The version of the control protocol. Ends with different major numbers do not understand each other.
pub const PROTOCOL: ProtocolVersion = ProtocolVersion { major: 3, minor: 2 };

/// A version of the control protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolVersion {
    /// Grows when an old end would misunderstand.
    pub major: u16,
    /// Grows when something is added.
    pub minor: u16,
}

/// What a greeting says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Client: this is the control connection.
    Control = 1,
    /// Client: this is a data connection; a token follows.
    Data = 2,
    /// Agent: go on.
    Welcome = 3,
    /// Agent: our versions do not fit; mine is in this greeting.
    OtherVersion = 4,
    /// Agent: the pairing code is wrong.
    WrongCode = 5,
    /// Agent: too many connections that did not say who they are; try again.
    Overloaded = 6,
}

/// A greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The version of the end that greets.
    pub version: ProtocolVersion,
    /// What it says.
    pub kind: Kind,
}

/// Bytes that are no greeting of weaklink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    /// Somebody else's protocol.
    #[error("the other end does not speak weaklink's protocol")]
    Foreign,
    /// A greeting of an unknown kind.
    #[error("the other end greets in a way that this version does not know")]
    UnknownKind,
}

impl Hello {
    /// A greeting of this version.
    pub const fn new(kind: Kind) -> Self {
        Self { version: PROTOCOL, kind }
    }

    /// The bytes.
    pub fn encode(self) -> [u8; HELLO_LEN] {
        let mut bytes = [0; HELLO_LEN];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&self.version.major.to_be_bytes());
        bytes[10..12].copy_from_slice(&self.version.minor.to_be_bytes());
        bytes[12] = self.kind as u8;
        bytes
    }

    /// Reads the bytes.
    pub fn decode(bytes: &[u8; HELLO_LEN]) -> Result<Self, HelloError> {
        if bytes[..8] != MAGIC {
            return Err(HelloError::Foreign);
        }
        let kind = match bytes[12] {
            1 => Kind::Control,
            2 => Kind::Data,
            3 => Kind::Welcome,
            4 => Kind::OtherVersion,
            5 => Kind::WrongCode,
            6 => Kind::Overloaded,
            _ => return Err(HelloError::UnknownKind),
        };
        let version = ProtocolVersion {
            major: u16::from_be_bytes([bytes[8], bytes[9]]),
            minor: u16::from_be_bytes([bytes[10], bytes[11]]),
        };
        Ok(Self { version, kind })
    }

    /// The greeting of a data connection with its token.
    pub fn data(token: &Token) -> [u8; HELLO_LEN + 16] {
        let mut bytes = [0; HELLO_LEN + 16];
        bytes[..HELLO_LEN].copy_from_slice(&Self::new(Kind::Data).encode());
        bytes[HELLO_LEN..].copy_from_slice(&token.0);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greetings_survive_the_trip() {
        for kind in [Kind::Control, Kind::Data, Kind::Welcome, Kind::OtherVersion, Kind::WrongCode, Kind::Overloaded] {
            assert_eq!(Hello::decode(&Hello::new(kind).encode()), Ok(Hello::new(kind)));
        }
    }

    #[test]
    fn foreign_bytes_are_told_from_ours() {
        assert_eq!(Hello::decode(b"SSH-2.0-OpenSSH_"), Err(HelloError::Foreign));
        let mut bytes = Hello::new(Kind::Control).encode();
        bytes[12] = 99;
        assert_eq!(Hello::decode(&bytes), Err(HelloError::UnknownKind));
    }
}
