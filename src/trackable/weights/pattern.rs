//! [`Pattern`]: a name with placeholders, such as `layers.{i}.weight`.

use std::ops::Range;

/// A placeholder: `{i}` matches a part of a name without `.` and `/`, `{rest..}` any text.
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
    /// The pattern in `text`, or the reason why it is invalid.
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
                return wrong("has an unmatched bracket; a placeholder is written {i}");
            };
            let place = &inside[..close - 1];
            let (name, any) = match place.strip_suffix("..") {
                Some(name) => (name, true),
                None => (place, false),
            };
            if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
                return wrong("has a placeholder whose name is not a word; write {i} or {rest..}");
            }
            if matches!(pieces.last(), Some(Piece::Place { .. })) {
                return wrong(
                    "has two placeholders without text between them, so it is unknown where one ends",
                );
            }
            pieces.push(Piece::Place { name, any });
            rest = &rest[open + close + 1..];
        }
        Ok(Pattern { pieces })
    }

    /// The values of the placeholders if the whole of `name` matches; a placeholder that occurs twice has one value. For a
    /// name, which is read from a file, the time depends only on its length, unless a placeholder occurs twice.
    pub(super) fn find<'n>(&self, name: &'n str) -> Option<Vec<(&'a str, &'n str)>> {
        let twice = |at: usize| {
            let Piece::Place { name, .. } = self.pieces[at] else { return false };
            let is =
                |piece: &Piece<'_>| matches!(piece, Piece::Place { name: n, .. } if *n == name);
            self.pieces[..at].iter().any(is)
        };
        let mut search = Search {
            pieces: &self.pieces,
            name,
            found: Vec::new(),
            failed: vec![0..0; self.pieces.len()],
            remembers: !(0..self.pieces.len()).any(twice),
        };
        search.fits(0, 0).then_some(search.found)
    }

    pub(super) fn fits(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// The name with the placeholders filled in.
    pub(super) fn fill(&self, found: &[(&str, &str)]) -> String {
        let piece = |piece: &Piece<'a>| match *piece {
            Piece::Text(text) => text,
            Piece::Place { name, .. } => {
                found.iter().find(|(place, _)| *place == name).map_or("", |(_, is)| is)
            }
        };
        self.pieces.iter().map(piece).collect()
    }

    /// A placeholder that `other` lacks.
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

/// The search for the values of a pattern's placeholders.
struct Search<'s, 'a, 'n> {
    pieces: &'s [Piece<'a>],
    name: &'n str,
    found: Vec<(&'a str, &'n str)>,
    /// For each placeholder: its beginning in the name when no end in this range let the rest match.
    failed: Vec<Range<usize>>,
    /// Whether the match after a placeholder depends only on where it ends.
    remembers: bool,
}

impl Search<'_, '_, '_> {
    /// Whether the pieces from `piece` on match the name from `begin` on.
    fn fits(&mut self, piece: usize, begin: usize) -> bool {
        let rest = &self.name[begin..];
        let (place, any) = match self.pieces.get(piece) {
            None => return rest.is_empty(),
            Some(Piece::Text(text)) => {
                return rest.starts_with(text) && self.fits(piece + 1, begin + text.len());
            }
            Some(Piece::Place { name, any }) => (*name, *any),
        };
        if let Some((_, known)) = self.found.iter().find(|(name, _)| *name == place).copied() {
            let may_be = any || !known.contains(['.', '/']);
            return may_be && rest.starts_with(known) && self.fits(piece + 1, begin + known.len());
        }
        if self.failed[piece].contains(&begin) {
            return false;
        }
        // The shortest first, because the text after it decides where it ends.
        let length = if any { rest.len() } else { rest.find(['.', '/']).unwrap_or(rest.len()) };
        for (at, letter) in rest[..length].char_indices() {
            let end = at + letter.len_utf8();
            self.found.push((place, &rest[..end]));
            if self.fits(piece + 1, begin + end) {
                return true;
            }
            self.found.pop();
        }
        if self.remembers {
            self.failed[piece] = begin..begin + length;
        }
        false
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
    fn a_long_name_takes_time_by_its_length() {
        let long = "a.".repeat(200_000);
        for text in ["{a..}.{b..}.{c..}.x", "{a..}a{b..}a{c..}x", "{a..}.{i}.{b..}.{j}.x"] {
            assert!(!Pattern::parse(text).unwrap().fits(&long), "{text}");
        }
        let one_part = "a".repeat(400_000);
        assert!(!Pattern::parse("{i}a{j}a{k}x").unwrap().fits(&one_part));
        let name = format!("{long}x");
        let found = Pattern::parse("{a..}.{b..}.x").unwrap().find(&name).unwrap();
        assert_eq!((found[0], found[1].1.len()), (("a", "a"), 400_000 - 3));
        // What a failed placeholder has ruled out at one part of a name is not ruled out at another.
        let found = Pattern::parse("{a..}.{i}x").unwrap().find("p.q.rx").unwrap();
        assert_eq!(found, [("a", "p.q"), ("i", "r")]);
        assert!(Pattern::parse("{a..}/{b}/{a}").unwrap().fits("x/y/x"));
        assert!(!Pattern::parse("{a..}/{b}/{a}").unwrap().fits("x.z/y/x.z"));
    }

    #[test]
    fn broken_patterns_are_refused() {
        for text in ["a{", "a}", "{}", "{..}", "{a}{b}", "{a b}", "}{"] {
            assert!(Pattern::parse(text).unwrap_err().contains(text), "{text}");
        }
    }
}
