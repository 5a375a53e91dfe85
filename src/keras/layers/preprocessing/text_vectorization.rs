//! [`TextVectorization`]: texts as indices of words, or as rows of counts.

use super::category_encoding::OutputMode;
use super::host_encoding::integers;
use super::host_layer::{HostLayer, strings, utf8};
use super::lookup::Lookup;
use super::text::{self, Split, Standardize};
use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType};
use crate::shape::Shape;
use crate::trackable::{Parts, Trackable};

/// Maps texts, `[N]` or `[N,1]`, to the indices of their words, `[N,length]`, or to rows `[N,words]` of zeros and ones, counts or
/// tf-idf weights. Index 0 is padding, 1 stands for words outside the vocabulary; the vocabulary is set or learnt with
/// [`adapt`](HostLayer::adapt).
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::layers::{HostLayer, TextVectorization};
/// let layer = TextVectorization::new().max_tokens(5);
/// layer.adapt(&["The cat sat.", "The dog sat!", "A cat"])?;
/// assert_eq!(layer.get_vocabulary()?, ["", "[UNK]", "the", "sat", "cat"]);
/// let y = layer.apply(&["the CAT ran", "sat"])?;
/// assert_eq!(y.to_array::<i64>()?, ndarray::array![[2, 4, 1], [3, 0, 0]].into_dyn());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TextVectorization {
    lookup: Lookup<Vec<u8>>,
    standardize: Standardize,
    split: Split,
    ngrams: Option<Ngrams>,
    output_sequence_length: Option<usize>,
}

/// The widths of n-grams: a list, or all up to a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ngrams {
    /// Widths from 1 to this number.
    UpTo(usize),
    /// These widths.
    Widths(Vec<usize>),
}

impl From<usize> for Ngrams {
    fn from(most: usize) -> Self {
        Ngrams::UpTo(most)
    }
}

impl<const N: usize> From<[usize; N]> for Ngrams {
    fn from(widths: [usize; N]) -> Self {
        Ngrams::Widths(widths.to_vec())
    }
}

impl From<Vec<usize>> for Ngrams {
    fn from(widths: Vec<usize>) -> Self {
        Ngrams::Widths(widths)
    }
}

const NAME: &str = "TextVectorization";

impl Default for TextVectorization {
    fn default() -> Self {
        TextVectorization::new()
    }
}

impl TextVectorization {
    /// Creates a layer without a vocabulary: set one, or call [`adapt`](HostLayer::adapt).
    pub fn new() -> Self {
        let mut lookup = Lookup::new(NAME, b"[UNK]".to_vec());
        lookup.mask_token = Some(Vec::new());
        TextVectorization {
            lookup,
            standardize: Standardize::default(),
            split: Split::default(),
            ngrams: None,
            output_sequence_length: None,
        }
    }

    /// Sets the maximum number of indices, special ones included. Default: no maximum.
    #[must_use]
    pub fn max_tokens(mut self, max_tokens: impl Into<Option<usize>>) -> Self {
        self.lookup.max_tokens = max_tokens.into();
        self
    }

    /// Sets how texts are changed before they are split. Default: [`Standardize::LowerAndStripPunctuation`].
    #[must_use]
    pub fn standardize(mut self, standardize: Standardize) -> Self {
        self.standardize = standardize;
        self
    }

    /// Sets how texts are split. Default: [`Split::Whitespace`].
    #[must_use]
    pub fn split(mut self, split: Split) -> Self {
        self.split = split;
        self
    }

    /// Sets the widths of n-grams, which then take the place of words: a number for all up to it, or a list. Default: words.
    #[must_use]
    pub fn ngrams(mut self, ngrams: impl Into<Ngrams>) -> Self {
        self.ngrams = Some(ngrams.into());
        self
    }

    /// Sets the output format. Default: [`OutputMode::Int`].
    #[must_use]
    pub fn output_mode(mut self, mode: OutputMode) -> Self {
        self.lookup.output_mode = mode;
        self
    }

    /// Sets the length to which rows of indices are padded or cut. Default: the longest of the batch.
    #[must_use]
    pub fn output_sequence_length(mut self, length: impl Into<Option<usize>>) -> Self {
        self.output_sequence_length = length.into();
        self
    }

    /// Sets whether rows have `max_tokens` elements even if the vocabulary is smaller.
    #[must_use]
    pub fn pad_to_max_tokens(mut self, pad: bool) -> Self {
        self.lookup.pad_to_max_tokens = pad;
        self
    }

    /// Sets the vocabulary, without special tokens, or beginning with all of them. The first use of the layer checks it.
    #[must_use]
    pub fn vocabulary<W: Into<String>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.lookup.give(words.into_iter().map(|word| word.into().into_bytes()).collect());
        self
    }

    /// Sets the weights of the words of the vocabulary, with [`OutputMode::TfIdf`].
    #[must_use]
    pub fn idf_weights(mut self, weights: impl Into<Vec<f32>>) -> Self {
        self.lookup.give_weights(weights.into());
        self
    }

    /// Replaces the vocabulary.
    ///
    /// # Errors
    /// [`Error::Data`] as for [`StringLookup::set_vocabulary`](super::StringLookup::set_vocabulary).
    pub fn set_vocabulary<W: Into<String>>(
        &self,
        words: impl IntoIterator<Item = W>,
    ) -> Result<()> {
        self.lookup.set(words.into_iter().map(|word| word.into().into_bytes()).collect(), None)
    }

    /// Same as [`set_vocabulary`](Self::set_vocabulary), with the weights of [`OutputMode::TfIdf`].
    ///
    /// # Errors
    /// Same as [`set_vocabulary`](Self::set_vocabulary).
    pub fn set_vocabulary_with<W: Into<String>>(
        &self,
        words: impl IntoIterator<Item = W>,
        idf_weights: &[f32],
    ) -> Result<()> {
        let words = words.into_iter().map(|word| word.into().into_bytes()).collect();
        self.lookup.set(words, Some(idf_weights))
    }

    /// Returns the words by index, special tokens included.
    ///
    /// # Errors
    /// [`Error::Data`] if the vocabulary that was set is invalid, or a word is not valid UTF-8.
    pub fn get_vocabulary(&self) -> Result<Vec<String>> {
        let words = self.lookup.vocabulary(&Vec::new())?;
        words.iter().map(|word| utf8(NAME, "a vocabulary", word).map(str::to_string)).collect()
    }

    /// Returns the number of indices, special ones included.
    ///
    /// # Errors
    /// [`Error::Data`] if the vocabulary that was set is invalid.
    pub fn vocabulary_size(&self) -> Result<usize> {
        self.lookup.size()
    }

    /// The words of each text.
    fn documents(&self, x: &HostArray<'_>) -> Result<Vec<Vec<Vec<u8>>>> {
        let texts = strings(NAME, x)?;
        let widths = |count: usize| match &self.ngrams {
            None => None,
            // Longer ones than the text has words do not occur.
            Some(Ngrams::UpTo(most)) => Some((1..=(*most).min(count)).collect()),
            Some(Ngrams::Widths(widths)) => Some(widths.clone()),
        };
        if self.ngrams == Some(Ngrams::UpTo(0)) {
            return Err(Error::Data(message!(
                "{NAME}: ngrams is 0; it must be 1 or more. Leave it out for words."
            )));
        }
        // Texts that are not split are the words of their row.
        let whole = matches!(self.split, Split::Keep);
        let row = match x.shape() {
            [_, columns] if whole => (*columns).max(1),
            [columns] if whole => (*columns).max(1),
            [] | [_] | [_, 1] => 1,
            shape => {
                return Err(Error::Shape(message!(
                    "{NAME}: the input is {shape:?} and begins with {}; texts to be split must be [N] or [N, 1]. Join the columns, or \
                     take Split::Keep.",
                    text::first(texts)
                )));
            }
        };
        let words = |row: &[Vec<u8>]| -> Result<Vec<Vec<u8>>> {
            let mut words = Vec::new();
            for text in row {
                words.extend(self.split.apply(NAME, self.standardize.apply(NAME, text)?)?);
            }
            let widths: Option<Vec<usize>> = widths(words.len());
            match widths {
                Some(widths) => text::ngrams(NAME, &words, &widths),
                None => Ok(words),
            }
        };
        texts.chunks(row).map(words).collect()
    }
}

impl HostLayer for TextVectorization {
    fn call_host(&self, x: &HostArray<'_>) -> Result<HostArray<'static>> {
        let mode = self.lookup.output_mode;
        if mode != OutputMode::Int && self.output_sequence_length.is_some() {
            return Err(Error::Data(message!(
                "{NAME}: output_sequence_length is set, and output_mode is {}. Leave it out, or take int.",
                mode.name()
            )));
        }
        let documents = self.documents(x)?;
        let rows: Vec<Vec<i64>> = documents
            .iter()
            .map(|words| self.lookup.indices(words.iter()))
            .collect::<Result<_>>()?;
        // One text, and one row of texts that are not split, have no axis of rows.
        let whole = matches!(self.split, Split::Keep);
        let lead: &[usize] = match x.shape() {
            [] => &[],
            [_] if whole => &[],
            [rows, ..] => &[*rows],
        };
        if mode != OutputMode::Int {
            return self
                .lookup
                .encoding(|encoding| encoding.rows(lead, rows.iter().map(Vec::as_slice)));
        }
        let longest = rows.iter().map(Vec::len).max().unwrap_or(0);
        let length = self.output_sequence_length.unwrap_or(longest);
        let shape = Shape::from([lead, &[length]].concat());
        let mut all: Vec<i64> = Vec::new();
        let size = shape.checked_elements().filter(|size| size.checked_mul(8).is_some());
        if size.is_none_or(|size| all.try_reserve_exact(size).is_err()) {
            return Err(Error::Shape(message!(
                "{NAME}: the result would be {shape:?}, which does not fit into memory. Take a smaller output_sequence_length."
            )));
        }
        for row in &rows {
            let kept = &row[..row.len().min(length)];
            all.extend_from_slice(kept);
            all.resize(all.len() + length - kept.len(), 0);
        }
        Ok(integers(HostDType::I64, shape, &all))
    }

    fn is_adaptable(&self) -> bool {
        let state = self.lookup.state.read();
        !state.unwrap_or_else(std::sync::PoisonError::into_inner).is_given
    }

    fn reset_state(&self) {
        self.lookup.reset();
    }

    fn update_state(&self, batch: &HostArray<'_>) -> Result<()> {
        let documents = self.documents(batch)?;
        self.lookup.update(documents.iter().map(|words| words.iter()))
    }

    fn finalize_state(&self) -> Result<()> {
        self.lookup.finalize()
    }

    fn vocabulary_array(&self) -> Result<Option<HostArray<'static>>> {
        let words = self.lookup.vocabulary(&Vec::new())?;
        Ok(Some(HostArray::of_strings(Shape::from([words.len()]), words)))
    }

    fn set_vocabulary_array(
        &self,
        words: &HostArray<'_>,
        idf_weights: Option<&[f32]>,
    ) -> Result<()> {
        self.lookup.set(strings(NAME, words)?.to_vec(), idf_weights)
    }

    fn cardinality(&self) -> Result<Option<usize>> {
        let indices = self.lookup.output_mode == OutputMode::Int;
        indices.then(|| self.lookup.size()).transpose()
    }

    #[cfg(feature = "json")]
    fn describe(&self) -> Result<crate::keras::Config> {
        crate::keras::layers::Configured::config(self)
    }
}

impl Trackable for TextVectorization {
    fn track(&self, _parts: &mut Parts<'_>) {}

    fn kind(&self) -> &'static str {
        NAME
    }
}

#[cfg(feature = "json")]
impl crate::keras::ConfigValue for Ngrams {
    fn to_json(&self) -> std::result::Result<serde_json::Value, String> {
        match self {
            Ngrams::UpTo(most) => most.to_json(),
            Ngrams::Widths(widths) => widths.to_json(),
        }
    }

    fn from_json(value: &serde_json::Value) -> std::result::Result<Self, String> {
        if value.is_array() {
            return Vec::from_json(value).map(Ngrams::Widths);
        }
        usize::from_json(value).map(Ngrams::UpTo)
    }
}

#[cfg(feature = "json")]
impl crate::keras::layers::Configured for TextVectorization {
    fn class_name() -> &'static str {
        NAME
    }

    fn config(&self) -> Result<crate::keras::Config> {
        let lookup = &self.lookup;
        let mut config = crate::keras::Config::new(NAME);
        config.set("max_tokens", &lookup.max_tokens)?;
        config.set("standardize", &self.standardize)?;
        config.set("split", &self.split)?;
        config.set("ngrams", &self.ngrams)?;
        config.set("output_mode", &lookup.output_mode)?;
        config.set("output_sequence_length", &self.output_sequence_length)?;
        config.set("pad_to_max_tokens", &lookup.pad_to_max_tokens)?;
        let text = |word: &Vec<u8>| utf8(NAME, "a vocabulary", word).map(str::to_string);
        let (words, weights, size) = lookup.described()?;
        let words = words.map(|words| words.iter().map(text).collect::<Result<Vec<_>>>());
        config.set("vocabulary", &words.transpose()?)?;
        config.set("idf_weights", &weights)?;
        config.set("vocabulary_size", &size.unwrap_or(lookup.token_start()))?;
        config.set("sparse", &false)?;
        config.set("ragged", &false)?;
        config.set("encoding", &"utf-8".to_string())?;
        Ok(config)
    }

    fn from_config(config: &crate::keras::Config) -> Result<Self> {
        config.only(
            &[
                "max_tokens",
                "standardize",
                "split",
                "ngrams",
                "output_mode",
                "output_sequence_length",
                "pad_to_max_tokens",
                "vocabulary",
                "idf_weights",
                "vocabulary_size",
                "has_input_vocabulary",
            ],
            &[("sparse", false.into()), ("ragged", false.into()), ("encoding", "utf-8".into())],
        )?;
        let mut layer = TextVectorization::new();
        if let Some(max_tokens) = config.get("max_tokens")? {
            layer.lookup.max_tokens = max_tokens;
        }
        if let Some(standardize) = config.get("standardize")? {
            layer.standardize = standardize;
        }
        if let Some(split) = config.get("split")? {
            layer.split = split;
        }
        if let Some(ngrams) = config.get("ngrams")? {
            layer.ngrams = ngrams;
        }
        if let Some(mode) = config.get("output_mode")? {
            layer.lookup.output_mode = mode;
        }
        if let Some(length) = config.get("output_sequence_length")? {
            layer.output_sequence_length = length;
        }
        if let Some(pad) = config.get("pad_to_max_tokens")? {
            layer.lookup.pad_to_max_tokens = pad;
        }
        if let Some(Some(words)) = config.get::<Option<Vec<String>>>("vocabulary")? {
            layer = layer.vocabulary(words);
        }
        if let Some(Some(weights)) = config.get::<Option<Vec<f32>>>("idf_weights")? {
            layer = layer.idf_weights(weights);
        }
        // A file of its own had the vocabulary, which was learnt.
        if config.get::<Option<bool>>("has_input_vocabulary")?.flatten() == Some(false) {
            layer.lookup.learnt();
        }
        Ok(layer)
    }
}
