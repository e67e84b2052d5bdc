//! The one-byte states of the control connection, and the cookie that says which connections belong together. Pure.
//!
//! Facts of iperf3's source (`iperf_api.h`, `iperf_util.c`); the same in every version since 3.0.

/// What one end tells the other; one signed byte on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Server: all streams are there, make ready.
    TestStart,
    /// Server: go.
    TestRunning,
    /// Client: the test is over.
    TestEnd,
    /// Server: send your parameters.
    ParamExchange,
    /// Server: open your streams.
    CreateStreams,
    /// Server: it ends for good, without results.
    ServerTerminate,
    /// Client: its user interrupted it.
    ClientTerminate,
    /// Server: send your results, then read mine.
    ExchangeResults,
    /// Server: that was all, show it.
    DisplayResults,
    /// Never sent by a known version, but it has a number.
    IperfStart,
    /// Client: goodbye.
    IperfDone,
    /// Server: busy with others.
    AccessDenied,
    /// Server: it cannot; a [`Fault`](super::Fault) follows.
    ServerError,
}

/// Every state with its number.
const STATES: [(State, i8); 13] = [
    (State::TestStart, 1),
    (State::TestRunning, 2),
    (State::TestEnd, 4),
    (State::ParamExchange, 9),
    (State::CreateStreams, 10),
    (State::ServerTerminate, 11),
    (State::ClientTerminate, 12),
    (State::ExchangeResults, 13),
    (State::DisplayResults, 14),
    (State::IperfStart, 15),
    (State::IperfDone, 16),
    (State::AccessDenied, -1),
    (State::ServerError, -2),
];

impl State {
    /// The state that a byte means; none for a number that has no meaning.
    pub fn from_byte(byte: u8) -> Option<Self> {
        let number = byte.cast_signed();
        STATES.iter().find(|(_, known)| *known == number).map(|(state, _)| *state)
    }

    /// The byte that goes over the wire.
    pub fn byte(self) -> u8 {
        STATES.iter().find(|(state, _)| *state == self).map_or(0, |(_, number)| number.cast_unsigned())
    }
}

/// The name of a test: the client makes it, and sends it first on each of its TCP connections.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cookie([u8; Cookie::LEN]);

impl Cookie {
    /// Its length on the wire: 36 characters and a NUL.
    pub const LEN: usize = 37;

    /// The characters that iperf3 makes cookies of (`iperf_util.c`: base 32 without the letters' case).
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

    /// A cookie of 36 random bytes.
    pub fn from_random(random: [u8; Self::LEN - 1]) -> Self {
        let mut cookie = [0; Self::LEN];
        for (place, byte) in cookie.iter_mut().zip(random) {
            *place = Self::ALPHABET.get(usize::from(byte) % 32).copied().unwrap_or(b'a');
        }
        Self(cookie)
    }

    /// A cookie as it came: 36 printable characters and a NUL; none for anything else, which no iperf3 sends.
    ///
    /// Not only the letters of today's versions: those before 3.2 put the host's name and the time into it.
    pub fn decode(bytes: [u8; Self::LEN]) -> Option<Self> {
        let (last, text) = bytes.split_last()?;
        (*last == 0 && text.iter().all(u8::is_ascii_graphic)).then_some(Self(bytes))
    }

    /// The bytes that go over the wire.
    pub const fn bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }
}

impl std::fmt::Debug for Cookie {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cookie({})", String::from_utf8_lossy(&self.0[..Self::LEN - 1]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_means_one_state_or_none() {
        let known = (0..=u8::MAX).filter_map(|byte| State::from_byte(byte).map(|state| (byte, state)));
        let known: Vec<_> = known.collect();
        assert_eq!(known.len(), STATES.len());
        for (byte, state) in known {
            assert_eq!(state.byte(), byte, "{state:?}");
        }
        assert_eq!(State::from_byte(0xff), Some(State::AccessDenied));
        assert_eq!(State::from_byte(0xfe), Some(State::ServerError));
        assert_eq!(State::from_byte(0), None);
    }

    #[test]
    fn a_cookie_is_text_and_a_nul() {
        let cookie = Cookie::from_random([7; 36]);
        assert_eq!(Cookie::decode(*cookie.bytes()), Some(cookie));
        let old = *b"nas.example.1449058340.123456.0a1b2c\0";
        assert!(Cookie::decode(old).is_some(), "before 3.2");
        for (name, bytes) in [
            ("no NUL at the end", [b'a'; 37]),
            ("a NUL too early", *b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\0\0"),
            ("a browser", *b"GET / HTTP/1.1\r\nHost: nas:5201\r\nUser-"),
            ("zeros", [0; 37]),
        ] {
            assert_eq!(Cookie::decode(bytes), None, "{name}");
        }
    }
}
