//! The control connection: states of one byte, and JSON behind its length, with caps and deadlines.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::fault::Fault;
use super::params::{self, Params, ParamsError};
use super::results::{self, Results, ResultsError};
use super::state::{Cookie, State};
use crate::sys::Stop;

/// The longest that one call waits before it looks at the flag again.
const TICK: Duration = Duration::from_millis(100);

/// The bytes that a message grows by: a length alone makes nobody's memory full.
const PIECE: usize = 16 << 10;

/// Why the control connection cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The other end did not say in time what it had to.
    #[error("the other end did not answer in time")]
    TimedOut,
    /// It began a word and did not end it in time.
    #[error("the other end sent {got} of {of} bytes of {what} and then nothing more")]
    Unfinished {
        /// The bytes that came.
        got: usize,
        /// The bytes that the word has.
        of: usize,
        /// Which word.
        what: &'static str,
    },
    /// We were asked to end.
    #[error("it was interrupted")]
    Stopped,
    /// The other end closed the connection.
    #[error("the other end closed the control connection")]
    Closed,
    /// A byte that is no state.
    #[error("the other end sent {0}, which is no state of iperf3's")]
    UnknownState(u8),
    /// A state that does not belong here.
    #[error("the other end sent {0:?}, which does not belong here")]
    UnexpectedState(State),
    /// A message beyond the cap, or of negative length.
    #[error("the other end announced a message of {announced} bytes; {most} are allowed")]
    TooLarge {
        /// The length that it announced.
        announced: u32,
        /// The cap.
        most: usize,
    },
    /// The server cannot do the test.
    #[error("the server cannot do the test: {}", fault_words(*.0))]
    Refused(Fault),
    /// Parameters that cannot be done.
    #[error(transparent)]
    Params(#[from] ParamsError),
    /// Results that cannot be read.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// The system's word.
    #[error(transparent)]
    Io(#[from] io::Error),
}

fn fault_words(fault: Fault) -> String {
    let system = fault.system_words().map(|words| format!(" ({words})")).unwrap_or_default();
    match fault.meaning() {
        Some(words) => format!("{words}{system}"),
        None => format!("iperf3's error {}{system}", fault.iperf),
    }
}

/// A message with its length in front.
///
/// # Errors
/// More than 4 GiB.
pub fn frame(json: &[u8]) -> io::Result<Vec<u8>> {
    let len = u32::try_from(json.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut framed = Vec::with_capacity(json.len() + 4);
    framed.extend_from_slice(&len.to_be_bytes());
    framed.extend_from_slice(json);
    Ok(framed)
}

/// What a length in front of a message means.
///
/// # Errors
/// [`ControlError::TooLarge`] beyond `most` bytes.
pub fn frame_length(bytes: [u8; 4], most: usize) -> Result<usize, ControlError> {
    let announced = u32::from_be_bytes(bytes);
    usize::try_from(announced).ok().filter(|len| *len <= most).ok_or(ControlError::TooLarge { announced, most })
}

/// A control connection of either end. Every call is bounded in time and ends soon after `stop` is set.
#[derive(Debug)]
pub struct Control {
    stream: TcpStream,
    stop: Stop,
}

impl Control {
    /// Takes a connected stream: sends at once, never waits longer than a fraction of a second in one call.
    ///
    /// # Errors
    /// When the system refuses the timeouts.
    pub fn new(stream: TcpStream, stop: Stop) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        // Not every system has it on every socket, and it costs only time.
        let _ = stream.set_nodelay(true);
        stream.set_read_timeout(Some(TICK))?;
        stream.set_write_timeout(Some(TICK))?;
        Ok(Self { stream, stop })
    }

    /// The connection itself.
    pub const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// The connection back, blocking and without timeouts, such as a data connection whose cookie was read.
    pub fn into_stream(self) -> TcpStream {
        let _ = (self.stream.set_read_timeout(None), self.stream.set_write_timeout(None), self.stream.set_nodelay(false));
        self.stream
    }

    /// Sends bytes as they are, such as a cookie, until `deadline`.
    ///
    /// # Errors
    /// As all calls: stopped, too late, closed, or the system's word.
    pub fn send(&self, bytes: &[u8], deadline: Instant) -> Result<(), ControlError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match (&self.stream).write(rest) {
                Ok(0) => return Err(ControlError::Closed),
                Ok(taken) => rest = rest.get(taken..).unwrap_or_default(),
                Err(error) => self.wait(error, deadline)?,
            }
        }
        Ok(())
    }

    /// Fills `bytes` until `deadline`.
    ///
    /// # Errors
    /// As all calls.
    pub fn receive(&self, bytes: &mut [u8], deadline: Instant) -> Result<(), ControlError> {
        self.fill(bytes, deadline).1
    }

    /// The same in the middle of a word: of `(already there, in all, which)`; one that does not end is told as that.
    fn receive_rest(
        &self,
        bytes: &mut [u8],
        (before, of, what): (usize, usize, &'static str),
        deadline: Instant,
    ) -> Result<(), ControlError> {
        match self.fill(bytes, deadline) {
            (have, Err(ControlError::TimedOut)) if before + have > 0 => {
                Err(ControlError::Unfinished { got: before + have, of, what })
            }
            (_, result) => result,
        }
    }

    /// Fills `bytes` until `deadline`; gives also how far it came.
    fn fill(&self, bytes: &mut [u8], deadline: Instant) -> (usize, Result<(), ControlError>) {
        let mut have = 0;
        while let Some(rest) = bytes.get_mut(have..).filter(|rest| !rest.is_empty()) {
            let waited = match (&self.stream).read(rest) {
                Ok(0) => Err(ControlError::Closed),
                Ok(read) => {
                    have += read;
                    Ok(())
                }
                Err(error) => self.wait(error, deadline),
            };
            if waited.is_err() {
                return (have, waited);
            }
            // Also a peer that sends a byte now and then must come to an end.
            if have < bytes.len() && Instant::now() >= deadline {
                return (have, Err(ControlError::TimedOut));
            }
        }
        (have, Ok(()))
    }

    /// After a call that gave nothing: whether to try again.
    fn wait(&self, error: io::Error, deadline: Instant) -> Result<(), ControlError> {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => {}
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionAborted => {
                return Err(ControlError::Closed);
            }
            _ => return Err(error.into()),
        }
        if self.stop.is_set() {
            Err(ControlError::Stopped)
        } else if Instant::now() >= deadline {
            Err(ControlError::TimedOut)
        } else {
            Ok(())
        }
    }

    /// Sends a state.
    ///
    /// # Errors
    /// As all calls.
    pub fn send_state(&self, state: State, deadline: Instant) -> Result<(), ControlError> {
        self.send(&[state.byte()], deadline)
    }

    /// Sends that the test cannot be done, and why.
    ///
    /// # Errors
    /// As all calls.
    pub fn send_fault(&self, fault: Fault, deadline: Instant) -> Result<(), ControlError> {
        let mut bytes = vec![State::ServerError.byte()];
        bytes.extend_from_slice(&fault.encode());
        self.send(&bytes, deadline)
    }

    /// The next state.
    ///
    /// # Errors
    /// As all calls; a byte that is no state; [`ControlError::Refused`] for a server's fault, which is read with it.
    pub fn receive_state(&self, deadline: Instant) -> Result<State, ControlError> {
        let mut byte = [0; 1];
        self.receive(&mut byte, deadline)?;
        let [byte] = byte;
        match State::from_byte(byte).ok_or(ControlError::UnknownState(byte))? {
            State::ServerError => {
                let mut fault = [0; Fault::LEN];
                self.receive_rest(&mut fault, (1, Fault::LEN + 1, "an error"), deadline)?;
                Err(ControlError::Refused(Fault::decode(fault)))
            }
            state => Ok(state),
        }
    }

    /// The next state if one comes within `patience` (at most 100 ms); none otherwise. For looking while a test runs.
    ///
    /// # Errors
    /// As [`Control::receive_state`].
    pub fn poll_state(&self, patience: Duration) -> Result<Option<State>, ControlError> {
        self.stream.set_read_timeout(Some(patience.clamp(Duration::from_millis(1), TICK)))?;
        let mut byte = [0; 1];
        let read = self.stream.peek(&mut byte);
        self.stream.set_read_timeout(Some(TICK))?;
        match read {
            Ok(0) => Err(ControlError::Closed),
            Ok(_) => self.receive_state(Instant::now() + TICK * 10).map(Some),
            Err(error) => self.wait(error, Instant::now() + TICK).map(|()| None),
        }
    }

    /// The next state, which must be this one.
    ///
    /// # Errors
    /// As [`Control::receive_state`], and for any other state.
    pub fn expect_state(&self, state: State, deadline: Instant) -> Result<(), ControlError> {
        let got = self.receive_state(deadline)?;
        if got == state { Ok(()) } else { Err(ControlError::UnexpectedState(got)) }
    }

    /// Sends a cookie, the first thing on every TCP connection.
    ///
    /// # Errors
    /// As all calls.
    pub fn send_cookie(&self, cookie: &Cookie, deadline: Instant) -> Result<(), ControlError> {
        self.send(cookie.bytes(), deadline)
    }

    /// A message, of at most `most` bytes; memory grows with what has arrived, not with what was announced.
    fn receive_json(&self, most: usize, deadline: Instant) -> Result<Vec<u8>, ControlError> {
        let mut head = [0; 4];
        self.receive_rest(&mut head, (0, 4, "a message's length"), deadline)?;
        let len = frame_length(head, most)?;
        let mut json = Vec::new();
        while json.len() < len {
            let have = json.len();
            json.resize(len.min(have + PIECE), 0);
            let told = (have + head.len(), len + head.len(), "a message");
            self.receive_rest(json.get_mut(have..).unwrap_or_default(), told, deadline)?;
        }
        // C programs may count the NUL at the end.
        while json.last() == Some(&0) {
            json.pop();
        }
        Ok(json)
    }

    /// Sends a client's parameters.
    ///
    /// # Errors
    /// As all calls.
    pub fn send_params(&self, params: &Params, deadline: Instant) -> Result<(), ControlError> {
        self.send(&frame(&params.encode())?, deadline)
    }

    /// A client's parameters.
    ///
    /// # Errors
    /// As all calls; too large; not to be done.
    pub fn receive_params(&self, deadline: Instant) -> Result<Params, ControlError> {
        Ok(Params::decode(&self.receive_json(params::LARGEST, deadline)?)?)
    }

    /// Sends this end's results.
    ///
    /// # Errors
    /// As all calls.
    pub fn send_results(&self, results: &Results, deadline: Instant) -> Result<(), ControlError> {
        self.send(&frame(&results.encode())?, deadline)
    }

    /// A client's results, for a server.
    ///
    /// # Errors
    /// As all calls; too large; not to be read.
    pub fn receive_client_results(&self, deadline: Instant) -> Result<Results, ControlError> {
        Ok(Results::decode(&self.receive_json(results::LARGEST_OF_CLIENT, deadline)?)?)
    }

    /// A server's results, for a client.
    ///
    /// # Errors
    /// As all calls; too large; not to be read.
    pub fn receive_server_results(&self, deadline: Instant) -> Result<Results, ControlError> {
        Ok(Results::decode(&self.receive_json(results::LARGEST_OF_SERVER, deadline)?)?)
    }
}

#[cfg(test)]
#[path = "control/tests.rs"]
mod tests;
