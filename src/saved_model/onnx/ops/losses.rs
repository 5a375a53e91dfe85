//! Losses of class indices, whose classes are along axis 1.

use super::call::{Call, Table, unsupported};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::ops::{one_hot, where_};
use crate::saved_model::graph_def::value::Value;
use crate::tensor::Tensor;

pub(super) static OPS: Table = &[
    ("NegativeLogLikelihoodLoss", |c| Ok(vec![Value::Tensor(likelihood(c, &c.tensor(0)?)?)])),
    ("SoftmaxCrossEntropyLoss", |c| {
        let logarithms = c.tensor(0)?.log_softmax(1)?;
        Ok(vec![Value::Tensor(likelihood(c, &logarithms)?), Value::Tensor(logarithms)])
    }),
];

/// The negative logarithms at the labels, weighted by class. A label that no class has gives an infinite loss, unless it is the one
/// that is ignored.
fn likelihood(c: &Call<'_>, logarithms: &Tensor) -> Result<Tensor> {
    let labels = c.tensor(1)?.cast(DType::I32)?;
    let rank = logarithms.rank();
    if rank < 2 || labels.rank() + 1 != rank {
        return Err(Error::Shape(message!(
            "{:?} are no labels of {:?}, which has its classes along axis 1.",
            labels.shape(),
            logarithms.shape()
        )));
    }
    let mut perm: Vec<usize> = (0..rank).collect();
    perm.remove(1);
    perm.push(1);
    let last = logarithms.transpose(perm)?;
    let classes = logarithms.shape()[1];
    let hot = one_hot(&labels, classes)?;
    // A logarithm of another class may be infinite, and infinity times 0 is no number.
    let own = where_(&hot.greater(0.5)?, &last, &last.zeros_like()?)?;
    let mut loss = own.reduce_sum(-1)?.negative()?;
    let limit = i64::try_from(classes).unwrap_or(i64::MAX);
    let known = labels.greater_equal(0)?.logical_and(labels.less(limit)?)?;
    let far = loss.zeros_like()?.add(f32::INFINITY)?;
    loss = where_(&known, &loss, &far)?;
    let mut weight = match c.get(2) {
        Some(_) => Some(hot.cast(last.dtype())?.multiply(c.tensor(2)?)?.reduce_sum(-1)?),
        None => None,
    };
    if c.node.attributes.contains_key("ignore_index") {
        let kept = labels.not_equal(c.attr_int("ignore_index", 0))?;
        let zeros = loss.zeros_like()?;
        loss = where_(&kept, &loss, &zeros)?;
        weight = Some(match weight {
            Some(weight) => where_(&kept, &weight, &zeros)?,
            None => kept.cast(loss.dtype())?,
        });
    }
    if let Some(weight) = &weight {
        loss = loss.multiply(weight)?;
    }
    match (c.attr_text("reduction", "mean"), weight) {
        ("none", _) => Ok(loss),
        ("sum", _) => loss.reduce_sum(()),
        ("mean", Some(weight)) => loss.reduce_sum(())?.divide(weight.reduce_sum(())?),
        ("mean", None) => loss.reduce_mean(()),
        (other, _) => Err(unsupported(format_args!("the reduction {other}"))),
    }
}
