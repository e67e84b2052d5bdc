//! The report: a [`Document`](crate::model::Document) as text for a terminal, as markdown for a ticket, or as JSON.
//!
//! Pure: nothing here measures, judges, reads a file or prints. The rhythm is
//! **document → view → writer**: `answer`, `network`, `links`, `path_mtu`, `rates`, `machines`, `series` and `missing` say once for all formats what is
//! told, in which order and how it is rounded (`view`); `text` and `markdown` only lay it out. `clean` takes
//! the teeth out of foreign strings on the way from the one to the other. `read` is the way back from a file,
//! `redact` takes out what is private before a report leaves the house.

mod alike;
mod answer;
mod clean;
mod json;
mod ladder;
mod link_screen;
mod links;
mod machines;
mod markdown;
mod missing;
mod mtu_parts;
mod network;
mod path_mtu;
mod rates;
mod rates_more;
mod read;
mod redact;
mod render;
mod series;
mod text;
mod view;
mod wrap;

pub use clean::clean;
pub use read::{MAX_BYTES, ReadError, read};
pub use redact::{RedactError, redact};
pub use render::{Format, Style, UnknownFormat, render};
