//! What becomes of indices: integers, or rows of zeros, ones, counts and weights.

use super::{Column, Out, Writer, dtype_attr, wrong};
use crate::error::Result;
use crate::host_array::HostDType;
use crate::keras::Config;
use crate::keras::layers::OutputMode;
use crate::saved_model::graph_def::proto::Attr;

/// The longest row, as its weights are in the graph, whose bytes a protobuf message limits.
const LONGEST: usize = 1 << 28;

/// How a layer's indices become its result.
pub(super) struct Encoding<'a> {
    pub(super) mode: OutputMode,
    /// The number of indices.
    pub(super) depth: usize,
    /// The weights of [`OutputMode::TfIdf`].
    pub(super) idf: &'a [f32],
}

impl Encoding<'_> {
    /// Refuses rows that are too long.
    pub(super) fn check(&self, config: &Config) -> Result<()> {
        if self.mode == OutputMode::Int || self.depth <= LONGEST {
            return Ok(());
        }
        wrong(
            config,
            format_args!(
                "its rows have {} elements, and at most {LONGEST} are written",
                self.depth
            ),
        )
    }
}

impl Writer<'_> {
    /// The layer's result for `int64` indices; those outside `0..depth` become nothing in a row.
    pub(super) fn encoded(
        &mut self,
        config: &Config,
        ids: Column,
        encoding: &Encoding<'_>,
    ) -> Result<Column> {
        encoding.check(config)?;
        let rows = match encoding.mode {
            OutputMode::Int => return Ok(ids),
            OutputMode::OneHot => return Ok(self.one_hot(ids, encoding.depth)),
            _ if ids.shape.len() > 2 => {
                return wrong(
                    config,
                    format_args!("its input has {} axes, and rows need up to two", ids.shape.len()),
                );
            }
            _ if ids.shape.is_empty() => self.reshaped(&ids, &[1]),
            _ => ids,
        };
        let lead = rows.shape[..rows.shape.len() - 1].to_vec();
        Ok(self.counted(None, &rows.out, lead, encoding))
    }

    /// How often each index is in each row, or whether it is, times the weights. `splits` separates rows of different lengths, and
    /// `lead` has the sizes in front of the row.
    pub(super) fn counted(
        &mut self,
        splits: Option<&Out>,
        ids: &Out,
        lead: Vec<Option<usize>>,
        encoding: &Encoding<'_>,
    ) -> Column {
        // Negative indices become one that is skipped; ops refuse to count them.
        let (zero, size) = (self.number(0), self.number(encoding.depth as i64));
        let negative = self.of_integers("Less", ids, &zero);
        let inside = self.select(&negative, &size, ids);
        let weights = self.floats(&[]);
        let attrs = [
            ("Tidx", dtype_attr(HostDType::I64)),
            ("T", dtype_attr(HostDType::F32)),
            ("binary_output", Attr::Bool(encoding.mode == OutputMode::MultiHot)),
        ];
        let out = match splits {
            None => self.op("DenseBincount", &[&inside, &size, &weights], attrs),
            Some(splits) => self.op("RaggedBincount", &[splits, &inside, &size, &weights], attrs),
        };
        let shape = lead.into_iter().chain([Some(encoding.depth)]).collect();
        let counts = Column { out, dtype: HostDType::F32, shape };
        if encoding.mode != OutputMode::TfIdf {
            return counts;
        }
        // Indices behind those of the vocabulary weigh nothing.
        let mut weights = encoding.idf.to_vec();
        weights.resize(encoding.depth, 0.0);
        let weights = self.floats(&weights);
        let out = self.op("Mul", &[&counts.out, &weights], [("T", dtype_attr(HostDType::F32))]);
        Column { out, ..counts }
    }

    fn one_hot(&mut self, ids: Column, depth: usize) -> Column {
        let ids = match &ids.shape[..] {
            // As in Keras, one index in a row is not a list of one.
            [lead @ .., Some(1)] if !lead.is_empty() => {
                let lead = lead.to_vec();
                let attrs =
                    [("T", dtype_attr(ids.dtype)), ("squeeze_dims", super::integers(&[-1]))];
                Column {
                    out: self.op("Squeeze", &[&ids.out], attrs),
                    dtype: ids.dtype,
                    shape: lead,
                }
            }
            [] => self.reshaped(&ids, &[1]),
            _ => ids,
        };
        let size = self.builder.i32(depth as i64);
        let on = self.builder.filled(crate::dtype::DType::F32, &[], 1.0_f32.to_bits());
        let off = self.builder.filled(crate::dtype::DType::F32, &[], 0);
        let attrs = [("T", dtype_attr(HostDType::F32)), ("TI", dtype_attr(HostDType::I64))];
        let out = self.op("OneHot", &[&ids.out, &size, &on, &off], attrs);
        let mut shape = ids.shape;
        shape.push(Some(depth));
        Column { out, dtype: HostDType::F32, shape }
    }

    pub(super) fn category_encoding(&mut self, config: &Config, x: &Column) -> Result<Column> {
        let depth: usize = config.need("num_tokens")?;
        let mode = config.get("output_mode")?.unwrap_or(OutputMode::MultiHot);
        let ids = self.cast(x, HostDType::I64);
        self.encoded(config, ids, &Encoding { mode, depth, idf: &[] })
    }

    pub(super) fn discretization(&mut self, config: &Config, x: &Column) -> Result<Column> {
        let bounds: Option<Vec<f32>> = config.get("bin_boundaries")?;
        let Some(bounds) = bounds.filter(|bounds| !bounds.is_empty()) else {
            return wrong(config, "its boundaries have not been learnt; call adapt first");
        };
        let x = self.cast(x, HostDType::F32);
        let list = crate::saved_model::graph_def::proto::ListValue {
            f: bounds.clone(),
            ..Default::default()
        };
        let attrs = [("T", dtype_attr(HostDType::F32)), ("boundaries", Attr::List(list))];
        let bins = Column {
            out: self.op("Bucketize", &[&x.out], attrs),
            dtype: HostDType::I32,
            shape: x.shape,
        };
        let mode = config.get("output_mode")?.unwrap_or(OutputMode::Int);
        let ids = self.cast(&bins, HostDType::I64);
        self.encoded(config, ids, &Encoding { mode, depth: bounds.len() + 1, idf: &[] })
    }
}
