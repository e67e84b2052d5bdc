//! The view on a terminal.

use comfy_table::{ColumnConstraint, ContentArrangement, ContentLineStyle, LineStyle, TableStyle, Width};

use super::render::Style;
use super::view::{Bar, Block, Item, Table, Tone, View};
use super::wrap::{columns, pad, pad_left, unglue, wrap};

/// The least width that is worked with.
const LEAST_WIDTH: usize = 40;
/// The most columns of prose: longer lines are hard to read.
const PROSE: usize = 100;

/// The least and the most columns of a full bar.
const LEAST_BAR: usize = 3;
const MOST_BAR: usize = 48;
/// The least width to which a table's column is squeezed.
const LEAST_CELL: usize = 18;

/// Calm lines: a rule below the header, space between the columns.
const UNICODE_TABLE: TableStyle = TableStyle::new()
    .header_lines(ContentLineStyle::none().junction(' '))
    .header_separator(LineStyle::none().fill('─').junction(' '))
    .content_lines(ContentLineStyle::none().junction(' '));
/// The same in ASCII.
const ASCII_TABLE: TableStyle = TableStyle::new()
    .header_lines(ContentLineStyle::none().junction(' '))
    .header_separator(LineStyle::none().fill('-').junction(' '))
    .content_lines(ContentLineStyle::none().junction(' '));

/// The whole text.
pub(super) fn write(view: &View, style: &Style) -> String {
    let mut page = Page { out: String::new(), style: *style, width: style.width.max(LEAST_WIDTH) };
    for block in &view.blocks {
        page.block(block);
    }
    let mut text = String::with_capacity(page.out.len());
    for line in page.out.lines() {
        text.push_str(unglue(line).trim_end());
        text.push('\n');
    }
    text
}

struct Page {
    out: String,
    style: Style,
    width: usize,
}

impl Page {
    fn block(&mut self, block: &Block) {
        match block {
            Block::Lead { tone, sentence, lines } => self.lead(*tone, sentence, lines),
            Block::Section(title) => self.section(title),
            Block::Note(tone, text) => {
                self.gap();
                let limit = self.prose(2);
                for line in wrap(text, limit) {
                    let line = if *tone == Tone::Plain { line } else { self.paint(&line, *tone, false) };
                    self.line(2, &line);
                }
            }
            Block::Bars { title, legend, bars } => {
                self.gap();
                self.bars_title(title, legend);
                self.bars(bars);
            }
            Block::Close { tone, sentence, advice, code } => {
                self.section("Verdict");
                let lines: Vec<String> = advice.iter().chain([code]).cloned().collect();
                self.lead(*tone, sentence, &lines);
            }
            Block::Items(items) => self.items(items),
            Block::Facts(facts) => self.facts(facts),
            Block::Table(table) => self.table(table),
        }
    }

    /// An empty line, unless the page begins here or a section's title stands right above.
    fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    fn line(&mut self, indent: usize, text: &str) {
        self.out.push_str(&" ".repeat(indent));
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn prose(&self, indent: usize) -> usize {
        self.width.min(PROSE).saturating_sub(indent)
    }

    fn lead(&mut self, tone: Tone, sentence: &str, lines: &[String]) {
        let limit = self.prose(0);
        for line in wrap(sentence, limit) {
            let line = self.paint(&line, tone, true);
            self.line(0, &line);
        }
        for text in lines {
            for line in wrap(text, self.prose(2)) {
                self.line(2, &line);
            }
        }
    }

    fn section(&mut self, title: &str) {
        self.gap();
        let rule = if self.style.unicode { "─" } else { "-" };
        // A port of a document may have any name.
        let title = wrap(title, self.prose(4)).into_iter().next().unwrap_or_default();
        let rest = self.width.min(PROSE).saturating_sub(columns(&title) + 4);
        let title = self.paint(&title, Tone::Plain, true);
        let line = format!("{} {title} {}", rule.repeat(2), rule.repeat(rest));
        self.line(0, &line);
        self.out.push('\n');
    }

    /// The legend stands beside the title where there is room, so that it costs the first screen no line.
    fn bars_title(&mut self, title: &str, legend: &str) {
        let wide = columns(title) + 3 + columns(legend);
        let shown = self.paint(title, Tone::Plain, true);
        if legend.is_empty() {
            self.line(0, &shown);
        } else if wide <= self.width.min(PROSE) {
            let line = format!("{shown}   {}", self.dim(legend));
            self.line(0, &line);
        } else {
            self.line(0, &shown);
            for line in wrap(legend, self.prose(2)) {
                let line = self.dim(&line);
                self.line(2, &line);
            }
        }
    }

    fn bars(&mut self, bars: &[Bar]) {
        let most = |of: &dyn Fn(&Bar) -> usize| bars.iter().map(of).max().unwrap_or(0);
        let mut bits = most(&|bar| columns(&bar.bits));
        let bytes = most(&|bar| columns(&bar.bytes));
        let drop = most(&|bar| columns(&bar.drop));
        // Beside the smallest bar there is always room for eight columns of the name.
        let room = self.width.saturating_sub(2 + 2 + 2 + LEAST_BAR + 1 + bytes + 2 + drop).max(8);
        let label = most(&|bar| columns(&bar.label)).min(self.width / 3).min(room);
        let rest = self.width.min(PROSE + 20).saturating_sub(2 + label + 2 + 2 + 1 + bytes + 2 + drop);
        if rest < bits + LEAST_BAR {
            bits = 0;
        }
        let length = rest.saturating_sub(bits).clamp(LEAST_BAR, MOST_BAR);
        for bar in bars {
            let painted = self.paint(&pad(&self.drawn(bar, length), length + 2), bar.tone, false);
            let lost = self.paint(&pad_left(&bar.drop, drop), bar.tone, bar.tone == Tone::Bad);
            let mut names = wrap(&bar.label, label).into_iter();
            let name = pad(&names.next().unwrap_or_default(), label);
            let line = format!(
                "{name}  {painted}{} {}  {lost}",
                pad_left(if bits > 0 { &bar.bits } else { "" }, bits),
                pad_left(&bar.bytes, bytes)
            );
            self.line(2, &line);
            for rest in names {
                self.line(4, &rest);
            }
        }
    }

    /// The bar itself: eighths of a column where the terminal has them, a mark when it runs off the scale.
    fn drawn(&self, bar: &Bar, length: usize) -> String {
        // Little is not nothing.
        let least = usize::from(bar.share > 0.0);
        let eighths = ((bar.share * length as f64 * 8.0).round() as usize).max(least);
        if !self.style.unicode {
            let filled = (eighths / 8).max(least);
            return format!("{}{}", "#".repeat(filled), if bar.beyond { ">" } else { "" });
        }
        let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"].get(eighths % 8).copied().unwrap_or_default();
        format!("{}{part}{}", "█".repeat(eighths / 8), if bar.beyond { "▸" } else { "" })
    }

    fn items(&mut self, items: &[Item]) {
        self.gap();
        let mark = items.iter().map(|item| columns(&item.mark)).max().unwrap_or(0);
        let indent = 2 + mark + 2;
        let long = items.iter().any(|item| item.lines.len() > 1);
        for (position, item) in items.iter().enumerate() {
            if long && position > 0 {
                self.gap();
            }
            let limit = self.prose(indent);
            let mut head = wrap(&item.head, limit).into_iter();
            let first = head.next().unwrap_or_default();
            let bold = item.tone != Tone::Plain;
            let line =
                format!("{}  {}", self.paint(&pad(&item.mark, mark), item.tone, bold), self.paint(&first, Tone::Plain, bold));
            self.line(2, &line);
            for rest in head {
                let rest = self.paint(&rest, Tone::Plain, bold);
                self.line(indent, &rest);
            }
            let label = item.lines.iter().map(|(label, _)| columns(label)).max().unwrap_or(0);
            let space = if label > 0 { label + 2 } else { 0 };
            let mut before = "";
            for (name, text) in &item.lines {
                let shown = if name == before { "" } else { name };
                before = name;
                let lines = self.cut(wrap(text, self.prose(indent + space)), item.most, self.prose(indent + space));
                self.below(indent, &pad(shown, space), lines);
            }
        }
    }

    /// At most so many lines, the last with a mark when more would follow: at the end of a sentence if that tells most of the
    /// line, else between two words.
    fn cut(&self, mut lines: Vec<String>, most: usize, limit: usize) -> Vec<String> {
        if lines.len() > most {
            lines.truncate(most);
            let mark = if self.style.unicode { "…" } else { "..." };
            if let Some(last) = lines.last_mut() {
                let end = last.rfind(". ").filter(|end| end * 2 >= last.len());
                if let Some(end) = end {
                    last.truncate(end + 1);
                    last.push(' ');
                }
                while columns(last) + columns(mark) > limit && !last.is_empty() {
                    last.truncate(last.rfind(' ').unwrap_or(0));
                }
                // A bracket or a list that begins here is not told.
                let open = last.rfind(['(', '“']).filter(|open| !last[*open..].contains([')', '”']));
                last.truncate(open.unwrap_or(last.len()));
                last.truncate(last.trim_end_matches([',', ';', ':']).len());
                last.push_str(mark);
            }
        }
        lines
    }

    /// A label, and a sentence whose further lines stand below its first word.
    fn hanging(&mut self, indent: usize, label: &str, text: &str) {
        let lines = wrap(text, self.prose(indent + columns(label)));
        self.below(indent, label, lines);
    }

    fn below(&mut self, indent: usize, label: &str, lines: Vec<String>) {
        for (position, line) in lines.into_iter().enumerate() {
            let before = if position == 0 { self.dim(label) } else { " ".repeat(columns(label)) };
            self.line(indent, &format!("{before}{line}"));
        }
    }

    fn facts(&mut self, facts: &[(String, String)]) {
        self.gap();
        let label = facts.iter().map(|(name, _)| columns(name)).max().unwrap_or(0).min(self.width / 3);
        for (name, value) in facts {
            let mut names = wrap(name, label).into_iter();
            let first = names.next().unwrap_or_default();
            let rest: Vec<_> = names.collect();
            if rest.is_empty() {
                self.hanging(2, &pad(&first, label + 2), value);
            } else {
                for name in wrap(name, self.prose(2)) {
                    let name = self.dim(&name);
                    self.line(2, &name);
                }
                self.hanging(4, "", value);
            }
        }
    }

    fn table(&mut self, table: &Table) {
        self.gap();
        let Some(widths) = self.column_widths(table) else { return self.records(table) };
        let mut drawn = comfy_table::Table::new();
        drawn
            .load_style(if self.style.unicode { UNICODE_TABLE } else { ASCII_TABLE })
            .force_no_tty()
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(u16::try_from(self.width.saturating_sub(2)).unwrap_or(u16::MAX))
            .set_header(&table.header)
            .add_rows(without_repeats(&table.rows));
        for (column, width) in drawn.column_iter_mut().zip(widths) {
            column.set_padding((0, 1));
            let fixed = u16::try_from(width + 1).unwrap_or(u16::MAX);
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(fixed)));
        }
        for line in drawn.lines() {
            self.line(2, &line);
        }
    }

    /// The columns' widths, or none when there is no room: names may break between words, and the widest columns may wrap.
    fn column_widths(&self, table: &Table) -> Option<Vec<usize>> {
        let longest_word = |text: &String| text.split(' ').map(columns).max().unwrap_or(0);
        let width = |column: usize, name: usize, of: &dyn Fn(&String) -> usize| {
            table.rows.iter().filter_map(|row| row.get(column)).map(of).chain([name, 1]).max().unwrap_or(1)
        };
        let names = || table.header.iter().enumerate();
        let room = self.width.checked_sub(2 + 2 * table.header.len())?;
        let whole: Vec<_> = names().map(|(at, name)| width(at, columns(name), &|cell| columns(cell))).collect();
        if whole.iter().sum::<usize>() <= room {
            return Some(whole);
        }
        let mut tight: Vec<_> = names().map(|(at, name)| width(at, longest_word(name), &|cell| columns(cell))).collect();
        // No word breaks: a series over time would tell something else.
        let least: Vec<_> = names().map(|(at, name)| width(at, longest_word(name), &longest_word).max(LEAST_CELL)).collect();
        while tight.iter().sum::<usize>() > room {
            let (widest, _) =
                tight.iter_mut().zip(&least).filter(|(width, least)| **width > **least).max_by_key(|(width, _)| **width)?;
            *widest -= 1;
        }
        Some(tight)
    }

    /// A table that is too wide, one block of names and values for each row.
    fn records(&mut self, table: &Table) {
        let label = table.header.iter().skip(1).map(|name| columns(name)).max().unwrap_or(0);
        let mut before = None;
        for row in &table.rows {
            if row.first() != before {
                for head in wrap(row.first().map_or("", String::as_str), self.prose(2)) {
                    let head = self.paint(&head, Tone::Plain, true);
                    self.line(2, &head);
                }
            }
            before = row.first();
            for (name, cell) in table.header.iter().zip(row).skip(1).filter(|(_, cell)| !cell.is_empty()) {
                self.hanging(4, &pad(name, label + 2), cell);
            }
        }
    }

    fn dim(&self, text: &str) -> String {
        if self.style.color && !text.trim().is_empty() { format!("\u{1b}[2m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// The only place, with `dim`, where escapes come from.
    fn paint(&self, text: &str, tone: Tone, bold: bool) -> String {
        let code = match (tone, bold) {
            (Tone::Plain, false) => return text.to_owned(),
            (Tone::Plain, true) => "1",
            (Tone::Good, false) => "32",
            (Tone::Good, true) => "1;32",
            (Tone::Warning, false) => "33",
            (Tone::Warning, true) => "1;33",
            (Tone::Bad, false) => "31",
            (Tone::Bad, true) => "1;31",
        };
        if self.style.color && !text.trim().is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Rows whose first cell is empty where it would only repeat the one above.
fn without_repeats(rows: &[Vec<String>]) -> Vec<Vec<String>> {
    let mut shown = rows.to_vec();
    for (row, pair) in shown.iter_mut().skip(1).zip(rows.windows(2)) {
        if let ([above, own], Some(first)) = (pair, row.first_mut())
            && above.first() == own.first()
        {
            first.clear();
        }
    }
    shown
}
