//! Decodes a card's own link of PCI Express in what `pciconf -l -c NAME` prints (FreeBSD).

use super::ifconfig::cut;
use super::list;
use crate::link::pcie::Lanes;
use crate::model::link::Bus;
use crate::model::outcome::Source;

/// The most lines that are looked at: a card has some dozens of capabilities.
const LINES: usize = 256;

/// The bus of the card; none where the output names no link of PCI Express.
///
/// `link x1(x1) speed 5.0(5.0) ASPM L1(L1)`: width and speed in GT/s now, and in brackets the most; the states of power management
/// that are on, and in brackets those that could be. Bridges above the card are not shown, so only the card's own link counts.
pub(super) fn decode(text: &str) -> Option<Bus> {
    let mut lines = text.lines().take(LINES);
    let place = lines.next()?.split_once('@')?.1.split_whitespace().next()?.trim_end_matches(':');
    let line = lines.map(str::trim).find(|line| line.starts_with("link x"))?;
    let mut words = line.split_whitespace().skip(1);
    let (width, most_width) = pair(words.next()?);
    let (speed, most_speed) = if words.next() == Some("speed") { pair(words.next()?) } else { ("", "") };
    let now = lanes(speed, width)?;
    let most = lanes(most_speed, most_width);
    let aspm = (words.next() == Some("ASPM")).then(|| words.next().map(|word| pair(word).0)).flatten();
    let aspm = aspm.map(|states| if states == "disabled" { "off".to_owned() } else { cut(&states.replace('/', ", ")) });
    Some(list::own_link(now, most, place, aspm, Source::Pciconf))
}

/// `x1(x4)` in two.
fn pair(word: &str) -> (&str, &str) {
    let (now, most) = word.split_once('(').unwrap_or((word, ""));
    (now, most.trim_end_matches(')'))
}

fn lanes(speed: &str, width: &str) -> Option<Lanes> {
    let giga: f64 = speed.parse().ok()?;
    let width: u32 = width.trim_start_matches('x').parse().ok()?;
    ((1.0..=256.0).contains(&giga) && (1..=32).contains(&width)).then_some(Lanes { giga, width })
}
