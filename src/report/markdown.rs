//! The view as GitHub's markdown, for a ticket.

use std::fmt::Write as _;

use super::view::{Bar, Block, Item, Table, View};
use super::wrap::unglue;

/// The length of the longest bar in characters.
const BAR: f64 = 20.0;

/// The whole text.
pub(super) fn write(view: &View) -> String {
    let mut out = String::new();
    // A ticket is read from its beginning: it needs no repetition at its end.
    for block in view.blocks.iter().filter(|block| !matches!(block, Block::Close { .. })) {
        if !out.is_empty() {
            out.push('\n');
        }
        match block {
            Block::Lead { sentence, lines, .. } => {
                line(&mut out, &format!("**{}**", prose(sentence)));
                for text in lines {
                    out.push('\n');
                    line(&mut out, &prose(text));
                }
            }
            Block::Section(title) => line(&mut out, &format!("## {}", escape(title))),
            Block::Note(_, text) => line(&mut out, &prose(text)),
            Block::Bars { title, legend, bars } => {
                ladder(&mut out, title, bars);
                if !legend.is_empty() {
                    out.push('\n');
                    line(&mut out, &prose(legend));
                }
            }
            Block::Close { .. } => {}
            Block::Items(items) => items.iter().for_each(|item| list_item(&mut out, item)),
            Block::Facts(facts) => {
                for (name, value) in facts {
                    line(&mut out, &format!("- {}: {}", escape(name), escape(value)));
                }
            }
            Block::Table(table) => rows(&mut out, table),
        }
    }
    out
}

fn line(out: &mut String, text: &str) {
    out.push_str(text.trim_end());
    out.push('\n');
}

fn ladder(out: &mut String, title: &str, bars: &[Bar]) {
    line(out, &format!("### {}", escape(title)));
    out.push_str("\n| rung | | rate | lost |\n|---|---|--:|--:|\n");
    for bar in bars {
        let least = usize::from(bar.share > 0.0);
        let drawn = "█".repeat(((bar.share * BAR).round() as usize).max(least));
        let beyond = if bar.beyond { "▸" } else { "" };
        let rate = if bar.bits.is_empty() { escape(&bar.bytes) } else { escape(&format!("{} {}", bar.bits, bar.bytes)) };
        let _ = writeln!(out, "| {} | {drawn}{beyond} | {rate} | {} |", escape(&bar.label), escape(&bar.drop));
    }
}

fn list_item(out: &mut String, item: &Item) {
    let mark = if item.mark.is_empty() { String::new() } else { format!("**{}** ", escape(&item.mark)) };
    line(out, &format!("- {mark}{}", prose(&item.head)));
    for (label, text) in &item.lines {
        let label = if label.is_empty() { String::new() } else { format!("*{}*: ", escape(label)) };
        line(out, &format!("  - {label}{}", prose(text)));
    }
}

fn rows(out: &mut String, table: &Table) {
    let row = |cells: &[String]| format!("| {} |", cells.iter().map(|cell| escape(cell)).collect::<Vec<_>>().join(" | "));
    line(out, &row(&table.header));
    line(out, &format!("|{}", "---|".repeat(table.header.len())));
    for cells in &table.rows {
        line(out, &row(cells));
    }
}

/// A sentence: commands between backticks become code, everything else is shown as it is.
fn prose(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // An even number of backticks leaves an odd number of parts, every second of which is what they enclose.
    let codes = parts.iter().skip(1).step_by(2).all(|part| is_command(part));
    // Two commands without anything between them would be one with backticks in it.
    let apart = parts.iter().step_by(2).skip(1).rev().skip(1).all(|part| !part.is_empty());
    let balanced = parts.len() % 2 == 1 && codes && apart;
    if !balanced {
        return escape(text);
    }
    let mut out = String::new();
    for (position, part) in parts.iter().enumerate() {
        if position % 2 == 1 {
            let _ = write!(out, "`{}`", unglue(part));
        } else if position == 0 {
            out.push_str(&escape(part));
        } else {
            out.push_str(&inline(part));
        }
    }
    out
}

/// Whether a text may stand as code: nothing in it ends a cell or the code, and it is no longer than a command of ours.
fn is_command(text: &str) -> bool {
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '\u{a0}' | '-' | '_' | '.' | '/' | ':' | '=' | ',' | '+' | '%');
    let edges = text.starts_with(' ') || text.ends_with(' ');
    !text.is_empty() && text.len() <= 80 && !edges && text.chars().all(plain)
}

/// `text` as it is, whatever signs it holds: none of them formats, links, mentions, ends a cell or begins a list.
fn escape(text: &str) -> String {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = text.get(digits..).unwrap_or_default();
    let begins_list = match digits {
        0 => text.starts_with(['-', '+', '=']),
        _ => rest.starts_with(['.', ')']) && rest.get(1..).is_none_or(|after| after.is_empty() || after.starts_with(' ')),
    };
    let (number, rest) = text.split_at(if begins_list { digits } else { 0 });
    let sign = if begins_list { "\\" } else { "" };
    format!("{number}{sign}{}", inline(rest))
}

/// The signs of a text that does not begin a line.
fn inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let after = &rest[character.len_utf8()..];
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // Mentions of people and of issues.
            '@' => out.push_str("&#64;"),
            '#' => out.push_str("&#35;"),
            // Bare addresses become links.
            ':' if after.starts_with("//") => out.push_str("&#58;"),
            '.' if ends_with_www(&out) => out.push_str("&#46;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '$' => {
                out.push('\\');
                out.push(character);
            }
            other => out.push(other),
        }
        rest = after;
    }
    unglue(&out)
}

fn ends_with_www(text: &str) -> bool {
    let at = text.len().saturating_sub(3);
    text.get(at..).is_some_and(|end| end.eq_ignore_ascii_case("www"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_foreign_text_formats_or_links() {
        for (given, written) in [
            ("a|b", "a\\|b"),
            ("`code`", "\\`code\\`"),
            ("<script>", "&lt;script&gt;"),
            ("[x](y)", "\\[x\\](y)"),
            ("@team #12", "&#64;team &#35;12"),
            ("http://x", "http&#58;//x"),
            ("WWW.x.org", "WWW&#46;x.org"),
            ("# title", "&#35; title"),
            ("- item", "\\- item"),
            ("1. item", "1\\. item"),
            ("---", "\\---"),
            ("a\\|b", "a\\\\\\|b"),
            ("2.35 Gbit/s", "2.35 Gbit/s"),
            ("network.loss, 2.35 Gbit/s", "network.loss, 2.35 Gbit/s"),
        ] {
            assert_eq!(escape(given), written);
        }
    }

    #[test]
    fn only_a_plain_command_between_two_backticks_becomes_code() {
        for (given, written) in [
            ("Run `weaklink explain CODE`, then `x_y`.", "Run `weaklink explain CODE`, then `x_y`."),
            ("one ` alone", "one \\` alone"),
            ("``a``", "\\`\\`a\\`\\`"),
            ("`a|b`", "\\`a\\|b\\`"),
            ("`a` <b> `c`", "`a` &lt;b&gt; `c`"),
            ("`a``b`", "\\`a\\`\\`b\\`"),
            ("a_b `c", "a\\_b \\`c"),
        ] {
            assert_eq!(prose(given), written, "{given}");
        }
    }
}
