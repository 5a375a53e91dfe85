//! Ops of the domain `ai.onnx.ml`, to which the models of scikit-learn and others are exported.
//!
//! Source: the specification of `ai.onnx.ml` 1 to 5. Where it leaves scores of two classes open, they are those of onnxruntime.

mod encoders;
mod features;
mod forest;
mod linear;
mod svm;
#[cfg(test)]
mod tests;
mod trees;

use super::call;
use call::{Call, Table, unsupported};

use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::host_array::HostArray;
use crate::ops::{concat, where_};
use crate::saved_model::graph_def::value::Value;
use crate::tensor::Tensor;

pub(super) const TABLES: [Table; 5] =
    [encoders::OPS, features::OPS, linear::OPS, svm::OPS, trees::OPS];

/// The rows of features.
fn rows(c: &Call<'_>) -> Result<Tensor> {
    let x = as_floats(&c.tensor(0)?)?;
    match x.shape() {
        [_, _] => Ok(x),
        [features] => x.reshape([1, *features]),
        shape => Err(Error::Shape(message!(
            "it needs rows of features, [batch, features], and gets {shape:?}."
        ))),
    }
}

fn as_floats(x: &Tensor) -> Result<Tensor> {
    if x.dtype() == DType::F32 { Ok(x.clone()) } else { x.cast(DType::F32) }
}

/// An attribute's numbers; none if the node lacks it.
fn floats<'a>(c: &'a Call<'_>, name: &str) -> &'a [f32] {
    c.attr_floats(name).unwrap_or_default()
}

fn ints<'a>(c: &'a Call<'_>, name: &str) -> &'a [i64] {
    c.attr_ints(name).unwrap_or_default()
}

/// The strings of an attribute, which may be any bytes.
fn strings<'a>(c: &'a Call<'_>, name: &str) -> &'a [Vec<u8>] {
    c.node.attributes.get(name).map_or(&[], |attribute| &attribute.strings)
}

/// Devices have integers of 32 bits.
fn short(values: &[i64]) -> Result<Vec<i32>> {
    let short = |value: &i64| {
        i32::try_from(*value).map_err(|_| {
            Error::DType(message!("its attributes have the integer {value}, which is no i32."))
        })
    };
    values.iter().map(short).collect()
}

fn wrong_length(name: &str, length: usize, wanted: impl std::fmt::Display) -> Error {
    Error::Data(message!(
        "its {name} has {length} elements, and {wanted} are needed. The file is damaged."
    ))
}

/// The labels of a classifier.
enum Labels {
    Ints(Vec<i32>),
    Strings(Vec<Vec<u8>>),
}

impl Labels {
    fn new(c: &Call<'_>, of_ints: &str) -> Result<Self> {
        let texts = strings(c, "classlabels_strings");
        let labels = if texts.is_empty() {
            Labels::Ints(short(ints(c, of_ints))?)
        } else {
            Labels::Strings(texts.to_vec())
        };
        if labels.len() == 0 {
            return Err(wrong_length(of_ints, 0, "one for each class"));
        }
        Ok(labels)
    }

    fn len(&self) -> usize {
        match self {
            Labels::Ints(labels) => labels.len(),
            Labels::Strings(labels) => labels.len(),
        }
    }

    /// The labels at these places. Strings are on the host, so the places are read.
    fn pick(&self, places: &Tensor) -> Result<Value> {
        match self {
            Labels::Ints(labels) => {
                let labels = Tensor::from_slice(labels, [labels.len()])?;
                Ok(Value::Tensor(labels.gather(places, 0)?))
            }
            Labels::Strings(labels) => {
                let places = call::ints(&Value::Tensor(places.clone()))?;
                let label = |place: &i64| {
                    let label = usize::try_from(*place).ok().and_then(|at| labels.get(at));
                    label.cloned().unwrap_or_default()
                };
                let texts: Vec<Vec<u8>> = places.iter().map(label).collect();
                Ok(Value::host(HostArray::from_strings([texts.len()], texts)?))
            }
        }
    }

    /// The first or the second label.
    fn pick_second(&self, second: &Tensor) -> Result<Value> {
        self.pick(&second.cast(DType::I32)?)
    }
}

/// Two columns, `[batch, 1]` each.
fn pair(first: Tensor, second: Tensor) -> Result<Tensor> {
    concat([&first, &second], 1)
}

/// The scores as the node wants them.
fn transformed(scores: &Tensor, transform: &str) -> Result<Tensor> {
    match transform {
        "NONE" => Ok(scores.clone()),
        "LOGISTIC" => scores.sigmoid(),
        "SOFTMAX" => scores.softmax(-1),
        "SOFTMAX_ZERO" => {
            let most = scores.reduce_max(1)?.expand_dims(1)?;
            let powers = scores.subtract(&most)?.exp()?;
            // What is 0 remains almost 0.
            let zero = scores.abs()?.less_equal(1e-7)?;
            let sum = where_(&zero, &powers.zeros_like()?, &powers)?.reduce_sum(1)?;
            let small = scores.multiply(most.negative()?.exp()?)?;
            where_(&zero, &small, &powers)?.divide(sum.expand_dims(1)?)
        }
        "PROBIT" => {
            scores.multiply(2.0)?.subtract(1.0)?.erfinv()?.multiply(std::f32::consts::SQRT_2)
        }
        other => Err(unsupported(format_args!("the post_transform {other}"))),
    }
}
