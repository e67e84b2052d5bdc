//! `weaklink link`.

use crate::cli::args::LinkArgs;
use crate::cli::commands::run::{Tells, measure};
use crate::cli::exit::Exit;
use crate::cli::output::complain;
use crate::cli::settings::{self, LinkMode};
use crate::session::{diagnose, look_at_links};

/// Looks at the links and prints the report.
pub fn link(args: &LinkArgs) -> Exit {
    let mode = match settings::link(args) {
        Ok(mode) => mode,
        Err(error) => {
            complain(&error);
            return Exit::CouldNot;
        }
    };
    let tells = if args.details { Tells::All } else { Tells::FirstScreen };
    measure(&args.output, tells, async |events| match mode {
        LinkMode::Agent(settings) => Box::pin(diagnose(*settings, events)).await,
        LinkMode::Alone(settings) => Box::pin(look_at_links(settings, events)).await,
    })
}
