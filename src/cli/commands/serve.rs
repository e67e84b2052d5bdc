//! `weaklink serve`.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use crate::cli::args::ServeArgs;
use crate::cli::exit::Exit;
use crate::cli::output::{complain, print, say};
use crate::cli::settings::{serve_code, write_code};
use crate::iperf3::{Iperf3Event, Iperf3Server};
use crate::session::{Agent, AgentEvent, AgentSettings};
use crate::sys::Stop;
use crate::wire::hello::DEFAULT_PORT;

/// Serves until it is interrupted.
pub fn serve(args: &ServeArgs) -> Exit {
    let code = match serve_code() {
        Ok(code) => code,
        Err(error) => {
            complain(&error);
            return Exit::CouldNot;
        }
    };
    let runtime = match super::run::runtime() {
        Ok(runtime) => runtime,
        Err(exit) => return exit,
    };
    let log = Log::start();
    let exit = runtime.block_on(async {
        let settings = AgentSettings { bind: args.bind, port: args.port, dir: args.dir.clone(), code: code.clone() };
        let tell = log.teller();
        let agent = match Agent::bind(settings, move |event| tell(Line::Agent(event))) {
            Ok(agent) => agent,
            Err(error) => {
                complain(&error);
                return Exit::CouldNot;
            }
        };
        let iperf3 = match args.iperf3.map(|port| listen_for_iperf3(args.bind, port)).transpose() {
            Ok(server) => server,
            Err(error) => {
                complain(&error);
                return Exit::CouldNot;
            }
        };
        // Only now: a second agent that fails to bind must not overwrite the first one's code.
        if let Some(path) = &args.code_file
            && let Err(error) = write_code(path, &code)
        {
            complain(&error);
            return Exit::CouldNot;
        }
        let address = agent.address();
        let port = if address.port() == DEFAULT_PORT { String::new() } else { format!(":{}", address.port()) };
        print("On the PC, type:\n");
        for host in addresses(address.ip()) {
            let host = if host.is_ipv6() && !port.is_empty() { format!("[{host}]") } else { host.to_string() };
            print(&format!("  weaklink run {host}{port}\n"));
        }
        print("or, in place of run: throughput (raw rates alone), mtu (the path MTU alone), link (ports and cables alone).\n");
        print(&format!("Pairing code: {code}\n"));
        match &args.dir {
            Some(dir) => {
                let dir = dir.canonicalize().unwrap_or_else(|_| dir.clone());
                print(&format!("Disk tests go to {} and are removed again.\n", dir.display()));
            }
            None => {
                print("No --dir was given: no disk of this host will be tested.\n");
            }
        }
        let stop = Stop::new();
        super::run::stop_on_signal(stop.clone());
        let foreign = iperf3.map(|server| {
            let (stop, tell) = (stop.clone(), log.teller());
            tokio::task::spawn_blocking(move || server.serve(&stop, move |event| tell(Line::Iperf3(event))))
        });
        agent.serve(stop).await;
        if let Some(Ok(Err(error))) = match foreign {
            Some(foreign) => Some(foreign.await),
            None => None,
        } {
            complain(&error);
        }
        Exit::Interrupted
    });
    runtime.shutdown_timeout(Duration::from_secs(2));
    log.end();
    exit
}

/// A server for iperf3 clients at the agent's addresses.
fn listen_for_iperf3(bind: Option<IpAddr>, port: u16) -> Result<Iperf3Server, String> {
    let address = SocketAddr::new(bind.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED)), port);
    Iperf3Server::bind(address).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("--iperf3: {error}; an iperf3 server runs already: end it, or choose another port with --iperf3=PORT")
        }
        _ => format!("--iperf3: {error}"),
    })
}

/// One thing that happened, at the agent or at the server for iperf3 clients.
enum Line {
    Agent(AgentEvent),
    Iperf3(Iperf3Event),
}

/// Prints events on a thread of its own: a terminal that is paused or a pipe that nobody reads must not hold up the agent.
struct Log {
    lines: SyncSender<Line>,
    done: Receiver<()>,
}

impl Log {
    fn start() -> Self {
        let (lines, events) = sync_channel::<Line>(LINES);
        let (ended, done) = sync_channel(1);
        // Without a thread nothing is printed, and the agent serves all the same.
        let _ = std::thread::Builder::new().spawn(move || {
            events.into_iter().for_each(tell);
            let _ = ended.send(());
        });
        Self { lines, done }
    }

    /// What takes an event; when too many wait already, it is dropped.
    fn teller(&self) -> impl Fn(Line) + Send + Sync + 'static {
        let lines = self.lines.clone();
        move |event| drop(lines.try_send(event))
    }

    /// Waits a moment for the last lines.
    fn end(self) {
        drop(self.lines);
        let _ = self.done.recv_timeout(Duration::from_millis(500));
    }
}

/// Lines that may wait to be printed.
const LINES: usize = 64;

fn tell(line: Line) {
    let event = match line {
        Line::Agent(event) => event,
        Line::Iperf3(event @ Iperf3Event::Listening(_)) => {
            print(&format!("{event}\n"));
            return;
        }
        Line::Iperf3(event) => return say(&event.to_string()),
    };
    match event {
        AgentEvent::Listening(address) => {
            print(&format!("listening on {address} (TCP and UDP); end with Ctrl-C\n"));
        }
        AgentEvent::Begin(peer) => say(&format!("{}: a diagnosis begins", peer.ip())),
        AgentEvent::End(peer, Ok(())) => say(&format!("{}: the diagnosis is complete", peer.ip())),
        AgentEvent::End(peer, Err(how)) => say(&format!("{}: the diagnosis ended early: {how}", peer.ip())),
        AgentEvent::Rejected(peer, why) => say(&format!("{}: turned away: {why}", peer.ip())),
        AgentEvent::Note(text) => say(&text),
    }
}

/// The addresses under which a PC may reach us, those of the local network first.
fn addresses(bound: IpAddr) -> Vec<IpAddr> {
    if !bound.is_unspecified() {
        return vec![bound];
    }
    let mut found: Vec<IpAddr> = if_addrs::get_if_addrs()
        .unwrap_or_default()
        .into_iter()
        .filter(|interface| !interface.is_loopback())
        .map(|interface| interface.ip())
        .filter(|address| match address {
            IpAddr::V4(v4) => !v4.is_link_local(),
            IpAddr::V6(v6) => !v6.is_unicast_link_local(),
        })
        .collect();
    found.sort_by_key(|address| (address.is_ipv6(), *address));
    found.dedup();
    found.truncate(6);
    if found.is_empty() { vec![IpAddr::V4(std::net::Ipv4Addr::LOCALHOST)] } else { found }
}
