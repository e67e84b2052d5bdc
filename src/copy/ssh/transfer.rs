//! Moving bytes over SFTP: many requests under way for a large file, one after another for small ones, as `sftp` and `scp` do.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use russh_sftp::client::RawSftpSession;
use russh_sftp::client::error::Error as SftpError;
use russh_sftp::protocol::{Data, FileAttributes, OpenFlags, Status, StatusCode};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::copy::series::{Checker, Series};
use crate::pattern::Pattern;
use crate::sys::Progress;
use crate::sys::Stop;

/// The most requests under way, as OpenSSH's own clients have it.
const DEPTH: usize = 64;

/// The most bytes under way: [`DEPTH`] of the largest requests.
const WINDOW_MAX: u64 = DEPTH as u64 * 255 * 1024;

/// The fewest bytes under way: a megabyte fills 1G at a round trip of 8 ms.
const WINDOW_MIN: u64 = 1 << 20;

/// The bytes under way last about this long, so that a slow server is done soon after the time is over.
const WINDOW_TIME: f64 = 0.25;

/// What the server has not synced yet lasts about this long at the rate of the copy.
const DIRTY_TIME: f64 = 0.5;

/// The fewest and most bytes that may be unsynced: below, syncing costs more than writing; above, a copy ends late.
const DIRTY: (u64, u64) = (8 << 20, 128 << 20);

/// How often a wait for the server's disk looks up.
const LOOK: Duration = Duration::from_millis(50);

/// One copy over a session.
pub(super) struct Transfer<'a> {
    /// The session.
    pub(super) session: &'a Arc<RawSftpSession>,
    /// The bytes of one read or write.
    pub(super) request_len: usize,
    /// How long to go on.
    pub(super) budget: Duration,
    /// The word to stop.
    pub(super) stop: &'a Stop,
    /// Counts the bytes.
    pub(super) progress: &'a Progress,
}

/// How large files are opened for writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Onto {
    /// A new file, synced at the end where the server can.
    NewFile {
        /// Whether the server offers to sync.
        can_sync: bool,
    },
    /// A device that is there, such as `/dev/null`.
    Device,
}

impl Transfer<'_> {
    fn over(&self, series: &Series) -> bool {
        self.stop.is_set() || series.elapsed() >= self.budget
    }

    /// The bytes that may be under way at the rate so far.
    fn window(series: &Series) -> u64 {
        let rate = series.bytes() as f64 / series.elapsed().as_secs_f64().max(1e-3);
        ((rate * WINDOW_TIME) as u64).clamp(WINDOW_MIN, WINDOW_MAX)
    }

    /// Writes the content of `seed` until the time or `max` bytes are over. The series counts what the server confirmed.
    pub(super) async fn put_large(
        &self,
        path: &str,
        onto: Onto,
        content: (u64, u64),
        syncer: Option<&Arc<RawSftpSession>>,
    ) -> Result<Series, SftpError> {
        let (seed, max) = content;
        let flags = match onto {
            Onto::NewFile { .. } => OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::EXCLUDE,
            Onto::Device => OpenFlags::WRITE,
        };
        let pattern = Pattern::new(seed);
        let handle = self.session.open(path, flags, FileAttributes::default()).await?.handle;
        let syncing = match syncer {
            Some(session) => Some(Syncing::start(Arc::clone(session), path).await?),
            None => None,
        };
        let mut series = Series::new();
        let mut flight: VecDeque<(u64, JoinHandle<Result<Status, SftpError>>)> = VecDeque::new();
        let (mut sent, mut under_way) = (0u64, 0u64);
        while !self.over(&series) && sent < max {
            let len = (self.request_len as u64).min(max - sent);
            while flight.len() >= DEPTH || (under_way > 0 && under_way + len > Self::window(&series)) {
                under_way -= self.confirmed(&mut flight, &mut series).await?;
            }
            if let Some(syncing) = &syncing {
                syncing.keep_up(&series, self).await?;
            }
            let mut data = vec![0; len as usize];
            pattern.fill(sent, &mut data);
            let (session, handle, offset) = (Arc::clone(self.session), handle.clone(), sent);
            flight.push_back((len, tokio::spawn(async move { session.write(handle, offset, data).await })));
            sent += len;
            under_way += len;
        }
        while !flight.is_empty() {
            self.confirmed(&mut flight, &mut series).await?;
        }
        drop(syncing);
        if onto == (Onto::NewFile { can_sync: true }) {
            self.session.fsync(&handle).await?;
        }
        self.session.close(handle).await?;
        Ok(series)
    }

    /// Waits for the oldest write and counts it.
    async fn confirmed(
        &self,
        flight: &mut VecDeque<(u64, JoinHandle<Result<Status, SftpError>>)>,
        series: &mut Series,
    ) -> Result<u64, SftpError> {
        let Some((len, write)) = flight.pop_front() else { return Ok(0) };
        write.await.map_err(|error| broke(&error))??;
        series.add(len);
        self.progress.add(len);
        Ok(len)
    }

    /// Reads until the time, the file or `max` bytes are over.
    pub(super) async fn get_large(&self, path: &str, max: u64, mut checker: Option<&mut Checker>) -> Result<Series, SftpError> {
        let handle = self.session.open(path, OpenFlags::READ, FileAttributes::default()).await?.handle;
        let mut series = Series::new();
        let mut flight: VecDeque<(u64, JoinHandle<Result<Data, SftpError>>)> = VecDeque::new();
        let (mut asked, mut under_way, mut request) = (0u64, 0u64, self.request_len as u64);
        loop {
            while !self.over(&series) && asked < max && flight.len() < DEPTH {
                let len = request.min(max - asked);
                if under_way > 0 && under_way + len > Self::window(&series) {
                    break;
                }
                let (session, handle, offset) = (Arc::clone(self.session), handle.clone(), asked);
                flight.push_back((len, tokio::spawn(async move { session.read(handle, offset, len as u32).await })));
                asked += len;
                under_way += len;
            }
            let Some((len, read)) = flight.pop_front() else { break };
            let data = match read.await.map_err(|error| broke(&error))? {
                Ok(data) => data.data,
                Err(SftpError::Status(status)) if status.status_code == StatusCode::Eof => break,
                Err(error) => return Err(error),
            };
            under_way -= len;
            if data.is_empty() || data.len() as u64 > len {
                return Err(SftpError::UnexpectedBehavior("a read returned a length that was not asked for".to_owned()));
            }
            if let Some(checker) = checker.as_deref_mut() {
                checker.look(series.bytes(), &data);
            }
            series.add(data.len() as u64);
            self.progress.add(data.len() as u64);
            if (data.len() as u64) < len {
                // This server gives less at once: what was asked behind the gap is asked again, in its measure.
                for (_, read) in flight.drain(..) {
                    let _ = read.await;
                }
                (asked, under_way, request) = (series.bytes(), 0, request.min(data.len() as u64));
            }
        }
        for (_, read) in flight.drain(..) {
            let _ = read.await;
        }
        self.session.close(handle).await?;
        Ok(series)
    }

    /// Writes one small file: open, write, close, each awaited.
    pub(super) async fn put_small(&self, path: String, data: Vec<u8>) -> Result<(), SftpError> {
        let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::EXCLUDE;
        let handle = self.session.open(path, flags, FileAttributes::default()).await?.handle;
        for (index, part) in data.chunks(self.request_len).enumerate() {
            self.session.write(&handle, (index * self.request_len) as u64, part.to_vec()).await?;
        }
        self.session.close(handle).await?;
        Ok(())
    }

    /// Reads one small file of `len` bytes.
    pub(super) async fn get_small(&self, path: String, len: u32) -> Result<Vec<u8>, SftpError> {
        let handle = self.session.open(path, OpenFlags::READ, FileAttributes::default()).await?.handle;
        let mut data = Vec::with_capacity(len as usize);
        while data.len() < len as usize {
            let ask = (len as usize - data.len()).min(self.request_len);
            match self.session.read(&handle, data.len() as u64, ask as u32).await {
                Ok(part) if !part.data.is_empty() => data.extend(part.data),
                Ok(_) => break,
                Err(SftpError::Status(status)) if status.status_code == StatusCode::Eof => break,
                Err(error) => return Err(error),
            }
        }
        self.session.close(handle).await?;
        Ok(data)
    }
}

fn broke(error: &tokio::task::JoinError) -> SftpError {
    SftpError::UnexpectedBehavior(error.to_string())
}

/// Syncs a file over a second session while the first writes it.
///
/// An SFTP server works through the requests of one session one by one, so a sync in the writing session would
/// stop the network while the disk works. Over a second one both go on, as in a server that bounds its dirty
/// data; without it a copy would end in the server's memory and say nothing about its disk.
struct Syncing {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    written: AtomicU64,
    synced: AtomicU64,
    more: Notify,
    done: Notify,
    failed: AtomicBool,
}

impl Syncing {
    async fn start(session: Arc<RawSftpSession>, path: &str) -> Result<Self, SftpError> {
        let handle = session.open(path, OpenFlags::WRITE, FileAttributes::default()).await?.handle;
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            loop {
                theirs.more.notified().await;
                let written = theirs.written.load(Ordering::Relaxed);
                if written == u64::MAX {
                    break;
                }
                if session.fsync(&handle).await.is_err() {
                    theirs.failed.store(true, Ordering::Relaxed);
                    theirs.done.notify_one();
                    break;
                }
                theirs.synced.store(written, Ordering::Relaxed);
                theirs.done.notify_one();
            }
            let _ = session.close(handle).await;
        });
        Ok(Self { shared, task })
    }

    /// Tells how much is written, and waits while too much of it is not synced.
    async fn keep_up(&self, series: &Series, transfer: &Transfer<'_>) -> Result<(), SftpError> {
        let written = series.bytes();
        self.shared.written.store(written, Ordering::Relaxed);
        let dirty = |shared: &Shared| written.saturating_sub(shared.synced.load(Ordering::Relaxed));
        if dirty(&self.shared) >= DIRTY.0 / 2 {
            self.shared.more.notify_one();
        }
        let rate = written as f64 / series.elapsed().as_secs_f64().max(1e-3);
        let most = ((rate * DIRTY_TIME) as u64).clamp(DIRTY.0, DIRTY.1);
        while dirty(&self.shared) > most && !transfer.over(series) {
            if self.shared.failed.load(Ordering::Relaxed) {
                return Err(SftpError::UnexpectedBehavior("the server could not sync the file".to_owned()));
            }
            let _ = tokio::time::timeout(LOOK, self.shared.done.notified()).await;
        }
        Ok(())
    }
}

impl Drop for Syncing {
    fn drop(&mut self) {
        // A sync under way is not broken off: the task ends after it and closes its handle.
        self.shared.written.store(u64::MAX, Ordering::Relaxed);
        self.shared.more.notify_one();
        if self.shared.failed.load(Ordering::Relaxed) {
            self.task.abort();
        }
    }
}
