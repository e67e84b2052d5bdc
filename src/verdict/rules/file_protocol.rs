//! Settings of SMB and NFS that cost speed by themselves.

use super::super::ladder::{LaneStep, Part, lane_steps};
use super::super::limits;
use super::super::seen::Seen;
use super::super::words::bytes;
use super::list::{Explains, Hit, Rule, RuleDoc, elsewhere};
use super::server_core::{is_smb, on};
use crate::model::Direction;
use crate::model::copy::{FileSet, Lane, LaneKind};
use crate::model::finding::Where;

pub(super) const RULES: &[Rule] = &[
    Rule {
        doc: RuleDoc {
            code: "protocol.nfs-small-io-size",
            title: "NFS moves small pieces",
            meaning: "Each request carries at most rsize or wsize bytes; with small ones the round trips cost more than the data.",
            detected: "rsize or wsize of the mount is 32 KiB or less, and the copy is clearly slower than plain TCP.",
            fix: "Remove rsize and wsize from the mount options (the default is up to 1 MiB), and mount by TCP.",
        },
        check,
    },
    Rule {
        doc: RuleDoc {
            code: "protocol.nfs-sync-export",
            title: "NFS writes wait for the disk every time",
            meaning: "With a synchronous mount or export every write waits until the data is on the disk.",
            detected: "The mount or export says sync, and writing is clearly slower than plain TCP to the same disk.",
            fix: "Mount without sync; a fast log device, or an asynchronous export if a power cut may lose data.",
        },
        check: elsewhere,
    },
    Rule {
        doc: RuleDoc {
            code: "protocol.smb-old-dialect",
            title: "SMB speaks an old dialect",
            meaning: "SMB 1 and 2.0 move at most 64 KiB per request and wait for each.",
            detected: "The negotiated dialect is below 2.1, and the copy is clearly slower than plain TCP.",
            fix: "Allow SMB 3 at both ends.",
        },
        check: elsewhere,
    },
];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    let Some(copy) = seen.copy() else { return Vec::new() };
    let mut hits = Vec::new();
    for direction in Direction::BOTH {
        let steps = lane_steps(seen, direction, seen.way(direction).rate());
        for lane in &copy.lanes {
            let falls = |step: &&LaneStep<'_>| {
                step.kind == lane.kind
                    && step.rung.files == FileSet::Large
                    && step.rate.as_f64() < seen.lane_tolerance() * step.expected.as_f64()
            };
            if let Some(step) = steps.iter().find(falls) {
                hits.extend(settings(lane, direction, step));
            }
        }
    }
    hits
}

pub(super) fn is_nfs(lane: &Lane) -> bool {
    let named = lane.protocol.measured().map(|name| name.to_ascii_lowercase());
    lane.kind == LaneKind::Nfs || named.is_some_and(|name| name.starts_with("nfs"))
}

/// Whether an SMB dialect is older than 2.1, the first with large requests.
fn is_old(dialect: &str) -> bool {
    if !dialect.contains(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let mut numbers =
        dialect.trim_start_matches(|c: char| !c.is_ascii_digit()).split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(9), numbers.next().unwrap_or(0));
    version < (2, 1)
}

fn settings(lane: &Lane, direction: Direction, step: &LaneStep<'_>) -> Vec<Hit> {
    let hit = |code, weight| {
        Hit::new(code, Where::Path, Explains::Part(Part::Lane(lane.kind)))
            .towards(direction)
            .lane(lane.kind)
            .weight(weight, 1)
            .relieved(Some(step.expected))
            .shows(format!("{}: the lane moves {}, plain TCP {}.", direction.arrow(), bytes(step.rate), bytes(step.expected)))
    };
    let mut hits = Vec::new();
    let size = if direction == Direction::Upload { "wsize" } else { "rsize" };
    let small =
        lane.fact(size).and_then(|text| text.parse::<u64>().ok()).filter(|bytes| (1..=limits::SMALL_IO_BYTES).contains(bytes));
    if let Some(small) = small.filter(|_| is_nfs(lane)) {
        hits.push(
            hit("protocol.nfs-small-io-size", 0.85)
                .also(Some(format!("{size} is {small} bytes.")))
                .advise("Remove rsize and wsize from the mount options."),
        );
    }
    let sync = on(lane, "sync") || lane.fact("export").is_some_and(|flags| flags.split([',', ' ']).any(|flag| flag == "sync"));
    if is_nfs(lane) && direction == Direction::Upload && sync {
        hits.push(
            hit("protocol.nfs-sync-export", 0.8)
                .also(Some("The mount or export is synchronous.".to_owned()))
                .advise("Mount without sync, or give the NAS a fast log device."),
        );
    }
    let dialect = lane.fact("vers").or_else(|| lane.fact("dialect"));
    if let Some(dialect) = dialect.filter(|dialect| is_smb(lane) && is_old(dialect)) {
        hits.push(
            hit("protocol.smb-old-dialect", 0.8)
                .also(Some(format!("The dialect is SMB {dialect}.")))
                .advise("Allow SMB 3 at both ends (no fixed vers= in the mount, no old maximum protocol at the server)."),
        );
    }
    hits
}

#[cfg(test)]
mod tests {
    #[test]
    fn dialects_before_2_1_are_old() {
        for (dialect, old) in [
            ("1.0", true),
            ("2.0", true),
            ("2.0.2", true),
            ("2.1", false),
            ("3.1.1", false),
            ("3.0", false),
            ("SMB1", true),
            ("default", false),
        ] {
            assert_eq!(super::is_old(dialect), old, "{dialect}");
        }
    }
}
