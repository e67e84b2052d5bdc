//! Decodes what `route -n get ADDRESS` prints (macOS and the BSDs).

use std::net::IpAddr;

use super::ifconfig::name;

/// The most lines that are looked at.
const LINES: usize = 64;

/// The interface of the route, and the next hop where there is one; none where no interface is named.
///
/// A line `gateway:` stands also beside routes of the own subnet (as `link#4`), so the flag `GATEWAY` must be set.
pub(super) fn decode(text: &str) -> Option<(String, Option<IpAddr>)> {
    let field = |key: &str| {
        let lines = text.lines().take(LINES);
        lines.map(str::trim).find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix(':'))
    };
    let interface = name(field("interface")?)?;
    let through = field("flags").is_some_and(|flags| flags.split(['<', '>', ',']).any(|flag| flag == "GATEWAY"));
    // A link-local hop has its interface behind it.
    let hop = field("gateway").and_then(|hop| hop.trim().split('%').next()?.parse().ok());
    Some((interface, hop.filter(|_| through)))
}
