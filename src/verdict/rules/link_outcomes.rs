//! The answers about links that name no fault.

use super::list::{Rule, RuleDoc, elsewhere};

/// Nothing holds the links back.
pub(in super::super) const LINKS_CONSISTENT: &str = "links-consistent";
/// It cannot be told what the links run at.
pub(in super::super) const LINKS_UNKNOWN: &str = "links-unknown";

pub(super) const RULES: &[Rule] = &[
    Rule {
        doc: RuleDoc {
            code: "none.links-consistent",
            title: "The links run at what they can",
            meaning: "Each port runs at the fastest speed that it and its partner offer, its bus carries that, and no aggregation is broken. What is between the two hosts shows under load only.",
            detected: "Link modes, duplex, negotiation, bus and aggregation as drivers and kernel tell them at each end; counters of damaged frames and the rate of TCP where the ports were loaded.",
            fix: "Nothing is broken.",
        },
        check: elsewhere,
    },
    Rule {
        doc: RuleDoc {
            code: "inconclusive.links-unknown",
            title: "What the links run at could not be told",
            meaning: "No port on the way states the speed of a cable, as in virtual machines and containers, or TCP carries less than the ports and nothing at the ports says why.",
            detected: "Ports of virtual machines, veth pairs and tunnels claim speeds that are no evidence about a cable; a rate below all known ports.",
            fix: "Run weaklink on the machine around the virtual one, state the speeds with --link-speed, or let `weaklink throughput` read the line's speed off its plateau.",
        },
        check: elsewhere,
    },
];
