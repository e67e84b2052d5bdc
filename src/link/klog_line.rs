//! One line of the kernel's log: its time, its text, and what it says of a port. Pure; any bytes are survived.

use crate::model::link_event::EventKind;
use crate::units::{BitRate, Elapsed};

/// The most characters that are kept of a line.
const LONGEST: usize = 240;

/// One line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// When it was written, since the kernel started.
    pub at_us: Option<Elapsed>,
    /// What it says, printable ASCII only.
    pub text: String,
    /// The device that the record names: `0000:22:00.0`, `1-1`.
    pub device: Option<String>,
}

impl Line {
    /// Reads a record of `/dev/kmsg` (`6,1234,5678901,-;text`, with ` DEVICE=+pci:0000:22:00.0` behind it) or a line of `dmesg`, with or
    /// without the level in front and the time; none for lines that programs wrote into the log, and for those without a text.
    pub(super) fn parse(record: &[u8]) -> Option<Self> {
        let mut parts = record.split(|byte| *byte == b'\n');
        let first = parts.next()?;
        if let Some((prefix, text)) = split(first, b';')
            && let Some((level, at_us)) = prefix_of(prefix)
        {
            // The kernel's own lines have facility 0; whatever else writes there may claim anything.
            let device = parts.find_map(|part| device_of(part.strip_prefix(b" DEVICE=")?));
            return Self { at_us, text: clean(text), device }.filled().filter(|_| level < 8);
        }
        let (level, rest) = level_of(first);
        let (at_us, text) = time_of(rest);
        Self { at_us, text: clean(text), device: None }.filled().filter(|_| level < 8)
    }

    fn filled(self) -> Option<Self> {
        (!self.text.is_empty()).then_some(self)
    }

    /// The words of the text without the signs around them.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        let words = self.text.split([' ', ',']);
        words
            .map(|word| word.trim_matches(|c| matches!(c, '(' | ')' | '[' | ']' | ';')).trim_end_matches([':', ')']))
            .filter(|word| !word.is_empty())
    }
}

fn split(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = bytes.iter().position(|byte| *byte == at)?;
    Some((bytes.get(..place)?, bytes.get(place + 1..)?))
}

fn number(bytes: &[u8]) -> Option<u64> {
    std::str::from_utf8(bytes).ok()?.trim().parse().ok()
}

/// `6,1234,5678901,-`: the level with its facility, and the time in microseconds.
fn prefix_of(prefix: &[u8]) -> Option<(u64, Option<Elapsed>)> {
    let mut fields = prefix.split(|byte| *byte == b',');
    let (level, _sequence, time) = (number(fields.next()?)?, number(fields.next()?)?, number(fields.next()?)?);
    Some((level, Some(Elapsed(time))))
}

/// `<6>` in front of a line.
fn level_of(line: &[u8]) -> (u64, &[u8]) {
    let told = || {
        let (level, rest) = split(line.strip_prefix(b"<")?, b'>')?;
        Some((number(level)?, rest))
    };
    told().unwrap_or((0, line))
}

/// `[  136.232732]` or `[  136.232732][   T12]` in front of a line.
fn time_of(line: &[u8]) -> (Option<Elapsed>, &[u8]) {
    let told = || {
        let (time, rest) = split(line.trim_ascii_start().strip_prefix(b"[")?, b']')?;
        let (seconds, fraction) = split(time, b'.')?;
        let fraction = fraction.get(..6).filter(|_| fraction.len() == 6)?;
        let us = number(seconds)?.checked_mul(1_000_000)?.checked_add(number(fraction)?)?;
        let rest = rest.strip_prefix(b"[").and_then(|caller| split(caller, b']')).map_or(rest, |(_, rest)| rest);
        Some((Some(Elapsed(us)), rest))
    };
    told().unwrap_or((None, line))
}

/// `+pci:0000:22:00.0`, `+usb:1-1`, `+platform:fd580000.ethernet`; numbers of block and network devices name no place.
fn device_of(value: &[u8]) -> Option<String> {
    let (_, place) = split(value.strip_prefix(b"+")?, b':')?;
    Some(clean(place)).filter(|place| !place.is_empty())
}

/// Printable ASCII, everything else as `?`, cut.
fn clean(text: &[u8]) -> String {
    let text = text.trim_ascii();
    let printable = text.iter().take(LONGEST).map(|byte| if (b' '..=b'~').contains(byte) { char::from(*byte) } else { '?' });
    printable.collect()
}

/// What a line says of a port; none for all the others.
///
/// The wordings are those of the kernel's PHY core, bonding, USB and PCI code, and of the drivers r8169, r8152, igb, igc, e1000e, ixgbe, i40e,
/// ice, atlantic, tg3, bnx2x, bnxt_en, bna, mlx4, mlx5, cdc_ncm, ax88179_178a, stmmac and vmxnet3, as their sources and logs have them.
pub(super) fn kind(text: &str) -> Option<EventKind> {
    let text = text.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let all = |words: &[&str]| words.iter().all(|word| text.contains(word));
    if all(&["downshift occurred"]) {
        return Some(EventKind::Downshift([speed_after(&text, "negotiated speed"), speed_after(&text, "actual speed")]));
    }
    if all(&["link is up", "(downshifted)"]) {
        return Some(EventKind::Downshift([None, speed(&text)]));
    }
    if all(&["smartspeed", "downgraded"]) {
        return Some(EventKind::Downshift([None, None]));
    }
    if all(&["transmit queue", "timed out"]) || has(&["tx timeout", "transmit timeout", "tx_timeout:"]) {
        return Some(EventKind::TxTimeout);
    }
    bus(&text).or_else(|| bond(&text)).or_else(|| {
        if has(&["hardware unit hang", "reset adapter", "tx unit hang", "resetting adapter"]) {
            Some(EventKind::Reset)
        } else if all(&["adapter", "overheated"]) || all(&["adapter", "over heated"]) {
            Some(EventKind::Overheated)
        } else if text.contains("autonegotiated half duplex") {
            Some(EventKind::HalfDuplexAssumed)
        } else {
            link(&text)
        }
    })
}

fn bus(text: &str) -> Option<EventKind> {
    let all = |words: &[&str]| words.iter().all(|word| text.contains(word));
    if all(&["pcie bandwidth", "limited by"]) {
        return Some(EventKind::BusLimited(speed(text)));
    }
    if text.contains("pcie link lost") || text.contains("pci link is down") || text.contains("usb disconnect") {
        return Some(EventKind::Gone);
    }
    if text.contains("pcie bus error") || (all(&["aer:", "error"]) && text.contains("received")) {
        let uncorrected = text.contains("uncorrect") || text.contains("fatal");
        return Some(if uncorrected { EventKind::BusError } else { EventKind::BusErrorCorrected });
    }
    if !text.starts_with("usb ") {
        return None;
    }
    if text.contains("not running at top speed") {
        Some(EventKind::UsbSlow)
    } else if all(&[": reset ", "usb device"]) {
        Some(EventKind::UsbReset(usb_speed(text)))
    } else if all(&[": new ", "usb device"]) {
        Some(EventKind::UsbAttached(usb_speed(text)))
    } else {
        None
    }
}

/// The word for a speed of USB; `superspeed plus gen 2x1` and `superspeed+` are 10 Gbit/s.
fn usb_speed(text: &str) -> Option<BitRate> {
    const WORDS: [(&str, u64); 8] = [
        ("gen 2x2", 20_000),
        ("superspeed plus", 10_000),
        ("superspeedplus", 10_000),
        ("superspeed+", 10_000),
        ("superspeed", 5_000),
        ("super speed", 5_000),
        ("high", 480),
        ("full", 12),
    ];
    WORDS.iter().find(|(word, _)| text.contains(word)).map(|(_, mbit)| BitRate::from_mbit(*mbit))
}

fn bond(text: &str) -> Option<EventKind> {
    if text.contains("link status definitely down") {
        Some(EventKind::BondPortDown)
    } else if text.contains("link status definitely up") {
        Some(EventKind::BondPortUp)
    } else if text.contains("no 802.3ad response from the link partner") {
        Some(EventKind::NoLacpPartner)
    } else if text.contains("did not find a suitable aggregator") || (text.contains("partner") && text.contains("different key"))
    {
        Some(EventKind::LacpMismatch)
    } else {
        None
    }
}

fn link(text: &str) -> Option<EventKind> {
    const DOWN: [&str; 6] =
        ["link is down", "link down", "carrier off", "network connection: disconnected", "link status is: 0", "link is inactive"];
    const UP: [&str; 7] = [
        "link is up",
        "link up",
        "nic up",
        "carrier on",
        "network connection: connected",
        "link status is: 1",
        "link becomes ready",
    ];
    // atlantic: "link change old 10000 new 0".
    if let Some((_, change)) = text.split_once("link change old ") {
        let new = change.split_once(" new ").map(|(_, new)| new.trim());
        let mbit: u64 = new?.split_whitespace().next()?.parse().ok()?;
        return Some(if mbit == 0 { EventKind::Down } else { EventKind::Up(plausible(BitRate::from_mbit(mbit))) });
    }
    if DOWN.iter().any(|word| text.contains(word)) {
        return Some(EventKind::Down);
    }
    UP.iter().any(|word| text.contains(word)).then(|| EventKind::Up(speed(text)))
}

/// A rate that an Ethernet port can have.
fn plausible(rate: BitRate) -> Option<BitRate> {
    (10_000_000..=800_000_000_000).contains(&rate.0).then_some(rate)
}

/// The first speed of a text: `1gbps/full`, `1000 mbps`, `10 gbps`, `2.5gbps`, `4.000 gb/s`.
fn speed(text: &str) -> Option<BitRate> {
    let mut words = text.split([' ', ',', '/']).filter(|word| !word.is_empty()).peekable();
    while let Some(word) = words.next() {
        let digits = word.len() - word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let (number, unit) = word.split_at(digits);
        let unit = if unit.is_empty() { words.peek().copied().unwrap_or_default() } else { unit };
        let mega = match unit.trim_end_matches([':', '.']) {
            "mbps" | "mbit" | "mb" => 1e6,
            "gbps" | "gbit" | "gb" => 1e9,
            _ => continue,
        };
        if let Ok(number) = number.parse::<f64>() {
            return plausible(BitRate((number * mega) as u64));
        }
    }
    None
}

fn speed_after(text: &str, word: &str) -> Option<BitRate> {
    speed(text.split_once(word)?.1)
}
