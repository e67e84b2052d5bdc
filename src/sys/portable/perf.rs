//! What the processor itself counts for a thread; nothing here.

use std::io;

/// The processor cycles of one thread; this system has none for us.
#[derive(Debug)]
pub struct Cycles(std::convert::Infallible);

impl Cycles {
    /// Begins to count the cycles of the calling thread.
    ///
    /// # Errors
    /// Always `Unsupported` here.
    pub fn begin() -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this system does not offer a thread's processor cycles"))
    }

    /// The cycles since the beginning.
    ///
    /// # Errors
    /// None, since no such counter exists here.
    pub const fn read(&self) -> io::Result<u64> {
        match self.0 {}
    }
}
