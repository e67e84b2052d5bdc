//! The beginning of a datagram of a pass, bytes to meaning and back; pure.
//!
//! Big-endian: magic (4), version (1), zero (3), pass (8), sequence (8), nanoseconds since the sender's start (8). Random bytes
//! follow, which nobody reads.

/// Begins every datagram of a pass; that of the MTU search is another one.
const MAGIC: [u8; 4] = *b"WLud";

/// The version of the layout.
const VERSION: u8 = 1;

/// The bytes before the random content: no datagram is smaller.
pub const HEAD: usize = 32;

/// What a datagram says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Which pass it belongs to; a late one of another pass is not counted.
    pub(super) pass: u64,
    /// Which datagram of the pass, from 0.
    pub(super) sequence: u64,
    /// When it was handed to the kernel, in nanoseconds of the sender's clock since its start.
    pub(super) sent: u64,
}

impl Head {
    /// Writes it to the beginning of `bytes`; nothing where there is no room.
    pub(super) fn write(&self, bytes: &mut [u8]) {
        let Some(place) = bytes.first_chunk_mut::<HEAD>() else { return };
        place[..4].copy_from_slice(&MAGIC);
        place[4..8].copy_from_slice(&[VERSION, 0, 0, 0]);
        place[8..16].copy_from_slice(&self.pass.to_be_bytes());
        place[16..24].copy_from_slice(&self.sequence.to_be_bytes());
        place[24..].copy_from_slice(&self.sent.to_be_bytes());
    }

    /// Reads it; none for whatever is not ours.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk::<4>()?;
        let ([version, ..], rest) = rest.split_first_chunk::<4>()?;
        let (pass, rest) = rest.split_first_chunk::<8>()?;
        let (sequence, rest) = rest.split_first_chunk::<8>()?;
        let (sent, _) = rest.split_first_chunk::<8>()?;
        (*magic == MAGIC && *version == VERSION).then(|| Self {
            pass: u64::from_be_bytes(*pass),
            sequence: u64::from_be_bytes(*sequence),
            sent: u64::from_be_bytes(*sent),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_head_survives_the_wire(pass: u64, sequence: u64, sent: u64, tail: Vec<u8>) {
            let head = Head { pass, sequence, sent };
            let mut bytes = vec![0xff; HEAD];
            bytes.extend(tail);
            head.write(&mut bytes);
            prop_assert_eq!(Head::read(&bytes), Some(head));
            prop_assert_eq!(Head::read(&bytes[..HEAD - 1]), None);
            bytes[0] ^= 1;
            prop_assert_eq!(Head::read(&bytes), None);
        }

        #[test]
        fn random_bytes_never_panic(mut bytes: Vec<u8>) {
            let _ = Head::read(&bytes);
            Head { pass: 1, sequence: 2, sent: 3 }.write(&mut bytes);
        }
    }
}
