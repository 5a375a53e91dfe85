//! Linear models.

use super::call::{Call, Results, Table, tensor};
use super::{Labels, floats, pair, rows, transformed, wrong_length};
use crate::error::{Error, Result, message};
use crate::saved_model::graph_def::value::Value;
use crate::tensor::Tensor;

pub(super) static OPS: Table =
    &[("ai.onnx.ml.LinearClassifier", classifier), ("ai.onnx.ml.LinearRegressor", regressor)];

/// A score of each row for each of `targets` rows of coefficients.
fn scores(c: &Call<'_>, x: &Tensor, targets: usize) -> Result<Tensor> {
    let (coefficients, intercepts) = (floats(c, "coefficients"), floats(c, "intercepts"));
    let features = x.shape()[1];
    if targets.checked_mul(features) != Some(coefficients.len()) {
        return Err(Error::Shape(message!(
            "it has {} coefficients, which are not {features} features for each of {targets} targets. Pass rows of as many features \
             as the model was trained with.",
            coefficients.len()
        )));
    }
    let scores =
        x.matmul(Tensor::from_slice(coefficients, [targets, features])?.transpose([1, 0])?)?;
    match intercepts.len() {
        0 => Ok(scores),
        count if count == targets => scores.add(Tensor::from_slice(intercepts, [1, targets])?),
        count => Err(wrong_length("intercepts", count, targets)),
    }
}

fn regressor(c: &Call<'_>) -> Result<Results> {
    let x = rows(c)?;
    let targets = usize::try_from(c.attr_int("targets", 1)).unwrap_or(0);
    tensor(transformed(&scores(c, &x, targets)?, c.attr_text("post_transform", "NONE"))?)
}

fn classifier(c: &Call<'_>) -> Result<Results> {
    let x = rows(c)?;
    let labels = Labels::new(c, "classlabels_ints")?;
    let transform = c.attr_text("post_transform", "NONE");
    // Of two classes, only the second one may have coefficients.
    if labels.len() == 2 && floats(c, "coefficients").len() == x.shape()[1] {
        let score = scores(c, &x, 1)?;
        let label = labels.pick_second(&score.reshape([-1])?.greater(0.0)?)?;
        let both = match transform {
            "LOGISTIC" => pair(score.negative()?.sigmoid()?, score.sigmoid()?)?,
            _ => pair(score.negative()?.add(1.0)?, score)?,
        };
        return Ok(vec![label, Value::Tensor(both)]);
    }
    let scores = scores(c, &x, labels.len())?;
    let label = labels.pick(&scores.argmax(1)?)?;
    Ok(vec![label, Value::Tensor(transformed(&scores, transform)?)])
}
