//! [`Pattern`]: a name with places, such as `layers.{i}.weight`.

/// A place `{i}` stands for a part of a name without `.` and `/`, `{rest..}` for any text.
#[derive(Debug)]
pub(super) struct Pattern<'a> {
    pieces: Vec<Piece<'a>>,
}

#[derive(Debug, PartialEq)]
enum Piece<'a> {
    Text(&'a str),
    Place { name: &'a str, any: bool },
}

impl<'a> Pattern<'a> {
    /// The pattern that `text` writes, or why there is none.
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("the pattern '{text}' {why}"));
        let mut pieces = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let Some(open) = rest.find(['{', '}']) else {
                pieces.push(Piece::Text(rest));
                break;
            };
            if open > 0 {
                pieces.push(Piece::Text(&rest[..open]));
            }
            let (Some(inside), Some(close)) =
                (rest[open..].strip_prefix('{'), rest[open..].find('}'))
            else {
                return wrong("has a bracket without its other half; a place is written {i}");
            };
            let place = &inside[..close - 1];
            let (name, any) = match place.strip_suffix("..") {
                Some(name) => (name, true),
                None => (place, false),
            };
            if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
                return wrong("has a place whose name is no word; write {i} or {rest..}");
            }
            if matches!(pieces.last(), Some(Piece::Place { .. })) {
                return wrong(
                    "has two places without a text between them; nothing says where one ends",
                );
            }
            pieces.push(Piece::Place { name, any });
            rest = &rest[open + close + 1..];
        }
        Ok(Pattern { pieces })
    }

    /// What the places stand for if the whole of `name` fits; a place that comes twice stands for the same.
    pub(super) fn find<'n>(&self, name: &'n str) -> Option<Vec<(&'a str, &'n str)>> {
        fn fit<'a, 'n>(
            pieces: &[Piece<'a>],
            name: &'n str,
            found: &mut Vec<(&'a str, &'n str)>,
        ) -> bool {
            let Some((first, rest)) = pieces.split_first() else { return name.is_empty() };
            match *first {
                Piece::Text(text) => {
                    name.strip_prefix(text).is_some_and(|name| fit(rest, name, found))
                }
                Piece::Place { name: place, any } => {
                    let known = found.iter().find(|(name, _)| *name == place).map(|(_, is)| *is);
                    // The shortest first, as the text behind decides where it ends.
                    for end in name.char_indices().map(|(at, c)| at + c.len_utf8()) {
                        let taken = &name[..end];
                        if !any && taken.ends_with(['.', '/']) {
                            return false;
                        }
                        if known.is_some_and(|known| known != taken) {
                            continue;
                        }
                        found.push((place, taken));
                        if fit(rest, &name[end..], found) {
                            return true;
                        }
                        found.pop();
                    }
                    false
                }
            }
        }
        let mut found = Vec::new();
        fit(&self.pieces, name, &mut found).then_some(found)
    }

    pub(super) fn fits(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// The name with the places filled in.
    pub(super) fn fill(&self, found: &[(&str, &str)]) -> String {
        let piece = |piece: &Piece<'a>| match *piece {
            Piece::Text(text) => text,
            Piece::Place { name, .. } => {
                found.iter().find(|(place, _)| *place == name).map_or("", |(_, is)| is)
            }
        };
        self.pieces.iter().map(piece).collect()
    }

    /// A place that `other` lacks.
    pub(super) fn place_beyond(&self, other: &Pattern<'_>) -> Option<&'a str> {
        let places = |pattern: &Pattern<'_>, wanted: &str| {
            let is =
                |piece: &Piece<'_>| matches!(piece, Piece::Place { name, .. } if *name == wanted);
            pattern.pieces.iter().any(is)
        };
        self.pieces.iter().find_map(|piece| match *piece {
            Piece::Place { name, .. } if !places(other, name) => Some(name),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn places_stand_for_parts() {
        let pattern = Pattern::parse("layers.{i}.{p}").unwrap();
        assert_eq!(pattern.find("layers.12.weight").unwrap(), [("i", "12"), ("p", "weight")]);
        assert!(!pattern.fits("layers.1.attention.weight"));
        assert!(!pattern.fits("layers..weight"));
        assert!(Pattern::parse("{rest..}.weight").unwrap().fits("a.b.weight"));
        let to = Pattern::parse("dense_{i}/{p}").unwrap();
        assert_eq!(to.fill(&pattern.find("layers.3.bias").unwrap()), "dense_3/bias");
        let twice = Pattern::parse("{a}-{a}").unwrap();
        assert!(twice.fits("xy-xy") && !twice.fits("x-y"));
        assert!(Pattern::parse("größe.{i}").unwrap().fits("größe.ß"));
        assert_eq!(to.place_beyond(&Pattern::parse("{i}").unwrap()), Some("p"));
    }

    #[test]
    fn broken_patterns_are_told() {
        for text in ["a{", "a}", "{}", "{..}", "{a}{b}", "{a b}", "}{"] {
            assert!(Pattern::parse(text).unwrap_err().contains(text), "{text}");
        }
    }
}
