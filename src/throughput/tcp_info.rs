//! The kernel's `struct tcp_info` to [`TcpStats`]. Pure.
//!
//! The struct has only ever grown at its end, so the length that the kernel returned tells which fields are there: 104 bytes
//! up to `total_retrans` in 3.10, 192 with the busy and limited times in 4.10, 224 with the bytes sent again in 4.19, 232 with
//! the peer's window in 5.4.

use std::io;

use crate::model::Outcome;
use crate::model::throughput::TcpStats;
use crate::units::{BitRate, ByteRate};

/// Offsets in bytes, as the compiler lays out `struct tcp_info` of `include/uapi/linux/tcp.h` (the same on 32 and 64 bits:
/// its 64-bit fields are aligned by hand).
mod at {
    /// A bit field: the lowest bit of it on little-endian systems, the highest on others.
    pub(super) const APP_LIMITED: usize = 7;
    pub(super) const SND_MSS: usize = 16;
    pub(super) const PMTU: usize = 60;
    pub(super) const RTT: usize = 68;
    pub(super) const RTTVAR: usize = 72;
    pub(super) const SND_CWND: usize = 80;
    pub(super) const REORDERING: usize = 88;
    pub(super) const RCV_SPACE: usize = 96;
    pub(super) const TOTAL_RETRANS: usize = 100;
    pub(super) const SEGS_OUT: usize = 136;
    pub(super) const MIN_RTT: usize = 148;
    pub(super) const DELIVERY_RATE: usize = 160;
    pub(super) const BUSY_TIME: usize = 168;
    pub(super) const RWND_LIMITED: usize = 176;
    pub(super) const SNDBUF_LIMITED: usize = 184;
    pub(super) const DELIVERED_CE: usize = 196;
    pub(super) const BYTES_SENT: usize = 200;
    pub(super) const BYTES_RETRANS: usize = 208;
    pub(super) const DSACK_DUPS: usize = 216;
    pub(super) const REORD_SEEN: usize = 220;
    pub(super) const SND_WND: usize = 228;
}

/// The bit of [`at::APP_LIMITED`], as C lays out bit fields.
const APP_LIMITED: u8 = if cfg!(target_endian = "little") { 1 } else { 0x80 };

/// Reads the fields that `bytes`, as `getsockopt(TCP_INFO)` returned them, cover whole; the others are absent.
pub fn decode(bytes: &[u8]) -> TcpStats {
    let word = |at: usize| bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_ne_bytes);
    let long = |at: usize| bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_ne_bytes);
    TcpStats {
        // Zero is no measurement yet; the least time starts at all ones.
        rtt_us: word(at::RTT).filter(|rtt| *rtt > 0),
        min_rtt_us: word(at::MIN_RTT).filter(|rtt| (1..u32::MAX).contains(rtt)),
        rttvar_us: word(at::RTTVAR),
        cwnd_segments: word(at::SND_CWND),
        snd_mss_bytes: word(at::SND_MSS),
        pmtu_bytes: word(at::PMTU).filter(|mtu| *mtu > 0),
        segments_out: word(at::SEGS_OUT).map(u64::from),
        retransmits: word(at::TOTAL_RETRANS).map(u64::from),
        bytes_sent: long(at::BYTES_SENT),
        bytes_retrans: long(at::BYTES_RETRANS),
        reordering: word(at::REORDERING),
        reord_seen: word(at::REORD_SEEN),
        busy_us: long(at::BUSY_TIME),
        rwnd_limited_us: long(at::RWND_LIMITED),
        sndbuf_limited_us: long(at::SNDBUF_LIMITED),
        snd_wnd_bytes: word(at::SND_WND).map(u64::from),
        rcv_space_bytes: word(at::RCV_SPACE),
        app_limited: long(at::DELIVERY_RATE).and(bytes.get(at::APP_LIMITED)).map(|bits| bits & APP_LIMITED != 0),
        delivered_ce: word(at::DELIVERED_CE),
        dsack_dups: word(at::DSACK_DUPS),
        delivery_rate_bps: long(at::DELIVERY_RATE).map(|rate| ByteRate(rate).bits()).filter(|rate| *rate > BitRate(0)),
    }
}

/// The statistics of all streams from what the kernel said of each: all of them, or why not.
pub(super) fn all(raw: impl IntoIterator<Item = io::Result<Vec<u8>>>) -> Outcome<Vec<TcpStats>> {
    let stats: io::Result<Vec<TcpStats>> = raw.into_iter().map(|bytes| bytes.map(|bytes| decode(&bytes))).collect();
    match stats {
        Ok(stats) => Outcome::Measured(stats),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Outcome::skipped(error.to_string()),
        Err(error) => Outcome::failed(format!("failed to read TCP_INFO of a stream: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Linux 6.18 on x86-64 returned for a connection on loopback after 20 MB, 280 bytes.
    #[cfg(target_endian = "little")]
    const LINUX_6_18: &str = "\
    010000000007aa01e01c030000000000cbff000018020000000000000000000000000000000000000000000000000000000000003c000000 \
    00000000ffff0000d7ff00004e0000000c000000ffffff7f0a000000cbff00000300000000000000d7ff000001000000ce0a01e403000000 \
    ffffffffffffffff012d310100000000000000000000000095010000010100000000000004000000000000009301000075e1838a02000000 \
    606d000000000000a00f00000000000000000000000000009401000000000000d5b3310100000000d5860000000000000100000000000000 \
    000000000094af00000001000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000";

    #[cfg(target_endian = "little")]
    fn recorded(len: usize) -> Vec<u8> {
        let digits: Vec<u8> = LINUX_6_18.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(byte).take(len).collect()
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn a_new_kernel_tells_everything() {
        let told = TcpStats {
            rtt_us: Some(78),
            min_rtt_us: Some(4),
            rttvar_us: Some(12),
            cwnd_segments: Some(10),
            snd_mss_bytes: Some(65483),
            pmtu_bytes: Some(65535),
            segments_out: Some(405),
            retransmits: Some(1),
            bytes_sent: Some(20_034_517),
            bytes_retrans: Some(34517),
            reordering: Some(3),
            reord_seen: Some(0),
            busy_us: Some(28000),
            rwnd_limited_us: Some(4000),
            sndbuf_limited_us: Some(0),
            snd_wnd_bytes: Some(11_506_688),
            rcv_space_bytes: Some(65495),
            delivery_rate_bps: Some(BitRate(8 * 10_913_833_333)),
            app_limited: Some(true),
            delivered_ce: Some(0),
            dsack_dups: Some(1),
        };
        assert_eq!(decode(&recorded(usize::MAX)), told);
        assert_eq!(decode(&recorded(232)), told, "5.4");
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn an_old_kernel_tells_less() {
        type Has = fn(&TcpStats) -> bool;
        let newer: [(usize, Has); 9] = [
            (104, |s| s.retransmits.is_some()),
            (140, |s| s.segments_out.is_some()),
            (152, |s| s.min_rtt_us.is_some()),
            (168, |s| s.delivery_rate_bps.is_some()),
            (176, |s| s.busy_us.is_some()),
            (192, |s| s.sndbuf_limited_us.is_some()),
            (216, |s| s.bytes_retrans.is_some()),
            (224, |s| s.reord_seen.is_some()),
            (232, |s| s.snd_wnd_bytes.is_some()),
        ];
        for len in 0..=232 {
            let stats = decode(&recorded(len));
            for (needs, has) in newer {
                assert_eq!(has(&stats), len >= needs, "{len} bytes, field that ends at {needs}");
            }
            assert_eq!(stats.rtt_us.is_some(), len >= 72);
        }
    }

    #[test]
    fn what_the_kernel_has_not_measured_is_absent() {
        let mut bytes = vec![0; 232];
        bytes[148..152].copy_from_slice(&u32::MAX.to_ne_bytes());
        let stats = decode(&bytes);
        assert_eq!((stats.rtt_us, stats.min_rtt_us, stats.delivery_rate_bps), (None, None, None));
        assert_eq!(stats.retransmits, Some(0));
    }

    #[test]
    fn statistics_are_of_all_streams_or_say_why_not() {
        assert_eq!(all([Ok(vec![]), Ok(vec![])]).measured().map(Vec::len), Some(2));
        assert!(matches!(all([Ok(vec![]), Err(io::ErrorKind::Unsupported.into())]), Outcome::Skipped(_)));
        assert!(matches!(all([Err(io::ErrorKind::NotConnected.into())]), Outcome::Failed(_)));
    }
}
