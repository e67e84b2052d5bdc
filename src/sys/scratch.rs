//! A directory of our own for test files, that is gone afterwards, whatever happens.
//!
//! It stands inside the directory that the user named, is called `.weaklink-` and 16 hexadecimal
//! digits, and holds a file that says whose it is and is locked while its owner lives. A run that
//! was killed leaves it behind, and the next [`sweep`] of the same directory removes it.
//!
//! Only plain files whose names begin with [`PREFIX`] are ever removed, and symlinks are never followed.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What the names of our directories begin with.
const DIRECTORY: &str = ".weaklink-";
/// What the names of all files in it begin with; others are not ours and are left alone.
pub const PREFIX: &str = "weaklink-";
/// The file that says whose the directory is.
const MARKER: &str = "weaklink-owner";
/// The first line of that file.
const MAGIC: &str = "weaklink scratch 1";
/// After this time nothing of ours can be running: where neither a lock nor a process id can tell (the
/// directory was made by another host on a network mount), age decides. No run lasts a day.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

/// The room on a filesystem, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// What an unprivileged user may still write.
    pub free: u64,
    /// The size of the filesystem.
    pub total: u64,
}

/// What [`sweep`] removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// The directories.
    pub directories: u32,
    /// The bytes in their files.
    pub bytes: u64,
}

/// A directory for test files; dropping it removes it and the files in it.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    lock: Option<File>,
}

impl Scratch {
    /// Makes a new one inside `dir`, which must exist.
    pub fn create(dir: &Path) -> io::Result<Self> {
        let path = new_directory(dir)?;
        // From here on a failure removes what was made, by drop.
        let mut scratch = Self { path, lock: None };
        let mut marker = OpenOptions::new().read(true).write(true).create_new(true).open(scratch.path.join(MARKER))?;
        // Lock first, write afterwards: whoever reads a whole marker can rely on the lock.
        lock(&marker)?;
        marker.write_all(Owner::this().to_text().as_bytes())?;
        scratch.lock = Some(marker);
        Ok(scratch)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file in it; `name` gets our prefix, and whatever is not a letter, a digit, `-`, `_` or `.` becomes `_`.
    pub fn file(&self, name: &str) -> PathBuf {
        let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        self.path.join(PREFIX.chars().chain(name.chars().map(safe)).collect::<String>())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove_files(&self.path);
        // Some systems remove no file that is still open.
        self.lock = None;
        remove_marker(&self.path);
    }
}

/// Removes what an earlier run, which was killed, left in `dir`.
///
/// It touches only real directories of our name that hold our marker and whose owner is gone.
pub fn sweep(dir: &Path) -> io::Result<Swept> {
    let mut swept = Swept::default();
    for entry in fs::read_dir(dir)?.flatten() {
        let ours = entry.file_name().to_str().is_some_and(is_our_name) && entry.file_type().is_ok_and(|kind| kind.is_dir());
        let path = entry.path();
        if !ours || !abandoned(&path) {
            continue;
        }
        swept.bytes += remove_files(&path);
        if remove_marker(&path) {
            swept.directories += 1;
        }
    }
    Ok(swept)
}

fn is_our_name(name: &str) -> bool {
    name.strip_prefix(DIRECTORY)
        .is_some_and(|rest| rest.len() == 16 && rest.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)))
}

fn new_directory(dir: &Path) -> io::Result<PathBuf> {
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for _ in 0..8 {
        // std seeds this state from the system's random source.
        let path = dir.join(format!("{DIRECTORY}{:016x}", RandomState::new().build_hasher().finish()));
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// Takes the lock; a filesystem without locks is no error, the marker's text serves there.
fn lock(file: &File) -> io::Result<()> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(io::Error::new(io::ErrorKind::WouldBlock, "the new lock file is locked already")),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

/// Whether the owner of a directory of our name is gone; when in doubt, it is not.
fn abandoned(dir: &Path) -> bool {
    let marker = dir.join(MARKER);
    let Ok(about) = fs::symlink_metadata(&marker) else { return false };
    if !about.is_file() {
        return false;
    }
    let old = about.modified().is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age > ABANDONED));
    // Where locks bind everyone (Windows, SMB), a marker in use cannot be read: then its owner lives.
    let Ok(mut file) = OpenOptions::new().read(true).write(true).open(&marker) else { return false };
    let mut text = String::new();
    if (&mut file).take(4096).read_to_string(&mut text).is_err() {
        return false;
    }
    match Owner::from_text(&text) {
        Some(owner) => owner.is_gone(&file).unwrap_or(old),
        // Its owner is between making and writing it, or was killed there.
        None => text.is_empty() && old,
    }
}

/// Who made a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Owner {
    /// The host's name and, where the system has them, the process's own world of process ids.
    host: String,
    /// Changes with each start of the host; empty when unknown.
    boot: String,
    pid: u32,
    /// When the process started, in ticks since the host's start; empty when unknown.
    start: String,
}

impl Owner {
    fn this() -> Self {
        let pid = std::process::id();
        Self { host: host(), boot: boot(), pid, start: start_of(pid).unwrap_or_default() }
    }

    fn to_text(&self) -> String {
        format!("{MAGIC}\nhost {}\nboot {}\npid {}\nstart {}\nend\n", self.host, self.boot, self.pid, self.start)
    }

    fn from_text(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let mut value = |key: &str| lines.next()?.strip_prefix(key).map(|rest| rest.trim().to_owned());
        value(MAGIC)?;
        let owner = Self { host: value("host")?, boot: value("boot")?, pid: value("pid")?.parse().ok()?, start: value("start")? };
        value("end").map(|_| owner)
    }

    /// Whether the owner is gone; none when this host cannot know.
    fn is_gone(&self, marker: &File) -> Option<bool> {
        // The lock of another host may not reach here: an NFS server's own locks and those of its clients are two things.
        if self.host.is_empty() || self.host != host() {
            return None;
        }
        match marker.try_lock() {
            Ok(()) => Some(true),
            Err(TryLockError::WouldBlock) => Some(false),
            Err(TryLockError::Error(_)) => self.is_gone_by_process(&boot()),
        }
    }

    /// The same where the filesystem has no locks, by this host's processes; `boot` is its present start.
    fn is_gone_by_process(&self, boot: &str) -> Option<bool> {
        if self.boot.is_empty() || boot.is_empty() {
            return None;
        }
        if self.boot != boot {
            return Some(true);
        }
        // A process id is used again, its start time is not.
        (!self.start.is_empty()).then(|| start_of(self.pid).as_ref() != Some(&self.start))
    }
}

fn first_line(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().lines().next().unwrap_or_default().trim().to_owned()
}

fn host() -> String {
    let name = [first_line("/proc/sys/kernel/hostname"), first_line("/etc/hostname")].into_iter().find(|name| !name.is_empty());
    let name = name.or_else(|| std::env::var("COMPUTERNAME").ok()).unwrap_or_else(|| std::env::consts::OS.to_owned());
    let pids = fs::read_link("/proc/self/ns/pid").map(|link| link.display().to_string()).unwrap_or_default();
    format!("{name} {pids}").trim().to_owned()
}

fn boot() -> String {
    first_line("/proc/sys/kernel/random/boot_id")
}

/// The 22nd field of `/proc/PID/stat` (proc(5)); the name in the second may hold blanks and parentheses.
fn start_of(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19).map(str::to_owned)
}

/// Removes our plain files except the marker, and says how many bytes they held.
fn remove_files(dir: &Path) -> u64 {
    if !fs::symlink_metadata(dir).is_ok_and(|about| about.is_dir()) {
        return 0;
    }
    let mut bytes = 0;
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX) && name != MARKER);
        let len = entry.metadata().map_or(0, |about| about.len());
        if ours && entry.file_type().is_ok_and(|kind| kind.is_file()) && fs::remove_file(entry.path()).is_ok() {
            bytes += len;
        }
    }
    bytes
}

/// Removes the marker and the directory; a directory that still holds something keeps its marker.
fn remove_marker(dir: &Path) -> bool {
    let others = fs::read_dir(dir).into_iter().flatten().flatten().any(|entry| entry.file_name() != MARKER);
    if others || !fs::symlink_metadata(dir).is_ok_and(|about| about.is_dir()) {
        return false;
    }
    let marker = dir.join(MARKER);
    if fs::symlink_metadata(&marker).is_ok_and(|about| about.is_file()) {
        let _ = fs::remove_file(marker);
    }
    fs::remove_dir(dir).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::file::symlink;

    const NOTHING: Swept = Swept { directories: 0, bytes: 0 };

    fn count(dir: &Path) -> usize {
        fs::read_dir(dir).unwrap().count()
    }

    /// What a run leaves behind that was killed: the lock is free and nothing was removed.
    fn killed(dir: &Path) -> PathBuf {
        let mut scratch = Scratch::create(dir).unwrap();
        fs::write(scratch.file("data"), [1; 1000]).unwrap();
        scratch.lock = None;
        let path = scratch.path.clone();
        std::mem::forget(scratch);
        path
    }

    fn rewrite(dir: &Path, change: impl Fn(&mut Owner)) {
        let mut owner = Owner::this();
        change(&mut owner);
        fs::write(dir.join(MARKER), owner.to_text()).unwrap();
    }

    fn make_old(dir: &Path) {
        let at = SystemTime::now() - ABANDONED - Duration::from_secs(60);
        OpenOptions::new().write(true).open(dir.join(MARKER)).unwrap().set_modified(at).unwrap();
    }

    #[test]
    fn it_is_gone_with_its_files_when_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(dir.path()).unwrap();
        assert!(is_our_name(scratch.path().file_name().unwrap().to_str().unwrap()));
        fs::write(scratch.file("a"), "x").unwrap();
        fs::write(scratch.file("../b/c d"), "x").unwrap();
        assert_eq!(scratch.file("../b/c d").parent(), Some(scratch.path()), "a name never leads out");
        drop(scratch);
        assert_eq!(count(dir.path()), 0);
        assert!(Scratch::create(&dir.path().join("absent")).is_err());
    }

    #[test]
    fn a_living_one_is_not_swept_and_a_killed_one_is() {
        let dir = tempfile::tempdir().unwrap();
        let alive = Scratch::create(dir.path()).unwrap();
        fs::write(alive.file("a"), "x").unwrap();
        killed(dir.path());
        assert_eq!(sweep(dir.path()).unwrap(), Swept { directories: 1, bytes: 1000 });
        assert_eq!(sweep(dir.path()).unwrap(), NOTHING);
        assert!(alive.file("a").exists());
        drop(alive);
        assert_eq!(count(dir.path()), 0);
    }

    #[test]
    fn what_is_not_ours_is_never_touched() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let marker = Owner::this().to_text();
        for name in [".weaklink-0123456789ABCDEF", ".weaklink-0123", ".weaklink-0123456789abcdef0", "weaklink-0123456789abcdef"] {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join(MARKER), &marker).unwrap();
        }
        fs::create_dir(at(".weaklink-0000000000000001")).unwrap();
        fs::write(at(".weaklink-0000000000000001").join("weaklink-data"), "no marker").unwrap();
        fs::create_dir(at(".weaklink-0000000000000002")).unwrap();
        fs::write(at(".weaklink-0000000000000002").join(MARKER), "another program's file").unwrap();
        fs::write(at(".weaklink-0000000000000003"), "a file").unwrap();
        let before = count(dir.path());
        assert_eq!(sweep(dir.path()).unwrap(), NOTHING);
        assert_eq!(count(dir.path()), before);
        assert!(at(".weaklink-0000000000000001").join("weaklink-data").exists());
    }

    #[test]
    fn symlinks_are_not_followed() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let victim = killed(other.path());
        let file = other.path().join("weaklink-precious");
        fs::write(&file, "x").unwrap();
        // A directory link of our name, a marker that is a link, and a data file that is one.
        symlink(&victim, &dir.path().join(".weaklink-0000000000000001")).unwrap();
        fs::create_dir(dir.path().join(".weaklink-0000000000000002")).unwrap();
        symlink(&victim.join(MARKER), &dir.path().join(".weaklink-0000000000000002").join(MARKER)).unwrap();
        let mine = killed(dir.path());
        symlink(&file, &mine.join("weaklink-link")).unwrap();
        assert_eq!(sweep(dir.path()).unwrap(), Swept { directories: 0, bytes: 1000 });
        assert!(file.exists() && victim.join("weaklink-data").exists());
        assert_eq!(count(dir.path()), 3, "the links are left where they are");
        assert!(mine.join(MARKER).exists(), "a directory that is not empty keeps its marker");
    }

    #[test]
    fn foreign_files_in_our_directory_stay() {
        let dir = tempfile::tempdir().unwrap();
        let path = killed(dir.path());
        fs::write(path.join("photo.jpg"), "x").unwrap();
        fs::create_dir(path.join("weaklink-folder")).unwrap();
        sweep(dir.path()).unwrap();
        assert!(path.join("photo.jpg").exists() && path.join("weaklink-folder").exists());
        assert!(!path.join("weaklink-data").exists());
    }

    #[test]
    fn another_hosts_directory_is_left_for_a_day() {
        let dir = tempfile::tempdir().unwrap();
        let path = killed(dir.path());
        rewrite(&path, |owner| owner.host = "nas".to_owned());
        assert_eq!(sweep(dir.path()).unwrap(), NOTHING);
        make_old(&path);
        assert_eq!(sweep(dir.path()).unwrap().directories, 1);
    }

    #[test]
    fn a_marker_that_was_never_finished_is_left_for_a_day() {
        let dir = tempfile::tempdir().unwrap();
        let path = killed(dir.path());
        fs::write(path.join(MARKER), "").unwrap();
        assert_eq!(sweep(dir.path()).unwrap(), NOTHING);
        make_old(&path);
        assert_eq!(sweep(dir.path()).unwrap().directories, 1);
    }

    #[test]
    fn a_marker_says_the_same_when_read_again() {
        let owner = Owner::this();
        assert_eq!(Owner::from_text(&owner.to_text()), Some(owner.clone()));
        assert_eq!(Owner::from_text(&owner.to_text().replace("end\n", "")), None);
        assert_eq!(Owner::from_text("pid 1"), None);
    }

    #[test]
    fn without_locks_the_process_decides() {
        let owner = Owner { boot: "b".to_owned(), start: "5".to_owned(), ..Owner::this() };
        assert_eq!(owner.is_gone_by_process("another"), Some(true), "the host was started again");
        assert_eq!(owner.is_gone_by_process(""), None);
        assert_eq!(owner.is_gone_by_process("b"), Some(true), "the process id belongs to a later process");
        assert_eq!(Owner { start: String::new(), ..owner.clone() }.is_gone_by_process("b"), None);
        // Where the system tells when a process started, the living one is known.
        if let Some(start) = start_of(std::process::id()) {
            assert_eq!(Owner { start, ..owner }.is_gone_by_process("b"), Some(false));
        }
    }
}
