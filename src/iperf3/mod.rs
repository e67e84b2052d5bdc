//! iperf3's wire: our client against any iperf3 server, and a server that any iperf3 client can use.
//!
//! | part | what it does |
//! |---|---|
//! | `pace`, `udp`'s codec | pure: when the next block may go; datagrams and how arrivals are counted |
//! | `socket` | the sockets as the parameters ask for them |
//! | `stream`, `tcp`, `udp` | the data plane of both roles: one OS thread a stream |

mod pace;
pub mod socket;
pub mod stream;
mod tcp;
pub mod udp;
