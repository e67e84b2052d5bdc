//! verdict.
