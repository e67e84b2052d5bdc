//! The answers that name no fault: the ladder itself gives them.

use super::list::{Rule, RuleDoc, elsewhere};

/// All is as good as the line allows.
pub(in super::super) const AT_LINE_RATE: &str = "at-line-rate";
/// All is as good as this device is.
pub(in super::super) const AT_DEVICE_CLASS: &str = "at-device-class";
/// What was asked for was measured, and no fault was asked about.
pub(in super::super) const AS_ASKED: &str = "as-asked";
/// The measurement itself is the limit.
pub(in super::super) const TOOL_LIMIT: &str = "tool-limit";
/// Not enough is known.
pub(in super::super) const TOO_LITTLE: &str = "too-little-evidence";
/// The network is slower than it should be, and nothing says why.
pub(in super::super) const UNEXPLAINED: &str = "unexplained-network-gap";

pub(super) const RULES: &[Rule] = &[
    Rule {
        doc: RuleDoc {
            code: "none.at-line-rate",
            title: "All is well: the link is the limit",
            meaning: "What was measured reaches what this link can carry. Only a faster link would be faster.",
            detected: "The slowest rung of what was asked for reaches at least 93 % of what TCP can get from the line at this MTU; of raw rates alone (`weaklink throughput`) the slower direction, the datagrams, or the sum of several PCs does. Where no port tells its speed, a steady rate at what a common speed carries tells it.",
            fix: "Nothing is broken. For more, faster ports and cables at both ends and between them; for several PCs at once at the NAS alone.",
        },
        check: elsewhere,
    },
    Rule {
        doc: RuleDoc {
            code: "none.at-device-class",
            title: "All is well: this is what the device gives",
            meaning: "Nothing is at fault in what was measured; the figures are those of this machine.",
            detected: "A run on one machine in which no fault showed: its disks, and the lanes that were asked for; or raw rates over loopback, which no cable limits.",
            fix: "Nothing is broken.",
        },
        check: elsewhere,
    },
    Rule {
        doc: RuleDoc {
            code: "none.as-asked",
            title: "What was asked for was measured",
            meaning: "The question was not whether the line is full: streams were paced on purpose, datagrams were sent at one rate, congestion controls were compared, or several PCs measured at once. That is answered, and nothing is at fault in it.",
            detected: "With --pacing: the streams reach 90 % of the pace that was asked for and more. With --congestion A,B: at least two of them ran in one direction. With --udp --rate: that rate was sent and next to nothing of it was lost. With --together: the sum of all PCs is known, and none of them is worse off than another for a reason of its own.",
            fix: "Nothing is broken. What the line carries without these wishes tells a test without them.",
        },
        check: elsewhere,
    },
    Rule {
        doc: RuleDoc {
            code: "none.tool-limit",
            title: "A figure cannot be, or the measurement was the limit",
            meaning: "More was measured than the link can carry, copies ran faster than the measurement of TCP, or our own copy ran slower than the disk and the network that it used, or what was asked for (a buffer, one stream on one core, a rate of datagrams that the sender did not reach) set the rate. Such figures prove nothing about network or disk.",
            detected: "A rate above the line rate of a port, above what its headers leave, or above what the user stated; a stream thread at a full core while the others idle and only so many streams were asked for; buffers that were asked for with --window and that the streams fill; datagrams that all arrive up to the highest rate that was tried; or a copy clearly faster than raw TCP in the same direction. As information: our own copy more than 20 % slower than the disk and TCP are by themselves. Never on one machine alone: loopback has no line, and a stated speed says nothing there.",
            fix: "Check the stated speed; measure again with more streams or more time, and while the hosts are idle.",
        },
        check: super::own_copy::check,
    },
    Rule {
        doc: RuleDoc {
            code: "inconclusive.too-little-evidence",
            title: "Too little was measured",
            meaning: "The parts that would decide were skipped or failed.",
            detected: "No rate of the network and none of a disk; on one machine, none of a disk. Of raw rates alone: no pass came about, or no two of the congestion controls that were to be compared ran.",
            fix: "Run again with the missing part; the reasons stand beside each part in the report.",
        },
        check: elsewhere,
    },
    Rule {
        doc: RuleDoc {
            code: "inconclusive.unexplained-network-gap",
            title: "The network is slower than it should be, and nothing measured says why",
            meaning: "TCP stays below the line (or the line is not known), but no loss, window, processor, bus or setting explains it.",
            detected: "A gap between the wire and TCP that no rule explains; of several PCs at once, a sum that stays below the NAS's link, or does not grow where that link's speed is not known.",
            fix: "State the links' real speeds (--link-speed), run the whole diagnosis (`weaklink run`, with --thorough), or change one thing (cable, port, host), run again and compare the two reports.",
        },
        check: elsewhere,
    },
];
