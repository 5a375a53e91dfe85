//! Cross-entropies from logits, stable for logits of any size.

use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::shape::Axes;
use crate::tensor::Tensor;

use super::inventory::{ANY, Entry, Input, Kind, Values, one};
use super::{expect_dtype, select};

/// `-log softmax(logits)[label]` for each row: labels `[..]` (`i32`), logits `[.., C]`, result `[..]`. A label outside
/// `0..C` gives NaN, as on TensorFlow's GPUs.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let loss = tf::sparse_softmax_cross_entropy_with_logits(
///     &tf::constant([1])?, &tf::constant([[0.0, 0.0]])?)?;
/// assert!((loss.item::<f32>()? - 2f32.ln()).abs() < 1e-6);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if labels and logits do not fit together; [`Error::DType`] if labels are not `i32`.
pub fn sparse_softmax_cross_entropy_with_logits(
    labels: &Tensor,
    logits: &Tensor,
) -> Result<Tensor> {
    const OP: &str = "SparseSoftmaxCrossEntropyWithLogits";
    expect_dtype(&format!("{OP} (the labels)"), labels.spec(), &[DType::I32])?;
    let Some((&classes, rows)) = logits.shape().split_last() else {
        return Err(Error::Shape(message!(
            "{OP}: the logits are a scalar; they need a last axis of classes."
        )));
    };
    if labels.shape() != rows {
        return Err(Error::Shape(message!(
            "{OP}: the labels are {:?} and the logits {:?}; labels need the shape of the logits without the last axis.",
            labels.shape(),
            logits.shape()
        )));
    }
    // The shift comes before any sum, so that large logits cost no digits.
    let shifted = logits.subtract(
        logits.stop_gradient().reduce_max(Axes::from(-1).keepdims(true))?.stop_gradient(),
    )?;
    // This finds the label's logit by comparing every index: the row is in registers, and the gradient needs no
    // scatter.
    let device = logits.device();
    let places = super::iota::iota(Some(device), classes, 0.into(), 1.into(), DType::I32)?;
    let own = places.equal(labels.expand_dims(-1)?)?;
    let zero = super::fill(device, OP, Default::default(), 0.into(), logits.dtype())?;
    let picked = select(&own, &shifted, &zero)?.reduce_sum(-1)?;
    let loss = shifted.exp()?.reduce_sum(-1)?.log()?.subtract(picked)?;
    let known = labels.greater_equal(0)?.logical_and(labels.less(classes)?)?;
    select(
        &known,
        &loss,
        &super::fill(device, OP, Default::default(), f64::NAN.into(), logits.dtype())?,
    )
}

/// `-sum of labels * log softmax(logits)` along the last axis; labels are distributions of the logits' shape.
///
/// # Errors
/// [`Error::Shape`] if the shapes differ.
pub fn softmax_cross_entropy_with_logits(labels: &Tensor, logits: &Tensor) -> Result<Tensor> {
    if labels.shape() != logits.shape() {
        return Err(Error::Shape(message!(
            "SoftmaxCrossEntropyWithLogits: the labels are {:?} and the logits {:?}; both need one shape.",
            labels.shape(),
            logits.shape()
        )));
    }
    // A class without weight adds nothing, even where its log-probability is -inf.
    let log = logits.log_softmax(-1)?;
    let absent = labels.equal(0.0)?.logical_and(log.is_inf()?)?;
    let log = select(&absent, &log.zeros_like()?, &log)?;
    labels.multiply(&log)?.reduce_sum(-1)?.negative()
}

/// `max(x, 0) - x z + log(1 + e^-|x|)` for each logit `x` and label `z` in 0 to 1.
///
/// # Errors
/// [`Error::Shape`] if the shapes cannot be broadcast together.
pub fn sigmoid_cross_entropy_with_logits(labels: &Tensor, logits: &Tensor) -> Result<Tensor> {
    // One condition chooses both |x| and max(x, 0), so the gradient at 0 is sigmoid(0) - z, as it should be.
    let right = logits.greater_equal(0.0)?;
    let positive = select(&right, logits, &logits.zeros_like()?)?;
    let tail = select(&right, &logits.negative()?, logits)?.exp()?.log1p()?;
    positive.subtract(logits.multiply(labels)?)?.add(tail)
}

/// Labels and logits.
const DISTRIBUTIONS: [Input; 2] = [(&[3, 4], Values::Within(0.1, 1.0)), (&[3, 4], ANY)];

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(
        Kind::Composed,
        "sparse_softmax_cross_entropy_with_logits",
        &["tf.nn.sparse_softmax_cross_entropy_with_logits"],
        |c| one(sparse_softmax_cross_entropy_with_logits(c.arg("labels")?, c.arg("logits")?)),
    )
    .cases(|cases| {
        cases.add("sparse_softmax_cross_entropy_with_logits", &[(&[3, 4], ANY)], |x| {
            sparse_softmax_cross_entropy_with_logits(&crate::tensor::constant([3, 0, 1])?, &x[0])
        });
    }),
    Entry::new(
        Kind::Composed,
        "softmax_cross_entropy_with_logits",
        &["tf.nn.softmax_cross_entropy_with_logits"],
        |c| one(softmax_cross_entropy_with_logits(c.arg("labels")?, c.arg("logits")?)),
    )
    .cases(|cases| {
        cases.add("softmax_cross_entropy_with_logits", &DISTRIBUTIONS, |x| {
            softmax_cross_entropy_with_logits(&x[0], &x[1])
        });
    }),
    Entry::new(
        Kind::Composed,
        "sigmoid_cross_entropy_with_logits",
        &["tf.nn.sigmoid_cross_entropy_with_logits"],
        |c| one(sigmoid_cross_entropy_with_logits(c.arg("labels")?, c.arg("logits")?)),
    )
    .cases(|cases| {
        cases.add("sigmoid_cross_entropy_with_logits", &DISTRIBUTIONS, |x| {
            sigmoid_cross_entropy_with_logits(&x[0], &x[1])
        });
    }),
];
