//! Writing a file at the speed of what lies below it.
//!
//! A plain write ends in this host's memory; an average over it is the rate of a memory until the day the
//! memory is full. Here a second thread syncs what was written while the first goes on, and the first waits
//! when too much is not synced yet: so network and disk work at the same time, as with a good file server,
//! and the bytes that are only in memory stay few.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// The first stretch that is synced, bytes: even a USB stick that writes 1 MB/s tells its speed within a second.
const FIRST: u64 = 1 << 20;

/// The longest stretch, bytes: what a RAID of SSDs at 25G needs to keep all its members busy.
const LONGEST: u64 = 64 << 20;

/// How long a sync should last: longer would make the end of a copy late; shorter costs throughput, for each sync also writes the
/// journal (with 200 ms a disk that writes 52 MB/s got 44).
const SYNC_TIME: Duration = Duration::from_millis(500);

/// How often a wait looks at whether to give up.
const LOOK: Duration = Duration::from_millis(50);

/// A file that is being written with bounded dirty data.
#[derive(Debug)]
pub(super) struct BoundedFile {
    file: Arc<File>,
    requests: SyncSender<u64>,
    replies: Receiver<io::Result<Synced>>,
    dirty: u64,
    in_flight: u64,
    stretch: u64,
}

/// A sync that came back.
#[derive(Clone, Copy, Debug)]
struct Synced {
    bytes: u64,
    took: Duration,
}

impl BoundedFile {
    /// Makes the file new; a file of this name must not exist.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = Arc::new(File::options().write(true).create_new(true).open(path)?);
        let (requests, jobs) = sync_channel::<u64>(1);
        let (answers, replies) = sync_channel(2);
        let syncer = Arc::clone(&file);
        thread::Builder::new().name("copy-sync".to_owned()).spawn(move || {
            for bytes in jobs {
                let start = Instant::now();
                let reply = syncer.sync_data().map(|()| Synced { bytes, took: start.elapsed() });
                if answers.send(reply).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { file, requests, replies, dirty: 0, in_flight: 0, stretch: FIRST })
    }

    /// Writes all of `data`. Waits while too much is not synced yet, until `give_up` says so (then `Interrupted`).
    pub(super) fn write(&mut self, data: &[u8], give_up: &dyn Fn() -> bool) -> io::Result<()> {
        (&*self.file).write_all(data)?;
        self.dirty += data.len() as u64;
        loop {
            self.collect(Duration::ZERO)?;
            if self.dirty < self.stretch {
                return Ok(());
            }
            if self.in_flight == 0 {
                self.request()?;
                return Ok(());
            }
            if give_up() {
                return Err(io::Error::new(io::ErrorKind::Interrupted, "the wait for the disk was given up"));
            }
            self.collect(LOOK)?;
        }
    }

    /// Syncs what is left and waits for it until `deadline`, or until `give_up` says so.
    pub(super) fn finish(mut self, deadline: Instant, give_up: &dyn Fn() -> bool) -> io::Result<()> {
        loop {
            if self.in_flight == 0 {
                if self.dirty == 0 {
                    return Ok(());
                }
                self.request()?;
            }
            if give_up() {
                return Err(io::Error::new(io::ErrorKind::Interrupted, "the wait for the disk was given up"));
            }
            if Instant::now() >= deadline {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the disk did not confirm the written data in time"));
            }
            self.collect(LOOK)?;
        }
    }

    fn request(&mut self) -> io::Result<()> {
        self.requests.send(self.dirty).map_err(|_| syncer_ended())?;
        self.in_flight = std::mem::take(&mut self.dirty);
        Ok(())
    }

    /// Takes the reply of the sync under way, if it comes within `wait`.
    fn collect(&mut self, wait: Duration) -> io::Result<()> {
        if self.in_flight == 0 {
            return Ok(());
        }
        match self.replies.recv_timeout(wait) {
            Ok(reply) => {
                let synced = reply?;
                self.in_flight = 0;
                self.stretch = next_stretch(synced.bytes, synced.took);
                Ok(())
            }
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => Err(syncer_ended()),
        }
    }
}

fn syncer_ended() -> io::Error {
    io::Error::other("the thread that syncs the file ended")
}

/// As many bytes as this disk syncs in about [`SYNC_TIME`].
fn next_stretch(bytes: u64, took: Duration) -> u64 {
    let rate = bytes as f64 / took.as_secs_f64().max(1e-6);
    ((rate * SYNC_TIME.as_secs_f64()) as u64).clamp(FIRST, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stretch_follows_the_speed_of_the_disk() {
        for (bytes, ms, stretch) in
            [(FIRST, 1000, FIRST), (100_000_000, 1000, 50_000_000), (FIRST, 0, LONGEST), (0, 10, FIRST), (4 << 30, 500, LONGEST)]
        {
            assert_eq!(next_stretch(bytes, Duration::from_millis(ms)), stretch, "{bytes} in {ms} ms");
        }
    }

    #[test]
    fn all_that_was_written_is_in_the_file_and_none_is_left_unsynced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let mut file = BoundedFile::create(&path).unwrap();
        let data = vec![7u8; 300_000];
        for _ in 0..30 {
            file.write(&data, &|| false).unwrap();
        }
        file.finish(Instant::now() + Duration::from_secs(60), &|| false).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 9_000_000);
        assert!(BoundedFile::create(&path).is_err(), "a file that exists is never overwritten");
    }

    #[test]
    fn a_wait_is_given_up_when_asked() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = BoundedFile::create(&dir.path().join("file")).unwrap();
        file.write(&[1; 1000], &|| false).unwrap();
        let error = file.finish(Instant::now() + Duration::from_secs(60), &|| true).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
    }
}
