//! The mounted lane: a directory that the system mounted, used as an application uses it.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::fileset::{CopySpec, LARGE_NAME, is_small_name, small_name, small_offset, small_sizes};
use super::lane::{LaneDriver, Opened, RungPlan, STOPPED};
use super::mounts::{Described, describe, find, parse};
use super::place::ReadProof;
use super::series::{Checker, RateOf, Series, per_file};
use super::sink::BoundedFile;
use crate::model::copy::{Copied, FileSet, LaneFact, LaneKind, Place};
use crate::model::{Direction, Outcome};
use crate::pattern::Pattern;
use crate::sys::file::room;
use crate::sys::{PREFIX, Progress, Scratch, Stop, sweep};
use crate::units::ByteSize;

/// One read or write, bytes: what file managers and `cp` use, or near it.
const BUFFER: usize = 256 * 1024;

/// How much longer than its budget a copy may take before the mount counts as hanging: a last sync, a server that fails over.
const HANGING: Duration = Duration::from_secs(10);

/// How long the syncing of small files may take after their copy. What is not synced by then is not read back.
const SMALL_SYNC: Duration = Duration::from_secs(1);

/// How often a wait looks at the stop flag.
const LOOK: Duration = Duration::from_millis(50);

/// A copy to and from a directory that the user named with `--path`.
#[derive(Debug)]
pub struct Mounted {
    dir: PathBuf,
    spec: CopySpec,
    scratch: Option<Scratch>,
    facts: Vec<LaneFact>,
    large: u64,
    small: u32,
}

impl Mounted {
    /// Copies of `spec` to and from a directory of our own inside `dir`.
    pub fn new(dir: impl Into<PathBuf>, spec: CopySpec) -> Self {
        Self { dir: dir.into(), spec, scratch: None, facts: Vec::new(), large: 0, small: 0 }
    }
}

impl LaneDriver for Mounted {
    fn kind(&self) -> LaneKind {
        LaneKind::Mounted
    }

    fn open(&mut self, stop: &Stop) -> Result<Opened, String> {
        let (dir, most) = (self.dir.clone(), self.spec.max_bytes);
        let entered = in_time("copy-open", HANGING, stop, move || Ok::<_, String>((enter(&dir)?, bounded(&dir, most)?)));
        let ((scratch, described), allowed) = entered.map_err(|ended| match ended {
            Ended::Stopped => STOPPED.to_owned(),
            Ended::Hangs => format!("{} does not answer: is its server reachable?", self.dir.display()),
        })??;
        self.scratch = Some(scratch);
        self.spec.max_bytes = allowed;
        let protocol = match described {
            Some(described) => {
                self.facts = described.facts;
                Outcome::Measured(described.protocol)
            }
            None => Outcome::skipped("this system does not tell what is mounted where (it has no /proc/self/mountinfo)"),
        };
        Ok(Opened { protocol, facts: self.facts.clone() })
    }

    fn rungs(&self) -> Vec<RungPlan> {
        RungPlan::with_memory(Place::Disk)
    }

    fn run(&mut self, rung: &RungPlan, budget: Duration, stop: &Stop, progress: &Progress) -> Outcome<Copied> {
        let Some(dir) = self.scratch.as_ref().map(|scratch| scratch.path().to_owned()) else {
            return Outcome::skipped("the directory was not opened");
        };
        let job = Job { dir, spec: self.spec, budget, stop: stop.clone(), progress: progress.clone() };
        let (direction, files) = (rung.direction, rung.files);
        let (large, small) = (self.large, self.small);
        match (direction, files) {
            (Direction::Download, FileSet::Large) if large == 0 => {
                return Outcome::skipped("nothing was uploaded that could be read back");
            }
            (Direction::Download, FileSet::Small) if small == 0 => {
                return Outcome::skipped("no small files were uploaded that could be read back");
            }
            (Direction::Upload, FileSet::Large) => self.large = 0,
            (Direction::Upload, FileSet::Small) => self.small = 0,
            (Direction::Download, _) => {}
        }
        let work = move || match (direction, files) {
            (Direction::Upload, FileSet::Large) => job.put_large(),
            (Direction::Upload, FileSet::Small) => job.put_small(),
            (Direction::Download, FileSet::Large) => job.get_large(large),
            (Direction::Download, FileSet::Small) => job.get_small(small),
        };
        match in_time("copy-mounted", budget + HANGING, stop, work) {
            _ if stop.is_set() => Outcome::skipped(STOPPED),
            Ok(Ok(done)) => {
                match (direction, files) {
                    (Direction::Upload, FileSet::Large) => self.large = done.kept,
                    (Direction::Upload, FileSet::Small) => self.small = done.kept as u32,
                    (Direction::Download, _) => {}
                }
                Outcome::Measured(done.copied)
            }
            Ok(Err(reason)) => Outcome::failed(reason),
            Err(_) => Outcome::failed("the mount does not answer: a read or write hangs; look at the server and the cable"),
        }
    }

    fn facts(&self) -> Vec<LaneFact> {
        self.facts.clone()
    }

    fn close(&mut self) {
        if let Some(scratch) = self.scratch.take() {
            // Removing files from a share that hangs would hang as well; the rest is swept at the next start.
            let _ = in_time("copy-close", HANGING, &Stop::new(), move || drop(scratch));
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.close();
    }
}

/// Why something did not come to its end.
#[derive(Debug)]
enum Ended {
    Stopped,
    Hangs,
}

/// Runs `work` on a thread of its own: a call into a dead mount can last forever and cannot be broken off.
fn in_time<T: Send + 'static>(
    name: &str,
    longest: Duration,
    stop: &Stop,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Ended> {
    // A stop is looked at by the work itself; it gets this long for that.
    const AFTER_STOP: Duration = Duration::from_secs(2);
    let (done, result) = sync_channel(1);
    let started = thread::Builder::new().name(name.to_owned()).spawn(move || drop(done.send(work())));
    if started.is_err() {
        return Err(Ended::Hangs);
    }
    let mut deadline = Instant::now() + longest;
    let mut stopped = false;
    loop {
        match result.recv_timeout(LOOK) {
            Ok(value) => return Ok(value),
            Err(RecvTimeoutError::Disconnected) => return Err(Ended::Hangs),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if stop.is_set() && !stopped {
            stopped = true;
            deadline = deadline.min(Instant::now() + AFTER_STOP);
        }
        if Instant::now() >= deadline {
            return Err(if stopped { Ended::Stopped } else { Ended::Hangs });
        }
    }
}

/// Makes our directory and recognises what it lies on.
fn enter(dir: &Path) -> Result<(Scratch, Option<Described>), String> {
    let path = dir.canonicalize().map_err(|error| format!("cannot use {}: {error}", dir.display()))?;
    if !path.is_dir() {
        return Err(format!("{} is not a directory", dir.display()));
    }
    let table = std::fs::read("/proc/self/mountinfo").ok();
    let mounts = table.map(|bytes| parse(&String::from_utf8_lossy(&bytes))).unwrap_or_default();
    // What cannot be swept hinders nothing.
    let _ = sweep(&path);
    let scratch = Scratch::create(&path)
        .map_err(|error| format!("cannot make a directory for test files in {}: {error}", dir.display()))?;
    Ok((scratch, find(&mounts, &path).map(describe)))
}

/// How much of `most` may be written: no more than a quarter of what is free, where the system tells.
fn bounded(dir: &Path, most: ByteSize) -> Result<ByteSize, String> {
    let Ok(room) = room(dir) else { return Ok(most) };
    let allowed = ByteSize(most.0.min(room.free / FREE_PART));
    if allowed < LEAST.min(most) {
        let free = ByteSize(room.free);
        return Err(format!(
            "too little room in {}: {free} are free, and a copy needs four times {LEAST}; free some space",
            dir.display()
        ));
    }
    Ok(allowed)
}

/// The part of the free space that a copy may fill is one of so many.
const FREE_PART: u64 = 4;

/// The least that a copy of a large file is worth.
const LEAST: ByteSize = ByteSize::mib(16);

/// What a copy left behind: the bytes of the large file, or the number of small files that are synced.
struct Done {
    copied: Copied,
    kept: u64,
}

/// One copy, on its own thread.
struct Job {
    dir: PathBuf,
    spec: CopySpec,
    budget: Duration,
    stop: Stop,
    progress: Progress,
}

impl Job {
    /// The path of one of our files.
    fn at(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{PREFIX}{name}"))
    }

    /// Removes the files of an earlier copy: a repeat writes new ones.
    fn begin_anew(&self, ours: impl Fn(&str) -> bool) {
        // What cannot be removed makes the copy fail with its own reason.
        for entry in std::fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            if entry.file_name().to_str().and_then(|name| name.strip_prefix(PREFIX)).is_some_and(&ours) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    fn put_large(&self) -> Result<Done, String> {
        let failed = |error: io::Error| format!("cannot write a test file: {error}");
        let pattern = Pattern::new(self.spec.seed);
        let mut buffer = vec![0; BUFFER];
        self.begin_anew(|name| name == LARGE_NAME);
        let mut file = BoundedFile::create(&self.at(LARGE_NAME)).map_err(failed)?;
        let mut series = Series::new();
        while !self.stop.is_set() && series.elapsed() < self.budget && series.bytes() < self.spec.max_bytes.0 {
            let left = self.spec.max_bytes.0 - series.bytes();
            let part = buffer.get_mut(..BUFFER.min(usize::try_from(left).unwrap_or(BUFFER))).unwrap_or_default();
            pattern.fill(series.bytes(), part);
            let late = || self.stop.is_set() || series.elapsed() >= self.budget;
            match file.write(part, &late) {
                Ok(()) => {}
                // The data is written; only the wait for the share before the next was cut short by the end of the time.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
            series.add(part.len() as u64);
            self.progress.add(part.len() as u64);
        }
        file.finish(Instant::now() + HANGING, &|| self.stop.is_set()).map_err(failed)?;
        let kept = series.bytes();
        Ok(Done { copied: series.finish(1, RateOf::Whole, Outcome::skipped("the download compares the content")), kept })
    }

    fn get_large(&self, written: u64) -> Result<Done, String> {
        let failed = |error: io::Error| format!("cannot read the test file: {error}");
        let path = self.at(LARGE_NAME);
        let proof = ReadProof::prepare([path.as_path()]);
        let mut file = File::open(&path).map_err(failed)?;
        let mut buffer = vec![0; BUFFER];
        let mut checker = Checker::cheap(self.spec.seed);
        let mut series = Series::new();
        while !self.stop.is_set() && series.elapsed() < self.budget {
            let n = file.read(&mut buffer).map_err(failed)?;
            if n == 0 {
                break;
            }
            checker.look(series.bytes(), buffer.get(..n).unwrap_or_default());
            series.add(n as u64);
            self.progress.add(n as u64);
        }
        drop(file);
        if series.bytes() < written && series.elapsed() < self.budget {
            return Err(format!("the file came back short: {} of {}", ByteSize(series.bytes()), ByteSize(written)));
        }
        let copied = series.finish(1, RateOf::Steady, checker.outcome());
        proof.judge(copied.bytes).map_or(Ok(Done { copied, kept: 0 }), Err)
    }

    fn put_small(&self) -> Result<Done, String> {
        let failed = |error: io::Error| format!("cannot write a small test file: {error}");
        let pattern = Pattern::new(self.spec.seed);
        let mut buffer = vec![0; BUFFER];
        self.begin_anew(is_small_name);
        let mut series = Series::new();
        let mut files = 0;
        for (index, size) in (0..).zip(small_sizes(self.spec.seed, self.spec.small_files)) {
            if self.stop.is_set() || (series.elapsed() >= self.budget && files > 0) {
                break;
            }
            let part = buffer.get_mut(..size as usize).unwrap_or_default();
            pattern.fill(small_offset(index), part);
            let mut file = File::options().write(true).create_new(true).open(self.at(&small_name(index))).map_err(failed)?;
            file.write_all(part).map_err(failed)?;
            drop(file);
            series.add(u64::from(size));
            self.progress.add(u64::from(size));
            files += 1;
        }
        let mut copied = series.finish(files, RateOf::Whole, Outcome::skipped("the download compares the content"));
        copied.per_file_us = per_file(copied.elapsed_us.into(), files);
        Ok(Done { copied, kept: u64::from(self.sync_small(files)) })
    }

    /// Only what is synced can be dropped from memory; copying programs do not sync, so this is outside of the measured time.
    fn sync_small(&self, files: u32) -> u32 {
        let deadline = Instant::now() + SMALL_SYNC;
        let synced = (0..files).take_while(|index| {
            !self.stop.is_set()
                && Instant::now() < deadline
                && File::options().append(true).open(self.at(&small_name(*index))).and_then(|file| file.sync_all()).is_ok()
        });
        synced.count() as u32
    }

    fn get_small(&self, files: u32) -> Result<Done, String> {
        let failed = |error: io::Error| format!("cannot read a small test file: {error}");
        let paths: Vec<PathBuf> = (0..files).map(|index| self.at(&small_name(index))).collect();
        let proof = ReadProof::prepare(paths.iter().map(PathBuf::as_path));
        let mut checker = Checker::all(self.spec.seed);
        let mut buffer = Vec::with_capacity(BUFFER);
        let mut series = Series::new();
        let mut read = 0;
        for (index, path) in (0..).zip(&paths) {
            if self.stop.is_set() || (series.elapsed() >= self.budget && read > 0) {
                break;
            }
            buffer.clear();
            File::open(path).and_then(|file| file.take(BUFFER as u64).read_to_end(&mut buffer)).map_err(failed)?;
            checker.look(small_offset(index), &buffer);
            series.add(buffer.len() as u64);
            self.progress.add(buffer.len() as u64);
            read += 1;
        }
        let mut copied = series.finish(read, RateOf::Whole, checker.outcome());
        copied.per_file_us = per_file(copied.elapsed_us.into(), read);
        proof.judge(copied.bytes).map_or(Ok(Done { copied, kept: 0 }), Err)
    }
}
