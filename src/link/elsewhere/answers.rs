//! The lines that our script for PowerShell prints: the name of a part, a space, and JSON.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// More lines than these are not looked at.
const LINES: usize = 64;
/// More things of one part are not kept: adapters, or properties of all adapters.
const THINGS: usize = 4096;
/// The longest text that is kept, in characters.
const TEXT: usize = 255;

/// A thing and its fields.
pub(super) type Thing = Map<String, Value>;

/// What each part told; a part whose JSON is broken, or that did not come in time, is not there.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    parts: BTreeMap<String, Vec<Thing>>,
    /// The parts whose JSON could not be read.
    broken: Vec<String>,
}

impl Answers {
    /// Reads all lines; what is none of ours is passed over.
    pub(super) fn read(text: &str) -> Self {
        let mut all = Self::default();
        for line in text.trim_start_matches('\u{feff}').lines().take(LINES) {
            let Some((part, json)) = line.trim().split_once(' ') else { continue };
            if part.is_empty() || part.len() > 32 || !part.chars().all(|c| c.is_ascii_lowercase() || c == '-') {
                continue;
            }
            match serde_json::from_str(json) {
                Ok(value) => {
                    let things = all.parts.entry(part.to_owned()).or_default();
                    gather(value, things, 0);
                }
                Err(_) => all.broken.push(part.to_owned()),
            }
        }
        all
    }

    /// The things of a part; none where it gave no answer.
    pub(super) fn part(&self, part: &str) -> Option<&[Thing]> {
        self.parts.get(part).map(Vec::as_slice)
    }

    /// Why a part has no answer.
    pub(super) fn why(&self, part: &str, command: &str) -> String {
        if self.broken.iter().any(|known| known == part) {
            format!("what PowerShell's {command} printed is no JSON that weaklink can read")
        } else {
            format!("PowerShell's {command} gave no answer: it is missing here, needs an administrator, or took too long")
        }
    }
}

/// The objects of a value: a list's, one that stands for itself, or those in the wrapping `{"value": […], "Count": n}` that
/// PowerShell 5 puts around some lists.
fn gather(value: Value, things: &mut Vec<Thing>, depth: u8) {
    match value {
        Value::Array(list) if depth < 3 => list.into_iter().for_each(|value| gather(value, things, depth + 1)),
        Value::Object(mut object) => {
            let wraps = object.len() == 2 && object.contains_key("Count");
            match object.get_mut("value").filter(|value| wraps && value.is_array() && depth < 3) {
                Some(list) => gather(list.take(), things, depth + 1),
                None if things.len() < THINGS => things.push(object),
                None => {}
            }
        }
        _ => {}
    }
}

/// A field's text, cut; numbers in digits. None where it is empty.
pub(super) fn text(thing: &Thing, field: &str) -> Option<String> {
    word(thing.get(field)?)
}

fn word(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().chars().take(TEXT).collect(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    };
    (!text.is_empty()).then_some(text)
}

/// A field's number, which may stand in a text.
pub(super) fn number(thing: &Thing, field: &str) -> Option<u64> {
    match thing.get(field)? {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// The same where it is small.
pub(super) fn small(thing: &Thing, field: &str) -> Option<u32> {
    number(thing, field).and_then(|number| u32::try_from(number).ok())
}

/// A field's truth.
pub(super) fn flag(thing: &Thing, field: &str) -> Option<bool> {
    match thing.get(field)? {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// A field's texts: a list's, or the one that stands for itself.
pub(super) fn list(thing: &Thing, field: &str, most: usize) -> Vec<String> {
    match thing.get(field) {
        Some(Value::Array(values)) => values.iter().filter_map(word).take(most).collect(),
        Some(Value::Object(wrapping)) => match wrapping.get("value") {
            Some(Value::Array(values)) => values.iter().filter_map(word).take(most).collect(),
            _ => Vec::new(),
        },
        Some(value) => word(value).into_iter().collect(),
        None => Vec::new(),
    }
}
