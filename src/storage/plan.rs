//! Pure: how much may be written, and how large the next request is.

use std::time::Duration;

use crate::sys::Room;
use crate::units::ByteSize;

/// All sizes and places are multiples of this.
pub const UNIT: u64 = 1 << 20;
/// Less than this says nothing about a disk: its own memory takes it in.
pub const LEAST: u64 = 16 << 20;
/// What stays free at least: systems misbehave on a full disk, and copy-on-write filesystems even before.
const RESERVE: u64 = 256 << 20;
/// … and in percent of the filesystem: what ext4 keeps for root by default.
const RESERVE_PERCENT: u64 = 5;

/// No filesystem needs more than this: 5 % of a large array would be hundreds of gigabytes.
const RESERVE_MOST: u64 = 16 << 30;
/// On a small filesystem the fixed reserve would be all of it: there it is this part of the size.
const SMALL_PART: u64 = 4;
/// Where the system does not tell how much is free, no more than this is written.
const BLIND: u64 = 256 << 20;
/// Requests grow to this size: the kernel splits them, so that a disk or RAID always has a queue.
pub const LARGEST: u64 = 4 << 20;
/// A request that took longer than this is too large: the word to stop must be heard.
const SLOW: Duration = Duration::from_millis(200);
/// A request that was done sooner than this may be larger.
const FAST: Duration = Duration::from_millis(50);
/// Between two syncs of buffered writing.
const WINDOW: Duration = Duration::from_millis(500);
/// … with no fewer bytes, which would measure the sync itself,
pub const WINDOW_LEAST: u64 = 8 << 20;
/// … and no more, which a disk that turned slow meanwhile would not finish soon, nor a small host hold.
const WINDOW_MOST: u64 = 64 << 20;

/// How many of `max_bytes` may be written so that a reserve stays free: 5 % but no more than 16 GiB and at least 256 MiB, on a small
/// filesystem a quarter of it instead. Without `room` (the system does not tell) at most 256 MiB.
///
/// The error is one sentence for the report.
pub fn allowance(room: Option<Room>, max_bytes: u64) -> Result<u64, String> {
    if max_bytes < LEAST {
        let (asked, least) = (ByteSize(max_bytes), ByteSize(LEAST));
        return Err(format!("a disk test needs at least {least}, but only {asked} may be written: allow more data"));
    }
    let Some(room) = room else { return Ok(max_bytes.min(BLIND) / UNIT * UNIT) };
    let reserve = (room.total / 100 * RESERVE_PERCENT).min(RESERVE_MOST).max(RESERVE.min(room.total / SMALL_PART));
    let usable = room.free.saturating_sub(reserve) / UNIT * UNIT;
    if usable < LEAST {
        let [free, reserve, least] = [room.free, reserve, LEAST].map(ByteSize);
        return Err(format!(
            "too little room: {free} are free, {reserve} of it must stay free, and a test needs {least}; free some space"
        ));
    }
    Ok(usable.min(max_bytes / UNIT * UNIT))
}

/// The size of the next request, after one of `len` bytes `took` so long.
pub fn next_request(len: u64, took: Duration) -> u64 {
    match took {
        t if t > SLOW => (len / 2).max(UNIT),
        t if t < FAST => (len * 2).min(LARGEST),
        _ => len,
    }
}

/// The bytes until the next sync of buffered writing, after `len` bytes `took` so long with their sync:
/// about half a second's worth, so that the page cache never holds what counts as written.
pub fn next_window(len: u64, took: Duration) -> u64 {
    let ideal = len as f64 * WINDOW.as_secs_f64() / took.as_secs_f64().max(1e-3);
    let bounded = ideal.clamp(len as f64 / 2.0, len as f64 * 2.0).clamp(WINDOW_LEAST as f64, WINDOW_MOST as f64);
    bounded as u64 / UNIT * UNIT
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1_000_000_000;
    const MB: u64 = 1_000_000;

    #[test]
    fn a_reserve_stays_free_on_disks_of_every_size() {
        for (what, total, free, max, allowed) in [
            ("a large disk gives all that was asked", 4000 * GB, 3000 * GB, 4 * GB, 4 * GB),
            ("five percent of a disk stay free", 100 * GB, 6 * GB, 4 * GB, GB),
            ("but never more than 16 GiB", 10_000 * GB, 18 * GB, 4 * GB, 18 * GB - RESERVE_MOST),
            ("256 MiB of a middle one", 2 * GB, GB, 4 * GB, GB - RESERVE),
            ("a quarter of a small one", 600 * MB, 500 * MB, 2 * GB, 350 * MB),
            ("a very small one", 64 * MB, 60 * MB, 2 * GB, 44 * MB),
        ] {
            let found = allowance(Some(Room { free, total }), max).unwrap();
            assert_eq!(found, allowed / UNIT * UNIT, "{what}");
        }
    }

    #[test]
    fn too_little_room_is_refused_with_a_reason() {
        for (free, total) in [(0, GB), (4 * GB, 100 * GB), (17 * GB, 10_000 * GB), (260 * MB, 2 * GB), (20 * MB, 20 * MB), (0, 0)]
        {
            let reason = allowance(Some(Room { free, total }), 4 * GB).unwrap_err();
            assert!(reason.contains("free some space"), "{reason}");
        }
        assert!(allowance(Some(Room { free: GB, total: GB }), MB).unwrap_err().contains("allow more data"));
        assert_eq!(allowance(None, 4 * GB), Ok(BLIND));
    }

    proptest::proptest! {
        #[test]
        fn what_is_allowed_fits_and_leaves_something(free: u64, total: u64, max: u64) {
            if let Ok(bytes) = allowance(Some(Room { free, total }), max) {
                proptest::prop_assert!(bytes >= LEAST && bytes <= max && bytes <= free && bytes % UNIT == 0);
            }
        }
    }

    #[test]
    fn requests_grow_on_fast_disks_and_shrink_on_slow_ones() {
        assert_eq!(next_request(UNIT, Duration::from_millis(2)), 2 * UNIT);
        assert_eq!(next_request(LARGEST, Duration::from_millis(2)), LARGEST);
        assert_eq!(next_request(LARGEST, Duration::from_millis(100)), LARGEST);
        assert_eq!(next_request(LARGEST, Duration::from_secs(1)), LARGEST / 2);
        assert_eq!(next_request(UNIT, Duration::from_secs(1)), UNIT);
        assert_eq!(next_window(32 * UNIT, Duration::from_millis(500)), 32 * UNIT);
        assert_eq!(next_window(64 * UNIT, Duration::from_secs(9)), 32 * UNIT);
        assert_eq!(next_window(WINDOW_LEAST, Duration::ZERO), 2 * WINDOW_LEAST);
    }
}
