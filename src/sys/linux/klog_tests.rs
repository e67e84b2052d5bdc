//! Reading the log of this very kernel.

use super::*;

#[test]
fn the_log_ends_without_waiting_or_says_who_may_read_it() {
    let mut count = 0;
    match read(&mut |record| {
        assert!(!record.is_empty());
        count += 1;
    }) {
        Ok(()) => assert!(count <= RECORDS),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    assert!(uptime().is_some_and(|time| time > Duration::ZERO));
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that is left out says so")]
fn what_was_written_before_is_not_followed() {
    // Each record begins with its number, so no two are the same.
    let mut before = std::collections::HashSet::new();
    let read = read(&mut |record| before.extend([record.to_vec()]));
    let (Ok(()), Ok(mut follow)) = (read, follow()) else {
        eprintln!("SKIPPED: the kernel's log can't be read here");
        return;
    };
    let result = follow.rest(&mut |record| assert!(!before.contains(record)));
    assert!(result.is_ok(), "{result:?}");
}

#[test]
fn the_system_call_gives_the_same_log_as_lines() {
    let mut longest = 0;
    let _ = lines(&mut |line| longest = longest.max(line.len()));
    assert!(longest < TEXT);
}
