//! The way back: a saved report as a document.

use serde::Deserialize;

use super::clean::clean;
use crate::model::Document;
use crate::model::document::{SCHEMA_NAME, SCHEMA_VERSION, SchemaVersion};

/// The largest file that is read. A thorough run of five minutes with all lanes makes less than one MB.
pub const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The most objects and the most values. A real report holds some thousands of each; far more of them would make a
/// document in memory that is many times larger than its file.
const MAX_OBJECTS: usize = 250_000;
const MAX_VALUES: usize = 1_000_000;

/// Why a file could not be read as a report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// More bytes or values than any report has.
    #[error("the file is larger than any report: {what}; is it the right file?")]
    TooLarge {
        /// What there is too much of.
        what: String,
    },
    /// Nothing in it.
    #[error("the file is empty: the run that should have written it did not end; run it again")]
    Empty,
    /// Text in an encoding that is not UTF-8.
    #[error("the file is not UTF-8 text{hint}")]
    Encoding {
        /// What to do, if the encoding was recognised.
        hint: &'static str,
    },
    /// The file ends in the middle.
    #[error("the report breaks off at line {line}, column {column}: copy the file again, or repeat the run")]
    Truncated {
        /// The line of the end, from 1.
        line: usize,
        /// The column of the end, from 1.
        column: usize,
    },
    /// No JSON.
    #[error(
        "the file is not valid JSON: {what} at line {line}, column {column}; weaklink reads the reports that `weaklink run --json` or `-o FILE` wrote, unchanged"
    )]
    Syntax {
        /// What was wrong.
        what: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// JSON, but of another kind.
    #[error("this is not a weaklink report: {what}")]
    NotAReport {
        /// What was found instead.
        what: String,
    },
    /// A report whose layout this program does not know.
    #[error(
        "this report was made by a newer weaklink (layout {major}.{minor}, this program reads {}.x): update weaklink to read it",
        SCHEMA_VERSION.major
    )]
    Newer {
        /// Its major version.
        major: u32,
        /// Its minor version.
        minor: u32,
    },
    /// A report with a value that cannot be.
    #[error(
        "the report is damaged: {what} at line {line}, column {column}; if nobody changed the file, please report this as a bug"
    )]
    Damaged {
        /// What was wrong.
        what: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
}

/// The one part that every version of the layout has.
#[derive(Deserialize)]
struct Head {
    schema: Option<HeadSchema>,
}

#[derive(Deserialize)]
struct HeadSchema {
    name: String,
    version: SchemaVersion,
}

/// Reads a report of this or any older layout.
///
/// Fields that this program does not know are passed over, so reports of a newer minor version can be read.
pub fn read(bytes: &[u8]) -> Result<Document, ReadError> {
    check_size(bytes)?;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    check_encoding(bytes)?;
    let head: Head = serde_json::from_slice(bytes).map_err(|error| head_error(bytes, &error))?;
    match head.schema {
        None => return Err(not_a_report("it has no schema")),
        Some(HeadSchema { name, .. }) if name != SCHEMA_NAME => {
            return Err(not_a_report(&format!("its schema is {:?}", short(&name))));
        }
        Some(HeadSchema { version: SchemaVersion { major, minor }, .. }) if major > SCHEMA_VERSION.major => {
            return Err(ReadError::Newer { major, minor });
        }
        Some(HeadSchema { version: SchemaVersion { major: 0, .. }, .. }) => {
            return Err(not_a_report("no weaklink ever wrote layout 0"));
        }
        Some(_) => {}
    }
    // 1.0 is the first layout: there is nothing older to bring up to date yet.
    serde_json::from_slice(bytes).map_err(|error| body_error(&error))
}

fn check_size(bytes: &[u8]) -> Result<(), ReadError> {
    let too_large = |what: String| Err(ReadError::TooLarge { what });
    if bytes.len() > MAX_BYTES {
        return too_large(format!("{} MiB, at most {} are read", bytes.len() >> 20, MAX_BYTES >> 20));
    }
    let count = |sign: u8| bytes.split(|byte| *byte == sign).count() - 1;
    match (count(b'{'), count(b',')) {
        (objects, _) if objects > MAX_OBJECTS => too_large(format!("{objects} objects in it")),
        (_, values) if values > MAX_VALUES => too_large(format!("{values} values in it")),
        _ => Ok(()),
    }
}

fn check_encoding(bytes: &[u8]) -> Result<(), ReadError> {
    if bytes.trim_ascii().is_empty() {
        return Err(ReadError::Empty);
    }
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        let hint = " but UTF-16, as PowerShell's `>` writes it: use `weaklink run -o FILE` instead";
        return Err(ReadError::Encoding { hint });
    }
    if std::str::from_utf8(bytes).is_err() {
        return Err(ReadError::Encoding { hint: ": it is no report, or it was damaged" });
    }
    Ok(())
}

fn not_a_report(what: &str) -> ReadError {
    ReadError::NotAReport { what: what.to_owned() }
}

fn short(name: &str) -> String {
    name.chars().take(60).collect()
}

/// An error before it is known whether this is a report at all.
fn head_error(bytes: &[u8], error: &serde_json::Error) -> ReadError {
    if !error.is_data() {
        return body_error(error);
    }
    match bytes.trim_ascii().first() {
        Some(b'{') => not_a_report("its schema is not one of weaklink's"),
        Some(b'[') => not_a_report("it is a list"),
        _ => not_a_report("it is a single value"),
    }
}

fn body_error(error: &serde_json::Error) -> ReadError {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    // The library repeats the place at the end of its sentence; what stands before may hold foreign words.
    let what = clean(text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what));
    if error.is_eof() {
        ReadError::Truncated { line, column }
    } else if error.is_data() {
        ReadError::Damaged { what, line, column }
    } else {
        ReadError::Syntax { what, line, column }
    }
}
