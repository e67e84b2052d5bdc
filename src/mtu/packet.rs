//! Our UDP datagrams, bytes to meaning and back; pure.
//!
//! One layout for all, big-endian: magic (4), version (1), kind (1), token of the session (16), sequence (4),
//! size (4), and behind it padding whose content nobody reads.

use std::net::IpAddr;

/// Begins every datagram of ours.
const MAGIC: [u8; 4] = *b"WLmt";

/// The version of the layout.
const VERSION: u8 = 1;

/// The bytes of a datagram without padding.
pub(crate) const HEADER: usize = 30;

/// The secret that both ends of a session know from the control connection.
pub type Token = [u8; 16];

/// What a datagram is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The client asks for a session's path.
    Hello,
    /// The agent has set it up.
    HelloAck,
    /// A packet of an exact size.
    Probe,
    /// A probe of the stated size arrived.
    Ack,
    /// A small packet that wants to come back.
    Echo,
    /// It came back.
    EchoReply,
}

impl Kind {
    const ALL: [(Self, u8); 6] =
        [(Self::Hello, 1), (Self::HelloAck, 2), (Self::Probe, 3), (Self::Ack, 4), (Self::Echo, 5), (Self::EchoReply, 6)];

    fn code(self) -> u8 {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or(0, |(_, code)| *code)
    }

    fn of(code: u8) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == code).map(|(kind, _)| *kind)
    }
}

/// The version of IP, which decides the size of the headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// 20 bytes of header.
    V4,
    /// 40 bytes of header.
    V6,
}

impl Family {
    /// The version that carries datagrams to `address`; one mapped into IPv6 travels by IPv4.
    pub(crate) fn of(address: IpAddr) -> Self {
        if address.to_canonical().is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// The bytes of the headers of IP and UDP: 20 + 8 (RFC 791, no options) or 40 + 8 (RFC 8200), RFC 768.
    pub(crate) const fn headers(self) -> u32 {
        match self {
            Self::V4 => 28,
            Self::V6 => 48,
        }
    }

    /// The largest packet: IPv4 counts its header in the 16-bit length, IPv6 does not.
    pub(crate) const fn largest(self) -> u32 {
        match self {
            Self::V4 => 65_535,
            Self::V6 => 65_575,
        }
    }

    /// The smallest packet that can hold a probe; 68 is what every IPv4 link must carry (RFC 791).
    pub(crate) const fn smallest(self) -> u32 {
        match self {
            Self::V4 => 68,
            Self::V6 => 88,
        }
    }

    /// The least MTU that a router can honestly name: RFC 791 and RFC 8200.
    pub(crate) const fn least_mtu(self) -> u32 {
        match self {
            Self::V4 => 68,
            Self::V6 => 1280,
        }
    }
}

/// One datagram, padding aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    /// What it is for.
    pub(crate) kind: Kind,
    /// Which session it belongs to.
    pub(crate) token: Token,
    /// Which one it is, or which one it answers.
    pub(crate) sequence: u32,
    /// The size in bytes of the IP packet that is meant: of this probe, or of the one that arrived; else zero.
    pub(crate) size: u32,
}

impl Packet {
    /// The datagram without padding.
    pub(crate) fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let fields = MAGIC
            .into_iter()
            .chain([VERSION, self.kind.code()])
            .chain(self.token)
            .chain(self.sequence.to_be_bytes())
            .chain(self.size.to_be_bytes());
        for (place, byte) in bytes.iter_mut().zip(fields) {
            *place = byte;
        }
        bytes
    }

    /// Reads the beginning of a datagram; none for whatever is not ours.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk::<4>()?;
        let ([version, kind], rest) = rest.split_first_chunk::<2>()?;
        let (token, rest) = rest.split_first_chunk::<16>()?;
        let (sequence, rest) = rest.split_first_chunk::<4>()?;
        let (size, _) = rest.split_first_chunk::<4>()?;
        if *magic != MAGIC || *version != VERSION {
            return None;
        }
        Some(Self {
            kind: Kind::of(*kind)?,
            token: *token,
            sequence: u32::from_be_bytes(*sequence),
            size: u32::from_be_bytes(*size),
        })
    }
}

/// A probe of which the whole IP packet is `packet.size` bytes long; `padding` gives the content behind the header.
///
/// None when no probe can have that size or the padding does not suffice.
pub(crate) fn probe(packet: &Packet, family: Family, padding: &[u8]) -> Option<Vec<u8>> {
    if packet.size > family.largest() {
        return None;
    }
    let payload = packet.size.checked_sub(family.headers())? as usize;
    let mut bytes = Vec::with_capacity(payload);
    bytes.extend(packet.encode());
    bytes.extend(padding.get(..payload.checked_sub(HEADER)?)?);
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn probes_fill_the_ip_packet_to_the_byte() {
        let padding = vec![7; 65_536];
        for (family, size, payload) in [
            (Family::V4, 1500, Some(1472)),
            (Family::V6, 1500, Some(1452)),
            (Family::V4, 65_535, Some(65_507)),
            (Family::V6, 65_575, Some(65_527)),
            (Family::V4, 68, Some(40)),
            (Family::V6, 88, Some(40)),
            (Family::V4, 57, None),
            (Family::V4, 0, None),
            (Family::V4, 65_536, None),
        ] {
            let packet = Packet { kind: Kind::Probe, token: [1; 16], sequence: 9, size };
            let bytes = probe(&packet, family, &padding);
            assert_eq!(bytes.as_ref().map(Vec::len), payload, "{family:?} {size}");
            if let Some(bytes) = bytes {
                assert_eq!(Packet::decode(&bytes), Some(packet));
            }
        }
    }

    #[test]
    fn what_is_not_ours_is_not_read() {
        let good = Packet { kind: Kind::Echo, token: [3; 16], sequence: 1, size: 0 }.encode();
        for (name, at, byte) in [("another magic", 0, 0), ("another version", 4, 2), ("no kind", 5, 0), ("a new kind", 5, 9)] {
            let mut bytes = good;
            bytes[at] = byte;
            assert_eq!(Packet::decode(&bytes), None, "{name}");
        }
        for length in 0..HEADER {
            assert_eq!(Packet::decode(&good[..length]), None, "{length} bytes");
        }
    }

    proptest! {
        #[test]
        fn a_packet_survives_the_wire(kind in 0usize..6, token: [u8; 16], sequence: u32, size: u32, tail: Vec<u8>) {
            let packet = Packet { kind: Kind::ALL[kind].0, token, sequence, size };
            let mut bytes = packet.encode().to_vec();
            bytes.extend(tail);
            prop_assert_eq!(Packet::decode(&bytes), Some(packet));
        }

        #[test]
        fn random_bytes_never_panic(mut bytes: Vec<u8>, ours: bool) {
            if ours {
                bytes.splice(0..0, MAGIC);
            }
            if let Some(packet) = Packet::decode(&bytes) {
                prop_assert_eq!(&packet.encode()[..], &bytes[..HEADER]);
            }
        }
    }
}
