//! Linux tells of its ports by files and sockets: what other systems are asked is not asked here.

use std::io;

use crate::sys::ports::{Listed, Question, Teller};
use crate::sys::program::Printed;

/// Who tells.
pub const TELLER: Teller = Teller::Files;

/// Nothing: `link` reads files and netlink.
pub const fn listed() -> Vec<Listed> {
    Vec::new()
}

/// Always `Unsupported`.
pub fn ask(_question: Question<'_>) -> io::Result<Printed> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "on Linux weaklink asks the kernel, not its programs"))
}
