//! iperf3's wire: our client against any iperf3 server, and a server that any iperf3 client can use.
//!
//! | part | what it does |
//! |---|---|
//! | `state`, `fault` | pure: the one-byte states and the cookie; why a server refuses |
//! | `params`, `results` | pure: what a client asks for, and what each end saw |
//! | `control` | the control connection: states and length-prefixed JSON, with caps and deadlines |
//! | `pace` | pure: when the next block may go |
//! | `socket` | the data sockets as the parameters ask for them |
//! | `stream`, `tcp`, `udp` | the data plane of both roles: one OS thread a stream; iperf3's datagrams and how arrivals are counted |
//! | `client` | our client, and its result as our model has it |
//! | `server` | a server for any iperf3 client, several at once |
//!
//! A test: the client sends its cookie on a first connection; the server asks for the parameters, then for the streams (each a
//! connection of its own with the same cookie), starts the test, and after the client's word to end both tell their
//! results, the client first. Every connection is opened by the client, to one port.

pub mod client;
mod control;
mod fault;
mod number;
mod pace;
mod params;
mod results;
mod server;
pub mod socket;
mod state;
pub mod stream;
mod tcp;
pub mod udp;

pub use control::{Control, ControlError, frame, frame_length};
pub use fault::{Fault, FaultCode};
pub use params::{Amount, Flow, Params, ParamsError, Protocol};
pub use results::{Results, ResultsError, SenderRetransmits, ServerOutput, StreamResult, stream_id};
pub use server::{Iperf3Event, Iperf3Server, MOST_TESTS, Moved, PORT, Served};
pub use state::{Cookie, State};
