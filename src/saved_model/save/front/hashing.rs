//! Bins of strings and integers, and of their combinations.

use serde_json::Value;

use super::encoding::Encoding;
use super::{Column, Writer, dtype_attr, integers, types, wrong};
use crate::error::Result;
use crate::host_array::HostDType;
use crate::host_array::hashes::CROSS_KEY;
use crate::keras::Config;
use crate::keras::layers::OutputMode;
use crate::saved_model::graph_def::proto::Attr;

impl Writer<'_> {
    /// The hash of each string, or of each number's digits, from 0 to `bins`. Without a salt it is FarmHash64, with one SipHash.
    pub(super) fn bins(&mut self, x: &Column, bins: i64, salt: Option<[i64; 2]>) -> Column {
        let mut text = x.out.clone();
        if x.dtype != HostDType::String {
            // Floats lose their fractions.
            let whole = self.cast(x, HostDType::I64);
            text = self.op("AsString", &[&whole.out], [("T", dtype_attr(HostDType::I64))]);
        }
        let count = ("num_buckets", Attr::Int(bins));
        let out = match salt {
            None => self.op("StringToHashBucketFast", &[&text], [count]),
            Some(key) => {
                self.op("StringToHashBucketStrong", &[&text], [count, ("key", integers(&key))])
            }
        };
        Column { out, dtype: HostDType::I64, shape: x.shape.clone() }
    }

    pub(super) fn hashing(&mut self, config: &Config, x: &Column) -> Result<Column> {
        let depth: usize = config.need("num_bins")?;
        let salt = config.get::<Option<[i64; 2]>>("salt")?.flatten();
        let mask = config.get_json("mask_value").filter(|mask| !mask.is_null() && depth > 1);
        let first = i64::from(mask.is_some());
        let mut ids = self.bins(x, depth as i64 - first, salt);
        if let Some(mask) = mask {
            let one = self.number(1);
            let next = self.of_integers("AddV2", &ids.out, &one);
            let value = match (mask, x.dtype) {
                (Value::String(text), HostDType::String) => self.string(text.as_bytes()),
                (Value::Number(number), dtype) if dtype != HostDType::String => {
                    let whole = self.number(number.as_i64().unwrap_or_default());
                    let whole = Column { out: whole, dtype: HostDType::I64, shape: vec![] };
                    self.cast(&whole, dtype).out
                }
                (mask, dtype) => {
                    return wrong(
                        config,
                        format_args!("mask_value is {mask}, and its input {dtype}"),
                    );
                }
            };
            let masked = self.op("Equal", &[&x.out, &value], [("T", dtype_attr(x.dtype))]);
            let zero = self.number(0);
            ids.out = self.select(&masked, &zero, &next);
        }
        let mode = config.get("output_mode")?.unwrap_or(OutputMode::Int);
        self.encoded(config, ids, &Encoding { mode, depth, idf: &[] })
    }

    pub(super) fn crossing(&mut self, config: &Config, inputs: &[&Column]) -> Result<Column> {
        let depth: usize = config.need("num_bins")?;
        let (mut columns, mut kinds) = (Vec::new(), Vec::new());
        for input in inputs {
            let input = match input.dtype {
                HostDType::String => (*input).clone(),
                _ => self.cast(input, HostDType::I64),
            };
            kinds.push(input.dtype.number());
            columns.push(self.reshaped(&input, &[-1, 1]).out);
        }
        let attrs = [
            ("N", Attr::Int(0)),
            ("hashed_output", Attr::Bool(true)),
            ("num_buckets", Attr::Int(depth as i64)),
            ("hash_key", Attr::Int(CROSS_KEY as i64)),
            ("sparse_types", types([])),
            ("dense_types", types(kinds)),
            ("out_type", dtype_attr(HostDType::I64)),
            ("internal_type", dtype_attr(HostDType::I64)),
        ];
        let cross = self.builder.node("SparseCross", columns, attrs);
        // Each row has one combination.
        let shape = inputs[0].shape.clone();
        let out = format!("{cross}:output_values:0");
        let flat = Column { out, dtype: HostDType::I64, shape: vec![None] };
        let ids = match shape.len() {
            0 => self.reshaped(&flat, &[]),
            1 => Column { shape, ..flat },
            2 if shape[1] == Some(1) => self.reshaped(&flat, &[-1, 1]),
            _ => {
                return wrong(config, format_args!("its inputs are {shape:?}, and must be [N, 1]"));
            }
        };
        let mode = config.get("output_mode")?.unwrap_or(OutputMode::Int);
        self.encoded(config, ids, &Encoding { mode, depth, idf: &[] })
    }
}
