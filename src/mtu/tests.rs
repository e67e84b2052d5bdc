//! Both ends on loopback.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use super::packet::{Kind, Packet};
#[cfg(all(target_os = "linux", not(feature = "portable")))]
use super::place;
use super::{Endpoint, Listener};
use crate::model::Outcome;
#[cfg(all(target_os = "linux", not(feature = "portable")))]
use crate::model::mtu::{Limiter, PathMtu};
use crate::sys::Stop;
use crate::units::Mtu;

const PATIENCE: Duration = Duration::from_secs(20);
const TOKEN: [u8; 16] = *b"a token of tests";

fn pair(listen: IpAddr, dial: IpAddr) -> (Listener, Endpoint, Endpoint) {
    let stop = Stop::new();
    let listener = Listener::bind(SocketAddr::new(listen, 0)).expect("a listener");
    let expected = listener.expect(TOKEN);
    let port = listener.address().port();
    let client = Endpoint::connect(SocketAddr::new(dial, port), TOKEN, PATIENCE, &stop).expect("the agent answers");
    let agent = expected.wait(PATIENCE, &stop).expect("the client came");
    (listener, client, agent)
}

fn has_ipv6() -> bool {
    UdpSocket::bind("[::1]:0").is_ok()
}

#[test]
fn both_directions_are_measured_at_every_kind_of_address() {
    let v4 = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let mut cases = vec![
        ("IPv4", v4, v4),
        ("another loopback address through the wildcard", Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::new(127, 0, 0, 9).into()),
    ];
    if has_ipv6() {
        cases.push(("IPv6", Ipv6Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()));
        cases.push(("IPv6 through the wildcard", Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::LOCALHOST.into()));
        cases.push(("IPv4 through the IPv6 wildcard", Ipv6Addr::UNSPECIFIED.into(), v4));
        cases.push(("a mapped IPv4 address", Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::LOCALHOST.to_ipv6_mapped().into()));
    }
    for (name, listen, dial) in cases {
        let destination_is_told = cfg!(all(target_os = "linux", not(feature = "portable")));
        if !destination_is_told && dial == IpAddr::V4(Ipv4Addr::new(127, 0, 0, 9)) {
            continue;
        }
        let (_listener, client, agent) = pair(listen, dial);
        assert_eq!(agent.peer(), client.local().expect("an address"), "{name}");
        for (end, other) in [(&client, "towards the agent"), (&agent, "towards the client")] {
            match end.search(None, PATIENCE, &Stop::new()) {
                Outcome::Measured(path) => {
                    assert_eq!(path.mtu, path.ceiling, "{name} {other}: {path:?}");
                    assert!(path.mtu >= Mtu::ETHERNET, "{name} {other}: {path:?}");
                    assert_eq!(path.probes as usize, path.trace.len(), "{name} {other}");
                    assert!(path.rtt_us.is_some(), "{name} {other}");
                    assert!(path.words.is_empty() && path.change.is_none(), "{name} {other}");
                    assert!(matches!(path.location, Outcome::Skipped(_)), "{name} {other}: {:?}", path.location);
                }
                Outcome::Skipped(_) if cfg!(feature = "portable") => {}
                missing => panic!("{name} {other}: {:?}", missing.why()),
            }
        }
    }
}

#[test]
fn echoes_come_back_while_both_ends_search() {
    let (_listener, client, agent) = pair(Ipv4Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into());
    let stop = Stop::new();
    std::thread::scope(|scope| {
        scope.spawn(|| agent.search(Some(Mtu(9000)), PATIENCE, &stop));
        scope.spawn(|| client.search(Some(Mtu(9000)), PATIENCE, &stop));
        for end in [&client, &agent] {
            if cfg!(all(target_os = "linux", not(feature = "portable"))) {
                assert_eq!(end.hops(&stop).measured(), Some(&1), "the loopback interface is one hop");
            }
            let summary = end.rtt(20, Duration::from_millis(1), &stop).measured().copied().expect("echoes");
            assert_eq!(summary.sent, 20);
            assert!(summary.received > 0 && summary.min_us <= summary.median_us && summary.p95_us <= summary.max_us);
        }
    });
}

#[cfg(all(target_os = "linux", not(feature = "portable")))]
#[test]
fn one_subnet_is_recognised_by_a_single_answer_while_both_ends_are_at_it() {
    let mut ends = vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
    ends.extend(has_ipv6().then_some(IpAddr::V6(Ipv6Addr::LOCALHOST)));
    for ip in ends {
        let (_listener, client, agent) = pair(ip, ip);
        let stop = Stop::new();
        let found = client.search(Some(Mtu(4000)), PATIENCE, &stop);
        let silent = PathMtu { limited_by: Limiter::Silent, ..found.measured().cloned().expect("a path") };
        std::thread::scope(|scope| {
            scope.spawn(|| agent.search(Some(Mtu(9000)), PATIENCE, &stop));
            for _ in 0..20 {
                let location = place::locate(&client.shared, &silent, PATIENCE, &stop);
                let location = location.measured().cloned().expect("a place");
                assert_eq!(
                    (location.size, location.peer_at, location.reached, location.missing),
                    (Mtu(4001), Some(1), 0, Some(1))
                );
                assert!(location.hops.is_empty());
            }
        });
        stop.set();
        assert!(place::locate(&client.shared, &silent, PATIENCE, &stop).why().is_some_and(|why| why.contains("stopped")));
        assert!(
            place::locate(&client.shared, &silent, Duration::ZERO, &Stop::new()).why().is_some_and(|why| why.contains("time"))
        );
    }
}

#[test]
fn who_does_not_know_the_token_gets_no_answer() {
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let expected = listener.expect(TOKEN);
    let stop = Stop::new();
    let error = Endpoint::connect(listener.address(), [9; 16], Duration::from_millis(200), &stop).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    assert!(error.to_string().contains(&listener.address().port().to_string()), "{error}");
    let error = expected.wait(Duration::from_millis(10), &stop).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    drop(listener);
    assert_eq!(expected.wait(PATIENCE, &stop).unwrap_err().kind(), std::io::ErrorKind::NotConnected);
}

#[test]
fn a_closed_port_and_a_stop_end_connecting() {
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = Endpoint::connect(closed, TOKEN, Duration::from_millis(150), &Stop::new()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    let stop = Stop::new();
    stop.set();
    let error = Endpoint::connect(closed, TOKEN, PATIENCE, &stop).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::Interrupted);
}

#[test]
fn an_other_end_that_is_gone_is_a_failure_with_the_port_and_ends_soon() {
    let (listener, client, agent) = pair(Ipv4Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into());
    let port = listener.address().port();
    let begun = Instant::now();
    drop(agent);
    assert!(begun.elapsed() < PATIENCE);
    let outcome = client.search(Some(Mtu(1500)), PATIENCE, &Stop::new());
    let why = outcome.why().expect("no result").to_owned();
    assert!(cfg!(feature = "portable") || why.contains(&format!("UDP port {port} is blocked")), "{why}");
    let stop = Stop::new();
    stop.set();
    assert!(client.rtt(5, Duration::from_millis(1), &stop).measured().is_none());
}

#[test]
fn foreign_datagrams_do_not_disturb() {
    let (_listener, client, agent) = pair(Ipv4Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into());
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    for target in [client.local().unwrap(), agent.local().unwrap()] {
        for bytes in
            [&b""[..], b"WLmt", &[0xff; 2000], &Packet { kind: Kind::Ack, token: TOKEN, sequence: 0, size: 1500 }.encode()]
        {
            let _ = stranger.send_to(bytes, target);
        }
    }
    let outcome = client.search(Some(Mtu(4000)), PATIENCE, &Stop::new());
    assert!(cfg!(feature = "portable") || outcome.measured().is_some_and(|path| path.mtu == Mtu(4000)), "{outcome:?}");
}
