//! Messages cut into packets that fit an encrypted frame, and put together again.
//!
//! A packet's first byte says whether more follows (1) or this is the last (0).

/// The largest plain text of a packet: a Noise message is at most 65,535 bytes with its 16-byte tag.
pub const PACKET: usize = 65_519;

/// The largest message: a report of every part with all its series stays below 2 MiB.
pub const LARGEST: usize = 8 << 20;

/// Why a packet cannot be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// No first byte, or one that means nothing.
    #[error("a packet without a valid head arrived")]
    Head,
    /// A message that grows beyond the limit.
    #[error("a message of more than {LARGEST} bytes arrived")]
    TooLarge,
}

/// Cuts a message into packets.
pub fn split(message: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces: Vec<&[u8]> = message.chunks(PACKET - 1).collect();
    if pieces.is_empty() {
        pieces.push(&[]);
    }
    let last = pieces.len() - 1;
    pieces
        .into_iter()
        .enumerate()
        .map(|(i, piece)| {
            let mut packet = Vec::with_capacity(piece.len() + 1);
            packet.push(u8::from(i < last));
            packet.extend_from_slice(piece);
            packet
        })
        .collect()
}

/// Puts packets together.
#[derive(Debug, Default)]
pub struct Joiner {
    message: Vec<u8>,
}

impl Joiner {
    /// Takes a packet; gives the message when this was its last.
    pub fn push(&mut self, packet: &[u8]) -> Result<Option<Vec<u8>>, FrameError> {
        let (head, rest) = packet.split_first().ok_or(FrameError::Head)?;
        if self.message.len() + rest.len() > LARGEST {
            return Err(FrameError::TooLarge);
        }
        self.message.extend_from_slice(rest);
        match head {
            0 => Ok(Some(std::mem::take(&mut self.message))),
            1 if !rest.is_empty() => Ok(None),
            _ => Err(FrameError::Head),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_message_comes_together_again(len in 0usize..200_000, byte in any::<u8>()) {
            let message = vec![byte; len];
            let mut joiner = Joiner::default();
            let packets = split(&message);
            let (last, first) = packets.split_last().unwrap();
            for packet in first {
                prop_assert!(packet.len() <= PACKET);
                prop_assert_eq!(joiner.push(packet), Ok(None));
            }
            prop_assert_eq!(joiner.push(last), Ok(Some(message)));
        }

        #[test]
        fn hostile_packets_never_panic(packets in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..20)) {
            let mut joiner = Joiner::default();
            for packet in packets {
                let _ = joiner.push(&packet);
            }
        }
    }

    #[test]
    fn a_message_without_end_is_cut_off() {
        let mut joiner = Joiner::default();
        let mut packet = vec![0; PACKET];
        packet[0] = 1;
        let error = (0..1000).find_map(|_| joiner.push(&packet).err());
        assert_eq!(error, Some(FrameError::TooLarge));
        assert_eq!(Joiner::default().push(&[]), Err(FrameError::Head));
        assert_eq!(Joiner::default().push(&[1]), Err(FrameError::Head));
    }
}
