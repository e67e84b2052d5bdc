//! `weaklink serve`.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use crate::cli::args::ServeArgs;
use crate::cli::exit::Exit;
use crate::cli::output::{complain, print, say};
use crate::cli::settings::{remove_code, serve_code, write_code};
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
        let hosts = names_of_this_host(address.ip());
        for host in &hosts {
            let host = if host.contains(':') && !port.is_empty() { format!("[{host}]") } else { host.clone() };
            print(&format!("  weaklink run {host}{port}\n"));
        }
        if hosts.iter().any(|host| host.ends_with(ONE_CABLE)) {
            print("  with the name or number of the PC's own network interface in place of INTERFACE.\n");
        }
        print("or, in place of run: throughput (raw rates alone), mtu (the path MTU alone), link (ports and cables alone).\n");
        print(&format!("Pairing code: {code}\n"));
        match &args.dir {
            Some(dir) => {
                let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.clone());
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
        if let Some(path) = &args.code_file {
            remove_code(path, &code);
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

/// What stands behind an address that means something on one cable only.
const ONE_CABLE: &str = "%INTERFACE";

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

/// How a PC may write this host's name: its addresses, those of the local network first.
///
/// Addresses of one cable alone stand there where there are no others; those of IPv6 want the PC's interface behind them.
fn names_of_this_host(bound: IpAddr) -> Vec<String> {
    if !bound.is_unspecified() {
        return vec![bound.to_string()];
    }
    let all = if_addrs::get_if_addrs().unwrap_or_default();
    names(all.iter().filter(|it| !it.is_loopback()).map(if_addrs::Interface::ip).collect())
}

fn names(mut found: Vec<IpAddr>) -> Vec<String> {
    let of_one_cable = |address: &IpAddr| match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    if !found.iter().all(of_one_cable) {
        found.retain(|address| !of_one_cable(address));
    }
    found.sort_by_key(|address| (address.is_ipv6(), *address));
    found.dedup();
    found.truncate(6);
    if found.is_empty() {
        return vec![std::net::Ipv4Addr::LOCALHOST.to_string()];
    }
    let scope = |address: &IpAddr| if address.is_ipv6() && of_one_cable(address) { ONE_CABLE } else { "" };
    found.iter().map(|address| format!("{address}{}", scope(address))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_pc_types_is_an_address_of_the_network_or_else_one_of_the_cable_with_its_interface() {
        for (addresses, told) in [
            (vec!["192.0.2.1", "169.254.1.1", "2001:db8::1", "fe80::1", "192.0.2.1"], vec!["192.0.2.1", "2001:db8::1"]),
            (vec!["fe80::1", "fe80::1"], vec!["fe80::1%INTERFACE"]),
            (vec!["fe80::1", "169.254.1.1"], vec!["169.254.1.1", "fe80::1%INTERFACE"]),
            (vec![], vec!["127.0.0.1"]),
        ] {
            assert_eq!(names(addresses.iter().map(|it| it.parse().unwrap()).collect()), told, "{addresses:?}");
        }
    }
}
