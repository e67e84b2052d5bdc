//! Programs of the system: what they print, bounded in time and in size.

use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::Stop;

/// How often the word to stop is looked at.
const TICK: Duration = Duration::from_millis(100);
/// What is read at once.
const PIECE: usize = 16 * 1024;

/// How much of a program's time and output is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest that it runs; it is ended then.
    pub time: Duration,
    /// The most bytes of its output that are kept; the rest is not read.
    pub bytes: usize,
}

/// What a program printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// The text so far; bytes that are no UTF-8 are replaced.
    pub text: String,
    /// Whether it came to its end by itself: where not, the text is what came in time.
    pub whole: bool,
}

/// Runs a program without a shell, in English (`LC_ALL=C`), without input, its errors unread; an error when it cannot be started.
///
/// It is ended and waited for in every case, so nothing stays behind.
pub fn output(program: &str, arguments: &[&str], limits: Limits, stop: &Stop) -> io::Result<Printed> {
    let mut command = Command::new(program);
    command.args(arguments).env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = Reaped(command.spawn()?);
    let mut stdout = child.0.stdout.take().ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe))?;
    // One piece waits at most, so a program that never ends fills no memory.
    let (tell, told) = mpsc::sync_channel::<Vec<u8>>(1);
    std::thread::Builder::new().name("program".to_owned()).spawn(move || {
        let mut piece = vec![0; PIECE];
        while let Ok(read @ 1..) = stdout.read(&mut piece) {
            let Some(bytes) = piece.get(..read) else { break };
            // Whoever asked may have gone.
            if tell.send(bytes.to_vec()).is_err() {
                break;
            }
        }
    })?;
    let (began, mut bytes, mut whole) = (Instant::now(), Vec::new(), false);
    while began.elapsed() < limits.time && !stop.is_set() && bytes.len() < limits.bytes {
        match told.recv_timeout(TICK.min(limits.time)) {
            Ok(piece) => bytes.extend_from_slice(piece.get(..limits.bytes - bytes.len()).unwrap_or(&piece)),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                whole = true;
                break;
            }
        }
    }
    Ok(Printed { text: String::from_utf8_lossy(&bytes).into_owned(), whole })
}

/// A child that is ended and waited for, whatever happens.
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        // One that has ended already is not there to be killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_bounded_in_time_and_output_and_may_be_missing() {
        let limits = Limits { time: Duration::from_secs(1), bytes: 100_000 };
        let run = |program: &str, arguments: &[&str], stop: &Stop| output(program, arguments, limits, stop);
        let began = Instant::now();
        assert_eq!(run("echo", &["said"], &Stop::new()).unwrap(), Printed { text: "said\n".to_owned(), whole: true });
        assert!(run("weaklink-no-such-program", &[], &Stop::new()).is_err());
        assert_eq!(run("sleep", &["600"], &Stop::new()).unwrap(), Printed::default());
        let endless = run("yes", &[], &Stop::new()).unwrap();
        assert_eq!((endless.text.len(), endless.whole), (100_000, false));
        let part = run("sh", &["-c", "echo begun; exec sleep 600"], &Stop::new()).unwrap();
        assert_eq!((part.text.as_str(), part.whole), ("begun\n", false), "what came in time is kept");
        let stop = Stop::new();
        stop.set();
        assert_eq!(run("sleep", &["600"], &stop).unwrap(), Printed::default());
        assert!(began.elapsed() < Duration::from_secs(60));
    }
}
