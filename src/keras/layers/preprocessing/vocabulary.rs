//! [`Table`]: the words of a lookup and their indices; [`Counts`]: how often words occur, from which a vocabulary is learnt.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Debug;
use std::hash::Hash;

use crate::error::{Error, Result, message};

/// A word of a vocabulary: a string of any bytes, or an integer.
pub(crate) trait Token: Clone + Debug + Eq + Hash + Ord + Send + Sync + 'static {
    /// The word in a message.
    fn shown(&self) -> String;

    /// The string that TensorFlow hashes.
    fn text(&self) -> Vec<u8>;

    /// The number, if it is one.
    fn whole(&self) -> Option<i64>;
}

impl Token for Vec<u8> {
    fn shown(&self) -> String {
        super::host_layer::shown(self)
    }

    fn text(&self) -> Vec<u8> {
        self.clone()
    }

    fn whole(&self) -> Option<i64> {
        None
    }
}

impl Token for i64 {
    fn shown(&self) -> String {
        self.to_string()
    }

    fn text(&self) -> Vec<u8> {
        self.to_string().into_bytes()
    }

    fn whole(&self) -> Option<i64> {
        Some(*self)
    }
}

/// Words with their indices.
#[derive(Debug)]
pub(super) struct Table<T> {
    /// The words in order, without special ones.
    pub(super) words: Vec<T>,
    /// The position of each word in `words`.
    pub(super) places: HashMap<T, usize>,
}

impl<T: Token> Table<T> {
    /// The table of these words, none of which may occur twice.
    pub(super) fn new(layer: &str, words: Vec<T>) -> Result<Self> {
        let mut places = HashMap::with_capacity(words.len());
        for (at, word) in words.iter().enumerate() {
            match places.entry(word.clone()) {
                Entry::Vacant(place) => {
                    place.insert(at);
                }
                Entry::Occupied(first) => {
                    return Err(Error::Data(message!(
                        "{layer}: the vocabulary has {} at {} and again at {at}; each word must be there once. Remove repeated \
                         words.",
                        word.shown(),
                        first.get()
                    )));
                }
            }
        }
        Ok(Table { words, places })
    }
}

/// How often words occur.
#[derive(Debug)]
pub(super) struct Counts<T> {
    /// For each word, the number of times, of documents, and the last document.
    seen: HashMap<T, Seen>,
    documents: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    times: u64,
    documents: u64,
    last: u64,
}

impl<T> Default for Counts<T> {
    fn default() -> Self {
        Counts { seen: HashMap::new(), documents: 0 }
    }
}

impl<T: Token> Counts<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// Adds the words of one document.
    pub(super) fn add<'a>(&mut self, document: impl Iterator<Item = &'a T>) {
        self.documents += 1;
        for word in document {
            let seen = match self.seen.get_mut(word) {
                Some(seen) => seen,
                None => self.seen.entry(word.clone()).or_default(),
            };
            seen.times += 1;
            if seen.last != self.documents {
                seen.documents += 1;
                seen.last = self.documents;
            }
        }
    }

    /// The `most` most frequent words except `special` ones, each with the logarithm of its inverse document frequency. Words that
    /// occur equally often are in descending order, as in Keras.
    pub(super) fn into_words(mut self, special: &[&T], most: Option<usize>) -> Vec<(T, f32)> {
        special.iter().for_each(|word| {
            self.seen.remove(*word);
        });
        let mut all: Vec<(T, Seen)> = self.seen.into_iter().collect();
        all.sort_unstable_by(|(a, x), (b, y)| y.times.cmp(&x.times).then_with(|| b.cmp(a)));
        all.truncate(most.unwrap_or(usize::MAX));
        let weight =
            |documents: u64| (1.0 + self.documents as f64 / (1.0 + documents as f64)).ln() as f32;
        all.into_iter().map(|(word, seen)| (word, weight(seen.documents))).collect()
    }
}
