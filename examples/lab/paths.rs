//! Paths of a known MTU: the lab's switch, and chains of routers, with what keeps large packets back.
//!
//! ```text
//! pc eth0 ── p1 [switch] p2 ── eth0 nas                              10.78.0.1 … 10.78.0.2
//! pc eth0 ─ near [r1] far ─ near [r2] far ─ near [r3] far ─ eth0 nas     leg 1 … leg 4
//! ```
//!
//! Leg k of a chain is 10.78.k.0/24 and fd78:0:0:k::/64: its end towards the PC is 10.78.k.1 and fd78:0:0:k::k:1, the other
//! 10.78.k.2 and fd78:0:0:k::k:2, so that the last 32 bits of each address are its own.

#![expect(unreachable_pub, reason = "shared by a benchmark and tests, which are crates of their own")]

use std::fmt::Write as _;
use std::io;

use crate::middle::{self, Trick};
use crate::net::{Lab, Mtus, Running};

/// The two families.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// What the wires of a path are.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// Two hosts and a switch.
    Switch(Mtus),
    /// Two hosts and a router between each two legs, with the MTU of every leg.
    Chain(&'static [u32]),
    /// A chain with a box in its first leg.
    Boxed(&'static [u32], Trick),
    /// A chain in which leg k is a VXLAN tunnel over a leg of its own with the last MTU: 50 bytes less (20 + 8 + 8 + 14) are left.
    /// Where the kernel has no such device the leg has the smaller MTU itself.
    Tunnelled(&'static [u32], usize, u32),
}

/// What goes wrong on a path.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The named host drops larger packets that leave this interface, and says nothing.
    Hole(&'static str, &'static str, u32),
    /// The switch loses this share of the frames, in permille, in both directions.
    Lossy(u64),
    /// A router never says that a packet is too large; it still says that a packet's time was over.
    NoTooBig(&'static str),
    /// A router says nothing at all of its own.
    Mute(&'static str),
}

/// Who keeps larger packets back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The sender's own interface.
    Own,
    /// The router at this distance, with its word.
    Router(u8),
    /// Nobody says so: the last place that large packets reach, and the next that answers.
    Silence(u8, u8),
}

/// What is true of one direction.
#[derive(Clone, Copy, Debug)]
pub struct Truth {
    /// The largest packet that passes.
    pub mtu: u32,
    /// Why no larger one does.
    pub by: By,
}

/// A path that can be built.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// What it is, in a few words.
    pub name: &'static str,
    /// The wires.
    pub shape: Shape,
    /// What is wrong with it.
    pub faults: &'static [Fault],
    /// From the PC to the NAS.
    pub upload: Truth,
    /// From the NAS to the PC.
    pub download: Truth,
    /// The answers of `weaklink mtu` that are right.
    pub answer: &'static [&'static str],
}

/// A path that was built; everything of it goes when it is dropped.
pub struct Built {
    middle: Option<Running>,
    trick: Option<Trick>,
    /// The network.
    pub lab: Lab,
    legs: usize,
}

const fn own(mtu: u32) -> Truth {
    Truth { mtu, by: By::Own }
}

const fn said(mtu: u32, distance: u8) -> Truth {
    Truth { mtu, by: By::Router(distance) }
}

const fn silent(mtu: u32, reached: u8, missing: u8) -> Truth {
    Truth { mtu, by: By::Silence(reached, missing) }
}

const fn switch(mtu: u32) -> Shape {
    Shape::Switch(Mtus::all(mtu))
}

const FINE: &[&str] = &["none.mtu-consistent"];
const BLACK_HOLE: &[&str] = &["network.mtu-black-hole"];

/// The paths whose MTU does not change and on which nothing else is lost.
pub const PATHS: &[Path] = &[
    Path { name: "clean 1500", shape: switch(1500), faults: &[], upload: own(1500), download: own(1500), answer: FINE },
    Path { name: "clean 9000", shape: switch(9000), faults: &[], upload: own(9000), download: own(9000), answer: FINE },
    Path {
        name: "silent switch, 1500",
        shape: switch(9000),
        faults: &[Fault::Hole("sw", "p2", 1500), Fault::Hole("sw", "p1", 1500)],
        upload: silent(1500, 0, 1),
        download: silent(1500, 0, 1),
        answer: BLACK_HOLE,
    },
    Path {
        name: "silent switch, 1500 up only",
        shape: switch(9000),
        faults: &[Fault::Hole("sw", "p2", 1500)],
        upload: silent(1500, 0, 1),
        download: own(9000),
        answer: BLACK_HOLE,
    },
    Path {
        name: "silent switch, 4082 down only",
        shape: switch(9000),
        faults: &[Fault::Hole("sw", "p1", 4082)],
        upload: own(9000),
        download: silent(4082, 0, 1),
        answer: BLACK_HOLE,
    },
    Path {
        name: "3 routers, leg 3 of 1500 says so",
        shape: Shape::Chain(&[9000, 9000, 1500, 9000]),
        faults: &[],
        upload: said(1500, 2),
        download: said(1500, 1),
        answer: FINE,
    },
    Path {
        name: "3 routers, leg 3 of 1500 is silent",
        shape: Shape::Chain(&[9000, 9000, 1500, 9000]),
        faults: &[Fault::NoTooBig("r2"), Fault::NoTooBig("r3")],
        upload: silent(1500, 2, 3),
        download: silent(1500, 1, 2),
        answer: BLACK_HOLE,
    },
    Path {
        name: "3 routers, leg 3 of 1500, r2 is mute",
        shape: Shape::Chain(&[9000, 9000, 1500, 9000]),
        faults: &[Fault::Mute("r2")],
        upload: silent(1500, 1, 3),
        download: said(1500, 1),
        answer: BLACK_HOLE,
    },
    Path {
        name: "3 routers, silent 4082 up leg 2, 8000 down leg 3",
        shape: Shape::Chain(&[9000, 9000, 9000, 9000]),
        faults: &[Fault::Hole("r1", "far", 4082), Fault::Hole("r3", "near", 8000)],
        upload: silent(4082, 1, 2),
        download: silent(8000, 1, 2),
        answer: BLACK_HOLE,
    },
    Path {
        name: "PPPoE 1492 says so",
        shape: Shape::Chain(&[1500, 1492, 1500]),
        faults: &[],
        upload: said(1492, 1),
        download: said(1492, 1),
        answer: FINE,
    },
    Path {
        name: "VXLAN tunnel 1450 is silent",
        shape: Shape::Tunnelled(&[1500, 1450, 1500], 2, 1500),
        faults: &[Fault::NoTooBig("r1"), Fault::NoTooBig("r2")],
        upload: silent(1450, 1, 2),
        download: silent(1450, 1, 2),
        answer: BLACK_HOLE,
    },
    Path {
        name: "WireGuard's 1420 says so",
        shape: Shape::Chain(&[1500, 1420, 1500]),
        faults: &[],
        upload: said(1420, 1),
        download: said(1420, 1),
        answer: FINE,
    },
];

/// 20 % of the frames are lost in each direction.
pub const LOSSY: Path = Path {
    name: "silent switch, 1500, 20 % lost",
    shape: switch(9000),
    faults: &[Fault::Lossy(200), Fault::Hole("sw", "p2", 1500), Fault::Hole("sw", "p1", 1500)],
    upload: silent(1500, 0, 1),
    download: silent(1500, 0, 1),
    answer: BLACK_HOLE,
};

/// The path carries one packet above 1500, up to 4082 bytes, and then no more.
pub const LOWERED: Path = Path {
    name: "silent 4082 falls to 1500 while probed",
    shape: Shape::Boxed(&[9000], Trick::Lower { from: 4082, to: 1500 }),
    faults: &[],
    upload: silent(1500, 0, 1),
    download: silent(1500, 0, 1),
    answer: BLACK_HOLE,
};

/// A router names an MTU that it has not: its leg carries 1500.
pub const LIAR: Path = Path {
    name: "router that says 8000 of 1500",
    shape: Shape::Boxed(&[9000, 1500], Trick::Lie(8000)),
    faults: &[],
    upload: said(1500, 1),
    download: own(1500),
    answer: &["network.icmp-wrong-mtu"],
};

/// A box clamps the segments of TCP on a clean path.
pub const CLAMPED: Path = Path {
    name: "clean 1500, MSS clamped to 1360",
    shape: Shape::Boxed(&[1500, 1500], Trick::Clamp(1360)),
    faults: &[],
    upload: own(1500),
    download: own(1500),
    answer: &["none.mtu-consistent", "network.mss-clamped"],
};

impl Path {
    /// Builds it.
    pub fn build(&self) -> io::Result<Built> {
        let (lab, legs) = match self.shape {
            Shape::Switch(mtus) => (Lab::new(mtus)?, 0),
            Shape::Chain(legs) => (chain(legs, None, None)?, legs.len()),
            Shape::Boxed(legs, _) => (chain(legs, Some(1), None)?, legs.len()),
            Shape::Tunnelled(legs, leg, outer) => (chain(legs, None, Some((leg, outer)))?, legs.len()),
        };
        let trick = if let Shape::Boxed(_, trick) = self.shape { Some(trick) } else { None };
        let mut built = Built { middle: None, trick, lab, legs };
        built.lab.single_frames()?;
        for fault in self.faults {
            built.add(*fault)?;
        }
        built.refresh()?;
        built.settle()?;
        Ok(built)
    }
}

impl Built {
    /// The NAS's address.
    pub fn nas(&self, family: Family) -> String {
        match (self.legs, family) {
            (0, Family::V4) => crate::net::NAS.to_owned(),
            (0, Family::V6) => "fd78::2".to_owned(),
            (legs, _) => address(legs, 2, family),
        }
    }

    /// The PC's address.
    pub fn pc(&self, family: Family) -> String {
        match (self.legs, family) {
            (0, Family::V4) => "10.78.0.1".to_owned(),
            (0, Family::V6) => "fd78::1".to_owned(),
            _ => address(1, 1, family),
        }
    }

    /// The router at this distance from the sender, by the address from which it answers him.
    pub fn router(&self, upload: bool, distance: u8, family: Family) -> String {
        let distance = usize::from(distance);
        if upload { address(distance, 2, family) } else { address(self.legs + 1 - distance, 1, family) }
    }

    /// How far the other end is, in hops.
    pub fn peer_at(&self) -> u8 {
        self.legs.max(1) as u8
    }

    /// What the hosts' kernels, and the box in the wire, have learned so far is forgotten.
    pub fn refresh(&mut self) -> io::Result<()> {
        if let Some(trick) = self.trick {
            self.middle = None;
            self.middle = Some(middle::start(&self.lab, "sw", trick)?);
        }
        for host in ["pc", "nas"] {
            self.lab.ip(host, "route flush cache")?;
            self.lab.ip(host, "-6 route flush cache")?;
        }
        Ok(())
    }

    /// Waits until small packets pass in both families: a cable that was just plugged in takes up to a second for IPv6.
    fn settle(&self) -> io::Result<()> {
        for family in [Family::V4, Family::V6] {
            let nas = self.nas(family);
            let mut left = 10;
            while let Err(error) = self.lab.inside("pc", "ping", &["-n", "-q", "-c", "1", "-W", "1", &nas]) {
                left -= 1;
                if left == 0 {
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn add(&self, fault: Fault) -> io::Result<()> {
        let lab = &self.lab;
        match fault {
            Fault::Hole(host, interface, mtu) => lab.hole(host, interface, mtu),
            Fault::Lossy(permille) => ["p1", "p2"].iter().try_for_each(|port| lab.lose(port, permille)),
            Fault::NoTooBig(router) => ["near", "far"].iter().try_for_each(|side| lab.filter(router, side, &no_too_big())),
            Fault::Mute(router) => {
                let number: u32 = router.trim_start_matches('r').parse().map_err(io::Error::other)?;
                ["near", "far"].iter().try_for_each(|side| lab.filter(router, side, &mute(number)))
            }
        }
    }
}

/// One end of a leg: 1 is the one towards the PC, 2 the other.
fn address(leg: usize, end: u8, family: Family) -> String {
    match family {
        Family::V4 => format!("10.78.{leg}.{end}"),
        Family::V6 => format!("fd78:0:0:{leg}::{leg}:{end}"),
    }
}

/// The host at the PC's end of a leg with its interface, and the one at the other end.
fn sides(leg: usize, legs: usize) -> [(String, &'static str); 2] {
    let before = if leg == 1 { ("pc".to_owned(), "eth0") } else { (format!("r{}", leg - 1), "far") };
    let after = if leg == legs { ("nas".to_owned(), "eth0") } else { (format!("r{leg}"), "near") };
    [before, after]
}

/// Two hosts with a router between each two legs; a box (`sw`) in one leg, or a leg that is a tunnel over one with this MTU.
fn chain(legs: &[u32], boxed: Option<usize>, tunnelled: Option<(usize, u32)>) -> io::Result<Lab> {
    let count = legs.len();
    let mut hosts: Vec<String> = (1..count).map(|k| format!("r{k}")).collect();
    hosts.extend(["pc", "nas", "sw"].map(str::to_owned));
    let lab = Lab::bare(&hosts.iter().map(String::as_str).collect::<Vec<_>>())?;
    for host in &hosts {
        // Without waiting for proof that nobody else has an address, routers can ask for their neighbours at once; a box makes no
        // packets of its own.
        let six = if host == "sw" { "disable_ipv6=1" } else { "dad_transmits=0" };
        lab.inside(host, "sysctl", &["-qw", &format!("net.ipv6.conf.default.{six}")])?;
    }
    for (leg, mtu) in (1..).zip(legs) {
        let [before, after] = sides(leg, count);
        match tunnelled {
            Some((at, outer)) if at == leg && has_vxlan(&lab) => tunnel(&lab, [&before, &after], outer)?,
            _ if boxed == Some(leg) => {
                lab.cable((&before.0, before.1, *mtu), ("sw", "p1", *mtu))?;
                lab.cable((&after.0, after.1, *mtu), ("sw", "p2", *mtu))?;
            }
            _ => lab.cable((&before.0, before.1, *mtu), (&after.0, after.1, *mtu))?,
        }
        for (end, (host, interface)) in (1..).zip([before, after]) {
            // What is rewritten on the way, or read by a box, must carry its check sum.
            lab.inside(&host, "ethtool", &["-K", interface, "tx", "off"])?;
            lab.ip(&host, &format!("addr add {}/24 dev {interface}", address(leg, end, Family::V4)))?;
            lab.ip(&host, &format!("addr add {}/64 dev {interface} nodad", address(leg, end, Family::V6)))?;
        }
    }
    for k in 1..count {
        lab.inside(&format!("r{k}"), "sysctl", &["-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"])?;
    }
    route(&lab, count)?;
    Ok(lab)
}

/// The way from every host to every leg that it is not on.
fn route(lab: &Lab, legs: usize) -> io::Result<()> {
    for family in [Family::V4, Family::V6] {
        // The host at place k stands between leg k and leg k + 1; the PC is at 0.
        for place in 0..=legs {
            let host = if place == 0 { "pc".to_owned() } else { sides(place, legs)[1].0.clone() };
            for leg in 1..=legs {
                let way = if leg < place {
                    address(place, 1, family)
                } else if leg > place + 1 {
                    address(place + 1, 2, family)
                } else {
                    continue;
                };
                let net = if family == Family::V4 { format!("10.78.{leg}.0/24") } else { format!("fd78:0:0:{leg}::/64") };
                lab.ip(&host, &format!("route add {net} via {way}"))?;
            }
        }
    }
    Ok(())
}

/// Whether the kernel can make a VXLAN device.
fn has_vxlan(lab: &Lab) -> bool {
    let made = lab.ip("sw", "link add probe type vxlan id 1 dstport 4789 remote 192.0.2.1").is_ok();
    made && lab.ip("sw", "link del probe").is_ok()
}

/// Makes a leg a VXLAN tunnel between its two routers.
fn tunnel(lab: &Lab, sides: [&(String, &'static str); 2], outer: u32) -> io::Result<()> {
    lab.cable((&sides[0].0, "outer", outer), (&sides[1].0, "outer", outer))?;
    for ((host, interface), (end, other)) in sides.into_iter().zip([(1, 2), (2, 1)]) {
        lab.ip(host, &format!("addr add 10.79.0.{end}/24 dev outer"))?;
        let from_to = format!("local 10.79.0.{end} remote 10.79.0.{other}");
        lab.ip(host, &format!("link add {interface} type vxlan id 78 dstport 4789 {from_to} dev outer"))?;
        lab.ip(host, &format!("link set {interface} up"))?;
    }
    Ok(())
}

/// A jump on equality, a load of a byte, a half word or a word, and a verdict, in classic BPF.
const EQUAL: u32 = 21;
const ABOVE: u32 = 37;
const BYTE: u32 = 48;
const HALF: u32 = 40;
const WORD: u32 = 32;
const RETURN: u32 = 6;
const PASS: u32 = 0;
const DROP: u32 = 2;

/// A classic BPF program as tc reads it.
fn program(steps: &[[u32; 4]]) -> String {
    let mut text = steps.len().to_string();
    for [code, yes, no, k] in steps {
        let _ = write!(text, ",{code} {yes} {no} {k}");
    }
    text
}

/// Drops ICMP type 3 (destination unreachable, with it fragmentation needed) and ICMPv6 type 2 (packet too big).
fn no_too_big() -> String {
    program(&[
        [HALF, 0, 0, 12],
        [EQUAL, 0, 4, 0x0800],
        [BYTE, 0, 0, 23],
        [EQUAL, 0, 8, 1],
        [BYTE, 0, 0, 34],
        [EQUAL, 5, 6, 3],
        [EQUAL, 0, 5, 0x86dd],
        [BYTE, 0, 0, 20],
        [EQUAL, 0, 3, 58],
        [BYTE, 0, 0, 54],
        [EQUAL, 0, 1, 2],
        [RETURN, 0, 0, DROP],
        [RETURN, 0, 0, PASS],
    ])
}

/// Drops all ICMP, and all error messages of ICMPv6, that router k itself sends.
fn mute(k: u32) -> String {
    let own = |near: u32| 10 << 24 | 78 << 16 | (k + 1 - near) << 8 | (1 + near);
    let own6 = |near: u32| (k + 1 - near) << 16 | (1 + near);
    program(&[
        [HALF, 0, 0, 12],
        [EQUAL, 0, 5, 0x0800],
        [BYTE, 0, 0, 23],
        [EQUAL, 0, 12, 1],
        [WORD, 0, 0, 26],
        [EQUAL, 9, 0, own(1)],
        [EQUAL, 8, 9, own(0)],
        [EQUAL, 0, 8, 0x86dd],
        [BYTE, 0, 0, 20],
        [EQUAL, 0, 6, 58],
        [BYTE, 0, 0, 54],
        // Informational messages begin at 128; neighbours must find each other.
        [ABOVE, 4, 0, 127],
        [WORD, 0, 0, 34],
        [EQUAL, 1, 0, own6(1)],
        [EQUAL, 0, 1, own6(0)],
        [RETURN, 0, 0, DROP],
        [RETURN, 0, 0, PASS],
    ])
}
