//! `weaklink report`.

use crate::cli::args::ReportArgs;
use crate::cli::exit::Exit;
use crate::cli::output::{complain, print_report};
use crate::cli::settings;
use crate::report::{Format, Style, render};

/// Renders a saved report; a report that was never judged is judged first.
pub fn report(args: &ReportArgs) -> Exit {
    let format: Format = match args.format.parse() {
        Ok(format) => format,
        Err(error) => {
            complain(&error);
            return Exit::CouldNot;
        }
    };
    let mut document = match super::judge::load(&args.report) {
        Ok(document) => document,
        Err(exit) => return exit,
    };
    if document.verdict.is_none() {
        super::run::judge(&mut document);
    }
    let style = if format == Format::Text { settings::style(args.color) } else { settings::file_style() };
    let details = args.details || format != Format::Text;
    let style = Style { trace: args.trace, details, ..style };
    // The report is what was asked for; what it says is for `judge` and `run` to turn into an exit code.
    print_report(&render(&document, format, &style), Exit::Fine)
}
