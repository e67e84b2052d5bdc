//! The receiving end.

use std::io::Read as _;
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use super::spec::{BUFFER, End, FIRST_BYTE, GRACE, LAST_SYNC, LOOK, RawEnd, RawSpec, Sink, Way, blocked, failed};
use crate::copy::lane::STOPPED;
use crate::copy::series::{Checker, Series};
use crate::copy::sink::BoundedFile;
use crate::model::outcome::Outcome;
use crate::sys::Progress;
use crate::sys::Stop;
use crate::units::ByteSize;

/// Receives until the other end half-closes, the budget is over or all bytes are there; not one more is taken.
pub fn receive(conn: TcpStream, sink: &Sink, spec: &RawSpec, stop: &Stop, progress: &Progress) -> Outcome<RawEnd> {
    let way = Way { spec, stop, progress };
    let result = match sink {
        Sink::Memory => take(&conn, &way, |_, _| Ok(())).map(Taken::end),
        Sink::File { path } => receive_file(&conn, path, &way),
    };
    drop(conn);
    result.map_or_else(|outcome| outcome, Outcome::Measured)
}

/// What was received so far.
struct Taken {
    series: Series,
    checker: Checker,
}

impl Taken {
    fn end(self) -> RawEnd {
        let elapsed = self.series.elapsed();
        RawEnd {
            bytes: ByteSize(self.series.bytes()),
            elapsed_us: elapsed.into(),
            bins: self.series.bins(elapsed),
            verified_bytes: self.checker.outcome(),
        }
    }
}

fn receive_file(conn: &TcpStream, path: &Path, way: &Way<'_>) -> End<RawEnd> {
    let mut file = match BoundedFile::create(path) {
        Ok(file) => file,
        Err(error) => return failed("cannot make the test file", &error),
    };
    let give_up = || way.stop.is_set();
    let taken = take(conn, way, |data, deadline| {
        let late = || way.stop.is_set() || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        match file.write(data, &late) {
            Ok(()) => Ok(()),
            Err(_) if way.stop.is_set() => Err(Outcome::skipped(STOPPED)),
            // The data itself is written; only the wait for the disk before the next was cut short by the end of the time.
            Err(error) if blocked(&error) => Ok(()),
            Err(error) => failed("cannot write the test file", &error),
        }
    })?;
    match file.finish(Instant::now() + LAST_SYNC, &give_up) {
        Ok(()) => Ok(taken.end()),
        Err(_) if way.stop.is_set() => Err(Outcome::skipped(STOPPED)),
        Err(error) => failed("cannot bring the test file onto the disk", &error),
    }
}

/// Reads until the end and hands every piece to `put`, with the time at which the taking ends.
fn take(conn: &TcpStream, way: &Way<'_>, mut put: impl FnMut(&[u8], Option<Instant>) -> End<()>) -> End<Taken> {
    if let Err(error) = conn.set_nonblocking(false).and_then(|()| conn.set_read_timeout(Some(LOOK))) {
        return failed("cannot prepare the connection for receiving", &error);
    }
    let waiting = Instant::now();
    let mut buffer = vec![0; BUFFER];
    let mut taken: Option<Taken> = None;
    loop {
        if way.stop.is_set() {
            return Err(Outcome::skipped(STOPPED));
        }
        let late = taken.as_ref().is_some_and(|taken| taken.series.elapsed() >= way.spec.budget + GRACE);
        if late {
            break;
        }
        // Never more than was agreed: the room on the disk was looked at for that many bytes.
        let room = way.spec.max_bytes.0.saturating_sub(taken.as_ref().map_or(0, |taken| taken.series.bytes()));
        let room = BUFFER.min(usize::try_from(room).unwrap_or(BUFFER));
        match (&*conn).read(buffer.get_mut(..room).unwrap_or_default()) {
            Ok(0) => break,
            Ok(n) => {
                let data = buffer.get(..n).unwrap_or_default();
                let taken = taken.get_or_insert_with(|| Taken { series: Series::new(), checker: Checker::cheap(way.spec.seed) });
                let left = (way.spec.budget + GRACE).saturating_sub(taken.series.elapsed());
                taken.checker.look(taken.series.bytes(), data);
                put(data, Instant::now().checked_add(left))?;
                taken.series.add(n as u64);
                way.progress.add(n as u64);
            }
            Err(error) if blocked(&error) => {
                if taken.is_none() && waiting.elapsed() > FIRST_BYTE {
                    return Err(Outcome::failed("the other end sent nothing"));
                }
            }
            Err(error) => {
                let had = ByteSize(taken.map_or(0, |taken| taken.series.bytes()));
                return failed(&format!("the connection broke after {had}"), &error);
            }
        }
    }
    complete(taken, way.spec)
}

/// Whether all that was to come did come: an end before the time is only right when all bytes are there.
fn complete(taken: Option<Taken>, spec: &RawSpec) -> End<Taken> {
    // The sender's clock may start a little before ours.
    const AHEAD: Duration = Duration::from_millis(250);
    let Some(taken) = taken else {
        return Err(Outcome::failed("the other end closed the connection before it sent anything"));
    };
    let (bytes, elapsed) = (taken.series.bytes(), taken.series.elapsed());
    if bytes < spec.max_bytes.0 && elapsed + AHEAD < spec.budget {
        let seconds = elapsed.as_secs_f64();
        return Err(Outcome::failed(format!(
            "the other end stopped after {seconds:.1} s and {}, before the time was over",
            ByteSize(bytes)
        )));
    }
    Ok(taken)
}
