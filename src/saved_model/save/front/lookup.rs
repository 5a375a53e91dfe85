//! Words and integers as their indices, by tables.

use serde_json::Value;

use super::encoding::Encoding;
use super::{Column, Writer, dtype_attr, wrong};
use crate::error::Result;
use crate::host_array::{HostArray, HostDType};
use crate::keras::Config;
use crate::keras::layers::OutputMode;

/// An index that becomes nothing in a row.
const DROPPED: i64 = -1;
/// What a table has for words outside the vocabulary, where one index does not stand for all of them.
const UNKNOWN: i64 = -2;

/// A vocabulary and its special indices.
pub(super) struct Words<'a> {
    /// The words by index, special ones included.
    pub(super) all: &'a HostArray<'static>,
    pub(super) mode: OutputMode,
    /// The word for no value.
    pub(super) mask: Option<HostArray<'static>>,
    /// The number of indices for words outside the vocabulary.
    pub(super) unknown: usize,
}

fn is_integer(dtype: HostDType) -> bool {
    !dtype.is_float() && !matches!(dtype, HostDType::String | HostDType::Bool)
}

/// The value of a config as a word of a vocabulary.
fn word(value: &Value) -> Option<HostArray<'static>> {
    if let Some(text) = value.as_str() {
        return Some(HostArray::of_strings([1].into(), vec![text.as_bytes().to_vec()]));
    }
    let number = value.as_i64()?;
    Some(HostArray::of_bytes(HostDType::I64, [1].into(), number.to_le_bytes().to_vec()))
}

/// One list behind the other, of strings or of `int64`.
fn joined(
    first: &HostArray<'_>,
    second: Option<&HostArray<'_>>,
    from: usize,
) -> HostArray<'static> {
    let second = second.into_iter();
    match first.strings() {
        Some(strings) => {
            let mut all = strings[from..].to_vec();
            second.for_each(|more| all.extend_from_slice(more.strings().unwrap_or_default()));
            HostArray::of_strings([all.len()].into(), all)
        }
        None => {
            let mut bytes = first.bytes()[8 * from..].to_vec();
            second.for_each(|more| bytes.extend_from_slice(more.bytes()));
            HostArray::of_bytes(HostDType::I64, [bytes.len() / 8].into(), bytes)
        }
    }
}

impl Words<'_> {
    pub(super) fn first_unknown(&self) -> usize {
        usize::from(self.mask.is_some() && self.mode == OutputMode::Int)
    }

    /// The index of the first word that is not special.
    fn start(&self) -> usize {
        self.first_unknown() + self.unknown
    }

    /// The keys and the values of the table.
    fn entries(&self) -> (HostArray<'static>, HostArray<'static>) {
        let count = self.all.shape().first().copied().unwrap_or(0);
        let start = self.start().min(count);
        let keys = joined(self.all, self.mask.as_ref(), start);
        let mask = if self.mode == OutputMode::Int { 0 } else { DROPPED };
        let indices = (start as i64..count as i64).chain(self.mask.as_ref().map(|_| mask));
        let bytes: Vec<u8> = indices.flat_map(i64::to_le_bytes).collect();
        let values = HostArray::of_bytes(HostDType::I64, [bytes.len() / 8].into(), bytes);
        (keys, values)
    }
}

/// The weights of a config by index.
pub(super) fn weights(config: &Config, depth: usize) -> Result<Vec<f32>> {
    let Some(Some(weights)) = config.get::<Option<Vec<f32>>>("idf_weights")? else {
        return Ok(Vec::new());
    };
    // Special tokens that a config cannot name weigh as much as an average word.
    let mean = weights.iter().sum::<f32>() / weights.len().max(1) as f32;
    let missing = depth.saturating_sub(weights.len());
    Ok(std::iter::repeat_n(mean, missing).chain(weights).collect())
}

/// The number of indices of a layer with a vocabulary of `size` words.
pub(super) fn depth(config: &Config, size: usize) -> Result<usize> {
    let padded = config.get::<bool>("pad_to_max_tokens")?.unwrap_or(false);
    let most = config.get::<Option<usize>>("max_tokens")?.flatten();
    Ok(most.filter(|_| padded).unwrap_or(size))
}

impl Writer<'_> {
    pub(super) fn lookup(
        &mut self,
        config: &Config,
        all: &HostArray<'static>,
        x: &Column,
    ) -> Result<Column> {
        if config.get::<bool>("invert")?.unwrap_or(false) {
            return wrong(config, "it makes strings of indices, which no model computes with");
        }
        let mode = config.get("output_mode")?.unwrap_or(OutputMode::Int);
        let unknown = config.get::<usize>("num_oov_indices")?.unwrap_or(1);
        let mask = config.get_json("mask_token").and_then(word);
        let x = match (all.dtype(), x.dtype) {
            (HostDType::String, HostDType::String) => x.clone(),
            (HostDType::I64, dtype) if is_integer(dtype) => self.cast(x, HostDType::I64),
            (words, dtype) => {
                return wrong(config, format_args!("its words are {words}, and its input {dtype}"));
            }
        };
        let ids = self.indices(config, &Words { all, mode, mask, unknown }, &x)?;
        let size = all.shape().first().copied().unwrap_or(0);
        let depth = depth(config, size)?;
        let idf = weights(config, size)?;
        self.encoded(config, ids, &Encoding { mode, depth, idf: &idf })
    }

    /// The indices of words.
    pub(super) fn indices(
        &mut self,
        config: &Config,
        words: &Words<'_>,
        x: &Column,
    ) -> Result<Column> {
        let (keys, values) = words.entries();
        let first = words.first_unknown() as i64;
        let default = if words.unknown == 1 { first } else { UNKNOWN };
        let table = self.tables.handle(keys, values);
        let default = self.number(default);
        let attrs = [("Tin", dtype_attr(x.dtype)), ("Tout", dtype_attr(HostDType::I64))];
        let found = self.op("LookupTableFindV2", &[&table, &x.out, &default], attrs);
        let found = Column { out: found, dtype: HostDType::I64, shape: x.shape.clone() };
        if words.unknown == 1 {
            return Ok(found);
        }
        let marker = self.number(UNKNOWN);
        if words.unknown == 0 {
            let good = self.of_integers("NotEqual", &found.out, &marker);
            let text = format!(
                "{}: a word is not in the vocabulary, and num_oov_indices is 0.",
                config.class()
            );
            return Ok(self.checked(&found, &good, &text));
        }
        let bins = words.unknown as i64;
        let floormod = config.get_json("oov_method").and_then(Value::as_str) == Some("floormod");
        let salt = config.get::<Option<[i64; 2]>>("salt")?.flatten();
        let bin = if floormod && x.dtype == HostDType::I64 {
            let bins = self.number(bins);
            self.of_integers("FloorMod", &x.out, &bins)
        } else {
            self.bins(x, bins, salt).out
        };
        let first = self.number(first);
        let bin = self.of_integers("AddV2", &bin, &first);
        let unknown = self.of_integers("Equal", &found.out, &marker);
        Ok(Column { out: self.select(&unknown, &bin, &found.out), ..found })
    }
}
