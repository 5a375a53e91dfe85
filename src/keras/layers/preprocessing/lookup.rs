//! [`Lookup`]: what `StringLookup` and `IntegerLookup` have in common; Keras's `IndexLookup`.

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use super::category_encoding::OutputMode;
use super::host_encoding::{DROPPED, Encoding};
use super::salt::Salt;
use super::vocabulary::{Counts, Table, Token};
use crate::error::{Error, Result, message};
use crate::host_array::hashes;
use crate::host_array::{HostArray, HostDType};

/// How a word outside the vocabulary gets one of several indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OovMethod {
    /// The remainder of an integer.
    Floormod,
    /// The hash of the word, as [`Hashing`](super::Hashing) computes it.
    Farmhash,
}

#[cfg(feature = "json")]
impl crate::keras::ConfigValue for OovMethod {
    fn to_json(&self) -> std::result::Result<serde_json::Value, String> {
        Ok(match self {
            OovMethod::Floormod => "floormod".into(),
            OovMethod::Farmhash => "farmhash".into(),
        })
    }

    fn from_json(value: &serde_json::Value) -> std::result::Result<Self, String> {
        match value.as_str() {
            Some("floormod") => Ok(OovMethod::Floormod),
            Some("farmhash") => Ok(OovMethod::Farmhash),
            _ => Err("floormod or farmhash".into()),
        }
    }
}

/// A layer that maps words to indices, or back.
#[derive(Debug)]
pub(crate) struct Lookup<T: Token> {
    pub(super) layer: &'static str,
    pub(super) max_tokens: Option<usize>,
    pub(super) num_oov_indices: usize,
    pub(super) mask_token: Option<T>,
    pub(super) oov_token: Option<T>,
    pub(super) invert: bool,
    pub(super) output_mode: OutputMode,
    pub(super) pad_to_max_tokens: bool,
    pub(super) oov_method: OovMethod,
    pub(super) salt: Option<Salt>,
    pub(super) state: RwLock<State<T>>,
}

/// What changes after the layer has been made.
#[derive(Debug)]
pub(crate) struct State<T> {
    /// What the program has set with the layer's other options, before it was checked.
    pub(super) given: Option<(Vec<T>, Option<Vec<f32>>)>,
    /// Whether the program has set the vocabulary, so that `adapt` must not change it.
    pub(super) is_given: bool,
    pub(super) known: Option<Known<T>>,
    pub(super) counts: Counts<T>,
}

/// A vocabulary.
#[derive(Debug)]
pub(crate) struct Known<T> {
    pub(super) table: Table<T>,
    /// The weights of all indices, with `tf_idf`.
    pub(super) idf: Vec<f32>,
}

/// Words, weights, and the number of indices.
pub(super) type Described<T> = (Option<Vec<T>>, Option<Vec<f32>>, Option<usize>);

/// The vocabulary while it is used.
pub(super) struct InUse<'a, T>(RwLockReadGuard<'a, State<T>>);

impl<T> InUse<'_, T> {
    pub(super) fn known(&self) -> Option<&Known<T>> {
        self.0.known.as_ref()
    }
}

impl<T: Token> Lookup<T> {
    pub(super) fn new(layer: &'static str, oov_token: T) -> Self {
        Lookup {
            layer,
            max_tokens: None,
            num_oov_indices: 1,
            mask_token: None,
            oov_token: Some(oov_token),
            invert: false,
            output_mode: OutputMode::Int,
            pad_to_max_tokens: false,
            oov_method: OovMethod::Floormod,
            salt: None,
            state: RwLock::new(State {
                given: None,
                is_given: false,
                known: None,
                counts: Counts::default(),
            }),
        }
    }

    /// Sets the vocabulary, which the first use checks, when all options are set.
    pub(super) fn give(&mut self, words: Vec<T>) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let weights = state.given.take().and_then(|(_, weights)| weights);
        state.given = Some((words, weights));
        state.is_given = true;
    }

    /// Lets `adapt` replace the vocabulary that has been set.
    pub(super) fn learnt(&mut self) {
        self.state.get_mut().unwrap_or_else(PoisonError::into_inner).is_given = false;
    }

    /// Sets the weights of the vocabulary.
    pub(super) fn give_weights(&mut self, weights: Vec<f32>) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let words = state.given.take().map_or(Vec::new(), |(words, _)| words);
        state.given = Some((words, Some(weights)));
    }

    /// The index of the first word outside the vocabulary.
    pub(super) fn oov_start(&self) -> usize {
        usize::from(self.mask_token.is_some() && self.output_mode == OutputMode::Int)
    }

    /// The index of the first word of the vocabulary.
    pub(super) fn token_start(&self) -> usize {
        self.oov_start().saturating_add(self.num_oov_indices)
    }

    fn wrong<R>(&self, what: impl FnOnce() -> String) -> Result<R> {
        Err(Error::Data(message!("{}: {}", self.layer, what())))
    }

    /// Checks the options, which may contradict each other.
    fn check(&self) -> Result<()> {
        let mode = self.output_mode;
        if let Some(most) = self.max_tokens.filter(|most| *most <= 1) {
            return self.wrong(|| {
                format!("max_tokens is {most}; it must be 2 or more, as it counts special tokens.")
            });
        }
        if self.pad_to_max_tokens && self.max_tokens.is_none() {
            return self
                .wrong(|| "pad_to_max_tokens is set, and max_tokens is not. Set it, too.".into());
        }
        if self.invert && mode != OutputMode::Int {
            return self.wrong(|| {
                format!("invert is set, and output_mode is {}; it must be int then.", mode.name())
            });
        }
        // Indices are positive i64, and weights are a list. A file may have any number.
        let most = if mode == OutputMode::TfIdf { 24 } else { 48 };
        if self.num_oov_indices > (1 << most) {
            return self.wrong(|| {
                format!("num_oov_indices is {}; it must be 2^{most} at most.", self.num_oov_indices)
            });
        }
        Ok(())
    }

    /// The vocabulary, which is checked now if it has not been.
    pub(super) fn ready(&self) -> Result<InUse<'_, T>> {
        let read = self.state.read().unwrap_or_else(PoisonError::into_inner);
        if read.given.is_none() {
            self.check()?;
            return Ok(InUse(read));
        }
        drop(read);
        self.check()?;
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if let Some((words, weights)) = &state.given {
            state.known = Some(self.known(words.clone(), weights.as_deref())?);
            state.given = None;
        }
        drop(state);
        Ok(InUse(self.state.read().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Replaces the vocabulary; an invalid one changes nothing.
    pub(super) fn set(&self, words: Vec<T>, weights: Option<&[f32]>) -> Result<()> {
        self.check()?;
        let known = self.known(words, weights)?;
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.given = None;
        state.known = Some(known);
        Ok(())
    }

    /// The special tokens at the beginning of a vocabulary; none where there is no such token.
    pub(super) fn special(&self) -> impl Iterator<Item = Option<&T>> {
        let mask = std::iter::repeat_n(self.mask_token.as_ref(), self.oov_start());
        mask.chain(std::iter::repeat_n(self.oov_token.as_ref(), self.num_oov_indices))
    }

    /// A vocabulary of these words, which may begin with the special tokens.
    fn known(&self, mut words: Vec<T>, weights: Option<&[f32]>) -> Result<Known<T>> {
        let (start, count) = (self.token_start(), words.len());
        if words.is_empty() {
            return self.wrong(|| "the vocabulary is empty. Set one with a word in it.".into());
        }
        let starts = count >= start && self.special().eq(words[..start].iter().map(Some));
        if starts {
            words.drain(..start);
        }
        let skipped = count - words.len();
        let table = Table::new(self.layer, words)?;
        let oov = self.oov_token.as_ref().filter(|_| self.invert);
        for (token, what) in [(self.mask_token.as_ref(), "mask"), (oov, "OOV")] {
            let place = token.and_then(|token| table.places.get(token));
            if let (Some(token), Some(place)) = (token, place) {
                return self.wrong(|| {
                    let special: Vec<String> = self
                        .special()
                        .take(6)
                        .map(|token| token.map_or("None".into(), T::shown))
                        .collect();
                    format!(
                        "the vocabulary has the {what} token {} at {}. Leave special tokens out, or begin with all of them, in the \
                         order [{}].",
                        token.shown(),
                        place + skipped,
                        special.join(", ")
                    )
                });
            }
        }
        let size = start.saturating_add(table.words.len());
        if let Some(most) = self.max_tokens.filter(|most| size > *most) {
            return self.wrong(|| {
                format!(
                    "the vocabulary has {size} words with its {start} special ones, and max_tokens is {most}. Raise it, or leave \
                     words out."
                )
            });
        }
        let idf = match (self.output_mode, weights) {
            (OutputMode::TfIdf, Some(weights)) if weights.len() == count => {
                let mean = weights.iter().map(|x| f64::from(*x)).sum::<f64>() / count as f64;
                let front = std::iter::repeat_n(mean as f32, if starts { 0 } else { start });
                self.padded(front.chain(weights.iter().copied()).collect())
            }
            (OutputMode::TfIdf, weights) => {
                return self.wrong(|| {
                    format!(
                        "output_mode is tf_idf, and there are {} idf_weights for a vocabulary of {count} words. Set one for each.",
                        weights.map_or(0, <[f32]>::len)
                    )
                });
            }
            (mode, Some(_)) => {
                return self.wrong(|| {
                    format!(
                        "idf_weights are set, and output_mode is {}. Leave them out, or take tf_idf.",
                        mode.name()
                    )
                });
            }
            (_, None) => Vec::new(),
        };
        Ok(Known { table, idf })
    }

    /// The weights of all indices, up to `max_tokens` where results have as many.
    fn padded(&self, mut weights: Vec<f32>) -> Vec<f32> {
        if let Some(most) = self.max_tokens.filter(|_| self.pad_to_max_tokens) {
            // Weights beyond are zero anyway.
            weights.truncate(most);
        }
        weights
    }

    // ---- learning -----------------------------------------------------------------------------------------------

    pub(super) fn reset(&self) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.counts = Counts::default();
    }

    /// Adds documents of these words.
    pub(super) fn update<'a>(
        &self,
        documents: impl Iterator<Item = impl Iterator<Item = &'a T>>,
    ) -> Result<()> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.is_given {
            return self.wrong(|| {
                "the program has set the vocabulary, so adapt would change nothing. Make the layer without one.".into()
            });
        }
        documents.for_each(|document| state.counts.add(document));
        Ok(())
    }

    pub(super) fn finalize(&self) -> Result<()> {
        self.check()?;
        let start = self.token_start();
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.counts.is_empty() {
            return self.wrong(|| {
                "adapt was given no words, so there is no vocabulary to learn. Check the column.".into()
            });
        }
        let special: Vec<&T> = self.mask_token.iter().chain(&self.oov_token).collect();
        let most = self.max_tokens.map(|most| most.saturating_sub(start));
        let words = std::mem::take(&mut state.counts).into_words(&special, most);
        let (words, weights): (Vec<T>, Vec<f32>) = words.into_iter().unzip();
        let mut idf = Vec::new();
        if self.output_mode == OutputMode::TfIdf {
            let mean = match weights.len() {
                0 => 0.0,
                count => weights.iter().sum::<f32>() / count as f32,
            };
            idf = self.padded(std::iter::repeat_n(mean, start).chain(weights).collect());
        }
        state.known = Some(Known { table: Table::new(self.layer, words)?, idf });
        Ok(())
    }

    // ---- use ----------------------------------------------------------------------------------------------------

    /// The number of indices.
    pub(super) fn size(&self) -> Result<usize> {
        Ok(self.size_of(&self.ready()?))
    }

    /// As [`Lookup::size`], where the vocabulary is in use already: a thread that waits to change it would block a second use.
    fn size_of(&self, state: &InUse<'_, T>) -> usize {
        let words = state.known().map_or(0, |known| known.table.words.len());
        self.token_start().saturating_add(words)
    }

    /// The words by index, with `missing` for special tokens that there are none of.
    pub(super) fn vocabulary(&self, missing: &T) -> Result<Vec<T>> {
        let state = self.ready()?;
        let size = self.size_of(&state);
        // A file may have any number of special tokens; systems promise memory that they do not have.
        if self.token_start() > (1 << 24) {
            return self.wrong(|| {
                format!("the vocabulary has {size} words, more than fit into a list. Set a smaller num_oov_indices.")
            });
        }
        let mut all: Vec<T> = Vec::with_capacity(size);
        all.extend(self.special().map(|token| token.unwrap_or(missing).clone()));
        all.extend(state.known().iter().flat_map(|known| known.table.words.iter().cloned()));
        Ok(all)
    }

    /// The words and the weights from which an equal vocabulary can be made. With weights, special tokens are among the words, as they
    /// have weights, too.
    pub(super) fn described(&self) -> Result<Described<T>> {
        let state = self.ready()?;
        let Some(known) = state.known() else { return Ok((None, None, None)) };
        let (size, words) = (self.size_of(&state), &known.table.words);
        if known.idf.is_empty() {
            return Ok((Some(words.clone()).filter(|words| !words.is_empty()), None, Some(size)));
        }
        let special: Option<Vec<&T>> = self.special().collect();
        let (mut all, mut weights) = (Vec::new(), known.idf.clone());
        weights.truncate(size);
        match special {
            Some(special) => all.extend(special.into_iter().cloned()),
            None => drop(weights.drain(..(size - words.len()).min(weights.len()))),
        }
        all.extend(words.iter().cloned());
        Ok((Some(all), Some(weights), Some(size)))
    }

    /// The indices of words.
    pub(super) fn indices<'a>(&self, words: impl Iterator<Item = &'a T>) -> Result<Vec<i64>> {
        let state = self.ready()?;
        let (oov, start) = (self.oov_start() as i64, self.token_start() as i64);
        let masked = if self.output_mode == OutputMode::Int { 0 } else { DROPPED };
        let index = |word: &T| -> Result<i64> {
            if self.mask_token.as_ref() == Some(word) {
                return Ok(masked);
            }
            if let Some(place) = state.known().and_then(|known| known.table.places.get(word)) {
                return Ok(start + *place as i64);
            }
            match self.num_oov_indices {
                0 => self.wrong(|| {
                    format!(
                        "{} is not in the vocabulary, and num_oov_indices is 0. Add the word, or set num_oov_indices to 1 or more.",
                        word.shown()
                    )
                }),
                1 => Ok(oov),
                bins => Ok(oov + self.oov_bin(word, bins as u64)),
            }
        };
        words.map(index).collect()
    }

    fn oov_bin(&self, word: &T, bins: u64) -> i64 {
        match (self.oov_method, word.whole()) {
            (OovMethod::Floormod, Some(number)) => number.rem_euclid(bins as i64),
            _ => hashes::bin(&word.text(), self.salt.map(|salt| salt.0), bins),
        }
    }

    /// The result for the indices of an array of this shape.
    pub(super) fn encode(&self, shape: &[usize], ids: Vec<i64>) -> Result<HostArray<'static>> {
        self.encoding(|encoding| encoding.encode(shape, ids))
    }

    /// Calls `f` with how results are encoded.
    pub(super) fn encoding<R>(&self, f: impl FnOnce(Encoding<'_>) -> Result<R>) -> Result<R> {
        let state = self.ready()?;
        let known = state.known();
        let depth = match self.max_tokens.filter(|_| self.pad_to_max_tokens) {
            Some(most) => most,
            None if known.is_none() && self.output_mode != OutputMode::Int => {
                return self.wrong(|| {
                    format!(
                        "output_mode is {}, and the layer has no vocabulary yet. Set it, or call adapt first.",
                        self.output_mode.name()
                    )
                });
            }
            None => self.size_of(&state),
        };
        f(Encoding {
            layer: self.layer,
            mode: self.output_mode,
            depth,
            dtype: HostDType::I64,
            idf: known.map_or(&[][..], |known| &known.idf),
        })
    }

    /// The words of indices.
    pub(super) fn words(&self, indices: &[i64], missing: &T) -> Result<Vec<T>> {
        let state = self.ready()?;
        let start = self.token_start();
        let oov = self.oov_token.as_ref().unwrap_or(missing);
        let word = |index: &i64| {
            if let (0, 1, Some(mask)) = (*index, self.oov_start(), &self.mask_token) {
                return mask.clone();
            }
            let place = usize::try_from(*index).ok().and_then(|index| index.checked_sub(start));
            let known = state.known();
            known
                .zip(place)
                .and_then(|(known, place)| known.table.words.get(place))
                .unwrap_or(oov)
                .clone()
        };
        Ok(indices.iter().map(word).collect())
    }
}
