//! Lines of a given width out of sentences of any.

/// The columns that `text` takes on a terminal.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(width).sum()
}

/// East Asian wide characters and emoji take two columns, combining marks none.
const fn width(character: char) -> usize {
    match character {
        '\u{300}'..='\u{36f}' | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

/// The space that no line breaks at; [`unglue`] turns it into a common one.
const GLUE: char = '\u{a0}';

/// The units that stay on the line of their number.
const UNITS: [&str; 19] = [
    "%", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", "B", "kB", "MB", "GB", "TB", "B/s", "kB/s", "MB/s", "GB/s", "µs", "us",
    "ms", "s",
];

/// `text` in which numbers hold on to their units.
pub(super) fn glue(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (position, word) in text.split(' ').enumerate() {
        if position > 0 {
            let unit = word.trim_end_matches([',', '.', ';', ':', ')']);
            let number = out.ends_with(|c: char| c.is_ascii_digit());
            out.push(if number && UNITS.contains(&unit) { GLUE } else { ' ' });
        }
        out.push_str(word);
    }
    out
}

/// `text` with common spaces only.
pub(super) fn unglue(text: &str) -> String {
    text.replace(GLUE, " ")
}

/// `text` in lines of at most `limit` columns, broken between words, within a word only when it is too long for a line.
pub(super) fn wrap(text: &str, limit: usize) -> Vec<String> {
    let limit = limit.max(8);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let wide = columns(word);
        if used > 0 && used + 1 + wide > limit {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        for character in word.chars() {
            if used + width(character) > limit {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            line.push(character);
            used += width(character);
        }
    }
    if used > 0 || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// `text` with spaces behind it up to `columns_wanted`.
pub(super) fn pad(text: &str, columns_wanted: usize) -> String {
    format!("{text}{}", " ".repeat(columns_wanted.saturating_sub(columns(text))))
}

/// `text` with spaces before it up to `columns_wanted`.
pub(super) fn pad_left(text: &str, columns_wanted: usize) -> String {
    format!("{}{text}", " ".repeat(columns_wanted.saturating_sub(columns(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_long_words_break_within() {
        assert_eq!(wrap("one two three four", 9), ["one two", "three", "four"]);
        assert_eq!(wrap("abcdefghijkl", 8), ["abcdefgh", "ijkl"]);
        assert_eq!(wrap("", 20), [""]);
        assert_eq!(wrap("a  b", 20), ["a b"]);
        assert_eq!(wrap("日本語日本語", 8), ["日本語日", "本語"]);
    }

    #[test]
    fn a_unit_stays_with_its_number() {
        assert_eq!(wrap(&glue("moves 2.29 Gbit/s, 97 % of it"), 13), ["moves", "2.29\u{a0}Gbit/s,", "97\u{a0}% of it"]);
        assert_eq!(unglue(&glue("a  12 MB/s b")), "a  12 MB/s b");
    }

    proptest::proptest! {
        #[test]
        fn no_line_is_wider_than_asked(text in "\\PC{0,200}", limit in 8usize..100) {
            for line in wrap(&text, limit) {
                proptest::prop_assert!(columns(&line) <= limit);
            }
        }
    }
}
