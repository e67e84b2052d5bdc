//! The program: parse, run, exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    weaklink::cli::main()
}
