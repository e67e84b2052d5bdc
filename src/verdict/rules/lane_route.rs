//! A lane whose own connection takes another way than the rest of the run.

use super::super::ladder::Part;
use super::super::seen::Seen;
use super::list::{Explains, Hit, Rule, RuleDoc};
use crate::model::copy::{FileSet, Lane};
use crate::model::finding::Where;
use crate::model::{Direction, Role};

const CODE: &str = "network.lane-takes-another-way";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "A copy takes another way than the rest of the run",
        meaning: "The share is mounted, or SSH connects, by another address of the NAS than the one that was tested: by a VPN, Wi-Fi or a slower port. So TCP is fast and that copy is slow.",
        detected: "The address of the lane's own server, as the kernel's client or ssh names it, and the interface that the kernel's route to it names.",
        fix: "Mount the share, or connect, by the NAS's address on the fast cable; or take that address out of the VPN's routes.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    let (Some(copy), Some(top)) = (seen.copy().filter(|_| !seen.local()), seen.end(Role::Pc).link.and_then(|link| link.top()))
    else {
        return Vec::new();
    };
    copy.lanes.iter().filter_map(|lane| elsewhere(seen, lane, &top.name)).collect()
}

fn elsewhere(seen: &Seen<'_>, lane: &Lane, usual: &str) -> Option<Hit> {
    let interface = lane.fact("interface").filter(|interface| *interface != usual)?;
    let what = match lane.fact("interface_kind") {
        Some("wifi") => ", which is Wi-Fi",
        Some("tunnel") => ", which is a tunnel or VPN",
        Some("loopback") => ", which never leaves this machine",
        _ => "",
    };
    let server = lane.fact("server_address").unwrap_or("another address");
    // It explains a lane that falls behind; one that keeps up is only worth a word.
    let rates = |direction: Direction| {
        lane.measured(direction)
            .filter(|(rung, _)| rung.files == FileSet::Large)
            .map(|(_, copied)| copied.bytes_per_s.bits())
            .max()
    };
    let falls = Direction::BOTH.iter().any(|direction| {
        rates(*direction)
            .zip(seen.way(*direction).rate())
            .is_some_and(|(lane, tcp)| lane.as_f64() < seen.lane_tolerance() * tcp.as_f64())
    });
    let explains = if falls { Explains::Part(Part::Lane(lane.kind)) } else { Explains::Info };
    Some(
        Hit::new(CODE, Where::Pc, explains)
            .lane(lane.kind)
            .weight(0.93, 2)
            .shows(format!("{}: its connection to {server} leaves by {interface}{what}.", lane.kind.word()))
            .shows(format!("Everything else was measured by {usual}."))
            .advise("Use the NAS's address on the fast cable for this copy, and measure again."),
    )
}
