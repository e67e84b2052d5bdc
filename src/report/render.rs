//! The one entrance for all formats.

use std::fmt;
use std::str::FromStr;

use super::view::View;
use super::{json, markdown, text};
use crate::model::Document;

/// What a report can look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For a terminal.
    Text,
    /// For a support ticket.
    Markdown,
    /// For programs, and for reading again.
    Json,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Text, Self::Markdown, Self::Json];

    /// The word on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Markdown => "markdown",
            Self::Json => "json",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// A word that names no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no format of a report: text, markdown and json are")]
pub struct UnknownFormat(pub String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|format| format.word() == text).ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

/// What the place can show where a report is printed, and what was asked for; [`Format::Json`] does not look at it, and
/// [`Format::Markdown`] at [`Style::trace`] and [`Style::details`] alone.
#[expect(clippy::struct_excessive_bools, reason = "each is a property of the place by itself, or a wish")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether colours and bold type may be used.
    pub color: bool,
    /// The number of columns; less than 40 counts as 40.
    pub width: usize,
    /// Whether characters beyond ASCII may be used.
    pub unicode: bool,
    /// Whether every probe of the search for the path MTU is listed.
    pub trace: bool,
    /// Whether a report of raw rates or of links alone goes on behind its first screen; every other report always does.
    pub details: bool,
}

impl Style {
    /// For a file or a pipe: no colour, 100 columns, Unicode, no list of probes, with all details.
    pub const PLAIN: Self = Self { color: false, width: 100, unicode: true, trace: false, details: true };
}

/// The report in `format`; each ends with a line break.
pub fn render(document: &Document, format: Format, style: &Style) -> String {
    match format {
        Format::Text => text::write(&View::of(document, style), style),
        Format::Markdown => markdown::write(&View::of(document, &Style { unicode: true, ..*style })),
        Format::Json => json::write(document),
    }
}
