//! What is mounted where, and by which protocol. Pure: text in, facts out.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::lane::{SERVER_ADDRESS, fact};
use crate::model::copy::LaneFact;
use crate::model::outcome::Source;

/// One mounted filesystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Where it is mounted.
    pub point: PathBuf,
    /// The type as the kernel names it: `cifs`, `nfs4`, `fuse.sshfs`, `ext4` …
    pub fs_type: String,
    /// What is mounted: `//nas/share`, `nas:/export`, `/dev/sda1` …
    pub source: String,
    /// The options of the mount and of the filesystem, in this order.
    pub options: Vec<String>,
}

/// Longer tables than this are cut: a container host has thousands of mounts, nobody has more.
const MAX_MOUNTS: usize = 100_000;

impl Mount {
    /// The value of an option: `Some("")` for one without a value.
    pub fn option(&self, name: &str) -> Option<&str> {
        // What stands later is what counts: the filesystem's own options over those of the mount.
        self.options.iter().rev().find_map(|option| match option.split_once('=') {
            Some((key, value)) => (key == name).then_some(value),
            None => (option == name).then_some(""),
        })
    }

    fn flag(&self, name: &str) -> bool {
        self.option(name).is_some()
    }
}

/// Reads `/proc/self/mountinfo`; lines that are none are left out.
pub fn parse(mountinfo: &str) -> Vec<Mount> {
    mountinfo.lines().take(MAX_MOUNTS).filter_map(parse_line).collect()
}

/// `36 35 98:0 /root /point rw,noatime master:1 - ext4 /dev/sda1 rw,errors=continue`
fn parse_line(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ').skip(4);
    let (point, mount_options) = (left.next()?, left.next()?);
    let mut right = right.split(' ');
    let (fs_type, source) = (right.next()?, right.next()?);
    let options = mount_options.split(',').chain(right.next().unwrap_or_default().split(','));
    Some(Mount {
        point: PathBuf::from(unescape(point)),
        fs_type: unescape(fs_type),
        source: unescape(source),
        options: options.filter(|option| !option.is_empty()).map(unescape).collect(),
    })
}

/// Reads what the program `mount` prints: `SOURCE on POINT type TYPE (OPTIONS)`.
pub fn parse_mount_output(text: &str) -> Vec<Mount> {
    let line = |line: &str| {
        let (source, rest) = line.split_once(" on ")?;
        let (point, rest) = rest.rsplit_once(" type ")?;
        let (fs_type, options) = rest.split_once(" (")?;
        let options = options.trim_end().strip_suffix(')')?;
        Some(Mount {
            point: PathBuf::from(point),
            fs_type: fs_type.to_owned(),
            source: source.to_owned(),
            options: options.split(',').map(str::to_owned).collect(),
        })
    };
    text.lines().take(MAX_MOUNTS).filter_map(line).collect()
}

/// The kernel writes space, tab, newline, `\` and `#` as a backslash and three octal digits.
fn unescape(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let octal = match (first, tail) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..]) => {
                Some((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'))
            }
            _ => None,
        };
        out.push(octal.unwrap_or(*first));
        rest = if octal.is_some() { tail.get(3..).unwrap_or_default() } else { tail };
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The mount on which `path` lies; the path must be absolute and without links.
pub fn find<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    // Of several at one point the last hides the others.
    mounts.iter().filter(|mount| path.starts_with(&mount.point)).max_by_key(|mount| mount.point.components().count())
}

/// Whether data leaves this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// A server is behind it.
    Network,
    /// A device of this host, or its memory.
    Local,
    /// The type does not tell.
    Unknown,
}

impl Reach {
    /// The word in facts.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Network => "yes",
            Self::Local => "no",
            Self::Unknown => "unknown",
        }
    }
}

/// What a mount says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// The protocol with its version: `smb 3.1.1`, `nfs 4.2`, `sshfs`, `local ext4` …
    pub protocol: String,
    /// Whether data leaves this host.
    pub reach: Reach,
    /// What was negotiated. The source of the mount is not among it: it names people's servers and directories.
    pub facts: Vec<LaneFact>,
}

/// Recognises the protocol of a mount and reads its facts.
pub fn describe(mount: &Mount) -> Described {
    let (protocol, reach, facts) = match mount.fs_type.as_str() {
        "cifs" | "smb3" | "smbfs" => smb(mount),
        "nfs" | "nfs4" => nfs(mount),
        "fuse.sshfs" => ("sshfs".to_owned(), Reach::Network, named(mount, &["max_read"])),
        "9p" => ("9p".to_owned(), Reach::Unknown, named(mount, &["version", "msize", "trans", "cache"])),
        "virtiofs" => ("virtiofs".to_owned(), Reach::Local, Vec::new()),
        "ceph" | "glusterfs" | "lustre" | "afs" | "ocfs2" | "gfs2" | "fuse.glusterfs" | "fuse.ceph" | "fuse.rclone"
        | "fuse.s3fs" | "fuse.davfs" | "davfs" | "fuse.gvfsd-fuse" | "fuse.smbnetfs" | "fuse.curlftpfs" => {
            (mount.fs_type.trim_start_matches("fuse.").to_owned(), Reach::Network, Vec::new())
        }
        // NTFS and exFAT by FUSE stand on block devices.
        "fuseblk" => ("local fuseblk".to_owned(), Reach::Local, Vec::new()),
        fuse if fuse == "fuse" || fuse.starts_with("fuse.") => (fuse.to_owned(), Reach::Unknown, Vec::new()),
        other => (format!("local {other}"), Reach::Local, Vec::new()),
    };
    let mut all = vec![fact("fs_type", mount.fs_type.as_str(), Source::Procfs), fact("network", reach.word(), Source::Procfs)];
    all.extend(facts);
    // The kernel's clients of SMB and NFS name the address that they are connected to.
    let is_address = |addr: &&str| addr.split('%').next().is_some_and(|plain| plain.parse::<IpAddr>().is_ok());
    let server = mount.option("addr").filter(is_address);
    all.extend(server.map(|server| fact(SERVER_ADDRESS, server.to_string(), Source::Procfs)));
    Described { protocol, reach, facts: all }
}

/// The options of these names that have a value.
fn named(mount: &Mount, names: &[&str]) -> Vec<LaneFact> {
    names
        .iter()
        .filter_map(|name| mount.option(name).filter(|value| !value.is_empty()).map(|value| fact(name, value, Source::Procfs)))
        .collect()
}

fn yes_no(name: &str, yes: bool) -> LaneFact {
    fact(name, if yes { "yes" } else { "no" }, Source::Procfs)
}

fn smb(mount: &Mount) -> (String, Reach, Vec<LaneFact>) {
    let protocol = mount.option("vers").map_or_else(|| "smb".to_owned(), |vers| format!("smb {vers}"));
    let mut facts = named(mount, &["vers", "sec", "rsize", "wsize", "bsize", "cache", "actimeo", "max_channels"]);
    facts.push(yes_no("seal", mount.flag("seal")));
    facts.push(yes_no("signing_forced", mount.flag("sign") || mount.option("sec").is_some_and(|sec| sec.ends_with('i'))));
    facts.push(yes_no("multichannel", mount.flag("multichannel")));
    facts.push(fact("recovery", if mount.flag("hard") { "hard" } else { "soft" }, Source::Procfs));
    (protocol, Reach::Network, facts)
}

fn nfs(mount: &Mount) -> (String, Reach, Vec<LaneFact>) {
    // Old kernels write `nfs4` and the minor version apart, or not at all.
    let vers = match (mount.option("vers").or_else(|| mount.option("nfsvers")), mount.option("minorversion")) {
        (Some("4"), Some(minor)) => Some(format!("4.{minor}")),
        (Some(vers), _) => Some(vers.to_owned()),
        (None, _) => (mount.fs_type == "nfs4").then(|| "4".to_owned()),
    };
    let protocol = vers.as_ref().map_or_else(|| "nfs".to_owned(), |vers| format!("nfs {vers}"));
    let mut facts: Vec<LaneFact> = vers.into_iter().map(|vers| fact("vers", vers, Source::Procfs)).collect();
    facts.extend(named(mount, &["rsize", "wsize", "sec", "proto", "timeo"]));
    // The kernel shows the number of connections only when there are several.
    facts.push(fact("nconnect", mount.option("nconnect").unwrap_or("1"), Source::Procfs));
    facts.push(yes_no("sync", mount.flag("sync")));
    facts.push(fact("recovery", if mount.flag("soft") || mount.flag("softerr") { "soft" } else { "hard" }, Source::Procfs));
    (protocol, Reach::Network, facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw,discard,errors=remount-ro
30 22 0:30 / /mnt/my\\040share rw,relatime shared:9 - cifs //nas/my\\040share rw,vers=3.1.1,seal,sec=ntlmsspi,cache=strict,multichannel,max_channels=4,soft,rsize=4194304,wsize=4194304
31 22 0:31 / /mnt/nfs rw,sync,relatime shared:10 master:2 propagate_from:1 - nfs4 nas:/vol rw,vers=4.2,rsize=1048576,wsize=1048576,hard,proto=tcp,nconnect=4,sec=sys
32 22 0:32 / /mnt/old rw - nfs nas:/old rw,vers=3,rsize=8192,wsize=8192,soft,proto=udp,sec=sys
33 22 0:33 / /mnt/sshfs rw - fuse.sshfs me@nas:/ rw,user_id=0,group_id=0,max_read=65536
34 22 0:34 / /mnt/nfs/deeper rw - tmpfs tmpfs rw,size=1k
35 22 0:35 / /mnt/nfs/deeper rw - virtiofs tag rw
36 22 0:36 / /mnt/plan9 rw - 9p hostshare rw,trans=virtio,version=9p2000.L,msize=131072
37 22 0:37 / /mnt/four rw - nfs4 nas:/four rw,vers=4,minorversion=1
nonsense
38 22 0:38 / /mnt/cut rw - 
";

    fn at(path: &str) -> Described {
        describe(find(&parse(TABLE), Path::new(path)).unwrap())
    }

    fn value<'a>(described: &'a Described, name: &str) -> Option<&'a str> {
        described.facts.iter().find(|fact| fact.name == name).map(|fact| fact.value.as_str())
    }

    #[test]
    fn each_path_belongs_to_the_deepest_and_latest_mount() {
        for (path, protocol) in [
            ("/", "local ext4"),
            ("/mnt/my", "local ext4"),
            ("/mnt/my share/dir", "smb 3.1.1"),
            ("/mnt/nfs", "nfs 4.2"),
            ("/mnt/nfsx", "local ext4"),
            ("/mnt/nfs/deeper/still", "virtiofs"),
            ("/mnt/old", "nfs 3"),
            ("/mnt/sshfs/a", "sshfs"),
            ("/mnt/plan9", "9p"),
            ("/mnt/four", "nfs 4.1"),
        ] {
            assert_eq!(at(path).protocol, protocol, "{path}");
        }
        assert_eq!(find(&[], Path::new("/")), None);
    }

    #[test]
    fn facts_of_a_protocol_are_read_and_what_is_not_shown_has_the_kernel_s_default() {
        let smb = at("/mnt/my share");
        for (name, expected) in [
            ("vers", "3.1.1"),
            ("seal", "yes"),
            ("sec", "ntlmsspi"),
            ("signing_forced", "yes"),
            ("multichannel", "yes"),
            ("max_channels", "4"),
            ("rsize", "4194304"),
            ("network", "yes"),
        ] {
            assert_eq!(value(&smb, name), Some(expected), "{name}");
        }
        let nfs = at("/mnt/nfs");
        for (name, expected) in [("nconnect", "4"), ("sync", "yes"), ("recovery", "hard"), ("proto", "tcp"), ("sec", "sys")] {
            assert_eq!(value(&nfs, name), Some(expected), "{name}");
        }
        let old = at("/mnt/old");
        for (name, expected) in [("nconnect", "1"), ("sync", "no"), ("recovery", "soft"), ("rsize", "8192")] {
            assert_eq!(value(&old, name), Some(expected), "{name}");
        }
        assert_eq!(value(&at("/"), "network"), Some("no"));
        assert_eq!(value(&at("/mnt/plan9"), "msize"), Some("131072"));
    }

    #[test]
    fn the_name_of_the_server_and_of_its_directory_is_in_no_fact() {
        for path in ["/mnt/my share", "/mnt/nfs", "/mnt/sshfs"] {
            assert!(at(path).facts.iter().all(|fact| !fact.value.contains("nas")), "{path}");
        }
    }

    #[test]
    fn cifs_mounts_of_the_field_are_recognised() {
        let text = include_str!("../../tests/fixtures/copy/mount_cifs_variants.txt");
        let mounts = parse_mount_output(text);
        let read: Vec<(String, Option<String>)> = mounts
            .iter()
            .map(describe)
            .map(|described| (described.protocol.clone(), value(&described, "wsize").map(str::to_owned)))
            .collect();
        let expected = [("smb 3.1.1", "65536"), ("smb 1.0", "65536"), ("smb 3.1.1", "4194304")];
        assert_eq!(read, expected.map(|(protocol, wsize)| (protocol.to_owned(), Some(wsize.to_owned()))));
        assert!(mounts.iter().all(|mount| describe(mount).reach == Reach::Network));
    }

    #[test]
    fn octal_escapes_are_undone_and_other_backslashes_stay() {
        for (text, plain) in
            [("a\\040b", "a b"), ("\\134", "\\"), ("a\\", "a\\"), ("\\04", "\\04"), ("\\999", "\\999"), ("\\303\\244", "ä")]
        {
            assert_eq!(unescape(text), plain, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_survived(text in "[ -~\\n\\\\]{0,200}") {
            for mount in parse(&text).iter().chain(&parse_mount_output(&text)) {
                let _ = describe(mount);
            }
        }
    }
}
