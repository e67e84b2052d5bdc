//! The answers about the path MTU that name no fault.

use super::list::{Rule, RuleDoc, elsewhere};

/// Nothing is wrong with the size of packets.
pub(in super::super) const MTU_CONSISTENT: &str = "mtu-consistent";
/// It cannot be told which packets pass.
pub(in super::super) const MTU_UNKNOWN: &str = "mtu-unknown";

pub(super) const RULES: &[Rule] = &[
    Rule {
        doc: RuleDoc {
            code: "none.mtu-consistent",
            title: "The path carries what the hosts send",
            meaning: "No packet vanishes because of its size: either all that both ends' interfaces let out arrives, or a router says what fits and TCP keeps to it.",
            detected: "The largest packet of each direction, found to the byte; it equals what the sender's interface lets out, or a router named its limit. Without an agent: ICMP echo both ways together, and what the NAS's TCP services asked for and acknowledged.",
            fix: "Nothing is broken.",
        },
        check: elsewhere,
    },
    Rule {
        doc: RuleDoc {
            code: "inconclusive.mtu-unknown",
            title: "Which packets pass could not be told",
            meaning: "A direction gave no answer, or what answered does not decide between a path that drops large packets and a host that does not answer to them.",
            detected: "The search in a direction failed, or without an agent neither ICMP echo nor a TCP service decided.",
            fix: "Run `weaklink serve` on the NAS and `weaklink mtu` on the PC: both ends then count what arrives, each way by itself.",
        },
        check: elsewhere,
    },
];
