//! What fills a segment to a service without meaning anything to it; pure.

/// What a service takes without doing anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// An identification, messages to be ignored, and a farewell (RFC 4253).
    Ssh,
    /// Session keep-alives (RFC 1002).
    Smb,
    /// A call of the procedure NULL (RFC 5531, RFC 1813).
    Nfs,
    /// Nothing is known that would be harmless.
    Nothing,
}

/// The beginning of our identification: protocol version, software version without "-", comment (RFC 4253, 4.2).
const IDENTIFICATION: &[u8] = b"SSH-2.0-weaklink a probe of the path MTU";

/// `SSH_MSG_DISCONNECT`, reason 11 (by application), a description, no language; with length, padding length and 8 bytes of
/// padding, as a packet before any key exchange (RFC 4253, 6 and 11.1).
const FAREWELL: &[u8; 40] = b"\0\0\0\x24\x08\x01\0\0\0\x0b\0\0\0\x0epath MTU probe\0\0\0\0\0\0\0\0\0\0\0\0";

/// The largest `SSH_MSG_IGNORE` packet: every server takes 35,000 bytes (RFC 4253, 6.1).
const MOST_IGNORED: usize = 32_000;

/// The least packet (RFC 4253, 6).
const LEAST_PACKET: usize = 16;

/// Packets before the key exchange have lengths that are multiples of this (RFC 4253, 6).
const PACKET_UNIT: usize = 8;

/// A session keep-alive: type 0x85, no content (RFC 1002, 4.3.6).
const KEEP_ALIVE: [u8; 4] = [0x85, 0, 0, 0];

impl Content {
    /// What the service of that name takes.
    pub(super) fn of(service: Option<&str>) -> Self {
        let is = |name: &str| service.is_some_and(|service| service.eq_ignore_ascii_case(name));
        match () {
            () if is("SSH") || is("SFTP") => Self::Ssh,
            () if is("SMB") => Self::Smb,
            () if is("NFS") => Self::Nfs,
            () => Self::Nothing,
        }
    }

    /// Exactly `size` bytes; none where nothing harmless has that size.
    pub(super) fn fill(self, size: usize) -> Option<Vec<u8>> {
        match self {
            Self::Ssh => ssh(size),
            Self::Smb => (size > 0).then(|| KEEP_ALIVE.into_iter().cycle().take(size).collect()),
            Self::Nfs => nfs(size),
            Self::Nothing => None,
        }
    }
}

fn ssh(size: usize) -> Option<Vec<u8>> {
    let least = IDENTIFICATION.len() + 2;
    let packets = size.checked_sub(least + FAREWELL.len()).filter(|rest| *rest >= LEAST_PACKET)?;
    let mut bytes = IDENTIFICATION.to_vec();
    // Packets come in units: the identification takes up what is left.
    bytes.resize(bytes.len() + packets % PACKET_UNIT, b'.');
    bytes.extend(b"\r\n");
    let mut rest = packets - packets % PACKET_UNIT;
    while rest > 0 {
        let length = match rest {
            rest if rest <= MOST_IGNORED => rest,
            rest if rest - MOST_IGNORED < LEAST_PACKET => MOST_IGNORED - LEAST_PACKET,
            _ => MOST_IGNORED,
        };
        bytes.extend(ignored(length));
        rest -= length;
    }
    bytes.extend(FAREWELL);
    Some(bytes)
}

/// One `SSH_MSG_IGNORE` packet of `length` bytes: length, padding length, the message's number, a string, four bytes of padding.
fn ignored(length: usize) -> Vec<u8> {
    const PADDING: u8 = 4;
    let string = (length - 4 - 1 - 1 - 4 - usize::from(PADDING)) as u32;
    let mut packet = (length as u32 - 4).to_be_bytes().to_vec();
    packet.extend([PADDING, 2]);
    packet.extend(string.to_be_bytes());
    packet.resize(length, 0);
    packet
}

/// One record (RFC 5531, 11) that is a call; the procedure takes no arguments, so nobody reads the zeros behind it.
fn nfs(size: usize) -> Option<Vec<u8>> {
    /// The bit of the last fragment of a record.
    const LAST: u32 = 1 << 31;
    /// Transaction, CALL, RPC version 2, program NFS, version 3, procedure NULL, no credentials, no verifier.
    const CALL: [u32; 10] = [0x7765_616b, 0, 2, 100_003, 3, 0, 0, 0, 0, 0];
    let record = u32::try_from(size.checked_sub(4)?).ok().filter(|record| *record >= 40 && *record < LAST)?;
    let mut bytes: Vec<u8> = [LAST | record].into_iter().chain(CALL).flat_map(u32::to_be_bytes).collect();
    bytes.resize(size, 0);
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_is_known_by_its_name() {
        for (name, content) in [
            (Some("SMB"), Content::Smb),
            (Some("nfs"), Content::Nfs),
            (Some("Ssh"), Content::Ssh),
            (Some("HTTP"), Content::Nothing),
            (None, Content::Nothing),
        ] {
            assert_eq!(Content::of(name), content, "{name:?}");
        }
    }

    #[test]
    fn every_size_of_a_segment_is_filled_to_the_byte() {
        for content in [Content::Ssh, Content::Smb, Content::Nfs] {
            for size in (536..600).chain([1440, 1448, 1460, 8948]).chain(32_090..32_140).chain([65_483, 65_495]) {
                let filled = content.fill(size).unwrap_or_else(|| panic!("{content:?} {size}"));
                assert_eq!(filled.len(), size, "{content:?}");
            }
        }
        for size in [0, 1, 30, 43] {
            assert_eq!(Content::Ssh.fill(size), None);
            assert_eq!(Content::Nfs.fill(size), None);
        }
        assert_eq!(Content::Nothing.fill(1448), None);
    }

    #[test]
    fn what_ssh_gets_is_an_identification_and_whole_packets_that_end_with_the_farewell() {
        for size in (536..560).chain(32_090..32_140).chain([1448, 8948, 65_483]) {
            let bytes = ssh(size).unwrap();
            let end = bytes.windows(2).position(|pair| pair == b"\r\n").unwrap() + 2;
            assert!(end <= 255 && bytes.starts_with(b"SSH-2.0-"), "{size}");
            let mut rest = &bytes[end..];
            let mut numbers = Vec::new();
            while let Some((length, packet)) = rest.split_first_chunk::<4>() {
                let length = u32::from_be_bytes(*length) as usize;
                assert!((length + 4) % 8 == 0 && (16..=35_000).contains(&(length + 4)), "{size}: {length}");
                let padding = usize::from(packet[0]);
                assert!(padding >= 4 && packet[length - padding..length].iter().all(|byte| *byte == 0));
                let payload = &packet[1..length - padding];
                numbers.push(payload[0]);
                if payload[0] == 2 {
                    assert_eq!(u32::from_be_bytes(payload[1..5].try_into().unwrap()) as usize, payload.len() - 5);
                } else {
                    assert_eq!(payload.len(), 1 + 4 + 4 + 14 + 4, "{size}");
                }
                rest = &packet[length..];
            }
            assert!(rest.is_empty(), "{size}");
            assert_eq!(numbers.pop(), Some(1), "{size}");
            assert!(!numbers.is_empty() && numbers.iter().all(|number| *number == 2), "{size}");
        }
    }

    #[test]
    fn what_nfs_gets_is_one_record() {
        let bytes = nfs(1448).unwrap();
        assert_eq!(bytes[..4], (0x8000_0000u32 | 1444).to_be_bytes());
    }
}
