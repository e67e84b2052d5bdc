//! One disk test: how fast a directory's storage writes and reads a large file.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::counters::{Counted, Meter, Way};
use super::device::{self, Site};
use super::plan::{self, UNIT};
use super::series::{self, Series};
use super::tree::Root;
use super::workers::{self, Fault, Job};
use crate::model::Outcome;
use crate::model::cpu::CpuWindow;
use crate::model::storage::{CONTENT_DIFFERS, DeviceKind, DiskResult, Transfer};
use crate::pattern::Pattern;
use crate::sys::{self, PREFIX, Progress, Scratch, Stop, file};
use crate::units::{ByteSize, Elapsed};

/// Requests under way at once: with one, a RAID or an NVMe disk idles between two; more than four gave no more.
const LANES: usize = 4;
/// Room set aside before writing, no more than this: a killed run should not leave a huge file behind.
const AHEAD: u64 = 16 << 30;
/// The part of a read that must have come from the disk, so that its rate is the disk's; the rest leaves
/// room for pages that could not be dropped from the cache.
const FROM_DISK: f64 = 0.9;

/// What to write and where.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The directory, which must be a [`Scratch`]'s: it removes the file.
    pub dir: PathBuf,
    /// No more than this is written.
    pub max_bytes: u64,
    /// No block is begun after this time.
    pub budget: Duration,
    /// Decides the content.
    pub seed: u64,
}

/// A file that [`write()`] wrote, to be read back.
#[derive(Clone, Debug)]
pub struct Written {
    path: PathBuf,
    bytes: u64,
    pattern: Pattern,
    site: Option<Site>,
}

impl Written {
    /// Its size.
    pub const fn bytes(&self) -> ByteSize {
        ByteSize(self.bytes)
    }
}

/// Ends the watch on the processors and says what they did.
pub type CpuWatch = Box<dyn FnOnce() -> Outcome<CpuWindow>>;

/// What a whole test of a directory is to do.
pub struct RunSpec<'a> {
    /// No more than this is written.
    pub max_bytes: ByteSize,
    /// The time for writing, and again for reading.
    pub budget_each: Duration,
    /// Begins to watch the processors, for each of both.
    pub watch: &'a dyn Fn() -> CpuWatch,
}

impl std::fmt::Debug for RunSpec<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunSpec")
            .field("max_bytes", &self.max_bytes)
            .field("budget_each", &self.budget_each)
            .finish_non_exhaustive()
    }
}

/// Tests the storage of `dir`: removes what a killed run left there, writes, reads, and leaves nothing.
pub fn run(dir: &Path, run: &RunSpec<'_>, stop: &Stop, progress: &Progress) -> DiskResult {
    // What cannot be swept hinders nothing.
    let _ = sys::sweep(dir);
    let device = device::describe(dir);
    let scratch = match Scratch::create(dir) {
        Ok(scratch) => scratch,
        Err(error) => {
            let reason = format!("no test directory could be made in {}: {error}", dir.display());
            return DiskResult { device, write: Outcome::failed(&reason), read: Outcome::failed(reason) };
        }
    };
    let seed = RandomState::new().build_hasher().finish();
    let spec = Spec { dir: scratch.path().to_path_buf(), max_bytes: run.max_bytes.0, budget: run.budget_each, seed };
    let cpu = (run.watch)();
    let result = write(&spec, stop, progress);
    let cpu = cpu();
    match result {
        Outcome::Measured((mut transfer, written)) => {
            transfer.cpu = cpu;
            let cpu = (run.watch)();
            let mut read = read(&written, run.budget_each, stop, progress);
            let cpu = cpu();
            if let Some(read) = read.measured_mut() {
                read.cpu = cpu;
            }
            DiskResult { device, write: Outcome::Measured(transfer), read }
        }
        other => {
            let read = Outcome::skipped("nothing was written that could be read back");
            DiskResult { device, write: other.map(|(transfer, _)| transfer), read }
        }
    }
}

/// Writes a file, and says how fast the storage took it; the time includes that of making it safe.
pub fn write(spec: &Spec, stop: &Stop, progress: &Progress) -> Outcome<(Transfer, Written)> {
    let total = match plan::allowance(file::room(&spec.dir).ok(), spec.max_bytes) {
        Ok(total) => total,
        Err(reason) => return Outcome::skipped(reason),
    };
    let site = device::locate(&spec.dir).measured().cloned();
    let path = spec.dir.join(format!("{PREFIX}disk"));
    let pattern = Pattern::new(spec.seed);
    let job = Job { pattern: &pattern, total, lanes: LANES, budget: spec.budget, stop, progress };
    let result = write_file(&job, &path, site.as_ref());
    let undone = |outcome| {
        // It would be removed with the directory; a full disk should not wait for that.
        let _ = std::fs::remove_file(&path);
        outcome
    };
    if stop.is_set() {
        return undone(Outcome::skipped("the run was stopped during the write test"));
    }
    match result {
        Ok(transfer) if transfer.bytes.0 == 0 => {
            undone(Outcome::failed("nothing could be written in the time given: allow more"))
        }
        Ok(transfer) => {
            let bytes = transfer.bytes.0;
            Outcome::Measured((transfer, Written { path, bytes, pattern, site }))
        }
        Err(error) => undone(Outcome::failed(write_fault(&error))),
    }
}

fn write_fault(fault: &Fault) -> String {
    match fault {
        Fault::Io(error) if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
            format!("the disk became full during the write test ({error}); the test file was removed, free some space")
        }
        Fault::Io(error) => format!("the test file could not be written: {error}"),
        Fault::Content(at) => format!("the test file could not be written: {CONTENT_DIFFERS} at byte {at}"),
    }
}

fn write_file(job: &Job<'_>, path: &Path, site: Option<&Site>) -> Result<Transfer, Fault> {
    let memory = in_memory(site);
    let direct = if memory { None } else { file::create(path, true).ok() };
    let direct = direct.filter(|file| workers::takes_direct(file, true));
    let (file, direct) = if let Some(file) = direct {
        (file, true)
    } else {
        // There may be one, made before the direct transfer was refused.
        let _ = std::fs::remove_file(path);
        (file::create(path, false)?, false)
    };
    if direct && site.is_some_and(|site| site.device.kind == DeviceKind::Local) {
        // Only an advantage: writers at several places need not wait for each other to extend the file.
        let _ = file::reserve(&file, job.total.min(AHEAD));
    }
    let meter = Meter::start(&Root::default(), site, Way::Write);
    let series = if direct { workers::write_direct(job, &file) } else { workers::write_buffered(job, || file::reopen(path)) }?;
    let before = Instant::now();
    file.sync_data()?;
    let finish = before.elapsed();
    let counted = meter.stop();
    file.set_len(series.bytes())?;
    let method = match (memory, direct) {
        (true, _) => "buffered, in memory".to_owned(),
        (false, true) => direct_method(),
        (false, false) => "buffered + fsync".to_owned(),
    };
    Ok(transfer(&series, finish, method, counted))
}

/// Reads the file back and checks it; only what came from the storage itself, and not from memory, is a result.
pub fn read(written: &Written, budget: Duration, stop: &Stop, progress: &Progress) -> Outcome<Transfer> {
    let site = written.site.as_ref();
    let memory = in_memory(site);
    let direct = !memory && file::open(&written.path, true).is_ok_and(|file| workers::takes_direct(&file, false));
    let dropped = direct || forget(&written.path).is_ok();
    let job = Job { pattern: &written.pattern, total: written.bytes, lanes: LANES, budget, stop, progress };
    let meter = Meter::start(&Root::default(), site, Way::Read);
    let result = workers::read(&job, &written.path, direct);
    let counted = meter.stop();
    if stop.is_set() {
        return Outcome::skipped("the run was stopped during the read test");
    }
    let series = match result {
        Ok(series) => series,
        Err(Fault::Content(at)) => {
            return Outcome::failed(format!(
                "{CONTENT_DIFFERS} at byte {at} (or up to {} after): the storage does not return what was written",
                ByteSize(plan::LARGEST)
            ));
        }
        Err(Fault::Io(error)) => return Outcome::failed(format!("the test file could not be read: {error}")),
    };
    if series.bytes() == 0 {
        return Outcome::failed("nothing could be read in the time given: allow more");
    }
    let kind = site.map(|site| site.device.kind);
    if !memory && let Err(reason) = from_storage(kind, direct, series.bytes(), &counted) {
        return Outcome::failed(reason);
    }
    let method = match (memory, direct) {
        (true, _) => "buffered, in memory".to_owned(),
        (false, true) => direct_method(),
        (false, false) if dropped => "buffered, dropped from the cache before".to_owned(),
        (false, false) => "buffered".to_owned(),
    };
    Outcome::Measured(transfer(&series, Duration::ZERO, method, counted))
}

/// Whether the rate of a read is that of the storage; if not, why.
///
/// The block device's own count decides, and beside it what the kernel charged to this process; a direct
/// transfer that neither can speak for is believed, a buffered one is not.
pub fn from_storage(kind: Option<DeviceKind>, direct: bool, bytes: u64, counted: &Counted) -> Result<(), String> {
    let local = matches!(kind, Some(DeviceKind::Local | DeviceKind::Opaque));
    let device = counted.device.measured().map(|bytes| bytes.0);
    let seen = match (device, counted.own) {
        // The disks below must have moved as much: a loop device counts also what its file had in memory.
        (Some(device), _) => Some(counted.bottom.map_or(device, |bottom| bottom.min(device))),
        (None, own) if !direct || local => own,
        (None, _) => None,
    };
    match seen {
        Some(seen) if (seen as f64) < bytes as f64 * FROM_DISK => {
            let (bytes, seen) = (ByteSize(bytes), ByteSize(seen));
            Err(format!("only {seen} of the {bytes} read came from the storage, the rest from memory: its rate is not known"))
        }
        Some(_) => Ok(()),
        None if direct => Ok(()),
        None => Err("the file was read through the system's cache, and nothing shows that it came from the storage".to_owned()),
    }
}

fn in_memory(site: Option<&Site>) -> bool {
    site.is_some_and(|site| site.device.kind == DeviceKind::Memory && site.tops.is_empty())
}

fn forget(path: &Path) -> io::Result<()> {
    let file = file::open(path, false)?;
    file::drop_cache(&file)
}

fn direct_method() -> String {
    format!("{}, {LANES} requests of up to {} MiB at once", file::DIRECT, plan::LARGEST / UNIT)
}

fn transfer(series: &Series, finish: Duration, method: String, counted: Counted) -> Transfer {
    let level = series::level(series, finish);
    let method = if counted.whole_host { format!("{method}; counted on all disks of this host") } else { method };
    Transfer {
        bytes: ByteSize(series.bytes()),
        elapsed_us: Elapsed::from(series.end() + finish),
        sustained_bytes_per_s: level.sustained,
        burst: level.burst,
        bins: series.bins(),
        method,
        device_bytes: counted.device,
        device_busy: counted.busy,
        cpu: Outcome::skipped("not sampled"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Seek, SeekFrom, Write};

    use super::*;

    const SHORT: Duration = Duration::from_secs(20);

    fn unwatched() -> CpuWatch {
        Box::new(|| Outcome::skipped("not sampled"))
    }

    fn short(max_bytes: u64) -> RunSpec<'static> {
        RunSpec { max_bytes: ByteSize(max_bytes), budget_each: SHORT, watch: &unwatched }
    }

    fn spec(scratch: &Scratch) -> Spec {
        Spec { dir: scratch.path().to_path_buf(), max_bytes: plan::LEAST, budget: SHORT, seed: 7 }
    }

    /// A test file of 16 MiB in a new directory; none, said aloud by the caller's name, where the disk is full.
    fn written() -> (tempfile::TempDir, Scratch, Transfer, Written) {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(dir.path()).unwrap();
        let outcome = write(&spec(&scratch), &Stop::new(), &Progress::new());
        let (transfer, written) = outcome.measured().cloned().unwrap_or_else(|| panic!("{:?}", outcome.why()));
        (dir, scratch, transfer, written)
    }

    #[test]
    fn a_run_writes_all_that_is_allowed_reads_it_back_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let progress = Progress::new();
        let result = run(dir.path(), &short(plan::LEAST), &Stop::new(), &progress);
        let write = result.write.measured().unwrap();
        assert_eq!(write.bytes, ByteSize(plan::LEAST));
        assert!(write.bins.bytes.iter().sum::<u64>().abs_diff(plan::LEAST) <= 1);
        assert!(progress.bytes() >= write.bytes.0);
        // Where the file cannot be dropped from memory, the read is refused; it is never a wrong figure.
        match &result.read {
            Outcome::Measured(read) => assert_eq!(read.bytes, write.bytes),
            other => assert!(other.why().unwrap().contains("memory") || other.why().unwrap().contains("cache"), "{other:?}"),
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn one_changed_byte_is_found() {
        let (_dir, _scratch, _, written) = written();
        let mut file = fs::OpenOptions::new().write(true).open(&written.path).unwrap();
        file.seek(SeekFrom::Start(9_999_999)).unwrap();
        file.write_all(&[0x5a]).unwrap();
        file.sync_all().unwrap();
        let outcome = read(&written, SHORT, &Stop::new(), &Progress::new());
        assert!(outcome.why().unwrap().contains("content differs"), "{outcome:?}");
    }

    #[test]
    fn a_file_that_vanished_or_shrank_is_a_failure() {
        let (_dir, _scratch, _, written) = written();
        fs::OpenOptions::new().write(true).open(&written.path).unwrap().set_len(1 << 20).unwrap();
        assert!(matches!(read(&written, SHORT, &Stop::new(), &Progress::new()), Outcome::Failed(_)));
        fs::remove_file(&written.path).unwrap();
        assert!(matches!(read(&written, SHORT, &Stop::new(), &Progress::new()), Outcome::Failed(_)));
    }

    #[test]
    fn a_run_that_is_stopped_says_so_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let stop = Stop::new();
        stop.set();
        let result = run(dir.path(), &short(plan::LEAST), &stop, &Progress::new());
        assert!(result.write.why().unwrap().contains("stopped"));
        assert!(matches!(result.read, Outcome::Skipped(_)));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn too_little_data_or_no_directory_is_told_before_anything_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let result = run(dir.path(), &short(1 << 20), &Stop::new(), &Progress::new());
        assert!(matches!(result.write, Outcome::Skipped(_)));
        let result = run(&dir.path().join("absent"), &short(plan::LEAST), &Stop::new(), &Progress::new());
        assert!(matches!(result.write, Outcome::Failed(_)) && matches!(result.device, Outcome::Failed(_)));
    }

    #[test]
    fn buffered_writing_leaves_the_same_content() {
        let dir = tempfile::tempdir().unwrap();
        let (path, pattern) = (dir.path().join("f"), Pattern::new(3));
        let file = file::create(&path, false).unwrap();
        let (stop, progress) = (Stop::new(), Progress::new());
        let job = Job { pattern: &pattern, total: 20 * UNIT, lanes: 1, budget: SHORT, stop: &stop, progress: &progress };
        let series = workers::write_buffered(&job, || file::reopen(&path)).unwrap();
        drop(file);
        assert_eq!((series.bytes(), progress.bytes()), (20 * UNIT, 20 * UNIT));
        assert!(pattern.check(0, &fs::read(&path).unwrap()));
    }

    #[test]
    fn a_read_counts_only_when_it_came_from_the_storage() {
        let known = |device: Option<u64>, bottom, own| Counted {
            device: device.map_or_else(|| Outcome::skipped("unknown"), |bytes| Outcome::Measured(ByteSize(bytes))),
            busy: Outcome::skipped("unknown"),
            bottom,
            whole_host: false,
            own,
        };
        let (local, network) = (Some(DeviceKind::Local), Some(DeviceKind::Network));
        for (what, kind, direct, counted, believed) in [
            ("the device moved all", local, false, known(Some(100), Some(100), Some(100)), true),
            ("the device moved nothing", local, false, known(Some(0), Some(0), Some(0)), false),
            ("a loop device whose file was in memory", local, true, known(Some(100), Some(3), Some(100)), false),
            ("O_DIRECT that a filesystem only pretends", local, true, known(Some(5), None, Some(5)), false),
            ("only the process's own count is known", local, false, known(None, None, Some(100)), true),
            ("and it is low", local, false, known(None, None, Some(10)), false),
            ("a share read directly", network, true, known(None, None, Some(0)), true),
            ("a share read from the cache", network, false, known(None, None, Some(0)), false),
            ("nothing known but direct", None, true, known(None, None, None), true),
            ("nothing known and buffered", None, false, known(None, None, None), false),
        ] {
            assert_eq!(from_storage(kind, direct, 100, &counted).is_ok(), believed, "{what}");
        }
    }

    #[test]
    fn a_full_disk_is_told_as_one() {
        let full = Fault::Io(io::Error::from(io::ErrorKind::StorageFull));
        assert!(write_fault(&full).contains("became full"));
    }
}
