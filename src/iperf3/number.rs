//! Numbers as iperf3's JSON has them. Pure.
//!
//! Its library prints what is large as a float, and what was −1 in a 64-bit counter as 18446744073709551615 or
//! 1.8446744073709552e+19; other programs that speak the wire write −1.

use serde_json::{Map, Value};

/// A JSON object.
pub(super) type Object = Map<String, Value>;

/// From here on a counter's value is no count: 2^63, what a −1 becomes without its sign.
const NO_COUNT: u64 = 1 << 63;

/// A whole number that is not negative; a fraction is cut off.
pub(super) fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        // A float of 2^64 and more has no place in a u64; the cast of anything smaller is exact to the cut.
        let float = value.as_f64()?;
        (0.0..18_446_744_073_709_551_616.0).contains(&float).then_some(float as u64)
    })
}

/// A count that may be unknown: −1, whatever it became on its way, is none.
pub(super) fn count(value: &Value) -> Option<u64> {
    whole(value).filter(|number| *number < NO_COUNT)
}

/// A count of errors, which some versions let fall below zero; out of range becomes 0.
pub(super) fn signed(value: &Value) -> i64 {
    value.as_i64().or_else(|| count(value).and_then(|n| i64::try_from(n).ok())).unwrap_or(0)
}

/// A finite float; anything else is 0, as JSON has no other way to say it.
pub(super) fn float(value: Option<&Value>) -> f64 {
    value.and_then(Value::as_f64).filter(|float| float.is_finite()).unwrap_or(0.0)
}

/// A switch: `true`, or a number that is not 0; iperf3 itself takes the presence of the key for true.
pub(super) fn switch(object: &Object, key: &str) -> bool {
    match object.get(key) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(_) => true,
    }
}

/// A text, if it is one and not empty.
pub(super) fn text(object: &Object, key: &str) -> Option<String> {
    object.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn minus_one_is_no_count_in_any_spelling() {
        for text in ["-1", "18446744073709551615", "1.8446744073709552e+19", "-1.0", "1e400", "null", "\"5\"", "[]"] {
            let value: Value = serde_json::from_str(text).unwrap_or(Value::Null);
            assert_eq!(count(&value), None, "{text}");
        }
        for (text, number) in [("0", 0), ("5", 5), ("1e9", 1_000_000_000), ("2.9", 2), ("4611686018427387904", 1 << 62)] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(count(&value), Some(number), "{text}");
        }
        assert_eq!(signed(&json!(-3)), -3);
        assert_eq!(signed(&json!(u64::MAX)), 0);
    }

    #[test]
    fn a_switch_is_on_when_its_key_says_so() {
        for (value, on) in [(json!(true), true), (json!(1), true), (json!(false), false), (json!(0), false), (json!(null), false)]
        {
            let object: Object = [("x".to_owned(), value.clone())].into_iter().collect();
            assert_eq!(switch(&object, "x"), on, "{value}");
            assert!(!switch(&object, "y"));
        }
    }
}
