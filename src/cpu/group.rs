//! Control groups: where this process's quota is kept, and what it cost so far. Pure.
//!
//! Both generations are known: version 1 (`cpu` or `cpu,cpuacct`, times in nanoseconds) and version 2
//! (`0::`, times in microseconds). In a container only the groups below its own mount are visible; a
//! quota further up throttles all the same and cannot be seen.

use std::path::{Component, Path, PathBuf};

use super::decode::{lines, number, words};

/// No more levels than this are looked at on the way up.
const MAX_LEVELS: usize = 32;

/// No more mounts of control groups than this are looked at.
const MAX_MOUNTS: usize = 64;

/// What one group's `cpu.stat` says, since the group was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupTimes {
    /// Microseconds of being kept from running, the sum over all cores on which the group wanted to
    /// run; none where the group can have no quota.
    pub throttled_us: Option<u64>,
    /// Microseconds of running, the sum over all cores, where the directory tells it.
    pub used_us: Option<u64>,
}

/// One `cpu.stat` of either generation.
pub fn times(text: &[u8]) -> GroupTimes {
    let mut times = GroupTimes::default();
    for line in lines(text) {
        let mut words = words(line);
        let (Some(key), Some(value)) = (words.next(), words.next().and_then(number)) else { continue };
        match key {
            b"throttled_usec" => times.throttled_us = Some(value),
            b"throttled_time" => times.throttled_us = Some(value / 1000),
            b"usage_usec" => times.used_us = Some(value),
            _ => {}
        }
    }
    times
}

/// The directories of this process's group and its ancestors, own first, from its `cgroup` and `mountinfo`.
///
/// The paths are absolute. Version 1's controller `cpu` comes first, for where it is mounted version 2 has none.
pub fn levels(membership: &[u8], mountinfo: &[u8]) -> Option<Vec<PathBuf>> {
    let mounts: Vec<Mount> = lines(mountinfo).filter_map(mount).take(MAX_MOUNTS).collect();
    [true, false].into_iter().find_map(|first| {
        let group = lines(membership).find_map(|line| member(line, first))?;
        let mut fitting = mounts.iter().filter(|mount| mount.first == first);
        fitting.clone().find_map(|mount| mount.below(&group)).or_else(|| fitting.find_map(|mount| mount.foreign(&group)))
    })
}

/// The path of the group in a line `id:controllers:path`, if the line is of this generation.
fn member(line: &[u8], first: bool) -> Option<PathBuf> {
    let mut parts = line.splitn(3, |byte| *byte == b':');
    let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let fits = if first { has_word(controllers, b"cpu") } else { controllers.is_empty() };
    fits.then(|| PathBuf::from(String::from_utf8_lossy(path).into_owned()))
}

/// One mount of control groups.
struct Mount {
    /// Whether it is version 1's controller `cpu`; version 2 otherwise.
    first: bool,
    /// The group that is seen at the mount point.
    root: PathBuf,
    /// Where it is mounted.
    point: PathBuf,
}

impl Mount {
    /// The directories of a group that lies below this mount's root.
    fn below(&self, group: &Path) -> Option<Vec<PathBuf>> {
        let below = group.strip_prefix(&self.root).ok()?;
        let plain = below.components().all(|part| matches!(part, Component::Normal(_)));
        let own = if plain { self.point.join(below) } else { return None };
        let depth = below.components().count() + 1;
        Some(own.ancestors().take(depth.min(MAX_LEVELS)).map(Path::to_path_buf).collect())
    }

    /// The mount point alone: for a mount that was made outside this container, whose root is named
    /// differently there. It is the own group or an ancestor of it.
    fn foreign(&self, group: &Path) -> Option<Vec<PathBuf>> {
        let outside = group.components().any(|part| part == Component::ParentDir);
        (!outside).then(|| vec![self.point.clone()])
    }
}

/// One line of `mountinfo`, if it mounts a control group that knows of processors.
fn mount(line: &[u8]) -> Option<Mount> {
    let words: Vec<&[u8]> = words(line).take(64).collect();
    let dash = words.iter().position(|word| *word == b"-")?;
    let first = match *words.get(dash + 1)? {
        b"cgroup" if has_word(words.get(dash + 3)?, b"cpu") => true,
        b"cgroup2" => false,
        _ => return None,
    };
    let (root, point) = (unescape(words.get(3)?), unescape(words.get(4)?));
    (point.is_absolute() && !point.components().any(|part| part == Component::ParentDir)).then_some(Mount { first, root, point })
}

fn has_word(list: &[u8], word: &[u8]) -> bool {
    list.split(|byte| *byte == b',').any(|item| item == word)
}

/// Undoes the kernel's octal writing of spaces and backslashes.
fn unescape(word: &[u8]) -> PathBuf {
    let mut plain = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&byte, tail)) = rest.split_first() {
        let octal = (byte == b'\\')
            .then(|| tail.get(..3).and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()));
        if let Some(Some(code)) = octal {
            plain.push(code);
            rest = tail.get(3..).unwrap_or_default();
        } else {
            plain.push(byte);
            rest = tail;
        }
    }
    PathBuf::from(String::from_utf8_lossy(&plain).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const V1: &str = "33 31 0:30 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n";
    const JOINED: &str = "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n";
    const SET: &str = "33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";
    const V2: &str = "41 31 0:38 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn the_own_group_and_its_ancestors_are_found() {
        let docker = "33 31 0:30 /docker/ab /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu,cpuacct\n";
        let outside = "41 31 0:38 /../.. /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        let spaced = "41 31 0:38 / /mnt/a\\040b rw - cgroup2 cgroup rw\n";
        let up = "41 31 0:38 / /mnt/../etc rw - cgroup2 cgroup rw\n";
        for (name, membership, mounts, expected) in [
            (
                "version 2",
                "0::/user.slice/me\n",
                V2,
                Some("/sys/fs/cgroup/user.slice/me /sys/fs/cgroup/user.slice /sys/fs/cgroup"),
            ),
            ("version 2, container", "0::/\n", V2, Some("/sys/fs/cgroup")),
            (
                "version 1 before a version 2 without controllers",
                "1:cpu:/x\n0::/\n",
                &format!("{V2}{V1}"),
                Some("/sys/fs/cgroup/cpu/x /sys/fs/cgroup/cpu"),
            ),
            ("joined controllers", "4:cpu,cpuacct:/\n", JOINED, Some("/sys/fs/cgroup/cpu,cpuacct")),
            ("a container's part of version 1", "4:cpuacct,cpu:/docker/ab\n", docker, Some("/sys/fs/cgroup/cpu")),
            ("a mount from outside the container", "0::/\n", outside, Some("/sys/fs/cgroup")),
            ("a mount point with a space", "0::/\n", spaced, Some("/mnt/a b")),
            ("cpuset is not cpu", "1:cpuset:/x\n", SET, None),
            ("a group outside what is visible", "0::/../other\n", V2, None),
            ("a mount point that climbs", "0::/\n", up, None),
            ("a group that climbs later", "0::/a/../../etc\n", V2, None),
            ("nothing mounted", "0::/\n", "", None),
            ("no membership", "", V2, None),
        ] {
            let found = levels(membership.as_bytes(), mounts.as_bytes());
            let expected = expected.map(|paths| match name {
                "a mount point with a space" => vec![PathBuf::from(paths)],
                _ => paths.split(' ').map(PathBuf::from).collect(),
            });
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn both_generations_tell_their_times() {
        let first = times(b"nr_periods 10\nnr_throttled 9\nthrottled_time 900000000\n");
        assert_eq!(first, GroupTimes { throttled_us: Some(900_000), used_us: None });
        let second = times(b"usage_usec 5\nuser_usec 3\nsystem_usec 2\nnr_periods 1\nnr_throttled 1\nthrottled_usec 7\n");
        assert_eq!(second, GroupTimes { throttled_us: Some(7), used_us: Some(5) });
        assert_eq!(times(b"usage_usec 5\n"), GroupTimes { throttled_us: None, used_us: Some(5) });
        assert_eq!(times(b"throttled_usec -1\nthrottled_time\n"), GroupTimes::default());
    }

    proptest! {
        #[test]
        fn random_bytes_do_no_harm(a in proptest::collection::vec(any::<u8>(), 0..300), b in proptest::collection::vec(any::<u8>(), 0..300)) {
            times(&a);
            levels(&a, &b);
        }

        #[test]
        fn no_path_ever_climbs(a in "0::(/|\\.\\.|a|b){0,12}\n", b in "1 2 3 (/|\\.\\.|a){1,5} (/|\\.\\.|a){1,9} rw - cgroup2 x rw\n") {
            for path in levels(a.as_bytes(), b.as_bytes()).unwrap_or_default() {
                prop_assert!(!path.components().any(|part| part == Component::ParentDir), "{path:?}");
            }
        }
    }
}
