//! host, to be filled.
