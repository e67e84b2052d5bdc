//! mtu.
