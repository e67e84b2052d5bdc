//! One name for the copies of a counter that a driver keeps for each queue or priority.

/// The name with every number in it as `#`: `rx_queue_0_drops` and `rx_queue_11_drops` are `rx_queue_#_drops`.
pub fn fold(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for character in name.trim().chars() {
        match character {
            digit if digit.is_ascii_digit() => {
                if !out.ends_with('#') {
                    out.push('#');
                }
            }
            other => out.push(other),
        }
    }
    out
}

/// What stands before the name of a counter where it is one of a queue (`[0]: rx_discards`, `Queue[3] InErrors`) or of a switch's
/// inner port (`p06_RxCrcErr`), in the folded form.
const BEFORE: [&str; 4] = ["[#]: ", "Queue[#] ", "TC# Queue[#] ", "p#_"];

/// The folded name without what says whose copy it is.
pub(super) fn bare(name: &str) -> String {
    let folded = fold(name);
    let rest = BEFORE.iter().find_map(|before| folded.strip_prefix(before)).map(str::to_owned);
    rest.unwrap_or(folded)
}
