//! Ops that scale, replace and choose features.

use super::call::{self, Call, Results, Table, long, one, tensor, tf, unsupported};
use super::{as_floats, floats, ints, rows, short, wrong_length};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::ops::{concat, where_};
use crate::tensor::Tensor;

pub(super) static OPS: Table = &[
    ("ai.onnx.ml.ArrayFeatureExtractor", array_feature_extractor),
    ("ai.onnx.ml.Binarizer", |c| {
        let x = c.tensor(0)?;
        let limit = c.attr_float("threshold", 0.0);
        tensor(as_floats(&x)?.greater(limit)?.cast(x.dtype())?)
    }),
    ("ai.onnx.ml.FeatureVectorizer", feature_vectorizer),
    ("ai.onnx.ml.Imputer", imputer),
    ("ai.onnx.ml.Normalizer", normalizer),
    ("ai.onnx.ml.Scaler", |c| {
        let x = as_floats(&c.tensor(0)?)?;
        let offset = per_feature("offset", floats(c, "offset"), &x)?;
        let scale = per_feature("scale", floats(c, "scale"), &x)?;
        tensor(x.subtract(offset)?.multiply(scale)?)
    }),
];

/// A number for each feature, or one for all.
fn per_feature<T: crate::tensor::Element>(name: &str, values: &[T], x: &Tensor) -> Result<Tensor> {
    let features = x.shape().last().copied().unwrap_or(1);
    if values.len() != 1 && values.len() != features {
        return Err(wrong_length(name, values.len(), format_args!("1 or {features}")));
    }
    Tensor::from_slice(values, [values.len()])
}

fn normalizer(c: &Call<'_>) -> Result<Results> {
    let x = rows(c)?;
    let size = match c.attr_text("norm", "MAX") {
        "MAX" => x.reduce_max(1)?,
        "L1" => x.abs()?.reduce_sum(1)?,
        "L2" => x.square()?.reduce_sum(1)?.sqrt()?,
        other => return Err(unsupported(format_args!("the norm {other}"))),
    };
    // A row of zeros remains one.
    let size = where_(&size.equal(0.0)?, &size.ones_like()?, &size)?;
    tensor(x.divide(size.expand_dims(1)?)?)
}

fn imputer(c: &Call<'_>) -> Result<Results> {
    let x = c.tensor(0)?;
    if x.dtype() == DType::F32 {
        let values = per_feature("imputed_value_floats", floats(c, "imputed_value_floats"), &x)?;
        let missing = c.attr_float("replaced_value_float", 0.0);
        let missing = if missing.is_nan() { x.is_nan()? } else { x.equal(missing)? };
        return tensor(where_(&missing, &values.broadcast_to(x.shape())?, &x)?);
    }
    let values = short(ints(c, "imputed_value_int64s"))?;
    let values = per_feature("imputed_value_int64s", &values, &x)?;
    let missing = x.equal(c.attr_int("replaced_value_int64", 0))?;
    tensor(where_(&missing, &values.broadcast_to(x.shape())?, &x)?)
}

fn array_feature_extractor(c: &Call<'_>) -> Result<Results> {
    let (mut x, places) = (c.input(0)?, c.input(1)?);
    let mut shape = x.shape()?;
    if shape.len() == 1 {
        shape.insert(0, 1);
        let sizes: Vec<i64> = shape.iter().map(|size| *size as i64).collect();
        x = tf("Reshape", vec![x, long(&sizes)], vec![])?;
    }
    let features = shape.last().copied().ok_or_else(|| {
        Error::Shape(message!("it chooses features of a number, which has none."))
    })?;
    if places.as_host().is_some() {
        let known = |at: &i64| usize::try_from(*at).is_ok_and(|at| at < features);
        if let Some(at) = call::ints(&places)?.iter().find(|at| !known(at)) {
            return Err(Error::Index(message!(
                "it chooses the feature {at}, and there are {features}. Pass rows of as many features as the model was trained with."
            )));
        }
    }
    let places = tf("Reshape", vec![places, long(&[-1])], vec![])?;
    one(tf("GatherV2", vec![x, places, long(&[shape.len() as i64 - 1])], vec![])?)
}

/// The features of all inputs in one row: of each, as many as the node says.
fn feature_vectorizer(c: &Call<'_>) -> Result<Results> {
    let sizes = ints(c, "inputdimensions");
    if sizes.len() != c.inputs.len() {
        return Err(wrong_length("inputdimensions", sizes.len(), c.inputs.len()));
    }
    let mut parts = Vec::with_capacity(sizes.len());
    for (at, size) in sizes.iter().enumerate() {
        let x = as_floats(&c.tensor(at)?)?;
        let batch = x.shape().first().copied().unwrap_or(1);
        let own = x.shape().iter().skip(1).product::<usize>();
        if usize::try_from(*size) != Ok(own) {
            return Err(Error::Shape(message!(
                "its input {at} has {own} features in each row, and {size} are needed."
            )));
        }
        parts.push(x.reshape([batch, own])?);
    }
    tensor(concat(&parts, 1)?)
}
