//! The unit of the kernel's times of processors.
#![expect(unsafe_code, reason = "sysconf is the only way to learn the unit of /proc/stat, and std has no word for it")]

/// How many ticks of `/proc/stat` and `/proc/[pid]/stat` make a second: 100 on nearly every system.
pub fn ticks_per_second() -> u64 {
    // SAFETY: sysconf takes a number and returns one; it touches no memory of ours.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).ok().filter(|ticks| *ticks > 0).unwrap_or(100)
}
