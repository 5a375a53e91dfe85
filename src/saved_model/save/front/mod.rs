//! The layers for strings in front of a model ([`HostGraph`]), written as TensorFlow's ops.
//!
//! `lookup.rs` has words and their indices, `text.rs` texts, `hashing.rs` bins, and `encoding.rs` what becomes of indices.

mod encoding;
mod hashing;
mod lookup;
mod text;

use super::builder::{Builder, Out, dtype_attr, ints, types};
use super::tables::Tables;
use crate::error::{Error, Result, message};
use crate::function::TensorSpec;
use crate::host_array::{HostArray, HostDType};
use crate::keras::{Config, HostCall, HostGraph};
use crate::saved_model::graph_def::proto::Attr;

/// A tensor of the graph that the layers compute.
#[derive(Debug, Clone)]
struct Column {
    out: Out,
    dtype: HostDType,
    shape: Vec<Option<usize>>,
}

/// What the layers are written to.
struct Writer<'a> {
    builder: &'a mut Builder,
    tables: &'a mut Tables,
}

/// Writes the layers of a front whose inputs are the function's `arguments`. Returns what the model's inputs get, which have `specs`.
pub(super) fn write(
    graph: &HostGraph,
    arguments: &[String],
    specs: &[TensorSpec],
    builder: &mut Builder,
    tables: &mut Tables,
) -> Result<Vec<Out>> {
    let fed = columns(graph, arguments, builder, tables)?;
    let mut writer = Writer { builder, tables };
    Ok(fed
        .iter()
        .zip(specs)
        .map(|(column, spec)| writer.cast(column, spec.dtype().into()).out)
        .collect())
}

/// The specs of a model's inputs, open where the length of what they get varies: a model may have seen only one length so far.
pub(super) fn open_specs(graph: &HostGraph, specs: &[TensorSpec]) -> Result<Vec<TensorSpec>> {
    let arguments = vec![String::new(); graph.inputs.len()];
    let made = columns(graph, &arguments, &mut Builder::default(), &mut Tables::default())?;
    let open = |(spec, column): (&TensorSpec, &Column)| {
        let mut shape = spec.shape().to_vec();
        if shape.len() == column.shape.len() {
            for (size, own) in shape.iter_mut().zip(&column.shape) {
                *size = size.filter(|_| own.is_some());
            }
        }
        TensorSpec::new(shape, spec.dtype())
    };
    Ok(specs.iter().zip(&made).map(open).collect())
}

/// Writes the layers, and returns what the model's inputs get, before it has their dtypes.
fn columns(
    graph: &HostGraph,
    arguments: &[String],
    builder: &mut Builder,
    tables: &mut Tables,
) -> Result<Vec<Column>> {
    let mut values = Vec::new();
    for (input, out) in graph.inputs.iter().zip(arguments) {
        let column =
            Column { out: out.clone(), dtype: input.host_dtype()?, shape: input.shape.clone() };
        values.push(column);
    }
    let mut writer = Writer { builder, tables };
    for call in &graph.calls {
        let inputs: Vec<&Column> = call.from.iter().filter_map(|from| values.get(*from)).collect();
        let made = writer.call(call, &inputs)?;
        values.push(made);
    }
    Ok(graph.feeds.iter().filter_map(|feed| values.get(*feed)).cloned().collect())
}

impl Writer<'_> {
    fn call(&mut self, call: &HostCall, inputs: &[&Column]) -> Result<Column> {
        let config = &call.config;
        let [first, ..] = inputs else { return wrong(config, "it has no input") };
        match (config.class(), &call.vocabulary) {
            ("HashedCrossing", _) => self.crossing(config, inputs),
            ("Hashing", _) => self.hashing(config, first),
            ("StringLookup" | "IntegerLookup", Some(words)) => self.lookup(config, words, first),
            ("TextVectorization", Some(words)) => self.vectorization(config, words, first),
            ("CategoryEncoding", _) => self.category_encoding(config, first),
            ("Discretization", _) => self.discretization(config, first),
            _ => wrong(config, "TensorFlow has no ops for this layer"),
        }
    }

    fn op(
        &mut self,
        op: &str,
        inputs: &[&Out],
        attrs: impl IntoIterator<Item = (&'static str, Attr)>,
    ) -> Out {
        self.builder.op(op, inputs, attrs)
    }

    fn cast(&mut self, x: &Column, dtype: HostDType) -> Column {
        if x.dtype == dtype {
            return x.clone();
        }
        let attrs = [("SrcT", dtype_attr(x.dtype)), ("DstT", dtype_attr(dtype))];
        Column { out: self.op("Cast", &[&x.out], attrs), dtype, shape: x.shape.clone() }
    }

    /// An `int64` scalar.
    fn number(&mut self, value: i64) -> Out {
        self.builder.constant(&HostArray::of_bytes(
            HostDType::I64,
            [].into(),
            value.to_le_bytes().to_vec(),
        ))
    }

    fn numbers(&mut self, values: &[i64]) -> Out {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.builder.constant(&HostArray::of_bytes(HostDType::I64, [values.len()].into(), bytes))
    }

    fn floats(&mut self, values: &[f32]) -> Out {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.builder.constant(&HostArray::of_bytes(HostDType::F32, [values.len()].into(), bytes))
    }

    fn string(&mut self, text: &[u8]) -> Out {
        self.builder.constant(&HostArray::of_strings([].into(), vec![text.to_vec()]))
    }

    /// An op of two `int64`.
    fn of_integers(&mut self, op: &str, a: &Out, b: &Out) -> Out {
        self.op(op, &[a, b], [("T", dtype_attr(HostDType::I64))])
    }

    /// `then` where `condition` holds, and `otherwise` elsewhere, all of `int64`.
    fn select(&mut self, condition: &Out, then: &Out, otherwise: &Out) -> Out {
        self.op("SelectV2", &[condition, then, otherwise], [("T", dtype_attr(HostDType::I64))])
    }

    /// The tensor with sizes of which one may be -1.
    fn reshaped(&mut self, x: &Column, sizes: &[i64]) -> Column {
        let to = self.numbers(sizes);
        let attrs = [("T", dtype_attr(x.dtype)), ("Tshape", dtype_attr(HostDType::I64))];
        let shape = sizes.iter().map(|size| usize::try_from(*size).ok()).collect();
        Column { out: self.op("Reshape", &[&x.out, &to], attrs), dtype: x.dtype, shape }
    }

    /// The size of the first axis, as an `int64` scalar.
    fn rows(&mut self, x: &Column) -> Out {
        let attrs = [("T", dtype_attr(x.dtype)), ("out_type", dtype_attr(HostDType::I64))];
        let shape = self.op("Shape", &[&x.out], attrs);
        self.slice(&shape, &[0], &[1], [("shrink_axis_mask", Attr::Int(1))])
    }

    /// A part of an `int64` tensor from `begin` to `end`.
    fn slice(
        &mut self,
        x: &Out,
        begin: &[i64],
        end: &[i64],
        masks: impl IntoIterator<Item = (&'static str, Attr)>,
    ) -> Out {
        let steps = vec![1; begin.len()];
        let (begin, end, steps) = (self.numbers(begin), self.numbers(end), self.numbers(&steps));
        let int = || dtype_attr(HostDType::I64);
        let attrs = [("T", int()), ("Index", int())].into_iter().chain(masks);
        self.op("StridedSlice", &[x, &begin, &end, &steps], attrs)
    }

    /// `x`, after a check that fails with `text` unless all of `good` is true.
    fn checked(&mut self, x: &Column, good: &Out, text: &str) -> Column {
        let axes = self.rank_axes(x.shape.len());
        let all = self.op("All", &[good, &axes], [("Tidx", dtype_attr(HostDType::I32))]);
        let text = self.string(text.as_bytes());
        let kinds = types([HostDType::String.number()]);
        let check = self.builder.node("Assert", [all, text], [("T", kinds)]);
        let name = self.builder.node(
            "Identity",
            [x.out.clone(), format!("^{check}")],
            [("T", dtype_attr(x.dtype))],
        );
        Column { out: format!("{name}:output:0"), ..x.clone() }
    }

    fn rank_axes(&mut self, rank: usize) -> Out {
        let axes: Vec<i64> = (0..rank as i64).collect();
        self.builder.i32s(&axes)
    }
}

/// A list of `int64`, as an attribute.
fn integers(values: &[i64]) -> Attr {
    ints(values.iter().copied())
}

/// Why a layer is not written.
fn wrong<R>(config: &Config, why: impl std::fmt::Display) -> Result<R> {
    Err(Error::Data(message!("save: the layer {} in front of the model: {why}.", config.class())))
}
