//! What a server says when the system gives it no connection.

use std::io;

/// The host has too many open files, and this process has: `errno` has the same numbers on Linux, macOS and the BSDs.
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;

/// Why a connection was not taken in, with what to do about it.
pub fn not_taken(error: &io::Error) -> String {
    // These have no `ErrorKind` of their own.
    let advice = match error.raw_os_error() {
        Some(EMFILE | ENFILE) if cfg!(unix) => {
            ": end with Ctrl-C, raise the limit of open files, as with `ulimit -n 1024`, and start again"
        }
        _ => "",
    };
    format!("cannot take in a connection: {error}{advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn who_runs_out_of_files_learns_what_to_raise_and_nobody_else_does() {
        let told = not_taken(&io::Error::from_raw_os_error(EMFILE));
        assert!(told.contains("open files (os error 24)") && told.contains("ulimit -n"), "{told}");
        let other = not_taken(&io::ErrorKind::ConnectionAborted.into());
        assert!(!other.contains("ulimit"), "{other}");
    }
}
