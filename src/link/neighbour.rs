//! Hears what the switch says of its port: from a running lldpd, or from the frames themselves. Sends nothing.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::tree::is_interface_name;
use super::{cdp, lacp, lldp, lldpctl};
use crate::model::link::{HostLink, InterfaceKind as Kind, Neighbour};
use crate::model::outcome::Outcome;
use crate::sys::Stop;
use crate::sys::packet::Frames;
use crate::sys::program::{Limits, output};

/// How long listening makes sense: devices speak every 30 s (`msgTxInterval` of IEEE 802.1AB), and a little more.
pub const LISTEN: Duration = Duration::from_secs(35);

/// How often the word to stop is looked at.
const TICK: Duration = Duration::from_millis(100);
/// More ports than this are not listened to; each costs three threads that sleep.
const PORTS: usize = 16;
/// More devices than this are not kept for a port; there is more than one where a simple switch passes the frames on.
const DEVICES: usize = 8;
/// lldpd answers from memory; a longer wait means that it never will. One neighbour takes some 2 KiB of JSON.
const LLDPCTL: Limits = Limits { time: Duration::from_secs(2), bytes: 1 << 20 };

/// The ports of a link that can hear a device at the other end of a cable: what stands at the bottom of the stack, the members
/// of a bond included. Without tunnels, Wi-Fi and the loopback interface, where nobody speaks LLDP.
pub fn ports(link: &HostLink) -> Vec<String> {
    let bottom = |kind| matches!(kind, Kind::Physical | Kind::VirtualMachine | Kind::Veth | Kind::Unknown);
    let listed = link.stack.iter().filter(|it| bottom(it.kind)).map(|it| &it.name);
    let members = link.stack.iter().filter_map(|it| it.bond.as_ref()).flat_map(|bond| &bond.ports).map(|port| &port.name);
    let mut names: Vec<String> = Vec::new();
    for name in listed.chain(members) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// What the devices at the other end of `ports` say of themselves; never empty when measured.
///
/// First lldpd is asked, which needs no privilege where its socket is open to the user and takes no time; then the ports that
/// it does not know are listened to, until LLDP was heard on each, until `time` is over (see [`LISTEN`]) or until `stop`. What
/// CDP and LACP say in that time stands behind it as further neighbours.
/// Skipped when nothing could be asked or listened to, failed when nobody spoke.
pub fn listen(ports: &[String], time: Duration, stop: &Stop) -> Outcome<Vec<Neighbour>> {
    let ports: BTreeSet<&str> = ports.iter().map(String::as_str).filter(|name| is_interface_name(name)).take(PORTS).collect();
    if ports.is_empty() {
        return Outcome::skipped(
            "the way to the other host leads over no port of this machine with a cable, so no switch can be heard",
        );
    }
    let start = Instant::now();
    let mut found = ask_lldpd(&ports, stop);
    let silent: Vec<&str> = ports.iter().copied().filter(|port| !found.iter().any(|it| it.interface == **port)).collect();
    let (mut heard, troubles) = hear_all(&silent, time, stop);
    found.append(&mut heard);
    if !found.is_empty() {
        return Outcome::Measured(found);
    }
    match troubles.first() {
        Some((port, error)) if troubles.len() == silent.len() => why_deaf(port, error),
        _ if stop.is_set() && start.elapsed() < LISTEN => Outcome::skipped(
            "the switch did not speak while this ran (LLDP frames come every 30 s): `weaklink link --lldp` waits for it",
        ),
        _ => Outcome::failed(format!(
            "no LLDP frame came on {} within {} s: the switch does not send any (simple ones cannot, others need it turned on) \
             or sends them less often, or the card keeps them (Intel X710 and E810: ethtool --show-priv-flags, fw-lldp)",
            silent.join(", "),
            start.elapsed().as_secs()
        )),
    }
}

/// Why no port could be listened to.
fn why_deaf(port: &str, error: &io::Error) -> Outcome<Vec<Neighbour>> {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Outcome::skipped(
            "hearing the switch (LLDP) needs the right CAP_NET_RAW: run weaklink as root, or have lldpd running and this user in \
             its group, so that lldpctl tells it",
        ),
        io::ErrorKind::Unsupported => Outcome::skipped(
            "on this operating system weaklink cannot receive LLDP frames itself; with lldpd running, its lldpctl tells it",
        ),
        _ => Outcome::failed(format!("listening for LLDP frames on {port} failed: {error}")),
    }
}

/// One protocol to listen for.
struct Protocol {
    ether_type: u16,
    groups: &'static [[u8; 6]],
    decode: fn(&[u8], &str) -> Option<Neighbour>,
}

const LLDP: Protocol = Protocol { ether_type: lldp::ETHER_TYPE, groups: &lldp::GROUPS, decode: lldp::decode };
const CDP: Protocol = Protocol { ether_type: cdp::ETHER_TYPE, groups: &[cdp::GROUP], decode: cdp::decode };
const LACP: Protocol = Protocol { ether_type: lacp::ETHER_TYPE, groups: &[lacp::GROUP], decode: lacp::decode };

impl Protocol {
    fn open(&self, port: &str) -> io::Result<Frames> {
        Frames::open(port, self.ether_type, self.groups, TICK)
    }

    /// Listens as long as `goes_on`, and tells when the first device was heard.
    fn hear(&self, port: &str, goes_on: &impl Fn() -> bool, first: impl Fn()) -> io::Result<Vec<Neighbour>> {
        let mut frames = self.open(port)?;
        let mut heard: Vec<Neighbour> = Vec::new();
        while goes_on() {
            match frames.receive() {
                Ok(None) => {}
                Ok(Some(frame)) => {
                    let before = heard.len();
                    keep(&mut heard, (self.decode)(frame, port));
                    if before == 0 && !heard.is_empty() {
                        first();
                    }
                }
                Err(_) => {
                    // The port went down, as when a cable is drawn; it may come back in time.
                    std::thread::sleep(TICK);
                    if let Ok(again) = self.open(port) {
                        frames = again;
                    }
                }
            }
        }
        Ok(heard)
    }
}

/// Listens to all ports at once; with the ports that could not be listened to, and why.
///
/// A port is heard when LLDP was: CDP comes only every 60 s and LACP not at all on most ports; they are a word more where they
/// come in time.
fn hear_all(ports: &[&str], time: Duration, stop: &Stop) -> (Vec<Neighbour>, Vec<(String, io::Error)>) {
    let (waiting, began) = (AtomicUsize::new(ports.len()), Instant::now());
    let goes_on = || !stop.is_set() && began.elapsed() < time && waiting.load(Ordering::Relaxed) > 0;
    let one_less = || {
        waiting.fetch_sub(1, Ordering::Relaxed);
    };
    let hear = |port| LLDP.hear(port, &goes_on, one_less).inspect_err(|_| one_less());
    std::thread::scope(|scope| {
        // A system that has no more threads listens at fewer ports.
        let builder = || std::thread::Builder::new().name("listen".into());
        let listen = |port| builder().spawn_scoped(scope, move || hear(port)).inspect_err(|_| one_less());
        let lldp: Vec<_> = ports.iter().map(|port| (*port, listen(*port))).collect();
        let others = ports.iter().flat_map(|port| [(port, &CDP), (port, &LACP)]);
        let others: Vec<_> = others
            .filter_map(|(port, protocol)| builder().spawn_scoped(scope, || protocol.hear(port, &goes_on, || {})).ok())
            .collect();
        let (mut all, mut troubles) = (Vec::new(), Vec::new());
        for (port, thread) in lldp {
            match thread.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(Ok(mut heard))) => all.append(&mut heard),
                Ok(Ok(Err(error))) | Err(error) => troubles.push((port.to_owned(), error)),
                Ok(Err(_)) => troubles.push((port.to_owned(), io::Error::other("the listening thread broke down"))),
            }
        }
        all.extend(others.into_iter().filter_map(|thread| thread.join().ok()?.ok()).flatten());
        (all, troubles)
    })
}

/// Takes what a frame says in, once a device and port; one that goes away (TTL 0) says nothing of the port.
fn keep(heard: &mut Vec<Neighbour>, said: Option<Neighbour>) {
    let Some(said) = said.filter(|it| it.ttl_s != Some(0)) else { return };
    let known = |it: &Neighbour| (&it.chassis, &it.port) == (&said.chassis, &said.port);
    if heard.len() < DEVICES && !heard.iter().any(known) {
        heard.push(said);
    }
}

/// What a running lldpd has heard on `ports`; nothing where there is none, or where it does not talk to us.
fn ask_lldpd(ports: &BTreeSet<&str>, stop: &Stop) -> Vec<Neighbour> {
    // Outside the search path of ordinary users on many systems.
    let programs = ["lldpctl", "/usr/sbin/lldpctl", "/usr/local/sbin/lldpctl"];
    let asked = programs.iter().find_map(|program| output(program, &["-f", "json"], LLDPCTL, stop).ok());
    lldpctl::from_lldpctl(&asked.unwrap_or_default().text)
        .into_iter()
        .filter(|it| ports.contains(it.interface.as_str()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::link::{Bond, BondPort, Interface};

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn interface(name: &str, kind: Kind) -> Interface {
        Interface::unknown(name, kind, "not asked")
    }

    fn link(stack: Vec<Interface>) -> HostLink {
        HostLink::new([192, 0, 2, 1].into(), [192, 0, 2, 2].into(), stack)
    }

    #[test]
    fn the_ports_are_what_has_a_cable() {
        let mut bond = interface("bond0", Kind::Bond);
        let port = |name: &str| BondPort { name: name.to_owned(), ..BondPort::default() };
        bond.bond = Some(Bond { ports: vec![port("eth0"), port("eth1")], ..Bond::default() });
        let vlan = interface("bond0.5", Kind::Vlan);
        for (name, stack, expected) in [
            ("a card", vec![interface("eth0", Kind::Physical)], vec!["eth0"]),
            // A stack that was cut still names the members in the bond.
            ("a VLAN on a bond", vec![vlan, bond, interface("eth0", Kind::Physical)], vec!["eth0", "eth1"]),
            ("a bridge", vec![interface("br0", Kind::Bridge), interface("eth0", Kind::Physical)], vec!["eth0"]),
            ("Wi-Fi", vec![interface("wlan0", Kind::Wifi)], vec![]),
            ("this very host", vec![interface("lo", Kind::Loopback)], vec![]),
        ] {
            assert_eq!(ports(&link(stack)), expected, "{name}");
        }
    }

    #[test]
    fn without_a_port_nothing_is_tried() {
        for ports in [names(&[]), names(&["../../etc", "", "a name that is too long"])] {
            assert!(matches!(listen(&ports, LISTEN, &Stop::new()), Outcome::Skipped(_)), "{ports:?}");
        }
    }

    #[test]
    fn a_port_that_is_not_there_is_no_reason_to_wait() {
        let began = Instant::now();
        let outcome = listen(&names(&["no-such-port"]), LISTEN, &Stop::new());
        assert!(outcome.why().is_some(), "{outcome:?}");
        assert!(began.elapsed() < LISTEN / 2, "{:?}", began.elapsed());
    }

    #[test]
    fn a_device_that_goes_away_is_not_kept_and_no_one_twice() {
        let said = |port: &str, ttl| Neighbour { port: Some(port.to_owned()), ttl_s: ttl, ..Neighbour::default() };
        let mut heard = Vec::new();
        for (port, ttl) in [("1", Some(0)), ("1", Some(120)), ("1", Some(120)), ("2", None)] {
            keep(&mut heard, Some(said(port, ttl)));
        }
        keep(&mut heard, None);
        assert_eq!(heard, [said("1", Some(120)), said("2", None)]);
        (3..100).for_each(|port| keep(&mut heard, Some(said(&port.to_string(), None))));
        assert_eq!(heard.len(), DEVICES);
    }
}
