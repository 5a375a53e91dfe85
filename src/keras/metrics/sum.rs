//! [`Sum`].

use super::mean::of_examples;
use super::totals::Totals;
use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::Tensor;
use crate::trackable::{Parts, Trackable};

/// The weighted sum of all added values.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let sum = tf::keras::metrics::Sum::new("seen");
/// sum.update_state(&tf::constant([1.0, 2.0])?)?;
/// sum.update(&tf::constant([4.0, 4.0])?, Some(&tf::constant([1.0, 0.5])?))?;
/// assert_eq!(sum.result()?.item::<f32>()?, 9.0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Sum {
    name: String,
    totals: Totals,
}

impl Default for Sum {
    fn default() -> Self {
        Sum::new("sum")
    }
}

impl Sum {
    /// Creates a sum without values.
    pub fn new(name: impl Into<String>) -> Self {
        Sum { name: name.into(), totals: Totals::new(&["total"]) }
    }

    /// Returns the metric's name in messages and logs.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds values of any shape.
    ///
    /// # Errors
    /// [`Error::DType`](crate::Error::DType) if the dtype is not numeric; [`Error::Device`](crate::Error::Device) if
    /// values from two devices are added between resets.
    pub fn update_state(&self, values: &Tensor) -> Result<()> {
        self.update(values, None)
    }

    /// Adds values multiplied by their weights; weights `[N]` belong to the rows of the values.
    ///
    /// # Errors
    /// The errors of [`Sum::update_state`], and [`Error::Shape`](crate::Error::Shape) if the weights do not fit the
    /// values.
    pub fn update(&self, values: &Tensor, sample_weight: Option<&Tensor>) -> Result<()> {
        let mut values = values.stop_gradient().cast(DType::F32)?;
        if let Some(weight) = sample_weight {
            [values, _] = of_examples(&self.name, &values, weight, |x, axes| x.reduce_sum(axes))?;
        }
        self.totals.add(&self.name, &[values.reduce_sum(())?], 0)
    }

    /// Returns the sum, a scalar.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) if there is no device.
    pub fn result(&self) -> Result<Tensor> {
        match self.totals.now()? {
            Some(totals) => Ok(totals[0].clone()),
            None => Tensor::zeros([]),
        }
    }

    /// Resets the metric.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) if the device's memory is used up.
    pub fn reset_state(&self) -> Result<()> {
        self.totals.reset()
    }
}

impl Trackable for Sum {
    fn track(&self, parts: &mut Parts<'_>) {
        self.totals.track(parts);
    }
}
