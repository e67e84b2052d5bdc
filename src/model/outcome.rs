//! What became of one measurement, and where a fact came from.

use serde::{Deserialize, Serialize};

/// A result that is never simply missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome<T> {
    /// It was measured, and this is the value.
    Measured(T),
    /// It was not tried, for this reason.
    Skipped(Why),
    /// It was tried and did not work, for this reason.
    Failed(Why),
}

/// What stands where a report of an earlier version has nothing.
pub(super) fn absent<T>() -> Outcome<T> {
    Outcome::skipped("the report is of an earlier version of weaklink, which did not measure this")
}

/// The reason why a value is not there, one clear sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Why {
    /// What was wrong or missing, and what would change it.
    pub reason: String,
}

impl<T> Outcome<T> {
    /// Not tried, because of `reason`.
    pub fn skipped(reason: impl Into<String>) -> Self {
        Self::Skipped(Why { reason: reason.into() })
    }

    /// Tried in vain, because of `reason`.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self::Failed(Why { reason: reason.into() })
    }

    /// The value, if there is one.
    pub const fn measured(&self) -> Option<&T> {
        match self {
            Self::Measured(value) => Some(value),
            Self::Skipped(_) | Self::Failed(_) => None,
        }
    }

    /// The value for changing, if there is one.
    pub const fn measured_mut(&mut self) -> Option<&mut T> {
        match self {
            Self::Measured(value) => Some(value),
            Self::Skipped(_) | Self::Failed(_) => None,
        }
    }

    /// Why there is no value, if there is none.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Measured(_) => None,
            Self::Skipped(why) | Self::Failed(why) => Some(&why.reason),
        }
    }

    /// The same outcome of another value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Self::Measured(value) => Outcome::Measured(f(value)),
            Self::Skipped(why) => Outcome::Skipped(why),
            Self::Failed(why) => Outcome::Failed(why),
        }
    }

    /// Goes on with the value to a further outcome.
    pub fn and_then<U>(self, f: impl FnOnce(T) -> Outcome<U>) -> Outcome<U> {
        match self {
            Self::Measured(value) => f(value),
            Self::Skipped(why) => Outcome::Skipped(why),
            Self::Failed(why) => Outcome::Failed(why),
        }
    }
}

impl<T, E: std::fmt::Display> From<Result<T, E>> for Outcome<T> {
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(value) => Self::Measured(value),
            Err(error) => Self::failed(error.to_string()),
        }
    }
}

/// A value together with where it came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact<T> {
    /// The value.
    pub value: T,
    /// Who said so.
    pub source: Source,
}

impl<T> Fact<T> {
    /// `value`, as `source` said.
    pub const fn new(value: T, source: Source) -> Self {
        Self { value, source }
    }
}

/// Who said a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A file below `/sys`.
    Sysfs,
    /// A file below `/proc`.
    Procfs,
    /// The kernel's route netlink.
    Rtnetlink,
    /// The kernel's ethtool interface by ioctl.
    Ethtool,
    /// The kernel's ethtool interface by netlink (kernel 5.6).
    EthtoolNetlink,
    /// The kernel's log.
    KernelLog,
    /// A socket option of the kernel, such as `TCP_INFO`.
    Socket,
    /// The operating system's portable interface (`getifaddrs` and its like).
    Os,
    /// weaklink measured it.
    Measured,
    /// The user stated it on the command line.
    User,
    /// A program that ran for us said so, such as `ssh -v`.
    Program,
    /// `ifconfig` of macOS or a BSD.
    Ifconfig,
    /// `pciconf` of FreeBSD.
    Pciconf,
    /// PowerShell's commands of networking on Windows.
    Powershell,
}
