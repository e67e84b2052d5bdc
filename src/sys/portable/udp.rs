//! udp, to be filled.
