//! What a report says, before anyone decides what it looks like.
//!
//! Rounding, order and words are settled here and in the rooms that fill a view, so the formats cannot disagree.

use super::clean::{ascii, clean};
use super::render::Style;
use super::wrap::glue;
use super::{answer, links, machines, missing, network, path_mtu, phases, series};
use crate::model::Document;

/// The most rows of one table and items of one list that are shown; the JSON holds all.
const MAX_ROWS: usize = 60;
/// The same of a list of probes: a search sends some hundreds at most.
const MAX_PROBES: usize = 1000;

/// What stands at the end of a report that is its first screen only.
const MORE: &str = "`--details` shows the rest: what held each pass back, round trips, costs, processors, links, hosts; `-o FILE` saves all of it.";
/// The same of a report about links.
const MORE_OF_LINKS: &str = "`--details` shows the rest: what else each port tells and who said it, addresses, counters, hosts, what was not measured; `-o FILE` saves all of it.";

/// A report as a sequence of blocks.
#[derive(Debug, Default)]
pub(super) struct View {
    /// In the order of reading.
    pub(super) blocks: Vec<Block>,
}

/// One part of a report.
#[derive(Debug)]
pub(super) enum Block {
    /// The answer: one sentence, and short lines that belong to it.
    Lead { tone: Tone, sentence: String, lines: Vec<String> },
    /// The beginning of a section.
    Section(String),
    /// A sentence.
    Note(Tone, String),
    /// Bars of one scale under a title; the legend says what stands beside them and may be empty.
    Bars { title: String, legend: String, bars: Vec<Bar> },
    /// Things with something to say about each.
    Items(Vec<Item>),
    /// Names and values.
    Facts(Vec<(String, String)>),
    /// Rows and columns.
    Table(Table),
    /// The answer once more with what to do, for formats that are read from their end.
    Close { tone: Tone, sentence: String, advice: Vec<String>, code: String },
}

/// How something is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    /// As it should be.
    Good,
    /// Just said.
    Plain,
    /// Costs speed.
    Warning,
    /// Costs most of the speed.
    Bad,
}

/// One bar.
#[derive(Debug)]
pub(super) struct Bar {
    /// What it shows.
    pub(super) label: String,
    /// Its length from 0 to 1.
    pub(super) share: f64,
    /// Whether the value is larger than the scale.
    pub(super) beyond: bool,
    /// The value in bits, where that is the field's unit.
    pub(super) bits: String,
    /// The value in bytes.
    pub(super) bytes: String,
    /// What is lost here.
    pub(super) drop: String,
    /// How the loss is meant.
    pub(super) tone: Tone,
}

/// One thing with something to say about it.
#[derive(Debug)]
pub(super) struct Item {
    /// How it is meant.
    pub(super) tone: Tone,
    /// A word before it; may be empty.
    pub(super) mark: String,
    /// What it is.
    pub(super) head: String,
    /// What there is to say: a label, which may be empty, and a sentence.
    pub(super) lines: Vec<(String, String)>,
    /// The most lines that one of these sentences takes on a terminal; the rest is cut off.
    pub(super) most: usize,
}

/// Rows and columns.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// The columns' names.
    pub(super) header: Vec<String>,
    /// The rows, each as long as the header.
    pub(super) rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    pub(super) fn new(header: &[&str]) -> Self {
        Self { header: header.iter().map(|&name| name.to_owned()).collect(), rows: Vec::new() }
    }

    /// Columns in which no row says anything are left out.
    fn without_empty_columns(self) -> Self {
        let said = |column: usize| self.rows.iter().any(|row| row.get(column).is_some_and(|cell| !cell.is_empty()));
        let keep: Vec<bool> = (0..self.header.len()).map(said).collect();
        let filter = |cells: Vec<String>| cells.into_iter().zip(&keep).filter(|(_, keep)| **keep).map(|(cell, _)| cell).collect();
        Self { rows: self.rows.into_iter().map(&filter).collect(), header: filter(self.header) }
    }
}

impl View {
    /// Everything that there is to say about `document`, with all foreign strings made harmless.
    pub(super) fn of(document: &Document, style: &Style) -> Self {
        let mut view = Self::default();
        if document.plan.scope.is_mtu() {
            view.fill_mtu(document, style);
        } else if document.plan.scope.is_throughput() {
            view.fill_throughput(document, style);
        } else if document.plan.scope.is_link() {
            view.fill_links(document, style);
        } else {
            view.fill(document, style);
        }
        view.each_string(&|text| glue(&if style.unicode { clean(text) } else { ascii(&clean(text)) }));
        view
    }

    /// A whole diagnosis.
    fn fill(&mut self, document: &Document, style: &Style) {
        answer::first_screen(document, self);
        answer::details(document, self);
        machines::hosts(document, self);
        network::links(document, self);
        phases::log(document, self);
        links::spreads(document, self);
        links::ports(document, self);
        path_mtu::section(document, style, self);
        network::throughput(document, self);
        machines::storage(document, self);
        machines::copies(document, self);
        machines::about_rates(document, self);
        phases::counters(document, self);
        series::over_time(document, self);
        machines::cpu(document, self);
        missing::section(document, self);
        answer::run(document, self);
        answer::last_words(document, self);
    }

    /// The path MTU alone.
    fn fill_mtu(&mut self, document: &Document, style: &Style) {
        answer::first_screen(document, self);
        answer::details(document, self);
        path_mtu::section(document, style, self);
        network::links(document, self);
        phases::log(document, self);
        missing::section(document, self);
        answer::run(document, self);
        answer::last_words(document, self);
    }

    /// Raw rates alone: one screen, and the rest where it is wanted.
    fn fill_throughput(&mut self, document: &Document, style: &Style) {
        answer::first_screen(document, self);
        if !style.details {
            answer::every_finding(document, self);
            if document.measurements.throughput.measured().is_none() {
                missing::section(document, self);
            }
            return self.note(Tone::Plain, MORE);
        }
        answer::details(document, self);
        network::throughput(document, self);
        series::over_time(document, self);
        machines::cpu(document, self);
        network::links(document, self);
        phases::log(document, self);
        path_mtu::section(document, style, self);
        machines::hosts(document, self);
        missing::section(document, self);
        answer::run(document, self);
        answer::last_words(document, self);
    }

    /// The links alone: one screen, and the rest where it is wanted.
    fn fill_links(&mut self, document: &Document, style: &Style) {
        answer::first_screen(document, self);
        if !style.details {
            answer::every_finding(document, self);
            if document.measurements.link.measured().is_none_or(|section| section.pc.measured().is_none()) {
                missing::section(document, self);
            }
            return self.note(Tone::Plain, MORE_OF_LINKS);
        }
        answer::details(document, self);
        network::links(document, self);
        phases::log(document, self);
        links::spreads(document, self);
        links::ports(document, self);
        links::addresses(document, self);
        network::throughput(document, self);
        machines::hosts(document, self);
        missing::section(document, self);
        answer::run(document, self);
        answer::last_words(document, self);
    }

    /// Begins a section.
    pub(super) fn section(&mut self, title: &str) {
        self.blocks.push(Block::Section(title.to_owned()));
    }

    /// Says a sentence.
    pub(super) fn note(&mut self, tone: Tone, text: impl Into<String>) {
        self.blocks.push(Block::Note(tone, text.into()));
    }

    /// Adds a table, if it has rows.
    pub(super) fn table(&mut self, table: Table) {
        self.rows(table, MAX_ROWS);
    }

    /// Adds a table that was asked for with all its rows.
    pub(super) fn whole_table(&mut self, table: Table) {
        self.rows(table, MAX_PROBES);
    }

    fn rows(&mut self, mut table: Table, most: usize) {
        if table.rows.is_empty() {
            return;
        }
        let more = table.rows.len().saturating_sub(most);
        table.rows.truncate(most);
        self.blocks.push(Block::Table(table.without_empty_columns()));
        self.left_out(more);
    }

    /// Adds names and values, those without a value left out.
    pub(super) fn facts(&mut self, mut facts: Vec<(String, String)>) {
        facts.retain(|(_, value)| !value.is_empty());
        let more = facts.len().saturating_sub(MAX_ROWS);
        facts.truncate(MAX_ROWS);
        if !facts.is_empty() {
            self.blocks.push(Block::Facts(facts));
        }
        self.left_out(more);
    }

    /// Adds items, if there are any.
    pub(super) fn items(&mut self, mut items: Vec<Item>) {
        let more = items.len().saturating_sub(MAX_ROWS);
        items.truncate(MAX_ROWS);
        for item in &mut items {
            item.lines.truncate(MAX_ROWS);
        }
        if !items.is_empty() {
            self.blocks.push(Block::Items(items));
        }
        self.left_out(more);
    }

    fn left_out(&mut self, more: usize) {
        if more > 0 {
            self.note(Tone::Plain, format!("{more} more are in the JSON report."));
        }
    }

    /// The one place that every string passes on its way to a writer.
    fn each_string(&mut self, change: &dyn Fn(&str) -> String) {
        let apply = |text: &mut String| *text = change(text);
        for block in &mut self.blocks {
            match block {
                Block::Lead { sentence, lines, .. } => {
                    apply(sentence);
                    lines.iter_mut().for_each(apply);
                }
                Block::Section(text) | Block::Note(_, text) => apply(text),
                Block::Close { sentence, advice, code, .. } => {
                    apply(sentence);
                    advice.iter_mut().for_each(apply);
                    apply(code);
                }
                Block::Bars { title, legend, bars } => {
                    apply(title);
                    apply(legend);
                    for bar in bars {
                        [&mut bar.label, &mut bar.bits, &mut bar.bytes, &mut bar.drop].into_iter().for_each(apply);
                    }
                }
                Block::Items(items) => {
                    for item in items {
                        apply(&mut item.mark);
                        apply(&mut item.head);
                        item.lines.iter_mut().for_each(|(label, text)| {
                            apply(label);
                            apply(text);
                        });
                    }
                }
                Block::Facts(facts) => facts.iter_mut().for_each(|(name, value)| {
                    apply(name);
                    apply(value);
                }),
                Block::Table(table) => {
                    table.header.iter_mut().for_each(apply);
                    table.rows.iter_mut().flatten().for_each(apply);
                }
            }
        }
    }
}

pub(super) use crate::units::percent;

/// A value with a word for its absence.
pub(super) fn or_unknown<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "not known".to_owned(), |value| value.to_string())
}
