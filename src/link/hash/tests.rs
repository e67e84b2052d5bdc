//! Tables of hand-computed hashes.
