//! `weaklink mtu`.

use crate::cli::args::MtuArgs;
use crate::cli::commands::run::{Tells, measure};
use crate::cli::exit::Exit;
use crate::cli::output::complain;
use crate::cli::settings::{self, MtuSettings};
use crate::session::{diagnose, look_alone};

/// Measures the path MTU and prints the report.
pub fn mtu(args: &MtuArgs) -> Exit {
    let settings = match settings::mtu(args) {
        Ok(settings) => settings,
        Err(error) => {
            complain(&error);
            return Exit::CouldNot;
        }
    };
    let tells = if args.trace { Tells::Probes } else { Tells::All };
    measure(&args.output, tells, async |events| match settings {
        MtuSettings::Together(settings) => Box::pin(diagnose(*settings, events)).await,
        MtuSettings::Alone(settings) => Box::pin(look_alone(settings, events)).await,
    })
}
