//! Compares gradients with numeric differences, on the host and in `f64`.

use ndarray::Array2;

use super::GradientTape;
use super::tensors::Tensors;
use crate::error::{Error, Result, message};
use crate::ops::stack;
use crate::support::options::options;
use crate::tensor::Tensor;

options! {
    /// How [`gradient_check`] computes numeric differences.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct GradientCheckOptions {
        /// The step by which the elements of the arguments are moved; 1/128. A power of two loses the fewest bits. Functions
        /// with a kink near the arguments need a smaller step, at the cost of rounding errors.
        delta: f64 = 1.0 / 128.0,
    }
}

/// The Jacobians of a function for each of its arguments: one row for each element of the result, one column for each element
/// of the argument.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct GradientCheck {
    /// The Jacobians from the gradient rules.
    pub theoretical: Vec<Array2<f64>>,
    /// The Jacobians from numeric differences.
    pub numeric: Vec<Array2<f64>>,
}

impl GradientCheck {
    /// The largest difference between the two; NaN if an element of either is NaN.
    pub fn max_error(&self) -> f64 {
        let pairs = self.theoretical.iter().flatten().zip(self.numeric.iter().flatten());
        // `max` would pass over NaN.
        pairs
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, |most, off| if off > most || off.is_nan() { off } else { most })
    }
}

/// Compares the gradients of `f` at `x` with numeric differences. `x` is a tensor, an array, or a vector of tensors; `f`
/// returns one tensor. Equivalent to TensorFlow's `tf.test.compute_gradient`. Blocks.
///
/// The differences are of fourth order, `(8 (f(x+d) - f(x-d)) - (f(x+2d) - f(x-2d))) / 12d`, and are computed in `f64` from the
/// results of `f`. The rounding errors of these results remain: about 1e-7 relative, divided by `d`. So `max_error` is about
/// 2e-5 times the magnitude of the results if the gradient rules are right.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Tensor, autodiff::gradient_check};
/// let x = tf::constant([[0.5, -1.0], [2.0, 0.25]])?;
/// let check = gradient_check(|x: &Tensor| x.tanh()?.reduce_sum(0), &x)?;
/// assert_eq!(check.numeric[0].shape(), [2, 4]);
/// assert!(check.max_error() < 1e-4, "{}", check.max_error());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The errors of `f`; [`Error::Gradient`] if an argument or the result is not float.
pub fn gradient_check<X: Tensors>(
    f: impl Fn(&X) -> Result<Tensor>,
    x: &X,
) -> Result<GradientCheck> {
    gradient_check_with(f, x, GradientCheckOptions::new())
}

/// Like [`gradient_check`], with options.
///
/// # Errors
/// Same as [`gradient_check`], and [`Error::Gradient`] if `delta` is not a positive number, or is lost to rounding when it is
/// added to an element.
pub fn gradient_check_with<X: Tensors>(
    f: impl Fn(&X) -> Result<Tensor>,
    x: &X,
    options: GradientCheckOptions,
) -> Result<GradientCheck> {
    let delta = options.delta;
    if !(delta > 0.0 && delta.is_finite()) {
        return Err(Error::Gradient(message!(
            "gradient_check: delta is {delta}; it must be a positive number."
        )));
    }
    // With separate identities, in case two arguments are the same tensor.
    let arguments: Vec<Tensor> = x.list().iter().map(Tensor::stop_gradient).collect();
    let x = &X::from_list(arguments.clone());
    let (tape, y) = GradientTape::record(|tape| {
        arguments.iter().try_for_each(|x| tape.watch(x))?;
        f(x)
    })?;
    let sizes: Vec<usize> = arguments.iter().map(Tensor::len).collect();
    let jacobians = tape.jacobian(&y, &arguments)?;
    let theoretical = jacobians.iter().zip(&sizes).map(|(jacobian, &size)| match jacobian {
        Some(jacobian) => matrix(values(jacobian)?, [y.len(), size]),
        None => Ok(Array2::zeros((y.len(), size))),
    });
    let theoretical = theoretical.collect::<Result<_>>()?;
    let numeric = (0..arguments.len()).map(|i| differences(&f, &arguments, i, y.len(), delta));
    Ok(GradientCheck { theoretical, numeric: numeric.collect::<Result<_>>()? })
}

/// The number of elements that are moved before results are read: a read waits for the device.
const AT_ONCE: usize = 16;

/// The Jacobian for argument `i` from differences.
fn differences<X: Tensors>(
    f: &impl Fn(&X) -> Result<Tensor>,
    arguments: &[Tensor],
    i: usize,
    results: usize,
    delta: f64,
) -> Result<Array2<f64>> {
    let x = &arguments[i];
    let start = values(x)?;
    let mut jacobian = Array2::zeros((results, start.len()));
    let elements: Vec<usize> = (0..start.len()).collect();
    for chunk in elements.chunks(AT_ONCE) {
        let mut moved = Vec::new();
        let mut spans = Vec::new();
        for &at in chunk {
            for by in [1.0, -1.0, 2.0, -2.0] {
                let mut values: Vec<f32> = start.iter().map(|&v| v as f32).collect();
                values[at] = (start[at] + by * delta) as f32;
                let tensor =
                    x.device().scope(|| Tensor::from_slice(&values, x.shape()))?.cast(x.dtype())?;
                let mut all = arguments.to_vec();
                all[i] = tensor;
                moved.push(f(&X::from_list(all))?.cast(crate::dtype::DType::F32)?);
            }
            // The step after the rounding of the additions.
            let near =
                f64::from((start[at] + delta) as f32) - f64::from((start[at] - delta) as f32);
            if near == 0.0 {
                return Err(Error::Gradient(message!(
                    "gradient_check: delta ({delta}) is lost in an element of the size {}; give a larger one.",
                    start[at].abs()
                )));
            }
            spans.push(near / 2.0);
        }
        let read = values(&stack(moved, 0)?)?;
        for ((&at, span), four) in chunk.iter().zip(spans).zip(read.chunks(4 * results.max(1))) {
            for row in 0..results {
                let at_step = |k: usize| four[k * results + row];
                let near = at_step(0) - at_step(1);
                let far = at_step(2) - at_step(3);
                jacobian[[row, at]] = (8.0 * near - far) / (12.0 * span);
            }
        }
    }
    Ok(jacobian)
}

/// The elements on the host.
fn values(x: &Tensor) -> Result<Vec<f64>> {
    let values = x.cast(crate::dtype::DType::F32)?.to_vec::<f32>()?;
    Ok(values.into_iter().map(f64::from).collect())
}

fn matrix(values: Vec<f64>, [rows, columns]: [usize; 2]) -> Result<Array2<f64>> {
    Ok(Array2::from_shape_vec((rows, columns), values).expect("a Jacobian has rows times columns"))
}
