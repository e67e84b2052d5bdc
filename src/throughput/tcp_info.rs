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
    pub(super) const BYTES_SENT: usize = 200;
    pub(super) const BYTES_RETRANS: usize = 208;
    pub(super) const REORD_SEEN: usize = 220;
    pub(super) const SND_WND: usize = 228;
}

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
