//! Frames of one EtherType: this system offers no portable way to them.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

/// A receiver of one EtherType at one interface; there is none here.
pub struct Frames(Infallible);

impl Frames {
    /// Listens at an interface: not possible here.
    pub fn open(_interface: &str, _ether_type: u16, _groups: &[[u8; 6]], _wait: Duration) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this system offers no portable way to receive frames"))
    }

    /// The next frame: there is never one.
    pub fn receive(&mut self) -> io::Result<Option<&[u8]>> {
        match self.0 {}
    }
}
