//! Places for test files in directories of this host, and honesty about what its memory did.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::units::ByteSize;

/// The beginning of the names of our directories, before 16 hexadecimal digits.
pub(super) const PREFIX: &str = ".weaklink-";

/// A directory of ours inside a directory that the user named; it goes when this is dropped.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
}

/// Makes a new directory of ours inside `dir`.
pub(super) fn scratch(dir: &Path) -> Result<Scratch, String> {
    let path = dir.join(scratch_name()?);
    fs::create_dir(&path).map_err(|error| format!("cannot make a directory for test files in {}: {error}", dir.display()))?;
    Ok(Scratch { path })
}

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

impl Scratch {
    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nobody is left to tell; what stays is swept at the next start.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Drops what this host's memory holds of a file that is synced, so that the next read is one of the disk or the share.
///
/// GNU `dd` with `nocache` and no data does exactly that (`POSIX_FADV_DONTNEED` on the whole file).
pub(super) fn drop_cache(path: &Path) -> Result<(), String> {
    let mut input = std::ffi::OsString::from("if=");
    input.push(path);
    let done = Command::new("dd")
        .arg(input)
        .args(["iflag=nocache", "count=0", "status=none"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match done {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err("the system's dd cannot drop a file from memory".to_owned()),
        Err(error) => Err(format!("dd, which drops a file from memory, cannot be run: {error}")),
    }
}

/// What this thread has read so far: as it asked, and from devices or servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReadCount {
    /// The bytes that `read` returned.
    pub(super) asked: u64,
    /// The bytes that had to be fetched.
    pub(super) fetched: u64,
}

impl ReadCount {
    /// The counters of this thread; none where the kernel does not count (`CONFIG_TASK_IO_ACCOUNTING`) or does not tell.
    pub(super) fn now() -> Option<Self> {
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

/// The reason when `bytes` that were just read demonstrably came from this host's memory.
pub(super) fn came_from_memory(fs_type: Option<&str>, before: Option<ReadCount>, bytes: ByteSize) -> Option<String> {
    let fs_type = fs_type?;
    if matches!(fs_type, "tmpfs" | "ramfs") {
        return Some(format!("the files lie in memory ({fs_type}): reading them says nothing about a disk; name another directory"));
    }
    if !COUNTED.contains(&fs_type) {
        return None;
    }
    let (before, after) = (before?, ReadCount::now()?);
    let fetched = after.fetched.saturating_sub(before.fetched);
    // A few blocks may stay in memory whatever one does; half of them is no reading of a disk.
    (fetched < bytes.0 / 2).then(|| {
        format!(
            "the data came from this host's memory, not from the disk: only {} of {bytes} were fetched; the system did not drop them from its cache",
            ByteSize(fetched)
        )
    })
}

/// The type of the filesystem on which `path` lies, where the system tells.
pub(super) fn fs_type(path: &Path) -> Option<String> {
    let text = fs::read("/proc/self/mountinfo").ok()?;
    let path = fs::canonicalize(path).ok()?;
    super::mounts::find(&super::mounts::parse(&String::from_utf8_lossy(&text)), &path).map(|mount| mount.fs_type.clone())
}

/// Opens a file for reading after dropping it from memory, as far as that works; [`came_from_memory`] judges afterwards whether it did.
pub(super) fn open_uncached(path: &Path) -> std::io::Result<File> {
    let _ = drop_cache(path);
    File::open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_directory_has_our_name_and_goes_with_all_that_is_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = scratch(dir.path()).unwrap();
        let path = scratch.path().to_owned();
        assert!(is_scratch_name(path.file_name().unwrap().to_str().unwrap()));
        fs::write(path.join("large"), b"x").unwrap();
        drop(scratch);
        assert!(!path.exists());
        assert!(dir.path().exists());
    }

    #[test]
    fn only_our_own_names_are_known() {
        for other in [".weaklink-", ".weaklink-0123", ".weaklink-0123456789ABCDEF", "weaklink-0123456789abcdef", ".weaklink-0123456789abcdef0"] {
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
    fn what_lies_in_memory_is_no_reading_of_a_disk_and_what_is_not_counted_is_not_judged() {
        assert!(came_from_memory(Some("tmpfs"), None, ByteSize(1)).is_some());
        assert!(came_from_memory(Some("cifs"), ReadCount::now(), ByteSize(1 << 30)).is_none());
        assert!(came_from_memory(None, ReadCount::now(), ByteSize(1 << 30)).is_none());
        if let Some(now) = ReadCount::now() {
            assert!(came_from_memory(Some("ext4"), Some(now), ByteSize(1 << 30)).is_some());
        }
    }
}
