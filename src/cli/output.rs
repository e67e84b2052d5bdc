//! The only place that writes to stdout, and the words on stderr.

use std::io::Write;
use std::path::Path;

use crate::model::Document;
use crate::report::{Format, Style, render};

/// Prints to stdout. A reader that went away (`| head`) is no error.
pub fn print(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes());
    let _ = stdout.flush();
}

/// Prints a line to stderr.
pub fn say(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = writeln!(stderr, "{text}");
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
