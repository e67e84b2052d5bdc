//! Places for test files in directories of this host, and honesty about what its memory did.

use std::fs;
use std::path::Path;

use crate::units::ByteSize;

/// The beginning of the names of our directories, before 16 hexadecimal digits.
pub(super) const PREFIX: &str = ".weaklink-";

/// A new name of one of our directories.
pub(super) fn scratch_name() -> Result<String, String> {
    let mut random = [0u8; 8];
    getrandom::fill(&mut random).map_err(|error| format!("the system gives no random bytes: {error}"))?;
    Ok(format!("{PREFIX}{:016x}", u64::from_le_bytes(random)))
}

/// Whether `name` is one that [`scratch_name`] makes.
pub(super) fn is_scratch_name(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|hex| hex.len() == 16 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
}

/// Drops what this host's memory holds of a file that is synced, so that the next read is one of the disk or the share.
fn drop_cache(path: &Path) -> Result<(), String> {
    let dropped = fs::File::open(path).and_then(|file| crate::sys::file::drop_cache(&file));
    dropped.map_err(|error| format!("this system does not drop a file from its memory: {error}"))
}

/// What this thread has read so far: as it asked, and from devices or servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ReadCount {
    /// The bytes that `read` returned.
    asked: u64,
    /// The bytes that had to be fetched.
    fetched: u64,
}

impl ReadCount {
    /// The counters of this thread; none where the kernel does not count (`CONFIG_TASK_IO_ACCOUNTING`) or does not tell.
    fn now() -> Option<Self> {
        // `thread-self` came with kernel 3.17; the whole process is a fair stand-in before that.
        let text = fs::read_to_string("/proc/thread-self/io").or_else(|_| fs::read_to_string("/proc/self/io")).ok()?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Option<Self> {
        let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok());
        Some(Self { asked: value("rchar")?, fetched: value("read_bytes")? })
    }
}

/// Filesystems whose reads the kernel counts for the thread that asked (they go through the block layer in its context).
///
/// ZFS reads in threads of its own, CIFS counts in its receiving thread, FUSE and 9p do not count: there a zero proves nothing.
const COUNTED: [&str; 9] = ["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "vfat", "exfat", "ntfs3"];

/// Files dropped from this host's memory, and the means to tell afterwards whether they came from there all the same.
#[derive(Debug)]
pub(super) struct ReadProof {
    fs_type: Option<String>,
    before: Option<ReadCount>,
    kept: Option<String>,
}

impl ReadProof {
    /// Drops `paths`, which are synced, from memory. To be called by the thread that reads, just before it does.
    pub(super) fn prepare<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Self {
        let (mut first, mut kept) = (None, None);
        for path in paths {
            first.get_or_insert(path);
            kept = drop_cache(path).err();
            if kept.is_some() {
                break;
            }
        }
        Self { fs_type: first.and_then(fs_type), before: ReadCount::now(), kept }
    }

    /// The reason why the `bytes` that this thread has read since are no measurement of a disk or a share, if there is one.
    pub(super) fn judge(&self, bytes: ByteSize) -> Option<String> {
        judge(self.fs_type.as_deref(), self.before.zip(ReadCount::now()), self.kept.as_deref(), bytes)
    }
}

fn judge(fs_type: Option<&str>, counts: Option<(ReadCount, ReadCount)>, kept: Option<&str>, bytes: ByteSize) -> Option<String> {
    if let Some(memory @ ("tmpfs" | "ramfs")) = fs_type {
        return Some(format!(
            "the files lie in memory ({memory}): reading them says nothing about a disk; name another directory"
        ));
    }
    match counts {
        Some((before, after)) if fs_type.is_some_and(|fs_type| COUNTED.contains(&fs_type)) => {
            let fetched = after.fetched.saturating_sub(before.fetched);
            // A few blocks may stay in memory whatever one does; half of them is no reading of a disk.
            (fetched < bytes.0 / 2).then(|| {
                let fetched = ByteSize(fetched);
                format!("the data came from this host's memory, not from the disk: only {fetched} of {bytes} were fetched; the system kept the rest in its cache")
            })
        }
        // Nobody counts, and what was written a moment ago is still in memory for sure.
        _ => kept.map(|kept| format!("the data may have come from this host's memory: {kept}")),
    }
}

/// The type of the filesystem on which `path` lies, where the system tells.
fn fs_type(path: &Path) -> Option<String> {
    let text = fs::read("/proc/self/mountinfo").ok()?;
    let path = fs::canonicalize(path).ok()?;
    super::mounts::find(&super::mounts::parse(&String::from_utf8_lossy(&text)), &path).map(|mount| mount.fs_type.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_are_known() {
        for other in [
            ".weaklink-",
            ".weaklink-0123",
            ".weaklink-0123456789ABCDEF",
            "weaklink-0123456789abcdef",
            ".weaklink-0123456789abcdef0",
        ] {
            assert!(!is_scratch_name(other), "{other}");
        }
    }

    #[test]
    fn counters_are_read_by_name_and_a_kernel_without_them_gives_none() {
        let text = "rchar: 100\nwchar: 5\nsyscr: 1\nsyscw: 1\nread_bytes: 4096\nwrite_bytes: 0\ncancelled_write_bytes: 0\n";
        assert_eq!(ReadCount::parse(text), Some(ReadCount { asked: 100, fetched: 4096 }));
        assert_eq!(ReadCount::parse("rchar: 100\n"), None);
        assert_eq!(ReadCount::parse("rchar: -1\nread_bytes: x\n"), None);
    }

    #[test]
    fn a_read_is_judged_by_what_was_fetched_and_else_by_whether_memory_was_emptied() {
        let counts = |fetched| Some((ReadCount::default(), ReadCount { asked: 100_000, fetched }));
        for (fs_type, counts, kept, reason) in [
            (Some("ext4"), counts(100_000), None, None),
            (Some("ext4"), counts(100_000), Some("no dd"), None),
            (Some("ext4"), counts(49_000), None, Some("only 49 kB of 100 kB")),
            (Some("ext4"), None, None, None),
            (Some("ext4"), None, Some("no dd"), Some("no dd")),
            (Some("cifs"), counts(0), None, None),
            (Some("cifs"), counts(0), Some("no dd"), Some("no dd")),
            (Some("tmpfs"), counts(100_000), None, Some("tmpfs")),
            (None, None, None, None),
        ] {
            let judged = judge(fs_type, counts, kept, ByteSize(100_000));
            match reason {
                None => assert_eq!(judged, None, "{fs_type:?} {counts:?} {kept:?}"),
                Some(reason) => assert!(judged.as_ref().is_some_and(|text| text.contains(reason)), "{fs_type:?} {judged:?}"),
            }
        }
    }
}
