//! Units as types. This is the only place where bits meet bytes.
//!
//! Rates of links are in bits a second and rates of disks and copies in bytes a second, as the
//! field writes them. Prefixes are decimal: 1 MB is 1,000,000 bytes, 2.5G is 2,500,000,000 bit/s.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A rate in bits a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BitRate(pub u64);

/// A rate in bytes a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ByteRate(pub u64);

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ByteSize(pub u64);

/// The size in bytes of the largest IP packet, headers of IP included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mtu(pub u32);

/// A span of time, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Elapsed(pub u64);

impl BitRate {
    /// The rate of `bytes` moved in `elapsed`; zero when no time passed.
    pub fn of(bytes: ByteSize, elapsed: Duration) -> Self {
        ByteRate::of(bytes, elapsed).bits()
    }

    /// The same rate in bytes a second.
    pub const fn bytes(self) -> ByteRate {
        ByteRate(self.0 / 8)
    }

    /// The rate as a float, for arithmetic.
    pub const fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// The rate times `factor`, never negative.
    pub fn scale(self, factor: f64) -> Self {
        Self((self.as_f64() * factor).max(0.0) as u64)
    }

    /// A rate from a number of megabits a second, as the kernel's `speed` files give it.
    pub const fn from_mbit(mbit: u64) -> Self {
        Self(mbit.saturating_mul(1_000_000))
    }
}

impl ByteRate {
    /// The rate of `bytes` moved in `elapsed`; zero when no time passed.
    pub fn of(bytes: ByteSize, elapsed: Duration) -> Self {
        let seconds = elapsed.as_secs_f64();
        if seconds > 0.0 { Self((bytes.0 as f64 / seconds) as u64) } else { Self(0) }
    }

    /// The same rate in bits a second.
    pub const fn bits(self) -> BitRate {
        BitRate(self.0.saturating_mul(8))
    }
}

impl ByteSize {
    /// `n` mebibytes.
    pub const fn mib(n: u64) -> Self {
        Self(n * 1024 * 1024)
    }
}

impl Mtu {
    /// The Ethernet default.
    pub const ETHERNET: Self = Self(1500);
    /// The usual jumbo frame.
    pub const JUMBO: Self = Self(9000);
}

impl From<Duration> for Elapsed {
    fn from(value: Duration) -> Self {
        Self(u64::try_from(value.as_micros()).unwrap_or(u64::MAX))
    }
}

impl From<Elapsed> for Duration {
    fn from(value: Elapsed) -> Self {
        Self::from_micros(value.0)
    }
}

impl Elapsed {
    /// The span in seconds.
    pub const fn seconds(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

/// Three significant figures: 2.35, 941, 29.4.
fn significant(value: f64) -> String {
    let text = if value >= 99.95 {
        format!("{value:.0}")
    } else if value >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A share in per cents, rounded alike wherever it is told: `12 %`, `2.3 %`, `0.05 %`, `under 0.01 %`; nothing where it is no number.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    let decimals = match value {
        _ if !value.is_finite() => return String::new(),
        v if v > 0.0 && v < 0.005 => return "under 0.01 %".to_owned(),
        v if v == 0.0 || v >= 9.95 => return format!("{v:.0} %"),
        v if v >= 0.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

fn with_prefix(value: u64, unit: &str) -> String {
    let value = value as f64;
    let (scaled, prefix) = match value {
        v if v >= 999.5e9 => (v / 1e12, "T"),
        v if v >= 999.5e6 => (v / 1e9, "G"),
        v if v >= 999.5e3 => (v / 1e6, "M"),
        v if v >= 1e3 => (v / 1e3, "k"),
        v => (v, ""),
    };
    format!("{} {prefix}{unit}", significant(scaled))
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&with_prefix(self.0, "bit/s"))
    }
}

impl fmt::Display for ByteRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&with_prefix(self.0, "B/s"))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&with_prefix(self.0, "B"))
    }
}

impl fmt::Display for Mtu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            us if us >= 1_000_000 => format!("{} s", significant(us as f64 / 1e6)),
            us if us >= 1_000 => format!("{} ms", significant(us as f64 / 1e3)),
            us => format!("{us} µs"),
        };
        f.pad(&text)
    }
}

/// A text that is no quantity: what was wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {expected}")]
pub struct ParseUnitError {
    /// What was given.
    pub text: String,
    /// What would be right, with an example.
    pub expected: &'static str,
}

fn parse_scaled(text: &str, suffixes: &[&str], kibi: bool, expected: &'static str) -> Result<u64, ParseUnitError> {
    let wrong = || ParseUnitError { text: text.to_owned(), expected };
    let mut rest = text.trim();
    for suffix in suffixes {
        if let Some(head) = rest.len().checked_sub(suffix.len()).and_then(|at| rest.get(at..).map(|tail| (at, tail)))
            && head.1.eq_ignore_ascii_case(suffix)
        {
            rest = rest[..head.0].trim_end();
            break;
        }
    }
    let binary = kibi && rest.ends_with(['i', 'I']);
    if binary {
        rest = &rest[..rest.len() - 1];
    }
    let exponent = match rest.chars().last().map(|c| c.to_ascii_lowercase()) {
        Some('k') => 1,
        Some('m') => 2,
        Some('g') => 3,
        Some('t') => 4,
        _ => 0,
    };
    if exponent > 0 {
        rest = rest[..rest.len() - 1].trim_end();
    } else if binary {
        return Err(wrong());
    }
    if rest.is_empty() || !rest.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return Err(wrong());
    }
    let number: f64 = rest.parse().map_err(|_| wrong())?;
    let value = number * (if binary { 1024f64 } else { 1000f64 }).powi(exponent);
    if value.is_finite() && value < 9e18 { Ok(value.round() as u64) } else { Err(wrong()) }
}

impl FromStr for BitRate {
    type Err = ParseUnitError;

    /// Reads `2.5G`, `940M`, `2.5 Gbit/s`; a bare number is bits a second.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = "a link speed such as 2.5G, 10G or 940M";
        match parse_scaled(text, &["bit/s", "bps", "b/s", "bit", "b"], false, expected)? {
            0 => Err(ParseUnitError { text: text.to_owned(), expected }),
            rate => Ok(Self(rate)),
        }
    }
}

impl FromStr for ByteSize {
    type Err = ParseUnitError;

    /// Reads `2G`, `500MB`, `64MiB`; a bare number is bytes.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_scaled(text, &["b"], true, "a size such as 2G, 500MB or 64MiB").map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_print_as_the_field_writes_them() {
        for (rate, text) in [
            (BitRate(941_000_000), "941 Mbit/s"),
            (BitRate(2_353_000_000), "2.35 Gbit/s"),
            (BitRate(2_500_000_000), "2.5 Gbit/s"),
            (BitRate(999_700_000), "1 Gbit/s"),
            (BitRate(0), "0 bit/s"),
        ] {
            assert_eq!(rate.to_string(), text);
        }
        for (share, text) in [
            (0.0, "0 %"),
            (0.000_04, "under 0.01 %"),
            (0.000_06, "0.01 %"),
            (0.003_9, "0.39 %"),
            (0.005, "0.5 %"),
            (0.009_96, "1 %"),
            (0.023, "2.3 %"),
            (0.099_4, "9.9 %"),
            (0.099_6, "10 %"),
            (1.2, "120 %"),
            (-0.1, "-10 %"),
            (f64::NAN, ""),
        ] {
            assert_eq!(percent(share), text, "{share}");
        }
        assert_eq!(ByteRate(294_200_000).to_string(), "294 MB/s");
        assert_eq!(Elapsed(1_500).to_string(), "1.5 ms");
    }

    #[test]
    fn speeds_and_sizes_are_read_as_people_type_them() {
        for (text, rate) in
            [("2.5G", 2_500_000_000), ("10g", 10_000_000_000), ("940 Mbit/s", 940_000_000), ("100Mbps", 100_000_000)]
        {
            assert_eq!(text.parse(), Ok(BitRate(rate)), "{text}");
        }
        for (text, size) in [("64MiB", 64 << 20), ("2G", 2_000_000_000), ("512", 512), ("1.5 kB", 1500)] {
            assert_eq!(text.parse(), Ok(ByteSize(size)), "{text}");
        }
        for bad in ["", "G", "2.5X", "-1G", "1e9", "fast", "0", "é", "1i"] {
            assert!(bad.parse::<BitRate>().is_err(), "{bad}");
        }
        assert!("i".parse::<ByteSize>().is_err());
    }
}
