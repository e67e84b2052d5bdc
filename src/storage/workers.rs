//! Threads that move blocks to or from one file and note when each began and ended.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::plan::{self, LARGEST, UNIT};
use super::series::Series;
use crate::pattern::Pattern;
use crate::sys::{Progress, Stop, file};

/// The memory of a direct transfer must be aligned to the device's sectors; a page is more than any asks for.
const ALIGN: usize = 4096;

/// What is to be moved, and until when.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The content.
    pub pattern: &'a Pattern,
    /// The bytes of the file, a multiple of 1 MiB.
    pub total: u64,
    /// The requests under way at once.
    pub lanes: usize,
    /// No request starts after this time.
    pub budget: Duration,
    /// The word to stop.
    pub stop: &'a Stop,
    /// Counts for display.
    pub progress: &'a Progress,
}

/// Why a transfer ended early.
#[derive(Debug)]
pub enum Fault {
    /// The system refused.
    Io(io::Error),
    /// The file holds something else than was written, in the request at this place.
    Content(u64),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Memory at an aligned address.
struct Aligned {
    memory: Vec<u8>,
    at: usize,
}

impl Aligned {
    fn new(len: usize) -> Self {
        let memory = vec![0; len + ALIGN];
        let at = memory.as_ptr().align_offset(ALIGN).min(ALIGN);
        Self { memory, at }
    }

    fn part(&mut self, len: usize) -> &mut [u8] {
        let len = len.min(self.memory.len() - ALIGN);
        &mut self.memory[self.at..self.at + len]
    }
}

/// Whether `file`, opened for direct transfers, really takes one: some filesystems refuse only then.
pub fn takes_direct(file: &File, write: bool) -> bool {
    let mut buffer = Aligned::new(ALIGN);
    let part = buffer.part(ALIGN);
    if write { file::write_all_at(file, part, 0).is_ok() } else { file::read_exact_at(file, part, 0).is_ok() }
}

/// Writes directly, several requests at once.
pub fn write_direct(job: &Job<'_>, file: &File) -> Result<Series, Fault> {
    let began = Instant::now();
    blocks(job, began, || {
        Ok(move |offset: u64, block: &mut [u8]| {
            job.pattern.fill(offset, block);
            let from = began.elapsed();
            file::write_all_at(file, block, offset)?;
            Ok((from, began.elapsed()))
        })
    })
}

/// Writes through the page cache and syncs every half second; the bytes count when they are safe.
///
/// Two writers, so that one fills memory while the disk works for the other. (Asking the kernel to start
/// writing early with `sync_file_range` is slower: it treats that as background work and holds it back.)
pub fn write_buffered(job: &Job<'_>, open: impl Fn() -> io::Result<File> + Sync) -> Result<Series, Fault> {
    let began = Instant::now();
    together(2, |shared| {
        let file = open()?;
        let mut series = Series::default();
        let mut buffer = Aligned::new(UNIT as usize);
        let mut window = plan::WINDOW_LEAST;
        while job.goes_on(began, shared) {
            let Some((start, len)) = shared.claim(window, job.total) else { break };
            let (from, mut done) = (began.elapsed(), 0);
            // A window that was begun is finished, so that the file has no holes, unless all of it is in vain.
            while done < len && !job.stop.is_set() {
                let block = buffer.part(UNIT as usize);
                job.pattern.fill(start + done, block);
                file::write_all_at(&file, block, start + done)?;
                done += UNIT;
                job.progress.add(UNIT);
            }
            file.sync_data()?;
            let to = began.elapsed();
            series.add(from, to, done);
            window = plan::next_window(done, to.saturating_sub(from));
        }
        Ok(series)
    })
}

/// Reads and checks every byte; each worker has a handle of its own.
pub fn read(job: &Job<'_>, path: &Path, direct: bool) -> Result<Series, Fault> {
    let began = Instant::now();
    blocks(job, began, || {
        let file = file::open(path, direct)?;
        Ok(move |offset: u64, block: &mut [u8]| {
            let from = began.elapsed();
            file::read_exact_at(&file, block, offset)?;
            let to = began.elapsed();
            if job.pattern.check(offset, block) { Ok((from, to)) } else { Err(Fault::Content(offset)) }
        })
    })
}

/// What workers on one file share: the next place, and whether one of them failed.
#[derive(Default)]
struct Shared {
    next: AtomicU64,
    broken: AtomicBool,
}

impl Shared {
    /// The next `len` bytes of a file of `total`, or what is left; none at its end.
    fn claim(&self, len: u64, total: u64) -> Option<(u64, u64)> {
        let start = self.next.fetch_add(len, Ordering::Relaxed);
        (start < total).then(|| (start, len.min(total - start)))
    }
}

impl Job<'_> {
    fn goes_on(&self, began: Instant, shared: &Shared) -> bool {
        began.elapsed() < self.budget && !self.stop.is_set() && !shared.broken.load(Ordering::Relaxed)
    }
}

/// Moves block after block with `job.lanes` workers until the file ends, time is up or one fails.
fn blocks<B>(job: &Job<'_>, began: Instant, make: impl Fn() -> Result<B, Fault> + Sync) -> Result<Series, Fault>
where
    B: FnMut(u64, &mut [u8]) -> Result<(Duration, Duration), Fault>,
{
    together(job.lanes, |shared| {
        let mut step = make()?;
        let mut series = Series::default();
        let mut buffer = Aligned::new(LARGEST as usize);
        let mut len = UNIT;
        while job.goes_on(began, shared) {
            let Some((offset, size)) = shared.claim(len, job.total) else { break };
            let (from, to) = step(offset, buffer.part(size as usize))?;
            series.add(from, to, size);
            job.progress.add(size);
            len = plan::next_request(len, to.saturating_sub(from));
        }
        Ok(series)
    })
}

/// Runs `lanes` workers and puts their series together; the first fault ends all.
fn together(lanes: usize, work: impl Fn(&Shared) -> Result<Series, Fault> + Sync) -> Result<Series, Fault> {
    let shared = Shared::default();
    let guarded = || work(&shared).inspect_err(|_| shared.broken.store(true, Ordering::Relaxed));
    thread::scope(|scope| {
        let mut workers = Vec::new();
        for _ in 0..lanes.max(1) {
            match thread::Builder::new().name("storage".to_owned()).spawn_scoped(scope, guarded) {
                Ok(worker) => workers.push(worker),
                Err(error) => {
                    shared.broken.store(true, Ordering::Relaxed);
                    return Err(Fault::Io(error));
                }
            }
        }
        let ends: Vec<Result<Series, Fault>> = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|_| Err(io::Error::other("a worker thread broke off").into())))
            .collect();
        let mut all = Series::default();
        for end in ends {
            all.merge(&end?);
        }
        Ok(all)
    })
}
