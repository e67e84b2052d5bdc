//! SSH: the cipher, or the window.

use super::super::ladder::{LaneStep, lane_steps};
use super::super::limits;
use super::super::seen::{Seen, Sums};
use super::super::words::{bytes, percent};
use super::list::{Explains, Hit, Rule, RuleDoc, elsewhere};
use crate::model::copy::{FileSet, LaneKind};
use crate::model::cpu::CpuWindow;
use crate::model::finding::Where;
use crate::model::{Direction, Role};
use crate::units::BitRate;

pub(super) const RULES: &[Rule] = &[
    Rule {
        doc: RuleDoc {
            code: "cpu.ssh-encryption",
            title: "SSH's encryption fills a processor core",
            meaning: "One SSH connection encrypts on one core. When that core is full the copy cannot go faster, whatever disks and cable could do.",
            detected: "The copy through SSH is clearly slower than the same copy over plain TCP, and ssh or sshd used a whole core at one end meanwhile, or all cores there were taken and mostly by SSH, or at the cost for each byte a whole core would still give less than plain TCP. What one core gives with each cipher was measured beside it.",
            fix: "A cipher that suits the processor: AES-GCM where it has AES instructions, ChaCha20 where not; or another protocol in a trusted network.",
        },
        check,
    },
    Rule {
        doc: RuleDoc {
            code: "protocol.ssh-window",
            title: "SSH's own window limits the rate",
            meaning: "SSH allows a fixed amount of data on its way per connection. On a path with a long round trip that is the limit, not the cipher.",
            detected: "The copy is slower than plain TCP, no process is full, and the rate is what the window allows per round trip.",
            fix: "Several connections, or a protocol without such a window.",
        },
        check: elsewhere,
    },
];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    Direction::BOTH.into_iter().filter_map(|direction| ssh(seen, direction)).collect()
}

fn ssh(seen: &Seen<'_>, direction: Direction) -> Option<Hit> {
    let steps = lane_steps(seen, direction, seen.way(direction).rate());
    let is_ssh =
        |kind| kind == LaneKind::Ssh || (kind == LaneKind::Mounted && protocol(seen, kind).is_some_and(|p| p.contains("ssh")));
    let falls = |step: &LaneStep<'_>| step.rate.as_f64() < seen.lane_tolerance() * step.expected.as_f64();
    let step = steps.into_iter().find(|step| is_ssh(step.kind) && step.rung.files == FileSet::Large && falls(step))?;
    encryption(seen, direction, &step).or_else(|| window(seen, direction, &step))
}

pub(super) fn protocol(seen: &Seen<'_>, kind: LaneKind) -> Option<String> {
    let lanes = seen.copy()?.lanes.iter().filter(|lane| lane.kind == kind);
    lanes.filter_map(|lane| lane.protocol.measured()).map(|protocol| protocol.to_ascii_lowercase()).min()
}

/// What SSH did to the processors of one end.
#[derive(Clone, Copy, Debug)]
struct Used {
    /// The share of a core that its fullest process used, of the time that the hypervisor left.
    fullest: f64,
    /// The share of all program and kernel time that its processes used together.
    part: f64,
    /// The share of the time in which the cores were busy or taken by the hypervisor.
    taken: f64,
}

fn used(cpu: &CpuWindow) -> Used {
    let is_ssh = |name: &str| name == "ssh" || name == "sftp-server" || name == "sshfs" || name.starts_with("sshd");
    let ours = || cpu.processes.iter().filter(|p| is_ssh(&p.name));
    let cores = cpu.cores.len().max(1) as f64;
    let stolen = cpu.cores.iter().map(|core| core.steal).sum::<f64>() / cores;
    let busy = cpu.mean_busy();
    let fullest = ours().map(|p| p.busiest_thread.max(p.cores.min(1.0))).fold(0.0, f64::max);
    let together: f64 = ours().map(|p| p.cores).sum();
    let part = if busy > 0.0 { together / (busy * cores) } else { 0.0 };
    Used { fullest: fullest / (1.0 - stolen).max(0.1), part, taken: busy + stolen }
}

impl Used {
    /// Whether the processor is what holds SSH up: one process fills its core, or all cores are
    /// taken and it is SSH that takes most of them, so that its processes wait for each other's turn.
    fn is_full(self) -> bool {
        let crowded = self.taken >= limits::CORES_TAKEN && self.part >= limits::OTHERS_BURN;
        self.fullest >= limits::CIPHER_FULL || crowded
    }

    /// What a whole core would give at the cost for each byte that was seen, where that is less than what lies
    /// below: then the cipher binds, even though waiting for its pipe left the process some time.
    fn bound(self, step: &LaneStep<'_>) -> Option<BitRate> {
        let known = self.fullest >= limits::COST_SHARE;
        let whole = step.rate.scale(1.0 / self.fullest.max(limits::COST_SHARE));
        (known && whole < step.expected).then_some(whole)
    }
}

fn encryption(seen: &Seen<'_>, direction: Direction, step: &LaneStep<'_>) -> Option<Hit> {
    let ends = [(Role::Pc, step.copied.cpu_pc.measured()), (Role::Nas, step.copied.cpu_nas.measured())];
    let known: Vec<_> = ends.into_iter().filter_map(|(role, cpu)| cpu.map(|cpu| (role, used(cpu)))).collect();
    let order = |used: &Used| (used.is_full(), used.bound(step).is_some());
    let (role, used) =
        known.into_iter().max_by(|a, b| order(&a.1).cmp(&order(&b.1)).then(a.1.fullest.total_cmp(&b.1.fullest)))?;
    let bound = used.bound(step);
    if !used.is_full() && bound.is_none() {
        return None;
    }
    let bound = bound.map(|whole| {
        format!("At that cost a whole core gives {}, less than the {} below it.", bytes(whole), bytes(step.expected))
    });
    let word = if direction == Direction::Upload { "cipher_upload" } else { "cipher_download" };
    let lane = seen.copy()?.lanes.iter().filter(|lane| lane.kind == step.kind).min_by_key(|lane| lane.rungs.len())?;
    let cipher = lane.fact(word).or_else(|| lane.fact("cipher"));
    let aes = seen.cpu(role).and_then(|cpu| cpu.aes_instructions.measured().copied());
    let ceiling = cipher.and_then(|cipher| {
        let plain = cipher.split('@').next().unwrap_or(cipher);
        let found =
            seen.cpu(role)?.ciphers.iter().find(|c| plain.starts_with(c.cipher.as_str()) || c.cipher.starts_with(plain))?;
        found.rate.measured().map(|rate| format!("One core there gives {rate} with {} alone.", found.cipher))
    });
    let advice = match aes {
        Some(true) => "Choose aes128-gcm@openssh.com (-c): the processor there has instructions for AES.",
        Some(false) => "Choose chacha20-poly1305@openssh.com (-c): the processor there has no instructions for AES.",
        None => "Try another cipher with -c (aes128-gcm@openssh.com, chacha20-poly1305@openssh.com) and compare.",
    };
    Some(
        Hit::new("cpu.ssh-encryption", role, Explains::large_files(seen, direction, step.kind))
            .towards(direction)
            .lane(step.kind)
            .weight(if used.is_full() { 0.9 } else { 0.7 }, if used.is_full() { 2 } else { 0 })
            .relieved(Some(step.expected))
            .shows(format!("{}: SSH moves {}, without it {} pass.", direction.arrow(), bytes(step.rate), bytes(step.expected)))
            .shows(format!(
                "Its fullest process used {} of a core at the {}{}, with all cores {} taken.",
                percent(used.fullest.min(1.0)),
                role.title(),
                cipher.map(|c| format!(" with {c}")).unwrap_or_default(),
                percent(used.taken.min(1.0))
            ))
            .also(bound)
            .also(ceiling)
            .advise(advice)
            .advise("In a trusted network another protocol (SMB, NFS, rsync without SSH) avoids the cipher."),
    )
}

fn window(seen: &Seen<'_>, direction: Direction, step: &LaneStep<'_>) -> Option<Hit> {
    // Loopback has no round trip that a window could be too small for.
    let throughput = seen.doc.measurements.throughput.measured().filter(|_| !seen.local())?;
    let idle = throughput.idle_rtt.measured().map(|rtt| rtt.median_us.seconds());
    let rtt = idle.or_else(|| seen.way(direction).best.and_then(|pass| Sums::of(pass).min_rtt)).filter(|rtt| *rtt > 0.0)?;
    let allowed = limits::SSH_WINDOW_BYTES / rtt;
    let share = step.rate.bytes().0 as f64 / allowed;
    limits::WINDOW_MATCH.contains(&share).then(|| {
        Hit::new("protocol.ssh-window", Where::Path, Explains::large_files(seen, direction, step.kind))
            .towards(direction)
            .lane(step.kind)
            .weight(0.8, 2)
            .relieved(Some(step.expected))
            .shows(format!("{}: SSH moves {}, without it {} pass.", direction.arrow(), bytes(step.rate), bytes(step.expected)))
            .shows(format!("Its 2 MiB window and a round trip of {:.1} ms allow {:.0} MB/s.", rtt * 1e3, allowed / 1e6))
            .advise("Copy with several connections at once, or by another protocol.")
    })
}
