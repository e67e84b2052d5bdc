//! cpu, to be filled.
