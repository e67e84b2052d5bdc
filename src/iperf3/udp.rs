//! iperf3's datagrams: what opens a stream, what each one carries, how arrivals are counted, and the loops.
//!
//! A datagram begins with the sender's time (seconds and microseconds, 32 bits each, of any clock: only differences count) and a counter
//! that starts at 1 (32 bits, or 64 where the client asked for them); all of it big-endian. The rest is content.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::pace::Pace;
use super::socket::{Ask, bind};
use super::stream::{CALL_WAIT, Count, LoopEnd, Shared, Way};
use super::tcp::is_wait;
use crate::sys;

/// The smallest payload that iperf3 allows: room for the longer header.
pub const LEAST_LEN: usize = 16;

/// The largest payload of a datagram over IPv4 (65535 − 20 − 8), and the limit that iperf3 has.
pub const MOST_LEN: usize = 65_507;

/// The receive buffer that is asked for where nobody asks for another: 20 ms at 1 Gbit/s, so that a late thread loses nothing. The
/// kernel grants up to `net.core.rmem_max`.
const RECEIVE_BUFFER: usize = 2 << 20;

/// How long a full queue of this host is given before the next try.
const QUEUE_WAIT: Duration = Duration::from_micros(100);

/// What a client sends first on a stream's socket, as a number in its own byte order: today's and that of versions before 3.11.
const CONNECT: u32 = 0x3637_3839;
const OLD_CONNECT: u32 = 123_456_789;

/// What a server answers: today's and that of old versions.
const REPLY: u32 = 0x3938_3736;
const OLD_REPLY: u32 = 987_654_321;

/// The datagram that opens a stream.
///
/// The other end compares numbers in its own byte order; nearly all hosts are little-endian, and the others do not check it.
pub const fn connect_datagram() -> [u8; 4] {
    CONNECT.to_le_bytes()
}

/// What to answer to the first datagram of a stream, in the client's byte order; none when it opens nothing.
pub fn reply_to(datagram: &[u8]) -> Option<[u8; 4]> {
    let word: [u8; 4] = datagram.try_into().ok()?;
    match (u32::from_le_bytes(word), u32::from_be_bytes(word)) {
        (CONNECT, _) => Some(REPLY.to_le_bytes()),
        (_, CONNECT) => Some(REPLY.to_be_bytes()),
        (OLD_CONNECT, _) => Some(OLD_REPLY.to_le_bytes()),
        (_, OLD_CONNECT) => Some(OLD_REPLY.to_be_bytes()),
        _ => None,
    }
}

/// Whether a datagram is a server's answer to [`connect_datagram`], of whatever version and byte order.
pub fn is_reply(datagram: &[u8]) -> bool {
    let Ok(word) = <[u8; 4]>::try_from(datagram) else { return false };
    [u32::from_le_bytes(word), u32::from_be_bytes(word)].iter().any(|number| [REPLY, OLD_REPLY].contains(number))
}

/// What a datagram begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Seconds of the sender's clock.
    pub sec: u32,
    /// Microseconds beside them.
    pub usec: u32,
    /// The number of the datagram, from 1 on.
    pub counter: u64,
}

impl Header {
    /// The number of bytes: 16 with counters of 64 bits, else 12.
    pub const fn len(wide: bool) -> usize {
        if wide { 16 } else { 12 }
    }

    /// Writes it to the front of a datagram that is long enough; a counter of 32 bits starts again at its end.
    pub fn encode(&self, wide: bool, datagram: &mut [u8]) {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&self.sec.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.usec.to_be_bytes());
        if wide {
            bytes[8..].copy_from_slice(&self.counter.to_be_bytes());
        } else {
            bytes[8..12].copy_from_slice(&(self.counter as u32).to_be_bytes());
        }
        if let (Some(front), Some(own)) = (datagram.get_mut(..Self::len(wide)), bytes.get(..Self::len(wide))) {
            front.copy_from_slice(own);
        }
    }

    /// Reads it; none when the datagram is too short.
    pub fn decode(wide: bool, datagram: &[u8]) -> Option<Self> {
        let word = |at: usize| datagram.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_be_bytes);
        let counter =
            if wide { datagram.get(8..16).and_then(|b| b.try_into().ok()).map(u64::from_be_bytes)? } else { u64::from(word(8)?) };
        Some(Self { sec: word(0)?, usec: word(4)?, counter })
    }

    /// The sender's time in microseconds.
    fn sent_us(&self) -> i64 {
        i64::from(self.sec) * 1_000_000 + i64::from(self.usec)
    }
}

/// Counts arrivals as iperf3 does. Pure.
///
/// A counter above the highest one so far is a gap of what lies between, and all of that is lost; one that is not above it came late (or
/// twice), and takes one loss away. Jitter is smoothed by 1/16 as in RFC 3550, section 6.4.1 (RFC 1889 has the same formula).
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrivals {
    count: Count,
    transit_us: Option<i64>,
}

impl Arrivals {
    /// A datagram of `bytes` with this header arrived at `now` of any clock.
    pub fn arrived(&mut self, header: &Header, bytes: usize, now: Duration) {
        let count = &mut self.count;
        count.bytes += bytes as u64;
        count.received += 1;
        if header.counter > count.packets {
            let gap = header.counter - count.packets - 1;
            count.lost = count.lost.saturating_add(gap);
            count.longest_loss = count.longest_loss.max(gap);
            count.packets = header.counter;
        } else {
            count.out_of_order += 1;
            count.lost = count.lost.saturating_sub(1);
        }
        let now_us = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
        let transit = now_us.saturating_sub(header.sent_us());
        let before = self.transit_us.replace(transit).unwrap_or(transit);
        let change = transit.abs_diff(before) as f64 / 1e6;
        count.jitter_s += (change - count.jitter_s) / 16.0;
    }

    /// What was counted.
    pub const fn count(&self) -> &Count {
        &self.count
    }
}

/// Opens a stream to a server from the address `own` (none leaves it to the route): a connected socket, and the exchange of the first
/// datagrams. With it what was refused of `ask`.
///
/// In the wrong order, a sending server's data can come before its answer; that data is dropped, as it is not the test's yet.
///
/// # Errors
/// `TimedOut` when no answer came within `timeout`; `ConnectionRefused` when nothing listens there.
pub fn open(address: SocketAddr, own: Option<IpAddr>, ask: &Ask, timeout: Duration) -> io::Result<(UdpSocket, Vec<String>)> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    let refused = prepare(&socket, ask);
    bind(&socket, own)?;
    socket.connect(&address.into())?;
    let socket = UdpSocket::from(socket);
    socket.set_read_timeout(Some(CALL_WAIT))?;
    // The first datagram or its answer may be lost. A second one helps against the former, and a server that has answered already
    // takes it for no data.
    let again = timeout / 3;
    let (begin, mut sent_at) = (Instant::now(), None::<Instant>);
    let mut buffer = vec![0; MOST_LEN];
    while begin.elapsed() < timeout {
        if sent_at.is_none_or(|at| at.elapsed() >= again) {
            socket.send(&connect_datagram())?;
            sent_at = Some(Instant::now());
        }
        match socket.recv(&mut buffer) {
            Ok(length) if buffer.get(..length).is_some_and(is_reply) => return Ok((socket, refused)),
            Ok(_) => {}
            Err(error) if is_wait(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

/// Sets what is asked on a UDP socket, and a large receive buffer where nothing is asked; says what was refused.
pub fn prepare(socket: &Socket, ask: &Ask) -> Vec<String> {
    if ask.window_bytes.is_none() {
        // A smaller one is all the same.
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
    }
    ask.apply_udp(socket)
}

/// Sends datagrams until the bytes, the time or the socket are over.
pub(super) fn send(shared: &Shared, socket: &UdpSocket, at: usize) -> LoopEnd {
    let error = socket.set_write_timeout(Some(CALL_WAIT)).err().or_else(|| hand_over(shared, socket, at).err());
    LoopEnd { method: "send", error }
}

fn hand_over(shared: &Shared, socket: &UdpSocket, at: usize) -> io::Result<()> {
    let wide = shared.load.wide_counters;
    let len = shared.load.len.clamp(LEAST_LEN, MOST_LEN);
    let pace = Pace::new(shared.load.rate, len as u64 * u64::from(shared.load.burst.max(1)));
    let mut datagram = shared.content.own().get(..len).map_or_else(|| vec![0; len], <[u8]>::to_vec);
    let mut count = Count::default();
    while !shared.is_over(Way::Send) {
        let now = shared.now();
        let wait = pace.wait(now, count.bytes);
        if !wait.is_zero() {
            thread::sleep(wait);
            continue;
        }
        // The last datagram is a whole one, as iperf3 has it.
        let claimed = shared.claim(len);
        if claimed == 0 {
            return Ok(());
        }
        let header = Header { sec: now.as_secs() as u32, usec: now.subsec_micros(), counter: count.packets + 1 };
        header.encode(wide, &mut datagram);
        match socket.send(&datagram) {
            Ok(sent) => {
                count.bytes += sent as u64;
                count.packets += 1;
                if let Some(tally) = shared.tally(at) {
                    tally.set(&count, now);
                }
                continue;
            }
            Err(error) if sys::udp::is_queue_full(&error) => thread::sleep(QUEUE_WAIT),
            Err(error) if is_wait(&error) => {}
            Err(error) => return Err(error),
        }
        shared.give_back(claimed);
    }
    Ok(())
}

/// Takes datagrams until the time is over.
pub(super) fn receive(shared: &Shared, socket: &UdpSocket, at: usize) -> LoopEnd {
    let error = socket.set_read_timeout(Some(CALL_WAIT)).err().or_else(|| take_all(shared, socket, at).err());
    LoopEnd { method: "recv", error }
}

fn take_all(shared: &Shared, socket: &UdpSocket, at: usize) -> io::Result<()> {
    let wide = shared.load.wide_counters;
    let mut buffer = vec![0; MOST_LEN + 1];
    let mut arrivals = Arrivals::default();
    while !shared.is_over(Way::Receive) {
        match socket.recv(&mut buffer) {
            Ok(length) => {
                let now = shared.now();
                // What is too short is no data: a repeated word to connect, or somebody else's.
                let Some(header) = buffer.get(..length).and_then(|datagram| Header::decode(wide, datagram)) else { continue };
                arrivals.arrived(&header, length, now);
                if let Some(tally) = shared.tally(at) {
                    tally.set(arrivals.count(), now);
                }
            }
            // A refused answer of ours (ICMP) says nothing about what is still to come.
            Err(error) if is_wait(&error) || error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The receive buffer of a socket as the kernel counts it.
pub fn receive_buffer(socket: &UdpSocket) -> Option<usize> {
    SockRef::from(socket).recv_buffer_size().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn a_datagram_begins_with_the_time_and_the_counter_in_network_order() {
        let header = Header { sec: 0x0102_0304, usec: 0x0005_0607, counter: 0x0908_0706_0504_0302 };
        let mut wide = [0xff; 20];
        header.encode(true, &mut wide);
        assert_eq!(wide[..17], [1, 2, 3, 4, 0, 5, 6, 7, 9, 8, 7, 6, 5, 4, 3, 2, 0xff]);
        assert_eq!(Header::decode(true, &wide), Some(header));
        let mut narrow = [0xff; 13];
        header.encode(false, &mut narrow);
        assert_eq!(narrow, [1, 2, 3, 4, 0, 5, 6, 7, 5, 4, 3, 2, 0xff]);
        assert_eq!(Header::decode(false, &narrow), Some(Header { counter: 0x0504_0302, ..header }));
        assert_eq!(Header::decode(true, &narrow), None, "13 bytes are no wide header");
        assert_eq!(Header::decode(false, &[]), None);
    }

    #[test]
    fn every_version_and_byte_order_is_answered_in_its_own() {
        for (name, datagram, reply) in [
            ("today's", b"9876".to_vec(), Some(*b"6789")),
            ("today's, big-endian", b"6789".to_vec(), Some(*b"9876")),
            ("an old client", OLD_CONNECT.to_le_bytes().to_vec(), Some(OLD_REPLY.to_le_bytes())),
            ("an old big-endian client", OLD_CONNECT.to_be_bytes().to_vec(), Some(OLD_REPLY.to_be_bytes())),
            ("nothing", vec![], None),
            ("data", vec![0; 1470], None),
            ("four other bytes", vec![1, 2, 3, 4], None),
        ] {
            assert_eq!(reply_to(&datagram), reply, "{name}");
            assert!(reply.is_none_or(|reply| is_reply(&reply)), "{name}");
        }
        assert!(!is_reply(b"word") && !is_reply(b"") && !is_reply(&[0; 1470]));
        assert_eq!(reply_to(&connect_datagram()), Some(REPLY.to_le_bytes()));
    }

    #[test]
    fn losses_and_late_ones_are_counted_as_iperf3_does() {
        for (name, counters, packets, lost, late, longest) in [
            ("all in order", vec![1, 2, 3], 3, 0, 0, 0),
            ("a gap", vec![1, 4, 5], 5, 2, 0, 2),
            ("the first ones are missing", vec![3], 3, 2, 0, 2),
            ("one overtakes another", vec![1, 3, 2, 4], 4, 0, 1, 1),
            ("a copy hides a loss", vec![1, 3, 3], 3, 0, 1, 1),
            ("a copy without loss", vec![1, 2, 2], 2, 0, 1, 0),
            ("two gaps", vec![2, 7], 7, 5, 0, 4),
            ("zero is no number", vec![0, 1], 1, 0, 1, 0),
        ] {
            let mut arrivals = Arrivals::default();
            for counter in counters {
                arrivals.arrived(&Header { sec: 0, usec: 0, counter }, 100, MS(0));
            }
            let count = arrivals.count();
            assert_eq!(
                (count.packets, count.lost, count.out_of_order, count.longest_loss),
                (packets, lost, late, longest),
                "{name}"
            );
        }
    }

    #[test]
    fn jitter_is_smoothed_by_a_sixteenth_and_clocks_need_not_agree() {
        let mut arrivals = Arrivals::default();
        // The sender's clock is a day ahead; transit alternates by 16 ms.
        for (at, transit) in [(0, 0), (20, 16), (40, 0)] {
            let sent = Header { sec: 86_400, usec: at * 1000, counter: u64::from(at) / 20 + 1 };
            arrivals.arrived(&sent, 100, MS(u64::from(at) + transit));
        }
        let expected = 0.001 + (0.016 - 0.001) / 16.0;
        assert!((arrivals.count().jitter_s - expected).abs() < 1e-9, "{}", arrivals.count().jitter_s);
    }

    proptest! {
        #[test]
        fn no_datagram_breaks_the_counting(datagrams in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..24), 0..50), wide in any::<bool>(), at in any::<u32>()) {
            let mut arrivals = Arrivals::default();
            for datagram in &datagrams {
                let _ = (reply_to(datagram), is_reply(datagram));
                if let Some(header) = Header::decode(wide, datagram) {
                    arrivals.arrived(&header, datagram.len(), Duration::from_micros(at.into()));
                }
            }
            let count = arrivals.count();
            prop_assert!(count.jitter_s.is_finite() && count.jitter_s >= 0.0);
            prop_assert!(count.lost <= count.packets);
        }

        #[test]
        fn what_is_written_is_read(sec in any::<u32>(), usec in any::<u32>(), counter in any::<u64>()) {
            let header = Header { sec, usec, counter };
            let mut datagram = [0; 16];
            header.encode(true, &mut datagram);
            prop_assert_eq!(Header::decode(true, &datagram), Some(header));
        }
    }
}
