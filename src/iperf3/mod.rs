//! iperf3's wire: our client against any iperf3 server, and a server that any iperf3 client can use.
//!
//! | part | what it does |
//! |---|---|
//! | `state`, `fault` | pure: the one-byte states and the cookie; why a server refuses |
//! | `params`, `results` | pure: what a client asks for, and what each end saw |
//! | `control` | the control connection: states and length-prefixed JSON, with caps and deadlines |
//!
//! A test: the client sends its cookie on a first connection; the server asks for the parameters, then for the streams (each a
//! connection of its own with the same cookie), starts the test, and after the client's word to end both tell their
//! results, the client first. Every connection is opened by the client, to one port.

mod control;
mod fault;
mod number;
mod params;
mod results;
mod state;

pub use control::{Control, ControlError, frame, frame_length};
pub use fault::{Fault, FaultCode};
pub use params::{Amount, Flow, Params, ParamsError, Protocol};
pub use results::{Results, ResultsError, SenderRetransmits, ServerOutput, StreamResult, stream_id};
pub use state::{Cookie, State};
