//! iperf3's own client against our server, over loopback: what its options do, several at once, and what must not bring the
//! server down. Nothing is shaped and no speed is asked for.
//!
//! Needs iperf3. Where it is missing the tests that run it say so and are skipped; where the full suite is demanded
//! (`WEAKLINK_FULL=1`) they fail.

#![expect(clippy::print_stderr, reason = "a skip must be seen")]

#[path = "iperf3_server/hostile.rs"]
mod hostile;
#[path = "iperf3_server/interop.rs"]
mod interop;

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weaklink::iperf3::{Iperf3Event, Iperf3Server};
use weaklink::sys::Stop;

/// The longest that anything here may take; only a hang comes near it.
const LONG: Duration = Duration::from_secs(30);

/// A server on a free port of loopback, and what it told.
struct Serving {
    address: SocketAddr,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
    events: Arc<Mutex<Vec<Iperf3Event>>>,
}

impl Serving {
    fn start() -> Self {
        Self::on("127.0.0.1:0")
    }

    fn on(address: &str) -> Self {
        let server = Iperf3Server::bind(address.parse().unwrap()).unwrap();
        let (address, stop, events) = (server.address(), Stop::new(), Arc::new(Mutex::new(Vec::new())));
        let (of_thread, told) = (stop.clone(), Arc::clone(&events));
        let thread = std::thread::spawn(move || server.serve(&of_thread, move |event| told.lock().unwrap().push(event)).unwrap());
        Self { address, stop, thread: Some(thread), events }
    }

    fn events(&self) -> Vec<Iperf3Event> {
        self.events.lock().unwrap().clone()
    }

    /// Waits for an event.
    fn wait(&self, what: &str, is: impl Fn(&Iperf3Event) -> bool) -> Iperf3Event {
        let begin = Instant::now();
        loop {
            if let Some(event) = self.events().into_iter().find(&is) {
                return event;
            }
            assert!(begin.elapsed() < LONG, "waiting for {what}; so far: {:?}", self.events());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the end of a test that was not finished; gives the reason.
    fn broken(&self) -> String {
        match self.wait("a broken test", |event| matches!(event, Iperf3Event::Broken { .. })) {
            Iperf3Event::Broken { reason, .. } => reason,
            _ => unreachable!(),
        }
    }

    /// Ends the server, which must not take long.
    fn end(&mut self) {
        self.stop.set();
        let begin = Instant::now();
        self.thread.take().unwrap().join().unwrap();
        assert!(begin.elapsed() < Duration::from_secs(10), "the server took {:?} to end", begin.elapsed());
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Whether iperf3 is here; a visible skip, or a failure where the full suite is demanded.
fn has_iperf3() -> bool {
    let there = Command::new("iperf3").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !there {
        let reason = "the comparison needs iperf3 (package iperf3)";
        assert!(std::env::var("WEAKLINK_FULL").as_deref() != Ok("1"), "the full suite is demanded, but {reason}");
        eprintln!("SKIPPED: {reason}");
    }
    there
}

/// iperf3 as a client of `address`, not started.
fn iperf3(address: SocketAddr, args: &str) -> Command {
    let mut command = Command::new("iperf3");
    command.args(["-c", &address.ip().to_string(), "-p", &address.port().to_string()]).args(args.split_whitespace());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}
