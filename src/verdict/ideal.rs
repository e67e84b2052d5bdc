//! What Ethernet can carry: line rate × MTU arithmetic.

use super::limits::{LOOSE_BELOW, SNAP_ABOVE, SNAP_BELOW};
use crate::units::{BitRate, Mtu};

/// Bytes that a frame costs on the wire beside its packet: preamble 8, header 14, FCS 4, gap 12.
pub const FRAME_OVERHEAD: u32 = 38;

/// IPv4 (20) and TCP (20) headers and the timestamps option (12), in bytes.
pub const TCP_OVERHEAD_V4: u32 = 52;

/// IPv6 (40) and TCP (20) headers and the timestamps option (12), in bytes.
pub const TCP_OVERHEAD_V6: u32 = 72;

/// The speeds of Ethernet over copper and fibre that a home or office meets, in Mbit/s.
pub const CLASSES_MBIT: [u64; 7] = [10, 100, 1_000, 2_500, 5_000, 10_000, 25_000];

/// The version of IP, which sets the size of the headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ip {
    /// 20 bytes of header.
    V4,
    /// 40 bytes of header.
    V6,
}

/// The share of the line rate that TCP's payload gets, 0 to 1.
pub fn tcp_share(mtu: Mtu, ip: Ip) -> f64 {
    let headers = match ip {
        Ip::V4 => TCP_OVERHEAD_V4,
        Ip::V6 => TCP_OVERHEAD_V6,
    };
    f64::from(mtu.0.saturating_sub(headers)) / f64::from(mtu.0.saturating_add(FRAME_OVERHEAD))
}

/// The goodput of TCP on a line of this rate.
pub fn wire_ceiling(line: BitRate, mtu: Mtu, ip: Ip) -> BitRate {
    line.scale(tcp_share(mtu, ip))
}

/// What a line of this rate carries in datagrams with so many bytes of payload, one in a packet: 8 bytes of UDP's header and those
/// of IP (20 or 40) beside it, and the frame.
pub fn udp_ceiling(line: BitRate, datagram: u32, ip: Ip) -> BitRate {
    let headers = match ip {
        Ip::V4 => 28.0,
        Ip::V6 => 48.0,
    };
    line.scale(f64::from(datagram) / (f64::from(datagram) + headers + f64::from(FRAME_OVERHEAD)))
}

/// The Ethernet class whose ceiling a measured plateau sits at, if any.
pub fn snap(plateau: BitRate, mtu: Mtu, ip: Ip) -> Option<BitRate> {
    at_class(plateau, SNAP_BELOW, mtu, ip)
}

/// The same with the room that a busy host needs: a hint, no proof.
pub fn snap_loosely(rate: BitRate, mtu: Mtu, ip: Ip) -> Option<BitRate> {
    at_class(rate, LOOSE_BELOW, mtu, ip)
}

fn at_class(plateau: BitRate, below: f64, mtu: Mtu, ip: Ip) -> Option<BitRate> {
    CLASSES_MBIT.into_iter().map(BitRate::from_mbit).find(|class| {
        let ceiling = wire_ceiling(*class, mtu, ip).as_f64();
        (ceiling * below..=ceiling * SNAP_ABOVE).contains(&plateau.as_f64())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_the_field() {
        for (mtu, ip, share) in [(1500, Ip::V4, 0.9415), (9000, Ip::V4, 0.9900), (1500, Ip::V6, 0.9285), (9000, Ip::V6, 0.9878)] {
            assert!((tcp_share(Mtu(mtu), ip) - share).abs() < 0.0001, "{mtu} {ip:?}");
        }
        assert!(tcp_share(Mtu(0), Ip::V6).abs() < f64::EPSILON);
    }

    #[test]
    fn full_datagrams_carry_a_little_more_than_tcp() {
        for (datagram, ip, share) in [(1472, Ip::V4, 0.9571), (1452, Ip::V6, 0.9441), (8972, Ip::V4, 0.9927), (0, Ip::V4, 0.0)] {
            let ceiling = udp_ceiling(BitRate::from_mbit(10_000), datagram, ip).as_f64() / 1e10;
            assert!((ceiling - share).abs() < 0.0001, "{datagram} {ip:?}: {ceiling}");
        }
    }

    #[test]
    fn a_plateau_snaps_to_its_class_and_to_no_other() {
        for (mbit, class) in [
            (94, Some(100)),
            (941, Some(1_000)),
            (930, Some(1_000)),
            (2_353, Some(2_500)),
            (4_707, Some(5_000)),
            (9_414, Some(10_000)),
            (850, None),
            (1_700, None),
            (6_040, None),
        ] {
            assert_eq!(snap(BitRate::from_mbit(mbit), Mtu(1500), Ip::V4), class.map(BitRate::from_mbit), "{mbit}");
        }
    }
}
