//! Both ends over loopback.

use std::net::UdpSocket;
use std::time::Duration;

use super::*;
use crate::model::host::Direction;
use crate::model::plan::UdpPlan;
use crate::model::udp::{UdpReceived, UdpSent};
use crate::sys::{Progress, Stop};
use crate::units::BitRate;

fn pair() -> (UdpSocket, UdpSocket) {
    let (here, there) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    here.connect(there.local_addr().unwrap()).unwrap();
    there.connect(here.local_addr().unwrap()).unwrap();
    (here, there)
}

/// One pass; both ends begin when the receiver is ready.
fn pass(out: SendSpec, into: ReceiveSpec) -> (UdpSent, UdpReceived) {
    let (here, there) = pair();
    let (finish, stop, progress) = (Finish::new(), Stop::new(), Progress::new());
    let receiver = Receiver::new(&there, into).unwrap();
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| receiver.run(&finish, &stop, &progress).unwrap());
        let sent = send(&here, &out, &stop, &Progress::new()).unwrap();
        finish.set(sent.datagrams);
        (sent, receiving.join().unwrap())
    })
}

fn specs(mbit: u64, datagram: usize) -> (SendSpec, ReceiveSpec) {
    let out = SendSpec { pass: 7, rate: BitRate::from_mbit(mbit), duration: Duration::from_millis(300), datagram, apart: false };
    let into = ReceiveSpec { pass: 7, datagram, most: u64::MAX, deadline: Duration::from_secs(20), ..ReceiveSpec::default() };
    (out, into)
}

#[test]
fn what_is_sent_is_counted_by_every_way() {
    for (mbit, datagram, apart) in [(2, 1472, false), (80, 1472, false), (80, 1472, true), (50, 200, false), (80, 8972, true)] {
        let (out, into) = specs(mbit, datagram);
        let (sent, received) = pass(SendSpec { apart, ..out }, ReceiveSpec { apart, ..into });
        let pass = assemble(out.rate, datagram as u32, &sent, received);
        assert!(pass.sent > 0 && pass.received > 0, "{sent:?}");
        assert_eq!(pass.received + pass.lost, pass.sent);
        assert_eq!((pass.duplicates, pass.reordered), (0, 0), "{pass:?}");
        // Loopback loses only what this program was too late for.
        if let Some(own) = pass.dropped_by_receiver.measured() {
            assert_eq!(pass.lost, *own, "{pass:?}");
        }
        assert!(pass.sent_bps.0 <= out.rate.0 * 101 / 100 + datagram as u64 * 8 * 4, "{pass:?}");
    }
}

#[test]
fn a_receiver_that_is_too_slow_is_told_from_the_network() {
    for apart in [false, true] {
        let (out, mut into) = specs(200, 1472);
        into.buffer = Some(4096);
        into.nap = Some(Duration::from_millis(5));
        into.apart = apart;
        let (sent, received) = pass(out, into);
        let pass = assemble(out.rate, 1472, &sent, received);
        assert!(pass.lost > pass.sent / 10, "{pass:?}");
        match pass.dropped_by_receiver.measured() {
            Some(own) => assert_eq!(*own, pass.lost, "{pass:?}"),
            None => assert!(pass.dropped_by_receiver.why().unwrap().contains("did not tell"), "{pass:?}"),
        }
    }
}

#[test]
fn datagrams_of_another_pass_or_size_are_not_counted() {
    let (out, into) = specs(50, 1000);
    for other in
        [ReceiveSpec { pass: 8, ..into.clone() }, ReceiveSpec { datagram: 999, ..into.clone() }, ReceiveSpec { most: 0, ..into }]
    {
        let (sent, received) = pass(out, other);
        assert!(sent.datagrams > 0);
        assert_eq!((received.datagrams, received.beyond), (0, 0));
    }
}

#[test]
fn both_ends_stop_at_the_word() {
    let (here, there) = pair();
    let (mut out, into) = specs(10, 1000);
    out.duration = Duration::from_secs(60);
    let stop = Stop::new();
    let begun = std::time::Instant::now();
    let (receiver, progress) = (Receiver::new(&there, into).unwrap(), Progress::new());
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| receiver.run(&Finish::new(), &stop, &Progress::new()));
        let sending = scope.spawn(|| send(&here, &out, &stop, &progress));
        while progress.bytes() == 0 {
            std::thread::yield_now();
        }
        stop.set();
        assert!(sending.join().unwrap().unwrap().behind);
        assert!(receiving.join().unwrap().is_ok());
    });
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_port_that_nobody_has_ends_the_sender() {
    let (here, there) = pair();
    drop(there);
    let (mut out, _) = specs(10, 1000);
    out.duration = Duration::from_secs(30);
    let result = send(&here, &out, &Stop::new(), &Progress::new());
    if cfg!(target_os = "linux") {
        assert!(result.is_err(), "{result:?}");
    }
}

#[test]
fn a_direction_says_why_its_search_ended() {
    let search = Search::new(&UdpPlan::default(), Direction::Upload);
    let found = direction(&search, 1472, ("GSO".into(), "GRO".into()), Vec::new());
    assert!(found.ended_because.contains("ended before"));
    assert_eq!((found.clean_bps, found.loss_from_bps), (None, None));
}
