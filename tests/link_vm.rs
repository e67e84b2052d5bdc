//! Links and aggregations as a real kernel has them: what weaklink says of them beside what the kernel's own tools say, field by
//! field, and which port of an aggregation each of many random flows leaves by beside what is predicted.
//!
//! The kernel is Debian's, in a virtual machine that QEMU emulates: `tests/vm/setup` makes it from packages, `tests/vm/run` starts
//! it. Where something for it is missing each test says so and is skipped; where the full suite is demanded (`WEAKLINK_FULL=1`)
//! it fails.

#![cfg(all(target_os = "linux", target_arch = "x86_64", not(feature = "portable")))]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a skip must be seen, and a part tells its result by printing")]

#[path = "vm/flows.rs"]
mod flows;
#[path = "vm/port.rs"]
mod port;
#[path = "vm/told.rs"]
mod told;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use weaklink::model::link::{Bond, Duplex, Interface, InterfaceKind};
use weaklink::model::link_event::EventKind;
use weaklink::model::{Document, Outcome};
use weaklink::report::{Format, Style, render};
use weaklink::units::BitRate;

use flows::{Flow, PACKETS, Packets};
use told::Told;

/// The variable that names the part to play inside the virtual machine, as words: the part, then its arguments.
const PART: &str = "WEAKLINK_VM_PART";

/// Longer than any script takes, on a machine that does much else.
const PATIENCE: &str = "600";

/// Programs that setup and run need, and the package of each.
const PROGRAMS: [(&str, &str); 8] = [
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("busybox", "busybox-static"),
    ("ip", "iproute2"),
    ("ethtool", "ethtool"),
    ("gcc", "gcc"),
    ("make", "make"),
    ("xz", "xz-utils"),
    ("apt-get", "apt"),
];

fn vm(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vm").join(name)
}

/// The directory with what a virtual machine needs, made when it is not there; why not, if it cannot be.
fn machine() -> Result<PathBuf, String> {
    for (program, package) in PROGRAMS {
        let found =
            std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).exists()));
        if !found {
            return Err(format!("a virtual machine needs {program} (package {package})"));
        }
    }
    // `target/tmp` is made by cargo for integration tests.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let dir = target.parent().unwrap_or(target).join("vm");
    let began = Instant::now();
    let output = Command::new(vm("setup")).arg(&dir).stdin(Stdio::null()).output().map_err(|error| format!("setup: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last: Vec<&str> = said.lines().rev().take(3).collect();
        return Err(format!("no virtual machine can be made from this system's packages: {}", last.join(" | ")));
    }
    eprintln!("virtual machine: made ready in {:.1} s", began.elapsed().as_secs_f64());
    Ok(dir)
}

/// What a script printed, by the names of its parts.
struct Said(BTreeMap<String, String>);

impl Said {
    /// Starts a machine with these devices and runs a script in it; a visible skip, or a failure where the full suite is demanded.
    fn by(script: &str, devices: &str) -> Option<Self> {
        let dir = match machine() {
            Ok(dir) => dir,
            Err(reason) => {
                assert!(std::env::var("WEAKLINK_FULL").as_deref() != Ok("1"), "the full suite is demanded, but {reason}");
                eprintln!("SKIPPED: {reason}");
                return None;
            }
        };
        let began = Instant::now();
        let mut run = Command::new(vm("run"));
        run.args(["-t", PATIENCE, "-n", devices]).arg(dir).arg(vm(script));
        run.arg(concat!("weaklink=", env!("CARGO_BIN_EXE_weaklink")));
        run.arg(format!("link_vm={}", std::env::current_exe().unwrap().display()));
        let output = run.stdin(Stdio::null()).output().unwrap();
        eprintln!("{script}: {:.1} s", began.elapsed().as_secs_f64());
        let (said, complaints) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{script}: {}\n{said}\n{complaints}", output.status);
        let mut parts: BTreeMap<String, String> = BTreeMap::new();
        let mut name = "";
        for line in said.lines() {
            if let Some(next) = line.strip_prefix("@@@ ") {
                name = next;
            }
            let text = parts.entry(name.to_owned()).or_default();
            if !line.starts_with("@@@ ") {
                text.push_str(line);
                text.push('\n');
            }
        }
        Some(Self(parts))
    }

    fn part(&self, name: &str) -> &str {
        self.0.get(name).unwrap_or_else(|| panic!("the script has no part {name:?}; it has {:?}", self.0.keys()))
    }

    /// A look of weaklink at a host and the tools' words around it.
    fn look(&self, name: &str) -> Look {
        let said = self.part(&format!("{name} weaklink"));
        let report: Document = serde_json::from_str(said).unwrap_or_else(|error| panic!("{name}: {error}: {said:?}"));
        let link = report.measurements.link.measured().and_then(|link| link.pc.measured()).unwrap();
        let part = |part: &str| self.part(&format!("{name} {part}"));
        Look { name: name.to_owned(), stack: link.stack.clone(), told: Told::new(part("told"), part("before"), part("after")) }
    }
}

/// What weaklink and the kernel's tools say of one host at one moment.
struct Look {
    name: String,
    stack: Vec<Interface>,
    told: Told,
}

impl Look {
    fn interface(&self, name: &str) -> &Interface {
        let found = self.stack.iter().find(|interface| interface.name == name);
        found.unwrap_or_else(|| panic!("{}: weaklink knows no {name} but {:?}", self.name, self.names()))
    }

    fn names(&self) -> Vec<&str> {
        self.stack.iter().map(|interface| interface.name.as_str()).collect()
    }

    fn bond(&self) -> &Bond {
        self.interface("bond0").bond.as_ref().unwrap()
    }

    /// Everything that weaklink says, held against the tools; gives how many words were compared.
    fn agrees(&self) -> usize {
        let compared: usize = self.stack.iter().map(|interface| self.told.agrees(interface)).sum();
        eprintln!("{}: {compared} words about {} agree", self.name, self.names().join(", "));
        compared
    }
}

/// No test: the other tests start this program again, inside the virtual machine.
#[test]
fn plays_a_part() {
    let Ok(part) = std::env::var(PART) else { return };
    let words: Vec<&str> = part.split_whitespace().collect();
    match words.as_slice() {
        ["flows", seed, ports, vlans @ ..] => {
            let ports: Vec<String> = ports.split(',').map(str::to_owned).collect();
            let vlans: Vec<u16> = vlans.iter().map(|vlan| vlan.parse().unwrap()).collect();
            for flow in flows::send(&ports, &vlans, seed.parse().unwrap()).unwrap() {
                println!("\nTOLD {}", serde_json::to_string(&flow).unwrap());
            }
        }
        _ => panic!("no such part: {part}"),
    }
}

#[test]
fn aggregations_are_told_as_the_kernel_tells_them() {
    let Some(said) = Said::by("bonds.sh", "") else { return };
    for mode in ["balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb"] {
        let look = said.look(&format!("mode {mode}"));
        assert_eq!(look.names(), ["bond0", "p1", "p2"]);
        assert!(look.agrees() >= 30, "{mode}: too few words");
        let bond = look.bond();
        assert_eq!(bond.mode, mode);
        assert_eq!(bond.ports.iter().filter(|port| port.up == Some(true)).count(), 2, "{mode}: {bond:?}");
        let active = bond.ports.iter().filter(|port| port.active == Some(true)).count();
        assert_eq!(active, if mode == "active-backup" { 1 } else { 2 }, "{mode}: {bond:?}");
        assert_eq!(look.interface("bond0").kind, InterfaceKind::Bond);
        assert_eq!(look.interface("p1").kind, InterfaceKind::Veth);
    }
    // Both ports in step: active, short timeout, aggregated, synchronised, collecting, distributing.
    let healthy = said.look("mode 802.3ad");
    let bond = healthy.bond();
    assert!(bond.ports.iter().all(|port| (port.actor_state, port.partner_state) == (Some(63), Some(63))), "{bond:?}");
    assert_eq!((bond.active_ports, bond.hash_policy.as_deref()), (Some(2), Some("layer3+4")));
    assert!(bond.partner_mac.as_deref().is_some_and(|mac| mac != "00:00:00:00:00:00"), "{bond:?}");

    let dead = said.look("dead partner");
    assert!(dead.agrees() >= 30);
    assert_eq!(dead.bond().partner_mac.as_deref(), Some("00:00:00:00:00:00"));
    assert_eq!(dead.bond().active_ports, Some(1));
    assert_eq!(dead.bond().ports.iter().filter(|port| port.active == Some(true)).count(), 1, "{:?}", dead.bond());

    let vlan = said.look("vlan on bond");
    assert_eq!(vlan.names(), ["bond0", "p1", "p2", "bond0.20"]);
    assert!(vlan.agrees() >= 35);
    assert_eq!(vlan.interface("bond0.20").kind, InterfaceKind::Vlan);
    let out = said.look("cable out");
    assert!(out.agrees() >= 30);
    let port = |name: &str| out.bond().ports.iter().find(|port| port.name == name).unwrap();
    assert_eq!(port("p1").up, Some(false));
    // Once for this, and once more if the far end's bond was made after ours.
    assert!(port("p1").failures >= Some(1), "{:?}", port("p1"));
    assert_eq!((port("p2").up, port("p2").active), (Some(true), Some(true)));
    assert_eq!(out.interface("p1").carrier, Outcome::Measured(false));

    let team = said.look("team");
    assert_eq!(team.names(), ["team0", "p1", "p2"]);
    assert!(team.agrees() >= 25);
    assert_eq!(team.interface("team0").kind, InterfaceKind::Team);

    for (far, port) in [(2, "p1"), (3, "p2")] {
        let document: Document = serde_json::from_str(said.part(&format!("bridge to {far}"))).unwrap();
        let links = document.measurements.link.measured().unwrap();
        let names: Vec<_> = links.pc.measured().unwrap().stack.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["br0", port], "the way to 10.77.0.{far}");
    }
}

/// The flows of a pass and the bond as it was then.
fn flows(said: &Said, name: &str) -> (Bond, [u8; 6], Vec<Flow>) {
    let state = said.part(&format!("{name} state"));
    let (mac, proc) = state.split_once('\n').unwrap();
    let mac: Vec<u8> = mac.trim().split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    let told = said.part(&format!("{name} flows")).lines().filter_map(|line| line.strip_prefix("TOLD "));
    let flows: Vec<Flow> = told.map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(flows.len(), 100, "{name}: every flow is told");
    (weaklink::link::parse_bond(proc), mac.try_into().unwrap(), flows)
}

#[test]
fn every_flow_leaves_by_the_port_that_was_predicted() {
    let Some(said) = Said::by("flows.sh", "") else { return };
    let release = said.part("release").trim();
    for name in [
        "balance-xor layer2",
        "balance-xor layer2+3",
        "balance-xor layer3+4",
        "balance-xor encap2+3",
        "balance-xor vlan+srcmac",
        "802.3ad layer2+3",
        "802.3ad layer3+4",
        "balance-tlb layer3+4",
        "cable out layer3+4",
    ] {
        predicted(&said, name, release);
    }
    random(&said, release);
    others(&said);
}

fn frame(flow: &Flow, source_mac: [u8; 6]) -> weaklink::link::Frame {
    weaklink::link::Frame {
        source_mac,
        next_hop_mac: flow.remote_mac,
        vlan: flow.vlan,
        local: flow.local,
        remote: flow.remote,
        transport: match flow.packets {
            Packets::Fragments => weaklink::link::Transport::WithoutPorts,
            Packets::Tcp | Packets::Udp => weaklink::link::Transport::WithPorts,
        },
    }
}

/// The ports that the hash chooses among.
fn usable(bond: &Bond) -> Vec<String> {
    bond.ports.iter().filter(|port| port.active == Some(true)).map(|port| port.name.clone()).collect()
}

fn predicted(said: &Said, name: &str, release: &str) {
    let (bond, mac, flows) = flows(said, name);
    let (ports, policy) = (usable(&bond), bond.hash_policy.as_deref().unwrap());
    assert!(name.ends_with(policy), "{name}: {policy}");
    let mut used: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for flow in &flows {
        let predicted = weaklink::link::predicted_port(policy, &frame(flow, mac), release, &ports);
        let measured = flow.port();
        *used.entry(measured.unwrap_or("split")).or_default() += 1;
        if predicted.measured().map(String::as_str) != measured {
            wrong.push(format!("{flow:?} was predicted for {predicted:?}"));
        }
    }
    eprintln!("{name}: {} of {} as predicted, {used:?}", flows.len() - wrong.len(), flows.len());
    assert!(wrong.is_empty(), "{name}: {} wrong:\n{}", wrong.len(), wrong.join("\n"));
    // Nothing would be shown if all had gone one way.
    assert_eq!(used.len(), ports.len(), "{name}: {used:?}");
}

/// A policy that takes a number which the kernel draws: it is not predicted, and for the reason that is given.
fn random(said: &Said, release: &str) {
    let (bond, mac, flows) = flows(said, "balance-xor encap3+4");
    for flow in &flows {
        let predicted = weaklink::link::predicted_port("encap3+4", &frame(flow, mac), release, &usable(&bond));
        assert!(matches!(predicted, Outcome::Skipped(_)), "{predicted:?}");
    }
    let connections = flows.iter().filter(|flow| flow.packets == Packets::Tcp);
    assert!(connections.filter(|flow| flow.port().is_none()).count() > 1, "each connection draws its own: {flows:?}");
}

/// Modes that do not hash.
fn others(said: &Said) {
    let (bond, _, backup) = flows(said, "active-backup");
    let active = usable(&bond);
    assert_eq!(active.len(), 1);
    assert!(backup.iter().all(|flow| flow.port() == Some(active[0].as_str())), "{backup:?}");
    let (_, _, broadcast) = flows(said, "broadcast");
    assert!(broadcast.iter().all(|flow| flow.sent.values().all(|packets| *packets >= PACKETS)), "{broadcast:?}");
    let (_, _, robin) = flows(said, "balance-rr");
    for flow in robin {
        // Each port its third, and a frame of the kernel's own between them may shift it by one.
        let most = flow.sent.values().max().unwrap() - flow.sent.values().min().unwrap();
        assert!(most <= 4, "{flow:?}");
    }
}

/// Emulated ports: a speed that somebody made up, and two imitations of real cards.
const DEVICES: &str = "-netdev hubport,id=h0,hubid=0 -device virtio-net-pci,netdev=h0,speed=2500,duplex=full,romfile= \
     -netdev hubport,id=h1,hubid=0 -device e1000e,netdev=h1,romfile= \
     -netdev hubport,id=h2,hubid=0 -device vmxnet3,netdev=h2,romfile=";

#[test]
fn ports_are_told_as_the_kernel_tells_them() {
    let Some(said) = Said::by("nics.sh", DEVICES) else { return };
    let look = said.look("ports");
    assert!(look.agrees() >= 15 * 35, "too few words");
    linked(&look);
    emulated(&look);
    damaged(&said);
    loose(&said);
}

/// A cable that comes loose during a test: the moments stand in the report of each end, by its kernel's log.
fn loose(said: &Said) {
    let report: Document = serde_json::from_str(said.part("loose")).unwrap();
    let links = report.measurements.link.measured().unwrap();
    for (end, port) in [(&links.pc, "lab0"), (&links.nas, "lab1")] {
        let link = end.measured().unwrap();
        let followed = link.log_followed.as_ref().and_then(|followed| followed.measured()).unwrap();
        let events = link.events.measured().unwrap().iter().filter(|event| event.into_run_us.is_some());
        let down: Vec<_> = events.filter(|event| event.kind == EventKind::Down && event.interface == port).collect();
        eprintln!("{port}: {} breaks within {followed}", down.len());
        assert!(down.len() >= 2, "{port}: {:?}", link.events);
        assert!(down.iter().all(|event| event.into_run_us.unwrap() <= *followed && event.before_us.is_none()), "{down:?}");
    }
    let findings = report.findings.iter().filter(|finding| finding.code.to_string() == "network.link-unstable");
    let told: Vec<String> = findings.flat_map(|finding| finding.evidence.clone()).collect();
    for port in ["lab0", "lab1"] {
        let words = format!("the link of {port} went down ");
        assert!(told.iter().any(|told| told.contains(&words) && told.contains("during this run")), "{port}: {told:?}");
    }
    let text = render(&report, Format::Text, &Style::PLAIN);
    assert!(text.contains("The kernel's log during the run") && text.contains("lab1: NIC Link is Down"), "{text}");
}

/// What labnic was told to be.
fn linked(look: &Look) {
    let mbit = BitRate::from_mbit;
    let modes = |name: &str| look.interface(name).modes.measured().unwrap();
    let speed = |name: &str| look.interface(name).speed_bps.measured().map(|fact| fact.value);
    let autoneg = |name: &str| look.interface(name).autoneg.measured().map(|fact| fact.value);
    for number in 0..12 {
        let port = look.interface(&format!("lab{number}"));
        assert_eq!((port.kind, port.driver.measured().unwrap().value.as_str()), (InterfaceKind::Physical, "igc"));
    }
    // The partner offers no more than 1G.
    assert_eq!(speed("lab0"), Some(mbit(1000)));
    assert_eq!(modes("lab0").supported_bps, [10, 100, 1000, 2500].map(mbit));
    assert_eq!(modes("lab0").partner_bps, [10, 100, 1000].map(mbit));
    // Both offer 2.5G.
    assert_eq!((speed("lab2"), modes("lab2").partner_bps.last()), (Some(mbit(100)), Some(&mbit(2500))));
    assert_eq!(look.interface("lab2").duplex.measured().unwrap().value, Duplex::Half);
    // Set by hand.
    assert_eq!((speed("lab4"), autoneg("lab4")), (Some(mbit(100)), Some(false)));
    assert_eq!((&modes("lab4").advertised_bps[..], &modes("lab4").partner_bps[..]), (&[mbit(100)][..], &[][..]));
    // Copper without negotiation.
    assert_eq!((speed("lab6"), autoneg("lab6")), (Some(mbit(10_000)), Some(false)));
    // Up once, then three times out and in again; 231 and 7 damaged frames.
    assert_eq!(look.interface("lab8").carrier_changes, Outcome::Measured(2 + 2 * 3));
    let counters = look.interface("lab8").counters.measured().unwrap();
    assert_eq!((counters.get("rx_crc_errors"), counters.get("rx_frame_errors")), (Some(231), Some(7)));
    // No cable.
    assert_eq!((&look.interface("lab10").carrier, speed("lab10")), (&Outcome::Measured(false), None));
}

/// The speed of an emulated port is no evidence about a cable.
fn emulated(look: &Look) {
    let ports: Vec<&Interface> = look.stack.iter().filter(|port| port.name.starts_with("eth")).collect();
    let mut drivers: Vec<&str> = ports.iter().map(|port| port.driver.measured().unwrap().value.as_str()).collect();
    drivers.sort_unstable();
    assert_eq!(drivers, ["e1000e", "virtio_net", "vmxnet3"]);
    for (port, driver) in ports.iter().zip(drivers) {
        assert_eq!(port.kind, InterfaceKind::VirtualMachine, "{driver}");
        if port.driver.measured().unwrap().value == "virtio_net" {
            assert_eq!(port.speed_bps.measured().unwrap().value, BitRate::from_mbit(2500));
        }
    }
}

/// Frames that a cable damages and a cable that comes loose, while weaklink looks; and a port that linked below what it can.
fn damaged(said: &Said) {
    let report = |part: &str| -> Document { serde_json::from_str(said.part(part)).unwrap() };
    let found = |report: &Document, code: &str| -> String {
        let findings = report.findings.iter().filter(|finding| finding.code.to_string() == code);
        findings.flat_map(|finding| finding.evidence.clone()).collect::<Vec<_>>().join(" ")
    };
    let still = report("ports weaklink");
    let below = found(&still, "network.link-below-capability");
    for (port, named) in [("lab0 ", true), ("lab2 ", true), ("lab4 ", true), ("lab6 ", false), ("lab8 ", false), ("eth", false)] {
        assert_eq!(below.contains(port), named, "{port}: {below}");
    }
    assert!(found(&still, "network.half-duplex").contains("lab2"), "{:?}", still.findings);
    // What was counted before says nothing of the cable as it is.
    assert_eq!(found(&still, "network.cable-errors"), "");

    let watched = report("watched");
    assert!(found(&watched, "network.cable-errors").contains("lab4"), "{:?}", watched.findings);
    assert!(found(&watched, "network.link-unstable").contains("lab8"), "{:?}", watched.findings);

    let loaded = report("throughput");
    let pass = loaded.measurements.throughput.measured().unwrap().upload.best().unwrap();
    let grown = pass.counters_nas.measured().and_then(|counters| counters.get("lab1")?.get("rx_crc_errors"));
    assert!(grown.is_some_and(|grown| grown > 0), "{grown:?}");
    assert!(found(&loaded, "network.cable-errors").contains("lab1"), "{:?}", loaded.findings);
    assert!(found(&loaded, "network.link-below-capability").contains("lab0"), "{:?}", loaded.findings);
}
