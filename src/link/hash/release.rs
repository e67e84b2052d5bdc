//! Which of the bonding driver's historical rules a kernel follows, by the text of `/proc/sys/kernel/osrelease`.
//!
//! The changes, all of them in `drivers/net/bonding/bond_main.c` of the kernel, and the releases that brought them:
//!
//! | change | mainline | also in |
//! |---|---|---|
//! | addresses folded by shifts of 16 and 8, encap policies (32819dc18348) | 3.13 | |
//! | the EtherType joins the layer 2 hash, as it stands in the frame | 3.17 or 3.18 (not in 3.14, in 4.4) | |
//! | an array of the usable ports instead of walking the list of all | 3.18 or 3.19 (not in 3.14, in 4.4) | |
//! | the lowest bit is dropped (b5f862180d70), by every policy with IP addresses | 4.15 | 4.14.2 or .3, 4.9.65 or .66, 4.4.102 or .103, 3.18.84 or .85 |
//! | `vlan+srcmac` | 5.12 | |
//! | the EtherType as a number | 5.15 | |
//! | ports are read from a wrong place (a815bde56b15) | 5.15 | mended by 429e3d123d9a in 5.15.17, 5.16.3, 5.17 |
//! | the lowest bit is dropped by the policies with ports alone (49aefd131739) | 5.18 | 5.17.6, 5.15.38 |

/// Before 3.13 or since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Folding {
    /// The lower 16 bits of IPv4 addresses, the bytes of IPv6 addresses.
    Old,
    /// Shifts by 16 and by 8.
    Shifts,
}

/// How the EtherType joins the layer 2 hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TypeWord {
    /// Not at all.
    LeftOut,
    /// The two bytes of the frame read as a number of the host.
    AsSent,
    /// As a number.
    Number,
}

/// Whether the hash is halved at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LowestBit {
    /// It is not.
    Kept,
    /// By every policy with IP addresses: connections that get even ports only would share a port of two.
    Dropped,
    /// By the policies with ports.
    DroppedWithPorts,
}

/// Where the driver reads the ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ports {
    /// In the header.
    Read,
    /// At an offset from the wrong start.
    Misread,
}

/// The rules of one release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    pub(super) folding: Folding,
    pub(super) type_word: TypeWord,
    pub(super) lowest_bit: LowestBit,
    pub(super) ports: Ports,
}

/// Major, minor, patch.
type Version = (u32, u32, u32);

/// The newest patch of any series.
const NEWEST: u32 = u32::MAX;

/// A change: the first release of mainline that has it, and of stable series: the first patch that may have it, and the first
/// that has it for certain.
struct Change {
    mainline: (u32, u32),
    stable: &'static [(u32, u32, u32, u32)],
}

const FOLDED: Change = Change { mainline: (3, 13), stable: &[] };
/// Which of the two releases had it first is not known here.
const TYPE_JOINS: Change = Change { mainline: (3, 18), stable: &[(3, 17, 0, NEWEST)] };
/// Between the two patches of a series its change was taken in; which of both had it first is not known here.
const LOWEST_DROPPED: Change =
    Change { mainline: (4, 15), stable: &[(3, 18, 84, 86), (4, 4, 102, 104), (4, 9, 65, 67), (4, 14, 2, 4)] };
const TYPE_AS_NUMBER: Change = Change { mainline: (5, 15), stable: &[] };
const DROPPED_WITH_PORTS: Change = Change { mainline: (5, 18), stable: &[(5, 15, 38, 38), (5, 17, 6, 6)] };
const PORTS_MISREAD: Change = Change { mainline: (5, 15), stable: &[] };
const PORTS_MENDED: Change = Change { mainline: (5, 17), stable: &[(5, 15, 17, 17), (5, 16, 3, 3)] };

const CHANGES: [&Change; 7] =
    [&FOLDED, &TYPE_JOINS, &LOWEST_DROPPED, &TYPE_AS_NUMBER, &DROPPED_WITH_PORTS, &PORTS_MISREAD, &PORTS_MENDED];

/// Which of a change's two patches of a stable series counts.
#[derive(Clone, Copy)]
enum Reading {
    Early,
    Late,
}

impl Change {
    fn in_release(&self, (major, minor, patch): Version, reading: Reading) -> bool {
        let series = self.stable.iter().find(|(x, y, ..)| (*x, *y) == (major, minor));
        (major, minor) >= self.mainline
            || series.is_some_and(|(_, _, early, late)| match reading {
                Reading::Early => patch >= *early,
                Reading::Late => patch >= *late,
            })
    }

    /// The releases at which it comes in.
    fn releases(&self) -> impl Iterator<Item = Version> {
        let stable = self.stable.iter().map(|(major, minor, _, late)| (*major, *minor, *late));
        std::iter::once((self.mainline.0, self.mainline.1, 0)).chain(stable)
    }
}

fn rules_of(version: Version, reading: Reading) -> Rules {
    let has = |change: &Change| change.in_release(version, reading);
    Rules {
        folding: if has(&FOLDED) { Folding::Shifts } else { Folding::Old },
        type_word: match (has(&TYPE_AS_NUMBER), has(&TYPE_JOINS)) {
            (true, _) => TypeWord::Number,
            (false, true) => TypeWord::AsSent,
            (false, false) => TypeWord::LeftOut,
        },
        lowest_bit: match (has(&DROPPED_WITH_PORTS), has(&LOWEST_DROPPED)) {
            (true, _) => LowestBit::DroppedWithPorts,
            (false, true) => LowestBit::Dropped,
            (false, false) => LowestBit::Kept,
        },
        ports: if has(&PORTS_MISREAD) && !has(&PORTS_MENDED) { Ports::Misread } else { Ports::Read },
    }
}

/// All rules that a kernel of this release may follow; empty when the text is no release.
pub(super) fn rules(release: &str) -> Vec<Rules> {
    let Some((from, to)) = range(release) else { return Vec::new() };
    let between = CHANGES.iter().flat_map(|change| change.releases()).filter(|at| (from..=to).contains(at));
    let mut all: Vec<Rules> = Vec::new();
    for version in [from, to].into_iter().chain(between) {
        for reading in [Reading::Early, Reading::Late] {
            let rules = rules_of(version, reading);
            // A distribution's kernel of those months was published with the mended driver.
            let impossible = rules.ports == Ports::Misread && from != to;
            if !impossible && !all.contains(&rules) {
                all.push(rules);
            }
        }
    }
    all
}

/// Whether a kernel of this release keeps the usable ports in an array; before, it counted all ports of balance-xor and went
/// on to the next usable one. None when the release does not tell.
pub(in crate::link) fn has_array(release: &str) -> Option<bool> {
    const SURELY_NOT_BEFORE: Version = (3, 18, 0);
    const SURELY_SINCE: Version = (3, 19, 0);
    let (from, to) = range(release)?;
    if from >= SURELY_SINCE { Some(true) } else { (to < SURELY_NOT_BEFORE).then_some(false) }
}

/// The oldest and the newest mainline release whose driver a kernel of this release may have.
///
/// Red Hat and SUSE keep the number and take newer drivers in (`el7`, `el8`, …, `-default`), so theirs may be anything from
/// the number on. Debian's and Ubuntu's `5.15.0-91-generic` hides the stable patch: anything of the series.
fn range(release: &str) -> Option<(Version, Version)> {
    let release = release.trim();
    let numbers = release.find(|c: char| !c.is_ascii_digit() && c != '.').map_or(release, |end| &release[..end]);
    let rest = release.get(numbers.len()..).unwrap_or_default();
    let mut parts = numbers.split('.').map(|part| part.parse::<u32>().ok());
    let (major, minor) = (parts.next()??, parts.next()??);
    let patch = parts.next().flatten();
    let from = (major, minor, patch.unwrap_or(0));
    let red_hat =
        rest.split('.').any(|part| part.strip_prefix("el").is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit())));
    let to = if red_hat || rest.ends_with("-default") {
        (NEWEST, 0, 0)
    } else if patch.unwrap_or(0) == 0 && !rest.is_empty() {
        (major, minor, NEWEST)
    } else {
        from
    };
    Some((from, to))
}
