//! [`Normalization`]: shifts and scales inputs by the mean and variance of data.

use std::borrow::Borrow;

use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::keras::layers::Layer;
use crate::keras::layers::formats::{Class, ExtraVariable};
use crate::keras::{Context, DTypePolicy, Weight};
use crate::shape::{Axes, Shape, axis_list};
use crate::tensor::Tensor;
use crate::trackable::{Parts, Trackable};

/// `(x - mean) / sqrt(variance)`, with a mean and a variance for each index of `axis`, which are either computed from
/// data by [`adapt`](Normalization::adapt) or set by the program.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::{INFERENCE, Layer, layers::Normalization};
/// let layer = Normalization::new();
/// layer.adapt(&tf::constant([[0.0, 10.0], [2.0, 30.0]])?)?;
/// let y = layer.call(&tf::constant([[3.0, 20.0]])?, INFERENCE)?;
/// assert_eq!(y.to_vec::<f32>()?, [2.0, 0.0]);
/// let given = Normalization::new().axis(()).mean([3.0]).variance([4.0]);
/// assert_eq!(given.call(&tf::constant([[1.0], [5.0]])?, INFERENCE)?.to_vec::<f32>()?, [-1.0, 1.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Normalization {
    axis: Axes,
    input_mean: Option<Vec<f32>>,
    input_variance: Option<Vec<f32>>,
    invert: bool,
    mean: Weight,
    variance: Weight,
    policy: DTypePolicy,
}

/// The minimum deviation to divide by, as in Keras.
const EPSILON: f32 = 1e-7;

impl Default for Normalization {
    fn default() -> Self {
        Normalization::new()
    }
}

impl Normalization {
    /// Creates a layer along the last axis, with mean 0 and variance 1 until it is adapted to data.
    pub fn new() -> Self {
        Normalization {
            axis: (-1).into(),
            input_mean: None,
            input_variance: None,
            invert: false,
            mean: Weight::zeros().trainable(false).dtype(DTypePolicy::FLOAT32),
            variance: Weight::ones().trainable(false).dtype(DTypePolicy::FLOAT32),
            policy: DTypePolicy::default(),
        }
    }

    /// Sets the axes whose indices each have their own mean and variance; `()`: one mean and one variance for everything.
    #[must_use]
    pub fn axis(mut self, axis: impl Into<Axes>) -> Self {
        self.axis = axis.into();
        self
    }

    /// Sets the means, one for each index of the axes or one for all; `variance` must be set as well.
    #[must_use]
    pub fn mean(mut self, mean: impl Into<Vec<f32>>) -> Self {
        self.input_mean = Some(mean.into());
        self
    }

    /// Sets the variances; there must be as many as means.
    #[must_use]
    pub fn variance(mut self, variance: impl Into<Vec<f32>>) -> Self {
        self.input_variance = Some(variance.into());
        self
    }

    /// Sets whether to apply the inverse transformation: `x sqrt(variance) + mean`.
    #[must_use]
    pub fn invert(mut self, invert: bool) -> Self {
        self.invert = invert;
        self
    }

    /// Sets the dtype the layer computes in.
    #[must_use]
    pub fn dtype(mut self, policy: DTypePolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Computes the mean and variance of `data`, a batch shaped like the inputs; previous statistics are discarded.
    ///
    /// # Errors
    /// [`Error::Shape`] if the data is empty or has the wrong shape, or if the program has set the mean and variance.
    pub fn adapt(&self, data: &Tensor) -> Result<()> {
        self.adapt_batches([data])
    }

    /// Same as [`Normalization::adapt`], over several batches.
    ///
    /// # Errors
    /// Same as [`Normalization::adapt`].
    pub fn adapt_batches<T: Borrow<Tensor>>(
        &self,
        batches: impl IntoIterator<Item = T>,
    ) -> Result<()> {
        if self.input_mean.is_some() || self.input_variance.is_some() {
            return Err(Error::Shape(
                "Normalization: mean and variance are set; adapt would change nothing. Make the layer without them.".into(),
            ));
        }
        let mut total: Option<(Tensor, Tensor, f64)> = None;
        for batch in batches {
            let x = batch.borrow().cast(DType::F32)?;
            if x.is_empty() {
                return Err(Error::Shape(message!(
                    "Normalization: a batch of adapt is {:?}; an empty batch has no mean.",
                    x.shape()
                )));
            }
            let (sizes, others) = self.sizes(&x)?;
            let count = x.len() as f64 / sizes.elements() as f64;
            let kept = Axes::from(&others[..]).keepdims(true);
            let average =
                |x: &Tensor| if others.is_empty() { Ok(x.clone()) } else { x.reduce_mean(&kept) };
            let mean = average(&x)?;
            let variance = average(&x.subtract(&mean)?.square()?)?;
            let (mean, variance) = (mean.reshape_to(sizes.clone())?, variance.reshape_to(sizes)?);
            total = Some(match total {
                None => (mean, variance, count),
                Some((old_mean, old_variance, seen)) => {
                    let share = (count / (seen + count)) as f32;
                    let both = |old: &Tensor, new: &Tensor| {
                        old.multiply(1.0 - share)?.add(new.multiply(share)?)
                    };
                    let middle = both(&old_mean, &mean)?;
                    let apart = |variance: &Tensor, mean: &Tensor| {
                        variance.add(mean.subtract(&middle)?.square()?)
                    };
                    let variance =
                        both(&apart(&old_variance, &old_mean)?, &apart(&variance, &mean)?)?;
                    (middle, variance, seen + count)
                }
            });
        }
        let Some((mean, variance, _)) = total else {
            return Err(Error::Shape(
                "Normalization: adapt was given no batches; it needs one.".into(),
            ));
        };
        self.mean.variable(&mean, mean.shape())?.assign(&mean)?;
        self.variance.variable(&mean, variance.shape())?.assign(&variance)?;
        mean.device().flush()
    }

    /// The sizes of the axes that are normalized separately, and the other axes.
    fn sizes(&self, x: &Tensor) -> Result<(Shape, Vec<usize>)> {
        let mut own = match &self.axis.list {
            None => Default::default(),
            Some(_) => axis_list("Normalization", &self.axis, x.rank())?,
        };
        own.sort_unstable();
        let others = (0..x.rank()).filter(|axis| !own.contains(axis)).collect();
        Ok((Shape::from(own.iter().map(|&axis| x.shape()[axis]).collect::<Vec<_>>()), others))
    }

    /// The values that the program has set, for these sizes.
    fn given(&self, x: &Tensor, sizes: &Shape) -> Result<Option<[Tensor; 2]>> {
        let (mean, variance) = match (&self.input_mean, &self.input_variance) {
            (None, None) => return Ok(None),
            (Some(mean), Some(variance)) if mean.len() == variance.len() => (mean, variance),
            (mean, variance) => {
                let count = |list: &Option<Vec<f32>>| list.as_ref().map_or(0, Vec::len);
                return Err(Error::Shape(message!(
                    "Normalization: {} means and {} variances are set; there must be as many of both.",
                    count(mean),
                    count(variance)
                )));
            }
        };
        if mean.len() != 1 && mean.len() != sizes.elements() {
            return Err(Error::Shape(message!(
                "Normalization: {} means are set, and the input is {:?}; there must be 1, or one for each index of the axes: \
                 {}.",
                mean.len(),
                x.shape(),
                sizes.elements()
            )));
        }
        let tensor = |values: &[f32]| -> Result<Tensor> {
            let values = x.device().scope(|| Tensor::from_slice(values, [values.len()]))?;
            values.broadcast_to([sizes.elements()])?.reshape_to(sizes.clone())
        };
        Ok(Some([tensor(mean)?, tensor(variance)?]))
    }
}

impl Trackable for Normalization {
    fn track(&self, parts: &mut Parts<'_>) {
        if self.input_mean.is_none() {
            parts.add("mean", &self.mean);
            parts.add("variance", &self.variance);
        }
    }

    fn kind(&self) -> &'static str {
        "Normalization"
    }

    fn class(&self) -> Option<&'static Class> {
        static CLASS: Class = Class::new("Normalization").extra(ExtraVariable::Count);
        Some(&CLASS)
    }
}

impl Layer for Normalization {
    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        let x = &x.cast(DType::F32)?;
        let (sizes, others) = self.sizes(x)?;
        let [mean, variance] = match self.given(x, &sizes)? {
            Some(given) => given,
            None => [self.mean.get(x, sizes.clone())?, self.variance.get(x, sizes)?],
        };
        let broadcast = |axis: usize| if others.contains(&axis) { 1 } else { x.shape()[axis] };
        let broadcast = Shape::from((0..x.rank()).map(broadcast).collect::<Vec<_>>());
        let mean = mean.reshape_to(broadcast.clone())?;
        let deviation = variance.sqrt()?.maximum(EPSILON)?.reshape_to(broadcast)?;
        let y = match self.invert {
            true => x.multiply(deviation)?.add(mean)?,
            false => x.subtract(mean)?.divide(deviation)?,
        };
        y.cast(self.policy.compute_dtype())
    }

    #[cfg(feature = "json")]
    fn get_config(&self) -> Result<crate::keras::Config> {
        crate::keras::layers::Configured::config(self)
    }
}

#[cfg(feature = "json")]
impl crate::keras::layers::Configured for Normalization {
    fn class_name() -> &'static str {
        "Normalization"
    }

    fn config(&self) -> Result<crate::keras::Config> {
        let mut config = crate::keras::Config::new("Normalization");
        // Keras writes a list, which is empty if there is no axis.
        let axes: Vec<i64> = self.axis.list.as_deref().map_or(Vec::new(), <[i64]>::to_vec);
        config.set("axis", &axes)?;
        // Keras writes a single number for all without a list.
        for (key, values) in [("mean", &self.input_mean), ("variance", &self.input_variance)] {
            match values.as_deref() {
                Some([one]) => config.set(key, one)?,
                _ => config.set(key, values)?,
            }
        }
        config.set("invert", &self.invert)?;
        config.set("dtype", &self.policy)?;
        Ok(config)
    }

    fn from_config(config: &crate::keras::Config) -> Result<Self> {
        config.only(&["axis", "mean", "variance", "invert"], &[])?;
        let mut layer = Normalization::new();
        let axis = config.options().get("axis");
        if axis.is_some_and(|axis| axis.is_null() || axis.as_array().is_some_and(Vec::is_empty)) {
            layer.axis = Axes::ALL;
        } else if let Some(axis) = config.get::<Axes>("axis")? {
            layer.axis = axis;
        }
        let list = |key: &str| match config.get_json(key) {
            Some(value) if crate::keras::python_json::float(value).is_some() => {
                config.get::<f32>(key).map(|one| one.map(|one| vec![one]))
            }
            // Keras writes nested lists for several axes.
            Some(serde_json::Value::Array(rows))
                if rows.iter().any(serde_json::Value::is_array) =>
            {
                config.get::<Vec<Vec<f32>>>(key).map(|rows| rows.map(|rows| rows.concat()))
            }
            _ => config.get::<Option<Vec<f32>>>(key).map(Option::flatten),
        };
        layer.input_mean = list("mean")?;
        layer.input_variance = list("variance")?;
        layer.invert = config.get::<Option<bool>>("invert")?.flatten().unwrap_or(false);
        if let Some(policy) = config.get("dtype")? {
            layer.policy = policy;
        }
        Ok(layer)
    }
}
