//! Pure reading of `/proc/self/mountinfo` (proc_pid_mountinfo(5)), and which mount a path is on.

use std::path::{Path, PathBuf};

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Its number, unique while it lasts.
    pub id: u32,
    /// The device's major and minor number; the major is 0 where no block device stands behind.
    pub device: (u32, u32),
    /// The directory of the filesystem that is mounted: not `/` for a bind mount or a btrfs subvolume.
    pub root: String,
    /// Where it is mounted.
    pub point: PathBuf,
    /// The type, such as `ext4` or `fuse.sshfs`.
    pub filesystem: String,
    /// What was mounted, such as `/dev/md2` or `nas:/volume1`.
    pub source: String,
    /// The options of the mount and then those of the filesystem, each once.
    pub options: Vec<String>,
}

/// What a filesystem's type says of where its data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Block devices.
    Block,
    /// Memory of this host.
    Memory,
    /// Another host, or the host of a virtual machine.
    Network,
    /// A layer over another directory.
    Overlay,
    /// A program or a pool that does not show its devices in `/sys`.
    Opaque,
}

/// Filesystems whose data comes from elsewhere: those of Linux's `fs/` that speak to a server, and the
/// FUSE programs that do.
const NETWORK: [&str; 22] = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "9p",
    "virtiofs",
    "vboxsf",
    "ceph",
    "afs",
    "coda",
    "ncpfs",
    "glusterfs",
    "lustre",
    "beegfs",
    "fuse.sshfs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.davfs",
    "fuse.glusterfs",
    "fuse.smbnetfs",
    "fuse.vmhgfs-fuse",
];

impl Mount {
    /// Where its data is, by its type.
    pub fn family(&self) -> Family {
        match self.filesystem.as_str() {
            "tmpfs" | "ramfs" | "devtmpfs" | "rootfs" => Family::Memory,
            "overlay" | "overlayfs" | "aufs" => Family::Overlay,
            "zfs" | "ecryptfs" => Family::Opaque,
            // FUSE on a block device (`ntfs-3g`, `exfat-fuse`) is a local disk behind a program.
            "fuseblk" => Family::Block,
            kind if NETWORK.contains(&kind) => Family::Network,
            kind if kind == "fuse" || kind.starts_with("fuse.") => Family::Opaque,
            _ if self.device.0 != 0 || self.source.starts_with("/dev/") => Family::Block,
            _ => Family::Opaque,
        }
    }

    /// The value of an option such as `upperdir=…`.
    pub fn option(&self, key: &str) -> Option<&str> {
        self.options.iter().find_map(|option| option.strip_prefix(key)?.strip_prefix('='))
    }
}

/// Reads the whole file; lines that are none are left out.
pub fn parse(text: &str) -> Vec<Mount> {
    text.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<Mount> {
    let (mount, filesystem) = line.split_once(" - ")?;
    let mut mount = mount.split(' ');
    let id = mount.next()?.parse().ok()?;
    let device = numbers(mount.nth(1)?)?;
    let (root, point) = (unescape(mount.next()?), PathBuf::from(unescape(mount.next()?)));
    let own = mount.next()?;
    let mut filesystem = filesystem.split(' ');
    let kind = unescape(filesystem.next()?);
    let source = unescape(filesystem.next().unwrap_or_default());
    let mut options: Vec<String> = Vec::new();
    for option in own.split(',').chain(filesystem.next().unwrap_or_default().split(',')) {
        let option = unescape(option);
        if !option.is_empty() && !options.contains(&option) {
            options.push(option);
        }
    }
    Some(Mount { id, device, root, point, filesystem: kind, source, options })
}

/// `8:17` as a pair.
pub fn numbers(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Blanks, tabs, line ends and backslashes stand as a backslash and three octal digits.
fn unescape(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let digits: Option<Vec<u8>> = bytes.as_slice_of_three().filter(|_| byte == b'\\');
        match digits.and_then(|d| u8::from_str_radix(std::str::from_utf8(&d).ok()?, 8).ok()) {
            Some(value) => {
                out.push(value);
                bytes.by_ref().take(3).for_each(drop);
            }
            None => out.push(byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A look ahead of three bytes.
trait Ahead {
    fn as_slice_of_three(&self) -> Option<Vec<u8>>;
}

impl Ahead for std::str::Bytes<'_> {
    fn as_slice_of_three(&self) -> Option<Vec<u8>> {
        let next: Vec<u8> = self.clone().take(3).collect();
        (next.len() == 3 && next.iter().all(|b| (b'0'..=b'7').contains(b))).then_some(next)
    }
}

/// The mount that `path` (absolute, without symlinks) is on.
///
/// Among the mounts above it, those whose device is the one that the path says it is on go first (a
/// later mount may hide a deeper one); then the deepest counts, and of several the last.
pub fn covering<'a>(mounts: &'a [Mount], path: &Path, device: Option<(u32, u32)>) -> Option<&'a Mount> {
    let above = || mounts.iter().filter(|mount| path.starts_with(&mount.point));
    let deepest = |of: &mut dyn Iterator<Item = &'a Mount>| of.max_by_key(|mount| mount.point.components().count());
    deepest(&mut above().filter(|mount| Some(mount.device) == device)).or_else(|| deepest(&mut above()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_in_names_and_missing_or_many_optional_fields_are_read() {
        let text = "36 35 98:0 /mnt1 /mnt\\0402\\134x rw,noatime master:1 shared:7 - ext3 /dev/root rw,errors=continue\nrubbish\n1 2 3\n";
        let mounts = parse(text);
        assert_eq!(mounts.len(), 1);
        assert_eq!(mounts[0].point, Path::new("/mnt 2\\x"));
        assert_eq!((mounts[0].root.as_str(), mounts[0].device), ("/mnt1", (98, 0)));
        assert_eq!(mounts[0].options, ["rw", "noatime", "errors=continue"]);
        assert_eq!(mounts[0].option("errors"), Some("continue"));
        assert_eq!(unescape("a\\09\\"), "a\\09\\");
    }

    #[test]
    fn the_deepest_and_last_mount_counts_and_the_paths_own_device_goes_first() {
        let mounts = parse(
            "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:2 / /srv rw - ext4 /dev/sdb rw\n3 2 8:3 / /srv/a rw - xfs /dev/sdc rw\n\
             4 1 8:4 / /srv rw - ext4 /dev/sdd rw\n5 1 8:5 / /srvx rw - ext4 /dev/sde rw\n",
        );
        let id = |path: &str, device| covering(&mounts, Path::new(path), device).map(|mount| mount.id);
        assert_eq!(id("/srv/b", None), Some(4), "the last of two in one place");
        assert_eq!(id("/srv/a/b", None), Some(3));
        assert_eq!(id("/srv/a/b", Some((8, 4))), Some(4), "a later mount hides the deeper one");
        assert_eq!(id("/srv/a/b", Some((0, 99))), Some(3), "a made-up number decides nothing");
        assert_eq!(id("/srvy", None), Some(1), "names are compared whole");
        assert_eq!(id("relative", None), None);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "[ -~\\\\\n]{0,200}") {
            parse(&text);
            super::super::mdstat::parse(&text);
            super::super::counters::parse_stat(&text);
            super::super::counters::parse_io(&text);
        }
    }
}
