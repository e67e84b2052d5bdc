//! Both ends over loopback.

use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::{RawEnd, RawSpec, Sink, Source, receive, send};
use crate::model::copy::Place;
use crate::model::outcome::Outcome;
use crate::pattern::Pattern;
use crate::sys::Progress;
use crate::sys::Stop;
use crate::units::ByteSize;

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let out = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (out, listener.accept().unwrap().0)
}

fn spec(seconds: u64, max_bytes: u64) -> RawSpec {
    RawSpec { seed: 11, budget: Duration::from_secs(seconds), max_bytes: ByteSize(max_bytes) }
}

fn copy(source: &Source, sink: &Sink, spec: &RawSpec) -> (Outcome<RawEnd>, Outcome<RawEnd>) {
    let (out, into) = pair();
    let stop = Stop::new();
    thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(into, sink, spec, &stop, &Progress::new()));
        let sent = send(out, source, spec, &stop, &Progress::new());
        (sent, receiver.join().unwrap())
    })
}

fn content(path: &Path, bytes: u64) {
    let mut data = vec![0; bytes as usize];
    Pattern::new(11).fill(0, &mut data);
    std::fs::write(path, data).unwrap();
    std::fs::File::open(path).unwrap().sync_all().unwrap();
}

/// A directory may lie in memory or on a filesystem that keeps its cache: then the sender must say so instead of a rate.
fn honest(sent: &Outcome<RawEnd>) {
    if let Some(why) = sent.why() {
        assert!(why.contains("memory"), "{why}");
    }
}

#[test]
fn memory_to_memory_ends_by_bytes_and_is_compared() {
    let (sent, got) = copy(&Source::Memory, &Sink::Memory, &spec(60, 30_000_001));
    let got = got.measured().unwrap().clone();
    assert_eq!(sent.measured().unwrap().bytes, ByteSize(30_000_001));
    assert_eq!(got.bytes, ByteSize(30_000_001));
    assert!(got.verified_bytes.measured().is_some_and(|bytes| bytes.0 > 0));
    let copied = got.copied(Place::Memory);
    assert_eq!((copied.files, copied.bytes), (1, got.bytes));
}

#[test]
fn memory_to_memory_ends_by_time() {
    let start = Instant::now();
    let (sent, got) = copy(&Source::Memory, &Sink::Memory, &spec(1, u64::MAX));
    assert!(start.elapsed() >= Duration::from_millis(900));
    let (sent, got) = (sent.measured().unwrap().clone(), got.measured().unwrap().clone());
    assert!(got.bytes.0 > 0 && got.bytes <= sent.bytes);
    assert!(!got.bins.bytes.is_empty());
}

#[test]
fn memory_to_file_has_exactly_the_content() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large");
    let (_, got) = copy(&Source::Memory, &Sink::File { path: path.clone() }, &spec(60, 5_000_003));
    assert_eq!(got.measured().unwrap().bytes, ByteSize(5_000_003));
    let data = std::fs::read(&path).unwrap();
    assert_eq!(data.len(), 5_000_003);
    assert!(Pattern::new(11).check(0, &data));
}

#[test]
fn file_to_memory_is_compared_and_never_measured_from_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large");
    content(&path, 8_000_000);
    let (sent, got) = copy(&Source::File { path }, &Sink::Memory, &spec(60, 8_000_000));
    honest(&sent);
    assert!(got.measured().unwrap().verified_bytes.measured().is_some());
}

#[test]
fn file_to_file_is_a_copy() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    content(&from, 3_000_000);
    let (sent, got) = copy(&Source::File { path: from.clone() }, &Sink::File { path: to.clone() }, &spec(60, 3_000_000));
    honest(&sent);
    assert!(got.measured().is_some());
    assert_eq!(std::fs::read(from).unwrap(), std::fs::read(to).unwrap());
}

#[test]
fn changed_content_is_a_failed_comparison() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large");
    content(&path, 1_000_000);
    let mut data = std::fs::read(&path).unwrap();
    data[10] ^= 1;
    std::fs::write(&path, data).unwrap();
    let (_, got) = copy(&Source::File { path }, &Sink::Memory, &spec(60, 1_000_000));
    assert!(got.measured().unwrap().verified_bytes.why().is_some_and(|why| why.contains("differs")));
}

#[test]
fn a_file_that_exists_is_not_overwritten_and_one_that_does_not_is_not_sent() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine");
    std::fs::write(&path, b"precious").unwrap();
    let (_, got) = copy(&Source::Memory, &Sink::File { path: path.clone() }, &spec(5, 1_000_000));
    assert!(got.why().is_some_and(|why| why.contains("cannot make the test file")));
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    let (sent, got) = copy(&Source::File { path: dir.path().join("absent") }, &Sink::Memory, &spec(5, 1_000_000));
    assert!(sent.why().is_some_and(|why| why.contains("cannot read")));
    assert!(got.why().is_some_and(|why| why.contains("before it sent anything")));
}

#[test]
fn a_stop_ends_both_ends_soon() {
    let (out, into) = pair();
    let (stop, spec) = (Stop::new(), spec(600, u64::MAX));
    let progress = Progress::new();
    let start = Instant::now();
    thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(into, &Sink::Memory, &spec, &stop, &progress));
        let sender = scope.spawn(|| send(out, &Source::Memory, &spec, &stop, &Progress::new()));
        while progress.bytes() == 0 {
            thread::yield_now();
        }
        stop.set();
        assert!(matches!(receiver.join().unwrap(), Outcome::Skipped(_) | Outcome::Failed(_)));
        assert!(matches!(sender.join().unwrap(), Outcome::Skipped(_) | Outcome::Failed(_)));
    });
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_receiver_that_dies_is_noticed_by_the_sender() {
    let (out, into) = pair();
    into.shutdown(Shutdown::Both).unwrap();
    drop(into);
    let sent = send(out, &Source::Memory, &spec(600, u64::MAX), &Stop::new(), &Progress::new());
    assert!(sent.why().is_some_and(|why| why.contains("broke off")), "{sent:?}");
}

#[test]
fn a_sender_that_dies_is_noticed_by_the_receiver() {
    let (out, into) = pair();
    thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(into, &Sink::Memory, &spec(600, u64::MAX), &Stop::new(), &Progress::new()));
        let mut data = vec![0; 100_000];
        Pattern::new(11).fill(0, &mut data);
        std::io::Write::write_all(&mut &out, &data).unwrap();
        drop(out);
        let got = receiver.join().unwrap();
        assert!(got.why().is_some_and(|why| why.contains("before the time was over")), "{got:?}");
    });
}

#[test]
fn a_sender_that_goes_beyond_what_was_agreed_fills_no_disk() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let (out, into) = pair();
    let stop = Stop::new();
    let (limit, sent) = (spec(60, 5_000_000), spec(60, 80_000_000));
    thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(into, &Sink::File { path: path.clone() }, &limit, &stop, &Progress::new()));
        // How its own sending ends is its own affair.
        let _ = send(out, &Source::Memory, &sent, &stop, &Progress::new());
        assert_eq!(receiver.join().unwrap().measured().unwrap().bytes, ByteSize(5_000_000));
    });
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 5_000_000);
}
