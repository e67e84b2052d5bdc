//! One file for each command.

pub mod explain;
pub mod judge;
pub mod link;
pub mod mtu;
pub mod report;
pub mod run;
pub mod serve;
pub mod throughput;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::args::{Cli, Command};
use crate::cli::exit::Exit;

/// Parses the arguments, runs the command, gives the exit code.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { Exit::CouldNot.into() } else { Exit::Fine.into() };
        }
    };
    let exit = match cli.command {
        Command::Serve(args) => serve::serve(&args),
        Command::Run(args) => run::run(&args),
        Command::Mtu(args) => mtu::mtu(&args),
        Command::Link(args) => link::link(&args),
        Command::Throughput(args) => throughput::throughput(&args),
        Command::Judge(args) => judge::judge(&args),
        Command::Report(args) => report::report(&args),
        Command::Explain(args) => explain::explain(&args),
    };
    exit.into()
}
