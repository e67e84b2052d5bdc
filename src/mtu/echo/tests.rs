//! Against the kernel's own answers on loopback; each needs a ping socket or a raw one, and says when it is skipped.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

/// The kinds of socket that this process may open, with a search over each.
fn allowed(peer: IpAddr) -> Vec<(EchoSocket, EchoMethod)> {
    let both = [(EchoSocket::ping(peer), EchoMethod::PingSocket), (EchoSocket::raw(peer), EchoMethod::RawSocket)];
    both.into_iter()
        .filter_map(|(socket, method)| match socket {
            Ok(socket) => Some((socket, method)),
            Err(error) => {
                eprintln!("skipped: {method:?} to {peer}: {error}");
                None
            }
        })
        .collect()
}

fn loopbacks() -> Vec<IpAddr> {
    let mut addresses = vec![Ipv4Addr::LOCALHOST.into()];
    if std::net::UdpSocket::bind("[::1]:0").is_ok() {
        addresses.push(Ipv6Addr::LOCALHOST.into());
    }
    addresses
}

fn run<'a>(socket: &'a EchoSocket, peer: IpAddr, cookie: Cookie) -> Run<'a> {
    Run::new(socket, SocketAddr::new(peer, 0), socket.identifier().unwrap_or(0x5765), cookie)
}

#[test]
fn loopback_answers_up_to_its_interface_by_every_kind_of_socket() {
    for peer in loopbacks() {
        for (socket, method) in allowed(peer) {
            for ceiling in [None, Some(Mtu(1501)), Some(Mtu(9000))] {
                let outcome = run(&socket, peer, [7; 16]).search(method, ceiling, PATIENCE, &Stop::new());
                let Outcome::Measured(echo) = outcome else { panic!("{peer} {method:?}: {:?}", outcome.why()) };
                assert_eq!(echo.method, method);
                assert_eq!(echo.path.mtu, echo.path.ceiling, "{peer} {method:?}: {:?}", echo.path);
                assert!(ceiling.is_none_or(|ceiling| ceiling == echo.path.mtu), "{peer} {method:?}: {:?}", echo.path.mtu);
                assert_eq!(echo.reply_fragment, None, "{peer} {method:?}");
                assert!(echo.path.rtt_us.is_some());
                assert_eq!(echo.path.probes as usize, echo.path.trace.len());
            }
        }
    }
}

#[test]
fn two_searches_at_once_do_not_take_each_others_answers() {
    let peer = Ipv4Addr::LOCALHOST.into();
    for ((one, method), (two, _)) in allowed(peer).into_iter().zip(allowed(peer)) {
        let search = |socket: &EchoSocket, cookie, ceiling| {
            run(socket, peer, cookie).search(method, Some(Mtu(ceiling)), PATIENCE, &Stop::new())
        };
        let (first, second) = std::thread::scope(|scope| {
            let first = scope.spawn(|| search(&one, [1; 16], 1400));
            let second = search(&two, [2; 16], 3000);
            (first.join().expect("no panic"), second)
        });
        assert_eq!(first.measured().map(|echo| echo.path.mtu), Some(Mtu(1400)), "{method:?}");
        assert_eq!(second.measured().map(|echo| echo.path.mtu), Some(Mtu(3000)), "{method:?}");
    }
}

#[test]
fn a_stop_ends_the_search_at_once_and_what_is_not_allowed_is_said() {
    let stop = Stop::new();
    stop.set();
    let outcome = echo("127.0.0.1:0".parse().unwrap(), None, PATIENCE, &stop);
    let Outcome::Skipped(why) = outcome else { panic!("{outcome:?}") };
    let allowed = !allowed(Ipv4Addr::LOCALHOST.into()).is_empty();
    let word = if allowed { "stopped" } else { "cannot be sent" };
    assert!(why.reason.contains(word), "{}", why.reason);
}

#[test]
fn a_host_that_answers_nothing_is_a_failure_that_names_ping_and_what_the_system_said() {
    let peer = Ipv4Addr::LOCALHOST.into();
    for (socket, method) in allowed(peer) {
        let mut run = run(&socket, peer, [7; 16]);
        let scope = Scope { smallest: 68, ceiling: 1500, least_mtu: 68, budget: PATIENCE };
        for complaint in [None, Some("no route to host")] {
            run.complaint = complaint.map(io::Error::other);
            let outcome = run.conclude(&Search::new(scope), &Ending::Unanswered);
            let Outcome::Failed(why) = outcome else { panic!("{method:?}: {outcome:?}") };
            assert!(why.reason.contains("ping is filtered"), "{}", why.reason);
            assert!(complaint.is_none_or(|complaint| why.reason.contains(complaint)), "{}", why.reason);
        }
    }
}
