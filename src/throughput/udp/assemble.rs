//! From what both ends saw to a pass, and from passes to a direction. Pure.

use std::time::Duration;

use super::plan::Search;
use crate::model::Outcome;
use crate::model::udp::{UdpDirection, UdpPass, UdpReceived, UdpSent};
use crate::units::{BitRate, ByteSize};

/// The rate of so many datagrams of so many bytes.
fn rate(datagrams: u64, bytes: u32, time: Duration) -> BitRate {
    BitRate::of(ByteSize(datagrams.saturating_mul(u64::from(bytes))), time)
}

/// Makes a pass of what both ends saw; processors and counters come from others and stand as skipped until then.
pub fn assemble(asked_bps: BitRate, datagram_bytes: u32, sent: &UdpSent, received: UdpReceived) -> UdpPass {
    // What arrived was sent, whatever the other end says.
    let count = sent.datagrams.max(received.datagrams);
    let lost = count - received.datagrams;
    let not_told = || Outcome::skipped("not told");
    UdpPass {
        asked_bps,
        sent_bps: rate(sent.datagrams, datagram_bytes, sent.elapsed_us.into()),
        // Between n datagrams lie n − 1 intervals.
        received_bps: rate(received.datagrams.saturating_sub(1), datagram_bytes, received.elapsed_us.into()),
        sent: count,
        refused: sent.refused,
        received: received.datagrams,
        lost,
        dropped_by_receiver: received.dropped.map(|dropped| dropped.min(lost)),
        duplicates: received.duplicates,
        reordered: received.reordered,
        longest_loss: received.longest_loss.min(lost),
        jitter_us: received.jitter_us,
        queue_median_us: received.queue_median_us,
        queue_p99_us: received.queue_p99_us,
        elapsed_us: received.elapsed_us,
        bins: received.bins,
        cpu_pc: not_told(),
        cpu_nas: not_told(),
        counters_pc: Outcome::skipped("not told"),
        counters_nas: Outcome::skipped("not told"),
    }
}

/// Makes a direction of its passes and of the search that asked for them; `methods` are how datagrams were sent and received.
pub fn direction(search: &Search, datagram_bytes: u32, methods: (String, String), passes: Vec<UdpPass>) -> UdpDirection {
    let (send, receive) = methods;
    UdpDirection {
        datagram_bytes,
        send,
        receive,
        passes,
        clean_bps: search.clean(),
        loss_from_bps: search.loss_from(),
        ended_because: search.ended().unwrap_or("the test was ended before the search was").to_owned(),
    }
}
