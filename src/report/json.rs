//! The document as a JSON file.

use crate::model::Document;

/// The document in the order of its schema, indented, with a line break at the end.
///
/// Control characters in strings leave as `\u…` escapes, so the text is safe to show as it is.
pub(super) fn write(document: &Document) -> String {
    // The document holds no maps with keys other than strings and no type that fails to serialise.
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}
