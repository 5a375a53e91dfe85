//! Standardizes texts, splits them into words, and joins words to n-grams, byte by byte as TensorFlow's string ops do.

use std::fmt;
use std::sync::Arc;

use super::host_layer::{shown, utf8};
use crate::error::{Error, Result, message};
use crate::host_array::strings;

/// How [`TextVectorization`](super::TextVectorization) changes a text before it splits it.
#[derive(Clone, Default)]
pub enum Standardize {
    /// Leaves texts as they are.
    Keep,
    /// Makes ASCII letters lowercase and removes ASCII punctuation.
    #[default]
    LowerAndStripPunctuation,
    /// Makes ASCII letters lowercase.
    Lower,
    /// Removes ASCII punctuation.
    StripPunctuation,
    /// A function of the program, which JSON cannot hold.
    Custom(Arc<dyn Fn(&str) -> String + Send + Sync>),
}

/// Makes words of a text.
type SplitFn = dyn Fn(&str) -> Vec<String> + Send + Sync;

/// How [`TextVectorization`](super::TextVectorization) makes words of a text.
#[derive(Clone, Default)]
pub enum Split {
    /// A text is one word.
    Keep,
    /// Splits at spaces, tabs and line ends.
    #[default]
    Whitespace,
    /// Splits into characters; bytes that are no UTF-8 become U+FFFD.
    Character,
    /// A function of the program, which JSON cannot hold.
    Custom(Arc<SplitFn>),
}

impl Standardize {
    /// A function of the program, such as `Standardize::custom(str::to_lowercase)`.
    pub fn custom(f: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Standardize::Custom(Arc::new(f))
    }

    /// Keras's name; none for a function.
    pub(super) fn name(&self) -> Option<Option<&'static str>> {
        match self {
            Standardize::Keep => Some(None),
            Standardize::LowerAndStripPunctuation => Some(Some("lower_and_strip_punctuation")),
            Standardize::Lower => Some(Some("lower")),
            Standardize::StripPunctuation => Some(Some("strip_punctuation")),
            Standardize::Custom(_) => None,
        }
    }

    pub(super) fn apply(&self, layer: &str, text: &[u8]) -> Result<Vec<u8>> {
        let (lower, strip) = match self {
            Standardize::Keep => (false, false),
            Standardize::LowerAndStripPunctuation => (true, true),
            Standardize::Lower => (true, false),
            Standardize::StripPunctuation => (false, true),
            Standardize::Custom(f) => {
                return Ok(f(utf8(layer, "a function for standardize", text)?).into_bytes());
            }
        };
        let kept = text.iter().filter(|byte| !strip || !byte.is_ascii_punctuation());
        Ok(kept.map(|byte| if lower { byte.to_ascii_lowercase() } else { *byte }).collect())
    }
}

impl Split {
    /// A function of the program, such as `Split::custom(|text| text.split(',').map(String::from).collect())`.
    pub fn custom(f: impl Fn(&str) -> Vec<String> + Send + Sync + 'static) -> Self {
        Split::Custom(Arc::new(f))
    }

    /// Keras's name; none for a function.
    pub(super) fn name(&self) -> Option<Option<&'static str>> {
        match self {
            Split::Keep => Some(None),
            Split::Whitespace => Some(Some("whitespace")),
            Split::Character => Some(Some("character")),
            Split::Custom(_) => None,
        }
    }

    pub(super) fn apply(&self, layer: &str, text: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        Ok(match self {
            Split::Keep => vec![text],
            Split::Whitespace => {
                strings::split(&text, b"", None).into_iter().map(<[u8]>::to_vec).collect()
            }
            Split::Character => {
                let text = String::from_utf8_lossy(&text);
                text.chars().map(|c| c.to_string().into_bytes()).collect()
            }
            Split::Custom(f) => f(utf8(layer, "a function for split", &text)?)
                .into_iter()
                .map(String::into_bytes)
                .collect(),
        })
    }
}

/// The n-grams of words: for each width, in order, those words joined by spaces.
pub(super) fn ngrams(layer: &str, words: &[Vec<u8>], widths: &[usize]) -> Result<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    for width in widths {
        if *width == 0 {
            return Err(Error::Data(message!(
                "{layer}: ngrams are {widths:?}; each width must be 1 or more."
            )));
        }
        all.extend(words.windows(*width).map(|words| words.join(&b' ')));
    }
    Ok(all)
}

impl fmt::Debug for Standardize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name().map_or("custom", |name| name.unwrap_or("none")))
    }
}

impl fmt::Debug for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name().map_or("custom", |name| name.unwrap_or("none")))
    }
}

#[cfg(feature = "json")]
mod config {
    use super::{Split, Standardize};
    use crate::keras::ConfigValue;
    use serde_json::{Value, json};

    const CUSTOM: &str = "is a function of the program, which JSON cannot hold";

    impl ConfigValue for Standardize {
        fn to_json(&self) -> Result<Value, String> {
            Ok(json!(self.name().ok_or(CUSTOM)?))
        }

        fn from_json(value: &Value) -> Result<Self, String> {
            use Standardize::{Keep, Lower, LowerAndStripPunctuation, StripPunctuation};
            let mut known = [Keep, LowerAndStripPunctuation, Lower, StripPunctuation].into_iter();
            known.find(|one| one.name() == Some(value.as_str()) && (value.is_string() || value.is_null())).ok_or(
                "null, lower_and_strip_punctuation, lower or strip_punctuation; a function of Python cannot be read".into(),
            )
        }
    }

    impl ConfigValue for Split {
        fn to_json(&self) -> Result<Value, String> {
            Ok(json!(self.name().ok_or(CUSTOM)?))
        }

        fn from_json(value: &Value) -> Result<Self, String> {
            let mut known = [Split::Keep, Split::Whitespace, Split::Character].into_iter();
            known
                .find(|one| {
                    one.name() == Some(value.as_str()) && (value.is_string() || value.is_null())
                })
                .ok_or("null, whitespace or character; a function of Python cannot be read".into())
        }
    }
}

/// The words of an array, as text for a message.
pub(super) fn first(words: &[Vec<u8>]) -> String {
    words.first().map_or("nothing".to_string(), |word| shown(word))
}
