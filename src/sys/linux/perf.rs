//! What the processor itself counts for a thread.
#![expect(unsafe_code, reason = "perf_event_open has no safe interface in std")]

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::FromRawFd as _;

/// `PERF_ATTR_SIZE_VER0` of `linux/perf_event.h`: the first layout, which every kernel takes.
const ATTRIBUTES: u32 = 64;

/// `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`.
const WITH_TIMES: u64 = 3;

/// `PERF_FLAG_FD_CLOEXEC` (Linux 3.14); older kernels refuse it, and then there is no counter.
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// The first fields of `struct perf_event_attr`; the rest stays zero. Type 0 (`PERF_TYPE_HARDWARE`) with config 0
/// (`PERF_COUNT_HW_CPU_CYCLES`) and no flag: cycles from now on, of the program and of the kernel on its behalf.
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    rest: [u64; 3],
}

/// The processor cycles of one thread.
#[derive(Debug)]
pub struct Cycles(File);

impl Cycles {
    /// Begins to count the cycles of the calling thread, in the program and in the kernel on its behalf.
    ///
    /// # Errors
    /// `Unsupported` with the reason: the processor (or the hypervisor) has no such counter, or the system does not let us count
    /// the kernel's part (`kernel.perf_event_paranoid` above 1), without which the figure would say nothing.
    pub fn begin() -> io::Result<Self> {
        let attributes = Attributes {
            kind: 0,
            size: ATTRIBUTES,
            config: 0,
            sample_period: 0,
            sample_type: 0,
            read_format: WITH_TIMES,
            rest: [0; 3],
        };
        let (this_thread, anywhere, alone): (libc::c_long, libc::c_long, libc::c_long) = (0, -1, -1);
        // SAFETY: the pointer is to a live structure of the size that it names; process 0 is the calling thread, processor -1 any.
        let fd = unsafe {
            libc::syscall(libc::SYS_perf_event_open, &raw const attributes, this_thread, anywhere, alone, CLOSE_ON_EXEC)
        };
        match i32::try_from(fd) {
            // SAFETY: the kernel has just given us this descriptor and nobody else knows it.
            Ok(fd) if fd >= 0 => Ok(Self(unsafe { File::from_raw_fd(fd) })),
            _ => Err(why(&io::Error::last_os_error())),
        }
    }

    /// The cycles since the beginning; where the counter was shared with others, reckoned up to the whole time.
    ///
    /// # Errors
    /// Those of reading; `Unsupported` where the counter never ran.
    pub fn read(&self) -> io::Result<u64> {
        let mut words = [[0u8; 8]; 3];
        (&self.0).read_exact(words.as_flattened_mut())?;
        let [count, enabled, running] = words.map(u64::from_ne_bytes);
        whole(count, enabled, running)
            .ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, "the processor's counter was never free for us"))
    }
}

/// A count that ran for a part of the time, for the whole of it.
fn whole(count: u64, enabled: u64, running: u64) -> Option<u64> {
    let scaled = (u128::from(count) * u128::from(enabled)).checked_div(running.into())?;
    u64::try_from(scaled).ok()
}

fn why(error: &io::Error) -> io::Error {
    let text = match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP | libc::ENOSYS) => {
            "the processor (or the virtual machine) has no counter of cycles for us".to_owned()
        }
        Some(libc::EACCES | libc::EPERM) => {
            "the system does not let us count the kernel's cycles (kernel.perf_event_paranoid, or a container)".to_owned()
        }
        _ => format!("the kernel refuses a counter of cycles: {error}"),
    };
    io::Error::new(io::ErrorKind::Unsupported, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_has_the_size_that_it_names() {
        assert_eq!(size_of::<Attributes>(), ATTRIBUTES as usize);
    }

    #[test]
    fn a_shared_counter_is_reckoned_up() {
        for (count, enabled, running, all) in
            [(100, 10, 10, Some(100)), (100, 30, 10, Some(300)), (0, 10, 0, None), (u64::MAX, 2, 1, None)]
        {
            assert_eq!(whole(count, enabled, running), all);
        }
    }

    #[test]
    fn cycles_grow_or_the_reason_is_told() {
        match Cycles::begin() {
            Ok(cycles) => {
                let before = cycles.read().unwrap();
                let sum: u64 = (0..100_000u64).map(std::hint::black_box).sum();
                assert!(cycles.read().unwrap() > before, "{sum}");
            }
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{error}"),
        }
    }
}
