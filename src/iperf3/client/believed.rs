//! Whether what a server tells of an upload can be, beside what our own kernel saw. Pure.

use super::test::TestResult;
use crate::iperf3::results::StreamResult;
use crate::iperf3::state::Cookie;
use crate::iperf3::stream::{StreamEnd, Way};

/// A server's total below this share of what our kernel saw acknowledged is another fault than data that its kernel took in and its
/// program did not come to read.
const FAR_BELOW: f64 = 0.9;

/// What a kernel takes in and its program may not have read at the end, for each stream: the largest receive buffer of any Linux where
/// nobody raised it (`tcp_rmem`: 6 MiB, and 32 MiB since 6.16).
const UNREAD: u64 = 32 << 20;

/// Where the sender did not wait for the receiver's window for half of the time, the program did read: a server that tells less than
/// half of what was acknowledged is then not believed, however little it was.
const HALF: f64 = 0.5;

/// Of less than this many bytes nobody need say anything.
const LITTLE: u64 = 1 << 20;

/// What the server's kernel acknowledged of each of our streams after the omitted part; none where our system does not tell.
pub(super) fn acknowledged(result: &TestResult) -> Option<Vec<u64>> {
    let before = |stream: &StreamEnd| stream.omitted.bytes.saturating_add(Cookie::LEN as u64);
    result.of_way(Way::Send).map(|(_, stream)| Some(stream.acknowledged?.saturating_sub(before(stream)))).collect()
}

/// Whether a server tells clearly less than its kernel has acknowledged of so many streams; `unread`: its program may not have come to
/// read it.
pub(super) fn far_below(told: u64, acknowledged: u64, streams: usize, unread: bool) -> bool {
    let missing = acknowledged.saturating_sub(told);
    let share = told as f64 / acknowledged.max(1) as f64;
    let beyond = share < FAR_BELOW && missing > UNREAD.saturating_mul(streams as u64);
    beyond || (!unread && share < HALF && missing > LITTLE)
}

/// Whether our streams waited for the receiver's window as they do where nobody reads; also where the kernel does not tell.
pub(super) fn unread(result: &TestResult) -> bool {
    result.of_way(Way::Send).any(|(_, stream)| {
        let shares = stream.tcp.measured().and_then(|stats| Some((stats.rwnd_limited_us?, stats.busy_us?)));
        shares.is_none_or(|(waited, busy)| waited as f64 >= HALF * busy as f64)
    })
}

/// A stream that ended before it began has no time of its own; ours stands in its place.
pub(super) fn backwards(streams: &[&StreamResult]) -> Option<String> {
    let odd = streams.iter().find(|stream| stream.end_s <= stream.start_s && stream.bytes > 0)?;
    Some(format!(
        "the iperf3 server says that stream {} began at {} s and ended at {} s; this end's time is used (the server's fault)",
        odd.id, odd.start_s, odd.end_s
    ))
}
