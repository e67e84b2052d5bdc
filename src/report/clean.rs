//! Foreign strings made harmless: names and sentences that came from a peer, a file or another program.

/// The most characters of one string that a report shows; sentences of ours are far shorter.
const MAX_CHARS: usize = 600;

/// `text` without anything that could steer a terminal or reorder what is read.
///
/// Control characters (line breaks and escapes among them), bidirectional controls and invisible characters
/// appear as visible escapes such as `\u{1b}`; what exceeds 600 characters is cut off with `…`.
///
/// ```
/// assert_eq!(weaklink::report::clean("eth0\u{1b}[2J"), "eth0\\u{1b}[2J");
/// ```
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(4 * MAX_CHARS));
    for (position, character) in text.trim().chars().enumerate() {
        if position >= MAX_CHARS {
            out.push('…');
            break;
        }
        if is_hostile(character) {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out
}

/// `text` in ASCII, for terminals without more: the signs that weaklink itself uses in words, others as `?`.
pub(super) fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '→' => out.push_str("->"),
            '←' => out.push_str("<-"),
            '…' => out.push_str("..."),
            '≤' => out.push_str("<="),
            '≥' => out.push_str(">="),
            'µ' | 'μ' => out.push('u'),
            '×' => out.push('x'),
            '—' | '–' | '−' | '▃' => out.push('-'),
            '·' => out.push('|'),
            '±' => out.push_str("+-"),
            '≈' => out.push('~'),
            '‘' | '’' => out.push('\''),
            '“' | '”' => out.push('"'),
            // The series over time, from little to much; the third of them is a dash too.
            '▁' => out.push('.'),
            '▂' => out.push(':'),
            '▄' => out.push('='),
            '▅' => out.push('+'),
            '▆' => out.push('*'),
            '▇' => out.push('%'),
            '█' => out.push('#'),
            c if c.is_ascii() => out.push(c),
            _ => out.push('?'),
        }
    }
    out
}

/// Whether a character acts on the reader's screen instead of being read.
pub(super) const fn is_hostile(character: char) -> bool {
    matches!(character,
        // C0, DEL and C1: escapes, line breaks, bells.
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        // Invisible: soft hyphen, Mongolian vowel separator, Hangul fillers, zero width, word joiner and invisible operators.
        | '\u{ad}' | '\u{180e}' | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}'
        | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{feff}'
        // Bidirectional marks, embeddings, overrides and isolates.
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
        // Line and paragraph separators, interlinear annotations, tags.
        | '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_becomes_visible() {
        for (given, shown) in [
            ("plain name", "plain name"),
            ("  edges \n", "edges"),
            ("\u{1b}]0;owned\u{7}", "\\u{1b}]0;owned\\u{7}"),
            ("a\nb\tc", "a\\nb\\tc"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("txt.\u{202e}exe", "txt.\\u{202e}exe"),
            ("zero\u{200b}width", "zero\\u{200b}width"),
            ("Größe 1 µs → ok", "Größe 1 µs → ok"),
        ] {
            assert_eq!(clean(given), shown);
        }
    }

    #[test]
    fn a_long_string_is_cut_with_a_mark() {
        let shown = clean(&"x".repeat(1_000_000));
        assert_eq!(shown.chars().count(), MAX_CHARS + 1);
        assert!(shown.ends_with('…'));
    }

    #[test]
    fn ascii_keeps_the_meaning_of_our_own_signs() {
        assert_eq!(ascii("PC → NAS ≤ 5 µs · ü"), "PC -> NAS <= 5 us | ?");
    }
}
