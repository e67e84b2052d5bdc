//! Nothing private in a report that leaves the house.
//!
//! A report holds no names of hosts or people and no serial numbers by design. What may still be there: public
//! addresses (where somebody lives), the device part of MAC addresses, and names in mount options or paths.
//! The names of switches and of their ports, as LLDP tells them, are hidden.
//! Private addresses stay: a wrong route can only be seen in them. Each masked address keeps one stand-in throughout
//! the report, so it can still be followed.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use serde_json::Value;

use crate::model::Document;

/// A document that could not be redacted; it was left as it was and must not be given away.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the report could not be redacted, so it must not be given away: {reason}")]
pub struct RedactError {
    /// What the document did not survive.
    pub reason: String,
}

/// Masks what is private in `document`.
///
/// Public IP addresses become addresses of the ranges for documentation, MAC addresses keep their vendor's part, and the
/// values of mount options that name a person, as well as the names of home directories, are replaced; so are the names of
/// switches and the labels of their ports.
pub fn redact(document: &mut Document) -> Result<(), RedactError> {
    let failed = |error: serde_json::Error| RedactError { reason: error.to_string() };
    let mut value = serde_json::to_value(&*document).map_err(failed)?;
    Masks::default().value(&mut value);
    *document = serde_json::from_value(value).map_err(failed)?;
    Ok(())
}

/// Which stand-in belongs to which original.
#[derive(Default)]
struct Masks {
    v4: HashMap<Ipv4Addr, usize>,
    v6: HashMap<Ipv6Addr, usize>,
    macs: HashMap<String, usize>,
}

impl Masks {
    fn value(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => {
                let old = std::mem::take(fields);
                for (name, mut inner) in old {
                    // Versions can look like addresses.
                    match name.as_str() {
                        "kernel" | "version" | "driver_version" | "firmware" | "weaklink" => {}
                        "neighbours" => self.neighbours(&mut inner),
                        _ => self.value(&mut inner),
                    }
                    fields.insert(self.text(&name), inner);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// What switches say of themselves: their names and the labels of their ports were given by people.
    fn neighbours(&mut self, value: &mut Value) {
        for neighbour in value.get_mut("measured").and_then(Value::as_array_mut).into_iter().flatten() {
            for name in ["system", "port_description"] {
                if let Some(Value::String(text)) = neighbour.get_mut(name) {
                    *text = hidden(text);
                }
            }
            if let Some(Value::String(text)) = neighbour.get_mut("chassis") {
                // What is no address is a name.
                *text = self.mac(text).or_else(|| self.address(text)).unwrap_or_else(|| hidden(text));
            }
        }
        self.value(value);
    }

    /// `text` with every word in it masked that is private.
    fn text(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let name = names_somebody(&out);
            let ends = |c: char| if name { ends_name(c) } else { !is_word(c) };
            let (word, after) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
            out.push_str(&if name { hidden(word) } else { self.word(word) });
            let next = after.chars().next();
            out.extend(next);
            rest = next.map_or("", |c| &after[c.len_utf8()..]);
        }
        out
    }

    fn word(&mut self, word: &str) -> String {
        let core = word.trim_end_matches(['.', ':', '-', '_']);
        let tail = &word[core.len()..];
        let masked = self.address(core).or_else(|| self.mac(core)).or_else(|| self.named_by_mac(core));
        masked.map_or_else(|| word.to_owned(), |masked| format!("{masked}{tail}"))
    }

    fn address(&mut self, word: &str) -> Option<String> {
        if let Ok(SocketAddr::V4(both)) = word.parse() {
            return Some(format!("{}:{}", self.v4(*both.ip()), both.port()));
        }
        let (plain, zone) = word.split_once('%').map_or((word, None), |(plain, zone)| (plain, Some(zone)));
        let masked = match plain.parse().ok()? {
            IpAddr::V4(address) => self.v4(address).to_string(),
            IpAddr::V6(address) => self.v6(address).to_string(),
        };
        Some(match zone {
            Some(zone) => format!("{masked}%{zone}"),
            None => masked,
        })
    }

    fn v4(&mut self, address: Ipv4Addr) -> Ipv4Addr {
        let [a, b, ..] = address.octets();
        let shared = a == 100 && (64..128).contains(&b);
        let stays = address.is_private() || address.is_loopback() || address.is_link_local() || address.is_unspecified();
        if stays || shared || address.is_multicast() || address.is_broadcast() || address.is_documentation() {
            return address;
        }
        let number = next(&mut self.v4, address);
        Ipv4Addr::new(192, 0, 2, (number % 254 + 1) as u8)
    }

    fn v6(&mut self, address: Ipv6Addr) -> Ipv6Addr {
        if let Some(inner) = address.to_ipv4_mapped() {
            return self.v4(inner).to_ipv6_mapped();
        }
        let octets = address.octets();
        let [first, second, ..] = address.segments();
        let local = first & 0xffc0 == 0xfe80 || first & 0xfe00 == 0xfc00;
        // The last half of such an address is the MAC address with ff:fe in its middle.
        let holds_mac = octets[11] == 0xff && octets[12] == 0xfe;
        let documentation = first == 0x2001 && second == 0x0db8;
        if address.is_loopback() || address.is_unspecified() || address.is_multicast() || documentation || (local && !holds_mac) {
            return address;
        }
        let number = next(&mut self.v6, address) as u16 + 1;
        if local { Ipv6Addr::new(first, 0, 0, 0, 0, 0, 0, number) } else { Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number) }
    }

    /// `00:11:22:33:44:55` as `00:11:22:xx:xx:01`.
    fn mac(&mut self, word: &str) -> Option<String> {
        let sign = if word.contains(':') { ':' } else { '-' };
        let parts: Vec<_> = word.split(sign).collect();
        let hex = |part: &&str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        if parts.len() != 6 || !parts.iter().all(hex) {
            return None;
        }
        let whole = parts.concat().to_ascii_lowercase();
        // Nobody and everybody are no devices: the first is what a broken LACP shows.
        if whole == "000000000000" || whole == "ffffffffffff" {
            return Some(word.to_owned());
        }
        let number = next(&mut self.macs, whole) % 255 + 1;
        Some(format!("{}{sign}xx{sign}xx{sign}{number:02x}", parts[..3].join(&sign.to_string())))
    }

    /// `enx001122334455`, as USB adapters are named after their address.
    fn named_by_mac(&mut self, word: &str) -> Option<String> {
        let after = word.strip_prefix("enx").or_else(|| word.strip_prefix("wlx"))?;
        let digits = after.get(..12).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        let number = next(&mut self.macs, digits.to_ascii_lowercase()) % 255 + 1;
        Some(format!("{}{}xxxx{number:02x}{}", &word[..3], &digits[..6], &after[12..]))
    }
}

fn next<K: std::hash::Hash + Eq>(known: &mut HashMap<K, usize>, key: K) -> usize {
    let fresh = known.len();
    *known.entry(key).or_insert(fresh)
}

const fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '-' | '_' | '%')
}

/// What ends the value of an option or a part of a path.
const fn ends_name(c: char) -> bool {
    c.is_ascii_whitespace() || matches!(c, ',' | '/' | '\\' | ':' | ';' | '"' | '\'' | ')')
}

/// Whether the next word is a person's name or a secret.
fn names_somebody(before: &str) -> bool {
    let keys = ["username=", "user=", "domain=", "password=", "pass=", "credentials=", "cred=", "/home/", "/Users/", "\\Users\\"];
    keys.iter().any(|key| before.ends_with(key))
}

fn hidden(word: &str) -> String {
    if word.is_empty() { String::new() } else { "hidden".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_stay_and_public_ones_get_a_stand_in() {
        let mut masks = Masks::default();
        for (given, shown) in [
            ("192.168.1.5 → 10.0.0.1, via 100.100.1.1", "192.168.1.5 → 10.0.0.1, via 100.100.1.1"),
            ("8.8.8.8:5210 and 9.9.9.9.", "192.0.2.1:5210 and 192.0.2.2."),
            ("again 8.8.8.8", "again 192.0.2.1"),
            ("[2a02:8109::1]:22", "[2001:db8::1]:22"),
            ("fe80::1 fd00::2%eth0", "fe80::1 fd00::2%eth0"),
            ("fe80::211:22ff:fe33:4455%eth0", "fe80::2%eth0"),
            ("::ffff:8.8.8.8", "::ffff:192.0.2.1"),
            ("addr=1.2.3.4,vers=3.1.1", "addr=192.0.2.3,vers=3.1.1"),
            ("12:34:56 at 2.35 Gbit/s", "12:34:56 at 2.35 Gbit/s"),
        ] {
            assert_eq!(masks.text(given), shown);
        }
    }

    #[test]
    fn a_mac_address_keeps_its_vendor_and_can_be_followed() {
        let mut masks = Masks::default();
        for (given, shown) in [
            ("00:11:22:33:44:55", "00:11:22:xx:xx:01"),
            ("enx001122334455.100", "enx001122xxxx01.100"),
            ("00-11-22-33-44-66", "00-11-22-xx-xx-02"),
            ("00:00:00:00:00:00", "00:00:00:00:00:00"),
        ] {
            assert_eq!(masks.text(given), shown);
        }
    }

    #[test]
    fn names_in_options_and_paths_are_hidden() {
        let mut masks = Masks::default();
        assert_eq!(masks.text("rw,username=bj\u{f6}rn.x,vers=3.1.1"), "rw,username=hidden,vers=3.1.1");
        assert_eq!(masks.text("cannot open /home/bob/x: denied"), "cannot open /home/hidden/x: denied");
    }
}
