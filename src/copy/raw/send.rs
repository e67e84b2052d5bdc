//! The sending end.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::spec::{BUFFER, End, FIRST_BYTE, LOOK, RawEnd, RawSpec, Source, Way, blocked, failed};
use crate::copy::lane::STOPPED;
use crate::copy::place::ReadProof;
use crate::copy::series::Series;
use crate::model::outcome::Outcome;
use crate::pattern::Pattern;
use crate::sys::Progress;
use crate::sys::Stop;
use crate::units::ByteSize;

/// Sends until the budget or the bytes are over, then half-closes.
pub fn send(conn: TcpStream, source: &Source, spec: &RawSpec, stop: &Stop, progress: &Progress) -> Outcome<RawEnd> {
    let way = Way { spec, stop, progress };
    let result = match source {
        Source::Memory => send_memory(&conn, &way),
        Source::File { path } => send_file(&conn, path, &way),
    };
    // A peer that is gone already has nothing to be told.
    let _ = conn.shutdown(Shutdown::Write);
    drop(conn);
    result.map_or_else(|outcome| outcome, Outcome::Measured)
}

/// The sending side of a connection, with its clock.
struct Outgoing<'a> {
    conn: &'a TcpStream,
    way: &'a Way<'a>,
    series: Series,
}

impl<'a> Outgoing<'a> {
    fn new(conn: &'a TcpStream, way: &'a Way<'a>) -> End<Self> {
        if let Err(error) = conn.set_nonblocking(false).and_then(|()| conn.set_write_timeout(Some(LOOK))) {
            return failed("cannot prepare the connection for sending", &error);
        }
        Ok(Self { conn, way, series: Series::new() })
    }

    fn left(&self) -> u64 {
        self.way.spec.max_bytes.0.saturating_sub(self.series.bytes())
    }

    fn over(&self) -> bool {
        self.left() == 0 || self.series.elapsed() >= self.way.spec.budget
    }

    /// Sends `data`, or as much as the time allows; false when the sending is over.
    fn push(&mut self, mut data: &[u8]) -> End<bool> {
        while !data.is_empty() {
            if self.way.stop.is_set() {
                return Err(Outcome::skipped(STOPPED));
            }
            if self.over() {
                return Ok(false);
            }
            match (&*self.conn).write(data) {
                Ok(n) => {
                    self.series.add(n as u64);
                    self.way.progress.add(n as u64);
                    data = data.get(n..).unwrap_or_default();
                }
                Err(error) if blocked(&error) => {}
                // The receiver may close first when the time is over.
                Err(_) if self.over() => return Ok(false),
                Err(error) => {
                    let sent = ByteSize(self.series.bytes());
                    return failed(&format!("the other end broke off the copy after {sent}"), &error);
                }
            }
        }
        Ok(!self.over())
    }

    fn end(self) -> RawEnd {
        let elapsed = self.series.elapsed();
        RawEnd {
            bytes: ByteSize(self.series.bytes()),
            elapsed_us: elapsed.into(),
            bins: self.series.bins(elapsed),
            verified_bytes: Outcome::skipped("the receiver compares the content"),
        }
    }
}

fn send_memory(conn: &TcpStream, way: &Way<'_>) -> End<RawEnd> {
    let pattern = Pattern::new(way.spec.seed);
    let mut out = Outgoing::new(conn, way)?;
    let mut buffer = vec![0; BUFFER];
    loop {
        let len = BUFFER.min(usize::try_from(out.left()).unwrap_or(BUFFER));
        let part = buffer.get_mut(..len).unwrap_or_default();
        pattern.fill(out.series.bytes(), part);
        if len == 0 || !out.push(part)? {
            return Ok(out.end());
        }
    }
}

/// Reads the file chunk by chunk into `full` until its end, `max` bytes, or until nobody takes them any more.
/// The reason is there when the data came from this host's memory.
fn read_file(path: &Path, max: u64, full: &SyncSender<Vec<u8>>, used: &Receiver<Vec<u8>>) -> io::Result<Option<String>> {
    let proof = ReadProof::prepare([path]);
    let file = File::open(path)?;
    let (mut read, mut ahead) = (0u64, 0u64);
    while read < max {
        // The kernel's own reading ahead keeps one small request under way, which leaves a RAID or an SSD idle.
        while ahead < max && ahead < read + AHEAD {
            let _ = crate::sys::file::read_ahead(&file, ahead, AHEAD_STEP.min(max - ahead));
            ahead += AHEAD_STEP;
        }
        let mut chunk = used.try_recv().unwrap_or_default();
        chunk.clear();
        (&file).take((BUFFER as u64).min(max - read)).read_to_end(&mut chunk)?;
        read += chunk.len() as u64;
        if chunk.is_empty() || full.send(chunk).is_err() {
            break;
        }
    }
    Ok(proof.judge(ByteSize(read)))
}

/// How far the disk is asked to read ahead of what is sent, bytes: enough for all members of a small RAID, little of a small memory.
const AHEAD: u64 = 16 << 20;

/// What is asked for at once, bytes.
const AHEAD_STEP: u64 = 2 << 20;

/// Reading and sending go on at the same time, as in a good file server.
fn send_file(conn: &TcpStream, path: &Path, way: &Way<'_>) -> End<RawEnd> {
    // Four chunks hide the pauses of either side; the memory stays at 1.5 MB.
    let (full, chunks) = sync_channel::<Vec<u8>>(4);
    let (back, used) = channel::<Vec<u8>>();
    let (max, path) = (way.spec.max_bytes.0, path.to_owned());
    let name = thread::Builder::new().name("copy-read".to_owned());
    let reader = match name.spawn(move || read_file(&path, max, &full, &used)) {
        Ok(reader) => reader,
        Err(error) => return failed("cannot start a thread for reading", &error),
    };
    let sent = send_chunks(conn, way, &chunks, &back);
    drop(chunks);
    let cached = reading_ended(reader)?;
    let end = sent?;
    match cached {
        Some(reason) => Err(Outcome::failed(reason)),
        None => Ok(end),
    }
}

fn send_chunks(conn: &TcpStream, way: &Way<'_>, chunks: &Receiver<Vec<u8>>, back: &Sender<Vec<u8>>) -> End<RawEnd> {
    let waiting = Instant::now();
    let mut out = None;
    loop {
        match chunks.recv_timeout(LOOK) {
            Ok(chunk) => {
                // The clock starts when the disk has given its first bytes: spinning up is no rate.
                let out = match &mut out {
                    Some(out) => out,
                    None => out.insert(Outgoing::new(conn, way)?),
                };
                if !out.push(&chunk)? {
                    break;
                }
                // The reader has ended already when nobody takes a used chunk.
                let _ = back.send(chunk);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) if way.stop.is_set() => return Err(Outcome::skipped(STOPPED)),
            Err(RecvTimeoutError::Timeout) => match &out {
                Some(out) if out.over() => break,
                None if waiting.elapsed() > FIRST_BYTE => return Err(Outcome::failed(HANGS)),
                _ => {}
            },
        }
    }
    match out {
        Some(out) => Ok(out.end()),
        None => Err(Outcome::failed("the test file is empty: nothing was written before this copy")),
    }
}

const HANGS: &str = "the disk does not answer: reading the test file hangs";

/// Waits for the reading thread, which ends with its next chunk, and takes its word on where the data came from.
fn reading_ended(reader: JoinHandle<io::Result<Option<String>>>) -> End<Option<String>> {
    let deadline = Instant::now() + FIRST_BYTE;
    while !reader.is_finished() {
        if Instant::now() >= deadline {
            return Err(Outcome::failed(HANGS));
        }
        thread::sleep(std::time::Duration::from_millis(1));
    }
    match reader.join() {
        Ok(Ok(cached)) => Ok(cached),
        Ok(Err(error)) => failed("cannot read the test file", &error),
        Err(_) => Err(Outcome::failed("the thread that read the test file broke down")),
    }
}
