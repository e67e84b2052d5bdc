//! cpu.
