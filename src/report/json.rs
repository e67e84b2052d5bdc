//! The document as a JSON file.

use std::fmt::Write as _;

use super::clean::is_hostile;
use crate::model::Document;

/// The document in the order of its schema, indented, with a line break at the end.
///
/// Characters that a terminal takes for commands, or that turn the direction of text, leave as `\u…` escapes, so the text is
/// safe to show as it is and reads back as it was.
pub(super) fn write(document: &Document) -> String {
    // The document holds no maps with keys other than strings and no type that fails to serialise.
    escape(&serde_json::to_string_pretty(document).unwrap_or_default())
}

/// serde_json escapes what lies below U+0020; what else is unsafe can only stand in strings, where an escape means the same.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        if c != '\n' && is_hostile(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(c);
        }
    }
    safe.push('\n');
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_takes_for_a_command_is_escaped_and_reads_back() {
        let name = "eth0\u{1b}[2J\u{9b}31m\u{202e}\u{7f}ü\u{1f600}";
        let text = escape(&serde_json::to_string(name).unwrap());
        assert!(text.trim_end().chars().all(|c| !is_hostile(c)), "{text}");
        assert!(text.contains("ü\u{1f600}"));
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), name);
    }
}
