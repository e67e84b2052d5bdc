//! Files past the page cache, the room on a filesystem, and the device that a path is on.
#![expect(unsafe_code, reason = "statvfs, posix_fadvise and fallocate have no safe form in std")]

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::sys::scratch::Room;

/// What direct transfers are called on this system.
pub const DIRECT: &str = "O_DIRECT";

/// The room on the filesystem of `path`, as an unprivileged user may use it.
pub fn room(path: &Path) -> io::Result<Room> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut stat = MaybeUninit::<libc::statvfs64>::zeroed();
    // SAFETY: the path ends with a zero byte, and the structure is as large as the call expects.
    if unsafe { libc::statvfs64(path.as_ptr(), stat.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded and filled the structure, which was zeroed before.
    let stat = unsafe { stat.assume_init() };
    #[expect(clippy::useless_conversion, reason = "narrower on 32-bit targets")]
    let block = u64::from(stat.f_frsize);
    Ok(Room { free: block.saturating_mul(stat.f_bavail), total: block.saturating_mul(stat.f_blocks) })
}

/// Makes a new file for reading and writing, past the page cache if `direct`; one that is there already, or a symlink, is an error.
pub fn create(path: &Path, direct: bool) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).custom_flags(flags(direct)).open(path)
}

/// Opens a file for reading, past the page cache if `direct`.
pub fn open(path: &Path, direct: bool) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(flags(direct)).open(path)
}

/// Opens a file that [`create`] made once more, for writing through the cache.
pub fn reopen(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).custom_flags(flags(false)).open(path)
}

const fn flags(direct: bool) -> i32 {
    if direct { libc::O_DIRECT | libc::O_NOFOLLOW } else { libc::O_NOFOLLOW }
}

/// Writes all of `data` at `offset`.
pub fn write_all_at(file: &File, data: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(data, offset)
}

/// Fills `data` from `offset`; a file that ends before is an error.
pub fn read_exact_at(file: &File, data: &mut [u8], offset: u64) -> io::Result<()> {
    file.read_exact_at(data, offset)
}

/// Sets `len` bytes aside for the file, so that writers at several places do not wait for each other to extend it.
pub fn reserve(file: &File, len: u64) -> io::Result<()> {
    let len = libc::off64_t::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the descriptor is open for the call, which touches no memory of ours.
    result(unsafe { libc::fallocate64(file.as_raw_fd(), 0, 0, len) })
}

/// Asks the kernel to forget what it holds of the file; what is not yet on the disk stays.
pub fn drop_cache(file: &File) -> io::Result<()> {
    advise(file, 0, 0, libc::POSIX_FADV_DONTNEED)
}

/// Asks the kernel to begin to read a part of the file.
pub fn read_ahead(file: &File, offset: u64, len: u64) -> io::Result<()> {
    advise(file, offset, len, libc::POSIX_FADV_WILLNEED)
}

fn advise(file: &File, offset: u64, len: u64, advice: libc::c_int) -> io::Result<()> {
    let number = |value: u64| libc::off64_t::try_from(value).map_err(|_| io::ErrorKind::InvalidInput);
    let (offset, len) = (number(offset)?, number(len)?);
    // SAFETY: the descriptor is open for the call, which touches no memory of ours.
    match unsafe { libc::posix_fadvise64(file.as_raw_fd(), offset, len, advice) } {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// The numbers (major, minor) of the device that `path` is on.
pub fn device_number(path: &Path) -> io::Result<(u32, u32)> {
    let dev = std::fs::metadata(path)?.dev();
    Ok((libc::major(dev), libc::minor(dev)))
}

fn result(code: i32) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes a symbolic link, for tests.
#[cfg(test)]
pub fn symlink(target: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_of_a_directory_is_known_and_free_is_no_more_than_total() {
        let dir = tempfile::tempdir().unwrap();
        let room = room(dir.path()).unwrap();
        assert!(room.total > 0 && room.free <= room.total);
        assert!(super::room(&dir.path().join("absent")).is_err());
    }

    #[test]
    fn a_file_is_written_at_places_synced_forgotten_and_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let file = create(&path, false).unwrap();
        // Not every filesystem can set room aside; where it cannot, it says so and nothing is lost.
        let _ = reserve(&file, 8192);
        write_all_at(&file, &[7; 4096], 4096).unwrap();
        file.sync_data().unwrap();
        drop_cache(&file).unwrap();
        let mut data = [0; 4096];
        read_exact_at(&open(&path, false).unwrap(), &mut data, 4096).unwrap();
        assert_eq!(data, [7; 4096]);
        assert!(create(&path, false).is_err(), "a file that is there is never opened for writing");
    }

    #[test]
    fn a_symlink_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        symlink(&dir.path().join("target"), &dir.path().join("link")).unwrap();
        assert!(create(&dir.path().join("link"), false).is_err());
        assert!(!dir.path().join("target").exists());
    }
}
