//! The SSH lane: the system's own OpenSSH client, and SFTP spoken over it.
//!
//! The user's configuration, keys, agent and known hosts apply, as in the copies that the user makes; we
//! only ask it to say what it negotiated (`-v`), never to ask for a password, and not to share an older
//! connection, so that its CPU time belongs to this copy alone.
//!
//! `target` reads what the user typed and `trace` what `ssh -v` says (both pure), `connection` owns the
//! child process, `transfer` moves bytes, `scratch` keeps our directory on the server, `driver` is the lane.

mod connection;
mod driver;
mod scratch;
pub mod target;
pub mod trace;
mod transfer;

pub use connection::SshOptions;
pub use driver::Ssh;
pub use target::Target;
