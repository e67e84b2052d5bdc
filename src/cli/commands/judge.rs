//! `weaklink judge`.

use std::io::Read;
use std::path::Path;

use crate::cli::args::JudgeArgs;
use crate::cli::exit::{Exit, of_document};
use crate::cli::output::{complain, print_report};
use crate::cli::settings;
use crate::model::Document;
use crate::report::{Format, render};

/// A report is at most this large; more is another file.
const LARGEST: u64 = 64 << 20;

/// Reads a saved report.
pub fn load(path: &Path) -> Result<Document, Exit> {
    let name = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(LARGEST + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| {
        complain(&format!("cannot read {name}: {error}"));
        Exit::CouldNot
    })?;
    crate::report::read(&bytes).map_err(|error| {
        complain(&format!("{name}: {error}"));
        Exit::CouldNot
    })
}

/// Judges a saved report with today's rules.
pub fn judge(args: &JudgeArgs) -> Exit {
    let mut document = match load(&args.report) {
        Ok(document) => document,
        Err(exit) => return exit,
    };
    super::run::judge(&mut document);
    let text = if args.json {
        render(&document, Format::Json, &settings::file_style())
    } else {
        render(&document, Format::Text, &settings::style(args.color))
    };
    print_report(&text, of_document(&document))
}
