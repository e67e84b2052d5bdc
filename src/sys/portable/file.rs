//! Files as std knows them; what std does not offer is said to be unknown here.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use crate::sys::scratch::Room;

/// What direct transfers are called on this system.
pub const DIRECT: &str = if cfg!(windows) { "FILE_FLAG_NO_BUFFERING" } else { "direct" };

fn unknown<T>(what: &str) -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::Unsupported, format!("this system does not {what}")))
}

/// The room on the filesystem of `path`: std does not tell.
pub fn room(_path: &Path) -> io::Result<Room> {
    unknown("tell how much room a filesystem has")
}

/// Makes a new file for reading and writing, past the file cache if `direct`; one that is there already is an error.
pub fn create(path: &Path, direct: bool) -> io::Result<File> {
    options(OpenOptions::new().read(true).write(true).create_new(true), direct)?.open(path)
}

/// Opens a file for reading, past the file cache if `direct`.
pub fn open(path: &Path, direct: bool) -> io::Result<File> {
    options(OpenOptions::new().read(true), direct)?.open(path)
}

/// Opens a file that [`create`] made once more, for writing through the cache.
pub fn reopen(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

#[cfg(windows)]
fn options(options: &mut OpenOptions, direct: bool) -> io::Result<&mut OpenOptions> {
    use std::os::windows::fs::OpenOptionsExt;
    /// From the Windows SDK's `winbase.h`: transfers go past the cache and must be aligned to sectors.
    const FILE_FLAG_NO_BUFFERING: u32 = 0x2000_0000;
    Ok(if direct { options.custom_flags(FILE_FLAG_NO_BUFFERING) } else { options })
}

#[cfg(not(windows))]
fn options(options: &mut OpenOptions, direct: bool) -> io::Result<&mut OpenOptions> {
    if direct { unknown("open files past its cache") } else { Ok(options) }
}

/// Writes all of `data` at `offset`; several threads may share the handle.
#[cfg(windows)]
pub fn write_all_at(file: &File, mut data: &[u8], mut offset: u64) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !data.is_empty() {
        let done = file.seek_write(data, offset)?;
        data = data.get(done..).filter(|_| done > 0).ok_or(io::ErrorKind::WriteZero)?;
        offset += done as u64;
    }
    Ok(())
}

/// Writes all of `data` at `offset`; it moves the place of the handle, so each thread needs a handle of its own.
#[cfg(not(windows))]
pub fn write_all_at(mut file: &File, data: &[u8], offset: u64) -> io::Result<()> {
    use std::io::Write;
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(data)
}

/// Fills `data` from `offset`; it moves the place of the handle, so each thread needs a handle of its own.
pub fn read_exact_at(mut file: &File, data: &mut [u8], offset: u64) -> io::Result<()> {
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(data)
}

/// Sets room aside for the file: not possible here.
pub fn reserve(_file: &File, _len: u64) -> io::Result<()> {
    unknown("set room aside for a file")
}

/// Asks the system to forget what it holds of the file: not possible here.
pub fn drop_cache(_file: &File) -> io::Result<()> {
    unknown("drop a file from its cache")
}

/// Asks the system to begin to read a part of the file: not possible here.
pub fn read_ahead(_file: &File, _offset: u64, _len: u64) -> io::Result<()> {
    unknown("read a file ahead")
}

/// The numbers of the device that `path` is on: std does not tell.
pub fn device_number(_path: &Path) -> io::Result<(u32, u32)> {
    unknown("tell which device a path is on")
}

/// Makes a symbolic link, for tests.
#[cfg(all(test, unix))]
pub fn symlink(target: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

/// Makes a symbolic link, for tests: not possible here without a privilege.
#[cfg(all(test, not(unix)))]
pub fn symlink(_target: &Path, _link: &Path) -> io::Result<()> {
    unknown("let everyone make symbolic links")
}
