//! A file server or client whose one process is full.

use super::super::ladder::{LaneStep, lane_steps};
use super::super::limits;
use super::super::seen::Seen;
use super::super::words::{bytes, percent};
use super::list::{Explains, Hit, Rule, RuleDoc, elsewhere};
use crate::model::copy::{FileSet, Lane, LaneKind};
use crate::model::cpu::CpuWindow;
use crate::model::{Direction, Role};

pub(super) const RULES: &[Rule] = &[
    Rule {
        doc: RuleDoc {
            code: "cpu.smb-server-core",
            title: "The SMB server's process fills a core",
            meaning: "Samba serves one connection by one process on one core. When that is full, the copy cannot go faster.",
            detected: "The SMB copy is clearly slower than plain TCP with the same disks, and smbd (or the kernel's SMB threads) used a whole core meanwhile.",
            fix: "SMB multichannel, larger files, a faster processor; look for virus scanning or auditing modules of the share.",
        },
        check,
    },
    Rule {
        doc: RuleDoc {
            code: "cpu.smb-signing-or-encryption",
            title: "SMB signs or encrypts every packet, and a core is full with it",
            meaning: "Signing and encryption cost processor time on both ends; on a slow NAS they are the limit.",
            detected: "As for the SMB server's core, while the connection is negotiated with signing or encryption.",
            fix: "Do without encryption and mandatory signing in a trusted network, or use AES-GCM/GMAC on a processor with AES instructions.",
        },
        check: elsewhere,
    },
];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    Direction::BOTH.into_iter().filter_map(|direction| smb(seen, direction)).collect()
}

/// Whether a lane is SMB.
pub(super) fn is_smb(lane: &Lane) -> bool {
    let named = lane.protocol.measured().map(|name| name.to_ascii_lowercase());
    lane.kind == LaneKind::Smb || named.is_some_and(|name| name.starts_with("smb") || name.starts_with("cifs"))
}

/// Whether a fact is there and switched on.
pub(super) fn on(lane: &Lane, name: &str) -> bool {
    lane.fact(name)
        .is_some_and(|value| !matches!(value.to_ascii_lowercase().as_str(), "" | "no" | "off" | "false" | "0" | "none"))
}

fn used(cpu: &CpuWindow) -> Option<(&str, f64)> {
    let works = |name: &str| {
        ["smbd", "ksmbd", "kworker/ksmb", "cifsd", "smbclient", "mount.cifs"].iter().any(|start| name.starts_with(start))
    };
    let found = cpu.processes.iter().filter(|p| works(&p.name)).map(|p| (p.name.as_str(), p.busiest_thread));
    found.max_by(|a, b| a.1.total_cmp(&b.1).then_with(|| b.0.cmp(a.0)))
}

fn smb(seen: &Seen<'_>, direction: Direction) -> Option<Hit> {
    let lanes = &seen.copy()?.lanes;
    let steps = lane_steps(seen, direction, seen.way(direction).rate());
    let falls = |step: &&LaneStep<'_>| step.rate.as_f64() < seen.lane_tolerance() * step.expected.as_f64();
    let lane_of = |step: &LaneStep<'_>| lanes.iter().find(|lane| lane.kind == step.kind && is_smb(lane));
    let step = steps.iter().filter(falls).find(|step| step.rung.files == FileSet::Large && lane_of(step).is_some())?;
    let lane = lane_of(step)?;
    let ends = [(Role::Pc, step.copied.cpu_pc.measured()), (Role::Nas, step.copied.cpu_nas.measured())];
    let known = ends.into_iter().filter_map(|(role, cpu)| cpu.and_then(used).map(|(name, share)| (role, name, share)));
    let (role, name, share) = known.max_by(|a, b| a.2.total_cmp(&b.2)).filter(|found| found.2 >= limits::THREAD_FULL)?;
    let sealed = ["seal", "encryption"].iter().any(|fact| on(lane, fact));
    // A negotiated signing algorithm is not signing: only its use counts.
    let signed = ["sign", "signing"].iter().any(|fact| on(lane, fact));
    let (code, why) = match (sealed, signed) {
        (true, _) => ("cpu.smb-signing-or-encryption", Some("The connection is encrypted.".to_owned())),
        (_, true) => ("cpu.smb-signing-or-encryption", Some("Every packet is signed.".to_owned())),
        _ => ("cpu.smb-server-core", None),
    };
    Some(
        Hit::new(code, role, Explains::large_files(seen, direction, step.kind))
            .towards(direction)
            .lane(step.kind)
            .weight(0.9, 2)
            .relieved(Some(step.expected))
            .shows(format!("{}: SMB moves {}, plain TCP {}.", direction.arrow(), bytes(step.rate), bytes(step.expected)))
            .shows(format!("{name} used {} of a core at the {}.", percent(share), role.title()))
            .also(why)
            .advise("In a trusted network do without SMB encryption and mandatory signing; try SMB multichannel.")
            .advise("Look for virus scanning or auditing of the share."),
    )
}
