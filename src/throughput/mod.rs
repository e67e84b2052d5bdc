//! throughput.
