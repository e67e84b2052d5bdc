//! The kernel's `struct tcp_info` (linux/tcp.h), bytes to meaning; pure. Fields are only ever added at its end.

use crate::model::mtu::TcpEnd;
use crate::units::Mtu;

/// `TCPI_OPT_TIMESTAMPS` in `tcpi_options`.
const TIMESTAMPS: u8 = 1;

/// The bytes that timestamps take in every segment (RFC 7323, appendix A).
const TIMESTAMP_BYTES: u32 = 12;

/// `TCP_CLOSE` in `tcpi_state`.
const CLOSED: u8 = 7;

/// What is needed of the structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Info {
    state: u8,
    options: u8,
    send_mss: u32,
    /// Segments that were sent and not acknowledged.
    unacked: u32,
    pmtu: u32,
    advertised_mss: u32,
    total_retrans: u32,
    /// Bytes that were acknowledged; kernels before 4.1 do not tell.
    bytes_acked: Option<u64>,
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

impl Info {
    /// Reads what the kernel gave; none if that is less than Linux 2.6 has.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let word = |at| array(bytes, at).map(u32::from_ne_bytes);
        Some(Self {
            state: *bytes.first()?,
            options: *bytes.get(5)?,
            send_mss: word(16)?,
            unacked: word(24)?,
            pmtu: word(60)?,
            advertised_mss: word(84)?,
            total_retrans: word(100)?,
            bytes_acked: array(bytes, 120).map(u64::from_ne_bytes),
        })
    }

    fn option_bytes(&self) -> u32 {
        if self.options & TIMESTAMPS == 0 { 0 } else { TIMESTAMP_BYTES }
    }

    /// This end of the connection; none while it has no size of segments.
    pub(super) fn end(&self) -> Option<TcpEnd> {
        let option_bytes = self.option_bytes();
        (self.send_mss > 0).then(|| TcpEnd {
            // When the handshake agrees on timestamps the kernel takes them off the figure that stood in its SYN.
            advertised_mss_bytes: self.advertised_mss.saturating_add(option_bytes),
            send_mss_bytes: self.send_mss,
            pmtu: self.pmtu(),
            option_bytes,
        })
    }

    /// The path MTU that the kernel believes in.
    pub(super) fn pmtu(&self) -> Option<Mtu> {
        (self.pmtu > 0).then_some(Mtu(self.pmtu))
    }

    /// How often segments were sent again since the connection was made, its first included.
    pub(super) const fn retransmits(&self) -> u32 {
        self.total_retrans
    }

    /// Whether the connection is over.
    pub(super) const fn is_closed(&self) -> bool {
        self.state == CLOSED
    }

    /// Whether `length` bytes that were sent after `before` are acknowledged; none while that is open.
    pub(super) fn has_acknowledged(&self, before: &Self, length: u64) -> Option<bool> {
        let acknowledged = match (before.bytes_acked, self.bytes_acked) {
            (Some(before), Some(now)) => now.saturating_sub(before) >= length,
            // A connection that is over has nothing unacknowledged, whatever arrived.
            _ => self.unacked == 0 && !self.is_closed(),
        };
        acknowledged.then_some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first 128 bytes as Linux 6.18 gave them on a veth of MTU 1500 after the handshake, and after a segment of 1448
    /// bytes that the other end reset once it had it.
    const CONNECTED: &str = "010000000007aa01e01c030000000000a8050000180200000000000000000000000000000000000000000000000000000000000000\
        00000000000000dc05000058fa00004700000023000000ffffff7f0a000000a80500000300000000000000903800000000\
        00005f71bd2200000000ffffffffffffffff0100000000000000";
    const RESET: &str = "070000000007aa01e01c030000000000a8050000180200000000000000000000000000000000000000000000640000000000000064\
        00000064000000dc05000058fa00004000000023000000ffffff7f0b000000a80500000300000000000000903800000000\
        00005f71bd2200000000ffffffffffffffffa905000000000000";

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u32> = hex.chars().filter_map(|c| c.to_digit(16)).collect();
        digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
    }

    #[test]
    fn recorded_bytes_are_read_as_linux_means_them() {
        let connected = Info::decode(&bytes(CONNECTED)).unwrap();
        let end =
            TcpEnd { advertised_mss_bytes: 1460, send_mss_bytes: 1448, pmtu: Some(Mtu(1500)), option_bytes: TIMESTAMP_BYTES };
        assert_eq!(connected.end(), Some(end));
        assert_eq!(end.granted_mss_bytes(), 1460);
        assert!(!connected.is_closed());
        assert_eq!(connected.has_acknowledged(&connected, 1448), None);
        let reset = Info::decode(&bytes(RESET)).unwrap();
        assert!(reset.is_closed());
        assert_eq!(reset.has_acknowledged(&connected, 1448), Some(true));
        assert_eq!(reset.has_acknowledged(&connected, 1449), None);
    }

    #[test]
    fn what_old_kernels_give_is_enough_and_less_is_nothing() {
        let whole = bytes(CONNECTED);
        let old = Info::decode(&whole[..104]).expect("Linux 3.10 gives 104 bytes");
        assert_eq!(old.bytes_acked, None);
        assert_eq!(old.has_acknowledged(&old, 1448), Some(true), "nothing is on its way");
        let sent = Info { unacked: 1, ..old };
        assert_eq!(sent.has_acknowledged(&old, 1448), None);
        let over = Info { state: CLOSED, ..old };
        assert_eq!(over.has_acknowledged(&old, 1448), None, "a connection that is over proves nothing");
        for length in 0..104 {
            assert_eq!(Info::decode(&whole[..length]), None);
        }
        let silent = Info { send_mss: 0, ..old };
        assert_eq!(silent.end(), None);
        let plain = Info { options: 6, advertised_mss: 1460, pmtu: 0, ..old }.end().unwrap();
        assert_eq!((plain.advertised_mss_bytes, plain.option_bytes, plain.pmtu), (1460, 0, None));
    }
}
