//! Builds a PC, a switch and a NAS with a chosen fault on this machine and runs weaklink between them.
//!
//! ```text
//! cargo build --release
//! sudo target/release/examples/lab                 lists the faults
//! sudo target/release/examples/lab black-hole      builds one and prints the report
//! ```
//!
//! Needs root, Linux and the packages iproute2 and ethtool; SSH faults need openssh-server.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program of its own, for people")]

#[expect(dead_code, reason = "tests use more of it")]
mod net;
mod scenario;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let Some(name) = args.next() else {
        println!("usage: lab FAULT [options of `weaklink run` …]\n");
        for scenario in scenario::SCENARIOS {
            println!("  {:14} {} -> {}", scenario.name, scenario.what, scenario.expect.join(" or "));
        }
        return ExitCode::SUCCESS;
    };
    let Some(scenario) = scenario::SCENARIOS.iter().find(|scenario| scenario.name == name) else {
        eprintln!("lab: no fault is called {name}; call it without arguments for the list");
        return ExitCode::from(2);
    };
    if let Some(reason) = net::missing() {
        eprintln!("lab: {reason}");
        return ExitCode::from(2);
    }
    // The example lies in target/…/examples, the program one level up.
    let program = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.parent()?.join("weaklink")));
    let Some(program): Option<PathBuf> = program.filter(|path| path.exists()) else {
        eprintln!("lab: build the program first: cargo build --release");
        return ExitCode::from(2);
    };
    let extra: Vec<String> = args.collect();
    match scenario::play(scenario, &program, &extra) {
        Ok(outcome) => {
            print!("{}", outcome.report);
            println!(
                "\n(`run` ended with {:?} after {:.1} s; expected: {})",
                outcome.code,
                outcome.elapsed.as_secs_f64(),
                scenario.expect.join(" or ")
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("lab: {error}");
            ExitCode::from(2)
        }
    }
}
