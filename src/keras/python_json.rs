//! JSON as Python writes it: with the numbers `NaN`, `Infinity` and `-Infinity`, for which `serde_json` has no value.
//!
//! [`parse`] replaces such a number by a string that no file contains, and [`number`] creates that string. [`float`] reads it,
//! and [`text`] writes JSON as Python does.

use std::borrow::Cow;

use serde_json::Value;

/// Python's words, the JSON that stands for them, and the numbers. Word and JSON have the same length, so that the positions in
/// errors are right.
const WORDS: [(&str, &str, f64); 3] = [
    ("NaN", "\"\u{7f}\"", f64::NAN),
    ("Infinity", "\"\u{7f}infin\"", f64::INFINITY),
    ("-Infinity", "\"\u{7f}-infin\"", f64::NEG_INFINITY),
];

/// Parses a text.
pub(crate) fn parse(json: &[u8]) -> serde_json::Result<Value> {
    let mut json = Cow::Borrowed(json);
    let (mut at, mut quoted) = (0, false);
    while let Some(&byte) = json.get(at) {
        at += match byte {
            b'"' => {
                quoted = !quoted;
                1
            }
            b'\\' => 2,
            b'N' | b'I' | b'-' if !quoted => {
                let word = WORDS.iter().find(|(word, ..)| json[at..].starts_with(word.as_bytes()));
                word.map_or(1, |(word, place, _)| {
                    json.to_mut()[at..at + word.len()].copy_from_slice(place.as_bytes());
                    word.len()
                })
            }
            _ => 1,
        };
    }
    serde_json::from_slice(&json)
}

/// Writes a value as text.
pub(crate) fn text(value: &Value) -> String {
    let json = value.to_string();
    let mut written = String::with_capacity(json.len());
    let mut rest = &*json;
    while let Some(at) = rest.find("\"\u{7f}") {
        // A quote after a backslash does not open a string.
        let opens = !rest[..at].ends_with('\\');
        let word = WORDS.iter().find(|(_, place, _)| opens && rest[at..].starts_with(place));
        let (written_so_far, skipped) = match word {
            Some((word, place, _)) => (*word, place.len()),
            None => ("\"", 1),
        };
        written.push_str(&rest[..at]);
        written.push_str(written_so_far);
        rest = &rest[at + skipped..];
    }
    written.push_str(rest);
    written
}

/// A number as a value.
pub(crate) fn number(number: f64) -> Value {
    let same = |other: &f64| *other == number || (other.is_nan() && number.is_nan());
    match WORDS.iter().find(|(.., word)| same(word)) {
        Some((_, place, _)) => place.trim_matches('"').into(),
        None => number.into(),
    }
}

/// The number that a value holds.
pub(crate) fn float(value: &Value) -> Option<f64> {
    let word = |text: &str| {
        let word = WORDS.iter().find(|(_, place, _)| place.trim_matches('"') == text);
        word.map(|(.., number)| *number)
    };
    value.as_f64().or_else(|| word(value.as_str()?))
}

/// Whether a value is a float, which includes NaN and the infinities.
pub(crate) fn is_float(value: &Value) -> bool {
    value.is_f64() || (value.is_string() && float(value).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_that_only_python_writes_are_read_and_written() {
        let python = r#"{"a":[Infinity,-Infinity,NaN,-1.5,"NaN"],"Infinity":"a \" -Infinity"}"#;
        let value = parse(python.as_bytes()).unwrap();
        let list = &value["a"];
        assert_eq!(float(&list[0]), Some(f64::INFINITY));
        assert_eq!(float(&list[1]), Some(f64::NEG_INFINITY));
        assert!(float(&list[2]).unwrap().is_nan());
        assert_eq!((float(&list[3]), float(&list[4])), (Some(-1.5), None));
        assert_eq!(value["Infinity"], "a \" -Infinity");
        let of = |value: &Value| parse(text(value).as_bytes()).unwrap();
        assert_eq!(of(&value), value);
        assert!(
            text(&value).contains(r#"[Infinity,-Infinity,NaN,-1.5,"NaN"]"#),
            "{}",
            text(&value)
        );
        for number in [f64::INFINITY, f64::NEG_INFINITY, 2.0] {
            assert_eq!(float(&super::number(number)), Some(number));
        }
        assert_eq!(text(&super::number(f64::NAN)), "NaN");
    }

    #[test]
    fn texts_that_look_like_such_numbers_stay_texts() {
        // A quote, and the replacement of a number, inside a string.
        for like in
            ["\"\u{7f}infin", "a\\\"\u{7f}", "\u{7f}infin\u{7f}", "\\", "\u{7f}-", "\"\u{7f}"]
        {
            let value = json!([like, "NaN"]);
            let written = text(&value);
            assert_eq!(written, value.to_string());
            assert_eq!(parse(written.as_bytes()).unwrap(), value, "{written}");
        }
    }

    #[test]
    fn what_is_no_json_is_refused_at_its_place() {
        for (wrong, place) in [
            ("[Infinity, 1, x]", "column 15"),
            ("[1Infinity]", "column 3"),
            ("[Infinit]", "column 2"),
            ("[--Infinity]", "column 3"),
            ("\\", "column 1"),
        ] {
            let error = parse(wrong.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(place), "{wrong}: {error}");
        }
    }
}
