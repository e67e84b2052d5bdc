//! link.
