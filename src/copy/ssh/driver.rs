//! The SSH lane as a [`LaneDriver`].

use std::time::Duration;

use russh_sftp::client::error::Error as SftpError;
use russh_sftp::protocol::{FileType, StatusCode};
use tokio::runtime::{Builder, Runtime};

use super::connection::{Connection, Late, SshOptions, within};
use super::scratch::RemoteScratch;
use super::target::Target;
use super::transfer::{Onto, Transfer};
use crate::copy::fileset::{CopySpec, LARGE_NAME, SMALL_MAX, small_name, small_offset, small_sizes};
use crate::copy::lane::{LaneDriver, Opened, RungPlan, SERVER_ADDRESS, STOPPED, fact};
use crate::copy::series::{Checker, RateOf, Series, per_file};
use crate::model::copy::{Copied, FileSet, LaneFact, LaneKind, Place};
use crate::model::outcome::Source;
use crate::model::{Direction, Outcome};
use crate::pattern::Pattern;
use crate::sys::{Progress, Stop};
use crate::units::ByteSize;

/// How much longer than its budget a copy may take: requests under way and the last sync.
const ENDING: Duration = Duration::from_secs(10);

/// How long removing our files and a second connection for it may take.
const CLEANING: Duration = Duration::from_secs(10);

/// The share of the server's free space that a test file may take at most: one part in so many.
const FREE_PART: u64 = 4;

/// A copy by SFTP over the system's `ssh`.
pub struct Ssh {
    target: Target,
    options: SshOptions,
    spec: CopySpec,
    runtime: Option<Runtime>,
    link: Option<Link>,
    facts: Vec<LaneFact>,
    max_bytes: u64,
    large: u64,
    small: u32,
}

/// What is there while the lane is open.
struct Link {
    main: Connection,
    /// Syncs while the main one writes.
    syncer: Option<Connection>,
    scratch: Option<RemoteScratch>,
}

/// Why a copy gave no result.
enum Broken {
    /// A request failed while doing this.
    Sftp(&'static str, SftpError),
    /// There is no rate, for the reason within.
    Said(Box<Outcome<Copied>>),
}

fn skipped(reason: impl Into<String>) -> Broken {
    Broken::Said(Box::new(Outcome::skipped(reason)))
}

fn failed(reason: impl Into<String>) -> Broken {
    Broken::Said(Box::new(Outcome::failed(reason)))
}

impl Ssh {
    /// Copies of `spec` to and from `target`.
    pub fn new(target: Target, options: SshOptions, spec: CopySpec) -> Self {
        let max_bytes = spec.max_bytes.0;
        Self { target, options, spec, runtime: None, link: None, facts: Vec::new(), max_bytes, large: 0, small: 0 }
    }

    /// The process id of the `ssh` that moves the data, while it runs.
    pub fn child_pid(&self) -> Option<u32> {
        self.link.as_ref()?.main.pid()
    }

    async fn connect(&mut self, stop: &Stop) -> Result<Link, String> {
        let main = Connection::open(&self.target, &self.options, stop).await?;
        let mut link = Link { main, syncer: None, scratch: None };
        let Some(dir) = self.target.dir.clone() else {
            self.facts.push(fact("stored", "nothing: /dev/null and /dev/zero of the server", Source::Measured));
            return Ok(link);
        };
        link.scratch = Some(RemoteScratch::create(link.main.session(), &self.target, &dir).await?);
        self.facts.push(fact("read_back", "may come from the server's memory", Source::Measured));
        if link.main.can_sync {
            link.syncer = Connection::open(&self.target, &self.options, stop).await.ok();
        }
        let synced = match (&link.syncer, link.main.can_sync) {
            (Some(_), _) => "while writing and at the end",
            (None, true) => "at the end",
            (None, false) => "no: the server does not offer it, so its memory may take the data",
        };
        self.facts.push(fact("synced", synced, Source::Measured));
        if link.main.can_statvfs
            && let Ok(space) = link.main.session().statvfs(dir).await
        {
            let free = space.blocks_avail.saturating_mul(space.fragment_size);
            self.max_bytes = self.max_bytes.min(free / FREE_PART);
        }
        Ok(link)
    }

    fn transfer<'a>(link: &'a Link, direction: Direction, way: &'a Way<'_>) -> Transfer<'a> {
        Transfer {
            session: link.main.session(),
            request_len: if direction == Direction::Upload { link.main.write_len } else { link.main.read_len },
            budget: way.budget,
            stop: way.stop,
            progress: way.progress,
        }
    }

    async fn copy(&mut self, link: &Link, rung: &RungPlan, way: &Way<'_>) -> Result<Copied, Broken> {
        let transfer = Self::transfer(link, rung.direction, way);
        match (&link.scratch, rung.files, rung.direction) {
            (None, FileSet::Small, _) => {
                Err(skipped(format!("small files need a directory on the NAS: give one, as in {}", self.target.with_dir())))
            }
            (None, FileSet::Large, Direction::Upload) => self.put_null(link, &transfer).await,
            (None, FileSet::Large, Direction::Download) => get_zero(link, &transfer).await,
            (Some(scratch), FileSet::Large, Direction::Upload) => self.put_large(link, scratch, &transfer).await,
            (Some(scratch), FileSet::Large, Direction::Download) => self.get_large(scratch, &transfer).await,
            (Some(scratch), FileSet::Small, Direction::Upload) => self.put_small(scratch, &transfer).await,
            (Some(scratch), FileSet::Small, Direction::Download) => self.get_small(scratch, &transfer).await,
        }
    }

    async fn put_null(&self, link: &Link, transfer: &Transfer<'_>) -> Result<Copied, Broken> {
        device(link, "/dev/null").await?;
        let content = (self.spec.seed, u64::MAX);
        let series = transfer.put_large("/dev/null", Onto::Device, content, None).await;
        let series = series.map_err(|error| Broken::Sftp("write to /dev/null", error))?;
        Ok(series.finish(1, RateOf::Steady, Outcome::skipped("nothing was stored that could be compared")))
    }

    async fn put_large(&mut self, link: &Link, scratch: &RemoteScratch, transfer: &Transfer<'_>) -> Result<Copied, Broken> {
        if self.max_bytes == 0 {
            return Err(skipped("the disk of the NAS is full, or no data is allowed: nothing was written"));
        }
        let onto = Onto::NewFile { can_sync: link.main.can_sync };
        let syncer = link.syncer.as_ref().map(Connection::session);
        // A repeat begins anew; the first time there is nothing to remove.
        self.large = 0;
        let _ = transfer.session.remove(scratch.file(LARGE_NAME)).await;
        let series = transfer.put_large(&scratch.file(LARGE_NAME), onto, (self.spec.seed, self.max_bytes), syncer).await;
        let series = series.map_err(|error| Broken::Sftp("write the test file", error))?;
        self.large = series.bytes();
        Ok(series.finish(1, RateOf::Whole, Outcome::skipped("the download compares the content")))
    }

    async fn get_large(&self, scratch: &RemoteScratch, transfer: &Transfer<'_>) -> Result<Copied, Broken> {
        if self.large == 0 {
            return Err(skipped("nothing was uploaded that could be read back"));
        }
        let mut checker = Checker::cheap(self.spec.seed);
        let series = transfer.get_large(&scratch.file(LARGE_NAME), self.large, Some(&mut checker)).await;
        let series = series.map_err(|error| Broken::Sftp("read the test file", error))?;
        if series.bytes() < self.large && series.elapsed() < transfer.budget && !transfer.stop.is_set() {
            let (came, sent) = (ByteSize(series.bytes()), ByteSize(self.large));
            return Err(failed(format!("the file came back short: {came} of {sent}")));
        }
        Ok(series.finish(1, RateOf::Steady, checker.outcome()))
    }

    async fn put_small(&mut self, scratch: &RemoteScratch, transfer: &Transfer<'_>) -> Result<Copied, Broken> {
        let pattern = Pattern::new(self.spec.seed);
        let most = self.max_bytes / u64::from(SMALL_MAX);
        let count = self.spec.small_files.min(u32::try_from(most).unwrap_or(u32::MAX));
        // A repeat begins anew; the file behind the last counted one may be there as well, half written.
        for index in 0..=self.small {
            let _ = transfer.session.remove(scratch.file(&small_name(index))).await;
        }
        self.small = 0;
        let mut series = Series::new();
        for (index, size) in (0..).zip(small_sizes(self.spec.seed, count)) {
            if transfer.stop.is_set() || (series.elapsed() >= transfer.budget && index > 0) {
                break;
            }
            let mut data = vec![0; size as usize];
            pattern.fill(small_offset(index), &mut data);
            let put = transfer.put_small(scratch.file(&small_name(index)), data).await;
            put.map_err(|error| Broken::Sftp("write a small test file", error))?;
            series.add(u64::from(size));
            transfer.progress.add(u64::from(size));
            self.small = index + 1;
        }
        let mut copied = series.finish(self.small, RateOf::Whole, Outcome::skipped("the download compares the content"));
        copied.per_file_us = per_file(copied.elapsed_us.into(), self.small);
        Ok(copied)
    }

    async fn get_small(&self, scratch: &RemoteScratch, transfer: &Transfer<'_>) -> Result<Copied, Broken> {
        if self.small == 0 {
            return Err(skipped("no small files were uploaded that could be read back"));
        }
        let mut checker = Checker::all(self.spec.seed);
        let mut series = Series::new();
        let mut files = 0;
        for (index, size) in (0..).zip(small_sizes(self.spec.seed, self.small)) {
            if transfer.stop.is_set() || (series.elapsed() >= transfer.budget && index > 0) {
                break;
            }
            let got = transfer.get_small(scratch.file(&small_name(index)), size).await;
            let data = got.map_err(|error| Broken::Sftp("read a small test file", error))?;
            if data.len() != size as usize {
                return Err(failed("a small file came back short"));
            }
            checker.look(small_offset(index), &data);
            series.add(u64::from(size));
            transfer.progress.add(u64::from(size));
            files = index + 1;
        }
        let mut copied = series.finish(files, RateOf::Whole, checker.outcome());
        copied.per_file_us = per_file(copied.elapsed_us.into(), files);
        Ok(copied)
    }

    /// Removes our directory; over a new connection when the old one is lost.
    async fn clean(&self, link: &mut Link) {
        let Some(scratch) = link.scratch.take() else { return };
        let stop = Stop::new();
        let removed = within(CLEANING, &stop, scratch.remove(link.main.session())).await;
        if matches!(removed, Ok(Err(ref error)) if !matches!(error, SftpError::Status(_))) {
            let again = async {
                let connection = Connection::open(&self.target, &self.options, &stop).await.ok()?;
                let _ = scratch.remove(connection.session()).await;
                connection.close().await;
                Some(())
            };
            // What stays now is swept at the next start.
            let _ = within(CLEANING, &stop, again).await;
        }
    }
}

/// How one copy goes.
struct Way<'a> {
    budget: Duration,
    stop: &'a Stop,
    progress: &'a Progress,
}

async fn get_zero(link: &Link, transfer: &Transfer<'_>) -> Result<Copied, Broken> {
    device(link, "/dev/zero").await?;
    let series = transfer.get_large("/dev/zero", u64::MAX, None).await;
    let series = series.map_err(|error| Broken::Sftp("read /dev/zero", error))?;
    Ok(series.finish(1, RateOf::Steady, Outcome::skipped("zeros carry no content that could be compared")))
}

/// Makes sure that `path` is a device of the server and no file of somebody.
async fn device(link: &Link, path: &str) -> Result<(), Broken> {
    let none = |why: &str| failed(format!("the server has no {path} {why}: name a directory on it, as in HOST:DIR"));
    match link.main.session().stat(path).await {
        // The type is the upper part of the mode; a character device has 2 there, and a server that tells no mode is believed.
        Ok(attrs) => match attrs.attrs.permissions {
            Some(mode) if mode & 0o170_000 != 0o020_000 => Err(none("that is a device")),
            _ if attrs.attrs.file_type() == FileType::Dir => Err(none("that is a device")),
            _ => Ok(()),
        },
        Err(SftpError::Status(status)) if status.status_code == StatusCode::NoSuchFile => Err(none("for its SFTP users")),
        Err(error) => Err(Broken::Sftp("look at its devices", error)),
    }
}

impl LaneDriver for Ssh {
    fn kind(&self) -> LaneKind {
        LaneKind::Ssh
    }

    fn open(&mut self, stop: &Stop) -> Result<Opened, String> {
        self.close();
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("cannot prepare the SSH connection: {error}"))?;
        let link = runtime.block_on(self.connect(stop));
        self.runtime = Some(runtime);
        self.link = Some(link?);
        Ok(Opened { protocol: Outcome::Measured("ssh".to_owned()), facts: self.facts() })
    }

    fn rungs(&self) -> Vec<RungPlan> {
        RungPlan::with_memory(if self.target.dir.is_some() { Place::Disk } else { Place::Memory })
    }

    fn run(&mut self, rung: &RungPlan, budget: Duration, stop: &Stop, progress: &Progress) -> Outcome<Copied> {
        let (Some(runtime), Some(mut link)) = (self.runtime.take(), self.link.take()) else {
            return Outcome::skipped("the SSH connection is not open");
        };
        let way = Way { budget, stop, progress };
        let outcome = runtime.block_on(async {
            match within(budget + ENDING, stop, self.copy(&link, rung, &way)).await {
                _ if stop.is_set() => Outcome::skipped(STOPPED),
                Ok(Ok(copied)) => Outcome::Measured(copied),
                Ok(Err(Broken::Said(outcome))) => *outcome,
                Ok(Err(Broken::Sftp(act, error))) => Outcome::failed(link.main.explain(&self.target, act, error).await),
                Err(Late::Stopped) => Outcome::skipped(STOPPED),
                Err(Late::TimedOut) => Outcome::failed(format!(
                    "{} does not answer any more: {} s after its time the copy was not done",
                    self.target,
                    ENDING.as_secs()
                )),
            }
        });
        self.runtime = Some(runtime);
        self.link = Some(link);
        outcome
    }

    fn facts(&self) -> Vec<LaneFact> {
        let told = self.link.as_ref().map(|link| {
            let trace = link.main.trace();
            (trace.facts(), trace.server())
        });
        let (negotiated, peer) = told.unwrap_or_default();
        let server = peer.map(|peer| fact(SERVER_ADDRESS, peer, Source::Program));
        negotiated.into_iter().chain(self.facts.iter().cloned()).chain(server).collect()
    }

    fn child_pids(&self) -> Vec<u32> {
        let link = self.link.iter();
        link.flat_map(|link| std::iter::once(&link.main).chain(&link.syncer)).filter_map(Connection::pid).collect()
    }

    fn close(&mut self) {
        let (runtime, link) = (self.runtime.take(), self.link.take());
        let (Some(runtime), Some(mut link)) = (runtime, link) else { return };
        // What was negotiated stays known.
        self.facts.splice(0..0, link.main.trace().facts());
        runtime.block_on(async {
            self.clean(&mut link).await;
            if let Some(syncer) = link.syncer.take() {
                syncer.close().await;
            }
            link.main.close().await;
        });
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        self.close();
    }
}
