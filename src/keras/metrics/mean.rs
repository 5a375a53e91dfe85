//! [`Mean`], on which most metrics are based.

use super::totals::Totals;
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::keras::losses::same_rank;
use crate::shape::Axes;
use crate::tensor::Tensor;
use crate::trackable::{Parts, Trackable};

/// The weighted mean of all added values. As in Keras, an example counts as the mean of its values: each row of values
/// `[N,T]` counts once.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let mean = tf::keras::metrics::Mean::new("loss");
/// mean.update_state(&tf::constant([1.0, 2.0])?)?;
/// mean.update_state(&tf::constant(6.0)?)?;
/// assert_eq!(mean.result()?.item::<f32>()?, 3.0);
///
/// mean.reset_state()?;
/// mean.update(&tf::constant([1.0, 3.0])?, Some(&tf::constant([3.0, 1.0])?))?;
/// assert_eq!(mean.result()?.item::<f32>()?, 1.5); // (3 * 1 + 1 * 3) / (3 + 1)
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Mean {
    name: String,
    /// The weighted sum and the sum of the weights. Examples without weights are counted on the host.
    totals: Totals,
}

impl Default for Mean {
    fn default() -> Self {
        Mean::new("mean")
    }
}

impl Mean {
    /// Creates a mean without values.
    pub fn new(name: impl Into<String>) -> Self {
        Mean { name: name.into(), totals: Totals::new(&["total", "weight"]) }
    }

    /// Returns the metric's name in messages and logs.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds values of any shape.
    ///
    /// # Errors
    /// [`Error::DType`] if the dtype is not numeric; [`Error::Device`] if values from two devices are added between
    /// resets.
    pub fn update_state(&self, values: &Tensor) -> Result<()> {
        self.update(values, None)
    }

    /// Adds values with weights; weights `[N]` belong to the rows of the values.
    ///
    /// # Errors
    /// The errors of [`Mean::update_state`], and [`Error::Shape`] if the weights do not fit the values.
    pub fn update(&self, values: &Tensor, sample_weight: Option<&Tensor>) -> Result<()> {
        self.add(&self.name, values, sample_weight)
    }

    /// Same as [`Mean::update`], for a metric with this name.
    pub(super) fn add(&self, metric: &str, values: &Tensor, weight: Option<&Tensor>) -> Result<()> {
        // Metrics do not propagate gradients.
        let values = values.stop_gradient().cast(DType::F32)?;
        let Some(weight) = weight else {
            let examples = values.shape().first().copied().unwrap_or(1);
            let sum = values.reduce_sum(())?;
            // The sum of each example's mean.
            let sum = match values.len() == examples {
                true => sum,
                false => sum.multiply(examples as f64 / values.len().max(1) as f64)?,
            };
            return self.totals.add(metric, &[sum], examples as u64);
        };
        let [values, weight] = of_examples(metric, &values, weight, |x, axes| x.reduce_mean(axes))?;
        self.totals.add(metric, &[values.reduce_sum(())?, weight.reduce_sum(())?], 0)
    }

    /// Returns the mean, a scalar; 0 before the first value.
    ///
    /// # Errors
    /// [`Error::Device`] if there is no device.
    pub fn result(&self) -> Result<Tensor> {
        match self.totals.now()? {
            Some(totals) => {
                let count = self.totals.of_count(|count| count as f64);
                totals[0].divide_no_nan(totals[1].add(count)?)
            }
            None => Tensor::zeros([]),
        }
    }

    /// Resets the metric.
    ///
    /// # Errors
    /// [`Error::Device`] if the device's memory is used up.
    pub fn reset_state(&self) -> Result<()> {
        self.totals.reset()
    }
}

impl Trackable for Mean {
    fn track(&self, parts: &mut Parts<'_>) {
        self.totals.track(parts);
    }
}

/// The weighted values and the weights of each example; `reduce` combines an example's values.
pub(super) fn of_examples(
    metric: &str,
    values: &Tensor,
    weight: &Tensor,
    reduce: fn(&Tensor, Axes) -> Result<Tensor>,
) -> Result<[Tensor; 2]> {
    let weight = weight.stop_gradient().cast(DType::F32)?;
    let [mut values, weight] = same_rank(values, &weight)?;
    let whole = values.shape().to_vec();
    let after = |from: usize, x: &Tensor| match x.rank() > from {
        true => reduce(x, (from..x.rank()).collect::<Vec<_>>().into()),
        false => Ok(x.clone()),
    };
    values = after(weight.rank(), &values)?;
    let shape = values.shape();
    let fits = weight.rank() == shape.len()
        && weight.shape().iter().zip(shape).all(|(weight, value)| *weight == 1 || weight == value);
    if !fits {
        return Err(Error::Shape(message!(
            "{metric}: sample_weight is {:?} and the values are {whole:?}; weights need the first axes of the values, and \
             along each their size or 1.",
            weight.shape()
        )));
    }
    let weight = weight.broadcast_to(shape)?;
    let values = values.multiply(&weight)?;
    Ok([after(1, &values)?, after(1, &weight)?])
}
