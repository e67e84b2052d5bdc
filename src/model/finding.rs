//! What was found, and the verdict.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::copy::LaneKind;
use super::host::{Direction, Role};
use crate::units::BitRate;

/// A cause code, `component.cause`, such as `network.mtu-black-hole`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Code {
    /// The component that is to blame.
    pub component: Component,
    /// The cause within it.
    pub cause: String,
}

impl Code {
    /// The code of `cause` in `component`.
    pub fn new(component: Component, cause: &str) -> Self {
        Self { component, cause: cause.to_owned() }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.component.word(), self.cause)
    }
}

impl From<Code> for String {
    fn from(code: Code) -> Self {
        code.to_string()
    }
}

impl TryFrom<String> for Code {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl FromStr for Code {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("{text:?} is not a cause code such as network.loss");
        let (component, cause) = text.split_once('.').ok_or_else(wrong)?;
        let component = Component::ALL.into_iter().find(|c| c.word() == component).ok_or_else(wrong)?;
        let fits = !cause.is_empty() && cause.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if fits { Ok(Self::new(component, cause)) } else { Err(wrong()) }
    }
}

/// What a person can act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Component {
    /// Cables, ports, switches, drivers, TCP.
    Network,
    /// Disks and what lies around them.
    Disk,
    /// Processors.
    Cpu,
    /// SMB, NFS, SSH.
    Protocol,
    /// Nothing is wrong.
    None,
    /// It could not be decided.
    Inconclusive,
}

impl Component {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Network, Self::Disk, Self::Cpu, Self::Protocol, Self::None, Self::Inconclusive];

    /// The word in codes.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Disk => "disk",
            Self::Cpu => "cpu",
            Self::Protocol => "protocol",
            Self::None => "none",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know; costs no speed now.
    Info,
    /// A fault that costs speed, or will.
    Warning,
    /// A fault that costs most of the speed, or stops transfers.
    Critical,
}

/// Where a cause sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Where {
    /// At the PC.
    Pc,
    /// At the NAS.
    Nas,
    /// Between them: cables and switches.
    Path,
}

impl From<Role> for Where {
    fn from(role: Role) -> Self {
        match role {
            Role::Pc => Self::Pc,
            Role::Nas => Self::Nas,
        }
    }
}

impl Where {
    /// The words for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Pc => "PC",
            Self::Nas => "NAS",
            Self::Path => "path",
        }
    }
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The stable code.
    pub code: Code,
    /// How much it matters.
    pub severity: Severity,
    /// Where it sits.
    pub r#where: Where,
    /// The direction that it touches; none when both.
    pub direction: Option<Direction>,
    /// The lane that it touches; none when all.
    pub lane: Option<LaneKind>,
    /// What shows it, each a sentence with numbers and where they came from.
    pub evidence: Vec<String>,
    /// What to do, most useful first.
    pub advice: Vec<String>,
    /// What mending it would give, where that can be computed.
    pub gain: Option<Gain>,
}

/// What mending a finding would give.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// The rate now.
    pub from_bps: BitRate,
    /// The rate at most after mending: that of the next limit.
    pub to_bps: BitRate,
}

impl Gain {
    /// The gain in per cent; zero when there was no rate or no gain.
    pub fn percent(&self) -> f64 {
        if self.from_bps.0 == 0 { 0.0 } else { ((self.to_bps.as_f64() / self.from_bps.as_f64() - 1.0) * 100.0).max(0.0) }
    }
}

/// The one answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The kind of answer.
    pub status: Status,
    /// The component.
    pub component: Component,
    /// The cause within the component, such as `mtu-black-hole`.
    pub cause: String,
    /// Both as one stable code, such as `network.mtu-black-hole`.
    pub code: Code,
    /// Where it sits.
    pub r#where: Option<Where>,
    /// The direction that suffers; none when both do.
    pub direction: Option<Direction>,
    /// The lane that suffers; none when all do.
    pub lane: Option<LaneKind>,
    /// The rate that it allows.
    pub rate_bps: Option<BitRate>,
    /// How sure.
    pub confidence: Confidence,
    /// One sentence that a support engineer can act on.
    pub sentence: String,
    /// The next limit after this one.
    pub next: Option<NextLimit>,
    /// What it is not, and why.
    pub ruled_out: Vec<RuledOut>,
}

/// The kinds of answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// One thing limits, and it can be named.
    Bottleneck,
    /// All is as good as the equipment can be.
    Healthy,
    /// It cannot be told from what was measured.
    Inconclusive,
}

/// How sure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// A hint.
    Low,
    /// More likely than everything else.
    Medium,
    /// Several independent kinds of evidence agree.
    High,
}

/// The limit that comes next once this one is gone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NextLimit {
    /// In words: `the 2.5 Gbit/s link`.
    pub what: String,
    /// The rate there.
    pub rate_bps: BitRate,
    /// What mending the verdict's cause gains at most, in per cent.
    pub gain_percent: f64,
}

/// A cause that was looked at and is not it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuledOut {
    /// The code.
    pub code: Code,
    /// The number that speaks against it.
    pub reason: String,
}
