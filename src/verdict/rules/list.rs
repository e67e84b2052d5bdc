//! What a rule is, and the slice that lists them all.

use super::super::ladder::{Part, bound_by_number};
use super::super::seen::Seen;
use crate::model::Direction;
use crate::model::copy::LaneKind;
use crate::model::finding::{Code, Where};
use crate::units::BitRate;

/// What `weaklink explain CODE` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleDoc {
    /// The stable code, such as `network.loss`.
    pub code: &'static str,
    /// A few words.
    pub title: &'static str,
    /// What it means for the user.
    pub meaning: &'static str,
    /// Which facts show it.
    pub detected: &'static str,
    /// What to do about it.
    pub fix: &'static str,
}

/// One rule: its page and its check.
pub(in super::super) struct Rule {
    pub(in super::super) doc: RuleDoc,
    pub(in super::super) check: fn(&Seen<'_>) -> Vec<Hit>,
}

/// What a hit explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Explains {
    /// Transfers stop, whatever the ladder says.
    Stops,
    /// A fault that has no rate of its own.
    Fault,
    /// The rate of one part, when it binds.
    Part(Part),
    /// The rate of the network, at the line or below it.
    Network,
    /// Nothing: good to know.
    Info,
}

impl Explains {
    /// What slows large files on a lane explains the lane, unless the user copies small ones and their number binds.
    pub(super) fn large_files(seen: &Seen<'_>, direction: Direction, kind: LaneKind) -> Self {
        if bound_by_number(seen, direction, kind) { Self::Info } else { Self::Part(Part::Lane(kind)) }
    }
}

/// One explanation on offer.
#[derive(Clone, Debug)]
pub(in super::super) struct Hit {
    pub(in super::super) code: &'static str,
    pub(in super::super) place: Where,
    /// None: both.
    pub(in super::super) direction: Option<Direction>,
    pub(in super::super) lane: Option<LaneKind>,
    pub(in super::super) explains: Explains,
    /// How well the evidence fits, 0 to 1: decides between two explanations of the same part.
    pub(in super::super) weight: f64,
    /// Independent kinds of evidence.
    pub(in super::super) kinds: u32,
    pub(in super::super) evidence: Vec<String>,
    pub(in super::super) advice: Vec<String>,
    /// What the part would carry once mended.
    pub(in super::super) relieved: Option<BitRate>,
    /// It holds for one stream, as copies use, even where several together do better.
    pub(in super::super) one_flow: bool,
    /// Busy hosts show it without harm: it explains a rate clearly below the line, never one near it.
    pub(in super::super) soft: bool,
    /// The evidence rules out what busy hosts show: no soft hit stands against it.
    pub(in super::super) firm: bool,
    /// What is to blame, where the title of the code says less than is known.
    pub(in super::super) title: Option<String>,
}

impl Hit {
    pub(super) fn new(code: &'static str, place: impl Into<Where>, explains: Explains) -> Self {
        Self {
            code,
            place: place.into(),
            direction: None,
            lane: None,
            explains,
            weight: 0.7,
            kinds: 1,
            evidence: Vec::new(),
            advice: Vec::new(),
            relieved: None,
            one_flow: false,
            soft: false,
            firm: false,
            title: None,
        }
    }

    pub(super) fn tcp(code: &'static str, place: impl Into<Where>, direction: Direction) -> Self {
        Self::new(code, place, Explains::Part(Part::Tcp)).towards(direction)
    }

    pub(super) fn towards(mut self, direction: Direction) -> Self {
        self.direction = Some(direction);
        self
    }

    pub(super) fn lane(mut self, lane: LaneKind) -> Self {
        self.lane = Some(lane);
        self
    }

    pub(super) fn weight(mut self, weight: f64, kinds: u32) -> Self {
        self.weight = weight;
        self.kinds = kinds;
        self
    }

    pub(super) fn shows(mut self, evidence: impl Into<String>) -> Self {
        self.evidence.push(evidence.into());
        self
    }

    pub(super) fn also(mut self, evidence: Option<String>) -> Self {
        self.kinds += u32::from(evidence.is_some());
        self.evidence.extend(evidence);
        self
    }

    /// A fact beside the evidence, no kind of its own.
    pub(super) fn noting(mut self, fact: Option<String>) -> Self {
        self.evidence.extend(fact);
        self
    }

    pub(super) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice.push(advice.into());
        self
    }

    pub(super) fn soft(mut self) -> Self {
        self.soft = true;
        self
    }

    pub(super) fn firm(mut self, firm: bool) -> Self {
        self.firm = firm;
        self
    }

    pub(super) fn titled(mut self, title: String) -> Self {
        self.title = Some(title);
        self
    }

    pub(super) fn relieved(mut self, rate: Option<BitRate>) -> Self {
        self.relieved = rate;
        self
    }

    /// Whether it speaks about this direction.
    pub(in super::super) fn touches(&self, direction: Direction) -> bool {
        self.direction.is_none_or(|own| own == direction)
    }
}

/// Every rule. Several codes of one kind share a file and a check; then the check stands once.
const RULES: &[&[Rule]] = &[
    super::content::RULES,
    super::mtu_black_hole::RULES,
    super::mtu_mismatch::RULES,
    super::mtu_routers::RULES,
    super::mtu_tcp::RULES,
    super::jumbo::RULES,
    super::no_link::RULES,
    super::link_capability::RULES,
    super::duplex::RULES,
    super::nic_bus::RULES,
    super::detour::RULES,
    super::addresses::RULES,
    super::unstable::RULES,
    super::cable_errors::RULES,
    super::loss::RULES,
    super::speed_step::RULES,
    super::flow_control::RULES,
    super::tcp_window::RULES,
    super::lag::RULES,
    super::hop::RULES,
    super::routed::RULES,
    super::busy_link::RULES,
    super::stalls::RULES,
    super::bufferbloat::RULES,
    super::both_ways::RULES,
    super::congestion::RULES,
    super::datagrams::RULES,
    super::sharing::RULES,
    super::offloads::RULES,
    super::overruns::RULES,
    super::stack_core::RULES,
    super::background_load::RULES,
    super::disk_rate::RULES,
    super::disk_fault::RULES,
    super::ssh::RULES,
    super::server_core::RULES,
    super::file_protocol::RULES,
    super::lane_route::RULES,
    super::lane_slower::RULES,
    super::small_files::RULES,
    super::outcomes::RULES,
    super::mtu_outcomes::RULES,
    super::link_outcomes::RULES,
];

/// The codes of the rules that a document about the path MTU alone is judged by.
const ABOUT_MTU: [&str; 8] = [
    "network.mtu-black-hole",
    "network.mtu-mismatch",
    "network.mtu-reduced-by-router",
    "network.icmp-wrong-mtu",
    "network.mtu-changed",
    "network.mss-clamped",
    "network.jumbo-unused",
    "network.jumbo-gain",
];

/// The codes of the rules that a document about links alone is judged by: what the ports and the kernel tell. What holds back a
/// second of load is the question of other commands, but for a break in it.
const ABOUT_LINKS: [&str; 16] = [
    "network.no-link",
    "network.link-below-capability",
    "network.half-duplex",
    "network.nic-bus",
    "network.wrong-route",
    "network.slower-port-used",
    "network.two-ports-one-subnet",
    "network.asymmetric-route",
    "network.routed-or-firewalled",
    "network.cable-errors",
    "network.link-unstable",
    "network.periodic-stalls",
    "network.lag-broken",
    "network.lag-single-flow",
    "network.lag-uneven-hash",
    "network.lag-reordering",
];

/// Whether a rule speaks about raw rates: all of the network's but what larger packets would give, and what keeps a host's processor
/// from the network.
fn about_rates(code: &str) -> bool {
    (code.starts_with("network.") && code != "network.jumbo-unused")
        || ["cpu.network-stack-core", "cpu.background-load"].contains(&code)
}

/// A check for rules whose code another rule's check or the ladder itself gives.
pub(super) fn elsewhere(_: &Seen<'_>) -> Vec<Hit> {
    Vec::new()
}

/// All explanations on offer; those about packet sizes or raw rates alone where nothing else was asked for.
pub(in super::super) fn check_all(seen: &Seen<'_>) -> Vec<Hit> {
    let scope = seen.doc.plan.scope;
    let asked = |rule: &&Rule| match rule.doc.code {
        code if scope.is_mtu() => ABOUT_MTU.contains(&code),
        code if scope.is_link() => ABOUT_LINKS.contains(&code),
        code => !scope.is_throughput() || about_rates(code),
    };
    RULES.iter().copied().flatten().filter(asked).flat_map(|rule| (rule.check)(seen)).collect()
}

/// The pages of all codes that a verdict or a finding can have.
pub fn rules() -> &'static [RuleDoc] {
    static DOCS: std::sync::LazyLock<Vec<RuleDoc>> =
        std::sync::LazyLock::new(|| RULES.iter().copied().flatten().map(|rule| rule.doc).collect());
    &DOCS
}

/// The page of one code, if a rule gives it.
pub fn explain(code: &Code) -> Option<&'static RuleDoc> {
    let text = code.to_string();
    rules().iter().find(|doc| doc.code == text)
}
