//! A port that has no room for what arrives, while the processor has time.

use super::super::counted::counted;
use super::super::limits;
use super::super::phases::slow_copies;
use super::super::seen::{Load, Seen, Way};
use super::super::words::bytes;
use super::list::{Explains, Hit, Rule, RuleDoc};
use super::mtu_advice;
use crate::model::{Direction, Role};

const CODE: &str = "network.power-saving";
const SETTINGS: &str = "network.nic-driver-or-offload";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "The port's bus sleeps while frames arrive",
        meaning: "The link between card and processor (PCI Express) falls asleep in short pauses and wakes too late: the card's own memory runs over and frames are lost. The cable is fine, no damaged frame is counted, and no core is busy.",
        detected: "Counters of the port's own memory (overruns, missed frames) that grew by a thousandth of the frames or more during a slow pass or copy, at a port whose way to the processor has active-state power management (ASPM) on, while no core was full and no buffer of the host was missing.",
        fix: "Turn ASPM off for this card (the firmware's setup, pcie_aspm.policy=performance, or the driver's own switch) and measure again.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    let passes: Vec<Hit> = seen.ways.iter().filter_map(|way| overrun(seen, way)).collect();
    // What a pass shows already slows the copies with it.
    let told = |way: &Direction| passes.iter().any(|hit| hit.touches(*way));
    let copies: Vec<Hit> =
        Direction::BOTH.into_iter().filter(|way| !told(way)).filter_map(|way| overrun_in_copy(seen, way)).collect();
    passes.into_iter().chain(copies).collect()
}

fn overrun(seen: &Seen<'_>, way: &Way<'_>) -> Option<Hit> {
    let pass = way.best.filter(|_| way.gap())?;
    let role = way.direction.receiver();
    let load = Load::during(pass, role)?;
    // A full core, or one that the program does not get, is the cause itself, and its rule says what the port dropped.
    if load.full() || load.too_little() || load.background() {
        return None;
    }
    let lost = counted(seen, pass, role).overrun(pass)?;
    // Where TCP sent clearly more again than the port dropped, the path loses them.
    let again =
        pass.sender.measured().into_iter().flatten().filter_map(|stream| stream.retransmits).fold(0u64, u64::saturating_add);
    if again / 2 > lost.lost {
        return None;
    }
    let asleep = sleeping(seen, role).filter(|_| !lost.ring);
    let code = if asleep.is_some() { CODE } else { SETTINGS };
    let hit = Hit::tcp(code, role, way.direction)
        .weight(if lost.share >= limits::LOSS_SHARE { 0.9 } else { 0.8 }, 1)
        .shows(lost.words(role))
        .also(asleep)
        .also(way.wire.map(|wire| format!("{} arrive, the wire could carry {wire}.", pass.goodput_bps)));
    Some(mended(hit, seen, role))
}

/// The same during a copy that falls behind while the passes of its direction had room.
fn overrun_in_copy(seen: &Seen<'_>, direction: Direction) -> Option<Hit> {
    let role = direction.receiver();
    slow_copies(seen, direction).into_iter().find_map(|copy| {
        let step = copy.step;
        let cpu = if role == Role::Pc { &step.copied.cpu_pc } else { &step.copied.cpu_nas };
        // A server whose core is full lets its port run over: then the core is the cause.
        if Load::of(cpu.measured()?).core_full() {
            return None;
        }
        let lost = copy.phase.counted(seen, role).overrun_of(step.copied.bytes)?;
        let asleep = sleeping(seen, role).filter(|_| !lost.ring);
        let hit =
            Hit::new(if asleep.is_some() { CODE } else { SETTINGS }, role, Explains::large_files(seen, direction, step.kind));
        let hit = hit
            .towards(direction)
            .lane(step.kind)
            .weight(if lost.share >= limits::LOSS_SHARE { 0.75 } else { 0.62 }, 1)
            .relieved(Some(step.expected))
            .shows(format!("During {}: {}", copy.phase.words, lost.words(role)))
            .also(asleep)
            .shows(format!("It moves {}, what lies below it {}.", bytes(step.rate), bytes(step.expected)));
        Some(mended(hit, seen, role))
    })
}

/// What to do about a port without room, by which of both it is.
fn mended(hit: Hit, seen: &Seen<'_>, role: Role) -> Hit {
    if hit.code == CODE {
        hit.advise("Turn active-state power management (ASPM) off for this card and measure again.")
    } else {
        let settings = match mtu_advice::os(seen, role) {
            "windows" => {
                "Give the port more receive buffers and let interrupts come sooner (the adapter's properties, Advanced: “Receive Buffers”, “Interrupt Moderation”)."
            }
            _ => "Give the port a larger receive ring (ethtool -G PORT rx N) and let interrupts come sooner (ethtool -C PORT).",
        };
        hit.titled(format!("The {}'s port has no room for the frames that arrive", role.title()))
            .advise(settings)
            .advise("If that changes nothing, try another slot or another driver version, and turn flow control on at both ends of the cable.")
    }
}

/// What says that the port's bus may sleep.
fn sleeping(seen: &Seen<'_>, role: Role) -> Option<String> {
    let way = &seen.end(role).port()?.bus.measured()?.way;
    let sleeps = |state: &str| state.contains("L0s") || state.contains("L1");
    let part = way.iter().find(|part| part.aspm.as_deref().is_some_and(sleeps))?;
    Some(format!("Power saving of the bus is on at {} ({}).", part.place, part.aspm.as_deref().unwrap_or_default()))
}
