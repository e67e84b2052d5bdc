//! Who is here: the tests by their cookies, what they wait for, and how many may come.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::event::Iperf3Event;
use super::{MOST_BEGINNING, MOST_TESTS};
use crate::iperf3::socket::Ask;
use crate::iperf3::state::Cookie;
use crate::sys::Stop;

/// Connections that have not yet said who they are; more are turned away so that strangers cannot use up the memory.
const STRANGERS: usize = 32;

/// As many more may come from addresses whose tests wait for streams: all of one test both ways.
const FRIENDS: usize = 256;

/// A TCP data connection with its number in the order of arrival.
pub(super) type TcpArrival = (u64, TcpStream);

/// A UDP stream's socket, and the answer that its client gets again when it asks again.
pub(super) type UdpArrival = (UdpSocket, [u8; 4]);

/// What the server is, for all its threads.
pub(super) struct House {
    port: u16,
    no_udp: Option<String>,
    tests: Mutex<HashMap<Cookie, Entry>>,
    callers: Mutex<Vec<UdpCaller>>,
    strangers: Arc<AtomicUsize>,
    stop: Stop,
    tell: Box<dyn Fn(Iperf3Event) + Send + Sync>,
}

/// A test, as others see it.
struct Entry {
    ip: IpAddr,
    streams: Option<SyncSender<TcpArrival>>,
    /// Whether all its streams are there.
    begun: bool,
}

/// A test that waits for UDP streams.
#[derive(Clone)]
pub(super) struct UdpCaller {
    cookie: Cookie,
    ip: IpAddr,
    /// This end's address of the control connection: what the client sends to, so what the answers must come from.
    pub(super) local: SocketAddr,
    /// What the client asks of the sockets.
    pub(super) ask: Ask,
    /// Where the streams go.
    pub(super) streams: SyncSender<UdpArrival>,
}

/// What a connection with a cookie is.
pub(super) enum Admission {
    /// A new client.
    Client(Place),
    /// A stream of a test that waits for some.
    Stream(SyncSender<TcpArrival>),
    /// A new client beyond what is served at once.
    Busy,
    /// A new client of an address that has begun as many tests as it may without going on with one.
    Crowded,
    /// A stream that nobody waits for.
    Surplus,
}

/// A test's place; dropping it, by whatever way, makes it free.
pub(super) struct Place {
    house: Arc<House>,
    pub(super) cookie: Cookie,
}

/// A connection that has not said who it is; dropping it makes room.
pub(super) struct Guest(Arc<AtomicUsize>);

impl Drop for Guest {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl House {
    /// An empty house; `no_udp` says why there is no UDP, if so.
    pub(super) fn new(port: u16, no_udp: Option<String>, tell: impl Fn(Iperf3Event) + Send + Sync + 'static) -> Self {
        Self {
            port,
            no_udp,
            tests: Mutex::default(),
            callers: Mutex::default(),
            strangers: Arc::default(),
            stop: Stop::new(),
            tell: Box::new(tell),
        }
    }

    /// The word to end, for all threads.
    pub(super) const fn stop(&self) -> &Stop {
        &self.stop
    }

    /// The port of TCP and UDP.
    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    /// Why there is no UDP.
    pub(super) fn no_udp(&self) -> Option<&str> {
        self.no_udp.as_deref()
    }

    /// Tells the owner.
    pub(super) fn tell(&self, event: Iperf3Event) {
        (self.tell)(event);
    }

    /// Whether no test is here.
    pub(super) fn is_empty(&self) -> bool {
        lock(&self.tests).is_empty()
    }

    /// Lets a connection in that has yet to say who it is; none when there are too many.
    pub(super) fn admit(&self, ip: IpAddr) -> Option<Guest> {
        let friend = || lock(&self.tests).values().any(|entry| entry.ip == ip && entry.streams.is_some());
        let here = self.strangers.fetch_add(1, Ordering::Relaxed);
        let guest = Guest(Arc::clone(&self.strangers));
        (here < STRANGERS || (here < STRANGERS + FRIENDS && friend())).then_some(guest)
    }

    /// A connection has said its cookie.
    pub(super) fn enter(self: &Arc<Self>, cookie: Cookie, ip: IpAddr) -> Admission {
        let mut tests = lock(&self.tests);
        let running = tests.len();
        match tests.get(&cookie) {
            Some(Entry { streams: Some(sender), .. }) => Admission::Stream(sender.clone()),
            Some(_) => Admission::Surplus,
            None if running >= MOST_TESTS => Admission::Busy,
            None if tests.values().filter(|entry| entry.ip == ip && !entry.begun).count() >= MOST_BEGINNING => Admission::Crowded,
            None => {
                tests.insert(cookie, Entry { ip, streams: None, begun: false });
                Admission::Client(Place { house: Arc::clone(self), cookie })
            }
        }
    }

    /// The test that a datagram from `from` opens a stream of: the one that waits for streams from there, or the only one
    /// that waits, whose UDP takes another way than its TCP (two uplinks, a NAT with several addresses).
    pub(super) fn caller(&self, from: IpAddr) -> Option<UdpCaller> {
        let callers = lock(&self.callers);
        let known = callers.iter().find(|caller| caller.ip == from);
        known.or(if let [only] = callers.as_slice() { Some(only) } else { None }).cloned()
    }
}

impl Place {
    /// From now on data connections with the cookie are handed over.
    pub(super) fn want_tcp(&self, count: usize) -> Receiver<TcpArrival> {
        let (sender, receiver) = sync_channel(count);
        if let Some(entry) = lock(&self.house.tests).get_mut(&self.cookie) {
            entry.streams = Some(sender);
        }
        receiver
    }

    /// From now on datagrams from this client open streams; none while another test from its address waits for its own.
    pub(super) fn want_udp(&self, count: usize, ip: IpAddr, local: SocketAddr, ask: &Ask) -> Option<Receiver<UdpArrival>> {
        let mut callers = lock(&self.house.callers);
        if callers.iter().any(|caller| caller.ip == ip) {
            return None;
        }
        let (sender, receiver) = sync_channel(count);
        callers.push(UdpCaller { cookie: self.cookie, ip, local, ask: ask.clone(), streams: sender });
        Some(receiver)
    }

    /// All streams are there: the test has its place for its whole time.
    pub(super) fn begin(&self) {
        if let Some(entry) = lock(&self.house.tests).get_mut(&self.cookie) {
            entry.begun = true;
        }
    }

    /// No more streams.
    pub(super) fn want_none(&self) {
        if let Some(entry) = lock(&self.house.tests).get_mut(&self.cookie) {
            entry.streams = None;
        }
        lock(&self.house.callers).retain(|caller| caller.cookie != self.cookie);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.want_none();
        lock(&self.house.tests).remove(&self.cookie);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookie(seed: u8) -> Cookie {
        Cookie::from_random([seed; Cookie::LEN - 1])
    }

    #[test]
    fn one_address_cannot_take_all_places_by_saying_nothing() {
        let house = Arc::new(House::new(5201, None, |_| ()));
        let (silent, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let mut places = Vec::new();
        for seed in 0..4 {
            let Admission::Client(place) = house.enter(cookie(seed), silent) else { panic!("client {seed} has a place") };
            places.push(place);
        }
        assert!(matches!(house.enter(cookie(4), silent), Admission::Crowded));
        let Admission::Client(_good) = house.enter(cookie(5), other) else { panic!("another address has a place") };
        // One that goes on makes room for the next beginning, up to all places.
        places[0].begin();
        let Admission::Client(_next) = house.enter(cookie(4), silent) else { panic!("it went on") };
        assert!(matches!(house.enter(cookie(6), silent), Admission::Crowded));
        places.clear();
        assert!(matches!(house.enter(cookie(6), silent), Admission::Client(_)), "gone ones hold nothing");
    }
}
