//! Why a server cannot do a test: two numbers that follow [`State::ServerError`](super::State::ServerError). Pure.

/// The error as it goes over the wire: iperf3's own number and the operating system's, each four bytes, big-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// iperf3's `i_errno`.
    pub iperf: i32,
    /// The system's `errno`; 0 where none belongs to it.
    pub system: i32,
}

impl Fault {
    /// Its length on the wire.
    pub const LEN: usize = 8;

    /// A fault of iperf3's own, without one of the system.
    pub const fn of(code: FaultCode) -> Self {
        Self { iperf: code.number(), system: 0 }
    }

    /// A fault that the system caused.
    pub fn with(code: FaultCode, error: &std::io::Error) -> Self {
        Self { iperf: code.number(), system: error.raw_os_error().unwrap_or(0) }
    }

    /// The bytes that go over the wire.
    pub fn encode(self) -> [u8; Self::LEN] {
        let both = (u64::from(self.iperf.cast_unsigned()) << 32) | u64::from(self.system.cast_unsigned());
        both.to_be_bytes()
    }

    /// What the bytes mean; any are valid.
    pub const fn decode(bytes: [u8; Self::LEN]) -> Self {
        let both = u64::from_be_bytes(bytes);
        Self { iperf: (both >> 32) as i32, system: both as i32 }
    }

    /// What the system's number says, as Linux numbers them: nearly all servers run there. Nothing where none belongs to the fault.
    pub fn system_words(self) -> Option<String> {
        // The last one and the two gaps of Linux's list (asm-generic/errno.h).
        let known = (1..=133).contains(&self.system) && ![41, 58].contains(&self.system);
        match self.system {
            0 => None,
            _ if known => Some(std::io::Error::from_raw_os_error(self.system).to_string()),
            other => Some(format!("errno {other}, not one that Linux knows")),
        }
    }

    /// What iperf3's number says, where it is one of those that a server sends.
    pub fn meaning(self) -> Option<&'static str> {
        CODES.iter().find(|(code, _)| code.number() == self.iperf).map(|(_, words)| *words)
    }
}

/// Those of iperf3's error numbers that a server sends, with the names of its source (`iperf_api.h`) without their `IE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum FaultCode {
    /// `IEDURATION`.
    Duration = 5,
    /// `IENUMSTREAMS`.
    NumStreams = 6,
    /// `IEBLOCKSIZE`.
    BlockSize = 7,
    /// `IEBUFSIZE`.
    BufSize = 8,
    /// `IEMSS`.
    Mss = 10,
    /// `IEOMIT`.
    Omit = 12,
    /// `IEUNIMP`.
    Unimplemented = 13,
    /// `IEBURST`.
    Burst = 15,
    /// `IEENDCONDITIONS`.
    EndConditions = 16,
    /// `IENOSCTP`.
    NoSctp = 18,
    /// `IEUDPBLOCKSIZE`.
    UdpBlockSize = 20,
    /// `IEBADTOS`.
    BadTos = 21,
    /// `IEREVERSEBIDIR`.
    ReverseBidir = 25,
    /// `IETOTALRATE`.
    TotalRate = 27,
    /// `IEIDLETIMEOUT`.
    IdleTimeout = 30,
    /// `IEACCEPT`.
    Accept = 104,
    /// `IEMESSAGE`.
    Message = 110,
    /// `IERECVPARAMS`.
    RecvParams = 114,
    /// `IERECVRESULTS`.
    RecvResults = 117,
    /// `IESETMSS`.
    SetMss = 123,
    /// `IESETBUF`.
    SetBuf = 124,
    /// `IESETTOS`.
    SetTos = 125,
    /// `IEPROTOCOL`.
    Protocol = 131,
    /// `IESETCONGESTION`.
    SetCongestion = 134,
    /// `IEAUTHTEST`.
    AuthTest = 142,
    /// `IECREATESTREAM`.
    CreateStream = 200,
    /// `IEINITSTREAM`.
    InitStream = 201,
    /// `IESTREAMLISTEN`.
    StreamListen = 202,
    /// `IESTREAMACCEPT`.
    StreamAccept = 204,
    /// `IESTREAMWRITE`.
    StreamWrite = 205,
    /// `IESTREAMREAD`.
    StreamRead = 206,
}

impl FaultCode {
    /// iperf3's number.
    pub const fn number(self) -> i32 {
        self as i32
    }
}

/// Each code in words.
const CODES: [(FaultCode, &str); 31] = [
    (FaultCode::Duration, "the test is too long"),
    (FaultCode::NumStreams, "it allows fewer streams"),
    (FaultCode::BlockSize, "the block is too large"),
    (FaultCode::BufSize, "the socket buffer is too large"),
    (FaultCode::Mss, "the segment is too large"),
    (FaultCode::Omit, "the time to leave out is too long"),
    (FaultCode::Unimplemented, "it cannot do that"),
    (FaultCode::Burst, "the burst is too large"),
    (FaultCode::EndConditions, "more than one end of the test was named"),
    (FaultCode::NoSctp, "it has no SCTP"),
    (FaultCode::UdpBlockSize, "the datagram's size is not possible"),
    (FaultCode::BadTos, "the type of service is not possible"),
    (FaultCode::ReverseBidir, "reverse and both directions exclude each other"),
    (FaultCode::TotalRate, "the rate is above what its owner allows"),
    (FaultCode::IdleTimeout, "nothing arrived for too long"),
    (FaultCode::Accept, "it could not accept the connection"),
    (FaultCode::Message, "it received a message that it does not know"),
    (FaultCode::RecvParams, "it could not read the parameters"),
    (FaultCode::RecvResults, "it could not read the results"),
    (FaultCode::SetMss, "it could not set the segment's size"),
    (FaultCode::SetBuf, "it could not set the socket buffer"),
    (FaultCode::SetTos, "it could not set the type of service"),
    (FaultCode::Protocol, "it does not know the protocol"),
    (FaultCode::SetCongestion, "it does not have the congestion control"),
    (FaultCode::AuthTest, "it demands a user name and a password"),
    (FaultCode::CreateStream, "it could not create a stream"),
    (FaultCode::InitStream, "it could not prepare a stream"),
    (FaultCode::StreamListen, "it could not listen for streams"),
    (FaultCode::StreamAccept, "a stream did not arrive"),
    (FaultCode::StreamWrite, "it could not write to a stream"),
    (FaultCode::StreamRead, "it could not read from a stream"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_two_big_endian_numbers() {
        let fault = Fault { iperf: 6, system: -1 };
        assert_eq!(fault.encode(), [0, 0, 0, 6, 255, 255, 255, 255]);
        assert_eq!(Fault::decode(fault.encode()), fault);
        assert_eq!(fault.meaning(), Some("it allows fewer streams"));
        assert_eq!(Fault { iperf: 9999, system: 0 }.meaning(), None);
        assert_eq!(Fault { iperf: 6, system: 0 }.system_words(), None);
        for (system, words) in [
            (i32::MAX, "errno 2147483647, not one that Linux knows"),
            (-7, "errno -7, not one that Linux knows"),
            (134, "errno 134, not one that Linux knows"),
            (13, "os error 13"),
        ] {
            assert!(Fault { iperf: 6, system }.system_words().is_some_and(|said| said.contains(words)), "{system}");
        }
    }
}
