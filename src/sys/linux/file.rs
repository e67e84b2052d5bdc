//! file, to be filled.
