//! Against real listeners on loopback.

use std::net::TcpListener;

use super::*;

const PATIENCE: Duration = Duration::from_secs(10);
const TELLS: bool = cfg!(all(target_os = "linux", not(feature = "portable")));

fn loopbacks() -> Vec<SocketAddr> {
    let mut addresses = vec!["127.0.0.1:0".parse().unwrap()];
    if TcpListener::bind("[::1]:0").is_ok() {
        addresses.push("[::1]:0".parse().unwrap());
    }
    addresses
}

/// Takes one connection and everything that comes over it.
fn everything(listener: &TcpListener) -> Vec<u8> {
    let (mut stream, _) = listener.accept().expect("a connection");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("closed in order, not reset");
    bytes
}

#[test]
fn a_service_acknowledges_one_full_size_segment_and_is_left_in_order() {
    for address in loopbacks() {
        for (name, sends) in [("SSH", true), ("SMB", true), ("NFS", true), ("HTTP", false)] {
            let listener = TcpListener::bind(address).unwrap();
            let here = listener.local_addr().unwrap();
            let (probes, bytes) = thread::scope(|scope| {
                let server = scope.spawn(|| everything(&listener));
                let probes = services(here, &[(here.port(), Some(name))], PATIENCE, &Stop::new());
                (probes, server.join().expect("no panic"))
            });
            let [ServiceProbe { port, service, result }] = &probes[..] else { panic!("{probes:?}") };
            assert_eq!((*port, service.as_deref()), (here.port(), Some(name)));
            if !TELLS {
                assert!(matches!(result, Outcome::Skipped(_)), "{result:?}");
                continue;
            }
            let path = result.measured().unwrap_or_else(|| panic!("{name}: {:?}", result.why()));
            let sent = if sends { path.end.send_mss_bytes as usize } else { 0 };
            assert_eq!(bytes.len(), sent, "{name} {address}");
            assert_eq!(path.acknowledged, sends, "{name} {address}: {path:?}");
            let headers = if address.is_ipv4() { 40 } else { 60 };
            let packet = Mtu(path.end.send_mss_bytes + path.end.option_bytes + headers);
            assert_eq!(path.packet, sends.then_some(packet), "{name} {address}");
            assert!(path.pmtu_after >= path.packet, "{path:?}");
        }
    }
}

#[test]
fn a_port_without_a_listener_is_skipped_and_every_port_has_its_result_in_order() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let open = listener.local_addr().unwrap().port();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let ports: Vec<(u16, Option<&str>)> = [closed, open].into_iter().cycle().take(20).map(|port| (port, None)).collect();
    let probes = services("127.0.0.1:9".parse().unwrap(), &ports, PATIENCE, &Stop::new());
    assert_eq!(probes.iter().map(|probe| probe.port).collect::<Vec<_>>(), ports.iter().map(|p| p.0).collect::<Vec<_>>());
    for probe in probes {
        if probe.port == closed {
            assert!(probe.result.why().is_some_and(|why| why.contains("nobody listens")), "{:?}", probe.result);
        } else {
            assert_eq!(probe.result.measured().is_some(), TELLS, "{:?}", probe.result);
        }
        assert_eq!(probe.service, None);
    }
}

#[test]
fn a_service_that_ends_the_connection_without_reading_has_still_acknowledged() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let here = listener.local_addr().unwrap();
    let probes = thread::scope(|scope| {
        scope.spawn(|| {
            let (stream, _) = listener.accept().expect("a connection");
            let mut first = [0];
            // Closed with the rest unread: a reset.
            let _ = stream.peek(&mut first);
        });
        services(here, &[(here.port(), Some("SMB"))], PATIENCE, &Stop::new())
    });
    assert!(!TELLS || probes[0].result.measured().is_some_and(|path| path.acknowledged), "{probes:?}");
}

#[test]
fn both_ends_of_a_connection_agree() {
    for address in loopbacks() {
        let listener = TcpListener::bind(address).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        match (tcp_end(&client), tcp_end(&server)) {
            (Outcome::Measured(client), Outcome::Measured(server)) => {
                assert_eq!(client.option_bytes, server.option_bytes);
                assert_eq!(client.advertised_mss_bytes, server.advertised_mss_bytes, "one interface, one SYN like the other");
                for end in [client, server] {
                    assert!(end.granted_mss_bytes() <= end.advertised_mss_bytes, "{end:?}");
                    assert!(end.pmtu >= Some(Mtu(end.granted_mss_bytes())), "{end:?}");
                }
            }
            (Outcome::Skipped(_), Outcome::Skipped(_)) => assert!(!TELLS),
            other => panic!("{address}: {other:?}"),
        }
    }
}

#[test]
fn a_stop_and_the_names_of_usual_ports() {
    let stop = Stop::new();
    stop.set();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let here = listener.local_addr().unwrap();
    let begun = Instant::now();
    let probes = services(here, &[(here.port(), Some("SSH"))], PATIENCE, &stop);
    assert!(begun.elapsed() < PATIENCE);
    assert_eq!(probes.len(), 1);
    assert_eq!(known_name(445).as_deref(), Some("SMB"));
    assert_eq!(known_name(80), None);
    let error = io::Error::from(io::ErrorKind::TimedOut);
    let silent = no_connection(here, &error);
    assert!(matches!(&silent, Outcome::Failed(why) if why.reason.contains("firewall")), "{silent:?}");
}
