//! Reading `/sys` and `/proc` below a root, so that a recorded machine reads like the real one.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::facts::LinkRow;

/// No file that is read here is longer; `/proc/net/bonding` of eight ports has 6 KiB.
const LONGEST: u64 = 256 * 1024;
/// More names in a directory than this are not looked at.
const NAMES: usize = 4096;

/// Where `/sys` and `/proc` stand.
#[derive(Clone, Debug)]
pub struct Tree {
    root: PathBuf,
    live: bool,
    /// `/sys` is of another network namespace than this process and is not looked at.
    foreign_sys: bool,
}

impl Tree {
    /// This machine as it runs: files, and the kernel's own interfaces beside them.
    pub fn system() -> Self {
        Self { root: PathBuf::from("/"), live: cfg!(target_os = "linux"), foreign_sys: false }
    }

    /// A recorded machine: only the files below `root`, the kernel is never asked.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), live: false, foreign_sys: false }
    }

    /// Whether the running kernel may be asked beside the files.
    pub const fn is_live(&self) -> bool {
        self.live
    }

    /// Whether this is the machine itself and no recording.
    pub fn is_system(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The same tree, without `/sys` where it shows another interface of `row`'s name: it keeps the network
    /// namespace that it was mounted in, and `/proc` and netlink follow the process.
    pub(super) fn seen_from(&self, row: Option<&LinkRow>) -> Self {
        let Some(row) = row else { return self.clone() };
        let file = |file: &str| self.read(&format!("/sys/class/net/{}/{file}", row.name)).ok();
        let mac = row.mac.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":");
        let other_index = file("ifindex").is_some_and(|index| index != row.index.to_string());
        let other_mac = file("address").is_some_and(|address| !mac.is_empty() && address.len() == mac.len() && address != mac);
        Self { foreign_sys: self.foreign_sys || other_index || other_mac, ..self.clone() }
    }

    /// Why nothing below `/sys/class/net` is read, if that is so.
    pub(super) const fn why_no_sys(&self) -> Option<&'static str> {
        if self.foreign_sys {
            Some("/sys belongs to another network namespace; run weaklink where /sys/class/net shows its own interfaces")
        } else {
            None
        }
    }

    fn at(&self, path: &str) -> PathBuf {
        if self.foreign_sys && path.starts_with("/sys/") {
            // A path that cannot be: whoever reads it finds nothing.
            return self.root.join("dev/null").join(path.trim_start_matches('/'));
        }
        self.root.join(path.trim_start_matches('/'))
    }

    /// The text of a file, without white space at its ends.
    pub fn read(&self, path: &str) -> io::Result<String> {
        read(&self.at(path))
    }

    /// Whether there is something of that name.
    pub fn has(&self, path: &str) -> bool {
        self.at(path).exists()
    }

    /// The names in a directory, sorted; empty when there is none.
    pub fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.at(path)) else { return Vec::new() };
        let names = entries.take(NAMES).filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names
    }

    /// The last part of where a symbolic link leads, as `driver` and `subsystem` links name things.
    pub fn link_name(&self, path: &str) -> Option<String> {
        last_of_link(&self.at(path))
    }

    /// The directory that `path` really is, and its parents up to the tree's root, nearest first.
    pub fn way_up(&self, path: &str) -> Vec<PathBuf> {
        let (Ok(root), Ok(start)) = (self.root.canonicalize(), self.at(path).canonicalize()) else { return Vec::new() };
        start.ancestors().take_while(|dir| *dir != root && dir.starts_with(&root)).map(Path::to_path_buf).collect()
    }
}

/// The text of a file, without white space at its ends, cut at 256 KiB.
pub(super) fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// The last part of where a symbolic link leads.
pub(super) fn last_of_link(path: &Path) -> Option<String> {
    fs::read_link(path).ok()?.file_name()?.to_str().map(str::to_owned)
}

/// Whether a name can be an interface's (`dev_valid_name` of the kernel), so that it may stand in a path.
pub(super) fn is_interface_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() < 16
        && name != "."
        && name != ".."
        && !name.contains(|c: char| c == '/' || c == ':' || c == '\0' || c.is_whitespace())
}
