//! ICMP echo requests of an exact size, the answers to them, and the errors that quote them; pure.
//!
//! The content of a request: a random cookie (16 bytes), its sequence (4) and the size of its IP packet (4), big-endian, then
//! padding. An answer counts only when it brings all of that back: a host that cuts large answers short carries nothing.

use std::net::IpAddr;

use pnet::packet::Packet as _;
use pnet::packet::icmp::destination_unreachable::{DestinationUnreachablePacket, IcmpCodes::FragmentationRequiredAndDFFlagSet};
use pnet::packet::icmp::echo_reply::EchoReplyPacket;
use pnet::packet::icmp::echo_request::{EchoRequestPacket, MutableEchoRequestPacket};
use pnet::packet::icmp::{IcmpPacket, IcmpType, IcmpTypes, checksum};
use pnet::packet::icmpv6::{Icmpv6Packet, Icmpv6Types};
use pnet::packet::ip::IpNextHeaderProtocols;
use pnet::packet::ipv4::Ipv4Packet;
use pnet::packet::ipv6::Ipv6Packet;

use super::packet::Family;
use crate::pattern::Pattern;

/// The header of echo requests: type, code, checksum, identifier, sequence (RFC 792, RFC 4443); as long as that of UDP.
pub(crate) const ECHO_HEADER: usize = 8;

/// Cookie, sequence, size.
const MARK: usize = 24;

/// A random number that only our own requests carry.
pub(crate) type Cookie = [u8; 16];

/// The requests of one search.
#[derive(Debug)]
pub(crate) struct Series {
    family: Family,
    identifier: u16,
    cookie: Cookie,
    padding: Vec<u8>,
}

/// What a router said about one of our requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooBig {
    /// The sequence of the request.
    pub(crate) sequence: u32,
    /// The MTU that it named.
    pub(crate) mtu: u32,
}

impl Series {
    /// Requests that carry `identifier` and are told from all others by `cookie`.
    pub(crate) fn new(family: Family, identifier: u16, cookie: Cookie) -> Self {
        let mut padding = vec![0; (family.largest() - family.headers()) as usize - MARK];
        // Content that no link can compress.
        Pattern::new(u128::from_be_bytes(cookie) as u64).fill(0, &mut padding);
        Self { family, identifier, cookie, padding }
    }

    /// The ICMP message of the request `sequence` whose IP packet has `size` bytes, with the checksum of IPv4; that of IPv6
    /// is the kernel's. None if a request cannot have that size or that number.
    pub(crate) fn request(&self, sequence: u32, size: u32) -> Option<Vec<u8>> {
        let content = size.checked_sub(self.family.headers())? as usize;
        let padding = self.padding.get(..content.checked_sub(MARK)?)?;
        let payload = [&self.mark(sequence, size)[..], padding].concat();
        let mut message = vec![0; ECHO_HEADER + content];
        let mut request = MutableEchoRequestPacket::new(&mut message)?;
        request.set_icmp_type(self.request_type());
        request.set_identifier(self.identifier);
        request.set_sequence_number(u16::try_from(sequence).ok()?);
        request.set_payload(&payload);
        if self.family == Family::V4 {
            let sum = checksum(&IcmpPacket::new(request.packet())?);
            request.set_checksum(sum);
        }
        Some(message)
    }

    fn mark(&self, sequence: u32, size: u32) -> [u8; MARK] {
        let mut mark = [0; MARK];
        let fields = self.cookie.into_iter().chain(sequence.to_be_bytes()).chain(size.to_be_bytes());
        for (place, byte) in mark.iter_mut().zip(fields) {
            *place = byte;
        }
        mark
    }

    /// ICMPv6 has the layout of ICMP with types of its own.
    fn request_type(&self) -> IcmpType {
        match self.family {
            Family::V4 => IcmpTypes::EchoRequest,
            Family::V6 => IcmpType(Icmpv6Types::EchoRequest.0),
        }
    }

    /// Which request an ICMP message answers, sequence and size; none unless it is an answer to ours, and complete.
    pub(crate) fn answer(&self, message: &[u8]) -> Option<(u32, u32)> {
        let reply = EchoReplyPacket::new(message)?;
        let wanted = match self.family {
            Family::V4 => IcmpTypes::EchoReply,
            Family::V6 => IcmpType(Icmpv6Types::EchoReply.0),
        };
        let (mark, padding) = reply.payload().split_first_chunk::<MARK>()?;
        let (sequence, size) = numbers(mark)?;
        let ours = reply.get_icmp_type() == wanted
            && *mark == self.mark(sequence, size)
            && u64::from(size) == (message.len() as u64) - ECHO_HEADER as u64 + u64::from(self.family.headers())
            && self.padding.get(..padding.len()) == Some(padding);
        ours.then_some((sequence, size))
    }

    /// Which of our requests an ICMP message is, of which possibly only the first 8 bytes are there, as errors quote it.
    pub(crate) fn quoted(&self, message: &[u8]) -> Option<u32> {
        let request = EchoRequestPacket::new(message)?;
        let sequence = u32::from(request.get_sequence_number());
        let cookie = request.payload().first_chunk::<16>();
        let ours = request.get_icmp_type() == self.request_type()
            && request.get_identifier() == self.identifier
            && cookie.is_none_or(|cookie| *cookie == self.cookie);
        ours.then_some(sequence)
    }

    /// What an ICMP message that arrived says about a request of ours to `peer`: that it was too large for a router.
    ///
    /// Addresses are compared by their bytes: `pnet` has a type of its own for them where nothing asks for its part for packets of
    /// the system, as on Windows.
    pub(crate) fn too_big(&self, message: &[u8], peer: IpAddr) -> Option<TooBig> {
        match (self.family, peer) {
            (Family::V4, IpAddr::V4(peer)) => {
                let error = DestinationUnreachablePacket::new(message)?;
                let kind = (error.get_icmp_type(), error.get_icmp_code());
                let packet = Ipv4Packet::new(error.payload())?;
                let about_us = kind == (IcmpTypes::DestinationUnreachable, FragmentationRequiredAndDFFlagSet)
                    && packet.get_next_level_protocol() == IpNextHeaderProtocols::Icmp
                    && packet.get_destination().octets() == peer.octets();
                let sequence = self.quoted(behind_header(error.payload())?).filter(|_| about_us)?;
                Some(TooBig { sequence, mtu: error.get_next_hop_mtu().into() })
            }
            (Family::V6, IpAddr::V6(peer)) => {
                let error = Icmpv6Packet::new(message)?;
                let (mtu, packet) = error.payload().split_first_chunk::<4>()?;
                let header = Ipv6Packet::new(packet)?;
                // Our requests have no extension headers: ICMPv6 follows at once.
                let about_us = error.get_icmpv6_type() == Icmpv6Types::PacketTooBig
                    && header.get_next_header() == IpNextHeaderProtocols::Icmpv6
                    && header.get_destination().octets() == peer.octets();
                let sequence = self.quoted(packet.get(40..)?).filter(|_| about_us)?;
                Some(TooBig { sequence, mtu: u32::from_be_bytes(*mtu) })
            }
            _ => None,
        }
    }
}

fn numbers(mark: &[u8; MARK]) -> Option<(u32, u32)> {
    let (_, rest) = mark.split_first_chunk::<16>()?;
    let (sequence, rest) = rest.split_first_chunk::<4>()?;
    let (size, _) = rest.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*sequence), u32::from_be_bytes(*size)))
}

/// What stands behind the header of an IPv4 packet, options included.
pub(crate) fn behind_header(packet: &[u8]) -> Option<&[u8]> {
    let header = Ipv4Packet::new(packet)?;
    let length = usize::from(header.get_header_length()) * 4;
    packet.get(length.max(Ipv4Packet::minimum_packet_size())..)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    const COOKIE: Cookie = *b"sixteen of bytes";
    const PEER_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);
    const PEER_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7);

    fn series(family: Family) -> Series {
        Series::new(family, 0x1234, COOKIE)
    }

    fn peer(family: Family) -> IpAddr {
        if family == Family::V4 { PEER_V4.into() } else { PEER_V6.into() }
    }

    /// The answer of a host that does as RFC 792 and RFC 4443 say.
    fn answer_to(request: &[u8]) -> Vec<u8> {
        let mut answer = request.to_vec();
        answer[0] = if request[0] == 8 { 0 } else { 129 };
        answer
    }

    /// A router's word about a request, quoting `quote` bytes of it behind the IP header.
    fn word(family: Family, request: &[u8], quote: usize, mtu: u16) -> Vec<u8> {
        let quoted = &request[..quote.min(request.len())];
        let [high, low] = mtu.to_be_bytes();
        match family {
            Family::V4 => {
                let mut header = vec![0x45, 0, 5, 220, 0, 0, 0x40, 0, 64, 1, 0, 0, 192, 0, 2, 1];
                header.extend(PEER_V4.octets());
                [&[3, 4, 0, 0, 0, 0, high, low][..], &header, quoted].concat()
            }
            Family::V6 => {
                let mut header = vec![0x60, 0, 0, 0, 5, 220, 58, 64];
                header.extend([0; 16]);
                header.extend(PEER_V6.octets());
                [&[2, 0, 0, 0, 0, 0, high, low][..], &header, quoted].concat()
            }
        }
    }

    #[test]
    fn a_request_has_the_size_to_the_byte_and_its_answer_is_known() {
        for family in [Family::V4, Family::V6] {
            let series = series(family);
            for size in [family.smallest(), 1280, 1499, 1500, 9000, family.largest()] {
                let request = series.request(7, size).expect("a size that exists");
                assert_eq!(request.len() as u32 + family.headers() - ECHO_HEADER as u32, size, "{family:?}");
                assert_eq!(series.answer(&answer_to(&request)), Some((7, size)), "{family:?}");
                assert_eq!(series.quoted(&request), Some(7));
                assert_eq!(series.answer(&request), None, "the request itself, as it comes back on loopback");
            }
            for (sequence, size) in [(0, 0), (0, family.headers()), (0, family.largest() + 1), (70_000, 1500)] {
                assert_eq!(series.request(sequence, size), None, "{family:?} {sequence} {size}");
            }
        }
        let request = series(Family::V4).request(1, 1501).unwrap();
        assert_eq!(checksum(&IcmpPacket::new(&request).unwrap()).to_be_bytes(), request[2..4]);
        // Summed up by hand, the whole message gives all ones (RFC 1071), odd length included.
        let sum: u32 = request.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        assert_eq!((folded & 0xffff) + (folded >> 16), 0xffff);
    }

    #[test]
    fn answers_that_are_cut_changed_or_of_others_do_not_count() {
        for family in [Family::V4, Family::V6] {
            let series = series(family);
            let whole = answer_to(&series.request(3, 1500).unwrap());
            let stranger = Series::new(family, 0x1234, [9; 16]).request(3, 1500).unwrap();
            let mut changed = whole.clone();
            *changed.last_mut().unwrap() ^= 1;
            let longer = [&whole[..], &[0]].concat();
            for (name, message) in [
                ("cut", &whole[..whole.len() - 1]),
                ("cut within the mark", &whole[..20]),
                ("changed at its end", &changed),
                ("longer", &longer),
                ("of another program", &answer_to(&stranger)),
                ("nothing", &[]),
            ] {
                assert_eq!(series.answer(message), None, "{family:?}: {name}");
            }
        }
    }

    #[test]
    fn routers_words_are_matched_by_what_they_quote() {
        for family in [Family::V4, Family::V6] {
            let series = series(family);
            let request = series.request(5, 1500).unwrap();
            let said = Some(TooBig { sequence: 5, mtu: 1400 });
            for (name, quote, expected) in [
                ("the least of RFC 792", 8, said),
                ("with the cookie", 40, said),
                ("with half a cookie", 16, said),
                ("less than the header", 7, None),
            ] {
                let word = word(family, &request, quote, 1400);
                assert_eq!(series.too_big(&word, peer(family)), expected, "{family:?}: {name}");
                assert_eq!(series.answer(&word), None);
            }
            let stranger = Series::new(family, 0x1234, [9; 16]).request(5, 1500).unwrap();
            assert_eq!(series.too_big(&word(family, &stranger, 40, 1400), peer(family)), None, "{family:?}: of another");
            let other = Series::new(family, 7, COOKIE).request(5, 1500).unwrap();
            assert_eq!(series.too_big(&word(family, &other, 8, 1400), peer(family)), None, "{family:?}: another identifier");
            let nobody = if family == Family::V4 { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
            assert_eq!(series.too_big(&word(family, &request, 40, 1400), nobody), None, "{family:?}: another destination");
        }
    }

    #[test]
    fn options_of_the_header_are_skipped_and_bad_lengths_do_no_harm() {
        let with = |first: u8, length: usize| [&[first][..], &vec![0; length - 1]].concat();
        for (name, packet, left) in [
            ("no options", with(0x45, 30), Some(10)),
            ("four bytes of options", with(0x46, 30), Some(6)),
            ("a header that is too short to be", with(0x41, 30), Some(10)),
            ("a header that is longer than the packet", with(0x4f, 30), None),
            ("half a header", with(0x45, 12), None),
        ] {
            assert_eq!(behind_header(&packet).map(<[u8]>::len), left, "{name}");
        }
    }

    proptest! {
        #[test]
        fn foreign_bytes_never_panic_and_are_never_ours(bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 0u8..4) {
            for family in [Family::V4, Family::V6] {
                let series = series(family);
                let mut typed = bytes.clone();
                if let Some(first) = typed.first_mut() {
                    *first = [0, 3, 2, 129][usize::from(kind)];
                }
                for message in [&bytes, &typed] {
                    prop_assert_eq!(series.answer(message), None);
                    let _ = (series.quoted(message), series.too_big(message, peer(family)), behind_header(message));
                }
            }
        }

        #[test]
        fn a_damaged_word_never_panics(cut in 0usize..120, place in 0usize..120, bit in 0u8..8) {
            for family in [Family::V4, Family::V6] {
                let series = series(family);
                let request = series.request(5, 1500).unwrap();
                let mut word = word(family, &request, 60, 1400);
                if let Some(byte) = word.get_mut(place) {
                    *byte ^= 1 << bit;
                }
                word.truncate(cut);
                let _ = series.too_big(&word, peer(family));
            }
        }
    }
}
