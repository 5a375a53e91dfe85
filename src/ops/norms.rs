//! Norms, normalization and clipping by norms, and moments, all composed of reductions.

use std::borrow::Borrow;

use super::composed::mean_and_variance;
use super::inventory::{ANY, Entry, Gradient, OpKind, POSITIVE, Stop, Values, one};
use super::{FLOATS, add_n, expect_dtype, select};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::shape::{Axes, Shape, axis_list};
use crate::support::options::options;
use crate::tensor::{Operand, Tensor};

/// The order of [`Tensor::norm`]; a number `p` converts to `P(p)`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum NormOrder {
    /// The square root of the sum of squares: TensorFlow's `'euclidean'` and `'fro'`.
    #[default]
    Euclidean,
    /// For vectors `(sum of |x|^p)^(1/p)`, or the largest `|x|` if `p` is infinity; for matrices the largest sum of `|x|` over
    /// a column (1) or over a row (infinity).
    P(f64),
}

macro_rules! norm_order_from {
    ($($t:ty),*) => {$(
        impl From<$t> for NormOrder {
            fn from(p: $t) -> Self {
                NormOrder::P(f64::from(p))
            }
        }
    )*};
}
// For example: `impl From<i32> for NormOrder`.
norm_order_from!(i32, f32, f64);

options! {
    /// How [`Tensor::l2_normalize_with`] handles vectors with a small norm.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct L2NormalizeOptions {
        /// The minimum sum of squares to divide by; 1e-12 by default.
        epsilon: f32 = 1e-12,
    }
}

options! {
    /// Options of [`clip_by_global_norm_with`].
    #[derive(Debug, Clone)]
    pub struct ClipByGlobalNormOptions {
        /// A norm to use instead of the global norm of the tensors; none by default.
        use_norm: Option<Tensor> as impl Into<Option<Tensor>> = None,
    }
}

/// Norms and moments. `axes` is one axis, several, or `()` for all.
impl Tensor {
    /// The norm over `axes`, like `tf.norm`: a vector norm along one axis or over all elements, and for a list of two axes a
    /// matrix norm. The Euclidean norm is the same for both.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([[3.0, -4.0], [0.0, 1.0]])?;
    /// assert_eq!(x.norm(tf::NormOrder::Euclidean, 1)?.to_vec::<f32>()?, [5.0, 1.0]);
    /// assert_eq!(x.norm(1, [0, 1])?.item::<f32>()?, 5.0);
    /// assert_eq!(x.norm(f32::INFINITY, ())?.item::<f32>()?, 4.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The gradient of a Euclidean norm at 0 is NaN, as in TensorFlow. The spectral norm (order 2 over two axes) needs singular
    /// values, which have separate functions.
    ///
    /// # Errors
    /// [`Error::Data`] if the order is not above 0, or, for two axes, not one of Euclidean, 1 and infinity; [`Error::Index`] if
    /// an axis does not exist or occurs twice; [`Error::Shape`] if there are more than two axes; [`Error::DType`] if the dtype
    /// is not float.
    pub fn norm(&self, order: impl Into<NormOrder>, axes: impl Into<Axes>) -> Result<Tensor> {
        let (order, axes) = (order.into(), axes.into());
        expect_dtype("Norm", self.spec(), FLOATS)?;
        let list = axis_list("Norm", &axes, self.rank())?;
        let pair = match axes.list.as_deref() {
            Some(given) if given.len() == 2 => Some([given[0], given[1]]),
            Some(given) if given.len() != 1 => {
                return Err(Error::Shape(message!(
                    "Norm: {} axes were given for a tensor of shape {:?}; give one, two for matrices, or () for all.",
                    given.len(),
                    self.shape()
                )));
            }
            _ => None,
        };
        let NormOrder::P(p) = order else { return self.reduce_euclidean_norm(axes) };
        // The sums are first, with their axes kept, so that the axes keep their numbers.
        let over = |x: &Tensor, axis: i64, largest: bool| {
            let axes = Axes::from(axis).keepdims(true);
            if largest { x.reduce_max(axes) } else { x.reduce_sum(axes) }
        };
        let Some([rows, columns]) = pair else {
            return match p {
                _ if p == 1.0 => self.abs()?.reduce_sum(axes),
                _ if p == 2.0 => self.reduce_euclidean_norm(axes),
                _ if p == f64::INFINITY => self.abs()?.reduce_max(axes),
                _ if p > 0.0 => self.abs()?.pow(p)?.reduce_sum(axes)?.pow(1.0 / p),
                _ => Err(Error::Data(message!(
                    "Norm: the order {p} is not the order of a norm; give a number above 0, infinity or Euclidean."
                ))),
            };
        };
        let kept = match p {
            _ if p == 1.0 => over(&over(&self.abs()?, rows, false)?, columns, true)?,
            _ if p == f64::INFINITY => over(&over(&self.abs()?, columns, false)?, rows, true)?,
            _ => {
                return Err(Error::Data(message!(
                    "Norm: the order {p} of matrices is not supported; give Euclidean, 1 or infinity. The spectral norm, \
                     order 2, is the largest singular value."
                )));
            }
        };
        if axes.keepdims {
            return Ok(kept);
        }
        kept.reshape_to(super::reduce::reduced_shape(&self.spec().shape, &list, false))
    }

    /// `x / sqrt(max(sum(x^2), 1e-12))` over `axes`.
    ///
    /// # Errors
    /// [`Error::Index`] if an axis does not exist; [`Error::DType`] if the dtype is not float.
    pub fn l2_normalize(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        self.l2_normalize_with(axes, L2NormalizeOptions::new())
    }

    /// As [`Tensor::l2_normalize`], with another `epsilon`.
    ///
    /// # Errors
    /// As [`Tensor::l2_normalize`].
    pub fn l2_normalize_with(
        &self,
        axes: impl Into<Axes>,
        options: L2NormalizeOptions,
    ) -> Result<Tensor> {
        let squares = self.square()?.reduce_sum(axes.into().keepdims(true))?;
        self.multiply(squares.maximum(options.epsilon)?.rsqrt()?)
    }

    /// The number of elements that are not 0 (or true), over `axes`; `i32`, where TensorFlow returns `int64`. NaN counts.
    ///
    /// # Errors
    /// [`Error::Index`] if an axis does not exist.
    pub fn count_nonzero(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        self.cast(DType::Bool)?.cast(DType::I32)?.reduce_sum(axes)
    }

    /// The fraction of the elements that are 0, in `f32`; NaN for an empty tensor.
    ///
    /// # Errors
    /// [`Error::Device`] if the device is out of memory.
    pub fn zero_fraction(&self) -> Result<Tensor> {
        let size = self.len();
        let zeros = self.cast(DType::Bool)?.logical_not()?.cast(DType::F32)?.reduce_sum(())?;
        zeros.divide(size)
    }

    /// The mean and the variance over `axes`.
    ///
    /// # Errors
    /// [`Error::Index`] if an axis does not exist; [`Error::DType`] if the dtype is not float.
    pub fn moments(&self, axes: impl Into<Axes>) -> Result<(Tensor, Tensor)> {
        expect_dtype("Moments", self.spec(), FLOATS)?;
        let axes = axes.into();
        if self.dtype() == DType::F16 {
            let (mean, variance) = self.cast(DType::F32)?.moments(axes)?;
            return Ok((mean.cast(DType::F16)?, variance.cast(DType::F16)?));
        }
        let [mean, variance] = mean_and_variance(self, &axes)?;
        if axes.keepdims {
            return Ok((mean, variance));
        }
        Ok((mean.reshape_to(variance.spec().shape.clone())?, variance))
    }

    /// Like [`Tensor::moments`], with weighted elements; the weights broadcast with the tensor.
    ///
    /// # Errors
    /// As [`Tensor::moments`], and [`Error::Shape`] if the shapes cannot be broadcast together.
    pub fn weighted_moments(
        &self,
        axes: impl Into<Axes>,
        frequency_weights: &Tensor,
    ) -> Result<(Tensor, Tensor)> {
        expect_dtype("WeightedMoments", self.spec(), FLOATS)?;
        let axes = axes.into();
        let weights = frequency_weights.cast(DType::F32)?;
        let x = self.cast(DType::F32)?;
        let kept = axes.clone().keepdims(true);
        let all = weights.add(x.zeros_like()?)?.reduce_sum(&kept)?;
        let mean = x.multiply(&weights)?.reduce_sum(&kept)?.divide(&all)?;
        // As without weights, the rounding error of the mean is subtracted.
        let apart = x.subtract(mean.stop_gradient())?;
        let average = |of: &Tensor| of.multiply(&weights)?.reduce_sum(&kept)?.divide(&all);
        let variance = average(&apart.squared_difference(average(&apart)?)?)?;
        let dtype = self.dtype();
        if axes.keepdims {
            return Ok((mean.cast(dtype)?, variance.cast(dtype)?));
        }
        let list = axis_list("WeightedMoments", &axes, mean.rank())?;
        let shape = super::reduce::reduced_shape(&mean.spec().shape, &list, false);
        Ok((mean.reshape_to(shape.clone())?.cast(dtype)?, variance.reshape_to(shape)?.cast(dtype)?))
    }

    /// `x clip_norm / max(|x|, clip_norm)`, where `|x|` is the Euclidean norm over `axes`: `x` if the norm is not above
    /// `clip_norm`, otherwise `x` scaled to that norm.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let y = tf::constant([3.0, 4.0])?.clip_by_norm(1.0, ())?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.6, 0.8]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Index`] if an axis does not exist; [`Error::DType`] if the dtype is not float.
    pub fn clip_by_norm(
        &self,
        clip_norm: impl Into<Operand>,
        axes: impl Into<Axes>,
    ) -> Result<Tensor> {
        expect_dtype("ClipByNorm", self.spec(), FLOATS)?;
        let clip_norm = clip_norm.into().into_tensor_like("ClipByNorm", self)?;
        let squares = self.square()?.reduce_sum(axes.into().keepdims(true))?;
        // For 0, neither the square root nor its gradient is computed.
        let some = squares.greater(0.0)?;
        let safe = select(&some, &squares, &squares.ones_like()?)?;
        let norm = select(&some, &safe.sqrt()?, &squares)?;
        self.multiply(&clip_norm)?.divide(norm.maximum(&clip_norm)?)
    }
}

/// Computes the mean and the variance from the results of [`sufficient_statistics`]: the number of elements, the sum and the
/// sum of squares, the latter two of the elements minus `shift`.
///
/// # Errors
/// [`Error::Shape`] if the shapes cannot be broadcast together; [`Error::DType`] if the dtypes differ.
pub fn normalize_moments(
    counts: &Tensor,
    mean_ss: &Tensor,
    variance_ss: &Tensor,
    shift: Option<&Tensor>,
) -> Result<(Tensor, Tensor)> {
    let part = counts.reciprocal()?;
    let shifted = mean_ss.multiply(&part)?;
    let variance = variance_ss.multiply(&part)?.subtract(shifted.square()?)?;
    let mean = match shift {
        Some(shift) => shifted.add(shift)?,
        None => shifted,
    };
    Ok((mean, variance))
}

/// The number of elements over `axes`, their sum and the sum of their squares, after subtracting `shift` from the elements.
///
/// # Errors
/// [`Error::Index`] if an axis does not exist; [`Error::DType`] if the dtype is not float.
pub fn sufficient_statistics(
    x: &Tensor,
    axes: impl Into<Axes>,
    shift: Option<&Tensor>,
) -> Result<(Tensor, Tensor, Tensor)> {
    expect_dtype("SufficientStatistics", x.spec(), FLOATS)?;
    let axes = axes.into();
    let list = axis_list("SufficientStatistics", &axes, x.rank())?;
    let sizes: Vec<usize> = list.iter().map(|&axis| x.shape()[axis]).collect();
    let count = Shape::from(sizes).elements();
    let counts = super::fill(x.device(), "Fill", Default::default(), count.into(), x.dtype())?;
    let moved = shift.map_or_else(|| Ok(x.clone()), |shift| x.subtract(shift))?;
    Ok((counts, moved.reduce_sum(&axes)?, moved.square()?.reduce_sum(&axes)?))
}

/// The square root of the sum of the squares of all elements of all tensors.
///
/// # Errors
/// [`Error::Shape`] if the list is empty; [`Error::DType`] if the dtypes differ or are not float.
pub fn global_norm<T: Borrow<Tensor>>(t_list: impl AsRef<[T]>) -> Result<Tensor> {
    let list = t_list.as_ref();
    if list.is_empty() {
        return Err(Error::Shape(
            "GlobalNorm: no tensors were given; it needs at least one.".into(),
        ));
    }
    let squares: Result<Vec<Tensor>> = list
        .iter()
        .map(|t| {
            expect_dtype("GlobalNorm", t.borrow().spec(), FLOATS)?;
            t.borrow().square()?.reduce_sum(())
        })
        .collect();
    add_n(&squares?)?.sqrt()
}

/// Scales all tensors by one number, so that their [`global_norm`] is not above `clip_norm`; also returns the original norm. A
/// norm that is NaN or infinite makes all elements NaN.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let (clipped, norm) =
///     tf::clip_by_global_norm([tf::constant([3.0])?, tf::constant([4.0])?], 1.0)?;
/// assert_eq!(norm.item::<f32>()?, 5.0);
/// assert_eq!(clipped[0].item::<f32>()?, 0.6);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`global_norm`].
pub fn clip_by_global_norm<T: Borrow<Tensor>>(
    t_list: impl AsRef<[T]>,
    clip_norm: impl Into<Operand>,
) -> Result<(Vec<Tensor>, Tensor)> {
    clip_by_global_norm_with(t_list, clip_norm, ClipByGlobalNormOptions::new())
}

/// Like [`clip_by_global_norm`], with a norm that is already known.
///
/// # Errors
/// As [`global_norm`].
pub fn clip_by_global_norm_with<T: Borrow<Tensor>>(
    t_list: impl AsRef<[T]>,
    clip_norm: impl Into<Operand>,
    options: ClipByGlobalNormOptions,
) -> Result<(Vec<Tensor>, Tensor)> {
    let list = t_list.as_ref();
    let norm = match options.use_norm {
        Some(norm) => norm,
        None => global_norm(list)?,
    };
    let clip_norm = clip_norm.into().into_tensor_like("ClipByGlobalNorm", &norm)?;
    let least = norm.reciprocal()?.minimum(clip_norm.reciprocal()?)?;
    // If the norm is not finite, the result is NaN. TensorFlow adds `norm - norm`, which drivers may simplify to 0.
    let none =
        super::fill(norm.device(), "Fill", Default::default(), f64::NAN.into(), norm.dtype())?;
    let scale = select(&norm.is_finite()?, &clip_norm.multiply(least)?, &none)?;
    let clipped: Result<Vec<Tensor>> =
        list.iter().map(|t| t.borrow().multiply(scale.cast(t.borrow().dtype())?)).collect();
    Ok((clipped?, norm))
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Composed, "norm", &["tf.norm"], |c| {
        let axes = c.axes("axis")?.keepdims(c.flag("keepdims")?);
        let order = match c.text("ord")?.as_deref() {
            None | Some("euclidean" | "fro") => NormOrder::Euclidean,
            Some("inf") => NormOrder::P(f64::INFINITY),
            Some(p) => NormOrder::P(p.parse().map_err(|_| Stop::Lacks("ord".into()))?),
        };
        one(c.x()?.norm(order, axes))
    })
    .cases(|cases| {
        for (name, order) in [
            ("norm", NormOrder::Euclidean),
            ("norm 1", NormOrder::P(1.0)),
            ("norm 2", NormOrder::P(2.0)),
            ("norm 3", NormOrder::P(3.0)),
            ("norm inf", NormOrder::P(f64::INFINITY)),
        ] {
            // No two of the same magnitude, which would share the gradient of the largest one.
            let values = Values::Distinct(0.05);
            cases.add(name, &[(&[3, 5], values)], move |x| x[0].norm(order, 1));
            let all = format!("{name} of all");
            cases.add(all, &[(&[3, 5], values)], move |x| x[0].norm(order, ()));
        }
        for order in [1.0, f64::INFINITY] {
            let name = format!("norm of matrices {order}");
            cases.add(name, &[(&[2, 3, 4], Values::Away)], move |x| x[0].norm(order, [2, 0]));
        }
    }),
    Entry::new(
        OpKind::Composed,
        "l2_normalize",
        &["tf.math.l2_normalize", "tf.nn.l2_normalize"],
        |c| {
            let options = match c.float("epsilon")? {
                Some(epsilon) => L2NormalizeOptions::new().epsilon(epsilon as f32),
                None => L2NormalizeOptions::new(),
            };
            one(c.x()?.l2_normalize_with(c.axes("axis")?, options))
        },
    )
    .forms(&["l2_normalize_with"])
    .cases(|cases| {
        cases.of_one("l2_normalize", ANY, |x| x.l2_normalize(-1));
        cases.of_one("l2_normalize_with", ANY, |x| {
            x.l2_normalize_with((), L2NormalizeOptions::new().epsilon(100.0))
        });
    }),
    Entry::new(OpKind::Composed, "count_nonzero", &["tf.math.count_nonzero"], |c| {
        one(c.x()?.count_nonzero(c.axes("axis")?.keepdims(c.flag("keepdims")?)))
    })
    .takes(&DType::ALL)
    .gradient(Gradient::None("CountNonzero: a number of elements")),
    Entry::new(OpKind::Composed, "zero_fraction", &["tf.nn.zero_fraction"], |c| {
        one(c.arg("value")?.zero_fraction())
    })
    .takes(&DType::ALL)
    .gradient(Gradient::None("ZeroFraction: a number of elements")),
    Entry::new(OpKind::Composed, "moments", &["tf.nn.moments"], |c| {
        let axes = c.axes("axes")?.keepdims(c.flag("keepdims")?);
        let (mean, variance) = c.x()?.moments(axes)?;
        Ok(vec![mean, variance])
    })
    .cases(|cases| {
        cases.of_fold("moments", ANY, |x, axes| {
            let (mean, variance) = x.moments(axes)?;
            mean.add(variance.square()?)
        });
    }),
    Entry::new(OpKind::Composed, "weighted_moments", &["tf.nn.weighted_moments"], |c| {
        let axes = c.axes("axes")?.keepdims(c.flag("keepdims")?);
        let (mean, variance) = c.x()?.weighted_moments(axes, c.arg("frequency_weights")?)?;
        Ok(vec![mean, variance])
    })
    .cases(|cases| {
        cases.of_two("weighted_moments", [ANY, POSITIVE], |x, weights| {
            let (mean, variance) = x.weighted_moments(-1, weights)?;
            mean.add(variance.square()?)
        });
    }),
    Entry::new(OpKind::Composed, "normalize_moments", &["tf.nn.normalize_moments"], |c| {
        let statistics = [c.arg("counts")?, c.arg("mean_ss")?, c.arg("variance_ss")?];
        let (mean, variance) =
            normalize_moments(statistics[0], statistics[1], statistics[2], None)?;
        Ok(vec![mean, variance])
    })
    .cases(|cases| {
        cases.add("normalize_moments", &[(&[5], ANY), (&[5], POSITIVE), (&[], ANY)], |x| {
            let counts = Tensor::scalar(7f32)?;
            let (mean, variance) = normalize_moments(&counts, &x[0], &x[1], Some(&x[2]))?;
            mean.add(variance.square()?)
        });
    }),
    Entry::new(OpKind::Composed, "sufficient_statistics", &["tf.nn.sufficient_statistics"], |c| {
        let (counts, mean, variance) = sufficient_statistics(c.x()?, c.axes("axes")?, None)?;
        Ok(vec![counts, mean, variance])
    })
    .cases(|cases| {
        cases.add("sufficient_statistics", &[(&[3, 5], ANY), (&[], ANY)], |x| {
            let (counts, mean_ss, variance_ss) = sufficient_statistics(&x[0], 0, Some(&x[1]))?;
            mean_ss.add(variance_ss.multiply(counts)?)
        });
    }),
    Entry::new(OpKind::Composed, "clip_by_norm", &["tf.clip_by_norm"], |c| {
        one(c.x()?.clip_by_norm(c.f32("clip_norm")?, c.axes("axes")?))
    })
    .cases(|cases| {
        cases.of_one("clip_by_norm", ANY, |x| x.clip_by_norm(0.5, ()));
        cases.of_one("clip_by_norm of rows", ANY, |x| x.clip_by_norm(1.2, -1));
        cases.of_one("clip_by_norm of short ones", ANY, |x| x.clip_by_norm(100.0, ()));
        cases.of_one("clip_by_norm of zeros", ANY, |x| {
            x.multiply(crate::tensor::constant([[1.0], [0.0], [1.0]])?)?.clip_by_norm(1.2, -1)
        });
    }),
    Entry::new(OpKind::Composed, "global_norm", &["tf.linalg.global_norm"], |c| {
        one(global_norm(c.list("xs")?))
    })
    .cases(|cases| {
        cases.add("global_norm", &[(&[3, 5], ANY), (&[4], ANY)], |x| global_norm([&x[0], &x[1]]));
    }),
    Entry::new(OpKind::Composed, "clip_by_global_norm", &["tf.clip_by_global_norm"], |c| {
        let (mut clipped, norm) = clip_by_global_norm(c.list("xs")?, c.f32("clip_norm")?)?;
        clipped.push(norm);
        Ok(clipped)
    })
    .forms(&["clip_by_global_norm_with"])
    .cases(|cases| {
        cases.add("clip_by_global_norm_with", &[(&[3, 5], ANY), (&[], POSITIVE)], |x| {
            let options = ClipByGlobalNormOptions::new().use_norm(x[1].clone());
            let (mut clipped, _) = clip_by_global_norm_with([&x[0]], 0.2, options)?;
            Ok(clipped.remove(0))
        });
        for clip_norm in [0.5, 100.0] {
            let name = format!("clip_by_global_norm {clip_norm}");
            cases.add(name, &[(&[3, 5], ANY), (&[4], ANY)], move |x| {
                let (clipped, norm) = clip_by_global_norm([&x[0], &x[1]], clip_norm)?;
                clipped[0].reduce_sum(())?.multiply(norm)?.add(&clipped[1])
            });
        }
    }),
];
