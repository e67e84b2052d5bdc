//! tcp, to be filled.
