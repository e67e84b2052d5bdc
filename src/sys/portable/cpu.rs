//! The unit of the kernel's times of processors, where the system has no such times, and a thread's own time.

use std::time::Duration;

/// How many ticks make a second. Nothing is counted in ticks here; Linux's usual value keeps readers of recorded files right.
pub const fn ticks_per_second() -> u64 {
    100
}

/// How long the calling thread has been on a core: std has no word for it.
pub const fn thread_time() -> Option<Duration> {
    None
}

/// The processor time of this process, in the program and in the kernel: std has no word for it.
pub const fn process_times() -> Option<(Duration, Duration)> {
    None
}
