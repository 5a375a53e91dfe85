//! Splits texts as TensorFlow's string ops do.

/// The parts of a text; without a separator, those between spaces.
pub(crate) fn split<'a>(text: &'a [u8], separator: &[u8], most: Option<usize>) -> Vec<&'a [u8]> {
    let (mut parts, mut rest) = (Vec::new(), text);
    // A vertical tab counts in C.
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0B;
    let skipped = |rest: &'a [u8]| {
        let start = rest.iter().position(|byte| !is_space(byte));
        start.map_or(&[][..], |start| &rest[start..])
    };
    loop {
        if separator.is_empty() {
            rest = skipped(rest);
            if rest.is_empty() {
                return parts;
            }
        }
        let end = match separator.len() {
            0 => rest.iter().position(is_space),
            size => rest.windows(size).position(|window| window == separator),
        };
        match end.filter(|_| most.is_none_or(|most| parts.len() < most)) {
            Some(end) => {
                parts.push(&rest[..end]);
                rest = &rest[end + separator.len()..];
            }
            None => {
                parts.push(rest);
                return parts;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_split_as_tensorflow_splits_them() {
        let of = |text: &'static str, separator: &str, most| -> Vec<&str> {
            let parts = split(text.as_bytes(), separator.as_bytes(), most);
            parts.into_iter().filter_map(|part| std::str::from_utf8(part).ok()).collect()
        };
        // tf.strings.split of 2.21.
        assert_eq!(of(" a  b\tc ", "", None), ["a", "b", "c"]);
        assert_eq!(of("", "", None), [""; 0]);
        assert_eq!(of("a,,b,", ",", None), ["a", "", "b", ""]);
        assert_eq!(of("", ",", None), [""]);
        assert_eq!(of("a,b,c", ",", Some(1)), ["a", "b,c"]);
        assert_eq!(of("a b c", "", Some(1)), ["a", "b c"]);
        assert_eq!(of(" a b ", "", Some(1)), ["a", "b "]);
        assert_eq!(of("a--b", "--", None), ["a", "b"]);
    }
}
