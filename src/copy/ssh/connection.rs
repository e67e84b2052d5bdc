//! One running `ssh` and the SFTP session over its standard input and output.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use russh_sftp::client::RawSftpSession;
use russh_sftp::client::error::Error as SftpError;
use russh_sftp::client::rawsession::Limits;
use russh_sftp::extensions;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use super::target::Target;
use super::trace::Trace;
use crate::sys::Stop;

/// How the `ssh` program is run, beside the user's own configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshOptions {
    /// The program: `ssh`, found by the search path.
    pub program: PathBuf,
    /// A configuration file instead of the user's (`ssh -F`).
    pub config: Option<PathBuf>,
    /// Further options as `NAME=VALUE`, as after `ssh -o`.
    pub options: Vec<String>,
}

impl Default for SshOptions {
    fn default() -> Self {
        Self { program: PathBuf::from("ssh"), config: None, options: Vec::new() }
    }
}

/// Options that come before the user's, since ssh takes the first value: they keep the measurement what it claims to be.
const FIRST_OPTIONS: [&str; 3] = [
    // Nobody is there to answer a question.
    "BatchMode=yes",
    // A shared connection would hide the login and its CPU time would be another process's.
    "ControlMaster=no",
    "ControlPath=none",
];

/// Options that the user may override.
const LAST_OPTIONS: [&str; 8] = [
    "ConnectTimeout=10",
    // A cable that is pulled is noticed after 12 s instead of after minutes.
    "ServerAliveInterval=4",
    "ServerAliveCountMax=3",
    "ForwardX11=no",
    "ForwardAgent=no",
    "ClearAllForwardings=yes",
    "PermitLocalCommand=no",
    "RequestTTY=no",
];

/// Connecting, logging in and the greeting of SFTP together. Servers that look up names that do not exist need 10 s and more.
const LOGIN: Duration = Duration::from_secs(40);

/// How long a child that lost its connection may take to say why.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// One read or write, bytes: what OpenSSH allows at most with a packet of 256 KiB.
const LARGEST: u64 = 255 * 1024;

/// One read or write when the server does not tell its limits, bytes: what every SFTP server must take.
const ASSURED: u64 = 32 * 1024;

/// How long a single request may be answered, seconds; the copies have limits of their own that are shorter.
const REQUEST_SECONDS: u64 = 60;

/// A logged-in session.
pub(super) struct Connection {
    child: Child,
    session: Arc<RawSftpSession>,
    trace: Arc<Mutex<Trace>>,
    stderr: JoinHandle<()>,
    /// The login as one types it.
    by_hand: String,
    /// The largest write in bytes.
    pub(super) write_len: usize,
    /// The largest read in bytes.
    pub(super) read_len: usize,
    /// Whether the server can sync a file.
    pub(super) can_sync: bool,
    /// Whether the server tells the free space.
    pub(super) can_statvfs: bool,
}

impl Connection {
    /// Starts `ssh`, logs in and greets. The error is one sentence for the user.
    pub(super) async fn open(target: &Target, options: &SshOptions, stop: &Stop) -> Result<Self, String> {
        let mut child = Command::new(&options.program)
            .args(arguments(target, options))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| not_started(options, &error))?;
        let (Some(input), Some(output), Some(words)) = (child.stdin.take(), child.stdout.take(), child.stderr.take()) else {
            return Err("the ssh program was started without pipes".to_owned());
        };
        let trace = Arc::new(Mutex::new(Trace::default()));
        let stderr = tokio::spawn(listen(words, Arc::clone(&trace)));
        // SFTP packets are read in small pieces: the buffer saves system calls.
        let stream = tokio::io::join(BufReader::with_capacity(LARGEST as usize, output), input);
        let session = RawSftpSession::new(stream);
        session.set_timeout(REQUEST_SECONDS);
        let mut connection = Self {
            child,
            session: Arc::new(session),
            trace,
            stderr,
            by_hand: by_hand(target, options),
            write_len: ASSURED as usize,
            read_len: ASSURED as usize,
            can_sync: false,
            can_statvfs: false,
        };
        match within(LOGIN, stop, connection.greet()).await {
            Ok(Ok(())) => Ok(connection),
            Ok(Err(_)) => Err(connection.failure(target).await),
            Err(Late::Stopped) => Err(super::super::lane::STOPPED.to_owned()),
            Err(Late::TimedOut) => Err(format!("{target} did not finish the SSH login within {} s", LOGIN.as_secs())),
        }
    }

    async fn greet(&mut self) -> Result<(), SftpError> {
        let version = self.session.init().await?;
        let has = |name: &str| version.extensions.contains_key(name);
        self.can_sync = has(extensions::FSYNC);
        self.can_statvfs = has(extensions::STATVFS);
        if has(extensions::LIMITS) {
            let limits = Limits::from(self.session.limits().await?);
            // A write carries its handle, offset and lengths as well: 1 KiB is plenty.
            let packet = limits.packet_len.map_or(LARGEST, |len| len.saturating_sub(1024));
            let of = |len: Option<u64>| len.unwrap_or(ASSURED).min(packet).clamp(1024, LARGEST) as usize;
            self.write_len = of(limits.write_len);
            self.read_len = of(limits.read_len);
        }
        Ok(())
    }

    /// The session, for requests.
    pub(super) fn session(&self) -> &Arc<RawSftpSession> {
        &self.session
    }

    /// What `ssh` said so far.
    pub(super) fn trace(&self) -> Trace {
        self.trace.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The child's process id while it runs.
    pub(super) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Why the connection is lost: waits a moment for the child's last words.
    pub(super) async fn failure(&mut self, target: &Target) -> String {
        let ended = tokio::time::timeout(LAST_WORDS, async {
            let _ = (&mut self.stderr).await;
            let _ = self.child.wait().await;
        });
        if ended.await.is_err() {
            // It lives, so the fault is in what came over it: a greeting of the login shell, for example.
            let _ = self.child.start_kill();
            if self.trace().login.is_some() {
                return format!(
                    "{target} let us in but its SFTP service did not answer properly: does its login script print something?"
                );
            }
        }
        self.trace().failure(target, &self.by_hand)
    }

    /// What an error of a request means: a refusal of the server, or a lost connection.
    pub(super) async fn explain(&mut self, target: &Target, act: &str, error: SftpError) -> String {
        match error {
            SftpError::Status(status) => {
                let message = status.error_message.trim();
                let code = status.status_code.to_string();
                let more = if message.is_empty() || message.eq_ignore_ascii_case(&code) {
                    String::new()
                } else {
                    format!(" ({message})")
                };
                format!("{target} could not {act}: {code}{more}")
            }
            SftpError::Timeout => format!("{target} did not answer within {REQUEST_SECONDS} s when it should {act}"),
            SftpError::Limited(what) => format!("{target} could not {act}: {what}"),
            _ => self.failure(target).await,
        }
    }

    /// Ends the session and the child, and reaps it.
    pub(super) async fn close(mut self) {
        // How long ssh may take to say goodbye on its own.
        const GOODBYE: Duration = Duration::from_millis(500);
        let _ = self.session.close_session();
        if tokio::time::timeout(GOODBYE, self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
    }
}

impl Drop for Connection {
    /// Kills and reaps the child also where no runtime runs any more.
    fn drop(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(1);
        let _ = self.child.start_kill();
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The arguments of `ssh`. What the user typed stands behind `--` or in an argument of its own, never where an option could.
fn arguments(target: &Target, options: &SshOptions) -> Vec<OsString> {
    let mut arguments = vec![OsString::from("-v")];
    if let Some(config) = &options.config {
        arguments.extend([OsString::from("-F"), config.into()]);
    }
    let user = options.options.iter().map(String::as_str);
    for option in FIRST_OPTIONS.into_iter().chain(user).chain(LAST_OPTIONS) {
        arguments.extend(["-o", option].map(OsString::from));
    }
    if let Some(port) = target.port {
        arguments.extend([OsString::from("-p"), port.to_string().into()]);
    }
    if let Some(user) = &target.user {
        arguments.extend(["-l", user].map(OsString::from));
    }
    arguments.extend(["-s", "--", &target.host, "sftp"].map(OsString::from));
    arguments
}

/// The login as one types it: complete, so that it meets the server, the keys and the known hosts that we meet.
fn by_hand(target: &Target, options: &SshOptions) -> String {
    let mut words = vec![options.program.display().to_string()];
    words.extend(options.config.iter().flat_map(|config| ["-F".to_owned(), config.display().to_string()]));
    words.extend(options.options.iter().flat_map(|option| ["-o".to_owned(), option.clone()]));
    words.extend(target.port.iter().flat_map(|port| ["-p".to_owned(), port.to_string()]));
    words.push(target.login());
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word for a shell; double quotes where they are enough, since all systems know them.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%".contains(c) || (cfg!(windows) && c == '\\');
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else if cfg!(windows) || !word.contains(['"', '$', '`', '\\', '!']) {
        format!("\"{word}\"")
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn not_started(options: &SshOptions, error: &io::Error) -> String {
    let program = options.program.display();
    if error.kind() == io::ErrorKind::NotFound {
        format!("there is no {program} program on this PC: install the OpenSSH client")
    } else {
        format!("{program} cannot be started: {error}")
    }
}

/// Reads what the child says, line by line, in bounded memory.
async fn listen(words: impl AsyncRead + Unpin, trace: Arc<Mutex<Trace>>) {
    /// The longest line that is taken as one, bytes.
    const LINE: u64 = 8192;
    let mut words = BufReader::new(words);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut words).take(LINE).read_until(b'\n', &mut line).await {
            Ok(n) if n > 0 => trace.lock().unwrap_or_else(PoisonError::into_inner).line(&String::from_utf8_lossy(&line)),
            _ => return,
        }
    }
}

/// Why a wait was broken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// The user stopped the run.
    Stopped,
    /// The time was over.
    TimedOut,
}

/// Waits for `work`, not longer than `longest` and not after a stop.
pub(super) async fn within<T>(longest: Duration, stop: &Stop, work: impl Future<Output = T>) -> Result<T, Late> {
    let stopped = async {
        let mut look = tokio::time::interval(Duration::from_millis(50));
        while !stop.is_set() {
            look.tick().await;
        }
    };
    tokio::select! {
        biased;
        () = stopped => Err(Late::Stopped),
        done = work => Ok(done),
        () = tokio::time::sleep(longest) => Err(Late::TimedOut),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(target: &str, options: &SshOptions) -> Vec<String> {
        let target: Target = target.parse().unwrap();
        arguments(&target, options).into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn the_arguments_keep_the_user_s_words_out_of_the_way_of_options() {
        let options = SshOptions {
            config: Some("my conf".into()),
            options: vec!["BatchMode=no".to_owned(), "Port=7".to_owned()],
            ..SshOptions::default()
        };
        let words = words("ssh://me@[::1]:2222/dir", &options);
        assert_eq!(words[..3], ["-v", "-F", "my conf"]);
        assert_eq!(words[words.len() - 8..], ["-p", "2222", "-l", "me", "-s", "--", "::1", "sftp"]);
        let at = |word: &str| words.iter().position(|w| w == word).unwrap();
        assert!(at("BatchMode=yes") < at("BatchMode=no"), "ssh takes the first value");
        assert!(at("Port=7") < at("ConnectTimeout=10"));
    }

    #[test]
    fn the_command_to_type_has_all_that_was_given() {
        let options = SshOptions {
            config: Some("my conf".into()),
            options: vec!["Ciphers=a,b@c".to_owned(), "ProxyCommand=x $y".to_owned()],
            ..SshOptions::default()
        };
        let with = |text: &str, options: &SshOptions| by_hand(&text.parse().unwrap(), options);
        assert_eq!(
            with("ssh://me@nas:2222/dir", &options),
            "ssh -F \"my conf\" -o Ciphers=a,b@c -o 'ProxyCommand=x $y' -p 2222 me@nas"
        );
        assert_eq!(with("nas", &SshOptions::default()), "ssh nas");
    }

    #[test]
    fn a_missing_program_is_said_so() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let options = SshOptions { program: "/nowhere/ssh".into(), ..SshOptions::default() };
        let target = "nas".parse().unwrap();
        let result = runtime.block_on(Connection::open(&target, &options, &Stop::new()));
        assert!(result.err().is_some_and(|why| why.contains("install the OpenSSH client")));
    }
}
