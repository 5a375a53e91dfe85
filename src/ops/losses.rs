//! Cross-entropies from logits, stable for logits of any size.

use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::shape::Axes;
use crate::support::options::options;
use crate::tensor::{Operand, Tensor};

use super::inventory::{ANY, Entry, Input, OpKind, POSITIVE, Values, one};
use super::{FLOATS, expect_dtype, select};

/// `-log softmax(logits)[label]` for each row: labels `[..]` (`i32`), logits `[.., C]`, result `[..]`. For a label
/// outside `0..C` the result is NaN, as in TensorFlow on GPUs.
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
/// [`Error::Shape`] if the shapes of labels and logits are incompatible; [`Error::DType`] if labels are not `i32`.
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
    // The shift precedes all sums, so that large logits cause no loss of precision.
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

/// `-sum of labels * log softmax(logits)` along the last axis; labels are distributions with the shape of the logits.
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
    // A class with weight 0 adds nothing, even if its log-probability is -inf.
    let log = logits.log_softmax(-1)?;
    let absent = labels.equal(0.0)?.logical_and(log.less(-log.dtype().largest())?)?;
    let log = select(&absent, &log.zeros_like()?, &log)?;
    labels.multiply(&log)?.reduce_sum(-1)?.negative()
}

/// `z log(1 + e^-x) + (1 - z) log(1 + e^x)` for each logit `x` and label `z` in 0 to 1.
///
/// # Errors
/// [`Error::Shape`] if the shapes cannot be broadcast together.
pub fn sigmoid_cross_entropy_with_logits(labels: &Tensor, logits: &Tensor) -> Result<Tensor> {
    let [of_one, of_zero] = log_odds(logits)?;
    labels.multiply(of_one)?.add(labels.negative()?.add(1.0)?.multiply(of_zero)?)
}

/// `log(1 + e^-x)` and `log(1 + e^x)`. Nothing is subtracted, so there is no cancellation, not even if a driver
/// regroups; it could in TensorFlow's form, `max(x, 0) - x z + log(1 + e^-|x|)`.
fn log_odds(x: &Tensor) -> Result<[Tensor; 2]> {
    // The same condition selects all terms, so the gradient at 0 is correct: sigmoid(0) - z.
    let right = x.greater_equal(0.0)?;
    let (zero, negative) = (x.zeros_like()?, x.negative()?);
    let tail = select(&right, &negative, x)?.exp()?.log1p()?;
    let above = |chosen: Tensor| chosen.add(&tail);
    Ok([above(select(&right, &zero, &negative)?)?, above(select(&right, x, &zero)?)?])
}

/// Like [`sigmoid_cross_entropy_with_logits`], with positive labels weighted by `pos_weight`:
/// `pos_weight z log(1 + e^-x) + (1 - z) log(1 + e^x)`.
///
/// # Errors
/// [`Error::Shape`] if the shapes of labels and logits differ; [`Error::DType`] if the dtypes differ or are not float.
pub fn weighted_cross_entropy_with_logits(
    labels: &Tensor,
    logits: &Tensor,
    pos_weight: impl Into<Operand>,
) -> Result<Tensor> {
    const OP: &str = "WeightedCrossEntropyWithLogits";
    if labels.shape() != logits.shape() {
        return Err(Error::Shape(message!(
            "{OP}: the labels are {:?} and the logits {:?}; both need one shape.",
            labels.shape(),
            logits.shape()
        )));
    }
    let pos_weight = pos_weight.into().into_tensor_like(OP, labels)?;
    let [of_one, of_zero] = log_odds(logits)?;
    let one = pos_weight.multiply(labels)?.multiply(of_one)?;
    one.add(labels.negative()?.add(1.0)?.multiply(of_zero)?)
}

/// Half of the sum of the squares of all elements.
///
/// # Errors
/// [`Error::DType`] if the dtype is not float.
pub fn l2_loss(t: &Tensor) -> Result<Tensor> {
    expect_dtype("L2Loss", t.spec(), FLOATS)?;
    t.square()?.reduce_sum(())?.multiply(0.5)
}

options! {
    /// Options of [`log_poisson_loss_with`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct LogPoissonLossOptions {
        /// Whether to add Stirling's approximation of `log(targets!)` where `targets` is above 1; `false` by default.
        compute_full_loss: bool = false,
    }
}

/// `e^log_input - targets log_input`: the negative log-likelihood of the targets under the Poisson distribution, up to a
/// constant.
///
/// # Errors
/// [`Error::Shape`] if the shapes differ; [`Error::DType`] if the dtypes differ or are not float.
pub fn log_poisson_loss(targets: &Tensor, log_input: &Tensor) -> Result<Tensor> {
    log_poisson_loss_with(targets, log_input, LogPoissonLossOptions::new())
}

/// Like [`log_poisson_loss`], optionally with the constant.
///
/// # Errors
/// As [`log_poisson_loss`].
pub fn log_poisson_loss_with(
    targets: &Tensor,
    log_input: &Tensor,
    options: LogPoissonLossOptions,
) -> Result<Tensor> {
    if targets.shape() != log_input.shape() {
        return Err(Error::Shape(message!(
            "LogPoissonLoss: the targets are {:?} and the input {:?}; both need one shape.",
            targets.shape(),
            log_input.shape()
        )));
    }
    let loss = log_input.exp()?.subtract(log_input.multiply(targets)?)?;
    if !options.compute_full_loss {
        return Ok(loss);
    }
    // Targets from 0 to 1 have no such term; their logarithms must not affect the gradient either.
    let small = targets.greater_equal(0.0)?.logical_and(targets.less_equal(1.0)?)?;
    let safe = select(&small, &targets.ones_like()?, targets)?;
    let log = safe.log()?;
    let half_log_2_pi = log.add((2.0 * std::f64::consts::PI).ln())?.multiply(0.5)?;
    let stirling = safe.multiply(&log)?.subtract(&safe)?.add(half_log_2_pi)?;
    loss.add(select(&small, &stirling.zeros_like()?, &stirling)?)
}

options! {
    /// Options of [`compute_average_loss_with`].
    #[derive(Debug, Clone)]
    pub struct AverageLossOptions {
        /// The weight of each loss, broadcast against the losses; equal weights by default.
        sample_weight: Option<Tensor> as impl Into<Option<Tensor>> = None,
        /// The number of examples; the size of the first axis by default.
        global_batch_size: Option<usize> as impl Into<Option<usize>> = None,
    }
}

/// The sum of the losses, divided by the number of examples.
///
/// # Errors
/// [`Error::Shape`] if the losses are a scalar; [`Error::DType`] if they are not float.
pub fn compute_average_loss(per_example_loss: &Tensor) -> Result<Tensor> {
    compute_average_loss_with(per_example_loss, AverageLossOptions::new())
}

/// Like [`compute_average_loss`], with weights, or with a number of examples, for example that of all devices.
///
/// # Errors
/// Same as [`compute_average_loss`], and [`Error::Shape`] if the weights cannot be broadcast with the losses.
pub fn compute_average_loss_with(
    per_example_loss: &Tensor,
    options: AverageLossOptions,
) -> Result<Tensor> {
    expect_dtype("ComputeAverageLoss", per_example_loss.spec(), FLOATS)?;
    let Some(&first) = per_example_loss.shape().first() else {
        return Err(Error::Shape(
            "ComputeAverageLoss: the loss is a scalar; it needs an axis of examples.".into(),
        ));
    };
    let weighted = match options.sample_weight {
        Some(weight) => &per_example_loss.multiply(weight)?,
        None => per_example_loss,
    };
    // TensorFlow uses `divide_no_nan`: without examples the loss is 0.
    weighted.reduce_sum(())?.divide_no_nan(options.global_batch_size.unwrap_or(first))
}

/// Labels and logits.
const DISTRIBUTIONS: [Input; 2] = [(&[3, 4], Values::Within(0.1, 1.0)), (&[3, 4], ANY)];

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(
        OpKind::Composed,
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
        OpKind::Composed,
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
        OpKind::Composed,
        "sigmoid_cross_entropy_with_logits",
        &["tf.nn.sigmoid_cross_entropy_with_logits"],
        |c| one(sigmoid_cross_entropy_with_logits(c.arg("labels")?, c.arg("logits")?)),
    )
    .cases(|cases| {
        cases.add("sigmoid_cross_entropy_with_logits", &DISTRIBUTIONS, |x| {
            sigmoid_cross_entropy_with_logits(&x[0], &x[1])
        });
    }),
    Entry::new(
        OpKind::Composed,
        "weighted_cross_entropy_with_logits",
        &["tf.nn.weighted_cross_entropy_with_logits"],
        |c| {
            let (labels, logits) = (c.arg("labels")?, c.arg("logits")?);
            one(weighted_cross_entropy_with_logits(labels, logits, c.f32("pos_weight")?))
        },
    )
    .cases(|cases| {
        cases.add("weighted_cross_entropy_with_logits", &DISTRIBUTIONS, |x| {
            weighted_cross_entropy_with_logits(&x[0], &x[1], 2.5)
        });
    }),
    Entry::new(OpKind::Composed, "l2_loss", &["tf.nn.l2_loss"], |c| one(l2_loss(c.x()?)))
        .cases(|cases| cases.of_one("l2_loss", ANY, l2_loss)),
    Entry::new(OpKind::Composed, "log_poisson_loss", &["tf.nn.log_poisson_loss"], |c| {
        let options = LogPoissonLossOptions::new().compute_full_loss(c.flag("compute_full_loss")?);
        one(log_poisson_loss_with(c.arg("targets")?, c.arg("log_input")?, options))
    })
    .forms(&["log_poisson_loss_with"])
    .cases(|cases| {
        cases.add("log_poisson_loss", &[(&[3, 5], POSITIVE), (&[3, 5], ANY)], |x| {
            log_poisson_loss(&x[0], &x[1])
        });
        let full = LogPoissonLossOptions::new().compute_full_loss(true);
        let targets = Values::Distinct(0.1);
        cases.add("log_poisson_loss_with", &[(&[3, 5], targets), (&[3, 5], ANY)], move |x| {
            log_poisson_loss_with(&x[0].add(3.0)?, &x[1], full)
        });
    }),
    Entry::new(OpKind::Composed, "compute_average_loss", &["tf.nn.compute_average_loss"], |c| {
        let options = AverageLossOptions::new()
            .global_batch_size(c.int("global_batch_size")?.map(|size| size as usize));
        one(compute_average_loss_with(c.arg("per_example_loss")?, options))
    })
    .forms(&["compute_average_loss_with"])
    .cases(|cases| {
        cases.of_one("compute_average_loss", ANY, compute_average_loss);
        cases.of_two("compute_average_loss_with", [ANY, POSITIVE], |x, weight| {
            let x = if x.rank() == 0 { x.expand_dims(0)? } else { x.clone() };
            compute_average_loss_with(&x, AverageLossOptions::new().sample_weight(weight.clone()))
        });
    }),
];
