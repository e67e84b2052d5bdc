//! The kernel's log; none that a program could read here.

use std::io;
use std::time::Duration;

/// Hands over every record of the kernel's log; never one here.
///
/// # Errors
/// Always `Unsupported`.
pub fn read(_each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system's kernel keeps no log for programs; Linux does"))
}

/// How long the system runs; not told here.
pub const fn uptime() -> Option<Duration> {
    None
}
