//! The functions of the Linux side for systems that tell none of it.

use std::io;

fn unknown<T>() -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no such question for programs; on Linux there is one"))
}

/// No route netlink here.
pub fn rtnetlink(_request: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    unknown()
}

/// No generic netlink here.
pub fn generic_netlink(_request: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    unknown()
}

/// No ethtool here.
pub fn ethtool_structure(_name: &str, _command: u32) -> io::Result<Vec<u8>> {
    unknown()
}

/// No ethtool here.
pub fn ethtool_hash_table(_name: &str) -> io::Result<Vec<u32>> {
    unknown()
}

/// No ethtool here.
pub fn ethtool_module(_name: &str) -> io::Result<Vec<u8>> {
    unknown()
}

/// No ethtool here.
pub fn ethtool_link_settings(_name: &str) -> io::Result<Vec<u8>> {
    unknown()
}

/// No ethtool here.
pub fn ethtool_settings(_name: &str) -> io::Result<Vec<u8>> {
    unknown()
}

/// No ethtool here.
pub fn ethtool_driver(_name: &str) -> io::Result<Vec<u8>> {
    unknown()
}

/// No ethtool here.
pub fn ethtool_value(_name: &str, _command: u32) -> io::Result<u32> {
    unknown()
}

/// No ethtool here.
pub fn ethtool_statistics(_name: &str) -> io::Result<Vec<([u8; 32], u64)>> {
    unknown()
}

/// No ethtool here.
pub fn ethtool_feature_names(_name: &str) -> io::Result<Vec<[u8; 32]>> {
    unknown()
}

/// No ethtool here.
pub fn ethtool_features(_name: &str) -> io::Result<Vec<[u32; 4]>> {
    unknown()
}
