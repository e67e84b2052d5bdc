//! `weaklink throughput`.

use crate::cli::args::ThroughputArgs;
use crate::cli::commands::run::{Tells, measure};
use crate::cli::exit::Exit;
use crate::cli::output::complain;
use crate::cli::settings::{self, ThroughputSettings};
use crate::session::{diagnose, measure_iperf3};

/// Measures raw TCP or UDP and prints the report.
pub fn throughput(args: &ThroughputArgs) -> Exit {
    let settings = match settings::throughput(args) {
        Ok(settings) => settings,
        Err(error) => {
            complain(&error);
            return Exit::CouldNot;
        }
    };
    let tells = if args.details { Tells::All } else { Tells::FirstScreen };
    measure(&args.output, tells, async |events| match settings {
        ThroughputSettings::Agent(settings) => Box::pin(diagnose(*settings, events)).await,
        ThroughputSettings::Iperf3(settings) => Box::pin(measure_iperf3(*settings, events)).await,
    })
}
