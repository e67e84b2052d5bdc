//! The kernel's log; none that a program could read here.

use std::io;
use std::time::Duration;

/// Hands over every record of the kernel's log; never one here.
///
/// # Errors
/// Always `Unsupported`.
pub fn read(_each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    Err(none())
}

/// The kernel's log from a moment on.
#[derive(Debug)]
pub struct Follow(());

/// Would follow the log; never here.
///
/// # Errors
/// Always `Unsupported`.
pub fn follow() -> io::Result<Follow> {
    Err(none())
}

impl Follow {
    /// Would hand over what was written since.
    ///
    /// # Errors
    /// Always `Unsupported`.
    pub fn rest(&mut self, _each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        Err(none())
    }
}

fn none() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "this system's kernel keeps no log for programs; Linux does")
}

/// How long the system runs; not told here.
pub const fn uptime() -> Option<Duration> {
    None
}
