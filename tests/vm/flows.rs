//! Random flows over an aggregation, and the port that each of them left by. The first half works inside the virtual machine.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};
use socket2::{Domain, Socket, Type};

/// Flows of each pass.
const FLOWS: usize = 100;

/// Packets of each flow. Whatever else leaves a port meanwhile (an LACP frame a second, a report of a multicast group) is less.
pub(super) const PACKETS: u64 = 16;

/// Neighbours of each network and family: several, for `layer2` looks at their hardware addresses.
const NEIGHBOURS: u8 = 16;

/// What the packets of a flow are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Packets {
    /// First packets of a TCP connection.
    Tcp,
    /// UDP datagrams of one packet each.
    Udp,
    /// UDP datagrams of two fragments each; their ports do not count.
    Fragments,
}

/// One flow, and how many packets each port of the aggregation sent meanwhile.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Flow {
    /// The VLAN on the aggregation that it goes through.
    pub(super) vlan: Option<u16>,
    /// What its packets are.
    pub(super) packets: Packets,
    /// Our end.
    pub(super) local: SocketAddr,
    /// The other end.
    pub(super) remote: SocketAddr,
    /// The hardware address of the next hop.
    pub(super) remote_mac: [u8; 6],
    /// Packets by port.
    pub(super) sent: BTreeMap<String, u64>,
}

impl Flow {
    /// The only port that sent all packets; none when the flow was split, or copied.
    pub(super) fn port(&self) -> Option<&str> {
        let mut carried = self.sent.iter().filter(|(_, packets)| **packets >= PACKETS);
        let (port, _) = carried.next()?;
        let split = carried.next().is_some();
        (!split).then_some(port.as_str())
    }
}

/// Numbers that look random and are the same each time (xorshift of 64 bits, Marsaglia 2003).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 16) % end
    }
}

/// One network on the aggregation, or on a VLAN of it: neighbours that nobody has to be, and any address of ours.
struct Network {
    number: u8,
    vlan: Option<u16>,
    neighbours: Vec<(IpAddr, [u8; 6])>,
}

impl Network {
    fn new(number: u8, vlan: Option<u16>, numbers: &mut Numbers) -> Self {
        let mut neighbours = Vec::new();
        for host in 1..=NEIGHBOURS {
            let mut mac = || [2, 0, 0, numbers.next() as u8, numbers.next() as u8, (numbers.next() >> 20) as u8];
            neighbours.push((IpAddr::V4(Ipv4Addr::new(10, 100 + number, 0, host)), mac()));
            let v6 = Ipv6Addr::new(0xfd66, number.into(), 0, 0, 0, 0, 0, host.into());
            neighbours.push((IpAddr::V6(v6), mac()));
        }
        Self { number, vlan, neighbours }
    }

    /// Lines for `ip -batch`.
    fn commands(&self) -> Vec<String> {
        let n = self.number;
        let device = self.vlan.map_or_else(|| "bond0".to_owned(), |vlan| format!("bond0.{vlan}"));
        let mut lines = vec![
            format!("route add 10.{}.0.0/16 dev {device}", 100 + n),
            format!("route add fd66:{n:x}::/64 dev {device}"),
            // Every address of it is ours.
            format!("route add local 10.{}.0.0/16 dev lo", 200 + n),
        ];
        for (address, mac) in &self.neighbours {
            let mac = mac.map(|byte| format!("{byte:02x}")).join(":");
            lines.push(format!("neigh add {address} lladdr {mac} dev {device} nud permanent"));
        }
        lines
    }

    fn local(&self, v6: bool, numbers: &mut Numbers) -> IpAddr {
        let mut part = || numbers.next() as u16;
        if v6 {
            return Ipv6Addr::new(0xfd77, self.number.into(), 0, 0, part(), part(), part(), part()).into();
        }
        let [high, low] = part().to_be_bytes();
        Ipv4Addr::new(10, 200 + self.number, high, low.clamp(1, 254)).into()
    }
}

/// Sends random flows over `bond0` and VLANs on it, and gives what its `ports` sent of each.
pub(super) fn send(ports: &[String], vlans: &[u16], seed: u64) -> io::Result<Vec<Flow>> {
    let mut numbers = Numbers(seed | 1 << 40);
    let all = [None].into_iter().chain(vlans.iter().copied().map(Some));
    let networks: Vec<Network> = (0..).zip(all).map(|(number, vlan)| Network::new(number, vlan, &mut numbers)).collect();
    // An address of ours that no interface has: for IPv4 the local route is enough.
    std::fs::write("/proc/sys/net/ipv6/ip_nonlocal_bind", "1")?;
    batch(&networks.iter().flat_map(Network::commands).collect::<Vec<_>>())?;
    (0..FLOWS).map(|_| one(&networks, ports, &mut numbers)).collect()
}

fn batch(lines: &[String]) -> io::Result<()> {
    let mut ip = Command::new("ip").args(["-batch", "-"]).stdin(Stdio::piped()).spawn()?;
    if let Some(mut input) = ip.stdin.take() {
        input.write_all((lines.join("\n") + "\n").as_bytes())?;
    }
    let status = ip.wait()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("ip -batch: {status}"))) }
}

fn counted(ports: &[String]) -> io::Result<Vec<u64>> {
    let read = |port: &String| std::fs::read_to_string(format!("/sys/class/net/{port}/statistics/tx_packets"));
    ports.iter().map(|port| read(port)?.trim().parse().map_err(io::Error::other)).collect()
}

fn one(networks: &[Network], ports: &[String], numbers: &mut Numbers) -> io::Result<Flow> {
    let network = &networks[numbers.below(networks.len() as u64) as usize];
    let (address, remote_mac) = network.neighbours[numbers.below(network.neighbours.len() as u64) as usize];
    let mut port = || 1024 + numbers.below(64512) as u16;
    let (local_port, remote_port) = (port(), port());
    let local = SocketAddr::new(network.local(address.is_ipv6(), numbers), local_port);
    let remote = SocketAddr::new(address, remote_port);
    let packets = [Packets::Tcp, Packets::Udp, Packets::Tcp, Packets::Udp, Packets::Fragments][numbers.below(5) as usize];
    let before = counted(ports)?;
    match packets {
        Packets::Tcp => begin_connections(local, remote)?,
        Packets::Udp => send_datagrams(local, remote, 64)?,
        Packets::Fragments => send_datagrams(local, remote, 2000)?,
    }
    let after = counted(ports)?;
    let sent = ports.iter().cloned().zip(before.iter().zip(&after).map(|(before, after)| after - before)).collect();
    Ok(Flow { vlan: network.vlan, packets, local, remote, remote_mac, sent })
}

fn send_datagrams(local: SocketAddr, remote: SocketAddr, bytes: usize) -> io::Result<()> {
    let socket = UdpSocket::bind(local)?;
    for _ in 0..PACKETS {
        socket.send_to(&vec![0; bytes], remote)?;
    }
    Ok(())
}

/// The first packet of a connection that nobody answers, again and again.
fn begin_connections(local: SocketAddr, remote: SocketAddr) -> io::Result<()> {
    for _ in 0..PACKETS {
        let socket = Socket::new(Domain::for_address(local), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&local.into())?;
        match socket.connect(&remote.into()) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock && error.raw_os_error() != Some(EINPROGRESS) => {
                return Err(error);
            }
            _ => {}
        }
    }
    Ok(())
}

/// `EINPROGRESS` of Linux: std has no stable name for it.
const EINPROGRESS: i32 = 115;
