//! The kernel's log: `/dev/kmsg`, which is read without waiting, or the system call behind `dmesg`.

#![expect(unsafe_code, reason = "the system call syslog has no safe interface")]

use std::fs::OpenOptions;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::{Duration, Instant};

/// The longest record that the kernel hands out: `CONSOLE_EXT_LOG_MAX` of its printk.c, 8 KiB.
const RECORD: usize = 8192;
/// A log larger than any distribution's has no more lines than this.
const RECORDS: u32 = 1 << 20;
/// Reading a full log of 16 MiB takes some tens of milliseconds; nobody waits longer than this for it.
const LONGEST: Duration = Duration::from_millis(500);
/// `SYSLOG_ACTION_READ_ALL`: the last bytes of the log, which stay in it.
const READ_ALL: libc::c_long = 3;
/// Of a log that is read at once, the last bytes: four times what distributions keep.
const TEXT: usize = 4 << 20;

/// Hands over every record of the kernel's log, oldest first: as `/dev/kmsg` writes them, else the lines of `dmesg -r`.
///
/// # Errors
/// `PermissionDenied` where only administrators may read it (`kernel.dmesg_restrict`, containers), else what the system says.
pub fn read(each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    match open() {
        Ok(mut file) => records(&mut file, each),
        Err(error) => lines(each).map_err(|other| if error.kind() == io::ErrorKind::NotFound { other } else { error }),
    }
}

fn open() -> io::Result<std::fs::File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg")
}

/// The kernel's log from a moment on.
#[derive(Debug)]
pub struct Follow(std::fs::File);

/// Begins to follow the log behind its last record.
///
/// # Errors
/// As [`read`]; `NotFound` also where the log is to be had by the system call alone, which tells no place in it.
pub fn follow() -> io::Result<Follow> {
    let mut file = open()?;
    file.seek(SeekFrom::End(0))?;
    Ok(Follow(file))
}

impl Follow {
    /// Hands over what was written since, without waiting; of what was overwritten meanwhile, the rest.
    ///
    /// # Errors
    /// What the system says.
    pub fn rest(&mut self, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        records(&mut self.0, each)
    }
}

fn records(file: &mut std::fs::File, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    let (began, mut record) = (Instant::now(), [0; RECORD]);
    for _ in 0..RECORDS {
        match file.read(&mut record) {
            Ok(0) => break,
            Ok(length) => each(record.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            // EPIPE: the record was overwritten while we read, and the next one is the oldest that is left.
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::BrokenPipe) => {}
            Err(error) => return Err(error),
        }
        if began.elapsed() > LONGEST {
            break;
        }
    }
    Ok(())
}

fn lines(each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    let mut text = vec![0u8; TEXT];
    // SAFETY: the kernel writes at most as many bytes as it is told, and `text` has them all.
    let length = unsafe { libc::syscall(libc::SYS_syslog, READ_ALL, text.as_mut_ptr(), TEXT as libc::c_long) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    text.get(..length).unwrap_or_default().split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).for_each(each);
    Ok(())
}

/// How long the kernel's clock of its log runs: since the start of the system, sleep left out.
pub fn uptime() -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a timespec of ours that outlives the call, and the kernel writes nothing else.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let (seconds, nanos) = (u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?);
    (result == 0).then(|| Duration::new(seconds, nanos))
}

#[cfg(test)]
#[path = "klog_tests.rs"]
mod tests;
