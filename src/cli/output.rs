//! The only place that writes to stdout, and the words on stderr.

use std::io::Write;
use std::path::Path;

use crate::cli::exit::Exit;
use crate::model::Document;
use crate::report::{Format, Style, clean, render};

/// Prints to stdout. A reader that went away (`| head`) is no error; another fault is told, and false.
pub fn print(text: &str) -> bool {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            complain(&format!("cannot write to standard output: {error}"));
            false
        }
        _ => true,
    }
}

/// Prints a report to stdout; one that could not be written turns the exit code into that of a failure.
pub fn print_report(text: &str, exit: Exit) -> Exit {
    if print(text) || exit == Exit::Interrupted { exit } else { Exit::CouldNot }
}

/// Whether a report can be written to `path` later, asked before the time for measuring is spent.
pub fn can_save(path: &Path) -> Result<(), String> {
    let fault = |reason: &str| Err(format!("-o {}: {reason}", path.display()));
    if path.is_dir() {
        return fault("this is a directory; name a file in it");
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match std::fs::metadata(parent) {
        Ok(kind) if kind.is_dir() && !kind.permissions().readonly() => Ok(()),
        Ok(kind) if kind.is_dir() => fault("its directory is read-only"),
        Ok(_) => fault("what should be its directory is none"),
        Err(error) => fault(&format!("its directory cannot be used: {error}")),
    }
}

/// Prints a line to stderr. What a peer said may be part of it, so nothing in it reaches the terminal as a command.
pub fn say(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = writeln!(stderr, "{}", clean(text));
}

/// Says that the command failed, in one sentence.
pub fn complain(text: &dyn std::fmt::Display) {
    say(&format!("weaklink: {text}"));
}

/// Writes the report to a file: the ending chooses the format. The file appears whole or not at all.
pub fn save(document: &Document, path: &Path, style: &Style) -> std::io::Result<()> {
    let format = match path.extension().and_then(|ending| ending.to_str()) {
        Some("md" | "markdown") => Format::Markdown,
        Some("txt") => Format::Text,
        _ => Format::Json,
    };
    let text = render(document, format, style);
    // A pipe or device (`-o /dev/stderr`) cannot be replaced by a rename.
    if path.exists() && !path.is_file() {
        return std::fs::write(path, text);
    }
    let name = path.file_name().ok_or(std::io::ErrorKind::InvalidInput)?;
    let mut part = name.to_owned();
    part.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(part);
    let result = std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, path));
    if result.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    result
}
