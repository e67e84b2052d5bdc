//! The unit of the kernel's times of processors, and a thread's own time.
#![expect(unsafe_code, reason = "std has no word for sysconf and for a thread's own clock")]

use std::time::Duration;

/// How many ticks of `/proc/stat` and `/proc/[pid]/stat` make a second: 100 on nearly every system.
pub fn ticks_per_second() -> u64 {
    // SAFETY: sysconf takes a number and returns one; it touches no memory of ours.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).ok().filter(|ticks| *ticks > 0).unwrap_or(100)
}

/// How long the calling thread has been on a core, if the system tells.
pub fn thread_time() -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a timespec of ours that outlives the call, and the kernel writes nothing else.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    let (seconds, nanos) = (u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?);
    (result == 0).then(|| Duration::new(seconds, nanos))
}

/// The processor time of this process since its start, in the program and in the kernel on its account; if the system tells.
pub fn process_times() -> Option<(Duration, Duration)> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills in the one rusage that `usage` has room for, and nothing else; zeros are a valid one anyway.
    let usage = unsafe {
        if libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) != 0 {
            return None;
        }
        usage.assume_init()
    };
    let span = |time: libc::timeval| {
        let micros = u64::try_from(time.tv_usec).ok()?;
        Some(Duration::from_secs(u64::try_from(time.tv_sec).ok()?) + Duration::from_micros(micros))
    };
    Some((span(usage.ru_utime)?, span(usage.ru_stime)?))
}
