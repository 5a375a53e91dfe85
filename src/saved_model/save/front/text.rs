//! Texts as indices of their words, or as rows of counts.

use serde_json::Value;

use super::encoding::Encoding;
use super::lookup::{Words, depth, weights};
use super::{Column, Writer, dtype_attr, integers, wrong};
use crate::error::Result;
use crate::host_array::{HostArray, HostDType};
use crate::keras::Config;
use crate::keras::layers::{Ngrams, OutputMode};
use crate::saved_model::graph_def::proto::{Attr, ListValue};
use crate::saved_model::save::builder::text;

/// ASCII's punctuation, which RE2 removes.
const PUNCTUATION: &str = "[!-/:-@\\[-`{-~]";

/// The most words of n-grams.
const WIDEST: usize = 1 << 10;

/// Rows of different lengths: TensorFlow's ragged tensor.
struct Rows {
    values: Column,
    /// Where each row begins, and where the last one ends.
    splits: super::Out,
}

impl Writer<'_> {
    pub(super) fn vectorization(
        &mut self,
        config: &Config,
        all: &HostArray<'static>,
        x: &Column,
    ) -> Result<Column> {
        if x.dtype != HostDType::String {
            return wrong(config, format_args!("its input is {}, and must be strings", x.dtype));
        }
        let texts = self.standardized(config, x)?;
        let mut rows = match config.get_json("split") {
            None | Some(Value::Null) => self.whole(config, &texts)?,
            split => {
                if !matches!(texts.shape[..], [_] | [_, Some(1)]) {
                    return wrong(
                        config,
                        format_args!(
                            "its input is {:?}; texts to be split must be [N, 1]",
                            x.shape
                        ),
                    );
                }
                let list = self.reshaped(&texts, &[-1]);
                match split.and_then(Value::as_str) {
                    Some("whitespace") => self.split_at_spaces(&list),
                    Some("character") => self.characters(&list),
                    _ => return wrong(config, "it splits by a function of the program"),
                }
            }
        };
        match config.get::<Option<Ngrams>>("ngrams")?.flatten() {
            None => {}
            Some(Ngrams::UpTo(most)) if most > WIDEST => {
                return wrong(
                    config,
                    format_args!(
                        "ngrams is {most}, and a graph lists each width; {WIDEST} is the most"
                    ),
                );
            }
            // A text of fewer words has no longer ones.
            Some(Ngrams::UpTo(most)) => rows = self.ngrams(rows, (1..=most).collect()),
            Some(Ngrams::Widths(widths)) => rows = self.ngrams(rows, widths),
        }
        let mode = config.get("output_mode")?.unwrap_or(OutputMode::Int);
        let mask = Some(HostArray::of_strings([1].into(), vec![Vec::new()]));
        let words = Words { all, mode, mask, unknown: 1 };
        rows.values = self.indices(config, &words, &rows.values)?;
        let size = all.shape().first().copied().unwrap_or(0);
        if mode == OutputMode::Int {
            let length = config.get::<Option<usize>>("output_sequence_length")?.flatten();
            return Ok(self.padded(&rows, length));
        }
        let (depth, idf) = (depth(config, size)?, weights(config, size)?);
        let encoding = Encoding { mode, depth, idf: &idf };
        encoding.check(config)?;
        Ok(self.counted(Some(&rows.splits), &rows.values.out, vec![None], &encoding))
    }

    fn standardized(&mut self, config: &Config, x: &Column) -> Result<Column> {
        let (lower, strip) = match config.get_json("standardize") {
            None | Some(Value::Null) => (false, false),
            Some(how) => match how.as_str() {
                Some("lower_and_strip_punctuation") => (true, true),
                Some("lower") => (true, false),
                Some("strip_punctuation") => (false, true),
                _ => return wrong(config, "it standardizes by a function of the program"),
            },
        };
        let mut out = x.out.clone();
        if lower {
            out = self.op("StringLower", &[&out], []);
        }
        if strip {
            let attrs = [("pattern", text(PUNCTUATION)), ("rewrite", text(""))];
            out = self.op("StaticRegexReplace", &[&out], attrs);
        }
        Ok(Column { out, ..x.clone() })
    }

    /// Texts that are not split are the words of their row.
    fn whole(&mut self, config: &Config, x: &Column) -> Result<Rows> {
        let [_, Some(columns)] = x.shape[..] else {
            return wrong(
                config,
                format_args!("its input is {:?}; texts that are not split must be [N, K]", x.shape),
            );
        };
        let count = self.rows(x);
        let (zero, one, columns) = (self.number(0), self.number(1), self.number(columns as i64));
        let end = self.of_integers("Mul", &count, &columns);
        let end = self.of_integers("AddV2", &end, &one);
        let attrs = [("Tidx", dtype_attr(HostDType::I64))];
        let splits = self.op("Range", &[&zero, &end, &columns], attrs);
        Ok(Rows { values: self.reshaped(x, &[-1]), splits })
    }

    fn split_at_spaces(&mut self, x: &Column) -> Rows {
        let separator = self.string(b"");
        let split = self.builder.node("StringSplitV2", [x.out.clone(), separator], []);
        let masks = [
            ("begin_mask", Attr::Int(1)),
            ("end_mask", Attr::Int(1)),
            ("shrink_axis_mask", Attr::Int(2)),
        ];
        let row = self.slice(&format!("{split}:indices:0"), &[0, 0], &[0, 1], masks);
        let count = self.rows(x);
        let weights = self.numbers(&[]);
        let int = || dtype_attr(HostDType::I64);
        let attrs = [("Tidx", int()), ("T", int())];
        let lengths = self.op("DenseBincount", &[&row, &count, &weights], attrs);
        let axis = self.builder.i32(0);
        let attrs = [("T", int()), ("Tidx", dtype_attr(HostDType::I32))];
        let ends = self.op("Cumsum", &[&lengths, &axis], attrs);
        let zero = self.numbers(&[0]);
        let attrs = [("N", Attr::Int(2)), ("T", int()), ("Tidx", dtype_attr(HostDType::I32))];
        let splits = self.op("ConcatV2", &[&zero, &ends, &axis], attrs);
        let values = self.words(format!("{split}:values:0"));
        Rows { values, splits }
    }

    fn characters(&mut self, x: &Column) -> Rows {
        let int = || dtype_attr(HostDType::I64);
        let attrs = [("input_encoding", text("UTF-8")), ("Tsplits", int())];
        let decoded = self.builder.node("UnicodeDecode", [x.out.clone()], attrs);
        let points = format!("{decoded}:char_values:0");
        let attrs = [("T", dtype_attr(HostDType::I32)), ("out_type", int())];
        let shape = self.op("Shape", &[&points], attrs);
        let count = self.slice(&shape, &[0], &[1], [("shrink_axis_mask", Attr::Int(1))]);
        let (zero, one) = (self.number(0), self.number(1));
        let end = self.of_integers("AddV2", &count, &one);
        let each = self.op("Range", &[&zero, &end, &one], [("Tidx", int())]);
        let attrs = [("output_encoding", text("UTF-8")), ("Tsplits", int())];
        let values = self.op("UnicodeEncode", &[&points, &each], attrs);
        Rows { values: self.words(values), splits: format!("{decoded}:row_splits:0") }
    }

    /// A list of strings.
    fn words(&self, out: super::Out) -> Column {
        Column { out, dtype: HostDType::String, shape: vec![None] }
    }

    fn ngrams(&mut self, rows: Rows, widths: Vec<usize>) -> Rows {
        let widths: Vec<i64> = widths.into_iter().map(|width| width as i64).collect();
        let attrs = [
            ("separator", text(" ")),
            ("ngram_widths", integers(&widths)),
            ("left_pad", text("")),
            ("right_pad", text("")),
            ("pad_width", Attr::Int(0)),
            ("preserve_short_sequences", Attr::Bool(false)),
            ("Tsplits", dtype_attr(HostDType::I64)),
        ];
        let node = self.builder.node("StringNGrams", [rows.values.out, rows.splits], attrs);
        let values = self.words(format!("{node}:ngrams:0"));
        Rows { values, splits: format!("{node}:ngrams_splits:0") }
    }

    /// The rows with one length, padded with 0: `length`, or that of the longest one.
    fn padded(&mut self, rows: &Rows, length: Option<usize>) -> Column {
        let shape = self.numbers(&[-1, length.map_or(-1, |length| length as i64)]);
        let zero = self.number(0);
        let kinds =
            Attr::List(ListValue { s: vec![b"ROW_SPLITS".to_vec()], ..ListValue::default() });
        let int = || dtype_attr(HostDType::I64);
        let attrs = [
            ("T", int()),
            ("Tindex", int()),
            ("Tshape", int()),
            ("num_row_partition_tensors", Attr::Int(1)),
            ("row_partition_types", kinds),
        ];
        let inputs = [&shape, &rows.values.out, &zero, &rows.splits];
        let out = self.op("RaggedTensorToTensor", &inputs, attrs);
        Column { out, dtype: HostDType::I64, shape: vec![None, length] }
    }
}
