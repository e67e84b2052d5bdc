//! Our directory on the server: made inside the directory that the user named, removed afterwards, and never more than that.

use std::sync::Arc;

use russh_sftp::client::RawSftpSession;
use russh_sftp::client::error::Error as SftpError;
use russh_sftp::protocol::{FileAttributes, FileType, OpenFlags, StatusCode};

use super::target::Target;
use crate::copy::fileset::{LARGE_NAME, is_small_name};
use crate::copy::place::{is_scratch_name, scratch_name};

/// A file of this name makes a directory ours.
const MARKER: &str = "weaklink-test-files";

/// What stands in it, for people who find it.
const MARKER_TEXT: &[u8] = b"Test files of weaklink. They are removed after each run; this directory may be deleted.\n";

/// Leftovers of a run that was killed are removed when they are this old, seconds: no run lasts a day.
const OLD: u32 = 24 * 3600;

/// As many entries of a directory are looked at for leftovers; a directory with more is not worth the time.
const LOOKED_AT: usize = 10_000;

/// As many leftovers are removed at one start.
const SWEPT: usize = 10;

/// A directory of ours on the server.
#[derive(Clone, Debug)]
pub(super) struct RemoteScratch {
    path: String,
}

impl RemoteScratch {
    /// Makes a new one inside `dir`, which must exist. The error is one sentence for the user.
    pub(super) async fn create(session: &Arc<RawSftpSession>, target: &Target, dir: &str) -> Result<Self, String> {
        let dir = at_home(dir);
        match session.stat(dir).await {
            Ok(attrs) if attrs.attrs.file_type() == FileType::Dir => {}
            Ok(_) => return Err(format!("{dir} on {target} is not a directory")),
            Err(SftpError::Status(status)) if status.status_code == StatusCode::NoSuchFile => {
                return Err(format!("there is no directory {dir} on {target}: name one that exists"));
            }
            Err(error) => return Err(format!("cannot look at {dir} on {target}: {error}")),
        }
        let made = Self { path: join(dir, &scratch_name()?) };
        let failed = |error: SftpError| format!("cannot make a directory for test files in {dir} on {target}: {error}");
        session.mkdir(&made.path, FileAttributes::default()).await.map_err(failed)?;
        if let Err(error) = made.mark(session).await {
            let _ = session.rmdir(&made.path).await;
            return Err(failed(error));
        }
        sweep(session, dir, &made.path).await;
        Ok(made)
    }

    async fn mark(&self, session: &RawSftpSession) -> Result<(), SftpError> {
        let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::EXCLUDE;
        let handle = session.open(self.file(MARKER), flags, FileAttributes::default()).await?.handle;
        session.write(&handle, 0, MARKER_TEXT.to_vec()).await?;
        session.close(handle).await?;
        Ok(())
    }

    /// The path of a file in it.
    pub(super) fn file(&self, name: &str) -> String {
        join(&self.path, name)
    }

    /// Removes our files and the directory.
    pub(super) async fn remove(&self, session: &RawSftpSession) -> Result<(), SftpError> {
        remove(session, &self.path).await
    }
}

/// SFTP begins at home; a shell's `~` means the same.
fn at_home(dir: &str) -> &str {
    match dir.strip_prefix('~') {
        Some("" | "/") => ".",
        Some(rest) => rest.strip_prefix('/').unwrap_or(dir),
        None => dir,
    }
}

fn join(dir: &str, name: &str) -> String {
    format!("{}/{name}", if dir == "/" { "" } else { dir.trim_end_matches('/') })
}

/// The names and attributes in a directory, at most `most`.
async fn list(session: &RawSftpSession, dir: &str, most: usize) -> Result<Vec<(String, FileAttributes)>, SftpError> {
    let handle = session.opendir(dir).await?.handle;
    let mut found = Vec::new();
    let result = loop {
        match session.readdir(&handle).await {
            Ok(name) if name.files.is_empty() => break Ok(()),
            Ok(name) => found.extend(name.files.into_iter().map(|file| (file.filename, file.attrs))),
            Err(SftpError::Status(status)) if status.status_code == StatusCode::Eof => break Ok(()),
            Err(error) => break Err(error),
        }
        if found.len() >= most {
            break Ok(());
        }
    };
    session.close(handle).await?;
    result.map(|()| found)
}

/// Removes files of our names from `path`, then the directory, which fails when anything else is in it.
async fn remove(session: &RawSftpSession, path: &str) -> Result<(), SftpError> {
    let ours = |name: &str| name == LARGE_NAME || is_small_name(name);
    for (name, attrs) in list(session, path, LOOKED_AT).await? {
        if ours(&name) && attrs.file_type() == FileType::File {
            session.remove(join(path, &name)).await?;
        }
    }
    // The marker goes last: whatever stays before stays known as ours.
    session.remove(join(path, MARKER)).await?;
    session.rmdir(path).await?;
    Ok(())
}

/// Removes what killed runs left in `dir`. The age is that between the directories, so the server's clock need not be right.
async fn sweep(session: &RawSftpSession, dir: &str, own: &str) {
    let Ok(now) = session.stat(own).await else { return };
    let Ok(found) = list(session, dir, LOOKED_AT).await else { return };
    let old = |attrs: &FileAttributes| now.attrs.mtime.zip(attrs.mtime).is_some_and(|(now, then)| now.saturating_sub(then) > OLD);
    let leftovers =
        found.into_iter().filter(|(name, attrs)| is_scratch_name(name) && attrs.file_type() == FileType::Dir && old(attrs));
    for (name, _) in leftovers.take(SWEPT) {
        let path = join(dir, &name);
        if path != own && session.stat(join(&path, MARKER)).await.is_ok() {
            // What cannot be removed now is tried again at the next start.
            let _ = remove(session, &path).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_and_home_is_where_sftp_begins() {
        for (dir, path) in [
            ("/", "/x"),
            ("/a/", "/a/x"),
            ("a", "a/x"),
            (".", "./x"),
            ("~", "./x"),
            ("~/", "./x"),
            ("~/a", "a/x"),
            ("~me", "~me/x"),
        ] {
            assert_eq!(join(at_home(dir), "x"), path, "{dir}");
        }
    }
}
